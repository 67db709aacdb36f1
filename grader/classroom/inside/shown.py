"""What of the grader is there behind the walls: folders decide, and no list of files.

The same files are in the key under which a run is kept, so that a run is done again when any of them changes. Of a
lesson's own files only the pictures are, where cells draw them: a question of a review decides nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
# Not there: references, cases and mistakes; what trains by them; the judge, what explains and what words its verdicts
# (so nothing is run again for a sentence); the instructor's side.
WITHHELD = (
    "lessons",
    "judging",
    "explaining",
    "wording",
    "feedback.py",
    "classroom",
    "certificate.py",
    "cli.py",
    "__main__.py",
)
OF_A_LESSON = ("__init__.py", "review.py", "pictures")  # which cells of notebooks use; all else of it is withheld
INSIDE = ("classroom/__init__.py", "classroom/inside")  # of the instructor's side, what runs behind the walls
STAND_IN = PACKAGE / "classroom/inside/withheld.py"  # what stands in the place of the lessons


@functools.cache  # it is part of every key: fifty times for a hand-in
def shown() -> tuple[Path, ...]:
    """The files and folders of the package that students' code sees."""
    patterns = (*WITHHELD, *INSIDE, *(f"lessons/*/{name}" for name in OF_A_LESSON))
    if missing := [name for name in patterns if not any(PACKAGE.glob(name))]:
        raise FileNotFoundError(f"{', '.join(missing)}: moved, or renamed? Say so in {Path(__file__).name}.")
    return (*_on_their_side(), *(PACKAGE / name for name in INSIDE))


@functools.cache
def common() -> tuple[Path, ...]:
    """The same, without what is a lesson's own."""
    return tuple(place for place in shown() if PACKAGE / "lessons" not in place.parents)


def _on_their_side() -> list[Path]:
    """What lies at the top of the package and is not withheld, and what is shown of each lesson."""
    rooms = (place for place in PACKAGE.iterdir() if place.name not in (*WITHHELD, "__pycache__"))
    return sorted([*rooms, *(place for name in OF_A_LESSON for place in PACKAGE.glob(f"lessons/*/{name}"))])


def files(*places: Path) -> Iterator[Path]:
    """All files in these places, in order. A place without any is an error: a key would not depend on it."""
    for place in places:
        inside = [place] if place.is_file() else sorted(filter(_is_source, place.rglob("*")))
        if not inside:
            raise FileNotFoundError(f"There is no file in {place}.")
        yield from inside


def _is_source(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def modules() -> Iterator[str]:
    """The names of all modules on the students' side: what a hand-in may import, or call."""
    for file in files(*_on_their_side()):
        if file.suffix == ".py":
            yield ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
