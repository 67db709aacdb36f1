"""§ 1 and § 4: who is where in which step, and what is held meanwhile. What is expected is what an experiment shows."""

from __future__ import annotations

import itertools
import math
import re

from grader.exercises import Case, FunctionExercise, TableExercise
from grader.lessons.pipelines.orders import gpipe_orders, one_f_one_b_orders
from grader.lessons.shared import believed
from grader.timetables import simulate

# The timetable of a pipeline, by letting queues run.

WHEN = (
    "2 stages, 4 microbatches: steps",
    "4 stages, 12 microbatches: idle steps of one stage",
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4",
    "4 stages, 12 microbatches, waiting for each: steps",
)


def _timetable(stages, microbatches, waiting=False):
    """Step by step, which microbatch each stage works on, counted from 0 (None: idle); a stage takes them in order."""
    free, table = [0] * stages, {}
    ready = 0
    for microbatch in range(microbatches):
        start = ready if waiting else 0
        for k in range(stages):
            step = max(free[k], start)
            table[k, step] = microbatch
            free[k] = start = step + 1
        ready = start
    steps = 1 + max(step for _, step in table)
    return [[table.get((k, step)) for step in range(steps)] for k in range(stages)]


def _when(row):
    stages, microbatches = map(int, re.findall(r"(\d+) (?:stages|microbatches)", row))
    table = _timetable(stages, microbatches, "waiting" in row)
    if "idle" in row:
        return table[0].count(None)
    if found := re.search(r"on stage (\d+) in step (\d+)", row):
        return table[int(found[1])][int(found[2])]
    return len(table[0])


timetable = TableExercise("timetable", points=3, reference=_when)
timetable.rows(WHEN)


@timetable.mistake
def one_after_the_other(row):
    """So long it takes if a microbatch begins only when the one before it is through. But the first stage is free
    again after one step."""
    return believed(row, 8, WHEN[0])


@timetable.mistake
def forgot_the_way_through(row):
    """With all stages busy, one microbatch is done in every step. But how many steps pass until the *first* one is
    done?"""
    return believed(row, 4, WHEN[0])


@timetable.mistake
def one_step_too_many(row):
    """In the step in which the first microbatch is on the second stage, the second one is on the first already. Draw
    the first three steps and count again."""
    return believed(row, 6, WHEN[0])


@timetable.mistake
def saw_no_idle_steps(row):
    """The last stage has nothing to do until something has come through the stages before it. And the first, at
    the end?"""
    return believed(row, 0, WHEN[1])


@timetable.mistake
def counted_all_stages_idleness(row):
    """That is the idleness of all stages together. The question is about one."""
    return believed(row, 12, WHEN[1])


@timetable.mistake
def took_the_step_for_the_batch(row):
    """In step 4 microbatch 4 enters the *first* stage. Stage 2 is two stages behind."""
    return believed(row, 4, WHEN[2])


@timetable.mistake
def counted_from_1(row):
    """Microbatches are counted from 0, as stages and steps are: microbatch 0 is on stage 0 in step 0."""
    return believed(row, 3, WHEN[2])


@timetable.mistake
def added_the_stage(row):
    """In step 4 only microbatches 0 to 4 have entered the pipeline, and 6 is none of them. Is stage 2 ahead of stage 0,
    or behind it?"""
    return believed(row, 6, WHEN[2])


@timetable.mistake
def one_step_shared(row):
    """So many steps there are if each microbatch begins while the one before is on its last stage. Whoever waits for
    one begins the next when it has *left* that stage: then no step belongs to two microbatches."""
    return believed(row, 37, WHEN[3])


@timetable.mistake
def waiting_costs_nothing(row):
    """If Python waits for a microbatch before it begins with the next, no two stages ever work at the same time."""
    return believed(row, 15, WHEN[3])


# A pipeline's bubble.


def _idle(stages, microbatches):
    empty, places = idle_places(stages, microbatches)
    return empty / places


bubble = FunctionExercise("bubble", points=2, reference=_idle)


@bubble.by_formula
def _idle_part(stages, microbatches):
    return (stages - 1) / (stages + microbatches - 1)


@bubble.cases
def _(draw):
    for _ in range(30):
        yield Case({"stages": int(draw.rng.integers(2, 17)), "microbatches": int(draw.rng.integers(2, 65))})


@bubble.mistake
def idle_against_busy(stages, microbatches):
    """That is idle time against *busy* time. The bubble is a part of the whole: of all the steps that a stage
    waits or works."""
    return (stages - 1) / microbatches


@bubble.mistake
def number_of_empty_places(stages, microbatches):
    """So many places of the table are empty, all stages together. The bubble is a part of the whole: how many places
    has the table?"""
    return stages * (stages - 1)


@bubble.mistake
def stages_over_microbatches(stages, microbatches):
    """For one stage the bubble would have to be nothing. How many steps does the last stage wait for its first
    microbatch?"""
    return stages / microbatches


@bubble.mistake
def one_step_more_than_there_are(stages, microbatches):
    """The whole is one step too long here. With one microbatch and S stages the pipeline runs S steps, not S + 1: work
    it out in the table of stages and steps."""
    return (stages - 1) / (stages + microbatches)


