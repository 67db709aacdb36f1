"""Answers to lesson 07, eleventh batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- name_the_case


def _case(j_of_a, j_of_b, i="", k=""):
    """From the letters below J in A, J in B, I and K."""
    if j_of_a != j_of_b:
        return 2
    if j_of_a:
        return 3
    return 4 if set(i) & set(k) else 1


name_the_case__right_BYLETTERS = {
    "A[I, J] · B[J_Y, K]": _case("", "Y"),
    "A[I_Y, J_X] · B[J_X, K]": _case("X", "X", i="Y"),
    "A[I_Y, J] · B[J, K_Y]": _case("", "", i="Y", k="Y"),
    "A[I, J_X] · B[J_Y, K]": _case("X", "Y"),
    "A[I_X, J] · B[J, K]": _case("", "", i="X"),
    "A[I, J_XY] · B[J_XY, K]": _case("XY", "XY"),
}

# J is cut in both operands, so every device has a part of the sum, whatever the axes are called.
name_the_case__wrong_CUTINBOTH = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 3,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# J is whole in both, so there is nothing to send: did not look at I and K any more.
name_the_case__wrong_JONLY = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 1,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# Counts the cut operands: one of the two is cut and the other whole, that is the picture of case 2, whichever dimension it is.
name_the_case__wrong_ONEISCUT = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 2,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# Case 3 has one letter under J and no other: with Y about as well it is a mixture, where rows cut over y do not match (case 4), and two letters at J have to be gathered (case 2).
name_the_case__wrong_SECONDAXIS = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 4,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 2,
}

# ---------------------------------------------------------------- case1_out

case1_out__right_SIDEBYSIDE = {
    f"A[{rows}, J] · B[J, {columns}]": f"C[{rows}, {columns}]" for columns in ("K", "K_Y") for rows in ("I", "I_X")
}

# Where only one operand is cut, the other is whole on every device, and so the product is whole as well.
case1_out__wrong_WHOLEWINS = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I, K]",
    "A[I, J] · B[J, K_Y]": "C[I, K]",
    "A[I_X, J] · B[J, K_Y]": "C[I_X, K_Y]",
}

# A matmul swaps the roles: columns of B meet rows of A, so the two letters change places.
case1_out__wrong_CROSSED = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I_X, K]",
    "A[I, J] · B[J, K_Y]": "C[I, K_Y]",
    "A[I_X, J] · B[J, K_Y]": "C[I_Y, K_X]",
}

# The result has the layout of the first operand (as out = a @ b has a's device); of B's letters nothing is left.
case1_out__wrong_FIRSTOPERAND = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I_X, K]",
    "A[I, J] · B[J, K_Y]": "C[I, K]",
    "A[I_X, J] · B[J, K_Y]": "C[I_X, K]",
}

# A letter goes by its position: whatever cuts an operand cuts the rows of C, since it is the rows that devices hold one after the other.
case1_out__wrong_ROWSAREDEALT = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I_X, K]",
    "A[I, J] · B[J, K_Y]": "C[I_Y, K]",
    "A[I_X, J] · B[J, K_Y]": "C[I_XY, K]",
}

# ---------------------------------------------------------------- bytes_sent

_I, _J, _K, _n = 16, 32, 24, 4


def _round_the_ring(entries):
    return (_n - 1) * (4 * entries // _n)


bytes_sent__right_BLOCKS = {
    "all_gather of A[I, J_X]": _round_the_ring(_I * _J),
    "all_reduce of C[I, K]": 2 * _round_the_ring(_I * _K),
    "reduce_scatter of C[I, K]": _round_the_ring(_I * _K),
    "all_gather of B[J, K_X]": _round_the_ring(_J * _K),
}

# A reduce-scatter is half an all-reduce, and an all-reduce is (n-1)/n of C: forgot that it goes round twice.
bytes_sent__wrong_ONEROUND = {
    "all_gather of A[I, J_X]": 1536,
    "all_reduce of C[I, K]": 1152,
    "reduce_scatter of C[I, K]": 576,
    "all_gather of B[J, K_X]": 2304,
}

# Took for V the block that a device holds, so (n-1)/n of the block in the gathers; C is whole on every device, there V is right.
bytes_sent__wrong_BLOCKFORWHOLE = {
    "all_gather of A[I, J_X]": 384,
    "all_reduce of C[I, K]": 2304,
    "reduce_scatter of C[I, K]": 1152,
    "all_gather of B[J, K_X]": 576,
}

# Every device must end with the whole array, so in a gather V bytes go past it: forgot that its own block is there already and the last need not be sent on.
bytes_sent__wrong_ALLOFIT = {
    "all_gather of A[I, J_X]": 2048,
    "all_reduce of C[I, K]": 2304,
    "reduce_scatter of C[I, K]": 1152,
    "all_gather of B[J, K_X]": 3072,
}

# In a reduce-scatter a device is left with a quarter, so a quarter is what it sends; the all-reduce is that and then the gather of three quarters.
bytes_sent__wrong_WHATREMAINS = {
    "all_gather of A[I, J_X]": 1536,
    "all_reduce of C[I, K]": 1536,
    "reduce_scatter of C[I, K]": 384,
    "all_gather of B[J, K_X]": 2304,
}
