"""Answers to lesson 16, sixteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("stage",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def layer(w, h):
    """What a stage does: one layer."""
    return jnp.tanh(h @ w)


def send(h, by=1):
    """Send `h` to the next stage; from the last one it goes to the first."""
    n = jax.lax.axis_size("stage")
    return jax.lax.ppermute(h, "stage", [(s, (s + by) % n) for s in range(n)])


def varying(value, axes="stage"):
    """The same value, marked as one that may differ along these axes (`lax.pvary` until JAX 0.8.1)."""
    return jax.lax.pcast(value, axes, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(value, axes)


# ---------------------------------------------------------------- bubble


def bubble__right_complement(stages, microbatches):
    return 1 - microbatches / (stages + microbatches - 1)


# "The bubble is what is lost compared with the work": idle steps by working steps, not by all steps.
def bubble__wrong_by_work(stages, microbatches):
    return (stages - 1) / microbatches


# "Empty is the triangle on the left, until the first microbatch has come": the emptying at the end is forgotten.
def bubble__wrong_triangle(stages, microbatches):
    places = stages * (stages + microbatches - 1)
    return sum(range(stages)) / places


# "Stages and microbatches one after the other: the table has S + M steps."
def bubble__wrong_steps(stages, microbatches):
    steps = stages + microbatches
    return (stages - 1) / steps


# "The first stage has to wait for the other microbatches": M and S mixed up in the idle steps (right for M = S).
def bubble__wrong_swapped(stages, microbatches):
    return (microbatches - 1) / (microbatches + stages - 1)


# ---------------------------------------------------------------- microbatches


def microbatches__right_solved(stages, percent):
    fewest_steps = 100 * (stages - 1) // percent + 1  # the first number that is really larger
    return max(1, fewest_steps - (stages - 1))


# "At most that many percent will do": stops where the bubble is exactly `percent`.
def microbatches__wrong_at_most(stages, percent):
    m = 1
    while 100 * (stages - 1) > percent * (m + stages - 1):
        m += 1
    return m


# "The bubble is (S − 1) / M": compares the idle steps with the working steps.
def microbatches__wrong_by_work(stages, percent):
    m = 1
    while 100 * (stages - 1) >= percent * m:
        m += 1
    return m


# "Batches are powers of two": doubles M until it is enough, which need not be the fewest.
def microbatches__wrong_doubled(stages, percent):
    m = 1
    while 100 * (stages - 1) >= percent * (m + stages - 1):
        m *= 2
    return m


# "With fewer microbatches than stages a pipeline does not work": begins counting at M = S (wrong for more than 50 %).
def microbatches__wrong_full(stages, percent):
    m = stages
    while 100 * (stages - 1) >= percent * (m + stages - 1):
        m += 1
    return m


# ---------------------------------------------------------------- split_backward


def split_backward__right_by_hand(weights, x, g, *, mesh):
    def on_device(w, x, g):
        w, h, d = w[0], x[0], g[0]
        seen = [h]
        for one in w:
            seen.append(layer(one, seen[-1]))
        slopes = []
        for k in reversed(range(len(w))):
            inner = d * (1 - seen[k + 1] ** 2)
            slopes.insert(0, inner)
            d = inner @ w[k].T
        came = send(d, -1)
        dw = jnp.stack([a.T @ s for a, s in zip(seen[:-1], slopes)])
        return came[None], dw[None]

    spec = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(spec, spec, spec), out_specs=(spec, spec))(weights, x, g)


# "vjp gives me both gradients, I simply send the one of x first": but both come out of one loop, so W is over before the transfer.
def split_backward__wrong_one_loop(weights, x, g, *, mesh):
    def stage(w, h):
        return jax.lax.scan(lambda h, one: (layer(one, h), None), h, w)[0]

    def on_device(w, x, g):
        _, back = jax.vjp(stage, w[0], x[0])
        dw, dx = back(g[0])
        return send(dx, -1)[None], dw[None]

    spec = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(spec, spec, spec), out_specs=(spec, spec))(weights, x, g)


# "send sends to the neighbour": by default to the *next* stage (with two stages nobody notices).
def split_backward__wrong_upwards(weights, x, g, *, mesh):
    def stage(w, h):
        return jax.lax.scan(lambda h, one: (layer(one, h), None), h, w)[0]

    def on_device(w, x, g):
        w, x, g = w[0], x[0], g[0]
        dx = jax.vjp(lambda x: stage(w, x), x)[1](g)[0]
        came = send(dx)
        dw = jax.vjp(lambda w: stage(w, x), w)[1](g)[0]
        return came[None], dw[None]

    spec = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(spec, spec, spec), out_specs=(spec, spec))(weights, x, g)


# "What came from the next stage is the gradient of my output, so W needs that": but that is g already.
def split_backward__wrong_received(weights, x, g, *, mesh):
    def stage(w, h):
        for one in w:
            h = layer(one, h)
        return h

    def on_device(w, x, g):
        w, x, g = w[0], x[0], g[0]
        _, back_x = jax.vjp(lambda x: stage(w, x), x)
        came = send(back_x(g)[0], -1)
        _, back_w = jax.vjp(lambda w: stage(w, x), w)
        return came[None], back_w(came)[0][None]

    spec = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(spec, spec, spec), out_specs=(spec, spec))(weights, x, g)


# "Gradients of weights are always added up over the devices", as in DDP: but each stage has layers of its own.
def split_backward__wrong_allreduced(weights, x, g, *, mesh):
    def stage(w, h):
        return jax.lax.scan(lambda h, one: (layer(one, h), None), h, w)[0]

    def on_device(w, x, g):
        w, x, g = w[0], x[0], g[0]
        dx = jax.vjp(lambda x: stage(w, x), x)[1](g)[0]
        came = send(dx, -1)
        dw = jax.vjp(lambda w: stage(w, x), w)[1](g)[0]
        return came[None], jax.lax.psum(dw, "stage")[None]

    spec = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(spec, spec, spec), out_specs=(spec, spec))(weights, x, g)
