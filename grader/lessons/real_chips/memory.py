"""§ 2: the memory of one device, as the compiler counts it."""

from __future__ import annotations

from grader.exercises import Case, Exercise

GIB = 2**30
ROOMS = {"v5e": 15.75, "v6e": 31.25, "v5p": 95.74}  # GiB that a program may have


def _hbm(arguments, results, temporaries, shared, room):
    """What they come to, and whether a program of that size would fit."""
    total = arguments + results + temporaries - shared
    return total, total <= room * GIB


hbm = Exercise("hbm", points=3, reference=_hbm, form="function")


@hbm.cases
def _(draw):
    """A training step of LLaMA 3 8B's size on v5e chips; then sizes near the edge, so that every slip shows."""
    yield Case({"arguments": 6 * GIB, "results": 6 * GIB, "temporaries": 8 * GIB, "shared": 6 * GIB, "room": 15.75})
    for room in ROOMS.values():  # between so many times 10⁹ and so many times 2³⁰
        state = int(0.2 * room * GIB)
        held = {"arguments": state, "results": state + 4, "temporaries": int(0.76 * room * GIB), "shared": state}
        yield Case({**held, "room": room})
    for _ in range(12):
        room = float(draw.rng.choice(list(ROOMS.values())))
        state = int(draw.rng.integers(1, 40) / 100 * room * GIB)
        batch = int(draw.rng.integers(1, 2**24))
        loss = int(draw.rng.integers(1, 2**12))
        between = int(draw.rng.integers(40, 80) / 100 * room * GIB)
        yield Case(
            {"arguments": state + batch, "results": state + loss, "temporaries": between, "shared": state, "room": room}
        )


@hbm.mistake
def counted_the_state_twice(arguments, results, temporaries, shared, room):
    """The new state takes the place of the old one: its bytes are among the arguments *and* among the results. Which of
    the four numbers says how many they are?"""
    total = arguments + results + temporaries
    return total, total <= room * GIB


@hbm.mistake
def added_what_is_shared(arguments, results, temporaries, shared, room):
    """`shared` is no memory of its own: it is the part of the results that lies where arguments were. Should it make
    the sum larger or smaller?"""
    total = arguments + results + temporaries + shared
    return total, total <= room * GIB


@hbm.mistake
def left_out_the_temporaries(arguments, results, temporaries, shared, room):
    """That is what goes in and what comes out. Where do the activations lie that the backward pass waits for?"""
    total = arguments + results - shared
    return total, total <= room * GIB


@hbm.mistake
def left_out_the_results(arguments, results, temporaries, shared, room):
    """Results that are not written over an argument need room of their own: a loss, or a whole state if nothing was
    donated."""
    total = arguments + temporaries - shared
    return total, total <= room * GIB


@hbm.mistake
def gigabytes_for_gibibytes(arguments, results, temporaries, shared, room):
    """The bytes are right, the comparison is not: the compiler's G is 2³⁰ bytes, 7 % more than 10⁹."""
    total = arguments + results + temporaries - shared
    return total, total <= room * 1e9
