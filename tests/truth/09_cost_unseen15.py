"""Answers to lesson 09, fifteenth batch, written by a reader of the notebook only."""

import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def layer_bytes(how, b, d, f, x, y):
    """Bytes that one device sends, forward and backward (the exercise before, solved)."""
    if how == "FSDP":
        gathered = (x - 1) / x * 4 * d * f
        return gathered, 2 * gathered
    weights = (x - 1) / x * 4 * d * f / y
    sums = 2 * (y - 1) / y * 2 * b * d / x
    if how == "data parallel":
        return 0, 2 * weights
    if how == "tensor parallel":
        return sums, sums
    return weights + sums, 2 * weights + sums


# ---- layer_seconds


def layer_seconds__right_rounds(how, backward, b, d, f, n, flops_per_s, link):
    passes = 2 if backward else 1
    arithmetic = passes * 2 * (2 * b * d * f) / (n * flops_per_s)
    if how == "data parallel":
        block = 2 * d * f / n if backward else 0  # of each of two gradients
        blocks = 2 * 2 * (n - 1)
    else:
        block = 2 * b * d / n  # of one array of activations
        blocks = 2 * (n - 1)
    return arithmetic, blocks * block / 2 / link


# A link has this bandwidth, so W is the link's: forgot that half of the bytes go to the other neighbour.
def layer_seconds__wrong_one_neighbour(how, backward, b, d, f, n, flops_per_s, link):
    x, y = (n, 1) if how == "data parallel" else (1, n)
    sent = layer_bytes(how, b, d, f, x, y)[1 if backward else 0]
    return (8 if backward else 4) * b * d * f / n / flops_per_s, sent / link


# Under tensor parallelism each device has all the tokens, so it has all of the FLOPs, too.
def layer_seconds__wrong_all_tokens(how, backward, b, d, f, n, flops_per_s, link):
    data = how == "data parallel"
    tokens = b / n if data else b
    flops = 4 * tokens * d * f * (2 if backward else 1)
    sent = layer_bytes(how, b, d, f, n if data else 1, 1 if data else n)[int(backward)]
    return flops / flops_per_s, sent / (2 * link)


# The n devices are the x of the mesh, whichever way the layer is divided.
def layer_seconds__wrong_always_x(how, backward, b, d, f, n, flops_per_s, link):
    forward_bytes, backward_bytes = layer_bytes(how, b, d, f, n, 1)
    if backward:
        return 8 * b * d * f / n / flops_per_s, backward_bytes / (2 * link)
    return 4 * b * d * f / n / flops_per_s, forward_bytes / (2 * link)


# Backward costs twice of everything: twice the FLOPs, and so also twice the all_reduces of tensor parallelism.
def layer_seconds__wrong_twice_everything(how, backward, b, d, f, n, flops_per_s, link):
    factor = 2 if backward else 1
    arithmetic = factor * 4 * b * d * f / n / flops_per_s
    if how == "tensor parallel":
        sent = factor * (n - 1) / n * 4 * b * d
    else:
        sent = (n - 1) / n * 8 * d * f if backward else 0.0
    return arithmetic, sent / (2 * link)


# ---- speedups

_mean, _deviation = 25.2, 30.9
speedups__right_computed = {
    "gradients: speed-up": 351 / 53.8,
    "gradients: efficiency": 351 / (8 * 53.8),
    "gradients: ms that eight devices lose": 53.8 - 351 / 8,
    "tensor parallelism: percent saved": 100 - 100 * 51.4 / 53.8,
    "sin: ms of a usual run": _mean - _deviation / 2,
}

# The eight devices lose eight times what one loses: milliseconds of all devices added up.
speedups__wrong_device_ms = {
    "gradients: speed-up": 351 / 53.8,
    "gradients: efficiency": 351 / 53.8 / 8,
    "gradients: ms that eight devices lose": 8 * 53.8 - 351,
    "tensor parallelism: percent saved": (53.8 - 51.4) / 53.8 * 100,
    "sin: ms of a usual run": 9.75,
}

# What is saved is a part of the new time (51.4 ms), not of the old one.
speedups__wrong_of_the_new_time = {
    "gradients: speed-up": 6.524,
    "gradients: efficiency": 0.8155,
    "gradients: ms that eight devices lose": 9.925,
    "tensor parallelism: percent saved": (53.8 / 51.4 - 1) * 100,
    "sin: ms of a usual run": 9.75,
}

# A deviation of five runs divides by four, so that it is sqrt(20 e**2 / 4).
speedups__wrong_sample_deviation = {
    "gradients: speed-up": 6.524,
    "gradients: efficiency": 0.8155,
    "gradients: ms that eight devices lose": 9.925,
    "tensor parallelism: percent saved": 4.46,
    "sin: ms of a usual run": 25.2 - 30.9 / math.sqrt(5),
}

# The speed-up to beat is that of the best layout (4 x 2), and the loss is what it leaves over an eighth.
speedups__wrong_best_layout = {
    "gradients: speed-up": 351 / 51.4,
    "gradients: efficiency": 351 / 51.4 / 8,
    "gradients: ms that eight devices lose": 51.4 - 351 / 8,
    "tensor parallelism: percent saved": 4.46,
    "sin: ms of a usual run": 9.75,
}


# ---- crossover_bytes


def crossover_bytes__right_two_lines(n, alpha, bandwidth):
    levels = int(n).bit_length() - 1
    saved_waiting = 2 * (n - 1 - levels) * alpha
    more_per_byte = (2 * levels - 2 * (n - 1) / n) / bandwidth
    return saved_waiting / more_per_byte


# The tree has the sum after log2 n steps: the way down again is forgotten.
def crossover_bytes__wrong_only_up(n, alpha, bandwidth):
    steps = math.log2(n)
    return alpha * bandwidth * (2 * (n - 1) - steps) / (steps - 2 * (n - 1) / n)


# (n - 1)/n is about 1, as elsewhere in the lesson.
def crossover_bytes__wrong_many_devices(n, alpha, bandwidth):
    steps = math.log2(n)
    return alpha * bandwidth * (n - 1 - steps) / (steps - 1)


# The ring wins as soon as its blocks are no longer latency-bound, when V/n is alpha * W.
def crossover_bytes__wrong_block_not_waiting(n, alpha, bandwidth):
    return n * alpha * bandwidth


# Solved for the bytes of one message of the ring, and took that for V.
def crossover_bytes__wrong_block_of_the_ring(n, alpha, bandwidth):
    steps = math.log2(n)
    whole = alpha * bandwidth * (n - 1 - steps) / (steps - (n - 1) / n)
    return whole / n
