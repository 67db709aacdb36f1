"""Answers to lesson 10, eleventh batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


# ---------------------------------------------------------------- unreduced

FIRST, SECOND, WHOLE = 1, 2, 10  # two devices' parts, and what is whole on both


def parts_stay_parts(step, of_the_sum):
    """Do the step's results on the parts add up to its result for the sum?"""
    return "yes" if abs(step(FIRST) + step(SECOND) - of_the_sum(FIRST + SECOND)) < 1e-6 else "no"


unreduced__right_tried_with_1_and_2 = {
    "p + p": parts_stay_parts(lambda part: part + part, lambda p: p + p),
    "jnp.cos(p)": parts_stay_parts(np.cos, np.cos),
    "p * p": parts_stay_parts(lambda part: part * part, lambda p: p * p),
    "p + N": parts_stay_parts(lambda part: part + WHOLE, lambda p: p + WHOLE),
    "reshard(p, whole)": "yes",  # it makes the sum
}

# N is whole on every device, so each device has all that it needs for the addition, and adding is what parts allow.
unreduced__wrong_everybody_has_n = {
    "p + p": "yes",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "yes",
    "reshard(p, whole)": "yes",
}

# Whatever works entry by entry can be done by each device on its own; only a whole operand has to be added once.
unreduced__wrong_entry_by_entry = {
    "p + p": "yes",
    "jnp.cos(p)": "yes",
    "p * p": "yes",
    "p + N": "no",
    "reshard(p, whole)": "yes",
}

# reshard only moves finished blocks; to make the sum one would have to write a psum first.
unreduced__wrong_reshard_only_moves = {
    "p + p": "yes",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "no",
    "reshard(p, whole)": "no",
}

# An unfinished sum may not meet another unfinished sum: nothing is allowed before it is finished.
unreduced__wrong_finish_first = {
    "p + p": "no",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "no",
    "reshard(p, whole)": "yes",
}


# ---------------------------------------------------------------- modes

CLAIMS = (
    "a.shape is that of one device's block",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut",
    "you call jax.lax.psum",
    "a is whole to you, and with_sharding_constraint moves it",
    "rows-cut + columns-cut runs, and the compiler picks the layout",
    "you overlap a ppermute with a product, step by step",
)


def filed(**claims_by_mode):
    """Claim → mode, in the order of the table."""
    mode_of = {CLAIMS[k]: mode for mode, numbers in claims_by_mode.items() for k in numbers}
    return {claim: mode_of[claim] for claim in CLAIMS}


modes__right_filed_by_mode = filed(Manual=(0, 2, 5), Explicit=(1,), Auto=(3, 4))

# A constraint names the layout explicitly, so it must be the word of the Explicit mode.
modes__wrong_constraint_is_explicit = filed(Manual=(0, 2, 5), Explicit=(1, 3), Auto=(4,))

# In Explicit mode JAX finds every result's layout by its rules, so this sum runs there and a layout is picked.
modes__wrong_rules_pick = filed(Manual=(0, 2, 5), Explicit=(1, 4), Auto=(3,))

# Explicit means that one writes the collectives explicitly, so psum and ppermute are for there.
modes__wrong_explicit_collectives = filed(Manual=(0,), Explicit=(1, 2, 5), Auto=(3, 4))

# The type `16@x` tells the block that a device holds, so shapes are those of blocks in Explicit and whole ones only in Auto.
modes__wrong_types_of_blocks = filed(Manual=(2, 5), Explicit=(0,), Auto=(1, 3, 4))


# ---------------------------------------------------------------- four_answers


def answer_for(spec):
    """What becomes of the parts in that layout."""
    if spec.unreduced:
        return "none"  # they stay apart
    return "reduce_scatter" if "x" in tuple(spec) else "all_reduce"


four_answers__right_by_spec = {
    "P()": answer_for(P()),
    'P("x", None)': answer_for(P("x", None)),
    'P(None, "x")': answer_for(P(None, "x")),
    'P(unreduced={"x"})': answer_for(P(unreduced={"x"})),
}

# To have the whole result on every device, the devices' results are gathered.
four_answers__wrong_whole_is_gathered = {
    "P()": "all_gather",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "none",
}

# Columns of the result need whole columns of the right matrix, whose rows are cut, so it is gathered; only rows can be scattered.
four_answers__wrong_columns_need_the_right_matrix = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "all_gather",
    'P(unreduced={"x"})': "none",
}

# Unreduced means that each device keeps its share of the sum and does not get the others': half of an all_reduce.
four_answers__wrong_unreduced_is_scattered = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "reduce_scatter",
}

# Both operands are cut over x, so a result that is cut over x is there already, whichever way it is cut.
four_answers__wrong_cut_stays_cut = {
    "P()": "all_reduce",
    'P("x", None)': "none",
    'P(None, "x")': "none",
    'P(unreduced={"x"})': "none",
}
