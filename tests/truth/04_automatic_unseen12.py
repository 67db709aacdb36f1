"""Answers to lesson 04, twelfth batch, written by a reader of the notebook only."""

import re
from collections import Counter

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- who_decides

who_decides__right_plain = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}

# Thought: jit compiles once for a shape and a type; where the blocks are is found out when it runs.
who_decides__wrong_one_program = {
    "jit compiles one program for all layouts": True,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}

# Thought: an entry of a product needs a whole row and a whole column, and no device has all of them.
who_decides__wrong_products_send = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": True,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}

# Thought: lesson 03 had an error where two committed arrays did not agree, and two layouts do not agree.
who_decides__wrong_layouts_must_agree = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": True,
    "a constraint can divide work before it": True,
}

# Thought: layouts go forward from the arguments; when a constraint comes, the value before it has been computed.
who_decides__wrong_forward_only = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": False,
}


# ---------------------------------------------------------------- constrain


def constrain__right_out_shardings(v, *, mesh):
    """v + 1, from P("x", "y") to P("y", "x")."""
    turned = NamedSharding(mesh, P("y", "x"))

    def add_one(a):
        return a + 1

    return jax.jit(add_one, out_shardings=turned)(v)


# Thought: device_put brings an array into a layout, inside jit as outside of it.
def constrain__wrong_device_put(v, *, mesh):
    turned = NamedSharding(mesh, P("y", "x"))
    return jax.device_put(v + 1, turned)


# Thought: P takes the tuple of the axes, first y and then x.
def constrain__wrong_one_tuple(v, *, mesh):
    axes = ("y", "x")
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P(axes)))


# Thought: one dimension after the other: each constraint cuts one, and None leaves the other one as it is.
def constrain__wrong_one_dimension_each(v, *, mesh):
    rows_over_y = NamedSharding(mesh, P("y", None))
    columns_over_x = NamedSharding(mesh, P(None, "x"))
    result = jax.lax.with_sharding_constraint(v + 1, rows_over_y)
    return jax.lax.with_sharding_constraint(result, columns_over_x)


# Thought: P("y", "x") is P("x", "y") transposed, and a transpose sends nothing.
def constrain__wrong_transposed(v, *, mesh):
    result = (v + 1).T
    return jax.lax.with_sharding_constraint(result, NamedSharding(mesh, P("y", "x")))


# ---------------------------------------------------------------- count_collectives


def count_collectives__right_words(text):
    """How many collective instructions of each kind a compiled program has."""
    kinds = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
    unquoted = re.sub(r'"(?:\\.|[^"\\])*"', "", text)
    counts = {}
    for word in unquoted.split():
        operation, bracket, _ = word.partition("(")  # a word such as all-reduce(%dot.3),
        operation = operation.removesuffix("-start")
        if bracket and operation in kinds:
            counts[operation] = counts.get(operation, 0) + 1
    return counts


# Thought: between the sign = and the operation stands the type, which is one word.
def count_collectives__wrong_type_is_a_word(text):
    kinds = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
    unquoted = re.sub(r'"[^"]*"', "", text)
    instruction = re.compile(rf"= \S+ ({kinds})(?:-start)?\(")
    found = [match.group(1) for match in instruction.finditer(unquoted)]
    return dict(Counter(found))


# Thought: each group of devices works for itself, so an instruction with four groups is four collectives.
def count_collectives__wrong_each_group(text):
    kinds = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"

    def groups(instruction):
        short = re.search(r"replica_groups=\[(\d+),", instruction)
        if short:
            return int(short.group(1))
        written_out = re.search(r"replica_groups=\{([\d,{} ]*)\}", instruction)
        return max(1, written_out.group(1).count("{")) if written_out else 1

    counts = Counter()
    for instruction in re.sub(r'"[^"]*"', "", text).splitlines():
        match = re.search(rf" ({kinds})(?:-start)?\(", instruction)
        if match:
            counts[match.group(1)] += groups(instruction)
    return dict(counts)


# Thought: instructions are named after what they do, so it is enough to read the names left of the sign =.
def count_collectives__wrong_by_name(text):
    kinds = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
    name = re.compile(rf"^\s*(?:ROOT )?%?({kinds})(?:-start)?(?:\.\d+)* = ", re.MULTILINE)
    return dict(Counter(name.findall(re.sub(r'"[^"]*"', "", text))))


# Thought: a collective in the background is two instructions, start and done, and instructions are what is counted.
def count_collectives__wrong_start_and_done(text):
    kinds = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
    unquoted = re.sub(r'"[^"]*"', "", text)
    operation = re.compile(rf" ({kinds})(?:-start|-done)?\(")
    return dict(Counter(operation.findall(unquoted)))
