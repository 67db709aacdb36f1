"""A class on a Dask cluster: hand-ins are run and judged there, and recorded here.

A hand-in is sent as a task, with all that it is judged by. It is then graded here in play: each run and each verdict
that is asked for is taken from what the worker sent, read without trust, and put into the same store as those of a
local run. What nobody asks for is left aside. Whatever records the class then finds them in the store, and runs what is
missing itself: so marks are the same wherever a hand-in ran, and a cluster that goes away costs nothing but time.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import queue
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from grader.arrays.words import one_line
from grader.classroom.grading.clerks import HAND_IN_SECONDS, by_clerks
from grader.classroom.grading.execute import grade_notebook
from grader.classroom.grading.keys import verdict_key
from grader.classroom.grading.progress import EachMinute, Stopped, a_minute, progress_bar
from grader.classroom.grading.record import HandIn, material
from grader.classroom.grading.tasks import RUN, NoCluster, Results, about, grade_task, other_version, pack, received
from grader.classroom.handins.archive import Unreadable, listed
from grader.classroom.inside.shown import PACKAGE
from grader.classroom.store import FOLDER, Store, version
from grader.classroom.verdicts.judge import Judge
from grader.classroom.verdicts.records import Judged, verdict_from
from grader.exercises.exercise import Exercise

if TYPE_CHECKING:
    from distributed import Client, Future

SILENT = logging.CRITICAL + 1  # Dask logs what it cannot read as critical, with a traceback
CONNECT_SECONDS = 10.0  # until a scheduler answers and has a worker
PATIENCE_SECONDS = 30.0  # without any worker, until the rest is run here: a nanny needs some to start another
POLL_SECONDS = 0.5  # between two looks at the workers that are there
TASKS_PER_THREAD = 2  # of the cluster's, so that none waits for its next task


def run_ahead(hand_ins: Sequence[HandIn], address: str, console: Console) -> None:
    """Have the cluster at `address` run and judge what this course's store lacks.

    What fails there is still to be run here. Raises NoCluster, and Stopped on Ctrl-C.
    """
    due: list[tuple[HandIn, str]] = []
    back, reason = set[HandIn](), ""
    try:
        due = list(lacking(hand_ins))
        with _connected(address) as client, progress_bar(console) as progress:
            bar = progress.add_task("On the cluster", total=len(due), rate="")
            line = EachMinute(console, "On the cluster", len(due))
            for hand_in, problem in _exchange(client, due):
                line.step()
                back |= {hand_in} if hand_in and not problem else set()
                reason = reason or problem
                progress.update(bar, advance=1, rate=a_minute(progress.tasks[0].speed))
    except KeyboardInterrupt:
        raise Stopped(
            f"Stopped. {len(back)} of {len(due)} hand-ins came back from the cluster; they are kept. Run the same "
            "command again to go on."
        ) from None
    if missing := [f"{one.student} {one.lesson}" for one, _ in due if one not in back]:
        console.print(
            f"[yellow]{len(missing)} of {len(due)} hand-ins did not come back from the cluster[/yellow], and are run "
            f"here ({escape(listed(missing))}): {escape(reason or 'it has no workers any more')}",
            soft_wrap=True,
        )


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Client]:
    """A client of the scheduler, which has workers, and all of them this same grader."""
    try:
        from distributed import Client, Security
    except ImportError:
        raise NoCluster(
            "--scheduler needs Dask, which is not installed here. Install it (`pip install distributed`, "
            "or the extra `cluster`), here and on the cluster; or grade without --scheduler."
        ) from None
    for name in ("distributed", "distributed.client"):  # what matters is said below
        logging.getLogger(name).setLevel(SILENT)
    with _without_pickles(), contextlib.ExitStack() as stack:
        try:
            if address.startswith("tls:") and not Security().get_connection_args("client")["ssl_context"]:
                raise ValueError("no certificate is named here")  # a Client would be left half made
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise NoCluster(_no_scheduler(address, error)) from None
        stack.callback(_close, client)
        for topic in ("print", "warn"):  # a worker's words are not for this terminal
            client.unsubscribe_topic(topic)
        _wait_for_workers(client, address)
        _refuse_others(client)
        yield client


def _close(client: Client) -> None:
    with contextlib.suppress(TypeError):  # with which a client ends that met a pickle, and is deaf since
        client.close(timeout=2)


def _no_scheduler(address: str, error: Exception) -> str:
    if address.startswith("tls:"):
        return (
            f"The Dask scheduler at {address} and this machine do not trust each other ({one_line(error, 200)}). Both "
            "need certificates of one authority, and this machine a Dask configuration that names its own: see "
            "“A class on a cluster” in book/instructors.md."
        )
    return (
        f"There is no Dask scheduler at {address} ({one_line(error, 200)}). Start one with `dask scheduler`, and give "
        "the address that it prints, tcp://HOST:PORT; one that speaks TLS has an address with tls://."
    )


@contextlib.contextmanager
def _without_pickles() -> Iterator[None]:
    """In this block, nothing in this process is made from a pickle but lists, texts, numbers and their like.

    Dask unpickles what it receives, whoever sent it, in several places; its `deserializers` shut only one of them.
    """
    _door().refused = False
    _door().shut = True
    try:
        yield
    finally:
        _door().shut = False


@dataclass
class _Door:
    """Whether pickles may name anything, and whether one was refused."""

    shut: bool = False
    refused: bool = False

    def ask(self, event: str, names: tuple[Any, ...]) -> None:
        if event == "pickle.find_class" and self.shut:
            name = ".".join(map(str, names))
            self.refused |= name != "builtins.str"  # as which every result is announced
            raise TypeError(f"A pickle from the cluster names {name}, and is not read.")


@functools.cache
def _door() -> _Door:
    """One for the process, and for ever; Python asks it before a pickle's name is looked up."""
    sys.addaudithook((door := _Door()).ask)
    return door


