"""What a device needs of an array for its part of a result: found by changing one entry after the other."""

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader import draw
from grader.arrays.meshes import make_mesh, put
from grader.lessons.automatic.pictures.needs import needed

ROWS = put(np.arange(64, dtype=np.float32).reshape(8, 8), P("d"), make_mesh({"d": 4}))


@pytest.mark.parametrize(
    "operation, needs, lacks",
    [
        (lambda v: v.max(1), 16, 0),
        (lambda v: v.max(0), 64, 48),
        (lambda v: v.min(0), 64, 48),
        (lambda v: v + 1, 16, 0),
        (lambda v: v[::-1], 16, 16),
        (lambda v: v[7:] + v, 24, 8),
    ],
)
def test_an_entry_is_needed_where_the_result_changes_with_it(operation, needs, lacks):
    found = needed(operation, ROWS, 0)
    assert (found.needs.sum(), (found.needs & ~found.has).sum()) == (needs, lacks)


def test_another_device_needs_others():
    found = needed(lambda v: v.max(1), ROWS, 3)
    assert found.needs[6:].all() and not found.needs[:6].any() and (found.has == found.needs).all()


def test_a_dot_for_each_entry_that_is_needed_and_red_where_it_is_missing():
    picture = draw.needs({"max(0)": lambda v: v.max(0)}, ROWS, device=1, title="a title")
    assert repr(picture) == "a title\nmax(0): device 1 needs 64 entries, has 16, lacks 48"
    (ax,) = picture.figure.axes
    assert [len(dots.get_xdata()) for dots in ax.lines] == [16, 48]
