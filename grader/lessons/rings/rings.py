"""§ 1–6, the programs: collectives built from sends between neighbours, written with shard_map.

The devices along x stand in a ring; `_pass` sends a block to the next one. Along y there are copies.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import BytesSent, Case, ProgramExercise, Steps, Turns
from grader.lessons.shared import FLOAT, bytes_sent


def on_ring(body, x, mesh, ins, out):
    """`body(block)` on every device, x laid out by `ins`, the result by `out`."""
    return jax.shard_map(body, mesh=mesh, in_specs=ins, out_specs=out, check_vma=False)(x)


def _me():
    return lax.axis_index("x")


def _pass(block, n, by=1):
    return lax.ppermute(block, "x", [(d, (d + by) % n) for d in range(n)])


def _case(draw, x, ins, out, passes, nbytes, steps):
    """A case whose best program passes something on so often, in so many steps; on one device nothing is sent."""
    mesh = draw.mesh("x", "y")
    n = mesh["x"]
    return Case(
        {"x": draw.array(*x(n), spec=ins)},
        mesh,
        out,
        limits=[BytesSent(round(nbytes(n)) if n > 1 else 0), Turns({"collective_permute": passes(n)}), Steps(steps(n))],
    )


# To pass on: every device sends its row to the device k places further.

shift = ProgramExercise("shift", points=3, reference=lambda x, k: np.roll(x, k, axis=0))
ROW = P("x", None)  # one row on each device


@shift.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    (length,) = draw.lengths(1, divisible_by=3)
    for k in (3, -2):
        x = draw.array(mesh["x"], length, spec=ROW)
        yield Case({"x": x, "k": k}, mesh, ROW, limits=[Turns({"collective_permute": 1})])


def _shifted(x, mesh, pairs):
    return on_ring(lambda row: lax.ppermute(row, "x", pairs(mesh.shape["x"])), x, mesh, ROW, ROW)


@shift.mistake
def pairs_reversed(x, *, k, mesh):
    """The blocks went the other way round. A pair is (source, destination): in which place does the device stand
    that sends?"""
    return _shifted(x, mesh, lambda n: [((d + k) % n, d) for d in range(n)])


@shift.mistake
def no_way_round(x, *, k, mesh):
    """The pairs name devices that are not there: behind the last one a ring goes on with device 0. Which operation
    turns 5 into 1 on four devices?"""
    return _shifted(x, mesh, lambda n: [(d, d + k) for d in range(n)])


@shift.mistake
def forgot_the_last_device(x, *, k, mesh):
    """One device was sent nothing, so it holds zeros: ppermute keeps no old value. The pairs are one short. How many
    devices send in a ring of n?"""
    return _shifted(x, mesh, lambda n: [(d, (d + k) % n) for d in range(n - 1)])


@shift.mistake
def destinations_only(x, *, k, mesh):
    """The permutation is a list of numbers, and JAX wants pairs: for each sender, (source, destination). Other
    libraries take destinations only."""
    return _shifted(x, mesh, lambda n: [(d + k) % n for d in range(n)])


@shift.mistake
def one_sends_to_all(x, *, k, mesh):
    """One device appears as the source of several pairs. In a permutation everybody sends once and receives once at
    most; to send to all is a broadcast, and needs another collective. Whom does device 1 send to?"""
    return _shifted(x, mesh, lambda n: [(0, d) for d in range(n)])


@shift.mistake
def pairs_from_the_own_index(x, *, k, mesh):
    """The pairs were made from `axis_index`, which each device knows only while it runs. The permutation is part of
    the program, the same for all: plain Python numbers, for every device. How many devices are there?"""
    return _shifted(x, mesh, lambda n: [(_me(), (_me() + k) % n)])


@shift.mistake
def always_to_the_next(x, *, k, mesh):
    """Every block went to the next device, whatever k is. The destination is k places further."""
    return _shifted(x, mesh, lambda n: [(d, (d + 1) % n) for d in range(n)])


@shift.mistake
def many_small_steps(x, *, k, mesh):
    """The blocks arrive where they should, in |k| steps to a neighbour each. Pairs may name any two devices: what
    would a single ppermute send?"""

    def body(row):
        for _ in range(abs(k)):
            row = _pass(row, mesh.shape["x"], 1 if k > 0 else -1)
        return row

    return on_ring(body, x, mesh, ROW, ROW)


@shift.mistake
def stood_still_for_a_negative_k(x, *, k, mesh):
    """Where k is negative nothing moved. (A loop over `range(k)` has no turns then; and pairs may name any two devices,
    so that one step is enough.) Where does a block go that is sent -2 places further?"""

    def body(row):
        for _ in range(k):
            row = _pass(row, mesh.shape["x"])
        return row

    return on_ring(body, x, mesh, ROW, ROW)


@shift.mistake
def left_out_who_would_pass_the_end(x, *, k, mesh):
    """The pairs leave out those whose destination would be behind the last device, or before the first. Who is sent
    nothing holds zeros: on a ring, which device stands behind the last one?"""
    return _shifted(x, mesh, lambda n: [(d, d + k) for d in range(n) if 0 <= d + k < n])


@shift.mistake
def took_the_blocks_rows_for_the_devices(x, *, k, mesh):
    """Only device 0 was sent something, by itself. Inside shard_map a device has one row, and the number of rows is no
    number of devices. What says how many there are along x?"""
    return on_ring(
        lambda row: lax.ppermute(row, "x", [(d, (d + k) % len(row)) for d in range(len(row))]), x, mesh, ROW, ROW
    )


# All-gather: blocks go round once, and every device writes down each of them where it belongs.

RINGS = (4, 2), (3, 2), (8, 1), (1, 8)  # of three devices, too: what swaps with d ^ k goes round powers of two only
ring_all_gather = ProgramExercise("ring_all_gather", points=4, reference=lambda x: x, mesh_shapes=RINGS)


@ring_all_gather.cases
def _(draw):
    rows, columns = draw.lengths(2, divisible_by=1)
    return _case(
        draw,
        lambda n: (n * rows, columns),
        ROW,
        P(),
        lambda n: n - 1,
        lambda n: bytes_sent("all_gather", rows * columns, n),
        lambda n: n - 1,
    )


def gather_ring(x, mesh, by=1, place=lambda me, k: me - k, writes=0, passes=-1):
    """The ring; what mistakes differ in: direction, place of the k-th block, how many are written, how many sent."""
    n = mesh.shape["x"]

    def body(block):
        whole = jnp.zeros((n, *block.shape), block.dtype)
        for k in range(n + writes):
            whole = whole.at[place(_me(), k) % n].set(block)
            if k < n + passes:
                block = _pass(block, n, by)
        return (whole + 0 * block).reshape(-1, block.shape[1])  # what was sent in vain is not left out

    return on_ring(body, x, mesh, ROW, P())


@ring_all_gather.mistake
def joined_as_they_came(x, *, mesh):
    """Each device has its own block first and the next device's behind it, as where blocks are joined in the order of
    their arrival: device 0 has them right, device 1 begins with its own. From whom does a block come that arrives after
    k steps, and where does it belong?"""
    return gather_ring(x, mesh, by=-1, place=lambda me, k: k)


@ring_all_gather.mistake
def joined_as_they_came_backwards(x, *, mesh):
    """Each device has its own block first, then that of the device before it, then the one before that: the order runs
    backwards, and begins elsewhere on each device. Where does the k-th to arrive belong?"""
    return gather_ring(x, mesh, place=lambda me, k: k)


@ring_all_gather.mistake
def counted_the_other_way(x, *, mesh):
    """Each device's own block is in its place, and the others are mirrored around it. What arrives after one step
    started on a neighbour, the one before or the one behind: does the number of the sender go up or down with k?"""
    return gather_ring(x, mesh, place=lambda me, k: me + k)


@ring_all_gather.mistake
def counted_the_first_arrival_as_none(x, *, mesh):
    """Each block stands one place too far: that of the device before stands where the device's own belongs. With which
    k does your loop count the first to arrive, and from which device does that come?"""
    n = mesh.shape["x"]

    def body(block):
        whole = jnp.zeros((n, *block.shape), block.dtype).at[_me()].set(block)
        for k in range(n - 1):
            block = _pass(block, n)
            whole = whole.at[(_me() - k) % n].set(block)
        return whole.reshape(-1, block.shape[-1])

    return on_ring(body, x, mesh, ROW, P())


@ring_all_gather.mistake
def took_the_number_for_the_row(x, *, mesh):
    """Each block was written at the row that has its number, so that blocks overlap, and rows at the end stay empty.
    Block 1 begins behind block 0: in which row is that?"""
    n = mesh.shape["x"]

    def body(block):
        whole = jnp.zeros((n * len(block), block.shape[1]), block.dtype)
        for k in range(n):
            whole = lax.dynamic_update_slice(whole, block, ((_me() - k) % n, 0))
            block = _pass(block, n) if k < n - 1 else block
        return whole

    return on_ring(body, x, mesh, ROW, P())


@ring_all_gather.mistake
def one_step_too_few(x, *, mesh):
    """One block is missing on every device, and its place holds zeros. A device begins with one block; how many
    must still arrive, and is the last of them put in its place?"""
    return gather_ring(x, mesh, writes=-1, passes=-2)


@ring_all_gather.mistake
def one_step_too_many(x, *, mesh):
    """The values are right, and one ppermute too many runs: the last brings every block back to where it started.
    How many blocks does a device have to receive?"""
    return gather_ring(x, mesh, passes=0)


@ring_all_gather.mistake
def sent_all_it_had(x, *, mesh):
    """Each step sends everything gathered so far, 1 + 2 + … blocks in place of one each time. The next device has
    seen the older ones already. Which block has it not seen?"""
    n = mesh.shape["x"]

    def body(block):
        held = block[None]
        for _ in range(n - 1):
            held = jnp.concatenate([block[None], _pass(held, n)])
        return held[(_me() - jnp.arange(n)) % n].reshape(-1, block.shape[1])

    return on_ring(body, x, mesh, ROW, P())


@ring_all_gather.mistake
def called_all_gather(x, *, mesh):
    """`all_gather` gives this result, and how it does so is the exercise: use `ppermute` alone."""
    return on_ring(lambda block: lax.all_gather(block, "x", tiled=True), x, mesh, ROW, P())


# Reduce-scatter: sums go round, and each device adds its own part of the block that has just come by.

ring_reduce_scatter = ProgramExercise("ring_reduce_scatter", points=5, reference=lambda x: x.sum(0), mesh_shapes=RINGS)


@ring_reduce_scatter.cases
def _(draw):
    (share,) = draw.lengths(1, divisible_by=3)
    return _case(
        draw,
        lambda n: (n, n * share),
        ROW,
        P("x"),
        lambda n: n - 1,
        lambda n: bytes_sent("reduce_scatter", n * share, n),
        lambda n: n - 1,
    )


def _parts(row, n):
    """A device's vector as its n parts, and the function that picks one."""
    parts = row.reshape(n, -1)
    return lambda number: parts[number % n]


