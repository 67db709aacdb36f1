"""Answers to lesson 21, nineteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh, AxisType, NamedSharding

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = AbstractMesh((8,), ("x",), axis_types=(AxisType.Auto,))


def shape(*lengths, spec, dtype=jnp.bfloat16):
    """An array that nobody has to make: its shape, dtype and layout."""
    return jax.ShapeDtypeStruct(lengths, dtype, sharding=NamedSharding(mesh, spec))


# ---------------------------------------------------------------- compile_for


def compile_for__right_update(shapes, dtype, specs, sizes):
    """Structs without a layout first, which are then given one."""
    names, lengths = zip(*sizes.items())
    pod = AbstractMesh(lengths, names, axis_types=(AxisType.Auto,) * len(names))
    bare = [jax.ShapeDtypeStruct(tuple(whole), dtype) for whole in shapes]
    return [struct.update(sharding=NamedSharding(pod, spec)) for struct, spec in zip(bare, specs)]


# This student thinks that the compiler, whose program runs on one chip, is given the shape of one chip's block.
def compile_for__wrong_blocks(shapes, dtype, specs, sizes):
    pod = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    shardings = [NamedSharding(pod, spec) for spec in specs]
    return [jax.ShapeDtypeStruct(s.shard_shape(tuple(whole)), dtype, sharding=s) for whole, s in zip(shapes, shardings)]


# This student copies the body of the cell's `shape`, bfloat16 and all, and overlooks that `dtype` is an argument here.
def compile_for__wrong_bfloat16(shapes, dtype, specs, sizes):
    pod = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    return [
        jax.ShapeDtypeStruct(whole, jnp.bfloat16, sharding=NamedSharding(pod, spec))
        for whole, spec in zip(shapes, specs)
    ]


# This student makes the mesh as in every lesson before, of real devices: as many as there happen to be here.
def compile_for__wrong_real_devices(shapes, dtype, specs, sizes):
    pod = jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    return [jax.ShapeDtypeStruct(whole, dtype, sharding=NamedSharding(pod, spec)) for whole, spec in zip(shapes, specs)]


# This student calls the notebook's `shape`, and so lays everything out on the notebook's 4 x 2 mesh, whatever `sizes` says.
def compile_for__wrong_notebook_mesh(shapes, dtype, specs, sizes):
    return [shape(*whole, spec=spec, dtype=dtype) for whole, spec in zip(shapes, specs)]


# ---------------------------------------------------------------- bet


def bet__right_passes(way, data, model, weights, activations):
    """Count passes: one pass over n devices sends (n - 1) / n of the bytes."""

    def one_pass(n, size):
        return size - size / n

    of_data = {"dp": 2}.get(way, 3)  # there and back of an all_reduce; or two gathers and a reduce_scatter
    return of_data * one_pass(data, weights / model) + 2 * 2 * one_pass(model, activations / data)


# This student forgets that along data only a chip's part of the weights (1/model of them) goes round.
def bet__wrong_whole_weights(way, data, model, weights, activations):
    passes = 2 if way == "dp" else 3
    return passes * (data - 1) / data * weights + 4 * (model - 1) / model * activations / data


# This student gathers the weights once and keeps them for the way back: a gather and a reduce_scatter, as many bytes as in "dp".
def bet__wrong_gathered_once(way, data, model, weights, activations):
    along_data = 2 * (data - 1) / data * weights / model
    along_model = 4 * (model - 1) / model * activations / data
    return along_data + along_model


# This student takes a sum along model for a single pass, forgetting that an all_reduce is two.
def bet__wrong_single_pass_sums(way, data, model, weights, activations):
    along_data = (2 if way == "dp" else 3) * (data - 1) / data * weights / model
    along_model = 2 * (model - 1) / model * activations / data
    return along_data + along_model


# This student divides by the axis over which the collective goes, where the other one is due (a chip sends "its share" of a shard).
def bet__wrong_other_axis(way, data, model, weights, activations):
    along_data = (2 if way == "dp" else 3) * (data - 1) / data * weights / (1 if way == "dp" else data)
    along_model = 4 * (model - 1) / model * activations / model
    return along_data + along_model


# ---------------------------------------------------------------- order_of_devices


def order_of_devices__right_arrays(ring, lengths, wraps):
    """All steps at once, in NumPy."""
    places, lengths = np.array(ring), np.array(lengths)
    apart = np.abs(places - np.roll(places, -1, axis=0))
    apart = np.where(np.array(wraps), np.minimum(apart, lengths - apart), apart)
    return int(apart.sum(axis=1).max())


# This student takes the ring for a chain, and leaves out the step from the last to the first.
def order_of_devices__wrong_chain(ring, lengths, wraps):
    longest = 0
    for here, there in zip(ring, ring[1:]):
        wires = 0
        for a, b, n, closed in zip(here, there, lengths, wraps):
            wires += min(abs(a - b), n - abs(a - b)) if closed else abs(a - b)
        longest = max(longest, wires)
    return longest


# This student thinks that both dimensions are gone through at the same time, so that the longer of the two counts.
def order_of_devices__wrong_diagonal(ring, lengths, wraps):
    def wires(here, there):
        ways = []
        for a, b, n, closed in zip(here, there, lengths, wraps):
            ways.append(min(abs(a - b), n - abs(a - b)) if closed else abs(a - b))
        return max(ways)

    return max(wires(here, there) for here, there in zip(ring, [*ring[1:], ring[0]]))


# This student sends one way round only along a closed dimension, as on a directed ring: a step back costs almost the whole circle.
def order_of_devices__wrong_one_way(ring, lengths, wraps):
    def wires(here, there):
        return sum((b - a) % n if closed else abs(b - a) for a, b, n, closed in zip(here, there, lengths, wraps))

    return max(wires(here, there) for here, there in zip(ring, [*ring[1:], ring[0]]))


# This student thinks that a pod is a torus or is none: only if both dimensions are closed does any step go round the edge.
def order_of_devices__wrong_all_or_none(ring, lengths, wraps):
    torus, steps = all(wraps), []
    for k in range(len(ring)):
        apart = [abs(a - b) for a, b in zip(ring[k - 1], ring[k])]
        steps.append(sum(min(d, n - d) if torus else d for d, n in zip(apart, lengths)))
    return max(steps)
