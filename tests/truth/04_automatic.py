"""Answers to lesson 04, written by a reader of the notebook only."""

import re
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
MESH = mesh

who_decides__right_tried = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}
# one jit, one program
who_decides__wrong_one = who_decides__right_tried | {"jit compiles one program for all layouts": True}
# a product always talks
who_decides__wrong_matmul = who_decides__right_tried | {"every matmul sends something": True}
# as in lesson 03
who_decides__wrong_error = who_decides__right_tried | {"operands laid out differently are an error": True}
# a constraint works forward only
who_decides__wrong_forward = who_decides__right_tried | {"a constraint can divide work before it": False}
# rounding taken for values
who_decides__wrong_values = who_decides__right_tried | {"values depend on the layout": True}
predict_out__right_tried = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(),
    "v + v.T": P("d"),
    "v.reshape(-1)": P("d"),
    "v[0]": P(),
    "v @ v": P("d"),
}
# the transpose keeps the cut in the first place
predict_out__wrong_transpose = predict_out__right_tried | {"v.T": P("d")}
# rows summed, still cut
predict_out__wrong_sum = predict_out__right_tried | {"v.sum(0)": P("d")}
# both cuts in a sum with the transpose
predict_out__wrong_both = predict_out__right_tried | {"v + v.T": P("d", "d")}
# the second operand decides
predict_out__wrong_second = predict_out__right_tried | {"v + v.T": P(None, "d")}
# the flat one is whole
predict_out__wrong_flat = predict_out__right_tried | {"v.reshape(-1)": P()}
# the entries of a row are cut
predict_out__wrong_row = predict_out__right_tried | {"v[0]": P("d")}
predict_moves__right_tried = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_gather",
}
# a transpose moves data
predict_moves__wrong_transpose = predict_moves__right_tried | {"v.T": "all_to_all"}
# elementwise, so nothing
predict_moves__wrong_plus = predict_moves__right_tried | {"v + v.T": "nothing"}
# a gather of the transpose
predict_moves__wrong_gather = predict_moves__right_tried | {"v + v.T": "all_gather"}
# a roll needs all
predict_moves__wrong_roll = predict_moves__right_tried | {"jnp.roll(v, 1, axis=0)": "all_gather"}
# a running sum adds
predict_moves__wrong_cumsum = predict_moves__right_tried | {"v.cumsum(0)": "all_reduce"}
# contracts a cut dimension
predict_moves__wrong_product = predict_moves__right_tried | {"v @ v": "all_reduce"}
contract__right_counted = {
    "layout": P("y"),
    "device 0": [120, 126],
    "device 4": [120, 126],
    "collective": "all_reduce",
    "over": "x",
    "bytes sent": 8,
}
# the axis that stays taken for that of the collective
contract__wrong_over = contract__right_counted | {"over": "y"}
# the layout of the rows
contract__wrong_layout = contract__right_counted | {"layout": P("x")}
# its own rows only
contract__wrong_part = contract__right_counted | {"device 0": [24, 27]}
# device 4 holds the next columns
contract__wrong_four = contract__right_counted | {"device 4": [144, 150]}
# n of four
contract__wrong_bytes = contract__right_counted | {"bytes sent": 12}
# the whole vector's bytes
contract__wrong_whole = contract__right_counted | {"bytes sent": 32}
# a gather
contract__wrong_gather = contract__right_counted | {"collective": "all_gather"}
follow_the_mesh__right_counted = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [1, 3, 5, 7],
    "layout of relu(x @ y)": P("a"),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [4, 5],
}
# the number for the place
follow_the_mesh__wrong_number = follow_the_mesh__right_counted | {"who holds x[8, 0]": [2]}
# forgot copies along a
follow_the_mesh__wrong_one_copy = follow_the_mesh__right_counted | {"who holds y[8, 0]": [5]}
# the upper half
follow_the_mesh__wrong_half = follow_the_mesh__right_counted | {"who holds y[8, 0]": [0, 2, 4, 6]}
# adds along a
follow_the_mesh__wrong_axis = follow_the_mesh__right_counted | {"over": "a", "adds up with device 4": [0, 2, 6]}
# counts itself
follow_the_mesh__wrong_itself = follow_the_mesh__right_counted | {"adds up with device 4": [4, 5]}
# the result cut over both
follow_the_mesh__wrong_layout = follow_the_mesh__right_counted | {"layout of relu(x @ y)": P("a", "b")}
# one holder
follow_the_mesh__wrong_holder = follow_the_mesh__right_counted | {"who holds relu(x @ y)[8, 0]": [4]}