def _scatter(part, n, by=1, first=1, more=0, behind=1):
    """The sum that a device ends with, when it begins with the part `first` before its own number, after n - 1 turns
    or some `more`. In turn k it adds the part k - 1 + `behind` before that."""
    total = part(_me() - first)
    for k in range(1, n + more):
        total = _pass(total, n, by) + part(_me() - first - k + 1 - behind)
    return total


def scatter_ring(x, mesh, **how):
    n = mesh.shape["x"]
    return on_ring(lambda row: _scatter(_parts(row, n), n, **how), x, mesh, ROW, P("x"))


@ring_reduce_scatter.mistake
def began_with_its_own(x, *, mesh):
    """The sums are right and each stands one device too early. The part that a device begins with travels n - 1
    places, one short of the whole round. Where must the sum for device d begin?"""
    return scatter_ring(x, mesh, first=0)


@ring_reduce_scatter.mistake
def counted_the_parts_upwards(x, *, mesh):
    """The number of the part goes up from turn to turn, while the sums come from the device before: terms of different
    parts were added. (On two devices up and down come to the same.) Follow one sum through two steps: which part does
    it need next?"""
    n = mesh.shape["x"]

    def body(row):
        part = _parts(row, n)
        total = part(_me() - 1)
        for k in range(1, n):
            total = _pass(total, n) + part(_me() - 1 + k)
        return total

    return on_ring(body, x, mesh, ROW, P("x"))


