"""Answers to lesson 06, seventh batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import all_gather

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# --- result_shapes -----------------------------------------------------------

result_shapes__right_factors = {
    "all_gather over x, axis=0, tiled": (4 * 4, 6),
    "all_gather over y": (2, 4, 6),
    "all_gather over (x, y), axis=0, tiled": (8 * 4, 6),
    "psum over x": (4, 6),
    "psum_scatter over x, tiled": (4 // 4, 6),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (4 * 2, 6 // 2),
}

# "x is the direction to the right, and there are two devices to the right; along y there are four." (axes changed over)
result_shapes__wrong_lengths_changed_over = {
    "all_gather over x, axis=0, tiled": (8, 6),
    "all_gather over y": (4, 4, 6),
    "all_gather over (x, y), axis=0, tiled": (32, 6),
    "psum over x": (4, 6),
    "psum_scatter over x, tiled": (2, 6),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (8, 3),
}

# "Where nothing is said, the blocks are joined along axis 0."
result_shapes__wrong_joined_by_default = {
    "all_gather over x, axis=0, tiled": (16, 6),
    "all_gather over y": (8, 6),
    "all_gather over (x, y), axis=0, tiled": (32, 6),
    "psum over x": (4, 6),
    "psum_scatter over x, tiled": (1, 6),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (8, 3),
}

# "x belongs to the rows and y to the columns; and the axis that is split is the one that gets the pieces."
result_shapes__wrong_y_is_for_columns = {
    "all_gather over x, axis=0, tiled": (16, 6),
    "all_gather over y": (2, 4, 6),
    "all_gather over (x, y), axis=0, tiled": (16, 12),
    "psum over x": (4, 6),
    "psum_scatter over x, tiled": (1, 6),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (2, 12),
}

# "A sum makes a dimension disappear."
result_shapes__wrong_sums_away = {
    "all_gather over x, axis=0, tiled": (16, 6),
    "all_gather over y": (2, 4, 6),
    "all_gather over (x, y), axis=0, tiled": (32, 6),
    "psum over x": (6,),
    "psum_scatter over x, tiled": (6,),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (8, 3),
}


# --- psum_by_two -------------------------------------------------------------


def psum_by_two__right_stacked(parts, w, *, mesh):
    """(sum over N of parts[N_X, I, J]) · w[J, K] → [I, K], on every device."""

    def body(own, w):
        rows = jax.lax.psum_scatter(own, "x", scatter_dimension=1, tiled=True)[0]
        stacked = all_gather(rows @ w, "x", to="invarying")  # (n, I/n, K)
        return stacked.reshape(-1, w.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())(parts, w)


# "psum is psum_scatter and all_gather in one." (so every device multiplies all rows)
def psum_by_two__wrong_in_one(parts, w, *, mesh):
    def body(parts, w):
        return jax.lax.psum(parts[0], "x") @ w

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())(parts, w)


# "The product is linear, so each device multiplies its summand straight away; then the two steps." (all rows, on every device)
def psum_by_two__wrong_product_first(parts, w, *, mesh):
    def body(parts, w):
        mine = parts[0] @ w
        share = jax.lax.psum_scatter(mine, "x", scatter_dimension=0, tiled=True)
        whole = all_gather(share, "x", axis=0, tiled=True, to="invarying")
        return whole

    f = jax.shard_map(body, mesh=mesh, in_specs=(P("x", None, None), P(None, None)), out_specs=P(None, None))
    return f(parts, w)


# "Every device has its rows of the product, and out_specs=P() makes it whole everywhere; the complaint is only about types."
def psum_by_two__wrong_out_specs_gather(parts, w, *, mesh):
    def body(parts, w):
        return jax.lax.psum_scatter(parts[0], "x", tiled=True) @ w

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P(), check_vma=False)(parts, w)


# "JAX says that the result varies over x, so x goes into out_specs." (n copies of the product, one below the other)
def psum_by_two__wrong_copies_below_each_other(parts, w, *, mesh):
    def body(parts, w):
        share = jax.lax.psum_scatter(parts[0], "x", scatter_dimension=0, tiled=True)
        return jax.lax.all_gather(share @ w, "x", axis=0, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))(parts, w)


# --- partners ----------------------------------------------------------------

partners__right_grid = {
    "psum over x": list(range(1, 8, 2)),
    "psum over y": [4, 5],
    "psum over (x, y)": list(range(8)),
    "ppermute +1 over x": [5 - 2],
    "ppermute +1 over y": [5 - 1],
    "axis_index over x": [],
}

# "Over x is along the row."
partners__wrong_along_the_row = {
    "psum over x": [4, 5],
    "psum over y": [1, 3, 5, 7],
    "psum over (x, y)": [0, 1, 2, 3, 4, 5, 6, 7],
    "ppermute +1 over x": [4],
    "ppermute +1 over y": [3],
    "axis_index over x": [],
}

# "+1 over x from device 5 is device 7." (to whom it sends)
partners__wrong_to_whom = {
    "psum over x": [1, 3, 5, 7],
    "psum over y": [4, 5],
    "psum over (x, y)": [0, 1, 2, 3, 4, 5, 6, 7],
    "ppermute +1 over x": [7],
    "ppermute +1 over y": [4],
    "axis_index over x": [],
}

# "Partners are the others."
partners__wrong_without_itself = {
    "psum over x": [1, 3, 7],
    "psum over y": [4],
    "psum over (x, y)": [0, 1, 2, 3, 4, 6, 7],
    "ppermute +1 over x": [3],
    "ppermute +1 over y": [4],
    "axis_index over x": [],
}

# "+1 brings what the device with the number before has; and its own index depends on itself."
partners__wrong_number_before = {
    "psum over x": [1, 3, 5, 7],
    "psum over y": [4, 5],
    "psum over (x, y)": [0, 1, 2, 3, 4, 5, 6, 7],
    "ppermute +1 over x": [4],
    "ppermute +1 over y": [4],
    "axis_index over x": [5],
}
