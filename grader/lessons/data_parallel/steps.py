"""§ 1, 3, 5–6: training steps over a batch that is cut, judged by equality with a single device's run.

The network is that of JAX's tutorial on distributed arrays, smaller: relu between layers, the last one linear, the
loss a mean over the batch of summed squares. Parameters are a list of layers, each with its "W" and "b".
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, BytesSent, Case, Draw, Flops, InTurns, Move, Moves, ProgramExercise, Turns
from grader.jax_versions import varying
from grader.lessons.shared import bytes_sent, loss

AXES = "data", "model"  # the batch is cut over the first; the second is idle here
RATE = 1 / 64


def descend(params, gradients, rate):
    """One step of gradient descent."""
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def trained(params, x, y, steps, rate, gradient=jax.value_and_grad(loss)):
    """The losses before each step, and the parameters after the last."""
    losses = []
    for _ in range(steps):
        value, gradients = gradient(params, x, y)
        losses.append(value)
        params = descend(params, gradients, rate)
    return jnp.stack(losses), params


def _averaged(tree):
    return jax.tree.map(lambda leaf: lax.pmean(leaf, "data"), tree)


def _network(draw: Draw, *widths: int):
    """Parameters with about unit gain, in powers of two, so that nothing saturates and products are exact."""
    return [
        {"W": Array(draw.values(n, m) / 32, P()), "b": Array(draw.values(m) / 16, P())}
        for n, m in zip(widths, widths[1:], strict=False)
    ]


def _like(params, spec=P()):
    return jax.tree.map(lambda _: spec, params, is_leaf=lambda leaf: isinstance(leaf, Array))


def _count(params) -> int:
    return sum(leaf.value.size for leaf in jax.tree.leaves(params))


# By the compiler: lay the batch out, and write the program of a single device.

# References are compiled: op by op, a new shape would cost a compilation for every one of them.
_trained_alone = jax.jit(trained, static_argnums=3)
jit_dp = ProgramExercise("jit_dp", points=5, reference=_trained_alone, by_compiler=True)


def _how_long(draw):
    """Steps and learning rate: other ones where all lengths are equal, so that none of them can be written down."""
    return (2, RATE / 2) if draw.square else (3, RATE)


@jit_dp.cases
def _(draw):
    mesh = draw.mesh(*AXES)
    batch, *widths = draw.lengths(4, divisible_by=8)
    params, (steps, rate) = _network(draw, *widths), _how_long(draw)
    # What is added up over the batch: each parameter's gradient, and the loss.
    sums = [(), *(leaf.value.shape for leaf in jax.tree.leaves(params))]
    # Products of a step: one forward and two backward for each layer, but no gradient with respect to the data.
    products = 3 * sum(n * m for n, m in zip(widths, widths[1:], strict=False)) - widths[0] * widths[1]
    # Each step adds up over a batch and over every layer's inputs, forward and backward.
    roundings = steps * (batch + 2 * sum(widths))
    return Case(
        {
            "params": params,
            "x": Array(draw.values(batch, widths[0]) / 8, P()),
            "y": Array(draw.values(batch, widths[-1]) / 8, P()),
            "steps": steps,
            "rate": rate,
        },
        mesh,
        (P(), _like(params)),
        limits=[
            Moves(tuple(Move("all_reduce", ("data",), shape) for shape in sums)),
            Flops(steps * 2 * batch * products // mesh["data"]),
        ],
        roundings=roundings,
    )


def _laid(value, mesh, *spec):
    return lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))


@jit_dp.mistake
def left_whole(params, x, y, *, steps, rate, mesh):
    """The losses are right, and so are the parameters. But nothing is cut: every device has the whole batch, and all
    of them compute the same. Which of the arrays has to be divided, along which dimension, so that the work is?"""
    return trained(params, x, y, steps, rate)


@jit_dp.mistake
def cut_the_parameters_too(params, x, y, *, steps, rate, mesh):
    """The values are right, and each device keeps only its part of the parameters: that saves memory, has a name
    (fully sharded data parallelism) and a lesson of its own. Its price is in the report: weights have to be gathered
    before every use. Here the parameters stay whole, so that only gradients travel."""

    def cut(tree):
        return jax.tree.map(lambda leaf: _laid(leaf, mesh, "data"), tree)

    losses = []
    params = cut(params)
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, _laid(x, mesh, "data"), _laid(y, mesh, "data"))
        losses.append(value)
        params = cut(descend(params, gradients, rate))
    return jnp.stack(losses), jax.tree.map(lambda leaf: _laid(leaf, mesh), params)


@jit_dp.mistake
def cut_the_features(params, x, y, *, steps, rate, mesh):
    """The values are right, but activations travel in every step, as where the *features* are cut over `data`: the
    first product then sums over a dimension that no device holds whole. Which dimension of x counts examples?"""
    return trained(params, _laid(x, mesh, None, "data"), _laid(y, mesh, None, "data"), steps, rate)


@jit_dp.mistake
def lost_the_loss_before(params, x, y, *, steps, rate, mesh):
    """Each loss was computed with the parameters *after* the step. The curve of a run begins with the loss at the
    parameters it was given, which `value_and_grad` has at hand without another pass."""
    x, y, losses = _laid(x, mesh, "data"), _laid(y, mesh, "data"), []
    for _ in range(steps):
        params = descend(params, jax.grad(loss)(params, x, y), rate)
        losses.append(loss(params, x, y))
    return jnp.stack(losses), params


@jit_dp.mistake
def multiplied_by_the_devices(params, x, y, *, steps, rate, mesh):
    """Every step is too long by the number of devices along `data`. The compiler works for *one* program: the mean in
    the loss is already that of the whole batch, wherever its rows are. What is left to correct?"""
    return trained(params, _laid(x, mesh, "data"), _laid(y, mesh, "data"), steps, rate * mesh.shape["data"])


@jit_dp.mistake
def every_step_from_the_start(params, x, y, *, steps, rate, mesh):
    """The losses are all the same, and what is returned is one step away from the start, however many there were. Which
    parameters does the next turn of the loop read?"""
    x, y = _laid(x, mesh, "data"), _laid(y, mesh, "data")
    (value,), after = trained(params, x, y, 1, rate)
    return jnp.stack([value] * steps), after


@jit_dp.mistake
def trained_on_one_share(params, x, y, *, steps, rate, mesh):
    """The run saw one share of the batch: was it sliced, and the rest thrown away? To lay an array out is not to take a
    part of it: in the program it stays whole, and only *is stored* in parts."""
    share = x.shape[0] // mesh.shape["data"]
    return trained(params, x[:share], y[:share], steps, rate)


# By hand: the whole training step in one shard_map, the update inside.

shard_map_dp = ProgramExercise("shard_map_dp", points=6, reference=_trained_alone, piece=True)
CUT = P(), P("data"), P("data")


@shard_map_dp.cases
def _(draw):
    mesh = draw.mesh(*AXES)
    batch, *widths = draw.lengths(4, divisible_by=8)
    params, (steps, rate) = _network(draw, *widths), _how_long(draw)
    return Case(
        {
            "params": params,
            "x": Array(draw.values(batch, widths[0]) / 8, P("data")),
            "y": Array(draw.values(batch, widths[-1]) / 8, P("data")),
            "steps": steps,
            "rate": rate,
        },
        mesh,
        (P(), _like(params)),
        limits=[BytesSent(steps * bytes_sent("all_reduce", _count(params) + 1, mesh["data"]))],
        roundings=steps * (batch + 2 * sum(widths)),
    )  # as for jit_dp


def _by_hand(gradient, params, x, y, *, steps, rate, mesh, check_vma=True):
    """Train with `gradient(params, x, y)` on each device: (loss, gradients) of the rows that it holds."""

    def on_device(params, x, y):
        return trained(params, x, y, steps, rate, gradient)

    return jax.shard_map(on_device, mesh=mesh, in_specs=CUT, out_specs=(P(), P()), check_vma=check_vma)(params, x, y)


def _local(params, x, y):
    """The loss of a device's own rows, averaged for the report, and its gradient as JAX gives it."""
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    return lax.pmean(value, "data"), gradients


