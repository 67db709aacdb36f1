"""Answers to lesson 09, second batch, written by a reader of the notebook only."""

import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
MESH = mesh

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


def crossover_bytes__right_two_lines(n, alpha, bandwidth):
    """Two straight lines in V: where they meet."""
    log = n.bit_length() - 1
    waits_ring, waits_tree = 2 * (n - 1) * alpha, 2 * log * alpha
    slope_ring, slope_tree = 2 * (n - 1) / n / bandwidth, 2 * log / bandwidth
    return (waits_ring - waits_tree) / (slope_tree - slope_ring)


def crossover_bytes__wrong_natural(n, alpha, bandwidth):
    """The natural logarithm for log₂."""
    log = math.log(n)
    return alpha * bandwidth * (n - 1 - log) / (log - (n - 1) / n)


def crossover_bytes__wrong_once(n, alpha, bandwidth):
    """The tree only climbs: log₂ n messages, and not down again."""
    log = math.log2(n)
    return alpha * bandwidth * (2 * (n - 1) - log) / (log - 2 * (n - 1) / n)


def crossover_bytes__wrong_whole(n, alpha, bandwidth):
    """A ring's messages taken for whole arrays over one link: (n-1)/n is left out."""
    log = math.log2(n)
    return alpha * bandwidth * (n - 1 - log) / (log - 1)


def crossover_bytes__wrong_upside_down(n, alpha, bandwidth):
    """Solved for V with the two sides exchanged."""
    log = math.log2(n)
    return alpha * bandwidth * (log - (n - 1) / n) / (n - 1 - log)


def comm_report__right_walk(jaxpr, times=1):
    found = []

    def walk(program, times):
        for eqn in program.eqns:
            name = eqn.primitive.name
            if name in NAMES:
                aval = eqn.invars[0].aval
                found.append((NAMES[name], axes_of(eqn), math.prod(aval.shape) * aval.dtype.itemsize, times))
            turns = eqn.params["length"] if name == "scan" else 1
            for inner in jaxprs_in(eqn):
                walk(inner, times * turns)

    walk(jaxpr, times)
    return found


def comm_report__wrong_no_loops(jaxpr, times=1):
    """Goes into loops, and counts one turn."""
    found = []

    def walk(program):
        for eqn in program.eqns:
            if eqn.primitive.name in NAMES:
                aval = eqn.invars[0].aval
                nbytes = math.prod(aval.shape) * aval.dtype.itemsize
                found.append((NAMES[eqn.primitive.name], axes_of(eqn), nbytes, 1))
            for inner in jaxprs_in(eqn):
                walk(inner)

    walk(jaxpr)
    return found


def comm_report__wrong_innermost(jaxpr, times=1):
    """The turns of the innermost loop only: not multiplied."""
    found = []

    def walk(program, times):
        for eqn in program.eqns:
            if eqn.primitive.name in NAMES:
                aval = eqn.invars[0].aval
                nbytes = math.prod(aval.shape) * aval.dtype.itemsize
                found.append((NAMES[eqn.primitive.name], axes_of(eqn), nbytes, times))
            for inner in jaxprs_in(eqn):
                walk(inner, eqn.params["length"] if eqn.primitive.name == "scan" else times)

    walk(jaxpr, times)
    return found


def comm_report__wrong_what_comes_out(jaxpr, times=1):
    """The bytes of the result, not what a device brings: wrong for gathers and scatters."""
    found = []

    def walk(program, times):
        for eqn in program.eqns:
            name = eqn.primitive.name
            if name in NAMES:
                aval = eqn.outvars[0].aval
                found.append((NAMES[name], axes_of(eqn), math.prod(aval.shape) * aval.dtype.itemsize, times))
            for inner in jaxprs_in(eqn):
                walk(inner, times * (eqn.params["length"] if name == "scan" else 1))

    walk(jaxpr, times)
    return found


def comm_report__wrong_entries(jaxpr, times=1):
    """Entries, not bytes."""
    found = []

    def walk(program, times):
        for eqn in program.eqns:
            name = eqn.primitive.name
            if name in NAMES:
                found.append((NAMES[name], axes_of(eqn), math.prod(eqn.invars[0].aval.shape), times))
            for inner in jaxprs_in(eqn):
                walk(inner, times * (eqn.params["length"] if name == "scan" else 1))

    walk(jaxpr, times)
    return found


