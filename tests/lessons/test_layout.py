"""A lesson's declarations: a package named as the lesson is, whose files say which sections of the text they cover."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from test_rooms import imports

from grader.classroom.course.where import sections
from grader.lessons import EXERCISES

ROOT = Path(__file__).parents[2]
LESSONS = ROOT / "grader" / "lessons"
TEXTS = {
    text.stem.partition("_")[2]: text for text in sorted(ROOT.glob("solutions/*/*.md")) if text.stem == text.parent.name
}


def files(lesson: str) -> list[Path]:
    return sorted(file for file in (LESSONS / lesson).glob("*.py") if file.stem not in ("__init__", "review"))


def docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text())) or ""


@cache
def declared(file: Path) -> list[str]:
    """The exercises that are declared in a file: assigned to their name, not imported."""
    assigned = [node.targets[0] for node in ast.parse(file.read_text()).body if isinstance(node, ast.Assign)]
    return [name.id for name in assigned if isinstance(name, ast.Name) and name.id in EXERCISES]


def numbers(said: str) -> set[int]:
    """The sections in "§ 1–3, 5": 1, 2, 3 and 5."""
    bounds = [(int(first), int(last or first)) for first, last in re.findall(r"(\d+)(?:–(\d+))?", said)]
    return {k for first, last in bounds for k in range(first, last + 1)}


def test_there_is_one_package_for_each_lesson():
    assert {file.parent.name for file in LESSONS.glob("*/__init__.py")} == {
        *TEXTS,
        "numpy_warm_up",
    }  # what lesson 01 asks of
    assert {file.stem for file in LESSONS.glob("*.py")} == {"__init__", "shared"}


@pytest.mark.parametrize("lesson", TEXTS)
def test_the_exercises_of_a_package_are_those_of_its_lesson(lesson):
    assert sorted(name for file in files(lesson) for name in declared(file)) == sorted(sections(TEXTS[lesson]))


@pytest.mark.parametrize("lesson", TEXTS)
def test_a_file_declares_exercises_or_serves_one_that_does(lesson):
    served = {module for file in files(lesson) if declared(file) for module in imports(file)}
    for file in files(lesson):
        module = f"grader.lessons.{lesson}.{file.stem}"
        assert declared(file) or any(name.startswith(f"{module}.") for name in served), file


def test_a_review_and_a_picture_load_no_declarations():
    """A picture takes no time for exercises; and where hand-ins run, there are none."""
    code = "import sys, grader.draw, grader.guide.reviews as r; r.makers(); grader.draw.table; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = [module.split(".") for module in done.stdout.split() if module.startswith("grader.lessons.")]
    assert {module[3] for module in loaded if len(module) > 3} == {"review", "pictures"}


@pytest.mark.parametrize("lesson", TEXTS)
def test_lessons_share_only_what_is_in_shared(lesson):
    allowed = (f"grader.lessons.{lesson}.", "grader.lessons.shared.")
    for file in files(lesson):
        others = [module for module in imports(file) if module.startswith("grader.lessons")]
        assert all(module.startswith(allowed) for module in others), file
        assert not [module for module in others if module.rpartition(".")[2].startswith("_")], f"private, in {file}"


@pytest.mark.parametrize("lesson", TEXTS)
def test_a_file_says_which_sections_it_covers(lesson):
    """§ and numbers, in the first paragraph; sections without an exercise may be among them."""
    section = {name: int(title.partition(" ")[0]) for name, title in sections(TEXTS[lesson]).items()}
    for file in files(lesson):
        said = numbers(" ".join(re.findall(r"§ ([\d–, ]+)", docstring(file).partition("\n\n")[0])))
        due = {section[name] for name in declared(file)}
        assert said & set(section.values()) == due, f"{file}: its docstring says § {said}, its exercises are in {due}"


@pytest.mark.parametrize("lesson", TEXTS)
def test_a_package_names_its_files_in_the_order_of_the_text(lesson):
    order = list(sections(TEXTS[lesson]))
    first = {file.stem: min(map(order.index, declared(file)), default=len(order)) for file in files(lesson)}
    assert re.findall(r"`(\w+)`", docstring(LESSONS / lesson / "__init__.py")) == sorted(first, key=first.get)
