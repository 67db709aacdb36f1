"""Answers to lesson 13, as students give them: written from the student's notebook alone."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)

megatron_specs__right_plain = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}
"""As it is."""

megatron_specs__right_long = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model"), "b2": P(None)}
"""The same, spelled otherwise."""

megatron_specs__wrong_b1_whole = megatron_specs__right_plain | {"b1": P()}
"""Leaves every bias whole."""

megatron_specs__wrong_b2_cut = megatron_specs__right_plain | {"b2": P("model")}
"""Cuts every bias."""

megatron_specs__wrong_swapped = megatron_specs__right_plain | {"W1": P("model", None), "W2": P(None, "model")}
"""Rows first, then columns."""

megatron_specs__wrong_all_whole = {"W1": P(), "b1": P(), "W2": P(), "b2": P()}
"""Cuts nothing."""

pair_sends__right_plain = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather", "all_gather"],
    "rows, then rows": ["all_to_all", "all_reduce"],
    "rows, then columns": ["all_reduce", "all_gather"],
    "bytes: columns, then rows": 1536,
    "examples from which on gathering W1 and W2 sends less": 1195,
}
"""As it is."""

pair_sends__wrong_all_reduces = pair_sends__right_plain | {
    "rows, then rows": ["all_reduce", "all_reduce"],
    "rows, then columns": ["all_reduce"],
}
"""Estimates one all_reduce for every cut by rows."""

pair_sends__wrong_one_gather = pair_sends__right_plain | {"columns, then columns": ["all_gather"]}
"""Forgets that the result has to be whole along model."""

pair_sends__wrong_bytes_of_all = pair_sends__right_plain | {"bytes: columns, then rows": 6144}
"""Takes the whole result for V."""

pair_sends__wrong_eight_devices = pair_sends__right_plain | {"bytes: columns, then rows": 2 * 7 / 8 * 1536}
"""Takes all eight devices for n."""

where_it_goes__right_plain = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}
"""As it is."""

where_it_goes__wrong_bias_anywhere = where_it_goes__right_plain | {"adding b2 to the result": "either way"}
"""Believes that adding commutes with adding."""

where_it_goes__wrong_halving = where_it_goes__right_plain | {"halving the result": "after the sum"}
"""Does everything to the result after the sum."""

where_it_goes__wrong_softmax = where_it_goes__right_plain | {
    "softmax over the hidden units": "on the parts",
    "relu of the result": "on the parts",
}
"""Believes that what is done to hidden units is done on the parts."""


def _mlp(params, x, mesh, body, out=P("batch", None), vma=True):
    """A body for the pair, with the specs of the first exercise."""
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}
    return jax.shard_map(body, mesh=mesh, in_specs=(specs, P("batch", None)), out_specs=out, check_vma=vma)(params, x)


def tp_mlp__right_plain(params, x, *, mesh):
    """As in the hints."""
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def body(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        return jax.nn.relu(jax.lax.psum(hidden @ p["W2"], "model") + p["b2"])

    return jax.shard_map(body, mesh=mesh, in_specs=(specs, P("batch", None)), out_specs=P("batch", None))(params, x)


def tp_mlp__right_separate(params, x, *, mesh):
    """Without dicts in the specs, in another style."""

    def body(x, W1, b1, W2, b2):
        part = jnp.einsum("bh,ho->bo", jnp.maximum(x @ W1 + b1, 0.0), W2)
        return jnp.maximum(b2 + jax.lax.psum(part, axis_name="model"), 0.0)

    specs = P("batch"), P(None, "model"), P("model"), P("model"), P()
    run = jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("batch"))
    return run(x, *(params[name] for name in ("W1", "b1", "W2", "b2")))


def tp_mlp__wrong_bias_on_the_parts(params, x, *, mesh):
    """Adds b2 before the sum."""

    def body(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        return jax.nn.relu(jax.lax.psum(hidden @ p["W2"] + p["b2"], "model"))

    return _mlp(params, x, mesh, body)


def tp_mlp__wrong_relu_of_parts(params, x, *, mesh):
    """relu in front of the sum."""

    def body(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        return jax.lax.psum(jax.nn.relu(hidden @ p["W2"]), "model") + p["b2"]

    return _mlp(params, x, mesh, body)


def tp_mlp__wrong_relu_and_bias_of_parts(params, x, *, mesh):
    """Finishes the layer on each device, and sums then: two at once."""

    def body(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        return jax.lax.psum(jax.nn.relu(hidden @ p["W2"] + p["b2"]), "model")

    return _mlp(params, x, mesh, body)


def tp_mlp__wrong_no_last_relu(params, x, *, mesh):
    """Forgets the second relu."""

    def body(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        return jax.lax.psum(hidden @ p["W2"], "model") + p["b2"]

    return _mlp(params, x, mesh, body)


def tp_mlp__wrong_no_sum(params, x, *, mesh):
    """Forgets the sum, and silences the check."""

    def body(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        return jax.nn.relu(hidden @ p["W2"] + p["b2"])

    return _mlp(params, x, mesh, body, vma=False)


def tp_mlp__wrong_sum_over_batch(params, x, *, mesh):
    """Sums over the examples' axis."""

    def body(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        return jax.nn.relu(jax.lax.psum(hidden @ p["W2"], "batch") + p["b2"])

    return _mlp(params, x, mesh, body, vma=False)


def tp_mlp__wrong_hidden_gathered(params, x, *, mesh):
    """Gathers the hidden units and W2."""

    def body(p, x):
        hidden = jax.lax.all_gather(jax.nn.relu(x @ p["W1"] + p["b1"]), "model", axis=1, tiled=True)
        W2 = jax.lax.all_gather(p["W2"], "model", axis=0, tiled=True)
        return jax.nn.relu(hidden @ W2 + p["b2"])

    return _mlp(params, x, mesh, body, vma=False)


def tp_mlp__wrong_mean(params, x, *, mesh):
    """pmean in place of psum."""

    def body(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        return jax.nn.relu(jax.lax.pmean(hidden @ p["W2"], "model") + p["b2"])

    return _mlp(params, x, mesh, body)


def _descent(params, x, y, steps, rate, predict):
    """The loop of train_tp around a prediction."""
    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(lambda p: jnp.mean((predict(p, x) - y) ** 2))(params)
        losses.append(value)
        params = jax.tree.map(lambda p, g: p - rate * g, params, grads)
    return jnp.stack(losses), params


def train_tp__right_plain(params, x, y, steps, rate, *, mesh):
    """As in the hints."""

    def predict(p, x):
        hidden = jnp.tanh(x @ p["W1"] + p["b1"])
        hidden = jnp.tanh(hidden @ p["W2"] + p["b2"])
        rows = NamedSharding(mesh, P("batch", None))
        hidden = jnp.tanh(jnp.dot(hidden, p["W3"], out_sharding=rows) + p["b3"])
        return hidden @ p["W4"] + p["b4"]

    def loss(p, x, y):
        return jnp.mean((predict(p, x) - y) ** 2)

    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        losses.append(value)
        params = jax.tree.map(lambda p, g: p - rate * g, params, grads)
    return jnp.stack(losses), params


def train_tp__right_scan(params, x, y, steps, rate, *, mesh):
    """By scan and einsum."""

    def loss(p):
        h = jnp.tanh(x @ p["W1"] + p["b1"])
        h = jnp.tanh(h @ p["W2"] + p["b2"])
        h = jnp.tanh(jnp.einsum("bi,io->bo", h, p["W3"], out_sharding=NamedSharding(mesh, P("batch"))) + p["b3"])
        return jnp.mean((h @ p["W4"] + p["b4"] - y) ** 2)

    def step(p, _):
        value, g = jax.value_and_grad(loss)(p)
        return {name: p[name] - rate * g[name] for name in p}, value

    params, losses = jax.lax.scan(step, params, None, length=steps)
    return losses, params


def train_tp__wrong_as_on_auto(params, x, y, steps, rate, *, mesh):
    """The network as it stands."""

    def predict(p, x):
        for k in (1, 2, 3):
            x = jnp.tanh(x @ p[f"W{k}"] + p[f"b{k}"])
        return x @ p["W4"] + p["b4"]

    return _descent(params, x, y, steps, rate, predict)


def train_tp__wrong_whole(params, x, y, steps, rate, *, mesh):
    """Asks for a whole third layer: rows are gathered."""

    def predict(p, x):
        for k in (1, 2):
            x = jnp.tanh(x @ p[f"W{k}"] + p[f"b{k}"])
        x = jnp.tanh(jnp.dot(x, p["W3"], out_sharding=NamedSharding(mesh, P())) + p["b3"])
        return x @ p["W4"] + p["b4"]

    return _descent(params, x, y, steps, rate, predict)


def train_tp__wrong_relu(params, x, y, steps, rate, *, mesh):
    """relu from the part before, where this network has tanh."""

    def predict(p, x):
        for k in (1, 2):
            x = jax.nn.relu(x @ p[f"W{k}"] + p[f"b{k}"])
        x = jax.nn.relu(jnp.dot(x, p["W3"], out_sharding=NamedSharding(mesh, P("batch", None))) + p["b3"])
        return x @ p["W4"] + p["b4"]

    return _descent(params, x, y, steps, rate, predict)


def train_tp__wrong_loss_after(params, x, y, steps, rate, *, mesh):
    """Reports the losses after each step."""

    def loss(p):
        h = jnp.tanh(x @ p["W1"] + p["b1"])
        h = jnp.tanh(h @ p["W2"] + p["b2"])
        h = jnp.tanh(jnp.dot(h, p["W3"], out_sharding=NamedSharding(mesh, P("batch", None))) + p["b3"])
        return jnp.mean((h @ p["W4"] + p["b4"] - y) ** 2)

    losses = []
    for _ in range(steps):
        grads = jax.grad(loss)(params)
        params = jax.tree.map(lambda p, g: p - rate * g, params, grads)
        losses.append(loss(params))
    return jnp.stack(losses), params


def train_tp__wrong_rate(params, x, y, steps, rate, *, mesh):
    """The notebook's rate, 0.1, in place of the one given."""

    def predict(p, x):
        for k in (1, 2):
            x = jnp.tanh(x @ p[f"W{k}"] + p[f"b{k}"])
        x = jnp.tanh(jnp.dot(x, p["W3"], out_sharding=NamedSharding(mesh, P("batch", None))) + p["b3"])
        return x @ p["W4"] + p["b4"]

    return _descent(params, x, y, steps, 0.1, predict)


def train_tp__wrong_weights_gathered(params, x, y, steps, rate, *, mesh):
    """Makes hidden layer and W3 whole along model."""

    def predict(p, x):
        for k in (1, 2):
            x = jnp.tanh(x @ p[f"W{k}"] + p[f"b{k}"])
        x = jax.sharding.reshard(x, NamedSharding(mesh, P("batch", None)))
        x = jnp.tanh(x @ jax.sharding.reshard(p["W3"], NamedSharding(mesh, P())) + p["b3"])
        return x @ p["W4"] + p["b4"]

    return _descent(params, x, y, steps, rate, predict)


def train_tp__wrong_last_loss(params, x, y, steps, rate, *, mesh):
    """Returns the last loss as a number."""

    def predict(p, x):
        for k in (1, 2):
            x = jnp.tanh(x @ p[f"W{k}"] + p[f"b{k}"])
        x = jnp.tanh(jnp.dot(x, p["W3"], out_sharding=NamedSharding(mesh, P("batch", None))) + p["b3"])
        return x @ p["W4"] + p["b4"]

    losses, params = _descent(params, x, y, steps, rate, predict)
    return losses[-1], params


_large = 8192 * 8192 * 4 / 1e6
_rest = 4 * (784 * 8192 + 8192 * 10 + 3 * 8192 + 10) / 1e6
tp_costs__right_plain = {
    "MB of parameters on a device, DP": 2 * _large + _rest,
    "MB of parameters on a device, DP + TP": _large + _rest,
    "MB sent over batch, DP": 2 * 7 / 8 * (2 * _large + _rest),
    "MB sent over batch, DP + TP": 2 * 3 / 4 * (_large + _rest),
    "MB sent over model, DP + TP": 2 * 2048 * 8192 * 4 / 1e6,
}
"""As it is."""

tp_costs__wrong_one_sum = tp_costs__right_plain | {"MB sent over model, DP + TP": 2048 * 8192 * 4 / 1e6}
"""Forgets the all_reduce of the backward pass."""

tp_costs__wrong_once = tp_costs__right_plain | {
    "MB sent over batch, DP": 7 / 8 * (2 * _large + _rest),
    "MB sent over batch, DP + TP": 3 / 4 * (_large + _rest),
}
"""Forgets the 2 of an all_reduce."""

tp_costs__wrong_all_divided = tp_costs__right_plain | {
    "MB of parameters on a device, DP": (2 * _large + _rest) / 8,
    "MB of parameters on a device, DP + TP": (2 * _large + _rest) / 2,
}
"""Divides parameters by the devices."""

tp_costs__wrong_n_is_8 = tp_costs__right_plain | {"MB sent over batch, DP + TP": 2 * 7 / 8 * (_large + _rest)}
"""Takes eight devices along batch also for 4 × 2."""

tp_costs__wrong_bytes = {name: value * 1e6 for name, value in tp_costs__right_plain.items()}
"""Gives bytes in place of MB."""


def _grads(params, x, y, mesh, differentiate, vma=True):
    """The pair's shard_map, around a way to take the gradient."""
    pair = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def body(p, x, y):
        def own(p):
            part = jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"]
            return jnp.mean((jax.lax.psum(part, "model") + p["b2"] - y) ** 2)

        return differentiate(own, p)

    specs = pair, P("batch", None), P("batch", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P(), pair), check_vma=vma)(params, x, y)


def tp_grads__right_plain(params, x, y, *, mesh):
    """As in the hints."""
    pair = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def body(p, x, y):
        def loss(p):
            part = jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"]
            out = jax.lax.psum(part, "model") + p["b2"]
            return jax.lax.pmean(jnp.mean((out - y) ** 2), "batch")

        return jax.value_and_grad(loss)(p)

    specs = pair, P("batch", None), P("batch", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P(), pair))(params, x, y)


