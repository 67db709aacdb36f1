"""Answers to lesson 15, as students give them: written from the student's notebook alone."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def send(block, by=1):
    """Send the block `by` places up the ring over x; returns the one that came instead."""
    n = jax.lax.axis_size("x")
    return jax.lax.ppermute(block, "x", [(d, (d + by) % n) for d in range(n)])


def varying(value):
    """The same value, marked as one that may differ along x (`lax.pvary` until JAX 0.8.1, `lax.pcast` since)."""
    return jax.lax.pcast(value, "x", to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(value, "x")


schedule_table__right_plain = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [1, 2, 3, 0],
    "shift -1, step 1": [1, 2, 3, 0],
    "shift -1, step 2": [2, 3, 0, 1],
    "shift -1, step 3": [3, 0, 1, 2],
}
"""As it is."""

schedule_table__wrong_directions = {
    name: schedule_table__right_plain[name.replace("+", "*").replace("-", "+").replace("*", "-")]
    for name in schedule_table__right_plain
}
"""Follows a block, and takes that for what a device holds."""

schedule_table__wrong_late = schedule_table__right_plain | {
    "shift +1, step 1": [0, 1, 2, 3],
    "shift +1, step 2": [3, 0, 1, 2],
    "shift +1, step 3": [2, 3, 0, 1],
}
"""Counts steps from the start: step 1 is before any transfer."""

schedule_table__wrong_slip = schedule_table__right_plain | {"shift -1, step 3": [1, 2, 3, 0]}
"""A slip: step 3 down as step 3 up."""

sum_schedule__right_plain = {
    "step 0": [1, 2, 3, 0], "step 1": [2, 3, 0, 1], "step 2": [3, 0, 1, 2], "step 3": [0, 1, 2, 3],
}  # fmt: skip
"""As it is."""

sum_schedule__wrong_own_first = {
    "step 0": [0, 1, 2, 3], "step 1": [1, 2, 3, 0], "step 2": [2, 3, 0, 1], "step 3": [3, 0, 1, 2],
}  # fmt: skip
"""Begins with its own block, as on the gather side."""

sum_schedule__wrong_up = {
    "step 0": [3, 0, 1, 2], "step 1": [2, 3, 0, 1], "step 2": [1, 2, 3, 0], "step 3": [0, 1, 2, 3],
}  # fmt: skip
"""Copies the schedule of sums that move up."""

sum_schedule__wrong_late = sum_schedule__right_plain | {"step 0": [0, 1, 2, 3], "step 3": [1, 2, 3, 0]}
"""Ends where it should begin."""

does_it_overlap__right_plain = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}
"""As it is."""

does_it_overlap__wrong_line_order = does_it_overlap__right_plain | {"send_and_multiply": "none"}
"""Takes the order of lines for an order of time."""

does_it_overlap__wrong_loop = does_it_overlap__right_plain | {"send_and_multiply_in_a_loop": "all"}
"""Believes that a loop is as good as written out."""

does_it_overlap__wrong_counts = does_it_overlap__right_plain | {"first_one_then_the_rest": "all"}
"""Lets one product hide many transfers."""


def ring_time__right_plain(n, product, transfer):
    """As in the hints."""
    return {"apart": n * product + (n - 1) * transfer, "overlapped": (n - 1) * max(product, transfer) + product}


def ring_time__right_loop(n, product, transfer):
    """By a loop over the steps."""
    apart = overlapped = product
    for _ in range(n - 1):
        apart, overlapped = apart + product + transfer, overlapped + max(transfer, product)
    return dict(apart=apart, overlapped=overlapped)


def ring_time__wrong_n_transfers(n, product, transfer):
    """n transfers."""
    return {"apart": n * (product + transfer), "overlapped": n * max(product, transfer)}


def ring_time__wrong_last_product(n, product, transfer):
    """Forgets the product behind the last transfer."""
    return {"apart": n * product + (n - 1) * transfer, "overlapped": (n - 1) * max(product, transfer)}


def ring_time__wrong_vanish(n, product, transfer):
    """Believes that transfers always vanish."""
    return {"apart": n * product + (n - 1) * transfer, "overlapped": n * product}


def ring_time__wrong_whole_maximum(n, product, transfer):
    """The larger of the two totals."""
    return {"apart": n * product + (n - 1) * transfer, "overlapped": max(n * product, (n - 1) * transfer)}


def ring_time__wrong_transfer_last(n, product, transfer):
    """Adds a transfer instead of a product at the end."""
    return {"apart": n * product + (n - 1) * transfer, "overlapped": (n - 1) * max(product, transfer) + transfer}


def ring_time__wrong_min(n, product, transfer):
    """The shorter one decides."""
    return {"apart": n * product + (n - 1) * transfer, "overlapped": (n - 1) * min(product, transfer) + product}


def _rows(a, b, mesh, body, vma=True):
    """A body for A[I_X, J] · B[J_X, K]."""
    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None), check_vma=vma)(
        a, b
    )


def _columns(a, b, block):
    """The columns of A that meet a block of B."""
    return jax.lax.dynamic_slice_in_dim(a, block * b.shape[0], b.shape[0], axis=1)


def ag_matmul_ring__right_plain(a, b, *, mesh):
    """As in the hints."""

    def body(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        total = jax.lax.dynamic_slice_in_dim(a, me * width, width, axis=1) @ b
        for step in range(1, n):
            b = send(b)
            start = (me - step) % n * width
            total += jax.lax.dynamic_slice_in_dim(a, start, width, axis=1) @ b
        return total

    specs = P("x", None), P("x", None)
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("x", None)))(a, b)


def ag_matmul_ring__right_down(a, b, *, mesh):
    """Down the ring, by a ppermute of its own, and A in blocks."""
    n = mesh.shape["x"]

    def body(a, b):
        blocks = a.reshape(a.shape[0], n, -1)
        me, down = jax.lax.axis_index("x"), [(d, (d - 1) % n) for d in range(n)]
        c = 0.0
        for step in range(n):
            coming = jax.lax.ppermute(b, "x", down) if step < n - 1 else None
            c = c + jnp.take(blocks, (me + step) % n, axis=1) @ b
            b = coming
        return c

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


def ag_matmul_ring__wrong_step(a, b, *, mesh):
    """Block number `step` on every device, as the book first had it."""

    def body(a, b):
        total = _columns(a, b, 0) @ b
        for step in range(1, jax.lax.axis_size("x")):
            b = send(b)
            total += _columns(a, b, step) @ b
        return total

    return _rows(a, b, mesh, body)


def ag_matmul_ring__wrong_plus(a, b, *, mesh):
    """me + step, for blocks that move up."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        total = _columns(a, b, me) @ b
        for step in range(1, n):
            b = send(b)
            total += _columns(a, b, (me + step) % n) @ b
        return total

    return _rows(a, b, mesh, body)