constraint_moves__right_tried = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}
# None means 'as it was'
constraint_moves__wrong_none = constraint_moves__right_tried | {'P("x", "y") → P("x", None)': "nothing"}
# every change costs
constraint_moves__wrong_finer = constraint_moves__right_tried | {'P("x", None) → P("x", "y")': "all_to_all"}
# gathers, then cuts
constraint_moves__wrong_turn = constraint_moves__right_tried | {'P("x", None) → P(None, "x")': "all_gather"}
# the order of a tuple is nothing
constraint_moves__wrong_tuple = constraint_moves__right_tried | {'P(("x", "y")) → P(("y", "x"))': "nothing"}
# the order of a tuple: pieces
constraint_moves__wrong_pieces = constraint_moves__right_tried | {'P(("x", "y")) → P(("y", "x"))': "all_to_all"}
# to cut is to send
constraint_moves__wrong_cut = constraint_moves__right_tried | {'P() → P("y", "x")': "collective_permute"}


def constrain__right_plain(v, *, mesh):
    """The plain way."""
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P("y", "x")))


def constrain__right_jit(v, *, mesh):
    """out_shardings."""
    return jax.jit(lambda v: v + 1, out_shardings=NamedSharding(mesh, P("y", "x")))(v)


def constrain__right_before(v, *, mesh):
    """Constrains first, adds then."""
    return jax.lax.with_sharding_constraint(v, NamedSharding(mesh, P("y", "x"))) + 1


def constrain__right_set_mesh(v, *, mesh):
    """A bare P under set_mesh, as the text shows."""
    with jax.set_mesh(mesh):
        return jax.jit(lambda v: jax.lax.with_sharding_constraint(v + 1, P("y", "x")))(v)


def constrain__wrong_same(v, *, mesh):
    """The spec that it had."""
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P("x", "y")))


def constrain__wrong_dropped(v, *, mesh):
    """Ignores what the constraint returns."""
    w = v + 1
    jax.lax.with_sharding_constraint(w, NamedSharding(mesh, P("y", "x")))
    return w


def constrain__wrong_bare(v, *, mesh):
    """A bare P."""
    return jax.lax.with_sharding_constraint(v + 1, P("y", "x"))


def constrain__wrong_notebook_mesh(v, *, mesh):
    """The notebook's mesh."""
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(MESH, P("y", "x")))


def constrain__wrong_transposed(v, *, mesh):
    """Transposes the array."""
    return jax.lax.with_sharding_constraint(v.T + 1, NamedSharding(mesh, P("y", "x")))


def constrain__wrong_no_plus(v, *, mesh):
    """Forgot + 1."""
    return jax.lax.with_sharding_constraint(v, NamedSharding(mesh, P("y", "x")))


def constrain__wrong_put(v, *, mesh):
    """device_put, which leaves the layout to the compiler inside jit."""
    return jax.device_put(v + 1, NamedSharding(mesh, P("y", "x")))


def constrain__wrong_no_return(v, *, mesh):
    """Forgot to return."""
    w = jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P("y", "x")))


def constrain__wrong_whole_first(v, *, mesh):
    """Whole first, then cut: gathers everything."""
    w = jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P()))
    return jax.lax.with_sharding_constraint(w, NamedSharding(mesh, P("y", "x")))


