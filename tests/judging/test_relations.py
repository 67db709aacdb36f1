"""What is said of a plain value that no mistake explains."""

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.arrays.described import HELD, Observed
from grader.judging.compared import Compared
from grader.judging.differing import first_difference
from grader.judging.evidence import evidence
from grader.judging.proportions import as_factor
from grader.judging.relations import relations_of
from grader.judging.signatures import signature
from grader.judging.traits import apart
from grader.judging.tried import Tried

X, Y = (np.random.default_rng(seed).normal(size=(8, 3)).astype(np.float32) for seed in (0, 1))


def said(found, due, **given):
    return next(relations_of(found, due, given), "")


def held(*blocks):
    """An array of two columns that is on devices, a row on each."""
    return Observed({HELD: {str(k): {f"{k}:{k + 1}, 0:2": np.array([row])} for k, row in enumerate(blocks)}})


def test_a_column_that_is_right_on_all_devices_is_told():
    due = held((0, 0), (0, 1), (1, 0), (1, 1))
    assert said(held((0, 0), (1, 1), (0, 0), (1, 1)), due) == (
        "Along dimension 1, entry 1 (counted from 0) came out right in every block, and no others did."
    )
    assert "Along dimension" not in said(held((3, 0), (3, 0), (3, 0), (3, 1)), due)


def test_what_is_left_to_1_is_told():
    due = np.float32([[0.2, 0.7], [0.9, 1.0]])
    assert "add up to 1." in signature(Compared([1 - due], [due], {"x": 1}))
    near = np.float32([[1e-5, 0], [1, 1 - 1e-4]])
    assert "add up" not in signature(Compared([1 - near], [near], {"x": 1}))
    assert "add up" not in signature(Compared([1.1 - due], [due], {"x": 1}))


def test_small_numbers_that_stand_under_another_key_in_one_case_are_chance():
    cases = [({"a": 2, "": 1}, {"a": 2, "b": 1}), ({"a": 1, "": 3}, {"a": 1, "b": 2})]
    assert "another name" not in evidence([Tried(found, due, {"n": k}) for k, (found, due) in enumerate(cases)])
    assert "another name" in evidence([Tried(found, due, {"n": 1}) for found, due in cases[:1] * 2])


def test_of_an_array_that_is_still_on_devices_it_is_said_where_it_is_and_not_what_it_holds():
    found = Observed({HELD: {f"device {k}": {f"[{k}:{k + 1}]": np.ones(1)} for k in range(2)}})
    assert said(found, np.ones(2)).startswith("It is still an array on devices.")
    words = first_difference({"a": [found, *range(80)]}, {"a": [np.ones(2), *range(80)]}).words
    assert words == "entry a[0] should be array([1., 1.]); it is an array on devices 0, 1."


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (np.floor, "Every entry is the one that is due, rounded down to a whole number."),
        (np.ceil, "Every entry is the one that is due, rounded up to a whole number."),
        (np.round, "Every entry is the one that is due, rounded to a whole number."),
    ],
)
def test_whole_numbers_in_the_place_of_fractions_are_told(made, words):
    due = 4 * X
    assert signature(Compared([made(due)], [due], {"x": 1}, ["0"])).startswith(words)
    assert "rounded" not in signature(Compared([made(due) + 2], [due], {"x": 1}, ["0"]))


