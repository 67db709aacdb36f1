"""What later lessons ask about 15_collective_matmul."""

from __future__ import annotations

import numpy as np

from grader.draw.films import ring
from grader.programs.collectives import ring_bytes
from grader.questions import Question, core

LESSON = "15_collective_matmul"


@core("ag_matmul_ring")
def block_at_a_step(rng: np.random.Generator) -> Question:
    n, by = int(rng.integers(4, 9)), int(rng.choice([-1, 1]))
    step, device = int(rng.integers(1, n)), int(rng.integers(n))
    answer = ring(n, by).holds[step][device]
    way, came, sign = ("up, from d to d + 1", "below", "−") if by == 1 else ("down, from d to d − 1", "above", "+")
    return Question(
        f"A ring of {n} devices; device d begins with block d, and blocks move one place {way}, modulo n. "
        f"Which block does device {device} hold after {step} transfers?",
        answer,
        f"What it holds came from the devices {came} it: ({device} {sign} {step}) mod {n}.",
    )


@core("rs_matmul_ring")
def start_of_a_sum(rng: np.random.Generator) -> Question:
    n, by = int(rng.integers(4, 9)), int(rng.choice([-1, 1]))
    device = int(rng.integers(n))
    answer = ring(n, by, start=by * (n - 1)).holds[0][device]
    way, neighbour = ("up", "below") if by == 1 else ("down", "above")
    return Question(
        f"A ring of {n} devices multiplies and reduces: sums move one place {way}, {n - 1} times, and the "
        f"sum for block d must end on device d. With which block does device {device} begin?",
        answer,
        f"{n - 1} places {way} are one place the other way, so it begins with the block whose home is the "
        f"neighbour {neighbour}: {answer}.",
    )


@core("ag_matmul_ring")
def transfers_and_bytes(rng: np.random.Generator) -> Question:
    n, rows, columns = int(rng.choice([2, 4, 8])), int(rng.choice([64, 128])), int(rng.choice([16, 32]))
    answer = round(ring_bytes("all_gather", 4 * rows * columns / n, n))
    return Question(
        f"B, float32[{rows},{columns}], is cut by rows over {n} devices and goes round the ring, a block a "
        "step, while each block is multiplied. How many bytes does each device send in all?",
        answer,
        f"{n - 1} transfers of {4 * rows * columns // n:,} bytes: as many as an all_gather sends. Overlap "
        "saves time, not bytes.",
    )


@core("ring_time")
def time_of_a_ring(rng: np.random.Generator) -> Question:
    n, product, transfer = int(rng.choice([4, 8])), *map(int, rng.choice(np.arange(2, 20), 2, replace=False))
    answer = product + (n - 1) * max(product, transfer)
    return Question(
        f"{n} products of {product} µs each, and {n - 1} transfers of {transfer} µs, one beside each "
        "product but the last. How many µs does the ring take?",
        answer,
        f"{n - 1} steps of {max(product, transfer)} µs, the longer one of the two, and the last product.",
    )
