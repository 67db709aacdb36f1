"""§ 1–2, 7–8: choices and numbers: which specs, what each pair sends, what a step costs, how weights begin.

Every answer is found by the experiment that it is about.
"""

from __future__ import annotations

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import blocks
from grader.arrays.meshes import aval, make_mesh
from grader.chips.report import communication
from grader.exercises import Array, Case, Moves, ProgramExercise, TableExercise
from grader.lessons.shared import within

MESH = {"batch": 4, "model": 2}

# Which specs: those that let every device of a row compute alone, but for one sum at the end.

D, F, O = 6, 8, 10  # noqa: E741 - the lesson's letters: inputs, hidden units, outputs
WEIGHTS = {"W1": (D, F), "b1": (F,), "W2": (F, O), "b2": (O,)}
CHOICES = {1: (P(), P("model")), 2: (P(), P("model", None), P(None, "model"))}


@functools.lru_cache
def _lightest() -> dict[str, P]:
    """Of all specs with which psum(relu(x W1 + b1) W2) + b2 is right, those that take the least on each device."""
    right = [
        chosen
        for chosen in itertools.product(*(CHOICES[len(shape)] for shape in WEIGHTS.values()))
        if _is_right(dict(zip(WEIGHTS, chosen, strict=True)))
    ]
    return dict(zip(WEIGHTS, min(right, key=_entries), strict=True))


def _entries(chosen) -> int:
    return sum(blocks(shape, spec, MESH).entries for shape, spec in zip(WEIGHTS.values(), chosen, strict=True))


def _is_right(specs) -> bool:
    """The devices along `model` played through with NumPy: each multiplies its blocks, the products are added up."""
    rng = np.random.default_rng(1)
    whole = {name: rng.integers(1, 9, shape) - 4.5 for name, shape in WEIGHTS.items()}
    x, held = rng.integers(1, 9, (3, D)) - 4.5, []
    for device in range(MESH["model"]):
        held.append(
            {name: value[blocks(value.shape, specs[name], MESH).indices[device]] for name, value in whole.items()}
        )
    expected = np.maximum(x @ whole["W1"] + whole["b1"], 0) @ whole["W2"] + whole["b2"]
    try:
        total = sum(np.maximum(x @ own["W1"] + own["b1"], 0) @ own["W2"] for own in held)
        return all(np.allclose(total + own["b2"], expected) for own in held)
    except ValueError:  # blocks that do not fit together
        return False


def _same_layout(one, other, row) -> bool:
    return _laid(one, row) == _laid(other, row)


def _laid(spec, row):
    return blocks(WEIGHTS[row], P(*((spec,) if isinstance(spec, str) else spec)), MESH).indices


megatron_specs = TableExercise("megatron_specs", points=4, same=_same_layout, reference=lambda row: _lightest()[row])
megatron_specs.rows(WEIGHTS)


@megatron_specs.mistake
def rows_and_rows(row):
    """W1 by rows: its contracted dimension is cut, so the hidden layer is an unfinished sum, and relu must not be
    applied before it is added up. That is a first collective, over the large hidden layer. Which cut of W1 gives every
    device *finished* hidden units?"""
    return {"W1": P("model", None)}.get(row)


@megatron_specs.mistake
def columns_and_columns(row):
    """W2 by columns needs *all* hidden units on every device; the hidden layer has to be gathered, and the result as
    well. Each device has some hidden units. Which part of W2 meets exactly these?"""
    return {"W2": P(None, "model")}.get(row)


@megatron_specs.mistake
def rows_and_columns(row):
    """Both the wrong way round: W1 by rows leaves a sum in the middle, of the whole hidden layer, and W2 by columns
    leaves a result that must be gathered. Start from the hidden units: each device should own some of them, whole."""
    return {"W1": P("model", None), "W2": P(None, "model")}.get(row)


