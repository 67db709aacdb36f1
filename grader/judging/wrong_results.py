"""What the wrong results of a program give away where no mistake behaves the same: their shapes, then their values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

from grader.exercises.case import Case
from grader.judging import costs, results
from grader.judging.arrangements import arrangement, tells_little
from grader.judging.behaviour import Execution
from grader.judging.compared import Compared
from grader.judging.dependence import depends
from grader.judging.deviating import deviating
from grader.judging.factors import FOLLOWS, off_by, opposite
from grader.judging.otherwise import by_entries, by_shares, one_otherwise, otherwise
from grader.judging.picked import wrong_rows
from grader.judging.plain_numbers import with_plain_numbers
from grader.judging.products import wrong_products
from grader.judging.reductions import of_blocks
from grader.judging.references import expected_results
from grader.judging.results import Expected
from grader.judging.shapes import shape_evidence
from grader.judging.signatures import ALL_ZERO, WITHIN_A_PERCENT, signature
from grader.judging.silenced import right_without, without_effect
from grader.judging.wrong_program import WrongProgram

EVERY_ENTRY = "Every entry is"  # and of a single number: it is
OFF_THE_OTHER_WAY = "What else is wrong is off by the same factor, the other way: does the one follow from the other?"


def shape_signature(wrong: WrongProgram) -> str:
    """What the wrong shapes have to do with those that are due, where that is so on every mesh."""
    result = wrong.run, wrong.expected
    if words := (
        results.as_many_as_given(*result)
        or results.several_for_one(*result)
        or results.arrays_missing(*result)
        or results.exchanged(*result)
    ):
        return words
    tried = [
        results.wrong_shape(wrong.run_on(k), wrong.expected_on(wrong.cases[k]))
        for k in (wrong.failing, *wrong.witnesses)
    ]
    if not (elsewhere := wrong.well_before("shape")):
        return shape_evidence([one for one in tried if one]) if tried[0] else ""
    # (Arguments may have the same length by chance, and this is seen on one mesh only.)
    lengths = [replace(one, given={}) for one in tried if one]
    return " ".join(filter(None, (elsewhere, shape_evidence(lengths) if tried[0] else "")))


def value_signature(wrong: WrongProgram) -> str:
    """What the wrong arrays of the result give away; else, of which other program they are the result."""
    runs = [wrong.run_on(k) for k in dict.fromkeys([wrong.failing, wrong.witness])]
    if words := results.exchanged(wrong.run, wrong.expected) or results.as_given(wrong.run, wrong.expected):
        return words
    if wrong.is_result_wrong and (
        words := otherwise(wrong.exercise, runs) or _ratio(wrong) or by_shares(wrong.exercise, wrong.run)
    ):
        return words
    if (words := _array_signature(wrong)) or not wrong.is_result_wrong:
        several = len(wrong.run.results) > 1
        return " ".join(filter(None, (wrong.all_right_elsewhere if words and several else "", words)))
    return one_otherwise(wrong.exercise, runs, *wrong.first_wrong)


def _ratio(wrong: WrongProgram) -> str:
    """By what all of a result is multiplied, where it is a single array of several numbers; and that it is right on
    another mesh, where it is."""
    other = wrong.elsewhere
    if len(wrong.run.results) > 1 or other is None or not (seen := wrong.compared(0)).expected[0].ndim:
        return ""
    elsewhere = wrong.compared(0, other)
    if (right := wrong.right_where) and (alone := off_by(seen, None)):
        return f"{alone} {right}"
    words = off_by(seen, elsewhere)
    own = [k for k in wrong.witnesses if k != wrong.failing and wrong.cases[k].mesh == wrong.case.mesh]
    alike = all(_alike_words(words, off_by(wrong.compared(0, k), elsewhere)) for k in own)
    return words if alike else off_by(seen, None)


def _alike_words(words: str, others: str) -> bool:
    """Whether two ratios are the same, or follow the same number."""
    return words == others or bool(follows := words.partition(FOLLOWS)[2]) and follows == others.partition(FOLLOWS)[2]


def _array_signature(wrong: WrongProgram) -> str:
    """What the first wrong array gives away, and of which others that is so.

    It is said of the result as a whole only where all that is wrong in it gives the same away.
    """
    count, elsewhere = len(wrong.run.results), wrong.elsewhere
    seen = {
        array: (here, None if elsewhere is None else wrong.compared(array, elsewhere))
        for array in range(count)
        if (here := wrong.compared(array)).wrong
    }
    if len(seen) > 1 and not any(_any(here) for here, _ in seen.values()):
        return ALL_ZERO if len(seen) == count else f"Of {wrong.named([*seen])}: {ALL_ZERO}"
    given_away = {array: signature(*both) for array, both in seen.items()}
    said = [words for words in given_away.values() if words]
    words = next((words for words in said if words != WITHIN_A_PERCENT), next(iter(said), ""))
    alike = [array for array, others in given_away.items() if words in (others, off_by(*seen[array], of_few=True))]
    if not words or len(alike) == len(given_away):
        return words.replace(EVERY_ENTRY, "It is", 1) if count == 1 and not seen[0][0].expected[0].ndim else words
    others = [array for array in seen if array not in alike]
    opposites = all(opposite(seen[alike[0]], seen[array]) for array in others)
    rest = OFF_THE_OTHER_WAY if opposites else f"Also wrong: {wrong.named(others)}."
    return f"Of {wrong.named(alike)}: {words} {rest}"


def _any(seen: Compared) -> bool:
    """Whether any number of an array is not 0."""
    return any(block.any() for block in seen.blocks)


def value_deviation(wrong: WrongProgram) -> str:
    """Of which right program these are the values, but for one thing; else which of them are wrong, where that tells
    something."""
    if not wrong.right:
        return ""
    runs, expected = wrong.runs, functools.partial(expected_results, wrong.exercise)
    if words := deviating(wrong.exercise, runs, expected):
        return words
    words = wrong_products(wrong.run, wrong.expected) or wrong_rows(wrong.run, wrong.expected)
    words = words or by_entries(wrong.exercise, wrong.run) or _of_places(wrong, runs, expected)
    return f"{wrong.right_where} {words}".strip() if words else ""


def _of_places(wrong: WrongProgram, runs: Sequence[Execution], expected: Callable[[Case], Expected]) -> str:
    """Where in its arrays a result is wrong, or what it would be right without."""
    words = arrangement(wrong.compared(wrong.first_wrong[0]))
    if words and not tells_little(words):
        return words
    if without := right_without(runs, expected):
        return without_effect(runs, expected) or without
    return (results.which_are_right(wrong.run, wrong.expected) or words) if words else ""


def value_remainder(wrong: WrongProgram) -> str:
    """What is said of wrong values where nothing else is found."""
    if not wrong.right:
        return ""
    runs, expected = wrong.runs, functools.partial(expected_results, wrong.exercise)
    first = wrong.run, expected, *wrong.first_wrong
    itself = wrong.is_result_wrong
    words = (
        of_blocks(runs)
        or (depends(*first) if itself else "")
        or results.which_are_right(wrong.run, wrong.expected)
        or (with_plain_numbers(*first) if itself else "")
    )
    return f"{wrong.right_where} {words}".strip() or costs.sent_otherwise(wrong.run)
