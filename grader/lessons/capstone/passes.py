"""§ 2–3: once through the model, on every device its part; and the loss of a batch whose rows are of many lengths."""

from __future__ import annotations

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import BytesSent, Case, ProgramExercise, Roots, Without
from grader.lessons.capstone.drawn import (
    AXIS_NAMES,
    MESHES,
    ROWS_DRAWN,
    TOKENS,
    batch_drawn,
    compiled_quickly,
    params_drawn,
    roundings,
    scalars_summed,
    sequence_summed,
    sizes_drawn,
    tokens_summed,
    weights_gathered,
)
from grader.lessons.capstone.model import logits_of, mean_loss
from grader.lessons.capstone.sharded import (
    LOGITS,
    RIGHT,
    ROWS,
    SPECS,
    gathered_sequence,
    local_logits,
    own_words,
    scattered_sequence,
    token_losses,
)
from grader.lessons.shared import device_map
from grader.transformer.model import LAYER, rms_norm

X_IN_PARTS = Without("all_reduce", "model")
LAYER_BY_LAYER = Without("all_gather", "data", dimensions=4)  # those of the attention, of all layers

forward = ProgramExercise(
    "forward",
    points=6,
    reference=compiled_quickly(logits_of),
    mesh_shapes=MESHES,
    after="specs",
    taught_in=("13_tensor_parallel", "14_fsdp"),
)


