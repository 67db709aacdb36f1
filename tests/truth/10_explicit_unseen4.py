"""Answers to lesson 10, fourth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)

# ---------------------------------------------------------------- will_it_type

will_it_type__right_three_rules = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# This student thinks that R and C disagree, since one is cut by rows and the other one by columns.
will_it_type__wrong_rows_against_columns = {
    "R + N": "ok",
    "R + C": "rule 2",
    "C @ R": "rule 2",
    "R @ C": "rule 2",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# This student thinks that any cut of the contracted dimension leaves parts of sums, which need an answer.
will_it_type__wrong_one_side_is_cut = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "rule 2",
    "R[0]": "own rule",
}

# This student thinks that axes that meet on both sides of a product fit together: C @ R has a psum, and out comes a whole matrix.
will_it_type__wrong_psum_by_itself = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "ok",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# This student thinks that a row is fetched as on Auto meshes, and that an axis on both sides of a contraction is an axis twice.
will_it_type__wrong_row_is_fetched = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 3",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "ok",
}

# ---------------------------------------------------------------- four_answers

four_answers__right_who_needs_what = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "none",
}

# This student thinks that to be whole, parts have to be gathered.
four_answers__wrong_whole_is_gathered = {
    "P()": "all_gather",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "none",
}

# This student thinks that a reduce_scatter deals out rows only, and that columns need the whole sum first.
four_answers__wrong_scatter_is_by_rows = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "all_reduce",
    'P(unreduced={"x"})': "none",
}

# This student thinks that "unreduced" puts off the scattering: the sums are made, and nobody has dealt them out.
four_answers__wrong_unreduced_is_uncut = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "all_reduce",
}

# This student thinks of case 1: a result that stays cut needs nothing to be sent, as each device has its own block.
four_answers__wrong_cut_is_local = {
    "P()": "all_reduce",
    'P("x", None)': "none",
    'P(None, "x")': "none",
    'P(unreduced={"x"})': "none",
}

# ---------------------------------------------------------------- fix_types


def fix_types__right_einsum(x, W1, b1, W2, b2, W3, b3, *, mesh):
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    summed = NamedSharding(mesh, P("batch", None))
    return jnp.einsum("bh,ho->bo", hidden, W3, out_sharding=summed) + b3


# This student asks for the whole result, so that the rows of all batches are gathered.
def fix_types__wrong_all_rows_everywhere(x, W1, b1, W2, b2, W3, b3, *, mesh):
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    return jnp.dot(hidden, W3, out_sharding=NamedSharding(mesh, P(None, None))) + b3


# This student lays the weights of the last two layers out anew, whole: it types and is right, and all weights travel.
def fix_types__wrong_weights_made_whole(x, W1, b1, W2, b2, W3, b3, *, mesh):
    whole = NamedSharding(mesh, P())
    W2, b2, W3 = reshard(W2, whole), reshard(b2, whole), reshard(W3, whole)
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    return jnp.dot(hidden, W3) + b3


# This student thinks that the least to send is a reduce_scatter, and leaves the columns cut over model.
def fix_types__wrong_left_scattered(x, W1, b1, W2, b2, W3, b3, *, mesh):
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    return jnp.dot(hidden, W3, out_sharding=NamedSharding(mesh, P("batch", "model"))) + b3


# This student postpones the sum until the bias is in: the bias is added to the parts, and the sum is made at the end.
def fix_types__wrong_bias_before_the_sum(x, W1, b1, W2, b2, W3, b3, *, mesh):
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    parts = jnp.dot(hidden, W3, out_sharding=NamedSharding(mesh, P("batch", None, unreduced={"model"})))
    return reshard(parts + b3, NamedSharding(mesh, P("batch", None)))
