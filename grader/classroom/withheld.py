"""What stands in the place of the lessons where students' code runs: no references, no cases, no mistakes."""

from __future__ import annotations

from typing import NoReturn

EXERCISES: dict[str, object] = {}


def find(name: str) -> NoReturn:
    raise LookupError(f"{name!r} is judged after this notebook has run, and by somebody else: a check that you call "
                      "yourself says nothing while hand-ins are graded.")
