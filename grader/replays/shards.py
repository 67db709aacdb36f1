"""Global arrays and their local shards. Along an unreduced axis, every device has its own partial sum."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import axes_of, blocks, blocks_of
from grader.jax_versions import entries_of
from grader.replays.collectives import RESHARDS, Parts, groups_along, is_key, neutral, on_numbers, reduce_blocks
from grader.replays.scenes import Scene, Values


def axes_in(spec: P) -> list[str]:
    """The mesh axes over which a spec shards."""
    return [axis for entry in entries_of(spec) for axis in axes_of(entry)]


def local_shards(whole: Values, spec: P, scene: Scene) -> Values:
    """The block of each device."""
    here = [device for device in scene.here if whole[device] is not None]
    indices = blocks(np.shape(whole[here[0]]), spec, scene.mesh).indices
    known: dict[Any, Any] = {}  # replicas stay one object
    for device in here:
        key = (id(whole[device]), str(indices[device]))
        known.setdefault(key, whole[device][indices[device]] if axes_in(spec) else whole[device])
    return [known[id(x), str(indices[device])] if device in here else None for device, x in enumerate(whole)]


def global_array(
    parts: Values, spec: P, shape: Sequence[int], scene: Scene, axes: Collection[str], fill: np.ufunc = np.add
) -> Values:
    """The global array that devices along these axes hold together; where replicas differ, the first device's.

    What none of them holds is filled with the neutral element of this reduction.
    """
    indices = blocks(tuple(shape), spec, scene.mesh).indices
    after: Values = [None] * len(parts)
    for group in _groups(scene, axes):
        assembled = functools.partial(_assembled, [indices[device] for device in group], shape, fill)
        whole = on_numbers(assembled, [parts[device] for device in group])
        for device in group:
            after[device] = whole
    return after


def _groups(scene: Scene, axes: Collection[str]) -> list[tuple[int, ...]]:
    return groups_along(scene.mesh, [axis for axis in scene.mesh if axis in axes])


def _assembled(indices: Sequence[Any], shape: Sequence[int], fill: np.ufunc, parts: Parts) -> np.ndarray:
    dtype = parts[0].dtype
    whole = np.full((*shape, *parts[0].shape[len(shape) :]), neutral(fill, dtype), dtype)
    for part, index in reversed(list(zip(parts, indices, strict=True))):
        whole[index] = part
    return whole


# Unreduced arrays, outside of shard_map.


def spec_of(var: Any) -> P:
    """The spec in the type of an array; without explicit axes it names none."""
    return getattr(getattr(var.aval, "sharding", None), "spec", P())


def operation_of(spec: P) -> np.ufunc:
    """The reduction that an unreduced array still needs: a sum, or since JAX 0.11 also a maximum or minimum."""
    kind = getattr(getattr(spec, "unreduced_kind", None), "name", "sum")
    return {"sum": np.add, "max": np.fmax, "min": np.fmin}[kind]


def given(leaf: Any, var: Any, scene: Scene) -> Values:
    """An argument as every device has it: the global array, or a partial sum of it."""
    spec = getattr(getattr(leaf, "sharding", None), "spec", P())
    if spec.unreduced:
        parts = list(blocks_of(leaf).values or ())
        return global_array(parts, spec, leaf.shape, scene, scene.mesh.keys() - spec.unreduced)
    return scene.everywhere(leaf if is_key(leaf) else np.asarray(leaf, var.aval.dtype))


def result(value: Values, var: Any, scene: Scene) -> Any:
    """A result as one array: of partial sums, the sum."""
    return _reduced(value, spec_of(var), spec_of(var).unreduced, scene)[0]


def partial_operands(eqn: Any, values: list[Values], scene: Scene) -> list[Values]:
    """The operands of an operation, as each device needs them for its own partial sum."""
    after = [spec_of(var) for var in eqn.outvars]
    if eqn.primitive.name in RESHARDS:
        return [_resharded(x, spec_of(var), to, scene) for x, var, to in zip(values, eqn.invars, after, strict=True)]
    target = next((spec for spec in after if spec.unreduced), P())
    return [
        _partial(x, spec_of(var), target, axes_in(spec_of(var)), scene)
        for x, var in zip(values, eqn.invars, strict=True)
    ]


def _resharded(x: Values, spec: P, target: P, scene: Scene) -> Values:
    """Resharded as XLA does it. Where the target drops a dimension's last axes, every device keeps its own block.

    Along other axes that become unreduced, the first device keeps the array, and the others have zeros.
    """
    entries = itertools.zip_longest(*(map(axes_of, entries_of(one)) for one in (spec, target)), fillvalue=())
    lost = [before[len(after) :] for before, after in entries if before[: len(after)] == after]
    own = {axis for axes in lost if target.unreduced.issuperset(axes) for axis in axes}
    x = _partial(x, spec, target, own, scene)
    if new := target.unreduced - spec.unreduced - scene.manual - own:
        nothing = on_numbers(lambda one: np.zeros_like(one[0]), [x[scene.here[0]]])
        first = {group[0] for group in _groups(scene, new)}
        return [block if device in first else nothing for device, block in enumerate(x)]
    return x


def _partial(x: Values, spec: P, target: P, own: Collection[str], scene: Scene) -> Values:
    """Summed along axes that are no longer unreduced. Along `own` axes that are, a device's own block, and zeros."""
    after = target.unreduced - scene.manual
    x = _reduced(x, spec, spec.unreduced - scene.manual - after, scene)
    if kept := after.intersection(own):
        shape = np.shape(x[scene.here[0]])
        alike = scene.mesh.keys() - kept - spec.unreduced - scene.manual
        return global_array(local_shards(x, spec, scene), spec, shape, scene, alike, operation_of(target))
    return x


def _reduced(x: Values, spec: P, axes: Collection[str], scene: Scene) -> Values:
    """What devices along these axes hold, reduced."""
    if not axes:
        return x
    after, known = scene.everywhere(None), dict[Any, Any]()
    for group in _groups(scene, axes):
        parts = [x[device] for device in group]
        alike = tuple(map(id, parts))
        if alike not in known:
            known[alike] = on_numbers(functools.partial(reduce_blocks, operation_of(spec)), parts)
        for device in group:
            after[device] = known[alike]
    return after
