"""JAX's errors in plain words: each sentence answers what the JAX that is installed here really says."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from answering import define
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.exercises.answers import Ask, Layout, Problem
from grader.exercises.collecting import collect
from grader.exercises.errors import MEANINGS, in_plain_words, meaning, stopped
from grader.programs.origins import Line

ARRAY = jnp.ones((8, 8))
AUTO = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
EXPLICIT = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
BY_ROWS, BY_COLUMNS = P("x", None), P(None, "x")
HOST = NamedSharding(AUTO, P("x"), memory_kind="pinned_host")


def typed(f, *specs):
    with jax.set_mesh(EXPLICIT):
        return jax.jit(f)(*(put(ARRAY, spec, EXPLICIT) for spec in specs))


def put(array, spec, mesh=AUTO):
    return jax.device_put(array, NamedSharding(mesh, spec))


def mapped(f, ins, out, *arrays, **options):
    return jax.shard_map(f, mesh=AUTO, in_specs=ins, out_specs=out, **options)(*(arrays or (ARRAY,)))


def unreduced(a, b):
    return jnp.sin(jnp.dot(a, b, out_sharding=NamedSharding(EXPLICIT, P(unreduced={"x"}))))


def without_out_sharding():
    with jax.set_mesh(EXPLICIT):
        jax.sharding.auto_axes(lambda a: a)(put(ARRAY, BY_ROWS, EXPLICIT))


def deleted():
    array = ARRAY + 1
    array.delete()
    return array + 1


def on_device(k):
    return jax.device_put(ARRAY, jax.devices()[k])


def called(a, b, *, mesh):
    return a + b


OVER_AXES = "The sum runs over an axis along which the devices already hold the same value, or over one that"
# How each sentence begins, and the programs it answers, in the order of the sentences.
PROGRAMS = {
    "The contracted dimension is cut in both": [
        lambda: typed(jnp.matmul, BY_COLUMNS, BY_ROWS),
        lambda: typed(jnp.matmul, BY_COLUMNS, P("y", None)),
    ],
    "By the rules, two dimensions": [lambda: typed(jnp.matmul, BY_ROWS, BY_COLUMNS)],
    "The operands are laid out differently": [
        lambda: typed(jnp.add, BY_ROWS, P("y", None)),
        lambda: typed(lambda a, b: jnp.concatenate([a, b], 1), BY_ROWS, P()),
    ],
    "Where the picked entries": [lambda: typed(lambda a: a[jnp.array([1, 2, 3])], BY_ROWS)],
    "An unreduced array": [lambda: typed(unreduced, BY_COLUMNS, BY_ROWS)],
    "The operation runs along a dimension that is cut": [
        lambda: typed(lambda a: a[:3], BY_ROWS),
        lambda: typed(lambda a: lax.scan(lambda total, row: (total, row), 0.0, a), BY_ROWS),
    ],
    "`shard_map` was not told over which": [
        lambda: jax.shard_map(lambda a: a, in_specs=P("x"), out_specs=P("x"))(ARRAY)
    ],
    "Along Auto axes the type of an array": [lambda: jax.shard_map(lambda a: a, mesh=AUTO, out_specs=P("x"))(ARRAY)],
    "A bare P names axes": [
        lambda: lax.with_sharding_constraint(ARRAY, P("x")),
        lambda: jax.jit(lambda a: a, in_shardings=P("x"))(ARRAY),
        lambda: jax.sharding.reshard(ARRAY, P("x")),
    ],
    "`with_sharding_constraint` is a hint": [lambda: typed(lambda a: lax.with_sharding_constraint(a, P("y")), BY_ROWS)],
    "Inside `auto_axes` layouts": [without_out_sharding],
    "One mesh axis stands twice": [
        lambda: NamedSharding(AUTO, P("x", "x")),
        lambda: mapped(lambda a: a, P("x", "x"), P()),
    ],
    "out_specs promise that all devices": [
        lambda: mapped(lambda a: a, P("x"), P()),
        lambda: mapped(lambda a: lax.all_gather(a, "x", tiled=True), P("x"), P()),
        lambda: mapped(jnp.matmul, (BY_COLUMNS, BY_ROWS), P(), ARRAY, ARRAY),
    ],
    "These two do not fit along the dimension": [
        lambda: ARRAY @ ARRAY[:3],
        lambda: mapped(jnp.matmul, (BY_COLUMNS, P()), P(), ARRAY, ARRAY),
    ],
    "The last two dimensions of each": [
        lambda: jnp.ones((3, 8, 8)) @ jnp.ones((2, 8, 8)),
        lambda: mapped(lambda a, b: b @ lax.all_gather(a, "x"), P("x"), P("x"), ARRAY[:, :4], jnp.ones((6, 4, 4))),
    ],
    "`jax.vmap` goes through": [lambda: jax.vmap(jnp.dot)(ARRAY, ARRAY[:3])],
    "A dimension cannot be cut into that many": [
        lambda: mapped(lambda a: a, P("x"), P("x"), ARRAY[:3]),
        lambda: mapped(lambda a: lax.psum_scatter(a, "y", tiled=True), P("x"), P("x"), ARRAY[:6]),
    ],
    "Arrays are combined entry by entry": [
        lambda: ARRAY + ARRAY[:3],
        lambda: jax.jit(jnp.subtract)(ARRAY, ARRAY[0, :3]),
        lambda: mapped(lambda a, b: a * b, (P("x"), P()), P("x"), ARRAY, ARRAY[:3]),
    ],
    "Something was made with": [lambda: NamedSharding(None, P("x"))],
    "It stopped without a text": [lambda: mapped(lambda a: lax.psum(a, "z"), P("x"), P("x"))],
    "A collective or a spec names an axis": [
        lambda: mapped(lambda a: lax.all_gather(a, "z"), P("x"), P("x")),
        lambda: NamedSharding(AUTO, P("z")),
        lambda: lax.psum(ARRAY, "x"),
    ],
    OVER_AXES: [
        lambda: mapped(lambda a: lax.psum(a, ("x", "y")), P("x"), P()),
        lambda: mapped(lambda a: lax.psum(a, ("x", "z")), P("x"), P()),
        lambda: mapped(lambda a: lax.psum_scatter(a, ("x", "y"), tiled=True), P("x"), P("x")),
    ],
    "`jax.lax.pcast` changes whether": [
        lambda: mapped(lambda a: lax.pcast(a, ("x", "y"), to="varying"), P("x"), P("x", "y")),
        lambda: mapped(lambda a: lax.pcast(a, "x", to="varying"), P("x"), P("x")),
    ],
    "A spec in in_specs has more entries": [lambda: mapped(lambda a: a, P("x", "y", None), P("x"))],
    "More dimensions are named in the spec": [
        lambda: put(ARRAY[0], P("x", "y")),
        lambda: jax.jit(lambda: 1.0, out_shardings=NamedSharding(AUTO, P("x")))(),
    ],
    "A spec has more entries": [
        lambda: mapped(lambda a: a.sum(0), P("x"), P("x", "y")),
    ],
    "Different devices take part": [
        lambda: mapped(lambda a: a, P("x"), P("x"), on_device(1)),
        lambda: on_device(0) + on_device(1),
        lambda: on_device(0) + put(ARRAY, P("x")),
    ],
    "The array's memory was given away": [deleted],
    "The operands are in different memories": [lambda: jax.device_put(ARRAY, HOST) + put(ARRAY, P("x"))],
    "in_specs and out_specs may name axes that": [
        lambda: mapped(lambda a: a, P("y"), P("y"), axis_names={"x"}),
        lambda: mapped(lambda a: a, P("z"), P("x")),
    ],
    "`device_put` takes one place": [lambda: jax.device_put(ARRAY, jax.devices())],
    "The shardings and what they": [
        lambda: jax.jit(lambda a: a, out_shardings=(NamedSharding(AUTO, P()),) * 2)(ARRAY),
        lambda: jax.jit(lambda a: a, in_shardings=(NamedSharding(AUTO, P()),) * 2)(ARRAY),
    ],
    "The layouts and what they describe": [
        lambda: lax.with_sharding_constraint([ARRAY, ARRAY], [NamedSharding(AUTO, P())] * 3),
        lambda: lax.with_sharding_constraint({"a": ARRAY}, {"b": NamedSharding(AUTO, P())}),
    ],
    "The specs and what they describe": [
        lambda: mapped(lambda a, b: a, (P(),), P(), ARRAY, ARRAY),
        lambda: mapped(lambda a: a, P(), (P(), P())),
    ],
    "What a loop carries": [
        lambda: lax.fori_loop(0, 3, lambda _, total: total.astype(int), 1.0),
        lambda: lax.fori_loop(0, 3, lambda _, total: total[:1], ARRAY),
    ],
    "A loop's carry must come out": [
        lambda: mapped(lambda a: lax.fori_loop(0, 3, lambda _, b: a + b, jnp.zeros((4, 8))), P("x"), P("x")),
    ],
    "The branches of a `cond` must": [
        lambda: lax.cond(True, lambda a: a, lambda a: a[:3], ARRAY),
        lambda: mapped(
            lambda a: lax.cond(lax.axis_index("x") == 0, lambda b: lax.psum(b, "x"), lambda b: b, a), P("x"), P("x")
        ),
    ],
    "A traced array stands where something": [
        lambda: mapped(lambda a: lax.all_gather("x", a), P("x"), P("x")),
        lambda: jax.jit(lambda a: {a[0, 0]: 1})(ARRAY),
    ],
    "A key of a dict, an entry of a set": [
        lambda: {slice(np.arange(2)): 1},
        lambda: {[1]: 2},
        lambda: {ARRAY},
        *([lambda: NamedSharding(AUTO, np.ones(2))] if jax.__version_info__ >= (0, 8) else []),
    ],
    "Something that has keys, most often a dict, was asked for this one, and has none of that name. Which keys has "
    "it, and which": [
        lambda: AUTO.shape["z"],
        lambda: {"x": 4}[0],
    ],
    "Something that has keys, most often a dict, was asked": [
        lambda: {"x": 4}[("x", "y")],
        lambda: AUTO.shape[None],
    ],
    "A list, a tuple, an array or a text was asked": [
        lambda: (1, 2)[2],
        lambda: "12"[2],
        lambda: [1][4],
        lambda: np.arange(3)[3],
    ],
    "A reshape keeps the number": [lambda: np.arange(8).reshape(3, 2), lambda: ARRAY.reshape(3, 2)],
    "Without `tiled=True` the dimension": [
        lambda: mapped(lambda a: lax.psum_scatter(a, "x"), P(), P("x")),
        lambda: mapped(lambda a: lax.all_to_all(a, "x", 1, 0), P("x"), P("x")),
    ],
    "In a program that is traced all shapes": [lambda: jax.jit(lambda a: a[a > 0])(ARRAY)],
    "A function stands where": [
        lambda: jax.jit(lambda a: lambda b: a + b)(ARRAY),
        lambda: mapped(lambda a: lambda b: a + b, P("x"), P("x")),
        lambda: jnp.sin(lambda a: a),
    ],
    "A mesh went into a function": [
        lambda: jax.jit(lambda a: a)(AUTO),
        lambda: jax.jit(lambda a, *, mesh: a)(ARRAY, mesh=AUTO),
    ],
    "Where an array is due stands": [
        lambda: jax.device_put(NamedSharding(AUTO, P("x")), ARRAY),
        lambda: jnp.where(AUTO, ARRAY, 0),
        lambda: jnp.add(AUTO, 1),
        lambda: jnp.arange(AUTO),
        lambda: mapped(lambda a: lax.pmean("x", a), P("x"), P("x")),
        lambda: jax.jit(lambda a: mapped(lambda b: lax.ppermute("x", b, [(0, 1)]), P("x"), P("x"), a))(ARRAY),
        lambda: lax.scan(lambda total, row: (total, "row"), 0.0, ARRAY),
        lambda: lax.scan(lambda total, row: (total, None), AUTO, ARRAY),
        lambda: jax.random.key(AUTO),
        lambda: lax.with_sharding_constraint(HOST, ARRAY),
        lambda: jnp.sin([1.0, 2.0]),
        lambda: jnp.sin("x"),
    ],
    "Python cannot decide by": [
        lambda: mapped(lambda a: a if a[0, 0] > 0 else -a, P("x"), P("x")),
        lambda: jax.jit(lambda a: max(a[0, 0], a[1, 1]))(ARRAY),
    ],
    "Python, or NumPy, was to work": [
        lambda: jax.jit(lambda a: np.sort(a))(ARRAY),
        lambda: jax.jit(lambda n: jnp.zeros(len(range(n))))(3),
        lambda: jax.jit(lambda a: float(a[0, 0]))(ARRAY),
    ],
    "In one ppermute a device sends": [
        lambda: mapped(lambda a: lax.ppermute(a, "x", [(0, 1)] * 2), P("x"), P("x")),
        lambda: mapped(lambda a: lax.ppermute(a, "x", [(0, 1), (1, 3)]), P("x"), P("x")),
    ],
    "In an einsum each operand": [
        lambda: jnp.einsum("ij,jk->ik", ARRAY, ARRAY[:4]),
        lambda: jnp.einsum("ij,njk->ink", ARRAY, ARRAY),
    ],
    "The function that is named is JAX's": [
        lambda: jax.shard_map(lambda a: a, mesh=AUTO, in_specs=P("x")),
        lambda: mapped(lambda a: lax.all_to_all(a, "x", split_axis=1, tiled=True), P("x"), P("x")),
        lambda: mapped(lambda a: lax.psum_scatter(a, "x", axis=0), P("x"), P("x")),
    ],
    "A function was called with other": [
        lambda: (lambda a, b: a)(ARRAY, ARRAY, mesh=AUTO),
        lambda: called(ARRAY, mesh=AUTO),
        lambda: called(ARRAY, ARRAY, ARRAY, mesh=AUTO),
    ],
    "Is a `NamedSharding` made here?": [
        lambda: NamedSharding(P("x"), AUTO),
        lambda: NamedSharding(AUTO, AUTO),
        lambda: jax.jit(lambda a: lax.with_sharding_constraint(a, NamedSharding(a, P("x"))))(ARRAY),
    ],
    "A dimension is counted from the end": [
        lambda: jax.jit(lambda a: mapped(lambda b: lax.all_to_all(b, "x", 1, -1, tiled=True), BY_ROWS, BY_COLUMNS, a))(
            ARRAY
        ),
    ],
    "This is one of NumPy's arrays": [lambda: np.ones(8).at[0].add(1), lambda: np.ones(8).sharding],
}
# What JAX 0.7 does not refuse yet, or in another way that says more; `pcast` came later.
NOT_YET = {
    *(("It stopped without a text", OVER_AXES) if jax.__version_info__ < (0, 8) else ()),
    *(("`jax.lax.pcast` changes whether",) if jax.__version_info__ < (0, 10) else ()),
}


def test_every_sentence_has_its_program():
    assert len(PROGRAMS) == len(MEANINGS)
    for beginning, (_, _, words) in zip(PROGRAMS, MEANINGS, strict=True):
        assert words.startswith(beginning)


@pytest.mark.parametrize(
    ("beginning", "program"),
    [pytest.param(b, p, id=f"{b}-{k}") for b, programs in PROGRAMS.items() for k, p in enumerate(programs)],
)
def test_what_jax_says_gets_the_sentence_that_belongs_to_it(beginning, program):
    """The first row that matches has to be the right one, too: three of them match “axis”."""
    if beginning in NOT_YET:
        pytest.skip("JAX 0.7 does not say this yet")
    with pytest.raises(Exception) as raised:
        program()
    error = type(raised.value).__name__
    words = in_plain_words(Problem("error", error, str(raised.value)[:4000], ("float32[4]",)))
    assert words.startswith(f"It stops with {error}") and words.split("\n\n", 1)[1].startswith(beginning), words


def test_what_stands_twice_is_not_always_an_axis_of_the_mesh():
    with pytest.raises(ValueError) as raised:
        jnp.sum(ARRAY, axis=(0, 0))
    assert meaning(Problem("error", "ValueError", str(raised.value), ("float32[4]",))) == ""


def test_where_a_mesh_is_due_it_is_not_said_that_an_array_is():
    with pytest.raises(TypeError) as raised:
        jax.shard_map(lambda a: a, mesh=called, in_specs=P(), out_specs=P())(ARRAY)
    assert meaning(Problem("error", "TypeError", str(raised.value), ("float32[4]",))) == ""


def test_what_is_handed_on_is_told_and_the_place_in_our_files_is_not():
    message = "the function program at /a/b/program.py:112 traced for jit returned None, defined at /tmp/c.py:3:4"
    assert stopped(Problem("error", "E", message)) == "It stops with E: your function traced for jit returned None"
    assert stopped(Problem("error", "E", "no. This error occurs at source:  a/b.py:9:12 (f)")) == "It stops with E: no."
    assert stopped(Problem("error", "E", "to <function f at 0x7f90> it is")) == "It stops with E: to <function f> it is"
    words = stopped(Problem("error", "TypeError", "wrong types:\n 1. this\n\nInvoked with types: int, NoneType"))
    assert words.endswith("wrong types: Given: int, NoneType.")


def test_which_of_the_out_specs_is_meant_is_told_with_the_heading():
    with pytest.raises(ValueError) as raised:
        mapped(lambda a: a.sum(), P("x"), P("x"))
    words = stopped(Problem("error", "ValueError", str(raised.value)))
    assert re.search(r"the function: out_specs is P(artitionSpec)?\('x',\) which has length 1", words)
    with pytest.raises(ValueError) as raised:
        mapped(lambda a: a, P("x"), P("x"), ARRAY[:3])
    assert "does not evenly divide 3" in stopped(Problem("error", "ValueError", str(raised.value)))
    with pytest.raises(ValueError) as raised:
        mapped(lambda a: a, P("x"), P())
    words = stopped(Problem("error", "ValueError", str(raised.value)))
    assert re.search(r"given the mesh: out_specs is P(artitionSpec)?\(\) which implies", words)


def test_which_operation_is_refused_is_told_with_the_heading():
    message = (
        "Cannot lower jaxpr with verifier errors:\n\t'stablehlo.all_to_all' op attribute 'a' failed\n\t\tat loc(1)"
    )
    assert stopped(Problem("error", "ValueError", message)).endswith(
        "verifier errors: 'stablehlo.all_to_all' op attribute 'a' failed"
    )


def test_the_line_of_the_cell_is_told():
    space = {}
    define(
        "def body(a):\n    b = a * 2\n    return b.nothing\n\n\ndef answer(a, *, mesh):\n    return body(a)\n", space
    )
    (problem,) = collect("program", [Ask({"x": 2}, {"a": Layout((4,), "float32", P())})], space["answer"])
    assert problem.line == Line(3, "return b.nothing", 7, 16, function="body")


def test_a_missing_name_is_not_taken_for_several_axes_or_none():
    assert "a tuple" not in meaning(Problem("error", "KeyError", "'W'", ("float32[4]",)))
    assert "a tuple" not in meaning(Problem("error", "KeyError", "0", ("float32[4]",)))
    for key in ("('x', 'y')", "None"):
        assert "a tuple or None?" in meaning(Problem("error", "KeyError", key, ("float32[4]",)))


@pytest.mark.parametrize(
    ("program", "named"),
    [
        (lambda: lax.fori_loop(0, 3, lambda _, total: total[:1], ARRAY), r"they differ: The input carry .*\[1,8\]"),
        (lambda: mapped(lambda a: (a, a), P(), (P(),) * 3), r"at key path shard_map out_specs$"),
        (lambda: mapped(lambda a: a, ({"b": P()},), P(), {"a": ARRAY}), r"at key path shard_map in_specs\[0\]$"),
        (lambda: jax.vmap(jnp.add)(ARRAY, ARRAY[:3]), r"to be mapped: one axis had size 8: axis 0 of argument"),
        (lambda: mapped(lambda a: a, 3, P()), r"in_specs is 3 of type int$"),
    ],
)
def test_a_heading_of_jax_s_is_told_with_what_it_is_about(program, named):
    with pytest.raises((TypeError, ValueError)) as raised:
        program()
    words = stopped(Problem("error", type(raised.value).__name__, str(raised.value)))
    assert re.search(named, words), words
