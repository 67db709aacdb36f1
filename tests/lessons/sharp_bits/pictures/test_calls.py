"""Calls and their programs: as many as XLA compiles."""

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader import compilations, draw
from grader.arrays.meshes import make_mesh, put

MESH = make_mesh({"x": 4, "y": 2})
TABLE = np.arange(64, dtype=np.float32).reshape(8, 8)


def laid(*spec):
    return [put(TABLE, P(*spec), MESH)]


@pytest.mark.parametrize(
    ("arguments", "static", "runs"),
    [
        ([laid("x"), laid("x", None), laid("y"), laid("x")], None, [0, 0, 1, 0]),
        ([[1], [2], [1.0]], None, [0, 0, 1]),
        ([[1], [2], [1.0]], 0, [0, 1, 2]),
        ([[TABLE], [TABLE[:4]], [TABLE + 1]], None, [0, 1, 0]),
    ],
)
def test_calls_lead_to_the_programs_that_are_compiled(arguments, static, runs):
    jitted = jax.jit(lambda a: a + 1, static_argnums=static)
    picture = draw.calls(jitted, {f"call {k}": given for k, given in enumerate(arguments)}, "title")
    with compilations() as made:
        for given in arguments:
            jitted(*given)
    told = [f"  call {k}: program {program}" for k, program in enumerate(runs)]
    assert repr(picture).splitlines() == ["title", *told, f"  {len(made)} programs for {len(runs)} calls"]
    drawn = [patch.get_gid() for patch in picture.figure.axes[0].patches]
    assert {f"call {k} runs program {program}" for k, program in enumerate(runs)} <= set(drawn)
    assert sum(gid.startswith("program") for gid in drawn) == len(made)


def test_what_has_no_programs_is_refused():
    with pytest.raises(TypeError, match="not jitted"):
        draw.calls(lambda a: a, {"call": [1]})
    with pytest.raises(ValueError, match="no call is given"):
        draw.calls(jax.jit(lambda a: a), {})
