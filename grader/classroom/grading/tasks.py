"""One hand-in as a task of a cluster: packed here, and graded on a worker there.

A task is a text, and so are its results: the machines of a cluster need nothing of this one but its grader.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from grader.classroom.grading.execute import Grading, grade_notebook
from grader.classroom.inside.limits import Limits
from grader.classroom.inside.shown import PACKAGE
from grader.classroom.runs.cells import Cell
from grader.classroom.runs.run import Lesson
from grader.classroom.store import FOLDER, Store, Unavailable, version
from grader.classroom.verdicts.judge import shared_judge
from grader.classroom.walls import bubblewrap as walls

RUN = ("release", "solved")  # the parts of a lesson that decide how its hand-ins are run
# Templates cannot be shared by threads, and they end with the thread that started them: one thread does it all.
THREAD = ThreadPoolExecutor(1, "grader")


class NoCluster(Unavailable):
    """The cluster cannot be used; the text says why, and what to do."""


def pack(nb: NotebookNode, grading: Grading) -> str:
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
    """The hand-in of a task and how it is graded. Of the lesson only its code is sent: nothing is shown there."""
    release, solved = (tuple(Cell(**cell) for cell in task["lesson"][name]) for name in RUN)
    grading = Grading(
        nbformat.from_dict(task["release"]), task["seed"], Limits(**task["limits"]), Lesson(release, solved)
    )
    return nbformat.from_dict(task["nb"]), grading


class _Recorder(Store):
    """A store that records which results were read from it or put into it."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.results: dict[tuple[str, str], Any] = {}

    def get(self, kind: str, name: str) -> Any:
        if (result := super().get(kind, name)) is not None:
            self.results[kind, name] = result
        return result

    def put(self, kind: str, name: str, result: Any) -> None:
        super().put(kind, name, result)
        self.results[kind, name] = result


def about() -> dict[str, str]:
    """What a worker of the cluster replies before anything is sent to it: its grader's version, and lacking walls."""
    try:
        walls.standing()
    except walls.NoWalls as gaps:
        return {"version": version(PACKAGE), "walls": str(gaps)}
    return {"version": version(PACKAGE), "walls": ""}


def other_version(address: str, theirs: str, ours: str) -> str:
    return (
        f"The worker at {address} has another grader than this one, or another JAX or NumPy: its version is "
        f"{theirs[:12]}, and {ours[:12]} is due. Install the same there, and restart the worker."
    )


def grade_task(text: str) -> str:
    """Grade the hand-in of a task, on a worker; the text returned holds its results, each with its kind and key."""
    from distributed import get_worker

    task = json.loads(text)
    if task["version"] != version(PACKAGE):
        raise NoCluster(other_version("this address", version(PACKAGE), task["version"]))
    store = _Recorder(Path(get_worker().local_directory) / FOLDER)  # it goes when the worker does
    THREAD.submit(lambda: grade_notebook(*_unpacked(task), shared_judge(), store)).result()
    results, store.results = store.results, {}  # caches keep stores alive
    return json.dumps([[*place, result] for place, result in results.items()])
