"""General signatures of wrong results: what the numbers, or their arrangement, give away.

Used when no mistake of the exercise behaves the same. A signature says what was seen, and asks; it names a cause only
where the numbers follow it from one mesh to another.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from grader.arrays.numbers import close, close_entries, same_numbers
from grader.arrays.words import number, numbered
from grader.judging.compared import ENOUGH, Compared
from grader.judging.factors import off_by
from grader.judging.proportions import beside_what_was_given, by_rows, made_of_what_was_given

ALL_ZERO = "Every entry is zero. Does anything of what was given come so far?"
OFTEN = 8  # entries of one number, where there are but two numbers
NEAR = 0.01  # of each entry: bfloat16 keeps two or three digits
WITHIN_A_PERCENT = (
    "Every entry is within 1 % of what it should be. Was something computed, or sent, in fewer bits (bfloat16)? "
    "Or is a small term missing?"
)


_ODD: Sequence[tuple[str, Callable[[np.ndarray], np.ndarray], str]] = [
    (
        "nan (no number)",
        np.isnan,
        "0 / 0, 0 × ∞, ∞ − ∞, a root or a logarithm of a negative number, or `jnp.take` of an index that is not there",
    ),
    (
        "inf (infinite)",
        np.isposinf,
        "a division by 0, or an exponential of a large number",
    ),
    (
        "-inf (less than every number)",
        np.isneginf,
        "a logarithm of 0, the start of a maximum, or a negative number divided by 0",
    ),
]


def signature(seen: Compared, elsewhere: Compared | None = None) -> str:
    """What a wrong result suggests; `elsewhere` is the same program's on another mesh. "" when it suggests nothing."""
    tried: list[Callable[[], str]] = [
        lambda: _copies_differ(seen),
        lambda: off_by(seen, elsewhere),
        lambda: _always_the_same(seen, elsewhere) if _are_lists(seen) else "",
        lambda: _ratio_of_the_first(seen, elsewhere),
        lambda: _moved_along(seen, elsewhere) or _right_at_first(seen, elsewhere) if _are_lists(seen) else "",
        lambda: _no_numbers(seen) or _zeros(seen) or _rounded(seen, elsewhere),
        *(lambda look=look: look(seen) for look in (_transposed, _permuted, _beside, _nearly, _by_rows)),
        lambda: _always_the_same(seen, elsewhere),
        lambda: _up_to_1(seen),
    ]
    return next(filter(None, (look() for look in tried)), "")


def _copies_differ(seen: Compared) -> str:
    for (one, a), (other, b) in itertools.combinations(enumerate(seen.places), 2):
        if a == b and not same_numbers(seen.blocks[one], seen.blocks[other], seen.roundings):
            return (
                f"Devices {one} and {other} hold copies of the same block, or so the layout says, and their copies "
                "differ. With `check_vma=False` nobody looks whether devices come to the same where out_specs promise "
                "it. "
                + (
                    _together_due(seen)
                    or "Is a collective missing, or does each device put what it receives in another place?"
                )
            )
    return ""


def _together_due(seen: Compared) -> str:
    """What the copies of each block come to together, where that is what is due."""
    groups = [[d for d, place in enumerate(seen.places) if place == each] for each in dict.fromkeys(seen.places)]
    if any(seen.blocks[d].shape != seen.expected[d].shape for group in groups for d in group):
        return ""
    for words, together in (("sum", np.sum), ("mean", np.mean), ("maximum", np.max)):
        if all(
            close(together([seen.blocks[d] for d in group], axis=0), seen.expected[group[0]], seen.roundings)
            for group in groups
        ):
            return f"The {words} of the copies is what is due. Which collective makes it?"
    return ""


def _are_lists(seen: Compared) -> bool:
    return all(block.ndim == 1 for block in seen.blocks)


def _ratio_of_the_first(seen: Compared, elsewhere: Compared | None) -> str:
    """Of a list of numbers that is whole on every device: by what its first one is multiplied."""
    both = [seen, *filter(None, [elsewhere])]
    if any(block.ndim != 1 or len(block) < 2 for one in both for block in (*one.blocks, *one.expected)):
        return ""
    if any(len(set(one.places)) != 1 for one in both):
        return ""
    words = off_by(_first(seen), _first(elsewhere)) if elsewhere else ""
    return words.replace("Every entry is", "Its first number is", 1)