def ag_matmul_ring__wrong_four(a, b, *, mesh):
    """Four steps, as on the notebook's ring."""

    def body(a, b):
        me = jax.lax.axis_index("x")
        total = _columns(a, b, me) @ b
        for step in range(1, 4):
            b = send(b)
            total += _columns(a, b, (me - step) % 4) @ b
        return total

    return _rows(a, b, mesh, body)


def ag_matmul_ring__wrong_one_transfer_too_many(a, b, *, mesh):
    """Sends after the last product too."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        total = 0
        for step in range(n):
            total += _columns(a, b, (me - step) % n) @ b
            b = send(b)
        return total + 0 * b.sum()

    return _rows(a, b, mesh, body)


def ag_matmul_ring__wrong_gather(a, b, *, mesh):
    """Gathers, and multiplies."""
    return _rows(a, b, mesh, lambda a, b: a @ jax.lax.all_gather(b, "x", axis=0, tiled=True))


def ag_matmul_ring__wrong_send_first(a, b, *, mesh):
    """Collects all blocks, then multiplies."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        blocks = [b]
        for _ in range(n - 1):
            blocks.append(send(blocks[-1]))
        columns = [_columns(a, b, (me - step) % n) for step in range(n)]
        return jnp.concatenate(columns, axis=1) @ jnp.concatenate(blocks)

    return _rows(a, b, mesh, body)


