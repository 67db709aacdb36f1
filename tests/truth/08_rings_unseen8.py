"""Answers to lesson 08, eighth batch, written by a reader of the notebook only."""

from collections import Counter
from itertools import zip_longest

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]


def on_line(body, *arrays):
    """Run `body(block)` on each of the four devices. (The check is off, since part 7 runs programs that it would stop.)"""
    return jax.shard_map(body, mesh=line, in_specs=P("x"), out_specs=P("x"), check_vma=False)(*arrays)


# ----------------------------------------------------------- gather_both_ways
def gather_both_ways__right_rolled(x, *, mesh):
    n = mesh.shape["x"]
    forth = [(d, (d + 1) % n) for d in range(n)]
    back = [(to, source) for source, to in forth]

    def body(block):
        below, above = [block], [block]
        for _ in range(n // 2):
            below.append(jax.lax.ppermute(below[-1], "x", forth))
        for _ in range((n - 1) // 2):
            above.append(jax.lax.ppermute(above[-1], "x", back))
        # the blocks of me - n // 2, …, me, …, me + (n - 1) // 2, round the ring
        around = jnp.concatenate(below[:0:-1] + above, axis=0)
        first = jax.lax.axis_index("x") - n // 2
        return jnp.roll(around, first * block.shape[0], axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# thought: both streams go half way round, so both loops have n // 2 turns; a block that comes twice is written twice, no harm
def gather_both_ways__wrong_both_half_way(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        from_below, from_above = block, block
        for k in range(1, n // 2 + 1):
            from_below = jax.lax.ppermute(from_below, "x", up)
            from_above = jax.lax.ppermute(from_above, "x", down)
            whole = whole.at[(me - k) % n].set(from_below)
            whole = whole.at[(me + k) % n].set(from_above)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# thought: the link is used both ways when one half of every block goes up and the other half down, all the way round
def gather_both_ways__wrong_half_blocks(x, *, mesh):
    n = mesh.shape["x"]
    TO_NEXT = [(d, (d + 1) % n) for d in range(n)]
    TO_PREVIOUS = [(b, a) for a, b in TO_NEXT]

    def body(block):
        me = jax.lax.axis_index("x")
        r = block.shape[0] // 2
        top, bottom = block[:r], block[r:]
        tops = jnp.zeros((n, *top.shape), block.dtype).at[me].set(top)
        bottoms = jnp.zeros((n, *bottom.shape), block.dtype).at[me].set(bottom)
        for k in range(1, n):
            top = jax.lax.ppermute(top, "x", TO_NEXT)
            tops = tops.at[(me - k) % n].set(top)
            bottom = jax.lax.ppermute(bottom, "x", TO_PREVIOUS)
            bottoms = bottoms.at[(me + k) % n].set(bottom)
        return jnp.concatenate([tops, bottoms], axis=1).reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# thought: when the stream upwards is done the same block turns round and goes down; what it passes on is counted on from there
def gather_both_ways__wrong_block_turns_round(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype)
        whole = whole.at[me].set(block)
        for k in range(1, n // 2 + 1):
            block = jax.lax.ppermute(block, "x", up)
            whole = whole.at[(me - k) % n].set(block)
        for k in range(1, (n - 1) // 2 + 1):
            block = jax.lax.ppermute(block, "x", down)
            whole = whole.at[(me + k) % n].set(block)
        return whole.reshape(-1, x.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# thought: what came from below stands before my block and what came from above behind it, then all are in order
def gather_both_ways__wrong_me_in_the_middle(x, *, mesh):
    n = mesh.shape["x"]
    up, down = [(d, (d + 1) % n) for d in range(n)], [(d, (d - 1) % n) for d in range(n)]

    def body(block):
        seen = [block]
        for _ in range(n // 2):
            seen.insert(0, jax.lax.ppermute(seen[0], "x", up))
        for _ in range((n - 1) // 2):
            seen.append(jax.lax.ppermute(seen[-1], "x", down))
        return jnp.concatenate(seen)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


# ------------------------------------------------------------------ who_waits
def who_waits__right_zip_longest(calls):
    for meeting in zip_longest(*calls):
        if any(call != meeting[0] for call in meeting):
            return {device: call for device, call in enumerate(meeting) if call is not None}
    return {}


# thought: a collective happens when all devices have called it, so it is enough to count each name on each device
def who_waits__wrong_counts(calls):
    if not calls:
        return {}
    counts = [Counter(own) for own in calls]
    fewest = counts[0]
    for c in counts[1:]:
        fewest = fewest & c
    waiting = {}
    for d, own in enumerate(calls):
        left = Counter(fewest)
        for name in own:
            if left[name] == 0:
                waiting[d] = name
                break
            left[name] -= 1
    return waiting


# thought: only one who comes alone waits; two or more who call the same have met and go on
def who_waits__wrong_two_can_meet(calls):
    step = 0
    while any(step < len(own) for own in calls):
        now = {d: own[step] for d, own in enumerate(calls) if step < len(own)}
        alone = {d: c for d, c in now.items() if list(now.values()).count(c) == 1}
        if alone and len(calls) > 1:
            return alone
        step += 1
    return {}


# thought: the waiting ones are those who call another thing than most; the others have met
def who_waits__wrong_minority(calls):
    for step in range(max(map(len, calls), default=0)):
        now = [own[step] if step < len(own) else None for own in calls]
        if len(set(now)) > 1:
            if None in now:
                return {d: c for d, c in enumerate(now) if c}
            most = max(set(now), key=now.count)
            return {d: c for d, c in enumerate(now) if c != most}
    return {}


# thought: the devices with longer lists than the shortest are left over, and they stand in the first call beyond its end
def who_waits__wrong_only_lengths(calls):
    shortest = min((len(own) for own in calls), default=0)
    return {d: own[shortest] for d, own in enumerate(calls) if len(own) > shortest}


# --------------------------------------------------------------- sum_for_some
def sum_for_some__right_stacked(x, *, mesh):
    def body(row):
        both = jnp.stack([jax.lax.psum(row, "x"), row])
        return both[jax.lax.axis_index("x") % 2]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# thought: those who do not take part bring zeros to the meeting
def sum_for_some__wrong_others_bring_zeros(x, *, mesh):
    def body(row):
        even = jax.lax.axis_index("x") % 2 == 0
        total = jax.lax.psum(jnp.where(even, row, jnp.zeros_like(row)), "x")
        return jnp.where(even, total, row)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# thought: the even ones of four devices are 0 and 2
def sum_for_some__wrong_zero_and_two(x, *, mesh):
    def body(row):
        me = jax.lax.axis_index("x")
        total = jax.lax.psum(row, "x")
        return jnp.where((me == 0) | (me == 2), total, row)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# thought: the sum is what comes from the others, to which a device adds its own row
def sum_for_some__wrong_own_row_again(x, *, mesh):
    some = lambda row: row + jnp.where(jax.lax.axis_index("x") % 2, 0, 1).astype(row.dtype) * jax.lax.psum(row, "x")
    return jax.shard_map(some, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# thought: "the sum of all rows" is the sum of everything in them, one number, which stands in every entry of the row then
def sum_for_some__wrong_sum_of_everything(x, *, mesh):
    def body(row):
        total = jax.lax.psum(row.sum(), "x")
        is_odd = jax.lax.axis_index("x") % 2
        return jnp.where(is_odd == 1, row, total)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)
