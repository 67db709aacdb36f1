"""§ 2–3, 6–7, 9: questions, and one function, answered by trying what they ask about."""

from __future__ import annotations

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import aval, make_mesh
from grader.exercises import Case, FunctionExercise, TableExercise
from grader.programs.walk import compiled_structure

MESH = {"x": 4, "y": 2}  # the mesh of the lesson

# Three modes. Each claim is tried in all of them, and holds in exactly one.

MODES = ("Auto", "Explicit", "Manual")
ROWS, COLUMNS = P("x", None), P(None, "x")


def _in_manual(body, mesh):
    return jax.shard_map(body, mesh=mesh, in_specs=(ROWS, COLUMNS), out_specs=P("x"), check_vma=False)


def _holds(body, mode: str) -> bool:
    """Whether `body(rows, columns, layout)` can be traced in this mode; `layout(spec)` makes a sharding on its mesh."""
    mesh = make_mesh(MESH, explicit=mode == "Explicit")

    def written(rows, columns):
        return body(rows, columns, lambda *parts: NamedSharding(mesh, P(*parts)))

    arrays = [aval((16, 16), np.float32, spec, mesh) for spec in (ROWS, COLUMNS)]
    try:
        jax.eval_shape(_in_manual(written, mesh) if mode == "Manual" else written, *arrays)
    except Exception:  # whatever JAX says: it doesn't hold
        return False
    return True


def _sees_a_block(rows, columns, layout):
    assert rows.shape == (4, 16)
    return rows


def _sees_axes_in_the_type(rows, columns, layout):
    assert rows.shape == (16, 16) and tuple(jax.typeof(rows).sharding.spec) == ("x", None)
    return rows


def _passes_a_block_on(rows, columns, layout):
    ring = [(k, (k + 1) % MESH["x"]) for k in range(MESH["x"])]
    return lax.ppermute(rows, "x", ring)


def _adds_what_does_not_match(rows, columns, layout):
    return rows + columns


def _hints(rows, columns, layout):
    assert rows.shape == (16, 16)
    return lax.with_sharding_constraint(rows, layout(None, "x"))


def _sums_over_devices(rows, columns, layout):
    return lax.psum(rows, "x")


CLAIMS = {
    "a.shape is that of one device's block": _sees_a_block,
    "a.shape is that of the full array, and jax.typeof(a) shows its sharding": _sees_axes_in_the_type,
    "you call jax.lax.psum": _sums_over_devices,
    "you see the full array, and with_sharding_constraint reshards it": _hints,
    "sharded by rows + sharded by columns runs, and the compiler picks the sharding": _adds_what_does_not_match,
    "you overlap a ppermute with a matmul, step by step": _passes_a_block_on,
}


@functools.cache
def _only_mode(claim: str) -> str:
    (mode,) = [mode for mode in MODES if _holds(CLAIMS[claim], mode)]
    return mode


modes = TableExercise("modes", points=2, reference=_only_mode)
modes.rows(CLAIMS, argument="claim")


def _for(claim, wanted, wrong):
    return wrong if CLAIMS[claim] in wanted else None


@modes.mistake
def collectives_in_explicit_mode(claim):
    """Explicit mode is explicit about *shardings*. The compiler still inserts the collectives, because your
    function sees full arrays. In which mode is it the program of one device?"""
    return _for(claim, (_sums_over_devices, _passes_a_block_on), "Explicit")


@modes.mistake
def collectives_in_auto_mode(claim):
    """Under jit on an Auto mesh you see full arrays, and the compiler inserts the collectives. A psum or a ppermute
    belongs to the program of one device. In which mode do you write that?"""
    return _for(claim, (_sums_over_devices, _passes_a_block_on), "Auto")


@modes.mistake
def blocks_in_explicit_mode(claim):
    """On an Explicit mesh, the type of an array shows its sharding, but its lengths are those of the full array.
    Which mode shows you a block?"""
    return _for(claim, (_sees_a_block,), "Explicit")


@modes.mistake
def types_in_manual_mode(claim):
    """Inside shard_map you see blocks, so a.shape isn't that of the full array. Which mode keeps the global view,
    and adds the sharding to it?"""
    return _for(claim, (_sees_axes_in_the_type,), "Manual")


@modes.mistake
def types_in_auto_mode(claim):
    """On an Auto mesh, the compiler decides about the shardings, and under jit `jax.typeof` shows none of them.
    Which mode adds them to the type?"""
    return _for(claim, (_sees_axes_in_the_type,), "Auto")


@modes.mistake
def hints_in_explicit_mode(claim):
    """On an Explicit mesh, the compiler has nothing to choose: JAX refuses a constraint, and stops if operands
    disagree. Which mode leaves the choice open?"""
    return _for(claim, (_hints, _adds_what_does_not_match), "Explicit")


