"""§ 4–8: programs on Explicit meshes, where the sharding is part of an array's type.

They are partitioned by the compiler, which has no choice: `out_sharding` and `reshard` determine the shardings, and
the compiled program shows what had to be sent.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P
from jax.sharding import auto_axes, reshard

from grader.exercises import Array, BytesSent, Case, Draw, Move, Moves, ProgramExercise
from grader.lessons.shared import bytes_sent, sharding

# Another sharding for the result (§ 6): what the older tutorials did with a constraint.

resharded = ProgramExercise("resharded", points=2, reference=lambda a: a + 1, by_compiler=True)


@resharded.cases
def _(draw: Draw) -> Case:
    mesh = draw.mesh("x", "y")
    i, j = draw.lengths(2, divisible_by=8)
    return Case({"a": draw.array(i, j, spec=P("x", "y"))}, mesh, out=P("y", "x"), explicit=True)


@resharded.mistake
def constrained(a, *, mesh):
    """JAX refused `with_sharding_constraint`, which is a hint to a compiler that may choose, as on an Auto mesh. On
    an Explicit mesh, the type already says how an array is sharded. Which function gives it another type?"""
    return jax.lax.with_sharding_constraint(a + 1, sharding(mesh, "y", "x"))


@resharded.mistake
def relaid_by_a_bare_spec(a, *, mesh):
    """A bare P names axes, but not of which mesh, and no mesh was set. Which object names a mesh and a P together?"""
    return reshard(a + 1, P("y", "x"))


@resharded.mistake
def left_in_place(a, *, mesh):
    """The result has the sharding of the operand. Adding 1 moves nothing, and `reshard` doesn't change an array: it
    *returns* one with the new sharding. What does your function do with the array that it returns?"""
    return a + 1


@resharded.mistake
def laid_out_transposed(a, *, mesh):
    """The array was transposed. A sharding of `P("y", "x")` moves blocks between devices, but leaves each element
    at its index. Should the array be transposed, or only its sharding?"""
    return (a + 1).T


# A layer of the tutorial on several processes (§ 4): relu(A[I_X, J_Y] · B[J_Y, K]).

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
    """JAX stopped at the matmul. J is sharded in both operands, so each device has a partial sum of every element,
    and the result can have several shardings. Where can you say which one you want?"""
    return jax.nn.relu(a @ b)


@explicit_layer.mistake
def layer_with_a_bare_spec(a, b, *, mesh):
    """`out_sharding=P(...)` names axes, but not of which mesh, and no mesh was set. Which object names the mesh and
    the spec together?"""
    return jax.nn.relu(jnp.dot(a, b, out_sharding=P("x", None)))


@explicit_layer.mistake
def whole_on_every_device(a, b, *, mesh):
    """The result was replicated, so its rows were gathered over x after the sum over y. They are sharded over x in
    A. Does anything in the exercise require them to be gathered?"""
    return jax.nn.relu(jnp.dot(a, b, out_sharding=sharding(mesh)))


@explicit_layer.mistake
def gathered_the_operands(a, b, *, mesh):
    """The operands were gathered. With J replicated in both, the matmul has a type, so JAX didn't stop it. What
    could the devices multiply without any communication?"""
    return jax.nn.relu(reshard(a, sharding(mesh, "x", None)) @ reshard(b, sharding(mesh)))


@explicit_layer.mistake
def relu_of_an_unfinished_sum(a, b, *, mesh):
    """JAX refused the relu of an unreduced array: the relu of partial sums isn't the relu of their sum. At which
    point does the sum have to be complete?"""
    parts = jnp.dot(a, b, out_sharding=sharding(mesh, "x", None, unreduced={"y"}))
    return reshard(jax.nn.relu(parts), sharding(mesh, "x", None))


# The network of the older tutorial (§ 5), its data sharded over one axis and its middle layers over the other.


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
    # Small weights: a sum of sums of integers must stay exact in float32.
    arrays = {name: Array(np.sign(draw.values(*shape)), NETWORK[name]) for name, shape in shapes.items()}
    sum_of_parts = Move("all_reduce", ("model",), (rows // mesh["batch"], m))
    return Case(arrays, mesh, P("batch", None), limits=[Moves((sum_of_parts,))], explicit=True)


def _hidden(x, W1, b1, W2, b2):
    for W, b in ((W1, b1), (W2, b2)):
        x = jax.nn.relu(x @ W + b)
    return x


@fix_types.mistake
def left_as_it_was(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """JAX stopped at the third matmul. Its contracted dimension is sharded over `model` on both sides, so the
    sharding of the result is open. What does `jnp.dot` need to know?"""
    return _hidden(x, W1, b1, W2, b2) @ W3 + b3


@fix_types.mistake
def constraint_before_the_product(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """JAX refused the sharding constraint, which is a hint to a compiler that may choose. On an Explicit mesh, it
    may not. At which single step do *you* have to decide something?"""
    hidden = jax.lax.with_sharding_constraint(_hidden(x, W1, b1, W2, b2), sharding(mesh, "batch", None))
    return hidden @ W3 + b3


@fix_types.mistake
def network_with_a_bare_spec(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """`out_sharding=P("batch", None)` is the right spec, but doesn't name a mesh, and no mesh was set.
    Your function is given `mesh`. Which object names both?"""
    return jnp.dot(_hidden(x, W1, b1, W2, b2), W3, out_sharding=P("batch", None)) + b3


@fix_types.mistake
def made_the_weights_whole(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """The weights W2 and W3 were gathered, so all devices along `model` computed the same. They can stay sharded:
    only one matmul needs an answer from you. Which one?"""
    W2, b2, W3 = reshard(W2, sharding(mesh)), reshard(b2, sharding(mesh)), reshard(W3, sharding(mesh))
    return _hidden(x, W1, b1, W2, b2) @ W3 + b3


@fix_types.mistake
def gathered_the_last_weights(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """W3 was gathered over `model`, so that only one side of its matmul is sharded. But each device already holds
    the rows of W3 that match its hidden units. Which sum is left if it multiplies just these?"""
    hidden = _hidden(x, W1, b1, W2, b2)
    return jnp.dot(hidden, reshard(W3, sharding(mesh)), out_sharding=sharding(mesh, "batch", None)) + b3


@fix_types.mistake
def gathered_the_hidden_layer(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """The hidden layer was gathered over `model` before the last matmul. But each device already holds the columns
    that match its rows of W3. What has to be sent if it multiplies just these?"""
    hidden = reshard(_hidden(x, W1, b1, W2, b2), sharding(mesh, "batch", None))
    return jnp.dot(hidden, reshard(W3, sharding(mesh)), out_sharding=sharding(mesh, "batch", None)) + b3


@fix_types.mistake
def cut_the_features(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """The result was sharded over `model` along its features, and its rows were gathered. Which dimension of x is
    sharded, and should that change?"""
    return jnp.dot(_hidden(x, W1, b1, W2, b2), W3, out_sharding=sharding(mesh, None, "model")) + b3


@fix_types.mistake
def gathered_the_batch(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """The result was replicated, so the rows of the full batch were gathered. The sum is over `model` only. How is
    the batch sharded in x?"""
    return jnp.dot(_hidden(x, W1, b1, W2, b2), W3, out_sharding=sharding(mesh)) + b3


# An embedding lookup (§ 8): rows of a table, picked by IDs that are sharded over the batch.

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
    """JAX stopped at the lookup. Which rows are picked is known only at run time, so the type of the result doesn't
    follow. `table[ids]` and `jnp.take` have no place for a sharding. Which form of indexing does?"""
    return table[ids]


@embed.mistake
def looked_up_with_a_bare_spec(table, ids, *, mesh):
    """The spec is right, but a bare P doesn't name a mesh, and no mesh was set. Which object names the mesh
    and the spec together?"""
    return table.at[ids].get(out_sharding=P("x", None, "y"))


@embed.mistake
def spread_everywhere(table, ids, *, mesh):
    """The result was replicated. Each device has the IDs of its own sentences and its own columns of the table.
    Which block of the result can it look up without any communication?"""
    return table.at[ids].get(out_sharding=sharding(mesh))


@embed.mistake
def forgot_the_columns(table, ids, *, mesh):
    """The last dimension of the result was gathered. The sentences stayed sharded over x, but the table's columns
    are sharded over y. Which part of every embedding does a device hold?"""
    return table.at[ids].get(out_sharding=sharding(mesh, "x", None, None))


@embed.mistake
def gathered_the_table(table, ids, *, mesh):
    """The table was gathered on every device before the lookup. Which columns of it does a device need for its
    block of the result?"""
    whole = reshard(table, sharding(mesh)).at[ids].get(out_sharding=sharding(mesh, "x", None, None))
    return reshard(whole, sharding(mesh, "x", None, "y"))


# A function by someone else (§ 8), where no out_sharding can be written: the compiler takes over.


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
    """JAX stopped inside the borrowed function: a step along a sharded dimension has no rule, and you can't change
    the function. (The same happens if the wrapper is given a bare P and no mesh.) How do you let the compiler
    decide inside it?"""
    return _differences(series)


@borrowed.mistake
def wrapped_without_a_layout(series, *, mesh):
    """JAX doesn't know the type of the result: inside `auto_axes`, shardings aren't part of the types. Which
    additional keyword does the wrapped function take?"""
    return auto_axes(_differences)(series)


@borrowed.mistake
def came_back_whole(series, *, mesh):
    """The result was replicated, so all rows were gathered on every device. On which device does the difference of
    a row belong?"""
    return auto_axes(_differences)(series, out_sharding=sharding(mesh))


@borrowed.mistake
def made_everything_whole(series, *, mesh):
    """The series was gathered on every device. The function runs on a replicated array, because no step crosses
    from one device to another. How can it run on a sharded one?"""
    return reshard(_differences(reshard(series, sharding(mesh))), sharding(mesh, "x", None))


@borrowed.mistake
def moved_to_the_columns(series, *, mesh):
    """The entire series was sent twice: it was sharded along the other dimension for the call, and then moved back.
    How many of its neighbor's rows does a device really need?"""
    columns = reshard(series, sharding(mesh, None, "x"))
    return reshard(_differences(columns), sharding(mesh, "x", None))


