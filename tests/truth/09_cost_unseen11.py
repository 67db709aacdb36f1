"""Answers to lesson 09, eleventh batch, written by a reader of the notebook only."""

import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- before_you_measure

I, J, K = 1024, 4096, 512
J_HERE = J // mesh.shape["x"]
FLOAT32 = 4


def float32_bytes(*lengths):
    return math.prod(lengths) * FLOAT32


def ring_all_reduce(volume, devices):
    blocks = (devices - 1) + (devices - 1)  # scattering the sums, then gathering them
    return blocks * volume // devices


before_you_measure__right_by_blocks = {
    "MiB of a float32[8192,8192]": float32_bytes(8192, 8192) / 2**20,
    "bytes of A on one device": float32_bytes(I, J_HERE),
    "FLOPs of one device": I * K * (J_HERE + J_HERE),  # as many additions as multiplications
    "bytes sent by one device": ring_all_reduce(float32_bytes(I, K), mesh.shape["x"]),
    "bytes that one hop of 1 µs is worth": 45e9 / 1e6,
}

# The mesh has eight devices, so each one has an eighth of A and does an eighth of the work (y cuts nothing, though).
before_you_measure__wrong_eighth = {
    "MiB of a float32[8192,8192]": float32_bytes(8192, 8192) / 2**20,
    "bytes of A on one device": float32_bytes(I, J) // mesh.size,
    "FLOPs of one device": 2 * I * J * K // mesh.size,
    "bytes sent by one device": ring_all_reduce(float32_bytes(I, K), 4),
    "bytes that one hop of 1 µs is worth": 45e9 * 1e-6,
}

# For the sum everybody needs everybody's term, so each device sends its whole C to the three others.
before_you_measure__wrong_to_everybody = {
    "MiB of a float32[8192,8192]": 256,
    "bytes of A on one device": float32_bytes(I, J_HERE),
    "FLOPs of one device": 2 * I * J_HERE * K,
    "bytes sent by one device": 3 * float32_bytes(I, K),
    "bytes that one hop of 1 µs is worth": 45_000,
}

# Counts the entries of the arrays all the way, and never multiplies by the four bytes of each.
before_you_measure__wrong_entries = {
    "MiB of a float32[8192,8192]": 8192 * 8192 / 2**20,
    "bytes of A on one device": I * J_HERE,
    "FLOPs of one device": 2 * I * J_HERE * K,
    "bytes sent by one device": ring_all_reduce(I * K, 4),
    "bytes that one hop of 1 µs is worth": 45_000,
}

# Counts a multiplication with its addition as one FLOP, and lets a hop cost its microsecond there and back.
before_you_measure__wrong_fused_and_back = {
    "MiB of a float32[8192,8192]": 256,
    "bytes of A on one device": 2**22,
    "FLOPs of one device": I * J_HERE * K,
    "bytes sent by one device": ring_all_reduce(float32_bytes(I, K), 4),
    "bytes that one hop of 1 µs is worth": 45e9 * 2e-6,
}


# ---------------------------------------------------------------- layer_bytes


def part_from_others(n):
    """The factor of a collective over n devices."""
    return (n - 1) / n


def layer_bytes__right_one_formula(how, b, d, f, x, y):
    """Bytes that one device sends, forward and backward."""
    both_weights = 2 * (2 * d * f) / y  # what is whole along x, and still cut along y
    activations = 2 * b * d / x  # the rows of one group along x
    once_over_x = part_from_others(x) * both_weights
    sum_over_y = 2 * part_from_others(y) * activations

    forward = sum_over_y
    if how.startswith("FSDP"):
        forward += once_over_x  # the gathers
    # backward: gather + reduce_scatter with FSDP, an all_reduce (which is twice as much) without
    backward = sum_over_y + 2 * once_over_x
    return forward, backward


# The output of the layer is [B, D], so [B, D] is summed over y: forgets that its rows are cut over x in the combined way.
def layer_bytes__wrong_all_tokens(how, b, d, f, x, y):
    """Bytes that one device sends, forward and backward."""
    if how == "FSDP":
        gathered = (x - 1) / x * 4 * d * f
        return gathered, 2 * gathered
    if how == "data parallel":
        return 0, 2 * (x - 1) / x * 4 * d * f
    summed = 2 * (y - 1) / y * 2 * b * d
    if how == "tensor parallel":
        return summed, summed
    gathered = (x - 1) / x * 4 * d * f / y
    return gathered + summed, 2 * gathered + summed


