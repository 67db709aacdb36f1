"""§ 1, 3–6, 9, the tables: answered by doing the experiment."""

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
    "len(": "All devices of the mesh hold something of this array, be it a copy. How many are they?",
    "sharded.shape": "The shape of the array is that of the whole.",
    "data.shape": "Which entry of the spec belongs to which dimension, and into how many parts does that axis cut it?",
    "is_fully": "Does every device hold the whole array?",
}
attributes = TableExercise(
    "attributes", points=2, reference=lambda expression: ATTRIBUTES[expression](**_arrays()), questions=ATTRIBUTES_ASKS
)
attributes.rows(ATTRIBUTES, argument="expression")


@attributes.mistake
def counted_blocks_for_devices(expression):
    """There are two *different* blocks. But along x, which the spec does not name, every device has a copy: how
    many devices hold something, and how many shards does the array have?"""
    return 2 if expression in ("len(sharded.devices())", "len(sharded.addressable_shards)") else None


@attributes.mistake
def took_the_block_for_the_array(expression):
    """`sharded` is the whole array: its shape does not depend on its sharding. A *shard* has the shape of a block."""
    return (8, 8) if expression == "sharded.shape" else None


@attributes.mistake
def took_the_array_for_the_block(expression):
    """That is the shape of the whole array. Its rows are cut over y, so device 5 holds only some of them."""
    return SHAPE if expression.endswith(".data.shape") else None


@attributes.mistake
def divided_rows_by_the_devices(expression):
    """So many rows it would be with a cut over all eight devices. `P("y")` names one axis, and y has two devices."""
    return (2, 8) if expression.endswith(".data.shape") else None


@attributes.mistake
def divided_rows_by_the_other_axis(expression):
    """So many rows it would be with a cut over the 4 devices along x. `P("y")` names y: how many devices stand along
    that axis?"""
    return (4, 8) if expression.endswith(".data.shape") else None


@attributes.mistake
def called_some_copies_full(expression):
    """There are copies, but no device holds *all* of the array. Fully replicated means exactly that."""
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
    "": "Take the dimensions one by one: which axes does its entry of the spec name? So many parts has "
    "the picture there, rows downwards and columns to the right, and in a tuple the first axis "
    "counts slowest. Devices that differ along no named axis share a block.",
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
        return f"This picture cuts the rows into {rows_of}, and the columns into {columns_of}. What does the spec say?"
    places = list(zip(itertools.chain(*rows), itertools.chain(*due), strict=True))
    if all(set(found) <= set(wanted) for found, wanted in places):
        return "Whoever stands in this picture is in the right part, but devices are missing. Which hold the same?"
    if right := sorted(device for found, wanted in places for device in wanted if device in found):
        told = numbered("device", right)
        are = "are" if len(right) > 1 else "is"
        return f"The parts are as many as they should be. Only {told} {are} in the right one."
    return "The parts are as many as they should be, and no device is in its own."


@draw_it.mistake
def gave_copies_other_columns(spec):
    """This picture cuts a dimension that the spec leaves whole. Devices that differ only along an axis that is not
    named hold *copies* of one block: several numbers stand in it."""
    return [[0, 1], [2, 3], [4, 5], [6, 7]] if spec == "P(None, 'y')" else None


@draw_it.mistake
def forgot_the_brackets_of_a_row(spec):
    """As it stands, each inner bracket is a *row of blocks*, with one device in each block. Along the axis that the
    spec does not name devices hold copies of one block, so several numbers stand in it. If your brackets were meant as
    blocks, put one more pair around each row of them: a picture is a list of rows, and a row is a list of blocks."""
    return {"P('x')": [[0, 1], [2, 3], [4, 5], [6, 7]], "P(None, 'y')": [[0, 2, 4, 6], [1, 3, 5, 7]]}.get(spec)


@draw_it.mistake
def counted_through_the_picture(spec):
    """The grid of blocks has the right shape, but the devices were numbered along it, row by row. Device 1 differs from
    device 0 along y. Which dimension does y cut here, and so where does device 1 stand?"""
    return [[0, 1, 2, 3], [4, 5, 6, 7]] if spec == "P('y', 'x')" else None


