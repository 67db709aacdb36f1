"""§ 3–5, 8, the programs: a layer gathered for its use, its gradient, many layers one at a time, and one ahead."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, BytesSent, Case, Flops, Meanwhile, PeakBytes, ProgramExercise, Turns
from grader.lessons.fsdp.network import (
    CUT,
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
from grader.lessons.shared import FLOAT, bytes_sent, device_map, loss

LINES = (8,), (4,), (2,)

# One layer, forward: gather what is needed, use it.


def _layer(w, b, x):
    return jax.nn.relu(x @ w + b)


fsdp_layer = ProgramExercise("fsdp_layer", points=3, reference=jax.jit(_layer), mesh_shapes=LINES)


@fsdp_layer.cases
def _(draw):
    mesh = draw.mesh("fsdp")
    n = mesh["fsdp"]
    rows, i, k = draw.lengths(3, divisible_by=8)
    k = n if n == 4 else k  # then a share of the bias is one number, which fits everywhere
    arrays = {"w": (i, k), "b": (k,), "x": (rows, i)}
    given = {name: draw.values(*shape) for name, shape in arrays.items()}
    given["w"] += np.float32(1 / 64)  # more digits than bfloat16 has
    return Case(
        {name: Array(value, CUT) for name, value in given.items()},
        mesh,
        CUT,
        limits=[
            BytesSent(bytes_sent("all_gather", i * k // n, n) + bytes_sent("all_gather", k // n, n)),
            Turns({"all_gather": 2}),
            Flops(2 * rows * i * k // n),
        ],
    )


def _on_devices(w, b, x, mesh, body, check_vma=False):
    return device_map(body, mesh, (CUT, CUT, CUT), CUT, check_vma)(w, b, x)


@fsdp_layer.mistake
def bias_left_in_shares(w, b, x, *, mesh):
    """W is whole where it is used, the bias is not: a device has only some of its entries. Usually the shapes then do
    not fit; where a device has a single one, that one is added to every column, and nobody complains."""
    return _on_devices(w, b, x, mesh, lambda w, b, x: jax.nn.relu(x @ gathered(w) + b))


@fsdp_layer.mistake
def weights_left_in_shares(w, b, x, *, mesh):
    """A device has some rows of W, and all columns of its examples: those do not multiply. What has to happen to W
    before this line, and only for it?"""
    return _on_devices(w, b, x, mesh, lambda w, b, x: jax.nn.relu(x @ w + gathered(b)))


@fsdp_layer.mistake
def shares_stacked(w, b, x, *, mesh):
    """Without `tiled=True` an all_gather puts the shares into a new dimension, one entry for each device. They are to
    be joined along the dimension in which they were cut."""

    def body(w, b, x):
        return jax.nn.relu(x @ lax.all_gather(w, "fsdp") + gathered(b))

    return _on_devices(w, b, x, mesh, body)


@fsdp_layer.mistake
def shares_added_up(w, b, x, *, mesh):
    """The shares of W were added up, and met only so many features of the examples as a share has rows. They are
    *different* rows of W, which stand one below the other. What puts them so?"""

    def body(w, b, x):
        return jax.nn.relu(x[:, : len(w)] @ lax.psum(w, "fsdp") + gathered(b))

    return _on_devices(w, b, x, mesh, body)


@fsdp_layer.mistake
def joined_side_by_side(w, b, x, *, mesh):
    """The shares of W are rows, and were joined as columns. Along which dimension does `P("fsdp")` cut?"""

    def body(w, b, x):
        return jax.nn.relu(x @ lax.all_gather(w, "fsdp", axis=1, tiled=True) + gathered(b))

    return _on_devices(w, b, x, mesh, body)


@fsdp_layer.mistake
def took_it_for_tensor_parallelism(w, b, x, *, mesh):
    """Each device multiplied by its own rows of W, and the products were added over the devices. That is tensor
    parallelism, where all of them have the same examples. Here everybody has other ones, and their sum means nothing.
    What should travel: activations, or weights?"""

    def body(w, b, x):
        mine = lax.dynamic_slice_in_dim(x, lax.axis_index("fsdp") * len(w), len(w), axis=1)
        return jax.nn.relu(lax.psum(mine @ w, "fsdp") + gathered(b))

    return _on_devices(w, b, x, mesh, body)


@fsdp_layer.mistake
def examples_gathered(w, b, x, *, mesh):
    """The values are right, but the examples were gathered as well. The batch stays cut: only weights are made
    whole."""

    def body(w, b, x):
        return rows_of(_layer(gathered(w), gathered(b), gathered(x)), own)

    return _on_devices(w, b, x, mesh, body)


@fsdp_layer.mistake
def put_together_by_a_sum(w, b, x, *, mesh):
    """The values are right: every device wrote its share into zeros, and these were added up. An all_reduce sends twice
    what an all_gather sends, here to add zeros. Which collective only collects?"""

    def whole(share):
        n, me = lax.axis_size("fsdp"), lax.axis_index("fsdp")
        zeros = jnp.zeros((n * len(share), *share.shape[1:]))
        return lax.psum(lax.dynamic_update_slice_in_dim(zeros, share, me * len(share), axis=0), "fsdp")

    return _on_devices(w, b, x, mesh, lambda w, b, x: _layer(whole(w), whole(b), x))


@fsdp_layer.mistake
def layer_without_relu(w, b, x, *, mesh):
    """The result has negative entries: the relu of the layer is missing."""
    return _on_devices(w, b, x, mesh, lambda w, b, x: x @ gathered(w) + gathered(b))


# Its gradient: the all_gather, backwards.

fsdp_gradient = ProgramExercise(
    "fsdp_gradient", points=6, reference=jax.jit(jax.value_and_grad(loss)), mesh_shapes=LINES
)


@fsdp_gradient.cases
def _(draw):
    mesh = draw.mesh("fsdp")
    n = mesh["fsdp"]
    rows, *widths = draw.lengths(4, divisible_by=8)
    params = layers_drawn(draw, widths)
    leaves, share = len(jax.tree.leaves(params)), entries(params) // n
    sent = bytes_sent("all_gather", share, n) + bytes_sent("reduce_scatter", n * share, n)
    return Case(
        {"params": params, **batch_drawn(draw, rows, widths)},
        mesh,
        (P(), laid(params)),
        limits=[
            BytesSent(sent + 2 * bytes_sent("all_reduce", 1, n)),
            Turns({"all_gather": leaves, "reduce_scatter": leaves, "all_reduce": 2}),
        ],
        roundings=rows + 2 * sum(widths),
    )


def _gradients(params, x, y, mesh, body, check_vma=False, over="fsdp"):
    """`body(params, x, y)` on each device, for shares and a batch cut over these axes: (loss, gradients)."""
    specs, rows = jax.tree.map(lambda _: CUT, params), P(over)
    return device_map(body, mesh, (specs, rows, rows), (P(), specs), check_vma)(params, x, y)


def _by_shares(reduce):
    """Loss and gradients with respect to the shares, of a loss that is gathered for and then reduced."""
    return jax.value_and_grad(lambda p, x, y: reduce(loss(gathered(p), x, y)))


def _mean_reported(value_and_gradients):
    value, gradients = value_and_gradients
    return averaged(value), gradients


@fsdp_gradient.mistake
def averaged_the_shares(params, x, y, *, mesh, check_vma=False):
    """A pmean of the gradients, as in data parallelism. But the devices own *different* rows of W: the mean of row 0 of
    one and row 0 of the next is no gradient of anything. (Ratios of all sizes and signs are its trace.) What has the
    transpose of the all_gather done to these gradients already?"""

    def body(p, x, y):
        value, gradients = _mean_reported(_by_shares(lambda value: value)(p, x, y))
        return value, averaged(gradients)

    return _gradients(params, x, y, mesh, body, check_vma)


@fsdp_gradient.mistake
def added_but_never_divided(params, x, y, *, mesh, check_vma=False):
    """Every gradient is as many times too large as there are devices. A reduce_scatter adds, and what it adds are
    gradients of means. What is the loss of the whole batch, given those of its shares, and where is it to be
    differentiated? (With the check off, a pmean of the loss divides no gradient.)"""
    return _gradients(
        params, x, y, mesh, lambda p, x, y: _mean_reported(_by_shares(lambda value: value)(p, x, y)), check_vma
    )


@fsdp_gradient.mistake
def sum_of_the_means(params, x, y, *, mesh):
    """The loss and every gradient are as many times too large as there are devices: is the loss a sum of the devices'
    means? Each device's loss is the mean of its own examples: how does one combine means?"""
    return _gradients(params, x, y, mesh, _by_shares(lambda value: lax.psum(value, "fsdp")), True)


