"""§ 5: what a capacity costs: choices that are dropped, slots that stay empty, bytes that travel all the same."""

from __future__ import annotations

import math

import numpy as np

from grader.exercises import Case, FunctionExercise

BFLOAT16 = 2  # bytes


def _numbers(
    tokens_per_expert, factor, width, rounded=math.ceil, kept=None, filled=None, ways=2, entry=BFLOAT16, away=True
):
    """The four numbers; what may go wrong in each is an argument."""
    tokens_per_expert = np.asarray(tokens_per_expert)
    n, experts = tokens_per_expert.shape
    choices = int(tokens_per_expert[0].sum())
    capacity = rounded(factor * choices / experts)
    within = kept(tokens_per_expert, capacity) if kept else np.minimum(tokens_per_expert, capacity).sum()
    slots = n * experts * capacity
    full = filled(tokens_per_expert) if filled else within
    sent = ways * experts * capacity * width * entry * ((n - 1) / n if away else 1)
    return {
        "capacity": capacity,
        "dropped": float(1 - within / tokens_per_expert.sum()),
        "empty": float(1 - full / slots),
        "bytes": float(sent),
    }


capacity_numbers = FunctionExercise("capacity_numbers", points=4, reference=_numbers)


@capacity_numbers.cases
def _(draw):
    for n, experts, choices, factor, width in (
        (4, 4, 18, 1.0, 16),
        (8, 8, 30, 1.25, 64),
        (4, 8, 32, 0.5, 128),  # a whole number, and few slots
        (2, 4, 21, 1.5, 32),  # 7.875; 9 if the share is rounded up first
    ):
        popular = np.linspace(3, 1, experts)
        tokens_per_expert = np.array([draw.rng.multinomial(choices, popular / popular.sum()) for _ in range(n)])
        yield Case({"tokens_per_expert": tokens_per_expert, "factor": factor, "width": width})


@capacity_numbers.mistake
def rounded_down_slots(tokens_per_expert, factor, width):
    """The capacity was rounded down. Choices that spread evenly but for a rest would then lose some, at a factor of 1.
    To which side must a room be rounded that is to hold them?"""
    return _numbers(tokens_per_expert, factor, width, rounded=math.floor)


@capacity_numbers.mistake
def rounded_up_twice(tokens_per_expert, factor, width):
    """So many slots come out where an expert's even share is rounded up before it is multiplied by the factor, and the
    product is rounded up again. How many are they if only the end of the calculation is made whole?"""
    choices, experts = int(tokens_per_expert[0].sum()), tokens_per_expert.shape[1]
    larger = factor * math.ceil(choices / experts) * experts / choices
    return _numbers(tokens_per_expert, larger, width, rounded=lambda slots: math.ceil(round(slots, 9)))


@capacity_numbers.mistake
def one_buffer_for_all(tokens_per_expert, factor, width):
    """The choices of all devices were added up before they were held against the room. But an expert has a buffer for
    *each* device; what is free in one is of no use to another. What is dropped on each?"""

    def kept(tokens_per_expert, capacity):
        return np.minimum(tokens_per_expert.sum(axis=0), len(tokens_per_expert) * capacity).sum()

    return _numbers(tokens_per_expert, factor, width, kept=kept)


@capacity_numbers.mistake
def shared_out_the_choices_of_all(tokens_per_expert, factor, width):
    """That comes of an expert's even share of the choices of *all* devices. Each device has a buffer of its own for
    each expert: whose choices go into that?"""
    return _numbers(tokens_per_expert, factor * len(tokens_per_expert), width)


@capacity_numbers.mistake
def dropped_fill_slots(tokens_per_expert, factor, width):
    """The empty slots were counted as if every choice had one. Those that were dropped have none, so more slots stay
    empty. How many are filled?"""
    return _numbers(tokens_per_expert, factor, width, filled=lambda tokens_per_expert: tokens_per_expert.sum())


@capacity_numbers.mistake
def no_way_back(tokens_per_expert, factor, width):
    """Those are the bytes of one way. What the experts made has the same shape, and has to come home."""
    return _numbers(tokens_per_expert, factor, width, ways=1)


@capacity_numbers.mistake
def sent_to_itself(tokens_per_expert, factor, width):
    """That is the whole buffer, there and back. One part of n is for experts on the device itself and stays."""
    return _numbers(tokens_per_expert, factor, width, away=False)


@capacity_numbers.mistake
def four_bytes_a_number(tokens_per_expert, factor, width):
    """It would be so many bytes in float32. The tokens travel in bfloat16 here: how many bytes has one number?"""
    return _numbers(tokens_per_expert, factor, width, entry=4)


@capacity_numbers.mistake
def only_full_slots_travel(tokens_per_expert, factor, width):
    """These are the bytes of the choices. But what is sent has a fixed shape: empty slots travel too. How large is the
    buffer?"""
    tokens_per_expert = np.asarray(tokens_per_expert)
    right = _numbers(tokens_per_expert, factor, width)
    n, experts = tokens_per_expert.shape
    return right | {"bytes": right["bytes"] * float(tokens_per_expert[0].sum()) / (experts * right["capacity"])}
