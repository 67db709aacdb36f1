"""Answers to lesson 09, twelfth batch, written by a reader of the notebook only."""

import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- crossover_bytes


def crossover_bytes__right_slopes(n, alpha, bandwidth):
    doublings = n.bit_length() - 1
    waiting_more = 2 * (n - 1) - 2 * doublings  # messages that the ring has more than the tree
    sending_less = 2 * doublings - 2 * (n - 1) / n  # arrays that the ring sends less
    return waiting_more * alpha / (sending_less / bandwidth)


# This student writes log for the logarithm, as in mathematics, and so has natural logarithms for the steps of the tree.
def crossover_bytes__wrong_natural_log(n, alpha, bandwidth):
    steps = math.log(n)
    return alpha * bandwidth * (n - 1 - steps) / (steps - (n - 1) / n)


# This student thought that the tree is done when the sum is at its top: log2(n) messages, and forgot the way down.
def crossover_bytes__wrong_only_up(n, alpha, bandwidth):
    steps = math.log2(n)
    return alpha * bandwidth * (2 * (n - 1) - steps) / (steps - 2 * (n - 1) / n)


# This student thought that the size that matters is that of a message on the ring, and returns the block V/n.
def crossover_bytes__wrong_block(n, alpha, bandwidth):
    steps = math.log2(n)
    volume = alpha * bandwidth * (n - 1 - steps) / (steps - (n - 1) / n)
    return volume / n


# This student left out (n-1)/n as on "many devices": the ring sends the array twice, 2V, for every n.
def crossover_bytes__wrong_many_devices(n, alpha, bandwidth):
    steps = math.log2(n)
    return alpha * bandwidth * (n - 1 - steps) / (steps - 1)


# ---------------------------------------------------------------- link_bytes


def link_bytes__right_distances(volume, n, both_ways):
    message = volume / n**2
    hops = 0
    for distance in range(1, n):
        if not both_ways or 2 * distance < n:
            hops += distance
        elif 2 * distance == n:
            hops += distance / 2
    return hops * message


# This student counts the crossings correctly, but thought that a message is a device's block, V/n.
def link_bytes__wrong_block_as_message(volume, n, both_ways):
    message = volume / n
    crossings = n * n / 8 if both_ways else n * (n - 1) / 2
    return crossings * message


# This student sends the message for the opposite device whole, the same way round as the shorter ones.
def link_bytes__wrong_opposite_whole(volume, n, both_ways):
    farthest = n // 2 if both_ways else n - 1
    return sum(range(1, farthest + 1)) * volume / n**2


# This student thought that with both directions each carries half of what one direction carried (the ways get no shorter).
def link_bytes__wrong_halved(volume, n, both_ways):
    one_way = (n - 1) / (2 * n) * volume
    return one_way / 2 if both_ways else one_way


# This student thought that a link carries what its owner sends, and forgot the messages that only pass through.
def link_bytes__wrong_no_hops(volume, n, both_ways):
    sent = (n - 1) * volume / n**2
    return sent / 2 if both_ways else sent


# ---------------------------------------------------------------- rooflines

rooflines__right_solved = {
    "tokens per device, data parallel over three axes": 4.6e14 / (3 * 2 * 9e10),
    "devices along y, tensor parallel over one axis": 28_672 / (4.6e14 / (2 * 9e10)),
}

# This student took the bandwidth of a link for that of an axis, and forgot the second neighbour.
rooflines__wrong_one_neighbour = {
    "tokens per device, data parallel over three axes": 4.6e14 / (3 * 9e10),
    "devices along y, tensor parallel over one axis": 28_672 * 9e10 / 4.6e14,
}

# This student thought that a ring runs along one axis at a time, so that three axes are no faster than one.
rooflines__wrong_axes_do_not_add = {
    "tokens per device, data parallel over three axes": 4.6e14 / 1.8e11,
    "devices along y, tensor parallel over one axis": 28_672 / (4.6e14 / 1.8e11),
}

# This student computed C/W once, for a v5p's three axes, and used it for both rows.
rooflines__wrong_three_axes_twice = {
    "tokens per device, data parallel over three axes": 4.6e14 / 5.4e11,
    "devices along y, tensor parallel over one axis": 28_672 / (4.6e14 / 5.4e11),
}

# This student counted an all_reduce as one array sent: 4DF backward (data parallel), 2BD forward (tensor parallel).
rooflines__wrong_all_reduce_once = {
    "tokens per device, data parallel over three axes": 4.6e14 / (2 * 5.4e11),
    "devices along y, tensor parallel over one axis": 2 * 28_672 * 1.8e11 / 4.6e14,
}