def _summed(tree):
    return jax.tree.map(lambda leaf: lax.psum(leaf, "data"), tree)


@shard_map_dp.mistake
def took_the_sum_for_the_mean(*arrays, check_vma=False, **how):
    """These gradients are a *sum* of means, one for each share of the batch. If you wrote no psum, JAX did: parameters
    are alike on all devices, a device's own loss is not, and the transpose of that step adds up. Each share is a mean
    already: what is missing, to make the mean of the whole batch?"""

    def gradient(*local):
        value, gradients = _local(*local)
        return value, gradients if check_vma else _summed(gradients)

    return _by_hand(gradient, *arrays, check_vma=check_vma, **how)


@shard_map_dp.mistake
def never_synchronised(*arrays, **how):
    """Every device went its own way, after the first step with parameters of its own. out_specs only *say* that the
    copies are alike, and with check_vma off JAX adds no gradients up. Which collective belongs between gradient and
    update?"""
    return _by_hand(_local, *arrays, **how, check_vma=False)


@shard_map_dp.mistake
def reduced_twice(*arrays, check_vma=False, **how):
    """The gradients are as many times too large as `data` has devices. Did you take the mean of gradients that had been
    added up over `data` already, by JAX or by you? A mean of equal numbers changes none. `jax.typeof` of a gradient,
    before you reduce it, tells whether it varies."""

    def gradient(*local):
        value, gradients = _local(*local)
        return value, _averaged(gradients if check_vma else _summed(gradients))

    return _by_hand(gradient, *arrays, check_vma=check_vma, **how)


