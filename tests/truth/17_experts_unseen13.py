"""Answers to lesson 17, thirteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

# ---------------------------------------------------------------- balance_loss


def balance_loss__right_one_pmean(logits, experts, *, mesh):
    """E · Σ f · P over the whole batch."""
    num_experts = logits.shape[1]

    def on_device(logits, experts):
        count = jnp.zeros(num_experts).at[experts.reshape(-1)].add(1.0)
        f = count / experts.size
        p = jax.nn.softmax(logits, axis=1).mean(axis=0)
        f, p = jax.lax.pmean(jnp.stack([f, p]), "expert")  # [2, E] travel
        return num_experts * jnp.dot(f, p)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# Thinks: all devices have equally many tokens, so the loss of the batch is the mean of the devices' losses.
def balance_loss__wrong_mean_of_losses(logits, experts, *, mesh):
    """E · Σ f · P over the whole batch."""
    num_experts = logits.shape[1]

    def on_device(logits, experts):
        f = jax.nn.one_hot(experts, num_experts).mean(axis=(0, 1))
        p = jax.nn.softmax(logits, axis=1).mean(axis=0)
        return jax.lax.pmean(num_experts * jnp.sum(f * p), "expert")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# Thinks: f is the part of the tokens that an expert got, so the k choices are added up and the tokens averaged.
def balance_loss__wrong_per_token(logits, experts, *, mesh):
    """E · Σ f · P over the whole batch."""
    num_experts = logits.shape[1]

    def on_device(logits, experts):
        asked = jax.nn.one_hot(experts, num_experts).sum(axis=1)  # [T, E]
        f = jax.lax.pmean(asked.mean(axis=0), "expert")
        p = jax.lax.pmean(jax.nn.softmax(logits, axis=1).mean(axis=0), "expert")
        return num_experts * jnp.sum(f * p)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# Thinks: the whole batch means that every device must see all tokens first; gather both, then the formula as on one device.
def balance_loss__wrong_gathered(logits, experts, *, mesh):
    """E · Σ f · P over the whole batch."""
    num_experts = logits.shape[1]

    def on_device(logits, experts):
        logits = jax.lax.all_gather(logits, "expert", tiled=True)
        experts = jax.lax.all_gather(experts, "expert", tiled=True)
        f = jax.nn.one_hot(experts, num_experts).mean(axis=(0, 1))
        p = jax.nn.softmax(logits, axis=1).mean(axis=0)
        # All devices have the same number by now; the pmean only says so.
        return jax.lax.pmean(num_experts * jnp.sum(f * p), "expert")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# Thinks: an expert's mean probability is that of the tokens that chose it; to the others it does not matter.
def balance_loss__wrong_chosen_only(logits, experts, *, mesh):
    """E · Σ f · P over the whole batch."""
    num_experts = logits.shape[1]

    def on_device(logits, experts):
        hot = jax.nn.one_hot(experts, num_experts)  # [T, k, E]
        f = hot.mean(axis=(0, 1))
        p = jnp.where(hot.sum(axis=1) > 0, jax.nn.softmax(logits, axis=1), 0).mean(axis=0)
        f, p = jax.lax.pmean(f, "expert"), jax.lax.pmean(p, "expert")
        return num_experts * jnp.sum(f * p)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# ---------------------------------------------------------------- ring_of_experts


def ring_of_experts__right_exchange(x, weights, experts, w_in, w_out, *, mesh):
    """x + the experts' results; all tokens visit all experts."""
    n, cut = mesh.shape["expert"], P("expert")

    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        everyone, gates, choices = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.einsum("tk,tk->t", gates, (choices == me).astype(gates.dtype))
        made = gate[:, None] * (jax.nn.relu(everyone @ w_in[0]) @ w_out[0])
        # A reduce_scatter in two steps: to each device what is for its tokens, and there the sum over the experts.
        mine = jax.lax.all_to_all(made.reshape(n, *x.shape), "expert", 0, 0, tiled=True)
        return x + mine.sum(axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=cut)(x, weights, experts, w_in, w_out)


# Thinks: y is x plus the results, so x is added where all of it is at hand, and then everything is summed home.
def ring_of_experts__wrong_x_on_all(x, weights, experts, w_in, w_out, *, mesh):
    """x + the experts' results; all tokens visit all experts."""
    cut = P("expert")

    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(experts == me, weights, 0).sum(axis=1, keepdims=True)
        part = x + gate * (jax.nn.relu(x @ w_in[0]) @ w_out[0])
        return jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=cut)(x, weights, experts, w_in, w_out)


