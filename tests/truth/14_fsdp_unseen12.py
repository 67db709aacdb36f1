"""Answers to lesson 14, twelfth batch, written by a reader of the notebook only."""

import math

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("fsdp",), axis_types=(AxisType.Auto,))


def predict(params, x):
    """The network of lesson 12: relu between its layers. A layer is a dict with "W" and "b"."""
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    """The mean over the batch of the summed squares of what is missing."""
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


def adam(params, moments, gradients):
    """One step of Adam on trees, without the corrections for its start: (params, moments)."""
    mean = jax.tree.map(lambda m, g: m + 0.1 * (g - m), moments["mean"], gradients)
    square = jax.tree.map(lambda s, g: s + 0.01 * (g**2 - s), moments["square"], gradients)
    params = jax.tree.map(lambda p, m, s: p - m / (64 * (jnp.sqrt(s) + 1e-8)), params, mean, square)
    return params, {"mean": mean, "square": square}


def varying(tree, axes):
    """The same arrays, marked as ones that may differ along these axes (`lax.pvary` until JAX 0.8.1)."""
    if hasattr(jax.lax, "pcast"):
        return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)
    return jax.tree.map(lambda leaf: jax.lax.pvary(leaf, axes), tree)


# ---------------------------------------------------------------- zero_table

zero_table__right_formulas = {
    "bytes of a parameter, stage 0": 2 + 2 + 12,
    "bytes of a parameter, stage 1": 2 + 2 + 12 / 8,
    "bytes of a parameter, stage 2": 2 + (2 + 12) / 8,
    "bytes of a parameter, stage 3": (2 + 2 + 12) / 8,
    "bytes sent, stage 1 ÷ stage 0": (7 / 8 + 7 / 8) / (2 * 7 / 8),
    "bytes sent, stage 3 ÷ stage 0": 3 * (7 / 8) / (2 * 7 / 8),
}

# Thought: stage 1 has a reduce_scatter where stage 0 has an all_reduce, and that is half of it (the all_gather of the weights forgotten).
zero_table__wrong_half = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 5.5,
    "bytes of a parameter, stage 2": 3.75,
    "bytes of a parameter, stage 3": 2,
    "bytes sent, stage 1 ÷ stage 0": 0.5,
    "bytes sent, stage 3 ÷ stage 0": 1.5,
}

# Thought: Adam's state is the two moments, 8 bytes; the master copy is a weight and is cut only when the weights are, in stage 3.
zero_table__wrong_master_copy = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 2 + 2 + 4 + 8 / 8,
    "bytes of a parameter, stage 2": 2 + 4 + 2 / 8 + 8 / 8,
    "bytes of a parameter, stage 3": 2,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 1.5,
}

# Thought: each stage cuts one of the three, stage 2 the gradients and stage 3 the weights (not on top of the stage before).
zero_table__wrong_not_cumulative = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 2 + 2 + 12 / 8,
    "bytes of a parameter, stage 2": 2 + 2 / 8 + 12,
    "bytes of a parameter, stage 3": 2 / 8 + 2 + 12,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 1.5,
}

# Thought: stage 3 has three collectives where stage 0 has one, so it sends three times as much (an all_reduce counted as one pass).
zero_table__wrong_three_to_one = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 5.5,
    "bytes of a parameter, stage 2": 3.75,
    "bytes of a parameter, stage 3": 2,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 3,
}


# ---------------------------------------------------------------- shard_axis


def shard_axis__right_running_best(shape, n, smallest):
    """The dimension to cut, counted from 0, or "whole"."""
    if math.prod(shape) < smallest:
        return "whole"
    best, length = "whole", -1
    for k, size in enumerate(shape):
        if size % n == 0 and size > length:
            best, length = k, size
    return best


# Thought: take the longest dimension; if n does not divide it, the array cannot be cut.
def shard_axis__wrong_longest_first(shape, n, smallest):
    if not shape or math.prod(shape) < smallest:
        return "whole"
    k = max(range(len(shape)), key=lambda k: shape[k])
    return k if shape[k] % n == 0 else "whole"


