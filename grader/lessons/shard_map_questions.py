"""05_shard_map: the questions and plain functions of the lesson, judged by doing the experiment."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.behaviour import close
from grader.blocks import blocks, blocks_of
from grader.communication import compiled_structure, structure
from grader.exercise import Case, Exercise
from grader.placed import OnDevices, OnMesh
from grader.program import aval, make_mesh, trace

MESH = {"x": 4, "y": 2}  # the mesh of most questions
ERROR = "an error"


def _eager_map(body, ins, out, sizes=MESH, check_vma=False, **options):
    return jax.shard_map(body, mesh=make_mesh(sizes), in_specs=ins, out_specs=out, check_vma=check_vma, **options)


def _device_map(*how, **options):
    return jax.jit(_eager_map(*how, **options))  # one compilation, and not one for every operation


def _float32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


# What the function sees: a block. And what a print in it shows.

VIEWS = {
    "float32[16, 24], P('x', 'y')": ((16, 24), P("x", "y")),
    "float32[16, 24], P('y')": ((16, 24), P("y")),
    "float32[16, 24], P(None, 'x')": ((16, 24), P(None, "x")),
    "float32[16, 24], P()": ((16, 24), P()),
    "float32[16], P(('x', 'y'))": ((16,), P(("x", "y"))),
    "float32[8, 3, 4], P('x', None, 'y')": ((8, 3, 4), P("x", None, "y")),
}
RUNS = {"calls of the function, eagerly": False, "calls of the function, twice under jit": True}
PRINTS = {"print(block), eagerly": False, "print(block), under jit": True}


def _seen(shape, spec, **options):
    """The shape of the block, as the function itself sees it."""
    shapes = []

    def body(block):
        shapes.append(block.shape)
        return block

    jax.eval_shape(_device_map(body, spec, spec, **options), _float32(*shape))
    return shapes[0]


def _counted(jitted):
    """How often the Python function runs: called once eagerly, or twice under jit."""
    calls = []

    def body(block):
        calls.append(block.shape)
        return block

    mapped = _eager_map(body, P("x"), P("x"))
    if jitted:
        mapped = jax.jit(mapped)
        mapped(jnp.arange(8))
    mapped(jnp.arange(8))
    return len(calls)


def _shown(jitted):
    """How many of the blocks' numbers one print shows."""
    numbers = np.arange(1001, 1009)

    def body(block):
        print(block)
        return block

    mapped = _eager_map(body, P("x"), P("x"), sizes={"x": 8})
    with contextlib.redirect_stdout(io.StringIO()) as said:
        (jax.jit(mapped) if jitted else mapped)(jnp.asarray(numbers))
    count = sum(str(n) in said.getvalue() for n in numbers)
    return {0: "no numbers", 1: "one block", 8: "every block"}[count]


@functools.cache
def _view(row):
    if row in VIEWS:
        return _seen(*VIEWS[row])
    return _counted(RUNS[row]) if row in RUNS else _shown(PRINTS[row])


local_view = Exercise("local_view", points=4, reference=_view, form="table")


@local_view.cases
def _(draw):
    for row in (*VIEWS, *RUNS, *PRINTS):
        yield Case({"row": row}, MESH, key=row)


@local_view.mistake
def saw_the_whole_array(row):
    """That is the shape of the whole array. Inside shard_map there is no whole array: the function is given one
    block, and has never heard of the others."""
    return VIEWS[row][0] if row in VIEWS else None


