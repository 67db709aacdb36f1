"""What an answer does on a case, and which mistake does the same.

A program's behaviour is all that a judge may see of it: the block on every device, the layout, and the
communication. Two programs that behave the same are the same to us, however they are spelled; this is how
a wrong answer finds the mistake that explains it.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader import together
from grader.answers import Answer, Problem, Script, Value, asks, collect, plain
from grader.blocks import Blocks, blocks_of
from grader.communication import flops
from grader.exercise import ROUNDINGS, Array, Case, Exercise, Mistake, holds_arrays
from grader.launch import Launch
from grader.program import Program, make_mesh, put
from grader.structure import Collective, Structure
from grader.walk import compiled_structure, structure


@dataclass(frozen=True)
class Result:
    """One array that a program returned: who holds what, how it lies, and whether that is as was asked."""

    held: Blocks
    layout: str
    as_asked: bool

    @property
    def claims_copies(self) -> bool:
        """Whether every device is said to hold the whole."""
        whole = tuple(slice(0, n) for n in self.held.shape)
        return len(self.held.indices) > 1 and all(index == whole for index in self.held.indices)


@dataclass(frozen=True)
class Ran:
    """What running a program came to: its results, each device's FLOPs, and the collectives of what was compiled."""

    results: tuple[Result, ...]
    flops: int
    compiled: tuple[Collective, ...]

    @property
    def bytes_sent(self) -> int:
        """Bytes that each device sends."""
        return sum(c.bytes_sent for c in self.compiled)


class Failed(Exception):
    """A program that JAX or XLA refused to read or to run: `kind` names their error, the text is their message."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


class Execution:
    """A program on one case. Each part is worked out when it is first asked for.

    This one works them out here; the classroom's asks a process that may not survive it. `forms`,
    `structure` and `run` are all that a subclass has to give. All of them raise Failed.
    """

    def __init__(self, program: Program, case: Case):
        self.program, self.case = program, case

    @cached_property
    def forms(self) -> list[tuple[str, tuple[int, ...]]]:
        """Each array of the result: where it stands in it, and its shape."""
        return self.program.results

    @cached_property
    def structure(self) -> Structure:
        return _read(self.program)

    @cached_property
    def ran(self) -> Ran:
        """What running it came to; what must not be run is not."""
        if self.may_wait_for_ever or self.structure.foreign:
            raise Failed("Refused", "it is not to be run")
        return self.run()

    def run(self) -> Ran:
        try:
            return _executed(self.program, self.case)
        except Exception as error:  # XLA's own refusals
            raise Failed(type(error).__name__, str(error)) from error

    @property
    def given(self) -> list[Array]:
        """The arrays that the program is run on."""
        return given(self.case)

    @property
    def results(self) -> tuple[Result, ...]:
        return self.ran.results

    @property
    def may_wait_for_ever(self) -> bool:
        """Whether some collective stands where not every device need come by: it must not be run."""
        return any(c.times is None for c in self.structure.collectives)


# A wrong program is met twice, as an answer and as the mistake that explains it; and checks are run again and again.
_read = functools.lru_cache(maxsize=256)(structure)


@functools.lru_cache(maxsize=256)
def _executed(program: Program, case: Case) -> Ran:
    return execute(program, case.mesh, given(case), specs(case), _read(program))


def given(case: Case) -> list[Array]:
    """The arrays that a program is run on, those of pytrees one after the other; cotangents come last."""
    arguments = [a for a in case.arguments.values() if holds_arrays(a)]
    return jax.tree.leaves((arguments, case.cotangents))


def specs(case: Case) -> list[P]:
    """The layouts asked of a case's results; a gradient lies as what it is the gradient by."""
    asked = jax.tree.leaves(case.out, is_leaf=lambda spec: isinstance(spec, P))
    if case.cotangents is None:
        return asked
    arguments = [a for a in case.arguments.values() if holds_arrays(a)]
    return asked + [a.spec for a in jax.tree.leaves(arguments) if a.value.dtype.kind not in "iub"]


