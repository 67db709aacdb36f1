"""§ 4–8: programs on Explicit meshes, where the layout is part of an array's type.

They are left to the compiler, which has no choice: `out_sharding` and `reshard` say where things are, and
the compiled program shows what had to be sent for it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P
from jax.sharding import auto_axes, reshard

from grader.exercises import Array, BytesSent, Case, Draw, Move, Moves, ProgramExercise
from grader.lessons.shared import bytes_sent, sharding

# A layout of its own for the result: what the older tutorials did with a constraint.

resharded = ProgramExercise("resharded", points=2, reference=lambda a: a + 1, by_compiler=True)


@resharded.cases
def _(draw: Draw) -> Case:
    mesh = draw.mesh("x", "y")
    i, j = draw.lengths(2, divisible_by=8)
    return Case({"a": draw.array(i, j, spec=P("x", "y"))}, mesh, out=P("y", "x"), explicit=True)


@resharded.mistake
def constrained(a, *, mesh):
    """`with_sharding_constraint` is a hint to a compiler that may choose, as on an Auto mesh. On an Explicit one there
    is nothing to hint at: the type already says how an array is laid out. Which function lays it out otherwise?"""
    return jax.lax.with_sharding_constraint(a + 1, sharding(mesh, "y", "x"))


@resharded.mistake
def relaid_by_a_bare_spec(a, *, mesh):
    """A bare P names axes, but not of which mesh. `jax.set_mesh` puts a mesh into the context, and here nobody has
    called it. What is it that names a mesh and a P together?"""
    return reshard(a + 1, P("y", "x"))


@resharded.mistake
def left_in_place(a, *, mesh):
    """The result has the type of the operand: adding one does not move anything, and `reshard` moves nothing in place,
    but *returns* the array in its new layout. The exercise wants the rows cut over y and the columns over x."""
    return a + 1


@resharded.mistake
def laid_out_transposed(a, *, mesh):
    """The layout that was wanted cuts rows over y and columns over x: the blocks move, the entries keep their place in
    the array. `.T` moves the entries too. Did you mean the array's transpose, or its layout's?"""
    return (a + 1).T


# A layer of the tutorial on several processes: relu(A[I_X, J_Y] · B[J_Y, K]).

explicit_layer = ProgramExercise("explicit_layer", points=3, reference=lambda a, b: (a @ b).clip(0), by_compiler=True)


@explicit_layer.cases
def _(draw: Draw) -> Case:
    mesh = draw.mesh("x", "y")
    i, j, k = draw.lengths(3, divisible_by=8)
    arrays = {"a": draw.array(i, j, spec=P("x", "y")), "b": draw.array(j, k, spec=P("y", None))}
    return Case(
        arrays, mesh, P("x", None), limits=[Moves((Move("all_reduce", ("y",), (i // mesh["x"], k)),))], explicit=True
    )


@explicit_layer.mistake
def as_in_the_tutorial(a, b, *, mesh):
    """J is cut in both operands, so each device gets one part of every entry's sum. The sum can end whole, cut, or not
    be made at all; JAX does not choose. Where does one say how a product should be laid out?"""
    return jax.nn.relu(a @ b)


@explicit_layer.mistake
def layer_with_a_bare_spec(a, b, *, mesh):
    """`out_sharding=P(...)` names axes, but not of which mesh, and no mesh is set here. Give it the mesh and the spec
    together, as a NamedSharding."""
    return jax.nn.relu(jnp.dot(a, b, out_sharding=P("x", None)))


@explicit_layer.mistake
def whole_on_every_device(a, b, *, mesh):
    """The result is whole on every device, so after the sum over y the rows were gathered over x too. They were cut
    over x in A: may they stay so?"""
    return jax.nn.relu(jnp.dot(a, b, out_sharding=sharding(mesh)))


@explicit_layer.mistake
def gathered_the_operands(a, b, *, mesh):
    """With J whole in both operands the product has a type, so nothing complains; but the operands were gathered for
    it. Let the devices multiply what they hold, and say how the product should be laid out."""
    return jax.nn.relu(reshard(a, sharding(mesh, "x", None)) @ reshard(b, sharding(mesh)))


@explicit_layer.mistake
def relu_of_an_unfinished_sum(a, b, *, mesh):
    """`unreduced` leaves a part of each sum on every device. relu of the parts is not relu of their sum, and JAX
    refuses it. At which point must the sum be complete?"""
    parts = jnp.dot(a, b, out_sharding=sharding(mesh, "x", None, unreduced={"y"}))
    return reshard(jax.nn.relu(parts), sharding(mesh, "x", None))


# The network of the older tutorial, its data cut over one axis and its middle layers over the other.


def _network(x, W1, b1, W2, b2, W3, b3):
    hidden = (x @ W1 + b1).clip(0)
    hidden = (hidden @ W2 + b2).clip(0)
    return hidden @ W3 + b3


NETWORK = {
    "x": P("batch", None),
    "W1": P(),
    "b1": P(),
    "W2": P(None, "model"),
    "b2": P("model"),
    "W3": P("model", None),
    "b3": P(),
}

fix_types = ProgramExercise("fix_types", points=5, reference=_network, by_compiler=True)


@fix_types.cases
def _(draw: Draw) -> Case:
    mesh = draw.mesh("batch", "model")
    rows, i, j, k, m = draw.lengths(5, divisible_by=8)
    shapes = {"x": (rows, i), "W1": (i, j), "b1": (j,), "W2": (j, k), "b2": (k,), "W3": (k, m), "b3": (m,)}
    # Small weights: a sum of sums of whole numbers must stay exact in float32.
    arrays = {name: Array(np.sign(draw.values(*shape)), NETWORK[name]) for name, shape in shapes.items()}
    sum_of_parts = Move("all_reduce", ("model",), (rows // mesh["batch"], m))
    return Case(arrays, mesh, P("batch", None), limits=[Moves((sum_of_parts,))], explicit=True)


def _hidden(x, W1, b1, W2, b2):
    for W, b in ((W1, b1), (W2, b2)):
        x = jax.nn.relu(x @ W + b)
    return x


@fix_types.mistake
def left_as_it_was(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """The third product stops the program: its contracted dimension is cut over `model` on both sides, and JAX wants
    to be told how the result should be laid out. The first two have types of their own. What does the third lack?"""
    return _hidden(x, W1, b1, W2, b2) @ W3 + b3


@fix_types.mistake
def constraint_before_the_product(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """A sharding constraint, the older tutorials' remedy, is a hint to a compiler that may choose. On an Explicit mesh
    it may not, and JAX refuses the hint. Look for the one step at which *you* have to decide something."""
    hidden = jax.lax.with_sharding_constraint(_hidden(x, W1, b1, W2, b2), sharding(mesh, "batch", None))
    return hidden @ W3 + b3


@fix_types.mistake
def network_with_a_bare_spec(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """`out_sharding=P("batch", None)` is the right layout, without a mesh to read it by. Your function is given
    `mesh`, and none is set around it: how do you hand over both?"""
    return jnp.dot(_hidden(x, W1, b1, W2, b2), W3, out_sharding=P("batch", None)) + b3


@fix_types.mistake
def made_the_weights_whole(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """Nothing is cut over `model` any more: W2 and W3 were gathered, and every device along `model` does the same work.
    Keep the weights where they are; only one product needs a word from you."""
    W2, b2, W3 = reshard(W2, sharding(mesh)), reshard(b2, sharding(mesh)), reshard(W3, sharding(mesh))
    return _hidden(x, W1, b1, W2, b2) @ W3 + b3


@fix_types.mistake
def gathered_the_last_weights(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """W3 was gathered over `model`, so that only one side of its product is cut. But each device already holds the rows
    of W3 that match its hidden units: it can multiply them as they are. Who adds up the parts, and where do you say
    how the result should be laid out?"""
    hidden = _hidden(x, W1, b1, W2, b2)
    return jnp.dot(hidden, reshard(W3, sharding(mesh)), out_sharding=sharding(mesh, "batch", None)) + b3


@fix_types.mistake
def gathered_the_hidden_layer(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """The hidden layer was gathered over `model` before the last product. Each device already holds the columns that
    match its rows of W3: it can multiply them as they are. What travels then is only the result."""
    hidden = reshard(_hidden(x, W1, b1, W2, b2), sharding(mesh, "batch", None))
    return jnp.dot(hidden, reshard(W3, sharding(mesh)), out_sharding=sharding(mesh, "batch", None)) + b3


@fix_types.mistake
def cut_the_features(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """The result came out cut over `model` along its features, and whole along the batch: its rows had to be gathered.
    Which dimension of x was cut, and has anything happened to that one?"""
    return jnp.dot(_hidden(x, W1, b1, W2, b2), W3, out_sharding=sharding(mesh, None, "model")) + b3


@fix_types.mistake
def gathered_the_batch(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """`P()` makes the result whole on every device: the rows of the whole batch were gathered. The sum runs over
    `model`; the batch may stay cut as it came."""
    return jnp.dot(_hidden(x, W1, b1, W2, b2), W3, out_sharding=sharding(mesh)) + b3


# An embedding lookup: rows of a table picked by numbers that are cut over the batch.

embed = ProgramExercise("embed", points=3, reference=lambda table, ids: table[ids], by_compiler=True)


@embed.cases
def _(draw: Draw) -> Case:
    mesh = draw.mesh("x", "y")
    words, features, rows = draw.lengths(3, divisible_by=8)
    words *= 4  # more than there are rows
    ids = draw.rng.integers(words, size=(rows, 3)).astype(np.int32)
    ids[0, 0], ids[-1, -1] = words - 1, 0
    table = draw.array(words, features, spec=P(None, "y"))
    return Case(
        {"table": table, "ids": Array(ids, P("x", None))}, mesh, P("x", None, "y"), limits=[Moves(())], explicit=True
    )


@embed.mistake
def indexed(table, ids, *, mesh):
    """Which rows are picked is known only when the program runs, so indexing has no rule by which a type could
    follow, and JAX wants the result's layout from you. `table[ids]` and `jnp.take` have no place to say it; the long
    form of indexing has."""
    return table[ids]


@embed.mistake
def looked_up_with_a_bare_spec(table, ids, *, mesh):
    """The layout is right, but a bare P does not say whose axes it names, and no mesh is set here. The mesh is your
    function's argument."""
    return table.at[ids].get(out_sharding=P("x", None, "y"))


