"""What later lessons ask about 03_placement. Every answer is the outcome of an experiment."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.questions import Question, core, stretch

LESSON = "03_placement"


def _over(numbers: list[int], spec: P = P("x")) -> jax.Array:
    """Elements 0, 10, 20, … sharded over the devices with these IDs, in this order."""
    mesh = Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))
    return jax.device_put(10 * np.arange(2 * len(numbers)), NamedSharding(mesh, spec))


def _drawn(rng: np.random.Generator) -> list[int]:
    """Four devices, not in the order of their IDs."""
    numbers = [int(k) for k in rng.permutation(8)[:4]]
    return numbers if numbers != sorted(numbers) else numbers[::-1]


@core(1)
def who_holds_an_entry(rng: np.random.Generator) -> Question:
    """On some of the devices, in the order of their IDs."""
    return _holder(rng, sorted(_drawn(rng)))


@stretch("device_order")
def who_holds_it_in_another_order(rng: np.random.Generator) -> Question:
    return _holder(rng, _drawn(rng))


def _holder(rng: np.random.Generator, numbers: list[int]) -> Question:
    entry = int(rng.integers(8))
    array = _over(numbers)
    answer = next(
        k
        for k, d in enumerate(jax.devices())
        for s in array.addressable_shards
        if s.device == d and 10 * entry in np.asarray(s.data)
    )
    return Question(
        f"A mesh with one axis, x, has the devices {numbers}, in this order. An array `a` with 8 elements is sharded "
        f"over it as P('x'). Which device holds a[{entry}]? (its ID)",
        answer,
        f"Each device holds two elements, so a[{entry}] is at position {entry // 2} of the mesh, which is device "
        f"{answer}.",
    )


SAME = "One list of devices. Different shardings over it are the compiler's job."
OTHERS = "The devices are different, and JAX doesn't move committed arrays."
TURNED = "The same devices in a different order are a different list, and JAX doesn't move committed arrays."


@core("fix_the_placement")
def may_they_meet(rng: np.random.Generator) -> Question:
    """Two committed arrays, on the same devices or on others."""
    numbers = sorted(_drawn(rng))
    others, why = [(numbers, SAME), (sorted(set(range(8)) - set(numbers)), OTHERS)][rng.integers(2)]
    return _meeting(rng, numbers, others, why)


@stretch("device_order")
def may_they_meet_in_another_order(rng: np.random.Generator) -> Question:
    """Two committed arrays, on the same devices in the same order or in another."""
    numbers = _drawn(rng)
    others, why = [(list(numbers), SAME), (numbers[::-1], TURNED)][rng.integers(2)]
    return _meeting(rng, numbers, others, why)


def _meeting(rng: np.random.Generator, numbers: list[int], others: list[int], why: str) -> Question:
    spec = [P("x"), P()][rng.integers(2)]
    try:
        _over(numbers) + _over(others, spec)
        answer = "runs"
    except ValueError:
        answer = "error"
    return Question(
        f"On meshes with Auto axes, `a` is put on devices {numbers} as P('x'), and `b` on devices {others} as "
        f"P({', '.join(map(repr, spec))}). Does a + b run? ('runs' or 'error')",
        answer,
        why,
    )


@core("commit_status")
def is_it_committed(rng: np.random.Generator) -> Question:
    device = int(rng.integers(8))
    x = jax.device_put(np.arange(4.0), jax.devices()[device])
    code, value, why = [
        ("jnp.arange(4)", jnp.arange(4), "You didn't say where, so JAX chose."),
        (
            "jax.device_put(np.arange(4))",
            jax.device_put(np.arange(4)),
            "A device_put without a device or sharding doesn't commit.",
        ),
        (
            "x + jnp.arange(4)",
            x + jnp.arange(4),
            "One committed operand is enough: the result is committed to its devices.",
        ),
        ("jnp.ones_like(x)", jnp.ones_like(x), "Today, it takes the sharding of x, too."),
        ("jnp.ones(x.shape)", jnp.ones(x.shape), "A shape says nothing about devices."),
        ("jnp.asarray(np.asarray(x))", jnp.asarray(np.asarray(x)), "NumPy doesn't know about devices."),
    ][rng.integers(6)]
    return Question(
        f"x = jax.device_put(np.arange(4.0), jax.devices()[{device}]). Is {code} committed: True or False?",
        bool(value.committed),
        why,
    )
