"""What errors of JAX mean, by their names in `grader.exercises.errors`: what is wrong | what to ask or do."""

from __future__ import annotations

from grader.findings.problems import ErrorMeaning
from grader.wording.said import Said, says

ERROR_WORDS = {
    "contracted": "The contracted dimension is sharded in both operands. On an Explicit mesh JAX doesn't choose how "
    "the matmul's result is sharded. | Which sharding should it have? Say so with `out_sharding=`, or `reshard` an "
    "operand.",
    "two dimensions": "Two dimensions of the result would be sharded over the same mesh axis. | Which should give way? "
    "Say so with `out_sharding=`, or `reshard` an operand.",
    "other shardings": "The operands have different shardings, and on an Explicit mesh JAX moves nothing on its own. | "
    "Which of them should you `reshard`?",
    "indexing": "The types don't determine the sharding of the elements you pick. | Say it with "
    "`a.at[index].get(out_sharding=...)`.",
    "unreduced": "Each device holds only a partial sum of an unreduced array. You can add such arrays; almost "
    "everything else needs the sum first. | Where should `reshard` make the sum?",
    "along sharded": "The operation runs along a sharded dimension, so each device would need data from others. | "
    "`reshard` first, or use `auto_axes` to leave it to the compiler.",
    "no mesh": "A bare `P`, or a `shard_map` without `mesh=`, doesn't say which mesh is meant, and none is set here. | "
    "Pass `mesh=`, or write `NamedSharding(mesh, P(...))`.",
    "no in_specs": "Along Auto axes an array's type doesn't include its sharding, so `shard_map` has to be told. | "
    "Which spec does each argument need in `in_specs`?",
    "constraint": "`with_sharding_constraint` is for Auto axes. On an Explicit mesh, the sharding is part of the type. "
    "| Use `reshard` to change it.",
    "no out_sharding": "Inside `auto_axes` the compiler decides, so you have to say how the result is sharded. | Call "
    "the wrapped function with `out_sharding=`.",
    "axis twice": "A mesh axis appears twice in one array's spec. An axis can shard only one dimension, and only once. "
    "| Which dimension do you mean?",
    "varying": "`out_specs` say that every device along an axis returns the same block, and JAX can't tell that it "
    "does. Keep the check on, unless the exercise says otherwise. | Is a collective over that axis missing, or should "
    "`out_specs` name the axis?",
    "matmul shapes": "The sizes of the contracted dimension differ. Inside `shard_map` each device sees only its "
    "blocks, and `all_gather` without `tiled=True` adds a dimension. | Which shapes did you expect here?",
    "matmul batches": "All dimensions before the last two must have equal sizes and shardings, or size 1. `all_gather` "
    "without `tiled=True` adds a dimension. | Does one of the arrays have a dimension that you didn't expect?",
    "vmap": "`jax.vmap` maps over several arrays at once, and their mapped dimensions have different sizes. | Which "
    "dimension of each is mapped (`in_axes`, by default the first)?",
    "not divisible": "A dimension can't be split into that many equal parts. | Which dimension did you mean to split, "
    "and over which axis?",
    "broadcasting": "Compared from the last dimension backward, the sizes must be equal or 1. Inside `shard_map` you "
    "see a block, which is smaller than the full array. | Which of these arrays has a shape you didn't expect?",
    "None": "Something, such as a mesh, is `None` here. | Which of the arguments you pass on is `None` in this call?",
    "no message": "If it isn't your own `assert`, it is JAX's. Inside `shard_map` it usually means that a collective "
    "names an axis that the mesh doesn't have. | Which axis does each collective name?",
    "no such axis": "A collective or a spec names an axis that isn't there. | Which axes are in "
    "`mesh.axis_names`, and is this inside a `shard_map` over that mesh?",
    "same along axis": "The sum runs over an axis along which all devices already hold the same value, or that the "
    "mesh doesn't have. | Along which axes does the value vary?",
    "pcast": "`jax.lax.pcast` changes along which axes a value may vary. | Along which does this one vary before it, "
    "according to `jax.typeof`?",
    "spec too long": "The spec has more entries than the array has dimensions. | Is it the spec or the shape that you "
    "didn't expect?",
    "out_spec too long": "A spec has more entries than the block has dimensions. | Did a collective drop a dimension "
    "(`tiled=True` keeps it), or did a sum remove it?",
    "other devices": "The operands, or the mesh, use different devices, or the same ones in another order. JAX doesn't "
    "move committed arrays on its own. | What did you mean to move, and where to?",
    "deleted": "The array's memory was freed or donated, perhaps through another array that shares it. | Where is it "
    "deleted or donated?",
    "other memory": "One operand is in device memory and another in host memory, and JAX doesn't move either on its "
    "own. | Move one with `jax.device_put(a, a.sharding.with_memory_kind(...))`.",
    "not manual": "`in_specs` and `out_specs` may name only manual axes: those in `axis_names`, or without it "
    "all axes of the mesh. An array may be sharded along others without saying so. | Which axes do you mean?",
    "device list": "`device_put` takes one sharding or device, or a tree of them that matches the arrays; a list of "
    "devices is such a tree. | Which sharding spreads one array over several devices?",
    "other tree": "The specs or shardings don't have the same structure as the arrays they describe. `in_specs` and "
    "`in_shardings` are tuples with an entry per argument; one entry may stand for a whole list or dict. | Which "
    "arguments or results are there?",
    "carry shape": "A loop's carry must leave each iteration with the shape and dtype it came in with. | What does one "
    "iteration do to the part that JAX names?",
    "carry varies": "A loop's carry must keep its type. Inside `shard_map` the type includes the axes along which a "
    "value varies. | May it vary here? Then give the initial value the final type (`jax.lax.pcast`); if not, which "
    "collective is missing?",
    "branches": "All branches of a `cond` must return the same type: shape, dtype and, inside `shard_map`, the axes "
    "along which a value varies. | Would `jnp.where` do, with the collectives outside of the branches?",
    "traced key": "A traced array is used as an axis name, a dict key, or a set element. | What did you mean to use?",
    "unhashable": "Dict keys, set elements, and specs have to be hashable. Lists, dicts, arrays, and (before Python "
    "3.12) slices aren't. | Which number, string, or tuple could you use?",
    "no such name": "A dict, or something like it, doesn't have this key. | Which keys does it have, and which one did "
    "you mean?",
    "no such key": "A dict, or something like it, doesn't have this key. | Which keys does it have, and what else can "
    "appear there, such as a tuple or None?",
    "out of range": "The index is past the end. | How long can it be in this case, and where do you start counting?",
    "reshape": "A reshape keeps the number of elements. | How many are there, and how many does the new shape have?",
    "not as many": "Without `tiled=True`, the dimension that is split must have exactly as many elements as the axis "
    "has devices. | Is this the dimension you meant?",
    "mask": "In a traced program, all shapes must be known in advance, and how many elements a mask selects isn't. | "
    "What keeps the shape, with another value where the mask is false?",
    "function": "JAX expected an array and got a function. `jax.shard_map` and `jax.jit` return functions. | Have you "
    "called it?",
    "mesh traced": "A mesh was passed to a jitted function, which takes every argument for an array. | Name it in "
    "`static_argnames`, or jit an inner function that doesn't take it.",
    "no array": "JAX expected an array and got something else; the message names it or its type. | Were two arguments "
    "swapped, or does a list need `jnp.asarray`?",
    "traced condition": "Python can't branch on a value that only the devices know: not in `if` or `while`, nor with "
    "`and`, `or`, `not`, `min`, or `max`. | Can you use `jnp.where`, or compute it from static shapes?",
    "traced number": "Python or NumPy needs a number that only the devices know. | Can you use `jax.numpy` or "
    "`jax.lax`, or compute it from static shapes?",
    "ppermute": "In one `ppermute` each device sends at most once and receives at most once. | Which one is a source "
    "or a destination twice? (The last device is followed by the first.)",
    "einsum": "In `einsum` each dimension of an operand has a letter, and each letter one size. Inside `shard_map` a "
    "block is smaller than the full array. | Which shapes do the operands have?",
    "arguments of JAX": "This function of JAX was called with arguments that don't fit. | Which arguments does it "
    "take, and what are they called?",
    "arguments": "A function was called with arguments that don't fit. If it's your answer, keep the parameters of the "
    "starter. | Which parameters does it have?",
    "NamedSharding": "`NamedSharding` takes a mesh first and a spec second. | Is that what you pass?",
    "negative dimension": "A dimension is given by a negative number. | Which dimension is it, counted from the front?",
    "NumPy": "This is a NumPy array, and only JAX arrays have this attribute. | Does it need `jnp.asarray`?",
}


@says(ErrorMeaning)
def _(f: ErrorMeaning) -> Said:
    cause, _, question = ERROR_WORDS[f.name].partition(" | ")
    return Said(cause=cause, question=question)


def error_words(f: ErrorMeaning) -> str:
    """What an error means, in one paragraph."""
    return ERROR_WORDS[f.name].replace(" | ", " ")
