"""Answers to lesson 21, ninth batch, written by a reader of the notebook only."""

import itertools
import math

import numpy as np
from jax.sharding import AbstractMesh, AxisType

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- who_talks


def who_talks__right_by_hand(groups, counted, turned):
    strides = [math.prod(counted[axis + 1 :]) for axis in range(len(counted))]
    read = []
    for at in itertools.product(*(range(counted[axis]) for axis in turned)):
        read.append(sum(i * strides[axis] for i, axis in zip(at, turned)))
    width = groups[1]
    return [read[k * width : (k + 1) * width] for k in range(groups[0])]


# Reads T(...) as where each dimension goes, not as which one comes: the same for two dimensions, not for three in a circle.
def who_talks__wrong_where_it_goes(groups, counted, turned):
    grid = np.arange(np.prod(counted)).reshape(counted)
    return np.transpose(grid, np.argsort(turned)).reshape(groups).tolist()


# Turns the lengths of the grid before counting through it, in place of the grid after.
def who_talks__wrong_lengths_turned(groups, counted, turned):
    lengths = [counted[axis] for axis in turned]
    grid = np.arange(math.prod(lengths)).reshape(lengths)
    return grid.reshape(groups).tolist()


# Takes [2,4] for groups of two, four of them.
def who_talks__wrong_groups_of_two(groups, counted, turned):
    grid = np.arange(math.prod(counted)).reshape(counted).transpose(turned)
    size, number = groups
    return grid.reshape(number, size).tolist()


# Turns the grid as it should be, and then reads it column by column, since it has been turned.
def who_talks__wrong_by_columns(groups, counted, turned):
    grid = np.arange(math.prod(counted)).reshape(counted).transpose(turned)
    read = [int(place) for place in grid.ravel(order="F")]
    return [read[k : k + groups[1]] for k in range(0, len(read), groups[1])]


# ---------------------------------------------------------------- hidden


def hidden__right_running_sums(schedule):
    sums = list(itertools.accumulate(what if kind == "product" else 0 for kind, what in schedule))
    at = {kind: {what: k for k, (other, what) in enumerate(schedule) if other == kind} for kind in ("start", "done")}
    return {name: sums[at["done"][name]] - sums[begun] for name, begun in at["start"].items()}


# A product runs beside the transfer that was started last; the others "wait" meanwhile.
def hidden__wrong_last_started(schedule):
    under_way, beside = [], {}
    for kind, what in schedule:
        if kind == "start":
            under_way.append(what)
            beside[what] = 0
        elif kind == "done":
            under_way.remove(what)
        elif under_way:
            beside[under_way[-1]] += what
    return beside


# Writes a transfer down only when a product meets it, so those with nothing beside them are missing.
def hidden__wrong_zeros_missing(schedule):
    under_way, beside = set(), {}
    for kind, what in schedule:
        if kind == "start":
            under_way.add(what)
        elif kind == "done":
            under_way.discard(what)
        else:
            for name in under_way:
                beside[name] = beside.get(name, 0) + what
    return beside


# Keeps one sum and begins it anew at each start, so a transfer that began earlier loses what it had.
def hidden__wrong_one_sum(schedule):
    total, result = 0, {}
    for kind, what in schedule:
        if kind == "start":
            total = 0
        elif kind == "product":
            total += what
        else:
            result[what] = total
    return result


# Believes that transfers end in the order in which they began, and does not look whose `done` it is.
def hidden__wrong_first_in_first_out(schedule):
    total, queue, result = 0, [], {}
    for kind, what in schedule:
        if kind == "start":
            queue.append((what, total))
        elif kind == "done":
            name, before = queue.pop(0)
            result[name] = total - before
        else:
            total += what
    return result


# ---------------------------------------------------------------- two_slices


def two_slices__right_hops(way, weights, chips, slices):
    piece = weights / chips / slices  # what one hop of a ring of slices carries
    passes = {"data": ["scatter", "gather"], "fsdp": ["gather", "gather", "scatter"]}[way]
    return sum((slices - 1) * piece for _ in passes)


# Worked it out for two slices, (2 - 1) / 2 = one half, and kept the numbers.
def two_slices__wrong_only_two(way, weights, chips, slices):
    share = weights / chips
    return share if way == "data" else 1.5 * share


# Under fsdp the weights are in shards over all chips of all slices, so b is divided by all of them.
def two_slices__wrong_share_of_all(way, weights, chips, slices):
    ring = (slices - 1) / slices
    if way == "data":
        return 2 * ring * weights / chips
    return 3 * ring * weights / (chips * slices)


# All chips together make one ring, so the n of the formula is their number.
def two_slices__wrong_one_big_ring(way, weights, chips, slices):
    n = chips * slices
    passes = {"data": 2, "fsdp": 3}[way]
    return passes * (n - 1) / n * weights / chips


# Overlooks that the slice has dealt the gradients out before: lets each chip all_reduce all of them over DCN.
def two_slices__wrong_whole_gradients(way, weights, chips, slices):
    if way == "data":
        b, passes = weights, 2
    else:
        b, passes = weights / chips, 3
    return passes * b * (slices - 1) / slices
