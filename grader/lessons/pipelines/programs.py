"""§ 2–3 and § 6–8, the programs: a pipeline on one mesh axis, `stage`, every device of which runs the same loop.

A stage is one layer, tanh(h · w), unless something else is said.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, BytesSent, Case, Draw, Exercise, Flops, Meanwhile, Turns
from grader.jax_versions import varying
from grader.lessons.shared import FLOAT, bytes_sent, device_map

SHAPES = (4,), (3,), (2,)  # not of one stage: there nothing is sent
SMALL = 8  # values are whole numbers over this: where tanh is neither a line nor flat

_exercise = partial(Exercise, mesh_shapes=SHAPES)


def _small(draw: Draw, *shape: int, spec: P) -> Array:
    return Array(draw.values(*shape) / SMALL, spec)


def _send(block, n: int, by: int = 1):
    return lax.ppermute(block, "stage", [(k, (k + by) % n) for k in range(n)])


def _through(weights, x):
    """What one device computes: microbatch after microbatch is no different from all at once."""
    for w in weights:
        x = jnp.tanh(x @ w)
    return x


def _layer(w, h):
    return jnp.tanh(h @ w)


def _lengths(draw: Draw) -> tuple[int, int, int]:
    """Microbatches, examples of one, and width."""
    return draw.lengths(3, divisible_by=2)


# GPipe: M + S − 1 turns, a transfer in each.

gpipe = _exercise("gpipe", points=6, reference=_through)


@gpipe.cases
def _(draw):
    mesh = draw.mesh("stage")
    n, (m, b, d) = mesh["stage"], _lengths(draw)
    turns = m + n - 1
    return Case(
        {"weights": _small(draw, n, d, d, spec=P("stage")), "x": _small(draw, m, b, d, spec=P())},
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
    fed: Callable[..., Any] = lambda me: me == 0,
    empty: float = 0.0,
):
    n, m = mesh.shape["stage"], x.shape[0]

    def body(w, x):
        me = lax.axis_index("stage")
        w = w[0] if squeezed else w

        def turn(carry, t):
            h, out = carry
            h = _layer(w, jnp.where(fed(me), x[jnp.minimum(t, m - 1)], h))
            k = place(t, n)
            here = (me == n - 1) & (k >= 0) & (k < m)
            out = jnp.where(here, out.at[jnp.clip(k, 0, m - 1)].set(h), out)
            return (_send(h, n, by), out), None

        start = jnp.full(x.shape[1:], empty), jnp.full(x.shape, empty)
        out = lax.scan(turn, start, jnp.arange(turns(m, n)))[0][1]
        return collect(masked(out, me, n))

    return device_map(body, mesh, (P("stage"), P()), P())(weights, x)


@gpipe.mistake
def a_turn_for_each_microbatch(weights, x, *, mesh):
    """There are as many turns as microbatches. When the last microbatch enters the first stage, its way through the
    others has only begun: the last outputs are missing. How many turns does *one* microbatch take?"""
    return _gpipe(weights, x, mesh, turns=lambda m, n: m)


@gpipe.mistake
def stored_by_the_turn(weights, x, *, mesh):
    """What the last stage makes in turn t is stored in place t. But in turn t microbatch t is only entering the first
    stage. Which one is on the last stage then?"""
    return _gpipe(weights, x, mesh, place=lambda t, n: t)


@gpipe.mistake
def stored_one_place_off(weights, x, *, mesh):
    """The results stand one place off. With S stages a microbatch moves on S − 1 times: it enters the last stage in
    the turn of its own number plus S − 1."""
    return _gpipe(weights, x, mesh, place=lambda t, n: t - n)


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
            h = _layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            k = t - (n - 1)
            out = jnp.where(k >= 0, out.at[jnp.maximum(k, 0)].set(h), out)
            return (_send(h, n), out), None

        start = jnp.zeros(x.shape[1:]), jnp.zeros(x.shape)
        return lax.psum(lax.scan(turn, start, jnp.arange(m + n - 1))[0][1], "stage")

    return device_map(body, mesh, (P("stage"), P()), P())(weights, x)


@gpipe.mistake
def multiplied_by_a_mask(weights, x, *, mesh):
    """Places that nobody has filled hold NaN, and a mask of zeros does not help: 0 · NaN is NaN. `jnp.where` chooses,
    and looks at nothing else."""
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
    return _gpipe(weights, x, mesh, fed=lambda me: me >= 0)


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
            h = _layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            return _send(h, n), lax.psum(jnp.where(me == n - 1, h, 0), "stage")

        return lax.scan(turn, jnp.zeros(x.shape[1:]), jnp.arange(m + n - 1))[1][n - 1 :]

    return device_map(body, mesh, (P("stage"), P()), P())(weights, x)


@gpipe.mistake
def gathered_the_weights(weights, x, *, mesh):
    """The result is right, but every device has all the weights and computes all stages. A pipeline sends
    activations, and no weight ever leaves its device."""

    def body(w, x):
        return _through(lax.all_gather(w, "stage", tiled=True), x)

    return device_map(body, mesh, (P("stage"), P()), P())(weights, x)


# Its gradient. The loss leaves out what is only padding.


def _loss(weights, x, y, real):
    """The mean squared error of a real example; `real` is 1 for these and 0 for padding."""
    errors = jnp.sum((_through(weights, x) - y) ** 2, axis=-1)
    return jnp.sum(real * errors) / jnp.sum(real)


gpipe_gradient = _exercise("gpipe_gradient", points=5, reference=jax.value_and_grad(_loss))


@gpipe_gradient.cases
def _(draw):
    mesh = draw.mesh("stage")
    n, (m, b, d) = mesh["stage"], _lengths(draw)
    real = (draw.rng.permutation(m * b) < 0.7 * m * b).astype(np.float32).reshape(m, b)
    real[:, 0], real[0] = 1, 1  # every microbatch has a real example, and one is full
    turns = m + n - 1
    return Case(
        {
            "weights": _small(draw, n, d, d, spec=P("stage")),
            "x": _small(draw, m, b, d, spec=P()),
            "y": _small(draw, m, b, d, spec=P()),
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
                h = _layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                k = place(t, n)
                here = (k >= 0) & (k < m) & ((me == n - 1) | (not last))
                k = jnp.clip(k, 0, m - 1)
                total += jnp.where(here, error(h, y[k], real[k]), 0)
                return (_send(h, n), total), None

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
    """You averaged each microbatch, and then the averages. Where microbatches have different numbers of real
    examples, those of a nearly empty one count more. Add up errors, and divide once by the number of all real
    ones."""

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
def too_few_turns(weights, x, y, real, *, mesh):
    """The last S − 1 microbatches never reach the loss: there are as many turns as microbatches. Their gradients are
    missing, and nothing fails."""
    return _gradient(weights, x, y, real, mesh, turns=lambda m, n: m)


@gpipe_gradient.mistake
def mean_over_the_stages(weights, x, y, real, *, mesh):
    """The loss is S times too small, and so is the gradient. One stage has a loss and the others have zeros: their
    *sum* is the loss, their mean is not."""
    return _gradient(weights, x, y, real, mesh, summed=lambda total: lax.pmean(total, "stage"))


@gpipe_gradient.mistake
def mean_of_the_gradients(weights, x, y, real, *, mesh):
    """The gradients of different stages are averaged. They belong to different layers: stage 2's weights have no
    share in the gradient of stage 1. Over which axis would there be copies?"""
    return _gradient(weights, x, y, real, mesh, after=lambda g: varying(lax.pmean(g, "stage"), "stage"))


@gpipe_gradient.mistake
def check_turned_off(weights, x, y, real, *, mesh):
    """The loss is right and every gradient is S times too large. With shard_map's check off, a psum is a psum on the
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
                h = _layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                k = t - (n - 1)
                out = jnp.where((me == n - 1) & (k >= 0), out.at[jnp.maximum(k, 0)].set(h), out)
                return (_send(h, n), out), None

            start = varying((jnp.zeros(x.shape[1:]), jnp.zeros(x.shape)), "stage")
            out = lax.psum(lax.scan(turn, start, jnp.arange(m + n - 1))[0][1], "stage")
            return _masked_error(out, y, real) / jnp.sum(real)

        return jax.value_and_grad(loss)(w)

    return device_map(body, mesh, (P("stage"), P(), P(), P()), (P(), P("stage")), True)(weights, x, y, real)


