"""§ 1, 4–6: questions and plain functions about blocks and specs, judged by doing the experiment."""

from __future__ import annotations

import contextlib
import functools
import io

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import blocks, blocks_of
from grader.arrays.described import OnMesh
from grader.arrays.meshes import aval, make_mesh
from grader.arrays.numbers import close
from grader.exercises import Case, FunctionExercise, TableExercise
from grader.programs.program import trace
from grader.programs.walk import structure

MESH = {"x": 4, "y": 2}  # the mesh of most questions
ERROR = "an error"


def eager_map(body, ins, out, sizes=MESH, check_vma=False, **options):
    return jax.shard_map(body, mesh=make_mesh(sizes), in_specs=ins, out_specs=out, check_vma=check_vma, **options)


def device_map(*how, **options):
    return jax.jit(eager_map(*how, **options))  # one compilation, and not one for every operation


def float32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


# What the function sees: a block. And what a print in it shows.

VIEWS = {
    "float32[16, 24], P('x', 'y')": ((16, 24), P("x", "y")),
    "float32[16, 24], P(None, 'x')": ((16, 24), P(None, "x")),
    "float32[16, 24], P()": ((16, 24), P()),
    "float32[16], P(('x', 'y'))": ((16,), P(("x", "y"))),
}
COUNTED = "calls of the function, twice under jit"
PRINTED = "print(block), under jit (every block / one block / no numbers)"


def seen_shape(shape, spec, **options):
    """The shape of the block, as the function itself sees it."""
    shapes = []

    def body(block):
        shapes.append(block.shape)
        return block

    jax.eval_shape(device_map(body, spec, spec, **options), float32(*shape))
    return shapes[0]


def _counted():
    """How often the Python function runs, called twice under jit."""
    calls = []

    def body(block):
        calls.append(block.shape)
        return block

    mapped = jax.jit(eager_map(body, P("x"), P("x")))
    for _ in range(2):
        mapped(jnp.arange(8))
    return len(calls)


def _shown():
    """How many of the blocks' numbers one print shows, under jit."""
    numbers = np.arange(1001, 1009)

    def body(block):
        print(block)
        return block

    with contextlib.redirect_stdout(io.StringIO()) as said:
        jax.jit(eager_map(body, P("x"), P("x"), sizes={"x": 8}))(jnp.asarray(numbers))
    count = sum(str(n) in said.getvalue() for n in numbers)
    return {0: "no numbers", 1: "one block", 8: "every block"}[count]


@functools.cache
def _view(row):
    if row in VIEWS:
        return seen_shape(*VIEWS[row])
    return _counted() if row == COUNTED else _shown()


LOCAL_VIEW_ASKS = {
    "float32": "Take each dimension by itself: which axes does its entry of the spec name, and into how many "
    "parts do they cut it? Without an entry it stays whole.",
}
local_view = TableExercise("local_view", points=4, reference=_view, questions=LOCAL_VIEW_ASKS)
local_view.rows((*VIEWS, COUNTED, PRINTED), mesh=MESH)


@local_view.mistake
def saw_the_whole_array(row):
    """That is the shape of the whole array. Inside shard_map there is no whole array: the function is given one
    block, and has never heard of the others."""
    return VIEWS[row][0] if row in VIEWS else None