@modes.mistake
def hints_in_manual_mode(claim):
    """Inside shard_map, arrays are blocks of one device, and the compiler decides nothing. Which mode leaves it a
    choice?"""
    return _for(claim, (_hints, _adds_what_does_not_match), "Manual")


# Types. The arrays of the statement, by the names used there; the rows of the table are the expressions themselves.

ARRAYS = {
    "a": ((16, 8), P("x", "y")),
    "v": ((16,), P("x")),
    "w": ((8,), P("y")),
    "r": ((32, 16), P("x", None)),
    "s": ((16, 24), P(None, "y")),
}

EXPRESSIONS = (
    "jnp.sin(a).T",
    "a.sum(0)",
    "v[:, None] * w",
    "r @ s",
)


def _evaluated(expression: str, given: dict) -> str:
    """The type of an author's expression over these arrays, as `jax.typeof` prints it; JAX's errors pass through."""
    mesh, found = make_mesh(MESH, explicit=True), []
    avals = {name: aval(shape, np.float32, spec, mesh) for name, (shape, spec) in given.items()}

    def noted(arrays):
        result = eval(expression, {"jax": jax, "jnp": jnp, **arrays})
        found.append(str(jax.typeof(result)))
        return result

    jax.eval_shape(noted, avals)
    return found[0]


@functools.cache
def _type(expression: str) -> str:
    return _evaluated(expression, ARRAYS)


def _dims(text: str) -> list[str]:
    """The dimensions in a type. Dtype and brackets may be left out."""
    match = re.fullmatch(r"(?:f32|float32)?\[?([^][]*)\]?", re.sub(r"\s", "", text))
    if not match:
        raise ValueError(f"{text!r} isn't a type such as float32[16@x,8]")
    return match[1].split(",")


def _same_type(one, other, expression):
    return _dims(one) == _dims(other)


typeof = TableExercise("typeof", points=3, reference=_type, same=_same_type)
typeof.rows(EXPRESSIONS, argument="expression")


def _written(dims):
    return f"float32[{','.join(dims)}]"


@typeof.mistake
def wrote_the_block(expression):
    """These are the lengths of one device's block. A type has the lengths of the full array, and the axis after the
    @: `16@x` is a dimension of length 16, sharded over x. What are the full lengths?"""
    dims = [dim.partition("@") for dim in _dims(_type(expression))]
    blocks = [f"{int(n) // MESH[axis]}{at}{axis}" if axis else n for n, at, axis in dims]
    return _written(blocks) if any(axis for _, _, axis in dims) else None


@typeof.mistake
def left_the_axes_out(expression):
    """The axes are missing. A result stays sharded if each device can compute its own part of it. Which dimensions
    of the operands does this one keep, and over which axes are they sharded?"""
    dims = _dims(_type(expression))
    return _written(dim.partition("@")[0] for dim in dims) if any("@" in dim for dim in dims) else None


@typeof.mistake
def axes_stayed_in_place(expression):
    """The dimensions changed places, but the axes didn't. What does an axis belong to?"""
    return "float32[8@x,16@y]" if expression == "jnp.sin(a).T" else None


@typeof.mistake
def lengths_stayed_in_place(expression):
    """The axes changed places, but the lengths didn't. A dimension moves with everything it has. What else belongs
    to it?"""
    return "float32[16@y,8@x]" if expression == "jnp.sin(a).T" else None


@typeof.mistake
def kept_the_summed_dimension(expression):
    """`a.sum(0)` sums along dimension 0, which disappears together with its axis. Which dimension is left?"""
    return "float32[16@x]" if expression == "a.sum(0)" else None


@typeof.mistake
def looked_at_one_operand(expression):
    """This has the axis of one operand only. Each dimension of the result takes the axis of the dimensions that it
    comes from, in *both* operands. Which dimension does the other operand contribute?"""
    return {"v[:, None] * w": "float32[16@x,8]", "r @ s": "float32[32@x,24]"}.get(expression)


# Which rule stops it? All arrays are 16 × 16: R has rows over x, C has columns over x, and N is replicated.

SQUARE = {
    "R": ((16, 16), P("x", None)),
    "C": ((16, 16), P(None, "x")),
    "N": ((16, 16), P()),
}

TRIED = (
    "R + C",
    "C @ R",
    "C @ N",
    "R[0]",
)

# The rules, by what JAX 0.7 to 0.12 say when one of them stops a program.
STOPPED = {
    "rule 2": r"it is ambiguous|incompatible shardings|consistent sharding|should have the same sharding",
    "rule 3": r"illegally sharded",
    "own rule": r"\.at\[\.\.\.\]|slicing on sharded dims|0th dimension of all xs",
}


