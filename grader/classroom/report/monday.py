"""What to talk about on Monday: three sentences made from the numbers of a lesson."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import islice

from grader.classroom.report.facts import EXTREME, LessonFacts, MissFacts
from grader.lessons import EXERCISES
from grader.wording import in_short
from grader.wording.mistakes import words_of

SENTENCES = 3
SEVERAL = 2  # students, before something is worth everybody's time
FIRST_SENTENCE = re.compile(r".+?[.?!](?=\s|$)", re.DOTALL)


def monday(facts: LessonFacts) -> list[str]:
    """Up to three sentences, the most important first; names of exercises are between backquotes."""
    return list(islice(_sentences(facts), SENTENCES)) or ["Everybody has everything right. Go on to the next lesson."]


def _sentences(facts: LessonFacts) -> Iterator[str]:
    count = len(facts.papers)
    hardest = max(facts.exercises, key=lambda one: one.lost)
    if hardest.lost > 0:
        yield (
            f"Most points were lost on `{hardest.name}` ({hardest.lost:g} of {hardest.worth * count:g}): "
            f"{hardest.counts['right']} of {count} have it right, {hardest.counts['open']} left it open."
        )
    if worst := _common(facts.mistakes):
        yield (
            f"{len(worst.students)} of {count} made the same mistake in `{worst.exercise}`, `{worst.what}`: "
            f"{_first_sentence(heard(worst))}"
        )
    if odd := _common(facts.unnamed):
        yield (
            f"{len(odd.students)} answers to `{odd.exercise}` are wrong in a way that nobody could name "
            f"(“{odd.what}”): look at one of them together."
        )
    text = min(facts.exercises, key=lambda one: one.discrimination or 0)
    if (text.discrimination or 0) < -2 * math.sqrt(0.5 / (EXTREME * count)):  # two standard errors, at most
        yield f"Those who did well did worse than the others on `{text.name}`: is its text misleading?"
    left = max(facts.exercises, key=lambda one: one.counts["open"])
    if left.counts["open"] >= SEVERAL and left is not hardest:
        yield f"{left.counts['open']} of {count} left `{left.name}` open: too late in the lesson, or too large a step?"


def heard(miss: MissFacts) -> str:
    """What a student hears who missed it so: of a mistake by its name the author's words, else what is wrong."""
    exercise, found = EXERCISES.get(miss.exercise), miss.example
    if found.mistake:
        return words_of(exercise, found.mistake)
    return in_short(found.findings[0], exercise) if found.findings else ""


def _common(misses: tuple[MissFacts, ...]) -> MissFacts | None:
    return next((miss for miss in misses if len(miss.students) >= SEVERAL), None)


def _first_sentence(words: str) -> str:
    found = FIRST_SENTENCE.match(words)
    return " ".join((found[0] if found else words).split())