@embed.mistake
def spread_everywhere(table, ids, *, mesh):
    """The result is whole on every device. Each device has the numbers of its own sentences and its own columns of the
    table: it can look up its block of the result and stop there."""
    return table.at[ids].get(out_sharding=sharding(mesh))


@embed.mistake
def forgot_the_columns(table, ids, *, mesh):
    """The sentences stay cut over x, as they should; but the last dimension is whole, and the table's columns are cut
    over y. What does a device hold of every embedding?"""
    return table.at[ids].get(out_sharding=sharding(mesh, "x", None, None))


@embed.mistake
def gathered_the_table(table, ids, *, mesh):
    """The table was made whole on every device before anything was looked up. A device needs only its own columns of
    it. Leave table and numbers where they are."""
    whole = reshard(table, sharding(mesh)).at[ids].get(out_sharding=sharding(mesh, "x", None, None))
    return reshard(whole, sharding(mesh, "x", None, "y"))


# Somebody else's function, in which no out_sharding can be written: the compiler takes over for its length.


def _differences(series, numpy=jnp):
    return series - numpy.roll(series, 1, axis=0)


borrowed = ProgramExercise("borrowed", points=3, reference=lambda series: _differences(series, np), by_compiler=True)


@borrowed.cases
def _(draw: Draw) -> Case:
    mesh = draw.mesh("x", "y")
    i, j = draw.lengths(2, divisible_by=8)
    one_row = Move("collective_permute", ("x",), (1, j))
    return Case(
        {"series": draw.array(i, j, spec=P("x", None))}, mesh, P("x", None), limits=[Moves((one_row,))], explicit=True
    )