@megatron_specs.mistake
def weights_whole(row):
    """Whole on every device, so nothing is saved: each of them holds all of it, and computes with all of it. Which
    dimension can be cut so that every device can go on with what it has?"""
    return {"W1": P(), "W2": P()}.get(row)


@megatron_specs.mistake
def first_bias_uncut(row):
    """b1 is added to the hidden units. A device that owns half of them cannot add all of b1: in shard_map the shapes do
    not fit (under jit the compiler slices it for you). Lay it out as what it is added to."""
    return {"b1": P()}.get(row)


@megatron_specs.mistake
def second_bias_cut(row):
    """b2 is added to the sum, and after the all_reduce every device has all outputs. What would half of b2 be added
    to?"""
    return {"b2": P("model")}.get(row)


# What the compiler sends for each pair.

PAIRS = {
    "columns, then rows": (P(None, "model"), P("model", None)),
    "columns, then columns": (P(None, "model"), P(None, "model")),
    "rows, then rows": (P("model", None), P("model", None)),
    "rows, then columns": (P("model", None), P(None, "model")),
}
BATCH, INPUTS, HIDDEN, OUTPUTS = 32, 64, 256, 48
BYTES = "bytes: columns, then rows"
TURN = "examples from which on gathering W1 and W2 sends less"


@functools.lru_cache
def _sent_by(pair: str):
    """The report on the forward pass of two layers that are laid out as the pair says, as the compiler makes it."""
    mesh, (first, second) = make_mesh(MESH), PAIRS[pair]
    result = NamedSharding(mesh, P("batch", None))

    def forward(x, w1, w2):
        return lax.with_sharding_constraint(jax.nn.relu(x @ w1) @ w2, result)

    shapes = (BATCH, INPUTS), (INPUTS, HIDDEN), (HIDDEN, OUTPUTS)
    given = [
        aval(shape, jnp.float32, spec, mesh)
        for shape, spec in zip(shapes, (P("batch", None), first, second), strict=True)
    ]
    return communication(forward, *given)


def _sends(pair):
    if pair == BYTES:
        return float(_sent_by("columns, then rows").bytes_sent)
    if pair == TURN:  # the pair's bytes grow with the examples, those of the weights do not
        gathered = (INPUTS + OUTPUTS) * HIDDEN * 4 * (1 - 1 / MESH["model"])
        return gathered / _sends(BYTES) * BATCH
    return sorted(c.kind for c in _sent_by(pair).collectives)


def _same_sends(one, other, **_):
    if isinstance(other, float):
        return within(0.03)(one, other)
    return not isinstance(one, str) and sorted(one) == sorted(other)


PAIR_SENDS_ASKS = {
    BYTES: "Of what shape is the result on one device, whose parts are added up, and how many devices add them?",
    TURN: "How many bytes does the pair send for each example of the batch, and how many of the two matrices are sent "
    "to make them whole on each device?",
    "columns, then rows": "Does anything stand unfinished between the two products, or only behind them?",
    "columns, then columns": "What does a column of W2 meet? And how is what comes out laid out?",
    "rows, then rows": "Before the relu there is a sum to finish. In which layout does the second product want it?",
    "rows, then columns": "Before the relu there is a sum to finish. And how is what comes out laid out?",
}
pair_sends = TableExercise("pair_sends", points=4, same=_same_sends, reference=_sends, questions=PAIR_SENDS_ASKS)
pair_sends.rows((*PAIRS, BYTES, TURN), argument="pair")


def _of_the_pair(pair, factor):
    return factor * _sends(BYTES) if pair == BYTES else None


@pair_sends.mistake
def weights_counted_whole(pair):
    """A gather sends (n−1)/n of what it makes whole: a device has one half of each matrix already, and passes that on.
    How many bytes are that for both, and how many does the pair send for each example?"""
    return 2 * _sends(TURN) if pair == TURN else None


@pair_sends.mistake
def examples_of_one_device(pair):
    """So many examples does *one device* have when the two ways send alike. The row asks for all examples, and `batch`
    deals them out."""
    return _sends(TURN) / MESH["batch"] if pair == TURN else None


