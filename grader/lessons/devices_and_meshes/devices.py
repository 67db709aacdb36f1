"""§ 1–4: the devices JAX has, where an array is, and meshes."""

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

from grader.arrays.described import OnMesh
from grader.arrays.words import numbered
from grader.exercises import Case, FunctionExercise, TableExercise
from grader.lessons.shared import believed

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
    """The sum came first, and the first computation settles how many devices JAX has: one. The cell that asks for
    eight then stops with a RuntimeError. Which cells may come before it, and which may not?"""
    return list("ABDCE") if scheme == "config" else None


@setup_cells.mistake
def flag_after_first_use(scheme):
    """XLA reads its flags once, when JAX is first used. Set after that, a flag is ignored without a word, and only
    the guard notices. What did the cell with `jax.devices()` do, though it computes nothing?"""
    return list("ABDCE") if scheme == "flag" else None


@setup_cells.mistake
def guard_came_first(scheme):
    """The guard ran before eight devices were asked for. It counts devices, and to count them JAX has to start:
    with one. From then on no cell can change it. Where does a guard belong?"""
    return list("ABECD")


@setup_cells.mistake
def set_another_variable(scheme):
    """Neither JAX nor XLA reads an environment variable JAX_NUM_DEVICES, and nobody complains about one that nobody
    reads. Which of the cells sets one that is read?"""
    return list("ABFDE") if scheme == "flag" else None


@setup_cells.mistake
def used_before_import(scheme):
    """A cell used a module before the cell that imports it, and stopped with a NameError. Which import does each
    cell need?"""
    return list("CABDE")


@setup_cells.mistake
def left_a_cell_out(scheme):
    """A cell is missing that you need: everything that the notebook does has to be in it, the guard too, which
    tells the next reader at once when there are too few devices."""
    return list("ABCD")


@setup_cells.mistake
def wrote_no_order(scheme):
    """That is no order of the cells. Write a list of their letters, each at most once, such as ["A", "B"]."""
    return [1, 2, 3]


@setup_cells.mistake
def kept_the_useless_cell(scheme):
    """It ends with eight devices, and one of the cells has no part in that. Leave it out: the next reader would believe
    that it does something. Which of them may be gone without a difference?"""
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
    "place of device 5": lambda all_: all_[5]["coords"],
    "on one chip with device 6": lambda all_: next(
        k for k, d in all_.items() if k != 6 and d["coords"] == all_[6]["coords"]
    ),
    "processes": lambda all_: len({d["process_index"] for d in all_.values()}),
}

