"""The book's page for authors: its examples are run, and every limit and option that it names is one."""

import doctest
import inspect
import re
from dataclasses import fields
from pathlib import Path

from grader.exercises import limits
from grader.exercises.case import Case, Draw

PAGE = Path(__file__).parents[1] / "book" / "authors.md"


def test_the_examples_are_right():
    assert doctest.testfile(str(PAGE), module_relative=False).failed == 0


def test_what_it_names_is_there_and_what_draw_gives_is_named():
    text = PAGE.read_text()
    assert set(re.findall(r"^\| `(\w+)\(", text, re.MULTILINE)) <= set(vars(limits))
    assert set(re.findall(r"^\| `(\w+)=", text, re.MULTILINE)) <= {field.name for field in fields(Case)}
    given = [name for name, _ in inspect.getmembers(Draw, inspect.isfunction) if not name.startswith("_")]
    assert [name for name in given if name != "values" and f"{name}(" not in text] == []
