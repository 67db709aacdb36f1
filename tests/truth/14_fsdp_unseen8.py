"""Answers to lesson 14, eighth batch, written by a reader of the notebook only."""

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


# ---- fsdp_step


def fsdp_step__right_copies_an_nth_each(params, moments, x, y, *, limit, mesh):
    """Each device brings all squares of its parts and an n-th of those of the copies: one psum."""
    layout = [{"W": P("fsdp"), "b": P()} for _ in params]
    state = {"mean": layout, "square": layout}

    def on_device(params, moments, x, y):
        n = jax.lax.axis_size("fsdp")

        def value(shares):
            whole = [dict(layer, W=jax.lax.all_gather(layer["W"], "fsdp", tiled=True)) for layer in shares]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        found, gradients = jax.value_and_grad(value)(params)
        squares = sum(jnp.sum(g["W"] ** 2) + jnp.sum(g["b"] ** 2) / n for g in gradients)
        norm = jnp.sqrt(jax.lax.psum(squares, "fsdp"))
        factor = jnp.where(norm > limit, limit / norm, 1.0)
        params, moments = adam(params, moments, jax.tree.map(lambda g: factor * g, gradients))
        return found, params, moments

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layout, state, P("fsdp"), P("fsdp")), out_specs=(P(), layout, state)
    )(params, moments, x, y)


# This student thought of clipping parameter by parameter: each leaf is shortened by its own norm.
def fsdp_step__wrong_each_leaf_by_its_norm(params, moments, x, y, *, limit, mesh):
    specs = [{"W": P("fsdp"), "b": P()} for _ in params]

    def on_device(params, moments, x, y):
        def value(shares):
            whole = [{"W": jax.lax.all_gather(s["W"], "fsdp", tiled=True), "b": s["b"]} for s in shares]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        out, grads = jax.value_and_grad(value)(params)
        clipped = []
        for g in grads:
            norm_w = jnp.sqrt(jax.lax.psum(jnp.sum(g["W"] ** 2), "fsdp"))
            norm_b = jnp.sqrt(jnp.sum(g["b"] ** 2))
            clipped.append({"W": g["W"] * jnp.minimum(1, limit / norm_w), "b": g["b"] * jnp.minimum(1, limit / norm_b)})
        params, moments = adam(params, moments, clipped)
        return out, params, moments

    both = {"mean": specs, "square": specs}
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(specs, both, P("fsdp"), P("fsdp")), out_specs=(P(), specs, both)
    )(params, moments, x, y)


# This student tried it on large gradients only, and thought that clipping to a limit means giving them that length.
def fsdp_step__wrong_always_of_length_limit(params, moments, x, y, *, limit, mesh):
    specs = [{"W": P("fsdp"), "b": P()} for _ in params]
    both = {"mean": specs, "square": specs}

    def on_device(params, moments, x, y):
        def value(shares):
            whole = [{"W": jax.lax.all_gather(s["W"], "fsdp", tiled=True), "b": s["b"]} for s in shares]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        out, grads = jax.value_and_grad(value)(params)
        parts = sum(jnp.sum(g["W"] ** 2) for g in grads)
        copies = sum(jnp.sum(g["b"] ** 2) for g in grads)
        norm = jnp.sqrt(jax.lax.psum(parts, "fsdp") + copies)
        grads = jax.tree.map(lambda g: g / norm * limit, grads)
        return out, *adam(params, moments, grads)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(specs, both, P("fsdp"), P("fsdp")), out_specs=(P(), specs, both)
    )(params, moments, x, y)


