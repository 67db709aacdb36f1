"""Answers to lesson 01, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

read_devices__right_read = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 7,
    "processes": 1,
}
# took each entry for a chip
read_devices__wrong_chips = read_devices__right_read | {"chips": 8}
# read coords as (row, column)
read_devices__wrong_place = read_devices__right_read | {"place of device 5": (1, 0, 0)}
# the place without its layer
read_devices__wrong_flat_place = read_devices__right_read | {"place of device 5": (0, 1)}
# took 5 and 6 for a pair
read_devices__wrong_partner = read_devices__right_read | {"on one chip with device 6": 5}
# one process for each device
read_devices__wrong_processes = read_devices__right_read | {"processes": 8}
# the index of the process in place of the number of processes
read_devices__wrong_index = read_devices__right_read | {"processes": 0}

setup_cells__right_letters = {"config": ["A", "C", "B", "D", "E"], "flag": ["A", "C", "B", "D", "E"]}
setup_cells__right_words = {"config": "ABCED", "flag": "BACED"}
# the order in which the cells stand
setup_cells__wrong_as_printed = {"config": list("ABCDE"), "flag": list("ABDCE")}
# the flag after the first look at the devices
setup_cells__wrong_flag_late = {"config": list("ABCDE"), "flag": list("ABDCE")}
# config after the first computation
setup_cells__wrong_config_late = {"config": list("ABDCE"), "flag": list("ACBDE")}
# the other variable of the two
setup_cells__wrong_variable = {"config": list("ACBDE"), "flag": list("AFBDE")}
# config before the import that it needs
setup_cells__wrong_before_import = {"config": list("CABDE"), "flag": list("ACBDE")}
# kept the useless cell
setup_cells__wrong_kept = {"config": list("ABCDE"), "flag": list("ACFBDE")}
# left D out
setup_cells__wrong_short = {"config": list("ABCE"), "flag": list("ACBE")}

array_facts__right_asked = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 1,
    "devices of z": 8,
}
# believes that a spread array is a list of its pieces
array_facts__wrong_list = array_facts__right_asked | {"type of y": "a list of arrays"}
# believes that JAX spreads at once
array_facts__wrong_spread = array_facts__right_asked | {"devices of x": 8, "devices of x afterwards": 8}
# believes that device_put moves the array itself
array_facts__wrong_moved = array_facts__right_asked | {"devices of x afterwards": 8}
# the shape of a shard for that of the array
array_facts__wrong_shape = array_facts__right_asked | {"shape of y": (16, 32)}
# believes that a result comes back to one device
array_facts__wrong_back = array_facts__right_asked | {"devices of z": 1}


def device_grid__right_prod(shape, names):
    """The plain way."""
    return np.arange(np.prod(shape)).reshape(shape)


def device_grid__right_loop(shape, names):
    """Counts places one by one."""
    grid = np.zeros(shape, dtype=int)
    for number, place in enumerate(np.ndindex(*shape)):
        grid[place] = number
    return grid


def device_grid__wrong_eight(shape, names):
    """Every mesh has eight devices."""
    return np.arange(8).reshape(shape)


def device_grid__wrong_from_one(shape, names):
    """Counts from one."""
    return np.arange(1, np.prod(shape) + 1).reshape(shape)


def device_grid__wrong_fortran(shape, names):
    """The first axis runs fastest."""
    return np.arange(np.prod(shape)).reshape(shape, order="F")


def device_grid__wrong_two_axes(shape, names):
    """A mesh has two axes."""
    return np.arange(shape[0] * shape[1]).reshape(shape[0], shape[1])


def device_grid__wrong_no_return(shape, names):
    """Forgot to return."""
    grid = np.arange(np.prod(shape)).reshape(shape)


def device_grid__wrong_mesh(shape, names):
    """Made a mesh and returned its devices, not their ids."""
    return jax.make_mesh(shape, names).devices


def device_grid__right_list(shape, names):
    """A nested list, no array: check takes one for the other, as everywhere."""
    return np.arange(np.prod(shape)).reshape(shape).tolist()


def device_grid__wrong_transposed(shape, names):
    """The axes in the other order."""
    return np.arange(np.prod(shape)).reshape(shape).T


mesh_or_error__right_counted = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}
# the places that were asked for
mesh_or_error__wrong_sixteen = mesh_or_error__right_counted | {'jax.make_mesh((4, 4), ("x", "y"))': 16}
# believes that a text is five names
mesh_or_error__wrong_comma = mesh_or_error__right_counted | {'jax.make_mesh((8,), ("batch"))': "error"}
# believes that sizes have to divide eight
mesh_or_error__wrong_six = mesh_or_error__right_counted | {'jax.make_mesh((3, 2), ("rows", "columns"))': "error"}
# believes that Mesh arranges
mesh_or_error__wrong_flat = mesh_or_error__right_counted | {'Mesh(np.array(jax.devices()), ("x", "y"))': 8}
# believes that one name is stretched
mesh_or_error__wrong_one_name = mesh_or_error__right_counted | {'jax.make_mesh((4, 2), ("data",))': 4}
# believes that a slice of the devices is refused
mesh_or_error__wrong_slice = mesh_or_error__right_counted | {'Mesh(np.array(jax.devices()[4:]), ("x",))': "error"}


def put_on_mesh__right_star(value, spec, on=None):
    """The plain way."""
    if on is None:
        on = mesh
    return jax.device_put(value, NamedSharding(on, P(*spec)))


def put_on_mesh__right_default(value, spec, on=None):
    """Chooses in the expression."""
    sharding = NamedSharding(mesh if on is None else on, P(*spec))
    return jax.device_put(jnp.asarray(value), sharding)


def put_on_mesh__wrong_no_star(value, spec, on=None):
    """Forgot the star: one tuple as the first entry."""
    if on is None:
        on = mesh
    return jax.device_put(value, NamedSharding(on, P(spec)))


def put_on_mesh__wrong_always_mesh(value, spec, on=None):
    """Ignores `on`."""
    return jax.device_put(value, NamedSharding(mesh, P(*spec)))


def put_on_mesh__wrong_no_default(value, spec, on=None):
    """Forgot the default."""
    return jax.device_put(value, NamedSharding(on, P(*spec)))


def put_on_mesh__wrong_no_return(value, spec, on=None):
    """Forgot to return."""
    on = on or mesh
    y = jax.device_put(value, NamedSharding(on, P(*spec)))


def put_on_mesh__wrong_sharding(value, spec, on=None):
    """Returns the sharding, not the array."""
    return NamedSharding(on if on is not None else mesh, P(*spec))


def put_on_mesh__wrong_two_entries(value, spec, on=None):
    """Cuts always as in the example."""
    return jax.device_put(value, NamedSharding(on if on is not None else mesh, P("x", "y")))


def put_on_mesh__wrong_reversed(value, spec, on=None):
    """The entries in the other order."""
    return jax.device_put(value, NamedSharding(on if on is not None else mesh, P(*reversed(spec))))


def put_on_mesh__wrong_swapped_choice(value, spec, on=None):
    """The condition turned round."""
    return jax.device_put(value, NamedSharding(on if on is None else mesh, P(*spec)))


def axis_groups__right_moveaxis(mesh, axis):
    """The hints' way."""
    ids = np.vectorize(lambda d: d.id)(mesh.devices)
    return np.moveaxis(ids, mesh.axis_names.index(axis), -1).reshape(-1, mesh.shape[axis]).tolist()


