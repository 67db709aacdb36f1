"""Train steps with Optax, Flax Linen and Flax NNX: states of these libraries as arguments and results."""

import functools

import jax
from jax import lax
from jax.sharding import PartitionSpec as P
from strangers.registry import Call, grid, on, put, sharded, stranger, values
from strangers.training import BACKWARD, FORWARD, batch, mlp_loss, mlp_params


# The norm of all gradients is local, since they are the same on all devices.
@stranger(flops=FORWARD + BACKWARD, inserted={"all_reduce data": 4}, packages=("optax",))
def adam_with_clipping():
    import optax

    mesh = grid(data=4)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, state, x, y):
        updates, state = optimizer.update(jax.grad(mlp_loss)(params, x, y), state, params)
        return optax.apply_updates(params, updates), state

    params = put(mesh, P(), mlp_params())
    return Call(mesh, step, params, put(mesh, P(), optimizer.init(params)), *batch(mesh))


@stranger(flops=FORWARD + BACKWARD, yours={"all_reduce data": 4}, packages=("optax",), replayable=True)
def adamw_in_a_shard_map():
    import optax

    mesh = grid(data=4)
    optimizer = optax.adamw(optax.cosine_decay_schedule(1e-3, 100))

    @on(mesh, (P(), P(), P("data"), P("data")), P(), check_vma=False)
    def step(params, state, x, y):
        grads = lax.pmean(jax.grad(mlp_loss)(params, x, y), "data")
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    params = mlp_params()
    return Call(mesh, step, put(mesh, P(), params), put(mesh, P(), optimizer.init(params)), *batch(mesh))


@stranger(
    flops=FORWARD + BACKWARD,
    inserted={"all_gather data": 5, "all_to_all data": 1, "all_reduce data": 4},
    packages=("optax",),
)
def adam_with_sharded_moments():
    import optax

    mesh = grid(data=4)
    optimizer = optax.adam(1e-3)
    params = put(mesh, P("data"), mlp_params())
    state = jax.tree.map(lambda a: put(mesh, P("data") if a.ndim else P(), a), optimizer.init(mlp_params()))

    def step(params, state, x, y):
        updates, state = optimizer.update(jax.grad(mlp_loss)(params, x, y), state)
        return optax.apply_updates(params, updates), state

    shardings = jax.tree.map(lambda a: a.sharding, (params, state))
    return Call(mesh, jax.jit(step, out_shardings=shardings), params, state, *batch(mesh))


# Gradients are collected for two steps: whether this one updates is known at run time, and both ways are alike.
@stranger(flops=FORWARD + BACKWARD, inserted={"all_reduce data": 4}, packages=("optax",))
def optax_multi_steps():
    import optax

    mesh = grid(data=4)
    optimizer = optax.MultiSteps(optax.sgd(0.1), every_k_schedule=2)

    def step(params, state, x, y):
        updates, state = optimizer.update(jax.grad(mlp_loss)(params, x, y), state, params)
        return optax.apply_updates(params, updates), state

    params = put(mesh, P(), mlp_params())
    return Call(mesh, step, params, put(mesh, P(), optimizer.init(mlp_params())), *batch(mesh))


@stranger(flops=FORWARD + BACKWARD, inserted={"all_reduce data": 4}, packages=("flax", "optax"))
def linen_train_state():
    import flax.linen as nn
    import optax
    from flax.training import train_state

    mesh = grid(data=4)

    class Network(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(4)(nn.relu(nn.Dense(16)(x)))

    network = Network()

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, x, y):
        grads = jax.grad(lambda params: ((state.apply_fn(params, x) - y) ** 2).mean())(state.params)
        return state.apply_gradients(grads=grads)

    x, y = batch(mesh)
    params = network.init(jax.random.key(0), values(2, 8))
    state = train_state.TrainState.create(apply_fn=network.apply, params=params, tx=optax.adam(1e-3))
    return Call(mesh, step, put(mesh, P(), state), x, y)


@stranger(flops=2 * (2 * 2 * 8 * 4), inserted={"all_reduce data": 1}, packages=("flax",))
def struct_dataclass_with_static_fields():
    from flax import struct

    mesh = grid(data=4)

    @struct.dataclass
    class Model:
        weights: jax.Array
        scale: float = struct.field(pytree_node=False, default=2.0)

    def step(model, x, y):
        def loss(model):
            return ((model.scale * (x @ model.weights) - y) ** 2).mean()

        return jax.tree.map(lambda p, g: p - g, model, jax.grad(loss)(model))

    return Call(mesh, step, put(mesh, P(), Model(values(8, 4))), *batch(mesh))


@stranger(flops=FORWARD + BACKWARD, inserted={"all_reduce data": 5}, packages=("flax", "optax"))
def nnx_train_step_on_a_split_model():
    import optax
    from flax import nnx

    mesh = grid(data=4)

    class Network(nnx.Module):
        def __init__(self, rngs):
            self.up, self.down = nnx.Linear(8, 16, rngs=rngs), nnx.Linear(16, 4, rngs=rngs)

        def __call__(self, x):
            return self.down(nnx.relu(self.up(x)))

    graph, params = nnx.split(Network(nnx.Rngs(0)))
    optimizer = optax.sgd(0.1, momentum=0.9)

    @jax.jit
    def step(params, state, x, y):
        def loss(params):
            return ((nnx.merge(graph, params)(x) - y) ** 2).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    params = put(mesh, P(), params)
    return Call(mesh, step, params, put(mesh, P(), optimizer.init(params)), *batch(mesh))


# Sums of the values and of their squares.
@stranger(flops=2 * 2 * 8 * 4, inserted={"all_reduce data": 2}, packages=("flax",))
def nnx_model_with_batchnorm():
    from flax import nnx

    mesh = grid(data=4)

    class Network(nnx.Module):
        def __init__(self, rngs):
            self.linear, self.norm = nnx.Linear(8, 4, rngs=rngs), nnx.BatchNorm(4, rngs=rngs)

        def __call__(self, x):
            return self.norm(self.linear(x))

    graph, state = nnx.split(Network(nnx.Rngs(0)))

    def forward(state, x):
        model = nnx.merge(graph, state)
        return model(x), nnx.state(model)

    return Call(mesh, forward, put(mesh, P(), state), sharded(mesh, P("data"), 8, 8))


# Since Flax 0.12 a module is a pytree.
@stranger(flops=2 * (2 * 2 * 8 * 4), inserted={"all_reduce data": 2}, packages=("flax",))
def nnx_module_as_an_argument():
    from flax import nnx

    mesh = grid(data=4)

    def grads(model, x, y):
        return jax.grad(lambda model: ((model(x) - y) ** 2).mean())(model)

    return Call(mesh, grads, put(mesh, P(), nnx.Linear(8, 4, rngs=nnx.Rngs(0))), *batch(mesh))
