"""Answers to lesson 09, twenty-second batch, written by a reader of the notebook only."""

import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- crossover_bytes


def crossover_bytes__right_secant(n, alpha, bandwidth):
    """The V at which ring and tree take equally long."""
    levels = math.log2(n)

    def lead(volume):  # how much longer the tree takes: a straight line in the volume
        ring = 2 * (n - 1) * (alpha + volume / n / bandwidth)
        tree = 2 * levels * (alpha + volume / bandwidth)
        return tree - ring

    probe = alpha * bandwidth
    return probe * lead(0) / (lead(0) - lead(probe))


# The tree is done when one device has the sum, so it has log2 n steps and not twice as many.
def crossover_bytes__wrong_up_only(n, alpha, bandwidth):
    levels = math.log2(n)
    return alpha * bandwidth * (2 * (n - 1) - levels) / (levels - 2 * (n - 1) / n)


# A message of the ring is a block, so what comes out of the comparison has to be a block's size: one more division by n.
def crossover_bytes__wrong_block(n, alpha, bandwidth):
    levels = math.log2(n)
    whole = alpha * bandwidth * (n - 1 - levels) / (levels - (n - 1) / n)
    return whole / n


# A ring's all_reduce sends 2V on any number of devices, as in the table of large n; (n-1)/n is left out.
def crossover_bytes__wrong_many(n, alpha, bandwidth):
    levels = math.log2(n)
    return alpha * bandwidth * (n - 1 - levels) / (levels - 1)


# log is log: the steps of the tree by the natural logarithm.
def crossover_bytes__wrong_log(n, alpha, bandwidth):
    levels = math.log(n)
    more_waiting = 2 * (n - 1) - 2 * levels
    more_sending = 2 * levels - 2 * (n - 1) / n
    return alpha * bandwidth * more_waiting / more_sending


# ---- ring_seconds


def ring_seconds__right_laps(kind, n, volume, alpha, bandwidth):
    """Seconds until the last device has what it should have."""
    laps = 1 + (kind == "all_reduce")
    return laps * ((n - 1) * alpha + (volume - volume / n) / bandwidth)


# The ring is a pipe: the latency is paid once, when the first message comes in, and then bytes flow.
def ring_seconds__wrong_alpha_once(kind, n, volume, alpha, bandwidth):
    steps = 2 * (n - 1) if kind == "all_reduce" else n - 1
    return alpha + steps * volume / n / bandwidth


# As in MPI_Allgather: the volume of a gather is what each device brings, so there a block is the whole volume.
def ring_seconds__wrong_own_block(kind, n, volume, alpha, bandwidth):
    block = volume if kind == "all_gather" else volume / n
    steps = 2 * (n - 1) if kind == "all_reduce" else n - 1
    return steps * (alpha + block / bandwidth)


# After the n - 1 steps that add up, an all_reduce needs one step more, in which everybody hands out the block that is finished.
def ring_seconds__wrong_broadcast(kind, n, volume, alpha, bandwidth):
    steps = n - 1
    if kind == "all_reduce":
        steps += 1
    return steps * (alpha + volume / n / bandwidth)


# A chip on a ring has two neighbours and sends half each way, so W is twice a link's bandwidth (although the ring here is one-way).
def ring_seconds__wrong_both_ways(kind, n, volume, alpha, bandwidth):
    steps = {"all_gather": n - 1, "reduce_scatter": n - 1, "all_reduce": 2 * (n - 1)}[kind]
    return steps * (alpha + volume / n / (2 * bandwidth))


# ---- link_bytes


def link_bytes__right_simulated(volume, n, both_ways):
    """Bytes through a link, in one direction, in an all_to_all on a ring."""
    message = volume / n**2
    load = [0.0] * n  # link k leads from device k to device k + 1
    for sender in range(n):
        for distance in range(1, n):
            if not both_ways or 2 * distance < n:
                share = 1.0
            elif 2 * distance == n:
                share = 0.5
            else:
                share = 0.0  # goes the other way
            for hop in range(distance):
                load[(sender + hop) % n] += share * message
    return max(load)


# A device's V/n bytes are a message (forgets that they are divided once more, among the n receivers).
def link_bytes__wrong_block(volume, n, both_ways):
    message = volume / n
    if both_ways:
        return message * (sum(range(1, n // 2)) + n / 4)
    return message * sum(range(1, n))


# Two directions share the work, so with both ways a link carries half of what it carries one way (forgets that the ways get shorter).
def link_bytes__wrong_half(volume, n, both_ways):
    one_way = volume * (n - 1) / (2 * n)
    return one_way / 2 if both_ways else one_way


# Both ways the farthest device is n/2 away, so the distances are 1 to n/2, each with a whole message.
def link_bytes__wrong_opposite_whole(volume, n, both_ways):
    farthest = n // 2 if both_ways else n - 1
    return sum(range(1, farthest + 1)) * volume / n**2


# What a device sends is what its link carries: n - 1 messages, or half of them each way.
def link_bytes__wrong_sent(volume, n, both_ways):
    sent = (n - 1) * volume / n**2
    return sent / 2 if both_ways else sent
