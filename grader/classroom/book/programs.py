"""The programs that a page of the book steps through: one of each kind that is worth a look."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh
from grader.replays.page import Replay
from grader.replays.watch import replay


def product(a: Array, b: Array) -> Array:
    def body(columns: Array, rows: Array) -> Array:
        part = columns @ rows
        return lax.psum(part, "x")

    mesh = make_mesh({"x": 4, "y": 2})
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P())(a, b)


def ring_sum(a: Array) -> Array:
    around = [(device, (device + 1) % 4) for device in range(4)]

    def turn(k: int, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        total, guest = carry
        guest = lax.ppermute(guest, "x", around)
        total = total + guest
        return total, guest

    def body(own: Array) -> Array:
        total, guest = lax.fori_loop(0, 3, turn, (own, own))
        return total

    mesh = make_mesh({"x": 4})
    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)


def gradient(w: Array, x: Array) -> Array:
    def body(w: Array, x: Array) -> Array:
        y = x * w
        squares = jnp.sum(y**2)
        return lax.psum(squares, "x")

    mesh = make_mesh({"x": 4})
    loss = jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P())
    return jax.grad(loss)(w, x)


def deadlock(a: Array) -> Array:
    def body(own: Array) -> Array:
        first = lax.axis_index("x") == 0
        return lax.cond(first, lambda own: lax.psum(own, "x"), lambda own: own, own)

    mesh = make_mesh({"x": 4})
    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(a)


def _counted(*shape: int) -> np.ndarray:
    return np.arange(1.0, 1.0 + np.prod(shape), dtype=np.float32).reshape(shape)


WATCHED: Mapping[str, Callable[[], Replay]] = {
    "product": lambda: replay(product, _counted(2, 4), _counted(4, 2)),
    "ring": lambda: replay(ring_sum, _counted(4, 3)),
    "gradient": lambda: replay(gradient, _counted(2), _counted(4, 2)),
    "deadlock": lambda: replay(deadlock, _counted(4, 2)),
}
