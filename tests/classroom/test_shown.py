"""What is there behind the walls, and what kept runs and verdicts depend on: computed here by other means."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rota import DAY

from grader.classroom.inside import shown
from grader.classroom.inside.limits import Limits
from grader.classroom.inside.shown import PACKAGE, STAND_IN, files
from grader.classroom.runs.run import perform, workers
from grader.classroom.store import Store, version
from grader.classroom.verdicts.judge import DECIDES, Judge
from grader.classroom.walls import bubblewrap as walls

WITHHELD = ("lessons", "judging", "explaining", "wording", "feedback.py", "certificate.py", "cli.py", "__main__.py")
WORDED = ("wording", "feedback.py")  # which show a verdict, and decide nothing
# They bring a question behind the walls and its answer back, whatever is in them.
TRANSPORT = {
    "classroom/walls/__init__.py",
    "classroom/walls/bubblewrap.py",
    "classroom/walls/templates.py",
}


def names(place: str) -> list[str]:
    """The modules in a place of the package."""
    return [
        ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for file in files(PACKAGE / place)
        if file.suffix == ".py"
    ]


def file_of(module: str) -> Path | None:
    """The file of one of the grader's modules; None for what is no module, but a name in one."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def imported(file: Path) -> set[str]:
    """What a file imports of the grader, wherever in it; a name that it takes from a module may be one itself."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file} imports by a relative name"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.split(".")[0] == "grader"}


def closure(modules: list[str], without: tuple[str, ...] = ()) -> set[str]:
    """The files that a run of these modules may read, at any depth, as paths in the package."""
    seen: set[Path] = set()
    todo = list(modules)
    while todo:
        module = todo.pop()
        file = file_of(module)
        if file is None or file in seen or file.relative_to(PACKAGE).parts[0] in without:
            continue
        seen.add(file)
        packages = [module.rsplit(".", depth)[0] for depth in range(1, module.count(".") + 1)]
        todo += [*imported(file), *packages]
    return {str(file.relative_to(PACKAGE)) for file in seen}


def hashed(*places: Path) -> set[str]:
    return {str(file.relative_to(PACKAGE)) for file in files(*places)}


def test_what_runs_behind_the_walls_is_there_and_in_the_key_of_a_run():
    needed = closure(["grader", *names("classroom/inside")], without=WITHHELD)
    assert {"exercises/script.py", "exercises/exercise.py", "classroom/inside/worker.py"} <= needed
    assert needed <= hashed(*shown.shown())


def test_what_is_shown_of_a_lesson_needs_nothing_that_is_withheld():
    """Its review and its pictures: whatever they import is there, and what that imports, and so on."""
    own = [module for module in names("lessons") if {"review", "pictures"} & {*module.split(".")}]
    needed = closure(own, without=("__init__.py",))  # (the package's own imports nothing before it is asked to)
    assert {"lessons/rings/review.py", "lessons/cost/pictures/ways.py"} <= needed
    assert needed - hashed(*shown.shown()) == {"lessons/__init__.py"}  # which has a stand-in


def test_what_decides_is_in_the_key_of_a_verdict():
    needed = closure([*names("classroom/verdicts"), *names("judging")], without=WORDED)
    assert {"judging/judge.py", "explaining/explained.py", "classroom/verdicts/judge.py"} <= needed
    deciding = [file for file in files(*DECIDES) if file.suffix == ".py"]
    assert not any(module.startswith(("grader.wording", "grader.feedback")) for f in deciding for module in imported(f))
    assert needed - hashed(*shown.common(), *DECIDES) == {*TRANSPORT, "lessons/__init__.py"}  # which finds exercises


KEYS = """
import json, sys
from pathlib import Path
from grader.classroom.grading.keys import declaration, verdict_key
from grader.classroom.inside.limits import Limits
from grader.classroom.runs.run import run_key
from grader.classroom.store import version
from grader.lessons import find

def keys():
    version.cache_clear()
    declaration.cache_clear()
    drawn = [{"source": "grader.draw.matmul_cases()"}]
    return run_key([], Limits()), run_key(drawn, Limits()), verdict_key(find("case3"), 1, [])

before, package, moved = keys(), Path(sys.argv[1]), {}
for file in map(package.joinpath, sys.argv[2:]):
    content = file.read_bytes()
    file.write_bytes(content + (b"\\nchanged = 1" if file.suffix == ".py" else b"\\n# changed"))
    moved[str(file.relative_to(package))] = [now != was for now, was in zip(keys(), before)]
    file.write_bytes(content)