@pair_sends.mistake
def hidden_units_travel(pair):
    """Nobody needs another device's hidden units here: W2's rows on a device are those that meet the hidden units it
    has. Measure it, and look what does travel."""
    return {"columns, then rows": ["all_gather", "all_reduce"]}.get(pair)


@pair_sends.mistake
def only_the_result_gathered(pair):
    """A column of W2 meets *all* hidden units, and a device has half of them. Before anything can be multiplied a
    second time, something has to come together, and the result is in columns in the end. How many collectives?"""
    return {"columns, then columns": ["all_gather"]}.get(pair)


@pair_sends.mistake
def relu_of_parts(pair):
    """One sum is not enough. With W1 by rows the hidden layer is an unfinished sum as well, and relu stands between the
    two."""
    return {"rows, then rows": ["all_reduce"]}.get(pair)


@pair_sends.mistake
def two_sums(pair):
    """Two sums would do. But the compiler found another way to a finished hidden layer: look at the operand of its
    first collective. Whose shape is that, and what does the exchange make of rows?"""
    return {"rows, then rows": ["all_reduce", "all_reduce"]}.get(pair)


@pair_sends.mistake
def only_the_hidden_sum(pair):
    """The sum in the middle is one. It leaves all hidden units on every device, and each has half of W2's columns: what
    comes out is cut along `model`, and it was to be whole there."""
    return {"rows, then columns": ["all_reduce"]}.get(pair)


@pair_sends.mistake
def of_the_whole_batch(pair):
    """These are the bytes for all examples. Over `model` only the examples of one device travel: the batch is cut over
    `batch`, and stays so."""
    return _of_the_pair(pair, MESH["batch"])


@pair_sends.mistake
def as_if_all_were_along_model(pair):
    """Among *eight* devices each would send that much. The parts of the sum are along `model`: how many devices are in
    one such sum?"""
    return _of_the_pair(pair, 7 / 8 / (1 - 1 / MESH["model"]))


@pair_sends.mistake
def counted_in_entries(pair):
    """This is a fourth of the bytes: as many as there are entries. How many bytes has a float32?"""
    return _of_the_pair(pair, 1 / 4)


@pair_sends.mistake
def an_all_reduce_counted_once(pair):
    """An all_reduce is a reduce_scatter *and* an all_gather: 2(n−1)/n of what is added up. Count both halves."""
    return _of_the_pair(pair, 1 / 2)


# Where biases and non-linearities may stand.

OPERATIONS = {
    "adding b1 to the hidden layer": ("hidden", lambda v, cut: v + np.arange(1, 9)[cut]),
    "relu of the hidden layer": ("hidden", lambda v, cut: np.maximum(v, 0)),
    "softmax over the hidden units": ("hidden", lambda v, cut: np.exp(v) / np.exp(v).sum(-1, keepdims=True)),
    "adding b2 to the result": ("result", lambda v, cut: v + np.arange(1, 11)),
    "relu of the result": ("result", lambda v, cut: np.maximum(v, 0)),
    "halving the result": ("result", lambda v, cut: v / 2),
}


