"""What grading would change, and what it needs of `.grading/`: hand-ins are run and judged, and nothing is written."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from grader.classroom.grading.clerks import Lost, by_clerks
from grader.classroom.grading.digest import digest
from grader.classroom.grading.execute import grade_notebook
from grader.classroom.grading.record import HandIn, Row, by_hand, material, recorded
from grader.classroom.handins.archive import Unreadable
from grader.classroom.store import DOUBTED, FOLDER, Store, Unavailable, key
from grader.classroom.verdicts.judge import shared_judge

PRUNED = ("runs", "verdicts", "pictures", DOUBTED)  # what can be made again


class Peeking(Store):
    """A store that reads what is kept, holds what is new in memory, and knows what was asked for."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.used: set[tuple[str, str]] = set()

    def get(self, kind: str, name: str) -> Any:
        self.used |= {(kind, name), (DOUBTED, key(kind, name))}
        return super().get(kind, name)

    def put(self, kind: str, name: str, result: Any) -> None:
        self.memory[kind, name] = result

    def doubt(self, kind: str, name: str, result: Any, sign: str) -> None:
        self.memory[kind, name] = result

    def seed(self, lesson: str, attempt: int = 0) -> int:
        drawn = self.folder and (self.folder / "seeds" / (f"{lesson}.{attempt}" if attempt else lesson)).exists()
        return super().seed(lesson, attempt) if drawn else Store.seed(_IN_MEMORY, lesson, attempt)


_IN_MEMORY = Store(None)


@dataclass(frozen=True)
class Preview:
    """A hand-in as it would be graded, and what that takes of the store."""

    row: Row
    used: frozenset[tuple[str, str]] = field(default_factory=frozenset)


def previews(hand_ins: Sequence[HandIn], workers: int, seconds: float) -> Iterator[Preview]:
    for hand_in, found in by_clerks(_preview, hand_ins, workers, seconds):
        yield Preview(Row(hand_in, problem=found.why)) if isinstance(found, Lost) else found


def _preview(hand_in: HandIn) -> Preview:
    store = _peeking(hand_in.root / FOLDER)
    store.used.clear()
    try:
        nb, grading = material(hand_in, store)
    except Unreadable as why:
        return Preview(Row(hand_in, problem=str(why)))
    verdicts = grade_notebook(nb, grading, shared_judge(), store).verdicts
    was = recorded(hand_in)
    stays = {name: was.points[name] for name in by_hand(hand_in)} if was else {}
    now = {verdict.exercise: verdict.points for verdict in verdicts} | stays
    row = replace(
        was or Row(hand_in), points=now, before=was.points if was else {}, digests=tuple(map(digest, verdicts))
    )
    return Preview(row, frozenset(store.used))


@functools.cache
def _peeking(folder: Path) -> Peeking:
    return Peeking(folder)


def prune(root: Path, hand_ins: Sequence[HandIn], workers: int, seconds: float) -> tuple[int, int]:
    """Remove what no hand-in uses any more; returns how many files, and how many bytes. Raises Unavailable."""
    used: set[tuple[str, str]] = set()
    for one in previews(hand_ins, workers, seconds):
        if one.row.problem and not one.used:
            where = f"{one.row.hand_in.student}, {one.row.hand_in.lesson}"
            raise Unavailable(f"{where}: {one.row.problem} Nothing was removed. Put that right, and run it again.")
        used |= one.used
    kept = {root / FOLDER / kind / name[:2] / f"{name}.json.gz" for kind, name in used}
    old = [f for kind in PRUNED for f in (root / FOLDER / kind).glob("*/*.json.gz") if f not in kept]
    size = sum(file.stat().st_size for file in old)
    for file in old:
        file.unlink()
    return len(old), size
