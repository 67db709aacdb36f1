"""Help with one exercise: its hints one by one, and its starter again."""

from __future__ import annotations

from collections import Counter

from grader.guide.attempts import this_notebook
from grader.guide.syllabus import exercise_text
from grader.questions import Text

_asked: Counter[str] = Counter()  # in this kernel


def hint(name: str) -> Text:
    """The next hint of an exercise: one at the first call, one more at each. They cost nothing.

    Args:
      name: the exercise's name.

    Example:
      >>> grader.hint("case3")
      Hint 1 of 3. ...
    """
    try:
        hints = exercise_text(name).hints
    except LookupError as error:
        return Text((str(error),))
    _asked[name] = min(_asked[name] + 1, len(hints))
    return Text(tuple(f"Hint {k} of {len(hints)}. {words}" for k, words in enumerate(hints[: _asked[name]], 1)))


def reset(name: str) -> Text:
    """The starter of an exercise again, in a new cell below this one; what you have written stays where it is.

    Args:
      name: the exercise's name.

    Example:
      >>> grader.reset("case3")
      This is no notebook, so here is the starter of `case3`:
      def case3(a, b, *, mesh):
      ...
    """
    try:
        starter = exercise_text(name).starter
    except LookupError as error:
        return Text((str(error),))
    if (notebook := this_notebook()) is None:
        return Text((f"This is no notebook, so here is the starter of `{name}`:", starter))
    notebook.set_next_input(starter)
    return Text(
        (
            f"The starter of `{name}` is in the new cell below. Yours stays as it is.",
            f'Move the new cell to just before `check("{name}", …)`: the last answer before the check counts.',
        )
    )
