"""§ 2–6: what collectives, and layers made of them, cost on the wire: plain functions, and a reader of jaxprs.

Nothing expected is calculated with the formulas that are asked for: rings are played through step by step
(`rings_played`), layers are traced and read (`layers_measured`).
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.extend.core import jaxpr_as_fun

from grader.arrays.sketch import Sketch
from grader.exercises import Case, FunctionExercise
from grader.lessons.cost.layers_measured import WAYS, measured
from grader.lessons.cost.rings_played import busiest_link, play, tree_seconds
from grader.programs.program import trace
from grader.programs.walk import structure

KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "collective_permute")


def _one_of(draw, options):
    return options[int(draw.rng.integers(len(options)))]


def _whole(draw, low: int, high: int) -> int:
    return int(draw.rng.integers(low, high))


# Bytes that one device sends.


def _nbytes(shape, dtype):
    return math.prod(shape) * jnp.dtype(dtype).itemsize


def _sent(kind, shape, dtype, n):
    return play(kind, n, _nbytes(shape, dtype)).sent


collective_bytes = FunctionExercise("collective_bytes", points=4, reference=_sent)


@collective_bytes.by_formula
def _bytes_on_a_ring(kind, shape, dtype, n):
    volume, share = _nbytes(shape, dtype), (n - 1) / n
    if kind == "all_reduce":
        return 2 * share * volume
    if kind == "all_to_all":
        return share / n * volume
    return volume / n if kind == "collective_permute" else share * volume


@collective_bytes.cases
def _(draw):
    for k in range(30):
        kind = KINDS[k % len(KINDS)]
        n = (4, 8, 2)[k % 3] if k < 6 else _one_of(draw, (2, 3, 4, 6, 8, 16))
        shape = n * n * _whole(draw, 1, 9), *(_whole(draw, 3, 50) for _ in range(k % 4))  # of any rank
        dtype = (
            ("float32", "bfloat16")[k % 2]
            if k < 6
            else _one_of(draw, ("float32", "bfloat16", "int8", "int32", "float16"))
        )
        yield Case({"kind": kind, "shape": shape, "dtype": dtype, "n": n})


def _shares(kind, n):
    """How many times V each device sends."""
    share = (n - 1) / n
    return {
        "all_gather": share,
        "reduce_scatter": share,
        "all_reduce": 2 * share,
        "all_to_all": share / n,
        "collective_permute": 1 / n,
    }[kind]


@collective_bytes.mistake
def sent_all_to_each(kind, shape, dtype, n):
    """That is the whole array, sent to each of the n - 1 others. On a ring a message goes to one neighbour only, and is
    a *block*: how many bytes has a block, and how many blocks does a device pass on?"""
    return (n - 1) * _nbytes(shape, dtype)


@collective_bytes.mistake
def took_the_block_for_the_whole(kind, shape, dtype, n):
    """This is an n-th of what is due. `shape` is that of the whole array, V; (n-1)/n of V is already n - 1 blocks of
    V/n. Which V did you put in?"""
    return _shares(kind, n) * _nbytes(shape, dtype) / n


@collective_bytes.mistake
def counted_an_all_reduce_once(kind, shape, dtype, n):
    """An all_reduce was counted like an all_gather. It is two collectives in a row: which two, and what does
    each of them send?"""
    return _shares("all_gather" if kind == "all_reduce" else kind, n) * _nbytes(shape, dtype)


@collective_bytes.mistake
def all_to_all_like_a_gather(kind, shape, dtype, n):
    """An all_to_all was counted like an all_gather. In a gather everybody gets my whole block; in an all_to_all
    each of the others gets another part of it. How large is such a part?"""
    return _shares("all_gather" if kind == "all_to_all" else kind, n) * _nbytes(shape, dtype)


@collective_bytes.mistake
def counted_bits(kind, shape, dtype, n):
    """That is eight times too much: the 32 of `float32` counts bits, and a byte has eight of them. Where does
    JAX say how many bytes an entry of a dtype takes?"""
    return 8 * _sent(kind, shape, dtype, n)


@collective_bytes.mistake
def counted_elements(kind, shape, dtype, n):
    """That is the number of entries, and bytes are asked for. A link does not care how many numbers it carries: how
    many bytes does one take? `jnp.dtype(dtype).itemsize` says it for every dtype."""
    return _sent(kind, shape, dtype, n) / jnp.dtype(dtype).itemsize


@collective_bytes.mistake
def sent_what_it_keeps(kind, shape, dtype, n):
    """Here all n of n blocks are sent. One of them is the device's own, or ends there: it need not go on. What is
    left?"""
    return (
        _shares(kind, n) * n / (n - 1) * _nbytes(shape, dtype)
        if kind != "collective_permute"
        else (_sent(kind, shape, dtype, n))
    )


# all_to_all on a ring without shortcuts: a message for a far device crosses every link on its way.

link_bytes = FunctionExercise("link_bytes", points=3, reference=busiest_link)


@link_bytes.by_formula
def _through_a_link(volume, n, bidirectional):
    message = volume / n**2
    if not bidirectional:
        return message * sum(range(1, n))
    return message * (sum(range(1, n // 2)) + n / 4)


@link_bytes.cases
def _(draw):
    for k in range(30):
        n = (4, 8)[k] if k < 2 else _one_of(draw, (2, 4, 6, 8, 10, 16))
        yield Case({"volume": n * n * 4 * _whole(draw, 1, 1000), "n": n, "bidirectional": k % 2 == 1})


@link_bytes.mistake
def counted_its_own_only(volume, n, bidirectional):
    """That is what each device sends of its own. On a ring a message for a device three places on crosses three
    links, so a link also carries what others send to others. Add up the distances."""
    return (n - 1) / n / n * volume


@link_bytes.mistake
def link_of_a_gather(volume, n, bidirectional):
    """That is what an all_gather puts through a link: it passes on *whole* blocks to everybody. Here a message
    leaves the ring where it is wanted, so on average it goes only part of the way."""
    return (n - 1) / n * volume / (2 if bidirectional else 1)


@link_bytes.mistake
def halved_for_both_ways(volume, n, bidirectional):
    """Going both ways was counted as half of going one way. It does more than share the load: the messages also
    have shorter ways. How far does a message go at most?"""
    return volume * (n - 1) / n / (4 if bidirectional else 2)


@link_bytes.mistake
def never_went_the_other_way(volume, n, bidirectional):
    """All messages go the same way round. With `bidirectional` each takes the shorter one, and the message for the
    device just opposite goes half this way, half that way."""
    return volume * (n - 1) / n / 2


@link_bytes.mistake
def opposite_one_way(volume, n, bidirectional):
    """The message for the device just opposite went only one way, so that direction carries more than the other.
    Send one half each way."""
    if not bidirectional:
        return busiest_link(volume, n, bidirectional)
    return volume / n / n * sum(away for away in range(1, n // 2 + 1))


# Seconds: a fixed time for each message, and its bytes at the link's bandwidth.


def _seconds(kind, n, volume, alpha, bandwidth):
    return play(kind, n, volume, alpha, bandwidth).seconds


ring_seconds = FunctionExercise("ring_seconds", points=3, reference=_seconds)


@ring_seconds.by_formula
def _seconds_on_a_ring(kind, n, volume, alpha, bandwidth):
    steps = (n - 1) * (2 if kind == "all_reduce" else 1)
    return steps * (alpha + volume / n / bandwidth)


@ring_seconds.cases
def _(draw):
    for k in range(30):
        yield Case(
            {
                "kind": KINDS[k % 3],
                "n": _one_of(draw, (2, 4, 6, 8, 16)) if k > 2 else 8,
                "volume": 3 * 2 ** _whole(draw, 12, 22),
                "alpha": _one_of(draw, (1e-6, 5e-7, 2e-6)),
                "bandwidth": _one_of(draw, (4.5e10, 9e10)),
            }
        )


def _ring(kind, n):
    """Steps of a ring."""
    return (n - 1) * (2 if kind == "all_reduce" else 1)


@ring_seconds.mistake
def waited_once(kind, n, volume, alpha, bandwidth):
    """alpha was paid once. Every step sends a message of its own, and can begin only when the one before has
    arrived: how many steps are there?"""
    return alpha + _ring(kind, n) * volume / n / bandwidth


@ring_seconds.mistake
def never_waited(kind, n, volume, alpha, bandwidth):
    """Only the bytes were counted. Each message also takes alpha before its first byte arrives, however small it
    is."""
    return _ring(kind, n) * volume / n / bandwidth


@ring_seconds.mistake
def the_longer_of_the_two(kind, n, volume, alpha, bandwidth):
    """Here each message takes the longer of its two times. A message first waits alpha, and only then its bytes follow:
    do the two times pass side by side, or one after the other?"""
    return _ring(kind, n) * max(alpha, volume / n / bandwidth)


@ring_seconds.mistake
def went_all_the_way_round(kind, n, volume, alpha, bandwidth):
    """A block that comes back to where it started has made one step too many. After how many steps has every
    device heard from the farthest one?"""
    return _ring(kind, n) * n / (n - 1) * (alpha + volume / n / bandwidth)


@ring_seconds.mistake
def whole_array_each_step(kind, n, volume, alpha, bandwidth):
    """Each step was charged for the whole array. A step moves one block, from every device to its neighbour, all
    of them at the same time."""
    return _ring(kind, n) * (alpha + volume / bandwidth)


@ring_seconds.mistake
def one_pass_for_an_all_reduce(kind, n, volume, alpha, bandwidth):
    """An all_reduce on a ring goes round twice: once to add up, once to hand the sums out. Both passes have their
    steps and their bytes."""
    return (n - 1) * (alpha + volume / n / bandwidth)


@ring_seconds.mistake
def both_directions_at_once(kind, n, volume, alpha, bandwidth):
    """Here the blocks go twice as fast, as if they travelled both ways round. This ring sends one way. How many bytes
    does a link carry in a step?"""
    return _seconds_on_a_ring(kind, n, volume, alpha, 2 * bandwidth)


# A tree has fewer steps, each with the whole array: it wins while messages are small.


def _crossing(n, alpha, bandwidth):
    """Bytes at which ring and tree take equally long, found by trying."""
    low, high = 1.0, 1e12
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        faster = play("all_reduce", n, middle, alpha, bandwidth).seconds < tree_seconds(n, middle, alpha, bandwidth)
        low, high = (low, middle) if faster else (middle, high)
    return low


crossover_bytes = FunctionExercise("crossover_bytes", points=3, reference=_crossing)


@crossover_bytes.by_formula
def _where_both_are_alike(n, alpha, bandwidth):
    tree, ring = 2 * math.log2(n), 2 * (n - 1)
    return alpha * bandwidth * (ring - tree) / (tree - ring / n)


@crossover_bytes.cases
def _(draw):
    for _ in range(30):
        yield Case(
            {
                "n": _one_of(draw, (4, 8, 16)),
                "alpha": _one_of(draw, (1e-6, 5e-7, 2e-6, 1e-5)),
                "bandwidth": _one_of(draw, (4.5e10, 9e10, 2.5e10)),
            }
        )


def _balance(steps_ring, steps_tree, passes_ring, alpha, bandwidth):
    """The V at which steps_ring·α + passes_ring·V/W equals steps_tree·(α + V/W)."""
    return alpha * bandwidth * (steps_ring - steps_tree) / (steps_tree - passes_ring)


@crossover_bytes.mistake
def tree_went_up_only(n, alpha, bandwidth):
    """So it is with a tree that stops at the top, where one device has the sum. An all_reduce gives it to all of them:
    the way down has as many steps as the way up."""
    return _balance(2 * (n - 1), math.log2(n), 2 * (n - 1) / n, alpha, bandwidth)


@crossover_bytes.mistake
def ring_waited_once(n, alpha, bandwidth):
    """A size below zero: with one alpha for the whole ring, the ring would win always. It has 2(n-1) messages one
    after the other, and each of them costs alpha; that is the price of its small blocks."""
    return _balance(1, 2 * math.log2(n), 2 * (n - 1) / n, alpha, bandwidth)


@crossover_bytes.mistake
def turned_the_quotient_over(n, alpha, bandwidth):
    """Where the two times are alike, V stands beside the *bytes* and alpha beside the *steps*; here the quotient of the
    two differences is the other way up. Bring all terms with V to one side: by what is then divided?"""
    return (alpha * bandwidth) ** 2 / _balance(2 * (n - 1), 2 * math.log2(n), 2 * (n - 1) / n, alpha, bandwidth)


@crossover_bytes.mistake
def one_message_of_the_ring(n, alpha, bandwidth):
    """That is alpha times bandwidth: the size at which *one* message spends as long waiting as sending. Write the
    time of the whole ring and of the whole tree, and set them equal."""
    return alpha * bandwidth


@crossover_bytes.mistake
def one_pass_of_the_ring(n, alpha, bandwidth):
    """The ring went round once, the tree up and down. An all_reduce takes the ring 2(n-1) steps, as the tree
    takes 2·log2(n)."""
    return _balance(n - 1, 2 * math.log2(n), (n - 1) / n, alpha, bandwidth)


@crossover_bytes.mistake
def natural_logarithm(n, alpha, bandwidth):
    """How often can n be halved until one is left? That is the logarithm to base 2: `math.log2`. `math.log` is
    to base e."""
    return _balance(2 * (n - 1), 2 * math.log(n), 2 * (n - 1) / n, alpha, bandwidth)


# A report of one's own, from the jaxpr.

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


def _from_the_program(jaxpr):
    """What the course's own instrument reads in the program, exported: no jaxpr is walked here."""
    avals = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in jaxpr.in_avals]
    found = structure(trace(jaxpr_as_fun(jaxpr), *avals)).collectives
    return [(c.kind, c.axes, c.bytes, c.times) for c in found]


