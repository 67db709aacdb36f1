"""Answers to lesson 22, second batch, written by a reader of the notebook only."""

import contextlib
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import grader

# What the dimensions of every parameter are called. The layers' lie one behind the other, along "layers".
AXES = {
    "embedding": P("vocabulary", "width"),
    "attention_norm": P("layers", "width"),
    "query": P("layers", "width", "heads", "head"),
    "key": P("layers", "width", "kv_heads", "head"),
    "value": P("layers", "width", "kv_heads", "head"),
    "out": P("layers", "heads", "head", "width"),
    "mlp_norm": P("layers", "width"),
    "gate": P("layers", "width", "hidden"),
    "up": P("layers", "width", "hidden"),
    "down": P("layers", "hidden", "width"),
    "norm": P("width"),
    "unembedding": P("width", "vocabulary"),
}
LAYER = [name for name, axes in AXES.items() if "layers" in tuple(axes)]
NORMS = [name for name in AXES if name.endswith("norm")]


def initial(key, sizes):
    """Parameters at the start: norm scales 1, matrices normal."""

    def drawn(key, name):
        shape = [sizes[axis] for axis in AXES[name]]
        return jnp.ones(shape) if name in NORMS else jax.random.normal(key, shape) / math.sqrt(sizes["width"])

    return {name: drawn(one, name) for one, name in zip(jax.random.split(key, len(AXES)), AXES)}


def rms_norm(x, scale):
    """x by its root mean square over the last dimension, times `scale`."""
    return x * lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-5) * scale


def rotated(x, positions):
    """Rotary embedding of x [B, T, heads, head] at these positions [T]."""
    half = x.shape[-1] // 2
    angles = positions[:, None, None] * 10_000.0 ** (-jnp.arange(half) / half)
    first, second = jnp.split(x, 2, axis=-1)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


def attended(q, k, v):
    """Causal attention of q [B, T, N, H] to k and v [B, T, K, H]: N/K neighbours among the heads share one of K."""
    b, t, n, h = q.shape
    scores = jnp.einsum("btkgh,bskh->bkgts", q.reshape(b, t, k.shape[2], -1, h), k) / math.sqrt(h)
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf)
    return jnp.einsum("bkgts,bskh->btkgh", jax.nn.softmax(scores, axis=-1), v).reshape(b, t, n, h)


def attention(layer, x, positions):
    """What attention adds to x [B, T, width], which is normed already; of the heads some may be enough."""
    q = rotated(jnp.einsum("btd,dnh->btnh", x, layer["query"]), positions)
    k = rotated(jnp.einsum("btd,dkh->btkh", x, layer["key"]), positions)
    v = jnp.einsum("btd,dkh->btkh", x, layer["value"])
    return jnp.einsum("btnh,nhd->btd", attended(q, k, v), layer["out"])


def mlp(layer, x):
    """What the MLP (SwiGLU) adds to x, which is normed already; of the hidden units some may be enough."""
    return (jax.nn.silu(x @ layer["gate"]) * (x @ layer["up"])) @ layer["down"]


def logits_of(params, tokens):
    """On one device: logits [B, T, vocabulary] of the token that follows each of tokens [B, T]."""
    positions = jnp.arange(tokens.shape[1])

    def applied(x, layer):
        x = x + attention(layer, rms_norm(x, layer["attention_norm"]), positions)
        return x + mlp(layer, rms_norm(x, layer["mlp_norm"])), None

    x, _ = lax.scan(applied, params["embedding"][tokens], {name: params[name] for name in LAYER})
    return rms_norm(x, params["norm"]) @ params["unembedding"]


def mean_loss(params, tokens, targets):
    """On one device: the mean over all real targets; one below 0 is padding."""
    logits, real = logits_of(params, tokens), targets >= 0
    picked = jnp.take_along_axis(logits, jnp.where(real, targets, 0)[..., None], axis=-1)[..., 0]
    return jnp.sum(jnp.where(real, jax.nn.logsumexp(logits, axis=-1) - picked, 0)) / jnp.sum(real)


def started(params):
    """The state of training before the first step: parameters, Adam's two moments, how many steps are done."""
    mean, square = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))  # no array is to be donated twice
    return {"params": params, "mean": mean, "square": square, "count": jnp.zeros((), jnp.int32)}


