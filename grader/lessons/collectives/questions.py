"""§ 4, 6–7, 9–10, 14, the tables: judged by running the collectives and by reading their programs."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import aval, make_mesh, put
from grader.arrays.words import enumeration, numbered
from grader.exercises import TableExercise
from grader.lessons.shared import COLLECTIVES, believed
from grader.programs.buffers import Puzzle, after, named, over, puzzle, ran
from grader.programs.program import trace
from grader.programs.walk import structure

LINE, GRID, MESH = {"x": 4}, {"x": 2, "y": 2}, {"x": 4, "y": 2}

# What device 2 holds after a collective. Four devices with four numbers each.

NUMBERS = ((3, 9, 5, 2), (6, 6, 3, 5), (8, 1, 4, 6), (5, 4, 2, 3))
AFTER = {
    "all_gather": lambda x: lax.all_gather(x, "x", tiled=True),
    "psum": lambda x: lax.psum(x, "x"),
    "psum_scatter": lambda x: lax.psum_scatter(x, "x", tiled=True),
}


def _after(collective):
    """Run the collective on four devices; what device 2 holds, as a list."""
    mesh = make_mesh(LINE)
    program = jax.shard_map(AFTER[collective], mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    numbers = put(jnp.array(NUMBERS).reshape(-1), P("x"), mesh)
    return np.split(np.asarray(jax.jit(program)(numbers)), 4)[2].tolist()


AFTER_COLLECTIVE_ASKS = {
    "gather": "An all_gather adds nothing. It brings each device the blocks of all of them, in their order.",
    "scatter": "Add the blocks up, place by place; each device keeps one part of these sums. Which part is device 2's?",
    "psum": "Add the blocks up, place by place. Each device has all of these sums.",
}
after_collective = TableExercise("after_collective", points=2, reference=_after, questions=AFTER_COLLECTIVE_ASKS)
after_collective.rows(AFTER, LINE, argument="collective")


@after_collective.stands_for
def _what_it_is(value, collective):
    """What an answer would be: numbers of one device, or what else comes of all of them."""
    found = list(np.ravel(value)) if isinstance(value, (list, tuple, int, float)) else []
    if not all(isinstance(one, (int, float, np.number)) for one in found):
        return ""
    for device, numbers in enumerate(NUMBERS):
        if found == list(numbers):
            return f"Those are the numbers that device {device} had before. What does the collective do with them?"
    sums, rows = np.sum(NUMBERS, axis=0), np.sum(NUMBERS, axis=1)
    made = {
        "the sums of each device's own numbers": rows.tolist(),
        "the largest of each place": np.max(NUMBERS, axis=0).tolist(),
        "the means of each place": np.mean(NUMBERS, axis=0).tolist(),
        "the sum of all sixteen numbers": [int(sums.sum())],
        "the third number of each device": [row[2] for row in NUMBERS],
        "the sums of the places but the last": sums[:-1].tolist(),
        **{f"the sum of place {k}, counted from 0": [int(n)] for k, n in enumerate(sums)},
        **{f"the sum of device {k}'s own numbers": [int(n)] for k, n in enumerate(rows)},
        **{f"number {k} of device 2, alone": [n] for k, n in enumerate(NUMBERS[2])},
    }
    words = next((words for words, numbers in made.items() if found == numbers), "")
    return f"{'Those are' if len(found) > 1 else 'That is'} {words}. {_asked(collective)}" if words else ""


def _asked(collective):
    return after_collective.question(collective)


@after_collective.mistake
def nothing_happened(collective):
    """That is what device 2 had before. Every one of these collectives brings it something of the others."""
    return list(NUMBERS[2])


@after_collective.mistake
def added_its_own(collective):
    """That is the sum of the four numbers of device 2. A collective adds *across* devices: the first number of each,
    then the second of each."""
    return [sum(NUMBERS[2])]


@after_collective.mistake
def summed_for_all(collective):
    """Those are the sums across the devices, all four of them. After this collective device 2 holds something
    else: are the numbers added at all, and if so, who keeps which?"""
    return np.sum(NUMBERS, axis=0).tolist()


@after_collective.mistake
def gathered_for_all(collective):
    """That is everything from everybody, side by side: what an all_gather gives. A sum adds numbers that stand
    in the same place."""
    return list(itertools.chain(*NUMBERS))


@after_collective.mistake
def kept_a_share(collective):
    """Device 2 keeps one number of the sums only after a psum_scatter."""
    return [int(np.sum(NUMBERS, axis=0)[2])]


@after_collective.mistake
def share_of_another_device(collective):
    """That share of the sums belongs to another device. Devices count from 0, so device 2 keeps the third."""
    return [int(np.sum(NUMBERS, axis=0)[1])] if collective == "psum_scatter" else None


# The shape of what one device holds after a collective. Its block is float32[4, 6], the mesh 4 × 2.

BLOCK = (4, 6)
SHAPED = {
    "all_gather over x, axis=0, tiled": lambda b: lax.all_gather(b, "x", axis=0, tiled=True),
    "all_gather over y": lambda b: lax.all_gather(b, "y"),
    "all_gather over (x, y), axis=0, tiled": lambda b: lax.all_gather(b, ("x", "y"), axis=0, tiled=True),
    "psum over x": lambda b: lax.psum(b, "x"),
    "psum_scatter over x, tiled": lambda b: lax.psum_scatter(b, "x", tiled=True),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": lambda b: lax.all_to_all(b, "y", 1, 0, tiled=True),
}


@functools.cache
def _shape_after(collective):
    block = np.zeros(BLOCK, np.float32)
    return after(SHAPED[collective], [block] * 8, MESH)[0].shape


RESULT_SHAPES_ASKS = {
    "gather": "How many blocks are joined: how many devices are there along these axes? Joined along the "
    "dimension `axis`, if tiled, else stacked along a new one.",
    "psum over": "A sum of blocks, entry by entry, over the devices along x.",
    "scatter": "The sum has the shape of a block. Each device keeps one part of it: into how many is dimension 0 cut?",
    "to_all": "The block is cut along `split_axis` into as many parts as there are devices, and what arrives "
    "is joined along `concat_axis`.",
}
result_shapes = TableExercise("result_shapes", points=2, reference=_shape_after, questions=RESULT_SHAPES_ASKS)
result_shapes.rows(SHAPED, MESH, argument="collective")


@result_shapes.mistake
def left_as_it_was(collective):
    """That is the block before. A psum and a ppermute leave the shape alone; this collective brings blocks, or parts of
    them, together, or leaves less of one."""
    return None if _shape_after(collective) == BLOCK else BLOCK


@result_shapes.mistake
def joined_though_untiled(collective):
    """So it would be with `tiled=True`. Without it the blocks are *stacked*: a new dimension, as long as there are
    devices along the axis, stands where `axis` says."""
    return {"all_gather over y": (8, 6)}.get(collective)


@result_shapes.mistake
def stacked_though_tiled(collective):
    """So it would be without `tiled=True`. Tiled, the blocks are joined along a dimension that is already there:
    that one grows, and no new one appears."""
    return {
        "all_gather over x, axis=0, tiled": (4, 4, 6),
        "all_gather over (x, y), axis=0, tiled": (8, 4, 6),
    }.get(collective)


@result_shapes.mistake
def joined_along_the_other_dimension(collective):
    """The blocks were joined along the other dimension. `axis` counts from 0: which one does it name here?"""
    return {"all_gather over x, axis=0, tiled": (4, 24)}.get(collective)


@result_shapes.mistake
def gathered_one_axis_only(collective):
    """That many devices are along one axis. Over both axes all eight take part."""
    return (16, 6) if collective == "all_gather over (x, y), axis=0, tiled" else None


@result_shapes.mistake
def lost_the_scattered_dimension(collective):
    """With `tiled=True` the scattered dimension stays, also when a share is one long."""
    return (6,) if collective == "psum_scatter over x, tiled" else None


@result_shapes.mistake
def exchanged_the_other_way(collective):
    """A device splits its block along split_axis and joins what arrives along concat_axis: which dimension
    shrinks, and which grows?"""
    return (2, 12) if collective.startswith("all_to_all") else None


# Which collective turned these blocks into those? Six puzzles, their numbers drawn once.

KEYS = {
    "A": ("all_gather tiled", LINE, 2, "x"),
    "B": ("psum", LINE, 4, "x"),
    "C": ("ppermute -1", LINE, 3, "x"),
    "D": ("psum_scatter", LINE, 4, "x"),
    "E": ("all_to_all", LINE, 4, "x"),
    "F": ("pmean", GRID, 3, "x"),
}


@functools.cache
def _puzzles() -> dict[str, Puzzle]:
    return {
        key: puzzle(np.random.default_rng(ord(key)), mesh, length, name, axis)
        for key, (name, mesh, length, axis) in KEYS.items()
    }


def puzzles(keys: str) -> dict[str, tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]]:
    """The blocks before and after, by key: what a picture of the puzzles shows."""
    return {key: (_puzzles()[key].before, _puzzles()[key].after) for key in keys}


def _answer(key):
    """The collective's name; on the grid with its axis."""
    name, mesh, _, axis = KEYS[key]
    return name if mesh is LINE else f"{name} over {axis}"


