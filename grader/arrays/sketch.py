"""A per-device program in outline, built and traced where an answer reads it.

A function that reads programs is given a jaxpr. What crosses the wire is the outline: the mesh, the shape of a
block, and the steps, drawn afresh each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh

# Each adds what it brings to the block, so that nothing is computed in vain and the block keeps its shape.
COLLECTIVE_STEPS: dict[str, Callable[[jax.Array, str | tuple[str, ...], int], jax.Array]] = {
    "psum": lambda v, axis, n: v + lax.psum(v, axis),
    "pmax": lambda v, axis, n: v + lax.pmax(v, axis),
    "pmin": lambda v, axis, n: v + lax.pmin(v, axis),
    "all_gather": lambda v, axis, n: v + lax.all_gather(v, axis, tiled=True)[: v.shape[0]],
    "psum_scatter": lambda v, axis, n: v + jnp.tile(lax.psum_scatter(v, axis, tiled=True), (n, 1)),
    "all_to_all": lambda v, axis, n: v + lax.all_to_all(v, axis, 0, 0, tiled=True),
    "ppermute": lambda v, axis, n: lax.ppermute(v, axis, [(k, (k + 1) % n) for k in range(n)]),
}


@dataclass(frozen=True)
class Sketch:
    """A shard_map over all axes of a mesh, whose block of this shape goes through the steps in order.

    A step is `[collective, axis]`, or several axes in a list; `["widen"]`, which doubles the columns; `["round"]`, to
    bfloat16; `["jit", steps]`; `["rule", steps]`, with a derivative of its own; or `["loop", turns, steps]`. `checked`
    is shard_map's check_vma.
    """

    sizes: Mapping[str, int]
    block: tuple[int, int]
    steps: Any
    checked: bool = True

    def built(self) -> Any:
        """The jaxpr of the program."""
        cut = P(tuple(self.sizes))
        program = jax.shard_map(
            lambda v: self.through(v, self.steps),
            mesh=make_mesh(self.sizes),
            in_specs=cut,
            out_specs=cut,
            check_vma=self.checked,
        )
        rows, columns = self.block
        shape = rows * math.prod(self.sizes.values()), columns
        return jax.make_jaxpr(program)(jax.ShapeDtypeStruct(shape, jnp.float32))

    def through(self, v: jax.Array, steps: Any) -> jax.Array:
        for kind, *rest in steps:
            v = self.step(v, kind, *rest)
        return v

    def step(self, v: jax.Array, kind: str, *rest: Any) -> jax.Array:
        match kind:
            case "widen":
                return jnp.concatenate([v, v], axis=1)
            case "round":
                return v.astype(jnp.bfloat16)
            case "jit":
                return jax.jit(lambda w: self.through(w, rest[0]))(v)
            case "rule":
                return self.with_rule(rest[0])(v)
            case "loop":
                return lax.fori_loop(0, rest[0], lambda _, w: self.through(w, rest[1]), v)
        (axes,) = rest
        if isinstance(axes, str):
            return COLLECTIVE_STEPS[kind](v, axes, self.sizes[axes])
        return COLLECTIVE_STEPS[kind](v, tuple(axes), math.prod(self.sizes[axis] for axis in axes))

    def with_rule(self, steps: Any) -> Callable[[jax.Array], jax.Array]:
        """The steps as a function for which somebody has said how it is differentiated."""
        whole = jax.custom_jvp(lambda w: self.through(w, steps))
        whole.defjvp(lambda arguments, tangents: (whole(*arguments), tangents[0]))
        return whole

    def __repr__(self) -> str:
        mesh = " × ".join(f"{name}={size}" for name, size in self.sizes.items())
        rows, columns = self.block
        return f"<the jaxpr of a shard_map on {mesh}, blocks float32[{rows},{columns}]: {_outline(self.steps)}>"


def _outline(steps: Any) -> str:
    return ", ".join(map(_step_in_words, steps))


def _step_in_words(step: Any) -> str:
    kind, *rest = step
    match kind:
        case "loop":
            return f"{rest[0]} turns of ({_outline(rest[1])})"
        case "jit":
            return f"jit({_outline(rest[0])})"
        case "rule":
            return f"custom_jvp({_outline(rest[0])})"
    return " over ".join([kind, *(axes if isinstance(axes, str) else " and ".join(axes) for axes in rest)])
