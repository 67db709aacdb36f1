"""Answers to lesson 09, fourteenth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- why_no_speedup
SIMULATED = "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)"
AS_MUCH = "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)"
COMPUTE_DEVICES = "compute-bound, data parallel: twice the devices (halves / stays / doubles)"
WIRE_DEVICES = "communication-bound, data parallel: twice the devices (halves / stays / doubles)"
WIRE_BATCH = "communication-bound, data parallel: twice the batch (halves / stays / doubles)"
WIRE_TENSOR = "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)"

why_no_speedup__right_words = {
    SIMULATED: "one machine",
    AS_MUCH: "FLOPs",
    COMPUTE_DEVICES: "halves",
    WIRE_DEVICES: "stays",
    WIRE_BATCH: "stays",
    WIRE_TENSOR: "stays",
}

# This student thought that more tokens mean more to send, whatever it is that travels.
why_no_speedup__wrong_batch = {
    SIMULATED: "one machine",
    AS_MUCH: "FLOPs",
    COMPUTE_DEVICES: "halves",
    WIRE_DEVICES: "stays",
    WIRE_BATCH: "doubles",
    WIRE_TENSOR: "stays",
}

# This student thought that in tensor parallelism twice the devices share F, so that each sends half as much.
why_no_speedup__wrong_shares = {
    SIMULATED: "one machine",
    AS_MUCH: "FLOPs",
    COMPUTE_DEVICES: "halves",
    WIRE_DEVICES: "stays",
    WIRE_BATCH: "stays",
    WIRE_TENSOR: "halves",
}

# This student thought that a collective over twice the devices has twice the steps, and so takes twice the time.
why_no_speedup__wrong_steps = {
    SIMULATED: "one machine",
    AS_MUCH: "FLOPs",
    COMPUTE_DEVICES: "halves",
    WIRE_DEVICES: "doubles",
    WIRE_BATCH: "stays",
    WIRE_TENSOR: "doubles",
}

# This student thought that two times are so close only if the wire bounds both, and that the eight devices, too, wait for their links.
why_no_speedup__wrong_links = {
    SIMULATED: "slow links",
    AS_MUCH: "bytes sent",
    COMPUTE_DEVICES: "halves",
    WIRE_DEVICES: "stays",
    WIRE_BATCH: "stays",
    WIRE_TENSOR: "stays",
}


# ---------------------------------------------------------------- layer_bytes
def layer_bytes__right_booleans(how, b, d, f, x, y):
    """Bytes that one device sends, forward and backward."""
    ring = lambda n: (n - 1) / n
    weights = ring(x) * 4 * d * f / y
    sums = 2 * ring(y) * 2 * b * d / x
    # backward: gathered again and scattered, or all_reduced: twice in either case
    return ("FSDP" in how) * weights + sums, 2 * weights + sums


# This student thought that adding up the gradients is one trip round the ring, as in a reduce_scatter.
def layer_bytes__wrong_one_round(how, b, d, f, x, y):
    """Bytes that one device sends, forward and backward."""
    if how == "FSDP":
        gathered = (x - 1) / x * 4 * d * f  # W_in and W_out, two bytes an entry
        return gathered, 2 * gathered
    if how == "data parallel":
        return 0, (x - 1) / x * 4 * d * f
    gathered = (x - 1) / x * 4 * d * f / y if how.startswith("FSDP") else 0
    activations = 2 * (y - 1) / y * 2 * b * d / x
    return gathered + activations, 2 * gathered + activations


# This student thought that the backward pass sends twice what the forward pass does, since it computes twice as much.
def layer_bytes__wrong_twice(how, b, d, f, x, y):
    """Bytes that one device sends, forward and backward."""
    if how == "FSDP":
        gathered = (x - 1) / x * 4 * d * f  # W_in and W_out, two bytes an entry
        return gathered, 2 * gathered
    if how == "data parallel":
        return 0, (x - 1) / x * 8 * d * f
    forward = (y - 1) / y * 4 * b * d / x
    if how == "FSDP + tensor parallel":
        forward += (x - 1) / x * 4 * d * f / y
    return forward, 2 * forward


# This student thought that n in (n-1)/n is the number of all devices, also where a collective runs over one axis of two.
def layer_bytes__wrong_all_devices(how, b, d, f, x, y):
    """Bytes that one device sends, forward and backward."""
    n = x * y
    factor = (n - 1) / n
    weights, activations = factor * 4 * d * f / y, factor * 4 * b * d / x
    return {
        "data parallel": (0, 2 * weights),
        "FSDP": (weights, 2 * weights),
        "tensor parallel": (activations, activations),
        "FSDP + tensor parallel": (weights + activations, 2 * weights + activations),
    }[how]


# This student thought that, as y cuts F, it is the hidden [B, F] that is added up along y.
def layer_bytes__wrong_hidden(how, b, d, f, x, y):
    """Bytes that one device sends, forward and backward."""
    if how == "FSDP":
        gathered = (x - 1) / x * 4 * d * f  # W_in and W_out, two bytes an entry
        return gathered, 2 * gathered
    share = (x - 1) / x * 4 * d * f / y
    hidden = 2 * (y - 1) / y * 2 * b * f / x
    if how == "data parallel":
        return 0, 2 * share
    if how == "tensor parallel":
        return hidden, hidden
    return share + hidden, 2 * share + hidden


# ---------------------------------------------------------------- link_bytes
def link_bytes__right_hops(volume, n, both_ways):
    """Bytes through a link, in one direction, in an all_to_all on a ring."""
    hops = [min(k, n - k) / 2 if both_ways else k for k in range(1, n)]  # half of all hops go this way round
    return sum(hops) * volume / n**2


# This student thought that a message is a device's whole block, V/n.
def link_bytes__wrong_block(volume, n, both_ways):
    """Bytes through a link, in one direction, in an all_to_all on a ring."""
    message = volume / n
    if both_ways:
        return message * (sum(range(1, n // 2)) + n / 4)
    return message * sum(range(1, n))


# This student thought that the message for the device just opposite goes this way, whole.
def link_bytes__wrong_opposite(volume, n, both_ways):
    """Bytes through a link, in one direction, in an all_to_all on a ring."""
    farthest = n // 2 if both_ways else n - 1
    return sum(distance for distance in range(1, farthest + 1)) * volume / n**2


# This student thought that with both directions a link carries half of what it carries with one.
def link_bytes__wrong_half(volume, n, both_ways):
    """Bytes through a link, in one direction, in an all_to_all on a ring."""
    one_way = (n - 1) / (2 * n) * volume
    return one_way / 2 if both_ways else one_way


# This student thought that a link carries what its device sends: n - 1 messages, half of them with two directions.
def link_bytes__wrong_sent(volume, n, both_ways):
    """Bytes through a link, in one direction, in an all_to_all on a ring."""
    messages = (n - 1) / 2 if both_ways else n - 1
    return messages * volume / n**2
