"""Forward and backward: the derivatives say which arrows there are."""

import jax
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from matplotlib.patches import FancyArrowPatch

from grader import draw
from grader.arrays.meshes import make_mesh, put
from grader.lessons.gradients.pictures.mirrors import wires

LINE = make_mesh({"x": 4})
ARRAY = put(np.ones(4, np.float32), P("x"), LINE)
ROUND = [(k, (k + 1) % 4) for k in range(4)]
BODIES = {
    "all_gather": (lambda v: lax.all_gather(v, "x", tiled=True), P("x")),
    "ppermute": (lambda v: lax.ppermute(v, "x", ROUND), P("x")),
    "psum": (lambda v: lax.psum(v, "x"), P()),
    "nothing": (lambda v: 2 * v, P("x")),
}
PROGRAMS = {
    name: jax.shard_map(body, mesh=LINE, in_specs=P("x"), out_specs=out) for name, (body, out) in BODIES.items()
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_the_backward_pass_every_arrow_points_the_other_way(name):
    found = wires(PROGRAMS[name], ARRAY)
    assert found.forward and {(b, a) for a, b in found.forward} == set(found.backward)


def test_who_is_joined_to_whom():
    assert wires(PROGRAMS["ppermute"], ARRAY).forward == tuple(ROUND)
    assert wires(PROGRAMS["psum"], ARRAY).forward == tuple((k, "all") for k in range(4))
    assert len(wires(PROGRAMS["all_gather"], ARRAY).forward) == 16
    assert wires(PROGRAMS["nothing"], ARRAY).forward == tuple((k, k) for k in range(4))


def test_each_pair_is_an_arrow():
    picture = draw.mirror({"psum": PROGRAMS["psum"]}, ARRAY, "title")
    assert repr(picture) == "title\npsum: forward 0→all 1→all 2→all 3→all; backward all→0 all→1 all→2 all→3"
    assert len(picture.figure.axes[0].patches) == 2 * (4 + 4)


def test_what_a_device_has_already_is_dotted():
    def dotted(name):
        (ax,) = draw.mirror({name: PROGRAMS[name]}, ARRAY).figure.axes
        return [patch.get_linestyle() for patch in ax.patches if isinstance(patch, FancyArrowPatch)].count(":")

    assert {name: dotted(name) for name in PROGRAMS} == {"all_gather": 8, "ppermute": 0, "psum": 4, "nothing": 8}
