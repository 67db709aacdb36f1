"""Where an exercise is: its declaration, its place in the lesson's text, and the lesson's review questions."""

from __future__ import annotations

import re
from pathlib import Path

from grader.lessons import find


def places_of(root: Path, name: str) -> list[str]:
    """`file:line: what stands there`, by paths from the root; LookupError for a name that is unknown, or in no text."""
    find(name)
    texts = [file for file in root.glob("solutions/*/*.md") if f":answer: {name}\n" in file.read_text()]
    if not texts:
        raise LookupError(f"{name} is declared, but no text in solutions/ has a cell marked `:answer: {name}`.")
    (text,) = texts
    topic = text.stem.partition("_")[2]
    declaration = rf'^\w+ = [\w.]+\(\s*"{name}"'
    files = sorted((root / "grader" / "lessons" / topic).glob("*.py"))
    places = [(file, line, "the declaration") for file in files for line in _lines(file, declaration)[:1]]
    places += [(text, line, sections(text)[name]) for line in _lines(text, rf"^#+ Exercise.* `{name}`")]
    places += [(root / "grader" / "reviews" / f"{topic}.py", 1, "the review questions")]
    return [f"{file.relative_to(root)}:{line}: {what}" for file, line, what in places if file.exists()]


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
