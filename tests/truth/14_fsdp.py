"""Answers to lesson 14, as students give them: written from the student's notebook alone."""

import math

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("fsdp",), axis_types=(AxisType.Auto,))


def predict(params, x):
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


def adam(params, moments, gradients):
    mean = jax.tree.map(lambda m, g: m + 0.1 * (g - m), moments["mean"], gradients)
    square = jax.tree.map(lambda s, g: s + 0.01 * (g**2 - s), moments["square"], gradients)
    params = jax.tree.map(lambda p, m, s: p - m / (64 * (jnp.sqrt(s) + 1e-8)), params, mean, square)
    return params, {"mean": mean, "square": square}


def varying(tree, axes):
    return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)


def gathered(tree, axis="fsdp"):
    return jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, axis, tiled=True), tree)


zero_table__right_plain = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 5.5,
    "bytes of a parameter, stage 2": 3.75,
    "bytes of a parameter, stage 3": 2,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 1.5,
}
"""As it is."""

zero_table__wrong_stage_1 = zero_table__right_plain | {"bytes of a parameter, stage 1": 14.25}
"""Divides the gradients in stage 1, and not the optimizer."""

zero_table__wrong_twice = zero_table__right_plain | {"bytes sent, stage 3 ÷ stage 0": 2}
"""Thinks that stage 3 sends twice as much."""

zero_table__wrong_forwards = zero_table__right_plain | {"bytes sent, stage 3 ÷ stage 0": 1}
"""Forgets that the weights are gathered again on the way back."""


def shard_axis__right_loop(shape, n, smallest):
    """Looks through all dimensions."""
    if math.prod(shape) < smallest:
        return "whole"
    best = "whole"
    for k, length in enumerate(shape):
        if length % n == 0 and (best == "whole" or length > shape[best]):
            best = k
    return best


def shard_axis__wrong_first(shape, n, smallest):
    """The first that n divides, not the longest."""
    if math.prod(shape) < smallest:
        return "whole"
    return next((k for k, length in enumerate(shape) if length % n == 0), "whole")


def shard_axis__wrong_last(shape, n, smallest):
    """Of several of the same length the last."""
    fits = [k for k, length in enumerate(shape) if length % n == 0]
    if math.prod(shape) < smallest or not fits:
        return "whole"
    return max(reversed(fits), key=lambda k: shape[k])


def shard_axis__wrong_at_most(shape, n, smallest):
    """An array of exactly the smallest size stays whole."""
    fits = [k for k, length in enumerate(shape) if length % n == 0]
    if math.prod(shape) <= smallest or not fits:
        return "whole"
    return max(fits, key=lambda k: shape[k])


def fsdp_layer__right_plain(w, b, x, *, mesh):
    """Gathers W and b."""

    def body(w, b, x):
        w, b = gathered((w, b))
        return jax.nn.relu(x @ w + b)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"))(w, b, x)


def fsdp_layer__wrong_activations(w, b, x, *, mesh):
    """Gathers the examples too."""

    def body(w, b, x):
        w, b, x = gathered((w, b, x))
        rows = x.shape[0] // jax.lax.axis_size("fsdp")
        all_of_it = jax.nn.relu(x @ w + b)
        return jax.lax.dynamic_slice_in_dim(all_of_it, jax.lax.axis_index("fsdp") * rows, rows)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"))(w, b, x)


def fsdp_layer__wrong_no_relu(w, b, x, *, mesh):
    """Leaves out the relu."""

    def body(w, b, x):
        w, b = gathered((w, b))
        return x @ w + b

    return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"))(w, b, x)


def fsdp_layer__wrong_bias_outside(w, b, x, *, mesh):
    """The bias comes after the relu."""

    def body(w, b, x):
        w, b = gathered((w, b))
        return jax.nn.relu(x @ w) + b

    return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"))(w, b, x)


def fsdp_layer__wrong_untiled(w, b, x, *, mesh):
    """Gathers W without `tiled`, and sums over the new dimension."""

    def body(w, b, x):
        w = jax.lax.all_gather(w, "fsdp").sum(0)
        return jax.nn.relu(x[:, : w.shape[0]] @ w + gathered(b))

    return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"))(w, b, x)


