"""Answers to lesson 14, third batch, written by a reader of the notebook only."""

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


def by_specs__right_both(params, x, y, *, mesh):
    def laid(value, *spec):
        return jax.lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))

    def objective(params):
        h = x
        for k, layer in enumerate(params):
            h = laid(h @ laid(layer["W"]) + layer["b"], "fsdp")
            if k < len(params) - 1:
                h = jax.nn.relu(h)
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    value, gradients = jax.value_and_grad(objective)(params)
    return value, [{"W": laid(g["W"], "fsdp"), "b": laid(g["b"])} for g in gradients]


# Everything that goes in is laid out, and so is what comes out: between, the compiler follows the arguments.
def by_specs__wrong_ends_only(params, x, y, *, mesh):
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    return value, jax.lax.with_sharding_constraint(gradients, layouts)


# h has features, and the weights' rows are cut: between the layers h is cut by its features, to fit the rows of the next W.
def by_specs__wrong_features(params, x, y, *, mesh):
    features = NamedSharding(mesh, P(None, "fsdp"))
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]

    def objective(params):
        h = x
        *hidden, last = params
        for layer in hidden:
            h = jax.lax.with_sharding_constraint(jax.nn.relu(h @ layer["W"] + layer["b"]), features)
        return jnp.mean(jnp.sum((h @ last["W"] + last["b"] - y) ** 2, axis=-1))

    value, gradients = jax.value_and_grad(objective)(params)
    return value, jax.lax.with_sharding_constraint(gradients, layouts)


# A gradient is needed by everybody after the backward pass, so I lay the gradients out whole.
def by_specs__wrong_gradients_whole(params, x, y, *, mesh):
    rows, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())

    def objective(params):
        h = x
        *hidden, last = params
        for layer in hidden:
            h = jax.lax.with_sharding_constraint(jax.nn.relu(h @ layer["W"] + layer["b"]), rows)
        h = jax.lax.with_sharding_constraint(h @ last["W"] + last["b"], rows)
        return jnp.mean(jnp.sum((h - y) ** 2, axis=-1))

    value, gradients = jax.value_and_grad(objective)(params)
    return value, jax.tree.map(lambda g: jax.lax.with_sharding_constraint(g, whole), gradients)


# Gather the examples on every device, so that they never have to travel between the layers again.
def by_specs__wrong_batch_whole(params, x, y, *, mesh):
    whole = NamedSharding(mesh, P())
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    x, y = jax.lax.with_sharding_constraint((x, y), (whole, whole))
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    return value, jax.lax.with_sharding_constraint(gradients, layouts)


# ---------------------------------------------------------------- fsdp_step


def _gathered(params):
    return [{**layer, "W": jax.lax.all_gather(layer["W"], "fsdp", axis=0, tiled=True)} for layer in params]


def _on_line(body, params, mesh):
    cut = [{"W": P("fsdp"), "b": P()} for _ in params]
    state = cut, {"mean": cut, "square": cut}
    return jax.shard_map(body, mesh=mesh, in_specs=(*state, P("fsdp"), P("fsdp")), out_specs=(P(), *state))


def fsdp_step__right_own_loss(params, moments, x, y, *, limit, mesh):
    """Each device's own loss is differentiated; what has been added up is divided."""

    def body(params, moments, x, y):
        n = jax.lax.axis_size("fsdp")
        own, summed = jax.value_and_grad(lambda params: loss(_gathered(params), x, y))(params)
        gradients = jax.tree.map(lambda g: g / n, summed)
        parts = sum(jnp.vdot(g["W"], g["W"]) for g in gradients)
        copies = sum(jnp.vdot(g["b"], g["b"]) for g in gradients)
        value, parts = jax.lax.psum((own / n, parts), "fsdp")
        factor = jnp.minimum(1, limit / jnp.sqrt(parts + copies))
        return value, *adam(params, moments, [{name: factor * g[name] for name in g} for g in gradients])

    return _on_line(body, params, mesh)(params, moments, x, y)