# Thinks: add the parts up with a psum and let each device keep its own rows; that is what a reduce_scatter does.
def ring_of_experts__wrong_psum(x, weights, experts, w_in, w_out, *, mesh):
    """x + the experts' results; all tokens visit all experts."""
    cut = P("expert")

    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        every_x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(experts == me, weights, 0).sum(axis=1, keepdims=True)
        part = gate * (jax.nn.relu(every_x @ w_in[0]) @ w_out[0])
        whole = jax.lax.psum(part, "expert")
        return x + jax.lax.dynamic_slice_in_dim(whole, me * len(x), len(x))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=cut)(x, weights, experts, w_in, w_out)


# Thinks: an expert needs to know only which tokens chose it; the gathered choices say that, and what did not choose it weighs 0.
def ring_of_experts__wrong_unweighted(x, weights, experts, w_in, w_out, *, mesh):
    """x + the experts' results; all tokens visit all experts."""
    cut = P("expert")

    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        every_x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        chose_me = (experts == me).any(axis=1)
        total = weights.sum(axis=1)  # what a token's choices weigh
        gate = jnp.where(chose_me, total, 0)[:, None]
        part = gate * (jax.nn.relu(every_x @ w_in[0]) @ w_out[0])
        return x + jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=cut)(x, weights, experts, w_in, w_out)


# Thinks: the scatter wants an axis with one entry for each device, and takes the n of [T / n, n, D], the inner one.
def ring_of_experts__wrong_stripes(x, weights, experts, w_in, w_out, *, mesh):
    """x + the experts' results; all tokens visit all experts."""
    n, cut = mesh.shape["expert"], P("expert")

    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        every_x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(experts == me, weights, 0).sum(axis=1, keepdims=True)
        part = gate * (jax.nn.relu(every_x @ w_in[0]) @ w_out[0])
        part = part.reshape(len(x), n, x.shape[1])
        return x + jax.lax.psum_scatter(part, "expert", scatter_dimension=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=cut)(x, weights, experts, w_in, w_out)


# ---------------------------------------------------------------- dropless


def dropless__right_add_home(x, weights, experts, w_in, w_out):
    """x + the experts' results, by sorting."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    k = experts.shape[1]
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    token = order // k
    sizes = jnp.bincount(choice, length=len(w_in)).astype(jnp.int32)
    hidden = jax.nn.relu(jax.lax.ragged_dot(x[token], w_in, sizes))
    done = jax.lax.ragged_dot(hidden, w_out, sizes)
    return x.at[token].add(weights.reshape(-1)[order][:, None] * done)


# Thinks: sorting was done by [order], so [order] once more undoes it.
def dropless__wrong_sorted_twice(x, weights, experts, w_in, w_out):
    """x + the experts' results, by sorting."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    tokens, k = experts.shape
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    sizes = jnp.bincount(choice, length=len(w_in)).astype(jnp.int32)
    rows = jnp.repeat(x, k, axis=0)[order]
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(rows, w_in, sizes)), w_out, sizes)
    home = done[order].reshape(tokens, k, -1)
    return x + jnp.einsum("tk,tkd->td", weights, home)


# Thinks: k choices for each token, so x is needed k times, one copy below the other.
def dropless__wrong_tile(x, weights, experts, w_in, w_out):
    """x + the experts' results, by sorting."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    tokens, k = experts.shape
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    sizes = jnp.bincount(choice, length=len(w_in)).astype(jnp.int32)
    rows = jnp.tile(x, (k, 1))[order]
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(rows, w_in, sizes)), w_out, sizes)
    home = jnp.zeros_like(done).at[order].set(done).reshape(tokens, k, -1)
    return x + jnp.einsum("tk,tkd->td", weights, home)


# Thinks: there is one weight for each row that the experts made, so weigh the rows at once and send them home weighed.
def dropless__wrong_weighed_sorted(x, weights, experts, w_in, w_out):
    """x + the experts' results, by sorting."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    tokens, k = experts.shape
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    sizes = jnp.bincount(choice, length=len(w_in)).astype(jnp.int32)
    rows = x[order // k]
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(rows, w_in, sizes)), w_out, sizes)
    done = done * weights.reshape(-1, 1)
    home = jnp.zeros_like(done).at[order].set(done)
    return x + home.reshape(tokens, k, -1).sum(axis=1)


# Thinks: ragged_dot has to know where each group ends in the sorted rows, which is the running sum of the counts.
def dropless__wrong_ends(x, weights, experts, w_in, w_out):
    """x + the experts' results, by sorting."""
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    tokens, k = experts.shape
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    ends = jnp.cumsum(jnp.bincount(choice, length=len(w_in))).astype(jnp.int32)
    rows = x[order // k]
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(rows, w_in, ends)), w_out, ends)
    home = jnp.zeros_like(done).at[order].set(done).reshape(tokens, k, -1)
    return x + jnp.einsum("tk,tkd->td", weights, home)
