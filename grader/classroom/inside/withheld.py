"""What stands in the place of the lessons where students' code runs: no references, no cases, no mistakes."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import NoReturn


class _Withheld(MetaPathFinder):
    """Says why a lesson's own modules are not there."""

    def find_spec(self, name: str, *_: object) -> None:
        if name.startswith(f"{__name__}."):
            raise ModuleNotFoundError(
                f"{name} holds what answers are held against, so it is not there while hand-ins "
                "are graded. In your own notebook it is.",
                name=name,
            )


sys.meta_path.insert(0, _Withheld())
EXERCISES: dict[str, object] = {}


def find(name: str) -> NoReturn:
    raise LookupError(
        f"{name!r} is judged after this notebook has run, and by somebody else: a check that you call "
        "yourself says nothing while hand-ins are graded."
    )
