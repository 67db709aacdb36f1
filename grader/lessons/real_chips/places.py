"""§ 6, 7: which devices a line names, and how far they stand from one another."""

from __future__ import annotations

import math

import numpy as np

from grader.exercises import Case, FunctionExercise


def _groups(groups, counted, turned):
    """The devices behind `replica_groups=[groups]<=[counted]T(turned)`."""
    numbers = np.arange(math.prod(counted)).reshape(counted)
    return numbers.transpose(turned).reshape(groups).tolist()


who_talks = FunctionExercise("who_talks", points=3, reference=_groups)


@who_talks.cases
def _(draw):
    """Both axes of 4 × 2, then meshes of three axes in any order, along one of them and along two together."""
    yield Case({"groups": (4, 2), "counted": (4, 2), "turned": (0, 1)})
    yield Case({"groups": (2, 4), "counted": (4, 2), "turned": (1, 0)})
    for turned in ((2, 0, 1), (1, 2, 0), (0, 2, 1)):
        counted = tuple(int(n) for n in draw.rng.permutation([2, 3, 4]))
        of = counted[turned[-1]]
        yield Case({"groups": (24 // of, of), "counted": counted, "turned": turned})
        of = 24 // counted[turned[0]]
        yield Case({"groups": (24 // of, of), "counted": counted, "turned": turned})


@who_talks.mistake
def left_out_the_turn(groups, counted, turned):
    """These are the devices in their own order. `T(1,0)` turns the grid first: what is then the second number that one
    reads?"""
    return np.arange(math.prod(counted)).reshape(groups).tolist()


@who_talks.mistake
def turned_the_groups(groups, counted, turned):
    """Every group has the right size, and other members. The grid is turned as it is *counted*, before it is cut into
    groups."""
    flat = np.arange(math.prod(counted)).reshape(groups[::-1])
    return flat.T.tolist()


@who_talks.mistake
def turned_back(groups, counted, turned):
    """This is the grid turned the other way: dimension k of the turned grid is dimension `turned[k]` of the one that
    was counted, and not the reverse."""
    return np.arange(math.prod(counted)).reshape(counted).transpose(np.argsort(turned)).reshape(groups).tolist()


@who_talks.mistake
def always_turned_round(groups, counted, turned):
    """All dimensions are turned round here, as `.T` does, whatever stands in `T(...)`. It says which dimension comes
    first, and that may be any."""
    return np.arange(math.prod(counted)).reshape(counted).T.reshape(groups).tolist()


@who_talks.mistake
def cut_before_it_was_turned(groups, counted, turned):
    """Each of these groups has one device from every row, as where the devices are cut into `groups` in their own
    order, and that is turned round. First comes the grid as it is *counted*; it is turned as `T(...)` says, and then
    cut into groups."""
    return np.arange(math.prod(counted)).reshape(groups).T.tolist()


@who_talks.mistake
def groups_are_columns(groups, counted, turned):
    """Each group is a *row* of the last grid. These are its columns."""
    return np.array(_groups(groups, counted, turned)).T.tolist()


# How far a ring's steps are, on chips that stand in a grid.


def _distance(one, other, lengths, wraps):
    steps = [abs(a - b) for a, b in zip(one, other, strict=True)]
    around = zip(steps, lengths, wraps, strict=True)
    return sum(min(step, length - step) if ring else step for step, length, ring in around)


def _longest(ring, lengths, wraps):
    """The most wires between a chip of a ring and the next one."""
    closed = [*ring, ring[0]]
    return max(_distance(a, b, lengths, wraps) for a, b in zip(closed, closed[1:], strict=False))


order_of_devices = FunctionExercise("order_of_devices", points=4, reference=_longest)


@order_of_devices.cases
def _(draw):
    """Rings on pods of many forms: in rows, as a snake, and shuffled."""
    yield Case({"ring": [(0, 0), (0, 1), (1, 3), (1, 2)], "lengths": (2, 4), "wraps": (False, False)})
    yield Case({"ring": [(k, 0) for k in range(16)], "lengths": (16, 16), "wraps": (True, True)})
    yield Case({"ring": [(k, 0) for k in range(8)], "lengths": (8, 8), "wraps": (False, False)})
    for wraps in ((False, False), (True, False), (False, True), (True, True)):
        lengths = tuple(int(n) for n in draw.rng.choice([4, 6, 8], 2))
        rows = [(x, y) for y in range(lengths[1]) for x in range(lengths[0])]
        yield Case({"ring": rows, "lengths": lengths, "wraps": wraps})
        some = [rows[k] for k in draw.rng.permutation(len(rows))[:6]]
        yield Case({"ring": some, "lengths": lengths, "wraps": wraps})
    yield Case({"ring": [(k, 0) for k in reversed(range(16))], "lengths": (16, 16), "wraps": (True, True)})


@order_of_devices.mistake
def left_the_ring_open(ring, lengths, wraps):
    """A ring has one step more: from the last chip back to the first."""
    return max(_distance(a, b, lengths, wraps) for a, b in zip(ring, ring[1:], strict=False))


@order_of_devices.mistake
def no_wire_round_the_edge(ring, lengths, wraps):
    """Where `wraps` says so, the last chip of a row has a wire to the first: there are two ways round, and the shorter
    one counts."""
    return _longest(ring, lengths, (False, False))


@order_of_devices.mistake
def always_a_wire_round_the_edge(ring, lengths, wraps):
    """This goes round the edge where there is no wire. A v5e's dimension is a ring only if all 16 chips of it are
    there."""
    return _longest(ring, lengths, (True, True))


@order_of_devices.mistake
def one_way_round(ring, lengths, wraps):
    """Where `wraps` says so, this goes round in one direction only, from the smaller number to the larger. The wires go
    both ways, and the shorter way counts."""
    steps = zip(ring, [*ring[1:], ring[0]], strict=True)
    return max(
        sum((b - a) % n if w else abs(b - a) for a, b, n, w in zip(one, other, lengths, wraps, strict=True))
        for one, other in steps
    )


@order_of_devices.mistake
def as_the_crow_flies(ring, lengths, wraps):
    """Bytes go along wires, and there is none across: a step that goes over one chip and down one takes two."""
    closed = [*ring, ring[0]]
    steps = [
        [min(s, n - s) if w else s for s, n, w in zip(map(abs, np.subtract(a, b)), lengths, wraps, strict=True)]
        for a, b in zip(closed, closed[1:], strict=False)
    ]
    return int(max(max(step) for step in steps))


@order_of_devices.mistake
def all_steps_together(ring, lengths, wraps):
    """That is the whole way round. All chips send at the same time, so a turn takes as long as its longest step."""
    closed = [*ring, ring[0]]
    return sum(_distance(a, b, lengths, wraps) for a, b in zip(closed, closed[1:], strict=False))
