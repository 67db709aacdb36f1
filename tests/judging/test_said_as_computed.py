"""Nothing that is computed is said more widely than it was computed."""

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.arrays.described import HELD, Observed, OnDevices, OnMesh
from grader.exercises.answers import Problem
from grader.exercises.errors import meaning
from grader.judging.evidence import evidence
from grader.judging.processes import _difference
from grader.judging.relations import relations_of
from grader.judging.traits import apart
from grader.judging.tried import Tried
from grader.judging.wrong_entries import untold

NAN = float("nan")
X = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
DUE = X * np.float32([1] * 7 + [1e-7])[:, np.newaxis]
OFF_BY_ROWS = np.append(X[:7] * np.arange(1, 8, dtype=np.float32)[:, np.newaxis], np.float32([[7e-6, 1e-6, 9e-6]]), 0)


def two_arrays(*orders):
    meshes = [OnMesh({"x": 2}, order=order) for order in orders]
    return [{name: OnDevices(np.ones(8), mesh, P("x")) for name, mesh in zip("ab", meshes, strict=True)}]


def laid(*devices):
    return Observed({HELD: {f"device {k}": {f"[0:{len(block)}]": np.array(block)} for k, block in enumerate(devices)}})


@pytest.mark.parametrize(
    ("found", "due", "given", "untrue"),
    [
        (laid(*[[1.0, 9, 3, 4]] * 2), laid(*[[1.0, 2, 3, 4]] * 2), {}, "Of its 8 numbers"),  # 4, in two copies
        (
            np.array([1.0, 5.0, 323.4567, 900.12346]),
            np.array([1.0, 5.0, 7.0, 8.0]),
            {"rate": 0.0001},
            "once or several times",  # any number is so many times one that is small
        ),
        (np.array([True, True]), np.array([False, False]), {}, "and False wherever True is"),  # which is nowhere
        ([[3, 1]], [[1], [3, 1]], {}, "made of several"),  # for 1 would be in it twice
        (24, 3, {"lengths": {"width": 4, "heads": 2}}, "the number of all devices"),  # these are no axes
        (2, (1, 2), {}, "entry 1 of what is due, alone"),  # counted from where?
        ([1, 3], 3, {}, "entry 1 of it, alone"),
        (np.array([[1, 2], [3, 5]]), np.array([[1, 2], [3, 4]]), {}, "only number 0 is"),
        (0.5 * X, 2 * X, {"x": X}, "something besides"),  # it is a quarter of what is due
        ([1e-9, 3e-9], [np.ones(2)] * 2, {"blocks": [np.full(2, 4e-9), np.full(2, 7e-9)]}, "Each entry"),
        ((0, 2), (0, 4), {"shape": (0, 8)}, "divided by the one that is due"),  # 0 divided by 0
        (True, False, {"n": 1}, "as it was given"),  # that was a number
        ([[2, 2], [3, 8]], [[1, 2], [3, 4]], {}, "every wrong entry: it is 2 times"),  # a number in each
        (
            [[3, 4], [1, 2]],
            [[1, 2], [3, 4]],
            {},
            "not in the groups",  # the groups are right, and in another order
        ),
        (
            [3.0, 3.0],
            [np.ones(2), np.ones(3)],
            {"blocks": [np.array([1.0]), np.array([5.0, 5.0, 5.0])]},
            "the mean of all",  # which is 4
        ),
        (-40, -5, {"n": 8}, "too large"),  # it is smaller
        (1003.9, 1, {}, "off by a factor such as there is between two units"),  # it is near one
        (4.12003, 4.12345, {}, "no more than two digits"),
        (np.array([2, 7]), np.array([1, 7]), {"n": 2.5}, "never smaller than `n`"),
        (np.array([True, True]), np.array([False, True]), {"n": 2}, "never smaller than `n`"),
        (np.arange(6)[::-1].reshape(2, 3), np.arange(6), {}, "The numbers are right, but the shape"),  # and the order
        (
            np.arange(1.0, 13).reshape(6, 2) ** 1.5 * np.arange(1, 7)[:, None],
            np.arange(1.0, 13).reshape(6, 2) ** 1.5,
            {},
            "a device's block",  # there are no devices
        ),
    ],
)
def test_of_one_value_nothing_is_said_that_is_not_so(found, due, given, untrue):
    assert not [words for words in relations_of(found, due, given) if untrue in words]


