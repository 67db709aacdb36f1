"""Answers to lesson 17, nineteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# ---------------------------------------------------------------- slots


def slots__right_compare(experts, num_experts, capacity):
    experts = jnp.asarray(experts)
    same = experts[:, None] == experts[None, :]  # [choice, other choice]
    slot = jnp.sum(jnp.tril(same, -1), axis=1)  # only those before it
    return slot, slot < capacity


# Thought that a slot may be as large as the capacity, though slots are counted from 0.
def slots__wrong_one_too_many(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return slot, slot <= capacity


# Thought that a dropped choice must still have a slot that exists, and gave it the last one.
def slots__wrong_clipped(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    count = jnp.sum(jnp.cumsum(wants, axis=0) * wants, axis=1)
    return jnp.minimum(count, capacity) - 1, count <= capacity


# Thought that the experts are counted along a row of the one-hot array (axis 1), not the choices down a column.
def slots__wrong_axis(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=1) - 1) * wants).sum(axis=1)
    return slot, slot < capacity


# Sorted the choices by expert and counted within each group, but gave back the counts in sorted order.
def slots__wrong_not_home(experts, num_experts, capacity):
    experts = jnp.asarray(experts)
    order = jnp.argsort(experts, stable=True)
    sizes = jnp.bincount(experts, length=num_experts)
    first = jnp.cumsum(sizes) - sizes
    slot = jnp.arange(len(experts)) - first[experts[order]]
    return slot, slot < capacity


# ---------------------------------------------------------------- bias_balance


def bias_balance__right_counts(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    tokens, num_experts = scores.shape
    experts = jax.lax.top_k(scores + bias, k)[1]
    picked = scores[jnp.arange(tokens)[:, None], experts]
    load = jnp.zeros(num_experts, int).at[experts.reshape(-1)].add(1)
    step = jnp.sign(tokens * k - num_experts * load)  # in whole numbers: mean - load, times E
    return picked / picked.sum(axis=1, keepdims=True), experts, bias + rate * step


# Took the weights from what top_k returns, so the bias weighs as well as chooses.
def bias_balance__wrong_bias_weighs(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    top, experts = jax.lax.top_k(scores + bias, k)
    load = jnp.bincount(experts.reshape(-1), length=len(bias))
    return top / top.sum(axis=1, keepdims=True), experts, bias + rate * jnp.sign(load.mean() - load)


# Thought that weights of k experts are always a softmax of their k numbers, as in `route`.
def bias_balance__wrong_softmax(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    _, experts = jax.lax.top_k(scores + bias, k)
    weights = jax.nn.softmax(jnp.take_along_axis(scores, experts, axis=1), axis=-1)
    load = jnp.bincount(experts.reshape(-1), length=len(bias))
    return weights, experts, bias + rate * jnp.sign(load.mean() - load)


# Thought that a bias moves the further, the further the load is from the mean, as with a gradient.
def bias_balance__wrong_proportional(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    _, experts = jax.lax.top_k(scores + bias, k)
    weights = jnp.take_along_axis(scores, experts, axis=1)
    load = jnp.bincount(experts.reshape(-1), length=len(bias))
    return weights / weights.sum(axis=1, keepdims=True), experts, bias + rate * (load.mean() - load) / load.mean()


# Thought of two cases only, more than the mean or not, so that an expert with just the mean goes up.
def bias_balance__wrong_two_cases(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    _, experts = jax.lax.top_k(scores + bias, k)
    weights = jnp.take_along_axis(scores, experts, axis=1)
    load = jax.nn.one_hot(experts, len(bias)).sum(axis=(0, 1))
    new_bias = jnp.where(load > load.mean(), bias - rate, bias + rate)
    return weights / weights.sum(axis=1, keepdims=True), experts, new_bias


# ---------------------------------------------------------------- moe_gradients


def moe_gradients__right_inside(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def loss(p, x, y):
        logits = x @ p["router"]
        gate = jnp.max(jax.nn.softmax(logits), axis=1, keepdims=True)
        mine = jax.nn.one_hot(jnp.argmax(logits, axis=1), mesh.shape["expert"])
        there = exchange(mine.T[:, :, None] * x)
        back = exchange(jax.nn.relu(there @ p["w_in"][0]) @ p["w_out"][0])
        return jnp.mean((x + gate * jnp.einsum("tn,ntd->td", mine, back) - y) ** 2)

    def on_device(p, x, y):
        return jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), ("data", "expert")))(p)

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))
    return run(params, x, y)


# Thought that only the copies along `data` are averaged, and what the different experts lose is added up.
def moe_gradients__wrong_sum_over_experts(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def loss(p, x, y):
        logits = x @ p["router"]
        gate = jnp.max(jax.nn.softmax(logits), axis=1, keepdims=True)
        mine = jax.nn.one_hot(jnp.argmax(logits, axis=1), mesh.shape["expert"])
        there = exchange(mine.T[:, :, None] * x)
        back = exchange(jax.nn.relu(there @ p["w_in"][0]) @ p["w_out"][0])
        return jnp.mean((x + gate * jnp.einsum("tn,ntd->td", mine, back) - y) ** 2)

    def total(p, x, y):
        return jax.lax.psum(jax.lax.pmean(loss(p, x, y), "data"), "expert")

    mean = jax.shard_map(total, mesh=mesh, in_specs=(layouts, both, both), out_specs=P())
    return jax.value_and_grad(mean)(params, x, y)


# Differentiated each device's own loss and averaged afterwards, not seeing that JAX has added the gradients up already.
def moe_gradients__wrong_already_added(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def loss(p, x, y):
        logits = x @ p["router"]
        gate = jnp.max(jax.nn.softmax(logits), axis=1, keepdims=True)
        mine = jax.nn.one_hot(jnp.argmax(logits, axis=1), mesh.shape["expert"])
        there = exchange(mine.T[:, :, None] * x)
        back = exchange(jax.nn.relu(there @ p["w_in"][0]) @ p["w_out"][0])
        return jnp.mean((x + gate * jnp.einsum("tn,ntd->td", mine, back) - y) ** 2)

    def on_device(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        grads = {
            "router": jax.lax.pmean(grads["router"], ("data", "expert")),
            "w_in": jax.lax.pmean(grads["w_in"], "data"),
            "w_out": jax.lax.pmean(grads["w_out"], "data"),
        }
        return jax.lax.pmean(value, ("data", "expert")), grads

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# Thought that every gradient is averaged over both axes, the experts' too, though along `expert` they are different ones.
def moe_gradients__wrong_experts_mixed(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def loss(p, x, y):
        logits = x @ p["router"]
        gate = jnp.max(jax.nn.softmax(logits), axis=1, keepdims=True)
        mine = jax.nn.one_hot(jnp.argmax(logits, axis=1), mesh.shape["expert"])
        there = exchange(mine.T[:, :, None] * x)
        back = exchange(jax.nn.relu(there @ p["w_in"][0]) @ p["w_out"][0])
        return jnp.mean((x + gate * jnp.einsum("tn,ntd->td", mine, back) - y) ** 2)

    def on_device(p, x, y):
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), ("data", "expert")))(p)
        return value, jax.tree.map(lambda g: jax.lax.pmean(g, ("data", "expert")), grads)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# Added up by hand with the check off, the experts averaged over their copies only: but n devices' losses have come to them by all_to_all.
def moe_gradients__wrong_not_divided(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def loss(p, x, y):
        logits = x @ p["router"]
        gate = jnp.max(jax.nn.softmax(logits), axis=1, keepdims=True)
        mine = jax.nn.one_hot(jnp.argmax(logits, axis=1), mesh.shape["expert"])
        there = exchange(mine.T[:, :, None] * x)
        back = exchange(jax.nn.relu(there @ p["w_in"][0]) @ p["w_out"][0])
        return jnp.mean((x + gate * jnp.einsum("tn,ntd->td", mine, back) - y) ** 2)

    def on_device(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        router = jax.lax.pmean(grads["router"], ("data", "expert"))
        w_in, w_out = (jax.lax.pmean(grads[name], "data") for name in ("w_in", "w_out"))
        return jax.lax.pmean(value, ("data", "expert")), {"router": router, "w_in": w_in, "w_out": w_out}

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts), check_vma=False)
    return run(params, x, y)
