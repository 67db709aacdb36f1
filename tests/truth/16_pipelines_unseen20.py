"""Answers to lesson 16, twentieth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

if len(jax.devices()) >= 4:
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

timetable__right_formulas = {
    "2 stages, 4 microbatches: steps": 2 + 4 - 1,
    "4 stages, 12 microbatches: idle steps of one stage": (4 + 12 - 1) - 12,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 4 - 2,
    "4 stages, 12 microbatches, waiting for each: steps": 12 * 4,
}

# The table is stages + microbatches wide (the first step is not shared by the two), so each stage is idle for 4 of 16.
timetable__wrong_without_minus_one = {
    "2 stages, 4 microbatches: steps": 6,
    "4 stages, 12 microbatches: idle steps of one stage": 4,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# Idle are all the empty places of the table: three for each of the four stages.
timetable__wrong_idle_of_all_stages = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 12,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# Deeper stages are further on: the number of the microbatch is step plus stage.
timetable__wrong_step_plus_stage = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 3,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 6,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# A stage waits S - 1 steps until the pipe is full and S - 1 again while it empties; and when each waits for the one
# before, a microbatch enters in the very step in which the one before is on the last stage.
timetable__wrong_fill_and_drain = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 6,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 37,
}


# ---------------------------------------------------------------- one_f_one_b


def one_f_one_b__right_counting(stages, microbatches):
    orders = []
    for s in range(stages):
        order, forward, backward = [], 0, 0
        while backward < microbatches:
            if forward < microbatches and forward - backward < stages - s:
                order.append(f"F{forward}")
                forward += 1
            else:
                order.append(f"B{backward}")
                backward += 1
        orders.append(order)
    return orders


# There are always more microbatches than stages, so the warm-up is simply S - s forward passes.
def one_f_one_b__wrong_more_microbatches_than_stages(stages, microbatches):
    orders = []
    for s in range(stages):
        warm_up = stages - s
        order = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        orders.append(order)
    return orders


# Each stage may hold S microbatches, so each one takes S before its first backward pass: the same warm-up for all.
def one_f_one_b__wrong_same_warm_up(stages, microbatches):
    orders = []
    for s in range(stages):
        warm_up = min(stages, microbatches)
        order = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        orders.append(order)
    return orders


# The name says "one forward, one backward": after the S - s of the warm-up the F of each pair comes first, then its B.
def one_f_one_b__wrong_forward_first(stages, microbatches):
    orders = []
    for s in range(stages):
        warm_up = min(stages - s, microbatches)
        order = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
            order.append(f"B{m}")
        orders.append(order)
    return orders


# The warm-up grows with the depth: stage s is s hops from the entry, so s + 1 microbatches are under way before it.
def one_f_one_b__wrong_depth_from_entry(stages, microbatches):
    orders = []
    for s in range(stages):
        warm_up = min(s + 1, microbatches)
        order = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        orders.append(order)
    return orders


# ---------------------------------------------------------------- split_backward


def split_backward__right_by_hand(weights, x, g, *, mesh):
    def on_device(weights, x, g):
        def forward(h, w):
            a = layer(w, h)
            return a, (h, a)

        def backward(g, saved):
            w, a = saved
            before_tanh = g * (1 - a**2)
            return before_tanh @ w.T, before_tanh

        _, (inputs, outputs) = jax.lax.scan(forward, x[0], weights[0])
        dx, kept = jax.lax.scan(backward, g[0], (weights[0], outputs), reverse=True)
        came = send(dx, -1)
        dw = jnp.einsum("lbi,lbo->lio", inputs, kept)
        return came[None], dw[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# One vjp gives both gradients; the two results are separate arrays, so the sending need not wait for W.
def split_backward__wrong_one_vjp(weights, x, g, *, mesh):
    def on_device(weights, x, g):
        def stage(ws, h):
            return jax.lax.scan(lambda h, w: (layer(w, h), None), h, ws)[0]

        _, back = jax.vjp(stage, weights[0], x[0])
        dw, dx = back(g[0])
        return send(dx, -1)[None], dw[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# `send` hands on along the pipeline, and jax.vjp has already turned everything round, so it is called as it is.
def split_backward__wrong_sent_forward(weights, x, g, *, mesh):
    def on_device(weights, x, g):
        def stage(ws, h):
            return jax.lax.scan(lambda h, w: (layer(w, h), None), h, ws)[0]

        dx = jax.vjp(lambda h: stage(weights[0], h), x[0])[1](g[0])[0]
        came = send(dx)
        dw = jax.vjp(lambda ws: stage(ws, x[0]), weights[0])[1](g[0])[0]
        return came[None], dw[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# What came from the next stage is the gradient of this stage's output, so W is computed from what came.
def split_backward__wrong_w_of_what_came(weights, x, g, *, mesh):
    def on_device(weights, x, g):
        def stage(ws, h):
            return jax.lax.scan(lambda h, w: (layer(w, h), None), h, ws)[0]

        dx = jax.vjp(lambda h: stage(weights[0], h), x[0])[1](g[0])[0]
        came = send(dx, -1)
        dw = jax.vjp(lambda ws: stage(ws, x[0]), weights[0])[1](came)[0]
        return came[None], dw[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# W of each layer needs only the layer's input and g, so all L layers of a stage can take the stage's g at once.
def split_backward__wrong_same_g_for_all_layers(weights, x, g, *, mesh):
    def on_device(weights, x, g):
        def stage(ws, h):
            return jax.lax.scan(lambda h, w: (layer(w, h), h), h, ws)

        dx = jax.vjp(lambda h: stage(weights[0], h)[0], x[0])[1](g[0])[0]
        came = send(dx, -1)
        inputs = stage(weights[0], x[0])[1]
        dw = jax.vmap(lambda w, h: jax.vjp(lambda w: layer(w, h), w)[1](g[0])[0])(weights[0], inputs)
        return came[None], dw[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)
