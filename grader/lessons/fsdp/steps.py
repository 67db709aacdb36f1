"""§ 7, 9–10: steps of a whole network: the optimizer's state in shares, from specs alone, and all of it in shares."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, ByCompiler, BytesSent, Case, Move, Moves, ProgramExercise, Turns
from grader.lessons.fsdp.network import (
    CUT,
    adam,
    averaged,
    batch_drawn,
    entries,
    gathered,
    laid,
    layers_drawn,
    own,
    rows_of,
    scaled,
)
from grader.lessons.shared import bytes_sent, device_map, loss

LINES = (8,), (4,)


def _moments(draw, params, bias=CUT):
    """Moments as they are after some steps: means of either sign, squares above zero."""

    def like(leaf, name):
        values = draw.values(*leaf.value.shape)
        return Array(values / 16 if name == "mean" else abs(values) / 8, bias if leaf.value.ndim == 1 else CUT)

    return {
        name: [{key: like(leaf, name) for key, leaf in layer.items()} for layer in params]
        for name in ("mean", "square")
    }


# ZeRO-1: weights everywhere, the optimizer's state in shares.


def _one_step(params, moments, x, y):
    return adam(params, moments, jax.grad(loss)(params, x, y))


zero1_step = ProgramExercise("zero1_step", points=6, reference=jax.jit(_one_step), mesh_shapes=LINES)


@zero1_step.cases
def _(draw):
    mesh = draw.mesh("fsdp")
    n = mesh["fsdp"]
    rows, *widths = draw.lengths(4, divisible_by=8)
    params = layers_drawn(draw, widths, P(), P())
    moments, leaves = _moments(draw, params), len(jax.tree.leaves(params))
    return Case(
        {"params": params, "moments": moments, **batch_drawn(draw, rows, widths)},
        mesh,
        (laid(params), laid(moments)),
        limits=[
            BytesSent(bytes_sent("all_reduce", entries(params), n)),
            # An all_to_all or a ring can add up as a reduce_scatter does.
            Turns(
                {
                    "all_gather": leaves,
                    "reduce_scatter": leaves,
                    "all_to_all": leaves,
                    "collective_permute": 2 * (n - 1) * leaves,
                }
            ),
        ],
        roundings=2 * rows + 4 * sum(widths),
    )


def _zero1(params, moments, x, y, mesh, body):
    whole, cut = (jax.tree.map(lambda _, spec=spec: spec, params) for spec in (P(), CUT))
    state = {"mean": cut, "square": cut}
    return device_map(body, mesh, (whole, state, CUT, CUT), (whole, state))(params, moments, x, y)


def _scattered(tree):
    return jax.tree.map(lambda g: lax.psum_scatter(g, "fsdp", tiled=True), tree)


def _zero1_with(reduce, start_of=own, back=gathered):
    """A step: gradients of a device's own examples, reduced to its rows; its rows updated; all of them gathered."""

    def body(params, moments, x, y):
        mine = reduce(jax.grad(loss)(params, x, y))
        weights, moments = adam(rows_of(params, start_of), moments, mine)
        return back(weights), moments

    return body


def _mean_scattered(gradients):
    return scaled(_scattered(gradients), 1 / lax.axis_size("fsdp"))


@zero1_step.mistake
def scattered_but_not_divided(params, moments, x, y, *, mesh):
    """What comes to the moments is too large (and the weights hardly differ, since Adam divides one moment by the
    other). A reduce_scatter adds up, and what it adds are gradients of means, one of each device. What is missing?"""
    return _zero1(params, moments, x, y, mesh, _zero1_with(_scattered))


@zero1_step.mistake
def rows_at_the_device_number(params, moments, x, y, *, mesh):
    """The moments are right, the weights are not: a device's rows of them begin at its number *times* the rows of a
    share. `w[me : me + rows]` are other rows, and they overlap."""
    body = _zero1_with(_mean_scattered, start_of=lambda device, rows: device)
    return _zero1(params, moments, x, y, mesh, body)


@zero1_step.mistake
def rows_of_own_gradient(params, moments, x, y, *, mesh):
    """Each device updated its rows by the gradient of its own examples: nobody added those of the others. The batch is
    cut. Which collective adds them up, and leaves each device its rows?"""
    return _zero1(params, moments, x, y, mesh, _zero1_with(lambda gradients: rows_of(gradients, own)))


@zero1_step.mistake
def all_reduced_and_cut(params, moments, x, y, *, mesh):
    """The values are right. But an all_reduce *is* a reduce_scatter and an all_gather, and the new weights are gathered
    besides: half as much again as data parallelism sends. Of the summed gradients a device needs only its own rows."""
    return _zero1(params, moments, x, y, mesh, _zero1_with(lambda gradients: rows_of(averaged(gradients), own)))


