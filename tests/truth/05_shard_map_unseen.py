"""Answers to lesson 05, written by a reader of the notebook only."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
MESH = mesh


def varying(value, axes):
    """The value, typed as one that may differ along `axes`. (The notebook's.)"""
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, axes, to="varying")
    return jax.lax.pvary(value, axes)


# --- global_mean
def global_mean__right_pmean(x, *, mesh):
    def on_device(block):
        return jax.lax.pmean(block.mean(), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def global_mean__right_sum(x, *, mesh):
    def on_device(block):
        return jax.lax.psum(jnp.sum(block) / x.size, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def global_mean__wrong_sum_of_means(x, *, mesh):
    # the sum of the blocks' means
    def on_device(block):
        return jax.lax.psum(block.mean(), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def global_mean__wrong_block_length(x, *, mesh):
    # divides by the length of a block
    def on_device(block):
        return jax.lax.psum(block.sum(), "x") / block.shape[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def global_mean__wrong_eight(x, *, mesh):
    # eight blocks: counts all devices, not those along x
    def on_device(block):
        return jax.lax.psum(block.sum(), "x") / (8 * block.size)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def global_mean__wrong_blocks_sent(x, *, mesh):
    # the right number, but whole blocks are sent, not one number
    def on_device(block):
        return jax.lax.pmean(block, "x").mean()

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def global_mean__wrong_own(x, *, mesh):
    # no collective: each device its own mean, the check turned off
    return jax.shard_map(lambda block: block.mean(), mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


# --- transpose_without_sending
def transpose_without_sending__right_both(x, *, mesh):
    return jax.shard_map(lambda block: block.T, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(x)


def transpose_without_sending__right_einsum(x, *, mesh):
    turn = partial(jnp.einsum, "ij->ji")
    return jax.shard_map(turn, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(x)


def transpose_without_sending__wrong_grid_only(x, *, mesh):
    # the grid is turned, the blocks are not
    return jax.shard_map(lambda block: block, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(x)


def transpose_without_sending__wrong_block_only(x, *, mesh):
    # the blocks are turned, the grid is not
    return jax.shard_map(lambda block: block.T, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


def transpose_without_sending__wrong_layout(x, *, mesh):
    # the transpose, brought back to P("x", "y"): that sends
    return jax.device_put(x.T, NamedSharding(mesh, P("x", "y")))


def transpose_without_sending__wrong_gathered(x, *, mesh):
    # gathers the array, turns it, and lets each device keep its block: right values, but all is sent
    def body(block):
        rows = jax.lax.all_gather(block, "x", axis=0, tiled=True)
        whole = jax.lax.all_gather(rows, "y", axis=1, tiled=True).T
        i, k = jax.lax.axis_index("y"), jax.lax.axis_index("x")
        h, w = block.shape[1], block.shape[0]
        return jax.lax.dynamic_slice(whole, (i * h, k * w), (h, w))

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(x)


def transpose_without_sending__wrong_reshaped(x, *, mesh):
    # reshape is not a transpose
    return jax.shard_map(lambda b: b.reshape(b.shape[::-1]), mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(x)


# --- block_sums
def block_sums__right_keepdims(x, *, mesh):
    return jax.shard_map(
        lambda b: b.sum(axis=0, keepdims=True), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y")
    )(x)


def block_sums__right_none(x, *, mesh):
    def rows_added(block):
        total = jnp.sum(block, 0)
        return total[None, :]

    return jax.shard_map(rows_added, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


def block_sums__wrong_psum(x, *, mesh):
    # adds over x as well: the same row in every place
    def body(block):
        return jax.lax.psum(block.sum(axis=0, keepdims=True), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


def block_sums__wrong_dimension(x, *, mesh):
    # the sums of the rows
    return jax.shard_map(
        lambda b: b.sum(axis=1, keepdims=True), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y")
    )(x)


def block_sums__wrong_no_keepdims(x, *, mesh):
    # the rows have no dimension to be lined up in: an error
    return jax.shard_map(lambda b: b.sum(axis=0), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


def block_sums__wrong_side_by_side(x, *, mesh):
    # one vector, the blocks' sums one after the other
    return jax.shard_map(lambda b: b.sum(axis=0), mesh=mesh, in_specs=P("x", "y"), out_specs=P(("x", "y")))(x)


def block_sums__wrong_mean(x, *, mesh):
    # means for sums
    return jax.shard_map(
        lambda b: b.mean(axis=0, keepdims=True), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y")
    )(x)


# --- axis_index_coords
def axis_index_coords__right_stack(mesh):
    def place():
        return jnp.stack([jax.lax.axis_index("x"), jax.lax.axis_index("y")])[None]

    return jax.shard_map(place, mesh=mesh, in_specs=(), out_specs=P(("x", "y")))()


def axis_index_coords__right_divmod(mesh):
    def place():
        number = jax.lax.axis_index(("x", "y"))
        return jnp.array([number // mesh.shape["y"], number % mesh.shape["y"]]).reshape(1, 2)

    return jax.shard_map(place, mesh=mesh, in_specs=(), out_specs=P(("x", "y"), None))()


def axis_index_coords__wrong_swapped(mesh):
    # y before x in the row
    def place():
        return jnp.stack([jax.lax.axis_index("y"), jax.lax.axis_index("x")])[None]

    return jax.shard_map(place, mesh=mesh, in_specs=(), out_specs=P(("x", "y")))()


def axis_index_coords__wrong_counted(mesh):
    # the devices are counted with x as the fast digit
    def place():
        return jnp.stack([jax.lax.axis_index("x"), jax.lax.axis_index("y")])[None]

    return jax.shard_map(place, mesh=mesh, in_specs=(), out_specs=P(("y", "x")))()


def axis_index_coords__wrong_one_device(mesh):
    # right numbers, but all of them on device 0
    return jnp.array([[i, k] for i in range(mesh.shape["x"]) for k in range(mesh.shape["y"])])


def axis_index_coords__wrong_four_by_two(mesh):
    # the 4 × 2 mesh of the notebook
    def place():
        return jnp.stack([jax.lax.axis_index("x"), jax.lax.axis_index("y")])[None]

    return jax.shard_map(place, mesh=MESH, in_specs=(), out_specs=P(("x", "y")))()


def axis_index_coords__wrong_flat(mesh):
    # no leading dimension: sixteen numbers in a row
    def place():
        return jnp.stack([jax.lax.axis_index("x"), jax.lax.axis_index("y")])

    return jax.shard_map(place, mesh=mesh, in_specs=(), out_specs=P(("x", "y")))()


# --- polynomial
def polynomial__right_fori(c, x, *, mesh):
    def body(c, block):
        start = varying(jnp.zeros(block.shape, block.dtype), "x")
        return jax.lax.fori_loop(0, c.shape[0], lambda k, y: y * block + c[k], start)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


def polynomial__right_scan(c, x, *, mesh):
    def body(c, block):
        return jax.lax.scan(lambda y, coefficient: (y * block + coefficient, None), 0 * block, c)[0]

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


def polynomial__wrong_not_cast(c, x, *, mesh):
    # the carry begins as zeros that do not vary: the type error
    def body(c, block):
        return jax.lax.fori_loop(0, c.shape[0], lambda k, y: y * block + c[k], jnp.zeros(block.shape))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


def polynomial__wrong_low_first(c, x, *, mesh):
    # the lowest power first
    def body(c, block):
        return jax.lax.scan(lambda y, a: (y * block + a, None), 0 * block, c[::-1])[0]

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


def polynomial__wrong_add_first(c, x, *, mesh):
    # adds, then multiplies: one factor x too many
    def body(c, block):
        return jax.lax.scan(lambda y, a: ((y + a) * block, None), 0 * block, c)[0]

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


def polynomial__wrong_one_short(c, x, *, mesh):
    # the last coefficient is left out
    def body(c, block):
        return jax.lax.fori_loop(0, c.shape[0] - 1, lambda k, y: y * block + c[k], 0 * block)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


def polynomial__wrong_ones(c, x, *, mesh):
    # begins with 1
    def body(c, block):
        return jax.lax.fori_loop(0, c.shape[0], lambda k, y: y * block + c[k], varying(jnp.ones(block.shape), "x"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


# --- after_gather
_GATHERED = {
    "block": (1,),
    "all_gather(block, 'i', tiled=True)": (4,),
    "all_gather(block, 'i')": (4, 1),
    "result of the tiled one, out_specs=P('i')": (16,),
    "result of the tiled one, out_specs=P()": (4,),
}
after_gather__right_counted = dict(_GATHERED)
after_gather__wrong_untiled = {**_GATHERED, "all_gather(block, 'i')": (4,)}  # stacking gives one more dimension
after_gather__wrong_global = {**_GATHERED, "block": (4,)}  # the shape of the whole array
after_gather__wrong_cut = {
    **_GATHERED,
    "result of the tiled one, out_specs=P('i')": (4,),
}  # believes that out_specs cut
after_gather__wrong_behind = {**_GATHERED, "all_gather(block, 'i')": (1, 4)}  # the new dimension put last
