"""§ 3, 11: the collectives in NumPy, and a function that tells them apart. The oracle is JAX on real devices."""

from __future__ import annotations

import functools
import itertools

import numpy as np
from jax import lax

from grader.arrays.numbers import close
from grader.exercises import Case, FunctionExercise
from grader.programs.buffers import COLLECTIVES, after, named, over, puzzle

# Lists of blocks in, one for each device; lists of blocks out.


def _alike(one, other, **_):
    return len(one) == len(other) and all(map(_same_block, one, other))


def _same_block(one, other):
    """Whether two blocks hold the same; a wrong answer may have none."""
    return one is other if one is None or other is None else close(one, other)


@functools.cache
def _gather(axis, tiled):
    return lambda block: lax.all_gather(block, "x", axis=axis, tiled=tiled)


@functools.cache
def _scatter(dimension):
    return lambda block: lax.psum_scatter(block, "x", scatter_dimension=dimension, tiled=True)


@functools.cache
def _exchange(split, concat):
    return lambda block: lax.all_to_all(block, "x", split, concat, tiled=True)


@functools.cache
def _permute(pairs):
    return lambda block: lax.ppermute(block, "x", pairs)


def _really(body, blocks):
    """What the devices hold after the real collective."""
    return list(after(body, blocks, {"x": len(blocks)}))


def _drawn(draw, n, *shape):
    return list(draw.values(n, *shape))


psum_ref = FunctionExercise("psum_ref", points=1, same=_alike, reference=lambda blocks: _really(over("psum"), blocks))


@psum_ref.by_formula
def _added_up(blocks):
    return [np.sum(blocks, axis=0)] * len(blocks)


@psum_ref.cases
def _(draw):
    for n, shape in ((4, (3,)), (3, (2, 5))):
        yield Case({"blocks": _drawn(draw, n, *shape)})


@psum_ref.mistake
def added_within_blocks(blocks):
    """Each device's own numbers were summed. psum sums *across* devices: the first number of each, the second of each,
    and so on. Which shape do the sums have, then?"""
    return [block.sum() for block in blocks]


@psum_ref.mistake
def left_it_on_one_device(blocks):
    """Only device 0 has the sum, and the others kept their blocks. That is MPI's reduce. Which devices hold the sum
    after a psum?"""
    return [sum(blocks), *blocks[1:]]


@psum_ref.mistake
def returned_one_block(blocks):
    """The result is the sum, once. It should be a list with a block for every device. What does each device hold?"""
    return sum(blocks)


@psum_ref.mistake
def running_sums(blocks):
    """Device k has the sum of the blocks up to its own, so only the last device has the full sum. Which blocks does a
    psum add for each device?"""
    return list(np.cumsum(blocks, axis=0))


all_gather_ref = FunctionExercise(
    "all_gather_ref", points=1, same=_alike, reference=lambda blocks, axis, tiled: _really(_gather(axis, tiled), blocks)
)


@all_gather_ref.by_formula
def _put_together(blocks, axis, tiled):
    together = np.concatenate(blocks, axis) if tiled else np.stack(blocks, axis)
    return [together] * len(blocks)


@all_gather_ref.cases
def _(draw):
    for n, shape, axis, tiled in (
        (4, (3,), 0, True),
        (3, (2, 3), 1, True),
        (4, (2, 3), 2, False),
        (3, (2, 3), 1, False),
    ):
        yield Case({"blocks": _drawn(draw, n, *shape), "axis": axis, "tiled": tiled})


def _copies(whole, blocks):
    return [whole] * len(blocks)


@all_gather_ref.mistake
def always_joined(blocks, axis, tiled):
    """The blocks were concatenated even if `tiled` is False. Untiled, they are stacked along a new dimension. Which
    NumPy function stacks?"""
    return _copies(np.concatenate(blocks, axis), blocks)


@all_gather_ref.mistake
def always_stacked(blocks, axis, tiled):
    """The blocks were stacked along a new dimension even if `tiled` is True. Tiled, they are concatenated along one
    that they have. Which NumPy function concatenates?"""
    return _copies(np.stack(blocks, axis), blocks)


@all_gather_ref.mistake
def ignored_the_axis(blocks, axis, tiled):
    """The blocks were always combined along dimension 0. `axis` says which dimension grows (tiled), or where the new
    one is (untiled). Where does your function use it?"""
    return _copies(np.concatenate(blocks) if tiled else np.stack(blocks), blocks)


@all_gather_ref.mistake
def gathered_once(blocks, axis, tiled):
    """The result is what one device holds. It should be a list with a block for every device. What do the others hold
    after an all_gather?"""
    return np.concatenate(blocks, axis) if tiled else np.stack(blocks, axis)


psum_scatter_ref = FunctionExercise(
    "psum_scatter_ref",
    points=1,
    same=_alike,
    reference=lambda blocks, scatter_dimension: _really(_scatter(scatter_dimension), blocks),
)


