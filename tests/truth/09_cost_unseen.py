"""Answers to lesson 09, written by a reader of the notebook only."""

import math

import jax
import jax.numpy as jnp
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# --- collective_bytes
def collective_bytes__right_table(kind, shape, dtype, n):
    block = math.prod(shape) * jnp.dtype(dtype).itemsize / n
    return {
        "all_gather": (n - 1) * block,
        "reduce_scatter": (n - 1) * block,
        "all_reduce": 2 * (n - 1) * block,
        "all_to_all": (n - 1) * block / n,
        "collective_permute": block,
    }[kind]


def collective_bytes__right_ifs(kind, shape, dtype, n):
    volume = jnp.dtype(dtype).itemsize
    for length in shape:
        volume *= length
    if kind == "collective_permute":
        return volume // n
    sent = volume * (n - 1) // n
    if kind == "all_reduce":
        return 2 * sent
    return sent // n if kind == "all_to_all" else sent


def collective_bytes__wrong_entries(kind, shape, dtype, n):
    # entries, not bytes
    block = math.prod(shape) / n
    return {
        "all_gather": (n - 1) * block,
        "reduce_scatter": (n - 1) * block,
        "all_reduce": 2 * (n - 1) * block,
        "all_to_all": (n - 1) * block / n,
        "collective_permute": block,
    }[kind]


def collective_bytes__wrong_float32(kind, shape, dtype, n):
    # four bytes, whatever the dtype
    block = math.prod(shape) * 4 / n
    return {
        "all_gather": (n - 1) * block,
        "reduce_scatter": (n - 1) * block,
        "all_reduce": 2 * (n - 1) * block,
        "all_to_all": (n - 1) * block / n,
        "collective_permute": block,
    }[kind]


def collective_bytes__wrong_shape_of_block(kind, shape, dtype, n):
    # takes shape for that of one block: n times too much
    block = math.prod(shape) * jnp.dtype(dtype).itemsize
    return {
        "all_gather": (n - 1) * block,
        "reduce_scatter": (n - 1) * block,
        "all_reduce": 2 * (n - 1) * block,
        "all_to_all": (n - 1) * block / n,
        "collective_permute": block,
    }[kind]


def collective_bytes__wrong_all_reduce(kind, shape, dtype, n):
    # the all_reduce goes round only once
    block = math.prod(shape) * jnp.dtype(dtype).itemsize / n
    return {
        "all_gather": (n - 1) * block,
        "reduce_scatter": (n - 1) * block,
        "all_reduce": (n - 1) * block,
        "all_to_all": (n - 1) * block / n,
        "collective_permute": block,
    }[kind]


def collective_bytes__wrong_all_to_all(kind, shape, dtype, n):
    # an all_to_all counted as a gather: V/n for each other device
    block = math.prod(shape) * jnp.dtype(dtype).itemsize / n
    return {
        "all_gather": (n - 1) * block,
        "reduce_scatter": (n - 1) * block,
        "all_reduce": 2 * (n - 1) * block,
        "all_to_all": (n - 1) * block,
        "collective_permute": block,
    }[kind]