# The backward pass of a stage of several layers, in two parts.


def _stage(weights, h):
    """Layer after layer, in a scan, as deep networks are written."""
    return lax.scan(lambda h, w: (_layer(w, h), None), h, weights)[0]


def _both_gradients(weights, x, g):
    """`weights` [S, L, D, D], `x` and `g` [S, B, D]: (the gradients that each stage is sent, those of the
    weights)."""
    back = [jax.vjp(_stage, w, h)[1](one) for w, h, one in zip(weights, x, g, strict=True)]
    return jnp.stack([h for _, h in back[1:]] + [back[0][1]]), jnp.stack([w for w, _ in back])


split_backward = _exercise("split_backward", points=5, reference=_both_gradients)
LAYERS = 3


@split_backward.cases
def _(draw):
    mesh = draw.mesh("stage")
    n, (b, d) = mesh["stage"], draw.lengths(2, divisible_by=2)
    spec = P("stage")
    return Case(
        {
            "weights": _small(draw, n, LAYERS, d, d, spec=spec),
            "x": _small(draw, n, b, d, spec=spec),
            "g": _small(draw, n, b, d, spec=spec),
        },
        mesh,
        out=(spec, spec),
        limits=[
            Turns({"collective_permute": 1}),
            BytesSent(b * d * FLOAT),
            Meanwhile(LAYERS * 2 * b * d * d),
            Flops(LAYERS * 10 * b * d * d),
        ],
    )


