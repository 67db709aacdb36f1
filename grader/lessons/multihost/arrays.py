"""§ 2–4: arrays that no process holds alone: to make them, to read them, and to say who has what."""

from __future__ import annotations

import inspect

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.described import PerProcess
from grader.arrays.files import OnFile
from grader.exercises import Case, ProcessExercise, TableExercise
from grader.lessons.multihost.processes import DEVICES, HERE, PROCESSES, held
from grader.lessons.shared import FLOAT

GRID = {"data": PROCESSES, "model": DEVICES}


def _joined(process_id, num_processes):
    """A row of devices for each process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    shape = (num_processes, jax.local_device_count())
    return jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)


# Who has what, of an 8 × 4 array on this mesh.

LENGTHS = (8, 4)


def _parts(spec: P, process: int) -> list[tuple[tuple[int, int], ...]]:
    """(rows, columns) of each shard in a process, as start and stop."""
    mesh = jax.make_mesh((PROCESSES, DEVICES), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    indices = NamedSharding(mesh, spec).devices_indices_map(LENGTHS)
    mine = mesh.devices[process]
    return [tuple(part.indices(n)[:2] for part, n in zip(indices[d], LENGTHS, strict=True)) for d in mine]


def _span(parts, dimension: int) -> tuple[int, int]:
    return min(p[dimension][0] for p in parts), max(p[dimension][1] for p in parts)


BOTH = P("data", "model")
TURNED = P("model", "data")
DEEP = P(("data", "model"))

WHO_HAS = {
    "P('data', 'model'): rows in process 2": lambda: _span(_parts(BOTH, 2), 0),
    "P('model', 'data'): columns in process 2": lambda: _span(_parts(TURNED, 2), 1),
    "P(('data', 'model')): rows in process 1": lambda: _span(_parts(DEEP, 1), 0),
    "P('data'): different blocks in process 3": lambda: len(set(_parts(P("data"), 3))),
    "P('model'): processes that hold row 0": lambda: sum(
        _span(_parts(P("model"), k), 0)[0] == 0 for k in range(PROCESSES)
    ),
    "P(): shards that process 0 can read": lambda: len(_parts(P(), 0)),
}

WHO_HAS_WHAT_ASKS = {
    "rows in process": "Which two devices are the process's, and at which places of the mesh do they stand?",
    "columns in process": "Which axis cuts the columns, and at which place along it are the process's two devices?",
    "different blocks": "Do the two devices of a process differ along an axis that cuts something here?",
    "processes that hold": "Which devices hold row 0, and which process has each of them? Processes are counted.",
    "shards that process": "A process reads what is on its own devices. How many are these, whatever is on them?",
}
who_has_what = TableExercise(
    "who_has_what", points=4, reference=lambda row: WHO_HAS[row](), questions=WHO_HAS_WHAT_ASKS
)
who_has_what.rows(WHO_HAS)


@who_has_what.mistake
def device_for_process(row):
    """That is what *device* number 2 (or 1) holds. A process drives two devices here, a whole row of the mesh:
    process 2 has devices 4 and 5. What do they hold together?"""
    rows, columns = _parts(BOTH, 1)[0]
    return {
        "P('data', 'model'): rows in process 2": rows,
        "P(('data', 'model')): rows in process 1": _parts(DEEP, 0)[1][0],
    }.get(row)


@who_has_what.mistake
def first_device_only(row):
    """That is what the first device of the process holds. It has a second one, and what a process holds is
    what both hold."""
    return {
        "P(('data', 'model')): rows in process 1": _parts(DEEP, 1)[0][0],
        "P(): shards that process 0 can read": 1,
    }.get(row)


@who_has_what.mistake
def axes_exchanged(row):
    """Rows are cut over the axis named *first* in the spec, wherever that axis stands in the mesh. Processes
    differ along 'data'; the devices of one process differ along 'model'."""
    return {
        "P('model', 'data'): columns in process 2": _span(_parts(BOTH, 2), 1),
        "P('model'): processes that hold row 0": 1,
    }.get(row)


@who_has_what.mistake
def counted_something_else(row):
    """A count of other things. Each of the 4 processes has 2 devices; cut over 'model', one of the two holds the first
    half of the rows, in every process. And of the 8 copies of what is cut nowhere, a process can read those on its own
    devices."""
    return {"P('model'): processes that hold row 0": 2, "P(): shards that process 0 can read": 8}.get(row)


@who_has_what.mistake
def copies_differ(row):
    """Nothing is cut over 'model' there, and the two devices of a process differ in nothing else: they hold
    the same block. Two shards, one block."""
    return {"P('data'): different blocks in process 3": 2}.get(row)


# Batch arithmetic: the whole batch, what a process loads, what a device gets.


def _shard(batch: int, hosts: int, devices: int, *axes: str) -> int:
    mesh = AbstractMesh((hosts, devices), ("data", "model"))
    return NamedSharding(mesh, P(axes)).shard_shape((batch,))[0]


BATCH = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": lambda: _shard(1024, 16, 4, "data"),
    "batch 1024, 16 processes of 4 devices: examples a device gets": lambda: _shard(1024, 16, 4, "data", "model"),
    "the same, the 4 devices of a process share a model: examples a device gets": lambda: _shard(1024, 16, 4, "data"),
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": lambda: 16 * 48,
    "float32[1024, 256] by device_put: bytes each process reads": lambda: 1024 * 256 * FLOAT,
    "float32[1024, 256] from process-local data: bytes each process reads": lambda: 64 * 256 * FLOAT,
}

batch_arithmetic = TableExercise("batch_arithmetic", points=4, reference=lambda row: BATCH[row]())
batch_arithmetic.rows(BATCH)


@batch_arithmetic.mistake
def divided_by_devices(row):
    """That is a division by the number of all devices. Who loads is a process, and it loads for all its devices; and
    devices that share a model see the same examples."""
    keys = list(BATCH)
    return {keys[0]: 16, keys[2]: 16, keys[5]: 16 * 256 * FLOAT}.get(row)


@batch_arithmetic.mistake
def divided_by_processes(row):
    """That is what a process has. It deals its examples out to its four devices."""
    return {list(BATCH)[1]: 64}.get(row)


@batch_arithmetic.mistake
def took_it_for_the_whole(row):
    """Process-local data are *this process's part*. JAX multiplies by the number of processes over which the
    dimension is cut; it does not divide."""
    return {list(BATCH)[3]: 48}.get(row)


@batch_arithmetic.mistake
def put_only_a_part(row):
    """That is the part that a process needs. `device_put` is given the *whole* array in every process: whoever holds
    only a part uses the other function."""
    return {list(BATCH)[4]: 64 * 256 * FLOAT}.get(row)


# Three ways to show an array that spans processes.


def _shown(process_id, num_processes, *, rows):
    return {"mine": rows[process_id], "whole": np.concatenate(rows)}


print_it = ProcessExercise("print_it", points=4, reference=_shown)


@print_it.cases
def _(draw):
    (width,) = draw.lengths(1, divisible_by=3)
    yield Case({"rows": PerProcess(tuple(draw.values(PROCESSES, 2, width)))}, HERE)


def _by_rows(process_id, num_processes, rows):
    mesh = _joined(process_id, num_processes)
    return mesh, jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)


@print_it.mistake
def fetched(process_id, num_processes, *, rows):
    """NumPy wants all the values, and most are on devices that this process cannot reach. The message names two ways;
    the third is to let every device have a copy first."""
    _, whole = _by_rows(process_id, num_processes, rows)
    return {"mine": np.asarray(whole.addressable_shards[0].data), "whole": np.asarray(whole)}


def untiled(process_id, num_processes, *, rows):
    """`process_allgather` *stacks* what the processes give, unless told otherwise; of an array that is already global
    there is nothing to stack. Which argument puts the parts back in their places?"""
    _, whole = _by_rows(process_id, num_processes, rows)
    return {"mine": rows, "whole": multihost_utils.process_allgather(whole)}


if "arrays only supports" in inspect.getsource(multihost_utils):  # JAX 0.7 takes it for tiled
    print_it.mistake(untiled)


@print_it.mistake
def only_what_it_reaches(process_id, num_processes, *, rows):
    """For "whole" it returns the rows of this process alone. What a process can read without sending anything, its
    `addressable_shards` or what it has laid out itself, is enough for "mine". How does it see those of others'?"""
    _, whole = _by_rows(process_id, num_processes, rows)
    mine = np.asarray(whole.addressable_shards[0].data)
    return {"mine": mine, "whole": mine}