@fsdp_gradient.mistake
def divided_a_second_time(params, x, y, *, mesh):
    """The gradients are too small, by the number of devices. Is the loss averaged before it is differentiated, and are
    the gradients divided once more? One of the two is enough."""

    def body(p, x, y):
        value, gradients = _by_shares(averaged)(p, x, y)
        return value, scaled(gradients, 1 / lax.axis_size("fsdp"))

    return _gradients(params, x, y, mesh, body, True)


@fsdp_gradient.mistake
def own_rows_of_own_gradient(params, x, y, *, mesh):
    """Each device has its rows of the gradient of its *own* examples: those of the others are lost. With respect to
    what do you differentiate, so that the all_gather is part of what goes backwards?"""

    def body(p, x, y):
        value, gradients = _mean_reported(jax.value_and_grad(loss)(gathered(p), x, y))
        return value, rows_of(gradients, own)

    return _gradients(params, x, y, mesh, body)


@fsdp_gradient.mistake
def cut_at_the_device_number(params, x, y, *, mesh):
    """A device's rows of the gradient begin at its number, not at that number times the rows of a share. (With a
    reduce_scatter there is nothing to cut.)"""

    def body(p, x, y):
        value, gradients = averaged(jax.value_and_grad(loss)(gathered(p), x, y))
        return value, rows_of(gradients, lambda device, rows: device)

    return _gradients(params, x, y, mesh, body)