def constrain__wrong_swapaxes_mesh(v, *, mesh):
    """Another mesh with swapped shape in place of another spec."""
    turned = jax.make_mesh((mesh.shape["y"], mesh.shape["x"]), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(turned, P("x", "y")))


def constrain_whole__right_plain(v, *, mesh):
    """The plain way."""
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P()))


def constrain_whole__right_nones(v, *, mesh):
    """Spelled out."""
    whole = NamedSharding(mesh, P(None, None))
    return jax.lax.with_sharding_constraint(v + 1, whole)


def constrain_whole__wrong_half(v, *, mesh):
    """Only y is gathered."""
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P("x", None)))


def constrain_whole__wrong_dropped(v, *, mesh):
    """Ignores what the constraint returns."""
    jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P()))
    return v + 1


def constrain_whole__wrong_first(v, *, mesh):
    """Copied constrain."""
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P("y", "x")))


def constrain_whole__wrong_one_device(v, *, mesh):
    """Brings it to one device."""
    return jax.device_put(v + 1, jax.devices()[0])


def constrain_whole__wrong_plus_two(v, *, mesh):
    """Adds 1 twice."""
    v = v + 1
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P()))


def constrain_whole__wrong_none(v, *, mesh):
    """None in place of a spec."""
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, None))


def constrain_whole__wrong_psum(v, *, mesh):
    """Writes a gather by hand, which the text forbids."""

    def body(b):
        b = jax.lax.all_gather(b, "x", axis=0, tiled=True)
        return jax.lax.all_gather(b, "y", axis=1, tiled=True) + 1

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P(), check_vma=False)(v)


error_or_not__right_tried = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "runs",
}
# the array knows its mesh
error_or_not__wrong_bare = error_or_not__right_tried | {"a constraint with a bare P, no mesh set": "runs"}
# the same devices
error_or_not__wrong_reverse = error_or_not__right_tried | {"a constraint over the devices in reverse": "runs"}
# another mesh
error_or_not__wrong_flat = error_or_not__right_tried | {"a constraint over the devices as a mesh of 8": "an error"}
# as a constraint does
error_or_not__wrong_ten = error_or_not__right_tried | {"out_shardings that cut 10 rows over x": "runs"}
# jit moves it
error_or_not__wrong_in = error_or_not__right_tried | {"in_shardings unlike a committed argument's": "runs"}
# NumPy has no layout
error_or_not__wrong_numpy = error_or_not__right_tried | {"in_shardings for a NumPy argument": "an error"}


def steer__right_hidden(x, w1, w2, *, mesh):
    """Constrains the hidden layer."""
    h = jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1), NamedSharding(mesh, P("data", "model")))
    return jax.lax.with_sharding_constraint(h @ w2, NamedSharding(mesh, P("data")))


def steer__right_weights(x, w1, w2, *, mesh):
    """Constrains the weights, which are whole and so cost nothing to cut."""
    w1 = jax.lax.with_sharding_constraint(w1, NamedSharding(mesh, P(None, "model")))
    w2 = jax.lax.with_sharding_constraint(w2, NamedSharding(mesh, P("model", None)))
    return jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1) @ w2, NamedSharding(mesh, P("data", None)))


def steer__wrong_result_only(x, w1, w2, *, mesh):
    """Constrains only the result: everybody along model does the same."""
    return jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1) @ w2, NamedSharding(mesh, P("data")))


def steer__wrong_columns(x, w1, w2, *, mesh):
    """Cuts the result over model."""
    return jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1) @ w2, NamedSharding(mesh, P("data", "model")))


def steer__wrong_rows(x, w1, w2, *, mesh):
    """Cuts the batch over both axes."""
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(("data", "model"))))
    return jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1) @ w2, NamedSharding(mesh, P("data")))


def steer__wrong_none(x, w1, w2, *, mesh):
    """The hidden layer cut by columns only; None taken for 'as it was'."""
    h = jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1), NamedSharding(mesh, P(None, "model")))
    return jax.lax.with_sharding_constraint(h @ w2, NamedSharding(mesh, P("data")))


