"""Sentences about answers are in `grader/wording` and nowhere else: what finds them makes data, and compares data."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "grader"
ROOMS = (
    *("findings", "judging", "explaining", "exercises", "programs", "arrays", "processes", "transformer"),
    *("classroom/verdicts", "checking.py", "watching.py", "jax_versions.py", "timetables.py"),
)
COMPARING = {"startswith", "endswith", "removesuffix", "removeprefix"}
WORDS = re.compile(r"[A-Za-z`'’{}0-9]+(?:[,:]? [A-Za-z`'’{}0-9]+){3,}")  # four and more, in a row
VERBS = re.compile(r"\b(is|are|was|were|isn't|aren't|has|have|had|does|do|did|holds?) [a-z{]")
EXAMPLES = "EXAMPLES"  # of findings, with values as they are displayed
# Where sentences are told that are on no verdict: the reports of tools that students call themselves.
OTHERWISE = {
    "processes/jobs.py": "the script's own traceback",
    "processes/launch.py": "the report of `grader.launch`",
    "processes/trial.py": "the report of `grader.trial`",
    "timetables.py": "the report of `grader.draw.timetable`",
}


def is_sentence(text: str) -> bool:
    """Four words and more that begin or end as a sentence does, or have a verb."""
    return (
        not text.startswith("<")
        and bool(WORDS.search(text))
        and bool(re.match(r"[A-Z][a-z]* ", text) or text.rstrip()[-1:] in ".?!" or VERBS.search(text))
    )


def texts(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """The texts in an expression, an f-string as one."""
    if isinstance(node, ast.JoinedStr):
        yield node, "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node, node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from texts(child)


def sentences(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    return ((one, text) for one, text in texts(node) if is_sentence(text))


def told(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The sentences that code returns, yields, keeps under a constant's name, or compares with."""
    raised = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.Raise) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        match node:
            case ast.Return(value=ast.expr() as value) | ast.Yield(value=ast.expr() as value):
                parts = [value]
            case ast.Assign(targets=[ast.Name(id=name), *_], value=value) if name.isupper() and name != EXAMPLES:
                parts = [value] if not _is_pattern(value) else []
            case ast.Compare():
                parts = [node]
            case ast.Call(func=ast.Attribute(attr=name)) if name in COMPARING:
                parts = [*node.args]
            case _:
                parts = []
        for part in parts:
            yield from ((one.lineno, text) for one, text in sentences(part) if id(one) not in raised)


def _is_pattern(value: ast.expr) -> bool:
    """Regular expressions read messages of JAX's."""
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "re.compile"


def files_of(room: str) -> list[Path]:
    place = PACKAGE / room
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


@pytest.mark.parametrize("room", ROOMS)
def test_no_sentence_is_made_or_compared_outside_of_wording(room):
    found = {
        f"{file.relative_to(PACKAGE)}:{line}": text[:60]
        for file in files_of(room)
        if str(file.relative_to(PACKAGE)) not in OTHERWISE
        for line, text in told(ast.parse(file.read_text()))
    }
    assert found == {}


@pytest.mark.parametrize(
    "code, found",
    [
        ("def f(): return 'The result is wrong here.'", True),
        ("def f(): return g(f'It holds {x} of these blocks')", True),
        ("def f(): yield 'Each device holds its own part.'", True),
        ("LEAD = 'In every case yours is the result'", True),
        ("x = words.endswith('is not the expected one')", True),
        ("if words == 'it is not the expected one': pass", True),
        ("def f():\n  'The result is wrong here.'\n  raise ValueError('The result is wrong here.')", False),
        ("FORM = re.compile('It was requested that all of them')", False),
        ("def f(): return 'all_gather', 'several axes in an entry'", False),
    ],
)
def test_a_sentence_is_known_by_its_words(code, found):
    assert bool([*told(ast.parse(code))]) is found