def fsdp_layer__wrong_in_specs(w, b, x, *, mesh):
    """Says P() of W and b, so that they come whole."""
    body = lambda w, b, x: jax.nn.relu(x @ w + b)  # noqa: E731
    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P(), P("fsdp")), out_specs=P("fsdp"))(w, b, x)


def _value_and_grad(of, mesh, params, x, y):
    body = lambda p, x, y: jax.value_and_grad(lambda p: of(p, x, y))(p)  # noqa: E731
    return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=(P(), P("fsdp")))(params, x, y)


def fsdp_gradient__right_plain(params, x, y, *, mesh):
    """The mean of the losses, inside."""
    return _value_and_grad(lambda p, x, y: jax.lax.pmean(loss(gathered(p), x, y), "fsdp"), mesh, params, x, y)


def fsdp_gradient__right_divided(params, x, y, *, mesh):
    """Gradients of the own loss, divided by the number of devices."""

    def body(p, x, y):
        value, g = jax.value_and_grad(lambda p: loss(gathered(p), x, y))(p)
        return jax.lax.pmean(value, "fsdp"), jax.tree.map(lambda g: g / jax.lax.axis_size("fsdp"), g)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=(P(), P("fsdp")))(params, x, y)


def fsdp_gradient__wrong_sum(params, x, y, *, mesh):
    """Own losses: the gradients are the sum of n means."""

    def body(p, x, y):
        value, g = jax.value_and_grad(lambda p: loss(gathered(p), x, y))(p)
        return jax.lax.pmean(value, "fsdp"), g

    return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=(P(), P("fsdp")))(params, x, y)


def fsdp_gradient__wrong_pmean(params, x, y, *, mesh):
    """Averages the shares."""

    def body(p, x, y):
        value, g = jax.value_and_grad(lambda p: loss(gathered(p), x, y))(p)
        g = jax.lax.pmean(g, "fsdp")
        return jax.lax.pmean(value, "fsdp"), varying(g, "fsdp")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=(P(), P("fsdp")))(params, x, y)


def fsdp_gradient__wrong_psum_loss(params, x, y, *, mesh):
    """A sum of the losses in place of their mean."""
    return _value_and_grad(lambda p, x, y: jax.lax.psum(loss(gathered(p), x, y), "fsdp"), mesh, params, x, y)


def fsdp_gradient__wrong_gather_first(params, x, y, *, mesh):
    """Gathers before it differentiates, and cuts its own rows out of the gradient."""

    def body(p, x, y):
        value, g = jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), "fsdp"))(gathered(p))
        me = jax.lax.axis_index("fsdp")
        own = jax.tree.map(lambda g, p: jax.lax.dynamic_slice_in_dim(g, me * len(p), len(p)), g, p)
        return value, own

    return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=(P(), P("fsdp")))(params, x, y)


def fsdp_gradient__wrong_own_loss(params, x, y, *, mesh):
    """Returns one device's loss, with the check off."""

    def body(p, x, y):
        value, g = jax.value_and_grad(lambda p: loss(gathered(p), x, y))(p)
        return value, jax.tree.map(lambda g: g / jax.lax.axis_size("fsdp"), g)

    mapped = jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=(P(), P("fsdp")), check_vma=False)
    return mapped(params, x, y)


def fsdp_gradient__wrong_eight(params, x, y, *, mesh):
    """Divides by eight, whatever the mesh."""

    def body(p, x, y):
        value, g = jax.value_and_grad(lambda p: loss(gathered(p), x, y))(p)
        return jax.lax.pmean(value, "fsdp"), jax.tree.map(lambda g: g / 8, g)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=(P(), P("fsdp")))(params, x, y)


def _scanned(layer, stack, x, y, mesh):
    def value(stack, x, y):
        h, _ = jax.lax.scan(layer, x, stack)
        return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

    specs = (P(None, "fsdp"), P("fsdp"), P("fsdp"))
    body = lambda s, x, y: jax.value_and_grad(lambda s: value(s, x, y))(s)  # noqa: E731
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P(), P(None, "fsdp")))(stack, x, y)


