"""Answers to lesson 16, eleventh batch, written by a reader of the notebook only."""

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


def gpipe(weights, x, *, mesh):
    """Every microbatch of `x` through every stage (an earlier exercise; used below)."""
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
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# ---------------------------------------------------------------- circular


def circular__right_picked(weights, x, *, mesh):
    """The scan hands out what each turn made; the results are picked out of it behind the loop."""
    n, m, v = mesh.shape["stage"], len(x), len(weights)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(h, t):
            p = jnp.clip(t - me, 0, v * m - 1)
            r, b = p // n % v, p // (v * n) * n + p % n
            h = layer(w[r, 0], jnp.where((me == 0) & (r == 0), x[b], h))
            return send(h), h

        _, made = jax.lax.scan(turn, varying(jnp.zeros_like(x[0])), jnp.arange(v * m + n - 1))
        # on the last device piece p is made in turn p + n - 1; a microbatch's last piece is that of round v - 1
        last = np.array([b // n * v * n + (v - 1) * n + b % n + n - 1 for b in range(m)])
        return jax.lax.psum(jnp.where(me == n - 1, made[last], 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# This student thought that all M microbatches do round 0 before any begins round 1 (so it is in the picture, where M is S).
def circular__wrong_whole_rounds(weights, x, *, mesh):
    n, m, v = mesh.shape["stage"], len(x), len(weights)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            p = jnp.clip(t - me, 0, v * m - 1)
            r, b = p // m, p % m
            h = layer(w[r, 0], jnp.where((me == 0) & (r == 0), x[b], h))
            out = out.at[b].set(jnp.where(r == v - 1, h, out[b]))
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))[0]
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# This student thought that a device may run its v layers one right behind the other, as if they were neighbours in the model.
def circular__wrong_neighbours(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h)
            h, _ = jax.lax.scan(lambda h, one: (layer(one, h), None), h, w[:, 0])
            out = out.at[jnp.maximum(t - (n - 1), 0)].set(h)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# This student took the round from the turn, the same one for all devices, and forgot that device d is d turns behind.
def circular__wrong_same_round(weights, x, *, mesh):
    n, m, v = mesh.shape["stage"], len(x), len(weights)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            r = t // n % v
            p = jnp.clip(t - me, 0, v * m - 1)
            b = p // (v * n) * n + p % n
            h = layer(w[r, 0], jnp.where((me == 0) & (r == 0), x[b], h))
            out = out.at[b].set(h)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))[0]
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# This student runs the pipeline of part 2 once for each round: right values, but v bubbles, v psums and v (M + S - 1) turns.
def circular__wrong_laps(weights, x, *, mesh):
    for r in range(len(weights)):
        x = gpipe(weights[r], x, mesh=mesh)
    return x


# ---------------------------------------------------------------- tied_embedding


