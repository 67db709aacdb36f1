"""Of a function that passes over entries of a list it is said which."""

from collections import Counter

from grader.exercises import Case, FunctionExercise
from grader.exercises.answers import Value
from grader.judging.leaving import cut_short, passed_over

LISTS = [["a", "b", "c", "a"], ["b", "b", "c"], ["a", "c", "c", "b"]]
counting = FunctionExercise("counting_of_a_test", points=1, reference=lambda words: dict(Counter(words)))
CASES = [Case({"words": words}) for words in LISTS]


def heard(function):
    return passed_over(counting, CASES, [Value(function(words)) for words in LISTS], 0)


def test_entries_that_are_passed_over_are_told():
    def without_b(words):
        return dict(Counter(word for word in words if word != "b"))

    assert "without these entries of `words`: 'b'. By what" in heard(without_b)


def test_of_entries_that_count_twice_nothing_is_said():
    assert heard(lambda words: {word: 2 * n for word, n in Counter(words).items()}) == ""


def test_of_what_counts_otherwise_nothing_is_said():
    assert heard(lambda words: {word: 1 for word in words if words.count(word) > 1}) == ""


chained = FunctionExercise("chained_of_a_test", points=1, reference=lambda x, ks: [k * x for k in ks][-1] + len(ks))
CHAINS = [Case({"x": x, "ks": ks}) for x, ks in ((2, [3, 5]), (7, [2, 9, 4]))]


def cut(function):
    return cut_short(chained, CHAINS, [Value(function(**case.arguments)) for case in CHAINS], 0)


def test_that_an_end_of_a_list_is_left_out_is_told():
    def without_the_last(x, ks):
        return ks[-2] * x + len(ks) - 1

    assert cut(without_the_last).startswith(
        "In every case yours has the numbers that are due without the last of `ks`."
    )
    assert cut(lambda x, ks: ks[-1] * x + 1) != ""


def test_of_another_function_of_the_list_nothing_is_said():
    assert cut(lambda x, ks: sum(ks) * x) == ""