comm_report = FunctionExercise("comm_report", points=6, reference=_from_the_program)


@comm_report.cases
def _(draw):
    named = {"data": 4, "model": 2}  # names of several letters, and a sum over both axes
    plain = [["all_gather", "model"], ["psum", ["data", "model"]], ["pmax", "model"], ["pmin", "data"]]
    yield Case({"jaxpr": Sketch(named, (8, 3), [*plain, ["all_to_all", "model"]])})
    mesh = {"x": 4, "y": 2}
    yield Case({"jaxpr": Sketch(mesh, (8, 2), [["loop", _whole(draw, 3, 8), [["ppermute", "x"]]]])})
    yield Case(
        {"jaxpr": Sketch(mesh, (8, 5), [["jit", [["psum_scatter", "x"], ["widen"], ["round"]]], ["ppermute", "y"]])}
    )
    yield Case(
        {"jaxpr": Sketch(mesh, (8, 2), [["rule", [["psum", "y"], ["jit", [["all_gather", "x"]]]]], ["ppermute", "x"]])}
    )
    inner = [["ppermute", "y"], ["loop", 3, [["jit", [["ppermute", "x"]]]]]]
    yield Case({"jaxpr": Sketch(mesh, (8, 4), [["loop", _whole(draw, 4, 7), inner]], checked=False)})
    for _ in range(4):
        steps = [_step(draw, depth=2) for _ in range(4)]
        yield Case({"jaxpr": Sketch(mesh, (8, _whole(draw, 1, 9)), steps, bool(draw.rng.integers(2)))})


