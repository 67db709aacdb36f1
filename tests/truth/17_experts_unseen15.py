"""Answers to lesson 17, fifteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def exchange(buffer):
    """Row e of [experts, ...] goes to device e; row d of what comes is from device d."""
    return jax.lax.all_to_all(buffer, "expert", split_axis=0, concat_axis=0, tiled=True)


def slots(experts, num_experts, capacity):
    """(slot, kept) of each choice (the learner's own answer to an earlier exercise)."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return slot, slot < capacity


# ---------------------------------------------------------------- moe_all_to_all


def moe_all_to_all__right_compare(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def swap(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        (T, k), D = experts.shape, x.shape[1]
        choice = experts.reshape(-1)
        same = choice[:, None] == choice[None, :]
        slot = jnp.tril(same, -1).sum(axis=1)  # earlier choices for the same expert
        kept = slot < capacity
        token = jnp.arange(T * k) // k
        buffer = jnp.zeros((n, capacity, D), x.dtype).at[choice, slot].set(x[token])
        there = swap(buffer)
        done = jnp.maximum(there @ w_in[0], 0) @ w_out[0]
        back = swap(done)
        got = jnp.where(kept[:, None], back[choice, jnp.minimum(slot, capacity - 1)], 0)
        y = x + jnp.einsum("tk,tkd->td", weights, got.reshape(T, k, D))
        return y, (~kept).sum().reshape(1)

    cut = P("expert")
    f = jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=(cut, cut))
    return f(x, weights, experts, w_in, w_out)


# This student reads the buffer with the plain index, thinking that a slot which does not exist gives 0.
def moe_all_to_all__wrong_plain_read(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        T, k = experts.shape
        choice = experts.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(jnp.repeat(x, k, axis=0))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        got = back[choice, slot].reshape(T, k, -1)
        return x + (weights[:, :, None] * got).sum(axis=1), jnp.sum(~kept)[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# This student thought that the T * k rows are all tokens once, then all tokens again: tile in place of repeat.
def moe_all_to_all__wrong_tile(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        T, k = experts.shape
        choice = experts.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        rows = jnp.tile(x, (k, 1))
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(rows)
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        got = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(T, k, -1)
        return x + (weights[:, :, None] * got).sum(axis=1), jnp.sum(~kept)[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# This student adds x only where all choices of a token were dropped; elsewhere the experts' result replaces the token.
def moe_all_to_all__wrong_replaced(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        T, k = experts.shape
        choice = experts.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(jnp.repeat(x, k, axis=0))
        there = exchange(buffer)
        back = exchange(jax.nn.relu(there @ w_in[0]) @ w_out[0])
        got = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(T, k, -1)
        result = jnp.sum(got * weights[..., None], axis=1)
        served = kept.reshape(T, k).any(axis=1, keepdims=True)
        return jnp.where(served, result, x), jnp.sum(~kept)[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# This student reports on each device how many choices were dropped on all of them together.
def moe_all_to_all__wrong_total_dropped(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        T, k = experts.shape
        choice = experts.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(jnp.repeat(x, k, axis=0))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        got = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(T, k, -1)
        dropped = jax.lax.psum(jnp.sum(~kept), "expert")
        return x + (weights[:, :, None] * got).sum(axis=1), dropped[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# ---------------------------------------------------------------- balance_loss


def balance_loss__right_one_psum(logits, experts, *, mesh):
    E, tokens, choices = logits.shape[1], logits.shape[0], experts.size

    def on_device(logits, experts):
        counts = (experts[..., None] == jnp.arange(E)).astype(logits.dtype).sum(axis=(0, 1))
        chances = jax.nn.softmax(logits, axis=-1).sum(axis=0)
        counts, chances = jax.lax.psum(jnp.stack([counts, chances]), "expert")
        return E * jnp.dot(counts / choices, chances / tokens)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# This student makes each device's loss of its own tokens, and averages the losses.
def balance_loss__wrong_mean_of_losses(logits, experts, *, mesh):
    E = logits.shape[1]

    def on_device(logits, experts):
        f = jax.nn.one_hot(experts, E).mean((0, 1))
        p = jax.nn.softmax(logits).mean(0)
        return jax.lax.pmean(E * jnp.sum(f * p), "expert")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P())(logits, experts)


# This student adds the devices' means up with psum, and forgets to divide by their number.
def balance_loss__wrong_sum_of_means(logits, experts, *, mesh):
    E = logits.shape[1]

    def on_device(logits, experts):
        f = jax.lax.psum(jax.nn.one_hot(experts, E).mean(axis=(0, 1)), "expert")
        p = jax.lax.psum(jax.nn.softmax(logits, axis=1).mean(axis=0), "expert")
        return E * (f * p).sum()

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P())(logits, experts)


# This student thought that E is the size of the axis `expert`, as on the mesh shown with one expert on each device.
def balance_loss__wrong_axis_size(logits, experts, *, mesh):
    def on_device(logits, experts):
        E = jax.lax.axis_size("expert")
        f = jax.lax.pmean(jax.nn.one_hot(experts, logits.shape[1]).mean((0, 1)), "expert")
        p = jax.lax.pmean(jax.nn.softmax(logits).mean(0), "expert")
        return E * jnp.sum(f * p)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P())(logits, experts)


# This student gathers all logits and all choices on every device, to have the whole batch there.
def balance_loss__wrong_gathered(logits, experts, *, mesh):
    E = logits.shape[1]

    def on_device(logits, experts):
        every = jax.lax.all_gather(logits, "expert", tiled=True)
        chosen = jax.lax.all_gather(experts, "expert", tiled=True)
        f = jax.nn.one_hot(chosen, E).mean((0, 1))
        p = jax.nn.softmax(every).mean(0)
        return jax.lax.pmean(E * jnp.sum(f * p), "expert")  # the same everywhere: the mean says so to JAX

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P())(logits, experts)


# ---------------------------------------------------------------- moe_gradients


def _given(mesh):
    """What the answer cell of moe_gradients gives: (layouts, both, loss)."""
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

    return layouts, both, loss


def moe_gradients__right_inside(params, x, y, *, mesh):
    layouts, both, loss = _given(mesh)

    def on_device(p, x, y):
        def whole(p):
            return jax.lax.pmean(jax.lax.pmean(loss(p, x, y), "expert"), "data")

        return jax.value_and_grad(whole)(p)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student adds the devices' losses up: the gradients are added up too, so the loss has to be.
def moe_gradients__wrong_psum(params, x, y, *, mesh):
    layouts, both, loss = _given(mesh)

    def total(params, x, y):
        body = lambda p, x, y: jax.lax.psum(loss(p, x, y), ("data", "expert"))
        return jax.shard_map(body, mesh=mesh, in_specs=(layouts, both, both), out_specs=P())(params, x, y)

    return jax.value_and_grad(total)(params, x, y)


# This student averages the loss for the report, and thinks that the gradients, which JAX has added up, are ready as they are.
def moe_gradients__wrong_undivided(params, x, y, *, mesh):
    layouts, both, loss = _given(mesh)

    def on_device(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        return jax.lax.pmean(value, ("data", "expert")), grads

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student divides an expert's gradient by its number of copies, those along `data`, and not by all devices with tokens.
def moe_gradients__wrong_copies_only(params, x, y, *, mesh):
    layouts, both, loss = _given(mesh)
    d, e = mesh.shape["data"], mesh.shape["expert"]

    def on_device(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        grads = {"router": grads["router"] / (d * e), "w_in": grads["w_in"] / d, "w_out": grads["w_out"] / d}
        return jax.lax.pmean(value, ("data", "expert")), grads

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student averages all gradients over both axes by hand, with the check off, and so mixes the gradients of different experts.
def moe_gradients__wrong_mixed_experts(params, x, y, *, mesh):
    layouts, both, loss = _given(mesh)

    def on_device(p, x, y):
        found = jax.value_and_grad(loss)(p, x, y)
        return jax.tree.map(lambda a: jax.lax.pmean(a, ("data", "expert")), found)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts), check_vma=False
    )(params, x, y)