@fsdp_gradient.mistake
def summed_whole_then_cut(params, x, y, *, mesh):
    """The values are right. But every device received the whole sum of all gradients, and threw most of it away: an
    all_reduce sends twice what is needed, and holds the whole gradient everywhere. Which collective adds up *and* deals
    out, and of which one is it the transpose?"""

    def body(p, x, y):
        value, gradients = averaged(jax.value_and_grad(loss)(gathered(p), x, y))
        return value, rows_of(gradients, own)

    return _gradients(params, x, y, mesh, body)


@fsdp_gradient.mistake
def own_loss_reported(params, x, y, *, mesh):
    """The gradients are right; the loss is that of each device's own examples, and out_specs let the first device speak
    for all."""

    def body(p, x, y):
        value, gradients = _by_shares(lambda value: value)(p, x, y)
        return value, scaled(gradients, 1 / lax.axis_size("fsdp"))

    return _gradients(params, x, y, mesh, body)


# Many layers: gathered inside the loop, and not kept.

STACK = P(None, "fsdp")
DEEP = (8,), (4,)  # on two devices shares are as large as what one gathers: nothing to see
LAYERS = 8


def _deep(stack, x, y):
    """tanh layers, one after the other; the mean of the squares of what is missing."""
    return jnp.mean((lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, stack)[0] - y) ** 2)


fsdp_scan = ProgramExercise("fsdp_scan", points=6, reference=jax.jit(jax.value_and_grad(_deep)), mesh_shapes=DEEP)


