"""§ 9–11: the order of a sum, how close is close enough, whole numbers, and what an index sends."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh, put
from grader.exercises import Case, FunctionExercise, TableExercise
from grader.lessons.shared import believed
from grader.programs.walk import compiled_structure

ROUNDING = 2.0**-24  # u: one rounding in float32, relative to what is rounded

# The order of a sum. Random float32 numbers, then whole ones, added up in different ways.


@functools.cache
def _numbers(whole=False):
    rng = np.random.default_rng(20)
    return rng.integers(1, 10, 8000).astype(np.float32) if whole else rng.standard_normal(8000).astype(np.float32)


def _over(devices, numbers, across=lax.psum, within=jnp.sum):
    mesh = make_mesh({"x": devices})
    body = jax.shard_map(lambda block: across(within(block), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    return np.asarray(jax.jit(body)(put(numbers, P("x"), mesh)))


def _one_by_one(numbers):
    total = np.float32(0)
    for number in numbers:
        total = np.float32(total + number)
    return total


def _around(numbers):
    """What each of eight devices has after adding up what comes by on a ring."""

    def body(block):
        total = block
        for _ in range(7):
            block = lax.ppermute(block, "x", [(k, (k + 1) % 8) for k in range(8)])
            total = total + block
        return total

    mesh = make_mesh({"x": 8})
    summed = jax.shard_map(lambda block: body(block.sum()[None]), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    return np.asarray(jax.jit(summed)(put(numbers, P("x"), mesh)))


def _said(*values):
    return "equal" if all(np.array_equal(values[0], other) for other in values) else "not equal"


ORDERS = {
    "psum over 8 devices, and a loop that adds one by one": lambda: _said(
        _over(8, _numbers()), _one_by_one(_numbers())
    ),
    "psum over 8 devices, the same program twice": lambda: _said(_over(8, _numbers()), _over(8, _numbers())),
    "a ring on 8 devices: the copies": lambda: _said(*_around(_numbers())),
    "psum and the loop, of whole numbers in float32": lambda: _said(
        _over(8, _numbers(whole=True)), _one_by_one(_numbers(whole=True))
    ),
    "pmax over 8 devices, and NumPy's max": lambda: _said(_over(8, _numbers(), lax.pmax, jnp.max), _numbers().max()),
    "psum over 8 devices, and over the same numbers shuffled": lambda: _said(
        _over(8, _numbers()), _over(8, np.random.default_rng(1).permutation(_numbers()))
    ),
}


@functools.cache
def _ordered(row):
    return ORDERS[row]()


float_order = TableExercise("float_order", points=3, reference=_ordered)
float_order.rows(ORDERS)


@float_order.mistake
def thought_addition_has_no_order(row):
    """In floating point (a + b) + c and a + (b + c) may differ: after each step the sum is rounded. Is the order the
    same in both? Print the two with all their digits."""
    return believed(
        row,
        "equal",
        "psum over 8 devices, and a loop that adds one by one",
        "psum over 8 devices, and over the same numbers shuffled",
    )


@float_order.mistake
def thought_copies_are_copies(row):
    """On a ring each device starts with its own number, then adds its neighbour's, and so on: the same eight numbers in
    eight orders. Who would make the results equal?"""
    return believed(row, "equal", "a ring on 8 devices: the copies")


@float_order.mistake
def thought_it_is_chance(row):
    """The order is not drawn by lot: here it is settled when the program is compiled. The same program on the same
    devices and the same numbers adds in the same order. Run it twice."""
    return believed(row, "not equal", "psum over 8 devices, the same program twice")


@float_order.mistake
def thought_float_is_never_exact(row):
    """What is rounded, when two whole numbers below 2²⁴ are added in float32? This is why the grader likes to draw
    whole numbers."""
    return believed(row, "not equal", "psum and the loop, of whole numbers in float32")


@float_order.mistake
def thought_a_maximum_is_rounded(row):
    """A maximum is one of the numbers, as it was. Nothing is computed that could be rounded."""
    return believed(row, "not equal", "pmax over 8 devices, and NumPy's max")


# How close is close enough: n roundings, each of at most u, relative to the largest entry.


def _agree(found, expected, roundings):
    bound = roundings * ROUNDING * np.abs(expected).max()
    return bool((np.abs(found - expected) <= bound).all())


agree = FunctionExercise("agree", points=4, reference=_agree)


@agree.cases
def _(draw):
    expected = draw.values(16) / np.float32(8)
    expected[0], expected[3], expected[5] = 4.0, 2.0, 2.0**-12  # the largest, the next, and a small one

    def off(at, roundings, scale=1.0):
        """What was expected, but for an entry or some, off by so many roundings of the largest."""
        found = expected.astype(np.float64) * scale
        found[at] += scale * roundings * ROUNDING * 4.0
        return {"found": found.astype(np.float32), "expected": expected * np.float32(scale)}

    yield Case({**off(3, 0), "roundings": 8})
    yield Case({**off([1, 2, 3], 6), "roundings": 8})  # each of them within it, and not what they come to together
    yield Case({**off(5, 6), "roundings": 8})  # far off, relative to that small entry
    yield Case({**off(0, 6), "roundings": 8})
    yield Case({**off(5, 0.5), "roundings": 8})
    yield Case({**off(5, 100), "roundings": 8})
    yield Case({**off(3, 12), "roundings": 8})  # within 8·2⁻²³
    yield Case({**off(3, -40), "roundings": 8})
    yield Case({**off(3, 40, 2.0**-20), "roundings": 8})  # small numbers, and wrong
    yield Case({**off(3, 40), "roundings": 8})
    yield Case({**off(3, 6000), "roundings": 8000})
    yield Case({**off(3, 8), "roundings": 8})  # exactly the bound is within it
    yield Case({**off(0, 8002), "roundings": 8000})  # within it only if it is taken from what was found
    yield Case({"found": -off(3, 6)["found"], "expected": -expected, "roundings": 8})  # the largest is negative
    broken = expected.copy()
    broken[3] = np.nan
    yield Case({"found": broken, "expected": expected, "roundings": 8})
    yield Case({"found": expected, "expected": broken, "roundings": 8})
    yield Case({"found": broken, "expected": broken, "roundings": 8})
    yield Case({"found": np.zeros(4, np.float32), "expected": np.zeros(4, np.float32), "roundings": 8})
    table = {name: value.reshape(4, 4) for name, value in off(15, 6).items()}  # in a row without the largest
    yield Case({**table, "roundings": 8})
    yield Case({"found": expected / 4, "expected": expected, "roundings": 320})


@agree.mistake
def asked_for_equal(found, expected, roundings):
    """A right program that adds in another order was called wrong: to the last bit is too much to ask. How many
    roundings may there have been?"""
    return bool((found == expected).all())


@agree.mistake
def relative_to_each_entry(found, expected, roundings):
    """Is a difference compared with the entry it belongs to? An entry near zero may be what is left of large terms that
    cancelled, and carries *their* roundings. Which magnitude bounds them all?"""
    return bool((np.abs(found - expected) <= roundings * ROUNDING * np.abs(expected)).all())


@agree.mistake
def a_fixed_distance(found, expected, roundings):
    """So it is with one fixed distance, whatever is compared. For numbers of a millionth that calls everything equal,
    and for sums of thousands it is too little. A bound needs the size of the numbers, and how many were added."""
    return bool((np.abs(found - expected) <= 1e-5).all())


@agree.mistake
def left_to_allclose(found, expected, roundings):
    """`np.allclose` has bounds of its own, which know nothing of how many numbers were added, and one of them is the
    same for large numbers and for small ones."""
    return bool(np.allclose(found, expected))


@agree.mistake
def forgot_the_sign(found, expected, roundings):
    """The difference is negative where `found` is too small, and a negative number is below every bound. What has to be
    around it?"""
    return bool((found - expected <= roundings * ROUNDING * np.abs(expected).max()).all())


@agree.mistake
def averaged_the_error(found, expected, roundings):
    """One entry is wrong, and fifteen right ones hide it, as in a *mean* of the differences. Every entry has to be
    within the bound."""
    return bool(np.abs(found - expected).mean() <= roundings * ROUNDING * np.abs(expected).max())


@agree.mistake
def looked_for_a_difference_that_is_too_large(found, expected, roundings):
    """nan is larger than nothing, so asking whether any difference is *too large* lets it pass. Ask whether all of
    them are small enough: nan is not that either."""
    return not (np.abs(found - expected) > roundings * ROUNDING * np.abs(expected).max()).any()


@agree.mistake
def took_the_distance_between_numbers(found, expected, roundings):
    """2⁻²³, `np.finfo(np.float32).eps`, is the distance from 1 to the next number. Rounding goes to the *nearer* one:
    it is off by half of that at most."""
    return bool((np.abs(found - expected) <= 2 * roundings * ROUNDING * np.abs(expected).max()).all())


@agree.mistake
def a_single_rounding(found, expected, roundings):
    """The bound for one rounding gives this. A sum of thousands of numbers is rounded thousands of times: where does
    `roundings` come in?"""
    return bool((np.abs(found - expected) <= ROUNDING * np.abs(expected).max()).all())


@agree.mistake
def ten_in_a_million(found, expected, roundings):
    """So it is with one fixed part of the largest entry, such as 1e-5: better than a bound that is absolute. But short
    sums deserve less, and long ones more. How many roundings were there?"""
    return bool((np.abs(found - expected) <= 1e-5 * np.abs(expected).max()).all())


# Whole numbers in collectives. Eight devices, one number on each.

INTEGERS = {
    "pmean of int32": (lambda a: lax.pmean(a, "x"), np.array([4, 5, 5, 5, 4, 5, 5, 5], np.int32)),
    "psum of int32, // 8": (lambda a: lax.psum(a, "x") // 8, np.array([4, 5, 5, 5, 4, 5, 5, 5], np.int32)),
    "psum of int8": (lambda a: lax.psum(a, "x"), np.full(8, 100, np.int8)),
    "pmean of int8": (lambda a: lax.pmean(a, "x"), np.full(8, 100, np.int8)),
    "pmean of int8, made float32 first": (lambda a: lax.pmean(a.astype(jnp.float32), "x"), np.full(8, 100, np.int8)),
    "psum of bool": (lambda a: lax.psum(a, "x"), np.array([True, False] * 4)),
}


@functools.cache
def _integers(row):
    body, numbers = INTEGERS[row]
    mesh = make_mesh({"x": 8})
    result = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P()))(put(numbers, P("x"), mesh))
    return np.asarray(result)[0].item(), str(result.dtype)


int_pmean = TableExercise("int_pmean", points=3, reference=_integers)
int_pmean.rows(INTEGERS)


@int_pmean.mistake
def a_mean_of_integers_is_one(row):
    """A mean divides, and JAX's division of whole numbers gives a float. What was a counter before is none any more,
    and a loop that carries it stops with a type error."""
    return believed(row, (4, "int32"), "pmean of int32")


@int_pmean.mistake
def rounded_the_mean(row):
    """Nothing is rounded to a whole number: the sum is 38, and 38 / 8 is no whole number."""
    return believed(row, (5, "int32"), "pmean of int32")


@int_pmean.mistake
def divided_as_floats(row):
    """`//` stays with whole numbers: it drops what is left over, and the dtype remains."""
    return believed(row, (4.75, "float32"), "psum of int32, // 8")


@int_pmean.mistake
def thought_sums_make_room(row):
    """`jnp.sum` adds int8 up in a wider type, and `psum` does not: the sum of eight hundreds has to fit into eight
    bits. 800 modulo 256 is what is left, without an error."""
    return believed(row, (800, "int32"), "psum of int8")


@int_pmean.mistake
def stopped_at_the_largest(row):
    """A number that is too large for an int8 does not stop at the largest: it goes round, through −128. How often does
    800 go round 256, and what is left?"""
    return believed(row, (127, "int8"), "psum of int8")


@int_pmean.mistake
def widened_the_value_only(row):
    """What is the largest number that an int8 can hold?"""
    return believed(row, (800, "int8"), "psum of int8")


@int_pmean.mistake
def thought_a_mean_cannot_overflow(row):
    """The mean of equal numbers is that number, in mathematics. Here the *sum* comes first, in int8, and then it is
    divided. What was the psum?"""
    return believed(row, (100.0, "float32"), "pmean of int8")


@int_pmean.mistake
def thought_converting_does_not_help(row):
    """Converted first, the numbers are added as float32, where eight hundreds have room."""
    return believed(row, (4.0, "float32"), "pmean of int8, made float32 first")


@int_pmean.mistake
def thought_bools_stay_bools(row):
    """True and True is not True, but 2: bools are counted. With which dtype would that be possible?"""
    return believed(row, (True, "bool"), "psum of bool")


# What an index sends: how many collectives, and on how many devices the result is. x is float32[8, 16] on 8 devices.


ROWS, COLUMNS = P("x", None), P(None, "x")
INDEXED = {
    "x[0], x cut by rows": (lambda x: x[0], ROWS),
    "x[0], x cut by columns": (lambda x: x[0], COLUMNS),
    "x[:, 0], x cut by rows": (lambda x: x[:, 0], ROWS),
    "x.sum(0), x cut by rows": (lambda x: x.sum(0), ROWS),
    "2 * x, x cut by rows": (lambda x: 2 * x, ROWS),
    "x.addressable_shards[0].data, x cut by rows": (None, ROWS),
}


@functools.cache
def _sent(row):
    """Count the collectives in the compiled program, and the devices that its result is on."""
    fn, spec = INDEXED[row]
    x = put(np.arange(1, 129, dtype=np.float32).reshape(8, 16), spec, make_mesh({"x": 8}))
    if fn is None:  # no program runs: it is a piece of x that is there already
        return 0, len(x.addressable_shards[0].data.sharding.device_set)
    compiled = jax.jit(fn).lower(x).compile()
    return len(compiled_structure(compiled, {"x": 8}).collectives), len(fn(x).sharding.device_set)


first_of = TableExercise("first_of", points=3, reference=_sent)
first_of.rows(INDEXED)
FIRST = "x[0], x cut by rows", "x[:1], x cut by rows"


@first_of.mistake
def thought_it_lies_where_the_row_lay(row):
    """Device 0 holds the row, so it could stay there. But it is a program on eight devices that takes it, and its
    result is on eight devices: all the others get a copy. Ask `communication`."""
    return believed(row, (0, 1), *FIRST)


@first_of.mistake
def forgot_where_the_copies_come_from(row):
    """On eight devices it is: right. Seven of them had nothing of this row. How did it come to them?"""
    return believed(row, (0, 8), *FIRST)


@first_of.mistake
def sent_it_to_one(row):
    """Something is sent: right. But to whom? Look at `x[0].sharding`."""
    return believed(row, (1, 1), *FIRST)


@first_of.mistake
def thought_an_index_always_sends(row):
    """Nothing in this line goes along the dimension that is cut. Every device has its part of the result already."""
    return believed(row, (1, 8), "x[0], x cut by columns", "x[:, 0], x cut by rows", "2 * x, x cut by rows")


@first_of.mistake
def thought_a_sum_is_free(row):
    """The rows are on eight devices, and the sum runs across them. What has to happen?"""
    return believed(row, (0, 8), "x.sum(0), x cut by rows")


@first_of.mistake
def thought_a_shard_is_made(row):
    """A shard's `.data` is the array that is already there, on its one device. No program runs for it."""
    return believed(row, (1, 8), "x.addressable_shards[0].data, x cut by rows")


@first_of.mistake
def thought_a_shard_is_everywhere(row):
    """Nothing is sent: right. Then on how many devices can it be?"""
    return believed(row, (0, 8), "x.addressable_shards[0].data, x cut by rows")
