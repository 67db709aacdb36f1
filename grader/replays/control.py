"""What a program is made of besides operations: calls, loops, branches, and shard_map itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import spelled
from grader.jax_versions import argument_names, definition, is_backward, newly_manual, open_jaxpr, scan_parts
from grader.programs.jaxprs import equations, inner_jaxprs
from grader.replays.collectives import RULES, on_numbers
from grader.replays.frames import Scope
from grader.replays.scenes import Interpreter, Scene, Values
from grader.replays.scribe import MOST, held, written_at
from grader.replays.shards import global_array, local_shards, spec_of
from grader.replays.sources import parameters_at


def called(eqn: Any) -> Any:
    """The one function that an operation calls with all that it is given, if it does nothing else."""
    inner = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
    return inner if inner is not None and len(open_jaxpr(inner).invars) == len(eqn.invars) else None


def is_folded(eqn: Any) -> bool:
    """Whether an operation is shown as one line: nothing is sent inside, and it was written on one line, or by JAX."""
    if not inner_jaxprs(eqn) or _sends(eqn):
        return False
    return eqn.primitive.name in ("jit", "pjit", "custom_jvp_call") or {*map(_line, _within(eqn))} <= {_line(eqn)}


def is_alone(eqn: Any) -> bool:
    """Whether an operation is made of nothing but what a device does alone, without turns, branches or partial sums."""
    every = [eqn, *_within(eqn)]
    if any(one.primitive.name in {*RULES, *CONTROL, "axis_index"} for one in every):
        return False
    return not any(_is_unreduced(var) for one in every for var in (*one.invars, *one.outvars))


def unreduced_meshes(jaxpr: Any) -> Iterator[Mapping[str, int]]:
    """The meshes over which a program has unreduced arrays, outside of shard_map."""
    inner = open_jaxpr(jaxpr)
    made: list[Any] = [var for eqn in inner.eqns for var in eqn.outvars]
    yield from (var.aval.sharding.mesh.shape for var in filter(_is_unreduced, [*inner.invars, *made]))
    for eqn in inner.eqns:
        if eqn.primitive.name != "shard_map":
            for one in inner_jaxprs(eqn):
                yield from unreduced_meshes(one)


def _is_unreduced(var: Any) -> bool:
    return bool(spec_of(var).unreduced)


def _within(eqn: Any) -> Iterator[Any]:
    """The operations of the traced functions among an operation's parameters, at any depth."""
    return (one for inner in inner_jaxprs(eqn) for one, _ in equations(inner))


def _sends(eqn: Any) -> bool:
    return any(one.primitive.name in {*RULES, "shard_map"} for one in (eqn, *_within(eqn)))


def _line(eqn: Any) -> Any:
    stack = written_at(eqn)
    return (stack[0].file, stack[0].first) if stack else None


def scan(run: Interpreter, eqn: Any, values: list[Values], scene: Scene) -> list[Values]:
    """A loop of so many turns, each with its slice of some arrays."""
    inner, turns = eqn.params["jaxpr"], eqn.params["length"]
    constants, carried = scan_parts(eqn.params)
    fixed, carry, sliced = values[:constants], values[constants : constants + carried], values[constants + carried :]
    rows: dict[int, list[Values]] = {}
    order = reversed(range(turns)) if eqn.params["reverse"] else range(turns)
    for number, turn in enumerate(order):
        inside = scene.inside(run.here(scene), Scope("turn", number + 1, turns))
        slices = [[None if x is None else x[turn] for x in xs] for xs in sliced]
        after = run.run(inner, [*fixed, *carry, *slices], inside)
        carry, rows[turn] = after[:carried], after[carried:]
    kept = range(len(eqn.outvars) - carried)
    here = run.here(scene)
    return [*carry, *(_stacked(eqn.outvars[carried + k].aval, rows, k, scene, here) for k in kept)]


def _stacked(aval: Any, rows: Mapping[int, list[Values]], k: int, scene: Scene, here: Sequence[int]) -> Values:
    stacked = scene.everywhere(None)
    for device in here:
        parts = [rows[turn][k][device] for turn in sorted(rows)]
        stacked[device] = on_numbers(np.stack, parts) if parts else np.zeros(aval.shape, aval.dtype)
    return stacked


