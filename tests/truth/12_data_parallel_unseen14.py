"""Answers to lesson 12, fourteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader.lessons.data_parallel.seven_runs import copies, runs  # as in the notebook's second cell

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def predict(params, x):
    """The network: relu between its layers, the last one linear. A layer is a dict with "W" and "b"."""
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    """The mean over the batch of the summed squares of what is missing."""
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


def descend(params, gradients, rate):
    """One step of gradient descent."""
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def varying(tree, axes):
    """The same arrays, marked as ones that may differ along these axes (`lax.pvary` until JAX 0.8.1)."""
    if hasattr(jax.lax, "pcast"):
        return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)
    return jax.tree.map(lambda leaf: jax.lax.pvary(leaf, axes), tree)


# ---------------------------------------------------------------- dp_numbers

_WIDTHS = [784, 8192, 8192, 8192, 10]
_N = sum((inputs + 1) * outputs for inputs, outputs in zip(_WIDTHS, _WIDTHS[1:]))  # 140,746,762

dp_numbers__right_layers = {
    "parameters": _N,
    "bytes of parameters on each device": 4 * _N,
    "bytes of x on each device": 8192 // 8 * 784 * 4,
    "bytes each device sends in a step": 7 * (_N + 1),
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (_N + 1),
}

# This student thought that parameters are dealt out over the eight devices as the rows of x are.
dp_numbers__wrong_shares = {
    "parameters": _N,
    "bytes of parameters on each device": 4 * _N // 8,
    "bytes of x on each device": 8192 // 8 * 784 * 4,
    "bytes each device sends in a step": 7 * (_N + 1),
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (_N + 1),
}

# This student thought that with a 128th of the rows there is a 128th of the gradients to send.
dp_numbers__wrong_rows = {
    "parameters": _N,
    "bytes of parameters on each device": 4 * _N,
    "bytes of x on each device": 8192 // 8 * 784 * 4,
    "bytes each device sends in a step": 7 * (_N + 1),
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (_N + 1) / 128,
}

# This student took the price of a reduce_scatter, 7/8 of V, for that of an all_reduce.
dp_numbers__wrong_one_way = {
    "parameters": _N,
    "bytes of parameters on each device": 4 * _N,
    "bytes of x on each device": 8192 // 8 * 784 * 4,
    "bytes each device sends in a step": 7 / 8 * 4 * (_N + 1),
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 / 8 * 4 * (_N + 1),
}

# This student thought that the loss is just one number of four bytes, which is sent once and not all_reduced as the gradients are.
dp_numbers__wrong_loss_once = {
    "parameters": _N,
    "bytes of parameters on each device": 4 * _N,
    "bytes of x on each device": 8192 // 8 * 784 * 4,
    "bytes each device sends in a step": 7 * _N + 4,
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * _N + 4,
}


# ---------------------------------------------------------------- accumulate


def accumulate__right_strided(params, x, y, *, microbatches, mesh):
    """(loss, gradients) of the whole batch, each device's rows in turns."""

    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def deal(rows):  # turn t gets rows t, t + microbatches, ...
            return jnp.moveaxis(rows.reshape(-1, microbatches, *rows.shape[1:]), 1, 0)

        def turn(total, part):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(own, *part)), None

        total, _ = jax.lax.scan(turn, nothing, (deal(x), deal(y)))
        share = 1 / (microbatches * mesh.shape["data"])
        return jax.lax.psum(jax.tree.map(lambda t: t * share, total), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# This student thought that only the gradients have to be divided by the turns, since the loss is a mean already.
def accumulate__wrong_loss_summed(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, part):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(own, *part)), None

        parts = tuple(a.reshape(microbatches, -1, *a.shape[1:]) for a in (x, y))
        (value, gradients), _ = jax.lax.scan(turn, nothing, parts)
        gradients = jax.tree.map(lambda g: g / microbatches, gradients)
        return jax.lax.pmean((value, gradients), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# This student thought that every turn must be averaged over the devices before it may be added to the total.
def accumulate__wrong_every_turn(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = jnp.float32(0), jax.tree.map(jnp.zeros_like, params)

        def turn(total, part):
            found = jax.lax.pmean(jax.value_and_grad(loss)(own, *part), "data")
            return jax.tree.map(jnp.add, total, found), None

        parts = tuple(a.reshape(microbatches, -1, *a.shape[1:]) for a in (x, y))
        total, _ = jax.lax.scan(turn, nothing, parts)
        return jax.tree.map(lambda t: t / microbatches, total)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# This student thought that gradients are added up over devices, so a psum it is, and that the turns are the only division needed.
def accumulate__wrong_psum(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, part):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(own, *part)), None

        parts = tuple(a.reshape(microbatches, -1, *a.shape[1:]) for a in (x, y))
        total, _ = jax.lax.scan(turn, nothing, parts)
        return jax.tree.map(lambda t: t / microbatches, jax.lax.psum(total, "data"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# This student thought that `own` is only there to make `nothing`, and differentiated at the parameters as they came (summed in each turn, then averaged).
def accumulate__wrong_params(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, part):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(params, *part)), None

        parts = tuple(a.reshape(microbatches, -1, *a.shape[1:]) for a in (x, y))
        total, _ = jax.lax.scan(turn, nothing, parts)
        return jax.lax.pmean(jax.tree.map(lambda t: t / microbatches, total), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# ---------------------------------------------------------------- which_run
# Nobody can know this table without the experiments, and the writer of this file was to run nothing:
# so the experiments of the notebook are made here, and the table is made of what they say.


def _experiments(lab, copies):
    def flat(tree):
        return np.concatenate([np.ravel(np.asarray(leaf, dtype=np.float64)) for leaf in jax.tree.leaves(tree)])

    def apart(name, **options):
        """How far a run's gradients are from those of one device in the same experiment."""
        found = flat(lab.gradients(name, **options)[1])
        right = flat(lab.gradients("one device", **options)[1])
        return float(np.linalg.norm(found - right) / np.linalg.norm(right))

    table, names = {}, list(lab.names)
    first = {name: lab.gradients(name) for name in names}
    versions = {name: int(copies(first[name][1])) for name in names}
    names.sort(key=versions.get)
    table[names.pop()] = "never synchronised"  # the most versions
    table[names.pop()] = "averaged over one axis"  # several

    right = flat(lab.gradients("one device")[1])

    def no_constant(name):
        found = flat(first[name][1])
        factor = found @ right / (right @ right)
        return float(np.linalg.norm(found - factor * right) / np.linalg.norm(found))

    names.sort(key=no_constant)
    constant, names = names[:2], names[2:]
    constant.sort(key=lambda name: float(first[name][0]))
    table[constant[0]], table[constant[1]] = "sum taken for the mean", "sum of means"  # the loss tells them apart

    masks = min(names, key=lambda name: apart(name, dropout=False))
    names.remove(masks)
    padding = min(names, key=lambda name: apart(name, padding=False))
    names.remove(padding)
    table[masks], table[padding], table[names[0]] = "same dropout masks", "padding counted", "last microbatch only"
    return {name: table[name] for name in sorted(table)}


def _confused(table, *cycle):
    """The same table, where each of these words is taken for the next one."""
    other = dict(zip(cycle, (*cycle[1:], cycle[0])))
    return {name: other.get(word, word) for name, word in table.items()}


which_run__right_experiments = _experiments(runs(), copies)

# This student thought that a factor of eight in the gradients with the right loss comes from a loss that is a psum of means.
which_run__wrong_two_sums = _confused(which_run__right_experiments, "sum taken for the mean", "sum of means")

# This student thought that fewer different copies mean less synchronisation, and took the number of copies for the number of devices that agree.
which_run__wrong_copies = _confused(which_run__right_experiments, "never synchronised", "averaged over one axis")

# This student switched padding off only together with dropout, and then guessed which of the two had made the ratios 1.
which_run__wrong_two_switches = _confused(which_run__right_experiments, "same dropout masks", "padding counted")

# This student thought that `alike=True` is about dropout masks (rows alike, masks alike), and that a skipped microbatch shows when padding is off.
which_run__wrong_alike = _confused(
    which_run__right_experiments, "last microbatch only", "same dropout masks", "padding counted"
)
