"""§ 6–7: the backward pass of a stage in two parts, and several rounds through the devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import BytesSent, Case, Flops, Meanwhile, Turns
from grader.lessons.pipelines.stages import on_stages, one_layer, send_on, small, through
from grader.lessons.shared import FLOAT, bytes_sent, device_map

# The backward pass of a stage of several layers, in two parts.


def _stage(weights, h):
    """Layer after layer, in a scan, as deep networks are written."""
    return lax.scan(lambda h, w: (one_layer(w, h), None), h, weights)[0]


def _both_gradients(weights, x, g):
    """`weights` [S, L, D, D], `x` and `g` [S, B, D]: (the gradients that each stage is sent, those of the
    weights)."""
    back = [jax.vjp(_stage, w, h)[1](one) for w, h, one in zip(weights, x, g, strict=True)]
    return jnp.stack([h for _, h in back[1:]] + [back[0][1]]), jnp.stack([w for w, _ in back])


split_backward = on_stages("split_backward", points=5, reference=_both_gradients)
LAYERS = 3


@split_backward.cases
def _(draw):
    mesh = draw.mesh("stage")
    n, (b, d) = mesh["stage"], draw.lengths(2, divisible_by=2)
    spec = P("stage")
    return Case(
        {
            "weights": small(draw, n, LAYERS, d, d, spec=spec),
            "x": small(draw, n, b, d, spec=spec),
            "g": small(draw, n, b, d, spec=spec),
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
        on = send_on(of_h, n, by) if sent else of_h
        (of_weights,) = jax.vjp(lambda w: _stage(w, h), weights)[1](gradient(g, of_h, on))
        return on[None], of_weights[None]

    return device_map(body, mesh, (P("stage"),) * 3, (P("stage"), P("stage")))(weights, x, g)


@split_backward.mistake
def both_at_once(weights, x, g, *, mesh):
    """The gradients are right, but those of the weights are made before the transfer, or behind it. (One `vjp` of both
    makes both in one loop over the layers.) Ask for the gradient of the *input* alone, send it, and make that of the
    weights meanwhile: what does it need of what is sent?"""
    n = mesh.shape["stage"]

    def body(weights, x, g):
        of_weights, of_h = jax.vjp(_stage, weights[0], x[0])[1](g[0])
        return send_on(of_h, n, -1)[None], of_weights[None]

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
    """This is what the weights get if one goes backward from the gradient of the *input*. Both start from the same: the
    gradient of the stage's output, g."""
    return _split(weights, x, g, mesh, gradient=lambda g, of_h, on: of_h)


@split_backward.mistake
def went_on_from_what_came(weights, x, g, *, mesh):
    """This is what the weights get if one goes backward from what the *transfer* brings, which is about another
    microbatch, and has to be waited for. What W needs was here before: weights, x and g."""
    return _split(weights, x, g, mesh, gradient=lambda g, of_h, on: on)


# Several rounds: layer r · S + d is on device d.


def _rounds(weights, x):
    return through(weights.reshape(-1, *weights.shape[2:]), x)


circular = on_stages("circular", points=6, reference=_rounds)


@circular.cases
def _(draw):
    mesh = draw.mesh("stage")
    n, (b, d) = mesh["stage"], draw.lengths(2, divisible_by=2)
    rounds, groups = (3, 2) if draw.square else (2, 3)
    m = groups * n
    turns = rounds * m + n - 1
    return Case(
        {"weights": small(draw, rounds, n, d, d, spec=P(None, "stage")), "x": small(draw, m, b, d, spec=P())},
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
    keeps: Callable[[Any, int], Any] = lambda me, n: me == n - 1,
):
    n, m, rounds = mesh.shape["stage"], x.shape[0], weights.shape[0]

    def body(w, x):
        me = lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            r, k = where(t - me, n, rounds, m)
            h = jnp.where((me == 0) & enters(r), x[jnp.clip(k, 0, m - 1)], h)
            h = one_layer(w[layer(r, rounds), 0], h)
            here = keeps(me, n) & leaves(r, rounds) & (t >= me) & (k >= 0) & (k < m)
            out = jnp.where(here, out.at[jnp.clip(k, 0, m - 1)].set(h), out)
            return (send_on(h, n), out), None

        start = jnp.zeros(x.shape[1:]), jnp.zeros(x.shape)
        out = lax.scan(turn, start, jnp.arange(turns(rounds, m, n)))[0][1]
        return lax.psum(jnp.where(keeps(me, n), out, 0), "stage")

    return device_map(body, mesh, (P(None, "stage"), P()), P())(weights, x)


@circular.mistake
def summed_without_a_mask(weights, x, *, mesh):
    """What all devices made in the last round is added up. Only what the last device made then has been through all
    layers: let the others have zeros in the psum."""
    return _circular(weights, x, mesh, keeps=lambda me, n: True)


@circular.mistake
def all_layers_of_a_device_at_once(weights, x, *, mesh):
    """Each device takes a microbatch through all its layers before it sends it on, as in GPipe. But its layers do not
    follow one another: after layer d comes layer d + 1, which is on the next device."""
    n, m = mesh.shape["stage"], x.shape[0]

    def body(w, x):
        me = lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = through(w[:, 0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            k = t - (n - 1)
            out = jnp.where((me == n - 1) & (k >= 0), out.at[jnp.maximum(k, 0)].set(h), out)
            return (send_on(h, n), out), None

        start = jnp.zeros(x.shape[1:]), jnp.zeros(x.shape)
        out = lax.scan(turn, start, jnp.arange(m + n - 1))[0][1]
        return lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return device_map(body, mesh, (P(None, "stage"), P()), P())(weights, x)


@circular.mistake
def drained_after_each_round(weights, x, *, mesh):
    """The result is right, but each round is a pipeline of its own, which fills and drains again: v bubbles in place
    of one. Microbatch 0 can be back on device 0 after S turns: what does its next round wait for?"""
    n, m, rounds = mesh.shape["stage"], x.shape[0], weights.shape[0]

    def body(w, x):
        me = lax.axis_index("stage")
        for r in range(rounds):

            def turn(carry, t, w=w[r, 0], x=x):
                h, out = carry
                h = one_layer(w, jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                k = t - (n - 1)
                out = jnp.where((me == n - 1) & (k >= 0), out.at[jnp.maximum(k, 0)].set(h), out)
                return (send_on(h, n), out), None

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
def neighbouring_layers_on_a_device(weights, x, *, mesh):
    """The layers were taken as if a device had neighbouring ones: layer 0 and 1 on device 0, and so on. Layer
    r · S + d is on device d. After layer 0 of device 0 comes which one, and who has it?"""
    rounds, n, *rest = weights.shape
    return _circular(jnp.swapaxes(weights.reshape(n, rounds, *rest), 0, 1), x, mesh)


@circular.mistake
def all_microbatches_in_a_round(weights, x, *, mesh):
    """Do all M microbatches go through round 0 before round 1 begins? Device 0 then gets microbatch 0 back after S
    turns, and is not ready for it until turn M: with M > S it is lost. Take S microbatches through all rounds, then the
    next S. (Or keep what comes too early, as MaxText does.)"""
    return _circular(weights, x, mesh, where=lambda k, n, rounds, m: (k // m % rounds, k % m))