def ag_matmul_ring__wrong_last_block(a, b, *, mesh):
    """Stops one block too early."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        total = _columns(a, b, me) @ b
        for step in range(1, n - 1):
            b = send(b)
            total += _columns(a, b, (me - step) % n) @ b
        return total

    return _rows(a, b, mesh, body)


def ag_matmul_ring__wrong_product_sent(a, b, *, mesh):
    """Sends A round instead of B: its rows meet the wrong rows' results."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        total = _columns(a, b, me) @ b
        for step in range(1, n):
            a = send(a)
            total += _columns(a, b, (me - step) % n) @ b
        return total

    return _rows(a, b, mesh, body)


def ag_matmul_ring__wrong_no_return(a, b, *, mesh):
    """Runs it, and forgets the return."""

    def body(a, b):
        return a @ jax.lax.all_gather(b, "x", axis=0, tiled=True)

    _rows(a, b, mesh, body)


def _sums(a, b, mesh, body, vma=True):
    """A body for A[I, J_X] · B[J_X, K]."""
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None), check_vma=vma)(
        a, b
    )


def _part(a, b, block):
    """A device's part of a block of rows of C."""
    height = a.shape[0] // jax.lax.axis_size("x")
    return jax.lax.dynamic_slice_in_dim(a, block * height, height) @ b


def rs_matmul_ring__right_plain(a, b, *, mesh):
    """As in the hints."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        height = a.shape[0] // n

        def part(step):
            return jax.lax.dynamic_slice_in_dim(a, (me + 1 + step) % n * height, height) @ b

        c = part(0)
        for step in range(1, n):
            c = send(c, -1) + part(step)
        return c

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


def rs_matmul_ring__right_up(a, b, *, mesh):
    """Up the ring."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        total = _part(a, b, (me - 1) % n)
        for step in range(1, n):
            here = _part(a, b, (me - 1 - step) % n)
            total = here + jax.lax.ppermute(total, "x", [(k, (k + 1) % n) for k in range(n)])
        return total

    return _sums(a, b, mesh, body)


def rs_matmul_ring__wrong_own_first(a, b, *, mesh):
    """Begins with its own block."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        c = _part(a, b, me)
        for step in range(1, n):
            c = send(c, -1) + _part(a, b, (me + step) % n)
        return c

    return _sums(a, b, mesh, body)


def rs_matmul_ring__wrong_direction(a, b, *, mesh):
    """The index of sums that move down, and sums that move up."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        c = _part(a, b, (me + 1) % n)
        for step in range(1, n):
            c = send(c) + _part(a, b, (me + 1 + step) % n)
        return c

    return _sums(a, b, mesh, body)


def rs_matmul_ring__wrong_add_then_send(a, b, *, mesh):
    """Adds first, then sends: one place too far."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        c = jnp.zeros((a.shape[0] // n, b.shape[1]))
        for step in range(n):
            c = send(c + _part(a, b, (me + 1 + step) % n), -1)
        return c

    return _sums(a, b, mesh, body)


def rs_matmul_ring__wrong_scatter(a, b, *, mesh):
    """psum_scatter after the product."""

    def body(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)

    return _sums(a, b, mesh, body)


def rs_matmul_ring__wrong_one_product(a, b, *, mesh):
    """One product, whose parts travel: nothing beside."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        parts = (a @ b).reshape(n, -1, b.shape[1])
        c = parts[(me + 1) % n]
        for step in range(1, n):
            c = send(c, -1) + parts[(me + 1 + step) % n]
        return c

    return _sums(a, b, mesh, body)