def while_loop(run: Interpreter, eqn: Any, values: list[Values], scene: Scene) -> list[Values]:
    """A loop whose length each device finds out for itself."""
    p = eqn.params
    tested, done = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    test, fixed, carry = values[:tested], values[tested:done], values[done:]
    here, number = run.here(scene), 0
    while here:
        inside = scene.inside(here, Scope("turn", number := number + 1))
        (goes_on,) = run.run(p["cond_jaxpr"], [*test, *carry], replace(inside, recorded=False))
        here = tuple(device for device in run.here(inside) if goes_on[device])
        if here:
            after = run.run(p["body_jaxpr"], [*fixed, *carry], replace(inside, here=here))
            carry = [_merged(before, then, here) for before, then in zip(carry, after, strict=True)]
    return carry


def branch(run: Interpreter, eqn: Any, values: list[Values], scene: Scene) -> list[Values]:
    """A branch: devices that choose alike go together."""
    chosen, *operands = values
    branches = eqn.params["branches"]
    ways: dict[int, list[int]] = {}
    for device in run.here(scene):
        ways.setdefault(min(max(int(chosen[device]), 0), len(branches) - 1), []).append(device)
    after = [scene.everywhere(None) for _ in eqn.outvars]
    for way, devices in sorted(ways.items()):
        results = run.run(branches[way], operands, scene.inside(devices, Scope("branch", way)))
        after = [_merged(before, then, devices) for before, then in zip(after, results, strict=True)]
    return after


def _merged(before: Values, then: Values, devices: Sequence[int]) -> Values:
    return [then[device] if device in devices else value for device, value in enumerate(before)]


def shard_map(run: Interpreter, eqn: Any, values: list[Values], scene: Scene) -> list[Values]:
    """Every device gets its blocks, does its part, and its results are put together."""
    p = eqn.params
    mesh, axes = dict(p["mesh"].shape), newly_manual(p) - scene.manual
    comes_in = [*mesh.items()] != [*scene.mesh.items()]
    inside = Scene(mesh, scene.manual | axes, (), (), scene.backward or is_backward(eqn), True)
    inside = replace(inside, here=tuple(range(inside.devices)) if comes_in else scene.here, scopes=scene.scopes)
    whole = [inside.everywhere(x[0]) if comes_in else x for x in values]
    parts = [local_shards(x, spec, inside) for x, spec in zip(whole, p["in_specs"], strict=True)]
    _arrive(run, eqn, parts, inside)
    after = run.run(p["jaxpr"], parts, inside)
    run.leave()
    run.note(inside, written_at(eqn), f"results go out by {_listed(p['out_specs'])}", [held("", x) for x in after])
    results = [
        global_array(x, spec, var.aval.shape, inside, axes - spec.unreduced)
        for x, spec, var in zip(after, p["out_specs"], eqn.outvars, strict=True)
    ]
    return [scene.everywhere(x[0]) for x in results] if comes_in else results


def _arrive(run: Interpreter, eqn: Any, parts: Sequence[Values], scene: Scene) -> None:
    """Say what every device is given."""
    inner = open_jaxpr(eqn.params["jaxpr"])
    where = definition(inner)
    known = argument_names(inner) or (parameters_at(where) if where else ())
    on_the_way_there = len(known) == len(parts) and not scene.backward  # on the way back cotangents come in
    names = known if on_the_way_there else [""] * len(parts)
    arrays = [held(name, blocks) for name, blocks in zip(names, parts, strict=True)]
    stack = (where, *written_at(eqn)) if where else written_at(eqn)
    run.note(scene, stack, f"arguments come in by {_listed(eqn.params['in_specs'])}", arrays)


def _listed(specs: Sequence[P]) -> str:
    return ", ".join([*map(spelled, specs[:MOST]), *["…"] * (len(specs) > MOST)])


CONTROL: Mapping[str, Callable[[Interpreter, Any, list[Values], Scene], list[Values]]] = {
    "scan": scan,
    "while": while_loop,
    "cond": branch,
    "shard_map": shard_map,
}
