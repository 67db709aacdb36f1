"""§ 2, 4, 7–9: how many devices, what each of them holds, and which meshes JAX makes."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.described import OnDevices, OnMesh
from grader.arrays.words import numbered
from grader.exercises import Case, FunctionExercise, TableExercise
from grader.lessons.shared import believed

# How many chips hold a model.


def _chips(gigabytes, memory):
    chips = 1
    while chips * memory < gigabytes:
        chips *= 2
    return chips


chips_needed = FunctionExercise("chips_needed", points=2, reference=_chips)


@chips_needed.cases
def _(draw):
    for gigabytes, memory in ((140, 16), (140, 80), (128, 16), (16, 16), (17, 16), (3, 16), (810, 95), (1342, 80)):
        yield Case({"gigabytes": gigabytes, "memory": memory})
    for _ in range(2):
        yield Case({"gigabytes": int(draw.rng.integers(100, 2000)), "memory": int(draw.rng.integers(10, 99))})


@chips_needed.mistake
def any_number_of_chips(gigabytes, memory):
    """That many chips have enough memory, but the number isn't always a power of two. Which power of two comes next?"""
    return -(-gigabytes // memory)


@chips_needed.mistake
def a_quotient(gigabytes, memory):
    """This is the weights divided by the memory of one chip, which is rarely a whole number. Which power of two comes
    next?"""
    return gigabytes / memory


@chips_needed.mistake
def only_full_chips(gigabytes, memory):
    """This is the number of chips that the weights fill completely. Which chip holds the rest?"""
    return gigabytes // memory


@chips_needed.mistake
def started_with_two(gigabytes, memory):
    """If one chip is enough, the result is still two. What is the smallest power of two?"""
    return max(2, _chips(gigabytes, memory))


@chips_needed.mistake
def rounded_down(gigabytes, memory):
    """The chips of this power of two don't always hold all of the weights. What has to be true of their memory when the
    doubling stops?"""
    return max(1, _chips(gigabytes + 1, memory) // 2)


@chips_needed.mistake
def doubled_when_it_fits(gigabytes, memory):
    """If the weights fill the chips exactly, the number is doubled once too often. Are chips that are exactly full
    enough?"""
    chips = 1
    while chips * memory <= gigabytes:
        chips *= 2
    return chips


@chips_needed.mistake
def one_doubling_too_many(gigabytes, memory):
    """That is twice the number of chips. Is the number checked before it is doubled, or after?"""
    return 2 * _chips(gigabytes, memory)


@chips_needed.mistake
def counted_the_doublings(gigabytes, memory):
    """That is how often one chip has to be doubled. How many chips does that make?"""
    return _chips(gigabytes, memory).bit_length() - 1


@chips_needed.mistake
def a_part_of_a_chip(gigabytes, memory):
    """Small models get a fraction of a chip. How many chips does a model need at least?"""
    return 2.0 ** int(np.ceil(np.log2(gigabytes / memory)))


@chips_needed.mistake
def memory_of_all_chips(gigabytes, memory):
    """That is the memory of all these chips together, in gigabytes. How many chips is that?"""
    return _chips(gigabytes, memory) * memory


# Which devices hold how much of an array.


def _bytes_by_device(array):
    return {shard.device.id: int(shard.data.nbytes) for shard in array.addressable_shards}


bytes_by_device = FunctionExercise("bytes_by_device", points=3, reference=_bytes_by_device)


@bytes_by_device.cases
def _(draw):
    mesh = OnMesh({"x": 4, "y": 2})
    yield Case({"array": OnDevices(draw.values(16, 8), mesh, P("x", "y"))})
    yield Case({"array": OnDevices(draw.values(16, 8), mesh, P("x"))})
    yield Case({"array": OnDevices(draw.values(16, 8), mesh, P(None, "y"))})
    yield Case({"array": OnDevices(draw.values(24, 8).astype(np.int8), mesh, P(("x", "y")))})
    yield Case({"array": OnDevices(draw.values(16, 8), mesh, P())})
    yield Case({"array": OnDevices(draw.values(8, 6), OnMesh({"i": 4}, order=(7, 5, 3, 2)), P("i"))})
    yield Case({"array": OnDevices(draw.values(8, 6).astype(np.float16), OnMesh({"a": 3, "b": 2}), P("b", "a"))})
    yield Case({"array": OnDevices(draw.values(5, 3))})


def _on_each(array, held) -> dict[int, int]:
    return {device.id: int(held) for device in array.sharding.device_set}


@bytes_by_device.mistake
def the_full_array_on_each(array):
    """Every device is listed with the bytes of the full array. Which part of it is in a shard?"""
    return _on_each(array, array.nbytes)


@bytes_by_device.mistake
def an_equal_part_on_each(array):
    """The bytes of the array are divided evenly among its devices. That is correct if no two devices hold the same
    data. What changes if the array is replicated along an axis?"""
    return _on_each(array, array.nbytes // len(array.sharding.device_set))


@bytes_by_device.mistake
def an_eighth_on_all_eight(array):
    """Each of the eight devices is listed with an eighth of the array. An array can be on fewer devices, and it can be
    replicated. Which devices and which data do its shards have?"""
    return {device.id: array.nbytes // len(jax.devices()) for device in jax.devices()}


@bytes_by_device.mistake
def devices_for_ids(array):
    """The keys are devices, or their names, and the exercise asks for their IDs. Which attribute of a device is a
    number?"""
    return {shard.device: int(shard.data.nbytes) for shard in array.addressable_shards}


@bytes_by_device.mistake
def counted_elements(array):
    """These are numbers of elements. How many bytes does one element have?"""
    return {shard.device.id: int(shard.data.size) for shard in array.addressable_shards}


@bytes_by_device.mistake
def four_bytes_for_each(array):
    """Each element counts as four bytes. That is correct for float32 and int32. How many bytes does an int8 have?"""
    return {shard.device.id: 4 * int(shard.data.size) for shard in array.addressable_shards}


@bytes_by_device.mistake
def numbered_the_shards(array):
    """The bytes are correct, but the shards are numbered from 0, in their order. A mesh can have any devices, in any
    order. Which field of a shard names its device?"""
    return dict(enumerate(_bytes_by_device(array).values()))


@bytes_by_device.mistake
def all_eight_devices(array):
    """Devices that hold nothing are listed as well, with 0 bytes. Which devices do the shards of the array name?"""
    return {device.id: _bytes_by_device(array).get(device.id, 0) for device in jax.devices()}


@bytes_by_device.mistake
def shapes_of_the_shards(array):
    """These are the shapes of the shards. How many bytes does a shard of this shape have?"""
    return {shard.device.id: shard.data.shape for shard in array.addressable_shards}


# Cells in an order: run in a Python process of their own, one that has seen no JAX before.

CELLS = {
    "config": {
        "A": "import jax",
        "B": "import jax.numpy as jnp",
        "C": 'jax.config.update("jax_num_cpu_devices", 8)',
        "D": "total = jnp.ones(4).sum()",
        "E": "assert len(jax.local_devices()) >= 8",
    },
    "flag": {
        "A": "import os",
        "B": "import jax",
        "C": 'os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"',
        "D": "first = jax.devices()[0]",
        "E": "assert len(jax.local_devices()) >= 8",
        "F": 'os.environ["JAX_NUM_DEVICES"] = "8"',
    },
}
ASKING, OTHERS = "C", set("ABDE")  # the cell that asks for eight devices, and what else is needed

RUNNER = """
import json, sys
space, ran, error = {}, [], ""
for key, source in json.loads(sys.argv[1]):
    try:
        exec(source, space)
    except Exception as problem:
        error = type(problem).__name__
        break
    ran.append(key)
import jax
print(json.dumps([ran, error, len(jax.local_devices())]))
"""


def _readable(scheme: str, order: Any) -> str:
    """The order as a word such as "ABCDE"; "" for what is no order of these cells."""
    letters = order if isinstance(order, (str, list, tuple)) else ""
    word = "".join(map(str, letters)).replace(" ", "").replace(",", "").upper()
    return word if set(word) <= set(CELLS[scheme]) and len(set(word)) == len(word) else ""


def _fate(scheme: str, order: Any) -> str:
    """What becomes of an order, in a word or two."""
    word = _readable(scheme, order)
    if not word:
        return "no order"
    if OTHERS - set(word) or not {ASKING, "F"} & set(word):
        return "a cell is missing"
    ran, error, devices = _run_cells(scheme, word)
    if not error:
        return "a useless cell is left" if scheme == "flag" and "F" in word else f"{devices} devices"
    if error != "AssertionError":
        return error
    return f"too few, {'asked too late' if ASKING in ran else 'guard first' if ASKING in word else 'never asked'}"


@functools.lru_cache
def _run_cells(scheme: str, word: str) -> tuple[list[str], str, int]:
    """Run the cells in this order, on the CPU alone: those that ran, the error that stopped it, the devices then."""
    cells = json.dumps([[key, CELLS[scheme][key]] for key in word])
    clean = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES", "NPROC")}
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, cells],
        env=clean | {"JAX_PLATFORMS": "cpu"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=120,
        check=True,
    )
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def _same_fate(one: Any, other: Any, scheme: str) -> bool:
    fate = _fate(scheme, one)
    if fate != "8 devices":
        _try_ours(scheme)  # each mistake will be asked about: side by side they take less time
    return fate == _fate(scheme, other)


@functools.lru_cache
def _try_ours(scheme: str) -> None:
    """Run the right order and the mistaken ones, several at a time; `_run_cells` keeps what came of them."""
    ours = [setup_cells.reference(scheme), *(mistake.wrong(scheme) for mistake in setup_cells.mistakes)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(functools.partial(_fate, scheme), filter(None, ours)))


setup_cells = TableExercise("setup_cells", points=2, reference=lambda scheme: list("ABCDE"), same=_same_fate)
setup_cells.rows(CELLS, argument="scheme")


@setup_cells.mistake
def configured_after_first_use(scheme):
    """The sum ran first. The first computation settles how many devices JAX has: one. The cell that asks for eight
    then raised a RuntimeError. Which cells can come before it, and which can't?"""
    return list("ABDCE") if scheme == "config" else None


@setup_cells.mistake
def flag_after_first_use(scheme):
    """XLA reads its flags once, when JAX is first used. A flag that is set later is silently ignored, and only the
    guard notices. What did the cell with `jax.devices()` do, although it computes nothing?"""
    return list("ABDCE") if scheme == "flag" else None


@setup_cells.mistake
def guard_came_first(scheme):
    """The guard ran before any cell asked for eight devices. To count devices, JAX has to start, and it started
    with one. No cell can change that afterward. Where does a guard belong?"""
    return list("ABECD")


@setup_cells.mistake
def set_another_variable(scheme):
    """Neither JAX nor XLA reads an environment variable called JAX_NUM_DEVICES, and an unknown variable causes no
    error. Which of the cells sets a variable that is read?"""
    return list("ABFDE") if scheme == "flag" else None


@setup_cells.mistake
def used_before_import(scheme):
    """A cell used a module before the cell that imports it, and raised a NameError. Which import does each cell
    need?"""
    return list("CABDE")


@setup_cells.mistake
def left_a_cell_out(scheme):
    """A necessary cell is missing. The notebook still has to do everything it did, including the guard, which tells
    the next reader when there are too few devices. Which cell is that?"""
    return list("ABCD")


@setup_cells.mistake
def wrote_no_order(scheme):
    """The answer isn't an order of the cells. Write a list of their letters, such as ["A", "B"], with each letter
    at most once. Which letters does this notebook have?"""
    return [1, 2, 3]


@setup_cells.mistake
def kept_the_useless_cell(scheme):
    """This order ends with eight devices, but one of its cells has nothing to do with that. The next reader would
    believe that it does. Which cell can go without changing anything?"""
    return list("ACFBDE") if scheme == "flag" else None


# Reading a list of devices: what the eight cores of a TPU v2 board said of themselves on Colab; v3 says the same.

TPU_BOARD = """\
[TpuDevice(id=0, process_index=0, coords=(0,0,0), core_on_chip=0),
 TpuDevice(id=1, process_index=0, coords=(0,0,0), core_on_chip=1),
 TpuDevice(id=2, process_index=0, coords=(1,0,0), core_on_chip=0),
 TpuDevice(id=3, process_index=0, coords=(1,0,0), core_on_chip=1),
 TpuDevice(id=4, process_index=0, coords=(0,1,0), core_on_chip=0),
 TpuDevice(id=5, process_index=0, coords=(0,1,0), core_on_chip=1),
 TpuDevice(id=6, process_index=0, coords=(1,1,0), core_on_chip=0),
 TpuDevice(id=7, process_index=0, coords=(1,1,0), core_on_chip=1)]"""


def _read(line: str) -> dict[str, Any]:
    """The fields of one device in a printed list: numbers, and coordinates as a tuple."""
    fields = re.findall(r"(\w+)=(\d+|\([\d,]+\))", line)
    return {name: tuple(map(int, text[1:-1].split(","))) if "(" in text else int(text) for name, text in fields}


TPU_DEVICES = {device["id"]: device for device in map(_read, TPU_BOARD.splitlines())}
READ: Mapping[str, Callable[[Mapping], Any]] = {
    "devices": len,
    "chips": lambda all_: len({d["coords"] for d in all_.values()}),
    "coords of device 5": lambda all_: all_[5]["coords"],
    "on the same chip as device 6": lambda all_: next(
        k for k, d in all_.items() if k != 6 and d["coords"] == all_[6]["coords"]
    ),
    "processes": lambda all_: len({d["process_index"] for d in all_.values()}),
}

READ_DEVICES_ASKS = {
    "devices": "Each entry of the list is one device.",
    "chips": "Entries with the same `coords` are on the same chip. How many different `coords` are there?",
    "coords": "In the entry with id=5, what is the value of `coords`?",
    "device 6": "Which other entry has the `coords` of the one with id=6?",
    "processes": "How many different values of `process_index` are there?",
}
read_devices = TableExercise(
    "read_devices", points=2, reference=lambda row: READ[row](TPU_DEVICES), questions=READ_DEVICES_ASKS
)
read_devices.rows(READ)


@read_devices.stands_for
def _of_the_list(value, row):
    """Of coordinates the entries that have them, of an entry its coordinates."""
    if row == "coords of device 5" and isinstance(value, (list, tuple)):
        ids = [k for k, device in TPU_DEVICES.items() if device["coords"] == tuple(value)]
        return f"Those are the `coords` of the entries with {numbered('id', ids)}." if ids else ""
    device = TPU_DEVICES.get(value) if row == "on the same chip as device 6" and type(value) is int else None
    if device is None:
        return ""
    if value == 6:
        return "That is device 6 itself. Which other entry has the same `coords`?"
    return f"The `coords` of device {value} are {device['coords']}. What are those of device 6?"


@read_devices.mistake
def counted_cores_as_chips(row):
    """Eight entries are eight devices, and on this machine a device is one *core*. Several entries have the same
    `coords`. What do those entries share?"""
    return believed(row, len(TPU_DEVICES), "chips")


@read_devices.mistake
def counted_chips_as_devices(row):
    """The board has that many chips. But JAX lists everything that it can put an array on, and here that is a core.
    How many entries does the list have?"""
    return believed(row, len({d["coords"] for d in TPU_DEVICES.values()}), "devices")


@read_devices.mistake
def took_the_core_for_a_coordinate(row):
    """No entry of the list has these `coords`. They spell out the ID in binary (5 is 101), but `core_on_chip` is a
    separate field, and `coords` is the position of the chip. What does the list say for this device?"""
    return believed(row, (1, 0, 1), "coords of device 5")


@read_devices.mistake
def paired_with_the_one_before(row):
    """These two devices have different `coords`, so they are on different chips. IDs count the cores of one chip
    and then those of the next, starting at 0. Which pairs does that make?"""
    return believed(row, 5, "on the same chip as device 6")


@read_devices.mistake
def one_process_a_device(row):
    """One Python process can drive many devices. The field `process_index` says which process drives a device. How
    many different values does it have here?"""
    return believed(row, len(TPU_DEVICES), "processes")


@read_devices.mistake
def counted_the_cores_of_a_chip(row):
    """That is how many cores *one* chip has: so many entries have the same `coords`. How many different `coords`
    are there in the whole list?"""
    return believed(row, 2, "chips")


@read_devices.mistake
def counted_cores_twice(row):
    """That is twice the number of entries. Each entry is already a single core, with its number on the chip. How
    many entries are there?"""
    return believed(row, 2 * len(TPU_DEVICES), "devices")


@read_devices.mistake
def one_process_a_chip(row):
    """The board has that many chips. `process_index` says which process drives an entry. How many different values
    does it have?"""
    return believed(row, len({d["coords"] for d in TPU_DEVICES.values()}), "processes")


@read_devices.mistake
def read_the_number_of_a_process(row):
    """0 is the *index* of a process, and indices start at 0. How many different indices are there?"""
    return believed(row, 0, "processes")


# The grid of a mesh.


def _grid(shape, names):
    """The ids in a mesh over the first devices, which stand in it row by row."""
    count = int(np.prod(shape))
    mesh = Mesh(np.array(jax.devices()[:count]).reshape(shape), names)
    return np.array([device.id for device in mesh.devices.flat]).reshape(mesh.devices.shape)


device_grid = FunctionExercise(
    "device_grid",
    points=2,
    reference=_grid,
    same=lambda one, other, **_: np.array_equal(np.asarray(one), np.asarray(other)),
)


@device_grid.by_formula
def _counted_row_by_row(shape, names):
    return np.arange(np.prod(shape)).reshape(shape)


@device_grid.cases
def _(draw):
    for shape, names in (
        ((4, 2), ("x", "y")),
        ((2, 4), ("y", "x")),
        ((2, 2), ("x", "y")),
        ((8,), ("x",)),
        ((2, 2, 2), ("z", "y", "x")),
        ((1, 6), ("data", "model")),
    ):
        yield Case({"shape": shape, "names": names})


@device_grid.mistake
def filled_column_by_column(shape, names):
    """The IDs run down the columns. A mesh fills its grid as NumPy's reshape does. Which index changes fastest?"""
    return np.arange(np.prod(shape)).reshape(shape, order="F")


@device_grid.mistake
def names_decided_the_order(shape, names):
    """The devices are arranged by the order of the axis names, x before y. Names are only labels on the axes. Would
    the devices be arranged differently if the axes were called "left" and "right"?"""
    order = sorted(range(len(names)), key=lambda k: names[k])
    placed = np.arange(np.prod(shape)).reshape([shape[k] for k in order])
    return placed.transpose([order.index(k) for k in range(len(order))])


@device_grid.mistake
def longer_side_first(shape, names):
    """The grid has its longer side first. A (2, 4) mesh and a (4, 2) mesh are different grids. In which of them
    does device 4 start the second row?"""
    return np.arange(np.prod(shape)).reshape(sorted(shape, reverse=True))


@device_grid.mistake
def spread_over_all_eight(shape, names):
    """The grid of four skips devices, as if it were spread over all eight. A smaller mesh takes as many devices as
    it has positions. Which ones does it take?"""
    count = int(np.prod(shape))
    return np.arange(0, count * (8 // count), 8 // count).reshape(shape)


@device_grid.mistake
def always_used_all_eight(shape, names):
    """The grid has the wrong shape: it has positions for all eight devices. How many positions does a grid of shape
    (2, 2) have?"""
    return np.arange(8).reshape(*shape[:-1], -1)


# Which meshes JAX makes, and which it refuses. The keys are the calls.

TRIALS: Mapping[str, Callable[[], Mesh]] = {
    'jax.make_mesh((4, 4), ("x", "y"))': lambda: jax.make_mesh((4, 4), ("x", "y")),
    'jax.make_mesh((4, 2), ("data",))': lambda: jax.make_mesh((4, 2), ("data",)),
    'jax.make_mesh((8,), ("batch"))': lambda: jax.make_mesh((8,), ("batch")),
    'jax.make_mesh((3, 2), ("rows", "columns"))': lambda: jax.make_mesh((3, 2), ("rows", "columns")),
    'Mesh(np.array(jax.devices()), ("x", "y"))': lambda: Mesh(np.array(jax.devices()), ("x", "y")),
    'Mesh(np.array(jax.devices()[4:]), ("x",))': lambda: Mesh(np.array(jax.devices()[4:]), ("x",)),
}


@functools.lru_cache
def _outcome(call: str) -> Any:
    """How many devices the mesh has, or "error"."""
    try:
        return TRIALS[call]().devices.size
    except ValueError:
        return "error"


MESH_OR_ERROR_ASKS = {
    "make_mesh": "How many devices does this shape need, and how many are there? Does every axis have a name?",
    "Mesh(": "How many devices are in the array, and how many dimensions does the array have? Each dimension needs a "
    "name.",
}
mesh_or_error = TableExercise("mesh_or_error", points=2, reference=_outcome, questions=MESH_OR_ERROR_ASKS)
mesh_or_error.rows(TRIALS, argument="call")


def _calls(*starts: str) -> Callable[[str, Any], Any]:
    return lambda call, wrong: wrong if call.startswith(starts) else None


@mesh_or_error.mistake
def thought_all_must_be_used(call):
    """A mesh doesn't need all devices; the others are left out. How many positions does this mesh have?"""
    return _calls("jax.make_mesh((2, 2)", "jax.make_mesh((3, 2)", "Mesh(np.array(jax.devices()[4:])")(call, "error")


@mesh_or_error.mistake
def thought_all_are_used(call):
    """A mesh takes only as many devices as it has positions, or as many as the call lists. The others stay idle.
    How many positions are there here?"""
    return _calls("jax.make_mesh((2, 2)", "jax.make_mesh((3, 2)", "Mesh(np.array(jax.devices()[4:])")(call, 8)


@mesh_or_error.mistake
def made_devices_up(call):
    """A mesh arranges existing devices, and creates none. How many does a 4 × 4 grid need, and how many are there?"""
    return _calls("jax.make_mesh((4, 4)")(call, 16)


@mesh_or_error.mistake
def took_what_there_is(call):
    """JAX doesn't shrink the grid to the devices that it finds, because the rest of the program relies on the
    shape. What else can it do when a grid has more positions than there are devices?"""
    return _calls("jax.make_mesh((4, 4)")(call, 8)


@mesh_or_error.mistake
def thought_names_are_optional(call):
    """Each axis of the grid needs exactly one name, and JAX doesn't invent an axis for a name. How many axes does
    this grid of devices have, and how many names does the call give?"""
    return _calls('jax.make_mesh((4, 2), ("data",)', "Mesh(np.array(jax.devices()), ")(call, 8)


@mesh_or_error.mistake
def minded_the_missing_comma(call):
    """In Python, `("batch")` is just the string "batch", and JAX accepts a single string as a single name. Two axes
    with one string would be an error. How many axes are there here?"""
    return _calls('jax.make_mesh((8,), ("batch")')(call, "error")


# A helper with a default mesh.


def _put(value, spec, on=None):
    mesh = on or OnMesh({"x": 4, "y": 2}).built()
    return jax.device_put(value, NamedSharding(mesh, P(*spec)))


put_on_mesh = FunctionExercise("put_on_mesh", points=2, reference=_put)


@put_on_mesh.cases
def _(draw):
    for spec in (("x", "y"), ("y",), (None, "x"), (), (None, ("y", "x"))):
        yield Case({"value": draw.values(8, 16), "spec": spec})
    yield Case({"value": draw.values(8, 16), "spec": ("x", "y"), "on": OnMesh({"y": 4, "x": 2})})
    yield Case({"value": draw.values(2, 3, 4), "spec": (None, None, "i"), "on": OnMesh({"i": 4}, order=(7, 5, 3, 1))})


@put_on_mesh.mistake
def ignored_the_mesh(value, spec, on=None):
    """The array is on the lesson's mesh, although the call gave another one. When should the default be used?"""
    return _put(value, spec)


@put_on_mesh.mistake
def one_entry_for_all(value, spec, on=None):
    """The rows are split along all axes of the tuple, which is what happens when the whole tuple is the *first*
    entry of a spec. `P` takes one entry per dimension. How does Python pass a tuple as separate arguments?"""
    return _put(value, (spec,), on)


@put_on_mesh.mistake
def never_cut(value, spec, on=None):
    """Every device holds the full array. What does the function do with `spec`?"""
    return _put(value, (), on)


@put_on_mesh.mistake
def left_on_one_device(value, spec, on=None):
    """The array isn't on a mesh: it is a NumPy array, or on a single device. Which argument of `jax.device_put`
    says where it should go?"""
    return jnp.asarray(value)


@put_on_mesh.mistake
def reversed_the_spec(value, spec, on=None):
    """The entries of the spec were used in reverse order. The first entry belongs to the first
    dimension of the array, its rows. Which entry belongs to the columns?"""
    return _put(value, (None,) * (np.ndim(value) - len(spec)) + tuple(reversed(spec)), on)
