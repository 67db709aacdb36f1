"""What later lessons ask about 21_real_chips."""

from __future__ import annotations

import numpy as np

from grader.questions import Question, core, stretch

LESSON = "21_real_chips"


@core("hbm")
def held_at_once(rng: np.random.Generator) -> Question:
    """What a donated state does to the sum of a device's memory."""
    state, between = int(rng.integers(2, 6)), int(rng.integers(1, 6))
    return Question(
        f"A step's arguments are {state} GiB of state on each device, its results the new state, its temporaries "
        f"{between} GiB. The state is donated. How many GiB do the parts come to?",
        state + between,
        f"The new state is where the old one was: {state} + {state} + {between} - {state} GiB.",
    )


@core(3)
def turns_of_a_loop(rng: np.random.Generator) -> Question:
    """How often a line of a loop's body runs."""
    layers, gathers = int(rng.choice([12, 24, 32, 48])), int(rng.integers(1, 4))
    return Question(
        f"The text of a compiled scan over {layers} layers shows {gathers} all-gather-start and {gathers} "
        "all-gather-done in its body. How many all-gathers does a device run?",
        layers * gathers,
        f"A start and its done are one transfer, and the body runs {layers} times: {layers} · {gathers}.",
    )


@stretch("order_of_devices")
def wires_of_a_step(rng: np.random.Generator) -> Question:
    """How many wires are between two chips of a row."""
    length = int(rng.choice([4, 8, 16]))
    one, other = sorted(int(k) for k in rng.choice(length, 2, replace=False))
    apart = other - one
    return Question(
        f"A v5e pod is {length} chips wide. How many wires are between the chips {one} and {other} of a row, counted "
        "from 0?",
        min(apart, 16 - apart) if length == 16 else apart,
        "A row of 16 is closed to a ring, and the shorter way counts; a row of fewer is a line.",
    )


@core("it_fits")
def products_again(rng: np.random.Generator) -> Question:
    """What a checkpoint around each layer costs."""
    layers = int(rng.choice([12, 24, 32, 48]))
    return Question(
        f"A scan over {layers} layers has one product in each. With `jax.checkpoint` around the layer, how many "
        "products does its gradient take, both passes together?",
        4 * layers,
        f"One forwards, the same one again when its turn comes, and two backwards: 4 · {layers}.",
    )