def axis_groups__right_dict(mesh, axis):
    """Collects devices by their other coordinates."""
    k = mesh.axis_names.index(axis)
    groups = {}
    for place, device in np.ndenumerate(mesh.devices):
        groups.setdefault(place[:k] + place[k + 1 :], []).append(device.id)
    return list(groups.values())


def axis_groups__right_swapaxes(mesh, axis):
    """Swaps the axis with the last one, and counts the length by itself."""
    ids = np.array([d.id for d in mesh.devices.flat]).reshape(mesh.devices.shape)
    ids = np.swapaxes(ids, mesh.axis_names.index(axis), -1)
    return [list(map(int, row)) for row in ids.reshape(-1, ids.shape[-1])]


def axis_groups__wrong_other_axis(mesh, axis):
    """Took 'over x' for 'within a row of x': the groups of the first place."""
    ids = np.vectorize(lambda d: d.id)(mesh.devices)
    k = mesh.axis_names.index(axis)
    return np.moveaxis(ids, k, 0).reshape(mesh.shape[axis], -1).tolist()


def axis_groups__wrong_arange(mesh, axis):
    """The ids are 0, 1, 2 ... in order."""
    ids = np.arange(mesh.devices.size).reshape(mesh.devices.shape)
    return np.moveaxis(ids, mesh.axis_names.index(axis), -1).reshape(-1, mesh.shape[axis]).tolist()


