"""Answers to lesson 09, tenth batch, written by a reader of the notebook only."""

import math

import jax
import jax.numpy as jnp
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- link_bytes


def link_bytes__right_crossings(volume, n, both_ways):
    """Count the messages that cross the link from device 0 to device 1, going up."""
    crossing = 0
    for sender in range(n):
        for distance in range(1, n):
            there = any((sender + hop) % n == 0 for hop in range(distance))
            if not both_ways or distance < n / 2:
                crossing += there
            elif distance == n / 2:
                crossing += there / 2
    return volume * crossing / n**2


# Thought: nobody sends itself anything, so the volume is made up of n (n - 1) messages, each V / (n (n - 1)).
def link_bytes__wrong_nothing_to_itself(volume, n, both_ways):
    message = volume / (n * (n - 1))
    if both_ways:
        hops = sum(range(1, n // 2)) + n / 4
    else:
        hops = sum(range(1, n))
    return message * hops


# Thought: with two directions the same traffic is shared between twice as many lanes, so each carries half of it (forgot that paths get shorter as well).
def link_bytes__wrong_half_each_way(volume, n, both_ways):
    one_way = volume * (n - 1) / (2 * n)
    return one_way / 2 if both_ways else one_way


# Thought: in one direction go the distances up to and with n/2, each a whole message.
def link_bytes__wrong_opposite_whole(volume, n, both_ways):
    farthest = n // 2 if both_ways else n - 1
    return volume / n**2 * sum(range(1, farthest + 1))


# Thought: both ways only makes each distance the shorter one; added up all n - 1 messages, also those that go the other direction.
def link_bytes__wrong_both_directions_added(volume, n, both_ways):
    distances = [min(d, n - d) if both_ways else d for d in range(1, n)]
    return sum(distances) * volume / n**2


# ---------------------------------------------------------- collective_bytes


def collective_bytes__right_blocks(kind, shape, dtype, n):
    whole = math.prod(shape) * jnp.dtype(dtype).itemsize
    block = whole / n
    if kind == "collective_permute":
        return block
    if kind == "all_to_all":
        return block - block / n  # all of the block but the piece that stays
    once = whole - block  # all blocks but one are handed on
    return once + once if kind == "all_reduce" else once


# Thought: on a ring an all_to_all's messages for devices further away are handed on by those in between, and a device sends these too.
def collective_bytes__wrong_forwards_too(kind, shape, dtype, n):
    whole = math.prod(shape) * jnp.dtype(dtype).itemsize
    sent = {
        "all_gather": (n - 1) / n,
        "reduce_scatter": (n - 1) / n,
        "all_reduce": 2 * (n - 1) / n,
        "all_to_all": sum(range(1, n)) / n**2,
        "collective_permute": 1 / n,
    }
    return whole * sent[kind]


# Thought: an all_reduce's 2 (n - 1) steps share the turn in the middle, so that 2n - 1 blocks are handed on.
def collective_bytes__wrong_turn_in_the_middle(kind, shape, dtype, n):
    block = math.prod(shape) * jnp.dtype(dtype).itemsize / n
    blocks = {
        "all_gather": n - 1,
        "reduce_scatter": n - 1,
        "all_reduce": 2 * n - 1,
        "all_to_all": (n - 1) / n,
        "collective_permute": 1,
    }
    return block * blocks[kind]


# Thought: an all_to_all is an eighth of an all_gather, as the picture's text says.
def collective_bytes__wrong_always_an_eighth(kind, shape, dtype, n):
    volume = jnp.dtype(dtype).itemsize
    for length in shape:
        volume *= length
    gather = (n - 1) * volume / n
    if kind in ("all_gather", "reduce_scatter"):
        return gather
    if kind == "all_reduce":
        return 2 * gather
    if kind == "all_to_all":
        return gather / 8
    return volume / n


# Thought: the whole array is what shard_map sees, all devices' blocks together; so before a sum each device's term is V/n, and a block of it V/n².
def collective_bytes__wrong_terms_are_blocks(kind, shape, dtype, n):
    volume = math.prod(shape) * jnp.dtype(dtype).itemsize
    term = volume / n
    return {
        "all_gather": (n - 1) * volume / n,
        "reduce_scatter": (n - 1) * term / n,
        "all_reduce": 2 * (n - 1) * term / n,
        "all_to_all": (n - 1) * term / n,
        "collective_permute": volume / n,
    }[kind]


# ------------------------------------------------------------- largest_model

largest_model__right_bytes = {
    "data parallel": 16 / (2 + 2 + 12),
    "ZeRO-1": 16 / (2 + 2 + 12 / 8),
    "ZeRO-2": 16 / (2 + 2 / 8 + 12 / 8),
    "ZeRO-3": 128 / 16,
}

# Thought: the number in the name says which one thing is divided: 1 the optimizer, 2 the gradients, and in ZeRO-3, which is FSDP, everything.
largest_model__wrong_one_thing_each = {
    "data parallel": 16 / 16,
    "ZeRO-1": 16 / (2 + 2 + 12 / 8),
    "ZeRO-2": 16 / (2 + 2 / 8 + 12),
    "ZeRO-3": 16 / (16 / 8),
}

# Thought: the master copy is a copy of the weights, so it is divided only where weights are; the optimizer is the two moments, 8 bytes.
largest_model__wrong_master_is_a_weight = {
    "data parallel": 1,
    "ZeRO-1": 16 / (2 + 4 + 2 + 8 / 8),
    "ZeRO-2": 16 / (2 + 4 + (2 + 8) / 8),
    "ZeRO-3": 8,
}

# Thought: to compute anything a device has to gather the weights under ZeRO-3, so 2 bytes come on top of its eighth.
largest_model__wrong_gathered_weights = {
    "data parallel": 1.0,
    "ZeRO-1": 2.909,
    "ZeRO-2": 4.267,
    "ZeRO-3": 16 / (16 / 8 + 2),
}

# Thought: under ZeRO-2 each share of the gradient goes into the optimizer's share at once, and so takes no place of its own.
largest_model__wrong_gradient_used_up = {
    "data parallel": 1,
    "ZeRO-1": 16 / 5.5,
    "ZeRO-2": 16 / (2 + 12 / 8),
    "ZeRO-3": 8 * 1,
}