def _moved_along(seen: Compared, elsewhere: Compared | None) -> str:
    """That the numbers of a list that is whole on every device stand one place too early, or too late."""
    both = [seen, *filter(None, [elsewhere])]
    if any(len(set(one.places)) != 1 for one in both):
        return ""
    pairs = [pair for one in both for pair in zip(one.blocks, one.expected, strict=True)]
    if sum(len(one.expected[0]) - 1 for one in both) < ENOUGH - 1 or any(len(due) < 2 for _, due in pairs):
        return ""
    if any(len(found) != len(due) or len(np.unique(due)) < len(due) for found, due in pairs):
        return ""
    for where, how, late in (("one place later", "early", 0), ("one place earlier", "late", 1)):
        if all(close(found[late:][: len(due) - 1], due[1 - late :][: len(due) - 1]) for found, due in pairs):
            end = "first" if late else "last"
            return f"Each number of it but the {end} is due {where}. Does something come a step too {how}?"
    return ""


def _right_at_first(seen: Compared, elsewhere: Compared | None) -> str:
    """That a list whole on every device begins right, and no number behind its first one is."""
    both = [seen, *filter(None, [elsewhere])]
    pairs = [pair for one in both for pair in zip(one.blocks, one.expected, strict=True)]
    if any(len(set(one.places)) != 1 for one in both) or any(found.shape != due.shape for found, due in pairs):
        return ""
    for found, due in pairs:
        right = close_entries(found, due, seen.roundings)
        if len(right) < 2 or not right[0] or right[1:].any():
            return ""
    return "Its first number is right, and none behind it. What is otherwise from there on?"


def _first(seen: Compared) -> Compared:
    """The same, of the first entries alone."""
    blocks, expected = ([block[:1] for block in side] for side in (seen.blocks, seen.expected))
    return replace(seen, blocks=blocks, expected=expected, given={})


def _no_numbers(seen: Compared) -> str:
    """Where there is no number, or an infinite one, though a finite one is due."""
    for kind, odd, whence in _ODD:
        there = [d for d, pair in enumerate(zip(seen.blocks, seen.expected, strict=True)) if _has(odd, *pair)]
        if there:
            everywhere = all(odd(block).all() for block in seen.blocks)
            all_ = len(there) == len(seen.blocks)
            devices = "every device" if all_ else numbered("device", there)
            where = "Every entry is" if everywhere else f"On {devices} some entries are"
            return f"{where} {kind}. That may come of {whence}. Which of your steps can do such a thing?"
    return ""


def _has(odd: Callable[[np.ndarray], np.ndarray], block: np.ndarray, expected: np.ndarray) -> bool:
    return block.dtype.kind == "f" and bool(odd(block).any()) and bool(np.isfinite(expected).all())


def _nearly(seen: Compared) -> str:
    if len(np.unique(np.concatenate([np.ravel(expected) for expected in seen.expected]))) < ENOUGH:
        return ""
    for block, expected in zip(seen.blocks, seen.expected, strict=True):
        if block.shape != expected.shape or expected.dtype.kind != "f" or not np.isfinite(block).all():
            return ""
        if (np.abs(block - expected) > NEAR * np.abs(expected)).any():
            return ""
    return WITHIN_A_PERCENT


def _rounded(seen: Compared, elsewhere: Compared | None) -> str:
    """That every entry is the one that is due, as a whole number; of a single number on two meshes."""
    cases = [seen, elsewhere] if elsewhere and seen.blocks[0].size == 1 else [seen]
    alone = len(cases) > 1
    found, due = (
        np.concatenate([np.ravel(block) for case in cases for block in side(case)])
        for side in (lambda case: case.blocks, lambda case: case.expected)
    )
    if not all(map(_are_floats, cases)) or not np.isfinite(due).all():
        return ""
    if not (bool(found.all()) and (due % 1).all() if alone else _of_several(found, len(seen.blocks))):
        return ""
    for how, whole in (("down", np.floor), ("up", np.ceil), ("", np.round), ("towards 0", np.trunc)):
        if same_numbers(found, whole(due), 0):
            it = "It is what is due" if alone else "Every entry is the one that is due"
            return f"{it}, {f'rounded {how}'.strip()} to a whole number. Which of your steps does that?"
    return ""


