"""Answers to lesson 16, twenty-fourth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- gpipe


def gpipe__right_scan_outputs(weights, x, *, mesh):
    """Every turn hands out its h; the last m turns of the last stage are the result."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(h, t):
            h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            return send(h), h

        _, made = jax.lax.scan(turn, varying(jnp.zeros_like(x[0])), jnp.arange(m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, made[n - 1 :], 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# Thought: only the last stage has results, so a psum over the stages just spreads them (forgot that the others kept theirs too).
def gpipe__wrong_sum_of_all(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            out = out.at[jnp.maximum(t - (n - 1), 0)].set(h)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        return jax.lax.psum(out, "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# Thought: places come round like the turns, so the result of turn t goes to place t mod M (microbatches come out rotated).
def gpipe__wrong_rotated(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = layer(w[0], jnp.where(me == 0, x[t % m], h))
            out = out.at[t % m].set(h)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# Thought: the last stage is stage 3 and its first result comes in turn 3, as in the film (right on four stages only).
def gpipe__wrong_stage_three(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            out = jnp.where(t >= 3, out.at[t - 3].set(h), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        return jax.lax.psum(jnp.where(me == 3, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# Thought: give every result to all as soon as it is made, then `out` is the same everywhere (right values, a psum in every turn).
def gpipe__wrong_psum_each_turn(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            done = jax.lax.psum(jnp.where(me == n - 1, h, 0), "stage")
            out = out.at[jnp.maximum(t - (n - 1), 0)].set(done)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), jnp.zeros_like(x)
        _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        return out

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# ---------------------------------------------------------------- split_backward


def split_backward__right_unit_axis(weights, x, g, *, mesh):
    """Two vjps, the leading axis of one is kept."""

    def on_device(w, x, g):
        def stage(w, h):
            return jax.lax.scan(lambda h, one: (layer(one, h), None), h, w[0])[0]

        to_x = jax.vjp(lambda h: stage(w, h), x)[1]
        came = send(to_x(g)[0], by=-1)
        to_w = jax.vjp(lambda w: stage(w, x), w)[1]
        return came, to_w(g)[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"),) * 3, out_specs=P("stage"))(weights, x, g)


# Thought: one vjp has both gradients, and the send stands before the use of dw, so it is split (but both come from one loop).
def split_backward__wrong_one_loop(weights, x, g, *, mesh):
    def on_device(w, x, g):
        def stage(w, h):
            return jax.lax.scan(lambda h, one: (layer(one, h), None), h, w)[0]

        _, back = jax.vjp(stage, w[0], x[0])
        dw, dx = back(g[0])
        return send(dx, -1)[None], dw[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"),) * 3, out_specs=P("stage"))(weights, x, g)


# Thought: `send` sends to where it belongs; forgot that backwards the ring turns the other way.
def split_backward__wrong_forwards(weights, x, g, *, mesh):
    def on_device(w, x, g):
        def stage(w, h):
            return jax.lax.scan(lambda h, one: (layer(one, h), None), h, w)[0]

        came = send(jax.vjp(lambda h: stage(w[0], h), x[0])[1](g[0])[0])
        dw = jax.vjp(lambda w: stage(w, x[0]), w[0])[1](g[0])[0]
        return came[None], dw[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"),) * 3, out_specs=P("stage"))(weights, x, g)


# Thought: the gradient that came from the next stage is the gradient of my output, so W is made from it (g is that already).
def split_backward__wrong_from_received(weights, x, g, *, mesh):
    def on_device(w, x, g):
        def stage(w, h):
            return jax.lax.scan(lambda h, one: (layer(one, h), None), h, w)[0]

        came = send(jax.vjp(lambda h: stage(w[0], h), x[0])[1](g[0])[0], -1)
        dw = jax.vjp(lambda w: stage(w, x[0]), w[0])[1](came)[0]
        return came[None], dw[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"),) * 3, out_specs=P("stage"))(weights, x, g)


# Thought: layer by layer from the last one back, each with the stage's input x (right with one layer a stage only).
def split_backward__wrong_same_input(weights, x, g, *, mesh):
    def on_device(w, x, g):
        w, x, g = w[0], x[0], g[0]
        d, gradients = g, []
        for one in w[::-1]:
            gradients.insert(0, d)
            d = jax.vjp(lambda h: layer(one, h), x)[1](d)[0]
        came = send(d, -1)
        dw = [jax.vjp(lambda one: layer(one, x), one)[1](d)[0] for one, d in zip(w, gradients)]
        return came[None], jnp.stack(dw)[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"),) * 3, out_specs=P("stage"))(weights, x, g)


# ---------------------------------------------------------------- pp_dp


def pp_dp__right_sum_of_shares(weights, x, *, mesh):
    """Each copy's loss is its share of the whole mean; the shares are added up."""
    n, m = mesh.shape["stage"], len(x)
    size = x.size

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def share(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = tuple(varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / size

        value, gradient = jax.value_and_grad(share)(varying(w, "data"))
        return jax.lax.psum(value, "data"), jax.lax.psum(gradient, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# Thought: each device has its own gradient, and gradients are averaged over all devices, so over both axes.
def pp_dp__wrong_both_axes(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = tuple(varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / x.size

        value, gradient = jax.value_and_grad(loss)(varying(w, "data"))
        return jax.lax.pmean(value, "data"), jax.lax.pmean(gradient, ("stage", "data"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# Thought: the loss is a mean over data and so is the gradient, so a pmean in the loss and one of the gradient (divides twice).
def pp_dp__wrong_mean_of_mean(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = tuple(varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.pmean(jax.lax.psum(squares, "stage") / x.size, "data")

        value, gradient = jax.value_and_grad(loss)(varying(w, "data"))
        return value, jax.lax.pmean(gradient, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# Thought: took `natural` with its n = 4 and changed only the gradient's part (right on four stages only).
def pp_dp__wrong_four_stages(weights, x, *, mesh):
    def on_device(w, x):
        me, n, m = jax.lax.axis_index("stage"), 4, len(x)

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = tuple(varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / x.size

        return jax.lax.pmean(jax.value_and_grad(loss)(varying(w, "data")), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# Thought: the use is inside the loop, so there the weights have to be marked (each turn's mark adds up over data backwards).
def pp_dp__wrong_marked_in_turn(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(varying(w[0], "data"), jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = tuple(varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.pmean(jax.lax.psum(squares, "stage") / x.size, "data")

        return jax.value_and_grad(loss)(w)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )
