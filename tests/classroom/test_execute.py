"""Hand-ins of every kind: each gets its marks or a clear word, and the class goes on."""

import json
import shutil
import sqlite3

import nbformat
import pytest
from rich.console import Console
from rota import LONG, taking_turns

from grader.classroom.course.frame import bare
from grader.classroom.course.notebook import checked
from grader.classroom.grading.execute import Grading, grade_notebook
from grader.classroom.grading.grade import Options, grade_class
from grader.classroom.store import Store
from grader.classroom.verdicts.judge import Judge
from grader.classroom.walls.templates import Limits
from grader.feedback import explanation

QUICK = Limits(cell_seconds=4, seconds=40)
RIGHT = """def case3(a, b, *, mesh):
    def go(p, q):
        return jax.lax.psum(p @ q, "x")
    return jax.shard_map(go, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P())(a, b)"""


@pytest.fixture(scope="module")
def small(root):
    """The lesson cut down to two exercises, so that a hand-in takes seconds."""
    nb = nbformat.read(root / "course/07_matmul/07_matmul.ipynb", 4)
    names = {"case3", "local_shapes"}
    _, imports = [k for k, c in enumerate(nb.cells) if c.cell_type == "code"][:2]
    rest = (c for c in nb.cells if c.metadata.get("answer") in names or checked(c) in names)
    nb.cells = [*nb.cells[: imports + 1], *rest]
    return nb


@pytest.fixture(scope="module")
def judge():
    judge = Judge(seconds=12)
    yield judge
    judge.close()


def hand_in(small, source):
    nb = nbformat.reads(nbformat.writes(small), 4)
    for cell in nb.cells:
        if cell.metadata.get("answer") == "case3":
            cell.source = source
    return nb


def graded(small, source, judge, limits=QUICK):
    done = grade_notebook(hand_in(small, source), Grading(small, 3, limits), judge, Store(None))
    nbformat.validate(done.notebook)
    for cell in done.notebook.cells:
        if checked(cell):  # what nbgrader reads: one number within the marks, and nothing on stderr
            *_, last = cell.outputs
            assert last.output_type == "execute_result"
            assert 0 <= float(last.data["text/plain"]) <= cell.metadata.nbgrader.points
            assert [o.output_type for o in cell.outputs] == ["display_data", "execute_result"]
    return {v.exercise: v for v in done.verdicts}, done.notebook


