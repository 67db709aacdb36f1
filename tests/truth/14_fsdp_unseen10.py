"""Answers to lesson 14, tenth batch, written by a reader of the notebook only."""

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


# ---- by_specs


def by_specs__right_whole_where_used(params, x, y, *, mesh):
    keep = jax.lax.with_sharding_constraint
    shares, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())

    def value(params):
        h = x
        for k, layer in enumerate(params):
            h = keep((jax.nn.relu(h) if k else h) @ keep(layer["W"], whole) + layer["b"], shares)
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    found, gradients = jax.value_and_grad(value)(params)
    return found, [{"W": keep(g["W"], shares), "b": keep(g["b"], whole)} for g in gradients]


# the rule of types of lesson 12 taken for Auto: "a gradient is laid out as its parameter is", so says nothing of gradients
def by_specs__wrong_gradients_left_open(params, x, y, *, mesh):
    whole = NamedSharding(mesh, P())

    def value(params):
        h = x
        for k, layer in enumerate(params):
            h = h @ jax.lax.with_sharding_constraint(layer["W"], whole) + layer["b"]
            h = jax.lax.with_sharding_constraint(h, NamedSharding(mesh, P("fsdp")))
            h = h if k == len(params) - 1 else jax.nn.relu(h)
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    return jax.value_and_grad(value)(params)


# has part 4 in mind, where every leaf was in shares: cuts the gradients of the biases, too
def by_specs__wrong_biases_cut(params, x, y, *, mesh):
    shares = NamedSharding(mesh, P("fsdp"))

    def value(params):
        *hidden, last = params
        h = x
        for layer in hidden:
            h = jax.lax.with_sharding_constraint(jax.nn.relu(h @ layer["W"] + layer["b"]), shares)
        h = jax.lax.with_sharding_constraint(h @ last["W"] + last["b"], shares)
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    found, gradients = jax.value_and_grad(value)(params)
    return found, jax.lax.with_sharding_constraint(gradients, shares)


# takes the rows of W for hidden units of tensor parallelism, and lays h out so that its features meet them
def by_specs__wrong_features_of_h(params, x, y, *, mesh):
    units = NamedSharding(mesh, P(None, "fsdp"))

    def value(params):
        *hidden, last = params
        h = jax.lax.with_sharding_constraint(x, units)
        for layer in hidden:
            h = jax.lax.with_sharding_constraint(jax.nn.relu(h @ layer["W"] + layer["b"]), units)
        return jnp.mean(jnp.sum((h @ last["W"] + last["b"] - y) ** 2, axis=-1))

    found, gradients = jax.value_and_grad(value)(params)
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    return found, jax.lax.with_sharding_constraint(gradients, layouts)


# does not trust the compiler, and writes part 4 again with whole biases: right numbers, with shard_map and collectives
def by_specs__wrong_by_hand(params, x, y, *, mesh):
    layout = [{"W": P("fsdp"), "b": P()} for _ in params]

    def on_device(params, x, y):
        def value(shares):
            layers = [{"W": jax.lax.all_gather(s["W"], "fsdp", tiled=True), "b": s["b"]} for s in shares]
            return jax.lax.pmean(loss(layers, x, y), "fsdp")

        return jax.value_and_grad(value)(params)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layout, P("fsdp"), P("fsdp")), out_specs=(P(), layout))(
        params, x, y
    )


# ---- prefetch


