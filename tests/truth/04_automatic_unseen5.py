"""Answers to lesson 04, fifth batch, written by a reader of the notebook only."""

import re
from collections import Counter

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")


# ---- count_collectives


def count_collectives__right_lines(text):
    found = {}
    text = re.sub(r'"(?:\\.|[^"\\])*"', "", text)
    for one in text.splitlines():
        name, equals, rest = one.partition(" = ")
        operation = re.search(r" ([a-z][a-z0-9-]*)\(", " " + rest) if equals else None
        if operation:
            kind = operation[1].removesuffix("-start")
            if kind in KINDS:
                found[kind] = found.get(kind, 0) + 1
    return found


# Thought that the word and a bracket is enough: counts what is quoted, and misses those that run in the background.
def count_collectives__wrong_bracket(text):
    return {kind: text.count(kind + "(") for kind in KINDS}


# Thought that the end of a collective is an instruction of its own, and counts start and done.
def count_collectives__wrong_done(text):
    text = re.sub(r'"[^"]*"', "", text)
    return dict(Counter(re.findall(rf" ({'|'.join(KINDS)})(?:-start|-done)?\(", text)))


# Thought that a line in which the word occurs is a line that does it: counts operands and users too.
def count_collectives__wrong_words(text):
    lines = re.sub(r'"[^"]*"', "", text).splitlines()
    return {kind: sum(kind in one for one in lines) for kind in KINDS}


# Counts right, and then names the kinds as the course's reports do, with underscores.
def count_collectives__wrong_names(text):
    text = re.sub(r'"[^"]*"', "", text)
    counted = Counter(re.findall(rf" ({'|'.join(KINDS)})(?:-start)?\(", text))
    return {kind.replace("-", "_"): number for kind, number in counted.items()}


# ---- predict_out

predict_out__right_long = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(None),
    "v + v.T": P("d", None),
    "v.reshape(-1)": P("d"),
    "v[0]": P(None),
    "v @ v": P("d", None),
}

# Thought that a transpose leaves the layout as it is.
predict_out__wrong_transpose = {
    "v.T": P("d"),
    "v.sum(0)": P(),
    "v + v.T": P("d"),
    "v.reshape(-1)": P("d"),
    "v[0]": P(),
    "v @ v": P("d"),
}

# Thought that a vector made of a cut matrix is cut as the matrix was.
predict_out__wrong_inherit = {
    "v.T": P(None, "d"),
    "v.sum(0)": P("d"),
    "v + v.T": P("d"),
    "v.reshape(-1)": P("d"),
    "v[0]": P("d"),
    "v @ v": P("d"),
}

# Thought that where the operands disagree, both are gathered and the result is whole.
predict_out__wrong_whole = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(),
    "v + v.T": P(),
    "v.reshape(-1)": P("d"),
    "v[0]": P(),
    "v @ v": P(),
}

# Thought that the columns of a product come from the second operand's cut, and that reshape loses the cut.
predict_out__wrong_second = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(),
    "v + v.T": P("d"),
    "v.reshape(-1)": P(),
    "v[0]": P(),
    "v @ v": P(None, "d"),
}


# ---- constrain


def constrain__right_out_shardings(v, *, mesh):
    wanted = NamedSharding(mesh, P("y", "x"))
    return jax.jit(lambda v: v + 1, out_shardings=wanted)(v)


# Thought that a constraint changes the array in place, and did not use what it returns.
def constrain__wrong_unused(v, *, mesh):
    result = v + 1
    jax.lax.with_sharding_constraint(result, NamedSharding(mesh, P("y", "x")))
    return result


# Thought that from P("x", "y") to P("y", "x") is a transpose.
def constrain__wrong_transposed(v, *, mesh):
    return jax.lax.with_sharding_constraint((v + 1).T, NamedSharding(mesh, P("y", "x")))


# Wrote a tuple as the one entry: cuts the rows over both axes.
def constrain__wrong_tuple(v, *, mesh):
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P(("y", "x"))))


# Made the lesson's mesh once more, so it is right on 4 x 2 only.
def constrain__wrong_fourbytwo(v, *, mesh):
    here = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(here, P("y", "x")))
