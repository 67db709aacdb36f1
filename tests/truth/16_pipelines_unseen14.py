"""Answers to lesson 16, fourteenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- activations_held

activations_held__right_formula = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 8,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": min(4 - 0, 8),
    "1F1B, 4 stages, 8 microbatches: held on stage 3": min(4 - 3, 8),
    "1F1B, 8 stages, 4 microbatches: held on stage 0": min(8 - 0, 4),
}

# Thought that 1F1B holds S - s microbatches, and did not ask whether there are that many.
activations_held__wrong_uncapped = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 8,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": 4,
    "1F1B, 4 stages, 8 microbatches: held on stage 3": 1,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 8,
}

# Thought that under 1F1B every stage holds as many as there are stages, the last one too.
activations_held__wrong_uniform = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 8,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": 4,
    "1F1B, 4 stages, 8 microbatches: held on stage 3": 4,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 4,
}

# Took Megatron's number of warm-up passes, S - s - 1, for the number held, and forgot the one in work.
activations_held__wrong_warmup = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 8,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": 3,
    "1F1B, 4 stages, 8 microbatches: held on stage 3": 0,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 4,
}

# Thought that work piles up at the end of the pipeline: stage s holds s + 1, so the last one the most.
activations_held__wrong_reversed = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 8,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": 1,
    "1F1B, 4 stages, 8 microbatches: held on stage 3": 4,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 1,
}


# ---------------------------------------------------------------- bubble


def bubble__right_counted(stages, microbatches):
    """The part of all (stage, step) places in which a stage has nothing to do."""
    busy = {(s, s + m) for s in range(stages) for m in range(microbatches)}
    steps = 1 + max(step for _, step in busy)
    return (stages * steps - len(busy)) / (stages * steps)


# Thought of the bubble as Megatron's papers do: idle time as a part of the work, not of all places.
def bubble__wrong_ofwork(stages, microbatches):
    return (stages - 1) / microbatches


# Counted M + S steps: M at the first stage, and S more for the last microbatch's way (its first stage counted twice).
def bubble__wrong_steps(stages, microbatches):
    steps = stages + microbatches
    return (stages - 1) / steps


# Saw only the triangle of places before a stage's first microbatch, and forgot the one after its last.
def bubble__wrong_triangle(stages, microbatches):
    steps = stages + microbatches - 1
    idle = sum(s for s in range(stages))
    return idle / (stages * steps)


# Thought that, as in the exercise beside it, the bubble is given in percent.
def bubble__wrong_percent(stages, microbatches):
    return 100 * (stages - 1) / (stages + microbatches - 1)


# ---------------------------------------------------------------- circular


def circular__right_picked(weights, x, *, mesh):
    """Every microbatch of `x` through v rounds of S layers."""
    v, n, m = weights.shape[0], mesh.shape["stage"], len(x)
    # piece (v - 1) of microbatch i, done on the last device: in which turn?
    ready = np.array([i // n * v * n + (v - 1) * n + i % n + n - 1 for i in range(m)])

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(h, t):
            # only device 0 reads x, and its piece is t itself
            fresh = x[jnp.minimum(t // (v * n) * n + t % n, m - 1)]
            h = jnp.where((me == 0) & (t // n % v == 0), fresh, h)
            h = layer(w[(t - me) // n % v, 0], h)
            return send(h), h

        _, made = jax.lax.scan(turn, varying(jnp.zeros_like(x[0])), jnp.arange(v * m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, made[ready], 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# Thought that all M microbatches go through one round, and then all of them through the next (true only for M = S).
def circular__wrong_breadth(weights, x, *, mesh):
    v, n, m = weights.shape[0], mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            piece = t - me
            r = jnp.clip(piece // m, 0, v - 1)
            h = jnp.where((me == 0) & (t < m), x[jnp.minimum(t, m - 1)], h)
            h = layer(w[r, 0], h)
            keep = (piece >= 0) & (r == v - 1)
            out = jnp.where(keep, out.at[piece % m].set(h), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        (_, out), _ = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# Thought that the first dimension of the weights is the one over the devices, as in gpipe: P("stage"), and w[0, r].
def circular__wrong_cut(weights, x, *, mesh):
    v, n, m = weights.shape[0], mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            p = t - me
            r = p // n % v
            i = p // (v * n) * n + p % n
            taken = x[jnp.minimum(t // (v * n) * n + t % n, m - 1)]
            h = jnp.where((me == 0) & (r == 0), taken, h)
            h = layer(w[0, r], h)
            keep = (me == n - 1) & (r == v - 1) & (p >= 0)
            out = jnp.where(keep, out.at[i].set(h), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        (_, out), _ = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# Thought that all devices are in the same round at the same time: the round from the turn t, not from the piece t - d.
def circular__wrong_round(weights, x, *, mesh):
    v, n, m = weights.shape[0], mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            r = t // n % v
            h = jnp.where((me == 0) & (r == 0), x[jnp.minimum(t // (v * n) * n + t % n, m - 1)], h)
            h = layer(w[r, 0], h)
            last = t - (n - 1)  # the piece of the last device
            keep = (last >= 0) & (last // n % v == v - 1)
            out = jnp.where(keep, out.at[last // (v * n) * n + last % n].set(h), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        (_, out), _ = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# Thought that a result should go to all devices as soon as it is there: a psum in every turn, none behind the loop.
def circular__wrong_psums(weights, x, *, mesh):
    v, n, m = weights.shape[0], mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = jnp.where((me == 0) & (t // n % v == 0), x[jnp.minimum(t // (v * n) * n + t % n, m - 1)], h)
            h = layer(w[(t - me) // n % v, 0], h)
            done = jax.lax.psum(jnp.where(me == n - 1, h, 0), "stage")
            last = t - (n - 1)
            keep = (last >= 0) & (last // n % v == v - 1)
            out = jnp.where(keep, out.at[last // (v * n) * n + last % n].set(done), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), jnp.zeros_like(x)
        (_, out), _ = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))
        return out

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)
