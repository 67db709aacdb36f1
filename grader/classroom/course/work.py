"""course/ -> work/: the student's own copy of the lessons, filled once, and merged when a lesson changes.

`course/` belongs to the build. A student works in `work/`, which git ignores. What she wrote always stays: her answers,
her changes to a worked example, her own cells and files. What has changed in the lesson comes in around them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from pathlib import Path

import nbformat
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelspec import KERNEL_NAME, get_kernel_dict
from nbformat import NotebookNode
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_markdown_cell

from grader.classroom.course.frame import links_in
from grader.classroom.course.notebook import checked, grade_id
from grader.classroom.store import write

WORK = "work"
BASE = ".lessons"  # in work/: the lessons as they were last brought in
BEFORE = ".before"  # in work/: what a merge has replaced
UNPAIRED = 'formats = "ipynb"\n'  # a student has one file for a lesson
NEW_STARTER = (
    "**The starter of this exercise has changed.** Yours, above, stays as it is. The new one:\n\n```python\n{}\n```"
)


@dataclass(frozen=True)
class Place:
    """One file of a lesson: in `course/`, in `work/`, and as it was last brought from the one to the other."""

    root: Path
    name: Path

    @property
    def released(self) -> Path:
        return self.root / "course" / self.name

    @property
    def mine(self) -> Path:
        return self.root / WORK / self.name

    @property
    def base(self) -> Path:
        return self.root / WORK / BASE / self.name


def fill(root: Path) -> Iterator[str]:
    """Bring the lessons of `course/` into `work/`; yields a line about each file that is new or was merged."""
    if not (settings := root / WORK / ".jupytext.toml").exists():
        write(settings, UNPAIRED.encode())
    course = root / "course"
    for released in [*course.glob("*.ipynb"), *sorted(course.glob("*/*"))]:
        if released.suffix != ".md" and released.is_file():
            place = Place(root, released.relative_to(root / "course"))
            if line := _brought(place):
                yield f"{WORK}/{place.name}: {line}"


def _brought(place: Place) -> str:
    """Bring one file up to date; returns what was done, "" for nothing."""
    fresh = place.released.read_bytes()
    if not place.mine.exists():
        _save(place, _written(nbformat.reads(fresh.decode(), 4)) if place.name.suffix == ".ipynb" else fresh)
        return "new"
    if place.base.exists() and place.base.read_bytes() == fresh:
        return ""
    if place.name.suffix == ".ipynb":
        return _merge(place)
    if not place.base.exists() or place.base.read_bytes() != place.mine.read_bytes():
        beside = place.mine.with_name(f"{place.mine.stem}.released{place.mine.suffix}")
        write(beside, fresh)
        write(place.base, fresh)
        return f"has changed in the course; yours is as it was, and the new one lies beside it as {beside.name}"
    _save(place, fresh)
    return "updated"


def _save(place: Place, content: bytes) -> None:
    write(place.mine, content)
    write(place.base, place.released.read_bytes())


def _written(nb: NotebookNode) -> bytes:
    """The notebook as a file, with what the kernel of this machine says of itself.

    JupyterLab enters that when it opens a notebook, and calls the notebook changed where something else stood there.
    """
    spec = get_kernel_dict()
    kernel = {"name": KERNEL_NAME, "display_name": spec["display_name"], "language": spec["language"]}
    metadata = {**nb.metadata, "kernelspec": kernel, "language_info": IPythonKernel.language_info}
    return (nbformat.writes(nbformat.from_dict({**nb, "metadata": metadata})) + "\n").encode()


def _merge(place: Place) -> str:
    try:
        mine = nbformat.read(place.mine, 4)
    except Exception as error:  # nbformat raises of all sorts
        return f"cannot be read as a notebook ({type(error).__name__}), so it was left as it is"
    new = nbformat.read(place.released, 4)
    base = nbformat.read(place.base, 4) if place.base.exists() else new
    before = place.root / WORK / BEFORE / f"{datetime.now():%Y-%m-%d_%H%M%S}" / place.name
    before.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(place.mine, before)
    content = _written(merged(mine, base, new))
    _save(place, content)
    _keep_trust(mine, nbformat.reads(content.decode(), 4))
    if [cell.source for cell in mine.cells] == [cell.source for cell in base.cells]:
        return "updated"
    return f"the lesson has changed, and your work was merged into it (before: {before.relative_to(place.root)})"


def _keep_trust(before: NotebookNode, after: NotebookNode) -> None:
    """JupyterLab shows pictures and replays of a notebook that it trusts: one that it trusted, it trusts merged."""
    notary = NotebookNotary()
    if notary.check_signature(before):
        notary.sign(after)


def merged(mine: NotebookNode, base: NotebookNode, new: NotebookNode) -> NotebookNode:
    """The new lesson with all that a student wrote into the lesson `base`.

    A changed answer stays, with a changed starter beside it. A cell of her own, or one that she changed, stays behind
    the cell that it stood behind; in place of the one that she changed, unless the lesson has changed that, too.
    """
    starters = {grade_id(cell): cell.source for cell in base.cells}
    mine = _marked_once(mine, starters, new)
    theirs = {grade_id(cell): cell for cell in mine.cells if grade_id(cell)}
    built = {links for cell in (*base.cells, *new.cells) for links in links_in(cell.source)}
    own, replaced = _own_cells(mine, base, built)
    places = dict(_equal(base.cells, new.cells, built))
    behind: dict[int, list[NotebookNode]] = {}
    for anchor, cell in own:
        place = next((places[k] for k in range(anchor, -1, -1) if k in places), -1)
        behind.setdefault(place, []).append(cell)
    dropped = {places[k] for k in replaced if k in places}
    unchanged = {_key(cell, built): cell for cell in mine.cells if cell.cell_type == "code"}  # with its outputs
    cells = list(behind.get(-1, ()))
    for k, cell in enumerate(new.cells):
        name = grade_id(cell)
        if name in theirs and not checked(cell):
            cells += _answer(cell, theirs[name], starters.get(name, cell.source))
        elif k not in dropped:
            cells.append(unchanged.get(_key(cell, built), cell) if not name else cell)
        cells += behind.get(k, ())
    return nbformat.from_dict({**new, "cells": _with_own_ids(cells)})


def _answer(new: NotebookNode, mine: NotebookNode, starter: str) -> list[NotebookNode]:
    """The cell of an answer; behind it the new starter, where it differs from the one that the answer was made of."""
    if mine.source == starter:
        return [new]
    answer = nbformat.from_dict({**new, "source": mine.source, "outputs": mine.get("outputs", [])})
    if new.source in (starter, mine.source):
        return [answer]
    return [answer, new_markdown_cell(NEW_STARTER.format(new.source))]


def _marked_once(mine: NotebookNode, starters: Mapping[str, str], new: NotebookNode) -> NotebookNode:
    """The notebook with marks only on the cells that stand for one of the new lesson's.

    A copy of an answer, a check that she changed, and an answer to an exercise that is gone are cells of her own.
    """
    names = {grade_id(cell) for cell in new.cells}
    mine = nbformat.from_dict(mine)
    untouched = [cell.source == starters.get(grade_id(cell)) for cell in mine.cells]
    chosen: dict[str, int] = {}
    for k in sorted(range(len(mine.cells)), key=untouched.__getitem__):  # what she wrote goes first
        if grade_id(mine.cells[k]) in names and (untouched[k] or not checked(mine.cells[k])):
            chosen.setdefault(grade_id(mine.cells[k]), k)
    cells = []
    for k, cell in enumerate(mine.cells):
        if (name := grade_id(cell)) and chosen.get(name) != k:
            if untouched[k]:
                continue
            del cell.metadata["nbgrader"]
        cells.append(cell)
    return nbformat.from_dict({**mine, "cells": cells})


def _own_cells(
    mine: NotebookNode, base: NotebookNode, built: Set[str]
) -> tuple[list[tuple[int, NotebookNode]], set[int]]:
    """A student's own cells, each with the number of the base's cell that it stands behind; and the numbers of the
    base's cells in place of which she has one of her own."""
    own: list[tuple[int, NotebookNode]] = []
    replaced: set[int] = set()
    for kind, i, j, k, m in _matcher(base.cells, mine.cells, built).get_opcodes():
        cells = [cell for cell in mine.cells[k:m] if not grade_id(cell)]
        if kind in ("insert", "replace") and cells:
            instead = [n for n in range(i, j) if not grade_id(base.cells[n])][: len(cells)]
            replaced |= set(instead)
            anchors = instead or [j - 1]
            own += [(anchors[min(n, len(anchors) - 1)], cell) for n, cell in enumerate(cells)]
    return own, replaced


