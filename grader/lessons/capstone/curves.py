"""§ 6: forty steps, each in the memory of the one before, by one program: the curve of one device."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from grader.arrays.described import OnDevices, OnMesh
from grader.exercises import Case, FunctionExercise
from grader.jax_versions import quick_options
from grader.lessons.capstone.drawn import AXIS_NAMES, roundings
from grader.lessons.capstone.model import one_step
from grader.lessons.capstone.sharded import STATE
from grader.lessons.capstone.steps import MICRO, MICROBATCHES
from grader.transformer.model import init_params
from grader.transformer.text import alphabet, batch_at, examples, zen
from grader.transformer.training import init_state

STEPS, ROWS_A_STEP, SHORT = 40, 8, 24  # of the lines only so many letters, to be quick
SHAPES = (4, 2), (2, 4)  # one of them: to compile a step takes seconds
SIZES_HERE = {"layers": 1, "vocabulary": 48, "width": 32, "heads": 8, "kv_heads": 4, "head": 4, "hidden": 48}


@functools.cache
def _on_one():
    """One step on one device, compiled quickly: all cases have the same shapes."""
    return jax.jit(one_step, compiler_options=quick_options())


@functools.cache
def _first_params():
    """The parameters that a run begins with, drawn by one program: one for each shape takes seconds to compile."""
    return jax.jit(functools.partial(init_params, sizes=SIZES_HERE), compiler_options=quick_options())


def _values(tree: Any) -> Any:
    """The values of what is described."""
    return jax.tree.map(lambda leaf: leaf.value, tree, is_leaf=lambda leaf: isinstance(leaf, OnDevices))


def _due(state, batches, mesh):
    """What is due: one device takes what is on eight from there."""
    return _told(_losses(state, batches))


def _losses(state, batches, carried=True):
    """The loss of every batch on one device; where nothing is carried, each by the first parameters."""
    state, batches = jax.tree.map(np.asarray, (state, batches))
    losses = []
    for batch in batches:
        new, value = _on_one()(state, *batch)
        state = new if carried else state
        losses.append(float(value))
    return np.array(losses)


def _told(losses, programs=1, left=0):
    return {"losses": losses, "programs": programs, "arrays left": left}


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
        right, moved_a_little = (_losses(_values(one), _values(batches)) for one in (state, nudged))
        apart = abs(moved_a_little - right)
        least = np.finfo(np.float32).eps * right.max()
        many = math.sqrt(roundings(SIZES_HERE, passes=3 * MICRO))
        _BOUNDS[id(state)] = state, many * np.maximum.accumulate(np.maximum(apart, least))
    return _BOUNDS[id(state)][1]


def _alike(one, other, state, batches, mesh):
    """The same fault in the counts, or none; and curves that are no further apart than rounding explains."""
    if one.keys() != other.keys():
        return False
    for name, due in (("programs", 1), ("arrays left", 0)):  # how many too many is the same mistake
        if name in other and (one[name] == due) != (other[name] == due):
            return False
    if "losses" not in other:
        return True
    mine, due = (np.asarray(value["losses"]) for value in (one, other))
    return mine.shape == due.shape and bool((abs(mine - due) <= rounding_bound(state, batches)).all())


curve = FunctionExercise(
    "curve", points=6, reference=_due, same=_alike, after="step", taught_in=("12_data_parallel", "20_sharp_bits")
)


@curve.cases
def _(draw):
    lines = zen()
    letters = alphabet(lines)
    pair = tuple(array[:, :SHORT] for array in examples(lines, letters))
    seed, shape = int(draw.rng.integers(2**31)), SHAPES[draw.rng.integers(len(SHAPES))]
    return Case(_run_drawn(seed, OnMesh(dict(zip(AXIS_NAMES, shape, strict=True))), pair))


def _run_drawn(seed, mesh, pair):
    """A state that begins and the batches of all steps, on this mesh."""
    state = jax.tree.map(np.asarray, init_state(_first_params()(jax.random.key(seed))))
    drawn = [batch_at(k, seed, ROWS_A_STEP, MICRO, pair) for k in range(STEPS)]
    return {
        "state": jax.tree.map(lambda value, spec: OnDevices(value, mesh, spec), state, STATE),
        "batches": [tuple(OnDevices(array, mesh, MICROBATCHES) for array in batch) for batch in drawn],
        "mesh": mesh,
    }


@curve.mistake
def both_states_kept(state, batches, mesh):
    """The curve is right, and the state that you were given still exists beside the new one: twice the memory, for
    arrays that nobody needs any more. Which argument of the step may be written over?"""
    return _told(_losses(state, batches), left=len(jax.tree.leaves(state)))


@curve.mistake
def compiled_anew_at_step_two(state, batches, mesh):
    """The curve is right, but it was not one program that was compiled in the block. If it was none: was it compiled
    before? If it was more: either the new state is laid out otherwise than the first one was, so that the second step
    met arguments of another layout; or the step was jitted anew in every turn. On a large model each compilation takes
    minutes. How do you say where results are to be, and where does `jit` stand?"""
    return _told(_losses(state, batches), programs=2)


@curve.mistake
def kept_and_compiled_anew(state, batches, mesh):
    """The curve is right, but it was not one program that was compiled, and arrays of the first state are left. Was
    the first step given that very state, and does a new state come out laid out as the old one, so that it can take its
    memory, and the next step finds its program?"""
    return _told(_losses(state, batches), programs=2, left=1)


@curve.mistake
def state_given_away_and_used_again(state, batches, mesh):
    """The state was given away in the first step, and the second step was asked with it again: its arrays are deleted,
    only their names are left. Under which name does the *new* state enter the next step?"""
    leaf = jax.tree.leaves(state)[0]
    raise RuntimeError(f"Array has been deleted with shape={leaf.dtype}[{','.join(map(str, leaf.shape))}].")


@curve.mistake
def first_state_again_and_again(state, batches, mesh):
    """Every loss is that of the first parameters. What does a step hand to the next?"""
    return _told(_losses(state, batches, carried=False), left=len(jax.tree.leaves(state)))


@curve.mistake
def one_batch_for_all_steps(state, batches, mesh):
    """Every step was made with the first batch. That curve falls quickly, and is another. Each step has its own
    batch."""
    return _told(_losses(state, [batches[0]] * len(batches)))


@curve.mistake
def counts_not_there(state, batches, mesh):
    """The losses are right, and the counts are not among what comes back. `counts` has them only when the `with` block
    has ended. Where does your function take them from it, and where does it return?"""
    return {"losses": _losses(state, batches)}


@curve.mistake
def counts_in_a_dict_of_their_own(state, batches, mesh):
    """The losses are right, and `counts` is an entry of your dict. Its two counts are to be entries beside the losses.
    How does one dict take in all of another?"""
    told = _told(_losses(state, batches))
    return {"losses": told.pop("losses"), "told": told}


@curve.mistake
def last_loss_only(state, batches, mesh):
    """That is one number. A curve has a loss for each step: keep them."""
    return _told(_losses(state, batches)[-1:])
