"""§ 2–3: a pipeline as one program, and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, BytesSent, Case, Flops, Turns
from grader.jax_versions import varying
from grader.lessons.pipelines.stages import lengths, on_stages, one_layer, send_on, small, through
from grader.lessons.shared import FLOAT, bytes_sent, device_map

# GPipe: M + S − 1 turns, a transfer in each.

gpipe = on_stages("gpipe", points=6, reference=through, piece=True)


@gpipe.cases
def _(draw):
    mesh = draw.mesh("stage")
    n, (m, b, d) = mesh["stage"], lengths(draw)
    m = 2 if n == 4 else m  # fewer than stages
    turns = m + n - 1
    return Case(
        {"weights": small(draw, n, d, d, spec=P("stage")), "x": small(draw, m, b, d, spec=P())},
        mesh,
        out=P(),
        limits=[
            Turns({"collective_permute": turns, "all_reduce": 1}),
            BytesSent(turns * b * d * FLOAT + bytes_sent("all_reduce", m * b * d, n)),
            Flops(turns * 2 * b * d * d),
        ],
    )


def _last_only(out, me, n):
    return jnp.where(me == n - 1, out, 0)


def _gpipe(
    weights,
    x,
    mesh,
    *,
    turns: Callable[[int, int], int] = lambda m, n: m + n - 1,
    place: Callable[[Any, int], Any] = lambda t, n: t - (n - 1),
    by: int = 1,
    masked: Callable[..., Any] = _last_only,
    collect: Callable[..., Any] = lambda out: lax.psum(out, "stage"),
    squeezed: bool = True,
    fed: Callable[..., Any] = lambda me, t: me == 0,
    empty: float = 0.0,
    stored: Callable[..., Any] = lambda made, sent: made,
    keeper: Callable[[int], int] = lambda n: n - 1,
    round_the_end: bool = False,
):
    n, m = mesh.shape["stage"], x.shape[0]

    def body(w, x):
        me = lax.axis_index("stage")
        w = w[0] if squeezed else w

        def turn(carry, t):
            h, out = carry
            h = one_layer(w, jnp.where(fed(me, t), x[jnp.minimum(t, m - 1)], h))
            sent = send_on(h, n, by)
            k = place(t, n) % m if round_the_end else place(t, n)
            here = (me == keeper(n)) & (k >= 0) & (k < m)
            out = jnp.where(here, out.at[jnp.clip(k, 0, m - 1)].set(stored(h, sent)), out)
            return (sent, out), None

        start = jnp.full(x.shape[1:], empty), jnp.full(x.shape, empty)
        out = lax.scan(turn, start, jnp.arange(turns(m, n)))[0][1]
        return collect(masked(out, me, n))

    return device_map(body, mesh, (P("stage"), P()), P())(weights, x)


@gpipe.mistake
def a_turn_for_each_microbatch(weights, x, *, mesh):
    """The last outputs are missing. When the last microbatch enters the first stage, its way through the others has
    only begun. How many turns does *one* microbatch take, and how many do all?"""
    return _gpipe(weights, x, mesh, turns=lambda m, n: m)


@gpipe.mistake
def stored_by_the_turn(weights, x, *, mesh):
    """What the last stage makes in turn t is stored in place t. But in turn t microbatch t is only entering the first
    stage. Which one is on the last stage then?"""
    return _gpipe(weights, x, mesh, place=lambda t, n: t)


@gpipe.mistake
def stored_by_the_turn_up_to_the_last_place(weights, x, *, mesh):
    """What the last stage makes in turn t is stored in place t, and what is made after that all in the last place. But
    what it makes in turn t is microbatch t − (S − 1): only number M − 1 stands where it belongs. What is to be stored
    in the turns before S − 1?"""
    return _gpipe(weights, x, mesh, place=lambda t, n: jnp.minimum(t, len(x) - 1))


@gpipe.mistake
def stored_by_the_turn_round_the_end(weights, x, *, mesh):
    """Each result stands S − 1 places too late, and those that found no place at the end begin again with place 0.
    What the last stage makes in turn t is a microbatch that came in S − 1 turns before. What is its number?"""
    return _gpipe(weights, x, mesh, place=lambda t, n: t, round_the_end=True)


@gpipe.mistake
def stored_one_place_off(weights, x, *, mesh):
    """The results stand one place off. With S stages a microbatch moves on S − 1 times: it enters the last stage in
    the turn of its own number plus S − 1."""
    return _gpipe(weights, x, mesh, place=lambda t, n: t - n)


@gpipe.mistake
def first_result_last(weights, x, *, mesh):
    """The results stand one place too early, and the first one stands last: index −1 is the last place. With S stages
    a microbatch moves on S − 1 times. In which turn does number 0 leave the last stage, and what has to be taken off
    that turn to make 0?"""
    return _gpipe(weights, x, mesh, place=lambda t, n: t - n, round_the_end=True)


@gpipe.mistake
def stored_after_the_send(weights, x, *, mesh):
    """What is stored has come over the wire: not what this stage has made, but what the stage before it has made. The
    last stage's own results went to stage 0, which throws them away. Do you store before the ppermute, or behind it?"""
    return _gpipe(weights, x, mesh, stored=lambda made, sent: sent)


