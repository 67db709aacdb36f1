"""What later lessons ask about 17_experts."""

from __future__ import annotations

import math

import numpy as np

from grader.programs.collectives import ring_bytes
from grader.questions import Question, core, stretch

LESSON = "17_experts"


@core("slots")
def slot_of_a_choice(rng: np.random.Generator) -> Question:
    chosen = rng.integers(3, size=8)
    place = int(rng.integers(4, 8))
    answer = int((chosen[:place] == chosen[place]).sum())
    return Question(
        f"The choices of one device are experts {', '.join(map(str, chosen))}. Which slot of its expert's buffer does "
        f"the one at place {place} get? (Places and slots count from 0.)",
        answer,
        f"As many choices before it want expert {chosen[place]}.",
    )


@core("slots")
def dropped_choices(rng: np.random.Generator) -> Question:
    wanted, capacity = rng.multinomial(24, [0.4, 0.3, 0.2, 0.1]), int(rng.integers(5, 8))
    answer = int(np.maximum(wanted - capacity, 0).sum())
    return Question(
        f"On a device {', '.join(map(str, wanted))} choices want experts 0, 1, 2 and 3, and it has {capacity} slots "
        "for each. How many are dropped?",
        answer,
        "Of each expert those beyond its slots; what is free with one expert is of no use to another.",
    )


@core("moe_all_to_all")
def bytes_there_and_back(rng: np.random.Generator) -> Question:
    n, k, tokens, width = (int(rng.choice(of)) for of in ((4, 8), (2, 4), (128, 256), (64, 128)))
    answer = round(2 * ring_bytes("all_to_all", 2 * k * tokens * width, n))
    return Question(
        f"{n} devices with one expert and {tokens} tokens of {width} bfloat16 each, {k} choices a token, and on "
        "each device as many slots in all as it has choices. How many bytes does a device send in both all_to_alls?",
        answer,
        f"Twice (n−1)/n of its buffers: {k} · {tokens} slots of {2 * width} bytes.",
    )


@stretch("ring_of_experts")
def cheaper_way(rng: np.random.Generator) -> Question:
    n, k = (int(rng.choice(of)) for of in ((4, 16), (2, 8)))
    answer = "gather" if k > n else "all_to_all"  # never equal
    return Question(
        f"{n} devices, {k} choices a token, capacity factor 1. What sends fewer bytes: two all_to_alls of the choices, "
        'or a gather of the tokens and a reduce_scatter? Answer "all_to_all" or "gather".',
        answer,
        f"The choices of a token are {k} rows to send, and a gather sends it to {n - 1} other devices: k against n.",
    )


@stretch("capacity_numbers")
def capacity_of_a_buffer(rng: np.random.Generator) -> Question:
    tokens, k, experts, factor = int(rng.integers(40, 90)), 2, 8, float(rng.choice([1.0, 1.25, 1.5]))
    answer = math.ceil(factor * k * tokens / experts)
    return Question(
        f"A device has {tokens} tokens with {k} choices each; there are {experts} experts, and the capacity factor is "
        f"{factor}. How many slots does it keep for each expert?",
        answer,
        "Factor · choices / experts, rounded up.",
    )