def _as_named(name: str) -> list[str]:
    """The ways in which the table writes a collective."""
    details = {"all_gather": ["", " tiled"], "ppermute": [" +1", " -1"]}.get(name, [""])
    return [f"{name}{detail}{over}" for detail in details for over in ("", " over x", " over y")]


which_collective = TableExercise(
    "which_collective",
    points=4,
    reference=_answer,
    options={written: words for name, words in COLLECTIVES.items() for written in _as_named(name)},
)
which_collective.rows(KEYS, argument="key")


def _taken(key, right, wrong):
    """`wrong` in place of `right` in the name, where the answer has it."""
    name, _, over_axis = _answer(key).partition(" over ")
    return f"{wrong}{' over ' * bool(over_axis)}{over_axis}" if name == right else None


@which_collective.mistake
def forgot_that_it_is_dealt_out(key):
    """After a psum *every* device holds *all* the sums. Here each holds a share of them, another on each."""
    return _taken(key, "psum_scatter", "psum")


@which_collective.mistake
def dealt_out_though_whole(key):
    """After a psum_scatter each device holds a share of the sums. Here every device holds all of them."""
    return _taken(key, "psum", "psum_scatter")


@which_collective.mistake
def took_joined_for_stacked(key):
    """The numbers are those of an all_gather. But they stand in one row: the blocks were joined, not stacked."""
    return _taken(key, "all_gather tiled", "all_gather")


