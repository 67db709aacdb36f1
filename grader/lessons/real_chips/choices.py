"""§ 3: what two compilers choose to send for the same program."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import abstract_mesh, make_mesh
from grader.chips.report import communication
from grader.exercises import TableExercise
from grader.lessons.shared import believed, device_map

POD, SIZES, LENGTH = "v5e:2x4", {"x": 8}, 1024
ROWS, COLUMNS = P("x", None), P(None, "x")


def _gather(mesh):
    return device_map(lambda a, b: a @ lax.all_gather(b, "x", tiled=True), mesh, (ROWS, ROWS), ROWS)


def _scatter(mesh):
    return device_map(lambda a, b: lax.psum_scatter(a @ b, "x", tiled=True), mesh, (COLUMNS, ROWS), ROWS)


def _left(mesh):
    return jax.jit(lambda a, b: a @ b, out_shardings=NamedSharding(mesh, ROWS))


# A row: the program on a mesh, the layout of A, the dtype, the side of both matrices.
PROGRAMS = {
    "written gather, bfloat16": (_gather, ROWS, jnp.bfloat16, LENGTH),
    "written gather, float32": (_gather, ROWS, jnp.float32, LENGTH),
    "written reduce_scatter, float32": (_scatter, COLUMNS, jnp.float32, LENGTH),
    "left sum, float32": (_left, COLUMNS, jnp.float32, LENGTH),
    "left sum, bfloat16": (_left, COLUMNS, jnp.bfloat16, LENGTH),
    "left sum, bfloat16, 8192": (_left, COLUMNS, jnp.bfloat16, 8 * LENGTH),
}


def _sent(row, mesh, on=None):
    """The kinds and the dtypes of what the devices of a mesh send."""
    program, first, dtype, n = PROGRAMS[row]
    a, b = (jax.ShapeDtypeStruct((n, n), dtype, sharding=NamedSharding(mesh, spec)) for spec in (first, ROWS))
    report = communication(program(mesh), a, b, on=on)
    return {c.kind for c in report.collectives}, {c.dtype for c in report.collectives}


@functools.cache
def _differs(row):
    """In what the chip's program differs from that of simulated devices: "nothing", "kind", "dtype" or "both"."""
    mesh: Mesh = make_mesh(SIZES)
    (kind, dtype), (chips_kind, chips_dtype) = _sent(row, mesh), _sent(row, abstract_mesh(SIZES), POD)
    return {(0, 0): "nothing", (1, 0): "kind", (0, 1): "dtype", (1, 1): "both"}[
        kind != chips_kind, dtype != chips_dtype
    ]


DIFFERENCES = {
    "nothing": "Nothing differs where both programs have the same collective, with numbers of the same type. Read "
    "both: have they?",
    "kind": "The kind differs where the chip's program has another collective. Read both: which ones are they?",
    "dtype": "The dtype differs where the chip sends numbers of another type. Read both: of which types are they?",
    "both": "Both differ where the chip's program has another collective, with numbers of another type. Read both: "
    "is each so?",
}
cpu_and_tpu = TableExercise("cpu_and_tpu", points=3, reference=_differs, options=DIFFERENCES)
cpu_and_tpu.rows(PROGRAMS)
LEFT = "left sum, float32", "left sum, bfloat16", "left sum, bfloat16, 8192"


@cpu_and_tpu.mistake
def a_program_is_a_program(row):
    """It is the same program, and another compiler divides it. Where nobody has written a collective, each takes those
    that it knows for its devices."""
    return believed(row, "nothing", *LEFT)


@cpu_and_tpu.mistake
def sent_as_it_was_written(row):
    """The chip sends this gather in bfloat16, as it was written. The CPU's compiler makes what simulated devices run.
    In which dtype does it send bfloat16?"""
    return believed(row, "nothing", "written gather, bfloat16")


@cpu_and_tpu.mistake
def rewrites_what_is_written(row):
    """A collective in shard_map is an order: the compiler may fuse it, or cut it into steps, but it is done."""
    return believed(row, "kind", *(name for name in PROGRAMS if name.startswith("written")))


@cpu_and_tpu.mistake
def float32_travels_as_float32(row):
    """The matrix unit rounds its inputs to bfloat16 unless it is told otherwise. When can it do so: behind the gather,
    or before it?"""
    return believed(row, "nothing", "written gather, float32")


@cpu_and_tpu.mistake
def everything_travels_as_bfloat16(row):
    """What goes *into* a product may be rounded. A sum of what comes out of it may not, unless the result is of that
    dtype."""
    return believed(row, "dtype", "written reduce_scatter, float32") or believed(row, "both", "left sum, float32")


@cpu_and_tpu.mistake
def simulated_bfloat16_is_bfloat16(row):
    """The collective is another, and that is not all. Processors compute bfloat16 as float32: when the compiler adds up
    what is in between, what does it send?"""
    return believed(row, "kind", "left sum, bfloat16", "left sum, bfloat16, 8192")


@cpu_and_tpu.mistake
def all_reduce_for_good(row):
    """Only the dtype? Each device keeps one part of the sum. Which collective leaves it there, with half the bytes of
    an all_reduce?"""
    return believed(row, "dtype", *LEFT)