@pytest.mark.parametrize(
    "source, points, words",
    [
        (RIGHT, 4, ""),
        ("...", 0, "There is no `case3`"),
        ("import grader\ngrader.check = check = lambda *a: 4.0", 0, "There is no `case3`"),
        ("import warnings, sys\nwarnings.warn('hm')\nprint('x', file=sys.stderr)\n" + RIGHT, 4, ""),
        ("while True: pass", 0, "There is no `case3`"),
        ("import os; os._exit(0)", 0, "never reached"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", 0, "never reached"),
        ("raise SystemExit", 0, "There is no `case3`"),
        ("x = bytearray(40 << 30)\n" + RIGHT, 0, "There is no `case3`"),
        ("case3 = type('Odd', (), {'__call__': lambda *a, **k: exit()})()", 0, "SystemExit"),
    ],
    ids=["right", "starter", "forged", "warned", "endless", "left", "crashed", "exit", "memory", "odd"],
)
def test_one_notebook(small, judge, source, points, words):
    verdicts, _ = graded(small, source, judge)
    assert verdicts["case3"].points == points
    assert words in explanation(verdicts["case3"])


MEAN = RIGHT.replace("psum", "pmean")


def test_equal_programs_share_a_verdict_and_each_student_hears_her_own_line(small, judge, tmp_path):
    store, cards = Store(tmp_path), []
    for source in (MEAN, "# mine\n\n" + MEAN.replace("return jax.lax", "return  jax.lax")):
        done = grade_notebook(hand_in(small, source), Grading(small, 3, QUICK), judge, store)
        (seen,) = (v for v in done.verdicts if v.exercise == "case3")
        cards += [next(c.outputs[0].data for c in done.notebook.cells if checked(c) == "case3")]
        assert seen.mistake and seen.lines[0].text[seen.lines[0].start :] == 'jax.lax.pmean(p @ q, "x")'
    for card, number in zip(cards, (3, 5), strict=True):
        assert f", line {number} of your cell:" in card["text/html"]
        assert f", line {number} of your cell:" in card["text/plain"]
        assert "pmean(p @ q, &quot;x&quot;)</u></code>" in card["text/html"]
    assert len(list((tmp_path / "verdicts").rglob("*.gz"))) == len(exercises(small))


SHAPES = """# each device's part
local_shapes = {
    "A[I_X, J]": (4, 32),  "A[I, J_X]": (16, 8),   # as in the picture
    "A[I_X, J_Y]": (16, 4),
    "A[I_Y, J_X]": (8, 8), "A[I, J_XY]": (16, 4),
    "A[I, J]": (16, 32),
}"""


def test_a_row_of_a_table_that_is_wrong_is_shown_as_it_was_written(small, judge):
    nb = hand_in(small, RIGHT)
    for cell in nb.cells:
        if cell.metadata.get("answer") == "local_shapes":
            cell.source = SHAPES
    done = grade_notebook(nb, Grading(small, 3, QUICK), judge, Store(None))
    (seen,) = (v for v in done.verdicts if v.exercise == "local_shapes")
    (line,) = seen.lines
    assert (line.number, line.text, line.text[line.start : line.end]) == (4, '"A[I_X, J_Y]": (16, 4),', "(16, 4)")


def exercises(nb):
    return [name for cell in nb.cells if (name := checked(cell))]


def test_a_hand_in_without_the_first_cell_that_the_build_writes_is_graded_alike(small, judge):
    """As lessons were before there was one, and as they are where a student has deleted it."""
    older = nbformat.from_dict(small)
    older.cells = [cell for cell in bare(older).cells if cell.cell_type == "code"]
    verdicts, _ = graded(older, RIGHT, judge)
    assert verdicts["case3"].points == 4
    older.cells[0].source = "import grader\n\ngrader.eight_devices()\n\n" + older.cells[0].source
    verdicts, _ = graded(older, RIGHT, judge)
    assert verdicts["case3"].points == 4


def test_what_was_answered_before_a_hang_is_kept(small, judge):
    """C code that no signal interrupts; only SIGKILL ends it."""
    nb = hand_in(small, RIGHT)
    stuck = "import ctypes; ctypes.CDLL(None).pause() or ctypes.CDLL(None).sleep(999)"
    nb.cells.append(nbformat.v4.new_code_cell(stuck))
    done = grade_notebook(nb, Grading(small, 3, Limits(cell_seconds=999, seconds=8)), judge, Store(None))
    assert {v.exercise: v.points for v in done.verdicts}["case3"] == 4


def test_a_hundred_megabytes_of_print_are_cut(small, judge):
    much = "print('x' * 100_000_000)\nfor _ in range(10): print('y' * 10_000_000)\n"
    verdicts, nb = graded(small, much + RIGHT, judge)
    assert verdicts["case3"].points == 4
    text = nbformat.writes(nb)
    assert len(text) < 2_000_000 and "The rest is left out" in text


def test_what_cells_show_is_kept(small, judge):
    shown = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint('said')\n" + RIGHT + "\n1 + 1"
    _, nb = graded(small, shown, judge)
    cell = next(c for c in nb.cells if c.metadata.get("answer") == "case3")
    kinds = {o.output_type for o in cell.outputs}
    assert {"stream", "execute_result", "display_data"} <= kinds
    assert any("image/png" in o.get("data", {}) for o in cell.outputs)


@pytest.fixture(scope="module")
def class_folder(root, tmp_path_factory, small):
    """A course with the small lesson and a class of good and broken hand-ins, graded once."""
    folder = tmp_path_factory.mktemp("class")
    for settings in ("nbgrader_config.py", "pyproject.toml"):
        shutil.copy(root / settings, folder)
    source = nbformat.read(root / "solutions/07_matmul/07_matmul.ipynb", 4)
    keep = {c.id for c in small.cells}
    import jupytext

    source.cells = [c for c in source.cells if c.id in keep]
    for cell in source.cells:
        cell.metadata = {k: v for k, v in cell.metadata.items() if k in ("answer", "check")}
    lesson = folder / "solutions/07_matmul"
    lesson.mkdir(parents=True)
    jupytext.write(source, lesson / "07_matmul.md", fmt="md:myst")

    def submit(student, text, name="07_matmul.ipynb"):
        file = folder / "submitted" / student / "07_matmul" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    from grader.classroom.course.build import build

    (release,) = build(folder)
    untouched = nbformat.read(release, 4)
    good = hand_in(untouched, RIGHT)
    submit("good", nbformat.writes(good))
    submit("untouched", nbformat.writes(untouched))
    submit("renamed", nbformat.writes(good), name="my homework.ipynb")
    submit("garbage", "this is not JSON")
    submit("binary", "\x00\x01")
    submit("empty", "")
    submit("two", nbformat.writes(good), name="a.ipynb")
    submit("two", nbformat.writes(good), name="b.ipynb")
    doubled = nbformat.reads(nbformat.writes(good), 4)
    doubled.cells += [nbformat.from_dict({**c, "id": f"again{k}"}) for k, c in enumerate(doubled.cells) if checked(c)]
    submit("doubled", nbformat.writes(doubled))
    deleted = nbformat.reads(nbformat.writes(good), 4)
    deleted.cells = [c for c in deleted.cells if not checked(c)]
    submit("deleted", nbformat.writes(deleted))
    old = nbformat.reads(nbformat.writes(good), 4)
    for cell in old.cells:
        cell.metadata["nbgrader"] = {"schema_version": 1, "grade_id": "check_case3", "points": 1000, "grade": True}
    submit("oldmarks", nbformat.writes(old))
    rows = grade_class(folder, Console(quiet=True))
    return folder, {row.hand_in.student: row for row in rows}


def test_each_gets_marks_or_a_clear_word(class_folder):
    _, rows = class_folder
    assert {s: r.points.get("case3") for s, r in rows.items()} == {
        "good": 4,
        "untouched": 0,
        "doubled": 4,
        "deleted": 4,
        "renamed": 4,
        "oldmarks": 4,
        "garbage": None,
        "binary": None,
        "empty": None,
        "two": None,
    }
    assert "07_matmul.ipynb is empty" in rows["empty"].problem
    assert "Which of these is the hand-in? a.ipynb, b.ipynb" in rows["two"].problem
    assert "is not a notebook" in rows["garbage"].problem and "is not a notebook" in rows["binary"].problem


def test_gradebook_csv_and_feedback_agree(class_folder):
    folder, rows = class_folder
    with sqlite3.connect(folder / "gradebook.db") as book:
        assert book.execute("select count(*) from submitted_assignment").fetchone()[0] == 6
    table = (folder / "grades.csv").read_text().splitlines()
    assert len(table) == 1 + len(rows) and table[0].startswith("student,lesson,points,max,")
    page = (folder / "feedback/untouched/07_matmul/07_matmul.html").read_text()
    assert "border-left:4px solid" in page and "is still the starter" in page
    assert list(rows["good"].points) == ["case3", "local_shapes"]


def test_what_has_not_changed_is_not_graded_again(class_folder):
    folder, _ = class_folder
    before = (folder / "autograded/good/07_matmul/07_matmul.ipynb").stat().st_mtime_ns
    grade_class(folder, Console(quiet=True), Options(workers=1))
    assert (folder / "autograded/good/07_matmul/07_matmul.ipynb").stat().st_mtime_ns == before


@taking_turns(2, LONG)
def test_nbgraders_own_command_uses_our_execute(class_folder):
    """What Formgrader's button runs, too. Broken hand-ins are told of, and stop nobody else's."""
    import subprocess
    import sys
    from pathlib import Path

    folder, _ = class_folder
    shutil.rmtree(folder / "autograded")
    done = subprocess.run(
        [str(Path(sys.executable).parent / "nbgrader"), "autograde", "07_matmul"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 1 and "'garbage'" in done.stderr
    assert {p.parts[-3] for p in folder.glob("autograded/*/*/07_matmul.ipynb")} == {
        "good",
        "untouched",
        "renamed",
        "doubled",
        "deleted",
        "oldmarks",
    }
    nb = nbformat.read(folder / "autograded/good/07_matmul/07_matmul.ipynb", 4)
    records = [json.dumps(o.metadata) for c in nb.cells if checked(c) for o in c.outputs if o.get("metadata")]
    assert len(records) == 2 and all("grader" in r for r in records)
