"""Answers to lesson 08, eleventh batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

# ---------------------------------------------------------------- ring_after


def _walk(devices, shift, steps, device):
    """Go back along the arrows, one step at a time."""
    for _ in range(steps):
        device = (device - shift) % devices
    return device


ring_after__right_BACKSTEPS = {
    "4 devices, +1, 1 step: device 2": _walk(4, 1, 1, 2),
    "4 devices, +1, 3 steps: device 1": _walk(4, 1, 3, 1),
    "4 devices, -1, 1 step: device 3": _walk(4, -1, 1, 3),
    "8 devices, +1, 5 steps: device 2": _walk(8, 1, 5, 2),
    "8 devices, -1, 4 steps: device 6": _walk(8, -1, 4, 6),
    "8 devices, +3, 2 steps: device 1": _walk(8, 3, 2, 1),
}

# For one step I asked where it comes from; for several I followed the device's own block to where it goes.
ring_after__wrong_FOLLOWEDOWN = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 0,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 7,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 7,
}

# Computes d - steps and, when that is negative, drops the sign instead of closing the ring.
ring_after__wrong_DROPPEDSIGN = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 3,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 5,
}

# +3 with two steps is three places on and two steps more: five places in all, not six.
ring_after__wrong_SHIFTPLUSSTEPS = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 5,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 4,
}

# After k steps it is always the block of d - k, as the text says, also when the blocks go the other way.
ring_after__wrong_ALWAYSDOWN = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 2,
    "8 devices, +1, 5 steps: device 2": 5,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 7,
}

# ---------------------------------------------------------------- ring_costs

_n, _part = 8, 4096 // 8
ring_costs__right_STEPSTIMESPART = {
    "all_gather: steps": _n - 1,
    "all_gather: bytes": (_n - 1) * _part,
    "all_reduce: steps": 2 * (_n - 1),
    "all_reduce: bytes": 2 * (_n - 1) * _part,
    "all_gather, both ways: steps": _n // 2,
    "all_reduce of whole vectors: bytes": (_n - 1) * 4096,
}

# Seven blocks, two at a time: 7 // 2, and the odd one comes along with the others.
ring_costs__wrong_ROUNDEDDOWN = {
    "all_gather: steps": 7,
    "all_gather: bytes": 3584,
    "all_reduce: steps": 14,
    "all_reduce: bytes": 7168,
    "all_gather, both ways: steps": 3,
    "all_reduce of whole vectors: bytes": 28672,
}

# An all-reduce goes once round the ring, like a gather, and adds on the way.
ring_costs__wrong_ONCEROUND = {
    "all_gather: steps": 7,
    "all_gather: bytes": 3584,
    "all_reduce: steps": 7,
    "all_reduce: bytes": 3584,
    "all_gather, both ways: steps": 4,
    "all_reduce of whole vectors: bytes": 28672,
}

# The 4,096 bytes are what each device has, so that is what goes over the wire in every step of an all-reduce; of whole vectors there is one step per device, its own included.
ring_costs__wrong_WHOLEINEACH = {
    "all_gather: steps": 7,
    "all_gather: bytes": 3584,
    "all_reduce: steps": 14,
    "all_reduce: bytes": 57344,
    "all_gather, both ways: steps": 4,
    "all_reduce of whole vectors: bytes": 32768,
}

# Eight devices, eight steps: a block has to get all the way round to where it began.
ring_costs__wrong_FULLCIRCLE = {
    "all_gather: steps": 8,
    "all_gather: bytes": 4096,
    "all_reduce: steps": 14,
    "all_reduce: bytes": 7168,
    "all_gather, both ways: steps": 4,
    "all_reduce of whole vectors: bytes": 32768,
}

# ---------------------------------------------------------------- deadlock_or_not

_hanging = {"one_branch", "each_its_own_turns", "only_process_0_sums"}
deadlock_or_not__right_BYSET = {
    name: "hangs" if name in _hanging else "finishes"
    for name in (
        "one_branch",
        "sum_then_branch",
        "open_ring",
        "each_its_own_turns",
        "as_many_turns_for_all",
        "only_process_0_sums",
    )
}

# Device 0 is the receiver of nobody, so it waits for a block that is never sent.
deadlock_or_not__wrong_NOSENDER = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "hangs",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}

# A Python `if` is decided while tracing, so process 1 has a program without a psum, and process 0 adds over its own four devices: both are consistent in themselves.
deadlock_or_not__wrong_OWNPROCESS = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "finishes",
}

# A device-dependent cond or loop bound is the sin: wherever me() decides something, devices part, so these hang all alike.
deadlock_or_not__wrong_ANYMEHANGS = {
    "one_branch": "hangs",
    "sum_then_branch": "hangs",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "hangs",
    "only_process_0_sums": "hangs",
}

# cond is like jnp.where under jit (both sides are computed, then one is chosen), so all devices do call the psum; in the loop likewise all turn until the last is done.
deadlock_or_not__wrong_BOTHCOMPUTED = {
    "one_branch": "finishes",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "finishes",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}
