"""Answers to lesson 16, fourth batch, written by a reader of the notebook only."""

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


# ------------------------------------------------------------------ zero_bubble


def zero_bubble__right_greedy_v(devices, microbatches):
    """ZB-V, found by playing: sets of what is ready instead of formulas."""
    last = 2 * devices - 1
    mine = [(d, last - d) for d in range(devices)]
    done, orders, held = set(), [[] for _ in range(devices)], [0] * devices
    following = {("F", s): 0 for s in range(last + 1)} | {("B", s): 0 for s in range(last + 1)}
    put_off = [[] for _ in range(devices)]

    def ready(kind, stage):
        m = following[kind, stage]
        if m == microbatches:
            return False
        if kind == "F":
            return stage == 0 or ("F", m, stage - 1) in done
        return ("F", m, stage) in done and (stage == last or ("B", m, stage + 1) in done)

    total = 6 * devices * microbatches
    while sum(map(len, orders)) < total:
        now = []
        for d, (shallow, deep) in enumerate(mine):
            backward = sorted((following["B", s], s) for s in (shallow, deep) if ready("B", s))
            forward = [s for s in (deep, shallow) if ready("F", s)] if held[d] < 2 * devices else []
            if backward:
                m, s = backward[0]
                following["B", s] += 1
                put_off[d].append((m, s))
                now.append(("B", m, s, d))
            elif forward:
                s = forward[0]
                m = following["F", s]
                following["F", s] += 1
                held[d] += 1
                now.append(("F", m, s, d))
            elif put_off[d]:
                m, s = put_off[d].pop(0)
                held[d] -= 1
                now.append(("W", m, s, d))
        if not now:
            break
        for kind, m, s, d in now:
            orders[d].append(f"{kind}{m}@{s}")
            done.add((kind, m, s))
    return orders


# This student thought that splitting is all there is to it: 1F1B with each W right behind its B.
def zero_bubble__wrong_w_right_behind(devices, microbatches):
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


# This student put every W off to the end, because nobody waits for it, and forgot what must be held until then.
def zero_bubble__wrong_all_w_last(devices, microbatches):
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


# This student lets stage 0 put off the most W, S - 1 - s on stage s: the wrong end of the pipeline.
def zero_bubble__wrong_wrong_end(devices, microbatches):
    orders = []
    for s in range(devices):
        warm_up, late = min(devices - s, microbatches), devices - 1 - s
        order = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m >= late:
                order.append(f"W{m - late}")
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        order += [f"W{m}" for m in range(max(0, microbatches - late), microbatches)]
        orders.append(order)
    return orders


# This student warms up with s + 1 forward passes on stage s, so stage 0 waits for B0 before the last stage has had its F's.
def zero_bubble__wrong_warm_up_reversed(devices, microbatches):
    orders = []
    for s in range(devices):
        warm_up = min(s + 1, microbatches)
        order = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m >= s:
                order.append(f"W{m - s}")
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        order += [f"W{m}" for m in range(max(0, microbatches - s), microbatches)]
        orders.append(order)
    return orders


# ------------------------------------------------------------------ circular


