"""§ 5, 6, 9–11: groups along an axis, meshes for training, the order of devices, types of axes, processes."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.described import OnMesh
from grader.exercises import Case, FunctionExercise, TableExercise
from grader.lessons.devices_and_meshes.devices import TPU_DEVICES
from grader.lessons.shared import believed

# The groups along an axis.


def _ids(mesh) -> np.ndarray:
    return np.array([device.id for device in mesh.devices.flat]).reshape(mesh.devices.shape)


def _groups(mesh, axis):
    last = np.moveaxis(_ids(mesh), mesh.axis_names.index(axis), -1)
    return last.reshape(-1, mesh.shape[axis]).tolist()


def _same_groups(one, other, **_) -> bool:
    """The same groups, in whatever order."""
    one, other = (sorted(sorted(int(device) for device in group) for group in groups) for groups in (one, other))
    return one == other


axis_groups = FunctionExercise("axis_groups", points=3, reference=_groups, same=_same_groups)


@axis_groups.cases
def _(draw):
    torus = tuple(int(core.id) for core in _tpu_v3((8,)))
    for sizes, axis, order in (
        ({"x": 4, "y": 2}, "x", ()),
        ({"x": 4, "y": 2}, "y", ()),
        ({"i": 8}, "i", ()),
        ({"data": 2, "model": 4}, "data", ()),
        ({"a": 2, "b": 2, "c": 2}, "b", ()),
        ({"p": 2, "q": 2, "r": 2}, "p", ()),
        ({"x": 2, "y": 2}, "y", ()),
        ({"x": 4, "y": 2}, "x", torus),
        ({"b": 2, "a": 3}, "a", (7, 1, 6, 2, 5, 3)),
    ):
        yield Case({"mesh": OnMesh(sizes, order=order), "axis": axis})


@axis_groups.mistake
def kept_the_axis_fixed(mesh, axis):
    """In these groups, the devices have the same index along the axis and differ in the others. A collective *over*
    an axis does the opposite: its index changes within a group. Which indices stay the same?"""
    first = np.moveaxis(_ids(mesh), mesh.axis_names.index(axis), 0)
    return first.reshape(mesh.shape[axis], -1).tolist()


@axis_groups.mistake
def moved_the_axis_to_the_front(mesh, axis):
    """These groups come from moving the axis to the front before reshaping the IDs to rows as long as the axis. A row
    then has devices that differ in other axes. Which axis of an array changes within one of its rows?"""
    first = np.moveaxis(_ids(mesh), mesh.axis_names.index(axis), 0)
    return first.reshape(-1, mesh.shape[axis]).tolist()


@axis_groups.mistake
def one_group_of_all(mesh, axis):
    """All devices are in one group, as in a collective over *all* axes. Over one axis, devices that differ in
    another axis never communicate. How large is a group?"""
    return [_ids(mesh).ravel().tolist()]


@axis_groups.mistake
def cut_the_list_into_pieces(mesh, axis):
    """Each group is a run of neighbors in the list of devices, and has the right size. That is correct for the last
    axis only. By how much do IDs grow with each step along the first axis?"""
    return _ids(mesh).reshape(-1, mesh.shape[axis]).tolist()


@axis_groups.mistake
def took_the_size_for_the_stride(mesh, axis):
    """In these groups, the members are as many positions apart in the list as the axis is long. One step along an
    axis skips all the axes after it. How far apart are two neighbors, and how many members does a group have?"""
    return _ids(mesh).reshape(-1, mesh.shape[axis]).T.tolist()


@axis_groups.mistake
def counted_places(mesh, axis):
    """As groups of *positions*, numbered row by row, these are correct. But the mesh says which device is at each
    position. What does `mesh.devices` hold?"""
    places = np.arange(mesh.devices.size).reshape(mesh.devices.shape)
    return np.moveaxis(places, mesh.axis_names.index(axis), -1).reshape(-1, mesh.shape[axis]).tolist()


# An order that follows the wires: JAX's own, for eight cores of a TPU v3 that describe themselves.


def _tpu_v3(shape: tuple[int, ...]) -> np.ndarray:
    """The array of devices that JAX makes for a mesh of this shape over those cores."""
    cores = [SimpleNamespace(device_kind="TPU v3", platform="tpu", **fields) for fields in TPU_DEVICES.values()]
    return mesh_utils.create_device_mesh(shape, cores).reshape(shape)


@functools.lru_cache
def _on_the_torus() -> dict[str, Any]:
    """Lay an array over eight devices in that order, and look who holds what."""
    order = tuple(core.id for core in _tpu_v3((4, 2)).flat)
    mesh = OnMesh({"x": 4, "y": 2}, order=order).built()
    rows = jax.device_put(np.arange(4), NamedSharding(mesh, P("x")))
    block = {shard.device.id: int(shard.data[0]) for shard in rows.addressable_shards}
    ids = _ids(mesh)
    along_x = ids[:, 0].tolist()
    return {
        "the device in row 2, column 0": int(ids[2, 0]),
        "who holds block 2 of P('x')": sorted(device for device, held in block.items() if held == 2),
        "the block of device 4 under P('x')": block[4],
        "after device 2 along x": along_x[along_x.index(2) + 1],
        "along x from device 0": along_x,
    }


TOPOLOGY_ORDER_ASKS = {
    "the device": "Rows and columns of the printed grid are counted from 0. Which number is at that position?",
    "who holds": "Block k belongs to all devices in row k of the printed grid, counted from 0.",
    "the block": "In which row of the printed grid, counted from 0, is this device?",
    "after": "Which number is below this one in the printed grid?",
    "along": "Go down the column of the printed grid that device 0 is in.",
}
topology_order = TableExercise(
    "topology_order", points=2, reference=lambda row: _on_the_torus()[row], questions=TOPOLOGY_ORDER_ASKS
)
topology_order.rows(_on_the_torus)


def _answers(row: str, *wrong: Any) -> Any:
    """The wrong value for a row, given for all rows in their order; None where there is none."""
    return dict(zip(_on_the_torus(), wrong, strict=True))[row]


@topology_order.mistake
def took_the_place_for_the_id(row):
    """This would be correct if device k were at position k. This mesh follows the links between the chips. Where in
    the printed grid do you find the device at a position?"""
    return _answers(row, 4, [4, 5], 2, 4, [0, 2, 4, 6])


@topology_order.mistake
def went_along_the_other_axis(row):
    """This is the answer along y, from one column to the next. x is the first axis of the grid. Does the row or the
    column change along it?"""
    return _answers(row, None, [0, 2, 4, 6], 0, 3, [0, 1])


@topology_order.mistake
def forgot_the_copy(row):
    """That is one of them. P('x') doesn't name y, and each row of the grid has two devices. What does the other one
    hold?"""
    return _answers(row, None, [6], None, None, None)


@topology_order.mistake
def counted_from_one(row):
    """Rows, columns, and blocks are counted from 0, as always in Python. Which row of the printed grid is row 2?"""
    return _answers(row, 2, [2, 3], 4, None, None)


# How far a ring has to reach.


def _longest(coords, order, length=lambda dx, dy: dx + dy, closed=True):
    places = [coords[device] for device in order]
    steps = zip(places, places[1:] + places[:1] if closed else places[1:], strict=False)
    return max(length(abs(a - c), abs(b - d)) for (a, b), (c, d) in steps)


longest_hop = FunctionExercise("longest_hop", points=3, reference=_longest)


@longest_hop.cases
def _(draw):
    square, wide = list(itertools.product((0, 1), repeat=2)), [(k % 4, k // 4) for k in range(8)]
    row_by_row = sorted(square, key=lambda place: place[::-1])
    yield Case({"coords": row_by_row, "order": [0, 1, 2, 3]})
    yield Case({"coords": row_by_row, "order": [0, 1, 3, 2]})
    yield Case({"coords": wide, "order": list(range(8))})
    yield Case({"coords": wide, "order": [0, 1, 2, 3, 7, 6, 5, 4]})
    yield Case({"coords": wide, "order": [7, 5, 1, 2, 6]})  # a ring of some of them; its first step is the longest
    line = [(k, 0) for k in range(6)]
    yield Case({"coords": line, "order": list(range(6))})
    yield Case({"coords": [(0, k) for k in range(5)], "order": list(range(5))})
    yield Case({"coords": [(0, 0), (1, 0), (1, 1), (0, 1)], "order": [0, 1, 3, 2]})  # listed as the wires go
    for _ in range(3):
        chips = [(k % 4, k // 4) for k in range(16)]
        yield Case({"coords": chips, "order": draw.rng.permutation(16).tolist()})


@longest_hop.mistake
def left_the_ring_open(coords, order):
    """This is the longest step if the step that closes the ring is left out. The last device sends to the first.
    How long is that step?"""
    return _longest(coords, order, closed=False)


@longest_hop.mistake
def went_across_the_diagonal(coords, order):
    """Here a step from (0, 0) to (1, 1) counts as one link. Chips are linked to those beside, above, and below
    them, but not diagonally. How many links does that step take?"""
    return _longest(coords, order, max)


@longest_hop.mistake
def went_as_the_crow_flies(coords, order):
    """That is the straight-line distance. Data follows the links, first in one direction and then in the other. How
    many links lead from (0, 0) to (1, 1)?"""
    return _longest(coords, order, lambda dx, dy: float(np.hypot(dx, dy)))


@longest_hop.mistake
def added_the_steps_up(coords, order):
    """That is the length of the whole ring. All devices take their steps at the same time, so the slowest step
    decides. Which one is that?"""
    places = [coords[device] for device in order]
    return sum(abs(a - c) + abs(b - d) for (a, b), (c, d) in zip(places, places[1:] + places[:1], strict=True))


@longest_hop.mistake
def compared_the_ids(coords, order):
    """That is the largest difference between the IDs of two neighbors. An ID says nothing about where a chip is.
    Which argument does?"""
    return max(abs(a - b) for a, b in zip(order, order[1:] + order[:1], strict=True))


@longest_hop.mistake
def ignored_the_order(coords, order):
    """This is the longest step in the order in which `coords` lists the devices. The ring goes in a different
    order, which `order` holds. Whose position comes second?"""
    return _longest(coords, range(len(coords)))


@longest_hop.mistake
def wires_round_the_edge(coords, order):
    """This is correct on a torus, where links lead from the last chip of a row or column back to its first. These
    chips have no such links. How does a step get from one edge to the other?"""
    columns, rows = (len(set(places)) for places in zip(*coords, strict=True))
    return _longest(coords, order, length=lambda dx, dy: min(dx, columns - dx) + min(dy, rows - dy))


@longest_hop.mistake
def steps_back_are_negative(coords, order):
    """A step to the left or up counts as negative, so it shortens the way. How many links does it take to go back
    as far as the ring has come?"""
    places = [coords[device] for device in order]
    return max(c - a + d - b for (a, b), (c, d) in zip(places, [*places[1:], places[0]], strict=True))


@longest_hop.mistake
def one_absolute_value_for_both(coords, order):
    """Columns and rows are added before the sign is removed, so a step to the right cancels a step up. A message
    has to follow both. When is each of the two a number of links?"""
    places = [coords[device] for device in order]
    return max(abs(c - a + d - b) for (a, b), (c, d) in zip(places, [*places[1:], places[0]], strict=True))


# A mesh for training.


def _training_mesh(n_data, n_model, explicit):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(kind,) * 2)


def _same_mesh(one, other, **_) -> bool:
    """Axes and their types, and the set of devices: the order is the hardware's affair."""
    return (
        one["axes"] == other["axes"]
        and one["axis_types"] == other["axis_types"]
        and sorted(one["devices"]) == sorted(other["devices"])
    )


