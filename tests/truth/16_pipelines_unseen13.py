"""Answers to lesson 16, thirteenth batch, written by a reader of the notebook only."""

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


def gpipe__right_stacked(weights, x, *, mesh):
    """Every microbatch of `x` through every stage."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(h, t):
            entering = jax.lax.dynamic_index_in_dim(x, jnp.minimum(t, m - 1), keepdims=False)
            made = layer(w[0], jnp.where(me == 0, entering, h))
            return send(made), made

        _, made = jax.lax.scan(turn, varying(jnp.zeros_like(x[0])), jnp.arange(m + n - 1))
        through = made[n - 1 :]  # the last stage's first n - 1 turns were bubble
        return jax.lax.psum(jnp.where(me == n - 1, through, jnp.zeros_like(through)), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# Thinks: the picture has four stages, so a microbatch comes out three turns after it went in.
def gpipe__wrong_three(weights, x, *, mesh):
    """Every microbatch of `x` through every stage."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            out = out.at[jnp.maximum(t - 3, 0)].set(h)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# Thinks: from turn n - 1 on only finished microbatches are kept, so what the psum adds up is theirs alone.
def gpipe__wrong_everyone(weights, x, *, mesh):
    """Every microbatch of `x` through every stage."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            out = jnp.where(t >= n - 1, out.at[jnp.maximum(t - (n - 1), 0)].set(h), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        return jax.lax.psum(out, "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# Thinks: what is taken in turn t is also what is made in turn t, so it is kept at the place it was taken from.
def gpipe__wrong_place(weights, x, *, mesh):
    """Every microbatch of `x` through every stage."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            which = jnp.minimum(t, m - 1)
            h = layer(w[0], jnp.where(me == 0, x[which], h))
            out = out.at[which].set(jnp.where(me == n - 1, h, 0))
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        return jax.lax.psum(out, "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# Thinks: each result is shown to all devices as soon as it is there, then nothing is left to do after the loop.
def gpipe__wrong_at_once(weights, x, *, mesh):
    """Every microbatch of `x` through every stage."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            finished = jax.lax.psum(jnp.where(me == n - 1, h, 0), "stage")
            out = jnp.where(t >= n - 1, out.at[jnp.maximum(t - (n - 1), 0)].set(finished), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), jnp.zeros_like(x)
        _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        return out

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


gpipe = gpipe__right_stacked

# ---------------------------------------------------------------- gpipe_gradient


def gpipe_gradient__right_afterwards(weights, x, y, real, *, mesh):
    """(loss, its gradient with respect to the weights)."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")
        counts = ((real > 0) & (me == n - 1))[..., None]  # [M, B, 1]: real examples, on the last stage

        def loss(w):
            def turn(h, t):
                h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                return send(h), h

            _, made = jax.lax.scan(turn, varying(jnp.zeros(x.shape[1:])), jnp.arange(m + n - 1))
            off = jnp.where(counts, made[n - 1 :] - y, 0)
            return jax.lax.psum(jnp.sum(off * off), "stage") / jnp.sum(real)

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Thinks: the mean over the batch is the mean over microbatches of each one's mean over its real examples.
def gpipe_gradient__wrong_means(weights, x, y, real, *, mesh):
    """(loss, its gradient with respect to the weights)."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                done = jnp.maximum(t - (n - 1), 0)
                off = jnp.where(real[done][:, None] > 0, h - y[done], 0)
                mean = jnp.sum(off**2) / jnp.maximum(jnp.sum(real[done]), 1)
                total += jnp.where((me == n - 1) & (t >= n - 1), mean, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / m

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Thinks: the labels of a turn are those of the microbatch that enters in this turn.
def gpipe_gradient__wrong_labels(weights, x, y, real, *, mesh):
    """(loss, its gradient with respect to the weights)."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                which = jnp.minimum(t, m - 1)
                h = layer(w[0], jnp.where(me == 0, x[which], h))
                off = jnp.where(real[which][:, None] > 0, h - y[which], 0)
                total += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(off**2), 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / jnp.sum(real)

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Thinks: padding adds nothing to the sum, so the mean is the sum divided by how many examples there are.
def gpipe_gradient__wrong_all_examples(weights, x, y, real, *, mesh):
    """(loss, its gradient with respect to the weights)."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                done = jnp.maximum(t - (n - 1), 0)
                off = jnp.where(real[done][:, None] > 0, h - y[done], 0)
                total += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(off**2), 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / real.size

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Thinks: the pipeline is written already, so differentiate it from outside; its one all_reduce is within the two allowed.
def gpipe_gradient__wrong_outputs_travel(weights, x, y, real, *, mesh):
    """(loss, its gradient with respect to the weights)."""

    def loss(weights):
        off = jnp.where(real[..., None] > 0, gpipe(weights, x, mesh=mesh) - y, 0)
        return jnp.sum(off**2) / jnp.sum(real)

    return jax.value_and_grad(loss)(weights)


# ---------------------------------------------------------------- split_backward


def split_backward__right_by_hand(weights, x, g, *, mesh):
    """(the gradients that came from the next stage, the gradients of the weights)."""

    def on_device(w, x, g):
        w, x, g = w[0], x[0], g[0]

        def forward(h, w):
            after = layer(w, h)
            return after, (h, after)

        _, (before, after) = jax.lax.scan(forward, x, w)

        def backward(g, one):
            w, after = one
            inner = g * (1 - after**2)  # the gradient of h @ w
            return inner @ w.T, inner

        g, inner = jax.lax.scan(backward, g, (w, after), reverse=True)
        came = send(g, -1)
        dw = jnp.einsum("lbi,lbj->lij", before, inner)
        return came[None], dw[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# Thinks: one vjp makes both gradients, and the send is written before anything uses those of the weights.
def split_backward__wrong_one_vjp(weights, x, g, *, mesh):
    """(the gradients that came from the next stage, the gradients of the weights)."""

    def stage(weights, x):
        return jax.lax.scan(lambda h, w: (layer(w, h), None), x, weights)[0]

    def on_device(w, x, g):
        _, back = jax.vjp(stage, w[0], x[0])
        dw, dx = back(g[0])
        return send(dx, -1)[None], dw[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# Thinks: send is the wire to the neighbour that waits, and "before" and "next" need no other argument.
def split_backward__wrong_upwards(weights, x, g, *, mesh):
    """(the gradients that came from the next stage, the gradients of the weights)."""

    def stage(weights, x):
        return jax.lax.scan(lambda h, w: (layer(w, h), None), x, weights)[0]

    def on_device(w, x, g):
        _, to_input = jax.vjp(lambda x: stage(w[0], x), x[0])
        came = send(to_input(g[0])[0])
        _, to_weights = jax.vjp(lambda w: stage(w, x[0]), w[0])
        return came[None], to_weights(g[0])[0][None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# Thinks: a stage's weights get their gradient from what came from the next stage, since that is the gradient of its output.
def split_backward__wrong_received(weights, x, g, *, mesh):
    """(the gradients that came from the next stage, the gradients of the weights)."""

    def stage(weights, x):
        return jax.lax.scan(lambda h, w: (layer(w, h), None), x, weights)[0]

    def on_device(w, x, g):
        _, to_input = jax.vjp(lambda x: stage(w[0], x), x[0])
        came = send(to_input(g[0])[0], -1)
        _, to_weights = jax.vjp(lambda w: stage(w, x[0]), w[0])
        return came[None], to_weights(came)[0][None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# Thinks: the gradient of a layer's weights is input^T times the gradient of its output; the tanh belongs to B only.
def split_backward__wrong_no_tanh(weights, x, g, *, mesh):
    """(the gradients that came from the next stage, the gradients of the weights)."""

    def on_device(w, x, g):
        w, h, g = w[0], x[0], g[0]
        inputs = []
        for one in w:
            inputs.append(h)
            h = layer(one, h)
        outputs = inputs[1:] + [h]
        grads = []  # of the layers' outputs, from the last layer to the first
        for one, after in zip(reversed(list(w)), reversed(outputs)):
            grads.append(g)
            g = (g * (1 - after**2)) @ one.T
        came = send(g, -1)
        dw = jnp.stack([before.T @ grad for before, grad in zip(inputs, reversed(grads))])
        return came[None], dw[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)