READ_DEVICES_ASKS = {
    "devices": "Each entry of the list is one device.",
    "chips": "Entries with the same `coords` are on one chip. How many different `coords` are there?",
    "place": "In the entry with id=5, what stands behind `coords`?",
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
    if row == "place of device 5" and isinstance(value, (list, tuple)):
        ids = [k for k, device in TPU_DEVICES.items() if device["coords"] == tuple(value)]
        return f"Those are the `coords` of the entries with {numbered('id', ids)}." if ids else ""
    device = TPU_DEVICES.get(value) if row == "on one chip with device 6" and type(value) is int else None
    if device is None:
        return ""
    if value == 6:
        return "That is device 6 itself. Which other entry has the same `coords`?"
    return f"The `coords` of device {value} are {device['coords']}. Which are those of device 6?"


@read_devices.mistake
def counted_cores_as_chips(row):
    """Eight entries are eight devices, and on this machine a device is one *core*. Several entries can have the
    same `coords`: what do they share?"""
    return believed(row, len(TPU_DEVICES), "chips")


@read_devices.mistake
def counted_chips_as_devices(row):
    """There are that many chips. But JAX lists what it can put an array on, and here that is a core: how many
    entries has the list?"""
    return believed(row, len({d["coords"] for d in TPU_DEVICES.values()}), "devices")


@read_devices.mistake
def took_the_core_for_a_coordinate(row):
    """No entry of the list has these `coords`. Did you spell the id out in twos (5 is 101)? `core_on_chip` is a field
    of its own; `coords` is the place of the chip, and it stands in the list."""
    return believed(row, (1, 0, 1), "place of device 5")


@read_devices.mistake
def paired_with_the_one_before(row):
    """Those two have different `coords`, so they are on different chips. Ids count the cores of a chip one after
    the other, starting at 0: which pairs does that make?"""
    return believed(row, 5, "on one chip with device 6")


@read_devices.mistake
def one_process_a_device(row):
    """One Python process can drive many devices. The field `process_index` says which process drives a device: how
    many different values does it take here?"""
    return believed(row, len(TPU_DEVICES), "processes")


@read_devices.mistake
def counted_the_cores_of_a_chip(row):
    """So many cores has *one* chip: that many entries have the same `coords`. How many different `coords` are there in
    all of the list?"""
    return believed(row, 2, "chips")


@read_devices.mistake
def counted_cores_twice(row):
    """Each entry is one core already, with its number on its chip behind it. Did you multiply by two? How many entries
    are there?"""
    return believed(row, 2 * len(TPU_DEVICES), "devices")


@read_devices.mistake
def one_process_a_chip(row):
    """There are that many chips. `process_index` says which process drives an entry: how many different values does
    it take?"""
    return believed(row, len({d["coords"] for d in TPU_DEVICES.values()}), "processes")


@read_devices.mistake
def read_the_number_of_a_process(row):
    """0 is the *number* of a process, and numbers begin with 0. How many different numbers are there, then?"""
    return believed(row, 0, "processes")


# Where an array is.


@functools.lru_cache
def _lying() -> dict[str, Any]:
    """Make the arrays of the lesson, and look at them."""
    mesh = OnMesh({"x": 4, "y": 2}).built()
    x = jax.random.normal(jax.random.key(0), (64, 64))
    y = jax.device_put(x, NamedSharding(mesh, P("x", "y")))
    z = jax.jit(jnp.sin)(y)
    return {
        "devices of x": len(x.devices()),
        "type of y": _kind(y),
        "devices of y": len(y.devices()),
        "shape of y": y.shape,
        "devices of x afterwards": len(x.devices()),
        "devices of z": len(z.devices()),
    }


def _kind(array: Any) -> str:
    return "jax.Array" if isinstance(array, jax.Array) else type(array).__name__


ARRAY_FACTS_ASKS = {
    "devices": "Add a cell and ask the array: `len(….devices())`. Was it put on one device, or over a mesh?",
    "type": "Add a cell and ask: what does `type(y)` say?",
    "shape": "The shape that you program with is that of the whole array.",
}
array_facts = TableExercise("array_facts", points=2, reference=lambda row: _lying()[row], questions=ARRAY_FACTS_ASKS)
array_facts.rows(_lying)


@array_facts.mistake
def spread_by_itself(row):
    """JAX spreads nothing unless it is told to. A new array is on the default device, however many others are
    idle. What does `x.devices()` say?"""
    return believed(row, 8, "devices of x")


@array_facts.mistake
def moved_by_device_put(row):
    """`device_put` gives back a *new* array. Did anything happen to the one you had? Ask it with `x.devices()`."""
    return believed(row, 8, "devices of x afterwards")


@array_facts.mistake
def stayed_on_one_device(row):
    """That would be an array on a single device. Which devices does the sharding name, and does jit bring anything
    back from them?"""
    return believed(row, 1, "devices of y", "devices of z")


@array_facts.mistake
def counted_along_one_axis(row):
    """So many devices are along x. The spec also names y, and devices that differ along y hold other columns. How many
    places has the whole mesh?"""
    return believed(row, 4, "devices of y", "devices of z")


@array_facts.mistake
def gone_from_everywhere(row):
    """An array that is on no device cannot be computed with any more. Try it: does `x` still print, after y was made of
    it?"""
    return believed(row, 0, "devices of x", "devices of x afterwards")


@array_facts.mistake
def took_a_list_of_arrays(row):
    """There is one array, with one shape and one name in your program. It happens to be in several pieces; the
    pieces are in `y.addressable_shards`. What is the type of `y` itself?"""
    return believed(row, "a list of arrays", "type of y")


@array_facts.mistake
def took_numpys_array(row):
    """`jax.random` and `jax.numpy` make JAX's own arrays. NumPy's live in the memory of the host and know no
    devices. Which of the two has `.devices()`?"""
    return believed(row, "np.ndarray", "type of y")


@array_facts.mistake
def shape_of_the_piece(row):
    """That is the shape of one piece. The array you program with has the shape of the whole, wherever its pieces
    are. What does `y.shape` print?"""
    return believed(row, (16, 32), "shape of y")


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
    """The ids run down the columns. The grid is filled as NumPy's reshape fills one: which index changes
    fastest?"""
    return np.arange(np.prod(shape)).reshape(shape, order="F")


@device_grid.mistake
def names_decided_the_order(shape, names):
    """Did the names decide, x before y? Names are free choices, only labels on the axes of the grid. Would the devices
    stand elsewhere if the axes were called "left" and "right"?"""
    order = sorted(range(len(names)), key=lambda k: names[k])
    placed = np.arange(np.prod(shape)).reshape([shape[k] for k in order])
    return placed.transpose([order.index(k) for k in range(len(order))])


@device_grid.mistake
def longer_side_first(shape, names):
    """Your grid has its longer side first. A (2, 4) mesh and a (4, 2) mesh are different grids: in one of them
    device 4 starts the second row."""
    return np.arange(np.prod(shape)).reshape(sorted(shape, reverse=True))


@device_grid.mistake
def spread_over_all_eight(shape, names):
    """A grid of four has every second device here, as if it were spread over all eight. A smaller mesh leaves devices
    idle: it takes as many as it has places, and takes the first ones."""
    count = int(np.prod(shape))
    return np.arange(0, count * (8 // count), 8 // count).reshape(shape)


@device_grid.mistake
def always_used_all_eight(shape, names):
    """Your grid has the wrong shape: it has room for all eight devices. How many places has a grid of shape (2,
    2)?"""
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
    "make_mesh": "How many devices does this shape need, and are there as many? Has every number of the shape a name?",
    "Mesh(": "How many devices are in the array that it is given, and how many dimensions has this array? "
    "Each of them needs a name.",
}
mesh_or_error = TableExercise("mesh_or_error", points=2, reference=_outcome, questions=MESH_OR_ERROR_ASKS)
mesh_or_error.rows(TRIALS, argument="call")


def _calls(*starts: str) -> Callable[[str, Any], Any]:
    return lambda call, wrong: wrong if call.startswith(starts) else None


@mesh_or_error.mistake
def thought_all_must_be_used(call):
    """A mesh need not have all the devices; the others are left out. How many places has the grid that is asked
    for?"""
    return _calls("jax.make_mesh((2, 2)", "jax.make_mesh((3, 2)", "Mesh(np.array(jax.devices()[4:])")(call, "error")


@mesh_or_error.mistake
def thought_all_are_used(call):
    """Only as many devices are taken as the grid has places, or as you list. The others are left out, and idle. How
    many places are there here?"""
    return _calls("jax.make_mesh((2, 2)", "jax.make_mesh((3, 2)", "Mesh(np.array(jax.devices()[4:])")(call, 8)


@mesh_or_error.mistake
def made_devices_up(call):
    """A mesh arranges devices that are there; it makes none. How many does a 4 by 4 grid need, and how many are
    there?"""
    return _calls("jax.make_mesh((4, 4)")(call, 16)


@mesh_or_error.mistake
def took_what_there_is(call):
    """JAX does not shrink the grid to what it finds: the later program relies on its shape. What is left to do when
    a grid has more places than there are devices?"""
    return _calls("jax.make_mesh((4, 4)")(call, 8)


@mesh_or_error.mistake
def thought_names_are_optional(call):
    """Each axis of the grid needs a name, and exactly one; no axis is made to fit a name. How many axes has the grid
    of devices here, and how many names are given?"""
    return _calls('jax.make_mesh((4, 2), ("data",)', "Mesh(np.array(jax.devices()), ")(call, 8)


@mesh_or_error.mistake
def minded_the_missing_comma(call):
    """In Python `("batch")` is just the text "batch", and JAX takes a single text as a single name. Two axes and
    one text would be an error; how many axes are there?"""
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
    """The array is on the lesson's mesh although another one was given. When should the default be used?"""
    return _put(value, spec)


@put_on_mesh.mistake
def one_entry_for_all(value, spec, on=None):
    """The rows are cut along all the axes of the tuple, as where the whole tuple is the *first* entry of a spec. `P`
    takes one entry a dimension: how does Python hand over a tuple entry by entry?"""
    return _put(value, (spec,), on)


@put_on_mesh.mistake
def never_cut(value, spec, on=None):
    """Every device holds all of it: nothing was cut. What do you do with `spec`?"""
    return _put(value, (), on)


@put_on_mesh.mistake
def left_on_one_device(value, spec, on=None):
    """The array is on no mesh: it is still NumPy's, or on one device alone. Which argument of `jax.device_put` says
    where it should go?"""
    return jnp.asarray(value)


@put_on_mesh.mistake
def reversed_the_spec(value, spec, on=None):
    """The array is cut as if the entries came in reverse: the first entry of a spec is for the first dimension of the
    array, its rows. Which one is for the columns?"""
    return _put(value, (None,) * (np.ndim(value) - len(spec)) + tuple(reversed(spec)), on)
