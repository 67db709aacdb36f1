"""Answers to lesson 08, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]


# --- shift
def shift__right_mod(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + k) % n) for d in range(n)]
    return jax.shard_map(
        lambda row: jax.lax.ppermute(row, "x", pairs), mesh=mesh, in_specs=P("x", None), out_specs=P("x", None)
    )(x)


def shift__right_from_whom(x, *, k, mesh):
    devices = range(mesh.shape["x"])
    pairs = [((d - k) % len(devices), d) for d in devices]
    send = jax.shard_map(
        lambda row: jax.lax.ppermute(row, "x", perm=pairs), mesh=mesh, in_specs=P("x"), out_specs=P("x")
    )
    return send(x)


def shift__wrong_direction(x, *, k, mesh):
    # to the device k places back
    n = mesh.shape["x"]
    pairs = [(d, (d - k) % n) for d in range(n)]
    return jax.shard_map(lambda row: jax.lax.ppermute(row, "x", pairs), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def shift__wrong_open(x, *, k, mesh):
    # the ring is not closed: rows that leave at the end are lost
    n = mesh.shape["x"]
    pairs = [(d, d + k) for d in range(n) if 0 <= d + k < n]
    return jax.shard_map(lambda row: jax.lax.ppermute(row, "x", pairs), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def shift__wrong_four(x, *, k, mesh):
    # four devices, as on the notebook's line
    pairs = [(d, (d + k) % 4) for d in range(4)]
    return jax.shard_map(lambda row: jax.lax.ppermute(row, "x", pairs), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def shift__wrong_k_times(x, *, k, mesh):
    # k steps of one place in place of one ppermute; a negative k does nothing
    n = mesh.shape["x"]

    def body(row):
        for _ in range(k):
            row = jax.lax.ppermute(row, "x", [(d, (d + 1) % n) for d in range(n)])
        return row

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def shift__wrong_in_the_block(x, *, k, mesh):
    # rolls the entries of each row; nothing is sent
    return jax.shard_map(lambda row: jnp.roll(row, k, axis=1), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# --- ring_all_gather
def ring_all_gather__right_set(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(block):
        place = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[place].set(block)
        for _ in range(n - 1):
            block = jax.lax.ppermute(block, "x", pairs)
            place = (place - 1) % n
            whole = whole.at[place].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


def ring_all_gather__right_take(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        seen = [block]
        for _ in range(n - 1):
            seen.append(jax.lax.ppermute(seen[-1], "x", [(d, (d - 1) % n) for d in range(n)]))
        order = (jnp.arange(n) - jax.lax.axis_index("x")) % n  # the other way round: seen[k] is of device me + k
        return jnp.concatenate(list(jnp.stack(seen)[order]))

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


def ring_all_gather__wrong_arrival(x, *, mesh):
    # in the order of arrival, another one on each device
    n = mesh.shape["x"]

    def body(block):
        seen = [block]
        for _ in range(n - 1):
            seen.append(jax.lax.ppermute(seen[-1], "x", [(d, (d + 1) % n) for d in range(n)]))
        return jnp.concatenate(seen)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


def _gathered(x, mesh, *, step=-1, sends=None, last_write=True):
    n = mesh.shape["x"]
    sends = n - 1 if sends is None else sends

    def body(block):
        place = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[place].set(block)
        for k in range(sends):
            block = jax.lax.ppermute(block, "x", [(d, (d + 1) % n) for d in range(n)])
            place = (place + step) % n
            if last_write or k < sends - 1:
                whole = whole.at[place].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


def ring_all_gather__wrong_places(x, *, mesh):
    # the place goes up in each step, though the blocks come from below
    return _gathered(x, mesh, step=1)


def ring_all_gather__wrong_one_more(x, *, mesh):
    # n ppermutes: the last brings everybody its own block again
    return _gathered(x, mesh, sends=mesh.shape["x"])


def ring_all_gather__wrong_one_less(x, *, mesh):
    # n - 2 ppermutes: a block is missing
    return _gathered(x, mesh, sends=mesh.shape["x"] - 2)


def ring_all_gather__wrong_last_not_written(x, *, mesh):
    # the block of the last step is received and not written
    return _gathered(x, mesh, last_write=False)


def ring_all_gather__wrong_built_in(x, *, mesh):
    # all_gather, not ppermute alone
    return jax.shard_map(
        lambda b: jax.lax.all_gather(b, "x", tiled=True), mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False
    )(x)


# --- ring_reduce_scatter
def ring_reduce_scatter__right_film(x, *, mesh):
    n = mesh.shape["x"]

    def body(row):
        parts, number = row.reshape(n, -1), jax.lax.axis_index("x") - 1
        total = parts[number % n]
        for _ in range(n - 1):
            number = number - 1
            total = jax.lax.ppermute(total, "x", [(d, (d + 1) % n) for d in range(n)]) + parts[number % n]
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


def ring_reduce_scatter__right_down(x, *, mesh):
    # the other way round the ring: sums go to the previous device, and begin with the next device's part
    n = mesh.shape["x"]

    def body(row):
        me, length = jax.lax.axis_index("x"), row.shape[1] // n
        part = lambda k: jax.lax.dynamic_slice_in_dim(row[0], (k % n) * length, length)
        total = part(me + 1)
        for k in range(2, n + 1):
            total = part(me + k) + jax.lax.ppermute(total, "x", [(d, (d - 1) % n) for d in range(n)])
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def ring_reduce_scatter__wrong_own_first(x, *, mesh):
    # begins with its own part: every sum ends one place too early
    n = mesh.shape["x"]

    def body(row):
        parts, number = row.reshape(n, -1), jax.lax.axis_index("x")
        total = parts[number]
        for _ in range(n - 1):
            number = number - 1
            total = jax.lax.ppermute(total, "x", [(d, (d + 1) % n) for d in range(n)]) + parts[number % n]
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def ring_reduce_scatter__wrong_same_number(x, *, mesh):
    # the number of the part does not go down: different parts are mixed
    n = mesh.shape["x"]

    def body(row):
        parts, me = row.reshape(n, -1), jax.lax.axis_index("x")
        total = parts[(me - 1) % n]
        for _ in range(n - 1):
            total = jax.lax.ppermute(total, "x", [(d, (d + 1) % n) for d in range(n)]) + parts[(me - 1) % n]
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def ring_reduce_scatter__wrong_one_term_less(x, *, mesh):
    # n - 2 steps: the owner's own term is missing
    n = mesh.shape["x"]

    def body(row):
        parts, number = row.reshape(n, -1), jax.lax.axis_index("x") - 1
        total = parts[number % n]
        for _ in range(n - 2):
            number = number - 1
            total = jax.lax.ppermute(total, "x", [(d, (d + 1) % n) for d in range(n)]) + parts[number % n]
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def ring_reduce_scatter__wrong_whole_vectors(x, *, mesh):
    # sends whole vectors, and cuts at the end: n times the bytes
    n = mesh.shape["x"]

    def body(row):
        total = row
        for _ in range(n - 1):
            row = jax.lax.ppermute(row, "x", [(d, (d + 1) % n) for d in range(n)])
            total = total + row
        return total.reshape(n, -1)[jax.lax.axis_index("x")]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def ring_reduce_scatter__wrong_built_in(x, *, mesh):
    # psum_scatter, not ppermute alone
    return jax.shard_map(
        lambda row: jax.lax.psum_scatter(row[0], "x", tiled=True), mesh=mesh, in_specs=P("x"), out_specs=P("x")
    )(x)


# --- halo
def halo__right_wide(x, *, mesh):
    n = mesh.shape["x"]
    up, down = [(d, (d + 1) % n) for d in range(n)], [(d, (d - 1) % n) for d in range(n)]

    def body(block):
        before, after = jax.lax.ppermute(block[-1:], "x", up), jax.lax.ppermute(block[:1], "x", down)
        wide = jnp.concatenate([before, block, after])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def halo__right_mended(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        left = jax.lax.ppermute(block[-1], "x", [(d, (d + 1) % n) for d in range(n)])
        right = jax.lax.ppermute(block[0], "x", [((d + 1) % n, d) for d in range(n)])
        lower, upper = jnp.roll(block, 1).at[0].set(left), jnp.roll(block, -1).at[-1].set(right)
        return lower + 2 * block + 4 * upper

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def _halo(x, mesh, ends, weights=(1, 2, 4), close=True):
    n = mesh.shape["x"]
    up, down = [(d, (d + 1) % n) for d in range(n)], [(d, (d - 1) % n) for d in range(n)]
    if not close:
        up, down = up[:-1], down[1:]

    def body(block):
        first, last = ends(block)
        wide = jnp.concatenate([jax.lax.ppermute(first, "x", up), block, jax.lax.ppermute(last, "x", down)])
        return weights[0] * wide[:-2] + weights[1] * block + weights[2] * wide[2:]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def halo__wrong_ends(x, *, mesh):
    # the first entry goes up and the last one down
    return _halo(x, mesh, lambda block: (block[:1], block[-1:]))


def halo__wrong_open(x, *, mesh):
    # not periodic: zeros at both ends of the vector
    return _halo(x, mesh, lambda block: (block[-1:], block[:1]), close=False)


def halo__wrong_weights(x, *, mesh):
    # 1 and 4 exchanged
    return _halo(x, mesh, lambda block: (block[-1:], block[:1]), weights=(4, 2, 1))


def halo__wrong_rolled(x, *, mesh):
    # closes each block into a ring of its own
    return jax.shard_map(
        lambda b: jnp.roll(b, 1) + 2 * b + 4 * jnp.roll(b, -1), mesh=mesh, in_specs=P("x"), out_specs=P("x")
    )(x)


def halo__wrong_whole_blocks(x, *, mesh):
    # right values, but whole blocks travel in place of one entry
    n = mesh.shape["x"]

    def body(block):
        before = jax.lax.ppermute(block, "x", [(d, (d + 1) % n) for d in range(n)])
        after = jax.lax.ppermute(block, "x", [(d, (d - 1) % n) for d in range(n)])
        wide = jnp.concatenate([before[-1:], block, after[:1]])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# --- who_waits
def who_waits__right_steps(calls):
    step = 0
    while True:
        now = {d: own[step] for d, own in enumerate(calls) if step < len(own)}
        if not now or len(now) < len(calls) or len(set(now.values())) > 1:
            return now
        step += 1


def who_waits__right_zip_longest(calls):
    import itertools

    nobody = object()
    for row in itertools.zip_longest(*calls, fillvalue=nobody):
        if any(call is nobody or call != row[0] for call in row):
            return {d: call for d, call in enumerate(row) if call is not nobody}
    return {}


def who_waits__wrong_zip(calls):
    # zip ends with the shortest list: who goes on alone is not seen
    for row in zip(*calls):
        if len(set(row)) > 1:
            return dict(enumerate(row))
    return {}


def who_waits__wrong_lengths(calls):
    # only the lengths are compared, not which collective
    shortest = min(map(len, calls))
    return {d: own[shortest] for d, own in enumerate(calls) if len(own) > shortest}


def who_waits__wrong_minority(calls):
    # those that call what most call are let go on
    step = 0
    while True:
        now = {d: own[step] for d, own in enumerate(calls) if step < len(own)}
        if not now:
            return {}
        if len(set(now.values())) > 1:
            values = list(now.values())
            most = max(set(values), key=values.count)
            return {d: call for d, call in now.items() if call != most}
        if len(now) < len(calls):
            return now
        step += 1


def who_waits__wrong_missing(calls):
    # the devices that are missing, not those that wait for them
    step = 0
    while True:
        now = {d: own[step] for d, own in enumerate(calls) if step < len(own)}
        if not now:
            return {}
        if len(now) < len(calls):
            return {d: (own or [None])[-1] for d, own in enumerate(calls) if d not in now}
        if len(set(now.values())) > 1:
            return now
        step += 1


def who_waits__wrong_only_who(calls):
    # a list of devices, without the collective each waits in
    step = 0
    while True:
        now = {d: own[step] for d, own in enumerate(calls) if step < len(own)}
        if not now or len(now) < len(calls) or len(set(now.values())) > 1:
            return list(now)
        step += 1


# --- sum_for_some
def sum_for_some__right_where(x, *, mesh):
    def body(row):
        total = jax.lax.psum(row, "x")
        return jnp.where(jax.lax.axis_index("x") % 2 == 0, total, row)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


def sum_for_some__right_select(x, *, mesh):
    def body(row):
        odd = jax.lax.axis_index("x") % 2
        return odd * row + (1 - odd) * jax.lax.psum(row, "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def sum_for_some__wrong_odd(x, *, mesh):
    # the two values exchanged: the odd ones get the sum
    def body(row):
        return jnp.where(jax.lax.axis_index("x") % 2 == 0, row, jax.lax.psum(row, "x"))

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def sum_for_some__wrong_even_only(x, *, mesh):
    # adds up the rows of the even devices only
    def body(row):
        even = jax.lax.axis_index("x") % 2 == 0
        return jnp.where(even, jax.lax.psum(jnp.where(even, row, 0), "x"), row)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def sum_for_some__wrong_zero(x, *, mesh):
    # the others lose their row
    def body(row):
        return jnp.where(jax.lax.axis_index("x") % 2 == 0, jax.lax.psum(row, "x"), 0)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def sum_for_some__wrong_first_half(x, *, mesh):
    # the first half of the devices, as in the example, not the even ones
    def body(row):
        return jnp.where(jax.lax.axis_index("x") < mesh.shape["x"] // 2, jax.lax.psum(row, "x"), row)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def sum_for_some__wrong_row_sum(x, *, mesh):
    # each row's own sum in place of the sum of all rows
    def body(row):
        return jnp.where(jax.lax.axis_index("x") % 2 == 0, row.sum(1, keepdims=True), row)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)
