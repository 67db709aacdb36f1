"""Answers to lesson 17, tenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def exchange(buffer):
    """Row e of [experts, ...] goes to device e; row d of what comes is from device d."""
    return jax.lax.all_to_all(buffer, "expert", split_axis=0, concat_axis=0, tiled=True)


# ---------------------------------------------------------------- dropless


# Right: nothing is unsorted; every sorted row is weighed and added to its token where it lies.
def dropless__right_added_home(x, weights, experts, w_in, w_out):
    """x + the experts' results, by sorting."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    choice, k = experts.reshape(-1), experts.shape[1]
    order = jnp.argsort(choice)
    sizes, token = jnp.bincount(choice, length=len(w_in)), order // k
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(x[token], w_in, sizes)), w_out, sizes)
    return x.at[token].add(weights.reshape(-1)[order][:, None] * done)


# Expands x by tile, all tokens k times one behind the other, while the choices are read token by token; right with k = 1.
def dropless__wrong_tiled(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    T, k = experts.shape
    choice = experts.reshape(-1)
    order = jnp.argsort(choice)
    sizes = jnp.bincount(choice, length=len(w_in))
    rows = jnp.tile(x, (k, 1))[order]
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(rows, w_in, sizes)), w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done).reshape(T, k, -1)
    return x + (weights[:, :, None] * home).sum(axis=1)


# Adds the sorted rows to their tokens, but weighs them by the weights as they stand, unsorted.
def dropless__wrong_weights_unsorted(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    choice, k = experts.reshape(-1), experts.shape[1]
    order = jnp.argsort(choice)
    sizes, token = jnp.bincount(choice, length=len(w_in)), order // k
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(x[token], w_in, sizes)), w_out, sizes)
    return x.at[token].add(weights.reshape(-1, 1) * done)


# Takes the counts of the different experts that occur, filled up with 0 at the end: one nobody wants in the middle moves all
# groups behind it to another matrix.
def dropless__wrong_unique(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    T, k = experts.shape
    choice = experts.reshape(-1)
    order = jnp.argsort(choice)
    _, sizes = jnp.unique(choice, return_counts=True, size=len(w_in))
    rows = jnp.repeat(x, k, axis=0)[order]
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(rows, w_in, sizes)), w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done).reshape(T, k, -1)
    return x + (weights[:, :, None] * home).sum(axis=1)


# Writes each result straight to its token, "it has to be written"; but with k > 1 two results have the same token, and
# only one of them stays.
def dropless__wrong_set_at_token(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    choice, k = experts.reshape(-1), experts.shape[1]
    order = jnp.argsort(choice)
    sizes, token = jnp.bincount(choice, length=len(w_in)), order // k
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(x[token], w_in, sizes)), w_out, sizes)
    return x + jnp.zeros_like(x).at[token].set(weights.reshape(-1)[order][:, None] * done)


# ---------------------------------------------------------------- ring_of_experts


