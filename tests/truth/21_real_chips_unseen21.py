"""Answers to lesson 21, twenty-first batch, written by a reader of the notebook only."""

from jax.sharding import AbstractMesh, AxisType

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- mfu


def mfu__right_tokens_a_second(parameters, tokens, seconds, chips, peak):
    at_the_peak = chips * peak / (6 * parameters)  # tokens a second
    return tokens / seconds / at_the_peak


# Thought: the layers are computed once more on the way back, so 8 FLOPs for each parameter and token (that is HFU).
def mfu__wrong_eight(parameters, tokens, seconds, chips, peak):
    return 8 * parameters * tokens / (seconds * chips * peak)


# Thought: every chip sees only its share of the tokens, and then divided by all chips once more.
def mfu__wrong_chips_twice(parameters, tokens, seconds, chips, peak):
    per_chip = tokens / chips
    return 6 * parameters * per_chip / (seconds * chips * peak)


# Thought: MFU is quoted in per cent, 38 to 43.
def mfu__wrong_percent(parameters, tokens, seconds, chips, peak):
    return 100 * 6 * parameters * tokens / (seconds * chips * peak)


# Thought: parameters and tokens, a multiplication and an addition each: 2 N for a token (the forward pass only).
def mfu__wrong_two(parameters, tokens, seconds, chips, peak):
    flops = 2 * parameters * tokens
    return flops / seconds / (chips * peak)


# ---- bet


def bet__right_two_axes(way, data, model, weights, activations):
    over = lambda n, size: (n - 1) / n * size
    passes = 2 if way == "dp" else 3
    return passes * over(data, weights / model) + 2 * 2 * over(model, activations / data)


# Thought: the block is computed anew on the way back, and so its sum along model is made anew too: three all_reduces.
def bet__wrong_sum_anew(way, data, model, weights, activations):
    once = lambda n, size: (n - 1) / n * size
    passes = 2 if way == "dp" else 3
    return passes * once(data, weights / model) + 3 * 2 * once(model, activations / data)


# Thought: weights once gathered are there for the way back too, so FSDP is one all_gather and one reduce_scatter, as much as dp.
def bet__wrong_gathered_once(way, data, model, weights, activations):
    along_data = 2 * (data - 1) / data * weights / model
    along_model = 4 * (model - 1) / model * activations / data
    return along_data + along_model


# Thought: what is gathered over data is all the weights; forgot that a chip needs only its part along model.
def bet__wrong_whole_weights(way, data, model, weights, activations):
    if way == "dp":
        return 2 * (data - 1) / data * weights
    return 3 * (data - 1) / data * weights + 4 * (model - 1) / model * activations / data


# Thought: one trip round a ring is (n-1)/n of the bytes, whatever the collective is; an all_reduce is one trip.
def bet__wrong_one_trip(way, data, model, weights, activations):
    passes = 1 if way == "dp" else 3
    sent = passes * (data - 1) / data * weights / model
    sent += 2 * (model - 1) / model * activations / data
    return sent


# ---- cpu_and_tpu

cpu_and_tpu__right_all = {
    "written gather, bfloat16": "dtype",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "nothing",
    "left sum, float32": "kind",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# Thought: what is written in shard_map is an order to both compilers, dtype and all.
cpu_and_tpu__wrong_an_order = {
    "written gather, bfloat16": "nothing",
    "written gather, float32": "nothing",
    "written reduce_scatter, float32": "nothing",
    "left sum, float32": "kind",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# Thought: simulated devices compute bfloat16 in float32, so they send everything that is bfloat16 as float32.
cpu_and_tpu__right_always_widened = {
    "written gather, bfloat16": "dtype",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "nothing",
    "left sum, float32": "kind",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# Thought: a chip rounds float32 to bfloat16, so all that it sends is bfloat16, sums of products too.
cpu_and_tpu__wrong_always_rounded = {
    "written gather, bfloat16": "dtype",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "dtype",
    "left sum, float32": "both",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# Thought: both have bfloat16 arrays, so both send bfloat16; only the kind differs where the sum is left to the compiler.
cpu_and_tpu__wrong_kind_only = {
    "written gather, bfloat16": "nothing",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "nothing",
    "left sum, float32": "kind",
    "left sum, bfloat16": "kind",
    "left sum, bfloat16, 8192": "kind",
}
