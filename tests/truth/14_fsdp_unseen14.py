"""Answers to lesson 14, fourteenth batch, written by a reader of the notebook only."""

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

zero_table__right_sums = {
    "bytes of a parameter, stage 0": 2 + 2 + 12,
    "bytes of a parameter, stage 1": 2 + 2 + 12 / 8,
    "bytes of a parameter, stage 2": 2 + (2 + 12) / 8,
    "bytes of a parameter, stage 3": (2 + 2 + 12) / 8,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 3 / 2,
}

# This student thought that stage 3 gathers the weights once, forwards, and scatters once.
zero_table__wrong_one_gather = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 5.5,
    "bytes of a parameter, stage 2": 3.75,
    "bytes of a parameter, stage 3": 2,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 1,
}

# This student thought that stage 2 cuts the gradients in place of the optimizer's state, not as well.
zero_table__wrong_gradients_only = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 5.5,
    "bytes of a parameter, stage 2": 2 + 2 / 8 + 12,
    "bytes of a parameter, stage 3": 2,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 1.5,
}

# This student thought that the master copy is a weight, so that only the two moments are cut before stage 3.
zero_table__wrong_master_copy = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 2 + 2 + 4 + 8 / 8,
    "bytes of a parameter, stage 2": 2 + 4 + (2 + 8) / 8,
    "bytes of a parameter, stage 3": 2,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 1.5,
}

# This student counted collectives instead of bytes: two against one, three against one.
zero_table__wrong_collectives = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 5.5,
    "bytes of a parameter, stage 2": 3.75,
    "bytes of a parameter, stage 3": 2,
    "bytes sent, stage 1 ÷ stage 0": 2,
    "bytes sent, stage 3 ÷ stage 0": 3,
}


# ---------------------------------------------------------------- fsdp_scan


def fsdp_scan__right_policy(stack, x, y, *, mesh):
    """(loss, gradient) of L tanh layers whose weights are in shares: one layer is whole at a time."""

    def layer(h, share):
        w = jax.lax.all_gather(share, "fsdp", axis=0, tiled=True)
        return jnp.tanh(h @ w), None

    forgetful = jax.checkpoint(layer, policy=jax.checkpoint_policies.nothing_saveable)

    def on_device(shares, x, y):
        def value(shares):
            h, _ = jax.lax.scan(forgetful, x, shares)
            return jax.lax.psum(jnp.mean((h - y) ** 2) / mesh.shape["fsdp"], "fsdp")

        return jax.value_and_grad(value)(shares)

    cut = P(None, "fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, P("fsdp"), P("fsdp")), out_specs=(P(), cut))(stack, x, y)


# This student thought that checkpointing the layer's product is enough, and gathered in front of it: the whole weights are its arguments, and are kept.
def fsdp_scan__wrong_gathered_outside(stack, x, y, *, mesh):
    @jax.checkpoint
    def layer(h, w):
        return jnp.tanh(h @ w)

    def turn(h, share):
        return layer(h, jax.lax.all_gather(share, "fsdp", tiled=True)), None

    def on_device(stack, x, y):
        def value(stack):
            h, _ = jax.lax.scan(turn, x, stack)
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(value)(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# This student thought that a checkpoint around the whole loop makes it forget layer by layer (done once more, it keeps all of them).
def fsdp_scan__wrong_whole_loop(stack, x, y, *, mesh):
    def layer(h, share):
        return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

    @jax.checkpoint
    def network(stack, x):
        return jax.lax.scan(layer, x, stack)[0]

    def on_device(stack, x, y):
        def value(stack):
            return jax.lax.pmean(jnp.mean((network(stack, x) - y) ** 2), "fsdp")

        return jax.value_and_grad(value)(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# This student thought that the loss may be averaged after it is differentiated, since the reduce_scatter takes care of the gradient.
def fsdp_scan__wrong_mean_afterwards(stack, x, y, *, mesh):
    @jax.checkpoint
    def layer(h, share):
        return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

    def on_device(stack, x, y):
        def value(stack):
            h, _ = jax.lax.scan(layer, x, stack)
            return jnp.mean((h - y) ** 2)

        found, gradient = jax.value_and_grad(value)(stack)
        return jax.lax.pmean(found, "fsdp"), gradient

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# This student thought that the last layer is linear, as it is in the network of lesson 12.
def fsdp_scan__wrong_last_linear(stack, x, y, *, mesh):
    def whole(share):
        return jax.lax.all_gather(share, "fsdp", tiled=True)

    @jax.checkpoint
    def layer(h, share):
        return jnp.tanh(h @ whole(share)), None

    def on_device(stack, x, y):
        def value(stack):
            h, _ = jax.lax.scan(layer, x, stack[:-1])
            last = jax.checkpoint(lambda h, share: h @ whole(share))(h, stack[-1])
            return jax.lax.pmean(jnp.mean((last - y) ** 2), "fsdp")

        return jax.value_and_grad(value)(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# ---------------------------------------------------------------- fsdp_step


def fsdp_step__right_one_psum(params, moments, x, y, *, limit, mesh):
    """One step of clipped Adam, all state in shares: (loss, params, moments)."""
    layouts = [{"W": P("fsdp"), "b": P()} for _ in params]
    state = {"mean": layouts, "square": layouts}
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        def value(params):
            whole = [layer | {"W": jax.lax.all_gather(layer["W"], "fsdp", tiled=True)} for layer in params]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        found, gradients = jax.value_and_grad(value)(params)
        # a device answers for its own rows, and for an n-th of what all have a copy of
        share = sum(jnp.sum(g["W"] ** 2) + jnp.sum(g["b"] ** 2) / n for g in gradients)
        norm = jnp.sqrt(jax.lax.psum(share, "fsdp"))
        scale = jnp.minimum(1, limit / norm)
        return found, *adam(params, moments, jax.tree.map(lambda g: g * scale, gradients))

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, state, P("fsdp"), P("fsdp")), out_specs=(P(), layouts, state)
    )(params, moments, x, y)


# This student thought that a norm is averaged over devices as a loss is: the mean of the norms of what each of them has.
def fsdp_step__wrong_mean_of_norms(params, moments, x, y, *, limit, mesh):
    layouts = [{"W": P("fsdp"), "b": P()} for _ in params]
    state = {"mean": layouts, "square": layouts}

    def on_device(params, moments, x, y):
        def value(params):
            whole = [{"W": jax.lax.all_gather(p["W"], "fsdp", tiled=True), "b": p["b"]} for p in params]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        found, gradients = jax.value_and_grad(value)(params)
        own = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradients)))
        norm = jax.lax.pmean(own, "fsdp")
        gradients = jax.tree.map(lambda g: g * jnp.minimum(1, limit / norm), gradients)
        return found, *adam(params, moments, gradients)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, state, P("fsdp"), P("fsdp")), out_specs=(P(), layouts, state)
    )(params, moments, x, y)