def test_an_argument_that_is_returned_is_not_itself_and_a_trace_more():
    mesh = OnMesh({"x": 2})
    x = np.float32([10000, 20000, 30000, 40000, 50000, 60000, 70000, 81234])
    y = x + np.float32([0, 0.01, 0, 0.01, 0, 0.01, 0, 0.01])
    held = [
        Observed({HELD: {f"device {k}": {f"[{4 * k}:{4 * k + 4}]": a[4 * k : 4 * k + 4]} for k in range(2)}})
        for a in (y, np.float32(x * x % 977))
    ]
    said = list(relations_of(*held, {"x": OnDevices(x, mesh, P("x"))}))
    assert not [words for words in said if words.startswith("It is `x` +")]


def test_what_was_not_returned_is_not_the_same():
    cases = [Tried(7 * n * n, n + m * m, {"n": n, "m": m}) for n in (3, 4) for m in (5, 6, 8)]
    stopped = Tried(None, 3 + 9 * 9, {"n": 3, "m": 9})
    assert "in `m` alone" not in evidence([*cases, stopped])  # there it stops


def test_arrays_that_are_written_alike_may_differ():
    mesh = OnMesh({"x": 2})
    arrays = [OnDevices(np.full(8, k), mesh, P("x")) for k in range(4)]
    cases = [Tried(7 + 90 * k, 3 + m * m, {"a": a, "m": m, "k": k}) for m, a in enumerate(arrays) for k in (0, 1)]
    assert "in `m` alone" not in evidence(cases)  # it is never so


def test_a_number_that_is_right_in_some_wrong_pairs_is_not_wrong_wherever_these_are():
    pairs = [((9, 64), (8, 64)), ((20, 30), (16, 32)), ((24, 10), (24, 21))]
    said = evidence([Tried(found, due, {"k": k}) for k, (found, due) in enumerate(pairs)])
    assert "Wherever it is wrong, number 0 is too large and number 1" not in said
    assert "Where number 0 is wrong, it is too large; where number 1 is wrong, it is too small" in said


@pytest.mark.parametrize(("found", "due"), [({"a": NAN, "b": 2}, {"a": 5, "b": 2}), ((NAN, 3.0, 5.0), (4, 2, 5))])
def test_what_is_no_number_is_neither_too_large_nor_too_small(found, due):
    cases = [Tried(found, due, {"n": str(n) * 50}) for n in range(4)]
    said = evidence([*cases, Tried(found, due, {"n": "x" * 50})])
    assert "too small" not in said


def test_numbers_that_are_no_numbers_are_not_on_the_other_side():
    large = [Tried(n + 0.7 * n * n, n, {"n": n}) for n in (3, 4, 5)]
    none = [Tried(NAN, n, {"n": -n}) for n in (3, 4, 6)]
    assert "too small" not in evidence([*large, *none])


def test_with_what_a_factor_grows_is_said_of_wrong_ones_that_differ_in_it_alone():
    """Here 11 is larger than 3, and 22 times too large less than 30 times: for `m` is another, too."""
    off = {(3, 9): 30.3, (5, 9): 37.7, (7, 9): 41.9, (11, 2): 21.3, (13, 2): 22.9}
    cases = [Tried(off[n, m] * (n + m), n + m, {"n": n, "m": m}) for n, m in off]
    said = evidence(cases)
    assert "Of the wrong ones: the larger `n`" not in said
    assert "Of wrong ones that differ in `n` alone: the larger that is, the more times too large." in said


