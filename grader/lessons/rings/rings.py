"""§ 2–3, 6–9, the programs: collectives built from sends between neighbors, written with shard_map.

The devices along x form a ring; `_pass` sends a block to the next one. Along y there are replicas.
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


# Shift: every device sends its row to the device that is k further.

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
    """The blocks went around the other way. A pair is (source, destination). In which position is the device that
    sends?"""
    return _shifted(x, mesh, lambda n: [((d + k) % n, d) for d in range(n)])


@shift.mistake
def no_way_round(x, *, k, mesh):
    """The pairs named devices that don't exist. After the last device, a ring continues with device 0. Which operation
    turns 5 into 1 on four devices?"""
    return _shifted(x, mesh, lambda n: [(d, d + k) for d in range(n)])


@shift.mistake
def forgot_the_last_device(x, *, k, mesh):
    """One device was not a destination, so it held zeros, because `ppermute` doesn't keep old values. How many pairs
    does a ring of n devices need?"""
    return _shifted(x, mesh, lambda n: [(d, (d + k) % n) for d in range(n - 1)])


@shift.mistake
def destinations_only(x, *, k, mesh):
    """The permutation was a list of numbers, as in some other libraries, but JAX needs pairs. What is the pair (source,
    destination) of each device?"""
    return _shifted(x, mesh, lambda n: [(d + k) % n for d in range(n)])


@shift.mistake
def one_sends_to_all(x, *, k, mesh):
    """One device was the source of several pairs. In a permutation, each device sends at most once and receives at most
    once. Which device does device 1 send to?"""
    return _shifted(x, mesh, lambda n: [(0, d) for d in range(n)])


@shift.mistake
def pairs_from_the_own_index(x, *, k, mesh):
    """The pairs were made from `axis_index`, which is known only while the program runs. The permutation is a part of
    the program: plain Python numbers, the same list on all devices. How many pairs does the list need?"""
    return _shifted(x, mesh, lambda n: [(_me(), (_me() + k) % n)])


@shift.mistake
def always_to_the_next(x, *, k, mesh):
    """Every block went to the next device, no matter what k was. Which device is k further?"""
    return _shifted(x, mesh, lambda n: [(d, (d + 1) % n) for d in range(n)])


@shift.mistake
def many_small_steps(x, *, k, mesh):
    """The blocks arrived correctly, but in |k| steps to a neighbor. Pairs may name any two devices. Which pairs do it
    in a single `ppermute`?"""

    def body(row):
        for _ in range(abs(k)):
            row = _pass(row, mesh.shape["x"], 1 if k > 0 else -1)
        return row

    return on_ring(body, x, mesh, ROW, ROW)


@shift.mistake
def stood_still_for_a_negative_k(x, *, k, mesh):
    """With a negative k, nothing moved. A loop over `range(k)` has no iterations then, and you don't need one, because
    pairs may name any two devices. Which device is -2 further?"""

    def body(row):
        for _ in range(k):
            row = _pass(row, mesh.shape["x"])
        return row

    return on_ring(body, x, mesh, ROW, ROW)


@shift.mistake
def left_out_who_would_pass_the_end(x, *, k, mesh):
    """The pairs left out the devices whose destination would be after the last device or before the first. A device
    that isn't a destination holds zeros. On a ring, which device comes after the last one?"""
    return _shifted(x, mesh, lambda n: [(d, d + k) for d in range(n) if 0 <= d + k < n])


@shift.mistake
def took_the_blocks_rows_for_the_devices(x, *, k, mesh):
    """Only device 0 received something, from itself. Inside `shard_map`, a device has one row, so the number of rows
    isn't the number of devices. How do you get the number of devices along x?"""
    return on_ring(
        lambda row: lax.ppermute(row, "x", [(d, (d + k) % len(row)) for d in range(len(row))]), x, mesh, ROW, ROW
    )


# All-gather: blocks go around once, and every device writes each of them where it belongs.

RINGS = (4, 2), (3, 2), (8, 1), (1, 8)  # of three devices, too: swapping with d ^ k works for powers of two only
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
        return (whole + 0 * block).reshape(-1, block.shape[1])  # so that a send whose result isn't used is kept

    return on_ring(body, x, mesh, ROW, P())


@ring_all_gather.mistake
def joined_as_they_came(x, *, mesh):
    """Each device had its own block first, and then the next device's, as if blocks were joined in the order of their
    arrival. Only device 0 got that right. From which device is the block that arrives after k steps, and where does it
    belong?"""
    return gather_ring(x, mesh, by=-1, place=lambda me, k: k)


@ring_all_gather.mistake
def joined_as_they_came_backwards(x, *, mesh):
    """Each device had its own block first, then that of the previous device, and so on: the order runs backward, and
    starts differently on each device. Where does the k-th block to arrive belong?"""
    return gather_ring(x, mesh, place=lambda me, k: k)