@bubble.mistake
def busy_part(stages, microbatches):
    """That is the part of the table in which a stage works. The bubble is what is left of it: the places with a
    dot."""
    return microbatches / (stages + microbatches - 1)


def _enough(stages, percent):
    """The fewest microbatches, found by trying."""

    def small_enough(microbatches):
        empty, places = idle_places(stages, microbatches)
        return 100 * empty < percent * places

    return next(filter(small_enough, itertools.count(1)))


microbatches = FunctionExercise("microbatches", points=2, reference=_enough)


@microbatches.by_formula
def _counted_up(stages, percent):
    pieces = 1
    while 100 * (stages - 1) >= percent * (stages + pieces - 1):
        pieces += 1
    return pieces


@microbatches.cases
def _(draw):
    """The bubble is to be *less* than this: exactly that much is not enough. Above 50 fewer than the stages will do,
    of two stages one. With 10 and 75 the bubble can be exactly that much, and parts that are rounded hide it."""
    yield Case({"stages": int(draw.rng.choice([8, 10])), "percent": 10})
    yield Case({"stages": 2, "percent": 60})
    yield Case({"stages": int(draw.rng.integers(5, 13)), "percent": 60})
    yield Case({"stages": int(draw.rng.choice([7, 10])), "percent": 75})
    for _ in range(20):
        yield Case({"stages": int(draw.rng.integers(2, 13)), "percent": int(draw.rng.choice([7, 12, 15, 20, 30]))})


def _above(bound: float) -> int:
    return math.floor(bound) + 1


@microbatches.mistake
def from_idle_against_busy(stages, percent):
    """More than needed: with these, idle time is below that part of the *busy* time. Of all the time, the bubble is
    (S-1)/(M+S-1)."""
    return _above((stages - 1) * 100 / percent)


@microbatches.mistake
def just_as_much(stages, percent):
    """With that many microbatches the bubble is exactly as large as it may not be. *Less* is asked for."""
    exact = (stages - 1) * (100 - percent) / percent
    return math.ceil(round(exact, 9))


@microbatches.mistake
def one_microbatch_short(stages, percent):
    """With that many the bubble is still too large. A part of a microbatch does not help: round up."""
    return max(1, _enough(stages, percent) - 1)


@microbatches.mistake
def percent_for_a_part(stages, percent):
    """With one microbatch the bubble is as large as it gets, and one comes out whatever is asked for. Was a bubble of
    0.1, a part of one, held against a number in percent?"""
    return 1


@microbatches.mistake
def not_a_whole_number(stages, percent):
    """This is where the bubble is *just* so large, solved for the microbatches. There are only whole ones, and the
    bubble shall be smaller: which number comes next?"""
    return 100 * (stages - 1) / percent - (stages - 1)


def idle_places(stages: int, microbatches: int) -> tuple[int, int]:
    """A pipeline step by step: (idle, all) places in its table of stages and steps."""
    done = [0] * stages  # microbatches that each stage has finished
    steps = 0
    while done[-1] < microbatches:
        ready = [stage for stage in range(stages) if done[stage] < (microbatches if stage == 0 else done[stage - 1])]
        for stage in ready:
            done[stage] += 1
        steps += 1
    return stages * steps - stages * microbatches, stages * steps


# What is held of each microbatch from its forward to its backward pass: played.

HELD = (
    "GPipe, 4 stages, 8 microbatches: held on stage 0",
    "1F1B, 4 stages, 8 microbatches: held on stage 0",
    "1F1B, 4 stages, 8 microbatches: held on stage 3",
    "1F1B, 8 stages, 4 microbatches: held on stage 0",
)


def _held(row: str) -> int:
    stages, microbatches, stage = map(int, re.findall(r"\b\d+\b", row))
    orders = gpipe_orders if row.startswith("GPipe") else one_f_one_b_orders
    return int(simulate(orders(stages, microbatches)).held[stage])


activations_held = TableExercise("activations_held", points=3, reference=_held)
activations_held.rows(HELD)


@activations_held.mistake
def as_many_as_stages(row):
    """GPipe sends all microbatches forward before the first one comes back. How many are then on their way?"""
    return believed(row, 4, HELD[0])


@activations_held.mistake
def as_many_as_microbatches(row):
    """In 1F1B a stage gives one back for each one that it takes, once its first gradient has come. How many forward
    passes did it do before that?"""
    return believed(row, 8, HELD[1], HELD[2])


@activations_held.mistake
def the_same_on_every_stage(row):
    """Stage 3 is the last one: there the way to the loss and back is nothing. It can go backward with a microbatch as
    soon as it has gone forward with it."""
    return believed(row, 4, HELD[2])


@activations_held.mistake
def one_too_few(row):
    """One microbatch fewer than are held. That of the stage's first backward pass is held, too, until this is done."""
    return {HELD[1]: 3, HELD[2]: 0, HELD[3]: 3}.get(row)


@activations_held.mistake
def one_too_many(row):
    """One microbatch more than are held. How many forward passes has a stage begun when its first gradient comes? From
    then on it takes the next one only after it has given one back."""
    return {HELD[1]: 5, HELD[2]: 2, HELD[3]: 5}.get(row)


@activations_held.mistake
def more_than_there_are(row):
    """There are only four microbatches. A stage cannot hold more than there are."""
    return believed(row, 8, HELD[3])
