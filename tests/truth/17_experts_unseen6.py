"""Answers to lesson 17, sixth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def exchange(buffer):
    """Row e of [experts, ...] goes to device e; row d of what comes is from device d."""
    return jax.lax.all_to_all(buffer, "expert", split_axis=0, concat_axis=0, tiled=True)


# ---------------------------------------------------------------- slots


# Right: compares every choice with all that came before it.
def slots__right_pairs(experts, num_experts, capacity):
    experts = jnp.asarray(experts)
    same = experts[:, None] == experts[None, :]
    slot = jnp.tril(same, -1).sum(axis=1)
    return slot, slot < capacity


# This student forgets that the count includes the choice itself: slots from 1.
def slots__wrong_counts_from_one(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = (jnp.cumsum(wants, axis=0) * wants).sum(axis=1)
    return slot, slot <= capacity


# This student compares with <= : "up to the capacity", so one too many is kept.
def slots__wrong_one_too_many(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    count = jnp.cumsum(wants, axis=0) - 1
    slot = jnp.take_along_axis(count, jnp.asarray(experts)[:, None], axis=1)[:, 0]
    kept = slot <= capacity
    return slot, kept


# This student lets a dropped choice have the last slot there is, so that every index is inside the buffer.
def slots__wrong_clamped(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    would = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(1)
    return jnp.minimum(would, capacity - 1), would < capacity


# This student sorts, and takes the argsort itself for the ranks (it is the inverse permutation of them).
def slots__wrong_argsort_is_rank(experts, num_experts, capacity):
    experts = jnp.asarray(experts)
    rank = jnp.argsort(experts, stable=True)
    sizes = jnp.bincount(experts, length=num_experts)
    begins = jnp.cumsum(sizes) - sizes
    slot = rank - begins[experts]
    return slot, slot < capacity


# ---------------------------------------------------------------- ring_of_experts


# Right: a table [all tokens, experts] of weights, of which a device takes its own column.
def ring_of_experts__right_column(x, weights, experts, w_in, w_out, *, mesh):
    n = mesh.shape["expert"]

    def body(x, weights, experts, w_in, w_out):
        xs = jax.lax.all_gather(x, "expert", axis=0, tiled=True)
        ws = jax.lax.all_gather(weights, "expert", axis=0, tiled=True)
        es = jax.lax.all_gather(experts, "expert", axis=0, tiled=True)
        table = jnp.einsum("tk,tke->te", ws, jax.nn.one_hot(es, n, dtype=ws.dtype))
        column = jnp.take(table, jax.lax.axis_index("expert"), axis=1)
        mine = jax.nn.relu(xs @ w_in[0]) @ w_out[0]
        back = jax.lax.psum_scatter(column[:, None] * mine, "expert", scatter_dimension=0, tiled=True)
        return back + x

    s = P("expert")
    return jax.shard_map(body, mesh=mesh, in_specs=(s, s, s, s, s), out_specs=s)(x, weights, experts, w_in, w_out)


# This student adds x to the part that every device has, before the scatter: n times x arrives.
def ring_of_experts__wrong_x_n_times(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        w = jnp.where(experts == me, weights, 0).sum(axis=1)
        y = x + w[:, None] * (jnp.maximum(x @ w_in[0], 0) @ w_out[0])
        return jax.lax.psum_scatter(y, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# This student adds up everything everywhere (an all_reduce) and cuts its own tokens out: right, but not what is allowed.
def ring_of_experts__wrong_all_reduce(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me, t = jax.lax.axis_index("expert"), len(x)
        everyone, ws, es = [jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts)]
        w = jnp.sum(jnp.where(es == me, ws, 0), axis=1, keepdims=True)
        total = jax.lax.psum(w * (jax.nn.relu(everyone @ w_in[0]) @ w_out[0]), "expert")
        return x + jax.lax.dynamic_slice_in_dim(total, me * t, t)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# This student looks at the first choice of a token only, which is right as long as k is 1.
def ring_of_experts__wrong_first_choice(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        gather = lambda a: jax.lax.all_gather(a, "expert", tiled=True)
        all_x, all_w, all_e = gather(x), gather(weights), gather(experts)
        chosen = all_e[:, 0] == me
        mine = jax.nn.relu(all_x @ w_in[0]) @ w_out[0]
        part = jnp.where(chosen[:, None], all_w[:, :1] * mine, 0)
        return x + jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# This student divides by the number of devices: takes the results of n experts for n copies, to be averaged.
def ring_of_experts__wrong_mean(x, weights, experts, w_in, w_out, *, mesh):
    n = mesh.shape["expert"]

    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        xs, ws, es = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        w = jnp.where(es == me, ws, 0).sum(1)
        part = jax.nn.relu(xs @ w_in[0]) @ w_out[0] * w[:, None]
        return x + jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True) / n

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# ---------------------------------------------------------------- moe_gradients


# Right: differentiates inside, each device its share of the mean; JAX adds up what is held as copies.
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
        share, gradients = jax.value_and_grad(lambda p: loss(p, x, y) / mesh.size)(p)
        return jax.lax.psum(share, ("data", "expert")), gradients

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student differentiates the device's own mean and forgets to divide: JAX has added the gradients up, not averaged them.
def moe_gradients__wrong_sum(params, x, y, *, mesh):
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

    def step(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        return jax.lax.pmean(value, ("data", "expert")), grads

    return jax.shard_map(step, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student reads "an expert has copies along data only" and divides its gradient by the copies, not by all the parts of the mean.
def moe_gradients__wrong_experts_by_copies(params, x, y, *, mesh):
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

    data, n = mesh.shape["data"], mesh.shape["expert"]

    def step(p, x, y):
        value, g = jax.value_and_grad(loss)(p, x, y)
        g = {"router": g["router"] / (data * n), "w_in": g["w_in"] / data, "w_out": g["w_out"] / data}
        return jax.lax.pmean(value, ("data", "expert")), g

    return jax.shard_map(step, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student writes everything by hand with the check off, and leaves the experts' gradients alone: "each device has its own experts".
def moe_gradients__wrong_experts_not_over_data(params, x, y, *, mesh):
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

    def step(p, x, y):
        value, g = jax.value_and_grad(loss)(p, x, y)
        g["router"] = jax.lax.pmean(g["router"], ("data", "expert"))
        for name in ("w_in", "w_out"):
            g[name] = g[name] / mesh.shape["expert"]
        return jax.lax.pmean(value, ("data", "expert")), g

    return jax.shard_map(step, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts), check_vma=False)(
        params, x, y
    )


# This student treats all parameters alike, as in data parallelism: with the check off, a pmean of every gradient over both axes.
def moe_gradients__wrong_all_averaged(params, x, y, *, mesh):
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

    def step(p, x, y):
        return jax.lax.pmean(jax.value_and_grad(loss)(p, x, y), ("data", "expert"))

    return jax.shard_map(step, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts), check_vma=False)(
        params, x, y
    )
