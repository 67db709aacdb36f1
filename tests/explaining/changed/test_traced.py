"""A traced reference that runs in NumPy gives what JAX gives, and with a step changed what that gives."""

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

from grader.arrays.numbers import close
from grader.explaining.changed.steps import changes
from grader.explaining.changed.traced import MOST_EQUATIONS, CannotTrace, traced_reference
from grader.findings.programs import StepChanged

A = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
B = np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32)


def loop(a, b):
    return lax.scan(lambda h, row: (jnp.tanh(h + row @ b), h.sum()), jnp.zeros(4), a, reverse=True)


FUNCTIONS = {
    "a layer": lambda a, b: jax.nn.relu(a @ b + 1) / 3,
    "a softmax": lambda a, b: jax.nn.softmax(a, axis=0).T @ (a @ b),
    "statistics": lambda a, b: (a.mean(axis=0), a.var(axis=1, keepdims=True), a.max(), jnp.argmax(b, axis=1)),
    "a batch of matmuls": lambda a, b: jnp.einsum("tij,tjk->tik", a.reshape(2, 3, 8), jnp.stack([b, -b])),
    "choices": lambda a, b: jnp.where((a > 0) & (a < 1), a, -jnp.arange(8)) + b.sum() ** -2,
    "places": lambda a, b: (jnp.roll(a, 1, axis=1), a[1:5:2], jnp.concatenate([a, a[::-1]]), a[jnp.array([2, 0])]),
    "a loop": loop,
    "a gradient": lambda a, b: jax.grad(lambda b: jnp.mean(jax.nn.gelu(a @ b) ** 2))(b),
    "integers": lambda a, b: (jnp.round(a * 9).astype(int) // 4, jnp.sign(b), jnp.exp2(a), jnp.cumsum(a, axis=1)),
    "random numbers": lambda a, b: a + jax.random.uniform(jax.random.key(3), a.shape),
    "NumPy's own functions": lambda a, b: np.maximum(np.where(a > 0, a, 0) @ b, np.ones(4)).sum(axis=0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_gives_what_jax_gives(name):
    expected = jax.tree.leaves(FUNCTIONS[name](A, B))
    found = traced_reference(FUNCTIONS[name], [A, B])([A, B])
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        assert close(one, np.asarray(other, one.dtype))


@pytest.mark.parametrize("reference", [lambda a: a if a[0, 0] > 0 else -a, lambda a: sum(a * k for k in range(200))])
def test_what_looks_at_its_numbers_or_is_too_long_is_not_traced(reference):
    assert MOST_EQUATIONS < 400
    with pytest.raises(CannotTrace):
        traced_reference(reference, [A])


def results(reference, given, finding, only=None):
    """What each change with this finding gives."""
    made = traced_reference(reference, list(given.values()), only)
    found = changes(made, list(given.values()), list(given), {"x": 2})
    return [[array.tolist() for array in change.result()] for change in found if change.finding == finding]


def test_two_steps_of_the_same_name_are_two_changes():
    def masked_twice(a, mask):
        return {"hits": jnp.sum((a > 0) * mask), "total": jnp.sum(a * mask)}

    given = {"a": np.array([1, 2, -3], np.float32), "mask": np.array([1, 0, 1], np.float32)}
    found = results(masked_twice, given, StepChanged("left out", "mul", "mask"))
    assert [2.0, -2.0] in found and [1.0, 0.0] in found


def test_one_result_of_several_has_changes_of_its_own():
    given = {"a": np.ones((2, 2), np.float32), "w": np.full((2, 2), 2, np.float32)}
    once = StepChanged("once per device", "reduce_sum", axes=("x",))
    assert results(lambda a, w: (jnp.tanh(a), jnp.sum(a @ w, axis=0)), given, once, only=1) == [[[16, 16]]]
