"""Answers to lesson 17, as students give them: written from the student's notebook alone."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def route__right_plain(x, router, k):
    """As it is."""
    top, experts = jax.lax.top_k(x.astype(jnp.float32) @ router.astype(jnp.float32), k)
    return jax.nn.softmax(top), experts


def route__wrong_all(x, router, k):
    """The softmax goes over all experts."""
    weights = jax.nn.softmax(x.astype(jnp.float32) @ router.astype(jnp.float32))
    return jax.lax.top_k(weights, k)


def route__right_type(x, router, k):
    """The product is in the type that x comes in, which is float32."""
    top, experts = jax.lax.top_k(x @ router, k)
    return jax.nn.softmax(top.astype(jnp.float32)), experts


def route__wrong_ties(x, router, k):
    """Sorts and turns round: of equal ones the higher number."""
    logits = x.astype(jnp.float32) @ router.astype(jnp.float32)
    experts = jnp.argsort(logits, axis=1)[:, ::-1][:, :k]
    return jax.nn.softmax(jnp.take_along_axis(logits, experts, axis=1)), experts


def route__wrong_axis(x, router, k):
    """The softmax goes over the tokens."""
    top, experts = jax.lax.top_k(x.astype(jnp.float32) @ router.astype(jnp.float32), k)
    return jax.nn.softmax(top, axis=0), experts


def slots__right_take(experts, num_experts, capacity):
    """Reads one entry of each row."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = jnp.take_along_axis(jnp.cumsum(wants, axis=0), experts[:, None], axis=1)[:, 0] - 1
    return slot, slot < capacity


def slots__wrong_from_one(experts, num_experts, capacity):
    """Counts the choice itself."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = (jnp.cumsum(wants, axis=0) * wants).sum(axis=1)
    return slot, slot <= capacity


def slots__wrong_one_more(experts, num_experts, capacity):
    """Keeps one too many."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return slot, slot <= capacity


def slots__wrong_clipped(experts, num_experts, capacity):
    """Pushes dropped choices to the last slot."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return jnp.minimum(slot, capacity - 1), slot < capacity


def slots__wrong_axis(experts, num_experts, capacity):
    """Counts along the experts."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=1) - 1) * wants).sum(axis=1)
    return slot, slot < capacity


def _moe(x, weights, experts, w_in, w_out, capacity, mesh, fill=True, back=True, add=True, count=True, weigh=True):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def layer(x, weights, experts, w_in, w_out):
        k = experts.shape[1]
        choice = experts.reshape(-1)
        wants = jax.nn.one_hot(choice, n, dtype=jnp.int32)
        slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
        rows = jnp.repeat(x, k, axis=0)
        buffer = jnp.zeros((n, capacity, x.shape[1]), x.dtype).at[choice, slot].set(rows)
        done = jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0]
        done = exchange(done) if back else done
        read = done.at[choice, slot].get(mode="fill", fill_value=0) if fill else done[choice, slot]
        read = read.reshape(*experts.shape, -1)
        y = (read * weights[..., None]).sum(axis=1) if weigh else read.sum(axis=1)
        lost = (slot >= capacity) if count else (slot < capacity)
        return x + y if add else y, lost.sum(dtype=jnp.int32)[None]

    spec = P("expert")
    mapped = jax.shard_map(layer, mesh=mesh, in_specs=(spec,) * 5, out_specs=(spec, spec))
    return mapped(x, weights, experts, w_in, w_out)