def steer__wrong_gathered(x, w1, w2, *, mesh):
    """Keeps the hidden layer whole in columns."""
    h = jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1), NamedSharding(mesh, P("data", None)))
    return h @ w2


def steer__wrong_no_relu(x, w1, w2, *, mesh):
    """Forgot the relu."""
    h = jax.lax.with_sharding_constraint(x @ w1, NamedSharding(mesh, P("data", "model")))
    return jax.lax.with_sharding_constraint(h @ w2, NamedSharding(mesh, P("data")))


def steer__wrong_outer_relu(x, w1, w2, *, mesh):
    """A relu too many, round the result."""
    h = jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1), NamedSharding(mesh, P("data", "model")))
    return jax.lax.with_sharding_constraint(jax.nn.relu(h @ w2), NamedSharding(mesh, P("data")))


def steer__wrong_untouched(x, w1, w2, *, mesh):
    """Leaves it to the compiler."""
    return jax.nn.relu(x @ w1) @ w2


def steer__wrong_names(x, w1, w2, *, mesh):
    """The other mesh's names."""
    h = jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1), NamedSharding(mesh, P("x", "y")))
    return h @ w2


def steer__wrong_swapped(x, w1, w2, *, mesh):
    """Columns over data, rows over model."""
    h = jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1), NamedSharding(mesh, P("model", "data")))
    return jax.lax.with_sharding_constraint(h @ w2, NamedSharding(mesh, P("data")))


def divide_layer__right_inputs(x, weights, bias, *, mesh):
    """Constrains both operands."""
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("x")))
    weights = jax.lax.with_sharding_constraint(weights, NamedSharding(mesh, P("x", None)))
    out = jax.nn.sigmoid(x @ weights + bias)
    return jax.lax.with_sharding_constraint(out, NamedSharding(mesh, P()))


def divide_layer__right_short(x, weights, bias, *, mesh):
    """Nothing about the result: the compiler makes it whole."""
    cut = NamedSharding(mesh, P("x"))
    x, weights = (jax.lax.with_sharding_constraint(a, cut) for a in (x, weights))
    return jax.nn.sigmoid(x @ weights + bias)


def divide_layer__wrong_both_axes(x, weights, bias, *, mesh):
    """Over both axes."""
    cut = NamedSharding(mesh, P(("x", "y")))
    x = jax.lax.with_sharding_constraint(x, cut)
    weights = jax.lax.with_sharding_constraint(weights, cut)
    return jax.nn.sigmoid(x @ weights + bias)


def divide_layer__wrong_y(x, weights, bias, *, mesh):
    """Over y."""
    cut = NamedSharding(mesh, P("y"))
    x = jax.lax.with_sharding_constraint(x, cut)
    weights = jax.lax.with_sharding_constraint(weights, cut)
    return jax.nn.sigmoid(x @ weights + bias)


def divide_layer__wrong_columns(x, weights, bias, *, mesh):
    """Cuts the weights by columns."""
    weights = jax.lax.with_sharding_constraint(weights, NamedSharding(mesh, P(None, "x")))
    out = jax.nn.sigmoid(x @ weights + bias)
    return jax.lax.with_sharding_constraint(out, NamedSharding(mesh, P()))


def divide_layer__wrong_result(x, weights, bias, *, mesh):
    """A constraint on the result only."""
    return jax.lax.with_sharding_constraint(jax.nn.sigmoid(x @ weights + bias), NamedSharding(mesh, P("x")))


def divide_layer__wrong_no_bias(x, weights, bias, *, mesh):
    """Forgot the bias."""
    cut = NamedSharding(mesh, P("x"))
    x = jax.lax.with_sharding_constraint(x, cut)
    weights = jax.lax.with_sharding_constraint(weights, cut)
    return jax.nn.sigmoid(x @ weights)


def divide_layer__wrong_untouched(x, weights, bias, *, mesh):
    """The layer as it stands above."""
    return jax.nn.sigmoid(x @ weights + bias)


