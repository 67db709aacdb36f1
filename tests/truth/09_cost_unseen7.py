"""Answers to lesson 09, seventh batch, written by a reader of the notebook only."""

import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---- helpers of the notebook

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


def layer_bytes(how, b, d, f, x, y):
    """The answer to an earlier exercise, which layer_seconds may use."""
    if how == "FSDP":
        gathered = (x - 1) / x * 4 * d * f
        return gathered, 2 * gathered
    if how == "data parallel":
        return 0, 2 * (x - 1) / x * 4 * d * f
    sums = 2 * (y - 1) / y * 2 * b * d / x
    if how == "tensor parallel":
        return sums, sums
    gathered = (x - 1) / x * 4 * d * f / y
    return gathered + sums, 2 * gathered + sums


# ---- layer_seconds


def layer_seconds__right_ENTRIES(how, backward, b, d, f, n, flops_per_s, link):
    products = 4 if backward else 2
    arithmetic = products * 2 * (b * d * f) / n / flops_per_s

    if how == "tensor parallel":
        entries = b * d  # the output, or the gradient of x
    elif backward:
        entries = 2 * d * f  # dW_in and dW_out
    else:
        entries = 0
    all_reduce = 2 * (n - 1) * (2 * entries / n)
    return arithmetic, all_reduce / (link + link)


# Thinks that the bandwidth of a link is the bandwidth of a device: forgets the second neighbour.
def layer_seconds__wrong_ONE_LINK(how, backward, b, d, f, n, flops_per_s, link):
    x, y = (n, 1) if how == "data parallel" else (1, n)
    flops = (8 if backward else 4) * b * d * f / n
    return flops / flops_per_s, layer_bytes(how, b, d, f, x, y)[int(backward)] / link


# Thinks that the tokens are divided in tensor parallelism, too: the activations that are summed are B/n tokens.
def layer_seconds__wrong_TOKENS_DIVIDED(how, backward, b, d, f, n, flops_per_s, link):
    c = 8 * b * d * f if backward else 4 * b * d * f
    share = (n - 1) / n
    if how == "data parallel":
        w = 8 * d * f * share if backward else 0
    else:
        w = 4 * (b / n) * d * share
    return c / n / flops_per_s, w / (2 * link)


# Takes the arithmetic of the backward pass to be that of the forward pass: two matrices, two products.
def layer_seconds__wrong_TWO_PRODUCTS(how, backward, b, d, f, n, flops_per_s, link):
    if how == "data parallel":
        forward_bytes, backward_bytes = layer_bytes(how, b, d, f, n, 1)
    else:
        forward_bytes, backward_bytes = layer_bytes(how, b, d, f, 1, n)
    sent = backward_bytes if backward else forward_bytes
    return 2 * (2 * b * d * f) / n / flops_per_s, sent / (2 * link)


# Thinks that "backward" means the whole training step, so adds up the bytes of both passes (and FLOPs likewise).
def layer_seconds__wrong_BOTH_PASSES(how, backward, b, d, f, n, flops_per_s, link):
    mesh_xy = {"data parallel": (n, 1), "tensor parallel": (1, n)}[how]
    fwd, bwd = layer_bytes(how, b, d, f, *mesh_xy)
    if not backward:
        return 4 * b * d * f / n / flops_per_s, fwd / (2 * link)
    return 12 * b * d * f / n / flops_per_s, (fwd + bwd) / (2 * link)


# ---- why_no_speedup

why_no_speedup__right_TABLE = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "stays",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "stays",
}

# Thinks that a larger batch always takes longer, whatever bounds the layer.
why_no_speedup__wrong_BATCH = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "stays",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "doubles",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "stays",
}

# Thinks that what is sent is shared out over the devices, so that twice as many send half as long.
why_no_speedup__wrong_SHARED_OUT = dict(why_no_speedup__right_TABLE) | {
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "halves",
}

# Thinks that 8 × 1 and 4 × 2 take equally long because they send about equally many bytes.
why_no_speedup__wrong_BYTES = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "bytes sent",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "stays",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "stays",
}

# Thinks that a ring of twice as many devices has twice the steps, so that each all_reduce takes twice as long.
why_no_speedup__wrong_LONGER_RING = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "doubles",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "doubles",
}


# ---- comm_report


def comm_report__right_WALK(jaxpr, times=1):
    found = []

    def walk(inner, turns):
        for eqn in inner.eqns:
            kind = NAMES.get(eqn.primitive.name)
            if kind is not None:
                brought = sum(math.prod(v.aval.shape) * v.aval.dtype.itemsize for v in eqn.invars)
                found.append((kind, axes_of(eqn), brought, turns))
            factor = eqn.params["length"] if eqn.primitive.name == "scan" else 1
            for deeper in jaxprs_in(eqn):
                walk(deeper, turns * factor)

    walk(jaxpr, times)
    return found


# Hands the length of the innermost loop on, instead of multiplying it with the turns of the loops around it.
def comm_report__wrong_INNERMOST(jaxpr, times=1):
    report = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in NAMES:
            aval = eqn.invars[0].aval
            report.append((NAMES[eqn.primitive.name], axes_of(eqn), math.prod(aval.shape) * aval.dtype.itemsize, times))
        for inner in jaxprs_in(eqn):
            report += comm_report__wrong_INNERMOST(inner, eqn.params.get("length", times))
    return report


# Counts the bytes of what comes out of a collective in place of what a device brings to it.
def comm_report__wrong_WHAT_COMES_OUT(jaxpr, times=1):
    report = []
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in NAMES:
            out = eqn.outvars[0].aval
            report.append((NAMES[name], axes_of(eqn), out.size * out.dtype.itemsize, times))
            continue
        turns = times * eqn.params["length"] if name == "scan" else times
        for inner in jaxprs_in(eqn):
            report.extend(comm_report__wrong_WHAT_COMES_OUT(inner, turns))
    return report


# Goes down into shard_map and loops only: forgets that a call of a jitted function is an equation with a jaxpr, too.
def comm_report__wrong_NO_CALLS(jaxpr, times=1):
    result = []
    for e in jaxpr.eqns:
        n = e.primitive.name
        if n in NAMES:
            a = e.invars[0].aval
            result.append((NAMES[n], axes_of(e), math.prod(a.shape) * a.dtype.itemsize, times))
        elif n == "shard_map":
            result += comm_report__wrong_NO_CALLS(e.params["jaxpr"], times)
        elif n == "scan":
            for body in jaxprs_in(e):
                result += comm_report__wrong_NO_CALLS(body, times * e.params["length"])
    return result


# First lists the collectives of a level and then goes deeper: everything is there, but not in the program's order.
def comm_report__wrong_LEVEL_BY_LEVEL(jaxpr, times=1):
    here = [
        (
            NAMES[eqn.primitive.name],
            axes_of(eqn),
            math.prod(eqn.invars[0].aval.shape) * eqn.invars[0].aval.dtype.itemsize,
            times,
        )
        for eqn in jaxpr.eqns
        if eqn.primitive.name in NAMES
    ]
    for eqn in jaxpr.eqns:
        length = eqn.params["length"] if eqn.primitive.name == "scan" else 1
        for inner in jaxprs_in(eqn):
            here += comm_report__wrong_LEVEL_BY_LEVEL(inner, times * length)
    return here
