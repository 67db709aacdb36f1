"""Answers to lesson 17, third batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

# ---------------------------------------------------------------- moe_gradients

_LAYOUTS = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
_BOTH = P(("data", "expert"))


def _given_loss(mesh):
    """The loss that the answer cell gives, over one device's own tokens."""

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def loss(p, x, y):
        logits = x @ p["router"]
        gate = jnp.max(jax.nn.softmax(logits), axis=1, keepdims=True)
        mine = jax.nn.one_hot(jnp.argmax(logits, axis=1), mesh.shape["expert"])
        there = exchange(mine.T[:, :, None] * x)
        back = exchange(jax.nn.relu(there @ p["w_in"][0]) @ p["w_out"][0])
        return jnp.mean((x + gate * jnp.einsum("tn,ntd->td", mine, back) - y) ** 2)

    return loss


def moe_gradients__right_inside(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))
    loss = _given_loss(mesh)

    def body(p, x, y):
        value, summed = jax.value_and_grad(loss)(p, x, y)
        # of a sum of means: what is held as copies has been added up, and what went to the experts came back
        mean = {name: g / mesh.size for name, g in summed.items()}
        return jax.lax.pmean(value, ("data", "expert")), mean

    return jax.shard_map(body, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# Divide by as many as have been added up: both axes for the router, data alone for the experts.
def moe_gradients__wrong_experts_by_data(params, x, y, *, mesh):
    loss = _given_loss(mesh)

    def body(p, x, y):
        value, summed = jax.value_and_grad(loss)(p, x, y)
        copies = {"router": mesh.size, "w_in": mesh.shape["data"], "w_out": mesh.shape["data"]}
        return jax.lax.pmean(value, ("data", "expert")), {name: g / copies[name] for name, g in summed.items()}

    return jax.shard_map(body, mesh=mesh, in_specs=(_LAYOUTS, _BOTH, _BOTH), out_specs=(P(), _LAYOUTS))(params, x, y)


# Data parallelism is an average over data; what happens over expert the all_to_alls take care of.
def moe_gradients__wrong_data_only(params, x, y, *, mesh):
    loss = _given_loss(mesh)

    def body(p, x, y):
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(p)
        return jax.lax.pmean(value, "expert"), grads

    return jax.shard_map(body, mesh=mesh, in_specs=(_LAYOUTS, _BOTH, _BOTH), out_specs=(P(), _LAYOUTS))(params, x, y)


# The gradients come from each device's own loss, and a pmean over both axes is the mean of all tokens (experts: over data).
def moe_gradients__wrong_pmean_after(params, x, y, *, mesh):
    loss = _given_loss(mesh)

    def body(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        grads = {
            "router": jax.lax.pmean(grads["router"], ("data", "expert")),
            "w_in": jax.lax.pmean(grads["w_in"], "data"),
            "w_out": jax.lax.pmean(grads["w_out"], "data"),
        }
        return jax.lax.pmean(value, ("data", "expert")), grads

    return jax.shard_map(body, mesh=mesh, in_specs=(_LAYOUTS, _BOTH, _BOTH), out_specs=(P(), _LAYOUTS))(params, x, y)


# From outside: the total loss is the sum of what the devices have, and JAX does the rest.
def moe_gradients__wrong_psum(params, x, y, *, mesh):
    loss = _given_loss(mesh)
    total = jax.shard_map(
        lambda p, x, y: jax.lax.psum(loss(p, x, y), ("data", "expert")),
        mesh=mesh,
        in_specs=(_LAYOUTS, _BOTH, _BOTH),
        out_specs=P(),
    )
    return jax.value_and_grad(total)(params, x, y)


# ---------------------------------------------------------------- dropless


def dropless__right_added_home(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = (jnp.asarray(a) for a in (x, weights, experts, w_in, w_out))
    k = experts.shape[1]
    choice = experts.ravel()
    order = jnp.argsort(choice, stable=True)
    sizes = jnp.bincount(choice, length=len(w_in))
    token = order // k
    hidden = jax.nn.relu(jax.lax.ragged_dot(x[token], w_in, sizes))
    done = jax.lax.ragged_dot(hidden, w_out, sizes)
    return x.at[token].add(weights.ravel()[order][:, None] * done)


# To undo the sorting, index with order once more.
def dropless__wrong_sorted_twice(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = (jnp.asarray(a) for a in (x, weights, experts, w_in, w_out))
    (t, k), choice = experts.shape, experts.reshape(-1)
    order = jnp.argsort(choice)
    sizes = jnp.bincount(choice, length=w_in.shape[0])
    hidden = jax.nn.relu(jax.lax.ragged_dot(x[order // k], w_in, sizes))
    done = jax.lax.ragged_dot(hidden, w_out, sizes)[order]
    return x + jnp.sum(weights[:, :, None] * done.reshape(t, k, -1), axis=1)


# Choice number i belongs to token i % T, since the choices of all tokens follow one another k times.
def dropless__wrong_modulo(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = (jnp.asarray(a) for a in (x, weights, experts, w_in, w_out))
    (t, k), choice = experts.shape, experts.reshape(-1)
    order = jnp.argsort(choice)
    sizes = jnp.bincount(choice, length=w_in.shape[0])
    hidden = jax.nn.relu(jax.lax.ragged_dot(x[order % t], w_in, sizes))
    done = jax.lax.ragged_dot(hidden, w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done)
    return x + jnp.sum(weights[:, :, None] * home.reshape(t, k, -1), axis=1)


# The weights are in the order of the choices already, so multiply the sorted results by them and bring home the products.
def dropless__wrong_weights_unsorted(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = (jnp.asarray(a) for a in (x, weights, experts, w_in, w_out))
    (t, k), choice = experts.shape, experts.reshape(-1)
    order = jnp.argsort(choice)
    sizes = jnp.bincount(choice, length=w_in.shape[0])
    hidden = jax.nn.relu(jax.lax.ragged_dot(x[order // k], w_in, sizes))
    done = weights.reshape(-1)[:, None] * jax.lax.ragged_dot(hidden, w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done)
    return x + jnp.sum(home.reshape(t, k, -1), axis=1)


# The result is what the experts make, weighted; the residual x is added outside, as for any layer.
def dropless__wrong_no_residual(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = (jnp.asarray(a) for a in (x, weights, experts, w_in, w_out))
    (t, k), choice = experts.shape, experts.reshape(-1)
    order = jnp.argsort(choice)
    sizes = jnp.bincount(choice, length=w_in.shape[0])
    hidden = jax.nn.relu(jax.lax.ragged_dot(x[order // k], w_in, sizes))
    done = jax.lax.ragged_dot(hidden, w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done)
    return jnp.einsum("tk,tkd->td", weights, home.reshape(t, k, -1))


# ---------------------------------------------------------------- balance_loss


def balance_loss__right_stacked(logits, experts, *, mesh):
    def body(logits, experts):
        tokens, e = logits.shape
        wanted = jax.nn.one_hot(experts.ravel(), e).sum(axis=0) / experts.size
        probability = jax.nn.softmax(logits).sum(axis=0) / tokens
        f, p = jax.lax.pmean(jnp.stack([wanted.astype(probability.dtype), probability]), "expert")
        return e * jnp.dot(f, p)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# Each device's loss, and then the mean of them.
def balance_loss__wrong_own_losses(logits, experts, *, mesh):
    def body(logits, experts):
        e = logits.shape[1]
        f = jnp.mean(jax.nn.one_hot(experts, e), axis=(0, 1))
        p = jnp.mean(jax.nn.softmax(logits), axis=0)
        return jax.lax.pmean(e * jnp.sum(f * p), "expert")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# E is the number of devices along expert, since each has one expert.
def balance_loss__wrong_devices(logits, experts, *, mesh):
    def body(logits, experts):
        f = jax.lax.pmean(jnp.mean(jax.nn.one_hot(experts, logits.shape[1]), axis=(0, 1)), "expert")
        p = jax.lax.pmean(jnp.mean(jax.nn.softmax(logits), axis=0), "expert")
        return jax.lax.axis_size("expert") * jnp.sum(f * p)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# f is the part of the *tokens* that want an expert: each token counts once for each of its k choices.
def balance_loss__wrong_per_token(logits, experts, *, mesh):
    def body(logits, experts):
        e = logits.shape[1]
        f = jnp.mean(jnp.sum(jax.nn.one_hot(experts, e), axis=1), axis=0)
        p = jnp.mean(jax.nn.softmax(logits), axis=0)
        f, p = jax.lax.pmean((f, p), "expert")
        return e * jnp.sum(f * p)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# Probabilities and choices are the same thing, so f is the mean probability as well, and the gradient goes through both.
def balance_loss__wrong_both_probabilities(logits, experts, *, mesh):
    def body(logits, experts):
        p = jax.lax.pmean(jnp.mean(jax.nn.softmax(logits), axis=0), "expert")
        return logits.shape[1] * jnp.sum(p * p)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)