# Two matmuls whose sums can be computed together (§ 7): a layer and its low-rank adapter.

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
    """The program sent two all-reduces of the same size: each matmul was summed over the devices before the two
    were added. Unreduced arrays may be added to each other. How many all-reduces are then left?"""
    whole = sharding(mesh)
    return reshard(_parts(_cut(x, mesh), W, mesh), whole) + reshard(_parts(x @ A, B, mesh), whole)


@lora.mistake
def multiplied_unfinished_sums(x, W, A, B, *, mesh):
    """JAX refused to multiply an unreduced array: the product of two sums isn't the sum of products. Look at how A
    is sharded. Is there anything to sum over devices in x · A?"""
    low = jnp.dot(_cut(x, mesh), reshard(A, sharding(mesh, "x", None)), out_sharding=sharding(mesh, unreduced={"x"}))
    return reshard(_parts(_cut(x, mesh), W, mesh) + low @ B, sharding(mesh))


@lora.mistake
def added_parts_to_a_whole(x, W, A, B, *, mesh):
    """JAX refused to add an unreduced array and a replicated one, because the replicated one would count once for
    every device. What could be left unreduced as well?"""
    return reshard(_parts(_cut(x, mesh), W, mesh) + jnp.dot(x @ A, B, out_sharding=sharding(mesh)), sharding(mesh))


@lora.mistake
def returned_unfinished_sums(x, W, A, B, *, mesh):
    """The two matmuls were added, but never summed over the devices, so each device returned its partial sum. Which
    call completes the sum?"""
    return _parts(_cut(x, mesh), W, mesh) + _parts(x @ A, B, mesh)


@lora.mistake
def x_was_left_whole(x, W, A, B, *, mesh):
    """JAX refused the unreduced matmul. Both operands have to be sharded in the same way along the contracted
    dimension, and here W is sharded over x, but the activations are replicated. What does it cost to shard a
    replicated array?"""
    return reshard(_parts(x, W, mesh) + _parts(x @ A, B, mesh), sharding(mesh))


@lora.mistake
def gathered_the_weights(x, W, A, B, *, mesh):
    """The weights were gathered, and every device computed the full result. The exercise allows one all-reduce of
    the result. What can each device compute from its own part of the weights?"""
    W, A, B = (reshard(weight, sharding(mesh)) for weight in (W, A, B))
    return x @ W + (x @ A) @ B
