"""SECURITY.md names tests and files; they are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "SECURITY.md").read_text()
SHOWN_BY = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)))
PLACES = sorted(set(re.findall(r"`((?:tests|grader|bench)/[\w/.]*)`", TEXT)) | {"bench/attacks.py"})


def test_every_wall_has_a_test():
    rows = [line for line in TEXT.splitlines() if line.startswith("|")][2:]
    assert len(rows) >= 12
    assert [row for row in rows if "::test_" not in row] == []


@pytest.mark.parametrize(("file", "name"), SHOWN_BY)
def test_a_test_that_is_named_is_there(file, name):
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE)


@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_is_named_is_there(place):
    assert (ROOT / place).exists()


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md"])
def test_it_is_found(page):
    assert "(SECURITY.md)" in (ROOT / page).read_text()