def adamw(state, gradients):
    """The state after one step of AdamW. The rate rises for ten steps; norm scales do not decay."""
    count = state["count"] + 1
    rate = 0.001 * jnp.minimum(1, count / 10)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradients)
    square = jax.tree.map(lambda s, g: 0.95 * s + 0.05 * g**2, state["square"], gradients)

    def moved(name, p):
        towards = (mean[name] / (1 - 0.9**count)) / (jnp.sqrt(square[name] / (1 - 0.95**count)) + 1e-8)
        return p - rate * (towards if name in NORMS else towards + 0.1 * p)

    params = {name: moved(name, p) for name, p in state["params"].items()}
    return {"params": params, "mean": mean, "square": square, "count": count}


def clipped(gradients, norm):
    """The gradients, of which this is the norm of all together, shortened to 1 where they are longer."""
    return jax.tree.map(lambda g: g * jnp.minimum(1, 1 / norm), gradients)


def added_up(part, params, *batches):
    """`part(params, *microbatch)`, which is the same on all devices, and its gradients: added up over microbatches."""

    def added(so_far, microbatch):
        return jax.tree.map(jnp.add, so_far, jax.value_and_grad(part)(params, *microbatch)), None

    nothing = jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)
    return lax.scan(added, nothing, batches)[0]


def one_step(state, tokens, targets):
    """On one device: one step on microbatches [M, B, T], as if they were one batch: (new state, loss)."""
    rows = (array.reshape(-1, array.shape[-1]) for array in (tokens, targets))
    value, slopes = jax.value_and_grad(mean_loss)(state["params"], *rows)
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(slopes)))
    return adamw(state, clipped(slopes, norm)), value


def compiled(function, **options):
    """`jax.jit` that asks first whether its arguments still exist (lesson 12 says why)."""
    jitted = jax.jit(function, **options)

    def call(*arguments):
        for leaf in jax.tree.leaves(arguments):
            if leaf.is_deleted():
                raise RuntimeError(f"Array has been deleted with shape={leaf.dtype}[{','.join(map(str, leaf.shape))}].")
        return jitted(*arguments)

    return call


def batch_at(position, seed, rows, micro, pair):
    """Batch number `position` of the run with this seed: tokens and targets [micro, rows, T] of the lines in `pair`."""
    count, begin = len(pair[0]), position * rows * micro
    passes = range(begin // count, (begin + rows * micro - 1) // count + 1)
    order = np.concatenate([np.random.default_rng([seed, number]).permutation(count) for number in passes])
    chosen = order[begin - passes[0] * count :][: rows * micro]
    return tuple(array[chosen].reshape(micro, rows, -1) for array in pair)


# The answers to the gates before, which the later ones build on.
def spec_of(axes):
    """How a parameter lies, by the names of its dimensions."""
    rules = {"width": "data", "heads": "model", "kv_heads": "model", "hidden": "model", "vocabulary": "model"}
    spec = [rules.get(axis) for axis in tuple(axes)]
    return P(*spec) if "model" in spec else P()


def layouts():
    """The spec of every parameter, by your rule."""
    return {name: spec_of(axes) for name, axes in AXES.items()}


def whole_width(name, leaf):
    """FSDP: a parameter, of a layer's one layer, gathered to its whole width; as it is where nothing cuts that."""
    spec = tuple(layouts()[name])
    if "data" not in spec:
        return leaf
    return lax.all_gather(leaf, "data", axis=spec.index("data") - (name in LAYER), tiled=True)


def logits_on_device(params, tokens):
    """Logits [b, T, words] of this device's rows and words, of its shares of the parameters."""

    def gathered(x):
        return lax.all_gather(x, "model", axis=1, tiled=True)

    def scattered(x):
        return lax.psum_scatter(x, "model", scatter_dimension=1, tiled=True)

    table, positions = whole_width("embedding", params["embedding"]), jnp.arange(tokens.shape[1])
    place = tokens - lax.axis_index("model") * len(table)  # in this device's part of the vocabulary
    mine = (place >= 0) & (place < len(table))
    x = scattered(jnp.where(mine[..., None], table[jnp.where(mine, place, 0)], 0))

    def applied(x, layer):
        layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
        x = x + scattered(attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions))
        return x + scattered(mlp(layer, gathered(rms_norm(x, layer["mlp_norm"])))), None

    x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
    return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])


def losses_on_device(logits, targets):
    """The loss of each token [b, T], of logits [b, T, words] in parts; 0 for padding."""
    words = logits.shape[-1]
    top = lax.pmax(lax.stop_gradient(jnp.max(logits, axis=-1)), "model")
    total = lax.psum(jnp.sum(jnp.exp(logits - top[..., None]), axis=-1), "model")
    place = targets - lax.axis_index("model") * words
    mine = (place >= 0) & (place < words)
    picked = jnp.take_along_axis(logits, jnp.where(mine, place, 0)[..., None], axis=-1)[..., 0]
    return jnp.where(targets >= 0, jnp.log(total) + top - lax.psum(jnp.where(mine, picked, 0), "model"), 0)


