"""What later lessons ask about 10_explicit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grader.questions import Question, core

LESSON = "10_explicit"


@core("typeof")
def type_of_a_matmul(rng: np.random.Generator) -> Question:
    """The type of a matmul that needs no decision."""
    i, j, k = (int(n) for n in rng.choice([8, 16, 24, 32], size=3, replace=False))
    rows, columns = (("x", "y"), ("y", "x"), ("x", None), (None, "y"))[rng.integers(4)]
    left, right = type_of((i, j), (rows, None)), type_of((j, k), (None, columns))
    return Question(
        f"On an Explicit mesh, what does jax.typeof print for {left} @ {right}? (No spaces.)",
        type_of((i, k), (rows, columns)),
        "Each dimension of the result keeps the axis of the one that it comes from, and J is summed away.",
    )


@core("will_it_type")
def which_rule(rng: np.random.Generator) -> Question:
    """Whether a sum of two square arrays has a type, and if not, why."""
    specs = [(("x", "y", None)[rng.integers(3)], ("x", "y", None)[rng.integers(3)]) for _ in range(2)]
    one, other = (tuple(spec) if spec[0] is None or spec[0] != spec[1] else (spec[0], None) for spec in specs)
    answer, why = rule_of_a_sum(one, other)
    return Question(
        f"On an Explicit mesh, {type_of((16, 16), one)} + {type_of((16, 16), other)}: is this 'ok', a "
        "'mismatch' (one dimension, two axes), or 'twice' (one axis, two dimensions)?",
        answer,
        why,
    )


@core(4)
def out_sharding_of_case_3(rng: np.random.Generator) -> Question:
    """What the out_sharding of a matmul over a sharded dimension makes the devices do."""
    layout, answer, why = [
        ("P()", "all_reduce", "Every device needs the complete sums, and has a partial sum of each."),
        ('P("x", None)', "reduce_scatter", "Every device needs only the sums in its rows."),
        ('P(None, "x")', "reduce_scatter", "Every device needs only the sums in its columns."),
        (
            'P(unreduced={"x"})',
            "none",
            "The partial sums stay where they are, until the array is resharded.",
        ),
    ][rng.integers(4)]
    return Question(
        f"float32[16,32@x] is multiplied by float32[32@x,24] with out_sharding={layout}. Which collective is enough: "
        "'none', 'all_gather', 'reduce_scatter', or 'all_reduce'?",
        answer,
        why,
    )


def type_of(shape: Sequence[int], spec: Sequence[str | None]) -> str:
    """A type as JAX prints it: float32[16@x,8]."""
    return f"float32[{','.join(f'{n}@{axis}' if axis else str(n) for n, axis in zip(shape, spec, strict=True))}]"


def rule_of_a_sum(one: Sequence[str | None], other: Sequence[str | None]) -> tuple[str, str]:
    """The result of adding two arrays of one shape: "ok", "mismatch", or "twice", and why."""
    axes = []
    for dim, (a, b) in enumerate(zip(one, other, strict=True)):
        if a and b and a != b:
            return "mismatch", f"Dimension {dim} is sharded over {a} in one and over {b} in the other."
        axes.append(a or b)
    named = [axis for axis in axes if axis]
    if len(set(named)) < len(named):
        return "twice", f"Both dimensions of the result would be sharded over {named[0]}."
    return "ok", "Each dimension has at most one axis, and no axis occurs twice."
