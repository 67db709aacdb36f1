"""§ 4–8: programs that are left to the compiler, and functions that look at what it made of them.

Axes are Auto throughout: nobody writes a collective here. What a program may send is worked out from shapes.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.described import FROM_ANYWHERE, OnDevices, OnMesh
from grader.exercises import Array, ByCompiler, BytesSent, Case, Flops, FunctionExercise, Move, Moves, ProgramExercise
from grader.lessons.shared import FLOAT, bytes_sent
from grader.programs.collectives import ring_bytes


def _constrained(value, mesh, *spec):
    return lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))


# v + 1, and then another layout: P("x", "y") → P("y", "x"), and → P().


def _relaid(draw, moves, out, most):
    """Another layout for v + 1. `most` are the bytes that may be sent, given the block's and the mesh's
    sizes."""
    mesh, (rows, columns) = draw.mesh("x", "y"), draw.lengths(2, divisible_by=8)
    block = rows // mesh["x"], columns // mesh["y"]
    return Case(
        {"v": draw.array(rows, columns, spec=P("x", "y"))},
        mesh,
        out,
        limits=[ByCompiler(), BytesSent(most(FLOAT * math.prod(block), mesh)), Moves(moves(block, mesh))],
    )


constrain = ProgramExercise("constrain", points=4, reference=lambda v: v + 1, by_compiler=True)


@constrain.cases
def _(draw):
    def moves(block, mesh):
        """An all_to_all, a permute of blocks, or one after the other, along either axis or both."""
        return tuple(
            Move(kind, axes, block)
            for kind in ("all_to_all", "collective_permute")
            for axes in (("x",), ("y",), ("x", "y"))
        )

    # An all_to_all sends less than a block, a permute a block.
    return _relaid(draw, moves, P("y", "x"), lambda block, mesh: 2 * block)


@constrain.mistake
def constrained_a_bare_spec(v, *, mesh):
    """P("y", "x") names two axes, but of which mesh? Inside `jit` there is none unless somebody sets one. What
    binds a spec to a mesh?"""
    return lax.with_sharding_constraint(v + 1, P("y", "x"))


@constrain.mistake
def constrained_over_an_explicit_mesh(v, *, mesh):
    """The constraint is on a mesh with Explicit axes, and there layouts are part of the types: the compiler has
    no say. In JAX 0.9 and later `jax.make_mesh` makes such a mesh unless told otherwise. You are given a
    `mesh`: take that one."""
    kinds = (AxisType.Explicit,) * 2
    other = Mesh(mesh.devices, mesh.axis_names, axis_types=kinds)
    return lax.with_sharding_constraint(v + 1, NamedSharding(other, P("y", "x")))


@constrain.mistake
def put_on_reordered_devices(v, *, mesh):
    """One program runs on one list of devices, in one order: no constraint, and no `device_put` inside `jit`, leads out
    of it. Did you make a mesh of the same devices in another order? Use the mesh you are given."""
    other = Mesh(mesh.devices.reshape(-1)[::-1].reshape(mesh.devices.shape), mesh.axis_names)
    return jax.device_put(v + 1, NamedSharding(other, P("y", "x")))


@constrain.mistake
def constrained_what_is_not_returned(v, *, mesh):
    """The result is laid out as v was. A constraint changes no array in place: it *returns* the array that is
    constrained. Was that one returned? Or was it a `device_put`? Inside `jit`, to the same devices, that leaves
    the layout to the compiler."""
    result = v + 1
    _constrained(v, mesh, "y", "x")
    return result


@constrain.mistake
def gathered_on_the_way(v, *, mesh):
    """The layout is right, but the array was made whole on every device before it was cut anew. Ask for the
    layout you want, and leave the way to the compiler."""
    return _constrained(_constrained(v + 1, mesh), mesh, "y", "x")


@constrain.mistake
def cut_rows_only(v, *, mesh):
    """The rows are cut over y, as they should be, but the columns are not cut, and each device keeps more than its
    share. Which entry of a spec stands for the columns?"""
    return _constrained(v + 1, mesh, "y")


@constrain.mistake
def cut_columns_only(v, *, mesh):
    """The columns are cut over x, as they should be, but the rows are not cut. Which entry of a spec stands for the
    rows?"""
    return _constrained(v + 1, mesh, None, "x")


constrain_replicated = ProgramExercise("constrain_replicated", points=3, reference=lambda v: v + 1, by_compiler=True)


@constrain_replicated.cases
def _(draw):
    def moves(block, mesh):
        """All at once, or along one axis and then the blocks so gathered along the other."""
        rows, columns = block
        return (
            Move("all_gather", ("x", "y"), block),
            Move("all_gather", ("x",), block),
            Move("all_gather", ("y",), block),
            Move("all_gather", ("y",), (rows * mesh["x"], columns)),
            Move("all_gather", ("x",), (rows, columns * mesh["y"])),
        )

    return _relaid(draw, moves, P(), lambda block, mesh: round(ring_bytes("all_gather", block, 8)))


@constrain_replicated.mistake
def left_as_it_lies(v, *, mesh):
    """The result is laid out as v is: nothing made it whole. A constraint is on the array that it *returns*; a
    `device_put` inside `jit` leaves the layout to the compiler; "whole" does not mean on one device. Which spec says
    "whole on every device", which function says it inside `jit`, and is what it returns used?"""
    return v + 1


@constrain_replicated.mistake
def gathered_along_x_only(v, *, mesh):
    """The rows are whole now, the columns are still cut over y. In the spec you want no axis stands at all."""
    return _constrained(v + 1, mesh, None, "y")


@constrain_replicated.mistake
def gathered_along_y_only(v, *, mesh):
    """The columns are whole now, the rows are still cut over x. In the spec you want no axis stands at all."""
    return _constrained(v + 1, mesh, "x")


@constrain_replicated.mistake
def constrained_a_bare_empty_spec(v, *, mesh):
    """P() names no axis and still needs a mesh: which devices are "every device"?"""
    return lax.with_sharding_constraint(v + 1, P())


# Two matmuls, x cut by rows, the weights whole: one constraint on what is between divides the work.

steer = ProgramExercise("steer", points=5, by_compiler=True, reference=lambda x, w1, w2: np.maximum(x @ w1, 0) @ w2)


@steer.cases
def _(draw):
    mesh, (rows, inner, out) = draw.mesh("data", "model"), draw.lengths(3, divisible_by=8)
    hidden = 4 * out  # were it narrow, a compiler might gather it and let everybody compute the second product
    arrays = {
        "x": draw.array(rows, inner, spec=P("data")),
        "w1": draw.array(inner, hidden, spec=P()),
        "w2": draw.array(hidden, out, spec=P()),
    }
    share, parts = rows // mesh["data"], mesh["model"]
    yield Case(
        arrays,
        mesh,
        P("data"),
        limits=[
            BytesSent(bytes_sent("all_reduce", share * out, parts)),
            Flops(2 * share * hidden * (inner + out) // parts),
            Moves((Move("all_reduce", ("model",), (share, out)),)),
        ],
    )


def _steered(x, w1, w2, mesh, *hidden):
    return jax.nn.relu(_constrained(x @ w1, mesh, *hidden)) @ w2


@steer.mistake
def left_model_without_work(x, w1, w2, *, mesh):
    """Nothing is sent, and nothing is gained: devices along `model` hold the same rows of x and the same weights, so
    they all compute the same. Is anything constrained to a layout that it would not have by itself, and is what the
    constraint *returns* used? Which dimension of which array could be cut over `model`?"""
    return jax.nn.relu(x @ w1) @ w2


@steer.mistake
def gathered_the_hidden_layer(x, w1, w2, *, mesh):
    """The hidden layer is cut over `model`, and then made whole along it, only to be cut again for the second product.
    (P("data") says: whole along `model`.) Which layout does its *user* want?"""
    w1, w2 = _constrained(w1, mesh, None, "model"), _constrained(w2, mesh, "model")
    return _steered(x, w1, w2, mesh, "data", None)


@steer.mistake
def hidden_cut_by_columns_only(x, w1, w2, *, mesh):
    """The hidden layer is cut over `model`, but its rows are made whole: the batch that was divided over `data` is
    brought together. None in a spec does not mean "as it is", it means "whole"."""
    return _constrained(_steered(x, w1, w2, mesh, None, "model"), mesh, "data")


@steer.mistake
def hidden_made_whole(x, w1, w2, *, mesh):
    """The hidden layer is made whole on every device: each computes all of it, or is sent what it lacks. P() is a wish
    like any other, and an expensive one: which layout do you ask for?"""
    return _constrained(_steered(x, w1, w2, mesh), mesh, "data")


@steer.mistake
def cut_the_wrong_way_round(x, w1, w2, *, mesh):
    """The rows of the hidden layer are cut over `model`, its columns over `data`. The rows of x are cut over `data`:
    they have to move first. Which entry of the spec stands for the rows?"""
    return _constrained(_steered(x, w1, w2, mesh, "model", "data"), mesh, "data")


@steer.mistake
def cut_the_inner_dimension(x, w1, w2, *, mesh):
    """The first product was divided along the dimension that it sums over: then all of the hidden layer has to be added
    up over `model`, and that is the widest array there is. Which dimension is summed over in the *second* product?"""
    x, w1 = _constrained(x, mesh, "data", "model"), _constrained(w1, mesh, "model")
    return jax.nn.relu(x @ w1) @ w2


@steer.mistake
def cut_both_weights_by_columns(x, w1, w2, *, mesh):
    """The hidden layer is cut by columns, and gathered for the second product: where w2 is cut by columns, too, that
    needs all of them. Which dimension of w2 belongs to the columns of the hidden layer?"""
    w1, w2 = _constrained(w1, mesh, None, "model"), _constrained(w2, mesh, None, "model")
    return _constrained(jax.nn.relu(x @ w1) @ w2, mesh, "data")


@steer.mistake
def asked_for_too_little(x, w1, w2, *, mesh):
    """The work is divided, but the result came out cut over `model` too. It was to be laid out as P("data"): every
    device along `model` holds its rows whole."""
    return _constrained(_steered(x, w1, w2, mesh, "data", "model"), mesh, "data", "model")


# sigmoid(x @ weights + bias), everything whole: the contraction divided by constraints.

divide_layer = ProgramExercise(
    "divide_layer",
    points=4,
    by_compiler=True,
    reference=lambda x, weights, bias: jax.nn.sigmoid(x @ weights + bias),
)


@divide_layer.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    (inner,), out = draw.lengths(1, divisible_by=32), int(draw.rng.choice([3, 5, 7]))
    # Small weights: sigmoid tells all its values apart.
    x, weights, bias = (Array(draw.values(*shape) / 16, P()) for shape in ((inner,), (inner, out), (out,)))
    yield Case(
        {"x": x, "weights": weights, "bias": bias},
        mesh,
        P(),
        limits=[
            BytesSent(bytes_sent("all_reduce", out, mesh["x"])),
            Flops(2 * inner * out // mesh["x"]),
            Moves((Move("all_reduce", ("x",), (out,)),)),
        ],
    )


@divide_layer.mistake
def divided_nothing(x, weights, bias, *, mesh):
    """All arguments are whole on every device, so every device computes the whole layer, and a constraint on
    the result does not change that: P() is how it is laid out anyway. Along which dimension of x and of the weights
    does the sum run? *They* can be cut there. (If you did: is what the constraints return what you multiply?)"""
    return jax.nn.sigmoid(x @ weights + bias)


@divide_layer.mistake
def constrained_x_only(x, weights, bias, *, mesh):
    """x was cut, and gathered again for the product. Where only one operand is cut, the compiler has a choice: to cut
    the other one, too, or to gather. Leave it no choice: how should *both* operands be laid out?"""
    return jax.nn.sigmoid(_constrained(x, mesh, "x") @ weights + bias)


@divide_layer.mistake
def cut_over_both_axes(x, weights, bias, *, mesh):
    """The contraction was divided over x and y together, and the parts are added over both. That is a good
    idea, and not what was asked: cut over x alone."""
    return jax.nn.sigmoid(_constrained(x, mesh, ("x", "y")) @ _constrained(weights, mesh, ("x", "y")) + bias)


@divide_layer.mistake
def cut_over_the_other_axis(x, weights, bias, *, mesh):
    """The contraction was divided over y. The exercise asks for x: which entry of the spec says so?"""
    return jax.nn.sigmoid(_constrained(x, mesh, "y") @ _constrained(weights, mesh, "y") + bias)


@divide_layer.mistake
def cut_and_made_whole_again(x, weights, bias, *, mesh):
    """The operands were cut, and then made whole again before the product: all of it was sent for nothing, and
    every device computes everything. A constraint should be the *last* word on an array before it is used."""
    x, weights = _constrained(x, mesh, "x"), _constrained(weights, mesh, "x")
    return jax.nn.sigmoid(_constrained(x, mesh) @ _constrained(weights, mesh) + bias)


# Parameters that are made where they belong.


def _made(rows, columns, sharding):
    """The weights, made by a program with this result layout, and the bytes of them that one device then
    holds."""

    def make():
        return jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)

    compiled = jax.jit(make, out_shardings=sharding).lower().compile()
    return compiled(), compiled.memory_analysis().output_size_in_bytes


def _cut_by_columns(rows, columns, axis, mesh):
    return _made(rows, columns, NamedSharding(mesh, P(None, axis)))


AS_WIRED = (0, 1, 3, 2, 6, 7, 5, 4)  # devices in another order than that of their numbers
init_sharded = FunctionExercise("init_sharded", points=4, reference=_cut_by_columns, barred=FROM_ANYWHERE)


@init_sharded.cases
def _(draw):
    meshes = OnMesh({"x": 4, "y": 2}), OnMesh({"x": 4, "y": 2}), OnMesh({"data": 2, "model": 4}, order=AS_WIRED)
    for mesh, axis in zip(meshes, ("x", "y", "model"), strict=True):
        rows, columns = (int(8 * n) for n in draw.rng.choice(np.arange(3, 9), 2, replace=False))
        yield Case({"rows": rows, "columns": columns, "axis": axis, "mesh": mesh})


@init_sharded.mistake
def made_whole_then_cut(rows, columns, axis, mesh):
    """The array is laid out as it should be, but the bytes are those of all of it. Either one device made it whole
    before it was cut, or the number is that of the global shape, as `nbytes` is. Which program makes it, and what does
    *that* program's memory_analysis say?"""
    whole, size = _made(rows, columns, None)
    return jax.device_put(whole, NamedSharding(mesh, P(None, axis))), size