def _split(
    weights, x, g, mesh, *, by: int = -1, gradient: Callable[..., Any] = lambda g, of_h, on: g, sent: bool = True
):
    """B, send, W."""
    n = mesh.shape["stage"]

    def body(weights, x, g):
        weights, h, g = weights[0], x[0], g[0]
        (of_h,) = jax.vjp(lambda h: _stage(weights, h), h)[1](g)
        on = _send(of_h, n, by) if sent else of_h
        (of_weights,) = jax.vjp(lambda w: _stage(w, h), weights)[1](gradient(g, of_h, on))
        return on[None], of_weights[None]

    return device_map(body, mesh, (P("stage"),) * 3, (P("stage"), P("stage")))(weights, x, g)


@split_backward.mistake
def both_at_once(weights, x, g, *, mesh):
    """The gradients are right, but one `vjp` makes both in one loop over the layers, and the stage before waits for
    the whole of it. Ask for the gradient of the *input* alone, send it, and make that of the weights meanwhile."""
    n = mesh.shape["stage"]

    def body(weights, x, g):
        of_weights, of_h = jax.vjp(_stage, weights[0], x[0])[1](g[0])
        return _send(of_h, n, -1)[None], of_weights[None]

    return device_map(body, mesh, (P("stage"),) * 3, (P("stage"), P("stage")))(weights, x, g)


@split_backward.mistake
def sent_on(weights, x, g, *, mesh):
    """The gradient of a stage's input went to the *next* stage. On the way back everything runs the other way: who
    made this input?"""
    return _split(weights, x, g, mesh, by=1)


@split_backward.mistake
def not_sent(weights, x, g, *, mesh):
    """Every stage kept the gradient of its input. It is the stage before that waits for it."""
    return _split(weights, x, g, mesh, sent=False)


@split_backward.mistake
def gradient_of_the_input_for_the_weights(weights, x, g, *, mesh):
    """For the weights you went backward from the gradient of the *input*. Both start from the same: the gradient of
    the stage's output, g."""
    return _split(weights, x, g, mesh, gradient=lambda g, of_h, on: of_h)


@split_backward.mistake
def went_on_from_what_came(weights, x, g, *, mesh):
    """For the weights you went backward from what the *transfer* brought, which is about another microbatch, and had
    to wait for it. What W needs was here before: weights, x and g."""
    return _split(weights, x, g, mesh, gradient=lambda g, of_h, on: on)


# Several rounds: layer r · S + d is on device d.


def _rounds(weights, x):
    return _through(weights.reshape(-1, *weights.shape[2:]), x)


circular = _exercise("circular", points=6, reference=_rounds)


@circular.cases
def _(draw):
    mesh = draw.mesh("stage")
    n, (b, d) = mesh["stage"], draw.lengths(2, divisible_by=2)
    rounds, groups = (3, 1) if draw.square else (2, 2)
    m = groups * n
    turns = rounds * m + n - 1
    return Case(
        {"weights": _small(draw, rounds, n, d, d, spec=P(None, "stage")), "x": _small(draw, m, b, d, spec=P())},
        mesh,
        out=P(),
        limits=[
            Turns({"collective_permute": turns, "all_reduce": 1}),
            BytesSent(turns * b * d * FLOAT + bytes_sent("all_reduce", m * b * d, n)),
            Flops(turns * 2 * b * d * d),
        ],
    )


def _in_groups(k, n, rounds, m):
    """S microbatches through all rounds, then the next S."""
    return k // n % rounds, k // (n * rounds) * n + k % n