@local_view.mistake
def cut_by_all_axes(row):
    """Here every axis of the mesh cuts. Only axes that the spec *names* cut the array; along the others the devices get
    copies."""
    shape = VIEWS[row][0] if row in VIEWS else ()
    return (shape[0] // 4, shape[1] // 2) if len(shape) == 2 else None


@local_view.mistake
def cut_by_one_axis_of_the_tuple(row):
    """So long it would be with a cut over x alone. Both axes of the tuple cut this dimension: into how many parts in
    all?"""
    return (4,) if row == "float32[16], P(('x', 'y'))" else None


@local_view.mistake
def cut_by_the_other_axis(row):
    """So it would be with 2 devices along x and 4 along y. On this mesh there are 4 along x and 2 along y. Which axis
    does the spec name, and for which dimension?"""
    if row not in VIEWS:
        return None
    shape, spec = VIEWS[row]
    index = blocks(shape, spec, {"x": 2, "y": 4}).indices[0]
    return tuple(part.stop - part.start for part in index)


@local_view.mistake
def ran_once_per_device(row):
    """There are eight devices, but one Python. It runs the function once, and what it does, the devices do: all of
    them the same, each with its own block."""
    return 8 if row == COUNTED else None


@local_view.mistake
def ran_at_every_call(row):
    """Under jit the function runs when it is traced. A second call with the same shapes uses the compiled program,
    and no Python."""
    return 2 if row == COUNTED else None


@local_view.mistake
def printed_by_the_devices(row):
    """While jit traces there are no numbers yet, so a print shows a tracer: a shape and a type. `jax.debug.print`
    is the one that the devices take along."""
    return "every block" if row == PRINTED else None


@local_view.mistake
def printed_one_block(row):
    """Called eagerly, shard_map's blocks are there, all of them: the printed value lists device after device. Under
    jit none is there yet."""
    return "one block" if row == PRINTED else None


# out_specs: where the blocks belong. Each body with the function of the whole array that it is meant to be.

X = (31 * np.arange(1, 97) % 97).astype(np.float32).reshape(8, 12)  # no two entries alike
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
    """Those are the in_specs. out_specs describe what *comes out*: along which axes do the devices still hold
    different blocks, and in which dimension do these belong?"""
    return P("x", "y")


@specs_match.mistake
def promised_agreement(body):
    """P() promises that all eight devices return the same block. Do they? Name every axis along which they still
    differ."""
    return P()


@specs_match.mistake
def named_the_axis_of_the_sum(body):
    """Along the axis of a psum the devices agree afterwards, so out_specs leave it out. It is the *other* axis along
    which they still differ."""
    return {"psum(block, 'x')": P("x"), "psum(block.sum(0), 'x')": P("x")}.get(body)


@specs_match.mistake
def kept_a_dimension_that_is_gone(body):
    """The body returns blocks of one dimension, so out_specs have one entry at most. What was the second dimension
    has become the first."""
    return P(None, "y") if body == "psum(block.sum(0), 'x')" else None


@specs_match.mistake
def left_out_the_columns(body):
    """The rows are right. But the devices along y differ as well, and their blocks belong side by side."""
    return P("x") if body in ("block.sum(1, keepdims=True)") else None


@specs_match.mistake
def cut_what_was_gathered(body):
    """After the gather every device along y has whole rows: naming y would set the copies side by side, and make
    the result too wide."""
    return P(None, "y") if body.startswith("all_gather") else None


# The blocks of P('x', 'y') put together by P('y', 'x').

SQUARE = np.arange(16, dtype=np.int32).reshape(4, 4)


@functools.cache
def _swapped():
    return np.asarray(device_map(lambda block: block, P("x", "y"), P("y", "x"))(jnp.asarray(SQUARE)))


@functools.cache
def _sent_for_swapping():
    mapped = device_map(lambda block: block, P("x", "y"), P("y", "x"))
    return structure(trace(mapped, aval((4, 4), jnp.int32, P("x", "y"), make_mesh(MESH)))).bytes_sent


SWAPPED = {
    "shape": lambda: _swapped().shape,
    "first row": lambda: _swapped()[0].tolist(),
    "device 3 returns": lambda: blocks((4, 4), P("x", "y"), MESH, SQUARE).values[3].ravel().tolist(),
    "bytes sent": _sent_for_swapping,
}
BLOCK_TRANSPOSE_ASKS = {
    "shape": "Each device returns its block as it came in. Along which dimension of the result do the blocks "
    "along x stand one behind the other, and along which those along y? How many are there of each, "
    "and how long is one?",
    "first row": "The blocks that stand side by side in the first row of the result differ by their place along "
    "x. What is in each of them?",
    "device 3": "Where does device 3 stand in the mesh, and which block of x did in_specs give it? The body "
    "returns it as it is.",
    "bytes": "out_specs say where in the result each block belongs. Does anything leave a device for that?",
}
block_transpose = TableExercise(
    "block_transpose", points=3, reference=lambda row: SWAPPED[row](), questions=BLOCK_TRANSPOSE_ASKS
)
block_transpose.rows(SWAPPED, mesh=MESH)


@block_transpose.mistake
def kept_the_shape(row):
    """The result need not have the shape of the argument. Each block is one row of two numbers: what do two of them,
    one under the other, and four of them side by side come to?"""
    return (4, 4) if row == "shape" else None


@block_transpose.mistake
def took_it_for_the_transpose(row):
    """That is the transpose, in which each *entry* has a place of its own. out_specs place whole blocks and never look
    into them. Where does the block of row 1, column 0 go?"""
    return SQUARE.T[0].tolist() if row == "first row" else None


@block_transpose.mistake
def thought_nothing_changed(row):
    """out_specs do not describe where the result *should* be cut: they say how the blocks are put together. Four
    blocks along x now stand side by side, two along y one under the other."""
    return SQUARE[0].tolist() if row == "first row" else None


@block_transpose.mistake
def expected_an_error(row):
    """JAX does not compare out_specs with in_specs: any arrangement of the blocks is an array. Is there anything here
    that it could object to?"""
    return ERROR


@block_transpose.mistake
def sent_every_block(row):
    """A device keeps the block that it returns. Only the *name* of that block changes, its place in the whole; that
    costs no byte."""
    return 8 if row == "bytes sent" else None


@block_transpose.mistake
def counted_along_x_first(row):
    """Device 3 is the second one along y in row 1 of the mesh: devices are counted along the *last* axis first."""
    return blocks((4, 4), P("x", "y"), MESH, SQUARE).values[6].ravel().tolist() if row == "device 3 returns" else None


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
    "all_gather(": "What one device returns: are the blocks of all four joined along the dimension they have, or "
    "stacked along a new one in front?",
    "result": "Each device returns what the tiled call gave it. Does out_specs set these one behind the other, "
    "or take one of them for all?",
    "block": "in_specs cut four numbers among four devices.",
}
after_gather = TableExercise(
    "after_gather", points=3, reference=functools.cache(lambda row: GATHERED[row]()), questions=AFTER_GATHER_ASKS
)
after_gather.rows(GATHERED, mesh={"i": 4})


