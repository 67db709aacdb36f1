"""What may be asked again about 22_capstone."""

from __future__ import annotations

import numpy as np

from grader.questions import Question, core

LESSON = "22_capstone"


@core("specs")
def share_of_a_matrix(rng: np.random.Generator) -> Question:
    """What a device holds of a matrix that is cut over both axes."""
    data, model = (int(n) for n in rng.choice([2, 4, 8], 2))
    width, hidden = (int(n) for n in rng.choice([64, 128, 256, 512], 2))
    return Question(
        f"A mesh of {data} × {model}, data × model. A matrix of {width} × {hidden} float32 is cut in its first "
        "dimension over data and in its second over model. How many bytes has each device?",
        4 * width * hidden // (data * model),
        f"4 · {width} · {hidden} / ({data} · {model}).",
    )


@core("loss")
def two_sums(rng: np.random.Generator) -> Question:
    """The mean over tokens that are dealt out unevenly."""
    counts = [[1, 3], [3, 5], [1, 7], [2, 6]][int(rng.integers(4))]
    means = [int(n) for n in rng.choice([1, 2, 3, 4, 5, 6], 2, replace=False)]
    total = sum(count * mean for count, mean in zip(counts, means, strict=True))
    return Question(
        f"Two devices have {counts[0]} and {counts[1]} real tokens, and their mean losses are {means[0]} and "
        f"{means[1]}. What is the loss of the batch?",
        total / sum(counts),
        f"({counts[0]} · {means[0]} + {counts[1]} · {means[1]}) / ({counts[0]} + {counts[1]}).",
    )


@core("step")
def norm_of_parts_and_copies(rng: np.random.Generator) -> Question:
    """The square of the norm of all gradients, of which some are in parts and some are copies."""
    devices = int(rng.choice([4, 8]))
    part, copy = (int(n) for n in rng.choice([1, 2, 3, 4, 5, 6], 2, replace=False))
    return Question(
        f"On each of {devices} devices the squares of its parts of the gradients add up to {part}, and those of the "
        f"copies to {copy}. What is the square of the norm of all gradients?",
        devices * part + copy,
        f"Parts are added over the devices, copies counted once: {devices} · {part} + {copy}.",
    )