@print_it.mistake
def copies_counted(process_id, num_processes, *, rows):
    """The rows of this process are there twice: P("data") leaves a copy on each of its two devices, and each of
    them has a shard. A shard's `replica_id` tells copies apart."""
    mesh, whole = _by_rows(process_id, num_processes, rows)
    mine = np.concatenate([np.asarray(shard.data) for shard in whole.addressable_shards])
    return {"mine": mine, "whole": np.asarray(jax.device_put(whole, NamedSharding(mesh, P())))}


@print_it.mistake
def stacked(process_id, num_processes, *, rows):
    """The values are all there, in an array of one dimension more: one entry for each process. The global array
    has their rows one below the other."""
    return {"mine": rows, "whole": _stacked(process_id, num_processes, rows)}


def _stacked(process_id, num_processes, rows):
    _joined(process_id, num_processes)
    return multihost_utils.process_allgather(rows)


@print_it.mistake
def replicated_by_one(process_id, num_processes, *, rows):
    """Process 0 waits. To make copies on all devices is a collective: does it stand under `if process_id == 0`? Let all
    make the copies; then let one of them print."""
    mesh, whole = _by_rows(process_id, num_processes, rows)
    mine = np.asarray(whole.addressable_shards[0].data)
    if process_id == 0:
        return {"mine": mine, "whole": np.asarray(jax.device_put(whole, NamedSharding(mesh, P())))}
    return {"mine": mine, "whole": mine}


