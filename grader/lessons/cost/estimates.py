"""§ 1, 6, 9: estimates, and what they say about a choice: how many devices, which split, what a clock shows."""

from __future__ import annotations

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import blocks
from grader.arrays.meshes import aval, make_mesh
from grader.chips.report import communication
from grader.exercises import Case, FunctionExercise, TableExercise
from grader.lessons.cost.layers_measured import measured
from grader.lessons.cost.rings_played import play
from grader.lessons.shared import within

# Estimates of one product, asked before it is measured.

ROWS, INNER, COLUMNS = 1024, 4096, 512  # A[I, J_X] · B[J_X, K], float32, x = 4 and y = 2


@functools.cache
def product():
    """The report on the product; nothing is computed, so no array is needed."""
    mesh = make_mesh({"x": 4, "y": 2})
    specs = P(None, "x"), P("x", None)
    program = jax.shard_map(lambda a, b: lax.psum(a @ b, "x"), mesh=mesh, in_specs=specs, out_specs=P())
    shapes = (ROWS, INNER), (INNER, COLUMNS)
    return communication(
        program, *(aval(shape, jnp.float32, spec, mesh) for shape, spec in zip(shapes, specs, strict=True))
    )


def _hop_bytes():
    """The message that waits as long as it sends, found by trying: 1 µs a hop, 45 GB/s."""
    low, high = 1.0, 1e9
    while high - low > 1e-6:
        middle = (low + high) / 2
        seconds = play("collective_permute", 2, 2 * middle, 1e-6, 4.5e10).seconds
        low, high = (low, middle) if seconds > 2e-6 else (middle, high)
    return low


MEASURED = {
    "MiB of a float32[8192,8192]": lambda: jax.ShapeDtypeStruct((8192, 8192), jnp.float32).size * 4 / 2**20,
    "bytes of A on one device": lambda: 4 * blocks((ROWS, INNER), P(None, "x"), {"x": 4, "y": 2}).entries,
    "FLOPs of one device": lambda: product().flops,
    "bytes sent by one device": lambda: product().bytes_sent,
    "bytes that one hop of 1 µs is worth": _hop_bytes,
}

BEFORE_YOU_MEASURE_ASKS = {
    "MiB": "How many entries are there, how many bytes does one take, and how many bytes are a MiB?",
    "bytes of A": "Which axes of the mesh cut A, and into how many parts?",
    "FLOPs": "A product of I × J and J × K entries is I · J · K pairs, each of them multiplied and added. "
    "Which part of the pairs has one device?",
    "bytes sent": "What is sent is C, as each device has it: how large is that? And how often does an all_reduce "
    "on a ring send it, for this many devices along x?",
    "hop": "How many bytes pass through the link while one message waits?",
}
before_you_measure = TableExercise(
    "before_you_measure",
    points=3,
    same=within(0.1),
    reference=lambda row: float(MEASURED[row]()),
    questions=BEFORE_YOU_MEASURE_ASKS,
)
before_you_measure.rows(MEASURED)


def _times(row, *rows, factor):
    """A row's measured value times a factor, for the rows that a mistake is about."""
    return MEASURED[row]() * factor if row in rows else None


SIZES = "MiB of a float32[8192,8192]", "bytes of A on one device"


@before_you_measure.mistake
def entries_for_bytes(row):
    """About so many *entries* there are, in the same unit, and bytes are asked for. How many of them does one float32
    take? (The name says it in bits.)"""
    return _times(row, *SIZES, "bytes sent by one device", factor=1 / 4)


@before_you_measure.mistake
def bits_for_bytes(row):
    """About so many *bits* there are: the 32 of `float32` are bits, and eight of these make a byte. How many bytes has
    an entry then?"""
    return _times(row, *SIZES, "bytes sent by one device", factor=8)


@before_you_measure.mistake
def over_all_devices(row):
    """About so much it would be with A cut into eight, or with two bytes an entry. A is cut over x, which has four
    devices, and the two along y hold the same part."""
    return _times(row, "bytes of A on one device", factor=1 / 2)