@zero1_step.mistake
def state_gathered(params, moments, x, y, *, mesh):
    """The values are right, but the moments were gathered: the state travels, and for a moment every device holds all
    of it. Each device updates what it owns; what travels are the new weights."""

    def body(params, moments, x, y):
        new = adam(params, gathered(moments), averaged(jax.grad(loss)(params, x, y)))
        return new[0], rows_of(new[1], own)

    return _zero1(params, moments, x, y, mesh, body)


@zero1_step.mistake
def weights_never_gathered(params, moments, x, y, *, mesh):
    """Each device has updated its own rows, and returns only these: the next step needs all of them, on every device.
    What has to come last?"""
    return _zero1(params, moments, x, y, mesh, _zero1_with(_mean_scattered, back=lambda weights: weights))


@zero1_step.mistake
def others_rows_left_as_they_were(params, moments, x, y, *, mesh):
    """Each device wrote its new rows into its own copy of the weights, and the copies are now different everywhere: old
    but for one's own rows. The new rows of the others have to come in."""

    def body(params, moments, x, y):
        mine = _mean_scattered(jax.grad(loss)(params, x, y))
        weights, moments = adam(rows_of(params, own), moments, mine)

        def written(whole, rows):
            return lax.dynamic_update_slice_in_dim(whole, rows, lax.axis_index("fsdp") * len(rows), axis=0)

        return jax.tree.map(written, params, weights), moments

    return _zero1(params, moments, x, y, mesh, body)


# From specs alone: the compiler writes the collectives.

by_specs = ProgramExercise(
    "by_specs", points=4, reference=jax.jit(jax.value_and_grad(loss)), by_compiler=True, mesh_shapes=LINES
)


@by_specs.cases
def _(draw):
    mesh = draw.mesh("fsdp")
    n = mesh["fsdp"]
    *widths, _ = draw.lengths(4, divisible_by=16)
    params = layers_drawn(draw, widths, bias=P())
    rows = n  # so few that activations would be cheaper to send
    moves = [Move("all_reduce", ("fsdp",), ())]
    for layer in params:
        share = layer["W"].value.shape[0] // n, layer["W"].value.shape[1]
        moves += [
            Move("all_gather", ("fsdp",), share),
            Move("reduce_scatter", ("fsdp",), layer["W"].value.shape),
            Move("all_reduce", ("fsdp",), layer["b"].value.shape),
        ]
    return Case(
        {"params": params, **batch_drawn(draw, rows, widths)},
        mesh,
        (P(), laid(params)),
        limits=[ByCompiler(), Moves(tuple(moves))],
        roundings=rows + 2 * sum(widths),
    )


def _said(mesh, *parts):
    return lambda value: lax.with_sharding_constraint(value, NamedSharding(mesh, P(*parts)))


def _between_layers(params, x, y, said):
    """The loss, with something said about every layer's result."""
    *hidden, last = params
    for layer in hidden:
        x = said(jax.nn.relu(said(x @ layer["W"] + layer["b"])))
    return jnp.mean(jnp.sum((said(x @ last["W"] + last["b"]) - y) ** 2, axis=-1))


@by_specs.mistake
def nothing_said(params, x, y, *, mesh):
    """The values are right, and nothing says that it should be FSDP. How the arrays between the layers are laid out was
    left open, and with few examples on a device the compiler sends activations, too: another program, chosen for this
    batch. Where can you say that examples stay where they are?"""
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    asked = [{"W": CUT, "b": P()} for _ in params]
    return value, jax.tree.map(lambda g, spec: _said(mesh, *spec)(g), gradients, asked)


@by_specs.mistake
def gradients_left_whole(params, x, y, *, mesh):
    """The gradients came out whole on every device. An optimizer would then have to hold all of them, and throw most
    away. They should be laid out as their weights are; can you say so?"""
    value, gradients = jax.value_and_grad(loss)(jax.tree.map(_said(mesh), params), x, y)
    return value, jax.tree.map(_said(mesh), gradients)


@by_specs.mistake
def activations_made_whole(params, x, y, *, mesh):
    """The examples are gathered, and every device works on all of them, as where what is between the layers is asked
    for whole. Along which dimension is the batch cut, also between layers?"""
    return jax.value_and_grad(_between_layers)(params, x, y, _said(mesh))


@by_specs.mistake
def activations_cut_by_columns(params, x, y, *, mesh):
    """Activations travel, as where what is between the layers is cut by columns, over `fsdp`: that is tensor
    parallelism. Here examples stay where they are. Which dimension counts them?"""
    return jax.value_and_grad(_between_layers)(params, x, y, _said(mesh, None, "fsdp"))


