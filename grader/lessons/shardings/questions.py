"""§ 4, 6–9, the tables: answered by doing the experiment."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import Blocks, blocks
from grader.arrays.meshes import make_mesh, put
from grader.arrays.words import numbered
from grader.exercises import TableExercise
from grader.lessons.shardings.functions import MESH, every_spec

SHAPE = (16, 8)  # of the arrays in most questions, float32


# What an array says about itself.


@functools.lru_cache
def _arrays() -> dict[str, jax.Array]:
    fresh = jnp.ones(SHAPE, jnp.float32)
    return {"fresh": fresh, "sharded": put(np.ones(SHAPE, np.float32), P("y"), make_mesh(MESH))}


ATTRIBUTES: dict[str, Callable[[jax.Array, jax.Array], object]] = {
    "len(sharded.devices())": lambda fresh, sharded: len(sharded.devices()),
    "sharded.shape": lambda fresh, sharded: sharded.shape,
    "len(sharded.addressable_shards)": lambda fresh, sharded: len(sharded.addressable_shards),
    "sharded.addressable_shards[5].data.shape": lambda fresh, sharded: sharded.addressable_shards[5].data.shape,
    "sharded.is_fully_replicated": lambda fresh, sharded: sharded.is_fully_replicated,
    "jnp.sin(sharded).addressable_shards[5].data.shape": lambda fresh, sharded: (
        jnp.sin(sharded).addressable_shards[5].data.shape
    ),
}

ATTRIBUTES_ASKS = {
    "len(": "All devices of the mesh hold something of this array, even if it is a replica. How many devices is that?",
    "sharded.shape": "The shape of the array is that of the full array.",
    "data.shape": "Which entry belongs to which dimension, and into how many parts does that axis split it?",
    "is_fully": "Does every device hold the full array?",
}
attributes = TableExercise(
    "attributes", points=2, reference=lambda expression: ATTRIBUTES[expression](**_arrays()), questions=ATTRIBUTES_ASKS
)
attributes.rows(ATTRIBUTES, argument="expression")


@attributes.mistake
def counted_blocks_for_devices(expression):
    """There are two *different* blocks. But every device along x, which the spec doesn't name, holds a replica. How
    many devices hold something, and how many shards does the array have?"""
    return 2 if expression in ("len(sharded.devices())", "len(sharded.addressable_shards)") else None


@attributes.mistake
def took_the_block_for_the_array(expression):
    """That is the shape of a *shard*. `sharded` is the full array. Does its shape depend on its sharding?"""
    return (8, 8) if expression == "sharded.shape" else None


@attributes.mistake
def took_the_array_for_the_block(expression):
    """That is the shape of the full array. Its rows are split over y. How many of them does device 5 hold?"""
    return SHAPE if expression.endswith(".data.shape") else None


@attributes.mistake
def divided_rows_by_the_devices(expression):
    """That would be the number of rows if all eight devices split them. `P("y")` names one axis. How many devices
    does y have?"""
    return (2, 8) if expression.endswith(".data.shape") else None


@attributes.mistake
def divided_rows_by_the_other_axis(expression):
    """That would be the number of rows if the four devices along x split them. `P("y")` names y. How many devices
    are there along that axis?"""
    return (4, 8) if expression.endswith(".data.shape") else None


@attributes.mistake
def called_some_copies_full(expression):
    """There are replicas, but they are replicas of one half. What does every device of a fully replicated array
    hold?"""
    return True if expression == "sharded.is_fully_replicated" else None


# Draw it: rows of blocks, and in each block the devices that hold it.

DRAWN = {
    "P('x', 'y')": P("x", "y"),
    "P('y', 'x')": P("y", "x"),
    "P('x')": P("x"),
    "P(None, 'y')": P(None, "y"),
    "P(('x', 'y'))": P(("x", "y")),
    "P(None, ('y', 'x'))": P(None, ("y", "x")),
}


def _grid(spec):
    """The picture as lists, read off from JAX's own table."""
    held: dict[tuple[int, int], list[int]] = {}
    for device, index in NamedSharding(make_mesh(MESH), DRAWN[spec]).devices_indices_map((8, 8)).items():
        corner = tuple(part.indices(8)[0] for part in index)
        held.setdefault(corner, []).append(device.id)
    rows, columns = (sorted({corner[dim] for corner in held}) for dim in (0, 1))
    return [[sorted(held[row, column]) for column in columns] for row in rows]


