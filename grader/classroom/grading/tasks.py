"""One hand-in as a task of a cluster: packed here, and graded on a worker there.

A task is a text, and so are its results: the machines of a cluster need nothing of this one but its grader. Results
come back as plain facts, and are read here without trust: a card is drawn where it is shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from grader.classroom.course.cells import Cell
from grader.classroom.grading.execute import Grading, grade_notebook
from grader.classroom.inside.limits import Limits
from grader.classroom.inside.shown import PACKAGE
from grader.classroom.runs.run import Lesson, Run
from grader.classroom.store import FOLDER, Store, Unavailable, version
from grader.classroom.verdicts.judge import shared_judge
from grader.classroom.walls import bubblewrap as walls
from grader.exercises.codecs import TEXT, Codec, data_class, plain_type

LESSON_PARTS = ("release", "solved")  # the parts of a lesson that decide how its hand-ins are run
MOST_SENT = 32 << 20  # characters of one hand-in's results
MOST_PARTS = 4_000_000  # values, lists and objects in them, so that reading them takes no more memory than there is
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
            "lesson": {name: [asdict(cell) for cell in getattr(grading.lesson, name)] for name in LESSON_PARTS},
        }
    )


def _unpacked(task: dict[str, Any]) -> tuple[NotebookNode, Grading]:
    """The hand-in of a task and how it is graded. Of the lesson only its code is sent: nothing is shown there."""
    release, solved = (tuple(Cell(**cell) for cell in task["lesson"][name]) for name in LESSON_PARTS)
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


def about() -> str:
    """What a worker says before anything is sent to it: its grader's version, and then what its walls lack."""
    try:
        walls.standing()
    except walls.NoWalls as gaps:
        return f"{version(PACKAGE)} {gaps}"
    return version(PACKAGE)


def other_version(address: str, theirs: str, ours: str) -> str:
    return (
        f"The worker at {address} has another grader than this one, or another JAX or NumPy: its version is "
        f"{theirs[:12]}, and {ours[:12]} is due. Install the same there, and restart the worker."
    )


@dataclass(frozen=True)
class Results:
    """What a worker says of a hand-in: records of runs and facts of verdicts by key, or its problem with it.

    Nothing of it is believed yet.
    """

    runs: Mapping[str, Any] = field(default_factory=dict)
    verdicts: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


def grade_task(text: str) -> str:
    """Grade the hand-in of a task, on a worker; the text returned holds its results. An error is a problem, as text."""
    from distributed import get_worker

    folder = Path(get_worker().local_directory) / FOLDER  # it goes when the worker does
    try:
        return sent(THREAD.submit(graded, json.loads(text), folder).result())
    except Exception as error:
        return sent(Results(problem=f"{type(error).__name__}: {error}"))


def graded(task: dict[str, Any], folder: Path) -> Results:
    """Grade the hand-in of a task with a store in this folder: all that was asked of the store."""
    if task["version"] != version(PACKAGE):
        raise NoCluster(other_version("this address", version(PACKAGE), task["version"]))
    store = _Recorder(folder)
    grade_notebook(*_unpacked(task), shared_judge(), store)
    results, store.results = store.results, {}  # caches keep stores alive
    return Results(
        {name: record for (kind, name), record in results.items() if kind == "runs"},
        {name: facts for (kind, name), facts in results.items() if kind == "verdicts"},
    )


def sent(results: Results) -> str:
    return json.dumps(RESULTS.write(results))


def received(text: Any) -> Results:
    """The inverse of `sent`, for whatever a worker returned. Raises ValueError."""
    if len(text := TEXT.read(text)) > MOST_SENT or sum(map(text.count, ",[{")) > MOST_PARTS:
        raise ValueError(f"{len(text):,} characters are more than a hand-in's results take")
    try:
        return RESULTS.read(json.loads(text))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _cells(body: Any) -> dict[int, Any]:
    return {int(number): outputs for number, outputs in OBJECT.read(body).items()}


OBJECT: Codec[Mapping[str, Any]] = plain_type(dict)
CELLS = Codec(lambda outputs: {str(number): several for number, several in outputs.items()}, _cells)
# Which cells it may spare is found here.
RUN = data_class(Run, answers=OBJECT, outputs=CELLS, ending=TEXT, origins=OBJECT)
RESULTS = data_class(Results, runs=OBJECT, verdicts=OBJECT, problem=TEXT)