@ring_all_gather.mistake
def counted_the_other_way(x, *, mesh):
    """Each device's own block was in its place, but the others were mirrored around it. The block that arrives after
    one step started on a neighbor. Does the sender's index go up or down with k?"""
    return gather_ring(x, mesh, place=lambda me, k: me + k)


@ring_all_gather.mistake
def counted_the_first_arrival_as_none(x, *, mesh):
    """Each block was one place too far: the previous device's block was where the device's own belongs. Which k does
    your loop use for the first block that arrives, and from which device is it?"""
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
    """Each block was written at the row that equals its block number, so blocks overlapped, and the last rows stayed
    empty. At which row does block 1 start?"""
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
    """One block was missing on every device, and zeros were in its place. A device starts with one block. How many have
    to arrive, and is the last one written, too?"""
    return gather_ring(x, mesh, writes=-1, passes=-2)


@ring_all_gather.mistake
def one_step_too_many(x, *, mesh):
    """The values were correct, but there was one `ppermute` too many, which sent every block back to where it started.
    How many blocks does a device have to receive?"""
    return gather_ring(x, mesh, passes=0)


@ring_all_gather.mistake
def dropped_the_new_array(x, *, mesh):
    """Each device had only its own block, and zeros elsewhere. `full.at[index].set(block)` doesn't change `full`, but
    returns a new array. What happens to that array?"""
    return gather_ring(x, mesh, writes=-(mesh.shape["x"] - 1), passes=-1)


@ring_all_gather.mistake
def sent_before_writing(x, *, mesh):
    """Each block was one place too far, because it was sent before it was written. Which block does a device have
    before the first send, and where does that belong?"""
    return gather_ring(x, mesh, place=lambda me, k: me - k + 1)


@ring_all_gather.mistake
def sent_its_own_each_time(x, *, mesh):
    """The previous device's block was in every place but the device's own, as if each step sent the same block again.
    Which block does a device have to send in the second step?"""
    n = mesh.shape["x"]

    def body(block):
        full = jnp.zeros((n, *block.shape), block.dtype).at[_me()].set(block)
        for k in range(1, n):
            full = full.at[(_me() - k) % n].set(_pass(block, n))
        return full.reshape(n * len(block), -1)

    return on_ring(body, x, mesh, ROW, P())


@ring_all_gather.mistake
def kept_the_blocks_apart(x, *, mesh):
    """The values were correct, but the blocks were returned along their own dimension. Which shape does `x` have, and
    which call joins the blocks?"""
    n = mesh.shape["x"]

    def body(block):
        full = jnp.zeros((n, *block.shape), block.dtype).at[_me()].set(block)
        for k in range(1, n):
            block = _pass(block, n)
            full = full.at[(_me() - k) % n].set(block)
        return full

    return on_ring(body, x, mesh, ROW, P())


@ring_all_gather.mistake
def sent_all_it_had(x, *, mesh):
    """Each step sent everything gathered so far, 1 + 2 + … blocks instead of one each time. The next device already has
    the older ones. Which block is new to it?"""
    n = mesh.shape["x"]

    def body(block):
        held = block[None]
        for _ in range(n - 1):
            held = jnp.concatenate([block[None], _pass(held, n)])
        return held[(_me() - jnp.arange(n)) % n].reshape(-1, block.shape[1])

    return on_ring(body, x, mesh, ROW, P())


@ring_all_gather.mistake
def called_all_gather(x, *, mesh):
    """`all_gather` returns this result, but the exercise is to build it from `ppermute` alone. Which device sends to
    which in each step?"""
    return on_ring(lambda block: lax.all_gather(block, "x", tiled=True), x, mesh, ROW, P())


# Reduce-scatter: sums go around, and each device adds its own part to the sum that has just arrived.

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
    """The sums were correct, but each ended one device too early. The sum that a device starts is sent n - 1 times, one
    short of a full circle. On which device must the sum for device d start?"""
    return scatter_ring(x, mesh, first=0)


@ring_reduce_scatter.mistake
def counted_the_parts_upwards(x, *, mesh):
    """The part's number went up from step to step, while the sums came from the previous device, so terms of different
    parts were summed. Follow one sum through two steps. Which part does it need next?"""
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
    """The sums were those of other parts: every n-th element of a row was taken as one part. A part is contiguous, and
    device 0's is the first. Which dimension of the reshaped row counts the parts?"""
    n = mesh.shape["x"]
    return on_ring(lambda row: _scatter(_parts(row.reshape(-1, n).T, n), n), x, mesh, ROW, P("x"))


