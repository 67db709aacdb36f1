"""Answers to lesson 16, eighteenth batch, written by a reader of the notebook only."""

import math

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


# ---------------------------------------------------------------- activations_held

activations_held__right_formula = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 8,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": min(4 - 0, 8),
    "1F1B, 4 stages, 8 microbatches: held on stage 3": min(4 - 3, 8),
    "1F1B, 8 stages, 4 microbatches: held on stage 0": min(8 - 0, 4),
}

# Stage s holds S - s, and S does not depend on how many microbatches there are.
activations_held__wrong_uncapped = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 8,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": 4,
    "1F1B, 4 stages, 8 microbatches: held on stage 3": 1,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 8,
}

# The one that a stage is just working on is not held, only those that wait for their gradient: S - 1 - s.
activations_held__wrong_waiting = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 8,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": 3,
    "1F1B, 4 stages, 8 microbatches: held on stage 3": 0,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 4,
}

# The later a stage, the longer its microbatches are under way already, so stage s holds s + 1.
activations_held__wrong_reversed = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 8,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": 1,
    "1F1B, 4 stages, 8 microbatches: held on stage 3": 4,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 1,
}

# Never more than S microbatches are in a pipeline of S stages at a time, so GPipe holds 4, too.
activations_held__wrong_inside = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 4,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": 4,
    "1F1B, 4 stages, 8 microbatches: held on stage 3": 1,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 4,
}


# ---------------------------------------------------------------- microbatches


def microbatches__right_solved(stages, percent):
    # 100 (S-1) < p (M+S-1)   <=>   M > (S-1) (100-p) / p
    return max(1, int((stages - 1) * (100 - percent) // percent) + 1)


# Solved the equation bubble = percent and rounded up: where it comes out even the bubble is equal, not less.
def microbatches__wrong_equal(stages, percent):
    return max(1, math.ceil((stages - 1) * (100 - percent) / percent))


# The bubble is idle steps over working steps, (S-1)/M (the denominator without the bubble itself).
def microbatches__wrong_work(stages, percent):
    return int(100 * (stages - 1) // percent) + 1


# A pipeline must be full for once, so count from M = S on (fewer can do when many percent are allowed).
def microbatches__wrong_full(stages, percent):
    m = stages
    while 100 * (stages - 1) >= percent * (m + stages - 1):
        m += 1
    return m


# The rule of thumb "M = 4 S is a fifth" made general: M = S (100-p)/p, with S in place of S-1.
def microbatches__wrong_thumb(stages, percent):
    return max(1, math.ceil(stages * (100 - percent) / percent))


# ---------------------------------------------------------------- tied_embedding


def tied_embedding__right_inside(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)
    V, D = embedding.shape

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            e = varying(e)  # one use of what is the same everywhere: backwards one psum

            def turn(carry, t):
                h, squares = carry
                h = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], h))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((h @ e.T) ** 2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros((tokens.shape[1], D))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (tokens.size * V)

        return jax.value_and_grad(loss, argnums=(0, 1))(e, w)

    specs = (P(), P("stage"), P()), (P(), (P(), P("stage")))
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs[0], out_specs=specs[1])(embedding, weights, tokens)


# JAX adds up the gradient of what is the same everywhere by itself, so nothing is to be done (but it does so in each turn).
def tied_embedding__wrong_every_turn(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            def turn(carry, t):
                h, squares = carry
                h = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], h))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((h @ e.T) ** 2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (tokens.size * e.shape[0])

        return jax.value_and_grad(loss, argnums=(0, 1))(e, w)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))(
        embedding, weights, tokens
    )


# Copies of the same parameters have their gradients averaged, as over `data` in pp_dp.
def tied_embedding__wrong_averaged(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            def turn(carry, t):
                h, squares = carry
                h = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], h))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((h @ e.T) ** 2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (tokens.size * e.shape[0])

        value, (de, dw) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, (jax.lax.pmean(de, "stage"), dw)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))(
        embedding, weights, tokens
    )


# The loss is made on the last stage, so the gradient that counts is the last stage's; a masked psum hands it to all.
def tied_embedding__wrong_last_stage(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            def turn(carry, t):
                h, squares = carry
                h = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], h))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((h @ e.T) ** 2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (tokens.size * e.shape[0])

        value, (de, dw) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, (jax.lax.psum(jnp.where(me == n - 1, de, 0), "stage"), dw)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))(
        embedding, weights, tokens
    )


# As in `natural` the mean divides by the size of what goes into the pipeline, M B D (but there are M B V logits).
def tied_embedding__wrong_size(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            x = e[tokens]

            def turn(carry, t):
                h, squares = carry
                h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((h @ e.T) ** 2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / x.size

        value, (de, dw) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, (jax.lax.psum(de, "stage"), dw)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))(
        embedding, weights, tokens
    )
