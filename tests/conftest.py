"""Every test in this process sees eight devices; walls stand wherever they can be built."""

import os
import re
from pathlib import Path

import pytest
from rota import WEEK

from grader.arrays.devices import eight_devices
from grader.classroom.walls.bubblewrap import WITHOUT

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"  # each runs once
eight_devices()
os.environ.setdefault(WITHOUT, "1")
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """The small course of `mini`, built."""
    import mini  # not above: the student's side is tested where there is no nbgrader

    from grader.classroom.course.build import build

    root = mini.make_course(tmp_path_factory.mktemp("course"))
    build(root)
    return root


def pytest_addoption(parser):
    parser.addoption("--rewrite-goldens", action="store_true", help="write the reviewed sentences anew")


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"Wrong and other right answers: the part of week {WEEK} (TEST_WEEK=N: of another).")


# Groups that take longest, longest first: `make test` runs several at once, and none should be left to the end.
LONG = (
    "test_classroom",
    "test_gradebook",
    "test_cli",
    "test_attacks",
    "test_launch",
    "test_build",
    "test_worker",
    "12_data_parallel",
    "test_lab",
    "test_judging",
    "test_by_compiler",
    "test_devices",
    "test_devices_and_meshes",
    "test_data_parallel",
    "test_pytrees",
    "13_tensor_parallel",
    "19_multihost",
)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=_turn)  # stable: each keeps its place among its like


def _turn(item) -> int:
    group = _group(item)
    return LONG.index(group) if group in LONG else len(LONG)


def _group(item) -> str:
    """What one process tests: a file, or one lesson's exercises."""
    lesson = re.search(r"\[(\d\d_\w+)", item.name)
    return lesson[1] if lesson and item.path.stem == "test_exercises" else item.path.stem
