"""Answers to lesson 16, sixth batch, written by a reader of the notebook only."""

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


def one_f_one_b(stages, microbatches):
    """For each stage its work, in order."""
    orders = []
    for s in range(stages):
        warm_up = min(stages - s, microbatches)
        order = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        orders.append(order)
    return orders


# ---------------------------------------------------------------- gpipe_gradient


# Right: the errors leave the scan as its outputs, one number a turn; the sum over the stages is taken after the gradient.
def gpipe_gradient__right_outputs_of_scan(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def my_part(w):
            def turn(h, t):
                h = layer(w[0], jnp.where(me == 0, x[jnp.clip(t, 0, m - 1)], h))
                done = jnp.clip(t - n + 1, 0, m - 1)
                off = jnp.where(real[done][:, None] > 0, h - y[done], 0)
                return send(h), jnp.sum(off * off)

            _, errors = jax.lax.scan(turn, varying(jnp.zeros(x.shape[1:])), jnp.arange(m + n - 1))
            return jnp.where(me == n - 1, errors[n - 1 :].sum(), 0) / jnp.sum(real)

        mine, gradient = jax.value_and_grad(my_part)(w)
        return jax.lax.psum(mine, "stage"), gradient

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# This student averages each microbatch over its own real examples, and then averages the microbatches: a mean of means.
def gpipe_gradient__wrong_mean_of_means(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                k = jnp.maximum(t - (n - 1), 0)
                error = jnp.sum((h - y[k]) ** 2, axis=-1)
                mean = jnp.sum(error * real[k]) / jnp.maximum(jnp.sum(real[k]), 1)
                total = total + jnp.where((me == n - 1) & (t >= n - 1), mean, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / m

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# This student compares what comes out in turn t with the labels of what goes in in turn t: forgets that it is S - 1 turns late.
def gpipe_gradient__wrong_labels_of_the_taken(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                now = jnp.minimum(t, m - 1)
                h = layer(w[0], jnp.where(me == 0, x[now], h))
                errors = jnp.sum(real[now][:, None] * (h - y[now]) ** 2)
                total += jnp.where((me == n - 1) & (t >= n - 1), errors, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / jnp.sum(real)

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# This student adds up errors in every turn on the last stage: "in the first turns there is nothing there but zeros, that does no harm".
def gpipe_gradient__wrong_counts_the_fill(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        last = jax.lax.axis_index("stage") == n - 1
        first = jax.lax.axis_index("stage") == 0

        def loss(w):
            def turn(carry, t):
                h, total = carry
                h = layer(w[0], jnp.where(first, x[jnp.minimum(t, m - 1)], h))
                k = jnp.maximum(t - (n - 1), 0)
                squares = ((h - y[k]) ** 2).sum(-1)
                total = total + jnp.where(last, (squares * real[k]).sum(), 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            (_, total), _ = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))
            return jax.lax.psum(total, "stage") / real.sum()

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# This student has heard that gradients must be summed over the devices, and does so, though each stage's weights are its own.
def gpipe_gradient__wrong_sums_gradients(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                k = jnp.maximum(t - (n - 1), 0)
                e = jnp.sum(jnp.sum((h - y[k]) ** 2, -1) * real[k])
                return (send(h), total + jnp.where((me == n - 1) & (t >= n - 1), e, 0)), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return total / jnp.sum(real)

        value, g = jax.value_and_grad(loss)(w)
        return jax.lax.psum(value, "stage"), varying(jax.lax.psum(g, "stage"))

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# ---------------------------------------------------------------- zero_bubble


# Right: plays the V step by step, under four policies (which stage's B first, which W first), and keeps the shortest.
def zero_bubble__right_tries_policies(devices, microbatches):
    last = 2 * devices - 1

    def play(deep_b, deep_w):
        when = {}  # piece of work -> the step in which it was done

        def can(kind, m, s, now):
            if (kind, m, s) in when:
                return False
            if kind == "F":
                needs = [("F", m, s - 1)] if s else []
            elif kind == "B":
                needs = [("F", m, s)] + ([("B", m, s + 1)] if s < last else [])
            else:
                needs = [("B", m, s)]
            return all(when.get(need, now) < now for need in needs)

        orders = [[] for _ in range(devices)]
        held = [0] * devices
        total = 6 * devices * microbatches
        now = 0
        while len(when) < total:
            if now > 20 * (microbatches + 2 * devices) + 100:
                return None
            for d in range(devices):
                deep, shallow = last - d, d
                wishes = [("B", s) for s in ((deep, shallow) if deep_b else (shallow, deep))]
                if held[d] < 2 * devices:
                    wishes += [("F", deep), ("F", shallow)]
                wishes += [("W", s) for s in ((deep, shallow) if deep_w else (shallow, deep))]
                for kind, s in wishes:
                    m = next((m for m in range(microbatches) if can(kind, m, s, now)), None)
                    if m is not None:
                        when[kind, m, s] = now
                        orders[d].append(f"{kind}{m}@{s}")
                        held[d] += {"F": 1, "B": 0, "W": -1}[kind]
                        break
            now += 1
        first = [min(t for (_, _, s), t in when.items() if s in (d, last - d)) for d in range(devices)]
        return max(when.values()) - min(first), orders

    found = [play(b, w) for b in (True, False) for w in (True, False)]
    found = [one for one in found if one]
    return min(found, key=lambda one: one[0])[1]


# This student reads "nobody waits for W" and leaves every W to the end: everything is held until then.
def zero_bubble__wrong_all_w_last(devices, microbatches):
    orders = one_f_one_b(devices, microbatches)
    return [order + [f"W{m}" for m in range(microbatches)] for order in orders]


# This student does ZB-H1, but lets stage s put off s + 1 of the W (counts the stages from 1): one microbatch too many is held.
def zero_bubble__wrong_one_w_too_late(devices, microbatches):
    result = []
    for s, order in enumerate(one_f_one_b(devices, microbatches)):
        todo, new = [], []
        for work in order:
            new.append(work)
            if work.startswith("B"):
                todo.append("W" + work[1:])
                if len(todo) > s + 1:
                    new.append(todo.pop(0))
        result.append(new + todo)
    return result


# This student thinks that a microbatch is free again after its B, so that the limit on F counts too little.
def zero_bubble__wrong_free_after_b(devices, microbatches):
    n = 2 * devices
    done = {}
    orders = [[] for _ in range(devices)]
    held = [0] * devices

    def ready(kind, m, s, t):
        if (kind, m, s) in done:
            return False
        before = {
            "F": (("F", m, s - 1) if s > 0 else None),
            "B": (("B", m, s + 1) if s < n - 1 else ("F", m, s)),
            "W": ("B", m, s),
        }[kind]
        return before is None or done.get(before, t) < t

    for t in range(12 * microbatches + 12 * devices):
        for d in range(devices):
            choices = []
            for kind in "BFW":
                for s in (n - 1 - d, d):
                    for m in range(microbatches):
                        if ready(kind, m, s, t) and not (kind == "F" and held[d] >= n):
                            choices.append((kind, m, s))
            if choices:
                kind, m, s = choices[0]
                done[kind, m, s] = t
                orders[d].append(f"{kind}{m}@{s}")
                if kind == "F":
                    held[d] += 1
                if kind == "B":
                    held[d] -= 1
    return orders


# This student gives device d the stages d and d + S, as in an interleaved pipeline, and takes the recipe of ZB-V for the rest.
def zero_bubble__wrong_ring_not_v(devices, microbatches):
    n = 2 * devices
    done, orders, held = {}, [[] for _ in range(devices)], [0] * devices

    def ok(kind, m, s, t):
        if (kind, m, s) in done:
            return False
        if kind == "F":
            return s == 0 or done.get(("F", m, s - 1), t) < t
        if kind == "B":
            return done.get(("F", m, s), t) < t and (s == n - 1 or done.get(("B", m, s + 1), t) < t)
        return done.get(("B", m, s), t) < t

    for t in range(20 * (microbatches + devices)):
        for d in range(devices):
            for kind, s in [("B", d + devices), ("B", d), ("F", d + devices), ("F", d), ("W", d + devices), ("W", d)]:
                if kind == "F" and held[d] >= 2 * devices:
                    continue
                ms = [m for m in range(microbatches) if ok(kind, m, s, t)]
                if ms:
                    done[kind, ms[0], s] = t
                    orders[d].append(f"{kind}{ms[0]}@{s}")
                    held[d] += (kind == "F") - (kind == "W")
                    break
    return orders


# ---------------------------------------------------------------- tied_embedding


# Right: looks all tokens up before the loop and makes all logits after it; the sums over the stages come after the gradient.
def tied_embedding__right_outside_the_loop(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def my_part(both):
            e, w = both
            x = e[tokens]

            def turn(h, t):
                h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                return send(h), h

            _, made = jax.lax.scan(turn, varying(jnp.zeros(x.shape[1:])), jnp.arange(m + n - 1))
            logits = made[n - 1 :] @ e.T
            return jnp.where(me == n - 1, jnp.mean(logits**2), 0)

        mine, (g_e, g_w) = jax.value_and_grad(my_part)((varying(e), w))
        return jax.lax.psum(mine, "stage"), (jax.lax.psum(g_e, "stage"), g_w)

    out = P(), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=out)(
        embedding, weights, tokens
    )


# This student begins with `natural`, and differentiates it as it is: right numbers, but the embedding's gradient is sent in every turn.
def tied_embedding__wrong_every_turn(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            def turn(carry, t):
                h, squares = carry
                h = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], h))
                logits = h @ e.T
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(logits**2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (tokens.size * e.shape[0])

        return jax.value_and_grad(loss, argnums=(0, 1))(e, w)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))(
        embedding, weights, tokens
    )


# This student averages the embedding's gradient over the stages, as one does with copies, where the two uses have to be added.
def tied_embedding__wrong_averages(embedding, weights, tokens, *, mesh):
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

        value, (ge, gw) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, (jax.lax.pmean(ge, "stage"), gw)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))(
        embedding, weights, tokens
    )


# This student divides by the number of activations [M, B, D], as `natural` does with x.size, and not by the number of logits [M, B, V].
def tied_embedding__wrong_divides_by_d(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)
    d = embedding.shape[1]

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, e[tokens[jnp.minimum(t, m - 1)]], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((act @ e.T) ** 2), 0)
                return (send(act), squares), None

            start = varying(jnp.zeros((tokens.shape[1], d))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (tokens.size * d)

        value, (ge, gw) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, (jax.lax.psum(ge, "stage"), gw)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))(
        embedding, weights, tokens
    )


# This student thinks that the embedding belongs to the last stage, where the loss is, and hands round only that stage's gradient.
def tied_embedding__wrong_last_stage_only(embedding, weights, tokens, *, mesh):
    n, m = mesh.shape["stage"], len(tokens)

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            x = e[tokens]

            def turn(h, t):
                h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                return send(h), h

            made = jax.lax.scan(turn, varying(jnp.zeros(x.shape[1:])), jnp.arange(m + n - 1))[1]
            return jax.lax.psum(jnp.where(me == n - 1, jnp.mean((made[n - 1 :] @ e.T) ** 2), 0), "stage")

        value, (ge, gw) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        ge = jax.lax.psum(jnp.where(me == n - 1, ge, 0), "stage")
        return value, (ge, gw)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))(
        embedding, weights, tokens
    )