def _wait_for_workers(client: Client, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError:
        raise NoCluster(
            f"The Dask scheduler at {address} has no workers. Start some, on machines where this grader is "
            f"installed: `dask worker {address} --nworkers -1 --nthreads 1`."
        ) from None


def _refuse_others(client: Client) -> None:
    """Raise NoCluster when a worker has another grader, or cannot run hand-ins."""
    try:
        replies = client.run(about, on_error="return")
    except (OSError, TypeError) as error:
        raise NoCluster(
            f"A worker of the cluster answers what no grader answers ({one_line(error, 200)}). Stop that worker, and "
            "see who has access to its machine."
        ) from None
    for address, reply in replies.items():
        if not isinstance(reply, str):
            raise NoCluster(
                f"The worker at {one_line(address)} cannot load this grader. Install it there, with "
                "its extras classroom and cluster; the worker's own log says more."
            )
        theirs, _, walls = reply.partition(" ")
        if theirs != version(PACKAGE):
            raise NoCluster(other_version(one_line(address), one_line(theirs), version(PACKAGE)))
        if walls:
            raise NoCluster(f"The worker at {one_line(address)} cannot run hand-ins. {one_line(walls, 1000)}")


class _Missing(Exception):
    """A result is neither here nor sent."""


class _Completed(Store):
    """The course's store, completed by what a worker sent: a run that is asked for, and not there, is taken from it.

    What comes new is only held in memory, until all is known to fit.
    """

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.sent = Results()

    def get(self, kind: str, name: str) -> Any:
        result = self.memory.get((kind, name)) or super().get(kind, name)
        if result is None and kind == "runs":
            result = RUN.write(RUN.read(_taken(self.sent.runs, name)))
            self.put(kind, name, result)
        return result

    def put(self, kind: str, name: str, result: Any) -> None:
        self.memory[kind, name] = result

    def keep(self) -> None:
        for place, result in self.memory.items():
            super().put(*place, result)


class _Messenger(Judge):
    """Judges nothing: the verdict that is asked for is taken from what a worker sent."""

    def __init__(self, store: _Completed):
        self.store = store

    def __call__(self, exercise: Exercise, seed: int, answers: Any) -> Judged:
        facts = _taken(self.store.sent.verdicts, verdict_key(exercise, seed, answers))
        return Judged(verdict_from(facts, exercise))


def _taken(results: Mapping[str, Any], name: str) -> Any:
    try:
        return results[name]
    except KeyError:
        raise _Missing("the worker did not send all that its hand-in needs") from None


def complete(hand_in: HandIn, sent: Results = Results()) -> None:
    """Fill the course's store with what this hand-in needs and a worker sent: all of it and nothing else, or nothing.

    Raises _Missing where something is lacking, ValueError where something is not what it should be, and Unreadable.
    """
    store = _completed(hand_in.root / FOLDER)
    store.sent, store.memory = sent, {}
    grade_notebook(*material(hand_in), _Messenger(store), store)
    store.keep()


@functools.cache
def _completed(folder: Path) -> _Completed:
    """One for all hand-ins: whether shortcuts are faithful is asked of it only once."""
    return _Completed(folder)


def lacking(hand_ins: Iterable[HandIn]) -> Iterator[tuple[HandIn, str]]:
    """The hand-ins that are not yet run and judged to the end, each as the text of its task.

    Those that cannot be read are left out, and those with which a clerk does not come to an end: they are told of when
    the class is recorded.
    """
    for hand_in, task in by_clerks(task_of, hand_ins):
        if task and isinstance(task, str):
            yield hand_in, task


def task_of(hand_in: HandIn) -> str:
    """What is to be done for a hand-in, as text; "" where there is nothing left to do, or nothing that can be read."""
    try:
        complete(hand_in)
    except _Missing:
        return pack(*material(hand_in))
    except Unreadable:
        return ""
    return ""


def _exchange(client: Client, due: Sequence[tuple[HandIn, str]]) -> Iterator[tuple[HandIn | None, str]]:
    """Send what is due and receive its results: each hand-in with its problem, "" for none; or one with all of them.

    Ends when everything has come back, when no worker has been there for a while, or when the workers say nothing for
    longer than a hand-in may take; and when one sends what Dask cannot read, since Dask may then be deaf to all others.
    """
    waiting = deque(due)
    running: dict[Future, HandIn] = {}
    finished: queue.SimpleQueue[Future] = queue.SimpleQueue()
    last_sight = last_word = time.monotonic()  # of a worker, and from one
    while waiting or running:
        if _door().refused and (lost := _lost(client, running)):
            yield None, f"{running[lost[0]].student}'s task ended there with what is not read here"
            return
        if time.monotonic() - last_word > HAND_IN_SECONDS:
            yield None, f"its workers have said nothing for {HAND_IN_SECONDS:.0f} s"
            return
        if threads := _threads(client):
            last_sight = time.monotonic()
        elif time.monotonic() - last_sight > PATIENCE_SECONDS:
            return
        while waiting and len(running) < TASKS_PER_THREAD * threads:
            hand_in, task = waiting.popleft()
            future = client.submit(grade_task, task, pure=False)
            running[future] = hand_in
            future.add_done_callback(finished.put)
        try:
            future = finished.get(timeout=POLL_SECONDS)
        except queue.Empty:
            continue
        last_word = time.monotonic()
        hand_in = running.pop(future)
        yield hand_in, _receive(future, hand_in)


def _lost(client: Client, running: Iterable[Future]) -> list[Future]:
    """Those that no worker has any more and that did not finish: Dask could not read how they ended, and is silent."""
    there = {key for keys in client.processing().values() for key in keys}
    _door().refused = False
    return [future for future in running if future.status == "pending" and future.key not in there]


def _threads(client: Client) -> int:
    try:
        return sum(client.nthreads().values())
    except (OSError, TimeoutError):
        return 0


def _receive(future: Future, hand_in: HandIn) -> str:
    """Put a hand-in's results into the store; returns why there are none."""
    if future.status != "finished":
        return "its task ended with an error there, or its workers died; their logs say more"
    try:
        results = received(future.result(timeout=CONNECT_SECONDS))
        if results.problem:
            return one_line(results.problem, 300)
        complete(hand_in, results)
    except Exception as error:  # whatever was sent, it can be done here
        _completed.cache_clear()  # and what was believed on the way is forgotten
        return one_line(f"{type(error).__name__.removeprefix('_')}: {error}", 300)
    return ""