def tp_grads__right_outside(params, x, y, *, mesh):
    """Differentiates from outside."""
    pair = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def body(p, x, y):
        out = jax.lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"], "model") + p["b2"]
        return jax.lax.pmean(jnp.mean((out - y) ** 2), "batch")

    loss = jax.shard_map(body, mesh=mesh, in_specs=(pair, P("batch", None), P("batch", None)), out_specs=P())
    return jax.value_and_grad(loss)(params, x, y)


def tp_grads__right_divided(params, x, y, *, mesh):
    """Lets the check sum over batch, and divides by hand."""

    def differentiate(own, p):
        value, grads = jax.value_and_grad(own)(p)
        return jax.lax.pmean(value, "batch"), jax.tree.map(lambda g: g / mesh.shape["batch"], grads)

    return _grads(params, x, y, mesh, differentiate)


def tp_grads__wrong_recipe(params, x, y, *, mesh):
    """The recipe of older code: check off, pmean behind."""
    return _grads(params, x, y, mesh, lambda own, p: jax.lax.pmean(jax.value_and_grad(own)(p), "batch"), vma=False)


def tp_grads__wrong_summed(params, x, y, *, mesh):
    """Forgets that the gradient is summed over batch already."""

    def differentiate(own, p):
        value, grads = jax.value_and_grad(own)(p)
        return jax.lax.pmean(value, "batch"), grads

    return _grads(params, x, y, mesh, differentiate)


