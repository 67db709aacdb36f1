"""The four cases of a sharded product, seen from one device."""

import pytest
from jax.sharding import PartitionSpec as P
from matplotlib.colors import to_rgba

from grader import draw
from grader.draw.picture import WRONG

MESH = {"x": 2, "y": 2}
CASES = {
    "1": ((P("x"), P(None, "y"), P("x", "y")), "computes C[4:8, 4:8], should hold C[4:8, 4:8], lacks nothing"),
    "2": ((P(None, "x"), P(), P()), "computes no block of C, should hold C[0:8, 0:8], lacks the rest of J"),
    "3": (
        (P(None, "x"), P("x"), P()),
        "computes C[0:8, 0:8], a partial sum, should hold C[0:8, 0:8], lacks the other partial sums",
    ),
    "4": ((P("x"), P(None, "x"), P("x")), "computes C[4:8, 4:8], should hold C[4:8, 0:8], lacks the other blocks of C"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_device_has_makes_and_lacks(name):
    specs, told = CASES[name]
    heading, line = repr(draw.matmul_cases({name: specs}, MESH, device=3)).splitlines()
    assert heading == "device 3, of matrices 8 × 8" and line.endswith(told)


def test_only_what_is_lacked_is_alarming():
    def dashes(name):
        patches = draw.matmul_cases({name: CASES[name][0]}, MESH, 3).figure.axes[0].patches
        return [patch for patch in patches if patch.get_linestyle() == "--"]

    alarms = {name: dashes(name)[0].get_edgecolor() == to_rgba(WRONG) for name in CASES}
    assert alarms == {"1": False, "2": True, "3": True, "4": True}
