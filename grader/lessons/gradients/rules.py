"""§ 7–8, 10: who adds up, and when: per example, by rules of one's own, and once for many small batches."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
from jax.sharding import reshard

from grader.exercises import Array, BytesSent, Case, Draw, Move, Moves, ProgramExercise, Turns
from grader.jax_versions import varying
from grader.lessons.gradients.means import BATCH, each, keep, loss, network
from grader.lessons.shared import bytes_sent, sharding

# One gradient for every example: nothing is to be added up at all.

closed_over_params = ProgramExercise("closed_over_params", points=4, reference=jax.vmap(jax.grad(loss), (None, 0, 0)))


@closed_over_params.cases
def _(draw: Draw) -> Case:
    given, roundings = network(draw)
    return Case(given, draw.mesh("data", "model"), {"w1": BATCH, "w2": BATCH}, limits=[Turns({})], roundings=roundings)


def _per_example(then=keep, prepare=keep):
    """Every example's gradient, by parameters that the function on the devices closes over."""

    def program(params, x, y, *, mesh):
        def of_one(x, y):
            return jax.grad(loss)(each(params, prepare), x, y)

        def body(x, y):
            return each(jax.vmap(of_one)(x, y), then)

        return jax.shard_map(body, mesh=mesh, in_specs=(BATCH, BATCH), out_specs=BATCH)(x, y)

    return program


@closed_over_params.mistake
def closed_over(params, x, y, *, mesh):
    """Row k of every device was added to row k of all the others: the parameters, closed over or passed with P(), are
    the same on all devices, so their gradient is made the same too. Nothing should be added here. What type must the
    parameters have for that?"""
    return _per_example()(params, x, y, mesh=mesh)


@closed_over_params.mistake
def divided_by_the_devices(params, x, y, *, mesh):
    """Dividing does not take a sum apart. Each entry is now a mean over examples of different devices, and the single
    gradients are gone. They must never be added in the first place."""
    return _per_example(lambda g: g / lax.axis_size("data"))(params, x, y, mesh=mesh)


@closed_over_params.mistake
def averaged_over_the_devices(params, x, y, *, mesh):
    """A pmean of what is the same on all devices changes nothing: these are still sums over examples of different
    devices. The sum was made inside `jax.grad`, before you got hold of it."""
    return _per_example(lambda g: lax.pmean(g, "data"))(params, x, y, mesh=mesh)


@closed_over_params.mistake
def one_gradient_a_device(params, x, y, *, mesh):
    """That is one gradient for each device, of the mean over its rows. One for every *example* is wanted: which
    transformation runs a function for each row?"""

    def body(params, x, y):
        own = each(params, lambda p: varying(p, "data"))
        return each(jax.grad(loss)(own, x, y), lambda g: g[None])

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), BATCH, BATCH), out_specs=BATCH)(params, x, y)


@closed_over_params.mistake
def averaged_over_the_examples(params, x, y, *, mesh):
    """That is one gradient for all, the mean over the examples. One for *every* example is wanted, and each stays on
    the device that has the example: what is left to be averaged, or sent?"""

    def body(params, x, y):
        own = each(params, lambda p: varying(p, "data"))
        return each(jax.grad(loss)(own, x, y), lambda g: lax.pmean(g, "data"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), BATCH, BATCH), out_specs=P())(params, x, y)


@closed_over_params.mistake
def gathered_the_examples(params, x, y, *, mesh):
    """Right, but the examples were sent round for it, and every device computed the gradients of all. A device has its
    own rows and all parameters: what does it lack?"""

    def body(params, x, y):
        own = each(params, lambda p: varying(p, "data"))
        rows, first = x.shape[0], lax.axis_index("data") * x.shape[0]
        whole = (lax.all_gather(part, "data", tiled=True) for part in (x, y))
        grads = jax.vmap(jax.grad(loss), (None, 0, 0))(own, *whole)
        return each(grads, lambda g: lax.dynamic_slice_in_dim(g, first, rows))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), BATCH, BATCH), out_specs=BATCH)(params, x, y)


# A pair of functions with backward rules of their own, for a layer that is cut over `model`.

