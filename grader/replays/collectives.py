"""Collectives, worked out across the blocks of the devices that take part together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from grader.programs.structure import device_numbers_along
from grader.replays.scenes import Halt

Params = Mapping[str, Any]
Parts = Sequence[Any]  # one for each device of a group, in the group's order


@dataclass(frozen=True)
class Rule:
    """How a collective is worked out: the kind it counts as, the blocks after it, and who sent to whom.

    `joins` is the dimension along which a block is then made of a piece of each device's. `together`: its operands
    belong to one another; else each is sent for itself. `permutes`: JAX counts devices as `permuted_axes` says.
    """

    kind: str
    after: Callable[[Parts, Params], list[Any]]
    moves: Callable[[Params], list[tuple[int, int]]] = lambda params: []
    joins: Callable[[Params], int | None] = lambda params: None
    together: bool = False
    permutes: bool = False


def reduced(operation: np.ufunc) -> Rule:
    """Every device gets one block for the whole group."""
    return Rule("all_reduce", lambda blocks, params: [reduce_blocks(operation, blocks)] * len(blocks))


def reduce_blocks(operation: np.ufunc, blocks: Parts) -> np.ndarray:
    """The blocks, combined element by element. On CPUs a maximum skips NaN, and is minus infinity if all are NaN."""
    stack = np.stack(blocks)
    wide = np.float32 if _is_float(stack.dtype) and stack.dtype.itemsize < 4 else stack.dtype
    start = neutral(operation, stack.dtype) if len(blocks) > 1 else None
    return operation.reduce(stack.astype(wide), axis=0, dtype=wide, initial=start).astype(stack.dtype)


def neutral(operation: np.ufunc, dtype: Any) -> Any:
    """The number that changes nothing in a sum, a maximum (np.fmax) or a minimum (np.fmin)."""
    if operation is np.add or np.dtype(dtype).kind == "b":
        return operation is np.fmin
    if _is_float(dtype):
        return -np.inf if operation is np.fmax else np.inf
    limits = jax.numpy.iinfo(dtype)
    return limits.min if operation is np.fmax else limits.max


def _is_float(dtype: Any) -> bool:
    return bool(jax.numpy.issubdtype(dtype, np.floating))


def _gather(blocks: Parts, params: Params) -> list[Any]:
    joined = np.concatenate if params["tiled"] else np.stack
    return [joined(blocks, params["all_gather_dimension"])] * len(blocks)


def _scatter(blocks: Parts, params: Params) -> list[Any]:
    dimension = params["scatter_dimension"]
    parts = np.split(reduce_blocks(np.add, blocks), len(blocks), dimension)
    return parts if params["tiled"] else [part.squeeze(dimension) for part in parts]


def _permute(blocks: Parts, params: Params) -> list[Any]:
    after = [np.zeros_like(block) for block in blocks]
    for one in zip(*params["perm"], strict=True):
        if len(set(one)) < len(one):
            raise Halt(
                f"ppermute sends along {list(params['perm'])}, where a device is named twice: each may send to one "
                "device, and hear from one. What all are to have is a broadcast, or an all_gather."
            )
    for source, target in params["perm"]:
        if max(source, target) >= len(blocks):
            raise Halt(
                f"ppermute sends from {source} to {target}, and along its axes there are only devices 0 to "
                f"{len(blocks) - 1}. A ring goes on with device 0 behind the last one: take the number modulo its size."
            )
        after[target] = blocks[source]
    return after


def _exchange(blocks: Parts, params: Params) -> list[Any]:
    split, concat = params["split_axis"], params["concat_axis"]
    parts = [np.split(block, len(blocks), split) for block in blocks]
    return [np.concatenate(column, concat) for column in zip(*parts, strict=True)]


def _exchange_ragged(blocks: Parts, params: Params) -> list[Any]:
    after = [np.array(output) for _, output, *_ in blocks]
    for operand, _, starts, sizes, targets, _ in blocks:
        for k, (start, size, target) in enumerate(zip(starts, sizes, targets, strict=True)):
            after[k][target : target + size] = operand[start : start + size]
    return after


def _broadcast(blocks: Parts, params: Params) -> list[Any]:
    return [blocks[params["source"]]] * len(blocks)


_GATHER = Rule("all_gather", _gather, joins=lambda params: params["all_gather_dimension"])
_SCATTER = Rule("reduce_scatter", _scatter)
RULES: Mapping[str, Rule] = {
    "psum": reduced(np.add),
    "psum_invariant": reduced(np.add),
    "unreduced_psum": reduced(np.add),
    "pmax": reduced(np.fmax),
    "pmin": reduced(np.fmin),
    "unreduced_pmax": reduced(np.fmax),
    "unreduced_pmin": reduced(np.fmin),
    "all_gather": _GATHER,
    "all_gather_invariant": _GATHER,
    "all_gather_reduced": _GATHER,
    "reduce_scatter": _SCATTER,
    "unreduced_reduce_scatter": _SCATTER,
    "ppermute": Rule("collective_permute", _permute, moves=lambda params: list(params["perm"]), permutes=True),
    "all_to_all": Rule("all_to_all", _exchange, joins=lambda params: params["concat_axis"]),
    "ragged_all_to_all": Rule("ragged_all_to_all", _exchange_ragged, together=True),
    "pbroadcast": Rule("collective_broadcast", _broadcast),
}
# What only changes a type: what varies, how the compiler lays something out.
CASTS = {"pvary", "pcast", "preduced", "mesh_cast"}
CASTS |= {name + ending for name in ("reduced_vary_cast", "vary_unreduced_cast") for ending in ("", "_p")}
# What changes a sharding, and with it what is a partial sum.
RESHARDS = {"reshard", "sharding_constraint", "device_put"}


def axes_along(params: Params) -> tuple[str, ...]:
    """The mesh axes that a collective runs over."""
    axes = params["axes"] if "axes" in params else params["axis_name"]
    return tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)


def groups_along(mesh: Mapping[str, int], axes: Sequence[str], within: Any = None) -> list[tuple[int, ...]]:
    """Devices that take part together: along these axes, or `within` lists of places along them."""
    groups = device_numbers_along(axes, mesh)
    parts = within or [range(groups.shape[1])]
    return [tuple(group[list(part)].tolist()) for group in groups for part in parts]


def on_numbers(work: Callable[[list[np.ndarray]], Any], blocks: Sequence[Any]) -> Any:
    """Parts of random keys are worked on as the numbers that they are made of."""
    if not is_key(blocks[0]):
        return work([np.asarray(block) for block in blocks])
    kind = jax.random.key_impl(blocks[0])
    after = work([np.asarray(jax.random.key_data(block)) for block in blocks])
    wrap = lambda block: jax.random.wrap_key_data(block, impl=kind)  # noqa: E731
    return [wrap(block) for block in after] if isinstance(after, list) else wrap(after)


def is_key(value: Any) -> bool:
    return jax.dtypes.issubdtype(getattr(value, "dtype", np.float32), jax.dtypes.prng_key)
