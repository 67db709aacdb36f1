"""Answers to lesson 16, twelfth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- timetable

timetable__right_sums = {
    "2 stages, 4 microbatches: steps": 4 + (2 - 1),
    "4 stages, 12 microbatches: idle steps of one stage": (12 + 4 - 1) - 12,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 4 - 2,
    "4 stages, 12 microbatches, waiting for each: steps": sum(4 for m in range(12)),
}

# This student thought that the last microbatch needs all S steps of its way behind the M steps of entering: S + M steps, S of them idle.
timetable__wrong_splusm = {
    "2 stages, 4 microbatches: steps": 6,
    "4 stages, 12 microbatches: idle steps of one stage": 4,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# This student counted the empty places of the whole table (all four rows), not those of one stage.
timetable__wrong_whole = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 12,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# This student thought that a stage further down is further on in the batch: microbatch = step + stage.
timetable__wrong_ahead = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 3,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 6,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# This student counted microbatches from 1 and, when each waits, only the S - 1 hops from stage to stage as a microbatch's time.
timetable__wrong_hops = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 3,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 3,
    "4 stages, 12 microbatches, waiting for each: steps": 36,
}


# ---------------------------------------------------------------- one_f_one_b


def one_f_one_b__right_counters(stages, microbatches):
    """For each stage its work, in order."""
    orders = []
    for s in range(stages):
        room, forward, backward, work = stages - s, 0, 0, []
        while backward < microbatches:
            if forward < microbatches and forward - backward < room:
                work.append(f"F{forward}")
                forward += 1
            else:
                work.append(f"B{backward}")
                backward += 1
        orders.append(work)
    return orders


# This student let the warm-up grow along the pipeline: stage s does s + 1 forward passes first (the last one S).
def one_f_one_b__wrong_reversed(stages, microbatches):
    orders = []
    for s in range(stages):
        warm_up = min(s + 1, microbatches)
        work = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            work.append(f"B{m}")
            if m + warm_up < microbatches:
                work.append(f"F{m + warm_up}")
        orders.append(work)
    return orders


# This student kept memory small by GPipe in rounds of S microbatches: all F of a round, then all B of it, and the next round.
def one_f_one_b__wrong_rounds(stages, microbatches):
    one = []
    for begin in range(0, microbatches, stages):
        group = range(begin, min(begin + stages, microbatches))
        one += [f"F{m}" for m in group] + [f"B{m}" for m in group]
    return [list(one) for _ in range(stages)]


# This student thought that a stage must cover the way to the end *and* the way back, so it takes 2 (S - s) - 1 forward passes before the first B.
def one_f_one_b__wrong_thereandback(stages, microbatches):
    def order(s):
        w = min(2 * (stages - s) - 1, microbatches)
        steady = [p for m in range(microbatches - w) for p in (f"B{m}", f"F{m + w}")]
        return [f"F{m}" for m in range(w)] + steady + [f"B{m}" for m in range(microbatches - w, microbatches)]

    return [order(s) for s in range(stages)]


# This student always warms up with S - s forward passes, without asking whether there are that many microbatches.
def one_f_one_b__wrong_nomin(stages, microbatches):
    orders = []
    for s in range(stages):
        warm_up = stages - s
        work = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            work.append(f"B{m}")
            if m + warm_up < microbatches:
                work.append(f"F{m + warm_up}")
        orders.append(work)
    return orders


# ---------------------------------------------------------------- pp_dp


def pp_dp__right_oncebeforeloop(weights, x, *, mesh):
    """(mean square of the outputs, its gradient with respect to the weights)."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def loss(w):
            own = varying(w, "data")[0]  # used many times below, but added up over the copies here, once

            def turn(carry, t):
                act, squares = carry
                act = layer(own, jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = tuple(varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.pmean(jax.lax.psum(squares, "stage") / x.size, "data")

        return jax.value_and_grad(loss)(w)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# This student copied `natural` with its 4 for the number of stages, and got everything else right.
def pp_dp__wrong_four(weights, x, *, mesh):
    def on_device(w, x):
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
    return jax.shard_map(on_device, mesh=mesh, in_specs=cut, out_specs=(P(), P("stage")))(weights, x)


# This student left the pmean in the loss and took the mean of the gradients as well: they are divided by the copies twice.
def pp_dp__wrong_twice(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")
        w = varying(w, "data")

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = (varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, tuple(start), jnp.arange(m + n - 1))
            return jax.lax.pmean(jax.lax.psum(squares, "stage") / x.size, "data")

        value, grads = jax.value_and_grad(loss)(w)
        return value, jax.lax.pmean(grads, "data")

    cut = P("stage"), P(None, "data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=cut, out_specs=(P(), P("stage")))(weights, x)


# This student marked the weights where they are used, in the turn, so that the sum over the copies is still in the loop.
def pp_dp__wrong_inturn(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(varying(w[0], "data"), jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = (varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, tuple(start), jnp.arange(m + n - 1))
            return jax.lax.pmean(jax.lax.psum(squares, "stage") / x.size, "data")

        return jax.value_and_grad(loss)(w)

    cut = P("stage"), P(None, "data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=cut, out_specs=(P(), P("stage")))(weights, x)


# This student took the mean of the gradients over all devices, stages too, as if all had the same layer.
def pp_dp__wrong_bothaxes(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

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

        value, grads = jax.value_and_grad(loss)(varying(w, "data"))
        return jax.lax.pmean(value, "data"), jax.lax.pmean(grads, ("stage", "data"))

    cut = P("stage"), P(None, "data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=cut, out_specs=(P(), P("stage")))(weights, x)
