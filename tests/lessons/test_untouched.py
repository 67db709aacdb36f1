"""A student who has answered nothing yet, and runs all cells of a lesson, comes politely to its end."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from rota import in_turn, parts

ROOT = Path(__file__).parents[2]
LESSONS = [p for p in sorted(ROOT.glob("course/*/*.ipynb")) if p.stem == p.parent.name]
EVERY = parts(len(LESSONS), a_day=1)  # half a minute a lesson; not on the day on which its solved notebook is run


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "lesson", [pytest.param(p, id=p.stem, marks=in_turn(k + EVERY // 2, EVERY)) for k, p in enumerate(LESSONS)]
)
def test_no_cell_stops_while_every_exercise_is_open(lesson, monkeypatch, tmp_path):
    monkeypatch.setenv("MANY_DEVICES_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    folder = shutil.copytree(lesson.parent, tmp_path / "lesson")  # with what stands beside the notebook
    notebook = nbformat.read(lesson, 4)
    NotebookClient(notebook, allow_errors=True, resources={"metadata": {"path": str(folder)}}).execute()
    assert [(cell.source, out.evalue) for cell, out in _outputs(notebook) if out.output_type == "error"] == []
    assert sum("still the starter" in str(out) for _, out in _outputs(notebook)) > 0  # the checks have been run


def _outputs(notebook):
    return [(cell, out) for cell in notebook.cells for out in cell.get("outputs", ())]
