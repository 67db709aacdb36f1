"""Of a function that passes over entries of a list it is said which."""

from collections import Counter

from grader.exercises import Case, Exercise
from grader.exercises.answers import Value
from grader.judging.leaving import passed_over

LISTS = [["a", "b", "c", "a"], ["b", "b", "c"], ["a", "c", "c", "b"]]
counting = Exercise("counting_of_a_test", points=1, form="function", reference=lambda words: dict(Counter(words)))
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
