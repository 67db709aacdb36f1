"""A public name means one thing in the whole house."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "grader"
# Called by their module's name: what starts a process, what a template imports before it forks, and one of each kind.
ENTRIES = {"main", "warm", "ROLE", "EXAMPLES"}


def is_command(node: ast.AST) -> bool:
    """Commands are named for those who type them."""
    return isinstance(node, ast.FunctionDef) and any(ast.unparse(d).endswith(".command()") for d in node.decorator_list)


def names_of(file: Path) -> set[str]:
    """The public functions, classes and constants that a module defines."""
    names: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not is_command(node):
            names.add(node.name)
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names - ENTRIES if not name.startswith("_")}


def test_no_public_name_is_defined_twice():
    lessons = PACKAGE / "lessons"  # whose names are read within a lesson
    files = [file for file in PACKAGE.rglob("*.py") if not file.is_relative_to(lessons)]
    assert {"judging", "classroom"} <= {file.relative_to(PACKAGE).parts[0] for file in files}
    modules = defaultdict(list)
    for file in files:
        for name in names_of(file):
            modules[name].append(str(file.relative_to(PACKAGE)))
    assert {name: places for name, places in modules.items() if len(places) > 1} == {}


def test_a_name_is_found_however_it_is_defined(tmp_path):
    file = tmp_path / "module.py"
    file.write_text(
        "ONE = 1\ntwo: int = 2\ndef three(): four = 4\nclass Five: six = 6\n_seven = 7\ndef main(): ...\n"
        "@students.command()\ndef eight(): ...\n@functools.cache\ndef nine(): ...\n"
    )
    assert names_of(file) == {"ONE", "two", "three", "Five", "nine"}