@init_sharded.mistake
def made_whole_and_sent(rows, columns, axis, mesh):
    """It was made in another layout first, such as whole on one device or on the host, and then sent. What is made
    whole has to fit into one memory. Let the program that makes it lay it out, too: which argument of `jax.jit` says
    where a result belongs?"""
    _, size = _cut_by_columns(rows, columns, axis, mesh)
    return jax.device_put(_made(rows, columns, None)[0], NamedSharding(mesh, P(None, axis))), size


@init_sharded.mistake
def left_where_it_was_made(rows, columns, axis, mesh):
    """The weights are on one device, or on the host. What can you tell `jax.jit` about where a result belongs?
    (There is no argument here whose layout the compiler could follow.)"""
    return _made(rows, columns, None)


@init_sharded.mistake
def made_whole_everywhere(rows, columns, axis, mesh):
    """The result is whole on every device, as with P(): each makes and keeps all of it. Name the axis in the entry of
    the dimension that is to be cut."""
    return _made(rows, columns, NamedSharding(mesh, P()))


@init_sharded.mistake
def cut_by_rows(rows, columns, axis, mesh):
    """The rows were cut. A spec has one entry per dimension, in order: which entry stands for the columns?"""
    return _made(rows, columns, NamedSharding(mesh, P(axis)))