@gpipe.mistake
def sent_backwards(weights, x, *, mesh):
    """The activations go to the stage *before*: from stage 0 to the last one, which hands on what is no longer looked
    at. Each pair of a ppermute is (from, to)."""
    return _gpipe(weights, x, mesh, by=-1)


@gpipe.mistake
def summed_without_a_mask(weights, x, *, mesh):
    """The outputs of all stages are added up, and every stage has stored its own. Only the last one's are results:
    let the others have zeros in the psum."""
    n, m = mesh.shape["stage"], x.shape[0]

    def body(w, x):
        me = lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = one_layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            k = t - (n - 1)
            out = jnp.where(k >= 0, out.at[jnp.maximum(k, 0)].set(h), out)
            return (send_on(h, n), out), None

        start = jnp.zeros(x.shape[1:]), jnp.zeros(x.shape)
        return lax.psum(lax.scan(turn, start, jnp.arange(m + n - 1))[0][1], "stage")

    return device_map(body, mesh, (P("stage"), P()), P())(weights, x)


@gpipe.mistake
def results_of_the_first_stage(weights, x, *, mesh):
    """What comes out is what the *first* stage has stored: it has been through one layer only. Whose results are those
    of the whole pipeline, and whose does the psum choose?"""
    return _gpipe(weights, x, mesh, keeper=lambda n: 0, masked=lambda out, me, n: jnp.where(me == 0, out, 0))


@gpipe.mistake
def multiplied_by_a_mask(weights, x, *, mesh):
    """There is NaN, and 0 · NaN is NaN: where places that nobody has filled hold NaN, a mask of zeros does not help.
    `jnp.where` chooses, and looks at nothing else."""
    return _gpipe(weights, x, mesh, empty=np.nan, masked=lambda out, me, n: out * (me == n - 1))


@gpipe.mistake
def never_collected(weights, x, *, mesh):
    """Only the last stage has results; the others return zeros, and `out_specs=P()` promised that all have the same.
    (The check of shard_map would have told you.) How does everybody get what one device has?"""
    return _gpipe(weights, x, mesh, collect=lambda out: out)


@gpipe.mistake
def kept_the_leading_axis(weights, x, *, mesh):
    """A device's share of `weights` is still three-dimensional: [1, D, D], a stack of one stage. What it computes
    with it has an axis more than what came in, and no loop can carry that. Take `w[0]`."""
    return _gpipe(weights, x, mesh, squeezed=False)


@gpipe.mistake
def every_stage_takes_the_input(weights, x, *, mesh):
    """Every stage works on the input itself, and what comes from the stage before is thrown away. Which stage takes
    its microbatch from x, and which from the wire?"""
    return _gpipe(weights, x, mesh, fed=lambda me, t: me >= 0)


@gpipe.mistake
def one_microbatch_only(weights, x, *, mesh):
    """Only microbatch 0 ever enters the pipeline. From turn 1 on stage 0 works on what came over the wire, from the
    last stage, and that is never a new one. What is stage 0 to take in *every* turn?"""
    return _gpipe(weights, x, mesh, fed=lambda me, t: (me == 0) & (t == 0))


@gpipe.mistake
def gathered_from_everybody(weights, x, *, mesh):
    """The result is right, but an all_gather sends the outputs of all stages to all, S times as much as there is to
    know. Only one device has something to tell: zeros elsewhere, and a psum."""
    return _gpipe(weights, x, mesh, masked=lambda out, me, n: out, collect=lambda out: lax.all_gather(out, "stage")[-1])


@gpipe.mistake
def collected_in_every_turn(weights, x, *, mesh):
    """The result is right, but in every turn there is a psum of what the last stage has made, and all wait for all.
    Let the last stage keep its outputs, and collect them once, after the loop."""
    n, m = mesh.shape["stage"], x.shape[0]

    def body(w, x):
        me = lax.axis_index("stage")

        def turn(h, t):
            h = one_layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            return send_on(h, n), lax.psum(jnp.where(me == n - 1, h, 0), "stage")

        return lax.scan(turn, jnp.zeros(x.shape[1:]), jnp.arange(m + n - 1))[1][n - 1 :]

    return device_map(body, mesh, (P("stage"), P()), P())(weights, x)