@ring_reduce_scatter.mistake
def dealt_the_row_out_like_cards(x, *, mesh):
    """The sums are right, of other parts: every n-th entry of a row was taken for a part, as one deals cards. A part is
    a piece that hangs together, device 0's the first. Which dimension of the reshaped row counts the parts?"""
    n = mesh.shape["x"]
    return on_ring(lambda row: _scatter(_parts(row.reshape(-1, n).T, n), n), x, mesh, ROW, P("x"))


@ring_reduce_scatter.mistake
def sent_the_original(x, *, mesh):
    """Every sum has the terms of two neighbours only. Did each step send the device's own numbers? What should travel
    on is what has been added up so far."""
    n = mesh.shape["x"]

    def body(row):
        part = _parts(row, n)
        total = part(_me() - 1)
        for k in range(1, n):
            total = _pass(part(_me() - k), n) + part(_me() - 1 - k)
        return total

    return on_ring(body, x, mesh, ROW, P("x"))


@ring_reduce_scatter.mistake
def went_the_other_way(x, *, mesh):
    """The sums go one way round, and the parts are chosen as if they went the other: terms of different parts were
    added. Follow one sum through two steps: which part does it need next?"""
    return scatter_ring(x, mesh, by=-1)


@ring_reduce_scatter.mistake
def added_before_the_send(x, *, mesh):
    """What a device ends with lacks its own term, as where it adds its part and then sends the sum away, in the last
    step too. What comes first in a step, the sending or the adding?"""
    n = mesh.shape["x"]

    def body(row):
        part = _parts(row, n)
        total = jnp.zeros_like(part(0))
        for k in range(1, n):
            total = _pass(total + part(_me() - k), n)
        return total

    return on_ring(body, x, mesh, ROW, P("x"))


