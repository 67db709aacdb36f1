"""Answers to lesson 16, written by a reader of the notebook only."""

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


timetable__right_numbers = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 3,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}
# M + S
timetable__wrong_plus = {
    **timetable__right_numbers,
    "2 stages, 4 microbatches: steps": 6,
    "4 stages, 12 microbatches: idle steps of one stage": 4,
}
# idle before and after counted for all stages
timetable__wrong_idle = {**timetable__right_numbers, "4 stages, 12 microbatches: idle steps of one stage": 12}
# counts from 1
timetable__wrong_from_one = {
    **timetable__right_numbers,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 3,
}
# b = t + s
timetable__wrong_added = {**timetable__right_numbers, "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 6}
# waiting: one after the other still overlaps by one
timetable__wrong_waiting = {
    **timetable__right_numbers,
    "4 stages, 12 microbatches, waiting for each: steps": 12 * 3 + 1,
}


def _gpipe(body, check=True):
    def program(weights, x, mesh):
        return jax.shard_map(body, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P(), check_vma=check)(weights, x)

    return program


def gpipe__right_stacked(weights, x, *, mesh):
    """What every turn makes is stacked by the scan; the last M are the results."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(h, t):
            h = layer(w[0], jnp.where(me == 0, x[jnp.clip(t, 0, m - 1)], h))
            return send(h), h

        _, made = jax.lax.scan(turn, varying(jnp.zeros_like(x[0])), jnp.arange(m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, made[n - 1 :], 0), "stage")

    return _gpipe(on_device)(weights, x, mesh)


def gpipe__wrong_first_m(weights, x, *, mesh):
    """The first M turns of the last stage."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(h, t):
            h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            return send(h), h

        _, made = jax.lax.scan(turn, varying(jnp.zeros_like(x[0])), jnp.arange(m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, made[:m], 0), "stage")

    return _gpipe(on_device)(weights, x, mesh)


def gpipe__wrong_turns(weights, x, *, mesh):
    """M + S turns."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(h, t):
            h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            return send(h), h

        _, made = jax.lax.scan(turn, varying(jnp.zeros_like(x[0])), jnp.arange(m + n))
        return jax.lax.psum(jnp.where(me == n - 1, made[n:], 0), "stage")

    return _gpipe(on_device)(weights, x, mesh)


def gpipe__wrong_all_summed(weights, x, *, mesh):
    """The psum without a mask."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(h, t):
            h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            return send(h), h

        _, made = jax.lax.scan(turn, varying(jnp.zeros_like(x[0])), jnp.arange(m + n - 1))
        return jax.lax.psum(made[n - 1 :], "stage")

    return _gpipe(on_device)(weights, x, mesh)


def gpipe__wrong_gathered_weights(weights, x, *, mesh):
    """Weights travel."""

    def on_device(w, x):
        for one in jax.lax.all_gather(w, "stage", tiled=True):
            x = layer(one, x)
        return x

    return _gpipe(on_device, check=False)(weights, x, mesh)


def gpipe__wrong_psum_each_turn(weights, x, *, mesh):
    """Outputs are sent in every turn."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(h, t):
            h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            return send(h), jax.lax.psum(jnp.where(me == n - 1, h, 0), "stage")

        _, made = jax.lax.scan(turn, varying(jnp.zeros_like(x[0])), jnp.arange(m + n - 1))
        return made[n - 1 :]

    return _gpipe(on_device)(weights, x, mesh)


def gpipe__wrong_first_stage(weights, x, *, mesh):
    """The first stage reads what came from the last one: no new microbatches."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(h, t):
            h = layer(w[0], jnp.where((me == 0) & (t == 0), x[0], h))
            return send(h), h

        _, made = jax.lax.scan(turn, varying(jnp.zeros_like(x[0])), jnp.arange(m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, made[n - 1 :], 0), "stage")

    return _gpipe(on_device)(weights, x, mesh)


def _pipeline_loss(weights, x, y, real, mesh, add, end):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                total = total + add(h, y, real, me, t, n)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            (_, total), _ = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))
            return end(total, real)

        return jax.value_and_grad(loss)(w)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(), P(), P()), out_specs=(P(), P("stage")))(
        weights, x, y, real
    )


def gpipe_gradient__right_helper(weights, x, y, real, *, mesh):
    """A masked sum."""

    def add(h, y, real, me, t, n):
        k = jnp.maximum(t - n + 1, 0)
        errors = jnp.einsum("bd,b->", (h - y[k]) ** 2, real[k])
        return errors * ((me == n - 1) & (t > n - 2))

    return _pipeline_loss(weights, x, y, real, mesh, add, lambda total, real: jax.lax.psum(total, "stage") / real.sum())


def gpipe_gradient__wrong_microbatch(weights, x, y, real, *, mesh):
    """Labels of microbatch t."""

    def add(h, y, real, me, t, n):
        k = jnp.minimum(t, len(y) - 1)
        errors = (((h - y[k]) ** 2).sum(-1) * real[k]).sum()
        return jnp.where((me == n - 1) & (t >= n - 1), errors, 0)

    return _pipeline_loss(weights, x, y, real, mesh, add, lambda total, real: jax.lax.psum(total, "stage") / real.sum())


