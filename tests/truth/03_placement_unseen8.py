"""Answers to lesson 03, eighth batch, written by a reader of the notebook only."""

from functools import reduce

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader import put


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)


def stage(w, x):
    """One stage of a network."""
    return jax.nn.relu(x @ w)


# --------------------------------------------------------------- who_holds_it
everybody = list(range(8))

who_holds_it__right_ranges = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": everybody,
    "front": [*range(4)],
    "whole[0]": everybody,
    "jax.device_put(front, there)": sorted({4, 5, 6, 7}),
}

# thought: whole[0] is one number, and it stands on device 0, where the first block is
who_holds_it__wrong_one_number_one_device = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# thought: device_put takes a sharding along, but front is committed and stays, so both halves hold it afterwards
who_holds_it__wrong_both_halves = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": everybody,
    "front": [0, 1, 2, 3],
    "whole[0]": everybody,
    "jax.device_put(front, there)": everybody,
}

# thought: the host is the CPU, and these devices are the CPU, so NumPy's array is on device 0; jnp.arange is free, on none
who_holds_it__wrong_host_is_device_0 = {
    "v": [0],
    "jnp.arange(8)": [],
    "copies": everybody,
    "front": [0, 1, 2, 3],
    "whole[0]": everybody,
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# thought: front was cut out of v's eight entries; the devices are counted within its mesh, so the second half is 0 to 3 too
who_holds_it__wrong_places_for_numbers = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [0, 1, 2, 3],
}

# ----------------------------------------------------------------- inside_jit
_jit_rows = [
    "jax.device_put(jax.jit(jnp.sin)(front), there)",
    "jax.jit(lambda a: jax.device_put(a, there))(front)",
    "jax.jit(jnp.sin, out_shardings=there)(front)",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)",
]

inside_jit__right_zipped = dict(zip(_jit_rows, ["runs", "error", "error", "runs", "runs", "error"]))

# thought: the eight devices are the same, and within one set of devices the compiler moves what it likes
inside_jit__wrong_a_set_of_devices = dict(zip(_jit_rows, ["runs", "error", "error", "runs", "runs", "runs"]))

# thought: fresh is on device 0, and there is 4 to 7: two lists
inside_jit__wrong_fresh_is_on_0 = dict(zip(_jit_rows, ["runs", "error", "error", "runs", "error", "error"]))

# thought: out_shardings is applied when the program is done, as a device_put after it
inside_jit__wrong_out_is_after = {
    key: "runs" if "out_shardings" in key else value for key, value in inside_jit__right_zipped.items()
}

# thought: device_put inside jit "moves nothing", so it is simply ignored and no such line can be an error
inside_jit__wrong_moves_nothing = dict(zip(_jit_rows, ["runs", "runs", "error", "runs", "runs", "runs"]))


# ------------------------------------------------------------ halves_pipeline
def halves_pipeline__right_reduce(batches, weights):
    def to_and_through(h, w):
        return stage(w, jax.device_put(h, NamedSharding(w.sharding.mesh, P("x"))))

    return [reduce(to_and_through, weights, batch) for batch in batches]


# thought: there are two halves: the first stage is weights[0] and the second the last one
def halves_pipeline__wrong_two_stages(batches, weights):
    w1, w2 = weights[0], weights[-1]
    results = []
    for batch in batches:
        h = stage(w1, put(batch, P("x"), w1.sharding.mesh))
        h = jax.device_put(h, NamedSharding(w2.sharding.mesh, P("x")))
        results.append(stage(w2, h))
    return results


# thought: a transfer belongs between two stages, so loop over pairs of neighbours: compute here, send there
def halves_pipeline__wrong_pairs(batches, weights):
    results = []
    for batch in batches:
        h = jax.device_put(batch, NamedSharding(weights[0].sharding.mesh, P("x")))
        for here, there in zip(weights, weights[1:]):
            h = stage(here, h)
            h = jax.device_put(h, NamedSharding(there.sharding.mesh, P("x")))
        results.append(h)
    return results


# thought: all batches are queued at the first stage, then all at the second; every stage is given `batches`
def halves_pipeline__wrong_never_carried(batches, weights):
    for w in weights:
        where = NamedSharding(w.sharding.mesh, P("x"))
        done = []
        for batch in batches:
            done.append(stage(w, jax.device_put(batch, where)))
    return done


# thought: the table of steps: in step t stage k works on batch t - k; the loop goes over as many steps as there are batches
def halves_pipeline__wrong_not_drained(batches, weights):
    at_stage = [None] * len(weights)
    results = []
    for step in range(len(batches)):
        for k in reversed(range(len(weights))):
            h = batches[step] if k == 0 else at_stage[k - 1]
            if h is None:
                continue
            h = jax.device_put(h, NamedSharding(weights[k].sharding.mesh, P("x")))
            at_stage[k] = stage(weights[k], h)
            if k == len(weights) - 1:
                results.append(at_stage[k])
    return results
