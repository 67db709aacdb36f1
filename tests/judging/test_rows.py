"""What is said of a wrong row of a table by the other rows, and by the numbers that its own text names."""

import pytest
from jax.sharding import PartitionSpec as P

from grader.exercises import TableExercise
from grader.exercises.collecting import asks, collect
from grader.judging.judge import judge
from grader.judging.layouts import dimension_by_dimension, type_by_parts
from grader.judging.relations import relations_of
from grader.judging.right_cases import _most_alike, where_right
from grader.judging.tried import Tried


def said(due, options=None, **wrong):
    """What is said of each row of a table, where some answers are wrong."""
    table = TableExercise("rows_in_a_test", points=4, reference=lambda row: due[row], options=options or {})
    table.rows(due)
    cases = table.draw_cases()
    verdict = judge(table, cases, collect("table", asks(table, cases), {**due, **wrong}))
    return {outcome.check: outcome.words for outcome in verdict.outcomes}


EXCHANGED = "This row and “b” have each other's answers."


@pytest.mark.parametrize(
    ("due", "wrong", "told"),
    [
        ({"a": 1, "b": 4, "c": 7}, {"a": 4, "b": 1}, True),
        ({"a": [2, 0, 1], "b": [1, 2, 0], "c": [0, 1, 2]}, {"a": [1, 2, 0], "b": [2, 0, 1]}, True),
        ({"a": P("x"), "b": P(None, "x"), "c": P()}, {"a": P(None, "x"), "b": P("x")}, True),
        ({"a": 1, "b": 4, "c": 7}, {"a": 4, "b": 2}, False),
        ({"a": 1, "b": 4, "c": 4}, {"a": 4, "b": 1}, False),  # of two answers any two wrong rows have each other's
        ({"a": True, "b": False, "c": True}, {"a": False, "b": True}, False),
    ],
)
def test_of_two_rows_that_have_each_others_answers_it_is_said(due, wrong, told):
    assert (EXCHANGED in said(due, **wrong)["a"]) is told


def test_of_words_with_a_meaning_it_is_said_too():
    due, meant = {"a": "up", "b": "down", "c": "left", "d": "up"}, {"up": "Up is north.", "down": "Down is south."}
    words = said(due, meant, a="down", b="up")["a"]
    assert EXCHANGED in words and words.endswith("Down is south.")
    assert "The same answer is right in “b”" in said(due, meant, a="down")["a"]
    of_two = {"a": "up", "b": "down", "c": "up"}
    assert said(of_two, meant, a="down")["a"] == "a: not 'down'. Down is south."


DUE = {"the first": 400, "the second": 730, "another": 1130, "one": 3, "two": 2}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"the first": 730}, "The same answer is right in “the second”."),
        ({"the first": 730, "the second": 17}, "It is what is due in another row of this table."),
        ({"the first": 3}, ""),  # a count that stands elsewhere by chance
        ({"two": 1133}, "It is what you have in “another” and in “one”, both right, added up."),
        ({"two": 1133, "another": 17}, ""),
    ],
)
def test_of_a_number_it_is_said_where_else_it_stands(wrong, words):
    found = said(DUE, **wrong)[next(iter(wrong))]
    assert words in found
    assert words or "row" not in found and "added up" not in found and "elsewhere" not in found


def test_of_a_list_that_is_another_row_from_its_end_it_is_said():
    due = {"up": [3, 0, 1, 2], "down": [1, 2, 3, 0], "short": [0, 1]}
    assert "It is your answer in “up”, which is right there, from its end." in said(due, down=[2, 1, 0, 3])["down"]
    assert "from its end" not in said(due, down=[2, 1, 0, 3], up=[3, 1, 0, 2])["down"]
    assert "from its end" not in said({"one": [0, 1], "two": [2, 3]}, two=[1, 0])["two"]


@pytest.mark.parametrize(
    ("key", "wrong", "words"),
    [
        ("sent with 64 rows in place of 8192", 1_000, "too small, by the factor that is between two numbers"),
        ("sent by 5 devices", 640_000, "It is too large, by a factor that is one of the numbers in this row."),
        ("sent by 2 devices", 256_000, "by a whole factor"),
        ("sent as float32", 4_096_000, "by a whole factor"),
    ],
)
def test_a_factor_that_the_row_names_is_told_as_such(key, wrong, words):
    found = said({key: 128_000}, **{key: wrong})[key]
    assert words in found and ("whole" in words) is ("this row" not in found)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -3, 0, 10**40, None, [], "word"])
def test_of_what_is_no_number_something_is_said_all_the_same(odd):
    assert said(DUE, one=odd)["one"]


