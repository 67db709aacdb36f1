"""Where arrays are: the facts of the picture, and what is drawn."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader import draw
from grader.arrays.described import OnDevices, OnMesh

V = np.arange(4, dtype=np.float32)
REAR = OnMesh({"x": 2}, order=(7, 4))


def test_facts_name_the_devices_by_their_own_numbers():
    picture = draw.placement(host=V, fresh=jnp.asarray(V), rear=OnDevices(V, REAR, P("x")).built())
    assert repr(picture).splitlines() == [
        "host (NumPy)",
        "  host: [0:4] = 0 1 2 3",
        "fresh (uncommitted)",
        "  device 0: [0:4] = 0 1 2 3",
        "rear (committed)",
        "  device 4: [2:4] = 2 3",
        "  device 7: [0:2] = 0 1",
    ]


def patches(picture):
    (sheet,) = picture.figure.axes
    return {patch.get_gid().partition(",")[0]: patch for patch in sheet.patches if patch.get_gid()}


def test_what_may_be_moved_is_dashed_and_copies_share_a_colour():
    drawn = patches(draw.placement(fresh=jnp.asarray(V), copies=OnDevices(V, REAR).built()))
    assert set(drawn) == {"fresh on 0", "copies on 4", "copies on 7"}
    assert drawn["fresh on 0"].get_linestyle() == "--" and drawn["copies on 4"].get_linestyle() == "-"
    assert drawn["copies on 4"].get_facecolor() == drawn["copies on 7"].get_facecolor()


def test_a_part_keeps_its_colour_whoever_holds_it():
    one, other = (OnDevices(V, OnMesh({"x": 4}, order=order), P("x")).built() for order in ((0, 1, 2, 3), (3, 2, 1, 0)))
    drawn = patches(draw.placement(one=one, other=other))
    assert drawn["one on 0"].get_facecolor() == drawn["other on 3"].get_facecolor()
    assert drawn["one on 0"].get_facecolor() != drawn["other on 0"].get_facecolor()


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 2, 2), (40, 40)])
def test_every_rank_is_drawn(shape):
    picture = draw.placement(x=jnp.ones(shape), y=np.ones(shape))
    assert picture.svg().startswith("<svg") and picture.svg() == picture.svg()


def test_other_things_are_refused_in_words():
    with pytest.raises(TypeError, match="x should be a jax.Array or a NumPy array; it is a list"):
        draw.placement(x=[1])
