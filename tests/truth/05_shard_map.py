"""Answers to lesson 05, written by a reader of the notebook only."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
MESH = mesh


def varying(value, axes):
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, axes, to="varying")
    return jax.lax.pvary(value, axes)


local_view__right_counted = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (16, 6),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}
# two calls, two runs
local_view__wrong_twice = local_view__right_counted | {"calls of the function, twice under jit": 2}
# a print prints numbers
local_view__wrong_numbers = local_view__right_counted | {
    "print(block), under jit (every block / one block / no numbers)": "every block"
}
# an int for a tuple of one
local_view__wrong_int = local_view__right_counted | {"float32[16], P(('x', 'y'))": 2}
# the None ignored
local_view__wrong_none = local_view__right_counted | {"float32[16, 24], P(None, 'x')": (4, 24)}
# the array is dealt out among eight
local_view__wrong_dealt = local_view__right_counted | {"float32[16, 24], P()": (2, 24)}


def partial_sums__right_keepdims(x, *, mesh):
    """The plain way."""
    return jax.shard_map(lambda b: b.sum(keepdims=True), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def partial_sums__right_reshape(x, *, mesh):
    """reshape in place of keepdims, and a named function."""

    def one(block):
        return jnp.sum(block).reshape(1)

    return jax.jit(jax.shard_map(one, mesh=mesh, in_specs=(P("x"),), out_specs=P("x")))(x)


def partial_sums__wrong_max(x, *, mesh):
    """The example's max."""
    return jax.shard_map(lambda b: jnp.max(b, keepdims=True), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def partial_sums__wrong_scalar(x, *, mesh):
    """Forgot keepdims."""
    return jax.shard_map(jnp.sum, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def partial_sums__wrong_psum(x, *, mesh):
    """A psum that nobody asked for."""

    def one(block):
        return jax.lax.psum(block.sum(keepdims=True), "x")

    return jax.shard_map(one, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def partial_sums__wrong_line(x, *, mesh):
    """The notebook's line."""
    return jax.shard_map(lambda b: b.sum(keepdims=True), mesh=line, in_specs=P("x"), out_specs=P("x"))(x)


def partial_sums__wrong_no_return(x, *, mesh):
    """Forgot to return."""
    jax.shard_map(lambda b: b.sum(keepdims=True), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def partial_sums__wrong_mean(x, *, mesh):
    """mean for sum."""
    return jax.shard_map(lambda b: b.mean(keepdims=True), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def partial_sums__wrong_uncalled(x, *, mesh):
    """Returns the function, not its result."""
    return jax.shard_map(lambda b: b.sum(keepdims=True), mesh=mesh, in_specs=P("x"), out_specs=P("x"))


def partial_sums__wrong_unsummed(x, *, mesh):
    """A body without return."""

    def one(block):
        block.sum(keepdims=True)

    return jax.shard_map(one, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def global_mean__right_pmean(x, *, mesh):
    """pmean of the means."""
    return jax.shard_map(lambda b: jax.lax.pmean(b.mean(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def global_mean__right_sum(x, *, mesh):
    """A sum, divided by the whole length outside."""

    def total(block):
        return jax.lax.psum(block.sum(), "x")

    return jax.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P())(x) / x.shape[0]


def global_mean__right_axis_size(x, *, mesh):
    """Divides inside, by the number of all entries."""

    def body(block):
        return jax.lax.psum(jnp.sum(block) / (block.shape[0] * mesh.shape["x"]), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def global_mean__wrong_psum(x, *, mesh):
    """A psum of the means."""
    return jax.shard_map(lambda b: jax.lax.psum(b.mean(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def global_mean__wrong_block_length(x, *, mesh):
    """Divides the whole sum by a block's length."""

    def body(block):
        return jax.lax.psum(block.sum(), "x") / block.shape[0]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def global_mean__wrong_unchecked(x, *, mesh):
    """Forgot the collective and took the check off."""
    return jax.shard_map(jnp.mean, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


def global_mean__wrong_refused(x, *, mesh):
    """Forgot the collective."""
    return jax.shard_map(jnp.mean, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def global_mean__wrong_both(x, *, mesh):
    """Adds over both axes, and divides by the length."""

    def body(block):
        return jax.lax.psum(block.sum(), ("x", "y")) / (block.shape[0] * mesh.shape["x"])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


def global_mean__wrong_y(x, *, mesh):
    """Means over y."""
    return jax.shard_map(
        lambda b: jax.lax.pmean(b.mean(), "y"), mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False
    )(x)


def global_mean__wrong_four(x, *, mesh):
    """Four devices, hard-coded."""
    return jax.shard_map(lambda b: jax.lax.psum(b.mean(), "x") / 4, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def global_mean__wrong_eight(x, *, mesh):
    """Divides by all eight devices."""
    return jax.shard_map(lambda b: jax.lax.psum(b.mean(), "x") / 8, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def global_mean__wrong_kept(x, *, mesh):
    """One number for each device."""

    def body(b):
        return jax.lax.pmean(b.mean(keepdims=True), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def global_mean__wrong_no_return(x, *, mesh):
    """Forgot to return."""
    m = jax.shard_map(lambda b: jax.lax.pmean(b.mean(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def global_mean__wrong_elementwise(x, *, mesh):
    """pmean without the mean of the block."""
    return jax.shard_map(lambda b: jax.lax.pmean(b, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def global_mean__wrong_pmean_sum(x, *, mesh):
    """A pmean of sums."""
    return jax.shard_map(lambda b: jax.lax.pmean(b.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(x)


block_transpose__right_drawn = {
    "shape": (2, 8),
    "first row": [0, 1, 4, 5, 8, 9, 12, 13],
    "device 3 returns": [6, 7],
    "bytes sent": 0,
}
# the transpose's shape
block_transpose__wrong_shape = block_transpose__right_drawn | {"shape": (4, 4)}
# the transpose's first row
block_transpose__wrong_row = block_transpose__right_drawn | {"first row": [0, 4, 8, 12]}
# turns blocks too
block_transpose__wrong_turned = block_transpose__right_drawn | {"first row": [0, 2, 4, 6, 8, 10, 12, 14]}
# device 3 is in row 0
block_transpose__wrong_device = block_transpose__right_drawn | {"device 3 returns": [12, 13]}
# it must have sent something
block_transpose__wrong_bytes = block_transpose__right_drawn | {"bytes sent": 8}
# JAX refuses
block_transpose__wrong_error = block_transpose__right_drawn | {"shape": "an error"}
# (8, 2)
block_transpose__wrong_tall = block_transpose__right_drawn | {"shape": (8, 2)}


def transpose_without_sending__right_t(x, *, mesh):
    """The plain way."""
    return jax.shard_map(lambda b: b.T, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(x)


def transpose_without_sending__right_jnp(x, *, mesh):
    """jnp.transpose."""
    return jax.shard_map(jnp.transpose, mesh=mesh, in_specs=(P("x", "y"),), out_specs=P("y", "x"))(x)


def transpose_without_sending__wrong_grid(x, *, mesh):
    """Turns the grid only."""
    return jax.shard_map(lambda b: b, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(x)


def transpose_without_sending__wrong_blocks(x, *, mesh):
    """Turns the blocks only."""
    return jax.shard_map(lambda b: b.T, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


def transpose_without_sending__wrong_in(x, *, mesh):
    """Turned in_specs as well."""
    return jax.shard_map(lambda b: b.T, mesh=mesh, in_specs=P("y", "x"), out_specs=P("x", "y"))(x)


def transpose_without_sending__wrong_gather(x, *, mesh):
    """Brings all to all."""
    return jax.shard_map(lambda b: b.T, mesh=mesh, in_specs=P(), out_specs=P())(x)


def transpose_without_sending__wrong_outside(x, *, mesh):
    """Transposes outside, too."""
    return jax.shard_map(lambda b: b.T, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(x.T)


def transpose_without_sending__wrong_no_return(x, *, mesh):
    """Forgot to return."""
    out = jax.shard_map(lambda b: b.T, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(x)


def transpose_without_sending__wrong_rows(x, *, mesh):
    """Only rows are cut."""
    return jax.shard_map(lambda b: b.T, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


specs_match__right_reasoned = {
    "block.T": P("y", "x"),
    "block.sum(1, keepdims=True)": P("x", "y"),
    "psum(block, 'x')": P(None, "y"),
    "psum(block.sum(0), 'x')": P("y"),
    "psum(block.sum(), ('x', 'y'))": P(),
    "all_gather(block, 'y', axis=1, tiled=True)": P("x"),
}
# the sum takes y away
specs_match__wrong_sum = specs_match__right_reasoned | {"block.sum(1, keepdims=True)": P("x", None)}
# psum over x leaves x
specs_match__wrong_psum = specs_match__right_reasoned | {"psum(block, 'x')": P("x", None)}
# rows over x, and columns over y
specs_match__wrong_transpose = specs_match__right_reasoned | {"block.T": P("x", "y")}
# the dimension that is gone keeps its place
specs_match__wrong_gone = specs_match__right_reasoned | {"psum(block.sum(0), 'x')": P(None, "y")}
# a gather leaves it cut
specs_match__wrong_gather = specs_match__right_reasoned | {"all_gather(block, 'y', axis=1, tiled=True)": P("x", "y")}
# a number for each
specs_match__wrong_number = specs_match__right_reasoned | {"psum(block.sum(), ('x', 'y'))": P("x", "y")}
after_gather__right_counted = {
    "block": (1,),
    "all_gather(block, 'i', tiled=True)": (4,),
    "all_gather(block, 'i')": (4, 1),
    "result of the tiled one, out_specs=P('i')": (16,),
    "result of the tiled one, out_specs=P()": (4,),
}
# the whole, once
after_gather__wrong_once = after_gather__right_counted | {"result of the tiled one, out_specs=P('i')": (4,)}
# the new dimension behind
after_gather__wrong_behind = after_gather__right_counted | {"all_gather(block, 'i')": (1, 4)}
# no difference
after_gather__wrong_same = after_gather__right_counted | {"all_gather(block, 'i')": (4,)}
# four by four
after_gather__wrong_square = after_gather__right_counted | {"result of the tiled one, out_specs=P('i')": (4, 4)}
# a scalar block
after_gather__wrong_scalar = after_gather__right_counted | {"block": ()}
# copies joined too
after_gather__wrong_copies = after_gather__right_counted | {"result of the tiled one, out_specs=P()": (16,)}

forgot_replication__right_counted = {
    "float(y)": 10.0,
    "y.is_fully_replicated": True,
    "device 5 holds": 135.0,
    "float(x.sum())": 780.0,
}
# Python adds up
forgot_replication__wrong_sum = forgot_replication__right_counted | {"float(y)": 780.0}
# JAX notices
forgot_replication__wrong_layout = forgot_replication__right_counted | {"y.is_fully_replicated": False}
# all hold the same
forgot_replication__wrong_same = forgot_replication__right_counted | {"device 5 holds": 10.0}
# counts from one
forgot_replication__wrong_from_one = forgot_replication__right_counted | {"float(x.sum())": 820.0}
# five to the fifth device, counted from one
forgot_replication__wrong_device = forgot_replication__right_counted | {"device 5 holds": 110.0}


def column_sums__right_psum(x, *, mesh):
    """The plain way."""
    return jax.shard_map(lambda b: jax.lax.psum(b.sum(axis=0), "x"), mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(
        x
    )


def column_sums__right_ones(x, *, mesh):
    """A product with ones."""

    def body(block):
        local = jnp.ones(block.shape[0], block.dtype) @ block
        return jax.lax.psum(local, axis_name="x")

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


def column_sums__wrong_broken(x, *, mesh):
    """Leaves it as it is."""
    body = lambda block: block.sum(axis=0)
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"), check_vma=False)(x)


def column_sums__wrong_refused(x, *, mesh):
    """Only turns the check on."""
    body = lambda block: block.sum(axis=0)
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


def column_sums__wrong_rows(x, *, mesh):
    """Sums the rows."""
    return jax.shard_map(lambda b: jax.lax.psum(b.sum(axis=1), "y"), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x"))(
        x
    )


def column_sums__wrong_y(x, *, mesh):
    """Adds over y."""
    return jax.shard_map(lambda b: jax.lax.psum(b.sum(axis=0), "y"), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x"))(
        x
    )


def column_sums__wrong_first(x, *, mesh):
    """psum before the sum: sends a whole block."""
    return jax.shard_map(lambda b: jax.lax.psum(b, "x").sum(axis=0), mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(
        x
    )


def column_sums__wrong_both(x, *, mesh):
    """Adds over both axes."""
    return jax.shard_map(
        lambda b: jax.lax.psum(b.sum(axis=0), ("x", "y")), mesh=mesh, in_specs=P("x", "y"), out_specs=P()
    )(x)


def column_sums__right_unchecked(x, *, mesh):
    """The check is off, which the text leaves open."""
    return jax.shard_map(
        lambda b: jax.lax.psum(b.sum(axis=0), "x"), mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"), check_vma=False
    )(x)


def column_sums__wrong_pmean(x, *, mesh):
    """pmean for psum."""
    return jax.shard_map(
        lambda b: jax.lax.pmean(b.sum(axis=0), "x"), mesh=mesh, in_specs=P("x", "y"), out_specs=P("y")
    )(x)


def column_sums__wrong_kept(x, *, mesh):
    """A row of sums."""
    return jax.shard_map(
        lambda b: jax.lax.psum(b.sum(axis=0, keepdims=True), "x"),
        mesh=mesh,
        in_specs=P("x", "y"),
        out_specs=P(None, "y"),
    )(x)


def block_sums__right_kept(x, *, mesh):
    """keepdims."""
    return jax.shard_map(
        lambda b: b.sum(axis=0, keepdims=True), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y")
    )(x)


def block_sums__right_none(x, *, mesh):
    """[None]."""
    body = lambda block: jnp.sum(block, 0)[None, :]
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


def block_sums__wrong_flat(x, *, mesh):
    """Forgot the dimension."""
    return jax.shard_map(lambda b: b.sum(axis=0), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


def block_sums__wrong_one_axis(x, *, mesh):
    """Sums one after the other in one dimension."""
    return jax.shard_map(lambda b: b.sum(axis=0), mesh=mesh, in_specs=P("x", "y"), out_specs=P(("x", "y")))(x)


def block_sums__wrong_psum(x, *, mesh):
    """With a psum."""
    return jax.shard_map(
        lambda b: jax.lax.psum(b.sum(axis=0, keepdims=True), "x"),
        mesh=mesh,
        in_specs=P("x", "y"),
        out_specs=P("x", "y"),
    )(x)


def block_sums__wrong_axis(x, *, mesh):
    """Sums along the wrong axis."""
    return jax.shard_map(
        lambda b: b.sum(axis=1, keepdims=True), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y")
    )(x)


def block_sums__wrong_all(x, *, mesh):
    """One number for each block."""
    return jax.shard_map(lambda b: b.sum(keepdims=True), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


def block_sums__wrong_column(x, *, mesh):
    """The new dimension behind."""
    return jax.shard_map(lambda b: b.sum(axis=0)[:, None], mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


def block_sums__wrong_swapped_out(x, *, mesh):
    """out_specs turned round."""
    return jax.shard_map(
        lambda b: b.sum(axis=0, keepdims=True), mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x")
    )(x)


def block_sums__wrong_notebook_mesh(x, *, mesh):
    """The notebook's mesh."""
    return jax.shard_map(
        lambda b: b.sum(axis=0, keepdims=True), mesh=MESH, in_specs=P("x", "y"), out_specs=P("x", "y")
    )(x)


flat_index__right_counted = {
    "axis_index('x')": [0, 0, 0, 0, 1, 1, 1, 1],
    "axis_index('y')": [0, 1, 2, 3, 0, 1, 2, 3],
    "axis_index(('x', 'y'))": [0, 1, 2, 3, 4, 5, 6, 7],
    "axis_index(('y', 'x'))": [0, 2, 4, 6, 1, 3, 5, 7],
}
flat_index__right_tuples = {key: tuple(value) for key, value in flat_index__right_counted.items()}
# x and y swapped
flat_index__wrong_swapped = flat_index__right_counted | {"axis_index('x')": [0, 1, 2, 3, 0, 1, 2, 3]}
# the 4 x 2 mesh
flat_index__wrong_mesh = flat_index__right_counted | {"axis_index('x')": [0, 0, 1, 1, 2, 2, 3, 3]}
# both tuples alike
flat_index__wrong_same = flat_index__right_counted | {"axis_index(('y', 'x'))": [0, 1, 2, 3, 4, 5, 6, 7]}
# the inverse permutation
flat_index__wrong_inverse = flat_index__right_counted | {"axis_index(('y', 'x'))": [0, 4, 1, 5, 2, 6, 3, 7]}
# counts from one
flat_index__wrong_from_one = flat_index__right_counted | {"axis_index(('x', 'y'))": [1, 2, 3, 4, 5, 6, 7, 8]}


def axis_index_coords__right_stack(mesh):
    """The hints' way."""
    body = lambda: jnp.stack([jax.lax.axis_index("x"), jax.lax.axis_index("y")])[None]
    return jax.shard_map(body, mesh=mesh, in_specs=(), out_specs=P(("x", "y")))()


def axis_index_coords__right_array(mesh):
    """jnp.array, two dimensions written."""

    def place():
        return jnp.array([[jax.lax.axis_index("x"), jax.lax.axis_index("y")]])

    return jax.jit(jax.shard_map(place, mesh=mesh, in_specs=(), out_specs=P(("x", "y"), None)))()


def axis_index_coords__wrong_order(mesh):
    """y before x in the rows."""
    body = lambda: jnp.stack([jax.lax.axis_index("y"), jax.lax.axis_index("x")])[None]
    return jax.shard_map(body, mesh=mesh, in_specs=(), out_specs=P(("x", "y")))()


def axis_index_coords__wrong_out(mesh):
    """The order of the tuple turned round."""
    body = lambda: jnp.stack([jax.lax.axis_index("x"), jax.lax.axis_index("y")])[None]
    return jax.shard_map(body, mesh=mesh, in_specs=(), out_specs=P(("y", "x")))()


def axis_index_coords__wrong_no_dimension(mesh):
    """Forgot [None]: sixteen numbers."""
    body = lambda: jnp.stack([jax.lax.axis_index("x"), jax.lax.axis_index("y")])
    return jax.shard_map(body, mesh=mesh, in_specs=(), out_specs=P(("x", "y")))()


def axis_index_coords__right_numpy(mesh):
    """Made on the host, then cut: where the rows lie is all that is asked."""
    rows = np.array(list(np.ndindex(*mesh.devices.shape)))
    return jax.device_put(rows, NamedSharding(mesh, P(("x", "y"))))


def axis_index_coords__wrong_list(mesh):
    """NumPy's, on no device."""
    return np.array(list(np.ndindex(*mesh.devices.shape)))


def axis_index_coords__wrong_two_entries(mesh):
    """P("x", "y") in place of a tuple."""
    body = lambda: jnp.stack([jax.lax.axis_index("x"), jax.lax.axis_index("y")])[None]
    return jax.shard_map(body, mesh=mesh, in_specs=(), out_specs=P("x", "y"))()


def axis_index_coords__wrong_uncalled(mesh):
    """Forgot to call it."""
    body = lambda: jnp.stack([jax.lax.axis_index("x"), jax.lax.axis_index("y")])[None]
    return jax.shard_map(body, mesh=mesh, in_specs=(), out_specs=P(("x", "y")))


def axis_index_coords__wrong_notebook_mesh(mesh):
    """The notebook's mesh."""
    body = lambda: jnp.stack([jax.lax.axis_index("x"), jax.lax.axis_index("y")])[None]
    return jax.shard_map(body, mesh=MESH, in_specs=(), out_specs=P(("x", "y")))()


vma_types__right_reasoned = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": {"x"},
    "psum(block, 'x')": {"y"},
    "all_gather(block, 'y')": {"x", "y"},
    "axis_index('y')": {"y"},
    "jnp.zeros(4)": set(),
}
# a gather takes it away
vma_types__wrong_gather = vma_types__right_reasoned | {"all_gather(block, 'y')": {"x"}}
# b stays as it is
vma_types__wrong_cast = vma_types__right_reasoned | {"b, as it is when w + b takes it": set()}
# psum leaves x
vma_types__wrong_psum = vma_types__right_reasoned | {"psum(block, 'x')": {"x"}}
# zeros vary
vma_types__wrong_zeros = vma_types__right_reasoned | {"jnp.zeros(4)": {"x", "y"}}
# the intersection
vma_types__wrong_meet = vma_types__right_reasoned | {"w + b": set()}
# a number is a number
vma_types__wrong_index = vma_types__right_reasoned | {"axis_index('y')": set()}


def polynomial__right_fori(c, x, *, mesh):
    """The hints' way."""

    def body(c, block):
        start = varying(jnp.zeros(block.shape), "x")
        return jax.lax.fori_loop(0, c.shape[0], lambda k, y: y * block + c[k], start)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


def polynomial__right_scan(c, x, *, mesh):
    """A scan over the coefficients, the start made of the block."""

    def body(c, block):
        y, _ = jax.lax.scan(lambda y, a: (y * block + a, None), jnp.zeros_like(block), c)
        return y

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


def polynomial__right_zero_times(c, x, *, mesh):
    """0 * block varies by itself."""

    def body(c, block):
        return jax.lax.fori_loop(0, len(c), lambda k, y: block * y + c[k], 0.0 * block)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None), P("x")), out_specs=P("x"))(c, x)


def polynomial__wrong_no_cast(c, x, *, mesh):
    """Without a thought for types."""

    def body(c, block):
        return jax.lax.fori_loop(0, c.shape[0], lambda k, y: y * block + c[k], jnp.zeros(block.shape))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


def polynomial__right_unchecked(c, x, *, mesh):
    """Takes the check off, which the text accepts."""

    def body(c, block):
        return jax.lax.fori_loop(0, c.shape[0], lambda k, y: y * block + c[k], jnp.zeros(block.shape))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"), check_vma=False)(c, x)


def polynomial__wrong_reversed(c, x, *, mesh):
    """Lowest power first."""

    def body(c, block):
        return jax.lax.fori_loop(
            0, c.shape[0], lambda k, y: y * block + c[c.shape[0] - 1 - k], varying(jnp.zeros(block.shape), "x")
        )

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


def polynomial__wrong_add_first(c, x, *, mesh):
    """Adds, then multiplies."""

    def body(c, block):
        return jax.lax.fori_loop(0, c.shape[0], lambda k, y: (y + c[k]) * block, varying(jnp.zeros(block.shape), "x"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


def polynomial__wrong_off_by_one(c, x, *, mesh):
    """Forgot the last coefficient."""

    def body(c, block):
        return jax.lax.fori_loop(0, c.shape[0] - 1, lambda k, y: y * block + c[k], varying(jnp.zeros(block.shape), "x"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


def polynomial__wrong_cut_coefficients(c, x, *, mesh):
    """Cuts c as well."""

    def body(c, block):
        return jax.lax.fori_loop(0, c.shape[0], lambda k, y: y * block + c[k], jnp.zeros_like(block))

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(c, x)


def polynomial__right_python(c, x, *, mesh):
    """A Python loop, which the text accepts."""

    def body(c, block):
        y = jnp.zeros_like(block)
        for k in range(c.shape[0]):
            y = y * block + c[k]
        return y

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


def polynomial__wrong_both_axes(c, x, *, mesh):
    """Casts over both axes."""

    def body(c, block):
        start = varying(jnp.zeros(block.shape), ("x", "y"))
        return jax.lax.fori_loop(0, c.shape[0], lambda k, y: y * block + c[k], start)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


def polynomial__wrong_start(c, x, *, mesh):
    """Begins with one."""

    def body(c, block):
        return jax.lax.fori_loop(0, c.shape[0], lambda k, y: y * block + c[k], jnp.ones_like(block))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


price_of_no_check__right_reasoned = {
    "A, check on": "right",
    "A, check off": "right",
    "B, check on": "error",
    "B, check off": "wrong",
    "C, check on": "error",
    "C, check off": "right",
}
# a psum needs the check
price_of_no_check__wrong_a = price_of_no_check__right_reasoned | {"A, check off": "wrong"}
# JAX adds it up
price_of_no_check__wrong_b = price_of_no_check__right_reasoned | {"B, check off": "right"}
# a loop is a loop
price_of_no_check__wrong_d = price_of_no_check__right_reasoned | {"C, check on": "right"}
# off means wrong
price_of_no_check__wrong_off = price_of_no_check__right_reasoned | {"C, check off": "wrong"}

before_it_begins__right_reasoned = {
    "laid out as P('x', None), in_specs P('x', None)": "nothing moves",
    "laid out as P(), in_specs P('x', None)": "nothing moves",
    "laid out as P('x', None), in_specs P('x', 'y')": "nothing moves",
    "laid out as P('x', None), in_specs P()": "data move",
    "laid out as P('x', 'y'), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P(None, 'x')": "data move",
}
# cutting is moving
before_it_begins__wrong_cut = before_it_begins__right_reasoned | {"laid out as P(), in_specs P('x', None)": "data move"}
# another spec, another place
before_it_begins__wrong_finer = before_it_begins__right_reasoned | {
    "laid out as P('x', None), in_specs P('x', 'y')": "data move"
}
# None changes nothing
before_it_begins__wrong_none = before_it_begins__right_reasoned | {
    "laid out as P('x', 'y'), in_specs P('x', None)": "nothing moves"
}
# a wish, so nothing moves
before_it_begins__wrong_wish = before_it_begins__right_reasoned | {
    "laid out as P('x', None), in_specs P()": "nothing moves"
}

pytree_specs__right_reasoned = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "too long",
    "(P(), P('z'))": "no such axis",
}
# a list is as good as a tuple
pytree_specs__wrong_list = pytree_specs__right_reasoned | {"[P(), P('x')]": "runs"}
# what is missing is whole
pytree_specs__wrong_missing = pytree_specs__right_reasoned | {"({'w': P('x')}, P('x'))": "runs"}
# b has one dimension, overlooked
pytree_specs__wrong_long = pytree_specs__right_reasoned | {"(P('x', None), P('x'))": "runs"}
# a None too many is a matter of the tree
pytree_specs__wrong_reason = pytree_specs__right_reasoned | {"(P('x', None), P('x'))": "wrong tree"}
# an unknown axis cuts nothing
pytree_specs__wrong_axis = pytree_specs__right_reasoned | {"(P(), P('z'))": "runs"}


def _layers(params, rows):
    for layer in params:
        rows = jax.nn.relu(rows @ layer["w"] + layer["b"])
    return rows


def many_layers__right_short(params, x, mesh):
    """One spec for the list."""
    in_specs = (P(), P("x"))
    return jax.shard_map(_layers, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


def many_layers__right_tree(params, x, mesh):
    """A spec for each leaf."""
    in_specs = ([{"w": P(), "b": P()} for _ in params], P("x"))
    return jax.shard_map(_layers, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


def many_layers__right_map(params, x, mesh):
    """jax.tree.map."""
    in_specs = (jax.tree.map(lambda _: P(), params), P("x", None))
    return jax.shard_map(_layers, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


def many_layers__wrong_one_layer(params, x, mesh):
    """A list of one layer."""
    in_specs = ([{"w": P(), "b": P()}], P("x"))
    return jax.shard_map(_layers, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


def many_layers__wrong_dict(params, x, mesh):
    """A dict for the list."""
    in_specs = ({"w": P(), "b": P()}, P("x"))
    return jax.shard_map(_layers, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


def many_layers__wrong_two(params, x, mesh):
    """Two layers."""
    in_specs = ([{"w": P(), "b": P()}] * 2, P("x"))
    return jax.shard_map(_layers, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


def many_layers__wrong_cut(params, x, mesh):
    """One spec for everything: weights cut too."""
    in_specs = P("x")
    return jax.shard_map(_layers, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


def many_layers__wrong_whole(params, x, mesh):
    """Nothing is cut, out_specs stack copies."""
    in_specs = P()
    return jax.shard_map(_layers, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


def many_layers__wrong_columns(params, x, mesh):
    """Cuts x by columns."""
    in_specs = (P(), P(None, "x"))
    return jax.shard_map(_layers, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


def many_layers__wrong_list(params, x, mesh):
    """A list, no tuple."""
    in_specs = [P(), P("x")]
    return jax.shard_map(_layers, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


def many_layers__wrong_only_params(params, x, mesh):
    """The comma without a second entry."""
    in_specs = (P(),)
    return jax.shard_map(_layers, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


partial_view__right_reasoned = {
    "in_specs=P('data', 'model'), no axis_names": (4, 4),
    "in_specs=P('data'), axis_names={'data'}": (4, 8),
    "in_specs=P(None, 'model'), axis_names={'model'}": (16, 4),
    "in_specs=P(), axis_names={'data'}": (16, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}
# model cuts too
partial_view__wrong_cut = partial_view__right_reasoned | {"in_specs=P('data'), axis_names={'data'}": (4, 4)}
# the other axis stays whole without a word
partial_view__wrong_named = partial_view__right_reasoned | {"in_specs=P('data', 'model'), axis_names={'data'}": (4, 8)}
# manual axes cut by themselves
partial_view__wrong_manual = partial_view__right_reasoned | {"in_specs=P(), axis_names={'data'}": (4, 8)}
# the sizes swapped
partial_view__wrong_sizes = partial_view__right_reasoned | {"in_specs=P('data', 'model'), no axis_names": (8, 2)}
# rows in place of columns
partial_view__wrong_rows = partial_view__right_reasoned | {"in_specs=P(None, 'model'), axis_names={'model'}": (8, 8)}


def centred_columns__right_pmean(x, *, mesh):
    """The plain way."""

    def body(block):
        return block - jax.lax.pmean(block.mean(axis=0), "x")

    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))(x)


def centred_columns__right_psum(x, *, mesh):
    """A psum of sums over the whole number of rows."""
    rows = x.shape[0]

    def body(block):
        mean = jax.lax.psum(block.sum(0, keepdims=True), "x") / rows
        return block - mean

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None), axis_names={"x"})(x)


def centred_columns__wrong_local(x, *, mesh):
    """The block's own mean."""
    return jax.shard_map(lambda b: b - b.mean(axis=0), mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(
        x
    )


def centred_columns__wrong_rows(x, *, mesh):
    """Rows in place of columns."""
    return jax.shard_map(
        lambda b: b - b.mean(axis=1, keepdims=True), mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
    )(x)


def centred_columns__wrong_all_manual(x, *, mesh):
    """Manual along both axes."""
    return jax.shard_map(
        lambda b: b - jax.lax.pmean(b.mean(axis=0), "x"), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y")
    )(x)


def centred_columns__wrong_named_y(x, *, mesh):
    """Names y in the specs."""
    return jax.shard_map(
        lambda b: b - jax.lax.pmean(b.mean(axis=0), "x"),
        mesh=mesh,
        in_specs=P("x", "y"),
        out_specs=P("x", "y"),
        axis_names={"x"},
    )(x)


def centred_columns__wrong_overall(x, *, mesh):
    """The mean of everything."""
    return jax.shard_map(
        lambda b: b - jax.lax.pmean(b.mean(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
    )(x)


def centred_columns__wrong_psum(x, *, mesh):
    """psum for pmean."""
    return jax.shard_map(
        lambda b: b - jax.lax.psum(b.mean(axis=0), "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
    )(x)


def centred_columns__wrong_mean_only(x, *, mesh):
    """Returns the mean, subtracts nothing."""
    return jax.shard_map(
        lambda b: jax.lax.pmean(b.mean(axis=0), "x"), mesh=mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"}
    )(x)


def centred_columns__wrong_manual_y(x, *, mesh):
    """Manual along y."""
    return jax.shard_map(
        lambda b: b - b.mean(axis=0), mesh=mesh, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"}
    )(x)


def centred_columns__wrong_dropped_y(x, *, mesh):
    """Manual along both, y forgotten: gathers the columns."""
    return jax.shard_map(
        lambda b: b - jax.lax.pmean(b.mean(axis=0), "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x")
    )(x)


def layer_by_hand__right_plain(x, w, b, *, mesh):
    """Product, psum, bias, sigmoid."""

    def body(x, w, b):
        return jax.nn.sigmoid(jax.lax.psum(x @ w, "x") + b)

    specs = (P("y", "x"), P("x", None), P())
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("y", None))(x, w, b)


def layer_by_hand__right_decorated(x, w, b, *, mesh):
    """A decorator, and the sigmoid spelled out."""

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=(P("y", "x"), P("x"), P(None)), out_specs=P("y"))
    def layer(x, w, b):
        z = jax.lax.psum(jnp.dot(x, w), "x") + b
        return 1 / (1 + jnp.exp(-z))

    return layer(x, w, b)


def _layer(body, mesh, x, w, b, out=P("y", None), **options):
    specs = (P("y", "x"), P("x", None), P())
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=out, **options)(x, w, b)


def layer_by_hand__wrong_bias_early(x, w, b, *, mesh):
    """The bias before the psum."""
    return _layer(lambda x, w, b: jax.nn.sigmoid(jax.lax.psum(x @ w + b, "x")), mesh, x, w, b)


def layer_by_hand__wrong_sigmoid_early(x, w, b, *, mesh):
    """The sigmoid before the psum."""
    return _layer(lambda x, w, b: jax.lax.psum(jax.nn.sigmoid(x @ w + b), "x"), mesh, x, w, b)


def layer_by_hand__wrong_no_psum(x, w, b, *, mesh):
    """Forgot the psum, with the check off."""
    return _layer(lambda x, w, b: jax.nn.sigmoid(x @ w + b), mesh, x, w, b, check_vma=False)


def layer_by_hand__wrong_refused(x, w, b, *, mesh):
    """Forgot the psum, with the check on."""
    return _layer(lambda x, w, b: jax.nn.sigmoid(x @ w + b), mesh, x, w, b)


def layer_by_hand__wrong_over_y(x, w, b, *, mesh):
    """The psum over y."""
    return _layer(lambda x, w, b: jax.nn.sigmoid(jax.lax.psum(x @ w, "y") + b), mesh, x, w, b, check_vma=False)


def layer_by_hand__wrong_over_both(x, w, b, *, mesh):
    """The psum over both axes."""
    return _layer(lambda x, w, b: jax.nn.sigmoid(jax.lax.psum(x @ w, ("x", "y")) + b), mesh, x, w, b, check_vma=False)


def layer_by_hand__wrong_no_bias(x, w, b, *, mesh):
    """Forgot the bias."""
    return _layer(lambda x, w, b: jax.nn.sigmoid(jax.lax.psum(x @ w, "x")), mesh, x, w, b)


def layer_by_hand__wrong_example(x, w, b, *, mesh):
    """The example's specs: features over x, batch whole."""

    def body(x, w, b):
        return jax.nn.sigmoid(jax.lax.psum(x @ w, "x") + b)

    specs = (P(None, "x"), P("x", None), P())
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P())(x, w, b)


def layer_by_hand__wrong_pmean(x, w, b, *, mesh):
    """pmean for psum."""
    return _layer(lambda x, w, b: jax.nn.sigmoid(jax.lax.pmean(x @ w, "x") + b), mesh, x, w, b)


def layer_by_hand__wrong_twice(x, w, b, *, mesh):
    """Sums twice."""
    return _layer(lambda x, w, b: jax.nn.sigmoid(jax.lax.psum(jax.lax.psum(x @ w, "x"), "x") + b), mesh, x, w, b)


def layer_by_hand__wrong_bias_and_sigmoid(x, w, b, *, mesh):
    """Two at once: the bias too early, and a mean."""
    return _layer(lambda x, w, b: jax.nn.sigmoid(2 * jax.lax.pmean(x @ w + b, "x")), mesh, x, w, b)


def layer_constrained__right_product(x, w, b, *, mesh):
    """Constrains the result."""
    return jax.lax.with_sharding_constraint(jax.nn.sigmoid(x @ w + b), NamedSharding(mesh, P("y", "x")))


def layer_constrained__right_out(x, w, b, *, mesh):
    """out_shardings."""
    out = NamedSharding(mesh, P("y", "x"))
    return jax.jit(lambda x, w, b: jax.nn.sigmoid(x @ w + b), out_shardings=out)(x, w, b)


def layer_constrained__wrong_rows(x, w, b, *, mesh):
    """Rows only."""
    return jax.lax.with_sharding_constraint(jax.nn.sigmoid(x @ w + b), NamedSharding(mesh, P("y", None)))


def layer_constrained__wrong_swapped(x, w, b, *, mesh):
    """Rows over x, columns over y."""
    return jax.lax.with_sharding_constraint(jax.nn.sigmoid(x @ w + b), NamedSharding(mesh, P("x", "y")))


def layer_constrained__wrong_unsaid(x, w, b, *, mesh):
    """Says nothing."""
    return jax.nn.sigmoid(x @ w + b)


def layer_constrained__wrong_dropped(x, w, b, *, mesh):
    """Ignores what the constraint returns."""
    y = jax.nn.sigmoid(x @ w + b)
    jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P("y", "x")))
    return y


def layer_constrained__wrong_bare(x, w, b, *, mesh):
    """A bare P."""
    return jax.lax.with_sharding_constraint(jax.nn.sigmoid(x @ w + b), P("y", "x"))


def layer_constrained__wrong_no_bias(x, w, b, *, mesh):
    """Forgot the bias."""
    return jax.lax.with_sharding_constraint(jax.nn.sigmoid(x @ w), NamedSharding(mesh, P("y", "x")))


def layer_constrained__wrong_by_hand(x, w, b, *, mesh):
    """By shard_map, which the text forbids."""

    def body(x, w, b):
        z = jax.lax.psum_scatter(x @ w, "x", scatter_dimension=1, tiled=True)
        return jax.nn.sigmoid(z + b)

    specs = (P("y", "x"), P("x", None), P("x"))
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("y", "x"))(x, w, b)


four_ways__right_tried = {
    "Auto mesh: sigmoid(x @ w + b)": 1,
    "Auto mesh: the same, constrained to P('y', None)": 1,
    "Auto mesh: shard_map, with one psum": 1,
    "Explicit mesh: sigmoid(x @ w + b)": "an error",
    "Explicit mesh: jnp.dot(x, w, out_sharding=…)": 1,
    "Explicit mesh: constrained to P('y', None)": "an error",
}
# the compiler needs none
four_ways__wrong_none = four_ways__right_tried | {"Auto mesh: sigmoid(x @ w + b)": 0}
# Auto as Explicit
four_ways__wrong_explicit = four_ways__right_tried | {"Explicit mesh: sigmoid(x @ w + b)": 1}
# a constraint adds one
four_ways__wrong_two = four_ways__right_tried | {"Auto mesh: the same, constrained to P('y', None)": 2}
# a constraint repairs it
four_ways__wrong_repaired = four_ways__right_tried | {"Explicit mesh: constrained to P('y', None)": 1}
# out_sharding is refused
four_ways__wrong_dot = four_ways__right_tried | {"Explicit mesh: jnp.dot(x, w, out_sharding=…)": "an error"}


def _straight(v, mesh, half_of, pairs_of, rows_of=None):
    def body(v):
        rows, columns = v.shape[0], v.shape[1] // 2
        new = jax.lax.pcast(jnp.zeros((2 * rows, columns), v.dtype), ("x", "y"), to="varying")
        me = jax.lax.axis_index("x")
        for j in range(2):
            half = half_of(me, j)
            cut = jax.lax.dynamic_slice_in_dim(v, half * columns, columns, 1)
            came = jax.lax.ppermute(cut, ("x", "y"), pairs_of(j))
            put = half if rows_of is None else rows_of(me, j)
            new = jax.lax.dynamic_update_slice_in_dim(new, came, put * rows, 0)
        return new

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


def _pairs(j):
    """In turn j device (x, y) sends its half (x + j) % 2 to the new device (2 y + half, x // 2)."""
    return [(2 * x + y, 2 * (2 * y + (x + j) % 2) + x // 2) for x in range(4) for y in range(2)]


def beat_the_compiler__right_halves(v, *, mesh):
    """Two ppermutes of half a block each."""
    return _straight(v, mesh, lambda me, j: (me + j) % 2, _pairs)


def beat_the_compiler__wrong_left_first(v, *, mesh):
    """All begin with their left half: two send to the same device."""
    pairs = lambda j: [(2 * x + y, 2 * (2 * y + j) + x // 2) for x in range(4) for y in range(2)]  # noqa: E731
    return _straight(v, mesh, lambda me, j: j, pairs)


def beat_the_compiler__wrong_rows(v, *, mesh):
    """Puts what comes into the rows of the turn."""
    return _straight(v, mesh, lambda me, j: (me + j) % 2, _pairs, lambda me, j: j)


def beat_the_compiler__wrong_constraint(v, *, mesh):
    """Leaves it to the compiler."""
    return jax.lax.with_sharding_constraint(v, NamedSharding(mesh, P("y", "x")))


def beat_the_compiler__wrong_only_said(v, *, mesh):
    """Only says other specs, and sends nothing."""
    body = lambda block: block.reshape(2 * block.shape[0], -1)  # noqa: E731
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


def beat_the_compiler__wrong_gather(v, *, mesh):
    """Gathers everything, and cuts its own block out."""

    def body(v):
        whole = jax.lax.all_gather(jax.lax.all_gather(v, "x", tiled=True), "y", axis=1, tiled=True)
        rows, columns = whole.shape[0] // 2, whole.shape[1] // 4
        x, y = jax.lax.axis_index("x"), jax.lax.axis_index("y")
        return jax.lax.dynamic_slice(whole, (y * rows, x * columns), (rows, columns))

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


def beat_the_compiler__wrong_whole_blocks(v, *, mesh):
    """Sends whole blocks twice, and keeps a half of each."""

    def body(v):
        rows, columns = v.shape[0], v.shape[1] // 2
        new = jax.lax.pcast(jnp.zeros((2 * rows, columns), v.dtype), ("x", "y"), to="varying")
        me = jax.lax.axis_index("x")
        for j in range(2):
            came = jax.lax.ppermute(v, ("x", "y"), _pairs(j))
            half = (me + j) % 2
            kept = jax.lax.dynamic_slice_in_dim(came, (me % 2) * columns, columns, 1)
            new = jax.lax.dynamic_update_slice_in_dim(new, kept, half * rows, 0)
        return new

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


def beat_the_compiler__wrong_swapped(v, *, mesh):
    """Exchanges x and y in the numbers of the devices."""
    pairs = lambda j: [(x + 4 * y, 2 * y + (x + j) % 2 + 4 * (x // 2)) for x in range(4) for y in range(2)]  # noqa: E731
    return _straight(v, mesh, lambda me, j: (me + j) % 2, pairs)


def column_sums__wrong_half(x, *, mesh):
    """Half the bytes: sent in bfloat16."""

    def body(block):
        return jax.lax.psum(block.sum(axis=0).astype(jnp.bfloat16), "x").astype(block.dtype)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


def beat_the_compiler__wrong_half(v, *, mesh):
    """The compiler's own way, at half the bytes: sent in bfloat16."""

    def body(block):
        paired = jax.lax.all_to_all(
            block.astype(jnp.bfloat16), "x", 1, 0, axis_index_groups=[[0, 1], [2, 3]], tiled=True
        )
        pairs = [(2 * x + y, 2 * (2 * y + x % 2) + x // 2) for x in range(4) for y in range(2)]
        return jax.lax.ppermute(paired, ("x", "y"), pairs).astype(block.dtype)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)
