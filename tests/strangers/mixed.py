"""shard_map and the compiler's own collectives in one program: before, after, around, and inside it."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, reshard
from jax.sharding import PartitionSpec as P
from strangers.registry import Call, explicit, grid, on, ring, sharded, stranger


@stranger(flops=2 * 8 * 2 * 8, yours={"all_reduce x": 1}, inserted={"all_reduce x": 1}, replayable=True)
def matmul_for_the_compiler_and_a_psum():
    mesh = grid(x=8)

    def both(a, c):
        total = on(mesh, P(None, "x"), P())(lambda v: lax.psum(v, "x"))
        return (a @ c).sum(1) + total(a).sum()

    return Call(mesh, both, sharded(mesh, P(None, "x"), 8, 16), sharded(mesh, P("x"), 16, 8))


# Along data each device has its own rows; along model the compiler partitions the MLP.
@stranger(flops=2 * (2 * 4 * 8 * 4), yours={"all_reduce data": 1}, inserted={"all_reduce model": 1}, replayable=True)
def data_parallel_by_hand_and_model_left_to_the_compiler():
    mesh = grid(data=2, model=4)

    @on(mesh, (P("data"), P(), P()), P(), axis_names={"data"})
    def loss(x, up, down):
        return lax.pmean((jax.nn.gelu(x @ up) @ down).mean(), "data")

    args = sharded(mesh, P("data"), 8, 8), sharded(mesh, P(None, "model"), 8, 16), sharded(mesh, P("model"), 16, 8)
    return Call(mesh, jax.jit(loss), *args)


# There are no explicit collectives. The compiler inserts an all-reduce for the second matmul.
@stranger(flops=2 * (2 * 4 * 8 * 4), inserted={"all_reduce model": 1}, replayable=True)
def only_the_softmax_by_hand():
    mesh = grid(data=2, model=4)

    def block(x, up, down):
        softmax = on(mesh, P("data", "model"), P("data", "model"))(lambda v: jax.nn.softmax(v))
        return softmax(x @ up) @ down

    args = sharded(mesh, P("data"), 8, 8), sharded(mesh, P(None, "model"), 8, 16), sharded(mesh, P("model"), 16, 8)
    return Call(mesh, block, *args)


# in_specs ask for the full tanh(a). XLA gathers a, and each device computes the tanh of all of it.
@stranger(inserted={"all_gather x": 1}, replayable=True)
def operand_that_has_to_be_gathered_first():
    mesh = grid(x=8)

    def centered(a):
        full = on(mesh, (P("x"), P()), P("x"))(lambda v, every: v - every.mean(0))
        return full(a, jnp.tanh(a))

    return Call(mesh, centered, sharded(mesh, P("x"), 16, 3))


@stranger(yours={"collective_permute x": 1}, inserted={"all_reduce x": 1}, replayable=True)
def mean_after_shard_map():
    mesh = grid(x=8)
    mean = lambda a: on(mesh, P("x"), P("x"))(lambda v: lax.ppermute(v, "x", ring(8)))(a).mean()  # noqa: E731
    return Call(mesh, mean, sharded(mesh, P("x"), 16, 3))


@stranger(yours={"all_reduce x": 1}, inserted={"all_gather x": 1}, replayable=True)
def out_shardings_of_a_shard_map():
    mesh = grid(x=8)
    body = on(mesh, P("x"), P("x"))(lambda v: v - lax.pmax(v, "x"))
    return Call(mesh, jax.jit(body, out_shardings=NamedSharding(mesh, P())), sharded(mesh, P("x"), 16, 3))


@stranger(inserted={"all_to_all x": 1}, replayable=True)
def constraint_between_two_shard_maps():
    mesh = grid(x=4)

    def two(a):
        a = on(mesh, P("x"), P("x"))(lambda v: jnp.cumsum(v, 1))(a)
        a = lax.with_sharding_constraint(a, NamedSharding(mesh, P(None, "x")))
        return on(mesh, P(None, "x"), P(None, "x"))(lambda v: jnp.cumsum(v, 0))(a)

    return Call(mesh, two, sharded(mesh, P("x"), 8, 8))


@stranger(yours={"all_reduce y": 2}, inserted={"collective_permute x,y": 1, "all_gather x": 2}, replayable=True)
def reshard_between_two_shard_maps():
    mesh = explicit(x=4, y=2)

    def two(a):
        a = on(mesh, P("x", "y"), P("x", "y"))(lambda v: lax.psum(v, "y") + v)(a)
        a = reshard(a, NamedSharding(mesh, P("y", None)))
        return on(mesh, P("y"), P("y"))(lambda v: v - lax.pmean(v, "y"))(a)

    return Call(mesh, two, sharded(mesh, P("x", "y"), 8, 4))


@stranger(yours={"all_reduce x": 1, "all_reduce y": 1}, replayable=True)
def nested_shard_maps():
    mesh = grid(x=4, y=2)

    @on(mesh, P("x"), P(), axis_names={"x"})
    def outer(a):
        @on(None, P(None, "y"), P(), axis_names={"y"})
        def inner(a):
            return lax.psum(a, "y")

        return lax.psum(inner(a) * 2, "x")

    return Call(mesh, jax.jit(outer), sharded(mesh, P("x", "y"), 8, 4))


# Along z nothing is sent. The mean of `a` needs a sum along y too, which the compiler inserts; XLA sends it in one
# instruction with the sum that is written.
@stranger(
    flops=2 * 4 * 4 * 3, yours={"all_reduce x": 1, "all_reduce y": 1}, inserted={"all_reduce y": 1}, replayable=True
)
def nested_with_an_axis_left_over():
    mesh = grid(x=2, y=2, z=2)

    @on(mesh, (P("x"), P()), P("x"), axis_names={"x"})
    def outer(a, w):
        inner = on(None, (P(None, "y"), P("y")), P(), axis_names={"y"})(lambda a, w: lax.psum(a @ w, "y"))
        return inner(a, w) - lax.pmean(a.mean(), "x")

    return Call(mesh, jax.jit(outer), sharded(mesh, P("x", "y"), 8, 8), sharded(mesh, P("y", "z"), 8, 6))


@stranger(
    flops=3 * 2 * (2 * 4 * 8 * 4), yours={"all_reduce data": 3}, inserted={"all_reduce model": 3}, replayable=True
)
def scan_in_a_partially_manual_shard_map():
    mesh = grid(data=2, model=4)

    @on(mesh, (P("data"), P(), P()), P("data"), axis_names={"data"})
    def layers(x, up, down):
        def layer(h, w):
            h = h + jax.nn.relu(h @ w[0]) @ w[1]
            return h - lax.pmean(h.mean(0), "data"), None

        return lax.scan(layer, x, (up, down))[0]

    weights = sharded(mesh, P(None, None, "model"), 3, 8, 16), sharded(mesh, P(None, "model"), 3, 16, 8)
    return Call(mesh, jax.jit(layers), sharded(mesh, P("data"), 8, 8), *weights)


@stranger(flops=2 * 4 * 8 * 4, inserted={"all_gather model": 1}, replayable=True, since=(0, 8))
def partially_manual_with_a_constraint_inside():
    mesh = grid(data=2, model=4)

    @on(mesh, (P("data"), P()), P("data"), axis_names={"data"})
    def layer(x, w):
        hidden = lax.with_sharding_constraint(x @ w, P(None, None))
        return hidden * lax.axis_index("data")

    return Call(mesh, jax.jit(layer), sharded(mesh, P("data"), 8, 8), sharded(mesh, P(None, "model"), 8, 16))


# The loss itself is not asked for, so its mean is removed. Autodiff sums both gradients along data.
@stranger(flops=5 * (2 * 4 * 8 * 4), yours={"all_reduce data": 2}, inserted={"all_reduce model": 1}, replayable=True)
def gradient_of_a_partially_manual_loss():
    mesh = grid(data=2, model=4)

    @on(mesh, (P("data"), P(), P()), P(), axis_names={"data"})
    def loss(x, up, down):
        return lax.pmean(((jnp.tanh(x @ up) @ down) ** 2).mean(), "data")

    args = sharded(mesh, P("data"), 8, 8), sharded(mesh, P(None, "model"), 8, 16), sharded(mesh, P("model"), 16, 8)
    return Call(mesh, jax.jit(jax.grad(loss, (1, 2))), *args)


@stranger(
    flops=4 * 2 * (2 * 2 * 4 * 4),
    yours={"collective_permute stage": 4, "all_reduce stage": 1},
    inserted={"all_reduce model": 4},
    replayable=True,
)
def pipeline_by_hand_of_layers_left_to_the_compiler():
    mesh = grid(stage=2, model=4)

    @on(mesh, (P("stage"), P("stage"), P()), P(), axis_names={"stage"}, check_vma=False)
    def pipeline(up, down, batches):
        me = lax.axis_index("stage")

        def step(arrived, i):
            mine = jnp.where(me == 0, batches[jnp.minimum(i, 2)], arrived)
            out = jax.nn.relu(mine @ up[0]) @ down[0]
            return lax.ppermute(out, "stage", [(0, 1)]), out

        outs = lax.scan(step, batches[0] * 0, jnp.arange(4))[1]
        return lax.psum(jnp.where(me == 1, outs[1:], 0), "stage")

    weights = sharded(mesh, P("stage", None, "model"), 2, 4, 16), sharded(mesh, P("stage", "model"), 2, 16, 4)
    return Call(mesh, jax.jit(pipeline), *weights, sharded(mesh, P(), 3, 2, 4))


@stranger(yours={"collective_permute x": 1, "all_reduce a": 1}, inserted={"all_to_all b": 1}, replayable=True)
def two_meshes_with_other_axes():
    wide, square = grid(x=8), grid(a=4, b=2)

    def both(v):
        v = on(wide, P("x"), P("x"))(lambda v: v + lax.ppermute(v, "x", ring(8)))(v)
        return on(square, P("a", "b"), P(None, "b"))(lambda v: lax.psum(v, "a"))(v)

    return Call((wide, square), both, sharded(wide, P("x"), 16, 4))


# Both have axes x and y, of other sizes: half of the first mesh's x is half of the second one's y.
@stranger(
    yours={"all_reduce y": 2},
    inserted={"all_to_all x": 1, "collective_permute x,y": 1, "all_gather x": 1},
    replayable=True,
)
def two_meshes_with_the_same_names():
    tall, wide = grid(x=4, y=2), grid(x=2, y=4)

    def both(v):
        v = on(tall, P("x", "y"), P("x", None))(lambda v: lax.psum(v, "y"))(v)
        return on(wide, P("x", "y"), P("x", None))(lambda v: lax.psum(v, "y"))(v)

    return Call((tall, wide), both, sharded(tall, P("x", "y"), 8, 8))


# The devices of the mesh in another order: groups are by position in the mesh, not by the ids of the devices.
@stranger(yours={"all_reduce x": 1, "all_gather y": 1}, replayable=True)
def mesh_of_devices_in_another_order():
    devices = grid(d=8).devices[[3, 1, 2, 0, 7, 6, 5, 4]].reshape(4, 2)
    mesh = jax.sharding.Mesh(devices, ("x", "y"))

    @on(mesh, P("x", "y"), P(None, "y"), check_vma=False)
    def both(v):
        return lax.psum(v, "x") + lax.all_gather(v, "y").sum((0, 1))

    return Call(mesh, both, sharded(mesh, P("x", "y"), 8, 4))


@stranger(flops=2 * 2 * 2 * 6, inserted={"all_reduce y": 1})
def compiler_in_another_order_of_devices():
    devices = grid(d=8).devices[::-1].reshape(2, 4)
    mesh = jax.sharding.Mesh(devices, ("x", "y"))
    return Call(mesh, jnp.dot, sharded(mesh, P("x", "y"), 4, 8), sharded(mesh, P("y"), 8, 6))


@stranger(yours={"collective_permute x": 1}, inserted={"all_reduce x": 1}, replayable=True)
def shard_map_in_a_cond_of_a_partitioned_program():
    mesh = grid(x=4)

    def either(a):
        rolled = on(mesh, P("x"), P("x"))(lambda v: lax.ppermute(v, "x", ring(4)))
        return lax.cond(a.sum() > 0, rolled, lambda a: a * 2, a)

    return Call(mesh, either, sharded(mesh, P("x"), 8, 3))


@stranger(flops=3 * 2 * 2 * 4 * 4, yours={"all_gather x": 3}, replayable=True)
def shard_map_in_a_scan_of_a_partitioned_program():
    mesh = grid(x=4)

    def layers(a, weights):
        gather = on(mesh, P("x"), P(), check_vma=False)(lambda w: lax.all_gather(w, "x", tiled=True))
        return lax.scan(lambda a, w: (jnp.tanh(a @ gather(w)), None), a, weights)[0]

    return Call(mesh, layers, sharded(mesh, P("x"), 8, 4), sharded(mesh, P(None, "x"), 3, 4, 4))


@stranger(flops=3 * 2 * 2 * 2 * 5, yours={"all_reduce x": 1}, replayable=True)
def vmap_over_a_shard_map():
    mesh = grid(x=4)
    product = on(mesh, (P(None, "x"), P("x")), P())(lambda a, b: lax.psum(a @ b, "x"))
    args = sharded(mesh, P(None, None, "x"), 3, 2, 8), sharded(mesh, P("x"), 8, 5)
    return Call(mesh, jax.vmap(product, (0, None)), *args)


# vmap spreads its dimension over an axis.
@stranger(flops=2 * 2 * 6 * 5, yours={"all_reduce x": 1}, replayable=True)
def vmap_with_a_mesh_axis():
    mesh = grid(x=4, y=2)
    product = on(mesh, (P("x"), P()), P(None))(lambda a, b: lax.psum(a @ b, "x"))
    batched = jax.jit(jax.vmap(product, (0, None), spmd_axis_name="y"))
    return Call(mesh, batched, sharded(mesh, P("y", "x"), 2, 8, 6), sharded(mesh, P(), 6, 5))
