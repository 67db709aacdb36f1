"""Answers to lesson 06, second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
MESH = mesh


def distributed_transpose__right_turn_first(x, *, mesh):
    """Turns the block first, then deals out its rows."""

    def body(rows):
        return jax.lax.all_to_all(rows.T, "x", split_axis=0, concat_axis=1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


def distributed_transpose__wrong_cut_by_columns(x, *, mesh):
    """The transpose, but cut by its columns: nothing was exchanged."""
    return jax.shard_map(lambda rows: rows.T, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


def distributed_transpose__wrong_not_turned(x, *, mesh):
    """The exercise before, and no .T: X itself, cut by columns."""
    body = lambda rows: jax.lax.all_to_all(rows, "x", split_axis=1, concat_axis=0, tiled=True)
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


def distributed_transpose__wrong_blocks_stacked(x, *, mesh):
    """Each block turned where it is, and stacked."""
    return jax.shard_map(lambda rows: rows.T, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


def distributed_transpose__wrong_gathered(x, *, mesh):
    """Right numbers, but all of X is sent to everybody: far from the fewest bytes."""
    n = mesh.shape["x"]

    def body(rows):
        whole = jax.lax.all_gather(rows, "x", axis=0, tiled=True)
        width = whole.shape[1] // n
        start = jax.lax.axis_index("x") * width
        return jax.lax.dynamic_slice_in_dim(whole, start, width, axis=1).T

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


def global_argmax__right_own_candidate(v, *, mesh):
    """Each device offers one candidate; who does not have the largest offers a place past the end."""
    length = v.shape[0]

    def body(block):
        own = block.max()
        place = jnp.argmax(block) + jax.lax.axis_index("x") * block.shape[0]
        return jax.lax.pmin(jnp.where(own == jax.lax.pmax(own, "x"), place, length), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


def global_argmax__wrong_in_the_block(v, *, mesh):
    """The place within a block, not within the whole."""

    def body(block):
        own = block.max()
        place = jnp.argmax(block)
        return jax.lax.pmin(jnp.where(own == jax.lax.pmax(own, "x"), place, v.shape[0]), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


def global_argmax__wrong_last_one(v, *, mesh):
    """The last of several equal ones."""

    def body(block):
        largest = jax.lax.pmax(block.max(), "x")
        places = jax.lax.axis_index("x") * block.shape[0] + jnp.arange(block.shape[0])
        return jax.lax.pmax(jnp.where(block == largest, places, -1).max(), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


def global_argmax__wrong_index_added(v, *, mesh):
    """axis_index, without the length of a block."""

    def body(block):
        largest = jax.lax.pmax(block.max(), "x")
        places = jax.lax.axis_index("x") + jnp.arange(block.shape[0])
        return jax.lax.pmin(jnp.where(block == largest, places, v.shape[0]).min(), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


def global_argmax__wrong_value(v, *, mesh):
    """The largest entry, not its place."""
    return jax.shard_map(lambda block: jax.lax.pmax(block.max(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(v)


def safe_softmax__right_log(x, *, mesh):
    """exp of x minus its log-sum-exp."""

    def body(x):
        shifted = x - jax.lax.pmax(x.max(axis=1), "x")[:, None]
        total = jax.lax.psum(jnp.exp(shifted).sum(axis=1), "x")
        return jnp.exp(shifted - jnp.log(total)[:, None])

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(x)


def safe_softmax__wrong_own_columns(x, *, mesh):
    """The softmax of each device's columns: each row adds up to n."""
    body = lambda x: jax.nn.softmax(x, axis=1)
    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(x)


def safe_softmax__wrong_own_largest(x, *, mesh):
    """Each device takes off its own largest: the terms are scaled differently."""

    def body(x):
        e = jnp.exp(x - x.max(axis=1, keepdims=True))
        return e / jax.lax.psum(e.sum(axis=1, keepdims=True), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(x)


def safe_softmax__wrong_columns(x, *, mesh):
    """The wrong axis: columns for rows."""

    def body(x):
        e = jnp.exp(x - x.max(axis=0, keepdims=True))
        return e / e.sum(axis=0, keepdims=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(x)


def safe_softmax__wrong_unsafe(x, *, mesh):
    """Nothing comes off before exp: infinity for large logits."""

    def body(x):
        e = jnp.exp(x)
        return e / jax.lax.psum(e.sum(axis=1, keepdims=True), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(x)


def masked_mean__right_pair(x, mask, *, mesh):
    """Both sums in one psum."""

    def body(x, mask):
        total, count = jax.lax.psum((jnp.where(mask, x, 0).sum(), jnp.count_nonzero(mask)), "x")
        return total / count

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())(x, mask)


def masked_mean__wrong_mean_of_means(x, mask, *, mesh):
    """The mean of the devices' means."""

    def body(x, mask):
        own = jnp.where(mask, x, 0).sum() / jnp.maximum(mask.sum(), 1)
        return jax.lax.pmean(own, "x")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())(x, mask)


def masked_mean__wrong_all_entries(x, mask, *, mesh):
    """Divides by all entries, kept or not."""
    body = lambda x, mask: jax.lax.pmean(jnp.where(mask, x, 0).mean(), "x")
    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())(x, mask)


def masked_mean__wrong_divided_early(x, mask, *, mesh):
    """Each device divides by its own count, then the quotients are added."""
    body = lambda x, mask: jax.lax.psum(jnp.where(mask, x, 0).sum() / mask.sum(), "x")
    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())(x, mask)


def masked_mean__wrong_sum(x, mask, *, mesh):
    """The sum, not the mean."""
    body = lambda x, mask: jax.lax.psum(jnp.where(mask, x, 0).sum(), "x")
    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())(x, mask)
