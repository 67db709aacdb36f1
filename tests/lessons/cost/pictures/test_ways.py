"""Ways to divide a layer: what follows from the layouts is what the programs send."""

import pytest
from jax.sharding import PartitionSpec as P
from matplotlib.colors import to_hex

from grader import draw
from grader.draw.picture import OF_KIND
from grader.lessons.cost.layers_measured import layer, program_of, step
from grader.lessons.cost.pictures.ways import Division
from grader.programs.program import trace
from grader.programs.walk import structure

LAYER = {
    "data parallel": ({"x": 8}, (P("x"), P(), P())),
    "FSDP": ({"x": 8}, (P("x"), P("x"), P(None, "x"))),
    "tensor parallel": ({"y": 8}, (P(), P(None, "y"), P("y"))),
    "both": ({"x": 4, "y": 2}, (P("x"), P("x", "y"), P("y", "x"))),
}


def sent(body, name):
    """The collectives of a traced layer, without those that send nothing: kinds and axes."""
    sizes, _ = LAYER[name]
    program, *arrays = program_of(body, name in ("FSDP", "both"), sizes.get("x", 1), sizes.get("y", 1))
    found = structure(trace(program, *arrays)).collectives
    return [(one.kind, *one.axes) for one in found if one.bytes_sent]


@pytest.mark.parametrize("name", LAYER)
def test_a_picture_sends_what_the_programs_send(name):
    way = Division(*LAYER[name])
    forward, backward = ([(one.kind, one.axis) for one in moment] for moment in (way.forward, way.backward))
    assert sent(layer, name) == forward
    assert sorted(sent(step, name)) == sorted(forward + backward)


def test_the_words_say_what_a_device_holds_and_what_is_sent():
    assert repr(draw.ways({"both": LAYER["both"]}, device=5, title="a title")).splitlines() == [
        "a title",
        "both on x=4, y=2: device 5 holds 1/4 of x, 1/8 of W_in, 1/8 of W_out",
        "  forward: all_gather W_in over x, all_gather W_out over x, all_reduce output over y",
        "  backward: all_gather W_in over x, all_gather W_out over x, all_reduce dx over y, "
        "reduce_scatter dW_in over x, reduce_scatter dW_out over x",
    ]


def test_one_block_of_each_array_is_framed_and_each_collective_has_its_colour():
    (ax,) = draw.ways({"FSDP": LAYER["FSDP"]}, device=5).figure.axes
    framed = [patch.get_bbox() for patch in ax.patches if patch.get_gid() == "device 5"]
    blocks = {patch.get_gid(): patch for patch in ax.patches if patch.get_gid()}
    assert len(framed) == 3 and framed[2].bounds == blocks["held by 5"].get_bbox().bounds  # W_out is drawn last
    assert to_hex(blocks["2: reduce_scatter dW_in over x"].get_facecolor()) == OF_KIND["reduce_scatter"]


@pytest.mark.parametrize(
    "specs", [(P("x", "y"), P(), P()), (P("x"), P("x"), P("x")), (P(), P("x"), P(None, "x"))], ids=str
)
def test_other_layouts_are_refused_with_theirs(specs):
    with pytest.raises(ValueError, match="both weights are cut alike"):
        draw.ways({"another": ({"x": 2, "y": 2}, specs)}, device=0)
