"""Answers to lesson 09, written by a reader of the notebook only."""

import math

import jax.numpy as jnp

before_you_measure__right_estimated = {
    "MiB of a float32[8192,8192]": 256,
    "bytes of A on one device": 4_194_304,
    "FLOPs of one device": 1_073_741_824,
    "bytes sent by one device": 3_145_728,
    "bytes that one hop of 1 µs is worth": 45_000,
}
# 8192 by 8192 entries, in millions
before_you_measure__wrong_entries = before_you_measure__right_estimated | {"MiB of a float32[8192,8192]": 64}
# all of A
before_you_measure__wrong_whole = before_you_measure__right_estimated | {"bytes of A on one device": 16_777_216}
# over eight devices
before_you_measure__wrong_eight = before_you_measure__right_estimated | {"bytes of A on one device": 2_097_152}
# one FLOP for a pair
before_you_measure__wrong_one = before_you_measure__right_estimated | {"FLOPs of one device": 536_870_912}
# all the FLOPs
before_you_measure__wrong_all = before_you_measure__right_estimated | {"FLOPs of one device": 4_294_967_296}
# n = 8, which is within the 20 % that the text allows
before_you_measure__right_n = before_you_measure__right_estimated | {"bytes sent by one device": 3_670_016}
# C once
before_you_measure__wrong_c = before_you_measure__right_estimated | {"bytes sent by one device": 2_097_152}
# a reduce_scatter
before_you_measure__wrong_scatter = before_you_measure__right_estimated | {"bytes sent by one device": 1_572_864}
# milliseconds
before_you_measure__wrong_ms = before_you_measure__right_estimated | {"bytes that one hop of 1 µs is worth": 45_000_000}


def collective_bytes__right_dict(kind, shape, dtype, n):
    """The hints' way."""
    volume = math.prod(shape) * jnp.dtype(dtype).itemsize
    part = {
        "all_gather": (n - 1) / n,
        "reduce_scatter": (n - 1) / n,
        "all_reduce": 2 * (n - 1) / n,
        "all_to_all": (n - 1) / n**2,
        "collective_permute": 1 / n,
    }
    return volume * part[kind]


def collective_bytes__right_ints(kind, shape, dtype, n):
    """Whole numbers, by ifs."""
    block = math.prod(shape) * jnp.dtype(dtype).itemsize // n
    if kind == "collective_permute":
        return block
    if kind == "all_to_all":
        return (n - 1) * block // n
    return (n - 1) * block * (2 if kind == "all_reduce" else 1)


def _bytes(kind, shape, dtype, n, size=None, **other):
    volume = math.prod(shape) * (jnp.dtype(dtype).itemsize if size is None else size)
    f = (n - 1) / n
    part = {"all_gather": f, "reduce_scatter": f, "all_reduce": 2 * f, "all_to_all": f / n, "collective_permute": 1 / n}
    return volume * (part | other)[kind]


def collective_bytes__wrong_exchange(kind, shape, dtype, n):
    """An all_to_all as dear as a gather."""
    return _bytes(kind, shape, dtype, n, all_to_all=(n - 1) / n)


def collective_bytes__wrong_reduce(kind, shape, dtype, n):
    """An all_reduce once round."""
    return _bytes(kind, shape, dtype, n, all_reduce=(n - 1) / n)


def collective_bytes__wrong_permute(kind, shape, dtype, n):
    """A permute sends the whole."""
    return _bytes(kind, shape, dtype, n, collective_permute=1)


def collective_bytes__wrong_four(kind, shape, dtype, n):
    """Four bytes, always."""
    return _bytes(kind, shape, dtype, n, size=4)


def collective_bytes__wrong_entries(kind, shape, dtype, n):
    """Entries."""
    return _bytes(kind, shape, dtype, n, size=1)


def collective_bytes__wrong_blocks(kind, shape, dtype, n):
    """n blocks, not n − 1."""
    return _bytes(kind, shape, dtype, n, all_gather=1, reduce_scatter=1, all_reduce=2)


def collective_bytes__wrong_local(kind, shape, dtype, n):
    """Takes the shape for that of a block."""
    return n * _bytes(kind, shape, dtype, n)


