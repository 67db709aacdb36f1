"""Answers to lesson 17, twenty-first batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# ---------------------------------------------------------------- route


def route__right_stable_sort(x, router, k):
    logits = jnp.asarray(x, jnp.float32) @ jnp.asarray(router, jnp.float32)
    experts = jnp.argsort(-logits, axis=1, stable=True)[:, :k]
    top = jnp.take_along_axis(logits, experts, axis=1)
    weights = jnp.exp(top - top[:, :1])
    return weights / weights.sum(axis=1, keepdims=True), experts


# Thought: first the probabilities of all experts, then the k largest of them: these are the weights.
def route__wrong_softmax_of_all(x, router, k):
    logits = x.astype(jnp.float32) @ router.astype(jnp.float32)
    return jax.lax.top_k(jax.nn.softmax(logits, axis=-1), k)


# Thought: the logits have to be float32, so I turn the product into float32 (after it was rounded).
def route__wrong_cast_too_late(x, router, k):
    logits = (x @ router).astype(jnp.float32)
    top, experts = jax.lax.top_k(logits, k)
    return jax.nn.softmax(top, axis=-1), experts


# Thought: sort, turn round, cut off k; that equal ones are turned round too did not occur to me.
def route__wrong_ties_reversed(x, router, k):
    logits = jnp.matmul(x.astype(jnp.float32), router.astype(jnp.float32))
    experts = jnp.argsort(logits, axis=1)[:, ::-1][:, :k]
    weights = jax.nn.softmax(jnp.take_along_axis(logits, experts, axis=1), axis=1)
    return weights, experts


# Thought: the array has tokens first, so the softmax goes over axis 0.
def route__wrong_softmax_over_tokens(x, router, k):
    top, experts = jax.lax.top_k(x.astype(jnp.float32) @ router.astype(jnp.float32), k)
    return jax.nn.softmax(top, axis=0), experts


# ---------------------------------------------------------------- dropless


def dropless__right_added_at_tokens(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    k = experts.shape[1]
    choice = experts.ravel()
    order = jnp.argsort(choice, stable=True)
    token = order // k
    sizes = (choice[:, None] == jnp.arange(len(w_in))).sum(axis=0).astype(jnp.int32)
    hidden = jax.nn.relu(jax.lax.ragged_dot(x[token], w_in, sizes))
    done = jax.lax.ragged_dot(hidden, w_out, sizes)
    return x.at[token].add(weights.ravel()[order][:, None] * done)


# Thought: sorting by the same order once more brings the rows home.
def dropless__wrong_sorted_once_more(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    (T, D), k, E = x.shape, experts.shape[1], len(w_in)
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    sizes = jnp.bincount(choice, length=E)
    rows = jnp.repeat(x, k, axis=0)[order]
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(rows, w_in, sizes)), w_out, sizes)
    home = done[order].reshape(T, k, D)
    return x + (weights[:, :, None] * home).sum(axis=1)


# Thought: k copies of the tokens one below the other (tile), so that there is a row for each choice.
def dropless__wrong_tiled_rows(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    (T, D), k, E = x.shape, experts.shape[1], len(w_in)
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    sizes = jnp.bincount(choice, length=E)
    rows = jnp.tile(x, (k, 1))[order]
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(rows, w_in, sizes)), w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done).reshape(T, k, D)
    return x + (weights[:, :, None] * home).sum(axis=1)


# Thought: every result is weighed at once; but the results are sorted, and the weights are still in the order of the choices.
def dropless__wrong_weights_unsorted(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    k = experts.shape[1]
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    sizes = jnp.bincount(choice, length=len(w_in))
    hidden = jax.nn.relu(jax.lax.ragged_dot(x[order // k], w_in, sizes))
    done = jax.lax.ragged_dot(hidden, w_out, sizes) * weights.reshape(-1, 1)
    home = jnp.zeros_like(done).at[order].set(done)
    return x + home.reshape(len(x), k, -1).sum(axis=1)


# Thought: each expert returns x plus its result, and since weights add up to 1 the weighted mean of these has x once.
def dropless__wrong_x_inside_the_mean(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    T, k = experts.shape
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    sizes = jnp.bincount(choice, length=w_in.shape[0])
    rows = x[order // k]
    hidden = jax.nn.relu(jax.lax.ragged_dot(rows, w_in, sizes))
    done = rows + jax.lax.ragged_dot(hidden, w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done).reshape(T, k, -1)
    return jnp.einsum("tk,tkd->td", weights, home)


# ---------------------------------------------------------------- moe_gradients


def moe_gradients__right_inside(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def loss(p, x, y):
        logits = x @ p["router"]
        gate = jnp.max(jax.nn.softmax(logits), axis=1, keepdims=True)
        mine = jax.nn.one_hot(jnp.argmax(logits, axis=1), mesh.shape["expert"])
        there = exchange(mine.T[:, :, None] * x)
        back = exchange(jax.nn.relu(there @ p["w_in"][0]) @ p["w_out"][0])
        return jnp.mean((x + gate * jnp.einsum("tn,ntd->td", mine, back) - y) ** 2)

    def on_device(p, x, y):
        return jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), ("data", "expert")))(p)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# Thought: inside, JAX makes the gradients right by itself; only the loss that I show has to be averaged.
def moe_gradients__wrong_added_not_averaged(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def loss(p, x, y):
        logits = x @ p["router"]
        gate = jnp.max(jax.nn.softmax(logits), axis=1, keepdims=True)
        mine = jax.nn.one_hot(jnp.argmax(logits, axis=1), mesh.shape["expert"])
        there = exchange(mine.T[:, :, None] * x)
        back = exchange(jax.nn.relu(there @ p["w_in"][0]) @ p["w_out"][0])
        return jnp.mean((x + gate * jnp.einsum("tn,ntd->td", mine, back) - y) ** 2)

    def on_device(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        return jax.lax.pmean(value, ("data", "expert")), grads

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# Thought: JAX has added up over the copies, so I divide each gradient by its number of copies: all devices for the router, `data` for an expert.
def moe_gradients__wrong_divides_by_copies(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def loss(p, x, y):
        logits = x @ p["router"]
        gate = jnp.max(jax.nn.softmax(logits), axis=1, keepdims=True)
        mine = jax.nn.one_hot(jnp.argmax(logits, axis=1), mesh.shape["expert"])
        there = exchange(mine.T[:, :, None] * x)
        back = exchange(jax.nn.relu(there @ p["w_in"][0]) @ p["w_out"][0])
        return jnp.mean((x + gate * jnp.einsum("tn,ntd->td", mine, back) - y) ** 2)

    copies = {"router": mesh.size, "w_in": mesh.shape["data"], "w_out": mesh.shape["data"]}

    def on_device(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        grads = {name: g / copies[name] for name, g in grads.items()}
        return jax.lax.pmean(value, ("data", "expert")), grads

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# Thought: with the pmean in the loss the gradients are those of the mean, so the check may be turned off (each device then has only its own).
def moe_gradients__wrong_unchecked(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def loss(p, x, y):
        logits = x @ p["router"]
        gate = jnp.max(jax.nn.softmax(logits), axis=1, keepdims=True)
        mine = jax.nn.one_hot(jnp.argmax(logits, axis=1), mesh.shape["expert"])
        there = exchange(mine.T[:, :, None] * x)
        back = exchange(jax.nn.relu(there @ p["w_in"][0]) @ p["w_out"][0])
        return jnp.mean((x + gate * jnp.einsum("tn,ntd->td", mine, back) - y) ** 2)

    def on_device(p, x, y):
        def mean_loss(p):
            return jax.lax.pmean(loss(p, x, y), ("data", "expert"))

        return jax.value_and_grad(mean_loss)(p)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts), check_vma=False
    )(params, x, y)


# Thought: tokens are cut over both axes, so at the end all gradients are averaged over both, as in data parallelism.
def moe_gradients__wrong_experts_averaged_too(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def loss(p, x, y):
        logits = x @ p["router"]
        gate = jnp.max(jax.nn.softmax(logits), axis=1, keepdims=True)
        mine = jax.nn.one_hot(jnp.argmax(logits, axis=1), mesh.shape["expert"])
        there = exchange(mine.T[:, :, None] * x)
        back = exchange(jax.nn.relu(there @ p["w_in"][0]) @ p["w_out"][0])
        return jnp.mean((x + gate * jnp.einsum("tn,ntd->td", mine, back) - y) ** 2)

    axes = ("data", "expert")

    def on_device(p, x, y):
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), axes))(p)
        return value, jax.tree.map(lambda g: jax.lax.pmean(g, axes), grads)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)
