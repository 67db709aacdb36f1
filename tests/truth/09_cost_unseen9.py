"""Answers to lesson 09, ninth batch, written by a reader of the notebook only."""

import math

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- why_no_speedup

_ROWS = [
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)",
]

why_no_speedup__right_zip = dict(zip(_ROWS, ["one machine", "FLOPs", "halves", "stays", "stays", "stays"]))

# Thought: a collective over twice as many devices has twice as many steps in its ring, so whatever is bound by the wire takes twice as long with twice the devices.
why_no_speedup__wrong_ring_steps = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "doubles",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "doubles",
}

# Thought: in tensor parallelism everything on a device is a Y-th, also what it sends, as F is cut into twice as many parts.
why_no_speedup__wrong_parts_of_f = {
    **why_no_speedup__right_zip,
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "halves",
}

# Thought: the times are nearly the same because what bounds them is nearly the same, and since part 5 that is the wire; and the simulated product is too small to be worth dividing.
why_no_speedup__wrong_wire_bound = {
    **why_no_speedup__right_zip,
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "little work",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "bytes sent",
}

# Thought: "per device": in data parallelism twice the devices have half of the tokens each, so half of the gradients; and twice the batch is twice as much of everything.
why_no_speedup__wrong_gradients_of_tokens = {
    **why_no_speedup__right_zip,
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "doubles",
}


# ---- best_split


def best_split__right_meeting(b, f, n, mx, my):
    def doublings_apart(log_x):
        # the two times are F X/(n mx) and B/(X my): how many doublings lie between them
        return abs(math.log2(f / mx) - (math.log2(n) - log_x) - math.log2(b / my) + log_x)

    log_n = n.bit_length() - 1
    best = min(range(log_n + 1), key=doublings_apart)
    return 2**best, 2 ** (log_n - best)


# Thought: X and Y are a pair of factors, so it is enough to try x up to the square root of n, as one does when one looks for divisors.
def best_split__wrong_up_to_the_root(b, f, n, mx, my):
    def seconds(x, y):
        return f / (y * mx) + b / (x * my)

    candidates, x = [], 1
    while x * x <= n:
        candidates.append((x, n // x))
        x *= 2
    return min(candidates, key=lambda pair: seconds(*pair))


# Thought: an axis of one device is no division at all, so both ways have to have at least two devices.
def best_split__wrong_both_used(b, f, n, mx, my):
    best, best_time = None, float("inf")
    for k in range(1, int(math.log2(n))):
        x, y = 2**k, n // 2**k
        time = f / y / mx + b / x / my
        if time < best_time:
            best, best_time = (x, y), time
    return best if best is not None else (n, 1)


# Thought: mx axes are mx times as many hops for the weights, so the time of FSDP grows with mx and that of tensor parallelism with my.
def best_split__wrong_axes_are_hops(b, f, n, mx, my):
    powers = [2**k for k in range(int(math.log2(n)) + 1)]
    times = [mx * 4 * f / (n // x) + my * 4 * b / x for x in powers]
    x = powers[int(np.argmin(times))]
    return x, n // x


# Thought: X must be a power of two and not more than the formula allows, so the root is rounded down to one.
def best_split__wrong_rounded_down(b, f, n, mx, my):
    ideal = math.sqrt(b / f * mx / my * n)
    x = 1
    while 2 * x <= ideal and 2 * x <= n:
        x *= 2
    return x, n // x


# ---- ring_seconds


def ring_seconds__right_two_halves(kind, n, volume, alpha, bandwidth):
    if kind == "all_reduce":
        return sum(
            ring_seconds__right_two_halves(half, n, volume, alpha, bandwidth)
            for half in ("reduce_scatter", "all_gather")
        )
    arrival = 0.0
    for _ in range(n - 1):
        arrival += alpha + (volume / n) / bandwidth
    return arrival


# Thought: V of an all_gather is what a device brings (as comm_report counts), so its blocks are V each, while a reduce_scatter brings the whole array and cuts it.
def ring_seconds__wrong_v_is_brought(kind, n, volume, alpha, bandwidth):
    scatter = (n - 1) * (alpha + volume / n / bandwidth)
    gather = (n - 1) * (alpha + volume / bandwidth)
    return {"reduce_scatter": scatter, "all_gather": gather, "all_reduce": scatter + scatter}[kind]


# Thought: the device sends its messages one behind the other down the same wire, so the first byte is waited for once in each collective and the rest follows at W.
def ring_seconds__wrong_waits_once(kind, n, volume, alpha, bandwidth):
    rounds = 2 if kind == "all_reduce" else 1
    sent = rounds * (n - 1) / n * volume
    return rounds * alpha + sent / bandwidth


# Thought: in a reduce_scatter the result must come home to its own device, which takes one step more than the n - 1 of a gather.
def ring_seconds__wrong_comes_home(kind, n, volume, alpha, bandwidth):
    step = alpha + volume / n / bandwidth
    steps = {"all_gather": n - 1, "reduce_scatter": n, "all_reduce": 2 * n - 1}
    return steps[kind] * step


# Thought: an all_reduce is done when the sum is complete; both directions of the link are there, so the gather half runs the other way round at the same time, and only its waiting is added.
def ring_seconds__wrong_gather_hidden(kind, n, volume, alpha, bandwidth):
    waiting, sending = (n - 1) * alpha, (n - 1) * volume / n / bandwidth
    if kind == "all_reduce":
        return 2 * waiting + sending
    return waiting + sending
