"""What later lessons ask about 12_data_parallel."""

from __future__ import annotations

import numpy as np

from grader.programs.collectives import ring_bytes
from grader.questions import Question, core, stretch

LESSON = "12_data_parallel"
FLOAT = 4


@core("accumulate")
def turns_never_divided(rng: np.random.Generator) -> Question:
    n, turns, rows = int(rng.choice([2, 4, 8])), int(rng.choice([3, 4, 5, 6])), int(rng.choice([2, 4]))
    return Question(
        f"{n * turns * rows} rows on {n} devices. Each device takes its rows in {turns} turns and adds up the "
        "gradients of the turns' mean losses; after the last turn comes one pmean over the devices, and nothing else. "
        "How many times too large is the result?",
        turns,
        f"A sum of {turns} means on each device, and a pmean of equal shares changes no size.",
    )


@core("accumulate")
def sums_in_every_turn(rng: np.random.Generator) -> Question:
    n, turns = int(rng.choice([2, 4, 8])), int(rng.choice([3, 4, 5, 6]))
    marked = bool(rng.integers(2))
    params = "marked as varying before the loop" if marked else "taken into the loop as they came in, with P()"
    return Question(
        f"shard_map's check is on. Each of {n} devices takes the gradients of its rows in {turns} turns of a scan, "
        f"with the parameters {params}. How often are gradients added up over the devices before the loop ends?",
        0 if marked else turns,
        "The gradients with respect to varying parameters stay each device's own."
        if marked
        else "The gradient with respect to a replicated parameter is summed over the devices by itself, in every turn.",
    )


@core("shard_map_dp")
def rows_of_a_device(rng: np.random.Generator) -> Question:
    data, model, share = *[(4, 2), (2, 4), (8, 1)][rng.integers(3)], int(rng.choice([3, 5, 6]))
    return Question(
        f"A mesh data={data}, model={model}, and a batch of {data * share} rows with P('data'). The mean loss over a "
        "device's own rows is a mean over how many?",
        share,
        f"{data * share} rows over the {data} devices along data; along model are copies.",
    )


@stretch("dp_numbers")
def bytes_of_a_step(rng: np.random.Generator) -> Question:
    n, rows, inputs, outputs = (int(rng.choice(choice)) for choice in ([2, 4, 8], [64, 128, 256], [16, 24], [32, 40]))
    numbers = inputs * outputs + outputs
    answer = round(ring_bytes("all_reduce", numbers * FLOAT, n))
    return Question(
        f"One layer, W float32[{inputs},{outputs}] and b float32[{outputs}], trained data parallel on {n} "
        f"devices, {rows} rows in all. How many bytes does each device send for the gradients in a step, "
        "on a ring?",
        answer,
        f"2·({n}-1)/{n} · 4 B for each of {numbers} parameters, however many rows there are.",
    )


@stretch("same_lr_question")
def the_rate_that_makes_the_same_step(rng: np.random.Generator) -> Question:
    n, share = int(rng.choice([2, 4, 8])), int(rng.choice([3, 5, 6]))
    local, combine, factor, why = [
        ("the mean over its own rows", "psum", n, f"A sum of {n} means is {n} times their mean."),
        ("the sum over its own rows", "pmean", share, f"A sum over {share} rows is {share} times their mean."),
        ("the sum over its own rows", "psum", n * share, f"A sum over all {n * share} rows, not their mean."),
        ("the mean over its own rows", "pmean", 1, "The mean of equally large shares' means is the mean of all."),
    ][rng.integers(4)]
    return Question(
        f"{n} devices have {share} rows each. Each takes the gradient of {local} (check_vma off), and they "
        f"are combined by {combine}. How many times the gradient of the mean over all rows is that?",
        factor,
        why,
    )


@stretch("clip_by_global_norm")
def norm_of_parts_and_copies(rng: np.random.Generator) -> Question:
    n, part, copy = int(rng.choice([2, 4, 8])), int(rng.integers(2, 6)), int(rng.integers(3, 9))
    return Question(
        f"{n} devices along `model` hold parts of a gradient W; the squares in each part add up to {part}. "
        f"All of them hold the same b, whose squares add up to {copy}. What is the *square* of the norm of "
        "both together?",
        n * part + copy,
        f"Parts are summed over the devices, {n}·{part}; copies count once, {copy}.",
    )


@stretch("metrics")
def mean_with_padding(rng: np.random.Generator) -> Question:
    share = int(rng.choice([4, 6, 8]))
    real = [share, int(rng.integers(1, share))]
    hits = [int(rng.integers(1, count + 1)) for count in real]
    return Question(
        f"Two devices hold {share} rows each; {real[0]} and {real[1]} of them are real, the rest is "
        f"padding. Of the real ones {hits[0]} and {hits[1]} are predicted right. What is the accuracy? (a "
        "number)",
        sum(hits) / sum(real),
        f"Sums first, then one division: {sum(hits)} of {sum(real)}. The mean of the devices' own "
        "accuracies would weigh rows differently.",
    )
