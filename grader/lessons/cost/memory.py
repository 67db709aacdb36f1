"""§ 7: how much memory a device needs."""

from __future__ import annotations

import itertools

import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import blocks
from grader.exercises import Case, FunctionExercise, TableExercise
from grader.lessons.shared import within

# Memory on one device, with Adam in mixed precision.

HOWS = ("data parallel", "ZeRO-1", "ZeRO-2", "ZeRO-3", "tensor parallel")
WEIGHTS, GRADIENTS, OPTIMISER = ("bfloat16",), ("bfloat16",), ("float32",) * 3  # the last: master copy, two moments


def _spec(how: str, what: str) -> P:
    """How an array of a training state is laid out over the n devices of axis d."""
    cut = {
        "data parallel": ("activations",),
        "ZeRO-1": ("activations", "optimizer"),
        "ZeRO-2": ("activations", "optimizer", "gradients"),
        "ZeRO-3": ("activations", "optimizer", "gradients", "weights"),
        "tensor parallel": ("optimizer", "gradients", "weights"),
    }[how]
    return P("d") if what in cut else P()


def _held(how, params, activations, n, *, state=(WEIGHTS, GRADIENTS, OPTIMISER), spec=_spec):
    """Lay everything out on n devices and look what the first one holds, in bytes."""
    arrays = [
        (params, dtype, what)
        for what, dtypes in zip(("weights", "gradients", "optimizer"), state, strict=True)
        for dtype in dtypes
    ] + [(activations, "int8", "activations")]
    return sum(
        blocks((length,), spec(how, what), {"d": n}).entries * jnp.dtype(dtype).itemsize
        for length, dtype, what in arrays
    )


memory_per_device = FunctionExercise("memory_per_device", points=4, reference=_held)


@memory_per_device.by_formula
def _bytes_of_a_device(how, params, activations, n):
    if how == "tensor parallel":
        return 16 * params / n + activations
    optimizer = 12 / n if how in ("ZeRO-1", "ZeRO-2", "ZeRO-3") else 12
    gradients = 2 / n if how in ("ZeRO-2", "ZeRO-3") else 2
    weights = 2 / n if how == "ZeRO-3" else 2
    return params * (optimizer + gradients + weights) + activations / n


@memory_per_device.cases
def _(draw):
    for k in range(30):
        n = 8 if k < 5 else int(draw.rng.choice([2, 4, 8, 16]))
        yield Case(
            {
                "how": HOWS[k % 5],
                "params": n * int(draw.rng.integers(1, 10**6)),
                "activations": n * int(draw.rng.integers(10**3, 10**6)),
                "n": n,
            }
        )


@memory_per_device.mistake
def one_thing_cut_by_each_stage(how, params, activations, n):
    """ZeRO-2 and ZeRO-3 cut one thing each here. Each stage cuts what the stage before it cuts, and one thing more:
    the optimizer, then the gradients, then the weights."""
    own = {"ZeRO-1": "optimizer", "ZeRO-2": "gradients", "ZeRO-3": "weights"}.get(how)

    def spec(how, what):
        return _spec(how, what) if own is None or what == "activations" else P("d") if what == own else P()

    return _held(how, params, activations, n, spec=spec)


@memory_per_device.mistake
def optimizer_in_bfloat16(how, params, activations, n):
    """The optimizer's three arrays were counted in bfloat16. They are kept in float32, four bytes an entry, or
    small updates would be rounded away."""
    return _held(how, params, activations, n, state=(WEIGHTS, GRADIENTS, ("bfloat16",) * 3))


@memory_per_device.mistake
def no_master_copy(how, params, activations, n):
    """Here the optimizer has two arrays in float32. Adam keeps two moments; and updates are added to a float32 copy of
    the weights, from which the bfloat16 ones are made."""
    return _held(how, params, activations, n, state=(WEIGHTS, GRADIENTS, ("float32",) * 2))


@memory_per_device.mistake
def no_gradients(how, params, activations, n):
    """Where are the gradients? They have the shape of the weights, two bytes an entry here, and are there when
    the optimizer runs."""
    return _held(how, params, activations, n, state=(WEIGHTS, (), OPTIMISER))


@memory_per_device.mistake
def activations_cut_over_the_model_axis(how, params, activations, n):
    """Tensor parallelism cuts the weights; every device sees the same tokens, and keeps the activations between
    layers whole. Only an axis that cuts the *batch* divides these."""
    return _held(
        how, params, activations, n, spec=lambda how, what: P("d") if what == "activations" else (_spec(how, what))
    )


@memory_per_device.mistake
def whole_batch_everywhere(how, params, activations, n):
    """Each device was given the activations of the whole batch. Data parallelism, and ZeRO with it, deals the
    batch out: what is one device's share?"""
    return _held(
        how, params, activations, n, spec=lambda how, what: P() if what == "activations" else (_spec(how, what))
    )


@memory_per_device.mistake
def all_state_divided(how, params, activations, n):
    """Here the whole training state is divided by n. ZeRO does so step by step: 1 the optimizer's arrays, 2 also the
    gradients, 3 also the weights. Plain data parallelism divides none."""
    return _held(
        how, params, activations, n, spec=lambda how, what: P("d") if what != "activations" else (_spec(how, what))
    )


