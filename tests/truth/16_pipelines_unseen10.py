"""Answers to lesson 16, tenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- tied_embedding


# Right: differentiated from outside; the embedding is marked once at the door, so its gradient is added up there once.
def tied_embedding__right_outside(embedding, weights, tokens, *, mesh):
    """(loss, (gradient of the embedding, gradient of the weights))."""
    n, m = mesh.shape["stage"], len(tokens)

    def loss_on_device(e, w, tokens):
        me, e = jax.lax.axis_index("stage"), varying(e)

        def turn(carry, t):
            h, squares = carry
            h = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], h))
            squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((h @ e.T) ** 2), 0)
            return (send(h), squares), None

        start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
        (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
        return jax.lax.psum(squares, "stage") / (tokens.size * e.shape[0])

    whole = jax.shard_map(loss_on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=P())
    return jax.value_and_grad(whole, argnums=(0, 1))(embedding, weights, tokens)


# Looks all tokens up once before the loss, to spare a lookup in every turn: so the loss does not know that h came from e.
def tied_embedding__wrong_lookup_outside(embedding, weights, tokens, *, mesh):
    def on_device(e, w, tokens):
        me, n, m = jax.lax.axis_index("stage"), jax.lax.axis_size("stage"), len(tokens)
        x = e[tokens]  # [M, B, D]

        def loss(e, w):
            def turn(carry, t):
                h, squares = carry
                h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((h @ e.T) ** 2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (tokens.size * e.shape[0])

        value, (de, dw) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, (jax.lax.psum(de, "stage"), dw)

    specs = dict(in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return jax.shard_map(on_device, mesh=mesh, **specs)(embedding, weights, tokens)


# Thinks only the lookup differs from stage to stage (it stands behind `me == 0`), so only there marks the embedding; the
# logits use it as it came, and send its gradient in every turn.
def tied_embedding__wrong_half_varying(embedding, weights, tokens, *, mesh):
    def on_device(e, w, tokens):
        me, n, m = jax.lax.axis_index("stage"), jax.lax.axis_size("stage"), len(tokens)

        def loss(e, w):
            first = varying(e)

            def turn(carry, t):
                h, squares = carry
                h = layer(w[0], jnp.where(me == 0, first[tokens[jnp.minimum(t, m - 1)]], h))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((h @ e.T) ** 2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (tokens.size * e.shape[0])

        return jax.value_and_grad(loss, argnums=(0, 1))(e, w)

    specs = dict(in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return jax.shard_map(on_device, mesh=mesh, **specs)(embedding, weights, tokens)


# Adds up *both* gradients over the stages, as one does with gradients; but a stage's layer has no copies on the others.
def tied_embedding__wrong_both_summed(embedding, weights, tokens, *, mesh):
    def on_device(e, w, tokens):
        me, n, m = jax.lax.axis_index("stage"), jax.lax.axis_size("stage"), len(tokens)

        def loss(e, w):
            def turn(carry, t):
                h, squares = carry
                h = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], h))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((h @ e.T) ** 2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (tokens.size * e.shape[0])

        value, grads = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, jax.lax.psum(grads, "stage")

    specs = dict(in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return jax.shard_map(on_device, mesh=mesh, **specs)(embedding, weights, tokens)


# Divides by the number of activations (M B D), as `x.size` did in `natural`; but there are M B V logits.
def tied_embedding__wrong_divided_by_activations(embedding, weights, tokens, *, mesh):
    def on_device(e, w, tokens):
        me, n, m = jax.lax.axis_index("stage"), jax.lax.axis_size("stage"), len(tokens)

        def loss(e, w):
            def turn(carry, t):
                h, squares = carry
                h = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], h))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((h @ e.T) ** 2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (h, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (m * h.size)

        value, (de, dw) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, (jax.lax.psum(de, "stage"), dw)

    specs = dict(in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return jax.shard_map(on_device, mesh=mesh, **specs)(embedding, weights, tokens)


# ---------------------------------------------------------------- microbatches


# Right: M > (S - 1)(100 - p) / p, in whole numbers; at least one.
def microbatches__right_solved(stages, percent):
    """The fewest microbatches with a bubble of less than `percent` percent."""
    return max(1, (stages - 1) * (100 - percent) // percent + 1)


# Compares two floats, one of them 1 − M / steps, and believes that equal ones come out equal: 1 − 12/15 < 20/100.
def microbatches__wrong_float(stages, percent):
    m = 1
    while not 1 - m / (m + stages - 1) < percent / 100:
        m += 1
    return m


# Takes the bubble as a part of the work, (S − 1) / M, as idle steps for each useful one.
def microbatches__wrong_part_of_work(stages, percent):
    m = 1
    while 100 * (stages - 1) >= percent * m:
        m += 1
    return m


# Begins to count at M = S, since with fewer microbatches than stages the pipeline is never full anyway.
def microbatches__wrong_from_stages(stages, percent):
    m = stages
    while 100 * (stages - 1) >= percent * (m + stages - 1):
        m += 1
    return m


# Rounds the bubble to whole percents before comparing, since `percent` is given in whole percents.
def microbatches__wrong_rounded(stages, percent):
    m = 1
    while round(100 * (stages - 1) / (m + stages - 1)) >= percent:
        m += 1
    return m


# ---------------------------------------------------------------- activations_held

# Right: by the formulas.
activations_held__right_formula = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 8,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": min(4 - 0, 8),
    "1F1B, 4 stages, 8 microbatches: held on stage 3": min(4 - 3, 8),
    "1F1B, 8 stages, 4 microbatches: held on stage 0": min(8 - 0, 4),
}

# Takes "S microbatches in place of M" for a number that every stage has.
activations_held__wrong_same_everywhere = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 8,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": 4,
    "1F1B, 4 stages, 8 microbatches: held on stage 3": 4,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 4,
}

# Counts only the microbatches that are ahead on other stages (S − 1 − s), and not the one that the stage is working on.
activations_held__wrong_ahead_only = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 8,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": 3,
    "1F1B, 4 stages, 8 microbatches: held on stage 3": 0,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 4,
}

# Thinks activations pile up towards the end of the pipeline: stage s holds s + 1.
activations_held__wrong_mirrored = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 8,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": 1,
    "1F1B, 4 stages, 8 microbatches: held on stage 3": 4,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 1,
}

# Thinks under GPipe as many are held as are in the pipeline at once, one for each stage: what went on to the next is let go.
activations_held__wrong_in_the_pipe = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 4,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": 4,
    "1F1B, 4 stages, 8 microbatches: held on stage 3": 1,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 4,
}
