"""Programs that wait for ever are ended, and it is said who waited for whom."""

import jax
import numpy as np
import pytest
from answering import answered, setting

from grader.jax_versions import timeouts
from grader.lessons.rings import waiting as rings_waiting
from grader.lessons.rings.waiting import BODIES, RING, on_four, only_process_0_sums
from grader.processes.trial import Trial, trial, trials
from grader.programs.program import trace


def test_what_hangs_is_ended_beside_what_finishes():
    found = trials(
        [
            on_four(rings_waiting.one_branch),
            on_four(rings_waiting.sum_then_branch),
            on_four(rings_waiting.different_num_steps),
        ]
    )
    assert [one.finished for one in found] == [False, True, False]
    assert np.array_equal(found[1].result, [19, 2, 6, 10])
    assert "device 0 calls the all_reduce over x once, device 1 never." in found[0].stuck
    assert "device 3 calls the collective_permute over x 4 times, device 0 once." in found[2].stuck
    if timeouts(1, 1):  # elsewhere XLA says nothing
        assert "1 of 4 devices had come to the all_reduce." in found[0].stuck
        assert "3 of 4 devices had come to the collective_permute." in found[2].stuck
    assert jax.jit(lambda v: v + 1)(1) == 2  # this process is none the worse


def test_a_trial_reads_well():
    assert repr(Trial(np.arange(2))) == "It finished: [0 1]"
    assert repr(Trial(stuck="Nobody came.")) == "Its process was ended.\nNobody came."


def test_what_cannot_be_traced_raises_here():
    with pytest.raises(TypeError):
        trial(lambda v: v.reshape(3, 5), on_four(None)[1])


def test_the_lesson_asks_about_the_bodies_that_are_run(root):
    """The bodies in the notebook and those behind the table are the same programs."""
    import nbformat

    cells = nbformat.read(root / "solutions" / "08_rings" / "08_rings.ipynb", 4).cells
    shown = next(c.source for c in cells if c.cell_type == "code" and "def one_branch" in c.source)
    space = {"TO_NEXT": RING}
    exec(setting("08_rings"), space)
    exec(shown, space)
    for body in (*BODIES, only_process_0_sums):
        assert trace(*on_four(space[body.__name__])) == trace(*on_four(body)), body.__name__
    assert set(answered("solutions", "08_rings")["deadlock_or_not"]) == {
        b.__name__ for b in (*BODIES, only_process_0_sums)
    }