def tp_grads__wrong_pmean_behind(params, x, y, *, mesh):
    """pmean of the gradients with the check on."""

    def differentiate(own, p):
        value, grads = jax.value_and_grad(own)(p)
        return jax.lax.pmean(value, "batch"), jax.tree.map(lambda g: jax.lax.pmean(g, "batch"), grads)

    return _grads(params, x, y, mesh, differentiate)


def tp_grads__wrong_psum_loss(params, x, y, *, mesh):
    """psum over batch in the loss."""
    return _grads(params, x, y, mesh, lambda own, p: jax.value_and_grad(lambda p: jax.lax.psum(own(p), "batch"))(p))


def tp_grads__wrong_all_divided_by_model(params, x, y, *, mesh):
    """The recipe, and everything divided by the devices along model: b2 is too small."""

    def differentiate(own, p):
        value, grads = jax.lax.pmean(jax.value_and_grad(own)(p), "batch")
        return value, jax.tree.map(lambda g: g / mesh.shape["model"], grads)

    return _grads(params, x, y, mesh, differentiate, vma=False)


def tp_grads__wrong_divided_by_four(params, x, y, *, mesh):
    """Divides by the notebook's four."""

    def differentiate(own, p):
        value, grads = jax.value_and_grad(own)(p)
        return jax.lax.pmean(value, "batch"), jax.tree.map(lambda g: g / 4, grads)

    return _grads(params, x, y, mesh, differentiate)


def tp_grads__wrong_b2_on_the_parts(params, x, y, *, mesh):
    """Adds b2 before the sum."""
    pair = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def body(p, x, y):
        def loss(p):
            out = jax.lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"], "model")
            return jax.lax.pmean(jnp.mean((out - y) ** 2), "batch")

        return jax.value_and_grad(loss)(p)

    specs = pair, P("batch", None), P("batch", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P(), pair))(params, x, y)


def local_heads__right_plain(heads, kv_heads, n):
    """As in the hints."""
    if heads % kv_heads or heads % n or (kv_heads % n and n % kv_heads):
        raise ValueError(f"{heads} and {kv_heads} heads cannot be dealt out to {n} devices")
    return heads // n, max(1, kv_heads // n)