def divide_layer__wrong_dropped(x, weights, bias, *, mesh):
    """Ignores what the constraints return."""
    jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("x")))
    jax.lax.with_sharding_constraint(weights, NamedSharding(mesh, P("x")))
    return jax.nn.sigmoid(x @ weights + bias)


def divide_layer__wrong_relu(x, weights, bias, *, mesh):
    """Another activation."""
    cut = NamedSharding(mesh, P("x"))
    x = jax.lax.with_sharding_constraint(x, cut)
    weights = jax.lax.with_sharding_constraint(weights, cut)
    return jax.nn.relu(x @ weights + bias)


def divide_layer__wrong_only_x(x, weights, bias, *, mesh):
    """Cuts x, and puts whole weights beside it."""
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("x")))
    weights = jax.lax.with_sharding_constraint(weights, NamedSharding(mesh, P()))
    out = jax.nn.sigmoid(x @ weights + bias)
    return jax.lax.with_sharding_constraint(out, NamedSharding(mesh, P("x")))


def init_sharded__right_compiled(rows, columns, axis, mesh):
    """The hints' way."""
    make = lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)
    compiled = jax.jit(make, out_shardings=NamedSharding(mesh, P(None, axis))).lower().compile()
    return compiled(), compiled.memory_analysis().output_size_in_bytes


def init_sharded__right_two(rows, columns, axis, mesh):
    """Calls the jitted one and compiles beside it."""

    def init():
        return jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)

    made = jax.jit(init, out_shardings=NamedSharding(mesh, P(None, axis)))
    return made(), made.lower().compile().memory_analysis().output_size_in_bytes


def init_sharded__right_constraint(rows, columns, axis, mesh):
    """A constraint inside."""

    @jax.jit
    def init():
        v = jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)
        return jax.lax.with_sharding_constraint(v, NamedSharding(mesh, P(None, axis)))

    return init(), init.lower().compile().memory_analysis().output_size_in_bytes


def init_sharded__wrong_put(rows, columns, axis, mesh):
    """Made whole, then cut."""
    make = jax.jit(lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns))
    size = make.lower().compile().memory_analysis().output_size_in_bytes
    return jax.device_put(make(), NamedSharding(mesh, P(None, axis))), size


def init_sharded__wrong_put_block(rows, columns, axis, mesh):
    """Made whole, then cut; tells the bytes of a block."""
    v = jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)
    v = jax.device_put(v, NamedSharding(mesh, P(None, axis)))
    return v, v.addressable_shards[0].data.nbytes


def init_sharded__wrong_rows(rows, columns, axis, mesh):
    """Cuts the rows."""
    make = lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)
    compiled = jax.jit(make, out_shardings=NamedSharding(mesh, P(axis))).lower().compile()
    return compiled(), compiled.memory_analysis().output_size_in_bytes


def init_sharded__wrong_axis(rows, columns, axis, mesh):
    """The axis x, whatever is asked for."""
    make = lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)
    compiled = jax.jit(make, out_shardings=NamedSharding(mesh, P(None, "x"))).lower().compile()
    return compiled(), compiled.memory_analysis().output_size_in_bytes


def init_sharded__wrong_array_only(rows, columns, axis, mesh):
    """The array only."""
    make = lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)
    return jax.jit(make, out_shardings=NamedSharding(mesh, P(None, axis)))()


def init_sharded__wrong_nbytes(rows, columns, axis, mesh):
    """The bytes of the whole array."""
    make = lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)
    v = jax.jit(make, out_shardings=NamedSharding(mesh, P(None, axis)))()
    return v, v.nbytes


def init_sharded__wrong_order(rows, columns, axis, mesh):
    """The two results turned round."""
    make = lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)
    compiled = jax.jit(make, out_shardings=NamedSharding(mesh, P(None, axis))).lower().compile()
    return compiled.memory_analysis().output_size_in_bytes, compiled()


