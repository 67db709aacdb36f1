"""Layers of large models with explicit collectives: tensor parallelism, experts, pipelines, sharded weights."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P
from strangers.registry import Call, grid, on, put, ring, sharded, stranger, values


@stranger(flops=2 * 4 * 8 * 4 * 2, yours={"all_reduce model": 1}, replayable=True)
def megatron_mlp():
    mesh = grid(data=2, model=4)

    @on(mesh, (P("data"), P(None, "model"), P("model")), P("data"))
    def mlp(x, up, down):
        return lax.psum(jax.nn.gelu(x @ up) @ down, "model")

    args = sharded(mesh, P("data"), 8, 8), sharded(mesh, P(None, "model"), 8, 16), sharded(mesh, P("model"), 16, 8)
    return Call(mesh, mlp, *args)


# Gather the sequence, multiply, scatter it again.
@stranger(
    flops=2 * 8 * 8 * 4 * 2,
    yours={"all_gather model": 1, "reduce_scatter model": 1, "all_reduce model": 1},
    replayable=True,
)
def mlp_with_sequence_parallelism():
    mesh = grid(data=2, model=4)

    @on(mesh, (P("data", "model"), P(None, "model"), P("model")), P("data", "model"))
    def mlp(x, up, down):
        mean = lax.pmean(x.mean(), "model")
        full = lax.all_gather(x[0] - mean, "model", tiled=True)
        return lax.psum_scatter(jax.nn.relu(full @ up) @ down, "model", tiled=True)[None]

    args = sharded(mesh, P("data", "model"), 2, 8, 8), sharded(mesh, P(None, "model"), 8, 16)
    return Call(mesh, mlp, *args, sharded(mesh, P("model"), 16, 8))


# 6 tokens of width 8, one of 4 heads of 4 on each device: three projections, logits, values, and the projection back.
@stranger(flops=3 * 2 * 6 * 8 * 4 + 2 * (2 * 6 * 6 * 4) + 2 * 6 * 4 * 8, yours={"all_reduce model": 1}, replayable=True)
def attention_with_sharded_heads():
    mesh = grid(data=2, model=4)
    heads = P(None, None, "model")

    @on(mesh, (P("data"), heads, P("model")), P("data"))
    def attention(x, into, out):
        q, k, v = jnp.einsum("btd,cdhe->cbthe", x, into)
        weights = jax.nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k))
        return lax.psum(jnp.einsum("bhqk,bkhe,hed->bqd", weights, v, out, optimize="optimal"), "model")

    args = sharded(mesh, P("data"), 2, 6, 8), sharded(mesh, heads, 3, 8, 4, 4), sharded(mesh, P("model"), 4, 4, 8)
    return Call(mesh, attention, *args)


# Each device has 4 rows of the vocabulary. It looks up the tokens that it has, and the all-reduce combines them.
@stranger(yours={"all_reduce model": 1}, replayable=True)
def vocabulary_embedding():
    mesh = grid(model=4)

    @on(mesh, (P(), P("model")), P())
    def embed(tokens, table):
        local = tokens - 4 * lax.axis_index("model")
        here = (local >= 0) & (local < 4)
        rows = jnp.where(here[:, None], table[jnp.clip(local, 0, 3)], 0)
        return lax.psum(rows, "model")

    return Call(mesh, embed, put(mesh, P(), np.arange(6, dtype=np.int32) * 5 % 16), sharded(mesh, P("model"), 16, 8))


@stranger(flops=2 * 6 * 8 * 4, yours={"all_reduce model": 3}, replayable=True)
def cross_entropy_over_a_sharded_vocabulary():
    mesh = grid(model=4)

    @on(mesh, (P(), P(None, "model"), P()), P())
    def loss(x, unembed, labels):
        logits = x @ unembed
        top = lax.pmax(lax.stop_gradient(logits.max(-1)), "model")
        total = lax.psum(jnp.exp(logits - top[:, None]).sum(-1), "model")
        own = jax.nn.one_hot(labels - 4 * lax.axis_index("model"), 4)
        picked = lax.psum((own * logits).sum(-1), "model")
        return (jnp.log(total) + top - picked).mean()

    labels = put(mesh, P(), np.arange(6, dtype=np.int32) * 5 % 16)
    return Call(mesh, loss, sharded(mesh, P(), 6, 8), sharded(mesh, P(None, "model"), 8, 16), labels)


# GShard: 8 tokens a device, 4 experts with room for 3 of each device's tokens. Dispatch and combine are matmuls with
# one-hot tensors (8 × 12 × 6), and an expert multiplies 4 · 3 tokens by 6 × 8 and 8 × 6.
@stranger(
    flops=2 * 8 * 6 * 4 + 2 * (2 * 8 * 12 * 6) + 2 * (2 * 12 * 6 * 8),
    yours={"all_to_all expert": 2},
    replayable=True,
)
def gshard_experts():
    mesh = grid(expert=4)

    @on(mesh, (P("expert"), P(), P("expert"), P("expert")), P("expert"))
    def layer(x, router, up, down):
        gates = jax.nn.softmax(x @ router)
        choice = jax.nn.one_hot(gates.argmax(-1), 4)
        place = ((jnp.cumsum(choice, 0) - 1) * choice).sum(-1).astype(jnp.int32)
        dispatch = choice[..., None] * jax.nn.one_hot(place, 3)[:, None]
        buffers = jnp.einsum("tec,td->ecd", dispatch, x)
        mine = lax.all_to_all(buffers, "expert", 0, 1, tiled=True)[0]
        done = (jax.nn.relu(mine @ up[0]) @ down[0])[None]
        back = lax.all_to_all(done, "expert", 1, 0, tiled=True)
        return jnp.einsum("tec,ecd->td", dispatch * gates[..., None], back)

    weights = sharded(mesh, P("expert"), 4, 6, 8), sharded(mesh, P("expert"), 4, 8, 6)
    return Call(mesh, layer, sharded(mesh, P("expert"), 32, 6), sharded(mesh, P(), 6, 4), *weights)


# All experts on all devices, by their hidden units: a device computes a quarter of each.
@stranger(
    flops=2 * 4 * 6 * 3 + 3 * (2 * (2 * 4 * 6 * 2)),
    yours={"all_reduce model": 1, "all_reduce data": 1},
    replayable=True,
)
def experts_that_all_devices_share():
    mesh = grid(data=2, model=4)

    @on(mesh, (P("data"), P(), P(None, None, "model"), P(None, "model")), (P("data"), P()))
    def layer(x, router, up, down):
        gates = jax.nn.softmax(x @ router)
        hidden = jax.nn.silu(jnp.einsum("td,edf->etf", x, up))
        out = jnp.einsum("etf,efd->etd", hidden, down)
        load = lax.pmean(gates.mean(0), "data")
        return lax.psum(jnp.sum(gates.T[..., None] * out, 0), "model"), load

    weights = sharded(mesh, P(None, None, "model"), 3, 6, 8), sharded(mesh, P(None, "model"), 3, 8, 6)
    return Call(mesh, layer, sharded(mesh, P("data"), 8, 6), sharded(mesh, P(), 6, 3), *weights)


# GPipe: 4 stages and 5 microbatches take 8 iterations, in each of which every device multiplies.
@stranger(flops=8 * 2 * 2 * 4 * 4, yours={"collective_permute stage": 8, "all_reduce stage": 1}, replayable=True)
def gpipe_in_a_scan():
    mesh = grid(stage=4)

    @on(mesh, (P("stage"), P()), P(), check_vma=False)
    def pipeline(weights, batches):
        me = lax.axis_index("stage")

        def step(arrived, i):
            fresh = lax.dynamic_index_in_dim(batches, jnp.minimum(i, 4), keepdims=False)
            out = jnp.tanh(jnp.where(me == 0, fresh, arrived) @ weights[0])
            return lax.ppermute(out, "stage", [(k, k + 1) for k in range(3)]), out

        _, outs = lax.scan(step, jnp.zeros((2, 4)), jnp.arange(8))
        return lax.psum(jnp.where(me == 3, outs[3:], 0), "stage")

    return Call(mesh, pipeline, sharded(mesh, P("stage"), 4, 4, 4), sharded(mesh, P(), 5, 2, 4))


# A stage that only works when it has something: the busiest might work in each of the 8 iterations.
@stranger(flops=8 * 2 * 2 * 4 * 4, yours={"collective_permute stage": 8}, replayable=True)
def gpipe_with_idle_stages():
    mesh = grid(stage=4)

    @on(mesh, (P("stage"), P()), P("stage"), check_vma=False)
    def pipeline(weights, batches):
        me = lax.axis_index("stage")

        def step(i, carry):
            arrived, outs = carry
            arrived = jnp.where(me == 0, batches[jnp.minimum(i, 4)], arrived)
            busy = (i >= me) & (i - me < 5)
            out = lax.cond(busy, lambda a: jnp.tanh(a @ weights[0]), lambda a: a, arrived)
            outs = jnp.where(busy, outs.at[jnp.clip(i - me, 0, 4)].set(out), outs)
            return lax.ppermute(out, "stage", ring(4)), outs

        return lax.fori_loop(0, 8, step, (jnp.zeros((2, 4)), jnp.zeros((5, 2, 4))))[1][None]

    return Call(mesh, pipeline, sharded(mesh, P("stage"), 4, 4, 4), sharded(mesh, P(), 5, 2, 4))


# Two stages on each device, interleaved: 2 · 4 + 3 iterations.
@stranger(flops=11 * 2 * 2 * 4 * 4, yours={"collective_permute stage": 11}, replayable=True)
def circular_pipeline():
    mesh = grid(stage=4)

    @on(mesh, (P(None, "stage"), P()), P("stage"), check_vma=False)
    def pipeline(weights, batches):
        me = lax.axis_index("stage")

        def step(arrived, i):
            turn = jnp.clip((i - me) // 4, 0, 1)
            fresh = batches[jnp.minimum(i, 3)]
            arrived = jnp.where((me == 0) & (i < 4), fresh, arrived)
            out = jnp.tanh(arrived @ weights[turn, 0])
            return lax.ppermute(out, "stage", ring(4)), out

        return lax.scan(step, jnp.zeros((2, 4)), jnp.arange(11))[1][-4:][None]

    return Call(mesh, pipeline, sharded(mesh, P(None, "stage"), 2, 4, 4, 4), sharded(mesh, P(), 4, 2, 4))


# Weights are sharded along data, and gathered layer by layer.
@stranger(flops=3 * 2 * 2 * 8 * 8, yours={"all_gather data": 3}, replayable=True)
def fsdp_forward():
    mesh = grid(data=8)

    @on(mesh, (P("data"), P(None, "data")), P("data"))
    def forward(x, weights):
        def layer(x, w):
            return jnp.tanh(x @ lax.all_gather(w, "data", tiled=True)), None

        return lax.scan(layer, x, weights)[0]

    return Call(mesh, forward, sharded(mesh, P("data"), 16, 8), sharded(mesh, P(None, "data"), 3, 8, 8))


# The gradient of a gather is a reduce_scatter. Each layer multiplies once forward and twice backward, except that
# the gradient of the first layer's input isn't needed. A scan can't leave that out.
@stranger(
    flops=3 * 3 * 2 * 2 * 8 * 8,
    yours={"all_gather data": 3, "reduce_scatter data": 3, "all_reduce data": 1},
    replayable=True,
)
def fsdp_gradient():
    mesh = grid(data=8)

    @on(mesh, (P("data"), P(None, "data")), (P(), P(None, "data")))
    def step(x, weights):
        def loss(weights):
            def layer(x, w):
                return jnp.tanh(x @ lax.all_gather(w, "data", tiled=True)), None

            return (lax.scan(layer, x, weights)[0] ** 2).mean()

        value, grads = jax.value_and_grad(loss)(weights)
        return lax.pmean(value, "data"), grads / 8

    return Call(mesh, step, sharded(mesh, P("data"), 16, 8), sharded(mesh, P(None, "data"), 3, 8, 8))


# The same with remat: the backward pass gathers again and multiplies again.
@stranger(
    flops=4 * 3 * 2 * 2 * 8 * 8,
    yours={"all_gather data": 6, "reduce_scatter data": 3, "all_reduce data": 1},
    replayable=True,
)
def fsdp_gradient_with_remat():
    mesh = grid(data=8)

    @on(mesh, (P("data"), P(None, "data")), (P(), P(None, "data")))
    def step(x, weights):
        def loss(weights):
            @jax.checkpoint
            def layer(x, w):
                return jnp.tanh(x @ lax.all_gather(w, "data", tiled=True)), None

            return (lax.scan(layer, x, weights)[0] ** 2).mean()

        value, grads = jax.value_and_grad(loss)(weights)
        return lax.pmean(value, "data"), grads / 8

    return Call(mesh, step, sharded(mesh, P("data"), 16, 8), sharded(mesh, P(None, "data"), 3, 8, 8))


# Weights are sharded along both axes, and gathered along data only.
@stranger(flops=2 * (2 * 4 * 8 * 4), yours={"all_gather data": 2, "all_reduce model": 1}, replayable=True)
def mlp_in_two_dimensions():
    mesh = grid(data=4, model=2)

    @on(mesh, (P("data"), P("data", "model"), P("model", "data")), P("data"))
    def mlp(x, up, down):
        up = lax.all_gather(up, "data", tiled=True)
        down = lax.all_gather(down, "data", axis=1, tiled=True)
        return lax.psum(jax.nn.relu(x @ up) @ down, "model")

    args = sharded(mesh, P("data"), 16, 8), sharded(mesh, P("data", "model"), 8, 8)
    return Call(mesh, mlp, *args, sharded(mesh, P("model", "data"), 8, 8))


# RMSNorm of sharded features, and a matmul whose partial sums are all-reduced.
@stranger(flops=2 * 4 * 4 * 6, yours={"all_reduce model": 2}, replayable=True)
def rmsnorm_of_sharded_features():
    mesh = grid(data=2, model=4)

    @on(mesh, (P("data", "model"), P("model"), P("model")), P("data"))
    def block(x, scale, w):
        square = lax.pmean((x**2).mean(-1, keepdims=True), "model")
        return lax.psum((x * lax.rsqrt(square + 1e-6) * scale) @ w, "model")

    args = sharded(mesh, P("data", "model"), 8, 16), sharded(mesh, P("model"), 16), sharded(mesh, P("model"), 16, 6)
    return Call(mesh, block, *args)


@stranger(yours={"all_reduce data": 2}, replayable=True)
def batchnorm_over_devices():
    mesh = grid(data=8)

    @on(mesh, (P("data"), P()), P("data"))
    def norm(x, scale):
        mean = lax.pmean(x.mean(0), "data")
        square = lax.pmean((x**2).mean(0), "data")
        return (x - mean) * lax.rsqrt(square - mean**2 + 1e-5) * scale

    return Call(mesh, norm, sharded(mesh, P("data"), 32, 6), put(mesh, P(), values(6)))


# Top-2 of 8 experts, two on each device, without capacity: every device sends all tokens to all (a gather), computes
# its experts for all of them, and the weighted results are summed and scattered.
@stranger(
    flops=2 * 4 * 6 * 8 + 2 * 2 * 16 * 6 * 5 * 2,
    yours={"all_gather expert": 2, "reduce_scatter expert": 1},
    replayable=True,
)
def dropless_experts():
    mesh = grid(expert=4)

    @on(mesh, (P("expert"), P(), P("expert"), P("expert")), P("expert"))
    def layer(x, router, up, down):
        logits = x @ router
        top, which = lax.top_k(logits, 2)
        gates = (jax.nn.one_hot(which, 8) * jax.nn.softmax(top)[..., None]).sum(1)
        everyone = functools.partial(lax.all_gather, axis_name="expert", tiled=True)
        x, gates = everyone(x), everyone(gates)
        mine = lax.dynamic_slice_in_dim(gates, 2 * lax.axis_index("expert"), 2, 1)
        out = jnp.einsum("etf,efd->etd", jax.nn.relu(jnp.einsum("td,edf->etf", x, up)), down)
        return lax.psum_scatter((mine.T[..., None] * out).sum(0), "expert", tiled=True)

    weights = sharded(mesh, P("expert"), 8, 6, 5), sharded(mesh, P("expert"), 8, 5, 6)
    return Call(mesh, layer, sharded(mesh, P("expert"), 16, 6), sharded(mesh, P(), 6, 8), *weights)
