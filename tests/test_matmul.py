"""The exercises of every lesson, four ways: solved, mistaken, solved otherwise, untouched."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import nbformat
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.answers import asks, collect
from grader.classroom.demo import all_alternatives
from grader.judge import judge
from grader.lessons import EXERCISES

LESSON = Path(__file__).parents[1] / "solutions" / "07_matmul"
NAMES = {"jax": jax, "jnp": jnp, "np": np, "P": P, "NamedSharding": NamedSharding, "AxisType": AxisType}


def solved(notebook: Path) -> dict[str, object]:
    """What the answer cells of a notebook define, by exercise."""
    space = dict(NAMES)
    for cell in nbformat.read(notebook, 4).cells:
        if cell.metadata.get("answer"):
            exec(cell.source, space)
    return space


SOLUTIONS = solved(LESSON / "07_matmul.ipynb")
STARTERS = solved(LESSON.parents[1] / "course" / "07_matmul" / "07_matmul.ipynb")
ALTERNATIVES = [(name, k, source) for name, sources in all_alternatives(LESSON / "alternatives.py").items()
                for k, source in enumerate(sources)]
MISTAKES = [(e, m) for e in EXERCISES.values() for m in e.mistakes]


def verdict(exercise, answer, seed=7, thorough=False):
    cases = exercise.draw_cases(seed, thorough=thorough)
    return judge(exercise, cases, collect(exercise.form, asks(exercise, cases), answer))


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda e: e.name)
def test_the_model_solution_earns_everything(exercise):
    for seed in (0, 3):
        found = verdict(exercise, SOLUTIONS[exercise.name], seed, thorough=True)
        assert found.passed, found.words
        assert found.points == found.worth == exercise.points


@pytest.mark.parametrize("name, number, source", ALTERNATIVES, ids=[f"{name}-{k}" for name, k, _ in ALTERNATIVES])
def test_a_right_solution_written_differently_earns_everything(name, number, source):
    space = dict(NAMES)
    exec(source, space)
    found = verdict(EXERCISES[name], space[name], thorough=True)
    assert found.passed, found.words
    assert found.points == EXERCISES[name].points


def mistaken(exercise, mistake):
    """The answer that makes a mistake: for a table, every row that the mistake is about."""
    if exercise.form != "table":
        return mistake.wrong
    cases = exercise.draw_cases()
    wrong = {c.key: mistake.wrong(**c.arguments) for c in cases}
    return {c.key: exercise.reference(**c.arguments) if wrong[c.key] is None else wrong[c.key] for c in cases}


@pytest.mark.parametrize("exercise, mistake", MISTAKES, ids=[f"{e.name}-{m.name}" for e, m in MISTAKES])
def test_a_mistake_is_rejected_by_its_own_name_and_words(exercise, mistake):
    found = verdict(exercise, mistaken(exercise, mistake))
    assert found.points < exercise.points
    assert found.mistake == mistake.name
    assert mistake.words in found.words


@pytest.mark.parametrize("exercise, mistake", [p for p in MISTAKES if p[0].form == "program"],
                         ids=[f"{e.name}-{m.name}" for e, m in MISTAKES if e.form == "program"])
def test_a_mistake_is_rejected_with_shard_maps_check_on_too(exercise, mistake):
    for spelled in mistake.spellings():
        found = verdict(exercise, spelled)
        assert found.points < exercise.points
        assert found.mistake in {m.name for m in exercise.mistakes}


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda e: e.name)
def test_the_untouched_starter_fails_politely(exercise):
    found = verdict(exercise, STARTERS[exercise.name])
    assert found.points == 0 and found.worth == exercise.points
    assert "still the starter" in found.words
    assert "Traceback" not in found.words


def test_no_two_mistakes_of_an_exercise_say_the_same():
    for exercise in EXERCISES.values():
        said = [m.words for m in exercise.mistakes]
        assert len(set(said)) == len(said)
        assert len(said) >= 3, f"{exercise.name} knows too few mistakes"


def test_every_sentence_to_a_student_is_as_reviewed(request):
    """The golden file is the reviewed prose; `pytest --rewrite-goldens` writes it anew."""
    golden = Path(__file__).parent / "goldens" / "words.json"
    words = {e.name: {m.name: m.words for m in e.mistakes} for e in EXERCISES.values()}
    if request.config.getoption("--rewrite-goldens"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(json.dumps(words, indent=1, ensure_ascii=False) + "\n")
    assert json.loads(golden.read_text()) == words
