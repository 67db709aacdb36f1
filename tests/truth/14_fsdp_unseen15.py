"""Answers to lesson 14, fifteenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- zero1_step
def zero1_step__right_params_twice(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(whole, own, moments, x, y):  # `own`: the same weights, which arrive in shares
        gradients = jax.grad(loss)(whole, x, y)
        gradients = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True) / n, gradients)
        own, moments = adam(own, moments, gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    rows = P("fsdp")
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(), rows, rows, rows, rows), out_specs=(P(), rows), check_vma=False
    )(params, params, moments, x, y)


# The student forgot that psum_scatter has added n means: no division (the weights hardly show it with Adam, the moments do).
def zero1_step__wrong_sum_of_means(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        gradients = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True), jax.grad(loss)(params, x, y))
        own = jax.tree.map(lambda p, g: jax.lax.dynamic_slice_in_dim(p, me * g.shape[0], g.shape[0]), params, gradients)
        own, moments = adam(own, moments, gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# The student thought: a device needs only its own rows of the gradient, so it takes these from its own gradient, with nobody's help.
def zero1_step__wrong_own_examples_only(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")

        def own(leaf):
            rows = leaf.shape[0] // n
            return jax.lax.dynamic_slice_in_dim(leaf, me * rows, rows)

        gradients = jax.grad(loss)(params, x, y)
        shares, moments = adam(jax.tree.map(own, params), moments, jax.tree.map(own, gradients))
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), shares), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# The student averaged the whole gradients, as in data parallelism, and only then took the own rows: an all_reduce, and an all_gather on top.
def zero1_step__wrong_all_reduce_then_slice(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")

        def own(leaf):
            rows = leaf.shape[0] // n
            return jax.lax.dynamic_slice_in_dim(leaf, me * rows, rows)

        gradients = jax.lax.pmean(jax.grad(loss)(params, x, y), "fsdp")
        shares, moments = adam(jax.tree.map(own, params), moments, jax.tree.map(own, gradients))
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), shares), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# The student mixed up the number of devices and the rows of a share: own rows of the weights begin at me * n.
def zero1_step__wrong_begins_at_me_times_n(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        gradients = jax.tree.map(
            lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True) / n, jax.grad(loss)(params, x, y)
        )
        own = jax.tree.map(lambda p: jax.lax.dynamic_slice_in_dim(p, me * n, p.shape[0] // n), params)
        own, moments = adam(own, moments, gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# ---------------------------------------------------------------- by_specs
def by_specs__right_whole_where_used(params, x, y, *, mesh):
    def lay(value, *spec):
        return jax.lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))

    def mean_loss(params):
        h = lay(x, "fsdp")
        for number, layer in enumerate(params, 1):
            h = lay(h @ lay(layer["W"]) + layer["b"], "fsdp")
            if number < len(params):
                h = lay(jax.nn.relu(h), "fsdp")
        return jnp.mean(jnp.sum((h - lay(y, "fsdp")) ** 2, axis=-1))

    value, gradients = jax.value_and_grad(mean_loss)(params)
    return lay(value), [{"W": lay(g["W"], "fsdp"), "b": lay(g["b"])} for g in gradients]


# The student thought that a layer's input has to be whole, as its weights are, and laid h out as P() between the layers.
def by_specs__wrong_h_whole(params, x, y, *, mesh):
    def mean_loss(params):
        h = x
        for layer in params[:-1]:
            h = jax.nn.relu(h @ layer["W"] + layer["b"])
            h = jax.lax.with_sharding_constraint(h, NamedSharding(mesh, P()))
        h = h @ params[-1]["W"] + params[-1]["b"]
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    value, gradients = jax.value_and_grad(mean_loss)(params)
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    return value, jax.lax.with_sharding_constraint(gradients, layouts)


# The student laid all gradients out in shares, and forgot that the biases are whole.
def by_specs__wrong_bias_in_shares(params, x, y, *, mesh):
    rows = NamedSharding(mesh, P("fsdp"))

    def mean_loss(params):
        h = x
        for layer in params[:-1]:
            h = jax.nn.relu(h @ layer["W"] + layer["b"])
            h = jax.lax.with_sharding_constraint(h, rows)
        h = jax.lax.with_sharding_constraint(h @ params[-1]["W"] + params[-1]["b"], rows)
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    value, gradients = jax.value_and_grad(mean_loss)(params)
    return value, jax.tree.map(lambda g: jax.lax.with_sharding_constraint(g, rows), gradients)


# The student thought that the compiler's sum over devices is a sum of means, and divided gradients by the number of devices.
def by_specs__wrong_divided_by_devices(params, x, y, *, mesh):
    rows = NamedSharding(mesh, P("fsdp"))

    def mean_loss(params):
        h = x
        for layer in params[:-1]:
            h = jax.nn.relu(h @ layer["W"] + layer["b"])
            h = jax.lax.with_sharding_constraint(h, rows)
        h = jax.lax.with_sharding_constraint(h @ params[-1]["W"] + params[-1]["b"], rows)
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    value, gradients = jax.value_and_grad(mean_loss)(params)
    gradients = jax.tree.map(lambda g: g / mesh.shape["fsdp"], gradients)
    layouts = [{"W": rows, "b": NamedSharding(mesh, P())} for _ in params]
    return value, jax.lax.with_sharding_constraint(gradients, layouts)


# The student did it as in part 4, with shard_map and an all_gather of his own, which is what the exercise does without.
def by_specs__wrong_with_shard_map(params, x, y, *, mesh):
    layouts = [{"W": P("fsdp"), "b": P()} for _ in params]

    def on_device(params, x, y):
        def mean_loss(params):
            whole = [{"W": jax.lax.all_gather(p["W"], "fsdp", tiled=True), "b": p["b"]} for p in params]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        return jax.value_and_grad(mean_loss)(params)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, P("fsdp"), P("fsdp")), out_specs=(P(), layouts))(
        params, x, y
    )


# ---------------------------------------------------------------- prefetch
def prefetch__right_by_number(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def whole(number):
            share = jax.lax.dynamic_index_in_dim(stack, number, keepdims=False)
            return jax.lax.all_gather(share, "fsdp", tiled=True)

        def turn(carry, number):
            h, ready = carry
            coming = whole(number)
            return (jnp.tanh(h @ ready), coming), None

        begin = jnp.tanh(x @ embed), whole(0)
        (h, last), _ = jax.lax.scan(turn, begin, jnp.arange(1, stack.shape[0]))
        return jnp.tanh(h @ last)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# The student rolled the stack so that all L turns are alike: the last one gathers layer 0 again, for nobody (L + 1 gathers).
def prefetch__wrong_rolled(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def gathered(share):
            return jax.lax.all_gather(share, "fsdp", tiled=True)

        def turn(carry, share):
            h, w = carry
            return (jnp.tanh(h @ w), gathered(share)), None

        begin = jnp.tanh(x @ embed), gathered(stack[0])
        (h, _), _ = jax.lax.scan(turn, begin, jnp.roll(stack, -1, axis=0))
        return h

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# The student multiplied by the layer that has just been gathered, not by the one carried: layer 0 is left out, the last one is used twice.
def prefetch__wrong_uses_the_new_one(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def gathered(share):
            return jax.lax.all_gather(share, "fsdp", tiled=True)

        def turn(carry, share):
            h, w = carry
            w = gathered(share)
            return (jnp.tanh(h @ w), w), None

        begin = jnp.tanh(x @ embed), gathered(stack[0])
        (h, w), _ = jax.lax.scan(turn, begin, stack[1:])
        return jnp.tanh(h @ w)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# The student thought that earliest is best, and gathered all of the stack at once, beside the product with the embedding.
def prefetch__wrong_all_at_once(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        layers = jax.lax.all_gather(stack, "fsdp", axis=1, tiled=True)
        h, _ = jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), jnp.tanh(x @ embed), layers)
        return h

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


# The student took the loop of L - 1 turns for all of the layers, and returned h with the last layer gathered and not used.
def prefetch__wrong_last_layer_forgotten(embed, stack, x, *, mesh):
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
