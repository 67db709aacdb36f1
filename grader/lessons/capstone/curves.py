"""§ 6: forty steps, each in the memory of the one before, by one program: the curve of one device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.described import OnDevices, OnMesh
from grader.exercises import Case, Exercise
from grader.lessons.capstone.drawn import AXIS_NAMES, roundings
from grader.lessons.capstone.model import NORMS, initial, one_step, started
from grader.lessons.capstone.sharded import STATE, local_step
from grader.lessons.capstone.steps import MICRO, MICROBATCHES
from grader.lessons.capstone.text import alphabet, batch_at, examples, zen
from grader.programs.compilations import compilations

STEPS, ROWS_A_STEP, SHORT = 40, 8, 24  # of the lines only so many letters, to be quick
ON_ONE = jax.jit(one_step)
SIZES_HERE = {"layers": 1, "vocabulary": 48, "width": 32, "head": 4, "hidden": 48}


def _losses_on_one(state, batches) -> np.ndarray:
    """The curve of one device, for descriptions of what lies on eight."""
    values = lambda tree: jax.tree.map(lambda a: a.value, tree, is_leaf=_is_described)  # noqa: E731
    state, losses = values(state), []
    for batch in batches:
        state, value = ON_ONE(state, *values(batch))
        losses.append(float(value))
    return np.array(losses)


def _is_described(leaf: Any) -> bool:
    return isinstance(leaf, OnDevices)


def _due(state, batches, mesh):
    """What is due. (What it is given lies on devices; one device takes it from there.)"""
    here = jax.tree.map(np.asarray, (state, batches))
    state, losses = here[0], []
    for batch in here[1]:
        state, value = ON_ONE(state, *batch)
        losses.append(float(value))
    return {"losses": np.array(losses), "programs": 1, "arrays left": 0}


_BOUNDS: dict[int, tuple[Any, np.ndarray]] = {}


def rounding_bound(state: Mapping[str, Any], batches: list[Any]) -> np.ndarray:
    """How far every loss may be from one device's, for the descriptions that a case is made of.

    The same run on one device, with every parameter moved by one rounding at the start, up or down: so far it comes
    from itself by its own sensitivity. A step of training makes as many roundings as `roundings` says, and k roundings
    of either sign come to about √k of them. The bound never falls from one step to the next.
    """
    if id(state) not in _BOUNDS:
        signs = np.random.default_rng(0)

        def moved(leaf):
            ups = signs.choice([-1, 1], size=leaf.value.shape)
            return OnDevices((leaf.value * (1 + ups * np.finfo(np.float32).eps)).astype(np.float32))

        nudged = {**state, "params": {name: moved(leaf) for name, leaf in state["params"].items()}}
        apart = abs(_losses_on_one(nudged, batches) - (right := _losses_on_one(state, batches)))
        least = np.finfo(np.float32).eps * right.max()
        many = math.sqrt(roundings({**SIZES_HERE, "heads": 8, "kv_heads": 4}, passes=3 * MICRO))
        _BOUNDS[id(state)] = state, many * np.maximum.accumulate(np.maximum(apart, least))
    return _BOUNDS[id(state)][1]


def _alike(one, other, state, batches, mesh):
    """The same counts, and curves that are no further apart than rounding explains."""
    if one.keys() != other.keys() or any(one[name] != other[name] for name in other if name != "losses"):
        return False
    losses = [np.asarray(value["losses"]) for value in (one, other) if "losses" in value]
    if not losses:
        return True
    return losses[0].shape == losses[1].shape and (abs(losses[0] - losses[1]) <= rounding_bound(state, batches)).all()


curve = Exercise("curve", points=6, form="function", reference=_due, same=_alike)


@curve.cases
def _(draw):
    lines = zen()
    letters = alphabet(lines)
    pair = tuple(array[:, :SHORT] for array in examples(lines, letters))
    for shape in ((4, 2), (2, 4)):
        seed = int(draw.rng.integers(2**31))
        yield Case(_run_drawn(seed, OnMesh(dict(zip(AXIS_NAMES, shape, strict=True))), pair))


def _run_drawn(seed, mesh, pair):
    """A state that begins and the batches of all steps, on this mesh."""
    sizes = {**SIZES_HERE, "heads": 2 * mesh.sizes["model"], "kv_heads": mesh.sizes["model"]}
    state = jax.tree.map(np.asarray, started(initial(jax.random.key(seed), sizes)))
    drawn = [batch_at(k, seed, ROWS_A_STEP, MICRO, pair) for k in range(STEPS)]
    return {
        "state": jax.tree.map(lambda value, spec: OnDevices(value, mesh, spec), state, STATE),
        "batches": [tuple(OnDevices(array, mesh, MICROBATCHES) for array in batch) for batch in drawn],
        "mesh": mesh,
    }


def _compiled(function, **options):
    """`jax.jit` that asks first whether its arguments still exist. (JAX 0.12 asks by itself. With eight simulated
    devices and a call that was compiled before, JAX 0.10 ends with a segmentation fault.)"""
    jitted = jax.jit(function, **options)

    def call(*arguments):
        for leaf in jax.tree.leaves(arguments):
            if leaf.is_deleted():
                raise RuntimeError(f"Array has been deleted with shape={leaf.dtype}[{','.join(map(str, leaf.shape))}].")
        return jitted(*arguments)

    return call


def _trained(state, batches, mesh, *, carried=True, chosen=lambda k: k, out=STATE, **options):
    """The curve by eight devices; the step that is compiled has these options."""
    ins = STATE, MICROBATCHES, MICROBATCHES
    step = jax.shard_map(local_step, mesh=mesh, in_specs=ins, out_specs=(STATE, P()))
    lies = jax.tree.map(lambda spec: NamedSharding(mesh, spec), (out, P()))
    run = _compiled(step, out_shardings=lies, **options)
    given, losses = jax.tree.leaves(state), []
    with compilations() as made:
        for k in range(len(batches)):
            new, value = run(state, *batches[chosen(k)])
            state = new if carried else state
            losses.append(float(value))
    left = sum(not leaf.is_deleted() for leaf in given)
    return {"losses": np.array(losses), "programs": len(made), "arrays left": left}


@curve.mistake
def both_states_kept(state, batches, mesh):
    """The curve is right, and the state that you were given still exists beside the new one: twice the memory, for
    arrays that nobody needs any more. Which argument of the step may be written over?"""
    return _trained(state, batches, mesh)


@curve.mistake
def compiled_anew_at_step_two(state, batches, mesh):
    """The curve is right, but more than one program was compiled. The new state lies otherwise than the first one did,
    so the second step met arguments of another layout: a second compilation, minutes of it on a large model, and no
    memory that could be used again. How do you say where results are to lie?"""
    norms = {**STATE["params"], **{name: P(None) for name in NORMS}, "embedding": P("model")}
    return _trained(state, batches, mesh, out={**STATE, "params": norms}, donate_argnums=0)


@curve.mistake
def state_given_away_and_used_again(state, batches, mesh):
    """The state was given away in the first step, and the second step was asked with it again: its arrays are deleted,
    only their names are left. Under which name does the *new* state enter the next step?"""
    return _trained(state, batches, mesh, carried=False, donate_argnums=0)


@curve.mistake
def first_state_again_and_again(state, batches, mesh):
    """Every loss is that of the first parameters: the new state was never used. What does a step hand to the next?"""
    return _trained(state, batches, mesh, carried=False)


@curve.mistake
def one_batch_for_all_steps(state, batches, mesh):
    """Every step was made with the first batch. That curve falls quickly, and is another. Each step has its own
    batch."""
    return _trained(state, batches, mesh, chosen=lambda k: 0, donate_argnums=0)


@curve.mistake
def last_loss_only(state, batches, mesh):
    """That is one number. A curve has a loss for each step: keep them."""
    right = _trained(state, batches, mesh, donate_argnums=0)
    return {**right, "losses": right["losses"][-1:]}