@gpipe.mistake
def gathered_the_weights(weights, x, *, mesh):
    """The result is right, but every device has been sent all the weights. A pipeline sends activations, and no weight
    ever leaves its device."""

    def body(w, x):
        return through(lax.all_gather(w, "stage", tiled=True), x)

    return device_map(body, mesh, (P("stage"), P()), P())(weights, x)


# Its gradient. The loss leaves out what is only padding.


def _loss(weights, x, y, real):
    """The mean squared error of a real example; `real` is 1 for these and 0 for padding."""
    errors = jnp.sum((through(weights, x) - y) ** 2, axis=-1)
    return jnp.sum(real * errors) / jnp.sum(real)


gpipe_gradient = on_stages("gpipe_gradient", points=5, reference=jax.value_and_grad(_loss))


@gpipe_gradient.cases
def _(draw):
    mesh = draw.mesh("stage")
    n, (m, b, d) = mesh["stage"], lengths(draw)
    m = 2 if n == 4 else m  # fewer than stages
    real = (draw.rng.permutation(m * b) < 0.7 * m * b).astype(np.float32).reshape(m, b)
    real[:, 0], real[0] = 1, 1  # every microbatch has a real example, and one is full
    turns = m + n - 1
    return Case(
        {
            "weights": small(draw, n, d, d, spec=P("stage")),
            "x": small(draw, m, b, d, spec=P()),
            "y": small(draw, m, b, d, spec=P()),
            "real": Array(real, P()),
        },
        mesh,
        out=(P(), P("stage")),
        limits=[
            Turns({"collective_permute": 2 * turns, "all_reduce": 2}),
            BytesSent(2 * turns * b * d * FLOAT + 2 * bytes_sent("all_reduce", 1, n)),
            Flops(turns * 6 * b * d * d),
        ],
    )


def _masked_error(h, y, real):
    return jnp.sum(real * jnp.sum((h - y) ** 2, axis=-1))


def _gradient(
    weights,
    x,
    y,
    real,
    mesh,
    *,
    turns: Callable[[int, int], int] = lambda m, n: m + n - 1,
    place: Callable[[Any, int], Any] = lambda t, n: t - (n - 1),
    counts: Callable[..., Any] = lambda k, t, m, n: (k >= 0) & (k < m),
    last: bool = True,
    error: Callable[..., Any] = _masked_error,
    count: Callable[..., Any] = jnp.sum,
    summed: Callable[..., Any] = lambda total: lax.psum(total, "stage"),
    after: Callable[..., Any] = lambda g: g,
    check_vma: bool = True,
):
    n, m = mesh.shape["stage"], x.shape[0]

    def body(w, x, y, real):
        me = lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                h = one_layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                k = place(t, n)
                here = counts(k, t, m, n) & ((me == n - 1) | (not last))
                k = jnp.clip(k, 0, m - 1)
                total += jnp.where(here, error(h, y[k], real[k]), 0)
                return (send_on(h, n), total), None

            start = jnp.zeros(x.shape[1:]), jnp.zeros(())
            start = varying(start, "stage") if check_vma else start
            total = lax.scan(turn, start, jnp.arange(turns(m, n)))[0][1]
            return summed(total) / count(real)

        value, g = jax.value_and_grad(loss)(w)
        return value, after(g)

    specs = P("stage"), P(), P(), P()
    return device_map(body, mesh, specs, (P(), P("stage")), check_vma)(weights, x, y, real)


@gpipe_gradient.mistake
def mean_of_means(weights, x, y, real, *, mesh):
    """This is the mean of the microbatches' means. Where microbatches have different numbers of real examples, those of
    a nearly empty one count more. Add up errors, and divide once by the number of all real ones."""

    def of_one(h, y, real):
        return _masked_error(h, y, real) / jnp.sum(real)

    return _gradient(weights, x, y, real, mesh, error=of_one, count=lambda real: real.shape[0])


@gpipe_gradient.mistake
def counted_the_padding(weights, x, y, real, *, mesh):
    """Padding is part of your mean. `real` is 0 for examples that only fill a microbatch up: they belong neither into
    the sum nor into the number that it is divided by."""

    def of_all(h, y, real):
        return jnp.sum((h - y) ** 2)

    return _gradient(weights, x, y, real, mesh, error=of_all, count=lambda real: real.size)


