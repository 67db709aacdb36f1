"""Answers to lesson 17, twelfth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def slots(experts, num_experts, capacity):
    """(slot, kept) of each choice."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return slot, slot < capacity


# ---------------------------------------------------------------- moe_all_to_all


def moe_all_to_all__right_masks(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """(x + the experts' results, number of dropped choices on each device)."""
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        k = experts.shape[1]
        choice = experts.reshape(-1)
        same = choice[:, None] == choice[None, :]
        slot = jnp.tril(same, -1).sum(axis=1)  # earlier choices of the same expert
        # [choices, experts, slots], a row of zeros for who is dropped (one_hot of what is outside is 0)
        mask = jax.nn.one_hot(choice, n)[:, :, None] * jax.nn.one_hot(slot, capacity)[:, None, :]
        there = exchange(jnp.einsum("cns,cd->nsd", mask, jnp.repeat(x, k, axis=0)))
        back = exchange(jax.nn.relu(there @ w_in[0]) @ w_out[0])
        got = jnp.einsum("cns,nsd->cd", mask, back).reshape(*experts.shape, -1)
        return x + jnp.einsum("tk,tkd->td", weights, got), (slot >= capacity).sum()[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# This student gave out the slots column by column: all first choices come before all second ones.
def moe_all_to_all__wrong_columns(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        t, k = experts.shape
        choice = experts.T.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(jnp.tile(x, (k, 1)))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        got = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(k, t, -1)
        return x + (weights.T[:, :, None] * got).sum(axis=0), jnp.sum(~kept)[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# This student forgot that the count includes the choice itself: slots begin with 1, slot 0 stays empty, the last one's owner is dropped.
def moe_all_to_all__wrong_fromone(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        T, k = experts.shape
        choice = experts.reshape(-1)
        wants = jax.nn.one_hot(choice, n, dtype=jnp.int32)
        slot = (jnp.cumsum(wants, axis=0) * wants).sum(axis=1)
        rows = jnp.repeat(x, k, axis=0)
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(rows)
        there = exchange(buffer)
        done = jax.nn.relu(there @ w_in[0]) @ w_out[0]
        back = exchange(done)
        got = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(T, k, -1)
        y = x + (weights[:, :, None] * got).sum(axis=1)
        dropped = (slot >= capacity).sum()
        return y, dropped[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=(P("expert"), P("expert")))(
        x, weights, experts, w_in, w_out
    )


# This student thought that x is only what a token becomes which lost all its choices; the others become the experts' results.
def moe_all_to_all__wrong_passes(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        choice = experts.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        rows = jnp.repeat(x, experts.shape[1], axis=0)
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(rows)
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        got = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(*experts.shape, -1)
        result = (weights[..., None] * got).sum(axis=1)
        served = kept.reshape(experts.shape).any(axis=1, keepdims=True)
        return jnp.where(served, result, x), (~kept).sum()[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# This student laid the rows out as x, x, ... (tile) while the choices are read row by row, so other tokens travel than those that chose.
def moe_all_to_all__wrong_tile(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        T, k = experts.shape
        choice = experts.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(jnp.concatenate([x] * k))
        there = exchange(buffer)
        back = exchange(jax.nn.relu(there @ w_in[0]) @ w_out[0])
        got = back.at[choice, slot].get(mode="fill", fill_value=0)
        y = x + (weights[:, :, None] * got.reshape(T, k, -1)).sum(1)
        return y, (choice.size - kept.sum())[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# ---------------------------------------------------------------- moe_gradients


def moe_gradients__right_inside(params, x, y, *, mesh):
    """(loss, gradients) of the mean over all tokens."""
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
        own, added = jax.value_and_grad(loss)(p, x, y)  # added up already over the axes along which there are copies
        return jax.lax.pmean(own, ("data", "expert")), jax.tree.map(lambda g: g / mesh.size, added)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student averaged each gradient over the axes along which it has copies: the router's over both, an expert's over data only (and by no more than that).
def moe_gradients__wrong_dataonly(params, x, y, *, mesh):
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
        value, g = jax.value_and_grad(loss)(p, x, y)
        g = {
            "router": jax.lax.pmean(g["router"], ("data", "expert")),
            "w_in": jax.lax.pmean(g["w_in"], "data"),
            "w_out": jax.lax.pmean(g["w_out"], "data"),
        }
        return jax.lax.pmean(value, ("data", "expert")), g

    # check_vma=False: I do the averaging myself
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts), check_vma=False
    )(params, x, y)


# This student knew that JAX adds up what is held as copies, and forgot that a mean has to be divided.
def moe_gradients__wrong_undivided(params, x, y, *, mesh):
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

    def step(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        return jax.lax.pmean(value, ("data", "expert")), grads

    return jax.shard_map(step, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# This student averaged all gradients over all devices, experts with their neighbours too.
def moe_gradients__wrong_neighbours(params, x, y, *, mesh):
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

    return jax.shard_map(
        lambda *a: jax.lax.pmean(jax.value_and_grad(loss)(*a), ("data", "expert")),
        mesh=mesh,
        in_specs=(layouts, both, both),
        out_specs=(P(), layouts),
        check_vma=False,
    )(params, x, y)


# This student had the right gradients of the mean, and divided them once more by their number of copies, "since JAX has added those up".
def moe_gradients__wrong_again(params, x, y, *, mesh):
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

    def mean_loss(p, x, y):
        return jax.lax.pmean(loss(p, x, y), ("data", "expert"))

    whole = jax.shard_map(mean_loss, mesh=mesh, in_specs=(layouts, both, both), out_specs=P())
    value, grads = jax.value_and_grad(whole)(params, x, y)
    copies = {"router": mesh.size, "w_in": mesh.shape["data"], "w_out": mesh.shape["data"]}
    return value, {name: g / copies[name] for name, g in grads.items()}


# ---------------------------------------------------------------- bias_balance


def bias_balance__right_whole_numbers(scores, bias, k, rate):
    """(weights, experts, new bias)."""
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    tokens, num = scores.shape
    experts = jnp.argsort(-(scores + bias), axis=1, stable=True)[:, :k]
    weights = jnp.stack([scores[jnp.arange(tokens), experts[:, j]] for j in range(k)], axis=1)
    load = (experts[:, :, None] == jnp.arange(num)).sum(axis=(0, 1))
    fair, found = tokens * k, load * num  # whole numbers, so that "just the mean" is exact
    up, down = found < fair, found > fair
    return weights / weights.sum(axis=1, keepdims=True), experts, bias + rate * up - rate * down


# This student divided the scores by the sum over all experts, not by that of the k chosen.
def bias_balance__wrong_all_scores(scores, bias, k, rate):
    _, experts = jax.lax.top_k(scores + bias, k)
    weights = jnp.take_along_axis(scores / scores.sum(axis=1, keepdims=True), experts, axis=1)
    load = jnp.bincount(experts.reshape(-1), length=scores.shape[1])
    return weights, experts, bias + rate * jnp.sign(load.mean() - load)


# This student moved the bias further the further an expert is from the mean.
def bias_balance__wrong_proportional(scores, bias, k, rate):
    experts = jax.lax.top_k(scores + bias, k)[1]
    chosen = jnp.take_along_axis(jnp.asarray(scores), experts, axis=1)
    load = jnp.bincount(experts.reshape(-1), length=scores.shape[1])
    mean = load.mean()
    return chosen / chosen.sum(1, keepdims=True), experts, bias + rate * (mean - load) / mean


# This student took tokens / experts for the mean load, and forgot that each token has k choices.
def bias_balance__wrong_tokens(scores, bias, k, rate):
    T, E = scores.shape
    _, experts = jax.lax.top_k(scores + bias, k)
    weights = jnp.take_along_axis(jnp.asarray(scores), experts, axis=1)
    weights = weights / weights.sum(axis=1, keepdims=True)
    load = jax.nn.one_hot(experts, E).sum(axis=(0, 1))
    new_bias = bias + rate * jnp.sign(T / E - load)
    return weights, experts, new_bias


# This student knew only two cases: fewer than the mean goes up, and everybody else goes down.
def bias_balance__wrong_two_cases(scores, bias, k, rate):
    _, experts = jax.lax.top_k(scores + bias, k)
    weights = jnp.take_along_axis(jnp.asarray(scores), experts, axis=1)
    load = jnp.bincount(experts.reshape(-1), length=scores.shape[1])
    step = jnp.where(load < load.mean(), rate, -rate)
    return weights / weights.sum(axis=1, keepdims=True), experts, bias + step
