"""The page of errors that a student may meet, from the grader's own table."""

from __future__ import annotations

import itertools
import re

from grader.exercises.errors import MEANINGS

_HEAD = """# Errors you may meet

JAX errors by type. Each entry says what the message means in a program for many devices and what to look at next, in
the same words as a check's card. `…` stands for text that differs from program to program.
"""


def errors_page() -> str:
    """The page as Markdown: a heading for each type of error, and below it what it says and what that means."""
    parts = [_HEAD]
    for types, rows in itertools.groupby(sorted(MEANINGS), key=lambda row: row[0]):
        parts.append(f"## {types.replace('|', ' or ')}\n")
        parts += [f"{_texts(pattern)}\n: {words}\n" for _, pattern, words in rows]
    return "\n".join(parts)


def _texts(pattern: str) -> str:
    """The texts that a pattern finds, as one reads them."""
    if not pattern.strip("^$"):
        return "no message" if pattern else "any message"
    return ", or ".join(f"`{_text(part)}`" for part in re.split(r"\|(?![^(]*\))", pattern))


def _text(pattern: str) -> str:
    chosen = re.sub(r"\(([^|()]*)(\|[^()]*)?\)\??", r"\1", pattern)  # the first of several, and what may be missing
    open_ended = re.sub(r"\\[wd][*+]|\.\*", "…", chosen)
    return open_ended.replace("\\", "")