@draw_it.mistake
def ignored_the_order_of_the_entries(spec):
    """That is the picture of `P("x", "y")`. The order of the entries matters: the first belongs to the rows. Over which
    axis are the rows cut here, and how many devices has it?"""
    return [[0, 1], [2, 3], [4, 5], [6, 7]] if spec == "P('y', 'x')" else None


@draw_it.mistake
def cut_the_rows_instead(spec):
    """This picture cuts the rows. The first entry is None, a placeholder: the rows stay whole, and the second entry
    cuts the columns."""
    return {
        "P(None, 'y')": [[[0, 2, 4, 6]], [[1, 3, 5, 7]]],
        "P(None, ('y', 'x'))": [[k] for k in (0, 2, 4, 6, 1, 3, 5, 7)],
    }.get(spec)


@draw_it.mistake
def cut_over_the_axis_not_named(spec):
    """Here the *other* axis cuts. Devices along the axis that is named hold different blocks; devices along the other
    one hold the same. Devices 0 and 1 differ along y: do they hold the same block?"""
    return {"P('x')": [[[0, 2, 4, 6]], [[1, 3, 5, 7]]], "P(None, 'y')": [[[0, 1], [2, 3], [4, 5], [6, 7]]]}.get(spec)


@draw_it.mistake
def cut_each_dimension_once(spec):
    """The tuple stands in *one* place of the spec, so both axes cut the same dimension, into eight parts; the other
    dimension stays whole."""
    return {"P(('x', 'y'))": [[0, 1], [2, 3], [4, 5], [6, 7]], "P(None, ('y', 'x'))": [[0, 2, 4, 6], [1, 3, 5, 7]]}.get(
        spec
    )


@draw_it.mistake
def read_the_tuple_backwards(spec):
    """The blocks are right and stand in another order. The axes of a tuple count like digits: neighbouring blocks
    differ along the *last* axis named."""
    return {"P(('x', 'y'))": [[k] for k in (0, 2, 4, 6, 1, 3, 5, 7)], "P(None, ('y', 'x'))": [list(range(8))]}.get(spec)


@draw_it.mistake
def listed_blocks_by_device(spec):
    """So the *blocks* are, in the order of the devices: device 0 holds block 0, device 1 holds block 4. The picture is
    asked for the other way round, the devices in the order of the blocks: who holds block 1?"""
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
    "on one device": "How many entries has the array, how many bytes does one of this dtype take, and into how many "
    "parts do the axes that the spec names cut it? In which unit is it asked for?",
    "on all": "What one device holds, times the number of all devices: copies count. In which unit is it asked for?",
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
        return f"With so much on a device, {name} would be cut into {int(parts)} parts. How many are there?"
    if "one device" in question and parts == 1:
        return f"That is all of {name}, cut into no parts. Which axes does the spec name?"
    if "all devices" in question and (times := value * unit / whole) in TOLD_PARTS:
        return f"That is {int(times)} times {name}, as if there were so many copies of all of it. How many are there?"
    return ""


@memory.mistake
def counted_one_copy(question):
    """That is the array itself, counted once. Along an axis that the spec does not name every device holds a copy, and
    a copy takes memory."""
    return 256 if "all devices" in question else None


@memory.mistake
def shared_out_among_all(question):
    """So much it would be if all devices shared the array. Only the axes named in the spec cut it."""
    return {"w as P('x'): MiB on one device": 32, "q as P(('x', 'y')): bytes on one device": 8192}.get(question)


@memory.mistake
def cut_over_the_first_axis_only(question):
    """That is as much as with a cut over x alone. Here y is named as well: into how many parts do both axes cut it
    together? And how many bytes does one of its entries take?"""
    return {
        "w as P('x', 'y'): MiB on one device": 64,
        "q as P(('x', 'y')): bytes on one device": 131072,
        "q as P(('x', 'y')): KiB on all devices": 4096,
    }.get(question)


@memory.mistake
def forgot_four_bytes(question):
    """There are as many *entries*, in the same unit. `w` is float32: how many bytes are 32 bits, and so how much memory
    does each of its entries take?"""
    return MEMORY[question]() / 4 if question.startswith("w") else None


@memory.mistake
def took_four_bytes_for_int8(question):
    """So much it would be with four bytes an entry, as float32 or int32 have. What does the 8 in int8 count, and how
    many bytes is that?"""
    return MEMORY[question]() * 4 if question.startswith("q") else None


