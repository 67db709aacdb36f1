"""§ 1–2, 4, 7, the programs: a layer cut in two, columns and then rows, forward and backward; its sequence cut.

Everywhere `batch` cuts the examples and `model` the weights.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, BytesSent, Case, Draw, Flops, ProgramExercise, Roots
from grader.lessons.shared import bytes_sent, device_map

PAIR = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}


def _drawn(draw: Draw, shapes, specs, scale=1.0):
    """Arrays of these shapes, by name, laid out by the specs of the same names."""
    return {name: Array(draw.values(*shape) / np.float32(scale), specs[name]) for name, shape in shapes.items()}


# The pair: columns, then rows; one sum.


def _mlp(params, x):
    hidden = jax.nn.relu(x @ params["W1"] + params["b1"])
    return jax.nn.relu(hidden @ params["W2"] + params["b2"])


tp_mlp = ProgramExercise("tp_mlp", points=5, reference=jax.jit(_mlp), piece=True)


@tp_mlp.cases
def _(draw):
    mesh = draw.mesh("batch", "model")
    rows, i, j, k = draw.lengths(4, divisible_by=8)
    params = _drawn(draw, {"W1": (i, j), "b1": (j,), "W2": (j, k), "b2": (k,)}, PAIR)
    share, n = rows // mesh["batch"], mesh["model"]
    return Case(
        {"params": params, "x": draw.array(rows, i, spec=P("batch"))},
        mesh,
        P("batch"),
        limits=[BytesSent(bytes_sent("all_reduce", share * k, n)), Flops(2 * share * j * (i + k) // n)],
    )


def _pair(params, x, mesh, body, specs=PAIR, out=P("batch"), check_vma=False):
    return device_map(body, mesh, (specs, P("batch")), out, check_vma)(params, x)


def _local_hidden(p, x):
    return jax.nn.relu(x @ p["W1"] + p["b1"])


@tp_mlp.mistake
def bias_inside_the_sum(params, x, *, mesh, check_vma=False):
    """b2 is in the total once for each device along `model`: does every device add it to its part, before the parts are
    added up? A bias that every device holds whole belongs to the whole sum."""

    def body(p, x):
        return jax.nn.relu(lax.psum(_local_hidden(p, x) @ p["W2"] + p["b2"], "model"))

    return _pair(params, x, mesh, body, check_vma=check_vma)


@tp_mlp.mistake
def parts_never_added(params, x, *, mesh):
    """W2 is cut by rows, so the second product is on each device one part of every entry's sum. The devices along
    `model` hold different parts, although out_specs promise copies. Which collective is missing, and over which
    axis?"""
    return _pair(params, x, mesh, lambda p, x: jax.nn.relu(_local_hidden(p, x) @ p["W2"] + p["b2"]))


@tp_mlp.mistake
def added_over_the_batch(params, x, *, mesh):
    """The parts were added over `batch`. Devices along `batch` hold other examples: their results belong into other
    rows, not into one sum. Along which axis was the contracted dimension cut?"""

    def body(p, x):
        return jax.nn.relu(lax.psum(_local_hidden(p, x) @ p["W2"], "batch") + p["b2"])

    return _pair(params, x, mesh, body)


@tp_mlp.mistake
def no_relu_at_the_end(params, x, *, mesh, check_vma=False):
    """The result has negative entries: the second relu is missing. It comes after the sum and the bias, and every
    device applies it to its own copy."""

    def body(p, x):
        return lax.psum(_local_hidden(p, x) @ p["W2"], "model") + p["b2"]

    return _pair(params, x, mesh, body, check_vma=check_vma)


@tp_mlp.mistake
def relu_before_the_sum(params, x, *, mesh, check_vma=False):
    """The second relu was applied to the parts, before they were added. relu(3) + relu(−5) is 3, relu(3 − 5) is 0. At
    which point of the program is an entry complete?"""

    def body(p, x):
        return lax.psum(jax.nn.relu(_local_hidden(p, x) @ p["W2"]), "model") + p["b2"]

    return _pair(params, x, mesh, body, check_vma=check_vma)


@tp_mlp.mistake
def relu_and_bias_before_the_sum(params, x, *, mesh, check_vma=False):
    """Two steps came too early. Every device added b2 to its part, so the sum has b2 as many times as `model` has
    devices. And relu was applied to the parts: relu(3) + relu(−5) is 3, relu(3 − 5) is 0. Which of sum, bias and relu
    comes first?"""

    def body(p, x):
        return lax.psum(jax.nn.relu(_local_hidden(p, x) @ p["W2"] + p["b2"]), "model")

    return _pair(params, x, mesh, body, check_vma=check_vma)


@tp_mlp.mistake
def first_weights_by_rows(params, x, *, mesh):
    """in_specs cut W1 by rows. A device then has a part of W1's rows, and examples with all their columns: those do not
    multiply. Which dimension of W1 belongs to the hidden units that a device is to own?"""

    def body(p, x):
        return jax.nn.relu(lax.psum(_local_hidden(p, x) @ p["W2"], "model") + p["b2"])

    return _pair(params, x, mesh, body, {**PAIR, "W1": P("model", None)})


@tp_mlp.mistake
def first_bias_whole(params, x, *, mesh):
    """in_specs give every device all of b1, but its product with W1's columns has only its own hidden units. A bias is
    laid out as the columns to which it is added."""

    def body(p, x):
        return jax.nn.relu(lax.psum(_local_hidden(p, x) @ p["W2"], "model") + p["b2"])

    return _pair(params, x, mesh, body, {**PAIR, "b1": P()})


@tp_mlp.mistake
def hidden_gathered(params, x, *, mesh):
    """The values are right, but the hidden layer was gathered, and W2 with it, so that everybody could compute the
    second product alone. The row-cut W2 needs only the hidden units that its device already has. What travels then?"""

    def body(p, x):
        hidden = lax.all_gather(_local_hidden(p, x), "model", axis=1, tiled=True)
        return jax.nn.relu(hidden @ lax.all_gather(p["W2"], "model", tiled=True) + p["b2"])

    return _pair(params, x, mesh, body)


# Its gradients, inside one shard_map: what JAX has added up already, and what it has not.


def _predict(params, x):
    return jnp.tanh(x @ params["W1"] + params["b1"]) @ params["W2"] + params["b2"]


def _loss(params, x, y):
    return jnp.mean((_predict(params, x) - y) ** 2)


tp_grads = ProgramExercise("tp_grads", points=6, reference=jax.jit(jax.value_and_grad(_loss)))


@tp_grads.cases
def _(draw):
    mesh = draw.mesh("batch", "model")
    rows, i, j, k = draw.lengths(4, divisible_by=8)
    params = _drawn(draw, {"W1": (i, j), "b1": (j,), "W2": (j, k), "b2": (k,)}, PAIR, 32)
    arrays = {
        "params": params,
        "x": Array(draw.values(rows, i) / 8, P("batch")),
        "y": Array(draw.values(rows, k) / 8, P("batch")),
    }
    share, data, n = rows // mesh["batch"], mesh["batch"], mesh["model"]
    # Forward: the parts of the second product. Then every gradient and the loss over `batch`. Twice the activations and
    # b2 over every device: so much a gradient from outside, with the check off, may send.
    sent = (
        2 * bytes_sent("all_reduce", share * k, n)
        + bytes_sent("all_reduce", (i * j + j + j * k) // n + k + 1, data)
        + bytes_sent("all_reduce", k + 1, n * data)
    )
    # Sums on the way: two products forward, their transposes, the mean over the batch and its outputs.
    return Case(arrays, mesh, (P(), PAIR), limits=[BytesSent(sent)], roundings=2 * (i + j + k) + 2 * rows)


def _local_loss(p, x, y):
    return jnp.mean((lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"], "model") + p["b2"] - y) ** 2)


def _gradients(params, x, y, mesh, combine, check_vma, out=(P(), PAIR)):
    """Loss and gradients of the device's own mean, the gradients through `combine`."""

    def body(p, x, y):
        value, grads = jax.value_and_grad(_local_loss)(p, x, y)
        return lax.pmean(value, "batch"), combine(grads)

    return device_map(body, mesh, (PAIR, P("batch"), P("batch")), out, check_vma)(params, x, y)