def _at_the_peak(layers: int, width: int, rows: int, n: int) -> int:
    """Bytes of a device: shares and their gradients, an activation a layer, and one layer, its gradient and its sum."""
    return FLOAT * (2 * layers * width * width // n + (layers + 4) * rows * width + 3 * width * width)


@fsdp_scan.cases
def _(draw):
    mesh = draw.mesh("fsdp")
    n, layers = mesh["fsdp"], LAYERS + int(draw.rng.integers(3))
    width, rows = 8 * int(draw.rng.integers(4, 7)), 2 * n
    share = width * width // n
    sent = 2 * bytes_sent("all_gather", share, n) + bytes_sent("reduce_scatter", n * share, n)
    return Case(
        {
            "stack": Array(draw.values(layers, width, width) / 32, STACK),
            "x": Array(draw.values(rows, width) / 8, CUT),
            "y": Array(draw.values(rows, width) / 8, CUT),
        },
        mesh,
        (P(), STACK),
        limits=[
            Turns({"all_gather": 2 * layers, "reduce_scatter": layers, "all_reduce": 2}),
            BytesSent(layers * sent + 2 * bytes_sent("all_reduce", 1, n)),
            PeakBytes(_at_the_peak(layers, width, rows // n, n)),
        ],
        roundings=2 * layers * width + rows,
    )


def _whole(w, axis=0):
    return lax.all_gather(w, "fsdp", axis=axis, tiled=True)


def _step(h, w):
    return jnp.tanh(h @ _whole(w)), None


def _through(layer, reduce=averaged, before=lambda stack: stack, around=lambda function: function):
    """Loss and gradient of the shares, through a scan of `layer`."""

    def value(stack, x, y):
        h, _ = around(lambda stack, x: lax.scan(layer, x, before(stack)))(stack, x)
        return reduce(jnp.mean((h - y) ** 2))

    return jax.value_and_grad(value)


deep_gradient = _through(jax.checkpoint(_step))  # the right one, for a device of axis fsdp


def _scanned(stack, x, y, mesh, body, check_vma=True):
    return device_map(body, mesh, (STACK, CUT, CUT), (P(), STACK), check_vma)(stack, x, y)


@fsdp_scan.mistake
def stack_gathered_first(stack, x, y, *, mesh):
    """The values are right. But the whole stack was gathered before the loop, so that every device holds all layers at
    once: just what the shares were to avoid. (A `jax.checkpoint` in the loop does not help: what is gathered outside of
    it, it cannot forget.) Where does one gather, so that there is one layer at a time?"""

    def layer(h, w):
        return jnp.tanh(h @ w), None

    return _scanned(stack, x, y, mesh, _through(layer, before=lambda stack: _whole(stack, axis=1)))


@fsdp_scan.mistake
def gathered_weights_kept(stack, x, y, *, mesh):
    """The values are right, and each layer is gathered when its turn comes. But nothing is forgotten: what the forward
    pass has gathered is kept for the backward pass, layer upon layer, until every device has all of them. (A
    `jax.checkpoint` that is handed the gathered weights keeps them too: they are its arguments.) What has to be inside
    of it?"""
    return _scanned(stack, x, y, mesh, _through(_step))


@fsdp_scan.mistake
def checkpoint_around_the_loop(stack, x, y, *, mesh):
    """The values are right, and every layer is gathered twice; but the second time they are all kept. `jax.checkpoint`
    forgets what is *inside* of it, and then does all of that once more before it goes backwards: around the loop, that
    is all layers. What should it be put around?"""
    return _scanned(stack, x, y, mesh, _through(_step, around=jax.checkpoint))


@fsdp_scan.mistake
def stack_never_divided(stack, x, y, *, mesh):
    """The gradient is as many times too large as there are devices: it is that of the sum of the devices' means. Which
    loss is to be differentiated? (With the check off, a pmean of the loss divides no gradient.)"""

    def body(stack, x, y):
        return _mean_reported(_through(jax.checkpoint(_step), reduce=lambda value: value)(stack, x, y))

    return _scanned(stack, x, y, mesh, body)


@fsdp_scan.mistake
def stack_shares_averaged(stack, x, y, *, mesh, check_vma=True):
    """The gradients of the shares were averaged over the devices. But they are those of different rows: their sum over
    the examples has been made on the way back, by the reduce_scatter."""

    def body(stack, x, y):
        return averaged(_through(jax.checkpoint(_step), reduce=lambda value: value)(stack, x, y))

    return _scanned(stack, x, y, mesh, body, check_vma)


@fsdp_scan.mistake
def last_layer_without_tanh(stack, x, y, *, mesh, check_vma=True):
    """This comes out when the last layer is a product and no more. Every layer of the stack ends with a tanh here: is
    one done behind the loop, or is another network computed?"""

    def value(stack, x, y):
        h, _ = lax.scan(jax.checkpoint(_step), x, stack[:-1])
        return averaged(jnp.mean((h @ _whole(stack[-1]) - y) ** 2))

    return _scanned(stack, x, y, mesh, jax.value_and_grad(value), check_vma)


@fsdp_scan.mistake
def layers_cut_for_rows(stack, x, y, *, mesh):
    """in_specs cut the stack along its first dimension: a device would have some whole *layers* and nothing of the
    others. Then the loop has too few turns, and the layers are joined from different ones. Which dimension of the stack
    counts rows?"""
    return device_map(deep_gradient, mesh, (CUT, CUT, CUT), (P(), CUT), True)(stack, x, y)


# The next layer is gathered while this one is multiplied.


def _forward(embed, stack, x):
    return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), jnp.tanh(x @ embed), stack)[0]


prefetch = ProgramExercise("prefetch", points=5, reference=jax.jit(_forward), mesh_shapes=DEEP)


@prefetch.cases
def _(draw):
    mesh = draw.mesh("fsdp")
    n, layers = mesh["fsdp"], LAYERS + int(draw.rng.integers(3))
    width, rows = 8 * int(draw.rng.integers(4, 7)), 2 * n
    inputs = width + 8
    return Case(
        {
            "embed": Array(draw.values(inputs, width) / 32, P()),
            # More digits than bfloat16 has.
            "stack": Array(draw.values(layers, width, width) / 32 + np.float32(1 / 2048), STACK),
            "x": Array(draw.values(rows, inputs) / 8, CUT),
        },
        mesh,
        CUT,
        limits=[
            Turns({"all_gather": layers}),
            BytesSent(layers * bytes_sent("all_gather", width * width // n, n)),
            Meanwhile(2 * rows // n * width * width),
            PeakBytes(FLOAT * (width * (inputs + layers * width // n + 3 * width) + rows // n * (inputs + 4 * width))),
        ],
        roundings=layers * width,
    )


def _ahead(embed, stack, x, mesh, body):
    return device_map(body, mesh, (P(), STACK, CUT), CUT)(embed, stack, x)


@prefetch.mistake
def gathered_when_needed(embed, stack, x, *, mesh):
    """The values are right, but nothing runs beside a transfer: what is multiplied waits for the layer that is being
    gathered. What could a turn multiply by, if the turn before had gathered it?"""

    def body(embed, stack, x):
        return lax.scan(_step, jnp.tanh(x @ embed), stack)[0]

    return _ahead(embed, stack, x, mesh, body)


@prefetch.mistake
def gathered_all_ahead(embed, stack, x, *, mesh):
    """The values are right, and every transfer could run early: so early that all layers are there at once. One layer
    ahead is enough. How many gathered layers does a turn have to hold?"""

    def body(embed, stack, x):
        wholes = [_whole(w) for w in stack]
        h = jnp.tanh(x @ embed)
        for w in wholes:
            h = jnp.tanh(h @ w)
        return h

    return _ahead(embed, stack, x, mesh, body)


@prefetch.mistake
def stack_gathered_ahead(embed, stack, x, *, mesh):
    """The values are right, but the stack was gathered as a whole: one large transfer, and a device that holds all
    layers."""

    def body(embed, stack, x):
        whole = _whole(stack, axis=1)
        return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), jnp.tanh(x @ embed), whole)[0]

    return _ahead(embed, stack, x, mesh, body)


@prefetch.mistake
def first_layer_gathered_again(embed, stack, x, *, mesh):
    """The values are right, with one gather too many. The last turn has no next layer: does it gather one all the same?
    How many turns does the loop need, if the last layer is multiplied behind it?"""

    def body(embed, stack, x):
        def turn(carry, following):
            h, w = carry
            return (jnp.tanh(h @ w), _whole(following)), None

        begin = jnp.tanh(x @ embed), _whole(stack[0])
        return lax.scan(turn, begin, jnp.roll(stack, -1, axis=0))[0][0]

    return _ahead(embed, stack, x, mesh, body)


@prefetch.mistake
def multiplied_by_the_next(embed, stack, x, *, mesh):
    """The first layer was left out. By which layer does a turn multiply: by the one that it has just gathered, or by
    what the turn *before* has brought?"""

    def body(embed, stack, x):
        def turn(carry, following):
            h, _ = carry
            w = _whole(following)
            return (jnp.tanh(h @ w), w), None

        h, w = lax.scan(turn, (jnp.tanh(x @ embed), _whole(stack[0])), stack[1:])[0]
        return jnp.tanh(h @ w)

    return _ahead(embed, stack, x, mesh, body)


@prefetch.mistake
def last_layer_forgotten(embed, stack, x, *, mesh):
    """The result is that of one layer less: nothing was multiplied by the last one. If the loop ends when it has come,
    what is left to do?"""

    def body(embed, stack, x):
        def turn(carry, following):
            h, w = carry
            return (jnp.tanh(h @ w), _whole(following)), None

        return lax.scan(turn, (jnp.tanh(x @ embed), _whole(stack[0])), stack[1:])[0][0]

    return _ahead(embed, stack, x, mesh, body)
