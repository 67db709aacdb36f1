"""Answers to lesson 20, fourth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

# ------------------------------------------------------------------ unchecked

unchecked__right_all_shards = dict(zip("ABCDEF", ["safe", "unsafe", "safe", "safe", "unsafe", "unsafe"]))

# This student thought that whatever has been through a psum is the same on all devices.
unchecked__wrong_psum_makes_equal = {"A": "safe", "B": "safe", "C": "safe", "D": "safe", "E": "unsafe", "F": "safe"}

# This student thought that addition may be done in any order, so a full turn gives the same number everywhere.
unchecked__wrong_order_is_nothing = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "safe", "F": "unsafe"}

# This student thought that a ring never makes copies to the last bit, whole numbers or not.
unchecked__wrong_rings_never = {"A": "safe", "B": "unsafe", "C": "safe", "D": "unsafe", "E": "unsafe", "F": "unsafe"}

# This student thought that P("x") promises nothing along y, and that with the check off those copies may differ.
unchecked__wrong_nothing_along_y = {
    "A": "safe",
    "B": "unsafe",
    "C": "unsafe",
    "D": "safe",
    "E": "unsafe",
    "F": "unsafe",
}

# ------------------------------------------------------------------ donated

donated__right_bytes = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}

# This student thought that the result must have the dtype of what was donated.
donated__wrong_same_dtype = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "alive",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}

# This student thought that a smaller result has room in the old memory, so that the offer is taken.
donated__wrong_smaller_fits = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "deleted",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}

# This student counted the bytes of the whole arrays, which are 64 in front and behind.
donated__wrong_bytes_of_the_whole = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "deleted",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}

# This student thought that a shard that was taken out is an array of its own.
donated__wrong_shard_of_its_own = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "alive",
    "np.asarray(a), taken before a + 1": "alive",
}

# ------------------------------------------------------------------ first_of

first_of__right_programs = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# This student thought that row 0 is on device 0, so x[0] is there and nothing is sent.
first_of__wrong_where_it_lies = {
    "x[0], x cut by rows": (0, 1),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# This student took "cut by rows" for a cut through each row, so that the dimensions have changed places.
first_of__wrong_dimensions_swapped = {
    "x[0], x cut by rows": (0, 8),
    "x[0], x cut by columns": (1, 8),
    "x[:, 0], x cut by rows": (1, 8),
    "x.sum(0), x cut by rows": (0, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# This student thought that a shard, being part of an array on eight devices, is on all of them.
first_of__wrong_shard_on_eight = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 8),
}

# This student thought that a sum is first brought together on one device and then handed to all: two collectives; so is the row.
first_of__wrong_there_and_back = {
    "x[0], x cut by rows": (2, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (2, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}
