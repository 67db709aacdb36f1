"""§ 3–5, 7, 8, 10, 11: programs that the compiler partitions, and functions that look at what it made of them.

All axes are Auto, and no program here writes a collective. What a program may send is computed from shapes.
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

from grader.arrays.described import OnDevices, OnMesh
from grader.exercises import (
    Array,
    ByCompiler,
    BytesSent,
    Case,
    Flops,
    FunctionExercise,
    Move,
    Moves,
    PeakBytes,
    ProgramExercise,
)
from grader.lessons.shared import FLOAT, bytes_sent
from grader.programs.collectives import ring_bytes


def _constrained(value, mesh, *spec):
    return lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))


# v + 1 with another sharding: P("x", "y") → P("y", "x"), and → P().


def _relaid(draw, moves, out, most):
    """Another sharding for v + 1. `most` are the bytes that may be sent, given the sizes of the block and the mesh."""
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
    """P("y", "x") names two axes, but inside `jit` no mesh is set unless you set one. What binds a spec to a mesh?"""
    return lax.with_sharding_constraint(v + 1, P("y", "x"))


@constrain.mistake
def constrained_over_an_explicit_mesh(v, *, mesh):
    """The constraint was on a mesh with Explicit axes. Constraints are for Auto axes, because on Explicit axes
    shardings are part of the types. In JAX 0.9 and later, `jax.make_mesh` creates Explicit axes unless you pass
    `axis_types`. Did you use the `mesh` that you were given?"""
    kinds = (AxisType.Explicit,) * 2
    other = Mesh(mesh.devices, mesh.axis_names, axis_types=kinds)
    return lax.with_sharding_constraint(v + 1, NamedSharding(other, P("y", "x")))


@constrain.mistake
def put_on_reordered_devices(v, *, mesh):
    """A program runs on one list of devices, in one order, and a constraint or a `device_put` inside `jit` can't
    change that. The result was on the same devices in a different order. Did you use the mesh that you were given?"""
    other = Mesh(mesh.devices.reshape(-1)[::-1].reshape(mesh.devices.shape), mesh.axis_names)
    return jax.device_put(v + 1, NamedSharding(other, P("y", "x")))


@constrain.mistake
def constrained_what_is_not_returned(v, *, mesh):
    """The result has the sharding of v. A constraint doesn't change an array in place: it *returns* the constrained
    array. A `device_put` inside `jit`, to the same devices, leaves the sharding to the compiler. Which array did
    you return?"""
    result = v + 1
    _constrained(v, mesh, "y", "x")
    return result


@constrain.mistake
def gathered_on_the_way(v, *, mesh):
    """The sharding is correct, but every device gathered the full array first. Ask only for the sharding that you
    want, and leave the way to the compiler. Which constraint is one too many?"""
    return _constrained(_constrained(v + 1, mesh), mesh, "y", "x")


@constrain.mistake
def cut_rows_only(v, *, mesh):
    """The rows are split along y, as they should be, but the columns aren't split, and each device keeps more than
    its shard. Which entry of a spec is for the columns?"""
    return _constrained(v + 1, mesh, "y")


@constrain.mistake
def cut_columns_only(v, *, mesh):
    """The columns are split along x, as they should be, but the rows aren't split. Which entry of a spec is for the
    rows?"""
    return _constrained(v + 1, mesh, None, "x")


constrain_replicated = ProgramExercise("constrain_replicated", points=3, reference=lambda v: v + 1, by_compiler=True)


@constrain_replicated.cases
def _(draw):
    def moves(block, mesh):
        """Along both axes at once, or along one and then the gathered blocks along the other."""
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
    """The result has the sharding of v: nothing replicated it. A constraint acts on the array that it *returns*,
    and a `device_put` inside `jit` leaves the sharding to the compiler. Which spec means "replicated on every
    device"?"""
    return v + 1


@constrain_replicated.mistake
def gathered_along_x_only(v, *, mesh):
    """The rows are complete now, but the columns are still split along y. Which axes does the spec of a replicated
    array name?"""
    return _constrained(v + 1, mesh, None, "y")


@constrain_replicated.mistake
def gathered_along_y_only(v, *, mesh):
    """The columns are complete now, but the rows are still split along x. Which axes does the spec of a replicated
    array name?"""
    return _constrained(v + 1, mesh, "x")


