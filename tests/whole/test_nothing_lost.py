"""Whatever is killed, interrupted or full: nothing is left running, and the next run ends with the same gradebook."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import classes
import mini
import psutil
import pytest
from leftovers import still_running

from grader.classroom.walls import bubblewrap as walls

SEED = 5100  # the first two moments fall in the start, while the gradebook is made
KILLS = {"grader": 3, "pool": 2, "worker": 8, "evaluator": 7}  # the kinds of process, and how often one is killed
FEW = {"grader": 1, "pool": 1, "worker": 2, "evaluator": 2}  # enough for every day
GONE = 20.0  # seconds in which all that the grader started has to end after it; an import may have to end first


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """A course and its class, before grading."""
    root = mini.built_course(tmp_path_factory.mktemp("before"))
    classes.fill(root, leave_out=("dora", "gina"))
    (root / "gradebook.db").unlink()  # a grader that is killed early is killed while it makes one
    (root / ".grading/seeds").mkdir(parents=True)
    (root / ".grading/seeds" / mini.LESSON).write_text("4711")
    return root


@pytest.fixture(scope="module")
def undisturbed(before, tmp_path_factory):
    """What an undisturbed run ends with."""
    root = tmp_path_factory.mktemp("undisturbed") / "course"
    shutil.copytree(before, root)
    classes.grade_here(root)
    return classes.results(root)


@pytest.fixture
def course(before, tmp_path):
    shutil.copytree(before, tmp_path / "course")
    return tmp_path / "course"


def below(command: subprocess.Popen) -> list[psutil.Process]:
    """All processes that a running grader has started, and they in turn."""
    try:
        return psutil.Process(command.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def kind(process: psutil.Process) -> str:
    """Which of KILLS a process is: a pool's, or a template with its wall and its forks; "" for another."""
    with contextlib.suppress(psutil.Error):
        words = process.cmdline()
        if "grader.classroom.inside.template" in words:
            return "worker" if "worker" in words else "evaluator"
        if any("spawn_main" in word for word in words):
            return "pool"
    return ""


class Killer:
    """Kills processes of a running grader, and remembers all that it has seen of them."""

    def __init__(self, root) -> None:
        self.root = root
        self.seen: set[psutil.Process] = set()
        self.last: dict[str, tuple[int, int]] = {}

    def kill(self, command: subprocess.Popen, wanted: str, draw: random.Random) -> bool:
        """SIGKILL one of a kind as soon as there is one; False when the grader ended before."""
        while command.poll() is None:
            processes = below(command)
            self.seen |= set(processes)
            found = (
                [psutil.Process(command.pid)]
                if wanted == "grader"
                else [p for p in processes if kind(p) == wanted and self._may_lose(p, wanted)]
            )
            with contextlib.suppress(psutil.NoSuchProcess):
                if found:
                    victim = draw.choice(found)
                    self.last[wanted] = self._now(victim)
                    victim.kill()
                    return True
            time.sleep(0.1)
        return False

    def _may_lose(self, process: psutil.Process, wanted: str) -> bool:
        """No hand-in is to lose its process again and again: that would be taken for its own doing."""
        return self._now(process) != self.last.get(wanted)

    def _now(self, process: psutil.Process) -> tuple[int, int]:
        """The pool process above it, and how much is done."""
        return self._owner(process), len(list(self.root.glob(".grading/*/*/*.gz")))

    def _owner(self, process: psutil.Process) -> int:
        """The pool process above it: no hand-in is to lose its process again and again."""
        with contextlib.suppress(psutil.Error):
            return next((p.pid for p in process.parents() if kind(p) == "pool"), 0)
        return 0

    def left(self) -> list[psutil.Process]:
        """What has not ended although the grader has, after some patience."""
        running = still_running(self.seen, GONE)
        self.seen.clear()
        return running


def forget(root) -> None:
    """Let everything be run, judged and recorded again."""
    for name in ("runs", "verdicts"):
        shutil.rmtree(root / ".grading" / name, ignore_errors=True)
    for stamp in root.glob(".grading/recorded/*/*"):
        stamp.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("kills", [FEW, KILLS], ids=["six", "twenty"])
def test_killed_at_random_moments(course, undisturbed, kills):
    draw = random.Random(SEED)
    plan = [wanted for wanted, count in kills.items() for _ in range(count)]
    draw.shuffle(plan)
    killer, killed = Killer(course), []
    command, began = classes.start(course), time.monotonic()
    while plan:
        time.sleep(draw.uniform(0, 8) if plan[0] == "grader" else draw.uniform(0, 0.7))
        hit = killer.kill(command, plan[0], draw)
        if hit:
            killed.append((plan[0], round(time.monotonic() - began, 2)))
        if not hit or plan[0] == "grader":
            said, left = classes.finish(command), killer.left()
            assert "Traceback" not in said and not left, (SEED, killed, said, left)
            if not hit:  # it came to its end, whatever was killed meanwhile
                assert classes.results(course) == undisturbed, (SEED, killed, said)
                forget(course)
            command, began = classes.start(course), time.monotonic()
        plan = plan[hit:]
    said, left = classes.finish(command), killer.left()
    print(SEED, killed)
    assert "Traceback" not in said and not left, (SEED, killed, said, left)
    assert classes.results(course) == undisturbed, (SEED, killed, said)
    assert len(killed) == sum(kills.values())


@pytest.mark.slow
def test_ctrl_c_stops_cleanly_and_the_next_run_goes_on(course, undisturbed):
    killer = Killer(course)
    for moment in ("pool", "evaluator"):  # while processes start, and while they work
        command = classes.start(course)
        while not any(kind(process) == moment for process in below(command)):
            assert command.poll() is None, command.stdout.read()
            time.sleep(0.1)
        time.sleep(0.5)
        killer.seen |= set(below(command))
        os.killpg(command.pid, signal.SIGINT)
        said = classes.finish(command, 20)
        assert command.returncode == 130, said
        last = said.splitlines()[-1]
        assert last.startswith("Stopped. ") and last.endswith("Run the same command again to go on."), said
        assert "Traceback" not in said, said
        assert not killer.left()
    classes.grade_here(course)
    assert classes.results(course) == undisturbed


@pytest.mark.slow
@pytest.mark.needs("walls")
def test_a_full_disk_is_said_and_the_next_run_goes_on(course, undisturbed, tmp_path):
    """On a small file system with room for some of the results; then some is made."""
    place = tmp_path / "small"
    place.mkdir()
    script = f"""
        cp -a {course}/. {place} && cd {place}
        head -c 100M /dev/zero > ballast; truncate -s -250K ballast
        {sys.executable} -m grader.cli grade --workers 1; echo "status $?"
        find . -name '.new-*'; rm ballast; cp -a . {course}
    """
    small = [walls.binary(), "--dev-bind", "/", "/", "--size", str(3 << 20), "--tmpfs", place]
    done = subprocess.run([*small, "bash", "-c", script], capture_output=True, text=True, timeout=200)
    said = done.stdout + done.stderr
    assert "Traceback" not in said and ".new-" not in said, said
    assert "No space left on device" in said or "disk is full" in said, said
    assert len(list(course.glob(".grading/recorded/*/*"))) < len(list(course.glob("submitted/*")))
    classes.grade_here(course)
    assert classes.results(course) == undisturbed, said