def gpipe_gradient__wrong_every_stage(weights, x, y, real, *, mesh):
    """All stages compare."""

    def add(h, y, real, me, t, n):
        k = jnp.maximum(t - (n - 1), 0)
        return jnp.where(t >= n - 1, (((h - y[k]) ** 2).sum(-1) * real[k]).sum(), 0)

    return _pipeline_loss(weights, x, y, real, mesh, add, lambda total, real: jax.lax.psum(total, "stage") / real.sum())


def gpipe_gradient__wrong_padding(weights, x, y, real, *, mesh):
    """Padding counts in the sum."""

    def add(h, y, real, me, t, n):
        k = jnp.maximum(t - (n - 1), 0)
        return jnp.where((me == n - 1) & (t >= n - 1), ((h - y[k]) ** 2).sum(), 0)

    return _pipeline_loss(weights, x, y, real, mesh, add, lambda total, real: jax.lax.psum(total, "stage") / real.sum())


def gpipe_gradient__wrong_all_examples(weights, x, y, real, *, mesh):
    """Divided by all examples."""

    def add(h, y, real, me, t, n):
        k = jnp.maximum(t - (n - 1), 0)
        return jnp.where((me == n - 1) & (t >= n - 1), (((h - y[k]) ** 2).sum(-1) * real[k]).sum(), 0)

    return _pipeline_loss(weights, x, y, real, mesh, add, lambda total, real: jax.lax.psum(total, "stage") / real.size)


def gpipe_gradient__wrong_early_turns(weights, x, y, real, *, mesh):
    """The last stage counts what it makes before anything has come."""

    def add(h, y, real, me, t, n):
        k = jnp.maximum(t - (n - 1), 0)
        return jnp.where(me == n - 1, (((h - y[k]) ** 2).sum(-1) * real[k]).sum(), 0)

    return _pipeline_loss(weights, x, y, real, mesh, add, lambda total, real: jax.lax.psum(total, "stage") / real.sum())


def gpipe_gradient__wrong_mean_width(weights, x, y, real, *, mesh):
    """Mean over D."""

    def add(h, y, real, me, t, n):
        k = jnp.maximum(t - (n - 1), 0)
        return jnp.where((me == n - 1) & (t >= n - 1), (((h - y[k]) ** 2).mean(-1) * real[k]).sum(), 0)

    return _pipeline_loss(weights, x, y, real, mesh, add, lambda total, real: jax.lax.psum(total, "stage") / real.sum())


def gpipe_gradient__wrong_pmean(weights, x, y, real, *, mesh):
    """pmean of the totals."""

    def add(h, y, real, me, t, n):
        k = jnp.maximum(t - (n - 1), 0)
        return jnp.where((me == n - 1) & (t >= n - 1), (((h - y[k]) ** 2).sum(-1) * real[k]).sum(), 0)

    return _pipeline_loss(
        weights, x, y, real, mesh, add, lambda total, real: jax.lax.pmean(total, "stage") / real.sum()
    )


def one_f_one_b__right_queue(stages, microbatches):
    """Runs ahead by S - s, then takes turns."""
    orders = []
    for s in range(stages):
        order, f, b = [], 0, 0
        while b < microbatches:
            if f < microbatches and f - b < stages - s:
                order.append(f"F{f}")
                f += 1
            else:
                order.append(f"B{b}")
                b += 1
        orders.append(order)
    return orders


def one_f_one_b__wrong_gpipe(stages, microbatches):
    """All F, then all B: holds M microbatches."""
    return [[f"F{m}" for m in range(microbatches)] + [f"B{m}" for m in range(microbatches)] for _ in range(stages)]


def one_f_one_b__wrong_no_warm_up(stages, microbatches):
    """F and B in turns on all stages: takes too many steps."""
    return [[f"{kind}{m}" for m in range(microbatches) for kind in "FB"] for _ in range(stages)]


def one_f_one_b__wrong_reversed_warm_up(stages, microbatches):
    """Stage s warms up with s + 1: the first stage waits, the last one holds most."""
    orders = []
    for s in range(stages):
        warm = min(s + 1, microbatches)
        order = [f"F{m}" for m in range(warm)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m + warm < microbatches:
                order.append(f"F{m + warm}")
        orders.append(order)
    return orders


def one_f_one_b__wrong_few_microbatches(stages, microbatches):
    """Warm-up not limited by M: forward passes that do not exist."""
    orders = []
    for s in range(stages):
        warm = stages - s
        order = [f"F{m}" for m in range(warm)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m + warm < microbatches:
                order.append(f"F{m + warm}")
        orders.append(order)
    return orders


def one_f_one_b__wrong_last_missing(stages, microbatches):
    """The backward passes of the warm-up are left out at the end."""
    orders = []
    for s in range(stages):
        warm = min(stages - s, microbatches)
        order = [f"F{m}" for m in range(warm)]
        for m in range(microbatches - warm):
            order += [f"B{m}", f"F{m + warm}"]
        orders.append(order)
    return orders


def one_f_one_b__wrong_tuples(stages, microbatches):
    """One list of all stages' work, by steps of a stage, in place of one list each."""
    return [f"F{m}" for s in range(stages) for m in range(microbatches)] + [
        f"B{m}" for s in range(stages) for m in range(microbatches)
    ]
