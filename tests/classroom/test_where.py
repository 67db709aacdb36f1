"""`grader where NAME`: an author is led to the exercise's declaration, its text, and the questions about it."""

import re
from pathlib import Path

import pytest

from grader.classroom.course import where
from grader.classroom.course.where import places_of
from grader.lessons import EXERCISES

ROOT = Path(__file__).parents[2]


def files(places: list[str]) -> dict[str, str]:
    """What is there, by file."""
    return {file: what for file, _, what in (place.split(":", 2) for place in places)}


def test_an_exercise_is_declared_taught_asked_about_and_tested():
    declaration, text, *others = places_of(ROOT, "case1_out")
    assert re.fullmatch(r"grader/lessons/matmul/\w+\.py:\d+: declared", declaration)
    assert re.fullmatch(r"solutions/07_matmul/07_matmul\.md:\d+: \d+ · .*", text)
    assert {
        "grader/lessons/matmul/pictures/products.py": " a picture of the lesson",
        "tests/lessons/goldens/07_matmul.json": " what mistakes say",
    }.items() <= files(others).items()
    assert files(others)["tests/answers/07_matmul.jsonl"].startswith(" recorded answers (")
    assert "grader/lessons/rings/review.py:13: review questions (2)" in places_of(ROOT, "ring_all_gather")
    assert files(places_of(ROOT, "case3"))["tests/classroom/test_where.py"].startswith(" a test that names it")


def test_a_lesson_has_the_same_places_by_its_number_and_by_its_topic():
    found = files(places_of(ROOT, "real_chips"))
    assert places_of(ROOT, "21_real_chips") == places_of(ROOT, "real_chips")
    assert {
        "grader/lessons/real_chips/memory.py",
        "grader/lessons/real_chips/review.py",
        "grader/lessons/real_chips/pictures/pods.py",
        "tests/lessons/goldens/21_real_chips.json",
        "tests/lessons/real_chips/pictures/test_pods.py",
    } <= set(found)
    assert "grader/chips/stored/" in found["solutions/21_real_chips/21_real_chips.md"]


def test_recorded_answers_are_counted(tmp_path):
    for file, text in {
        "solutions/07_matmul/07_matmul.md": "## 8 · Case 3\n### Exercise `case3`\n:answer: case3\n",
        "tests/answers/07_matmul.jsonl": '{}\n{"exercise":"case1"}\n' + 2 * '{"exercise":"case3"}\n',
    }.items():
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text)
    assert places_of(tmp_path, "case3") == [
        "solutions/07_matmul/07_matmul.md:2: 8 · Case 3",
        "tests/answers/07_matmul.jsonl:3: recorded answers (2)",
    ]
    assert places_of(tmp_path, "matmul")[-1] == "tests/answers/07_matmul.jsonl:2: recorded answers (3)"


def test_every_declaration_and_every_text_names_the_exercise(monkeypatch):
    monkeypatch.setattr(where, "PLACES", where.PLACES[:2])
    for name in EXERCISES:
        declaration, text = places_of(ROOT, name)
        for place in (declaration, text):
            file, line, _ = place.split(":", 2)
            assert name in (ROOT / file).read_text().splitlines()[int(line) - 1], place


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(LookupError, match="Did you mean case3"):
        places_of(ROOT, "case33")


def test_an_exercise_without_a_text_is_told_so(tmp_path):
    with pytest.raises(LookupError, match=":answer: case3"):
        places_of(tmp_path, "case3")