@gpipe_gradient.mistake
def divided_by_the_padding_too(weights, x, y, real, *, mesh):
    """The errors are those of real examples only, but the sum is divided by the number of all. How many examples has
    it been taken over?"""
    return _gradient(weights, x, y, real, mesh, count=lambda real: real.size)


@gpipe_gradient.mistake
def mean_over_the_entries(weights, x, y, real, *, mesh):
    """Loss and gradient are D times too small. The error of an example is the *sum* of the squares of its D entries;
    the mean is taken over the examples alone."""

    def of_means(h, y, real):
        return jnp.sum(real * jnp.mean((h - y) ** 2, axis=-1))

    return _gradient(weights, x, y, real, mesh, error=of_means)


@gpipe_gradient.mistake
def every_stage_has_a_loss(weights, x, y, real, *, mesh):
    """Every stage compares what it has made with y, and all of that is in the loss. Only the last stage has outputs
    of the network."""
    return _gradient(weights, x, y, real, mesh, last=False)


@gpipe_gradient.mistake
def labels_of_another_turn(weights, x, y, real, *, mesh):
    """The output of turn t is compared with the labels of microbatch t, which has only entered the first stage. Which
    microbatch leaves the last one in turn t?"""
    return _gradient(weights, x, y, real, mesh, place=lambda t, n: t)


@gpipe_gradient.mistake
def labels_clipped_to_the_last(weights, x, y, real, *, mesh):
    """From the turn on in which the first output comes, the output of turn t was compared with the labels of microbatch
    t, and in the last turns with those of the last one. Which microbatch leaves the last stage in turn t?"""
    return _gradient(
        weights, x, y, real, mesh, place=lambda t, n: t, counts=lambda k, t, m, n: (t >= n - 1) & (t < m + n - 1)
    )


@gpipe_gradient.mistake
def counted_from_the_first_turn(weights, x, y, real, *, mesh):
    """The last stage counts errors from the first turn on. But what it holds before turn S − 1 is no output: nothing
    has come so far, and it makes something of the zeros that the loop begins with."""
    return _gradient(weights, x, y, real, mesh, counts=lambda k, t, m, n: k < m)


@gpipe_gradient.mistake
def too_few_turns(weights, x, y, real, *, mesh):
    """The last S − 1 microbatches, or all if there are no more, never reach the loss: their gradients are missing, and
    nothing fails. How many turns are there, and how many does the last microbatch need?"""
    return _gradient(weights, x, y, real, mesh, turns=lambda m, n: m)


@gpipe_gradient.mistake
def mean_over_the_stages(weights, x, y, real, *, mesh):
    """The loss is S times too small, and so is the gradient. One stage has a loss and the others have zeros: their
    *sum* is the loss, their mean is not."""
    return _gradient(weights, x, y, real, mesh, summed=lambda total: lax.pmean(total, "stage"))


@gpipe_gradient.mistake
def mean_of_the_gradients(weights, x, y, real, *, mesh):
    """The gradients of different stages are averaged. They belong to the weights of different layers, and their
    mean belongs to none. Over which axis would there be copies?"""
    return _gradient(weights, x, y, real, mesh, after=lambda g: varying(lax.pmean(g, "stage"), "stage"))


@gpipe_gradient.mistake
def check_turned_off(weights, x, y, real, *, mesh):
    """The loss is right and every gradient is S times too large. Is shard_map's check off? A psum is then a psum on the
    way back as well, and adds up S equal ones. Leave the check on, and mark the zeros that the loop begins with as
    varying."""
    return _gradient(weights, x, y, real, mesh, check_vma=False)


@gpipe_gradient.mistake
def collected_the_outputs(weights, x, y, real, *, mesh):
    """Loss and gradient are right, but all outputs are sent to all devices first, only to become one number there.
    The last stage can do that alone: what does the psum need to add up?"""
    n, m = mesh.shape["stage"], x.shape[0]

    def body(w, x, y, real):
        me = lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, out = carry
                h = one_layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                k = t - (n - 1)
                out = jnp.where((me == n - 1) & (k >= 0), out.at[jnp.maximum(k, 0)].set(h), out)
                return (send_on(h, n), out), None

            start = varying((jnp.zeros(x.shape[1:]), jnp.zeros(x.shape)), "stage")
            out = lax.psum(lax.scan(turn, start, jnp.arange(m + n - 1))[0][1], "stage")
            return _masked_error(out, y, real) / jnp.sum(real)

        return jax.value_and_grad(loss)(w)

    return device_map(body, mesh, (P("stage"), P(), P(), P()), (P(), P("stage")), True)(weights, x, y, real)