@borrowed.mistake
def called_as_it_is(series, *, mesh):
    """The step along the cut dimension, inside the borrowed function, has no rule, and the function is not yours to
    change. Wrap it so that the compiler decides within, and say how its result should be laid out:
    on which mesh, too. (Given a bare P and no mesh, the wrapper does nothing.)"""
    return _differences(series)


@borrowed.mistake
def wrapped_without_a_layout(series, *, mesh):
    """`auto_axes` hides the layouts inside, so nothing is known about the result when it comes back into a world of
    types. The wrapped function has one more keyword than before: which?"""
    return auto_axes(_differences)(series)


@borrowed.mistake
def came_back_whole(series, *, mesh):
    """What comes back is whole on every device, so all rows were gathered everywhere. Each row's difference belongs
    where the row is."""
    return auto_axes(_differences)(series, out_sharding=sharding(mesh))


@borrowed.mistake
def made_everything_whole(series, *, mesh):
    """A whole array has no cut to step across, so the function runs; but the series was gathered on every device for
    it. Wrapped in `auto_axes`, the function runs on an array that is cut."""
    return reshard(_differences(reshard(series, sharding(mesh))), sharding(mesh, "x", None))


@borrowed.mistake
def moved_to_the_columns(series, *, mesh):
    """For the time of the call the other dimension is cut, along which nothing has to cross a cut. It works, and it
    moves the whole series twice. How much does one device really lack of its neighbour's rows?"""
    columns = reshard(series, sharding(mesh, None, "x"))
    return reshard(_differences(columns), sharding(mesh, "x", None))


