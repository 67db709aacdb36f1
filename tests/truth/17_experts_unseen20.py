"""Answers to lesson 17, twentieth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

if len(jax.devices()) >= 4:
    mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def slots(experts, num_experts, capacity):
    """(slot, kept) of each choice: the exercise of part 3."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return slot, slot < capacity


# ---------------------------------------------------------------- moe_all_to_all


def moe_all_to_all__right_masks(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        tokens, k = experts.shape
        choice = experts.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        # one_hot of a slot that does not exist is a row of zeros: the dropped choice is in no buffer
        place = (
            jax.nn.one_hot(choice, n, dtype=x.dtype)[:, :, None]
            * jax.nn.one_hot(slot, capacity, dtype=x.dtype)[:, None]
        )
        place = place.reshape(tokens, k, n, capacity)
        there = exchange(jnp.einsum("tkec,td->ecd", place, x))
        back = exchange(jax.nn.relu(there @ w_in[0]) @ w_out[0])
        y = x + jnp.einsum("tkec,tk,ecd->td", place, weights, back)
        return y, jnp.sum(~kept)[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=(P("expert"), P("expert")))(
        x, weights, experts, w_in, w_out
    )


# A dropped choice was never written, so reading its slot as it is gives nothing either.
def moe_all_to_all__wrong_plain_read(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        tokens, k = experts.shape
        choice = experts.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        buffer = jnp.zeros((n, capacity, x.shape[1]), x.dtype).at[choice, slot].set(jnp.repeat(x, k, axis=0))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        results = back[choice, slot].reshape(tokens, k, -1)
        return x + (weights[:, :, None] * results).sum(axis=1), jnp.sum(~kept)[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=(P("expert"), P("expert")))(
        x, weights, experts, w_in, w_out
    )


# There are k choices for each token, so x is needed k times over: k copies of it, one behind the other.
def moe_all_to_all__wrong_tiled_tokens(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        tokens, k = experts.shape
        choice = experts.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        buffer = jnp.zeros((n, capacity, x.shape[1]), x.dtype).at[choice, slot].set(jnp.tile(x, (k, 1)))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        results = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(tokens, k, -1)
        return x + (weights[:, :, None] * results).sum(axis=1), jnp.sum(~kept)[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=(P("expert"), P("expert")))(
        x, weights, experts, w_in, w_out
    )


# First choices matter most, so all tokens' first choices get their slots before any second choice does.
def moe_all_to_all__wrong_first_choices_first(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        tokens, k = experts.shape
        choice = experts.T.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        buffer = jnp.zeros((n, capacity, x.shape[1]), x.dtype).at[choice, slot].set(jnp.tile(x, (k, 1)))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        results = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(k, tokens, -1)
        return x + (weights.T[:, :, None] * results).sum(axis=0), jnp.sum(~kept)[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=(P("expert"), P("expert")))(
        x, weights, experts, w_in, w_out
    )


# Dropped is a token that found no expert at all: those that lose all their choices are counted.
def moe_all_to_all__wrong_counts_tokens(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        tokens, k = experts.shape
        choice = experts.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        buffer = jnp.zeros((n, capacity, x.shape[1]), x.dtype).at[choice, slot].set(jnp.repeat(x, k, axis=0))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        results = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(tokens, k, -1)
        lost = (~kept).reshape(tokens, k).all(axis=1)
        return x + (weights[:, :, None] * results).sum(axis=1), jnp.sum(lost)[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=(P("expert"), P("expert")))(
        x, weights, experts, w_in, w_out
    )


# ---------------------------------------------------------------- balance_loss


def balance_loss__right_one_psum(logits, experts, *, mesh):
    tokens, num_experts = logits.shape  # of the whole batch
    choices = experts.size

    def on_device(logits, experts):
        counts = jax.nn.one_hot(experts.reshape(-1), num_experts, dtype=logits.dtype).sum(axis=0)
        likings = jax.nn.softmax(logits, axis=-1).sum(axis=0)
        counts, likings = jax.lax.psum(jnp.stack([counts, likings]), "expert")
        return num_experts * jnp.dot(counts / choices, likings / tokens)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# The loss is a mean over tokens, so the mean of the devices' losses is the loss of the batch.
def balance_loss__wrong_mean_of_losses(logits, experts, *, mesh):
    def on_device(logits, experts):
        num_experts = logits.shape[1]
        f = jax.nn.one_hot(experts, num_experts).mean(axis=(0, 1))
        p = jax.nn.softmax(logits, axis=-1).mean(axis=0)
        return jax.lax.pmean(num_experts * jnp.sum(f * p), "expert")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# One expert on each device: the factor E is the size of the axis `expert`.
def balance_loss__wrong_devices_for_experts(logits, experts, *, mesh):
    def on_device(logits, experts):
        f = jax.nn.one_hot(experts, logits.shape[1]).mean(axis=(0, 1))
        p = jax.nn.softmax(logits, axis=-1).mean(axis=0)
        f, p = jax.lax.pmean(f, "expert"), jax.lax.pmean(p, "expert")
        return mesh.shape["expert"] * jnp.sum(f * p)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# The loss is of the whole batch, so every device fetches the whole batch and computes it.
def balance_loss__wrong_gathers_the_batch(logits, experts, *, mesh):
    def on_device(logits, experts):
        logits = jax.lax.all_gather(logits, "expert", tiled=True)
        experts = jax.lax.all_gather(experts, "expert", tiled=True)
        num_experts = logits.shape[1]
        f = jax.nn.one_hot(experts, num_experts).mean(axis=(0, 1))
        p = jax.nn.softmax(logits, axis=-1).mean(axis=0)
        return num_experts * jnp.sum(f * p)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P(), check_vma=False)(
        logits, experts
    )


# f is the part of the tokens that go to an expert: k ones in a token's row, and a mean over the tokens.
def balance_loss__wrong_part_of_tokens(logits, experts, *, mesh):
    def on_device(logits, experts):
        num_experts = logits.shape[1]
        f = jax.nn.one_hot(experts, num_experts).sum(axis=1).mean(axis=0)
        p = jax.nn.softmax(logits, axis=-1).mean(axis=0)
        f, p = jax.lax.pmean(f, "expert"), jax.lax.pmean(p, "expert")
        return num_experts * jnp.sum(f * p)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# ---------------------------------------------------------------- ring_of_experts


def ring_of_experts__right_all_to_all_home(x, weights, experts, w_in, w_out, *, mesh):
    n = mesh.shape["expert"]

    def on_device(x, weights, experts, w_in, w_out):
        tokens, chances, choices = (jax.lax.all_gather(a, "expert") for a in (x, weights, experts))  # [n, T, ...]
        gate = jnp.sum(chances * (choices == jax.lax.axis_index("expert")), axis=-1, keepdims=True)
        parts = gate * (jax.nn.relu(tokens @ w_in[0]) @ w_out[0])  # row d: what this expert makes of device d's tokens
        home = jax.lax.all_to_all(parts, "expert", 0, 0, tiled=True)  # row e: what expert e made of mine
        return x + home.sum(axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# y is x plus the results, so each device adds its expert's part to the tokens, and the sums go home.
def ring_of_experts__wrong_x_in_every_part(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(experts == jax.lax.axis_index("expert"), weights, 0).sum(axis=1)
        y = x + gate[:, None] * (jax.nn.relu(x @ w_in[0]) @ w_out[0])
        return jax.lax.psum_scatter(y, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# The parts have to be added up over all devices: a psum; then each device cuts out its own tokens.
def ring_of_experts__wrong_psum_and_slice(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me, mine = jax.lax.axis_index("expert"), len(x)
        tokens, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(experts == me, weights, 0).sum(axis=1)
        whole = jax.lax.psum(gate[:, None] * (jax.nn.relu(tokens @ w_in[0]) @ w_out[0]), "expert")
        return x + jax.lax.dynamic_slice_in_dim(whole, me * mine, mine)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# An expert needs to know only *that* it was chosen; the weights can stay at home, and multiply what comes back.
def ring_of_experts__wrong_weighed_at_home(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        tokens, choices = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, experts))
        chosen = (choices == jax.lax.axis_index("expert")).any(axis=1)
        part = jnp.where(chosen[:, None], jax.nn.relu(tokens @ w_in[0]) @ w_out[0], 0)
        home = jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)
        return x + weights.sum(axis=1, keepdims=True) * home

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# The gather may put the devices along a second axis and flatten: all tokens are there, and choices stay beside theirs.
def ring_of_experts__wrong_gathered_along_axis_1(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        def everybody(a):
            return jax.lax.all_gather(a, "expert", axis=1).reshape(-1, a.shape[1])

        tokens, chances, choices = everybody(x), everybody(weights), everybody(experts)
        gate = jnp.where(choices == jax.lax.axis_index("expert"), chances, 0).sum(axis=1)
        part = gate[:, None] * (jax.nn.relu(tokens @ w_in[0]) @ w_out[0])
        return x + jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )
