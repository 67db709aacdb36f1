"""What stands in the place of `grader.lessons` where students' code runs: no references, no cases, no mistakes."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import NoReturn


class _Withheld(MetaPathFinder):
    """Says why the modules that declare a lesson's exercises are not there."""

    def find_spec(self, name: str, *_: object) -> None:
        if name.startswith(f"{__name__}."):
            raise ModuleNotFoundError(
                f"{name} holds what answers are held against, so it is not there while hand-ins "
                "are graded. In your own notebook it is.",
                name=name,
            )


sys.meta_path.append(_Withheld())  # the last that is asked: reviews and pictures are there
EXERCISES: dict[str, object] = {}
OLD_NAMES: dict[str, str] = {}


def find(name: str) -> NoReturn:
    raise LookupError(
        f"{name!r} is judged after this notebook has run, and by somebody else: a check that you call "
        "yourself says nothing while hand-ins are graded."
    )
