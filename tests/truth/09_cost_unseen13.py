"""Answers to lesson 09, thirteenth batch, written by a reader of the notebook only."""

import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---- given in the notebook, next to comm_report

NAMES = {
    "psum": "all_reduce",
    "psum_invariant": "all_reduce",
    "pmax": "all_reduce",
    "pmin": "all_reduce",
    "all_gather": "all_gather",
    "all_gather_invariant": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "all_to_all": "all_to_all",
    "ppermute": "collective_permute",
}


def axes_of(eqn):
    """The mesh axes of a collective, as a tuple."""
    axes = eqn.params.get("axes", eqn.params.get("axis_name"))
    return (axes,) if isinstance(axes, str) else tuple(axes)


def jaxprs_in(eqn):
    """The jaxprs among the parameters of an equation; those of a `cond` stand in a tuple, one for each branch."""
    values = [v for p in eqn.params.values() for v in (p if isinstance(p, tuple) else (p,))]
    return [v for v in values if hasattr(v, "eqns")]


# ---- best_split


def best_split__right_doubling(b, f, n, mx, my):
    """(x, y) with x * y == n: devices for FSDP and for tensor parallelism."""
    # From x to 2x the weights cost F·x/(n·mx) more and the activations B/(2x·my) less; double while that pays.
    x = 1
    while x < n and 2 * x * x * f * my < b * n * mx:
        x *= 2
    return x, n // x


# FSDP's weights are cut over x, so this student divides them by x (and the activations of tensor parallelism by y).
def best_split__wrong_owncut(b, f, n, mx, my):
    candidates = [2**k for k in range(n.bit_length())]

    def time(x):
        y = n // x
        return f / (x * mx) + b / (y * my)

    x = min(candidates, key=time)
    return x, n // x


# Thought that a collective over two axes of the torus has to be done twice, so that it takes twice as long.
def best_split__wrong_axesslow(b, f, n, mx, my):
    best, split = None, None
    x = 1
    while x <= n:
        y = n // x
        t = mx * f / y + my * b / x
        if best is None or t < best:
            best, split = t, (x, y)
        x *= 2
    return split


# Takes the largest power of two that does not exceed the formula's X, as if one could only ever round down.
def best_split__wrong_floor(b, f, n, mx, my):
    ideal = math.sqrt(b / f * mx / my * n)
    x = 1
    while 2 * x <= min(ideal, n):
        x *= 2
    return x, n // x


# Takes the power of two that has the smallest difference to the formula's X, not the nearest one in doublings.
def best_split__wrong_difference(b, f, n, mx, my):
    ideal = math.sqrt(b / f * mx / my * n)
    x = min((2**k for k in range(n.bit_length())), key=lambda p: abs(p - ideal))
    return x, n // x


# ---- comm_report


def comm_report__right_stack(jaxpr, times=1):
    """(kind, axes, bytes, times) for each collective of a program, in order."""
    report = []
    todo = [(eqn, times) for eqn in reversed(jaxpr.eqns)]  # the next one is the last
    while todo:
        eqn, turns = todo.pop()
        name = eqn.primitive.name
        if name in NAMES:
            brought = sum(math.prod(v.aval.shape) * v.aval.dtype.itemsize for v in eqn.invars)
            report.append((NAMES[name], axes_of(eqn), brought, turns))
            continue
        if name == "scan":
            turns = turns * eqn.params["length"]
        inner = [(e, turns) for body in jaxprs_in(eqn) for e in body.eqns]
        todo.extend(reversed(inner))
    return report


# Measures what a device has after the collective, not what it brings: a gather comes out n times too large.
def comm_report__wrong_outcome(jaxpr, times=1):
    found = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in NAMES:
            aval = eqn.outvars[0].aval
            size = math.prod(aval.shape) * aval.dtype.itemsize
            found.append((NAMES[eqn.primitive.name], axes_of(eqn), size, times))
        turns = times * eqn.params["length"] if eqn.primitive.name == "scan" else times
        for inner in jaxprs_in(eqn):
            found += comm_report__wrong_outcome(inner, turns)
    return found


# Multiplies `times` when it meets a loop, and forgets that what comes after the loop is outside of it again.
def comm_report__wrong_leak(jaxpr, times=1):
    result = []
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name == "scan":
            times *= eqn.params["length"]
        if name in NAMES:
            aval = eqn.invars[0].aval
            result.append((NAMES[name], axes_of(eqn), math.prod(aval.shape) * aval.dtype.itemsize, times))
        for inner in jaxprs_in(eqn):
            result.extend(comm_report__wrong_leak(inner, times))
    return result


# Lists a level's own collectives first and goes into its loops and functions afterwards: not the program's order.
def comm_report__wrong_levels(jaxpr, times=1):
    def nbytes(v):
        return math.prod(v.aval.shape) * v.aval.dtype.itemsize

    here = [
        (NAMES[e.primitive.name], axes_of(e), nbytes(e.invars[0]), times)
        for e in jaxpr.eqns
        if e.primitive.name in NAMES
    ]
    below = []
    for e in jaxpr.eqns:
        for inner in jaxprs_in(e):
            below += comm_report__wrong_levels(inner, times * e.params.get("length", 1))
    return here + below


# Saw that shard_map, jit and scan keep their program under "jaxpr", and thinks that everything does (cond, while).
def comm_report__wrong_onekey(jaxpr, times=1):
    out = []
    for eqn in jaxpr.eqns:
        p = eqn.params
        kind = NAMES.get(eqn.primitive.name)
        if kind is not None:
            aval = eqn.invars[0].aval
            out.append((kind, axes_of(eqn), math.prod(aval.shape) * aval.dtype.itemsize, times))
        elif "jaxpr" in p:
            out += comm_report__wrong_onekey(p["jaxpr"], times * p["length"] if eqn.primitive.name == "scan" else times)
    return out


# ---- ring_seconds


def ring_seconds__right_rounds(kind, n, volume, alpha, bandwidth):
    """Seconds until the last device has what it should have."""
    message = alpha + volume / n / bandwidth
    rounds = 2 if kind == "all_reduce" else 1  # scatter, then gather
    clock = 0.0
    for _ in range(rounds):
        for _ in range(n - 1):
            clock += message
    return clock


# Waits only once, at the beginning: thinks that once the ring flows, the later messages arrive without delay.
def ring_seconds__wrong_onewait(kind, n, volume, alpha, bandwidth):
    blocks = 2 * (n - 1) if kind == "all_reduce" else n - 1
    return alpha + blocks * (volume / n) / bandwidth


# Knows that an all_reduce sends twice the bytes, and puts them into the same n - 1 messages, each twice as large.
def ring_seconds__wrong_doublemessages(kind, n, volume, alpha, bandwidth):
    block = volume / n
    if kind == "all_reduce":
        block = 2 * block
    return (n - 1) * (alpha + block / bandwidth)


# Takes V for what each device brings, so that every message of the ring has V bytes and not V/n.
def ring_seconds__wrong_wholeblock(kind, n, volume, alpha, bandwidth):
    steps = {"all_gather": n - 1, "reduce_scatter": n - 1, "all_reduce": 2 * (n - 1)}[kind]
    return steps * (alpha + volume / bandwidth)


# The device farthest away on a ring is n/2 hops away, so that is how many steps it takes (but the ring is one-way).
def ring_seconds__wrong_halfway(kind, n, volume, alpha, bandwidth):
    steps = n // 2
    if kind == "all_reduce":
        steps *= 2
    return steps * (alpha + volume / n / bandwidth)
