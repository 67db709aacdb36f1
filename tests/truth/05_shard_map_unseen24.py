"""Answers to lesson 05, twenty-fourth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---- pytree_specs

pytree_specs__right_table = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "too long",
    "(P(), P('z'))": "no such axis",
}

# Thought: a list of two specs is as good as a tuple of two.
pytree_specs__wrong_lististuple = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "runs",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "too long",
    "(P(), P('z'))": "no such axis",
}

# Thought: what a dict of specs leaves out is simply replicated, as a dimension is that a spec leaves out.
pytree_specs__wrong_missingkey = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "runs",
    "(P('x', None), P('x'))": "too long",
    "(P(), P('z'))": "no such axis",
}

# Thought: P('x', None) and P('x') are the same spec, a None at the end cuts nothing and so does no harm.
pytree_specs__wrong_trailingnone = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "runs",
    "(P(), P('z'))": "no such axis",
}

# Thought: the specs need exactly the tree of the arguments, so one spec never stands for a dict of two arrays.
pytree_specs__wrong_exacttree = {
    "(P(), P('x'))": "wrong tree",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "wrong tree",
    "(P(), P('z'))": "wrong tree",
}


# ---- beat_the_compiler


def beat_the_compiler__right_stacked(v, *, mesh):
    def body(block):
        me = jax.lax.axis_index("x")
        halves = jnp.stack(jnp.split(block, 2, axis=1))
        got = []
        for j in range(2):
            pairs = []
            for sx in range(4):
                for sy in range(2):
                    half = (sx + j) % 2
                    pairs.append((2 * sx + sy, 2 * (2 * sy + half) + sx // 2))
            got.append(jax.lax.ppermute(halves[(me + j) % 2], ("x", "y"), pairs))
        even = me % 2 == 0
        top = jnp.where(even, got[0], got[1])
        bottom = jnp.where(even, got[1], got[0])
        return jnp.concatenate([top, bottom], axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


# Thought: what comes first goes on top and what comes second below, on every device.
def beat_the_compiler__wrong_arrivalorder(v, *, mesh):
    def body(block):
        me = jax.lax.axis_index("x")
        width = block.shape[1] // 2
        came = []
        for j in range(2):
            half = (me + j) % 2
            piece = jax.lax.dynamic_slice_in_dim(block, half * width, width, axis=1)
            pairs = [(2 * sx + sy, 2 * (2 * sy + (sx + j) % 2) + sx // 2) for sx in range(4) for sy in range(2)]
            came.append(jax.lax.ppermute(piece, ("x", "y"), pairs))
        return jnp.concatenate(came, axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


# Thought: x counts fastest in ("x", "y"), so a device's number is x + 4y.
def beat_the_compiler__wrong_numbering(v, *, mesh):
    def number(x, y):
        return x + 4 * y

    def body(block):
        me = jax.lax.axis_index("x")
        height, width = block.shape[0], block.shape[1] // 2
        new = jnp.concatenate([block[:, :width], block[:, :width]], axis=0)
        for j in range(2):
            half = (me + j) % 2
            piece = jax.lax.dynamic_slice_in_dim(block, half * width, width, axis=1)
            pairs = []
            for sx in range(4):
                for sy in range(2):
                    pairs.append((number(sx, sy), number(2 * sy + (sx + j) % 2, sx // 2)))
            piece = jax.lax.ppermute(piece, ("x", "y"), pairs)
            new = jax.lax.dynamic_update_slice_in_dim(new, piece, half * height, axis=0)
        return new

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


# Thought: send the block as it is in both turns and let the receiver cut out what it needs; it is one ppermute per source anyway.
def beat_the_compiler__wrong_wholeblocks(v, *, mesh):
    def body(block):
        me = jax.lax.axis_index("x")
        width = block.shape[1] // 2
        got = []
        for j in range(2):
            pairs = [(2 * sx + sy, 2 * (2 * sy + (sx + j) % 2) + sx // 2) for sx in range(4) for sy in range(2)]
            came = jax.lax.ppermute(block, ("x", "y"), pairs)
            got.append(jax.lax.dynamic_slice_in_dim(came, (me % 2) * width, width, axis=1))
        top = jnp.where(me % 2 == 0, got[0], got[1])
        bottom = jnp.where(me % 2 == 0, got[1], got[0])
        return jnp.concatenate([top, bottom], axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


# Thought: the new block has twice the rows and half the columns, so give it that shape, and out_specs do the rest.
def beat_the_compiler__wrong_reshape(v, *, mesh):
    def body(block):
        return block.reshape(2 * block.shape[0], block.shape[1] // 2)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


# ---- transpose_without_sending


def transpose_without_sending__right_einsum(x, *, mesh):
    turn = jax.shard_map(
        lambda block: jnp.einsum("ij->ji", block), mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x")
    )
    return turn(x)


# Thought: out_specs with the axes the other way round are the transpose, the body has nothing to do.
def transpose_without_sending__wrong_blockstays(x, *, mesh):
    return jax.shard_map(lambda block: block, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(x)


# Thought: nothing is sent, so every block stays in its place of the grid, and out_specs are in_specs.
def transpose_without_sending__wrong_gridstays(x, *, mesh):
    return jax.shard_map(lambda block: block.T, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


# Thought: a transposed block is the block in the other shape.
def transpose_without_sending__wrong_reshape(x, *, mesh):
    def body(block):
        rows, columns = block.shape
        return block.reshape(columns, rows)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(x)


# Thought: ask for the blocks in the turned grid on the way in, then each device turns its own.
def transpose_without_sending__wrong_turnedin(x, *, mesh):
    return jax.shard_map(jnp.transpose, mesh=mesh, in_specs=P("y", "x"), out_specs=P("x", "y"))(x)