def test_of_a_number_that_is_off_by_no_whole_factor_it_is_said():
    assert "by less than twice" in said({"a": 6.5}, a=9.1)["a"] and "less than" not in said({"a": 6}, a=9)["a"]
    assert "by a whole factor" in said({"a": 6.5}, a=13.0)["a"] and "factor" not in said({"a": 6}, a=12)["a"]


@pytest.mark.parametrize(
    ("spec", "due", "words"),
    [
        (("data", "model"), (None, "model"), "Dimension 0 should not be cut; dimension 1 is right."),
        ((), (None, "x"), "Dimension 0 is right; dimension 1 is not."),
        (("x",), (None,), ""),  # to say more would be to say all
        (("x", "y"), ("y", "x"), ""),
    ],
)
def test_of_a_wrong_spec_it_is_said_which_dimensions_are_right(spec, due, words):
    assert dimension_by_dimension(spec, due) == words
    assert words in said({"w": P(*due)}, w=P(*spec))["w"]


def test_of_a_wrong_type_it_is_said_which_parts_are_right():
    words = said({"sum": "float32[8@y,4]"}, sum="float32[8@y,4]{U:x}")["sum"]
    assert words.endswith("are right, and what stands behind the brackets is wrong.")
    assert "Of this type the lengths and what" in type_by_parts("bfloat16[8@x,4]", "float32[8@y,4]")
    assert type_by_parts("C[I, K_Y]", "C[I_X, K]") == type_by_parts("runs", "float32[8]") == ""


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([3, 0, 1, 2], "Counted round, the entries are right and follow one another as they should"),
        ([1, 2, 0, 3], "two of them stand in each other's place."),
        ([2, 1, 0, 3], "each should be moved as far as every other"),
    ],
)
def test_of_another_order_it_is_said_which_without_the_places(found, words):
    told = [one for one in relations_of(found, [1, 2, 3, 0], {}) if words in one]
    assert told and not any(char.isdigit() for char in told[0])
    assert words in said({"a": [1, 2, 3, 0]}, a=found)["a"]


def test_what_two_entries_exchanged_come_to_is_not_told_as_a_turn():
    told = [*relations_of((1, 0, 0), (0, 1, 0), {})]
    assert any("two of them stand in each other's place" in one for one in told)
    assert not any("follow one another" in one for one in told)


def test_of_two_entries_nothing_is_said_of_their_order():
    told = " ".join(relations_of([7, 5], [5, 7], {}))
    assert "each other's place" not in told and "follow one another" not in told
    assert "as far as" not in " ".join(relations_of([9, 1, 0, 3, 5], [1, 0, 3, 5, 9], {}))


def test_the_right_case_that_is_most_like_the_wrong_one_is_told():
    def tried(right, **given):
        return Tried(0 if right else -1, len(given["order"]), given, right)

    right = [tried(True, order=[0, 1, 3], name="b"), tried(True, order=[2, 1, 0], name="a")]
    wrong = [tried(False, order=[2, 0, 1], name="a"), tried(False, order=[0, 2, 1] * 40, name="b")]
    assert where_right(right, wrong).endswith(
        "With order=[2, 1, 0] and the rest as here, it is right. In what do the two differ?"
    )
    long = [tried(True, order=[*range(90)], name="a"), tried(True, order=[*range(91)], name="b")]
    assert "it is right" not in where_right(long, wrong)
    far = [tried(True, order=[2, 1], name="a", a=1, b=1, c=1), tried(True, order=[0, 1], name="b", a=2, b=2, c=2)]
    apart = [tried(False, order=[9, 1], name="a", a=1, b=2, c=2), tried(False, order=[7, 1], name="b", a=2, b=1, c=1)]
    assert _most_alike(far, apart) == ""


def test_which_entries_are_wrong_goes_before_what_is_so_of_the_first():
    due = {"key": ("x",), "value": ("y", "x"), "other": (None,), "bytes": 7}
    words = list(relations_of(due | {"key": (), "value": (), "bytes": 9}, due, {}))
    assert words[0].startswith("Of the entries only `key`, `value`, `bytes` are wrong. Of `key`: ")


def test_what_is_so_of_all_that_is_wrong_in_dicts_in_a_list_is_said():
    due = [{"w": 4, "b": 1}, {"w": 10, "b": 2}, 5]
    found = [{"w": 8, "b": 1}, {"w": 20, "b": 2}, 5]
    assert any("2 times what is due" in words for words in relations_of(found, due, {}))
    assert not any("2 times" in words for words in relations_of([{"w": 8, "b": 1}, {"w": 21, "b": 2}, 5], due, {}))