@init_sharded.mistake
def cut_over_every_axis(rows, columns, axis, mesh):
    """The columns were cut over all axes of the mesh. Only one was asked for; along the others the devices hold
    copies."""
    return _made(rows, columns, NamedSharding(mesh, P(None, tuple(mesh.axis_names))))


@init_sharded.mistake
def counted_entries_for_bytes(rows, columns, axis, mesh):
    """The array is right. The number counts entries; a float32 takes four bytes. Let the compiled program tell
    you: `memory_analysis().output_size_in_bytes`."""
    made, size = _cut_by_columns(rows, columns, axis, mesh)
    return made, size // FLOAT


# Are two arrays the same: values, layout, and every copy?


def _copies_agree(array):
    whole = np.asarray(array)
    return all(np.array_equal(shard.data, whole[shard.index]) for shard in array.addressable_shards)


def _laid_alike(a, b):
    return a.shape == b.shape and a.sharding.is_equivalent_to(b.sharding, a.ndim)


def _same(a, b):
    return bool(_laid_alike(a, b) and np.array_equal(a, b) and _copies_agree(a) and _copies_agree(b))


same_everywhere = FunctionExercise("same_everywhere", points=4, reference=_same)
GRID, LINE = OnMesh({"x": 4, "y": 2}), OnMesh({"d": 8})