def _mean_over(*axes):
    return lambda grads: jax.tree.map(lambda g: lax.pmean(g, axes), grads)


def _added(grads):
    return jax.tree.map(lambda g: lax.psum(g, "batch"), grads)


@tp_grads.mistake
def summed_over_the_batch_already(params, x, y, *, mesh):
    """Every gradient is as many times too large as there are devices along `batch`. The parameters are the same there,
    and with the check on JAX adds their gradients up by itself. Of which loss are they the gradients? If of the mean
    over a device's own examples: what is the sum of such means?"""
    return _gradients(params, x, y, mesh, lambda g: g, True)


@tp_grads.mistake
def mean_of_what_is_whole(params, x, y, *, mesh):
    """Every gradient is as many times too large as there are devices along `batch`. Did you take their mean over
    `batch`? With the check on JAX has added them up there already, and the mean of equal numbers is that number. What
    should be averaged *before* it is differentiated?"""
    return _gradients(params, x, y, mesh, _mean_over("batch"), True)


@tp_grads.mistake
def summed_a_second_time(params, x, y, *, mesh):
    """The ratio is the *square* of the number of devices along `batch`. With the check on JAX adds the gradients up
    over `batch`: is there a sum of yours as well? Without it, which factor is still left, and where does it come
    from?"""
    return _gradients(params, x, y, mesh, _added, True)


