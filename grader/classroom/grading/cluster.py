"""A class on a Dask cluster: hand-ins are run and judged there, and recorded here.

A hand-in goes there as JSON, with all that it is judged by; back come results with their keys, which are put
into the same store as those of a local run. The pass that records the class finds them there, and runs itself
what is missing: so marks are the same wherever a hand-in ran, and a cluster that goes away costs time only.
"""

from __future__ import annotations

import functools
import json
import logging
import queue
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbformat import NotebookNode
from rich.console import Console
from rich.markup import escape

from grader.classroom.grading.execute import Grading, grade_notebook
from grader.classroom.grading.record import HandIn, material
from grader.classroom.handins.archive import Unreadable
from grader.classroom.inside.limits import Limits
from grader.classroom.inside.shown import PACKAGE
from grader.classroom.runs.cells import Cell
from grader.classroom.runs.run import Lesson
from grader.classroom.store import FOLDER, Store, Unavailable, version
from grader.classroom.verdicts.judge import shared_judge
from grader.classroom.walls import bubblewrap as walls

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT = 10.0  # seconds until a scheduler answers and has a worker
DESERTED = 30.0  # seconds without any worker, until the rest is run here: a nanny takes some to start another
LOOK = 0.5  # seconds between two looks at who is there
RUN = ("release", "solved")  # of a lesson, what decides how its hand-ins are run
AHEAD = 2  # tasks for each of the cluster's threads, so that none waits for the next one


class NoCluster(Unavailable):
    """The cluster cannot be used; the text says why, and what to do."""


# Here.


def run_ahead(hand_ins: Sequence[HandIn], address: str, console: Console) -> None:
    """Have the cluster at `address` run and judge what this course's store lacks.

    What fails there is left to be run here. Raises NoCluster, and Stopped on Ctrl-C.
    """
    from grader.classroom.grading.progress import Stopped, a_minute, progress_bar

    client = _connected(address)
    count, reason = 0, ""
    try:
        due = list(lacking(hand_ins))
        with progress_bar(console) as progress:
            bar = progress.add_task("On the cluster", total=len(due), rate="")
            for problem in _taken(client, due):
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


def _connected(address: str) -> Client:
    """A client of a scheduler that has workers, each of them with this same grader."""
    try:
        from distributed import Client
    except ImportError:
        raise NoCluster(
            "--scheduler needs Dask, which is not installed here. Install it (`pip install distributed`, "
            "or grader[cluster]), here and on the cluster; or grade without --scheduler."
        ) from None
    for name in ("distributed", "distributed.client"):  # what matters of it is said here
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=CONNECT, set_as_default=False)
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
        client.wait_for_workers(1, timeout=CONNECT)
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
            raise NoCluster(_other(address, reply["version"]))
        if reply["walls"]:
            raise NoCluster(f"The worker at {address} cannot run hand-ins. {reply['walls']}")


def _other(address: str, theirs: str) -> str:
    return (
        f"The worker at {address} has another grader than this one, or another JAX or NumPy: its version is "
        f"{theirs[:12]}, and {version(PACKAGE)[:12]} is due. Install the same there, and restart the worker."
    )


class _Missing(Exception):
    """A result is not in the store."""


class _Complete(Store):
    """A store that must have what is asked of it."""

    def get(self, kind: str, name: str) -> Any:
        if (result := super().get(kind, name)) is None:
            raise _Missing
        return result


def lacking(hand_ins: Iterable[HandIn]) -> Iterator[HandIn]:
    """The hand-ins of which something has still to be run or judged. Those that cannot be read are not among them."""
    store = functools.cache(_Complete)
    for hand_in in hand_ins:
        try:
            grade_notebook(*material(hand_in), shared_judge(), store(hand_in.root / FOLDER))
        except _Missing:
            yield hand_in
        except Unreadable:
            continue


def _packed(nb: NotebookNode, grading: Grading) -> str:
    """A hand-in and how it is graded, as the text of a task."""
    return json.dumps(
        {
            "version": version(PACKAGE),
            "nb": nb,
            "release": grading.release,
            "seed": grading.seed,
            "limits": asdict(grading.limits),
            "lesson": {name: [asdict(cell) for cell in getattr(grading.lesson, name)] for name in RUN},
        }
    )


def _unpacked(task: dict[str, Any]) -> tuple[NotebookNode, Grading]:
    """What a task holds; of the lesson only what is run, since what is shown is not sent back."""
    release, solved = (tuple(Cell(**cell) for cell in task["lesson"][name]) for name in RUN)
    grading = Grading(
        nbformat.from_dict(task["release"]), task["seed"], Limits(**task["limits"]), Lesson(release, solved)
    )
    return nbformat.from_dict(task["nb"]), grading


def _taken(client: Client, due: Sequence[HandIn]) -> Iterator[str]:
    """Send what is due, take what comes, and say of each what the problem was; until all came, or nobody is there."""
    waiting = deque(due)
    running: dict[Future, HandIn] = {}
    finished: queue.SimpleQueue[Future] = queue.SimpleQueue()
    seen = time.monotonic()
    while waiting or running:
        if threads := _threads(client):
            seen = time.monotonic()
        elif time.monotonic() - seen > DESERTED:
            return
        while waiting and len(running) < AHEAD * threads:
            hand_in = waiting.popleft()
            future = client.submit(grade_task, _packed(*material(hand_in)), pure=False)
            running[future] = hand_in
            future.add_done_callback(finished.put)
        try:
            future = finished.get(timeout=LOOK)
        except queue.Empty:
            continue
        yield _take(future, running.pop(future))


def _threads(client: Client) -> int:
    try:
        return sum(client.nthreads().values())
    except (OSError, TimeoutError):
        return 0


def _take(future: Future, hand_in: HandIn) -> str:
    """Put a hand-in's results into the store; returns why there are none."""
    try:
        results = json.loads(future.result(timeout=CONNECT))
    except Exception as error:  # whatever happened there, it can be done here
        return f"{type(error).__name__}: {str(error)[:300]}"
    store = Store(hand_in.root / FOLDER)
    for kind, name, result in results:
        if store.get(kind, name) is None:
            store.put(kind, name, result)
    return ""


# There.

# Templates are no two threads' to share, and end with the thread that started them: one thread does it all.
DESK = ThreadPoolExecutor(1, "grader")


class _Noted(Store):
    """A store, and what was asked of it or put into it."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.noted: dict[tuple[str, str], Any] = {}

    def get(self, kind: str, name: str) -> Any:
        if (result := super().get(kind, name)) is not None:
            self.noted[kind, name] = result
        return result

    def put(self, kind: str, name: str, result: Any) -> None:
        super().put(kind, name, result)
        self.noted[kind, name] = result


def about() -> dict[str, str]:
    """What a worker is asked before anything is sent to it."""
    try:
        walls.standing()
    except walls.NoWalls as lacking:
        return {"version": version(PACKAGE), "walls": str(lacking)}
    return {"version": version(PACKAGE), "walls": ""}


def grade_task(text: str) -> str:
    """A task: the results of one hand-in, each with its kind and key. Text in, text out."""
    from distributed import get_worker

    task = json.loads(text)
    if task["version"] != version(PACKAGE):
        raise NoCluster(_other("this address", version(PACKAGE)))
    store = _Noted(Path(get_worker().local_directory) / FOLDER)  # it goes when the worker does
    DESK.submit(lambda: grade_notebook(*_unpacked(task), shared_judge(), store)).result()
    noted, store.noted = store.noted, {}  # caches keep stores
    return json.dumps([[*place, result] for place, result in noted.items()])