def _step(draw, depth: int):
    kind = _one_of(draw, ("psum", "all_gather", "psum_scatter", "all_to_all", "ppermute") + ("jit", "loop") * 2)
    if depth and kind == "jit":
        return ["jit", [_step(draw, depth - 1)]]
    if depth and kind == "loop":
        return ["loop", _whole(draw, 2, 6), [_step(draw, depth - 1) for _ in range(2)]]
    return ["ppermute" if kind in ("jit", "loop") else kind, _one_of(draw, ("x", "y"))]


def _walked(
    jaxpr,
    times=1,
    *,
    names=NAMES,
    turns=lambda times, length: times * length,
    enters=lambda eqn: True,
    size=lambda eqn: _bytes_of(eqn.invars[0]),
):
    """The report as a walk through the jaxpr; what a mistake does otherwise is given."""
    found = []
    for eqn in jaxpr.eqns:
        name, params = eqn.primitive.name, eqn.params
        if name in names:
            axes = params.get("axes", params.get("axis_name"))
            axes = (axes,) if isinstance(axes, str) else tuple(axes)
            found.append((names[name], axes, size(eqn), times))
        below = turns(times, params["length"]) if name == "scan" else times
        for inner in params.values() if enters(eqn) else ():
            if hasattr(inner, "eqns"):
                found += _walked(inner, below, names=names, turns=turns, enters=enters, size=size)
    return found


