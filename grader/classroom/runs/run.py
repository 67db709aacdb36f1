"""A hand-in's own code, run in a worker; the result is kept by content.

Running every notebook whole (`perform`) is right and simple. There are two shortcuts. Each is taken only where the
text shows that the answers are the same, and where they have been the same for the solved lesson:

- **In slices**, where a student's cells only define: an answer comes out of the few cells that it needs, and only those
  worked examples are run whose outputs depend on the student's cells. What the store lacks is run in one go; a slice
  that comes again is then run by itself, and kept for all students whose cells are alike.
- **Without spare examples**, where the cells do more: those worked examples are left out that neither use what the
  student's cells make nor make what these use.

`SHORTCUTS = ()` switches both off: every hand-in is then run whole, with the same marks.
"""

from __future__ import annotations

import contextlib
import functools
import json
import operator
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from grader.classroom.course.cells import Cell
from grader.classroom.course.frame import is_first
from grader.classroom.course.notebook import answer_expression, checked, grade_id, restore
from grader.classroom.course.plan import plan_of
from grader.classroom.course.spelling import as_spelled
from grader.classroom.course.taken import taken
from grader.classroom.inside.limits import REPORTED, Limits
from grader.classroom.inside.shown import PACKAGE, common
from grader.classroom.runs.own_lines import lines_as_written
from grader.classroom.runs.slices import (
    CellNumbers,
    names_in,
    parts_of,
    plain_texts,
    spare_examples,
    that_define,
    typed_texts,
)
from grader.classroom.store import Store, key, version
from grader.classroom.walls.templates import Ended, Template, message_in, steadily
from grader.draw import _OF_A_LESSON
from grader.exercises.as_json import to_json
from grader.exercises.case import Case
from grader.exercises.collecting import asks
from grader.lessons import find

NAME_IN_CODE = re.compile(r"\w+")


@dataclass(frozen=True)
class Run:
    """The result of a hand-in's own code: answers by exercise, outputs by code cell, and why it ended early.

    `origins` say, by exercise, where the answers were written. They are for showing alone: two runs that differ in
    nothing else have the same answers. Where they count lines of cells without comments and spacing, these cells are
    among `plain_cells`. `spare_cells` are the code cells that did not have to run; all of them are worked examples.
    """

    answers: dict[str, Any]
    outputs: dict[int, Any]
    ending: str = ""
    spare_cells: tuple[int, ...] = ()
    origins: dict[str, Any] = field(default_factory=dict)
    plain_cells: Mapping[str, Sequence[Cell]] = field(default_factory=dict, compare=False)

    def origins_of(self, name: str) -> Any:
        """Where the answers to an exercise were written, in the lines of the student's own cells."""
        origins = self.origins.get(name)
        return lines_as_written(origins, self.plain_cells[name]) if name in self.plain_cells else origins


@dataclass(frozen=True, eq=False)
class Lesson:
    """A lesson's code cells, as students get them and with the solutions.

    `outputs` are those of its worked examples, by source, as they are stored with the solutions. An empty one stands
    for a lesson of which nothing is known: its hand-ins are run whole.
    """

    release: tuple[Cell, ...] = ()
    solved: tuple[Cell, ...] = ()
    outputs: Mapping[str, list[Any]] = field(default_factory=dict)

    @functools.cached_property
    def examples(self) -> tuple[str, ...]:
        """Its worked examples: the code cells that are neither an answer nor a check."""
        return tuple(cell.source for cell in self.release if cell.example)

    @functools.cached_property
    def defined(self) -> tuple[Cell, ...]:
        """As solved, but with a starter where a solution does more than define."""
        return that_define(self.solved, self.release)


@dataclass(frozen=True)
class Setup:
    """How a lesson's hand-ins are run: on the cases of a seed, within limits, with a store of what is already done."""

    seed: int
    limits: Limits
    store: Store
    lesson: Lesson


@dataclass
class Clock:
    """The seconds that are left for a hand-in's own code: all runs and all tries of it share them."""

    left: float

    @contextlib.contextmanager
    def ticking(self) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.left -= time.monotonic() - start

    @contextlib.contextmanager
    def half(self) -> Iterator[Clock]:
        """Half of what is left, for the length of a `with` block."""
        part = Clock(self.left / 2)
        self.left -= part.left
        try:
            yield part
        finally:
            self.left += part.left


Shortcut = Callable[[Sequence[Cell], Setup, Clock], Run | None]


