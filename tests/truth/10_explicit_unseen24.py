"""Answers to lesson 10, twenty-fourth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, auto_axes, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def differences(series):
    """Each row minus the one before it, the first minus the last."""
    return series - jnp.roll(series, 1, axis=0)


# ---- borrowed


def borrowed__right_by_hand(series, *, mesh):
    """differences(series), cut as the series is."""
    n = mesh.shape["x"]

    def on_device(rows):
        before = jax.lax.ppermute(rows[-1:], "x", [(k, (k + 1) % n) for k in range(n)])
        return rows - jnp.concatenate([before, rows[:-1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# This student thought that shard_map runs a function of the whole array, only cut: each block rolls by itself.
def borrowed__wrong_each_block(series, *, mesh):
    """differences(series), cut as the series is."""
    return jax.shard_map(differences, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# This student made the array whole, since roll refuses a cut dimension, and cut the result again.
def borrowed__wrong_made_whole(series, *, mesh):
    """differences(series), cut as the series is."""
    whole = reshard(series, NamedSharding(mesh, P(None, None)))
    return reshard(differences(whole), NamedSharding(mesh, P("x", None)))


# This student handed the last rows on along a line, so that the first device gets zeros and not the last row.
def borrowed__wrong_open_line(series, *, mesh):
    """differences(series), cut as the series is."""
    n = mesh.shape["x"]

    def on_device(rows):
        before = jax.lax.ppermute(rows[-1:], "x", [(k, k + 1) for k in range(n - 1)])
        return rows - jnp.concatenate([before, rows[:-1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# This student thought that `out_sharding` only asks for some layout, and that an empty P leaves it as it was.
def borrowed__wrong_empty_spec(series, *, mesh):
    """differences(series), cut as the series is."""
    return auto_axes(differences)(series, out_sharding=NamedSharding(mesh, P()))


# ---- embed


def embed__right_on_devices(table, ids, *, mesh):
    """table[V, D_Y] looked up at ids[B_X, 3] → [B_X, 3, D_Y]."""

    def look_up(columns, numbers):
        return columns[numbers]

    specs = P(None, "y"), P("x", None)
    return jax.shard_map(look_up, mesh=mesh, in_specs=specs, out_specs=P("x", None, "y"))(table, ids)


# This student took the layout of ids for that of the result, and had whole rows of the table gathered.
def embed__wrong_whole_rows(table, ids, *, mesh):
    """table[V, D_Y] looked up at ids[B_X, 3] → [B_X, 3, D_Y]."""
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", None, None)))


# This student thought of a result with two dimensions, and put y on the three.
def embed__wrong_two_entries(table, ids, *, mesh):
    """table[V, D_Y] looked up at ids[B_X, 3] → [B_X, 3, D_Y]."""
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", "y")))


# This student flattened ids as one does for a gather in PyTorch, and forgot to give the result its three dimensions.
def embed__wrong_flat(table, ids, *, mesh):
    """table[V, D_Y] looked up at ids[B_X, 3] → [B_X, 3, D_Y]."""

    def look_up(columns, numbers):
        return columns[numbers.reshape(-1)]

    specs = P(None, "y"), P("x", None)
    return jax.shard_map(look_up, mesh=mesh, in_specs=specs, out_specs=P("x", "y"))(table, ids)


# This student thought that numbers in a block are counted from the block's own start, and shifted them by it.
def embed__wrong_shifted(table, ids, *, mesh):
    """table[V, D_Y] looked up at ids[B_X, 3] → [B_X, 3, D_Y]."""

    def look_up(columns, numbers):
        start = jax.lax.axis_index("x") * numbers.shape[0]
        return columns[numbers + start]

    specs = P(None, "y"), P("x", None)
    return jax.shard_map(look_up, mesh=mesh, in_specs=specs, out_specs=P("x", None, "y"))(table, ids)


# ---- will_it_type

will_it_type__right_rules = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# This student thought that a sum of rows-cut and columns-cut disagrees, since the two specs are different.
will_it_type__wrong_specs_differ = {
    "R + N": "ok",
    "R + C": "rule 2",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# This student thought that a contracted dimension that is cut must be cut on both sides, alike, and that then all is well.
will_it_type__wrong_contraction_alike = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "ok",
    "R @ C": "rule 3",
    "C @ N": "rule 2",
    "R[0]": "own rule",
}

# This student exchanged the two products: took the contracted dimension for rows of the first and columns of the second.
will_it_type__wrong_products_exchanged = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 3",
    "R @ C": "rule 2",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# This student thought that an index takes its dimension away, and with it the axis, as b.sum(0) does.
will_it_type__wrong_index_like_sum = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "ok",
}
