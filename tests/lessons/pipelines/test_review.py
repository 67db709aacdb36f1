"""The review questions of lesson 16: the answer is worked out, and the formula agrees."""

import re

from asking import asked

from grader.lessons.pipelines import review as questions


def numbers(text):
    return [int(number) for number in re.findall(r"\b\d+\b", text)]


def test_the_last_microbatch_enters_and_then_passes_the_other_stages():
    for question in asked(questions.steps_of_a_pipeline):
        entered, more = numbers(question.why)
        assert question.answer == entered + more


def test_the_microbatch_of_a_turn_is_the_turn_less_the_stage():
    for question in asked(questions.microbatch_of_a_turn):
        turn, stage = numbers(question.why)[-2:]
        assert question.answer == turn - stage


def test_a_stage_holds_as_many_as_lie_between_it_and_the_end():
    for question in asked(questions.held_by_a_stage):
        stages, stage = numbers(question.why)
        assert question.answer == stages - stage


def test_a_round_more_costs_no_more_bubble():
    for question in asked(questions.rounds_and_bubble):
        rounds, microbatches, later = numbers(question.why)
        assert question.answer == rounds * microbatches + later
