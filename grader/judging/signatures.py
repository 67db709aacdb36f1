"""General signatures of wrong results: what the numbers, or their arrangement, give away.

Used when no mistake of the exercise behaves the same. A signature says what was seen, and asks; it names a cause only
where the numbers follow it from one mesh to another.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from grader.arrays.numbers import ROUNDINGS, close, close_entries, same_numbers
from grader.arrays.words import number, numbered
from grader.judging.proportions import EXACT, as_factor, beside_what_was_given, by_rows, made_of_what_was_given

NEAR = 0.01  # of each entry: bfloat16 keeps two or three digits
SMALL_FACTOR = 2.5  # up to here a factor is the length of something by chance
OFF_WHOLE = 0.01  # off a whole number: every large number is near to one
ENOUGH = 3  # different entries: fewer have some ratio by chance
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
        np.isinf,
        "a division by 0, an exponential of a large number, a logarithm of 0, or the start of a maximum",
    ),
]


@dataclass(frozen=True, eq=False)
class Compared:
    """The blocks of a result in one case and those expected, in the order of devices.

    Blocks with the same place are copies of one part of the array. `counts` are the whole numbers that the program was
    given, by name, and `lengths` those of its arrays' dimensions and their numbers of entries, by their words; `given`
    are arrays of the same shape as the result, by name, in the same blocks.
    """

    blocks: Sequence[np.ndarray]
    expected: Sequence[np.ndarray]
    mesh: Mapping[str, int]
    places: Sequence[str] = ()
    roundings: int = ROUNDINGS
    counts: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    given: Mapping[str, Sequence[np.ndarray]] = field(default_factory=dict)

    @functools.cached_property
    def right(self) -> list[int]:
        """The devices whose block is right."""
        pairs = enumerate(zip(self.blocks, self.expected, strict=True))
        return [d for d, (block, expected) in pairs if close(block, expected, self.roundings)]

    @property
    def wrong(self) -> list[int]:
        return [d for d in range(len(self.blocks)) if d not in self.right]

    @property
    def on(self) -> str:
        return on(self.mesh)


def on(mesh: Mapping[str, int]) -> str:
    """A mesh by its shape."""
    return " × ".join(map(str, mesh.values())) + " devices"


def signature(seen: Compared, elsewhere: Compared | None = None) -> str:
    """What a wrong result suggests; `elsewhere` is the same program's on another mesh. "" when it suggests nothing."""
    tried: list[Callable[[], str]] = [
        lambda: _copies_differ(seen),
        lambda: off_by(seen, elsewhere),
        lambda: _always_the_same(seen, elsewhere) if _are_lists(seen) else "",
        lambda: _ratio_of_the_first(seen, elsewhere),
        lambda: _moved_along(seen, elsewhere) or _right_at_first(seen, elsewhere) if _are_lists(seen) else "",
        *(
            lambda look=look: look(seen)
            for look in (_no_numbers, _zeros, _transposed, _permuted, _beside, _nearly, _by_rows)
        ),
        lambda: _always_the_same(seen, elsewhere),
    ]
    return next(filter(None, (look() for look in tried)), "")


RIGHT = "this is right", "it is not"
ALL_ZERO = "Every entry is zero. Does anything of what was given come so far?"


def right_elsewhere(there: str, here: str, well: tuple[str, str] = RIGHT) -> str:
    """That something is well on one mesh and not on another: `well` says what is so there, and here."""
    return (
        f"On {there} {well[0]}; on {here} {well[1]}. Does something in it hold for one mesh only (a number, a name, "
        "the notebook's own mesh)? Or does what is wrong not show there, as where an axis has few devices?"
    )


def right_with_others(here: str) -> str:
    """That a result is right on the same mesh with other arguments."""
    return (
        f"On {here} this was right with other arguments, and with these it is not. Is a length, or a number that "
        "is given, another one here, and written into the program?"
    )


def allowed_elsewhere(there: str, here: str) -> str:
    """Of what a program may cost there is some to spare: to be within that is not yet to be right."""
    return (
        f"On {there} that is within what is allowed; on {here} it is not. How does what it costs depend on the number "
        "of devices?"
    )


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


