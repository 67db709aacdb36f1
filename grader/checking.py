"""`check("name", answer)`: the one line under every exercise."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from grader.arrays.devices import eight_devices
from grader.arrays.meshes import no_mesh
from grader.exercises.answers import origins_of
from grader.exercises.collecting import asks, collect
from grader.exercises.verdict import Outcome, Verdict, with_lines
from grader.findings.verdicts import CannotCheck, GateClosed
from grader.guide.attempts import keep, this_notebook, was_right
from grader.guide.pieces import keep_piece
from grader.watching import watchable, watched

if TYPE_CHECKING:
    from grader.feedback import Offer

NBGRADER = "NBGRADER_EXECUTION"  # is set where nbgrader itself runs a notebook


class Mark(float):
    """The points of a check: a float whose text is the number alone, which nbgrader reads.

    In a student's notebook nothing is shown under the card.
    """

    def __repr__(self) -> str:
        return f"{float(self):g}" if self != int(self) else f"{int(self)}.0"

    def _ipython_display_(self) -> None:
        if NBGRADER in os.environ:
            raise NotImplementedError  # IPython then shows the number


def check(name: str, answer: Any) -> Mark:
    """Judge an answer on a few cases, show what came of it, and return the points it earned.

    Args:
      name: the exercise's name.
      answer: a function or a table, as the exercise asks.

    Example:
      >>> grader.check("block_matmul", lambda A, B: A)
      Not yet · block_matmul · 0 of 2 points
      ...
      0.0
    """
    with _stderr_folded():
        verdict = verdict_on(name, answer)
        offer = _offer(verdict, answer)
    _show(verdict, offer)
    keep(verdict)
    keep_piece(verdict, answer)
    return Mark(min(max(verdict.points, 0.0), verdict.worth))


def verdict_on(name: str, answer: Any) -> Verdict:
    """The verdict on an answer, on the cases of a notebook."""
    from grader.lessons import given  # here, so that `import grader` stays quick

    try:
        eight_devices()
        exercise = given(name)
    except (LookupError, RuntimeError) as error:
        return Verdict(name, (Outcome.missed(name, "known", 0.0, (CannotCheck(str(error)),)),))
    if exercise.after and not was_right(exercise.after):
        return Verdict(name, (Outcome.left_open(name, "gate", exercise.points, (GateClosed(exercise.after),)),))
    with no_mesh():
        cases = exercise.draw_cases()
        from grader.explaining.explained import explained

        answers = collect(exercise.form, asks(exercise, cases), answer)
        return with_lines(explained(exercise, cases, answers), list(map(origins_of, answers)))


def _offer(verdict: Verdict, answer: Any) -> Offer | None:
    """An answer to watch: a wrong one at once, on the smallest case that fails; a right one by a line to type."""
    from grader.feedback import Offer
    from grader.lessons import EXERCISES

    name, failure = verdict.exercise, verdict.failure
    exercise = EXERCISES.get(name)
    if exercise is None or not watchable(exercise) or (failure and failure.open):
        return None
    if failure is None:
        return Offer(name)
    try:
        with no_mesh():
            return Offer(name, watched(exercise, answer, failure.check)._repr_html_())
    except Exception:  # what JAX refuses has no lines that were done; the card says why it does
        return None


def _show(verdict: Verdict, offer: Offer | None) -> None:
    from grader.feedback import card, plain_card
    from grader.lessons import EXERCISES

    exercise = EXERCISES.get(verdict.exercise)
    text = plain_card(verdict, exercise, offer)
    if this_notebook() is None:
        print(text)
    else:
        from IPython.display import display

        display({"text/html": card(verdict, exercise, offer), "text/plain": text}, raw=True)


@contextlib.contextmanager
def _stderr_folded() -> Iterator[None]:
    """Nothing on stderr while a check runs: nbgrader would take any of it for a failed cell.

    Python's warnings are dropped with it, and what XLA itself writes to the process's stderr.
    """
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(io.StringIO()):
        stderr = os.dup(2)
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
