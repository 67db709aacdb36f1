"""Answers to lesson 17, seventeenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# ---- slots


def slots__right_by_sorting(experts, num_experts, capacity):
    """(slot, kept) of each choice."""
    experts = jnp.asarray(experts)
    sizes = jnp.bincount(experts, length=num_experts)
    begins = jnp.cumsum(sizes) - sizes  # where each expert's choices begin, once they are sorted
    order = jnp.argsort(experts, stable=True)
    rank = jnp.arange(len(experts)) - begins[experts[order]]
    slot = jnp.zeros_like(rank).at[order].set(rank)
    return slot, slot < capacity


# This student counted the slots from 0, and then compared as if they were counted from 1.
def slots__wrong_one_too_many(experts, num_experts, capacity):
    """(slot, kept) of each choice."""
    wants = jax.nn.one_hot(jnp.asarray(experts), num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    kept = slot <= capacity
    return slot, kept


# This student thought: a slot has to exist, so a dropped choice gets the last one (and is marked as not kept).
def slots__wrong_last_slot(experts, num_experts, capacity):
    """(slot, kept) of each choice."""
    experts = jnp.asarray(experts)
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    before = jnp.cumsum(wants, axis=0) - wants
    slot = jnp.take_along_axis(before, experts[:, None], axis=1)[:, 0]
    kept = slot < capacity
    return jnp.where(kept, slot, capacity - 1), kept


# This student numbered the slots through all buffers of the device, not in the expert's buffer.
def slots__wrong_through_all(experts, num_experts, capacity):
    """(slot, kept) of each choice."""
    experts = jnp.asarray(experts)
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    count = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return experts * capacity + count, count < capacity


# This student let the count run along the experts instead of along the choices.
def slots__wrong_axis(experts, num_experts, capacity):
    """(slot, kept) of each choice."""
    wants = jax.nn.one_hot(jnp.asarray(experts), num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=1) - 1) * wants).sum(axis=1)
    return slot, slot < capacity


# ---- dropless


def dropless__right_added_home(x, weights, experts, w_in, w_out):
    """x + the experts' results, by sorting."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    k, choice = experts.shape[1], experts.reshape(-1)
    sizes = (choice[:, None] == jnp.arange(len(w_in))).sum(axis=0).astype(jnp.int32)
    order = jnp.argsort(choice, stable=True)
    token = order // k
    hidden = jax.nn.relu(jax.lax.ragged_dot(x[token], w_in, sizes))
    done = jax.lax.ragged_dot(hidden, w_out, sizes)
    return x.at[token].add(weights.reshape(-1)[order][:, None] * done)


