"""Answers to lesson 05, ninth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


def varying(value, axes):
    """The value, typed as one that may differ along `axes`."""
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, axes, to="varying")
    return jax.lax.pvary(value, axes)


# ---------------------------------------------------------------- polynomial


def polynomial__right_from_the_first(c, x, *, mesh):
    def on_device(c, block):
        start = 0 * block + c[0]  # varies over x, because block does
        value, _ = jax.lax.scan(lambda y, coefficient: (y * block + coefficient, None), start, c[1:])
        return value

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


# A coefficient's place in the list is its power: c[k] goes with x**k.
def polynomial__wrong_power_is_index(c, x, *, mesh):
    def on_device(c, block):
        total = varying(jnp.zeros(block.shape), "x")
        return jax.lax.fori_loop(0, c.shape[0], lambda k, y: y + c[k] * block**k, total)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


# The carry may vary between devices, and devices lie along all axes of the mesh, so I cast it over all of them.
def polynomial__wrong_cast_over_all(c, x, *, mesh):
    def on_device(c, block):
        start = varying(jnp.zeros(block.shape), mesh.axis_names)
        return jax.lax.fori_loop(0, c.shape[0], lambda k, y: y * block + c[k], start)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


# The spec stands for both arguments (one spec may stand for the whole tuple), c is an argument like x.
def polynomial__wrong_one_spec(c, x, *, mesh):
    def on_device(c, block):
        start = varying(jnp.zeros(block.shape), "x")
        return jax.lax.fori_loop(0, c.shape[0], lambda k, y: y * block + c[k], start)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(c, x)


# Each turn adds its coefficient and then multiplies by x.
def polynomial__wrong_add_then_multiply(c, x, *, mesh):
    def on_device(c, block):
        def turn(y, ck):
            y = y + ck
            y = y * block
            return y, None

        y, _ = jax.lax.scan(turn, varying(jnp.zeros(block.shape), "x"), c)
        return y

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


# ---------------------------------------------------------------- axis_index_coords


def axis_index_coords__right_divmod(mesh):
    def on_device():
        rank = jax.lax.axis_index(("x", "y"))
        return jnp.stack(jnp.divmod(rank, mesh.shape["y"])).reshape(1, 2)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(), out_specs=P(("x", "y")))()


# A place is (column, row), as the coords of the TPU chips in lesson 01, and x is the first of the two.
def axis_index_coords__wrong_column_row(mesh):
    def on_device():
        row, column = jax.lax.axis_index("x"), jax.lax.axis_index("y")
        return jnp.stack([column, row])[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(), out_specs=P(("x", "y")))()


# The k-th device stands at x = k // 2, y = k % 2.
def axis_index_coords__wrong_two_columns(mesh):
    def on_device():
        k = jax.lax.axis_index(("x", "y"))
        return jnp.stack([k // 2, k % 2])[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(), out_specs=P(("x", "y")))()


# The result is one (8, 2) array, so the rows have to be brought together first: gather, then it is the same everywhere.
def axis_index_coords__wrong_gathered(mesh):
    def on_device():
        mine = jnp.stack([jax.lax.axis_index("x"), jax.lax.axis_index("y")])[None]
        return jax.lax.all_gather(mine, ("x", "y"), tiled=True, to="invarying")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(), out_specs=P())()


# y is what goes up first from device to device, so it stands first; the index and out_specs only have to use the same order.
def axis_index_coords__wrong_same_order_in_both(mesh):
    axes = ("y", "x")

    def on_device():
        rank = jax.lax.axis_index(axes)
        return jnp.stack([rank % mesh.shape["x"], rank // mesh.shape["x"]])[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(), out_specs=P(axes))()


# ---------------------------------------------------------------- global_mean


def global_mean__right_share_of_each(x, *, mesh):
    """The mean of all entries, on every device."""

    def on_device(block):
        return jax.lax.psum(jnp.sum(block / x.size), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


# The mean shall be the same on every device, so average over every axis of the mesh; along y all are equal, so it does no harm.
def global_mean__wrong_over_both(x, *, mesh):
    """The mean of all entries, on every device."""

    def on_device(block):
        return jax.lax.pmean(block.mean(), mesh.axis_names)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


# all_reduce, then divide by the world size: that is how one averages over devices.
def global_mean__wrong_world_size(x, *, mesh):
    """The mean of all entries, on every device."""

    def on_device(block):
        local = block.mean()
        total = jax.lax.psum(local, "x")
        return total / mesh.size

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


# First let the devices agree (pmean of the blocks), then everybody takes the mean of what all have now.
def global_mean__wrong_blocks_first(x, *, mesh):
    """The mean of all entries, on every device."""

    def on_device(block):
        return jax.lax.pmean(block, "x").mean()

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


# A scalar has no dimension for out_specs to line it up in, so I keep one.
def global_mean__wrong_keeps_dimension(x, *, mesh):
    """The mean of all entries, on every device."""

    def on_device(block):
        return jax.lax.pmean(jnp.mean(block, keepdims=True), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)
