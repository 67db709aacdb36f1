"""Answers to lesson 16, second batch, written by a reader of the notebook only."""

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


def bubble__right_places(stages, microbatches):
    """Counts the places of the whole table."""
    places = stages * (stages + microbatches - 1)
    return (places - stages * microbatches) / places


def bubble__wrong_of_the_work(stages, microbatches):
    """Idle steps over working steps, not over all of them."""
    return (stages - 1) / microbatches


def bubble__wrong_off_by_one(stages, microbatches):
    """S + M steps."""
    return (stages - 1) / (stages + microbatches)


def bubble__wrong_idle_steps(stages, microbatches):
    """How many steps a stage is idle, not which part."""
    return stages - 1


def bubble__wrong_percent(stages, microbatches):
    """In percent."""
    return 100 * (stages - 1) / (stages + microbatches - 1)


def microbatches__right_solved(stages, percent):
    """Solved for M, in whole numbers."""
    return max(1, int((stages - 1) * (100 - percent) // percent) + 1)


def microbatches__wrong_at_most(stages, percent):
    """At most so many percent, not less."""
    m = 1
    while 100 * (stages - 1) > percent * (stages + m - 1):
        m += 1
    return m


def microbatches__wrong_rule_of_thumb(stages, percent):
    """The rule of thumb of the text, whatever the percent."""
    return 4 * stages


def microbatches__wrong_of_the_work(stages, percent):
    """Idle over working steps: (S - 1) / M."""
    m = 1
    while 100 * (stages - 1) >= percent * m:
        m += 1
    return m


def microbatches__wrong_one_before(stages, percent):
    """The last number with a bubble that is still too large."""
    m = 1
    while 100 * (stages - 1) >= percent * (stages + m - 1):
        m += 1
    return m - 1


def circular__right_pieces(weights, x, *, mesh):
    """Pieces numbered t - d; the microbatch by divmod."""
    n, v, m = mesh.shape["stage"], weights.shape[0], x.shape[0]

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            piece = jnp.clip(t - me, 0, v * m - 1)
            busy = (t >= me) & (t - me < v * m)
            lap, rest = piece // (v * n), piece % (v * n)
            number, batch = rest // n, lap * n + rest % n
            h = jnp.where((me == 0) & (number == 0), x[batch], h)
            h = layer(w[number, 0], h)
            done = busy & (me == n - 1) & (number == v - 1)
            out = jnp.where(done, out.at[batch].set(h), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        (_, out), _ = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


def circular__wrong_all_its_layers(weights, x, *, mesh):
    """A device runs all of its v layers in one turn: one round, in the wrong order of layers."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            h = jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h)
            for one in w:
                h = layer(one[0], h)
            out = jnp.where(t >= n - 1, out.at[jnp.maximum(t - (n - 1), 0)].set(h), out)
            return (send(h), out), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        (_, out), _ = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


def circular__wrong_round_by_round(weights, x, *, mesh):
    """Right values, but each round waits for the end of the one before: v (M + S - 1) turns."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")
        for one in w:

            def turn(carry, t, x=x, one=one):
                h, out = carry
                h = layer(one[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], h))
                out = jnp.where(t >= n - 1, out.at[jnp.maximum(t - (n - 1), 0)].set(h), out)
                return (send(h), out), None

            zeros = varying(jnp.zeros(x.shape[1:], x.dtype)), varying(jnp.zeros(x.shape, x.dtype))
            (_, out), _ = jax.lax.scan(turn, zeros, jnp.arange(m + n - 1))
            x = jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")
        return x

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


def circular__wrong_always_from_x(weights, x, *, mesh):
    """Device 0 takes from x in every round: what has come round is lost."""
    n, v, m = mesh.shape["stage"], weights.shape[0], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            p = jnp.clip(t - me, 0, v * m - 1)
            r, b = p // n % v, p // (v * n) * n + p % n
            h = layer(w[r, 0], jnp.where(me == 0, x[b], h))
            keep = (me == n - 1) & (r == v - 1) & (t >= me)
            return (send(h), jnp.where(keep, out.at[b].set(h), out)), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        (_, out), _ = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


def circular__wrong_one_group(weights, x, *, mesh):
    """All M microbatches go through round 0 before round 1 begins: right only where M is S."""
    n, v, m = mesh.shape["stage"], weights.shape[0], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def turn(carry, t):
            h, out = carry
            p = jnp.clip(t - me, 0, v * m - 1)
            r, b = p // m, p % m
            h = layer(w[r, 0], jnp.where((me == 0) & (r == 0), x[b], h))
            keep = (me == n - 1) & (r == v - 1) & (t >= me)
            return (send(h), jnp.where(keep, out.at[b].set(h), out)), None

        zeros = varying(jnp.zeros_like(x[0])), varying(jnp.zeros_like(x))
        (_, out), _ = jax.lax.scan(turn, zeros, jnp.arange(v * m + n - 1))
        return jax.lax.psum(jnp.where(me == n - 1, out, 0), "stage")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "stage"), P()), out_specs=P())(weights, x)


def pp_dp__right_cast_first(weights, x, *, mesh):
    """The weights vary over data before anything is done; the sum counts numbers, and each result has its pmean."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                counts = (me == n - 1) & (t >= n - 1)
                return (send(act), squares + jnp.where(counts, jnp.sum(act**2), 0)), None

            start = (varying(jnp.zeros(x.shape[1:]), ("stage", "data")), varying(jnp.zeros(()), ("stage", "data")))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / x.size

        value, gradient = jax.value_and_grad(loss)(varying(w, "data"))
        return jax.lax.pmean(value, "data"), jax.lax.pmean(gradient, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


def pp_dp__wrong_natural(weights, x, *, mesh):
    """`natural` as it is: right, and the gradient is sent in every turn."""
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
            return jax.lax.pmean(jax.lax.psum(squares, "stage") / x.size, "data")

        return jax.value_and_grad(loss)(w)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


def pp_dp__wrong_added_over_copies(weights, x, *, mesh):
    """psum over data: loss and gradient are as many times too large as there are copies."""
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

        return jax.lax.psum(jax.value_and_grad(loss)(varying(w, "data")), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )


def pp_dp__wrong_stages_averaged(weights, x, *, mesh):
    """Averages the gradients over both axes: those of different layers are mixed."""
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


def pp_dp__wrong_first_stage(weights, x, *, mesh):
    """Adds up what stage 0 makes, which has been through one layer only."""
    n, m = mesh.shape["stage"], len(x)

    def on_device(w, x):
        me = jax.lax.axis_index("stage")

        def loss(w):
            def turn(carry, t):
                act, squares = carry
                act = layer(w[0], jnp.where(me == 0, x[jnp.minimum(t, m - 1)], act))
                squares += jnp.where(me == 0, jnp.sum(act**2), 0)
                return (send(act), squares), None

            start = tuple(varying(jnp.zeros(shape), ("stage", "data")) for shape in (x.shape[1:], ()))
            (_, squares), _ = jax.lax.scan(turn, start, jnp.arange(m + n - 1))
            return jax.lax.psum(squares, "stage") / x.size

        return jax.lax.pmean(jax.value_and_grad(loss)(varying(w, "data")), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=(P(), P("stage")))(
        weights, x
    )