@by_specs.mistake
def written_by_hand(params, x, y, *, mesh):
    """That is the program of part 4, with its collectives written out. Here the compiler is to write them: no
    shard_map, only layouts."""
    cuts = [{"W": CUT, "b": P()} for _ in params]
    return device_map(_cut_gradients, mesh, (cuts, CUT, CUT), (P(), cuts), True)(params, x, y)


# All of it in shares: gradients, clipping, Adam.


def _whole_weights(params):
    return [{"W": lax.all_gather(layer["W"], "fsdp", tiled=True), "b": layer["b"]} for layer in params]


def _cut_gradients(params, x, y):
    """Loss and gradients on a device that has rows of every "W" and all of every "b"; with the check on."""
    return jax.value_and_grad(lambda p: lax.pmean(loss(_whole_weights(p), x, y), "fsdp"))(params)


def _squares(tree):
    return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree))


def _stepped(params, moments, value, gradients, squares, limit):
    return value, *adam(params, moments, scaled(gradients, jnp.minimum(1, limit / jnp.sqrt(squares))))


def _whole_step(params, moments, x, y, limit):
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    return _stepped(params, moments, value, gradients, _squares(gradients), limit)


fsdp_step = ProgramExercise("fsdp_step", points=7, reference=jax.jit(_whole_step), mesh_shapes=LINES, piece=True)


