"""§ 8: weights that are used in several places, whose gradients are to be sent once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, BytesSent, Case, Flops, ProgramExercise, Turns
from grader.jax_versions import varying
from grader.lessons.pipelines.stages import lengths, on_stages, one_layer, send_on, small, through
from grader.lessons.shared import FLOAT, bytes_sent, device_map

# With data parallelism: the gradients are reduced once.


def _mean_square(weights, x):
    return jnp.mean(through(weights, x) ** 2)


pp_dp = ProgramExercise(
    "pp_dp", points=5, reference=jax.value_and_grad(_mean_square), mesh_shapes=((4, 2), (2, 4), (2, 2))
)


@pp_dp.cases
def _(draw):
    mesh = draw.mesh("stage", "data")
    n, copies = mesh["stage"], mesh["data"]
    m, d = draw.lengths(2, divisible_by=2)
    b = copies * int(draw.rng.integers(2, 4))
    turns = m + n - 1
    return Case(
        {"weights": small(draw, n, d, d, spec=P("stage")), "x": small(draw, m, b, d, spec=P(None, "data"))},
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
    counts: Callable[..., Any] = lambda me, t, n: (me == n - 1) & (t >= n - 1),
    check_vma: bool = True,
):
    n, m = mesh.shape["stage"], x.shape[0]
    both = ("stage", "data")

    def body(w, x):
        me = lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                h = one_layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                total += jnp.where(counts(me, t, n), jnp.sum(h**2), 0)
                return (send_on(h, n), total), None

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
    """Loss and gradients are right, but in every turn of the backward pass there is an all_reduce over `data`. Where
    the weights enter the loop as copies, every use of them adds its gradient up over the copies at once. Make them
    differ (*varying*) over `data` before the loop, and reduce their gradient once, after it."""
    return _both_axes(weights, x, mesh, copies=False, loss_over=_mean_over_data, value_after=_as_it_is, after=_as_it_is)


@pp_dp.mistake
def sum_in_place_of_the_mean(weights, x, *, mesh):
    """The gradients are the right ones, times the number of copies. Each copy has the gradient of the mean over
    *its* examples: of all examples it is the mean of these."""
    return _both_axes(weights, x, mesh, after=lambda g: lax.psum(g, "data"))


@pp_dp.mistake
def averaged_what_was_added(weights, x, *, mesh):
    """The gradients are the right ones, times the number of copies. Where the weights do not vary over `data`, JAX has
    added them up already; a mean over `data` behind that changes nothing, as its terms are all the same. Make the
    weights *varying* over `data` before they are differentiated; then the mean is left to you."""
    return _both_axes(weights, x, mesh, copies=False)


@pp_dp.mistake
def added_by_jax(weights, x, *, mesh):
    """The gradients are the right ones, times the number of copies. Where the weights do not vary over `data`, JAX adds
    up the gradients of all copies, in every turn; and a mean is due. Make the weights *varying* over `data` before
    they are differentiated; then the mean is left to you, once, after the loop."""
    return _both_axes(weights, x, mesh, copies=False, after=_as_it_is)


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
    """The gradients are right, but the loss is that of one copy's examples alone. All copies have examples."""
    return _both_axes(
        weights, x, mesh, value_after=lambda value: lax.psum(jnp.where(lax.axis_index("data") == 0, value, 0), "data")
    )


@pp_dp.mistake
def squares_of_the_first_stage(weights, x, *, mesh):
    """What was added up is what the *first* stage makes, in every turn. It has been through one layer only, and nothing
    of the other layers is in the loss. Which stage has outputs, and from which turn on?"""
    return _both_axes(weights, x, mesh, counts=lambda me, t, n: me == 0)


@pp_dp.mistake
def squares_of_every_stage(weights, x, *, mesh):
    """The squares of all stages were added up, not only those of the last. Outputs have been through all layers: which
    stage has those, and from which turn on?"""
    return _both_axes(weights, x, mesh, counts=lambda me, t, n: t >= n - 1)


@pp_dp.mistake
def averaged_twice(weights, x, *, mesh):
    """The gradients are the right ones, divided by the number of copies. Is the loss averaged over `data` before it is
    differentiated, and are its gradients averaged again?"""
    return _both_axes(weights, x, mesh, loss_over=_mean_over_data, value_after=_as_it_is)


# One matrix on two stages: the embedding is also the last layer.