# From what each process has loaded.


def _batch(process_id, num_processes, *, examples, step, batch):
    per = batch // num_processes
    whole = np.concatenate([_rows(of_process, step, batch, k, per) for k, of_process in enumerate(examples)])
    return {"batch": held(whole, GRID, P("data"), process_id), "sum": float(np.sum(whole))}


loader = ProcessExercise("loader", points=5, reference=_batch)


@loader.cases
def _(draw):
    batch, steps = PROCESSES * DEVICES * int(draw.rng.integers(1, 3)), 3
    files = (OnFile(values, values.size // steps // PROCESSES) for values in draw.values(PROCESSES, steps * batch, 3))
    yield Case({"examples": PerProcess(tuple(files)), "step": int(draw.rng.integers(1, steps)), "batch": batch}, HERE)


def _made(mesh, rows, *axes):
    array = jax.make_array_from_process_local_data(NamedSharding(mesh, P(*axes)), rows)
    return {"batch": array, "sum": float(jnp.sum(array))}


def _rows(examples, step, batch, process_id, per):
    begin = step * batch + process_id * per
    return examples[begin : begin + per]


@loader.mistake
def whole_batch(process_id, num_processes, *, examples, step, batch):
    """More rows were read than this process needs: the whole batch has a part for each process. How many rows are
    *this* one's, and at which row do they begin? (Who gives the whole batch to JAX without saying so gets an array with
    as many copies of it as there are processes, and no complaint.)"""
    return _made(_joined(process_id, num_processes), examples[step * batch : (step + 1) * batch], "data")


@loader.mistake
def per_device_share(process_id, num_processes, *, examples, step, batch):
    """The global batch has too few rows, by a factor: the number of devices in a process. That is the share of one
    device. A process loads for all that it drives."""
    mesh = _joined(process_id, num_processes)
    return _made(mesh, _rows(examples, step, batch, process_id, batch // mesh.size), "data")


@loader.mistake
def first_rows_for_all(process_id, num_processes, *, examples, step, batch):
    """The shape is right, and every process loaded the same rows: those of process 0, four times, and three quarters of
    the batch are never seen. Where does this process's part begin?"""
    mesh = _joined(process_id, num_processes)
    return _made(mesh, _rows(examples, step, batch, 0, batch // num_processes), "data")


@loader.mistake
def counted_in_its_own_rows(process_id, num_processes, *, examples, step, batch):
    """The steps are as far apart as the rows of one process. All of them together use up `batch` rows in a step: so
    many come before the next."""
    per = batch // num_processes
    begin = (step + process_id) * per
    return _made(_joined(process_id, num_processes), examples[begin : begin + per], "data")


@loader.mistake
def dealt_out_in_turn(process_id, num_processes, *, examples, step, batch):
    """The rows of the step were dealt out in turn: one to process 0, the next to process 1. The file is used up in
    order: process 0 takes its rows one after the other, and process 1 goes on where these end."""
    mesh, begin = _joined(process_id, num_processes), step * batch
    return _made(mesh, examples[begin + process_id : begin + batch : num_processes], "data")


@loader.mistake
def always_the_first_step(process_id, num_processes, *, examples, step, batch):
    """These are the rows of step 0, whichever step it is. How many examples have been used up before this step?"""
    mesh = _joined(process_id, num_processes)
    return _made(mesh, _rows(examples, 0, batch, process_id, batch // num_processes), "data")


@loader.mistake
def said_to_be_replicated(process_id, num_processes, *, examples, step, batch):
    """P() says that every device holds the same, and each process brought something else: an array whose copies differ,
    without a word from JAX. Rows that differ from process to process have to be cut along the axis of the
    processes."""
    mesh = _joined(process_id, num_processes)
    return _made(mesh, _rows(examples, step, batch, process_id, batch // num_processes))


@loader.mistake
def cut_inside_the_process(process_id, num_processes, *, examples, step, batch):
    """'model' is inside each process, and processes differ along 'data'. Cut over 'model' alone, every process has a
    whole array of its own under the same name, and sums differ from process to process. JAX does not
    notice."""
    mesh = _joined(process_id, num_processes)
    return _made(mesh, _rows(examples, step, batch, process_id, batch // num_processes), "model")


@loader.mistake
def summed_its_own_rows(process_id, num_processes, *, examples, step, batch):
    """The batch is right, and the sum is that of this process's rows: another in every process. Ask the global batch
    for it, and the processes will tell each other."""
    mesh = _joined(process_id, num_processes)
    rows = _rows(examples, step, batch, process_id, batch // num_processes)
    return _made(mesh, rows, "data") | {"sum": float(np.sum(rows))}


# From arrays that are on single devices already.


def _assembled(process_id, num_processes, *, parts):
    pieces = [piece for of_process in parts for piece in of_process]
    whole = np.concatenate(pieces)
    return {"array": held(whole, GRID, P(("data", "model")), process_id), "sum": float(np.sum(whole))}


from_single_devices = ProcessExercise("from_single_devices", points=4, reference=_assembled)


@from_single_devices.cases
def _(draw):
    rows, width = (int(draw.rng.integers(2, 4)), 5)
    values = draw.values(PROCESSES, DEVICES, rows, width)
    yield Case({"parts": PerProcess(tuple(list(of_process) for of_process in values))}, HERE)


def _assemble(mesh, shape, pieces):
    sharding = NamedSharding(mesh, P(("data", "model")))
    array = jax.make_array_from_single_device_arrays(shape, sharding, pieces)
    return {"array": array, "sum": float(jnp.sum(array))}


def _whole_shape(parts):
    return (jax.device_count() * parts[0].shape[0], *parts[0].shape[1:])


@from_single_devices.mistake
def a_piece_is_missing(process_id, num_processes, *, parts):
    """JAX expects a piece for each device of this process, no fewer. A list of one holds half of what this
    process has to give."""
    mesh = _joined(process_id, num_processes)
    return _assemble(mesh, _whole_shape(parts), [jax.device_put(parts[0], jax.local_devices()[0])])


@from_single_devices.mistake
def all_on_one_device(process_id, num_processes, *, parts):
    """Both pieces are on the first device: that is where arrays go when nobody says where. This function moves nothing.
    Put each piece on its own of `jax.local_devices()`."""
    return _assemble(_joined(process_id, num_processes), _whole_shape(parts), [jnp.asarray(part) for part in parts])


@from_single_devices.mistake
def shape_of_this_process(process_id, num_processes, *, parts):
    """The shape that is asked for is that of the *global* array, of all processes together. The one that was given,
    divided among all devices, leaves less for each than a piece holds."""
    mesh = _joined(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices(), strict=True)]
    rows = -(-len(parts) * parts[0].shape[0] // jax.device_count()) * jax.device_count()  # so that it divides
    return _assemble(mesh, (rows, *parts[0].shape[1:]), pieces)


@from_single_devices.mistake
def a_dimension_more(process_id, num_processes, *, parts):
    """Each piece has a dimension more than the array it is a part of. A shard has the rank of the whole; only its
    lengths are shorter."""
    mesh = _joined(process_id, num_processes)
    pieces = [jax.device_put(part[None], device) for part, device in zip(parts, jax.local_devices(), strict=True)]
    return _assemble(mesh, _whole_shape(parts), pieces)


@from_single_devices.mistake
def on_each_others_device(process_id, num_processes, *, parts):
    """The two pieces of a process are on each other's devices. The order of the list does not matter: where a piece
    goes in the array is decided by the device it is on."""
    mesh = _joined(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices()[::-1], strict=True)]
    return _assemble(mesh, _whole_shape(parts), pieces)


@from_single_devices.mistake
def summed_its_own_parts(process_id, num_processes, *, parts):
    """The array is right, and the sum is that of this process's parts: another in every process. Ask the global array
    for it, and the processes will tell each other."""
    mesh = _joined(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices(), strict=True)]
    return _assemble(mesh, _whole_shape(parts), pieces) | {"sum": float(np.sum(parts))}


# From a function that is asked for one block after the other.


def _called_back(process_id, num_processes, *, table):
    rows = table[0].shape[0] // num_processes
    whole = np.concatenate([copy[k * rows : (k + 1) * rows] for k, copy in enumerate(table)])
    array = held(whole, GRID, P("data", "model"), process_id)
    return {"array": array, "sum": float(np.sum(whole)), "read": whole.size // num_processes}


from_callback = ProcessExercise("from_callback", points=4, reference=_called_back)


@from_callback.cases
def _(draw):
    rows, columns = draw.lengths(2, divisible_by=PROCESSES)
    files = (OnFile(values, values.size // PROCESSES) for values in draw.values(PROCESSES, rows, columns))
    yield Case({"table": PerProcess(tuple(files))}, HERE)


def _called(mesh, shape, load):
    array = jax.make_array_from_callback(shape, NamedSharding(mesh, P("data", "model")), load)
    return {"array": array, "sum": float(jnp.sum(array))}


@from_callback.mistake
def read_it_all(process_id, num_processes, *, table):
    """A process has read more of its table than the blocks of its own devices. With a table that fills a disk that is
    the end. Read what the callback is asked for, no more: the index that it is given says which rows and columns."""
    cut = NamedSharding(_joined(process_id, num_processes), P("data", "model"))
    array = jax.make_array_from_process_local_data(cut, table[:], table.shape)
    return {"array": array, "sum": float(jnp.sum(array)), "read": table.size}


@from_callback.mistake
def first_block_for_all(process_id, num_processes, *, table):
    """Each block has the right shape, and all of them are the first. The index says *where* in the table a
    block begins."""
    mesh = _joined(process_id, num_processes)
    rows, columns = (length // size for length, size in zip(table.shape, mesh.devices.shape, strict=True))
    called = _called(mesh, table.shape, lambda index: table[:rows, :columns])
    return called | {"read": rows * columns * mesh.devices.shape[1]}


@from_callback.mistake
def summed_its_own_table(process_id, num_processes, *, table):
    """The array is right, and the sum is that of the blocks which this process read. The array has those of all
    processes in it: ask the array for its sum."""
    blocks = []

    def load(index):
        blocks.append(table[index])
        return blocks[-1]

    called = _called(_joined(process_id, num_processes), table.shape, load)
    return called | {"sum": float(sum(map(np.sum, blocks))), "read": table.size // num_processes}
