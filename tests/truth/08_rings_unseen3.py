"""Answers to lesson 08, third batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]

# ---------------------------------------------------------------- deadlock_or_not

deadlock_or_not__right_all = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}

# In an open ring device 0 waits for a block that nobody sends, and device 3 has nobody to send to.
deadlock_or_not__wrong_open = {**deadlock_or_not__right_all, "open_ring": "hangs"}

# A cond whose condition differs from device to device makes them miss each other, wherever the psum is.
deadlock_or_not__wrong_cond = {**deadlock_or_not__right_all, "sum_then_branch": "hangs"}

# Within one process JAX has all the devices, and process 0 decides for everybody, so an if in Python is the same for all.
deadlock_or_not__wrong_process = {**deadlock_or_not__right_all, "only_process_0_sums": "finishes"}

# A psum of one device alone is its own number; only loops make devices wait, and any loop with me() in its condition has different lengths.
deadlock_or_not__wrong_loops = {
    **deadlock_or_not__right_all,
    "one_branch": "finishes",
    "as_many_turns_for_all": "hangs",
}

# ---------------------------------------------------------------- ring_all_gather


def ring_all_gather__right_downwards(x, *, mesh):
    n = mesh.shape["x"]
    to_previous = [(d, (d - 1) % n) for d in range(n)]

    def body(block):
        me, rows = jax.lax.axis_index("x"), block.shape[0]
        whole = jnp.zeros((n * rows, *block.shape[1:]), block.dtype)
        for k in range(n):
            if k:
                block = jax.lax.ppermute(block, "x", to_previous)
            start = ((me + k) % n) * rows
            whole = jax.lax.dynamic_update_slice_in_dim(whole, block, start, axis=0)
        return whole

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


# Write down the blocks one below the other as they come: after n - 1 steps everything is there.
def ring_all_gather__wrong_arrival(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        seen = [block]
        for _ in range(n - 1):
            seen.append(jax.lax.ppermute(seen[-1], "x", [(d, (d + 1) % n) for d in range(n)]))
        return jnp.concatenate(seen)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


# What is passed on to the next comes, after k steps, from the device k further on.
def ring_all_gather__wrong_sign(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        for k in range(1, n):
            block = jax.lax.ppermute(block, "x", [(d, (d + 1) % n) for d in range(n)])
            whole = whole.at[(me + k) % n].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


# n devices, n turns: write, pass on, n times (the last one brings my own block home).
def ring_all_gather__right_turns(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype)
        for k in range(n):
            whole = whole.at[(me - k) % n].set(block)
            block = jax.lax.ppermute(block, "x", [(d, (d + 1) % n) for d in range(n)])
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


# Everybody adds its block at its place into a whole array and passes the whole array on: after n - 1 steps it is full.
def ring_all_gather__wrong_whole_travels(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        me = jax.lax.axis_index("x")
        own = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        whole = own
        for _ in range(n - 1):
            whole = own + jax.lax.ppermute(whole, "x", [(d, (d + 1) % n) for d in range(n)])
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


# ---------------------------------------------------------------- ring_costs

ring_costs__right_formula = {
    "all_gather: steps": 8 - 1,
    "all_gather: bytes": 7 * 4096 // 8,
    "all_reduce: steps": 2 * 7,
    "all_reduce: bytes": 2 * 7 * 4096 // 8,
    "all_gather, both ways: steps": 4,
    "all_reduce of whole vectors: bytes": 7 * 4096,
}

# Both ways at once: 7 steps in half the time are 3 and a bit, so 3.
ring_costs__wrong_rounded = {**ring_costs__right_formula, "all_gather, both ways: steps": 3}

# A ring of eight has eight steps, one for each device.
ring_costs__wrong_eight = {
    **ring_costs__right_formula,
    "all_gather: steps": 8,
    "all_gather: bytes": 4096,
    "all_reduce: steps": 16,
}

# Four thousand bytes are what each device holds, and a block is what it holds: 7 x 4096 for the gather, and twice that for the reduce.
ring_costs__wrong_blocks = {
    **ring_costs__right_formula,
    "all_gather: bytes": 7 * 4096,
    "all_reduce: bytes": 14 * 4096,
}

# An all-reduce is one collective, so it takes one round of the ring; and with whole vectors it needs two.
ring_costs__wrong_round = {
    **ring_costs__right_formula,
    "all_reduce: steps": 7,
    "all_reduce: bytes": 3584,
    "all_reduce of whole vectors: bytes": 2 * 7 * 4096,
}