def rs_matmul_ring__wrong_columns(a, b, *, mesh):
    """Copies the worked example: columns of C, with the specs of rows."""

    def body(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[1] // jax.lax.axis_size("x")

        def part(step):
            return a @ jax.lax.dynamic_slice_in_dim(b, (me - 1 - step) % n * width, width, axis=1)

        c = part(0)
        for step in range(1, n):
            c = send(c) + part(step)
        return c

    return _sums(a, b, mesh, body)


def rs_matmul_ring__wrong_four(a, b, *, mesh):
    """A ring of four, always."""

    def body(a, b):
        me = jax.lax.axis_index("x")
        c = _part(a, b, (me + 1) % 4)
        for step in range(1, 4):
            c = send(c, -1) + _part(a, b, (me + 1 + step) % 4)
        return c

    return _sums(a, b, mesh, body)


def with_fori_loop__right_plain(a, b, *, mesh):
    """As in the hints."""

    def body(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def product(step, b):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ b

        def turn(step, carry):
            c, b = carry
            return c + product(step, b), send(b)

        c, b = jax.lax.fori_loop(0, n - 1, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))
        return c + product(n - 1, b)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


def with_fori_loop__right_zeros_of_a(a, b, *, mesh):
    """Makes varying zeros of a column of A, and adds the last product in one line."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")

        def turn(step, carry):
            c, b = carry
            coming = send(b)
            return c + _columns(a, b, (me - step) % n) @ b, coming

        zeros = 0 * a[:, :1] + jnp.zeros(b.shape[1])
        c, last = jax.lax.fori_loop(0, n - 1, turn, (zeros, b))
        return c + _columns(a, b, (me + 1) % n) @ last

    return _rows(a, b, mesh, body)


def with_fori_loop__wrong_zero_products(a, b, *, mesh):
    """Makes varying zeros of a whole product: one product too many."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")

        def turn(step, carry):
            c, b = carry
            coming = send(b)
            return c + _columns(a, b, (me - step) % n) @ b, coming

        c, last = jax.lax.fori_loop(0, n - 1, turn, (0 * (a[:, : b.shape[0]] @ b), b))
        return c + _columns(a, b, (me + 1) % n) @ last

    return _rows(a, b, mesh, body)


def with_fori_loop__wrong_zeros(a, b, *, mesh):
    """Zeros that do not vary."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")

        def turn(step, carry):
            c, b = carry
            return c + _columns(a, b, (me - step) % n) @ b, send(b)

        c, b = jax.lax.fori_loop(0, n - 1, turn, (jnp.zeros((a.shape[0], b.shape[1])), b))
        return c + _columns(a, b, (me + 1) % n) @ b

    return _rows(a, b, mesh, body)


def with_fori_loop__wrong_n_turns(a, b, *, mesh):
    """n turns: one transfer too many."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")

        def turn(step, carry):
            c, b = carry
            return c + _columns(a, b, (me - step) % n) @ b, send(b)

        return jax.lax.fori_loop(0, n, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))[0]

    return _rows(a, b, mesh, body)


def with_fori_loop__wrong_send_then_multiply(a, b, *, mesh):
    """Multiplies what has just come: nothing beside."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")

        def turn(step, carry):
            c, b = carry
            b = send(b)
            return c + _columns(a, b, (me - step) % n) @ b, b

        return jax.lax.fori_loop(1, n, turn, (_columns(a, b, me) @ b, b))[0]

    return _rows(a, b, mesh, body)


def with_fori_loop__wrong_python_loop(a, b, *, mesh):
    """A Python loop, as before."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        c = _columns(a, b, me) @ b
        for step in range(1, n):
            b = send(b)
            c += _columns(a, b, (me - step) % n) @ b
        return c

    return _rows(a, b, mesh, body)


def with_fori_loop__wrong_last_forgotten(a, b, *, mesh):
    """Forgets the block that arrives last."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")

        def turn(step, carry):
            c, b = carry
            return c + _columns(a, b, (me - step) % n) @ b, send(b)

        return jax.lax.fori_loop(0, n - 1, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))[0]

    return _rows(a, b, mesh, body)


def with_fori_loop__wrong_index_in_the_turn(a, b, *, mesh):
    """me + step, in the loop."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")

        def turn(step, carry):
            c, b = carry
            return c + _columns(a, b, (me + step) % n) @ b, send(b)

        c, b = jax.lax.fori_loop(0, n - 1, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))
        return c + _columns(a, b, (me + n - 1) % n) @ b

    return _rows(a, b, mesh, body)


