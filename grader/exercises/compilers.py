"""What the compiler would send for an exercise: the rival of a program that is written by hand.

It is given the reference as it is for one device, the layouts of the operands, and that of the result; it decides who
sends what. That is XLA for these devices: for others it may know another way.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.laid import holds_arrays
from grader.arrays.meshes import aval, make_mesh
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise
from grader.exercises.limits import BytesSent
from grader.jax_versions import quick_options
from grader.programs.walk import compiled_structure


def par(cases: Sequence[Case]) -> int:
    """Bytes sent by each device that are enough, by the limits of these cases, added up."""
    return sum(limit.needed for case in cases for limit in case.limits if isinstance(limit, BytesSent))


def compilers_bytes(exercise: Exercise, cases: Sequence[Case]) -> int:
    """Bytes that each device sends in the compiler's own programs for these cases, added up."""
    return sum(_bytes_of_compiled(exercise, case) for case in cases)


@functools.lru_cache(maxsize=256)  # to compile takes longer than all else in a check
def _bytes_of_compiled(exercise: Exercise, case: Case) -> int:
    mesh = make_mesh(case.mesh)
    arrays = {name: argument for name, argument in case.arguments.items() if holds_arrays(argument)}

    def left_to_it(given: dict[str, Any]) -> Any:
        return exercise.reference(*({**case.arguments, **given}).values())

    laid = jax.tree.map(lambda a: aval(a.value.shape, a.value.dtype, a.spec, mesh), arrays)
    due = jax.tree.map(lambda spec: NamedSharding(mesh, spec), case.out, is_leaf=lambda spec: isinstance(spec, P))
    compiled = jax.jit(left_to_it, out_shardings=due).lower(laid).compile(quick_options())
    return sum(collective.bytes_sent for collective in compiled_structure(compiled, case.mesh).collectives)
