"""Notebooks and zips as hand-ins hold them, for the tests of what reads them."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from grader.classroom.handins.archive import Unreadable

CELL = {"cell_type": "code", "source": "x = 1", "metadata": {}, "outputs": [], "execution_count": None}
NB = {"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def text(nb=NB, indent=None, **changes) -> str:
    """A notebook as the text of its file."""
    return json.dumps({**nb, **changes}, indent=indent)


def cell(**changes) -> str:
    """The same with one cell, and something odd about it."""
    return text(cells=[{**CELL, **changes}])


def packed(files) -> bytes:
    """A zip of files; a name may be a ZipInfo."""
    with zipfile.ZipFile(box := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in dict(files).items():
            archive.writestr(name, content, zipfile.ZIP_DEFLATED)
    return box.getvalue()


def why(call, *arguments) -> str:
    """What an Unreadable says: one line, and not a long one."""
    with pytest.raises(Unreadable) as problem:
        call(*arguments)
    said = str(problem.value)
    assert "\n" not in said and len(said) < 500
    return said


def everything(folder) -> dict[str, bytes]:
    """All files under a folder, links apart."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not p.is_symlink()
    }
