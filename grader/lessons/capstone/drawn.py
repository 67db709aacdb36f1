"""What the gates are tried on: models, batches and states of training of any size; and what a right step sends."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, Draw
from grader.jax_versions import quick_options
from grader.lessons.capstone.sharded import ROWS, SPECS
from grader.lessons.shared import bytes_sent
from grader.transformer.model import AXES, NORMS

ROWS_DRAWN, TOKENS = 8, 8  # of a batch: as few as every mesh can cut
AXIS_NAMES = "data", "model"
MESHES = (4, 2), (2, 4), (1, 8)


def sizes_drawn(draw: Draw, mesh: Mapping[str, int]) -> dict[str, int]:
    """The lengths of a model that every device along `model` has some heads, hidden units and words of."""
    width, hidden, vocabulary = draw.lengths(3, divisible_by=8)
    kv_heads = max(2, mesh["model"])
    return {
        "layers": 2,
        "vocabulary": vocabulary,
        "width": width,
        "heads": 2 * kv_heads,
        "kv_heads": kv_heads,
        "head": 4,
        "hidden": hidden,
    }


def params_drawn(draw: Draw, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Parameters of about unit gain, norm scales around 1."""

    def values(name):
        numbers = draw.values(*(sizes[axis] for axis in AXES[name]))  # between 1 and 9, of either sign
        return 1 + numbers / 32 if name in NORMS else numbers / np.float32(5 * math.sqrt(sizes["width"]))

    return {name: Array(values(name).astype(np.float32), SPECS[name]) for name in AXES}


def batch_drawn(draw: Draw, sizes: Mapping[str, int], *micro: int) -> dict[str, Array]:
    """Tokens and targets [*micro, rows, T]; the rows are of different lengths, those of a later microbatch shorter."""
    shape = (*micro, ROWS_DRAWN, TOKENS)
    tokens, targets = (draw.rng.integers(sizes["vocabulary"], size=shape, dtype=np.int32) for _ in range(2))
    number = np.arange(math.prod(shape[:-1]))
    lengths = (1 + number * 3 % TOKENS // (1 + number // ROWS_DRAWN)).reshape(shape[:-1])
    padding = -1 - np.arange(TOKENS) % 2  # whatever is below 0
    targets = np.where(np.arange(TOKENS) < lengths[..., None], targets, padding).astype(np.int32)
    spec = P(*(None for _ in micro), *ROWS)
    return {"tokens": Array(tokens, spec), "targets": Array(targets, spec)}


def state_drawn(draw: Draw, sizes: Mapping[str, int]) -> dict:
    """A state of training as it is after some steps: means of either sign, squares above zero."""

    def like(leaf, scale, positive=False):
        values = draw.values(*leaf.value.shape) * np.float32(scale)
        return Array(abs(values) if positive else values, leaf.spec)

    params = params_drawn(draw, sizes)
    return {
        "params": params,
        "mean": {name: like(leaf, 1 / 64) for name, leaf in params.items()},
        "square": {name: like(leaf, 1 / 512, positive=True) for name, leaf in params.items()},
        "count": Array(np.int32(draw.rng.integers(6, 12)), P()),
    }


def compiled_quickly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of arrays, compiled in a third of the time: it runs once for each case. Who traces it sees its
    steps."""

    def call(*arrays: Any) -> Any:
        if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(arrays)):
            return function(*arrays)
        return jax.jit(function).lower(*arrays).compile(quick_options())(*arrays)

    return call


def roundings(sizes: Mapping[str, int], passes: int = 1) -> int:
    """The lengths of the sums on the way through the model, once for each of so many passes."""
    layer = 5 * sizes["width"] + 2 * sizes["head"] * sizes["heads"] + 2 * TOKENS + 2 * sizes["hidden"]
    return passes * (sizes["layers"] * layer + 2 * sizes["width"] + sizes["vocabulary"])


def weights_gathered(sizes: Mapping[str, int], mesh: Mapping[str, int]) -> int:
    """Bytes that each device sends to gather every matrix once over `data`."""
    return sum(bytes_sent("all_gather", _numbers(name, sizes) // 8, mesh["data"]) for name in _matrices())


def weights_scattered(sizes: Mapping[str, int], mesh: Mapping[str, int]) -> int:
    """Bytes that each device sends to add up the gradients of all matrices over `data`, each to its shares."""
    each = (_numbers(name, sizes) // mesh["model"] for name in _matrices())
    return sum(bytes_sent("reduce_scatter", numbers, mesh["data"]) for numbers in each)


def sequence_summed(sizes: Mapping[str, int], mesh: Mapping[str, int]) -> int:
    """Bytes that each device sends where the embedding and all layers add their parts up over `model`, once through."""
    rows = ROWS_DRAWN // mesh["data"] * TOKENS * sizes["width"]
    return (1 + 2 * sizes["layers"]) * bytes_sent("all_reduce", rows, mesh["model"])


def tokens_summed(mesh: Mapping[str, int], times: int) -> int:
    """Bytes that each device sends to add a number for each token up over `model` so many times."""
    return times * bytes_sent("all_reduce", ROWS_DRAWN // mesh["data"] * TOKENS, mesh["model"])


def norms_summed(sizes: Mapping[str, int]) -> int:
    """Bytes that each device sends to add up the gradients of all norm scales over all devices."""
    return bytes_sent("all_reduce", sum(_numbers(name, sizes) for name in NORMS), 8)


def scalars_summed(times: int) -> int:
    """Bytes that each device sends to add so many single numbers up over all devices."""
    return bytes_sent("all_reduce", times, 8)


def _matrices():
    return [name for name in AXES if name not in NORMS]


def _numbers(name: str, sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[axis] for axis in AXES[name])
