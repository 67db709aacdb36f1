"""Answers to lesson 16, as students give them: written from the student's notebook alone."""

import math

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("stage",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def layer(w, h):
    return jnp.tanh(h @ w)


def send(h, by=1):
    n = jax.lax.axis_size("stage")
    return jax.lax.ppermute(h, "stage", [(s, (s + by) % n) for s in range(n)])


def varying(value, axes="stage"):
    return jax.lax.pcast(value, axes, to="varying")


timetable__right_counted = {
    "2 stages, 4 microbatches: steps": 5,
    "4 stages, 12 microbatches: idle steps of one stage": 3,
    "4 stages, 12 microbatches: microbatch on stage 2 in step 4": 2,
    "4 stages, 12 microbatches, waiting for each: steps": 48,
}
# batches plus stages
timetable__wrong_plus = timetable__right_counted | {"2 stages, 4 microbatches: steps": 6}
# one after the other
timetable__wrong_product = timetable__right_counted | {"2 stages, 4 microbatches: steps": 8}
# perfectly overlapped
timetable__wrong_perfect = timetable__right_counted | {"2 stages, 4 microbatches: steps": 4}
# the idle steps of all stages
timetable__wrong_idle = timetable__right_counted | {"4 stages, 12 microbatches: idle steps of one stage": 12}
# counts from one
timetable__wrong_one = timetable__right_counted | {"4 stages, 12 microbatches: microbatch on stage 2 in step 4": 3}
# waiting costs nothing
timetable__wrong_waiting = timetable__right_counted | {"4 stages, 12 microbatches, waiting for each: steps": 15}
# the step less the stage, wrong sign
timetable__wrong_sign = timetable__right_counted | {"4 stages, 12 microbatches: microbatch on stage 2 in step 4": 6}


def bubble__right_formula(stages, microbatches):
    """The formula."""
    return (stages - 1) / (stages + microbatches - 1)


def bubble__right_counted(stages, microbatches):
    """One less what is used."""
    steps = stages + microbatches - 1
    return 1 - stages * microbatches / (stages * steps)


def bubble__wrong_m(stages, microbatches):
    """Over the microbatches."""
    return (stages - 1) / microbatches


def bubble__wrong_steps(stages, microbatches):
    """S + M steps."""
    return (stages - 1) / (stages + microbatches)


def bubble__wrong_busy(stages, microbatches):
    """The busy part."""
    return microbatches / (stages + microbatches - 1)


def bubble__wrong_percent(stages, microbatches):
    """In per cent."""
    return 100 * (stages - 1) / (stages + microbatches - 1)


def bubble__wrong_number(stages, microbatches):
    """The number of empty places."""
    return stages * (stages - 1)


def bubble__wrong_s(stages, microbatches):
    """S in place of S − 1."""
    return stages / (stages + microbatches - 1)


def bubble__wrong_floor(stages, microbatches):
    """Whole numbers."""
    return (stages - 1) // (stages + microbatches - 1)


def microbatches__right_counted(stages, percent):
    """Counts up."""
    m = 1
    while 100 * (stages - 1) >= percent * (m + stages - 1):
        m += 1
    return m


def microbatches__right_solved(stages, percent):
    """Solved: strictly more than 100 (S−1)/p − (S−1)."""
    return max(1, 100 * (stages - 1) // percent - (stages - 1) + 1)


def microbatches__wrong_equal(stages, percent):
    """At most, not less than."""
    m = 1
    while 100 * (stages - 1) > percent * (m + stages - 1):
        m += 1
    return m


def microbatches__wrong_ceil(stages, percent):
    """ceil: wrong where it comes out even."""
    return max(1, math.ceil(100 * (stages - 1) / percent - (stages - 1)))


def microbatches__wrong_part(stages, percent):
    """A percent taken for a part of one."""
    m = 1
    while (stages - 1) / (m + stages - 1) >= percent:
        m += 1
    return m


def microbatches__wrong_over_m(stages, percent):
    """The bubble over M."""
    m = 1
    while 100 * (stages - 1) >= percent * m:
        m += 1
    return m


def microbatches__wrong_zero(stages, percent):
    """Starts at zero."""
    m = 0
    while 100 * (stages - 1) >= percent * (m + stages - 1):
        m += 1
    return m - 1


def microbatches__wrong_float(stages, percent):
    """No rounding."""
    return 100 * (stages - 1) / percent - (stages - 1)


def _gpipe(weights, x, mesh, late=None, last=None, first=0, ending=None, by=1, turns=None):
    def body(w, x):
        me, n, m = jax.lax.axis_index("stage"), jax.lax.axis_size("stage"), len(x)
        behind = n - 1 if late is None else late(n)

        def turn(carry, t):
            h, out = carry
            h = layer(w[0], jnp.where(me == first, x[jnp.minimum(t, m - 1)], h))
            put = out.at[jnp.maximum(t - behind, 0)].set(h)
            return (send(h, by), jnp.where(t >= behind, put, out)), None

        start = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        (_, out), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1 if turns is None else turns(m, n)))
        end = n - 1 if last is None else last(n)
        return ending(out, me, n) if ending else jax.lax.psum(jnp.where(me == end, out, 0), "stage")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


