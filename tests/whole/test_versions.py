"""The students' side on the oldest JAX supported and on the newest that installs, each in an environment of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rota import in_turn

SUITE = ["@tests/students.txt"]
QUICKLY = ["-k", "not test_exercises or notebook", *SUITE]  # the rest of the exercises' tests takes minutes
CORE = [  # where another JAX has been felt so far, and answers are judged, some with loops: seconds
    "tests/test_jax_versions.py",
    "tests/programs/test_turns.py",
    "tests/programs/test_in_numpy.py",
    "tests/explaining/changed/test_traced.py",
    "tests/hlo",
    "tests/strangers/test_strangers.py",
    "tests/explaining/test_wrong_results.py",
]
NEEDED = ["nbformat", "pytest<9.2", "pytest-timeout"]  # besides what students have
OLDEST, NEWEST = "jax==0.7.2", "jax"


def uv(*args: str) -> subprocess.CompletedProcess:
    return subprocess.run(["uv", *args], capture_output=True, text=True, timeout=240)


def newer_python() -> str:
    """The newest Python on this machine: JAX 0.11 and later want 3.12."""
    for version in (">=3.13", ">=3.12"):
        found = uv("python", "find", "--no-project", "--no-python-downloads", "--system", version)
        if found.returncode == 0:
            return found.stdout.strip()
    return sys.executable


@pytest.mark.needs("uv")
@pytest.mark.parametrize(
    "which",
    [
        pytest.param(CORE, id="core"),
        pytest.param(QUICKLY, id="quickly", marks=pytest.mark.slow),
        pytest.param(SUITE, id="all", marks=[pytest.mark.slow, pytest.mark.timeout(1600)]),
    ],
)
@pytest.mark.parametrize(
    "jax, python",
    [
        pytest.param(OLDEST, lambda: sys.executable, id="oldest", marks=in_turn(0, 2)),
        pytest.param(NEWEST, newer_python, id="newest", marks=in_turn(1, 2)),
    ],
)
def test_the_students_side_runs_there(jax, python, which, root, tmp_path):
    made = uv("venv", "--quiet", "--python", python(), str(tmp_path / "env"))
    assert made.returncode == 0, made.stderr
    there = str(tmp_path / "env" / "bin" / "python")
    students = ("-r", str(root / "pyproject.toml"))
    installed = uv("pip", "install", "--quiet", "--python", there, jax, *students, *NEEDED)
    if installed.returncode:
        why = f"{jax} cannot be installed here: {installed.stderr.strip().splitlines()[-1]}"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)  # a laptop may be offline; CI may not
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(root),
        "HOME": str(Path.home()),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [there, "-m", "pytest", "-m", "slow or not slow", "-p", "no:cacheprovider", *which]
    done = subprocess.run(command, cwd=root, text=True, capture_output=True, timeout=1500, env=environment)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout, done.stdout[-500:]