def off_by(seen: Compared, elsewhere: Compared | None, of_few: bool = False) -> str:
    """Every entry is the same number of times too large. Of axes it speaks when the number follows them.

    A single number is some number of times what is due, whatever it is: that is said only where it is asked for.
    """
    if elsewhere is None:
        alone = _factor(seen)
        return _ratio_on_one_mesh(alone, seen.mesh) if alone is not None else ""
    factor, other = _factor(seen, 1), _factor(elsewhere, 1)
    if factor is None or other is None:
        return ""
    if not (of_few or _factor(seen) or (_is_whole(factor) and _is_whole(other))):
        return ""
    for words, size in _sizes(seen, elsewhere):
        for power, kind in POWERS:
            if _is(factor, size(seen) ** power) and _is(other, size(elsewhere) ** power):
                square = {2: "the square of ", 0.5: "the root of "}.get(abs(power), "")
                return (
                    f"Every entry is {as_factor(factor)} on {seen.on}, and {as_factor(other)} on {elsewhere.on}"
                    f"{FOLLOWS}{square}{words}. {SUM_OR_MEAN if words in seen.lengths and abs(power) >= 1 else kind}"
                )
    for words, length in _lengths_on_one(seen, elsewhere):
        for power in (1, -1):
            if _is(factor, length(seen) ** power) and _is(other, length(elsewhere) ** power):
                return (
                    f"Every entry is {as_factor(factor)} on {seen.on}, and {as_factor(other)} on {elsewhere.on}"
                    f"{FOLLOWS}{words}. {SUM_OR_MEAN}"
                )
    if _is(factor, other):
        both = f"Every entry is {as_factor(factor)}, here on {seen.on} and in a case on {elsewhere.on}"
        if words := _length_of(factor, seen, elsewhere):
            return f"{both}. That is {words}. {SUM_OR_MEAN}"
        asked = "What is taken from what?" if _is(factor, -1) else "Which factor was left out, or taken twice?"
        return f"{both}. {asked}"
    if _is_place(seen) or _is_place(elsewhere):
        return ""
    return f"Every entry is {as_factor(factor)} on {seen.on}, and {as_factor(other)} on {elsewhere.on}. Why that many?"


FOLLOWS = ": that is "  # and what a ratio follows from one mesh to another
SUM_OR_MEAN = "Is a sum taken where a mean is due, or the other way round?"
_TOO_LARGE = "Was something added up once too often, or a division left out?"
_TOO_SMALL = "Was something divided once too often, or a mean taken where a sum was due?"
POWERS = (  # of a number by which a result is too large
    (1, _TOO_LARGE),
    (2, _TOO_LARGE),
    (-1, _TOO_SMALL),
    (-2, _TOO_SMALL),
    (0.5, "Is it multiplied by a root that is not asked for, or a division left out?"),
    (-0.5, "Is it divided by a root that is not asked for, or a factor left out?"),
)


def opposite(one: tuple[Compared, Compared | None], other: tuple[Compared, Compared | None]) -> bool:
    """Whether one array is as many times too large as another is too small, on every mesh that is tried."""
    factors = [(_factor(*pair) for pair in ((a, 1), (b, 1))) for a, b in zip(one, other, strict=True) if a and b]
    return all(f is not None and g is not None and _is(f * g, 1) for f, g in factors)


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


def _length_of(factor: float, *cases: Compared) -> str:
    """A length that is in all cases the factor, or what is divided by it; of an argument rather than of its parts."""
    size = max(factor, 1 / factor)
    told = [
        words
        for words in cases[0].lengths
        if size > SMALL_FACTOR and all(_is(size, case.lengths.get(words, 1)) for case in cases)
    ]
    return min(told, key=lambda words: "[" in words, default="")


def _is_place(seen: Compared) -> bool:
    """Whether it is a single whole number, such as the place of something: of such a ratio says nothing."""
    return seen.expected[0].size == 1 and seen.expected[0].dtype.kind in "iu"