@functools.cache
def _outcome(expression: str) -> str:
    """The result of an expression over SQUARE: "ok", or the rule that stops it."""
    try:
        _evaluated(expression, SQUARE)
    except Exception as error:
        (rule,) = [rule for rule, said in STOPPED.items() if re.search(said, str(error))]
        return rule
    return "ok"


will_it_type = TableExercise("will_it_type", points=3, reference=_outcome)
will_it_type.rows(TRIED, argument="expression")


@will_it_type.mistake
def left_a_sum_open(expression):
    """The contracted dimension is sharded on both sides, so each device has a partial sum of every element. How
    many shardings can the complete result have, and did the program choose one?"""
    return "ok" if expression == "C @ R" else None


@will_it_type.mistake
def let_it_run(expression):
    """This runs on an Auto mesh. On an Explicit mesh, one sharding has to follow from the operands. Which axis does
    each dimension of the result get, and does one occur twice?"""
    return "ok" if _outcome(expression) in ("rule 2", "rule 3") and expression != "C @ R" else None


@will_it_type.mistake
def stopped_what_agrees(expression):
    """A replicated dimension agrees with a sharded one, and only two *different* axes disagree. Is there a
    dimension with two answers here?"""
    return "rule 2" if _outcome(expression) == "ok" else None


@will_it_type.mistake
def took_the_mismatch_for_the_double(expression):
    """Rule 3 looks at the finished type, and here there is none yet: a dimension has several answers. Which rule is
    about that?"""
    return "rule 3" if _outcome(expression) == "rule 2" else None


@will_it_type.mistake
def took_the_double_for_the_mismatch(expression):
    """Each dimension of the result has one clear answer, so rule 2 is satisfied. Write these answers side by side.
    Which axis occurs twice?"""
    return "rule 2" if _outcome(expression) == "rule 3" else None


@will_it_type.mistake
def let_it_cross_the_cut(expression):
    """This picks from a sharded dimension, and the element may be on another device. Indexing doesn't fetch it.
    Which kind of rule do operations along a dimension have?"""
    return "ok" if _outcome(expression) == "own rule" else None


@will_it_type.mistake
def blamed_the_general_rules(expression):
    """There is only one operand, so nothing can disagree. The operation runs along a dimension. Which kind of rule
    does it have for that?"""
    return "rule 2" if _outcome(expression) == "own rule" else None


# One matmul, four shardings: what has to be sent?

LAYOUTS = {
    "P()": P(),
    'P("x", None)': P("x", None),
    'P(None, "x")': P(None, "x"),
    'P(unreduced={"x"})': P(unreduced={"x"}),
}
WHOLE, *CUT, WAITING = LAYOUTS
SUMS = ("all_reduce", "reduce_scatter")


@functools.cache
def _sent(layout: str) -> str:
    """The collective in the compiled product of f32[16,32@x] and f32[32@x,24] with this out_sharding."""
    mesh = make_mesh(MESH, explicit=True)
    a, b = aval((16, 32), np.float32, P(None, "x"), mesh), aval((32, 24), np.float32, P("x", None), mesh)

    def product(a, b):
        return jnp.dot(a, b, out_sharding=NamedSharding(mesh, LAYOUTS[layout]))

    compiled = jax.jit(product).lower(a, b).compile()
    sent = {c.kind for c in compiled_structure(compiled, MESH).collectives if c.group > 1}
    return " and ".join(sorted(sent)) or "none"


def _same_collective(one, other, layout):
    """XLA on a CPU writes a reduce_scatter as an all_reduce and a slice: if the sum ends sharded, either is correct."""
    return one == other or layout in CUT and {one, other} <= set(SUMS)


LEAST = {
    "all_gather": "An all_gather collects complete blocks. Does any device have a complete block here?",
    "all_reduce": "After an all_reduce, all devices have the sums. Does this sharding ask for that?",
    "reduce_scatter": "After a reduce_scatter, each device has its part of the sums. Is this result sharded?",
    "none": "If nothing is sent, each device keeps its partial sum of every element. Does this sharding say so?",
}

four_answers = TableExercise("four_answers", points=2, reference=_sent, same=_same_collective, options=LEAST)
four_answers.rows(LAYOUTS, argument="layout")


@four_answers.mistake
def gathered_for_a_layout(layout):
    """A gather collects complete blocks. Here each device has a partial sum of every element. Which collectives
    combine *partial sums*?"""
    return None if layout == WAITING else "all_gather"


@four_answers.mistake
def nothing_for_a_cut(layout):
    """The result is sharded, but each element of a device's block is a sum over all of J, and no device has all of
    J. What has to be sent?"""
    return "none" if layout in CUT else None


@four_answers.mistake
def nothing_for_a_whole(layout):
    """The result is replicated, so each device needs all complete sums, and has only a partial sum of each. What
    has to be sent?"""
    return "none" if layout == WHOLE else None