def _tied_loss(embedding, weights, tokens):
    """The mean square of the logits: as good a number as any that depends on all of them."""
    return jnp.mean((through(weights, embedding[tokens]) @ embedding.T) ** 2)


tied_embedding = on_stages("tied_embedding", points=5, reference=jax.value_and_grad(_tied_loss, argnums=(0, 1)))


@tied_embedding.cases
def _(draw):
    mesh = draw.mesh("stage")
    n, (m, b, d) = mesh["stage"], lengths(draw)
    v = 2 * d + 1
    turns = m + n - 1
    tokens = draw.rng.integers(0, v, size=(m, b)).astype(np.int32)
    return Case(
        {
            "embedding": small(draw, v, d, spec=P()),
            "weights": small(draw, n, d, d, spec=P("stage")),
            "tokens": Array(tokens, P()),
        },
        mesh,
        out=(P(), (P(), P("stage"))),
        limits=[
            Turns({"collective_permute": 2 * turns, "all_reduce": 2}),
            BytesSent(2 * turns * b * d * FLOAT + bytes_sent("all_reduce", v * d, n) + bytes_sent("all_reduce", 1, n)),
        ],
    )


def _tied(
    embedding,
    weights,
    tokens,
    mesh,
    *,
    differs: bool = True,
    summed: Callable[..., Any] = lambda g, me, n: lax.psum(g, "stage"),
    check_vma: bool = True,
):
    n, m = mesh.shape["stage"], tokens.shape[0]

    def body(e, w, tokens):
        me = lax.axis_index("stage")

        def loss(e, w):
            def turn(carry, t):
                h, total = carry
                h = one_layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], h))
                here = (me == n - 1) & (t >= n - 1)
                total += jnp.where(here, jnp.sum((h @ e.T) ** 2), 0)
                return (send_on(h, n), total), None

            start = jnp.zeros((*tokens.shape[1:], e.shape[1])), jnp.zeros(())
            start = varying(start, "stage") if check_vma else start
            total = lax.scan(turn, start, jnp.arange(m + n - 1))[0][1]
            total = lax.psum(total, "stage") if check_vma else total
            return total / (tokens.size * e.shape[0])

        own = varying(e, "stage") if differs and check_vma else e
        value, (of_e, of_w) = jax.value_and_grad(loss, argnums=(0, 1))(own, w)
        value = value if check_vma else lax.psum(value, "stage")
        return value, (summed(of_e, me, n), of_w)

    specs = P(), P("stage"), P()
    return device_map(body, mesh, specs, (P(), (P(), P("stage"))), check_vma)(embedding, weights, tokens)


@tied_embedding.mistake
def gradient_of_the_last_stage_only(embedding, weights, tokens, *, mesh):
    """The embedding's gradient is that of the last stage, where it makes the logits. It is used on the first stage,
    too: the gradients of *both* uses are added up."""
    return _tied(
        embedding, weights, tokens, mesh, summed=lambda g, me, n: lax.psum(jnp.where(me == n - 1, g, 0), "stage")
    )


@tied_embedding.mistake
def gradient_of_the_first_stage_only(embedding, weights, tokens, *, mesh):
    """The embedding's gradient is that of the first stage, where tokens become vectors. It makes the logits on the
    last stage, too: the gradients of *both* uses are added up."""
    return _tied(embedding, weights, tokens, mesh, summed=lambda g, me, n: lax.psum(jnp.where(me == 0, g, 0), "stage"))


@tied_embedding.mistake
def mean_of_both_uses(embedding, weights, tokens, *, mesh):
    """The embedding's gradient is S times too small. These are no copies that have seen other examples: each stage
    has the gradient of its own use, and they are added up."""
    return _tied(embedding, weights, tokens, mesh, summed=lambda g, me, n: lax.pmean(g, "stage"))


@tied_embedding.mistake
def uses_never_met(embedding, weights, tokens, *, mesh):
    """The gradient of each use of the embedding stayed on its own stage, and no stage has the whole. After one step the
    embedding of the first stage and that of the last are no longer the same."""
    return _tied(embedding, weights, tokens, mesh, summed=lambda g, me, n: g, check_vma=False)


@tied_embedding.mistake
def embedding_summed_in_every_turn(embedding, weights, tokens, *, mesh):
    """Everything is right, but the gradient of the embedding is added up over the stages in every turn, for each
    of its uses. Make it differ (*varying*) over `stage` before the loop, and add up once, after it."""
    return _tied(embedding, weights, tokens, mesh, differs=False, summed=lambda g, me, n: g)