@fsdp_step.cases
def _(draw):
    mesh = draw.mesh("fsdp")
    n = mesh["fsdp"]
    rows, *widths = draw.lengths(4, divisible_by=8)
    params = layers_drawn(draw, widths, bias=P())
    moments = _moments(draw, params, bias=P())
    weights = entries([layer["W"] for layer in params])
    biases = entries([layer["b"] for layer in params])
    inside = bytes_sent("all_gather", weights // n, n) + bytes_sent("reduce_scatter", weights, n)
    for limit in (0.5, 1e6):  # one that clips, one that does not
        yield Case(
            {"params": params, "moments": moments, **batch_drawn(draw, rows, widths), "limit": limit},
            mesh,
            (P(), laid(params), laid(moments)),
            limits=[
                BytesSent(inside + bytes_sent("all_reduce", biases + 8, n)),
                Turns({"all_gather": len(params), "reduce_scatter": len(params), "all_reduce": 3 * len(params) + 3}),
            ],
            roundings=2 * rows + 4 * sum(widths),
        )


def _fsdp(params, moments, x, y, limit, mesh, body, check_vma=True):
    cuts = [{"W": CUT, "b": P()} for _ in params]
    state = {"mean": cuts, "square": cuts}

    def each(params, moments, x, y):
        return body(params, moments, x, y, limit)

    ins, outs = (cuts, state, CUT, CUT), (P(), cuts, state)
    return device_map(each, mesh, ins, outs, check_vma)(params, moments, x, y)


def _parts(gradients):
    """The squares of what is cut, and of what is whole."""
    return _squares([layer["W"] for layer in gradients]), _squares([layer["b"] for layer in gradients])


def _own_gradients(params, x, y):
    """The same with the check off, where nothing is added up but by the reduce_scatters."""
    value, gradients = jax.value_and_grad(lambda p: loss(_whole_weights(p), x, y))(params)
    n = lax.axis_size("fsdp")
    return averaged(value), [{"W": layer["W"] / n, "b": lax.pmean(layer["b"], "fsdp")} for layer in gradients]


def _norm_by(squares, differentiated=_cut_gradients):
    """A step whose squared norm is `squares(cut, whole)`."""

    def body(params, moments, x, y, limit):
        value, gradients = differentiated(params, x, y)
        return _stepped(params, moments, value, gradients, squares(*_parts(gradients)), limit)

    return body


@fsdp_step.mistake
def norm_of_the_share(params, moments, x, y, limit, *, mesh):
    """The norm that decides about clipping is that of a device's own rows: every device has another one, all are too
    small, and each shortens its rows by another factor. (The whole leaves then even differ from device to device.) The
    norm is of the whole gradient: which squares have to be added up over the devices?"""
    return _fsdp(params, moments, x, y, limit, mesh, _norm_by(lambda cut, whole: cut + whole, _own_gradients), False)


@fsdp_step.mistake
def whole_leaves_counted_by_all(params, moments, x, y, limit, *, mesh):
    """The squares of the biases are in the norm once for each device. Biases are whole: every device has all of their
    squares. Which leaves are parts, whose squares are added over the devices, and which are copies?"""
    return _fsdp(params, moments, x, y, limit, mesh, _norm_by(lambda cut, whole: lax.psum(cut + whole, "fsdp")))


@fsdp_step.mistake
def norm_without_the_biases(params, moments, x, y, limit, *, mesh):
    """The norm that decides about clipping is that of the "W"s alone, added up over the devices. The norm is of all
    gradients: where are the squares of the biases, and need they be added over the devices, too?"""
    return _fsdp(params, moments, x, y, limit, mesh, _norm_by(lambda cut, whole: lax.psum(cut, "fsdp")))


@fsdp_step.mistake
def each_leaf_by_its_own_norm(params, moments, x, y, limit, *, mesh):
    """Each array was clipped by the norm of its *own* gradient. That turns the direction of the step: one factor is due
    for all of them, from the norm of all gradients together."""

    def body(params, moments, x, y, limit):
        value, gradients = _cut_gradients(params, x, y)
        squares = [
            {"W": lax.psum(jnp.sum(layer["W"] ** 2), "fsdp"), "b": jnp.sum(layer["b"] ** 2)} for layer in gradients
        ]
        clipped = jax.tree.map(lambda g, s: g * jnp.minimum(1, limit / jnp.sqrt(s)), gradients, squares)
        stepped = adam(params, moments, clipped)
        return value, *stepped

    return _fsdp(params, moments, x, y, limit, mesh, body)


@fsdp_step.mistake
def norm_averaged(params, moments, x, y, limit, *, mesh):
    """The squares of the shares were averaged over the devices. A squared norm is a *sum*, over all entries, wherever
    they are."""
    return _fsdp(params, moments, x, y, limit, mesh, _norm_by(lambda cut, whole: lax.pmean(cut, "fsdp") + whole))


@fsdp_step.mistake
def never_clipped(params, moments, x, y, limit, *, mesh):
    """Right as long as the gradient is short, and wrong where it is longer than `limit`: nothing is clipped."""
    return _fsdp(params, moments, x, y, limit, mesh, _norm_by(lambda cut, whole: lax.psum(cut, "fsdp") * 0))


@fsdp_step.mistake
def clipped_by_the_square(params, moments, x, y, limit, *, mesh):
    """The gradient was compared by the *square* of its norm. Between the sum over the devices and the comparison stands
    a root."""
    return _fsdp(params, moments, x, y, limit, mesh, _norm_by(lambda cut, whole: (lax.psum(cut, "fsdp") + whole) ** 2))


@fsdp_step.mistake
def gradients_of_the_sum(params, moments, x, y, limit, *, mesh):
    """Where nothing is clipped, what comes to the moments shows it: gradients as many times too large as there are
    devices. (Where something is clipped you do not see it: the norm takes it away again.) Sum, or mean, of the devices'
    losses?"""

    def body(params, moments, x, y, limit):
        value, gradients = jax.value_and_grad(lambda p: loss(_whole_weights(p), x, y))(params)
        cut, whole = _parts(gradients)
        return _stepped(params, moments, averaged(value), gradients, lax.psum(cut, "fsdp") + whole, limit)

    return _fsdp(params, moments, x, y, limit, mesh, body)


@fsdp_step.mistake
def biases_of_own_examples(params, moments, x, y, limit, *, mesh):
    """The gradients of the biases are those of each device's own examples. Biases are whole on every device, so no
    gather leads to them, and no reduce_scatter back. With the check off nobody adds up their gradients, and the copies
    drift apart. What is missing for leaves that are not cut?"""

    def body(params, moments, x, y, limit):
        value, gradients = jax.value_and_grad(lambda p: loss(_whole_weights(p), x, y))(params)
        n = lax.axis_size("fsdp")
        gradients = [{"W": layer["W"] / n, "b": layer["b"]} for layer in gradients]
        cut, whole = _parts(gradients)
        return _stepped(params, moments, averaged(value), gradients, lax.psum(cut, "fsdp") + whole, limit)

    return _fsdp(params, moments, x, y, limit, mesh, body, False)


@fsdp_step.mistake
def moments_before_clipping(params, moments, x, y, limit, *, mesh):
    """The moments were fed with gradients that had not been clipped. Clipping comes first; then Adam knows nothing of
    the gradient that was too long."""

    def body(params, moments, x, y, limit):
        value, gradients = _cut_gradients(params, x, y)
        cut, whole = _parts(gradients)
        factor = jnp.minimum(1, limit / jnp.sqrt(lax.psum(cut, "fsdp") + whole))
        new, _ = adam(params, moments, scaled(gradients, factor))
        return value, new, adam(params, moments, gradients)[1]

    return _fsdp(params, moments, x, y, limit, mesh, body)
