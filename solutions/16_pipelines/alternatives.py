"""Right answers to 16_pipelines, each spelled differently from the lesson's model solution. All earn full marks."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P


def varying(value, axes="stage"):
    return lax.pcast(value, axes, to="varying") if hasattr(lax, "pcast") else lax.pvary(value, axes)


def bubble__one_minus_busy(stages, microbatches):
    return 1 - Fraction(microbatches, microbatches + stages - 1).__float__()


def microbatches__solved(stages, percent):
    return math.floor(Fraction((stages - 1) * (100 - percent), percent)) + 1


def gpipe__stacked(weights, x, *, mesh):
    """What every turn makes is stacked by the scan; the first S - 1 of the last stage's are cut off."""
    n = mesh.shape["stage"]

    def go(w, x):
        me = lax.axis_index("stage")
        fed = jnp.concatenate([x, jnp.zeros((n - 1, *x.shape[1:]))])

        def turn(h, came):
            h = jnp.tanh(jnp.where(me == 0, came, h) @ w[0])
            return lax.ppermute(h, "stage", [(k, (k + 1) % n) for k in range(n)]), h

        made = lax.scan(turn, jnp.zeros(x.shape[1:]), fed)[1][n - 1 :]
        return lax.psum(jnp.where(me == n - 1, made, jnp.zeros_like(made)), "stage")

    return jax.shard_map(go, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P(), check_vma=False)(weights, x)


def gpipe__written_out(weights, x, *, mesh):
    """No loop in the program, no transfer behind the last stage, and none after the last turn."""
    n, m = mesh.shape["stage"], len(x)

    def go(w, x):
        me, h, made = lax.axis_index("stage"), jnp.zeros_like(x[0]), []
        for t in range(m + n - 1):
            if t:
                h = lax.ppermute(h, "stage", [(k, k + 1) for k in range(n - 1)])
            h = jnp.tanh(jnp.where(me == 0, x[min(t, m - 1)], h) @ w.squeeze(0))
            if t >= n - 1:
                made.append(h)
        return lax.psum(jnp.stack(made) * (me == n - 1), "stage")

    return jax.shard_map(go, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P(), check_vma=False)(weights, x)


def gpipe_gradient__outside(weights, x, y, real, *, mesh):
    """Differentiated from outside of the shard_map; the errors of each turn are stacked."""
    n = mesh.shape["stage"]

    def go(w, x, y, real):
        me = lax.axis_index("stage")
        fed = jnp.concatenate([x, jnp.zeros((n - 1, *x.shape[1:]))])

        def turn(h, came):
            h = jnp.tanh(jnp.where(me == 0, came, h) @ w[0])
            return lax.ppermute(h, "stage", [(k, (k + 1) % n) for k in range(n)]), h

        made = lax.scan(turn, varying(jnp.zeros(x.shape[1:])), fed)[1][n - 1 :]
        error = jnp.einsum("mb,mbd->", real, (made - y) ** 2)
        return lax.psum(jnp.where(me == n - 1, error, 0.0), "stage") / real.sum()

    specs = P("stage"), P(), P(), P()
    return jax.value_and_grad(jax.shard_map(go, mesh=mesh, in_specs=specs, out_specs=P()))(weights, x, y, real)


def one_f_one_b__step_by_step(stages, microbatches):
    """Each stage takes what its turn is: a backward pass as soon as it has done its warm-up."""
    orders = []
    for stage in range(stages):
        ahead, order = 0, []
        forward, backward = iter(range(microbatches)), 0
        while backward < microbatches:
            m = next(forward, None) if ahead < stages - stage else None
            if m is not None:
                order, ahead = [*order, f"F{m}"], ahead + 1
            else:
                order, ahead, backward = [*order, f"B{backward}"], ahead - 1, backward + 1
        orders.append(order)
    return orders


def one_f_one_b__tuples(stages, microbatches):
    """Three phases, with the stage behind each piece of work."""

    def order(s):
        warm_up = min(stages - s - 1, microbatches)
        steady = [(f"F{m}@{s}", f"B{m - warm_up}@{s}") for m in range(warm_up, microbatches)]
        return (
            *(f"F{m}@{s}" for m in range(warm_up)),
            *(work for pair in steady for work in pair),
            *(f"B{m}@{s}" for m in range(microbatches - warm_up, microbatches)),
        )

    return tuple(map(order, range(stages)))


def split_backward__kept_in_between(weights, x, g, *, mesh):
    """B written by hand; the gradients between the layers are kept, and all W are one product."""
    n = mesh.shape["stage"]

    def go(weights, x, g):
        weights, x, g = weights[0], x[0], g[0]
        last, inputs = lax.scan(lambda h, w: (jnp.tanh(h @ w), h), x, weights)
        outputs = jnp.concatenate([inputs[1:], last[None]])

        def back(g, layer):
            w, out = layer
            g = g * (1 - out**2)
            return g @ w.T, g

        of_x, between = lax.scan(back, g, (weights, outputs), reverse=True)
        came = lax.ppermute(of_x, "stage", [(k, (k - 1) % n) for k in range(n)])
        return came[None], jnp.einsum("lbi,lbo->lio", inputs, between)[None]

    return jax.shard_map(go, mesh=mesh, in_specs=P("stage"), out_specs=P("stage"))(weights, x, g)