# This student thought "shares are a sum, so divide; copies are copies, so pmean", though the gradients of the biases are summed already.
def fsdp_step__wrong_pmean_of_summed_biases(params, moments, x, y, *, limit, mesh):
    specs = [{"W": P("fsdp"), "b": P()} for _ in params]
    both = {"mean": specs, "square": specs}

    def on_device(params, moments, x, y):
        def own_loss(shares):
            whole = [{"W": jax.lax.all_gather(s["W"], "fsdp", tiled=True), "b": s["b"]} for s in shares]
            return loss(whole, x, y)

        n = jax.lax.axis_size("fsdp")
        own, grads = jax.value_and_grad(own_loss)(params)
        grads = [{"W": g["W"] / n, "b": jax.lax.pmean(g["b"], "fsdp")} for g in grads]
        squares_of_w = sum(jnp.sum(g["W"] ** 2) for g in grads)
        squares_of_b = sum(jnp.sum(g["b"] ** 2) for g in grads)
        norm = jnp.sqrt(jax.lax.psum(squares_of_w, "fsdp") + squares_of_b)
        grads = jax.tree.map(lambda g: g * jnp.minimum(1, limit / norm), grads)
        params, moments = adam(params, moments, grads)
        return jax.lax.pmean(own, "fsdp"), params, moments

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(specs, both, P("fsdp"), P("fsdp")), out_specs=(P(), specs, both)
    )(params, moments, x, y)


# This student thought as DDP does: the gradients of the whole weights are all_reduced (the norm is then easy), and each keeps its own rows.
def fsdp_step__wrong_whole_gradients(params, moments, x, y, *, limit, mesh):
    specs = [{"W": P("fsdp"), "b": P()} for _ in params]
    both = {"mean": specs, "square": specs}

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        whole = [{"W": jax.lax.all_gather(p["W"], "fsdp", tiled=True), "b": varying(p["b"], "fsdp")} for p in params]
        own, grads = jax.value_and_grad(loss)(whole, x, y)
        value, grads = jax.lax.pmean((own, grads), "fsdp")
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1, limit / norm), grads)
        mine = []
        for p, g in zip(params, grads):
            rows = p["W"].shape[0]
            mine.append({"W": jax.lax.dynamic_slice_in_dim(g["W"], me * rows, rows), "b": g["b"]})
        params, moments = adam(params, moments, mine)
        return value, params, moments

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(specs, both, P("fsdp"), P("fsdp")), out_specs=(P(), specs, both)
    )(params, moments, x, y)


# ---- zero1_step


def zero1_step__right_params_come_twice(params, moments, x, y, *, mesh):
    """The weights come in once whole and once as each device's own rows: a spec does the slicing."""

    def on_device(whole, rows, moments, x, y):
        n = jax.lax.axis_size("fsdp")
        gradients = jax.tree.map(lambda g: jax.lax.psum_scatter(g / n, "fsdp", tiled=True), jax.grad(loss)(whole, x, y))
        rows, moments = adam(rows, moments, gradients)
        return jax.tree.map(lambda r: jax.lax.all_gather(r, "fsdp", tiled=True), rows), moments

    cut = P("fsdp")
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(), cut, cut, cut, cut), out_specs=(P(), cut), check_vma=False
    )(params, params, moments, x, y)