@four_answers.mistake
def scattered_a_whole(layout):
    """A reduce-scatter leaves each device only its part of the sums. What does `P()` ask for?"""
    return "reduce_scatter" if layout == WHOLE else None


@four_answers.mistake
def summed_what_may_wait(layout):
    """`unreduced` leaves the partial sums where they are, and the sum is postponed. Which collective runs
    before then?"""
    return "all_reduce" if layout == WAITING else None


# What may be done with a postponed sum. p is a matmul left unreduced over x, and N is replicated.

DEFERRED = {
    "p + p": lambda p, whole, done: p + p,
    "jnp.cos(p)": lambda p, whole, done: jnp.cos(p),
    "p * p": lambda p, whole, done: p * p,
    "p + N": lambda p, whole, done: p + whole,
    "reshard(p, replicated)": lambda p, whole, done: reshard(p, done),
}


@functools.cache
def _deferred(step: str) -> str:
    """Whether a step on an unreduced array can be traced."""
    mesh = make_mesh(MESH, explicit=True)
    a, b = aval((16, 32), np.float32, P(None, "x"), mesh), aval((32, 24), np.float32, P("x", None), mesh)

    def tried(a, b, whole):
        p = jnp.dot(a, b, out_sharding=NamedSharding(mesh, P(unreduced={"x"})))
        return DEFERRED[step](p, whole, NamedSharding(mesh, P()))

    try:
        jax.eval_shape(tried, a, b, aval((16, 24), np.float32, P(), mesh))
    except Exception as error:
        if "unreduced" not in str(error):
            raise
        return "no"
    return "yes"


unreduced = TableExercise("unreduced", points=2, reference=_deferred)
unreduced.rows(DEFERRED, argument="step")


@unreduced.mistake
def took_the_cosine_of_parts(step):
    """cos(1) + cos(2) isn't cos(1 + 2). An operation on partial sums has to commute with adding. Does the cosine?"""
    return "yes" if step == "jnp.cos(p)" else None


@unreduced.mistake
def multiplied_the_parts(step):
    """(1 + 2) · (1 + 2) is 9, but 1 · 1 + 2 · 2 is 5. The product of two sums needs every part of one with every
    part of the other. Does a device have them?"""
    return "yes" if step == "p * p" else None


@unreduced.mistake
def added_a_whole_array(step):
    """A replicated array has the same values on every device. If each device adds it to its partial sum, how often
    is it in the complete sum?"""
    return "yes" if step == "p + N" else None


@unreduced.mistake
def refused_to_add(step):
    """These are two partial sums over the same axis. If each device adds its parts first, and the devices sum
    afterward, is the result different?"""
    return "no" if step == "p + p" else None


@unreduced.mistake
def refused_to_finish(step):
    """`reshard` is what completes the sum: it changes an unreduced array into one that isn't, with an all-reduce or
    a reduce-scatter. Is there a reason to refuse that?"""
    return "no" if step == "reshard(p, replicated)" else None


# A mesh over four of the devices.


def _half(second):
    return jax.devices()[4:8] if second else jax.devices()[:4]


def _mesh(sizes, devices, kind=AxisType.Explicit):
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(kind,) * len(sizes), devices=devices)


half_mesh = FunctionExercise("half_mesh", points=2, reference=lambda second, sizes: _mesh(sizes, _half(second)))


@half_mesh.cases
def _(draw):
    for second in (False, True):
        yield Case({"second": second, "sizes": {"x": 4}})
        yield Case({"second": second, "sizes": {"x": 2, "y": 2}})
        yield Case({"second": second, "sizes": {"rows": 1, "columns": 4}})


@half_mesh.mistake
def always_the_first_half(second, sizes):
    """The mesh has the first four devices, which `make_mesh` takes without `devices=`. Which four does the call ask
    for?"""
    return _mesh(sizes, jax.devices()[:4])


@half_mesh.mistake
def auto_by_habit(second, sizes):
    """The devices are correct, but the axes are Auto, as `Mesh(devices, names)` makes them, for example. How do you
    choose the types of the axes?"""
    return _mesh(sizes, _half(second), AxisType.Auto)


@half_mesh.mistake
def every_other_device(second, sizes):
    """The mesh has every second device. Which four are consecutive?"""
    return _mesh(sizes, jax.devices()[int(second) :: 2])


@half_mesh.mistake
def one_type_for_all_axes(second, sizes):
    """`axis_types` has one entry, but the mesh can have several axes. How many types does it need?"""
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,), devices=_half(second))


@half_mesh.mistake
def kept_one_axis(second, sizes):
    """The four devices are along a single axis. `sizes` has the length and the name of each axis. How many axes
    does the call ask for?"""
    return _mesh({next(iter(sizes)): 4}, _half(second))
