"""Programs: functions of arrays on devices, which are traced and never run here."""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np
from jax.sharding import AbstractMesh, Mesh

from grader.arrays.meshes import abstract_mesh, aval, make_mesh, mesh_set_in_a_trace
from grader.exercises.answers import Answer, Ask, Layout
from grader.exercises.calling import must_be_callable, something
from grader.exercises.case import Draw
from grader.exercises.exercise import Exercise
from grader.jax_versions import option_set
from grader.programs.program import trace, with_gradient


@dataclass(eq=False)
class ProgramExercise(Exercise):
    """A function of the case's arrays (or pytrees of them) and a keyword `mesh`; it is traced, never run.

    The meshes of its cases have these `mesh_shapes`. It is written with shard_map, unless it is left to the compiler
    (`by_compiler`). If it is written `against_compiler`, the bytes that a right answer sends are compared with those of
    the compiler, which is given the reference: JAX must be able to trace it. Every case then has a limit `BytesSent`.
    """

    form: ClassVar[str] = "program"
    costly: ClassVar[bool] = True

    mesh_shapes: tuple[tuple[int, ...], ...] = ((4, 2), (2, 4), (8, 1), (1, 8))
    by_compiler: bool = False
    against_compiler: bool = False

    @staticmethod
    def answer(work: Any, ask: Ask) -> Answer:
        must_be_callable(work)
        mesh = abstract_mesh(ask.mesh) if ask.pod else make_mesh(ask.mesh, explicit=ask.explicit)
        avals = [_avals(a, mesh) for a in ask.arguments.values() if _laid_out(a)]
        fixed = {name: copy.deepcopy(a) for name, a in ask.arguments.items() if not _laid_out(a)}

        @functools.wraps(work)
        def finished(*arrays: Any) -> Any:
            return something(work(*arrays, **fixed, mesh=mesh), work)

        # JAX keeps its own frames in tracebacks: `collecting` looks there for what JAX was given.
        with option_set("jax_traceback_filtering", "off"), mesh_set_in_a_trace():
            if ask.cotangents is None:
                return trace(finished, *avals, platform="tpu" if ask.pod else None)
            return trace(with_gradient(finished, len(avals)), *avals, _avals(ask.cotangents, mesh))

    def rounds(self, rng: np.random.Generator, *, thorough: bool) -> list[Draw]:
        """Every mesh for grading, two of them for the notebook, and one with equal lengths."""
        shapes = self.mesh_shapes if thorough else self.mesh_shapes[:2]
        return [Draw(rng, shape) for shape in shapes] + [Draw(rng, shapes[0], square=True)]


def _laid_out(argument: Any) -> bool:
    return any(isinstance(leaf, Layout) for leaf in jax.tree.leaves(argument))


def _avals(argument: Any, mesh: Mesh | AbstractMesh) -> Any:
    return jax.tree.map(lambda a: aval(a.shape, a.dtype, a.spec, mesh), argument)