@which_collective.mistake
def shifted_the_other_way(key):
    """`ppermute +1` sends each block to the device with the *next* number. Whose block does device 1 hold now?"""
    return _taken(key, "ppermute -1", "ppermute +1")


@which_collective.mistake
def gave_no_direction(key):
    """`ppermute` alone is none of the words to choose from. Write `ppermute +1` or `ppermute -1`, if you mean that
    every block went on to a neighbour."""
    return "ppermute"


@which_collective.mistake
def named_no_axis(key):
    """This mesh has two axes, and a collective runs over one of them. Write over which, as in `psum over x`."""
    name, mesh, _, _ = KEYS[key]
    return name if mesh is GRID else None


@which_collective.mistake
def averaged_for_added(key):
    """A pmean divides the sums by the number of devices. Add up the first numbers of all devices:
    does that sum stand there now, or a part of it?"""
    return _taken(key, "psum", "pmean")


@which_collective.mistake
def stacked_for_exchanged(key):
    """After an all_gather every device holds *all* the blocks. Here each holds one piece of every block, and so as
    many numbers as before."""
    return {"E": "all_gather"}.get(key)


@which_collective.mistake
def saw_a_broadcast(key):
    """A broadcast would bring one device's block to all. Look at more than one device, before and after: whose numbers
    are there?"""
    return "broadcast"