def lesson_of(root: Path, name: str) -> Lesson:
    """The lesson, where both of its notebooks are here; else an empty one."""
    files = [root / folder / name / f"{name}.ipynb" for folder in ("course", "solutions")]
    if not all(file.exists() for file in files):
        return Lesson()
    return _read_lesson(root, name, *((file, file.stat().st_mtime_ns) for file in files))


@functools.lru_cache
def _read_lesson(root: Path, name: str, *files: tuple[Path, int]) -> Lesson:
    release, solved = (nbformat.read(file, 4) for file, _ in files)
    solved = taken(solved, name, plan_of(root), root)
    examples = {c.source for c in release.cells if c.cell_type == "code" and not grade_id(c)}
    outputs = {c.source: list(c.outputs) for c in solved.cells if c.source in examples}
    return Lesson(code(release, examples), code(restore(solved, release), examples), outputs)


def code(nb: NotebookNode, examples: Collection[str] = ()) -> tuple[Cell, ...]:
    """The code cells of a notebook whose check cells are restored; its first cell is the release's, wherever it would
    get the tools from."""
    first = next(filter(is_first, examples), "")
    sources = [(c, first if first and is_first(c.source) else c.source) for c in nb.cells if c.cell_type == "code"]
    return tuple(
        Cell(
            answer_expression(source) if checked(c) else source,
            checked(c),
            source in examples and not grade_id(c),
        )
        for c, source in sources
    )


@functools.lru_cache(maxsize=4)
def run_hand_in(cells: tuple[Cell, ...], setup: Setup) -> Run:
    """Run a hand-in by the first shortcut that applies to it, else whole. What is already done is not done again."""
    clock = Clock(setup.limits.seconds)
    for shortcut in SHORTCUTS:
        if _is_faithful(shortcut, setup) and (run := shortcut(cells, setup, clock)):
            return run
    return _run_whole(cells, setup, clock)


def _run_whole(cells: Sequence[Cell], setup: Setup, clock: Clock) -> Run:
    return perform(steps(cells, setup.seed), setup.limits, setup.store, clock)


@functools.lru_cache
def _is_faithful(shortcut: Shortcut, setup: Setup) -> bool:
    """Whether the solved lesson gives the same answers by this shortcut as it does when run whole."""
    for cells in (setup.lesson.solved, setup.lesson.defined):
        if run := shortcut(cells, setup, Clock(setup.limits.seconds)):
            return run.answers == _run_whole(cells, setup, Clock(setup.limits.seconds)).answers
    return False


def _in_slices(cells: Sequence[Cell], setup: Setup, clock: Clock) -> Run | None:
    """The answers of a notebook that has all worked examples, each once and in order, slice by slice.

    None when it cannot be cut, or when a slice has more to say than its answer. The slices together take half of the
    time at most: the rest is for running it whole.
    """
    examples = tuple(cell.source for cell in cells if cell.example)
    if examples != setup.lesson.examples or len(set(examples)) < len(examples) or not (found := _parts(tuple(cells))):
        return None
    parts = [part | CellNumbers((k,)) for k, part in found.answers.items()]
    parts += [CellNumbers(tuple(needed)) for needed in (found.for_shown, found.for_told) if needed]
    again = [part for part in parts if _comes_again(_part_steps(cells, part, setup), setup)]
    rest = functools.reduce(operator.or_, (part for part in parts if part not in again), CellNumbers())
    answers: dict[str, Any] = {}
    outputs: dict[int, Any] = {}
    origins: dict[str, Any] = {}
    plain_cells: dict[str, Sequence[Cell]] = {}
    with clock.half() as half:
        for part in (part for part in (*again, rest) if part.cells):
            run = perform(_part_steps(cells, part, setup), setup.limits, setup.store, half)
            if run.ending:
                return None
            answers |= run.answers
            origins |= run.origins
            plain_cells |= dict.fromkeys(run.origins, [cells[k] for k in part.cells])
            outputs |= {part.cells[k]: several for k, several in run.outputs.items()}
    shown = {k: outputs.pop(k) for k in found.shown if k in outputs}
    if len(answers) < len(found.answers) or _has_complaints(outputs):
        return None
    spares = tuple(k for k, cell in enumerate(cells) if cell.example and k not in shown)
    shown |= {k: outputs[k] for k in found.told if k in outputs}
    names = names_in(cells)
    written = {k: as_spelled(several, names) for k, several in shown.items()}
    return Run(as_spelled(answers, names), written, spare_cells=spares, origins=origins, plain_cells=plain_cells)


_parts = functools.lru_cache(maxsize=4)(parts_of)  # it is asked for twice: to run a hand-in, and to watch its answers