def circular__fori_loop(weights, x, *, mesh):
    rounds, n, m = len(weights), mesh.shape["stage"], len(x)

    def go(w, x):
        me = lax.axis_index("stage")

        def turn(t, carry):
            h, out = carry
            group, within = jnp.divmod(t - me, rounds * n)
            r, place = jnp.divmod(within, n)
            k = group * n + place
            enters = jnp.logical_and(me == 0, r == 0)
            h = jnp.tanh(lax.select(enters, lax.dynamic_index_in_dim(x, k, keepdims=False), h) @ w[r, 0])
            leaves = (r == rounds - 1) & (me == n - 1) & (group >= 0)
            out = out.at[jnp.where(leaves, k, m)].set(h, mode="drop")
            return lax.ppermute(h, "stage", [(j, (j + 1) % n) for j in range(n)]), out

        out = lax.fori_loop(0, rounds * m + n - 1, turn, (jnp.zeros_like(x[0]), jnp.zeros_like(x)))[1]
        return lax.psum(out, "stage")

    specs = P(None, "stage"), P()
    return jax.shard_map(go, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(weights, x)


def pp_dp__outputs_kept(weights, x, *, mesh):
    """One cast before the loop, one mean behind it, of value and gradient together."""
    n = mesh.shape["stage"]

    def go(w, x):
        me = lax.axis_index("stage")
        fed = jnp.concatenate([x, jnp.zeros((n - 1, *x.shape[1:]))])

        def loss(w):
            def turn(h, came):
                h = jnp.tanh(jnp.where(me == 0, came, h) @ w[0])
                return lax.ppermute(h, "stage", [(k, (k + 1) % n) for k in range(n)]), h

            made = lax.scan(turn, varying(jnp.zeros(x.shape[1:]), ("stage", "data")), fed)[1][n - 1 :]
            return lax.psum(jnp.where(me == n - 1, jnp.mean(made**2), 0.0), "stage")

        return jax.tree.map(lambda v: lax.pmean(v, "data"), jax.value_and_grad(loss)(varying(w, "data")))

    specs = P("stage"), P(None, "data")
    return jax.shard_map(go, mesh=mesh, in_specs=specs, out_specs=(P(), P("stage")))(weights, x)


def zero_bubble__v(devices, microbatches):
    """The same rule, kept in tables: what each stage has done, and when."""
    stages, room = 2 * devices, 2 * min(devices, microbatches)
    done = {kind: [[] for _ in range(stages)] for kind in "FBW"}  # ends, by stage
    orders, held, now = [[] for _ in range(devices)], [0] * devices, 0

    def there(kind, stage, m):
        return not 0 <= stage < stages or len(done[kind][stage]) > m and done[kind][stage][m] <= now

    while any(len(ends) < microbatches for ends in done["W"]):
        for d in range(devices):
            up, down = d, stages - 1 - d
            for kind, stage in (("B", up), ("B", down), ("F", down), ("F", up), ("W", up), ("W", down)):
                m = len(done[kind][stage])
                ready = {
                    "F": there("F", stage - 1, m) and held[d] < room,
                    "B": there("F", stage, m) and there("B", stage + 1, m),
                    "W": there("B", stage, m),
                }[kind]
                if m < microbatches and ready:
                    orders[d].append(f"{kind}{m}@{stage}")
                    done[kind][stage].append(now + 1)
                    held[d] += (kind == "F") - (kind == "W")
                    break
        now += 1
    return orders


def tied_embedding__gathered_before(embedding, weights, tokens, *, mesh):
    """The vectors are looked up and the logits made outside of the loop, each on its own stage."""
    n = mesh.shape["stage"]

    def go(e, w, tokens):
        me = lax.axis_index("stage")

        def loss(both):
            e, w = both
            fed = jnp.concatenate([e[tokens], jnp.zeros((n - 1, tokens.shape[1], e.shape[1]))])

            def turn(h, came):
                h = jnp.tanh(jnp.where(me == 0, came, h) @ w[0])
                return lax.ppermute(h, "stage", [(k, (k + 1) % n) for k in range(n)]), h

            made = lax.scan(turn, varying(jnp.zeros((tokens.shape[1], e.shape[1]))), fed)[1][n - 1 :]
            return lax.psum(jnp.where(me == n - 1, jnp.mean((made @ e.T) ** 2), 0.0), "stage")

        value, (of_e, of_w) = jax.value_and_grad(loss)((varying(e), w))
        return value, (lax.psum(of_e, "stage"), of_w)

    specs, out = (P(), P("stage"), P()), (P(), (P(), P("stage")))
    return jax.shard_map(go, mesh=mesh, in_specs=specs, out_specs=out)(embedding, weights, tokens)
