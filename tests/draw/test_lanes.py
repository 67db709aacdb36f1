"""Devices as lanes: where they meet, and who waits; also as a replay finds it."""

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

import grader
from grader.arrays.meshes import make_mesh, put
from grader.draw.picture import WRONG

LINE = make_mesh({"x": 4})


def some_add(block):
    block = jax.lax.ppermute(block, "x", [(0, 1), (1, 2), (2, 3)])
    early = jax.lax.axis_index("x") < 2
    return jax.lax.cond(early, lambda b: jax.lax.psum(b, "x"), lambda b: b, block)


def test_a_replay_shows_who_waits_for_whom():
    program = jax.shard_map(some_add, mesh=LINE, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    picture = grader.replay(program, put(np.arange(4.0), P("x"), LINE)).lanes("some add up")
    assert repr(picture).splitlines() == [
        "some add up",
        "  ppermute: devices 0, 1, 2, 3",
        "  psum: devices 0, 1 wait for ever for devices 2, 3",
    ]
    texts = [text.get_text() for text in picture.figure.axes[0].texts if text.get_color() == WRONG]
    assert texts == ["waits", "waits", "psum"]


def test_where_all_come_nobody_waits():
    meeting = grader.draw.Meeting("psum", (0, 1, 2))
    picture = grader.draw.lanes(3, [meeting], "title")
    assert repr(picture) == "title\n  psum: devices 0, 1, 2" and "waits" not in picture.svg()