def _same_grid(one, other, spec):
    return _devices(one) == _devices(other)


def _devices(grid):
    """A grid whose blocks are sorted lists, also where a lone device stands without brackets."""
    return [[sorted(block) if isinstance(block, (list, tuple)) else [block] for block in row] for row in grid]


DRAW_IT_ASKS = {
    "": "Take the dimensions one by one. Which axes does the entry name? The picture has as many parts there, rows "
    "from top to bottom and columns from left to right. In a tuple, the first axis changes slowest. Devices that "
    "differ along no named axis share a block.",
}
draw_it = TableExercise("draw_it", points=3, reference=_grid, same=_same_grid, questions=DRAW_IT_ASKS)
draw_it.rows(DRAWN, argument="spec")


@draw_it.stands_for
def _of_the_picture(value, spec):
    """Into how many parts a picture cuts the dimensions; where these are right, which devices stand where they do."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(row, (list, tuple)) and row for row in value):
        return ""
    try:
        rows, due = _devices(value), _grid(spec)
    except TypeError:  # what stands in a block is no device
        return ""
    if len({*map(len, rows)}) != 1:
        return ""
    if (size := (len(rows), len(rows[0]))) != (len(due), len(due[0])):
        rows_of, columns_of = (f"{n} part{'s' * (n > 1)}" for n in size)
        return f"This picture has {rows_of} down and {columns_of} across. What does the spec say?"
    places = list(zip(itertools.chain(*rows), itertools.chain(*due), strict=True))
    if all(set(found) <= set(wanted) for found, wanted in places):
        return "Every device in this picture is in the correct part, but some are missing. Which devices hold the same?"
    if right := sorted(device for found, wanted in places for device in wanted if device in found):
        told = numbered("device", right)
        are = "are" if len(right) > 1 else "is"
        return f"The number of parts is correct. Only {told} {are} in the correct one."
    return "The number of parts is correct, but no device is in the correct one."


@draw_it.mistake
def gave_copies_other_columns(spec):
    """This picture splits a dimension that the spec doesn't split. Devices that differ only along an axis that
    isn't named hold replicas of one block. Which devices share a block here?"""
    return [[0, 1], [2, 3], [4, 5], [6, 7]] if spec == "P(None, 'y')" else None


@draw_it.mistake
def forgot_the_brackets_of_a_row(spec):
    """In this answer, each inner bracket is a *row of blocks* with one device in each block. A picture is a list of
    rows, a row is a list of blocks, and a block has all devices that hold it. Is a pair of brackets around each row
    missing?"""
    return {"P('x')": [[0, 1], [2, 3], [4, 5], [6, 7]], "P(None, 'y')": [[0, 2, 4, 6], [1, 3, 5, 7]]}.get(spec)


@draw_it.mistake
def counted_through_the_picture(spec):
    """The grid of blocks has the right shape, but the devices are numbered through it, row by row. Device 1 differs
    from device 0 along y. Which dimension does y split here?"""
    return [[0, 1, 2, 3], [4, 5, 6, 7]] if spec == "P('y', 'x')" else None


@draw_it.mistake
def ignored_the_order_of_the_entries(spec):
    """That is the picture of `P("x", "y")`. The order of the entries matters: the first belongs to the rows. Which
    axis splits the rows here, and how many devices does it have?"""
    return [[0, 1], [2, 3], [4, 5], [6, 7]] if spec == "P('y', 'x')" else None