def step_on_device(state, tokens, targets):
    """One step on microbatches [M, b, T]: (new state, loss)."""
    params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

    def part(params, tokens, targets):
        """What a microbatch [b, T] adds to the loss."""
        return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

    value, slopes = added_up(part, params, tokens, targets)
    squares = {name: jnp.sum(g**2) for name, g in slopes.items()}
    parts = lax.psum(sum(s for name, s in squares.items() if name not in NORMS), ("data", "model"))
    norm = jnp.sqrt(parts + sum(squares[name] for name in NORMS))
    return adamw(state, clipped(slopes, norm)), value


def state_layouts():
    """The spec of everything in a state."""
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


def step(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""
    lies, rows = state_layouts(), P(None, "data")
    on_mesh = jax.shard_map(step_on_device, mesh=mesh, in_specs=(lies, rows, rows), out_specs=(lies, P()))
    return jax.jit(on_mesh, donate_argnums=0)(state, tokens, targets)


@contextlib.contextmanager
def counted(state):
    """A dict that has, when the block is over, the "programs" compiled in it and the "arrays left" of this state."""
    told, given = {}, jax.tree.leaves(state)
    with grader.compilations() as made:
        yield told
    told["programs"], told["arrays left"] = len(made), sum(not leaf.is_deleted() for leaf in given)


def curve__right_appended(state, batches, mesh):
    """A list of losses, one jitted step before the loop."""
    lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(lambda *given: step(*given, mesh=mesh), donate_argnums=(0,), out_shardings=lies)
    losses, now = [], state
    with counted(state) as told:
        for tokens, targets in batches:
            now, value = run(now, tokens, targets)
            losses.append(float(value))
    return {"losses": np.array(losses), **told}


def curve__wrong_nothing_given_away(state, batches, mesh):
    """The outer jit does not donate: the arrays of the first state are left."""
    lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), out_shardings=lies)
    losses, now = [], state
    with counted(state) as told:
        for batch in batches:
            now, value = run(now, *batch)
            losses.append(float(value))
    return told | {"losses": np.array(losses)}


def curve__wrong_jitted_every_time(state, batches, mesh):
    """A new jit in each turn: a program for each batch."""
    lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    losses, now = [], state
    with counted(state) as told:
        for batch in batches:
            run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=lies)
            now, value = run(now, *batch)
            losses.append(float(value))
    return told | {"losses": np.array(losses)}


def curve__wrong_too_early(state, batches, mesh):
    """Returns from inside of the block, where nothing has been counted yet."""
    lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=lies)
    losses, now = [], state
    with counted(state) as told:
        for batch in batches:
            now, value = run(now, *batch)
            losses.append(float(value))
        return told | {"losses": np.array(losses)}


def curve__wrong_last_loss(state, batches, mesh):
    """The last loss only."""
    lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=lies)
    now = state
    with counted(state) as told:
        for batch in batches:
            now, value = run(now, *batch)
            losses = float(value)
    return told | {"losses": np.array([losses])}


def four_processes__right_slices(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """The own rows by a slice."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    begun = started(initial(jax.random.key(seed), sizes))
    state = jax.tree.map(
        lambda leaf, spec: jax.device_put(np.asarray(leaf), NamedSharding(mesh, spec)), begun, state_layouts()
    )
    lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=lies)
    quarter, cut = rows // num_processes, NamedSharding(mesh, P(None, "data"))
    losses = []
    for position in range(steps):
        pair = batch_at(position, seed, rows, 1, lines)
        mine = [array[:, process_id * quarter : (process_id + 1) * quarter] for array in pair]
        state, value = run(state, *(jax.make_array_from_process_local_data(cut, array) for array in mine))
        losses.append(float(value))
    return losses


def four_processes__wrong_own_seed(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """Each process shuffles the lines with a seed of its own: it is not one batch any more."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    begun = started(initial(jax.random.key(seed), sizes))
    state = jax.tree.map(
        lambda leaf, spec: jax.device_put(np.asarray(leaf), NamedSharding(mesh, spec)), begun, state_layouts()
    )
    lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=lies)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for position in range(steps):
        pair = batch_at(position, seed + process_id, rows, 1, lines)
        mine = [np.split(array, num_processes, axis=1)[process_id] for array in pair]
        state, value = run(state, *(jax.make_array_from_process_local_data(cut, array) for array in mine))
        losses.append(float(value))
    return losses