@after_gather.mistake
def thought_out_specs_cut(row):
    """out_specs never cut. Each device returns all four numbers, and P('i') sets what the four devices return one
    after the other."""
    return (4,) if row.endswith("out_specs=P('i')") else None


@after_gather.mistake
def kept_all_copies(row):
    """P() says that the devices agree, so one copy is the result. Only an axis that out_specs *name* sets blocks
    one after the other."""
    return (16,) if row.endswith("out_specs=P()") else None


@after_gather.mistake
def forgot_that_x_is_cut(row):
    """x has four numbers, and in_specs cut it over four devices. How many does one of them get?"""
    return (4,) if row == "block" else None


@after_gather.mistake
def stacked_the_tiles(row):
    """`tiled=True` sets the blocks one after the other in the dimension that they have. Without it they are stacked
    along a *new* one."""
    return (4, 1) if "tiled=True" in row else None


@after_gather.mistake
def tiled_the_stack(row):
    """Without `tiled=True` the blocks are stacked along a new dimension: four of them, each of the shape it had."""
    return (4,) if row == "all_gather(block, 'i')" else None


@after_gather.mistake
def gathered_nothing(row):
    """After an all_gather each device has the blocks of all four, its own among them."""
    return (1,) if row != "block" else None


# A result that claims to be the same on all devices, and is not.

