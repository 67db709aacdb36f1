"""Answers to lesson 14, thirteenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- by_specs


def by_specs__right_wholeweights(params, x, y, *, mesh):
    rows, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())

    def value(params):
        h = x
        for k, layer in enumerate(params):
            h = h @ jax.lax.with_sharding_constraint(layer["W"], whole) + layer["b"]
            h = jax.lax.with_sharding_constraint(h if k == len(params) - 1 else jax.nn.relu(h), rows)
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    found, gradients = jax.value_and_grad(value)(params)
    return found, jax.lax.with_sharding_constraint(gradients, [{"W": rows, "b": whole} for _ in params])


# This student thought that h is laid out as the weights' rows which it meets next, so its features are cut.
def by_specs__wrong_features(params, x, y, *, mesh):
    cut, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())
    columns = NamedSharding(mesh, P(None, "fsdp"))

    def value(params):
        *hidden, last = params
        h = x
        for layer in hidden:
            h = jax.lax.with_sharding_constraint(jax.nn.relu(h @ layer["W"] + layer["b"]), columns)
        h = h @ last["W"] + last["b"]
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    found, gradients = jax.value_and_grad(value)(params)
    return found, jax.lax.with_sharding_constraint(gradients, [{"W": cut, "b": whole} for _ in params])


# This student thought that part 4 with two kinds of leaves is what is asked for, and wrote the collectives by hand.
def by_specs__wrong_byhand(params, x, y, *, mesh):
    layouts = [{"W": P("fsdp"), "b": P()} for _ in params]

    def on_device(params, x, y):
        def value(shares):
            whole = [{"W": jax.lax.all_gather(layer["W"], "fsdp", tiled=True), "b": layer["b"]} for layer in shares]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        return jax.value_and_grad(value)(params)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, P("fsdp"), P("fsdp")), out_specs=(P(), layouts))(
        params, x, y
    )


# This student thought that the compiler's sum over devices is a sum of n means here too, and divided the gradients.
def by_specs__wrong_divided(params, x, y, *, mesh):
    rows, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())

    def value(params):
        *hidden, last = params
        h = x
        for layer in hidden:
            h = jax.lax.with_sharding_constraint(jax.nn.relu(h @ layer["W"] + layer["b"]), rows)
        h = jax.lax.with_sharding_constraint(h @ last["W"] + last["b"], rows)
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    found, gradients = jax.value_and_grad(value)(params)
    gradients = jax.tree.map(lambda g: g / mesh.shape["fsdp"], gradients)
    return found, jax.lax.with_sharding_constraint(gradients, [{"W": rows, "b": whole} for _ in params])


# This student thought that in FSDP every gradient comes back cut, those of the biases as well.
def by_specs__wrong_biasescut(params, x, y, *, mesh):
    rows = NamedSharding(mesh, P("fsdp"))

    def value(params):
        *hidden, last = params
        h = x
        for layer in hidden:
            h = jax.lax.with_sharding_constraint(jax.nn.relu(h @ layer["W"] + layer["b"]), rows)
        h = jax.lax.with_sharding_constraint(h @ last["W"] + last["b"], rows)
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    found, gradients = jax.value_and_grad(value)(params)
    return found, jax.tree.map(lambda g: jax.lax.with_sharding_constraint(g, rows), gradients)


# ---------------------------------------------------------------- fsdp_layer


def fsdp_layer__right_reshape(w, b, x, *, mesh):
    def on_device(w, b, x):
        whole_w = jax.lax.all_gather(w, "fsdp").reshape(-1, w.shape[1])
        whole_b = jax.lax.all_gather(b, "fsdp").ravel()
        return jnp.maximum(x @ whole_w + whole_b, 0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"))(w, b, x)


# This student thought of W as row-parallel: own features times own rows, and a psum of the parts.
def fsdp_layer__wrong_rowparallel(w, b, x, *, mesh):
    def on_device(w, b, x):
        own = jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index("fsdp") * w.shape[0], w.shape[0], axis=1)
        return jax.nn.relu(jax.lax.psum(own @ w, "fsdp") + jax.lax.all_gather(b, "fsdp", tiled=True))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), P("fsdp"), P("fsdp")), out_specs=P("fsdp"))(w, b, x)


# This student thought that the bias must only get the right length, and repeated the own part of it.
def fsdp_layer__wrong_tiledbias(w, b, x, *, mesh):
    def on_device(w, b, x):
        w = jax.lax.all_gather(w, "fsdp", tiled=True)
        return jax.nn.relu(x @ w + jnp.tile(b, mesh.shape["fsdp"]))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), P("fsdp"), P("fsdp")), out_specs=P("fsdp"))(w, b, x)


# This student thought that relu belongs to the product, and that the bias is added to what comes out of it.
def fsdp_layer__wrong_biaslast(w, b, x, *, mesh):
    def on_device(w, b, x):
        w, b = (jax.lax.all_gather(v, "fsdp", tiled=True) for v in (w, b))
        return jax.nn.relu(x @ w) + b

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), P("fsdp"), P("fsdp")), out_specs=P("fsdp"))(w, b, x)


# This student thought that whatever comes cut has to be gathered before it is used, the examples as well.
def fsdp_layer__wrong_gathersall(w, b, x, *, mesh):
    def on_device(w, b, x):
        rows = x.shape[0]
        w, b, x = (jax.lax.all_gather(v, "fsdp", tiled=True) for v in (w, b, x))
        out = jax.nn.relu(x @ w + b)
        return jax.lax.dynamic_slice_in_dim(out, jax.lax.axis_index("fsdp") * rows, rows)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), P("fsdp"), P("fsdp")), out_specs=P("fsdp"))(w, b, x)


# ---------------------------------------------------------------- zero1_step


def zero1_step__right_blocks(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        gradients = jax.grad(lambda p: loss(p, x, y) / n)(params)
        gradients = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True), gradients)
        own = jax.tree.map(lambda p: p.reshape(n, -1, *p.shape[1:])[me], params)
        own, moments = adam(own, moments, gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# This student thought that a reduce_scatter of gradients of means is the gradient of the mean.
def zero1_step__wrong_sum(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        def own_rows(p, m):
            return jax.lax.dynamic_slice_in_dim(p, jax.lax.axis_index("fsdp") * len(m), len(m))

        gradients = jax.grad(loss)(params, x, y)
        gradients = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True), gradients)
        own, moments = adam(jax.tree.map(own_rows, params, moments["mean"]), moments, gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# This student thought that each device needs the gradient of its own rows only, and cut them out of its own gradient.
def zero1_step__wrong_localgradient(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        def own_rows(p, m):
            return jax.lax.dynamic_slice_in_dim(p, jax.lax.axis_index("fsdp") * len(m), len(m))

        gradients = jax.grad(loss)(params, x, y)
        own, own_gradients = (jax.tree.map(own_rows, tree, moments["mean"]) for tree in (params, gradients))
        own, moments = adam(own, moments, own_gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# This student thought that out_specs put the new rows together, so that no all_gather is needed.
def zero1_step__wrong_leftinshares(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        def own_rows(p, m):
            return jax.lax.dynamic_slice_in_dim(p, jax.lax.axis_index("fsdp") * len(m), len(m))

        gradients = jax.grad(loss)(params, x, y)
        gradients = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True) / mesh.shape["fsdp"], gradients)
        return adam(jax.tree.map(own_rows, params, moments["mean"]), moments, gradients)

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P("fsdp"), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# This student thought that Adam on whole weights needs whole moments, so gather these and the gradients, and cut afterwards.
def zero1_step__wrong_gathersmoments(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        def gathered(tree):
            return jax.tree.map(lambda v: jax.lax.all_gather(v, "fsdp", tiled=True), tree)

        def own_rows(v, m):
            return jax.lax.dynamic_slice_in_dim(v, jax.lax.axis_index("fsdp") * len(m), len(m))

        gradients = jax.grad(loss)(params, x, y)
        gradients = gathered(
            jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True) / mesh.shape["fsdp"], gradients)
        )
        params, new = adam(params, gathered(moments), gradients)
        return params, jax.tree.map(own_rows, new, moments)

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)
