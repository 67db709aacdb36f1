"""§ 2–3, 5, 7–8: questions, and one function, answered by trying what they ask about."""

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
    """Whether `body(rows, columns, layout)` can be traced in this mode; `layout(spec)` names a layout on its mesh."""
    mesh = make_mesh(MESH, explicit=mode == "Explicit")

    def written(rows, columns):
        return body(rows, columns, lambda *parts: NamedSharding(mesh, P(*parts)))

    arrays = [aval((16, 16), np.float32, spec, mesh) for spec in (ROWS, COLUMNS)]
    try:
        jax.eval_shape(_in_manual(written, mesh) if mode == "Manual" else written, *arrays)
    except Exception:  # whatever JAX says: it does not hold
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
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": _sees_axes_in_the_type,
    "you call jax.lax.psum": _sums_over_devices,
    "a is whole to you, and with_sharding_constraint moves it": _hints,
    "rows-cut + columns-cut runs, and the compiler picks the layout": _adds_what_does_not_match,
    "you overlap a ppermute with a product, step by step": _passes_a_block_on,
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
    """Explicit mode is explicit about *layouts*. Collectives are still written by the compiler: your function sees
    whole arrays, and there is no single device to speak for. In which mode are you on one device?"""
    return _for(claim, (_sums_over_devices, _passes_a_block_on), "Explicit")


@modes.mistake
def collectives_in_auto_mode(claim):
    """Under jit on an Auto mesh you see whole arrays, and the compiler writes the collectives. A psum or a ppermute
    needs a program written for one device: in which mode is that?"""
    return _for(claim, (_sums_over_devices, _passes_a_block_on), "Auto")


@modes.mistake
def blocks_in_explicit_mode(claim):
    """The type of an array on an Explicit mesh says how it is cut, but the numbers in it are those of the whole array.
    Only one mode shows you a block."""
    return _for(claim, (_sees_a_block,), "Explicit")


@modes.mistake
def types_in_manual_mode(claim):
    """Inside shard_map you see blocks, so a.shape is not that of the whole array. Which mode keeps the global view and
    adds the layout to it?"""
    return _for(claim, (_sees_axes_in_the_type,), "Manual")


@modes.mistake
def types_in_auto_mode(claim):
    """On an Auto mesh the layout is the compiler's affair: under jit, jax.typeof shows none of it."""
    return _for(claim, (_sees_axes_in_the_type,), "Auto")


@modes.mistake
def hints_in_explicit_mode(claim):
    """On an Explicit mesh the compiler has nothing to choose: a constraint is refused there, and operands that do not
    match are an error. Which mode leaves the choice open?"""
    return _for(claim, (_hints, _adds_what_does_not_match), "Explicit")


@modes.mistake
def hints_in_manual_mode(claim):
    """Inside shard_map the arrays are blocks of one device, and nobody else decides anything. A choice for the compiler
    is left in another mode."""
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
    "a + v[:, None]",
    "v[:, None] * w",
    "r @ s",
    "jax.grad(lambda a: (a * a).sum())(a)",
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
    """What stands between the brackets of a type, entry by entry. Dtype and brackets may be left out."""
    match = re.fullmatch(r"(?:f32|float32)?\[?([^][]*)\]?", re.sub(r"\s", "", text))
    if not match:
        raise ValueError(f"{text!r} is no type such as float32[16@x,8]")
    return match[1].split(",")


def _same_type(one, other, expression):
    return _dims(one) == _dims(other)


typeof = TableExercise("typeof", points=3, reference=_type, same=_same_type)
typeof.rows(EXPRESSIONS, argument="expression")


def _written(dims):
    return f"float32[{','.join(dims)}]"


@typeof.mistake
def wrote_the_block(expression):
    """These are the lengths of one device's block. A type tells the lengths of the whole array, and behind the @ the
    axis that cuts it: `16@x` is a dimension of 16, cut over x."""
    dims = [dim.partition("@") for dim in _dims(_type(expression))]
    blocks = [f"{int(n) // MESH[axis]}{at}{axis}" if axis else n for n, at, axis in dims]
    return _written(blocks) if any(axis for _, _, axis in dims) else None


