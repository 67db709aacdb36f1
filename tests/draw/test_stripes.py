"""Columns as stripes: who gets which."""

import pytest

from grader import draw

BY_NAME = [f"{name}{head}" for name in "qkv" for head in range(4)]
BY_HEAD = [f"{name}{head}" for head in range(4) for name in "qkv"]


def test_a_head_has_one_colour_in_every_order():
    (ax,) = draw.stripes({"names": BY_NAME, "heads": BY_HEAD}, 2).figure.axes
    colours = [patch.get_facecolor() for patch in ax.patches]
    assert dict(zip(BY_NAME, colours[:12], strict=True)) == dict(zip(BY_HEAD, colours[12:], strict=True))
    assert len(set(colours)) == 4


def test_uneven_parts_are_refused():
    with pytest.raises(ValueError, match="3 columns cannot be dealt out to 2 devices"):
        draw.stripes({"odd": ["q0", "q1", "q2"]}, 2)
