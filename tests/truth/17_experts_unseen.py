"""Answers to lesson 17, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def route__right_sorted(x, router, k):
    """A stable sort of the negative logits."""
    logits = jnp.einsum("td,de->te", x, router)
    experts = jnp.argsort(-logits, axis=1, stable=True)[:, :k]
    chosen = jnp.take_along_axis(logits, experts, axis=1)
    e = jnp.exp(chosen - chosen[:, :1])
    return e / e.sum(1, keepdims=True), experts


def route__wrong_all_experts(x, router, k):
    """Softmax over all E."""
    return jax.lax.top_k(jax.nn.softmax(x @ router), k)


def route__wrong_order(x, router, k):
    """(experts, weights)."""
    logits, experts = jax.lax.top_k(x @ router, k)
    return experts, jax.nn.softmax(logits)


def route__wrong_tokens(x, router, k):
    """Softmax over the tokens."""
    logits, experts = jax.lax.top_k(x @ router, k)
    return jax.nn.softmax(logits, axis=0), experts


def route__wrong_smallest_first(x, router, k):
    """The largest last."""
    logits = x @ router
    experts = jnp.argsort(logits, axis=1)[:, -k:]
    return jax.nn.softmax(jnp.take_along_axis(logits, experts, axis=1)), experts


def route__wrong_no_softmax(x, router, k):
    """The logits themselves."""
    return jax.lax.top_k(x @ router, k)


def route__wrong_two(x, router, k):
    """Always two."""
    logits, experts = jax.lax.top_k(x @ router, 2)
    return jax.nn.softmax(logits), experts


def slots__right_pairs(experts, num_experts, capacity):
    """Counts for each choice the earlier ones that are alike."""
    experts = jnp.asarray(experts)
    place = jnp.arange(len(experts))
    earlier = (experts[:, None] == experts) & (place < place[:, None])
    slot = earlier.sum(axis=1)
    return slot, slot < capacity


def slots__wrong_from_one(experts, num_experts, capacity):
    """The count with the choice itself."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = (jnp.cumsum(wants, axis=0) * wants).sum(axis=1)
    return slot, slot <= capacity


def slots__wrong_at_capacity(experts, num_experts, capacity):
    """One slot too many."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return slot, slot <= capacity


def slots__wrong_clipped(experts, num_experts, capacity):
    """A dropped choice gets the last slot."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return jnp.minimum(slot, capacity - 1), slot < capacity


def slots__wrong_dropped(experts, num_experts, capacity):
    """What was dropped in place of what was kept."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return slot, slot >= capacity


def slots__wrong_axis(experts, num_experts, capacity):
    """Counts along the experts."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=1) - 1) * wants).sum(axis=1)
    return slot, slot < capacity


def slots__wrong_from_the_end(experts, num_experts, capacity):
    """The last choices first."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants[::-1], axis=0)[::-1] - 1) * wants).sum(axis=1)
    return slot, slot < capacity


def _balanced(body, check=True):
    def program(logits, experts, mesh):
        return jax.shard_map(body, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P(), check_vma=check)(
            logits, experts
        )

    return program


def balance_loss__right_sums(logits, experts, *, mesh):
    """Sums of both, one psum, divided by the counts."""

    def on_device(logits, experts):
        t, e = logits.shape
        chosen = (experts[..., None] == jnp.arange(e)).sum((0, 1)).astype(jnp.float32)
        f, p = jax.lax.psum((chosen, jax.nn.softmax(logits, axis=-1).sum(0)), "expert")
        n = jax.lax.axis_size("expert")
        return e * jnp.dot(f / (n * experts.size), p / (n * t))

    return _balanced(on_device)(logits, experts, mesh)


def balance_loss__wrong_local(logits, experts, *, mesh):
    """The mean of the devices' own losses."""

    def on_device(logits, experts):
        e = logits.shape[1]
        f = jax.nn.one_hot(experts, e).mean((0, 1))
        p = jax.nn.softmax(logits).mean(0)
        return jax.lax.pmean(e * (f * p).sum(), "expert")

    return _balanced(on_device)(logits, experts, mesh)


def balance_loss__wrong_psum(logits, experts, *, mesh):
    """psum of means."""

    def on_device(logits, experts):
        e = logits.shape[1]
        f, p = jax.lax.psum((jax.nn.one_hot(experts, e).mean((0, 1)), jax.nn.softmax(logits).mean(0)), "expert")
        return e * (f * p).sum()

    return _balanced(on_device)(logits, experts, mesh)


def balance_loss__wrong_devices(logits, experts, *, mesh):
    """The number of devices for that of experts."""
    n = mesh.shape["expert"]

    def on_device(logits, experts):
        e = logits.shape[1]
        f, p = jax.lax.pmean((jax.nn.one_hot(experts, e).mean((0, 1)), jax.nn.softmax(logits).mean(0)), "expert")
        return n * (f * p).sum()

    return _balanced(on_device)(logits, experts, mesh)