@pytest.mark.parametrize(
    ("found", "due", "given", "words"),
    [
        (-5.0, 5.0, {}, "It has the wrong sign."),
        (40, 5, {"n": 8}, "It is `n` times too large."),
        (5, 40, {"blocks": [0] * 8}, "It is what is due, divided by the number of `blocks`."),
        (5, 40, {"mesh": {"x": 4, "y": 2}}, "It is what is due, divided by the number of all devices."),
        (1.7e-2, 1.7, {}, "It is off by a factor such as there is between two units. Which one is asked for?"),
        (7, 5.5, {"n": 3}, "It is 0.5 × `n` too much."),
        (3, 3.2, {}, "What is due is no whole number, and this is the next one to it. Has it been rounded?"),
        (0.0, 5.4e-8, {}, "It is too small."),
        (12, 11, {}, "It is 1 too large."),
        (1, 8_589_934_591, {}, "It is too small."),
        (0.3, 11, {}, "It is too small."),
        (6, 11, {"n": 6}, "It is `n`, as it was given."),
        ([3, 2, 1], [1, 2, 3], {}, "The entries are right, but the last stands first."),
        ([3, 1, 2], [1, 2, 3], {}, "The entries are right, but stand 1 to the right of where they belong."),
        ([2, 1, 4, 3], [1, 2, 3, 4], {}, "The entries are right, but in another order."),
        ((16, 4), (8, 8), {}, "The product of these numbers is right, and not each of them for itself."),
        ((2, 4), (8, 4), {"shape": (16, 16)}, "It is `shape`, each number of it divided by the one that is due."),
        (
            [[1, 3], [2], [4]],
            [[1], [2], [3, 4]],
            {},
            "All that is due is there, as often as it is due, but not in the groups in which it should be.",
        ),
        (("a", 0), "a", {}, "What is due is entry 0 of it (counted from 0), alone."),
        ({"x": 4}, np.arange(4), {}, "An array of numbers is due."),
        (17, 36.2, {"n": 5}, "It is too small."),
        (
            [np.array([3, 5]), np.array([1, 2])],
            [np.array([0, 0]), np.array([3, 5])],
            {"blocks": [np.array([1, 2]), np.array([3, 5])]},
            "Every wrong entry is one of `blocks`, as it was given.",
        ),
        (
            np.array([[5, 6]]),
            np.arange(1, 9).reshape(4, 2),
            {},
            "It is a part of what is due, and no more. Where is the rest?",
        ),
        (
            [np.array([1, 3]), np.array([2, 4])],
            [np.array([1, 2]), np.array([3, 4])],
            {},
            "All that is due is there, as often as it is due, but not in the groups in which it should be.",
        ),
        (
            [0, 2],
            {"0": "x", "2": "y"},
            {},
            "These are the keys alone: a dict is due, with what belongs to each of them.",
        ),
        (False, {}, {}, "A dict is due."),
        ({"1": "x"}, {"0": "x"}, {}, "None of its keys is among those that are due."),
        ({"0": "x"}, {"0": "x", "1": "y"}, {}, "What is there is right, but keys are missing."),
        ({}, {"0": "x"}, {}, "It is empty."),
        ({"0": "x", "1": "y"}, {"0": "x"}, {}, "All that is due is there, and keys besides that are not due."),
        (
            {"0": 3, "1": 4},
            {"0": 3, "2": 4},
            {},
            "It is right but for its keys: what is due is there under another name.",
        ),
        ({"0": 3}, {"0": 3, "1": 0}, {}, "Missing are only keys for which 0 is due; the rest is right."),
        ({"0": 3, "1": 0}, {"0": 3}, {}, "All that is due is there, and besides keys with 0, which are not."),
        (
            {"a": 1, "b": 0, "c": 1},
            {"a": 3, "b": 0, "c": 1},
            {},
            "Wherever more than 1 is due, it is 1. Is it asked whether there are any, or how many?",
        ),
        (np.ones((6, 2)), np.ones((3, 2)), {"n": 2}, "Dimension 0 is as long as it should be, times `n`."),
        ((1, 0, 0), (1, 1, 0), {}, "Of the entries only `[1]` is wrong. It is 1 too small."),
        ([1, 2, 3, 4], [[1, 2], [3, 4]], {}, "The entries are right, but they are not grouped as they should be."),
        ([1, 3], [1, 2, 3], {}, "What is there is right, but entries are missing."),
        ([2, 2], [2, 2, 2], {}, "What is there is right, but entries are missing."),
        (
            [5, 7],
            [1, 2, 5, 7],
            {},
            "What is there is right: it is what is due from number 2 on, counted from 0. What comes before?",
        ),
        ([1, 2, 5], [1, 2, 5, 7], {}, "What is there is right, but the last one is missing."),
        (
            [[5, 7, 9]],
            [[1, 2, 3], [5, 7, 9]],
            {},
            "What is there is right: it is what is due from number 1 on, counted from 0. What comes before?",
        ),
        ([[1, 2, 3]], [[1, 2, 3], [5, 7, 9]], {}, "What is there is right, but the last one is missing."),
        (
            np.array([5.5, 7.5]),
            np.array([1.5, 5.5, 7.5]),
            {},
            "What is there is right: it is what is due from number 1 on, counted from 0. What comes before?",
        ),
        (np.array([5.5, 7.6]), np.array([1.5, 5.5, 7.5]), {}, "There are fewer entries than are due."),
        (
            22 / 73,
            11 / 62,
            {},
            "As a share against the rest, x / (1 − x), it is 2 times what is due. What belongs to the share, and what "
            "to the rest?",
        ),
        (0.3, 0.2, {}, "It is 1.5 times what is due."),
        ((0, 1), (1, 1, 0), {}, "There are fewer entries than are due."),
        (
            [[4, 5]],
            [4, 6],
            {},
            "There are as many values as are due, but they are not grouped as they should be.",
        ),
        ([[1, 3], [2, 4]], [[1, 2], [3, 4]], {}, "It is the transpose of what is due: rows stand for columns."),
        (2, (1, 2), {}, "It is entry 1 of what is due (counted from 0), alone."),
        ({"a": 1, "b": 4}, {"a": 1, "b": 2}, {}, "Of the entries only `b` is wrong. It is 2 times what is due."),
        (np.eye(2)[::-1], np.eye(2), {}, "It is what is due, turned round along dimension 0."),
        (np.arange(6.0).reshape(3, 2).T, np.arange(6.0).reshape(3, 2), {}, "It is the transpose of what is due."),
        (
            np.arange(6.0),
            np.arange(6.0).reshape(3, 2),
            {},
            "The numbers are right, and in order, but the shape is another.",
        ),
        (
            (np.arange(1, 5), 7),
            ([0, 1, 2, 3], 7),
            {},
            "Of the entries only `[0]` is wrong. The same is so of every number in it: it is 1 too large.",
        ),
        ([1, 2], 3, {}, "A single number is due, and this is a list or tuple."),
        ([1, 3], 3, {}, "What is due is entry 1 of it (counted from 0), alone."),
        (Observed({HELD: {"device 0": {"[0:1]": np.ones(1)}}}), 3, {}, "A single number is due, and this is an array."),
        ("3", 3, {}, "A single number is due, and this is text."),
        (2, True, {}, "True or False is due."),
        (3, "three", {}, "Text is due, and this is none."),
        (
            np.arange(8).reshape(2, 2, 2).T,
            np.arange(8).reshape(2, 2, 2),
            {},
            "It is the transpose of what is due.",
        ),
        (
            [np.array([3.0]), np.array([7.0])],
            [np.array([4.0, 6.0]), np.array([4.0, 6.0])],
            {"blocks": [np.array([1.0, 2.0]), np.array([3.0, 4.0])]},
            "Each entry is a single number: the sum of what is in the entry of `blocks` at its place.",
        ),
        (
            [10.0, 10.0],
            [np.array([4.0, 6.0]), np.array([4.0, 6.0])],
            {"blocks": [np.array([1.0, 2.0]), np.array([3.0, 4.0])]},
            "Each entry is a single number: the sum of all that is in `blocks`.",
        ),
        (None, 3, {}, ""),
        ((8.0, 2.0), (8, 2), {}, ""),  # equal, and yet not what an exercise asks for
        ("a word", "another", {}, ""),
    ],
)
def test_what_a_wrong_value_has_to_do_with_the_right_one(found, due, given, words):
    assert said(found, due, **given) == words