@ring_reduce_scatter.mistake
def added_the_part_of_the_turn_before(x, *, mesh):
    """A sum was begun for one part, and terms of another part were added to it. What has arrived after k steps began k
    devices before. With which part does a device begin, and so which part is the one that has arrived?"""
    n = mesh.shape["x"]

    def body(row):
        part = _parts(row, n)
        total = part(_me() - 1)
        for k in range(1, n):
            total = _pass(total, n) + part(_me() - k)
        return total

    return on_ring(body, x, mesh, ROW, P("x"))


@ring_reduce_scatter.mistake
def added_first_and_then_sent(x, *, mesh):
    """In each step the device added a part of its own and sent the sum on afterwards. So it added to the part that was
    still there, not to the one that arrives, and the last to receive a sum adds nothing. Which comes first?"""
    n = mesh.shape["x"]

    def body(row):
        part = _parts(row, n)
        total = part(_me() - 1)
        for k in range(1, n):
            total = _pass(total + part(_me() - 1 - k), n)
        return total

    return on_ring(body, x, mesh, ROW, P("x"))


@ring_reduce_scatter.mistake
def one_turn_too_many(x, *, mesh):
    """The sums were complete one turn earlier. In the last turn each went one device further, and there a term was
    added that it had already. How many devices have still to add theirs when a sum sets out?"""
    return scatter_ring(x, mesh, more=1)


@ring_reduce_scatter.mistake
def one_turn_too_few(x, *, mesh):
    """The sums stopped one device too early: each lacks a term, and is on the device before its own. How many devices
    have still to add theirs when a sum sets out?"""
    return scatter_ring(x, mesh, more=-1)


@ring_reduce_scatter.mistake
def whole_vectors_went_round(x, *, mesh):
    """The right sums, but whole vectors went round, and of each a device needs one part. How much has to travel in a
    step?"""
    n = mesh.shape["x"]

    def body(row):
        total = row
        for _ in range(n - 1):
            row = _pass(row, n)
            total = total + row
        return _parts(total, n)(_me())

    return on_ring(body, x, mesh, ROW, P("x"))


@ring_reduce_scatter.mistake
def called_psum_scatter(x, *, mesh):
    """`psum_scatter` gives this result, and how it does so is the exercise: use `ppermute` alone."""
    return on_ring(lambda row: lax.psum_scatter(row[0], "x", tiled=True), x, mesh, ROW, P("x"))


# All-reduce: the one, then the other.

ring_all_reduce = ProgramExercise(
    "ring_all_reduce", points=5, reference=lambda x: x.sum(0), mesh_shapes=RINGS, against_compiler=True
)


@ring_all_reduce.cases
def _(draw):
    (share,) = draw.lengths(1, divisible_by=3)
    return _case(
        draw,
        lambda n: (n, n * share),
        ROW,
        P(),
        lambda n: 2 * (n - 1),
        lambda n: bytes_sent("all_reduce", n * share, n),
        lambda n: 2 * (n - 1),
    )


def reduce_ring(x, mesh, first=1, gathers=True, adds=False, more=0, behind=1, keeps=True, place=lambda me, k: me - k):
    n = mesh.shape["x"]

    def body(row):
        part = _parts(row, n)
        total = _scatter(part, n, first=first, more=more, behind=behind)
        filled = jnp.zeros((n, *total.shape), total.dtype).at[place(_me(), 0) % n].set(total if keeps else 0)
        for k in range(1, n if gathers else 1):
            total = _pass(total, n) + (part(_me() - k) if adds else 0)
            filled = filled.at[place(_me(), k) % n].set(total)
        return filled.reshape(-1)

    return on_ring(body, x, mesh, ROW, P())


