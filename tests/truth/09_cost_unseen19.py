"""Answers to lesson 09, nineteenth batch, written by a reader of the notebook only."""

import math

import jax
import jax.numpy as jnp
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# Helpers of the notebook's cells

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


# ---------------------------------------------------------------- comm_report


def comm_report__right_stack(jaxpr, times=1):
    """(kind, axes, bytes, times) for each collective of a program, in order: no recursion, a stack of half-read programs."""
    report = []
    half_read = [(iter(jaxpr.eqns), times)]
    while half_read:
        equations, turns = half_read[-1]
        eqn = next(equations, None)
        if eqn is None:
            half_read.pop()
            continue
        kind = NAMES.get(eqn.primitive.name)
        if kind is not None:
            brought = eqn.invars[0].aval
            report.append((kind, axes_of(eqn), math.prod(brought.shape) * brought.dtype.itemsize, turns))
        within = turns * eqn.params["length"] if eqn.primitive.name == "scan" else turns
        for inner in reversed(jaxprs_in(eqn)):
            half_read.append((iter(inner.eqns), within))
    return report


# This student thought that the bytes of a collective are those of the array that comes out of it.
def comm_report__wrong_result(jaxpr, times=1):
    def size_in_bytes(variable):
        return math.prod(variable.aval.shape) * variable.aval.dtype.itemsize

    report = []
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in NAMES:
            report.append((NAMES[name], axes_of(eqn), size_in_bytes(eqn.outvars[0]), times))
        turns = eqn.params["length"] if name == "scan" else 1
        for inner in jaxprs_in(eqn):
            report.extend(comm_report__wrong_result(inner, times * turns))
    return report


# This student thought that `times` may be multiplied in place on the way into a loop, and forgot that what stands after the loop is read with it, too.
def comm_report__wrong_leak(jaxpr, times=1):
    report = []
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in NAMES:
            aval = eqn.invars[0].aval
            report.append((NAMES[name], axes_of(eqn), math.prod(aval.shape) * aval.dtype.itemsize, times))
            continue
        if name == "scan":
            times *= eqn.params["length"]
        for inner in jaxprs_in(eqn):
            report += comm_report__wrong_leak(inner, times)
    return report


# This student thought that only shard_map, loops and jitted functions hold a jaxpr, and wrote their names down (a custom_jvp's is passed over).
def comm_report__wrong_listed(jaxpr, times=1):
    opens = {"shard_map", "scan", "while", "jit", "pjit"}
    report = []
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in NAMES:
            aval = eqn.invars[0].aval
            report.append((NAMES[name], axes_of(eqn), math.prod(aval.shape) * aval.dtype.itemsize, times))
        elif name in opens:
            turns = eqn.params["length"] if name == "scan" else 1
            for inner in jaxprs_in(eqn):
                report += comm_report__wrong_listed(inner, times * turns)
    return report


# This student thought that a queue of programs still to read keeps the order of the program; it reads level by level, so that what stands inside of a loop comes after what follows the loop.
def comm_report__wrong_levels(jaxpr, times=1):
    report, queue = [], [(jaxpr, times)]
    while queue:
        program, turns = queue.pop(0)
        for eqn in program.eqns:
            name = eqn.primitive.name
            if name in NAMES:
                aval = eqn.invars[0].aval
                report.append((NAMES[name], axes_of(eqn), math.prod(aval.shape) * aval.dtype.itemsize, turns))
            more = eqn.params["length"] if name == "scan" else 1
            queue += [(inner, turns * more) for inner in jaxprs_in(eqn)]
    return report


# ---------------------------------------------------------------- collective_bytes


def collective_bytes__right_messages(kind, shape, dtype, n):
    """How many messages a device sends, and into how many pieces the whole array is cut for one of them."""
    once_round = n - 1
    messages, pieces = {
        "all_gather": (once_round, n),
        "reduce_scatter": (once_round, n),
        "all_reduce": (once_round + once_round, n),
        "all_to_all": (once_round, n * n),
        "collective_permute": (1, n),
    }[kind]
    volume = jnp.dtype(dtype).itemsize
    for length in shape:
        volume *= length
    return messages * volume / pieces