def axis_groups__wrong_two_axes(mesh, axis):
    """A mesh has two axes."""
    ids = np.vectorize(lambda d: d.id)(mesh.devices)
    return ids.T.tolist() if axis == "x" else ids.tolist()


def axis_groups__wrong_devices(mesh, axis):
    """Devices in place of ids."""
    return np.moveaxis(mesh.devices, mesh.axis_names.index(axis), -1).reshape(-1, mesh.shape[axis]).tolist()


def axis_groups__wrong_no_move(mesh, axis):
    """Forgot to move the axis: lines of the right length, of neighbours."""
    ids = np.vectorize(lambda d: d.id)(mesh.devices)
    return ids.reshape(-1, mesh.shape[axis]).tolist()


def axis_groups__wrong_one_group(mesh, axis):
    """The first group only."""
    ids = np.vectorize(lambda d: d.id)(mesh.devices)
    return np.moveaxis(ids, mesh.axis_names.index(axis), -1).reshape(-1, mesh.shape[axis])[0].tolist()


def axis_groups__wrong_sizes(mesh, axis):
    """The reshape turned round: as many lines as the axis is long."""
    ids = np.vectorize(lambda d: d.id)(mesh.devices)
    return np.moveaxis(ids, mesh.axis_names.index(axis), -1).reshape(mesh.shape[axis], -1).tolist()


topology_order__right_read = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}
# the ids in order
topology_order__wrong_in_order = {
    "the device in row 2, column 0": 4,
    "who holds block 2 of P('x')": [4, 5],
    "the block of device 4 under P('x')": 2,
    "after device 2 along x": 4,
    "along x from device 0": [0, 2, 4, 6],
}
# along x is along a row
topology_order__wrong_row = topology_order__right_read | {"along x from device 0": [0, 1]}
# forgot the copy in the other column
topology_order__wrong_no_copy = topology_order__right_read | {"who holds block 2 of P('x')": [6]}
# the next id in the row
topology_order__wrong_next = topology_order__right_read | {"after device 2 along x": 3}
# id 4 halved
topology_order__wrong_block = topology_order__right_read | {"the block of device 4 under P('x')": 2}
# without its own start
topology_order__wrong_start = topology_order__right_read | {"along x from device 0": [2, 6, 4]}


def longest_hop__right_zip(coords, order):
    """The hints' way."""
    places = [coords[k] for k in order]
    return max(abs(a - c) + abs(b - d) for (a, b), (c, d) in zip(places, places[1:] + places[:1], strict=True))


def longest_hop__right_modulo(coords, order):
    """By index, with a remainder."""
    longest = 0
    for i in range(len(order)):
        here, there = coords[order[i]], coords[order[(i + 1) % len(order)]]
        longest = max(longest, abs(here[0] - there[0]) + abs(here[1] - there[1]))
    return longest


def longest_hop__right_numpy(coords, order):
    """With np.roll; the result is NumPy's integer."""
    places = np.array([coords[k] for k in order])
    return np.abs(places - np.roll(places, 1, axis=0)).sum(axis=1).max()


def longest_hop__wrong_open(coords, order):
    """Forgot the step back to the start."""
    places = [coords[k] for k in order]
    return max(abs(a - c) + abs(b - d) for (a, b), (c, d) in zip(places, places[1:]))


