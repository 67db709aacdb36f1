"""Every place that has to do with an exercise, or with a lesson."""

from __future__ import annotations

import re
from pathlib import Path

from grader.lessons import EXERCISES, find

_PACKAGE, _TEXT = "grader/lessons/{topic}", "solutions/{lesson}/{lesson}.md"
_ON_A_POD = r"""\bon=["']v\d"""
# Files; what to look for there for an exercise, and for a lesson (in braces, their names); what it is.
PLACES = (
    (f"{_PACKAGE}/*.py", r'^\w+ = [\w.]+\(\s*"{name}"', r"^\w+ = \w*Exercise\(", "declared"),
    (_TEXT, r"^#+ Exercise.* `{name}`", r"\A", "{section}"),
    ("solutions/{lesson}/alternatives.py", r"^def {name}__", r"^def ", "other correct answers"),
    (f"{_PACKAGE}/review.py", r'^@\w+\(.*"{name}"', r"^@(core|stretch)\(", "review questions"),
    (f"{_PACKAGE}/pictures/[!_]*.py", r"\A", r"\A", "a picture of the lesson"),
    ("tests/answers/{lesson}.jsonl", r'^\{{"exercise":"{name}"', r'^\{{"exercise"', "recorded answers"),
    ("tests/lessons/goldens/{lesson}.json", r'^ "{name}":', r"\A", "what mistakes say"),
    ("tests/lessons/equivalents/{lesson}.json", r'^ "{name}":', r"\A", "small changes of a solution that pass"),
    ("tests/**/*.py", r"""["']{name}["']""", r"\bgrader\.lessons\.{topic}\b", "a test that names it"),
    (_TEXT, _ON_A_POD, _ON_A_POD, "compiled for a pod: what the compiler says is in grader/chips/stored/"),
)


def places_of(root: Path, name: str) -> list[str]:
    """`file:line: what is there`, by paths from the root; LookupError for a name that is unknown, or in no text."""
    texts = [text for text in sorted(root.glob("solutions/*/*.md")) if text.stem == text.parent.name]
    for text in texts:
        lesson, topic = text.stem, text.stem.partition("_")[2]
        if name == lesson or name == topic not in EXERCISES:
            return _places(root, 1, lesson=lesson, topic=topic, section="the text")
        if section := sections(text).get(name):
            return _places(root, 0, lesson=lesson, topic=topic, name=name, section=section)
    find(name)
    raise LookupError(f"{name} is declared, but no text in solutions/ has a cell marked `:answer: {name}`.")


def _places(root: Path, column: int, **words: str) -> list[str]:
    """A line for each file with something that this column looks for: the first place, and how many there are."""
    return [
        f"{file.relative_to(root)}:{lines[0]}: {what.format(**words)}" + f" ({len(lines)})" * (len(lines) > 1)
        for files, *patterns, what in PLACES
        for file in sorted(root.glob(files.format(**words)))
        if (lines := _lines(file, patterns[column].format(**words)))
    ]


def sections(text: Path) -> dict[str, str]:
    """The exercises of a lesson in order, each with the section of the text that has its answer cell."""
    section, places = "", {}
    for line in text.read_text().splitlines():
        if heading := re.match(r"## (.*)", line):
            section = heading[1]
        if answer := re.match(r":answer: (\w+)", line):
            places[answer[1]] = section
    return places


def _lines(file: Path, pattern: str) -> list[int]:
    text = file.read_text()
    return [text.count("\n", 0, match.start()) + 1 for match in re.finditer(pattern, text, re.MULTILINE)]
