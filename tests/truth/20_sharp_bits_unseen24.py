"""Answers to lesson 20, twenty-fourth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

# ---- unchecked

unchecked__right_table = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "unsafe", "F": "unsafe"}

# After a full turn every device has added the same four numbers, so the copies are equal, whatever the numbers.
unchecked__wrong_ring_safe = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "safe", "F": "unsafe"}

# Where only x is reduced, the two devices along y still hold something of their own.
unchecked__wrong_y_left = {"A": "unsafe", "B": "unsafe", "C": "unsafe", "D": "safe", "E": "unsafe", "F": "unsafe"}

# On a ring each device adds in another order, so a ring is never equal to the last bit, with whole numbers either.
unchecked__wrong_ring_unsafe = {"A": "safe", "B": "unsafe", "C": "safe", "D": "unsafe", "E": "unsafe", "F": "unsafe"}

# What has gone through a psum is the same on every device, whichever axis stands in it.
unchecked__wrong_psum_heals = {"A": "safe", "B": "safe", "C": "safe", "D": "safe", "E": "unsafe", "F": "safe"}

# ---- numpy_into_jit

numpy_into_jit__right_table = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "runs",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}

# If both have the same array there is no doubt what the whole is, and JAX can cut it.
numpy_into_jit__wrong_same = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "runs",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "runs",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}

# A NumPy array exists in one process only, so with two it is never taken, cut or not.
numpy_into_jit__wrong_never = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "error",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}

# A NumPy array is this process's share: P("x") puts shares together, and P() or twice the same cannot be such shares.
numpy_into_jit__wrong_shares = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "error",
    'two processes, in_shardings P("x"), a NumPy array': "runs",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}

# What counts is that P("x") is non-trivial: then any data that came from the host are refused, those of a callback too.
numpy_into_jit__wrong_callback = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "runs",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "error",
}

# ---- float_order

float_order__right_table = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "equal",
    "a ring on 8 devices: the copies": "not equal",
    "psum and the loop, of whole numbers in float32": "equal",
    "pmax over 8 devices, and NumPy's max": "equal",
    "psum over 8 devices, and over the same numbers shuffled": "not equal",
}

# A ring goes all the way round, so all eight have added the same eight parts and hold copies.
float_order__wrong_ring = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "equal",
    "a ring on 8 devices: the copies": "equal",
    "psum and the loop, of whole numbers in float32": "equal",
    "pmax over 8 devices, and NumPy's max": "equal",
    "psum over 8 devices, and over the same numbers shuffled": "not equal",
}

# Addition is commutative, and both go by the same program, so shuffling changes nothing.
float_order__wrong_commutes = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "equal",
    "a ring on 8 devices: the copies": "not equal",
    "psum and the loop, of whole numbers in float32": "equal",
    "pmax over 8 devices, and NumPy's max": "equal",
    "psum over 8 devices, and over the same numbers shuffled": "equal",
}

# Eight devices finish in an order of chance, so what is sent arrives in another order in each run.
float_order__wrong_chance = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "not equal",
    "a ring on 8 devices: the copies": "not equal",
    "psum and the loop, of whole numbers in float32": "equal",
    "pmax over 8 devices, and NumPy's max": "equal",
    "psum over 8 devices, and over the same numbers shuffled": "not equal",
}

# float32 is float32: after every operation something is rounded, in whole numbers and in a maximum as well.
float_order__wrong_always_rounds = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "equal",
    "a ring on 8 devices: the copies": "not equal",
    "psum and the loop, of whole numbers in float32": "not equal",
    "pmax over 8 devices, and NumPy's max": "not equal",
    "psum over 8 devices, and over the same numbers shuffled": "not equal",
}