make_training_mesh = FunctionExercise("make_training_mesh", points=3, reference=_training_mesh, same=_same_mesh)


@make_training_mesh.cases
def _(draw):
    for n_data, n_model, explicit in (
        (4, 2, False),
        (4, 2, True),
        (2, 4, True),
        (8, 1, False),
        (2, 2, False),
        (1, 3, True),
        (3, 2, True),
        (4, 4, False),  # too few devices
    ):
        yield Case({"n_data": n_data, "n_model": n_model, "explicit": explicit})


def _by_default(n_data, n_model):
    return jax.make_mesh((n_data, n_model), ("data", "model"))


@functools.lru_cache
def _default_is_explicit() -> bool:
    return _by_default(1, 1).axis_types[0] == AxisType.Explicit


@make_training_mesh.mistake
def left_the_types_to_the_default(n_data, n_model, explicit):
    """Every mesh has the type that this version of `make_mesh` chooses by default, and versions differ (Auto before
    JAX 0.9, Explicit since). Which argument sets it?"""
    return _by_default(n_data, n_model)


@make_training_mesh.mistake
def never_looked_at_explicit(n_data, n_model, explicit):
    """The axes have the same type whether `explicit` is true or not. What should it be in each of the two cases?"""
    return _training_mesh(n_data, n_model, not _default_is_explicit())