def local_heads__right_branches(heads, kv_heads, n):
    """In branches."""
    if heads % n != 0 or heads % kv_heads != 0:
        raise ValueError("query heads")
    if kv_heads >= n and kv_heads % n == 0:
        return heads // n, kv_heads // n
    if kv_heads < n and n % kv_heads == 0:
        return heads // n, 1
    raise ValueError("key-value heads")


def local_heads__wrong_no_copies(heads, kv_heads, n):
    """Refuses fewer key-value heads than devices."""
    if heads % n or kv_heads % n:
        raise ValueError("not evenly")
    return heads // n, kv_heads // n


def local_heads__wrong_zero(heads, kv_heads, n):
    """Zero heads where there are fewer than devices."""
    if heads % n or (kv_heads % n and n % kv_heads):
        raise ValueError("not evenly")
    return heads // n, kv_heads // n


def local_heads__wrong_never_raises(heads, kv_heads, n):
    """Rounds down without a word."""
    return heads // n, max(1, kv_heads // n)


def local_heads__wrong_floats(heads, kv_heads, n):
    """Divides with one slash."""
    if heads % n or (kv_heads % n and n % kv_heads):
        raise ValueError("not evenly")
    return heads / n, max(1, kv_heads / n)


def local_heads__wrong_assert(heads, kv_heads, n):
    """Asserts, where a ValueError was asked for."""
    assert heads % n == 0 and (kv_heads % n == 0 or n % kv_heads == 0)
    return heads // n, max(1, kv_heads // n)


def local_heads__wrong_or(heads, kv_heads, n):
    """One of the two conditions is enough to raise: `or` for `and`."""
    if heads % n or kv_heads % n or n % kv_heads:
        raise ValueError("not evenly")
    return heads // n, max(1, kv_heads // n)


def _attention(x, w_qkv, w_out, mesh, body, vma=True, out=P("batch")):
    """A body for the heads."""
    specs = P("batch"), P(None, "model"), P("model")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=out, check_vma=vma)(x, w_qkv, w_out)


def tp_attention__right_plain(x, w_qkv, w_out, *, mesh):
    """As in the hints."""

    def body(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / jnp.sqrt(q.shape[-1])
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits), v)
        return jax.lax.psum(jnp.einsum("bthk,hkd->btd", mixed, w_out), "model")

    specs = P("batch"), P(None, "model"), P("model")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("batch"))(x, w_qkv, w_out)


def tp_attention__right_head_by_head(x, w_qkv, w_out, *, mesh):
    """A loop over the device's heads."""

    def body(x, w_qkv, w_out):
        total = 0
        for head in range(w_out.shape[0]):
            q, k, v = (x @ w_qkv[:, head, c] for c in range(3))
            weights = jax.nn.softmax(q @ k.mT / q.shape[-1] ** 0.5, axis=-1)
            total += weights @ v @ w_out[head]
        return jax.lax.psum(total, "model")

    return _attention(x, w_qkv, w_out, mesh, body)


def tp_attention__wrong_no_sum(x, w_qkv, w_out, *, mesh):
    """Forgets the sum, the check silenced."""

    def body(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / jnp.sqrt(q.shape[-1])
        return jnp.einsum("bhts,bshk,hkd->btd", jax.nn.softmax(logits), v, w_out)

    return _attention(x, w_qkv, w_out, mesh, body, vma=False)


def tp_attention__wrong_no_scale(x, w_qkv, w_out, *, mesh):
    """Forgets 1/√K."""

    def body(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k)
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits), v)
        return jax.lax.psum(jnp.einsum("bthk,hkd->btd", mixed, w_out), "model")

    return _attention(x, w_qkv, w_out, mesh, body)


def tp_attention__wrong_softmax_over_queries(x, w_qkv, w_out, *, mesh):
    """softmax along the wrong dimension."""

    def body(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / jnp.sqrt(q.shape[-1])
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-2), v)
        return jax.lax.psum(jnp.einsum("bthk,hkd->btd", mixed, w_out), "model")

    return _attention(x, w_qkv, w_out, mesh, body)


def tp_attention__wrong_causal(x, w_qkv, w_out, *, mesh):
    """Masks the future, though every token looks at every token."""

    def body(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / jnp.sqrt(q.shape[-1])
        logits = jnp.where(jnp.tril(jnp.ones(logits.shape[-2:], bool)), logits, -jnp.inf)
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits), v)
        return jax.lax.psum(jnp.einsum("bthk,hkd->btd", mixed, w_out), "model")

    return _attention(x, w_qkv, w_out, mesh, body)


def tp_attention__wrong_logits_summed(x, w_qkv, w_out, *, mesh):
    """Sums the logits over model too, as if heads were cut."""

    def body(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jax.lax.psum(jnp.einsum("bthk,bshk->bhts", q, k) / jnp.sqrt(q.shape[-1]), "model")
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits), v)
        return jax.lax.psum(jnp.einsum("bthk,hkd->btd", mixed, w_out), "model")

    return _attention(x, w_qkv, w_out, mesh, body)


def tp_attention__wrong_heads_gathered(x, w_qkv, w_out, *, mesh):
    """Gathers all heads and all of w_out."""

    def body(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / jnp.sqrt(q.shape[-1])
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits), v)
        mixed = jax.lax.all_gather(mixed, "model", axis=2, tiled=True)
        return jnp.einsum("bthk,hkd->btd", mixed, jax.lax.all_gather(w_out, "model", axis=0, tiled=True))

    return _attention(x, w_qkv, w_out, mesh, body, vma=False)


def tp_attention__wrong_k_and_v_swapped(x, w_qkv, w_out, *, mesh):
    """Unpacks q, v, k."""

    def body(x, w_qkv, w_out):
        q, v, k = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / jnp.sqrt(q.shape[-1])
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits), v)
        return jax.lax.psum(jnp.einsum("bthk,hkd->btd", mixed, w_out), "model")

    return _attention(x, w_qkv, w_out, mesh, body)


