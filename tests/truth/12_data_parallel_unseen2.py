"""Answers to lesson 12, second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P


def varying(tree, axes):  # as the notebook gives it
    return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)


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


def accumulate__right_split(params, x, y, *, microbatches, mesh):
    """A Python loop over split rows; divided turn by turn; one pmean of the tree."""

    def on_device(params, x, y):
        own = varying(params, "data")
        total = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)
        for some_x, some_y in zip(jnp.split(x, microbatches), jnp.split(y, microbatches)):
            found = jax.value_and_grad(loss)(own, some_x, some_y)
            total = jax.tree.map(lambda t, f: t + f / microbatches, total, found)
        return jax.lax.pmean(total, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def accumulate__wrong_never_divided(params, x, y, *, microbatches, mesh):
    """Forgets to divide by the turns: a sum of means."""

    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, rows):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(own, *rows)), None

        parts = tuple(a.reshape(microbatches, -1, a.shape[-1]) for a in (x, y))
        total, _ = jax.lax.scan(turn, nothing, parts)
        return jax.lax.pmean(total, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def accumulate__wrong_every_turn(params, x, y, *, microbatches, mesh):
    """The pmean stands in the turn: as many reductions as microbatches."""

    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = jnp.float32(0), jax.tree.map(jnp.zeros_like, params)

        def turn(total, rows):
            found = jax.lax.pmean(jax.value_and_grad(loss)(own, *rows), "data")
            return jax.tree.map(jnp.add, total, found), None

        parts = tuple(a.reshape(microbatches, -1, a.shape[-1]) for a in (x, y))
        total, _ = jax.lax.scan(turn, nothing, parts)
        return jax.tree.map(lambda t: t / microbatches, total)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def accumulate__wrong_psum(params, x, y, *, microbatches, mesh):
    """psum for pmean: everything is too large by the number of devices."""

    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, rows):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(own, *rows)), None

        parts = tuple(a.reshape(microbatches, -1, a.shape[-1]) for a in (x, y))
        total, _ = jax.lax.scan(turn, nothing, parts)
        return jax.tree.map(lambda t: t / microbatches, jax.lax.psum(total, "data"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def accumulate__wrong_gradients_only(params, x, y, *, microbatches, mesh):
    """Divides the gradients by the turns, and forgets the loss."""

    def on_device(params, x, y):
        own = varying(params, "data")
        value, gradients = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)
        for some_x, some_y in zip(jnp.split(x, microbatches), jnp.split(y, microbatches)):
            v, g = jax.value_and_grad(loss)(own, some_x, some_y)
            value, gradients = value + v, jax.tree.map(jnp.add, gradients, g)
        gradients = jax.tree.map(lambda g: g / microbatches, gradients)
        return jax.lax.pmean((value, gradients), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def dropout_rng__right_stacked(key_data, x, *, hidden, mesh):
    """One mask after the other, stacked."""

    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        before = jax.lax.axis_index("data") * x.shape[0]
        keep = jnp.stack(
            [jax.random.bernoulli(jax.random.fold_in(mask_key, before + i), 0.75, (hidden,)) for i in range(x.shape[0])]
        )
        return {"w": w, "h": jnp.where(keep, x @ w / 0.75, 0)}

    specs = {"w": P(), "h": P("data")}
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs=specs)(key_data, x)


def dropout_rng__wrong_rows_from_0(key_data, x, *, hidden, mesh):
    """Every device numbers its rows from 0."""

    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        keep = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(
            jnp.arange(len(x))
        )
        return {"w": w, "h": jnp.where(keep, x @ w / 0.75, 0)}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


def dropout_rng__wrong_device_number(key_data, x, *, hidden, mesh):
    """Folds in the device's number, and draws for all of its rows at once."""

    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        key = jax.random.fold_in(mask_key, jax.lax.axis_index("data"))
        keep = jax.random.bernoulli(key, 0.75, (len(x), hidden))
        return {"w": w, "h": jnp.where(keep, x @ w / 0.75, 0)}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


