"""Answers to lesson 09, fourth batch, written by a reader of the notebook only."""

import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- crossover_bytes


def crossover_bytes__right_straight_lines(n, alpha, bandwidth):
    """Both times are straight lines in V: two points of their difference, and where it is zero."""
    climbs = n.bit_length() - 1

    def ring_minus_tree(volume):
        ring = 2 * (n - 1) * (alpha + volume / n / bandwidth)
        return ring - 2 * climbs * (alpha + volume / bandwidth)

    far = n * alpha * bandwidth
    ahead, behind = ring_minus_tree(0), ring_minus_tree(far)
    return far * ahead / (ahead - behind)


# This student lets the tree climb, and forgets that the sum has to come down again.
def crossover_bytes__wrong_up_only(n, alpha, bandwidth):
    levels = math.log2(n)
    return alpha * bandwidth * (2 * (n - 1) - levels) / (levels - 2 * (n - 1) / n)


# This student thinks that math.log is the logarithm that counts the levels.
def crossover_bytes__wrong_natural_log(n, alpha, bandwidth):
    levels = math.log(n)
    return alpha * bandwidth * (n - 1 - levels) / (levels - (n - 1) / n)


# This student takes (n - 1)/n for 1, as the lesson does for very many devices.
def crossover_bytes__wrong_many_devices(n, alpha, bandwidth):
    levels = math.log2(n)
    return alpha * bandwidth * (n - 1 - levels) / (levels - 1)


# This student counts n waits in each round of the ring, one for each device, with the bytes as they should be.
def crossover_bytes__wrong_n_messages(n, alpha, bandwidth):
    levels = math.log2(n)
    return alpha * bandwidth * (n - levels) / (levels - (n - 1) / n)


# ---------------------------------------------------------------- rooflines

rooflines__right_both_ways = {
    "tokens per device, data parallel over three axes": 4.6e14 / (3 * 2 * 9e10),
    "devices along y, tensor parallel over one axis": 28_672 * (2 * 9e10) / 4.6e14,
}

# This student uses the bandwidth of one direction, and forgets that a ring has two neighbours.
rooflines__wrong_one_direction = {
    "tokens per device, data parallel over three axes": 4.6e14 / (3 * 9e10),
    "devices along y, tensor parallel over one axis": 28_672 * 9e10 / 4.6e14,
}

# This student solves both for one axis of the torus.
rooflines__wrong_one_axis = {
    "tokens per device, data parallel over three axes": 4.6e14 / (2 * 9e10),
    "devices along y, tensor parallel over one axis": 28_672 * (2 * 9e10) / 4.6e14,
}

# This student thinks that the backward pass of data parallelism sends a gradient of D·F only, 4DF bytes for 8BDF FLOPs.
rooflines__wrong_one_matrix = {
    "tokens per device, data parallel over three axes": 4.6e14 / (2 * 3 * 2 * 9e10),
    "devices along y, tensor parallel over one axis": 28_672 * (2 * 9e10) / 4.6e14,
}

# This student takes the W of three axes for the second question too.
rooflines__wrong_three_axes_for_both = {
    "tokens per device, data parallel over three axes": 4.6e14 / (3 * 2 * 9e10),
    "devices along y, tensor parallel over one axis": 28_672 * (3 * 2 * 9e10) / 4.6e14,
}

# ---------------------------------------------------------------- largest_model

largest_model__right_bytes_each = {
    "data parallel": 16 / (2 + 2 + 12),
    "ZeRO-1": 16 / (2 + 2 + 12 / 8),
    "ZeRO-2": 16 / (2 + 2 / 8 + 12 / 8),
    "ZeRO-3": 8 * 16 / 16,
}

# This student divides the smallest first: the weights, then the gradients, then the optimizer.
largest_model__wrong_smallest_first = {
    "data parallel": 16 / 16,
    "ZeRO-1": 16 / (2 / 8 + 2 + 12),
    "ZeRO-2": 16 / (2 / 8 + 2 / 8 + 12),
    "ZeRO-3": 16 / (16 / 8),
}

# This student thinks that under ZeRO-3 every device needs all the weights after all, since it computes with them.
largest_model__wrong_weights_stay_whole = {
    "data parallel": 1.0,
    "ZeRO-1": 16 / 5.5,
    "ZeRO-2": 16 / 3.75,
    "ZeRO-3": 16 / 3.75,
}

# This student thinks that the digit names the one thing that is divided, and not how many.
largest_model__wrong_one_thing_each = {
    "data parallel": 1.0,
    "ZeRO-1": 16 / (4 + 12 / 8),
    "ZeRO-2": 16 / (2 + 12 + 2 / 8),
    "ZeRO-3": 16 / (2 + 12 + 2 / 8),
}

# This student thinks that the twelve bytes of the optimizer contain the gradients' two: 2 + 12 in all, as 4 + 4 + 4 and the weights.
largest_model__wrong_gradients_in_the_twelve = {
    "data parallel": 1.0,
    "ZeRO-1": 16 / (2 + 12 / 8),
    "ZeRO-2": 16 / (2 + 12 / 8),
    "ZeRO-3": 8.0,
}