# Two products whose sums can be made together: a layer and its low-rank adapter.

lora = ProgramExercise("lora", points=5, reference=lambda x, W, A, B: x @ W + (x @ A) @ B, by_compiler=True)


@lora.cases
def _(draw: Draw) -> Case:
    mesh = draw.mesh("x", "y")
    i, j, k = draw.lengths(3, divisible_by=8)
    arrays = {
        "x": draw.array(i, j, spec=P()),
        "W": draw.array(j, k, spec=P("x", None)),
        "A": draw.array(j, 8, spec=P(None, "x")),
        "B": draw.array(8, k, spec=P("x", None)),
    }
    once = bytes_sent("all_reduce", i * k, mesh["x"])
    return Case(
        arrays, mesh, P(), limits=[BytesSent(once), Moves((Move("all_reduce", ("x",), (i, k)),))], explicit=True
    )


def _cut(x, mesh):
    return reshard(x, sharding(mesh, None, "x"))


def _parts(a, b, mesh):
    return jnp.dot(a, b, out_sharding=sharding(mesh, unreduced={"x"}))


@lora.mistake
def reduced_each_product(x, W, A, B, *, mesh):
    """Each product was summed over the devices for itself, and then the two were added: two all-reduces of the same
    size. Unfinished sums may be added as they are. How many all-reduces are left then?"""
    whole = sharding(mesh)
    return reshard(_parts(_cut(x, mesh), W, mesh), whole) + reshard(_parts(x @ A, B, mesh), whole)


@lora.mistake
def multiplied_unfinished_sums(x, W, A, B, *, mesh):
    """x · A was left unreduced, and then multiplied by B. A product of sums is not the sum of products, so JAX refuses
    unreduced factors. Look at how A is cut: is there anything to sum in x · A?"""
    low = jnp.dot(_cut(x, mesh), reshard(A, sharding(mesh, "x", None)), out_sharding=sharding(mesh, unreduced={"x"}))
    return reshard(_parts(_cut(x, mesh), W, mesh) + low @ B, sharding(mesh))


@lora.mistake
def added_parts_to_a_whole(x, W, A, B, *, mesh):
    """One product is an unfinished sum and the other is whole. Added as they are, the whole one would count once on
    every device; JAX refuses. Both have to be in the same state before they meet."""
    return reshard(_parts(_cut(x, mesh), W, mesh) + jnp.dot(x @ A, B, out_sharding=sharding(mesh)), sharding(mesh))


@lora.mistake
def returned_unfinished_sums(x, W, A, B, *, mesh):
    """The two products were added, and the sum over the devices was never made: what you return is one part of it on
    every device. Which call completes it?"""
    return _parts(_cut(x, mesh), W, mesh) + _parts(x @ A, B, mesh)


@lora.mistake
def x_was_left_whole(x, W, A, B, *, mesh):
    """For an unreduced product both operands must be cut alike along the contracted dimension: W is cut over x there,
    and the activations are whole. Cutting a whole array sends nothing."""
    return reshard(_parts(x, W, mesh) + _parts(x @ A, B, mesh), sharding(mesh))


@lora.mistake
def gathered_the_weights(x, W, A, B, *, mesh):
    """The weights were gathered, and every device computed the whole result. The exercise asks for one all-reduce of
    the result; the weights stay where they are."""
    W, A, B = (reshard(weight, sharding(mesh)) for weight in (W, A, B))
    return x @ W + (x @ A) @ B