def dropout_rng__wrong_not_scaled(key_data, x, *, hidden, mesh):
    """What is kept is not divided by 0.75."""

    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        rows = jax.lax.axis_index("data") * len(x) + jnp.arange(len(x))
        keep = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(rows)
        return {"w": w, "h": x @ w * keep}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


def dropout_rng__wrong_one_key(key_data, x, *, hidden, mesh):
    """Never splits: the same key for w and for the masks."""

    def on_device(key_data, x):
        key = jax.random.wrap_key_data(key_data)
        w = jax.random.normal(key, (x.shape[1], hidden)) / 8
        rows = jax.lax.axis_index("data") * len(x) + jnp.arange(len(x))
        keep = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(key, r), 0.75, (hidden,)))(rows)
        return {"w": w, "h": jnp.where(keep, x @ w / 0.75, 0)}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


def clip_by_global_norm__right_one_vector(gradients, *, limit, mesh):
    """The parts as one long vector, times itself."""
    lies = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        parts = jnp.concatenate([g[name].ravel() for name in ("W1", "b1", "W2")])
        norm = jnp.sqrt(jax.lax.psum(parts @ parts, "model") + g["b2"] @ g["b2"])
        factor = jnp.where(norm > limit, limit / norm, 1.0)
        return {name: leaf * factor for name, leaf in g.items()}, norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(lies,), out_specs=(lies, P()))(gradients)


def clip_by_global_norm__wrong_copies_summed(gradients, *, limit, mesh):
    """b2, which all of them have, is added up over model as well."""
    lies = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(g))
        norm = jnp.sqrt(jax.lax.psum(squares, "model"))
        return jax.tree.map(lambda leaf: leaf * jnp.minimum(1, limit / norm), g), norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(lies,), out_specs=(lies, P()))(gradients)


def clip_by_global_norm__wrong_sum_of_norms(gradients, *, limit, mesh):
    """Adds up roots, not squares."""
    lies = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        parts = jnp.sqrt(sum(jnp.sum(g[name] ** 2) for name in ("W1", "b1", "W2")))
        norm = jax.lax.psum(parts, "model") + jnp.sqrt(jnp.sum(g["b2"] ** 2))
        return jax.tree.map(lambda leaf: leaf * jnp.minimum(1, limit / norm), g), norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(lies,), out_specs=(lies, P()))(gradients)


def clip_by_global_norm__wrong_always_scaled(gradients, *, limit, mesh):
    """No minimum: short gradients are made longer."""
    lies = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        parts = sum(jnp.sum(g[name] ** 2) for name in ("W1", "b1", "W2"))
        norm = jnp.sqrt(jax.lax.psum(parts, "model") + jnp.sum(g["b2"] ** 2))
        return jax.tree.map(lambda leaf: leaf * limit / norm, g), norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(lies,), out_specs=(lies, P()))(gradients)


def clip_by_global_norm__wrong_norm_afterwards(gradients, *, limit, mesh):
    """Returns the norm of the clipped gradients."""
    lies = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        parts = sum(jnp.sum(g[name] ** 2) for name in ("W1", "b1", "W2"))
        norm = jnp.sqrt(jax.lax.psum(parts, "model") + jnp.sum(g["b2"] ** 2))
        factor = jnp.minimum(1, limit / norm)
        return jax.tree.map(lambda leaf: leaf * factor, g), norm * factor

    return jax.shard_map(on_device, mesh=mesh, in_specs=(lies,), out_specs=(lies, P()))(gradients)


# linear updates are the same
average_what__right_linear = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}

# thinks that local momentum drifts apart
average_what__wrong_momentum = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "different",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}

# takes clipping for a linear thing
average_what__wrong_clipping = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "same",
    "SGD, averaged after every second step": "different",
}

# thinks that averaging later is only later
average_what__wrong_second_step = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "same",
}

# thinks that weight decay makes it nonlinear
average_what__wrong_decay = {
    "SGD": "same",
    "SGD with weight decay": "different",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}