def longest_hop__wrong_euclid(coords, order):
    """As the crow flies."""
    p = np.array([coords[k] for k in order])
    return float(np.sqrt(((p - np.roll(p, 1, axis=0)) ** 2).sum(1)).max())


def longest_hop__wrong_chebyshev(coords, order):
    """The larger of the two differences."""
    p = np.array([coords[k] for k in order])
    return int(np.abs(p - np.roll(p, 1, axis=0)).max())


def longest_hop__wrong_total(coords, order):
    """The sum of all steps."""
    p = np.array([coords[k] for k in order])
    return int(np.abs(p - np.roll(p, 1, axis=0)).sum())


def longest_hop__wrong_ids(coords, order):
    """Ignores the order: device k to device k + 1."""
    places = [coords[k] for k in range(len(order))]
    return max(abs(a - c) + abs(b - d) for (a, b), (c, d) in zip(places, places[1:] + places[:1]))


def longest_hop__wrong_torus(coords, order):
    """Wires round the ends as well."""
    p = np.array([coords[k] for k in order])
    w = p.max(0) + 1
    d = np.abs(p - np.roll(p, 1, axis=0))
    return int(np.minimum(d, w - d).sum(1).max())


def longest_hop__wrong_no_abs(coords, order):
    """Forgot abs."""
    p = np.array([coords[k] for k in order])
    return int((p - np.roll(p, 1, axis=0)).sum(1).max())


def make_training_mesh__right_types(n_data, n_model, explicit):
    """The plain way."""
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(kind, kind))


def make_training_mesh__right_ifs(n_data, n_model, explicit):
    """Two returns."""
    if explicit:
        return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def make_training_mesh__wrong_auto(n_data, n_model, explicit):
    """Auto, whatever is asked for."""
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def make_training_mesh__wrong_default(n_data, n_model, explicit):
    """No types where not explicit."""
    if explicit:
        return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    return jax.make_mesh((n_data, n_model), ("data", "model"))


def make_training_mesh__wrong_swapped(n_data, n_model, explicit):
    """Sizes in the other order."""
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_model, n_data), ("data", "model"), axis_types=(kind,) * 2)


def make_training_mesh__wrong_names(n_data, n_model, explicit):
    """The names of the lesson's mesh."""
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_data, n_model), ("x", "y"), axis_types=(kind,) * 2)


def make_training_mesh__wrong_turned(n_data, n_model, explicit):
    """The condition turned round."""
    kind = AxisType.Auto if explicit else AxisType.Explicit
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(kind,) * 2)


def make_training_mesh__wrong_one_type(n_data, n_model, explicit):
    """One type for two axes."""
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(kind,))


def make_training_mesh__wrong_caught(n_data, n_model, explicit):
    """Catches the error and returns None."""
    kind = AxisType.Explicit if explicit else AxisType.Auto
    try:
        return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(kind,) * 2)
    except ValueError as error:
        print(error)


def make_training_mesh__wrong_other_order(n_data, n_model, explicit):
    """The axes in the other order."""
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_model, n_data), ("model", "data"), axis_types=(kind,) * 2)


_newer = jax.make_mesh((8,), ("x",)).axis_types[0].name
axis_type__right_asked = {
    'jax.make_mesh((8,), ("x",))': _newer,
    'Mesh(np.array(jax.devices()), ("x",))': "Auto",
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}
# Mesh does what make_mesh does
axis_type__wrong_mesh = axis_type__right_asked | {'Mesh(np.array(jax.devices()), ("x",))': "Explicit"}
# a choice of the other version
axis_type__wrong_version = axis_type__right_asked | {
    'jax.make_mesh((8,), ("x",))': "Auto" if _newer == "Explicit" else "Explicit"
}
# the mesh's own type stays inside shard_map
axis_type__wrong_inside = axis_type__right_asked | {"inside jax.shard_map": "Auto"}
# explicit means that one sees blocks
axis_type__wrong_block = axis_type__right_asked | {"sees its own block": "Explicit"}
# 'type' understood as the Auto axis' report
axis_type__wrong_type = axis_type__right_asked | {"part of the array's type": "Auto"}
# the decision of the types taken for the compiler's
axis_type__wrong_decides = axis_type__right_asked | {"the compiler decides": "Explicit"}