def _part_steps(cells: Sequence[Cell], part: CellNumbers, setup: Setup) -> list[dict[str, Any]]:
    """What a worker does with some of the cells, whose comments, spacing and names inside functions do not matter."""
    texts = zip(part.cells, plain_texts(cells, part), strict=True)
    return steps([replace(cells[k], source=text) for k, text in texts], setup.seed)


def _comes_again(todo: list[dict[str, Any]], setup: Setup) -> bool:
    """Whether the store has a run of these steps, or it is to have one: this process has been asked for it before."""
    name = run_key(todo, setup.limits)
    return setup.store.has("runs", name) or not setup.store.first_time("runs", name)


def _has_complaints(outputs: Mapping[int, Any]) -> bool:
    """Whether a cell showed an error, or wrote to stderr."""
    return any(o.get("output_type") == "error" or o.get("name") == "stderr" for _, o in _each_output(outputs))


def _without_spares(cells: Sequence[Cell], setup: Setup, clock: Clock) -> Run | None:
    """A run without the spare examples; None where there are none, or where a run with them may show more.

    That may be so when a cell of the student's own stops with an error, or any cell with a NameError.
    """
    if not (spares := _spares(cells, setup)):
        return None
    places = [k for k in range(len(cells)) if k not in spares]
    run = _run_whole([cells[k] for k in places], setup, clock)
    outputs = {places[k]: several for k, several in run.outputs.items()}
    errors = {k: o.get("ename") for k, o in _each_output(outputs) if o.get("output_type") == "error"}
    if any(not cells[k].example or error == "NameError" for k, error in errors.items()) and not run.ending:
        return None
    return replace(run, outputs=outputs, spare_cells=tuple(spares))


def _spares(cells: Sequence[Cell], setup: Setup) -> frozenset[int]:
    """The worked examples that need not run: none, where they are not each there once and in the lesson's order."""
    examples = [cell.source for cell in cells if cell.example]
    if len(set(examples)) < len(examples) or [e for e in setup.lesson.examples if e in examples] != examples:
        return frozenset()
    return spare_examples(cells, [source for source in setup.lesson.examples if source not in examples])


