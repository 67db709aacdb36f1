"""Right answers to 08_rings, each spelled differently from the lesson's model solution.

All of them must earn full marks: the judge sees what a program does, not how it is written.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P


def manual(mesh, ins, out):
    return partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=out, check_vma=False)


def shift__by_sources(x, *, k, mesh):
    """For each destination the source, in another order, under jit."""
    n = mesh.shape["x"]
    pairs = [((d - k) % n, d) for d in reversed(range(n))]
    return jax.jit(manual(mesh, P("x"), P("x"))(lambda row: lax.ppermute(row, ("x",), pairs)))(x)


def ring_all_gather__backwards(x, *, mesh):
    """Blocks go to the device before; what came is sorted at the end."""
    n = mesh.shape["x"]

    @manual(mesh, P("x"), P())
    def go(block):
        seen = [block]
        for _ in range(n - 1):
            seen.append(lax.ppermute(seen[-1], "x", [(d, (d - 1) % n) for d in range(n)]))
        return jnp.roll(jnp.concatenate(seen), lax.axis_index("x") * block.shape[0], axis=0)

    return go(x)


def ring_all_gather__in_a_loop(x, *, mesh):
    n = mesh.shape["x"]

    @manual(mesh, P("x"), P())
    def go(block):
        me, rows = lax.axis_index("x"), block.shape[0]

        def step(k, carried):
            travelling, whole = carried
            travelling = lax.ppermute(travelling, "x", [(d, (d + 1) % n) for d in range(n)])
            return travelling, lax.dynamic_update_slice_in_dim(whole, travelling, (me - k - 1) % n * rows, 0)

        start = lax.dynamic_update_slice_in_dim(jnp.zeros((n * rows, block.shape[1])), block, me * rows, 0)
        return lax.fori_loop(0, n - 1, step, (block, start))[1]

    return go(x)


def ring_reduce_scatter__scanned(x, *, mesh):
    """The other direction, with scan: sums go to the device before, and begin at the part behind."""
    n = mesh.shape["x"]

    @manual(mesh, P("x"), P("x"))
    def go(row):
        me, parts = lax.axis_index("x"), row.reshape(n, -1)

        def step(total, k):
            return lax.ppermute(total, "x", [((d + 1) % n, d) for d in range(n)]) + parts[(me + 1 + k) % n], None

        return lax.scan(step, parts[(me + 1) % n], jnp.arange(1, n))[0]

    return go(x)


def ring_all_reduce__rolled(x, *, mesh):
    """Each device turns its parts so that its own comes first."""
    n = mesh.shape["x"]
    there = [(d, (d + 1) % n) for d in range(n)]

    @manual(mesh, P("x"), P())
    def go(row):
        me = lax.axis_index("x")
        mine = jnp.roll(row.reshape(n, -1), -me, axis=0)
        total = mine[-1]
        for k in range(2, n + 1):
            total = lax.ppermute(total, "x", there) + mine[-k]
        seen = [total]
        for _ in range(n - 1):
            seen.append(lax.ppermute(seen[-1], "x", there))
        return jnp.roll(jnp.stack(seen[::-1]), me + 1, axis=0).reshape(-1)

    return go(x)


def halo__by_places(x, *, mesh):
    n = mesh.shape["x"]

    @manual(mesh, P("x"), P("x"))
    def go(block):
        y = jnp.roll(block, 1) + 2 * block + 4 * jnp.roll(block, -1)
        left = lax.ppermute(block[-1], "x", [((d - 1) % n, d) for d in range(n)])
        right = lax.ppermute(block[0], "x", [((d + 1) % n, d) for d in range(n)])
        return y.at[0].add(left - block[-1]).at[-1].add(4 * (right - block[0]))

    return go(x)


def bidirectional_all_gather__in_a_loop(x, *, mesh):
    """Both streams in one loop; with an even number of devices one more step up."""
    n = mesh.shape["x"]
    up, down = [(d, (d + 1) % n) for d in range(n)], [(d, (d - 1) % n) for d in range(n)]

    @manual(mesh, P("x"), P())
    def go(block):
        me = lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape)).at[me].set(block)

        def step(k, carried):
            one, other, whole = carried
            one, other = lax.ppermute(one, "x", up), lax.ppermute(other, "x", down)
            return one, other, whole.at[(me - k) % n].set(one).at[(me + k) % n].set(other)

        one, _, whole = lax.fori_loop(1, (n - 1) // 2 + 1, step, (block, block, whole))
        if n % 2 == 0:
            whole = whole.at[(me - n // 2) % n].set(lax.ppermute(one, "x", up))
        return whole.reshape(-1, block.shape[1])

    return go(x)


def bidirectional_all_gather__halves(x, *, mesh):
    """The block of the device opposite comes in two parts, one from each side: both directions carry as much."""
    n = mesh.shape["x"]
    up, down = [(d, (d + 1) % n) for d in range(n)], [(d, (d - 1) % n) for d in range(n)]

    @manual(mesh, P("x"), P())
    def go(block):
        me, half = lax.axis_index("x"), block.shape[0] // 2
        whole = jnp.zeros((n, *block.shape)).at[me].set(block)
        one = other = block
        for k in range(1, n // 2 + 1):
            opposite = 2 * k == n
            one = lax.ppermute(one[:half] if opposite else one, "x", up)
            other = lax.ppermute(other[half:] if opposite else other, "x", down)
            if opposite:
                one = jnp.concatenate([one, other])
            whole = whole.at[(me - k) % n].set(one)
            if not opposite:
                whole = whole.at[(me + k) % n].set(other)
        return whole.reshape(-1, block.shape[1])

    return go(x)


def blocked_devices__by_meetings(calls):
    """Take away the meetings at which all are present; what is left over waits."""
    left = [list(own) for own in calls]
    while all(left) and len({own[0] for own in left}) == 1:
        left = [own[1:] for own in left]
    return {device: own[0] for device, own in enumerate(left) if own}


def sum_on_even_devices__by_arithmetic(x, *, mesh):
    @manual(mesh, P("x"), P("x"))
    def go(row):
        keeps = lax.axis_index("x") % 2
        return (1 - keeps) * lax.psum(row, "x") + keeps * row

    return go(x)


def sum_on_even_devices__branch_after(x, *, mesh):
    """A branch without a collective in it is harmless."""

    @manual(mesh, P("x"), P("x"))
    def go(row):
        total = lax.psum(row, "x")
        return lax.cond(lax.axis_index("x") % 2 == 0, lambda: total, lambda: row)

    return go(x)


def sum_on_even_devices__chosen_by_number(x, *, mesh):
    """A list of who keeps what, looked up by the device's own number."""
    summed = np.arange(mesh.shape["x"]) % 2 == 0

    @manual(mesh, P("x"), P("x"))
    def go(row):
        return lax.select_n(jnp.array(summed)[lax.axis_index("x")], row, lax.psum(row, "x"))

    return go(x)