@same_everywhere.cases
def _(draw):
    value = draw.values(8, 16)
    other = value.copy()
    other[7, 15] += 1  # held by the last device alone
    nearly = np.nextafter(value, np.float32(np.inf))
    half = value[::-1, 8:]  # the second half of the columns, its rows turned round on one of the devices that hold it

    def lying(spec, mesh=GRID, given=value, **instead):
        return OnDevices(given, mesh, spec, **instead)

    odd = {"instead": {5: half}}
    reordered = OnMesh({"x": 4, "y": 2}, order=(0, 1, 4, 5, 2, 3, 6, 7))
    for a, b in (
        (lying(P("x", "y")), lying(P("x", "y"))),
        (lying(P("x")), lying(P("x", None))),
        (lying(P(("x", "y"))), lying(P("d"), LINE)),
        (lying(P("x", "y")), lying(P("x", "y"), given=other)),
        (lying(P("x", "y")), lying(P("x", "y"), given=nearly)),
        (lying(P(None, ("x", "y"))), lying(P(None, ("y", "x")))),
        (lying(P("x", "y")), lying(P("x", "y"), reordered)),
        (lying(P(None, "y")), lying(P(None, "y"), **odd)),
        (lying(P(None, "y"), **odd), lying(P(None, "y"))),
        (lying(P(None, "y"), **odd), lying(P(None, "y"), **odd)),
        (lying(P()), lying(P(), instead={7: other})),
        (lying(P()), lying(P(), instead={5: nearly})),
        (lying(P()), lying(P())),
        (lying(P("x")), lying(P("x"), given=value[:, :8])),
    ):
        yield Case({"a": a, "b": b})


