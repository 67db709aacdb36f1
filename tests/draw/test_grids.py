"""Pictures of meshes: the facts they are drawn from, and that what they show is there."""

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

from grader import draw
from grader.draw.grids import grid, links

TORUS = (0, 1, 2, 3, 6, 7, 4, 5)


def mesh_of(order, shape, names):
    return Mesh(np.array([jax.devices()[k] for k in order]).reshape(shape), names)


def drawn(picture, kind):
    (ax,) = picture.figure.axes
    return [patch.get_gid() for patch in ax.patches if str(patch.get_gid()).startswith(kind)]


def test_a_mesh_is_told_line_by_line():
    assert repr(draw.mesh({"i": 3})) == "i=3; each line runs along i\n  0 1 2"
    assert repr(draw.mesh({"x": 2, "y": 1, "z": 2})).splitlines()[1:] == ["  x=0, y=0: 0 1", "  x=1, y=0: 2 3"]


def test_the_order_of_the_devices_is_the_meshs_own():
    assert repr(draw.mesh(mesh_of(TORUS, (4, 2), ("x", "y")))).splitlines()[3:] == ["  x=2: 6 7", "  x=3: 4 5"]


def test_devices_left_out_are_shown_apart():
    picture = draw.mesh(mesh_of(range(4), (2, 2), ("x", "y")), "four of eight")
    assert repr(picture).splitlines()[0] == "four of eight" and "left out: 4 5 6 7" in repr(picture)
    assert sorted(drawn(picture, "device")) == [f"device {k}" for k in range(8)]


@pytest.mark.parametrize(
    "axis, said",
    [
        ("x", "along x: 2 groups of 4\n  0, 2, 6, 4\n  1, 3, 7, 5"),
        ("y", "along y: 4 groups of 2\n  0, 1\n  2, 3\n  6, 7\n  4, 5"),
        (("x", "y"), "along x, y: 1 group of 8\n  0, 1, 2, 3, 6, 7, 4, 5"),
    ],
)
def test_groups_along_an_axis(axis, said):
    assert repr(draw.groups(mesh_of(TORUS, (4, 2), ("x", "y")), axis)) == said


@pytest.mark.parametrize(
    "sizes", [{"i": 8}, {"x": 2, "y": 4}, {"x": 2, "y": 2, "z": 2}, {"a": 2, "b": 1, "c": 2, "d": 2}]
)
def test_groups_are_the_devices_that_differ_along_the_axis_alone(sizes):
    held = grid(sizes)
    place = {int(held.ids[p]): p for p in np.ndindex(*held.ids.shape)}
    for k, axis in enumerate(sizes):
        for group in held.groups((axis,)):
            others = {place[d][:k] + place[d][k + 1 :] for d in group}
            assert len(others) == 1 and [place[d][k] for d in group] == list(range(sizes[axis]))


@pytest.mark.parametrize(
    "sizes, axis, count",
    [
        ({"i": 8}, "i", 7),
        ({"x": 4, "y": 2}, "x", 6),
        ({"x": 4, "y": 2}, "y", 4),
        ({"x": 2, "y": 2, "z": 2}, "x", 4),
        ({"x": 2, "y": 2, "z": 2}, "z", 4),
        ({"x": 1, "y": 8}, "x", 0),
    ],
)
def test_neighbours_are_linked(sizes, axis, count):
    picture = draw.groups(sizes, axis)
    assert len(drawn(picture, "link")) == count
    assert picture.svg().startswith("<svg") and len(picture.svg()) < 60_000


def test_an_unknown_axis_is_refused():
    with pytest.raises(ValueError, match="no axis 'z'; its axes are x"):
        draw.groups({"x": 8}, "z")


def test_a_route_counts_the_wires():
    square = {0: (0, 0), 1: (1, 0), 2: (0, 1), 3: (1, 1)}
    assert repr(draw.route(square, [0, 1, 2, 3])).splitlines()[-1] == "  longest step: 2"
    around = draw.route(square, [0, 1, 3, 2], "around")
    assert repr(around).splitlines() == [
        "around",
        "  0 → 1: 1 link",
        "  1 → 3: 1 link",
        "  3 → 2: 1 link",
        "  2 → 0: 1 link",
        "  longest step: 1",
    ]
    assert len(drawn(around, "step")) == 4 and around.svg() == around.svg()


def test_cores_of_one_chip_are_no_wire_apart():
    cores = {0: (0, 0, 0), 1: (0, 0, 0), 2: (1, 0, 0), 3: (1, 0, 0)}
    assert "0 → 1: 0 links" in repr(draw.route(cores, [0, 1, 2, 3]))
    assert links((0, 3), (2, 0)) == 5
