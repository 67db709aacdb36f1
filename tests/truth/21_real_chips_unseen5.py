"""Answers to lesson 21, fifth batch, written by a reader of the notebook only."""

from jax.sharding import AbstractMesh, AxisType

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- bet


def bet__right_count_passes(way, data, model, weights, activations):
    def one_pass(n, size):
        return size - size / n

    passes = 2 if way == "dp" else 3  # an all_reduce; or two gathers, and a reduce_scatter
    held = weights if way == "dp" else weights / model
    sent = passes * one_pass(data, held)
    if way != "dp":
        sent += 2 * 2 * one_pass(model, activations / data)
    return sent


# The weights are gathered once, for the way forwards, and are still there on the way back, thinks the student.
def bet__wrong_gathered_once(way, data, model, weights, activations):
    along_data = 2 * (data - 1) / data * weights / model
    along_model = 4 * (model - 1) / model * activations / data
    return along_data if way == "dp" else along_data + along_model


# Along data the student counts all weights, as if the parts along model did not exist.
def bet__wrong_all_weights_along_data(way, data, model, weights, activations):
    passes = 2 if way == "dp" else 3
    along_data = passes * (data - 1) / data * weights
    if way == "dp":
        return along_data
    return along_data + 4 * (model - 1) / model * activations / data


# The block is computed anew on the way back, so the student counts the sum of its result once more: three all_reduces.
def bet__wrong_a_sum_computed_anew(way, data, model, weights, activations):
    if way == "dp":
        return 2 * (data - 1) / data * weights
    along_data = 3 * (data - 1) / data * weights / model
    return along_data + 3 * 2 * (model - 1) / model * activations / data


# Gradients are added up by an all_reduce in every way, thinks the student; under fsdp two gathers come on top of it.
def bet__wrong_all_reduce_in_every_way(way, data, model, weights, activations):
    gradients = 2 * (data - 1) / data * weights / model
    if way == "dp":
        return gradients
    gathers = 2 * (data - 1) / data * weights / model
    return gradients + gathers + 4 * (model - 1) / model * activations / data


# ---------------------------------------------------------------- order_of_devices


def order_of_devices__right_modulo(ring, lengths, wraps):
    longest = 0
    for k in range(len(ring)):
        wires = 0
        for here, there, length, closed in zip(ring[k - 1], ring[k], lengths, wraps):
            up, down = there - here, here - there
            wires += min(up % length, down % length) if closed else max(up, down)
        longest = max(longest, wires)
    return longest


# The student goes through the list from its first chip to its last, and leaves out the step that closes the ring.
def order_of_devices__wrong_ring_left_open(ring, lengths, wraps):
    steps = []
    for one, other in zip(ring, ring[1:]):
        wires = 0
        for a, b, length, closed in zip(one, other, lengths, wraps):
            n = abs(a - b)
            wires += min(n, length - n) if closed else n
        steps.append(wires)
    return max(steps, default=0)


# A step may go over both dimensions at once, thinks the student: the longer of the two counts.
def order_of_devices__wrong_diagonal(ring, lengths, wraps):
    longest = 0
    for one, other in zip(ring, [*ring[1:], ring[0]]):
        for a, b, length, closed in zip(one, other, lengths, wraps):
            n = abs(a - b)
            longest = max(longest, min(n, length - n) if closed else n)
    return longest


# A dimension of `length` chips has length - 1 wires, so the student takes that for the way round.
def order_of_devices__wrong_one_wire_less(ring, lengths, wraps):
    longest = 0
    for one, other in zip(ring, [*ring[1:], ring[0]]):
        wires = 0
        for a, b, length, closed in zip(one, other, lengths, wraps):
            n = abs(a - b)
            wires += min(n, length - 1 - n) if closed else n
        longest = max(longest, wires)
    return longest


# If the pod is closed at all, the student lets it be closed in both dimensions.
def order_of_devices__wrong_closed_if_any_is(ring, lengths, wraps):
    longest = 0
    for one, other in zip(ring, [*ring[1:], ring[0]]):
        wires = 0
        for a, b, length in zip(one, other, lengths):
            n = abs(a - b)
            wires += min(n, length - n) if any(wraps) else n
        longest = max(longest, wires)
    return longest


# ---------------------------------------------------------------- two_slices


def two_slices__right_passes(way, weights, chips, slices):
    passes = {"data": 2, "fsdp": 3}
    own = weights / chips
    return passes[way] * (own - own / slices)


# The student puts in all weights for b: that the chips of a slice share the work is forgotten.
def two_slices__wrong_all_weights(way, weights, chips, slices):
    passes = 2 if way == "data" else 3
    return passes * (slices - 1) / slices * weights


# Under fsdp the weights are in shards over all chips, so the student takes all chips for the n of the formulas.
def two_slices__wrong_ring_of_all_chips(way, weights, chips, slices):
    if way == "data":
        return 2 * (slices - 1) / slices * weights / chips
    n = chips * slices
    return 3 * (n - 1) / n * weights / chips


# One gather, one reduce_scatter: the way back finds the weights where the way forwards has left them, thinks the student.
def two_slices__wrong_gathered_once(way, weights, chips, slices):
    return 2 * (slices - 1) / slices * weights / chips


# Under fsdp a chip holds the share of 1 / (chips · slices), and so b is this share, for the student.
def two_slices__wrong_b_is_the_share(way, weights, chips, slices):
    if way == "data":
        return 2 * (slices - 1) / slices * weights / chips
    return 3 * (slices - 1) / slices * weights / (chips * slices)