def _of_several(numbers: np.ndarray, copies: int) -> bool:
    """Whether there are several different ones among these, or two, each of them often."""
    values, often = np.unique(numbers, return_counts=True)
    return len(values) >= ENOUGH or (len(values) == 2 and bool(often.min() >= OFTEN * copies))


def _zeros(seen: Compared) -> str:
    if any(seen.blocks[d].any() for d in seen.wrong):
        return ""
    if not seen.right:
        return ALL_ZERO if seen.blocks[0].ndim else ""
    if len(seen.wrong) > 1:
        devices = numbered("device", seen.wrong)
        return f"On {devices} all is zeros, and the other blocks are right. Who was to send them something?"
    return f"The block on device {seen.wrong[0]} is all zeros, and the others are right. Who was to send it something?"


def _transposed(seen: Compared) -> str:
    pairs = list(zip(seen.blocks, seen.expected, strict=True))
    if all(e.ndim == 2 and b.shape == e.T.shape and close(b, e.T) for b, e in pairs):
        return "Every block is the transpose of the one that belongs there. Which dimension is which?"
    return ""


def _beside(seen: Compared) -> str:
    """What the numbers have to do with those of an argument."""
    if not _are_floats(seen):
        return ""
    return beside_what_was_given(seen.blocks, seen.expected, seen.given, seen.roundings) or made_of_what_was_given(
        seen.blocks, seen.expected, seen.given, seen.roundings
    )


def _by_rows(seen: Compared) -> str:
    """What the numbers have to do with those of their own row."""
    return by_rows(seen.blocks, seen.expected, roundings=seen.roundings) if _are_floats(seen) else ""


def _up_to_1(seen: Compared) -> str:
    """That each entry is what is left to 1, as where the sign of a sigmoid's argument is the other one."""
    if not _are_floats(seen) or len(np.unique(np.concatenate([_between(due) for due in seen.expected]))) < ENOUGH:
        return ""
    if not all(close(block + due, np.ones_like(due)) for block, due in zip(seen.blocks, seen.expected, strict=True)):
        return ""
    return "In every entry yours and what is due add up to 1. Has a step the other sign?"


def _between(due: np.ndarray) -> np.ndarray:
    """The numbers that are neither near 0 nor near 1."""
    return due[(due > NEAR) & (due < 1 - NEAR)]


def _are_floats(seen: Compared) -> bool:
    pairs = zip(seen.blocks, seen.expected, strict=True)
    return all(block.shape == due.shape and block.dtype.kind == "f" for block, due in pairs)


def _permuted(seen: Compared) -> str:
    owners = [[d for d, e in enumerate(seen.expected) if close(b, e)] for b in seen.blocks]
    if not all(owners) or all(d in o for d, o in enumerate(owners)):
        return ""
    wrong = next(d for d, o in enumerate(owners) if d not in o)
    lost = [d for d in range(len(owners)) if not any(d in o for o in owners)]
    if lost:
        return (
            f"Each device holds a block that is due, but device {wrong} the one that belongs on device "
            f"{owners[wrong][0]}, and nobody holds the one that belongs on device {lost[0]}. Who is to have which?"
        )
    return (
        f"The blocks are right but stand in the wrong places: device {wrong} holds what belongs on device "
        f"{owners[wrong][0]}. Is it the direction, the offset, or the order of the axes?"
    )


def _always_the_same(seen: Compared, elsewhere: Compared | None) -> str:
    """One and the same number everywhere, on two meshes whose cases have other values."""
    if elsewhere is None:
        return ""
    numbers, due = (
        np.unique(np.concatenate([np.ravel(b) for b in side]))
        for side in ((*seen.blocks, *elsewhere.blocks), (*seen.expected, *elsewhere.expected))
    )
    if len(numbers) > 1 or len(due) == 1:
        return ""
    it_is = f"It is {number(float(numbers[0]))}, here on {seen.on} and in a case on {elsewhere.on}"
    if seen.blocks[0].size == elsewhere.blocks[0].size == 1:  # two single numbers may be the same by chance
        return f"{it_is}, and should not be the same in both. What does it depend on?"
    return f"Every entry of i{it_is[1:]}. Does anything of what was given come so far?"
