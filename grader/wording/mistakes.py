"""Declared mistakes: their words are those of the exercise."""

from __future__ import annotations

import re

from grader.exercises.exercise import Exercise
from grader.findings.mistakes import BOTH, KnownMistake, MistakeInSomeCases, TwoMistakes
from grader.wording.said import Said, says

# The last sentence, if it ends in "?", or what follows its colon. (A dot inside `code` or a name ends no sentence.)
LAST_QUESTION = re.compile(r"(?:^|(?<=[.!?:])\s+|(?<=[.!?]\))\s+)((?:`[^`]*`|[^.!?:`]|[.:](?=\S))+\?)\s*$")


@says(KnownMistake)
def _(f: KnownMistake, exercise: Exercise | None) -> Said:
    how = "exactly" if f.exactly else "almost"
    return _caused(f"A common mistake gives {how} this result:", words_of(exercise, f.name))


@says(TwoMistakes)
def _(f: TwoMistakes, exercise: Exercise | None) -> Said:
    words = words_of(exercise, f"{f.one}{BOTH}{f.other}")
    return _caused("Two common mistakes together give exactly this result, each in part of it:", words)


@says(MistakeInSomeCases)
def _(f: MistakeInSomeCases, exercise: Exercise | None) -> Said:
    words = words_of(exercise, f.name)
    return _caused("Some cases are correct. The others look as if your function did this:", words)


def words_of(exercise: Exercise | None, mistake: str) -> str:
    """What the author of an exercise says of a mistake, or of two; "" of one that is not there any more."""
    known = {one.name: one.words for one in exercise.mistakes} if exercise else {}
    return "\n\n".join(known[name] for name in mistake.split(BOTH) if name in known)


def _caused(lead: str, words: str) -> Said:
    """A cause, and the question that the words end with, if they do."""
    asked = LAST_QUESTION.search(words)
    if not asked:
        return Said(cause=f"{lead} {words.strip()}")
    told, question = words[: asked.start()].strip(), asked[1]
    ended = f"{told[:-1]}." if told.endswith(":") else told
    return Said(cause=f"{lead} {ended}".strip(), question=f"{question[0].upper()}{question[1:]}")