# Thought: sort the dimensions that fit by length and take the end of the list (which is the last of equally long ones).
def shard_axis__wrong_last_of_equals(shape, n, smallest):
    if math.prod(shape) < smallest:
        return "whole"
    fits = sorted((size, k) for k, size in enumerate(shape) if size % n == 0)
    return fits[-1][1] if fits else "whole"


# Thought: what would be too small is the share, so the entries of one device are held against `smallest`.
def shard_axis__wrong_per_share(shape, n, smallest):
    fits = [k for k in range(len(shape)) if shape[k] % n == 0]
    if not fits or math.prod(shape) / n < smallest:
        return "whole"
    return max(fits, key=lambda k: shape[k])


# Thought: up to `smallest` entries an array is small (that many included).
def shard_axis__wrong_boundary(shape, n, smallest):
    fits = [k for k in range(len(shape)) if shape[k] % n == 0]
    if not fits or math.prod(shape) <= smallest:
        return "whole"
    return max(fits, key=lambda k: shape[k])


# ---------------------------------------------------------------- prefetch


def prefetch__right_fori_loop(embed, stack, x, *, mesh):
    """tanh layers of x · embed, each gathered while the one before it is multiplied."""

    def on_device(embed, stack, x):
        def whole(k):
            share = jax.lax.dynamic_index_in_dim(stack, k, axis=0, keepdims=False)
            return jax.lax.all_gather(share, "fsdp", axis=0, tiled=True)

        def turn(k, carry):
            h, w = carry
            return jnp.tanh(h @ w), whole(k)

        h, w = jax.lax.fori_loop(1, stack.shape[0], turn, (jnp.tanh(x @ embed), whole(0)))
        return jnp.tanh(h @ w)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# Thought: a gather needs nothing of h, so inside the loop it runs by itself beside the product of the turn before (but a turn ends first).
def prefetch__wrong_same_turn(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def layer(h, share):
            w = jax.lax.all_gather(share, "fsdp", tiled=True)
            return jnp.tanh(h @ w), None

        return jax.lax.scan(layer, jnp.tanh(x @ embed), stack)[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# Thought: L layers are L turns, each multiplies and gathers the next; the last gathers layer 0 again, which does no harm.
def prefetch__wrong_one_gather_more(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def gathered(share):
            return jax.lax.all_gather(share, "fsdp", tiled=True)

        def turn(carry, share):
            h, w = carry
            return (jnp.tanh(h @ w), gathered(share)), None

        (h, _), _ = jax.lax.scan(turn, (jnp.tanh(x @ embed), gathered(stack[0])), jnp.roll(stack, -1, axis=0))
        return h

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# Thought: when the loop is over all layers have been gathered, so h is the result (the layer that was gathered last is not multiplied).
def prefetch__wrong_last_layer_missing(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def gathered(share):
            return jax.lax.all_gather(share, "fsdp", tiled=True)

        def turn(carry, share):
            h, w = carry
            return (jnp.tanh(h @ w), gathered(share)), None

        (h, _), _ = jax.lax.scan(turn, (jnp.tanh(x @ embed), gathered(stack[0])), stack[1:])
        return h

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# Thought: two layers whole means two in stock, so the loop carries two and gathers the one after them (three are whole then).
def prefetch__wrong_two_ahead(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def gathered(share):
            return jax.lax.all_gather(share, "fsdp", tiled=True)

        def turn(carry, share):
            h, w, following = carry
            return (jnp.tanh(h @ w), following, gathered(share)), None

        h = jnp.tanh(x @ embed)
        if len(stack) == 1:
            return jnp.tanh(h @ gathered(stack[0]))
        (h, w, last), _ = jax.lax.scan(turn, (h, gathered(stack[0]), gathered(stack[1])), stack[2:])
        return jnp.tanh(jnp.tanh(h @ w) @ last)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )
