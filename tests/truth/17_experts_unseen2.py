"""Answers to lesson 17, second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def moe_all_to_all__right_compared(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """The slot by comparing each choice with those before it."""
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        (t, k), d = experts.shape, x.shape[1]
        choice = experts.reshape(-1)
        slot = jnp.tril(choice[:, None] == choice[None, :], -1).astype(jnp.int32).sum(axis=1)
        buffer = jnp.zeros((n, capacity, d)).at[choice, slot].set(jnp.repeat(x, k, axis=0), mode="drop")
        there = exchange(buffer)
        back = exchange(jax.nn.relu(there @ w_in[0]) @ w_out[0])
        got = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(t, k, d)
        dropped = jnp.sum((slot >= capacity).astype(jnp.int32))
        return x + jnp.einsum("tk,tkd->td", weights, got), dropped[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=(P("expert"), P("expert")))(
        x, weights, experts, w_in, w_out
    )


def moe_all_to_all__wrong_read_as_it_is(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """Reads without mode="fill": a dropped choice gets another token's result."""
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        t, k = experts.shape
        choice = experts.reshape(-1)
        wants = jax.nn.one_hot(choice, n, dtype=jnp.int32)
        slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(jnp.repeat(x, k, axis=0))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        got = back[choice, slot].reshape(t, k, -1)
        dropped = jnp.sum(slot >= capacity, dtype=jnp.int32)[None]
        return x + jnp.sum(weights[..., None] * got, axis=1), dropped

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=(P("expert"), P("expert")))(
        x, weights, experts, w_in, w_out
    )


def moe_all_to_all__wrong_column_by_column(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """All first choices take their slots before any second choice: not row by row."""
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        t, k = experts.shape
        choice = experts.T.reshape(-1)
        wants = jax.nn.one_hot(choice, n, dtype=jnp.int32)
        slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(jnp.tile(x, (k, 1)))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        got = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(k, t, -1)
        dropped = jnp.sum(slot >= capacity, dtype=jnp.int32)[None]
        return x + jnp.sum(weights.T[..., None] * got, axis=0), dropped

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=(P("expert"), P("expert")))(
        x, weights, experts, w_in, w_out
    )


def moe_all_to_all__wrong_without_x(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """Returns what the experts make, without x: a dropped token becomes 0."""
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        t, k = experts.shape
        choice = experts.reshape(-1)
        wants = jax.nn.one_hot(choice, n, dtype=jnp.int32)
        slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(jnp.repeat(x, k, axis=0))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        got = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(t, k, -1)
        dropped = jnp.sum(slot >= capacity, dtype=jnp.int32)[None]
        return jnp.sum(weights[..., None] * got, axis=1), dropped

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=(P("expert"), P("expert")))(
        x, weights, experts, w_in, w_out
    )


def moe_all_to_all__wrong_all_drops(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """The number of drops is added up over the devices: another collective, and not each device's own."""
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        t, k = experts.shape
        choice = experts.reshape(-1)
        wants = jax.nn.one_hot(choice, n, dtype=jnp.int32)
        slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(jnp.repeat(x, k, axis=0))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        got = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(t, k, -1)
        dropped = jax.lax.psum(jnp.sum(slot >= capacity, dtype=jnp.int32), "expert")[None]
        return x + jnp.sum(weights[..., None] * got, axis=1), dropped

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=(P("expert"), P("expert")))(
        x, weights, experts, w_in, w_out
    )


def capacity_numbers__right_counted(wanted, factor, width):
    """Counts choices, slots and what is kept."""
    wanted = np.asarray(wanted)
    n, experts = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / experts))
    kept = int(np.minimum(wanted, capacity).sum())
    slots = n * experts * capacity
    return {
        "capacity": capacity,
        "dropped": 1 - kept / int(wanted.sum()),
        "empty": (slots - kept) / slots,
        "bytes": 2 * experts * capacity * width * 2 * (n - 1) // n,
    }


def capacity_numbers__wrong_one_way(wanted, factor, width):
    """The bytes of the way there alone."""
    wanted = np.asarray(wanted)
    n, experts = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / experts))
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * experts * capacity),
        "bytes": experts * capacity * width * 2 * (n - 1) / n,
    }


def capacity_numbers__wrong_rounded_down(wanted, factor, width):
    """The capacity rounded down."""
    wanted = np.asarray(wanted)
    n, experts = wanted.shape
    capacity = int(factor * wanted[0].sum() / experts)
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * experts * capacity),
        "bytes": 2 * experts * capacity * width * 2 * (n - 1) / n,
    }


def capacity_numbers__wrong_over_all_devices(wanted, factor, width):
    """Lets the devices share their slots for an expert: counts drops by the expert's total."""
    wanted = np.asarray(wanted)
    n, experts = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / experts))
    kept = np.minimum(wanted.sum(axis=0), n * capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * experts * capacity),
        "bytes": 2 * experts * capacity * width * 2 * (n - 1) / n,
    }