def tried(*numbers):
    return [Tried(found, due, {"n": n, "kind": kind}, found == due) for found, due, n, kind in numbers]


def test_only_what_is_so_in_every_wrong_case_is_said():
    assert evidence(tried((8, 4, 2, "a"), (12, 4, 3, "a"))) == "It is `n` times too large."
    assert evidence(tried((8, 4, 2, "a"), (9, 4, 3, "a"))) == "It is too large."
    assert evidence(tried((8, 4, 2, "a"), (2, 4, 3, "a"))) == ""


def test_a_value_with_which_all_is_right_is_said_though_others_are_right_too():
    pairs = [(4, 2), (4, 2), (4, 3), (5, 3), (9, 5)]
    small = [Tried(found, 4, {"sizes": {"x": n}}, found == 4) for found, n in (*pairs, (4, 2), (6, 3))]
    assert evidence(small) == "It is too large. Right in 4 of 7 cases, among them all with `sizes` = {'x': 2}."
    alone = [Tried(found, 4, {"n": n, "m": m}, found == 4) for found, n, m in ((4, 2, 1), (5, 2, 2), (9, 3, 1))]
    assert evidence(alone).endswith("Right in 1 of 3 cases: the one with `n` = 2, `m` = 1.")


def test_of_a_single_1_that_is_due_nobody_hears_how_many_times_as_large_yours_is():
    assert evidence(tried((15, 1, 2, "a"), (3, 3, 3, "b"), (4, 4, 3, "b"))).startswith("It is too large. ")
    assert evidence(tried((30, 2, 2, "a"), (3, 3, 3, "b"), (4, 4, 3, "b"))).startswith("It is 15 times what is due. ")


def test_a_number_that_few_cases_share_is_a_chance_and_a_word_is_not():
    def where(*cases):
        return evidence(
            [Tried(4 + wrong, 4, {"heads": heads, "kind": kind}, not wrong) for wrong, heads, kind in cases]
        )

    any_ = [(0, 5, "a"), (0, 20, "b"), (1, 32, "a"), (2, 32, "b"), (3, 9, "c")]
    assert "in none of those" not in where(*any_)
    ones = [(wrong, 1 if heads == 32 else heads, kind) for wrong, heads, kind in any_]
    assert where(*ones).endswith("Right in 2 of 5 cases: in none of those with `heads` = 1.")
    shared = [(0, 8, "a"), (0, 8, "b"), (1, 8, "a"), (2, 32, "b"), (3, 2, "c")]
    assert "all of these" not in where(*shared)


def test_the_only_right_case_is_told_by_what_was_given_besides_arrays():
    def with_array(*specs):
        given = [{"value": np.ones(8), "spec": P(*spec)} for spec in specs]
        return evidence([Tried(4 + k, 4, one, k == 0) for k, one in enumerate(given)])

    assert with_array("xy", "yx", "x").endswith("Right in 1 of 3 cases: the one with `spec` = P('x', 'y').")
    assert with_array("xy", "xy", "x").endswith("Right in 1 of 3 cases.")


def test_an_answer_that_is_always_the_same_is_told():
    same = [Tried(7, due, {"n": due}, due == 7) for due in (7, 3, 5)]
    assert evidence(same).startswith("It is the same in all cases, whatever was given.")
    assert "the same" not in evidence(same[:2])


def test_an_answer_that_follows_one_argument_alone_is_told():
    cases = [Tried(4 * n, n * m, {"n": n, "m": m}, False) for n, m in ((2, 9), (3, 5), (7, 8))]
    assert evidence(cases).startswith("It is 4 × `n` in all cases, whatever stands for `m`.")
    assert "in all cases" not in evidence([*cases, Tried(30, 40, {"n": 5, "m": 8}, False)])


def test_how_two_numbers_stand_to_one_another_where_it_is_wrong_is_said():
    given = [(8, 4), (4, 4), (8, 8), (16, 8), (4, 8), (8, 16)]
    cases = [Tried(1 if n > k else n, n, {"kv": k, "n": n}, n <= k) for k, n in given]
    assert evidence(cases).endswith("Right in 4 of 6 cases: in none of those where `n` is larger than `kv`.")
    refused = Tried(None, ValueError("uneven"), {"kv": 3, "n": 4}, True)
    assert evidence([*cases, refused]).endswith("is larger than `kv`, but for those where an error is due.")


def test_words_that_are_due_are_listed_to_who_wrote_another():
    words = [Tried("agather", due, {}, False) for due in ("gather", "sum")] * 2
    assert evidence(words) == "The answer is one of these words: 'gather', 'sum'."
    assert "one of these" not in evidence(words[:2])  # it would be each case's own


def test_by_what_right_and_wrong_cases_differ_is_said():
    right, wrong = (4, 4, 2, "a"), (8, 4, 2, "b")
    assert evidence(tried(right, wrong)) == (
        "It is 2 times what is due. Right in 1 of 2 cases: in none of those with `kind` = 'b'."
    )
    two_kinds = tried((4, 4, 2, "a"), (4, 4, 3, "d"), (8, 4, 2, "b"), (8, 4, 3, "b"), (8, 4, 2, "c"), (8, 4, 3, "c"))
    assert evidence(two_kinds).endswith("Right in 2 of 6 cases: in none of those with `kind` = 'b' or 'c'.")
    assert evidence(tried((4, 4, 2, "a"), (4, 4, 2, "a"), (9, 4, 3, "b"), (9, 4, 5, "c"))).endswith(
        "only in those with `n` = 2 and `kind` = 'a'."
    )