@same_everywhere.mistake
def compared_global_values(a, b):
    """Did you compare the values only? `np.asarray` reads one copy of each block: how the arrays are laid out does not
    enter, and a copy that has gone wrong on another device is never looked at."""
    return bool(np.array_equal(a, b))


@same_everywhere.mistake
def compared_shardings_by_equality(a, b):
    """Arrays that are laid out alike were told apart. P("x") and P("x", None) are laid out alike and are not equal
    (`==`). Which method of a sharding asks whether two of them put the same parts on the same devices?"""
    return bool(
        a.shape == b.shape
        and np.array_equal(a, b)
        and a.sharding == b.sharding
        and _copies_agree(a)
        and _copies_agree(b)
    )


@same_everywhere.mistake
def trusted_the_copies(a, b):
    """Values and layouts agree, but a device holds a copy that differs from its brothers. `np.asarray` reads
    one copy of each block; all of them are in `addressable_shards`."""
    return bool(_laid_alike(a, b) and np.array_equal(a, b))


@same_everywhere.mistake
def compared_device_by_device(a, b):
    """Device by device a and b hold the same, and they were called the same. But here both have the same copy gone
    wrong, and neither is a sound array: do the copies *within* one array agree?"""
    if not _laid_alike(a, b):
        return False
    pairs = zip(a.addressable_shards, b.addressable_shards, strict=True)
    return bool(all(np.array_equal(one.data, two.data) for one, two in pairs))


@same_everywhere.mistake
def forgot_the_layout(a, b):
    """These two have the same values and sound copies, but they are not laid out alike: some device holds another part
    of the array. What compares how they are laid out?"""
    return bool(np.array_equal(a, b) and _copies_agree(a) and _copies_agree(b))


@same_everywhere.mistake
def looked_at_a_only(a, b):
    """A copy that has gone wrong within a was noticed, one within b was not."""
    return bool(_laid_alike(a, b) and np.array_equal(a, b) and _copies_agree(a))


# Reading a compiled program: how many collectives of each kind stand in the text?

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
ANY = "|".join(KINDS)


def _counted(pattern, text):
    return dict(Counter(re.findall(pattern, text)))


def _without_quoted(text):
    return re.sub(r'"[^"]*"', '""', text)


