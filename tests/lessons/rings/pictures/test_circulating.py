"""Film strips of rings: every sum ends on its own device, and no block arrives twice."""

import re

import pytest

from grader import draw


@pytest.mark.parametrize("devices", [2, 3, 4, 8])
def test_each_sum_ends_complete_on_its_device(devices):
    last = repr(draw.ring_sums(devices)).splitlines()[-1]
    ends = re.findall(r"device (\d+) part (\d+) \(([\d+]+)\)", last)
    assert [int(device) for device, _, _ in ends] == [int(part) for _, part, _ in ends] == list(range(devices))
    assert all(sorted(map(int, terms.split("+"))) == list(range(devices)) for _, _, terms in ends)


@pytest.mark.parametrize("devices", [2, 3, 4, 5, 8])
def test_every_block_arrives_once(devices):
    steps = repr(draw.two_streams(devices)).splitlines()[1:]
    seen = [block for step in steps for block in re.search(r"device 0 ((?:A\d ?)+)", step)[1].split()]
    assert sorted(seen) == [f"A{k}" for k in range(devices)] and len(steps) == devices // 2 + 1