def _embedding(table, ids, mesh, body, vma=True):
    """A body for the words."""
    specs = P("model"), P("batch")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("batch"), check_vma=vma)(table, ids)


def vocab_embedding__right_plain(table, ids, *, mesh):
    """As in the hints."""

    def body(table, ids):
        local = ids - jax.lax.axis_index("model") * table.shape[0]
        mine = (local >= 0) & (local < table.shape[0])
        rows = table[jnp.where(mine, local, 0)]
        return jax.lax.psum(jnp.where(mine[..., None], rows, 0), "model")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


def vocab_embedding__right_one_hot(table, ids, *, mesh):
    """By a product with one-hot rows: words of others give zeros by themselves."""

    def body(table, ids):
        local = ids - jax.lax.axis_index("model") * table.shape[0]
        return jax.lax.psum(jax.nn.one_hot(local, table.shape[0], dtype=table.dtype) @ table, "model")

    return _embedding(table, ids, mesh, body)


def vocab_embedding__wrong_no_mask(table, ids, *, mesh):
    """Clips in place of a mask."""

    def body(table, ids):
        local = ids - jax.lax.axis_index("model") * table.shape[0]
        return jax.lax.psum(jnp.take(table, local, axis=0, mode="clip"), "model")

    return _embedding(table, ids, mesh, body)


def vocab_embedding__wrong_fill(table, ids, *, mesh):
    """Fills with zeros: negative numbers count from the end."""

    def body(table, ids):
        local = ids - jax.lax.axis_index("model") * table.shape[0]
        return jax.lax.psum(jnp.take(table, local, axis=0, mode="fill", fill_value=0), "model")

    return _embedding(table, ids, mesh, body)


def vocab_embedding__wrong_one_side(table, ids, *, mesh):
    """A mask with one side only."""

    def body(table, ids):
        local = ids - jax.lax.axis_index("model") * table.shape[0]
        mine = local >= 0
        return jax.lax.psum(jnp.where(mine[..., None], table[jnp.where(mine, local, 0)], 0), "model")

    return _embedding(table, ids, mesh, body)


def vocab_embedding__wrong_off_by_one(table, ids, *, mesh):
    """The last word of a device counts as the next one's: <= for <."""

    def body(table, ids):
        local = ids - jax.lax.axis_index("model") * table.shape[0]
        mine = (local >= 0) & (local <= table.shape[0])
        return jax.lax.psum(jnp.where(mine[..., None], table[jnp.where(mine, local, 0)], 0), "model")

    return _embedding(table, ids, mesh, body)


def vocab_embedding__wrong_no_shift(table, ids, *, mesh):
    """Forgets to shift."""

    def body(table, ids):
        mine = (ids >= 0) & (ids < table.shape[0])
        return jax.lax.psum(jnp.where(mine[..., None], table[jnp.where(mine, ids, 0)], 0), "model")

    return _embedding(table, ids, mesh, body)


def vocab_embedding__wrong_table_gathered(table, ids, *, mesh):
    """Gathers the table."""

    def body(table, ids):
        return jax.lax.all_gather(table, "model", axis=0, tiled=True)[ids]

    return _embedding(table, ids, mesh, body, vma=False)


def vocab_embedding__wrong_shift_by_batch(table, ids, *, mesh):
    """Asks for the place along the wrong axis."""

    def body(table, ids):
        local = ids - jax.lax.axis_index("batch") * table.shape[0]
        mine = (local >= 0) & (local < table.shape[0])
        return jax.lax.psum(jnp.where(mine[..., None], table[jnp.where(mine, local, 0)], 0), "model")

    return _embedding(table, ids, mesh, body)


def _entropy(logits, targets, mesh, body, vma=True):
    """A body for the loss of a vocabulary in parts."""
    specs = P("batch", "model"), P("batch")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("batch"), check_vma=vma)(logits, targets)


def _target(logits, targets):
    """The target's logit."""
    local = targets - jax.lax.axis_index("model") * logits.shape[1]
    mine = (local >= 0) & (local < logits.shape[1])
    found = jnp.take_along_axis(logits, jnp.where(mine, local, 0)[:, None], axis=1)[:, 0]
    return jax.lax.psum(jnp.where(mine, found, 0), "model")


def vocab_cross_entropy__right_plain(logits, targets, *, mesh):
    """As in the hints."""

    def body(logits, targets):
        top = jax.lax.pmax(jax.lax.stop_gradient(logits.max(axis=1)), "model")
        total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(axis=1), "model")
        local = targets - jax.lax.axis_index("model") * logits.shape[1]
        mine = (local >= 0) & (local < logits.shape[1])
        found = jnp.take_along_axis(logits, jnp.where(mine, local, 0)[:, None], axis=1)[:, 0]
        target = jax.lax.psum(jnp.where(mine, found, 0), "model")
        return top + jnp.log(total) - target

    specs = P("batch", "model"), P("batch")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("batch"))(logits, targets)


def vocab_cross_entropy__right_one_hot(logits, targets, *, mesh):
    """The target by a one-hot, shifted logits throughout, one psum for both sums."""

    def body(logits, targets):
        top = jax.lax.pmax(jnp.max(jax.lax.stop_gradient(logits), axis=-1, keepdims=True), "model")
        shifted = logits - top
        first = jax.lax.axis_index("model") * logits.shape[-1]
        hit = (targets[:, None] - first) == jnp.arange(logits.shape[-1])
        total, target = jax.lax.psum((jnp.exp(shifted).sum(-1), jnp.where(hit, shifted, 0.0).sum(-1)), "model")
        return jnp.log(total) - target

    return _entropy(logits, targets, mesh, body)


def vocab_cross_entropy__wrong_local_max(logits, targets, *, mesh):
    """Each device its own maximum."""

    def body(logits, targets):
        top = jax.lax.stop_gradient(logits.max(axis=1))
        total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(axis=1), "model")
        return jax.lax.pmax(top, "model") + jnp.log(total) - _target(logits, targets)

    return _entropy(logits, targets, mesh, body)