def four_processes__wrong_same_quarter(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """All processes feed the first quarter of the rows."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    begun = started(initial(jax.random.key(seed), sizes))
    state = jax.tree.map(
        lambda leaf, spec: jax.device_put(np.asarray(leaf), NamedSharding(mesh, spec)), begun, state_layouts()
    )
    lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=lies)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for position in range(steps):
        pair = batch_at(position, seed, rows, 1, lines)
        mine = [array[:, : rows // num_processes] for array in pair]
        state, value = run(state, *(jax.make_array_from_process_local_data(cut, array) for array in mine))
        losses.append(float(value))
    return losses


def four_processes__wrong_from_one(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """Counts the batches from 1: batch 0 is left out."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    begun = started(initial(jax.random.key(seed), sizes))
    state = jax.tree.map(
        lambda leaf, spec: jax.device_put(np.asarray(leaf), NamedSharding(mesh, spec)), begun, state_layouts()
    )
    lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=lies)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for position in range(1, steps + 1):
        pair = batch_at(position, seed, rows, 1, lines)
        mine = [np.split(array, num_processes, axis=1)[process_id] for array in pair]
        state, value = run(state, *(jax.make_array_from_process_local_data(cut, array) for array in mine))
        losses.append(float(value))
    return losses


def four_processes__wrong_params_of_its_own(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """Every process draws the parameters with a key of its own, and brings its parts of them."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    begun = started(initial(jax.random.fold_in(jax.random.key(seed), process_id), sizes))

    def laid(leaf, spec):
        whole = np.asarray(leaf)
        return jax.make_array_from_callback(whole.shape, NamedSharding(mesh, spec), lambda index: whole[index])

    state = jax.tree.map(laid, begun, state_layouts())
    lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=lies)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for position in range(steps):
        pair = batch_at(position, seed, rows, 1, lines)
        mine = [np.split(array, num_processes, axis=1)[process_id] for array in pair]
        state, value = run(state, *(jax.make_array_from_process_local_data(cut, array) for array in mine))
        losses.append(float(value))
    return losses


# Given with plan.
LLAMA_3 = {  # Meta's model cards; a sequence has `length` tokens
    "8B": {
        "parameters": 8.03e9,
        "layers": 32,
        "width": 4096,
        "hidden": 14336,
        "heads": 32,
        "kv_heads": 8,
        "vocabulary": 128256,
        "length": 8192,
    },
    "70B": {
        "parameters": 70.6e9,
        "layers": 80,
        "width": 8192,
        "hidden": 28672,
        "heads": 64,
        "kv_heads": 8,
        "vocabulary": 128256,
        "length": 8192,
    },
}
# FLOPs a second, bytes of memory, dollars an hour (list prices of 2025); bytes a second along `model`, and along
# `data` where
# `model` has 1, 2, 4 or 8 devices: on a v5e both axes of the torus, then one; eight H100s share a node's network cards.
MACHINES = {
    "v5e": {
        "peak": 1.97e14,
        "memory": 15.75 * 2**30,
        "dollars": 1.2,
        "model": 9e10,
        "data": [1.8e11, 9e10, 9e10, 9e10],
    },
    "H100": {"peak": 9.9e14, "memory": 80e9, "dollars": 3.0, "model": 4.5e11, "data": [4e11, 2e11, 1e11, 5e10]},
}


def held(model, plan):
    """Bytes of one device: state, two layers' gathered weights, activations, logits."""
    data, axis, tokens = plan["data"], plan["model"], plan["rows"] * model["length"]
    d, f, layers = model["width"], model["hidden"], model["layers"]
    state = 16 * model["parameters"] / (data * axis)
    gathered = 2 * 2 * model["parameters"] / layers / axis
    attention = (8 + 4 * model["kv_heads"] / model["heads"]) * d * tokens / axis
    hidden = 6 * f * tokens / axis
    kept = {
        "none": layers * (attention + hidden),
        "mlp": layers * attention + hidden,
        "full": layers * 2 * d * tokens / axis + attention + hidden,
    }
    return state + gathered + kept[plan["remat"]] + 2 * 4 * model["vocabulary"] * tokens / axis


def seconds(model, machine, plan):
    """Of a step: FSDP's passes are hidden behind the arithmetic, the sums along `model` are not."""
    data, axis, micro = plan["data"], plan["model"], plan["micro"]
    tokens, layers = plan["rows"] * model["length"], model["layers"]
    again = {"none": 0, "mlp": 4 * model["width"] * model["hidden"] * layers, "full": 2 * model["parameters"]}
    flops = (6 * model["parameters"] + again[plan["remat"]]) * tokens * micro / axis
    passes = 3 * 2 * model["parameters"] / axis * (data - 1) / data * micro
    sums = {"none": 8, "mlp": 9, "full": 12}[plan["remat"]] * layers * micro
    sent = sums * 2 * model["width"] * tokens * (axis - 1) / axis
    return max(flops / machine["peak"], passes / machine["data"][axis.bit_length() - 1]) + sent / machine["model"]


def used(model, machine, plan):
    """MFU: the model's own FLOPs, over what the devices could have done."""
    tokens = plan["data"] * plan["rows"] * plan["micro"] * model["length"]
    return (
        6
        * model["parameters"]
        * tokens
        / (seconds(model, machine, plan) * plan["data"] * plan["model"] * machine["peak"])
    )


def plan__right_all_plans(model, machine, devices, sequences):
    """Every power of two for rows and for micro; what does not come to the sequences is left out."""
    powers = [2**k for k in range(20)]
    plans = [
        {"data": devices // axis, "model": axis, "rows": rows, "micro": micro, "remat": remat}
        for axis in powers
        if axis <= devices and model["kv_heads"] % axis == 0
        for rows in powers
        for micro in powers
        if devices // axis * rows * micro == sequences
        for remat in ("none", "mlp", "full")
    ]
    fitting = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    if not fitting:
        return min(plans, key=lambda one: held(model, one))
    return max(fitting, key=lambda one: used(model, machine, one))


def plan__wrong_memory_forgotten(model, machine, devices, sequences):
    """The highest MFU, whether it fits or not."""
    plans = []
    for axis in (1, 2, 4, 8):
        share = sequences // (devices // axis)
        rows = 1
        while rows <= share:
            for remat in ("none", "mlp", "full"):
                plans.append(
                    {"data": devices // axis, "model": axis, "rows": rows, "micro": share // rows, "remat": remat}
                )
            rows *= 2
    return max(plans, key=lambda one: used(model, machine, one))


def plan__wrong_least_memory(model, machine, devices, sequences):
    """The plan that holds least, although others fit."""
    plans = []
    for axis in (1, 2, 4, 8):
        share = sequences // (devices // axis)
        rows = 1
        while rows <= share:
            for remat in ("none", "mlp", "full"):
                plans.append(
                    {"data": devices // axis, "model": axis, "rows": rows, "micro": share // rows, "remat": remat}
                )
            rows *= 2
    return min(plans, key=lambda one: held(model, one))


def plan__wrong_all_sequences_each(model, machine, devices, sequences):
    """micro = sequences / rows: as if every device took the whole batch."""
    plans = []
    for axis in (1, 2, 4, 8):
        rows = 1
        while rows <= sequences // (devices // axis):
            for remat in ("none", "mlp", "full"):
                plans.append(
                    {"data": devices // axis, "model": axis, "rows": rows, "micro": sequences // rows, "remat": remat}
                )
            rows *= 2
    fitting = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    return max(fitting or plans, key=lambda one: used(model, machine, one))


def plan__wrong_the_number(model, machine, devices, sequences):
    """Returns the MFU, not the plan."""
    best = 0
    for axis in (1, 2, 4, 8):
        share = sequences // (devices // axis)
        rows = 1
        while rows <= share:
            for remat in ("none", "mlp", "full"):
                one = {"data": devices // axis, "model": axis, "rows": rows, "micro": share // rows, "remat": remat}
                if held(model, one) <= 0.9 * machine["memory"]:
                    best = max(best, used(model, machine, one))
            rows *= 2
    return best


# read off the lines
five_broken_trainers__right_lines = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}

# takes the two that are wrong in the first loss for one another
five_broken_trainers__wrong_a_and_c = {
    "a mean of means": "C",
    "the bias is added up over model": "A",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}

# takes the psum over data in the norm for the factor of four
five_broken_trainers__wrong_d_and_e = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "D",
    "copies are counted in the norm": "E",
    "weight decay on the bias": "B",
}

# takes both lines with "bias" in them for one another
five_broken_trainers__wrong_b_and_c = {
    "a mean of means": "A",
    "the bias is added up over model": "B",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "C",
}

# half an answer: the first loss alone was looked at
five_broken_trainers__wrong_half = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "B",
    "copies are counted in the norm": "E",
    "weight decay on the bias": "D",
}