@tp_grads.mistake
def model_counted_twice(params, x, y, *, mesh):
    """The ratios of W1, b1 and W2 are the number of devices along `model`, that of b2 is 1: the sign of a psum that
    was transposed into another psum. Without the check JAX does not know that the cotangents behind the sum are
    copies. Which setting lets it know?"""
    return _gradients(params, x, y, mesh, _mean_over("batch"), False)


@tp_grads.mistake
def mean_over_both_axes(params, x, y, *, mesh):
    """The gradients were averaged over `model` too. Devices along `model` own *different* columns of W1: their
    gradients belong side by side, and a mean mixes them. Which leaves are copies along `model`, and which are parts?"""
    return _gradients(params, x, y, mesh, _mean_over("batch", "model"), False)


@tp_grads.mistake
def gradients_of_own_examples(params, x, y, *, mesh):
    """Each device has what its own examples give. out_specs promise copies along `batch`, and there are none. What must
    be combined, over which axis, and how? (With the check off, a pmean of the loss averages no gradient.)"""
    return _gradients(params, x, y, mesh, lambda g: g, False)


@tp_grads.mistake
def summed_not_averaged(params, x, y, *, mesh):
    """Two factors come together. Without the check, what stands before the sum over `model` counts once for each device
    there; and gradients of means that are added over `batch`, not averaged, are too large by its devices. Look at the
    ratios leaf by leaf: which factor is whose?"""
    return _gradients(params, x, y, mesh, _added, False)


# The tutorial's network, trained on an Explicit mesh.

NETWORK = {
    "W1": P(),
    "b1": P(),
    "W2": P(None, "model"),
    "b2": P("model"),
    "W3": P("model", None),
    "b3": P(),
    "W4": P(),
    "b4": P(),
}


def _network(p, x, product=lambda h, w: h @ w, bent=jnp.tanh):
    """The four layers; `product` is that of the third, whose contracted dimension is cut in both."""
    hidden = bent(x @ p["W1"] + p["b1"])
    hidden = bent(hidden @ p["W2"] + p["b2"])
    hidden = bent(product(hidden, p["W3"]) + p["b3"])
    return hidden @ p["W4"] + p["b4"]


def _descent(loss, params, steps, rate):
    """The losses before each step, and the parameters after the last."""
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params)
        params = jax.tree.map(lambda p, g: p - rate * g, params, gradients)
        losses.append(value)
    return jnp.stack(losses), params