def fsdp_scan__right_remat(stack, x, y, *, mesh):
    """The checkpoint around the layer that gathers."""
    layer = jax.checkpoint(lambda h, share: (jnp.tanh(h @ gathered(share)), None))
    return _scanned(layer, stack, x, y, mesh)


def fsdp_scan__wrong_kept(stack, x, y, *, mesh):
    """No checkpoint: the gathered weights are kept."""
    return _scanned(lambda h, share: (jnp.tanh(h @ gathered(share)), None), stack, x, y, mesh)


def fsdp_scan__wrong_outside(stack, x, y, *, mesh):
    """The gather stands outside of the checkpoint."""
    use = jax.checkpoint(lambda h, w: jnp.tanh(h @ w))
    return _scanned(lambda h, share: (use(h, gathered(share)), None), stack, x, y, mesh)


def fsdp_scan__wrong_no_tanh(stack, x, y, *, mesh):
    """Layers without tanh."""
    return _scanned(jax.checkpoint(lambda h, share: (h @ gathered(share), None)), stack, x, y, mesh)


def fsdp_scan__wrong_before(stack, x, y, *, mesh):
    """Gathers all layers before the loop."""

    def value(stack, x, y):
        whole = jax.lax.all_gather(stack, "fsdp", axis=1, tiled=True)
        h, _ = jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, whole)
        return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

    specs = (P(None, "fsdp"), P("fsdp"), P("fsdp"))
    body = lambda s, x, y: jax.value_and_grad(lambda s: value(s, x, y))(s)  # noqa: E731
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P(), P(None, "fsdp")))(stack, x, y)


def _hybrid(body, params, x, y, mesh, **options):
    specs = (P("fsdp"), P(("slice", "fsdp")), P(("slice", "fsdp")))
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P(), P("fsdp")), **options)(params, x, y)


def hybrid__right_cast(params, x, y, *, mesh):
    """Casts first, and averages the shares over the slices."""

    def body(p, x, y):
        value = lambda p: jax.lax.pmean(loss(gathered(p), x, y), "fsdp")  # noqa: E731
        return jax.lax.pmean(jax.value_and_grad(value)(varying(p, "slice")), "slice")

    return _hybrid(body, params, x, y, mesh)


def hybrid__wrong_natural(params, x, y, *, mesh):
    """The mean over both axes: whole gradients cross."""
    value = lambda p, x, y: jax.lax.pmean(loss(gathered(p), x, y), ("slice", "fsdp"))  # noqa: E731
    return _hybrid(lambda p, x, y: jax.value_and_grad(lambda p: value(p, x, y))(p), params, x, y, mesh)


def hybrid__wrong_sum(params, x, y, *, mesh):
    """Adds the gradients over the slices."""

    def body(p, x, y):
        value = lambda p: jax.lax.pmean(loss(gathered(p), x, y), "fsdp")  # noqa: E731
        value, g = jax.value_and_grad(value)(varying(p, "slice"))
        return jax.lax.pmean(value, "slice"), jax.lax.psum(g, "slice")

    return _hybrid(body, params, x, y, mesh)


def hybrid__wrong_inside(params, x, y, *, mesh):
    """Forgets the sum between the slices, with the check off."""

    def body(p, x, y):
        value = lambda p: jax.lax.pmean(loss(gathered(p), x, y), "fsdp")  # noqa: E731
        value, g = jax.value_and_grad(value)(p)
        return jax.lax.pmean(value, "slice"), g

    return _hybrid(body, params, x, y, mesh, check_vma=False)


def hybrid__wrong_fsdp_too(params, x, y, *, mesh):
    """Averages the shares over both axes."""

    def body(p, x, y):
        value = lambda p: jax.lax.pmean(loss(gathered(p), x, y), "fsdp")  # noqa: E731
        value, g = jax.value_and_grad(value)(varying(p, "slice"))
        return jax.lax.pmean(value, "slice"), varying(jax.lax.pmean(g, ("slice", "fsdp")), "fsdp")

    return _hybrid(body, params, x, y, mesh)