def init_sharded__wrong_temp(rows, columns, axis, mesh):
    """temp_size for output_size."""
    make = lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)
    compiled = jax.jit(make, out_shardings=NamedSharding(mesh, P(None, axis))).lower().compile()
    return compiled(), compiled.memory_analysis().temp_size_in_bytes


def init_sharded__wrong_numpy(rows, columns, axis, mesh):
    """Made on the host."""
    v = np.sin(np.arange(rows * columns)).reshape(rows, columns).astype(np.float32)
    v = jax.device_put(v, NamedSharding(mesh, P(None, axis)))
    return v, v.addressable_shards[0].data.nbytes


def init_sharded__wrong_transposed(rows, columns, axis, mesh):
    """The shape the other way round."""
    make = lambda: jnp.sin(jnp.arange(rows * columns)).reshape(columns, rows).T
    compiled = jax.jit(make, out_shardings=NamedSharding(mesh, P(None, axis))).lower().compile()
    return compiled(), compiled.memory_analysis().output_size_in_bytes


def same_everywhere__right_shards(a, b):
    """The hints' way."""
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    if not np.array_equal(a, b):
        return False
    return all(np.array_equal(s.data, np.asarray(v)[s.index]) for v in (a, b) for s in v.addressable_shards)


def same_everywhere__right_pairs(a, b):
    """Shard by shard against one whole."""
    if a.shape != b.shape:
        return False
    if not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    whole = np.asarray(a)
    for array in (a, b):
        for shard in array.addressable_shards:
            if not (np.asarray(shard.data) == whole[shard.index]).all():
                return False
    return True


def same_everywhere__wrong_values(a, b):
    """Values only."""
    return np.array_equal(a, b)


def same_everywhere__wrong_spec(a, b):
    """Compares shardings with ==."""
    if a.shape != b.shape or a.sharding != b.sharding:
        return False
    whole = np.asarray(a)
    return all(np.array_equal(s.data, whole[s.index]) for v in (a, b) for s in v.addressable_shards)


def same_everywhere__wrong_no_copies(a, b):
    """Values and layout, no copies."""
    return a.shape == b.shape and np.array_equal(a, b) and a.sharding.is_equivalent_to(b.sharding, a.ndim)


def same_everywhere__wrong_only_a(a, b):
    """Looks at the copies of a only."""
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    if not np.array_equal(a, b):
        return False
    return all(np.array_equal(s.data, np.asarray(a)[s.index]) for s in a.addressable_shards)


def same_everywhere__wrong_shard_by_shard(a, b):
    """Compares device with device: the same lie twice is the same."""
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    return all(np.array_equal(s.data, t.data) for s, t in zip(a.addressable_shards, b.addressable_shards))


def same_everywhere__wrong_no_shapes(a, b):
    """Forgot the shapes: asks the layout first."""
    if not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    whole = np.asarray(a)
    return all((np.asarray(s.data) == whole[s.index]).all() for v in (a, b) for s in v.addressable_shards)


def same_everywhere__wrong_no_layout(a, b):
    """Forgot the layout."""
    if a.shape != b.shape or not np.array_equal(a, b):
        return False
    return all(np.array_equal(s.data, np.asarray(v)[s.index]) for v in (a, b) for s in v.addressable_shards)


def same_everywhere__wrong_replicated(a, b):
    """Believes is_fully_replicated."""
    return (
        a.shape == b.shape
        and np.array_equal(a, b)
        and a.sharding.is_equivalent_to(b.sharding, a.ndim)
        and a.is_fully_replicated == b.is_fully_replicated
    )


KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"


def count_collectives__right_regex(text):
    """The hints' way."""
    text = re.sub(r'"[^"]*"', "", text)
    return Counter(re.findall(rf" ({KINDS})(?:-start)?\(", text))


