"""Answers to lesson 09, twenty-first batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def shape_of(shape, dtype, *spec):
    """An array without values: its shape, its dtype and its layout on the mesh."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def layer_bytes(how, b, d, f, x, y):
    """Bytes that one device sends, forward and backward (the core exercise, answered)."""
    along_x = (x - 1) / x * 4 * d * f / y
    along_y = (y - 1) / y * 2 * (2 * b * d / x)
    if how == "data parallel":
        return 0, 2 * along_x
    if how == "FSDP":
        return along_x, 2 * along_x
    if how == "tensor parallel":
        return along_y, along_y
    return along_x + along_y, 2 * along_x + along_y


before_you_measure__right_computed = {
    "MiB of a float32[8192,8192]": 2**13 * 2**13 * 4 / 2**20,
    "bytes of A on one device": 1024 * (4096 // 4) * 4,
    "FLOPs of one device": 2 * 1024 * 1024 * 512,
    "bytes sent by one device": 2 * 3 * (1024 * 512 * 4 // 4),
    "bytes that one hop of 1 µs is worth": 45e9 / 1e6,
}

# The mesh has eight devices, so everything is divided by eight (though only x cuts J, and y holds copies).
before_you_measure__wrong_eight_devices = {
    "MiB of a float32[8192,8192]": 256,
    "bytes of A on one device": 1024 * 4096 * 4 // 8,
    "FLOPs of one device": 2 * 1024 * 4096 * 512 // 8,
    "bytes sent by one device": 2 * 7 * 1024 * 512 * 4 // 8,
    "bytes that one hop of 1 µs is worth": 45_000,
}

# A psum goes round the ring once: three blocks of C are handed on (that is the reduce_scatter alone).
before_you_measure__wrong_once_round = {
    "MiB of a float32[8192,8192]": 256,
    "bytes of A on one device": 1024 * 1024 * 4,
    "FLOPs of one device": 2 * 1024 * 1024 * 512,
    "bytes sent by one device": 3 * 1024 * 512 * 4 // 4,
    "bytes that one hop of 1 µs is worth": 45_000,
}

# A is cut, so A's blocks are what has to go round: each device hands on three of them.
before_you_measure__wrong_sends_a = {
    "MiB of a float32[8192,8192]": 256,
    "bytes of A on one device": 1024 * 1024 * 4,
    "FLOPs of one device": 2 * 1024 * 1024 * 512,
    "bytes sent by one device": 3 * 1024 * 1024 * 4,
    "bytes that one hop of 1 µs is worth": 45_000,
}

# A multiply-add is one operation; and links are given in bits, so 45 GB/s is divided by eight.
before_you_measure__wrong_multiply_add = {
    "MiB of a float32[8192,8192]": 256,
    "bytes of A on one device": 1024 * 1024 * 4,
    "FLOPs of one device": 1024 * 1024 * 512,
    "bytes sent by one device": 2 * 3 * 1024 * 512 * 4 // 4,
    "bytes that one hop of 1 µs is worth": 45e9 / 8 * 1e-6,
}


def layer_seconds__right_without_layer_bytes(how, backward, b, d, f, n, flops_per_s, link):
    products = 4 if backward else 2
    arithmetic = products * 2 * (b / n) * d * f / flops_per_s
    if how == "tensor parallel":
        reduced = 2 * b * d  # one array of activations, bfloat16
    else:
        reduced = 2 * (2 * d * f) if backward else 0  # two gradients, bfloat16
    blocks = 2 * (n - 1)  # of an all_reduce
    return arithmetic, blocks * reduced / n / (2 * link)


# The bandwidth of a link is what a device can send with.
def layer_seconds__wrong_one_link(how, backward, b, d, f, n, flops_per_s, link):
    flops = (8 if backward else 4) * b * d * f / n
    x, y = (n, 1) if how == "data parallel" else (1, n)
    return flops / flops_per_s, layer_bytes(how, b, d, f, x, y)[int(backward)] / link


# Under tensor parallelism every device has all the tokens, so that its FLOPs are not divided.
def layer_seconds__wrong_all_the_tokens(how, backward, b, d, f, n, flops_per_s, link):
    tokens = b / n if how == "data parallel" else b
    flops = (8 if backward else 4) * tokens * d * f
    x, y = (n, 1) if how == "data parallel" else (1, n)
    return flops / flops_per_s, layer_bytes(how, b, d, f, x, y)[int(backward)] / (2 * link)


# The backward pass is twice the forward pass, in bytes as in FLOPs.
def layer_seconds__wrong_twice_backward(how, backward, b, d, f, n, flops_per_s, link):
    times = 2 if backward else 1
    arithmetic = times * 4 * b * d * f / n / flops_per_s
    share = (n - 1) / n
    if how == "data parallel":
        sent = 8 * d * f * share if backward else 0
    else:
        sent = times * 4 * b * d * share
    return arithmetic, sent / (2 * link)


# n devices are a mesh of n by 1, whichever way the layer is divided.
def layer_seconds__wrong_always_along_x(how, backward, b, d, f, n, flops_per_s, link):
    flops = (8 if backward else 4) * b * d * f / n
    sent = layer_bytes(how, b, d, f, n, 1)[1 if backward else 0]
    return flops / flops_per_s, sent / (2 * link)


speedups__right_formulas = {
    "gradients: speed-up": 351 / 53.8,
    "gradients: efficiency": 351 / (8 * 53.8),
    "gradients: ms that eight devices lose": 53.8 - 351 / 8,
    "tensor parallelism: percent saved": 100 - 100 * 51.4 / 53.8,
    "sin: ms of a usual run": 25.2 - 30.9 / 2,
}

# What is saved, in percent of the time that is left (it should be of the time before).
speedups__wrong_percent_of_new = {
    "gradients: speed-up": 351 / 53.8,
    "gradients: efficiency": 351 / 53.8 / 8,
    "gradients: ms that eight devices lose": 53.8 - 351 / 8,
    "tensor parallelism: percent saved": 100 * (53.8 - 51.4) / 51.4,
    "sin: ms of a usual run": 9.75,
}

# Eight devices each take 53.8 ms, so together they lose what that is more than 351.
speedups__wrong_loss_of_all_eight = {
    "gradients: speed-up": 351 / 53.8,
    "gradients: efficiency": 351 / 53.8 / 8,
    "gradients: ms that eight devices lose": 8 * 53.8 - 351,
    "tensor parallelism: percent saved": 100 * (53.8 - 51.4) / 53.8,
    "sin: ms of a usual run": 9.75,
}

# The best time on eight devices is the one that counts: 51.4 ms (but the rows are about data parallelism).
speedups__wrong_best_of_eight = {
    "gradients: speed-up": 351 / 51.4,
    "gradients: efficiency": 351 / 51.4 / 8,
    "gradients: ms that eight devices lose": 51.4 - 351 / 8,
    "tensor parallelism: percent saved": 100 * (53.8 - 51.4) / 53.8,
    "sin: ms of a usual run": 9.75,
}

# The deviation is how far the slow run lies above the mean; four usual runs share that, a quarter each below it.
speedups__wrong_deviation_of_slow_run = {
    "gradients: speed-up": 351 / 53.8,
    "gradients: efficiency": 351 / 53.8 / 8,
    "gradients: ms that eight devices lose": 53.8 - 351 / 8,
    "tensor parallelism: percent saved": 100 * (53.8 - 51.4) / 53.8,
    "sin: ms of a usual run": 25.2 - 30.9 / 4,
}
