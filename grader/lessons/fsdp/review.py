"""What later lessons ask about 14_fsdp."""

from __future__ import annotations

import numpy as np

from grader.programs.collectives import ring_bytes
from grader.questions import Question, core, stretch

LESSON = "14_fsdp"


@core("zero_table")
def bytes_of_a_stage(rng: np.random.Generator) -> Question:
    n, stage = int(rng.choice([4, 8, 16])), int(rng.integers(1, 4))
    cut = [12, 2, 2][:stage]
    answer = 16 - sum(cut) + sum(cut) / n
    return Question(
        f"A parameter takes 2 (weight) + 2 (gradient) + 12 (optimizer) bytes. How many of them are on each of {n} "
        f"devices in ZeRO's stage {stage}?",
        answer,
        f"Stage {stage} divides {sum(cut)} of the sixteen: {16 - sum(cut)} + {sum(cut)}/{n}.",
    )


@core("fsdp_scan")
def gathers_of_a_step(rng: np.random.Generator) -> Question:
    layers, kind = int(rng.integers(4, 40)), str(rng.choice(["all_gather", "reduce_scatter"]))
    answer = 2 * layers if kind == "all_gather" else layers
    return Question(
        f"FSDP, {layers} layers with one matrix each; each is gathered in a scan under jax.checkpoint. How many "
        f"{kind}s of matrices run in a step's loss and gradient?",
        answer,
        "A layer is gathered on the way forwards and once more on the way back; its gradient is reduced once.",
    )


@stretch("hybrid")
def bytes_between_slices(rng: np.random.Generator) -> Question:
    slices, n, rows, columns = (int(rng.choice(some)) for some in ([2, 4], [4, 8], [64, 128], [32, 48]))
    answer = round(ring_bytes("all_reduce", 4 * rows * columns // n, slices))
    return Question(
        f"W, float32[{rows},{columns}], is in shares over the {n} devices of a slice, with copies in {slices} "
        "slices. How many bytes of its gradient must each device send between the slices, in a ring?",
        answer,
        f"An all_reduce of its share, {4 * rows * columns // n:,} bytes, over {slices}: the reduce_scatter in the "
        "slice comes first.",
    )


@core("fsdp_gradient")
def gradient_of_shares(rng: np.random.Generator) -> Question:
    n, factor = int(rng.choice([2, 4, 8])), int(rng.integers(2, 6))
    return Question(
        f"FSDP over {n} devices, with equally many examples on each. A device's own mean loss is differentiated with "
        f"respect to its shares, through the all_gather. On one device the gradient of some weight is {factor}. What "
        "comes out here?",
        n * factor,
        f"The reduce_scatter adds up {n} gradients of means; nobody has divided by {n}.",
    )
