"""Answers to lesson 22, written by a reader of the notebook only."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

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


RULES = {"width": "data", "heads": "model", "kv_heads": "model", "hidden": "model", "vocabulary": "model"}


def spec_of(axes):
    spec = [RULES.get(axis) for axis in axes]
    return P(*spec) if "model" in spec else P()


def layouts():
    return {name: spec_of(axes) for name, axes in AXES.items()}


def whole_width(name, leaf):
    spec = tuple(layouts()[name])
    if "data" not in spec:
        return leaf
    return lax.all_gather(leaf, "data", axis=spec.index("data") - (name in LAYER), tiled=True)


def losses_on_device(logits, targets):
    words = logits.shape[-1]
    top = lax.pmax(lax.stop_gradient(jnp.max(logits, axis=-1)), "model")
    total = lax.psum(jnp.sum(jnp.exp(logits - top[..., None]), axis=-1), "model")
    place = targets - lax.axis_index("model") * words
    mine = (place >= 0) & (place < words)
    picked = jnp.take_along_axis(logits, jnp.where(mine, place, 0)[..., None], axis=-1)[..., 0]
    return jnp.where(targets >= 0, jnp.log(total) + top - lax.psum(jnp.where(mine, picked, 0), "model"), 0)


def state_layouts():
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


def _bytes(specs, axes, lengths, mesh):
    total = 0
    for name, spec in specs.items():
        held = 4 * math.prod(lengths[axis] for axis in axes[name])
        for axis in spec:
            held //= mesh[axis] if axis else 1
        total += held
    return total


def specs__right_loop(axes, lengths, mesh):
    found, total = {}, 0
    for name, dimensions in axes.items():
        found[name] = spec_of(dimensions)
        total += 4 * math.prod(lengths[d] for d in dimensions) // math.prod(mesh[a] for a in found[name] if a)
    return {**found, "bytes on each device": total}


def specs__right_parts(axes, lengths, mesh):
    """The shape on a device, then its product."""
    cut = dict(RULES)

    def one(dimensions):
        names = [cut.get(d) for d in dimensions]
        return P(*names) if "model" in names else P(*[None for _ in names])

    found = {name: one(dimensions) for name, dimensions in axes.items()}
    held = 0
    for name, spec in found.items():
        held += int(np.prod([lengths[d] // (mesh[a] if a else 1) for d, a in zip(axes[name], spec)])) * 4
    found["bytes on each device"] = held
    return found


def specs__wrong_norms_cut(axes, lengths, mesh):
    """Norm scales are cut over data."""
    found = {name: P(*[RULES.get(d) for d in dimensions]) for name, dimensions in axes.items()}
    return {**found, "bytes on each device": _bytes(found, axes, lengths, mesh)}


def specs__wrong_all_devices(axes, lengths, mesh):
    """The bytes divided by all devices, norms too."""
    found = {name: spec_of(dimensions) for name, dimensions in axes.items()}
    total = sum(math.prod(lengths[d] for d in dimensions) for dimensions in axes.values())
    return {**found, "bytes on each device": 4 * total // math.prod(mesh.values())}


def specs__wrong_whole_bytes(axes, lengths, mesh):
    """Bytes of the whole model."""
    found = {name: spec_of(dimensions) for name, dimensions in axes.items()}
    total = sum(4 * math.prod(lengths[d] for d in dimensions) for dimensions in axes.values())
    return {**found, "bytes on each device": total}


def specs__wrong_numbers(axes, lengths, mesh):
    """Numbers, not bytes."""
    found = {name: spec_of(dimensions) for name, dimensions in axes.items()}
    return {**found, "bytes on each device": _bytes(found, axes, lengths, mesh) // 4}


def specs__wrong_swapped(axes, lengths, mesh):
    """data and model swapped."""
    rules = {d: "model" if a == "data" else "data" for d, a in RULES.items()}
    found = {}
    for name, dimensions in axes.items():
        spec = [rules.get(d) for d in dimensions]
        found[name] = P(*spec) if "data" in spec else P()
    return {**found, "bytes on each device": _bytes(found, axes, lengths, mesh)}


def specs__wrong_kv_whole(axes, lengths, mesh):
    """kv_heads forgotten in the rules: key and value stay whole."""
    rules = {d: a for d, a in RULES.items() if d != "kv_heads"}
    found = {}
    for name, dimensions in axes.items():
        spec = [rules.get(d) for d in dimensions]
        found[name] = P(*spec) if "model" in spec else P()
    return {**found, "bytes on each device": _bytes(found, axes, lengths, mesh)}


def specs__wrong_head_cut(axes, lengths, mesh):
    """The numbers of a head cut in place of the heads."""
    rules = {"width": "data", "head": "model", "hidden": "model", "vocabulary": "model"}
    found = {}
    for name, dimensions in axes.items():
        spec = [rules.get(d) for d in dimensions]
        found[name] = P(*spec) if "model" in spec else P()
    return {**found, "bytes on each device": _bytes(found, axes, lengths, mesh)}


def specs__wrong_no_bytes(axes, lengths, mesh):
    """The bytes are missing."""
    return {name: spec_of(dimensions) for name, dimensions in axes.items()}


def _gather(x):
    return lax.all_gather(x, "model", axis=1, tiled=True)


def _scatter(part):
    return lax.psum_scatter(part, "model", scatter_dimension=1, tiled=True)


def _looked_up(table, tokens, shifted=True, masked=True):
    place = tokens - (lax.axis_index("model") * len(table) if shifted else 0)
    mine = (place >= 0) & (place < len(table))
    rows = table[jnp.where(mine, place, 0)]
    return jnp.where(mine[..., None], rows, 0) if masked else rows


def logits_on_device(
    params,
    tokens,
    *,
    place=None,
    scatter=_scatter,
    after_embedding=_scatter,
    last=None,
    shifted=True,
    masked=True,
    residual=True,
    end=True,
    norm_late=False,
):
    positions = jnp.arange(tokens.shape[1]) if place is None else place(tokens)
    x = after_embedding(_looked_up(whole_width("embedding", params["embedding"]), tokens, shifted, masked))

    def normed(x, scale):
        return rms_norm(_gather(x), scale) if norm_late else _gather(rms_norm(x, scale))

    def applied(x, layer):
        layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
        x = (x if residual else 0) + scatter(attention(layer, normed(x, layer["attention_norm"]), positions))
        return (x if residual else 0) + scatter(mlp(layer, normed(x, layer["mlp_norm"]))), None

    x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
    x = rms_norm(x, params["norm"]) if end else x
    return _gather(x) @ whole_width("unembedding", params["unembedding"])


def _forward(mesh, **options):
    return jax.shard_map(
        functools.partial(logits_on_device, **options),
        mesh=mesh,
        in_specs=(layouts(), P("data")),
        out_specs=P("data", None, "model"),
    )


def forward__right_partial(params, tokens, *, mesh):
    return _forward(mesh)(params, tokens)


def forward__right_loop(params, tokens, *, mesh):
    """A Python loop over the layers; the words by comparison."""

    def on_device(params, tokens):
        positions = jnp.arange(tokens.shape[1])
        table = whole_width("embedding", params["embedding"])
        words = len(table)
        mine = tokens // words == lax.axis_index("model")
        x = _scatter(table[tokens % words] * mine[..., None])
        for k in range(len(params["query"])):
            layer = {name: whole_width(name, params[name][k]) for name in LAYER}
            x = x + _scatter(attention(layer, _gather(rms_norm(x, layer["attention_norm"])), positions))
            x = x + _scatter(mlp(layer, _gather(rms_norm(x, layer["mlp_norm"]))))
        return jnp.einsum(
            "btd,dv->btv", _gather(rms_norm(x, params["norm"])), whole_width("unembedding", params["unembedding"])
        )

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts(), P("data")), out_specs=P("data", None, "model"))(
        params, tokens
    )


def forward__wrong_positions(params, tokens, *, mesh):
    """Positions of a block of the sequence, again from 0 in each block."""
    return _forward(
        mesh, place=lambda tokens: jnp.arange(tokens.shape[1]) % (tokens.shape[1] // lax.axis_size("model"))
    )(params, tokens)


def forward__wrong_embedding_not_shifted(params, tokens, *, mesh):
    """Words not shifted."""
    return _forward(mesh, shifted=False)(params, tokens)


def forward__wrong_embedding_not_masked(params, tokens, *, mesh):
    """Words of others look up row 0."""
    return _forward(mesh, masked=False)(params, tokens)


def forward__wrong_mean(params, tokens, *, mesh):
    """The mean of the parts in place of their sum."""
    return _forward(mesh, scatter=lambda part: _scatter(part) / lax.axis_size("model"))(params, tokens)


def forward__wrong_no_residual(params, tokens, *, mesh):
    """x + forgotten."""
    return _forward(mesh, residual=False)(params, tokens)


def forward__wrong_no_last_norm(params, tokens, *, mesh):
    """The last norm forgotten."""
    return _forward(mesh, end=False)(params, tokens)


def forward__wrong_own_tokens_only(params, tokens, *, mesh):
    """No sum: each device's own part of its own tokens."""

    def cut(part):
        own = part.shape[1] // lax.axis_size("model")
        return lax.dynamic_slice_in_dim(part, lax.axis_index("model") * own, own, axis=1)

    return _forward(mesh, scatter=cut)(params, tokens)