def _train(params, x, y, steps, rate, product=lambda h, w: h @ w, mean=jnp.mean):
    def loss(p):
        return mean((_network(p, x, product) - y) ** 2)

    return _descent(loss, params, steps, rate)


train_tp = ProgramExercise(
    "train_tp",
    points=5,
    by_compiler=True,
    mesh_shapes=((4, 2), (2, 4)),
    reference=jax.jit(_train, static_argnames=("steps", "product", "mean")),
)


@train_tp.cases
def _(draw):
    mesh = draw.mesh("batch", "model")
    rows, i, j, k, m = draw.lengths(5, divisible_by=8)
    out = 10
    shapes = {
        "W1": (i, j),
        "b1": (j,),
        "W2": (j, k),
        "b2": (k,),
        "W3": (k, m),
        "b3": (m,),
        "W4": (m, out),
        "b4": (out,),
    }
    params = _drawn(draw, shapes, NETWORK, 32)
    steps, rate = (3, 0.125) if draw.square else (2, 0.25)  # so that neither can be written down
    arrays = {
        "params": params,
        "x": Array(draw.values(rows, i) / 8, P("batch", None)),
        "y": Array(draw.values(rows, out) / 8, P("batch", None)),
        "steps": steps,
        "rate": rate,
    }
    share, n = rows // mesh["batch"], mesh["model"]
    whole = i * j + j + m + m * out + out + 1  # and the loss
    step = bytes_sent("all_reduce", whole + (j * k + k + k * m) // n, mesh["batch"]) + bytes_sent(
        "all_reduce", share * (j + m), n
    )
    # Each step: the sums of four products, forward and back, and of the mean over batch and outputs.
    return Case(
        arrays,
        mesh,
        (P(), NETWORK),
        limits=[BytesSent(steps * step)],
        roundings=steps * (2 * (i + j + k + m) + rows + out),
        explicit=True,
    )


def _lying(mesh, *parts):
    return NamedSharding(mesh, P(*parts))


def _product_as(mesh, *parts):
    return lambda h, w: jnp.dot(h, w, out_sharding=_lying(mesh, *parts))


@train_tp.mistake
def third_product_undecided(params, x, y, steps, rate, *, mesh):
    """In the third product the contracted dimension is cut over `model` on both sides. On Auto axes the compiler would
    choose how the sum ends; on Explicit axes you say it. Lesson 10 has the keyword."""
    return _train(params, x, y, steps, rate)


@train_tp.mistake
def batch_made_whole(params, x, y, steps, rate, *, mesh):
    """The examples, which were cut over `batch`, are gathered, as where the third product is asked for whole on every
    device: then everybody computes the rest for all of them. Which dimension of the product may stay cut?"""

    def product(hidden, weights):
        return jnp.dot(hidden, weights, out_sharding=_lying(mesh, None, None))

    def loss(p):
        whole_y = jax.sharding.reshard(y, _lying(mesh, None, None))
        return jnp.mean((_network(p, x, product) - whole_y) ** 2)

    return _descent(loss, params, steps, rate)


@train_tp.mistake
def weights_gathered(params, x, y, steps, rate, *, mesh):
    """With the hidden layer and W3 whole the product has a type, so nothing stops you; but both were gathered for it,
    and each device computes all of it. Let them multiply what they own, and say how the sum should be laid out."""

    def product(hidden, weights):
        return jax.sharding.reshard(hidden, _lying(mesh, "batch", None)) @ jax.sharding.reshard(weights, _lying(mesh))

    return _train(params, x, y, steps, rate, product)


@train_tp.mistake
def relu_for_tanh(params, x, y, steps, rate, *, mesh):
    """There is a relu behind each hidden layer, as in part 1. What has the network of *this* part there?"""

    def loss(p):
        return jnp.mean((_network(p, x, _product_as(mesh, "batch", None), jax.nn.relu) - y) ** 2)

    return _descent(loss, params, steps, rate)