def _where(row: str) -> str:
    """Found by trying: the operation on the devices' parts against the same on the whole."""
    place, operation = OPERATIONS[row]
    rng = np.random.default_rng(2)
    hidden, w2 = rng.normal(size=(3, F)), rng.normal(size=(F, O))
    halves = slice(0, F // 2), slice(F // 2, F)
    if place == "hidden":
        parts = np.concatenate([operation(hidden[:, half], half) for half in halves], axis=1)
        return "on the parts" if np.allclose(parts, operation(hidden, slice(None))) else "needs a collective of its own"
    products = [hidden[:, half] @ w2[half] for half in halves]
    early = sum(operation(part, None) for part in products)
    return "either way" if np.allclose(early, operation(sum(products), None)) else "after the sum"


PLACES = {
    "on the parts": "On the parts: each device applies it to what it holds, and nothing else is needed. Try it with "
    "two devices that hold a number each: is what they have together the right result?",
    "after the sum": "After the sum: applied to each part and then added up, it would come to something else. Try "
    "it with the parts 1 and −3: does it?",
    "either way": "Either way: applied to each part and then added up, it comes to the same as applied to the sum. "
    "Try it with the parts 1 and −3: does it?",
    "needs a collective of its own": "It needs one where a device cannot do its own entries without those of "
    "others. Which would it need here?",
}
where_it_goes = TableExercise("where_it_goes", points=3, reference=_where, options=PLACES)
where_it_goes.rows(OPERATIONS)


@where_it_goes.mistake
def result_on_the_parts(row):
    """Applied to each device's part and then added up, it acts once per device: b2 would be in the total n times, and
    relu of the parts is not relu of the sum."""
    return "on the parts" if row in ("adding b2 to the result", "relu of the result") else None


@where_it_goes.mistake
def hidden_after_a_sum(row):
    """In a column-parallel layer every device has *finished* hidden units, some of them: there is no sum to wait for.
    What touches one hidden unit at a time can be done where it is."""
    return "after the sum" if row in ("adding b1 to the hidden layer", "relu of the hidden layer") else None


@where_it_goes.mistake
def softmax_after_a_sum(row):
    """The hidden units stand side by side, some on each device: there is no sum of parts to wait for. What does a
    softmax need of the units on other devices?"""
    return "after the sum" if row == "softmax over the hidden units" else None


@where_it_goes.mistake
def softmax_where_it_is(row):
    """A softmax divides by a sum over *all* hidden units, and a device has some of them. Each would normalise over its
    own part."""
    return "on the parts" if row == "softmax over the hidden units" else None


@where_it_goes.mistake
def linear_must_wait(row):
    """A factor may be applied to every part or to their sum: a/2 + b/2 = (a + b)/2. What distinguishes it from adding
    b2?"""
    return "after the sum" if row == "halving the result" else None


@where_it_goes.mistake
def all_the_same(row):
    """It makes a difference here: try it with two numbers, 3 and −5. Once the operation before the sum, once after."""
    return "either way" if row in ("adding b2 to the result", "relu of the result") else None


# The tutorial's network at its full size: memory and bytes of a step, data parallel and with tensor parallelism.

WIDTHS, EXAMPLES, MB = (784, 8192, 8192, 8192, 10), 8192, 1e6
CUTS = {"DP": (P(), P(), P(), P()), "DP + TP": (P(), P(None, "model"), P("model", None), P())}
BIASES = {"DP": (P(), P(), P(), P()), "DP + TP": (P(), P("model"), P(), P())}
MESHES = {"DP": {"batch": 8, "model": 1}, "DP + TP": MESH}


def _loss(params, x, y):
    for k, (w, b) in enumerate(params):
        x = x @ w + b
        x = jax.nn.relu(x) if k < 3 else x
    return jnp.mean((x - y) ** 2)


@functools.lru_cache
def step_of(way: str):
    """The report on one step's gradients. Nothing is computed, so 560 MB of weights are no trouble."""
    mesh = make_mesh(MESHES[way])
    shapes = list(itertools.pairwise(WIDTHS))
    params = [
        (aval(shape, jnp.float32, cut, mesh), aval(shape[1:], jnp.float32, bias, mesh))
        for shape, cut, bias in zip(shapes, CUTS[way], BIASES[way], strict=True)
    ]
    data = [aval((EXAMPLES, width), jnp.float32, P("batch", None), mesh) for width in (WIDTHS[0], WIDTHS[-1])]
    shardings = jax.tree.map(lambda p: p.sharding, params)
    return communication(jax.jit(jax.grad(_loss), out_shardings=shardings), params, *data)


def parameters_of(way: str) -> float:
    """Bytes of weights and biases on one device."""
    return 4.0 * sum(
        blocks(shape, cut, MESHES[way]).entries + blocks(shape[1:], bias, MESHES[way]).entries
        for shape, cut, bias in zip(itertools.pairwise(WIDTHS), CUTS[way], BIASES[way], strict=True)
    )


def sent_over(way: str, axis: str) -> float:
    return float(sum(c.bytes_sent for c in step_of(way).collectives if c.axes == (axis,)))


COSTS = {
    "MB of parameters on a device, DP": lambda: parameters_of("DP") / MB,
    "MB of parameters on a device, DP + TP": lambda: parameters_of("DP + TP") / MB,
    "MB sent over batch, DP": lambda: sent_over("DP", "batch") / MB,
    "MB sent over batch, DP + TP": lambda: sent_over("DP + TP", "batch") / MB,
    "MB sent over model, DP + TP": lambda: sent_over("DP + TP", "model") / MB,
}
TP_COSTS_ASKS = {
    "MB of parameters on a device, DP + TP": "Which of W1 to W4 are cut, and into how many parts? The rest is whole "
    "everywhere.",
    "MB of parameters on a device, DP": "There are four layers. How many of them are 8192 × 8192, is anything cut, and "
    "how many bytes has a number?",
    "MB sent over batch": "What is added up are the gradients of what a device *has*. How many devices are along "
    "`batch`, and what share of its array does each of so many send in an all_reduce?",
    "MB sent over model": "Once forward, behind W3, and once backward, before W2: of what shape is what a device adds "
    "up there? Only its own examples are in it, and two devices are along `model`.",
}
tp_costs = TableExercise(
    "tp_costs", points=4, same=within(0.03), reference=lambda row: float(COSTS[row]()), questions=TP_COSTS_ASKS
)
tp_costs.rows(COSTS)


def _about(row, name, value):
    return value() if row == name else None


@tp_costs.mistake
def everything_halved(row):
    """Only W2, b2 and W3 are cut. W1, W4 and their biases are whole on every device, b3 as well; small, but not half of
    themselves."""
    return _about(row, "MB of parameters on a device, DP + TP", lambda: parameters_of("DP") / MB / 2)


@tp_costs.mistake
def parameters_divided_by_devices(row):
    """Data parallelism divides the examples. Every device has all the parameters; an eighth of them would be FSDP."""
    return _about(row, "MB of parameters on a device, DP", lambda: parameters_of("DP") / MB / 8)


@tp_costs.mistake
def cut_over_both_axes(row):
    """The large matrices are cut over `model` only, in two, not over all devices in eight. How many devices are along
    `model`?"""
    return _about(
        row, "MB of parameters on a device, DP + TP", lambda: (parameters_of("DP") - 2 * 4 * 8192**2 * 7 / 8) / MB
    )


@tp_costs.mistake
def gradients_sent_once(row):
    """An all_reduce sends 2(n−1)/n of what it adds up, not (n−1)/n: it is a reduce_scatter and an all_gather."""
    return COSTS[row]() / 2 if row.startswith("MB sent over batch") else None


@tp_costs.mistake
def eight_devices_along_batch(row):
    """Among *eight* devices each sends 7/8 of what it has, twice. How many devices are along `batch`, now that two are
    along `model`?"""
    return _about(row, "MB sent over batch, DP + TP", lambda: sent_over("DP + TP", "batch") / MB * (7 / 8) / (3 / 4))


@tp_costs.mistake
def gradients_of_everything(row):
    """A device adds up the gradients of the parameters that it *has*. Those of the other half of W2 and W3 are the
    neighbour's business. And along `batch` there are four devices now, not eight."""
    return _about(row, "MB sent over batch, DP + TP", lambda: sent_over("DP", "batch") / MB)


@tp_costs.mistake
def forward_only(row):
    """This is half of it: as much as the sum behind W3 sends, forward. In the backward pass W2 is the row-parallel one:
    the gradient of its input is a sum over `model` too, and of the same size."""
    return _about(row, "MB sent over model, DP + TP", lambda: 4 * EXAMPLES / 4 * 8192 / MB)


@tp_costs.mistake
def whole_batch_over_model(row):
    """Over `model` a device sends activations of its own examples: a quarter of the batch."""
    return _about(row, "MB sent over model, DP + TP", lambda: 4 * sent_over("DP + TP", "model") / MB)


# The region between two pairs: how much each of the two ways sends and holds.

ROWS, TOKENS, FEATURES, UNITS = 8, 64, 32, 128


def _after(x, W1, W2, normed):
    return jax.nn.relu(normed @ W1) @ W2


@functools.lru_cache
def _region_report(cut: bool):
    mesh = make_mesh({"batch": 2, "model": 4})

    def body(x, W1, W2):
        normed = x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True))
        if not cut:
            return lax.psum(_after(x, W1, W2, normed), "model")
        normed = lax.all_gather(normed, "model", axis=1, tiled=True)
        return lax.psum_scatter(_after(x, W1, W2, normed), "model", scatter_dimension=1, tiled=True)

    spec = P("batch", "model") if cut else P("batch")
    specs = spec, P(None, "model"), P("model", None)
    shapes = (ROWS, TOKENS, FEATURES), (FEATURES, UNITS), (UNITS, FEATURES)
    program = jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=spec)
    return communication(program, *(aval(s, jnp.float32, spec, mesh) for s, spec in zip(shapes, specs, strict=True)))


