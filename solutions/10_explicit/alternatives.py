"""Correct answers to 10_explicit, each spelled differently from the lesson's model solution.

All of them must earn full points: the grader sees what a program does, not how it is written.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, auto_axes, reshard, use_abstract_mesh
from jax.sharding import PartitionSpec as P


def resharded__moved_first(a, *, mesh):
    return reshard(a, NamedSharding(mesh, P("y", "x"))) + 1


def resharded__under_the_mesh(a, *, mesh):
    """If a mesh is set, a bare spec is enough."""
    with use_abstract_mesh(mesh.abstract_mesh):
        return reshard(a + 1, P("y", "x"))


def explicit_layer__einsum(a, b, *, mesh):
    return jnp.maximum(jnp.einsum("ij,jk->ik", a, b, out_sharding=NamedSharding(mesh, P("x"))), 0)


def explicit_layer__by_hand(a, b, *, mesh):
    """shard_map inside an Explicit program."""
    specs = P("x", "y"), P("y", None)
    dot = jax.shard_map(lambda p, q: lax.psum(p @ q, "y"), mesh=mesh, in_specs=specs, out_specs=P("x", None))
    return jax.nn.relu(dot(a, b))


def explicit_layer__unreduced(a, b, *, mesh):
    parts = jnp.dot(a, b, out_sharding=NamedSharding(mesh, P("x", None, unreduced={"y"})))
    return jax.nn.relu(reshard(parts, NamedSharding(mesh, P("x", None))))


def fix_types__under_the_mesh(x, W1, b1, W2, b2, W3, b3, *, mesh):
    with use_abstract_mesh(mesh.abstract_mesh):
        for W, b in ((W1, b1), (W2, b2)):
            x = jnp.maximum(jnp.dot(x, W) + b, 0)
        return jnp.einsum("nk,km->nm", x, W3, out_sharding=P("batch", None)) + b3


def fix_types__compiler_inside(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """The last layer is left to the compiler."""
    hidden = jax.nn.relu(jax.nn.relu(x @ W1 + b1) @ W2 + b2)
    last = auto_axes(lambda h, W, b: h @ W + b)
    return last(hidden, W3, b3, out_sharding=NamedSharding(mesh, P("batch", None)))


def embed__one_hot(table, ids, *, mesh):
    """A matmul needs no decision here: the rows of the IDs and the columns of the table."""
    return jax.nn.one_hot(ids, table.shape[0], dtype=table.dtype) @ table


def embed__compiler_inside(table, ids, *, mesh):
    return auto_axes(lambda t, k: t[k], out_sharding=NamedSharding(mesh, P("x", None, "y")))(table, ids)


def borrowed__decorated(series, *, mesh):
    return auto_axes(differences, out_sharding=NamedSharding(mesh, P("x")))(series)  # noqa: F821 - it is defined in the lesson


def borrowed__only_x(series, *, mesh):
    """Auto over x only; y stays Explicit."""
    wrapped = auto_axes(differences, axes="x")  # noqa: F821 - it is defined in the lesson
    return wrapped(series, out_sharding=NamedSharding(mesh, P("x", None)))


def lora__one_sum_at_a_time(x, W, A, B, *, mesh):
    layout = partial(NamedSharding, mesh)
    low = x @ A
    parts = jnp.einsum("ir,rk->ik", low, B, out_sharding=layout(P(None, None, unreduced={"x"})))
    parts += jnp.einsum("ij,jk->ik", reshard(x, layout(P(None, "x"))), W, out_sharding=layout(P(unreduced={"x"})))
    return reshard(parts, layout(P(None, None)))


def lora__by_hand(x, W, A, B, *, mesh):
    """One psum of both partial sums."""
    specs = P(None, "x"), P("x", None), P(None, "x"), P("x", None)
    parts = jax.shard_map(lambda x, W, low, B: lax.psum(x @ W + low @ B, "x"), mesh=mesh, in_specs=specs, out_specs=P())
    return parts(reshard(x, NamedSharding(mesh, P(None, "x"))), W, x @ A, B)


def half_mesh__by_the_constructor(second, sizes):
    """Mesh itself, with the devices as a grid."""
    grid = np.array(jax.devices()).reshape(2, *sizes.values())[int(second)]
    return Mesh(grid, tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes))