@draw_it.mistake
def cut_the_rows_instead(spec):
    """This picture splits the rows. The first entry is None, a placeholder. Which dimension does the second entry
    split?"""
    return {
        "P(None, 'y')": [[[0, 2, 4, 6]], [[1, 3, 5, 7]]],
        "P(None, ('y', 'x'))": [[k] for k in (0, 2, 4, 6, 1, 3, 5, 7)],
    }.get(spec)


@draw_it.mistake
def cut_over_the_axis_not_named(spec):
    """Here the *other* axis splits the array. Devices along the named axis hold different blocks, and devices along
    the other one hold the same. Devices 0 and 1 differ along y. Do they hold the same block?"""
    return {"P('x')": [[[0, 2, 4, 6]], [[1, 3, 5, 7]]], "P(None, 'y')": [[[0, 1], [2, 3], [4, 5], [6, 7]]]}.get(spec)


@draw_it.mistake
def cut_each_dimension_once(spec):
    """The tuple is *one* entry of the spec, so both axes split the same dimension. Into how many parts do they
    split it, and what happens to the other dimension?"""
    return {"P(('x', 'y'))": [[0, 1], [2, 3], [4, 5], [6, 7]], "P(None, ('y', 'x'))": [[0, 2, 4, 6], [1, 3, 5, 7]]}.get(
        spec
    )


@draw_it.mistake
def read_the_tuple_backwards(spec):
    """The blocks are correct, but in a different order. The axes of a tuple count like digits. Along which axis do
    neighboring blocks differ?"""
    return {"P(('x', 'y'))": [[k] for k in (0, 2, 4, 6, 1, 3, 5, 7)], "P(None, ('y', 'x'))": [list(range(8))]}.get(spec)


@draw_it.mistake
def listed_blocks_by_device(spec):
    """This lists the *blocks* in the order of the devices: device 0 holds block 0, and device 1 holds block 4. The
    picture lists the devices in the order of the blocks. Which device holds block 1?"""
    return [[0, 4, 1, 5, 2, 6, 3, 7]] if spec == "P(None, ('y', 'x'))" else None


# How much memory that is.

MEBI, KIBI = 2**20, 2**10
TOLD_PARTS = range(2, 129)  # of an array: with more of them a unit is wrong


def _spread(shape, itemsize, spec, mesh, devices=None):
    """The bytes that the first `devices` hold together, all of them by default."""
    held = blocks(shape, spec, mesh)
    return held.entries * itemsize * (devices or len(held.indices))


LARGE, POD = (8192, 8192), {"x": 2, "y": 8, "z": 2}
MEMORY: dict[str, Callable[[], float]] = {
    "w as P('x', 'y'): MiB on one device": lambda: _spread(LARGE, 4, P("x", "y"), MESH, 1) // MEBI,
    "w as P('x'): MiB on one device": lambda: _spread(LARGE, 4, P("x"), MESH, 1) // MEBI,
    "w as P('x'): MiB on all devices": lambda: _spread(LARGE, 4, P("x"), MESH) // MEBI,
    "w as P(): MiB on all devices": lambda: _spread(LARGE, 4, P(), MESH) // MEBI,
    "q as P(('x', 'y')): bytes on one device": lambda: _spread((128, 2048), 1, P(("x", "y")), POD, 1),
    "q as P(('x', 'y')): KiB on all devices": lambda: _spread((128, 2048), 1, P(("x", "y")), POD) // KIBI,
}

MEMORY_ASKS = {
    "on one device": "How many elements does the array have, how many bytes does each take, and into how many parts do "
    "the axes that the spec names split it? Which unit does the row ask for?",
    "on all": "Multiply what one device holds by the number of all devices, because replicas count. Which unit does "
    "the row ask for?",
}
memory = TableExercise("memory", points=2, reference=lambda question: MEMORY[question](), questions=MEMORY_ASKS)
memory.rows(MEMORY, argument="question")


