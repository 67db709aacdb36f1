"""Answers to lesson 09, third batch, written by a reader of the notebook only."""

import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- before_you_measure

before_you_measure__right_formula = {
    "MiB of a float32[8192,8192]": 8192**2 * 4 / 2**20,
    "bytes of A on one device": 1024 * (4096 // 4) * 4,
    "FLOPs of one device": 2 * 1024 * (4096 // 4) * 512,
    "bytes sent by one device": 2 * 3 / 4 * (1024 * 512 * 4),
    "bytes that one hop of 1 µs is worth": 45e9 * 1e-6,
}

# There are eight devices, so everything is an eighth.
before_you_measure__wrong_eighths = {
    **before_you_measure__right_formula,
    "bytes of A on one device": 1024 * 4096 * 4 // 8,
    "FLOPs of one device": 2 * 1024 * 4096 * 512 // 8,
}

# One FLOP for each pair that meets: a multiply-add is one operation.
before_you_measure__wrong_fused = {
    **before_you_measure__right_formula,
    "FLOPs of one device": 1024 * 1024 * 512,
}

# What is sent are the operands: my part of A goes round to the three others.
before_you_measure__wrong_operand = {
    **before_you_measure__right_formula,
    "bytes sent by one device": 3 * 1024 * 1024 * 4,
}

# I counted entries as bytes for C, and took 45 GB a second in bits: 45 / 8 bytes for a hop.
before_you_measure__wrong_units = {
    **before_you_measure__right_formula,
    "bytes sent by one device": 2 * 3 / 4 * (1024 * 512),
    "bytes that one hop of 1 µs is worth": 45e9 * 1e-6 / 8,
}

# ---------------------------------------------------------------- speedups

_e = 30.9 / 2  # four runs are e below the mean, one is 4e above it

speedups__right_formula = {
    "gradients: speed-up": 351 / 53.8,
    "gradients: efficiency": 351 / 53.8 / 8,
    "gradients: ms that eight devices lose": 53.8 - 351 / 8,
    "tensor parallelism: percent saved": 100 * (53.8 - 51.4) / 53.8,
    "sin: ms of a usual run": 25.2 - _e,
}

# A usual run is the mean.
speedups__wrong_mean = {**speedups__right_formula, "sin: ms of a usual run": 25.2}

# Efficiency: what of the time is saved, over what could be saved; in per cent.
speedups__wrong_efficiency = {**speedups__right_formula, "gradients: efficiency": 100 * 351 / 53.8 / 8}

# What tensor parallelism saves is its part of the time on one device; the loss is on all eight devices together.
speedups__wrong_reference = {
    **speedups__right_formula,
    "gradients: ms that eight devices lose": 8 * 53.8 - 351,
    "tensor parallelism: percent saved": 100 * (53.8 - 51.4) / 351,
}

# I divided by n - 1 = 4 in the deviation: (4e² + 16e²)/4 = 5e², so e = 30.9/√5.
speedups__wrong_sample = {**speedups__right_formula, "sin: ms of a usual run": 25.2 - 30.9 / math.sqrt(5)}

# ---------------------------------------------------------------- why_no_speedup

why_no_speedup__right_all = {
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "one machine",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "FLOPs",
    "compute-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "stays",
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "stays",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "stays",
}

# More tokens, more gradients to send.
why_no_speedup__wrong_batch = {
    **why_no_speedup__right_all,
    "communication-bound, data parallel: twice the batch (halves / stays / doubles)": "doubles",
}

# The gradients are divided among twice the devices, so each sends half of them.
why_no_speedup__wrong_shared = {
    **why_no_speedup__right_all,
    "communication-bound, data parallel: twice the devices (halves / stays / doubles)": "halves",
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "halves",
}

# In tensor parallelism every further device wants the activations too, so there is twice as much to send.
why_no_speedup__wrong_activations = {
    **why_no_speedup__right_all,
    "communication-bound, tensor parallel: twice the devices (halves / stays / doubles)": "doubles",
}

# The two times are alike because the same gradients are sent; and eight devices are slower because their links are slow.
why_no_speedup__wrong_links = {
    **why_no_speedup__right_all,
    "2048² product, simulated: 71 ms on one, 79 ms on eight (one machine / slow links / little work)": "slow links",
    "51.4 ms and 53.8 ms: what each device has about as much of (FLOPs / memory / bytes sent)": "bytes sent",
}