def prefetch__right_carry(embed, stack, x, *, mesh):
    """The loop carries the whole layer."""

    def body(embed, stack, x):
        def turn(carry, share):
            h, w = carry
            return (jnp.tanh(h @ w), gathered(share)), None

        (h, w), _ = jax.lax.scan(turn, (jnp.tanh(x @ embed), gathered(stack[0])), stack[1:])
        return jnp.tanh(h @ w)

    specs = (P(), P(None, "fsdp"), P("fsdp"))
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("fsdp"))(embed, stack, x)


def prefetch__wrong_plain(embed, stack, x, *, mesh):
    """Gathers the layer that it multiplies by."""

    def body(embed, stack, x):
        h, _ = jax.lax.scan(lambda h, share: (jnp.tanh(h @ gathered(share)), None), jnp.tanh(x @ embed), stack)
        return h

    specs = (P(), P(None, "fsdp"), P("fsdp"))
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("fsdp"))(embed, stack, x)


def prefetch__wrong_all_layers(embed, stack, x, *, mesh):
    """Goes over the whole stack, and gathers layer 0 twice."""

    def body(embed, stack, x):
        def turn(carry, share):
            h, w = carry
            return (jnp.tanh(h @ w), gathered(share)), None

        (h, w), _ = jax.lax.scan(turn, (jnp.tanh(x @ embed), gathered(stack[0])), stack)
        return jnp.tanh(h @ w)

    specs = (P(), P(None, "fsdp"), P("fsdp"))
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("fsdp"))(embed, stack, x)


def prefetch__wrong_last(embed, stack, x, *, mesh):
    """Forgets the layer behind the loop."""

    def body(embed, stack, x):
        def turn(carry, share):
            h, w = carry
            return (jnp.tanh(h @ w), gathered(share)), None

        (h, _), _ = jax.lax.scan(turn, (jnp.tanh(x @ embed), gathered(stack[0])), stack[1:])
        return h

    specs = (P(), P(None, "fsdp"), P("fsdp"))
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("fsdp"))(embed, stack, x)


def by_specs__right_constrained(params, x, y, *, mesh):
    """Whole weights where they are used, and the gradients as the parameters."""
    lies = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]

    def value(params):
        whole = jax.lax.with_sharding_constraint(params, NamedSharding(mesh, P()))
        h = x
        for layer in whole[:-1]:
            h = jax.nn.relu(h @ layer["W"] + layer["b"])
            h = jax.lax.with_sharding_constraint(h, NamedSharding(mesh, P("fsdp")))
        return jnp.mean(jnp.sum((h @ whole[-1]["W"] + whole[-1]["b"] - y) ** 2, axis=-1))

    value, g = jax.value_and_grad(value)(params)
    return value, jax.lax.with_sharding_constraint(g, lies)


def by_specs__wrong_open(params, x, y, *, mesh):
    """Leaves everything between to the compiler."""
    lies = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    value, g = jax.value_and_grad(loss)(params, x, y)
    return value, jax.lax.with_sharding_constraint(g, lies)


def by_specs__wrong_no_layout(params, x, y, *, mesh):
    """Says nothing of the gradients."""

    def value(params):
        whole = jax.lax.with_sharding_constraint(params, NamedSharding(mesh, P()))
        return loss(whole, x, y)

    value, g = jax.value_and_grad(value)(params)
    return value, jax.lax.with_sharding_constraint(g, NamedSharding(mesh, P()))


def shard_axis__wrong_either_divides(shape, n, smallest):
    """A dimension that divides n counts as well."""
    fits = [k for k, length in enumerate(shape) if n % length == 0 or length % n == 0]
    if math.prod(shape) < smallest or not fits:
        return "whole"
    return max(fits, key=lambda k: shape[k])


def fsdp_layer__wrong_in_bfloat16(w, b, x, *, mesh):
    """Sends half of the bytes, and half of the digits."""

    def on_device(w, b, x):
        whole = jax.lax.all_gather(w.astype(jnp.bfloat16), "fsdp", tiled=True).astype(jnp.float32)
        return jax.nn.relu(x @ whole + jax.lax.all_gather(b, "fsdp", tiled=True))

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=P("fsdp"))(w, b, x)