def test_what_is_so_of_all_right_cases_and_few_wrong_ones_is_said():
    def tried(n, kind, right):
        return Tried(0 if right else 1, 0, {"n": n, "kind": kind}, right)

    cases = [tried(2, "ring", True)] * 3 + [tried(2, "tree", False)] + [tried(n, "ring", False) for n in (4, 8, 16)]
    assert evidence(cases).endswith("Right in 3 of 7 cases, all of these with `n` = 2.")


def test_an_argument_on_which_nothing_depends_is_told():
    cases = [Tried(7 * n * n, n + m * m, {"n": n, "m": m}) for n in (3, 4) for m in (5, 6, 8)]
    assert evidence(cases) == "Where cases differ in `m` alone, yours is the same. What is to depend on it?"


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (
            ["[0:4, 0:8]", "[4:8, 0:8]"],
            "Dimension 0 is cut, and should be the same on every device; dimension 1 is the same on",
        ),
        (["[0:8, 4:8]", "[0:8, 0:4]"], "It is cut into the parts that are due, but devices hold one another's."),
        (["[0:8, 0:8]", "[0:8, 0:8]"], "Dimension 1 is the same on every device, and should be cut."),
        (["[0:4, 0:4]", "[0:4, 4:8]"], "As a whole it is, along dimension 0, shorter than is due."),
    ],
)
def test_how_an_array_is_cut_is_held_against_how_it_should_be(parts, words):
    def held(parts):
        blocks = {f"device {k}": {part: np.zeros(_lengths(part))} for k, part in enumerate(parts)}
        return {HELD: blocks}

    assert said(held(parts), held(["[0:8, 0:4]", "[0:8, 4:8]"])).startswith(words)


def test_parts_of_the_right_length_that_several_devices_hold_are_not_told_as_another_cut():
    """Three of four quarters are on four devices: the dimension may well be cut into four."""
    parts = [[f"[0:8, {k}:{k + 2}]" for k in some] for some in ((0, 2, 0, 6), (0, 2, 4, 6))]
    found, due = ({HELD: {f"device {k}": {part: np.ones((8, 2))} for k, part in enumerate(side)}} for side in parts)
    words = said(found, due)
    assert words.startswith("Dimension 1 is on the devices in fewer different parts than it should be.")


def _lengths(part):
    return [int(stop) - int(start) for start, stop in (pair.split(":") for pair in part[1:-1].split(", "))]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (
            [("0:8", "0:4"), ("0:8", "4:8")],
            "Dimension 0 is the same on every device, and should be cut; dimension 1 is",
        ),
        ([("4:8", ":"), ("0:4", ":")], "It is cut into the parts that are due, but devices hold one another's."),
        ([("0:4",), ("4:8",)], "Devices should have one slice for each dimension."),
        ([("8:12", ":"), ("4:8", ":")], "Slices go beyond the end of their dimension."),
        ([("0:6", ":"), ("4:8", ":")], "The slices of one dimension are not of one length, and should be."),
    ],
)
def test_slices_are_held_against_those_that_are_due(parts, words):
    assert said(dict(zip("01", parts, strict=True)), {"0": ("0:4", ":"), "1": ("4:8", ":")}).startswith(words)


