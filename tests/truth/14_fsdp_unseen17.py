"""Answers to lesson 14, seventeenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
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


# ---------------------------------------------------------------- begin_fsdp


def begin_fsdp__right_zeros_on_device(params, mesh):
    specs = {"W": P("fsdp", None), "b": P()}
    params = [
        {name: jax.device_put(leaf, NamedSharding(mesh, specs[name])) for name, leaf in layer.items()}
        for layer in params
    ]

    def zeros():
        return jax.tree.map(lambda p: jnp.zeros(p.shape, p.dtype, device=p.sharding), params)

    return params, {"mean": zeros(), "square": zeros()}


# Thought: a linear layer's weight is [out, in] as in torch, so its rows (outputs) are the second dimension here.
def begin_fsdp__wrong_columns(params, mesh):
    layouts = [{"W": NamedSharding(mesh, P(None, "fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    params = jax.device_put(params, layouts)
    return params, {name: jax.tree.map(jnp.zeros_like, params) for name in ("mean", "square")}


# Thought: fully sharded means over all devices, so the rows are dealt out over every axis of the mesh (right on the line of eight).
def begin_fsdp__wrong_all_axes(params, mesh):
    layouts = [{"W": NamedSharding(mesh, P(mesh.axis_names)), "b": NamedSharding(mesh, P())} for _ in params]
    params = jax.device_put(params, layouts)
    return params, {name: jax.tree.map(jnp.zeros_like, params) for name in ("mean", "square")}


# Thought: zeros like the parameters can be made at once from what came; jax will lay them out as they are used.
def begin_fsdp__wrong_moments_first(params, mesh):
    moments = {"mean": jax.tree.map(jnp.zeros_like, params), "square": jax.tree.map(jnp.zeros_like, params)}
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    return jax.device_put(params, layouts), moments


# Thought: an optimizer keeps a dict of its two moments for each parameter, as torch's optimizer.state does.
def begin_fsdp__wrong_state_of_each(params, mesh):
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    params = jax.device_put(params, layouts)
    moments = jax.tree.map(lambda p: {"mean": jnp.zeros_like(p), "square": jnp.zeros_like(p)}, params)
    return params, moments


# ---------------------------------------------------------------- prefetch


def prefetch__right_fori_loop(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def whole(layer):
            share = jax.lax.dynamic_index_in_dim(stack, layer, axis=0, keepdims=False)
            return jax.lax.all_gather(share, "fsdp", axis=0, tiled=True)

        def turn(layer, carry):
            h, w = carry
            return jnp.tanh(h @ w), whole(layer)

        h, last = jax.lax.fori_loop(1, stack.shape[0], turn, (jnp.tanh(x @ embed), whole(0)))
        return jnp.tanh(h @ last)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# Thought: within a turn the gather and the product are both there, so they run side by side (but the product waits for that very gather).
def prefetch__wrong_same_turn(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def turn(h, share):
            w = jax.lax.all_gather(share, "fsdp", tiled=True)
            return jnp.tanh(h @ w), None

        h, _ = jax.lax.scan(turn, jnp.tanh(x @ embed), stack)
        return h

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# Thought: L layers are L turns, each gathers the next one; roll the stack so that there is a next one for the last turn too (L + 1 gathers).
def prefetch__wrong_one_gather_more(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def gathered(share):
            return jax.lax.all_gather(share, "fsdp", tiled=True)

        def turn(carry, following):
            h, w = carry
            return (jnp.tanh(h @ w), gathered(following)), None

        carry = jnp.tanh(x @ embed), gathered(stack[0])
        (h, _), _ = jax.lax.scan(turn, carry, jnp.roll(stack, -1, axis=0))
        return h

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# Thought: after L - 1 turns all layers have been gathered, so the loop is the whole network (the last layer is never multiplied).
def prefetch__wrong_last_layer_missing(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def gathered(share):
            return jax.lax.all_gather(share, "fsdp", tiled=True)

        def turn(carry, following):
            h, w = carry
            coming = gathered(following)
            return (jnp.tanh(h @ w), coming), None

        (h, _), _ = jax.lax.scan(turn, (jnp.tanh(x @ embed), gathered(stack[0])), stack[1:])
        return h

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# Thought: to be safe two layers should be ready before the loop begins, one in use and one in reserve (three are whole then).
def prefetch__wrong_two_ahead(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def gathered(share):
            return jax.lax.all_gather(share, "fsdp", tiled=True)

        def turn(carry, share):
            h, now, following = carry
            return (jnp.tanh(h @ now), following, gathered(share)), None

        begin = jnp.tanh(x @ embed), gathered(stack[0]), gathered(stack[1])
        (h, one, two), _ = jax.lax.scan(turn, begin, stack[2:])
        return jnp.tanh(jnp.tanh(h @ one) @ two)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# ---------------------------------------------------------------- fsdp_gradient


def fsdp_gradient__right_share_of_loss(params, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, x, y):
        def own_term(shares):
            """This device's term of the whole batch's mean; the gather's transpose adds up the terms' gradients."""
            return loss(jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares), x, y) / n

        term, gradients = jax.value_and_grad(own_term)(params)
        return jax.lax.psum(term, "fsdp"), gradients

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# Thought: after the backward pass gradients are averaged over the devices, as DDP does, whatever the loss was.
def fsdp_gradient__wrong_averaged_shares(params, x, y, *, mesh):
    def on_device(params, x, y):
        def value(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        found, gradients = jax.value_and_grad(value)(params)
        return found, jax.lax.pmean(gradients, "fsdp")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# Thought: gather, differentiate as in data parallelism (pmean of the whole gradients), then keep one's own rows: the same numbers (but an all_reduce for each leaf).
def fsdp_gradient__wrong_reduce_then_slice(params, x, y, *, mesh):
    def on_device(params, x, y):
        me = jax.lax.axis_index("fsdp")
        whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), params)
        found, gradients = jax.value_and_grad(loss)(whole, x, y)
        found, gradients = jax.lax.pmean((found, gradients), "fsdp")
        own = jax.tree.map(lambda g, s: jax.lax.dynamic_slice_in_dim(g, me * len(s), len(s)), gradients, params)
        return found, own

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# Thought: the gradients arrive summed, so these are divided by the devices; the loss is one number anyway (it is a sum of means).
def fsdp_gradient__wrong_loss_summed(params, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, x, y):
        def value(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return jax.lax.psum(loss(whole, x, y), "fsdp")

        found, gradients = jax.value_and_grad(value)(params)
        return found, jax.tree.map(lambda g: g / n, gradients)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# Thought: the loss of the whole batch needs the whole batch, so everything that comes as P("fsdp") is gathered, the examples too.
def fsdp_gradient__wrong_batch_gathered(params, x, y, *, mesh):
    def on_device(params, x, y):
        def gathered(tree):
            return jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), tree)

        def value(shares):
            return jax.lax.pmean(loss(gathered(shares), gathered(x), gathered(y)), "fsdp")

        return jax.value_and_grad(value)(params)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)
