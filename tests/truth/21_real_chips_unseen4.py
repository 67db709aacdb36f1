"""Answers to lesson 21, fourth batch, written by a reader of the notebook only."""

from collections import Counter

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ------------------------------------------------------------------ it_fits


def it_fits__right_vjp(weights, x, *, mesh):
    """Only the branch with the product is checkpointed; the sum around it keeps nothing."""
    rows = NamedSharding(mesh, P("x"))

    @jax.remat
    def branch(h, w):
        return jax.nn.relu(h @ w)

    def turn(h, w):
        return lax.with_sharding_constraint(h + branch(h, w), rows), None

    def total(weights):
        h, _ = lax.scan(turn, x, weights)
        return jnp.mean(jnp.square(h.astype(jnp.float32)))

    value, back = jax.vjp(total, weights)
    return back(jnp.ones_like(value))[0]


# This student put the checkpoint around the whole loss.
def it_fits__wrong_around_the_loss(weights, x, *, mesh):
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    @jax.checkpoint
    def loss(weights):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights)


# This student keeps the products, which are expensive, and gives up the rest only.
def it_fits__wrong_products_kept(weights, x, *, mesh):
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    layer = jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable)

    def loss(weights):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights)


# This student keeps the input of every fourth layer only, and inside of a group checkpoints once more: two extra products a layer.
def it_fits__wrong_two_levels(weights, x, *, mesh):
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    @jax.checkpoint
    def group(h, some):
        return lax.scan(jax.checkpoint(layer), h, some)

    def loss(weights):
        size = 4 if len(weights) % 4 == 0 else 1
        groups = weights.reshape(-1, size, *weights.shape[1:])
        return jnp.mean(lax.scan(group, x, groups)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights)


# This student took the layer of part 2, which has no `h +`.
def it_fits__wrong_other_layer(weights, x, *, mesh):
    @jax.checkpoint
    def layer(h, w):
        return lax.with_sharding_constraint(jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    def loss(weights):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights)


# ------------------------------------------------------------------ cpu_and_tpu

cpu_and_tpu__right_hints = {
    "written gather, bfloat16": "dtype",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "nothing",
    "left sum, float32": "kind",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# This student thought that simulated devices, which compute bfloat16 in float32, send it so in every case.
cpu_and_tpu__right_always_wide = {
    "written gather, bfloat16": "dtype",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "nothing",
    "left sum, float32": "kind",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# This student thought that what is written is sent as it is written, kind and dtype.
cpu_and_tpu__wrong_written_is_written = {
    "written gather, bfloat16": "nothing",
    "written gather, float32": "nothing",
    "written reduce_scatter, float32": "nothing",
    "left sum, float32": "kind",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# This student thought that a chip sends all float32 as bfloat16, sums of products too.
cpu_and_tpu__wrong_sums_rounded = {
    "written gather, bfloat16": "dtype",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "dtype",
    "left sum, float32": "both",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# This student thought that bfloat16 is two bytes on every wire, so that left sums differ in their kind alone.
cpu_and_tpu__wrong_two_bytes_everywhere = {
    "written gather, bfloat16": "nothing",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "nothing",
    "left sum, float32": "kind",
    "left sum, bfloat16": "kind",
    "left sum, bfloat16, 8192": "kind",
}


# ------------------------------------------------------------------ chip_collectives


def chip_collectives__right_counter(lines, turns):
    """A table of all ways to write a collective, and a Counter."""
    written = {"all-reduce-scatter fusion": "reduce-scatter"}
    for kind in ("all-gather", "all-reduce", "collective-permute"):
        written |= {kind: kind, f"{kind}-start": kind}
    found = Counter()
    for line in lines:
        if (kind := written.get(line.strip())) is not None:
            found[kind] += turns if line[:2] == "  " else 1
    return {kind: times for kind, times in found.items() if times}


# This student counts the start and the done of a transfer as two collectives.
def chip_collectives__wrong_both_halves(lines, turns):
    found = {}
    for line in lines:
        name = line.strip().removesuffix("-start").removesuffix("-done")
        kind = "reduce-scatter" if name == "all-reduce-scatter fusion" else name
        if kind in ("all-gather", "all-reduce", "collective-permute", "reduce-scatter"):
            found[kind] = found.get(kind, 0) + (turns if line.startswith("  ") else 1)
    return found


# This student counts lines: what stands in the loop once counts once.
def chip_collectives__wrong_lines(lines, turns):
    found = {}
    for line in lines:
        name = line.strip().removesuffix("-start")
        kind = {"all-reduce-scatter fusion": "reduce-scatter"}.get(name, name)
        if kind in ("all-gather", "all-reduce", "collective-permute", "reduce-scatter"):
            found[kind] = found.get(kind, 0) + 1
    return found


# This student looks at how a name begins, so an all-reduce-scatter fusion is taken for an all-reduce.
def chip_collectives__wrong_beginning(lines, turns):
    found = {}
    for line in lines:
        name = line.strip()
        for kind in ("all-gather", "all-reduce", "collective-permute", "reduce-scatter"):
            if name.startswith(kind) and not name.endswith("-done"):
                found[kind] = found.get(kind, 0) + (turns if line.startswith("  ") else 1)
    return found


# This student thought that on a chip every transfer has a start and a done, and counts only starts (and the fusions).
def chip_collectives__wrong_starts_only(lines, turns):
    found = {}
    for line in lines:
        name = line.strip()
        if name == "all-reduce-scatter fusion":
            kind = "reduce-scatter"
        elif name.endswith("-start"):
            kind = name.removesuffix("-start")
        else:
            continue
        if kind in ("all-gather", "all-reduce", "collective-permute", "reduce-scatter"):
            found[kind] = found.get(kind, 0) + (turns if line.startswith("  ") else 1)
    return found
