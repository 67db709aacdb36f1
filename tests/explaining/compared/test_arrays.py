"""How a wrong array relates to the expected one: arrays on devices, and plain ones."""

import itertools

import numpy as np
import pytest

from grader.explaining.compared.arrays import SEARCHES, relations
from grader.explaining.compared.compared import Compared, plain_array
from grader.findings.arrays import (
    AllZero,
    ElementsMisplaced,
    FactorIs,
    NotFinite,
    OffByFactor,
    OnlyDevicesRight,
    ReplicasDisagree,
    RightAlong,
    SameOnAllDevices,
    SameSizeOtherShape,
    WrongZeros,
)
from grader.findings.quantities import Quantity

MESH = {"x": 2, "y": 2}
WIDE, TALL = {"x": 2, "y": 4}, {"x": 4, "y": 2}
ROWS = [np.float32(block) for block in np.random.default_rng(0).normal(size=(4, 2, 4)) * 10]
EIGHT = [np.float32(block) for block in np.random.default_rng(1).normal(size=(8, 2, 3))]
MASKED = [np.where(np.arange(8).reshape(2, 4) % 3 == d % 3, 0, block) for d, block in enumerate(ROWS)]
COLUMN = np.arange(4)
X, Y, ALL = Quantity("devices along", "x"), Quantity("devices along", "y"), Quantity("all devices")
N, LENGTH = Quantity("argument", "n"), Quantity("length", "a", 0)


def on_devices(found, expected=ROWS, mesh=MESH, places=None, **more):
    return Compared(found, expected, mesh, places or [str(d) for d in range(len(found))], **more)


def every(change, blocks=ROWS):
    return [change(block) for block in blocks]


def first(*cases):
    return next(relations(*cases), None)


@pytest.mark.parametrize(
    ("found", "finding"),
    [
        (every(lambda b: -b), OffByFactor(-1, None)),
        (every(lambda b: b / 3), OffByFactor(0.3333, None)),
        (every(np.zeros_like), AllZero()),
        ([*ROWS[:2], 0 * ROWS[2], 0 * ROWS[3]], WrongZeros(lost=True, left=False)),
        (every(lambda b: np.where(b > 0, b, np.nan)), NotFinite("nan")),
        (every(lambda b: np.where(b > 0, b, np.inf)), NotFinite("inf")),
        (every(lambda b: np.where(b > 0, b, -np.inf)), NotFinite("-inf")),
        ([b.ravel()[[3, 1, 2, 0, 4, 5, 7, 6]].reshape(2, 4) for b in ROWS], ElementsMisplaced("block")),
        (list(np.reshape(ROWS, (2, 2, 2, 4)).swapaxes(0, 2).reshape(4, 2, 4)), ElementsMisplaced("devices")),
        ([ROWS[0] - 50] * 4, SameOnAllDevices(None)),
        ([ROWS[0] - 50, ROWS[1] + 50] * 2, SameOnAllDevices("x")),
        (every(lambda b: np.where(COLUMN % 2, b - 99, b)), RightAlong(1, (0, 2), 4)),
        (every(lambda b: np.where(COLUMN < 3, b, b - 99)), RightAlong(1, (0, 1, 2), 4)),
        ([np.concatenate([b[:1], np.sin(b[1:])]) for b in ROWS], RightAlong(0, (0,), 2)),
        ([*ROWS[:2], *every(np.sin, ROWS[2:])], OnlyDevicesRight("x", (0,))),
        ([ROWS[0], *every(np.sin, ROWS[1:3]), ROWS[3]], OnlyDevicesRight(None, (0, 3))),
    ],
)  # fmt: skip
def test_of_all_blocks_the_most_telling_relation_is_told_first(found, finding):
    assert first(on_devices(found)) == finding


def test_the_most_telling_searches_come_first():
    """So that whoever takes the first finding takes the one with the highest rank."""
    for found in (every(np.zeros_like), every(lambda b: np.where(COLUMN % 2, b - 99, b))):
        ranks = [finding.rank for finding in relations(on_devices(found))]
        assert ranks == sorted(ranks, reverse=True)
    assert len(SEARCHES) == len(set(SEARCHES))


@pytest.mark.parametrize(
    ("found", "finding"),
    [
        (every(lambda b: np.where(b < 0, 0, b)), WrongZeros(lost=True, left=False)),
        ([np.where(m == 0, b, m) for m, b in zip(MASKED, ROWS, strict=True)], WrongZeros(lost=False, left=True)),
        ([np.where(b > 0, b, 0) for b in ROWS], WrongZeros(lost=True, left=True)),
        ([np.where(b > 0, 2 * b, 0) for b in ROWS], None),
    ],
)
def test_zeros_in_other_places_are_told(found, finding):
    expected = ROWS if finding and not finding.left else MASKED
    assert first(on_devices(found, expected)) == finding


