"""Answers to lesson 14, sixth batch, written by a reader of the notebook only."""

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


# ------------------------------------------------------------------ by_specs


# Right: examples are pinned after every layer, and a jit says how the results are laid out.
def by_specs__right_out_shardings(params, x, y, *, mesh):
    cut, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())

    def stay(h):
        return jax.lax.with_sharding_constraint(h, cut)

    def value(params, x, y):
        h = stay(x)
        for number, layer in enumerate(params, 1):
            h = stay(h @ layer["W"] + layer["b"])
            if number < len(params):
                h = stay(jax.nn.relu(h))
        return jnp.mean(jnp.sum((h - stay(y)) ** 2, axis=-1))

    layouts = whole, [{"W": cut, "b": whole} for _ in params]
    return jax.jit(jax.value_and_grad(value), out_shardings=layouts)(params, x, y)


# This student lays out all gradients alike, in shares, the biases' too.
def by_specs__wrong_biases_cut(params, x, y, *, mesh):
    rows = NamedSharding(mesh, P("fsdp"))

    def value(params):
        h = x
        for layer in params[:-1]:
            h = jax.lax.with_sharding_constraint(jax.nn.relu(h @ layer["W"] + layer["b"]), rows)
        out = jax.lax.with_sharding_constraint(h @ params[-1]["W"] + params[-1]["b"], rows)
        return jnp.mean(jnp.sum((out - y) ** 2, axis=-1))

    found, gradients = jax.value_and_grad(value)(params)
    return found, jax.lax.with_sharding_constraint(gradients, rows)


# This student thinks that a whole product needs whole activations: between layers h is asked for on every device.
def by_specs__wrong_h_whole(params, x, y, *, mesh):
    def own_predict(params, x):
        *hidden, last = params
        for layer in hidden:
            x = jax.nn.relu(x @ layer["W"] + layer["b"])
            x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P()))
        return x @ last["W"] + last["b"]

    def own_loss(params, x, y):
        return jnp.mean(jnp.sum((own_predict(params, x) - y) ** 2, axis=-1))

    value, gradients = jax.value_and_grad(own_loss)(params, x, y)
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    return value, jax.lax.with_sharding_constraint(gradients, layouts)


# This student remembers "eight means are added" from part 4 and divides the gradients by the devices, though here nobody took eight means.
def by_specs__wrong_divided(params, x, y, *, mesh):
    def at(v, *spec):
        return jax.lax.with_sharding_constraint(v, NamedSharding(mesh, P(*spec)))

    def own_loss(params, x, y):
        h = at(x, "fsdp")
        for k, layer in enumerate(params):
            h = h @ at(layer["W"]) + layer["b"]
            h = at(jax.nn.relu(h) if k < len(params) - 1 else h, "fsdp")
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    value, grads = jax.value_and_grad(own_loss)(params, x, y)
    n = mesh.shape["fsdp"]
    return value, [{"W": at(g["W"] / n, "fsdp"), "b": at(g["b"] / n)} for g in grads]


# This student writes it by hand after all: the right values in a shard_map with its own all_gathers, which was excluded.
def by_specs__wrong_by_hand(params, x, y, *, mesh):
    layouts = [{"W": P("fsdp"), "b": P()} for _ in params]

    def on_device(params, x, y):
        def mean_loss(params):
            whole = [{"W": jax.lax.all_gather(p["W"], "fsdp", tiled=True), "b": p["b"]} for p in params]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        return jax.value_and_grad(mean_loss)(params)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, P("fsdp"), P("fsdp")), out_specs=(P(), layouts))(
        params, x, y
    )


# ------------------------------------------------------------------ prefetch


