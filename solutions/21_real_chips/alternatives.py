"""Right answers to 21_real_chips, each spelled differently from the lesson's model solution.

All of them must earn full marks: the judge sees what a program does, not how it is written.
"""

import itertools
import math
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P


def hbm__new_results(arguments, results, temporaries, shared, peak, room):
    """Results that need room of their own, first."""
    return [arguments + (results - shared) + temporaries, peak / 2**30 <= room]


def chip_collectives__counter(lines, iterations):
    """A Counter, which is a dict; lines that wait are skipped."""
    found = Counter()
    for line in lines:
        name = line.strip()
        times = iterations if line != name else 1
        if name == "all-reduce-scatter fusion":
            found["reduce-scatter"] += times
        elif name.split("-start")[0] in ("all-gather", "all-reduce", "collective-permute"):
            found[name.split("-start")[0]] += times
    return found


def hidden__by_places(schedule):
    """For each transfer its two places in the list, and the products between them."""
    place = {tuple(entry): k for k, entry in enumerate(schedule) if entry[0] != "product"}
    return {
        name: sum(f for kind, f in schedule[place["start", name] : place["done", name]] if kind == "product")
        for what, name in schedule
        if what == "start"
    }


def who_talks__moveaxis(groups, counted, turned):
    """einsum-like, by moving axes."""
    numbers = np.arange(math.prod(counted)).reshape(counted)
    return np.moveaxis(numbers, turned, range(len(turned))).reshape(groups)


def order_of_devices__numpy(ring, lengths, wraps):
    """All steps at once."""
    places = np.array(ring)
    steps = np.abs(places - np.roll(places, -1, axis=0))
    around = np.where(wraps, np.minimum(steps, np.array(lengths) - steps), steps)
    return int(around.sum(axis=1).max())


def order_of_devices__pairwise(ring, lengths, wraps):
    """Modulo the length where there is a ring."""
    far = 0
    for one, other in itertools.pairwise([*ring, ring[0]]):
        wires = 0
        for k in (0, 1):
            n = abs(one[k] - other[k])
            wires += min((one[k] - other[k]) % lengths[k], (other[k] - one[k]) % lengths[k]) if wraps[k] else n
        far = max(far, wires)
    return far


def mfu__per_chip(parameters, tokens, seconds, chips, peak):
    """FLOPs a second of one chip, over its peak."""
    forward = 2 * parameters * tokens
    return (forward + 2 * forward) / seconds / chips / peak


def two_slices__passes(way, weights, chips, slices):
    """By what each pass brings in."""
    share = weights / chips
    return {"data": 2, "fsdp": 3}[way] * (share - share / slices)


def compile_for__dims(shapes, dtype, specs, sizes):
    """The mesh from pairs, every spec filled up."""
    pod = AbstractMesh(tuple(sizes[name] for name in sizes), tuple(sizes))
    full = [P(*spec, *[None] * (len(shape) - len(spec))) for shape, spec in zip(shapes, specs, strict=True)]
    return tuple(
        jax.ShapeDtypeStruct(shape, jnp.dtype(dtype), sharding=NamedSharding(pod, spec))
        for shape, spec in zip(shapes, full, strict=True)
    )


def it_fits__inside(weights, x, *, mesh):
    """The checkpoint around the product alone; the compiler keeps the batch where it lies."""
    grow = jax.checkpoint(lambda h, w: h + jax.nn.relu(h @ w))

    def loss(weights, x):
        last, _ = lax.scan(lambda h, w: (grow(h, w), None), x, weights)
        return jnp.square(last.astype(jnp.float32)).mean()

    return jax.grad(loss)(weights, x)


def it_fits__policy(weights, x, *, mesh):
    """With a policy that keeps nothing, and the gradient by vjp."""
    keep = jax.checkpoint_policies.nothing_saveable

    def layer(h, w):
        return lax.with_sharding_constraint(h + jnp.maximum(h @ w, 0), NamedSharding(mesh, P("x", None))), None

    def loss(weights):
        return jnp.mean(lax.scan(jax.checkpoint(layer, policy=keep), x, weights)[0].astype(jnp.float32) ** 2)

    _, back = jax.vjp(loss, weights)
    return back(jnp.float32(1))[0]


def bet__collectives(way, data, model, weights, activations):
    """Collective by collective."""

    def one_pass(n, whole):
        return (n - 1) * whole / n

    held = weights / model
    gradients = 2 * one_pass(data, held) if way == "dp" else sum(one_pass(data, held) for _ in range(3))
    return gradients + 2 * (2 * one_pass(model, activations / data))
