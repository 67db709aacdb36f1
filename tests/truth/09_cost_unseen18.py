"""Answers to lesson 09, eighteenth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- link_bytes


def link_bytes__right_SIMULATED(volume, n, both_ways):
    message = volume / n / n
    over_link_0 = 0.0  # the link from device 0 to device 1
    for sender in range(n):
        for distance in range(1, n):
            share = 1.0
            if both_ways and 2 * distance > n:
                continue
            if both_ways and 2 * distance == n:
                share = 0.5
            for hop in range(distance):
                if (sender + hop) % n == 0:
                    over_link_0 += share * message
    return over_link_0


# A device has V/n bytes, and that is what it sends to each of the others: a message is a block, as in an all_gather.
def link_bytes__wrong_BLOCK(volume, n, both_ways):
    message = volume / n
    if both_ways:
        hops = sum(range(1, n // 2)) + n / 4
    else:
        hops = sum(range(1, n))
    return message * hops


# With two directions the same traffic is spread over both of them, so each link carries half of the one-way number.
def link_bytes__wrong_HALVED(volume, n, both_ways):
    one_way = volume / n**2 * n * (n - 1) / 2
    return one_way / 2 if both_ways else one_way


# The shorter way round is at most n/2 hops, so the distances in one direction are 1 .. n/2, the opposite one whole.
def link_bytes__wrong_OPPOSITE(volume, n, both_ways):
    furthest = n // 2 if both_ways else n - 1
    return volume / n**2 * sum(range(1, furthest + 1))


# On the shorter way a message travels n/4 hops on average; there are n - 1 messages, half of them in this direction.
def link_bytes__wrong_AVERAGE(volume, n, both_ways):
    message = volume / n**2
    if both_ways:
        return message * (n - 1) / 2 * (n / 4)
    return message * (n - 1) * (n / 2)


# -------------------------------------------------------------- ring_seconds


def ring_seconds__right_BYBYTES(kind, n, volume, alpha, bandwidth):
    rounds = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}[kind]
    waiting = rounds * (n - 1) * alpha
    sending = rounds * (volume - volume / n) / bandwidth
    return waiting + sending


# The latency is paid when the ring starts; after that the blocks stream one behind the other.
def ring_seconds__wrong_ONCE(kind, n, volume, alpha, bandwidth):
    times = 2 if kind == "all_reduce" else 1
    return alpha + times * (n - 1) / n * volume / bandwidth


# An all_reduce sends twice the bytes of the others, in the same n - 1 steps: the block is twice as large.
def ring_seconds__wrong_DOUBLEBLOCK(kind, n, volume, alpha, bandwidth):
    block = volume / n
    if kind == "all_reduce":
        block = 2 * block
    return (n - 1) * (alpha + block / bandwidth)


# V is what goes in: for an all_gather that is the block of one device, which is handed on as it is.
def ring_seconds__wrong_GATHERINPUT(kind, n, volume, alpha, bandwidth):
    block = volume if kind == "all_gather" else volume / n
    steps = 2 * (n - 1) if kind == "all_reduce" else n - 1
    return steps * (alpha + block / bandwidth)


# n devices, n blocks: so n steps until every block has been everywhere (and an all_reduce has 2n).
def ring_seconds__wrong_NSTEPS(kind, n, volume, alpha, bandwidth):
    steps = {"all_gather": n, "reduce_scatter": n, "all_reduce": 2 * n}[kind]
    return steps * (alpha + volume / n / bandwidth)


# ------------------------------------------------------------- largest_model

largest_model__right_FORMULA = {
    name: 16 / (whole + (16 - whole) / 8)
    for name, whole in {"data parallel": 16, "ZeRO-1": 4, "ZeRO-2": 2, "ZeRO-3": 0}.items()
}

# ZeRO divides the weights first (ZeRO-1), then the gradients too (ZeRO-2), then also the optimizer.
largest_model__wrong_WEIGHTSFIRST = {
    "data parallel": 1,
    "ZeRO-1": 16 / (14 + 2 / 8),
    "ZeRO-2": 16 / (12 + 4 / 8),
    "ZeRO-3": 8,
}

# The eight devices have 128 GB together, and without ZeRO one just divides that by sixteen bytes.
largest_model__wrong_TOGETHER = {
    "data parallel": 128 / 16,
    "ZeRO-1": 16 / 5.5,
    "ZeRO-2": 16 / 3.75,
    "ZeRO-3": 8,
}

# Under ZeRO-2 a gradient is sent away as soon as it is there, so only weight and optimizer share count: 2 + 12/8.
largest_model__wrong_NOGRADIENT = {
    "data parallel": 1.0,
    "ZeRO-1": 2.909,
    "ZeRO-2": 16 / (2 + 12 / 8),
    "ZeRO-3": 8.0,
}

# The master copy is a weight, not optimizer state: ZeRO-1 and ZeRO-2 divide only the two moments (8 bytes) of the twelve.
largest_model__wrong_MASTER = {
    "data parallel": 1,
    "ZeRO-1": 16 / (2 + 2 + 4 + 8 / 8),
    "ZeRO-2": 16 / (2 + 4 + (2 + 8) / 8),
    "ZeRO-3": 8,
}
