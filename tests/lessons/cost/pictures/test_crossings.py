"""Messages over the links of a ring."""

import pytest

from grader import draw


@pytest.mark.parametrize("devices", [2, 4, 7])
def test_each_link_carries_as_many_as_distances_add_up_to(devices):
    picture = draw.crossings(devices)
    told = repr(picture).splitlines()
    carried = devices * (devices - 1) // 2  # 1 + 2 + … + (n − 1)
    assert told[-1] == f"  each link carries {carried} messages" and len(told) == devices * (devices - 1) + 1
    assert len(picture.figure.axes[0].patches) == devices * carried


def test_one_device_has_no_ring():
    with pytest.raises(ValueError, match="two devices at least, not 1"):
        draw.crossings(1)
