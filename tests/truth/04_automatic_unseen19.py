"""Answers to lesson 04, nineteenth batch, written by a reader of the notebook only."""

import re
from collections import Counter

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- contract
contract__right_paper = {
    "layout": P("y"),
    "device 0": [120, 126],
    "device 4": [120, 126],
    "collective": "all_reduce",
    "over": "x",
    "bytes sent": 8,
}

# Thought: the devices of one row of the mesh hold the same rows of v, so they add up with each other, over y.
contract__wrong_over_y = {
    "layout": P("y"),
    "device 0": [120, 126],
    "device 4": [120, 126],
    "collective": "all_reduce",
    "over": "y",
    "bytes sent": 12,
}

# Thought: b is the result of the sum, eight numbers of four bytes.
contract__wrong_whole_result = {
    "layout": P("y"),
    "device 0": [120, 126],
    "device 4": [120, 126],
    "collective": "all_reduce",
    "over": "x",
    "bytes sent": 32,
}

# Thought: every device keeps the sums of its own three rows, and the whole sum exists only as the array.
contract__wrong_partial_sums = {
    "layout": P("y"),
    "device 0": [24, 27],
    "device 4": [96, 99],
    "collective": "all_reduce",
    "over": "x",
    "bytes sent": 8,
}

# Thought: the mesh is the lesson's, x=4 and y=2, so a device has four columns, and four devices add up.
contract__wrong_lessons_mesh = {
    "layout": P("y"),
    "device 0": [120, 126, 132, 138],
    "device 4": [120, 126, 132, 138],
    "collective": "all_reduce",
    "over": "x",
    "bytes sent": 24,
}


# ---------------------------------------------------------------- count_collectives
def count_collectives__right_kind_by_kind(text):
    """How many collective instructions of each kind a compiled program has."""
    unquoted = re.sub(r'"(?:\\.|[^"\\])*"', "", text)
    kinds = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
    return {kind: len(re.findall(rf"(?<=\s){kind}(?:-start)?\(", unquoted)) for kind in kinds}


# Thought: -start and -done are endings that an operation may have, so both have to be matched.
def count_collectives__wrong_done_too(text):
    text = re.sub(r'"[^"]*"', "", text)
    kinds = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
    return dict(Counter(re.findall(rf" ({kinds})(?:-start|-done)?\(", text)))


# Thought: an instruction is "= type operation(", and a type is something without blanks (a tuple has some).
def count_collectives__wrong_type_without_blanks(text):
    text = re.sub(r'"[^"]*"', "", text)
    found = Counter()
    pattern = re.compile(r"= \S+ (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(-start)?\(")
    for row in text.splitlines():
        hit = pattern.search(row)
        if hit:
            found[hit.group(1)] += 1
    return dict(found)


# Thought: the kinds are called all_reduce and so on, as `communication` writes them.
def count_collectives__wrong_underscores(text):
    text = re.sub(r'"[^"]*"', "", text)
    kinds = re.findall(r"\s(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(", text)
    return dict(Counter(kind.replace("-", "_") for kind in kinds))


# Thought: where several collectives were merged into one with a tuple, each array of the tuple counts as a collective.
def count_collectives__wrong_arrays(text):
    text = re.sub(r'"[^"]*"', "", text)
    counts = {}
    kinds = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
    for shape, kind in re.findall(rf"= (\(.*?\)|\S+) ({kinds})(?:-start)?\(", text):
        counts[kind] = counts.get(kind, 0) + shape.count("[")
    return counts


# ---------------------------------------------------------------- constrain
def constrain__right_inner_jit(v, *, mesh):
    """v + 1, from P("x", "y") to P("y", "x")."""
    wanted = NamedSharding(mesh, P("y", "x"))
    return jax.jit(lambda u: u + 1, out_shardings=wanted)(v)


# Thought: to put it into a layout is what device_put is for (inside jit it leaves the layout to the compiler).
def constrain__wrong_device_put(v, *, mesh):
    return jax.device_put(v + 1, NamedSharding(mesh, P("y", "x")))


# Thought: from P("x", "y") to P("y", "x") is a transpose: dimension 0 and 1 change places.
def constrain__wrong_transpose(v, *, mesh):
    return jax.lax.with_sharding_constraint((v + 1).T, NamedSharding(mesh, P("y", "x")))


# Thought: first put the array together, then cut it anew (every device gets the whole array on the way, seven blocks).
def constrain__wrong_via_whole(v, *, mesh):
    whole = jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P()))
    return jax.lax.with_sharding_constraint(whole, NamedSharding(mesh, P("y", "x")))


# Thought: the mesh of this lesson is 4 × 2, so I make it where I need it (right on that mesh only).
def constrain__wrong_mesh_of_the_lesson(v, *, mesh):
    ours = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(ours, P("y", "x")))
