"""§ 1: where everything is, from the names of its dimensions, and what that comes to on each device."""

from __future__ import annotations

import math

from jax.sharding import PartitionSpec as P

from grader.exercises import Case, FunctionExercise
from grader.lessons.capstone.sharded import RULES
from grader.lessons.shared import FLOAT
from grader.transformer.model import AXES

BYTES = "bytes on each device"


def _lying(axes, rules):
    """Every parameter's spec by these rules; one that no rule cuts over `model` stays whole."""
    specs = {name: P(*map(rules.get, dims)) for name, dims in axes.items()}
    return {name: spec if "model" in tuple(spec) else P() for name, spec in specs.items()}


def _held(specs, axes, lengths, mesh):
    """The bytes of all parameters on one device."""

    def share(name):
        parts = math.prod(mesh[axis] for axis in specs[name] if axis)
        return math.prod(lengths[dim] for dim in axes[name]) // parts

    return FLOAT * sum(map(share, axes))


def _told(specs, axes, lengths, mesh):
    return {**specs, BYTES: _held(specs, axes, lengths, mesh)}


def _specs(axes, lengths, mesh):
    return _told(_lying(axes, RULES), axes, lengths, mesh)


def _entries(value):
    """A spec without the None at its end, which says nothing; a number as it is."""
    if not isinstance(value, (list, tuple)):
        return value
    return tuple(value[: max((k + 1 for k, entry in enumerate(value) if entry), default=0)])


def _alike(one, other, **_):
    return one.keys() == other.keys() and all(_entries(one[name]) == _entries(other[name]) for name in other)


specs = FunctionExercise("specs", points=4, reference=_specs, same=_alike, taught_in=("02_shardings", "14_fsdp"))


@specs.cases
def _(draw):
    for data, model in ((4, 2), (2, 4), (2, 8)):
        width, hidden, vocabulary = (8 * int(k) for k in draw.rng.choice([2, 3, 4, 5, 6, 7], size=3, replace=False))
        lengths = {"layers": int(draw.rng.integers(2, 5)), "vocabulary": vocabulary, "width": width, "hidden": hidden}
        lengths |= {"heads": 16, "kv_heads": 8, "head": int(draw.rng.choice([8, 16]))}
        yield Case({"axes": AXES, "lengths": lengths, "mesh": {"data": data, "model": model}})


@specs.mistake
def cut_among_eight(axes, lengths, mesh):
    """The layouts are right. The bytes are those where every parameter that is cut is in eight parts. There are eight
    devices here, and not on every mesh: which sizes has `mesh`?"""
    specs = _lying(axes, RULES)
    count = {name: math.prod(lengths[dim] for dim in dims) for name, dims in axes.items()}
    return {**specs, BYTES: FLOAT * sum(count[name] // (8 if any(specs[name]) else 1) for name in axes)}


@specs.mistake
def norms_cut_as_well(axes, lengths, mesh):
    """The norm scales were cut over `data`, like all that has a width. It would train rightly, and is a poor bargain:
    they are a few numbers, and every one of them would need a collective of its own before its use. Only what is cut
    over `model` is cut over `data` as well here."""
    return _told({name: P(*map(RULES.get, dims)) for name, dims in axes.items()}, axes, lengths, mesh)


@specs.mistake
def cut_over_model_alone(axes, lengths, mesh):
    """This is tensor parallelism alone: every device along `data` holds the same, so the state shrinks with `model`
    only. FSDP cuts a second dimension of every matrix, over `data`. Which one do all matrices have?"""
    rules = {**RULES, "width": None}
    return _told(_lying(axes, rules), axes, lengths, mesh)


@specs.mistake
def width_over_both_axes(axes, lengths, mesh):
    """The width is cut over both axes and nothing else is: that is FSDP over all devices, and every device would have
    all heads, all hidden units and the whole vocabulary to compute with. Which dimensions can a device own, and work on
    alone?"""
    specs = {
        name: P() if name.endswith("norm") else P(*(("data", "model") if dim == "width" else None for dim in dims))
        for name, dims in axes.items()
    }
    parts = math.prod(mesh.values())
    count = {name: math.prod(lengths[dim] for dim in dims) for name, dims in axes.items()}
    held = sum(count[name] if name.endswith("norm") else count[name] // parts for name in axes)
    return {**specs, BYTES: FLOAT * held}


@specs.mistake
def axes_exchanged(axes, lengths, mesh):
    """`data` and `model` are exchanged: heads, hidden units and words would be along `data`, where the devices have
    other examples. Along which axis do devices work on the same examples?"""
    rules = {dim: {"data": "model", "model": "data"}[axis] for dim, axis in RULES.items()}
    specs = {name: P() if name.endswith("norm") else P(*map(rules.get, dims)) for name, dims in axes.items()}
    return _told(specs, axes, lengths, mesh)


@specs.mistake
def heads_cut_across(axes, lengths, mesh):
    """Each head was cut, and every device has a part of every one. A score is a sum over a whole head, so each would be
    in parts on all devices, and the softmax of parts is not the softmax of the sum (lesson 13). What of a head may a
    device own?"""
    rules = {**RULES, "heads": None, "kv_heads": None, "head": "model"}
    return _told(_lying(axes, rules), axes, lengths, mesh)


@specs.mistake
def bytes_of_equal_shares(axes, lengths, mesh):
    """The specs are right. The bytes are those of all parameters, divided by the number of devices: but the norm scales
    are whole on every device. Count each parameter by the axes in its own spec."""
    total = sum(math.prod(lengths[dim] for dim in dims) for dims in axes.values())
    return {**_lying(axes, RULES), BYTES: FLOAT * total // math.prod(mesh.values())}


@specs.mistake
def counted_numbers(axes, lengths, mesh):
    """The specs are right, and so is the number of numbers on a device. How many bytes has each, in float32?"""
    right = _specs(axes, lengths, mesh)
    return {**right, BYTES: right[BYTES] // FLOAT}


@specs.mistake
def layers_counted_once(axes, lengths, mesh):
    """The specs are right. The bytes are those of a single layer, and of what stands outside the layers: "layers" is a
    dimension like the others, cut nowhere."""
    specs = _lying(axes, RULES)
    return {**specs, BYTES: _held(specs, axes, {**lengths, "layers": 1}, mesh)}
