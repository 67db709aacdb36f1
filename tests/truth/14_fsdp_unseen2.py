"""Answers to lesson 14, second batch, written by a reader of the notebook only."""

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


def fsdp_scan__right_wrapped(stack, x, y, *, mesh):
    """jax.checkpoint called on a lambda of one layer."""

    def on_device(stack, x, y):
        one_layer = jax.checkpoint(lambda h, rows: jnp.tanh(h @ jax.lax.all_gather(rows, "fsdp", axis=0, tiled=True)))

        def value(stack):
            h = jax.lax.scan(lambda h, rows: (one_layer(h, rows), None), x, stack)[0]
            return jax.lax.pmean(((h - y) ** 2).mean(), "fsdp")

        return jax.value_and_grad(value)(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


def fsdp_scan__wrong_kept(stack, x, y, *, mesh):
    """No checkpoint: all gathered layers are kept for the way back."""

    def on_device(stack, x, y):
        def layer(h, share):
            return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

        def value(stack):
            h, _ = jax.lax.scan(layer, x, stack)
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(value)(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


def fsdp_scan__wrong_gather_outside(stack, x, y, *, mesh):
    """The checkpoint is around the product alone: the whole layer is its argument, and is kept."""

    def on_device(stack, x, y):
        product = jax.checkpoint(lambda h, w: jnp.tanh(h @ w))

        def layer(h, share):
            return product(h, jax.lax.all_gather(share, "fsdp", tiled=True)), None

        def value(stack):
            h, _ = jax.lax.scan(layer, x, stack)
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(value)(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


def fsdp_scan__wrong_sum_of_means(stack, x, y, *, mesh):
    """Differentiates the own mean, and averages only the loss: gradients eight times too large."""

    def on_device(stack, x, y):
        @jax.checkpoint
        def layer(h, share):
            return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

        def value(stack):
            h, _ = jax.lax.scan(layer, x, stack)
            return jnp.mean((h - y) ** 2)

        found, gradient = jax.value_and_grad(value)(stack)
        return jax.lax.pmean(found, "fsdp"), gradient

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


def fsdp_scan__wrong_all_at_once(stack, x, y, *, mesh):
    """One gather of the whole stack before the loop."""

    def on_device(stack, x, y):
        def value(stack):
            whole = jax.lax.all_gather(stack, "fsdp", axis=1, tiled=True)
            h, _ = jax.lax.scan(jax.checkpoint(lambda h, w: (jnp.tanh(h @ w), None)), x, whole)
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(value)(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


def hybrid__right_two_means(params, x, y, *, mesh):
    """Cast first, the mean over fsdp inside, that over slice at the end, for each by itself."""

    def on_device(params, x, y):
        def value(shares):
            leaves, tree = jax.tree.flatten(shares)
            whole = tree.unflatten([jax.lax.all_gather(leaf, "fsdp", tiled=True) for leaf in leaves])
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        found, gradients = jax.value_and_grad(value)(varying(params, "slice"))
        return jax.lax.pmean(found, "slice"), jax.tree.map(lambda g: jax.lax.pmean(g, "slice"), gradients)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


def hybrid__wrong_natural(params, x, y, *, mesh):
    """The natural program: right values, and whole gradients go over slice."""

    def on_device(params, x, y):
        def value(shares):
            whole = jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(whole, x, y), ("slice", "fsdp"))

        return jax.value_and_grad(value)(params)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


def hybrid__wrong_slices_added(params, x, y, *, mesh):
    """psum over the slices where the mean is wanted."""

    def on_device(params, x, y):
        def value(shares):
            whole = jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        return jax.lax.psum(jax.value_and_grad(value)(varying(params, "slice")), "slice")

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


def hybrid__wrong_never_between_slices(params, x, y, *, mesh):
    """Nothing over slice, and the check off: each slice has a gradient of its own."""

    def on_device(params, x, y):
        def value(shares):
            whole = jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, "fsdp", tiled=True), shares)
            return loss(whole, x, y)

        found, gradients = jax.value_and_grad(value)(params)
        n = mesh.shape["fsdp"]
        return jax.lax.pmean(found, ("slice", "fsdp")), jax.tree.map(lambda g: g / n, gradients)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")), check_vma=False
    )(params, x, y)


def hybrid__wrong_shares_averaged(params, x, y, *, mesh):
    """The gradients are averaged over fsdp as well: means of different rows."""

    def on_device(params, x, y):
        def value(shares):
            whole = jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, "fsdp", tiled=True), shares)
            return loss(whole, x, y)

        return jax.lax.pmean(jax.value_and_grad(value)(varying(params, "slice")), ("slice", "fsdp"))

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