def test_groups_that_are_joined_or_have_come_apart_are_told():
    wanted = [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert said([[0, 1, 2, 3], [4, 5, 6, 7]], wanted).startswith("Each group of it is made of several that are due.")
    assert said([[k] for k in range(8)], wanted).startswith("Each group that is due has come apart into several.")
    assert "made of several" not in said([[0, 1, 2], [3, 4, 5, 6, 7]], wanted)


def test_on_what_it_depends_by_how_much_numbers_are_off_is_said():
    cases = [Tried(a * (n + 1) ** 2, a * n * 3, {"n": n, "a": a}) for n in (3, 4, 5) for a in (1.5, 2.5, 7.0)]
    assert evidence(cases) == "By what factor it is off depends on `n`, and never on `a`."
    cases = [Tried(a + n * n, a + n**3, {"n": n, "a": a}) for n in (2, 3, 5) for a in (1.3, 2.7, 7.0)]
    assert evidence(cases) == "By how much it is off depends on `n`, and never on `a`."
    assert "depends" not in evidence(cases[::3])  # nothing but n has changed
    cases = [Tried(a * n * n, a * n, {"n": n, "a": a}) for n in (3, 4, 5) for a in (1.5, 2.5, 7.0)]
    assert evidence(cases) == "It is `n` times too large."  # which says more


def test_a_dict_that_stands_for_a_mesh_is_told_so():
    mesh = {"axes": [["x", 2]], "devices": [0, 1], "axis_types": ["Auto"]}
    assert said({"x": 2}, mesh).startswith("A mesh is due")


def test_what_is_told_of_one_entry_says_more_than_that_all_is_too_large():
    due = [(n, n + 1) for n in (11, 12, 15)]
    cases = [Tried((1.5 * a, b), (a, b), {"n": f"{a}" * 50}) for a, b in due]
    assert evidence(cases) == "Of the entries only `[0]` is wrong. It is 1.5 times what is due."


def test_that_the_keys_alone_are_right_is_told():
    due = {"0": "psum", "1": "psum"}
    assert said({"0": 1, "1": 1}, due) == "Its keys are right, and nothing under them is: words are due there."
    assert said({"0": "ppermute", "1": "gather"}, due) == "Its keys are right, and nothing under them is."


def test_that_only_empty_answers_are_right_is_told():
    cases = [Tried(found, due, {"n": str(k) * 50}, found == due) for k, (found, due) in enumerate(EMPTY_OR_NOT)]
    assert evidence(cases).endswith("Right in 2 of 4 cases: only where {} is due.")


EMPTY_OR_NOT = [({}, {}), ({"0": 1}, {"0": 2}), ({}, {}), ({"5": 1}, {"0": 2, "1": 7})]


def test_that_all_wrong_numbers_are_too_large_is_told():
    due = [{"a": 1, "b": 2}, {"a": 3}, {"a": 2, "b": 2, "c": 7}]
    found = [{"a": 2, "b": 5}, {"a": 3, "b": 1}, {"a": 2, "b": 9, "c": 8}]
    cases = [Tried(*pair, {"text": "t" * k}) for k, pair in enumerate(zip(found, due, strict=True))]
    assert evidence(cases).startswith("Wherever a number in it is wrong, it is too large, and never too small.")
    other_way = [Tried(one.due, one.found, one.given) for one in cases]
    assert evidence(other_way).startswith("Wherever a number in it is wrong, it is too small, and never too large.")
    negative = [Tried(one.found, {**one.due, "a": -1}, one.given) for one in cases]
    assert "never too" not in evidence(negative)  # what is larger is not counted too often


def test_a_number_that_never_changes_is_no_factor():
    assert evidence(tried((8, 4, 2, "a"), (10, 5, 2, "b"))) == "It is 2 times what is due."
    assert evidence(tried((16, 4, 2, "a"), (45, 5, 3, "a"))).startswith("It is the square of `n` times too large.")


def test_what_is_due_in_a_single_wrong_case_divides_nothing():
    assert evidence(tried((3, 3, 2, "a"), (4, 4, 2, "a"), (9, 5, 2, "a"))).endswith("Right in 2 of 3 cases.")


def test_rows_that_are_one_row_times_numbers_tell_nothing():
    """So it is with gradients of two logits, which add up to 0 in every row."""
    rows = np.stack([Y[:, 0], -Y[:, 0]], axis=1)
    found = [*relations_of(rows * np.arange(1, 9, dtype=np.float32)[:, None], rows, {})]
    assert not [words for words in found if words.startswith("In a row")]


def test_where_counts_are_right_but_for_a_key_with_0_nothing_is_said_of_1():
    assert not [words for words in relations_of({"a": 2}, {"a": 2, "b": 0}, {}) if "more than 1" in words]


@pytest.mark.parametrize(
    ("found", "due", "given", "words"),
    [
        (
            X + 0.5 * Y,
            X + Y,
            {"x": X},
            "It is `x` and something besides; and of that, every number is 1/2 of what it should be.",
        ),
        (Y, X + Y, {"x": X}, "Every number would be right with `x` added to it. Where does that come in?"),
        (2 * X, X + Y, {"x": X, "y": Y}, "It is 2 × `x`, number by number, and nothing of `y`."),
        (X - 0.5 * Y, X @ Y.T @ X, {"x": X, "y": Y}, "It is `x` − 0.5 × `y`, number by number."),
        (
            X + X + Y,
            X + Y,
            {"x": X},
            "Every number would be right without `x`. Is that added too often, or never taken off?",
        ),
        (
            Y * np.arange(1, 9, dtype=np.float32)[:, None],
            Y,
            {},
            "In a row, along the last dimension, all numbers are off by one factor, and in other such rows by another "
            "(from 1 to 8). By what is a row to be divided, or multiplied?",
        ),
        (
            [1.0, 5.0, 7.0],
            [1.0, 2.0, 3.0],
            {},
            "It is right up to number 0, counted from 0, and wrong from there on. What is done between number 0 and "
            "number 1?",
        ),
        (
            np.array([4.0, 5.0, 7.0]),
            np.array([1.0, 2.5, 3.0]),
            {},
            "Already its first number is wrong. What goes into that one?",
        ),
        ({"a": 3.0}["a"], {"a": 3.0, "b": 1}, {}, "It is what is due under `a`, alone: a dict is due."),
        (
            np.array([[1.0, 4.5], [3.0, 9.5], [5.0, 7.5]]),
            np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
            {},
            "Some numbers are right, and of all others the same is so: it is too large.",
        ),
        (
            np.array([[1.0, 2.0], [9.0, 4.0], [4.0, 6.0]]),
            np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
            {},
            "Of the 3 rows only number 0 (counted from 0) is right.",
        ),
        (([1, 2, 3, 4], [5]), ([1, 2, 3], [6]), {}, "Of `[0]`: all that is due is there, and more besides."),
        ((28, 62), (8, 32), {"shape": (32, 64)}, "It is `shape`, each number of it less what it should be divided by."),
        (
            (128, 128),
            (8, 32),
            {"shape": (32, 64)},
            "It is `shape`, each number of it times what it should be divided by.",
        ),
        (256, (8, 32), {}, "It is the product of the numbers that are due as a list or a tuple."),
        (X + 2, 2 * X, {"x": X}, "It is `x` + 2, number by number."),
        (X * X, 2 * X, {"x": X}, "It is the square of `x`, number by number."),
        (6, 48, {"shape": [0] * 8, "axis_sizes": {"x": 8}}, "It is what is due, divided by the number of all devices."),
    ],
)
def test_what_wrong_numbers_have_to_do_with_others(found, due, given, words):
    assert said(found, due, **given) == words


def test_of_an_array_on_devices_nobody_hears_that_a_dict_is_due():
    assert "A dict is due." not in list(relations_of(np.ones(2), {HELD: {"device 0": {"[0:2]": np.ones(2)}}}, {}))


def test_an_entry_that_never_changes_is_told():
    tried = [Tried({"model": 1, "rows": n}, {"model": n, "rows": n}, {"n": n}, n == 1) for n in (1, 2, 4)]
    assert evidence(tried).startswith("Its `model` is 1 in all cases, whatever was given.")


def test_where_one_answer_is_empty_and_another_lacks_keys_this_is_told_of_both():
    whole = {"0": "psum", "1": "psum"}
    cases = [Tried({}, whole, {"n": "a" * 50}), Tried({"1": "psum"}, whole, {"n": "b" * 50})]
    assert evidence(cases) == "Nothing in it is wrong, but keys are missing."
    assert evidence(cases, lambda: "It is something else.") == "It is something else."  # which says more


def test_which_entries_are_wrong_in_the_first_case_is_told_where_others_are_elsewhere():
    due = {"a": 1, "b": 2, "c": 3}
    cases = [Tried({**due, "a": 3}, due, {"n": "a" * 50}), Tried({**due, "b": 0}, due, {"n": "b" * 50})]
    assert evidence(cases) == "In this case, of the entries only `a` is wrong. It is 3 times what is due."


def test_an_argument_by_which_the_first_case_alone_is_off_is_a_chance():
    cases = [Tried([18, 18], [34, 34], {"n": 16}), Tried([7, 7], [31, 31], {"n": 32})]
    assert "it is `n` too little" in " ".join(relations_of([18, 18], [34, 34], {"n": 16}))
    assert "`n`" not in evidence(cases)


def test_what_tells_more_of_the_first_case_is_told_of_it_though_it_is_too_large():
    due = np.arange(1, 7).reshape(2, 3)
    cases = [Tried(2 * due, due, {"n": "a" * 50}), Tried(due + [[0, 1, 0], [0, -2, 0]], due, {"n": "b" * 50})]
    assert evidence(cases) == "In this case, the same is so of every number in it: it is 2 times what is due."


def test_where_nothing_tells_wrong_cases_apart_the_others_are_told_by_what_they_were_given():
    shapes = [(3, 9), (2, 7), (3, 8), (4, 2), (5, 5)]
    cases = [Tried("a", "b", {"shape": shape, "n": k}, right=k not in (1, 4)) for k, shape in enumerate(shapes, 1)]
    assert evidence(cases).endswith("Right in 3 of 5 cases. It is wrong, too, with shape=(4, 2), n=4.")


def test_what_few_right_cases_have_in_common_with_the_only_wrong_one_is_told():
    wraps = [(True, False), (True, False), *[(True, True), (False, False)] * 2]
    cases = [Tried(k, k + 1.5, {"wraps": wrap, "n": f"{k}" * 50}, right=k > 0) for k, wrap in enumerate(wraps)]
    assert evidence(cases).endswith(
        "Right in 5 of 6 cases. The wrong one has `wraps` = (True, False), as only 1 of the right ones has."
    )


def test_where_numbers_are_too_large_and_where_too_small_is_told():
    tried = [
        Tried(found, due, {"rank": rank, "axes": axes})
        for found, due, rank, axes in ((16, 11, 2, 2), (64, 19, 3, 2), (8, 4, 3, 1), (4, 5, 1, 2), (8, 16, 1, 3))
    ]
    assert evidence(tried) == (
        "Of 5 wrong numbers 3 are too large: in none of those where `rank` is 1; the others are too small."
    )


def test_with_what_the_factor_grows_by_which_numbers_are_off_is_told():
    tried = [
        Tried(rank * axes + 1, (rank + 1) ** axes, {"rank": rank, "axes": axes})
        for rank in (2, 3)
        for axes in (2, 3, 4)
    ]
    assert evidence(tried) == "Of the wrong ones: the larger `rank` or `axes`, the more times too small."


MESH = {"axes": [["x", 2]], "devices": [0, 1], "axis_types": ["Auto"]}
TWO_DEVICES = {HELD: {"device 0": {"[0:2]": np.ones(2)}, "device 1": {"[2:4]": np.ones(2)}}}
PINNED = {HELD: {d: {f"{part} in pinned_host": b for part, b in held.items()} for d, held in TWO_DEVICES[HELD].items()}}


@pytest.mark.parametrize(
    ("found", "due", "given", "untrue"),
    [
        ([0, 1, 2], np.arange(3), {}, "stand in other places"),
        (([0, 1, 2], 5), (np.arange(3), 5), {}, "not grouped"),
        ({"a": 1, "b": 5}, {"a": 3, "b": 5}, {}, "Wherever more than 1 is due"),  # of `b` that is not so
        ((0, 1.0), (0, 1536), {}, "Wherever more than 1 is due"),  # a size that came to 1, and no count
        (PINNED, TWO_DEVICES, {}, "one another's"),  # the parts are right, and in another memory
        ([[0, 1], [2], [0, 1]], [[0, 1], [2]], {}, "made of several"),
        ([[0, 1, 2], [3]], [[0], [1], [2], [3]], {}, "made of several"),  # of [3] that is not so
        ([[1, 2, 3, 4]], [1, 2], {}, "fewer entries"),
        ([1, 2], [], {}, "All that is due is there"),
        ([True, False, False], [False, True, False], {}, "The entries are right"),  # by chance
        (np.array([True, True]), np.array([False, False]), {}, "1 too large"),
        (np.array([0.0, 4.0, 5.0]), np.array([0.0, 3.0, 4.0]), {}, "The same is so of every number in it: it is 1"),
        (np.array([1e-9, 4.0, 5.0]), np.array([0.0, 3.0, 4.0]), {}, "Already its first number"),  # which is right
        (2.0, 4.0, {"n": 0.5}, "times too large"),
        ([], {}, {}, "These are the keys"),
        (3, MESH, {}, "A dict is due"),
        (TWO_DEVICES, MESH, {}, "no more than a dict"),
        (4, 3.0000000000000004, {}, "no whole number"),
        (([1, 2], [3, 5]), ([1, 2], [3, 4]), {}, "only `[1]` is wrong. It is"),  # a number in it is
        ({"a": 2, "d": 1}, {"a": 1, "c": 3}, {}, "`c`"),  # which is not wrong, but missing
        (np.zeros((1, 1)), np.zeros((2, 2)), {}, "It is a part"),
        (np.ones((3, 3)), np.ones(3), {}, "Dimension 0"),  # it may as well be the other one
    ],
)
def test_nothing_is_said_that_is_not_so(found, due, given, untrue):
    assert not [words for words in relations_of(found, due, given) if untrue in words]


@pytest.mark.parametrize(
    ("found", "due", "words"),
    [
        ([0, 1, 2], np.arange(3), "The numbers are right, but an array is due, and this is a list."),
        (([0, 1], 5), (np.arange(2), 5), "The numbers are right, but arrays are due where it has lists."),
        (PINNED, TWO_DEVICES, "Each device holds the part that is due, but in another memory."),
        ([[1, 2, 3, 4]], [1, 2], "There are more values than are due, and they are not grouped"),
        (3, MESH, "A mesh is due."),
        ([[1], [2], [3]], [[1, 2, 3]], "It is the transpose of what is due"),
        ({"c": 3, "d": 4}, {"a": 3, "b": 4}, "What stands under its keys is right"),
        (
            np.array([True, False, True]),
            np.array([False, False, True]),
            "Wherever an entry of it is wrong, that is True",
        ),
        ([[1, 2], [3]], np.ones((2, 2)), "An array of numbers is due."),
        (
            np.array([0.0, 4.0, 5.0]),
            np.array([0.0, 3.0, 4.0]),
            "But for zeros that are right, the same is so of every number in it: it is 1 too large.",
        ),
    ],
)
def test_what_is_so_is_said_in_its_place(found, due, words):
    assert said(found, due).startswith(words)


@pytest.mark.parametrize(
    ("found", "due", "given"),
    [
        (10**400, 3, {}),
        ([[1, 2], [3]], np.ones((2, 2)), {}),
        (np.ones(3), np.ones(3) * 1j, {}),
        (np.ones(3), np.ones(4), {"n": float("inf")}),
        (np.ones(3), np.ones(4), {"n": float("nan")}),
    ],
)
def test_no_value_stops_the_judge(found, due, given):
    list(relations_of(found, due, given))
    assert isinstance(evidence([Tried(found, due, given), Tried(found, 2 * due, given)]), str)


def test_of_a_list_where_words_are_due_these_are_listed():
    cases = [Tried([1], due, {"n": n}) for n, due in enumerate(["a", "b", "a", "b"])]
    assert evidence(cases) == "The answer is one of these words: 'a', 'b'."


def test_a_part_that_one_process_holds_is_not_taken_for_the_whole():
    found = {HELD: {"device 0": {"[0:2]": np.ones(2)}, "device 1": {"[8:10]": np.ones(2)}}}
    assert said(found, TWO_DEVICES).startswith("As a whole")
    assert not said(found, TWO_DEVICES, num_processes=4)


def test_what_numbers_are_off_by_is_said_where_it_is_always_the_same():
    cases = [Tried(1.23456 * a * n, a * n, {"n": n, "a": a}) for n in (3.0, 4.0, 5.0) for a in (1.5, 2.5, 7.0)]
    assert evidence(cases) == "Wherever it is wrong, it is 1.23456 times what is due."  # and depends on nothing


def test_small_numbers_are_off_by_what_they_are_off_by():
    cases = [
        Tried(1e-10 * (a * n + a * a * n), 1e-10 * a * n, {"n": n, "a": a}) for n in (3, 4, 5) for a in (1.5, 2.5, 7.0)
    ]
    assert evidence(cases) == "By what factor it is off depends on `a`, and never on `n`."


def test_of_what_a_factor_depends_is_said_of_wrong_cases_where_others_are_right():
    cases = [Tried(a * n**2.5, a * n, {"n": n, "a": a, "kind": "x"}) for n in (3, 4, 5) for a in (1.5, 2.5, 7.0)]
    right = [Tried(3.0, 3.0, {"n": 3, "a": 1.5, "kind": "y"}, True)]
    assert evidence([*cases, *right]).startswith("Where it is wrong, by what factor it is off depends on `n`")


def test_an_argument_has_an_effect_if_two_answers_differ_by_it():
    cases = [Tried(7 * n * n, n + m * m, {"n": n, "m": m}) for n in (3, 4) for m in (5, 6, 8)]
    other = Tried(1, 3 + 5 * 5, {"n": 3, "m": -5})
    assert "in `m` alone" in evidence(cases)
    assert "in `m` alone" not in evidence([*cases, other])


def test_of_numbers_by_name_it_is_said_which_names_are_too_many():
    due = {"all-gather": 12, "all-reduce": 3}
    assert said(due | {"all-gather": 6, "": 6}, due) == "It has keys that are not due: ''."
    assert "not due" not in said(due | {"all-gather": 6, "": 0}, due)


def test_one_small_number_is_an_argument_by_chance():
    assert "as it was given" not in evidence([Tried(4, 7, {"n": 4})])
    assert "as it was given" not in evidence([Tried(4.0, 7.0, {"n": 4})])
    assert "as it was given" in evidence([Tried(4, 7, {"n": 4}), Tried(5, 9, {"n": 5})])
    assert "as it was given" not in evidence([Tried((8, 1), (8, 4), {"n": 1}), Tried((4, 1), (4, 9), {"n": 2})])
    assert "as it was given" in evidence([Tried((8, 1), (8, 4), {"n": 1}), Tried((4, 2), (4, 9), {"n": 2})])


def test_a_small_argument_in_the_first_of_several_cases_is_chance():
    cases = [Tried((a // b, 1), (a // n, 1), {"a": a, "b": b, "n": n}) for a, b, n in ((64, 8, 16), (32, 2, 8))]
    assert "`[0]` is wrong" in evidence(cases) and "as it was given" not in evidence(cases)
    large = [Tried((one.found[0] * 100, 1), one.due, one.given | {"b": 800}) for one in cases]
    assert "It is `b`, as it was given." in evidence(large)


def test_a_small_argument_as_a_factor_in_the_first_of_several_cases_is_chance():
    cases = [Tried((0, 4 * d), (0, 4 * d * (x - 1) / x), {"d": d, "x": x}) for d, x in ((64, 2), (48, 4), (80, 8))]
    assert evidence(cases) == "In this case, of the entries only `[1]` is wrong. It is 2 times what is due."


def test_the_size_of_an_axis_as_a_factor_in_the_first_of_several_cases_is_chance():
    cases = [
        Tried(("psum", 6), ("psum", 96), {"mesh": {"data": 4}}),
        Tried(("psum", 9), ("psum", 32), {"mesh": {"data": 2}}),
    ]
    assert "the size of data" not in evidence(cases) and "0.0625 times what is due" in evidence(cases)


def test_numbers_are_on_one_side_only_where_all_could_be_compared():
    cases = [Tried([n + 1, n], [n, n], {"n": str(n) * 50}) for n in (7, 8, 9)]
    assert "too large" in evidence(cases)
    assert "never too small" not in evidence([*cases, Tried([1], [5, 5], {"n": "b" * 50})])


def test_a_result_that_is_a_share_of_an_argument_alone_is_told_so():
    assert said(0.5 * X, Y, x=X) == "It is 0.5 × `x`, and nothing besides. What should come to that?"


def test_the_first_difference_of_an_array_is_at_an_entry_that_is_wrong():
    words = first_difference(np.array([1e-9, 5.0]), np.array([0.0, 4.0])).words
    assert words == "entry [1] should be 4.0; it is 5.0."


def test_a_factor_that_is_nearly_1_is_not_called_1():
    assert as_factor(1.0003) == "1.0003 times too large"


def test_a_bound_between_large_numbers_is_told_exactly():
    numbers = (1234568, 1234577, 1234590), (1234567, 1234565, 1234550)
    wrong, right = ([{"n": n} for n in some] for some in numbers)
    assert apart(wrong, right) == "in none of those where `n` is larger than 1234567"


def test_for_which_entries_of_a_spec_numbers_are_wrong_is_told():
    cases = [((16, 8), P(("x", "y"), None), (2, 8), (4, 8)), ((16, 8), P("x", ("x", "y")), (4, 1), (4, 3))]
    cases.append(((16, 8), P("x"), (4, 8), (4, 8)))
    made = [Tried(found, due, {"shape": shape, "spec": spec}, found == due) for shape, spec, due, found in cases]
    words = "Wrong are the numbers of the dimensions for which `spec` names several axes, and no others."
    assert evidence(made).startswith(words)


def test_of_words_it_is_told_which_is_given_where_it_is_wrong():
    def words(*found):
        cases = [Tried(one, due, {"case": k % 2}, one == due) for k, (one, due) in enumerate(found)]
        return evidence([*cases, *(Tried(word, word, {"case": 9}, True) for word in "abcdef")])

    assert words(("a", "b"), ("a", "c"), ("a", "b")).startswith("Wherever it is wrong, yours is 'a'.")
    each = "Wherever it is wrong, yours is 'a' with `case` = 0, 'b' with `case` = 1."
    assert words(("a", "b"), ("b", "c"), ("a", "c")).startswith(each)


def test_of_pairs_it_is_told_which_number_is_too_large_and_which_too_small():
    def said(found):
        return evidence([Tried(one, (8 * k, 64 // k), {"k": k}, False) for k, one in enumerate(found, 1)])

    assert "number 0 is too large and number 1 is too small" in said([(9, 63), (20, 30), (30, 10)])
    assert "number 0" not in said([(9, 63), (15, 33), (30, 10)])


def test_a_list_that_is_a_step_off_or_goes_wrong_behind_its_first_is_told():
    due = np.float32([5, 4, 3, 2])

    def said(found):
        one = Compared([np.float32(found)] * 2, [due] * 2, {"x": 2}, ["all"] * 2)
        return signature(one, one)

    assert said([4, 3, 2, 1.5]).startswith("Each number of it but the last is due one place later.")
    assert said([6, 5, 4, 3]).startswith("Each number of it but the first is due one place earlier.")
    assert said([5, 4.5, 4, 3.9]).startswith("Its first number is right, and none behind it.")


def test_a_difference_is_so_many_times_a_number_or_few_quarters_of_it():
    sizes = {"`width`": 16.0}
    assert "It is 14 × `width` too little." in relations_of(1000 - 14 * 16, 1000, {}, sizes)
    assert "It is 1.5 × `width` too little." in relations_of(1000 - 24, 1000, {}, sizes)
    assert not [words for words in relations_of(1000 - 228, 1000, {}, sizes) if "width" in words]