@which_collective.mistake
def saw_a_reduction_to_one(key):
    """A reduce, as MPI has it, leaves its result on one device only. In JAX all devices of the group get theirs:
    what does each of them hold here?"""
    return "reduce"


@which_collective.mistake
def summed_over_the_other_axis(key):
    """The axis is the other one. On this 2 × 2 mesh devices 0 and 1 differ along y, devices 0 and 2 along x: which
    of them share their numbers here?"""
    name, mesh, _, axis = KEYS[key]
    return f"{name} over {'y' if axis == 'x' else 'x'}" if mesh is GRID else None


@which_collective.mistake
def added_for_averaged(key):
    """The sums across devices are larger than this. By what were they divided?"""
    return _taken(key, "pmean", "psum")


@which_collective.mistake
def gathered_for_exchanged(key):
    """After an all_gather all devices hold the same, and more than before. Here each holds as much as before, and
    something else than the others: one piece from each."""
    return {"E": "all_gather tiled"}.get(key)


@which_collective.mistake
def passed_on_for_exchanged(key):
    """A ppermute passes whole blocks on. Here each device holds one piece of *every* block."""
    return {"E": "ppermute +1"}.get(key)


# Who takes part: over which axis, with whom. The mesh is 4 × 2.

PARTNERS = {
    "psum over x": lambda b: lax.psum(b, "x"),
    "psum over y": lambda b: lax.psum(b, "y"),
    "psum over (x, y)": lambda b: lax.psum(b, ("x", "y")),
    "ppermute +1 over x": lambda b: over("ppermute +1")(b),
    "ppermute +1 over y": lambda b: over("ppermute +1", "y")(b),
    "axis_index over x": lambda b: lax.axis_index("x"),
}


@functools.cache
def _whose(collective):
    """The devices that the first number of device 5 depends on afterwards."""
    numbers = np.arange(1, 9).reshape(8, 1)
    step = ran(PARTNERS[collective], list(numbers), MESH)
    return np.flatnonzero(step.sources[5].reshape(8, -1)[:, 0]).tolist()


PARTNERS_ASKS = {
    "psum": "In which row and which column of the mesh is device 5? A sum over an axis takes in all devices "
    "that differ along this axis only, itself too.",
    "ppermute": "Where is device 5 along this axis? From whom does it receive, if each sends to the next one?",
    "index": "Does axis_index look at any block?",
}


PARTNERS_ASKED = {
    "psum": "Along which axes do the blocks that it adds up differ?",
    "ppermute": "Which of its neighbours along the axis sends to it, if each sends to the next one?",
    "axis_index": "Does axis_index look at any block?",
}


def _same_devices(one, other, collective):
    """Whether the same devices are listed, in whatever order."""
    return sorted(one) == sorted(other)


partners = TableExercise("partners", points=2, reference=_whose, questions=PARTNERS_ASKS, same=_same_devices)
partners.rows(PARTNERS, MESH, argument="collective")


@partners.stands_for
def _along_what(value, collective):
    """Along which axes the devices of an answer differ from device 5."""
    if not isinstance(value, (list, tuple)) or not value or not all(type(d) is int and 0 <= d < 8 for d in value):
        return ""
    groups = {"along x alone": [], "along y alone": [], "along both axes": []}
    for d in sorted({*value} - {5}):
        x, y = d // MESH["y"] != 5 // MESH["y"], d % MESH["y"] != 5 % MESH["y"]
        groups["along both axes" if x and y else "along x alone" if x else "along y alone"].append(d)
    told = [f"{numbered('device', some)} {along}" for along, some in groups.items() if some]
    if not told:
        return ""
    differ = (
        f"Device 5 is at x=2, y=1; from it {enumeration(told)} {'differ' if len({*value} - {5}) > 1 else 'differs'}."
    )
    return f"{differ} {PARTNERS_ASKED[collective.split()[0]]}"


