"""Answers to lesson 12, ninth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def predict(params, x):
    """The network: relu between its layers, the last one linear. A layer is a dict with "W" and "b"."""
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    """The mean over the batch of the summed squares of what is missing."""
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


def descend(params, gradients, rate):
    """One step of gradient descent."""
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def varying(tree, axes):
    """The same arrays, marked as ones that may differ along these axes (`lax.pvary` until JAX 0.8.1)."""
    if hasattr(jax.lax, "pcast"):
        return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)
    return jax.tree.map(lambda leaf: jax.lax.pvary(leaf, axes), tree)


# ---- clip_by_global_norm

_LAYOUT = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}


def clip_by_global_norm__right_share_of_copies(gradients, *, limit, mesh):
    holders = mesh.shape["model"]

    def on_device(gradients):
        mine = 0.0
        for name, leaf in gradients.items():
            squares = jnp.vdot(leaf, leaf)
            mine = mine + (squares if "model" in _LAYOUT[name] else squares / holders)
        norm = jnp.sqrt(jax.lax.psum(mine, "model"))
        factor = limit / jnp.maximum(norm, limit)
        return jax.tree.map(lambda leaf: leaf * factor, gradients), norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(_LAYOUT,), out_specs=(_LAYOUT, P()))(gradients)


# Thought: biases are small and every device has them; JAX says that the norm may vary, so a mean over model makes the two biases' squares one value.
def clip_by_global_norm__wrong_biases_are_copies(gradients, *, limit, mesh):
    def on_device(gradients):
        squares = {name: jnp.sum(leaf**2) for name, leaf in gradients.items()}
        matrices = jax.lax.psum(squares["W1"] + squares["W2"], "model")
        biases = jax.lax.pmean(squares["b1"] + squares["b2"], "model")
        norm = jnp.sqrt(matrices + biases)
        factor = jnp.minimum(1.0, limit / norm)
        return {name: factor * leaf for name, leaf in gradients.items()}, norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(_LAYOUT,), out_specs=(_LAYOUT, P()))(gradients)


# Thought: what one logs is the norm of the step that is made, so the norm that comes back is that of what I return.
def clip_by_global_norm__wrong_norm_after(gradients, *, limit, mesh):
    def on_device(gradients):
        cut = sum(jnp.sum(gradients[name] ** 2) for name in ("W1", "b1", "W2"))
        norm = jnp.sqrt(jax.lax.psum(cut, "model") + jnp.sum(gradients["b2"] ** 2))
        norm_of_step = jnp.minimum(norm, limit)
        return jax.tree.map(lambda g: g * (norm_of_step / norm), gradients), norm_of_step

    return jax.shard_map(on_device, mesh=mesh, in_specs=(_LAYOUT,), out_specs=(_LAYOUT, P()))(gradients)


# Thought: clipping cuts off what sticks out; the norm decides whether it is done, and then no entry may be larger than limit / norm of its size.
def clip_by_global_norm__wrong_entries_clipped(gradients, *, limit, mesh):
    def on_device(gradients):
        cut = sum(jnp.sum(gradients[name] ** 2) for name in ("W1", "b1", "W2"))
        norm = jnp.sqrt(jax.lax.psum(cut, "model") + jnp.sum(gradients["b2"] ** 2))

        def shorten(leaf):
            return jnp.where(norm > limit, jnp.clip(leaf, -limit / norm, limit / norm), leaf)

        return jax.tree.map(shorten, gradients), norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(_LAYOUT,), out_specs=(_LAYOUT, P()))(gradients)


# Thought: the norm of *all* gradients needs all of them in one place; unchecked, because every device then has the same anyhow.
def clip_by_global_norm__wrong_leaves_gathered(gradients, *, limit, mesh):
    def whole(name, leaf):
        spec = _LAYOUT[name]
        if "model" not in spec:
            return leaf
        return jax.lax.all_gather(leaf, "model", axis=list(spec).index("model"), tiled=True)

    def on_device(gradients):
        everything = jnp.concatenate([whole(name, leaf).ravel() for name, leaf in gradients.items()])
        norm = jnp.linalg.norm(everything)
        factor = jnp.where(norm > limit, limit / norm, 1.0)
        return jax.tree.map(lambda leaf: leaf * factor, gradients), norm

    program = jax.shard_map(on_device, mesh=mesh, in_specs=(_LAYOUT,), out_specs=(_LAYOUT, P()), check_vma=False)
    return program(gradients)


# ---- accumulate


def accumulate__right_every_kth_row(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)
        share = 1 / microbatches
        total = nothing
        for first in range(microbatches):
            found = jax.value_and_grad(loss)(own, x[first::microbatches], y[first::microbatches])
            total = jax.tree.map(lambda t, f: t + share * f, total, found)
        return jax.lax.pmean(total, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Thought: the second way of lesson 11 needs no cast: the gradient of the parameters as they come is the devices' sum, and I divide by their number after the loop.
def accumulate__wrong_divided_not_cast(params, x, y, *, microbatches, mesh):
    devices = mesh.shape["data"]

    def on_device(params, x, y):
        total_loss, total = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, params)
        for part_x, part_y in zip(jnp.split(x, microbatches), jnp.split(y, microbatches)):
            value, gradients = jax.value_and_grad(loss)(params, part_x, part_y)
            total_loss = total_loss + value
            total = jax.tree.map(jnp.add, total, gradients)
        mean_loss = jax.lax.pmean(total_loss / microbatches, "data")
        return mean_loss, jax.tree.map(lambda g: g / (devices * microbatches), total)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Thought: I keep the mean so far: the mean of what I have and of the new one, then no division is left for the end.
def accumulate__wrong_mean_so_far(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        xs, ys = (a.reshape(microbatches, -1, *a.shape[1:]) for a in (x, y))
        mean = jax.value_and_grad(loss)(own, xs[0], ys[0])
        for turn in range(1, microbatches):
            found = jax.value_and_grad(loss)(own, xs[turn], ys[turn])
            mean = jax.tree.map(lambda m, f: (m + f) / 2, mean, found)
        return jax.lax.pmean(mean, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Thought: the batch is cut into `microbatches` parts, so there are that many means in the psum, and that is what I divide by.
def accumulate__wrong_parts_of_the_batch(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, rows):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(own, *rows)), None

        rows = tuple(a.reshape(microbatches, a.shape[0] // microbatches, -1) for a in (x, y))
        total, _ = jax.lax.scan(turn, nothing, rows)
        return jax.tree.map(lambda t: t / microbatches, jax.lax.psum(total, "data"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Thought: gradients add up, but the loss is a number of the moment, so the one after the last turn is the newest and goes with the gradient.
def accumulate__wrong_newest_loss(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = jax.tree.map(jnp.zeros_like, own)

        def turn(total, rows):
            value, gradients = jax.value_and_grad(loss)(own, *rows)
            return jax.tree.map(jnp.add, total, gradients), value

        rows = tuple(a.reshape(microbatches, a.shape[0] // microbatches, -1) for a in (x, y))
        total, values = jax.lax.scan(turn, nothing, rows)
        return jax.lax.pmean((values[-1], jax.tree.map(lambda t: t / microbatches, total)), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# ---- dp_numbers

_WIDTHS = [784, 8192, 8192, 8192, 10]
_PARAMETERS = sum((n + 1) * m for n, m in zip(_WIDTHS, _WIDTHS[1:]))  # the 1 is the bias

dp_numbers__right_plus_one = {
    "parameters": _PARAMETERS,
    "bytes of parameters on each device": 4 * _PARAMETERS,
    "bytes of x on each device": 4 * 784 * 8192 // 8,
    "bytes each device sends in a step": 2 * 7 * 4 * (_PARAMETERS + 1) // 8,
    "bytes each device sends in a step, with 64 rows instead of 8192": 2 * 7 * 4 * (_PARAMETERS + 1) // 8,
}

# Thought: three times 8192 in the widths are three matrices of 8192 × 8192, each with its bias.
_THREE = 785 * 8192 + 3 * 8193 * 8192 + 8193 * 10
dp_numbers__wrong_three_large_matrices = {
    "parameters": _THREE,
    "bytes of parameters on each device": 4 * _THREE,
    "bytes of x on each device": 3_211_264,
    "bytes each device sends in a step": 7 * (_THREE + 1),
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (_THREE + 1),
}

# Thought: gradients are made from rows, so with 128 times fewer rows there is 128 times less to add up over the devices, and only the loss stays one number.
dp_numbers__wrong_fewer_rows_fewer_bytes = {
    "parameters": 140_746_762,
    "bytes of parameters on each device": 562_987_048,
    "bytes of x on each device": 3_211_264,
    "bytes each device sends in a step": 985_227_341,
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (140_746_762 // 128 + 1),
}

# Thought: each device needs the others' gradients only, and adds them up itself: seven eighths of the array go out, once.
dp_numbers__wrong_sent_once = {
    "parameters": 140_746_762,
    "bytes of parameters on each device": 562_987_048,
    "bytes of x on each device": 3_211_264,
    "bytes each device sends in a step": 7 * (140_746_762 + 1) / 2,
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (140_746_762 + 1) / 2,
}

# Thought: x is the array whose 784 features are divided among nobody, as all devices see the same inputs; what is cut over data are the labels and activations.
dp_numbers__wrong_x_everywhere = {
    "parameters": 140_746_762,
    "bytes of parameters on each device": 562_987_048,
    "bytes of x on each device": 4 * 8192 * 784,
    "bytes each device sends in a step": 985_227_341,
    "bytes each device sends in a step, with 64 rows instead of 8192": 985_227_341,
}
