"""An interpreter of a traced program on all devices at once: every value is a list with an entry for each device.

A device that waits in a collective for others is left where it stands, and the others go on; so nothing ever hangs.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np
from jax.extend import core

from grader.arrays.words import numbered
from grader.jax_versions import Spot, is_backward, open_jaxpr, permuted_axes, quick_options
from grader.programs.collectives import ring_bytes
from grader.programs.in_numpy import in_numpy
from grader.replays.collectives import (
    CASTS,
    RESHARDS,
    RULES,
    Rule,
    axes_along,
    groups_along,
    is_key,
    on_numbers,
)
from grader.replays.control import CONTROL, called, is_alone, is_folded
from grader.replays.frames import Held, Transfer, Wait
from grader.replays.scenes import Halt, Scene, Values
from grader.replays.scribe import Scribe, held, written_at
from grader.replays.shards import partial_operands

MOST_SECONDS = 600


@dataclass(frozen=True)
class Reach:
    """How far a program is watched."""

    frames: int = 400
    entries: int = 1 << 22  # of one array, on all devices together
    seconds: float = 30.0


@dataclass
class Lockstep:
    """One run of a program: what was written down so far, and who waits for whom."""

    reach: Reach
    scribe: Scribe = field(default_factory=Scribe)
    waits: dict[int, Wait] = field(default_factory=dict)
    compiled: dict[Any, Callable[..., list[Any]]] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def here(self, scene: Scene) -> tuple[int, ...]:
        return tuple(device for device in scene.here if device not in self.waits)

    def note(self, scene: Scene, stack: tuple[Spot, ...], note: str, arrays: Sequence[Held]) -> None:
        self.scribe.note(scene, stack, note, arrays)

    def leave(self) -> None:
        if self.waits:
            raise Halt(stuck(list(self.waits.values())))

    def run(self, jaxpr: Any, values: Sequence[Values], scene: Scene) -> list[Values]:
        inner = open_jaxpr(jaxpr)
        constants = [scene.everywhere(constant) for constant in getattr(jaxpr, "consts", ())]
        known = dict(zip([*inner.constvars, *inner.invars], [*constants, *values], strict=True))
        read = lambda v: scene.everywhere(v.val) if isinstance(v, core.Literal) else known[v]  # noqa: E731
        for eqn in inner.eqns:
            known.update(zip(eqn.outvars, self._tried(eqn, [read(v) for v in eqn.invars], scene), strict=True))
        return [read(v) for v in inner.outvars]

    def _tried(self, eqn: Any, values: list[Values], scene: Scene) -> list[Values]:
        """A step; what cannot be worked out here ends the replay, with what was seen until then."""
        try:
            return self._step(eqn, values, scene)
        except Halt:
            raise
        except Exception as error:
            where = f" in line {stack[0].first}" if (stack := written_at(eqn)) else ""
            raise Halt(
                f"Stopped before {eqn.primitive.name}{where}: `grader.replay` can't carry out this operation."
            ) from error

    def _step(self, eqn: Any, values: list[Values], scene: Scene) -> list[Values]:
        if not (here := self.here(scene)) or eqn.primitive.name.startswith("debug_"):
            return [scene.everywhere(None) for _ in eqn.outvars]
        self._check(eqn, scene)
        scene = replace(scene, backward=scene.backward or is_backward(eqn))
        if (rule := RULES.get(eqn.primitive.name)) is not None:
            return self._sent(rule, eqn, values, scene, here)
        folded = scene.recorded and is_folded(eqn)
        after = self._done(eqn, values, replace(scene, recorded=False) if folded else scene, here)
        if after and self.here(scene) and eqn.primitive.name not in {*CASTS, *RESHARDS, "shard_map"}:
            self.scribe.line(eqn, scene, self.here(scene), after)
        return after

    def _done(self, eqn: Any, values: list[Values], scene: Scene, here: Sequence[int]) -> list[Values]:
        """What an operation gives that sends nothing by itself."""
        name = eqn.primitive.name
        if name in CASTS:
            return values
        if name in CONTROL:
            return CONTROL[name](self, eqn, values, scene)
        if name == "axis_index":
            return [_places(eqn, scene)]
        if (inner := called(eqn)) is not None and (scene.recorded or not is_alone(eqn)):
            return self.run(inner, values, scene)
        operands = partial_operands(eqn, values, scene)
        return operands if name in RESHARDS else _alone(self._work(eqn, scene), operands, scene, here, len(eqn.outvars))

    def _work(self, eqn: Any, scene: Scene) -> Callable[..., list[Any]]:
        """What a device does alone, compiled quickly; where that is many operations, they are compiled as one."""
        inner, alone = called(eqn), functools.partial(_bound, eqn)
        if scene.traced and inner is None and not eqn.primitive.name.startswith("random_"):
            return alone
        if (known := (eqn, scene.traced)) not in self.compiled:
            one = Scene(traced=True)
            whole = lambda *operands: [v for (v,) in self.run(inner, [[x] for x in operands], one)]  # noqa: E731
            if inner is None and not scene.traced:
                self.compiled[known] = _quickly(eqn)
            else:
                options = None if scene.traced else quick_options()  # which JAX takes for the outermost alone
                self.compiled[known] = jax.jit(alone if inner is None else whole, compiler_options=options)
        compiled = self.compiled[known]
        return compiled if scene.traced or inner is not None else functools.partial(_soonest, eqn, compiled)

    def _sent(self, rule: Rule, eqn: Any, values: list[Values], scene: Scene, here: Sequence[int]) -> list[Values]:
        """A collective: every group that is complete does its part, and the devices of the others wait."""
        axes, name = axes_along(eqn.params), spelled_name(eqn)
        named = permuted_axes(axes, scene.mesh) if rule.permutes else axes
        if named is None:
            raise Halt(f"This JAX refuses {name} over {', '.join(axes)}: name the axes in the mesh's order.")
        groups = groups_along(scene.mesh, named, eqn.params.get("axis_index_groups"))
        complete = [group for group in groups if set(group) <= set(here)]
        after = [scene.everywhere(None) for _ in eqn.outvars]
        for group in complete:
            for k, blocks in enumerate(_across(rule, [[v[d] for d in group] for v in values], eqn.params)):
                for device, block in zip(group, blocks, strict=True):
                    after[k][device] = block
        if complete:
            facts = _transfer(rule, name, axes, complete, values, eqn.params)
            self.scribe.line(eqn, scene, sum(complete, ()), after, transfer=facts)
        self._wait(eqn, values, scene, here, [group for group in groups if group not in complete])
        return after

    def _wait(self, eqn: Any, values: list[Values], scene: Scene, here: Sequence[int], groups: Any) -> None:
        axes, name = axes_along(eqn.params), spelled_name(eqn)
        place = next(iter(written_at(eqn)), None)
        waits = [
            Wait(device, name, axes, place, tuple(d for d in group if d not in here))
            for group in groups
            for device in group
            if device in here
        ]
        if waits:
            self.scribe.line(eqn, scene, here, values, waits=tuple(waits))
            self.waits |= {wait.device: wait for wait in waits}

    def _check(self, eqn: Any, scene: Scene) -> None:
        if len(self.scribe.frames) >= self.reach.frames:
            raise Halt(
                f"Stopped after {self.reach.frames} lines. Use fewer iterations, or raise `max_lines` of "
                "`grader.replay`."
            )
        if time.monotonic() - self.began > self.reach.seconds:
            raise Halt(
                f"Stopped after {self.reach.seconds:g} s. Use fewer iterations or smaller arrays, or raise "
                f"`max_seconds` of `grader.replay` (up to {MOST_SECONDS})."
            )
        for var in eqn.outvars:
            if scene.devices * getattr(var.aval, "size", 1) > self.reach.entries:
                where = f" on {scene.devices} devices" if scene.devices > 1 else ""
                raise Halt(
                    f"Stopped before an array of shape {tuple(var.aval.shape)}{where}: that is more than "
                    f"{self.reach.entries:,} elements. Use smaller arrays, or raise `max_elements` of `grader.replay`."
                )


def _places(eqn: Any, scene: Scene) -> Values:
    """Each device's place along an axis."""
    places: Values = scene.everywhere(None)
    for group in groups_along(scene.mesh, axes_along(eqn.params)):
        for place, device in enumerate(group):
            places[device] = np.int32(place)
    return places


