"""Answers to lesson 21, seventh batch, written by a reader of the notebook only."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh, AxisType, NamedSharding

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def shape(*lengths, spec, dtype=jnp.bfloat16):
    """An array that nobody has to make: its shape, dtype and layout."""
    return jax.ShapeDtypeStruct(lengths, dtype, sharding=NamedSharding(mesh, spec))


# ---------------------------------------------------------------- two_slices


def two_slices__right_steps(way, weights, chips, slices):
    """Goes round the rings, step by step: in a pass each of the others' parts goes by once."""
    part = weights / chips / slices
    if way == "data":
        passes = ["scatter", "gather"]  # an all_reduce
    else:
        passes = ["gather forwards", "gather on the way back", "scatter of the gradients"]
    return sum(part for _ in passes for _ in range(slices - 1))


# Adding up is one pass round the ring; that all have to hear of the sum afterwards is forgotten.
def two_slices__wrong_one_pass(way, weights, chips, slices):
    b = weights / chips
    passes = {"data": 1, "fsdp": 3}[way]
    return passes * (slices - 1) / slices * b


# Under fsdp the ring goes over all chips of all slices, so that is the n, and the bytes are all weights.
def two_slices__wrong_ring_of_all(way, weights, chips, slices):
    if way == "data":
        return 2 * (slices - 1) / slices * weights / chips
    n = chips * slices
    return 3 * (n - 1) / n * weights


# The weights are gathered once and are there for the way back as well: one gather and one reduce_scatter.
def two_slices__wrong_gathered_once(way, weights, chips, slices):
    b, n = weights / chips, slices
    one = (n - 1) / n * b
    all_reduce, fsdp = 2 * one, one + one
    return all_reduce if way == "data" else fsdp


# With "data" each slice has all weights, so each chip adds up all gradients with the other slices: no division by chips there.
def two_slices__wrong_whole_gradient(way, weights, chips, slices):
    ring = (slices - 1) / slices
    return {"data": 2 * ring * weights, "fsdp": 3 * ring * weights / chips}[way]


# ---------------------------------------------------------------- compile_for


def compile_for__right_mapped(shapes, dtype, specs, sizes):
    names, lengths = zip(*sizes.items())
    layout = map(
        lambda spec: NamedSharding(AbstractMesh(lengths, names, axis_types=(AxisType.Auto,) * len(names)), spec), specs
    )
    return [jax.ShapeDtypeStruct(tuple(whole), dtype, sharding=where) for whole, where in zip(shapes, layout)]


# A chip's compiler is given what a chip holds: the shape of one block.
def compile_for__wrong_blocks(shapes, dtype, specs, sizes):
    pod = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    out = []
    for whole, spec in zip(shapes, specs):
        sharding = NamedSharding(pod, spec)
        block = list(whole)
        for i, entry in enumerate(spec):
            for name in entry if isinstance(entry, tuple) else (entry,):
                if name is not None:
                    block[i] //= sizes[name]
        out.append(jax.ShapeDtypeStruct(tuple(block), dtype, sharding=sharding))
    return out


# Makes a mesh as in every other lesson, of the devices that are there: there are not so many.
def compile_for__wrong_real_mesh(shapes, dtype, specs, sizes):
    pod = jax.make_mesh(tuple(sizes.values()), tuple(sizes.keys()), axis_types=(AxisType.Auto,) * len(sizes))
    return [jax.ShapeDtypeStruct(s, dtype, sharding=NamedSharding(pod, p)) for s, p in zip(shapes, specs)]


# The helper `shape` has it all already; but its mesh is the one of the notebook, 4 x 2.
def compile_for__wrong_helper(shapes, dtype, specs, sizes):
    return [shape(*lengths, spec=spec, dtype=dtype) for lengths, spec in zip(shapes, specs)]


# Sorts the axes by name, so that the mesh does not depend on how the dict was written: the order of axes is lost.
def compile_for__wrong_sorted_axes(shapes, dtype, specs, sizes):
    names = sorted(sizes)
    pod = AbstractMesh(tuple(sizes[name] for name in names), tuple(names), axis_types=(AxisType.Auto,) * len(names))
    arrays = []
    for lengths, spec in zip(shapes, specs):
        arrays.append(jax.ShapeDtypeStruct(lengths, dtype, sharding=NamedSharding(pod, spec)))
    return arrays


# ---------------------------------------------------------------- who_talks


def who_talks__right_by_hand(groups, counted, turned):
    """Without NumPy: goes through the turned grid, and works out the number at each place."""
    read = []
    for index in itertools.product(*(range(counted[d]) for d in turned)):
        place, number = dict(zip(turned, index)), 0
        for d, length in enumerate(counted):
            number = number * length + place[d]
        read.append(number)
    size = len(read) // groups[0]
    return [read[k : k + size] for k in range(0, len(read), size)]


# Turning a grid of 4 x 2 makes one of 2 x 4, so reshape to that: the numbers stay in their old order.
def who_talks__wrong_reshaped(groups, counted, turned):
    grid = np.arange(math.prod(counted)).reshape([counted[d] for d in turned])
    return grid.reshape(groups).tolist()


# Reads T(...) as where each dimension goes to, and not which one comes there: the same with two dimensions.
def who_talks__wrong_inverse(groups, counted, turned):
    back = np.argsort(turned)
    return np.arange(np.prod(counted)).reshape(counted).transpose(back).reshape(groups).tolist()


# T is the transpose, so .T: what stands in its brackets is not looked at.
def who_talks__wrong_always_turned(groups, counted, turned):
    numbers = np.arange(int(np.prod(counted))).reshape(counted)
    return numbers.T.reshape(groups).tolist()


# [2, 4] as "groups of 2, four of them".
def who_talks__wrong_size_and_number(groups, counted, turned):
    size, number = groups
    flat = np.arange(math.prod(counted)).reshape(counted).transpose(turned).ravel()
    return [flat[g * size : (g + 1) * size].tolist() for g in range(number)]
