"""Programs without shard_map, which the compiler partitions: on Auto and on Explicit meshes."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from strangers.registry import Call, grid, put, sharded, stranger


@stranger(flops=2 * 4 * 8 * 6)
def matmul_of_sharded_rows():
    mesh = grid(x=4)
    return Call(mesh, jnp.dot, sharded(mesh, P("x"), 16, 8), sharded(mesh, P(), 8, 6))


@stranger(flops=2 * 4 * 2 * 6, inserted={"all_reduce x": 1})
def matmul_over_a_sharded_dimension():
    mesh = grid(x=4)
    return Call(mesh, jnp.dot, sharded(mesh, P(None, "x"), 4, 8), sharded(mesh, P("x"), 8, 6))


@stranger(flops=2 * 4 * 8 * 3)
def matmul_on_both_axes():
    mesh = grid(x=4, y=2)
    return Call(mesh, jnp.dot, sharded(mesh, P("x"), 16, 8), sharded(mesh, P(None, "y"), 8, 6))


# One axis after the other, although one all-reduce over both would do.
@stranger(inserted={"all_reduce x": 1, "all_reduce y": 1})
def mean_of_everything():
    mesh = grid(x=4, y=2)
    return Call(mesh, lambda a: jnp.sin(a).mean(), sharded(mesh, P("x", "y"), 8, 8))


# The largest value, and the sum.
@stranger(inserted={"all_reduce x": 2})
def softmax_over_a_sharded_dimension():
    mesh = grid(x=4)
    return Call(mesh, lambda a: jax.nn.softmax(a, axis=0), sharded(mesh, P("x"), 8, 6))


@stranger(inserted={"collective_permute x": 1})
def roll_along_a_sharded_dimension():
    mesh = grid(x=8)
    return Call(mesh, lambda a: jnp.roll(a, 2, 0), sharded(mesh, P("x"), 16, 3))


# 14 rows cannot be sharded over 8 devices evenly, so the result is gathered.
@stranger(inserted={"collective_permute x": 2, "all_gather x": 1})
def differences_of_neighboring_rows():
    mesh = grid(x=8)
    return Call(mesh, lambda a: a[2:] - 2 * a[1:-1] + a[:-2], sharded(mesh, P("x"), 16, 3))


@stranger(inserted={"all_gather x": 1})
def sort_along_a_sharded_dimension():
    mesh = grid(x=4)
    return Call(mesh, lambda a: jnp.sort(a, axis=0), sharded(mesh, P("x"), 16, 3))


@stranger(inserted={"all_reduce x": 1})
def gather_of_rows_by_index():
    mesh = grid(x=4)
    indices = put(mesh, P(), np.array([3, 15, 0, 7, 7], np.int32))
    return Call(mesh, lambda table, i: table[i], sharded(mesh, P("x"), 16, 3), indices)


@stranger(inserted={"all_gather x": 2})
def concatenation_of_sharded_rows():
    mesh = grid(x=4)

    def joined(a, b):
        return jnp.concatenate([a, b])

    return Call(mesh, joined, sharded(mesh, P("x"), 8, 3), sharded(mesh, P("x"), 8, 3))


@stranger(flops=2 * (2 * 4 * 8 * 4), inserted={"all_reduce model": 1})
def megatron_mlp_by_shardings():
    mesh = grid(data=2, model=4)

    def mlp(x, up, down):
        return jax.nn.gelu(x @ up) @ down

    args = sharded(mesh, P("data"), 8, 8), sharded(mesh, P(None, "model"), 8, 16), sharded(mesh, P("model"), 16, 8)
    return Call(mesh, mlp, *args)


@stranger(flops=4 * 2 * (2 * 4 * 8 * 4), inserted={"all_reduce model": 4})
def scan_of_megatron_mlps():
    mesh = grid(data=2, model=4)

    def layers(x, up, down):
        return lax.scan(lambda h, w: (h + jax.nn.gelu(h @ w[0]) @ w[1], None), x, (up, down))[0]

    weights = sharded(mesh, P(None, None, "model"), 4, 8, 16), sharded(mesh, P(None, "model"), 4, 16, 8)
    return Call(mesh, layers, sharded(mesh, P("data"), 8, 8), *weights)


@stranger(flops=3 * 2 * 2 * 8 * 8, inserted={"all_gather data": 3})
def fsdp_by_shardings():
    mesh = grid(data=8)

    def forward(x, weights):
        for w in weights:
            x = jnp.tanh(x @ w)
        return lax.with_sharding_constraint(x, NamedSharding(mesh, P("data")))

    weights = [sharded(mesh, P("data"), 8, 8) for _ in range(3)]
    return Call(mesh, forward, sharded(mesh, P("data"), 16, 8), weights)


# As in MaxText: names for dimensions, and constraints on activations. A device has one sequence of 6 tokens, one head,
# and 8 hidden units; weights are gathered along fsdp.
@stranger(
    flops=3 * 2 * 6 * 8 * 4 + 2 * (2 * 6 * 6 * 4) + 2 * 6 * 4 * 8 + 2 * (2 * 6 * 8 * 8),
    inserted={"all_gather fsdp": 6, "all_reduce tensor": 2},
)
def transformer_block_with_logical_axes():
    mesh = grid(data=2, fsdp=2, tensor=2)
    rules = {"batch": ("data", "fsdp"), "embed": "fsdp", "heads": "tensor", "mlp": "tensor"}

    def spec(*names):
        return P(*(rules.get(name) for name in names))

    def constrained(a, *names):
        return lax.with_sharding_constraint(a, NamedSharding(mesh, spec(*names)))

    def block(params, x):
        q, k, v = (constrained(jnp.einsum("btd,dhe->bthe", x, w), "batch", None, "heads") for w in params["qkv"])
        weights = jax.nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k))
        mixed = jnp.einsum("bhqk,bkhe->bqhe", weights, v)
        x = constrained(x + jnp.einsum("bqhe,hed->bqd", mixed, params["out"]), "batch")
        hidden = constrained(jax.nn.gelu(x @ params["up"]), "batch", None, "mlp")
        return constrained(x + hidden @ params["down"], "batch")

    into = spec("embed", "heads")
    params = {
        "qkv": [sharded(mesh, into, 8, 2, 4) for _ in range(3)],
        "out": sharded(mesh, spec("heads", None, "embed"), 2, 4, 8),
        "up": sharded(mesh, spec("embed", "mlp"), 8, 16),
        "down": sharded(mesh, spec("mlp", "embed"), 16, 8),
    }
    return Call(mesh, block, params, sharded(mesh, spec("batch"), 4, 6, 8))


# GShard's layer with constraints only: from groups of tokens to experts and back. Results come back by an
# all-to-all, but all tokens are gathered for the dispatch, and both one-hot tensors are sent as well.
@stranger(
    flops=2 * 8 * 6 * 4 + 2 * (2 * 8 * 12 * 6) + 2 * (2 * 12 * 6 * 8),
    inserted={"all_gather expert": 2, "all_to_all expert": 3, "all_reduce expert": 1},
)
def gshard_experts_by_constraints():
    mesh = grid(expert=4)

    def layer(x, router, up, down):
        gates = jax.nn.softmax(jnp.einsum("gtd,de->gte", x, router))
        choice = jax.nn.one_hot(gates.argmax(-1), 4)
        place = ((jnp.cumsum(choice, 1) - 1) * choice).sum(-1).astype(jnp.int32)
        dispatch = choice[..., None] * jax.nn.one_hot(place, 3)[:, :, None]
        buffers = jnp.einsum("gtec,gtd->egcd", dispatch, x)
        buffers = lax.with_sharding_constraint(buffers, NamedSharding(mesh, P("expert")))
        done = jnp.einsum("egcf,efd->egcd", jax.nn.relu(jnp.einsum("egcd,edf->egcf", buffers, up)), down)
        done = lax.with_sharding_constraint(done, NamedSharding(mesh, P(None, "expert")))
        return jnp.einsum("gtec,egcd->gtd", dispatch * gates[..., None], done)

    weights = sharded(mesh, P("expert"), 4, 6, 8), sharded(mesh, P("expert"), 4, 8, 6)
    return Call(mesh, layer, sharded(mesh, P("expert"), 4, 8, 6), sharded(mesh, P(), 6, 4), *weights)


@stranger(flops=2 * (2 * 3 * 12 * 4), inserted={"all_gather x": 2})
def ring_attention_left_to_the_compiler():
    mesh = grid(x=4)

    def attention(q, k, v):
        return jax.nn.softmax(q @ k.T) @ v

    return Call(mesh, attention, *(sharded(mesh, P("x"), 12, 4) for _ in range(3)))


@stranger(flops=2 * (1 * 4 * 4 * 5) * (3 * 3 * 3))
def convolution_by_batch():
    mesh = grid(x=8)

    def conv(images, kernels):
        return lax.conv_general_dilated(images, kernels, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    return Call(mesh, conv, sharded(mesh, P("x"), 8, 6, 6, 3), sharded(mesh, P(), 3, 3, 3, 5))


# Rows of one image are sharded: the compiler exchanges halos. 3 kernel rows for each row; of 3 columns, one lies in the
# padding at either end. XLA's own cost analysis leaves that out too.
@stranger(flops=2 * (4 * 3) * (6 * 3 - 2) * 3 * 5, inserted={"collective_permute x": 2})
def convolution_by_rows_of_the_image():
    mesh = grid(x=4)

    def conv(images, kernels):
        return lax.conv_general_dilated(images, kernels, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    return Call(mesh, conv, sharded(mesh, P(None, "x"), 1, 16, 6, 3), sharded(mesh, P(), 3, 3, 3, 5))


@stranger(flops=2 * (2 * 4 * 6 * 2))
def batched_matmul_with_a_sharded_batch():
    mesh = grid(x=2, y=4)
    batched = jax.vmap(lambda a, b: a @ b)
    return Call(mesh, batched, sharded(mesh, P("y"), 8, 4, 6), sharded(mesh, P("y", None, "x"), 8, 6, 4))


# Each device's largest value, and its index.
@stranger(inserted={"all_gather x": 2})
def argmax_over_a_sharded_dimension():
    mesh = grid(x=4)
    return Call(mesh, lambda a: jnp.argmax(a, 1), sharded(mesh, P(None, "x"), 6, 16))


@stranger(inserted={"all_gather x": 1})
def cumulative_sum_over_a_sharded_dimension():
    mesh = grid(x=4)
    return Call(mesh, lambda a: jnp.cumsum(a, 0), sharded(mesh, P("x"), 16, 3))


@stranger()
def update_of_one_row():
    mesh = grid(x=4)
    return Call(mesh, lambda a, row: a.at[5].set(row), sharded(mesh, P("x"), 16, 3), sharded(mesh, P(), 3))


@stranger(inserted={"all_reduce x": 1})
def histogram_by_scatter():
    mesh = grid(x=4)
    which = put(mesh, P("x"), (np.arange(16) * 3 % 5).astype(np.int32))
    return Call(mesh, lambda i: jnp.zeros(5).at[i].add(1.0), which)


# One all-reduce in each branch.
@stranger(inserted={"all_reduce x": 2})
def cond_in_a_partitioned_program():
    mesh = grid(x=4)

    def either(a, flag):
        return lax.cond(flag > 0, lambda a: a / a.sum(), lambda a: a - a.max(0), a)

    return Call(mesh, either, sharded(mesh, P("x"), 8, 3), put(mesh, P(), np.float32(1)))
