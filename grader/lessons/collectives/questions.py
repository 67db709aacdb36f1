"""§ 5, 10, 12, the tables: checked by running the collectives and by reading their programs."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import aval, make_mesh
from grader.arrays.words import enumeration, numbered
from grader.exercises import TableExercise
from grader.lessons.shared import COLLECTIVES, believed
from grader.programs.buffers import Puzzle, named, over, puzzle, ran
from grader.programs.program import trace
from grader.programs.walk import structure

LINE, GRID, MESH = {"x": 4}, {"x": 2, "y": 2}, {"x": 4, "y": 2}

# Which collective is between these blocks? Six puzzles, their numbers drawn once.

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
    """After a psum, *every* device holds *all* of the sums. Here each device holds a different part of them. Which
    collective splits the sums?"""
    return _taken(key, "psum_scatter", "psum")


@which_collective.mistake
def dealt_out_though_whole(key):
    """After a psum_scatter, each device holds a part of the sums. Here every device holds all of them. Which
    collective gives all devices all of the sums?"""
    return _taken(key, "psum", "psum_scatter")


@which_collective.mistake
def took_joined_for_stacked(key):
    """The numbers are those of an all_gather. But they are in one row. Were the blocks concatenated or stacked?"""
    return _taken(key, "all_gather tiled", "all_gather")


@which_collective.mistake
def shifted_the_other_way(key):
    """`ppermute +1` sends each block to the device with the *next* number. Whose block does device 1 hold now?"""
    return _taken(key, "ppermute -1", "ppermute +1")


@which_collective.mistake
def gave_no_direction(key):
    """`ppermute` alone isn't one of the options. Write `ppermute +1` or `ppermute -1` if every block moved by one
    device. Whose block does device 1 hold now?"""
    return "ppermute"


@which_collective.mistake
def named_no_axis(key):
    """The mesh of this puzzle has two axes, and the answer doesn't say which one the collective runs over, as in `psum
    over x`. Which devices share their numbers here?"""
    name, mesh, _, _ = KEYS[key]
    return name if mesh is GRID else None


@which_collective.mistake
def averaged_for_added(key):
    """A pmean divides the sums by the number of devices. Is the first number here the sum of the first numbers of all
    devices, or a part of that sum?"""
    return _taken(key, "psum", "pmean")


@which_collective.mistake
def stacked_for_exchanged(key):
    """After an all_gather, every device holds *all* blocks. Here each device holds as many numbers as before. Which
    piece of every block does it hold?"""
    return {"E": "all_gather"}.get(key)


@which_collective.mistake
def saw_a_broadcast(key):
    """A broadcast copies one device's block to all devices. Does more than one device's data appear afterward?"""
    return "broadcast"


@which_collective.mistake
def saw_a_reduction_to_one(key):
    """A reduce, as in MPI, leaves its result on one device. In JAX, all devices of the group get a result. What does
    each of them hold here?"""
    return "reduce"


@which_collective.mistake
def summed_over_the_other_axis(key):
    """It is the other axis. On this 2 × 2 mesh, devices 0 and 1 differ along y, and devices 0 and 2 along x. Which of
    them share their numbers here?"""
    name, mesh, _, axis = KEYS[key]
    return f"{name} over {'y' if axis == 'x' else 'x'}" if mesh is GRID else None


@which_collective.mistake
def added_for_averaged(key):
    """The sums across devices are larger than these numbers. What were they divided by?"""
    return _taken(key, "pmean", "psum")


@which_collective.mistake
def gathered_for_exchanged(key):
    """After an all_gather, all devices hold the same, and more than before. Here each device holds as much as before,
    and they differ. Which piece of every block does each hold?"""
    return {"E": "all_gather tiled"}.get(key)


@which_collective.mistake
def passed_on_for_exchanged(key):
    """A ppermute sends whole blocks. Here each device holds one piece of *every* block. Which collective exchanges
    pieces?"""
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
    "psum": "In which row and which column of the mesh is device 5? A sum over an axis includes all devices that "
    "differ along this axis only, and device 5 itself.",
    "ppermute": "Where is device 5 along this axis? From which device does it receive, if each sends to the next one?",
    "index": "Does axis_index look at any block?",
}


PARTNERS_ASKED = {
    "psum": "Along which axes do the blocks differ that it sums?",
    "ppermute": "Which of its neighbors along the axis sends to it, if each sends to the next one?",
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
    """Those devices differ from device 5 along the *other* axis. Device 5 is at x=2, y=1. Which devices are in its
    group?"""
    return {
        "psum over x": [4, 5],
        "psum over y": [1, 3, 5, 7],
        "ppermute +1 over x": [4],
        "ppermute +1 over y": [3],
    }.get(collective)


@partners.mistake
def counted_in_a_row(collective):
    """Devices are numbered row by row through the mesh, so devices with consecutive numbers are neighbors along *y*.
    By how much does the number change with one step along x?"""
    return [4, 5, 6, 7] if collective == "psum over x" else None


@partners.mistake
def let_everyone_take_part(collective):
    """All eight devices take part only if both axes are named. Over one axis there are several groups. Which devices
    are in the group of device 5?"""
    return list(range(8)) if collective in ("psum over x", "psum over y") else None


@partners.mistake
def left_itself_out(collective):
    """A device takes part in its own sum, and device 5 isn't in the list. Whose blocks are summed?"""
    return [d for d in _whose(collective) if d != 5] if collective.startswith("psum") else None


@partners.mistake
def named_the_receiver(collective):
    """This is the device that device 5 *sends* to. From which device does it receive?"""
    return [7] if collective == "ppermute +1 over x" else None


@partners.mistake
def shared_its_number(collective):
    """A device knows its own index without any communication. Which blocks does that number depend on?"""
    return [5] if collective == "axis_index over x" else None


# Transposed pairs: what JAX sends in the backward pass of a collective.

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


BACK = {  # of what was chosen for the backward pass
    "all_gather": "An all_gather in the backward pass gives every device the gradients of all. Do all of them belong "
    "to numbers that this device sent?",
    "psum_scatter": "A psum_scatter in the backward pass sums gradients, and leaves each device a part of the sum. Did "
    "each number go to all devices in the forward pass?",
    "psum": "A psum in the backward pass sums the gradients of all devices. Did each number go to all of them in the "
    "forward pass?",
    "all_to_all": "An all_to_all in the backward pass sends each piece to another device. Were pieces sent to all "
    "devices in the forward pass?",
    "ppermute": "A ppermute in the backward pass sends each gradient to a single device. Did each number go to only "
    "one device in the forward pass?",
    "nothing": "With nothing sent in the backward pass, each device keeps the gradient that it has. Did the numbers "
    "stay on their devices in the forward pass?",
}
transposed_pair = TableExercise("transposed_pair", points=2, reference=_transposed, options=BACK)
transposed_pair.rows(BACKWARDS, LINE, argument="collective")


@transposed_pair.mistake
def thought_it_its_own_transpose(collective):
    """Written as a matrix, as in the text above, this collective isn't symmetric: what is copied in the forward pass
    is summed in the backward pass, and the other way around. Which collective is its partner?"""
    return collective if collective in ("all_gather", "psum_scatter") else None


@transposed_pair.mistake
def summed_backwards_too(collective):
    """Older versions of JAX did that. With the check on, JAX knows that all devices hold the *same* sum, so in the
    backward pass the same gradient is on all of them. What does a device need from the others?"""
    return believed(collective, "psum", "psum")


@transposed_pair.mistake
def took_inverse_for_transpose(collective):
    """Keeping its own block would be the inverse, which undoes the gather. The transpose returns n copies from n
    devices. What happens to them on the device that they came from?"""
    return believed(collective, "nothing", "all_gather")


@transposed_pair.mistake
def copied_for_summed(collective):
    """The backward pass sums copies, and copies sums. Which part of the result does a device need, and does it already
    have it?"""
    return {"all_gather": "psum", "psum_scatter": "psum", "psum": "all_gather"}.get(collective)


@transposed_pair.mistake
def expected_another_kind(collective):
    """Every piece goes to exactly one device, so in the backward pass it comes straight back. Which collective does
    that, with its directions reversed?"""
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
    "neighbor": lambda b: list(np.roll(b, 1, axis=0)),
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
    """An all_gather would work, but every device would receive everything to keep one part of it, n times as many
    bytes. Which collective sends each device only its piece?"""
    return _instead(situation, "all_to_all", "all_gather")


@choose_collective.mistake
def summed_to_share(situation):
    """A psum would work, but it sends twice as much: every device would receive all sums to use its part of them.
    Which collective gives each device only its part?"""
    return _instead(situation, "psum_scatter", "psum")


@choose_collective.mistake
def scattered_to_gather(situation):
    """There is nothing to sum here: the rows are different rows. Which collective only gives them to all devices?"""
    return _instead(situation, "all_gather", "psum_scatter")


@choose_collective.mistake
def gathered_to_sum(situation):
    """An all_gather would work, followed by a sum on every device. Which collective sums as it sends, and sends less
    on more than two devices?"""
    return _instead(situation, "psum", "all_gather")


@choose_collective.mistake
def gathered_for_a_neighbour(situation):
    """An all_gather would work, but every device would receive all blocks to use one of them. Which collective sends
    to a neighbor only?"""
    return _instead(situation, "ppermute", "all_gather")


@choose_collective.mistake
def gathered_to_compare(situation):
    """An all_gather would work, followed by a maximum on every device. Which collective compares as it sends?"""
    return _instead(situation, "pmax", "all_gather")


@choose_collective.mistake
def averaged_to_sum(situation):
    """A pmean divides by the number of devices, but the devices need the sum. Which collective adds without
    dividing?"""
    return _instead(situation, "psum", "pmean")


@choose_collective.mistake
def passed_on_to_exchange(situation):
    """A ppermute sends *one* whole block to *one* device. Here each device has something for every other device. Which
    collective exchanges pieces?"""
    return _instead(situation, "all_to_all", "ppermute")


@choose_collective.mistake
def exchanged_with_a_neighbour(situation):
    """An all_to_all sends a piece to every other device, but only one neighbor's row is needed. Which collective sends
    along pairs?"""
    return _instead(situation, "ppermute", "all_to_all")


@choose_collective.mistake
def summed_to_compare(situation):
    """The largest of several numbers isn't their sum. Which collective compares across devices?"""
    return _instead(situation, "pmax", "psum")
