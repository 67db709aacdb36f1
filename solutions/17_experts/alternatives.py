"""Right answers to 17_experts, each spelled differently from the lesson's model solution.

All of them must earn full marks: the judge sees what a program does, not how it is written.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P


def route__all_shares_then_normalised(x, router, k):
    """A softmax over all experts, and the largest shares divided by their sum."""
    shares = jax.nn.softmax(jnp.dot(x, router, precision="highest", preferred_element_type=jnp.float32))
    top, experts = lax.top_k(shares, k)
    return top / top.sum(axis=-1, keepdims=True), experts


def route__numpy(x, router, k):
    """A stable sort of what is negated."""
    logits = np.asarray(x, np.float32) @ np.asarray(router, np.float32)
    experts = np.argsort(-logits, axis=1, kind="stable")[:, :k]
    raised = np.exp(np.take_along_axis(logits, experts, axis=1) - logits.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True), experts


def slots__loop(experts, num_experts, capacity):
    """A counter for each expert."""
    taken, slot = [0] * num_experts, []
    for e in experts:
        slot.append(taken[e])
        taken[e] += 1
    return slot, [s < capacity for s in slot]


def slots__pairs(experts, num_experts, capacity):
    """Every choice compared with every earlier one."""
    earlier = np.tril(experts[:, None] == experts[None, :], -1)
    return earlier.sum(axis=1), earlier.sum(axis=1) < capacity


def moe_all_to_all__masks(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """GShard's masks: [choices, experts, slots], and products with them in and out."""
    n = mesh.shape["expert"]

    @partial(jax.shard_map, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"), check_vma=False)
    def go(x, weights, experts, w_in, w_out):
        t, k = experts.shape
        wants = jax.nn.one_hot(experts.reshape(-1), n)
        place = (jnp.cumsum(wants, axis=0) - 1) * wants + (wants - 1)
        mask = jax.nn.one_hot(place.astype(jnp.int32), capacity) * wants[:, :, None]  # nothing beyond the last slot
        there = lax.all_to_all(jnp.einsum("cns,cd->nsd", mask, jnp.repeat(x, k, axis=0)), "expert", 0, 0)
        done = jnp.einsum("nsf,fd->nsd", jax.nn.relu(jnp.einsum("nsd,df->nsf", there, w_in[0])), w_out[0])
        back = lax.all_to_all(done, "expert", 0, 0)
        found = jnp.einsum("cns,nsd->cd", mask * weights.reshape(-1, 1, 1), back).reshape(t, k, -1)
        return x + found.sum(axis=1), (t * k - mask.sum()).astype(jnp.int32).reshape(1)

    return go(x, weights, experts, w_in, w_out)


def moe_all_to_all__side_by_side(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """Split along experts, joined along slots, and back the other way; results added to the tokens by index."""
    n = mesh.shape["expert"]

    def go(x, weights, experts, w_in, w_out):
        flat, share = experts.ravel(), weights.ravel()
        token = jnp.arange(flat.size) // experts.shape[1]
        slot = jnp.tril(flat[:, None] == flat[None, :], -1).sum(axis=1)
        kept = slot < capacity
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[flat, slot].add(x[token], mode="drop")
        there = lax.all_to_all(buffer, "expert", 0, 1, tiled=True)
        back = lax.all_to_all(jax.nn.relu(there @ w_in) @ w_out, "expert", 1, 0, tiled=True)
        found = jnp.where(kept[:, None], back[flat, jnp.where(kept, slot, 0)], 0)
        return x.at[token].add(share[:, None] * found), jnp.sum(~kept, keepdims=True).astype(jnp.int32)

    return jax.shard_map(go, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=(P("expert"),) * 2)(
        x, weights, experts, w_in, w_out
    )


def capacity_numbers__loop(tokens_per_expert, factor, width):
    """Buffer by buffer."""
    n, count = len(tokens_per_expert), len(tokens_per_expert[0])
    choices = sum(tokens_per_expert[0])
    capacity = math.ceil(factor * choices / count)
    dropped = sum(max(0, w - capacity) for row in tokens_per_expert for w in row)
    slots = n * count * capacity
    return {
        "bytes": 4 * width * capacity * (count - count // n),
        "capacity": capacity,
        "dropped": dropped / (n * choices),
        "empty": (slots - (n * choices - dropped)) / slots,
    }


def dropless__inverse(x, weights, experts, w_in, w_out):
    """The inverse order by a second argsort; k copies of the tokens; the weights sorted as well."""
    flat = jnp.asarray(experts).ravel()
    order = jnp.argsort(flat)
    sizes = (flat[:, None] == jnp.arange(w_in.shape[0])).sum(axis=0)
    rows = jnp.repeat(jnp.asarray(x), weights.shape[1], axis=0)[order]
    done = lax.ragged_dot(jnp.maximum(lax.ragged_dot(rows, jnp.asarray(w_in), sizes), 0), jnp.asarray(w_out), sizes)
    weighed = done * jnp.asarray(weights).ravel()[order, None]
    return x + weighed[jnp.argsort(order)].reshape(*weights.shape, -1).sum(axis=1)


def dropless__added_by_token(x, weights, experts, w_in, w_out):
    """Nothing is unsorted: each row is added to its token."""
    x, flat = jnp.asarray(x), jnp.asarray(experts).ravel()
    order = jnp.argsort(flat, descending=True)[::-1]
    token, sizes = order // experts.shape[1], jnp.bincount(flat, length=len(w_in))
    hidden = jax.nn.relu(lax.ragged_dot(x[token], jnp.asarray(w_in), sizes))
    done = lax.ragged_dot(hidden, jnp.asarray(w_out), sizes)
    return x.at[token].add(jnp.asarray(weights).ravel()[order][:, None] * done)


def ring_of_experts__weights_exchanged(x, weights, experts, w_in, w_out, *, mesh):
    """Each device works out its tokens' weights for all experts, and an all_to_all hands each expert its own."""
    n = mesh.shape["expert"]

    @partial(jax.shard_map, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"), check_vma=False)
    def go(x, weights, experts, w_in, w_out):
        share = jnp.einsum("tk,tkn->nt", weights, jax.nn.one_hot(experts, n))
        own = lax.all_to_all(share, "expert", 0, 0, tiled=True).reshape(-1, 1)
        everyone = lax.all_gather(x, "expert").reshape(-1, x.shape[1])
        part = own * (jax.nn.relu(everyone @ w_in[0]) @ w_out[0])
        return x + lax.psum_scatter(part.reshape(n, *x.shape), "expert")

    return go(x, weights, experts, w_in, w_out)


def ring_of_experts__token_counted_by_its_owner(x, weights, experts, w_in, w_out, *, mesh):
    """The token itself goes into the sum, on one device only."""

    def go(x, weights, experts, w_in, w_out):
        me, t = lax.axis_index("expert"), x.shape[0]
        every, wide, which = (lax.all_gather(v, "expert", tiled=True) for v in (x, weights, experts))
        part = jnp.einsum("tk,td->td", wide * (which == me), jax.nn.relu(every @ w_in[0]) @ w_out[0])
        own = (jnp.arange(every.shape[0]) // t == me)[:, None]
        return lax.psum_scatter(jnp.where(own, part + every, part), "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(go, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


def balance_loss__one_sum(logits, experts, *, mesh):
    """Both in one psum, of counts and sums, divided at the end."""
    count = logits.shape[1]

    def go(logits, experts):
        here = jnp.stack([jnp.bincount(experts.ravel(), length=count) / experts.size, jax.nn.softmax(logits).mean(0)])
        f, p = lax.psum(here, "expert") / lax.axis_size("expert")
        return count * f @ p

    return jax.shard_map(go, mesh=mesh, in_specs=P("expert"), out_specs=P())(logits, experts)


def balance_loss__counts_only(logits, experts, *, mesh):
    """The fractions of all devices, the probabilities of its own tokens, and the mean of the products."""
    count = logits.shape[1]

    def go(logits, experts):
        f = lax.pmean((experts[:, :, None] == jnp.arange(count)).mean(axis=(0, 1)), "expert")
        return lax.pmean(count * jnp.mean(jax.nn.softmax(logits) @ f), "expert")

    return jax.shard_map(go, mesh=mesh, in_specs=P("expert"), out_specs=P())(logits, experts)


def bias_balance__numpy(scores, bias, k, rate):
    """By sorting and counting."""
    experts = np.argsort(-(scores + bias), axis=1, kind="stable")[:, :k]
    top = np.take_along_axis(scores, experts, axis=1)
    moved = np.array(bias)
    fair = scores.shape[0] * k / len(bias)
    for e, load in enumerate((experts == np.arange(len(bias))[:, None, None]).sum(axis=(1, 2))):
        moved[e] += rate if load < fair else -rate if load > fair else 0
    return top / top.sum(axis=1)[:, None], experts, moved


def moe_gradients__inside(params, x, y, *, mesh):
    """Inside, with the check on: what JAX has added up is divided by the number of devices."""
    n = mesh.shape["expert"]

    def loss(p, x, y):
        logits = x @ p["router"]
        gate = jnp.max(jax.nn.softmax(logits), axis=1)[:, None]
        mine = jax.nn.one_hot(jnp.argmax(logits, axis=1), n)
        there = lax.all_to_all(jnp.einsum("tn,td->ntd", mine, x), "expert", 0, 0, tiled=True)
        back = lax.all_to_all(jax.nn.relu(there @ p["w_in"][0]) @ p["w_out"][0], "expert", 0, 0, tiled=True)
        return jnp.mean((x + gate * jnp.einsum("tn,ntd->td", mine, back) - y) ** 2)

    def go(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        return lax.pmean(value, ("data", "expert")), jax.tree.map(lambda g: g / mesh.size, grads)

    cuts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))
    return jax.shard_map(go, mesh=mesh, in_specs=(cuts, both, both), out_specs=(P(), cuts))(params, x, y)


def moe_gradients__check_off(params, x, y, *, mesh):
    """Inside, with the check off: every mean by hand."""
    n = mesh.shape["expert"]

    def loss(p, x, y):
        logits = x @ p["router"]
        gate = jnp.max(jax.nn.softmax(logits), axis=1)[:, None]
        mine = jax.nn.one_hot(jnp.argmax(logits, axis=1), n)
        there = lax.all_to_all(jnp.einsum("tn,td->ntd", mine, x), "expert", 0, 0, tiled=True)
        back = lax.all_to_all(jax.nn.relu(there @ p["w_in"][0]) @ p["w_out"][0], "expert", 0, 0, tiled=True)
        return jnp.mean((x + gate * jnp.einsum("tn,ntd->td", mine, back) - y) ** 2)

    def go(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        router = lax.pmean(grads["router"], ("data", "expert"))
        experts = {name: lax.pmean(grads[name], "data") / n for name in ("w_in", "w_out")}
        return lax.pmean(value, ("data", "expert")), {"router": router, **experts}

    cuts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))
    return jax.shard_map(go, mesh=mesh, in_specs=(cuts, both, both), out_specs=(P(), cuts), check_vma=False)(
        params, x, y
    )