@before_you_measure.mistake
def whole_product(row):
    """That is all of A, or all of the product's FLOPs. One device has a quarter of A and of B: what is its share?"""
    return _times(row, "bytes of A on one device", "FLOPs of one device", factor=4)


@before_you_measure.mistake
def one_flop_for_two(row):
    """Half of it. Each pair of entries that meets is a multiplication *and* an addition: two FLOPs. Or did you
    divide by eight? The two devices along y do the same work."""
    return _times(row, "FLOPs of one device", factor=1 / 2)


@before_you_measure.mistake
def all_reduce_in_one_pass(row):
    """About so much one pass over C sends. An all_reduce is two collectives, one after the other: one adds up and deals
    out, one brings all shares to everybody."""
    return _times(row, "bytes sent by one device", factor=1 / 2)


@before_you_measure.mistake
def ring_of_all_devices(row):
    """That is an all_reduce over eight devices. Over which axis is the sum, and how many devices stand along it?"""
    return _times(row, "bytes sent by one device", factor=(7 / 8) / (3 / 4))


@before_you_measure.mistake
def sent_the_operands(row):
    """Those are the bytes of A. The operands stay where they are; what travels are parts of the sum, of the size
    of C."""
    return _times(row, "bytes sent by one device", factor=ROWS * INNER * 4 / product().bytes_sent)


@before_you_measure.mistake
def microseconds_for_seconds(row):
    """A microsecond is 10⁻⁶ s: how many bytes pass in that time at 45 GB a second? Mind the thousands."""
    return _times(row, "bytes that one hop of 1 µs is worth", factor=1000)


# From when on is a layer bound by its arithmetic? On TPU v5p, with the numbers of How To Scale Your Model.

FLOPS, LINK, HIDDEN = 4.6e14, 9e10, 28672
BOUNDS = "tokens per device, data parallel over three axes", "devices along y, tensor parallel over one axis"


def _axes(row):
    """How many axes of the torus a row is about."""
    return 3 if "three axes" in row else 1


def _bound(row):
    """Measured on a small layer over 8 devices, carried over to many: seconds grow as the sizes do."""
    b = d = f = 64
    if row.startswith("tokens"):
        cost, of = measured("data parallel", b, d, f, 8, 1)[1], b / 8
    else:
        cost, of = measured("tensor parallel", b, d, f, 1, 8)[0], f / 8
    sent = cost.sent / (7 / 8)  # on very many devices (n-1)/n is 1
    slower = (sent / (2 * LINK * _axes(row))) / (cost.flops / FLOPS)
    return of * slower if row.startswith("tokens") else HIDDEN / (of * slower)


ROOFLINES_ASKS = {
    "tokens": "Write both times of the backward pass down, with FLOPs over C and bytes over W, and set them "
    "equal. What W is it with this many axes, and what is left when D and F cancel?",
    "devices": "Write both times of the forward pass down, with FLOPs over C and bytes over W, and set them "
    "equal. What is left when B and D cancel, and where does F stand?",
}
rooflines = TableExercise("rooflines", points=3, reference=_bound, same=within(0.03), questions=ROOFLINES_ASKS)
rooflines.rows(BOUNDS)


def _tokens(row, factor):
    """The bound with a tokens' factor; for a number of devices it works the other way."""
    return _bound(row) * factor if row.startswith("tokens") else _bound(row) / factor


@rooflines.mistake
def one_direction_of_the_link(row):
    """That is with half of the bandwidth, or of the FLOPs. 9·10¹⁰ bytes a second is one direction of a link, and a
    device sends both ways at once. Which FLOPs has this pass?"""
    return _tokens(row, 2)


@rooflines.mistake
def one_axis_for_all(row):
    """So it is with one axis of the torus. Cut over several, a device has two links along each of them, and sends
    through all at once: what happens to W?"""
    return _tokens(row, _axes(row)) if _axes(row) > 1 else None


@rooflines.mistake
def three_axes_for_one(row):
    """That is with the links of three axes. This question is about tensor parallelism over *one* axis of the torus: how
    many links has a device then?"""
    return _bound(row) * 3 if _axes(row) == 1 else None


