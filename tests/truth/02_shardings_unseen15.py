"""Answers to lesson 02, fifteenth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def distribute__right_callback(value, spec, mesh):
    """Every device fetches its own slice of the NumPy array."""
    layout = NamedSharding(mesh, spec)

    def my_slice(index):
        return value[index]

    return jax.make_array_from_callback(value.shape, layout, my_slice)


# Thought: None cuts nothing, so it may be left out wherever it stands.
def distribute__wrong_nonone(value, spec, mesh):
    cutting = [entry for entry in spec if entry is not None]
    return jax.device_put(value, NamedSharding(mesh, P(*cutting)))


# Thought: the spec is a tuple of entries that has still to be made into a P (and forgets the star).
def distribute__wrong_nostar(value, spec, mesh):
    entries = tuple(spec)
    return jax.device_put(value, NamedSharding(mesh, P(entries)))


# Thought: the mesh of this lesson is 4 x 2 with axes x and y, and a fresh one of that kind will do.
def distribute__wrong_fixedmesh(value, spec, mesh):
    grid = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    return jax.device_put(value, NamedSharding(grid, spec))


# Thought: device_put moves the array itself, so that afterwards `value` is spread.
def distribute__wrong_inplace(value, spec, mesh):
    sharding = NamedSharding(mesh, spec)
    jax.device_put(value, sharding)
    return value


draw_it__right_rules = {
    "P('x', 'y')": [[{2 * x + y} for y in range(2)] for x in range(4)],
    "P('y', 'x')": [[{2 * x + y} for x in range(4)] for y in range(2)],
    "P('x')": [[{2 * x, 2 * x + 1}] for x in range(4)],
    "P(None, 'y')": [[set(range(y, 8, 2)) for y in range(2)]],
    "P(('x', 'y'))": [[{k}] for k in range(8)],
    "P(None, ('y', 'x'))": [[{2 * x + y} for y in range(2) for x in range(4)]],
}
# Thought: the spec says how many blocks there are; the devices then fill them in the order of their numbers.
draw_it__wrong_inorder = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {1}, {2}, {3}], [{4}, {5}, {6}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 1, 2, 3}, {4, 5, 6, 7}]],
    "P(('x', 'y'))": [[{k}] for k in range(8)],
    "P(None, ('y', 'x'))": [[{k} for k in range(8)]],
}
# Thought: in a tuple the first axis is the one that goes up by one from block to block.
draw_it__wrong_firstfast = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}, {1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{0}], [{2}], [{4}], [{6}], [{1}], [{3}], [{5}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}]],
}
# Thought: the axis that is named is the one along which the copies stand.
draw_it__wrong_copiesalong = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 2, 4, 6}], [{1, 3, 5, 7}]],
    "P(None, 'y')": [[{0, 1}, {2, 3}, {4, 5}, {6, 7}]],
    "P(('x', 'y'))": [[{k}] for k in range(8)],
    "P(None, ('y', 'x'))": [[{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}]],
}
# Thought: None cuts nothing and can be skipped, so the entry after it cuts the rows.
draw_it__wrong_nonerows = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}], [{1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{k}] for k in range(8)],
    "P(None, ('y', 'x'))": [[{0}], [{2}], [{4}], [{6}], [{1}], [{3}], [{5}], [{7}]],
}

attributes__right_reasoned = {
    "len(cut.devices())": 4 * 2,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 4 * 2,
    "cut.addressable_shards[5].data.shape": (16 // 2, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (16 // 2, 8),
}
# Thought: a shard is one of the different blocks, and there are two; copies are not counted again.
attributes__wrong_twoshards = {**attributes__right_reasoned, "len(cut.addressable_shards)": 2}
# Thought: y is the second axis of the mesh, so it cuts the second dimension of the array.
attributes__wrong_columns = {
    **attributes__right_reasoned,
    "cut.addressable_shards[5].data.shape": (16, 4),
    "jnp.sin(cut).addressable_shards[5].data.shape": (16, 4),
}
# Thought: the array is on eight devices, so its rows are divided by eight.
attributes__wrong_eighth = {
    **attributes__right_reasoned,
    "cut.addressable_shards[5].data.shape": (2, 8),
    "jnp.sin(cut).addressable_shards[5].data.shape": (2, 8),
}
# Thought: there are copies of everything (along x, four of each block), so the array is fully replicated.
attributes__wrong_replicated = {**attributes__right_reasoned, "cut.is_fully_replicated": True}