@memory.stands_for
def _of_the_memory(value, question):
    """Into how many parts an array would be cut of which so much is on a device; how often it is on all of them."""
    name, unit = question[0], MEBI if "MiB" in question else KIBI if "KiB" in question else 1
    whole = 4 * math.prod(LARGE) if name == "w" else 128 * 2048
    if not isinstance(value, (int, float)) or isinstance(value, bool) or value <= 0:
        return ""
    if "one device" in question and (parts := whole / (value * unit)) in TOLD_PARTS:
        return f"With that much on a device, {name} would have {int(parts)} parts. How many does it have?"
    if "one device" in question and parts == 1:
        return f"That is all of {name}, as if nothing were split. Which axes does the spec name?"
    if "all devices" in question and (times := value * unit / whole) in TOLD_PARTS:
        return f"That is {int(times)} times {name}, as if it had that many replicas. How many are there?"
    return ""


@memory.mistake
def counted_one_copy(question):
    """That is the array itself, counted once. Along an axis that the spec doesn't name, every device holds a
    replica. How many replicas are there?"""
    return 256 if "all devices" in question else None


@memory.mistake
def shared_out_among_all(question):
    """This is what each device would hold if all devices shared the array. Which axes does the spec name, and how
    many devices do they have?"""
    return {"w as P('x'): MiB on one device": 32, "q as P(('x', 'y')): bytes on one device": 8192}.get(question)


@memory.mistake
def cut_over_the_first_axis_only(question):
    """That is the size if only x splits the array. Here y is named as well. Into how many parts do both axes split
    it together, and how many bytes does one of its elements take?"""
    return {
        "w as P('x', 'y'): MiB on one device": 64,
        "q as P(('x', 'y')): bytes on one device": 131072,
        "q as P(('x', 'y')): KiB on all devices": 4096,
    }.get(question)


@memory.mistake
def forgot_four_bytes(question):
    """That is the number of *elements*, in the same unit. `w` is float32. How many bytes are 32 bits?"""
    return MEMORY[question]() / 4 if question.startswith("w") else None


@memory.mistake
def took_four_bytes_for_int8(question):
    """That is the size with four bytes per element, as in float32 or int32. How many bits does an int8 have, and
    how many bytes is that?"""
    return MEMORY[question]() * 4 if question.startswith("q") else None


@memory.mistake
def took_a_megabyte_for_a_mebibyte(question):
    """That is the size in megabytes (MB) of a million bytes. A mebibyte (MiB) is 1024 · 1024 bytes. How many of
    those is it?"""
    return MEMORY[question]() * MEBI / 1e6 if "MiB" in question else None


# Choose a spec: any that does what the card asks.


def _extent(held: Blocks, device: int) -> tuple[tuple[int, int], ...]:
    return tuple((part.start, part.stop) for part in held.indices[device])


def _copies(held: Blocks, device: int) -> list[int]:
    """The devices that hold the same block as this one."""
    return [k for k, index in enumerate(held.indices) if index == held.indices[device]]


def _lies_as(spec: P) -> Callable[[Blocks], bool]:
    return lambda held: held.indices == blocks(SHAPE, spec, MESH).indices


CARDS: dict[str, Callable[[Blocks], bool]] = {
    "two whole rows each": lambda held: all(_extent(held, k)[1] == (0, 8) and held.entries == 16 for k in range(8)),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": lambda held: all(_copies(held, k) == [k, k + 1] for k in (0, 2, 4, 6)),
    "even devices: left half, odd devices: right half": _lies_as(P(None, "y")),
    "picture": _lies_as(P(None, ("y", "x"))),
}


def _fitting(card):
    return next(spec for spec in every_spec(2, ("x", "y")) if CARDS[card](blocks(SHAPE, spec, MESH)))


def _as_good(one, other, card):
    """Both do what the card asks; or both lay the array out alike, which is how a wrong spec is recognised."""
    first, second = (blocks(SHAPE, _spec(given), MESH) for given in (one, other))
    return first.indices == second.indices or (CARDS[card](first) and CARDS[card](second))


def _spec(given) -> P:
    """The answer as a spec. Raises ValueError for what JAX would refuse, such as an axis used twice."""
    if isinstance(given, str):
        raise ValueError("a string isn't a spec")
    return NamedSharding(make_mesh(MESH), P(*given)).spec


