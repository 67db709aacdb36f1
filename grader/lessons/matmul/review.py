"""What later lessons ask about 07_matmul."""

from __future__ import annotations

import numpy as np

from grader.programs.collectives import ring_bytes
from grader.questions import Question, core, stretch

LESSON = "07_matmul"


@core("name_the_case")
def needed_collective(rng: np.random.Generator) -> Question:
    left, right, answer, why = [
        ("A[I_X, J]", "B[J, K_Y]", "none", "Every device has all of J, so each can compute its block of C alone."),
        ("A[I, J_X]", "B[J, K]", "all_gather", "Only A lacks part of J. Gather it, and every device can multiply."),
        (
            "A[I, J_X]",
            "B[J_X, K]",
            "all_reduce",
            "Each device has the same part of J on both sides, so its product is a partial sum.",
        ),
        (
            "A[I_X, J]",
            "B[J, K_X]",
            "all_gather",
            "I and K want the same axis, so one of the two operands has to be gathered.",
        ),
    ][rng.integers(4)]
    return Question(
        f"{left} · {right} → C. C is sharded only over axes of I and K. Which collective does it need: 'none', "
        "'all_gather', or 'all_reduce'?",
        answer,
        why,
    )


@core(2)
def shape_of_a_part(rng: np.random.Generator) -> Question:
    x, y = [(4, 2), (2, 4)][rng.integers(2)]
    rows, columns = (int(n) for n in rng.choice([8, 16, 24, 32], size=2, replace=False))
    written, down, across = [
        ("A[I_X, J]", x, 1),
        ("A[I, J_Y]", 1, y),
        ("A[I_X, J_Y]", x, y),
        ("A[I, J_XY]", 1, x * y),
    ][rng.integers(4)]
    return Question(
        f"A mesh has x={x} and y={y}, and {written} has I = {rows} and J = {columns}. What is the shape of one "
        "device's block? Write a tuple.",
        (rows // down, columns // across),
        "Divide each dimension by the sizes of the axes that are written below it.",
    )


@stretch("bytes_sent")
def bytes_of_an_all_reduce(rng: np.random.Generator) -> Question:
    n, rows, columns = int(rng.choice([2, 4, 8])), int(rng.choice([8, 16, 24])), int(rng.choice([32, 40]))
    answer = round(ring_bytes("all_reduce", 4 * rows * columns, n))
    return Question(
        f"{n} devices each hold a float32[{rows},{columns}], and sum them with an all-reduce on a ring. "
        "How many bytes does each device send?",
        answer,
        f"2·({n}-1)/{n} of {4 * rows * columns:,} bytes, for a reduce-scatter and an all-gather.",
    )
