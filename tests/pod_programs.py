"""Small programs whose compiled text lies in `chips/compiled/`, as libtpu 0.0.42 wrote it."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

TWO, FOUR = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2), AbstractMesh((4,), ("x",))


def aval(mesh, shape, *spec, dtype=jnp.bfloat16):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def mapped(mesh, in_specs, out_specs):
    return functools.partial(jax.shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)


@mapped(TWO, (P("y", "x"), P("x")), P(("y", "x")))
def sums_scattered(a, b):
    """One product, one reduce_scatter over x."""
    return lax.psum_scatter(a @ b, "x", tiled=True)


@mapped(TWO, (P("x"), P("x")), P("x"))
def ring(a, b):
    """Three permutes, four products."""
    n, total, width = 4, 0, b.shape[0]
    for k in range(n):
        on = lax.ppermute(b, "x", [(j, (j + 1) % n) for j in range(n)]) if k < n - 1 else b
        start = (lax.axis_index("x") - k) % n * width
        total = total + lax.dynamic_slice_in_dim(a, start, width, 1) @ b
        b = on
    return total


def layers(weights, x):
    """A loop of six turns, its weights gathered in each; the gradient goes through a second loop."""

    def loss(weights):
        def layer(h, w):
            return lax.with_sharding_constraint(jax.nn.relu(h @ w), NamedSharding(TWO, P("x"))), None

        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(loss)(weights))


def too_large(a):
    return a @ jnp.sin(a), jnp.cos(a)


PROGRAMS = {
    "sums_scattered": (sums_scattered, (aval(TWO, (2048, 4096), "y", "x"), aval(TWO, (4096, 1024), "x")), "v5e:2x4"),
    "ring": (ring, (aval(TWO, (4096, 4096), "x"), aval(TWO, (4096, 2048), "x")), "v5e:2x4"),
    "layers": (
        jax.jit(layers, donate_argnums=0),
        (aval(TWO, (6, 2048, 2048), None, "x"), aval(TWO, (4096, 2048), "x")),
        "v5e:2x4",
    ),
    "too_large": (too_large, (aval(TWO, (65536, 65536)),), "v5e:2x4"),
}
