"""§ 2, 3, 5–7, 10, the functions: of shapes, specs, and meshes, and of arrays that are on devices."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import axes_of, blocks
from grader.arrays.described import OnDevices, OnMesh
from grader.arrays.meshes import make_mesh
from grader.arrays.numbers import same_value
from grader.exercises import Case, Draw, FunctionExercise

MESH = {"x": 4, "y": 2}  # the mesh of the lesson
TALL, WIDE, CUBE = OnMesh(MESH), OnMesh({"x": 2, "y": 4}), OnMesh({"x": 2, "y": 2, "z": 2})
SHUFFLED = OnMesh(MESH, order=(0, 1, 3, 2, 6, 7, 5, 4))  # as on a ring of chips: a place is no device's number


def cuts(shape: Sequence[int], spec: P) -> list[tuple[str, ...]]:
    """For each dimension of an array, the mesh axes that cut it."""
    return [*map(axes_of, spec), *[()] * (len(shape) - len(spec))]


def every_spec(rank: int, axes: Sequence[str]) -> Iterator[P]:
    """Every spec for an array of this rank that names each axis at most once, in every order."""
    for places in itertools.product(range(rank + 1), repeat=len(axes)):  # the last place: it cuts nothing
        chosen = [[a for a, place in zip(axes, places, strict=True) if place == dim] for dim in range(rank)]
        for ordered in itertools.product(*map(itertools.permutations, chosen)):
            yield P(*(None if not o else o[0] if len(o) == 1 else o for o in ordered))


# Put an array on a mesh.


def _distributed(value, spec, mesh):
    return jax.device_put(value, NamedSharding(mesh, spec))


distribute = FunctionExercise("distribute", points=1, reference=_distributed)


@distribute.cases
def _(draw):
    specs = P("x", "y"), P(None, "batch"), P("y"), P(("y", "x")), P(None, "y", "x")
    for spec, mesh in zip(specs, (TALL, OnMesh({"batch": 4, "model": 2}), WIDE, SHUFFLED, WIDE), strict=True):
        shape = draw.lengths(max(2, len(spec)), divisible_by=8)
        yield Case({"value": draw.values(*shape), "spec": spec, "mesh": mesh})


@distribute.mistake
def left_on_one_device(value, spec, mesh):
    """The result isn't on the mesh: it is still a NumPy array, or all of it is on one device, where JAX puts a new
    `jax.Array`. A mesh and a spec say where the blocks belong. Which function moves an array there?"""
    return jnp.asarray(value)


@distribute.mistake
def copied_to_every_device(value, spec, mesh):
    """Every device holds the full array. That is what an empty spec means: no mesh axis splits anything. Does the
    function use the spec that it is given?"""
    return _distributed(value, P(), mesh)


@distribute.mistake
def reversed_the_spec(value, spec, mesh):
    """The array is sharded with the entries of the spec in reverse order. The first entry belongs to the first
    dimension of the array. Which dimension is that?"""
    whole = [*spec, *[None] * (value.ndim - len(spec))]
    return _distributed(value, P(*whole[::-1]), mesh)


@distribute.mistake
def built_a_mesh_of_its_own(value, spec, mesh):
    """The array is on a 4 × 2 mesh with axes x and y, whatever mesh the function is given. The check uses other
    meshes. Which argument has the mesh?"""
    return _distributed(value, spec, make_mesh(MESH))


# The shape of one device's block.


def _shard_shape(shape, spec, axis_sizes):
    return tuple(part.stop - part.start for part in blocks(shape, spec, axis_sizes).indices[0])


def _same_lengths(one, other, **_):
    """Whether both are the same shape: an array of 16.0 rows cannot be made."""
    return same_value(one, other) and np.asarray(one).dtype.kind == np.asarray(other).dtype.kind


shard_shape = FunctionExercise("shard_shape", points=3, reference=_shard_shape, same=_same_lengths)

SPECS = (P("x", "y"), P("y", "x"), P("x"), P(None, "y"), P(("x", "y")), P("x", None), P())


@shard_shape.by_formula
def _axis_by_axis(shape, spec, axis_sizes):
    entries = [*spec, *[None] * (len(shape) - len(spec))]
    block = []
    for length, entry in zip(shape, entries, strict=True):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        for axis in axes:
            length //= axis_sizes[axis]
        block.append(length)
    return tuple(block)


@shard_shape.cases
def _(draw):
    for sizes in (MESH, {"x": 2, "y": 4}):
        for spec in SPECS:
            yield _on(draw, spec, sizes, 2)
    yield _on(draw, P("z", None, ("x", "y")), {"x": 2, "y": 8, "z": 4}, 3)
    yield _on(draw, P(None, "model"), {"data": 8, "model": 16}, 3)
    yield _on(draw, P(("b", "c", "a")), {"a": 2, "b": 4, "c": 2}, 2)


def _on(draw: Draw, spec: P, sizes: Mapping[str, int], rank: int) -> Case:
    return Case({"shape": draw.lengths(rank, divisible_by=16), "spec": spec, "axis_sizes": dict(sizes)})


def _divided(shape: Sequence[int], spec: P, parts: Callable[[tuple[str, ...]], int]) -> tuple[int, ...]:
    return tuple(n // parts(axes) for n, axes in zip(shape, cuts(shape, spec), strict=True))


@shard_shape.mistake
def divided_by_every_device(shape, spec, axis_sizes):
    """A dimension that is split was divided by the number of all devices. How many devices are there *along the
    axis* that splits it?"""
    return _divided(shape, spec, lambda axes: math.prod(axis_sizes.values()) if axes else 1)


@shard_shape.mistake
def took_the_first_of_a_tuple(shape, spec, axis_sizes):
    """For an entry such as `("x", "y")`, only the first axis was used. One dimension can be split over several
    axes. Into how many parts does that split it in all?"""
    return _divided(shape, spec, lambda axes: axis_sizes[axes[0]] if axes else 1)


@shard_shape.mistake
def added_the_sizes(shape, spec, axis_sizes):
    """The sizes of the axes in a tuple were added. Split into 4 parts, and then split each of those into 2. How
    many parts do you have?"""
    return _divided(shape, spec, lambda axes: sum(axis_sizes[a] for a in axes) or 1)


@shard_shape.mistake
def took_axes_by_place(shape, spec, axis_sizes):
    """If the first dimension is split, it was divided by the first axis of the mesh, and the second dimension by
    the second axis. But an entry of a spec *names* its axis. Does the order of the axes in the mesh matter here?"""
    sizes = [*axis_sizes.values(), 1]
    return tuple(
        n // (sizes[k] if axes else 1) for k, (n, axes) in enumerate(zip(shape, cuts(shape, spec), strict=True))
    )


@shard_shape.mistake
def stopped_with_the_spec(shape, spec, axis_sizes):
    """The result has fewer dimensions than the array. A spec can be shorter than the shape. What does it say about
    the dimensions that it doesn't mention?"""
    return _divided(shape, spec, lambda axes: math.prod(axis_sizes[a] for a in axes))[: len(spec)]