@ring_all_reduce.mistake
def whole_vectors_all_round(x, *, mesh):
    """The right sums in n - 1 steps, each of which sends a whole vector: n/2 times the bytes of the best. Add up
    *parts* of the vector in a first round; what then needs to go round a second time?"""
    n = mesh.shape["x"]

    def body(row):
        total = row
        for _ in range(n - 1):
            row = _pass(row, n)
            total = total + row
        return total[0]

    return on_ring(body, x, mesh, ROW, P())


@ring_all_reduce.mistake
def stopped_half_way(x, *, mesh):
    """After the first round each device has the whole sum of one part, and zeros for the others. Which collective
    brings the parts together, and how is it done on a ring?"""
    return reduce_ring(x, mesh, gathers=False)


@ring_all_reduce.mistake
def took_its_share_for_another(x, *, mesh):
    """The parts of the sum are right and each stands one place off. Which part does a device hold after the first
    round? (A sum that begins with the device's own part ends on the device before.) And where does the second round
    write it?"""
    return reduce_ring(x, mesh, first=0)


@ring_all_reduce.mistake
def first_round_once_more(x, *, mesh):
    """The first round had one turn too many: the sums were complete before it. In it each went one device further, and
    there a term was added that it had already. How many devices have still to add theirs when a sum sets out?"""
    return reduce_ring(x, mesh, more=1)


@ring_all_reduce.mistake
def added_other_parts(x, *, mesh):
    """In the first round a sum was begun for one part, and terms of another part were added to it. What has arrived
    after k steps began k devices before. With which part does a device begin, and so which part has arrived?"""
    return reduce_ring(x, mesh, behind=0)


@ring_all_reduce.mistake
def took_zeros_for_its_own_share(x, *, mesh):
    """On every device the part with its own number is zeros. After the first round a device has the sum of just this
    part, and in the second it sends it on. Where does it write it down itself?"""
    return reduce_ring(x, mesh, keeps=False)


@ring_all_reduce.mistake
def joined_the_sums_as_they_came(x, *, mesh):
    """The sums are right, and stand in another order on every device, as where they are joined in the order in which
    they come in the second round. Of which part is the sum that a device has after the first round, and which comes
    next?"""
    return reduce_ring(x, mesh, place=lambda me, k: k)


@ring_all_reduce.mistake
def counted_upwards_in_the_second_round(x, *, mesh):
    """The sums are right. Each device's own is in its place, and the others are mirrored around it. From which
    neighbour does a sum come in the second round, and of which part does that device have the sum?"""
    return reduce_ring(x, mesh, place=lambda me, k: me + k)


@ring_all_reduce.mistake
def went_on_adding(x, *, mesh):
    """The second round went on adding. After the first one the sums are whole: they only need to be passed on and
    written down."""
    return reduce_ring(x, mesh, adds=True)


@ring_all_reduce.mistake
def called_psum(x, *, mesh):
    """`psum` gives this result, and how it does so is the exercise: use `ppermute` alone."""
    return on_ring(lambda row: lax.psum(row[0], "x"), x, mesh, ROW, P())


# Halo: a device needs one entry of each neighbour.


def _stencil(x):
    return np.roll(x, 1) + 2 * x + 4 * np.roll(x, -1)


halo = ProgramExercise("halo", points=4, reference=_stencil)
CUT = P("x")


@halo.cases
def _(draw):
    (length,) = draw.lengths(1, divisible_by=3)
    block = {8: 1}  # on eight devices, of a single entry
    return _case(
        draw, lambda n: (n * block.get(n, length),), CUT, CUT, lambda n: 2, lambda n: 2 * FLOAT, lambda n: min(n - 1, 1)
    )


def _with_edges(x, mesh, edges):
    """The stencil, with the entries before and behind the block that `edges(block, n)` gives."""

    def body(block):
        before, behind = edges(block, mesh.shape["x"])
        longer = jnp.concatenate([before, block, behind])
        return longer[:-2] + 2 * block + 4 * longer[2:]

    return on_ring(body, x, mesh, CUT, CUT)


@halo.mistake
def neighbours_swapped(x, *, mesh):
    """What should stand before the block came from the device behind it, and the other way round. Whose last entry
    stands before your first? Then: does it travel to the next device, or to the one before?"""
    return _with_edges(x, mesh, lambda block, n: (_pass(block[-1:], n, -1), _pass(block[:1], n, 1)))