def tied_embedding__right_inside(embedding, weights, tokens, *, mesh):
    """`varying` inside the loss, before the loop: its transpose is the one psum."""
    n, m = mesh.shape["stage"], len(tokens)

    def on_device(e, w, tokens):
        me = jax.lax.axis_index("stage")

        def loss(e, w):
            mine = varying(e)

            def turn(carry, t):
                h, squares = carry
                h = layer(w[0], jnp.where(me == 0, mine[tokens[jnp.minimum(t, m - 1)]], h))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum((h @ mine.T) ** 2), 0)
                return (send(h), squares), None

            start = varying(jnp.zeros((tokens.shape[1], e.shape[1]))), varying(jnp.zeros(()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (tokens.size * e.shape[0])

        return jax.value_and_grad(loss, argnums=(0, 1))(e, w)

    specs = dict(in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return jax.shard_map(on_device, mesh=mesh, **specs)(embedding, weights, tokens)


# This student changed `natural` as little as possible and trusts JAX to add up the embedding's gradient: it does, once for every turn.
def tied_embedding__wrong_each_turn(embedding, weights, tokens, *, mesh):
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

    specs = dict(in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return jax.shard_map(on_device, mesh=mesh, **specs)(embedding, weights, tokens)


# This student took the pmean from `pp_dp`: gradients of something that is whole on every device are averaged.
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

    specs = dict(in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return jax.shard_map(on_device, mesh=mesh, **specs)(embedding, weights, tokens)


# This student thought that, as with the outputs, only what the last stage has counts, and lost the gradient of the lookup on stage 0.
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

        value, (of_e, of_w) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, (jax.lax.psum(jnp.where(me == n - 1, of_e, 0), "stage"), of_w)

    specs = dict(in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return jax.shard_map(on_device, mesh=mesh, **specs)(embedding, weights, tokens)


# This student divides by the number of examples, as in `gpipe_gradient`, where the mean goes over the V logits of each as well.
def tied_embedding__wrong_examples(embedding, weights, tokens, *, mesh):
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
            return jax.lax.psum(squares, "stage") / tokens.size

        value, (of_e, of_w) = jax.value_and_grad(loss, argnums=(0, 1))(varying(e), w)
        return value, (jax.lax.psum(of_e, "stage"), of_w)

    specs = dict(in_specs=(P(), P("stage"), P()), out_specs=(P(), (P(), P("stage"))))
    return jax.shard_map(on_device, mesh=mesh, **specs)(embedding, weights, tokens)


# ---------------------------------------------------------------- zero_bubble


def zero_bubble__right_played(devices, microbatches):
    """ZB-V, played step by step with three ways to choose among two B; the shortest counts."""
    last = 2 * devices - 1

    def play(rank):
        done = {kind: [0] * (last + 1) for kind in "FBW"}
        orders, steps = [[] for _ in range(devices)], 0
        while min(done["W"]) < microbatches:
            begun = []
            for d in range(devices):
                deep, shallow = last - d, d
                F, B, W = done["F"], done["B"], done["W"]
                held = F[deep] + F[shallow] - W[deep] - W[shallow]
                backward = [s for s in (deep, shallow) if B[s] < F[s] and (s == last or B[s] < B[s + 1])]
                forward = [s for s in (deep, shallow) if F[s] < microbatches and (s == 0 or F[s] < F[s - 1])]
                weight = [s for s in (deep, shallow) if W[s] < B[s]]
                if backward:
                    begun.append((d, "B", min(backward, key=lambda s: rank(s, B[s]))))
                elif forward and held < 2 * min(devices, microbatches):
                    begun.append((d, "F", forward[0]))
                elif weight:
                    begun.append((d, "W", weight[0]))
            if not begun:
                return None
            for d, kind, s in begun:
                orders[d].append(f"{kind}{done[kind][s]}@{s}")
                done[kind][s] += 1
            steps += 1
        return steps, orders

    ways = [lambda s, m: -s, lambda s, m: s, lambda s, m: (m, -s)]
    return min((played for played in map(play, ways) if played), key=lambda played: played[0])[1]


# This student thought that splitting is all: 1F1B with each W right behind its B.
def zero_bubble__wrong_behind(devices, microbatches):
    orders = []
    for s in range(devices):
        warm_up = min(devices - s, microbatches)
        order = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            order += [f"B{m}", f"W{m}"]
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        orders.append(order)
    return orders


# This student thought: nobody waits for W before the optimizer's step, so all W come at the end (and every microbatch is held till then).
def zero_bubble__wrong_at_the_end(devices, microbatches):
    orders = []
    for s in range(devices):
        warm_up = min(devices - s, microbatches)
        order = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        orders.append(order + [f"W{m}" for m in range(microbatches)])
    return orders


# This student took ZB-H1 the wrong way round: the first stages, which wait longest, put off the most W.
def zero_bubble__wrong_other_way(devices, microbatches):
    orders = []
    for s in range(devices):
        warm_up, put_off, w = min(devices - s, microbatches), devices - 1 - s, 0
        order = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m >= put_off:
                order.append(f"W{w}")
                w += 1
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        orders.append(order + [f"W{m}" for m in range(w, microbatches)])
    return orders


# This student has the V, but allows S microbatches for each of a device's two stages, counting each of them as a half twice over (4 S in place of 2 S).
def zero_bubble__wrong_twice_as_many(devices, microbatches):
    last = 2 * devices - 1
    F, B, W = ([0] * (last + 1) for _ in range(3))
    orders = [[] for _ in range(devices)]
    while min(W) < microbatches:
        begun = []
        for d in range(devices):
            pair = (last - d, d)
            held = sum(F[s] - W[s] for s in pair)
            can_b = [s for s in pair if B[s] < F[s] and (s == last or B[s] < B[s + 1])]
            can_f = [s for s in pair if F[s] < microbatches and (s == 0 or F[s] < F[s - 1]) and held < 4 * devices]
            can_w = [s for s in pair if W[s] < B[s]]
            for kind, count, can in (("B", B, can_b), ("F", F, can_f), ("W", W, can_w)):
                if can:
                    begun.append((d, kind, count, can[0]))
                    break
        for d, kind, count, s in begun:
            orders[d].append(f"{kind}{count[s]}@{s}")
            count[s] += 1
    return orders
