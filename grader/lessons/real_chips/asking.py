"""§ 1: what is said to a compiler for chips that are not here."""

from __future__ import annotations

import jax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.exercises import Case, FunctionExercise


def _mesh(sizes):
    return AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))


def _avals(shapes, dtype, specs, sizes):
    """Arrays that nobody makes, on a mesh without devices."""
    pairs = zip(shapes, specs, strict=True)
    return [jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(_mesh(sizes), spec)) for shape, spec in pairs]


compile_for = FunctionExercise("compile_for", points=3, reference=_avals)


@compile_for.cases
def _(draw):
    """A product on a pod of 256 chips, then arrays and meshes of other sizes; at last three arrays and three axes."""
    pod = {"data": 16, "model": 16}
    shapes, specs = [(65536, 4096), (4096, 16384)], [P("data", None), P(None, "model")]
    yield Case({"shapes": shapes, "dtype": "bfloat16", "specs": specs, "sizes": pod})
    for dtype in ("float32", "bfloat16", "int8"):
        model, data = (int(n) for n in draw.rng.choice([2, 4, 8], 2, replace=False))
        lengths = [int(n) * 256 for n in draw.rng.choice(range(2, 9), 3, replace=False)]
        shapes, specs = [tuple(lengths[:2]), tuple(lengths)], [P("model", "data"), P(None, ("data", "model"))]
        yield Case({"shapes": shapes, "dtype": dtype, "specs": specs, "sizes": {"model": model, "data": data}})
    sizes = {"pipe": 2, "model": 8, "data": 4}
    shapes, specs = [*shapes, (4096,)], [P(("pipe", "model")), P(None, "data", "pipe"), P("data")]
    yield Case({"shapes": shapes, "dtype": "float32", "specs": specs, "sizes": sizes})


@compile_for.mistake
def shapes_of_the_shards(shapes, dtype, specs, sizes):
    """Those are the shapes of one device's blocks. As everywhere outside of shard_map, an array has its whole shape,
    and the layout says who holds what."""
    return [
        jax.ShapeDtypeStruct(a.sharding.shard_shape(a.shape), a.dtype, sharding=a.sharding)
        for a in _avals(shapes, dtype, specs, sizes)
    ]


@compile_for.mistake
def without_a_layout(shapes, dtype, specs, sizes):
    """Shape and dtype alone do not say how many devices there are, nor who holds what. Which argument of
    `jax.ShapeDtypeStruct` does?"""
    return [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]


@compile_for.mistake
def whole_on_every_device(shapes, dtype, specs, sizes):
    """The mesh is right, and each array is whole on every device of it. Where do the given specs go?"""
    return _avals(shapes, dtype, [P()] * len(specs), sizes)


@compile_for.mistake
def all_in_float32(shapes, dtype, specs, sizes):
    """All arrays are float32, whatever `dtype` says. Of float32 a chip would hold twice the bytes of bfloat16, and its
    matrix unit has no use for them."""
    return _avals(shapes, "float32", specs, sizes)


@compile_for.mistake
def a_mesh_of_devices_that_are_here(shapes, dtype, specs, sizes):
    """`jax.make_mesh` wants devices, and there are eight here. Which kind of mesh is names and sizes alone?"""
    mesh = jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    pairs = zip(shapes, specs, strict=True)
    return [jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec)) for shape, spec in pairs]


@compile_for.mistake
def axes_of_type_explicit(shapes, dtype, specs, sizes):
    """Names and sizes of the mesh are right, and its axes are Explicit. Who is to choose the layouts between these
    arrays and the result, you or the compiler?"""
    mesh = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes))
    pairs = zip(shapes, specs, strict=True)
    return [jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec)) for shape, spec in pairs]


@compile_for.mistake
def sizes_in_another_order(shapes, dtype, specs, sizes):
    """The axes have the right names, and each other's sizes. In which order did you hand them over?"""
    names = sorted(sizes)
    return _avals(shapes, dtype, specs, dict(zip(names, sizes.values(), strict=True)))