# Right: a fori_loop over the numbers of the layers; it carries h and the layer to be used next.
def prefetch__right_by_number(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def fetch(k):
            share = jax.lax.dynamic_index_in_dim(stack, k, axis=0, keepdims=False)
            return jax.lax.all_gather(share, "fsdp", axis=0, tiled=True)

        def turn(k, carry):
            h, at_hand = carry
            return jnp.tanh(h @ at_hand), fetch(k)

        h, last = jax.lax.fori_loop(1, stack.shape[0], turn, (jnp.tanh(x @ embed), fetch(0)))
        return jnp.tanh(h @ last)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# This student makes the loop regular with L turns: the last turn gathers layer 0 again, and drops it (L + 1 gathers).
def prefetch__wrong_one_too_many(embed, stack, x, *, mesh):
    def gathered(share):
        return jax.lax.all_gather(share, "fsdp", tiled=True)

    def on_device(embed, stack, x):
        def turn(carry, share):
            h, w = carry
            return (jnp.tanh(h @ w), gathered(share)), None

        (h, _), _ = jax.lax.scan(turn, (jnp.tanh(x @ embed), gathered(stack[0])), jnp.roll(stack, -1, axis=0))
        return h

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# This student returns what the loop has carried, and forgets that the last layer is gathered but not yet used.
def prefetch__wrong_last_unused(embed, stack, x, *, mesh):
    def body(embed, stack, x):
        first = jax.lax.all_gather(stack[0], "fsdp", tiled=True)

        def turn(carry, share):
            h, w = carry
            following = jax.lax.all_gather(share, "fsdp", tiled=True)
            return (jnp.tanh(h @ w), following), None

        (h, w), _ = jax.lax.scan(turn, (jnp.tanh(x @ embed), first), stack[1:])
        return h

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# This student gathers two layers ahead, to be safe: right values, but three whole layers at a time.
def prefetch__wrong_two_ahead(embed, stack, x, *, mesh):
    def whole(share):
        return jax.lax.all_gather(share, "fsdp", tiled=True)

    def body(embed, stack, x):
        def turn(carry, share):
            h, now, soon = carry
            return (jnp.tanh(h @ now), soon, whole(share)), None

        carry = jnp.tanh(x @ embed), whole(stack[0]), whole(stack[1])
        (h, a, b), _ = jax.lax.scan(turn, carry, stack[2:])
        return jnp.tanh(jnp.tanh(h @ a) @ b)

    specs = P(), P(None, "fsdp"), P("fsdp")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("fsdp"))(embed, stack, x)


# This student takes the first layer out of the loop, but inside still multiplies by what the same turn gathers.
def prefetch__wrong_same_turn(embed, stack, x, *, mesh):
    def body(embed, stack, x):
        w = jax.lax.all_gather(stack[0], "fsdp", tiled=True)
        h = jnp.tanh(jnp.tanh(x @ embed) @ w)

        def turn(carry, share):
            h, w = carry
            w = jax.lax.all_gather(share, "fsdp", tiled=True)
            return (jnp.tanh(h @ w), w), None

        return jax.lax.scan(turn, (h, w), stack[1:])[0][0]

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# -------------------------------------------------------------------- hybrid


# Right: sums of the devices' own means, first inside the slice (the transposed gather), then between; one division at the end.
def hybrid__right_sums(params, x, y, *, mesh):
    devices = mesh.shape["slice"] * mesh.shape["fsdp"]

    def on_device(params, x, y):
        shares = varying(params, "slice")

        def own_loss(shares):
            whole = [{name: jax.lax.all_gather(v, "fsdp", tiled=True) for name, v in layer.items()} for layer in shares]
            return loss(whole, x, y)

        value, gradients = jax.value_and_grad(own_loss)(shares)
        summed = jax.tree.map(lambda g: jax.lax.psum(g, "slice") / devices, gradients)
        return jax.lax.psum(value, ("slice", "fsdp")) / devices, summed

    both = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), both, both), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# This student takes the mean over all devices and differentiates: right values, and the whole gradient crosses the slow wire.
def hybrid__wrong_natural(params, x, y, *, mesh):
    def body(params, x, y):
        def mean_loss(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(whole, x, y), ("slice", "fsdp"))

        return jax.value_and_grad(mean_loss)(params)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(params, x, y)


# This student casts and averages inside the slice as one should, and then *adds* the gradients of the slices.
def hybrid__wrong_slices_added(params, x, y, *, mesh):
    def body(params, x, y):
        def slice_loss(shares):
            gathered = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(gathered, x, y), "fsdp")

        value, grads = jax.value_and_grad(slice_loss)(varying(params, "slice"))
        return jax.lax.pmean(value, "slice"), jax.lax.psum(grads, "slice")

    rows = P(("slice", "fsdp"))
    return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(params, x, y)


# This student averages over fsdp inside and over slice afterwards, but casts nothing: over slice a sum has been taken before.
def hybrid__wrong_uncast(params, x, y, *, mesh):
    def slice_loss(shares, x, y):
        whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
        return jax.lax.pmean(loss(whole, x, y), "fsdp")

    def body(params, x, y):
        found = jax.value_and_grad(slice_loss)(params, x, y)
        return jax.tree.map(lambda v: jax.lax.pmean(v, "slice"), found)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(params, x, y)


# This student has the order right and writes the sizes of the picture into the program: two slices of four.
def hybrid__wrong_two_times_four(params, x, y, *, mesh):
    def body(params, x, y):
        own = varying(params, "slice")

        def local(own):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), own)
            return loss(whole, x, y) / 4

        value, grads = jax.value_and_grad(local)(own)
        value = jax.lax.psum(jax.lax.psum(value, "fsdp"), "slice") / 2
        return value, jax.tree.map(lambda g: jax.lax.psum(g, "slice") / 2, grads)

    return jax.shard_map(
        body, mesh=mesh, in_specs=(P("fsdp"), P(("slice", "fsdp")), P(("slice", "fsdp"))), out_specs=(P(), P("fsdp"))
    )(params, x, y)
