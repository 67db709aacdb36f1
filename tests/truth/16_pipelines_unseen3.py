"""Answers to lesson 16, third batch, written by a reader of the notebook only."""

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

activations_held__right_all = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 8,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": 4,
    "1F1B, 4 stages, 8 microbatches: held on stage 3": 1,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 4,
}

# In 1F1B every stage holds as many as there are stages.
activations_held__wrong_stages = {
    **activations_held__right_all,
    "1F1B, 4 stages, 8 microbatches: held on stage 3": 4,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 8,
}

# One forward, one backward: there is never more than one microbatch under way, and one more on stage 0.
activations_held__wrong_one_each = {
    **activations_held__right_all,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": 2,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 2,
}

# ---------------------------------------------------------------- tied_embedding


def tied_embedding__right_local_loss(embedding, weights, tokens, *, mesh):
    (m, b), (vocabulary, d) = tokens.shape, embedding.shape

    def body(e, w, tokens):
        me, n = jax.lax.axis_index("stage"), jax.lax.axis_size("stage")

        def own_part(e, w):
            """What this stage contributes to the loss: only the last one does."""

            def turn(carry, t):
                h, total = carry
                h = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], h))
                out = jnp.sum(jnp.square(h @ e.T)) / (m * b * vocabulary)
                return (send(h), total + jnp.where((me == n - 1) & (t >= n - 1), out, 0)), None

            start = varying(jnp.zeros((b, d), e.dtype)), varying(jnp.zeros((), e.dtype))
            return jax.lax.scan(turn, start, jnp.arange(m + n - 1))[0][1]

        part, (of_e, of_w) = jax.value_and_grad(own_part, argnums=(0, 1))(varying(e), w)
        return jax.lax.psum(part, "stage"), (jax.lax.psum(of_e, "stage"), of_w)

    mapped = jax.shard_map(body, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return mapped(embedding, weights, tokens)


def _tied(embedding, weights, tokens, mesh, prepare, finish, use=lambda e: (e, e), size=None, lookup_at=0):
    def body(e, w, tokens):
        me, n, m = jax.lax.axis_index("stage"), jax.lax.axis_size("stage"), len(tokens)

        def loss(e, w):
            first, last = use(e)

            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == lookup_at, first[tokens[jnp.minimum(t, m - 1)]], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((act @ last.T) ** 2), 0)
                return (send(act), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (size or tokens.size * e.shape[0])

        value, (of_e, of_w) = jax.value_and_grad(loss, argnums=(0, 1))(prepare(e), w)
        return value, (finish(of_e), of_w)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))(
        embedding, weights, tokens
    )


# The embedding has a copy on each stage, and gradients of copies are averaged.
def tied_embedding__wrong_mean(embedding, weights, tokens, *, mesh):
    return _tied(embedding, weights, tokens, mesh, varying, lambda g: jax.lax.pmean(g, "stage"))


# It is whole and the same on all devices, so JAX adds its gradients up by itself: nothing to be done.
def tied_embedding__wrong_natural(embedding, weights, tokens, *, mesh):
    return _tied(embedding, weights, tokens, mesh, lambda e: e, lambda g: g)


# Only the logits teach it: in the look-up the embedding is just data.
def tied_embedding__wrong_one_use(embedding, weights, tokens, *, mesh):
    return _tied(
        embedding,
        weights,
        tokens,
        mesh,
        varying,
        lambda g: jax.lax.psum(g, "stage"),
        use=lambda e: (jax.lax.stop_gradient(e), e),
    )


# The mean over the outputs: tokens times features, as in the exercise before.
def tied_embedding__wrong_size(embedding, weights, tokens, *, mesh):
    return _tied(
        embedding,
        weights,
        tokens,
        mesh,
        varying,
        lambda g: jax.lax.psum(g, "stage"),
        size=tokens.size * embedding.shape[1],
    )


# ---------------------------------------------------------------- split_backward


def _layers(w, x):
    return jax.lax.scan(lambda h, one: (layer(one, h), None), x, w)[0]


def split_backward__right_dots(weights, x, g, *, mesh):
    def body(w, x, g):
        w, x, g = w[0], x[0], g[0]

        def stage(w, x):
            return jax.lax.scan(lambda h, one: (layer(one, h), None), x, w)[0]

        of_x = jax.grad(lambda x: jnp.vdot(stage(w, x), g))(x)
        came = send(of_x, -1)
        of_w = jax.grad(lambda w: jnp.vdot(stage(w, x), g))(w)
        return came[None], of_w[None]

    return jax.shard_map(body, mesh=mesh, in_specs=P("stage"), out_specs=P("stage"))(weights, x, g)


# One vjp gives both, and sending comes first in the text, so the weights' gradient can wait.
def split_backward__wrong_one_loop(weights, x, g, *, mesh):
    def body(w, x, g):
        _, back = jax.vjp(_layers, w[0], x[0])
        of_w, of_x = back(g[0])
        return send(of_x, -1)[None], of_w[None]

    return jax.shard_map(body, mesh=mesh, in_specs=P("stage"), out_specs=P("stage"))(weights, x, g)


# Backwards is what the backward pass does anyway; send hands on to the next one in the row.
def split_backward__wrong_forwards(weights, x, g, *, mesh):
    def body(w, x, g):
        w, x, g = w[0], x[0], g[0]
        _, back_x = jax.vjp(lambda x: _layers(w, x), x)
        came = send(back_x(g)[0])
        _, back_w = jax.vjp(lambda w: _layers(w, x), w)
        return came[None], back_w(g)[0][None]

    return jax.shard_map(body, mesh=mesh, in_specs=P("stage"), out_specs=P("stage"))(weights, x, g)


# The gradient of the output is what comes from the next stage, so W is made with what was just received.
def split_backward__wrong_received(weights, x, g, *, mesh):
    def body(w, x, g):
        w, x, g = w[0], x[0], g[0]
        _, back_x = jax.vjp(lambda x: _layers(w, x), x)
        came = send(back_x(g)[0], -1)
        _, back_w = jax.vjp(lambda w: _layers(w, x), w)
        return came[None], back_w(came)[0][None]

    return jax.shard_map(body, mesh=mesh, in_specs=P("stage"), out_specs=P("stage"))(weights, x, g)


# Nobody waits for W, so I make it first; then B, whose result belongs to the stage that made it, so I return it there.
def split_backward__wrong_not_sent(weights, x, g, *, mesh):
    def body(w, x, g):
        w, x, g = w[0], x[0], g[0]
        _, back_w = jax.vjp(lambda w: _layers(w, x), w)
        of_w = back_w(g)[0]
        _, back_x = jax.vjp(lambda x: _layers(w, x), x)
        return back_x(g)[0][None], of_w[None]

    return jax.shard_map(body, mesh=mesh, in_specs=P("stage"), out_specs=P("stage"))(weights, x, g)