def vocab_cross_entropy__wrong_no_max(logits, targets, *, mesh):
    """As on paper."""

    def body(logits, targets):
        total = jax.lax.psum(jnp.exp(logits).sum(axis=1), "model")
        return jnp.log(total) - _target(logits, targets)

    return _entropy(logits, targets, mesh, body)


def vocab_cross_entropy__wrong_differentiated_max(logits, targets, *, mesh):
    """stop_gradient outside of the pmax."""

    def body(logits, targets):
        top = jax.lax.stop_gradient(jax.lax.pmax(logits.max(axis=1), "model"))
        total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(axis=1), "model")
        return top + jnp.log(total) - _target(logits, targets)

    return _entropy(logits, targets, mesh, body)


def vocab_cross_entropy__wrong_max_forgotten(logits, targets, *, mesh):
    """Does not add the maximum again."""

    def body(logits, targets):
        top = jax.lax.pmax(jax.lax.stop_gradient(logits.max(axis=1)), "model")
        total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(axis=1), "model")
        return jnp.log(total) - _target(logits, targets)

    return _entropy(logits, targets, mesh, body)


def vocab_cross_entropy__right_unchecked(logits, targets, *, mesh):
    """The right lines with the check off: from outside the gradient is right all the same."""

    def body(logits, targets):
        top = jax.lax.pmax(jax.lax.stop_gradient(logits.max(axis=1)), "model")
        total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(axis=1), "model")
        return jnp.log(total) + top - _target(logits, targets)

    return _entropy(logits, targets, mesh, body, vma=False)


def vocab_cross_entropy__wrong_target_stopped(logits, targets, *, mesh):
    """Stops the gradient of the target as well."""

    def body(logits, targets):
        top = jax.lax.pmax(jax.lax.stop_gradient(logits.max(axis=1)), "model")
        total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(axis=1), "model")
        return jnp.log(total) + top - jax.lax.stop_gradient(_target(logits, targets))

    return _entropy(logits, targets, mesh, body)


def vocab_cross_entropy__wrong_target_unmasked(logits, targets, *, mesh):
    """Looks the target up without a mask."""

    def body(logits, targets):
        top = jax.lax.pmax(jax.lax.stop_gradient(logits.max(axis=1)), "model")
        total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(axis=1), "model")
        local = targets - jax.lax.axis_index("model") * logits.shape[1]
        found = jnp.take_along_axis(logits, local[:, None], axis=1, mode="clip")[:, 0]
        return top + jnp.log(total) - jax.lax.psum(found, "model")

    return _entropy(logits, targets, mesh, body)


def vocab_cross_entropy__wrong_sign(logits, targets, *, mesh):
    """Target minus log-sum."""

    def body(logits, targets):
        top = jax.lax.pmax(jax.lax.stop_gradient(logits.max(axis=1)), "model")
        total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(axis=1), "model")
        return _target(logits, targets) - top - jnp.log(total)

    return _entropy(logits, targets, mesh, body)


def vocab_cross_entropy__wrong_gathered(logits, targets, *, mesh):
    """Gathers all logits."""

    def body(logits, targets):
        whole = jax.lax.all_gather(logits, "model", axis=1, tiled=True)
        return -jnp.take_along_axis(jax.nn.log_softmax(whole), targets[:, None], axis=1)[:, 0]

    return _entropy(logits, targets, mesh, body, vma=False)


def vocab_cross_entropy__wrong_mean(logits, targets, *, mesh):
    """Returns the mean over the rows on every row."""

    def body(logits, targets):
        top = jax.lax.pmax(jax.lax.stop_gradient(logits.max(axis=1)), "model")
        total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(axis=1), "model")
        losses = top + jnp.log(total) - _target(logits, targets)
        return jnp.broadcast_to(losses.mean(), losses.shape)

    return _entropy(logits, targets, mesh, body)


region_costs__right_plain = {
    "bytes sent with an all_reduce": 49152,
    "bytes sent with all_gather and reduce_scatter": 49152,
    "entries of x on a device, whole sequences": 8192,
    "entries of x on a device, sequences cut": 2048,
}
"""As it is."""

region_costs__wrong_twice = region_costs__right_plain | {"bytes sent with all_gather and reduce_scatter": 98304}
"""Believes that two collectives send twice as much."""

region_costs__wrong_entries = region_costs__right_plain | {
    "bytes sent with an all_reduce": 12288,
    "bytes sent with all_gather and reduce_scatter": 12288,
}
"""Counts entries where bytes are asked for."""

region_costs__wrong_whole_x = region_costs__right_plain | {
    "entries of x on a device, whole sequences": 16384,
    "entries of x on a device, sequences cut": 4096,
}
"""Forgets that the examples are cut as well."""


def _sequence(x, scale, W1, W2, mesh, body, vma=True):
    """A body for cut sequences."""
    specs = P("batch", "model"), P(), P(None, "model"), P("model", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("batch", "model"), check_vma=vma)(
        x, scale, W1, W2
    )


def _norm(x, scale):
    return x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale


def sequence_parallel__right_plain(x, scale, W1, W2, *, mesh):
    """As in the hints."""

    def body(x, scale, W1, W2):
        x = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        x = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        part = jax.nn.relu(x @ W1) @ W2
        return jax.lax.psum_scatter(part, "model", scatter_dimension=1, tiled=True)

    specs = P("batch", "model"), P(), P(None, "model"), P("model", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("batch", "model"))(x, scale, W1, W2)


def sequence_parallel__wrong_norm_after(x, scale, W1, W2, *, mesh):
    """Gathers first, norms all tokens: the same bytes, more work. (Right until the text asked for own tokens only.)"""

    def body(x, scale, W1, W2):
        x = _norm(jax.lax.all_gather(x, "model", axis=1, tiled=True), scale)
        return jax.lax.psum_scatter(jax.nn.relu(x @ W1) @ W2, "model", scatter_dimension=1, tiled=True)

    return _sequence(x, scale, W1, W2, mesh, body)


