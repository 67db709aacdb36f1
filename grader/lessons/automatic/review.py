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


@core("predict_out")
def layout_of_a_transpose(rng: np.random.Generator) -> Question:
    spec = SPECS[rng.integers(len(SPECS))]
    return Question(
        f"`v` is 16 × 32 and is laid out as {_spelled(spec)}, axes Auto. How is `jax.jit(lambda v: "
        "jnp.sin(v).T)(v)` laid out? A tuple with one entry per dimension, such as ('x', None).",
        spec[::-1],
        "An elementwise operation leaves the layout as it is, and a transpose swaps its entries. Nothing "
        "is sent: every device transposes the block it has.",
        given={"spec": spec},
    )


@core("predict_moves")
def collective_of_a_sum(rng: np.random.Generator) -> Question:
    spec, dim = SPECS[rng.integers(len(SPECS))], int(rng.integers(2))
    cut = spec[dim]
    why = (
        f"Dimension {dim} is cut over {cut}: each device has one part of every sum."
        if cut
        else f"Dimension {dim} is whole on every device, so each adds up what it holds."
    )
    return Question(
        f"`v` is laid out as {_spelled(spec)}, axes Auto. Over which mesh axis does `v.sum({dim})` communicate: "
        "'x', 'y' or 'none'?",
        cut or "none",
        why,
        given={"spec": spec, "dim": dim},
    )


@stretch("contract")
def bytes_of_a_sum(rng: np.random.Generator) -> Question:
    sizes, rows, columns = _sizes(rng), int(rng.choice([16, 32])), int(rng.choice([24, 40, 48]))
    n, share = sizes["x"], columns // sizes["y"]
    return Question(
        f"A float32[{rows},{columns}] is laid out as P('x', 'y') on a mesh x={n}, y={sizes['y']}. `jit` sums it "
        "over its rows, `v.sum(0)`. How many bytes does one device send, on a ring?",
        round(ring_bytes("all_reduce", 4 * share, n)),
        f"Every device has {share} sums that lack {n - 1} other part{'s' * (n > 2)}: an all_reduce of "
        f"{4 * share} bytes over the {n} devices along x, 2·({n}-1)/{n} of them.",
        given={"mesh": sizes, "shape": (rows, columns)},
    )


@core("init_sharded")
def bytes_where_parameters_are_made(rng: np.random.Generator) -> Question:
    sizes, rows, columns = _sizes(rng), 256, int(rng.choice([128, 256, 512]))
    spec = [("x", None), (None, "y"), ("x", "y")][rng.integers(3)]
    parts = int(np.prod([sizes[axis] for axis in spec if axis]))
    cut = bool(rng.integers(2))
    how = (
        f"jax.jit(init, out_shardings={_spelled(spec)} on the mesh)()"
        if cut
        else (f"jax.device_put(jax.jit(init)(), …) with {_spelled(spec)}")
    )
    whole = 4 * rows * columns
    return Question(
        f"`init` makes a float32[{rows},{columns}]; the mesh is x={sizes['x']}, y={sizes['y']}. How many "
        f"bytes of it does device 0 hold when `init` has just run, in `{how}`?",
        whole // parts if cut else whole,
        f"The compiler divides the making: {whole:,} bytes, {parts} parts."
        if cut
        else "device_put comes afterwards: `init` itself ran on one device, and made the whole array there.",
        given={"mesh": sizes, "shape": (rows, columns), "spec": spec, "cut": cut},
    )