def _entries_between(cut: bool) -> float:
    return float(
        blocks((ROWS, TOKENS, FEATURES), P("batch", "model" if cut else None), {"batch": 2, "model": 4}).entries
    )


REGION = {
    "bytes sent with an all_reduce": lambda: float(_region_report(False).bytes_sent),
    "bytes sent with all_gather and reduce_scatter": lambda: float(_region_report(True).bytes_sent),
    "entries of x on a device, whole sequences": lambda: _entries_between(False),
    "entries of x on a device, sequences cut": lambda: _entries_between(True),
}
REGION_COSTS_ASKS = {
    "all_gather": "Each of the two sends (n−1)/n of an array. Of which array, and how much of it is that for either?",
}
region_costs = TableExercise(
    "region_costs", points=2, same=within(0.02), reference=lambda row: REGION[row](), questions=REGION_COSTS_ASKS
)
region_costs.rows(REGION)


@region_costs.mistake
def twice_as_much_in_two(row):
    """Two collectives need not send more than one: an all_reduce *is* a reduce_scatter and an all_gather. They only
    stand at different places of the program here."""
    return 2 * REGION[row]() if row == "bytes sent with all_gather and reduce_scatter" else None


@region_costs.mistake
def half_for_a_scatter(row):
    """This is what one of the two sends. The all_gather stands before the products and the reduce_scatter behind them,
    and each sends (n−1)/n of what a row of devices works on."""
    return REGION[row]() / 2 if row == "bytes sent with all_gather and reduce_scatter" else None


