"""§ 2, 4–6: tables and a plain function. What is expected is what an experiment shows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import aval, make_mesh, put
from grader.exercises import Case, FunctionExercise, TableExercise
from grader.programs.program import trace
from grader.programs.walk import structure

FOUR = 4


# Who holds which block: the numbers of the blocks go round a real ring.


@functools.cache
def _round(by: int, steps: int, start: int = 0) -> tuple[int, ...]:
    """The block on each of four devices that began with block d + start, after so many shifts by `by`."""
    mesh = make_mesh({"x": FOUR})
    pairs = [(k, (k + by) % FOUR) for k in range(FOUR)]
    move = jax.shard_map(lambda v: lax.ppermute(v, "x", pairs), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    held = put((np.arange(FOUR) + start) % FOUR, P("x"), mesh)
    for _ in range(steps):
        held = move(held)
    return tuple(np.asarray(held).tolist())


schedule_table = TableExercise("schedule_table", points=2, reference=lambda by, step: _round(by, step))


@schedule_table.cases
def _(draw):
    for by in (1, -1):
        for step in range(1, FOUR):
            yield Case({"by": by, "step": step}, key=f"shift {by:+d}, step {step}")


@schedule_table.mistake
def wrote_where_blocks_go(by, step):
    """That says where each block has gone. The question is what each *device* holds: if blocks move one place up,
    what a device holds came from the device below it."""
    return _round(-by, step)


@schedule_table.mistake
def nothing_moved(by, step):
    """That is step 0, before anything was sent."""
    return _round(by, 0)


@schedule_table.mistake
def one_step_late(by, step):
    """That is what they hold one step later. At step 1 exactly one transfer has taken place."""
    return _round(by, step + 1)


@schedule_table.mistake
def sent_to_everybody(by, step):
    """A ppermute sends a device's block to one device only, so all four blocks are always there, one on each."""
    return (0,) * FOUR


# On which block of C each device works, when sums travel: followed backwards from where they must end.

sum_schedule = TableExercise("sum_schedule", points=2, reference=lambda step: _round(1, FOUR - 1 - step))


@sum_schedule.cases
def _(draw):
    for step in range(FOUR):
        yield Case({"step": step}, key=f"step {step}")


@sum_schedule.mistake
def began_at_home(step):
    """If device d begins with block d, the sum for it leaves at once, and after three steps stands on a wrong device.
    Begin at the end: at step 3 device d must hold block d. Where was that sum one step before?"""
    return _round(-1, step)


@sum_schedule.mistake
def followed_the_other_way(step):
    """Here sums move one place *down*: what device d holds comes from device d + 1. This would be right in this step if
    sums moved up."""
    return _round(-1, FOUR - 1 - step)


@sum_schedule.mistake
def always_at_home(step):
    """In this step every device works on its own block. It does so once, for the sum for block d ends on device d: at
    which step? In every other step, whose sum has just come?"""
    return _round(1, 0)


# Which transfers have a product beside them: read from the programs.


def _up(block):
    return lax.ppermute(block, "x", [(k, (k + 1) % FOUR) for k in range(FOUR)])


def _fitting(a, b, step):
    """The columns of A that fit the block of B which is at hand after so many transfers."""
    start = (lax.axis_index("x") - step) % FOUR * b.shape[0]
    return lax.dynamic_slice_in_dim(a, start, b.shape[0], axis=1)


def gather_first(a, b):
    return a @ lax.all_gather(b, "x", axis=0, tiled=True)


def ring_then_multiply(a, b):
    blocks = [b]
    for _ in range(3):
        blocks.append(_up(blocks[-1]))
    columns = [_fitting(a, b, step) for step in range(4)]
    return jnp.concatenate(columns, axis=1) @ jnp.concatenate(blocks)


def multiply_and_send(a, b):
    total = 0
    for step in range(3):
        total += _fitting(a, b, step) @ b
        b = _up(b)
    return total + _fitting(a, b, 3) @ b


def send_and_multiply(a, b):
    total = _fitting(a, b, 0) @ b
    for step in range(1, 4):
        b = _up(b)
        total += _fitting(a, b, step) @ b
    return total


def send_and_multiply_in_loop(a, b):
    def turn(step, carry):
        total, b = carry
        b = _up(b)
        return total + _fitting(a, b, step) @ b, b

    return lax.fori_loop(1, 4, turn, (_fitting(a, b, 0) @ b, b))[0]


def first_one_then_the_rest(a, b):
    total = _fitting(a, b, 0) @ b
    blocks = [_up(b)]
    for _ in range(2):
        blocks.append(_up(blocks[-1]))
    columns = [_fitting(a, b, step) for step in range(1, 4)]
    return total + jnp.concatenate(columns, axis=1) @ jnp.concatenate(blocks)


PROGRAMS: Mapping[str, Callable[..., jax.Array]] = {
    body.__name__: body
    for body in (
        gather_first,
        ring_then_multiply,
        multiply_and_send,
        send_and_multiply,
        send_and_multiply_in_loop,
        first_one_then_the_rest,
    )
}
SIZE = 16  # rows and columns of A and of B


def overlap(body: Callable[..., jax.Array]) -> str:
    """How many of a program's transfers have a whole block's product of their own beside them: all, some or none."""
    mesh = make_mesh({"x": FOUR})
    mapped = jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None), check_vma=False)
    found = structure(trace(mapped, *[aval((SIZE, SIZE), jnp.float32, P("x", None), mesh)] * 2))
    product = 2 * SIZE**3 // FOUR**2
    shares = [collective.overlappable_flops for collective in found.collectives]
    return "all" if min(shares) >= product else "some" if any(shares) else "none"


