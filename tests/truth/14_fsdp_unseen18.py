"""Answers to lesson 14, eighteenth batch, written by a reader of the notebook only."""

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


def varying(tree, axes):
    """The same arrays, marked as ones that may differ along these axes (`lax.pvary` until JAX 0.8.1)."""
    if hasattr(jax.lax, "pcast"):
        return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)
    return jax.tree.map(lambda leaf: jax.lax.pvary(leaf, axes), tree)


# ---------------------------------------------------------------- fsdp_layer
def fsdp_layer__right_untiled(w, b, x, *, mesh):
    """relu(x · W + b) for w[D_fsdp, F], b[F_fsdp], x[B_fsdp, D] → [B_fsdp, F]."""

    def whole(share):
        stacked = jax.lax.all_gather(share, "fsdp")  # [n, own rows, ...]
        return stacked.reshape(-1, *share.shape[1:])

    def on_device(w, b, x):
        return jax.nn.relu(jnp.dot(x, whole(w)) + whole(b))

    spec = P("fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(spec, spec, spec), out_specs=spec)(w, b, x)


# This student thought in tensor parallelism: own rows of W meet own columns of x, and a psum finishes the sum (of other devices' examples).
def fsdp_layer__wrong_parts_summed(w, b, x, *, mesh):
    def on_device(w, b, x):
        start = jax.lax.axis_index("fsdp") * w.shape[0]
        columns = jax.lax.dynamic_slice_in_dim(x, start, w.shape[0], axis=1)
        product = jax.lax.psum(columns @ w, "fsdp")
        return jax.nn.relu(product + jax.lax.all_gather(b, "fsdp", tiled=True))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"))(w, b, x)


# This student thought that each device sees to its own entries of the bias, and adds them where they belong, as one part of the whole.
def fsdp_layer__wrong_own_bias(w, b, x, *, mesh):
    def on_device(w, b, x):
        h = x @ jax.lax.all_gather(w, "fsdp", tiled=True)
        start = jax.lax.axis_index("fsdp") * b.shape[0]
        own = jax.lax.dynamic_slice_in_dim(h, start, b.shape[0], axis=1) + b
        return jax.nn.relu(jax.lax.dynamic_update_slice_in_dim(h, own, start, axis=1))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"))(w, b, x)


# This student thought that all that is cut has to be whole before it is multiplied, the examples too, and cuts the result at the end.
def fsdp_layer__wrong_gathers_examples(w, b, x, *, mesh):
    def on_device(w, b, x):
        rows = x.shape[0]
        w, b, x = (jax.lax.all_gather(part, "fsdp", tiled=True) for part in (w, b, x))
        result = jax.nn.relu(x @ w + b)
        return jax.lax.dynamic_slice_in_dim(result, jax.lax.axis_index("fsdp") * rows, rows, axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"))(w, b, x)


# This student made the whole of a share by a sum: own rows among zeros, then psum, which sends twice what a gather does.
def fsdp_layer__wrong_psum_of_padded(w, b, x, *, mesh):
    def whole(share):
        n, me, rows = mesh.shape["fsdp"], jax.lax.axis_index("fsdp"), share.shape[0]
        mine = (jnp.arange(n) == me).reshape(n, *(1,) * share.ndim)
        spread = jnp.where(mine, share[None], 0)
        return jax.lax.psum(spread, "fsdp").reshape(n * rows, *share.shape[1:])

    def on_device(w, b, x):
        return jax.nn.relu(x @ whole(w) + whole(b))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"))(w, b, x)


# ---------------------------------------------------------------- hybrid
def hybrid__right_cast_inside(params, x, y, *, mesh):
    """(loss, gradients): shares along `fsdp`, copies along `slice`, the batch cut over both."""

    def gathered(shares):
        shares = varying(shares, "slice")  # cast first: its transpose, the sum over slice, comes last
        return jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)

    def on_device(params, x, y):
        def of_the_batch(shares):
            return jax.lax.pmean(loss(gathered(shares), x, y), ("slice", "fsdp"))

        return jax.value_and_grad(of_the_batch)(params)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# This student knew that a cast is wanted, but casts the whole weights, where they meet the examples: after the gather.
def hybrid__wrong_cast_after_gather(params, x, y, *, mesh):
    def on_device(params, x, y):
        def of_the_batch(shares):
            weights = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            weights = varying(weights, "slice")
            return jax.lax.pmean(loss(weights, x, y), ("slice", "fsdp"))

        return jax.value_and_grad(of_the_batch)(params)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# This student thought that losses are averaged and gradients are summed: a pmean for the one, a psum over slice for the others.
def hybrid__wrong_sum_over_slices(params, x, y, *, mesh):
    def on_device(params, x, y):
        def of_the_slice(shares):
            weights = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(weights, x, y), "fsdp")

        value, grads = jax.value_and_grad(of_the_slice)(varying(params, "slice"))
        return jax.lax.pmean(value, "slice"), jax.tree.map(lambda g: jax.lax.psum(g, "slice"), grads)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# This student differentiates the mean over both axes at varying shares, and averages the slices' gradients once more: the mean is taken twice.
