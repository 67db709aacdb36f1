"""What later lessons ask about 02_shardings."""

from __future__ import annotations

import math

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import axes_of, blocks
from grader.arrays.meshes import spelled
from grader.questions import Question, core

LESSON = "02_shardings"
SPECS = (P("x", "y"), P("y", "x"), P("x"), P("y"), P(None, "x"), P(None, "y"), P(("x", "y")), P(None, ("y", "x")))


def _mesh(rng: np.random.Generator) -> tuple[dict[str, int], str]:
    x, y = ((4, 2), (2, 4))[rng.integers(2)]
    return {"x": x, "y": y}, f"On a {x} × {y} mesh with axes x and y, devices counted row by row,"


def _parts(shape: tuple[int, ...], spec: P, mesh: dict[str, int]) -> list[int]:
    """Into how many parts each dimension is cut."""
    named = [*map(axes_of, spec), *[()] * (len(shape) - len(spec))]
    return [math.prod(mesh[a] for a in axes) for axes in named]


@core("shard_shape")
def shape_of_a_block(rng: np.random.Generator) -> Question:
    (mesh, where), spec = _mesh(rng), SPECS[rng.integers(len(SPECS))]
    shape = tuple(int(8 * n) for n in rng.choice([2, 3, 4, 5], size=2, replace=False))
    answer = tuple(part.stop - part.start for part in blocks(shape, spec, mesh).indices[0])
    rows, columns = _parts(shape, spec, mesh)
    return Question(
        f"{where} a {shape[0]} × {shape[1]} array is sharded as {spelled(spec)}. What is the shape of one device's "
        "block? (a tuple)",
        answer,
        f"The rows are split into {rows}, the columns into {columns} {_noun(columns)}.",
        given={"mesh": mesh, "shape": shape, "spec": spec},
    )


def _noun(parts: int) -> str:
    return "part" if parts == 1 else "parts"


@core(1, 2)
def who_holds_the_entry(rng: np.random.Generator) -> Question:
    (mesh, where), spec = _mesh(rng), SPECS[rng.integers(len(SPECS))]
    row, column = (int(n) for n in rng.integers(8, size=2))
    layout = blocks((8, 8), spec, mesh)
    answer = [
        k
        for k, (rows, columns) in enumerate(layout.indices)
        if rows.start <= row < rows.stop and columns.start <= column < columns.stop
    ]
    rows, columns = layout.indices[answer[0]]
    return Question(
        f"{where} an 8 × 8 array is sharded as {spelled(spec)}. Which devices hold element [{row}, {column}]? "
        "(a list of IDs)",
        answer,
        f"It is in the block [{rows.start}:{rows.stop}, {columns.start}:{columns.stop}].",
        given={"mesh": mesh, "entry": (row, column), "spec": spec},
    )


@core("bytes_held")
def bytes_on_all_devices(rng: np.random.Generator) -> Question:
    (mesh, where), spec = _mesh(rng), SPECS[rng.integers(len(SPECS))]
    shape = tuple(int(8 * n) for n in rng.choice([2, 4, 8], size=2, replace=False))
    layout = blocks(shape, spec, mesh)
    copies = sum(index == layout.indices[0] for index in layout.indices)
    return Question(
        f"{where} a float32[{shape[0]},{shape[1]}] is sharded as {spelled(spec)}. How many bytes do all eight "
        "devices hold together?",
        4 * layout.entries * len(layout.indices),
        f"{4 * layout.entries:,} bytes on each of 8 devices. The array has {4 * math.prod(shape):,}, and of "
        f"every block there {'is one replica' if copies == 1 else f'are {copies} replicas'}.",
        given={"mesh": mesh, "shape": shape, "spec": spec},
    )


@core(1)
def what_jax_says(rng: np.random.Generator) -> Question:
    shape, spec = [
        ((12, 8), ("x", "y")),
        ((16, 8), ("y", "y")),
        ((10, 6), ("x",)),
        ((10, 6), ("y",)),
        ((16,), (None, "x")),
        ((8, 12), (None, ("x", "y"))),
        ((8,), (("y", "x"),)),
        ((16, 8), (("x", "y"), "y")),
    ][rng.integers(8)]
    answer, options = verdict_of_jax(shape, P(*spec)), list(WHY)
    return Question(
        f"On a 4 × 2 mesh with axes x and y, an array of shape {shape} should be sharded as {spelled(P(*spec))}. "
        f"What happens: {', '.join(map(repr, options[:-1]))} or {options[-1]!r}?",
        answer,
        WHY[answer],
        given={"shape": shape, "spec": spec},
    )


def verdict_of_jax(shape: tuple[int, ...], spec: P) -> str:
    """What comes of laying an array of this shape out on a 4 × 2 mesh, by the rules (a test asks JAX itself)."""
    named = [axis for entry in spec for axis in axes_of(entry)]
    if len(set(named)) < len(named):
        return "axis used twice"
    if len(spec) > len(shape):
        return "too many entries"
    parts = _parts(shape, spec, {"x": 4, "y": 2})
    return "does not divide" if any(n % k for n, k in zip(shape, parts, strict=True)) else "fine"


WHY = {
    "fine": "No axis appears twice, and every dimension is divisible by the sizes of the axes that split it.",
    "axis used twice": "A mesh axis can appear only once in a spec.",
    "too many entries": "A spec has at most one entry for each dimension.",
    "does not divide": "A dimension has to be divisible by the product of the sizes of the axes that split it.",
}