def forward__wrong_all_reduce(params, tokens, *, mesh):
    """psum, and the own tokens cut out: more bytes than a reduce_scatter."""

    def cut(part):
        own = part.shape[1] // lax.axis_size("model")
        return lax.dynamic_slice_in_dim(lax.psum(part, "model"), lax.axis_index("model") * own, own, axis=1)

    return _forward(mesh, scatter=cut, after_embedding=cut)(params, tokens)


def forward__wrong_one_device(params, tokens, *, mesh):
    """The function of one device: nothing is cut by hand."""
    return logits_of(params, tokens)


def _loss(mesh, body):
    return jax.shard_map(body, mesh=mesh, in_specs=(layouts(), P("data"), P("data")), out_specs=P(), check_vma=False)


def loss_on_device(params, tokens, targets):
    losses = losses_on_device(logits_on_device(params, tokens), targets)
    return lax.psum(losses.sum(), "data") / lax.psum((targets >= 0).sum(), "data")


def loss__right_pair(params, tokens, targets, *, mesh):
    """One psum of a pair."""

    def body(params, tokens, targets):
        real = targets >= 0
        total, count = lax.psum((losses_on_device(logits_on_device(params, tokens), targets).sum(), real.sum()), "data")
        return total / count

    return jax.shard_map(body, mesh=mesh, in_specs=(layouts(), P("data"), P("data")), out_specs=P())(
        params, tokens, targets
    )


