"""Answers to lesson 03, eighteenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- inside_jit

_rows = [
    "jax.device_put(jax.jit(jnp.sin)(front), there)",
    "jax.jit(lambda a: jax.device_put(a, there))(front)",
    "jax.jit(jnp.sin, out_shardings=there)(front)",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)",
]

# the rows that name two lists
inside_jit__right_two_lists = {row: "error" if k in (1, 2, 5) else "runs" for k, row in enumerate(_rows)}

# doubled_there failed because 2 * x is computed on 0-3; a function that only moves has nothing to compute there.
inside_jit__wrong_pure_move = {
    "jax.device_put(jax.jit(jnp.sin)(front), there)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(front)": "runs",
    "jax.jit(jnp.sin, out_shardings=there)(front)": "error",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "runs",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "runs",
}

# out_shardings stand outside of the function, so it is the runtime that brings the result there, after the program.
inside_jit__wrong_out_shardings = {
    "jax.device_put(jax.jit(jnp.sin)(front), there)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(front)": "error",
    "jax.jit(jnp.sin, out_shardings=there)(front)": "runs",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "runs",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "error",
}

# device_put is the runtime's, so inside jit it is an error always.
inside_jit__wrong_never_inside = {
    "jax.device_put(jax.jit(jnp.sin)(front), there)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(front)": "error",
    "jax.jit(jnp.sin, out_shardings=there)(front)": "error",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "error",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "error",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "error",
}

# Committed means that it stays, and so does what is computed from it: sin(front) may not leave 0-3 by any way.
inside_jit__wrong_committed_stays = {
    "jax.device_put(jax.jit(jnp.sin)(front), there)": "error",
    "jax.jit(lambda a: jax.device_put(a, there))(front)": "error",
    "jax.jit(jnp.sin, out_shardings=there)(front)": "error",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "runs",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "error",
}

# ---------------------------------------------------------------- halves_pipeline


def halves_pipeline__right_reduce(batches, weights):
    from functools import reduce

    def onward(h, w):
        here = NamedSharding(w.sharding.mesh, P("x"))
        return stage(w, jax.device_put(h, here))

    return [reduce(onward, weights, batch) for batch in batches]


# The batch has to be where the weights are, and w.sharding says where that is.
def halves_pipeline__wrong_like_weights(batches, weights):
    results = []
    for batch in batches:
        h = batch
        for w in weights:
            h = stage(w, jax.device_put(h, w.sharding))
        results.append(h)
    return results


# A batch that is uncommitted follows the weights by itself, so only what comes out of a stage has to be moved.
def halves_pipeline__wrong_not_the_first(batches, weights):
    results = []
    for batch in batches:
        h = stage(weights[0], batch)
        for w in weights[1:]:
            h = stage(w, jax.device_put(h, NamedSharding(w.sharding.mesh, P("x"))))
        results.append(h)
    return results


# The stages' meshes are the two halves of this lesson.
def halves_pipeline__wrong_two_halves(batches, weights):
    results = []
    for batch in batches:
        h = batch
        for w, half in zip(weights, (first, second)):
            h = stage(w, jax.device_put(h, NamedSharding(half, P("x"))))
        results.append(h)
    return results


# Bring the batch to each stage's mesh and run the stage there (what the stage before made is not handed on).
def halves_pipeline__wrong_batch_again(batches, weights):
    results = []
    for batch in batches:
        for w in weights:
            there = NamedSharding(w.sharding.mesh, P("x"))
            h = stage(w, jax.device_put(batch, there))
        results.append(h)
    return results


# ---------------------------------------------------------------- alias

# what is the same array, or is donated, is gone
alias__right_same_or_new = {
    **dict.fromkeys(["jnp.copy(a)", "jax.device_put(a, a.sharding, may_alias=False)", "a + 0"], "alive"),
    **dict.fromkeys(
        ["jax.device_put(a, a.sharding)", "jnp.asarray(a)", "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)"],
        "deleted",
    ),
}

# Donating allows the program to write into a's memory; the name a is still there and shows the result.
alias__wrong_in_place = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "alive",
}

# device_put to where the array is has nothing to do, whatever its other arguments are.
alias__wrong_nothing_to_do = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "deleted",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# The compiler knows that adding 0 does nothing, and gives back its operand.
alias__wrong_optimised = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "deleted",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# What comes out of jax.numpy is a new array, asarray's as well; only device_put gives back the same.
alias__wrong_asarray_new = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "alive",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}