# Right: x itself rides along in the scatter, put there by its own device alone.
def ring_of_experts__right_rides_along(x, weights, experts, w_in, w_out, *, mesh):
    """x + the experts' results; all tokens visit all experts."""

    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        every, all_weights, all_experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(all_experts == me, all_weights, 0).sum(axis=1, keepdims=True)
        home = (jnp.arange(len(every)) // len(x) == me)[:, None]
        part = jnp.where(home, every, 0) + gate * (jax.nn.relu(every @ w_in[0]) @ w_out[0])
        return jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# Adds x to the parts before they are added up: then it comes in n times.
def ring_of_experts__wrong_x_n_times(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(experts == me, weights, 0).sum(axis=1)
        y = x + gate[:, None] * (jax.nn.relu(x @ w_in[0]) @ w_out[0])
        return jax.lax.psum_scatter(y, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# Adds everything up on every device by a psum, and cuts its own tokens out of it: right values, an all_reduce in place of the
# reduce_scatter.
def ring_of_experts__wrong_psum_and_slice(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me, size = jax.lax.axis_index("expert"), len(x)
        every, all_weights, all_experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(all_experts == me, all_weights, 0).sum(axis=1)
        part = gate[:, None] * (jax.nn.relu(every @ w_in[0]) @ w_out[0])
        total = jax.lax.psum(part, "expert")
        return x + jax.lax.dynamic_slice_in_dim(total, me * size, size)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# Takes column e of `weights` for the weight of expert e, as if they were [T, E]; they are those of the k choices.
def ring_of_experts__wrong_column_of_expert(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        every, all_weights, all_experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        chosen = (all_experts == me).any(axis=1)
        gate = jnp.where(chosen, all_weights[:, me], 0)
        part = gate[:, None] * (jax.nn.relu(every @ w_in[0]) @ w_out[0])
        return x + jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# Gathers along a new axis 1 and flattens: token 0 of all devices, then token 1 of all; the scatter hands them out block by
# block, so the results come home to other tokens.
def ring_of_experts__wrong_side_by_side(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")

        def everybodys(a):
            return jax.lax.all_gather(a, "expert", axis=1).reshape(-1, a.shape[-1])

        every, all_weights, all_experts = everybodys(x), everybodys(weights), everybodys(experts)
        gate = jnp.where(all_experts == me, all_weights, 0).sum(axis=1)
        part = gate[:, None] * (jax.nn.relu(every @ w_in[0]) @ w_out[0])
        return x + jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# ---------------------------------------------------------------- moe_gradients


# Right: everything marked as varying, each device's own gradients, and by hand what is to be averaged over which axis.
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

    def on_device(p, x, y):
        axes = {"router": ("data", "expert"), "w_in": ("data",), "w_out": ("data",)}  # where there are copies
        p = {name: jax.lax.pcast(p[name], axes[name], to="varying") for name in p}
        value, grads = jax.value_and_grad(loss)(p, x, y)
        n = mesh.shape["expert"]  # an expert has the gradients of n devices' means, added up
        grads = {name: jax.lax.pmean(g, axes[name]) / (1 if name == "router" else n) for name, g in grads.items()}
        return jax.lax.pmean(value, ("data", "expert")), grads

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))
    return run(params, x, y)


# Averages over the copies along `data`, and adds up along `expert`, because there the losses are those of different experts.
def moe_gradients__wrong_sum_over_expert(params, x, y, *, mesh):
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

    return jax.value_and_grad(jax.shard_map(total, mesh=mesh, in_specs=(layouts, both, both), out_specs=P()))(
        params, x, y
    )


# "The router's is averaged over both axes, an expert's over data only": forgets that an expert's is a sum over n devices' means.
def moe_gradients__wrong_experts_not_divided(params, x, y, *, mesh):
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
        copies = {"router": ("data", "expert"), "w_in": ("data",), "w_out": ("data",)}
        p = {name: jax.lax.pcast(p[name], copies[name], to="varying") for name in p}
        value, grads = jax.value_and_grad(loss)(p, x, y)
        grads = {name: jax.lax.pmean(g, copies[name]) for name, g in grads.items()}
        return jax.lax.pmean(value, ("data", "expert")), grads

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# The tokens are cut over both axes, so every gradient is averaged over both: the experts get each other's.
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

    def on_device(p, x, y):
        copies = {"router": ("data", "expert"), "w_in": ("data",), "w_out": ("data",)}
        p = {name: jax.lax.pcast(p[name], copies[name], to="varying") for name in p}
        return jax.lax.pmean(jax.value_and_grad(loss)(p, x, y), ("data", "expert"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# Averages gradients along `data`, "the axis of copies", and divides the experts' by n; JAX complains that the router's may differ
# along `expert`, so the check is turned off: one column's router gradient is returned for all.
def moe_gradients__wrong_check_off(params, x, y, *, mesh):
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
        grads = jax.lax.pmean(grads, "data")
        for name in ("w_in", "w_out"):
            grads[name] = grads[name] / mesh.shape["expert"]
        return jax.lax.pmean(value, ("data", "expert")), grads

    specs = dict(in_specs=(layouts, both, both), out_specs=(P(), layouts), check_vma=False)
    return jax.shard_map(on_device, mesh=mesh, **specs)(params, x, y)