@memory.mistake
def took_a_megabyte_for_a_mebibyte(question):
    """In megabytes, MB, of a million bytes it would be so much. A mebibyte, MiB, is 1024 · 1024 bytes, and with lengths
    that are powers of two it comes out whole."""
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
    "column blocks, two devices each": lambda held: _extent(held, 0)[0] == (0, 16) and len(_copies(held, 0)) == 2,
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": lambda held: all(_copies(held, k) == [k, k + 1] for k in (0, 2, 4, 6)),
    "even devices: left half, odd devices: right half": _lies_as(P(None, "y")),
    "device 1: rows 8 and 9, whole": lambda held: _extent(held, 1) == ((8, 10), (0, 8)),
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
        raise ValueError("a text is no spec")
    return NamedSharding(make_mesh(MESH), P(*given)).spec


choose_spec = TableExercise("choose_spec", points=4, reference=_fitting, same=_as_good)
choose_spec.rows(CARDS, argument="card")


@choose_spec.mistake
def named_the_other_axis(card):
    """Here the other axis cuts. Along the axis that a spec names devices hold *different* blocks; along the other they
    hold the same. Devices 0 and 1 differ along y, devices 0 and 2 along x."""
    return {
        "column blocks, two devices each": P(None, "y"),
        "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("y"),
        "even devices: left half, odd devices: right half": P(None, "x"),
    }.get(card)


@choose_spec.mistake
def cut_the_other_dimension(card):
    """The right axis, in the wrong place: the first entry of a spec cuts the rows, the second the columns."""
    return {
        "two whole rows each": P(None, ("x", "y")),
        "column blocks, two devices each": P("x"),
        "even devices: left half, odd devices: right half": P("y"),
        "picture": P(("y", "x")),
    }.get(card)


@choose_spec.mistake
def left_an_axis_out(card):
    """One axis more has to cut. Count what a device holds under your spec: it is more than the card allows, and there
    are copies."""
    return {"two whole rows each": P("x")}.get(card)


@choose_spec.mistake
def cut_both_dimensions(card):
    """Your spec cuts rows *and* columns, one axis each. If one dimension shall stay whole and there are no copies, both
    axes have to cut the other one."""
    return {
        "two whole rows each": P("x", "y"),
        "device 1: rows 8 and 9, whole": P("x", "y"),
        "picture": P("x", "y"),
    }.get(card)


@choose_spec.mistake
def took_the_usual_order(card):
    """Both axes cut the right dimension, in the other order: under this spec device 1 holds the block next to that of
    device 0. On the card it is half an array away. Which of the axes has to be the slow one?"""
    return {"device 1: rows 8 and 9, whole": P(("x", "y")), "picture": P(None, ("x", "y"))}.get(card)


@choose_spec.mistake
def cut_what_should_be_copied(card):
    """No two devices hold the same under your spec: both axes are named. An axis along which you want copies must not
    stand in it."""
    return {
        "column blocks, two devices each": P(None, ("x", "y")),
        "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x", "y"),
    }.get(card)


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
    "fine": "It is fine where there are devices enough, every name is an axis of the mesh, none stands twice, there "
    "are no more entries than dimensions, and everything divides. Which of these does not hold?",
    "axis used twice": "So it is where one axis stands twice in a spec. Does any stand there twice?",
    "unknown axis": "So it is where a spec names an axis that the mesh lacks. Which of these names would it be?",
    "too many entries": "So it is where a spec has more entries than the array has dimensions; a tuple is one "
    "entry. Count both.",
    "does not divide": "So it is where a length is no multiple of the devices that cut it. Which length, and by how "
    "many?",
    "too few devices": "So it is where a mesh asks for more devices than there are. How many are asked for here?",
}
legal_or_not = TableExercise("legal_or_not", points=3, reference=_outcome, options=STANDS_FOR)
legal_or_not.rows(ATTEMPTS, argument="attempt")


def _believed(attempt: str, reason: str, belief: str = FINE) -> str | None:
    return belief if _outcome(attempt) == reason else None


@legal_or_not.mistake
def thought_rows_are_padded(attempt):
    """A dimension has to divide evenly among the devices that cut it. JAX neither pads the last block nor makes it
    smaller: it refuses. Into how many parts would this spec cut it?"""
    return _believed(attempt, "does not divide")


