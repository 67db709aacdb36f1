"""Answers to lesson 16, seventeenth batch, written by a reader of the notebook only."""

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


# ---- from other cells, and other exercises' answers


def glued(orders):
    """The same orders, each backward pass in two parts, one right behind the other."""
    return [
        [part for work in order for part in ([work, "W" + work[1:]] if work[0] == "B" else [work])] for order in orders
    ]


def gpipe(weights, x, *, mesh):
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
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# ---- one_f_one_b


def one_f_one_b__right_sorted(stages, microbatches):
    """For each stage its work, in order."""
    everything = [(kind, m) for kind in "FB" for m in range(microbatches)]

    def order(s):
        ahead = stages - s  # so many forward passes before the first backward pass

        def moment(work):
            kind, m = work
            return (m, 0) if kind == "B" else (m - ahead, 1)  # F{m + ahead} comes right behind B{m}

        return [f"{kind}{m}" for kind, m in sorted(everything, key=moment)]

    return [order(s) for s in range(stages)]


one_f_one_b = one_f_one_b__right_sorted


# This student thought: to hold no more than S, do GPipe with S microbatches, then with the next S, and so on.
def one_f_one_b__wrong_rounds(stages, microbatches):
    """For each stage its work, in order."""
    order = []
    for begin in range(0, microbatches, stages):
        group = range(begin, min(begin + stages, microbatches))
        order += [f"F{m}" for m in group] + [f"B{m}" for m in group]
    return [list(order) for _ in range(stages)]


# This student thought: stage s stands s places behind, so it is the later stages that take more forward passes first.
def one_f_one_b__wrong_mirrored(stages, microbatches):
    """For each stage its work, in order."""
    orders = []
    for s in range(stages):
        warm_up = min(s + 1, microbatches)
        order = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        orders.append(order)
    return orders


# This student thought: S - s are at work behind me, and one more forward pass fills the time until the gradient is here.
def one_f_one_b__wrong_one_more(stages, microbatches):
    """For each stage its work, in order."""
    orders = []
    for s in range(stages):
        ahead = min(stages - s + 1, microbatches)
        forward, backward = iter(range(microbatches)), iter(range(microbatches))
        order = [f"F{next(forward)}" for _ in range(ahead)]
        for m in backward:
            order.append(f"B{m}")
            following = next(forward, None)
            if following is not None:
                order.append(f"F{following}")
        orders.append(order)
    return orders


# This student thought of long batches only: the warm-up has S - s forward passes, also where there are fewer microbatches.
def one_f_one_b__wrong_long_batches(stages, microbatches):
    """For each stage its work, in order."""
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


# ---- zero_bubble


def zero_bubble__right_counters(devices, microbatches):
    """For each device its work, in order."""
    last = 2 * devices - 1
    done = {kind: [0] * (last + 1) for kind in "FBW"}  # how many microbatches each stage is through with
    orders = [[] for _ in range(devices)]

    def possible(kind, s):
        """Can stage s do its next piece of this kind now?"""
        m = done[kind][s]
        if kind == "F":
            return m < microbatches and (s == 0 or done["F"][s - 1] > m)
        if kind == "B":
            return done["F"][s] > m and (s == last or done["B"][s + 1] > m)
        return done["B"][s] > m

    def choose(d):
        early, deep = d, last - d
        held = sum(done["F"][s] - done["W"][s] for s in (early, deep))
        wishes = [("B", early), ("B", deep)]
        if held < 2 * devices:
            wishes += [("F", deep), ("F", early)]
        wishes += [("W", early), ("W", deep)]
        return next((wish for wish in wishes if possible(*wish)), None)

    while min(done["W"]) < microbatches:
        chosen = [choose(d) for d in range(devices)]  # all of them before anything counts as done
        for order, wish in zip(orders, chosen):
            if wish is not None:
                kind, s = wish
                order.append(f"{kind}{done[kind][s]}@{s}")
                done[kind][s] += 1
    return orders


# This student thought: it is enough to split the backward pass, since B is then sent on before W.
def zero_bubble__wrong_split_only(devices, microbatches):
    """For each device its work, in order."""
    return glued(one_f_one_b(devices, microbatches))


# This student took W for the part that the stage before waits for, and put off B.
def zero_bubble__wrong_w_first(devices, microbatches):
    """For each device its work, in order."""
    orders = []
    for order in one_f_one_b(devices, microbatches):
        mine = []
        for work in order:
            mine += ["W" + work[1:], work] if work[0] == "B" else [work]
        orders.append(mine)
    return orders


