"""One layer, relu(x · W_in) · W_out, written per device in four ways, traced and measured.

bfloat16; x is [B_X, D], W_in [D, F], W_out [F, D]. The batch is cut over mesh axis x, the hidden dimension over y.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import aval, make_mesh
from grader.programs.program import trace
from grader.programs.structure import Structure
from grader.programs.walk import structure

WAYS = ("data parallel", "FSDP", "tensor parallel", "FSDP + tensor parallel")


@dataclass(frozen=True)
class Cost:
    """One pass: bytes that each device sends, FLOPs of its matmuls."""

    sent: int
    flops: int


def layer(x, w_in, w_out, *, gathers):
    """What each device does. `gathers`: its weights are a share of D, and it asks for the others' before use."""
    if gathers:
        w_in = lax.all_gather(w_in, "x", axis=0, tiled=True)
        w_out = lax.all_gather(w_out, "x", axis=1, tiled=True)
    return lax.psum(jax.nn.relu(x @ w_in) @ w_out, "y")


def step(x, w_in, w_out, dy, *, gathers):
    """Forward, and backward from the gradient dy; what was gathered is gathered again, not kept."""
    body = functools.partial(layer, gathers=gathers)
    out, back = jax.vjp(jax.checkpoint(body) if gathers else body, x, w_in, w_out)
    return out, back(dy)


def program_of(body, gathers, x, y, b=64, d=32, f=128):
    """`layer`, or `step`, as a program on a mesh of x by y devices, and shapes to trace it with."""
    mesh = make_mesh({"x": x, "y": y})
    share = "x" if gathers else None
    specs = P("x", None), P(share, "y"), P("y", share)
    arrays = [
        aval(shape, jnp.bfloat16, spec, mesh) for shape, spec in zip(((b, d), (d, f), (f, d)), specs, strict=True)
    ]
    ins, outs = specs, specs[0]
    if body is step:
        ins, outs, arrays = (*specs, specs[0]), (specs[0], specs), [*arrays, arrays[0]]
    program = jax.shard_map(functools.partial(body, gathers=gathers), mesh=mesh, in_specs=ins, out_specs=outs)
    return program, *arrays


def as_written(program, *arrays) -> Structure:
    """What a program asks for, in its own dtypes, before a compiler changes it."""
    return structure(trace(program, *arrays))


@functools.cache
def measured(how: str, b: int, d: int, f: int, x: int, y: int) -> tuple[Cost, Cost]:
    """Forward and backward of a layer, read from its programs."""

    def cost(body):
        found = as_written(*program_of(body, "FSDP" in how, x, y, b, d, f))
        return Cost(found.bytes_sent, found.dot_flops)

    forward, both = cost(layer), cost(step)
    return forward, Cost(both.sent - forward.sent, both.flops - forward.flops)
