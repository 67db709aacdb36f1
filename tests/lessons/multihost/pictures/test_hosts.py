"""Processes and their devices."""

import pytest

from grader import draw

FOUR = {k: [2048 * k, 2048 * k + 1] for k in range(4)}


def test_every_process_is_told_with_its_devices():
    told = repr(draw.hosts(FOUR, "four")).splitlines()
    assert told[:3] == ["four", "  process 0, the coordinator: devices 0, 1", "  process 1: devices 2048, 2049"]


def test_all_others_lead_to_the_coordinator():
    (ax,) = draw.hosts(FOUR, coordinator=2).figure.axes
    gids = [patch.get_gid() for patch in ax.patches]
    assert "process 2, the coordinator" in gids and gids.count(None) == 3  # arrows
    assert sum(str(gid).startswith("device") for gid in gids) == 8


def test_the_coordinator_is_one_of_them():
    with pytest.raises(ValueError, match="process 7, is none of 0, 1, 2, 3"):
        draw.hosts(FOUR, coordinator=7)