@local_view.mistake
def cut_by_all_axes(row):
    """Every axis of the mesh was used. Only axes that the spec *names* cut the array; along the others the devices
    get copies."""
    shape = VIEWS[row][0] if row in VIEWS else None
    return shape and tuple(n // k for n, k in itertools.zip_longest(shape, (4, 2)[:len(shape)], fillvalue=1))


@local_view.mistake
def cut_by_the_other_axis(row):
    """The axes were mixed up: x has 4 devices, y has 2."""
    if row not in VIEWS:
        return None
    shape, spec = VIEWS[row]
    index = blocks(shape, spec, {"x": 2, "y": 4}).indices[0]
    return tuple(part.stop - part.start for part in index)


@local_view.mistake
def ran_once_per_device(row):
    """There are eight devices, but one Python. It runs the function once, and what it does, the devices do: all of
    them the same, each with its own block."""
    return 8 if row in RUNS else None


@local_view.mistake
def ran_at_every_call(row):
    """Under jit the function runs when it is traced. A second call with the same shapes uses the compiled program,
    and no Python."""
    return 2 if row in RUNS else None


@local_view.mistake
def printed_by_the_devices(row):
    """While jit traces there are no numbers yet, so a print shows a tracer: a shape and a type. `jax.debug.print`
    is the one that the devices take along."""
    return "every block" if row in PRINTS else None


@local_view.mistake
def printed_one_block(row):
    """Called eagerly, shard_map's blocks are there, all of them: the printed value lists device after device. Under
    jit none is there yet."""
    return "one block" if row in PRINTS else None


@local_view.mistake
def printed_a_tracer_eagerly(row):
    """Without jit, shard_map runs operation by operation, and each result is there on every device to be printed.
    Only under jit is there nothing to show."""
    return "no numbers" if row in PRINTS else None


# out_specs: where the blocks belong. Each body with the function of the whole array that it is meant to be.

X = (31 * np.arange(1, 97) % 97).astype(np.float32).reshape(8, 12)  # no two entries alike
BODIES = {
    "2 * block": (lambda b: 2 * b, 2 * X),
    "block.T": (lambda b: b.T, X.T),
    "block.sum(1, keepdims=True)": (lambda b: b.sum(1, keepdims=True), X.reshape(8, 2, 6).sum(2)),
    "psum(block, 'x')": (lambda b: lax.psum(b, "x"), X.reshape(4, 2, 12).sum(0)),
    "psum(block, 'y')": (lambda b: lax.psum(b, "y"), X.reshape(8, 2, 6).sum(1)),
    "psum(block.sum(0), 'x')": (lambda b: lax.psum(b.sum(0), "x"), X.sum(0)),
    "psum(block.sum(), ('x', 'y'))": (lambda b: lax.psum(b.sum(), ("x", "y")), X.sum()),
    "all_gather(block, 'y', axis=1, tiled=True)": (lambda b: lax.all_gather(b, "y", axis=1, tiled=True), X),
}
SPECS = (P(), P("x"), P("y"), P(None, "x"), P(None, "y"), P("x", "y"), P("y", "x"), P(("x", "y")))


@functools.cache
def _fitting(body):
    """The spec under which what each device returns is the block that it should hold."""
    function, whole = BODIES[body]
    stacked = _device_map(lambda b: function(b)[None], P("x", "y"), P(("x", "y")))(jnp.asarray(X))
    returned = [value[0] for value in blocks_of(jax.block_until_ready(stacked), MESH).values]
    return next(spec for spec in SPECS if _divides(whole.shape, spec)
                and all(map(close, returned, blocks(whole.shape, spec, MESH, value=whole).values)))


def _divides(shape, spec):
    sizes = [int(np.prod([MESH[a] for a in ((p,) if isinstance(p, str) else p or ())])) for p in spec]
    return len(sizes) <= len(shape) and all(n % size == 0 for n, size in zip(shape, sizes, strict=False))


def _same_spec(one, other, **_):
    return not isinstance(one, str) and _trimmed(one) == _trimmed(other)


def _trimmed(spec):
    """A spec without what makes no difference: trailing Nones, an axis in a tuple of its own."""
    parts = [p[0] if isinstance(p, (tuple, list)) and len(p) == 1 else p for p in spec]
    while parts and parts[-1] is None:
        parts.pop()
    return [tuple(p) if isinstance(p, list) else p for p in parts]


specs_match = Exercise("specs_match", points=4, reference=_fitting, form="table", same=_same_spec)


@specs_match.cases
def _(draw):
    for body in BODIES:
        yield Case({"body": body}, MESH, key=body)


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
    return {"psum(block, 'x')": P("x"), "psum(block, 'y')": P(None, "y"), "psum(block.sum(0), 'x')": P("x")}.get(body)


@specs_match.mistake
def kept_a_dimension_that_is_gone(body):
    """The body returns blocks of one dimension, so out_specs have one entry at most. What was the second dimension
    has become the first."""
    return P(None, "y") if body == "psum(block.sum(0), 'x')" else None


@specs_match.mistake
def left_out_the_columns(body):
    """The rows are right. But the devices along y differ as well, and their blocks belong side by side."""
    return P("x") if body in ("2 * block", "block.sum(1, keepdims=True)") else None


@specs_match.mistake
def cut_what_was_gathered(body):
    """After the gather every device along y has whole rows: naming y would set the copies side by side, and make
    the result too wide."""
    return P(None, "y") if body.startswith("all_gather") else None


# The blocks of P('x', 'y') put together by P('y', 'x').

SQUARE = np.arange(16, dtype=np.int32).reshape(4, 4)


@functools.cache
def _swapped():
    return np.asarray(_device_map(lambda block: block, P("x", "y"), P("y", "x"))(jnp.asarray(SQUARE)))


@functools.cache
def _sent_for_swapping():
    mapped = _device_map(lambda block: block, P("x", "y"), P("y", "x"))
    return structure(trace(mapped, aval((4, 4), jnp.int32, P("x", "y"), make_mesh(MESH)))).bytes_sent


SWAPPED = {
    "shape": lambda: _swapped().shape,
    "first row": lambda: _swapped()[0].tolist(),
    "device 3 returns": lambda: blocks((4, 4), P("x", "y"), MESH, SQUARE).values[3].ravel().tolist(),
    "bytes sent": _sent_for_swapping,
}
block_transpose = Exercise("block_transpose", points=3, reference=lambda row: SWAPPED[row](), form="table")


@block_transpose.cases
def _(draw):
    for row in SWAPPED:
        yield Case({"row": row}, MESH, key=row)


@block_transpose.mistake
def kept_the_shape(row):
    """The result need not have the shape of the argument. Each block is one row of two numbers: what do two of them,
    one under the other, and four of them side by side come to?"""
    return (4, 4) if row == "shape" else None


@block_transpose.mistake
def took_it_for_the_transpose(row):
    """That is the transpose, in which every *entry* changes its place. out_specs place whole blocks and never look
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

FOUR = jnp.array([3, 9, 5, 2])


def _gathered(body, out):
    return _device_map(body, P("i"), out, sizes={"i": 4})(FOUR)


def _inside(body):
    return jax.block_until_ready(_gathered(lambda block: body(block)[None], P("i"))).shape[1:]


def _tiled(block):
    return lax.all_gather(block, "i", tiled=True)


GATHERED = {
    "block": lambda: _inside(lambda block: block),
    "all_gather(block, 'i', tiled=True)": lambda: _inside(_tiled),
    "all_gather(block, 'i')": lambda: _inside(lambda block: lax.all_gather(block, "i")),
    "result of the tiled one, out_specs=P('i')": lambda: _gathered(_tiled, P("i")).shape,
    "result of the tiled one, out_specs=P(), check_vma=False": lambda: _gathered(_tiled, P()).shape,
}
after_gather = Exercise("after_gather", points=3, reference=functools.cache(lambda row: GATHERED[row]()), form="table")


@after_gather.cases
def _(draw):
    for row in GATHERED:
        yield Case({"row": row}, {"i": 4}, key=row)


@after_gather.mistake
def thought_out_specs_cut(row):
    """out_specs never cut. Each device returns all four numbers, and P('i') sets what the four devices return one
    after the other."""
    return (4,) if row.endswith("out_specs=P('i')") else None


@after_gather.mistake
def kept_all_copies(row):
    """P() says that the devices agree, so one copy is the result. Only an axis that out_specs *name* sets blocks
    one after the other."""
    return (16,) if row.endswith("check_vma=False") else None


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
    return _device_map(jnp.sum, P("x"), P(), sizes={"x": 8})(jnp.asarray(NUMBERS))


CLAIMS = {
    "float(y)": lambda: float(_forgotten()),
    "y.is_fully_replicated": lambda: bool(_forgotten().is_fully_replicated),
    "device 5 holds": lambda: float(blocks_of(_forgotten()).values[5]),
    "float(x.sum())": lambda: float(NUMBERS.sum()),
}
forgot_replication = Exercise("forgot_replication", points=3, reference=lambda row: CLAIMS[row](), form="table")


@forgot_replication.cases
def _(draw):
    for row in CLAIMS:
        yield Case({"row": row}, {"x": 8}, key=row)


@forgot_replication.mistake
def took_it_for_the_whole_sum(row):
    """That would be the sum over all devices, and nobody added up over devices. The function sums *one block*."""
    return float(NUMBERS.sum()) if row in ("float(y)", "device 5 holds") else None


@forgot_replication.mistake
def believed_the_claim(row):
    """That is device 0's number. out_specs=P() *say* that all devices hold it, but each has summed a block of its
    own. Which five numbers has device 5?"""
    return float(NUMBERS[:5].sum()) if row in ("device 5 holds", "float(x.sum())") else None


@forgot_replication.mistake
def counted_devices_from_one(row):
    """That is the sum of the block before. Devices are counted from 0, so device 5 holds the sixth block."""
    return float(NUMBERS[20:25].sum()) if row == "device 5 holds" else None


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
INDICES = {"axis_index('x')": "x", "axis_index('y')": "y", "axis_index(('x', 'y'))": ("x", "y"),
           "axis_index(('y', 'x'))": ("y", "x")}


@functools.cache
def _places(call):
    mapped = _device_map(lambda _: lax.axis_index(INDICES[call])[None], P(), P(("x", "y")), sizes=WIDE)
    return np.asarray(mapped(jnp.zeros(1))).tolist()


flat_index = Exercise("flat_index", points=2, reference=_places, form="table")


@flat_index.cases
def _(draw):
    for call in INDICES:
        yield Case({"call": call}, WIDE, key=call)


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


def _coordinates(mesh):
    """Row k: the two places of the k-th device of the mesh, on that device."""
    rows = np.stack(np.unravel_index(np.arange(8), tuple(mesh.shape.values())), axis=1).astype(np.int32)
    return jax.device_put(rows, NamedSharding(mesh, P(("x", "y"))))


axis_index_coords = Exercise("axis_index_coords", points=4, reference=_coordinates, form="function")


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
    """The columns are swapped: the place along x comes first."""
    return _places_by(mesh, lambda: _my_row("y", "x"), P(("x", "y")))


@axis_index_coords.mistake
def stacked_y_first(mesh):
    """The rows are right, their order is not: P(('y', 'x')) runs through x fastest, and the devices are counted along
    y first."""
    return _places_by(mesh, _my_row, P(("y", "x")))


@axis_index_coords.mistake
def rows_along_x_only(mesh):
    """out_specs name x alone, so the rows of devices along y count as copies, and one of each pair was lost. How does a
    spec cut one dimension over two axes?"""
    return _places_by(mesh, _my_row, P("x"), check_vma=False)


@axis_index_coords.mistake
def made_outside(mesh):
    """The numbers are right, but one device holds them all. Each device should make its own row: return it from a
    function that shard_map runs."""
    return jnp.asarray(np.stack(np.unravel_index(np.arange(8), tuple(mesh.shape.values())), axis=1).astype(np.int32))


# The types that check_vma tracks.

TYPED = {
    "block": lambda block, w, b: block,
    "w": lambda block, w, b: w,
    "b": lambda block, w, b: b,
    "w + b": lambda block, w, b: w + b,
    "psum(block, 'x')": lambda block, w, b: lax.psum(block, "x"),
    "psum(block, ('x', 'y'))": lambda block, w, b: lax.psum(block, ("x", "y")),
    "all_gather(block, 'y')": lambda block, w, b: lax.all_gather(block, "y"),
    "axis_index('y')": lambda block, w, b: lax.axis_index("y"),
    "jnp.zeros(4)": lambda block, w, b: jnp.zeros(4),
}


def varying_axes(value):
    """The mesh axes along which a value may vary, as its type says."""
    kind = jax.typeof(value)
    return sorted(kind.vma if hasattr(kind, "vma") else kind.manual_axis_type.varying)


@functools.cache
def _varies_over(row):
    found = []

    def body(*given):
        found.extend(varying_axes(TYPED[row](*given)))
        return given[0]

    mapped = _device_map(body, (P("x", "y"), P("x"), P()), P("x", "y"), check_vma=True)
    jax.eval_shape(mapped, _float32(8, 4), _float32(16), _float32(4))
    return found


def _same_axes(one, other, **_):
    return set(one) == set(other)


vma_types = Exercise("vma_types", points=4, reference=_varies_over, form="table", same=_same_axes)


@vma_types.cases
def _(draw):
    for row in TYPED:
        yield Case({"row": row}, MESH, key=row)


@vma_types.mistake
def varies_over_the_whole_mesh(row):
    """Both axes? A value varies over an axis only when devices along it may hold different values. Which axes cut what
    it is made of, and which were summed over?"""
    return ["x", "y"]


@vma_types.mistake
def agrees_everywhere(row):
    """No axis at all would mean that all eight devices hold the same. What is it made of, and how was that cut?"""
    return []


@vma_types.mistake
def varies_where_it_was_summed(row):
    """After a psum the devices along *its* axis agree: that axis leaves the type, the other stays."""
    return ["x"] if row == "psum(block, 'x')" else None


@vma_types.mistake
def looked_at_the_values(row):
    """The values do agree along y, and you are right about them. But the type is worked out without looking at values,
    and for all_gather the rule is that its result still counts as varying."""
    return ["x"] if row.startswith("all_gather") else None


@vma_types.mistake
def varies_over_the_axis_of_the_other(row):
    """That is the other axis. What was cut along which axis, and what does the call name?"""
    return {"w": ["y"], "w + b": ["y"], "axis_index('y')": ["x"]}.get(row)


# What the check is worth: five bodies, with it and without.

PRICE_MESH = {"x": 4}
TERMS = np.arange(1, 9, dtype=np.float32)
PRICED = {  # body of (block, w), its out_specs, and what should come out
    "A": (lambda block, w: lax.psum(block.sum(), "x"), P(), TERMS.sum()),
    "B": (lambda block, w: block.sum(), P(), TERMS.sum()),
    "C": (lambda block, w: lax.all_gather(block, "x", tiled=True), P(), TERMS),
    "D": (lambda block, w: lax.fori_loop(0, 3, lambda k, y: y + block, jnp.zeros(2)), P("x"), 3 * TERMS),
    "E": (lambda block, w: jax.grad(lambda w: (w * block).sum())(w), P(), TERMS.sum()),
}
PRICES = [f"{body}, {check}" for body in PRICED for check in ("check on", "check off")]


@functools.cache
def _price(row):
    name, _, check = row.partition(", ")
    body, out, whole = PRICED[name]
    mapped = _device_map(body, (P("x"), P()), out, PRICE_MESH, check_vma=check == "check on")
    try:
        held = blocks_of(mapped(jnp.asarray(TERMS), jnp.float32(3)), PRICE_MESH)
    except (TypeError, ValueError):
        return "error"
    due = blocks(np.shape(whole), out, PRICE_MESH, whole).values
    return "right" if all(map(close, held.values, due)) else "wrong"


price_of_no_check = Exercise("price_of_no_check", points=4, reference=_price, form="table")


@price_of_no_check.cases
def _(draw):
    for row in PRICES:
        yield Case({"row": row}, PRICE_MESH, key=row)


@price_of_no_check.mistake
def took_it_for_a_remedy(row):
    """Taking off the check does not make anything right: it stops JAX from looking, and from inserting what the types
    ask for. Work out what each device holds at the end. Is it the same on all of them?"""
    return "right" if row.endswith("off") else None


@price_of_no_check.mistake
def thought_off_means_wrong(row):
    """Without the check JAX does not look, but what devices compute stays what it is. Work out what each of them holds
    at the end. Is it what out_specs say?"""
    return "wrong" if row.endswith("off") else None


@price_of_no_check.mistake
def thought_the_check_stays(row):
    """Without the check nobody compares out_specs, or a loop's carry, with what varies. This runs. What comes out is
    another question."""
    return "error" if row.endswith("off") else None


@price_of_no_check.mistake
def thought_the_check_lets_all_through(row):
    """The check works on types. Ask of each body: may what it returns vary over x, by its type, and do out_specs
    allow for that? Does a carry keep its type?"""
    return "right" if row.endswith("on") else None


@price_of_no_check.mistake
def thought_the_check_refuses_all(row):
    """The type that comes out does not vary over x, as out_specs promise. There is nothing to refuse."""
    return "error" if row.endswith("on") else None


@price_of_no_check.mistake
def thought_the_check_lets_wrong_ones_through(row):
    """With the check on, a result that may vary over x is not let out as P(): you would get an error and no wrong
    number."""
    return "wrong" if row.endswith("on") else None


# in_specs that differ from how the array lies, on a mesh of Auto axes.

FITS = {
    "lies P('x', None), in_specs P('x', None)": (P("x", None), P("x", None)),
    "lies P(), in_specs P('x', None)": (P(), P("x", None)),
    "lies P('x', None), in_specs P('x', 'y')": (P("x", None), P("x", "y")),
    "lies P('x', None), in_specs P()": (P("x", None), P()),
    "lies P('x', 'y'), in_specs P('x', None)": (P("x", "y"), P("x", None)),
    "lies P('x', None), in_specs P(None, 'x')": (P("x", None), P(None, "x")),
}


@functools.cache
def _before(row):
    """What has to be sent for in_specs alone, before the body begins."""
    lies, wanted = FITS[row]
    mapped = _eager_map(lambda block: 2 * block, wanted, wanted)
    written = structure(trace(mapped, aval((8, 8), jnp.float32, lies, make_mesh(MESH))))
    return "data move" if written.bytes_sent else "nothing moves"


before_it_begins = Exercise("before_it_begins", points=2, reference=_before, form="table")


@before_it_begins.cases
def _(draw):
    for row in FITS:
        yield Case({"row": row}, MESH, key=row)


@before_it_begins.mistake
def thought_in_specs_only_describe(row):
    """A block has to be on its device before the function begins. Does the device hold all of the block that in_specs
    ask for? What it lacks must come from somewhere."""
    return "nothing moves"


@before_it_begins.mistake
def thought_any_difference_moves(row):
    """Each device already holds the block that in_specs ask for, or more than it. Cutting a piece off what one holds
    costs nothing on the wire."""
    return "data move"


@before_it_begins.mistake
def thought_of_explicit_meshes(row):
    """That is how an Explicit mesh answers. With Auto axes JAX takes in_specs for a wish, and moves the data without a
    word where it must."""
    return ERROR


# in_specs for several arguments, and for arguments that are trees.

TREE = {"w": _float32(8, 4), "b": _float32(4)}
TREES = {
    "(P(), P('x'))": (P(), P("x")),
    "({'w': P('x'), 'b': P()}, P('x'))": ({"w": P("x"), "b": P()}, P("x")),
    "P('x')": P("x"),
    "[P(), P('x')]": [P(), P("x")],
    "(P(),)": (P(),),
    "({'w': P('x')}, P('x'))": ({"w": P("x")}, P("x")),
    "(P('x', None), P('x'))": (P("x", None), P("x")),
    "(P(), P('z'))": (P(), P("z")),
}


@functools.cache
def _taken(row):
    mapped = _device_map(lambda params, x: x, TREES[row], P("x"), {"x": 4})
    try:
        jax.eval_shape(mapped, TREE, _float32(8, 8))
    except Exception as error:  # which class is raised differs between versions of JAX
        return _what_is_wrong(str(error))
    return "runs"


def _what_is_wrong(message):
    if "pytree" in message or "tuple" in message and "list" in message:
        return "wrong tree"
    return "too long" if "rank" in message or "too long" in message else "no such axis"


pytree_specs = Exercise("pytree_specs", points=3, reference=_taken, form="table")


@pytree_specs.cases
def _(draw):
    for row in TREES:
        yield Case({"row": row}, {"x": 4}, key=row)


@pytree_specs.mistake
def took_a_list_for_a_tuple(row):
    """The arguments of a call are a tuple, and to JAX a list is another tree than a tuple, even with the same
    things in it."""
    return "runs" if row.startswith("[") else None


@pytree_specs.mistake
def thought_the_rest_is_replicated(row):
    """What in_specs do not mention is not replicated by itself. A tuple needs an entry for each argument, a dict one
    for each key."""
    return "runs" if row in ("(P(),)", "({'w': P('x')}, P('x'))") else None


@pytree_specs.mistake
def wanted_a_spec_for_every_leaf(row):
    """One spec may stand for a whole tree of arrays: in_specs need only be a *prefix* of the arguments' tree. P(…) for
    a dict goes for all that is in it."""
    return "wrong tree" if row in ("(P(), P('x'))", "P('x')") else None


@pytree_specs.mistake
def counted_only_the_first_array(row):
    """The spec goes for every array in the dict. Do all of them have two dimensions?"""
    return "runs" if row == "(P('x', None), P('x'))" else None


@pytree_specs.mistake
def overlooked_the_name(row):
    """A spec names axes of *this* mesh, which has one axis, x."""
    return "runs" if row == "(P(), P('z'))" else None


@pytree_specs.mistake
def thought_the_tree_is_at_fault(row):
    """The tree fits: there is a spec for every argument. Hold each spec against its arrays and the mesh."""
    return "wrong tree" if row in ("(P('x', None), P('x'))", "(P(), P('z'))") else None


@pytree_specs.mistake
def thought_an_array_too_short(row):
    """A spec is too long when it has more entries than its array has dimensions. `b` has one dimension; how many
    entries does it get here?"""
    return "too long" if row in ("(P(), P('x'))", "({'w': P('x'), 'b': P()}, P('x'))", "P('x')") else None


def _layers(params, x):
    for layer in params:
        x = np.maximum(x @ layer["w"] + layer["b"], 0)
    return x


def _many_layers(params, x, mesh):
    return jax.device_put(_layers(params, np.asarray(x)), NamedSharding(mesh, P("x")))


many_layers = Exercise("many_layers", points=3, reference=_many_layers, form="function")


@many_layers.cases
def _(draw):
    for depth, sizes in ((1, {"x": 8}), (3, {"x": 4})):
        mesh = OnMesh(sizes)
        widths = [int(n) for n in draw.rng.integers(2, 6, depth + 1)]
        params = [{"w": draw.values(m, n), "b": draw.values(n)} for m, n in itertools.pairwise(widths)]
        yield Case({"params": params, "x": OnDevices(draw.values(16, widths[0]), mesh, P("x")), "mesh": mesh})


def _apply(params, block):
    for layer in params:
        block = jax.nn.relu(block @ layer["w"] + layer["b"])
    return block


def _by_rows(params, x, mesh, ins, out=P("x")):
    return jax.jit(jax.shard_map(_apply, mesh=mesh, in_specs=ins, out_specs=out))(params, x)


@many_layers.mistake
def another_kind_of_tree(params, x, mesh):
    """A list where a tuple should stand, or a dict where a list should: to JAX these are different trees, even with
    the same things in them. Two arguments come as a tuple, and params are a list."""
    return _by_rows(params, x, mesh, [P(), P("x")])


@many_layers.mistake
def specs_for_one_argument(params, x, mesh):
    """in_specs have one entry, and the function takes two arguments. Each needs a spec of its own."""
    return _by_rows(params, x, mesh, (P("x"),))


@many_layers.mistake
def specs_of_just_one_layer(params, x, mesh):
    """in_specs describe a list of one layer. There may be three, or thirty: which spec stands for a list of any
    length?"""
    return _by_rows(params, x, mesh, ([{"w": P(), "b": P()}], P("x")))


@many_layers.mistake
def rows_on_everyone(params, x, mesh):
    """Every device computed all rows. x lies cut by rows; leave it so, and let every device do its own."""
    return _by_rows(params, x, mesh, (P(), P()), P())


# Manual along some axes only.

DATA_MODEL = {"data": 4, "model": 2}
PARTIAL = {
    "in_specs=P('data', 'model'), no axis_names": (P("data", "model"), {}),
    "in_specs=P('data'), axis_names={'data'}": (P("data"), {"axis_names": {"data"}}),
    "in_specs=P(None, 'model'), axis_names={'model'}": (P(None, "model"), {"axis_names": {"model"}}),
    "in_specs=P(), axis_names={'data'}": (P(), {"axis_names": {"data"}}),
    "in_specs=P('data', 'model'), axis_names={'data'}": (P("data", "model"), {"axis_names": {"data"}}),
}


@functools.cache
def _partial_shape(row):
    spec, options = PARTIAL[row]
    try:
        return _seen((16, 8), spec, sizes=DATA_MODEL, **options)
    except ValueError:
        return ERROR


partial_view = Exercise("partial_view", points=3, reference=_partial_shape, form="table")


@partial_view.cases
def _(draw):
    for row in PARTIAL:
        yield Case({"row": row}, DATA_MODEL, key=row)


@partial_view.mistake
def cut_by_the_compilers_axis_too(row):
    """The axes that axis_names leave out are the compiler's. The array may well be cut along them, but your function
    does not see it: along these it has the global view."""
    return (4, 4)


@partial_view.mistake
def saw_everything(row):
    """Along the axes in axis_names your function sees a block, as it does in any shard_map. How long is it?"""
    return (16, 8) if row not in ("in_specs=P(), axis_names={'data'}",) else None


@partial_view.mistake
def saw_whole_columns(row):
    """in_specs name model, which is left to the compiler here. in_specs may speak of the manual axes only."""
    return (4, 8) if row.startswith("in_specs=P('data', 'model'), axis") else None


@partial_view.mistake
def expected_a_refusal(row):
    """Nothing here is refused: in_specs name only axes that are manual. Leaving one out means copies along it."""
    return ERROR


# One layer, and who may write its all-reduce: the number of them in the compiled program.

WAYS = {
    "Auto mesh: sigmoid(x @ w + b)": (False, "plain"),
    "Auto mesh: the same, constrained to P('y', None)": (False, "constraint"),
    "Auto mesh: shard_map, with one psum": (False, "manual"),
    "Explicit mesh: sigmoid(x @ w + b)": (True, "plain"),
    "Explicit mesh: jnp.dot(x, w, out_sharding=…)": (True, "out_sharding"),
    "Explicit mesh: constrained to P('y', None)": (True, "constraint"),
}


def _layer_in(way, mesh):
    where = NamedSharding(mesh, P("y", None))
    return {
        "plain": lambda x, w, b: jax.nn.sigmoid(x @ w + b),
        "constraint": lambda x, w, b: jax.nn.sigmoid(lax.with_sharding_constraint(x @ w, where) + b),
        "out_sharding": lambda x, w, b: jax.nn.sigmoid(jnp.dot(x, w, out_sharding=where) + b),
        "manual": jax.shard_map(lambda x, w, b: jax.nn.sigmoid(lax.psum(x @ w, "x") + b), mesh=mesh,
                                in_specs=(P("y", "x"), P("x", None), P()), out_specs=P("y", None)),
    }[way]


@functools.cache
def _all_reduces(row):
    explicit, way = WAYS[row]
    mesh = make_mesh(MESH, explicit=explicit)
    shapes = (((8, 16), P("y", "x")), ((16, 12), P("x", None)), ((12,), P()))
    given = [aval(shape, jnp.float32, spec, mesh) for shape, spec in shapes]
    try:
        compiled = jax.jit(_layer_in(way, mesh)).lower(*given).compile()
    except Exception:  # a ShardingTypeError or a ValueError, by version
        return ERROR
    return sum(c.kind == "all_reduce" for c in compiled_structure(compiled, MESH).collectives)


four_ways = Exercise("four_ways", points=3, reference=_all_reduces, form="table")


@four_ways.cases
def _(draw):
    for row in WAYS:
        yield Case({"row": row}, MESH, key=row)


@four_ways.mistake
def thought_the_product_needs_nothing(row):
    """The contracted dimension is cut along x, so every device has only one part of the sum. Whoever writes the
    program, the parts have to be added."""
    return 0


@four_ways.mistake
def thought_explicit_decides_alone(row):
    """With Explicit axes the layout of a result is part of its type, and JAX does not guess it where several would do.
    Has this program said how the product should lie, in a way that an Explicit mesh takes?"""
    return 1 if row.startswith("Explicit") else None


@four_ways.mistake
def thought_it_is_refused(row):
    """This one runs: it says as much about layouts as its mesh needs to know."""
    return ERROR


@four_ways.mistake
def counted_one_for_the_bias(row):
    """Adding the bias and the sigmoid need nothing of other devices: after the sum every device goes on by itself."""
    return 2
