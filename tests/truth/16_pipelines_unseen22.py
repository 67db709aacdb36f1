"""Answers to lesson 16, twenty-second batch, written by a reader of the notebook only."""

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

timetable__right_counted = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": (4 + 12 - 1) - 12,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 4 - 2,
    "4 stages, 12 microbatches, waiting for each: steps": 12 * 4,
}

# The idle places are the whole white triangle area: (S - 1) on each of the S stages.
timetable__wrong_alltogether = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 12,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# Filling the pipe takes S steps, and then M more; hence also one idle step more than there is.
timetable__wrong_splusm = {
    "2 stages, 4 microbatches: steps": 6,
    "4 stages, 12 microbatches: idle steps of one stage": 4,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# "Stage 2" is the second stage, one behind the first: in step 4 it has what entered in step 3.
timetable__wrong_fromone = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 3,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 3,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}

# Waiting for each: the next one enters in the step in which the one before is on the last stage, so each costs 3, and one at the end.
timetable__wrong_overlap = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 3,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 37,
}


# ---------------------------------------------------------------- zero_bubble


def zero_bubble__right_counters(devices, microbatches):
    S, M = devices, microbatches
    last = 2 * S - 1
    count = {(kind, s): 0 for kind in "FBW" for s in range(2 * S)}
    orders = [[] for _ in range(S)]

    def first(d, now):
        early, deep = d, last - d
        held = sum(now["F", s] - now["W", s] for s in (early, deep))
        for s in (early, deep):
            m = now["B", s]
            if m < now["F", s] and (s == last or now["B", s + 1] > m):
                return "B", s
        if held < 2 * S:
            for s in (deep, early):
                m = now["F", s]
                if m < M and (s == 0 or now["F", s - 1] > m):
                    return "F", s
        for s in (early, deep):
            if now["W", s] < now["B", s]:
                return "W", s
        return None

    while any(count["W", s] < M for s in range(2 * S)):
        now = dict(count)
        for d in range(S):
            if work := first(d, now):
                kind, s = work
                orders[d].append(f"{kind}{count[work]}@{s}")
                count[work] += 1
    return orders


# To split B and W is all there is to it: 1F1B with W behind its B lets the stage before begin earlier.
def zero_bubble__wrong_glued(devices, microbatches):
    orders = []
    for s in range(devices):
        warm = min(devices - s, microbatches)
        order = [f"F{m}" for m in range(warm)]
        for m in range(microbatches):
            order += [f"B{m}", f"W{m}"]
            if m + warm < microbatches:
                order.append(f"F{m + warm}")
        orders.append(order)
    return orders