def bidirectional__right_plain(a, b, *, mesh):
    """As in the hints."""

    def body(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        half = width // 2

        def product(block, second, rows):
            start = block % n * width + second * half
            return jax.lax.dynamic_slice_in_dim(a, start, half, axis=1) @ rows

        up, down = b[:half], b[half:]
        c = product(me, 0, up) + product(me, 1, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            c += product(me - step, 0, up) + product(me + step, 1, down)
        return c

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


def bidirectional__right_halves_exchanged(a, b, *, mesh):
    """The second halves go up, the first ones down."""

    def body(a, b):
        n, me, half = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0] // 2
        blocks = a.reshape(len(a), n, 2, half)

        def term(block, which, rows):
            return jnp.take(blocks, block % n, axis=1)[:, which] @ rows

        down, up = jnp.split(b, 2)
        total = term(me, 0, down) + term(me, 1, up)
        for t in range(1, n):
            down, up = send(down, -1), send(up, +1)
            total = total + term(me + t, 0, down) + term(me - t, 1, up)
        return total

    return _rows(a, b, mesh, body)


def bidirectional__wrong_both_up(a, b, *, mesh):
    """Both halves go up."""

    def body(a, b):
        n, me, half = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0] // 2

        def product(block, second, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * 2 * half + second * half, half, axis=1) @ rows

        first, second = b[:half], b[half:]
        c = product(me, 0, first) + product(me, 1, second)
        for step in range(1, n):
            first, second = send(first), send(second)
            c += product(me - step, 0, first) + product(me - step, 1, second)
        return c

    return _rows(a, b, mesh, body)


