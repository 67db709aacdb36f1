"""Answers to lesson 09, eighth batch, written by a reader of the notebook only."""

import math

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- crossover_bytes


def crossover_bytes__right_coefficients(n, alpha, bandwidth):
    levels, k = 0, n
    while k > 1:
        k //= 2
        levels += 1
    waits = {"ring": 2 * (n - 1), "tree": 2 * levels}  # how many alphas
    arrays = {"ring": 2 * (n - 1) / n, "tree": 2 * levels}  # how many V / W
    more_waiting = (waits["ring"] - waits["tree"]) * alpha
    less_sending = (arrays["tree"] - arrays["ring"]) / bandwidth
    return more_waiting / less_sending


# This student thought that when the tree has reached the one device with the sum it is finished, and forgot the way down.
def crossover_bytes__wrong_only_up(n, alpha, bandwidth):
    ring_steps, tree_steps = 2 * (n - 1), math.log2(n)
    return alpha * bandwidth * (ring_steps - tree_steps) / (tree_steps - ring_steps / n)


# This student thought of log as log: math.log, which is the natural one.
def crossover_bytes__wrong_natural_log(n, alpha, bandwidth):
    depth = math.log(n)
    return alpha * bandwidth * (n - 1 - depth) / (depth - (n - 1) / n)


# This student thought that "a block costs more waiting than sending" is meant here too, and returned the bytes of a block at the crossing.
def crossover_bytes__wrong_a_block(n, alpha, bandwidth):
    depth = math.log2(n)
    v = alpha * bandwidth * (n - 1 - depth) / (depth - (n - 1) / n)
    return v / n


# This student thought that a ring sends to both neighbours, half of its bytes each way, while a tree has one partner at a time.
def crossover_bytes__wrong_ring_both_ways(n, alpha, bandwidth):
    depth = math.log2(n)
    per_byte_ring = 2 * (n - 1) / n / (2 * bandwidth)
    per_byte_tree = 2 * depth / bandwidth
    return alpha * (2 * (n - 1) - 2 * depth) / (per_byte_tree - per_byte_ring)


# ---- memory_per_device


def memory_per_device__right_fractions(how, params, activations, n):
    #            weights gradients optimizer activations
    shares = {
        "data parallel": (1, 1, 1, n),
        "ZeRO-1": (1, 1, n, n),
        "ZeRO-2": (1, n, n, n),
        "ZeRO-3": (n, n, n, n),
        "tensor parallel": (n, n, n, 1),
    }[how]
    sizes = np.array([2 * params, 2 * params, 12 * params, activations], dtype=float)
    return float((sizes / np.array(shares)).sum())


# This student read "plain data parallelism has a copy of all of it on each device" as all of it, activations too.
def memory_per_device__wrong_copy_of_all(how, params, activations, n):
    if how == "data parallel":
        return 16 * params + activations
    if how == "tensor parallel":
        return 16 * params / n + activations
    level = int(how[-1])
    state = [12, 2, 2]
    total = sum(s * params / n if i < level else s * params for i, s in enumerate(state))
    return total + activations / n


# This student thought that the digit says WHICH one of the three is divided (1 the optimizer, 2 the gradients, 3 the weights), not how many.
def memory_per_device__wrong_one_of_three(how, params, activations, n):
    w = g = 2 * params
    o = 12 * params
    if how in ("ZeRO-1", "tensor parallel"):
        o /= n
    if how in ("ZeRO-2", "tensor parallel"):
        g /= n
    if how in ("ZeRO-3", "tensor parallel"):
        w /= n
    return w + g + o + (activations if how == "tensor parallel" else activations / n)


# This student thought that the optimizer's state is the two moments (exp_avg, exp_avg_sq in torch), and that the master copy is a weight.
def memory_per_device__wrong_master_is_weight(how, params, activations, n):
    weights, gradients, moments = (2 + 4) * params, 2 * params, (4 + 4) * params
    if how == "tensor parallel":
        return (weights + gradients + moments) / n + activations
    if how in ("ZeRO-1", "ZeRO-2", "ZeRO-3"):
        moments = moments / n
    if how in ("ZeRO-2", "ZeRO-3"):
        gradients = gradients / n
    if how == "ZeRO-3":
        weights = weights / n
    return weights + gradients + moments + activations / n


# This student thought that tensor parallelism cuts the matrices (and their gradients), and that dividing the optimizer is what ZeRO is for.
def memory_per_device__wrong_tp_whole_optimizer(how, params, activations, n):
    per_param = {
        "data parallel": 16,
        "ZeRO-1": 4 + 12 / n,
        "ZeRO-2": 2 + 14 / n,
        "ZeRO-3": 16 / n,
        "tensor parallel": 4 / n + 12,
    }[how]
    kept = activations if how == "tensor parallel" else activations / n
    return per_param * params + kept


# ---- rooflines

rooflines__right_solved = {
    "tokens per device, data parallel over three axes": 4.6e14 / (3 * 2 * 9e10),  # B/X > C/W, W of three axes
    "devices along y, tensor parallel over one axis": 28_672 * (2 * 9e10) / 4.6e14,  # F/Y > C/W, W of one axis
}

# This student took the link's number for W, one way only, in both rows.
rooflines__wrong_one_direction = {
    "tokens per device, data parallel over three axes": 4.6e14 / (3 * 9e10),
    "devices along y, tensor parallel over one axis": 28_672 / (4.6e14 / 9e10),
}

# This student set the arithmetic of the whole step (12BDF) against the backward pass's all_reduces, as in the drawn lines.
rooflines__wrong_whole_step = {
    "tokens per device, data parallel over three axes": 8 / 12 * 4.6e14 / 5.4e11,
    "devices along y, tensor parallel over one axis": 11.2,
}

# This student thought that three axes are three all_reduces one after the other, so three times the tokens are needed to hide them.
rooflines__wrong_three_times = {
    "tokens per device, data parallel over three axes": 3 * 2556,
    "devices along y, tensor parallel over one axis": 28_672 / 2556,
}

# This student counted the forward sum of [B, D] in bfloat16 as 2BD bytes, and forgot that an all_reduce sends its array twice.
rooflines__wrong_sum_sent_once = {
    "tokens per device, data parallel over three axes": 852,
    "devices along y, tensor parallel over one axis": 4 * 28_672 / 2 * 1.8e11 / 4.6e14,
}