@pytest.mark.parametrize(
    ("replicas", "together"),
    [
        (lambda b: [b / 4 + k for k in (-3, -1, 1, 3)], "sum"),
        (lambda b: [b + k for k in (-3, -1, 1, 3)], "mean"),
        (lambda b: [b + k for k in (-3, -2, -1, 0)], "maximum"),
        (lambda b: [b + k for k in (1, 2, 3, 4)], None),
    ],
)
def test_replicas_that_disagree_are_told_and_what_they_are_together(replicas, together):
    of_each = [replicas(block) for block in EIGHT[:2]]
    found, expected = ([side[d % 2] for d in range(8)] for side in (of_each, EIGHT))
    found = [found[d][d // 2] for d in range(8)]
    seen = on_devices(found, expected, TALL, [str(d % 2) for d in range(8)])
    assert first(seen) == ReplicasDisagree(0, 2, together)


def test_replicas_within_the_tolerance_of_their_case_agree():
    found, expected = [EIGHT[0], EIGHT[0] * 1.0001], [EIGHT[0] + 1] * 2
    assert isinstance(first(on_devices(found, expected, {"x": 2}, ["", ""])), ReplicasDisagree)
    alike = on_devices(found, expected, {"x": 2}, ["", ""], roundings=10_000)
    assert not isinstance(first(alike), ReplicasDisagree)
    nothing = on_devices([np.full((2, 3), np.nan)] * 2, expected, {"x": 2}, ["", ""])
    assert first(nothing) == NotFinite("nan")


@pytest.mark.parametrize(
    ("factor", "numbers", "findings"),
    [
        (lambda mesh, n: mesh["x"], {}, [FactorIs(X, too_large=True), OffByFactor(4, 2)]),
        (lambda mesh, n: 1 / mesh["y"], {}, [FactorIs(Y, too_large=False), OffByFactor(0.5, 0.25)]),
        (lambda mesh, n: 8, {}, [FactorIs(ALL, too_large=True), OffByFactor(8, None)]),
        (lambda mesh, n: n, {N: (13, 9)}, [FactorIs(N, too_large=True), OffByFactor(13, 9)]),
        (lambda mesh, n: 1 / n, {LENGTH: (24, 24)}, [FactorIs(LENGTH, too_large=False), OffByFactor(0.04167, None)]),
        (lambda mesh, n: 2, {LENGTH: (2, 2)}, [OffByFactor(2, None)]),  # many a number is 2
        (lambda mesh, n: mesh["x"] + 3, {}, [OffByFactor(7, 5)]),
        (lambda mesh, n: -1, {}, [OffByFactor(-1, None)]),
    ],
)
def test_a_factor_is_explained_by_a_number_that_follows_it(factor, numbers, findings):
    def case(k, mesh):
        own = {quantity: values[k] for quantity, values in numbers.items()}
        times = np.float32(factor(mesh, next(iter(own.values()), 0)))
        return on_devices(every(lambda b: times * b, EIGHT), EIGHT, mesh, numbers=own)

    assert list(relations(case(0, TALL), case(1, WIDE))) == findings


def test_of_a_single_element_a_factor_is_told_if_it_is_whole_in_two_cases():
    def case(factor, value, mesh):
        expected = [np.float32(value)] * 8
        return on_devices(every(lambda b: b * np.float32(factor), expected), expected, mesh, ["all"] * 8)

    assert first(case(4, 12.3, TALL), case(2, 6.7, WIDE)) == FactorIs(X, too_large=True)
    assert list(relations(case(3, 12.3, TALL), case(3, 6.7, WIDE))) == [OffByFactor(3, None)]
    assert not list(relations(case(3.5, 12, TALL), case(2.5, 6, WIDE)))
    assert not list(relations(case(2, 12, TALL)))


TABLE = np.arange(12).reshape(4, 3) ** 2


@pytest.mark.parametrize(
    ("found", "findings"),
    [
        (TABLE.ravel(), [SameSizeOtherShape(same_elements=True)]),
        (np.roll(TABLE, 1, 0), [ElementsMisplaced("array")]),
        (TABLE * 5, [FactorIs(N, too_large=True), OffByFactor(5, None)]),
        (np.where(np.arange(4)[:, None] == 2, -1, TABLE), [RightAlong(0, (0, 1, 3), 4)]),
        (TABLE > 0, []),
        (TABLE.astype(str), []),
        (TABLE[:0], []),
    ],
)
def test_a_plain_array_is_one_block(found, findings):
    assert list(relations(plain_array(found, TABLE, {N: 5}))) == findings


def test_several_blocks_on_no_mesh_have_no_axes():
    assert first(Compared([b + 1 for b in ROWS[:3]] + [np.sin(ROWS[3])], ROWS)) is None
    assert first(Compared([*ROWS[:3], np.sin(ROWS[3])], ROWS)) is None


BIG, SMALL = np.float32([1000, 1e-3, 2e-3, -1e-3]), np.float32([2000, 5e-3, 0, 1e-3])


@pytest.mark.parametrize(
    ("found", "expected", "mesh", "places", "kind"),
    [
        # Each device holds its own two elements in another order: none is on a wrong device.
        ([np.array([2.0 * d + 1, 2.0 * d]) for d in range(4)], [np.array([2.0 * d, 2.0 * d + 1]) for d in range(4)],
         MESH, "0123", OnlyDevicesRight),
        # Devices along y should hold replicas.
        ([ROWS[0] - 50] * 4, [ROWS[0], ROWS[0], ROWS[1], ROWS[1]], MESH, "0011", ElementsMisplaced),
        # One element that is right in the wrong blocks is right by chance, whatever the right blocks hold.
        ([np.array([9.0, 1, 7])] * 2 + [ROWS[0][0, :3]], [np.array([0.0, 1, 2])] * 2 + [ROWS[0][0, :3]],
         {"x": 3}, "001", RightAlong),
        # An element next to nothing was not lost.
        ([np.array([[9.0, 1, 2], [3, 9, 4], [5, 0, 9]])] * 2, [np.array([[0, 1.0, 2], [3, 0, 4], [5, 1e-12, 0]])] * 2,
         {"x": 2}, "00", AllZero),
        # A factor of one large element is not that of every element.
        ([SMALL], [BIG], {"x": 1}, "0", OffByFactor),
        # A logarithm of a sum of ones is 0 on a device that holds all of it.
        ([np.array([0.13, 0, 2.5, 1.1])] * 4, [np.array([158.4, 7.2, 9.1, 3.3])] * 4, MESH, "0000", AllZero),
    ],
)  # fmt: skip
def test_nothing_is_told_more_widely_than_it_is_true(found, expected, mesh, places, kind):
    assert not any(isinstance(one, kind) for one in relations(Compared(found, expected, mesh, list(places))))


def test_of_all_devices_the_axis_is_told_along_which_they_should_differ():
    found = [ROWS[0] - 50] * 4
    pairs = on_devices(found, [ROWS[0], ROWS[0], ROWS[1], ROWS[1]], MESH, list("0011"))
    assert SameOnAllDevices("x") in relations(pairs)
    three = on_devices(found, [ROWS[0], ROWS[0], ROWS[1], ROWS[2]], {"x": 4}, list("0012"))
    assert SameOnAllDevices(None) in relations(three)


SHAPES = ((8, 2), (2, 3), (8,), (16, 4))


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_of_random_wrong_arrays_nothing_is_told(dtype):
    told = []
    for seed, shape in itertools.product(range(60), SHAPES):
        rng = np.random.default_rng(seed)
        if dtype == "float32":
            found, expected, argument = (np.float32(rng.normal(size=(8, *shape))) for _ in range(3))
        else:
            low, high = (-9, 10) if dtype == "int32" else (0, 2)
            found, expected, argument = (rng.integers(low, high, size=(8, *shape)).astype(dtype) for _ in range(3))
        seen = on_devices(list(found), list(expected), WIDE, numbers={N: 7})
        elsewhere = on_devices(list(found), list(argument), TALL, numbers={N: 5})
        told += [*relations(seen, elsewhere), *relations(plain_array(found, expected, {N: 7}))]
        told += relations(plain_array(found[0], expected[0], {N: 7}))
    assert told == []


@pytest.mark.parametrize(("step", "roundings"), [(1e-3, 1000), (1e-3, 4000), (1e-3, 20000), (1e-4, 4000)])
def test_of_a_state_that_moves_by_little_no_factor_is_told(step, roundings):
    """Factors that are fitted explain what is near anyhow."""
    for seed, shape in itertools.product(range(60), SHAPES):
        rng = np.random.default_rng(seed)
        state, gradient = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
        expected, found = (state - np.float32(step) * g for g in (gradient, np.clip(gradient, -0.7, 0.7)))
        told = relations(Compared([found], [expected], roundings=roundings))
        assert {type(one) for one in told} <= {RightAlong}