@rooflines.mistake
def one_weight_matrix(row):
    """The layer has two weight matrices, and the gradients of both are added up over the devices: how many bytes are
    that, in bfloat16? And how many FLOPs has the backward pass alone?"""
    return _bound(row) / 2 if row.startswith("tokens") else None


@rooflines.mistake
def multiplied_by_the_axes(row):
    """More axes mean more links, so the same bytes take less time. Does a device then need more tokens to keep busy, or
    fewer? On which side does the number of axes belong?"""
    return _tokens(row, _axes(row) ** 2) if _axes(row) > 1 else None


@rooflines.mistake
def both_passes_together(row):
    """That is where *both* passes together take as long as the gradients travel. The question is about the backward
    pass alone, which has two thirds of the FLOPs. Does it need more tokens for the same bytes, or fewer?"""
    return _bound(row) * 2 / 3 if row.startswith("tokens") else None


@rooflines.mistake
def hidden_size_left_out(row):
    """That is C/W, the FLOPs that go by while one byte is sent. It is F/Y that has to be larger: how many devices
    may share F then?"""
    return None if row.startswith("tokens") else FLOPS / (2 * LINK * _axes(row))


@rooflines.mistake
def upside_down(row):
    """The fraction stands on its head. More FLOPs a second make it harder to keep a device busy: should the bound
    rise or fall with C?"""
    return 1 / _bound(row)


# FSDP over X, tensor parallelism over Y: how to divide n devices among the two.


def _split_seconds(b, f, x, y, mx, my):
    """Forward, up to a common factor: weights gathered along x, activations summed along y."""
    return f / (y * mx) + b / (x * my)