def layer_seconds__right_by_pass(how, backward, b, d, f, n, flops_per_s, link):
    products = 4 if backward else 2
    arithmetic = products * 2 * b * d * f / n / flops_per_s
    part = (n - 1) / n
    if how == "tensor parallel":
        sent = 2 * part * (2 * b * d)
    elif backward:
        sent = 2 * (2 * part * (2 * d * f))
    else:
        sent = 0
    return arithmetic, sent / (2 * link)


def layer_seconds__wrong_one_direction(how, backward, b, d, f, n, flops_per_s, link):
    """W is one direction of a link: half of the bandwidth there is."""
    arithmetic = (8 if backward else 4) * b * d * f / n / flops_per_s
    if how == "tensor parallel":
        sent = 4 * b * d * (n - 1) / n
    else:
        sent = 8 * d * f * (n - 1) / n if backward else 0
    return arithmetic, sent / link


def layer_seconds__wrong_backward_as_forward(how, backward, b, d, f, n, flops_per_s, link):
    """The backward pass with the FLOPs of the forward pass."""
    arithmetic = 4 * b * d * f / n / flops_per_s
    if how == "tensor parallel":
        sent = 4 * b * d * (n - 1) / n
    else:
        sent = 8 * d * f * (n - 1) / n if backward else 0
    return arithmetic, sent / (2 * link)


def layer_seconds__wrong_not_divided(how, backward, b, d, f, n, flops_per_s, link):
    """All FLOPs on one device."""
    arithmetic = (8 if backward else 4) * b * d * f / flops_per_s
    if how == "tensor parallel":
        sent = 4 * b * d * (n - 1) / n
    else:
        sent = 8 * d * f * (n - 1) / n if backward else 0
    return arithmetic, sent / (2 * link)


def layer_seconds__wrong_always_gradients(how, backward, b, d, f, n, flops_per_s, link):
    """Data parallelism adds up gradients in the forward pass, too."""
    arithmetic = (8 if backward else 4) * b * d * f / n / flops_per_s
    sent = 4 * b * d if how == "tensor parallel" else 8 * d * f
    return arithmetic, sent * (n - 1) / n / (2 * link)


def memory_per_device__right_listed(how, params, activations, n):
    weights, gradients, optimizer = 2 * params, 2 * params, 12 * params
    if how in ("ZeRO-1", "ZeRO-2", "ZeRO-3", "tensor parallel"):
        optimizer = optimizer / n
    if how in ("ZeRO-2", "ZeRO-3", "tensor parallel"):
        gradients = gradients / n
    if how in ("ZeRO-3", "tensor parallel"):
        weights = weights / n
    if how != "tensor parallel":
        activations = activations / n
    return weights + gradients + optimizer + activations


def memory_per_device__wrong_activations_whole(how, params, activations, n):
    """The whole batch's activations on every device."""
    per_parameter = {
        "data parallel": 16,
        "ZeRO-1": 4 + 12 / n,
        "ZeRO-2": 2 + 14 / n,
        "ZeRO-3": 16 / n,
        "tensor parallel": 16 / n,
    }[how]
    return params * per_parameter + activations


def memory_per_device__wrong_activations_divided(how, params, activations, n):
    """Tensor parallelism divides the activations as well."""
    per_parameter = {
        "data parallel": 16,
        "ZeRO-1": 4 + 12 / n,
        "ZeRO-2": 2 + 14 / n,
        "ZeRO-3": 16 / n,
        "tensor parallel": 16 / n,
    }[how]
    return params * per_parameter + activations / n


def memory_per_device__wrong_one_thing_each(how, params, activations, n):
    """Each ZeRO divides one thing: 1 the optimizer, 2 the gradients, 3 the weights."""
    per_parameter = {
        "data parallel": 16,
        "ZeRO-1": 4 + 12 / n,
        "ZeRO-2": 14 + 2 / n,
        "ZeRO-3": 14 + 2 / n,
        "tensor parallel": 16 / n,
    }[how]
    return params * per_parameter + (activations if how == "tensor parallel" else activations / n)


def memory_per_device__wrong_no_master(how, params, activations, n):
    """Two moments, and no master copy: 8 bytes for 12."""
    per_parameter = {
        "data parallel": 12,
        "ZeRO-1": 4 + 8 / n,
        "ZeRO-2": 2 + 10 / n,
        "ZeRO-3": 12 / n,
        "tensor parallel": 12 / n,
    }[how]
    return params * per_parameter + (activations if how == "tensor parallel" else activations / n)
