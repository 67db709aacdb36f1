"""Answers to lesson 08, nineteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]


def on_line(body, *arrays):
    """Run `body(block)` on each of the four devices. (The check is off, since part 7 runs programs that it would stop.)"""
    return jax.shard_map(body, mesh=line, in_specs=P("x"), out_specs=P("x"), check_vma=False)(*arrays)


# ---- ring_after

ring_after__right_modulo = {
    "4 devices, +1, 1 step: device 2": (2 - 1) % 4,
    "4 devices, +1, 3 steps: device 1": (1 - 3) % 4,
    "4 devices, -1, 1 step: device 3": (3 + 1) % 4,
    "8 devices, +1, 5 steps: device 2": (2 - 5) % 8,
    "8 devices, -1, 4 steps: device 6": (6 + 4) % 8,
    "8 devices, +3, 2 steps: device 1": (1 - 6) % 8,
}

# Thought: "device d holds the block of device d - k" is the rule for every ring, also when the blocks go down.
ring_after__wrong_same_for_minus = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 2,
    "8 devices, +1, 5 steps: device 2": 5,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 3,
}

# Thought: a negative number only means "the other way", so drops its sign instead of adding the length of the ring.
ring_after__wrong_dropped_sign = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 3,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 5,
}

# Thought: on the way back along the ring counts the device itself as the first of the several steps.
ring_after__wrong_counts_itself = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 3,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 6,
    "8 devices, -1, 4 steps: device 6": 1,
    "8 devices, +3, 2 steps: device 1": 3,
}

# Thought: three on, and then two steps more: shift and steps added where they should be multiplied.
ring_after__wrong_added = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 5,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 4,
}

# ---- gather_both_ways


def gather_both_ways__right_by_distance(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        me = jax.lax.axis_index("x")
        from_before, from_behind = [block], [block]
        for _ in range(n // 2):
            from_before.append(jax.lax.ppermute(from_before[-1], "x", up))
        for _ in range((n - 1) // 2):
            from_behind.append(jax.lax.ppermute(from_behind[-1], "x", down))
        by_distance = jnp.stack(from_behind + from_before[:0:-1])  # entry o: the block of me + o
        whole = by_distance[(jnp.arange(n) - me) % n]
        return whole.reshape(-1, *block.shape[1:])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: half of the ring each way, n // 2 steps up and n // 2 down; with an even n the block opposite comes twice.
def gather_both_ways__wrong_opposite_twice(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        rising, falling = block, block
        for k in range(1, n // 2 + 1):
            rising = jax.lax.ppermute(rising, "x", up)
            falling = jax.lax.ppermute(falling, "x", down)
            whole = whole.at[(me - k) % n].set(rising)
            whole = whole.at[(me + k) % n].set(falling)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: turned the pairs round for the second stream, and forgot that what comes from the next device belongs at me + k.
def gather_both_ways__wrong_place_of_down(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        rising = block
        for k in range(1, n // 2 + 1):
            rising = jax.lax.ppermute(rising, "x", up)
            whole = whole.at[(me - k) % n].set(rising)
        falling = block
        for k in range(1, (n - 1) // 2 + 1):
            falling = jax.lax.ppermute(falling, "x", down)
            whole = whole.at[(me - k) % n].set(falling)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: own block first, then those of me + 1, me + 2, ...: that is their order; it is on device 0, which NumPy shows, and turned on all the others.
def gather_both_ways__wrong_order_from_me(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        before, behind = [block], [block]
        for _ in range(n // 2):
            before.append(jax.lax.ppermute(before[-1], "x", up))
        for _ in range((n - 1) // 2):
            behind.append(jax.lax.ppermute(behind[-1], "x", down))
        return jnp.concatenate(behind + before[:0:-1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: both directions means half of each block up and the other half down; the bytes are right, but each half goes all the way round in n - 1 steps.
def gather_both_ways__wrong_half_blocks(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        me = jax.lax.axis_index("x")
        middle = block.shape[1] // 2
        left, right = block[:, :middle], block[:, middle:]
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        for k in range(1, n):
            left = jax.lax.ppermute(left, "x", up)
            right = jax.lax.ppermute(right, "x", down)
            whole = whole.at[(me - k) % n, :, :middle].set(left)
            whole = whole.at[(me + k) % n, :, middle:].set(right)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# ---- deadlock_or_not


def me():
    return jax.lax.axis_index("x")


def one_branch(block):
    return jax.lax.cond(me() == 0, lambda b: jax.lax.psum(b, "x"), lambda b: b, block)


def sum_then_branch(block):
    total = jax.lax.psum(block, "x")
    return jax.lax.cond(me() == 0, lambda: total, lambda: block)


def open_ring(block):
    return jax.lax.ppermute(block, "x", [(0, 1), (1, 2), (2, 3)])


def each_its_own_turns(block):
    more = lambda carried: carried[0] < me() + 1
    turn = lambda carried: (carried[0] + 1, jax.lax.ppermute(carried[1], "x", TO_NEXT))
    return jax.lax.while_loop(more, turn, (0, block))[1]


def as_many_turns_for_all(block):
    most = jax.lax.pmax(me() + 1, "x")
    more = lambda carried: carried[0] < most
    turn = lambda carried: (carried[0] + 1, jax.lax.ppermute(carried[1], "x", TO_NEXT))
    return jax.lax.while_loop(more, turn, (0, block))[1]


def only_process_0_sums(block):
    return jax.lax.psum(block, "x") if jax.process_index() == 0 else block


deadlock_or_not__right_same_lists = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}

# Thought: device 0 waits for a block that nobody sends.
deadlock_or_not__wrong_open_ring_waits = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "hangs",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}

# Thought: an `if` of Python is decided while tracing, so no device ever branches; process 0 sums over its own four.
deadlock_or_not__wrong_python_if_is_safe = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "finishes",
}

# Thought: whatever goes on from the device's own number in a cond or a loop hangs, wherever the collective stands.
deadlock_or_not__wrong_any_branch = {
    "one_branch": "hangs",
    "sum_then_branch": "hangs",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "hangs",
    "only_process_0_sums": "hangs",
}

# Thought: as under vmap, a cond is a select and the loop runs masked until the last is done, so in one program all devices always meet.
deadlock_or_not__wrong_like_vmap = {
    "one_branch": "finishes",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "finishes",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}