@make_training_mesh.mistake
def swapped_the_types(n_data, n_model, explicit):
    """The types are swapped: with `explicit=True`, the axes are Auto. Which type comes first in the condition?"""
    return _training_mesh(n_data, n_model, not explicit)


@make_training_mesh.mistake
def typed_one_axis_only(n_data, n_model, explicit):
    """Only the data axis has the requested type. `axis_types` has one entry per axis. What should the second one be?"""
    kinds = (AxisType.Explicit, AxisType.Auto) if explicit else (AxisType.Auto, AxisType.Explicit)
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=kinds)


@make_training_mesh.mistake
def swapped_the_sizes(n_data, n_model, explicit):
    """The sizes are swapped. Names and sizes belong together, in order. How long should the axis "data" be?"""
    return jax.make_mesh((n_model, n_data), ("data", "model"), axis_types=_training_mesh(1, 1, explicit).axis_types)


@make_training_mesh.mistake
def put_the_model_axis_first(n_data, n_model, explicit):
    """Each axis has the correct length, but "model" comes first. Order matters: neighbors along the *last* axis are
    next to each other, so the busiest axis belongs there. Which axis should come last?"""
    return jax.make_mesh((n_model, n_data), ("model", "data"), axis_types=_training_mesh(1, 1, explicit).axis_types)


