"""Answers to lesson 17, sixteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# ---------------------------------------------------------------- route


def route__right_sorted(x, router, k):
    logits = jnp.asarray(x, jnp.float32) @ jnp.asarray(router, jnp.float32)
    experts = jnp.argsort(-logits, axis=1, stable=True)[:, :k]
    best = jnp.take_along_axis(logits, experts, axis=1)
    grown = jnp.exp(best - best[:, :1])  # the largest stands first
    return grown / grown.sum(axis=1, keepdims=True), experts


# "The logits have to be float32": made float32 after the product, when they are rounded already.
def route__wrong_late_cast(x, router, k):
    logits = (jnp.asarray(x) @ jnp.asarray(router)).astype(jnp.float32)
    top, experts = jax.lax.top_k(logits, k)
    return jax.nn.softmax(top, axis=-1), experts


# "argsort and turn it round, as in NumPy": of equal logits the higher number now comes first.
def route__wrong_ties(x, router, k):
    logits = jnp.asarray(x, jnp.float32) @ jnp.asarray(router, jnp.float32)
    experts = jnp.argsort(logits, axis=1)[:, ::-1][:, :k]
    return jax.nn.softmax(jnp.take_along_axis(logits, experts, axis=1), axis=1), experts


# "softmax over the tokens, dim=0": the weights of a choice add up to 1 over the tokens, not over a token's choices.
def route__wrong_axis(x, router, k):
    logits = jnp.asarray(x, jnp.float32) @ jnp.asarray(router, jnp.float32)
    top, experts = jax.lax.top_k(logits, k)
    return jax.nn.softmax(top, axis=0), experts


# "Set those who are not asked to 0, then softmax": a logit of 0 still has the weight exp(0) = 1.
def route__wrong_zero_mask(x, router, k):
    logits = jnp.asarray(x, jnp.float32) @ jnp.asarray(router, jnp.float32)
    _, experts = jax.lax.top_k(logits, k)
    asked = jax.nn.one_hot(experts, logits.shape[1]).sum(axis=1)
    weights = jax.nn.softmax(logits * asked, axis=1)
    return jnp.take_along_axis(weights, experts, axis=1), experts


# ---------------------------------------------------------------- ring_of_experts


def ring_of_experts__right_exchange(x, weights, experts, w_in, w_out, *, mesh):
    n = mesh.shape["expert"]

    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        everyone, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.einsum("tk,tk->t", weights, (experts == me).astype(weights.dtype))
        done = jax.nn.relu(everyone @ w_in[0]) @ w_out[0] * gate[:, None]
        home = jax.lax.all_to_all(done, "expert", 0, 0, tiled=True)  # block d: what expert d makes of my tokens
        return x + home.reshape(n, *x.shape).sum(axis=0)

    cut = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=cut)(x, weights, experts, w_in, w_out)


# "y = x + experts, for all tokens, and then scatter": every device adds x, so the sum has it n times.
def ring_of_experts__wrong_x_everywhere(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(experts == me, weights, 0).sum(axis=1, keepdims=True)
        y = x + gate * (jax.nn.relu(x @ w_in[0]) @ w_out[0])
        return jax.lax.psum_scatter(y, "expert", scatter_dimension=0, tiled=True)

    cut = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=cut)(x, weights, experts, w_in, w_out)


# "Add up with psum and keep my own rows": an all_reduce of everything in place of a reduce_scatter.
def ring_of_experts__wrong_psum(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        all_x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(experts == me, weights, 0).sum(axis=1, keepdims=True)
        total = jax.lax.psum(gate * (jax.nn.relu(all_x @ w_in[0]) @ w_out[0]), "expert")
        return x + jax.lax.dynamic_slice_in_dim(total, me * len(x), len(x), axis=0)

    cut = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=cut)(x, weights, experts, w_in, w_out)


# "Column e of the weights belongs to expert e": but the columns are choices; whether it was asked at all is looked up rightly.
def ring_of_experts__wrong_column(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        all_x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        asked = (experts == me).any(axis=1)
        gate = jnp.where(asked, weights[:, me], 0)[:, None]
        done = gate * (jax.nn.relu(all_x @ w_in[0]) @ w_out[0])
        return x + jax.lax.psum_scatter(done, "expert", scatter_dimension=0, tiled=True)

    cut = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=cut)(x, weights, experts, w_in, w_out)


# "The all_to_all brings n results for each token, next to each other": they come device by device, not token by token.
def ring_of_experts__wrong_order(x, weights, experts, w_in, w_out, *, mesh):
    n = mesh.shape["expert"]

    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        all_x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(experts == me, weights, 0).sum(axis=1, keepdims=True)
        done = gate * (jax.nn.relu(all_x @ w_in[0]) @ w_out[0])
        home = jax.lax.all_to_all(done, "expert", 0, 0, tiled=True)
        return x + home.reshape(len(x), n, -1).sum(axis=1)

    cut = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=cut)(x, weights, experts, w_in, w_out)


# ---------------------------------------------------------------- capacity_numbers


def capacity_numbers__right_lack(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, num_experts = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / num_experts))
    lack = wanted - capacity  # positive: without a slot; negative: slots without a choice
    return {
        "capacity": capacity,
        "dropped": float(lack[lack > 0].sum() / wanted.sum()),
        "empty": float(-lack[lack < 0].sum() / (wanted.size * capacity)),
        "bytes": 2 * (n - 1) * (num_experts // n) * capacity * width * 2,
    }


# "An all_to_all sends the whole buffer": the slots for the device's own experts are counted as sent.
def capacity_numbers__wrong_own_slots(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, num_experts = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / num_experts))
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(1 - kept / (n * num_experts * capacity)),
        "bytes": 2 * num_experts * capacity * width * 2,
    }


# "One expert on each device": the fair share is a device's choices by the number of *devices* (right for E = n).
def capacity_numbers__wrong_share(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, num_experts = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / n))
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(1 - kept / (n * num_experts * capacity)),
        "bytes": 2 * (n - 1) * num_experts * capacity // n * width * 2,
    }


# "An expert has n · capacity slots, whoever the choices are from": one device's free slots are given to another's choices.
def capacity_numbers__wrong_pooled(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, num_experts = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / num_experts))
    kept = np.minimum(wanted.sum(axis=0), n * capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(1 - kept / (n * num_experts * capacity)),
        "bytes": 2 * (n - 1) * num_experts * capacity // n * width * 2,
    }


# "Parts are parts of the choices": the empty slots too are divided by the number of choices, not of slots.
def capacity_numbers__wrong_of_choices(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, num_experts = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / num_experts))
    dropped = np.maximum(wanted - capacity, 0).sum()
    empty = np.maximum(capacity - wanted, 0).sum()
    return {
        "capacity": capacity,
        "dropped": float(dropped / wanted.sum()),
        "empty": float(empty / wanted.sum()),
        "bytes": 2 * (n - 1) * num_experts * capacity // n * width * 2,
    }