def loss__wrong_mean_of_means(params, tokens, targets, *, mesh):
    """Each device's mean, averaged."""

    def body(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.pmean(losses.sum() / (targets >= 0).sum(), "data")

    return _loss(mesh, body)(params, tokens, targets)


def loss__wrong_padding(params, tokens, targets, *, mesh):
    """Divided by all tokens."""
    return _loss(mesh, lambda p, t, y: lax.pmean(losses_on_device(logits_on_device(p, t), y).mean(), "data"))(
        params, tokens, targets
    )


def loss__wrong_local(params, tokens, targets, *, mesh):
    """The own rows only."""

    def body(params, tokens, targets):
        return losses_on_device(logits_on_device(params, tokens), targets).sum() / (targets >= 0).sum()

    return _loss(mesh, body)(params, tokens, targets)


def loss__wrong_sum(params, tokens, targets, *, mesh):
    """The sum."""
    return _loss(mesh, lambda p, t, y: lax.psum(losses_on_device(logits_on_device(p, t), y).sum(), "data"))(
        params, tokens, targets
    )


def loss__wrong_token_zero(params, tokens, targets, *, mesh):
    """> 0 for >= 0: token 0 taken for padding."""

    def body(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.psum(losses.sum(), "data") / lax.psum((targets > 0).sum(), "data")

    return _loss(mesh, body)(params, tokens, targets)


def loss__wrong_model_too(params, tokens, targets, *, mesh):
    """The losses added over model as well, the count over data only."""

    def body(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.psum(losses.sum(), ("data", "model")) / lax.psum((targets >= 0).sum(), "data")

    return _loss(mesh, body)(params, tokens, targets)


def loss__wrong_count_local(params, tokens, targets, *, mesh):
    """The sum of all over the number of the own."""

    def body(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.psum(losses.sum(), "data") / (targets >= 0).sum()

    return _loss(mesh, body)(params, tokens, targets)


def _gradients(mesh, body, check=True):
    return jax.shard_map(
        body, mesh=mesh, in_specs=(layouts(), P("data"), P("data")), out_specs=(P(), layouts()), check_vma=check
    )


def gradients__right_outside(params, tokens, targets, *, mesh):
    """Differentiated from outside of the shard_map."""
    whole = jax.shard_map(loss_on_device, mesh=mesh, in_specs=(layouts(), P("data"), P("data")), out_specs=P())
    return jax.value_and_grad(whole)(params, tokens, targets)


def gradients__wrong_unchecked(params, tokens, targets, *, mesh):
    """The check off."""
    return _gradients(mesh, jax.value_and_grad(loss_on_device), check=False)(params, tokens, targets)


def gradients__wrong_psum_again(params, tokens, targets, *, mesh):
    """Norm scales added up once more."""

    def body(params, tokens, targets):
        value, g = jax.value_and_grad(loss_on_device)(params, tokens, targets)
        return value, {name: lax.psum(a, ("data", "model")) if name in NORMS else a for name, a in g.items()}

    return _gradients(mesh, body, check=False)(params, tokens, targets)


def gradients__wrong_averaged(params, tokens, targets, *, mesh):
    """Divided by the devices along data, as in data parallelism."""

    def body(params, tokens, targets):
        value, g = jax.value_and_grad(loss_on_device)(params, tokens, targets)
        return value, jax.tree.map(lambda a: a / lax.axis_size("data"), g)

    return _gradients(mesh, body)(params, tokens, targets)


def gradients__wrong_local_loss(params, tokens, targets, *, mesh):
    """The local mean is differentiated, and the losses averaged."""

    def local(params, tokens, targets):
        return losses_on_device(logits_on_device(params, tokens), targets).sum() / (targets >= 0).sum()

    def body(params, tokens, targets):
        value, g = jax.value_and_grad(local)(params, tokens, targets)
        return lax.pmean(value, "data"), g

    return _gradients(mesh, body)(params, tokens, targets)


def gradients__wrong_no_loss(params, tokens, targets, *, mesh):
    """Gradients only."""
    return gradients__right_outside(params, tokens, targets, mesh=mesh)[1]


def _step(mesh, body, donate=True):
    mapped = jax.shard_map(
        body, mesh=mesh, in_specs=(state_layouts(), P(None, "data"), P(None, "data")), out_specs=(state_layouts(), P())
    )
    return jax.jit(mapped, donate_argnums=0 if donate else ())


def _slopes(state, tokens, targets, real=None):
    real = lax.psum((targets >= 0).sum(), "data")

    def part(params, tokens, targets):
        return lax.psum(losses_on_device(logits_on_device(params, tokens), targets).sum(), "data") / real

    return added_up(part, state["params"], tokens, targets)


def _norm(slopes):
    own = sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS)
    return jnp.sqrt(lax.psum(own, ("data", "model")) + sum(jnp.sum(slopes[name] ** 2) for name in NORMS))


def step__right_helpers(state, tokens, targets, *, mesh):
    def body(state, tokens, targets):
        value, slopes = _slopes(state, tokens, targets)
        return adamw(state, clipped(slopes, _norm(slopes))), value

    return _step(mesh, body)(state, tokens, targets)


def step__wrong_not_given_away(state, tokens, targets, *, mesh):
    """No donation: a second state in memory."""

    def body(state, tokens, targets):
        value, slopes = _slopes(state, tokens, targets)
        return adamw(state, clipped(slopes, _norm(slopes))), value

    return _step(mesh, body, donate=False)(state, tokens, targets)


def step__wrong_norm_of_copies(state, tokens, targets, *, mesh):
    """Norm scales are counted on every device."""

    def body(state, tokens, targets):
        value, slopes = _slopes(state, tokens, targets)
        copies = mesh.shape["data"] * mesh.shape["model"]
        matrices = lax.psum(sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS), ("data", "model"))
        norm = jnp.sqrt(matrices + copies * sum(jnp.sum(slopes[name] ** 2) for name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    return _step(mesh, body)(state, tokens, targets)


def step__wrong_model_only(state, tokens, targets, *, mesh):
    """The squares are added over data by pmean: the norm is too small."""

    def body(state, tokens, targets):
        value, slopes = _slopes(state, tokens, targets)
        matrices = lax.psum(
            lax.pmean(sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS), "data"), "model"
        )
        norm = jnp.sqrt(matrices + sum(jnp.sum(slopes[name] ** 2) for name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    return _step(mesh, body)(state, tokens, targets)


def step__wrong_not_clipped(state, tokens, targets, *, mesh):
    """Not clipped."""

    def body(state, tokens, targets):
        value, slopes = _slopes(state, tokens, targets)
        return adamw(state, slopes), value

    return _step(mesh, body)(state, tokens, targets)


def step__wrong_no_root(state, tokens, targets, *, mesh):
    """The root forgotten."""

    def body(state, tokens, targets):
        value, slopes = _slopes(state, tokens, targets)
        return adamw(state, clipped(slopes, _norm(slopes) ** 2)), value

    return _step(mesh, body)(state, tokens, targets)


def step__wrong_sum_of_means(state, tokens, targets, *, mesh):
    """Each microbatch divided by its own real tokens, and added up: M times too large."""

    def body(state, tokens, targets):
        value, slopes = added_up(loss_on_device, state["params"], tokens, targets)
        return adamw(state, clipped(slopes, _norm(slopes))), value

    return _step(mesh, body)(state, tokens, targets)


def step__wrong_mean_of_means(state, tokens, targets, *, mesh):
    """The mean of the microbatches' means."""

    def body(state, tokens, targets):
        value, slopes = added_up(loss_on_device, state["params"], tokens, targets)
        slopes = jax.tree.map(lambda g: g / len(tokens), slopes)
        return adamw(state, clipped(slopes, _norm(slopes))), value / len(tokens)

    return _step(mesh, body)(state, tokens, targets)


def step__wrong_last_microbatch(state, tokens, targets, *, mesh):
    """The last microbatch only."""

    def body(state, tokens, targets):
        value, slopes = jax.value_and_grad(loss_on_device)(state["params"], tokens[-1], targets[-1])
        return adamw(state, clipped(slopes, _norm(slopes))), value

    return _step(mesh, body)(state, tokens, targets)


def step__wrong_swapped(state, tokens, targets, *, mesh):
    """(loss, new state)."""
    return step__right_helpers(state, tokens, targets, mesh=mesh)[::-1]
