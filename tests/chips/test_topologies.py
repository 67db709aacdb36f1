"""Pods by name: their chips, hosts and wires."""

import pytest

from grader.chips.topologies import CHIPS, USUAL, topology, usual_pods


@pytest.mark.parametrize(
    "name, devices, hosts", [("v2:2x2", 8, 1), ("v5e:4x8", 32, 8), ("v5p:4x4x8", 128, 32), ("v5p:16x16x16", 4096, 1024)]
)
def test_a_pod_has_these_devices_and_hosts(name, devices, hosts):
    pod = topology(name)
    assert (pod.devices, pod.hosts) == (devices, hosts)
    assert len({pod.host(device) for device in range(devices)}) == hosts


def test_devices_are_numbered_row_by_row_and_a_host_has_two_by_two_chips():
    pod = topology("v5e:4x4")
    assert [pod.coords[k][:2] for k in (0, 1, 4, 15)] == [(0, 0), (1, 0), (0, 1), (3, 3)]
    assert [k for k in range(16) if pod.host(k) == 1] == [2, 3, 6, 7]


def test_two_devices_of_a_v2_stand_in_one_place():
    pod = topology("v2:2x2")
    assert pod.coords[0] == pod.coords[1] and pod.hops(0, 1) == 0 and pod.hops(0, 2) == 1


def test_a_ring_goes_round_where_a_dimension_is_full_and_nowhere_else():
    assert topology("v5e:16x16").hops(0, 15) == 1
    assert topology("v5e:8x8").hops(0, 7) == 7
    assert topology("v5p:4x4x4").hops(0, 3) == 1
    assert topology("v5p:2x2x2").hops(0, 7) == 3


@pytest.mark.parametrize(
    "name, sizes, first",
    [
        ("v5e:2x4", (4, 2), [0, 1, 2, 3, 7, 6, 5, 4]),
        ("v5e:4x4", (16,), [0, 1, 2, 3, 7, 6, 5, 9]),
        ("v5e:16x16", (4, 64), [0, 16, 32, 48, 1, 17]),
        ("v5p:4x4x4", (16, 4), [0, 1, 2, 3, 16, 17]),
        ("tpu7x:2x2x1", (8,), [0, 1, 2, 3, 6, 7, 4, 5]),
    ],
)
def test_a_mesh_is_arranged_as_jax_make_mesh_does_it_on_the_devices_of_libtpu(name, sizes, first):
    """What `jax.make_mesh(sizes, …, devices=topology.devices)` gave with libtpu 0.0.42."""
    axes = dict(zip("xy", sizes, strict=False))
    assert list(topology(name).order(axes))[: len(first)] == first


def test_an_axis_that_is_part_of_a_pods_dimension_is_arranged_as_well():
    assert sorted(topology("v6e:8x8").order({"x": 16, "y": 4})) == list(range(64))


@pytest.mark.parametrize(
    "name, part",
    [
        ("v9:2x2", "there are v2, v3, v5e"),
        ("v5e", "2 dimensions, as 'v5e:4x4' does"),
        ("v5p:4x4", "3 dimensions"),
        ("v5e:3x3", "the first two numbers are even"),
        ("v5e:32x32", "none is above 16"),
        ("v5e:0x2", "there is no pod"),
    ],
)
def test_a_name_that_is_none_is_told_what_is_wrong(name, part):
    with pytest.raises(ValueError, match="v") as told:
        topology(name)
    assert part in str(told.value)


def test_a_mesh_of_another_size_is_refused_with_both_numbers():
    with pytest.raises(ValueError, match=r"v5e:4x4 has 16 devices, and the mesh x=4 × y=2 has 8\."):
        topology("v5e:4x4").order({"x": 4, "y": 2})


def test_the_table_has_a_line_for_every_usual_pod_and_says_where_its_numbers_are_from():
    lines = usual_pods().splitlines()
    assert [line.split()[0] for line in lines[1:-2]] == list(USUAL)
    assert "How To Scale Your Model" in lines[-1]
    assert {name.partition(":")[0] for name in USUAL} == set(CHIPS)
