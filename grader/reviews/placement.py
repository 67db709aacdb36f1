"""What later lessons ask about 03_placement. Every answer is the outcome of an experiment."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.reviews.question import Question

LESSON = "03_placement"


def _over(numbers: list[int], spec: P = P("x")) -> jax.Array:
    """Entries 0, 10, 20, … laid out over the devices of these numbers, in this order."""
    mesh = Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))
    return jax.device_put(10 * np.arange(2 * len(numbers)), NamedSharding(mesh, spec))


def who_holds_an_entry(rng: np.random.Generator) -> Question:
    numbers = [int(k) for k in rng.permutation(8)[:4]]
    entry = int(rng.integers(8))
    array = _over(numbers)
    answer = next(
        k
        for k, d in enumerate(jax.devices())
        for s in array.addressable_shards
        if s.device == d and 10 * entry in np.asarray(s.data)
    )
    return Question(
        f"A mesh with the axis x is made of devices {numbers}, in this order, and an array of 8 entries is "
        f"put on it as P('x'). The number of the device that holds x[{entry}]:",
        answer,
        f"Two entries a device: x[{entry}] belongs to place {entry // 2} of the mesh, and there stands "
        f"device {answer}.",
    )


def may_they_meet(rng: np.random.Generator) -> Question:
    """Two committed arrays, over the same devices in the same order, in another order, or over others."""
    numbers = [int(k) for k in rng.permutation(8)[:4]]
    others, why = [
        (list(numbers), "One list of devices; the two layouts are the compiler's business."),
        (numbers[::-1], "The same devices in another order are another list, and nothing that is committed moves."),
        (sorted(set(range(8)) - set(numbers)), "Different devices, and JAX moves nothing that is committed."),
    ][rng.integers(3)]
    spec = [P("x"), P()][rng.integers(2)]
    try:
        _over(numbers) + _over(others, spec)
        answer = "runs"
    except ValueError:
        answer = "error"
    return Question(
        f"Meshes with Auto axes. x is put on devices {numbers} as P('x'), y on devices {others} as "
        f"P({', '.join(map(repr, spec))}). x + y: 'runs' or 'error'?",
        answer,
        why,
    )


def is_it_committed(rng: np.random.Generator) -> Question:
    device = int(rng.integers(8))
    x = jax.device_put(np.arange(4.0), jax.devices()[device])
    code, value, why = [
        ("jnp.arange(4)", jnp.arange(4), "Nobody said where; JAX chose."),
        ("jax.device_put(np.arange(4))", jax.device_put(np.arange(4)), "A device_put without a place commits to none."),
        ("x + jnp.arange(4)", x + jnp.arange(4), "One committed operand is enough: the result is where it is."),
        ("jnp.ones_like(x)", jnp.ones_like(x), "Today it takes over the placement of x, too."),
        ("jnp.ones(x.shape)", jnp.ones(x.shape), "A shape says nothing about devices."),
        ("jnp.asarray(np.asarray(x))", jnp.asarray(np.asarray(x)), "NumPy remembers no devices."),
    ][rng.integers(6)]
    return Question(
        f"x = jax.device_put(np.arange(4.0), jax.devices()[{device}]). Is {code} committed: True or False?",
        bool(value.committed),
        why,
    )
