"""A class on a Dask cluster: a real scheduler and real workers, and marks as they are without it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import classes
import mini
import pytest
from rich.console import Console

from grader import cli
from grader.classroom.course.build import build
from grader.classroom.grading import cluster
from grader.classroom.grading.grade import Options, grade_class, hand_ins_of

distributed = pytest.importorskip("distributed", reason="Dask is not installed (the extra `cluster`)")
pytestmark = pytest.mark.slow  # a scheduler, two workers, and the class graded twice


def dask(*words, **options):
    """A process of Dask's, on loopback."""
    return subprocess.Popen([sys.executable, "-m", "dask", *map(str, words)], stderr=subprocess.DEVNULL, **options)


@contextlib.contextmanager
def running(*processes):
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def started_scheduler(folder, *options):
    """The address of a scheduler that has no workers yet."""
    file = folder / "scheduler.json"
    words = ("scheduler", "--host", "127.0.0.1", "--port", 0, "--no-dashboard", "--scheduler-file", file, *options)
    with running(dask(*words)) as (process,):
        while not file.exists() or not file.read_text():
            assert process.poll() is None
            time.sleep(0.1)
        yield json.loads(file.read_text())["address"]


def worker(address, folder, *words, **options):
    """A worker of one thread, without anybody to start it again."""
    alone = ("--nthreads", 1, "--no-nanny", "--no-dashboard", "--local-directory", folder)
    return dask("worker", address, *alone, *words, **options)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    with started_scheduler(tmp_path_factory.mktemp("dask")) as address:
        yield address


@pytest.fixture
def workers(scheduler, tmp_path):
    with running(*(worker(scheduler, tmp_path / f"worker{k}") for k in range(2))) as both:
        yield both


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The small course and its class, graded here."""
    root = mini.built_course(tmp_path_factory.mktemp("local"))
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
    assert any(map(cluster.task_of, hand_ins_of(fresh))), "it was killed after the run"
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
    with pytest.raises(cluster.NoCluster, match=r"not installed here.*extra `cluster`"):
        cluster.run_ahead([], "tcp://127.0.0.1:9", Console(quiet=True))


def test_a_worker_with_another_grader_is_refused(scheduler, workers, local, monkeypatch):
    monkeypatch.setattr(cluster, "version", lambda *patterns: "f" * 64)
    with pytest.raises(cluster.NoCluster, match="has another grader than this one.*ffffffffffff is due"):
        cluster.run_ahead(list(hand_ins_of(local)), scheduler, Console(quiet=True))


def test_what_is_done_is_not_sent(scheduler, workers, local, monkeypatch):
    monkeypatch.setattr(cluster, "_receive", lambda future, hand_in: pytest.fail("it was sent"))
    cluster.run_ahead(list(hand_ins_of(local)), scheduler, Console(quiet=True))


# A worker that somebody else has got hold of.


def tried(scheduler, folder, how, root, words=()):
    """What is said when a class is sent to a rogue worker, and the processes that unpickled what it sent."""
    loot = folder / "loot"
    env = {**os.environ, "ROGUE": how, "LOOT": str(loot)}
    with running(worker(scheduler, folder / "rogue", "--preload", Path(__file__).with_name("rogue.py"), env=env)):
        with distributed.Client(scheduler, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=100)  # it loads the grader first
        said = classes.finish(command := classes.start(root, "--scheduler", scheduler, *words))
    return command, said, loot.read_text().split() if loot.exists() else []


@pytest.mark.parametrize("how", ["returns", "raises"])
def test_what_a_rogue_worker_sends_is_not_unpickled(scheduler, local, fresh, tmp_path, how):
    command, said, unpickled = tried(scheduler, tmp_path, how, fresh)
    assert str(command.pid) not in unpickled
    assert "Traceback" not in said and "mallory" not in said and "\x1b[2J" not in said
    assert "did not come back from the cluster, and are run here" in said.replace("\n", " ")
    assert classes.results(fresh) == classes.results(local)


@pytest.mark.parametrize("how", ["about", "about raises"])
def test_nor_is_what_it_says_of_itself(scheduler, fresh, tmp_path, how):
    command, said, unpickled = tried(scheduler, tmp_path, how, fresh)
    assert command.returncode == 2 and str(command.pid) not in unpickled
    assert "answers what no grader answers" in said or "cannot load this grader" in said


# A closed cluster: certificates on all sides.


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Two folders, each with the certificate and the key of another authority."""
    trustme = pytest.importorskip("trustme")
    folders = []
    for name in ("ours", "others"):
        folders.append(folder := tmp_path_factory.mktemp(name))
        authority = trustme.CA()
        ours = authority.issue_cert("127.0.0.1")
        authority.cert_pem.write_to_path(folder / "ca.pem")
        ours.cert_chain_pems[0].write_to_path(folder / "cert.pem")
        ours.private_key_pem.write_to_path(folder / "key.pem")
    return folders


@pytest.fixture(scope="module")
def closed(certificates, tmp_path_factory):
    """The address of a scheduler with a worker that let in only who has a certificate of their authority."""
    ours, _ = certificates
    options = ("--tls-ca-file", ours / "ca.pem", "--tls-cert", ours / "cert.pem", "--tls-key", ours / "key.pem")
    folder = tmp_path_factory.mktemp("closed")
    with started_scheduler(folder, "--protocol", "tls", *options) as address:
        assert address.startswith("tls://")
        with running(worker(address, folder / "worker", *options)):
            yield address


def configured(monkeypatch, folder):
    """Dask's own configuration of a client, as book/instructors.md says it."""
    for name, file in (("CA_FILE", "ca.pem"), ("CLIENT__CERT", "cert.pem"), ("CLIENT__KEY", "key.pem")):
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TLS__{name}", str(folder / file))


def test_with_the_right_certificates_a_class_is_graded(closed, certificates, local, fresh, monkeypatch):
    configured(monkeypatch, certificates[0])
    said = classes.grade(fresh, "--scheduler", closed)
    assert "did not come back" not in said
    assert classes.results(fresh) == classes.results(local)


@pytest.mark.parametrize("whose", ["nobody's", "others'"])
def test_without_them_it_is_refused_in_one_sentence(closed, certificates, fresh, monkeypatch, whose):
    if whose == "others'":
        configured(monkeypatch, certificates[1])
    command = classes.start(fresh, "--scheduler", closed)
    said = classes.finish(command)
    assert command.returncode == 2 and "Traceback" not in said
    assert "do not trust each other" in said and "book/instructors.md" in said
