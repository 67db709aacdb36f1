"""What later lessons ask about 18_long_context."""

from __future__ import annotations

import numpy as np

from grader.questions import Question, core

LESSON = "18_long_context"


@core("causal_ring")
def keys_seen(rng: np.random.Generator) -> Question:
    """How many keys a query sees that does not stand at the start of the text."""
    n, block = int(rng.choice([4, 8])), int(rng.integers(3, 9))
    device, place = int(rng.integers(1, n)), int(rng.integers(block))
    return Question(
        f"A text of {n * block} tokens is on {n} devices, block after block. How many keys does query number {place} "
        f"of device {device} see under a causal mask, both counted from 0?",
        device * block + place + 1,
        f"It stands at {device} · {block} + {place} in the text, and sees itself and all before.",
    )


@core("zigzag")
def chunks_of_a_device(rng: np.random.Generator) -> Question:
    """Which chunk makes up for the first one in zig-zag order."""
    n = int(rng.choice([4, 8, 16]))
    device = int(rng.integers(n))
    return Question(
        f"A text is dealt out to {n} devices in zig-zag order. Of device {device} one chunk is number {device}, "
        "counted from 0. Which is the other?",
        2 * n - 1 - device,
        f"There are {2 * n} chunks, and the second is counted from the other end: {2 * n} − 1 − {device}.",
    )


@core("merge")
def weight_of_two_parts(rng: np.random.Generator) -> Question:
    """How a part of a softmax counts when a larger logit turns up."""
    one, other = int(rng.integers(2, 9)), int(rng.integers(2, 9))
    top = int(rng.integers(5, 30))
    return Question(
        f"Two parts of a softmax: largest logit {top} with weight {one}, and largest logit {top} with weight {other}. "
        "What is the weight of both together?",
        one + other,
        "Both are relative to the same largest logit, so the weights add up. Were one larger, the other part would be "
        "scaled by e to the power of the difference first.",
    )