# This student thought: k copies of the tokens one behind the other are the rows of the choices read row by row.
def dropless__wrong_tile(x, weights, experts, w_in, w_out):
    """x + the experts' results, by sorting."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    (t, k), d = experts.shape, x.shape[1]
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    rows = jnp.tile(x, (k, 1))[order]
    sizes = jnp.bincount(choice, length=len(w_in))
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(rows, w_in, sizes)), w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done).reshape(t, k, d)
    return x + (weights[:, :, None] * home).sum(axis=1)


# This student weighed the results while they were still sorted, with weights in the order of the tokens.
def dropless__wrong_weighed_too_early(x, weights, experts, w_in, w_out):
    """x + the experts' results, by sorting."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    (t, k), d = experts.shape, x.shape[1]
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    sizes = jnp.bincount(choice, length=len(w_in))
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(x[order // k], w_in, sizes)), w_out, sizes)
    weighed = done * weights.reshape(-1, 1)
    home = jnp.zeros_like(weighed).at[order].set(weighed)
    return x + home.reshape(t, k, d).sum(axis=1)


# This student thought: what is sorted comes back to its place if one indexes with the same order again.
def dropless__wrong_sorted_twice(x, weights, experts, w_in, w_out):
    """x + the experts' results, by sorting."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    (t, k), d = experts.shape, x.shape[1]
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    sizes = jnp.bincount(choice, length=len(w_in))
    rows = jnp.repeat(x, k, axis=0)[order]
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(rows, w_in, sizes)), w_out, sizes)
    home = done[order].reshape(t, k, d)
    return x + jnp.einsum("tk,tkd->td", weights, home)


# This student added x to each choice's result before weighing, which is the same only where a token's weights add up to 1.
def dropless__wrong_x_weighed_too(x, weights, experts, w_in, w_out):
    """x + the experts' results, by sorting."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    (t, k), d = experts.shape, x.shape[1]
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    sizes = jnp.bincount(choice, length=len(w_in))
    rows = x[order // k]
    done = rows + jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(rows, w_in, sizes)), w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done).reshape(t, k, d)
    return jnp.einsum("tk,tkd->td", weights, home)


# ---- moe_gradients


def differing(value, axes):
    """The same value, marked as one that may differ along these axes."""
    return jax.lax.pcast(value, axes, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(value, axes)


def moe_gradients__right_by_hand(params, x, y, *, mesh):
    """(loss, gradients) of the mean over all tokens."""
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

    everywhere = ("data", "expert")
    missing = {"router": everywhere, "w_in": "data", "w_out": "data"}  # along these a parameter has copies

    def on_device(p, x, y):
        own = {name: differing(p[name], missing[name]) for name in p}  # so that JAX adds nothing up
        value, grads = jax.value_and_grad(loss)(own, x, y)
        means = {
            "router": jax.lax.pmean(grads["router"], everywhere),
            # an expert's gradient has come from all tokens of its row of the mesh: a sum over `expert` already
            "w_in": jax.lax.pmean(grads["w_in"], "data") / mesh.shape["expert"],
            "w_out": jax.lax.pmean(grads["w_out"], "data") / mesh.shape["expert"],
        }
        return jax.lax.pmean(value, everywhere), means

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student thought: tokens are cut over both axes, so every gradient is averaged over both (the experts' too).
def moe_gradients__wrong_all_over_both(params, x, y, *, mesh):
    """(loss, gradients) of the mean over all tokens."""
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
        own = {
            "router": differing(p["router"], ("data", "expert")),
            "w_in": differing(p["w_in"], "data"),
            "w_out": differing(p["w_out"], "data"),
        }
        found = jax.value_and_grad(loss)(own, x, y)
        return jax.tree.map(lambda a: jax.lax.pmean(a, ("data", "expert")), found)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student thought: an expert has copies along `data` only, so the mean over `data` is all that its gradient needs.
def moe_gradients__wrong_not_divided(params, x, y, *, mesh):
    """(loss, gradients) of the mean over all tokens."""
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

    copies = {"router": ("data", "expert"), "w_in": ("data",), "w_out": ("data",)}

    def on_device(p, x, y):
        own = {name: differing(p[name], copies[name]) for name in p}
        value, grads = jax.value_and_grad(loss)(own, x, y)
        grads = {name: jax.lax.pmean(grads[name], copies[name]) for name in grads}
        return jax.lax.pmean(value, ("data", "expert")), grads

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student thought: JAX has brought the copies' gradients together already, so only the loss is left to be averaged.
def moe_gradients__wrong_sum_taken_for_mean(params, x, y, *, mesh):
    """(loss, gradients) of the mean over all tokens."""
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
        return jax.lax.pmean(value, ("data", "expert")), grads

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student thought: all tokens of an expert have come to it by all_to_all, so nothing is left to be added over `data`
# either, and switched off the check that said otherwise.
def moe_gradients__wrong_own_row_only(params, x, y, *, mesh):
    """(loss, gradients) of the mean over all tokens."""
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
        n = mesh.shape["expert"]
        grads = {
            "router": jax.lax.pmean(grads["router"], ("data", "expert")),
            "w_in": grads["w_in"] / n,
            "w_out": grads["w_out"] / n,
        }
        return jax.lax.pmean(value, ("data", "expert")), grads

    specs = {"in_specs": (layouts, both, both), "out_specs": (P(), layouts)}
    return jax.shard_map(on_device, mesh=mesh, check_vma=False, **specs)(params, x, y)