# This student thought: where B always goes first, memory stays small of itself, and W is done when there is nothing else.
def zero_bubble__wrong_no_limit(devices, microbatches):
    """For each device its work, in order."""
    last = 2 * devices - 1
    f, b, w = ([0] * (last + 1) for _ in range(3))
    orders = [[] for _ in range(devices)]

    def first_possible(d):
        for s in (d, last - d):
            if f[s] > b[s] and (s == last or b[s + 1] > b[s]):
                return "B", s
        for s in (last - d, d):
            if f[s] < microbatches and (s == 0 or f[s - 1] > f[s]):
                return "F", s
        for s in (d, last - d):
            if b[s] > w[s]:
                return "W", s
        return None

    while min(w) < microbatches:
        for d, found in enumerate([first_possible(d) for d in range(devices)]):
            if found:
                kind, s = found
                count = {"F": f, "B": b, "W": w}[kind]
                orders[d].append(f"{kind}{count[s]}@{s}")
                count[s] += 1
    return orders


# This student thought: stage 0 waits longest, so it is stage 0 that puts off most W (S - 1 - s of them on stage s).
def zero_bubble__wrong_put_off_at_the_front(devices, microbatches):
    """For each device its work, in order."""
    orders = []
    for s in range(devices):
        warm_up, put_off = min(devices - s, microbatches), devices - 1 - s
        order, next_w = [f"F{m}" for m in range(warm_up)], 0
        for m in range(microbatches):
            order.append(f"B{m}")
            if m >= put_off:
                order.append(f"W{next_w}")
                next_w += 1
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        order += [f"W{m}" for m in range(next_w, microbatches)]
        orders.append(order)
    return orders


# ---- circular


def circular__right_rows_afterwards(weights, x, *, mesh):
    """Every microbatch of `x` through v rounds of S layers."""
    v, n, m = len(weights), mesh.shape["stage"], len(x)
    numbers = np.arange(m)
    last_piece = numbers // n * (v * n) + (v - 1) * n + numbers % n  # microbatch's piece in the last round
    ready = last_piece + n - 1  # the turn in which the last device does it

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(h, t):
            piece = t - me
            group, inside = piece // (v * n), piece % (v * n)
            r, place = inside // n, inside % n
            fresh = x[jnp.clip(group * n + place, 0, m - 1)]
            h = layer(w[r, 0], jnp.where((me == 0) & (r == 0), fresh, h))
            return send(h), h

        _, made = jax.lax.scan(turn, varying(jnp.zeros_like(x[0])), jnp.arange(v * m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, made[ready], 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# This student thought: all M microbatches make the first round, then all make the second (so it is with M = S, as drawn).
def circular__wrong_all_first(weights, x, *, mesh):
    """Every microbatch of `x` through v rounds of S layers."""
    v, n, m = weights.shape[0], mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            piece = jnp.clip(t - me, 0, v * m - 1)
            r, number = piece // m, piece % m
            h = layer(w[r, 0], jnp.where((me == 0) & (r == 0), x[number], h))
            out = jnp.where((r == v - 1) & (t >= me), out.at[number].set(h), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))[0]
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# This student thought: a device has v layers that stand one behind the other in the network, and cut the flat list of layers.
def circular__wrong_neighbours(weights, x, *, mesh):
    """Every microbatch of `x` through v rounds of S layers."""
    v, n, d = weights.shape[0], mesh.shape["stage"], weights.shape[-1]
    m = len(x)
    weights = weights.reshape(n, v, d, d)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            piece = t - me
            r = piece // n % v
            number = jnp.clip(piece // (v * n) * n + piece % n, 0, m - 1)
            h = layer(w[0, r], jnp.where((me == 0) & (r == 0), x[number], h))
            out = jnp.where((r == v - 1) & (piece >= 0), out.at[number].set(h), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))[0]
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


# This student thought: all devices are in the same round in the same turn, so the round can be read off t.
def circular__wrong_one_clock(weights, x, *, mesh):
    """Every microbatch of `x` through v rounds of S layers."""
    v, n, m = weights.shape[0], mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            r = t // n % v
            coming = jnp.minimum(t // (v * n) * n + t % n, m - 1)
            h = layer(w[r, 0], jnp.where((me == 0) & (r == 0), x[coming], h))
            piece = t - (n - 1)  # of the last device
            number = jnp.maximum(piece // (v * n) * n + piece % n, 0)
            out = jnp.where((piece >= 0) & (piece // n % v == v - 1), out.at[number].set(h), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        _, out = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))[0]
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# This student thought: a round is a whole pipeline, so v of them one behind the other do it (each with a bubble and a psum of its own).
def circular__wrong_v_pipelines(weights, x, *, mesh):
    """Every microbatch of `x` through v rounds of S layers."""
    for r in range(len(weights)):
        x = gpipe(weights[r], x, mesh=mesh)
    return x