def circular__right_sorted_afterwards(weights, x, *, mesh):
    """Every turn leaves its result; those of the last round are picked after the loop by a reshape."""
    v, n, m = len(weights), mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(h, t):
            p = jnp.clip(t - me, 0, v * m - 1)
            r, b = p // n % v, p // (v * n) * n + p % n
            h = layer(w[r, 0], jnp.where((me == 0) & (r == 0), x[b], h))
            return send(h), h

        _, made = jax.lax.scan(turn, varying(jnp.zeros(x.shape[1:], x.dtype)), jnp.arange(v * m + n - 1))
        out = made[n - 1 :].reshape(m // n, v, n, *x.shape[1:])[:, -1].reshape(x.shape)
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# This student lets all M microbatches through the first round before the second begins, which fits the ring only if M is S.
def circular__wrong_round_after_round(weights, x, *, mesh):
    v, n, m = len(weights), mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            p = jnp.clip(t - me, 0, v * m - 1)
            r, b = p // m, p % m
            h = layer(w[r, 0], jnp.where((me == 0) & (r == 0), x[b], h))
            out = jnp.where((r == v - 1) & (t >= me), out.at[b].set(h), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(x.shape))
        (_, out), _ = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# This student takes the round from the turn t, the same on all devices, in place of the device's own piece t - d.
def circular__wrong_round_of_the_turn(weights, x, *, mesh):
    v, n, m = len(weights), mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            r = t // n % v
            piece = jnp.clip(t - me, 0, v * m - 1)
            b = piece // (v * n) * n + piece % n
            h = layer(w[r, 0], jnp.where((me == 0) & (r == 0), x[b], h))
            last_round = (piece // n % v == v - 1) & (t >= me)
            return (send(h), jnp.where(last_round, out.at[b].set(h), out)), None

        zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(x.shape))
        (_, out), _ = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# This student runs all the layers that a device has in one turn, as a gpipe of thick stages: the layers' order is another.
def circular__wrong_thick_stages(weights, x, *, mesh):
    v, n, m = len(weights), mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h)
            for r in range(v):
                h = layer(w[r, 0], h)
            out = jnp.where(t >= n - 1, out.at[jnp.maximum(t - (n - 1), 0)].set(h), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(x.shape))
        (_, out), _ = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# This student hands a finished result to all devices in the turn in which it is made: right values, a sum in every turn.
def circular__wrong_sum_in_every_turn(weights, x, *, mesh):
    v, n, m = len(weights), mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            p = jnp.clip(t - me, 0, v * m - 1)
            r, b = p // n % v, p // (v * n) * n + p % n
            h = layer(w[r, 0], jnp.where((me == 0) & (r == 0), x[b], h))
            finished = jax.lax.psum(jnp.where(me == n - 1, h, 0), "stage")
            q = jnp.maximum(t - (n - 1), 0)
            out = jnp.where((t >= n - 1) & (q // n % v == v - 1), out.at[q // (v * n) * n + q % n].set(finished), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros(x.shape[1:])), jnp.zeros(x.shape)
        (_, out), _ = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))
        return out

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


# ------------------------------------------------------------------ pp_dp


def pp_dp__right_sums_of_the_whole(weights, x, *, mesh):
    """Divided by the size of the whole batch, so that copies are added up, not averaged."""
    n, m, size = mesh.shape["stage"], len(x), x.size

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def own_part(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = tuple(varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / size

        return jax.lax.psum(jax.value_and_grad(own_part)(varying(w, "data")), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# This student moved the pmean behind value_and_grad but left the weights as they came: the gradient is summed already, in each turn.
def pp_dp__wrong_not_varying(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = tuple(varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / x.size

        value, gradient = jax.value_and_grad(loss)(w)
        return jax.lax.pmean(value, "data"), jax.lax.pmean(gradient, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# This student averages the loss over the copies but adds their gradients up, "as gradients are".
def pp_dp__wrong_gradients_added(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = tuple(varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / x.size

        value, gradient = jax.value_and_grad(loss)(varying(w, "data"))
        return jax.lax.pmean(value, "data"), jax.lax.psum(gradient, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# This student averages the gradients over both axes of the mesh, so that different stages' layers are mixed.
def pp_dp__wrong_stages_averaged(weights, x, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = tuple(varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / x.size

        value, gradient = jax.value_and_grad(loss)(varying(w, "data"))
        return jax.lax.pmean(value, "data"), jax.lax.pmean(gradient, ("stage", "data"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# This student took over from `natural` that there are four stages.
def pp_dp__wrong_always_four(weights, x, *, mesh):
    def on_device(w, x):
        me, n, m = jax.lax.axis_index("stage"), 4, len(x)

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = (varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, tuple(start), jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / x.size

        return jax.lax.pmean(jax.value_and_grad(loss)(varying(w, "data")), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )
