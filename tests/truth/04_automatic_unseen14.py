"""Answers to lesson 04, fourteenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))


def layer(x, weights, bias):
    return jax.nn.sigmoid(x @ weights + bias)


# ---- same_everywhere


def same_everywhere__right_FIRSTOFEACHBLOCK(a, b):
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    seen = {}
    for shard in [*a.addressable_shards, *b.addressable_shards]:
        where = tuple(s.indices(n) for s, n in zip(shard.index, a.shape))
        block = np.asarray(shard.data)
        if not np.array_equal(seen.setdefault(where, block), block):
            return False
    return True


# Thought that two layouts are alike when their meshes and specs are ==, so that P("x") and P("x", None) differ.
def same_everywhere__wrong_SPECSEQUAL(a, b):
    if a.shape != b.shape or not np.array_equal(np.asarray(a), np.asarray(b)):
        return False
    if a.sharding.mesh != b.sharding.mesh or a.sharding.spec != b.sharding.spec:
        return False
    return all(np.array_equal(s.data, np.asarray(c)[s.index]) for c in (a, b) for s in c.addressable_shards)


# Thought that b needs no look at its copies, once it equals an a whose copies are all in order.
def same_everywhere__wrong_ONLYTHEFIRST(a, b):
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    values = np.asarray(a)
    if not np.array_equal(values, np.asarray(b)):
        return False
    return all(np.array_equal(shard.data, values[shard.index]) for shard in a.addressable_shards)


# Thought that "everywhere" means device by device: a and b agree on each, so nothing can be wrong inside one of them.
def same_everywhere__wrong_DEVICEBYDEVICE(a, b):
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    of_b = {shard.device.id: shard for shard in b.addressable_shards}
    return all(np.array_equal(shard.data, of_b[shard.device.id].data) for shard in a.addressable_shards)


# Thought that arrays on the same devices are laid out alike.
def same_everywhere__wrong_SAMEDEVICES(a, b):
    if a.shape != b.shape or a.devices() != b.devices():
        return False
    if not np.array_equal(np.asarray(a), np.asarray(b)):
        return False
    return all(np.array_equal(s.data, np.asarray(c)[s.index]) for c in (a, b) for s in c.addressable_shards)


# ---- predict_moves

predict_moves__right_QUESTIONS = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_gather",
}

# Thought that the result of a transpose is cut by rows as its argument is, so that pieces must change places already there.
predict_moves__wrong_TRANSPOSEMOVES = {
    "v.T": "all_to_all",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_gather",
}

# Thought that whatever adds up over the cut rows (a running sum, a product) is an all_reduce.
predict_moves__wrong_ADDINGISREDUCE = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_reduce",
    "v @ v": "all_reduce",
}

# Thought that a transpose is free and an elementwise sum is free, so that both together are.
predict_moves__wrong_ELEMENTWISEFREE = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "nothing",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_gather",
}

# Thought that in a roll all rows move, so everybody sends to everybody, and that a cumsum hands its carry to the next device.
predict_moves__wrong_CARRYTONEXT = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "all_to_all",
    "v.cumsum(0)": "collective_permute",
    "v @ v": "all_gather",
}

# ---- divide_layer


def divide_layer__right_BOTHATONCE(x, weights, bias, *, mesh):
    x, weights = jax.lax.with_sharding_constraint((x, weights), NamedSharding(mesh, P("x")))
    return jax.lax.with_sharding_constraint(jax.nn.sigmoid(x @ weights + bias), NamedSharding(mesh, P()))


# Thought of a column-parallel Linear: cut the outputs of the weights over x, and gather at the end.
def divide_layer__wrong_CUTSOUTPUTS(x, weights, bias, *, mesh):
    weights = jax.lax.with_sharding_constraint(weights, NamedSharding(mesh, P(None, "x")))
    out = jax.nn.sigmoid(x @ weights + bias)
    return jax.lax.with_sharding_constraint(out, NamedSharding(mesh, P()))


# Thought of the example before, where the sum is divided over all the devices that there are.
def divide_layer__wrong_ALLAXES(x, weights, bias, *, mesh):
    cut = NamedSharding(mesh, P(tuple(mesh.axis_names)))
    x = jax.lax.with_sharding_constraint(x, cut)
    weights = jax.lax.with_sharding_constraint(weights, cut)
    return jax.nn.sigmoid(x @ weights + bias)


# Thought that a constraint changes the array it is given, as an in-place method of PyTorch does.
def divide_layer__wrong_NOTASSIGNED(x, weights, bias, *, mesh):
    jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("x")))
    jax.lax.with_sharding_constraint(weights, NamedSharding(mesh, P("x", None)))
    return jax.nn.sigmoid(x @ weights + bias)


# Thought that the result inherits the cut of x and weights, and wrote it down as a constraint too.
def divide_layer__wrong_RESULTCUT(x, weights, bias, *, mesh):
    over_x = NamedSharding(mesh, P("x"))
    x = jax.lax.with_sharding_constraint(x, over_x)
    weights = jax.lax.with_sharding_constraint(weights, over_x)
    return jax.lax.with_sharding_constraint(jax.nn.sigmoid(x @ weights + bias), over_x)
