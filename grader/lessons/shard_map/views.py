"""§ 9, 13: questions and plain functions about blocks and specs, checked by running the experiment."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import blocks, blocks_of
from grader.arrays.described import OnMesh
from grader.arrays.meshes import make_mesh
from grader.arrays.numbers import close
from grader.exercises import Case, FunctionExercise, TableExercise

MESH = {"x": 4, "y": 2}  # the mesh of most questions
ERROR = "an error"


def eager_map(body, ins, out, sizes=MESH, check_vma=False, **options):
    return jax.shard_map(body, mesh=make_mesh(sizes), in_specs=ins, out_specs=out, check_vma=check_vma, **options)


def device_map(*how, **options):
    return jax.jit(eager_map(*how, **options))  # one compilation, and not one for every operation


def float32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


# out_specs: where the blocks belong. Each body with the full array that it should give.

X = (31 * np.arange(1, 97) % 97).astype(np.float32).reshape(8, 12)  # no two elements are equal
BODIES = {
    "block.T": (lambda b: b.T, X.T),
    "block.sum(1, keepdims=True)": (lambda b: b.sum(1, keepdims=True), X.reshape(8, 2, 6).sum(2)),
    "psum(block, 'x')": (lambda b: lax.psum(b, "x"), X.reshape(4, 2, 12).sum(0)),
    "psum(block.sum(0), 'x')": (lambda b: lax.psum(b.sum(0), "x"), X.sum(0)),
    "psum(block.sum(), ('x', 'y'))": (lambda b: lax.psum(b.sum(), ("x", "y")), X.sum()),
    "all_gather(block, 'y', axis=1, tiled=True)": (lambda b: lax.all_gather(b, "y", axis=1, tiled=True), X),
}
SPECS = (P(), P("x"), P("y"), P(None, "x"), P(None, "y"), P("x", "y"), P("y", "x"), P(("x", "y")))


@functools.cache
def _fitting(body):
    """The spec under which what each device returns is the block that it should hold."""
    function, whole = BODIES[body]
    stacked = device_map(lambda b: function(b)[None], P("x", "y"), P(("x", "y")))(jnp.asarray(X))
    returned = [value[0] for value in blocks_of(jax.block_until_ready(stacked), MESH).values]
    return next(
        spec
        for spec in SPECS
        if _divides(whole.shape, spec)
        and all(map(close, returned, blocks(whole.shape, spec, MESH, value=whole).values))
    )


def _divides(shape, spec):
    sizes = [int(np.prod([MESH[a] for a in ((p,) if isinstance(p, str) else p or ())])) for p in spec]
    return len(sizes) <= len(shape) and all(n % size == 0 for n, size in zip(shape, sizes, strict=False))


def _same_spec(one, other, body):
    most = max(np.ndim(BODIES[body][1]), len(other))  # (a mistake may have an entry more than there are dimensions)
    return not isinstance(one, str) and len(one) <= most and _trimmed(one) == _trimmed(other)


def _trimmed(spec):
    """A spec without what makes no difference: trailing Nones, an axis in a tuple of its own."""
    parts = [p[0] if isinstance(p, (tuple, list)) and len(p) == 1 else p for p in spec]
    while parts and parts[-1] is None:
        parts.pop()
    return [tuple(p) if isinstance(p, list) else p for p in parts]


specs_match = TableExercise("specs_match", points=4, reference=_fitting, same=_same_spec)
specs_match.rows(BODIES, MESH, argument="body")


@specs_match.mistake
def kept_the_specs_of_the_input(body):
    """Those are the in_specs. out_specs describe what the function *returns*. Along which axes do the devices still
    hold different blocks, and in which dimension are they concatenated?"""
    return P("x", "y")


@specs_match.mistake
def promised_agreement(body):
    """P() promises that all eight devices return the same block, and here they don't. Along which axes do their blocks
    still differ?"""
    return P()


@specs_match.mistake
def named_the_axis_of_the_sum(body):
    """Along the axis of a psum, the devices agree afterward, so out_specs leave it out. Along which axis do they still
    differ?"""
    return {"psum(block, 'x')": P("x"), "psum(block.sum(0), 'x')": P("x")}.get(body)


@specs_match.mistake
def kept_a_dimension_that_is_gone(body):
    """The function returns blocks with one dimension, so out_specs have at most one entry. Which dimension of the
    result are the columns now?"""
    return P(None, "y") if body == "psum(block.sum(0), 'x')" else None


@specs_match.mistake
def left_out_the_columns(body):
    """The entry for the rows is correct. But the devices along y also return different blocks. In which dimension are
    these concatenated?"""
    return P("x") if body in ("block.sum(1, keepdims=True)") else None


@specs_match.mistake
def cut_what_was_gathered(body):
    """After the gather, all devices along y hold the same full rows, and naming y would concatenate those replicas.
    Which axis still makes a difference?"""
    return P(None, "y") if body.startswith("all_gather") else None


# An all_gather, and what out_specs make of it.

FOUR = np.array([3, 9, 5, 2], np.int32)


def _gathered(body, out):
    return device_map(body, P("i"), out, sizes={"i": 4})(FOUR)


def _inside(body):
    return jax.block_until_ready(_gathered(lambda block: body(block)[None], P("i"))).shape[1:]


def _tiled(block):
    return lax.all_gather(block, "i", tiled=True)


GATHERED = {
    "block": lambda: _inside(lambda block: block),
    "all_gather(block, 'i', tiled=True)": lambda: _inside(_tiled),
    "all_gather(block, 'i')": lambda: _inside(lambda block: lax.all_gather(block, "i")),
    "result of the tiled one, out_specs=P('i')": lambda: _gathered(_tiled, P("i")).shape,
    "result of the tiled one, out_specs=P()": lambda: _gathered(_tiled, P()).shape,
}
AFTER_GATHER_ASKS = {
    "all_gather(": "This is what one device returns. Are the blocks of all four devices concatenated, or stacked along "
    "a new first dimension?",
    "result": "Each device returns what the tiled call gave it. Do out_specs concatenate these, or take one of them "
    "as the result?",
    "block": "in_specs split four numbers over four devices. How many does one device have?",
}
after_gather = TableExercise(
    "after_gather", points=3, reference=functools.cache(lambda row: GATHERED[row]()), questions=AFTER_GATHER_ASKS
)
after_gather.rows(GATHERED, mesh={"i": 4})


@after_gather.mistake
def thought_out_specs_cut(row):
    """out_specs never split anything. Each of the four devices returns four numbers, and P('i') concatenates them. How
    many are there in all?"""
    return (4,) if row.endswith("out_specs=P('i')") else None


@after_gather.mistake
def kept_all_copies(row):
    """P() says that the devices agree, so a single copy is the result. Only an axis that out_specs *name* concatenates
    blocks. How long is one copy?"""
    return (16,) if row.endswith("out_specs=P()") else None


@after_gather.mistake
def forgot_that_x_is_cut(row):
    """That is the length of the full array. in_specs split its four numbers over four devices. How many does one
    device have?"""
    return (4,) if row == "block" else None


@after_gather.mistake
def stacked_the_tiles(row):
    """With `tiled=True`, the blocks are concatenated in a dimension that they have. Without it, they are stacked along
    a *new* one. Which of the two is this row?"""
    return (4, 1) if "tiled=True" in row else None


@after_gather.mistake
def tiled_the_stack(row):
    """Without `tiled=True`, the blocks are stacked along a new dimension, and each keeps the shape it had. Which shape
    do four of them make?"""
    return (4,) if row == "all_gather(block, 'i')" else None


@after_gather.mistake
def gathered_nothing(row):
    """That is the shape of one block. After an all_gather, each device has the blocks of all four devices. How many
    numbers is that?"""
    return (1,) if row != "block" else None


# A device's own indices.


def _coordinates(mesh):
    """Row k: the two indices of the k-th device of the mesh, on that device."""
    rows = np.stack(np.unravel_index(np.arange(8), tuple(mesh.shape.values())), axis=1).astype(np.int32)
    return jax.device_put(rows, NamedSharding(mesh, P(("x", "y"))))


axis_index_coords = FunctionExercise("axis_index_coords", points=4, reference=_coordinates)


@axis_index_coords.cases
def _(draw):
    for sizes, order in (({"x": 4, "y": 2}, ()), ({"x": 2, "y": 4}, ()), ({"x": 4, "y": 2}, tuple(range(7, -1, -1)))):
        yield Case({"mesh": OnMesh(sizes, order=order)})


def _places_by(mesh, body, out, check_vma=True):
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=(), out_specs=out, check_vma=check_vma))()


def _my_row(first="x", second="y"):
    return jnp.stack([lax.axis_index(first), lax.axis_index(second)])[None]


@axis_index_coords.mistake
def asked_python(mesh):
    """A Python `if` decides once, for all devices, while the function is traced. Each device knows its index only
    later, when the program runs. How can you compute with the index instead?"""

    def body():
        if lax.axis_index("x") == 0:
            return jnp.zeros((1, 2), jnp.int32)
        return _my_row()

    return _places_by(mesh, body, P(("x", "y")))


@axis_index_coords.mistake
def promised_one_row(mesh):
    """out_specs=P() promise that all devices return the same row, but each device has its own indices. Along which
    axes do the rows differ?"""
    return _places_by(mesh, _my_row, P())


@axis_index_coords.mistake
def swapped_the_coordinates(mesh):
    """The columns are swapped: the index along y comes first. Which index comes first in the row that each device
    makes?"""
    return _places_by(mesh, lambda: _my_row("y", "x"), P(("x", "y")))


@axis_index_coords.mistake
def stacked_y_first(mesh):
    """The rows are correct, but their order isn't: P(('y', 'x')) puts devices that differ along x next to each other.
    Which axis of the mesh counts fastest?"""
    return _places_by(mesh, _my_row, P(("y", "x")))


@axis_index_coords.mistake
def rows_along_x_only(mesh):
    """There is only one row for each index along x. out_specs that name x alone treat the rows of the devices along y
    as replicas. How does a spec split one dimension along two axes?"""
    return _places_by(mesh, _my_row, P("x"), check_vma=False)


@axis_index_coords.mistake
def made_outside(mesh):
    """The numbers are correct, but a single device or the host holds all of them. Which function should make a row on
    each device?"""
    return jnp.asarray(np.stack(np.unravel_index(np.arange(8), tuple(mesh.shape.values())), axis=1).astype(np.int32))
