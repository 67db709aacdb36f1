"""What an answer does on a case, and which mistake does the same.

A program's behaviour is all that a judge may see of it: the block on every device, the layout, and the
communication. Two programs that behave the same are the same to us, however they are spelled; this is how
a wrong answer finds the mistake that explains it.
"""

from __future__ import annotations

import functools
from functools import cached_property

import jax
from jax.sharding import PartitionSpec as P

from grader.arrays.laid import Array, holds_arrays
from grader.exercises.exercise import Case
from grader.programs.execution import Failed, Ran, Result, execute
from grader.programs.program import Program
from grader.programs.structure import Structure
from grader.programs.walk import structure


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