def _each_output(outputs: Mapping[int, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The outputs of all cells one by one, each with its cell's number. What is not an output is left out."""
    for k, several in outputs.items():
        for output in several if isinstance(several, list) else ():
            if isinstance(output, dict):
                yield k, output


SHORTCUTS: tuple[Shortcut, ...] = (_in_slices, _without_spares)  # the quickest first


@functools.cache
def workers() -> Template:
    """The template from which this process forks its workers."""
    return Template("worker")


@dataclass(frozen=True)
class Watched:
    """What is to be watched: an answer on a case where it misses a check."""

    case: Case
    check: str


def watch_answers(cells: Sequence[Cell], missed: Mapping[str, Watched], setup: Setup) -> Mapping[str, Any]:
    """What there is to watch of answers, each on a case where it misses a check, as workers report it.

    Nothing of it is believed. Of the cells those run that one of these answers needs, as they were typed; where nobody
    can tell, all but the worked examples that can be spared. An answer that comes again is watched by itself, and what
    there is to watch is kept for all students who typed the same; all others are watched in one run.
    """
    cut = _parts(tuple(cells)) is not None
    by_itself = {name: _watch_steps(cells, {name: seen}, setup) for name, seen in missed.items() if cut}
    again = [name for name, todo in by_itself.items() if _comes_again(todo, setup)]
    rest = {name: seen for name, seen in missed.items() if name not in again}
    runs = [by_itself[name] for name in again] + ([_watch_steps(cells, rest, setup)] if rest else [])
    clock, reported = Clock(setup.limits.seconds), dict[str, Any]()
    for todo in runs:
        reported |= perform(todo, setup.limits, setup.store, clock).answers
    return reported


def _watch_steps(cells: Sequence[Cell], missed: Mapping[str, Watched], setup: Setup) -> list[dict[str, Any]]:
    """What a worker does to watch these answers."""
    places = {next(k for k, cell in enumerate(cells) if cell.check == name): name for name in missed}
    parts = found.answers if (found := _parts(tuple(cells))) else {}
    spares = frozenset[int]() if parts else _spares(cells, setup)
    needed = [parts.get(k) or CellNumbers(tuple(sorted(set(range(k)) - spares))) for k in places]
    part = functools.reduce(operator.or_, needed, CellNumbers(tuple(sorted(places))))
    todo: list[dict[str, Any]] = []
    for k, text in zip(part.cells, typed_texts(cells, part), strict=True):
        if k in places:
            seen = missed[places[k]]
            step = {"check": places[k], "expression": text, "watch": to_json(seen.case)}
            todo.append({**step, "missed": seen.check})
        elif not cells[k].check:
            todo.append({"source": text})
    return todo


def steps(cells: Sequence[Cell], seed: int) -> list[dict[str, Any]]:
    """What a worker does with these code cells, one by one."""
    return [check_step(c.check, c.source, seed) if c.check else {"source": c.source} for c in cells]


def check_step(name: str, expression: str, seed: int) -> dict[str, Any]:
    return {"check": name, "expression": expression, **_asked(name, seed)}


@functools.lru_cache
def _asked(name: str, seed: int) -> dict[str, Any]:
    exercise = find(name)
    return {"form": exercise.form, "asks": to_json(asks(exercise, exercise.draw_cases(seed, thorough=True)))}


def perform(todo: list[dict[str, Any]], limits: Limits, store: Store, clock: Clock | None = None) -> Run:
    """Do the steps in a worker while the clock allows it, unless the store has their result.

    An end that may be the machine's doing is doubted; one that came because other runs had used up the time is not
    kept.
    """
    clock = clock or Clock(limits.seconds)
    name, has_all = run_key(todo, limits), clock.left >= limits.seconds
    if record := store.get("runs", name):
        if not record["answers"].keys() <= _asked_for(todo):  # it may come from a worker elsewhere
            raise ValueError("a run has answers to what was not asked")
        outputs = {int(k): v for k, v in record["outputs"].items()}
        return Run(record["answers"], outputs, record["ending"], origins=record["origins"])
    run, end = _run_steps(todo, limits, clock)
    record = {"answers": run.answers, "outputs": run.outputs, "ending": run.ending, "origins": run.origins}
    if end is None or not end.doubtful:
        store.put("runs", name, record)
    elif has_all:
        store.doubt("runs", name, record, run.ending)
    return run


def run_key(todo: list[dict[str, Any]], limits: Limits) -> str:
    return key(version(*common(), *_pictures_in(todo)), todo, limits.cell_seconds, limits.seconds)


def _pictures_in(todo: list[dict[str, Any]]) -> list[Path]:
    """Where the pictures of lessons lie that these steps may draw."""
    words = {word for step in todo for word in NAME_IN_CODE.findall(step.get("source", ""))}
    homes = {_OF_A_LESSON[name].split(".")[0] for name in words & _OF_A_LESSON.keys()}
    return [PACKAGE / "lessons" / home / "pictures" for home in sorted(homes)]


def _asked_for(todo: list[dict[str, Any]]) -> set[str]:
    """The exercises whose answers the steps ask for."""
    return {step["check"] for step in todo if "check" in step}


def _run_steps(todo: list[dict[str, Any]], limits: Limits, clock: Clock) -> tuple[Run, Ended | None]:
    """The run, and how it ended before its work did."""
    run = Run({}, {})
    try:
        steadily(lambda: _listen(todo, limits, run, clock))
    except Ended as end:
        return replace(run, ending=str(end)), end
    return run, None


def _listen(todo: list[dict[str, Any]], limits: Limits, run: Run, clock: Clock) -> None:
    """Enter into the run what a worker reports while it does the steps."""
    if clock.left <= 0:
        raise Ended(f"The {limits.seconds:g} seconds that a notebook may take were over.", late=True)
    run.answers.clear()
    run.outputs.clear()
    run.origins.clear()
    names = _asked_for(todo)
    room = REPORTED
    with workers().fork(replace(limits, seconds=clock.left)) as fork, clock.ticking():
        fork.write(json.dumps({"cell_seconds": limits.cell_seconds, "steps": todo}))
        for line in fork.lines():
            message = _message(line)
            number, name = message.get("cell"), message.get("check")
            if message.get("end") is True:
                break
            if isinstance(number, int) and 0 <= number < len(todo):
                if (room := room - len(line)) > 0:
                    run.outputs[number] = message.get("outputs")
            elif isinstance(name, str) and name in names:
                run.answers.setdefault(name, message.get("answers"))
            elif isinstance(of := message.get("origins_of"), str) and of in names and (room := room - len(line)) > 0:
                run.origins.setdefault(of, message.get("origins"))


def _message(line: str) -> dict[str, Any]:
    """A worker's message. A line that is none is an empty one: students' code may have written it."""
    try:
        message = message_in(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}
