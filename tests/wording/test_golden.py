"""Every kind of finding has a template and an example; how each is worded is in one file, which is reviewed."""

import importlib
import pkgutil
from pathlib import Path

import pytest

import grader.findings
from grader.exercises.exercise import Exercise
from grader.exercises.verdict import Outcome, Verdict
from grader.feedback import explanation
from grader.findings.finding import FINDING_KINDS, Finding, finding_from_json, finding_to_json
from grader.lessons import EXERCISES
from grader.wording.said import TEMPLATES, said

LONGEST = 12  # words of a headline
GOLDEN = Path(__file__).with_name("golden.txt")
MODULES = [
    importlib.import_module(f"grader.findings.{info.name}") for info in pkgutil.iter_modules(grader.findings.__path__)
]
EXAMPLES = {module: getattr(module, "EXAMPLES", ()) for module in MODULES}
OF = {"tables": EXERCISES["cluster_faults"]}  # by module: the exercise whose author's words are told


def kinds_of(module) -> set[type[Finding]]:
    """The kinds that a module defines, but for what others are based on."""
    own = {kind for kind in FINDING_KINDS.values() if kind.__module__ == module.__name__}
    return {kind for kind in own if not (own & set(kind.__subclasses__()))}


def test_every_kind_has_an_example_and_a_template():
    shown = {type(one) for examples in EXAMPLES.values() for one in with_parts(examples)}
    kinds = set().union(*map(kinds_of, MODULES))
    assert {kind.__name__ for kind in kinds - shown} == set(), "these have no example"
    assert {kind.__name__ for kind in kinds - TEMPLATES.keys()} == set(), "these have no template"


def with_parts(findings):
    """Findings, and those that are their fields."""
    for one in findings:
        if isinstance(one, Finding):
            yield one
            yield from with_parts(vars(one).values())
        elif isinstance(one, tuple):
            yield from with_parts(one)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_examples_come_back_from_json(module):
    assert [finding_from_json(finding_to_json(one)) for one in EXAMPLES[module]] == list(EXAMPLES[module])


def exercise_of(module) -> Exercise:
    return OF.get(module.__name__.rpartition(".")[2], EXERCISES["case3"])


def worded(one: Finding, exercise: Exercise) -> str:
    """What a card says of a finding."""
    return f"## {one}\n\n{explanation(Verdict('', (Outcome.missed('', 'values', 4, (one,)),)), exercise)}\n"


def test_every_kind_is_worded_as_reviewed(request):
    """`pytest --rewrite-goldens` writes the file."""
    told = ""
    for module, examples in EXAMPLES.items():
        told += f"# {module.__name__}\n\n" * bool(examples)
        told += "".join(f"{worded(one, exercise_of(module))}\n" for one in examples)
    if request.config.getoption("--rewrite-goldens"):
        GOLDEN.write_text(told)
    assert GOLDEN.read_text() == told


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_headline_is_short_and_a_card_asks_one_question(module):
    words = [said(one, exercise_of(module)) for one in EXAMPLES[module]]
    assert [one.headline for one in words if len(one.headline.split()) > LONGEST] == []
    assert [one.question for one in words if one.question.count("?") > 1] == []