@shard_map_dp.mistake
def summed_a_sum(*arrays, check_vma=False, **how):
    """The gradients are too large by the *square* of the number of devices along `data`: were they summed over it
    twice? With the check on, one sum is JAX's: parameters are alike on all devices, and the loss is not. How many sums
    does a mean need?"""

    def gradient(*local):
        value, gradients = _local(*local)
        return value, _summed(gradients if check_vma else _summed(gradients))

    return _by_hand(gradient, *arrays, check_vma=check_vma, **how)


@shard_map_dp.mistake
def sum_of_means(*arrays, **how):
    """The loss is as many times too large as there are devices along `data`, and its gradient with it: is it a sum of
    means? A learning rate that much smaller would hide it. What is the loss of the whole batch, given those of its
    shares?"""

    def gradient(params, x, y):
        return jax.value_and_grad(lambda p: lax.psum(loss(p, x, y), "data"))(params)

    return _by_hand(gradient, *arrays, **how)


@shard_map_dp.mistake
def own_loss_returned(params, x, y, *, steps, rate, mesh, check_vma=False):
    """The gradients are averaged, the loss is not: each device reports that of its own rows, and out_specs let the
    first one speak for all. With the check on, JAX refuses. What has to happen to the loss, too?"""

    def gradient(params, x, y):
        value, gradients = jax.value_and_grad(loss)(varying(params, "data"), x, y)
        return value, _averaged(gradients)

    return _by_hand(gradient, params, x, y, steps=steps, rate=rate, mesh=mesh, check_vma=check_vma)


@shard_map_dp.mistake
def averaged_over_the_other_axis(*arrays, **how):
    """Along `data`, which cuts the batch, the gradients still differ. Along `model` all devices hold the same rows, so
    there is nothing to average. Over which axis do they have to meet, and over which do they?"""

    def gradient(params, x, y):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        return lax.pmean(value, "data"), jax.tree.map(lambda g: lax.pmean(g, "model"), gradients)

    return _by_hand(gradient, *arrays, **how, check_vma=False)


# A batch too large for a device's memory: several microbatches, one after the other, and one reduction.

accumulate = ProgramExercise(
    "accumulate", points=6, reference=jax.jit(lambda params, x, y, microbatches: jax.value_and_grad(loss)(params, x, y))
)