def _circular(
    weights,
    x,
    mesh,
    *,
    turns: Callable[[int, int, int], int] = lambda rounds, m, n: rounds * m + n - 1,
    where: Callable[..., Any] = _in_groups,
    layer: Callable[[Any, int], Any] = lambda r, rounds: r,
    enters: Callable[[Any], Any] = lambda r: r == 0,
    leaves: Callable[[Any, int], Any] = lambda r, rounds: r == rounds - 1,
):
    n, m, rounds = mesh.shape["stage"], x.shape[0], weights.shape[0]

    def body(w, x):
        me = lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            r, k = where(t - me, n, rounds, m)
            h = jnp.where((me == 0) & enters(r), x[jnp.clip(k, 0, m - 1)], h)
            h = _layer(w[layer(r, rounds), 0], h)
            here = (me == n - 1) & leaves(r, rounds) & (t >= me) & (k >= 0) & (k < m)
            out = jnp.where(here, out.at[jnp.clip(k, 0, m - 1)].set(h), out)
            return (_send(h, n), out), None

        start = jnp.zeros(x.shape[1:]), jnp.zeros(x.shape)
        out = lax.scan(turn, start, jnp.arange(turns(rounds, m, n)))[0][1]
        return lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return device_map(body, mesh, (P(None, "stage"), P()), P())(weights, x)