# This student thought that all squares have to be added over the devices, those of the biases' copies as well.
def fsdp_step__wrong_copies_added(params, moments, x, y, *, limit, mesh):
    layouts = [{"W": P("fsdp"), "b": P()} for _ in params]
    state = {"mean": layouts, "square": layouts}

    def on_device(params, moments, x, y):
        def value(params):
            whole = [{"W": jax.lax.all_gather(p["W"], "fsdp", tiled=True), "b": p["b"]} for p in params]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        found, gradients = jax.value_and_grad(value)(params)
        norm = jnp.sqrt(jax.lax.psum(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradients)), "fsdp"))
        gradients = jax.tree.map(lambda g: g * jnp.minimum(1, limit / norm), gradients)
        return found, *adam(params, moments, gradients)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, state, P("fsdp"), P("fsdp")), out_specs=(P(), layouts, state)
    )(params, moments, x, y)


# This student thought that each leaf is clipped by its own norm.
def fsdp_step__wrong_each_leaf(params, moments, x, y, *, limit, mesh):
    layouts = [{"W": P("fsdp"), "b": P()} for _ in params]
    state = {"mean": layouts, "square": layouts}

    def on_device(params, moments, x, y):
        def value(params):
            whole = [{"W": jax.lax.all_gather(p["W"], "fsdp", tiled=True), "b": p["b"]} for p in params]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        def clipped(g, squares):
            return g * jnp.minimum(1, limit / jnp.sqrt(squares))

        found, gradients = jax.value_and_grad(value)(params)
        gradients = [
            {
                "W": clipped(g["W"], jax.lax.psum(jnp.sum(g["W"] ** 2), "fsdp")),
                "b": clipped(g["b"], jnp.sum(g["b"] ** 2)),
            }
            for g in gradients
        ]
        return found, *adam(params, moments, gradients)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, state, P("fsdp"), P("fsdp")), out_specs=(P(), layouts, state)
    )(params, moments, x, y)


# This student thought that clipping gives every gradient the length `limit`, and so stretches the short ones.
def fsdp_step__wrong_always_scaled(params, moments, x, y, *, limit, mesh):
    layouts = [{"W": P("fsdp"), "b": P()} for _ in params]
    state = {"mean": layouts, "square": layouts}

    def on_device(params, moments, x, y):
        def value(params):
            whole = [{"W": jax.lax.all_gather(p["W"], "fsdp", tiled=True), "b": p["b"]} for p in params]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        found, gradients = jax.value_and_grad(value)(params)
        parts = sum(jnp.sum(g["W"] ** 2) for g in gradients)
        copies = sum(jnp.sum(g["b"] ** 2) for g in gradients)
        norm = jnp.sqrt(jax.lax.psum(parts, "fsdp") + copies)
        return found, *adam(params, moments, jax.tree.map(lambda g: g * limit / norm, gradients))

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, state, P("fsdp"), P("fsdp")), out_specs=(P(), layouts, state)
    )(params, moments, x, y)
