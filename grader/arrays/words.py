"""Parts of arrays, numbers and devices as one writes them; and the words of strangers, safe to show."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any


def region(bounds: Iterable[tuple[int, int]]) -> str:
    """A part of an array by where it starts and stops in each dimension: [0:4, 2:4]."""
    return f"[{', '.join(f'{start}:{stop}' for start, stop in bounds)}]"


def number(value: Any, digits: int = 6) -> str:
    """A number in so many digits."""
    return f"{value:.{digits}g}"


def numbered(noun: str, numbers: Collection[int | str]) -> str:
    """Things by their numbers: device 3; devices 0, 1."""
    return f"{noun}{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def times(count: int) -> str:
    """How often, in words."""
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def consecutive(numbers: Iterable[int]) -> Iterator[list[int]]:
    """Numbers in their order, those together that are one behind the other."""
    for _, run in itertools.groupby(enumerate(numbers), lambda entry: entry[1] - entry[0]):
        yield [number for _, number in run]


def spanned(noun: str, numbers: Collection[int]) -> str:
    """The same, with three and more that are one behind the other by the first and the last: devices 0–7, 12."""
    runs = (f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in consecutive(numbers))
    return f"{noun}{'s' * (len(numbers) > 1)} {', '.join(runs)}"


def enumeration(things: Sequence[str]) -> str:
    """Things in a sentence: a; a and b; a, b and c."""
    *most, last = things
    return f"{', '.join(most)} and {last}" if most else last


def as_inline_html(words: str) -> str:
    """Our words as HTML: `code` and *emphasis* as in Markdown, everything else as it stands."""
    text, *rest = re.split(r"`([^`\n]+)`", words)
    parts = [_emphasized(text)]
    for code, text in zip(rest[::2], rest[1::2], strict=True):
        parts += [f"<code>{html.escape(code)}</code>", _emphasized(text)]
    return "".join(parts)


def _emphasized(text: str) -> str:
    """Asterisks close around words are emphasis; those with blanks around them, or inside a word, are products."""
    return re.sub(r"(?<![\w*])\*(?=[^\s*])([^*\n]+?)(?<=\S)\*(?![\w*])", r"<em>\1</em>", html.escape(text))


def legible(text: object) -> str:
    """A stranger's text, without characters that steer a terminal, turn the writing round, or cannot be seen."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def one_line(text: object, most: int = 100) -> str:
    """A stranger's text as a part of one line: a file's name, say, whatever is in it; the middle of a long one is
    left out."""
    line = re.sub(r"[\n\t]", "\N{REPLACEMENT CHARACTER}", legible(text))
    return line if len(line) <= most else f"{line[: most * 3 // 5]}…{line[-most * 3 // 10 :]}"