def execute(program: Program, sizes: Mapping[str, int], given: Sequence[Array], wanted: Sequence[P],
            written: Structure) -> Ran:
    """Run a program on a mesh of these sizes, and hold its results against the layouts wanted."""
    mesh = make_mesh(sizes)
    inputs = [put(a.value, a.spec, mesh) for a in given]
    compiled = program.compile(*inputs, once=True)
    arrays = jax.tree.leaves(jax.block_until_ready(compiled(*inputs)))
    asked = [NamedSharding(mesh, spec) for spec in wanted] + [None] * (len(arrays) - len(wanted))
    results = tuple(_result(a, w, sizes) for a, w in zip(arrays, asked, strict=False))
    return Ran(results, flops(compiled, written), compiled_structure(compiled, written.mesh).collectives)


def _result(array: jax.Array, wanted: NamedSharding | None, sizes: Mapping[str, int]) -> Result:
    as_asked = wanted is not None and array.sharding.is_equivalent_to(wanted, array.ndim)
    return Result(blocks_of(array, sizes), spelled(getattr(array.sharding, "spec", array.sharding)), as_asked)


def spelled(spec: Any) -> str:
    """A layout as one writes it: P('x', None)."""
    return f"P({', '.join(map(repr, spec))})" if isinstance(spec, P) else str(spec)


