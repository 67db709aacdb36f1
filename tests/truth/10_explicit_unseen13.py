"""Answers to lesson 10, thirteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, auto_axes, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)

# ---- given in the notebook, before borrowed


def differences(series):
    """Each row minus the one before it, the first minus the last."""
    return series - jnp.roll(series, 1, axis=0)


# ---- borrowed


def borrowed__right_neighbour(series, *, mesh):
    """differences(series), cut as the series is."""
    n = mesh.shape["x"]

    def on_device(rows):
        before = jax.lax.ppermute(rows[-1:], "x", [(k, (k + 1) % n) for k in range(n)])
        return rows - jnp.concatenate([before, rows[:-1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# No rule objects once the series is whole, so it is made whole first: every device gets all rows, not the one it lacks.
def borrowed__wrong_gathered(series, *, mesh):
    everything = reshard(series, NamedSharding(mesh, P(None, None)))
    return reshard(differences(everything), NamedSharding(mesh, P("x", None)))


# Manual mode has no rules either: runs the function on each device's block, where the first row meets the block's last.
def borrowed__wrong_blockwise(series, *, mesh):
    return jax.shard_map(differences, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# The roll runs along the first dimension, so the axis has to go to the second one, and it is left there.
def borrowed__wrong_othercut(series, *, mesh):
    return auto_axes(differences)(series, out_sharding=NamedSharding(mesh, P(None, "x")))


# "The row before" is fetched in the wrong direction: each device sends its last row to the device before it.
def borrowed__wrong_direction(series, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        last = jax.lax.ppermute(block[-1:], "x", [(k, (k - 1) % n) for k in range(n)])
        shifted = jnp.concatenate([last, block[:-1]], axis=0)
        return block - shifted

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# ---- half_mesh


def half_mesh__right_array(second, sizes):
    """An Explicit mesh over the first or the second four devices."""
    half = np.array(jax.devices()).reshape(2, 4)[1 if second else 0]
    return jax.sharding.Mesh(
        half.reshape(tuple(sizes.values())), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes)
    )


# Reads "the second" as every second device: the even ones are one half, the odd ones the other.
def half_mesh__wrong_everysecond(second, sizes):
    devices = jax.devices()[1::2] if second else jax.devices()[::2]
    return jax.make_mesh(
        tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes), devices=devices
    )


# Explicit is the default today, so it need not be said; but Mesh itself still makes Auto axes.
def half_mesh__wrong_default(second, sizes):
    start = 4 if second else 0
    devices = np.array(jax.devices()[start : start + 4]).reshape(tuple(sizes.values()))
    return jax.sharding.Mesh(devices, tuple(sizes))


# Copied the two types from the lesson's mesh: right for two axes, as in the example, and an error for one or three.
def half_mesh__wrong_twotypes(second, sizes):
    return jax.make_mesh(
        tuple(sizes.values()),
        tuple(sizes),
        axis_types=(AxisType.Explicit,) * 2,
        devices=jax.devices()[4:] if second else jax.devices()[:4],
    )


# A dict has no order worth trusting, so the names are sorted; the sizes are not.
def half_mesh__wrong_sorted(second, sizes):
    names = tuple(sorted(sizes))
    shape = tuple(sizes.values())
    four = jax.devices()[4:8] if second else jax.devices()[0:4]
    return jax.make_mesh(shape, names, axis_types=tuple(AxisType.Explicit for _ in names), devices=four)


# ---- lora


def lora__right_manual(x, W, A, B, *, mesh):
    """x[I, J] · W[J_X, K] + (x · A[J, R_X]) · B[R_X, K] → [I, K], with one all-reduce."""
    x_cut = reshard(x, NamedSharding(mesh, P(None, "x")))  # everybody has it all: nothing is sent

    def terms_of_a_device(x, x_columns, w_rows, a_columns, b_rows):
        return jax.lax.psum(x_columns @ w_rows + (x @ a_columns) @ b_rows, "x")

    specs = P(None, None), P(None, "x"), P("x", None), P(None, "x"), P("x", None)
    return jax.shard_map(terms_of_a_device, mesh=mesh, in_specs=specs, out_specs=P(None, None))(x, x_cut, W, A, B)


# The result should be whole, so both products are asked for whole, and then added: two all-reduces of its size.
def lora__wrong_twosums(x, W, A, B, *, mesh):
    whole = NamedSharding(mesh, P())
    x_cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    return jnp.dot(x_cut, W, out_sharding=whole) + jnp.dot(x @ A, B, out_sharding=whole)


# Merges the adapter into the weight first, so that only one product with x is left: but A · B is summed over x, too.
def lora__wrong_merged(x, W, A, B, *, mesh):
    merged = W + jnp.dot(A, B, out_sharding=NamedSharding(mesh, P("x", None)))
    x_cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    return jnp.dot(x_cut, merged, out_sharding=NamedSharding(mesh, P()))


# Finishes the base layer and adds it to the adapter's part on every device, before the sum: it is counted n times.
def lora__wrong_finishedadded(x, W, A, B, *, mesh):
    base = jnp.dot(reshard(x, NamedSharding(mesh, P(None, "x"))), W, out_sharding=NamedSharding(mesh, P(None, None)))

    def adapter(x, base, a, b):
        return jax.lax.psum(base + (x @ a) @ b, "x")

    return jax.shard_map(
        adapter, mesh=mesh, in_specs=(P(None, None), P(None, None), P(None, "x"), P("x", None)), out_specs=P(None, None)
    )(x, base, A, B)


# A sum need not be made at once: adds the parts, and leaves the sum to whoever will use it.
def lora__wrong_leftopen(x, W, A, B, *, mesh):
    parts = NamedSharding(mesh, P(unreduced={"x"}))
    columns = reshard(x, NamedSharding(mesh, P(None, "x")))
    base = jnp.dot(columns, W, out_sharding=parts)
    adapter = jnp.dot(x @ A, B, out_sharding=parts)
    return base + adapter