@partners.mistake
def took_the_other_axis(collective):
    """Those devices differ from device 5 along the *other* axis. Its place is (x=2, y=1): a collective over x keeps
    y = 1 and runs through all x."""
    return {
        "psum over x": [4, 5],
        "psum over y": [1, 3, 5, 7],
        "ppermute +1 over x": [4],
        "ppermute +1 over y": [3],
    }.get(collective)


@partners.mistake
def counted_in_a_row(collective):
    """Devices are counted row by row through the mesh, so neighbours in number are neighbours along *y*. By how much
    does a device's number change with one step along x?"""
    return [4, 5, 6, 7] if collective == "psum over x" else None


@partners.mistake
def let_everyone_take_part(collective):
    """All eight take part only when both axes are named. Over one axis there are several groups, each for itself:
    who is in that of device 5?"""
    return list(range(8)) if collective in ("psum over x", "psum over y") else None


@partners.mistake
def left_itself_out(collective):
    """A device takes part in its own sum: its block is one of those that are added. Is it in your list?"""
    return [d for d in _whose(collective) if d != 5] if collective.startswith("psum") else None


@partners.mistake
def named_the_receiver(collective):
    """That is the device to which device 5 *sends*. Whose number does it hold afterwards?"""
    return [7] if collective == "ppermute +1 over x" else None


@partners.mistake
def shared_its_number(collective):
    """A device knows its own place without asking anybody: that number is made of nobody's block."""
    return [5] if collective == "axis_index over x" else None


# What each device sends: a block of 8 float32 on each of 4 devices along x.

SENT = {
    "all_gather": lambda b: lax.all_gather(b, "x", tiled=True),
    "psum": lambda b: lax.psum(b, "x"),
    "psum_scatter": lambda b: lax.psum_scatter(b, "x", tiled=True),
    "all_to_all": lambda b: lax.all_to_all(b, "x", 0, 0, tiled=True),
    "ppermute +1": over("ppermute +1"),
    "axis_index": lambda b: b + lax.axis_index("x"),
}


