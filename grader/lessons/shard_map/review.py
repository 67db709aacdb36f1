"""What later lessons ask about 05_shard_map."""

from __future__ import annotations

import math

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import axes_of, blocks
from grader.arrays.meshes import spelled
from grader.questions import Question, core

LESSON = "05_shard_map"


def _mesh(rng: np.random.Generator) -> dict[str, int]:
    shape = [(4, 2), (2, 4), (2, 2)][rng.integers(3)]
    return dict(zip("xy", shape, strict=True))


def _on(mesh: dict[str, int]) -> str:
    return f"On a {' × '.join(map(str, mesh.values()))} mesh with axes x and y"


@core(1)
def shape_inside(rng: np.random.Generator) -> Question:
    mesh = _mesh(rng)
    shape = tuple(8 * int(n) for n in rng.choice(np.arange(1, 6), 2, replace=False))
    spec = [P("x", "y"), P("y", "x"), P("x"), P(None, "y"), P(("x", "y")), P()][rng.integers(6)]
    index = blocks(shape, spec, mesh).indices[0]
    local = tuple(part.stop - part.start for part in index)
    return Question(
        f"{_on(mesh)}, a float32{list(shape)} is an argument of shard_map with in_specs={spelled(spec)}. What "
        "shape does the function see? (a tuple)",
        local,
        "Each dimension is divided by the sizes of the axes that its entry of the spec names. Along an axis that "
        "isn't named, the block is replicated.",
        given={"mesh": mesh, "shape": shape, "spec": spec},
    )


@core("vma_types")
def varying_after_a_sum(rng: np.random.Generator) -> Question:
    spec = [P("x", "y"), P("x"), P(None, "y"), P(("x", "y"))][rng.integers(4)]
    cut = [a for entry in spec for a in axes_of(entry)]
    summed = str(rng.choice(cut))
    left = set(cut) - {summed}
    return Question(
        f"Inside shard_map, a block has in_specs={spelled(spec)}. Over which axes does lax.psum(block, {summed!r}) "
        "vary, by its type? (a set of names, set() for none)",
        left,
        f"It varied over the axes that shard it, {', '.join(cut)}. After the psum, the devices along {summed} agree.",
        given={"spec": spec, "summed": summed},
    )


@core(3)
def result_of_out_specs(rng: np.random.Generator) -> Question:
    mesh = _mesh(rng)
    local = tuple(int(n) for n in rng.choice(np.arange(2, 8), 2, replace=False))
    spec = [P("x", "y"), P("y", "x"), P("y"), P(None, "x"), P(), P(("x", "y"))][rng.integers(6)]
    parts = [*spec, None, None][:2]
    times = [math.prod(mesh[a] for a in ((p,) if isinstance(p, str) else p or ())) for p in parts]
    return Question(
        f"{_on(mesh)}, each device returns a block of shape {local}, and out_specs={spelled(spec)}. What "
        "is the shape of the full result? (a tuple)",
        tuple(n * k for n, k in zip(local, times, strict=True)),
        "out_specs only assemble blocks. Along an axis that they name, the blocks are concatenated. Along one "
        "that they leave out, a single copy is the result.",
        given={"mesh": mesh, "block": local, "spec": spec},
    )


@core(4)
def honest_out_specs(rng: np.random.Generator) -> Question:
    n, length = int(rng.choice([2, 4, 8])), int(rng.integers(2, 6))
    first = int(rng.integers(1, 5))
    numbers = np.arange(first, first + n * length)
    shown = int(numbers[:length].sum())
    return Question(
        f"The numbers {numbers[0]} to {numbers[-1]} are split evenly over {n} devices. Each device returns "
        "block.sum(), with out_specs=P() and check_vma=False. What is int() of the result?",
        shown,
        f"It is the sum of device 0's {length} numbers. Nothing was summed across devices, and without the check, "
        "JAX doesn't notice that the promise of P() is broken.",
        given={"devices": n, "numbers": numbers},
    )
