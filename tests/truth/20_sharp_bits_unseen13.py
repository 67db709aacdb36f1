"""Answers to lesson 20, thirteenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- unchecked

unchecked__right_set = {row: "safe" if row in {"A", "C", "D"} else "unsafe" for row in "ABCDEF"}

# This student thought that out_specs P("x") promises nothing about copies along y, and that a maximum over x alone leaves them apart.
unchecked__wrong_c_apart = {"A": "safe", "B": "unsafe", "C": "unsafe", "D": "safe", "E": "unsafe", "F": "unsafe"}

# This student thought that floats that are added and divided on several devices never agree to the last bit, whole numbers or not.
unchecked__wrong_all_floats_round = {
    "A": "unsafe",
    "B": "unsafe",
    "C": "safe",
    "D": "unsafe",
    "E": "unsafe",
    "F": "unsafe",
}

# This student thought that a full turn of the ring makes the same sum everywhere, whatever is added.
unchecked__wrong_ring_is_exact = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "safe", "F": "unsafe"}

# This student thought that whatever has a psum in it is the same on all devices, over whichever axis it goes.
unchecked__wrong_psum_equalises = {"A": "safe", "B": "safe", "C": "safe", "D": "safe", "E": "unsafe", "F": "safe"}


# ---------------------------------------------------------------- agree


def agree__right_largest_miss(found, expected, roundings):
    """Whether every entry is within so many roundings of the largest one expected."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    miss = np.max(np.abs(found - expected), initial=0)  # nan, if there is one
    return bool(miss <= roundings * np.max(np.abs(expected), initial=0) / 2**24)


# This student thought of a relative error: every entry has a bound of its own.
def agree__wrong_each_its_own(found, expected, roundings):
    """Whether every entry is within so many roundings of the largest one expected."""
    return bool(np.all(np.abs(found - expected) <= roundings * 2.0**-24 * np.abs(expected)))


# This student took the largest number expected, and not the largest magnitude.
def agree__wrong_signed_largest(found, expected, roundings):
    """Whether every entry is within so many roundings of the largest one expected."""
    bound = roundings * 2.0**-24 * expected.max()
    return bool((np.abs(found - expected) <= bound).all())


# This student gave the bound to NumPy as atol, and forgot that allclose adds a relative tolerance of its own.
def agree__wrong_allclose(found, expected, roundings):
    """Whether every entry is within so many roundings of the largest one expected."""
    return np.allclose(found, expected, atol=roundings * 2.0**-24 * np.abs(expected).max())


# This student asked whether anything is too far off, and a nan never is.
def agree__wrong_nothing_beyond(found, expected, roundings):
    """Whether every entry is within so many roundings of the largest one expected."""
    bound = roundings * 2.0**-24 * np.nanmax(np.abs(expected))
    return not np.any(np.abs(found - expected) > bound)


# ---------------------------------------------------------------- numpy_into_jit

numpy_into_jit__right_rows = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "runs",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}

# This student thought that JAX refuses only because the arrays of the two might differ, and takes them when they do not.
numpy_into_jit__wrong_same_is_fine = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "runs",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "runs",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}

# This student thought that with two processes NumPy arrays are refused altogether, for P() is a sharding over both as well.
numpy_into_jit__wrong_never_numpy = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "error",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}

# This student thought that each process's array is taken for its share of the rows; only two equal ones would be a contradiction.
numpy_into_jit__wrong_shares = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "runs",
    'two processes, in_shardings P("x"), a NumPy array': "runs",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}

# This student thought that the cutting spec alone decides: jit cannot cut what comes in, in however many processes and of whatever kind.
numpy_into_jit__wrong_cutting_decides = {
    'one process, in_shardings P("x"), a NumPy array': "error",
    "two processes, in_shardings P(), a NumPy array": "runs",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "error",
}