def _across(rule: Rule, operands: list[list[Any]], params: Any) -> list[list[Any]]:
    """What a group holds after a collective, for each of its results."""
    if rule.together:
        return [rule.after(list(zip(*operands, strict=True)), params)]
    return [on_numbers(lambda numbers: rule.after(numbers, params), blocks) for blocks in operands]


def _transfer(rule: Rule, name: str, axes: Any, groups: Any, values: list[Values], params: Any) -> Transfer:
    size, first = len(groups[0]), groups[0][0]
    moves = [(group[a], group[b]) for group in groups for a, b in rule.moves(params)]
    dimension = rule.joins(params)
    pieces = None if dimension is None else (dimension, {device: group for group in groups for device in group})
    blocks = [value[first] for value in (values[:1] if rule.together else values)]
    numbers = [np.asarray(jax.random.key_data(block) if is_key(block) else block) for block in blocks]
    total = sum(round(ring_bytes(rule.kind, block.nbytes, size)) for block in numbers)
    return Transfer(name, rule.kind, axes, tuple(groups), total, held("", values[0]), tuple(moves), pieces)


def _alone(work: Any, values: list[Values], scene: Scene, here: Sequence[int], results: int) -> list[Values]:
    """What each device does alone; where all they are given is one object, it is done once."""
    after = [scene.everywhere(None) for _ in range(results)]
    known: dict[tuple[int, ...], list[Any]] = {}
    for device in here:
        # As NumPy's: what was made inside shard_map has its mesh in its type, and is not computed with outside.
        operands = [_as_numbers(value[device]) for value in values]
        alike = tuple(id(value[device]) for value in values)
        if alike not in known:
            known[alike] = list(map(_as_numbers, work(*operands)))
        for k, result in enumerate(known[alike]):
            after[k][device] = result
    return after