@memory_per_device.mistake
def gradients_still_whole(how, params, activations, n):
    """From ZeRO-2 on a device keeps only its share of the gradients: a reduce_scatter leaves it no more. Here they are
    whole."""
    return _held(how, params, activations, n, spec=lambda how, what: P() if what == "gradients" else (_spec(how, what)))


@memory_per_device.mistake
def weights_divided_first(how, params, activations, n):
    """The stages of ZeRO were taken in the opposite order: the weights first. What is largest, and is needed only
    when the weights are changed?"""
    other = {"weights": "optimizer", "optimizer": "weights"}
    return _held(how, params, activations, n, spec=lambda how, what: _spec(how, other.get(what, what)))


@memory_per_device.mistake
def gradients_in_float32(how, params, activations, n):
    """Here each number of the gradients takes four bytes. Of what type are they?"""
    return _held(how, params, activations, n, state=(WEIGHTS, ("float32",), OPTIMISER))


# The largest model that fits on eight devices of 16 GB, nothing but its training state in them.

MEMORY, DEVICES = 16e9, 8


def _largest(how, held=_held, memory=MEMORY):
    """Billions of parameters, found by trying how many fit."""
    low, high = 0, 10**11
    while high - low > 10**6:
        middle = (low + high) // 2 // DEVICES * DEVICES
        low, high = (middle, high) if held(how, middle, 0, DEVICES) <= memory else (low, middle)
    return low / 1e9


LARGEST_MODEL_ASKS = {
    "": "Add up the bytes of one parameter on one device: weights 2, gradients 2, the optimizer's arrays "
    "12. Which of these are divided among the devices here? How often does what is left go into the "
    "memory of one device, in billions?",
}
largest_model = TableExercise(
    "largest_model", points=2, reference=_largest, same=within(0.02), questions=LARGEST_MODEL_ASKS
)
largest_model.rows(HOWS[:4], argument="how")


@largest_model.stands_for
def bytes_for_each(answer, how):
    """How many bytes of a device's memory each parameter would have."""
    if not isinstance(answer, (int, float)) or isinstance(answer, bool) or not 0 < answer < float("inf"):
        return ""
    of_a_parameter = MEMORY / answer / 1e9
    there = f"With so many parameters there are {of_a_parameter:.4g} bytes of a device's memory for each."
    return f"{there} How much of that are weights, gradients, the optimizer's arrays?"


@largest_model.mistake
def weights_alone(how):
    """That many *weights* would fit, if a model were nothing else. Training also holds the gradients and the
    optimizer's arrays: how many bytes is that for each parameter, and which are divided?"""
    return {"data parallel": MEMORY / 2 / 1e9, "ZeRO-3": DEVICES * MEMORY / 2 / 1e9}.get(how)


@largest_model.mistake
def pooled_the_memory(how):
    """So many fit if all sixteen bytes of a parameter are divided, as if the memory of all devices were one pot. What a
    device holds a copy of takes its bytes on every device: what does this stage divide?"""
    return MEMORY * DEVICES / 16 / 1e9 if how in ("ZeRO-1", "ZeRO-2") else None


@largest_model.mistake
def as_plain_data_parallel(how):
    """That is what fits with a copy of everything on every device. Which of the sixteen bytes for each parameter
    does this way divide by eight?"""
    return None if how == "data parallel" else _largest("data parallel")


def _fits(of_a_parameter):
    """Billions of parameters that fit where one takes so many bytes."""
    return MEMORY / of_a_parameter / 1e9


@largest_model.mistake
def only_its_own_part_divided(how):
    """So many fit if only the part is divided for which this stage is known, and what the stage before divides is
    whole. The stages add up: 2 divides the gradients *and* the optimizer's arrays, 3 all sixteen bytes."""
    return {"ZeRO-2": _fits(2 + 2 / DEVICES + 12), "ZeRO-3": _fits(2 / DEVICES + 2 + 12)}.get(how)


@largest_model.mistake
def took_an_eighth_off(how):
    """About so many fit with an eighth *off* what is divided. How much of it does each of eight devices keep?"""
    divided = {"ZeRO-1": 12, "ZeRO-2": 14, "ZeRO-3": 16}.get(how)
    return _fits(16 - divided / DEVICES) if divided else None


@largest_model.mistake
def master_weights_whole(how):
    """So many fit if of the optimizer's twelve bytes eight are divided, and four are whole. The float32 copy of the
    weights belongs to the optimizer's arrays: is it divided with them?"""
    return {"ZeRO-1": _fits(8 + 8 / DEVICES), "ZeRO-2": _fits(6 + 10 / DEVICES)}.get(how)


@largest_model.mistake
def weights_whole_after_all(how):
    """So many fit with the weights whole. Under ZeRO-3 a layer's weights are gathered when it is their turn, and let go
    again: what is kept is an eighth."""
    return _fits(2 + 14 / DEVICES) if how == "ZeRO-3" else None


@largest_model.mistake
def one_stage_further(how):
    """So many fit with the next stage: 1 divides the optimizer's arrays, 2 the gradients as well, 3 the weights as
    well."""
    return dict(itertools.pairwise(HOWS[:4])).get(how) and _largest(dict(itertools.pairwise(HOWS[:4]))[how])