def collective_bytes__wrong_together(kind, shape, dtype, n):
    """All devices together, for the gather."""
    return _bytes(kind, shape, dtype, n, all_gather=n - 1)


def link_bytes__right_sum(volume, n, both_ways):
    """Adds distances up."""
    message = volume / n**2
    if not both_ways:
        return message * sum(range(1, n))
    return message * (sum(range(1, n // 2)) + n / 4)


def link_bytes__right_closed(volume, n, both_ways):
    """Closed forms."""
    return volume / 8 if both_ways else volume * (n - 1) / (2 * n)


def link_bytes__wrong_full(volume, n, both_ways):
    """The opposite one in full."""
    message = volume / n**2
    return message * (sum(range(1, n // 2 + 1)) if both_ways else sum(range(1, n)))


def link_bytes__wrong_missing(volume, n, both_ways):
    """The opposite one forgotten."""
    message = volume / n**2
    return message * (sum(range(1, n // 2)) if both_ways else sum(range(1, n)))


def link_bytes__wrong_half(volume, n, both_ways):
    """Both ways is half of one way."""
    one = volume * (n - 1) / (2 * n)
    return one / 2 if both_ways else one


def link_bytes__wrong_sent(volume, n, both_ways):
    """What a device sends, not what a link carries."""
    return volume * (n - 1) / n**2


def link_bytes__wrong_message(volume, n, both_ways):
    """A message is V/n."""
    one = volume / n
    return one * (sum(range(1, n // 2)) + n / 4) if both_ways else one * sum(range(1, n))


def link_bytes__wrong_range(volume, n, both_ways):
    """Distances up to n."""
    message = volume / n**2
    return message * (sum(range(1, n // 2)) + n / 4) if both_ways else message * sum(range(1, n + 1))


def link_bytes__wrong_both_directions(volume, n, both_ways):
    """Adds both directions."""
    return volume / 4 if both_ways else volume * (n - 1) / (2 * n)


def ring_seconds__right_steps(kind, n, volume, alpha, bandwidth):
    """The plain way."""
    steps = (2 if kind == "all_reduce" else 1) * (n - 1)
    return steps * (alpha + volume / n / bandwidth)


def ring_seconds__right_two(kind, n, volume, alpha, bandwidth):
    """An all_reduce is the other two."""
    if kind == "all_reduce":
        return sum(ring_seconds__right_steps(k, n, volume, alpha, bandwidth) for k in ("reduce_scatter", "all_gather"))
    return (n - 1) * alpha + (n - 1) / n * volume / bandwidth


def ring_seconds__wrong_one_alpha(kind, n, volume, alpha, bandwidth):
    """One alpha in all."""
    steps = (2 if kind == "all_reduce" else 1) * (n - 1)
    return alpha + steps * volume / n / bandwidth


def ring_seconds__wrong_whole(kind, n, volume, alpha, bandwidth):
    """The whole array in each step."""
    steps = (2 if kind == "all_reduce" else 1) * (n - 1)
    return steps * (alpha + volume / bandwidth)


def ring_seconds__wrong_n(kind, n, volume, alpha, bandwidth):
    """n steps."""
    return (2 if kind == "all_reduce" else 1) * n * (alpha + volume / n / bandwidth)


def ring_seconds__wrong_no_two(kind, n, volume, alpha, bandwidth):
    """An all_reduce once round."""
    return (n - 1) * (alpha + volume / n / bandwidth)


def ring_seconds__wrong_times(kind, n, volume, alpha, bandwidth):
    """Multiplies by the bandwidth."""
    steps = (2 if kind == "all_reduce" else 1) * (n - 1)
    return steps * (alpha + volume / n * bandwidth)


def ring_seconds__wrong_no_alpha(kind, n, volume, alpha, bandwidth):
    """Forgot alpha."""
    return (2 if kind == "all_reduce" else 1) * (n - 1) * volume / n / bandwidth


def ring_seconds__wrong_both_ways(kind, n, volume, alpha, bandwidth):
    """Both directions."""
    steps = (2 if kind == "all_reduce" else 1) * (n - 1)
    return steps * (alpha + volume / n / (2 * bandwidth))


def crossover_bytes__right_solved(n, alpha, bandwidth):
    """Solved."""
    log = math.log2(n)
    return alpha * bandwidth * (n - 1 - log) / (log - (n - 1) / n)


def crossover_bytes__right_factors(n, alpha, bandwidth):
    """With all factors."""
    ring_alpha, ring_v = 2 * (n - 1), 2 * (n - 1) / n
    tree = 2 * (n.bit_length() - 1)
    return (ring_alpha - tree) * alpha / ((tree - ring_v) / bandwidth)


def crossover_bytes__wrong_ln(n, alpha, bandwidth):
    """The natural logarithm."""
    log = math.log(n)
    return alpha * bandwidth * (n - 1 - log) / (log - (n - 1) / n)


def crossover_bytes__wrong_sign(n, alpha, bandwidth):
    """A sign wrong."""
    log = math.log2(n)
    return alpha * bandwidth * (n - 1 - log) / (log + (n - 1) / n)


def crossover_bytes__wrong_block(n, alpha, bandwidth):
    """alpha times bandwidth."""
    return alpha * bandwidth


def crossover_bytes__wrong_inverse(n, alpha, bandwidth):
    """The fraction upside down."""
    log = math.log2(n)
    return alpha * bandwidth * (log - (n - 1) / n) / (n - 1 - log)


def crossover_bytes__wrong_no_down(n, alpha, bandwidth):
    """A tree that does not come down again."""
    log = math.log2(n)
    return alpha * bandwidth * (2 * (n - 1) - log) / (log - 2 * (n - 1) / n)


def crossover_bytes__wrong_divided(n, alpha, bandwidth):
    """Divides by the bandwidth."""
    log = math.log2(n)
    return alpha / bandwidth * (n - 1 - log) / (log - (n - 1) / n)


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
    axes = eqn.params.get("axes", eqn.params.get("axis_name"))
    return (axes,) if isinstance(axes, str) else tuple(axes)


def _size(eqn):
    aval = eqn.invars[0].aval
    return math.prod(aval.shape) * aval.dtype.itemsize


def comm_report__right_recursive(jaxpr, times=1):
    """The hints' way."""
    report = []
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in NAMES:
            report.append((NAMES[name], axes_of(eqn), _size(eqn), times))
        turns = times * eqn.params["length"] if name == "scan" else times
        for inner in (p for p in eqn.params.values() if hasattr(p, "eqns")):
            report += comm_report__right_recursive(inner, turns)
    return report


def comm_report__right_generator(jaxpr, times=1):
    """A generator inside."""

    def walk(jaxpr, times):
        for eqn in jaxpr.eqns:
            kind = NAMES.get(eqn.primitive.name)
            if kind:
                yield kind, axes_of(eqn), _size(eqn), times
            for value in eqn.params.values():
                if hasattr(value, "eqns"):
                    yield from walk(value, times * eqn.params.get("length", 1))

    return list(walk(jaxpr, times))


def comm_report__wrong_flat(jaxpr, times=1):
    """Does not go down."""
    return [(NAMES[e.primitive.name], axes_of(e), _size(e), times) for e in jaxpr.eqns if e.primitive.name in NAMES]


def comm_report__wrong_no_times(jaxpr, times=1):
    """Loops count once."""
    report = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in NAMES:
            report.append((NAMES[eqn.primitive.name], axes_of(eqn), _size(eqn), times))
        for inner in (p for p in eqn.params.values() if hasattr(p, "eqns")):
            report += comm_report__wrong_no_times(inner)
    return report


def comm_report__wrong_not_multiplied(jaxpr, times=1):
    """The innermost loop only."""
    report = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in NAMES:
            report.append((NAMES[eqn.primitive.name], axes_of(eqn), _size(eqn), times))
        for inner in (p for p in eqn.params.values() if hasattr(p, "eqns")):
            report += comm_report__wrong_not_multiplied(inner, eqn.params.get("length", times))
    return report


def comm_report__wrong_entries(jaxpr, times=1):
    """Entries for bytes."""
    return [(kind, axes, size // 4, turns) for kind, axes, size, turns in comm_report__right_recursive(jaxpr, times)]


def comm_report__wrong_output(jaxpr, times=1):
    """The bytes of what comes out."""
    report = []
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in NAMES:
            aval = eqn.outvars[0].aval
            report.append((NAMES[name], axes_of(eqn), math.prod(aval.shape) * aval.dtype.itemsize, times))
        turns = times * eqn.params["length"] if name == "scan" else times
        for inner in (p for p in eqn.params.values() if hasattr(p, "eqns")):
            report += comm_report__wrong_output(inner, turns)
    return report


def comm_report__wrong_names(jaxpr, times=1):
    """JAX's names."""
    back = {"all_reduce": "psum", "collective_permute": "ppermute"}
    return [(back.get(r[0], r[0]), *r[1:]) for r in comm_report__right_recursive(jaxpr, times)]


def comm_report__wrong_axis(jaxpr, times=1):
    """An axis as a text."""
    return [(kind, axes[0], size, turns) for kind, axes, size, turns in comm_report__right_recursive(jaxpr, times)]


def comm_report__wrong_scan_only(jaxpr, times=1):
    """Goes into scans and shard_maps, not into jitted functions."""
    report = []
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in NAMES:
            report.append((NAMES[name], axes_of(eqn), _size(eqn), times))
        if name in ("scan", "shard_map"):
            inner = eqn.params["jaxpr"]
            report += comm_report__wrong_scan_only(getattr(inner, "jaxpr", inner), times * eqn.params.get("length", 1))
    return report


def comm_report__wrong_dropped(jaxpr, times=1):
    """Calls itself and drops the result."""
    report = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in NAMES:
            report.append((NAMES[eqn.primitive.name], axes_of(eqn), _size(eqn), times))
        for inner in (p for p in eqn.params.values() if hasattr(p, "eqns")):
            comm_report__wrong_dropped(inner, times * eqn.params.get("length", 1))
    return report


def comm_report__wrong_sorted(jaxpr, times=1):
    """Sorted, not in the order of the program."""
    return sorted(comm_report__right_recursive(jaxpr, times))


def layer_bytes__right_formulas(how, b, d, f, x, y):
    """The hints' way."""
    fx, fy = (x - 1) / x, (y - 1) / y
    weights, activations = 4 * d * f / y, 2 * b * d / x
    sums = 2 * fy * activations
    if "FSDP" in how:
        return weights * fx + sums, 2 * weights * fx + sums
    return sums, 2 * weights * fx + sums


def layer_bytes__right_four(how, b, d, f, x, y):
    """Way by way."""
    gx, gy = (x - 1) / x, (y - 1) / y
    if how == "data parallel":
        return 0, 2 * gx * 4 * d * f
    if how == "FSDP":
        return gx * 4 * d * f, 2 * gx * 4 * d * f
    if how == "tensor parallel":
        return 2 * gy * 2 * b * d, 2 * gy * 2 * b * d
    forward = gx * 4 * d * f / y + 2 * gy * 2 * b * d / x
    return forward, forward + gx * 4 * d * f / y


def layer_bytes__wrong_regather(how, b, d, f, x, y):
    """FSDP does not gather again."""
    forward, backward = layer_bytes__right_formulas(how, b, d, f, x, y)
    return forward, backward - (4 * d * f / y * (x - 1) / x if "FSDP" in how else 0)


def layer_bytes__wrong_float32(how, b, d, f, x, y):
    """Four bytes."""
    return tuple(2 * v for v in layer_bytes__right_formulas(how, b, d, f, x, y))


def layer_bytes__wrong_limit(how, b, d, f, x, y):
    """(n − 1)/n taken for 1."""
    weights, sums = (4 * d * f / y if x > 1 else 0), (4 * b * d / x if y > 1 else 0)
    return (weights if "FSDP" in how else 0) + sums, 2 * weights + sums


def layer_bytes__wrong_one_matrix(how, b, d, f, x, y):
    """One matrix."""
    fx, fy = (x - 1) / x, (y - 1) / y
    weights, sums = 2 * d * f / y, 4 * fy * b * d / x
    return (weights * fx if "FSDP" in how else 0) + sums, 2 * weights * fx + sums


def layer_bytes__wrong_reduce_once(how, b, d, f, x, y):
    """An all_reduce of activations once round."""
    fx, fy = (x - 1) / x, (y - 1) / y
    weights, sums = 4 * d * f / y, 2 * fy * b * d / x
    return (weights * fx if "FSDP" in how else 0) + sums, 2 * weights * fx + sums


def layer_bytes__wrong_not_divided(how, b, d, f, x, y):
    """Forgets that y divides weights and x tokens."""
    fx, fy = (x - 1) / x, (y - 1) / y
    weights, sums = 4 * d * f, 4 * fy * b * d
    return (weights * fx if "FSDP" in how else 0) + sums, 2 * weights * fx + sums


def layer_bytes__wrong_swapped(how, b, d, f, x, y):
    """Backward, forward."""
    return layer_bytes__right_formulas(how, b, d, f, x, y)[::-1]


def layer_bytes__wrong_hidden(how, b, d, f, x, y):
    """Hidden activations travel."""
    fx, fy = (x - 1) / x, (y - 1) / y
    weights, sums = 4 * d * f / y, 4 * fy * b * f / x
    return (weights * fx if "FSDP" in how else 0) + sums, 2 * weights * fx + sums


def layer_bytes__wrong_no_backward_tensor(how, b, d, f, x, y):
    """Backward no activations travel."""
    forward, backward = layer_bytes__right_formulas(how, b, d, f, x, y)
    return forward, backward - 4 * (y - 1) / y * b * d / x


def layer_seconds__right_reused(how, backward, b, d, f, n, flops_per_s, link):
    """With layer_bytes."""
    x, y = (n, 1) if how == "data parallel" else (1, n)
    sent = layer_bytes__right_formulas(how, b, d, f, x, y)[bool(backward)]
    return (8 if backward else 4) * b * d * f / n / flops_per_s, sent / (2 * link)


def layer_seconds__right_direct(how, backward, b, d, f, n, flops_per_s, link):
    """Written out."""
    flops = 4 * b * d * f / n * (1 + backward)
    part = (n - 1) / n
    if how == "data parallel":
        sent = 8 * d * f * part if backward else 0
    else:
        sent = 4 * b * d * part
    return flops / flops_per_s, sent / link / 2


def layer_seconds__wrong_link(how, backward, b, d, f, n, flops_per_s, link):
    """One direction."""
    a, w = layer_seconds__right_reused(how, backward, b, d, f, n, flops_per_s, link)
    return a, 2 * w


def layer_seconds__wrong_one_product(how, backward, b, d, f, n, flops_per_s, link):
    """One product."""
    a, w = layer_seconds__right_reused(how, backward, b, d, f, n, flops_per_s, link)
    return a / 2, w


def layer_seconds__wrong_backward(how, backward, b, d, f, n, flops_per_s, link):
    """Backward as many FLOPs as forward."""
    a, w = layer_seconds__right_reused(how, backward, b, d, f, n, flops_per_s, link)
    return a / 2 if backward else a, w


def layer_seconds__wrong_three(how, backward, b, d, f, n, flops_per_s, link):
    """Backward counts forward, too."""
    a, w = layer_seconds__right_reused(how, backward, b, d, f, n, flops_per_s, link)
    return a * 1.5 if backward else a, w


def layer_seconds__wrong_all(how, backward, b, d, f, n, flops_per_s, link):
    """FLOPs of all devices."""
    a, w = layer_seconds__right_reused(how, backward, b, d, f, n, flops_per_s, link)
    return a * n, w


def layer_seconds__wrong_order(how, backward, b, d, f, n, flops_per_s, link):
    """The wire first."""
    return layer_seconds__right_reused(how, backward, b, d, f, n, flops_per_s, link)[::-1]


def layer_seconds__wrong_max(how, backward, b, d, f, n, flops_per_s, link):
    """The larger one."""
    return max(layer_seconds__right_reused(how, backward, b, d, f, n, flops_per_s, link))


_RATIO = 4.6e14 / 1.8e11
rooflines__right_solved = {
    "tokens per device, data parallel over three axes": _RATIO / 3,
    "devices along y, tensor parallel over one axis": 28672 / _RATIO,
}
# one direction of the link
rooflines__wrong_direction = rooflines__right_solved | {
    "tokens per device, data parallel over three axes": 2 * _RATIO / 3
}
# times three
rooflines__wrong_times = rooflines__right_solved | {"tokens per device, data parallel over three axes": 3 * _RATIO}
# one direction
rooflines__wrong_y = rooflines__right_solved | {"devices along y, tensor parallel over one axis": 14336 / _RATIO}
# rounded down
rooflines__wrong_floor = rooflines__right_solved | {"devices along y, tensor parallel over one axis": 8}
# four bytes
rooflines__wrong_float = rooflines__right_solved | {"tokens per device, data parallel over three axes": _RATIO / 6}


def best_split__right_tried(b, f, n, mx, my):
    """Tries them all."""
    powers = [2**k for k in range(n.bit_length())]
    return min(((x, n // x) for x in powers), key=lambda s: f / (s[1] * mx) + b / (s[0] * my))


def best_split__right_formula(b, f, n, mx, my):
    """The formula."""
    x = 2 ** round(math.log2(math.sqrt(b / f * mx / my * n)))
    x = min(max(x, 1), n)
    return x, n // x


def best_split__wrong_swapped(b, f, n, mx, my):
    """(y, x)."""
    return best_split__right_tried(b, f, n, mx, my)[::-1]


def best_split__wrong_floor(b, f, n, mx, my):
    """Rounded down."""
    x = 2 ** math.floor(math.log2(math.sqrt(b / f * mx / my * n)))
    x = min(max(x, 1), n)
    return x, n // x


def best_split__wrong_unclipped(b, f, n, mx, my):
    """Not between 1 and n."""
    x = 2 ** round(math.log2(math.sqrt(b / f * mx / my * n)))
    return x, n // x


def best_split__wrong_no_axes(b, f, n, mx, my):
    """Ignores mx and my."""
    return best_split__right_tried(b, f, n, 1, 1)


def best_split__wrong_axes(b, f, n, mx, my):
    """mx and my swapped."""
    return best_split__right_tried(b, f, n, my, mx)


def best_split__wrong_ratio(b, f, n, mx, my):
    """F over B."""
    return best_split__right_tried(f, b, n, mx, my)


def best_split__right_max(b, f, n, mx, my):
    """The larger time in place of the sum: smallest at the same place."""
    powers = [2**k for k in range(n.bit_length())]
    return min(((x, n // x) for x in powers), key=lambda s: max(f / (s[1] * mx), b / (s[0] * my)))


def best_split__wrong_short(b, f, n, mx, my):
    """Forgets x = n."""
    powers = [2**k for k in range(n.bit_length() - 1)]
    return min(((x, n // x) for x in powers), key=lambda s: f / (s[1] * mx) + b / (s[0] * my))


_DIVIDED = {
    "data parallel": (1, 1, 1, 0),
    "ZeRO-1": (1, 1, 0, 0),
    "ZeRO-2": (1, 0, 0, 0),
    "ZeRO-3": (0, 0, 0, 0),
    "tensor parallel": (0, 0, 0, 1),
}


def memory_per_device__right_table(how, params, activations, n):
    """A table of what is whole."""
    sizes = 2 * params, 2 * params, 12 * params, activations
    return sum(s if whole else s / n for s, whole in zip(sizes, _DIVIDED[how]))


def memory_per_device__right_ifs(how, params, activations, n):
    """Ifs."""
    if how == "tensor parallel":
        return 16 * params / n + activations
    level = 0 if how == "data parallel" else int(how[-1])
    held = [12, 2, 2]
    per = sum(size / n if k < level else size for k, size in enumerate(held))
    return per * params + activations / n


def memory_per_device__wrong_tensor(how, params, activations, n):
    """Tensor parallelism divides activations."""
    return memory_per_device__right_table(how, params, activations, n) - (
        activations * (1 - 1 / n) if how == "tensor parallel" else 0
    )


def memory_per_device__wrong_activations(how, params, activations, n):
    """Activations are whole everywhere."""
    extra = 0 if how == "tensor parallel" else activations * (1 - 1 / n)
    return memory_per_device__right_table(how, params, activations, n) + extra


def memory_per_device__wrong_data(how, params, activations, n):
    """Data parallelism divides nothing, not the activations either."""
    extra = activations * (1 - 1 / n) if how == "data parallel" else 0
    return memory_per_device__right_table(how, params, activations, n) + extra


def memory_per_device__wrong_eight(how, params, activations, n):
    """No master copy: eight bytes of optimizer."""
    whole = _DIVIDED[how]
    sizes = 2 * params, 2 * params, 8 * params, activations
    return sum(s if w else s / n for s, w in zip(sizes, whole))


def memory_per_device__wrong_order(how, params, activations, n):
    """ZeRO-1 divides the weights first."""
    level = {"data parallel": 0, "ZeRO-1": 1, "ZeRO-2": 2, "ZeRO-3": 3, "tensor parallel": 3}[how]
    held = [2, 2, 12]
    per = sum(size / n if k < level else size for k, size in enumerate(held))
    return per * params + (activations if how == "tensor parallel" else activations / n)


def memory_per_device__wrong_float(how, params, activations, n):
    """Gradients in float32."""
    whole = _DIVIDED[how]
    sizes = 2 * params, 4 * params, 12 * params, activations
    return sum(s if w else s / n for s, w in zip(sizes, whole))


def memory_per_device__wrong_together(how, params, activations, n):
    """All devices together."""
    return n * memory_per_device__right_table(how, params, activations, n)


def memory_per_device__wrong_off(how, params, activations, n):
    """ZeRO-1 divides the gradients, too."""
    other = "ZeRO-2" if how == "ZeRO-1" else how
    return memory_per_device__right_table(other, params, activations, n)


largest_model__right_reckoned = {
    "data parallel": 1,
    "ZeRO-1": 16 / 5.5,
    "ZeRO-2": 16 / 3.75,
    "ZeRO-3": 8,
}
# eight times
largest_model__wrong_eight = largest_model__right_reckoned | {"data parallel": 8}
# all twelve gone
largest_model__wrong_gone = largest_model__right_reckoned | {"ZeRO-1": 4}
# gradients too
largest_model__wrong_two = largest_model__right_reckoned | {"ZeRO-2": 16 / 5.5}
# the optimizer is not divided
largest_model__wrong_three = largest_model__right_reckoned | {"ZeRO-3": 16 / 12.5}
# rounded
largest_model__wrong_rounded = largest_model__right_reckoned | {"ZeRO-1": 3}
# parameters, not billions
largest_model__wrong_unit = largest_model__right_reckoned | {"data parallel": 1e9}


speedups__right_reckoned = {
    "gradients: speed-up": 351 / 53.8,
    "gradients: efficiency": 351 / 53.8 / 8,
    "gradients: ms that eight devices lose": 53.8 - 351 / 8,
    "tensor parallelism: percent saved": 100 * (53.8 - 51.4) / 53.8,
    "sin: ms of a usual run": 9.75,
}
# after over before
speedups__wrong_inverse = speedups__right_reckoned | {"gradients: speed-up": 53.8 / 351}
# in per cent
speedups__wrong_percent = speedups__right_reckoned | {"gradients: efficiency": 81.6}
# what is saved
speedups__wrong_saved = speedups__right_reckoned | {"gradients: ms that eight devices lose": 351 - 53.8}
# compared with one device
speedups__wrong_base = speedups__right_reckoned | {"tensor parallelism: percent saved": 100 * (351 - 51.4) / 351}
# the mean
speedups__wrong_mean = speedups__right_reckoned | {"sin: ms of a usual run": 25.2}
# mean less deviation
speedups__wrong_minus = speedups__right_reckoned | {"sin: ms of a usual run": -5.7}
# as a part of one
speedups__wrong_part = speedups__right_reckoned | {"tensor parallelism: percent saved": 0.0446}
# the new time below
speedups__wrong_below = speedups__right_reckoned | {"tensor parallelism: percent saved": 100 * 2.4 / 51.4}

why_no_speedup__right_reasoned = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "stays",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "stays",
}
# simulated links are slow
why_no_speedup__wrong_links = why_no_speedup__right_reasoned | {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "slow links"
}
# the bytes are alike
why_no_speedup__wrong_bytes = why_no_speedup__right_reasoned | {
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "bytes sent"
}
# more devices always help
why_no_speedup__wrong_halves = why_no_speedup__right_reasoned | {
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "halves"
}
# twice the data, twice the bytes
why_no_speedup__wrong_doubles = why_no_speedup__right_reasoned | {
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "doubles"
}
# more devices, more talk
why_no_speedup__wrong_talk = why_no_speedup__right_reasoned | {
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "doubles"
}
# nothing changes
why_no_speedup__wrong_stays = why_no_speedup__right_reasoned | {
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "stays"
}


def best_split__wrong_nearest_by_difference(b, f, n, mx, my):
    """The power of two nearest to the root, and not nearest in doublings."""
    root = math.sqrt(b / f * n * mx / my)
    x = min((2**k for k in range(n.bit_length())), key=lambda p: abs(p - root))
    return x, n // x


def _jaxprs(eqn):
    values = [v for p in eqn.params.values() for v in (p if isinstance(p, tuple) else (p,))]
    return [v for v in values if hasattr(v, "eqns")]


def _reported(jaxpr, names, itemsize=None, times=1, axes_of=lambda axes: (axes,) if isinstance(axes, str) else axes):
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in names:
            aval, axes = eqn.invars[0].aval, eqn.params.get("axes", eqn.params.get("axis_name"))
            yield (
                names[eqn.primitive.name],
                axes_of(axes),
                math.prod(aval.shape) * (itemsize or aval.dtype.itemsize),
                times,
            )
        turns = eqn.params["length"] if eqn.primitive.name == "scan" else 1
        for inner in _jaxprs(eqn):
            yield from _reported(inner, names, itemsize, times * turns, axes_of)


_NAMES = {
    "psum": "all_reduce",
    "psum_invariant": "all_reduce",
    "pmax": "all_reduce",
    "pmin": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "all_to_all": "all_to_all",
    "ppermute": "collective_permute",
}


def comm_report__right_from_a_generator(jaxpr):
    """A generator, made a list."""
    return list(_reported(jaxpr, _NAMES))


def comm_report__wrong_four_bytes(jaxpr):
    """Every number has four bytes."""
    return list(_reported(jaxpr, _NAMES, itemsize=4))


def comm_report__wrong_no_minimum(jaxpr):
    """Knows the maximum over devices, and not the minimum."""
    return list(_reported(jaxpr, {name: kind for name, kind in _NAMES.items() if name != "pmin"}))


def collective_bytes__wrong_matrix(kind, shape, dtype, n):
    """An array has rows and columns."""
    rows, columns = shape
    volume, share = rows * columns * jnp.dtype(dtype).itemsize, (n - 1) / n
    parts = {"all_gather": share, "reduce_scatter": share, "all_reduce": 2 * share, "all_to_all": share / n}
    return volume * parts.get(kind, 1 / n)


def comm_report__wrong_letters(jaxpr):
    """Makes a tuple of a name: of its letters. With names of one letter that is right."""
    return list(_reported(jaxpr, _NAMES, axes_of=tuple))


def comm_report__wrong_first_axis(jaxpr):
    """A collective has one axis."""
    return [(kind, axes[:1], *rest) for kind, axes, *rest in _reported(jaxpr, _NAMES)]


def best_split__wrong_whole_quotients(b, f, n, mx, my):
    """Sizes are whole numbers, so quotients are."""
    splits = [(2**k, n // 2**k) for k in range(n.bit_length())]
    return min(splits, key=lambda split: f // (split[1] * mx) + b // (split[0] * my))


def collective_bytes__wrong_few_types(kind, shape, dtype, n):
    """The types that come to mind; all others have four bytes."""
    volume, share = math.prod(shape) * {"bfloat16": 2, "int8": 1}.get(dtype, 4), (n - 1) / n
    parts = {"all_gather": share, "reduce_scatter": share, "all_reduce": 2 * share, "all_to_all": share / n}
    return volume * parts.get(kind, 1 / n)
