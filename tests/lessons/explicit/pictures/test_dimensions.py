"""Operations on types that carry layouts: where the picture says that one stops, JAX stops."""

import itertools

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader import draw
from grader.arrays.blocks import axes_of
from grader.arrays.meshes import put
from grader.lessons.explicit.pictures.dimensions import RESULT, matched

MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
SPECS = [P(), P("x"), P(None, "x"), P("y"), P(None, "y"), P("x", "y"), P("y", "x"), P(("x", "y"))]


@pytest.mark.parametrize(("left", "right"), list(itertools.product(SPECS, SPECS)))
def test_a_product_stops_where_jax_stops_and_has_its_type(left, right):
    operands = {"a": put(np.ones((16, 24)), left, MESH), "b": put(np.ones((24, 32)), right, MESH)}
    found = matched("ij,jk->ik", operands)
    try:
        result = jax.typeof(operands["a"] @ operands["b"])
    except Exception as error:
        assert found.rule and RESULT not in found.arrays, error
    else:
        assert not found.rule
        entries = (*result.sharding.spec, None, None)
        assert found.arrays[RESULT] == {
            k: (n, axes_of(e)) for k, n, e in zip("ik", result.shape, entries, strict=False)
        }


@pytest.mark.parametrize(("left", "right"), list(itertools.product(SPECS, SPECS)))
def test_a_sum_stops_where_jax_stops(left, right):
    operands = {"a": put(np.ones((16, 24)), left, MESH), "b": put(np.ones((16, 24)), right, MESH)}
    try:
        operands["a"] + operands["b"]
    except Exception:
        assert matched("ij,ij->ij", operands).rule
    else:
        assert not matched("ij,ij->ij", operands).rule


def test_the_dimensions_in_the_way_are_framed_and_there_is_no_result():
    rows, columns = put(np.ones((16, 16)), P("x"), MESH), put(np.ones((16, 16)), P(None, "x"), MESH)
    picture = draw.dimensions({"columns @ rows": ("ij,jk->ik", {"columns": columns, "rows": rows})}, "title")
    gids = [patch.get_gid() for patch in picture.figure.axes[0].patches]
    assert gids.count("columns @ rows: stops at j") == 1 and not any(RESULT in gid for gid in gids)
    (ax,) = draw.dimensions({"rows @ columns": ("ij,jk->ik", {"rows": rows, "columns": columns})}).figure.axes
    framed = {p.get_gid()[-1]: p.get_xy() for p in ax.patches if "stops" in (p.get_gid() or "")}
    (line,) = ax.lines
    assert framed["i"] != framed["k"] and len(framed) == 2 and line.get_gid() == "rows @ columns: twice"
    assert framed["i"][0] < min(line.get_xdata()) < max(line.get_xdata()) == framed["k"][0]
    assert repr(picture).splitlines()[:3] == [
        "title",
        "columns @ rows stops (rule 2) at j",
        "  columns: i 16, j 16@x",
    ]
