"""What the judge found of one answer in short, as data: for the tables and the report of a class.

A graded notebook holds one beside each card, so that a report reads it there and judges nothing again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from nbformat import NotebookNode

from grader.classroom.course.notebook import checked
from grader.classroom.store import key
from grader.exercises.verdict import Verdict
from grader.findings.finding import Finding, finding_from_json, finding_to_json

STATES = ("right", "partly", "wrong", "open")
DIGEST = "digest"  # in the metadata of a card


@dataclass(frozen=True)
class Digest:
    """One exercise of one hand-in: `state` is right, partly, wrong or open.

    If something was missed, `check` says which check, `mistake` names it if it has a name, and `findings` say why.
    `sent` are the bytes that a right program sends, where `par` are enough. `program` is the same for two answers that
    are the same programs, whatever names they use; "" if the answer is none.
    """

    exercise: str
    state: str
    check: str = ""
    mistake: str = ""
    findings: tuple[Finding, ...] = ()
    sent: int | None = None
    par: int | None = None
    program: str = ""


def digest(verdict: Verdict, answers: Any = None) -> Digest:
    """A verdict in short; `answers`, in their JSON form, are what it was made of."""
    missed, score = verdict.failure, verdict.score
    return Digest(
        verdict.exercise,
        verdict.state,
        missed.check if missed else "",
        verdict.mistake,
        missed.findings if missed else (),
        score.yours if score else None,
        score.par if score else None,
        _same_for_all(answers),
    )


def _same_for_all(answers: Any) -> str:
    """One name for equal programs: their bytes hold no name and no place of their author's. "" for another answer."""
    programs = isinstance(answers, list) and all(isinstance(a, dict) and set(a) == {"program"} for a in answers)
    return key(answers)[:16] if programs else ""


def as_record(one: Digest) -> dict[str, Any]:
    """As JSON types."""
    return {**asdict(replace(one, findings=())), "findings": list(map(finding_to_json, one.findings))}


def digests_in(nb: NotebookNode) -> Iterator[Digest]:
    """Those of a graded notebook, in order."""
    for cell in nb.cells:
        if checked(cell):
            for output in cell.outputs:
                if found := output.get("metadata", {}).get(DIGEST):
                    yield Digest(**{**found, "findings": tuple(map(finding_from_json, found["findings"]))})


def named_mistakes(found: Iterable[Digest]) -> list[tuple[str, str, int]]:
    """The mistakes that have a name, each with its exercise and how often it was made: the most frequent first."""
    made = Counter((one.exercise, one.mistake) for one in found if one.mistake)
    return [(*mistake, count) for mistake, count in made.most_common()]
