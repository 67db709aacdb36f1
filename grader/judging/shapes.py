"""What a wrong shape has to do with the one that is due.

A relation is a sentence without the case's own numbers, so that it can be held against other cases: only what is so in
every case whose shape is wrong is said.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from grader.judging.wording import most_telling

Shape = tuple[int, ...]

FEW_EACH = 2  # entries on each device that may have been forgotten, or kept

ASKED = {  # of each dimension that is wrong
    (
        True,
        False,
    ): "What is put one behind another there: is it each device's own part, or copies, or the whole already?",
    (False, True): "Is something cut there that should be whole, or are the blocks never put together?",
    (True, True): "By which axis is it cut, and by which put together?",
}
BLOCK_ASKED = "How long is what each device returns, and how long should it be?"


@dataclass(frozen=True)
class Shaped:
    """A shape that was found, and the one that is due; `counts` are numbers by their words, such as the devices along
    an axis, and `given` the shapes of the arrays that were handed over, by name."""

    found: Shape
    due: Shape
    counts: Mapping[str, int] = field(default_factory=dict)
    given: Mapping[str, Shape] = field(default_factory=dict)


def counts_of(mesh: Mapping[str, int]) -> dict[str, int]:
    """The numbers of devices along the axes of a mesh, by their words."""
    return {f"the number of devices along {axis}": size for axis, size in mesh.items()}


def shape_evidence(wrong: Sequence[Shaped]) -> str:
    """The most telling sentence that is so of all of these results of a program, and a question; "" where none is."""
    words = most_telling([list(shape_relations(one)) for one in wrong])
    asked = {BLOCK_ASKED if " than " in part else _asked(part) for part in words.split(";")}
    return f"{words} {asked.pop()}".strip() if len(asked) == 1 else words


def _asked(part: str) -> str:
    """What is asked of a dimension that is so many times as long as it should be, or so many times shorter."""
    return ASKED.get((", times" in part, ", divided" in part), "") if "as it should be" in part else ""


def shape_relations(one: Shaped) -> Iterator[str]:
    """Sentences on a wrong shape, the most telling first."""
    found, due = one.found, one.due
    if len(found) == len(due):
        if len(due) > 1 and found == due[::-1]:
            yield "It has the shape of the transpose: its dimensions stand in the opposite order."
        if sorted(found) == sorted(due):
            yield "The dimensions are as long as they should be, but they stand in another order."
        yield from _dimension_by_dimension(one)
        if math.prod(found) == math.prod(due):
            yield (
                "It has as many entries as are due, but its dimensions have other lengths. Along which dimension are "
                "the blocks put together, and along which should they be?"
            )
    elif len(found) == len(due) + 1:
        yield from _too_many(one)
    elif len(found) == len(due) - 1:
        yield from _too_few(one)
    elif not found:
        yield "It is a single number, without any dimension. Was everything summed, or one entry taken?"
    yield from (
        f"It has the shape of `{name}`, as it was given." for name, shape in one.given.items() if shape == found
    )
    if len(found) != len(due) and math.prod(found) == math.prod(due):
        grouped = "all in one dimension" if len(found) == 1 else "but in other dimensions"
        yield f"It has as many entries as are due, {grouped}."


def _too_many(one: Shaped) -> Iterator[str]:
    """One dimension more than is due, and the others as they should be."""
    others = ", and the others are as long as they should be." if one.due else "."
    at = [k for k in range(len(one.found)) if one.found[:k] + one.found[k + 1 :] == one.due]
    for which in _which(at):
        length = one.found[at[0]]  # of neighbours any of which may be the one, all lengths are the same
        if length == 1:
            yield f"{which} is one too many, of length 1{others}"
        for words in (words for words, count in one.counts.items() if count == length != 1):
            yield (
                f"{which} is one too many: its length is {words}{others} Do the blocks stand there one beside "
                "the other, where they should be joined, or added?"
            )
        yield f"{which} is one too many{others}"


def _too_few(one: Shaped) -> Iterator[str]:
    """One dimension less than is due, and the others as they should be."""
    at = [k for k in range(len(one.due)) if one.due[:k] + one.due[k + 1 :] == one.found]
    others = ", and the others are as long as they should be." if one.found else "."
    for which in _which(at):
        if one.due[at[0]] == 1:
            yield f"{which} is missing, which should be of length 1. What keeps a dimension that is summed over?"
        yield f"{which} is missing{others} Was it summed over, or one entry of it taken?"


def _which(at: Sequence[int]) -> Iterator[str]:
    """What to call a dimension that is at one of these places: by its number only where there is no other."""
    if len(at) == 1:
        yield f"Dimension {at[0]}"
    if at:
        yield "A dimension"


def _dimension_by_dimension(one: Shaped) -> Iterator[str]:
    """What each dimension of a wrong length is as long as."""
    pairs = enumerate(zip(one.found, one.due, strict=True))
    for each in itertools.product(*(list(_lengths(one, k, *pair)) for k, pair in pairs)):
        words = "; ".join(filter(None, each))
        yield f"{words[:1].upper()}{words[1:]}."


def _lengths(one: Shaped, k: int, found: int, due: int) -> Iterator[str]:
    """What one dimension is as long as, where it is not as long as it should be."""
    if found == due:
        yield ""
        return
    several = {words: count for words, count in one.counts.items() if count > 1}
    it_is = f"dimension {k} is as long as it should be"
    yield from (f"{it_is}, times {words}" for words, count in several.items() if found == due * count)
    yield from (f"{it_is}, divided by {words}" for words, count in several.items() if found * count == due)
    for (times, many), (over, parts) in itertools.permutations(one.counts.items(), 2):
        if found * parts == due * many and many > 0 and parts > 0:
            yield f"{it_is}, times {times}, divided by {over}"
    as_long = [
        f"dimension {j} of `{name}`" for name, shape in one.given.items() for j, n in enumerate(shape) if n == found
    ]
    both = [" and ".join(as_long)] if len(as_long) == 2 else []
    yield from (f"dimension {k} is as long as {where}" for where in (*both, *as_long))
    for words, count in several.items():
        for how, other in (("less", count - 1), ("more", count + 1)):
            if found * count == due * other and other > 1:
                yield f"dimension {k} is as long as if {words} were one {how}"
    for words, count in several.items():
        each, rest = divmod(abs(found - due), count)
        several_times = min(found, due) == 0 or max(found, due) % min(found, due) == 0
        if not rest and 0 < each <= FEW_EACH and not several_times:
            how = "longer" if found > due else "shorter"
            yield f"dimension {k} is {how} than it should be by {each}, times {words}"
    for (name, shape), (words, count) in itertools.product(one.given.items(), several.items()):
        yield from (
            f"dimension {k} is as long as dimension {j} of `{name}`, divided by {words}"
            for j, n in enumerate(shape)
            if n == found * count
        )
    yield from (f"the length of dimension {k} is {words}" for words, count in one.counts.items() if count == found)
    if found == 1:
        yield f"dimension {k} is of length 1"