custom_vjp_pair = ProgramExercise("custom_vjp_pair", points=5, reference=jax.value_and_grad(loss, argnums=(0, 1)))
CUT = {"w1": P(None, "model"), "w2": P("model", None)}


@custom_vjp_pair.cases
def _(draw: Draw) -> Case:
    given, roundings = network(draw, CUT["w1"], CUT["w2"], batch=P())
    out = (P(), (CUT, P()))
    return Case(given, draw.mesh("data", "model"), out, limits=[Turns({"all_reduce": 2})], roundings=roundings)


def _same(value):
    return value


def _sum(value):
    return lax.psum(value, "model")


def _mean(value):
    return lax.pmean(value, "model")


def _with_rules(forward, backward):
    """A function of one array that does `forward`, and `backward` on the way back."""
    made = jax.custom_vjp(forward)
    made.defvjp(lambda value: (forward(value), None), lambda _, cotangent: (backward(cotangent),))
    return made


def _layer(f, g):
    """Loss and gradients on the devices, unchecked, f where x comes in and g where the parts of the result meet."""

    def program(params, x, y, *, mesh):
        def local(params, x, y):
            hidden = jnp.tanh(f(x) @ params["w1"])
            return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

        specs = CUT, P(), P()
        return jax.shard_map(
            jax.value_and_grad(local, argnums=(0, 1)),
            mesh=mesh,
            in_specs=specs,
            out_specs=(P(), (CUT, P())),
            check_vma=False,
        )(params, x, y)

    return program


@custom_vjp_pair.mistake
def both_sum_backwards(params, x, y, *, mesh):
    """Every gradient is n times too large. Unchecked, the backward pass of a psum is another psum, which adds up n
    equal cotangents. What should the backward pass of g do with a cotangent that is the same on all devices?"""
    return _layer(_with_rules(_same, _sum), _sum)(params, x, y, mesh=mesh)


@custom_vjp_pair.mistake
def without_f(params, x, y, *, mesh):
    """The weights' gradients are right; that by x is not. x went to all devices, each used it with its own columns,
    and each holds its own part of the cotangent. Copied on the way in: what does that mean on the way back?"""
    return _layer(_same, _with_rules(_sum, _same))(params, x, y, mesh=mesh)


@custom_vjp_pair.mistake
def neither_rule(params, x, y, *, mesh):
    """The weights' gradients are n times too large, and the parts of x's gradient were never added. So it is,
    unchecked, with a plain psum and nothing where x comes in; with shard_map's check on JAX inserts what is missing.
    Two rules are yours to write."""
    return _layer(_same, _sum)(params, x, y, mesh=mesh)


@custom_vjp_pair.mistake
def swapped(params, x, y, *, mesh):
    """f and g stand in each other's place: x was multiplied by the number of devices on the way in, and the parts of
    the result were never added. Where do parts of a sum meet on the way *forward*?"""
    return _layer(_with_rules(_sum, _same), _with_rules(_same, _sum))(params, x, y, mesh=mesh)


@custom_vjp_pair.mistake
def mean_instead_of_a_sum_backwards(params, x, y, *, mesh):
    """The gradient with respect to x is 1/n of what it should be. Each device has the part that came through its own
    hidden units: parts of a sum are added, not averaged."""
    return _layer(_with_rules(_same, _mean), _with_rules(_sum, _same))(params, x, y, mesh=mesh)


@custom_vjp_pair.mistake
def cotangent_without_a_tuple(params, x, y, *, mesh):
    """The backward rule of a custom_vjp returns a tuple: a cotangent for each argument of the function, also where it
    has only one. What makes a tuple of one thing in Python?"""
    g = jax.custom_vjp(_sum)
    g.defvjp(lambda value: (_sum(value), None), lambda _, cotangent: cotangent)
    return _layer(_with_rules(_same, _sum), g)(params, x, y, mesh=mesh)


# The gradient of many small batches, added up over the devices once.


def squares(w, x, y):
    """The loss of a small batch: a sum, so that small batches add up."""
    return jnp.sum((x @ w - y) ** 2)


def _total(w, xs, ys):
    return sum(jax.grad(squares)(w, x, y) for x, y in zip(xs, ys, strict=True))


