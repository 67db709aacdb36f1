"""Sentences that are looked for in several cases, and put together."""

from __future__ import annotations

from collections.abc import Sequence


def most_telling(relations: Sequence[Sequence[str]]) -> str:
    """The first sentence of the first case that is among those of all others; "" if none is."""
    first = relations[0] if relations else []
    return next((words for words in first if all(words in others for others in relations)), "")


def lower_first(words: str) -> str:
    """A sentence as it goes on behind a colon or a comma."""
    return f"{words[:1].lower()}{words[1:]}"