def balance_loss__wrong_no_factor(logits, experts, *, mesh):
    """Without E."""

    def on_device(logits, experts):
        e = logits.shape[1]
        f, p = jax.lax.pmean((jax.nn.one_hot(experts, e).mean((0, 1)), jax.nn.softmax(logits).mean(0)), "expert")
        return (f * p).sum()

    return _balanced(on_device)(logits, experts, mesh)


def balance_loss__wrong_k_times(logits, experts, *, mesh):
    """f of a token, not of a choice: k times too large."""

    def on_device(logits, experts):
        e = logits.shape[1]
        f, p = jax.lax.pmean((jax.nn.one_hot(experts, e).sum(1).mean(0), jax.nn.softmax(logits).mean(0)), "expert")
        return e * (f * p).sum()

    return _balanced(on_device)(logits, experts, mesh)


def balance_loss__wrong_stopped(logits, experts, *, mesh):
    """The gradient of P is stopped in place of that of f."""

    def on_device(logits, experts):
        e = logits.shape[1]
        f, p = jax.lax.pmean(
            (jax.nn.one_hot(experts, e).mean((0, 1)), jax.lax.stop_gradient(jax.nn.softmax(logits).mean(0))), "expert"
        )
        return e * (f * p).sum()

    return _balanced(on_device)(logits, experts, mesh)


def balance_loss__wrong_gathered(logits, experts, *, mesh):
    """All rows travel."""

    def on_device(logits, experts):
        logits, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (logits, experts))
        e = logits.shape[1]
        return jax.lax.pmean(
            e * (jax.nn.one_hot(experts, e).mean((0, 1)) * jax.nn.softmax(logits).mean(0)).sum(), "expert"
        )

    return _balanced(on_device)(logits, experts, mesh)


def bias_balance__right_bincount(scores, bias, k, rate):
    """bincount, and two comparisons."""
    _, experts = jax.lax.top_k(scores + bias, k)
    chosen = scores[jnp.arange(len(scores))[:, None], experts]
    load = jnp.bincount(experts.ravel(), length=scores.shape[1])
    mean = experts.size / scores.shape[1]
    return chosen / chosen.sum(-1, keepdims=True), experts, bias + rate * (load < mean) - rate * (load > mean)


def bias_balance__wrong_biased_weights(scores, bias, k, rate):
    """Weights of score + bias."""
    chosen, experts = jax.lax.top_k(scores + bias, k)
    load = jnp.bincount(experts.ravel(), length=scores.shape[1])
    return chosen / chosen.sum(1, keepdims=True), experts, bias + rate * jnp.sign(load.mean() - load)


def bias_balance__wrong_sign(scores, bias, k, rate):
    """Up for the busy ones."""
    _, experts = jax.lax.top_k(scores + bias, k)
    chosen = jnp.take_along_axis(scores, experts, axis=1)
    load = jnp.bincount(experts.ravel(), length=scores.shape[1])
    return chosen / chosen.sum(1, keepdims=True), experts, bias + rate * jnp.sign(load - load.mean())


def bias_balance__wrong_proportional(scores, bias, k, rate):
    """By as much as is missing."""
    _, experts = jax.lax.top_k(scores + bias, k)
    chosen = jnp.take_along_axis(scores, experts, axis=1)
    load = jnp.bincount(experts.ravel(), length=scores.shape[1])
    return chosen / chosen.sum(1, keepdims=True), experts, bias + rate * (load.mean() - load)


def bias_balance__wrong_at_mean(scores, bias, k, rate):
    """Down where the load is just the mean."""
    _, experts = jax.lax.top_k(scores + bias, k)
    chosen = jnp.take_along_axis(scores, experts, axis=1)
    load = jnp.bincount(experts.ravel(), length=scores.shape[1])
    return chosen / chosen.sum(1, keepdims=True), experts, bias + jnp.where(load < load.mean(), rate, -rate)


def bias_balance__wrong_no_bias(scores, bias, k, rate):
    """Chosen by the scores alone."""
    chosen, experts = jax.lax.top_k(scores, k)
    load = jnp.bincount(experts.ravel(), length=scores.shape[1])
    return chosen / chosen.sum(1, keepdims=True), experts, bias + rate * jnp.sign(load.mean() - load)


def bias_balance__wrong_softmax(scores, bias, k, rate):
    """A softmax of the scores."""
    _, experts = jax.lax.top_k(scores + bias, k)
    chosen = jnp.take_along_axis(scores, experts, axis=1)
    load = jnp.bincount(experts.ravel(), length=scores.shape[1])
    return jax.nn.softmax(chosen), experts, bias + rate * jnp.sign(load.mean() - load)


def bias_balance__wrong_not_divided(scores, bias, k, rate):
    """Divided by the sum of all scores."""
    _, experts = jax.lax.top_k(scores + bias, k)
    chosen = jnp.take_along_axis(scores, experts, axis=1)
    load = jnp.bincount(experts.ravel(), length=scores.shape[1])
    return chosen / scores.sum(1, keepdims=True), experts, bias + rate * jnp.sign(load.mean() - load)
