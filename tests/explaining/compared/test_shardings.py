"""How a sharding differs from the expected one."""

from dataclasses import replace

import pytest
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import blocks
from grader.explaining.compared.shardings import sharded_by, sharding_relations
from grader.findings.programs import AxesShard, AxisShards, ShardsElsewhere

MESH = {"x": 4, "y": 2, "one": 1}


def held(spec, mesh=MESH):
    return blocks((8, 8), spec, mesh)


def test_an_axis_shards_a_dimension_or_none():
    assert sharded_by(held(P("x"))) == {"x": 0, "y": None}
    assert sharded_by(held(P(None, ("y", "x")))) == {"x": 1, "y": 1}


@pytest.mark.parametrize(
    ("found", "expected", "relation"),
    [
        (P(None, "x"), P("x"), AxesShard((AxisShards("x", 1, 0),))),
        (P(), P("x"), AxesShard((AxisShards("x", None, 0),))),
        (P("x", "y"), P("x"), AxesShard((AxisShards("y", 1, None),))),
        (P("y", "x"), P("x", "y"), AxesShard((AxisShards("x", 1, 0), AxisShards("y", 0, 1)))),
        (P(("y", "x")), P(("x", "y")), ShardsElsewhere()),
    ],
)
def test_which_axis_should_shard_another_dimension_is_told(found, expected, relation):
    assert list(sharding_relations(held(found), held(expected))) == [relation]


def test_other_meshes_and_orders_of_devices_are_told_apart_from_axes():
    line = held(P("x"), {"x": 8})
    halves = replace(line, indices=held(P("a"), {"a": 2, "b": 4}).indices)
    turned = replace(held(P("x", "y")), indices=held(P("x", "y")).indices[::-1])
    assert list(sharding_relations(halves, line)) == [ShardsElsewhere()]
    assert list(sharding_relations(turned, held(P("x", "y")))) == [ShardsElsewhere()]
    assert list(sharding_relations(line, line)) == []