@psum_scatter_ref.by_formula
def _dealt_out(blocks, scatter_dimension):
    return np.split(sum(blocks), len(blocks), scatter_dimension)


@psum_scatter_ref.cases
def _(draw):
    for n, shape, dimension in ((4, (8,), 0), (4, (2, 3, 8), 2), (3, (2, 6, 2), 1)):
        yield Case({"blocks": _drawn(draw, n, *shape), "scatter_dimension": dimension})


@psum_scatter_ref.mistake
def scattered_without_adding(blocks, scatter_dimension):
    """Device i kept part i of its own block, and nothing was summed. It should hold part i of the *sum* of all blocks.
    What comes before the split?"""
    return [np.split(block, len(blocks), scatter_dimension)[i] for i, block in enumerate(blocks)]


@psum_scatter_ref.mistake
def added_without_scattering(blocks, scatter_dimension):
    """Every device holds the full sum, as after a psum. Which part of it does device i keep after a psum_scatter?"""
    return _copies(sum(blocks), blocks)


@psum_scatter_ref.mistake
def always_scattered_rows(blocks, scatter_dimension):
    """The sum was always split along dimension 0. Which argument says along which dimension to split it?"""
    return np.array_split(sum(blocks), len(blocks), 0)


@psum_scatter_ref.mistake
def scattered_backwards(blocks, scatter_dimension):
    """The parts are correct, but they are on the wrong devices: the first part is on the last device. Which part does
    device 0 keep?"""
    return np.array_split(sum(blocks), len(blocks), scatter_dimension)[::-1]


@psum_scatter_ref.mistake
def averaged_and_scattered(blocks, scatter_dimension):
    """The result is the means across devices instead of the sums, split correctly. What does psum_scatter do with the
    blocks before it splits them?"""
    return np.split(np.mean(blocks, axis=0), len(blocks), scatter_dimension)


@psum_scatter_ref.mistake
def first_part_for_everybody(blocks, scatter_dimension):
    """Every device has the first part of the sum, and the other parts are lost. Which part does device k keep?"""
    return [_dealt_out(blocks, scatter_dimension)[0]] * len(blocks)


all_to_all_ref = FunctionExercise(
    "all_to_all_ref",
    points=2,
    same=_alike,
    reference=lambda blocks, split_axis, concat_axis: _really(_exchange(split_axis, concat_axis), blocks),
)


@all_to_all_ref.by_formula
def _exchanged(blocks, split_axis, concat_axis):
    pieces = [np.split(block, len(blocks), split_axis) for block in blocks]
    return [np.concatenate(received, concat_axis) for received in zip(*pieces, strict=True)]


@all_to_all_ref.cases
def _(draw):
    for n, shape, split, concat in ((4, (8,), 0, 0), (3, (2, 3, 6), 2, 1), (3, (2, 6, 2), 1, 2)):
        yield Case({"blocks": _drawn(draw, n, *shape), "split_axis": split, "concat_axis": concat})


@all_to_all_ref.mistake
def dealt_out_like_cards(blocks, split_axis, concat_axis):
    """Single elements were exchanged: device i got elements i, i + n, and so on. all_to_all exchanges *pieces* of
    consecutive elements. Into how many pieces is each block split?"""
    n = len(blocks)
    pieces = [[np.take(b, range(i, b.shape[split_axis], n), split_axis) for b in blocks] for i in range(n)]
    return [np.concatenate(received, concat_axis) for received in pieces]


@all_to_all_ref.mistake
def split_and_joined_alike(blocks, split_axis, concat_axis):
    """The received pieces were concatenated along the dimension that was split. Which argument says along which
    dimension they belong together?"""
    pieces = [np.split(b, len(blocks), split_axis) for b in blocks]
    return [np.concatenate(received, split_axis) for received in zip(*pieces, strict=True)]


@all_to_all_ref.mistake
def swapped_split_and_concat(blocks, split_axis, concat_axis):
    """The two dimensions are swapped. Which one is split, and along which one are the received pieces concatenated?"""
    pieces = [np.array_split(b, len(blocks), concat_axis) for b in blocks]
    return [np.concatenate(received, split_axis) for received in zip(*pieces, strict=True)]


@all_to_all_ref.mistake
def joined_its_own_pieces(blocks, split_axis, concat_axis):
    """Each device split its block and concatenated its own pieces again, so nothing was exchanged. Which piece of
    *every* block does device i hold?"""
    return [np.concatenate(np.split(b, len(blocks), split_axis), concat_axis) for b in blocks]


@all_to_all_ref.mistake
def added_the_pieces(blocks, split_axis, concat_axis):
    """The right pieces are on each device, but they were summed. An all_to_all computes nothing. How are the pieces
    combined?"""
    pieces = [np.split(block, len(blocks), split_axis) for block in blocks]
    return [sum(received) for received in zip(*pieces, strict=True)]


