"""The cases of an exercise notice every small change of its model solution, but those that change nothing.

`equivalents/LESSON.json` holds the changes that pass: each was read, and is right by the exercise's text (the same in
other words, or what the text leaves open). One that is not there is a wrong answer that passes: let a case decide. If
it is right, `pytest -k "small_change and EXERCISE" --rewrite-goldens` puts it there.
"""

import json
import re
from pathlib import Path

import pytest
from answering import LESSONS, asked, is_accepted, notebook
from apart import Apart, Lost
from mutants import mutants
from rota import DAY, in_turn, parts

from grader.exercises.forms import ProcessExercise, TableExercise, TimetableExercise
from grader.lessons import EXERCISES

A_DAY, SHARE = 24, 4  # exercises, and of how many of their changes one is tried; a change takes a quarter of a second
# No function; seconds for each change; loops that never end, most of them.
NOT_TRIED = TableExercise, ProcessExercise, TimetableExercise
RECORD = Path(__file__).parent / "equivalents"
WRITTEN = [(lesson, name) for lesson in LESSONS for name in asked(lesson) if not isinstance(EXERCISES[name], NOT_TRIED)]
EVERY = parts(len(WRITTEN), A_DAY)
SECONDS = 8  # for a change: some never end
TURN = DAY // EVERY % SHARE  # of the changes: the next one when every exercise has had its turn


@pytest.fixture(scope="module")
def apart():
    """The process in which changed answers are judged."""
    one = Apart(SECONDS)
    yield one
    one.end()


def passes(apart, *asked):
    """Whether a changed answer is accepted; one that is lost is not."""
    try:
        return apart.call(is_accepted, *asked)
    except Lost:
        return False


def cell_of(lesson, name):
    """The answer cell of an exercise in the solved notebook."""
    return next(cell.source for cell in notebook("solutions", lesson).cells if cell.metadata.get("answer") == name)


@pytest.mark.parametrize(
    "lesson, name",
    [pytest.param(*pair, id=pair[1], marks=in_turn(place, EVERY)) for place, pair in enumerate(WRITTEN)],
)
def test_cases_notice_every_small_change_that_matters(lesson, name, apart, request):
    file = RECORD / f"{lesson}.json"
    record = json.loads(file.read_text()) if file.exists() else {}
    rewrite = request.config.getoption("--rewrite-goldens")
    every = list(mutants(cell_of(lesson, name)))
    tried = every if rewrite else every[TURN::SHARE]
    accepted = [mutant.change for mutant in tried if passes(apart, lesson, name, mutant.source)]
    if rewrite:
        record = {exercise: accepted if exercise == name else record.get(exercise) for exercise in asked(lesson)}
        record = {exercise: changes for exercise, changes in record.items() if changes}
        file.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    assert [change for change in accepted if change not in record.get(name, [])] == []


def test_a_mutant_has_one_change_and_says_which():
    source = """
def shifted(block, axis="x"):
    \"\"\"A docstring stays.\"\"\"
    if len(block) <= 2:
        raise ValueError("a text stays")
    return psum(block[1:], "x", tiled=True)
"""
    said = [re.search(r"\[([^\[]* -> [^\]]*)\]", mutant.change) for mutant in mutants(source)]
    assert {found[1] for found in said if found} >= {
        "<= -> <",
        "2 -> 3",
        "2 -> 1",
        "psum -> pmean",
        ", tiled=True -> ",
        "True -> False",
        "1 -> 0",
    }
    assert all("A docstring stays." in mutant.source for mutant in mutants(source))
