"""Answers to lesson 16, fifteenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- timetable

timetable__right_formulas = {
    "2 stages, 4 microbatches: steps": 2 + 4 - 1,
    "4 stages, 12 microbatches: idle steps of one stage": (4 + 12 - 1) - 12,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 4 - 2,
    "4 stages, 12 microbatches, waiting for each: steps": 12 * 4,
}

# This student thought that filling the pipeline takes S whole steps before the M steps of work, so a table has S + M steps.
timetable__wrong_no_minus_one = {
    "2 stages, 4 microbatches: steps": 6,
    "4 stages, 12 microbatches: idle steps of one stage": 4,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# This student counted all empty places of the table, not those of a single row.
timetable__wrong_whole_table = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 12,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# This student turned "microbatch m is on stage s in step m + s" the wrong way: a later stage is further ahead, so m = t + s.
timetable__wrong_ahead = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 3,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 6,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# This student lets a microbatch enter in the very step in which the one before is still on the last stage: M (S - 1) + 1.
timetable__wrong_overlap = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 3,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 37,
}


# ---------------------------------------------------------------- gpipe


def gpipe__right_stacked(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(h, t):
            made = layer(w[0], jnp.where(me == 0, x[jnp.clip(t, 0, m - 1)], h))
            return send(made), made

        _, made = jax.lax.scan(turn, varying(jnp.zeros_like(x[0])), jnp.arange(m + n - 1))
        finished = made[n - 1 :]  # on the last stage: microbatches 0 to m - 1
        return jax.lax.psum(jnp.where(me == n - 1, finished, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# This student thought that only the last stage has anything in `out`, so a plain psum just copies it to everybody.
def gpipe__wrong_psum_of_all(weights, x, *, mesh):
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


# This student thought that turn t handles microbatch t on every stage, the last one too.
def gpipe__wrong_turn_is_microbatch(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h)
            h = layer(w[0], h)
            out = out.at[t].set(h)  # writes behind the end are dropped
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        last = jnp.where(me == n - 1, out, 0)
        return jax.lax.psum(last, "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# This student wrote the numbers of the mesh shown: the last stage is 3, and its first result comes in turn 3.
def gpipe__wrong_four_stages(weights, x, *, mesh):
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
        return jax.lax.psum(jnp.where(me == 3, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# This student hands each result to everybody in the turn in which it is made: a psum in each turn of the loop.
def gpipe__wrong_psum_each_turn(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            result = jax.lax.psum(jnp.where(me == n - 1, h, 0), "stage")
            out = out.at[jnp.maximum(t - (n - 1), 0)].set(result)
            return (send(h), out), None

        start = varying(jnp.zeros_like(x[0])), jnp.zeros_like(x)
        (_, out), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
        return out

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# ---------------------------------------------------------------- tied_embedding


def tied_embedding__right_local_loss(embedding, weights, tokens, *, mesh):
    m, b = tokens.shape
    vocabulary, width = embedding.shape
    n = mesh.shape["stage"]

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def share(e, w):
            """What this stage contributes to the loss: something on the last one only."""

            def turn(carry, t):
                h, squares = carry
                h = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], h))
                logits = h @ e.T
                squares = squares + jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(logits * logits), 0.0)
                return (send(h), squares), None

            start = varying(jnp.zeros((b, width))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return squares / (m * b * vocabulary)

        value, (de, dw) = jax.value_and_grad(share, argnums=(0, 1))(varying(e), w)
        return jax.lax.psum(value, "stage"), (jax.lax.psum(de, "stage"), dw)

    f = jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return f(embedding, weights, tokens)


# This student left the embedding as it is (a copy on all devices), and trusts JAX to add it up: it does, in each turn.
def tied_embedding__wrong_every_turn(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)
    count = tokens.size * embedding.shape[0]

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((act @ e.T) ** 2), 0)
                return (send(act), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / count

        return jax.value_and_grad(loss, argnums=(0, 1))(e, w)

    outs = (P(), (P(), P("stage")))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=outs)(
        embedding, weights, tokens
    )


# This student averages the embedding's gradient over the stages, as one does with copies under data parallelism.
def tied_embedding__wrong_averaged(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)
    count = tokens.size * embedding.shape[0]

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((act @ e.T) ** 2), 0)
                return (send(act), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / count

        value, (de, dw) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, (jax.lax.pmean(de, "stage"), dw)

    outs = (P(), (P(), P("stage")))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=outs)(
        embedding, weights, tokens
    )


# This student adds up the mean of each microbatch's logits, and forgets to divide by the number of microbatches.
def tied_embedding__wrong_sum_of_means(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            def turn(carry, t):
                act, total = carry
                act = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], act))
                total += jnp.where((me == n - 1) & (t >= n - 1), jnp.mean((act @ e.T) ** 2), 0)
                return (send(act), total), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, total), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(total, "stage")

        value, (de, dw) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, (jax.lax.psum(de, "stage"), dw)

    outs = (P(), (P(), P("stage")))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=outs)(
        embedding, weights, tokens
    )


# This student thought that the embedding belongs to stage 0, so the gradient there is the whole one and has only to be copied.
def tied_embedding__wrong_first_stage_only(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)
    count = tokens.size * embedding.shape[0]

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((act @ e.T) ** 2), 0)
                return (send(act), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / count

        value, (de, dw) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        de = jax.lax.psum(jnp.where(me == 0, de, 0), "stage")
        return value, (de, dw)

    outs = (P(), (P(), P("stage")))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=outs)(
        embedding, weights, tokens
    )
