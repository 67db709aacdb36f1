"""Answers to lesson 03, twenty-first batch, written by a reader of the notebook only."""

import functools

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine


def stage(w, x):
    """One stage of a network."""
    return jax.nn.relu(x @ w)


# -------------------------------------------------------------- no_move_in_jit


def no_move_in_jit__right_MOVEFIRST(x, target):
    """2 * x, laid out over the mesh `target`, cut over x."""
    goal = NamedSharding(target, x.sharding.spec)  # the same blocks, on other devices
    arrived = jax.device_put(x, goal)
    return jax.jit(lambda a: 2 * a, out_shardings=goal)(arrived)


# "device_put moves the array that I give it; afterwards my name for it means the moved one."
def no_move_in_jit__wrong_INPLACE(x, target):
    def to_target(array):
        jax.device_put(array, NamedSharding(target, P("x")))

    doubled = jax.jit(lambda a: 2 * a)(x)
    to_target(doubled)
    return doubled


# "A mesh is a set of devices: I make myself a tidy one over target's devices, in the order of their numbers."
def no_move_in_jit__wrong_TIDY(x, target):
    def tidy(some_mesh):
        devices = sorted(some_mesh.devices.flat, key=lambda device: device.id)
        return Mesh(np.array(devices), ("x",), axis_types=(AxisType.Auto,))

    doubled = jax.jit(lambda a: 2 * a)(x)
    return jax.device_put(doubled, NamedSharding(tidy(target), P("x")))


# "Between two meshes there is only the host: fetch the doubled array as NumPy's, and lay it out again."
def no_move_in_jit__wrong_FETCH(x, target):
    doubled = np.asarray(jax.jit(lambda a: 2 * a)(x))
    return jax.device_put(doubled, NamedSharding(target, P("x")))


# "The move outside of jit is right, and the result is cut as it was anyway: the sharding only has to say which mesh, so P()."
def no_move_in_jit__wrong_ONLYMESH(x, target):
    double = jax.jit(lambda a: 2 * a)
    where = NamedSharding(target, P())
    return jax.device_put(double(x), where)


# ------------------------------------------------------------- halves_pipeline


def halves_pipeline__right_REDUCE(batches, weights):
    """Every batch through all stages, stage k on the mesh of weights[k]."""

    def visit(activations, w):
        there = NamedSharding(w.sharding.mesh, P("x"))
        return stage(w, jax.device_put(activations, there))

    return [functools.reduce(visit, weights, batch) for batch in batches]


# "The batches are uncommitted, so they follow the first weights by themselves: only between stages something has to be moved."
def halves_pipeline__wrong_FOLLOWS(batches, weights):
    def move(h, w):
        return jax.device_put(h, NamedSharding(w.sharding.mesh, P("x")))

    results = []
    for batch in batches:
        h = stage(weights[0], batch)
        for w in weights[1:]:
            h = stage(w, move(h, w))
        results.append(h)
    return results


# "The activations must be where the weights are, so they get the sharding of the weights."
def halves_pipeline__wrong_ASWEIGHTS(batches, weights):
    results = []
    for batch in batches:
        h = batch
        for w in weights:
            h = stage(w, jax.device_put(h, w.sharding))
        results.append(h)
    return results


# "I write the timetable of part 9 as it stands there: four batches take five steps, so it is always one step more than batches."
def halves_pipeline__wrong_TIMETABLE(batches, weights):
    def bring(h, w):
        return jax.device_put(h, NamedSharding(w.sharding.mesh, P("x")))

    current = list(batches)
    for step in range(len(batches) + 1):
        for k, w in enumerate(weights):
            number = step - k  # the batch that stage k works on in this step
            if 0 <= number < len(batches):
                current[number] = stage(w, bring(current[number], w))
    return current


# "After each stage the result goes to the next mesh, and the last one's next is the first: so every mesh is ready for the following batch."
def halves_pipeline__wrong_AROUND(batches, weights):
    meshes = [w.sharding.mesh for w in weights]

    def to_mesh(h, k):
        return jax.device_put(h, NamedSharding(meshes[k % len(meshes)], P("x")))

    results = []
    for batch in batches:
        h = to_mesh(batch, 0)
        for k, w in enumerate(weights):
            h = to_mesh(stage(w, h), k + 1)
        results.append(h)
    return results


# ------------------------------------------------------------------- two_stage


def two_stage__right_SAMESPEC(x, w1, w2):
    """Both stages, each on the mesh of its weights."""

    def over(mesh):
        (axis,) = mesh.axis_names
        return NamedSharding(mesh, P(axis))

    hidden = stage(w1, x)
    return stage(w2, jax.device_put(hidden, over(w2.sharding.mesh)))


# "They must meet, and it is the weights that I bring to the activations: then all of it is one list of devices."
def two_stage__wrong_WEIGHTSTRAVEL(x, w1, w2):
    hidden = stage(w1, x)
    visiting = jax.device_put(w2, NamedSharding(w1.sharding.mesh, w2.sharding.spec))
    return stage(visiting, hidden)


# "The second stage is on the second half: there is a mesh of that name above."
def two_stage__wrong_SECONDHALF(x, w1, w2):
    hidden = stage(w1, x)
    there = NamedSharding(second, P("x"))
    return stage(jax.device_put(w2, NamedSharding(second, P())), jax.device_put(hidden, there))


# "The hidden layer's columns meet the rows of w2, so it is the columns that are to be cut over x."
def two_stage__wrong_COLUMNS(x, w1, w2):
    hidden = stage(w1, x)
    there = NamedSharding(w2.sharding.mesh, P(None, "x"))
    return stage(w2, jax.device_put(hidden, there))


# "What NumPy has is committed to nothing, so the hidden layer becomes free again if it passes through it."
def two_stage__wrong_SETFREE(x, w1, w2):
    def free(array):
        return np.asarray(array)

    hidden = free(stage(w1, x))
    return stage(w2, jax.device_put(hidden, NamedSharding(w2.sharding.mesh, P("x"))))
