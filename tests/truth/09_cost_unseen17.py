"""Answers to lesson 09, seventeenth batch, written by a reader of the notebook only."""

import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- memory_per_device


def memory_per_device__right_sizes(how, params, activations, n):
    sizes = [12, 2, 2]  # optimizer, gradients, weights: the largest first
    if how == "tensor parallel":
        return sum(sizes) * params / n + activations
    level = int(how[-1]) if how.startswith("ZeRO") else 0
    cut, kept = sum(sizes[:level]), sum(sizes[level:])
    return (cut * params + activations) / n + kept * params


# This student thought that tensor parallelism cuts the activations as well, since "everything is divided" there.
def memory_per_device__wrong_activations(how, params, activations, n):
    bytes_each = {
        "data parallel": 16,
        "ZeRO-1": 4 + 12 / n,
        "ZeRO-2": 2 + 14 / n,
        "ZeRO-3": 16 / n,
        "tensor parallel": 16 / n,
    }
    return bytes_each[how] * params + activations / n


# This student thought that each ZeRO stage divides another one of the three things, and not also those before it.
def memory_per_device__wrong_instead(how, params, activations, n):
    weights, gradients, optimizer = 2 * params, 2 * params, 12 * params
    if how == "ZeRO-1":
        optimizer /= n
    elif how == "ZeRO-2":
        gradients /= n
    elif how == "ZeRO-3":
        weights /= n
    elif how == "tensor parallel":
        weights, gradients, optimizer = weights / n, gradients / n, optimizer / n
    if how != "tensor parallel":
        activations /= n
    return weights + gradients + optimizer + activations


# This student thought that plain data parallelism divides nothing at all, so that the activations stay whole there, too.
def memory_per_device__wrong_copies(how, params, activations, n):
    if how == "data parallel":
        return 16 * params + activations
    if how == "tensor parallel":
        return 16 * params / n + activations
    stage = int(how.split("-")[1])
    total = activations / n
    for number, size in enumerate((12, 2, 2), start=1):
        total += size * params / (n if number <= stage else 1)
    return total


# This student counted the optimizer as Adam's two moments alone, and forgot that the master copy is among its twelve bytes.
def memory_per_device__wrong_moments(how, params, activations, n):
    divided = {"data parallel": "", "ZeRO-1": "o", "ZeRO-2": "og", "ZeRO-3": "ogw", "tensor parallel": "ogw"}[how]
    held = {"w": 2 * params, "g": 2 * params, "o": (4 + 4) * params}
    state = sum(size / n if what in divided else size for what, size in held.items())
    return state + (activations if how == "tensor parallel" else activations / n)


# ---------------------------------------------------------------- crossover_bytes


def crossover_bytes__right_line(n, alpha, bandwidth):
    climbs = n.bit_length() - 1

    def tree_less_ring(u):  # times in units of alpha, for V = u * alpha * bandwidth: a straight line in u
        return 2 * climbs * (1 + u) - 2 * (n - 1) * (1 + u / n)

    start, slope = tree_less_ring(0), tree_less_ring(1) - tree_less_ring(0)
    return -start / slope * alpha * bandwidth


# This student counted the tree's way up only, and forgot that the sum has to come down again.
def crossover_bytes__wrong_up(n, alpha, bandwidth):
    steps = math.log2(n)
    return alpha * bandwidth * (2 * (n - 1) - steps) / (steps - 2 * (n - 1) / n)


# This student took (n-1)/n for 1, as "on many devices", though n may be 4.
def crossover_bytes__wrong_many(n, alpha, bandwidth):
    log = math.log2(n)
    # ring: 2(n-1) alpha + 2 V/W, tree: 2 log (alpha + V/W)
    return (n - 1 - log) * alpha * bandwidth / (log - 1)


# This student solved it rightly for V, and then returned the bytes of a block, since blocks are what a ring sends.
def crossover_bytes__wrong_block(n, alpha, bandwidth):
    levels = math.log2(n)
    volume = alpha * (n - 1 - levels) / ((levels - (n - 1) / n) / bandwidth)
    return volume / n


# This student took the natural logarithm for the number of the tree's steps.
def crossover_bytes__wrong_natural(n, alpha, bandwidth):
    k = math.log(n)
    waiting = 2 * (n - 1) - 2 * k
    sending = 2 * k - 2 * (n - 1) / n
    return waiting / sending * alpha * bandwidth


# ---------------------------------------------------------------- why_no_speedup

why_no_speedup__right_words = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "stays",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "stays",
}

# This student thought that eight devices lose on a product because it is too small to be worth dividing.
why_no_speedup__wrong_small = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "little work",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "stays",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "stays",
}

# This student thought that times so much alike must come from the same wire, and that more tokens mean more to send there.
why_no_speedup__wrong_wire = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "bytes sent",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "stays",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "doubles",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "stays",
}

# This student thought that a device's part of F, and with it what it has to send, halves on twice the devices.
why_no_speedup__wrong_part = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "stays",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "halves",
}

# This student thought that an all_reduce among twice as many devices has twice as many steps, so that each sends twice as much.
why_no_speedup__wrong_steps = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "doubles",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "doubles",
}
