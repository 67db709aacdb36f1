"""Answers to lesson 10, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, auto_axes, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def differences(series):
    """Each row minus the one before it, the first minus the last. (The notebook's.)"""
    return series - jnp.roll(series, 1, axis=0)


# --- typeof
_TYPES = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}
typeof__right_all = dict(_TYPES)
typeof__wrong_transpose = {
    **_TYPES,
    "jnp.sin(a).T": "float32[8@x,16@y]",
}  # the axes stay in their places when the dimensions turn
typeof__wrong_sum = {**_TYPES, "a.sum(0)": "float32[8]"}  # believes that a sum is whole everywhere
typeof__wrong_other_dimension = {**_TYPES, "a.sum(0)": "float32[16@x]"}  # the sum over dimension 1
typeof__wrong_whole_column = {**_TYPES, "a + v[:, None]": "float32[16@x,8]"}  # the stretched dimension makes it whole
typeof__wrong_local = {**_TYPES, "r @ s": "float32[8@x,12@y]"}  # the shape of one device's block
typeof__wrong_grad = {**_TYPES, "jax.grad(lambda a: (a * a).sum())(a)": "float32[]"}  # the type of the loss, not of a


# --- explicit_layer
def explicit_layer__right_dot(a, b, *, mesh):
    product = jnp.dot(a, b, out_sharding=NamedSharding(mesh, P("x", None)))
    return jax.nn.relu(product)


def explicit_layer__right_einsum(a, b, *, mesh):
    return jnp.maximum(jnp.einsum("ij,jk->ik", a, b, out_sharding=NamedSharding(mesh, P("x", None))), 0)


def explicit_layer__right_later(a, b, *, mesh):
    parts = jnp.dot(a, b, out_sharding=NamedSharding(mesh, P("x", None, unreduced={"y"})))
    return jax.nn.relu(reshard(parts, NamedSharding(mesh, P("x", None))))


def explicit_layer__wrong_as_it_is(a, b, *, mesh):
    # stops: nobody says what becomes of the parts
    return jax.nn.relu(a @ b)


def explicit_layer__wrong_whole(a, b, *, mesh):
    # the rows are gathered as well
    return jax.nn.relu(jnp.dot(a, b, out_sharding=NamedSharding(mesh, P())))


def explicit_layer__wrong_columns(a, b, *, mesh):
    # columns cut over y: another layout
    return jax.nn.relu(jnp.dot(a, b, out_sharding=NamedSharding(mesh, P("x", "y"))))


def explicit_layer__wrong_no_relu(a, b, *, mesh):
    # relu forgotten
    return jnp.dot(a, b, out_sharding=NamedSharding(mesh, P("x", None)))


def explicit_layer__wrong_gathered(a, b, *, mesh):
    # gathers both operands over y before the product: no all-reduce, more bytes
    a = reshard(a, NamedSharding(mesh, P("x", None)))
    b = reshard(b, NamedSharding(mesh, P(None, None)))
    return jax.nn.relu(a @ b)


def explicit_layer__wrong_bare(a, b, *, mesh):
    # a bare P where no mesh is set
    return jax.nn.relu(jnp.dot(a, b, out_sharding=P("x", None)))


# --- embed
def embed__right_get(table, ids, *, mesh):
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", None, "y")))


def embed__right_shard_map(table, ids, *, mesh):
    look_up = jax.shard_map(
        lambda t, i: t[i], mesh=mesh, in_specs=(P(None, "y"), P("x", None)), out_specs=P("x", None, "y")
    )
    return look_up(table, ids)


def embed__wrong_whole(table, ids, *, mesh):
    # whole on every device: everything is gathered
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P()))


def embed__wrong_plain(table, ids, *, mesh):
    # as in NumPy: stops
    return table[ids]


def embed__wrong_place(table, ids, *, mesh):
    # y on the second dimension, of length 3, and not on D
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", "y", None)))


def embed__wrong_only_x(table, ids, *, mesh):
    # the columns of the table are gathered
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", None, None)))


def embed__wrong_exchanged(table, ids, *, mesh):
    # x and y exchanged
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("y", None, "x")))


# --- half_mesh
def half_mesh__right_slice(second, sizes):
    devices = jax.devices()[4:8] if second else jax.devices()[:4]
    return jax.make_mesh(
        tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes), devices=devices
    )


def half_mesh__right_mesh(second, sizes):
    start = 4 * bool(second)
    grid = np.array(jax.devices()[start : start + 4]).reshape(list(sizes.values()))
    return jax.sharding.Mesh(grid, tuple(sizes.keys()), axis_types=tuple(AxisType.Explicit for _ in sizes))


