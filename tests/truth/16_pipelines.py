"""Answers to what moved to lesson 16 from 03 and 09, written by a reader of the notebook only."""

import math

timetable__right_counted = {
    "2 stages, 1 batch: steps": 2,
    "2 stages, 4 batches: steps": 5,
    "4 stages, 12 batches: steps": 15,
    "4 stages, 12 batches: idle steps of one stage": 3,
    "4 stages, 12 batches: batch on stage 3 in step 5": 3,
    "4 stages, 12 batches, waiting for each: steps": 48,
}
# batches plus stages
timetable__wrong_plus = timetable__right_counted | {"4 stages, 12 batches: steps": 16}
# one after the other
timetable__wrong_product = timetable__right_counted | {"2 stages, 4 batches: steps": 8}
# perfectly overlapped
timetable__wrong_perfect = timetable__right_counted | {"4 stages, 12 batches: steps": 12}
# the idle steps of all stages
timetable__wrong_idle = timetable__right_counted | {"4 stages, 12 batches: idle steps of one stage": 12}
# counts from zero
timetable__wrong_zero = timetable__right_counted | {"4 stages, 12 batches: batch on stage 3 in step 5": 2}
# waiting costs nothing
timetable__wrong_waiting = timetable__right_counted | {"4 stages, 12 batches, waiting for each: steps": 15}
# the step less the stage, wrong sign
timetable__wrong_sign = timetable__right_counted | {"4 stages, 12 batches: batch on stage 3 in step 5": 7}


def bubble__right_formula(stages, microbatches):
    """The formula."""
    return (stages - 1) / (stages + microbatches - 1)


def bubble__right_counted(stages, microbatches):
    """One less what is used."""
    steps = stages + microbatches - 1
    return 1 - stages * microbatches / (stages * steps)


def bubble__wrong_m(stages, microbatches):
    """Over the microbatches."""
    return (stages - 1) / microbatches


def bubble__wrong_steps(stages, microbatches):
    """S + M steps."""
    return (stages - 1) / (stages + microbatches)


def bubble__wrong_busy(stages, microbatches):
    """The busy part."""
    return microbatches / (stages + microbatches - 1)


def bubble__wrong_percent(stages, microbatches):
    """In per cent."""
    return 100 * (stages - 1) / (stages + microbatches - 1)


def bubble__wrong_number(stages, microbatches):
    """The number of empty places."""
    return stages * (stages - 1)


def bubble__wrong_s(stages, microbatches):
    """S in place of S − 1."""
    return stages / (stages + microbatches - 1)


def bubble__wrong_floor(stages, microbatches):
    """Whole numbers."""
    return (stages - 1) // (stages + microbatches - 1)


def microbatches__right_counted(stages, percent):
    """Counts up."""
    m = 1
    while 100 * (stages - 1) >= percent * (m + stages - 1):
        m += 1
    return m


def microbatches__right_solved(stages, percent):
    """Solved: strictly more than 100 (S−1)/p − (S−1)."""
    return max(1, 100 * (stages - 1) // percent - (stages - 1) + 1)


def microbatches__wrong_equal(stages, percent):
    """At most, not less than."""
    m = 1
    while 100 * (stages - 1) > percent * (m + stages - 1):
        m += 1
    return m


def microbatches__wrong_ceil(stages, percent):
    """ceil: wrong where it comes out even."""
    return max(1, math.ceil(100 * (stages - 1) / percent - (stages - 1)))


def microbatches__wrong_part(stages, percent):
    """A percent taken for a part of one."""
    m = 1
    while (stages - 1) / (m + stages - 1) >= percent:
        m += 1
    return m


def microbatches__wrong_over_m(stages, percent):
    """The bubble over M."""
    m = 1
    while 100 * (stages - 1) >= percent * m:
        m += 1
    return m


def microbatches__wrong_zero(stages, percent):
    """Starts at zero."""
    m = 0
    while 100 * (stages - 1) >= percent * (m + stages - 1):
        m += 1
    return m - 1


def microbatches__wrong_float(stages, percent):
    """No rounding."""
    return 100 * (stages - 1) / percent - (stages - 1)
