"""What later lessons ask about 16_pipelines. Every answer is a pipeline that was played through."""

from __future__ import annotations

import numpy as np

from grader.questions import Question, core, stretch
from grader.timetables import simulate

LESSON = "16_pipelines"


@core("timetable")
def steps_of_a_pipeline(rng: np.random.Generator) -> Question:
    stages, microbatches = int(rng.integers(2, 9)), int(rng.integers(3, 17))
    free = [0] * stages
    for _ in range(microbatches):
        ready = 0
        for k in range(stages):
            ready = free[k] = max(free[k], ready) + 1
    return Question(
        f"A pipeline of {stages} stages on meshes of their own, {microbatches} microbatches, one step for each of "
        "them in each stage. After how many steps is everything done, if nobody waits in between?",
        free[-1],
        f"The last microbatch enters in step {microbatches} and passes {stages - 1} more stages.",
    )


@core("gpipe")
def microbatch_of_a_turn(rng: np.random.Generator) -> Question:
    stages = int(rng.integers(3, 9))
    microbatches, stage = int(rng.integers(stages, 3 * stages)), int(rng.integers(1, stages))
    forward = simulate([[f"F{m}" for m in range(microbatches)]] * stages)
    answer = int(rng.integers(microbatches))
    turn = forward.starts[stage][answer]
    return Question(
        f"A pipeline of {stages} stages, one step for each microbatch in each; stages, turns and microbatches are "
        f"counted from 0. Which microbatch is on stage {stage} in turn {turn}?",
        answer,
        f"What is on stage {stage} entered {stage} turns before: {turn} - {stage}.",
    )


@core("activations_held")
def held_by_a_stage(rng: np.random.Generator) -> Question:
    """What a stage of 1F1B holds, counted in its order."""
    stages, microbatches = int(rng.integers(2, 9)), int(rng.integers(9, 17))
    stage = int(rng.integers(stages))
    warm_up = stages - stage
    order = [f"F{m}" for m in range(warm_up)]
    for m in range(microbatches):
        order += [f"B{m}"] + ([f"F{m + warm_up}"] if m + warm_up < microbatches else [])
    return Question(
        f"1F1B with {stages} stages and {microbatches} microbatches. Of how many microbatches does stage {stage}, "
        "counted from 0, hold the activations at most?",
        int(simulate([order]).held[0]),
        f"It has done {stages} - {stage} forward passes when its first gradient comes; from then on it gives one back "
        "for each that it takes.",
    )


@stretch("circular")
def rounds_and_bubble(rng: np.random.Generator) -> Question:
    stages, rounds = int(rng.choice([2, 4])), int(rng.choice([2, 3]))
    microbatches = stages * int(rng.integers(1, 4))
    order = [
        f"F{g * stages + k}@{{}}" for g in range(microbatches // stages) for _ in range(rounds) for k in range(stages)
    ]
    number = [r for _ in range(microbatches // stages) for r in range(rounds) for _ in range(stages)]
    orders = [[work.format(d + r * stages) for work, r in zip(order, number, strict=True)] for d in range(stages)]
    return Question(
        f"A circular pipeline: {stages} devices, {rounds} rounds of a layer each, {microbatches} microbatches, a turn "
        "for each microbatch and layer. How many turns until the last is through?",
        simulate(orders).steps,
        f"Every device works in {rounds} · {microbatches} of them, and the last one begins {stages - 1} later.",
    )
