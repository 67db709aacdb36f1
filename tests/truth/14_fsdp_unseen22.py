"""Answers to lesson 14, twenty-second batch, written by a reader of the notebook only."""

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


# ----------------------------------------------------------------- fsdp_scan


def fsdp_scan__right_divided(stack, x, y, *, mesh):
    """(loss, gradient) of L tanh layers whose weights are in shares: one layer is whole at a time."""

    def on_device(stack, x, y):
        layer = jax.checkpoint(lambda h, share: jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)))

        def my_part(stack):
            h, _ = jax.lax.scan(lambda h, share: (layer(h, share), None), x, stack)
            return jnp.mean((h - y) ** 2) / mesh.shape["fsdp"]  # the parts of all devices add up to the mean

        part, gradient = jax.value_and_grad(my_part)(stack)
        return jax.lax.psum(part, "fsdp"), gradient

    cut = P(None, "fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, P("fsdp"), P("fsdp")), out_specs=(P(), cut))(stack, x, y)


# This student puts jax.checkpoint around the whole network, and thinks that nothing of it is then kept.
def fsdp_scan__wrong_around_all(stack, x, y, *, mesh):
    def on_device(stack, x, y):
        @jax.checkpoint
        def network(stack, x):
            def layer(h, share):
                w = jax.lax.all_gather(share, "fsdp", tiled=True)
                return jnp.tanh(h @ w), None

            return jax.lax.scan(layer, x, stack)[0]

        def value(stack):
            return jax.lax.pmean(jnp.mean((network(stack, x) - y) ** 2), "fsdp")

        return jax.value_and_grad(value)(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# This student checkpoints the computation of a layer, and hands it the whole weights, which are gathered outside of it (and so kept).
def fsdp_scan__wrong_gather_outside(stack, x, y, *, mesh):
    def on_device(stack, x, y):
        @jax.checkpoint
        def layer(h, w):
            return jnp.tanh(h @ w)

        def turn(h, share):
            w = jax.lax.all_gather(share, "fsdp", axis=0, tiled=True)
            return layer(h, w), None

        def total(stack):
            h, _ = jax.lax.scan(turn, x, stack)
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(total)(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# This student averages the loss only where it is returned, and thinks that the reduce_scatter gives the mean's gradient.
def fsdp_scan__wrong_local_loss(stack, x, y, *, mesh):
    def on_device(stack, x, y):
        @jax.checkpoint
        def layer(h, share):
            return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

        def local(stack):
            h, _ = jax.lax.scan(layer, x, stack)
            return jnp.mean((h - y) ** 2)

        value, gradient = jax.value_and_grad(local)(stack)
        return jax.lax.pmean(value, "fsdp"), gradient

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# This student averages the loss before differentiating, and divides the gradient by the devices once more, since a reduce_scatter is a sum.
def fsdp_scan__wrong_divided_twice(stack, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(stack, x, y):
        @jax.checkpoint
        def layer(h, share):
            return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

        def mean_loss(stack):
            h, _ = jax.lax.scan(layer, x, stack)
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        value, gradient = jax.value_and_grad(mean_loss)(stack)
        return value, gradient / n

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# ----------------------------------------------------------------- fsdp_step


def fsdp_step__right_one_sum(params, moments, x, y, *, limit, mesh):
    """One step of clipped Adam, all state in shares: (loss, params, moments)."""
    n = mesh.shape["fsdp"]
    layers = [{"W": P("fsdp"), "b": P()} for _ in params]
    state = {"mean": layers, "square": layers}

    def on_device(params, moments, x, y):
        def whole_batch(own):
            whole = [layer | {"W": jax.lax.all_gather(layer["W"], "fsdp", tiled=True)} for layer in own]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        value, gradients = jax.value_and_grad(whole_batch)(params)
        # every device has all of the biases: each adds an n-th of their squares
        squares = sum(jnp.sum(g["W"] ** 2) + jnp.sum(g["b"] ** 2) / n for g in gradients)
        norm = jnp.sqrt(jax.lax.psum(squares, "fsdp"))
        gradients = jax.tree.map(lambda g: g * jnp.minimum(1, limit / norm), gradients)
        return value, *adam(params, moments, gradients)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layers, state, P("fsdp"), P("fsdp")), out_specs=(P(), layers, state)
    )(params, moments, x, y)


# This student adds the squares of all leaves over the devices, those of the whole biases too, which are then counted n times.
def fsdp_step__wrong_copies_counted(params, moments, x, y, *, limit, mesh):
    layers = [{"W": P("fsdp"), "b": P()} for _ in params]
    state = {"mean": layers, "square": layers}

    def on_device(params, moments, x, y):
        def mean_loss(params):
            whole = [{"W": jax.lax.all_gather(p["W"], "fsdp", tiled=True), "b": p["b"]} for p in params]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        value, gradients = jax.value_and_grad(mean_loss)(params)
        norm = jnp.sqrt(jax.lax.psum(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradients)), "fsdp"))
        gradients = jax.tree.map(lambda g: g * jnp.minimum(1, limit / norm), gradients)
        params, moments = adam(params, moments, gradients)
        return value, params, moments

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layers, state, P("fsdp"), P("fsdp")), out_specs=(P(), layers, state)
    )(params, moments, x, y)


