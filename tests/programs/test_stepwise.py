"""A reference that is done again step by step comes to what JAX makes of it."""

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

from grader.arrays.numbers import close
from grader.programs.stepwise import Otherwise, Stepwise, length

A = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
B = np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32)


def turns(a, b):
    return lax.scan(lambda h, row: (jnp.tanh(h + row @ b), h.sum()), jnp.zeros(4), a, reverse=True)


FUNCTIONS = {
    "a layer": lambda a, b: jax.nn.relu(a @ b + 1) / 3,
    "a softmax": lambda a, b: jax.nn.softmax(a, axis=0).T @ (a @ b),
    "statistics": lambda a, b: (a.mean(axis=0), a.var(axis=1, keepdims=True), a.max(), jnp.argmax(b, axis=1)),
    "a batch of products": lambda a, b: jnp.einsum("tij,tjk->tik", a.reshape(2, 3, 8), jnp.stack([b, -b])),
    "choices": lambda a, b: jnp.where((a > 0) & (a < 1), a, -jnp.arange(8)) + b.sum() ** -2,
    "places": lambda a, b: (jnp.roll(a, 1, axis=1), a[1:5:2], jnp.concatenate([a, a[::-1]]), a[jnp.array([2, 0])]),
    "a loop": turns,
    "a gradient": lambda a, b: jax.grad(lambda b: jnp.mean(jax.nn.gelu(a @ b) ** 2))(b),
    "whole numbers": lambda a, b: (jnp.round(a * 9).astype(int) // 4, jnp.sign(b), jnp.exp2(a), jnp.cumsum(a, axis=1)),
    "numbers that are drawn": lambda a, b: a + jax.random.uniform(jax.random.key(3), a.shape),
}


def done(function, otherwise=Otherwise()):  # noqa: B008 - it holds nothing
    closed = jax.make_jaxpr(function)(A, B)
    return Stepwise(closed, [A, B], ["a", "b"], otherwise)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_comes_to_what_jax_does(name):
    due = jax.tree.leaves(FUNCTIONS[name](A, B))
    found = done(FUNCTIONS[name]).results
    assert len(found) == len(due) > 0
    for one, other in zip(found, due, strict=True):
        assert one.dtype == other.dtype and close(one, other)


def test_a_step_knows_what_it_is_made_of():
    product, total, other, _ = done(lambda a, b: (a @ b).sum() * b.sum()).steps.values()
    assert product.name == "dot_general" and product.sources[0].arguments == {"a"}
    assert total.sources[0].steps == {product.number} and total.sources[0].arguments == {"a", "b"}
    assert not other.sources[0].steps and other.sources[0].arguments == {"b"}


def test_a_step_in_a_loop_is_changed_in_every_turn():
    run = done(turns)
    (tanh,) = (step for step in run.steps.values() if step.name == "tanh")
    without = done(turns, Otherwise({tanh.number: lambda step, _: step.operands[0]}))
    np.testing.assert_allclose(without.results[0], A.sum(axis=0) @ B, rtol=1e-4)


def test_a_loop_takes_other_turns_and_begins_otherwise():
    found = done(turns, Otherwise(turns=lambda turns: turns[:1], begin=np.ones_like)).results
    np.testing.assert_allclose(found[0], np.tanh(1 + A[5] @ B), rtol=1e-5)


def test_equations_of_what_is_called_count():
    assert length(jax.make_jaxpr(jax.jit(lambda a: a + a * 2))(A)) == 2
