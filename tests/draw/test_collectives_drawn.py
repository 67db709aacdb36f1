"""Pictures of collectives: the facts they are drawn from, their text, and that something is drawn."""

import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader import draw
from grader.arrays.meshes import make_mesh, put
from grader.programs.buffers import COLLECTIVES, named, over, puzzle, ran


@pytest.mark.parametrize("devices", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 5, 8))])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_every_collective_is_drawn_on_any_number_of_devices(name, devices):
    numbers = put(np.arange(devices * devices), P("x"), make_mesh({"x": devices}))
    picture = draw.collective(over(name), numbers, name)
    assert picture.svg().startswith("<svg") and f"device {devices - 1}" in repr(picture)


def test_blocks_of_a_matrix_on_a_grid_are_drawn_alike_every_time():
    array = put(np.arange(32.0).reshape(4, 8), P("x", "y"), make_mesh({"x": 4, "y": 2}))
    one, other = (draw.collective(lambda block: lax.psum(block, "y"), array, "psum over y") for _ in "12")
    assert one.svg() == other.svg()
    assert "device 7 (x 3, y 1): [[28., 29., 30., 31.]] → [[52., 54., 56., 58.]]" in repr(one)


def test_the_sources_of_each_number_are_found_by_experiment():
    numbers = list(np.array([[3, 9], [5, 2], [7, 1]]))
    line = {"x": 3}
    whose = {
        name: ran(over(name), numbers, line).sources[1].reshape(3, -1)[:, 0].nonzero()[0].tolist()
        for name in ("all_gather tiled", "psum", "pmax", "ppermute +1", "axis_index")
    }
    assert whose == {
        "all_gather tiled": [0],
        "psum": [0, 1, 2],
        "pmax": [0, 1, 2],
        "ppermute +1": [0],
        "axis_index": [],
    }
    unsent = ran(lambda block: lax.ppermute(block, "x", [(0, 1)]), numbers, line)
    assert not unsent.sources[2].any() and not unsent.after[2].any()


def test_devices_on_a_grid_say_where_they_are():
    asked = puzzle(np.random.default_rng(0), {"x": 2, "y": 2}, 2, "psum", "y")
    told = repr(draw.buffers({"A": (asked.before, asked.after)}, mesh={"x": 2, "y": 2}))
    assert [line.partition(":")[0].strip() for line in told.splitlines()[1:]] == [
        "device 0 (x 0, y 0)",
        "device 1 (x 0, y 1)",
        "device 2 (x 1, y 0)",
        "device 3 (x 1, y 1)",
    ]


def test_questions_do_not_show_where_numbers_came_from():
    asked = puzzle(np.random.default_rng(0))
    picture = draw.buffers({"A": (asked.before, asked.after), "B": (asked.before, asked.after)})
    assert asked.name not in repr(picture) and repr(picture).startswith("A\n  device 0: [")
    assert picture.svg().startswith("<svg")


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("devices", [3, 4])
def test_fresh_puzzles_have_one_answer(name, devices):
    for seed in range(3):
        asked = puzzle(np.random.default_rng(seed), {"x": devices}, 2 * devices, name)
        assert named(asked.before, asked.after) == [name]


def test_puzzles_on_a_grid_run_over_one_axis():
    asked = puzzle(np.random.default_rng(0), {"x": 2, "y": 2}, 2, "psum", "y")
    assert np.array_equal(asked.after[0], asked.before[0] + asked.before[1])