@typeof.mistake
def left_the_axes_out(expression):
    """An operation on a cut array gives a cut array wherever each device can compute its own part of the result. Which
    dimensions of the operands does this one keep, and over what are they cut?"""
    dims = _dims(_type(expression))
    return _written(dim.partition("@")[0] for dim in dims) if any("@" in dim for dim in dims) else None


@typeof.mistake
def axes_stayed_in_place(expression):
    """Here the dimensions changed places and the axes stayed where they stood. An axis belongs to its dimension, and
    moves with it."""
    return "float32[8@x,16@y]" if expression == "jnp.sin(a).T" else None


@typeof.mistake
def lengths_stayed_in_place(expression):
    """Here the axes changed places and the lengths stayed where they stood. A dimension moves as a whole: what goes
    with its axis?"""
    return "float32[16@y,8@x]" if expression == "jnp.sin(a).T" else None


@typeof.mistake
def kept_the_summed_dimension(expression):
    """`a.sum(0)` adds along dimension 0, which disappears together with its axis. Which dimension is left?"""
    return "float32[16@x]" if expression == "a.sum(0)" else None


@typeof.mistake
def looked_at_one_operand(expression):
    """Each dimension of the result takes the axis of the dimensions that it comes from, in *both* operands. A dimension
    of length 1 comes from nowhere: it is stretched, and says nothing."""
    return {"v[:, None] * w": "float32[16@x,8]", "a + v[:, None]": "float32[16@x,8]", "r @ s": "float32[32@x,24]"}.get(
        expression
    )


@typeof.mistake
def type_of_the_loss(expression):
    """That is the type of the sum, a single number. A gradient says of each entry of `a` how the sum changes with it:
    how many entries has it, and on which devices are they?"""
    return "float32[]" if expression.startswith("jax.grad") else None


# Which rule stops it? All arrays 16 × 16: R rows over x, C columns over x, Y rows over y, N whole.

SQUARE = {
    "R": ((16, 16), P("x", None)),
    "C": ((16, 16), P(None, "x")),
    "Y": ((16, 16), P("y", None)),
    "N": ((16, 16), P()),
}

