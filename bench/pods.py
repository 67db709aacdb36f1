"""One training step, compiled for pods of 8, 64, 256 and 4,096 chips by their own compiler: `python bench/pods.py`.

The same model each time: 16 blocks of two matmuls (Llama 3 8B's width, 4,096 × 14,336) in bfloat16, gradients, and
Adam's two moments in float32; weights and moments lie in shards over all chips (FSDP, on the largest pod with
eight-fold tensor parallelism); 4,096 tokens for every chip; a block's activations are computed anew on the way back.
Nothing is run, and no chip is needed: `make tpu` brings the compiler. What it refuses is a line of the table too.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import grader
from grader.chips.compiling import NoCompiler
from grader.chips.report import PodReport
from grader.chips.topologies import GIB, topology

PODS = ("v5e:2x4", "v5e:8x8", "v5e:16x16", "v5p:16x16x16")
LAYERS, WIDTH, HIDDEN, TOKENS = 16, 4096, 14336, 4096
MOST_SHARDS = 512  # chips over which FSDP cuts the width; beyond, the hidden layer is cut as well
SECONDS = 1200


def training_step(chips: int) -> tuple[Any, tuple[Any, ...]]:
    """A step of Adam as a jitted function, and the shapes of its arguments on a mesh of so many chips."""
    sizes = (min(chips, MOST_SHARDS), max(1, chips // MOST_SHARDS))
    mesh = AbstractMesh(sizes, ("fsdp", "tensor"), axis_types=(AxisType.Auto,) * 2)
    layout = {"up": P(None, "fsdp", "tensor"), "down": P(None, "tensor", "fsdp")}
    shapes = {"up": (LAYERS, WIDTH, HIDDEN), "down": (LAYERS, HIDDEN, WIDTH)}

    def aval(shape: tuple[int, ...], dtype: Any, spec: P) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))

    @jax.checkpoint
    def block(h: jax.Array, w: Any) -> tuple[jax.Array, None]:
        h = lax.with_sharding_constraint(h, NamedSharding(mesh, P("fsdp")))
        return h + jax.nn.silu(h @ w["up"]) @ w["down"], None

    def loss(weights: Any, x: jax.Array) -> jax.Array:
        return jnp.mean(lax.scan(block, x, weights)[0].astype(jnp.float32) ** 2)

    def step(weights: Any, mean: Any, square: Any, x: jax.Array) -> tuple[Any, Any, Any]:
        gradient = jax.grad(loss)(weights, x)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g.astype(jnp.float32), mean, gradient)
        square = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g.astype(jnp.float32) ** 2, square, gradient)
        weights = jax.tree.map(
            lambda w, m, v: (w - 1e-3 * m / (jnp.sqrt(v) + 1e-8)).astype(w.dtype), weights, mean, square
        )
        return weights, mean, square

    weights = {name: aval(shape, jnp.bfloat16, layout[name]) for name, shape in shapes.items()}
    moments = {name: aval(shape, jnp.float32, layout[name]) for name, shape in shapes.items()}
    held = jax.tree.map(lambda leaf: leaf.sharding, (weights, moments, moments))
    jitted = jax.jit(step, donate_argnums=(0, 1, 2), out_shardings=held)
    return jitted, (weights, moments, moments, aval((TOKENS * chips, WIDTH), jnp.bfloat16, P("fsdp")))


def row(pod: str) -> str:
    """A line of the table: what each device sends and holds, and how long compiling took."""
    chips = topology(pod).devices
    step, arguments = training_step(chips)
    start = f"| {pod} | {chips:,} |"
    try:
        found: PodReport = grader.communication(step, *arguments, on=pod, seconds=SECONDS)
    except NoCompiler as error:
        return f"{start} {error} |"
    if found.memory is None:
        return f"{start} refused: {found.refusal.words if found.refusal else ''} |"
    held = f"{found.memory.peak / GIB:.2f} of {found.topology.chip.room / GIB:.2f} GiB"
    return f"{start} {found.bytes_sent / 1e9:.2f} GB | {held} | {found.flops / 1e12:.0f} | {found.seconds:.0f} s |"


def main(pods: list[str]) -> None:
    print("| pod | chips | sent per device | HBM at the peak | TFLOPs | compiling |\n|---|---|---|---|---|---|")
    for pod in pods:
        print(row(pod), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(PODS))
