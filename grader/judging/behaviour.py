"""What an answer does on a case, and which mistake does the same.

A program's behaviour is all that a judge may see of it: the block on every device, the layout, and the
communication. Two programs that behave the same are the same to us, however they are spelled; this is how
a wrong answer finds the mistake that explains it.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.laid import Array, holds_arrays
from grader.arrays.numbers import same_numbers
from grader.exercises.case import Case
from grader.programs.execution import (
    Failed,
    Ran,
    Result,
    execute,
    sent_without_collectives,
)
from grader.programs.program import Program
from grader.programs.structure import Collective, Structure
from grader.programs.walk import structure


class Execution:
    """A program on one case. Each part is worked out when it is first asked for.

    This class works them out in this process; the classroom's asks another, which may not survive it. A subclass has
    to give `forms`, `structure`, `run` and `sent_without_collectives`, each of which may raise Failed.
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
        """What running it came to. Raises Failed for a program that must not be run."""
        if self.may_wait_for_ever or self.structure.foreign:
            raise Failed("Refused", "it is not to be run")
        return self.run()

    def finish(self) -> Ran:
        """Read it and run it to its end. Raises Failed where that is impossible."""
        return self.ran

    def run(self) -> Ran:
        try:
            return _executed(self.program, self.case)
        except Exception as error:  # XLA's own refusals
            raise Failed(type(error).__name__, str(error)) from error

    @cached_property
    def unwritten(self) -> tuple[Collective, ...]:
        """What of the compiled collectives nobody wrote. Found by compiling once more, but where that is plain."""
        if not self.structure.collectives or not any(c.group > 1 for c in self.ran.compiled):
            return self.ran.compiled
        if self.ran.marked and _ways(self.ran.compiled) <= _ways(self.structure.authored):
            return ()
        return self.sent_without_collectives()

    def sent_without_collectives(self) -> tuple[Collective, ...]:
        """What the compiler sends when the written collectives are taken out."""
        try:
            return _sent_without_collectives(self.program, self.case)
        except Exception as error:  # XLA's own refusals
            raise Failed(type(error).__name__, str(error)) from error

    @property
    def operands(self) -> list[Array]:
        """The arrays that the program is run on."""
        return operands(self.case)

    @property
    def results(self) -> tuple[Result, ...]:
        return self.ran.results

    @property
    def may_wait_for_ever(self) -> bool:
        """Whether some devices may never reach one of the collectives: such a program must not be run."""
        return any(c.times is None for c in self.structure.collectives)


# A wrong program is met twice, as an answer and as the mistake that explains it; and checks are run again and again.
_read = functools.lru_cache(maxsize=256)(structure)


@functools.lru_cache(maxsize=256)
def _executed(program: Program, case: Case) -> Ran:
    return execute(program, case.mesh, operands(case), specs_due(case), _read(program))


@functools.lru_cache(maxsize=256)
def _sent_without_collectives(program: Program, case: Case) -> tuple[Collective, ...]:
    return sent_without_collectives(program, case.mesh, operands(case), _read(program))


def operands(case: Case) -> list[Array]:
    """The arrays that a program is run on, those of pytrees one after the other; cotangents come last."""
    arguments = [a for a in case.arguments.values() if holds_arrays(a)]
    return jax.tree.leaves((arguments, case.cotangents))


def specs_due(case: Case) -> list[P]:
    """The layouts that a case asks of its results; a gradient is laid out as the argument it belongs to."""
    specs = jax.tree.leaves(case.out, is_leaf=lambda spec: isinstance(spec, P))
    if case.cotangents is None:
        return specs
    arguments = [a for a in case.arguments.values() if holds_arrays(a)]
    return specs + [a.spec for a in jax.tree.leaves(arguments) if a.value.dtype.kind not in "iub"]


def same_behaviour(one: Execution, other: Execution, *, by_compiler: bool) -> bool:
    """Whether two programs send the same and come to the same."""
    try:
        if one.forms != other.forms or _moves(one.structure.collectives) != _moves(other.structure.collectives):
            return False
        if one.structure.bytes_one_way != other.structure.bytes_one_way:  # all of it one way, or some of it each way
            return False
        if one.may_wait_for_ever or other.may_wait_for_ever:
            return one.may_wait_for_ever == other.may_wait_for_ever
        if by_compiler and _moves(one.ran.compiled) != _moves(other.ran.compiled):
            return False
        return same_results(one, other)
    except Failed:
        return (refused := _refusal(one)) is not None and refused == _refusal(other)


def leaves_all_to_the_compiler(run: Execution, formula: Execution) -> bool:
    """Whether nobody wrote what the formula's own program sends, and the rest of what is written is a decoy."""
    try:
        sent = _moves(formula.ran.compiled)
        return bool(sent) and sent <= _moves(run.unwritten) and same_results(run, formula)
    except Failed:
        return False


def same_results(one: Execution, other: Execution) -> bool:
    """Whether two programs leave the same blocks on every device."""
    try:
        return one.forms == other.forms and all(
            same_blocks(a, b, one.case.roundings) for a, b in zip(one.results, other.results, strict=True)
        )
    except Failed:
        return False


def _refusal(run: Execution) -> tuple[str, str] | None:
    """How JAX or XLA refused to read or run a program: the error, and the first line of its message."""
    try:
        run.finish()
    except Failed as error:
        return error.kind, str(error).partition("\n")[0]
    return None


def _ways(collectives: Sequence[Collective]) -> set[tuple[str, tuple[str, ...]]]:
    """The kinds of communication, and the axes. (How often, and of how much, the compiler may change in a loop.)"""
    return {(c.kind, c.axes) for c in collectives if c.group > 1}


def _moves(collectives: Sequence[Collective]) -> Counter[tuple[str, tuple[str, ...], int, int | None]]:
    """The communication as a multiset; what a single device says to itself does not count.

    All at once is not the same as a part in every turn of a loop, though the bytes are.
    """
    return Counter((c.kind, c.axes, c.bytes_sent, c.times) for c in collectives if c.group > 1)


def block_values(result: Result) -> tuple[np.ndarray, ...]:
    """The block that each device holds."""
    assert result.blocks.values is not None  # it has been run
    return result.blocks.values


def same_blocks(a: Result, b: Result, roundings: int) -> bool:
    """Whether every device holds the same of two arrays."""
    return a.blocks.indices == b.blocks.indices and all(
        same_numbers(one, other, roundings) for one, other in zip(block_values(a), block_values(b), strict=True)
    )


def execution_of(behavior: object) -> Execution:
    """What a program does on a case."""
    assert isinstance(behavior, Execution)  # the first check saw to it
    return behavior


def arrays_of(behavior: object) -> Sequence[Result]:
    """The arrays of a result; nothing where there is none."""
    try:
        return behavior.results if isinstance(behavior, Execution) else ()
    except Failed:
        return ()
