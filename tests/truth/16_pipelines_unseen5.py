"""Answers to lesson 16, fifth batch, written by a reader of the notebook only."""

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


def bubble__right_one_minus(stages, microbatches):
    return 1 - microbatches / (microbatches + stages - 1)


# The student divides the idle steps by the working ones: idle for each step of work, not a part of all places.
def bubble__wrong_idle_over_work(stages, microbatches):
    return (stages - 1) / microbatches


# The last microbatch enters in step M, and has S stages before it: the student counts M + S steps.
def bubble__wrong_one_step_more(stages, microbatches):
    return (stages - 1) / (microbatches + stages)


# The idle places of one row are divided by the places of the whole table.
def bubble__wrong_one_row_of_all(stages, microbatches):
    return (stages - 1) / (stages * (microbatches + stages - 1))


# A stage waits while the pipeline fills and once more while it drains, S - 1 steps each, the student thinks.
def bubble__wrong_fill_and_drain(stages, microbatches):
    idle = 2 * (stages - 1)
    return idle / (microbatches + idle)


# ---------------------------------------------------------------- one_f_one_b


def one_f_one_b__right_slices(stages, microbatches):
    forwards, backwards = ([f"{kind}{m}" for m in range(microbatches)] for kind in "FB")
    orders = []
    for ahead in range(stages, 0, -1):  # so many forward passes before the first backward one
        order = forwards[:ahead]
        for m in range(microbatches):
            order += [backwards[m], *forwards[ahead + m : ahead + m + 1]]
        orders.append(order)
    return orders


# In the steady state the student goes forward first and backward then, and so holds one microbatch too many.
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


# Stage s is S - 1 - s stages away from the end, so the student warms up with one forward pass less: the last stage begins with B0.
def one_f_one_b__wrong_distance_to_the_end(stages, microbatches):
    orders = []
    for s in range(stages):
        warm_up = min(stages - 1 - s, microbatches)
        order = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        orders.append(order)
    return orders


# The student never thinks of fewer microbatches than stages, and lets the first stages warm up with some that do not exist.
def one_f_one_b__wrong_no_minimum(stages, microbatches):
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


# Every stage may hold S microbatches, so the student lets every stage take S before its first backward pass.
def one_f_one_b__wrong_all_warm_up_alike(stages, microbatches):
    warm_up = min(stages, microbatches)
    order = [f"F{m}" for m in range(warm_up)]
    for m in range(microbatches):
        order.append(f"B{m}")
        if m + warm_up < microbatches:
            order.append(f"F{m + warm_up}")
    return [list(order) for _ in range(stages)]


# ---------------------------------------------------------------- split_backward


def split_backward__right_two_grads(weights, x, g, *, mesh):
    def on_device(weights, x, g):
        def against_g(weights, x):
            h, _ = jax.lax.scan(lambda h, w: (layer(w, h), None), x[0], weights[0])
            return jnp.sum(h * g[0])

        came = send(jax.grad(against_g, argnums=1)(weights, x), -1)
        return came, jax.grad(against_g, argnums=0)(weights, x)

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# One vjp gives both gradients at once; the student sends the first right after it, and believes the second can wait.
def split_backward__wrong_one_vjp(weights, x, g, *, mesh):
    def stage(weights, h):
        return jax.lax.scan(lambda h, w: (layer(w, h), None), h, weights)[0]

    def on_device(weights, x, g):
        _, back = jax.vjp(stage, weights[0], x[0])
        for_weights, for_x = back(g[0])
        return send(for_x, -1)[None], for_weights[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# `send` sends to the stage before by itself on the way back, thinks the student (as a ppermute that is differentiated does).
def split_backward__wrong_sent_up(weights, x, g, *, mesh):
    def stage(weights, h):
        return jax.lax.scan(lambda h, w: (layer(w, h), None), h, weights)[0]

    def on_device(weights, x, g):
        weights, x, g = weights[0], x[0], g[0]
        (for_x,) = jax.vjp(lambda x: stage(weights, x), x)[1](g)
        came = send(for_x)
        (for_weights,) = jax.vjp(lambda weights: stage(weights, x), weights)[1](g)
        return came[None], for_weights[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# The gradient that comes from the next stage is that of this stage's output, so the student uses it, in place of g, for W.
def split_backward__wrong_weights_from_what_came(weights, x, g, *, mesh):
    def stage(weights, h):
        return jax.lax.scan(lambda h, w: (layer(w, h), None), h, weights)[0]

    def on_device(weights, x, g):
        weights, x, g = weights[0], x[0], g[0]
        (for_x,) = jax.vjp(lambda x: stage(weights, x), x)[1](g)
        came = send(for_x, -1)
        (for_weights,) = jax.vjp(lambda weights: stage(weights, x), weights)[1](came)
        return came[None], for_weights[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# Gradients of weights are added up over devices, as ever, thinks the student; but each stage has weights of its own.
def split_backward__wrong_weights_added_up(weights, x, g, *, mesh):
    def stage(weights, h):
        return jax.lax.scan(lambda h, w: (layer(w, h), None), h, weights)[0]

    def on_device(weights, x, g):
        weights, x, g = weights[0], x[0], g[0]
        (for_x,) = jax.vjp(lambda x: stage(weights, x), x)[1](g)
        came = send(for_x, -1)
        (for_weights,) = jax.vjp(lambda weights: stage(weights, x), weights)[1](g)
        return came[None], varying(jax.lax.psum(for_weights, "stage"))[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)