def sequence_parallel__wrong_all_reduce(x, scale, W1, W2, *, mesh):
    """All_reduce, and takes its own tokens."""

    def body(x, scale, W1, W2):
        own = x.shape[1]
        x = jax.lax.all_gather(_norm(x, scale), "model", axis=1, tiled=True)
        whole = jax.lax.psum(jax.nn.relu(x @ W1) @ W2, "model")
        return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("model") * own, own, axis=1)

    return _sequence(x, scale, W1, W2, mesh, body)


def sequence_parallel__wrong_features_scattered(x, scale, W1, W2, *, mesh):
    """Gathers and scatters along the features."""

    def body(x, scale, W1, W2):
        x = jax.lax.all_gather(_norm(x, scale), "model", axis=1, tiled=True)
        return jax.lax.psum_scatter(jax.nn.relu(x @ W1) @ W2, "model", scatter_dimension=2, tiled=True)

    return _sequence(x, scale, W1, W2, mesh, body)


def sequence_parallel__right_along_examples(x, scale, W1, W2, *, mesh):
    """Gathers and scatters along the examples: each token is worked on by itself, so that any dimension will do."""

    def body(x, scale, W1, W2):
        x = jax.lax.all_gather(_norm(x, scale), "model", axis=0, tiled=True)
        return jax.lax.psum_scatter(jax.nn.relu(x @ W1) @ W2, "model", scatter_dimension=0, tiled=True)

    return _sequence(x, scale, W1, W2, mesh, body)


def sequence_parallel__wrong_no_gather(x, scale, W1, W2, *, mesh):
    """Own tokens only, and a psum."""

    def body(x, scale, W1, W2):
        return jax.lax.psum(jax.nn.relu(_norm(x, scale) @ W1) @ W2, "model")

    return _sequence(x, scale, W1, W2, mesh, body)


def sequence_parallel__wrong_no_root(x, scale, W1, W2, *, mesh):
    """Divides by the mean square, without its root."""

    def body(x, scale, W1, W2):
        x = x / (jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        x = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        return jax.lax.psum_scatter(jax.nn.relu(x @ W1) @ W2, "model", scatter_dimension=1, tiled=True)

    return _sequence(x, scale, W1, W2, mesh, body)


def sequence_parallel__wrong_eps_forgotten(x, scale, W1, W2, *, mesh):
    """Leaves the epsilon away."""

    def body(x, scale, W1, W2):
        x = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True)) * scale
        x = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        return jax.lax.psum_scatter(jax.nn.relu(x @ W1) @ W2, "model", scatter_dimension=1, tiled=True)

    return _sequence(x, scale, W1, W2, mesh, body)