def _soonest(eqn: Any, compiled: Callable[..., list[Any]], *operands: Any) -> list[Any]:
    return compiled(*operands) if (found := in_numpy(eqn, operands)) is None else [found]


def _as_numbers(value: Any) -> Any:
    return value if is_key(value) or isinstance(value, jax.core.Tracer) else np.asarray(value)


def _quickly(eqn: Any) -> Callable[..., list[Any]]:
    """An operation, compiled quickly, and for all operations of its kind once."""
    try:
        return _of_its_kind(eqn.primitive, tuple(_free_of_devices(eqn).items()))
    except TypeError:  # something in it cannot be looked up
        return jax.jit(functools.partial(_bound, eqn), compiler_options=quick_options())


@functools.lru_cache(maxsize=1024)
def _of_its_kind(primitive: Any, params: tuple[tuple[str, Any], ...]) -> Callable[..., list[Any]]:
    return jax.jit(functools.partial(_bind, primitive, dict(params)), compiler_options=quick_options())


def _bound(eqn: Any, *operands: Any) -> list[Any]:
    return _bind(eqn.primitive, _free_of_devices(eqn), *operands)


def _free_of_devices(eqn: Any) -> dict[str, Any]:
    return {k: None if isinstance(v, jax.sharding.Sharding) else v for k, v in eqn.params.items()}


def _bind(primitive: Any, params: dict[str, Any], *operands: Any) -> list[Any]:
    result = primitive.bind(*operands, **params)
    return result if primitive.multiple_results else [result]


def spelled_name(eqn: Any) -> str:
    """A collective as one writes it: JAX has several of a kind, by how their types vary."""
    name = eqn.primitive.name.removesuffix("_invariant").removesuffix("_reduced").removeprefix("unreduced_")
    return "psum_scatter" if name == "reduce_scatter" else name


def stuck(waits: list[Wait]) -> str:
    """Who stands where, and who never comes."""
    alike: dict[Any, list[int]] = {}
    for wait in waits:
        alike.setdefault((wait.name, wait.axes, wait.place, wait.missing), []).append(wait.device)
    lines = ["Nobody goes on. A collective waits for all devices along its axes:"]
    for (name, axes, place, missing), devices in alike.items():
        where = f" in line {place.first}" if place else ""
        stand = "stands" if len(devices) == 1 else "stand"
        come = "comes" if len(missing) == 1 else "come"
        lines.append(
            f"{numbered('Device', devices)} {stand} in {name} over {', '.join(axes)}{where}; "
            f"{numbered('device', missing)} never {come} there."
        )
    lines.append("Let every device reach the collective, and choose between its results.")
    return "\n".join(lines)