@ring_reduce_scatter.mistake
def sent_the_original(x, *, mesh):
    """Every sum had only the terms of two neighbors, as if each step sent the device's own values. What does a device
    have to send instead, after it added its part?"""
    n = mesh.shape["x"]

    def body(row):
        part = _parts(row, n)
        total = part(_me() - 1)
        for k in range(1, n):
            total = _pass(part(_me() - k), n) + part(_me() - 1 - k)
        return total

    return on_ring(body, x, mesh, ROW, P("x"))


@ring_reduce_scatter.mistake
def added_its_own_part_each_time(x, *, mesh):
    """In every step, a device added the part with its own index, whatever sum had arrived. Which part's sum is on the
    device after k steps?"""
    n = mesh.shape["x"]

    def body(row):
        part = _parts(row, n)
        total = part(_me() - 1)
        for _ in range(1, n):
            total = _pass(total, n) + part(_me())
        return total

    return on_ring(body, x, mesh, ROW, P("x"))


@ring_reduce_scatter.mistake
def sent_the_part_and_kept_the_sum(x, *, mesh):
    """The sums stayed on their devices, and each step sent a part of the vector. Then a device never gets the terms of
    those that are further away. What should be sent instead?"""
    n = mesh.shape["x"]

    def body(row):
        part = _parts(row, n)
        total = part(_me() - 1)
        for k in range(1, n):
            total = total + _pass(part(_me() - 1 - k), n)
        return total

    return on_ring(body, x, mesh, ROW, P("x"))


@ring_reduce_scatter.mistake
def counted_the_start_as_a_step(x, *, mesh):
    """There was one step too many, and the first one added the part that the device had started with. Which part does
    the sum need that arrives in the first step?"""
    n = mesh.shape["x"]

    def body(row):
        part = _parts(row, n)
        total = part(_me() - 1)
        for k in range(n):
            total = _pass(total, n) + part(_me() - 1 - k)
        return total

    return on_ring(body, x, mesh, ROW, P("x"))


@ring_reduce_scatter.mistake
def went_the_other_way(x, *, mesh):
    """The sums went around one way, and the parts were chosen as if they went the other way, so terms of different
    parts were summed. Follow one sum through two steps. Which part does it need next?"""
    return scatter_ring(x, mesh, by=-1)


@ring_reduce_scatter.mistake
def added_before_the_send(x, *, mesh):
    """The sum on each device lacked its own term, as if it added its part and then sent the sum away, in the last step,
    too. What comes first in a step, sending or adding?"""
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
    """A sum was started for one part, and terms of another part were added to it. The sum that arrives after k steps
    started k devices before. With which part does a device start, and so which part has arrived?"""
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
    """In each step, the device added its part first and sent the sum afterward. So it added to the sum that was still
    there, and the last device to receive a sum added nothing. What comes first?"""
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
    """The sums were complete one step earlier. In the last step, each moved one device further and got a term that it
    already had. How many devices still have to add theirs when a sum starts?"""
    return scatter_ring(x, mesh, more=1)


@ring_reduce_scatter.mistake
def one_turn_too_few(x, *, mesh):
    """The sums stopped one device too early: each lacked a term, and was on the device before its own. How many devices
    still have to add theirs when a sum starts?"""
    return scatter_ring(x, mesh, more=-1)


@ring_reduce_scatter.mistake
def whole_vectors_went_round(x, *, mesh):
    """The sums were correct, but full vectors were sent, and a device needs only one part of each. How much does each
    step have to send?"""
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
    """`psum_scatter` returns this result, but the exercise is to build it from `ppermute` alone. Which device sends to
    which in each step?"""
    return on_ring(lambda row: lax.psum_scatter(row[0], "x", tiled=True), x, mesh, ROW, P("x"))


# All-reduce: a reduce-scatter, and then an all-gather.

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
    """The sums were correct, and took n - 1 steps, but each step sent a full vector. That is n/2 times the bytes of the
    best way. If the first ring sums *parts*, what does the second ring have to send?"""
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
    """After the first ring, each device had the complete sum of one part, and zeros for the others. Which collective
    gives every device all parts, and how do you build it on a ring?"""
    return reduce_ring(x, mesh, gathers=False)


@ring_all_reduce.mistake
def took_its_share_for_another(x, *, mesh):
    """The sums were correct, but each was one place off. A sum that starts with the device's own part ends on the
    previous device. Which part does a device hold after the first ring, and where does the second one write it?"""
    return reduce_ring(x, mesh, first=0)


@ring_all_reduce.mistake
def first_round_once_more(x, *, mesh):
    """The first ring had one step too many: the sums were complete before it. In it, each moved one device further and
    got a term that it already had. How many devices still have to add theirs when a sum starts?"""
    return reduce_ring(x, mesh, more=1)


@ring_all_reduce.mistake
def added_other_parts(x, *, mesh):
    """In the first ring, a sum was started for one part, and terms of another part were added to it. The sum
    that arrives after k steps started k devices before. With which part does a device start, and so which part
    has arrived?"""
    return reduce_ring(x, mesh, behind=0)


