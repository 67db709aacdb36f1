"""Answers to lesson 06, twenty-first batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

_blocks = [[3, 9, 5, 2], [6, 6, 3, 5], [8, 1, 4, 6], [5, 4, 2, 3]]
_joined = [number for block in _blocks for number in block]

# ---------------------------------------------------------------- after_collective
after_collective__right_comprehension = {
    "all_gather": [number for block in _blocks for number in block],
    "psum": [sum(column) for column in zip(*_blocks)],
    "psum_scatter": [sum(block[2] for block in _blocks)],
}

# This student counts the devices from 1, so that device 2 keeps the second sum.
after_collective__wrong_countsfromone = {"all_gather": _joined, "psum": [22, 20, 14, 16], "psum_scatter": [20]}

# This student thinks that gradients are averaged, and that psum divides by the number of devices, as its scatter does.
after_collective__wrong_mean = {"all_gather": _joined, "psum": [5.5, 5, 3.5, 4], "psum_scatter": [3.5]}

# This student joins in the order of arrival: the own block first, then those of devices 3, 0 and 1.
after_collective__wrong_ownfirst = {
    "all_gather": [8, 1, 4, 6, 5, 4, 2, 3, 3, 9, 5, 2, 6, 6, 3, 5],
    "psum": [22, 20, 14, 16],
    "psum_scatter": [14],
}

# This student lets psum_scatter deal the numbers out, but forgets that it adds them: the third number of everybody.
after_collective__wrong_nosum = {"all_gather": _joined, "psum": [22, 20, 14, 16], "psum_scatter": [5, 3, 4, 2]}


# ---------------------------------------------------------------- reshard_rows_to_cols
def reshard_rows_to_cols__right_untiled(x, *, mesh):
    """X[I_X, J] → X[I, J_X]."""
    n = mesh.shape["x"]

    def on_device(rows):
        pieces = rows.reshape(rows.shape[0], n, -1)  # [own row, piece, column in the piece]
        came = jax.lax.all_to_all(pieces, "x", split_axis=1, concat_axis=0)  # [source, its row, column]
        return came.reshape(-1, came.shape[2])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# This student thinks that only the shape of a block has to change, and reshapes: (I, J/n) it is, with the wrong numbers.
def reshard_rows_to_cols__wrong_reshape(x, *, mesh):
    n = mesh.shape["x"]
    return jax.shard_map(
        lambda rows: rows.reshape(rows.shape[0] * n, -1), mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x")
    )(x)


# This student puts the new dimension of the sources after that of the rows, so that the rows come out interleaved.
def reshard_rows_to_cols__wrong_interleaved(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(rows):
        pieces = rows.reshape(rows.shape[0], n, -1)
        came = jax.lax.all_to_all(pieces, "x", split_axis=1, concat_axis=1)
        return came.reshape(-1, came.shape[2])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# This student gathers all rows and keeps the own columns: the right numbers, by another collective and with n times the bytes.
def reshard_rows_to_cols__wrong_gathers(x, *, mesh):
    width = x.shape[1] // mesh.shape["x"]

    def on_device(rows):
        whole = jax.lax.all_gather(rows, "x", axis=0, tiled=True)
        return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("x") * width, width, axis=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# This student turns the specs of the example round, but not its two axes: the rows of a block are cut once more.
def reshard_rows_to_cols__wrong_axeskept(x, *, mesh):
    body = lambda rows: jax.lax.all_to_all(rows, "x", split_axis=0, concat_axis=1, tiled=True)
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# ---------------------------------------------------------------- choose_collective
choose_collective__right_table = dict(
    weights="all_gather",
    gradient="psum",
    shares="psum_scatter",
    tokens="all_to_all",
    neighbour="ppermute",
    largest="pmax",
)

# This student remembers that gradients are always averaged over the examples.
choose_collective__wrong_averages = {
    "weights": "all_gather",
    "gradient": "pmean",
    "shares": "psum_scatter",
    "tokens": "all_to_all",
    "neighbour": "ppermute",
    "largest": "pmax",
}

# This student wants the whole sum first, from which each device then reads its share.
choose_collective__wrong_sumthenslice = {
    "weights": "all_gather",
    "gradient": "psum",
    "shares": "psum",
    "tokens": "all_to_all",
    "neighbour": "ppermute",
    "largest": "pmax",
}

# This student gathers whatever is not a sum: every expert picks its tokens out of all, every device compares all maxima.
choose_collective__wrong_gathers = {
    "weights": "all_gather",
    "gradient": "psum",
    "shares": "psum_scatter",
    "tokens": "all_gather",
    "neighbour": "ppermute",
    "largest": "all_gather",
}

# This student takes "gets sent to one certain place" for ppermute, and "exchange with a neighbour" for all_to_all.
choose_collective__wrong_exchange = {
    "weights": "all_gather",
    "gradient": "psum",
    "shares": "psum_scatter",
    "tokens": "ppermute",
    "neighbour": "all_to_all",
    "largest": "pmax",
}