# Nobody waits for W, so all of W goes to the end, where the bubble is; what is held until then was forgotten.
def zero_bubble__wrong_wlast(devices, microbatches):
    orders = []
    for s in range(devices):
        warm = min(devices - s, microbatches)
        order = [f"F{m}" for m in range(warm)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m + warm < microbatches:
                order.append(f"F{m + warm}")
        orders.append(order + [f"W{m}" for m in range(microbatches)])
    return orders


# The stage that warms up with S - s forwards puts off as many W (the number of the warm-up and that of the delay mixed up).
def zero_bubble__wrong_delay(devices, microbatches):
    orders = []
    for s in range(devices):
        warm = min(devices - s, microbatches)
        order, w = [f"F{m}" for m in range(warm)], 0
        for m in range(microbatches):
            order.append(f"B{m}")
            if m >= devices - s:
                order.append(f"W{w}")
                w += 1
            if m + warm < microbatches:
                order.append(f"F{m + warm}")
        orders.append(order + [f"W{k}" for k in range(w, microbatches)])
    return orders


# ZB-V by search, but the limit of 2 S halves is asked of each stage by itself and not of the two stages of a device together.
def zero_bubble__wrong_perstage(devices, microbatches):
    S, M = devices, microbatches
    last = 2 * S - 1
    f, b, w = [0] * (2 * S), [0] * (2 * S), [0] * (2 * S)
    orders = [[] for _ in range(S)]
    while min(w) < M:
        f0, b0, w0 = list(f), list(b), list(w)
        for d in range(S):
            pair = (d, last - d)
            can = [("B", s) for s in pair if b0[s] < f0[s] and (s == last or b0[s + 1] > b0[s])]
            can += [
                ("F", s)
                for s in reversed(pair)
                if f0[s] < M and (s == 0 or f0[s - 1] > f0[s]) and f0[s] - w0[s] < 2 * S
            ]
            can += [("W", s) for s in pair if w0[s] < b0[s]]
            if can:
                kind, s = can[0]
                done = {"F": f, "B": b, "W": w}[kind]
                orders[d].append(f"{kind}{done[s]}@{s}")
                done[s] += 1
    return orders


# ---------------------------------------------------------------- split_backward


def split_backward__right_byhand(weights, x, g, *, mesh):
    def on_device(w, x, g):
        w, h, g = w[0], x[0], g[0]
        went_in, came_out = [], []
        for k in range(w.shape[0]):
            went_in.append(h)
            h = layer(w[k], h)
            came_out.append(h)
        deltas = []
        for k in reversed(range(w.shape[0])):
            delta = g * (1 - came_out[k] ** 2)
            deltas.insert(0, delta)
            g = delta @ w[k].T
        came = send(g, -1)
        dw = jnp.stack([a.T @ delta for a, delta in zip(went_in, deltas)])
        return came[None], dw[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# One vjp gives both, and since only the input's gradient goes into send, the compiler will see that it need not wait for W.
def split_backward__wrong_onevjp(weights, x, g, *, mesh):
    def stage(w, h):
        return jax.lax.scan(lambda h, one: (layer(one, h), None), h, w)[0]

    def on_device(w, x, g):
        _, back = jax.vjp(stage, w[0], x[0])
        dw, dx = back(g[0])
        return send(dx, -1)[None], dw[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"),) * 3, out_specs=(P("stage"),) * 2)(weights, x, g)


# Stage 0 has no stage before it, so its gradient goes nowhere, and the last stage receives nothing.
def split_backward__wrong_nowrap(weights, x, g, *, mesh):
    n = mesh.shape["stage"]

    def stage(w, h):
        return jax.lax.scan(lambda h, one: (layer(one, h), None), h, w)[0]

    def on_device(w, x, g):
        (dx,) = jax.vjp(lambda a: stage(w[0], a), x[0])[1](g[0])
        came = jax.lax.ppermute(dx, "stage", [(s, s - 1) for s in range(1, n)])
        (dw,) = jax.vjp(lambda p: stage(p, x[0]), w[0])[1](g[0])
        return came[None], dw[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"),) * 3, out_specs=(P("stage"),) * 2)(weights, x, g)


# What comes from the next stage is the gradient of my output, so the weights' gradient is made from that and not from g.
def split_backward__wrong_fromcame(weights, x, g, *, mesh):
    def stage(w, h):
        return jax.lax.scan(lambda h, one: (layer(one, h), None), h, w)[0]

    def on_device(w, x, g):
        (dx,) = jax.vjp(lambda a: stage(w[0], a), x[0])[1](g[0])
        came = send(dx, -1)
        (dw,) = jax.vjp(lambda p: stage(p, x[0]), w[0])[1](came)
        return came[None], dw[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"),) * 3, out_specs=(P("stage"),) * 2)(weights, x, g)


# Weights' gradients are added up over the devices before they are used, as in data parallelism.
def split_backward__wrong_allreduce(weights, x, g, *, mesh):
    def stage(w, h):
        return jax.lax.scan(lambda h, one: (layer(one, h), None), h, w)[0]

    def on_device(w, x, g):
        (dx,) = jax.vjp(lambda a: stage(w[0], a), x[0])[1](g[0])
        came = send(dx, -1)
        (dw,) = jax.vjp(lambda p: stage(p, x[0]), w[0])[1](g[0])
        return came[None], jax.lax.psum(dw, "stage")[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"),) * 3, out_specs=(P("stage"),) * 2)(weights, x, g)
