"""The size of the code, against the budget that it is held to: `python bench/lines.py`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
GRADER, TESTS = ROOT / "grader", ROOT / "tests"
EXPLAINING = ("judging", "explaining", "findings", "wording")
ONLY_FOR_THEM = ()
WORDED = ("wording", "lessons", "classroom", "draw", "replays", "guide", "hlo", "chips")  # rooms that show something
CLOCKS = re.compile(r"\btime\.(process_time|monotonic|perf_counter|time)\b")
SENTENCE = re.compile(r"[A-Z][^\n]* [^\n]* [^\n]* [^\n]*[.?!]$")


@dataclass(frozen=True)
class Row:
    what: str
    found: int
    goal: int


def lines(files: Iterable[Path]) -> int:
    return sum(len(file.read_text().splitlines()) for file in files)


def python(folder: Path, *, but: str = "") -> list[Path]:
    """The Python files of a folder, without those of one of its subfolders."""
    return [file for file in folder.rglob("*.py") if not but or but not in file.relative_to(folder).parts]


def fullest() -> int:
    """The most Python files side by side in a folder of `judging` and its kin."""
    folders = {file.parent for room in EXPLAINING for file in python(GRADER / room)}
    return max(len(list(folder.glob("*.py"))) for folder in folders)


def returning_sentences() -> list[str]:
    """The functions outside of the rooms that show something which return or yield a sentence."""
    found = []
    for file in python(GRADER):
        if file.relative_to(GRADER).parts[0] in WORDED or file.parent == GRADER:
            continue
        for function in ast.walk(ast.parse(file.read_text())):
            shows = isinstance(function, ast.FunctionDef) and function.name in ("__repr__", "_repr_html_")
            if isinstance(function, ast.FunctionDef) and not shows and any(map(_is_sentence, _given(function))):
                found.append(f"{file.relative_to(ROOT)}:{function.lineno} {function.name}")
    return found


def _given(function: ast.FunctionDef) -> Iterable[ast.AST]:
    for node in ast.walk(function):
        if isinstance(node, (ast.Return, ast.Yield)) and node.value is not None:
            yield from ast.walk(node.value)


def _is_sentence(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(SENTENCE.match(node.value))


def clocks() -> int:
    """Files that look at a clock where an answer is explained."""
    return sum(bool(CLOCKS.search(file.read_text())) for room in EXPLAINING for file in python(GRADER / room))


def budget() -> list[Row]:
    explaining = [file for room in EXPLAINING for file in python(GRADER / room)]
    explaining += [GRADER / file for file in ONLY_FOR_THEM if (GRADER / file).exists()]
    answers = [*(TESTS / "answers").glob("*.jsonl")]
    strangers = [file for file in python(TESTS / "strangers") if not file.name.startswith("test_")]  # their programs
    return [
        Row("grader/ without lessons/, lines", lines(python(GRADER, but="lessons")), 36_000),
        Row("judging, explaining, findings, wording, lines", lines(explaining), 8_000),
        Row("their fullest folder, files", fullest(), 20),
        Row("tests/ without recorded answers and programs, lines", lines(python(TESTS)) - lines(strangers), 30_000),
        Row("recorded answers, kB", sum(file.stat().st_size for file in answers) // 1000, 2_000),
        Row("functions that return a sentence elsewhere", len(returning_sentences()), 0),
        Row("clocks where answers are explained", clocks(), 0),
    ]


def main() -> None:
    for row in budget():
        print(f"{row.what:<55}{row.found:>8,} of {row.goal:,}{'' if row.found <= row.goal else '  (over)'}")
    for where in returning_sentences():
        print(" ", where)


if __name__ == "__main__":
    main()