def gpipe__right_plain(weights, x, *, mesh):
    """As it is."""
    return _gpipe(weights, x, mesh)


def gpipe__wrong_all_add(weights, x, *, mesh):
    """Adds up what all stages have put down."""
    return _gpipe(weights, x, mesh, ending=lambda out, me, n: jax.lax.psum(out, "stage"))


def gpipe__wrong_mean(weights, x, *, mesh):
    """A mean of the last stage's and of zeros."""
    return _gpipe(weights, x, mesh, ending=lambda out, me, n: jax.lax.pmean(jnp.where(me == n - 1, out, 0), "stage"))


def gpipe__wrong_late(weights, x, *, mesh):
    """Puts down from turn n on."""
    return _gpipe(weights, x, mesh, late=lambda n: n)


def gpipe__wrong_first(weights, x, *, mesh):
    """Collects on stage 0."""
    return _gpipe(weights, x, mesh, last=lambda n: 0)


def gpipe__wrong_down(weights, x, *, mesh):
    """Sends to the stage before."""
    return _gpipe(weights, x, mesh, by=-1)


def gpipe__wrong_few_turns(weights, x, *, mesh):
    """M turns."""
    return _gpipe(weights, x, mesh, turns=lambda m, n: m)


def gpipe__wrong_more_turns(weights, x, *, mesh):
    """One turn too many."""
    return _gpipe(weights, x, mesh, turns=lambda m, n: m + n)


def gpipe__wrong_gathered(weights, x, *, mesh):
    """Gathers the weights."""

    def body(w, x):
        for one in jax.lax.all_gather(w, "stage", tiled=True, to="invarying"):
            x = layer(one, x)
        return x

    return jax.shard_map(body, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


activations_held__right_read = {
    "GPipe, 4 stages, 8 microbatches: held on stage 0": 8,
    "1F1B, 4 stages, 8 microbatches: held on stage 0": 4,
    "1F1B, 4 stages, 8 microbatches: held on stage 3": 1,
    "1F1B, 8 stages, 4 microbatches: held on stage 0": 4,
}
# stages, whatever there is of microbatches
activations_held__wrong_stages = activations_held__right_read | {"1F1B, 8 stages, 4 microbatches: held on stage 0": 8}
# as GPipe
activations_held__wrong_as_gpipe = activations_held__right_read | {"1F1B, 4 stages, 8 microbatches: held on stage 0": 8}


def one_f_one_b__right_plain(stages, microbatches):
    """As it is."""
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


def one_f_one_b__wrong_gpipe(stages, microbatches):
    """GPipe's orders."""
    return [[*(f"F{m}" for m in range(microbatches)), *(f"B{m}" for m in range(microbatches))] for _ in range(stages)]


def one_f_one_b__wrong_alternating(stages, microbatches):
    """F and B in turn on every stage."""
    return [[work for m in range(microbatches) for work in (f"F{m}", f"B{m}")] for _ in range(stages)]


def one_f_one_b__wrong_warm_up(stages, microbatches):
    """Warms up by the stage's number."""
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


def one_f_one_b__wrong_one_less(stages, microbatches):
    """One forward pass too few before the first gradient."""
    orders = []
    for s in range(stages):
        warm_up = min(max(stages - s - 1, 1), microbatches)
        order = [f"F{m}" for m in range(warm_up)]
        for m in range(microbatches):
            order.append(f"B{m}")
            if m + warm_up < microbatches:
                order.append(f"F{m + warm_up}")
        orders.append(order)
    return orders


# Wrong at an edge, or right in an unusual way


def microbatches__wrong_from_two(stages, percent):
    """Begins with two."""
    m = 2
    while 100 * (stages - 1) >= percent * (stages + m - 1):
        m += 1
    return m


def gpipe__right_fori(weights, x, *, mesh):
    """fori_loop."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(t, carry):
            h, out = carry
            h = layer(w[0], jax.lax.select(jnp.full(h.shape, me == 0), x[t % m] + h * 0, h))
            return send(h), out.at[(t + 1 - n) % m].set(h)

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        out = jax.lax.fori_loop(0, m + n - 1, turn, zeros)[1]
        return jax.lax.psum(out * (me == n - 1), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


def gpipe_gradient__right_outside(weights, x, y, real, *, mesh):
    """value_and_grad around shard_map."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x, y, real):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, total = carry
            h = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
            k = jnp.maximum(t - (n - 1), 0)
            errors = jnp.sum(real[k] * jnp.sum((h - y[k]) ** 2, axis=-1))
            total += jnp.where((me == n - 1) & (t >= n - 1), errors, 0)
            return (send(h), total), None

        zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(()))
        _, total = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))[0]
        return jax.lax.psum(total, "stage") / jnp.sum(real)

    ins = (P("stage"), P(), P(), P())
    return jax.value_and_grad(jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=P()))(weights, x, y, real)