def half_mesh__wrong_first(second, sizes):
    # always the first four
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes))


def half_mesh__wrong_even_odd(second, sizes):
    # every second device
    return jax.make_mesh(
        tuple(sizes.values()),
        tuple(sizes),
        axis_types=(AxisType.Explicit,) * len(sizes),
        devices=jax.devices()[bool(second) :: 2],
    )


def half_mesh__wrong_auto(second, sizes):
    # Auto axes
    devices = jax.devices()[4:] if second else jax.devices()[:4]
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes), devices=devices)


def half_mesh__wrong_two_axes(second, sizes):
    # two types, however many axes there are
    devices = jax.devices()[4:] if second else jax.devices()[:4]
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * 2, devices=devices)


def half_mesh__wrong_halves(second, sizes):
    # first and second exchanged
    devices = jax.devices()[:4] if second else jax.devices()[4:]
    return jax.make_mesh(
        tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes), devices=devices
    )


# --- borrowed
def borrowed__right_auto_axes(series, *, mesh):
    return auto_axes(differences)(series, out_sharding=NamedSharding(mesh, P("x", None)))


def borrowed__right_its_own(series, *, mesh):
    return auto_axes(differences, out_sharding=NamedSharding(mesh, P("x", None)))(series)


def borrowed__wrong_plain(series, *, mesh):
    # called as it is: roll's own rule stops it
    return differences(series)


def borrowed__wrong_gathered(series, *, mesh):
    # gathers the series first, and cuts again: every row travels
    whole = reshard(series, NamedSharding(mesh, P(None, None)))
    return reshard(differences(whole), NamedSharding(mesh, P("x", None)))


def borrowed__wrong_whole(series, *, mesh):
    # the result whole on every device
    return auto_axes(differences)(series, out_sharding=NamedSharding(mesh, P()))


def borrowed__wrong_no_layout(series, *, mesh):
    # without out_sharding the wrapped function stops
    return auto_axes(differences)(series)


def borrowed__wrong_in_blocks(series, *, mesh):
    # inside shard_map roll closes each block: the first row of every block is wrong
    return jax.shard_map(differences, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# --- lora
def lora__right_hint(x, W, A, B, *, mesh):
    later = NamedSharding(mesh, P(None, None, unreduced={"x"}))
    cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    total = jnp.dot(cut, W, out_sharding=later) + jnp.dot(x @ A, B, out_sharding=later)
    return reshard(total, NamedSharding(mesh, P(None, None)))


def lora__right_by_hand(x, W, A, B, *, mesh):
    def body(cut, x, W, A, B):
        return jax.lax.psum(cut @ W + (x @ A) @ B, "x")

    specs = P(None, "x"), P(), P("x", None), P(None, "x"), P("x", None)
    whole = reshard(x, NamedSharding(mesh, P(None, None)))
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P())(
        reshard(x, NamedSharding(mesh, P(None, "x"))), whole, W, A, B
    )


def lora__wrong_two_sums(x, W, A, B, *, mesh):
    # each product is summed on its own: two all-reduces
    done = NamedSharding(mesh, P())
    cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    return jnp.dot(cut, W, out_sharding=done) + jnp.dot(x @ A, B, out_sharding=done)


def lora__wrong_gathers_w(x, W, A, B, *, mesh):
    # x is not cut: W is gathered
    return jnp.dot(x, W, out_sharding=NamedSharding(mesh, P())) + jnp.dot(
        x @ A, B, out_sharding=NamedSharding(mesh, P())
    )


def lora__wrong_unfinished(x, W, A, B, *, mesh):
    # the last reshard is missing: the sum is never made
    later = NamedSharding(mesh, P(unreduced={"x"}))
    cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    return jnp.dot(cut, W, out_sharding=later) + jnp.dot(x @ A, B, out_sharding=later)


def lora__wrong_no_adapter(x, W, A, B, *, mesh):
    # the layer without its adapter
    cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    return jnp.dot(cut, W, out_sharding=NamedSharding(mesh, P()))


def lora__wrong_one_finished(x, W, A, B, *, mesh):
    # a finished term is added to an unreduced one: refused
    cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    total = jnp.dot(cut, W, out_sharding=NamedSharding(mesh, P())) + jnp.dot(
        x @ A, B, out_sharding=NamedSharding(mesh, P(unreduced={"x"}))
    )
    return reshard(total, NamedSharding(mesh, P()))