def moe_all_to_all__right_plain(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """As it is."""
    return _moe(x, weights, experts, w_in, w_out, capacity, mesh)


def moe_all_to_all__wrong_clamped(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """Reads as it is: a dropped choice gets another token's result."""
    return _moe(x, weights, experts, w_in, w_out, capacity, mesh, fill=False)


def moe_all_to_all__wrong_no_way_back(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """Forgets the way back."""
    return _moe(x, weights, experts, w_in, w_out, capacity, mesh, back=False)


def moe_all_to_all__wrong_no_x(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """Does not add x."""
    return _moe(x, weights, experts, w_in, w_out, capacity, mesh, add=False)


def moe_all_to_all__wrong_kept(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """Counts those that were kept."""
    return _moe(x, weights, experts, w_in, w_out, capacity, mesh, count=False)


def moe_all_to_all__wrong_unweighted(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """Adds up without the weights."""
    return _moe(x, weights, experts, w_in, w_out, capacity, mesh, weigh=False)


def moe_all_to_all__wrong_by_columns(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """Reads the choices column by column: all first choices get their slots first."""
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def layer(x, weights, experts, w_in, w_out):
        k = experts.shape[1]
        choice = experts.T.reshape(-1)
        wants = jax.nn.one_hot(choice, n, dtype=jnp.int32)
        slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
        buffer = jnp.zeros((n, capacity, x.shape[1]), x.dtype).at[choice, slot].set(jnp.tile(x, (k, 1)))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        read = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(k, *x.shape)
        y = x + (read * weights.T[..., None]).sum(axis=0)
        return y, (slot >= capacity).sum(dtype=jnp.int32)[None]

    spec = P("expert")
    mapped = jax.shard_map(layer, mesh=mesh, in_specs=(spec,) * 5, out_specs=(spec, spec))
    return mapped(x, weights, experts, w_in, w_out)


def capacity_numbers__right_plain(wanted, factor, width):
    """As it is."""
    n, experts = wanted.shape
    capacity = math.ceil(factor * wanted[0].sum() / experts)
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * experts * capacity),
        "bytes": 2 * (n - 1) * experts * capacity * width * 2 // n,
    }


def capacity_numbers__wrong_one_way(wanted, factor, width):
    """Counts one all_to_all only."""
    right = capacity_numbers__right_plain(wanted, factor, width)
    return right | {"bytes": right["bytes"] // 2}


def capacity_numbers__wrong_down(wanted, factor, width):
    """Rounds the capacity down."""
    n, experts = wanted.shape
    capacity = int(factor * wanted[0].sum() / experts)
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * experts * capacity),
        "bytes": 2 * (n - 1) * experts * capacity * width * 2 // n,
    }


def capacity_numbers__wrong_float32(wanted, factor, width):
    """Counts four bytes for a number."""
    right = capacity_numbers__right_plain(wanted, factor, width)
    return right | {"bytes": 2 * right["bytes"]}


def dropless__right_plain(x, weights, experts, w_in, w_out):
    """As it is."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    choice, k = experts.reshape(-1), experts.shape[1]
    order, sizes = jnp.argsort(choice, stable=True), jnp.bincount(choice, length=len(w_in))
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(x[order // k], w_in, sizes)), w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done).reshape(*experts.shape, -1)
    return x + (home * weights[..., None]).sum(axis=1)


def dropless__wrong_sorted_again(x, weights, experts, w_in, w_out):
    """Reads by the order, where it should write."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    choice, k = experts.reshape(-1), experts.shape[1]
    order, sizes = jnp.argsort(choice, stable=True), jnp.bincount(choice, length=len(w_in))
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(x[order // k], w_in, sizes)), w_out, sizes)
    return x + (done[order].reshape(*experts.shape, -1) * weights[..., None]).sum(axis=1)


def dropless__wrong_places(x, weights, experts, w_in, w_out):
    """Takes the place among the choices for the token's number."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    choice = experts.reshape(-1)
    order, sizes = jnp.argsort(choice, stable=True), jnp.bincount(choice, length=len(w_in))
    rows = jnp.tile(x, (experts.shape[1], 1))[order]
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(rows, w_in, sizes)), w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done).reshape(*experts.shape, -1)
    return x + (home * weights[..., None]).sum(axis=1)


def dropless__wrong_no_relu(x, weights, experts, w_in, w_out):
    """No relu between the products."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    choice, k = experts.reshape(-1), experts.shape[1]
    order, sizes = jnp.argsort(choice, stable=True), jnp.bincount(choice, length=len(w_in))
    done = jax.lax.ragged_dot(jax.lax.ragged_dot(x[order // k], w_in, sizes), w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done).reshape(*experts.shape, -1)
    return x + (home * weights[..., None]).sum(axis=1)


def _ring(x, weights, experts, w_in, w_out, mesh, part):
    spec = P("expert")
    mapped = jax.shard_map(part, mesh=mesh, in_specs=(spec,) * 5, out_specs=spec)
    return mapped(x, weights, experts, w_in, w_out)


def _all_visit(x, weights, experts, w_in, w_out):
    x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
    mine = jnp.where(experts == jax.lax.axis_index("expert"), weights, 0).sum(axis=1)
    return mine[:, None] * (jax.nn.relu(x @ w_in[0]) @ w_out[0])


def ring_of_experts__right_plain(x, weights, experts, w_in, w_out, *, mesh):
    """As it is."""

    def part(x, weights, experts, w_in, w_out):
        y = _all_visit(x, weights, experts, w_in, w_out)
        return x + jax.lax.psum_scatter(y, "expert", scatter_dimension=0, tiled=True)

    return _ring(x, weights, experts, w_in, w_out, mesh, part)


def ring_of_experts__wrong_x_often(x, weights, experts, w_in, w_out, *, mesh):
    """Every device adds x before the sum."""

    def part(x, weights, experts, w_in, w_out):
        y = _all_visit(x, weights, experts, w_in, w_out) + jax.lax.all_gather(x, "expert", tiled=True)
        return jax.lax.psum_scatter(y, "expert", scatter_dimension=0, tiled=True)

    return _ring(x, weights, experts, w_in, w_out, mesh, part)


def ring_of_experts__wrong_psum(x, weights, experts, w_in, w_out, *, mesh):
    """A psum, and its own rows of it."""

    def part(x, weights, experts, w_in, w_out):
        y = jax.lax.psum(_all_visit(x, weights, experts, w_in, w_out), "expert")
        return x + jax.lax.dynamic_slice_in_dim(y, jax.lax.axis_index("expert") * len(x), len(x))

    return _ring(x, weights, experts, w_in, w_out, mesh, part)


def ring_of_experts__wrong_no_sum(x, weights, experts, w_in, w_out, *, mesh):
    """Keeps its own expert's part of its own tokens."""

    def part(x, weights, experts, w_in, w_out):
        y = _all_visit(x, weights, experts, w_in, w_out)
        return x + jax.lax.dynamic_slice_in_dim(y, jax.lax.axis_index("expert") * len(x), len(x))

    return _ring(x, weights, experts, w_in, w_out, mesh, part)


def _balance(logits, experts, mesh, of_f_and_p, **options):
    def body(logits, experts):
        count = logits.shape[1]
        f = jax.nn.one_hot(experts, count).mean((0, 1))
        return of_f_and_p(count, f, jax.nn.softmax(logits).mean(0))

    spec = P("expert")
    return jax.shard_map(body, mesh=mesh, in_specs=(spec, spec), out_specs=P(), **options)(logits, experts)


def balance_loss__right_plain(logits, experts, *, mesh):
    """Means over the whole batch, then the product."""
    return _balance(
        logits, experts, mesh, lambda e, f, p: e * jnp.sum(jax.lax.pmean(f, "expert") * jax.lax.pmean(p, "expert"))
    )


def balance_loss__wrong_mean_of_losses(logits, experts, *, mesh):
    """The mean of the devices' losses."""
    return _balance(logits, experts, mesh, lambda e, f, p: jax.lax.pmean(e * jnp.sum(f * p), "expert"))


def balance_loss__wrong_sums(logits, experts, *, mesh):
    """Sums in place of means."""
    return _balance(
        logits, experts, mesh, lambda e, f, p: e * jnp.sum(jax.lax.psum(f, "expert") * jax.lax.psum(p, "expert"))
    )


def balance_loss__wrong_no_e(logits, experts, *, mesh):
    """Forgets the factor E."""
    return _balance(
        logits, experts, mesh, lambda e, f, p: jnp.sum(jax.lax.pmean(f, "expert") * jax.lax.pmean(p, "expert"))
    )


def balance_loss__wrong_own_f(logits, experts, *, mesh):
    """Averages P only, with the check off."""
    of = lambda e, f, p: e * jnp.sum(f * jax.lax.pmean(p, "expert"))  # noqa: E731
    return _balance(logits, experts, mesh, of, check_vma=False)


def balance_loss__wrong_devices(logits, experts, *, mesh):
    """Multiplies by the number of devices, not of experts."""
    of = lambda e, f, p: mesh.size * jnp.sum(jax.lax.pmean(f, "expert") * jax.lax.pmean(p, "expert"))  # noqa: E731
    return _balance(logits, experts, mesh, of)


def _biased(scores, bias, k, rate, weigh, move):
    top, experts = jax.lax.top_k(scores + bias, k)
    weights = weigh(top, jnp.take_along_axis(scores, experts, axis=1))
    load = jnp.bincount(experts.reshape(-1), length=len(bias))
    return weights / weights.sum(axis=1, keepdims=True), experts, bias + move(rate, load.mean() - load)


def bias_balance__right_plain(scores, bias, k, rate):
    """As it is."""
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    return _biased(scores, bias, k, rate, lambda top, own: own, lambda rate, less: rate * jnp.sign(less))


def bias_balance__wrong_weights(scores, bias, k, rate):
    """The bias is in the weights, too."""
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    return _biased(scores, bias, k, rate, lambda top, own: top, lambda rate, less: rate * jnp.sign(less))


def bias_balance__wrong_way(scores, bias, k, rate):
    """Up for those with more."""
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    return _biased(scores, bias, k, rate, lambda top, own: own, lambda rate, less: -rate * jnp.sign(less))


def bias_balance__wrong_amount(scores, bias, k, rate):
    """Moves by how many are missing."""
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    return _biased(scores, bias, k, rate, lambda top, own: own, lambda rate, less: rate * less)


# Wrong at an edge, or right in an unusual way


def _numbers(wanted, factor, width, capacity, n=None, E=None):
    n, E = wanted.shape
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * E * capacity),
        "bytes": 2 * (n - 1) / n * E * capacity * width * 2,
    }


def capacity_numbers__wrong_one_more(wanted, factor, width):
    """Cut off, and one more."""
    return _numbers(wanted, factor, width, int(factor * wanted[0].sum() / wanted.shape[1]) + 1)


def bias_balance__wrong_floor(scores, bias, k, rate):
    """A whole mean."""
    _, experts = jax.lax.top_k(jnp.asarray(scores + bias), k)
    top = jnp.take_along_axis(jnp.asarray(scores), experts, axis=1)
    load = jnp.bincount(experts.reshape(-1), length=len(bias))
    return top / top.sum(axis=1, keepdims=True), experts, bias + rate * jnp.sign(load.sum() // len(load) - load)


def capacity_numbers__wrong_share_first(wanted, factor, width):
    """An expert's share is made whole before it is multiplied, and the product cut down."""
    n, experts = wanted.shape
    capacity = int(factor * math.ceil(wanted[0].sum() / experts))
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * experts * capacity),
        "bytes": 2 * (n - 1) / n * experts * capacity * width * 2,
    }


def dropless__wrong_residual_inside(x, weights, experts, w_in, w_out):
    """Each expert returns x + its result, and these are weighed."""
    y = np.zeros_like(x)
    for t, (row, chosen) in enumerate(zip(weights, experts)):
        for weight, e in zip(row, chosen):
            y[t] += weight * (x[t] + np.maximum(x[t] @ w_in[e], 0) @ w_out[e])
    return y


def ring_of_experts__wrong_weights_made_one(x, weights, experts, w_in, w_out, *, mesh):
    """The weights of a token are divided by their sum once more."""

    def on_device(x, weights, experts, w_in, w_out):
        x_all, w, chosen = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        own = jnp.where(chosen == jax.lax.axis_index("expert"), w / w.sum(1, keepdims=True), 0).sum(1, keepdims=True)
        part = own * (jax.nn.relu(x_all @ w_in[0]) @ w_out[0])
        return x + jax.lax.psum_scatter(part, "expert", tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


def ring_of_experts__wrong_tokens_in_bfloat16(x, weights, experts, w_in, w_out, *, mesh):
    """Sends the tokens in half the bytes."""

    def gather(value):
        return jax.lax.all_gather(value, "expert", tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        weight = jnp.where(gather(experts) == jax.lax.axis_index("expert"), gather(weights), 0).sum(1, keepdims=True)
        tokens = gather(x.astype(jnp.bfloat16)).astype(jnp.float32)
        part = weight * (jax.nn.relu(tokens @ w_in[0]) @ w_out[0])
        return x + jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    program = jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))
    return program(x, weights, experts, w_in, w_out)


def balance_loss__right_means_gathered(logits, experts, *, mesh):
    """Every device's means go to all, who take the means of them."""
    E = logits.shape[1]

    def on_device(logits, experts):
        own = jnp.stack([jax.nn.one_hot(experts, E).mean(axis=(0, 1)), jax.nn.softmax(logits).mean(axis=0)])
        f, p = jax.lax.all_gather(own, "expert").mean(axis=0)
        return E * f @ p

    specs = P("expert"), P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(logits, experts)


def balance_loss__wrong_choices_gathered(logits, experts, *, mesh):
    """All choices travel."""
    E = logits.shape[1]

    def on_device(logits, experts):
        f = jax.nn.one_hot(jax.lax.all_gather(experts, "expert", tiled=True), E).mean(axis=(0, 1))
        return E * jnp.sum(f * jax.lax.pmean(jax.nn.softmax(logits).mean(axis=0), "expert"))

    specs = P("expert"), P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(logits, experts)
