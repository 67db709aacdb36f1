"""Answers to lesson 10, twenty-second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def differences(series):
    """Each row minus the one before it, the first minus the last."""
    return series - jnp.roll(series, 1, axis=0)


# ---- lora


def lora__right_manual(x, W, A, B, *, mesh):
    """x[I, J] · W[J_X, K] + (x · A[J, R_X]) · B[R_X, K] → [I, K], with one all-reduce."""

    def on_device(x, x_columns, w_rows, a_columns, b_rows):
        return jax.lax.psum(x_columns @ w_rows + (x @ a_columns) @ b_rows, "x")

    cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    rows, columns = P("x", None), P(None, "x")
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, None), columns, rows, columns, rows), out_specs=P(None, None)
    )(x, cut, W, A, B)


# Each product over a cut dimension stops, so each is told to finish its sum, and finished terms are added.
def lora__wrong_two_sums(x, W, A, B, *, mesh):
    done = NamedSharding(mesh, P())
    cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    return jnp.dot(cut, W, out_sharding=done) + jnp.dot(x @ A, B, out_sharding=done)


# x·W + x·A·B is x·(W + A·B): merge the adapter into the weight first, as one does for inference; then only one product has a sum.
def lora__wrong_merged(x, W, A, B, *, mesh):
    weight = W + jnp.dot(A, B, out_sharding=NamedSharding(mesh, P("x", None)))
    cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    return jnp.dot(cut, weight, out_sharding=NamedSharding(mesh, P()))


# An unreduced array is the sum already, and whoever uses it will add it up: nothing is left to do after the addition.
def lora__wrong_unfinished(x, W, A, B, *, mesh):
    later = NamedSharding(mesh, P(unreduced={"x"}))
    cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    return jnp.dot(cut, W, out_sharding=later) + jnp.dot(x @ A, B, out_sharding=later)


# All devices have the same x, so what they compute is brought together by a mean, as with gradients.
def lora__wrong_mean(x, W, A, B, *, mesh):
    def on_device(x, x_columns, w_rows, a_columns, b_rows):
        return jax.lax.pmean(x_columns @ w_rows + (x @ a_columns) @ b_rows, "x")

    cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    rows, columns = P("x", None), P(None, "x")
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, None), columns, rows, columns, rows), out_specs=P(None, None)
    )(x, cut, W, A, B)


# ---- will_it_type

will_it_type__right_table = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# Mixes up which two dimensions of a product are contracted: takes the outer ones for the inner ones.
will_it_type__wrong_contracted = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 3",
    "R @ C": "rule 2",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# Each pair of dimensions agrees, since whole agrees with anything, and stops there: never looks at the finished type.
will_it_type__wrong_unfinished = {
    "R + N": "ok",
    "R + C": "ok",
    "C @ R": "rule 2",
    "R @ C": "ok",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# A cut dimension and a whole one are two different layouts, so they do not agree.
will_it_type__wrong_whole_disagrees = {
    "R + N": "rule 2",
    "R + C": "rule 2",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "rule 2",
    "R[0]": "own rule",
}

# Row 0 is a constant index and lies on the first devices; the result is float32[16], whole, and XLA fetches it like b.sum(0).
will_it_type__wrong_index_fetches = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "ok",
}


# ---- borrowed


def borrowed__right_halo(series, *, mesh):
    """differences(series), cut as the series is."""
    n = mesh.shape["x"]

    def on_device(block):
        before = jax.lax.ppermute(block[-1:], "x", [(k, (k + 1) % n) for k in range(n)])
        return block - jnp.concatenate([before, block[:-1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# In Manual mode no rule stops it: shard_map around the function (forgets that roll then goes round in each block).
def borrowed__wrong_local(series, *, mesh):
    return jax.shard_map(differences, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# Roll along a cut dimension is refused, so make the dimension whole, call the function, and cut the result again.
def borrowed__wrong_gathered(series, *, mesh):
    whole = reshard(series, NamedSharding(mesh, P()))
    return reshard(differences(whole), NamedSharding(mesh, P("x", None)))


# Every device hands its last row to the next one, and the last device has no next one (forgets the first minus the last).
def borrowed__wrong_open_end(series, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        before = jax.lax.ppermute(block[-1:], "x", [(k, k + 1) for k in range(n - 1)])
        return block - jnp.concatenate([before, block[:-1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# A difference is next minus this one, as np.diff has it: so the first row of the next device is fetched.
def borrowed__wrong_next(series, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        after = jax.lax.ppermute(block[:1], "x", [((k + 1) % n, k) for k in range(n)])
        return jnp.concatenate([block[1:], after]) - block

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)