@circular.mistake
def all_layers_of_a_device_at_once(weights, x, *, mesh):
    """Each device takes a microbatch through all its layers before it sends it on, as in GPipe. But its layers do not
    follow one another: after layer d comes layer d + 1, which is on the next device."""
    n, m = mesh.shape["stage"], x.shape[0]

    def body(w, x):
        me = lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = _through(w[:, 0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            k = t - (n - 1)
            out = jnp.where((me == n - 1) & (k >= 0), out.at[jnp.maximum(k, 0)].set(h), out)
            return (_send(h, n), out), None

        start = jnp.zeros(x.shape[1:]), jnp.zeros(x.shape)
        out = lax.scan(turn, start, jnp.arange(m + n - 1))[0][1]
        return lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return device_map(body, mesh, (P(None, "stage"), P()), P())(weights, x)


@circular.mistake
def drained_after_each_round(weights, x, *, mesh):
    """The result is right, but each round is a pipeline of its own, which fills and drains again: v bubbles in place
    of one. The first microbatch of the next round is back on device 0 just when the first round has no more for
    it."""
    n, m, rounds = mesh.shape["stage"], x.shape[0], weights.shape[0]

    def body(w, x):
        me = lax.axis_index("stage")
        for r in range(rounds):

            def turn(carry, t, w=w[r, 0], x=x):
                h, out = carry
                h = _layer(w, jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                k = t - (n - 1)
                out = jnp.where((me == n - 1) & (k >= 0), out.at[jnp.maximum(k, 0)].set(h), out)
                return (_send(h, n), out), None

            start = jnp.zeros(x.shape[1:]), jnp.zeros(x.shape)
            out = lax.scan(turn, start, jnp.arange(m + n - 1))[0][1]
            x = lax.psum(jnp.where(me == n - 1, out, 0), "stage")
        return x

    return device_map(body, mesh, (P(None, "stage"), P()), P())(weights, x)


@circular.mistake
def no_turns_to_drain(weights, x, *, mesh):
    """v · M turns are those in which device 0 works. The last device begins S − 1 turns later, and ends so."""
    return _circular(weights, x, mesh, turns=lambda rounds, m, n: rounds * m)


@circular.mistake
def fresh_input_in_every_round(weights, x, *, mesh):
    """Device 0 takes its microbatch from x in every round, and what came back from the last device is lost. In which
    round does a microbatch enter?"""
    return _circular(weights, x, mesh, enters=lambda r: r >= 0)


@circular.mistake
def took_it_out_after_the_first_round(weights, x, *, mesh):
    """The last device takes its outputs out after the first round. A microbatch passes it v times: which time is the
    last?"""
    return _circular(weights, x, mesh, leaves=lambda r, rounds: r == 0)


@circular.mistake
def the_same_layer_in_every_round(weights, x, *, mesh):
    """Every device uses its first layer in all rounds. It holds v of them: which one is due in round r?"""
    return _circular(weights, x, mesh, layer=lambda r, rounds: 0)


@circular.mistake
def last_layer_first(weights, x, *, mesh):
    """The rounds take the layers of a device from the last to the first. That is the order of the backward pass."""
    return _circular(weights, x, mesh, layer=lambda r, rounds: rounds - 1 - r)


@circular.mistake
def all_microbatches_in_a_round(weights, x, *, mesh):
    """You send all M microbatches through round 0 before round 1 begins. Device 0 then gets microbatch 0 back after S
    turns, and is not ready for it until turn M: with M > S it is lost. Take S microbatches through all rounds, then
    the next S. (Or keep what comes too early, as MaxText does.)"""
    return _circular(weights, x, mesh, where=lambda k, n, rounds, m: (k // m % rounds, k % m))


# With data parallelism: the gradients are reduced once.


def _mean_square(weights, x):
    return jnp.mean(_through(weights, x) ** 2)


pp_dp = Exercise("pp_dp", points=5, reference=jax.value_and_grad(_mean_square), mesh_shapes=((4, 2), (2, 4), (2, 2)))


@pp_dp.cases
def _(draw):
    mesh = draw.mesh("stage", "data")
    n, copies = mesh["stage"], mesh["data"]
    m, d = draw.lengths(2, divisible_by=2)
    b = copies * int(draw.rng.integers(2, 4))
    turns = m + n - 1
    return Case(
        {"weights": _small(draw, n, d, d, spec=P("stage")), "x": _small(draw, m, b, d, spec=P(None, "data"))},
        mesh,
        out=(P(), P("stage")),
        limits=[
            Turns({"collective_permute": 2 * turns, "all_reduce": 3}),
            BytesSent(
                2 * turns * b // copies * d * FLOAT
                + bytes_sent("all_reduce", d * d, copies)
                + bytes_sent("all_reduce", 1, copies)
                + bytes_sent("all_reduce", 1, n)
            ),
            Flops(turns * 6 * b // copies * d * d),
        ],
    )


def _both_axes(
    weights,
    x,
    mesh,
    *,
    copies: bool = True,
    loss_over: Callable[..., Any] = lambda value: value,
    value_after: Callable[..., Any] = lambda value: lax.pmean(value, "data"),
    after: Callable[..., Any] = lambda g: lax.pmean(g, "data"),
    check_vma: bool = True,
):
    n, m = mesh.shape["stage"], x.shape[0]
    both = ("stage", "data")

    def body(w, x):
        me = lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                h = _layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                total += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(h**2), 0)
                return (_send(h, n), total), None

            start = jnp.zeros(x.shape[1:]), jnp.zeros(())
            start = varying(start, both) if check_vma else start
            total = lax.scan(turn, start, jnp.arange(m + n - 1))[0][1]
            return loss_over(lax.psum(total, "stage") / x.size)

        value, g = jax.value_and_grad(loss)(varying(w, "data") if copies and check_vma else w)
        return value_after(value), after(g)

    specs = P("stage"), P(None, "data")
    return device_map(body, mesh, specs, (P(), P("stage")), check_vma)(weights, x)


def _mean_over_data(value):
    return lax.pmean(value, "data")


def _as_it_is(value):
    return value


@pp_dp.mistake
def reduced_in_every_turn(weights, x, *, mesh):
    """Loss and gradients are right, but in every turn of the backward pass there is an all_reduce over `data`. The
    weights enter the loop as copies, so every use of them adds its gradient up over the copies at once. Make them
    differ (*varying*) over `data` before the loop, and reduce their gradient once, after it."""
    return _both_axes(weights, x, mesh, copies=False, loss_over=_mean_over_data, value_after=_as_it_is, after=_as_it_is)


@pp_dp.mistake
def sum_in_place_of_the_mean(weights, x, *, mesh):
    """The gradients are too large by the number of copies. Each copy has the gradient of the mean over *its*
    examples: of all examples it is the mean of these."""
    return _both_axes(weights, x, mesh, after=lambda g: lax.psum(g, "data"))


@pp_dp.mistake
def never_reduced(weights, x, *, mesh):
    """The copies of a stage have different gradients, each from its own examples. Nothing adds them up, and after one
    step the copies are no copies any more."""
    return _both_axes(weights, x, mesh, after=_as_it_is, check_vma=False)


@pp_dp.mistake
def reduced_over_the_stages(weights, x, *, mesh):
    """The gradients of different stages are averaged too. Stages hold different layers; only over `data` are there
    copies of the same."""
    return _both_axes(weights, x, mesh, after=lambda g: varying(lax.pmean(g, ("stage", "data")), "stage"))


@pp_dp.mistake
def loss_of_one_copy(weights, x, *, mesh):
    """The gradients are right, but the loss is that of one copy's examples, and each copy has another."""
    return _both_axes(
        weights, x, mesh, value_after=lambda value: lax.psum(jnp.where(lax.axis_index("data") == 0, value, 0), "data")
    )


@pp_dp.mistake
def averaged_twice(weights, x, *, mesh):
    """The gradients are too small by the number of copies: the loss was averaged over `data` before it was
    differentiated, and its gradients were averaged again."""
    return _both_axes(weights, x, mesh, loss_over=_mean_over_data, value_after=_as_it_is)