@accumulate.cases
def _(draw):
    mesh = draw.mesh(*AXES)
    microbatches = 3 if mesh["data"] == 4 else 4  # another number than there are devices
    rows = int(8 * microbatches * draw.rng.integers(1, 3))
    widths = draw.lengths(3, divisible_by=8)
    params = _network(draw, *widths)
    leaves = len(jax.tree.leaves(params))
    return Case(
        {
            "params": params,
            "x": Array(draw.values(rows, widths[0]) / 8, P("data")),
            "y": Array(draw.values(rows, widths[-1]) / 8, P("data")),
            "microbatches": microbatches,
        },
        mesh,
        (P(), _like(params)),
        limits=[
            BytesSent(bytes_sent("all_reduce", _count(params) + 1, mesh["data"])),
            Turns({"all_reduce": leaves + 1}),
            InTurns(2 * rows // mesh["data"] // microbatches * max(n * m for n, m in itertools.pairwise(widths))),
        ],
        roundings=rows + 2 * sum(widths),
    )  # the sums of one pass


def _in_turns(params, x, y, microbatches, gradient, add=lambda total, part: total + part):
    """Accumulate `gradient`, (loss, gradients) of some rows, over a device's microbatches with a scan."""
    turns = tuple(v.reshape(microbatches, -1, v.shape[-1]) for v in (x, y))

    def turn(total, rows):
        return jax.tree.map(add, total, gradient(params, *rows)), None

    first = gradient(params, turns[0][0], turns[1][0])
    rest = jax.tree.map(lambda v: v[1:], turns)
    return lax.scan(turn, first, rest)[0]


def _accumulated(body, params, x, y, *, microbatches, mesh, check_vma=False):
    def on_device(params, x, y):
        return body(params, x, y, microbatches)

    return jax.shard_map(on_device, mesh=mesh, in_specs=CUT, out_specs=(P(), P()), check_vma=check_vma)(params, x, y)


def _scaled(tree, factor):
    return jax.tree.map(lambda leaf: leaf * factor, tree)


LOCAL = jax.value_and_grad(loss)


@accumulate.mistake
def summed_the_microbatches(*arrays, **how):
    """Loss and gradients are too large by the number of microbatches: each of these gives a mean already. Adding as you
    go is right; what does a sum of so many means lack?"""
    return _accumulated(lambda *local: _averaged(_in_turns(*local, LOCAL)), *arrays, **how)


@accumulate.mistake
def reduced_in_every_turn(*arrays, **how):
    """The gradients are right, and every microbatch sends them round: as often the communication as there are
    microbatches. A sum does not mind when it is made. What may wait until after the loop?"""

    def body(params, x, y, count):
        return _scaled(_in_turns(params, x, y, count, lambda *rows: _averaged(LOCAL(*rows))), 1 / count)

    return _accumulated(body, *arrays, **how)


@accumulate.mistake
def reduced_by_the_type(*arrays, **how):
    """The gradients are summed over `data` in every turn. If no psum of yours stands in the loop, JAX put one there:
    parameters that are alike everywhere, used by a loss that varies, get a gradient that is summed at once. In which
    type must the parameters enter the loop, so that their gradient stays local? (The lesson's `varying` changes it.)"""

    def body(params, x, y, count):
        value, gradients = _in_turns(params, x, y, count, LOCAL)
        return lax.pmean(value, "data") / count, _scaled(gradients, 1 / count / lax.axis_size("data"))

    return _accumulated(body, *arrays, **how, check_vma=True)


@accumulate.mistake
def reduced_in_every_turn_from_zero(*arrays, **how):
    """The values are right, but the loop reduces in every turn: as much as the first turn has sent, each of the others
    sends again. So it is, too, where a loss that is averaged over `data` is differentiated in the loop: all gradients
    are added up with it. What may a turn do without asking the other devices?"""

    def body(params, x, y, count):
        turns = tuple(v.reshape(count, -1, v.shape[-1]) for v in (x, y))

        def turn(total, rows):
            return jax.tree.map(jnp.add, total, _averaged(LOCAL(params, *rows))), None

        zeros = jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)
        return _scaled(lax.scan(turn, zeros, turns)[0], 1 / count)

    return _accumulated(body, *arrays, **how)