print(json.dumps(moved))
"""


def expected(file: str, declaring: set[str]) -> list[bool]:
    """Whether the key of a run, that of a run that draws a lesson's picture, and that of a verdict is another when this
    file is."""
    top = file.split("/")[0]
    if file.startswith(("classroom/inside/", "classroom/__init__")) or top not in ("classroom", *WITHHELD):
        return [True, True, True]
    decides = top in ("judging", "explaining") or file.startswith("classroom/verdicts/") or file in declaring
    return [False, file.startswith("lessons/matmul/pictures/"), decides]


def one_of_each_folder(changed: list[Path]) -> list[Path]:
    """For a file is shown or withheld by where it lies; each day another, and of the rooms that are files each."""
    folders: dict[Path, list[Path]] = {}
    for file in changed:
        folders.setdefault(file if file.parent == Path() else file.parent, []).append(file)
    return [inside[DAY % len(inside)] for inside in folders.values()]


# (Both keys take a tenth of a second, and there are hundreds of files.)
@pytest.mark.parametrize("some", [pytest.param(list, marks=pytest.mark.slow), one_of_each_folder])
def test_whichever_file_changes_all_that_hangs_on_it_is_done_again_and_nothing_else(tmp_path, some):
    package = shutil.copytree(PACKAGE, tmp_path / "grader", ignore=shutil.ignore_patterns("__pycache__"))
    changed = some(sorted(f.relative_to(package) for f in package.rglob("*") if f.is_file()))
    done = subprocess.run(
        [sys.executable, "-c", KEYS, package, *changed],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    moved = json.loads(done.stdout)
    assert len(moved) == len(changed) > 40
    needed = closure(["grader.lessons.matmul.cases"])
    declaring = {file for file in needed if file.startswith("lessons/") and not file.endswith("__init__.py")}
    assert {file: keys for file, keys in moved.items() if keys != expected(file, declaring)} == {}


def test_a_comment_a_docstring_and_another_lesson_judge_nothing_again(tmp_path):
    """The code of another exercise does not count, nor do words; the code of this one does."""
    package = shutil.copytree(PACKAGE, tmp_path / "grader", ignore=shutil.ignore_patterns("__pycache__"))
    cases, other = package / "lessons/matmul/cases.py", package / "lessons/rings/rings.py"
    script = KEYS.replace("before, package", "print(keys()[2]); sys.exit()\nbefore, package")

    def verdicts_key() -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.check_output([sys.executable, "-c", script, package], cwd=tmp_path, env=environment)

    before = verdicts_key()
    text = cases.read_text()
    assert "Every element of C was a partial sum" in text
    cases.write_text(text.replace("Every element of C was a partial sum", "Each element of C was a partial sum"))
    other.write_text(other.read_text() + "\nchanged = 1\n")
    assert verdicts_key() == before
    cases.write_text(text + "\nchanged = 1\n")
    assert verdicts_key() != before


def test_a_place_without_files_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file in"):
        version(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere.py"):
        version(PACKAGE / "nowhere.py")


@pytest.mark.parametrize("table", ["WITHHELD", "INSIDE", "OF_A_LESSON"])
def test_a_name_of_something_that_is_gone_is_an_error(monkeypatch, table):
    monkeypatch.setattr(shown, table, (*getattr(shown, table), "solutions"))
    with pytest.raises(FileNotFoundError, match="solutions: moved, or renamed"):
        shown.shown.__wrapped__()


LOOK = f"""
import hashlib, importlib, json, pathlib
side = pathlib.Path({walls.SIDE!r}, "grader")
found = [p for p in side.rglob("*") if p.is_file() and p.suffix != ".pyc"]
there = {{str(p.relative_to(side)): hashlib.sha256(p.read_bytes()).hexdigest() for p in found}}
names = "grader.judging grader.judging.judge grader.cli grader.classroom.store grader.lessons.matmul.cases".split()
gone = []
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        gone.append(name)
print(json.dumps([there, gone == names]))
"""


USE = """
import grader
print(len(grader.review("08_rings", seed=1).questions), grader.draw.table({"row": {"column": "1"}}))
"""


def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.skipif(bool(walls.missing()), reason="there are no walls here")
def test_behind_real_walls_the_shown_files_are_there_and_no_others():
    run = perform([{"source": LOOK}], Limits(cell_seconds=20, seconds=60), Store(None))
    there, gone = json.loads("".join(output["text"] for output in run.outputs[0]))
    wanted = {str(file.relative_to(PACKAGE)): digest(file) for file in files(*shown.shown())}
    assert there == {**wanted, "lessons/__init__.py": digest(STAND_IN)}
    assert gone


@pytest.mark.skipif(bool(walls.missing()), reason="there are no walls here")
def test_behind_real_walls_a_lesson_asks_and_draws():
    run = perform([{"source": USE}], Limits(cell_seconds=20, seconds=60), Store(None))
    said = "".join(output["text"] for output in run.outputs[0])
    assert said.startswith("3 ") and "column" in said, said


def test_what_templates_fork_is_in_the_folder_inside():
    """They are named, since what they import is not to be imported here."""
    judge = Judge()
    for template in (workers(), judge.evaluators, judge.launchers, judge.compilers):
        tree = ast.parse((PACKAGE / "classroom/inside" / f"{template.role}.py").read_text())
        assert "ROLE" in {target.id for node in tree.body if isinstance(node, ast.Assign) for target in node.targets}
