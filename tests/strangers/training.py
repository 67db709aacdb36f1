"""Train steps in plain JAX: data parallel, ZeRO, fully sharded, tensor parallel, and a small language model."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from strangers.registry import Call, grid, on, put, sharded, stranger, values

# Two layers, 8 to 16 to 4. On 4 devices each has 2 rows.
FORWARD = 2 * 2 * 8 * 16 + 2 * 2 * 16 * 4
# Backward: the weights of both, and the hidden layer.
BACKWARD = FORWARD + 2 * 2 * 16 * 4


def mlp_params():
    return {"up": values(8, 16), "up_bias": values(16), "down": values(16, 4), "down_bias": values(4)}


def mlp(params, x):
    hidden = jax.nn.relu(x @ params["up"] + params["up_bias"])
    return hidden @ params["down"] + params["down_bias"]


def mlp_loss(params, x, y):
    return ((mlp(params, x) - y) ** 2).mean()


def batch(mesh, spec=P("data")):
    return sharded(mesh, spec, 8, 8), sharded(mesh, spec, 8, 4)


# The loss is not asked for, so only the four gradients are summed.
@stranger(flops=FORWARD + BACKWARD, inserted={"all_reduce data": 4})
def sgd_step_under_jit():
    mesh = grid(data=4)

    def step(params, x, y):
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(mlp_loss)(params, x, y))

    return Call(mesh, jax.jit(step, donate_argnums=0), put(mesh, P(), mlp_params()), *batch(mesh))


@stranger(flops=FORWARD + BACKWARD, inserted={"all_reduce data": 5})
def sgd_step_with_its_loss():
    mesh = grid(data=4)

    def step(params, x, y):
        loss, grads = jax.value_and_grad(mlp_loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss

    return Call(mesh, step, put(mesh, P(), mlp_params()), *batch(mesh))


@stranger(flops=FORWARD + BACKWARD, yours={"all_reduce data": 5}, replayable=True)
def data_parallel_step_by_hand():
    mesh = grid(data=4)

    @on(mesh, (P(), P("data"), P("data")), (P(), P()), check_vma=False)
    def step(params, x, y):
        loss, grads = lax.pmean(jax.value_and_grad(mlp_loss)(params, x, y), "data")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss

    return Call(mesh, step, put(mesh, P(), mlp_params()), *batch(mesh))


# Five steps in a scan, each with its sums.
@stranger(flops=5 * (FORWARD + BACKWARD), inserted={"all_reduce data": 5 * 5})
def five_steps_in_a_scan():
    mesh = grid(data=4)

    def steps(params, xs, ys):
        def step(params, xy):
            loss, grads = jax.value_and_grad(mlp_loss)(params, *xy)
            return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss

        return lax.scan(step, params, (xs, ys))

    stacked = sharded(mesh, P(None, "data"), 5, 8, 8), sharded(mesh, P(None, "data"), 5, 8, 4)
    return Call(mesh, steps, put(mesh, P(), mlp_params()), *stacked)


# ZeRO-1: gradients are reduce-scattered, each device updates its shard, and all shards are gathered.
@stranger(flops=FORWARD + BACKWARD, yours={"reduce_scatter data": 4, "all_gather data": 4}, replayable=True)
def zero_1_with_momentum():
    mesh = grid(data=4)

    @on(mesh, (P(), P("data"), P("data"), P("data")), (P(), P("data")), check_vma=False)
    def step(params, momentum, x, y):
        grads = jax.grad(mlp_loss)(params, x, y)
        parts = jax.tree.map(lambda g: lax.psum_scatter(g, "data", tiled=True) / 4, grads)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, parts)

        def updated(p, m):
            rows = p.shape[0] // 4
            own = lax.dynamic_slice_in_dim(p, rows * lax.axis_index("data"), rows)
            return lax.all_gather(own - 0.1 * m, "data", tiled=True)

        return jax.tree.map(updated, params, momentum), momentum

    momentum = put(mesh, P("data"), jax.tree.map(np.zeros_like, mlp_params()))
    return Call(mesh, step, put(mesh, P(), mlp_params()), momentum, *batch(mesh))


# ZeRO-3: parameters are sharded too. Biases and kernels are gathered, and their gradients scattered by autodiff.
@stranger(flops=FORWARD + BACKWARD, yours={"all_gather data": 4, "reduce_scatter data": 4}, replayable=True)
def zero_3():
    mesh = grid(data=4)

    @on(mesh, (P("data"), P("data"), P("data")), P("data"))
    def step(params, x, y):
        def loss(params):
            full = jax.tree.map(lambda p: lax.all_gather(p, "data", tiled=True), params)
            return mlp_loss(full, x, y)

        return jax.tree.map(lambda p, g: p - 0.1 * g / 4, params, jax.grad(loss)(params))

    return Call(mesh, step, put(mesh, P("data"), mlp_params()), *batch(mesh))


# All parameters are gathered, and gradients all-reduced: there is no reduce-scatter on a CPU. The compiler computes the
# hidden layer's gradient for all rows and some columns: it gathers the errors, and an all-to-all brings the rows back.
@stranger(flops=FORWARD + BACKWARD, inserted={"all_gather data": 5, "all_to_all data": 1, "all_reduce data": 4})
def fully_sharded_by_specs():
    mesh = grid(data=4)

    def step(params, x, y):
        grads = jax.grad(mlp_loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    params = put(mesh, P("data"), mlp_params())
    shardings = jax.tree.map(lambda p: p.sharding, params)
    return Call(mesh, jax.jit(step, out_shardings=shardings), params, *batch(mesh))


# 4 rows and 8 hidden units a device are as many FLOPs as 2 rows and 16. Gradients of x are not asked for.
@stranger(flops=FORWARD + BACKWARD, inserted={"all_reduce model": 1, "all_reduce data": 4})
def tensor_parallel_step_by_specs():
    mesh = grid(data=2, model=2)
    specs = {"up": P(None, "model"), "up_bias": P("model"), "down": P("model"), "down_bias": P()}
    params = {name: put(mesh, specs[name], value) for name, value in mlp_params().items()}
    shardings = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}

    def step(params, x, y):
        grads = jax.grad(mlp_loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    return Call(mesh, jax.jit(step, out_shardings=shardings), params, *batch(mesh))


# Each device has two sequences of 5 tokens, one head of width 4, and 8 hidden units.
BLOCK = 2 * 10 * 8 * 12 + 2 * (2 * 2 * 5 * 5 * 4) + 2 * 10 * 4 * 8 + 2 * (2 * 10 * 8 * 8)


# A small language model, as people write them: embedding, two scanned blocks with remat, tied logits. Each block counts
# once forward, twice backward, and once for remat, which doesn't need the last matmul. The embedding is sharded by its
# width, and so are the activations between blocks: a block gathers them.
@stranger(
    flops=2 * (4 * BLOCK - 2 * 10 * 8 * 8) + 3 * (2 * 10 * 4 * 32),
    inserted={"all_gather model": 2 * 7 + 2, "all_reduce model": 2 * 5 + 1, "all_reduce data": 2 * 4 + 3},
)
def language_model_step():
    mesh = grid(data=2, model=2)
    layers, width, hidden, vocabulary = 2, 8, 16, 32
    specs = {
        "embed": P(None, "model"),
        "qkv": P(None, None, None, "model"),
        "out": P(None, "model"),
        "up": P(None, None, "model"),
        "down": P(None, "model"),
    }
    shapes = {
        "embed": (vocabulary, width),
        "qkv": (layers, 3, width, 2, 4),
        "out": (layers, 2, 4, width),
        "up": (layers, width, hidden),
        "down": (layers, hidden, width),
    }

    def block(x, w):
        q, k, v = jnp.einsum("btd,cdhe->cbthe", x, w["qkv"])
        logits = jnp.einsum("bqhe,bkhe->bhqk", q, k)
        weights = jax.nn.softmax(jnp.where(jnp.tri(5), logits, -1e9))
        x = x + jnp.einsum("bqhe,hed->bqd", jnp.einsum("bhqk,bkhe->bqhe", weights, v), w["out"])
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"], None

    def loss(params, tokens):
        blocks = {name: params[name] for name in shapes if name != "embed"}
        x = lax.with_sharding_constraint(params["embed"][tokens[:, :-1]], NamedSharding(mesh, P("data")))
        x, _ = lax.scan(jax.checkpoint(block), x, blocks)
        picked = jax.nn.log_softmax(x @ params["embed"].T)
        return -jnp.take_along_axis(picked, tokens[:, 1:, None], -1).mean()

    def step(params, tokens):
        value, grads = jax.value_and_grad(loss)(params, tokens)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    params = {name: put(mesh, specs[name], values(*shape)) for name, shape in shapes.items()}
    shardings = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}, NamedSharding(mesh, P())
    tokens = put(mesh, P("data"), (np.arange(24).reshape(4, 6) * 7 % vocabulary).astype(np.int32))
    return Call(mesh, jax.jit(step, out_shardings=shardings, donate_argnums=0), params, tokens)