choose_spec = TableExercise("choose_spec", points=4, reference=_fitting, same=_as_good)
choose_spec.rows(CARDS, argument="card")


@choose_spec.stands_for
def _of_the_spec(value, card):
    """What device 1 holds with a spec, and which devices hold the same."""
    try:
        held = blocks(SHAPE, _spec(value), MESH)
    except Exception:  # what JAX refuses, it says itself
        return ""
    (top, bottom), (left, right) = _extent(held, 1)
    others = [device for device in _copies(held, 1) if device != 1]
    shared = (
        f"as {numbered('device', others)} {'do' if len(others) > 1 else 'does'}"
        if others
        else "as no other device does"
    )
    return (
        f"With this spec, device 1 holds rows {top} to {bottom - 1} and columns {left} to {right - 1}, {shared}. "
        "What does the card say?"
    )


@choose_spec.mistake
def named_the_other_axis(card):
    """Here the other axis splits the array. Along an axis that a spec names, devices hold *different* blocks, and
    along the other one they hold the same. Devices 0 and 1 differ along y, devices 0 and 2 along x. Which of these
    pairs should hold the same?"""
    return {
        "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("y"),
        "even devices: left half, odd devices: right half": P(None, "x"),
    }.get(card)


@choose_spec.mistake
def cut_the_other_dimension(card):
    """The axis is correct, but it splits the other dimension. The first entry of a spec splits the rows, and the
    second the columns. Which dimension should be split here?"""
    return {
        "two whole rows each": P(None, ("x", "y")),
        "even devices: left half, odd devices: right half": P("y"),
        "picture": P(("y", "x")),
    }.get(card)


@choose_spec.mistake
def left_an_axis_out(card):
    """With this spec, a device holds more than the card allows, and there are replicas. Which axis isn't named yet?"""
    return {"two whole rows each": P("x")}.get(card)


@choose_spec.mistake
def cut_both_dimensions(card):
    """This spec splits rows *and* columns, with one axis each. One dimension should stay unsplit, and there should
    be no replicas. Which axes have to split the other dimension?"""
    return {
        "two whole rows each": P("x", "y"),
        "picture": P("x", "y"),
    }.get(card)


@choose_spec.mistake
def took_the_usual_order(card):
    """Both axes split the correct dimension, but in the other order. With this spec, device 1 holds the block next
    to that of device 0. On the card, it is half an array away. Which of the axes has to come first?"""
    return {"picture": P(None, ("x", "y"))}.get(card)


@choose_spec.mistake
def cut_what_should_be_copied(card):
    """With this spec, no two devices hold the same block, because both axes are named. Along which axis should
    there be replicas?"""
    return {"copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x", "y")}.get(card)


# What JAX refuses. Every row is tried for real, and the error read.

FINE = "fine"
REASONS = (
    ("axis used twice", r"duplicate entries|at most one positional|at most once"),
    ("unknown axis", r"Resource axis|not found in mesh|undefined.* axis"),
    ("too many entries", r"valid for values of rank|rank at least"),
    ("does not divide", r"divisible by|evenly divide"),
    ("too few devices", r"Number of devices"),
)


def laying(shape: tuple[int, ...], *spec: object) -> Callable[[], object]:
    """The attempt to lay an array of this shape out by a spec, on the lesson's mesh."""
    return lambda: put(np.ones(shape, np.float32), P(*spec), make_mesh(MESH))


