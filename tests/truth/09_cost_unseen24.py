"""Answers to lesson 09, twenty-fourth batch, written by a reader of the notebook only."""

import math

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- why_no_speedup

why_no_speedup__right_roofline = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "stays",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "stays",
}

# This student thought that with twice the devices there are twice as many gradients to be added on the wire.
why_no_speedup__wrong_more_gradients = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "doubles",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "stays",
}

# This student thought that what travels backwards always grows with the tokens, as activations do.
why_no_speedup__wrong_bytes_grow_with_batch = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "stays",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "doubles",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "stays",
}

# This student thought that in tensor parallelism everything is cut by the devices, so also what each one sends.
why_no_speedup__wrong_sums_are_cut = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "stays",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "halves",
}

# This student explained both recorded measurements by the wire: slow links in the first, equal traffic in the second.
why_no_speedup__wrong_always_the_wire = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "slow links",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "bytes sent",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "stays",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "stays",
}


# ---- crossover_bytes


def crossover_bytes__right_straight_lines(n, alpha, bandwidth):
    """The V at which ring and tree take equally long."""

    def ahead(v):  # by how much the ring is slower: a straight line in v
        ring = 2 * (n - 1) * (alpha + v / n / bandwidth)
        tree = 2 * math.log2(n) * (alpha + v / bandwidth)
        return ring - tree

    start, later = ahead(0), ahead(alpha * bandwidth)
    return alpha * bandwidth * start / (start - later)


# This student let the tree climb up, and forgot that the sum must come down again.
def crossover_bytes__wrong_up_only(n, alpha, bandwidth):
    """The V at which ring and tree take equally long."""
    steps = math.log2(n)
    return (2 * (n - 1) - steps) * alpha * bandwidth / (steps - 2 * (n - 1) / n)


# This student took the size below which a block mostly waits for the size at which the tree loses.
def crossover_bytes__wrong_waiting_block(n, alpha, bandwidth):
    """The V at which ring and tree take equally long."""
    return n * alpha * bandwidth


# This student wrote NumPy's log, which is the natural one.
def crossover_bytes__wrong_natural_log(n, alpha, bandwidth):
    """The V at which ring and tree take equally long."""
    steps = np.log(n)
    return (n - 1 - steps) * alpha * bandwidth / (steps - (n - 1) / n)


# This student thought that a block goes all the way round, n steps and not n - 1.
def crossover_bytes__wrong_n_steps(n, alpha, bandwidth):
    """The V at which ring and tree take equally long."""
    ring_steps, tree_steps = 2 * n, 2 * math.log2(n)
    return (ring_steps - tree_steps) * alpha / ((tree_steps - ring_steps / n) / bandwidth)


# ---- link_bytes


def link_bytes__right_shorter_way(volume, n, both_ways):
    """Bytes through a link, in one direction, in an all_to_all on a ring."""
    message = volume / n**2
    if both_ways:
        hops = sum(min(d, n - d) for d in range(1, n)) / 2  # the two directions share them evenly
    else:
        hops = sum(range(1, n))
    return hops * message


# This student thought that with two directions every link simply has half of the traffic.
def link_bytes__wrong_just_half(volume, n, both_ways):
    """Bytes through a link, in one direction, in an all_to_all on a ring."""
    one_way = volume / n**2 * n * (n - 1) / 2
    return one_way / 2 if both_ways else one_way


# This student took a message for a whole device's block, V/n, and not for the part that goes to one other device.
def link_bytes__wrong_whole_blocks(volume, n, both_ways):
    """Bytes through a link, in one direction, in an all_to_all on a ring."""
    block = volume / n
    if both_ways:
        return block * (sum(range(1, n // 2)) + n / 4)
    return block * sum(range(1, n))


# This student sent the message for the opposite device whole, in both directions.
def link_bytes__wrong_opposite_whole(volume, n, both_ways):
    """Bytes through a link, in one direction, in an all_to_all on a ring."""
    message = volume / n**2
    farthest = n // 2 if both_ways else n - 1
    return message * sum(range(1, farthest + 1))


# This student counted what a link carries in both directions together.
def link_bytes__wrong_both_directions_together(volume, n, both_ways):
    """Bytes through a link, in one direction, in an all_to_all on a ring."""
    message = volume / n**2
    hops = sum(min(d, n - d) if both_ways else d for d in range(1, n))
    return message * hops