def _greedy(devices, microbatches, room):
    last = 2 * devices - 1
    orders, ends, step = [[] for _ in range(devices)], {}, 0

    def can(device):
        stages, held = (device, last - device), sum({"F": 1, "B": 0, "W": -1}[w[0]] for w in orders[device])
        for kind, stage in [("B", s) for s in stages] + [("F", s) for s in stages[::-1]] + [("W", s) for s in stages]:
            m = sum(work[0] == kind and work[2] == stage for work in orders[device])
            needs = {
                "F": [("F", m, stage - 1)] if stage else [],
                "B": [("F", m, stage)] + ([("B", m, stage + 1)] if stage < last else []),
                "W": [("B", m, stage)],
            }[kind]
            if m < microbatches and all(ends.get(n, step + 1) <= step for n in needs) and (kind != "F" or held < room):
                return kind, m, stage

    while len(ends) < 3 * microbatches * 2 * devices:
        for device in range(devices):
            if work := can(device):
                orders[device].append(work)
                ends[work] = step + 1
        step += 1
    return [[f"{kind}{m}@{stage}" for kind, m, stage in order] for order in orders]


def zero_bubble__wrong_always_two_rounds(devices, microbatches):
    """Two microbatches for each device, however many there are."""
    return _greedy(devices, 2 * devices, 2 * devices)


def microbatches__wrong_in_parts_of_one(stages, percent):
    """Solved for M, with a part of one in place of percent: it is rounded."""
    part = percent / 100
    return int((stages - 1) * (1 - part) / part) + 1


def gpipe__wrong_drained_with_the_first(weights, x, *, mesh):
    """Goes on with the first microbatches while it drains: there have to be as many."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(h, came):
            h = layer(w[0], jnp.where(me == 0, came, h))
            return send(h), h

        _, made = jax.lax.scan(turn, varying(jnp.zeros_like(x[0])), jnp.concatenate([x, x[: n - 1]]))
        return jax.lax.psum(jnp.where(me == n - 1, made[-m:], 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())(weights, x)


def circular__wrong_two_groups_at_most(weights, x, *, mesh):
    """The first S microbatches, then the next S, and no more."""
    n, m, rounds = mesh.shape["stage"], len(x), len(weights)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            piece = t - me
            r, k = piece // n % rounds, jnp.where(piece >= rounds * n, n, 0) + piece % n
            h = layer(w[r, 0], jnp.where((me == 0) & (r == 0), x[k], h))
            out = jnp.where((piece >= 0) & (r == rounds - 1), out.at[k].set(h), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros(x.shape[1:])), varying(jnp.zeros(x.shape))
        (_, out), _ = jax.lax.scan(turn, zeros, jnp.arange(rounds * m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)