@region_costs.mistake
def sent_once(row):
    """That is one pass around the ring. An all_reduce takes two: first the sums are made, then they are dealt out to
    all. How much is that of its operand?"""
    return REGION[row]() / 2 if row == "bytes sent with an all_reduce" else None


@region_costs.mistake
def all_of_it_sent_once(row):
    """These are the bytes of what a row of devices works on. In an all_reduce each device sends 2(n−1)/n of that: which
    n, and is that less than all of it, or more?"""
    n = 4  # devices along `model`
    return REGION[row]() * n / (2 * (n - 1)) if row.startswith("bytes sent") else None


@region_costs.mistake
def cut_over_model_forgotten(row):
    """The sequences are cut over `model` as well now: how many devices are along it?"""
    return _entries_between(False) if row == "entries of x on a device, sequences cut" else None


@region_costs.mistake
def cut_over_batch_forgotten(row):
    """The sequences themselves are dealt out over `batch`, in both ways. How many of the eight has a device?"""
    return 2 * REGION[row]() if row.startswith("entries") else None


@region_costs.mistake
def eight_in_the_group(row):
    """These are the bytes in a group of eight devices. The sums are made along `model`: how many devices stand along
    that?"""
    return REGION[row]() * (7 / 8) / (3 / 4) if row.startswith("bytes sent") else None


@region_costs.mistake
def axes_of_a_4_by_2_mesh(row):
    """So it is on a 4 × 2 mesh, with two devices along `model`. Here there are two along `batch` and four along
    `model`."""
    if row.startswith("bytes sent"):
        return REGION[row]() / 2 * (1 / 2) / (3 / 4)
    return REGION[row]() / 2 if row == "entries of x on a device, whole sequences" else None


# How weights begin.

FAN_IN, FAN_OUT, DEVICES = 1024, 512, 4


@functools.lru_cache
def _measured_init(row: str) -> float:
    """Spreads of a row-parallel product, measured on random weights that every device drew by a rule."""
    rng = np.random.default_rng(5)
    by_all, by_own = 1 / math.sqrt(FAN_IN), 1 / math.sqrt(FAN_IN // DEVICES)
    x = rng.normal(size=(256, FAN_IN))
    right, wrong = (rng.normal(size=(FAN_IN, FAN_OUT)) * scale for scale in (by_all, by_own))
    return {
        "spread of W2, drawn whole": lambda: right.std(),
        "spread of device 1's rows of it": lambda: right[256:512].std(),
        "spread of rows drawn by local fan-in": lambda: wrong[256:512].std(),
        "variance of the outputs, drawn whole": lambda: (x @ right).var(),
        "variance of the outputs, by local fan-in": lambda: (x @ wrong).var(),
        "spread of W1's columns, by local fan-in": lambda: (
            rng.normal(size=(FAN_OUT, FAN_IN // DEVICES)) / math.sqrt(FAN_OUT)
        ).std(),
    }[row]()


INIT = (
    "spread of W2, drawn whole",
    "spread of device 1's rows of it",
    "spread of rows drawn by local fan-in",
    "variance of the outputs, drawn whole",
    "variance of the outputs, by local fan-in",
    "spread of W1's columns, by local fan-in",
)
init_scale = TableExercise("init_scale", points=3, same=within(0.05), reference=lambda row: float(_measured_init(row)))
init_scale.rows(INIT)


@init_scale.mistake
def rows_have_less_spread(row):
    """Cutting moves entries to devices and changes none of them. Rows of a matrix are spread as the matrix is."""
    return {INIT[1]: 1 / 16}.get(row)


@init_scale.mistake
def spread_of_what_is_drawn_whole(row):
    """That is the spread of rows that are drawn with the whole matrix. These each device drew for itself: it divided by
    the root of how many rows?"""
    return {INIT[2]: 1 / 32}.get(row)


@init_scale.mistake
def a_part_of_the_spread(row):
    """That is half of the spread of the whole matrix. Device 1's rows are some of the numbers that were drawn for it:
    are these spread less than all of them?"""
    return {INIT[1]: 1 / 64}.get(row)


@init_scale.mistake
def variance_and_spread(row):
    """The spread is too large by a factor, the variance by its square. An output adds up 1024 products of variance
    (spread of W)²."""
    return {INIT[4]: 2.0}.get(row)


@init_scale.mistake
def scale_does_not_matter(row):
    """The layer adds up as many products as on one device, all 1024. With weights that are spread too far, their sum is
    spread too far: the outputs are not those of the model that you meant."""
    return {INIT[4]: 1.0}.get(row)


@init_scale.mistake
def columns_change_it_too(row):
    """A column-parallel W1 keeps all its rows on every device: the local fan-in *is* the fan-in, and nothing goes
    wrong."""
    return {INIT[5]: 1 / math.sqrt(FAN_OUT // DEVICES)}.get(row)


@init_scale.mistake
def wrong_fan(row):
    """That is one over the root of the number of *outputs*. The spread goes with the number of products in a sum: the
    rows of W2, its inputs."""
    return {INIT[0]: 1 / math.sqrt(FAN_OUT)}.get(row)


@init_scale.mistake
def variance_for_spread(row):
    """That is the variance, 1 over the fan-in. The spread (NumPy's `std`) is its root."""
    return {INIT[0]: 1 / FAN_IN, INIT[1]: 1 / FAN_IN, INIT[2]: DEVICES / FAN_IN}.get(row)


def _initial(key, fan_in, fan_out):
    return jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / np.float32(math.sqrt(fan_in))


init_rows = ProgramExercise(
    "init_rows",
    points=4,
    by_compiler=True,
    reference=lambda key, fan_in, fan_out: _initial(jnp.asarray(key), fan_in, fan_out),
)


@init_rows.cases
def _(draw):
    fan_in, fan_out = draw.lengths(2, divisible_by=8)
    key = Array(draw.rng.integers(2**32, size=2).astype(np.uint32), P())
    return Case(
        {"key": key, "fan_in": fan_in, "fan_out": fan_out},
        draw.mesh("batch", "model"),
        P("model", None),
        limits=[Moves(())],
    )


def _on_each(key, mesh, draw_rows):
    """What every device draws for itself, from the same key."""
    return jax.shard_map(draw_rows, mesh=mesh, in_specs=P(), out_specs=P("model", None), check_vma=False)(key)


@init_rows.mistake
def local_fan_in(key, fan_in, fan_out, *, mesh):
    """The numbers are the right ones, each too large by the same factor, the root of the number of devices along
    `model`. From which rows was the scale computed? The sum behind W2 goes over all of them."""
    right = _initial(key, fan_in, fan_out) * np.float32(math.sqrt(mesh.shape["model"]))
    return lax.with_sharding_constraint(right, NamedSharding(mesh, P("model", None)))


@init_rows.mistake
def same_rows_everywhere(key, fan_in, fan_out, *, mesh):
    """All devices have the same rows: the hidden units of one begin as copies of the other's. The same key gives the
    same numbers on every device. Draw the whole matrix in the program, and let every device keep its rows."""
    rows = fan_in // mesh.shape["model"]
    return _on_each(key, mesh, lambda key: _initial(key, rows, fan_out) * np.float32(math.sqrt(rows / fan_in)))


@init_rows.mistake
def a_key_for_each_device(key, fan_in, fan_out, *, mesh):
    """With the device's number folded into the key all rows differ, and are spread as they should. But they are other
    numbers on every mesh: a run on four devices cannot be compared with one on eight. What does not depend on the
    mesh?"""

    def rows(key):
        own = jax.random.fold_in(jax.random.wrap_key_data(key), lax.axis_index("model"))
        return jax.random.normal(own, (fan_in // mesh.shape["model"], fan_out)) / np.float32(math.sqrt(fan_in))

    return _on_each(key, mesh, rows)


@init_rows.mistake
def never_scaled(key, fan_in, fan_out, *, mesh):
    """The weights are as `normal` makes them, with spread 1. An output adds up fan_in products: how large does it
    become?"""
    right = _initial(key, fan_in, fan_out) * np.float32(math.sqrt(fan_in))
    return lax.with_sharding_constraint(right, NamedSharding(mesh, P("model", None)))


@init_rows.mistake
def drawn_and_left_whole(key, fan_in, fan_out, *, mesh):
    """Right numbers, but every device keeps all of them: for a matrix that is cut because it is too large, that is the
    end of the program. Say in the program how the result is to be laid out."""
    return lax.with_sharding_constraint(_initial(key, fan_in, fan_out), NamedSharding(mesh, P()))