NUMBERS = np.arange(40, dtype=np.float32)


@functools.cache
def _forgotten():
    return device_map(jnp.sum, P("x"), P(), sizes={"x": 8})(jnp.asarray(NUMBERS))


CLAIMS = {
    "float(y)": lambda: float(_forgotten()),
    "y.is_fully_replicated": lambda: bool(_forgotten().is_fully_replicated),
    "device 5 holds": lambda: float(blocks_of(_forgotten()).values[5]),
    "float(x.sum())": lambda: float(NUMBERS.sum()),
}
FORGOT_REPLICATION_ASKS = {
    "float(y)": "Nothing was added up over devices. The layout promises that all copies are alike, and Python "
    "reads the first one. Which numbers has device 0?",
    "is_fully": "A layout is what out_specs say. Does it look at values?",
    "device 5": "How many of the forty numbers has a device, and which has device 5? It adds up those alone.",
    "x.sum": "Asked is the sum of all forty numbers, and `arange` begins with 0.",
}
forgot_replication = TableExercise(
    "forgot_replication", points=3, reference=lambda row: CLAIMS[row](), questions=FORGOT_REPLICATION_ASKS
)
forgot_replication.rows(CLAIMS, mesh={"x": 8})


@forgot_replication.mistake
def took_it_for_the_whole_sum(row):
    """That would be the sum over all devices, and nobody added up over devices. The function sums *one block*."""
    return float(NUMBERS.sum()) if row in ("float(y)", "device 5 holds") else None


@forgot_replication.mistake
def believed_the_claim(row):
    """That is device 0's number. out_specs=P() *say* that all devices hold it, but each has summed a block of its own.
    Of which numbers does this row ask for the sum?"""
    return float(NUMBERS[:5].sum()) if row in ("device 5 holds", "float(x.sum())") else None


@forgot_replication.mistake
def counted_devices_from_one(row):
    """That is the sum of the block before. Devices are counted from 0, so device 5 holds the sixth block."""
    return float(NUMBERS[20:25].sum()) if row == "device 5 holds" else None


@forgot_replication.mistake
def took_four_numbers_each(row):
    """That is the sum of four numbers. Forty numbers were dealt out to eight devices: how many has each?"""
    return {"float(y)": float(NUMBERS[:4].sum()), "device 5 holds": float(NUMBERS[20:24].sum())}.get(row)


@forgot_replication.mistake
def counted_from_one_to_forty(row):
    """That is the sum of 1 to 40. `np.arange(40)` has forty numbers, too: which is its first, and which its last?"""
    return float((NUMBERS + 1).sum()) if row == "float(x.sum())" else None


@forgot_replication.mistake
def thought_jax_looks(row):
    """`is_fully_replicated` reads the layout, which is what out_specs claimed. It looks at no value on any device."""
    return False if row == "y.is_fully_replicated" else None


@forgot_replication.mistake
def expected_all_eight(row):
    """A scalar is one number to NumPy and to Python. It is read from one device; the other seven are not asked."""
    return NUMBERS.reshape(8, 5).sum(1).tolist() if row == "float(y)" else None


# A device's own place.

WIDE = {"x": 2, "y": 4}
INDICES = {
    "axis_index('x')": "x",
    "axis_index('y')": "y",
    "axis_index(('x', 'y'))": ("x", "y"),
    "axis_index(('y', 'x'))": ("y", "x"),
}


@functools.cache
def _places(call):
    mapped = device_map(lambda _: lax.axis_index(INDICES[call])[None], P(), P(("x", "y")), sizes=WIDE)
    return np.asarray(mapped(jnp.zeros(1))).tolist()


