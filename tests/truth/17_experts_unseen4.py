"""Answers to lesson 17, fourth batch, written by a reader of the notebook only."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

# ------------------------------------------------------------------ capacity_numbers


def capacity_numbers__right_counted(wanted, factor, width):
    """Counted slot by slot in Python."""
    rows = [[int(c) for c in row] for row in np.asarray(wanted)]
    n, num_experts, choices = len(rows), len(rows[0]), sum(rows[0])
    capacity = math.ceil(factor * choices / num_experts)
    lost = sum(max(0, c - capacity) for row in rows for c in row)
    unused = sum(max(0, capacity - c) for row in rows for c in row)
    to_others = (num_experts - num_experts // n) * capacity
    return {
        "capacity": capacity,
        "dropped": lost / (n * choices),
        "empty": unused / (n * num_experts * capacity),
        "bytes": 2 * to_others * width * 2,
    }


# This student lets devices share an expert's slots: only what all of them together want too much is dropped.
def capacity_numbers__wrong_slots_shared(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, num_experts = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / num_experts))
    kept = np.minimum(wanted.sum(axis=0), n * capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * num_experts * capacity),
        "bytes": 2 * (n - 1) / n * num_experts * capacity * width * 2,
    }


# This student takes one expert for each device for granted: all but one expert's slots are sent.
def capacity_numbers__wrong_one_expert_stays(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, num_experts = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / num_experts))
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * num_experts * capacity),
        "bytes": 2 * (num_experts - 1) * capacity * width * 2,
    }


# This student rounds the capacity to the nearest whole number.
def capacity_numbers__wrong_rounded(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, num_experts = wanted.shape
    capacity = max(1, round(float(factor * wanted[0].sum() / num_experts)))
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * num_experts * capacity),
        "bytes": 2 * (n - 1) / n * num_experts * capacity * width * 2,
    }


# This student gives the empty slots as a part of the choices, and counts the way there only.
def capacity_numbers__wrong_part_of_what(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, num_experts = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / num_experts))
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": (n * num_experts * capacity - kept) / wanted.sum(),
        "bytes": (n - 1) / n * num_experts * capacity * width * 2,
    }


# ------------------------------------------------------------------ ring_of_experts


def ring_of_experts__right_dense_weights(x, weights, experts, w_in, w_out, *, mesh):
    """The weights as a table of tokens by experts, of which a device takes its column."""
    n, along = mesh.shape["expert"], P("expert")

    def on_device(x, weights, experts, w_in, w_out):
        all_x, all_weights, all_experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        table = jnp.einsum("tk,tke->et", all_weights, jax.nn.one_hot(all_experts, n))
        mine = table[jax.lax.axis_index("expert")]
        made = jax.nn.relu(all_x @ w_in[0]) @ w_out[0] * mine[:, None]
        return x + jax.lax.psum_scatter(made, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(along,) * 5, out_specs=along)(x, weights, experts, w_in, w_out)


# This student adds the gathered x to the part before the sum, so that it is added once for each device.
def ring_of_experts__wrong_x_n_times(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        mine = jnp.where(experts == me, weights, 0).sum(axis=1, keepdims=True)
        part = x + mine * (jax.nn.relu(x @ w_in[0]) @ w_out[0])
        return jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    specs = (P("expert"),) * 5
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("expert"))(x, weights, experts, w_in, w_out)


# This student looks at the first choice of a token only.
def ring_of_experts__wrong_first_choice(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        tokens, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        mine = jnp.where(experts[:, :1] == me, weights[:, :1], 0)
        part = mine * (jax.nn.relu(tokens @ w_in[0]) @ w_out[0])
        return x + jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    specs = (P("expert"),) * 5
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("expert"))(x, weights, experts, w_in, w_out)


# This student ends with a psum and cuts the own tokens out of it: right values, twice the bytes.
def ring_of_experts__wrong_psum(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        tokens, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        mine = jnp.where(experts == me, weights, 0).sum(axis=1, keepdims=True)
        total = jax.lax.psum(mine * (jax.nn.relu(tokens @ w_in[0]) @ w_out[0]), "expert")
        return x + jax.lax.dynamic_slice_in_dim(total, me * len(x), len(x))

    specs = (P("expert"),) * 5
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("expert"))(x, weights, experts, w_in, w_out)


# This student adds up what the chosen experts say, without their weights: being chosen is the weight.
def ring_of_experts__wrong_mask_only(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        tokens, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, experts))
        chosen = (experts == me).any(axis=1, keepdims=True)
        part = jnp.where(chosen, jax.nn.relu(tokens @ w_in[0]) @ w_out[0], 0)
        return x + jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    specs = (P("expert"),) * 4
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("expert"))(x, experts, w_in, w_out)


# ------------------------------------------------------------------ moe_gradients


def _given(mesh):
    """The lines that the notebook's answer cell gives: (layouts, both, loss)."""
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

    return layouts, both, loss


def moe_gradients__right_inside_divided(params, x, y, *, mesh):
    """Inside, the device's own loss: what arrives is the gradient of the sum of all of them."""
    layouts, both, loss = _given(mesh)

    def on_device(p, x, y):
        value, gradients = jax.value_and_grad(loss)(p, x, y)
        return jax.lax.pmean(value, ("data", "expert")), jax.tree.map(lambda g: g / mesh.size, gradients)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student knew that JAX adds up what is held as copies, and forgot that means were added.
def moe_gradients__wrong_sum_of_means(params, x, y, *, mesh):
    layouts, both, loss = _given(mesh)

    def on_device(p, x, y):
        value, gradients = jax.value_and_grad(loss)(p, x, y)
        return jax.lax.pmean(value, ("data", "expert")), gradients

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student divides each gradient by the number of its copies: the router's by all devices, the experts' by those along data.
def moe_gradients__wrong_by_copies(params, x, y, *, mesh):
    layouts, both, loss = _given(mesh)

    def on_device(p, x, y):
        value, g = jax.value_and_grad(loss)(p, x, y)
        copies = {
            "router": mesh.shape["data"] * mesh.shape["expert"],
            "w_in": mesh.shape["data"],
            "w_out": mesh.shape["data"],
        }
        return jax.lax.pmean(value, ("data", "expert")), {name: g[name] / copies[name] for name in g}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student averages the finished gradients over both axes once more, also those of different experts.
def moe_gradients__wrong_experts_averaged(params, x, y, *, mesh):
    layouts, both, loss = _given(mesh)

    def on_device(p, x, y):
        value, g = jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), ("data", "expert")))(p)
        return value, jax.tree.map(lambda g: jax.lax.pmean(g, ("data", "expert")), g)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student takes `data` for the only axis with different tokens: the loss is averaged over it, and over `expert` only to be shown.
def moe_gradients__wrong_data_only(params, x, y, *, mesh):
    layouts, both, loss = _given(mesh)

    def on_device(p, x, y):
        value, g = jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(p)
        return jax.lax.pmean(value, "expert"), g

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)