def _count(text):
    """An instruction is a type, a blank, the operation, perhaps `-start`, and a bracket; quoted text is no
    program."""
    return _counted(rf" ({ANY})(?:-start)?\(", _without_quoted(text))


def _same_counts(one, other, text):
    return all(one.get(kind, 0) == other.get(kind, 0) for kind in {*KINDS, *one, *other})


count_collectives = FunctionExercise("count_collectives", points=5, reference=_count, same=_same_counts)

HEAD = "HloModule jit_step, is_scheduled=true, entry_computation_layout={(f32[4,8]{1,0})->f32[4,8]{1,0}}\n"
TRICKY = (
    # Names of operations stand in metadata, and as operands of others.
    """ENTRY %main.9 (p.1: f32[4,8]) -> f32[4,8] {
  %p.1 = f32[4,8]{1,0} parameter(0), metadata={op_name="v"}
  %all-reduce.3 = f32[4,8]{1,0} all-reduce(%p.1), channel_id=1, replica_groups={{0,1}}, to_apply=%add.1, \
metadata={op_name="jit(step)/all-reduce(grads)" source_file="train.py" source_line=7}
  %add.4 = f32[4,8]{1,0} add(%all-reduce.3, %all-reduce.3), metadata={op_name="jit(step)/after all-reduce(grads)"}
  ROOT %all-gather.5 = f32[8,8]{1,0} all-gather(%add.4), channel_id=2, replica_groups={{0,1}}, dimensions={0}
}
""",
    # On a TPU or GPU a collective is started, and its end awaited: one collective.
    """ENTRY %main.12 (p.1: f32[4,8]) -> f32[8,8] {
  %p.1 = f32[4,8]{1,0:T(8,128)} parameter(0)
  %all-gather-start.1 = (f32[4,8]{1,0:T(8,128)}, f32[8,8]{1,0:T(8,128)}) all-gather-start(%p.1), dimensions={0}
  %multiply.2 = f32[4,8]{1,0:T(8,128)} multiply(%p.1, %p.1)
  %all-gather-done.3 = f32[8,8]{1,0:T(8,128)} all-gather-done(%all-gather-start.1)
  %all-reduce-start.6 = f32[4,8]{1,0:T(8,128)} all-reduce-start(%multiply.2), replica_groups={{0,1}}, to_apply=%add.1
  %all-reduce-done.7 = f32[4,8]{1,0:T(8,128)} all-reduce-done(%all-reduce-start.6)
  %collective-permute-start.4 = (f32[4,8], f32[4,8], u32[], u32[]) collective-permute-start(%all-reduce-done.7), \
source_target_pairs={{0,1},{1,0}}
  ROOT %collective-permute-done.5 = f32[4,8]{1,0} collective-permute-done(%collective-permute-start.4)
}
""",
    # Several all-reduces made into one: its type is a tuple. One of a single number, whose type has no layout and, as
    # in the texts of some versions, stands before the operand, too. And one in a loop, which stands in the text once.
    """%body.3 (c.1: (s32[], f32[16])) -> (s32[], f32[16]) {
  %c.1 = (s32[], f32[16]{0}) parameter(0)
  %v.2 = f32[16]{0} get-tuple-element(%c.1), index=1
  %ppermute.7 = f32[16]{0} collective-permute(%v.2), source_target_pairs={{0,1},{1,0}}
  ROOT %tuple.8 = (s32[], f32[16]{0}) tuple(%i.3, %ppermute.7)
}

ENTRY %main.20 (a.1: f32[4], b.1: f32[8,16]) -> (f32[4], f32[8,16]) {
  %all-reduce.1 = (f32[4]{0}, f32[8,16]{1,0}, /*index=2*/f32[2]{0}) all-reduce(%a.1, %b.1, %d.1), to_apply=%add.1
  %while.6 = (s32[], f32[16]{0}) while(%tuple.2), condition=%cond.2, body=%body.3
  %reduce-scatter.8 = f32[4,16]{1,0} reduce-scatter(%b.2), replica_groups={{0,1}}, dimensions={0}, to_apply=%add.1
  %loss.10 = f32[] all-reduce(f32[] %d.1), channel_id=4, replica_groups={{0,1}}, to_apply=%add.1
  ROOT %exchanged.9 = f32[8,16]{1,0} all-to-all(%b.2), channel_id=3, dimensions={1}
}
""",
    # Nothing is sent here, though a good deal is said.
    """ENTRY %main.4 (p.1: f32[4,8]) -> f32[4,8] {
  %p.1 = f32[4,8]{1,0} parameter(0), metadata={op_name="all-gather(v)"}
  ROOT %sine.2 = f32[4,8]{1,0} sine(%p.1), metadata={op_name="jit(no all-to-all( here)" source_file="all-reduce(.py"}
}
""",
)


