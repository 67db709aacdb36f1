import jax
import numpy as np
import pytest

from grader.programs.compilations import TooManyPrograms, compilations


def test_a_program_is_counted_when_it_is_made_and_not_when_it_runs():
    f, a = jax.jit(lambda a: a + 1), np.ones(3, np.float32)
    with compilations() as made:
        f(a)
        f(a)
        assert len(made) == 1
        f(a[:2])
    assert len(made) == 2
    f(np.ones(4, np.float32))
    assert len(made) == 2  # the block is over


def test_a_block_inside_of_another_counts_for_both():
    f = jax.jit(lambda a: a * 2)
    with compilations() as outer:
        f(1)
        with compilations() as inner:
            f(1.0)
    assert len(outer) == 2 and len(inner) == 1


def test_a_block_may_allow_only_so_many():
    turns = []
    with (
        pytest.raises(TooManyPrograms, match="3 programs were compiled here, .* a jit inside the loop"),
        compilations(2),
    ):
        for k in range(5):
            jax.jit(lambda a, k=k: a + k)(np.ones(3))
            turns.append(k)
    assert turns == [0, 1]
    with compilations() as made:
        jax.jit(lambda a: a - 7)(np.ones(3))
    assert len(made) == 1  # and it is asked no more
