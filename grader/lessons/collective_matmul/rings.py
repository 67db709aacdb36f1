"""§ 3, 6–9, the programs: products that run while their operands travel, written with shard_map.

All of them are rings over mesh axis x: n devices, n blocks, n-1 transfers between neighbours.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, BytesSent, Case, Draw, Flops, Meanwhile, OneWay, ProgramExercise, Turns, Written
from grader.lessons.shared import FLOAT, bytes_sent, device_map

Index = Callable[[Any, Any, int], Any]  # which block a device multiplies, given its place, the step, and n
Steps = Callable[[int], Sequence[int]]  # at which steps it multiplies, given n
RINGS = (4,), (3,), (6,), (2,)  # not of one device: there shard_map leaves no trace in a program

_exercise = partial(ProgramExercise, reference=lambda a, b: a @ b, mesh_shapes=RINGS)


def _send(block, n: int, by: int):
    """What the device `by` places back held."""
    return lax.ppermute(block, "x", [(k, (k + by) % n) for k in range(n)])


def _columns(a, block, width: int):
    return lax.dynamic_slice_in_dim(a, block * width, width, axis=1)


def _rows(a, block, height: int):
    return lax.dynamic_slice_in_dim(a, block * height, height, axis=0)


def _behind(me, step, n: int):
    return (me - step) % n


def _ahead(me, step, n: int):
    return (me + step) % n


def _next_first(me, step, n: int):
    return (me + 1 + step) % n


def _static(me, step, n: int):
    return step % n


def _own(me, step, n: int):
    return me


# The all-gather side: A[I_X, J] · B[J_X, K] → C[I_X, K]. B travels.

GATHER = P("x", None), P("x", None)


def _gather_case(draw: Draw, divisible: int = 1, *, transfers: int = 1, halves: bool = False, written: int = 0) -> Case:
    """A case in which B goes round once, in so many transfers a step; `halves`: half of each block each way."""
    mesh = draw.mesh("x")
    n = mesh["x"]
    i, j, k = draw.lengths(3, divisible_by=divisible * n)
    a = draw.array(i, j, spec=GATHER[0])
    b = Array(draw.values(j, k) + np.float32(1 / 64), GATHER[1])  # more digits than bfloat16 has
    sent, product = (n - 1) * FLOAT * j * k // n, 2 * i * j * k // n**2
    return Case(
        {"a": a, "b": b},
        mesh,
        out=P("x", None),
        limits=[
            BytesSent(sent),
            Flops(n * product),
            Turns({"collective_permute": transfers * (n - 1)}),
            Meanwhile(product // transfers),
            *([OneWay(sent // 2)] if halves and n > 2 else []),
            *([Written({"collective_permute": written})] if written else []),
        ],
    )


def _gather(a, b, mesh, *, index: Index = _behind, steps: Steps = range):
    """The ring: B moves one place up before every step but the first."""
    n = mesh.shape["x"]

    def body(a, b):
        me, width, total = lax.axis_index("x"), b.shape[0], jnp.zeros((a.shape[0], b.shape[1]))
        for step in range(max(steps(n), default=0) + 1):
            b = _send(b, n, 1) if step else b
            if step in steps(n):
                total += _columns(a, index(me, step, n), width) @ b
        return total

    return device_map(body, mesh, GATHER, P("x", None))(a, b)


ag_matmul_ring = _exercise("ag_matmul_ring", points=5, against_compiler=True)


@ag_matmul_ring.cases
def _(draw):
    return _gather_case(draw)


@ag_matmul_ring.mistake
def looked_ahead(a, b, *, mesh):
    """The columns of A are chosen as if the blocks of B came from the other side. To which neighbour does your ring
    send, and whose block does device d hold after t steps: that of d + t, or that of d − t?"""
    return _gather(a, b, mesh, index=_ahead)


@ag_matmul_ring.mistake
def static_index(a, b, *, mesh):
    """Step t takes columns number t of A on every device alike. But the devices hold different blocks of B at that
    moment. On which two numbers does the block depend? (A well-known book had this slip in its first version.)"""
    return _gather(a, b, mesh, index=_static)


@ag_matmul_ring.mistake
def always_its_own(a, b, *, mesh):
    """B moves on, but each device multiplies the same columns of A at every step, those that fit the block it started
    with. Which columns fit the block that has just arrived?"""
    return _gather(a, b, mesh, index=_own)


@ag_matmul_ring.mistake
def a_travels(a, b, *, mesh):
    """A went round the ring, and each device multiplied its own block of B every time. Rows of A that come from
    elsewhere make rows of C that belong elsewhere. Whose rows of C are a device's, and what of B does it lack for
    them?"""
    n = mesh.shape["x"]

    def body(a, b):
        me, total = lax.axis_index("x"), jnp.zeros((a.shape[0], b.shape[1]))
        for step in range(n):
            a = _send(a, n, 1) if step else a
            total += _columns(a, _behind(me, step, n), b.shape[0]) @ b
        return total

    return device_map(body, mesh, GATHER, P("x", None))(a, b)


@ag_matmul_ring.mistake
def one_step_too_few(a, b, *, mesh):
    """One term of the sum is missing: that of the block that comes last. With n devices there are n blocks, so how many
    products, and how many transfers?"""
    return _gather(a, b, mesh, steps=lambda n: range(max(n - 1, 1)))


@ag_matmul_ring.mistake
def one_step_too_many(a, b, *, mesh):
    """The first product is in the sum a second time: after n transfers every block is back where it began. A device
    owns one of the n blocks already: how many must still come?"""
    return _gather(a, b, mesh, steps=lambda n: range(n + 1))


@ag_matmul_ring.mistake
def forgot_the_first_product(a, b, *, mesh):
    """Only what arrived was multiplied. The block that each device has from the start is a term of the sum as well."""
    return _gather(a, b, mesh, steps=lambda n: range(1, n))


@ag_matmul_ring.mistake
def started_at_the_number(a, b, *, mesh):
    """The columns of A start at the *number* of the block. Block number 2 begins behind two whole blocks: at which
    column is that?"""
    n = mesh.shape["x"]

    def body(a, b):
        me, width, total = lax.axis_index("x"), b.shape[0], 0
        for step in range(n):
            b = _send(b, n, 1) if step else b
            total += lax.dynamic_slice_in_dim(a, (me - step) % n, width, axis=1) @ b
        return total

    return device_map(body, mesh, GATHER, P("x", None))(a, b)


@ag_matmul_ring.mistake
def added_up_over_the_ring(a, b, *, mesh):
    """A psum at the end adds the C blocks of different devices: different rows of C. Every device has met all blocks
    of B, so its sum over J is already whole. What is there left to add?"""
    return device_map(lambda c: lax.psum(c, "x"), mesh, P("x", None), P("x", None))(_gather(a, b, mesh))


@ag_matmul_ring.mistake
def gathered_at_once(a, b, *, mesh):
    """An all_gather brings all of B, and nothing can be multiplied before it is there. Let B come block by block,
    each from the neighbour, and multiply the block at hand meanwhile."""
    return device_map(lambda a, b: a @ lax.all_gather(b, "x", axis=0, tiled=True), mesh, GATHER, P("x", None))(a, b)


def _gathered_by_ring(b, n: int):
    """All of B, collected block by block."""
    me, height = lax.axis_index("x"), b.shape[0]
    whole = jnp.tile(b, (n, 1))
    for step in range(1, n):
        b = _send(b, n, 1)
        whole = lax.dynamic_update_slice_in_dim(whole, b, (me - step) % n * height, axis=0)
    return whole


@ag_matmul_ring.mistake
def multiplied_at_the_end(a, b, *, mesh):
    """All values and transfers are right, but a product waits for blocks that it does not need: the transfers come
    first, the multiplying after. Which product could run while the first block is on its way? And the second?"""
    n = mesh.shape["x"]
    return device_map(lambda a, b: a @ _gathered_by_ring(b, n), mesh, GATHER, P("x", None))(a, b)


# The reduce-scatter side: A[I, J_X] · B[J_X, K] → C[I_X, K]. Sums travel, and each device adds its part.

SCATTER = P(None, "x"), P("x", None)

rs_matmul_ring = _exercise("rs_matmul_ring", points=5)


@rs_matmul_ring.cases
def _(draw):
    mesh = draw.mesh("x")
    n = mesh["x"]
    i, j, k = draw.lengths(3, divisible_by=n)
    a, b = draw.array(i, j, spec=SCATTER[0]), draw.array(j, k, spec=SCATTER[1])
    product = 2 * i * j * k // n**2
    return Case(
        {"a": a, "b": b},
        mesh,
        out=P("x", None),
        limits=[
            BytesSent((n - 1) * FLOAT * i * k // n),
            Flops(n * product),
            Turns({"collective_permute": n - 1}),
            Meanwhile(product),
        ],
    )


def _scatter(
    a,
    b,
    mesh,
    *,
    index: Index = _next_first,
    by: int = -1,
    combined: Callable[..., Any] = lambda send, total, last, part: send(total) + part,
):
    """The ring of sums: at each step a device gets a sum and adds its own part of the same block."""
    n = mesh.shape["x"]

    def body(a, b):
        me, height = lax.axis_index("x"), a.shape[0] // n
        parts = [_rows(a, index(me, step, n), height) @ b for step in range(n)]
        total = parts[0]
        for last, part in itertools.pairwise(parts):
            total = combined(lambda block: _send(block, n, by), total, last, part)
        return total

    return device_map(body, mesh, SCATTER, P("x", None))(a, b)


@rs_matmul_ring.mistake
def started_at_home(a, b, *, mesh):
    """All sums are right and complete, each on a wrong device: they stand one place off. A sum moves n − 1 times;
    where must it begin to be at home at the end?"""
    return _scatter(a, b, mesh, index=_ahead)


@rs_matmul_ring.mistake
def sent_the_other_way(a, b, *, mesh):
    """The sums go round one way, and the blocks are chosen as if they went the other. A device then adds its part of
    one block to the sum of another. Follow one sum for two steps with a finger on the film."""
    return _scatter(a, b, mesh, by=1)


@rs_matmul_ring.mistake
def added_before_sending(a, b, *, mesh):
    """Each part was added before the sum was sent, so it met the sum of another block. First the sum for *this* block
    must arrive; then the device adds its part."""
    return _scatter(a, b, mesh, combined=lambda send, total, last, part: send(total + part))


@rs_matmul_ring.mistake
def sent_only_the_part(a, b, *, mesh):
    """What travels on is the device's own part, without what came before it, so the last two parts are all that is
    left. What should the next device receive?"""
    return _scatter(a, b, mesh, combined=lambda send, total, last, part: send(last) + part)


@rs_matmul_ring.mistake
def never_sent(a, b, *, mesh):
    """Each device has the sum of its own parts, those of all blocks of C together. Entries of different blocks do not
    belong in one sum. What should move between two additions?"""
    return _scatter(a, b, mesh, combined=lambda send, total, last, part: total + part)


@rs_matmul_ring.mistake
def sums_began_at_the_number(a, b, *, mesh):
    """The rows of A start at the *number* of the block. Block number 2 begins behind two whole blocks: at which row
    is that?"""
    n = mesh.shape["x"]

    def body(a, b):
        me, height, total = lax.axis_index("x"), a.shape[0] // n, 0
        for step in range(n):
            part = lax.dynamic_slice_in_dim(a, (me + 1 + step) % n, height) @ b
            total = _send(total, n, -1) + part if step else part
        return total

    return device_map(body, mesh, SCATTER, P("x", None))(a, b)


@rs_matmul_ring.mistake
def scattered_at_once(a, b, *, mesh):
    """A psum_scatter adds up and deals out, but it needs the whole product first, so nothing is left to compute while
    it sends. Let each sum travel from neighbour to neighbour, and compute the next part meanwhile."""
    body = lambda a, b: lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)  # noqa: E731
    return device_map(body, mesh, SCATTER, P("x", None))(a, b)


@rs_matmul_ring.mistake
def multiplied_everything_first(a, b, *, mesh):
    """The values and the transfers are right, but the whole product is computed in one piece, before the first sum
    leaves. A sum needs only one block of rows to start with. When is each of the other blocks needed?"""
    n = mesh.shape["x"]

    def body(a, b):
        me, c = lax.axis_index("x"), a @ b
        height = c.shape[0] // n
        total = _rows(c, (me + 1) % n, height)
        for step in range(1, n):
            total = _send(total, n, -1) + _rows(c, (me + 1 + step) % n, height)
        return total

    return device_map(body, mesh, SCATTER, P("x", None))(a, b)


# In a loop: the same ring as ag_matmul_ring, written once for any number of devices.

with_fori_loop = _exercise("with_fori_loop", points=4)


@with_fori_loop.cases
def _(draw):
    return _gather_case(draw, written=1)


def _loop(
    a,
    b,
    mesh,
    *,
    turns: Callable[[int], tuple[int, int]] = lambda n: (0, n - 1),
    last: bool = True,
    index: Index = _behind,
    sent_first: bool = False,
    check_vma: bool = False,
):
    """The ring in a fori_loop: a turn multiplies the block at hand and sends it on; the last block comes after."""
    n = mesh.shape["x"]

    def body(a, b):
        me, width = lax.axis_index("x"), b.shape[0]

        def product(step, b):
            return _columns(a, index(me, step, n), width) @ b

        def turn(step, carry):
            total, b = carry
            if sent_first:
                b = _send(b, n, 1)
                return total + product(step, b), b
            return total + product(step, b), _send(b, n, 1)

        start = product(0, b) if sent_first else jnp.zeros((a.shape[0], b.shape[1]))
        total, b = lax.fori_loop(*turns(n), turn, (start, b))
        return total + product(n - 1, b) if last else total

    return device_map(body, mesh, GATHER, P("x", None), check_vma)(a, b)


@with_fori_loop.mistake
def carry_without_a_type(a, b, *, mesh):
    """The sum enters the loop as zeros, the same on every device, and leaves it different on each: the carry would
    change its type. Mark the zeros as varying over x before the loop. The message names a way; the lesson's `varying`
    works on every JAX."""
    return _loop(a, b, mesh, check_vma=True)


@with_fori_loop.mistake
def received_before_multiplying(a, b, *, mesh):
    """Nothing is multiplied beside a transfer: products wait for what arrives. A turn ends before the next one begins.
    Which block could a turn multiply while it sends?"""
    return _loop(a, b, mesh, turns=lambda n: (1, n), last=False, sent_first=True)


@with_fori_loop.mistake
def sent_in_the_last_turn_too(a, b, *, mesh):
    """Every turn sends, the last one too, and what it sends is not needed by anybody. Let the loop have a turn less,
    and do the last product after it."""
    return _loop(a, b, mesh, turns=lambda n: (0, n), last=False)


@with_fori_loop.mistake
def forgot_the_last_product(a, b, *, mesh):
    """One product is missing, that of the block that comes last. After n − 1 transfers, how many blocks has a device
    had? Where can the last product go?"""
    return _loop(a, b, mesh, last=False)


@with_fori_loop.mistake
def counted_from_one(a, b, *, mesh):
    """In the loop each product takes the columns of A that are due one transfer later. In the first turn nothing has
    moved yet: from which number does the loop count, and which block does a device hold then?"""
    return _loop(a, b, mesh, turns=lambda n: (1, n))


@with_fori_loop.mistake
def looped_ahead(a, b, *, mesh):
    """The columns of A are chosen as if blocks came from the other side. To which neighbour does your ring send, and
    whose block does device d hold after t steps: that of d + t, or that of d − t?"""
    return _loop(a, b, mesh, index=_ahead)


@with_fori_loop.mistake
def written_out(a, b, *, mesh):
    """A Python `for` is run while the program is traced: it writes every step out, and the program grows with the
    number of devices. `jax.lax.fori_loop`, not unrolled, writes the step once."""
    return _gather(a, b, mesh)


@with_fori_loop.mistake
def gathered_before_the_loop(a, b, *, mesh):
    """B is gathered at once, and nothing can be multiplied before all of it is there. Send in the loop, a block a
    turn."""
    n = mesh.shape["x"]

    def body(a, b):
        height, whole = b.shape[0], lax.all_gather(b, "x", axis=0, tiled=True)
        start = jnp.zeros((a.shape[0], b.shape[1]))
        return lax.fori_loop(0, n, lambda k, c: c + _columns(a, k, height) @ _rows(whole, k, height), start)

    return device_map(body, mesh, GATHER, P("x", None))(a, b)


# Both ways round: half of each block goes up, the other half down.

bidirectional = _exercise("bidirectional", points=6)


@bidirectional.cases
def _(draw):
    return _gather_case(draw, 2, transfers=2, halves=True)


def _both_ways(
    a,
    b,
    mesh,
    *,
    ways: tuple[int, int] = (1, -1),
    indices=(_behind, _ahead),
    offset: bool = True,
    steps: Steps = range,
    halves: int = 2,
):
    n = mesh.shape["x"]

    def body(a, b):
        me, half = lax.axis_index("x"), b.shape[0] // 2
        parts, total = [b[:half], b[half:]], 0
        for step in steps(n):
            for k in range(halves):
                parts[k] = _send(parts[k], n, ways[k]) if step else parts[k]
                start = indices[k](me, step, n) * 2 * half + k * half * offset
                total += lax.dynamic_slice_in_dim(a, start, half, axis=1) @ parts[k]
        return total

    return device_map(body, mesh, GATHER, P("x", None))(a, b)


@bidirectional.mistake
def both_halves_the_same_way(a, b, *, mesh):
    """The blocks are cut in two, but both halves go to the same neighbour: the links the other way stay idle, and
    nothing is won. Which permutation sends one of them the other way round?"""
    return _both_ways(a, b, mesh, ways=(1, 1), indices=(_behind, _behind))


@bidirectional.mistake
def index_of_the_second_half(a, b, *, mesh):
    """The halves travel in opposite directions, and both are multiplied as if they had come from the same side. From
    where does the half come that moves *down* the ring?"""
    return _both_ways(a, b, mesh, indices=(_behind, _behind))


@bidirectional.mistake
def second_half_at_the_front(a, b, *, mesh):
    """The second half of a block of B meets the columns of A that belong to the first half. Where in a block does its
    second half begin?"""
    return _both_ways(a, b, mesh, offset=False)


@bidirectional.mistake
def dropped_a_half(a, b, *, mesh):
    """Only one half of each block of B was multiplied. Each step has two products now, one for each half."""
    return _both_ways(a, b, mesh, halves=1)


@bidirectional.mistake
def halved_the_steps(a, b, *, mesh):
    """Half as many steps are enough for *whole* blocks that go both ways. A half block that goes one way only still
    has to visit all devices: how many steps does that take?"""
    return _both_ways(a, b, mesh, steps=lambda n: range(n // 2 + 1))


@bidirectional.mistake
def sent_whole_blocks(a, b, *, mesh):
    """The result is right, but whole blocks travel: all of them one way, or, with an even number of devices, one more
    up than down. One link then carries more than its half. Cut each block in two, and send the halves opposite
    ways."""
    return _gather(a, b, mesh)


# A layer and the next: X[I_X, D] · W1[D, F_X] → gelu → · W2[F_X, D] → Y[I_X, D], a ring on either side.

LAYERS = P("x", None), P(None, "x"), P("x", None)

mlp_block = ProgramExercise(
    "mlp_block", points=6, reference=lambda x, w1, w2: jax.nn.gelu(x @ w1) @ w2, mesh_shapes=RINGS, piece=True
)


@mlp_block.cases
def _(draw):
    mesh = draw.mesh("x")
    n = mesh["x"]
    i, d, f = draw.lengths(3, divisible_by=n)
    sizes = {"x": (i, d), "w1": (d, f), "w2": (f, d)}
    # An eighth of whole numbers: small enough that a gelu is more than a relu.
    arrays = {
        name: Array(draw.values(*shape) / 8, spec) for (name, shape), spec in zip(sizes.items(), LAYERS, strict=True)
    }
    arrays["x"] = Array(arrays["x"].value + np.float32(1 / 512), LAYERS[0])  # more digits than bfloat16 has
    sent = 2 * bytes_sent("all_gather", i * d // n, n)
    product = 2 * i * d * f // n**2
    # A gelu takes some operations for every entry of the hidden layer: about thirty, however XLA counts them.
    return Case(
        arrays,
        mesh,
        out=P("x", None),
        limits=[
            BytesSent(round(sent)),
            Flops(2 * n * product + 20 * i * f // n),
            Turns({"collective_permute": 2 * (n - 1)}),
            Meanwhile(product),
        ],
    )


def _same(value):
    return value


def _layers(x, w1, w2, mesh, *, between=jax.nn.gelu, after=_same, order=lambda hidden: hidden[::-1], by: int = -1):
    """Rows of X go up the ring and become blocks of the hidden layer; sums of Y go down and use them backwards."""
    n = mesh.shape["x"]

    def body(x, w1, w2):
        hidden = []
        for step in range(n):
            x = _send(x, n, 1) if step else x
            hidden.append(between(x @ w1))
        total, *others = order(hidden)
        total = total @ w2
        for block in others:
            total = _send(total, n, by) + block @ w2
        return after(total)

    return device_map(body, mesh, LAYERS, P("x", None))(x, w1, w2)


@mlp_block.mistake
def forgot_the_gelu(x, w1, w2, *, mesh):
    """There is no gelu between the two products, so they are one linear layer. The hidden blocks are whole when they
    are made: that is the place for it."""
    return _layers(x, w1, w2, mesh, between=_same)


@mlp_block.mistake
def gelu_after_the_sums(x, w1, w2, *, mesh):
    """The gelu came after the second product. It belongs to the hidden layer, between the two: x · W1, gelu, · W2."""
    return _layers(x, w1, w2, mesh, between=_same, after=jax.nn.gelu)


@mlp_block.mistake
def hidden_in_the_order_of_arrival(x, w1, w2, *, mesh):
    """The sums use the hidden blocks in the order in which they arrived. A sum must begin with the block whose home
    is farthest away, and end with the device's own. Which block arrived first?"""
    return _layers(x, w1, w2, mesh, order=_same)


