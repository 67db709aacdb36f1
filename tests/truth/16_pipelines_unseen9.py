"""Answers to lesson 16, ninth batch, written by a reader of the notebook only."""

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


def bubble__right_counted(stages, microbatches):
    steps = stages + microbatches - 1
    places = [(s, t) for s in range(stages) for t in range(steps)]
    idle = [1 for s, t in places if t < s or t - s >= microbatches]
    return len(idle) / len(places)


# Counted the idle places of one row, but divided by the places of the whole table.
def bubble__wrong_one_row(stages, microbatches):
    steps = microbatches + stages - 1
    idle = steps - microbatches
    return idle / (stages * steps)


# Saw the empty triangle while the pipeline fills, and forgot the second one while it runs dry.
def bubble__wrong_filling(stages, microbatches):
    waiting = sum(s for s in range(stages))  # stage s waits for s steps
    return waiting / (stages * (microbatches + stages - 1))


# Since the next exercise speaks of percent, this student returns percent here too.
def bubble__wrong_percent(stages, microbatches):
    return 100 * (1 - microbatches / (microbatches + stages - 1))


# Thinks that with fewer microbatches than stages no stage can be idle for longer than there are microbatches.
def bubble__wrong_short_batch(stages, microbatches):
    idle = min(stages - 1, microbatches)
    return idle / (idle + microbatches)


# ---------------------------------------------------------------- gpipe_gradient


def gpipe_gradient__right_row(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                k = t - (n - 1)
                at = jnp.clip(k, 0, m - 1)
                counts = (real[at] > 0) & (me == n - 1) & (k >= 0)  # [B]
                off = jnp.where(counts[:, None], h - y[at], 0)
                total = total + jnp.vdot(off, off)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total / real.sum(), "stage")

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Masks the padding where it enters the pipeline, and believes that it cannot count at the end any more.
def gpipe_gradient__wrong_entrance(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")
        x = x * real[:, :, None]

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                error = jnp.sum((h - y[jnp.maximum(t - (n - 1), 0)]) ** 2)
                total += jnp.where((me == n - 1) & (t >= n - 1), error, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / jnp.sum(real)

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Before turn n - 1 only zeros arrive on the last stage, "so nothing is added", and the maximum keeps the index legal.
def gpipe_gradient__wrong_zeros_add_nothing(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                k = jnp.maximum(t - (n - 1), 0)
                errors = (((h - y[k]) ** 2).sum(axis=-1) * real[k]).sum()
                total = total + jnp.where(me == n - 1, errors, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / real.sum()

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Remembers from data parallelism that a gradient is to be added up over the devices at the end, and does so over the stages.
def gpipe_gradient__wrong_summed_over_stages(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                k = jnp.maximum(t - n + 1, 0)
                errors = jnp.sum(real[k] * jnp.sum((h - y[k]) ** 2, -1))
                total = total + jnp.where((me == n - 1) & (t >= n - 1), errors, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / jnp.sum(real)

        value, gradient = jax.value_and_grad(loss)(w)
        gradient = jax.lax.psum(gradient, "stage")
        return value, varying(gradient)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Keeps the outputs as in gpipe, hands all of them to all devices, and only then compares: right numbers, a big all_reduce.
def gpipe_gradient__wrong_outputs_first(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, out = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                k = jnp.maximum(t - (n - 1), 0)
                out = out.at[k].set(jnp.where(t >= n - 1, h, out[k]))
                return (send(h), out), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(x.shape))
            _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            out = jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")
            return jnp.sum(real[..., None] * (out - y) ** 2) / jnp.sum(real)

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# ---------------------------------------------------------------- pp_dp


def pp_dp__right_before_the_loop(weights, x, *, mesh):
    n, m = mesh.shape["stage"], x.shape[0]

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def loss(w):
            mine = varying(w[0], "data")  # one use, outside of the loop

            def turn(carry, t):
                act, squares = carry
                act = layer(mine, jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = tuple(varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.pmean(jax.lax.psum(squares / x.size, "stage"), "data")

        return jax.value_and_grad(loss)(w)

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))
    return run(weights, x)


# Makes the weights vary and averages the gradients at the end, but leaves the pmean in the loss too: averaged twice.
def pp_dp__wrong_averaged_twice(weights, x, *, mesh):
    def on_device(w, x):
        me, n, m = jax.lax.axis_index("stage"), mesh.shape["stage"], len(x)

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = (varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, tuple(start), jnp.arange(m + n - 1))
            return jax.lax.pmean(jax.lax.psum(squares, "stage") / x.size, "data")

        value, gradient = jax.value_and_grad(loss)(varying(w, "data"))
        return value, jax.lax.pmean(gradient, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# Read that the weights have to vary over data, and marks them where they are used, which is inside the loop.
def pp_dp__wrong_marked_at_each_use(weights, x, *, mesh):
    n = mesh.shape["stage"]

    def on_device(w, x):
        me, m = jax.lax.axis_index("stage"), len(x)

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

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# Changed all the lines about data, and left the 4 of `natural` in: right on four stages only.
def pp_dp__wrong_four_stages(weights, x, *, mesh):
    def step(w, x):
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
    return jax.shard_map(step, mesh=mesh, in_specs=cut, out_specs=(P(), P("stage")))(weights, x)


# Averages only the loss, and when JAX complains that the gradient varies over data turns the check off.
def pp_dp__wrong_check_off(weights, x, *, mesh):
    n = mesh.shape["stage"]

    def step(w, x):
        me, m = jax.lax.axis_index("stage"), len(x)

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            (_, squares), _ = jax.lax.scan(turn, (jnp.zeros(x.shape[1:]), jnp.zeros(())), jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / x.size

        value, gradient = jax.value_and_grad(loss)(w)
        return jax.lax.pmean(value, "data"), gradient

    cut = P("stage"), P(None, "data")
    return jax.shard_map(step, mesh=mesh, in_specs=cut, out_specs=(P(), P("stage")), check_vma=False)(weights, x)