@functools.cache
def _compiled_texts():
    """What jit makes of three small functions here and now."""
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    laid = jax.device_put(np.arange(256, dtype=np.float32).reshape(16, 16), NamedSharding(mesh, P("x", "y")))
    functions = (lambda v: v @ v, lambda v: jnp.sin(v) * 2, lambda v: (v.sum(0), v.max(1), jnp.roll(v, 1, axis=0)))
    return tuple(jax.jit(f).lower(laid).compile().as_text() for f in functions)


@count_collectives.cases
def _(draw):
    for text in (*TRICKY, *_compiled_texts()):
        yield Case({"text": HEAD + text if text in TRICKY else text})


@count_collectives.mistake
def counted_every_mention(text):
    """Every mention was counted: names such as %all-reduce.3, operands, metadata. An instruction is `name =
    type operation(operands)`. What stands right before and right behind the operation, and nowhere else?"""
    return _counted(f"({ANY})", text)


@count_collectives.mistake
def counted_names(text):
    """Here those are counted whose *names* are kinds of collectives. A name is free: `%ppermute.7` may be a
    collective-permute. What stands behind the type says what an instruction does."""
    return _counted(rf"(?m)^\s*(?:ROOT )?%?({ANY})(?:-start)?(?:\.\d+)* = ", _without_quoted(text))


@count_collectives.mistake
def believed_the_metadata(text):
    """Quoted text was counted too. `op_name` and `source_file` say where an operation stems from, and may say
    anything: they are no part of the program."""
    return _counted(rf"\b({ANY})(?:-start)?\(", text)


@count_collectives.mistake
def believed_the_metadata_behind_a_blank(text):
    """Quoted text was counted too, where an operation stands in it behind a blank. `op_name` and `source_file` say
    where an operation stems from, and may say anything: they are no part of the program."""
    return _counted(rf" ({ANY})(?:-start)?\(", text)


@count_collectives.mistake
def counted_start_and_done(text):
    """A collective that runs in the background stands in the text twice, as `…-start` and as `…-done`. It is
    sent once."""
    return _counted(rf" ({ANY})(?:-start|-done)?\(", _without_quoted(text))


@count_collectives.mistake
def missed_those_that_are_started(text):
    """Some compilers split a collective into `…-start` and `…-done`. Here such a pair is missing from the
    count: it is one collective."""
    return _counted(rf" ({ANY})\(", _without_quoted(text))


@count_collectives.mistake
def counted_groups(text):
    """Here an instruction counts once for each group of devices in its `replica_groups`. All groups run the one
    instruction, each among themselves."""
    counts = Counter()
    for line in _without_quoted(text).splitlines():
        groups = re.search(r"replica_groups=(?:\[(\d+),|\{(\{[\d,{}]*\})\})", line)
        several = 1 if groups is None else int(groups[1]) if groups[1] else groups[2].count("{")
        counts.update(dict.fromkeys(re.findall(rf" ({ANY})(?:-start)?\(", line), several))
    return dict(counts)


@count_collectives.mistake
def missed_tuples(text):
    """The type of a collective may have blanks in it, as `(f32[4]{0}, f32[8,16]{1,0})`. Such a one was missed here:
    what stands between the `=` and the operation need not be one word."""
    return _counted(rf"= \S+ ({ANY})(?:-start)?\(", _without_quoted(text))


@count_collectives.mistake
def counted_arrays(text):
    """Where a compiler merges several all-reduces, one instruction has several operands. Here each of these arrays
    counts. The question was how many instructions there are: each costs its own start-up time."""
    counts = Counter()
    for kind, operands in re.findall(rf" ({ANY})(?:-start)?\(([^)]*)\)", _without_quoted(text)):
        counts[kind] += operands.count(",") + 1
    return dict(counts)