@accumulate.mistake
def reduced_in_every_written_turn(*arrays, **how):
    """The values are right, but the program has its reductions once for each microbatch: of the loss and of every
    gradient. (To differentiate a loss that is averaged over `data` reduces the gradients as well, without a line that
    says so.) Which loss needs no other device, and in which type must the parameters be for its gradient to stay
    local?"""

    def body(params, x, y, count):
        turns = zip(jnp.split(x, count), jnp.split(y, count), strict=True)
        parts = [_averaged(LOCAL(params, *rows)) for rows in turns]
        return jax.tree.map(lambda *leaves: sum(leaves) / count, *parts)

    return _accumulated(body, *arrays, **how)


@accumulate.mistake
def kept_the_last_microbatch(*arrays, **how):
    """Loss and gradients are those of the last microbatch alone. Does a turn of the loop overwrite what the turns
    before have found? What has to be carried from one turn to the next?"""
    return _accumulated(
        lambda *local: _averaged(_in_turns(*local, LOCAL, add=lambda total, part: part)), *arrays, **how
    )


@accumulate.mistake
def loss_of_the_last_microbatch(*arrays, **how):
    """The gradients are right. The loss is that of the last microbatch only: it, too, is a mean over all the rows, and
    has to be carried through the loop beside the gradients."""

    def body(params, x, y, count):
        _, gradients = _in_turns(params, x, y, count, LOCAL)
        rows = x.shape[0] // count
        return lax.pmean(loss(params, x[-rows:], y[-rows:]), "data"), _averaged(_scaled(gradients, 1 / count))

    return _accumulated(body, *arrays, **how)


@accumulate.mistake
def reduced_by_a_sum(*arrays, **how):
    """Loss and gradients are as many times too large as there are devices along `data`: are they summed over it? Each
    device's gradient is a mean over as many rows as its neighbours': how does one combine means?"""

    def body(params, x, y, count):
        means = _scaled(_in_turns(params, x, y, count, LOCAL), 1 / count)
        return _summed(means)

    return _accumulated(body, *arrays, **how)


@accumulate.mistake
def divided_twice(*arrays, **how):
    """Loss and gradients are too small, by the number of devices along `data`. Is a mean over the devices divided by
    their number once more? What has pmean already done?"""

    def body(params, x, y, count):
        return _averaged(_scaled(_in_turns(params, x, y, count, LOCAL), 1 / count / lax.axis_size("data")))

    return _accumulated(body, *arrays, **how)


@accumulate.mistake
def accumulated_without_reduction(*arrays, **how):
    """Each device has the mean over its own microbatches alone. One reduction is wanted, not none: after the loop, over
    the axis that cuts the batch."""
    return _accumulated(
        lambda params, x, y, count: _scaled(_in_turns(params, x, y, count, LOCAL), 1 / count), *arrays, **how
    )


# The last batch is not full: rows that are there only to make the shapes fit must not count.


def _per_row(logits, labels):
    """For every row: whether it is predicted, and its cross entropy."""
    right = (jnp.argmax(logits, axis=-1) == labels).astype(jnp.float32)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)[:, 0]
    return {"accuracy": right, "loss": -chosen}


def _measured(logits, labels, real):
    return jax.tree.map(lambda v: jnp.sum(v * real) / jnp.sum(real), _per_row(logits, labels))


metrics = ProgramExercise("metrics", points=4, reference=jax.jit(_measured))