@legal_or_not.mistake
def thought_twice_means_copies(attempt):
    """An axis that stands twice does not replicate. Each device would need two numbers for its place along one axis,
    so JAX refuses: a mesh axis may stand once in a spec."""
    return _believed(attempt, "axis used twice")


@legal_or_not.mistake
def thought_extra_entries_are_ignored(attempt):
    """A spec may have fewer entries than the array has dimensions, but not more. Here the second entry belongs to no
    dimension, be it a name or None."""
    return _believed(attempt, "too many entries")


@legal_or_not.mistake
def thought_unknown_axes_are_ignored(attempt):
    """The spec names an axis that this mesh does not have. JAX does not pass over it. Which names are in
    `mesh.axis_names`?"""
    return _believed(attempt, "unknown axis")


@legal_or_not.mistake
def thought_devices_can_be_shared(attempt):
    """Every place of a mesh needs a device of its own. How many places has this one, and how many devices are there?"""
    return _believed(attempt, "too few devices")


@legal_or_not.mistake
def divided_by_all_the_devices(attempt):
    """The length need not divide by eight, only by the size of the axes that cut *this* dimension. Check each dimension
    against its own entry."""
    return {
        "(10, 8) as P('y', 'x')": "does not divide",
    }.get(attempt)


@legal_or_not.mistake
def wanted_one_axis_per_dimension(attempt):
    """Here every axis stands once in the spec, in one tuple or apart: that is allowed. Is there another reason to
    refuse?"""
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
    "figure": "Count the blocks of the figure from top to bottom, and from left to right. Which axis has as "
    "many devices?",
    "type": "One line of code asks it.",
    "replicate": "Which devices hold the same, along an axis that the spec does not name?",
    "equal": "One line of code asks it.",
    "nbytes": "All bytes that the devices hold together, over those of the array counted once.",
    "in_order": "Number the blocks of the whole array row by row. Which one has this device, if y counts slowest?",
}
tutorial_faults = TableExercise(
    "tutorial_faults", points=3, reference=lambda claim: CLAIMS[claim](), questions=TUTORIAL_FAULTS_ASKS
)
tutorial_faults.rows(CLAIMS, argument="claim")


@tutorial_faults.mistake
def believed_the_code(claim):
    """`P("x", "y")` cuts the rows over x, which has four devices. How many row blocks does the figure show, and which
    number follows 0 to the right?"""
    return P("x", "y") if claim == "figure" else None


@tutorial_faults.mistake
def saw_one_axis_in_the_figure(claim):
    """Every block of the figure belongs to one device alone, so no axis gives copies: both are named in the spec."""
    return P("y") if claim == "figure" else None


@tutorial_faults.mistake
def believed_it_is_an_ndarray(claim):
    """`jax.make_mesh` returns an object with axis names. The NumPy array of devices is one of its attributes,
    `mesh.devices`."""
    return "ndarray" if claim == "type" else None


@tutorial_faults.mistake
def cut_along_each_shard(claim):
    """The sentence sounds as if columns were dealt out within a shard. None cuts nothing: look at what devices 0 and 1
    hold, which differ only along y."""
    return "half of a block each" if claim == "replicate" else None


@tutorial_faults.mistake
def took_same_meaning_for_equal(claim):
    """They mean the same, and JAX lays an array out the same way. But `==` compares what is written. To ask about the
    layout there is `sharding.is_equivalent_to(other, ndim)`."""
    return True if claim == "equal" else None


@tutorial_faults.mistake
def believed_nbytes(claim):
    """`nbytes` is that of the array, however it is laid out. Add up `shard.data.nbytes` over `addressable_shards`: what
    do eight copies take?"""
    return 1 if claim == "nbytes" else None


@tutorial_faults.mistake
def counted_devices_like_blocks(claim):
    """Device 1 has row block 1 only if y is the *last* axis of the tuple. Here it comes first, so neighbouring blocks
    differ along x. Which device stands beside device 0 along x?"""
    return 1 if claim == "in_order" else None


@tutorial_faults.mistake
def named_the_block_of_device_1(claim):
    """4 is the number of the block that device 1 holds. Asked for is the device that holds block 1. Where on the 4 × 2
    mesh does device 4 stand, and which block has it there?"""
    return 4 if claim == "in_order" else None
