"""§ 8, 9: what of the peak a run reached, and what crosses from one slice to another."""

from __future__ import annotations

from grader.exercises import Case, FunctionExercise
from grader.lessons.shared import within


def _mfu(parameters, tokens, seconds, chips, peak):
    """Model FLOPs utilisation: 6 FLOPs for every parameter and token, over what the chips could have done."""
    return 6 * parameters * tokens / (seconds * chips * peak)


mfu = FunctionExercise("mfu", points=3, reference=_mfu, same=within(0.005))


@mfu.cases
def _(draw):
    """A run such as many publish: 8 billion parameters, 4 million tokens a step, 256 chips; then others."""
    yield Case({"parameters": 8e9, "tokens": 4_194_304, "seconds": 8.0, "chips": 256, "peak": 1.97e14})
    for _ in range(6):
        parameters, tokens = float(draw.rng.integers(1, 400) * 10**9), int(draw.rng.integers(1, 16) * 2**20)
        chips = int(draw.rng.choice([64, 256, 512, 4096]))
        peak = float(draw.rng.choice([1.97e14, 4.59e14, 9.2e14, 9.9e14]))
        seconds = 6 * parameters * tokens / (chips * peak * draw.rng.uniform(0.3, 0.6))
        yield Case(
            {"parameters": parameters, "tokens": tokens, "seconds": float(seconds), "chips": chips, "peak": peak}
        )


@mfu.mistake
def forward_only(parameters, tokens, seconds, chips, peak):
    """Two FLOPs for each parameter and token are the forward pass: a multiplication and an addition. The backward pass
    has two products for each of the forward one's."""
    return _mfu(parameters, tokens, seconds, chips, peak) / 3


@mfu.mistake
def backward_only(parameters, tokens, seconds, chips, peak):
    """Four are the backward pass alone. What did the forward pass take?"""
    return _mfu(parameters, tokens, seconds, chips, peak) * 2 / 3


@mfu.mistake
def counted_what_is_computed_again(parameters, tokens, seconds, chips, peak):
    """Eight count the forward pass twice, as a program with `jax.checkpoint` runs it. That is *hardware* utilisation.
    The M of MFU is the model's own arithmetic: should a program that wastes more look better?"""
    return _mfu(parameters, tokens, seconds, chips, peak) * 8 / 6


@mfu.mistake
def peak_of_one_chip(parameters, tokens, seconds, chips, peak):
    """More than 1? `peak` is that of one chip, and they all worked."""
    return _mfu(parameters, tokens, seconds, chips, peak) * chips


@mfu.mistake
def in_percent(parameters, tokens, seconds, chips, peak):
    """That is in percent. Return a part of 1."""
    return 100 * _mfu(parameters, tokens, seconds, chips, peak)


# Two slices and the network between them: what one chip sends over it in a step.


def _dcn(way, weights, chips, slices):
    """Bytes of one chip over the data centre's network, rings throughout; gradients are of the weights' size."""
    ring = (slices - 1) / slices
    if way == "data":  # each slice holds everything once: a chip has 1/chips of the gradient, and all slices' are added
        return 2 * ring * weights / chips
    # FSDP over slices × chips: its own chips' share comes over the fast wires, the other slices' over the network,
    # forwards, backwards, and once more for the gradient
    return 3 * ring * weights / chips


two_slices = FunctionExercise("two_slices", points=4, reference=_dcn, same=within(0.005))
WAYS = ("data", "fsdp")


@two_slices.cases
def _(draw):
    """Both ways, for a model of Llama 3 8B's size on two slices, and drawn."""
    yield from (Case({"way": way, "weights": 16_000_000_000, "chips": 256, "slices": 2}) for way in WAYS)
    for way in WAYS * 3:
        weights = int(draw.rng.integers(1, 200)) * 10**9
        chips, slices = int(draw.rng.choice([64, 128, 256])), int(draw.rng.choice([3, 4, 8]))
        yield Case({"way": way, "weights": weights, "chips": chips, "slices": slices})


@two_slices.mistake
def whole_gradient_from_every_chip(way, weights, chips, slices):
    """The slice has added its own gradients up over the fast wires first, and dealt the sum out: what is left with each
    chip to be sent to the other slices?"""
    return _dcn(way, weights, chips, slices) * chips


@two_slices.mistake
def one_pass_for_an_all_reduce(way, weights, chips, slices):
    """Adding up over slices is an all_reduce: a reduce_scatter *and* an all_gather."""
    return _dcn(way, weights, chips, slices) / 2 if way == "data" else _dcn(way, weights, chips, slices)


@two_slices.mistake
def gathered_once(way, weights, chips, slices):
    """FSDP gathers the weights on the way forwards, again on the way back, and adds the gradients up: how many passes
    are that?"""
    return _dcn(way, weights, chips, slices) / 3 if way == "fsdp" else _dcn(way, weights, chips, slices)


@two_slices.mistake
def forgot_the_way_back(way, weights, chips, slices):
    """FSDP threw the gathered weights away after the forward pass, to save memory. What does the backward pass work
    with?"""
    return _dcn(way, weights, chips, slices) * 2 / 3 if way == "fsdp" else _dcn(way, weights, chips, slices)


@two_slices.mistake
def nothing_stays_in_the_slice(way, weights, chips, slices):
    """So it is with what comes from one's own slice counted as well. Of `slices` shares only the others' cross the
    network."""
    return _dcn(way, weights, chips, slices) * slices / (slices - 1)
