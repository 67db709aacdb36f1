"""How a wrong shape relates to the expected one."""

import pytest

from grader.explaining.compared.compared import devices_along
from grader.explaining.compared.shapes import Shaped, shape_relations
from grader.explaining.telling import most_telling
from grader.findings.arrays import (
    ExtraDimension,
    MissingDimension,
    SameSizeOtherShape,
    WrongLength,
    WrongLengths,
)
from grader.findings.quantities import Quantity

X, Y = Quantity("devices along", "x"), Quantity("devices along", "y")


def off(dimension, times=None, over=None):
    return WrongLengths((WrongLength(dimension, None, times, over),))


def same(dimension, base):
    return WrongLength(dimension, base, None, None)


@pytest.mark.parametrize(
    ("found", "expected", "finding"),
    [
        ((24, 64), (24, 16), off(1, times=X)),
        ((4, 24), (16, 24), off(0, over=X)),
        ((6, 24), (12, 24), off(0, over=Y)),
        ((10, 7), (20, 7), off(0, over=Y)),
        ((6, 7), (3, 7), off(0, times=Y)),
        ((11, 5), (3, 5), WrongLengths((same(0, Quantity("length", "w", 1)),))),
        ((5, 4), (5, 30), WrongLengths((same(1, X),))),
        ((48, 9), (12, 5), WrongLengths((WrongLength(0, None, X, None), same(1, Quantity("length", "w", 0))))),
        ((4, 5, 7), (5, 7), ExtraDimension(0, X)),
        ((5, 1, 7), (5, 7), ExtraDimension(1, 1)),
        ((5, 5, 7), (5, 7), ExtraDimension(None, None)),
        ((3,), (), ExtraDimension(0, None)),
        ((7,), (1, 7), MissingDimension(0)),
        ((5,), (5, 5), MissingDimension(None)),
        ((96,), (4, 24), SameSizeOtherShape(same_elements=False)),
        ((7, 30), (10, 21), SameSizeOtherShape(same_elements=False)),
        ((9, 10, 13), (5,), None),
        ((8, 13), (5, 13), None),
    ],
)
def test_how_a_wrong_shape_relates_to_the_expected_one(found, expected, finding):
    one = Shaped(found, expected, devices_along({"x": 4, "y": 2}), {"w": (9, 11)})
    assert next(shape_relations(one), None) == finding


def test_only_what_is_true_on_every_mesh_is_told():
    meshes = devices_along({"x": 4, "y": 2}), devices_along({"x": 2, "y": 4})

    def told(*lengths):
        shapes = (Shaped((n, 6), (2, 6), mesh) for n, mesh in zip(lengths, meshes, strict=True))
        return most_telling([list(shape_relations(one)) for one in shapes])

    assert told(8, 4) == off(0, times=X)
    assert told(1, 4) == off(0, times=Y, over=X)
    assert told(8, 8) is None
