"""Answers to lesson 09, twenty-third batch, written by a reader of the notebook only."""

import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- largest_model

largest_model__right_shares = {
    "data parallel": 16 / (2 + 2 + 12),
    "ZeRO-1": 16 / (2 + 2 + 12 / 8),
    "ZeRO-2": 16 / (2 + (2 + 12) / 8),
    "ZeRO-3": 8 * 16 / 16,
}

# Thought that each number names the one thing that is divided: 1 the optimizer, 2 only the gradients, 3 only the weights.
largest_model__wrong_own = {
    "data parallel": 1,
    "ZeRO-1": 16 / (2 + 2 + 12 / 8),
    "ZeRO-2": 16 / (2 + 2 / 8 + 12),
    "ZeRO-3": 16 / (2 / 8 + 2 + 12),
}

# Thought that under ZeRO-3 a device still holds all the bfloat16 weights, because they are gathered before they are used.
largest_model__wrong_gathered = {
    "data parallel": 1.0,
    "ZeRO-1": 2.909,
    "ZeRO-2": 4.267,
    "ZeRO-3": 16 / (2 + 2 / 8 + 12 / 8),
}

# Thought that the optimizer's state is the two moments, and that the master copy is a weight, which only ZeRO-3 divides.
largest_model__wrong_moments = {
    "data parallel": 16 / 16,
    "ZeRO-1": 16 / (2 + 2 + 4 + 8 / 8),
    "ZeRO-2": 16 / (2 + 4 + 2 / 8 + 8 / 8),
    "ZeRO-3": 16 / (16 / 8),
}

# Thought that from the first, 1, to the last, 8, every stage doubles what fits.
largest_model__wrong_doubling = {"data parallel": 1, "ZeRO-1": 2, "ZeRO-2": 4, "ZeRO-3": 8}


# ---------------------------------------------------------------- best_split


def best_split__right_climb(b, f, n, mx, my):
    """(x, y) with x * y == n: devices for FSDP and for tensor parallelism."""
    # sum(x) = f x / (n mx) + b / (x my) has one valley: double as long as doubling makes it smaller
    x = 1
    while x < n and 2 * x * x * f * my < b * n * mx:
        x *= 2
    return x, n // x


# Thought that more axes of the torus make a time longer: multiplied by mx and my where one divides.
def best_split__wrong_axes(b, f, n, mx, my):
    splits = [(2**k, n // 2**k) for k in range(n.bit_length())]
    return min(splits, key=lambda s: f / s[1] * mx + b / s[0] * my)


# Thought that X has to be rounded down to a power of two, so as not to use more devices than the formula says.
def best_split__wrong_floor(b, f, n, mx, my):
    x = math.sqrt(b / f * mx / my * n)
    k = math.floor(math.log2(x))
    k = max(0, min(k, n.bit_length() - 1))
    return 2**k, n // 2**k


# Thought that both ways must really be used, so left out the splits with a 1.
def best_split__wrong_both(b, f, n, mx, my):
    best, best_time = (n, 1), float("inf")
    x = 2
    while x <= n // 2:
        y = n // x
        time = f / (y * mx) + b / (x * my)
        if time < best_time:
            best, best_time = (x, y), time
        x *= 2
    return best


# Thought that what is sent over an axis is divided by that same axis: weights by X, activations by Y.
def best_split__wrong_own_axis(b, f, n, mx, my):
    candidates = []
    for k in range(int(math.log2(n)) + 1):
        x = 2**k
        y = n // x
        weights = 4 * f / x / mx
        activations = 4 * b / y / my
        candidates.append((weights + activations, x, y))
    _, x, y = min(candidates)
    return x, y


# ---------------------------------------------------------------- rooflines

rooflines__right_ratio = {
    "tokens per device, data parallel over three axes": 4.6e14 / (3 * 2 * 9e10),
    "devices along y, tensor parallel over one axis": 28_672 * (2 * 9e10) / 4.6e14,
}

# Thought that W is the bandwidth of one link in one direction, since a ring goes round one way.
rooflines__wrong_one_way = {
    "tokens per device, data parallel over three axes": 4.6e14 / (3 * 9e10),
    "devices along y, tensor parallel over one axis": 28_672 / (4.6e14 / 9e10),
}

# Thought that the three axes of a v5p are there in both questions, though the second is over one axis.
rooflines__wrong_three_axes = {
    "tokens per device, data parallel over three axes": 851.85,
    "devices along y, tensor parallel over one axis": 28_672 / 851.85,
}

# Thought that an all_reduce sends its array once (4DF of gradients, 2BD of activations), and not twice.
rooflines__wrong_once = {
    "tokens per device, data parallel over three axes": 4.6e14 / 5.4e11 / 2,
    "devices along y, tensor parallel over one axis": 28_672 / (4.6e14 / 1.8e11) * 2,
}

# Thought of a whole step in the first row: 12BDF/X FLOPs against the 8DF bytes, where only the backward pass is asked.
rooflines__wrong_whole_step = {
    "tokens per device, data parallel over three axes": 8 / 12 * 4.6e14 / 5.4e11,
    "devices along y, tensor parallel over one axis": 11.22,
}
