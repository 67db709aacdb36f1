"""Answers to lesson 12, seventeenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def predict(params, x):
    """The network: relu between its layers, the last one linear. A layer is a dict with "W" and "b"."""
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    """The mean over the batch of the summed squares of what is missing."""
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


def descend(params, gradients, rate):
    """One step of gradient descent."""
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def varying(tree, axes):
    """The same arrays, marked as ones that may differ along these axes (`lax.pvary` until JAX 0.8.1)."""
    if hasattr(jax.lax, "pcast"):
        return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)
    return jax.tree.map(lambda leaf: jax.lax.pvary(leaf, axes), tree)


# ---------------------------------------------------------------- clip_by_global_norm


def clip_by_global_norm__right_global(gradients, *, limit, mesh):
    # No shard_map: on whole arrays the norm is the plain norm, the compiler adds the parts' squares.
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}
    gradients = {k: jax.lax.with_sharding_constraint(g, NamedSharding(mesh, specs[k])) for k, g in gradients.items()}
    norm = jnp.sqrt(sum(jnp.vdot(g, g) if g.ndim == 1 else jnp.sum(jnp.square(g)) for g in gradients.values()))
    factor = jnp.where(norm > limit, limit / norm, 1.0)
    clipped = {
        k: jax.lax.with_sharding_constraint(g * factor, NamedSharding(mesh, specs[k])) for k, g in gradients.items()
    }
    return clipped, norm


# Thought: squares of all leaves live on several devices, so the local total of all four goes through one psum (b2 is counted n times).
def clip_by_global_norm__wrong_copies(gradients, *, limit, mesh):
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(g))
        norm = jnp.sqrt(jax.lax.psum(squares, "model"))
        factor = jnp.minimum(1.0, limit / norm)
        return jax.tree.map(lambda leaf: leaf * factor, g), norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(specs,), out_specs=(specs, P()))(gradients)


# Thought: a global norm is global over all devices of the mesh, so the parts are added over both axes (but along data they are copies).
def clip_by_global_norm__wrong_axes(gradients, *, limit, mesh):
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        parts = sum(jnp.sum(g[name] ** 2) for name in ("W1", "b1", "W2"))
        norm = jnp.sqrt(jax.lax.psum(parts, ("data", "model")) + jnp.sum(g["b2"] ** 2))
        factor = jnp.minimum(1.0, limit / norm)
        return {name: leaf * factor for name, leaf in g.items()}, norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(specs,), out_specs=(specs, P()))(gradients)


# Thought: clipping means that no array's own gradient is longer than the limit; the global norm is only reported.
def clip_by_global_norm__wrong_leafwise(gradients, *, limit, mesh):
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        squares = {name: jnp.sum(leaf**2) for name, leaf in g.items()}
        summed = jax.lax.psum({name: squares[name] for name in ("W1", "b1", "W2")}, "model")
        summed["b2"] = squares["b2"]
        clipped = {name: leaf * jnp.minimum(1.0, limit / jnp.sqrt(summed[name])) for name, leaf in g.items()}
        return clipped, jnp.sqrt(sum(summed.values()))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(specs,), out_specs=(specs, P()))(gradients)


# Thought: "multiply all of them by limit / norm" - always, so that every step has the length limit (forgot that short ones stay).
def clip_by_global_norm__wrong_always(gradients, *, limit, mesh):
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        parts = jax.lax.psum(sum(jnp.sum(g[k] ** 2) for k in g if k != "b2"), "model")
        norm = jnp.sqrt(parts + jnp.sum(g["b2"] ** 2))
        return jax.tree.map(lambda leaf: leaf * limit / norm, g), norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(specs,), out_specs=(specs, P()))(gradients)


# ---------------------------------------------------------------- jit_dp


def jit_dp__right_scan(params, x, y, *, steps, rate, mesh):
    x, y = jax.lax.with_sharding_constraint((x, y), NamedSharding(mesh, P("data")))

    def step(p, _):
        value, gradients = jax.value_and_grad(loss)(p, x, y)
        return descend(p, gradients, rate), value

    params, losses = jax.lax.scan(step, params, length=steps)
    return losses, params


# Thought: the devices' gradients are added up by the compiler, so the mean still has to be taken by dividing by the devices.
def jit_dp__wrong_divided(params, x, y, *, steps, rate, mesh):
    cut = NamedSharding(mesh, P("data"))
    x = jax.lax.with_sharding_constraint(x, cut)
    y = jax.lax.with_sharding_constraint(y, cut)
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        gradients = jax.tree.map(lambda g: g / mesh.shape["data"], gradients)
        losses.append(value)
        params = descend(params, gradients, rate)
    return jnp.stack(losses), params


# Thought: a constraint works in place, like Tensor.to_ on a parameter; its result is not used.
def jit_dp__wrong_in_place(params, x, y, *, steps, rate, mesh):
    for array in (x, y):
        jax.lax.with_sharding_constraint(array, NamedSharding(mesh, P("data")))
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        losses.append(value)
        params = descend(params, gradients, rate)
    return jnp.stack(losses), params


# Thought: the loss of a step is the one that it arrives at: update first, then measure.
def jit_dp__wrong_after(params, x, y, *, steps, rate, mesh):
    x, y = (jax.lax.with_sharding_constraint(a, NamedSharding(mesh, P("data"))) for a in (x, y))
    losses = []
    for _ in range(steps):
        params = descend(params, jax.grad(loss)(params, x, y), rate)
        losses.append(loss(params, x, y))
    return jnp.stack(losses), params


# Thought: x is [examples, features]; "data" names what the numbers are, so the last dimension of x is dealt out over it, and y by rows.
def jit_dp__wrong_features(params, x, y, *, steps, rate, mesh):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(None, "data")))
    y = jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P("data", None)))
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        losses.append(value)
        params = descend(params, gradients, rate)
    return jnp.stack(losses), params


# ---------------------------------------------------------------- metrics


def metrics__right_one_vector(logits, labels, real, *, mesh):
    def on_device(logits, labels, real):
        hot = jax.nn.one_hot(labels, logits.shape[-1], dtype=logits.dtype)
        losses = -jnp.sum(hot * jax.nn.log_softmax(logits), axis=-1)
        hits = (jnp.argmax(logits, axis=-1) == labels).astype(real.dtype)
        hit, lost, rows = jax.lax.psum(jnp.stack([hits @ real, losses @ real, real.sum()]), "data")
        return {"accuracy": hit / rows, "loss": lost / rows}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("data"), P("data"), P("data")), out_specs=P())(
        logits, labels, real
    )


# Thought: each device reports its mean over its real rows (guarded against none), and the report is the mean of the reports.
def metrics__wrong_mean_of_means(logits, labels, real, *, mesh):
    def on_device(logits, labels, real):
        log_p = jax.nn.log_softmax(logits)
        losses = -jnp.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0]
        rows = jnp.maximum(real.sum(), 1)
        hits = (logits.argmax(-1) == labels) * real
        own = {"accuracy": hits.sum() / rows, "loss": (losses * real).sum() / rows}
        return jax.lax.pmean(own, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


# Thought: the mask belongs to the loss; a row of padding cannot be "right", so hits need no mask.
def metrics__wrong_hits_unmasked(logits, labels, real, *, mesh):
    def on_device(logits, labels, real):
        log_p = jax.nn.log_softmax(logits)
        losses = -jnp.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0]
        hits = jnp.sum(jnp.argmax(logits, axis=-1) == labels)
        rows = jax.lax.psum(jnp.sum(real), "data")
        return {
            "accuracy": jax.lax.psum(hits, "data") / rows,
            "loss": jax.lax.psum(jnp.sum(losses * real), "data") / rows,
        }

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


# Thought: rows whose logits are masked to zero have no loss any more, so it is enough to mask what comes in (each still costs log C).
def metrics__wrong_logits_masked(logits, labels, real, *, mesh):
    def on_device(logits, labels, real):
        logits = logits * real[:, None]
        log_p = jax.nn.log_softmax(logits)
        losses = -jnp.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0]
        hits = (logits.argmax(-1) == labels) * real
        hit, lost, rows = jax.lax.psum((hits.sum(), losses.sum(), real.sum()), "data")
        return {"accuracy": hit / rows, "loss": lost / rows}

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


# Thought: the surest way to one device's numbers is to have one device's arrays: gather the rows everywhere and compute there.
def metrics__wrong_gathered(logits, labels, real, *, mesh):
    def on_device(logits, labels, real):
        logits, labels, real = (jax.lax.all_gather(a, "data", tiled=True) for a in (logits, labels, real))
        losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)[:, 0]
        hits = logits.argmax(-1) == labels
        return {"accuracy": (hits * real).sum() / real.sum(), "loss": (losses * real).sum() / real.sum()}

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P(), check_vma=False)(logits, labels, real)
