"""Which lesson needs which: in words, and as a picture that is legible on a light and on a dark page."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from grader.guide.syllabus import LessonText

WIDTH, HEIGHT = 180, 32  # of a box
ACROSS, DOWN = 196, 60  # from one box to the next
BOX, WRITING, LINE = "#d7e3f4", "#14233a", "#7c8798"  # a line of this grey has a contrast of 3 and more on both

Needs = Mapping[str, Sequence[str]]


def in_words(lessons: Sequence[LessonText]) -> str:
    """The picture for those who do not see it."""
    parts = [f"{number} needs {' and '.join(first)}" for number, first in nearest(lessons).items() if first]
    return f"Which lesson needs which: {'; '.join(parts)}."


def nearest(lessons: Sequence[LessonText]) -> dict[str, list[str]]:
    """What each lesson needs, by number, without what another one that it needs does need itself."""
    needs: Needs = {lesson.number: lesson.needs for lesson in lessons}
    return {number: _nearest(number, needs) for number in needs}


def _nearest(number: str, needs: Needs) -> list[str]:
    there = [first for first in needs[number] if first in needs]
    implied = set().union(*(_all_before(first, needs) for first in there))
    return [first for first in there if first not in implied]


def _all_before(number: str, needs: Needs) -> set[str]:
    there = [first for first in needs[number] if first in needs and first < number]
    return set(there).union(*(_all_before(first, needs) for first in there))


def places(needs: Needs) -> dict[str, tuple[int, int]]:
    """The row and the column of each lesson: below all that it needs, and where that is free, under one of them."""
    rows: dict[str, int] = {}
    for number in sorted(needs):
        rows[number] = max((rows[first] + 1 for first in needs[number]), default=0)
    columns: dict[str, int] = {}
    for row in range(max(rows.values(), default=-1) + 1):
        free = 0
        for number in sorted((n for n in rows if rows[n] == row), key=lambda n: (_above(n, needs, columns), n)):
            columns[number] = max(free, _above(number, needs, columns))
            free = columns[number] + 1
    return {number: (rows[number], columns[number]) for number in rows}


def _above(number: str, needs: Needs, columns: Mapping[str, int]) -> int:
    return min((columns[first] for first in needs[number]), default=0)


def picture(lessons: Sequence[LessonText]) -> str:
    """The lessons as boxes, each below those that it needs, as SVG."""
    needs = nearest(lessons)
    corner = {number: (8 + column * ACROSS, 8 + row * DOWN) for number, (row, column) in places(needs).items()}
    lines = [_line(corner[first], corner[number]) for number in needs for first in needs[number]]
    boxes = [_box(corner[lesson.number], lesson) for lesson in lessons]
    width = max((x for x, _ in corner.values()), default=0) + WIDTH + 8
    height = max((y for _, y in corner.values()), default=0) + HEIGHT + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="13">{"".join(lines + boxes)}</svg>'
    )


def _line(above: tuple[int, int], below: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = above, below
    path = f"M{x1 + WIDTH // 2} {y1 + HEIGHT}L{x2 + WIDTH // 2} {y2}"
    return f'<path d="{path}" stroke="{LINE}" stroke-width="2"/>'


def _box(corner: tuple[int, int], lesson: LessonText) -> str:
    x, y = corner
    topic = html.escape(lesson.name.partition("_")[2].replace("_", " "))
    label = f'<tspan font-weight="bold">{lesson.number}</tspan> {topic}'
    return (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="{BOX}" stroke="{LINE}"/>'
        f'<text x="{x + 10}" y="{y + 21}" fill="{WRITING}">{label}</text>'
    )