def _bytes_of(value):
    return math.prod(value.aval.shape) * value.aval.dtype.itemsize


@comm_report.mistake
def stayed_at_the_top(jaxpr):
    """The report is empty. At the top of this jaxpr stands one equation, the shard_map, and the collectives are
    inside it: which of its parameters is a jaxpr again?"""
    return _walked(jaxpr, enters=lambda eqn: False)


@comm_report.mistake
def counted_a_loop_once(jaxpr):
    """A loop's body stands in the jaxpr once, and runs many times. `eqn.params["length"]` of a `scan` says how
    many: what becomes of `times` on the way in?"""
    return _walked(jaxpr, turns=lambda times, length: times)


@comm_report.mistake
def forgot_the_outer_loop(jaxpr):
    """Inside two loops only the inner one was counted. Its body runs its own turns for *each* turn of the outer
    loop."""
    return _walked(jaxpr, turns=lambda times, length: length)


@comm_report.mistake
def did_not_enter_jit(jaxpr):
    """What stands in shard_map and scan themselves is there, and what is called inside is not: a `jit` (or `pjit`) is
    an equation with a jaxpr among its parameters too. Ask every equation for one, whatever its name."""
    return _walked(jaxpr, enters=lambda eqn: eqn.primitive.name in ("shard_map", "scan"))


