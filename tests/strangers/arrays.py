"""Collectives of arrays that are not float32, of pytrees, and of scalars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P
from strangers.registry import Call, grid, on, put, ring, sharded, stranger, values


@stranger(yours={"all_reduce x": 1}, replayable=True)
def psum_of_bfloat16():
    mesh = grid(x=8)
    total = on(mesh, P("x"), P())(lambda v: lax.psum(v, "x"))
    return Call(mesh, total, sharded(mesh, P("x"), 16, 4, dtype=jnp.bfloat16))


@stranger(yours={"all_gather x": 1, "collective_permute x": 1}, replayable=True)
def bfloat16_gathered_and_shifted():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"))
    def both(v):
        return lax.ppermute(v, "x", ring(4)) + lax.all_gather(v, "x").max(0)

    return Call(mesh, both, sharded(mesh, P("x"), 8, 4, dtype=jnp.bfloat16))


@stranger(yours={"all_to_all x": 1}, replayable=True)
def all_to_all_of_float16():
    mesh = grid(x=4)
    turned = on(mesh, P("x"), P(None, "x"))(lambda v: lax.all_to_all(v, "x", 1, 0, tiled=True))
    return Call(mesh, turned, sharded(mesh, P("x"), 8, 4, dtype=np.float16))


@stranger(yours={"all_gather x": 1}, replayable=True)
def all_gather_of_int4():
    mesh = grid(x=4)
    full = on(mesh, P("x"), P("x"))(lambda v: v + lax.all_gather(v, "x").sum(0, dtype=jnp.int4))
    return Call(mesh, full, put(mesh, P("x"), jnp.asarray(values(8, 4) * 4, jnp.int4)))


@stranger(yours={"collective_permute x": 1}, replayable=True)
def ppermute_of_uint4():
    mesh = grid(x=4)
    shifted = on(mesh, P("x"), P("x"))(lambda v: lax.ppermute(v, "x", ring(4)))
    return Call(mesh, shifted, put(mesh, P("x"), jnp.asarray(np.arange(32).reshape(8, 4) % 16, jnp.uint4)))


@stranger(yours={"all_gather x": 1}, replayable=True)
def all_gather_of_float8():
    mesh = grid(x=8)
    full = on(mesh, P("x"), P("x"))(lambda v: lax.all_gather(v, "x").astype(jnp.float32).sum(0))
    return Call(mesh, full, put(mesh, P("x"), jnp.asarray(values(16, 4), jnp.float8_e4m3fn)))


@stranger(yours={"all_to_all x": 1, "all_reduce x": 1}, replayable=True)
def quantized_all_to_all():
    """Blocks of int8, with one scale for all devices."""
    mesh = grid(x=4)

    @on(mesh, P("x"), P(None, "x"))
    def quantized(v):
        scale = lax.pmax(jnp.abs(v).max(), "x") / 127
        small = jnp.round(v / scale).astype(jnp.int8)
        return lax.all_to_all(small, "x", 1, 0, tiled=True).astype(jnp.float32) * scale

    return Call(mesh, quantized, sharded(mesh, P("x"), 8, 8))


@stranger(yours={"all_reduce x": 1, "collective_permute x": 1}, replayable=True)
def complex_numbers():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"))
    def rotated(v):
        return lax.ppermute(v, "x", ring(4)) * 1j + lax.psum(v, "x")

    return Call(mesh, rotated, put(mesh, P("x"), (values(8, 3) + 1j * values(8, 3)[::-1]).astype(np.complex64)))


# A sum of booleans is one of int32; a gather of booleans is not.
@stranger(yours={"all_reduce x": 1, "all_gather x": 1}, replayable=True)
def booleans():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"))
    def votes(v):
        yes = v > 0
        return jnp.where(lax.psum(yes, "x") > 2, lax.all_gather(yes, "x").any(0), ~yes)

    return Call(mesh, votes, sharded(mesh, P("x"), 8, 4))


@stranger(yours={"all_reduce x": 3}, replayable=True)
def psum_of_a_pytree():
    mesh = grid(x=8)

    @on(mesh, P("x"), P(None))
    def total(v):
        return lax.psum({"a": v, "b": (v[0] * 2, (v * 4).astype(jnp.int32))}, "x")

    return Call(mesh, total, sharded(mesh, P("x"), 16, 4))


# XLA sends the four arrays in one instruction: the factor of the mean is applied to each afterwards.
@stranger(yours={"all_reduce x,y": 4}, replayable=True)
def pmean_of_gradients():
    mesh = grid(x=4, y=2)
    params = {"in": {"w": values(4, 6), "b": values(6)}, "out": [values(6, 2), values(2)]}

    @on(mesh, (P(), P(("x", "y"))), P())
    def mean(grads, factor):
        return lax.pmean(jax.tree.map(lambda g: g * factor[0], grads), ("x", "y"))

    return Call(mesh, mean, put(mesh, P(), params), put(mesh, P(("x", "y")), np.arange(8, dtype=np.float32)))


class Moments(NamedTuple):
    count: jax.Array
    mean: jax.Array
    square: jax.Array


@stranger(yours={"all_reduce x": 3}, replayable=True)
def moments_in_a_named_tuple():
    mesh = grid(x=8)

    @on(mesh, P("x"), Moments(P(), P(), P()))
    def moments(v):
        count = lax.psum(jnp.int32(len(v)) + 0 * v[0].astype(jnp.int32), "x")
        mean = lax.psum(v.sum(0), "x") / count
        return Moments(count, mean, lax.psum(((v - mean) ** 2).sum(0), "x"))

    return Call(mesh, moments, sharded(mesh, P("x"), 16))


@jax.tree_util.register_dataclass
@dataclass
class Layer:
    kernel: jax.Array
    bias: jax.Array


@stranger(flops=2 * 2 * 4 * 6, yours={"all_reduce x": 1}, replayable=True)
def a_registered_dataclass():
    mesh = grid(x=4)

    @on(mesh, (P(), P("x")), P())
    def mean_of_layer(layer, v):
        return lax.pmean(jnp.tanh(v @ layer.kernel + layer.bias).mean(0), "x")

    return Call(mesh, mean_of_layer, put(mesh, P(), Layer(values(4, 6), values(6))), sharded(mesh, P("x"), 8, 4))


@stranger(yours={"all_reduce x": 1}, replayable=True)
def a_scalar_of_each_device():
    mesh = grid(x=8)
    count = on(mesh, P("x"), P())(lambda v: lax.psum((v > 0).sum(), "x"))
    return Call(mesh, count, sharded(mesh, P("x"), 16, 4))


# An array without elements is summed all the same; XLA removes that.
@stranger(replayable=True)
def an_empty_array():
    mesh = grid(x=4)
    total = on(mesh, P("x"), P())(lambda v: lax.psum(v, "x"))
    return Call(mesh, total, sharded(mesh, P("x"), 8, 0))


@stranger(yours={"all_gather x": 1}, replayable=True)
def keys_for_random_numbers():
    mesh = grid(x=4)

    @on(mesh, (P(), P("x")), P("x"))
    def noise(seed, v):
        key = jax.random.fold_in(jax.random.key(seed), lax.axis_index("x"))
        return v + lax.all_gather(jax.random.normal(key, (3,)), "x").mean(0)

    return Call(mesh, noise, put(mesh, P(), np.int32(3)), sharded(mesh, P("x"), 8, 3))


# int8 matmuls are matmuls too.
@stranger(flops=2 * 4 * 8 * 6, yours={"all_reduce x": 1}, replayable=True)
def int8_matmul_with_a_contracted_axis():
    mesh = grid(x=4)

    @on(mesh, (P(None, "x"), P("x")), P())
    def product(a, b):
        return lax.psum(lax.dot(a, b, preferred_element_type=jnp.int32), "x")

    a, b = (sharded(mesh, spec, *shape) for spec, shape in ((P(None, "x"), (4, 32)), (P("x"), (32, 6))))
    return Call(mesh, product, (a * 4).astype(jnp.int8), (b * 4).astype(jnp.int8))


@stranger(flops=2 * 4 * 2 * 8 * 6, yours={"all_reduce x": 1}, replayable=True)
def bfloat16_matmul_with_float32_sums():
    mesh = grid(x=4, y=2)

    @on(mesh, (P("y", "x"), P("x")), P("y"))
    def product(a, b):
        return lax.psum(jnp.dot(a, b, preferred_element_type=jnp.float32), "x")

    a = sharded(mesh, P("y", "x"), 16, 32, dtype=jnp.bfloat16)
    return Call(mesh, product, a, sharded(mesh, P("x"), 32, 6, dtype=jnp.bfloat16))


# Each device has 2 images of 6 × 6 with 3 channels, and 4 kernels of 3 × 3: results of 4 × 4.
@stranger(flops=2 * (2 * 4 * 4 * 4) * (3 * 3 * 3), yours={"all_reduce x": 1}, replayable=True)
def convolution_of_images():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P()), P())
    def features(images, kernels):
        out = lax.conv_general_dilated(images, kernels, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return lax.pmean(out.mean((0, 1, 2)), "x")

    return Call(mesh, features, sharded(mesh, P("x"), 8, 6, 6, 3), sharded(mesh, P(), 3, 3, 3, 4))


# Depthwise, with halos from both neighbors: 8 rows here, one from each side, and 3 multiplications a channel.
@stranger(flops=2 * (8 * 4) * 3, yours={"collective_permute x": 2}, replayable=True)
def depthwise_convolution_with_halos():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P()), P("x"))
    def smoothed(rows, kernel):
        above = lax.ppermute(rows[-1:], "x", ring(4))
        below = lax.ppermute(rows[:1], "x", ring(4, -1))
        padded = jnp.concatenate([above, rows, below])[None]
        numbers = ("NWC", "WIO", "NWC")
        return lax.conv_general_dilated(
            padded, kernel, (1,), "VALID", dimension_numbers=numbers, feature_group_count=4
        )[0]

    return Call(mesh, smoothed, sharded(mesh, P("x"), 32, 4), sharded(mesh, P(), 3, 1, 4))


# A batched matmul over four dimensions, as attention has it: 2 × 3 pairs of 5 × 4 and 4 × 7.
@stranger(flops=2 * (2 * 3) * 5 * 7 * 4, yours={"all_gather x": 1}, replayable=True)
def einsum_with_batch_dimensions():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P("x")), P("x"))
    def logits(q, k):
        found = jnp.einsum("bhqd,bhkd->bhqk", q, k)
        return found - lax.all_gather(found.max(), "x").max()

    return Call(mesh, logits, sharded(mesh, P("x"), 8, 3, 5, 4), sharded(mesh, P("x"), 8, 3, 7, 4))