@train_tp.mistake
def sum_of_squares(params, x, y, steps, rate, *, mesh):
    """The loss is the *mean* over all examples and outputs; this is their sum. The gradients are larger by the same
    factor, so each step is that much longer. The first loss already tells: how many entries does the batch have?"""
    return _train(params, x, y, steps, rate, _product_as(mesh, "batch", None), jnp.sum)


@train_tp.mistake
def never_updated(params, x, y, steps, rate, *, mesh):
    """All losses are the same, and the parameters are one step away from the first ones. What a step computes must go
    into the next one."""
    losses, last = _train(params, x, y, 1, rate, _product_as(mesh, "batch", None))
    return jnp.concatenate([losses] * steps), last


@train_tp.mistake
def uphill(params, x, y, steps, rate, *, mesh):
    """The first loss is right and the others grow: the parameters moved along the gradient. In which direction does a
    function fall?"""
    return _train(params, x, y, steps, -rate, _product_as(mesh, "batch", None))


@train_tp.mistake
def loss_behind_the_step(params, x, y, steps, rate, *, mesh):
    """The parameters are right; the losses are those *after* each update. The first one should be the loss of the
    parameters that you were given."""
    losses, _ = _train(params, x, y, steps + 1, rate, _product_as(mesh, "batch", None))
    return losses[1:], _train(params, x, y, steps, rate, _product_as(mesh, "batch", None))[1]


# The region between two pairs: the sequence cut, the sum scattered.


def _normed(x, scale):
    return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def _block(x, scale, W1, W2):
    return jax.nn.relu(_normed(x, scale) @ W1) @ W2


sequence_parallel = ProgramExercise("sequence_parallel", points=5, reference=jax.jit(_block))
CUT = P("batch", "model")
REGION = CUT, P(), P(None, "model"), P("model", None)