# This student knows that only the W's squares differ between devices, but averages them in place of adding them.
def fsdp_step__wrong_mean_of_squares(params, moments, x, y, *, limit, mesh):
    layers = [{"W": P("fsdp"), "b": P()} for _ in params]
    state = {"mean": layers, "square": layers}

    def on_device(params, moments, x, y):
        def mean_loss(params):
            whole = [{"W": jax.lax.all_gather(p["W"], "fsdp", axis=0, tiled=True), "b": p["b"]} for p in params]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        value, gradients = jax.value_and_grad(mean_loss)(params)
        of_w = sum(jnp.sum(g["W"] ** 2) for g in gradients)
        of_b = sum(jnp.sum(g["b"] ** 2) for g in gradients)
        norm = jnp.sqrt(jax.lax.pmean(of_w, "fsdp") + of_b)
        scale = jnp.minimum(1.0, limit / norm)
        params, moments = adam(params, moments, jax.tree.map(lambda g: scale * g, gradients))
        return value, params, moments

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layers, state, P("fsdp"), P("fsdp")), out_specs=(P(), layers, state)
    )(params, moments, x, y)


# This student clips each leaf by its own norm, and not all of them by the norm of the whole gradient.
def fsdp_step__wrong_leaf_by_leaf(params, moments, x, y, *, limit, mesh):
    layers = [{"W": P("fsdp"), "b": P()} for _ in params]
    state = {"mean": layers, "square": layers}

    def on_device(params, moments, x, y):
        def mean_loss(params):
            whole = [{"W": jax.lax.all_gather(p["W"], "fsdp", tiled=True), "b": p["b"]} for p in params]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        value, gradients = jax.value_and_grad(mean_loss)(params)
        clipped = []
        for g in gradients:
            norm_w = jnp.sqrt(jax.lax.psum(jnp.sum(g["W"] ** 2), "fsdp"))
            norm_b = jnp.sqrt(jnp.sum(g["b"] ** 2))
            clipped.append({"W": g["W"] * jnp.minimum(1, limit / norm_w), "b": g["b"] * jnp.minimum(1, limit / norm_b)})
        params, moments = adam(params, moments, clipped)
        return value, params, moments

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layers, state, P("fsdp"), P("fsdp")), out_specs=(P(), layers, state)
    )(params, moments, x, y)


