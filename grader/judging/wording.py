"""Sentences that are looked for in several cases, and put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

TELLS_LITTLE = ("t is too large.", "t is too small.", "others are not.", " is wrong.", " are wrong.")  # ends


def most_telling(relations: Sequence[Sequence[str]]) -> str:
    """The first sentence of the first case that is among those of all others; "" if none is."""
    return next(iter(in_all(relations)), "")


def in_all(relations: Sequence[Sequence[str]]) -> list[str]:
    """The sentences of the first case that are among those of all others."""
    first = relations[0] if relations else []
    return [words for words in first if all(words in others for others in relations)]


def lower_first(words: str) -> str:
    """A sentence as it goes on behind a colon or a comma."""
    return f"{words[:1].lower()}{words[1:]}"


def before_little(words: Iterable[str], others: Iterable[str]) -> Iterator[str]:
    """Other sentences, in front of those that tell little."""
    said = list(words)
    yield from (one for one in said if not one.endswith(TELLS_LITTLE))
    yield from others
    yield from (one for one in said if one.endswith(TELLS_LITTLE))


def by_number(numbers: Sequence[int]) -> str:
    """Entries by their numbers: entry 3; entries 0, 1."""
    return f"{'entries' if len(numbers) > 1 else 'entry'} {', '.join(map(str, numbers))}"


def right_along(dimension: int, numbers: Sequence[int]) -> str:
    """That these entries along a dimension are right, and no others."""
    which = f"{by_number(numbers)} (counted from 0)"
    return f"Along dimension {dimension}, {which} came out right in every block, and no others did."


def is_or_are(things: Sequence[Any]) -> str:
    return "are" if len(things) > 1 else "is"
