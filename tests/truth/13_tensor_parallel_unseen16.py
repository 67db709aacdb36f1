"""Answers to lesson 13, sixteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- where_it_goes

where_it_goes__right_table = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}

# Hidden units are finished numbers, so a device can do to them whatever it likes, a softmax as well.
where_it_goes__wrong_finished = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "on the parts",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}

# relu looks at one number at a time, so it makes no difference where it stands: zeros add nothing to the sum.
where_it_goes__wrong_elementwise = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "after the sum",
    "relu of the result": "either way",
    "halving the result": "either way",
}

# Adding and halving are both linear, and what is linear may be exchanged with a sum.
where_it_goes__wrong_linear = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "either way",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}

# W1 is cut too, so its product is only a part as well: a bias must not be added twice, and relu has to wait.
where_it_goes__wrong_bothpartial = {
    "adding b1 to the hidden layer": "after the sum",
    "relu of the hidden layer": "after the sum",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}


# ---------------------------------------------------------------- local_heads


def local_heads__right_gcd(heads, kv_heads, n):
    """(query heads, key-value heads) on one of n devices; ValueError if they cannot be dealt out evenly."""
    from math import gcd

    common = gcd(kv_heads, n)
    if heads % kv_heads or heads % n or common not in (kv_heads, n):
        raise ValueError(f"{heads} heads, {kv_heads} key-value heads: not for {n} devices")
    return heads // n, kv_heads // common


# Both kinds of heads are dealt out whole, so both have to be divisible by the devices (no copies).
def local_heads__wrong_nocopies(heads, kv_heads, n):
    """(query heads, key-value heads) on one of n devices; ValueError if they cannot be dealt out evenly."""
    if heads % kv_heads != 0 or heads % n != 0 or kv_heads % n != 0:
        raise ValueError("cannot be dealt out evenly")
    return heads // n, kv_heads // n


# Where there are too few key-value heads for all devices, each device gets copies of all of them.
def local_heads__wrong_allcopied(heads, kv_heads, n):
    """(query heads, key-value heads) on one of n devices; ValueError if they cannot be dealt out evenly."""
    if heads % kv_heads or heads % n or (kv_heads % n and n % kv_heads):
        raise ValueError("heads cannot be dealt out evenly")
    if kv_heads < n:
        return heads // n, kv_heads
    return heads // n, kv_heads // n


# Only devices matter for dealing out; how many query heads share a key-value head was not looked at.
def local_heads__wrong_devicesonly(heads, kv_heads, n):
    """(query heads, key-value heads) on one of n devices; ValueError if they cannot be dealt out evenly."""
    if heads % n:
        raise ValueError("query heads")
    if max(kv_heads, n) % min(kv_heads, n):
        raise ValueError("key-value heads")
    return heads // n, max(1, kv_heads // n)


# Key-value heads may be copied, so they always fit: round up, and only the query heads can fail.
def local_heads__wrong_roundup(heads, kv_heads, n):
    """(query heads, key-value heads) on one of n devices; ValueError if they cannot be dealt out evenly."""
    if heads % kv_heads or heads % n:
        raise ValueError("query heads cannot be dealt out evenly")
    return heads // n, -(-kv_heads // n)


# ---------------------------------------------------------------- train_tp


def train_tp__right_layers(params, x, y, steps, rate, *, mesh):
    """Gradient descent on Explicit axes: the losses before each step, and the parameters after all."""
    rows = NamedSharding(mesh, P("batch", None))

    def error(p):
        h = x
        for k in (1, 2, 3, 4):
            if k == 3:  # its contraction is cut over model: say how the sum ends
                h = jnp.dot(h, p["W3"], out_sharding=rows) + p["b3"]
            else:
                h = h @ p[f"W{k}"] + p[f"b{k}"]
            if k < 4:
                h = jnp.tanh(h)
        return jnp.mean(jnp.square(h - y))

    both = jax.jit(jax.value_and_grad(error))
    history, p = [], dict(params)
    while len(history) < steps:
        value, slope = both(p)
        history.append(value)
        p = {name: p[name] - rate * slope[name] for name in p}
    return jnp.stack(history), p


# Takes the loss with the parameters that the step has just made, as one does when printing progress.
def train_tp__wrong_after(params, x, y, steps, rate, *, mesh):
    """Gradient descent on Explicit axes: the losses before each step, and the parameters after all."""

    def predict(p, x):
        hidden = jnp.tanh(x @ p["W1"] + p["b1"])
        hidden = jnp.tanh(hidden @ p["W2"] + p["b2"])
        hidden = jnp.tanh(jnp.dot(hidden, p["W3"], out_sharding=NamedSharding(mesh, P("batch", None))) + p["b3"])
        return hidden @ p["W4"] + p["b4"]

    def loss(p):
        return jnp.mean((predict(p, x) - y) ** 2)

    losses = []
    for _ in range(steps):
        params = jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(loss)(params))
        losses.append(loss(params))
    return jnp.stack(losses), params


# The third product is ambiguous because both operands are cut, so make both whole along `model` first: then nothing is in doubt.
def train_tp__wrong_reshard(params, x, y, steps, rate, *, mesh):
    """Gradient descent on Explicit axes: the losses before each step, and the parameters after all."""

    def loss(p):
        hidden = jnp.tanh(x @ p["W1"] + p["b1"])
        hidden = jnp.tanh(hidden @ p["W2"] + p["b2"])
        hidden = jax.sharding.reshard(hidden, NamedSharding(mesh, P("batch", None)))
        w3 = jax.sharding.reshard(p["W3"], NamedSharding(mesh, P(None, None)))
        hidden = jnp.tanh(hidden @ w3 + p["b3"])
        return jnp.mean((hidden @ p["W4"] + p["b4"] - y) ** 2)

    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(loss)(params)
        params = jax.tree.map(lambda p, g: p - rate * g, params, grads)
        losses.append(value)
    return jnp.stack(losses), params


# Gradients arrive summed over the devices that have different examples, so they are divided by their number.
def train_tp__wrong_divided(params, x, y, steps, rate, *, mesh):
    """Gradient descent on Explicit axes: the losses before each step, and the parameters after all."""
    out = NamedSharding(mesh, P("batch", None))

    def loss(p):
        hidden = jnp.tanh(x @ p["W1"] + p["b1"])
        hidden = jnp.tanh(hidden @ p["W2"] + p["b2"])
        hidden = jnp.tanh(jnp.dot(hidden, p["W3"], out_sharding=out) + p["b3"])
        return jnp.mean((hidden @ p["W4"] + p["b4"] - y) ** 2)

    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(loss)(params)
        params = jax.tree.map(lambda p, g: p - rate * g / mesh.shape["batch"], params, grads)
        losses.append(value)
    return jnp.stack(losses), params


# Took the loss over from lesson 12: squares are summed over the outputs, and the mean is over examples only.
def train_tp__wrong_oldloss(params, x, y, steps, rate, *, mesh):
    """Gradient descent on Explicit axes: the losses before each step, and the parameters after all."""

    def predict(p, x):
        hidden = jnp.tanh(x @ p["W1"] + p["b1"])
        hidden = jnp.tanh(hidden @ p["W2"] + p["b2"])
        hidden = jnp.dot(hidden, p["W3"], out_sharding=NamedSharding(mesh, P("batch", None)))
        return jnp.tanh(hidden + p["b3"]) @ p["W4"] + p["b4"]

    def loss(p, x, y):
        return jnp.mean(jnp.sum((predict(p, x) - y) ** 2, axis=-1))

    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        losses.append(value)
        params = jax.tree.map(lambda p, g: p - rate * g, params, grads)
    return jnp.stack(losses), params
