"""The exercises of every lesson, four ways: solved, mistaken, solved otherwise, untouched."""

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from answering import answered, asked, define, given, mistaken, verdict
from rota import in_turn, parts

from grader.classroom.course.demo import all_alternatives
from grader.exercises.as_json import question_from_json, to_json
from grader.exercises.collecting import asks
from grader.exercises.forms import TableExercise
from grader.feedback import explanation
from grader.judging.pods import POD
from grader.lessons import EXERCISES

ROOT = Path(__file__).parents[2]
LESSONS = sorted(p.stem for p in (ROOT / "solutions").glob("*/*.md") if p.stem == p.parent.name)


ASKED = {name: lesson for lesson in LESSONS for name in asked(lesson)}
LESSON_OF = {name: lesson for name, lesson in ASKED.items() if name in EXERCISES}
PAIRS = [pytest.param(lesson, EXERCISES[name], id=f"{lesson}-{name}") for name, lesson in LESSON_OF.items()]
# Programs take a while to compile, and processes to wait for each other. Nbval runs their solutions, on two meshes and
# a square case: a lesson each day, and in CI, by `make notebooks`, all. Of the wrong and the other right answers
# each day tries a part; `make slow` tries all.


def rotated(answers, a_day):
    """Parameters for answers of all exercises, in the notebooks' order: about `a_day` are tried, and all tables."""
    answers, place = list(answers), itertools.count()
    is_table = {name: isinstance(EXERCISES[name], TableExercise) for _, name, _, _ in answers}
    every = parts(sum(not is_table[name] for _, name, _, _ in answers), a_day)
    for lesson, name, number, answer in answers:
        marks = [] if is_table[name] else in_turn(next(place), every)
        yield pytest.param(lesson, name, answer, id=f"{lesson}-{name}-{number}", marks=marks)


GRADED = [
    pytest.param(
        lesson,
        EXERCISES[name],
        thorough,
        id=f"{lesson}-{name}-{'graded' if thorough else 'notebook'}",
        marks=[pytest.mark.slow] * (not thorough or EXERCISES[name].costly),
    )
    for name, lesson in LESSON_OF.items()
    for thorough in (False, True)
]
MISTAKES = list(
    rotated(
        (
            (lesson, name, mistake.name, mistake)
            for name, lesson in LESSON_OF.items()
            for mistake in EXERCISES[name].mistakes
        ),
        a_day=16,
    )
)
ALTERNATIVES = list(
    rotated(
        (
            (lesson, name, number, source)
            for lesson in LESSONS
            for name, sources in all_alternatives(ROOT / "solutions" / lesson / "alternatives.py").items()
            for number, source in enumerate(sources)
        ),
        a_day=5,
    )
)


def judged(exercise, answer, *how):
    """The verdict on an answer. Where a pod's compiler is not here, nor the program in the store, nobody can tell."""
    found = verdict(exercise, answer, *how)
    if found.failure and found.failure.open and found.failure.check == POD:
        pytest.skip(explanation(found, exercise))
    return found


def test_to_import_the_lessons_starts_no_backend():
    """Whoever imports them may still choose how many devices there are."""
    code = "import grader.lessons; from grader.jax_versions import has_backend; assert not has_backend()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=120)


def test_what_every_exercise_asks_crosses_the_wire():
    """As in grading, where a student's answers are worked out in another process."""
    for exercise in EXERCISES.values():
        told = json.dumps(to_json(asks(exercise, exercise.draw_cases(5, thorough=True))))
        assert json.dumps(to_json(question_from_json(json.loads(told)))) == told, exercise.name


def test_every_exercise_stands_in_a_lesson():
    assert set(ASKED) == set(EXERCISES), "declared in grader/lessons/, or asked in a text of solutions/, but not both"


@pytest.mark.parametrize("lesson, exercise, thorough", GRADED)
def test_the_model_solution_earns_everything(lesson, exercise, thorough):
    found = judged(exercise, answered("solutions", lesson)[exercise.name], 3 if thorough else 0, thorough)
    assert found.passed, explanation(found, exercise)
    assert found.points == found.worth == exercise.points


@pytest.mark.parametrize("lesson, name, source", ALTERNATIVES)
def test_a_right_solution_written_differently_earns_everything(lesson, name, source):
    space = given(lesson)
    define(source, space)
    found = judged(EXERCISES[name], space[name])
    assert found.passed, explanation(found)
    assert found.points == EXERCISES[name].points


def letters(words):
    """Without punctuation and line breaks: a card ends a sentence before its question, where the author has a colon."""
    return " ".join(re.findall(r"\w+", words.casefold()))


@pytest.mark.parametrize("lesson, name, mistake", MISTAKES)
def test_a_mistake_is_rejected_by_its_own_name_and_words(lesson, name, mistake):
    exercise = EXERCISES[name]
    found = judged(exercise, mistaken(exercise, mistake))
    assert found.failure, f"{mistake.name} earns all points: no case catches it. Add a case, or delete the mistake."
    assert found.points < exercise.points or found.failure.check == "way"  # which is told, and earns nothing
    assert found.mistake == mistake.name
    assert letters(mistake.words) in letters(explanation(found, exercise))


@pytest.mark.slow
@pytest.mark.parametrize("lesson, name, mistake", [p for p in MISTAKES if len(p.values[2].spellings()) > 1])
def test_a_mistake_is_rejected_with_shard_maps_check_on_too(lesson, name, mistake):
    exercise = EXERCISES[name]
    for spelled in mistake.spellings():
        found = verdict(exercise, spelled)
        assert found.points < exercise.points
        assert found.mistake in {m.name for m in exercise.mistakes}


@pytest.mark.parametrize("lesson, exercise", PAIRS)
def test_the_untouched_starter_fails_politely(lesson, exercise):
    found = verdict(exercise, answered("course", lesson)[exercise.name])
    assert found.points == 0 and found.worth == exercise.points
    assert "still the starter" in (words := explanation(found)) and "Traceback" not in words


def test_no_two_mistakes_of_an_exercise_say_the_same():
    for exercise in EXERCISES.values():
        said = [m.words for m in exercise.mistakes]
        assert len(set(said)) == len(said)
        assert said, f"{exercise.name} knows no mistake"


def sentences(exercise):
    words = {mistake.name: mistake.words for mistake in exercise.mistakes}
    if isinstance(exercise, TableExercise):
        words |= exercise.options | {f"… {row} …": asked for row, asked in exercise.questions.items()}
    return words


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_sentence_to_a_student_is_as_reviewed(lesson, request):
    """The golden file is the reviewed prose; `pytest --rewrite-goldens` writes it anew."""
    golden = Path(__file__).parent / "goldens" / f"{lesson}.json"
    words = {name: sentences(EXERCISES[name]) for name in asked(lesson)}
    if request.config.getoption("--rewrite-goldens"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(json.dumps(words, indent=1, ensure_ascii=False) + "\n")
    assert json.loads(golden.read_text()) == words, f"if meant: -k 'reviewed and {lesson}' --rewrite-goldens"