@make_training_mesh.mistake
def gave_one_name_for_two_axes(n_data, n_model, explicit):
    """JAX refuses this mesh, because it has two dimensions and a single name. A grid with two axes needs a tuple of
    two names. What are the axes called here?"""
    return jax.make_mesh((n_data, n_model), "data", axis_types=(AxisType.Auto,))


@make_training_mesh.mistake
def gave_one_type_for_two_axes(n_data, n_model, explicit):
    """JAX refuses this mesh, because it has two axes and a single type. How many entries does `axis_types` need?"""
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=_training_mesh(1, 1, explicit).axis_types[:1])


@make_training_mesh.mistake
def shrank_the_mesh(n_data, n_model, explicit):
    """There are too few devices, and the function returned a smaller mesh. A program written for sixteen devices
    would then silently run on eight. What does `jax.make_mesh` do if you ask it for the full size?"""
    return _training_mesh(min(n_data, len(jax.devices()) // n_model), n_model, explicit)


@make_training_mesh.mistake
def made_a_single_axis(n_data, n_model, explicit):
    """There is a single axis, with all the devices of the mesh. "data" and "model" are two axes, so that a program
    can name the devices along each of them. What shape does a grid with two axes have?"""
    return jax.make_mesh((n_data * n_model,), ("data",), axis_types=_training_mesh(1, 1, explicit).axis_types[:1])


# Types of axes. Each row is an experiment.


def _inside(kind: str) -> dict[str, Any]:
    """What a function sees on a mesh whose axis has this type: shapes, the array's type, and what a sum does."""
    mesh = OnMesh({"x": 8}, explicit=kind == "Explicit").built()
    rows = jax.device_put(np.ones((8, 16), np.float32), NamedSharding(mesh, P(None, "x")))
    seen: dict[str, Any] = {}

    def look(a):
        seen.update(shape=a.shape, type=str(jax.typeof(a)))
        return a @ a.T

    program = look
    if kind == "Manual":
        program = jax.shard_map(look, mesh=mesh, in_specs=P(None, "x"), out_specs=P("x", None))
    try:
        product = jax.jit(program)(rows)
        seen["decided for you"] = product.shape == (8, 8) and bool((np.asarray(product) == 16).all())
    except Exception as error:  # ShardingTypeError, which older versions keep elsewhere
        seen["decided for you"] = False
        seen["error"] = type(error).__name__
    return seen


@functools.lru_cache
def _only(question: str) -> str:
    """The one type of axis for which the answer to a question is yes."""
    asked = {
        "the compiler decides": lambda seen: seen["decided for you"],
        "part of the array's type": lambda seen: "@" in seen["type"],
        "sees its own block": lambda seen: seen["shape"] != (8, 16),
    }[question]
    (kind,) = [kind for kind in ("Auto", "Explicit", "Manual") if asked(_inside(kind))]
    return kind


def _type_of(mesh: Mesh) -> str:
    return str(mesh.axis_types[0]).rpartition(".")[2]


def _type_inside_shard_map() -> str:
    seen: list[str] = []

    def look(a):
        seen.append(_type_of(jax.sharding.get_abstract_mesh()))
        return a

    mesh = OnMesh({"x": 8}).built()
    jax.shard_map(look, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.arange(8))
    return seen[0]


WITHOUT_TYPES = 'jax.make_mesh((8,), ("x",))'
TYPES: Mapping[str, Callable[[], str]] = {
    WITHOUT_TYPES: lambda: _type_of(jax.make_mesh((8,), ("x",))),
    'Mesh(np.array(jax.devices()), ("x",))': lambda: _type_of(Mesh(np.array(jax.devices()), ("x",))),
    "inside jax.shard_map": _type_inside_shard_map,
    **{
        question: functools.partial(_only, question)
        for question in ("the compiler decides", "part of the array's type", "sees its own block")
    },
}

AXIS_TYPE_ASKS = {
    "make_mesh": "Add a cell, make this mesh, and ask it for its `.axis_types`.",
    "Mesh(": "Add a cell, make this mesh, and ask it for its `.axis_types`.",
    "inside": "A cell above asked for the type of the axes inside the function. What did it print?",
    "compiler": "For axes of one type, JAX finds out by itself what has to be sent. For another type, it asks you. For "
    "the third, you send it.",
    "type": "For which type does `jax.typeof` name axes next to the lengths of an array, outside `shard_map`?",
    "block": "In which kind of function do you write the program of one device, and what does it get?",
}
axis_type = TableExercise("axis_type", points=2, reference=lambda row: TYPES[row](), questions=AXIS_TYPE_ASKS)
axis_type.rows(TYPES)


@axis_type.mistake
def misjudged_the_default(row):
    """The default of `make_mesh` has changed: Auto before JAX 0.9, Explicit since. It is safer to ask the mesh for
    its `axis_types`, or to write them. What does this mesh say?"""
    return {"Auto": "Explicit", "Explicit": "Auto"}[TYPES[row]()] if row == WITHOUT_TYPES else None


@axis_type.mistake
def took_mesh_for_make_mesh(row):
    """`Mesh(...)` is the older constructor, and its default didn't change together with that of `make_mesh`. What
    does the mesh say when you ask for its `axis_types`?"""
    return "Explicit" if row.startswith("Mesh(") else None


@axis_type.mistake
def kept_the_type_inside(row):
    """Inside `shard_map`, the function runs once per device, on its own block. Neither the compiler nor the array's
    type decides what is sent between devices. Who does?"""
    return believed(row, "Auto", "inside jax.shard_map", "sees its own block")


@axis_type.mistake
def took_explicit_for_by_hand(row):
    """ "Explicit" means that shardings are part of the arrays' types. The arrays are still full arrays, and the
    collectives are still inserted for you. Which type leaves you a single block and the communication?"""
    return believed(row, "Explicit", "inside jax.shard_map", "sees its own block")


@axis_type.mistake
def took_auto_for_explicit(row):
    """On Auto axes, an array's type doesn't mention its sharding, because the compiler decides it. For which type
    does `jax.typeof` print an @?"""
    return believed(row, "Auto", "part of the array's type")


@axis_type.mistake
def took_manual_for_explicit(row):
    """A Manual function sees one block, and its type is that of the block. For which type does `jax.typeof` print
    the full shape, with an @ and an axis?"""
    return believed(row, "Manual", "part of the array's type")


@axis_type.mistake
def left_nothing_to_the_compiler(row):
    """If both operands are sharded along the summed dimension, the result could be sharded in several ways. On
    Explicit axes, that is an error, and in `shard_map` you choose. When does it simply run?"""
    return "Explicit" if row == "the compiler decides" else None


# Several processes: what the first of two said, on one machine with JAX 0.10.2; a test runs them again.

PROCESS_0_OF_2 = """\
process 0 of 2
id=0 process_index=0
id=1 process_index=0
id=2 process_index=0
id=3 process_index=0
id=2048 process_index=1
id=2049 process_index=1
id=2050 process_index=1
id=2051 process_index=1
y: (64, 64) fully addressable: False"""
DRIVEN_BY = {int(k): int(process) for k, process in re.findall(r"id=(\d+) process_index=(\d+)", PROCESS_0_OF_2)}
SHAPE = tuple(map(int, re.search(r"y: \((\d+), (\d+)\)", PROCESS_0_OF_2).groups()))


def _driven_by(process: int) -> int:
    return list(DRIVEN_BY.values()).count(process)


PROCESSES: Mapping[str, Callable[[], Any]] = {
    "len(jax.devices()) in process 1": lambda: len(DRIVEN_BY),
    "len(jax.local_devices()) in process 1": lambda: _driven_by(1),
    "jax.devices()[4].id": lambda: list(DRIVEN_BY)[4],
    "shape of y in process 1": lambda: SHAPE,
    "shards of y that process 1 can read": lambda: _driven_by(1),
    "processes that must call jit(f)(y)": lambda: len(set(DRIVEN_BY.values())),
}

LOCAL_AND_GLOBAL_ASKS = {
    "jax.devices()": "`jax.devices()` lists the same devices in every process. How many lines does the listing have, "
    "and what does each of them say?",
    "local_devices": "Count the devices in the listing that have the index of this process.",
    "shape": "The shape is that of the full array, in every process.",
    "shards": "A process can read what is on its own devices. How many shards of y are there?",
    "processes": "The call runs on all devices of the mesh of y. Which processes drive them, and what starts them?",
}
local_and_global = TableExercise(
    "local_and_global", points=2, reference=lambda row: PROCESSES[row](), questions=LOCAL_AND_GLOBAL_ASKS
)
local_and_global.rows(PROCESSES)


@local_and_global.mistake
def saw_its_own_only(row):
    """Those are the *local* devices. `jax.devices()` lists the devices of all processes, in every process, so that
    all of them can build the same mesh. How many are there in the listing?"""
    return believed(row, 4, "len(jax.devices()) in process 1")


@local_and_global.mistake
def reached_into_the_other_process(row):
    """Those are all the devices. A process can read only the data on the devices that it drives. How many lines of
    the listing have `process_index=1`?"""
    return believed(row, 8, "len(jax.local_devices()) in process 1", "shards of y that process 1 can read")


@local_and_global.mistake
def shape_of_the_local_half(row):
    """That is the shape of the part on this process's devices. `y` is the *global* array, with the same shape in
    every process. Which shape does process 0 print?"""
    return believed(row, (32, 64), "shape of y in process 1")


@local_and_global.mistake
def shape_of_a_single_piece(row):
    """That is the shape of one shard, on one device. `y` is the global array. What is its shape, in whichever
    process you ask?"""
    return believed(row, (8, 64), "shape of y in process 1")


@local_and_global.mistake
def one_process_for_all(row):
    """No process commands the others. Each runs the same Python program and starts the computation on its own
    devices, and if one doesn't, the rest wait. How many processes drive devices that hold a part of `y`?"""
    return believed(row, 1, "processes that must call jit(f)(y)")


@local_and_global.mistake
def one_process_a_device(row):
    """One Python process drives several devices, four in this example. How many processes does the listing show?"""
    return believed(row, 8, "processes that must call jit(f)(y)")


@local_and_global.mistake
def took_the_position_for_the_id(row):
    """That is its position in the list. An ID is a name, and these processes number their devices far apart. What
    does the fifth line with an `id` say?"""
    return believed(row, 4, "jax.devices()[4].id")
