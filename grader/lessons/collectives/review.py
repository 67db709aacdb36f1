"""What later lessons ask about 06_collectives."""

from __future__ import annotations

import numpy as np

from grader.programs.buffers import COLLECTIVES, after, over, puzzle
from grader.questions import Question, core, stretch

LESSON = "06_collectives"

WHY = {
    "all_gather": "Every device holds all blocks, stacked: one row per device.",
    "all_gather tiled": "Every device holds all blocks, concatenated.",
    "psum": "Every device holds the sums across devices, element by element.",
    "pmean": "Every device holds the means across devices, element by element.",
    "pmax": "Every device holds the largest across devices, element by element.",
    "psum_scatter": "Each device holds its part of the sums across devices.",
    "all_to_all": "Each device holds one piece of every block.",
    "ppermute +1": "Each block went to the device with the next number.",
    "ppermute -1": "Each block went to the device with the number before.",
    "axis_index": "Each device holds its own index.",
}


@core("which_collective")
def collective_of_buffers(rng: np.random.Generator) -> Question:
    exchange = puzzle(rng)
    buffers = "; ".join(f"{b.tolist()} → {a.tolist()}" for b, a in zip(exchange.before, exchange.after, strict=True))
    return Question(
        f"Four devices along x, before → after one collective: {buffers}. Which one? One of "
        f"{', '.join(map(repr, COLLECTIVES))}.",
        exchange.name,
        WHY[exchange.name],
    )


@core(1, 3)
def shape_after(rng: np.random.Generator) -> Question:
    n = int(rng.choice([2, 4]))
    rows, columns = n * int(rng.integers(1, 4)), n * int(rng.integers(4, 7))
    name, call, why = [
        ("all_gather", "jax.lax.all_gather(b, 'x')", "Untiled, the blocks are stacked along a new first dimension."),
        (
            "all_gather tiled",
            "jax.lax.all_gather(b, 'x', tiled=True)",
            "Tiled, the blocks are concatenated along dimension 0.",
        ),
        ("psum_scatter", "jax.lax.psum_scatter(b, 'x', tiled=True)", "Each device keeps its part of the rows."),
        ("psum", "jax.lax.psum(b, 'x')", "A sum across devices has the shape of one block."),
    ][rng.integers(4)]
    block = after(over(name), [np.zeros((rows, columns), np.float32)] * n, {"x": n})[0]
    return Question(
        f"{n} devices along x, each with a block b of shape ({rows}, {columns}). What is the shape of each device's "
        f"result of {call}? A tuple.",
        block.shape,
        why,
    )


@stretch("transposed_pair")
def transposed_of(rng: np.random.Generator) -> Question:
    name, answer, why = [
        (
            "all_gather (without `to=`)",
            "psum_scatter",
            "The backward pass sums the gradients of all copies, and each device keeps its part.",
        ),
        ("psum_scatter", "all_gather", "The gradient of a sum is copied to all devices that contributed to it."),
        ("all_to_all", "all_to_all", "Every piece goes to one device, so in the backward pass it comes straight back."),
        ("ppermute", "ppermute", "The same pairs, with the directions reversed."),
    ][rng.integers(4)]
    return Question(f"A forward pass calls {name}. Which collective does the backward pass call?", answer, why)


@stretch("masked_mean")
def mean_of_what_is_kept(rng: np.random.Generator) -> Question:
    n = int(rng.choice([2, 3, 4]))
    counts = rng.permutation(np.arange(1, 7))[:n]
    means = rng.integers(1, 10, size=n)
    answer = round(float((counts * means).sum() / counts.sum()), 3)
    parts = "; ".join(f"{c} elements with mean {m}" for c, m in zip(counts, means, strict=True))
    return Question(
        f"On {n} devices, a mask keeps: {parts}. What is the mean of all elements that are kept, to three decimals?",
        answer,
        "It is the sum of the sums divided by the sum of the counts, not the mean of the means.",
    )