@metrics.cases
def _(draw):
    mesh = draw.mesh(*AXES)
    classes = draw.lengths(1, divisible_by=8)[0]
    rows = int(draw.rng.choice([32, 48]))
    share = rows // mesh["data"]
    # The last device has nothing but padding, its neighbour some; then no device is without a real row, padding is
    # anywhere, and of the logits no float32 holds an exp.
    for padding, higher in ((share + 1 if mesh["data"] > 1 else share - 1, 0), (share // 2, 96)):
        logits = (
            higher + draw.values(rows, classes) / 8 + np.arange(classes, dtype=np.float32) / 1024
        )  # no two alike in a row
        labels = draw.rng.integers(classes, size=rows).astype(np.int32)
        labels[::2] = logits.argmax(1)[::2]  # every second row predicted, and all the padding
        labels[rows - padding :] = logits.argmax(1)[rows - padding :]
        real = (np.arange(rows) < rows - padding).astype(np.float32)
        arrays = {"logits": logits, "labels": labels, "real": real}
        if higher:
            order = draw.rng.permutation(rows)
            arrays = {name: value[order] for name, value in arrays.items()}
        yield Case(
            {name: Array(v, P("data")) for name, v in arrays.items()},
            mesh,
            {"accuracy": P(), "loss": P()},
            limits=[BytesSent(bytes_sent("all_gather", 4, mesh["data"]))],
            roundings=rows + classes + 2 * higher,
        )


def _metric(one, logits, labels, real, *, mesh, check_vma=False):
    """`one` makes a number of the rows' values and their mask."""

    def on_device(logits, labels, real):
        return jax.tree.map(lambda v: one(v, real), _per_row(logits, labels))

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P(), check_vma=check_vma)(
        logits, labels, real
    )


def _total(value):
    return lax.psum(jnp.sum(value), "data")


@metrics.mistake
def mean_of_means(*arrays, mesh, check_vma=False):
    """Every device averaged its own real rows, and these means were averaged. But the devices have different numbers of
    real rows, and one may have none. What has to be summed over the devices before anything is divided?"""
    return _metric(
        lambda v, real: lax.pmean(jnp.sum(v * real) / jnp.sum(real), "data"), *arrays, mesh=mesh, check_vma=check_vma
    )


@metrics.mistake
def counted_the_padding(*arrays, mesh, check_vma=False):
    """Rows of padding were counted like real ones, in the sums and in the number of rows. `real` says which are there
    to be measured."""
    return _metric(lambda v, real: lax.pmean(jnp.mean(v), "data"), *arrays, mesh=mesh, check_vma=check_vma)


@metrics.mistake
def divided_by_the_padded_batch(*arrays, mesh, check_vma=False):
    """The sums are right: padding is left out. They were divided by the length of the padded batch. How many rows
    went into the sums?"""
    return _metric(lambda v, real: lax.pmean(jnp.mean(v * real), "data"), *arrays, mesh=mesh, check_vma=check_vma)


@metrics.mistake
def padding_in_the_sum(*arrays, mesh, check_vma=False):
    """The number of rows is right, but the sums took padding along. A padded row has a value too, and may even be
    "predicted" right: multiply by the mask before you sum."""
    return _metric(lambda v, real: _total(v) / _total(real), *arrays, mesh=mesh, check_vma=check_vma)


@metrics.mistake
def divided_by_its_own_count(*arrays, mesh, check_vma=False):
    """The sums run over all devices; the number of rows is each device's own, so that devices come to different
    results. (With the check on, JAX refuses to call these equal.) What else has to be summed?"""
    return _metric(lambda v, real: _total(v * real) / jnp.sum(real), *arrays, mesh=mesh, check_vma=check_vma)


@metrics.mistake
def at_least_one_row_of_each(*arrays, mesh, check_vma=False):
    """The sums are right, and a device without real rows counts for one row in what they are divided by. Which number
    may be held against 1, that of a device or that of all?"""
    return _metric(
        lambda v, real: _total(v * real) / lax.psum(jnp.maximum(jnp.sum(real), 1), "data"),
        *arrays,
        mesh=mesh,
        check_vma=check_vma,
    )


@metrics.mistake
def at_least_one_row(*arrays, mesh, check_vma=False):
    """A device without real rows counts with a 0, which is averaged in as if it were a measurement. (`maximum(count,
    1)` only keeps it from dividing 0 by 0.) Divide once, at the end, by the number of all real rows."""
    return _metric(
        lambda v, real: lax.pmean(jnp.sum(v * real) / jnp.maximum(jnp.sum(real), 1), "data"),
        *arrays,
        mesh=mesh,
        check_vma=check_vma,
    )
