"""What an answer does on a case, and which mistake does the same.

A program's behaviour is all that a judge may see of it: the block on every device, the layout, and the
communication. Two programs that behave the same are the same to us, however they are spelled; this is how
a wrong answer finds the mistake that explains it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from grader.answers import Answer, Problem, Value, asks, collect
from grader.communication import Structure, flops, structure
from grader.exercise import Array, Case, Exercise, Mistake
from grader.program import Program, make_mesh, put


@dataclass(frozen=True)
class Execution:
    """A program on one case. Each part is worked out when it is first asked for."""

    program: Program
    case: Case

    @cached_property
    def inputs(self) -> list[jax.Array]:
        mesh = make_mesh(self.case.mesh)
        return [put(a.value, a.spec, mesh) for a in self.case.arguments.values() if isinstance(a, Array)]

    @cached_property
    def structure(self) -> Structure:
        return structure(self.program)

    @cached_property
    def compiled(self) -> jax.stages.Compiled:
        return self.program.compile(*self.inputs)

    @cached_property
    def results(self) -> list[jax.Array]:
        return jax.tree.leaves(jax.block_until_ready(self.compiled(*self.inputs)))

    @cached_property
    def flops(self) -> int:
        return flops(self.compiled, self.structure)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(aval.shape) for aval in self.program.exported.out_avals]

    @property
    def may_wait_for_ever(self) -> bool:
        """Whether some collective stands where not every device need come by: it must not be run."""
        return any(c.times is None for c in self.structure.collectives)


def blocks_by_device(array: jax.Array) -> list[tuple[tuple[slice, ...], np.ndarray]]:
    """Per device, in the order of device ids: the part of the whole it claims to hold, and what it holds."""
    shards = sorted(array.addressable_shards, key=lambda shard: shard.device.id)
    return [(_explicit(shard.index, array.shape), np.asarray(shard.data)) for shard in shards]


def _explicit(index: tuple[slice, ...], shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(*i.indices(n)[:2]) for i, n in zip(index, shape, strict=True))


def close(found: Any, expected: Any) -> bool:
    """Equal up to float32 rounding, relative to the largest entry expected."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind not in "fc":
        return bool((found == expected).all())
    scale = float(np.max(np.abs(expected), initial=0.0))
    return bool(np.allclose(found, expected, rtol=1e-5, atol=1e-5 * max(scale, 1e-30)))


def same_value(found: Any, expected: Any) -> bool:
    """Equality of plain values: containers item by item, a list and a tuple being alike."""
    if isinstance(expected, dict):
        return (isinstance(found, dict) and found.keys() == expected.keys()
                and all(same_value(found[k], expected[k]) for k in expected))
    if isinstance(expected, (list, tuple)):
        return (isinstance(found, (list, tuple)) and len(found) == len(expected)
                and all(map(same_value, found, expected)))
    if isinstance(expected, str) or isinstance(found, str):
        return found == expected
    if isinstance(found, (dict, list, tuple)):
        return False
    return close(found, expected)


def explain(exercise: Exercise, cases: Sequence[Case], found: Sequence[Answer | Execution],
            failing: int) -> Mistake | None:
    """The mistake that behaves as what was found on the failing case.

    If several do, the one that also communicates as what was found on the other cases; programs are not run
    for that, since a student waits.
    """
    alike = [m for m in exercise.mistakes if _alike(exercise, m, cases[failing], found[failing], running=True)]
    for k in range(len(cases)):
        if len(alike) > 1 and k != failing:
            alike = [m for m in alike if _alike(exercise, m, cases[k], found[k], running=False)] or alike
    return alike[0] if alike else None


def _alike(exercise: Exercise, mistake: Mistake, case: Case, found: Answer | Execution, *, running: bool) -> bool:
    if exercise.form == "table":
        return isinstance(found, Value) and same_value(found.value, mistake.wrong(**case.arguments))
    return any(_behaves_like(found, other, case, running) for other in _answers_of(exercise, mistake, case))


def _behaves_like(found: Answer | Execution, other: Answer, case: Case, running: bool) -> bool:
    match found, other:
        case Problem(), Problem():
            return _gist(found) == _gist(other)
        case Value(), Value():
            return same_value(found.value, other.value)
        case Execution(), Program():
            return _same_program(found, Execution(other, case), running)
    return False


def _answers_of(exercise: Exercise, mistake: Mistake, case: Case) -> Iterator[Answer]:
    (ask,) = asks(exercise, [case])
    for spelled in mistake.spellings():
        yield collect(exercise.form, [ask], spelled)[0]


def _same_program(one: Execution, other: Execution, running: bool) -> bool:
    if one.shapes != other.shapes or _moves(one.structure) != _moves(other.structure):
        return False
    if not running:
        return True
    if one.may_wait_for_ever or other.may_wait_for_ever:
        return one.may_wait_for_ever == other.may_wait_for_ever
    return all(_same_blocks(a, b) for a, b in zip(one.results, other.results, strict=True))


def _moves(found: Structure) -> Counter[tuple[str, tuple[str, ...], int]]:
    """The communication as a multiset; what a single device says to itself does not count."""
    return Counter((c.kind, c.axes, c.bytes_sent) for c in found.collectives if c.group > 1)


def _same_blocks(a: jax.Array, b: jax.Array) -> bool:
    pairs = zip(blocks_by_device(a), blocks_by_device(b), strict=True)
    return all(here == there and close(x, y) for (here, x), (there, y) in pairs)


def _gist(problem: Problem) -> tuple[str, str, tuple[str, ...]]:
    """An error without the names that differ from one spelling of a program to the next."""
    first = problem.message.strip().splitlines()[0] if problem.message.strip() else ""
    return problem.error, re.sub(r"<[^>]*>|at \S+:\d+|function \S+|\w+ at ", "·", first), problem.operands
