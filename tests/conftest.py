"""Every test in this process sees eight devices; walls stand wherever they can be built."""

import gc
import os
import re
from pathlib import Path

import needs
import pytest
from rota import DAY

from grader.arrays.devices import eight_devices
from grader.classroom.walls.bubblewrap import WITHOUT
from grader.explaining.explainer import Explainer
from grader.jax_versions import QUICK

# Each program runs once. (What is started here keeps the emitters: the stored outputs of notebooks have their digits.)
UNOPTIMIZED = "--xla_backend_optimization_level=0"
FLAGS = " ".join(f"--{option}={value!s}".lower() for option, value in QUICK.items())
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}"
eight_devices()
os.environ["XLA_FLAGS"] = os.environ["XLA_FLAGS"].replace(FLAGS, UNOPTIMIZED)
os.environ.setdefault(WITHOUT, "1")
Explainer.forgiving = False
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """The small course of `mini`, built."""
    import mini  # not above: the student's side is tested where there is no nbgrader

    return mini.built_course(tmp_path_factory.mktemp("course"))


@pytest.fixture(scope="module")
def browser():
    """A real one, as `labs.chromium` starts it."""
    from labs import chromium

    with chromium() as opened:
        yield opened


def pytest_addoption(parser):
    parser.addoption("--rewrite-goldens", action="store_true", help="write the reviewed sentences anew")


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"Of what takes turns: the part of day {DAY} (TEST_DAY=N: of another).")


# What takes longest, longest first: `make test` runs several files at once, and no long one should be left to the end.
NOTEBOOK = ".ipynb"
LONG = ("whole", "classroom", "processes", NOTEBOOK, "tests", "fuzz", "replays", "judging", "lessons")


def pytest_runtest_setup(item):
    for mark in item.iter_markers("needs"):
        for why in filter(None, map(needs.lacking, mark.args)):
            pytest.skip(why)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.suffix != NOTEBOOK:  # solutions/conftest.py has those
            item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=_turn)  # stable: each keeps its place among its like


def pytest_collection_finish():
    """What all tests together are made of is no garbage: it is not looked through again and again."""
    gc.freeze()


def _turn(item) -> int:
    room = NOTEBOOK if item.path.suffix == NOTEBOOK else item.path.parent.name
    return LONG.index(room) if room in LONG else len(LONG)


def _group(item) -> str:
    """What one process tests: a file, or one lesson's exercises."""
    lesson = re.search(r"\[(\d\d_\w+)", item.name)
    return lesson[1] if lesson and item.path.stem == "test_exercises" else item.path.stem