def begin_fsdp__wrong_all_axes(params, mesh):
    """Rows over all that the mesh has."""
    layouts = {"W": NamedSharding(mesh, P(mesh.axis_names)), "b": NamedSharding(mesh, P())}
    params = jax.device_put(params, [layouts for _ in params])
    return params, {name: jax.tree.map(jnp.zeros_like, params) for name in ("mean", "square")}


def shard_axis__wrong_number_of_all_devices(shape, n, smallest):
    """Divides by the devices that there are here, whatever n is."""
    fits = [k for k, length in enumerate(shape) if length % len(jax.devices()) == 0]
    if math.prod(shape) < smallest or not fits:
        return "whole"
    return max(fits, key=lambda k: shape[k])


def begin_fsdp__wrong_last_axis(params, mesh):
    """Cuts over the last axis of the mesh, which was fsdp."""
    layouts = {"W": NamedSharding(mesh, P(mesh.axis_names[-1])), "b": NamedSharding(mesh, P())}
    params = jax.device_put(params, [layouts for _ in params])
    return params, {name: jax.tree.map(jnp.zeros_like, params) for name in ("mean", "square")}


def fsdp_gradient__wrong_weights_sent_in_bfloat16(params, x, y, *, mesh):
    """Sends the matrices in half the bytes, and adds the gradients up in float32."""

    def whole(share):
        sent = share.astype(jnp.bfloat16) if share.ndim == 2 else share
        return jax.lax.all_gather(sent, "fsdp", tiled=True).astype(jnp.float32)

    def on_device(params, x, y):
        value, gradients = jax.value_and_grad(loss)(jax.tree.map(whole, params), x, y)
        n = jax.lax.axis_size("fsdp")
        own = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True) / n, gradients)
        return jax.lax.pmean(value, "fsdp"), own

    cut = P("fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=cut, out_specs=(P(), cut), check_vma=False)(params, x, y)


def prefetch__wrong_in_bfloat16(embed, stack, x, *, mesh):
    """Gathers in half the bytes."""

    def whole(share):
        return jax.lax.all_gather(share.astype(jnp.bfloat16), "fsdp", tiled=True).astype(jnp.float32)

    def on_device(embed, stack, x):
        def turn(carry, following):
            h, w = carry
            return (jnp.tanh(h @ w), whole(following)), None

        (h, w), _ = jax.lax.scan(turn, (jnp.tanh(x @ embed), whole(stack[0])), stack[1:])
        return jnp.tanh(h @ w)

    specs = (P(), P(None, "fsdp"), P("fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("fsdp"))(embed, stack, x)


def _zero1_added(own_sum, params, moments, x, y, mesh):
    def on_device(params, moments, x, y):
        n, me = jax.lax.axis_size("fsdp"), jax.lax.axis_index("fsdp")

        def blocks(leaf):
            return leaf.reshape(n, -1, *leaf.shape[1:])

        mine = jax.tree.map(lambda g: own_sum(blocks(g), n, me) / n, jax.grad(loss)(params, x, y))
        new, moments = adam(jax.tree.map(lambda leaf: blocks(leaf)[me], params), moments, mine)
        return gathered(new), moments

    cut = P("fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), cut, cut, cut), out_specs=(P(), cut), check_vma=False)(
        params, moments, x, y
    )


def zero1_step__right_exchanged(params, moments, x, y, *, mesh):
    """An all_to_all, and a sum of what came."""

    def own_sum(blocks, n, me):
        return jax.lax.all_to_all(blocks, "fsdp", 0, 0).sum(axis=0)

    return _zero1_added(own_sum, params, moments, x, y, mesh)


def zero1_step__right_ring(params, moments, x, y, *, mesh):
    """The sums go down a ring."""

    def own_sum(blocks, n, me):
        total = blocks[(me + 1) % n]
        for step in range(2, n + 1):
            total = jax.lax.ppermute(total, "fsdp", [(d, (d - 1) % n) for d in range(n)]) + blocks[(me + step) % n]
        return total

    return _zero1_added(own_sum, params, moments, x, y, mesh)
