"""What `grader new` writes works as it is, in every form; in the course it stands where it belongs."""

import importlib.util

import mini
import nbformat
import pytest
from answering import define, mistaken, verdict

from grader.classroom.course.build import build
from grader.classroom.course.new import begin_exercise
from grader.feedback import explanation
from grader.lessons import EXERCISES

TABLE = "| lesson | |\n|---|---|\n| `01_mini` | a |\n{0}| `23_later` | b |\n\nEnd.\n"


@pytest.fixture
def root(tmp_path):
    mini.built_course(tmp_path)
    (tmp_path / "README.md").write_text(TABLE.format(""))
    return tmp_path


def declared(root, name):
    spec = importlib.util.spec_from_file_location(name, root / "grader" / "lessons" / "mine" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)[name]


def answers(root, folder):
    """What the answer cells of the new lesson define, and what its first cell does."""
    space = {}
    cells = nbformat.read(root / folder / "22_mine" / "22_mine.ipynb", 4).cells
    define(next(cell.source for cell in cells if cell.source.startswith("import jax")), space)
    for cell in cells:
        if cell.metadata.get("answer"):
            define(cell.source, space)
    return space


@pytest.mark.parametrize("form", ["program", "function", "table", pytest.param("processes", marks=pytest.mark.slow)])
def test_a_new_exercise_is_solved_mistaken_and_open_as_it_should_be(root, form, monkeypatch):
    begin_exercise(root, "22_mine", "center", form)
    exercise = declared(root, "center")
    monkeypatch.setitem(EXERCISES, "center", exercise)
    build(root, ["22_mine"])
    assert verdict(exercise, answers(root, "solutions")["center"], thorough=True).passed
    assert "still the starter" in explanation(verdict(exercise, answers(root, "course")["center"]))
    for mistake in exercise.mistakes:
        assert verdict(exercise, mistaken(exercise, mistake)).mistake == mistake.name
    heading = f"### Exercise `center` · core · {exercise.points:g} point"
    assert heading in (root / "solutions" / "22_mine" / "22_mine.md").read_text()


def test_the_next_one_stands_behind_it(root):
    begin_exercise(root, "22_mine", "center", "program")
    assert (root / "README.md").read_text() == TABLE.format("| `22_mine` | say here what one can do afterward |\n")
    lesson = root / "solutions" / "22_mine" / "22_mine.md"
    files = begin_exercise(root, "22_mine", "scale", "table")
    assert {file.name for file in files} == {"22_mine.md", "__init__.py", "scale.py"}
    text = lesson.read_text()
    assert text.index("## 1 · Center") < text.index(":answer: center") < text.index("## The answer")
    assert "`scale` · stretch ·" in text
    assert text.index("## Going further") < text.index("## 2 · Scale") < text.index(":check: scale")
    package = root / "grader" / "lessons" / "mine"
    assert "in the order of the text: `center`, `scale`." in (package / "__init__.py").read_text()
    assert (package / "scale.py").read_text().startswith('"""§ 2:')


@pytest.mark.parametrize(
    ("lesson", "name", "form", "says"),
    [
        ("mine", "center", "program", "named like 07_matmul"),
        ("22_mine", "Center", "program", "named like case3"),
        ("22_mine", "lambda", "program", "named like case3"),
        ("22_mine", "center", "essay", "those of program, function, table, processes"),
        ("22_mine", "case3", "program", "`grader where case3`"),
        ("22_mini", "center", "program", "that of the lesson 01_mini"),
    ],
)
def test_a_name_that_will_not_do_is_refused_and_nothing_is_written(root, lesson, name, form, says):
    before = sorted(root.rglob("*"))
    with pytest.raises(ValueError, match=says):
        begin_exercise(root, lesson, name, form)
    assert sorted(root.rglob("*")) == before