local_and_global__right_counted = {
    "len(jax.devices()) in process 1": 8,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 2048,
    "shape of y in process 1": (64, 64),
    "shards of y that process 1 can read": 4,
    "processes that must call jit(f)(y)": 2,
}
# each process knows its own four
local_and_global__wrong_four = local_and_global__right_counted | {"len(jax.devices()) in process 1": 4}
# local_devices is all
local_and_global__wrong_eight = local_and_global__right_counted | {"len(jax.local_devices()) in process 1": 8}
# an id is a place
local_and_global__wrong_id = local_and_global__right_counted | {"jax.devices()[4].id": 4}
# each process has its half
local_and_global__wrong_half = local_and_global__right_counted | {"shape of y in process 1": (32, 64)}
# the shape of a shard
local_and_global__wrong_shard = local_and_global__right_counted | {"shape of y in process 1": (8, 64)}
# all shards can be read
local_and_global__wrong_read = local_and_global__right_counted | {"shards of y that process 1 can read": 8}
# the first process is the master
local_and_global__wrong_master = local_and_global__right_counted | {"processes that must call jit(f)(y)": 1}


# Near misses: wrong at an edge that the text covers.


def put_on_mesh__wrong_two_dims(value, spec, on=None):
    chosen = mesh if on is None else on
    rows, columns = (*spec, None, None)[:2]
    return jax.device_put(value, NamedSharding(chosen, P(rows, columns)))


def put_on_mesh__wrong_flattened(value, spec, on=None):
    flat = [a for e in spec for a in (e if isinstance(e, tuple) else (e,))]
    return jax.device_put(value, NamedSharding(mesh if on is None else on, P(*flat)))


def longest_hop__wrong_all_listed(coords, order):
    n = len(coords)
    places = [coords[order[k]] for k in range(n)]
    return max(abs(a - c) + abs(b - d) for (a, b), (c, d) in zip(places, places[1:] + places[:1]))


def make_training_mesh__right_asserted(n_data, n_model, explicit):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    if n_data * n_model > len(jax.devices()):
        raise ValueError("too few devices")
    devices = np.array(jax.devices()[: n_data * n_model]).reshape(n_data, n_model)
    return Mesh(devices, ("data", "model"), axis_types=(kind, kind))


def longest_hop__wrong_grid_of_ids(coords, order):
    """The ids count row by row: so places can be worked out."""
    width = max(column for column, _ in coords) + 1
    places = [(k % width, k // width) for k in order]
    return max(abs(a - c) + abs(b - d) for (a, b), (c, d) in zip(places, places[1:] + places[:1]))


def longest_hop__wrong_first_step(coords, order):
    """Counted from 1, since there is none before the first."""
    longest = 0
    for k in range(1, len(order)):
        (a, b), (c, d) = coords[order[k]], coords[order[(k + 1) % len(order)]]
        longest = max(longest, abs(a - c) + abs(b - d))
    return longest


def make_training_mesh__wrong_fits_itself(n_data, n_model, explicit):
    """NumPy works out how many columns there are."""
    kind = AxisType.Explicit if explicit else AxisType.Auto
    devices = np.array(jax.devices()[: n_data * n_model]).reshape(n_data, -1)
    return Mesh(devices, ("data", "model"), axis_types=(kind, kind))


def axis_groups__right_applied(mesh, axis):
    """Lines of the array, gathered while NumPy goes along them."""
    groups = []
    ids = np.vectorize(lambda device: device.id)(mesh.devices)
    np.apply_along_axis(lambda line: groups.append(tuple(line)) or 0, mesh.axis_names.index(axis), ids)
    return tuple(groups)


class _Ring:
    def longest(self, coords, order):
        steps = [np.subtract(coords[a], coords[b]) for a, b in zip(order, np.roll(order, -1))]
        return np.max([np.linalg.norm(step, 1) for step in steps])


longest_hop__right_method = _Ring().longest  # of an instance, in floats
