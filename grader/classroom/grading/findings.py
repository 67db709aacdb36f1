"""What the judge found of one answer, in a few words and numbers: for the tables and the report of a class.

A graded notebook holds one beside each card, so that a report reads it there and judges nothing again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from nbformat import NotebookNode

from grader.classroom.course.notebook import checked
from grader.classroom.store import key
from grader.exercises.verdict import Verdict
from grader.judging.both import BOTH
from grader.lessons import find

STATES = ("right", "partly", "wrong", "open")
FINDING = "finding"  # in the metadata of a card


@dataclass(frozen=True)
class Finding:
    """One exercise of one hand-in: `state` is right, partly, wrong or open.

    Where something was missed, `check` says which check, `mistake` names it where it has a name, and `words` are what
    the student hears. `sent` are the bytes that a right program sends, where `par` are enough. `program` is the same
    for two answers that are the same programs, whatever names they use; "" where the answer is none.
    """

    exercise: str
    state: str
    check: str = ""
    mistake: str = ""
    words: str = ""
    sent: int | None = None
    par: int | None = None
    program: str = ""


def finding(verdict: Verdict, answers: Any = None) -> Finding:
    """A verdict in short; `answers`, in their JSON form, are what it was made of."""
    missed, score = verdict.failure, verdict.score
    return Finding(
        verdict.exercise,
        verdict.state,
        missed.check if missed else "",
        verdict.mistake,
        verdict.words,
        score.yours if score else None,
        score.par if score else None,
        _same_for_all(answers),
    )


def _same_for_all(answers: Any) -> str:
    """One name for equal programs: their bytes hold no name and no place of their author's. "" for another answer."""
    programs = isinstance(answers, list) and all(isinstance(a, dict) and set(a) == {"program"} for a in answers)
    return key(answers)[:16] if programs else ""


def findings_in(nb: NotebookNode) -> Iterator[Finding]:
    """The findings of a graded notebook, in order."""
    for cell in nb.cells:
        if checked(cell):
            for output in cell.outputs:
                if found := output.get("metadata", {}).get(FINDING):
                    yield Finding(**found)


def named_mistakes(found: Iterable[Finding]) -> list[tuple[str, str, int]]:
    """The mistakes that have a name, each with its exercise and how often it was made: the most frequent first."""
    made = Counter((one.exercise, one.mistake) for one in found if one.mistake)
    return [(*mistake, count) for mistake, count in made.most_common()]


def words_of(exercise: str, mistake: str) -> str:
    """What is said to a student who makes this mistake, or these two."""
    known = {one.name: one.words for one in find(exercise).mistakes}
    return "\n\n".join(known[name] for name in mistake.split(BOTH) if name in known)
