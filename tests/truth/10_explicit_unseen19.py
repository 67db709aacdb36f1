"""Answers to lesson 10, nineteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)

# ---------------------------------------------------------------- will_it_type

SPECS = {"R": ("x", None), "C": (None, "x"), "N": (None, None)}


def agreed(one, other):
    """The axis of two dimensions that belong together, or None."""
    return one if other is None else other


def of_sum(p, q):
    pairs = list(zip(SPECS[p], SPECS[q]))
    if any(i and j and i != j for i, j in pairs):
        return "rule 2"
    return once([agreed(i, j) for i, j in pairs])


def of_product(p, q):
    (rows, inner_left), (inner_right, columns) = SPECS[p], SPECS[q]
    if inner_left and inner_right:
        return "rule 2"  # two axes disagree, one axis leaves it open
    return once([rows, columns])


def once(axes):
    used = [axis for axis in axes if axis]
    return "ok" if len(used) == len(set(used)) else "rule 3"


will_it_type__right_by_rules = {
    "R + N": of_sum("R", "N"),
    "R + C": of_sum("R", "C"),
    "C @ R": of_product("C", "R"),
    "R @ C": of_product("R", "C"),
    "C @ N": of_product("C", "N"),
    "R[0]": "own rule" if SPECS["R"][0] else "ok",
}

# This student thought that a cut dimension and a whole one do not agree.
will_it_type__wrong_whole_disagrees = {
    "R + N": "rule 2",
    "R + C": "rule 2",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "rule 2",
    "R[0]": "own rule",
}

# This student thought that R's rows and C's columns are what is contracted in R @ C, and so has the two products the wrong way round.
will_it_type__wrong_contracted = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 3",
    "R @ C": "rule 2",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# This student thought that it is enough if the operands agree, dimension by dimension, and did not look at the finished type.
will_it_type__wrong_not_finished = {
    "R + N": "ok",
    "R + C": "ok",
    "C @ R": "rule 2",
    "R @ C": "ok",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# This student thought that what only needs something to be sent is done by the compiler, unasked: an all-reduce for the sum, a broadcast for the row.
will_it_type__wrong_sent_unasked = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "ok",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "ok",
}

# ---------------------------------------------------------------- unreduced


def yes_if(step_of_sum, sum_of_steps):
    return "yes" if np.isclose(step_of_sum, sum_of_steps) else "no"


ONE, TWO, WHOLE = 1.0, 2.0, 10.0  # two parts, and a number that both devices have

unreduced__right_tried = {
    "p + p": yes_if((ONE + TWO) + (ONE + TWO), (ONE + ONE) + (TWO + TWO)),
    "jnp.cos(p)": yes_if(np.cos(ONE + TWO), np.cos(ONE) + np.cos(TWO)),
    "p * p": yes_if((ONE + TWO) * (ONE + TWO), ONE * ONE + TWO * TWO),
    "p + N": yes_if((ONE + TWO) + WHOLE, (ONE + WHOLE) + (TWO + WHOLE)),
    "reshard(p, whole)": "yes",
}

# This student thought that an addition always commutes with adding, whatever is added.
unreduced__wrong_any_addition = {
    "p + p": "yes",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "yes",
    "reshard(p, whole)": "yes",
}

# This student thought that a step which works entry by entry, on p alone, needs nothing from the other devices and is therefore allowed.
unreduced__wrong_entry_by_entry = {
    "p + p": "yes",
    "jnp.cos(p)": "yes",
    "p * p": "yes",
    "p + N": "no",
    "reshard(p, whole)": "yes",
}

# This student thought that nothing at all may be done to a sum before it is made: first reshard, then compute.
unreduced__wrong_first_the_sum = {
    "p + p": "no",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "no",
    "reshard(p, whole)": "yes",
}

# This student thought that reshard only moves finished entries to other devices and adds nothing up, so that parts cannot be made whole by it.
unreduced__wrong_reshard_moves = {
    "p + p": "yes",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "no",
    "reshard(p, whole)": "no",
}

# ---------------------------------------------------------------- explicit_layer


def explicit_layer__right_manual(a, b, *, mesh):
    """relu(A[I_X, J_Y] · B[J_Y, K]) → [I_X, K], as the program of a device."""

    def on_device(a_block, b_rows):
        finished = jax.lax.psum(jnp.matmul(a_block, b_rows), "y")
        return jnp.maximum(finished, 0)

    program = jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
    return program(a, b)


# This student thought that relu may be taken of each device's part, before the parts are added.
def explicit_layer__wrong_relu_of_parts(a, b, *, mesh):
    def activated(a_block, b_rows):
        return jax.nn.relu(a_block @ b_rows)

    def on_device(a_block, b_rows):
        return jax.lax.psum(activated(a_block, b_rows), "y")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


# This student thought that the result keeps the layout of a, and handed a's spec to the product.
def explicit_layer__wrong_as_a(a, b, *, mesh):
    layout_of_a = NamedSharding(mesh, P("x", "y"))
    product = jnp.dot(a, b, out_sharding=layout_of_a)
    return jax.nn.relu(product)


# This student thought that the product is repaired by making the contracted dimension whole on both sides; it runs, with all_gathers in place of the all_reduce.
def explicit_layer__wrong_gathered(a, b, *, mesh):
    whole_rows = reshard(a, NamedSharding(mesh, P("x", None)))
    whole_b = reshard(b, NamedSharding(mesh, P(None, None)))
    return jax.nn.relu(whole_rows @ whole_b)


# This student thought that a is cut over both axes, so that its products have to be added over both.
def explicit_layer__wrong_sum_over_both(a, b, *, mesh):
    def on_device(a_block, b_rows):
        part = a_block @ b_rows
        return jax.nn.relu(jax.lax.psum(jax.lax.psum(part, "y"), "x"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)
