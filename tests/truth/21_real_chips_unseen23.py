"""Answers to lesson 21, twenty-third batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = AbstractMesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- it_fits


def it_fits__right_remat(weights, x, *, mesh):
    """The gradient of the stack's loss for its weights."""
    rows = NamedSharding(mesh, P("x"))

    def grown(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), rows)

    once_more = jax.remat(grown)

    def loss(weights):
        last, _ = lax.scan(lambda h, w: (once_more(h, w), None), x, weights)
        return jnp.mean(last.astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights)


# This student puts jax.checkpoint around the whole loss: then nothing at all is kept, it seems.
def it_fits__wrong_around_loss(weights, x, *, mesh):
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    @jax.checkpoint
    def loss(weights, x):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights, x)


# This student wants no product twice, and keeps the products: twice ten GiB in place of ten and five.
def it_fits__wrong_products_kept(weights, x, *, mesh):
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    layer = jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable)

    def loss(weights, x):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights, x)


# This student keeps the inputs of groups of layers only, and computes a layer twice more for that.
def it_fits__wrong_groups(weights, x, *, mesh):
    layers = len(weights)
    groups = max(k for k in range(1, layers + 1) if layers % k == 0 and k * k <= layers)

    @jax.checkpoint
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    @jax.checkpoint
    def group(h, ws):
        return lax.scan(layer, h, ws)[0], None

    def loss(weights, x):
        grouped = weights.reshape(groups, layers // groups, *weights.shape[1:])
        return jnp.mean(lax.scan(group, x, grouped)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights, x)


# This student writes it in shard_map, each device with the mean of its own tokens, and forgets that the gradients are then added up.
def it_fits__wrong_own_mean(weights, x, *, mesh):
    @jax.checkpoint
    def layer(h, w):
        return h + jax.nn.relu(h @ w), None

    def loss(weights, x):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.shard_map(jax.grad(loss), mesh=mesh, in_specs=(P(), P("x")), out_specs=P())(weights, x)


# ---------------------------------------------------------------- chip_collectives


def chip_collectives__right_table(lines, turns):
    """Kind → how often it is run."""
    called = {kind + end: kind for kind in ("all-gather", "all-reduce", "collective-permute") for end in ("", "-start")}
    called["all-reduce-scatter fusion"] = "reduce-scatter"
    runs = [(called[line.strip()], turns if line[:2] == "  " else 1) for line in lines if line.strip() in called]
    return {kind: sum(n for other, n in runs if other == kind) for kind, _ in runs}


# This student goes by how a name begins, so that a reduce-scatter counts as an all-reduce.
def chip_collectives__wrong_prefix(lines, turns):
    found = {}
    for line in lines:
        name = line.strip()
        for kind in ("all-gather", "all-reduce", "collective-permute", "reduce-scatter"):
            if name.startswith(kind) and not name.endswith("-done"):
                found[kind] = found.get(kind, 0) + (turns if line.startswith("  ") else 1)
    return found


# This student counts a start and a done as two.
def chip_collectives__wrong_both_ends(lines, turns):
    kinds = {kind: kind for kind in ("all-gather", "all-reduce", "collective-permute")} | {
        "all-reduce-scatter fusion": "reduce-scatter"
    }
    found = {}
    for line in lines:
        name = line.strip().removesuffix("-start").removesuffix("-done")
        if name in kinds:
            found[kinds[name]] = found.get(kinds[name], 0) + (turns if line.startswith("  ") else 1)
    return found


# This student takes the blanks away first, and looks for them afterwards: nothing is in the loop any more.
def chip_collectives__wrong_stripped(lines, turns):
    kinds = {kind: kind for kind in ("all-gather", "all-reduce", "collective-permute")} | {
        "all-reduce-scatter fusion": "reduce-scatter"
    }
    found = {}
    for line in map(str.strip, lines):
        name = line.removesuffix("-start")
        if name in kinds:
            found[kinds[name]] = found.get(kinds[name], 0) + (turns if line.startswith("  ") else 1)
    return found


# This student thinks that every transfer is two lines, and counts starts and the fusions only.
def chip_collectives__wrong_starts_only(lines, turns):
    kinds = {f"{kind}-start": kind for kind in ("all-gather", "all-reduce", "collective-permute")}
    kinds["all-reduce-scatter fusion"] = "reduce-scatter"
    found = {}
    for line in lines:
        kind = kinds.get(line.strip())
        if kind:
            found[kind] = found.get(kind, 0) + (turns if line.startswith("  ") else 1)
    return found


# ---------------------------------------------------------------- hbm


def hbm__right_peak_in_gib(arguments, results, temporaries, shared, peak, room):
    """(bytes of the parts, whether the program fits into so many GiB)."""
    return sum((arguments, results - shared, temporaries)), peak / 2**30 <= room


# This student wants to be safe: neither the sum nor the peak may be more than the room.
def hbm__wrong_the_larger(arguments, results, temporaries, shared, peak, room):
    total = arguments + results + temporaries - shared
    return total, max(total, peak) <= room * 2**30


# This student takes the G of "15.75G" for 10 to the 9.
def hbm__wrong_decimal(arguments, results, temporaries, shared, peak, room):
    return arguments + results + temporaries - shared, peak <= room * 10**9


# This student takes off the quarter of a GiB which the chip keeps, although the refusal has done that.
def hbm__wrong_quarter_again(arguments, results, temporaries, shared, peak, room):
    return arguments + results + temporaries - shared, peak <= (room - 0.25) * 2**30


# This student thinks that sharing has been taken off the results already, and adds up the parts as they stand.
def hbm__wrong_shared_twice(arguments, results, temporaries, shared, peak, room):
    return arguments + results + temporaries, peak <= room * 2**30
