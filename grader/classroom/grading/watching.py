"""What goes with a graded answer's card: the replay of a wrong one, made behind the walls; for a right one, a line.

The replay is read as a stranger's text: its facts are plain types of limited size or none at all. They lie in the card
as data, which no browser runs, beside a strip of still pictures. On a feedback page a script of ours, the only one that
the page's policy allows, draws them (`page`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from grader.classroom.course.cells import Cell
from grader.classroom.grading.cards import is_watched
from grader.classroom.runs.run import Setup, Watched, watch_answers
from grader.classroom.verdicts.records import Judged
from grader.exercises.as_json import LEGIBLE
from grader.exercises.case import Case
from grader.exercises.codecs import FLAG, Codec, optional, plain_type, refusing, tuple_of
from grader.exercises.small import small_like
from grader.exercises.verdict import Verdict
from grader.judging.describing import describe
from grader.lessons import find
from grader.palette import COLOURS
from grader.replays.facts import MOST_FACTS, PageFacts
from grader.replays.lockstep import Reach
from grader.replays.page import as_data
from grader.wording import in_short

MOST_WATCHED = 64  # devices


def offering_replays(judged: Mapping[str, Judged], cells: Sequence[Cell], setup: Setup) -> Mapping[str, Judged]:
    """The verdicts on a hand-in's exercises, the wrong ones with a replay of the answer if there is something to watch.

    One run makes the replays of all.
    """
    missed = {name: seen for name, one in judged.items() if (seen := _small_failing(one.verdict, setup))}
    reported = watch_answers(cells, missed, setup)
    replays = {name: embedded(reported.get(name), name, _about(seen.case)) for name, seen in missed.items()}
    return {**judged, **{name: replace(judged[name], replay=replay) for name, replay in replays.items()}}


def _small_failing(verdict: Verdict, setup: Setup) -> Watched | None:
    """The failing case once more, with little data; None if nothing failed or is to be watched, or there is no such."""
    if not is_watched(verdict):
        return None
    exercise, failure = find(verdict.exercise), verdict.failure
    cases = exercise.draw_cases(setup.seed, thorough=True)
    failing = cases[verdict.failing] if verdict.failing is not None and verdict.failing < len(cases) else None
    if verdict.passed or failing is None or failure is None or (small := small_like(exercise, failing)) is None:
        return None
    return Watched(small, failure.check)


def _about(case: Case) -> str:
    return f"On the same mesh, with little data: {in_short(describe(case))}"


def embedded(reported: Any, title: str, about: str) -> str:
    """A replay as HTML that runs nothing by itself, from facts that a worker reports; "" where they are none."""
    try:
        facts = {**_FACTS.read(reported), "title": title, "about": about}
        return html if len(html := as_data(facts)) < 2 * MOST_FACTS else ""
    except (ValueError, LookupError, TypeError):
        return ""


def _object(**fields: Codec[Any]) -> Codec[PageFacts]:
    @refusing
    def read(body: Any) -> PageFacts:
        if not isinstance(body, dict) or not fields.keys() >= body.keys():
            raise ValueError("it has other fields")
        return {name: fields[name].read(part) for name, part in body.items()}

    return Codec(dict, read)


def _pair(first: Codec[Any], second: Codec[Any]) -> Codec[Any]:
    return Codec(list, lambda body: [first.read(body[0]), second.read(body[1])])


def _up_to(most: int) -> Codec[int]:
    return plain_type(int, lambda number: 0 <= number < most)


def _several(entry: Codec[Any], most: int) -> Codec[Any]:
    several = tuple_of(entry)

    def read(body: Any) -> Any:
        if not isinstance(body, list) or len(body) > most:
            raise ValueError("no list, or too long a one")
        return several.read(body)

    return Codec(several.write, read)


def _mesh(body: Any) -> Any:
    sizes = _several(_pair(_TEXT, _up_to(MOST_WATCHED + 1)), 8).read(body)
    if not 0 < math.prod(size for _, size in sizes) <= MOST_WATCHED:
        raise ValueError("too many devices, or none")
    return sizes


def _by_device(body: Any) -> Mapping[str, Any]:
    pieces = _several(_up_to(len(COLOURS)), MOST_WATCHED)
    return {str(_DEVICE.read(int(device))): pieces.read(colours) for device, colours in body.items()}


def _stripes(body: Any) -> Any:
    along, sources, length = body
    if along not in ("rows", "columns") or not all((found := _by_device(sources)).values()):
        raise ValueError("no stripes")
    return [along, found, plain_type(int, lambda number: 0 < number < _MANY).read(length)]


_MANY = 1 << 40  # bytes, lines, lengths
_TEXT = Codec(str, lambda body: LEGIBLE.read(plain_type(str, lambda text: len(text) <= 10_000).read(body)))
_NUMBER, _DEVICE = _up_to(_MANY), _up_to(MOST_WATCHED)
_DEVICES, _NAMES = _several(_DEVICE, MOST_WATCHED), _several(_TEXT, MOST_WATCHED)
_PLACE = _pair(_NUMBER, _NUMBER)
_HELD = _object(
    name=_TEXT,
    blocks=_several(optional(_NUMBER), MOST_WATCHED),
    colours=_several(optional(_up_to(len(COLOURS))), MOST_WATCHED),
    stripes=Codec(list, refusing(_stripes)),
)
_WAIT = _object(device=_DEVICE, name=_TEXT, axes=_TEXT, line=_NUMBER, at=optional(_PLACE), missing=_DEVICES)
_FRAME = _object(
    mesh=_NUMBER,
    stack=_several(_PLACE, 100),
    columns=_PLACE,
    operation=_TEXT,
    arrays=_several(_HELD, 8),
    here=_DEVICES,
    scopes=_NAMES,
    backward=FLAG,
    note=_TEXT,
    transfer=optional(
        _object(
            name=_TEXT,
            axes=_NAMES,
            groups=_several(_DEVICES, MOST_WATCHED),
            bytes=_NUMBER,
            moves=_several(_pair(_DEVICE, _DEVICE), MOST_WATCHED**2),
            operand=_HELD,
        )
    ),
    waits=_several(_WAIT, MOST_WATCHED),
)
_BLOCK = _object(type=_TEXT, rows=_several(_several(_TEXT, 8), 6), wide=FLAG, high=FLAG, range=_TEXT)
_FACTS = _object(
    title=_TEXT,
    about=_TEXT,
    ended=_TEXT,
    start=_NUMBER,
    meshes=_several(Codec(list, refusing(_mesh)), 20),
    excerpts=_several(_object(file=_TEXT, first=_NUMBER, lines=_several(_TEXT, 1_000)), 50),
    pool=_several(_BLOCK, 100_000),
    frames=_several(_FRAME, Reach().frames + 1),
)
