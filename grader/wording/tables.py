"""The rows of a table."""

from __future__ import annotations

from grader.exercises.exercise import Exercise
from grader.findings.tables import (
    AuthorSays,
    KindExpected,
    NoAnswerYet,
    NumberByNumber,
    OffByInteger,
    OffByRoughly,
    OptionMeans,
    RightInRow,
    RowAsks,
    RowRefused,
    RowsOffAlike,
    SameAsRow,
    WrongRow,
)
from grader.wording.said import Said, said, says

_KINDS = {
    "bool": ("Write True or False.", ""),
    "number": ("The answer is a number.", ""),
    "list": ("The answer is a list or a tuple.", ""),
    "unquoted list": ("The answer is a list or a tuple, not a string. Remove the quotation marks.", ""),
    "option": ("This isn't one of the words to choose from.", "Which of them do you mean?"),
    "single option": ("These are several of the words to choose from.", "Which single one is it?"),
}


@says(WrongRow)
def _(f: WrongRow) -> Said:
    return Said(f"{f.row}: {f.found} is incorrect.")


@says(NoAnswerYet)
def _(f: NoAnswerYet) -> Said:
    return Said(f"{f.row}: no answer yet.")


@says(RowRefused)
def _(f: RowRefused) -> Said:
    why = said(f.why)
    return Said(f"{f.row}: {why.headline}" if why.headline else f.row, detail=why.detail, cause=why.cause)


@says(SameAsRow)
def _(f: SameAsRow) -> Said:
    return Said(cause=f"The reason is the same as in “{f.row}”.")


@says(KindExpected)
def _(f: KindExpected) -> Said:
    if f.kind == "words":
        return Said(cause=f"The answer is one of these words: {', '.join(map(repr, f.words))}.")
    cause, question = _KINDS[f.kind]
    return Said(cause=cause, question=question)


@says(OptionMeans)
def _(f: OptionMeans, exercise: Exercise | None) -> Said:
    return Said(cause=exercise.options.get(f.option, "") if exercise else "")  # type: ignore[attr-defined] # a table's


@says(AuthorSays)
def _(f: AuthorSays) -> Said:
    return Said(cause=f.words)


@says(RowAsks)
def _(f: RowAsks, exercise: Exercise | None) -> Said:
    return Said(question=exercise.questions.get(f.part, "") if exercise else "")  # type: ignore[attr-defined] # a table's


@says(RightInRow)
def _(f: RightInRow) -> Said:
    return Said(cause=f"The same answer is correct for “{f.row}”.", question="How does this row differ?")


@says(RowsOffAlike)
def _(f: RowsOffAlike) -> Said:
    rows = "Both wrong rows are" if f.count == 2 else f"All {f.count} wrong rows are"
    if f.by != "another row":
        by = "factor" if f.by == "factor" else "amount, in the same direction"
        return Said(cause=f"{rows} off by the same {by}.", question="What do they have in common?")
    return Said(
        cause=f"{rows} too {f.side} by the same amount, which is your answer in another row.",
        question="What was counted in these rows that isn't part of them?"
        if f.side == "large"
        else "What was left out of these rows?",
    )


@says(OffByInteger)
def _(f: OffByInteger) -> Said:
    asked = {"large": "What was counted too often, or not divided by?", "small": "What was left out?"}
    return Said(cause=f"It is too {f.side} by an integer factor.", question=asked[f.side])


@says(OffByRoughly)
def _(f: OffByRoughly) -> Said:
    if f.much == "less than twice":
        return Said(cause=f"It is too {f.side}, by less than a factor of 2.")
    asked = "Is the unit correct, and is each factor where it belongs?"
    return Said(cause=f"It is too {f.side}, by more than a factor of 10.", question=asked)


@says(NumberByNumber)
def _(f: NumberByNumber) -> Said:
    each = (f"number {k} is {'correct' if s == 'right' else f'too {s}'}" for k, s in enumerate(f.standing))
    return Said(cause=f"Counting from 0: {', '.join(each)}.")