def prefetch__right_fori(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def whole(layer):
            return jax.lax.all_gather(stack[layer], "fsdp", tiled=True)

        def turn(layer, carry):
            h, w = carry
            return jnp.tanh(h @ w), whole(layer)

        h, w = jax.lax.fori_loop(1, stack.shape[0], turn, (jnp.tanh(x @ embed), whole(0)))
        return jnp.tanh(h @ w)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# carries a whole layer as told, but multiplies by the one that this turn has gathered: every product waits again
def prefetch__wrong_multiplies_the_new(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def turn(carry, share):
            h, w = carry
            w = jax.lax.all_gather(share, "fsdp", tiled=True)
            return (jnp.tanh(h @ w), w), None

        first = jax.lax.all_gather(stack[0], "fsdp", tiled=True)
        h = jnp.tanh(jnp.tanh(x @ embed) @ first)
        (h, _), _ = jax.lax.scan(turn, (h, first), stack[1:])
        return h

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# wants all L products in the loop, and lets the last turn gather something, no matter what: L + 1 gathers
def prefetch__wrong_ring_of_layers(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def turn(carry, share):
            h, w = carry
            return (jnp.tanh(h @ w), jax.lax.all_gather(share, "fsdp", tiled=True)), None

        start = jnp.tanh(x @ embed), jax.lax.all_gather(stack[0], "fsdp", tiled=True)
        (h, _), _ = jax.lax.scan(turn, start, jnp.roll(stack, -1, axis=0))
        return h

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# thinks that L - 1 turns and the embedding are the L layers: the layer gathered last is never used
def prefetch__wrong_last_layer_unused(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def gathered(share):
            return jax.lax.all_gather(share, "fsdp", tiled=True)

        def turn(carry, share):
            h, w = carry
            return (jnp.tanh(h @ w), gathered(share)), None

        carry, _ = jax.lax.scan(turn, (jnp.tanh(x @ embed), gathered(stack[0])), stack[1:])
        return carry[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# "the earlier the better": gathers two layers ahead, so that a third whole one is there while it multiplies
def prefetch__wrong_two_ahead(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def gathered(share):
            return jax.lax.all_gather(share, "fsdp", tiled=True)

        def turn(carry, share):
            h, now, after = carry
            return (jnp.tanh(h @ now), after, gathered(share)), None

        start = jnp.tanh(x @ embed), gathered(stack[0]), gathered(stack[1])
        (h, now, after), _ = jax.lax.scan(turn, start, stack[2:])
        return jnp.tanh(jnp.tanh(h @ now) @ after)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# ---- zero1_step


def zero1_step__right_share_of_the_loss(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        gradients = jax.grad(lambda p: loss(p, x, y) / n)(params)
        own_gradients = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True), gradients)
        own = jax.tree.map(lambda p: p.reshape(n, -1, *p.shape[1:])[me], params)
        own, moments = adam(own, moments, own_gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# mixes part 4 in: averages the loss by pmean before the gradient, so nothing is divided; with the check off that mean is undone
def zero1_step__wrong_pmean_of_the_loss(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        n, me = jax.lax.axis_size("fsdp"), jax.lax.axis_index("fsdp")
        gradients = jax.grad(lambda p: jax.lax.pmean(loss(p, x, y), "fsdp"))(params)
        gradients = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True), gradients)
        own = jax.tree.map(lambda p: jax.lax.dynamic_slice_in_dim(p, me * (len(p) // n), len(p) // n), params)
        own, moments = adam(own, moments, gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# lets the own rows begin at the device's number, not at that number times their count
def zero1_step__wrong_rows_begin_at_me(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        n, me = jax.lax.axis_size("fsdp"), jax.lax.axis_index("fsdp")
        gradients = jax.grad(loss)(params, x, y)
        gradients = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True) / n, gradients)
        own = jax.tree.map(lambda p: jax.lax.dynamic_slice_in_dim(p, me, p.shape[0] // n), params)
        own, moments = adam(own, moments, gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# confuses own rows with own examples: takes its rows out of the gradient of its own examples, which nobody has added up
def zero1_step__wrong_nobody_adds(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        n, me = jax.lax.axis_size("fsdp"), jax.lax.axis_index("fsdp")

        def own_rows(tree):
            return jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(a, me * (len(a) // n), len(a) // n), tree)

        new, moments = adam(own_rows(params), moments, own_rows(jax.grad(loss)(params, x, y)))
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), new), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# gets the own rows of the weights the way it gets those of the gradients, by a reduce_scatter: right numbers, half as many bytes more
def zero1_step__wrong_scatters_weights(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        n = jax.lax.axis_size("fsdp")

        def mean_of_own_rows(tree):
            return jax.tree.map(lambda a: jax.lax.psum_scatter(a, "fsdp", tiled=True) / n, tree)

        gradients = mean_of_own_rows(jax.grad(loss)(params, x, y))
        new, moments = adam(mean_of_own_rows(params), moments, gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), new), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)