@functools.cache
def _bytes_of(collective):
    """Trace the collective and count what its program sends per device."""
    mesh = make_mesh(LINE)
    program = jax.shard_map(SENT[collective], mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    return structure(trace(program, aval((32,), jnp.float32, P("x"), mesh))).bytes_sent


BLOCK_BYTES_SENT_ASKS = {
    "gather": "How many blocks does a device send on, until each of the others has all of them? And how many "
    "bytes has a block?",
    "scatter": "A device sends parts of its block, each a quarter. How many of the four has it to send, if one "
    "is its own?",
    "psum": "A psum on a ring is a psum_scatter and an all_gather of what that leaves. What does each of them send?",
    "to_all": "A device sends each of the others one part of its block. How large is a part, and how many are sent?",
    "ppermute": "How many blocks does a device send, and how many bytes has one?",
    "index": "Does a device need anything of another to know its own place?",
}
block_bytes_sent = TableExercise("block_bytes_sent", points=2, reference=_bytes_of, questions=BLOCK_BYTES_SENT_ASKS)
block_bytes_sent.rows(SENT, LINE, argument="collective")


@block_bytes_sent.mistake
def counted_numbers(collective):
    """So many *numbers* are sent. How many bytes does a float32 take?"""
    return _bytes_of(collective) // 4 or None


@block_bytes_sent.mistake
def sent_to_itself(collective):
    """A device need not send anything to itself: of n pieces, n - 1 travel."""
    return {"all_gather": 128, "psum": 64, "psum_scatter": 32, "all_to_all": 32}.get(collective)


@block_bytes_sent.mistake
def passed_nothing_on(collective):
    """That is one block, sent once. On a ring a device sends something in every step: in how many, and how large a
    piece in each?"""
    return believed(collective, 32, "all_gather", "psum")


@block_bytes_sent.mistake
def stopped_half_way(collective):
    """That is a psum_scatter. A psum is one, and an all_gather of the shares after it."""
    return believed(collective, 24, "psum")


@block_bytes_sent.mistake
def went_all_the_way(collective):
    """That is what a psum sends: there and back, a quarter of the block in each of six steps. How many steps are there
    here, and what does a device send in one?"""
    return believed(collective, 48, "psum_scatter", "all_to_all", "all_gather")


@block_bytes_sent.mistake
def scaled_the_shift(collective):
    """That is what leaves a device when the pieces of its block go to different places. A shift sends the whole block
    to one place, however many devices there are."""
    return believed(collective, 24, "ppermute +1")


@block_bytes_sent.mistake
def asked_around(collective):
    """Each device knows its own number from the start. Whom would it have to ask, and what would travel?"""
    return believed(collective, 4, "axis_index")


# Transposed pairs: what jax sends when a collective is run backwards.

BACKWARDS = {
    "all_gather": (lambda b: lax.all_gather(b, "x", tiled=True), P("x")),
    "psum_scatter": (lambda b: lax.psum_scatter(b, "x", tiled=True), P("x")),
    "all_to_all": (lambda b: lax.all_to_all(b, "x", 0, 0, tiled=True), P("x")),
    "ppermute": (over("ppermute +1"), P("x")),
    "psum": (lambda b: lax.psum(b, "x"), P()),
}
IN_JAX = {
    "all_gather": "all_gather",
    "reduce_scatter": "psum_scatter",
    "all_to_all": "all_to_all",
    "collective_permute": "ppermute",
    "all_reduce": "psum",
}


@functools.cache
def _transposed(collective):
    """Transpose the collective with JAX, and read what the program sends."""
    body, out = BACKWARDS[collective]
    mesh = make_mesh(LINE)
    forwards = jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=out)
    x = aval((16,), jnp.float32, P("x"), mesh)
    result = jax.eval_shape(forwards, x)
    sent = structure(
        trace(lambda ct: jax.linear_transpose(forwards, x)(ct)[0], aval(result.shape, jnp.float32, out, mesh))
    ).collectives
    return IN_JAX[sent[0].kind] if sent else "nothing"


BACK = {  # of what was chosen for the way back
    "all_gather": "An all_gather on the way back gives every device the cotangents of all. Do all of them belong to "
    "numbers that this device sent?",
    "psum_scatter": "A psum_scatter on the way back adds up cotangents, and leaves each device a part of the sum. "
    "Did each number come to all devices on the way forward?",
    "psum": "A psum on the way back adds up the cotangents of all devices. On the way forward, did each number come "
    "to all of them, in the same place?",
    "all_to_all": "An all_to_all on the way back gives each piece to another device. On the way forward, were "
    "pieces dealt out to all devices?",
    "ppermute": "A ppermute on the way back sends each cotangent to a single device. On the way forward, did each "
    "number go to one device alone?",
    "nothing": "With nothing on the way back, each device keeps the cotangent that it has. On the way forward, did "
    "the numbers stay where they were?",
}
transposed_pair = TableExercise("transposed_pair", points=2, reference=_transposed, options=BACK)
transposed_pair.rows(BACKWARDS, LINE, argument="collective")


@transposed_pair.mistake
def thought_it_its_own_transpose(collective):
    """Write it as a matrix, as the text above does: is that matrix symmetric? Rows that repeat become columns that
    repeat, and what was copied forwards is added up backwards."""
    return collective if collective in ("all_gather", "psum_scatter") else None


@transposed_pair.mistake
def summed_backwards_too(collective):
    """So it was in older JAX. With shard_map's check on, JAX knows that all devices hold the *same* sum; backwards
    the same number then arrives on all of them, and each uses its copy."""
    return believed(collective, "psum", "psum")


@transposed_pair.mistake
def took_inverse_for_transpose(collective):
    """That would undo it: to keep one's own block is an inverse. Transposed, what went out to n places comes back from
    n places, and is added up."""
    return believed(collective, "nothing", "all_gather")


