"""Answers to lesson 09, fifth batch, written by a reader of the notebook only."""

import math

import jax
import jax.numpy as jnp
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def layer_bytes(how, b, d, f, x, y):
    """Bytes that one device sends, forward and backward (an answer to the exercise of that name, used below)."""
    along_x = (x - 1) / x * 4 * d * f / y
    along_y = 2 * (y - 1) / y * 2 * b * d / (1 if how == "tensor parallel" else x)
    if how == "FSDP":
        return along_x, 2 * along_x
    if how == "data parallel":
        return 0, 2 * along_x
    if how == "tensor parallel":
        return along_y, along_y
    return along_x + along_y, 2 * along_x + along_y


# ---- layer_seconds


def layer_seconds__right_direct(how, backward, b, d, f, n, flops_per_s, link):
    products = 4 if backward else 2
    arithmetic = products * 2 * b * d * f / n / flops_per_s
    if how == "tensor parallel":
        reduced = 2 * b * d  # bytes of an activation, in either pass
    else:
        reduced = 4 * d * f if backward else 0  # bytes of both gradients
    return arithmetic, 2 * (n - 1) / n * reduced / (2 * link)


# Thought that a ring sends in one direction, so that W is the bandwidth of one link.
def layer_seconds__wrong_oneway(how, backward, b, d, f, n, flops_per_s, link):
    x, y = (n, 1) if how == "data parallel" else (1, n)
    sent = layer_bytes(how, b, d, f, x, y)[backward]
    return (8 if backward else 4) * b * d * f / n / flops_per_s, sent / link


# Halved twice: half of the bytes go each way, and the bandwidth is doubled as well.
def layer_seconds__wrong_halvedtwice(how, backward, b, d, f, n, flops_per_s, link):
    x, y = (n, 1) if how == "data parallel" else (1, n)
    sent = layer_bytes(how, b, d, f, x, y)[backward]
    return (8 if backward else 4) * b * d * f / n / flops_per_s, sent / 2 / (2 * link)


# Thought that under tensor parallelism a device has all the tokens, and so all of the arithmetic.
def layer_seconds__wrong_alltokens(how, backward, b, d, f, n, flops_per_s, link):
    x, y = (n, 1) if how == "data parallel" else (1, n)
    flops = (8 if backward else 4) * b * d * f
    if how == "data parallel":
        flops = flops / n
    return flops / flops_per_s, layer_bytes(how, b, d, f, x, y)[backward] / (2 * link)


# Thought that "backward" means the whole step, and counted the forward arithmetic in it: 12BDF.
def layer_seconds__wrong_wholestep(how, backward, b, d, f, n, flops_per_s, link):
    x, y = (n, 1) if how == "data parallel" else (1, n)
    sent = layer_bytes(how, b, d, f, x, y)[backward]
    return (12 if backward else 4) * b * d * f / n / flops_per_s, sent / (2 * link)


# ---- speedups

speedups__right_sums = {
    "gradients: speed-up": 351 / 53.8,
    "gradients: efficiency": 351 / 53.8 / 8,
    "gradients: ms that eight devices lose": 53.8 - 351 / 8,
    "tensor parallelism: percent saved": 100 * (53.8 - 51.4) / 53.8,
    "sin: ms of a usual run": 25.2 - 30.9 / 2,
}

# Wrote parts as percents and percents as parts.
speedups__wrong_percent = {
    "gradients: speed-up": 6.52,
    "gradients: efficiency": 81.6,
    "gradients: ms that eight devices lose": 9.93,
    "tensor parallelism: percent saved": 0.0446,
    "sin: ms of a usual run": 9.75,
}

# Thought that the slow run is one deviation above the mean, so that 56.1 was the slow one.
speedups__wrong_slow = {
    "gradients: speed-up": 6.52,
    "gradients: efficiency": 0.816,
    "gradients: ms that eight devices lose": 9.93,
    "tensor parallelism: percent saved": 4.46,
    "sin: ms of a usual run": 17.5,
}

# Added up what all eight devices lose, and took the percents of what one device needs.
speedups__wrong_together = {
    "gradients: speed-up": 6.52,
    "gradients: efficiency": 0.816,
    "gradients: ms that eight devices lose": 79.4,
    "tensor parallelism: percent saved": 85.4,
    "sin: ms of a usual run": 9.75,
}

# Divided the squares by one run less, as for a sample (the deviation is √5 times e), and took the percents of the later time.
speedups__wrong_sample = {
    "gradients: speed-up": 6.52,
    "gradients: efficiency": 0.816,
    "gradients: ms that eight devices lose": 9.93,
    "tensor parallelism: percent saved": 4.67,
    "sin: ms of a usual run": 11.4,
}


# ---- collective_bytes


def collective_bytes__right_blocks(kind, shape, dtype, n):
    pieces, times = {
        "all_gather": (n, n - 1),
        "reduce_scatter": (n, n - 1),
        "all_reduce": (n, 2 * (n - 1)),
        "all_to_all": (n * n, n - 1),
        "collective_permute": (n, 1),
    }[kind]
    whole = jnp.dtype(dtype).itemsize
    for length in shape:
        whole *= length
    return times * whole / pieces


# Thought that the shape is that of a device's block, for those that bring blocks together.
def collective_bytes__wrong_blockshape(kind, shape, dtype, n):
    v = math.prod(shape) * jnp.dtype(dtype).itemsize
    return (
        v
        * {
            "all_gather": n - 1,
            "reduce_scatter": (n - 1) / n,
            "all_reduce": 2 * (n - 1) / n,
            "all_to_all": (n - 1) / n,
            "collective_permute": 1,
        }[kind]
    )


# Thought that an exchange sends what a scatter sends, all but its own share of the array.
def collective_bytes__wrong_exchange(kind, shape, dtype, n):
    v = math.prod(shape) * jnp.dtype(dtype).itemsize
    if kind == "collective_permute":
        return v / n
    rounds = 2 if kind == "all_reduce" else 1
    return rounds * (n - 1) / n * v


# Thought of float32 throughout: four bytes an entry.
def collective_bytes__wrong_fourbytes(kind, shape, dtype, n):
    v = 4 * math.prod(shape)
    return (
        v
        * {
            "all_gather": (n - 1) / n,
            "reduce_scatter": (n - 1) / n,
            "all_reduce": 2 * (n - 1) / n,
            "all_to_all": (n - 1) / n**2,
            "collective_permute": 1 / n,
        }[kind]
    )


# Thought that the n - 1 steps of a ring are n, to come back to where it began.
def collective_bytes__wrong_nsteps(kind, shape, dtype, n):
    v = math.prod(shape) * jnp.dtype(dtype).itemsize
    handed_on = {
        "all_gather": n,
        "reduce_scatter": n,
        "all_reduce": 2 * n,
        "all_to_all": n - 1,
        "collective_permute": 1,
    }[kind]
    return handed_on * (v / n**2 if kind == "all_to_all" else v / n)