ATTEMPTS: dict[str, Callable[[], object]] = {
    "(16, 8) as P('x', 'x')": laying((16, 8), "x", "x"),
    "(16, 8) as P('z')": laying((16, 8), "z"),
    "(16,) as P('x', None)": laying((16,), "x", None),
    "(10, 8) as P('y', 'x')": laying((10, 8), "y", "x"),
    "(12, 2) as P(('x', 'y'))": laying((12, 2), ("x", "y")),
    "a 4 × 4 mesh": lambda: jax.make_mesh((4, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2),
}


def refusal(attempt: Callable[[], object]) -> str:
    """Why JAX refuses an attempt, in the words of the lesson; FINE when it does not."""
    try:
        attempt()
    except Exception as error:  # of which class differs from one reason to the next
        reasons = [reason for reason, said in REASONS if re.search(said, str(error))]
        if len(reasons) != 1:
            raise AssertionError(f"JAX says something that this lesson does not expect: {error}") from error
        return reasons[0]
    return FINE


@functools.lru_cache
def _outcome(attempt):
    return refusal(ATTEMPTS[attempt])


STANDS_FOR = {
    "fine": "It is fine if there are enough devices, every name is an axis of the mesh and appears only once, there "
    "are no more entries than dimensions, and everything divides evenly. Which of these isn't true?",
    "axis used twice": "This happens if an axis appears twice in a spec. Which axis would that be?",
    "unknown axis": "This happens if a spec names an axis that the mesh doesn't have. Which name would that be?",
    "too many entries": "This happens if a spec has more entries than the array has dimensions. A tuple is one entry. "
    "How many of each are there?",
    "does not divide": "This happens if a length isn't a multiple of the number of devices that split it. Which length "
    "would that be?",
    "too few devices": "This happens if a mesh needs more devices than there are. How many does it need here?",
}
legal_or_not = TableExercise("legal_or_not", points=3, reference=_outcome, options=STANDS_FOR)
legal_or_not.rows(ATTEMPTS, argument="attempt")


def _believed(attempt: str, reason: str, belief: str = FINE) -> str | None:
    return belief if _outcome(attempt) == reason else None


@legal_or_not.mistake
def thought_rows_are_padded(attempt):
    """A dimension has to divide evenly among the devices that split it. JAX neither pads the last block nor makes
    it smaller. Into how many parts would this spec split it?"""
    return _believed(attempt, "does not divide")


@legal_or_not.mistake
def thought_twice_means_copies(attempt):
    """An axis that appears twice doesn't replicate. A device has one index along each axis, and it can't say both
    which rows and which columns the device holds. What does JAX do instead?"""
    return _believed(attempt, "axis used twice")


@legal_or_not.mistake
def thought_extra_entries_are_ignored(attempt):
    """A spec can have fewer entries than the array has dimensions, but not more. Which dimension would the second
    entry belong to, be it a name or None?"""
    return _believed(attempt, "too many entries")


@legal_or_not.mistake
def thought_unknown_axes_are_ignored(attempt):
    """The spec names an axis that this mesh doesn't have, and JAX doesn't ignore it. Which names are in
    `mesh.axis_names`?"""
    return _believed(attempt, "unknown axis")


@legal_or_not.mistake
def thought_devices_can_be_shared(attempt):
    """Every position of a mesh needs its own device. How many positions does this one have, and how many devices
    are there?"""
    return _believed(attempt, "too few devices")


@legal_or_not.mistake
def divided_by_all_the_devices(attempt):
    """A length doesn't have to be divisible by eight, but only by the size of the axes that split *this* dimension.
    Which entry belongs to each dimension here?"""
    return {
        "(10, 8) as P('y', 'x')": "does not divide",
    }.get(attempt)


@legal_or_not.mistake
def wanted_one_axis_per_dimension(attempt):
    """Here every axis appears once in the spec, in one tuple or separately, which is allowed. Is there another
    reason to refuse it?"""
    return {"(12, 2) as P(('x', 'y'))": "axis used twice"}.get(attempt)


# Find the fault: sentences of well-known tutorials. What is true instead?


def _spec_of_the_figure():
    """The one layout of the lesson's figure: two row blocks, four column blocks, devices counted down the columns."""
    rows_of, columns_of = (lambda d: 4 * (d % 2)), (lambda d: 2 * (d // 2))
    for spec in every_spec(2, ("x", "y")):
        held = blocks((8, 8), spec, MESH).indices
        if all(
            held[d] == (slice(rows_of(d), rows_of(d) + 4), slice(columns_of(d), columns_of(d) + 2)) for d in range(8)
        ):
            return spec
    raise AssertionError("no spec lays an array out like the figure")


def _devices_0_and_1():
    held = blocks(SHAPE, P("x", None), MESH).indices
    return "the same block" if held[0] == held[1] else "half of a block each"


def _copies_by_bytes():
    array = put(np.ones(SHAPE, np.float32), P(), make_mesh(MESH))
    return sum(shard.data.nbytes for shard in array.addressable_shards) // array.nbytes


def _holder_of_block_1():
    held = NamedSharding(make_mesh(MESH), P(("y", "x"))).devices_indices_map((8, 8))
    return next(device.id for device, index in held.items() if index[0].start == 1)


CLAIMS: dict[str, Callable[[], object]] = {
    "figure": _spec_of_the_figure,
    "type": lambda: type(make_mesh(MESH)).__name__,
    "replicate": _devices_0_and_1,
    "equal": lambda: P("x", None) == P("x"),
    "nbytes": _copies_by_bytes,
    "in_order": _holder_of_block_1,
}

TUTORIAL_FAULTS_ASKS = {
    "figure": "Count the blocks of the figure from top to bottom and from left to right. Which axis has that many?",
    "type": "Which line of code would tell you?",
    "replicate": "What do devices hold that differ only along an axis that the spec doesn't name?",
    "equal": "Which line of code would tell you?",
    "nbytes": "Divide all bytes that the devices hold together by those of the array.",
    "in_order": "Number the row blocks from top to bottom. Which one does each device hold if y changes slowest?",
}
tutorial_faults = TableExercise(
    "tutorial_faults", points=3, reference=lambda claim: CLAIMS[claim](), questions=TUTORIAL_FAULTS_ASKS
)
tutorial_faults.rows(CLAIMS, argument="claim")


@tutorial_faults.mistake
def believed_the_code(claim):
    """`P("x", "y")` splits the rows over x, which has four devices. How many row blocks does the figure show, and
    which number is to the right of 0?"""
    return P("x", "y") if claim == "figure" else None


@tutorial_faults.mistake
def saw_one_axis_in_the_figure(claim):
    """Every block of the figure is on a single device, so no axis replicates. Which axes does the spec have to name?"""
    return P("y") if claim == "figure" else None


@tutorial_faults.mistake
def believed_it_is_an_ndarray(claim):
    """`jax.make_mesh` returns an object with axis names, and the NumPy array of devices is one of its attributes,
    `mesh.devices`. What is the type of the object itself?"""
    return "ndarray" if claim == "type" else None


@tutorial_faults.mistake
def cut_along_each_shard(claim):
    """The sentence sounds as if columns were split within a shard. None splits nothing. Devices 0 and 1 differ only
    along y. What does each of them hold?"""
    return "half of a block each" if claim == "replicate" else None


@tutorial_faults.mistake
def took_same_meaning_for_equal(claim):
    """They mean the same, and JAX shards an array the same way. But `==` compares what is written, and
    `sharding.is_equivalent_to(other, ndim)` compares the shardings. What does `==` say?"""
    return True if claim == "equal" else None


@tutorial_faults.mistake
def believed_nbytes(claim):
    """`nbytes` is the size of the array, however it is sharded. What is the sum of `shard.data.nbytes` over
    `addressable_shards`, with eight replicas?"""
    return 1 if claim == "nbytes" else None


@tutorial_faults.mistake
def counted_devices_like_blocks(claim):
    """Device 1 has row block 1 only if y is the *last* axis of the tuple. Here it comes first, so neighboring
    blocks differ along x. Which device is next to device 0 along x?"""
    return 1 if claim == "in_order" else None


@tutorial_faults.mistake
def named_the_block_of_device_1(claim):
    """4 is the block that device 1 holds. The row asks for the device that holds block 1. Where on the 4 × 2 mesh
    is device 4, and which block does it hold?"""
    return 4 if claim == "in_order" else None