@forward.cases
def _(draw):
    mesh = draw.mesh(*AXIS_NAMES)
    sizes = sizes_drawn(draw, mesh)
    sent = weights_gathered(sizes, mesh) + sequence_summed(sizes, mesh)
    norms = 2 * sizes["layers"] + 1
    return Case(
        {"params": params_drawn(draw, sizes), "tokens": batch_drawn(draw, sizes)["tokens"]},
        mesh,
        LOGITS,
        limits=[
            BytesSent(sent),
            X_IN_PARTS,
            LAYER_BY_LAYER,
            Roots(norms * ROWS_DRAWN // mesh["data"] * TOKENS // mesh["model"]),
        ],
        roundings=roundings(sizes),
    )


def _forward(params, tokens, mesh, out=LOGITS, **pieces):
    def body(params, tokens):
        return local_logits(params, tokens, replace(RIGHT, **pieces))

    return device_map(body, mesh, (SPECS, ROWS), out)(params, tokens)


def _own_block(x):
    """A device's block of the sequence, of a whole that is taken for a copy."""
    length = x.shape[1] // lax.axis_size("model")
    return lax.dynamic_slice_in_dim(x, lax.axis_index("model") * length, length, axis=1)


def _averaged(x):
    return scattered_sequence(x) / lax.axis_size("model")


@forward.mistake
def parts_never_added_up(params, tokens, *, mesh):
    """Behind the out-projection, the MLP and the embedding every device has one part of a sum, of its own heads, hidden
    units or words. Nobody added them up: wrong from the first step on. Which collective adds up, and leaves each device
    its block of the sum?"""
    return _forward(params, tokens, mesh, looked_up=_own_block, scattered=_own_block)


@forward.mistake
def parts_of_layers_never_added_up(params, tokens, *, mesh):
    """The embedding is right. But behind the out-projection and the MLP every device has one part of a sum, of its own
    heads or hidden units, and nobody added these up. Which collective adds up, and leaves each device its block
    of the sum?"""
    return _forward(params, tokens, mesh, scattered=_own_block)


@forward.mistake
def averaged_over_model(params, tokens, *, mesh):
    """The parts were averaged over `model`. Heads and hidden units are the terms of a sum, and so are the rows that
    only one device has: there is nothing to divide by."""

    return _forward(params, tokens, mesh, looked_up=_averaged, scattered=_averaged)


@forward.mistake
def layers_averaged_over_model(params, tokens, *, mesh):
    """The embedding is right, and in the layers the parts were averaged over `model`. Heads and hidden units are the
    terms of a sum: there is nothing to divide by."""
    return _forward(params, tokens, mesh, scattered=_averaged)


@forward.mistake
def nothing_added_to(params, tokens, *, mesh):
    """Every layer returned what attention and the MLP make of x, and not x *plus* that. Where in `logits_of` does x
    come in again?"""
    return _forward(params, tokens, mesh, kept=lambda x, _: 0)


@forward.mistake
def added_to_the_normed(params, tokens, *, mesh):
    """What attention and the MLP make of x was added to the *normed* x. In `logits_of` it is added to x as it came in;
    the norm is only for what goes into them. Which of your names is x, and which the normed x?"""
    return _forward(params, tokens, mesh, kept=rms_norm)


@forward.mistake
def no_norm_at_the_end(params, tokens, *, mesh):
    """There is no norm behind the last layer: x went to the unembedding as it was. What does `logits_of` do to it
    first?"""
    return _forward(params, tokens, mesh, at_the_end=lambda x, scale: gathered_sequence(x))


@forward.mistake
def positions_from_zero(params, tokens, *, mesh):
    """The rotary positions begin at 0 on every block of the sequence, so all blocks are turned as if each were the
    first. Within a block nobody notices, since only distances count there; between blocks all are wrong. At which
    position does a device's block begin?"""

    def positions(x):
        return lax.all_gather(jnp.arange(x.shape[1]), "model", tiled=True)

    return _forward(params, tokens, mesh, positions=positions)


@forward.mistake
def words_from_zero(params, tokens, *, mesh):
    """Tokens are numbers of the whole vocabulary, and a device's part of the table begins at 0. Without a shift every
    device looks the words of device 0 up in its own part, and nobody has the others."""

    def words(numbers, count):
        mine = numbers < count
        return mine, jnp.where(mine, numbers, 0)

    return _forward(params, tokens, mesh, words=words)


@forward.mistake
def every_device_has_every_word(params, tokens, *, mesh):
    """Every device added a row for every token, also where the word is not in its part of the table. What should a
    device contribute for a word that another one has?"""

    def words(numbers, count):
        return jnp.ones(numbers.shape, bool), own_words(numbers, count)[1]

    return _forward(params, tokens, mesh, words=words)


@forward.mistake
def width_left_in_shares(params, tokens, *, mesh):
    """The matrices are cut in their width over `data`, and were used as they are laid out: their shapes do not fit to
    x, which has its whole width. What does FSDP do right before a matrix is used?"""
    return _forward(params, tokens, mesh, width=lambda name, leaf: leaf)


@forward.mistake
def x_kept_whole(params, tokens, *, mesh):
    """The logits are right, and so are the bytes: an all_reduce is a reduce_scatter and an all_gather. But between the
    layers every device along `model` now keeps the whole sequence of x, norms all of it, and adds all of it: the same
    work and the same memory on each. Where is the first half of that all_reduce enough, and when is the second due?"""
    return _forward(
        params,
        tokens,
        mesh,
        heard=rms_norm,
        at_the_end=rms_norm,
        looked_up=lambda x: lax.psum(x, "model"),
        scattered=lambda x: lax.psum(x, "model"),
        positions=lambda x: jnp.arange(x.shape[1]),
    )


@forward.mistake
def gathered_before_the_loop(params, tokens, *, mesh):
    """The logits are right, and so are the bytes. But the weights of all layers are gathered before the loop, so each
    device holds all of them at once, as if nothing were cut over `data`. How many layers' weights does a turn need?"""

    def body(params, tokens):
        layers = {name: jax.vmap(functools.partial(RIGHT.width, name))(params[name]) for name in LAYER}
        pieces = replace(RIGHT, width=lambda name, leaf: leaf if name in LAYER else RIGHT.width(name, leaf))
        return local_logits(params | layers, tokens, pieces)

    return device_map(body, mesh, (SPECS, ROWS), LOGITS)(params, tokens)


def _gathered_and_normed(x, scale):
    return rms_norm(gathered_sequence(x), scale)


@forward.mistake
def normed_after_the_gather(params, tokens, *, mesh):
    """The logits are right, and so are the bytes. But where tokens are gathered before they are normed, every device
    along `model` norms all of them. A norm needs one token at a time: which comes first, the norm or the all_gather?"""
    return _forward(params, tokens, mesh, heard=_gathered_and_normed, at_the_end=_gathered_and_normed)


@forward.mistake
def x_in_the_sum(params, tokens, *, mesh):
    """In the layers, what is added up over `model` has x in it: then x is in the sum as many times as there are devices
    along `model`. Behind which step does each device add its own block of x, once?"""
    return _forward(params, tokens, mesh, kept=lambda x, _: lax.axis_size("model") * x)


@forward.mistake
def logits_made_whole(params, tokens, *, mesh):
    """The values are right, but all logits went to every device. They are the largest array of the whole network, and
    the loss does without it: leave every device its own words."""

    def body(params, tokens):
        return lax.all_gather(local_logits(params, tokens), "model", axis=2, tiled=True)

    return device_map(body, mesh, (SPECS, ROWS), ROWS)(params, tokens)


# The loss.

loss = ProgramExercise(
    "loss",
    points=4,
    reference=compiled_quickly(mean_loss),
    mesh_shapes=MESHES,
    after="forward",
    taught_in=("12_data_parallel", "13_tensor_parallel"),
)


@loss.cases
def _(draw):
    mesh = draw.mesh(*AXIS_NAMES)
    sizes = sizes_drawn(draw, mesh)
    # For each token a maximum (or all of the devices' gathered), a sum, and the logit of the target.
    sent = weights_gathered(sizes, mesh) + sequence_summed(sizes, mesh) + tokens_summed(mesh, 6) + scalars_summed(4)
    return Case(
        {"params": params_drawn(draw, sizes), **batch_drawn(draw, sizes)},
        mesh,
        P(),
        limits=[BytesSent(sent)],
        roundings=roundings(sizes) + sizes["vocabulary"],
    )


def _loss(params, tokens, targets, mesh, mean, losses=token_losses):
    """`mean(losses, real)` of the losses of a device's tokens, and of which of them are real."""

    def body(params, tokens, targets):
        return mean(losses(local_logits(params, tokens), targets), targets >= 0)

    return device_map(body, mesh, (SPECS, ROWS, ROWS), P())(params, tokens, targets)


def mean_of_all(losses, real):
    return lax.psum(jnp.sum(losses), "data") / lax.psum(jnp.sum(real), "data")


def mean_of_means(losses, real):
    return lax.pmean(jnp.sum(losses) / jnp.sum(real), "data")


@loss.mistake
def mean_of_local_means(params, tokens, targets, *, mesh):
    """Every device took the mean over its own real tokens, and these means were averaged. Lines are of different
    lengths: a token on a device with few of them then counts for more than one elsewhere. Which two sums make a mean of
    all?"""
    return _loss(params, tokens, targets, mesh, mean_of_means)


@loss.mistake
def mean_of_the_lines_means(params, tokens, targets, *, mesh):
    """Every line has the same weight: first a mean for each line, then the mean of these. Lines are of different
    lengths, and a token of a short one then counts for more. Which two sums make the mean over all tokens?"""

    def mean(losses, real):
        return lax.pmean(jnp.mean(jnp.sum(losses, axis=1) / jnp.sum(real, axis=1)), "data")

    return _loss(params, tokens, targets, mesh, mean)


@loss.mistake
def inputs_counted(params, tokens, targets, *, mesh):
    """The sum was divided by the number of *tokens* above 0, of those that go in. Padding is told by the targets, which
    stand one place on: which of those are real?"""

    def body(params, tokens, targets):
        losses = token_losses(local_logits(params, tokens), targets)
        return mean_of_all(losses, tokens > 0)

    return device_map(body, mesh, (SPECS, ROWS, ROWS), P())(params, tokens, targets)


@loss.mistake
def padding_counted(params, tokens, targets, *, mesh):
    """The sum is of the real tokens, and was divided by the number of all: padding makes the loss smaller, and the
    shorter the lines the more. What should the devices count?"""
    return _loss(params, tokens, targets, mesh, lambda losses, real: lax.pmean(jnp.mean(losses), "data"))


@loss.mistake
def word_zero_not_counted(params, tokens, targets, *, mesh):
    """The sum is right, and was divided by too few: the targets above 0 were counted, and 0 is a word like any other.
    Which targets are padding?"""

    def body(params, tokens, targets):
        losses = token_losses(local_logits(params, tokens), targets)
        return mean_of_all(losses, targets > 0)

    return device_map(body, mesh, (SPECS, ROWS, ROWS), P())(params, tokens, targets)


@loss.mistake
def loss_of_own_rows(params, tokens, targets, *, mesh):
    """This is the loss of device 0's rows. Each device has other rows and another loss, though out_specs promise one
    number. Which sums have to go over `data`?"""
    return _loss(params, tokens, targets, mesh, lambda losses, real: jnp.sum(losses) / jnp.sum(real))


@loss.mistake
def counted_along_model_too(params, tokens, targets, *, mesh):
    """The loss is as many times too large as there are devices along `model`, where all have the same losses. Over
    which axes does the sum go, and over which the count of tokens?"""

    def mean(losses, real):
        return lax.psum(jnp.sum(losses), ("data", "model")) / lax.psum(jnp.sum(real), "data")

    return _loss(params, tokens, targets, mesh, mean)


@loss.mistake
def softmax_of_own_words(params, tokens, targets, *, mesh):
    """Every device normalised over its own words. Probabilities of a part of the vocabulary then add up to 1 on every
    device. Over what must the sum under the logarithm go?"""

    def losses(logits, targets):
        mine, local = own_words(targets, logits.shape[-1])
        picked = jnp.take_along_axis(logits, local[..., None], axis=-1)[..., 0]
        found = lax.psum(jnp.where(mine, picked, 0), "model")
        return jnp.where(targets >= 0, jax.nn.logsumexp(logits, axis=-1) - found, 0)

    return _loss(params, tokens, targets, mesh, mean_of_all, losses)


@loss.mistake
def targets_from_zero(params, tokens, targets, *, mesh):
    """Targets are numbers of the whole vocabulary, and a device's logits begin at its own first word. Without the shift
    every device finds the words of device 0 among its own, and nobody finds the others."""

    def words(numbers, count):
        mine = (numbers >= 0) & (numbers < count)
        return mine, jnp.where(mine, numbers, 0)

    def losses(logits, targets):
        return token_losses(logits, targets, words)

    return _loss(params, tokens, targets, mesh, mean_of_all, losses)


@loss.mistake
def logits_gathered_for_the_loss(params, tokens, targets, *, mesh):
    """The value is right, but all logits went to every device. Three numbers for each token are enough: a maximum, a
    sum, and the logit of the target."""

    def losses(logits, targets):
        return token_losses_of_whole(lax.all_gather(logits, "model", axis=2, tiled=True), targets)

    return _loss(params, tokens, targets, mesh, mean_of_all, losses)


def token_losses_of_whole(logits, targets):
    """The loss of every token, of logits of the whole vocabulary; 0 for padding."""
    picked = jnp.take_along_axis(logits, jnp.maximum(targets, 0)[..., None], axis=-1)[..., 0]
    return jnp.where(targets >= 0, jax.nn.logsumexp(logits, axis=-1) - picked, 0)
