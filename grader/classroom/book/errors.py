"""The page of errors that a student may meet, from the grader's own table."""

from __future__ import annotations

import itertools
import re

from grader.exercises.errors import MEANINGS
from grader.findings.problems import ErrorMeaning
from grader.wording.errors import error_words

_HEAD = """# Errors you may meet

JAX errors by type. Each entry says what the message means in a program for many devices and what to look at next, in
the same words as a check's card. `…` stands for text that differs from program to program.
"""


def errors_page() -> str:
    """The page as Markdown: a heading for each type of error, and below it what it says and what that means."""
    parts = [_HEAD]
    by_type = sorted(MEANINGS, key=lambda row: (row[1], row[0]))
    for types, rows in itertools.groupby(by_type, key=lambda row: row[1]):
        parts.append(f"## {types.replace('|', ' or ')}\n")
        for name, of_one in itertools.groupby(rows, key=lambda row: row[0]):
            texts = ", or ".join(_texts(pattern) for _, _, pattern in of_one)
            parts.append(f"{texts}\n: {error_words(ErrorMeaning(name))}\n")
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