@constrain_replicated.mistake
def constrained_a_bare_empty_spec(v, *, mesh):
    """P() names no axis and still needs a mesh. Which devices are "every device"?"""
    return lax.with_sharding_constraint(v + 1, P())


# Two matmuls, x split by rows, the weights replicated: one constraint between them divides the work.

steer = ProgramExercise("steer", points=5, by_compiler=True, reference=lambda x, w1, w2: np.maximum(x @ w1, 0) @ w2)


@steer.cases
def _(draw):
    mesh, (rows, inner, out) = draw.mesh("data", "model"), draw.lengths(3, divisible_by=8)
    hidden = 4 * out  # if it were narrow, a compiler might gather it, and every device compute the second matmul
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
    """Nothing was sent, and no work was divided: the devices along `model` hold the same rows of x and the same
    weights, so they all computed the same. A constraint acts on the array that it *returns*. Which dimension of
    which array could be split along `model`?"""
    return jax.nn.relu(x @ w1) @ w2


@steer.mistake
def gathered_the_hidden_layer(x, w1, w2, *, mesh):
    """The hidden layer was split along `model`, then gathered, and then split again for the second matmul.
    P("data") means replicated along `model`. Which sharding does the second matmul need?"""
    w1, w2 = _constrained(w1, mesh, None, "model"), _constrained(w2, mesh, "model")
    return _steered(x, w1, w2, mesh, "data", None)


@steer.mistake
def hidden_cut_by_columns_only(x, w1, w2, *, mesh):
    """The hidden layer was split along `model`, but its rows were gathered along `data`. `None` in a spec means
    replicated, and not "leave it as it is". Which axis splits the rows of x?"""
    return _constrained(_steered(x, w1, w2, mesh, None, "model"), mesh, "data")


@steer.mistake
def hidden_made_whole(x, w1, w2, *, mesh):
    """The hidden layer was replicated: each device computed all of it, or received what it lacked. P() is a request
    like any other, and an expensive one. Which sharding should you ask for?"""
    return _constrained(_steered(x, w1, w2, mesh), mesh, "data")


@steer.mistake
def cut_the_wrong_way_round(x, w1, w2, *, mesh):
    """The rows of the hidden layer were split along `model`, and its columns along `data`. But the rows of x are
    split along `data`, so they had to be moved first. Which entry of the spec is for the rows?"""
    return _constrained(_steered(x, w1, w2, mesh, "model", "data"), mesh, "data")


@steer.mistake
def cut_the_inner_dimension(x, w1, w2, *, mesh):
    """The first matmul was divided along the dimension that it sums over. So all of the hidden layer, the widest
    array here, had to be reduced along `model`. Which dimension does the *second* matmul sum over?"""
    x, w1 = _constrained(x, mesh, "data", "model"), _constrained(w1, mesh, "model")
    return jax.nn.relu(x @ w1) @ w2


@steer.mistake
def cut_both_weights_by_columns(x, w1, w2, *, mesh):
    """The hidden layer was split by columns, and gathered for the second matmul: if w2 is split by columns too,
    that needs all of them. Which dimension of w2 corresponds to the columns of the hidden layer?"""
    w1, w2 = _constrained(w1, mesh, None, "model"), _constrained(w2, mesh, None, "model")
    return _constrained(jax.nn.relu(x @ w1) @ w2, mesh, "data")


@steer.mistake
def asked_for_too_little(x, w1, w2, *, mesh):
    """The work was divided, but the result is split along `model` too. It should be sharded as P("data"),
    replicated along `model`. Which constraint splits it?"""
    return _constrained(_steered(x, w1, w2, mesh, "data", "model"), mesh, "data", "model")


# sigmoid(x @ weights + bias), everything replicated: the contraction divided by constraints.

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
    # Small weights, so that sigmoid tells all its values apart.
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
    """All arguments are replicated, so every device computed the whole layer. A constraint to P() on the result
    doesn't change that. A constraint acts on the array that it *returns*. Along which dimension of x and of the
    weights does the sum run?"""
    return jax.nn.sigmoid(x @ weights + bias)


