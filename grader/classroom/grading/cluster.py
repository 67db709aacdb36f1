"""A class on a Dask cluster: hand-ins are run and judged there, and recorded here.

A hand-in is sent as a task, with all that it is judged by. Its results come back with their keys and are put into the
same store as those of a local run. Whatever records the class then finds them in the store, and runs what is missing
itself: so marks are the same wherever a hand-in ran, and a cluster that goes away costs nothing but time.
"""

from __future__ import annotations

import functools
import json
import logging
import queue
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from grader.classroom.grading.execute import grade_notebook
from grader.classroom.grading.progress import Stopped, a_minute, progress_bar
from grader.classroom.grading.record import HandIn, material
from grader.classroom.grading.tasks import NoCluster, about, grade_task, other_version, pack
from grader.classroom.handins.archive import Unreadable
from grader.classroom.inside.shown import PACKAGE
from grader.classroom.store import FOLDER, Store, version
from grader.classroom.verdicts.judge import shared_judge

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_SECONDS = 10.0  # until a scheduler answers and has a worker
PATIENCE_SECONDS = 30.0  # without any worker, until the rest is run here: a nanny needs some to start another
POLL_SECONDS = 0.5  # between two looks at the workers that are there
TASKS_PER_THREAD = 2  # of the cluster's, so that none waits for its next task


def run_ahead(hand_ins: Sequence[HandIn], address: str, console: Console) -> None:
    """Have the cluster at `address` run and judge what this course's store lacks.

    What fails there is still to be run here. Raises NoCluster, and Stopped on Ctrl-C.
    """
    client = _connect(address)
    due: list[HandIn] = []
    count, reason = 0, ""
    try:
        due = list(lacking(hand_ins))
        with progress_bar(console) as progress:
            bar = progress.add_task("On the cluster", total=len(due), rate="")
            for problem in _exchange(client, due):
                count += not problem
                reason = reason or problem
                progress.update(bar, advance=1, rate=a_minute(progress.tasks[0].speed))
    except KeyboardInterrupt:
        raise Stopped(
            f"Stopped. {count} of {len(due)} hand-ins came back from the cluster; they are kept. Run the same "
            "command again to go on."
        ) from None
    finally:
        client.close(timeout=2)
    if count < len(due):
        console.print(
            f"[yellow]{len(due) - count} of {len(due)} hand-ins did not come back from the cluster[/yellow], "
            f"and are run here: {escape(reason or 'it has no workers any more')}",
            soft_wrap=True,
        )


def _connect(address: str) -> Client:
    """A client of the scheduler, which has workers, and all of them this same grader."""
    try:
        from distributed import Client
    except ImportError:
        raise NoCluster(
            "--scheduler needs Dask, which is not installed here. Install it (`pip install distributed`, "
            "or grader[cluster]), here and on the cluster; or grade without --scheduler."
        ) from None
    for name in ("distributed", "distributed.client"):  # what matters is said below
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise NoCluster(
            f"There is no Dask scheduler at {address} ({error}). Start one with `dask scheduler`, and give "
            "the address that it prints, tcp://HOST:PORT."
        ) from None
    try:
        _wait_for_workers(client, address)
        _refuse_others(client)
    except BaseException:
        client.close(timeout=2)
        raise
    return client


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
    for address, reply in client.run(about, on_error="return").items():
        if isinstance(reply, Exception):
            raise NoCluster(
                f"The worker at {address} cannot load this grader ({type(reply).__name__}: {reply}). Install "
                "it there, with grader[classroom,cluster]."
            )
        if reply["version"] != version(PACKAGE):
            raise NoCluster(other_version(address, reply["version"], version(PACKAGE)))
        if reply["walls"]:
            raise NoCluster(f"The worker at {address} cannot run hand-ins. {reply['walls']}")


class _Missing(Exception):
    """A result is not in the store."""


class _Complete(Store):
    """A store that raises where it lacks a result."""

    def get(self, kind: str, name: str) -> Any:
        if (result := super().get(kind, name)) is None:
            raise _Missing
        return result


def lacking(hand_ins: Iterable[HandIn]) -> Iterator[HandIn]:
    """The hand-ins that are not yet run and judged to the end, without those that cannot be read."""
    store = functools.cache(_Complete)
    for hand_in in hand_ins:
        try:
            grade_notebook(*material(hand_in), shared_judge(), store(hand_in.root / FOLDER))
        except _Missing:
            yield hand_in
        except Unreadable:
            continue


def _exchange(client: Client, due: Sequence[HandIn]) -> Iterator[str]:
    """Send what is due and receive its results: for each hand-in the problem with it, "" for none.

    Ends when everything has come back, or when no worker has been there for a while.
    """
    waiting = deque(due)
    running: dict[Future, HandIn] = {}
    finished: queue.SimpleQueue[Future] = queue.SimpleQueue()
    last_sight = time.monotonic()  # of a worker
    while waiting or running:
        if threads := _threads(client):
            last_sight = time.monotonic()
        elif time.monotonic() - last_sight > PATIENCE_SECONDS:
            return
        while waiting and len(running) < TASKS_PER_THREAD * threads:
            hand_in = waiting.popleft()
            future = client.submit(grade_task, pack(*material(hand_in)), pure=False)
            running[future] = hand_in
            future.add_done_callback(finished.put)
        try:
            future = finished.get(timeout=POLL_SECONDS)
        except queue.Empty:
            continue
        yield _receive(future, running.pop(future))


def _threads(client: Client) -> int:
    try:
        return sum(client.nthreads().values())
    except (OSError, TimeoutError):
        return 0


def _receive(future: Future, hand_in: HandIn) -> str:
    """Put a hand-in's results into the store; returns why there are none."""
    try:
        results = json.loads(future.result(timeout=CONNECT_SECONDS))
    except Exception as error:  # whatever happened there, it can be done here
        return f"{type(error).__name__}: {str(error)[:300]}"
    store = Store(hand_in.root / FOLDER)
    for kind, name, result in results:
        if store.get(kind, name) is None:
            store.put(kind, name, result)
    return ""
