"""Answers to lesson 09, twentieth batch, written by a reader of the notebook only."""

import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- link_bytes


def link_bytes__right_HOPS(volume, n, both_ways):
    """All hops of one device's messages; with both ways half of them go in either direction."""
    message = volume / n**2
    if both_ways:
        return message * sum(min(k, n - k) for k in range(1, n)) / 2
    return message * sum(range(1, n))


# Both ways are two links where there was one, so each of them carries half of what it carried (right for n = 2 only).
def link_bytes__wrong_HALF(volume, n, both_ways):
    one_way = (n - 1) / (2 * n) * volume
    return one_way / 2 if both_ways else one_way


# With the shorter way round the distances go up to n/2, and the message to the opposite device counts like the others.
def link_bytes__wrong_OPPOSITE(volume, n, both_ways):
    farthest = n // 2 if both_ways else n - 1
    return sum(d for d in range(1, farthest + 1)) * volume / n**2


# A message's hops are min(d, n - d): add them all up (and forgets that half of them cross links in the other direction).
def link_bytes__wrong_BOTHDIRECTIONS(volume, n, both_ways):
    hops = [min(d, n - d) if both_ways else d for d in range(1, n)]
    return volume / n**2 * sum(hops)


# What a device sends is what its link carries, n - 1 messages of V/n²; with both ways half of them leave on each side.
def link_bytes__wrong_SENDER(volume, n, both_ways):
    sent = (n - 1) * volume / n**2
    return sent / (2 if both_ways else 1)


# ---- memory_per_device


def memory_per_device__right_DIGIT(how, params, activations, n):
    """The digit tells how many of (optimizer, gradients, weights) are divided."""
    divided = {"data parallel": 0, "tensor parallel": 3}.get(how)
    if divided is None:
        divided = int(how[-1])
    state = sum(size / n if k < divided else size for k, size in enumerate((12, 2, 2))) * params
    return state + (activations if how.startswith("tensor") else activations / n)


# Tensor parallelism divides everything by n, so its activations, too.
def memory_per_device__wrong_TENSOR(how, params, activations, n):
    split = {"data parallel": 0, "ZeRO-1": 12, "ZeRO-2": 14, "ZeRO-3": 16, "tensor parallel": 16}[how]
    return params * (16 - split + split / n) + activations / n


# ZeRO-1 divides the optimizer, ZeRO-2 the gradients, ZeRO-3 the weights: one thing each.
def memory_per_device__wrong_ONEEACH(how, params, activations, n):
    split = {"data parallel": 0, "ZeRO-1": 12, "ZeRO-2": 2, "ZeRO-3": 2, "tensor parallel": 16}[how]
    here = activations if how == "tensor parallel" else activations / n
    return params * (16 - split) + params * split / n + here


# Adam has two moments of four bytes each, so the optimizer is eight bytes (forgets the master copy).
def memory_per_device__wrong_MOMENTS(how, params, activations, n):
    weights, gradients, optimizer = 2 * params, 2 * params, 8 * params
    if how in ("ZeRO-1", "ZeRO-2", "ZeRO-3", "tensor parallel"):
        optimizer /= n
    if how in ("ZeRO-2", "ZeRO-3", "tensor parallel"):
        gradients /= n
    if how in ("ZeRO-3", "tensor parallel"):
        weights /= n
    if how != "tensor parallel":
        activations /= n
    return weights + gradients + optimizer + activations


# Plain data parallelism has a copy of everything on each device, and only the ZeROs divide anything.
def memory_per_device__wrong_COPY(how, params, activations, n):
    if how == "data parallel":
        return 16 * params + activations
    if how == "tensor parallel":
        return 16 * params / n + activations
    kept = {"ZeRO-1": 4, "ZeRO-2": 2, "ZeRO-3": 0}[how]
    return kept * params + ((16 - kept) * params + activations) / n


# ---- best_split


def best_split__right_DOUBLING(b, f, n, mx, my):
    """Double x for as long as that makes f x / (n mx) + b / (x my) smaller."""
    x = 1
    while x < n and 2 * f * x * x * my < b * n * mx:
        x *= 2
    return x, n // x


# FSDP cuts the weights over x, so that its bytes shrink with X; tensor parallelism cuts over y, so its bytes with Y.
def best_split__wrong_OWNAXIS(b, f, n, mx, my):
    pairs = [(2**k, n // 2**k) for k in range(n.bit_length())]
    return min(pairs, key=lambda p: f / (p[0] * mx) + b / (p[1] * my))


# More axes mean more links to send over, hence the time is multiplied by the number of axes.
def best_split__wrong_TIMESAXES(b, f, n, mx, my):
    pairs = [(2**k, n // 2**k) for k in range(n.bit_length())]
    return min(pairs, key=lambda p: mx * f / p[1] + my * b / p[0])


# The nearest power of two is the one with the smallest difference (not the nearest in doublings).
def best_split__wrong_DIFFERENCE(b, f, n, mx, my):
    ideal = math.sqrt(b / f * mx / my * n)
    x = min((2**k for k in range(n.bit_length())), key=lambda power: abs(power - ideal))
    return x, n // x


# The formula gives X, and whatever power of two is nearest to it will do (it may be beyond n, or below 1).
def best_split__wrong_UNBOUNDED(b, f, n, mx, my):
    x = 2 ** round(math.log2(b / f * mx / my * n) / 2)
    return x, n // x
