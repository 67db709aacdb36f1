"""Whatever a file holds, it is read, or a sentence says why not; and it is never changed."""

from __future__ import annotations

import json
import os
import pathlib

import nbformat
import pytest
from handins import CELL, NB, cell, text, why

from grader.classroom.handins.reading import read

NAME = "07_matmul.ipynb"
OLD = {
    "metadata": {"name": ""},
    "nbformat": 3,
    "nbformat_minor": 0,
    "worksheets": [
        {
            "metadata": {},
            "cells": [
                {"cell_type": "heading", "level": 2, "source": "Title", "metadata": {}},
                {
                    "cell_type": "code",
                    "input": ["x = 1\n", "y"],
                    "language": "python",
                    "collapsed": False,
                    "metadata": {},
                    "outputs": [{"output_type": "pyout"}],
                },
            ],
        }
    ],
}


@pytest.fixture
def put(tmp_path):
    def write(content):
        (tmp_path / NAME).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / NAME

    return write


# What is read.


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
def test_every_encoding_that_is_certain(put, encoding):
    file = put(json.dumps({**NB, "cells": [{**CELL, "source": "café = '数'"}]}, ensure_ascii=False).encode(encoding))
    before = file.read_bytes()
    assert read(file).cells[0].source == "café = '数'"
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "content, sources",
    [
        (cell(source=["x = 1\n", "y"]), ["x = 1\ny"]),
        (text(OLD), ["## Title", "x = 1\ny"]),
        (text(OLD, nbformat=2).replace("1\\n", "1"), ["## Title", "x = 1\ny"]),  # then without the newlines
        (text(nbformat_minor=99), ["x = 1"]),
        (text(cells=[{**CELL, "id": "same"}, {**CELL, "id": "same"}, {**CELL, "id": 7}]), ["x = 1"] * 3),
        (text(cells=[]), []),
        (cell(outputs="none", execution_count=[], metadata=[]), ["x = 1"]),
        (cell(cell_type="sql"), ["x = 1"]),
        (cell(source="'\ud800'"), ["'?'"]),
        (text(metadata=[]), ["x = 1"]),
        (
            text(
                metadata={"colab": {"provenance": []}, "accelerator": "TPU", "kernelspec": {"name": "conda-env-foo-py"}}
            ),
            ["x = 1"],
        ),
        (cell(metadata={"id": "aBc", "outputId": "1-2", "nbgrader": {"grade_id": "a", "odd": [[[]]]}}), ["x = 1"]),
        (text(metadata={"kernelspec": {"name": "python2", "language": "python"}}), ["x = 1"]),
        (text()[:-1] + ', "z": ' + "[" * 800 + "]" * 800 + "}", ["x = 1"]),
    ],
    ids=[
        "lines",
        "v3",
        "v2",
        "minor",
        "ids",
        "no-cells",
        "types",
        "kind",
        "surrogate",
        "metadata",
        "colab",
        "cell-colab",
        "python2",
        "nested",
    ],
)
def test_what_is_odd_is_read(put, content, sources):
    nb = read(put(content))
    nbformat.validate(nb)
    assert [c.source for c in nb.cells] == sources
    assert len({c.id for c in nb.cells}) == len(sources)
    nbformat.writes(nb).encode()


def test_names_of_marked_cells_are_kept(put):
    nb = read(put(cell(metadata={"nbgrader": {"grade_id": "check_case3", "grade": True}})))
    assert nb.cells[0].metadata.nbgrader == {"grade_id": "check_case3", "grade": True}


def test_pictures_stay_and_links_to_missing_ones_do_not_stop_the_feedback(put):
    nb = read(
        put(
            cell(
                cell_type="markdown",
                source="![](attachment:a.png) ![](attachment:b.png)",
                attachments={"a.png": {"image/png": "AA=="}, "c": 7},
            )
        )
    )
    assert nb.cells[0].source == "![](attachment:a.png) ![](missing:b.png)"
    assert list(nb.cells[0].attachments) == ["a.png"]


def test_outputs_of_any_size_are_left_behind(put):
    nb = read(put(cell(outputs=[{"output_type": "stream", "name": "stdout", "text": "x" * 45_000_000}])))
    assert nb.cells[0].outputs == []


def test_two_thousand_cells(put):
    assert len(read(put(text(cells=[CELL] * 2_000))).cells) == 2_000


def test_outputs_with_millions_of_commas(put):
    printed = {"output_type": "stream", "name": "stdout", "text": '"1.0, \\' * 2_000_000}
    assert len(read(put(cell(outputs=[printed]))).cells) == 1


def test_of_an_endless_text_the_end_is_left_out(put):
    for kind in ("markdown", "raw"):
        (read_cell,) = read(put(cell(cell_type=kind, source="x" * 2_000_000))).cells
        assert read_cell.source == "x" * 20_000 + "\n\n(1,980,000 characters more are left out.)"


