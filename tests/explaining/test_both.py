"""Two mistakes at once are both named if each shows in parts of its own."""

from answering import verdict

from grader.exercises import Case, FunctionExercise
from grader.explaining.both import Shown, pair_that_explains, shown_in
from grader.findings.mistakes import TwoMistakes
from grader.lessons import EXERCISES


def test_a_mistake_shows_where_it_makes_parts_wrong_and_nowhere_else():
    same = lambda a, b: a == b  # noqa: E731
    assert shown_in([1, 9, 3], [1, 9, 4], [True, False, True], same) == {1}
    assert shown_in([1, 9, 3], [7, 9, 3], [False, False, True], same) is None  # the first should be 7
    assert shown_in([1, 9, 3], [1, 9], [True, False], same) is None


def test_two_mistakes_explain_what_each_explains_a_part_of():
    one, other, all_ = Shown("one", frozenset({(0, 0)})), Shown("other", frozenset({(0, 1), (1, 0)})), [(0, 0), (0, 1)]
    assert pair_that_explains([one, other], frozenset([*all_, (1, 0)])) == ("one", "other")
    assert pair_that_explains([one, other], frozenset([*all_, (2, 0)])) is None  # nothing explains the last
    assert pair_that_explains([Shown("none", frozenset()), other], other.parts) is None  # one would do


def both_of(exercise, one, other):
    """An answer that makes two mistakes, each in those entries in which it is wrong."""
    named = {mistake.name: mistake.wrong for mistake in exercise.mistakes}

    def answer(shape, itemsize, spec, axis_sizes):
        given = shape, itemsize, spec, axis_sizes
        entries = zip(exercise.reference(*given), named[one](*given), named[other](*given), strict=True)
        return tuple(b if a == due else a for due, a, b in entries)

    return answer


def test_two_mistakes_of_a_function_are_both_named_and_both_told():
    exercise = EXERCISES["bytes_held"]
    found = verdict(exercise, both_of(exercise, "forgot_the_copies", "counted_the_axes_left_out"))
    assert found.mistake == "forgot_the_copies and counted_the_axes_left_out"
    assert TwoMistakes("forgot_the_copies", "counted_the_axes_left_out") in found.failure.findings


def test_a_wrong_sum_and_a_comparison_in_two_units_are_both_named():
    def hbm(arguments, results, temporaries, shared, peak, room):
        return arguments + results + temporaries + shared, peak <= room

    assert verdict(EXERCISES["hbm"], hbm).mistake == "added_what_is_shared and compared_bytes_with_gibibytes"


def test_two_slips_that_show_in_the_same_entry_are_one_mistake():
    """Whoever adds what the two ways send divides neither the weights nor the batch."""

    def layer_bytes(how, b, d, f, x, y):
        weights, sums = (x - 1) / x * 4 * d * f, 2 * (y - 1) / y * 2 * b * d
        if how == "data parallel":
            return 0, 2 * weights
        gathered = weights if "FSDP" in how else 0
        summed = sums if "tensor" in how else 0
        return gathered + summed, 2 * gathered + summed

    assert verdict(EXERCISES["layer_bytes"], layer_bytes).mistake == "added_the_rows"


def test_of_one_of_a_few_words_no_pair_of_mistakes_is_believed():
    """Any two mistakes say any of them somewhere."""
    which = FunctionExercise("which", points=1, reference=lambda n: ["one", "two", "three"][n % 3])

    @which.cases
    def _(draw):
        yield from (Case({"n": n}) for n in range(6))

    @which.mistake
    def one_for_two(n):
        """The first is taken for the second."""
        return "one" if n % 3 == 1 else which.reference(n)

    @which.mistake
    def two_for_three(n):
        """The second is taken for the third."""
        return "two" if n % 3 == 2 else which.reference(n)

    assert verdict(which, lambda n: {1: "one", 2: "two"}.get(n % 3, "one")).mistake == ""