# This student thought of rows dealt out in turns: device d owns rows d, d + n, d + 2n, ...
def zero1_step__wrong_every_nth_row(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        grads = jax.grad(loss)(params, x, y)
        grads = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True) / n, grads)
        own = jax.tree.map(lambda p: p[me + n * jnp.arange(p.shape[0] // n)], params)
        own, moments = adam(own, moments, grads)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# This student thought that ZeRO-1 keeps gradients whole (stage 2 is the one that divides them), so he averages them as DDP does and cuts.
def zero1_step__wrong_gradients_all_reduced(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        me, n = jax.lax.axis_index("fsdp"), jax.lax.axis_size("fsdp")
        grads = jax.lax.pmean(jax.grad(loss)(params, x, y), "fsdp")

        def own(a):
            return jax.lax.dynamic_slice_in_dim(a, me * (a.shape[0] // n), a.shape[0] // n)

        mine, moments = adam(jax.tree.map(own, params), moments, jax.tree.map(own, grads))
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), mine), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# This student remembered "average the losses, then differentiate", and did not divide after that; but the check is off.
def zero1_step__wrong_pmean_of_loss_unchecked(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")

        def mean_loss(p):
            return jax.lax.pmean(loss(p, x, y), "fsdp")

        grads = jax.grad(mean_loss)(params)
        grads = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True), grads)
        own = jax.tree.map(lambda p, g: jax.lax.dynamic_slice_in_dim(p, me * g.shape[0], g.shape[0]), params, grads)
        own, moments = adam(own, moments, grads)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# This student wrote the new rows into the whole weights, as one does in place, and thought that out_specs=P() brings the copies together.
def zero1_step__wrong_rows_written_in_place(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        me, n = jax.lax.axis_index("fsdp"), jax.lax.axis_size("fsdp")
        grads = jax.grad(loss)(params, x, y)
        grads = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True) / n, grads)
        own = jax.tree.map(lambda p, g: jax.lax.dynamic_slice_in_dim(p, me * g.shape[0], g.shape[0]), params, grads)
        own, moments = adam(own, moments, grads)
        params = jax.tree.map(
            lambda p, o: jax.lax.dynamic_update_slice_in_dim(p, o, me * o.shape[0], axis=0), params, own
        )
        return params, moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# ---- fsdp_layer


def fsdp_layer__right_stacked_and_reshaped(w, b, x, *, mesh):
    def on_device(w, b, x):
        every_w, every_b = jax.tree.map(
            lambda a: jax.lax.all_gather(a, "fsdp"), (w, b)
        )  # [n, rows, F] and [n, columns]
        return jnp.maximum(x @ every_w.reshape(-1, w.shape[1]) + every_b.reshape(-1), 0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=P("fsdp"))(w, b, x)


# This student saw W cut by rows and thought of case 3: own columns of x times own rows of W, and a psum; but the others have other examples.
def fsdp_layer__wrong_parts_of_a_sum(w, b, x, *, mesh):
    def on_device(w, b, x):
        rows = w.shape[0]
        columns = jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index("fsdp") * rows, rows, axis=1)
        product = jax.lax.psum(columns @ w, "fsdp")
        bias = jax.lax.all_gather(b, "fsdp", tiled=True)
        return jax.nn.relu(product + bias)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), P("fsdp"), P("fsdp")), out_specs=P("fsdp"))(w, b, x)


# This student thought that what comes cut has to be gathered, x too, computed the whole layer on each device, and kept his own rows.
def fsdp_layer__wrong_gathers_x_too(w, b, x, *, mesh):
    def on_device(w, b, x):
        mine = x.shape[0]
        w, b, x = (jax.lax.all_gather(a, "fsdp", axis=0, tiled=True) for a in (w, b, x))
        out = jax.nn.relu(x @ w + b)
        return jax.lax.dynamic_slice_in_dim(out, jax.lax.axis_index("fsdp") * mine, mine, axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"))(w, b, x)


# This student knows no gather from torch but a buffer of zeros that everybody fills in his place of, and then all_reduces.
def fsdp_layer__wrong_zeros_and_psum(w, b, x, *, mesh):
    n = mesh.shape["fsdp"]

    def whole(share):
        buffer = jnp.zeros((n * share.shape[0], *share.shape[1:]), share.dtype)
        start = jax.lax.axis_index("fsdp") * share.shape[0]
        return jax.lax.psum(jax.lax.dynamic_update_slice_in_dim(buffer, share, start, axis=0), "fsdp")

    def on_device(w, b, x):
        return jax.nn.relu(x @ whole(w) + whole(b))

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("fsdp"), P("fsdp"), P("fsdp")), out_specs=P("fsdp"), check_vma=False
    )(w, b, x)


# This student thought as in tensor parallelism, that a device's part of the bias is for its columns of the result, and adds it only there.
def fsdp_layer__wrong_bias_on_own_columns(w, b, x, *, mesh):
    def on_device(w, b, x):
        h = x @ jax.lax.all_gather(w, "fsdp", tiled=True)
        columns = jax.lax.axis_index("fsdp") * b.shape[0] + jnp.arange(b.shape[0])
        return jax.nn.relu(h.at[:, columns].add(b))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), P("fsdp"), P("fsdp")), out_specs=P("fsdp"))(w, b, x)
