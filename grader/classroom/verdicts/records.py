"""A verdict as JSON types: for the store of a course, and for the way from a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, get_args

from grader.arrays.ratios import Ratio
from grader.arrays.words import legible
from grader.classroom.inside.wire import ALL_ORIGINS, BLOCKS, COUNT, COUNTS, NAME, NAMES
from grader.exercises.as_json import from_json, to_json
from grader.exercises.codecs import FLAG, NUMBER, Codec, data_class, optional, plain_type, tuple_of
from grader.exercises.exercise import Exercise
from grader.exercises.verdict import Blamed, Outcome, Score, Verdict, Why, with_lines
from grader.findings import finding

LONGEST_WORDS = 40_000  # characters of one sentence of a verdict; an error of JAX may be long


@dataclass(frozen=True)
class Judged:
    """A verdict, and the replay of a wrong answer as HTML that runs nothing by itself, "" if there is none. A
    `doubtful` verdict may be the machine's fault: it was late, say."""

    verdict: Verdict
    replay: str = ""
    doubtful: bool = False


def with_own_lines(judged: Judged, origins: Callable[[], Any]) -> Judged:
    """A verdict with the student's own lines, from the origins of the answers that a worker reports; these are asked
    for if the verdict is about some of them.

    Equal answers share a verdict, and not their lines. Nobody believes what is reported: if it cannot be read, no lines
    are shown.
    """
    if judged.verdict.blamed is None:
        return judged
    try:
        return replace(judged, verdict=with_lines(judged.verdict, ALL_ORIGINS.read(origins())))
    except ValueError:
        return judged


def verdict_from(facts: Any, exercise: Exercise) -> Verdict:
    """The verdict on an answer to this exercise, from facts that a stranger sent. Raises ValueError."""
    verdict = VERDICT.read(facts)
    if {verdict.exercise, *(outcome.exercise for outcome in verdict.outcomes)} != {exercise.name}:
        raise ValueError(f"this is no verdict on {exercise.name}")
    for outcome in verdict.outcomes:
        if not 0 <= outcome.worth <= exercise.points or outcome.points != (outcome.worth if outcome.passed else 0):
            raise ValueError(f"{outcome.points} points for a check worth {outcome.worth}")
    if verdict.worth != round(exercise.points, 2):
        raise ValueError(f"a verdict worth {verdict.worth} points, where {exercise.points} are due")
    return verdict


def _number(body: Any) -> float:
    number = from_json(body)
    if type(number) not in (int, float):
        raise ValueError("not a number")
    return number


def _points(body: Any) -> float:
    if not math.isfinite(points := _number(body)):
        raise ValueError("no number of points")
    return points


RATIO_PART = Codec(to_json, _number)  # may be infinite, or no number
POINTS = Codec(to_json, _points)
WORDS = Codec(str, lambda body: legible(plain_type(str, lambda text: len(text) <= LONGEST_WORDS).read(body)))
FINDING = Codec(finding.finding_to_json, finding.finding_from_json)
OUTCOME = data_class(
    Outcome,
    exercise=NAME,
    check=WORDS,
    points=POINTS,
    worth=POINTS,
    passed=FLAG,
    tried=FLAG,
    mistake=WORDS,
    findings=tuple_of(FINDING),
    open=FLAG,
)
RATIO = data_class(Ratio, name=WORDS, least=RATIO_PART, most=RATIO_PART, apart=FLAG)
WHY = plain_type(str, get_args(Why).__contains__)
BLAMED = data_class(Blamed, case=COUNT, numbers=COUNTS, kinds=NAMES, why=WHY, others=COUNTS)
SCORE = data_class(Score, par=NUMBER, yours=NUMBER, compilers=NUMBER)
VERDICT = data_class(
    Verdict,
    exercise=NAME,
    outcomes=tuple_of(OUTCOME),
    where=optional(FINDING),
    expected=optional(BLOCKS),
    found=optional(BLOCKS),
    ratios=tuple_of(RATIO),
    score=optional(SCORE),
    orders=tuple_of(tuple_of(WORDS)),
    blamed=optional(BLAMED),
    failing=optional(COUNT),
)  # its lines are another's with an equal answer
