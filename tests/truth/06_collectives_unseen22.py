"""Answers to lesson 06, twenty-second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- masked_mean
def masked_mean__right_one_psum(x, mask, *, mesh):
    """The mean of x[I_X] where mask[I_X] is true, on every device."""

    def body(block, keep):
        mine = (jnp.sum(block, where=keep), jnp.count_nonzero(keep))
        total, kept = jax.lax.psum(mine, "x")
        return total / kept

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())(x, mask)


# Thought: the trouble is only the devices that keep nothing, so average the means of those that keep something.
def masked_mean__wrong_mean_of_some_means(x, mask, *, mesh):
    """The mean of x[I_X] where mask[I_X] is true, on every device."""

    def body(block, keep):
        count = keep.sum()
        mean = jnp.where(keep, block, 0).sum() / jnp.maximum(count, 1)
        return jax.lax.psum(mean, "x") / jax.lax.psum((count > 0).astype(jnp.int32), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())(x, mask)


# Thought: never divide by zero, so each device's count is at least 1, before it is added up; an empty device counts one entry.
def masked_mean__wrong_guard_before_sum(x, mask, *, mesh):
    """The mean of x[I_X] where mask[I_X] is true, on every device."""

    def body(block, keep):
        total = jax.lax.psum(jnp.where(keep, block, 0).sum(), "x")
        kept = jax.lax.psum(jnp.maximum(keep.sum(), 1), "x")
        return total / kept

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())(x, mask)


# Thought: the sum is over all devices, so psum it; the count comes with the mask, which each has; the check complained, so it went off.
def masked_mean__wrong_own_count(x, mask, *, mesh):
    """The mean of x[I_X] where mask[I_X] is true, on every device."""

    def body(block, keep):
        return jax.lax.psum(jnp.where(keep, block, 0).sum(), "x") / keep.sum()

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P(), check_vma=False)(x, mask)


# Thought: psum adds up, and then the fraction is easy; right, but two vectors travel in place of two numbers.
def masked_mean__wrong_vectors_travel(x, mask, *, mesh):
    """The mean of x[I_X] where mask[I_X] is true, on every device."""

    def body(block, keep):
        total = jax.lax.psum(jnp.where(keep, block, 0), "x")
        kept = jax.lax.psum(keep.astype(jnp.int32), "x")
        return total.sum() / kept.sum()

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())(x, mask)


# ---------------------------------------------------------------- safe_softmax
def safe_softmax__right_rescaled(x, *, mesh):
    """The softmax of the rows of X[I, J_X] → [I, J_X]."""

    def body(block):
        own = block.max(axis=1, keepdims=True)
        terms = jnp.exp(block - own)
        scale = jnp.exp(own - jax.lax.pmax(own, "x"))  # from my largest to that of all
        total = jax.lax.psum(scale * terms.sum(axis=1, keepdims=True), "x")
        return terms * (scale / total)

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(x)


# Thought: one largest number for everything does as well, and is cheaper; a row far below it has only zeros, and 0/0.
def safe_softmax__wrong_one_maximum(x, *, mesh):
    """The softmax of the rows of X[I, J_X] → [I, J_X]."""

    def body(block):
        largest = jax.lax.pmax(block.max(), "x")
        terms = jnp.exp(block - largest)
        return terms / jax.lax.psum(terms.sum(axis=1, keepdims=True), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(x)


# Thought: the result stays cut, so once the maximum is known to all each device divides by what it has; its part adds up to 1.
def safe_softmax__wrong_own_sum(x, *, mesh):
    """The softmax of the rows of X[I, J_X] → [I, J_X]."""

    def body(block):
        largest = jax.lax.pmax(block.max(axis=1, keepdims=True), "x")
        terms = jnp.exp(block - largest)
        return terms / terms.sum(axis=1, keepdims=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(x)


# Thought: log Σ exp is safe, so softmax = exp(x) / exp(log Σ exp); both overflow again for a logit of 150.
def safe_softmax__wrong_exp_again(x, *, mesh):
    """The softmax of the rows of X[I, J_X] → [I, J_X]."""

    def body(block):
        largest = jax.lax.pmax(block.max(axis=1, keepdims=True), "x")
        total = jax.lax.psum(jnp.exp(block - largest).sum(axis=1, keepdims=True), "x")
        logsumexp = largest + jnp.log(total)
        return jnp.exp(block) / jnp.exp(logsumexp)

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(x)


# Thought: only the sum is for all, so only there is the largest of all needed; above the line the device's own largest will do.
def safe_softmax__wrong_two_maxima(x, *, mesh):
    """The softmax of the rows of X[I, J_X] → [I, J_X]."""

    def body(block):
        own = block.max(axis=1, keepdims=True)
        largest = jax.lax.pmax(own, "x")
        total = jax.lax.psum(jnp.exp(block - largest).sum(axis=1, keepdims=True), "x")
        return jnp.exp(block - own) / total

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(x)


# ---------------------------------------------------------------- partners
# (the grid: device d stands at x = d // 2, y = d % 2; device 5 at x = 2, y = 1)
partners__right_grid = {
    "psum over x": [d for d in range(8) if d % 2 == 1],
    "psum over y": [d for d in range(8) if d // 2 == 2],
    "psum over (x, y)": list(range(8)),
    "ppermute +1 over x": [3],
    "ppermute +1 over y": [4],
    "axis_index over x": [],
}

# Thought: "over x" means those with the same x, who stand in one row; the two sums change places.
partners__wrong_same_x = {
    "psum over x": [4, 5],
    "psum over y": [1, 3, 5, 7],
    "psum over (x, y)": [0, 1, 2, 3, 4, 5, 6, 7],
    "ppermute +1 over x": [3],
    "ppermute +1 over y": [4],
    "axis_index over x": [],
}

# Thought: +1 over x leads from 5 to 7, so 7 is the partner (to whom it sends, not from whom it receives; along y the two are one).
partners__wrong_to_whom = {
    "psum over x": [1, 3, 5, 7],
    "psum over y": [4, 5],
    "psum over (x, y)": [0, 1, 2, 3, 4, 5, 6, 7],
    "ppermute +1 over x": [7],
    "ppermute +1 over y": [4],
    "axis_index over x": [],
}

# Thought: partners are the other devices; a device's own block does not count as received.
partners__wrong_without_itself = {
    "psum over x": [1, 3, 7],
    "psum over y": [4],
    "psum over (x, y)": [0, 1, 2, 3, 4, 6, 7],
    "ppermute +1 over x": [3],
    "ppermute +1 over y": [4],
    "axis_index over x": [],
}

# Thought: device 5's result always depends on device 5: what is passed on comes on top of what it has, and the index is its own.
partners__wrong_always_itself = {
    "psum over x": [1, 3, 5, 7],
    "psum over y": [4, 5],
    "psum over (x, y)": [0, 1, 2, 3, 4, 5, 6, 7],
    "ppermute +1 over x": [3, 5],
    "ppermute +1 over y": [4, 5],
    "axis_index over x": [5],
}