def count_collectives__right_lines(text):
    """Line by line, with a plain dict."""
    counts = {}
    for line in text.splitlines():
        line = re.sub(r'"[^"]*"', '""', line)
        found = re.search(rf"\s({KINDS})(-start)?\(", line)
        if found:
            counts[found[1]] = counts.get(found[1], 0) + 1
    return counts


def count_collectives__wrong_count(text):
    """Counts the words."""
    return {kind: text.count(kind) for kind in KINDS.split("|")}


def count_collectives__wrong_bracket(text):
    """A bracket behind, but start and done are not thought of."""
    return Counter(re.findall(rf" ({KINDS})\(", re.sub(r'"[^"]*"', "", text)))


def count_collectives__wrong_start_done(text):
    """Counts start and done."""
    return Counter(re.findall(rf" ({KINDS})(?:-start|-done)?\(", re.sub(r'"[^"]*"', "", text)))


def count_collectives__wrong_quotes(text):
    """Forgot the metadata."""
    return Counter(re.findall(rf" ({KINDS})(?:-start)?\(", text))


def count_collectives__wrong_names(text):
    """Counts names of instructions."""
    return Counter(re.findall(rf"%?({KINDS})[.\d]* =", text))


def count_collectives__wrong_underscore(text):
    """JAX's names, not XLA's."""
    kinds = KINDS.replace("-", "_")
    return Counter(re.findall(rf" ({kinds})\(", text))


def count_collectives__wrong_set(text):
    """At most one of each kind."""
    return dict.fromkeys(re.findall(rf" ({KINDS})(?:-start)?\(", re.sub(r'"[^"]*"', "", text)), 1)


def count_collectives__wrong_type(text):
    """Wants a plain array type before it: merged ones are missed."""
    return Counter(re.findall(rf"= \w+\[[\d,]*\]\S* ({KINDS})(?:-start)?\(", re.sub(r'"[^"]*"', "", text)))


def count_collectives__wrong_forgot_permute(text):
    """Forgot a kind."""
    kinds = "all-reduce|all-gather|reduce-scatter|all-to-all"
    return Counter(re.findall(rf" ({kinds})(?:-start)?\(", re.sub(r'"[^"]*"', "", text)))


read_the_benchmark__right_reckoned = {
    "speed-up of sin": 10.5,
    "efficiency of matmul": 0.8317,
    "sin gains more than 8, because (25.2 ± 30.9 is noise / sin sends nothing)": "25.2 ± 30.9 is noise",
    "the first call is slowest, because (it is compiled / the devices warm up)": "it is compiled",
    "without block_until_ready one times (the dispatch / the whole work)": "the dispatch",
    "simulated devices gain nothing, because (they share a processor / they communicate)": "they share a processor",
}
# the time saved
read_the_benchmark__wrong_saved = read_the_benchmark__right_reckoned | {"speed-up of sin": 22.8}
# in per cent
read_the_benchmark__wrong_percent = read_the_benchmark__right_reckoned | {"efficiency of matmul": 83.2}
# superlinear by magic
read_the_benchmark__wrong_magic = read_the_benchmark__right_reckoned | {
    "sin gains more than 8, because (25.2 ± 30.9 is noise / sin sends nothing)": "sin sends nothing"
}
# devices warm up
read_the_benchmark__wrong_warm = read_the_benchmark__right_reckoned | {
    "the first call is slowest, because (it is compiled / the devices warm up)": "the devices warm up"
}
# the call does the work
read_the_benchmark__wrong_work = read_the_benchmark__right_reckoned | {
    "without block_until_ready one times (the dispatch / the whole work)": "the whole work"
}
# communication is to blame
read_the_benchmark__wrong_blame = read_the_benchmark__right_reckoned | {
    "simulated devices gain nothing, because (they share a processor / they communicate)": "they communicate"
}


# Near misses: wrong at an edge that the text covers.


def _agree(array):
    seen = {}
    for s in array.addressable_shards:
        key = str(s.index)
        if not np.array_equal(seen.setdefault(key, np.asarray(s.data)), s.data):
            return False
    return True


