"""Answers to lesson 09, sixth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- link_bytes


# Right: all messages of one device, hop by hop; both ways the shorter way, and half of the hops go in either direction.
def link_bytes__right_hops(volume, n, both_ways):
    message = volume / n**2
    hops = 0
    for distance in range(1, n):
        if both_ways:
            hops += min(distance, n - distance) / 2
        else:
            hops += distance
    return hops * message


# This student takes a device's block, V/n, for a message: forgets that each of the n receivers gets an n-th of it.
def link_bytes__wrong_block(volume, n, both_ways):
    block = volume / n
    if both_ways:
        return block * (sum(range(1, n // 2)) + n / 4)
    return block * sum(range(1, n))


# This student thinks: with two directions the same load is shared by two, so it is simply half of the one-way number.
def link_bytes__wrong_halved(volume, n, both_ways):
    one_way = (n - 1) / (2 * n) * volume
    return one_way / 2 if both_ways else one_way


# This student takes the shorter way round, but adds up what crosses the link in both of its directions.
def link_bytes__wrong_two_directions(volume, n, both_ways):
    total = 0
    for k in range(1, n):
        d = min(k, n - k) if both_ways else k
        total += d * volume / n / n
    return total


# This student lets the message to the device opposite go one way as a whole (distances 1 … n/2, all in full).
def link_bytes__wrong_opposite(volume, n, both_ways):
    farthest = n // 2 if both_ways else n - 1
    return volume * farthest * (farthest + 1) / 2 / n**2


# -------------------------------------------------------------- ring_seconds


# Right: one step after the other.
def ring_seconds__right_steps(kind, n, volume, alpha, bandwidth):
    seconds = 0.0
    rounds = 2 if kind == "all_reduce" else 1  # scatter the sums, and then gather them
    for _ in range(rounds):
        for _ in range(n - 1):
            seconds += alpha + volume / n / bandwidth
    return seconds


# This student pays alpha only once, for the first message: "then the ring is filled and flows".
def ring_seconds__wrong_one_wait(kind, n, volume, alpha, bandwidth):
    share = (n - 1) / n * (2 if kind == "all_reduce" else 1)
    return alpha + share * volume / bandwidth


# This student lets a block go all the way round to its owner: n steps instead of n - 1.
def ring_seconds__wrong_n_steps(kind, n, volume, alpha, bandwidth):
    steps = {"all_gather": n, "reduce_scatter": n, "all_reduce": 2 * n}[kind]
    return steps * (alpha + volume / n / bandwidth)


# This student knows that an all_reduce costs twice as much, and doubles the bytes but not the number of messages.
def ring_seconds__wrong_double_bytes(kind, n, volume, alpha, bandwidth):
    block = volume / n
    if kind == "all_reduce":
        block = 2 * block
    return (n - 1) * (alpha + block / bandwidth)


# This student sends the whole array in each step, as the tree does.
def ring_seconds__wrong_whole(kind, n, volume, alpha, bandwidth):
    return (n - 1) * (1 + (kind == "all_reduce")) * (alpha + volume / bandwidth)


# ------------------------------------------------------------- largest_model

# Right: 16 GB through the bytes of a parameter on a device.
largest_model__right_quotients = {
    "data parallel": 16 / (2 + 2 + 12),
    "ZeRO-1": 16 / (2 + 2 + 12 / 8),
    "ZeRO-2": 16 / (2 + (2 + 12) / 8),
    "ZeRO-3": 8 * 16 / (2 + 2 + 12),
}

# This student thinks that stage 2 divides the gradients *instead of* the optimizer, and stage 3 the weights instead.
largest_model__wrong_one_each = {
    "data parallel": 1.0,
    "ZeRO-1": 2.91,
    "ZeRO-2": 16 / (2 + 2 / 8 + 12),
    "ZeRO-3": 16 / (2 / 8 + 2 + 12),
}

# This student subtracts an eighth of the divided bytes, in place of keeping an eighth.
largest_model__wrong_saves_an_eighth = {
    "data parallel": 1,
    "ZeRO-1": 16 / (16 - 12 / 8),
    "ZeRO-2": 16 / (16 - 14 / 8),
    "ZeRO-3": 16 / (16 - 16 / 8),
}

# This student counts the master copy among the weights, which ZeRO-1 and 2 do not divide: only 8 bytes of moments are divided.
largest_model__wrong_master_copy = {
    "data parallel": 1,
    "ZeRO-1": round(16 / (2 + 2 + 4 + 8 / 8), 3),
    "ZeRO-2": round(16 / (2 + 4 + (2 + 8) / 8), 3),
    "ZeRO-3": 8,
}

# This student thinks: under ZeRO-3 the weights have to be gathered for use, so all of them are on each device after all.
largest_model__wrong_gathered = {"data parallel": 1, "ZeRO-1": 2.909, "ZeRO-2": 4.267, "ZeRO-3": 4.267}