@divide_layer.mistake
def constrained_x_only(x, weights, bias, *, mesh):
    """x was split, and gathered again for the matmul. If only one operand is split, the compiler can choose to
    split the other one or to gather. How should *both* operands be sharded?"""
    return jax.nn.sigmoid(_constrained(x, mesh, "x") @ weights + bias)


@divide_layer.mistake
def cut_over_both_axes(x, weights, bias, *, mesh):
    """The contraction was divided along x and y together, and the partial sums were reduced along both. That is a
    good idea, but the exercise asks for x alone. Which entry of the spec has two axes?"""
    return jax.nn.sigmoid(_constrained(x, mesh, ("x", "y")) @ _constrained(weights, mesh, ("x", "y")) + bias)


@divide_layer.mistake
def cut_over_the_other_axis(x, weights, bias, *, mesh):
    """The contraction was divided along y. The exercise asks for x. Which entry of the spec says so?"""
    return jax.nn.sigmoid(_constrained(x, mesh, "y") @ _constrained(weights, mesh, "y") + bias)


@divide_layer.mistake
def cut_and_made_whole_again(x, weights, bias, *, mesh):
    """The operands were split, and then gathered again before the matmul. So all of that was sent for nothing, and
    every device computed everything. What is the *last* constraint on each array before it is used?"""
    x, weights = _constrained(x, mesh, "x"), _constrained(weights, mesh, "x")
    return jax.nn.sigmoid(_constrained(x, mesh) @ _constrained(weights, mesh) + bias)


# Weights that are created where they belong.


def _two_weights(seed):
    """`init_weights` of the lesson."""
    key1, key2 = jax.random.split(jax.random.key(seed))
    return {"w1": jax.random.normal(key1, (32, 64)) / 6, "w2": jax.random.normal(key2, (64, 16)) / 8}


def _created(seed, mesh, w1, w2):
    shardings = {"w1": NamedSharding(mesh, P(*w1)), "w2": NamedSharding(mesh, P(*w2))}
    return jax.jit(_two_weights, out_shardings=shardings)(seed)


init_sharded = ProgramExercise("init_sharded", points=4, by_compiler=True, reference=_two_weights)
BOTH_WEIGHTS = 32 * 64 + 64 * 16  # elements