@comm_report.mistake
def looked_under_one_name(jaxpr):
    """What stands in shard_map, jit and scan is there, and what stands in a function with a derivative of its own is
    not. There the parameter has another name than `jaxpr`: ask every parameter whether it has equations."""
    return _walked(jaxpr, enters=lambda eqn: "jaxpr" in eqn.params)


@comm_report.mistake
def counted_pvary(jaxpr):
    """`pvary` names axes like a collective, but sends nothing: it only tells the type that a value may differ
    between devices from here on. Go by the name of the primitive."""
    return _walked(jaxpr, names={**NAMES, "pvary": "pvary", "pcast": "pcast"})


@comm_report.mistake
def missed_the_maximum(jaxpr):
    """A maximum over devices is an all_reduce as a sum is, and sends as much. A reader that drops what it does not know
    by name reports too little: is every collective of JAX among your names?"""
    return _walked(jaxpr, names={name: kind for name, kind in NAMES.items() if name not in ("pmax", "pmin")})


@comm_report.mistake
def counted_entries_not_bytes(jaxpr):
    """The third entry should be bytes; this is the number of entries. `aval.dtype.itemsize` is what one of them
    takes."""
    return _walked(jaxpr, size=lambda eqn: math.prod(eqn.invars[0].aval.shape))


@comm_report.mistake
def measured_the_result(jaxpr):
    """These are the bytes of what comes *out*. What a collective sends follows from the block that each device brings:
    look at `eqn.invars`. (After an all_gather the result is n blocks, after a psum_scatter one n-th.)"""
    return _walked(jaxpr, size=lambda eqn: _bytes_of(eqn.outvars[0]))


# What a layer sends, forward and backward, for four ways to divide it.


def _layer_sent(how, b, d, f, x, y):
    return tuple(cost.sent for cost in measured(how, b, d, f, x, y))


layer_bytes = FunctionExercise("layer_bytes", points=5, reference=_layer_sent)
DIVIDED = {
    "data parallel": [(2, 1), (4, 1), (8, 1)],
    "FSDP": [(4, 1), (8, 1), (2, 1)],
    "tensor parallel": [(1, 2), (1, 8), (1, 4)],
    "FSDP + tensor parallel": [(4, 2), (2, 4), (2, 2)],
}