def _splits(n):
    return [(2**k, n // 2**k) for k in range(n.bit_length())]


def _best(b, f, n, mx, my):
    return min(_splits(n), key=lambda split: _split_seconds(b, f, *split, mx, my))


best_split = FunctionExercise("best_split", points=3, reference=_best)


@best_split.cases
def _(draw):
    """The book's example, one whose root is far below 1, two whose roots are 11.8 (nearer to 8, but by doublings to 16)
    and so small that a quotient rounded down decides otherwise, then thirty with a clear winner that no mistake gets
    through."""
    yield Case({"b": 49_152, "f": 32_768, "n": 64, "mx": 2, "my": 1})
    yield Case({"b": 1000, "f": 32_768, "n": 8, "mx": 1, "my": 2})
    yield Case({"b": 70, "f": 32, "n": 64, "mx": 1, "my": 1})
    yield Case({"b": 52, "f": 12, "n": 64, "mx": 1, "my": 2})
    drawn, slipping = [], list(best_split.mistakes)
    while len(drawn) < 30 or slipping:
        given = {
            "b": int(draw.rng.integers(1, 400)) * 1000,
            "f": int(draw.rng.choice([4096, 8192, 16384, 32768])),
            "n": int(2 ** draw.rng.integers(3, 9)),
            "mx": int(draw.rng.integers(1, 3)),
            "my": int(draw.rng.integers(1, 3)),
        }
        best, next_best = sorted(
            _split_seconds(given["b"], given["f"], *split, given["mx"], given["my"]) for split in _splits(given["n"])
        )[:2]
        if next_best > 1.02 * best:
            drawn.append(given)
            slipping = [m for m in slipping if m.wrong(**given) == best_split.reference(**given)]
    yield from map(Case, drawn)


def _nearest(wished, n, rounded=round):
    """The split whose x is nearest to what is wished, counted in doublings."""
    k = min(max(rounded(math.log2(wished)), 0), n.bit_length() - 1)
    return 2**k, n // 2**k


@best_split.by_formula
def _split_by_the_root(b, f, n, mx, my):
    return _nearest(math.sqrt(b / f * n * mx / my), n)


@best_split.mistake
def not_a_power_of_two(b, f, n, mx, my):
    """That is the root itself, rounded to a whole number. The devices are to be dealt out over two axes, none left
    over: x · y is n, and both are powers of two. Which power of two is nearest?"""
    x = round(math.sqrt(b / f * n * mx / my))
    return x, n // max(x, 1)


@best_split.mistake
def more_devices_than_there_are(b, f, n, mx, my):
    """The best x was taken as the root gives it. That may be more than n, or less than 1, and then y is no number of
    devices any more. Between which numbers must x lie?"""
    x = 2.0 ** round(math.log2(b / f * n * mx / my) / 2)
    return x, n / x


@best_split.mistake
def swapped_the_axes(b, f, n, mx, my):
    """x and y are the wrong way round. FSDP cuts the batch over x, so a larger batch wants more devices along x."""
    return _best(b, f, n, mx, my)[::-1]


@best_split.mistake
def batch_below_hidden(b, f, n, mx, my):
    """This comes out where B and F are exchanged. Gathering weights gets dearer with F and with x; summing activations
    with B, and cheaper with x. At which x are the two alike?"""
    return _nearest(math.sqrt(f / b * n * mx / my), n)


@best_split.mistake
def axes_of_the_torus_forgotten(b, f, n, mx, my):
    """mx and my play no part in your answer. Each is a number of torus axes, and as many times the bandwidth:
    what is sent over more of them takes less time."""
    return _best(b, f, n, 1, 1)


@best_split.mistake
def torus_axes_swapped(b, f, n, mx, my):
    """This comes out where `mx` and `my` are exchanged. mx is the number of torus axes of *FSDP*, which gathers
    weights, my that of tensor parallelism: does more of each make its own traffic faster in yours?"""
    return _best(b, f, n, my, mx)


@best_split.mistake
def without_the_root(b, f, n, mx, my):
    """One cost grows with x and the other falls with 1/x, so x appears twice in the balance, as x². Which root is
    missing?"""
    return _nearest(b / f * n * mx / my, n)


@best_split.mistake
def rounded_down(b, f, n, mx, my):
    """This is the power of two *below* the optimum. The one above may be nearer: try both, and keep the cheaper."""
    return _nearest(math.sqrt(b / f * n * mx / my), n, math.floor)


# Recorded timings, in ms: no simulated device can give them again.
# JAX documentation, "Distributed arrays and automatic parallelization": a TPU, one device of it and eight.

ONE, EIGHT, TENSOR = 351.0, 53.8, 51.4  # gradients of a network; the last four ways data, two ways tensor parallel
MEAN, DEVIATION, RUNS = 25.2, 30.9, 5  # of sin on one device, by `%timeit -n 5 -r 5`


def _usual():
    """The time of all runs but one, if these are alike, found by trying."""

    def deviation(usual):
        slow = RUNS * MEAN - (RUNS - 1) * usual
        return float(np.std([usual] * (RUNS - 1) + [slow]))

    low, high = 0.0, MEAN
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if deviation(middle) > DEVIATION else (low, middle)
    return low


RECORDED = {
    "gradients: speed-up": lambda: ONE / EIGHT,
    "gradients: efficiency": lambda: ONE / EIGHT / 8,
    "gradients: ms that eight devices lose": lambda: EIGHT - ONE / 8,
    "tensor parallelism: percent saved": lambda: 100 * (EIGHT - TENSOR) / EIGHT,
    "sin: ms of a usual run": _usual,
}
SPEEDUPS_ASKS = {
    "speed-up": "A speed-up is a time over a time: how many times faster?",
    "efficiency": "An efficiency is a speed-up over the best that this many devices could do: a part of 1.",
    "lose": "What would eight devices take if they shared the work without any loss? What is lost is what "
    "they take more than that.",
    "percent": "What is saved is the difference of two times, both on eight devices, as a part of the longer one.",
    "usual": "Five runs, of which four take one time and one takes another, longer one: mean and deviation "
    "are two equations for these two times.",
}
speedups = TableExercise(
    "speedups", points=3, reference=lambda row: RECORDED[row](), same=within(0.03), questions=SPEEDUPS_ASKS
)
speedups.rows(RECORDED)


@speedups.mistake
def slow_over_fast_reversed(row):
    """The fraction stands on its head: a speed-up says how many times *faster*, so it is the time on one device
    over the time on eight."""
    return EIGHT / ONE if row == "gradients: speed-up" else None


@speedups.mistake
def not_per_device(row):
    """That is the speed-up. Efficiency compares it with the best that eight devices could do: how many times
    faster would that be?"""
    return ONE / EIGHT if row == "gradients: efficiency" else None


@speedups.mistake
def percent_for_parts(row):
    """Efficiency is a part of 1 here: 0.5 would be half of the best. This is in percent."""
    return 100 * ONE / EIGHT / 8 if row == "gradients: efficiency" else None


@speedups.mistake
def parts_for_percent(row):
    """That is a part of 1, as an efficiency would be, and percent are asked for: parts of a hundred."""
    return (EIGHT - TENSOR) / EIGHT if row == "tensor parallelism: percent saved" else None


@speedups.mistake
def milliseconds_saved(row):
    """Those are the milliseconds that were saved, and percent are asked for. Percent of which time, the one before
    or the one after?"""
    return EIGHT - TENSOR if row == "tensor parallelism: percent saved" else None


@speedups.mistake
def best_possible(row):
    """That is what eight devices would take at best, an eighth of the time of one. How much longer than that did
    they really take?"""
    return ONE / 8 if row == "gradients: ms that eight devices lose" else None


@speedups.mistake
def saved_for_lost(row):
    """That is what eight devices save against one. What they *lose* is what they take longer than an eighth of its
    time."""
    return ONE - EIGHT if row == "gradients: ms that eight devices lose" else None


@speedups.mistake
def saved_against_one_device(row):
    """That is saved against the run on *one* device. Both of these runs are on eight: with and without tensor
    parallelism. Which of the two is the time before?"""
    return 100 * (ONE - TENSOR) / ONE if row == "tensor parallelism: percent saved" else None


@speedups.mistake
def percent_of_the_time_after(row):
    """The saving was held against the time *after* it. What is saved is a part of what there was before."""
    return 100 * (EIGHT - TENSOR) / TENSOR if row == "tensor parallelism: percent saved" else None


@speedups.mistake
def took_the_mean(row):
    """That is the mean, with the slow run in it. Five runs, four of them alike and one slow: what are the two
    times, so that mean and deviation come out as printed?"""
    return MEAN if row == "sin: ms of a usual run" else None


@speedups.mistake
def mean_less_deviation(row):
    """A deviation taken off the mean leaves a time below zero here. Let four runs take t, and one take s: write
    down their mean and their deviation."""
    return MEAN - DEVIATION if row == "sin: ms of a usual run" else None


@speedups.mistake
def deviation_of_a_sample(row):
    """That is so where the squares are divided by four, one less than there are runs, as for a sample. The deviation
    that was printed is the root of their mean over all five."""
    return MEAN - DEVIATION / math.sqrt(RUNS) if row == "sin: ms of a usual run" else None


@speedups.mistake
def with_tensor_parallelism(row):
    """That is from the best of the recorded runs. It has tensor parallelism as well, and a row of its own: which of the
    two runs on eight devices is data parallel alone?"""
    return {
        "gradients: speed-up": ONE / TENSOR,
        "gradients: efficiency": ONE / TENSOR / 8,
        "gradients: ms that eight devices lose": TENSOR - ONE / 8,
    }.get(row)


# Why a clock did not show what was hoped for.

REASONS = (
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)",
)


def _one_machine():
    """Simulated devices are threads of one process: all of them say the same host and the same kind."""
    return "one machine" if len({(d.process_index, d.device_kind) for d in jax.devices()}) == 1 else "slow links"


def _alike(batch=8192, widths=(784, 8192, 8192, 8192, 10), cut=(1, 2)):
    """Of one step of the documentation's network on 8 × 1 and on 4 × 2 devices: what each device has as much of.

    On 4 × 2 the second and third of its four layers are cut over the second axis, by columns and then by rows.
    """

    def per_device(data, model):
        parts = [model if k in cut else 1 for k in range(len(widths) - 1)]
        sizes = [d * f for d, f in itertools.pairwise(widths)]
        weights = sum(size / part for size, part in zip(sizes, parts, strict=True))
        sums = 2 * batch / data * widths[2]  # the third layer's output, and the gradient of the second's input
        return {
            "FLOPs": weights * batch / data,
            "memory": weights,
            "bytes sent": 2 * (data - 1) / data * weights + 2 * (model - 1) / model * sums,
        }

    one, other = per_device(8, 1), per_device(4, 2)
    return min(one, key=lambda name: abs(math.log(other[name] / one[name])))


def _scaled(row):
    """Measure a layer before and after; the longer of arithmetic and wire is the time."""
    how = "tensor parallel" if "tensor" in row else "data parallel"
    fast = 1e6 if row.startswith("communication") else 1e-6  # FLOPs in the time of a byte

    def seconds(b, n):
        x, y = (1, n) if "tensor" in row else (n, 1)
        backward = measured(how, b, 64, 64, x, y)[1]
        return max(backward.flops / fast, backward.sent)

    after = (128, 4) if row.endswith("batch") else (64, 8)
    ratio = seconds(*after) / seconds(64, 4)
    return min(("halves", 0.5), ("stays", 1.0), ("doubles", 2.0), key=lambda o: abs(math.log(o[1] / ratio)))[0]


def _reason(row):
    return _one_machine() if row == REASONS[0] else _alike() if row == REASONS[1] else _scaled(row)


WHY_NO_SPEEDUP_ASKS = {
    "simulated": "Who does the arithmetic of eight simulated devices, and who that of one?",
    "ms": "On 8 × 1 and on 4 × 2 devices: what has each device to multiply, to hold, and to send?",
    "compute-bound": "The arithmetic takes longer than the wire. How much of it has each of twice as many devices?",
    "batch": "The wire takes longer than the arithmetic. What travels along it: something for each row of the batch, "
    "or gradients of the weights?",
    "communication-bound": "The wire takes longer than the arithmetic. An all_reduce over n devices sends 2(n-1)/n of "
    "an array: which array is that here, and how does it grow with n?",
}
why_no_speedup = TableExercise("why_no_speedup", points=3, reference=_reason, questions=WHY_NO_SPEEDUP_ASKS)
why_no_speedup.rows(REASONS)


@why_no_speedup.mistake
def blamed_the_wire(row):
    """Nothing travels far here: all eight simulated devices live in one process. Who does the multiplying for
    each of them? `os.cpu_count()` is a hint."""
    return "slow links" if row == REASONS[0] else None


@why_no_speedup.mistake
def blamed_the_size(row):
    """A product of two 2048 × 2048 matrices is 17 billion FLOPs: there is enough to share. But how many cores are
    there to share it among?"""
    return "little work" if row == REASONS[0] else None


@why_no_speedup.mistake
def thought_memory_was_alike(row):
    """The large weights are cut over two devices in the second program, and whole on each in the first. What does
    each device have about as much of in both?"""
    return "memory" if row == REASONS[1] else None


@why_no_speedup.mistake
def thought_bytes_were_alike(row):
    """On 4 × 2 devices the gradients that are added up are about half as large, and a few activations travel besides.
    What does each device have about as much of in both?"""
    return "bytes sent" if row == REASONS[1] else None


@why_no_speedup.mistake
def more_devices_always_help(row):
    """Twice the devices have half the arithmetic each. But the wire is what takes the time here: does a device
    send less than before?"""
    return "halves" if "devices" in row and row.startswith("communication") else None


@why_no_speedup.mistake
def more_rows_more_bytes(row):
    """Twice the batch is twice the arithmetic. What takes the time here is the wire, and what travels along it are
    gradients of the *weights*: do they grow with the batch?"""
    return "doubles" if "twice the batch" in row else None


@why_no_speedup.mistake
def nothing_left_to_gain(row):
    """While the arithmetic takes longer than the wire, it decides. How much of it has each of twice as many
    devices?"""
    return "stays" if row.startswith("compute") else None