def sequence_parallel__wrong_sum_for_mean(x, scale, W1, W2, *, mesh):
    """Sum of squares for their mean."""

    def body(x, scale, W1, W2):
        x = x / jnp.sqrt(jnp.sum(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        x = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        return jax.lax.psum_scatter(jax.nn.relu(x @ W1) @ W2, "model", scatter_dimension=1, tiled=True)

    return _sequence(x, scale, W1, W2, mesh, body)


init_scale__right_plain = {
    "spread of W2, drawn whole": 1 / 32,
    "spread of device 1's rows of it": 1 / 32,
    "spread of rows drawn by local fan-in": 1 / 16,
    "variance of the outputs, drawn whole": 1,
    "variance of the outputs, by local fan-in": 4,
    "spread of W1's columns, by local fan-in": 512**-0.5,
}
"""As it is."""

init_scale__wrong_variance = init_scale__right_plain | {
    "spread of W2, drawn whole": 1 / 1024,
    "spread of rows drawn by local fan-in": 1 / 256,
}
"""Takes the variance for the spread."""

init_scale__wrong_twice_not_four = init_scale__right_plain | {"variance of the outputs, by local fan-in": 2}
"""Takes the outputs' spread for their variance."""

init_scale__wrong_rows_differ = init_scale__right_plain | {
    "spread of device 1's rows of it": 1 / 16,
    "spread of W1's columns, by local fan-in": 256**-0.5,
}
"""Believes that a part is spread more, and that columns have fewer inputs."""


def init_rows__right_plain(key, fan_in, fan_out, *, mesh):
    """As in the hints."""
    W = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / jnp.sqrt(fan_in)
    return jax.lax.with_sharding_constraint(W, NamedSharding(mesh, P("model", None)))


def init_rows__right_out_shardings(key, fan_in, fan_out, *, mesh):
    """With out_shardings."""

    def whole(key):
        return jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) * fan_in**-0.5

    return jax.jit(whole, out_shardings=NamedSharding(mesh, P("model")))(key)


def init_rows__wrong_local_fan_in(key, fan_in, fan_out, *, mesh):
    """Divides by the root of the local rows."""
    W = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / (fan_in / mesh.shape["model"]) ** 0.5
    return jax.lax.with_sharding_constraint(W, NamedSharding(mesh, P("model", None)))


def init_rows__wrong_folded(key, fan_in, fan_out, *, mesh):
    """A key for each device, in shard_map."""

    def body(key):
        own = jax.random.fold_in(jax.random.wrap_key_data(key), jax.lax.axis_index("model"))
        return jax.random.normal(own, (fan_in // mesh.shape["model"], fan_out)) / fan_in**0.5

    return jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P("model", None))(key)


def init_rows__wrong_same_rows(key, fan_in, fan_out, *, mesh):
    """The same rows on every device."""

    def body(key):
        own = jax.random.wrap_key_data(key)
        return jax.random.normal(own, (fan_in // jax.lax.axis_size("model"), fan_out)) / fan_in**0.5

    return jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P("model", None))(key)


def init_rows__wrong_columns(key, fan_in, fan_out, *, mesh):
    """Cuts by columns."""
    W = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / fan_in**0.5
    return jax.lax.with_sharding_constraint(W, NamedSharding(mesh, P(None, "model")))


def init_rows__wrong_fan_out(key, fan_in, fan_out, *, mesh):
    """Divides by the root of the outputs."""
    W = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / fan_out**0.5
    return jax.lax.with_sharding_constraint(W, NamedSharding(mesh, P("model", None)))


def init_rows__wrong_not_cut(key, fan_in, fan_out, *, mesh):
    """Leaves the matrix whole."""
    return jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / fan_in**0.5


def train_tp__wrong_two_steps(params, x, y, steps, rate, *, mesh):
    """The number of steps is written down."""
    out = NamedSharding(mesh, P("batch", None))

    def loss(p):
        inner = jnp.tanh(x @ p["W1"] + p["b1"])
        inner = jnp.tanh(inner @ p["W2"] + p["b2"])
        inner = jnp.tanh(jnp.dot(inner, p["W3"], out_sharding=out) + p["b3"])
        return jnp.mean((inner @ p["W4"] + p["b4"] - y) ** 2)

    losses = []
    for _ in range(2):
        mean, slopes = jax.value_and_grad(loss)(params)
        params = jax.tree.map(lambda p, g: p - rate * g, params, slopes)
        losses.append(mean)
    return jnp.stack(losses), params


def local_heads__wrong_more_devices_unchecked(heads, kv_heads, n):
    """Nothing is asked where there are more devices than key-value heads."""
    if heads % kv_heads or heads % n or (kv_heads > n and kv_heads % n):
        raise ValueError("the heads cannot be dealt out")
    return heads // n, max(1, kv_heads // n)


def tp_mlp__right_in_two_collectives(params, x, *, mesh):
    """An all_reduce in its two halves: it sends no more than one."""

    def on_device(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        part = jax.lax.psum_scatter(hidden @ p["W2"], "model", scatter_dimension=1, tiled=True)
        return jax.nn.relu(jax.lax.all_gather(part, "model", axis=1, tiled=True) + p["b2"])

    return _mlp(params, x, mesh, on_device, vma=False)


def tp_attention__wrong_root_of_eight(x, w_qkv, w_out, *, mesh):
    """The length of a head as in the notebook, written down."""

    def on_device(x, w, o):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w)
        weights = jax.nn.softmax(jnp.einsum("bthk,bshk->bhts", q, k) / 8**0.5, axis=-1)
        return jax.lax.psum(jnp.einsum("bhts,bshk,hkd->btd", weights, v, o), "model")

    ins = P("batch"), P(None, "model"), P("model")
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=P("batch"))(x, w_qkv, w_out)


def local_heads__wrong_both_alike(heads, kv_heads, n):
    """Lets query heads be copied, too, where there are more devices than heads."""
    if heads % kv_heads or (heads % n and n % heads) or (kv_heads % n and n % kv_heads):
        raise ValueError("not evenly")
    return max(1, heads // n), max(1, kv_heads // n)


def local_heads__wrong_one_of_the_other(heads, kv_heads, n):
    """Query heads may share key-value heads, or the other way round."""
    if max(heads, kv_heads) % min(heads, kv_heads) or heads % n or (kv_heads % n and n % kv_heads):
        raise ValueError("not evenly")
    return heads // n, max(1, kv_heads // n)


def tp_block__wrong_no_epsilon(params, x, *, mesh):
    """Norms without the small term."""

    def norm(x, scale):
        return x * jax.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True)) * scale

    def attend(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        logits = jnp.where(jnp.tri(x.shape[1], dtype=bool), logits, -jnp.inf)
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        return jnp.einsum("bthk,hkd->btd", mixed, w_out)

    def gather(x):
        return jax.lax.all_gather(x, "model", axis=1, tiled=True)

    def scatter(parts):
        return jax.lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)

    def on_device(p, x):
        x = x + scatter(attend(gather(norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        return x + scatter(jax.nn.silu(gather(norm(x, p["scale_2"])) @ p["W1"]) @ p["W2"])

    columns, rows, tokens = P(None, "model"), P("model"), P("batch", "model")
    layouts = {"scale_1": P(), "w_qkv": columns, "w_out": rows, "scale_2": P(), "W1": columns, "W2": rows}
    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, tokens), out_specs=tokens)(params, x)


def sequence_parallel__wrong_ring_of_weights(x, scale, W1, W2, *, mesh):
    """Tokens stay, and the devices' weights go round."""

    def on_device(x, scale, W1, W2):
        n, normed, total = jax.lax.axis_size("model"), _norm(x, scale), jnp.zeros_like(x)
        for turn in range(n):
            total = total + jax.nn.relu(normed @ W1) @ W2
            if turn < n - 1:
                W1, W2 = jax.lax.ppermute((W1, W2), "model", [(k, (k + 1) % n) for k in range(n)])
        return total

    cut = P("batch", "model")
    specs = cut, P(), P(None, "model"), P("model")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=cut)(x, scale, W1, W2)


def sequence_parallel__right_rows(x, scale, W1, W2, *, mesh):
    """Tokens of all sequences as the rows of one matrix."""

    def on_device(x, scale, W1, W2):
        rows = _norm(x, scale).reshape(-1, x.shape[-1])
        parts = jax.nn.relu(jax.lax.all_gather(rows, "model", tiled=True) @ W1) @ W2
        return jax.lax.psum_scatter(parts, "model", tiled=True).reshape(x.shape)

    cut = P("batch", "model")
    specs = cut, P(), P(None, "model"), P("model")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=cut)(x, scale, W1, W2)


def vocab_cross_entropy__right_logarithms_gathered(logits, targets, *, mesh):
    """Each device's own logsumexp, gathered, and the logsumexp of these."""

    def on_device(logits, targets):
        own = jax.nn.logsumexp(logits, axis=1)
        total = jax.nn.logsumexp(jax.lax.all_gather(own, "model"), axis=0)
        words = jnp.arange(logits.shape[1]) + jax.lax.axis_index("model") * logits.shape[1]
        picked = jnp.sum(jnp.where(words == targets[:, None], logits, 0), axis=1)
        return total - jax.lax.psum(picked, "model")

    specs = P("batch", "model"), P("batch")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("batch"), check_vma=False)(logits, targets)
