"""A pod, drawn: its hosts, its chips, and the rings of a mesh axis."""

import math

import pytest

from grader import draw
from grader.chips.topologies import topology
from grader.lessons.real_chips.pictures.pods import routes


def test_the_rings_of_an_axis_and_their_wires():
    pod = topology("v5e:2x4")
    mesh = {"x": 4, "y": 2}
    first, second = routes(pod, mesh, pod.order(mesh), "x")
    assert (first.devices, first.hops) == ((0, 2, 7, 5), (1, 3, 1, 3))
    assert (second.devices, second.hops) == ((1, 3, 6, 4), (1, 3, 1, 3))
    (whole,) = routes(pod, {"x": 8}, pod.order({"x": 8}), "x")
    assert whole.hops == (1, 2) * 4  # JAX's ring of eight is one of v5e:4x2


def test_the_order_of_devices_decides_how_far_a_ring_goes():
    pod, mesh = topology("v5e:4x4"), {"x": 16}
    (arranged,) = routes(pod, mesh, pod.order(mesh), "x")
    (counted,) = routes(pod, mesh, range(16), "x")
    assert max(arranged.hops) == 1 and max(counted.hops) == 6


def test_a_picture_has_every_device_every_host_and_the_arrows_of_one_ring():
    picture = draw.pod("v5e:4x4", {"x": 4, "y": 4}, axis="y")
    drawn = [patch.get_gid() for patch in picture.figure.axes[0].patches]
    assert {f"device {k}" for k in range(16)} <= set(drawn) and drawn.count("host") == 4
    assert {gid for gid in drawn if gid and " to " in gid} == {"0 to 1", "1 to 2", "2 to 3", "3 to 0"}
    assert "along y: 4 groups of 4" in picture.facts and "longest: 3" in picture.facts


def test_a_large_pod_is_drawn_in_part_and_told_in_a_few_lines():
    picture = draw.pod("v5p:16x16x16", {"x": 4096}, axis="x")
    assert len(picture.facts.splitlines()) < 12
    drawn = [patch.get_gid() or "" for patch in picture.figure.axes[0].patches]
    assert sum(gid.startswith("device") for gid in drawn) == 512


@pytest.mark.parametrize("mesh, axis, part", [({"x": 16}, "y", "no axis 'y'"), (None, "x", "say which")])
def test_an_axis_needs_a_mesh_that_has_it(mesh, axis, part):
    with pytest.raises(ValueError, match=part):
        draw.pod("v5e:4x4", mesh, axis=axis)


def test_between_planes_numbers_stand_in_place_of_arrows_that_would_cross_each_other():
    picture = draw.pod("v5p:2x2x2", {"x": 8}, axis="x")
    axes = picture.figure.axes[0]
    order = topology("v5p:2x2x2").order({"x": 8})
    steps = list(zip(order, (*order[1:], order[0]), strict=True))
    arrows = {patch.get_gid() for patch in axes.patches}
    told = {text.get_gid(): text.get_text() for text in axes.texts}
    for a, b in steps:
        name, same_plane = f"{a} to {b}", a // 4 == b // 4
        assert (name in arrows, told.get(name)) == ((True, None) if same_plane else (False, f"→ {b}"))


def wires(pod):
    return {line.get_gid() for line in draw.pod(pod).figure.axes[0].lines}


def test_wires_are_drawn_between_neighbours_and_told():
    assert wires("v5e:2x4") == {f"wire from {a} to {b}" for a, b in [(0, 1), (2, 3), (4, 5), (6, 7)]} | {
        f"wire from {a} to {a + 2}" for a in range(6)
    }
    assert "wires: from each chip to its neighbours\n" in f"{draw.pod('v5e:2x4').facts}\n"


def test_a_wire_that_closes_a_ring_is_a_stub_at_both_ends():
    lines = draw.pod("v5p:4x4x4").figure.axes[0].lines
    ends = [line for line in lines if line.get_gid() == "wire from 0 to 3"]
    (first, last) = sorted(tuple(line.get_xdata()) for line in ends)
    assert first[1] < first[0] < last[0] < last[1]
    assert "closed to rings along dimension 1, 2, 3" in draw.pod("v5p:4x4x4").facts
    assert wires("v5e:16x16") == set()  # chips without numbers have none


def test_a_red_arrow_goes_round_the_chips_where_it_can_and_behind_them_where_it_cannot():
    picture = draw.pod("v5e:2x4", {"x": 4, "y": 2}, axis="x")
    patches = picture.figure.axes[0].patches
    chips = {patch.get_gid(): patch for patch in patches if (patch.get_gid() or "").startswith("device")}
    for arrow in [patch for patch in patches if patch.get_gid() in ("2 to 7", "5 to 0")]:
        assert all(arrow.get_zorder() < chip.get_zorder() for chip in chips.values())
        ends = {f"device {device}" for device in arrow.get_gid().split(" to ")}
        curve = [point for piece in arrow.get_path().to_polygons(closed_only=False) for point in piece]
        for gid in chips.keys() - ends:
            chip = chips[gid]
            assert min(math.dist(point, chip.center) for point in curve) > chip.radius