# --- link_bytes
def link_bytes__right_distances(volume, n, both_ways):
    message = volume / n**2
    if both_ways:
        return message * (sum(range(1, n // 2)) + n / 4)
    return message * sum(range(1, n))


def link_bytes__right_formula(volume, n, both_ways):
    return volume / 8 if both_ways else (n - 1) / (2 * n) * volume


def link_bytes__wrong_own(volume, n, both_ways):
    # what a device sends, not what a link carries
    sent = (n - 1) / n**2 * volume
    return sent / 2 if both_ways else sent


def link_bytes__wrong_half(volume, n, both_ways):
    # both ways: half of one way, though messages also take the shorter way
    one_way = (n - 1) / (2 * n) * volume
    return one_way / 2 if both_ways else one_way


def link_bytes__wrong_opposite_whole(volume, n, both_ways):
    # the opposite device's message goes this way as a whole
    return volume / n**2 * sum(range(1, n // 2 + 1 if both_ways else n))


def link_bytes__wrong_opposite_forgotten(volume, n, both_ways):
    # the opposite device's message is left out
    return volume / n**2 * sum(range(1, n // 2 if both_ways else n))


def link_bytes__wrong_message(volume, n, both_ways):
    # a message has V/n bytes instead of V/n²
    message = volume / n
    return message * (sum(range(1, n // 2)) + n / 4) if both_ways else message * sum(range(1, n))


# --- ring_seconds
def ring_seconds__right_steps(kind, n, volume, alpha, bandwidth):
    steps = (n - 1) * (2 if kind == "all_reduce" else 1)
    return steps * (alpha + volume / n / bandwidth)


def ring_seconds__right_sum(kind, n, volume, alpha, bandwidth):
    rounds = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}[kind]
    return sum(alpha + volume / (n * bandwidth) for _ in range(rounds) for _ in range(n - 1))


def ring_seconds__wrong_one_alpha(kind, n, volume, alpha, bandwidth):
    # waits once, not in every step
    steps = (n - 1) * (2 if kind == "all_reduce" else 1)
    return alpha + steps * volume / n / bandwidth


def ring_seconds__wrong_whole(kind, n, volume, alpha, bandwidth):
    # the whole array in every step
    steps = (n - 1) * (2 if kind == "all_reduce" else 1)
    return steps * (alpha + volume / bandwidth)


def ring_seconds__wrong_n_steps(kind, n, volume, alpha, bandwidth):
    # n steps for n - 1
    steps = n * (2 if kind == "all_reduce" else 1)
    return steps * (alpha + volume / n / bandwidth)


def ring_seconds__wrong_no_two(kind, n, volume, alpha, bandwidth):
    # an all_reduce as long as a gather
    return (n - 1) * (alpha + volume / n / bandwidth)


def ring_seconds__wrong_max(kind, n, volume, alpha, bandwidth):
    # the longer of waiting and sending, not both
    steps = (n - 1) * (2 if kind == "all_reduce" else 1)
    return steps * max(alpha, volume / n / bandwidth)


# --- layer_bytes
def layer_bytes__right_terms(how, b, d, f, x, y):
    along_x, along_y = (x - 1) / x * 4 * d * f / y, 2 * (y - 1) / y * 2 * b * d / x
    gathers = 1 if "FSDP" in how else 0
    return gathers * along_x + along_y, 2 * along_x + along_y


def layer_bytes__right_cases(how, b, d, f, x, y):
    def share(n):
        return (n - 1) / n

    weights, activations = 2 * (d * f + f * d) / y, 2 * b * d / x
    sums = 2 * share(y) * activations
    if how == "data parallel":
        return 0, 2 * share(x) * weights
    if how == "FSDP":
        return share(x) * weights, share(x) * weights + share(x) * weights
    if how == "tensor parallel":
        return sums, sums
    return share(x) * weights + sums, 2 * share(x) * weights + sums


def layer_bytes__wrong_no_second_gather(how, b, d, f, x, y):
    # FSDP backward: the weights are not gathered again
    along_x, along_y = (x - 1) / x * 4 * d * f / y, 4 * (y - 1) / y * b * d / x
    fsdp = "FSDP" in how
    return fsdp * along_x + along_y, (1 if fsdp else 2) * along_x + along_y


def layer_bytes__wrong_one_matrix(how, b, d, f, x, y):
    # 2DF: one of the two matrices
    along_x, along_y = (x - 1) / x * 2 * d * f / y, 4 * (y - 1) / y * b * d / x
    return ("FSDP" in how) * along_x + along_y, 2 * along_x + along_y


def layer_bytes__wrong_uncut(how, b, d, f, x, y):
    # with both: the weights are not divided by Y, the tokens not by X
    along_x, along_y = (x - 1) / x * 4 * d * f, 4 * (y - 1) / y * b * d
    return ("FSDP" in how) * along_x + along_y, 2 * along_x + along_y


def layer_bytes__wrong_many_devices(how, b, d, f, x, y):
    # (n-1)/n is taken for 1
    along_x, along_y = (x > 1) * 4 * d * f / y, (y > 1) * 4 * b * d / x
    return ("FSDP" in how) * along_x + along_y, 2 * along_x + along_y


def layer_bytes__wrong_hidden(how, b, d, f, x, y):
    # sums over y of the hidden layer, B × F, in place of B × D
    along_x, along_y = (x - 1) / x * 4 * d * f / y, 4 * (y - 1) / y * b * f / x
    return ("FSDP" in how) * along_x + along_y, 2 * along_x + along_y


def layer_bytes__wrong_exchanged(how, b, d, f, x, y):
    # (backward, forward)
    along_x, along_y = (x - 1) / x * 4 * d * f / y, 4 * (y - 1) / y * b * d / x
    return 2 * along_x + along_y, ("FSDP" in how) * along_x + along_y


# --- rooflines
_ROOF = {
    "tokens per device, data parallel over three axes": 852,
    "devices along y, tensor parallel over one axis": 28672 / 2556,
}
rooflines__right_numbers = dict(_ROOF)
rooflines__wrong_one_direction = {  # W is one link in one direction, 9e10
    "tokens per device, data parallel over three axes": 1704,
    "devices along y, tensor parallel over one axis": 5.6,
}
rooflines__wrong_both_passes = {
    **_ROOF,
    "tokens per device, data parallel over three axes": 568,
}  # both passes, as in the picture
rooflines__wrong_axes_multiply = {
    **_ROOF,
    "tokens per device, data parallel over three axes": 7667,
}  # more axes need more tokens


# --- best_split
def best_split__right_all(b, f, n, mx, my):
    splits = [(2**k, n // 2**k) for k in range(n.bit_length())]
    return min(splits, key=lambda s: f / (s[1] * mx) + b / (s[0] * my))


def best_split__right_root(b, f, n, mx, my):
    k = round(math.log2(b / f * mx / my * n) / 2)
    x = 2 ** min(max(k, 0), n.bit_length() - 1)
    return x, n // x


def best_split__wrong_yx(b, f, n, mx, my):
    # (y, x)
    return best_split__right_all(b, f, n, mx, my)[::-1]


def best_split__wrong_not_power(b, f, n, mx, my):
    # the square root, rounded to a whole number
    x = round(math.sqrt(b / f * mx / my * n))
    return x, n // max(x, 1)


def best_split__wrong_axes(b, f, n, mx, my):
    # mx and my exchanged
    splits = [(2**k, n // 2**k) for k in range(n.bit_length())]
    return min(splits, key=lambda s: f / (s[1] * my) + b / (s[0] * mx))


def best_split__wrong_weights_by_x(b, f, n, mx, my):
    # weights divided by X and activations by Y
    splits = [(2**k, n // 2**k) for k in range(n.bit_length())]
    return min(splits, key=lambda s: f / (s[0] * mx) + b / (s[1] * my))


def best_split__wrong_no_clip(b, f, n, mx, my):
    # x is not held between 1 and n
    x = 2.0 ** round(math.log2(b / f * mx / my * n) / 2)
    return x, n / x