@ring_all_reduce.mistake
def took_zeros_for_its_own_share(x, *, mesh):
    """On every device, the part with its own index was zeros. After the first ring, a device has the sum of just this
    part, and sends it in the second one. Where does the device write its own sum?"""
    return reduce_ring(x, mesh, keeps=False)


@ring_all_reduce.mistake
def joined_the_sums_as_they_came(x, *, mesh):
    """The sums were correct, but in a different order on every device, as if they were joined in the order of their
    arrival. Which part's sum does a device have after the first ring, and which one arrives next?"""
    return reduce_ring(x, mesh, place=lambda me, k: k)


@ring_all_reduce.mistake
def counted_upwards_in_the_second_round(x, *, mesh):
    """The sums were correct, and each device's own was in its place, but the others were mirrored around it. From which
    neighbor does a sum come in the second ring, and which part does that device have?"""
    return reduce_ring(x, mesh, place=lambda me, k: me + k)


@ring_all_reduce.mistake
def went_on_adding(x, *, mesh):
    """The second ring continued to add. After the first one, the sums are complete. What is left to do with a sum that
    arrives?"""
    return reduce_ring(x, mesh, adds=True)


@ring_all_reduce.mistake
def called_psum(x, *, mesh):
    """`psum` returns this result, but the exercise is to build it from `ppermute` alone. Which two rings do it?"""
    return on_ring(lambda row: lax.psum(row[0], "x"), x, mesh, ROW, P())


# Halo: a device needs one element of each neighbor.


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
    """The element before the block came from the next device, and the element after it from the previous one. Which
    device's last element comes before your first, and in which direction does it have to be sent?"""
    return _with_edges(x, mesh, lambda block, n: (_pass(block[-1:], n, -1), _pass(block[:1], n, 1)))


@halo.mistake
def wrong_end(x, *, mesh):
    """The correct neighbors sent the wrong end of their blocks. The element just before your first one is your
    neighbor's *last*. Which element of its block does a device send to the next one?"""
    return _with_edges(x, mesh, lambda block, n: (_pass(block[:1], n, 1), _pass(block[-1:], n, -1)))


@halo.mistake
def not_round(x, *, mesh):
    """Only the two ends of the full vector were wrong: zeros instead of an element of the other end. A device that
    isn't a destination of a `ppermute` gets zeros. Which pair closes the ring?"""

    def edges(block, n):
        forward = [(d, d + 1) for d in range(n - 1)]
        backward = [(d + 1, d) for d in range(n - 1)]
        return lax.ppermute(block[-1:], "x", forward), lax.ppermute(block[:1], "x", backward)

    return _with_edges(x, mesh, edges)


@halo.mistake
def rolled_in_the_block(x, *, mesh):
    """At every border, a device used the other end of its own block instead of its neighbor's. `jnp.roll` inside
    `shard_map` does that, because it sees only the block. Which elements does a device lack?"""
    return on_ring(lambda b: jnp.roll(b, 1) + 2 * b + 4 * jnp.roll(b, -1), x, mesh, CUT, CUT)


@halo.mistake
def sent_whole_blocks(x, *, mesh):
    """The values were correct, but full blocks were sent, and only one element of each was used. What is the least that
    a neighbor has to send?"""
    return _with_edges(x, mesh, lambda block, n: (_pass(block, n, 1)[-1:], _pass(block, n, -1)[:1]))


# Both directions at once.

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
    """All blocks went around the same way, one after the other. A link carries data in both directions at once, and the
    block of the next device is one step away, not n - 1. If both directions are used, how far away is the farthest
    device?"""
    return gather_ring(x, mesh)


@bidirectional_all_gather.mistake
def middle_block_twice(x, *, mesh):
    """With an even number of devices, the block of the opposite device arrived twice, once from each side. An odd
    number of blocks, n - 1, has to arrive. How many come from each side?"""
    return both_ways(x, mesh, backward=mesh.shape["x"] % 2 == 0)


@bidirectional_all_gather.mistake
def both_the_same_way(x, *, mesh):
    """The blocks from one side arrived twice, the second time in places where they don't belong, as if both streams
    went the same way. Which pairs send to the next device, and which to the previous one?"""
    return both_ways(x, mesh, back=1)


@bidirectional_all_gather.mistake
def second_stream_misplaced(x, *, mesh):
    """The second stream was written where the first one's blocks belong. After k steps, a block arrives from the other
    side. Is its sender's index your own plus k, or minus k?"""
    return both_ways(x, mesh, sign=-1)


@bidirectional_all_gather.mistake
def stopped_early(x, *, mesh):
    """A block was missing on every device, and zeros were in its place. The two streams together must deliver n - 1
    blocks. With n = 4, how many steps does each stream take?"""
    return both_ways(x, mesh, forward=-1)
