"""Answers to lesson 16, eighth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- split_backward


def split_backward__right_vdot(weights, x, g, *, mesh):
    def stage(layers, h):
        return jax.lax.scan(lambda h, w: (layer(w, h), None), h, layers)[0]

    def on_device(layers, h, g):
        layers, h, g = layers[0], h[0], g[0]
        to_input = jax.grad(lambda h: jnp.vdot(stage(layers, h), g))(h)
        arrived = send(to_input, by=-1)
        to_weights = jax.grad(lambda layers: jnp.vdot(stage(layers, h), g))(layers)
        return arrived[None], to_weights[None]

    cut = P("stage", None, None)
    ins = (P("stage", None, None, None), cut, cut)
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=(cut, ins[0]))(weights, x, g)


# W belongs to what comes from the next stage, so its cotangent is what has just arrived, and not the g that was given.
def split_backward__wrong_arrived(weights, x, g, *, mesh):
    def stage(layers, h):
        return jax.lax.scan(lambda h, w: (layer(w, h), None), h, layers)[0]

    def on_device(layers, h, g):
        layers, h, g = layers[0], h[0], g[0]
        (to_input,) = jax.vjp(lambda h: stage(layers, h), h)[1](g)
        arrived = send(to_input, -1)
        (to_weights,) = jax.vjp(lambda layers: stage(layers, h), layers)[1](arrived)
        return arrived[None], to_weights[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# "Send first, then W": to be sure of that order the student ties W to what has arrived by a barrier, and so W waits for the transfer.
def split_backward__wrong_barrier(weights, x, g, *, mesh):
    def stage(layers, h):
        return jax.lax.scan(lambda h, w: (layer(w, h), None), h, layers)[0]

    def on_device(layers, h, g):
        layers, h, g = layers[0], h[0], g[0]
        (to_input,) = jax.vjp(lambda h: stage(layers, h), h)[1](g)
        arrived = send(to_input, -1)
        arrived, layers, h, g = jax.lax.optimization_barrier((arrived, layers, h, g))  # now the send is before W
        (to_weights,) = jax.vjp(lambda layers: stage(layers, h), layers)[1](g)
        return arrived[None], to_weights[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# By hand: keeps what goes *into* each layer, and takes the derivative of tanh from it as if it were what comes out.
def split_backward__wrong_derivative(weights, x, g, *, mesh):
    def on_device(layers, h, g):
        layers, h, g = layers[0], h[0], g[0]
        _, inputs = jax.lax.scan(lambda h, w: (layer(w, h), h), h, layers)

        def back(g, kept):
            w, went_in = kept
            before_tanh = g * (1 - went_in**2)
            return before_tanh @ w.T, before_tanh

        to_input, deltas = jax.lax.scan(back, g, (layers, inputs), reverse=True)
        arrived = send(to_input, -1)
        to_weights = jnp.einsum("lbi,lbo->lio", inputs, deltas)
        return arrived[None], to_weights[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# Nobody is before stage 0 in a pipeline: its gradient stays at home, and the last stage gets nothing.
def split_backward__wrong_open(weights, x, g, *, mesh):
    def stage(layers, h):
        return jax.lax.scan(lambda h, w: (layer(w, h), None), h, layers)[0]

    def on_device(layers, h, g):
        n = jax.lax.axis_size("stage")
        (to_input,) = jax.vjp(lambda h: stage(layers[0], h), h[0])[1](g[0])
        arrived = jax.lax.ppermute(to_input, "stage", [(s + 1, s) for s in range(n - 1)])
        (to_weights,) = jax.vjp(lambda layers: stage(layers, h[0]), layers[0])[1](g[0])
        return arrived[None], to_weights[None]

    cut = P("stage")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(cut, cut))(weights, x, g)


# ---------------------------------------------------------------- activations_held

_names = (
    "GPipe, 4 stages, 8 microbatches: held on stage 0",
    "1F1B, 4 stages, 8 microbatches: held on stage 0",
    "1F1B, 4 stages, 8 microbatches: held on stage 3",
    "1F1B, 8 stages, 4 microbatches: held on stage 0",
)

activations_held__right_formula = dict(
    zip(_names, [8] + [min(S - s, M) for S, M, s in ((4, 8, 0), (4, 8, 3), (8, 4, 0))])
)

# Warm-up is S - 1 - s forward passes; the next F has its B right behind it, so it is not counted as held.
activations_held__wrong_warm_up = dict(
    zip(_names, [8] + [min(S - 1 - s, M) for S, M, s in ((4, 8, 0), (4, 8, 3), (8, 4, 0))])
)

# The table at the end says min(S, M), so it is that on every stage.
activations_held__wrong_table = dict(zip(_names, (8, 4, 4, 4)))

# In GPipe only as many microbatches can be under way as there are stages, since each stage has one at a time.
activations_held__wrong_under_way = dict(zip(_names, (4, 4, 1, 4)))

# B takes two steps, and in its second one the next F has begun already: one more than were warmed up (but never more than M).
activations_held__wrong_overlap = dict(zip(_names, (8, 5, 2, 4)))


# ---------------------------------------------------------------- zero_bubble


def _greedy(devices, microbatches, stages_of, ranking, room):
    """Step by step: each device does the first piece, by `ranking`, whose needs were done before this step."""
    last = 2 * devices - 1
    stages = [stages_of(d) for d in range(devices)]
    done, orders, held = set(), [[] for _ in range(devices)], [0] * devices
    counters = {(kind, s): 0 for kind in "FBW" for s in range(last + 1)}

    def ready(kind, s, d):
        m = counters[kind, s]
        if m == microbatches:
            return False
        if kind == "F":
            return held[d] < room and (s == 0 or ("F", m, s - 1) in done)
        if kind == "B":
            return ("F", m, s) in done and (s == last or ("B", m, s + 1) in done)
        return ("B", m, s) in done

    while sum(map(len, orders)) < 6 * devices * microbatches:
        now = []
        for d in range(devices):
            pieces = [(kind, s) for kind in "FBW" for s in stages[d] if ready(kind, s, d)]
            if pieces:
                now.append((d, *min(pieces, key=lambda piece: ranking(*piece, counters[piece]))))
        if not now:
            break
        for d, kind, s in now:
            m = counters[kind, s]
            counters[kind, s] += 1
            held[d] += {"F": 1, "B": 0, "W": -1}[kind]
            done.add((kind, m, s))
            orders[d].append(f"{kind}{m}@{s}")
    return orders


def zero_bubble__right_greedy(devices, microbatches):
    return _greedy(
        devices,
        microbatches,
        lambda d: (d, 2 * devices - 1 - d),
        lambda kind, s, m: ("BFW".index(kind), -s if kind == "F" else m, -s),
        2 * devices,
    )


# Nobody waits for W: so all of them at the very end (and what they hold until then is forgotten).
def zero_bubble__wrong_all_last(devices, microbatches):
    return [order + [f"W{m}" for m in range(microbatches)] for order in one_f_one_b(devices, microbatches)]


# ZB-H1 the wrong way round: it is the early stages that have time, so stage s leaves out the first S - 1 - s W.
def zero_bubble__wrong_mirrored(devices, microbatches):
    orders = []
    for s, order in enumerate(one_f_one_b(devices, microbatches)):
        late, mine = devices - 1 - s, []
        for work in order:
            mine.append(work)
            m = int(work[1:])
            if work[0] == "B" and m >= late:
                mine.append(f"W{m - late}")
        mine += [f"W{m}" for m in range(max(microbatches - late, 0), microbatches)]
        orders.append(mine)
    return orders


# Two stages a device, as in part 9: d and d + S; the student took "a V" for a name, and put the right rule on the interleaved layout.
def zero_bubble__wrong_rounds(devices, microbatches):
    return _greedy(
        devices,
        microbatches,
        lambda d: (d, devices + d),
        lambda kind, s, m: ("BFW".index(kind), -s if kind == "F" else m, -s),
        2 * devices,
    )


# A microbatch is held until its W, so W comes before any new F: that frees its place as early as possible.
def zero_bubble__wrong_tidy(devices, microbatches):
    return _greedy(
        devices,
        microbatches,
        lambda d: (d, 2 * devices - 1 - d),
        lambda kind, s, m: ("BWF".index(kind), -s if kind == "F" else m, -s),
        2 * devices,
    )