@functools.cache
def _overlap(program: str) -> str:
    return overlap(PROGRAMS[program])


does_it_overlap = TableExercise("does_it_overlap", points=4, reference=_overlap)
does_it_overlap.rows(PROGRAMS, argument="program")


@does_it_overlap.mistake
def counted_on_the_collective(program):
    """One big collective gives the devices nothing to multiply while they wait: its result is needed for every
    product."""
    return {"gather_first": "some"}.get(program)


@does_it_overlap.mistake
def believed_the_big_collective(program):
    """The one product needs all of B, so it waits for the whole transfer. However well the collective is made, this
    program leaves it nothing to run beside."""
    return {"gather_first": "all"}.get(program)


@does_it_overlap.mistake
def took_a_ring_for_overlap(program):
    """Neighbour by neighbour is not enough. Which product of this program could begin before the last block has
    come?"""
    return {"ring_then_multiply": "all"}.get(program)


@does_it_overlap.mistake
def saw_pieces_of_one_product(program):
    """There is only one product here, and it waits for every transfer. It cannot run in pieces: only what the program
    writes as separate products can."""
    return {"ring_then_multiply": "some"}.get(program)


@does_it_overlap.mistake
def read_the_lines_as_an_order(program):
    """Lines are not an order in time: only what needs a result waits for it. Does the next transfer need this step's
    product?"""
    return "none" if program in ("multiply_and_send", "send_and_multiply") else None


@does_it_overlap.mistake
def missed_some_products(program):
    """There are three transfers and four products. Draw an arrow to each from what it needs: one product is left for
    every transfer."""
    return "some" if program in ("multiply_and_send", "send_and_multiply") else None


@does_it_overlap.mistake
def looked_past_the_end_of_the_turn(program):
    """Written out, these lines would overlap: the next transfer does not need this step's product. In a loop, a turn
    ends before the next one begins. What is there to multiply *within* a turn, beside the transfer?"""
    return {"send_and_multiply_in_loop": "all"}.get(program)


@does_it_overlap.mistake
def counted_the_product_before_the_loop(program):
    """The first product is finished before the loop begins, since the loop starts from it. Within a turn, the product
    needs what the transfer brings."""
    return {"send_and_multiply_in_loop": "some"}.get(program)


@does_it_overlap.mistake
def one_product_for_three_transfers(program):
    """The first product is independent of all three transfers, but it can be computed only once. Beside how many of
    them does it run, and what runs beside the others?"""
    return {"first_one_then_the_rest": "all"}.get(program)


@does_it_overlap.mistake
def overlooked_the_first_product(program):
    """The rest waits for the last transfer, that is right. But the device's own block is multiplied apart: what does
    that product wait for?"""
    return {"first_one_then_the_rest": "none"}.get(program)


# What it saves: n products and n - 1 transfers on two engines, one that multiplies and one that sends.


def _scheduled(n: int, matmul: float, transfer: float) -> dict[str, float]:
    """Both programs played through: block k is here after k transfers, and products run one after the other."""
    done = 0.0
    for block in range(n):
        done = max(done, block * transfer) + matmul
    return {"apart": (n - 1) * transfer + n * matmul, "overlapped": done}


ring_time = FunctionExercise("ring_time", points=2, reference=_scheduled)


@ring_time.cases
def _(draw):
    for n, matmul, transfer in ((4, 10, 4), (4, 4, 10), (8, 7, 7), (2, 3, 9), (1, 5, 6)):
        yield Case({"n": n, "matmul": matmul, "transfer": transfer})


def _times(apart, overlapped):
    return {"apart": apart, "overlapped": overlapped}


@ring_time.mistake
def forgot_a_product(n, matmul, transfer):
    """During the n − 1 transfers run n − 1 products. The block that comes last still has to be multiplied, with
    nothing beside it."""
    return _times((n - 1) * transfer + n * matmul, (n - 1) * max(matmul, transfer))


@ring_time.mistake
def compared_the_totals(n, matmul, transfer):
    """Overlapped, this is the longer one of all products and all transfers. But step by step the two wait for each
    other, and the last product has no transfer beside it."""
    return _times((n - 1) * transfer + n * matmul, max(n * matmul, (n - 1) * transfer))


@ring_time.mistake
def counted_n_transfers(n, matmul, transfer):
    """One block is there from the start: n products, but how many transfers?"""
    return _times(n * (transfer + matmul), n * max(matmul, transfer))


@ring_time.mistake
def only_the_longer_one(n, matmul, transfer):
    """Overlapped is right. Apart, nothing runs beside anything: how long are all transfers and all products then, one
    after the other?"""
    return _times(max((n - 1) * transfer, n * matmul), (n - 1) * max(matmul, transfer) + matmul)


@ring_time.mistake
def saved_all_transfers(n, matmul, transfer):
    """That is the time without any transfers. A transfer is hidden only as far as a product beside it lasts: what if
    a block takes longer to send than to multiply?"""
    return _times((n - 1) * transfer + n * matmul, n * matmul)


@ring_time.mistake
def longer_one_for_every_block(n, matmul, transfer):
    """These are n steps, each as long as the longer one of the two. But there are n products and only n − 1 transfers:
    one product has no transfer beside it. How long does that step take?"""
    return _times((n - 1) * transfer + n * matmul, n * max(matmul, transfer))


@ring_time.mistake
def ended_with_a_transfer(n, matmul, transfer):
    """Overlapped, this counts a transfer alone where a product is alone. What has come has to be multiplied: of n
    products and n − 1 transfers, which one has nothing beside it?"""
    return _times((n - 1) * transfer + n * matmul, (n - 1) * max(matmul, transfer) + transfer)
