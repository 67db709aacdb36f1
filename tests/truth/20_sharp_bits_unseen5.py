"""Answers to lesson 20, fifth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- agree


def agree__right_worst_entry(found, expected, roundings):
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    worst = np.max(np.abs(found - expected), initial=0.0)  # nan, if there is one anywhere
    return bool(worst <= roundings * 2.0**-24 * np.max(np.abs(expected), initial=0.0))


# A relative error belongs to each entry, thinks the student, so each is measured by its own size.
def agree__wrong_entry_by_entry(found, expected, roundings):
    return bool(np.all(np.abs(found - expected) <= roundings * 2.0**-24 * np.abs(expected)))


# The student asks whether any entry is too far off; a nan is not larger than the bound, and passes.
def agree__wrong_none_too_far(found, expected, roundings):
    bound = roundings * 2.0**-24 * np.max(np.abs(expected))
    return not bool(np.any(np.abs(found - expected) > bound))


# The largest entry is taken without its magnitude: among negative numbers that is the smallest one, or none.
def agree__wrong_largest_with_its_sign(found, expected, roundings):
    bound = roundings * 2.0**-24 * np.max(expected)
    return bool(np.all(np.abs(found - expected) <= bound))


# "Within" is written as less than: then no zeros agree with zeros, and 0 roundings agree with nothing.
def agree__wrong_strictly_less(found, expected, roundings):
    bound = roundings * 2.0**-24 * np.abs(expected).max()
    return bool((np.abs(found - expected) < bound).all())


# ---------------------------------------------------------------- numpy_into_jit

numpy_into_jit__right_three_questions = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "runs",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}

# With two processes NumPy arrays are refused whatever the layout, thinks the student.
numpy_into_jit__wrong_numpy_never = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "error",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}

# Where both processes have the same array there is no doubt what it means, so the student lets it run.
numpy_into_jit__wrong_the_same_in_both = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "runs",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "runs",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}

# What cuts is the trouble, the student believes, one process or two, and wherever the array comes from.
numpy_into_jit__wrong_whatever_is_cut = {
    'one process, in_shardings P("x"), a NumPy array': "error",
    "two processes, in_shardings P(), a NumPy array": "runs",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "error",
}

# A NumPy array that is cut is each process's share, thinks the student; under P() the processes would have to be compared, so that fails.
numpy_into_jit__wrong_a_share_is_fine = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "error",
    'two processes, in_shardings P("x"), a NumPy array': "runs",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}


# ---------------------------------------------------------------- recompiles

recompiles__right_all = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# Specs that are written differently are different keys of the cache, thinks the student.
recompiles__wrong_how_it_is_written = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 2,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# The student has static the wrong way round: what is static needs no new program, and each new number needs one.
recompiles__wrong_static_turned_round = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 3,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 1,
}

# 1 == 1.0, so the student counts one program for both: the type is forgotten.
recompiles__wrong_equal_numbers = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 1,
    "1, 2 and 3, with static_argnums=0": 3,
}

# jit compiles for shape and dtype; where the pieces lie is looked after when the program runs, the student believes.
recompiles__wrong_layout_does_not_count = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 1,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}