def test_an_exception_for_errors_needs_a_right_case_that_raises():
    right = [Tried(1, 1, {"a": a, "b": 2 * a}, True) for a in (2, 4)]
    raised = [Tried(None, ValueError("odd"), {"a": a, "b": a + 1}, True) for a in (2, 4)]
    wrong = [Tried(1, ValueError("odd"), {"a": a, "b": a + 3}) for a in (5, 7)]
    assert "but for those where an error is due" not in evidence([*right, *raised, *wrong])


def test_two_empty_values_are_not_one():
    pairs = [({}, {}), ({"0": 1}, {"0": 2}), ([], []), ({"5": 1}, {"0": 2, "1": 7})]
    cases = [Tried(found, due, {"n": str(k) * 50}, found == due) for k, (found, due) in enumerate(pairs)]
    assert "only where {} is due" not in evidence(cases)


def test_what_is_so_of_one_process_is_not_said_of_the_case():
    pairs = [(["a", 1, 4], ["a", 2, 8]), (["a", 2, 7], ["a", 3, 8])]
    cases = [Tried(*pair, {"process_id": k}) for k, pair in enumerate(pairs)]
    assert evidence(cases, among="processes").startswith("In this process, of the entries only")


@pytest.mark.parametrize(
    ("wrong", "right", "untrue"),
    [
        ([{"n": 3}, {"n": 6}], [{"n": 0}, {"n": 4}], "no power of two"),  # nor is 0
        (
            [{"m": OnMesh({"a": 2, "b": 2, "c": 4})}],
            [{"m": OnMesh({"a": 2, "b": 4, "c": 1})}],
            "where axes of `m` are of one size",  # two of them
        ),
        ([{"spec": P("x", "y")}], [{"spec": P("x")}], "cuts more than one"),  # an axis may be of one device
        (two_arrays((), (0, 1)), two_arrays((), ()), "in another order"),  # it is the same order, written down
        (two_arrays((), (2, 3)), two_arrays((), ()), "in another order"),  # they are other devices
    ],
)
def test_a_trait_is_what_its_words_say(wrong, right, untrue):
    assert untrue not in apart(wrong, right)


def test_a_number_that_is_nearly_so_many_times_another_is_not_called_so_many_times_that():
    assert untold(20001, 10000) == "It is too large, by nearly a whole factor. " + untold(20000, 10000).split(". ")[1]
    assert untold(20000, 10000).startswith("It is too large, by a whole factor.")


def test_values_are_shown_as_they_are_written():
    words = _difference(1, (1, False), (2, True), ("count", "flag"))
    assert words == "In process 1 count should be 2; it is 1. Flag should be True; it is False."


@pytest.mark.parametrize(
    ("error", "message", "untrue"),
    [
        ("KeyError", "3", "A dict was asked"),  # or a set
        ("DuplicateSpecError", "P(('x', 'x')) has duplicate entries for `x`", "two dimensions of the same array"),
        (
            "TypeError",
            "dot_general requires lhs batch dimensions and rhs batch dimensions to have the same shape",
            "summed over",
        ),
        ("ValueError", "Incompatible shapes for broadcasting: shapes=[(2,), (3,), (4,)]", "Two arrays"),
    ],
)
def test_of_an_error_it_is_said_what_it_means_wherever_it_comes(error, message, untrue):
    assert untrue not in meaning(Problem("error", error, message))


def test_a_large_whole_number_is_told_exactly():
    cases = [Tried(n * n + 1234567, n * n, {"n": n}) for n in (31, 57, 68)]
    assert "1234567 too large" in evidence(cases)


def test_of_a_row_so_small_that_it_is_right_anyhow_no_factor_is_told():
    assert any("by another (from 1 to 7)" in words for words in relations_of(OFF_BY_ROWS, DUE, {}))
