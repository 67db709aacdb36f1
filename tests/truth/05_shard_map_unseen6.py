"""Answers to lesson 05, sixth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- forgot_replication
forgot_replication__right_worked_out = {
    "float(y)": float(sum(range(5))),
    "y.is_fully_replicated": True,
    "device 5 holds": float(sum(range(25, 30))),
    "float(x.sum())": 40 * 39 / 2,
}

# JAX knows that the devices differ, and so it does not call the array replicated.
forgot_replication__wrong_not_replicated = {
    "float(y)": 10.0,
    "y.is_fully_replicated": False,
    "device 5 holds": 135.0,
    "float(x.sum())": 780.0,
}

# To read one number from eight devices Python has to add up what they hold.
forgot_replication__wrong_python_adds = {
    "float(y)": 780.0,
    "y.is_fully_replicated": True,
    "device 5 holds": 135.0,
    "float(x.sum())": 780.0,
}

# Four numbers on a device, as everywhere in this lesson: 0 to 3, and 20 to 23 on device 5.
forgot_replication__wrong_four_each = {
    "float(y)": 6.0,
    "y.is_fully_replicated": True,
    "device 5 holds": 86.0,
    "float(x.sum())": 780.0,
}

# arange(40) goes up to 40; and device 5 is the fifth, with 20 to 24.
forgot_replication__wrong_counting = {
    "float(y)": 10.0,
    "y.is_fully_replicated": True,
    "device 5 holds": 110.0,
    "float(x.sum())": 820.0,
}


# ---------------------------------------------------------------- pytree_specs
pytree_specs__right_tree_then_spec = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "too long",
    "(P(), P('z'))": "no such axis",
}

# A list of two specs for two arguments is as good as a tuple.
pytree_specs__wrong_list_as_tuple = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "runs",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "too long",
    "(P(), P('z'))": "no such axis",
}

# params is a dict, so its place in in_specs must be a dict with the same keys.
pytree_specs__wrong_needs_a_dict = {
    "(P(), P('x'))": "wrong tree",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "wrong tree",
    "(P(), P('z'))": "no such axis",
}

# What is not mentioned is not cut: 'b' left out is P(), as entries left out are None.
pytree_specs__wrong_left_out_is_whole = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "runs",
    "(P('x', None), P('x'))": "too long",
    "(P(), P('z'))": "no such axis",
}

# P('x', None) has a trailing None, which may always be left out or added, so b does not mind.
pytree_specs__wrong_trailing_none_harmless = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "runs",
    "(P(), P('z'))": "no such axis",
}


# ---------------------------------------------------------------- many_layers
def many_layers__right_tree_map(params, x, mesh):
    """relu(x · w + b) for layer after layer, each device its own rows."""

    def on_device(params, rows):
        for layer in params:
            rows = jax.nn.relu(rows @ layer["w"] + layer["b"])
        return rows

    in_specs = (jax.tree.map(lambda leaf: P(), params), P("x"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


# A list of layers, so a list with the specs of a layer; and a tuple around it for the two arguments.
def many_layers__wrong_one_layer(params, x, mesh):
    def on_device(params, rows):
        for layer in params:
            rows = jax.nn.relu(rows @ layer["w"] + layer["b"])
        return rows

    in_specs = ([{"w": P(), "b": P()}], P("x"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


# It raised because the dict could not stand for a list of dicts; P() stands for any tree.
def many_layers__wrong_still_a_list(params, x, mesh):
    def on_device(params, rows):
        for layer in params:
            rows = jax.nn.relu(rows @ layer["w"] + layer["b"])
        return rows

    in_specs = [P(), P("x")]
    ...
    if in_specs is not ...:
        return jax.shard_map(on_device, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


# One spec may stand for everything; that the result is cut by rows out_specs say anyway.
def many_layers__wrong_one_for_everything(params, x, mesh):
    def on_device(params, rows):
        for layer in params:
            rows = jax.nn.relu(rows @ layer["w"] + layer["b"])
        return rows

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(), out_specs=P("x"))(params, x)


# The layers are dealt out with the rows: w is cut by rows too, and b stays whole.
def many_layers__wrong_weights_cut(params, x, mesh):
    def on_device(params, rows):
        for layer in params:
            rows = jax.nn.relu(rows @ layer["w"] + layer["b"])
        return rows

    of_layers = [{"w": P("x"), "b": P()} for _ in range(len(params))]
    return jax.shard_map(on_device, mesh=mesh, in_specs=(of_layers, P("x")), out_specs=P("x"))(params, x)
