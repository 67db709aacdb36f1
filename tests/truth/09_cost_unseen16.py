"""Answers to lesson 09, sixteenth batch, written by a reader of the notebook only."""

import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# From the notebook's cell of comm_report.
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


# ---------------------------------------------------------------- before_you_measure

before_you_measure__right_byhand = {
    "MiB of a float32[8192,8192]": 2**13 * 2**13 * 4 / 2**20,
    "bytes of A on one device": 1024 * (4096 // 4) * 4,
    "FLOPs of one device": 2 * 1024 * 512 * (4096 // 4),
    "bytes sent by one device": 6 * (1024 * 512 * 4 // 4),  # six blocks of a quarter of C
    "bytes that one hop of 1 µs is worth": 45e9 * 1e-6,
}

# The mesh has eight devices, so J is cut in eight and the ring has eight members; y counts as well.
before_you_measure__wrong_eight = {
    "MiB of a float32[8192,8192]": 256,
    "bytes of A on one device": 1024 * 512 * 4,
    "FLOPs of one device": 2 * 1024 * 512 * 512,
    "bytes sent by one device": 2 * 7 / 8 * 1024 * 512 * 4,
    "bytes that one hop of 1 µs is worth": 45_000,
}

# Every device ends with all of C, so it must also have computed all of C: the whole of J goes into the FLOPs.
before_you_measure__wrong_allofc = {
    "MiB of a float32[8192,8192]": 256,
    "bytes of A on one device": 4_194_304,
    "FLOPs of one device": 2 * 1024 * 4096 * 512,
    "bytes sent by one device": 3_145_728,
    "bytes that one hop of 1 µs is worth": 45_000,
}

# An all_reduce goes round the ring once, adding up as it goes: three quarters of C, and everybody has the sum.
before_you_measure__wrong_onceround = {
    "MiB of a float32[8192,8192]": 256,
    "bytes of A on one device": 4_194_304,
    "FLOPs of one device": 1_073_741_824,
    "bytes sent by one device": 3 / 4 * 1024 * 512 * 4,
    "bytes that one hop of 1 µs is worth": 45_000,
}

# Links are sold in gigabits, as Ethernet and InfiniBand are, so the 45 are divided by eight to have bytes.
before_you_measure__wrong_gigabits = {
    "MiB of a float32[8192,8192]": 256,
    "bytes of A on one device": 4_194_304,
    "FLOPs of one device": 1_073_741_824,
    "bytes sent by one device": 3_145_728,
    "bytes that one hop of 1 µs is worth": 45e9 / 8 * 1e-6,
}


# ---------------------------------------------------------------- comm_report


def comm_report__right_stack(jaxpr, times=1):
    """(kind, axes, bytes, times) for each collective of a program, in order."""
    report = []
    todo = [(eqn, times) for eqn in reversed(jaxpr.eqns)]
    while todo:
        eqn, turns = todo.pop()
        name = eqn.primitive.name
        if name in NAMES:
            aval = eqn.invars[0].aval
            report.append((NAMES[name], axes_of(eqn), aval.size * aval.dtype.itemsize, turns))
            continue
        if name == "scan":
            turns = turns * eqn.params["length"]
        for inner in reversed(jaxprs_in(eqn)):
            todo.extend((e, turns) for e in reversed(inner.eqns))
    return report


# The bytes of a collective are those of the array that it makes: what arrives is what was sent.
def comm_report__wrong_outvars(jaxpr, times=1):
    report = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in NAMES:
            aval = eqn.outvars[0].aval
            report.append((NAMES[eqn.primitive.name], axes_of(eqn), math.prod(aval.shape) * aval.dtype.itemsize, times))
        turns = times * eqn.params["length"] if eqn.primitive.name == "scan" else times
        for inner in jaxprs_in(eqn):
            report += comm_report__wrong_outvars(inner, turns)
    return report


# On meeting a loop, multiply `times` by its length (and it stays multiplied for all that follows the loop).
def comm_report__wrong_leak(jaxpr, times=1):
    report = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in NAMES:
            aval = eqn.invars[0].aval
            report.append((NAMES[eqn.primitive.name], axes_of(eqn), math.prod(aval.shape) * aval.dtype.itemsize, times))
        if eqn.primitive.name == "scan":
            times *= eqn.params["length"]
        for inner in jaxprs_in(eqn):
            report += comm_report__wrong_leak(inner, times)
    return report


# An inner program always stands in the parameter `jaxpr`, as in shard_map, scan and jit: look there, no helper needed.
def comm_report__wrong_jaxprkey(jaxpr, times=1):
    report = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in NAMES:
            aval = eqn.invars[0].aval
            report.append((NAMES[eqn.primitive.name], axes_of(eqn), math.prod(aval.shape) * aval.dtype.itemsize, times))
        elif "jaxpr" in eqn.params:
            report += comm_report__wrong_jaxprkey(eqn.params["jaxpr"], times * eqn.params.get("length", 1))
    return report


# `bytes` is what the device brings to it in the whole run, so the turns of the loops belong into the bytes as well.
def comm_report__wrong_total(jaxpr, times=1):
    report = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in NAMES:
            aval = eqn.invars[0].aval
            size = math.prod(aval.shape) * aval.dtype.itemsize
            report.append((NAMES[eqn.primitive.name], axes_of(eqn), size * times, times))
        turns = times * eqn.params["length"] if eqn.primitive.name == "scan" else times
        for inner in jaxprs_in(eqn):
            report.extend(comm_report__wrong_total(inner, turns))
    return report


# ---------------------------------------------------------------- largest_model

largest_model__right_copies = {
    # all eight devices together have 128 GB; what is copied counts eight times, what is divided once
    "data parallel": 128 / (8 * 16),
    "ZeRO-1": 128 / (8 * 4 + 12),
    "ZeRO-2": 128 / (8 * 2 + 14),
    "ZeRO-3": 128 / 16,
}

# The master copy is a weight, so only ZeRO-3 divides it; "the optimizer" is the two moments, eight bytes.
largest_model__wrong_moments = {
    "data parallel": 1,
    "ZeRO-1": 16 / (2 + 2 + 4 + 8 / 8),
    "ZeRO-2": 16 / (2 + 4 + (8 + 2) / 8),
    "ZeRO-3": 8,
}

# The stages begin with the gradients, then take the weights, and the optimizer last.
largest_model__wrong_order = {
    "data parallel": 1,
    "ZeRO-1": 16 / (2 + 12 + 2 / 8),
    "ZeRO-2": 16 / (12 + 4 / 8),
    "ZeRO-3": 8,
}

# The weights are gathered before they are used, so under ZeRO-3 the two bytes of a weight are there whole after all.
largest_model__wrong_gathered = {
    "data parallel": 1,
    "ZeRO-1": 16 / (4 + 12 / 8),
    "ZeRO-2": 16 / (2 + 14 / 8),
    "ZeRO-3": 16 / (2 + 14 / 8),
}

# From 1 to 8 in proportion to the part that is divided: 12/16 of the way, then 14/16, then all of it.
largest_model__wrong_proportion = {
    "data parallel": 1,
    "ZeRO-1": 1 + 7 * 12 / 16,
    "ZeRO-2": 1 + 7 * 14 / 16,
    "ZeRO-3": 8,
}