@halo.mistake
def wrong_end(x, *, mesh):
    """The right neighbours sent the wrong end of their blocks. The entry just before your first one is your
    neighbour's *last*: which entry of its own block does a device send forwards?"""
    return _with_edges(x, mesh, lambda block, n: (_pass(block[:1], n, 1), _pass(block[-1:], n, -1)))


@halo.mistake
def not_round(x, *, mesh):
    """Only the two ends of the whole vector are wrong: zeros stand where an entry of the other end belongs. (Who is
    sent nothing by a ppermute holds zeros.) The stencil is periodic. Which pair closes the ring?"""

    def edges(block, n):
        forward = [(d, d + 1) for d in range(n - 1)]
        backward = [(d + 1, d) for d in range(n - 1)]
        return lax.ppermute(block[-1:], "x", forward), lax.ppermute(block[:1], "x", backward)

    return _with_edges(x, mesh, edges)


@halo.mistake
def rolled_in_the_block(x, *, mesh):
    """At every border a device used its own other end in place of the neighbour's: `jnp.roll` inside shard_map would do
    that, for it knows the block only. What does a device lack?"""
    return on_ring(lambda b: jnp.roll(b, 1) + 2 * b + 4 * jnp.roll(b, -1), x, mesh, CUT, CUT)


@halo.mistake
def sent_whole_blocks(x, *, mesh):
    """Right, but whole blocks travelled, and one entry of each was used. What is the least that a neighbour has to
    send?"""
    return _with_edges(x, mesh, lambda block, n: (_pass(block, n, 1)[-1:], _pass(block, n, -1)[:1]))


# Both ways at once: links carry in both directions.

bidirectional_all_gather = ProgramExercise(
    "bidirectional_all_gather", points=5, reference=lambda x: x, mesh_shapes=((4, 2), (3, 2), (8, 1), (2, 4), (1, 8))
)


@bidirectional_all_gather.cases
def _(draw):
    rows, columns = draw.lengths(2, divisible_by=1)
    # The block of the device opposite may come as two halves, one from each side: n sends of n - 1 blocks.
    return _case(
        draw,
        lambda n: (n * rows, columns),
        ROW,
        P(),
        lambda n: n,
        lambda n: bytes_sent("all_gather", rows * columns, n),
        lambda n: n // 2,
    )


def both_ways(x, mesh, forward=0, backward=0, back=-1, sign=1):
    """Blocks go n//2 places forwards and (n-1)//2 backwards; mistakes differ in how far, which way, and where to."""
    n = mesh.shape["x"]

    def body(block):
        filled = jnp.zeros((n, *block.shape), block.dtype).at[_me()].set(block)
        one = other = block
        for k in range(1, n):
            if k <= n // 2 + forward:
                one = _pass(one, n)
                filled = filled.at[(_me() - k) % n].set(one)
            if k <= (n - 1) // 2 + backward:
                other = _pass(other, n, back)
                filled = filled.at[(_me() + sign * k) % n].set(other)
        return filled.reshape(-1, block.shape[1])

    return on_ring(body, x, mesh, ROW, P())


@bidirectional_all_gather.mistake
def all_one_way(x, *, mesh):
    """All blocks went the same way, one after the other. A link carries in both directions at once, and a block from
    the device just behind you is one step away, not n - 1. How far is the farthest, if both ways are used?"""
    return gather_ring(x, mesh)


@bidirectional_all_gather.mistake
def middle_block_twice(x, *, mesh):
    """With an even number of devices the block of the device opposite came twice, once from each side. Count: n - 1
    blocks have to arrive, which is odd. How many from one side, how many from the other?"""
    return both_ways(x, mesh, backward=mesh.shape["x"] % 2 == 0)


@bidirectional_all_gather.mistake
def both_the_same_way(x, *, mesh):
    """The blocks from one side came twice, the second time in places where they do not belong. Do both streams go the
    same way? Which pairs send to the next device, and which to the one before?"""
    return both_ways(x, mesh, back=1)


@bidirectional_all_gather.mistake
def second_stream_misplaced(x, *, mesh):
    """The second stream was written where the first one's blocks belong. What comes from the device behind you after
    k steps: the number of its sender is your own plus k, or minus k?"""
    return both_ways(x, mesh, sign=-1)


@bidirectional_all_gather.mistake
def stopped_early(x, *, mesh):
    """A block is missing on every device: its place holds zeros. Forwards and backwards together must bring n - 1
    blocks. How many steps forwards, how many backwards, for n = 4?"""
    return both_ways(x, mesh, forward=-1)