@layer_bytes.cases
def _(draw):
    for k in range(12):
        how = WAYS[k % 4]
        x, y = DIVIDED[how][k // 4]
        b, d, f = (int(8 * n) for n in draw.rng.choice([2, 3, 4, 5, 6, 8], size=3, replace=False))
        yield Case({"how": how, "b": b, "d": d, "f": f, "x": x, "y": y})


def _layer(
    how,
    b,
    d,
    f,
    x,
    y,
    *,
    width=2,
    share=lambda n: (n - 1) / n,
    gradient=2,
    gathers=(1, 1),
    sums=(1, 1),
    summed=None,
    cut_weights=True,
    cut_batch=True,
):
    """Forward and backward bytes; a mistake changes one of the entries."""
    weights = 2 * width * d * f / (y if cut_weights else 1)
    activations = (summed or width * b * d) / (x if cut_batch else 1)
    gather = share(x) * weights if "FSDP" in how else 0
    reduce = share(x) * weights * (1 if "FSDP" in how else gradient)
    total = 2 * share(y) * activations
    return gathers[0] * gather + sums[0] * total, gathers[1] * gather + reduce + sums[1] * total


@layer_bytes.mistake
def gradient_summed_in_one_pass(how, b, d, f, x, y):
    """Under data parallelism every device needs the whole sum of the gradients: an all_reduce, two passes over
    the bytes of *both* matrices. Yours counts one pass."""
    return _layer(how, b, d, f, x, y, gradient=1)


@layer_bytes.mistake
def activations_summed_in_one_pass(how, b, d, f, x, y):
    """Along y every device needs the whole sum, of the output forward and of the gradient of x backward: an
    all_reduce, two passes over their bytes. Yours counts one pass."""
    return _layer(how, b, d, f, x, y, sums=(1 / 2, 1 / 2))


@layer_bytes.mistake
def all_sums_in_one_pass(how, b, d, f, x, y):
    """Every all_reduce is counted once, along x and along y. It is two collectives in a row: one adds up and deals
    out, one brings all shares to everybody. How often does that send the bytes?"""
    return _layer(how, b, d, f, x, y, gradient=1, sums=(1 / 2, 1 / 2))


@layer_bytes.mistake
def weights_still_there(how, b, d, f, x, y):
    """FSDP forgets the gathered weights after the forward pass; that is how it saves memory. Where does the
    backward pass get them from?"""
    return _layer(how, b, d, f, x, y, gathers=(1, 0))


@layer_bytes.mistake
def fsdp_all_reduced(how, b, d, f, x, y):
    """Backward, FSDP sends the bytes of the weights once too often. A device needs all weights once more, and then its
    own share of the summed gradient only: which collective adds up and deals out?"""
    return (
        _layer(how, b, d, f, x, y, gradient=2)
        if "FSDP" not in how
        else tuple(
            sent + extra
            for sent, extra in zip(_layer(how, b, d, f, x, y), (0, (x - 1) / x * 4 * d * f / y), strict=True)
        )
    )


@layer_bytes.mistake
def tensor_backward_is_free(how, b, d, f, x, y):
    """Tensor parallelism pays in both directions. Forward, each device has a part of the sum for the output;
    backward, for the gradient of what?"""
    return _layer(how, b, d, f, x, y, sums=(1, 0))


@layer_bytes.mistake
def reduced_the_hidden(how, b, d, f, x, y):
    """These sums are as large as the hidden activations, B by F. Those stay cut over y from beginning to end. Which
    array is a sum over the hidden dimension, and what is its shape?"""
    return _layer(how, b, d, f, x, y, summed=2 * b * f)


@layer_bytes.mistake
def gathered_uncut_weights(how, b, d, f, x, y):
    """On two axes at once the weights are cut over y already: what travels along x is a y-th part of them. Here it is
    the whole."""
    return _layer(how, b, d, f, x, y, cut_weights=False)


@layer_bytes.mistake
def summed_the_whole_batch(how, b, d, f, x, y):
    """On two axes at once the batch is cut over x already: the sums along y are over the rows that a device has,
    and not over all of B."""
    return _layer(how, b, d, f, x, y, cut_batch=False)


@layer_bytes.mistake
def added_the_rows(how, b, d, f, x, y):
    """On two axes at once it is not the sum of what each of the two ways sends alone: of the weights a device has a
    y-th part, and of the batch an x-th. Which of your terms is about weights, and which about activations?"""
    return _layer(how, b, d, f, x, y, cut_weights=False, cut_batch=False)


@layer_bytes.mistake
def bytes_of_float32(how, b, d, f, x, y):
    """Twice what is due, as with four bytes an entry. These arrays, gradients included, are bfloat16: how many bytes
    does an entry of those take?"""
    return _layer(how, b, d, f, x, y, width=4)


@layer_bytes.mistake
def one_matrix_only(how, b, d, f, x, y):
    """A layer has two matrices, W_in and W_out, both D by F entries. Here the weights of one count."""
    return _layer(how, b, 1, f * d / 2, x, y, summed=2 * b * d)


@layer_bytes.mistake
def infinitely_many_devices(how, b, d, f, x, y):
    """These are the numbers for infinitely many devices. With n of them on a ring a device sends (n-1)/n of that,
    and nothing at all along an axis of length 1."""
    return _layer(how, b, d, f, x, y, share=lambda n: float(n > 1))


# Seconds for the arithmetic, seconds for the wire: the longer one decides.


def _layer_seconds(how, backward, b, d, f, n, flops_per_s, link_bandwidth):
    x, y = (n, 1) if how == "data parallel" else (1, n)
    cost = measured(how, b, d, f, x, y)[int(backward)]
    return cost.flops / flops_per_s, cost.sent / (2 * link_bandwidth)


layer_seconds = FunctionExercise("layer_seconds", points=4, reference=_layer_seconds)


@layer_seconds.by_formula
def _seconds_of_a_pass(how, backward, b, d, f, n, flops_per_s, link_bandwidth):
    flops = (8 if backward else 4) * b * d * f / n
    if how == "data parallel" and not backward:
        return flops / flops_per_s, 0.0
    numbers = 2 * d * f if how == "data parallel" else b * d
    return flops / flops_per_s, 2 * (n - 1) / n * 2 * numbers / (2 * link_bandwidth)


@layer_seconds.cases
def _(draw):
    for k in range(12):
        b, d, f = (int(8 * n) for n in draw.rng.choice([2, 3, 4, 5, 6, 8], size=3, replace=False))
        yield Case(
            {
                "how": ("data parallel", "tensor parallel")[(k + 1) % 2],
                "backward": k % 3 != 1,
                "b": b,
                "d": d,
                "f": f,
                "n": (8, 4, 2)[k // 3 % 3],
                "flops_per_s": _one_of(draw, (4.6e14, 2e14)),
                "link_bandwidth": _one_of(draw, (9e10, 5e10)),
            }
        )


@layer_seconds.mistake
def backward_as_cheap_as_forward(how, backward, b, d, f, n, flops_per_s, link_bandwidth):
    """The backward pass was given the FLOPs of the forward pass. For every product forward it has two: one for
    the gradient of the activations, one for that of the weights."""
    math_s, wire_s = _layer_seconds(how, backward, b, d, f, n, flops_per_s, link_bandwidth)
    return math_s / (2 if backward else 1), wire_s


@layer_seconds.mistake
def both_passes_at_once(how, backward, b, d, f, n, flops_per_s, link_bandwidth):
    """Those are the FLOPs of forward and backward together. Only one of the two is asked for: 4BDF forward, and
    twice as much backward, for the whole layer."""
    _, wire_s = _layer_seconds(how, backward, b, d, f, n, flops_per_s, link_bandwidth)
    return 12 * b * d * f / n / flops_per_s, wire_s


@layer_seconds.mistake
def one_device_did_it_all(how, backward, b, d, f, n, flops_per_s, link_bandwidth):
    """These are the FLOPs of the whole layer. n devices share them, whichever way the layer is divided."""
    math_s, wire_s = _layer_seconds(how, backward, b, d, f, n, flops_per_s, link_bandwidth)
    return n * math_s, wire_s


@layer_seconds.mistake
def used_one_direction(how, backward, b, d, f, n, flops_per_s, link_bandwidth):
    """`link_bandwidth` is that of one direction. On a ring every device has a neighbour on either side, and sends
    half of its bytes each way: which bandwidth is that together? (A published tutorial has this slip.)"""
    math_s, wire_s = _layer_seconds(how, backward, b, d, f, n, flops_per_s, link_bandwidth)
    return math_s, 2 * wire_s


@layer_seconds.mistake
def two_flops_for_one(how, backward, b, d, f, n, flops_per_s, link_bandwidth):
    """It is half of the FLOPs. A multiplication and an addition are two; a layer has two products, and both count.
    Which of the twos is missing?"""
    math_s, wire_s = _layer_seconds(how, backward, b, d, f, n, flops_per_s, link_bandwidth)
    return math_s / 2, wire_s


@layer_seconds.mistake
def sent_in_the_wrong_pass(how, backward, b, d, f, n, flops_per_s, link_bandwidth):
    """Data parallelism sends nothing forward: devices differ in their rows, and rows do not meet until the
    gradients are added up. Tensor parallelism sends the same both ways."""
    math_s, wire_s = _layer_seconds(how, backward, b, d, f, n, flops_per_s, link_bandwidth)
    return math_s, wire_s or _layer_seconds(how, True, b, d, f, n, flops_per_s, link_bandwidth)[1]
