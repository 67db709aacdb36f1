"""Answers to lesson 16, nineteenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- zero_bubble


def zero_bubble__right_counters(devices, microbatches):
    last = 2 * devices - 1
    done = {kind: [0] * (2 * devices) for kind in "FBW"}
    orders = [[] for _ in range(devices)]
    while min(done["W"]) < microbatches:
        seen = {kind: tuple(counts) for kind, counts in done.items()}  # what was done when this step began

        def can(kind, s):
            m = seen[kind][s]
            if m == microbatches:
                return False
            if kind == "F":
                return s == 0 or seen["F"][s - 1] > m
            if kind == "B":
                return seen["F"][s] > m and (s == last or seen["B"][s + 1] > m)
            return seen["B"][s] > m

        for d, order in enumerate(orders):
            early, late = d, last - d
            halves = sum(seen["F"][s] - seen["W"][s] for s in (early, late))
            wishes = [("B", early), ("B", late)]
            if halves < 2 * devices:
                wishes += [("F", late), ("F", early)]
            wishes += [("W", early), ("W", late)]
            for kind, s in wishes:
                if can(kind, s):
                    order.append(f"{kind}{seen[kind][s]}@{s}")
                    done[kind][s] += 1
                    break
    return orders


# Thought that it is enough to split each backward pass in two, because then B is sent on before W begins.
def zero_bubble__wrong_glued(devices, microbatches):
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


# Thought that the first stages, which have the most to wait for, are those that should put off the most W (S - 1 - s, not s).
def zero_bubble__wrong_put_off(devices, microbatches):
    orders = []
    for s in range(devices):
        warm_up = min(devices - s, microbatches)
        late = devices - 1 - s
        order = [f"F{m}" for m in range(warm_up)]
        weight = 0
        for m in range(microbatches):
            order.append(f"B{m}")
            if m >= late:
                order.append(f"W{weight}")
                weight += 1
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        order += [f"W{m}" for m in range(weight, microbatches)]
        orders.append(order)
    return orders


# Thought, as under 1F1B, that a microbatch is held until its B is over, and counted only F - B against the limit.
def zero_bubble__wrong_held_until_b(devices, microbatches):
    S, M = devices, microbatches
    F, B, W = ([0] * (2 * S) for _ in range(3))
    orders = [[] for _ in range(S)]
    for _ in range(20 * (S + M)):
        f, b, w = list(F), list(B), list(W)
        for d in range(S):
            lo, hi = d, 2 * S - 1 - d
            held = f[lo] - b[lo] + f[hi] - b[hi]
            work = None
            for s in (lo, hi):
                if work is None and b[s] < f[s] and (s == 2 * S - 1 or b[s + 1] > b[s]):
                    work = f"B{b[s]}@{s}"
                    B[s] += 1
            for s in (hi, lo):
                if work is None and held < 2 * S and f[s] < M and (s == 0 or f[s - 1] > f[s]):
                    work = f"F{f[s]}@{s}"
                    F[s] += 1
            for s in (lo, hi):
                if work is None and w[s] < b[s]:
                    work = f"W{w[s]}@{s}"
                    W[s] += 1
            if work:
                orders[d].append(work)
    return orders


# Thought that "two stages a device" means the interleaved dealing, d and d + S, and used the search of ZB-V on it.
def zero_bubble__wrong_not_a_v(devices, microbatches):
    S, M = devices, microbatches
    done = {}  # work -> step in which it was done
    orders = [[] for _ in range(S)]
    for step in range(20 * (S + M)):

        def ready(*needs):
            return all(done.get(need, step) < step for need in needs)

        for d in range(S):
            stages = (d, d + S)
            held = sum(("F", m, s) in done and ("W", m, s) not in done for m in range(M) for s in stages)
            options = []
            for s in stages:
                options += [
                    ("B", m, s) for m in range(M) if ready(("F", m, s), *([("B", m, s + 1)] if s < 2 * S - 1 else []))
                ]
            if held < 2 * S:
                for s in stages[::-1]:
                    options += [("F", m, s) for m in range(M) if ready(*([("F", m, s - 1)] if s else []))]
            for s in stages:
                options += [("W", m, s) for m in range(M) if ready(("B", m, s))]
            options = [o for o in options if o not in done]
            if options:
                kind, m, s = options[0]
                done[options[0]] = step
                orders[d].append(f"{kind}{m}@{s}")
    return orders


# ---------------------------------------------------------------- gpipe_gradient


def gpipe_gradient__right_shifted(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def early(a):  # for what goes in: nothing in the last n - 1 turns
            return jnp.concatenate([a, jnp.zeros((n - 1, *a.shape[1:]), a.dtype)])

        def late(a):  # for what comes out: nothing in the first n - 1 turns
            return jnp.concatenate([jnp.zeros((n - 1, *a.shape[1:]), a.dtype), a])

        def loss(w):
            def turn(carry, now):
                h, total = carry
                taken, label, counts = now
                h = layer(w[0], jnp.where(me == 0, taken, h))
                errors = jnp.sum(counts * jnp.sum((h - label) ** 2, axis=-1))
                total = total + jnp.where(me == n - 1, errors, 0.0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, (early(x), late(y), late(real)))[0]
            return jax.lax.psum(total, "stage") / jnp.sum(real)

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Thought that one takes the mean error of each microbatch, and the mean of these at the end.
def gpipe_gradient__wrong_mean_of_means(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                out = jnp.maximum(t - (n - 1), 0)
                errors = jnp.sum(jnp.sum((h - y[out]) ** 2, axis=-1) * real[out])
                errors = errors / jnp.maximum(jnp.sum(real[out]), 1)
                total += jnp.where((me == n - 1) & (t >= n - 1), errors, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / m

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Thought that it is enough to ask for the last stage, and forgot that it makes nothing of use in the first n - 1 turns.
def gpipe_gradient__wrong_warm_up(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                out = jnp.maximum(t - (n - 1), 0)
                errors = jnp.sum(((h - y[out]) ** 2).sum(-1) * real[out])
                total += jnp.where(me == n - 1, errors, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / jnp.sum(real)

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Thought that the mask has done its work once it has left the padding out of the sum, and divided by all M * B examples.
def gpipe_gradient__wrong_all_examples(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                out = jnp.maximum(t - n + 1, 0)
                squared = jnp.where(real[out][:, None] == 1, (h - y[out]) ** 2, 0)
                total += jnp.where((me == n - 1) & (t >= n - 1), squared.sum(), 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / real.size

        return jax.value_and_grad(loss)(w)

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# Thought that the gradients, as the loss, have to be added up over the stages (as over copies in data parallelism).
def gpipe_gradient__wrong_summed_gradients(weights, x, y, real, *, mesh):
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                h, total = carry
                taken = x[jnp.minimum(t, m - 1)]
                h = layer(w[0], jnp.where(me == 0, taken, h))
                out = jnp.maximum(t - (n - 1), 0)
                errors = jnp.sum(((h - y[out]) ** 2).sum(-1) * real[out])
                total += jnp.where((me == n - 1) & (t >= n - 1), errors, 0)
                return (send(h), total), None

            zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
            _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
            return jax.lax.psum(total, "stage") / jnp.sum(real)

        value, grad = jax.value_and_grad(loss)(w)
        return value, jax.lax.psum(grad, "stage")

    ins, outs = (P("stage"), P(), P(), P()), (P(), P("stage"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(weights, x, y, real)


# ---------------------------------------------------------------- pp_dp


def pp_dp__right_sums(weights, x, *, mesh):
    n, copies = mesh.shape["stage"], mesh.shape["data"]

    def on_device(w, x):
        me, m = jax.lax.axis_index("stage"), len(x)

        def my_share(w):  # this copy's part of the mean over the whole batch
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = tuple(varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / (x.size * copies)

        value, grad = jax.value_and_grad(my_share)(varying(w, "data"))
        return jax.lax.psum(value, "data"), jax.lax.psum(grad, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# Thought that `natural` is right, so only the number of stages has to be read from the mesh; the gradient is sent in every turn.
def pp_dp__wrong_every_turn(weights, x, *, mesh):
    def natural(w, x):
        me, n, m = jax.lax.axis_index("stage"), mesh.shape["stage"], len(x)

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = (varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, tuple(start), jnp.arange(m + n - 1))
            return jax.lax.pmean(jax.lax.psum(squares, "stage") / x.size, "data")

        return jax.value_and_grad(loss)(w)

    return jax.shard_map(natural, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# Marked the weights, but left the pmean in the loss and took another one of the gradient: divided twice by the number of copies.
def pp_dp__wrong_averaged_twice(weights, x, *, mesh):
    def on_device(w, x):
        me, n, m = jax.lax.axis_index("stage"), mesh.shape["stage"], len(x)

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = (varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, tuple(start), jnp.arange(m + n - 1))
            return jax.lax.pmean(jax.lax.psum(squares, "stage") / x.size, "data")

        value, grad = jax.value_and_grad(loss)(varying(w, "data"))
        return value, jax.lax.pmean(grad, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# Copied `natural` with its four stages, which is right on the mesh shown only.
def pp_dp__wrong_four_stages(weights, x, *, mesh):
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

        result = jax.value_and_grad(loss)(varying(w, "data"))
        return jax.tree.map(lambda a: jax.lax.pmean(a, "data"), result)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


# Thought that a gradient is averaged over all devices of the mesh, so over both axes: mixes the layers of different stages.
def pp_dp__wrong_both_axes(weights, x, *, mesh):
    def on_device(w, x):
        me, n, m = jax.lax.axis_index("stage"), mesh.shape["stage"], len(x)

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where((me == n - 1) & (t >= n - 1), jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = (varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, tuple(start), jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / x.size

        value, grad = jax.value_and_grad(loss)(varying(w, "data"))
        return jax.lax.pmean(value, "data"), jax.lax.pmean(grad, ("stage", "data"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )
