"""Other ways to call: static and keyword arguments, NumPy, shapes only, pytrees, jitted and donated, Pallas kernels."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from strangers.registry import Call, explicit, grid, on, put, ring, sharded, stranger, values


@stranger(yours={"all_reduce x": 1}, replayable=True)
def numpy_argument():
    mesh = grid(x=8)
    total = on(mesh, P("x"), P())(lambda v: lax.psum(v, "x"))
    return Call(mesh, total, values(16, 3))


@stranger(yours={"all_reduce x": 1}, replayable=True)
def arange_argument():
    mesh = grid(x=8)
    total = on(mesh, P("x"), P())(lambda v: lax.psum(v, "x"))
    return Call(mesh, total, jnp.arange(16.0))


@stranger(flops=2 * 2 * 4 * 6, yours={"all_reduce x": 1}, replayable=True)
def numpy_weights_and_a_sharded_batch():
    mesh = grid(x=4)
    mean = on(mesh, (P(), P("x")), P())(lambda w, v: lax.pmean(v @ w, "x"))
    return Call(mesh, mean, values(4, 6), sharded(mesh, P("x"), 8, 4))


@stranger(yours={"all_reduce x": 1}, replayable=True)
def python_numbers():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P(), P()), P())
    def scaled(v, factor, shift):
        return lax.psum(v * factor + shift, "x")

    return Call(mesh, scaled, sharded(mesh, P("x"), 8, 3), 2.5, True)


@stranger(flops=2 * 16 * 64 * 128, yours={"all_reduce x": 1})
def only_shapes():
    mesh = grid(x=8)
    product = on(mesh, (P(None, "x"), P("x")), P())(lambda a, b: lax.psum(a @ b, "x"))
    a, b = (
        jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))
        for shape, spec in (((16, 512), P(None, "x")), ((512, 128), P("x")))
    )
    return Call(mesh, product, a, b)


# A sharding that the shapes do not have is chosen by XLA, here that of in_specs.
@stranger(yours={"all_gather x": 1})
def shapes_without_shardings():
    mesh = grid(x=8)
    full = on(mesh, P("x"), P("x"))(lambda v: v - lax.all_gather(v, "x").mean(0))
    return Call(mesh, full, jax.ShapeDtypeStruct((16, 3), jnp.float32))


@stranger(yours={"collective_permute x": 3}, replayable=True)
def static_argument():
    mesh = grid(x=4)

    @functools.partial(jax.jit, static_argnums=1)
    def shifted(v, steps):
        def body(v):
            for _ in range(steps):
                v = jnp.sin(lax.ppermute(v, "x", ring(4)))
            return v

        return on(mesh, P("x"), P("x"))(body)(v)

    return Call(mesh, shifted, sharded(mesh, P("x"), 8, 3), 3)


@stranger(yours={"all_gather y": 1}, replayable=True)
def static_keyword():
    mesh = grid(x=4, y=2)

    @functools.partial(jax.jit, static_argnames="axis")
    def gathered(v, axis):
        body = on(mesh, P("x", "y"), P("x", "y"))(lambda v: v + lax.all_gather(v, axis).sum(0))
        return body(v)

    return Call(mesh, gathered, sharded(mesh, P("x", "y"), 8, 4), axis="y")


@stranger(flops=2 * 2 * 4 * 6, yours={"all_reduce x": 1}, replayable=True)
def keyword_arguments():
    mesh = grid(x=4)

    def layer(x, *, kernel, bias):
        body = on(mesh, (P("x"), P(), P()), P())(lambda x, k, b: lax.pmax(x @ k + b, "x"))
        return body(x, kernel, bias)

    return Call(mesh, layer, sharded(mesh, P("x"), 8, 4), kernel=sharded(mesh, P(), 4, 6), bias=sharded(mesh, P(), 6))


@stranger(yours={"all_reduce x": 1}, replayable=True)
def all_arguments_by_keyword():
    mesh = grid(x=4)

    def scaled(v, factor=2.0):
        return on(mesh, (P("x"), P()), P())(lambda v, f: lax.psum(v * f, "x"))(v, factor)

    return Call(mesh, scaled, v=sharded(mesh, P("x"), 8, 3), factor=sharded(mesh, P()))


@stranger(yours={"all_reduce x": 1}, replayable=True)
def already_jitted():
    mesh = grid(x=4)
    return Call(mesh, jax.jit(on(mesh, P("x"), P())(lambda v: lax.psum(v, "x"))), sharded(mesh, P("x"), 8, 3))


@stranger(flops=2 * (2 * 2 * 4 * 4), yours={"all_reduce x": 2}, replayable=True)
def jitted_in_jitted():
    mesh = grid(x=4)

    @jax.jit
    def layer(v, w):
        return jnp.tanh(on(mesh, (P("x"), P()), P("x"))(lambda v, w: v @ w - lax.pmean(v, "x"))(v, w))

    @jax.jit
    def network(v, w):
        return layer(layer(v, w), w)

    return Call(mesh, network, sharded(mesh, P("x"), 8, 4), sharded(mesh, P(), 4, 4))


@stranger(yours={"collective_permute x": 1}, replayable=True)
def donated_argument():
    mesh = grid(x=4)
    shifted = on(mesh, P("x"), P("x"))(lambda v: lax.ppermute(v, "x", ring(4)))
    return Call(mesh, jax.jit(shifted, donate_argnums=0), sharded(mesh, P("x"), 8, 3))


class State(NamedTuple):
    step: Any
    params: Any


@jax.tree_util.register_dataclass
@dataclass
class Batch:
    inputs: Any
    targets: Any


# 2 rows a device: the forward pass and the gradient of the weights.
@stranger(flops=2 * (2 * 2 * 4 * 3), inserted={"all_reduce x": 2})
def train_step_with_a_named_tuple_and_a_dataclass():
    mesh = grid(x=4)

    @functools.partial(jax.jit, donate_argnums=0)
    def train(state, batch):
        def loss(params):
            return ((batch.inputs @ params["w"] + params["b"] - batch.targets) ** 2).mean()

        grads = jax.grad(loss)(state.params)
        return State(state.step + 1, jax.tree.map(lambda p, g: p - 0.1 * g, state.params, grads))

    params = put(mesh, P(), {"w": values(4, 3), "b": values(3)})
    batch = Batch(sharded(mesh, P("x"), 8, 4), sharded(mesh, P("x"), 8, 3))
    return Call(mesh, train, State(put(mesh, P(), np.int32(0)), params), batch)


@stranger(yours={"all_reduce x": 1}, replayable=True)
def a_method_of_an_object():
    mesh = grid(x=4)

    class Model:
        scale = 3.0

        def __call__(self, v):
            return on(mesh, P("x"), P())(lambda v: lax.psum(self.scale * v, "x"))(v)

    return Call(mesh, Model(), sharded(mesh, P("x"), 8, 3))


@stranger(yours={"all_reduce x": 1}, replayable=True)
def a_partial_function():
    mesh = grid(x=4)

    def scaled(factor, v):
        return on(mesh, P("x"), P())(lambda v: lax.psum(factor * v, "x"))(v)

    return Call(mesh, functools.partial(scaled, 3.0), sharded(mesh, P("x"), 8, 3))


# An array that the function closes over is a constant for XLA, and each device slices its shard from it.
@stranger(yours={"all_reduce x": 1}, replayable=True)
def a_closed_over_array():
    mesh = grid(x=4)
    table = values(8, 3)

    def weighted(v):
        return on(mesh, (P("x"), P("x")), P())(lambda v, t: lax.psum(v * t, "x"))(v, table)

    return Call(mesh, weighted, sharded(mesh, P("x"), 8, 3))


@stranger(yours={"all_reduce x": 1}, replayable=True)
def no_arguments():
    mesh = grid(x=4)

    def indices():
        return on(mesh, (), P())(lambda: lax.psum(lax.axis_index("x") * jnp.arange(3.0), "x"))()

    return Call(mesh, indices)


@stranger(yours={"all_gather x": 1}, replayable=True)
def none_among_the_arguments():
    mesh = grid(x=4)

    def biased(v, bias, options):
        v = v if bias is None else v + bias
        return on(mesh, P("x"), P("x"))(lambda v: v * lax.all_gather(v, "x").max(0))(v) * options["scale"]

    return Call(mesh, biased, sharded(mesh, P("x"), 8, 3), None, {"scale": sharded(mesh, P()), "unused": None})


@stranger(flops=2 * 4 * 8 * 6, since=(0, 8))
def mesh_set_for_the_program():
    mesh = explicit(x=4)

    def product(a, b):
        with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
            return jnp.einsum("ij,jk->ik", a, b, out_sharding=P("x", None))

    return Call(mesh, product, sharded(mesh, P("x", None), 16, 8), sharded(mesh, P(None, None), 8, 6))


@stranger(yours={"all_reduce x": 1}, replayable=True)
def shard_map_over_an_abstract_mesh():
    mesh = grid(x=4)

    def total(v):
        return on(mesh.abstract_mesh, P("x"), P())(lambda v: lax.psum(v, "x"))(v)

    return Call(mesh, total, sharded(mesh, P("x"), 8, 3))


# Elementwise in a kernel, which interpret mode turns into a loop.
@stranger(yours={"all_reduce x": 1}, replayable=True)
def pallas_kernel_before_a_psum():
    mesh = grid(x=4)

    def double(ref, out):
        out[...] = ref[...] * 2

    @on(mesh, P("x"), P(), check_vma=False)
    def total(v):
        doubled = pl.pallas_call(double, jax.ShapeDtypeStruct(v.shape, v.dtype), interpret=True)(v)
        return lax.psum(doubled, "x")

    return Call(mesh, total, sharded(mesh, P("x"), 8, 4))


# A matmul of 8 × 4 and 4 × 8 in blocks of 4 × 4: a grid of 2 × 2, with one matmul of 4 × 4 × 4 in each program.
@stranger(flops=2 * 2 * 2 * 4 * 4 * 4, yours={"all_gather x": 1}, replayable=True)
def pallas_matmul_in_blocks():
    mesh = grid(x=4)

    def kernel(a, b, out):
        out[...] = a[...] @ b[...]

    @on(mesh, (P("x"), P("x")), P("x"), check_vma=False)
    def product(a, b):
        return pl.pallas_call(
            kernel,
            jax.ShapeDtypeStruct((8, 8), a.dtype),
            grid=(2, 2),
            in_specs=[pl.BlockSpec((4, 4), lambda i, j: (i, 0)), pl.BlockSpec((4, 4), lambda i, j: (0, j))],
            out_specs=pl.BlockSpec((4, 4), lambda i, j: (i, j)),
            interpret=True,
        )(a, lax.all_gather(b, "x", tiled=True))

    return Call(mesh, product, sharded(mesh, P("x"), 32, 4), sharded(mesh, P("x"), 4, 8))


# A ring whose step is a kernel.
@stranger(flops=4 * 2 * 4 * 4 * 4, yours={"collective_permute x": 4}, replayable=True)
def pallas_matmul_in_a_ring():
    mesh = grid(x=4)

    def kernel(a, b, out):
        out[...] = a[...] @ b[...]

    @on(mesh, (P("x"), P("x")), P("x"), check_vma=False)
    def rotating(a, b):
        product = pl.pallas_call(kernel, jax.ShapeDtypeStruct((4, 4), a.dtype), interpret=True)

        def step(carry, _):
            a, total = carry
            return (lax.ppermute(a, "x", ring(4)), total + product(a, b)), None

        return lax.scan(step, (a, jnp.zeros_like(a)), length=4)[0][1]

    return Call(mesh, rotating, sharded(mesh, P("x"), 16, 4), sharded(mesh, P("x"), 16, 4))
