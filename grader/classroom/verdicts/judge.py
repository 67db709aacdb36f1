"""The judge: it decides, in this process; an evaluator tells it what a student's program does.

An evaluator is a process behind the walls that a program may crash, hang or fill; a launcher is one behind the walls
that runs a function in several processes. Each answer gets a fork of its own, so that no two answers meet.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from grader.arrays.devices import as_flags, eight_devices
from grader.chips.compiling import NoCompiler, Request, how_to_get, known_answer, libtpu
from grader.chips.report import Fit, fit_of
from grader.classroom.inside import wire
from grader.classroom.inside.limits import Limits
from grader.classroom.inside.shown import PACKAGE
from grader.classroom.verdicts.records import Judged
from grader.classroom.walls.bubblewrap import NoWalls
from grader.classroom.walls.templates import Ended, Fork, NotStarted, Template, message_in, steadily
from grader.exercises.answers import Answer, Script
from grader.exercises.as_json import from_json, to_json
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise
from grader.exercises.verdict import Outcome, Verdict
from grader.explaining.explained import explained
from grader.findings.finding import LONGEST_FIELD, Finding
from grader.findings.verdicts import Crashed, Deadlocked, GraderFailed, TooLong
from grader.jax_versions import timeouts
from grader.judging.behaviour import Execution, specs_due
from grader.judging.compilations import Compilation
from grader.judging.together import run_through
from grader.processes.launch import Launch, launch_of
from grader.programs.execution import Failed, Ran
from grader.programs.program import Program
from grader.programs.structure import Collective, Structure

JUDGE_SECONDS = 60.0  # for one exercise: compiling and running it on every case
LAUNCH_SECONDS = 300.0  # the same where it is run in several processes
COMPILER = replace(Limits(), seconds=180)  # for one compilation for a pod
# What a verdict depends on, besides the answer, what declares its exercise, and what runs behind the walls.
DECIDES = tuple(PACKAGE / room for room in ("judging", "explaining", "classroom/verdicts"))
GRADER_WORKS = "grader"  # the check that is missed when judging itself fails


class Evaluated(Execution):
    """A program on one case, run by an evaluator. Raises Failed, or Ended when the evaluator is gone."""

    def __init__(self, program: Program, case: Case, ask: Callable[[dict[str, Any]], dict[str, Any]]):
        super().__init__(program, case)
        self.ask = ask

    @cached_property
    def _description(self) -> dict[str, Any]:
        return self.ask(wire.question(self.program))

    @cached_property
    def forms(self) -> list[tuple[str, tuple[int, ...]]]:
        return wire.forms_in(self._description["forms"])

    @cached_property
    def structure(self) -> Structure:
        return wire.STRUCTURE.read(self._description["structure"])

    def run(self) -> Ran:
        return wire.RAN.read(self.ask(self._to_run))

    def sent_without_collectives(self) -> tuple[Collective, ...]:
        return wire.SENT.read(self.ask({**self._to_run, "bare": True})["sent"])

    @property
    def _to_run(self) -> dict[str, Any]:
        """The program, what it is run on, and what its results are held against."""
        return {**wire.question(self.program), **wire.run_of(self.case.mesh, self.operands, specs_due(self.case))}


class Judge:
    """Judges answers in their JSON form on the cases of a seed."""

    def __init__(self, seconds: float = JUDGE_SECONDS):
        self.evaluators = Template(
            "evaluator", limits=replace(Limits(), seconds=seconds), flags=as_flags(timeouts(2, 5))
        )
        self.launchers = Template("launcher", limits=replace(Limits(), seconds=max(seconds, LAUNCH_SECONDS)))
        self.compilers = Template("compiler", limits=COMPILER)

    def __call__(self, exercise: Exercise, seed: int, answers: Any) -> Judged:
        eight_devices()  # for references and mistakes, which are ours
        try:
            return self._verdict(exercise, exercise.draw_cases(seed, thorough=True), from_json(answers))
        except (NotStarted, NoWalls, MemoryError):
            raise
        except Exception as error:  # a mistake of ours: the class goes on
            return no_marks(exercise, GRADER_WORKS, GraderFailed(type(error).__name__, str(error)[:LONGEST_FIELD]))

    def _verdict(self, exercise: Exercise, cases: Sequence[Case], answers: list[Answer]) -> Judged:
        if any(isinstance(answer, Program) for answer in answers):
            template = self.evaluators
        elif any(isinstance(answer, Script) for answer in answers):
            template = self.launchers
        else:
            return Judged(explained(exercise, cases, answers))

        def decide() -> Judged:
            doubts: list[Ended] = []

            def executed(program: Program, case: Case) -> Execution | Compilation:
                if case.pod:
                    return Compilation(program, case, functools.partial(_compiled, self.compilers, doubts))
                return Evaluated(program, case, ask)

            with template.fork() as fork:
                ask = functools.partial(_ask, fork)
                found = explained(exercise, cases, answers, executed, lambda script, case: _launch(script, case, ask))
            return Judged(found, doubtful=any(end.doubtful for end in doubts))

        try:
            return steadily(decide)
        except Ended as end:
            return replace(no_marks(exercise, "runs", _why(end, template.limits)), doubtful=end.doubtful)

    def close(self) -> None:
        for template in (self.evaluators, self.launchers, self.compilers):
            template.kill()


def _launch(script: Script, case: Case, ask: Callable[[dict[str, Any]], dict[str, Any]]) -> Launch:
    """The launch of a script, as a launcher reports it."""

    def launched(job: dict[str, Any]) -> Launch:
        try:
            return launch_of(ask({**job, "arguments": to_json(job["arguments"])}))
        except ValueError as error:
            raise Ended(f"The processes answered what is no answer: {error}") from error

    return run_through(script, case, launched)


def _compiled(compilers: Template, doubts: list[Ended], asked: Request) -> Fit:
    """What the compiler of a pod says, as a process behind the walls reports it; or what it has said before.

    Raises NoCompiler where it cannot be had, or came to no end.
    """
    if known := known_answer(asked):
        return fit_of(asked, known)
    if libtpu() is None:
        raise NoCompiler(f"it is not among the compilations that are stored with the course. {how_to_get()}")
    try:
        with compilers.fork() as fork:
            return wire.FIT.read(_ask(fork, wire.to_compile(asked)))
    except (Failed, ValueError) as error:
        raise NoCompiler(f"the compiler for {asked.pod} fails on it: {error}") from None
    except Ended as end:
        doubts.append(end)
        late = f"was not done after {compilers.limits.seconds:g} seconds, and was stopped."
        raise NoCompiler(f"compiling for {asked.pod} {late if end.late else f'came to no end. {end}'}") from None


def _ask(fork: Fork, question: dict[str, Any]) -> dict[str, Any]:
    fork.write(json.dumps(question))
    try:
        reply = message_in(next(fork.lines()))
        if "raised" in reply:
            kind, message = map(str, reply["raised"])
            raise Failed(kind[:100], message[:4000])
        return reply
    except (ValueError, TypeError) as error:
        raise Ended(f"The evaluator answered what it never answers: {error}") from error


def _why(end: Ended, limits: Limits) -> Finding:
    if end.late:
        return TooLong(float(limits.seconds))
    if end.status is None:
        return Crashed(str(end)[:LONGEST_FIELD])
    return Deadlocked() if end.is_abort else Crashed()


@functools.cache
def shared_judge() -> Judge:
    """The judge of this process: starting its evaluator takes seconds, so a class shares it."""
    return Judge()


def no_marks(exercise: Exercise, check: str, why: Finding) -> Judged:
    return Judged(Verdict(exercise.name, (Outcome.missed(exercise.name, check, exercise.points, (why,)),)))
