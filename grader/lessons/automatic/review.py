"""What later lessons ask about 04_automatic."""

from __future__ import annotations

import numpy as np

from grader.programs.collectives import ring_bytes
from grader.questions import Question, core, stretch

LESSON = "04_automatic"
SPECS = (("x", "y"), ("y", "x"), ("x", None), (None, "x"), ("y", None), (None, "y"))


def _sizes(rng: np.random.Generator) -> dict[str, int]:
    return dict(zip("xy", [(4, 2), (2, 4)][rng.integers(2)], strict=True))


def _spelled(spec: tuple[str | None, ...]) -> str:
    return f"P({', '.join(map(repr, spec))})"


@core(2)
def layout_of_a_transpose(rng: np.random.Generator) -> Question:
    spec = SPECS[rng.integers(len(SPECS))]
    return Question(
        f"`v` is 16 × 32 and sharded as {_spelled(spec)}, on Auto axes. How is `jax.jit(lambda v: jnp.sin(v).T)(v)` "
        "sharded? Answer with a tuple that has one entry per dimension, such as ('x', None).",
        spec[::-1],
        "An elementwise operation keeps the sharding, and a transpose swaps the entries of the spec. Nothing is sent: "
        "every device transposes its own block.",
        given={"spec": spec},
    )


@core("predict_moves")
def collective_of_a_sum(rng: np.random.Generator) -> Question:
    spec, dim = SPECS[rng.integers(len(SPECS))], int(rng.integers(2))
    axis = spec[dim]
    why = (
        f"Dimension {dim} is split along {axis}, so each device has a partial sum."
        if axis
        else f"Dimension {dim} isn't split, so each device sums what it holds."
    )
    return Question(
        f"`v` is sharded as {_spelled(spec)}, on Auto axes. Along which mesh axis does `v.sum({dim})` communicate: "
        "'x', 'y', or 'none'?",
        axis or "none",
        why,
        given={"spec": spec, "dim": dim},
    )


@stretch("contract")
def bytes_of_a_sum(rng: np.random.Generator) -> Question:
    sizes, rows, columns = _sizes(rng), int(rng.choice([16, 32])), int(rng.choice([24, 40, 48]))
    n, share = sizes["x"], columns // sizes["y"]
    return Question(
        f"A float32[{rows},{columns}] is sharded as P('x', 'y') on a mesh x={n}, y={sizes['y']}. `jit` sums its rows, "
        "`v.sum(0)`. How many bytes does one device send? (An all-reduce of b bytes over n devices sends "
        "2(n-1)/n · b.)",
        round(ring_bytes("all_reduce", 4 * share, n)),
        f"Every device has {share} partial sums, which is {4 * share} bytes. An all-reduce along x, over {n} devices, "
        f"sends 2·({n}-1)/{n} of that.",
        given={"mesh": sizes, "shape": (rows, columns)},
    )


@core("init_sharded")
def bytes_where_parameters_are_made(rng: np.random.Generator) -> Question:
    sizes, rows, columns = _sizes(rng), 256, int(rng.choice([128, 256, 512]))
    spec = [("x", None), (None, "y"), ("x", "y")][rng.integers(3)]
    parts = int(np.prod([sizes[axis] for axis in spec if axis]))
    sharded = bool(rng.integers(2))
    how = (
        f"jax.jit(init, out_shardings={_spelled(spec)})()"
        if sharded
        else f"jax.device_put(jax.jit(init)(), {_spelled(spec)})"
    )
    full = 4 * rows * columns
    return Question(
        f"`init` creates a float32[{rows},{columns}], and a mesh x={sizes['x']}, y={sizes['y']} is set. How many bytes "
        f"of it does device 0 hold when `init` has just run, in `{how}`?",
        full // parts if sharded else full,
        f"Each device creates its own shard: {full:,} bytes in {parts} parts."
        if sharded
        else "`device_put` comes afterward: `init` itself ran on one device, and created the full array there.",
        given={"mesh": sizes, "shape": (rows, columns), "spec": spec, "cut": sharded},
    )