def _equal(one: Sequence[NotebookNode], other: Sequence[NotebookNode], built: Set[str]) -> Iterator[tuple[int, int]]:
    for block in _matcher(one, other, built).get_matching_blocks():
        yield from ((block.a + k, block.b + k) for k in range(block.size))


def _matcher(one: Sequence[NotebookNode], other: Sequence[NotebookNode], built: Set[str]) -> SequenceMatcher:
    keys = [[_key(cell, built) for cell in cells] for cells in (one, other)]
    return SequenceMatcher(None, keys[0], keys[1], autojunk=False)


def _key(cell: NotebookNode, built: Set[str]) -> tuple[str, str]:
    """What makes two cells the same one: an exercise's name, or else the text, but for the links that were built."""
    text = "\n\n".join(part for part in cell.source.split("\n\n") if part not in built)
    return ("marked", name) if (name := grade_id(cell)) else (cell.cell_type, text)


def _with_own_ids(cells: Sequence[NotebookNode]) -> list[NotebookNode]:
    """The cells, where two share an id the later one with another."""
    seen: set[str] = set()
    result = []
    for cell in cells:
        name, k = cell.get("id", "own"), 1
        while name in seen:
            k += 1
            name = f"{cell.get('id', 'own')[:56]}-{k}"
        seen.add(name)
        result.append(nbformat.from_dict({**cell, "id": name}))
    return result