ppermute_ref = FunctionExercise(
    "ppermute_ref",
    points=1,
    same=_alike,
    reference=lambda blocks, perm: _really(_permute(tuple(map(tuple, perm))), blocks),
)


@ppermute_ref.by_formula
def _sent_on(blocks, perm):
    held = [np.zeros_like(block) for block in blocks]
    for source, destination in perm:
        held[destination] = blocks[source]
    return held


@ppermute_ref.cases
def _(draw):
    for n, shape, perm in (
        (4, (2,), [(0, 1), (1, 2), (2, 3)]),
        (3, (2,), [(0, 1), (1, 2), (2, 0)]),
        (4, (2, 3), [(3, 0), (1, 2)]),
    ):
        yield Case({"blocks": _drawn(draw, n, *shape), "perm": perm})


@ppermute_ref.mistake
def kept_what_nobody_sent(blocks, perm):
    """A device that receives nothing kept its own block. JAX doesn't keep it. What does such a device hold instead?"""
    sender = {to: by for by, to in perm}
    return [blocks[sender.get(k, k)] for k in range(len(blocks))]


@ppermute_ref.mistake
def read_pairs_backwards(blocks, perm):
    """The pairs were read in the wrong order. Each is (source, destination). Which of the two sends?"""
    sender = dict(perm)
    return [blocks[sender[k]] if k in sender else np.zeros_like(blocks[k]) for k in range(len(blocks))]


@ppermute_ref.mistake
def overwrote_while_sending(blocks, perm):
    """The blocks were replaced one after the other, so a block that had just arrived was sent on. All devices send at
    the same time. Which blocks do they send?"""
    held = list(blocks)
    for by, to in perm:
        held[to] = held[by]
    reached = {to for _, to in perm}
    return [block if k in reached else np.zeros_like(block) for k, block in enumerate(held)]


@ppermute_ref.mistake
def nothing_where_nobody_sends(blocks, perm):
    """A device that receives nothing has `None`. A device always holds an array. What is its shape, and what is in
    it?"""
    sent = {destination: blocks[source] for source, destination in perm}
    return [sent.get(device) for device in range(len(blocks))]


@ppermute_ref.mistake
def added_what_came(blocks, perm):
    """The received block was added to the one that was there. A ppermute adds nothing. What does a device hold
    afterward?"""
    held = [np.array(block) for block in blocks]
    for source, destination in perm:
        held[destination] = held[destination] + blocks[source]
    return held


@ppermute_ref.mistake
def always_to_the_next(blocks, perm):
    """Every block went to the next device, and the last one's to the first, whatever `perm` says. Which device sends
    to which in the pairs?"""
    return [*blocks[-1:], *blocks[:-1]]


# A classifier: blocks before and after, fresh each time; which collective was it?


def _name_of(before, after):
    (name,) = named(before, after)
    return name


identify_collective = FunctionExercise("identify_collective", points=3, reference=_name_of)


@identify_collective.cases
def _(draw):
    # Powers of 2: a mean of whole numbers comes out exact. Pieces as long as there are devices, and of one number.
    for name, (n, length) in itertools.product(COLLECTIVES, ((4, 16), (8, 8))):
        drawn = puzzle(draw.rng, {"x": n}, length, name)
        before = [block - 100 * (n == 4) for block in drawn.before]  # the largest may be less than 0
        yield Case({"before": before, "after": list(_after_over(name, before, {"x": n}))})


def _first_that(fits, before, after):
    line = {"x": len(before)}
    return next(n for n in COLLECTIVES if fits(_after_over(n, before, line), after))


def _after_over(name, before, line):
    return after(over(name), before, line)


@identify_collective.mistake
def looked_at_shapes_only(before, after):
    """The function found a name whose result has the right *shape*. Several collectives leave that shape. Which of
    them leaves these numbers?"""
    return _first_that(lambda held, seen: held[0].shape == seen[0].shape, before, after)


@identify_collective.mistake
def did_not_look_at_shapes(before, after):
    """Stacked and concatenated blocks got the same name. In one long row their numbers are equal. What else can you
    compare?"""
    return _first_that(lambda held, seen: np.array_equal(np.ravel(held), np.ravel(seen)), before, after)


@identify_collective.mistake
def called_a_mean_a_sum(before, after):
    """A mean and a maximum were called a psum. All three combine all devices. Which of them gives these numbers?"""
    name = _name_of(before, after)
    return "psum" if name in ("pmean", "pmax") else name


@identify_collective.mistake
def shifted_against_the_arrow(before, after):
    """The direction is wrong. In `ppermute +1`, device 0 sends to device 1. Whose block does device 1 hold
    afterward?"""
    name = _name_of(before, after)
    return {"ppermute +1": "ppermute -1", "ppermute -1": "ppermute +1"}.get(name, name)


@identify_collective.mistake
def called_a_share_a_sum(before, after):
    """A psum_scatter was called a psum. Does each device hold all of the sums, or a part of them?"""
    name = _name_of(before, after)
    return "psum" if name == "psum_scatter" else name
