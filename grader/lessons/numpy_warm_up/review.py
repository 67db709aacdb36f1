"""What the first lesson asks: NumPy, which everything here is built on."""

from __future__ import annotations

import numpy as np

from grader.questions import Question, core

LESSON = "00_numpy_warm_up"


@core()
def entry_after_reshape(rng: np.random.Generator) -> Question:
    rows, columns = [(4, 2), (2, 4), (3, 4), (4, 3), (2, 6)][rng.integers(5)]
    i, j = int(rng.integers(1, rows)), int(rng.integers(columns))
    answer = int(np.arange(rows * columns).reshape(rows, columns)[i, j])
    return Question(
        f"What is np.arange({rows * columns}).reshape({rows}, {columns})[{i}, {j}]?",
        answer,
        f"reshape fills row by row: {i} full rows of {columns}, then {j} more.",
    )


@core()
def shape_of_a_block(rng: np.random.Generator) -> Question:
    rows, columns = int(rng.choice([8, 16])), int(rng.choice([12, 24]))
    down, across = int(rng.choice([2, 4])), int(rng.choice([2, 3]))
    block = np.zeros((rows, columns))[: rows // down, columns - columns // across :]
    return Question(
        f"a has shape ({rows}, {columns}). What is the shape of a[:{rows // down}, "
        f"{columns - columns // across}:]? A tuple.",
        block.shape,
        f"The first {rows // down} rows, and the last {columns // across} columns: one of {down * across} equal "
        f"blocks of a, {down} down and {across} across.",
    )


@core()
def shape_of_a_product(rng: np.random.Generator) -> Question:
    i, j, k = (int(n) for n in rng.choice([2, 3, 5, 7, 8], size=3, replace=False))
    written, left, right = [
        ("A @ B", (i, j), (j, k)),
        ("A @ B.T", (i, j), (k, j)),
        ("A.T @ B", (j, i), (j, k)),
    ][rng.integers(3)]
    answer = (np.zeros((i, j)) @ np.zeros((j, k))).shape
    return Question(
        f"A has shape {left} and B has shape {right}. What is the shape of {written}? A tuple.",
        answer,
        f"The matmul sums over the {j} that both have, and leaves {i} rows and {k} columns.",
    )


@core()
def block_that_holds_an_entry(rng: np.random.Generator) -> Question:
    parts, size = int(rng.choice([2, 4, 8])), int(rng.choice([3, 5, 6]))
    entry = int(rng.integers(size, parts * size))
    answer = next(k for k, block in enumerate(np.split(np.arange(parts * size), parts)) if entry in block)
    return Question(
        f"np.arange({parts * size}) is split into {parts} equal blocks, numbered from 0. Which block holds {entry}?",
        answer,
        f"A block has {size} elements, and {entry} // {size} is {answer}.",
    )