def zero1_step__right_reshaped(params, moments, x, y, *, mesh):
    """Own rows by a reshape and an index."""
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        gradients = jax.grad(loss)(params, x, y)
        shares = jax.tree.map(lambda g: jax.lax.psum_scatter(g / n, "fsdp", tiled=True), gradients)
        mine = jax.tree.map(lambda p: p.reshape(n, -1, *p.shape[1:])[me], params)
        mine, moments = adam(mine, moments, shares)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), mine), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


def zero1_step__wrong_sum(params, moments, x, y, *, mesh):
    """The scattered sum is not divided by the devices; Adam hides most of it, the moments do not."""

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        gradients = jax.grad(loss)(params, x, y)
        shares = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True), gradients)

        def own(p):
            rows = len(p) // mesh.shape["fsdp"]
            return jax.lax.dynamic_slice_in_dim(p, me * rows, rows)

        mine, moments = adam(jax.tree.map(own, params), moments, shares)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), mine), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


def zero1_step__wrong_all_reduce(params, moments, x, y, *, mesh):
    """An all_reduce of the gradients, of which each takes its rows: right values, more bytes."""

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        gradients = jax.lax.pmean(jax.grad(loss)(params, x, y), "fsdp")

        def own(p):
            rows = len(p) // mesh.shape["fsdp"]
            return jax.lax.dynamic_slice_in_dim(p, me * rows, rows)

        mine, moments = adam(jax.tree.map(own, params), moments, jax.tree.map(own, gradients))
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), mine), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


def zero1_step__wrong_own_examples(params, moments, x, y, *, mesh):
    """Takes its rows of its own gradient: nothing is added up over the devices."""

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")

        def own(p):
            rows = len(p) // mesh.shape["fsdp"]
            return jax.lax.dynamic_slice_in_dim(p, me * rows, rows)

        gradients = jax.tree.map(own, jax.grad(loss)(params, x, y))
        mine, moments = adam(jax.tree.map(own, params), moments, gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), mine), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


def zero1_step__wrong_first_rows(params, moments, x, y, *, mesh):
    """Every device updates the first rows of the weights."""

    def on_device(params, moments, x, y):
        n = mesh.shape["fsdp"]
        gradients = jax.tree.map(
            lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True) / n, jax.grad(loss)(params, x, y)
        )
        mine = jax.tree.map(lambda p: p[: len(p) // n], params)
        mine, moments = adam(mine, moments, gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), mine), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


def prefetch__right_named(embed, stack, x, *, mesh):
    """The loop carries h and the layer that is whole."""

    def whole(rows):
        return jax.lax.all_gather(rows, "fsdp", axis=0, tiled=True)

    def on_device(embed, stack, x):
        def turn(carry, next_rows):
            h, ready = carry
            following = whole(next_rows)
            h = jnp.tanh(h @ ready)
            return (h, following), None

        (h, last), _ = jax.lax.scan(turn, (jnp.tanh(x @ embed), whole(stack[0])), stack[1:])
        return jnp.tanh(h @ last)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


def prefetch__wrong_waits(embed, stack, x, *, mesh):
    """The loop of part 5: each layer is gathered in the turn that multiplies by it."""

    def on_device(embed, stack, x):
        def turn(h, share):
            return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

        return jax.lax.scan(turn, jnp.tanh(x @ embed), stack)[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


def prefetch__wrong_new_one_used(embed, stack, x, *, mesh):
    """Multiplies by the layer that it has just gathered: layer 0 is left out, the last one comes twice."""

    def on_device(embed, stack, x):
        def gathered(share):
            return jax.lax.all_gather(share, "fsdp", tiled=True)

        def turn(carry, share):
            h, w = carry
            w = gathered(share)
            return (jnp.tanh(h @ w), w), None

        (h, w), _ = jax.lax.scan(turn, (jnp.tanh(x @ embed), gathered(stack[0])), stack[1:])
        return jnp.tanh(h @ w)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


def prefetch__wrong_last_layer_missing(embed, stack, x, *, mesh):
    """Returns h as it comes out of the loop: the last layer is never multiplied."""

    def on_device(embed, stack, x):
        def gathered(share):
            return jax.lax.all_gather(share, "fsdp", tiled=True)

        def turn(carry, share):
            h, w = carry
            coming = gathered(share)
            return (jnp.tanh(h @ w), coming), None

        return jax.lax.scan(turn, (jnp.tanh(x @ embed), gathered(stack[0])), stack[1:])[0][0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )


def prefetch__wrong_one_gather_too_many(embed, stack, x, *, mesh):
    """L turns over the stack rolled by one: the last turn gathers layer 0 once more."""

    def on_device(embed, stack, x):
        def gathered(share):
            return jax.lax.all_gather(share, "fsdp", tiled=True)

        def turn(carry, share):
            h, w = carry
            coming = gathered(share)
            return (jnp.tanh(h @ w), coming), None

        (h, _), _ = jax.lax.scan(turn, (jnp.tanh(x @ embed), gathered(stack[0])), jnp.roll(stack, -1, axis=0))
        return h

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))(
        embed, stack, x
    )
