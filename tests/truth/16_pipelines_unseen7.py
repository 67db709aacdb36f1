"""Answers to lesson 16, seventh batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
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


# ---------------------------------------------------------------- timetable

timetable__right_counted = {
    "2 stages, 4 microbatches: steps": 2 + 4 - 1,
    "4 stages, 12 microbatches: idle steps of one stage": (12 + 4 - 1) - 12,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# This student counted steps as stages + microbatches: the "minus one" is forgotten, and one idle step too many comes of it.
timetable__wrong_no_minus_one = {
    "2 stages, 4 microbatches: steps": 6,
    "4 stages, 12 microbatches: idle steps of one stage": 4,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# This student took the idle places of the whole table (four rows of three) for those of one stage.
timetable__wrong_whole_table = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 12,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# This student knew "step = m + s" and put the step in for m: 4 + 2.
timetable__wrong_added = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 3,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 6,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# This student let the next one enter while the one before is on the last stage (12 * 3 + 1), and numbered microbatches from 1.
timetable__wrong_overlap = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 3,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 3,
    "4 stages, 12 microbatches, waiting for each: steps": 37,
}


# ---------------------------------------------------------------- circular


def circular__right_picked(weights, x, *, mesh):
    """Keeps everything that was made, and picks afterwards the turns in which a microbatch was done."""
    n, v, m = mesh.shape["stage"], weights.shape[0], x.shape[0]
    numbers = np.arange(m)
    ready = (
        numbers // n * (v * n) + (v - 1) * n + numbers % n + (n - 1)
    )  # turn in which the last device makes m's result

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(h, t):
            piece = jnp.clip(t - me, 0, v * m - 1)
            group, rest = piece // (v * n), piece % (v * n)
            round_, which = rest // n, group * n + rest % n
            h = jnp.where((me == 0) & (round_ == 0), x[which], h)
            h = layer(w[round_, 0], h)
            return send(h), h

        made = jax.lax.scan(turn, varying(jnp.zeros_like(x[0])), jnp.arange(v * m + n - 1))[1]
        return jax.lax.psum(jnp.where(me == n - 1, made[ready], 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# As in the picture: all microbatches do round 0, then all do round 1. That is right only if there are as many as devices.
def circular__wrong_all_then_next(weights, x, *, mesh):
    v, m, n = len(weights), len(x), mesh.shape["stage"]

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            p = jnp.clip(t - me, 0, v * m - 1)
            r, which = p // m, p % m
            h = layer(w[r, 0], jnp.where((me == 0) & (r == 0), x[which], h))
            out = jnp.where(r == v - 1, out.at[which].set(h), out)
            return (send(h), out), None

        start = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        (_, out), _ = jax.lax.scan(turn, start, jnp.arange(v * m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# The round is taken from the turn, as if all devices changed to the next round together.
def circular__wrong_round_of_turn(weights, x, *, mesh):
    n = mesh.shape["stage"]
    v = weights.shape[0]
    m = x.shape[0]

    def on_device(w, x):
        me = jax.lax.axis_index("stage")
        w = w[:, 0]

        def turn(carry, t):
            h, out = carry
            r = t // n % v
            piece = jnp.clip(t - me, 0, v * m - 1)
            mb = piece // (v * n) * n + piece % n
            h = jnp.where((me == 0) & (r == 0), x[mb], h)
            h = layer(w[r], h)
            keep = (me == n - 1) & (r == v - 1)
            out = jnp.where(keep, out.at[mb].set(h), out)
            return (send(h), out), None

        _, out = jax.lax.scan(
            turn, (varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))), jnp.arange(v * m + n - 1)
        )[0]
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    f = jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())
    return f(weights, x)


# "A round is a gpipe": v pipelines one after the other, each with a bubble and an all_reduce of its own.
def circular__wrong_v_pipelines(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def one_round(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            out = jnp.where(t >= n - 1, out.at[jnp.maximum(t - (n - 1), 0)].set(h), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    for r in range(len(weights)):
        x = jax.shard_map(one_round, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights[r], x)
    return x


# Thought that only the last device ever writes into `out`, so that a plain psum brings it to all; but all of them write.
def circular__wrong_sum_of_all(weights, x, *, mesh):
    n, v, m = mesh.shape["stage"], len(weights), len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            p = t - me
            r = p // n % v
            k = jnp.clip(p // (v * n) * n + p % n, 0, m - 1)
            taken = jnp.where(r == 0, x[k], h)
            h = layer(w[r, 0], jnp.where(me == 0, taken, h))
            real = (p >= 0) & (p < v * m) & (r == v - 1)
            return (send(h), jnp.where(real, out.at[k].set(h), out)), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))[0]
        return jax.lax.psum(out, "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# ---------------------------------------------------------------- pp_dp


def pp_dp__right_cast_in_the_loss(weights, x, *, mesh):
    """The pmean stays in the loss; the weights are cast once, before the loop, and so summed once on the way back."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def loss(w):
            mine = varying(w, "data")[0]

            def turn(carry, t):
                act, squares = carry
                act = layer(mine, jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = tuple(varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.pmean(jax.lax.psum(squares, "stage") / x.size, "data")

        return jax.value_and_grad(loss)(w)

    cut = P("stage"), P(None, "data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=cut, out_specs=(P(), P("stage")))(weights, x)


# The natural program, made to work with any number of stages: the value is right, why change more?
def pp_dp__wrong_natural(weights, x, *, mesh):
    n = mesh.shape["stage"]

    def natural(w, x):
        me, m = jax.lax.axis_index("stage"), len(x)

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = (varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, tuple(start), jnp.arange(m + n - 1))
            return jax.lax.pmean(jax.lax.psum(squares, "stage") / x.size, "data")

        return jax.value_and_grad(loss)(w)

    return jax.shard_map(natural, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# Copied `natural` with its n = 4 inside, and mended only what the text speaks of: with two stages nobody is the last.
def pp_dp__wrong_four_stages(weights, x, *, mesh):
    def natural(w, x):
        me, n, m = jax.lax.axis_index("stage"), 4, len(x)

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = (varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, tuple(start), jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / x.size

        return jax.lax.pmean(jax.value_and_grad(loss)(varying(w, "data")), "data")

    cut = P("stage"), P(None, "data")
    return jax.shard_map(natural, mesh=mesh, in_specs=cut, out_specs=(P(), P("stage")))(weights, x)


# "Gradients of copies are added up": a psum for the gradient, though every copy's loss is a mean over its own examples.
def pp_dp__wrong_added(weights, x, *, mesh):
    n, m = mesh.shape["stage"], x.shape[0]

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = (varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, tuple(start), jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / x.size

        value, slope = jax.value_and_grad(loss)(varying(w, "data"))
        return jax.lax.pmean(value, "data"), jax.lax.psum(slope, "data")

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))
    return run(weights, x)


# Followed hints 2 and 3 but left the pmean in the loss as well, so the gradient is averaged twice.
def pp_dp__wrong_averaged_twice(weights, x, *, mesh):
    n = mesh.shape["stage"]

    def body(w, x):
        me, m = jax.lax.axis_index("stage"), len(x)
        w = varying(w, "data")

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                last = (me == n - 1) & (t >= n - 1)
                return (send(act), squares + jnp.where(last, jnp.sum(act**2), 0)), None

            start = (varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, tuple(start), jnp.arange(m + n - 1))
            return jax.lax.pmean(jax.lax.psum(squares, "stage") / x.size, "data")

        value, slope = jax.value_and_grad(loss)(w)
        return value, jax.lax.pmean(slope, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )
