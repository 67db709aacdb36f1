"""§ 7–8, 10: when to sum: once for many small batches, by your own rules, and never, for single examples."""

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

# One gradient for every example (§ 10): nothing is summed at all.

closed_over_params = ProgramExercise("closed_over_params", points=4, reference=jax.vmap(jax.grad(loss), (None, 0, 0)))


@closed_over_params.cases
def _(draw: Draw) -> Case:
    given, roundings = network(draw)
    return Case(given, draw.mesh("data", "model"), {"w1": BATCH, "w2": BATCH}, limits=[Turns({})], roundings=roundings)


def _per_example(then=keep, prepare=keep):
    """Every example's gradient with respect to parameters that the per-device function closes over."""

    def program(params, x, y, *, mesh):
        def of_one(x, y):
            return jax.grad(loss)(each(params, prepare), x, y)

        def body(x, y):
            return each(jax.vmap(of_one)(x, y), then)

        return jax.shard_map(body, mesh=mesh, in_specs=(BATCH, BATCH), out_specs=BATCH)(x, y)

    return program


@closed_over_params.mistake
def closed_over(params, x, y, *, mesh):
    """Row k of every device was added to row k of all other devices. The parameters, closed over or passed with
    `P()`, are replicated, so JAX made their gradient replicated too, with a sum. Nothing should be summed here.
    Which type should the parameters have?"""
    return _per_example()(params, x, y, mesh=mesh)


@closed_over_params.mistake
def divided_by_the_devices(params, x, y, *, mesh):
    """Each row of the result is a mean over examples of different devices. Dividing doesn't take a sum apart, so
    the single gradients were lost. How do you keep JAX from summing them?"""
    return _per_example(lambda g: g / lax.axis_size("data"))(params, x, y, mesh=mesh)


@closed_over_params.mistake
def averaged_over_the_devices(params, x, y, *, mesh):
    """Each row of the result is still a sum over examples of different devices: a pmean of equal values changes
    nothing. The sum was taken inside `jax.grad`. How do you keep it from being taken there?"""
    return _per_example(lambda g: lax.pmean(g, "data"))(params, x, y, mesh=mesh)


@closed_over_params.mistake
def one_gradient_a_device(params, x, y, *, mesh):
    """The result has one gradient for each device, of the mean over its rows. The exercise asks for one for every
    *example*. Which transformation runs a function for each row?"""

    def body(params, x, y):
        own = each(params, lambda p: varying(p, "data"))
        return each(jax.grad(loss)(own, x, y), lambda g: g[None])

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), BATCH, BATCH), out_specs=BATCH)(params, x, y)


@closed_over_params.mistake
def averaged_over_the_examples(params, x, y, *, mesh):
    """The result is one gradient for all examples, their mean. The exercise asks for one for *every* example, on
    the device that holds the example. What is left to average or send, then?"""

    def body(params, x, y):
        own = each(params, lambda p: varying(p, "data"))
        return each(jax.grad(loss)(own, x, y), lambda g: lax.pmean(g, "data"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), BATCH, BATCH), out_specs=P())(params, x, y)


@closed_over_params.mistake
def gathered_the_examples(params, x, y, *, mesh):
    """The values were correct, but the examples were gathered, and every device computed the gradients of all of
    them. A device holds its own rows and all parameters. What else does it need?"""

    def body(params, x, y):
        own = each(params, lambda p: varying(p, "data"))
        rows, first = x.shape[0], lax.axis_index("data") * x.shape[0]
        whole = (lax.all_gather(part, "data", tiled=True) for part in (x, y))
        grads = jax.vmap(jax.grad(loss), (None, 0, 0))(own, *whole)
        return each(grads, lambda g: lax.dynamic_slice_in_dim(g, first, rows))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), BATCH, BATCH), out_specs=BATCH)(params, x, y)


# Two functions with their own backward rules (§ 8), for a layer that is sharded over `model`.

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
    """A function of one array that does `forward`, with the backward rule `backward`."""
    made = jax.custom_vjp(forward)
    made.defvjp(lambda value: (forward(value), None), lambda _, cotangent: (backward(cotangent),))
    return made


def _layer(f, g):
    """Loss and gradients on the devices, unchecked, with f where x comes in and g where the partial results are
    summed."""

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
    """Every gradient was n times too large. Without `check_vma`, the backward pass of a psum is another psum, and
    here it summed n equal cotangents. What should the backward rule of g do with a cotangent that is the same on
    all devices?"""
    return _layer(_with_rules(_same, _sum), _sum)(params, x, y, mesh=mesh)


@custom_vjp_pair.mistake
def without_f(params, x, y, *, mesh):
    """The gradients of the weights were correct, but not that of x. Every device used x with its own columns, so
    each device held a partial sum of the cotangent. What does the backward pass do with what the forward pass
    copies?"""
    return _layer(_same, _with_rules(_sum, _same))(params, x, y, mesh=mesh)