def same_everywhere__wrong_allclose(a, b):
    alike = a.shape == b.shape and a.sharding.is_equivalent_to(b.sharding, a.ndim)
    return bool(alike and np.allclose(a, b) and _agree(a) and _agree(b))


def _count(text, pattern):
    text = re.sub(r'"[^"]*"', "", text)
    return dict(Counter(re.findall(pattern, text)))


def count_collectives__wrong_no_reduce_scatter(text):
    return _count(text, r" (all-reduce|all-gather|all-to-all|collective-permute)(?:-start)?\(")


def count_collectives__wrong_two_starts(text):
    plain = _count(text, r" (all-reduce|reduce-scatter|all-to-all)\(")
    return plain | _count(text, r" (all-gather|collective-permute)(?:-start)?\(")


FIVE_KINDS = "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"


def count_collectives__right_lines_matched(text):
    total = dict.fromkeys(FIVE_KINDS, 0)
    for line in text.splitlines():
        m = re.match(r"\s*(?:ROOT )?%?[\w.\-]+ = (?:\(.*?\)|\S+) ([\w\-]+)\(", line)
        if m:
            kind = m[1].removesuffix("-start")
            if kind in total:
                total[kind] += 1
    return total


def same_everywhere__wrong_shapes_of_blocks(a, b):
    """Laid out alike: the same devices in the same order, and blocks of the same shape."""

    def agree(v):
        return all(np.array_equal(s.data, np.asarray(v)[s.index]) for s in v.addressable_shards)

    def layout(v):
        return v.shape, list(v.sharding.mesh.devices.flat), v.sharding.shard_shape(v.shape)

    return bool(layout(a) == layout(b) and np.array_equal(a, b) and agree(a) and agree(b))


def same_everywhere__wrong_sums_of_copies(a, b):
    """Copies agree where their sums do."""

    def agree(v):
        held = {(str(s.index), float(np.asarray(s.data).sum())) for s in v.addressable_shards}
        return len(held) == len({index for index, _ in held})

    alike = a.shape == b.shape and a.sharding.is_equivalent_to(b.sharding, a.ndim)
    return bool(alike and np.array_equal(a, b) and agree(a) and agree(b))


def init_sharded__wrong_own_mesh(rows, columns, axis, mesh):
    """A mesh with the axes of the one that is given, made anew."""
    same = jax.make_mesh(tuple(mesh.shape.values()), mesh.axis_names, axis_types=(AxisType.Auto,) * 2)
    sharding = NamedSharding(same, P(None, axis))
    made = jax.jit(lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns), out_shardings=sharding)
    compiled = made.lower().compile()
    return compiled(), compiled.memory_analysis().output_size_in_bytes


def init_sharded__right_block_by_block(rows, columns, axis, mesh):
    """Each device makes its own columns."""
    n = columns // mesh.shape[axis]

    def block():
        mine = jax.lax.axis_index(axis) * n + jnp.arange(n)
        return jnp.sin(jnp.arange(rows)[:, None] * columns + mine)

    made = jax.jit(jax.shard_map(block, mesh=mesh, in_specs=(), out_specs=P(None, axis))).lower().compile()
    return [made(), np.int64(made.memory_analysis().output_size_in_bytes)]


def count_collectives__wrong_layout(text):
    """Every type ends with its layout, so with a brace, or a bracket where there are several."""
    unquoted = re.sub(r'"[^"]*"', "", text)
    return Counter(
        re.findall(r"[})] (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(", unquoted)
    )


def count_collectives__wrong_operands(text):
    """An operand's name begins with a per cent sign, and stands right behind the bracket."""
    unquoted = re.sub(r'"[^"]*"', "", text)
    kinds = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
    return Counter(re.findall(rf" ({kinds})(?:-start)?\(%", unquoted))


def constrain__wrong_shard_map(v, *, mesh):
    """Writes no collective: the specs of shard_map say how it is laid out."""
    return jax.shard_map(lambda block: block + 1, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))(v)