def _step(params, moments, x, y, limit, mesh, norm_of, collect=None):
    def body(params, moments, x, y):
        value, gradients = jax.value_and_grad(lambda p: jax.lax.pmean(loss(_gathered(p), x, y), "fsdp"))(params)
        if collect:
            gradients = collect(gradients)
        factor = jnp.minimum(1, limit / norm_of(gradients))
        return value, *adam(params, moments, jax.tree.map(lambda g: g * factor, gradients))

    return _on_line(body, params, mesh)(params, moments, x, y)


# All squares are added up over the devices, those of the biases as well.
def fsdp_step__wrong_copies_counted(params, moments, x, y, *, limit, mesh):
    def norm(gradients):
        return jnp.sqrt(jax.lax.psum(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradients)), "fsdp"))

    return _step(params, moments, x, y, limit, mesh, norm)


# A root of every device's own part, and then the roots added up.
def fsdp_step__wrong_sum_of_roots(params, moments, x, y, *, limit, mesh):
    def norm(gradients):
        parts = jnp.sqrt(sum(jnp.sum(g["W"] ** 2) for g in gradients))
        copies = jnp.sqrt(sum(jnp.sum(g["b"] ** 2) for g in gradients))
        return jax.lax.psum(parts, "fsdp") + copies

    return _step(params, moments, x, y, limit, mesh, norm)


# The gradients of the Ws are right by the scatter, those of the biases still have to be added up over the devices.
def fsdp_step__wrong_biases_again(params, moments, x, y, *, limit, mesh):
    def collect(gradients):
        return [{"W": g["W"], "b": jax.lax.psum(g["b"], "fsdp")} for g in gradients]

    def norm(gradients):
        parts = sum(jnp.sum(g["W"] ** 2) for g in gradients)
        return jnp.sqrt(jax.lax.psum(parts, "fsdp") + sum(jnp.sum(g["b"] ** 2) for g in gradients))

    return _step(params, moments, x, y, limit, mesh, norm, collect)


# Each W is gathered first and differentiated whole; then every device cuts its own rows out of the mean gradient.
def fsdp_step__wrong_whole_gradients(params, moments, x, y, *, limit, mesh):
    def body(params, moments, x, y):
        whole = [{"W": layer["W"], "b": varying(layer["b"], "fsdp")} for layer in _gathered(params)]
        own, gradients = jax.value_and_grad(loss)(whole, x, y)
        value, gradients = jax.lax.pmean((own, gradients), "fsdp")
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradients)))
        factor, me = jnp.minimum(1, limit / norm), jax.lax.axis_index("fsdp")
        mine = []
        for layer, g in zip(params, gradients):
            rows = layer["W"].shape[0]
            mine.append({"W": factor * jax.lax.dynamic_slice_in_dim(g["W"], me * rows, rows), "b": factor * g["b"]})
        return value, *adam(params, moments, mine)

    return _on_line(body, params, mesh)(params, moments, x, y)


# ---------------------------------------------------------------- zero_table

zero_table__right_formula = {
    "bytes of a parameter, stage 0": 2 + 2 + 12,
    "bytes of a parameter, stage 1": 2 + 2 + 12 / 8,
    "bytes of a parameter, stage 2": 2 + (2 + 12) / 8,
    "bytes of a parameter, stage 3": (2 + 2 + 12) / 8,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 1.5,
}

# Stage 3 only gathers weights and scatters gradients, which is one all_reduce.
zero_table__wrong_one_gather = {**zero_table__right_formula, "bytes sent, stage 3 ÷ stage 0": 1}

# The optimizer keeps two moments, 8 bytes; the master copy belongs to the weights.
zero_table__wrong_master = {
    **zero_table__right_formula,
    "bytes of a parameter, stage 1": 2 + 4 + 2 + 8 / 8,
    "bytes of a parameter, stage 2": 2 + 4 + (2 + 8) / 8,
}

# Stage 1 has two collectives where stage 0 has one, and stage 3 has three.
zero_table__wrong_counted = {
    **zero_table__right_formula,
    "bytes sent, stage 1 ÷ stage 0": 2,
    "bytes sent, stage 3 ÷ stage 0": 3,
}

# Stage 2 cuts the gradients *instead of* the optimizer.
zero_table__wrong_instead = {**zero_table__right_formula, "bytes of a parameter, stage 2": 2 + 2 / 8 + 12}