@custom_vjp_pair.mistake
def neither_rule(params, x, y, *, mesh):
    """The gradients of the weights were n times too large, and the partial gradients of x were never summed. That
    is what a plain psum gives without `check_vma`, with nothing where x comes in. Which two backward rules are
    yours to write?"""
    return _layer(_same, _sum)(params, x, y, mesh=mesh)


@custom_vjp_pair.mistake
def swapped(params, x, y, *, mesh):
    """f and g were in each other's place: x was multiplied by the number of devices on the way in, and the partial
    results were never summed. Where does the *forward* pass have to sum?"""
    return _layer(_with_rules(_sum, _same), _with_rules(_same, _sum))(params, x, y, mesh=mesh)


@custom_vjp_pair.mistake
def mean_instead_of_a_sum_backwards(params, x, y, *, mesh):
    """The gradient of x was 1/n of the expected one. Each device holds the part that came through its own hidden
    units. Are partial sums averaged or summed?"""
    return _layer(_with_rules(_same, _mean), _with_rules(_sum, _same))(params, x, y, mesh=mesh)


@custom_vjp_pair.mistake
def cotangent_without_a_tuple(params, x, y, *, mesh):
    """The backward rule returned an array. JAX expects a tuple from it, with one cotangent for each argument, even
    if there is only one. How do you write a tuple with one element in Python?"""
    g = jax.custom_vjp(_sum)
    g.defvjp(lambda value: (_sum(value), None), lambda _, cotangent: cotangent)
    return _layer(_with_rules(_same, _sum), g)(params, x, y, mesh=mesh)


# The gradient of many small batches (§ 7), summed over the devices once.


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
    # The forward pass sums over the features, and the backward pass over the rows of every batch.
    return Case(
        given,
        mesh,
        P(),
        limits=[BytesSent(once), Moves((Move("all_reduce", ("data",), (i, k)),))],
        explicit=True,
        roundings=i + batches * rows,
    )


def _parts(w, xs, ys, mesh):
    """Each small batch's gradient, with its sum over the devices postponed."""
    return [
        jnp.dot(2 * x.T, x @ w - y, out_sharding=sharding(mesh, unreduced={"data"}))
        for x, y in zip(xs, ys, strict=True)
    ]


def _added(parts):
    first, *others = parts
    return sum(others, first)


@one_all_reduce.mistake
def reduced_every_turn(w, xs, ys, *, mesh):
    """The loop ran an all-reduce in every iteration. `w` is replicated, so JAX made each small batch's gradient
    replicated too. The sum can be postponed. What would the type of `w`, or of the gradient, have to say for that?"""

    def add(total, batch):
        return total + jax.grad(squares)(w, *batch), None

    return lax.scan(add, jnp.zeros_like(w), (xs, ys))[0]


@one_all_reduce.mistake
def reduced_every_part(w, xs, ys, *, mesh):
    """The program ran as many all-reduces as there are small batches: each gradient was summed over the devices
    before the gradients were added. Unreduced arrays may be added to each other first. How many sums over the
    devices are then left?"""
    return _added(jax.grad(squares)(w, x, y) for x, y in zip(xs, ys, strict=True))


@one_all_reduce.mistake
def scaled_an_unfinished_sum(w, xs, ys, *, mesh):
    """The program multiplied an unreduced array by 2, and JAX refused: it allows little more than adding such
    arrays. Which of the two matrices could be multiplied by 2 before the matmul?"""
    halves = (
        jnp.dot(x.T, x @ w - y, out_sharding=sharding(mesh, unreduced={"data"})) for x, y in zip(xs, ys, strict=True)
    )
    return reshard(_added(2 * half for half in halves), sharding(mesh))


@one_all_reduce.mistake
def began_with_a_whole_zero(w, xs, ys, *, mesh):
    """The running sum started with replicated zeros, and an unreduced array was added to them. The two have
    different types. What could the sum start with instead?"""
    return reshard(sum(_parts(w, xs, ys, mesh), jnp.zeros_like(w)), sharding(mesh))


@one_all_reduce.mistake
def never_reduced(w, xs, ys, *, mesh):
    """The small batches' gradients were added, but never summed over the devices, so each device returned its
    partial sum. Which call completes the sum?"""
    return _added(_parts(w, xs, ys, mesh))


@one_all_reduce.mistake
def last_batch_only(w, xs, ys, *, mesh):
    """The result was the gradient of the last small batch alone. Where does your loop add the others?"""
    return reshard(_parts(w, xs, ys, mesh)[-1], sharding(mesh))


@one_all_reduce.mistake
def mean_over_the_batches(w, xs, ys, *, mesh):
    """The result was the mean over the small batches. The loss is a sum over the rows of all of them. Is there
    anything to divide by?"""
    return reshard(_added(_parts(w, xs, ys, mesh)), sharding(mesh)) / len(xs)


@one_all_reduce.mistake
def gathered_every_row(w, xs, ys, *, mesh):
    """The program gathered all rows, and every device computed the full gradient. One all-reduce as large as `w` is
    enough. Which sums can a device take over its own rows?"""
    return _total(w, reshard(xs, sharding(mesh)), reshard(ys, sharding(mesh)))
