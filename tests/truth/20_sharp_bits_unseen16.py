"""Answers to lesson 20, sixteenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---- agree


def agree__right_worst(found, expected, roundings):
    """Whether every entry is within so many roundings of the largest one expected."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    scale = np.max(np.abs(expected), initial=0.0)
    worst = np.max(np.abs(found - expected), initial=0.0)  # nan, if there is one
    return bool(worst <= roundings * 2.0**-24 * scale)


# Thought that each entry may be off by so many roundings of itself.
def agree__wrong_eachitself(found, expected, roundings):
    """Whether every entry is within so many roundings of the largest one expected."""
    unit = 2.0**-24
    return bool(np.allclose(found, expected, rtol=roundings * unit, atol=0.0))


# Took the largest entry for the largest magnitude.
def agree__wrong_signedmax(found, expected, roundings):
    """Whether every entry is within so many roundings of the largest one expected."""
    bound = roundings * 2.0**-24 * float(np.max(expected))
    gaps = np.abs(np.asarray(found, np.float64) - expected)
    return bool(np.all(gaps <= bound))


# Mixed the rule of thumb up with the bound n u sum|x| of the cell above it.
def agree__wrong_summagnitudes(found, expected, roundings):
    """Whether every entry is within so many roundings of the largest one expected."""
    expected = np.asarray(expected, np.float64)
    bound = roundings * 2.0**-24 * np.abs(expected).sum()
    return bool((np.abs(found - expected) <= bound).all())


# Asked whether any entry is too far away, which no nan ever is; the bound leaves nans out, too.
def agree__wrong_nonetoofar(found, expected, roundings):
    """Whether every entry is within so many roundings of the largest one expected."""
    bound = roundings * 2.0**-24 * np.nanmax(np.abs(expected))

    def too_far():
        return np.abs(np.asarray(found, np.float64) - expected) > bound

    return not bool(too_far().any())


# ---- first_of

first_of__right_pairs = dict(
    zip(
        (
            "x[0], x cut by rows",
            "x[0], x cut by columns",
            "x[:, 0], x cut by rows",
            "x.sum(0), x cut by rows",
            "2 * x, x cut by rows",
            "x.addressable_shards[0].data, x cut by rows",
        ),
        zip((1, 0, 0, 1, 0, 0), (8, 8, 8, 8, 8, 1)),
    )
)

# Thought that an index always sends, along whichever dimension it is.
first_of__wrong_anyindex = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (1, 8),
    "x[:, 0], x cut by rows": (1, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# Thought that row 0 is on device 0, and that its selection stays there.
first_of__wrong_staysthere = {
    "x[0], x cut by rows": (0, 1),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# Counted messages (one to each of the seven others) in place of collectives.
first_of__wrong_messages = {
    "x[0], x cut by rows": (7, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (7, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# Thought that .data of a shard is still the array on its eight devices, and only names one part of it.
first_of__wrong_shardeverywhere = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 8),
}


# ---- unchecked

unchecked__right_letters = {letter: "safe" if letter in "ACD" else "unsafe" for letter in "ABCDEF"}

# Thought that a full turn on the ring adds the same four numbers on every device, and so makes the same sum.
unchecked__wrong_ringissum = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "safe", "F": "unsafe"}

# Thought that P() needs a collective over y, too, although the blocks are copies along y.
unchecked__wrong_yleftout = {"A": "unsafe", "B": "unsafe", "C": "safe", "D": "unsafe", "E": "unsafe", "F": "unsafe"}

# Thought that all devices have the same as soon as there is a psum in the body, whatever its axis and what comes after it.
unchecked__wrong_psumcures = {"A": "safe", "B": "safe", "C": "safe", "D": "safe", "E": "unsafe", "F": "safe"}

# Thought that safe means the same on all devices, whatever out_specs says; in C the blocks differ.
unchecked__wrong_allalike = {"A": "safe", "B": "unsafe", "C": "unsafe", "D": "safe", "E": "unsafe", "F": "unsafe"}