one_all_reduce = ProgramExercise("one_all_reduce", points=5, reference=_total, by_compiler=True)
SMALL = P(None, "data", None)


@one_all_reduce.cases
def _(draw: Draw) -> Case:
    mesh = draw.mesh("data", "model")
    rows, i, k = draw.lengths(3, divisible_by=8)
    batches = int(draw.rng.integers(3, 6))
    given = {
        "w": Array(draw.values(i, k) / 8, P()),
        "xs": Array(draw.values(batches, rows, i) / 8, SMALL),
        "ys": Array(draw.values(batches, rows, k) / 8, SMALL),
    }
    once = bytes_sent("all_reduce", i * k, mesh["data"])
    # Forwards a sum over the features, backwards over the rows of every batch.
    return Case(
        given,
        mesh,
        P(),
        limits=[BytesSent(once), Moves((Move("all_reduce", ("data",), (i, k)),))],
        explicit=True,
        roundings=i + batches * rows,
    )


def _parts(w, xs, ys, mesh):
    """Each small batch's gradient, its sum over the devices put off."""
    return [
        jnp.dot(2 * x.T, x @ w - y, out_sharding=sharding(mesh, unreduced={"data"}))
        for x, y in zip(xs, ys, strict=True)
    ]


def _added(parts):
    first, *others = parts
    return sum(others, first)


@one_all_reduce.mistake
def reduced_every_turn(w, xs, ys, *, mesh):
    """w is the same on all devices, so each small batch's gradient is made the same on all devices too: an all-reduce
    in every turn of the loop. Sums may be put off. What must the type of w, or of the gradient, say for that?"""

    def add(total, batch):
        return total + jax.grad(squares)(w, *batch), None

    return lax.scan(add, jnp.zeros_like(w), (xs, ys))[0]


@one_all_reduce.mistake
def reduced_every_part(w, xs, ys, *, mesh):
    """Each small batch's gradient was summed over the devices, and then these were added: as many all-reduces as there
    are small batches. The parts may be added first, as unreduced arrays. How many sums over the devices are left?"""
    return _added(jax.grad(squares)(w, x, y) for x, y in zip(xs, ys, strict=True))


@one_all_reduce.mistake
def scaled_an_unfinished_sum(w, xs, ys, *, mesh):
    """The gradient of a square has a factor 2, and here it stands in front of an unreduced array, where JAX allows
    little more than adding. Which of the two factors of the product could take the 2 before they are multiplied?"""
    halves = (
        jnp.dot(x.T, x @ w - y, out_sharding=sharding(mesh, unreduced={"data"})) for x, y in zip(xs, ys, strict=True)
    )
    return reshard(_added(2 * half for half in halves), sharding(mesh))


@one_all_reduce.mistake
def began_with_a_whole_zero(w, xs, ys, *, mesh):
    """The running sum begins as zeros that are whole on every device, and a part of a sum is added to it: a type that
    is finished and one that is not. Begin with the first small batch's gradient, or with zeros of the parts' type."""
    return reshard(sum(_parts(w, xs, ys, mesh), jnp.zeros_like(w)), sharding(mesh))


@one_all_reduce.mistake
def never_reduced(w, xs, ys, *, mesh):
    """The small batches' gradients were added, and the sum over the devices never made: what you return is one part of
    it on each device. Which call completes it?"""
    return _added(_parts(w, xs, ys, mesh))


@one_all_reduce.mistake
def last_batch_only(w, xs, ys, *, mesh):
    """That is the gradient of the last small batch alone. Where is the running sum?"""
    return reshard(_parts(w, xs, ys, mesh)[-1], sharding(mesh))


@one_all_reduce.mistake
def mean_over_the_batches(w, xs, ys, *, mesh):
    """A mean over the small batches. The loss is a sum over all rows of all of them, so their gradients are added, and
    divided by nothing."""
    return reshard(_added(_parts(w, xs, ys, mesh)), sharding(mesh)) / len(xs)


@one_all_reduce.mistake
def gathered_every_row(w, xs, ys, *, mesh):
    """All rows were gathered, and every device took the whole gradient. One all-reduce as large as w is enough: the
    rows can stay where they are."""
    return _total(w, reshard(xs, sharding(mesh)), reshard(ys, sharding(mesh)))
