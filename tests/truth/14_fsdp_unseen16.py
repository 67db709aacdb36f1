"""Answers to lesson 14, sixteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("fsdp",), axis_types=(AxisType.Auto,))


def predict(params, x):
    """The network of lesson 12: relu between its layers. A layer is a dict with "W" and "b"."""
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    """The mean over the batch of the summed squares of what is missing."""
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


def adam(params, moments, gradients):
    """One step of Adam on trees, without the corrections for its start: (params, moments)."""
    mean = jax.tree.map(lambda m, g: m + 0.1 * (g - m), moments["mean"], gradients)
    square = jax.tree.map(lambda s, g: s + 0.01 * (g**2 - s), moments["square"], gradients)
    params = jax.tree.map(lambda p, m, s: p - m / (64 * (jnp.sqrt(s) + 1e-8)), params, mean, square)
    return params, {"mean": mean, "square": square}


def varying(tree, axes):
    """The same arrays, marked as ones that may differ along these axes (`lax.pvary` until JAX 0.8.1)."""
    if hasattr(jax.lax, "pcast"):
        return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)
    return jax.tree.map(lambda leaf: jax.lax.pvary(leaf, axes), tree)


# ---------------------------------------------------------------- fsdp_layer


def fsdp_layer__right_stacked(w, b, x, *, mesh):
    """relu(x · W + b) for w[D_fsdp, F], b[F_fsdp], x[B_fsdp, D] → [B_fsdp, F]."""

    def on_device(w, b, x):
        blocks = jax.lax.all_gather(w, "fsdp")  # [n, D/n, F]: the blocks in their order
        whole = blocks.reshape(-1, w.shape[1])
        bias = jax.lax.all_gather(b, "fsdp").reshape(-1)
        return jnp.maximum(x @ whole + bias, 0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=P("fsdp"))(w, b, x)


# W is cut by rows, so each device multiplies its columns of x by its rows of W, and a psum adds the parts (that is tensor parallelism).
def fsdp_layer__wrong_tensor(w, b, x, *, mesh):
    """relu(x · W + b) for w[D_fsdp, F], b[F_fsdp], x[B_fsdp, D] → [B_fsdp, F]."""

    def on_device(w, b, x):
        rows = w.shape[0]
        mine = jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index("fsdp") * rows, rows, axis=1)
        product = jax.lax.psum(mine @ w, "fsdp")
        return jax.nn.relu(product + jax.lax.all_gather(b, "fsdp", tiled=True))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), P("fsdp"), P("fsdp")), out_specs=P("fsdp"))(w, b, x)


# Gathers W along the wrong dimension, sees that the shape does not fit, and reshapes it until it does.
def fsdp_layer__wrong_reshaped(w, b, x, *, mesh):
    """relu(x · W + b) for w[D_fsdp, F], b[F_fsdp], x[B_fsdp, D] → [B_fsdp, F]."""

    def on_device(w, b, x):
        w = jax.lax.all_gather(w, "fsdp", axis=1, tiled=True)
        b = jax.lax.all_gather(b, "fsdp", tiled=True)
        w = w.reshape(x.shape[1], b.shape[0])
        return jax.nn.relu(x @ w + b)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"))(w, b, x)


# Everything that is cut has to be gathered before one can compute, x too; at the end each device keeps its own rows.
def fsdp_layer__wrong_gatherall(w, b, x, *, mesh):
    """relu(x · W + b) for w[D_fsdp, F], b[F_fsdp], x[B_fsdp, D] → [B_fsdp, F]."""

    def on_device(w, b, x):
        rows = x.shape[0]
        w, b, x = (jax.lax.all_gather(array, "fsdp", tiled=True) for array in (w, b, x))
        everything = jax.nn.relu(x @ w + b)
        start = jax.lax.axis_index("fsdp") * rows
        return jax.lax.dynamic_slice_in_dim(everything, start, rows, axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"))(w, b, x)


# Puts the share into an array of zeros and adds these over the devices: right numbers, but an all_reduce sends twice the bytes.
def fsdp_layer__wrong_padded(w, b, x, *, mesh):
    """relu(x · W + b) for w[D_fsdp, F], b[F_fsdp], x[B_fsdp, D] → [B_fsdp, F]."""

    def whole(share):
        n, me, length = jax.lax.axis_size("fsdp"), jax.lax.axis_index("fsdp"), share.shape[0]
        zeros = varying(jnp.zeros((n * length, *share.shape[1:]), share.dtype), "fsdp")
        return jax.lax.psum(jax.lax.dynamic_update_slice_in_dim(zeros, share, me * length, axis=0), "fsdp")

    def on_device(w, b, x):
        return jax.nn.relu(x @ whole(w) + whole(b))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), P("fsdp"), P("fsdp")), out_specs=P("fsdp"))(w, b, x)


# ---------------------------------------------------------------- fsdp_scan


def fsdp_scan__right_outside(stack, x, y, *, mesh):
    """(loss, gradient) of L tanh layers whose weights are in shares: one layer is whole at a time."""

    def on_device(stack, x, y):
        def layer(h, share):
            w = jax.lax.all_gather(share, "fsdp", axis=0, tiled=True)
            return jnp.tanh(h @ w), None

        h, _ = jax.lax.scan(jax.checkpoint(layer), x, stack)
        return jax.lax.pmean(jnp.mean(jnp.square(h - y)), "fsdp")

    specs = P(None, "fsdp"), P("fsdp"), P("fsdp")
    whole_loss = jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P())
    return jax.value_and_grad(whole_loss)(stack, x, y)


# Puts the checkpoint around the whole loss: then the way back does the forward pass again, and keeps all its gathered layers.
def fsdp_scan__wrong_allatonce(stack, x, y, *, mesh):
    """(loss, gradient) of L tanh layers whose weights are in shares: one layer is whole at a time."""

    def on_device(stack, x, y):
        @jax.checkpoint
        def value(stack):
            def layer(h, share):
                return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

            h, _ = jax.lax.scan(layer, x, stack)
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(value)(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# The layer is the product and the tanh, so only these are checkpointed, and the gathered weights are handed to them.
def fsdp_scan__wrong_gatheroutside(stack, x, y, *, mesh):
    """(loss, gradient) of L tanh layers whose weights are in shares: one layer is whole at a time."""

    def on_device(stack, x, y):
        @jax.checkpoint
        def layer(h, w):
            return jnp.tanh(h @ w)

        def turn(h, share):
            w = jax.lax.all_gather(share, "fsdp", tiled=True)
            return layer(h, w), None

        def value(stack):
            h, _ = jax.lax.scan(turn, x, stack)
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(value)(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# The reduce_scatter makes a sum of eight gradients, so it is divided by the devices, although the loss was pmean'd before.
def fsdp_scan__wrong_dividedtwice(stack, x, y, *, mesh):
    """(loss, gradient) of L tanh layers whose weights are in shares: one layer is whole at a time."""

    def on_device(stack, x, y):
        @jax.checkpoint
        def layer(h, share):
            return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

        def value(stack):
            h, _ = jax.lax.scan(layer, x, stack)
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        found, gradient = jax.value_and_grad(value)(stack)
        return found, gradient / jax.lax.axis_size("fsdp")

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# The last layer of a network is linear, as in `predict`, so it is taken after the loop without a tanh.
def fsdp_scan__wrong_lastlinear(stack, x, y, *, mesh):
    """(loss, gradient) of L tanh layers whose weights are in shares: one layer is whole at a time."""

    def on_device(stack, x, y):
        @jax.checkpoint
        def product(h, share):
            return h @ jax.lax.all_gather(share, "fsdp", tiled=True)

        def value(stack):
            h, _ = jax.lax.scan(lambda h, share: (jnp.tanh(product(h, share)), None), x, stack[:-1])
            h = product(h, stack[-1])
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(value)(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# ---------------------------------------------------------------- hybrid


def hybrid__right_localloss(params, x, y, *, mesh):
    """(loss, gradients): shares along `fsdp`, copies along `slice`, the batch cut over both."""

    def on_device(params, x, y):
        def mine(shares):
            return loss(jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares), x, y)

        value, sums = jax.value_and_grad(mine)(varying(params, "slice"))
        n = jax.lax.axis_size("fsdp")  # the scatter has added up n means
        gradients = jax.lax.pmean(jax.tree.map(lambda g: g / n, sums), "slice")
        return jax.lax.pmean(value, ("slice", "fsdp")), gradients

    batch = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), batch, batch), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# Takes the program of part 4 with a mean over both axes: the numbers are right, so everything is.
def hybrid__wrong_natural(params, x, y, *, mesh):
    """(loss, gradients): shares along `fsdp`, copies along `slice`, the batch cut over both."""

    def on_device(params, x, y):
        def value(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(whole, x, y), ("slice", "fsdp"))

        return jax.value_and_grad(value)(params)

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("fsdp"), P(("slice", "fsdp")), P(("slice", "fsdp"))),
        out_specs=(P(), P("fsdp")),
    )(params, x, y)


# The loss is a mean, but gradients of different examples are added up: psum over the slices.
def hybrid__wrong_psum(params, x, y, *, mesh):
    """(loss, gradients): shares along `fsdp`, copies along `slice`, the batch cut over both."""

    def on_device(params, x, y):
        def value(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        found, gradients = jax.value_and_grad(value)(varying(params, "slice"))
        return jax.lax.pmean(found, "slice"), jax.lax.psum(gradients, "slice")

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("fsdp"), P(("slice", "fsdp")), P(("slice", "fsdp"))),
        out_specs=(P(), P("fsdp")),
    )(params, x, y)


# Switches the check off so that no cast adds over slice, and forgets that the pmean over fsdp is then transposed otherwise.
def hybrid__wrong_nocheck(params, x, y, *, mesh):
    """(loss, gradients): shares along `fsdp`, copies along `slice`, the batch cut over both."""

    def on_device(params, x, y):
        def value(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        return jax.lax.pmean(jax.value_and_grad(value)(params), "slice")

    specs = P("fsdp"), P(("slice", "fsdp")), P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(), P("fsdp")), check_vma=False)(
        params, x, y
    )


# Copies along slice, so the examples are cut over fsdp only, and both slices do the same work: nothing has to be added between them.
def hybrid__wrong_sameexamples(params, x, y, *, mesh):
    """(loss, gradients): shares along `fsdp`, copies along `slice`, the batch cut over both."""

    def on_device(params, x, y):
        def value(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        return jax.value_and_grad(value)(params)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P("fsdp")))(
        params, x, y
    )
