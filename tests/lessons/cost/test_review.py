"""The questions that later lessons ask about costs: right, and never the same twice."""

import re

import pytest
from asking import asked

from grader.lessons.cost import review as questions
from grader.lessons.cost.rings_played import play


def test_bytes_are_those_of_a_ring_played_through():
    for question in asked(questions.bytes_of_a_collective):
        whole, n, kind = re.search(r"has (\d+) kB.*each of (\d) devices send in one (\w+)", question.ask).groups()
        assert question.answer == pytest.approx(play(kind, int(n), float(whole)).sent)


def test_the_state_shrinks_from_sixteen_bytes_to_an_nth_of_them():
    found = {question.ask: question.answer for question in asked(questions.state_of_a_parameter)}
    for ask, answer in found.items():
        n = int(re.search(r"(\d) devices", ask)[1])
        assert 16 / n <= answer <= 16
        assert (answer == 16) == ("keeps all of it" in ask) and (answer == 16 / n) == ("the weight's 2" in ask)