def capacity_numbers__wrong_float32(wanted, factor, width):
    """Four bytes for a number, where it is bfloat16."""
    wanted = np.asarray(wanted)
    n, experts = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / experts))
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * experts * capacity),
        "bytes": 2 * experts * capacity * width * 4 * (n - 1) / n,
    }


def dropless__right_inverse(x, weights, experts, w_in, w_out):
    """Home by the inverse of the order, which is its argsort."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    t, k = experts.shape
    choice = experts.reshape(t * k)
    order = jnp.argsort(choice, stable=True)
    sizes = jnp.bincount(choice, length=w_in.shape[0]).astype(jnp.int32)
    hidden = jax.nn.relu(jax.lax.ragged_dot(jnp.repeat(x, k, axis=0)[order], w_in, sizes))
    done = jax.lax.ragged_dot(hidden, w_out, sizes)[jnp.argsort(order)]
    return x + jnp.einsum("tk,tkd->td", weights, done.reshape(t, k, -1))


def dropless__wrong_sorted_once_more(x, weights, experts, w_in, w_out):
    """done[order] in place of writing home."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    t, k = experts.shape
    choice = experts.reshape(-1)
    order = jnp.argsort(choice)
    sizes = jnp.bincount(choice, length=len(w_in))
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(x[order // k], w_in, sizes)), w_out, sizes)
    return x + (weights[..., None] * done[order].reshape(t, k, -1)).sum(axis=1)


def dropless__wrong_tiled(x, weights, experts, w_in, w_out):
    """Tiles x where each row has to come k times in a row: place j belongs to token order[j] % T."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    t, k = experts.shape
    choice = experts.reshape(-1)
    order = jnp.argsort(choice)
    sizes = jnp.bincount(choice, length=len(w_in))
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(x[order % t], w_in, sizes)), w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done).reshape(t, k, -1)
    return x + (weights[..., None] * home).sum(axis=1)


def dropless__wrong_equal_groups(x, weights, experts, w_in, w_out):
    """Groups of equal size, as if the router were balanced."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    t, k = experts.shape
    order = jnp.argsort(experts.reshape(-1))
    sizes = jnp.full(len(w_in), t * k // len(w_in), jnp.int32)
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(x[order // k], w_in, sizes)), w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done).reshape(t, k, -1)
    return x + (weights[..., None] * home).sum(axis=1)


def dropless__wrong_not_weighed(x, weights, experts, w_in, w_out):
    """Adds up the experts' results without their weights."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    t, k = experts.shape
    choice = experts.reshape(-1)
    order = jnp.argsort(choice)
    sizes = jnp.bincount(choice, length=len(w_in))
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(x[order // k], w_in, sizes)), w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done).reshape(t, k, -1)
    return x + home.sum(axis=1)


def ring_of_experts__right_product(x, weights, experts, w_in, w_out, *, mesh):
    """One weight a token by a product with the comparison."""

    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        tokens, w, e = [jax.lax.all_gather(a, "expert", axis=0, tiled=True) for a in (x, weights, experts)]
        mine = ((e == me) * w).sum(axis=1, keepdims=True)
        part = mine * (jax.nn.relu(tokens @ w_in[0]) @ w_out[0])
        return jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True) + x

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


def ring_of_experts__wrong_x_n_times(x, weights, experts, w_in, w_out, *, mesh):
    """Every device adds x to its part: n times x."""

    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        mine = jnp.where(experts == me, weights, 0).sum(axis=1)
        part = x + mine[:, None] * (jax.nn.relu(x @ w_in[0]) @ w_out[0])
        return jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


def ring_of_experts__wrong_all_reduce(x, weights, experts, w_in, w_out, *, mesh):
    """psum, and then the own rows of it: right values, another collective."""

    def on_device(x, weights, experts, w_in, w_out):
        me, rows = jax.lax.axis_index("expert"), len(x)
        tokens, w, e = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        mine = jnp.where(e == me, w, 0).sum(axis=1)
        total = jax.lax.psum(mine[:, None] * (jax.nn.relu(tokens @ w_in[0]) @ w_out[0]), "expert")
        return x + jax.lax.dynamic_slice_in_dim(total, me * rows, rows)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


def ring_of_experts__wrong_first_choice(x, weights, experts, w_in, w_out, *, mesh):
    """Looks at the first choice of a token only."""

    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        tokens, w, e = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        mine = jnp.where(e[:, 0] == me, w[:, 0], 0)
        part = mine[:, None] * (jax.nn.relu(tokens @ w_in[0]) @ w_out[0])
        return x + jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


def ring_of_experts__wrong_everything_weighs(x, weights, experts, w_in, w_out, *, mesh):
    """All experts work on all tokens, and nothing is left out: each with the sum of the token's weights."""

    def on_device(x, weights, experts, w_in, w_out):
        tokens, w = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights))
        part = w.sum(axis=1)[:, None] * (jax.nn.relu(tokens @ w_in[0]) @ w_out[0])
        return x + jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )
