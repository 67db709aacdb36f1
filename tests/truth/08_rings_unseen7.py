"""Answers to lesson 08, seventh batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]


# --- ring_all_gather ---------------------------------------------------------


def ring_all_gather__right_downwards_and_rolled(x, *, mesh):
    """x, cut by rows over the mesh axis x, whole on every device."""
    n = mesh.shape["x"]
    to_previous = [(d, (d - 1) % n) for d in range(n)]

    def body(block):
        seen = [block]  # those of me, me + 1, me + 2, …
        while len(seen) < n:
            seen.append(jax.lax.ppermute(seen[-1], "x", to_previous))
        in_place = jnp.roll(jnp.stack(seen), jax.lax.axis_index("x"), axis=0)
        return in_place.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False)(x)


# "All blocks have come by; one below the other they are x." (in the order of their arrival)
def ring_all_gather__wrong_order_of_arrival(x, *, mesh):
    n = mesh.shape["x"]
    ring = [(d, (d + 1) % n) for d in range(n)]

    def body(block):
        kept = [block]
        for _ in range(n - 1):
            block = jax.lax.ppermute(block, "x", ring)
            kept.append(block)
        return jnp.concatenate(kept)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


# "Blocks go to the next device, so each one that comes belongs one place further on."
def ring_all_gather__wrong_places_go_up(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        for k in range(1, n):
            block = jax.lax.ppermute(block, "x", [(d, (d + 1) % n) for d in range(n)])
            whole = whole.at[(me + k) % n].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# "Three steps with TO_NEXT, as above." (four devices, on any mesh)
def ring_all_gather__wrong_four_devices(x, *, mesh):
    def body(block):
        place = jax.lax.axis_index("x")
        whole = jnp.zeros((4, *block.shape), block.dtype)
        whole = whole.at[place].set(block)
        for _ in range(3):
            block = jax.lax.ppermute(block, "x", TO_NEXT)
            place = place - 1
            whole = whole.at[place % 4].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# "n blocks have to come, so n times: send, then write what came." (the last one to come is its own)
def ring_all_gather__wrong_all_the_way_round(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(block):
        place = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype)
        for _ in range(n):
            block = jax.lax.ppermute(block, "x", pairs)
            place = (place - 1) % n
            whole = whole.at[place].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# --- ring_all_reduce ---------------------------------------------------------


def ring_all_reduce__right_the_other_way_round(x, *, mesh):
    """The sum of the rows that the devices hold, whole on every device."""
    n = mesh.shape["x"]
    down = [((d + 1) % n, d) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[(me + 1) % n]
        for k in range(2, n + 1):
            total = jax.lax.ppermute(total, "x", down) + parts[(me + k) % n]
        sums = [total]  # of the parts me, me + 1, …
        for _ in range(n - 1):
            sums.append(jax.lax.ppermute(sums[-1], "x", down))
        return jnp.roll(jnp.stack(sums), me, axis=0).reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# "Pass the rows round and add up what comes by." (whole vectors)
def ring_all_reduce__wrong_whole_rows(x, *, mesh):
    n = mesh.shape["x"]
    ring = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        total = passing = row[0]
        for _ in range(n - 1):
            passing = jax.lax.ppermute(passing, "x", ring)
            total = total + passing
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# "Add your term to the sum, then send it on, n − 1 times." (the owner's own term is never added)
def ring_all_reduce__wrong_add_then_send(x, *, mesh):
    n = mesh.shape["x"]
    ring = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = jnp.zeros_like(parts[0])
        for k in range(1, n):
            total = jax.lax.ppermute(total + parts[(me - k) % n], "x", ring)
        whole = jnp.zeros_like(parts).at[me].set(total)
        place = me
        for _ in range(n - 1):
            total = jax.lax.ppermute(total, "x", ring)
            place = place - 1
            whole = whole.at[place % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# "The first half is a psum_scatter, and there is a function for it." (not by ppermute alone)
def ring_all_reduce__wrong_built_in_half(x, *, mesh):
    n = mesh.shape["x"]

    def body(row):
        me = jax.lax.axis_index("x")
        part = jax.lax.psum_scatter(row[0], "x", tiled=True)
        whole = jnp.zeros((n, part.size), part.dtype).at[me].set(part)
        for k in range(1, n):
            part = jax.lax.ppermute(part, "x", [(d, (d + 1) % n) for d in range(n)])
            whole = whole.at[(me - k) % n].set(part)
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# "In the second half each has one part and zeros elsewhere: pass these on and add, then no places are needed." (sends the zeros too)
def ring_all_reduce__wrong_sends_zeros(x, *, mesh):
    n = mesh.shape["x"]

    def to_next(value):
        return jax.lax.ppermute(value, "x", [(d, (d + 1) % n) for d in range(n)])

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        number = me - 1
        total = parts[number % n]
        for _ in range(n - 1):
            total = to_next(total)
            number = number - 1
            total = total + parts[number % n]
        moving = jnp.zeros_like(parts).at[me].set(total)
        whole = moving
        for _ in range(n - 1):
            moving = to_next(moving)
            whole = whole + moving
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# --- deadlock_or_not ---------------------------------------------------------


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


_hang = {"one_branch", "each_its_own_turns", "only_process_0_sums"}
deadlock_or_not__right_set = {
    f.__name__: "hangs" if f.__name__ in _hang else "finishes"
    for f in (one_branch, sum_then_branch, open_ring, each_its_own_turns, as_many_turns_for_all, only_process_0_sums)
}

# "Device 0 waits for a block that nobody sends."
deadlock_or_not__wrong_waits_for_nobody = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "hangs",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}

# "A Python if is settled while tracing, so there is no branch left in the program, and nobody can miss anybody."
deadlock_or_not__wrong_settled_while_tracing = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "finishes",
}

# "A collective together with a branch, or in a loop that the devices decide on, hangs."
deadlock_or_not__wrong_any_branch = {
    "one_branch": "hangs",
    "sum_then_branch": "hangs",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "hangs",
    "only_process_0_sums": "hangs",
}

# "A psum adds up those who call it; and a device that is through with its loop is sent nothing more, and the others get zeros from it."
deadlock_or_not__wrong_those_who_come = {
    "one_branch": "finishes",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "finishes",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}
