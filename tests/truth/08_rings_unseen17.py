"""Answers to lesson 08, seventeenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# ---- gather_both_ways


def gather_both_ways__right_STACK_AND_ROLL(x, *, mesh):
    """The blocks lie in the order of the ring, with the own one in place n // 2; rolled, number 0 comes first."""
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        before, after = [block], []
        for _ in range(n // 2):
            before.append(jax.lax.ppermute(before[-1], "x", up))
        moving = block
        for _ in range((n - 1) // 2):
            moving = jax.lax.ppermute(moving, "x", down)
            after.append(moving)
        in_ring_order = jnp.stack(before[::-1] + after)  # from me - n // 2 upwards
        in_order = jnp.roll(in_ring_order, jax.lax.axis_index("x") - n // 2, axis=0)
        return in_order.reshape(-1, *block.shape[1:])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


# Thinks: both streams go half round, n // 2 steps each; for even n the block of the device opposite then comes from both sides.
def gather_both_ways__wrong_OPPOSITE_COMES_TWICE(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        rising = falling = block
        for k in range(1, n // 2 + 1):
            rising = jax.lax.ppermute(rising, "x", up)
            falling = jax.lax.ppermute(falling, "x", down)
            whole = whole.at[(me - k) % n].set(rising).at[(me + k) % n].set(falling)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False)(x)


# Thinks: the stream that goes up brings the blocks with higher numbers, the one that goes down those with lower ones.
def gather_both_ways__wrong_UP_BRINGS_HIGHER_NUMBERS(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        moving = block
        for k in range(1, n // 2 + 1):
            moving = jax.lax.ppermute(moving, "x", up)
            whole = whole.at[(me + k) % n].set(moving)
        moving = block
        for k in range(1, (n - 1) // 2 + 1):
            moving = jax.lax.ppermute(moving, "x", down)
            whole = whole.at[(me - k) % n].set(moving)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False)(x)


# Copied the loop and turned the pairs round, but the second stream goes on with what the first one brought, not with the own block.
def gather_both_ways__wrong_SECOND_STREAM_NOT_FROM_THE_START(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        for k in range(1, n // 2 + 1):
            block = jax.lax.ppermute(block, "x", up)
            whole = whole.at[(me - k) % n].set(block)
        for k in range(1, (n - 1) // 2 + 1):
            block = jax.lax.ppermute(block, "x", down)
            whole = whole.at[(me + k) % n].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False)(x)


# Thinks: to use both directions, each half of the block goes all the way round, one up and one down: the right bytes, but n - 1 steps.
def gather_both_ways__wrong_HALF_BLOCKS_ALL_ROUND(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def on_device(block):
        me = jax.lax.axis_index("x")
        half = block.shape[0] // 2
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        upper, lower = block[:half], block[half:]
        for k in range(1, n):
            upper = jax.lax.ppermute(upper, "x", up)
            lower = jax.lax.ppermute(lower, "x", down)
            whole = whole.at[(me - k) % n, :half].set(upper)
            whole = whole.at[(me + k) % n, half:].set(lower)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False)(x)


# ---- ring_reduce_scatter


def ring_reduce_scatter__right_DOWN_THE_RING(x, *, mesh):
    """The sums go down the ring: each begins on the device below its own."""
    n = mesh.shape["x"]
    to_previous = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        parts = block.reshape(n, -1)
        me = jax.lax.axis_index("x")
        total = parts[(me + 1) % n]
        for number in range(2, n + 1):
            total = parts[(me + number) % n] + jax.lax.ppermute(total, "x", to_previous)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Thinks: begin with the own part; the sums end one place too early, so pass them on once more. Right sums, but n sends.
def ring_reduce_scatter__wrong_ONE_SEND_MORE(x, *, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def on_device(block):
        parts = block[0].reshape(n, -1)
        me = jax.lax.axis_index("x")
        total = parts[me]
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", to_next) + parts[(me - k) % n]
        return jax.lax.ppermute(total, "x", to_next)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Adds the own part to the sum before it is sent: the part whose number is due after the step, so different parts are mixed.
def ring_reduce_scatter__wrong_ADD_THEN_SEND(x, *, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def on_device(block):
        parts = block[0].reshape(n, -1)
        number = jax.lax.axis_index("x") - 1
        total = parts[number % n]
        for _ in range(n - 1):
            number = number - 1
            total = total + parts[number % n]
            total = jax.lax.ppermute(total, "x", to_next)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Thinks: the stream goes up, so the numbers of the parts that arrive go up as well.
def ring_reduce_scatter__wrong_NUMBERS_GO_UP(x, *, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def on_device(block):
        parts = block[0].reshape(n, -1)
        me = jax.lax.axis_index("x")
        total = parts[(me - 1) % n]
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", to_next) + parts[(me - 1 + k) % n]
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Thinks: n - 1 ppermutes are n - 1 ppermutes; whole vectors go round and are added, and each device keeps its part of the sum.
def ring_reduce_scatter__wrong_WHOLE_VECTORS(x, *, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def on_device(block):
        vector = total = block[0]
        for _ in range(n - 1):
            vector = jax.lax.ppermute(vector, "x", to_next)
            total = total + vector
        return total.reshape(n, -1)[jax.lax.axis_index("x")]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# ---- deadlock_or_not

deadlock_or_not__right_WHO_CALLS_WHAT = {
    name: "finishes" if all_call_the_same else "hangs"
    for name, all_call_the_same in {
        "one_branch": False,  # device 0 alone
        "sum_then_branch": True,  # the branch has none
        "open_ring": True,  # all call; device 0 gets zeros
        "each_its_own_turns": False,  # one, two, three, four calls
        "as_many_turns_for_all": True,  # a pmax, then four turns each
        "only_process_0_sums": False,  # process 1 has no psum
    }.items()
}

# Thinks: device 0 of the open ring waits in its receive for a block that nobody sends (MPI_Recv).
deadlock_or_not__wrong_RECEIVE_WITHOUT_SEND = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "hangs",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}

# Thinks: wherever the way through the program depends on me(), the devices part and miss each other, also when all have met before.
deadlock_or_not__wrong_ANY_BRANCH_ON_ME = {
    "one_branch": "hangs",
    "sum_then_branch": "hangs",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "hangs",
    "only_process_0_sums": "hangs",
}

# Thinks: a psum adds up those that call it (device 0 alone, or the four of process 0); only transfers between pairs can wait.
deadlock_or_not__wrong_SUM_OF_THOSE_WHO_COME = {
    "one_branch": "finishes",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "finishes",
}

# Thinks: a device that nobody sends to gets zeros at once, so also when its partner has left the loop already.
deadlock_or_not__wrong_ZEROS_FROM_WHO_HAS_LEFT = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "finishes",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}
