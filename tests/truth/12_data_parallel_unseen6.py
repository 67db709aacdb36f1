"""Answers to lesson 12, sixth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
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


# ------------------------------------------------------------------- metrics


# Right: three numbers in one vector, one psum.
def metrics__right_one_vector(logits, labels, real, *, mesh):
    def on_device(logits, labels, real):
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits, axis=-1), labels[:, None], axis=-1)[:, 0]
        hits = jnp.argmax(logits, axis=-1) == labels
        rows = jnp.stack([jnp.ones_like(real), hits.astype(real.dtype), -chosen])
        count, right, lost = jax.lax.psum(jnp.where(real > 0, rows, 0).sum(axis=1), "data")
        return {"accuracy": right / count, "loss": lost / count}

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


# This student divides on each device (guarding against a device without real rows) and takes the mean of the devices.
def metrics__wrong_means_of_means(logits, labels, real, *, mesh):
    def on_device(logits, labels, real):
        log_p = jax.nn.log_softmax(logits)
        own = -jnp.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0]
        count = jnp.maximum(real.sum(), 1)
        accuracy = ((logits.argmax(-1) == labels) * real).sum() / count
        return jax.lax.pmean({"accuracy": accuracy, "loss": (own * real).sum() / count}, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("data"),) * 3, out_specs=P())(logits, labels, real)


# This student masks the hits, and forgets that padded rows have a loss as well.
def metrics__wrong_loss_of_padding(logits, labels, real, *, mesh):
    def body(logits, labels, real):
        log_p = jax.nn.log_softmax(logits)
        losses = -jnp.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0]
        right = (jnp.argmax(logits, -1) == labels) * real
        n = jax.lax.psum(jnp.sum(real), "data")
        return {
            "accuracy": jax.lax.psum(jnp.sum(right), "data") / n,
            "loss": jax.lax.psum(jnp.sum(losses), "data") / n,
        }

    return jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


# This student masks everything and divides by the rows that there are, padding included.
def metrics__wrong_all_rows(logits, labels, real, *, mesh):
    rows = labels.shape[0]

    def body(logits, labels, real):
        log_p = jax.nn.log_softmax(logits, axis=-1)
        picked = jnp.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0]
        good = jax.lax.psum(((log_p.argmax(axis=-1) == labels) * real).sum(), "data")
        bad = jax.lax.psum((picked * real).sum(), "data")
        return good / rows, -bad / rows

    accuracy, lost = jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=(P(), P()))(logits, labels, real)
    return {"accuracy": accuracy, "loss": lost}


# This student brings all rows to every device and computes there: right values, but rows travel.
def metrics__wrong_gathers_rows(logits, labels, real, *, mesh):
    def body(*own):
        logits, labels, real = (jax.lax.all_gather(a, "data", tiled=True) for a in own)
        p = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)[:, 0]
        hit = jnp.argmax(logits, axis=-1) == labels
        return {"accuracy": jnp.sum(hit * real) / jnp.sum(real), "loss": -jnp.sum(p * real) / jnp.sum(real)}

    return jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P(), check_vma=False)(logits, labels, real)


# --------------------------------------------------------------- dropout_rng


# Right: the row numbers of the whole batch are an input, cut as x is.
def dropout_rng__right_numbers_cut(key_data, x, *, hidden, mesh):
    batch, features = x.shape

    def on_device(key_data, numbers, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (features, hidden)) / 8
        keep = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(numbers)
        return {"w": w, "h": jnp.where(keep, x @ w / 0.75, 0.0)}

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs={"w": P(), "h": P("data")}
    )(key_data, jnp.arange(batch), x)


# This student numbers the rows of the own share from 0: example 0 of every device gets the same mask.
def dropout_rng__wrong_local_numbers(key_data, x, *, hidden, mesh):
    def body(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8

        def mask(r):
            return jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,))

        masks = jax.vmap(mask)(jnp.arange(x.shape[0]))
        return {"w": w, "h": jnp.where(masks, (x @ w) / 0.75, 0)}

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(key_data, x)


# This student's shares begin at d times the number of *devices*: right only where a share has as many rows as there are devices.
def dropout_rng__wrong_times_devices(key_data, x, *, hidden, mesh):
    def body(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        first = jax.lax.axis_index("data") * mesh.shape["data"]
        rows = []
        for k in range(x.shape[0]):
            keep = jax.random.bernoulli(jax.random.fold_in(mask_key, first + k), 0.75, (hidden,))
            rows.append(jnp.where(keep, x[k] @ w / 0.75, 0))
        return w, jnp.stack(rows)

    w, h = jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data")), out_specs=(P(), P("data")))(key_data, x)
    return {"w": w, "h": h}


# This student has the masks right and leaves the kept units as they are (no division by 0.75).
def dropout_rng__wrong_undivided(key_data, x, *, hidden, mesh):
    def body(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[-1], hidden)) / 8
        start = jax.lax.axis_index("data") * len(x)
        keys = jax.vmap(lambda r: jax.random.fold_in(mask_key, r))(start + jnp.arange(len(x)))
        keep = jax.vmap(lambda k: jax.random.bernoulli(k, 0.75, (hidden,)))(keys)
        return {"w": w, "h": (x @ w) * keep}

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(key_data, x)


# This student folds in both, to be on the safe side: first the device, then the row in its share.
def dropout_rng__wrong_device_and_row(key_data, x, *, hidden, mesh):
    def body(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        mine = jax.random.fold_in(mask_key, jax.lax.axis_index("data"))
        keep = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mine, r), 0.75, (hidden,)))(
            jnp.arange(x.shape[0])
        )
        h = x @ w
        return {"w": w, "h": jnp.where(keep, h / 0.75, jnp.zeros_like(h))}

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(key_data, x)


# ---------------------------------------------------------- same_lr_question

same_lr_question__right_factors = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.48 / 8,
    "local sum, pmean": 0.48 / 6,
    "local sum, psum": 0.48 / 48,
    "local mean, nothing, check_vma on": 0.48 / 8,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.48 / 4,
}

# This student thinks that where nothing is written nothing is added, so that the gradient is a mean as it should be.
same_lr_question__wrong_nothing_is_nothing = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.48,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.12,
}

# This student remembers "with N devices, multiply the rate by N", and does so where devices are summed.
same_lr_question__wrong_times_devices = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.48 * 8,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.48 * 8,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.12,
}

# This student divides by the devices wherever a sum is written, and forgets the six rows (and that the 48 is divided out already).
same_lr_question__wrong_eight_for_sums = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.06,
    "local mean, nothing, check_vma on": 0.06,
    "local sum / 48, psum": 0.06,
    "local mean, summed over 4 microbatches, pmean": 0.12,
}

# This student thinks that four sums of smaller means are one mean, since each microbatch has a quarter of the rows.
same_lr_question__wrong_quarters = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.06,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.48,
}