@sequence_parallel.cases
def _(draw):
    mesh = draw.mesh("batch", "model")
    tokens, d, f = draw.lengths(3, divisible_by=8)
    f *= 1 if draw.square else 16  # then weights are larger than tokens, and who lets them travel sends more
    rows, n = 8, mesh["model"]
    shapes = {"x": (rows, tokens, d), "scale": (d,), "W1": (d, f), "W2": (f, d)}
    arrays = _drawn(draw, shapes, dict(zip(shapes, REGION, strict=True)))
    arrays["x"].value[0, 0] /= 1024  # a token so small that epsilon shows
    share = rows // mesh["batch"] * tokens * d
    limits = [
        BytesSent(bytes_sent("all_reduce", share, n)),
        Flops(4 * share * f // n),
        Roots(rows // mesh["batch"] * tokens // n),
    ]
    # Sums on the way: the mean of squares, the products over D and F.
    return Case(arrays, mesh, CUT, limits=limits, roundings=2 * d + f)


def _region(x, scale, W1, W2, mesh, body, out=CUT, check_vma=False):
    return device_map(body, mesh, REGION, out, check_vma)(x, scale, W1, W2)


def _tokens_together(x):
    return lax.all_gather(x, "model", axis=1, tiled=True)


def _scattered(parts):
    return lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)


@sequence_parallel.mistake
def tokens_never_gathered(x, scale, W1, W2, *, mesh):
    """Each device put its own tokens through its own hidden units. Then the parts were added, but device 0's and device
    1's parts belong to *different* tokens. A sum over `model` needs all parts of one token: what must every device
    have before the product?"""

    def body(x, scale, W1, W2):
        return lax.psum(jax.nn.relu(_normed(x, scale) @ W1) @ W2, "model")

    return _region(x, scale, W1, W2, mesh, body)


@sequence_parallel.mistake
def brought_the_weights_together(x, scale, W1, W2, *, mesh):
    """The result is right, and for a while every device has all of W1 and W2, as with FSDP. Here weights stay, and
    tokens travel: where are all of them needed, and where one's own?"""

    def body(x, scale, W1, W2):
        W1, W2 = lax.all_gather(W1, "model", axis=1, tiled=True), lax.all_gather(W2, "model", axis=0, tiled=True)
        return jax.nn.relu(_normed(x, scale) @ W1) @ W2

    return _region(x, scale, W1, W2, mesh, body)


@sequence_parallel.mistake
def reduced_then_sliced(x, scale, W1, W2, *, mesh):
    """The values are right, but the sum was brought to every device, and each then threw away all but its own tokens.
    One collective adds the parts and deals them out, for half of the bytes."""

    def body(x, scale, W1, W2):
        total = lax.psum(jax.nn.relu(_tokens_together(_normed(x, scale)) @ W1) @ W2, "model")
        return lax.dynamic_slice_in_dim(total, lax.axis_index("model") * x.shape[1], x.shape[1], axis=1)

    return _region(x, scale, W1, W2, mesh, body)


@sequence_parallel.mistake
def own_slice_of_a_part(x, scale, W1, W2, *, mesh):
    """Each device kept its own tokens of its own *part* of the sum. The other devices' hidden units are missing from
    them. What adds the parts and deals out the tokens at once?"""

    def body(x, scale, W1, W2):
        part = jax.nn.relu(_tokens_together(_normed(x, scale)) @ W1) @ W2
        return lax.dynamic_slice_in_dim(part, lax.axis_index("model") * x.shape[1], x.shape[1], axis=1)

    return _region(x, scale, W1, W2, mesh, body)


@sequence_parallel.mistake
def scattered_the_features(x, scale, W1, W2, *, mesh):
    """The sum was scattered along the last dimension, the features. The result is to be cut along the tokens, as x is.
    Which dimension is that?"""

    def body(x, scale, W1, W2):
        parts = jax.nn.relu(_tokens_together(_normed(x, scale)) @ W1) @ W2
        return lax.psum_scatter(parts, "model", scatter_dimension=2, tiled=True)

    return _region(x, scale, W1, W2, mesh, body, P("batch", None, "model"))


@sequence_parallel.mistake
def stacked_then_reshaped(x, scale, W1, W2, *, mesh):
    """The shape is right, but pieces of different sequences stand in one. Without `tiled=True` all_gather stacks the
    devices' pieces along a new first dimension, and reshape reads row by row. Which option puts the pieces one after
    the other, and along which dimension?"""

    def body(x, scale, W1, W2):
        stacked = lax.all_gather(_normed(x, scale), "model")
        return _scattered(jax.nn.relu(stacked.reshape(x.shape[0], -1, x.shape[2]) @ W1) @ W2)

    return _region(x, scale, W1, W2, mesh, body)


@sequence_parallel.mistake
def norm_forgotten(x, scale, W1, W2, *, mesh):
    """The tokens went into the product as they came. The norm is what this region is for: it needs one token at a time,
    so each device can do it for its own."""

    def body(x, scale, W1, W2):
        return _scattered(jax.nn.relu(_tokens_together(x) @ W1) @ W2)

    return _region(x, scale, W1, W2, mesh, body)


@sequence_parallel.mistake
def normed_after_the_gather(x, scale, W1, W2, *, mesh):
    """All values and transfers are right, but all tokens were gathered before they were normed: every device along
    `model` norms the same ones. A norm needs one token at a time. Who has the whole of a token before the gather?"""

    def body(x, scale, W1, W2):
        return _scattered(jax.nn.relu(_normed(_tokens_together(x), scale) @ W1) @ W2)

    return _region(x, scale, W1, W2, mesh, body)


@sequence_parallel.mistake
def everything_kept_whole(x, scale, W1, W2, *, mesh):
    """in_specs ask for whole sequences, and out_specs promise them: nothing is cut between the products, and every
    device norms all tokens of its sequences. Describe x as it is laid out, and leave the result cut alike."""

    def body(x, scale, W1, W2):
        return lax.psum(jax.nn.relu(_normed(x, scale) @ W1) @ W2, "model")

    return device_map(body, mesh, (P("batch"), *REGION[1:]), P("batch"))(x, scale, W1, W2)
