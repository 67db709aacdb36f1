"""A class on a Dask cluster: a real scheduler and real workers, and marks as they are without it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time

import classes
import mini
import pytest
from rich.console import Console

from grader import cli
from grader.classroom.course.build import build
from grader.classroom.grading import cluster
from grader.classroom.grading.grade import Options, grade_class, hand_ins_of

pytest.importorskip("distributed", reason="Dask is not installed (the extra `cluster`)")
pytestmark = pytest.mark.slow  # a scheduler, two workers, and the class graded twice


def dask(*words, **options):
    """A process of Dask's, on loopback."""
    return subprocess.Popen([sys.executable, "-m", "dask", *map(str, words)], stderr=subprocess.DEVNULL, **options)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """The address of a scheduler that has no workers yet."""
    file = tmp_path_factory.mktemp("dask") / "scheduler.json"
    process = dask("scheduler", "--host", "127.0.0.1", "--port", 0, "--no-dashboard", "--scheduler-file", file)
    while not file.exists() or not file.read_text():
        assert process.poll() is None
        time.sleep(0.1)
    yield json.loads(file.read_text())["address"]
    process.kill()
    process.wait()


@pytest.fixture
def workers(scheduler, tmp_path):
    """Two workers of one thread each, without anybody to start them again."""
    both = [
        dask(
            "worker",
            scheduler,
            "--nthreads",
            1,
            "--no-nanny",
            "--no-dashboard",
            "--local-directory",
            tmp_path / f"worker{k}",
        )
        for k in range(2)
    ]
    yield both
    for process in both:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The small course and its class, graded here."""
    root = mini.make_course(tmp_path_factory.mktemp("local"))
    build(root)
    classes.fill(root)
    classes.grade_here(root)
    return root


@pytest.fixture
def fresh(local, tmp_path):
    """The same course and class before grading, with the same secret seed."""
    shutil.copytree(
        local,
        tmp_path / "fresh",
        ignore=shutil.ignore_patterns("gradebook.db", "autograded", "feedback", "runs", "verdicts", "grades.csv"),
    )
    build(tmp_path / "fresh")
    return tmp_path / "fresh"


def test_a_cluster_without_workers_is_said(scheduler, fresh, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1.0)
    with pytest.raises(cluster.NoCluster, match=f"no workers.*dask worker {scheduler}"):
        grade_class(fresh, Console(quiet=True), Options(scheduler=scheduler))


def test_one_of_two_workers_is_killed_and_marks_are_the_same(scheduler, workers, local, fresh):
    command = classes.start(fresh, "--scheduler", scheduler)
    while not list(fresh.glob(".grading/verdicts/*/*")):
        assert command.poll() is None, command.stdout.read()
        time.sleep(0.05)
    workers[0].send_signal(signal.SIGKILL)
    assert any(cluster.lacking(hand_ins_of(fresh))), "it was killed after the run"
    said = classes.finish(command)
    assert command.returncode == 1 and "A person should look at emil" in said  # as when graded here
    assert "did not come back" not in said
    assert classes.results(fresh) == classes.results(local)


def test_when_all_workers_are_gone_the_rest_is_run_here(scheduler, workers, local, fresh, monkeypatch, capsys):
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 1.0)
    monkeypatch.setattr(cluster, "_receive", lambda future, hand_in: [w.kill() for w in workers] and "")
    cluster.run_ahead(list(hand_ins_of(fresh)), scheduler, Console())
    assert "did not come back from the cluster, and are run here" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tcp://127.0.0.1:9", "There is no Dask scheduler at tcp://127.0.0.1:9"),
        ("nowhere://x", "unknown address scheme"),
    ],
)
def test_no_scheduler_is_said_with_status_2(local, monkeypatch, capsys, address, said):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1.0)
    monkeypatch.setattr(sys, "argv", ["grader", "grade", "--scheduler", address])
    monkeypatch.chdir(local)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2 and said in capsys.readouterr().err


def test_without_dask_it_is_said_what_to_install(local, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(cluster.NoCluster, match=r"not installed here.*grader\[cluster\]"):
        cluster.run_ahead([], "tcp://127.0.0.1:9", Console(quiet=True))


def test_a_worker_with_another_grader_is_refused(scheduler, workers, local, monkeypatch):
    monkeypatch.setattr(cluster, "version", lambda *patterns: "f" * 64)
    with pytest.raises(cluster.NoCluster, match="has another grader than this one.*ffffffffffff is due"):
        cluster.run_ahead(list(hand_ins_of(local)), scheduler, Console(quiet=True))


def test_what_is_done_is_not_sent(scheduler, workers, local, monkeypatch):
    monkeypatch.setattr(cluster, "_receive", lambda future, hand_in: pytest.fail("it was sent"))
    cluster.run_ahead(list(hand_ins_of(local)), scheduler, Console(quiet=True))