@transposed_pair.mistake
def copied_for_summed(collective):
    """What is copied forwards is added up backwards, and what is added up is copied. Which part of that does a device
    need, and has it that already?"""
    return {"all_gather": "psum", "psum_scatter": "psum", "psum": "all_gather"}.get(collective)


@transposed_pair.mistake
def expected_another_kind(collective):
    """Every piece goes to exactly one place, so backwards each comes straight back: the same kind of exchange, its
    directions reversed."""
    return believed(collective, "nothing", "all_to_all", "ppermute")


# Choosing: what each situation makes of sample blocks, in NumPy, and the collective that does the same.


def _copies(whole):
    return [whole] * LINE["x"]


def _everything(blocks):
    return _copies(np.concatenate(blocks))


def _shares(blocks):
    return np.split(np.sum(blocks, axis=0), len(blocks))


def _pieces(blocks):
    return [np.concatenate(p) for p in zip(*(np.split(b, len(blocks)) for b in blocks), strict=True)]


SITUATIONS = {
    "weights": _everything,
    "gradient": lambda b: _copies(np.sum(b, axis=0)),
    "shares": _shares,
    "tokens": _pieces,
    "neighbour": lambda b: list(np.roll(b, 1, axis=0)),
    "largest": lambda b: _copies(np.max(b, axis=0)),
}


@functools.cache
def _chosen(situation):
    """The collective that turns sample blocks into those wanted, without the details of its name."""
    before = list(np.random.default_rng(1).permutation(np.arange(1, 100))[:16].reshape(4, 4))
    (name,) = named(before, SITUATIONS[situation](before))
    return name.split()[0]


choose_collective = TableExercise("choose_collective", points=3, reference=_chosen, options=COLLECTIVES)
choose_collective.rows(SITUATIONS, argument="situation")


def _instead(situation, right, wrong):
    return wrong if _chosen(situation) == right else None


@choose_collective.mistake
def gathered_to_exchange(situation):
    """It would do, and every device would receive everything to keep one part of it: n times as many bytes. Each
    device has one piece *for each other one*."""
    return _instead(situation, "all_to_all", "all_gather")


@choose_collective.mistake
def summed_to_share(situation):
    """It would do, and send twice as much: every device would receive all the sums to use its share of them."""
    return _instead(situation, "psum_scatter", "psum")


@choose_collective.mistake
def scattered_to_gather(situation):
    """There is nothing to add up: the rows are different rows. They only have to get to everybody."""
    return _instead(situation, "all_gather", "psum_scatter")


@choose_collective.mistake
def gathered_to_sum(situation):
    """It would do, followed by a sum on every device. One collective adds on the way, and sends less on more than
    two devices."""
    return _instead(situation, "psum", "all_gather")


@choose_collective.mistake
def gathered_for_a_neighbour(situation):
    """It would do, and every device would receive the blocks of all to use one of them. Only a neighbour's block is
    needed: who sends to whom can be said in pairs."""
    return _instead(situation, "ppermute", "all_gather")


@choose_collective.mistake
def gathered_to_compare(situation):
    """It would do, followed by a maximum on every device. One collective compares on the way: which?"""
    return _instead(situation, "pmax", "all_gather")


@choose_collective.mistake
def averaged_to_sum(situation):
    """A pmean divides by the number of devices. The gradients are to be added up: which collective adds, and leaves it
    at that?"""
    return _instead(situation, "psum", "pmean")


@choose_collective.mistake
def passed_on_to_exchange(situation):
    """A ppermute sends *one* whole block to *one* device. Here each device has something for every other one."""
    return _instead(situation, "all_to_all", "ppermute")


@choose_collective.mistake
def exchanged_with_a_neighbour(situation):
    """Only one neighbour's block is needed, not a piece from everybody: who sends to whom can be said in pairs."""
    return _instead(situation, "ppermute", "all_to_all")


@choose_collective.mistake
def summed_to_compare(situation):
    """The largest of several numbers is not their sum. Which collective compares across devices?"""
    return _instead(situation, "pmax", "psum")