@mlp_block.mistake
def own_block_first(x, w1, w2, *, mesh):
    """The sums are complete, but stand one place off. A device's own block should come last: with which of the hidden
    blocks must a sum begin to end at home?"""
    return _layers(x, w1, w2, mesh, order=lambda hidden: [hidden[0], *hidden[:0:-1]])


@mlp_block.mistake
def both_rings_the_same_way(x, w1, w2, *, mesh):
    """The hidden blocks are used in an order that fits rings of opposite directions. Do X and the sums go round in the
    same one? Write down for one device which block it adds, and where that sum goes next."""
    return _layers(x, w1, w2, mesh, by=1)


@mlp_block.mistake
def collectives_at_once(x, w1, w2, *, mesh):
    """An all_gather in front and a psum_scatter behind are right, but every device waits for them with nothing to
    multiply. This lesson has a ring for each: put them in."""

    def body(x, w1, w2):
        hidden = jax.nn.gelu(lax.all_gather(x, "x", axis=0, tiled=True) @ w1)
        return lax.psum_scatter(hidden @ w2, "x", scatter_dimension=0, tiled=True)

    return device_map(body, mesh, LAYERS, P("x", None))(x, w1, w2)


@mlp_block.mistake
def put_the_hidden_layer_together(x, w1, w2, *, mesh):
    """The hidden layer is put together and multiplied by W2 in one piece, so that nothing is left to compute while
    the sums travel. Multiply each hidden block when its sum needs it."""
    n = mesh.shape["x"]

    def body(x, w1, w2):
        me, height = lax.axis_index("x"), x.shape[0]
        hidden = jnp.zeros((n * height, w1.shape[1]))
        for step in range(n):
            x = _send(x, n, 1) if step else x
            hidden = lax.dynamic_update_slice_in_dim(hidden, jax.nn.gelu(x @ w1), (me - step) % n * height, axis=0)
        y = hidden @ w2
        total = _rows(y, (me + 1) % n, height)
        for step in range(1, n):
            total = _send(total, n, -1) + _rows(y, (me + 1 + step) % n, height)
        return total

    return device_map(body, mesh, LAYERS, P("x", None))(x, w1, w2)