TRIED = (
    "R + N",
    "R + C",
    "C @ R",
    "R @ C",
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
    """What becomes of an expression over SQUARE: "ok", or the rule that stops it."""
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
    """Each dimension of the result has its answer here. Look at the dimension that is summed over: it is cut on both
    sides, so each device has a part of every sum. How many layouts can the finished result have, and which of them
    did you ask for?"""
    return "ok" if expression == "C @ R" else None


@will_it_type.mistake
def let_it_run(expression):
    """On an Auto mesh this runs. On an Explicit one every result needs one layout that follows from the operands. Go
    through the dimensions of the result: which axis does each get, and is any axis there twice?"""
    return "ok" if _outcome(expression) in ("rule 2", "rule 3") and expression != "C @ R" else None


@will_it_type.mistake
def stopped_what_agrees(expression):
    """A dimension that is whole goes along with one that is cut: only two *different* axes disagree. Here each
    dimension of the result has one answer."""
    return "rule 2" if _outcome(expression) == "ok" else None


@will_it_type.mistake
def took_the_mismatch_for_the_double(expression):
    """Rule 3 looks at the finished layout of the result: is an axis in it twice? Here it does not come so far. One
    dimension has two answers, or many, before the result has a layout at all: that is rule 2."""
    return "rule 3" if _outcome(expression) == "rule 2" else None


@will_it_type.mistake
def took_the_double_for_the_mismatch(expression):
    """Each dimension of the result has one clear answer, so rule 2 has no objection. Write the answers side by side:
    which axis is there twice?"""
    return "rule 2" if _outcome(expression) == "rule 3" else None


@will_it_type.mistake
def let_it_cross_the_cut(expression):
    """This walks along a cut dimension, or picks from it: some other device has the entry. Indexing and loops do not
    fetch it for you; they have a rule of their own about the dimension that they run along."""
    return "ok" if _outcome(expression) == "own rule" else None


@will_it_type.mistake
def blamed_the_general_rules(expression):
    """There is one operand, so nothing can disagree. The operation has a rule of its own about the dimension that it
    runs along."""
    return "rule 2" if _outcome(expression) == "own rule" else None


# One product, four layouts: what has to be sent?

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
    """XLA on a CPU writes a reduce_scatter as an all_reduce and a slice: where the sum ends cut, either is right."""
    return one == other or layout in CUT and {one, other} <= set(SUMS)


LEAST = {
    "all_gather": "An all_gather brings blocks together that are finished. Has any device a finished block here?",
    "all_reduce": "An all_reduce adds parts of sums up, and all devices have the sums. Is that asked for here?",
    "reduce_scatter": "A reduce_scatter adds parts of sums up, and leaves each device its own share of them. Is the "
    "result to be cut here?",
    "none": "With nothing sent, each device keeps its own part of every sum. Is that what the layout says?",
}

four_answers = TableExercise("four_answers", points=2, reference=_sent, same=_same_collective, options=LEAST)
four_answers.rows(LAYOUTS, argument="layout")


@four_answers.mistake
def gathered_for_a_layout(layout):
    """A gather brings together blocks that are finished. Here each device has one part of every entry's sum: what
    brings *parts of sums* together?"""
    return None if layout == WAITING else "all_gather"


@four_answers.mistake
def nothing_for_a_cut(layout):
    """The result is cut, but each device's block of it is a sum over all of J, and no device has all of J. Something
    must travel, though less than if the result were whole."""
    return "none" if layout in CUT else None


@four_answers.mistake
def nothing_for_a_whole(layout):
    """Whole on every device: each needs the finished sums, and has only one part of them."""
    return "none" if layout == WHOLE else None


@four_answers.mistake
def scattered_a_whole(layout):
    """A reduce_scatter leaves each device with its share of the sums. `P()` wants all of them on every device."""
    return "reduce_scatter" if layout == WHOLE else None


@four_answers.mistake
def summed_what_may_wait(layout):
    """`unreduced` says that the parts stay parts: the sum is put off until somebody needs it. What is sent before
    then?"""
    return "all_reduce" if layout == WAITING else None


# What may be done with a sum that is not yet made. p is a product left unreduced over x; N is whole.

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
    """cos(1) + cos(2) is not cos(1 + 2). Of a sum that is not made yet, only what commutes with adding may be
    computed."""
    return "yes" if step == "jnp.cos(p)" else None


@unreduced.mistake
def multiplied_the_parts(step):
    """(1 + 2) · (1 + 2) is 9, and 1 · 1 + 2 · 2 is 5. The product of two sums needs every part of one with every part
    of the other."""
    return "yes" if step == "p * p" else None


@unreduced.mistake
def added_a_whole_array(step):
    """A whole array has the same values on every device. Added to a part on each of them, it would be in the finished
    sum once for every device."""
    return "yes" if step == "p + N" else None


@unreduced.mistake
def refused_to_add(step):
    """Two unfinished sums over the same axis: adding the parts on each device and summing then gives the same as
    summing twice and adding then. With half as much to send."""
    return "no" if step == "p + p" else None


@unreduced.mistake
def refused_to_finish(step):
    """`reshard` is exactly what completes the sum: from parts over x to a layout without them, with an all_reduce or a
    reduce_scatter."""
    return "no" if step == "reshard(p, replicated)" else None


# A mesh over one half of the devices.


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
    """These are always the first four devices, as where a mesh is made without `devices=`. Which half was asked for?"""
    return _mesh(sizes, jax.devices()[:4])


@half_mesh.mistake
def auto_by_habit(second, sizes):
    """The right devices, but on Auto axes: the mesh of the earlier lessons, which is also what `Mesh(devices, names)`
    gives. Here the types of the axes have to be said."""
    return _mesh(sizes, _half(second), AxisType.Auto)


@half_mesh.mistake
def every_other_device(second, sizes):
    """Every second device was taken. A half is four devices in a row: 0 to 3, or 4 to 7."""
    return _mesh(sizes, jax.devices()[int(second) :: 2])


@half_mesh.mistake
def one_type_for_all_axes(second, sizes):
    """`axis_types` has one entry, and the mesh may have several axes. Every axis has a type of its own."""
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,), devices=_half(second))


@half_mesh.mistake
def kept_one_axis(second, sizes):
    """The four devices were put into one row. `sizes` says how many are along each axis, and the axes' names."""
    return _mesh({next(iter(sizes)): 4}, _half(second))