FLAT_INDEX_ASKS = {
    "(('": "Of several axes the last one that is named is counted fastest. Write each device's place along "
    "x and along y down, in the order of the devices.",
    "'x'": "Which place along x has each device? Write the mesh down as a grid, x downwards, and read it "
    "device by device.",
    "'y'": "Which place along y has each device? Write the mesh down as a grid, y to the right, and read it "
    "device by device.",
}
flat_index = TableExercise("flat_index", points=2, reference=_places, questions=FLAT_INDEX_ASKS)
flat_index.rows(INDICES, WIDE, argument="call")


@flat_index.mistake
def took_the_devices_number(call):
    """Those are the devices' numbers. `axis_index` counts along the axes that you name, in the order in which you
    name them, and knows nothing of the others."""
    return list(range(8)) if call != "axis_index(('x', 'y'))" else None


@flat_index.mistake
def mixed_up_the_axes(call):
    """On a 2 × 4 mesh x has two places and y has four. Devices 0 to 3 stand in the first row: which of their two
    indices differs?"""
    swapped = {"axis_index('x')": "axis_index('y')", "axis_index('y')": "axis_index('x')"}
    return _places(swapped[call]) if call in swapped else None


@flat_index.mistake
def counted_the_first_axis_fastest(call):
    """Of two axes, the *last* named counts fastest, as the last digit of a number does."""
    swapped = {"axis_index(('x', 'y'))": "axis_index(('y', 'x'))"}
    return _places(swapped[call]) if call in swapped else None


@flat_index.mistake
def took_the_blocks_numbers(call):
    """Those are the devices in the order of that index: who has 0, who has 1, and so on. Asked is the other way
    round: for each device, its index."""
    return np.argsort(_places(call)).tolist() if call == "axis_index(('y', 'x'))" else None


@flat_index.mistake
def counted_on_a_mesh_of_four_rows(call):
    """So it is on a mesh of 4 × 2. Here the mesh is 2 × 4: how many devices stand in its first row?"""
    x, y = np.unravel_index(np.arange(8), (4, 2))
    found = {"axis_index('x')": x, "axis_index('y')": y, "axis_index(('y', 'x'))": 4 * y + x}.get(call)
    return None if found is None else found.tolist()


def _coordinates(mesh):
    """Row k: the two places of the k-th device of the mesh, on that device."""
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
    """A Python `if` decides once, for all devices, while the function is traced; the index is known only on each
    device, later. Leave it as a number and compute with it."""

    def body():
        if lax.axis_index("x") == 0:
            return jnp.zeros((1, 2), jnp.int32)
        return _my_row()

    return _places_by(mesh, body, P(("x", "y")))


@axis_index_coords.mistake
def promised_one_row(mesh):
    """out_specs=P() promise that all devices return the same row, but every device has a place of its own. Along which
    axes do the rows differ?"""
    return _places_by(mesh, _my_row, P())


@axis_index_coords.mistake
def swapped_the_coordinates(mesh):
    """The columns are swapped: the place along x comes first, then the place along y. What stands first in the row
    that a device makes?"""
    return _places_by(mesh, lambda: _my_row("y", "x"), P(("x", "y")))


@axis_index_coords.mistake
def stacked_y_first(mesh):
    """The rows are right, their order is not: P(('y', 'x')) puts devices that differ along x next to each other. The
    mesh counts those first that differ along y."""
    return _places_by(mesh, _my_row, P(("y", "x")))


@axis_index_coords.mistake
def rows_along_x_only(mesh):
    """Of the devices with one place along x only one row came out. Where out_specs name x alone, the rows of devices
    along y count as copies. How does a spec cut one dimension over two axes?"""
    return _places_by(mesh, _my_row, P("x"), check_vma=False)


@axis_index_coords.mistake
def made_outside(mesh):
    """The numbers are right, but one device, or the host, holds them all. Each device should make its own row: return
    it from a function that shard_map runs."""
    return jnp.asarray(np.stack(np.unravel_index(np.arange(8), tuple(mesh.shape.values())), axis=1).astype(np.int32))
