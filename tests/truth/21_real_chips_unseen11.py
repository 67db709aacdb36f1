"""Answers to lesson 21, eleventh batch, written by a reader of the notebook only."""

import numpy as np
from jax.sharding import AbstractMesh, AxisType

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- cpu_and_tpu

cpu_and_tpu__right_compared = {
    "written gather, bfloat16": "dtype",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "nothing",
    "left sum, float32": "kind",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# What is written in shard_map is an order to both compilers, dtype included, so a written gather of float32 sends float32.
cpu_and_tpu__wrong_order_holds_for_dtype = {
    "written gather, bfloat16": "nothing",
    "written gather, float32": "nothing",
    "written reduce_scatter, float32": "nothing",
    "left sum, float32": "kind",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# Simulated devices turn all bfloat16 into float32, and a chip all float32 into bfloat16: whatever travels differs in dtype.
cpu_and_tpu__wrong_dtype_everywhere = {
    "written gather, bfloat16": "dtype",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "dtype",
    "left sum, float32": "both",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# Simulated devices never form a reduce-scatter, thinks this student, so the written one becomes an all-reduce there too.
cpu_and_tpu__wrong_no_scatter_at_all = {
    "written gather, bfloat16": "dtype",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "kind",
    "left sum, float32": "kind",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# Partial sums are kept in float32 on the chip as well, so that nothing is lost in adding: the left sums differ in kind only.
cpu_and_tpu__wrong_sums_in_float32 = {
    "written gather, bfloat16": "dtype",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "nothing",
    "left sum, float32": "kind",
    "left sum, bfloat16": "kind",
    "left sum, bfloat16, 8192": "kind",
}

# ---------------------------------------------------------------- mfu


def mfu__right_shortest_time(parameters, tokens, seconds, chips, peak):
    """Model FLOPs utilisation, 0 to 1."""
    at_the_peak = (2 + 4) * parameters * tokens / (chips * peak)  # the shortest that such a step could take
    return at_the_peak / seconds


# The forward pass is computed once more on the way back (jax.checkpoint), so the step needs 8·N: that is HFU.
def mfu__wrong_counts_recomputation(parameters, tokens, seconds, chips, peak):
    """Model FLOPs utilisation, 0 to 1."""
    return (2 + 4 + 2) * parameters * tokens / (seconds * chips * peak)


# Every chip trains on tokens / chips, and the student puts all the chips below the line as well.
def mfu__wrong_divides_twice(parameters, tokens, seconds, chips, peak):
    """Model FLOPs utilisation, 0 to 1."""
    mine = 6 * parameters * (tokens / chips)
    return mine / (seconds * chips * peak)


# The peak is taken for that of the whole pod, and the chips are forgotten.
def mfu__wrong_peak_of_pod(parameters, tokens, seconds, chips, peak):
    """Model FLOPs utilisation, 0 to 1."""
    return 6 * parameters * tokens / seconds / peak


# A step needs 2·N forwards and as much again backwards, thinks this student: one product for each weight, each way.
def mfu__wrong_backward_as_forward(parameters, tokens, seconds, chips, peak):
    """Model FLOPs utilisation, 0 to 1."""
    return 2 * 2 * parameters * tokens / (seconds * chips * peak)


# ---------------------------------------------------------------- order_of_devices


def order_of_devices__right_numpy(ring, lengths, wraps):
    """The most wires between a chip and the next."""
    places, lengths = np.asarray(ring), np.asarray(lengths)
    apart = np.abs(np.roll(places, -1, axis=0) - places)
    apart = np.where(wraps, np.minimum(apart, lengths - apart), apart)
    return int(apart.sum(axis=1).max())


# A step goes along both dimensions at once, so the longer of the two counts, and not their sum.
def order_of_devices__wrong_diagonal(ring, lengths, wraps):
    """The most wires between a chip and the next."""
    longest = 0
    for one, other in zip(ring, [*ring[1:], ring[0]]):
        for a, b, length, wrap in zip(one, other, lengths, wraps):
            n = abs(a - b)
            longest = max(longest, min(n, length - n) if wrap else n)
    return longest


# The ring's steps are those from each entry of the list to the next: the way back from the last to the first is forgotten.
def order_of_devices__wrong_not_closed(ring, lengths, wraps):
    """The most wires between a chip and the next."""

    def wires(one, other):
        apart = [abs(a - b) for a, b in zip(one, other)]
        return sum(min(n, length - n) if wrap else n for n, length, wrap in zip(apart, lengths, wraps))

    return max((wires(ring[k], ring[k + 1]) for k in range(len(ring) - 1)), default=0)


# A closed dimension is counted round in one direction, as a collective's ring goes: a step back takes the long way.
def order_of_devices__wrong_one_way(ring, lengths, wraps):
    """The most wires between a chip and the next."""
    steps = zip(ring, [*ring[1:], ring[0]])
    return max(
        sum((b - a) % length if wrap else abs(b - a) for a, b, length, wrap in zip(one, other, lengths, wraps))
        for one, other in steps
    )


# A pod that is closed is a torus, thinks this student: one closed dimension lets all steps go the shorter way along both.
def order_of_devices__wrong_torus_or_not(ring, lengths, wraps):
    """The most wires between a chip and the next."""
    closed, longest = any(wraps), 0
    for k, place in enumerate(ring):
        before = ring[k - 1]
        wires = 0
        for dimension, length in enumerate(lengths):
            n = abs(place[dimension] - before[dimension])
            wires += min(n, length - n) if closed else n
        longest = max(longest, wires)
    return longest
