"""What of the grader is shown behind the walls: folders decide, and no list of files.

The same folders are in the key under which a run is kept, so whatever may change what a run says makes it run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
# Nothing of these: the references, cases and mistakes; the judge; the instructor's side.
WITHHELD = ("lessons", "judging", "classroom", "cli.py")
INSIDE = ("classroom/__init__.py", "classroom/inside")  # of the instructor's side, what runs behind the walls
STAND_IN = PACKAGE / "classroom/inside/withheld.py"  # what stands in the place of the lessons


def shown() -> list[Path]:
    """The files and folders of the package that students' code sees."""
    if missing := [name for name in (*WITHHELD, *INSIDE) if not (PACKAGE / name).exists()]:
        raise FileNotFoundError(f"{', '.join(missing)}: moved, or renamed? Say so in {Path(__file__).name}.")
    return [*_rooms(), *(PACKAGE / name for name in INSIDE)]


def _rooms() -> list[Path]:
    return sorted(p for p in PACKAGE.iterdir() if p.name not in WITHHELD and p.name != "__pycache__")


def files(*places: Path) -> Iterator[Path]:
    """All files in these places, in order; a place without any is an error, since nothing would then hang on it."""
    for place in places:
        inside = (
            [place]
            if place.is_file()
            else sorted(p for p in place.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        )
        if not inside:
            raise FileNotFoundError(f"There is no file in {place}.")
        yield from inside


def modules() -> Iterator[str]:
    """The names of the shown modules, but for what runs inside itself: what is to be imported before a run."""
    for file in files(*_rooms()):
        if file.suffix == ".py":
            parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