@shard_shape.mistake
def looked_none_up(shape, spec, axis_sizes):
    """None was looked up as if it were an axis. It is a placeholder, so that the entries after it keep their
    position. Into how many parts does it split its dimension?"""
    return tuple(
        n // (axis_sizes[e] if not isinstance(e, tuple) else math.prod(axis_sizes[a] for a in e))
        for n, e in itertools.zip_longest(shape, spec)
    )


@shard_shape.mistake
def lengths_as_floats(shape, spec, axis_sizes):
    """The values are correct, but they are floats: `/` gives 16.0, and no array has 16.0 rows. Which division in
    Python gives a whole number?"""
    due = _shard_shape(shape, spec, axis_sizes)
    return tuple(n if n == length else float(n) for n, length in zip(due, shape, strict=True))


@shard_shape.mistake
def all_lengths_as_floats(shape, spec, axis_sizes):
    """The values are correct, but all of them are floats, because `/` always returns one. Which division in Python
    returns a whole number?"""
    return tuple(map(float, _shard_shape(shape, spec, axis_sizes)))


@shard_shape.mistake
def cut_in_the_order_of_the_mesh(shape, spec, axis_sizes):
    """The first dimension is divided by the first axis of the mesh, and so on, whatever the spec says. Where does
    the spec say which axes split a dimension?"""
    return tuple(length // size for length, size in zip(shape, axis_sizes.values(), strict=False))


@shard_shape.mistake
def sizes_of_the_notebooks_mesh(shape, spec, axis_sizes):
    """Here x counts as four devices and y as two, as on the notebook's mesh. Which argument says how many there are
    on this one?"""
    return _axis_by_axis(shape, spec, {"x": 4, "y": 2})


@shard_shape.mistake
def asked_the_notebooks_mesh(shape, spec, axis_sizes):
    """This is the shape on the notebook's mesh, with four devices along x and two along y. Which argument has the
    names and sizes of this mesh?"""
    return NamedSharding(make_mesh(MESH), spec).shard_shape(tuple(shape))


@shard_shape.mistake
def counted_parts(shape, spec, axis_sizes):
    """This is the number of parts of each dimension. How long is one of these parts?"""
    return tuple(math.prod(axis_sizes[a] for a in axes) for axes in cuts(shape, spec))


# Which device holds which slices.


def _shard_table(shape, spec, mesh):
    held = NamedSharding(mesh, spec).devices_indices_map(tuple(shape))
    return {device.id: part for device, part in held.items()}


def _same_table(one, other, shape, spec, mesh):
    return _bounds(one, shape) == _bounds(other, shape)


def _bounds(table: Mapping[str, Sequence[str]], shape: Sequence[int]) -> dict[str, list[tuple[int, ...]]]:
    """Slices such as `0:4`, and `:` for a whole dimension, as numbers; as many as there are."""
    return {device: _all_ends(parts, shape) for device, parts in table.items()}


def _all_ends(parts: Sequence[str], shape: Sequence[int]) -> list[tuple[int, ...]]:
    return [_ends(part, length) for part, length in zip(parts, [*shape, *[0] * len(parts)], strict=False)]


def _ends(part: str, length: int) -> tuple[int, ...]:
    return slice(*(int(end) if end else None for end in part.split(":"))).indices(length)


shard_table = FunctionExercise("shard_table", points=5, reference=_shard_table, same=_same_table)


@shard_table.cases
def _(draw):
    for spec in (P("x", "y"), P("y", "x"), P("x"), P(("x", "y")), P(("y", "x"), None), P()):
        yield _laid(draw, spec, TALL, 2)
    yield _laid(draw, P(None, "model"), OnMesh({"data": 2, "model": 2}), 2)  # over some devices
    yield _laid(draw, P(None, "y"), WIDE, 2)
    yield _laid(draw, P("x", "y"), SHUFFLED, 2)
    yield _laid(draw, P(None, ("z", "x"), "y"), CUBE, 3)
    yield _laid(draw, P(None, ("y", "x", "z")), OnMesh({"x": 4, "y": 2, "z": 1}), 2)


def _laid(draw: Draw, spec: P, mesh: OnMesh, rank: int) -> Case:
    return Case({"shape": draw.lengths(rank, divisible_by=8), "spec": spec, "mesh": mesh})


def _table(shape, spec, mesh, part):
    """A table by `part(place, length, axes)`: the slice of a dimension that the device at this place holds."""
    return {
        device.id: tuple(
            part(dict(zip(mesh.axis_names, place, strict=True)), n, axes)
            for n, axes in zip(shape, cuts(shape, spec), strict=True)
        )
        for place, device in np.ndenumerate(mesh.devices)
    }


def _part(sizes: Mapping[str, int]):
    """The right slice: the axes that cut a dimension are counted like digits, the first one the slowest."""

    def part(place, length, axes):
        number, step = 0, length // math.prod(sizes[a] for a in axes)
        for axis in axes:
            number = number * sizes[axis] + int(place[axis])
        return slice(number * step, (number + 1) * step)

    return part


@shard_table.mistake
def dealt_blocks_out_in_order(shape, spec, mesh):
    """The blocks are assigned to the devices one after the other. But what a device holds follows from its
    *position in the mesh*, axis by axis. Which devices hold the same block?"""
    counts = [math.prod(mesh.shape[a] for a in axes) for axes in cuts(shape, spec)]
    steps = [n // count for n, count in zip(shape, counts, strict=True)]
    held = {}
    for k, device in enumerate(mesh.devices.flat):
        block = np.unravel_index(k % math.prod(counts), counts) if counts else ()
        held[device.id] = tuple(slice(int(b) * s, (int(b) + 1) * s) for b, s in zip(block, steps, strict=True))
    return held


@shard_table.mistake
def read_tuples_backwards(shape, spec, mesh):
    """In an entry such as `("x", "y")`, the axes were read from the wrong end. They count like the digits of a
    number. From one row block to the next, which axis changes, the first or the last?"""
    part = _part(mesh.shape)
    return _table(shape, spec, mesh, lambda place, n, axes: part(place, n, axes[::-1]))


@shard_table.mistake
def took_mesh_axes_in_order(shape, spec, mesh):
    """If a single axis splits dimension 0, it is split over the mesh's first axis here, and dimension 1 over the
    second, whichever axis the spec names. Which entry of the spec belongs to which dimension?"""
    by_place = P(*(mesh.axis_names[k] if isinstance(entry, str) else entry for k, entry in enumerate(spec)))
    return _table(shape, by_place, mesh, _part(mesh.shape))


@shard_table.mistake
def forgot_whole_dimensions(shape, spec, mesh):
    """Some devices have fewer slices than the array has dimensions. A dimension that the spec doesn't mention needs
    a slice too. Which part of it does every device hold?"""
    return {device: parts[: len(spec)] for device, parts in _table(shape, spec, mesh, _part(mesh.shape)).items()}


@shard_table.mistake
def started_every_block_at_zero(shape, spec, mesh):
    """The blocks have the right size, but all of them start at 0, so every device holds the same corner. Where does
    the block of the device at index 2 along the axis start?"""
    part = _part(mesh.shape)
    return _table(shape, spec, mesh, lambda place, n, axes: part(dict.fromkeys(place, 0), n, axes))


@shard_table.mistake
def gave_start_and_length(shape, spec, mesh):
    """The second number of each slice is the length of the block. Which elements does `slice(4, 8)` take?"""
    part = _part(mesh.shape)

    def start_and_length(place, length, axes):
        right = part(place, length, axes)
        return slice(right.start, right.stop - right.start)

    return _table(shape, spec, mesh, start_and_length)


@shard_table.mistake
def stopped_at_the_last_entry(shape, spec, mesh):
    """Every slice ends one element too early. A slice names the first element that it takes, and the first that it
    does *not* take. How many elements does `slice(0, 6)` take?"""
    part = _part(mesh.shape)

    def up_to_the_last(place, length, axes):
        right = part(place, length, axes)
        return slice(right.start, right.stop - 1)

    return _table(shape, spec, mesh, up_to_the_last)


@shard_table.mistake
def took_the_place_for_the_number(shape, spec, mesh):
    """The slices are correct for each position in the mesh, but the devices of this mesh aren't in ID order. What
    does `mesh.devices` hold at each position?"""
    right = _table(shape, spec, mesh, _part(mesh.shape))
    return {k: right[device.id] for k, device in enumerate(mesh.devices.flat)}


@shard_table.mistake
def keyed_by_the_device_itself(shape, spec, mesh):
    """The slices are correct, but the keys are the devices themselves, and the exercise asks for their IDs. Which
    attribute of a device is its ID?"""
    right = _table(shape, spec, mesh, _part(mesh.shape))
    return {device: right[device.id] for device in mesh.devices.flat}


# How many bytes that takes.


def _bytes_held(shape, itemsize, spec, axis_sizes):
    held = blocks(shape, spec, axis_sizes)
    copies = sum(index == held.indices[0] for index in held.indices)
    return held.entries * itemsize, held.entries * itemsize * len(held.indices), copies


bytes_held = FunctionExercise("bytes_held", points=3, reference=_bytes_held)


@bytes_held.by_formula
def _block_by_block(shape, itemsize, spec, axis_sizes):
    one = itemsize
    for length in _axis_by_axis(shape, spec, axis_sizes):
        one *= length
    everything = one * math.prod(axis_sizes.values())
    return one, everything, everything // (math.prod(shape) * itemsize)


@bytes_held.cases
def _(draw):
    for sizes in (MESH, {"data": 2, "model": 4}, {"x": 2, "y": 8, "z": 4}, {"x": 4, "y": 4, "i": 2}):
        first, second, *_ = sizes
        for spec in (P(second), P(first, second), P(None, (first, second)), P()):
            yield Case(
                {
                    "shape": draw.lengths(len(sizes), divisible_by=16),
                    "itemsize": int(draw.rng.choice([2, 4])),
                    "spec": spec,
                    "axis_sizes": dict(sizes),
                }
            )


def _held(shape, itemsize, spec, axis_sizes):
    """The bytes of one block, and the sizes of the axes that the spec leaves out."""
    named = [a for axes in cuts(shape, spec) for a in axes]
    one = math.prod(shape) * itemsize // math.prod(axis_sizes[a] for a in named)
    return one, [size for a, size in axis_sizes.items() if a not in named]


@bytes_held.mistake
def forgot_the_copies(shape, itemsize, spec, axis_sizes):
    """The total is the array, counted once (`array.nbytes` is the same number). All devices together can hold more
    than that. What do devices hold that differ only along an axis that the spec doesn't name?"""
    one, left = _held(shape, itemsize, spec, axis_sizes)
    return one, math.prod(shape) * itemsize, math.prod(left)


@bytes_held.mistake
def divided_among_all(shape, itemsize, spec, axis_sizes):
    """This is what each device would hold if all of them shared the array. Only the axes that the spec names split
    it. What do the others do?"""
    devices, whole = math.prod(axis_sizes.values()), math.prod(shape) * itemsize
    return whole // devices, whole, 1


@bytes_held.mistake
def counted_entries(shape, itemsize, spec, axis_sizes):
    """The first two numbers count elements of the array, and the exercise asks for bytes. What does `itemsize` say,
    and which of the three numbers does it change?"""
    one, left = _held(shape, 1, spec, axis_sizes)
    return one, one * math.prod(axis_sizes.values()), math.prod(left)


@bytes_held.mistake
def counted_the_axes_left_out(shape, itemsize, spec, axis_sizes):
    """The bytes are correct. The last number counts the *axes* that the spec leaves out. How many devices are there
    along these axes?"""
    one, left = _held(shape, itemsize, spec, axis_sizes)
    return one, one * math.prod(axis_sizes.values()), len(left) or 1


@bytes_held.mistake
def added_the_axes_left_out(shape, itemsize, spec, axis_sizes):
    """The bytes are correct. The last number is the *sum* of the sizes of the axes that the spec leaves out. With
    two such axes, how many devices hold the same block?"""
    one, left = _held(shape, itemsize, spec, axis_sizes)
    return one, one * math.prod(axis_sizes.values()), sum(left) or 1


@bytes_held.mistake
def counted_the_others(shape, itemsize, spec, axis_sizes):
    """The bytes are correct. The last number is one too small, as if it counted only the *other* devices that hold
    a block. Does the device itself hold the block?"""
    one, left = _held(shape, itemsize, spec, axis_sizes)
    return one, one * math.prod(axis_sizes.values()), math.prod(left) - 1


@bytes_held.mistake
def counted_all_devices(shape, itemsize, spec, axis_sizes):
    """The bytes are correct. The last number is the number of all devices. Do all of them hold the same block?"""
    one, _ = _held(shape, itemsize, spec, axis_sizes)
    devices = math.prod(axis_sizes.values())
    return one, one * devices, devices


@bytes_held.mistake
def counted_the_blocks(shape, itemsize, spec, axis_sizes):
    """The bytes are correct. The last number is how many *different* blocks there are. How many devices hold each
    of them?"""
    one, left = _held(shape, itemsize, spec, axis_sizes)
    devices = math.prod(axis_sizes.values())
    return one, one * devices, devices // math.prod(left)


# How many layouts there are.


@functools.lru_cache
def _count(rank: int, axes: int) -> int:
    """Write down every spec and ask JAX who would hold what; different tables are counted."""
    names = "abc"[:axes]
    mesh = make_mesh(dict.fromkeys(names, 2))
    shape = (2**axes,) * rank
    tables = [NamedSharding(mesh, spec).devices_indices_map(shape).values() for spec in every_spec(rank, names)]
    return len({tuple(str(part) for part in table) for table in tables})


def _count_layouts(rank, axes):
    return _count(rank, axes)


count_shardings = FunctionExercise("count_shardings", points=3, reference=_count_layouts)


@count_shardings.cases
def _(draw):
    for rank, axes in ((2, 2), (1, 1), (2, 1), (1, 2), (3, 1), (3, 2), (1, 3), (2, 3), (3, 3), (0, 2)):
        yield Case({"rank": rank, "axes": axes})


@count_shardings.by_formula
def _chosen_axis_by_axis(rank, axes):
    total = 0
    for choice in itertools.product(range(rank + 1), repeat=axes):  # the last number: it cuts nothing
        orders = 1
        for dimension in range(rank):
            orders *= math.factorial(choice.count(dimension))
        total += orders
    return total


def _counted(rank, axes, keep):
    """How many of all specs are kept; `keep` is given the axes that cut each dimension."""
    names = "abc"[:axes]
    return sum(keep(cuts((1,) * rank, spec)) for spec in every_spec(rank, names))


def _in_order(entries):
    return all(list(axes) == sorted(axes) for axes in entries)


@count_shardings.mistake
def forgot_the_order(rank, axes):
    """This is the number of choices if each axis chooses a dimension, or none. But if two axes split the same
    dimension, their order matters: `P(("x", "y"))` and `P(("y", "x"))` give some devices different rows. How many
    orders do two axes have?"""
    return (rank + 1) ** axes


@count_shardings.mistake
def let_dimensions_choose(rank, axes):
    """This is the number of choices if every dimension chooses an axis, or none. Then two dimensions can choose the
    same axis, which JAX refuses, and no dimension can have two. How many choices does each *axis* have?"""
    return (axes + 1) ** rank


@count_shardings.mistake
def multiplied_dimensions_and_axes(rank, axes):
    """Dimensions times axes counts the shardings in which exactly one axis splits something. Can several axes split
    something, or none?"""
    return rank * axes


@count_shardings.mistake
def made_every_axis_cut(rank, axes):
    """This is the number of choices if each axis has to split a dimension. What do the devices along an axis hold
    if it splits none?"""
    return rank**axes


@count_shardings.mistake
def ordered_what_cuts_nothing(rank, axes):
    """The axes that split nothing were counted in every order, too. Order matters among axes that split the same
    dimension. Why doesn't it matter among those that split none?"""
    choices = itertools.product(range(rank + 1), repeat=axes)
    return sum(math.prod(math.factorial(choice.count(k)) for k in range(rank + 1)) for choice in choices)


@count_shardings.mistake
def left_out_tuples(rank, axes):
    """These are the shardings in which at most one axis splits each dimension. What about entries such as `("x",
    "y")`?"""
    return _counted(rank, axes, lambda entries: all(len(e) < 2 for e in entries))


@count_shardings.mistake
def put_tuples_only_first(rank, axes):
    """This is the number if only the first dimension can have several axes, in one order. Which other dimensions
    can be split over several axes?"""
    return _counted(rank, axes, lambda entries: all(len(e) < 2 for e in entries[1:]) and _in_order(entries))


# Put an array together from what the devices hold, and look whether copies agree.


def _assembled(array):
    whole, first = np.empty(array.shape, array.dtype), {}
    for shard in array.addressable_shards:
        block = np.asarray(shard.data)
        other = first.setdefault(str(shard.index), shard)
        if not np.array_equal(other.data, block):
            raise ValueError(f"devices {other.device.id} and {shard.device.id} should hold the same block, but don't")
        whole[shard.index] = block
    return whole


def _same_array(one, other, **_):
    return same_value(one, other) and np.asarray(one).dtype == np.asarray(other).dtype


assemble = FunctionExercise("assemble", points=4, reference=_assembled, same=_same_array)


@assemble.cases
def _(draw):
    for spec in (("x", "y"), ("x",), (None, "y"), (("y", "x"),), ()):
        yield Case({"array": OnDevices(draw.values(8, 16), TALL, P(*spec))})
    yield Case({"array": OnDevices(draw.values(4, 6, 8), CUBE, P("z", None, "x"))})
    yield Case({"array": OnDevices(draw.values(16).astype(np.int32), TALL, P("y"))})
    for spec, device, spoil in ((("x",), 5, _one_entry), ((None, "y"), 6, _two_swapped), ((), 7, _one_entry)):
        yield _with_an_odd_copy(draw, spec, device, spoil)
    yield _with_an_odd_copy(draw, (), 6, _one_bit)
    yield _with_an_odd_copy(draw, (None, "y"), 5, _one_entry)  # whose copies are on no neighbouring devices
    yield _with_an_odd_copy(draw, ("x",), 5, _one_entry, zeros=slice(4, 6))  # zero does not mean “not yet written”


def _one_entry(block: np.ndarray) -> None:
    block[-1, -1] += 1


def _one_bit(block: np.ndarray) -> None:
    """Copies are the same or not: near is not enough."""
    block[-1, -1] = np.nextafter(block[-1, -1], np.float32(np.inf))


def _two_swapped(block: np.ndarray) -> None:
    block[0, 0], block[1, 0] = block[1, 0], block[0, 0]


def _with_an_odd_copy(
    draw: Draw, spec: tuple, device: int, spoil: Callable[[np.ndarray], None], zeros=slice(0)
) -> Case:
    value = draw.values(8, 16)
    value[0] = value[1] + 1  # so that swapping two entries of a column changes something
    value[zeros] = 0
    odd = blocks(value.shape, P(*spec), MESH, value=value).values[device].copy()
    spoil(odd)
    return Case({"array": OnDevices(value, TALL, P(*spec), instead={device: odd})})


def _put_together(array, differ=lambda one, other: False):
    whole, first = np.empty(array.shape, array.dtype), {}
    for shard in array.addressable_shards:
        block = np.asarray(shard.data)
        if differ(first.setdefault(str(shard.index), block), block):
            raise ValueError("copies differ")
        whole[shard.index] = block
    return whole


@assemble.mistake
def kept_the_last_copy(array):
    """The blocks are in the correct positions, and of several replicas the last one is kept, whether or not they
    agree. No error is raised (printing one isn't enough). Before a block is written, has another device already
    provided this part, and is it the same?"""
    return _put_together(array)


@assemble.mistake
def trusted_numpy(array):
    """An array that claims to be replicated can hold different values, and this function doesn't notice.
    `np.asarray` reads a single replica of each block. Which attribute of the array has all of them?"""
    return np.asarray(array)


@assemble.mistake
def averaged_the_copies(array):
    """The replicas of a block were averaged. If they are equal, that changes nothing. If they differ, the mean is a
    value that no device holds. What should happen instead?"""
    held: dict[str, list] = {}
    for shard in array.addressable_shards:
        held.setdefault(str(shard.index), []).append((shard.index, np.asarray(shard.data)))
    whole = np.empty(array.shape, array.dtype)
    for copies in held.values():
        whole[copies[0][0]] = np.mean([block for _, block in copies], axis=0)
    return whole


@assemble.mistake
def compared_sums(array):
    """Two replicas passed although elements of one of them are in a different order. That happens if only their
    sums, or some of their elements, are compared. Which function compares all elements?"""
    return _put_together(array, lambda one, other: one.sum() != other.sum())


@assemble.mistake
def checked_whole_copies_only(array):
    """Replicas that differ are noticed only if every device holds the full array. With `P("x")` there are replicas
    too. Which devices hold the same rows?"""
    return _put_together(array, lambda one, other: array.is_fully_replicated and not np.array_equal(one, other))


@assemble.mistake
def compared_with_the_shard_before(array):
    """The function raised a ValueError although no replicas differ, because it compared different blocks of the
    array. Two shards should be the same if their `index` is the same. Which of the earlier shards has to be
    compared with this one?"""
    whole, before = np.empty(array.shape, array.dtype), None
    for shard in array.addressable_shards:
        if before is not None and not np.array_equal(before, shard.data):
            raise ValueError("copies differ")
        before = whole[shard.index] = np.asarray(shard.data)
    return whole


@assemble.mistake
def near_is_enough(array):
    """Replicas that differ by a rounding error passed, as with `np.allclose`. Replicas of a block have the same
    bits. Which function compares exactly?"""
    whole, first = np.empty(array.shape, array.dtype), {}
    for shard in array.addressable_shards:
        if not np.allclose(first.setdefault(str(shard.index), shard).data, shard.data):
            raise ValueError("copies differ")
        whole[shard.index] = np.asarray(shard.data)
    return whole


@assemble.mistake
def compared_neighbours_only(array):
    """With `P(None, "y")`, the replicas are on devices 0, 2, 4, and 6, so no two of them are neighbors in the list,
    and one that differs wasn't noticed. Which earlier shards have the same `index`?"""
    whole, before = np.empty(array.shape, array.dtype), None
    for shard in array.addressable_shards:
        if before is not None and before.index == shard.index and not np.array_equal(before.data, shard.data):
            raise ValueError("copies differ")
        before, whole[shard.index] = shard, np.asarray(shard.data)
    return whole


@assemble.mistake
def stacked_in_the_order_of_devices(array):
    """The blocks were concatenated, in the order of the devices. Columns can be split too, and replicas occur more
    than once. Which attribute of a shard says where its block belongs?"""
    return np.concatenate([np.asarray(shard.data) for shard in array.addressable_shards])


@assemble.mistake
def added_copies_up(array):
    """Every block was *added* where it belongs, so elements with several replicas are counted several times. Is a
    replica a partial sum, or the same value again?"""
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        whole[shard.index] += np.asarray(shard.data)
    return whole


@assemble.mistake
def in_numpys_own_dtype(array):
    """The values are correct, but not their type: `np.zeros` and `np.empty` create float64 by default. Which dtype
    does the array have?"""
    return _assembled(array).astype(np.float64)


@assemble.mistake
def took_zero_for_not_written(array):
    """A replica that differs wasn't noticed if the other one is all zeros. That happens if zeros stand for a part
    that isn't written yet. How else can the function remember which parts have been written?"""
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        if whole[shard.index].any() and not np.array_equal(whole[shard.index], shard.data):
            raise ValueError("copies differ")
        whole[shard.index] = shard.data
    return whole
