"""Answers to lesson 01, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# --- read_devices
_READ = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 7,
    "processes": 1,
}
read_devices__right_counted = dict(_READ)
read_devices__wrong_chips = {**_READ, "chips": 8}  # every entry of the list taken for a chip
read_devices__wrong_place = {**_READ, "place of device 5": (0, 1, 0, 1)}  # core_on_chip put into the coords
read_devices__wrong_partner = {**_READ, "on one chip with device 6": 5}  # the neighbour below, not the same coords
read_devices__wrong_processes = {**_READ, "processes": 0}  # the process's index, not the number of processes
read_devices__wrong_line4 = {**_READ, "place of device 5": (1, 0, 0)}  # column and row exchanged


# --- longest_hop
def longest_hop__right_loop(coords, order):
    longest = 0
    for k, device in enumerate(order):
        (c, r), (c2, r2) = coords[device][:2], coords[order[k - 1]][:2]
        longest = max(longest, abs(c - c2) + abs(r - r2))
    return longest


def longest_hop__right_numpy(coords, order):
    places = np.array([tuple(coords[k]) for k in order])
    return int(np.abs(places - np.roll(places, -1, axis=0)).sum(1).max())


def longest_hop__wrong_open(coords, order):
    # the step from the last device back to the first is missing
    return max(abs(coords[a][0] - coords[b][0]) + abs(coords[a][1] - coords[b][1]) for a, b in zip(order, order[1:]))


def longest_hop__wrong_total(coords, order):
    # all wires of the ring together, not those of the longest step
    pairs = zip(order, order[1:] + order[:1])
    return sum(abs(coords[a][0] - coords[b][0]) + abs(coords[a][1] - coords[b][1]) for a, b in pairs)


def longest_hop__wrong_chebyshev(coords, order):
    # the larger of the two differences: a diagonal would count as one wire
    pairs = zip(order, order[1:] + order[:1])
    return max(max(abs(coords[a][0] - coords[b][0]), abs(coords[a][1] - coords[b][1])) for a, b in pairs)


def longest_hop__wrong_ids(coords, order):
    # goes through the devices in the order of their ids, order is not used
    n = len(order)
    return max(
        abs(coords[k][0] - coords[(k + 1) % n][0]) + abs(coords[k][1] - coords[(k + 1) % n][1]) for k in range(n)
    )


def longest_hop__wrong_signed(coords, order):
    # abs is forgotten: steps to the left or up count negative
    pairs = zip(order, order[1:] + order[:1])
    return max((coords[b][0] - coords[a][0]) + (coords[b][1] - coords[a][1]) for a, b in pairs)


# --- make_training_mesh
def make_training_mesh__right_if(n_data, n_model, explicit):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(kind, kind))


def make_training_mesh__right_dict(n_data, n_model, explicit):
    sizes = {"data": n_data, "model": n_model}
    kinds = {True: AxisType.Explicit, False: AxisType.Auto}
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=tuple(kinds[bool(explicit)] for _ in sizes))


def make_training_mesh__wrong_default(n_data, n_model, explicit):
    # without axis_types JAX 0.9 makes Explicit axes
    if explicit:
        return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    return jax.make_mesh((n_data, n_model), ("data", "model"))


def make_training_mesh__wrong_one_axis(n_data, n_model, explicit):
    # only the first axis is made Explicit
    first = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(first, AxisType.Auto))


def make_training_mesh__wrong_order(n_data, n_model, explicit):
    # the sizes are in the wrong order
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_model, n_data), ("data", "model"), axis_types=(kind,) * 2)


def make_training_mesh__wrong_names(n_data, n_model, explicit):
    # the notebook's own names
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_data, n_model), ("x", "y"), axis_types=(kind,) * 2)


def make_training_mesh__wrong_cut_down(n_data, n_model, explicit):
    # makes a smaller mesh where devices are lacking, no ValueError
    kind = AxisType.Explicit if explicit else AxisType.Auto
    while n_data * n_model > jax.device_count():
        n_data -= 1
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(kind,) * 2)


# --- topology_order
_TOPOLOGY = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}
topology_order__right_read = dict(_TOPOLOGY)
topology_order__wrong_by_id = {  # as if the ids came in order
    "the device in row 2, column 0": 4,
    "who holds block 2 of P('x')": [4, 5],
    "the block of device 4 under P('x')": 2,
    "after device 2 along x": 4,
    "along x from device 0": [0, 2, 4, 6],
}
topology_order__wrong_along_row = {
    **_TOPOLOGY,
    "after device 2 along x": 3,
    "along x from device 0": [0, 1],
}  # x taken for the row's direction
topology_order__wrong_no_copy = {**_TOPOLOGY, "who holds block 2 of P('x')": [6]}  # the copy in column 1 forgotten
topology_order__wrong_from_one = {**_TOPOLOGY, "the block of device 4 under P('x')": 4}  # blocks counted from 1

# --- local_and_global
_LOCAL = {
    "len(jax.devices()) in process 1": 8,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 2048,
    "shape of y in process 1": (64, 64),
    "shards of y that process 1 can read": 4,
    "processes that must call jit(f)(y)": 2,
}
local_and_global__right_all = dict(_LOCAL)
local_and_global__wrong_half_shape = {
    **_LOCAL,
    "shape of y in process 1": (32, 64),
}  # the local half for the global shape
local_and_global__wrong_id = {**_LOCAL, "jax.devices()[4].id": 4}  # a place in the list is not an id
local_and_global__wrong_devices = {**_LOCAL, "len(jax.devices()) in process 1": 4}  # devices taken for the local ones
local_and_global__wrong_one_calls = {**_LOCAL, "processes that must call jit(f)(y)": 1}  # one process starts it for all
local_and_global__wrong_reads_all = {
    **_LOCAL,
    "shards of y that process 1 can read": 8,
}  # all shards, not the addressable ones