def test_marks_are_plain_and_nbgraders_own(put):
    marks = {"grade_id": "a\ud800", "points": float("nan"), "grade": True, "checksum": "x" * 2_000, "mine": 1}
    nb = read(put(cell(metadata={"nbgrader": {**marks, "schema_version": 10**400, "locked": None}})))
    assert nb.cells[0].metadata.nbgrader == {"grade_id": "a?", "grade": True, "locked": None}


def test_pictures_are_pictures(put):
    pictures = {
        "a.png": {"image/png": "AA=="},
        "b.svg": {"image/svg+xml": "AA=="},
        "c.html": {"text/html": "<b>"},
        "d.png": {"image/png": "AA', onerror='x"},
        "e.png": {},
    }
    nb = read(put(cell(cell_type="markdown", source="", attachments=pictures)))
    assert list(nb.cells[0].attachments) == ["a.png"]
    pasted = {"a.png": {"image/png": "A" * 20_000_001}}
    assert "1 pictures of 20 MB pasted" in why(read, put(cell(cell_type="markdown", source="", attachments=pasted)))


# What is not read, and the words.


@pytest.mark.parametrize(
    "content, words",
    [
        ("", "is empty. Ask for the saved notebook"),
        (b"\0" * 1000, "is empty: 1,000 bytes that say nothing"),
        (text().replace("x = 1", "x\0"), "Invalid control character"),
        (cell(source="é").encode().replace(b"\\u00e9", b"\xe9"), "is not UTF-8 text, as a notebook is: see byte"),
        (text(indent=1)[:60], "it stops in the middle, in line 5"),
        (text(indent=1)[:-3], "it stops in the middle, in line 13"),
        ("this is not JSON", "JSON is due, and line 1 is “this is not JSON”"),
        (text(indent=1).replace(' "metadata"', '<<<<<<< HEAD\n "metadata"', 1), "“<<<<<<< HEAD”"),
        ("<!DOCTYPE html>", "is a web page under a notebook's name"),
        ("%PDF-1.7", "is a PDF under a notebook's name"),
        ("[]", "is JSON, but no notebook: a list"),
        ("3", "is JSON, but no notebook: a number"),
        ("{}", "it has no list of cells"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"a":' * 100_000, "is nested too deeply"),
        ("1" * 10_000, "Exceeds the limit"),
        (text(nbformat=5), "is in version 5 of the notebook format; up to 4 are known"),
        (text(nbformat=10**4000), "is in version 100"),
        (text(OLD, worksheets=[3]), "is in an old version of the notebook format, and damaged"),
        (text(cells=[CELL, 3]), "cell 2 is a number, so it is none"),
        (text(cells=[{}]), "cell 1 has no cell_type"),
        (cell(source=7), "the source of cell 1 is a number"),
        (text(cells=[CELL] * 2_001), "has 2,001 cells; at most 2,000 are graded"),
        (text(OLD, worksheets=[{"cells": [CELL] * 2_001}]), "has 2,001 cells; at most 2,000 are graded"),
        (cell(source="x" * 1_000_001), "has 1,000,001 characters in its cells"),
        ("[" + "1," * 1_000_001 + "1]", "holds 1,000,002 values"),
        ("[" + "{}," * 500_000 + "1]", "holds 1,000,001 values"),
        ("[" + '"",' * 1_000_001 + "1]", "holds 1,000,002 values"),
        (
            text(metadata={"kernelspec": {"name": "ir", "language": "R"}}),
            "is a notebook for R; this course is in Python",
        ),
        (text(metadata={"kernelspec": {"name": "julia-1.10"}}), "is a notebook for Julia"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 90 and value.isprintable() else "-",
)
def test_what_is_not_read(put, content, words):
    said = why(read, put(content))
    assert words in said and said.startswith(NAME)


def test_what_is_too_big_is_not_even_opened(put):
    file = put(text())
    os.truncate(file, 51_000_000)  # a sparse file: it takes no room
    assert "is 51 MB; at most 50 MB are read" in why(read, file)


def test_what_is_no_file(tmp_path, put, monkeypatch):
    (tmp_path / "folder.ipynb").mkdir()
    assert "is a folder" in why(read, tmp_path / "folder.ipynb")
    os.mkfifo(tmp_path / "pipe.ipynb")
    assert "is a device" in why(read, tmp_path / "pipe.ipynb")
    assert "cannot be read: No such file" in why(read, tmp_path / "none.ipynb")
    (tmp_path / "circle.ipynb").symlink_to("circle.ipynb")
    assert "cannot be read" in why(read, tmp_path / "circle.ipynb")
    file = put(text())

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pathlib.Path, "read_bytes", refuse)  # root may read everything
    assert "may not be read by you" in why(read, file)
