"""Answers to lesson 16, twenty-first batch, written by a reader of the notebook only."""

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


def gpipe__right_modulo(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = layer(w[0], jnp.where(me == 0, x[t % m], h))
            # what is written too early, at a place counted from the end, is overwritten later
            out = jax.lax.dynamic_update_index_in_dim(out, h, (t - n + 1) % m, 0)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        return jax.lax.psum(jnp.where(me == n - 1, out, jnp.zeros_like(out)), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# Thought: the other stages' `out` is still the zeros it began with, so a plain psum just copies the last stage's to everybody.
def gpipe__wrong_sums_all_stages(weights, x, *, mesh):
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


# Thought: microbatch t enters in turn t, so what is made in turn t belongs at place t on every stage.
def gpipe__wrong_place_t(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            now = jnp.minimum(t, m - 1)
            h = layer(w[0], jnp.where(me == 0, x[now], h))
            out = out.at[now].set(h)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# Thought: in turn t stage s works on microbatch t - s, and x is on every device, so each stage can take x[t - s].
def gpipe__wrong_everyone_takes_from_x(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            mine = t - me
            busy = (mine >= 0) & (mine < m)
            h = layer(w[0], jnp.where(busy, x[jnp.clip(mine, 0, m - 1)], h))
            out = jnp.where(t >= n - 1, out.at[jnp.maximum(t - (n - 1), 0)].set(h), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# Thought: as soon as the last stage has a result, everybody should get it; a pmean of equal things at the end only calms shard_map.
def gpipe__wrong_sends_each_result(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            result = jax.lax.psum(jnp.where(me == n - 1, h, 0), "stage")
            out = out.at[jnp.maximum(t - (n - 1), 0)].set(result)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        return jax.lax.pmean(out, "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# ---------------------------------------------------------------- gpipe_gradient


def gpipe_gradient__right_weighed(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                done = t - (n - 1)
                i = jnp.clip(done, 0, m - 1)
                per_example = jnp.sum(jnp.square(y[i] - h), axis=-1)
                counts = (real[i] != 0) & (me == n - 1) & (done >= 0)
                total = total + jnp.sum(jnp.where(counts, per_example, 0.0))
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total / jnp.sum(real), "stage")

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Thought: the mean over each microbatch's real examples, averaged over the microbatches, is the mean over all.
def gpipe_gradient__wrong_mean_of_means(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                i = jnp.maximum(t - (n - 1), 0)
                errors = jnp.sum(real[i] * jnp.sum((h - y[i]) ** 2, axis=-1)) / jnp.maximum(jnp.sum(real[i]), 1)
                total += jnp.where((me == n - 1) & (t >= n - 1), errors, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / m

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Thought: padding adds nothing to the sum, so afterwards I divide by the number of examples in the batch, M times B.
def gpipe_gradient__wrong_divides_by_places(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                i = jnp.maximum(t - (n - 1), 0)
                errors = jnp.sum(jnp.where(real[i][:, None] == 1, (h - y[i]) ** 2, 0))
                total += jnp.where((me == n - 1) & (t >= n - 1), errors, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / real.size

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Thought: after n - 1 turns the pipeline is full, so I count results from the turn after that on (t > n - 1).
def gpipe_gradient__wrong_first_left_out(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                i = jnp.maximum(t - (n - 1), 0)
                errors = jnp.sum(real[i] * jnp.sum((h - y[i]) ** 2, axis=-1))
                total += jnp.where((me == n - 1) & (t > n - 1), errors, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / jnp.sum(real)

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Thought: what comes out for padding is set to 0, and then it has no error any more (but its label is still there).
def gpipe_gradient__wrong_masks_output_only(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                i = jnp.maximum(t - (n - 1), 0)
                errors = jnp.sum((real[i][:, None] * h - y[i]) ** 2)
                total += jnp.where((me == n - 1) & (t >= n - 1), errors, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / jnp.sum(real)

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# ---------------------------------------------------------------- tied_embedding


def tied_embedding__right_local_loss(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)
    vocabulary, width = embedding.shape

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def my_part(e, w):  # of the loss: all of it on the last stage, nothing on the others
            def turn(carry, t):
                h, squares = carry
                h = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], h))
                logits = jnp.einsum("bd,vd->bv", h, e)
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(logits**2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros((tokens.shape[1], width))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return squares / (tokens.size * vocabulary)

        value, (of_e, of_w) = jax.value_and_grad(my_part, argnums=(0, 1))(varying(e), w)
        return jax.lax.psum(value, "stage"), (jax.lax.psum(of_e, "stage"), of_w)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))(
        embedding, weights, tokens
    )


# Thought: the embedding is the same on all devices, so JAX adds up its gradient by itself, and nothing is left to be done (each turn sends it).
def tied_embedding__wrong_sent_in_each_turn(embedding, weights, tokens, *, mesh):
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


# Thought: gradients of copies are averaged over their axis, as those over `data` in `pp_dp`.
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

        value, (of_e, of_w) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, (jax.lax.pmean(of_e, "stage"), of_w)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))(
        embedding, weights, tokens
    )


# Thought: the embedding belongs to the first stage, so its gradient is the one that arrives there; the psum only hands it to all.
def tied_embedding__wrong_first_stage_only(embedding, weights, tokens, *, mesh):
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

        value, (of_e, of_w) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        of_e = jax.lax.psum(jnp.where(me == 0, of_e, 0), "stage")
        return value, (of_e, of_w)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))(
        embedding, weights, tokens
    )


# Thought: I take the mean of the squares in each turn, then the sum of these is the mean already (the division by M is forgotten).
def tied_embedding__wrong_sum_of_means(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            def turn(carry, t):
                h, mean = carry
                h = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], h))
                mean += jnp.where((me == n - 1) & (t >= n - 1), jnp.mean((h @ e.T) ** 2), 0)
                return (send(h), mean), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, mean), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(mean, "stage")

        value, (of_e, of_w) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, (jax.lax.psum(of_e, "stage"), of_w)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))(
        embedding, weights, tokens
    )
