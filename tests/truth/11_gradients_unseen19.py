"""Answers to lesson 11, nineteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def loss(params, x, y):
    """A small network's mean squared error, over the rows and over what comes out."""
    return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2)


def squares(w, x, y):
    """The squared errors of a linear model, added up."""
    return jnp.sum((x @ w - y) ** 2)


def varying(value, axis):
    """The same value, typed as one that may differ along `axis`."""
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, axis, to="varying")
    return jax.lax.pvary(value, axis)  # the same, on JAX before 0.8.2


# ---------------------------------------------------------------- one_all_reduce


def one_all_reduce__right_cast(w, xs, ys, *, mesh):
    """The gradient of all small batches together: cast w, add the devices' own gradients, one psum."""

    def on_device(w, xs, ys):
        own = varying(w, "data")
        gradient = jax.grad(squares)
        total = gradient(own, xs[0], ys[0])
        for k in range(1, xs.shape[0]):
            total = total + gradient(own, xs[k], ys[k])
        return jax.lax.psum(total, "data")

    rows = P(None, "data", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), rows, rows), out_specs=P())(w, xs, ys)


# This student thought that a part has to be made whole before it can be added to the others: right numbers, one all-reduce for every small batch.
def one_all_reduce__wrong_every_part(w, xs, ys, *, mesh):
    whole = NamedSharding(mesh, P())
    apart = NamedSharding(mesh, P(unreduced={"data"}))

    def gradient(x, y):
        part = jnp.dot(2 * x.T, x @ w - y, out_sharding=apart)
        return reshard(part, whole)

    total = jnp.zeros_like(w)
    for x, y in zip(xs, ys):
        total = total + gradient(x, y)
    return total


# This student thought that the gradient of a sum of squares is xᵀ · (x · w − y), and forgot the 2 of the square.
def one_all_reduce__wrong_without_two(w, xs, ys, *, mesh):
    apart = NamedSharding(mesh, P(unreduced={"data"}))
    parts = [jnp.dot(x.T, x @ w - y, out_sharding=apart) for x, y in zip(xs, ys)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return reshard(total, NamedSharding(mesh, P()))


# This student thought that gradients of devices are always averaged, as with `loss`; `squares` is a sum over the rows.
def one_all_reduce__wrong_averaged(w, xs, ys, *, mesh):
    def on_device(w, xs, ys):
        own = varying(w, "data")
        parts = [jax.grad(squares)(own, x, y) for x, y in zip(xs, ys)]
        return jax.lax.pmean(sum(parts[1:], parts[0]), "data")

    rows = P(None, "data", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), rows, rows), out_specs=P())(w, xs, ys)


# This student thought that an unreduced total is the total, which JAX adds up by itself when somebody uses it.
def one_all_reduce__wrong_left_apart(w, xs, ys, *, mesh):
    apart = NamedSharding(mesh, P(unreduced={"data"}))

    def part(x, y):
        return jnp.dot(2 * x.T, x @ w - y, out_sharding=apart)

    total = part(xs[0], ys[0])
    for x, y in list(zip(xs, ys))[1:]:
        total = total + part(x, y)
    return total


# ---------------------------------------------------------------- fsdp_transpose

LAYERS = (1, 2, 3)
once_forwards = len(LAYERS)
needed_backwards = [layer for layer in LAYERS if layer > LAYERS[0]]  # a cotangent goes on through W2 and W3 only

fsdp_transpose__right_counted = {
    "all_gather, keeps all": once_forwards,
    "reduce_scatter, keeps all": len(LAYERS),
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": once_forwards + len(LAYERS),
    "reduce_scatter, keeps nothing": len(LAYERS),
    "all_gather, keeps all but gathered weights": once_forwards + len(needed_backwards),
}

# This student thought that the pmean of the loss is an all_reduce on the way back as well.
fsdp_transpose__wrong_pmean_twice = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 2,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 5,
}

# This student thought that every gather has its reduce_scatter, those of the second way forward, too.
fsdp_transpose__wrong_each_gather_transposed = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 6,
    "all_gather, keeps all but gathered weights": 5,
}

# This student thought that without a gradient for x nothing goes back through the first layer, and so its weights have no reduce_scatter either.
fsdp_transpose__wrong_first_layer_left_out = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 2,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 2,
    "all_gather, keeps all but gathered weights": 5,
}

# This student took what was measured for one layer with the policy (one gather still) three times.
fsdp_transpose__wrong_three_times_one = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 3,
}

# ---------------------------------------------------------------- transposes

N, ME = 8, 3
ONES_EACH, COUNT = np.ones(N), np.arange(float(N))


def to_me(uses, cotangents):
    """Device 3's gradient: each entry's cotangent times the factor with which device 3's number stands in it."""
    return float(np.dot(np.asarray(uses, float), np.asarray(cotangents, float)))


def only(k):
    return [1.0 if j == k else 0.0 for j in range(N)]


transposes__right_factors = {
    "psum to P(), ct 1": to_me([1], [1]),
    "psum to P('data'), ct 1 each": to_me(np.ones(N), ONES_EACH),
    "pmean to P(), ct 1": to_me([1 / N], [1]),
    "all_gather to P('data'), ct 1 each": to_me(only(ME) * N, np.ones(N * N)),
    "all_gather to P(), ct 0 … 7": to_me(only(ME), COUNT),
    "ppermute +1, ct 0 … 7": to_me(only((ME + 1) % N), COUNT),
    "psum_scatter, ct 0 … 7": [to_me(only(k), COUNT) for k in range(N)],
    "w from P() to P('data'), ct 0 … 7": to_me(np.ones(N), COUNT),
}

# This student believed the old sentence, that the transpose of psum is psum, for a psum to one value as well.
transposes__wrong_old_sentence = {
    "psum to P(), ct 1": 8,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 28,
}

# This student turned the permute round twice: "the other way" sends the gradients back, so device 3 gets the one of device 2.
transposes__wrong_permute = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 2,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 28,
}

# This student thought that device 3 only has a part in the share that device 3 keeps, for a scattered sum and for the number w that all have.
transposes__wrong_own_share = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 0, 0, 3, 0, 0, 0, 0],
    "w from P() to P('data'), ct 0 … 7": 3,
}

# This student thought that eight equal results are one result, and counted its cotangent once although out_specs cut it.
transposes__wrong_equal_counts_once = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 1,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 1,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 28,
}
