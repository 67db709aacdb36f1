"""What later lessons ask about 09_cost."""

from __future__ import annotations

import numpy as np

from grader.programs.collectives import ring_bytes
from grader.questions import Question, core, stretch

LESSON = "09_cost"


@core("collective_bytes")
def bytes_of_a_collective(rng: np.random.Generator) -> Question:
    kind, factor = [
        ("all_gather", "(n-1)/n"),
        ("reduce_scatter", "(n-1)/n"),
        ("all_reduce", "2(n-1)/n"),
        ("all_to_all", "(n-1)/n²"),
    ][rng.integers(4)]
    n, kilobytes = int(rng.choice([2, 4, 8])), 64 * int(rng.integers(1, 9))
    operand = kilobytes / (n if kind.startswith("all_") and kind != "all_reduce" else 1)
    return Question(
        f"The whole array has {kilobytes} kB. How many kB does each of {n} devices send in one {kind} on a ring?",
        round(ring_bytes(kind, operand, n), 6),
        f"{factor} of {kilobytes} kB, with n = {n}.",
    )


@core("rooflines")
def bound_by(rng: np.random.Generator) -> Question:
    tokens, ratio = int(rng.choice([250, 500, 1000, 4000, 8000])), int(rng.choice([1500, 2500]))
    answer = "computation" if tokens > ratio else "communication"
    return Question(
        f"A device computes {ratio:,} FLOPs while it sends one byte. Data parallelism gives it {tokens:,} "
        "tokens. What is the backward pass bound by: 'computation' or 'communication'?",
        answer,
        f"Tokens per device against C/W: {tokens:,} against {ratio:,}.",
    )


@stretch("memory_per_device")
def state_of_a_parameter(rng: np.random.Generator) -> Question:
    stage, n = int(rng.integers(4)), int(rng.choice([2, 4, 8]))
    order = [("the optimizer's 12 bytes", 12), ("the gradient's 2", 2), ("the weight's 2", 2)]
    answer = sum(size / (n if k < stage else 1) for k, (_, size) in enumerate(order))
    cut = ", ".join(name for name, _ in order[:stage])
    shared = f"Each of {n} devices keeps 1/{n} of {cut}" if cut else f"Each of {n} devices keeps all of it"
    how = f"{shared}{'; the rest is whole on each' * (0 < stage < len(order))}."
    return Question(
        "Adam takes 16 bytes for each parameter: 2 for the weight, 2 for its gradient, and 12 for the optimizer's two "
        f"averages and float32 copy. {how} How many bytes does one parameter take on each device?",
        answer,
        f"2 + 2 + 12 bytes, and divided by {n} is: {cut or 'nothing'}.",
    )