# This student averages the loss only for the report, so all gradients are n times too large (which clipping hides, where it clips).
def fsdp_step__wrong_sum_of_means(params, moments, x, y, *, limit, mesh):
    layers = [{"W": P("fsdp"), "b": P()} for _ in params]
    state = {"mean": layers, "square": layers}

    def on_device(params, moments, x, y):
        def own_loss(params):
            whole = [{"W": jax.lax.all_gather(p["W"], "fsdp", tiled=True), "b": p["b"]} for p in params]
            return loss(whole, x, y)

        value, gradients = jax.value_and_grad(own_loss)(params)
        of_w = jax.lax.psum(sum(jnp.sum(g["W"] ** 2) for g in gradients), "fsdp")
        of_b = sum(jnp.sum(g["b"] ** 2) for g in gradients)
        norm = jnp.sqrt(of_w + of_b)
        gradients = jax.tree.map(lambda g: g * jnp.minimum(1, limit / norm), gradients)
        params, moments = adam(params, moments, gradients)
        return jax.lax.pmean(value, "fsdp"), params, moments

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layers, state, P("fsdp"), P("fsdp")), out_specs=(P(), layers, state)
    )(params, moments, x, y)


# ------------------------------------------------------------------ by_specs


def by_specs__right_whole_weights(params, x, y, *, mesh):
    """(loss, gradients) for weights in shares; the compiler writes the collectives."""

    def lay(tree, spec):
        return jax.lax.with_sharding_constraint(tree, NamedSharding(mesh, spec))

    def used(params):
        h = x
        for k, layer in enumerate(params):
            h = h @ lay(layer["W"], P()) + layer["b"]
            if k < len(params) - 1:
                h = jax.nn.relu(h)
            h = lay(h, P("fsdp"))
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    value, gradients = jax.value_and_grad(used)(params)
    return lay(value, P()), [{"W": lay(g["W"], P("fsdp")), "b": lay(g["b"], P())} for g in gradients]


# This student thinks that it is enough to say how what comes in and what goes out is laid out; between the layers it follows.
def by_specs__wrong_ends_only(params, x, y, *, mesh):
    cut, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())
    x, y = jax.lax.with_sharding_constraint((x, y), cut)
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    gradients = jax.lax.with_sharding_constraint(gradients, [{"W": cut, "b": whole} for _ in params])
    return jax.lax.with_sharding_constraint(value, whole), gradients


# This student thinks that h is cut as the weights are and lays its features over fsdp, as tensor parallelism does.
def by_specs__wrong_features(params, x, y, *, mesh):
    def mean_loss(params):
        *hidden, last = params
        h = x
        for layer in hidden:
            h = jax.nn.relu(h @ layer["W"] + layer["b"])
            h = jax.lax.with_sharding_constraint(h, NamedSharding(mesh, P(None, "fsdp")))
        h = h @ last["W"] + last["b"]
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    value, gradients = jax.value_and_grad(mean_loss)(params)
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    return (
        jax.lax.with_sharding_constraint(value, NamedSharding(mesh, P())),
        jax.lax.with_sharding_constraint(gradients, layouts),
    )


# This student thinks that a gradient which is summed over all examples is whole on every device at the end, as in data parallelism.
def by_specs__wrong_whole_gradients(params, x, y, *, mesh):
    rows, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())

    def mean_loss(params):
        *hidden, last = params
        h = x
        for layer in hidden:
            h = jax.lax.with_sharding_constraint(jax.nn.relu(h @ layer["W"] + layer["b"]), rows)
        h = jax.lax.with_sharding_constraint(h @ last["W"] + last["b"], rows)
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    return jax.lax.with_sharding_constraint(jax.value_and_grad(mean_loss)(params), whole)


# This student writes the loss anew, as a mean over everything, and so divides by the number of outputs as well.
def by_specs__wrong_mean_of_all(params, x, y, *, mesh):
    rows, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())

    def mean_loss(params):
        h = x
        for layer in params[:-1]:
            h = jax.lax.with_sharding_constraint(jax.nn.relu(h @ layer["W"] + layer["b"]), rows)
        h = jax.lax.with_sharding_constraint(h @ params[-1]["W"] + params[-1]["b"], rows)
        return jnp.mean((h - y) ** 2)

    value, gradients = jax.value_and_grad(mean_loss)(params)
    gradients = jax.lax.with_sharding_constraint(gradients, [{"W": rows, "b": whole} for _ in params])
    return jax.lax.with_sharding_constraint(value, whole), gradients
