"""Whether changed answers are accepted: judged in a process of its own, which is ended where one takes too long."""

import multiprocessing
import resource
from multiprocessing.connection import Connection

from answering import answered, define

from grader.arrays.devices import eight_devices
from grader.exercises.collecting import asks, collect
from grader.exercises.exercise import Exercise
from grader.jax_versions import one_mlir_context
from grader.judging.judge import LADDERS
from grader.lessons import EXERCISES

SECONDS = 8  # for an answer: some never end
MEMORY = 8 << 30  # bytes: some ask for all there is


def passes(exercise: Exercise, answer: object, seed: int, thorough: bool) -> bool:
    """Whether an answer misses no check in any case."""
    cases = exercise.draw_cases(seed, thorough=thorough)
    with one_mlir_context():
        answers = collect(exercise.form, asks(exercise, cases), answer)
        return LADDERS[type(exercise.kind)](exercise, cases, answers).first_miss() is None


def is_accepted(lesson: str, name: str, source: str) -> bool:
    """Whether the answer that a cell defines passes in the notebook and in grading."""
    space = dict(answered("solutions", lesson))
    define(source, space)
    exercise, answer = EXERCISES[name], space[name]
    return passes(exercise, answer, seed=0, thorough=False) and passes(exercise, answer, seed=7, thorough=True)


def work(line: Connection) -> None:
    """Judge what comes through the line."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    eight_devices()
    line.send("ready")
    while asked := line.recv():
        try:
            line.send(is_accepted(*asked))
        except Exception as error:  # a fault of the judge's: what an answer raises is part of a verdict
            line.send(error)


class Apart:
    """The process, which is started when it is needed first, and again after one that was ended."""

    def __init__(self) -> None:
        self.process: multiprocessing.process.BaseProcess | None = None

    def accepts(self, lesson: str, name: str, source: str) -> bool:
        """Whether the answer is accepted in time."""
        if self.process is None:
            self._start()
        self.line.send((lesson, name, source))
        try:
            accepted = self.line.recv() if self.line.poll(SECONDS) else None
        except EOFError:  # the answer ended the process
            accepted = None
        if accepted is None:
            self.end()
        if isinstance(accepted, Exception):
            raise accepted
        return bool(accepted)

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.line, there = spawn.Pipe()
        self.process = spawn.Process(target=work, args=(there,), daemon=True)
        self.process.start()
        there.close()
        self.line.recv()

    def end(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None
