"""The cards of a hand-in, drawn from its verdicts when its notebook is written.

What is kept is data: verdicts, and the pictures of cards, which take half a second each. So a sentence that is worded
anew costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grader import feedback
from grader.classroom.inside.shown import PACKAGE
from grader.classroom.store import Store, key, version
from grader.classroom.verdicts.records import VERDICT, Judged
from grader.exercises.verdict import Verdict
from grader.lessons import EXERCISES
from grader.watching import watchable

DRAWN_BY = tuple(PACKAGE / place for place in ("draw", "arrays", "palette.py", "feedback.py"))  # what draws them
OF_A_PICTURE = ("orders", "expected", "found")  # what is drawn of a verdict


@dataclass(frozen=True)
class Card:
    """A card as HTML and as text."""

    html: str
    text: str


def card_of(judged: Judged, store: Store) -> Card:
    """The card of a verdict; it offers to watch the answer, if there is something to watch."""
    verdict, exercise = judged.verdict, EXERCISES.get(judged.verdict.exercise)
    shown = verdict.passed or judged.replay
    offer = feedback.Offer(verdict.exercise, judged.replay) if shown and is_watched(verdict) else None
    html = feedback.card(verdict, exercise, offer, _kept_pictures(store))
    return Card(html, feedback.plain_card(verdict, exercise, offer))


def is_watched(verdict: Verdict) -> bool:
    """Whether an answer may be watched: a program's lines, if there is an answer."""
    exercise = EXERCISES.get(verdict.exercise)
    return exercise is not None and watchable(exercise) and not (verdict.failure and verdict.failure.open)


def _kept_pictures(store: Store) -> Callable[[Verdict], str]:
    def picture(verdict: Verdict) -> str:
        if not feedback.has_picture(verdict):
            return ""
        facts = VERDICT.write(verdict)
        place = key(version(*DRAWN_BY), verdict.passed, [facts[name] for name in OF_A_PICTURE])
        if not isinstance(kept := store.get("pictures", place), str):
            store.put("pictures", place, kept := feedback.pictures_of(verdict))
        return kept

    return picture