def bidirectional__wrong_same_block(a, b, *, mesh):
    """Takes both halves at a step for halves of one block."""

    def body(a, b):
        n, me, half = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0] // 2

        def product(block, second, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * 2 * half + second * half, half, axis=1) @ rows

        up, down = b[:half], b[half:]
        c = product(me, 0, up) + product(me, 1, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            c += product(me - step, 0, up) + product(me - step, 1, down)
        return c

    return _rows(a, b, mesh, body)


def bidirectional__wrong_no_half_shift(a, b, *, mesh):
    """Forgets that the second half's columns begin half a block later."""

    def body(a, b):
        n, me, half = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0] // 2

        def product(block, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * 2 * half, half, axis=1) @ rows

        up, down = b[:half], b[half:]
        c = product(me, up) + product(me, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            c += product(me - step, up) + product(me + step, down)
        return c

    return _rows(a, b, mesh, body)


def bidirectional__wrong_whole_blocks_half_way(a, b, *, mesh):
    """Whole blocks, half of the way each: as many bytes, other transfers."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        c, up, down = _columns(a, b, me) @ b, b, b
        for step in range(1, n // 2 + 1):
            up = send(up)
            c += _columns(a, b, (me - step) % n) @ up
            if step <= (n - 1) // 2:
                down = send(down, -1)
                c += _columns(a, b, (me + step) % n) @ down
        return c

    return _rows(a, b, mesh, body)


def bidirectional__wrong_one_way(a, b, *, mesh):
    """The ring of the first exercise."""

    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        c = _columns(a, b, me) @ b
        for step in range(1, n):
            b = send(b)
            c += _columns(a, b, (me - step) % n) @ b
        return c

    return _rows(a, b, mesh, body)


def _network(x, w1, w2, mesh, body, vma=True):
    """A body for the block."""
    specs = P("x", None), P(None, "x"), P("x", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("x", None), check_vma=vma)(x, w1, w2)


def mlp_block__right_plain(x, w1, w2, *, mesh):
    """As in the hints."""

    def body(x, w1, w2):
        n = jax.lax.axis_size("x")
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(n - 1):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        y = hidden[-1] @ w2
        for block in reversed(hidden[:-1]):
            y = send(y, -1) + block @ w2
        return y

    specs = P("x", None), P(None, "x"), P("x", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("x", None))(x, w1, w2)


def mlp_block__right_down_then_up(x, w1, w2, *, mesh):
    """X goes down, the sums go up."""

    def body(x, w1, w2):
        n, blocks = jax.lax.axis_size("x"), []
        for step in range(n):
            coming = send(x, -1) if step + 1 < n else x
            blocks.append(jax.nn.gelu(x @ w1))
            x = coming
        y = blocks.pop() @ w2
        while blocks:
            here = blocks.pop() @ w2
            y = here + send(y, 1)
        return y

    return _network(x, w1, w2, mesh, body)


def mlp_block__wrong_forwards(x, w1, w2, *, mesh):
    """Goes through the list forwards."""

    def body(x, w1, w2):
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(jax.lax.axis_size("x") - 1):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        y = hidden[0] @ w2
        for block in hidden[1:]:
            y = send(y, -1) + block @ w2
        return y

    return _network(x, w1, w2, mesh, body)


def mlp_block__wrong_sums_up(x, w1, w2, *, mesh):
    """Lets the sums move up as well."""

    def body(x, w1, w2):
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(jax.lax.axis_size("x") - 1):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        y = hidden[-1] @ w2
        for block in reversed(hidden[:-1]):
            y = send(y) + block @ w2
        return y

    return _network(x, w1, w2, mesh, body)


def mlp_block__wrong_no_gelu(x, w1, w2, *, mesh):
    """Forgets gelu."""

    def body(x, w1, w2):
        hidden = [x @ w1]
        for _ in range(jax.lax.axis_size("x") - 1):
            x = send(x)
            hidden.append(x @ w1)
        y = hidden[-1] @ w2
        for block in reversed(hidden[:-1]):
            y = send(y, -1) + block @ w2
        return y

    return _network(x, w1, w2, mesh, body)


def mlp_block__wrong_relu(x, w1, w2, *, mesh):
    """relu in place of gelu."""

    def body(x, w1, w2):
        hidden = [jax.nn.relu(x @ w1)]
        for _ in range(jax.lax.axis_size("x") - 1):
            x = send(x)
            hidden.append(jax.nn.relu(x @ w1))
        y = hidden[-1] @ w2
        for block in reversed(hidden[:-1]):
            y = send(y, -1) + block @ w2
        return y

    return _network(x, w1, w2, mesh, body)


def mlp_block__wrong_gelu_at_the_end(x, w1, w2, *, mesh):
    """gelu of the result too."""

    def body(x, w1, w2):
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(jax.lax.axis_size("x") - 1):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        y = hidden[-1] @ w2
        for block in reversed(hidden[:-1]):
            y = send(y, -1) + block @ w2
        return jax.nn.gelu(y)

    return _network(x, w1, w2, mesh, body)


def mlp_block__wrong_collectives(x, w1, w2, *, mesh):
    """all_gather and psum_scatter."""

    def body(x, w1, w2):
        hidden = jax.nn.gelu(jax.lax.all_gather(x, "x", axis=0, tiled=True) @ w1)
        return jax.lax.psum_scatter(hidden @ w2, "x", scatter_dimension=0, tiled=True)

    return _network(x, w1, w2, mesh, body)


def mlp_block__wrong_half_ring(x, w1, w2, *, mesh):
    """A ring in front, psum_scatter behind."""

    def body(x, w1, w2):
        n, me, height = jax.lax.axis_size("x"), jax.lax.axis_index("x"), x.shape[0]
        y = varying(jnp.zeros((n * height, w2.shape[1])))
        for step in range(n):
            y = jax.lax.dynamic_update_slice_in_dim(y, jax.nn.gelu(x @ w1) @ w2, (me - step) % n * height, axis=0)
            if step < n - 1:
                x = send(x)
        return jax.lax.psum_scatter(y, "x", scatter_dimension=0, tiled=True)

    return _network(x, w1, w2, mesh, body)


def ag_matmul_ring__wrong_in_bfloat16(a, b, *, mesh):
    """Blocks travel with half of their digits."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]

        def product(step, b):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ b

        c = product(0, b)
        for step in range(1, n):
            b = send(b.astype(jnp.bfloat16)).astype(jnp.float32)
            c += product(step, b)
        return c

    specs = P("x", None), P("x", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("x", None))(a, b)


def bidirectional__right_halves_of_columns(a, b, *, mesh):
    """Half of the columns of a block goes each way."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width, half = jax.lax.axis_index("x"), b.shape[0], b.shape[1] // 2
        up, down = b[:, :half], b[:, half:]

        def fitting(block):
            return jax.lax.dynamic_slice_in_dim(a, block % n * width, width, axis=1)

        left, right = fitting(me) @ up, fitting(me) @ down
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            left, right = left + fitting(me - step) @ up, right + fitting(me + step) @ down
        return jnp.concatenate([left, right], axis=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


def mlp_block__wrong_in_bfloat16(x, w1, w2, *, mesh):
    """Sends the rows of X in half the bytes."""

    def on_device(x, w1, w2):
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(1, mesh.shape["x"]):
            x = send(x.astype(jnp.bfloat16)).astype(jnp.float32)
            hidden.append(jax.nn.gelu(x @ w1))
        y = hidden.pop() @ w2
        while hidden:
            y = send(y, -1) + hidden.pop() @ w2
        return y

    specs = P("x", None), P(None, "x"), P("x", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("x", None))(x, w1, w2)
