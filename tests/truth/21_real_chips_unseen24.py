"""Answers to lesson 21, twenty-fourth batch, written by a reader of the notebook only."""

import itertools
import math

import numpy as np
from jax.sharding import AbstractMesh, AxisType

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- hidden


def hidden__right_open(schedule):
    beside, under_way = {}, set()
    for kind, what in schedule:
        if kind == "start":
            beside[what] = 0
            under_way.add(what)
        elif kind == "done":
            under_way.discard(what)
        else:
            for name in under_way:
                beside[name] += what
    return beside


# A product runs beside one transfer: the one that was started last.
def hidden__wrong_latest(schedule):
    beside, open_ = {}, []
    for kind, what in schedule:
        if kind == "start":
            beside[what] = 0
            open_.append(what)
        elif kind == "done":
            open_.remove(what)
        elif open_:
            beside[open_[-1]] += what
    return beside


# The FLOPs of a product are there once, so transfers that are under way together share them.
def hidden__wrong_shared(schedule):
    beside, open_ = {}, []
    for kind, what in schedule:
        if kind == "start":
            beside[what] = 0
            open_.append(what)
        elif kind == "done":
            open_.remove(what)
        else:
            for name in open_:
                beside[name] += what / len(open_)
    return beside


# The dict is of the transfers that are hidden, so one without a product beside it gets no entry.
def hidden__wrong_no_zeros(schedule):
    beside, open_ = {}, []
    for kind, what in schedule:
        if kind == "start":
            open_.append(what)
        elif kind == "done":
            open_.remove(what)
        else:
            for name in open_:
                beside[name] = beside.get(name, 0) + what
    return beside


# Keeps the sum of all FLOPs so far, and reads it at the done; forgets that what ran before the start is in it.
def hidden__wrong_running_sum(schedule):
    beside, total = {}, 0
    for kind, what in schedule:
        if kind == "product":
            total += what
        elif kind == "done":
            beside[what] = total
    return beside


# ---- order_of_devices


def order_of_devices__right_modulo(ring, lengths, wraps):
    longest = 0
    for k, here in enumerate(ring):
        before, wires = ring[k - 1], 0
        for a, b, length, closed in zip(before, here, lengths, wraps):
            wires += min((b - a) % length, (a - b) % length) if closed else abs(a - b)
        longest = max(longest, wires)
    return longest


# A step goes in both dimensions at once, so it takes as many wires as the larger of the two differences.
def order_of_devices__wrong_diagonal(ring, lengths, wraps):
    longest = 0
    for a, b in zip(ring, [*ring[1:], ring[0]]):
        steps = []
        for p, q, length, closed in zip(a, b, lengths, wraps):
            n = abs(p - q)
            steps.append(min(n, length - n) if closed else n)
        longest = max(longest, max(steps))
    return longest


# From a chip to the next: n chips have n - 1 steps.
def order_of_devices__wrong_not_closed(ring, lengths, wraps):
    longest = 0
    for a, b in zip(ring, ring[1:]):
        wires = 0
        for p, q, length, closed in zip(a, b, lengths, wraps):
            n = abs(p - q)
            wires += min(n, length - n) if closed else n
        longest = max(longest, wires)
    return longest


# A pod that is closed is a torus: whether there are two ways is asked once, for the pod.
def order_of_devices__wrong_any_wrap(ring, lengths, wraps):
    def apart(p, q, length):
        n = abs(p - q)
        return min(n, length - n) if any(wraps) else n

    return max(
        sum(apart(p, q, length) for p, q, length in zip(a, b, lengths)) for a, b in zip(ring, [*ring[1:], ring[0]])
    )


# Where a dimension is closed one goes round it in one direction, the direction of the ring.
def order_of_devices__wrong_one_way(ring, lengths, wraps):
    longest = 0
    for a, b in zip(ring, [*ring[1:], ring[0]]):
        wires = 0
        for p, q, length, closed in zip(a, b, lengths, wraps):
            wires += (q - p) % length if closed else abs(q - p)
        longest = max(longest, wires)
    return longest


# ---- who_talks


def who_talks__right_counted(groups, counted, turned):
    numbers = []
    for place in itertools.product(*(range(counted[d]) for d in turned)):
        at = dict(zip(turned, place))
        number = 0
        for d, length in enumerate(counted):
            number = number * length + at[d]
        numbers.append(number)
    each = groups[-1]
    return [numbers[k : k + each] for k in range(0, len(numbers), each)]


# What T does is already in the order of the groups' two numbers, so reading row by row is enough.
def who_talks__wrong_not_turned(groups, counted, turned):
    return np.arange(math.prod(counted)).reshape(counted).reshape(groups).tolist()


# `turned` says where each dimension goes, not which one comes first.
def who_talks__wrong_inverse(groups, counted, turned):
    return np.arange(math.prod(counted)).reshape(counted).transpose(np.argsort(turned)).reshape(groups).tolist()


# Turned means that the groups are the columns: in the example that is the same.
def who_talks__wrong_columns(groups, counted, turned):
    number, each = groups
    return np.arange(math.prod(counted)).reshape(each, number).T.tolist()


# [2,4] is read as groups of 2, of which there are 4.
def who_talks__wrong_size_first(groups, counted, turned):
    each, number = groups
    return np.arange(math.prod(counted)).reshape(counted).transpose(turned).reshape(number, each).tolist()