@init_sharded.cases
def _(draw):
    mesh = draw.mesh("data", "model")
    yield Case(
        {"seed": Array(np.int32(draw.rng.integers(1, 1000)), P())},
        mesh,
        {"w1": P(None, "model"), "w2": P("model")},
        # The random bits of a shard take three times its memory while it is created.
        limits=[BytesSent(0), PeakBytes(4 * FLOAT * BOTH_WEIGHTS // mesh["model"])],
    )


@init_sharded.mistake
def left_on_every_device(seed, *, mesh):
    """Every device created and kept both weights in full. A `device_put` inside `jit`, to the same devices, leaves the
    sharding to the compiler. Which argument of `jax.jit` says how a result is sharded?"""
    return _two_weights(seed)


@init_sharded.mistake
def created_in_full_first(seed, *, mesh):
    """The shardings are correct, but every device created both weights in full first, and then kept its shard. Which
    constraint, or which inner `jit`, asks for the full weights?"""
    whole = jax.tree.map(lambda weight: _constrained(weight, mesh), _two_weights(seed))
    return {"w1": _constrained(whole["w1"], mesh, None, "model"), "w2": _constrained(whole["w2"], mesh, "model")}


@init_sharded.mistake
def rows_and_columns_swapped(seed, *, mesh):
    """The rows of w1 were split, and the columns of w2. A spec has one entry per dimension, in order. Which entry is
    for the columns?"""
    return _created(seed, mesh, ("model",), (None, "model"))


@init_sharded.mistake
def rows_of_both(seed, *, mesh):
    """The rows of both weights were split, as with one sharding for the whole result. Which dimension of w1 do both
    layers share?"""
    return _created(seed, mesh, ("model",), ("model",))


@init_sharded.mistake
def columns_of_both(seed, *, mesh):
    """The columns of both weights were split. Which dimension of w2 do both layers share?"""
    return _created(seed, mesh, (None, "model"), (None, "model"))


@init_sharded.mistake
def split_along_data(seed, *, mesh):
    """The weights were split along `data`. Which axis did the exercise name?"""
    return _created(seed, mesh, (None, "data"), ("data",))


@init_sharded.mistake
def split_along_both_axes(seed, *, mesh):
    """The weights were split along both axes of the mesh. Along `data`, they should be replicated. Which axis is one
    too many?"""
    return _created(seed, mesh, (None, ("data", "model")), (("data", "model"),))


@init_sharded.mistake
def split_w1_only(seed, *, mesh):
    """w1 is sharded as it should be, but every device has all of w2. Which entry of its spec names an axis?"""
    return _created(seed, mesh, (None, "model"), ())


# Are two arrays the same: values, shardings, and every replica?


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
    other[7, 15] += 1  # held by the last device only
    nearly = np.nextafter(value, np.float32(np.inf))
    half = value[::-1, 8:]  # the second half of the columns, with its rows reversed on one of the devices that hold it

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
    """Only the values were compared. `np.asarray` reads one replica of each shard: it doesn't see the shardings, or
    a replica that is wrong on another device. Where do you find all replicas?"""
    return bool(np.array_equal(a, b))


@same_everywhere.mistake
def compared_shardings_by_equality(a, b):
    """Arrays with equivalent shardings were told apart. P("x") and P("x", None) put the same parts on the same
    devices, but they aren't equal (`==`). Which method of a sharding compares that?"""
    return bool(
        a.shape == b.shape
        and np.array_equal(a, b)
        and a.sharding == b.sharding
        and _copies_agree(a)
        and _copies_agree(b)
    )


@same_everywhere.mistake
def trusted_the_copies(a, b):
    """Values and shardings agree, but one device holds a replica that differs from the others. `np.asarray` reads
    one replica of each shard. Which attribute has all of them?"""
    return bool(_laid_alike(a, b) and np.array_equal(a, b))


@same_everywhere.mistake
def compared_device_by_device(a, b):
    """On every device, a and b hold the same, and they were called the same. But in both of them, the same replica
    is wrong. Do the replicas *within* one array agree?"""
    if not _laid_alike(a, b):
        return False
    pairs = zip(a.addressable_shards, b.addressable_shards, strict=True)
    return bool(all(np.array_equal(one.data, two.data) for one, two in pairs))


@same_everywhere.mistake
def forgot_the_layout(a, b):
    """These two have the same values, and their replicas agree, but the shardings differ: some device holds another
    part of the array. Which method compares shardings?"""
    return bool(np.array_equal(a, b) and _copies_agree(a) and _copies_agree(b))


@same_everywhere.mistake
def looked_at_a_only(a, b):
    """A replica that is wrong within a was noticed, but one within b wasn't. Which of the two arrays did you
    examine?"""
    return bool(_laid_alike(a, b) and np.array_equal(a, b) and _copies_agree(a))


# Reading a compiled program: how many collectives of each kind are in the text?

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
ANY = "|".join(KINDS)


def _counted(pattern, text):
    return dict(Counter(re.findall(pattern, text)))


def _without_quoted(text):
    return re.sub(r'"[^"]*"', '""', text)


def _count(text):
    """An instruction is a type, a space, the operation, perhaps `-start`, and a parenthesis. Quoted text isn't code."""
    return _counted(rf" ({ANY})(?:-start)?\(", _without_quoted(text))


def _same_counts(one, other, text):
    return all(one.get(kind, 0) == other.get(kind, 0) for kind in {*KINDS, *one, *other})


count_collectives = FunctionExercise("count_collectives", points=5, reference=_count, same=_same_counts)

HEAD = "HloModule jit_step, is_scheduled=true, entry_computation_layout={(f32[4,8]{1,0})->f32[4,8]{1,0}}\n"
TRICKY = (
    # Names of operations are in metadata, and appear as operands of others.
    """ENTRY %main.9 (p.1: f32[4,8]) -> f32[4,8] {
  %p.1 = f32[4,8]{1,0} parameter(0), metadata={op_name="v"}
  %all-reduce.3 = f32[4,8]{1,0} all-reduce(%p.1), channel_id=1, replica_groups={{0,1}}, to_apply=%add.1, \
metadata={op_name="jit(step)/all-reduce(grads)" source_file="train.py" source_line=7}
  %add.4 = f32[4,8]{1,0} add(%all-reduce.3, %all-reduce.3), metadata={op_name="jit(step)/after all-reduce(grads)"}
  ROOT %all-gather.5 = f32[8,8]{1,0} all-gather(%add.4), channel_id=2, replica_groups={{0,1}}, dimensions={0}
}
""",
    # On a TPU or GPU, a collective is started, and later awaited: one collective.
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
    # Several all-reduces merged into one: its type is a tuple. One of a single number, whose type has no layout and, as
    # in the texts of some versions, is written before the operand, too. And one in a loop, which is in the text once.
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
    # Nothing is sent here, although the text mentions collectives.
    """ENTRY %main.4 (p.1: f32[4,8]) -> f32[4,8] {
  %p.1 = f32[4,8]{1,0} parameter(0), metadata={op_name="all-gather(v)"}
  ROOT %sine.2 = f32[4,8]{1,0} sine(%p.1), metadata={op_name="jit(no all-to-all( here)" source_file="all-reduce(.py"}
}
""",
)


@functools.cache
def _compiled_texts():
    """The compiled texts of three small functions, with this version of JAX."""
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
    """Every mention was counted, in names, operands, and metadata too. An instruction is `name =
    type operation(operands)`. What comes right before and right after the operation, and nowhere else?"""
    return _counted(f"({ANY})", text)


@count_collectives.mistake
def counted_names(text):
    """Instructions were counted by their *names*. A name can be anything: `%ppermute.7` may be a
    collective-permute. What comes after the type of an instruction?"""
    return _counted(rf"(?m)^\s*(?:ROOT )?%?({ANY})(?:-start)?(?:\.\d+)* = ", _without_quoted(text))


@count_collectives.mistake
def believed_the_metadata(text):
    """Quoted text was counted too. `op_name` and `source_file` say where an operation comes from, and can contain
    anything. How do you remove what is in quotation marks?"""
    return _counted(rf"\b({ANY})(?:-start)?\(", text)


@count_collectives.mistake
def believed_the_metadata_behind_a_blank(text):
    """Quoted text was counted too, where it has an operation after a space. `op_name` and `source_file` can contain
    anything. How do you remove what is in quotation marks?"""
    return _counted(rf" ({ANY})(?:-start)?\(", text)


@count_collectives.mistake
def counted_start_and_done(text):
    """A collective that runs in the background is in the text twice, as `…-start` and as `…-done`. It sends once.
    Which of the two do you count?"""
    return _counted(rf" ({ANY})(?:-start|-done)?\(", _without_quoted(text))


@count_collectives.mistake
def missed_those_that_are_started(text):
    """Some compilers split a collective into `…-start` and `…-done`, and these were missing from the count. Such a
    pair is one collective. Which of its two names do you count?"""
    return _counted(rf" ({ANY})\(", _without_quoted(text))


@count_collectives.mistake
def counted_groups(text):
    """An instruction was counted once for each group of devices in its `replica_groups`. All groups run this one
    instruction, each within the group. How many instructions are there?"""
    counts = Counter()
    for line in _without_quoted(text).splitlines():
        groups = re.search(r"replica_groups=(?:\[(\d+),|\{(\{[\d,{}]*\})\})", line)
        several = 1 if groups is None else int(groups[1]) if groups[1] else groups[2].count("{")
        counts.update(dict.fromkeys(re.findall(rf" ({ANY})(?:-start)?\(", line), several))
    return dict(counts)


@count_collectives.mistake
def missed_tuples(text):
    """The type of a collective may contain spaces, as in `(f32[4]{0}, f32[8,16]{1,0})`, and such a collective was
    missed. What can be between the `=` and the operation?"""
    return _counted(rf"= \S+ ({ANY})(?:-start)?\(", _without_quoted(text))


@count_collectives.mistake
def counted_arrays(text):
    """If a compiler merges several all-reduces, one instruction has several operands, and each of these arrays was
    counted. Each instruction costs its own start-up time. How many instructions are there?"""
    counts = Counter()
    for kind, operands in re.findall(rf" ({ANY})(?:-start)?\(([^)]*)\)", _without_quoted(text)):
        counts[kind] += operands.count(",") + 1
    return dict(counts)
