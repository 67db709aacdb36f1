"""Notebooks of any make: each is read as a notebook that all others can read, or refused in a line."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import fuzzing
import nbformat
from handins import CELL, NB, packed
from hypothesis import strategies as st

from grader.classroom.handins.archive import Unreadable
from grader.classroom.handins.reading import read

ODD = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.sampled_from(
        [10**400, float("nan"), float("inf"), -0.0, 1e308, "", "code", "\ud800", "\0", "a\nb", "\u202e", "x" * 30_000]
    )
    | st.text(max_size=5)
)
VALUES = st.recursive(
    ODD,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
MARKS = st.dictionaries(st.sampled_from(["grade_id", "grade", "points", "locked", "checksum", "other"]), VALUES)
CELLS = st.fixed_dictionaries(
    {},
    optional={
        "cell_type": st.sampled_from(["code", "markdown", "raw", "heading", "sql"]) | VALUES,
        "source": st.lists(st.text(max_size=9)) | VALUES,
        "input": st.lists(st.text(max_size=9)) | VALUES,
        "level": VALUES,
        "outputs": VALUES,
        "execution_count": VALUES,
        "id": VALUES,
        "metadata": st.fixed_dictionaries({"nbgrader": MARKS | VALUES}) | VALUES,
        "attachments": st.dictionaries(
            st.sampled_from(["a.png", "../b", "\ud800"]), st.fixed_dictionaries({"image/png": VALUES}) | VALUES
        )
        | VALUES,
    },
)
SHEETS = st.fixed_dictionaries({"cells": st.lists(CELLS | VALUES, max_size=4) | VALUES}, optional={"metadata": VALUES})
NOTEBOOKS = st.fixed_dictionaries(
    {},
    optional={
        "cells": st.lists(CELLS.map(lambda cell: {**CELL, **cell}) | CELLS | VALUES, max_size=4) | VALUES,
        "worksheets": st.lists(SHEETS | VALUES, max_size=2) | VALUES,
        "metadata": st.fixed_dictionaries({}, optional={"kernelspec": VALUES, "language_info": VALUES}) | VALUES,
        "nbformat": st.integers(0, 9) | VALUES,
        "nbformat_minor": VALUES,
    },
)
TEXTS = st.builds(
    lambda nb, indent, encoding: json.dumps(nb, indent=indent).encode(encoding),
    NOTEBOOKS | NOTEBOOKS.map(lambda nb: {**NB, **nb}) | VALUES,
    st.sampled_from([None, 1]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32-le"]),
)


def with_changes(data: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    """The same with some parts replaced by others."""
    for place, length, other in changes:
        at = place % (len(data) + 1)
        data = data[:at] + other + data[at + length :]
    return data


BITS = st.binary(max_size=4) | st.sampled_from(
    [
        b"{",
        b"[" * 2000,
        b'{"a":' * 2000,
        b"]",
        b",",
        b'"',
        b"\\",
        b"\\ud800",
        b"1" * 5000,
        b"1e999",
        b"NaN",
        b"\xff\xfe",
        b"\0",
        b"PK\3\4",
    ]
)
CHANGED = st.builds(with_changes, TEXTS, st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 9), BITS), max_size=3))


def is_read_or_refused(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "07_matmul.ipynb"
        file.write_bytes(data)
        try:
            nb = read(file)
        except Unreadable as problem:
            assert str(problem).isprintable() and len(str(problem)) < 600
            return
    nbformat.validate(nb)
    written = nbformat.writes(nb)
    assert nbformat.reads(written, 4) == nb
    written.encode()


def test_any_bytes_are_read_or_refused():
    fuzzing.fuzz("notebooks", st.binary(max_size=300), is_read_or_refused, seconds=1)


def test_any_notebook_is_read_or_refused():
    fuzzing.fuzz("notebooks", TEXTS | CHANGED | CHANGED.map(lambda data: packed({"x.ipynb": data})), is_read_or_refused)