# The backward pass does everything twice (each product has two gradients), so the activations' sums are sent twice as well.
def layer_bytes__wrong_backward_is_twice(how, b, d, f, x, y):
    """Bytes that one device sends, forward and backward."""

    def all_reduce(volume, n):
        return 2 * (n - 1) / n * volume

    def all_gather(volume, n):
        return (n - 1) / n * volume

    if how == "data parallel":
        return 0, all_reduce(4 * d * f, x)
    forward = all_reduce(2 * b * d / x, y)
    if "FSDP" in how:
        forward += all_gather(4 * d * f / y, x)
    return forward, 2 * forward


# An all_reduce moves an array of V bytes, so it costs (n-1)/n of V like a gather or a scatter.
def layer_bytes__wrong_all_reduce_once(how, b, d, f, x, y):
    """Bytes that one device sends, forward and backward."""

    def collective(volume, n):
        return (n - 1) / n * volume

    weights, tokens = 4 * d * f, 2 * b * d
    if how == "FSDP":
        gathered = collective(weights, x)
        return gathered, 2 * gathered
    if how == "data parallel":
        return 0, collective(weights, x)
    if how == "tensor parallel":
        return collective(tokens, y), collective(tokens, y)
    gathered, summed = collective(weights / y, x), collective(tokens / x, y)
    return gathered + summed, 2 * gathered + summed


# In the combined way all x * y devices work together, so the factor is that of a ring of all of them.
def layer_bytes__wrong_ring_of_all(how, b, d, f, x, y):
    """Bytes that one device sends, forward and backward."""
    n = x * y
    factor = (n - 1) / n
    weights, tokens = factor * 4 * d * f / y, factor * 2 * b * d / x
    if how == "data parallel":
        return 0, 2 * weights
    if how == "FSDP":
        return weights, 2 * weights
    if how == "tensor parallel":
        return 2 * tokens, 2 * tokens
    return weights + 2 * tokens, 2 * weights + 2 * tokens


# ---------------------------------------------------------------- speedups

ONE, DATA, BOTH = 351, 53.8, 51.4
MEAN, DEVIATION = 25.2, 30.9


def usual_run(mean, deviation):
    """Runs are mean - e (four times) and mean + 4e: the deviation is 2e."""
    e = deviation / math.sqrt((4 * 1**2 + 1 * 4**2) / 5)
    return mean - e


speedups__right_named = {
    "gradients: speed-up": ONE / DATA,
    "gradients: efficiency": ONE / (8 * DATA),
    "gradients: ms that eight devices lose": DATA - ONE / 8,
    "tensor parallelism: percent saved": 100 * (1 - BOTH / DATA),
    "sin: ms of a usual run": usual_run(MEAN, DEVIATION),
}

# Divides what tensor parallelism saves by the new time instead of the time before.
speedups__wrong_of_the_new_time = {
    "gradients: speed-up": ONE / DATA,
    "gradients: efficiency": ONE / DATA / 8,
    "gradients: ms that eight devices lose": DATA - ONE / 8,
    "tensor parallelism: percent saved": 100 * (DATA / BOTH - 1),
    "sin: ms of a usual run": MEAN - DEVIATION / 2,
}

# Takes the deviation as that of a sample, with n - 1 = 4 under the root.
speedups__wrong_sample_deviation = {
    "gradients: speed-up": ONE / DATA,
    "gradients: efficiency": ONE / DATA / 8,
    "gradients: ms that eight devices lose": DATA - ONE / 8,
    "tensor parallelism: percent saved": 100 * (DATA - BOTH) / DATA,
    "sin: ms of a usual run": MEAN - DEVIATION / math.sqrt((4 + 16) / 4),
}

# Adds up what all eight devices lose together: eight times 53.8 ms were paid for 351 ms of work.
speedups__wrong_device_milliseconds = {
    "gradients: speed-up": ONE / DATA,
    "gradients: efficiency": ONE / DATA / 8,
    "gradients: ms that eight devices lose": 8 * DATA - ONE,
    "tensor parallelism: percent saved": 100 * (DATA - BOTH) / DATA,
    "sin: ms of a usual run": MEAN - DEVIATION / 2,
}

# Takes the best of the two recorded times on eight devices (4 x 2) for the rows about the gradients.
speedups__wrong_best_of_both = {
    "gradients: speed-up": ONE / BOTH,
    "gradients: efficiency": ONE / BOTH / 8,
    "gradients: ms that eight devices lose": BOTH - ONE / 8,
    "tensor parallelism: percent saved": 100 * (DATA - BOTH) / DATA,
    "sin: ms of a usual run": MEAN - DEVIATION / 2,
}
