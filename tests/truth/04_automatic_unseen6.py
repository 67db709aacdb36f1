"""Answers to lesson 04, sixth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))


def layer(x, weights, bias):
    return jax.nn.sigmoid(x @ weights + bias)


# ---------------------------------------------------------------- who_decides
who_decides__right_tried = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}

# jit compiles for shapes and types, and the layout is looked at when the program is called.
who_decides__wrong_one_program = {
    "jit compiles one program for all layouts": True,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}

# A constraint acts on the value that it returns, so what was computed before it is computed already.
who_decides__wrong_constraint_too_late = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": False,
}

# A product sums over a dimension, sums need an all_reduce; and the order of the additions changes the values.
who_decides__wrong_products_are_sums = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": True,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": True,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}

# Lesson 03: arrays which are committed in different ways may not meet; and so even elementwise something may have to move.
who_decides__wrong_committed_clash = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": False,
    "every matmul sends something": False,
    "operands laid out differently are an error": True,
    "a constraint can divide work before it": True,
}


# ---------------------------------------------------------------- same_everywhere
def same_everywhere__right_device_by_device(a, b):
    """Whether a and b have the same values and layout, and every copy agrees."""
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    of_b = {shard.device: np.asarray(shard.data) for shard in b.addressable_shards}
    first = {}  # the first copy of every block of a
    for shard in a.addressable_shards:
        block = np.asarray(shard.data)
        copy = first.setdefault(str(shard.index), block)
        if not (np.array_equal(block, copy) and np.array_equal(block, of_b[shard.device])):
            return False
    return True


# If every device has in a what it has in b, then they are the same everywhere.
def same_everywhere__wrong_both_may_lie(a, b):
    if a.shape != b.shape:
        return False
    if not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    return all(
        p.device == q.device and np.array_equal(p.data, q.data)
        for p, q in zip(a.addressable_shards, b.addressable_shards)
    )


# The copies of a are checked against a's values, and b has the same values, so b is checked too.
def same_everywhere__wrong_only_a(a, b):
    same_layout = a.shape == b.shape and a.sharding.is_equivalent_to(b.sharding, a.ndim)
    if not same_layout or not np.array_equal(np.asarray(a), np.asarray(b)):
        return False
    whole = np.asarray(a)
    for shard in a.addressable_shards:
        if not np.array_equal(shard.data, whole[shard.index]):
            return False
    return True


# Laid out alike means that the pieces have the same shapes.
def same_everywhere__wrong_shapes_of_pieces(a, b):
    if a.shape != b.shape or not np.array_equal(a, b):
        return False
    if a.sharding.shard_shape(a.shape) != b.sharding.shard_shape(b.shape):
        return False
    for array in (a, b):
        values = np.asarray(array)
        for shard in array.addressable_shards:
            if not np.array_equal(np.asarray(shard.data), values[shard.index]):
                return False
    return True


# Whether the copies agree is what is_fully_replicated says; where an array is cut there are none.
def same_everywhere__wrong_asks_the_layout(a, b):
    return bool(
        a.shape == b.shape
        and a.sharding.is_equivalent_to(b.sharding, a.ndim)
        and a.is_fully_replicated == b.is_fully_replicated
        and np.array_equal(np.asarray(a), np.asarray(b))
    )


# ---------------------------------------------------------------- divide_layer
def divide_layer__right_leading_dimensions(x, weights, bias, *, mesh):
    """sigmoid(x @ weights + bias), the contraction divided over mesh axis "x"."""
    leading, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    x, weights = jax.tree.map(lambda a: jax.lax.with_sharding_constraint(a, leading), (x, weights))
    total = jax.lax.with_sharding_constraint(jnp.einsum("f,fo->o", x, weights), whole)
    return jax.nn.sigmoid(total + bias)


# Eight devices should share the work, so cut over all of them, as in the cell above.
def divide_layer__wrong_over_all(x, weights, bias, *, mesh):
    everything = NamedSharding(mesh, P(mesh.axis_names))
    x = jax.lax.with_sharding_constraint(x, everything)
    weights = jax.lax.with_sharding_constraint(weights, everything)
    return jax.nn.sigmoid(x @ weights + bias)


# The work is divided if each device computes some of the outputs, and then they are put together.
def divide_layer__wrong_output_columns(x, weights, bias, *, mesh):
    weights = jax.lax.with_sharding_constraint(weights, NamedSharding(mesh, P(None, "x")))
    bias = jax.lax.with_sharding_constraint(bias, NamedSharding(mesh, P("x")))
    out = jax.nn.sigmoid(x @ weights + bias)
    return jax.lax.with_sharding_constraint(out, NamedSharding(mesh, P()))


# with_sharding_constraint tells the compiler about x and weights; then the layer as it stands.
def divide_layer__wrong_result_thrown_away(x, weights, bias, *, mesh):
    cut = NamedSharding(mesh, P("x"))
    jax.lax.with_sharding_constraint(x, cut)
    jax.lax.with_sharding_constraint(weights, cut)
    return jax.nn.sigmoid(x @ weights + bias)


# To be sure that only x is used I spelled it out as a sum of pieces: each piece of the layer, bias and all, then added up.
def divide_layer__wrong_bias_in_each_piece(x, weights, bias, *, mesh):
    n = mesh.shape["x"]
    pieces = jax.lax.with_sharding_constraint(x.reshape(n, -1), NamedSharding(mesh, P("x")))
    rows = jax.lax.with_sharding_constraint(weights.reshape(n, -1, weights.shape[1]), NamedSharding(mesh, P("x")))
    parts = jnp.einsum("nf,nfo->no", pieces, rows) + bias
    return jax.lax.with_sharding_constraint(jax.nn.sigmoid(parts.sum(0)), NamedSharding(mesh, P()))
