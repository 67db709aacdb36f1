"""Gradients through shard_map: collectives of the backward pass, custom_vjp, rematerialization, second derivatives.

Collectives that autodiff writes into the traced program count as the author's.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P
from strangers.registry import Call, grid, on, ring, sharded, stranger


# The weights are replicated, so autodiff sums their gradients over the devices. The loss itself isn't needed.
@stranger(flops=2 * (2 * 2 * 4 * 6), yours={"all_reduce x": 1}, replayable=True)
def gradient_of_replicated_weights():
    mesh = grid(x=4)

    @on(mesh, (P(), P("x")), P())
    def loss(w, v):
        return lax.pmean((jnp.tanh(v @ w) ** 2).mean(), "x")

    return Call(mesh, jax.grad(loss), sharded(mesh, P(), 4, 6), sharded(mesh, P("x"), 8, 4))


@stranger(flops=2 * (2 * 2 * 4 * 6), yours={"all_reduce x": 2}, replayable=True)
def value_and_gradient_of_replicated_weights():
    mesh = grid(x=4)

    @on(mesh, (P(), P("x")), P())
    def loss(w, v):
        return lax.pmean((jnp.tanh(v @ w) ** 2).mean(), "x")

    return Call(mesh, jax.value_and_grad(loss), sharded(mesh, P(), 4, 6), sharded(mesh, P("x"), 8, 4))


# Inside of shard_map, as in data-parallel code: value_and_grad of the local loss, and one pmean of both.
@stranger(flops=2 * (2 * 2 * 4 * 6), yours={"all_reduce x": 2}, replayable=True)
def local_gradient_and_a_mean():
    mesh = grid(x=4)

    @on(mesh, (P(), P("x")), P(), check_vma=False)
    def step(w, v):
        return lax.pmean(jax.value_and_grad(lambda w: (jnp.tanh(v @ w) ** 2).mean())(w), "x")

    return Call(mesh, step, sharded(mesh, P(), 4, 6), sharded(mesh, P("x"), 8, 4))


# The gradient of a gather is a reduce_scatter: nothing else is needed here.
@stranger(yours={"all_gather x": 1, "reduce_scatter x": 1}, replayable=True)
def gradient_of_an_all_gather():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"))
    def mixed(v):
        return jnp.sin(lax.all_gather(v, "x", tiled=True)).sum(0, keepdims=True) * v

    return Call(mesh, jax.grad(lambda v: mixed(v).sum()), sharded(mesh, P("x"), 8, 3))


@stranger(yours={"reduce_scatter x": 1, "all_gather x": 1}, replayable=True)
def gradient_of_a_reduce_scatter():
    mesh = grid(x=4)

    @on(mesh, P(None, "x"), P("x"))
    def summed(v):
        return lax.psum_scatter(v**3, "x", tiled=True) ** 2

    return Call(mesh, jax.grad(lambda v: summed(v).sum()), sharded(mesh, P(None, "x"), 8, 4))


@stranger(yours={"all_to_all x": 2, "collective_permute x": 2}, replayable=True)
def gradient_of_an_all_to_all_and_a_permute():
    mesh = grid(x=4)

    @on(mesh, P("x"), P(None, "x"))
    def moved(v):
        return lax.all_to_all(jnp.sin(lax.ppermute(jnp.cos(v), "x", ring(4))), "x", 1, 0, tiled=True) ** 2

    return Call(mesh, jax.grad(lambda v: moved(v).sum()), sharded(mesh, P("x"), 8, 4))


# In the backward pass, the gradient of psum sends nothing.
@stranger(flops=3 * 2 * 2 * 2 * 6, yours={"all_reduce x": 1}, replayable=True)
def gradient_of_a_sum_over_devices():
    mesh = grid(x=4)

    @on(mesh, (P(None, "x"), P("x")), P())
    def product(a, b):
        return lax.psum(a @ b, "x")

    def loss(a, b):
        return (product(a, b) ** 2).sum()

    return Call(mesh, jax.grad(loss, (0, 1)), sharded(mesh, P(None, "x"), 2, 8), sharded(mesh, P("x"), 8, 6))


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def mean_of_gradients(v, axis):
    return v


mean_of_gradients.defvjp(lambda v, axis: (v, None), lambda axis, _, g: (lax.pmean(g, axis),))


@stranger(flops=2 * (2 * 2 * 4 * 6), yours={"all_reduce x": 1}, replayable=True)
def custom_vjp_that_averages():
    mesh = grid(x=4)

    @on(mesh, (P(), P("x")), P(), check_vma=False)
    def grads(w, v):
        return jax.grad(lambda w: (jnp.tanh(v @ mean_of_gradients(w, "x")) ** 2).mean())(w)

    return Call(mesh, grads, sharded(mesh, P(), 4, 6), sharded(mesh, P("x"), 8, 4))


@jax.custom_vjp
def ring_sum(v):
    return lax.fori_loop(0, 3, lambda _, both: (n := lax.ppermute(both[0], "x", ring(4)), both[1] + n), (v, v))[1]


# The backward pass does the same with one collective.
ring_sum.defvjp(lambda v: (ring_sum(v), None), lambda _, g: (lax.psum(g, "x"),))


@stranger(yours={"collective_permute x": 3, "all_reduce x": 1}, replayable=True)
def custom_vjp_of_a_ring():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"), check_vma=False)
    def both(v):
        out, back = jax.vjp(lambda v: ring_sum(jnp.sin(v)), v)
        return out + back(v)[0]

    return Call(mesh, both, sharded(mesh, P("x"), 8, 3))


# custom_jvp leaves nothing in the compiled program. Only the mean sends something.
@stranger(yours={"all_reduce x": 1}, replayable=True)
def custom_jvp_of_a_local_function():
    mesh = grid(x=4)

    @jax.custom_jvp
    def safe(v):
        return jnp.sqrt(jnp.abs(v) + 1)

    safe.defjvp(lambda primals, tangents: (safe(*primals), tangents[0] / (2 * safe(*primals))))

    @on(mesh, P("x"), P("x"), check_vma=False)
    def slope(v):
        return jax.grad(lambda v: safe(v).sum())(v) - lax.pmean(v, "x")

    return Call(mesh, slope, sharded(mesh, P("x"), 8, 3))


# The program computes `x @ up` a second time, and the CPU's compiler sees that it is the same. The gradient of psum is
# psum here; the recomputed one is not needed.
@stranger(flops=5 * (2 * 4 * 8 * 4), yours={"all_reduce model": 2}, replayable=True)
def remat_of_a_tensor_parallel_mlp():
    mesh = grid(data=2, model=4)

    @on(mesh, (P("data"), P(None, "model"), P("model")), (P(("data"), "model"), P("model", "data")), check_vma=False)
    def grads(x, up, down):
        def mlp(up, down):
            return lax.psum(jnp.tanh(x @ up) @ down, "model")

        gradient = jax.grad(lambda up, down: (jax.checkpoint(mlp)(up, down) ** 2).mean(), (0, 1))
        d_up, d_down = gradient(up, down)
        return d_up[:4], d_down[:, :4]

    args = sharded(mesh, P("data"), 8, 8), sharded(mesh, P(None, "model"), 8, 16), sharded(mesh, P("model"), 16, 8)
    return Call(mesh, grads, *args)


# A policy that keeps the gathered weights: no second gather. (And `x @ full` is merged with its recomputation.)
@stranger(flops=2 * (2 * 2 * 8 * 8), yours={"all_gather x": 1, "reduce_scatter x": 1}, replayable=True)
def remat_that_keeps_what_was_gathered():
    mesh = grid(x=4)
    policy = jax.checkpoint_policies.save_only_these_names("gathered")

    @on(mesh, (P("x"), P("x")), P("x"))
    def grads(x, w):
        def layer(w):
            full = checkpoint_name(lax.all_gather(w, "x", tiled=True), "gathered")
            return (jnp.tanh(x @ full) ** 2).sum()

        return jax.grad(jax.checkpoint(layer, policy=policy))(w)

    return Call(mesh, grads, sharded(mesh, P("x"), 8, 8), sharded(mesh, P("x"), 8, 8))


@stranger(yours={"all_reduce x": 1}, replayable=True)
def hessian_vector_product():
    mesh = grid(x=4)

    @on(mesh, (P(), P("x")), P())
    def loss(w, v):
        return lax.psum(jnp.sin(v * w).sum(), "x")

    def product(w, v, t):
        return jax.jvp(lambda w: jax.grad(loss)(w, v), (w,), (t,))[1]

    return Call(mesh, product, sharded(mesh, P(), 3), sharded(mesh, P("x"), 8, 3), sharded(mesh, P(), 3))


# Two microbatches in a scan: gradients are summed over the devices once, at the end.
@stranger(flops=2 * 2 * (2 * 2 * 4 * 6), yours={"all_reduce x": 1}, replayable=True)
def gradient_accumulation():
    mesh = grid(x=4)

    @on(mesh, (P(), P(None, "x")), P(), check_vma=False)
    def step(w, batches):
        def one(total, v):
            return total + jax.grad(lambda w: (jnp.tanh(v @ w) ** 2).mean())(w), None

        return lax.pmean(lax.scan(one, jnp.zeros_like(w), batches)[0], "x")

    return Call(mesh, step, sharded(mesh, P(), 4, 6), sharded(mesh, P(None, "x"), 2, 8, 4))


# Under jit alone: the compiler sums the gradient, as it is replicated.
@stranger(flops=2 * (2 * 2 * 4 * 6), inserted={"all_reduce x": 1})
def gradient_under_jit():
    mesh = grid(x=4)

    def loss(w, v):
        return (jnp.tanh(v @ w) ** 2).mean()

    return Call(mesh, jax.grad(loss), sharded(mesh, P(), 4, 6), sharded(mesh, P("x"), 8, 4))


# Four matmuls a layer: two loops cannot be merged. The compiler sums the gradient of each layer in the loop.
@stranger(flops=3 * 4 * (2 * 2 * 4 * 4), inserted={"all_reduce x": 3})
def gradient_of_a_scan_with_remat_under_jit():
    mesh = grid(x=4)

    def loss(weights, v):
        layer = jax.checkpoint(lambda h, w: (jnp.tanh(h @ w), None))
        return (lax.scan(layer, v, weights)[0] ** 2).mean()

    return Call(mesh, jax.grad(loss), sharded(mesh, P(), 3, 4, 4), sharded(mesh, P("x"), 8, 4))


# The tangents of all 4 weights at once, and the result itself.
@stranger(flops=2 * 2 * 4 * (4 + 1))
def jacobian_of_sharded_rows():
    mesh = grid(x=4)

    def outputs(w, v):
        return jnp.tanh(v @ w)

    return Call(mesh, jax.jacfwd(outputs), sharded(mesh, P(), 4), sharded(mesh, P("x"), 8, 4))


# Every multiplication of the forward pass has one in the gradient of the images, and one in that of the kernels. Along
# each dimension 3 results have 3 multiplications each, of which one is with padding. (The loss itself isn't needed, but
# its convolution is, because it is squared.)
@stranger(flops=3 * 2 * (2 * 3 * 4) * (8 * 8), yours={"all_reduce x": 1}, replayable=True)
def gradient_of_a_strided_convolution():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P()), (P("x"), P()), check_vma=False)
    def grads(images, kernels):
        def loss(images, kernels):
            numbers = ("NHWC", "HWIO", "NHWC")
            out = lax.conv_general_dilated(images, kernels, (2, 2), ((1, 0), (1, 0)), dimension_numbers=numbers)
            return (out**2).sum()

        d_images, d_kernels = jax.grad(loss, (0, 1))(images, kernels)
        return d_images, lax.psum(d_kernels, "x")

    return Call(mesh, grads, sharded(mesh, P("x"), 8, 6, 6, 3), sharded(mesh, P(), 3, 3, 3, 4))
