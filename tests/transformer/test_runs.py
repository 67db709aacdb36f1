"""What a run of steps leaves behind: its programs, and its old arrays."""

import jax
import jax.numpy as jnp
import pytest

from grader.transformer import compiled, counted


def step(state):
    return {"params": state["params"] + 1}


@pytest.mark.parametrize("options, left", [({}, 1), ({"donate_argnums": 0}, 0)])
def test_programs_and_old_arrays_are_counted(options, left):
    state = {"params": jax.block_until_ready(jnp.zeros(3))}
    run = compiled(step, **options)
    with counted(state) as told:
        jax.block_until_ready(run(run(state)))
    assert told == {"programs": 1, "arrays left": left}


def test_what_was_given_away_is_gone():
    state = {"params": jnp.zeros(3)}
    run = compiled(step, donate_argnums=0)
    run(state)
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3\]"):
        run(state)