def close(found: Any, expected: Any, roundings: int = ROUNDINGS) -> bool:
    """Equal up to rounding: `roundings` of them, one after the other, relative to the largest entry expected.

    A sum of n terms is off by at most n·u times the sum of their magnitudes, to first order, in whatever order they
    are added; u is half the distance from 1 to the next number, 2⁻²⁴ in float32 (Higham, Accuracy and Stability of
    Numerical Algorithms, 2nd ed., §4.2). The largest entry stands for that sum of magnitudes.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return False
    if found.dtype.kind in "OUSM":
        return False
    if expected.dtype.kind not in "fc":
        return bool((found == expected).all())
    return bool(np.isclose(found, expected, rtol=0, atol=tolerance(expected, roundings)).all())


def tolerance(expected: np.ndarray, roundings: int = ROUNDINGS) -> float:
    """How far an entry may be from the one expected (see `close`). Devices compute in float32, whatever is expected."""
    finite = np.abs(expected[np.isfinite(expected)])
    return roundings * float(np.finfo(np.float32).eps) / 2 * max(float(np.max(finite, initial=0.0)), 1e-30)


def same_value(found: Any, expected: Any) -> bool:
    """Equality of plain values: containers item by item, a list and a tuple being alike."""
    if isinstance(expected, dict):
        return (isinstance(found, dict) and found.keys() == expected.keys()
                and all(same_value(found[k], expected[k]) for k in expected))
    if isinstance(expected, (list, tuple)):
        return (isinstance(found, (list, tuple)) and len(found) == len(expected)
                and all(map(same_value, found, expected)))
    if expected is None or found is None or isinstance(expected, str) or isinstance(found, str):
        return type(found) is type(expected) and found == expected
    if isinstance(found, (dict, list, tuple)):
        return False
    return close(found, expected)


def same_answer(exercise: Exercise, case: Case, one: Any, other: Any) -> bool:
    """Whether two values answer a case alike: `exercise.same` decides where there is one."""
    if exercise.same is None:
        return same_value(one, plain(other))
    try:
        return bool(exercise.same(one, other, **case.arguments))
    except Exception:  # a student's value may have any form
        return False


def explain(exercise: Exercise, cases: Sequence[Case], found: Sequence[Answer | Execution | Launch],
            failing: int) -> Mistake | None:
    """The mistake that behaves as what was found on the failing case.

    If several do, the one that also communicates as what was found on the other cases; programs are not run
    for that, since a student waits.
    """
    alike = (m for m in exercise.mistakes if _alike(exercise, m, cases[failing], found[failing], running=True))
    if exercise.form == "processes":  # each takes seconds to run: the first that fits
        return next(alike, None)
    alike = list(alike)
    for k in range(len(cases)):
        if len(alike) > 1 and k != failing:
            alike = [m for m in alike if _alike(exercise, m, cases[k], found[k], running=False)] or alike
    return alike[0] if alike else None


def _alike(exercise: Exercise, mistake: Mistake, case: Case, found: Answer | Execution, *, running: bool) -> bool:
    if exercise.form == "table":
        wrong = _wrong_entry(mistake, case)
        return isinstance(found, Value) and wrong is not None and same_answer(exercise, case, found.value, wrong)
    return any(_behaves_like(exercise, case, found, other, running) for other in _mistaken(exercise, mistake, case))


def _behaves_like(exercise: Exercise, case: Case, found: Answer | Execution, other: Answer | Execution,
                  running: bool) -> bool:
    match found, other:
        case Problem(), Problem():
            return _gist(found) == _gist(other)
        case Value(), Value():
            same_way = bool(found.uploaded) == bool(other.uploaded)
            return same_way and same_answer(exercise, case, found.value, other.value)
        case Execution(), Execution():
            return _same_program(found, other, running, exercise.by_compiler)
        case Launch(), Launch():
            return together.alike(found, other, same_value)
    return False


@functools.lru_cache(maxsize=1024)
def _wrong_entry(mistake: Mistake, case: Case) -> Any:
    """What a mistake says in a row of a table; None where it is about another."""
    return mistake.wrong(**case.arguments)


@functools.lru_cache(maxsize=1024)
def _mistaken(exercise: Exercise, mistake: Mistake, case: Case) -> tuple[Answer | Execution, ...]:
    """What a mistake answers to a case, however it is spelled. Kept: a class makes it again and again."""
    (ask,) = asks(exercise, [case])
    found = (collect(exercise.form, [ask], spelled)[0] for spelled in mistake.spellings())
    return tuple(_done(answer, case) for answer in found)


def _done(answer: Answer, case: Case) -> Answer | Execution | Launch:
    """The answer, run where it is something to run."""
    match answer:
        case Program():
            return Execution(answer, case)
        case Script():
            return together.start(answer, case)
    return answer


def _same_program(one: Execution, other: Execution, running: bool, by_compiler: bool) -> bool:
    try:
        if one.forms != other.forms or _moves(one.structure.collectives) != _moves(other.structure.collectives):
            return False
        if not running:
            return True
        if one.may_wait_for_ever or other.may_wait_for_ever:
            return one.may_wait_for_ever == other.may_wait_for_ever
        if by_compiler and _moves(one.ran.compiled) != _moves(other.ran.compiled):
            return False
        return all(_same_blocks(a.held, b.held, one.case.roundings)
                   for a, b in zip(one.results, other.results, strict=True))
    except Failed:
        return running and (refused := _refusal(one)) is not None and refused == _refusal(other)


def _refusal(run: Execution) -> tuple[str, str] | None:
    """How JAX or XLA refused to read or run a program: the error, and the first line of its message."""
    try:
        run.structure, run.ran  # noqa: B018 - worked out when they are asked for
    except Failed as error:
        return error.kind, str(error).partition("\n")[0]
    return None


def _moves(found: Sequence[Collective]) -> Counter[tuple[str, tuple[str, ...], int]]:
    """The communication as a multiset; what a single device says to itself does not count."""
    return Counter((c.kind, c.axes, c.bytes_sent) for c in found if c.group > 1)


def _same_blocks(a: Blocks, b: Blocks, roundings: int) -> bool:
    return a.indices == b.indices and all(_same_numbers(one, other, roundings)
                                          for one, other in zip(a.values, b.values, strict=True))


def _same_numbers(one: np.ndarray, other: np.ndarray, roundings: int) -> bool:
    """Close, and infinite or no number in the same places: a wrong program may overflow, or divide 0 by 0."""
    if one.shape != other.shape:
        return False
    odd = ~np.isfinite(other)
    alike = np.array_equal(one[odd], other[odd], equal_nan=True)
    return alike and close(np.where(odd, 0, one), np.where(odd, 0, other), roundings)


def _gist(problem: Problem) -> tuple[str, str, tuple[str, ...]]:
    """An error without the names that differ from one spelling of a program to the next."""
    first = problem.message.strip().splitlines()[0] if problem.message.strip() else ""
    names = r"<[^>]*>|at \S+:\d+|function \S+|\w+ at |argument \S+ of .+? with"
    return problem.error, re.sub(names, "·", first), problem.operands
