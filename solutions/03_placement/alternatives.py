"""Right answers to 03_placement, each written differently from the lesson's model solution."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P


def fix_the_placement__spelled_out(y, z):
    """The sharding and the transfer are on separate lines, and jnp.add is called by name."""
    place = y.sharding
    moved = jax.device_put(z, device=place)
    return jnp.add(y, moved)


def fix_the_placement__by_method(y, z):
    return z.to_device(y.sharding) + y


def fix_the_placement__summed_in_jit(y, z):
    z = jax.device_put(z, y.sharding)
    return jax.jit(lambda a, b: a + b, out_shardings=y.sharding)(y, z)


def no_move_in_jit__decorated(x, target):
    @jax.jit
    def double(values):
        return values + values

    return jax.device_put(double(x), NamedSharding(target, P(("x",))))


def no_move_in_jit__moved_first(x, target):
    """It moves before it doubles: the result doesn't show where the doubling ran."""
    return jax.jit(lambda a: a * 2)(jax.device_put(x, NamedSharding(target, P("x"))))


def two_stage__compiled(x, w1, w2):
    """Each stage compiled, without `stage`, on the axes that the meshes have."""
    relu_of_product = jax.jit(lambda a, w: jnp.maximum(jnp.dot(a, w), 0))
    mesh = w2.sharding.mesh
    h = jax.device_put(relu_of_product(x, w1), NamedSharding(mesh, P(mesh.axis_names[0], None)))
    return relu_of_product(h, w2)


def two_stage__with_out_shardings(x, w1, w2):
    """out_shardings on the mesh where the stage runs, and the same spec on the next."""
    h = jax.jit(lambda w, a: stage(w, a), out_shardings=x.sharding)(w1, x)  # noqa: F821 - the lesson's own
    return stage(w2, jax.device_put(h, NamedSharding(w2.sharding.mesh, x.sharding.spec)))  # noqa: F821


def halves_pipeline__stage_by_stage(batches, weights):
    """All batches through a stage before the next stage: the same queues, filled in a different order."""
    for w in weights:
        place = NamedSharding(w.sharding.mesh, P("x"))
        batches = [stage(w, jax.device_put(h, place)) for h in batches]  # noqa: F821
    return batches


def halves_pipeline__in_pairs(batches, weights):
    """device_put takes a list at once, and the results are a tuple."""

    def through(h):
        for w in weights:
            (h,) = jax.device_put([h], NamedSharding(w.sharding.mesh, P("x", None)))
            h = jax.jit(stage)(w, h)  # noqa: F821
        return h

    return tuple(map(through, batches))
