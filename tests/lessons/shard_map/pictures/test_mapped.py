"""shard_map in one picture: what the program's own specs say of every device."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

from grader import draw
from grader.arrays.meshes import make_mesh

MESH = make_mesh({"x": 2, "y": 2})


def test_every_device_is_told_what_it_gets_and_gives():
    program = jax.shard_map(
        lambda a, b: jax.lax.psum(a @ b, "y"), mesh=MESH, in_specs=(P("x", "y"), P("y")), out_specs=P("x")
    )
    picture = draw.mapped(program, jnp.ones((4, 2)), jnp.ones((2, 6)), name="g")
    assert repr(picture).splitlines() == [
        "shard_map: in_specs P('x', 'y'), P('y', None), out_specs P('x', None)",
        "  device 0: g([0:2, 0:1], [0:1, 0:6]) → [0:2, 0:6]",
        "  device 1: g([0:2, 1:2], [1:2, 0:6]) → [0:2, 0:6]",
        "  device 2: g([2:4, 0:1], [0:1, 0:6]) → [2:4, 0:6]",
        "  device 3: g([2:4, 1:2], [1:2, 0:6]) → [2:4, 0:6]",
    ]
    assert picture.svg().count(">0,1<") == 1 and "<script" in picture._repr_html_()


def test_a_program_without_a_shard_map_is_refused():
    with pytest.raises(ValueError, match="one shard_map is drawn; this program has 0"):
        draw.mapped(jnp.sin, jnp.ones(4))
