"""What a reference comes to: called in NumPy, compiled as a whole in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.arrays.laid import Array
from grader.exercises.case import Case
from grader.exercises.forms import ProgramExercise
from grader.judging.references import FEW_PROGRAMS, come_of
from grader.programs.compilations import compilations


def many(x):
    for n in range(1, 12):
        x = jnp.sin(x.reshape(-1) * n).sum() + jnp.cos(x * n)
    return x


def looking(x):
    return many(x) if float(x.sum()) > 0 else many(-x)


def made_of(reference, rows, times=2):
    """What a reference comes to on two cases, and how many programs that took."""
    exercise = ProgramExercise("t_reference", points=1, reference=reference)
    value = np.arange(1.0, 2 * rows + 1, dtype=np.float32).reshape(rows, 2)
    case = Case({"x": Array(value, P())}, {"x": 2})
    with compilations() as made:
        found = [come_of(exercise, case, [value]) for _ in range(times)]
    return value, found, len(made)


def test_a_reference_in_numpy_is_called():
    value, found, programs = made_of(lambda x: np.sin(x) + 1, 3)
    assert programs == 0 and type(found[0]) is np.ndarray
    assert (found[0] == np.sin(value) + 1).all()


def test_a_reference_of_many_operations_is_compiled_as_a_whole():
    value, found, programs = made_of(many, 101)  # (A length that nothing else here has: what is compiled is kept.)
    assert FEW_PROGRAMS < programs <= 2 * FEW_PROGRAMS + 2, programs  # by itself each operation would be one
    with jax.disable_jit():
        due = many(value)
    assert all(np.allclose(one, due, rtol=1e-5, atol=1e-5) for one in found)


@pytest.mark.parametrize("sign", [1, -1])
def test_one_that_looks_at_its_numbers_is_called(sign):
    value, found, _ = made_of(lambda x: looking(sign * x), 103)
    assert np.allclose(found[0], many(value), rtol=1e-5, atol=1e-5)