def hybrid__wrong_mean_twice(params, x, y, *, mesh):
    def on_device(params, x, y):
        def of_the_batch(shares):
            weights = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(weights, x, y), ("slice", "fsdp"))

        value, grads = jax.value_and_grad(of_the_batch)(varying(params, "slice"))
        return value, jax.tree.map(lambda g: jax.lax.pmean(g, "slice"), grads)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# This student wrote all collectives by hand, and thought the order of the two sums is free: slices first, then scatter.
def hybrid__wrong_slices_first(params, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def finished(gradient):
        between = jax.lax.pmean(gradient, "slice")
        return jax.lax.psum_scatter(between, "fsdp", tiled=True) / n

    def on_device(params, x, y):
        own = varying(params, "slice")
        weights = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), own)
        value, grads = jax.value_and_grad(loss)(weights, x, y)
        return jax.lax.pmean(value, ("slice", "fsdp")), jax.tree.map(finished, grads)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# ---------------------------------------------------------------- by_specs
def by_specs__right_rows_and_outputs(params, x, y, *, mesh):
    """(loss, gradients) for weights in shares; the compiler writes the collectives."""
    rows, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())
    layouts = [{"W": rows, "b": whole} for _ in params]

    def by_rows(h):
        return jax.lax.with_sharding_constraint(h, rows)

    def used_whole(w):
        return jax.lax.with_sharding_constraint(w, whole)

    def own_loss(params, x, y):
        h = by_rows(x)
        for k, layer in enumerate(params):
            h = by_rows(h @ used_whole(layer["W"]) + layer["b"])
            if k < len(params) - 1:
                h = by_rows(jax.nn.relu(h))
        return jnp.mean(jnp.sum((h - by_rows(y)) ** 2, axis=-1))

    return jax.jit(jax.value_and_grad(own_loss), out_shardings=(whole, layouts))(params, x, y)


# This student thought that layouts of what comes in and goes out are enough, as the compiler fills in the rest.
def by_specs__wrong_ends_only(params, x, y, *, mesh):
    shares, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())
    layouts = [{"W": shares, "b": whole} for _ in params]
    x, y = (jax.lax.with_sharding_constraint(a, shares) for a in (x, y))
    value, grads = jax.value_and_grad(loss)(params, x, y)
    return jax.lax.with_sharding_constraint(value, whole), jax.lax.with_sharding_constraint(grads, layouts)


# This student thought that h must fit the next W, whose rows are cut, and so cuts the features of h: tensor parallelism.
def by_specs__wrong_features_cut(params, x, y, *, mesh):
    shares, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())
    layouts = [{"W": shares, "b": whole} for _ in params]

    def own_loss(params, x, y):
        *hidden, last = params
        h = x
        for layer in hidden:
            h = jax.nn.relu(h @ layer["W"] + layer["b"])
            h = jax.lax.with_sharding_constraint(h, NamedSharding(mesh, P(None, "fsdp")))
        return jnp.mean(jnp.sum((h @ last["W"] + last["b"] - y) ** 2, axis=-1))

    value, grads = jax.value_and_grad(own_loss)(params, x, y)
    return jax.lax.with_sharding_constraint(value, whole), jax.lax.with_sharding_constraint(grads, layouts)


# This student thought of all gradients as shares, as in the exercises by hand, and lays the biases' out in shares, too.
def by_specs__wrong_biases_cut(params, x, y, *, mesh):
    shares, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())

    def own_loss(params, x, y):
        *hidden, last = params
        h = x
        for layer in hidden:
            h = jax.nn.relu(h @ jax.lax.with_sharding_constraint(layer["W"], whole) + layer["b"])
            h = jax.lax.with_sharding_constraint(h, shares)
        h = h @ jax.lax.with_sharding_constraint(last["W"], whole) + last["b"]
        return jnp.mean(jnp.sum((jax.lax.with_sharding_constraint(h, shares) - y) ** 2, axis=-1))

    value, grads = jax.value_and_grad(own_loss)(params, x, y)
    grads = jax.tree.map(lambda g: jax.lax.with_sharding_constraint(g, shares), grads)
    return jax.lax.with_sharding_constraint(value, whole), grads


# This student remembered the sum of eight means of part 4, and divides the gradients by the devices here as well.
def by_specs__wrong_divided_again(params, x, y, *, mesh):
    shares, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())
    layouts = [{"W": shares, "b": whole} for _ in params]
    n = mesh.shape["fsdp"]

    def own_loss(params, x, y):
        *hidden, last = params
        h = x
        for layer in hidden:
            h = jax.nn.relu(h @ jax.lax.with_sharding_constraint(layer["W"], whole) + layer["b"])
            h = jax.lax.with_sharding_constraint(h, shares)
        h = h @ jax.lax.with_sharding_constraint(last["W"], whole) + last["b"]
        return jnp.mean(jnp.sum((jax.lax.with_sharding_constraint(h, shares) - y) ** 2, axis=-1))

    value, grads = jax.value_and_grad(own_loss)(params, x, y)
    grads = jax.tree.map(lambda g: g / n, grads)
    return jax.lax.with_sharding_constraint(value, whole), jax.lax.with_sharding_constraint(grads, layouts)