# This student thought that in an all_to_all a device sends its block, V/n, to each of the others, and not an n-th of the block.
def collective_bytes__wrong_same_block(kind, shape, dtype, n):
    volume = math.prod(shape) * jnp.dtype(dtype).itemsize
    steps = {
        "all_gather": n - 1,
        "reduce_scatter": n - 1,
        "all_reduce": 2 * (n - 1),
        "all_to_all": n - 1,
        "collective_permute": 1,
    }
    return steps[kind] * volume / n


# This student thought that `shape` is what a device holds before: right for what is added up, but a gather, a permute and an all_to_all then have n times the bytes.
def collective_bytes__wrong_held(kind, shape, dtype, n):
    held = math.prod(shape) * jnp.dtype(dtype).itemsize
    if kind in ("reduce_scatter", "all_reduce"):
        one_way = (n - 1) * held / n
        return one_way if kind == "reduce_scatter" else 2 * one_way
    if kind == "all_gather":
        return (n - 1) * held
    if kind == "all_to_all":
        return (n - 1) * held / n
    return held


# This student thought of a device's two neighbours: half of a ring's bytes go each way, so only half are counted (a permute has one way only).
def collective_bytes__wrong_both_ways(kind, shape, dtype, n):
    volume = math.prod(shape) * jnp.dtype(dtype).itemsize
    gather = (n - 1) / n * volume
    total = {
        "all_gather": gather,
        "reduce_scatter": gather,
        "all_reduce": 2 * gather,
        "all_to_all": gather / n,
        "collective_permute": volume / n,
    }[kind]
    return total if kind == "collective_permute" else total / 2


# This student thought that an all_reduce is a reduce_scatter and then an all_gather of what that leaves, and took the share V/n for the gather's whole array.
def collective_bytes__wrong_gather_of_share(kind, shape, dtype, n):
    def on_ring(volume):
        return (n - 1) * volume / n

    volume = math.prod(shape) * jnp.dtype(dtype).itemsize
    if kind == "all_reduce":
        share = volume / n
        return on_ring(volume) + on_ring(share)
    if kind == "all_to_all":
        return on_ring(volume) / n
    if kind == "collective_permute":
        return volume / n
    return on_ring(volume)


# ---------------------------------------------------------------- why_no_speedup


def becomes(before, after):
    """What becomes of a time, in one of three words."""
    return {0.5: "halves", 1.0: "stays", 2.0: "doubles"}[after / before]


def arithmetic_of(b, n):
    return b / n


def wire_data_parallel(b, n):
    return 8.0  # times DF: gradients of weights


def wire_tensor_parallel(b, n):
    return 4.0 * b  # times D: activations of all tokens


why_no_speedup__right_ratios = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": becomes(
        arithmetic_of(64, 8), arithmetic_of(64, 16)
    ),
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": becomes(
        wire_data_parallel(64, 8), wire_data_parallel(64, 16)
    ),
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": becomes(
        wire_data_parallel(64, 8), wire_data_parallel(128, 8)
    ),
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": becomes(
        wire_tensor_parallel(64, 8), wire_tensor_parallel(64, 16)
    ),
}

# This student thought that tensor parallelism, which divides F, also divides what is sent.
why_no_speedup__wrong_divided_sums = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "stays",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "halves",
}

# This student thought that an all_reduce over twice as many devices takes twice as many steps, each as long as before.
why_no_speedup__wrong_more_steps = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "doubles",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "doubles",
}

# This student thought that in data parallelism something travels for every token: twice the batch sends twice, and a device with half the tokens sends half.
why_no_speedup__wrong_tokens_travel = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "doubles",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "stays",
}

# This student thought that where devices gain nothing on each other, or hardly anything, it must be the wire.
why_no_speedup__wrong_the_wire = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "slow links",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "bytes sent",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "stays",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "stays",
}
