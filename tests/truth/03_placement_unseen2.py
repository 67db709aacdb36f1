"""Answers to lesson 03, second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)


def stage(w, x):
    """One stage of a network."""
    return jax.nn.relu(x @ w)


def fix_the_placement__right_visitor(y, z):
    visitor = jax.device_put(z, y.sharding)
    return jnp.add(y, visitor)


def fix_the_placement__wrong_to_z(y, z):
    """Moves y: the sum is where z is."""
    return jax.device_put(y, z.sharding) + z


def fix_the_placement__wrong_thrown_away(y, z):
    """device_put returns a new array; z itself has not moved."""
    jax.device_put(z, y.sharding)
    return y + z


def fix_the_placement__wrong_both_to_one(y, z):
    """Both on the default device: two transfers, and not where y is."""
    device = jax.devices()[0]
    return jax.device_put(y, device) + jax.device_put(z, device)


def fix_the_placement__wrong_host(y, z):
    """Down to the host and up again, in place of one transfer."""
    return y + np.asarray(z)


def two_stage__right_spec_of_x(x, w1, w2):
    h = stage(w1, x)
    there = NamedSharding(w2.sharding.mesh, x.sharding.spec)
    return stage(w2, jax.device_put(h, there))


def two_stage__wrong_sharding_of_w2(x, w1, w2):
    """Activations whole on every device, as w2 is."""
    h = stage(w1, x)
    h = jax.device_put(h, w2.sharding)
    return stage(w2, h)


def two_stage__wrong_weights_travel(x, w1, w2):
    """The second stage on the first mesh: the weights have moved."""
    h = stage(w1, x)
    return stage(jax.device_put(w2, w1.sharding), h)


def two_stage__wrong_second_half(x, w1, w2):
    """The notebook's second half, not the mesh of w2."""
    h = stage(w1, x)
    return stage(w2, jax.device_put(h, NamedSharding(second, P("x"))))


def two_stage__wrong_one_stage(x, w1, w2):
    """Half of it: the second stage is missing."""
    h = stage(w1, x)
    h = jax.device_put(h, NamedSharding(w2.sharding.mesh, P("x")))
    return h


def halves_pipeline__right_through(batches, weights):
    def through(batch):
        for w in weights:
            here = NamedSharding(w.sharding.mesh, P("x"))
            batch = stage(w, jax.device_put(batch, here))
        return batch

    return list(map(through, batches))


def halves_pipeline__wrong_two_halves(batches, weights):
    """Two stages, where there may be four."""
    results = []
    for batch in batches:
        h = stage(weights[0], jax.device_put(batch, NamedSharding(weights[0].sharding.mesh, P("x"))))
        h = stage(weights[1], jax.device_put(h, NamedSharding(weights[1].sharding.mesh, P("x"))))
        results.append(h)
    return results


def halves_pipeline__wrong_every_stage(batches, weights):
    """Keeps what comes out of every stage: append inside the inner loop."""
    results = []
    for batch in batches:
        for w in weights:
            batch = stage(w, jax.device_put(batch, NamedSharding(w.sharding.mesh, P("x"))))
            results.append(batch)
    return results


def halves_pipeline__wrong_from_the_start(batches, weights):
    """Every stage is given the batch as it was: nothing is carried on."""
    results = []
    for batch in batches:
        for w in weights:
            h = stage(w, jax.device_put(batch, NamedSharding(w.sharding.mesh, P("x"))))
        results.append(h)
    return results


def halves_pipeline__wrong_whole(batches, weights):
    """Laid out as the weights are: not cut over x."""
    results = []
    for batch in batches:
        for w in weights:
            batch = stage(w, jax.device_put(batch, w.sharding))
        results.append(batch)
    return results


def no_move_in_jit__right_add(x, target):
    doubled = jax.jit(jnp.add)(x, x)
    return jax.device_put(doubled, NamedSharding(target, P("x")))


def no_move_in_jit__wrong_out_shardings(x, target):
    """A program has one list of devices: out_shardings cannot lead to others."""
    return jax.jit(lambda a: 2 * a, out_shardings=NamedSharding(target, P("x")))(x)


def no_move_in_jit__right_first_moved(x, target):
    """Moves first, and doubles on the target."""
    return jax.jit(lambda a: 2 * a)(jax.device_put(x, NamedSharding(target, P("x"))))


def no_move_in_jit__wrong_copies(x, target):
    """Whole on every device of the target."""
    return jax.device_put(jax.jit(lambda a: 2 * a)(x), NamedSharding(target, P()))


def no_move_in_jit__wrong_stays(x, target):
    """Doubles, and leaves it where x is."""
    doubled = jax.jit(lambda a: 2 * a)(x)
    jax.device_put(doubled, NamedSharding(target, P("x")))
    return doubled
