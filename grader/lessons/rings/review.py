"""What later lessons ask about 08_rings."""

from __future__ import annotations

import numpy as np

from grader.programs.collectives import ring_bytes
from grader.questions import Question, core, stretch

LESSON = "08_rings"


@core("ring_all_gather")
def block_after_steps(rng: np.random.Generator) -> Question:
    n, by = int(rng.choice([4, 6, 8])), int(rng.choice([-1, 1]))
    steps, device = int(rng.integers(1, n)), int(rng.integers(n))
    blocks = np.roll(np.arange(n), by * steps)
    way, from_where = ("next", "before") if by > 0 else ("previous", "after")
    more = "s" * (steps > 1)
    return Question(
        f"In a ring of {n} devices, every device sends the block that it holds to the {way} one in each step. Whose "
        f"block does device {device} hold after {steps} step{more}?",
        int(blocks[device]),
        f"It comes from the device {steps} place{more} {from_where} it, counted around the ring.",
    )


@core("ring_all_gather", "ring_reduce_scatter")
def steps_of_a_ring(rng: np.random.Generator) -> Question:
    n = int(rng.choice([3, 4, 5, 6, 8]))
    name, why = [
        ("an all_gather", "Each device has its own block, and the others arrive one by one."),
        ("a reduce_scatter", "Each sum needs the term of every device, and starts on one of them."),
    ][rng.integers(2)]
    return _steps(n, name, n - 1, why, "Every device sends only to the next one. ")


@stretch("ring_all_reduce", "bidirectional_all_gather")
def steps_of_a_longer_ring(rng: np.random.Generator) -> Question:
    n = int(rng.choice([3, 4, 5, 6, 8]))
    name, answer, why = [
        ("an all_reduce of parts", 2 * (n - 1), "It is a reduce-scatter and then an all-gather."),
        ("an all_gather in both directions at once", n // 2, "In each step, one block arrives from each side."),
    ][rng.integers(2)]
    return _steps(n, name, answer, why)


def _steps(n: int, name: str, answer: int, why: str, way: str = "") -> Question:
    return Question(
        f"{n} devices form a ring, and use `ppermute` to neighbors. {way}How many steps does {name} take?", answer, why
    )


@stretch("ring_all_reduce")
def bytes_of_a_ring_all_reduce(rng: np.random.Generator) -> Question:
    n, length = int(rng.choice([2, 4, 8])), 8 * int(rng.integers(2, 20))
    answer = round(ring_bytes("all_reduce", 4 * length, n))
    return Question(
        f"{n} devices all-reduce a vector of {length} float32 on a ring: n - 1 steps sum, n - 1 "
        f"gather the sums, and each step sends 1/{n} of the vector. How many bytes does one device send?",
        answer,
        f"2 · ({n} - 1) steps of {4 * length // n} bytes.",
    )


@core("sum_on_even_devices")
def hangs_or_finishes(rng: np.random.Generator) -> Question:
    body, answer, why = [
        (
            "`cond(me == 0, lambda b: psum(b, 'x'), lambda b: b, block)`",
            "hangs",
            "Device 0 calls the psum, and the others never do.",
        ),
        ("`where(me == 0, psum(block, 'x'), block)`", "finishes", "Every device calls the psum, and then chooses."),
        (
            "`total = psum(block, 'x'); cond(me == 0, lambda: total, lambda: block)`",
            "finishes",
            "The psum comes before the branch, so every device calls it.",
        ),
        (
            "`ppermute(block, 'x', [(0, 1), (1, 2)])`",
            "finishes",
            "A device that isn't a destination gets zeros, and doesn't wait.",
        ),
    ][rng.integers(4)]
    return _ending(body, answer, why)


@stretch("deadlock_or_not")
def hangs_or_finishes_in_a_loop(rng: np.random.Generator) -> Question:
    turns, answer, why = [
        ("me", "hangs", "Every device runs a different number of iterations, so the last one waits for the others."),
        ("me % 2", "hangs", "Devices 1 and 3 run one iteration, and 0 and 2 run none."),
        ("4", "finishes", "Every device runs four iterations."),
        ("me - me + 2", "finishes", "Every device runs two iterations, however that is written."),
    ][rng.integers(4)]
    return _ending(f"`fori_loop(0, {turns}, lambda k, b: ppermute(b, 'x', ring), block)`", answer, why)


def _ending(body: str, answer: str, why: str) -> Question:
    return Question(
        f"Four devices run this in shard_map over x, with `me = axis_index('x')`: {body}. Does it finish or hang? "
        "Write 'finishes' or 'hangs'.",
        answer,
        why,
    )
