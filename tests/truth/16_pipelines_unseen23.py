"""Answers to lesson 16, twenty-third batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- gpipe_gradient


def gpipe_gradient__right_counted(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")
        examples = jnp.sum(real)

        def error_of(h, t):
            """The squared errors that count in turn t, on this stage."""
            which = jnp.maximum(t - (n - 1), 0)
            of_each = jnp.sum(jnp.square(y[which] - h), axis=-1)
            counts = (me == n - 1) & (t >= n - 1) & (real[which] > 0)
            return jnp.sum(jnp.where(counts, of_each, 0))

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                total = total + error_of(h, t)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total / examples, "stage")

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# This student takes the mean over the real examples of each microbatch, and then the mean of these means.
def gpipe_gradient__wrong_means(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def microbatch_loss(h, which):
            errors = jnp.sum((h - y[which]) ** 2, axis=-1)
            return jnp.sum(errors * real[which]) / jnp.maximum(jnp.sum(real[which]), 1)

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                value = microbatch_loss(h, jnp.maximum(t - (n - 1), 0))
                total = total + jnp.where((me == n - 1) & (t >= n - 1), value, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / m

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# This student thought that the maximum on the index already takes care of the first turns, so only the stage is
# asked, not the turn: microbatch 0's labels are compared with nothing n - 1 times.
def gpipe_gradient__wrong_early(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                done = jnp.maximum(t - (n - 1), 0)
                errors = jnp.sum((h - y[done]) ** 2, axis=-1)
                errors = jnp.sum(jnp.where(real[done] > 0, errors, 0))
                total = total + jnp.where(me == n - 1, errors, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / jnp.sum(real)

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# This student takes the labels of the microbatch that comes out, but the padding of the one that goes in.
def gpipe_gradient__wrong_padding(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                entering = jnp.minimum(t, m - 1)
                taken, is_real = x[entering], real[entering]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                leaving = jnp.maximum(t - (n - 1), 0)
                errors = jnp.sum((h - y[leaving]) ** 2, axis=-1)
                errors = jnp.sum(errors * is_real)
                total = total + jnp.where((me == n - 1) & (t >= n - 1), errors, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / jnp.sum(real)

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# "At most two all_reduces": this student uses both, one for the sum and one for the number of real examples, though
# every device has the whole of `real`, so the count is n times too large.
def gpipe_gradient__wrong_twice(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                done = jnp.maximum(t - (n - 1), 0)
                errors = jnp.sum(real[done][:, None] * (h - y[done]) ** 2)
                total = total + jnp.where((me == n - 1) & (t >= n - 1), errors, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            count = jax.lax.psum(varying(jnp.sum(real)), "stage")
            return jax.lax.psum(total, "stage") / count

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# ---------------------------------------------------------------- tied_embedding


def tied_embedding__right_inside(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)
    logits = tokens.size * len(embedding)

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            e = varying(e)  # marked once, before all uses: its way back is the only sum over the stages

            def turn(carry, t):
                h, squares = carry
                h = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], h))
                mine = (me == n - 1) & (t >= n - 1)
                squares = squares + jnp.where(mine, jnp.sum((h @ e.T) ** 2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / logits

        return jax.value_and_grad(loss, argnums=(0, 1))(e, w)

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return run(embedding, weights, tokens)


# This student differentiates with respect to the embedding as it is, the same on all devices, and so sends a gradient
# at each use, that is in every turn.
def tied_embedding__wrong_natural(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            def turn(carry, t):
                h, squares = carry
                first = e[tokens[jnp.minimum(t, m - 1)]]
                h = layer(w[0], jnp.where(me == 0, first, h))
                squares = squares + jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((h @ e.T) ** 2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (tokens.size * e.shape[0])

        return jax.value_and_grad(loss, argnums=(0, 1))(e, w)

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return run(embedding, weights, tokens)


# This student marks the embedding inside the loss, where JAX adds its gradient up on the way back, and adds it up over
# the stages a second time: n times too large.
def tied_embedding__wrong_twice(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            e = varying(e)

            def turn(carry, t):
                h, squares = carry
                first = e[tokens[jnp.minimum(t, m - 1)]]
                h = layer(w[0], jnp.where(me == 0, first, h))
                squares = squares + jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((h @ e.T) ** 2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (tokens.size * e.shape[0])

        value, (de, dw) = jax.value_and_grad(loss, argnums=(0, 1))(e, w)
        return value, (jax.lax.psum(varying(de), "stage"), dw)

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return run(embedding, weights, tokens)


# This student thought that the gradient of the embedding, like the loss, stands on the last stage and only has to be
# handed to the others: what stage 0 has of it, from the lookup, is lost.
def tied_embedding__wrong_last(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def from_the_last(value):
            return jax.lax.psum(jnp.where(me == n - 1, value, 0), "stage")

        def loss(e, w):
            def turn(carry, t):
                h, squares = carry
                first = e[tokens[jnp.minimum(t, m - 1)]]
                h = layer(w[0], jnp.where(me == 0, first, h))
                squares = squares + jnp.where(t >= n - 1, jnp.sum((h @ e.T) ** 2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return from_the_last(squares) / (tokens.size * e.shape[0])

        value, (de, dw) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, (from_the_last(de), dw)

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return run(embedding, weights, tokens)


# This student divides by the number of activations (M · B · D), as `natural` divided by x.size, and not by that of logits.
def tied_embedding__wrong_width(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")
        shape = (tokens.shape[1], e.shape[1])

        def loss(e, w):
            def turn(carry, t):
                h, squares = carry
                first = e[tokens[jnp.minimum(t, m - 1)]]
                h = layer(w[0], jnp.where(me == 0, first, h))
                squares = squares + jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((h @ e.T) ** 2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros(shape)), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (m * shape[0] * shape[1])

        value, (de, dw) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, (jax.lax.psum(de, "stage"), dw)

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return run(embedding, weights, tokens)


# ---------------------------------------------------------------- one_f_one_b


def one_f_one_b__right_limit(stages, microbatches):
    def order_of(stage):
        order, forward, backward = [], 0, 0
        while backward < microbatches:
            if forward < microbatches and forward - backward < stages - stage:
                order.append(f"F{forward}")
                forward += 1
            else:
                order.append(f"B{backward}")
                backward += 1
        return order

    return [order_of(stage) for stage in range(stages)]


# This student warms up with as many forward passes as there are stages behind this one (the last: one), which is one
# too few everywhere else, so every stage waits for its first gradient.
def one_f_one_b__wrong_behind(stages, microbatches):
    orders = []
    for s in range(stages):
        stages_behind = stages - 1 - s
        warm_up = min(max(stages_behind, 1), microbatches)
        order = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        orders.append(order)
    return orders


# "No more than S on any stage": this student lets every stage, not only the first, warm up with S.
def one_f_one_b__wrong_same(stages, microbatches):
    warm_up = min(stages, microbatches)
    steady = []
    for m in range(microbatches - warm_up):
        steady += [f"B{m}", f"F{m + warm_up}"]
    start = [f"F{m}" for m in range(warm_up)]
    rest = [f"B{m}" for m in range(microbatches - warm_up, microbatches)]
    return [start + steady + rest for _ in range(stages)]


# This student forgot that there may be fewer microbatches than a stage would like to warm up with.
def one_f_one_b__wrong_few(stages, microbatches):
    orders = []
    for s in range(stages):
        warm_up = stages - s
        order = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        orders.append(order)
    return orders


# One *forward*, one backward: after the S - s forward passes of the warm-up this student begins each pair with the
# forward pass, so a stage holds one microbatch more than it may.
def one_f_one_b__wrong_forward_first(stages, microbatches):
    def order_of(s):
        warm_up = min(stages - s, microbatches)
        order = [f"F{m}" for m in range(warm_up)]
        for back in range(microbatches):
            ahead = back + warm_up
            if ahead < microbatches:
                order.append(f"F{ahead}")
            order.append(f"B{back}")
        return order

    return [order_of(s) for s in range(stages)]
