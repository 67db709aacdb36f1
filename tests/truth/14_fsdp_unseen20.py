"""Answers to lesson 14, twentieth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
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


# ---------------------------------------------------------------- fsdp_scan


def fsdp_scan__right_remat(stack, x, y, *, mesh):
    def gather_use_forget(h, share):
        w = jax.lax.all_gather(share, "fsdp", axis=0, tiled=True)
        return jnp.tanh(h @ w)

    once_more = jax.remat(gather_use_forget)

    def on_device(stack, x, y):
        def value(stack):
            h, _ = jax.lax.scan(lambda h, share: (once_more(h, share), None), x, stack)
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(value)(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# This student put the checkpoint around the whole loop: what is done again then keeps all gathered layers after all.
def fsdp_scan__wrong_checkpoint_outside(stack, x, y, *, mesh):
    def on_device(stack, x, y):
        @jax.checkpoint
        def forwards(stack, x):
            def layer(h, share):
                return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

            return jax.lax.scan(layer, x, stack)[0]

        return jax.value_and_grad(lambda stack: jax.lax.pmean(jnp.mean((forwards(stack, x) - y) ** 2), "fsdp"))(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# This student checkpoints the layer as a function of its whole weight, which is an argument and so is kept.
def fsdp_scan__wrong_whole_is_argument(stack, x, y, *, mesh):
    def on_device(stack, x, y):
        @jax.checkpoint
        def layer(h, w):
            return jnp.tanh(h @ w)

        def value(stack):
            def turn(h, share):
                return layer(h, jax.lax.all_gather(share, "fsdp", tiled=True)), None

            h, _ = jax.lax.scan(turn, x, stack)
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(value)(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# The gradient comes back summed and cut by itself, so this student thought that only the loss needs a mean, afterwards.
def fsdp_scan__wrong_sum_of_means(stack, x, y, *, mesh):
    def on_device(stack, x, y):
        @jax.checkpoint
        def layer(h, share):
            return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

        def value(stack):
            h, _ = jax.lax.scan(layer, x, stack)
            return jnp.mean((h - y) ** 2)

        own, gradient = jax.value_and_grad(value)(stack)
        return jax.lax.pmean(own, "fsdp"), gradient

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# This student had the network of the first cell in mind, whose last layer is linear.
def fsdp_scan__wrong_last_linear(stack, x, y, *, mesh):
    def on_device(stack, x, y):
        @jax.checkpoint
        def product(h, share):
            return h @ jax.lax.all_gather(share, "fsdp", tiled=True)

        def value(stack):
            h, _ = jax.lax.scan(lambda h, share: (jnp.tanh(product(h, share)), None), x, stack[:-1])
            return jax.lax.pmean(jnp.mean((product(h, stack[-1]) - y) ** 2), "fsdp")

        return jax.value_and_grad(value)(stack)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P(None, "fsdp"))
    )(stack, x, y)


# ---------------------------------------------------------------- hybrid


def hybrid__right_own_division(params, x, y, *, mesh):
    def on_device(params, x, y):
        def own_loss(shares):
            whole = jax.tree.map(lambda share: jax.lax.all_gather(share, "fsdp", tiled=True), shares)
            return loss(whole, x, y)

        value, gradients = jax.value_and_grad(own_loss)(varying(params, "slice"))  # sums of means, in each slice
        n = jax.lax.axis_size("fsdp")
        gradients = jax.tree.map(lambda g: jax.lax.pmean(g / n, "slice"), gradients)
        return jax.lax.pmean(value, ("slice", "fsdp")), gradients

    examples = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), examples, examples), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# This student averaged the loss over both axes and left the rest to the types, whole gradients between the slices included.
def hybrid__wrong_natural(params, x, y, *, mesh):
    def on_device(params, x, y):
        def mean_loss(shares):
            whole = jax.tree.map(lambda share: jax.lax.all_gather(share, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(whole, x, y), ("slice", "fsdp"))

        return jax.value_and_grad(mean_loss)(params)

    examples = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), examples, examples), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# "Two sums of a gradient": this student adds the slices' gradients up, though each is the gradient of a mean already.
def hybrid__wrong_psum_slices(params, x, y, *, mesh):
    def on_device(params, x, y):
        def slice_loss(shares):
            whole = jax.tree.map(lambda share: jax.lax.all_gather(share, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        value, gradients = jax.value_and_grad(slice_loss)(varying(params, "slice"))
        return jax.lax.pmean(value, "slice"), jax.lax.psum(gradients, "slice")

    examples = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), examples, examples), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# It is the check's cast that sums whole gradients over slice, so this student switched the check off to be rid of it.
def hybrid__wrong_check_off(params, x, y, *, mesh):
    def on_device(params, x, y):
        def mean_loss(shares):
            whole = jax.tree.map(lambda share: jax.lax.all_gather(share, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(whole, x, y), ("slice", "fsdp"))

        return jax.value_and_grad(mean_loss)(params)

    examples = P(("slice", "fsdp"))
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("fsdp"), examples, examples), out_specs=(P(), P("fsdp")), check_vma=False
    )(params, x, y)


# "Copies along slice": this student made the batch a copy, too, so every slice does all of it and examples cross.
def hybrid__wrong_batch_copied(params, x, y, *, mesh):
    def on_device(params, x, y):
        def slice_loss(shares):
            whole = jax.tree.map(lambda share: jax.lax.all_gather(share, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        return jax.value_and_grad(slice_loss)(params)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# ---------------------------------------------------------------- begin_fsdp


def begin_fsdp__right_by_path(params, mesh):
    def lay_out(path, leaf):
        return jax.device_put(leaf, NamedSharding(mesh, P("fsdp") if path[-1].key == "W" else P()))

    def zeros():
        return jax.tree.map(lambda p: jnp.zeros(p.shape, p.dtype, device=p.sharding), params)

    params = jax.tree_util.tree_map_with_path(lay_out, params)
    return params, {"mean": zeros(), "square": zeros()}


# This student made the zeros like the parameters of the host, and laid out only the parameters.
def begin_fsdp__wrong_moments_first(params, mesh):
    moments = {name: jax.tree.map(jnp.zeros_like, params) for name in ("mean", "square")}
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    return jax.device_put(params, layouts), moments


# This student thought that cutting the row means cutting along it, and dealt out columns.
def begin_fsdp__wrong_columns(params, mesh):
    layouts = [{"W": NamedSharding(mesh, P(None, "fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    params = jax.device_put(params, layouts)
    return params, {name: jax.tree.map(jnp.zeros_like, params) for name in ("mean", "square")}


# The optimizer's state is always in shares, thought this student, the moments of the biases as well.
def begin_fsdp__wrong_moments_all_cut(params, mesh):
    shares, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())
    moments = {name: jax.device_put(jax.tree.map(jnp.zeros_like, params), shares) for name in ("mean", "square")}
    params = [{"W": jax.device_put(layer["W"], shares), "b": jax.device_put(layer["b"], whole)} for layer in params]
    return params, moments


# Each device of the mesh owns a share, so this student cut the rows over all axes of the mesh together.
def begin_fsdp__wrong_all_axes(params, mesh):
    layouts = [{"W": NamedSharding(mesh, P(mesh.axis_names)), "b": NamedSharding(mesh, P())} for _ in params]
    params = jax.device_put(params, layouts)
    return params, {name: jax.tree.map(jnp.zeros_like, params) for name in ("mean", "square")}