def _ratio_on_one_mesh(factor: float, mesh: Mapping[str, int]) -> str:
    if _is(factor, -1):
        return "Every entry has the wrong sign."
    names = [name for name, size in mesh.items() if size > 1 and (_is(factor, size) or _is(factor, 1 / size))]
    along = f" Along {names[0]} there are {mesh[names[0]]} devices: is it that?" if names else ""
    return f"Every entry is {as_factor(factor)}.{along or ' Which factor was left out, or taken twice?'}"


def _sizes(*cases: Compared) -> list[tuple[str, Callable[[Compared], int]]]:
    """Numbers that differ from case to case: of devices, those given, one times the other, and the lengths of arrays;
    the number of all devices, which may not differ, comes last."""
    names = [name for name in cases[0].mesh if len({case.mesh.get(name) for case in cases}) > 1]
    counts = [name for name in cases[0].counts if len({case.counts.get(name) for case in cases}) > 1]
    along = [(f"the number of devices along {name}", lambda case, name=name: case.mesh[name]) for name in names]
    given = [(f"`{name}`", lambda case, name=name: case.counts[name]) for name in counts]
    lengths = [words for words in cases[0].lengths if len({case.lengths.get(words) for case in cases}) > 1]
    long = [(words, lambda case, words=words: case.lengths[words]) for words in lengths]
    both = [
        (f"{count} times {words}", lambda case, one=one, other=other: one(case) * other(case))
        for (words, one), (count, other) in itertools.product(along, given)
    ]
    return [*along, *given, *both, *long, ("the number of all devices", lambda case: math.prod(case.mesh.values()))]


def _lengths_on_one(*cases: Compared) -> Iterator[tuple[str, Callable[[Compared], float]]]:
    """The lengths of arrays' dimensions that devices along an axis share, where they differ from case to case."""
    for words, axis in itertools.product(cases[0].lengths, cases[0].mesh):
        if words.startswith("the length"):

            def share(case: Compared, words: str = words, axis: str = axis) -> float:
                return case.lengths.get(words, 0) / case.mesh.get(axis, 1)

            if len({share(case) for case in cases}) > 1 and all(share(case) >= 1 for case in cases):
                yield f"{words}, divided by the number of devices along {axis}", share
    for words, name in itertools.product(cases[0].lengths, cases[0].counts):
        if words.startswith("the length") and words.endswith("on a device"):

            def part(case: Compared, words: str = words, name: str = name) -> float:
                return case.lengths.get(words, 0) / max(case.counts.get(name, 1), 1)

            if len({part(case) for case in cases}) > 1 and all(part(case) >= 1 for case in cases):
                yield f"{words}, divided by `{name}`", part


def _is_whole(factor: float) -> bool:
    """Whether it is a whole number, or one divided by one: of a single entry no other says anything."""
    larger = max(abs(factor), 1 / abs(factor))
    return _is(larger, round(larger)) and abs(larger - round(larger)) < OFF_WHOLE


def _factor(seen: Compared, enough: int = ENOUGH) -> float | None:
    """By what every entry is multiplied; None where that differs, or is nothing, or there are not enough to tell."""
    pairs = zip(seen.blocks, seen.expected, strict=True)
    if any(b.shape != e.shape or b.dtype.kind not in "fiu" for b, e in pairs):
        return None
    blocks, expected = (np.concatenate([np.ravel(x) for x in side]) for side in (seen.blocks, seen.expected))
    blocks, expected = blocks.astype(np.float64), expected.astype(np.float64)
    size = expected @ expected
    if not np.isfinite(blocks).all() or len(np.unique(np.abs(expected[expected != 0]))) < enough:
        return None
    factor = float(blocks @ expected / size)
    exact = all(close(b, e * factor) for b, e in zip(seen.blocks, seen.expected, strict=True))
    return factor if exact and factor and not _is(factor, 1) else None


def _is(factor: float, size: float) -> bool:
    return abs(factor / size - 1) < EXACT


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
        seen.blocks, seen.given, seen.roundings
    )


def _by_rows(seen: Compared) -> str:
    """What the numbers have to do with those of their own row."""
    return by_rows(seen.blocks, seen.expected, roundings=seen.roundings) if _are_floats(seen) else ""


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
