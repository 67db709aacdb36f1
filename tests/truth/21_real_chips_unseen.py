"""Answers to lesson 21, written by a reader of the notebook only."""

import numpy as np
from jax.sharding import AbstractMesh, AxisType

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def hbm__right_named(arguments, results, temporaries, shared, peak, room):
    own_results = results - shared
    return arguments + own_results + temporaries, not peak > room * 1024**3


def hbm__wrong_twice(arguments, results, temporaries, shared, peak, room):
    """shared counted twice."""
    return arguments + results + temporaries, peak <= room * 2**30


def hbm__wrong_sum_decides(arguments, results, temporaries, shared, peak, room):
    """The sum decides."""
    total = arguments + results + temporaries - shared
    return total, total <= room * 2**30


def hbm__wrong_gb(arguments, results, temporaries, shared, peak, room):
    """GB for GiB."""
    return arguments + results + temporaries - shared, peak <= room * 1e9


def hbm__wrong_less(arguments, results, temporaries, shared, peak, room):
    """< for <=."""
    return arguments + results + temporaries - shared, peak < room * 2**30


def hbm__wrong_with_peak(arguments, results, temporaries, shared, peak, room):
    """The peak added as a part."""
    return arguments + results + temporaries + peak - shared, peak <= room * 2**30


def hbm__wrong_added(arguments, results, temporaries, shared, peak, room):
    """shared added."""
    return arguments + results + temporaries + shared, peak <= room * 2**30


def hbm__wrong_swapped(arguments, results, temporaries, shared, peak, room):
    """(fits, total)."""
    return peak <= room * 2**30, arguments + results + temporaries - shared


def who_talks__right_moveaxis(groups, counted, turned):
    ids = np.transpose(np.arange(np.prod(counted)).reshape(tuple(counted)), tuple(turned)).ravel()
    size = groups[-1]
    return [[int(i) for i in ids[k : k + size]] for k in range(0, len(ids), size)]


def who_talks__wrong_not_turned(groups, counted, turned):
    """The turn forgotten."""
    return np.arange(np.prod(counted)).reshape(groups).tolist()


def who_talks__wrong_reversed(groups, counted, turned):
    """.T for any turn."""
    return np.arange(np.prod(counted)).reshape(counted).T.reshape(groups).tolist()


def who_talks__wrong_inverse(groups, counted, turned):
    """The turn the other way round."""
    return np.arange(np.prod(counted)).reshape(counted).transpose(np.argsort(turned)).reshape(groups).tolist()


def who_talks__wrong_groups_first(groups, counted, turned):
    """Turned after the grouping."""
    return np.arange(np.prod(counted)).reshape(groups).T.tolist()


def who_talks__wrong_array(groups, counted, turned):
    """Flat."""
    return np.arange(np.prod(counted)).reshape(counted).transpose(turned).ravel().tolist()


def who_talks__wrong_from_one(groups, counted, turned):
    """Counts from 1."""
    return (1 + np.arange(np.prod(counted)).reshape(counted).transpose(turned).reshape(groups)).tolist()


def order_of_devices__right_loops(ring, lengths, wraps):
    longest = 0
    for k in range(len(ring)):
        wires = 0
        for dimension in (0, 1):
            apart = abs(ring[k][dimension] - ring[k - 1][dimension])
            if wraps[dimension]:
                apart = min(apart, lengths[dimension] - apart)
            wires += apart
        longest = max(longest, wires)
    return longest


def order_of_devices__wrong_not_closed(ring, lengths, wraps):
    """The step from the last to the first forgotten."""

    def wires(a, b):
        return sum(min(abs(p - q), n - abs(p - q)) if w else abs(p - q) for p, q, n, w in zip(a, b, lengths, wraps))

    return max(wires(a, b) for a, b in zip(ring, ring[1:]))


def order_of_devices__wrong_always_wraps(ring, lengths, wraps):
    """Every dimension closed."""
    steps = zip(ring, [*ring[1:], ring[0]])
    return max(sum(min(abs(p - q), n - abs(p - q)) for p, q, n in zip(a, b, lengths)) for a, b in steps)


def order_of_devices__wrong_never_wraps(ring, lengths, wraps):
    """No dimension closed."""
    return max(sum(abs(p - q) for p, q in zip(a, b)) for a, b in zip(ring, [*ring[1:], ring[0]]))


def order_of_devices__wrong_larger(ring, lengths, wraps):
    """The larger of both dimensions for their sum."""
    steps = zip(ring, [*ring[1:], ring[0]])
    return max(
        max(min(abs(p - q), n - abs(p - q)) if w else abs(p - q) for p, q, n, w in zip(a, b, lengths, wraps))
        for a, b in steps
    )


def order_of_devices__wrong_total(ring, lengths, wraps):
    """All steps together."""
    steps = zip(ring, [*ring[1:], ring[0]])
    return sum(
        sum(min(abs(p - q), n - abs(p - q)) if w else abs(p - q) for p, q, n, w in zip(a, b, lengths, wraps))
        for a, b in steps
    )


def order_of_devices__wrong_modulo(ring, lengths, wraps):
    """One way round only."""
    steps = zip(ring, [*ring[1:], ring[0]])
    return max(sum((q - p) % n if w else abs(p - q) for p, q, n, w in zip(a, b, lengths, wraps)) for a, b in steps)


def two_slices__right_table(way, weights, chips, slices):
    passes = {"data": 2, "fsdp": 3}[way]
    return passes * weights * (slices - 1) / (slices * chips)


def two_slices__wrong_whole_weights(way, weights, chips, slices):
    """The share forgotten."""
    return {"data": 2, "fsdp": 3}[way] * weights * (slices - 1) / slices


def two_slices__wrong_two_passes(way, weights, chips, slices):
    """One gather for fsdp."""
    return 2 * weights / chips * (slices - 1) / slices


def two_slices__wrong_once(way, weights, chips, slices):
    """An all_reduce counted once."""
    return {"data": 1, "fsdp": 3}[way] * weights / chips * (slices - 1) / slices


def two_slices__wrong_all_chips(way, weights, chips, slices):
    """The share of all chips of all slices."""
    n = chips * slices
    return {"data": 2, "fsdp": 3}[way] * weights / n * (n - 1) / n


def two_slices__wrong_swapped(way, weights, chips, slices):
    """Both ways swapped."""
    return {"data": 3, "fsdp": 2}[way] * weights / chips * (slices - 1) / slices


def two_slices__wrong_no_ring(way, weights, chips, slices):
    """(n-1)/n forgotten."""
    return {"data": 2, "fsdp": 3}[way] * weights / chips


def mfu__right_order(parameters, tokens, seconds, chips, peak):
    achieved = 2 * parameters * tokens * 3 / seconds
    return achieved / (chips * peak)


def mfu__wrong_forward(parameters, tokens, seconds, chips, peak):
    """Forward only."""
    return 2 * parameters * tokens / (seconds * chips * peak)


def mfu__wrong_remat(parameters, tokens, seconds, chips, peak):
    """What is computed again is counted."""
    return 8 * parameters * tokens / (seconds * chips * peak)


def mfu__wrong_chips(parameters, tokens, seconds, chips, peak):
    """chips forgotten."""
    return 6 * parameters * tokens / (seconds * peak)


def mfu__wrong_percent(parameters, tokens, seconds, chips, peak):
    """In percent."""
    return 100 * 6 * parameters * tokens / (seconds * chips * peak)


def mfu__wrong_seconds(parameters, tokens, seconds, chips, peak):
    """seconds above the line."""
    return 6 * parameters * tokens * seconds / (chips * peak)
