"""What errors mean: each meaning is that of what the JAX that is installed here really says."""

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
from grader.exercises.errors import MEANINGS, meaning, stopped
from grader.findings.problems import ErrorMeaning, Raised
from grader.programs.origins import Line
from grader.wording import errors as wording

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


# What JAX says of each of these programs means this.
PROGRAMS = {
    "contracted": [
        lambda: typed(jnp.matmul, BY_COLUMNS, BY_ROWS),
        lambda: typed(jnp.matmul, BY_COLUMNS, P("y", None)),
    ],
    "two dimensions": [lambda: typed(jnp.matmul, BY_ROWS, BY_COLUMNS)],
    "other shardings": [
        lambda: typed(jnp.add, BY_ROWS, P("y", None)),
        lambda: typed(lambda a, b: jnp.concatenate([a, b], 1), BY_ROWS, P()),
    ],
    "indexing": [lambda: typed(lambda a: a[jnp.array([1, 2, 3])], BY_ROWS)],
    "unreduced": [lambda: typed(unreduced, BY_COLUMNS, BY_ROWS)],
    "along sharded": [
        lambda: typed(lambda a: a[:3], BY_ROWS),
        lambda: typed(lambda a: lax.scan(lambda total, row: (total, row), 0.0, a), BY_ROWS),
    ],
    "no mesh": [
        lambda: jax.shard_map(lambda a: a, in_specs=P("x"), out_specs=P("x"))(ARRAY),
        lambda: lax.with_sharding_constraint(ARRAY, P("x")),
        lambda: jax.jit(lambda a: a, in_shardings=P("x"))(ARRAY),
        lambda: jax.sharding.reshard(ARRAY, P("x")),
    ],
    "no in_specs": [lambda: jax.shard_map(lambda a: a, mesh=AUTO, out_specs=P("x"))(ARRAY)],
    "constraint": [lambda: typed(lambda a: lax.with_sharding_constraint(a, P("y")), BY_ROWS)],
    "no out_sharding": [without_out_sharding],
    "axis twice": [
        lambda: NamedSharding(AUTO, P("x", "x")),
        lambda: mapped(lambda a: a, P("x", "x"), P()),
    ],
    "varying": [
        lambda: mapped(lambda a: a, P("x"), P()),
        lambda: mapped(lambda a: lax.all_gather(a, "x", tiled=True), P("x"), P()),
        lambda: mapped(jnp.matmul, (BY_COLUMNS, BY_ROWS), P(), ARRAY, ARRAY),
    ],
    "matmul shapes": [
        lambda: ARRAY @ ARRAY[:3],
        lambda: mapped(jnp.matmul, (BY_COLUMNS, P()), P(), ARRAY, ARRAY),
    ],
    "matmul batches": [
        lambda: jnp.ones((3, 8, 8)) @ jnp.ones((2, 8, 8)),
        lambda: mapped(lambda a, b: b @ lax.all_gather(a, "x"), P("x"), P("x"), ARRAY[:, :4], jnp.ones((6, 4, 4))),
    ],
    "vmap": [lambda: jax.vmap(jnp.dot)(ARRAY, ARRAY[:3])],
    "not divisible": [
        lambda: mapped(lambda a: a, P("x"), P("x"), ARRAY[:3]),
        lambda: mapped(lambda a: lax.psum_scatter(a, "y", tiled=True), P("x"), P("x"), ARRAY[:6]),
    ],
    "broadcasting": [
        lambda: ARRAY + ARRAY[:3],
        lambda: jax.jit(jnp.subtract)(ARRAY, ARRAY[0, :3]),
        lambda: mapped(lambda a, b: a * b, (P("x"), P()), P("x"), ARRAY, ARRAY[:3]),
    ],
    "None": [lambda: NamedSharding(None, P("x"))],
    "no message": [lambda: mapped(lambda a: lax.psum(a, "z"), P("x"), P("x"))],
    "no such axis": [
        lambda: mapped(lambda a: lax.all_gather(a, "z"), P("x"), P("x")),
        lambda: NamedSharding(AUTO, P("z")),
        lambda: lax.psum(ARRAY, "x"),
    ],
    "same along axis": [
        lambda: mapped(lambda a: lax.psum(a, ("x", "y")), P("x"), P()),
        lambda: mapped(lambda a: lax.psum(a, ("x", "z")), P("x"), P()),
        lambda: mapped(lambda a: lax.psum_scatter(a, ("x", "y"), tiled=True), P("x"), P("x")),
    ],
    "pcast": [
        lambda: mapped(lambda a: lax.pcast(a, ("x", "y"), to="varying"), P("x"), P("x", "y")),
        lambda: mapped(lambda a: lax.pcast(a, "x", to="varying"), P("x"), P("x")),
    ],
    "spec too long": [
        lambda: mapped(lambda a: a, P("x", "y", None), P("x")),
        lambda: put(ARRAY[0], P("x", "y")),
        lambda: jax.jit(lambda: 1.0, out_shardings=NamedSharding(AUTO, P("x")))(),
    ],
    "out_spec too long": [lambda: mapped(lambda a: a.sum(0), P("x"), P("x", "y"))],
    "other devices": [
        lambda: mapped(lambda a: a, P("x"), P("x"), on_device(1)),
        lambda: on_device(0) + on_device(1),
        lambda: on_device(0) + put(ARRAY, P("x")),
    ],
    "deleted": [deleted],
    "other memory": [lambda: jax.device_put(ARRAY, HOST) + put(ARRAY, P("x"))],
    "not manual": [
        lambda: mapped(lambda a: a, P("y"), P("y"), axis_names={"x"}),
        lambda: mapped(lambda a: a, P("z"), P("x")),
    ],
    "device list": [lambda: jax.device_put(ARRAY, jax.devices())],
    "other tree": [
        lambda: jax.jit(lambda a: a, out_shardings=(NamedSharding(AUTO, P()),) * 2)(ARRAY),
        lambda: jax.jit(lambda a: a, in_shardings=(NamedSharding(AUTO, P()),) * 2)(ARRAY),
        lambda: lax.with_sharding_constraint([ARRAY, ARRAY], [NamedSharding(AUTO, P())] * 3),
        lambda: lax.with_sharding_constraint({"a": ARRAY}, {"b": NamedSharding(AUTO, P())}),
        lambda: mapped(lambda a, b: a, (P(),), P(), ARRAY, ARRAY),
        lambda: mapped(lambda a: a, P(), (P(), P())),
    ],
    "carry shape": [
        lambda: lax.fori_loop(0, 3, lambda _, total: total.astype(int), 1.0),
        lambda: lax.fori_loop(0, 3, lambda _, total: total[:1], ARRAY),
    ],
    "carry varies": [
        lambda: mapped(lambda a: lax.fori_loop(0, 3, lambda _, b: a + b, jnp.zeros((4, 8))), P("x"), P("x")),
    ],
    "branches": [
        lambda: lax.cond(True, lambda a: a, lambda a: a[:3], ARRAY),
        lambda: mapped(
            lambda a: lax.cond(lax.axis_index("x") == 0, lambda b: lax.psum(b, "x"), lambda b: b, a), P("x"), P("x")
        ),
    ],
    "traced key": [
        lambda: mapped(lambda a: lax.all_gather("x", a), P("x"), P("x")),
        lambda: jax.jit(lambda a: {a[0, 0]: 1})(ARRAY),
    ],
    "unhashable": [
        lambda: {slice(np.arange(2)): 1},
        lambda: {[1]: 2},
        lambda: {ARRAY},
        *([lambda: NamedSharding(AUTO, np.ones(2))] if jax.__version_info__ >= (0, 8) else []),
    ],
    "no such name": [
        lambda: AUTO.shape["z"],
        lambda: {"x": 4}[0],
    ],
    "no such key": [
        lambda: {"x": 4}[("x", "y")],
        lambda: AUTO.shape[None],
    ],
    "out of range": [
        lambda: (1, 2)[2],
        lambda: "12"[2],
        lambda: [1][4],
        lambda: np.arange(3)[3],
    ],
    "reshape": [
        lambda: np.arange(8).reshape(3, 2),
        lambda: ARRAY.reshape(3, 2),
    ],
    "not as many": [
        lambda: mapped(lambda a: lax.psum_scatter(a, "x"), P(), P("x")),
        lambda: mapped(lambda a: lax.all_to_all(a, "x", 1, 0), P("x"), P("x")),
    ],
    "mask": [lambda: jax.jit(lambda a: a[a > 0])(ARRAY)],
    "function": [
        lambda: jax.jit(lambda a: lambda b: a + b)(ARRAY),
        lambda: mapped(lambda a: lambda b: a + b, P("x"), P("x")),
        lambda: jnp.sin(lambda a: a),
    ],
    "mesh traced": [
        lambda: jax.jit(lambda a: a)(AUTO),
        lambda: jax.jit(lambda a, *, mesh: a)(ARRAY, mesh=AUTO),
    ],
    "no array": [
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
    "traced condition": [
        lambda: mapped(lambda a: a if a[0, 0] > 0 else -a, P("x"), P("x")),
        lambda: jax.jit(lambda a: max(a[0, 0], a[1, 1]))(ARRAY),
    ],
    "traced number": [
        lambda: jax.jit(lambda a: np.sort(a))(ARRAY),
        lambda: jax.jit(lambda n: jnp.zeros(len(range(n))))(3),
        lambda: jax.jit(lambda a: float(a[0, 0]))(ARRAY),
    ],
    "ppermute": [
        lambda: mapped(lambda a: lax.ppermute(a, "x", [(0, 1)] * 2), P("x"), P("x")),
        lambda: mapped(lambda a: lax.ppermute(a, "x", [(0, 1), (1, 3)]), P("x"), P("x")),
    ],
    "einsum": [
        lambda: jnp.einsum("ij,jk->ik", ARRAY, ARRAY[:4]),
        lambda: jnp.einsum("ij,njk->ink", ARRAY, ARRAY),
    ],
    "arguments of JAX": [
        lambda: jax.shard_map(lambda a: a, mesh=AUTO, in_specs=P("x")),
        lambda: mapped(lambda a: lax.all_to_all(a, "x", split_axis=1, tiled=True), P("x"), P("x")),
        lambda: mapped(lambda a: lax.psum_scatter(a, "x", axis=0), P("x"), P("x")),
    ],
    "arguments": [
        lambda: (lambda a, b: a)(ARRAY, ARRAY, mesh=AUTO),
        lambda: called(ARRAY, mesh=AUTO),
        lambda: called(ARRAY, ARRAY, ARRAY, mesh=AUTO),
    ],
    "NamedSharding": [
        lambda: NamedSharding(P("x"), AUTO),
        lambda: NamedSharding(AUTO, AUTO),
        lambda: jax.jit(lambda a: lax.with_sharding_constraint(a, NamedSharding(a, P("x"))))(ARRAY),
    ],
    "negative dimension": [
        lambda: jax.jit(lambda a: mapped(lambda b: lax.all_to_all(b, "x", 1, -1, tiled=True), BY_ROWS, BY_COLUMNS, a))(
            ARRAY
        ),
    ],
    "NumPy": [
        lambda: np.ones(8).at[0].add(1),
        lambda: np.ones(8).sharding,
    ],
}
# What JAX 0.7 does not refuse yet, or in another way that says more; `pcast` came later.
NOT_YET = {
    *(("no message", "same along axis") if jax.__version_info__ < (0, 8) else ()),
    *(("pcast",) if jax.__version_info__ < (0, 10) else ()),
}


def problem(error, message, operands=("float32[4]",)):
    return Problem("error", error, message[:4000], operands)


def raised_by(program):
    with pytest.raises(Exception) as raised:
        program()
    return problem(type(raised.value).__name__, str(raised.value))


def test_every_meaning_has_its_program_and_its_words():
    names = [*dict.fromkeys(name for name, _, _ in MEANINGS)]
    assert [*PROGRAMS] == names and [*wording.ERROR_WORDS] == names
    assert all(" | " in words for words in wording.ERROR_WORDS.values())


@pytest.mark.parametrize(
    ("name", "program"),
    [pytest.param(name, p, id=f"{name}-{k}") for name, programs in PROGRAMS.items() for k, p in enumerate(programs)],
)
def test_what_jax_says_has_its_meaning(name, program):
    """The first row that matches has to be the right one, too: three of them match “axis”."""
    if name in NOT_YET:
        pytest.skip("JAX 0.7 does not say this yet")
    assert meaning(raised_by(program)) == ErrorMeaning(name)


@pytest.mark.parametrize(
    "program",
    [
        lambda: jnp.sum(ARRAY, axis=(0, 0)),  # what is there twice is not an axis of the mesh
        lambda: jax.shard_map(lambda a: a, mesh=called, in_specs=P(), out_specs=P())(ARRAY),  # a mesh is expected
    ],
)
def test_what_only_looks_like_one_has_another_meaning(program):
    assert meaning(raised_by(program)) is None


def test_what_jax_was_not_given_is_the_students_own():
    assert meaning(problem("AssertionError", "", operands=())) is None


@pytest.mark.parametrize(("key", "name"), [("'W'", "name"), ("0", "name"), ("('x', 'y')", "key"), ("None", "key")])
def test_a_missing_name_is_not_taken_for_several_axes_or_none(key, name):
    assert meaning(problem("KeyError", key)) == ErrorMeaning(f"no such {name}")


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            "the function program at /a/b/program.py:112 traced for jit returned None, defined at /tmp/c.py:3:4",
            "your function traced for jit returned None",
        ),
        ("no. This error occurs at source:  a/b.py:9:12 (f)", "no."),
        ("to <function f at 0x7f90> it is", "to <function f> it is"),
        (
            "Cannot lower jaxpr with verifier errors:\n\t'stablehlo.all_to_all' op attribute 'a' failed\n\t\tat loc(1)",
            "Cannot lower jaxpr with verifier errors: 'stablehlo.all_to_all' op attribute 'a' failed",
        ),
    ],
)
def test_places_in_our_files_are_left_out_and_a_heading_is_told_with_what_it_is_about(message, told):
    assert stopped(problem("E", message)) == Raised("E", told)


def test_the_types_that_were_given_are_told():
    found = stopped(problem("TypeError", "wrong types:\n 1. this\n\nInvoked with types: int, NoneType"))
    assert found == Raised("TypeError", "wrong types:", "int, NoneType")


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (lambda: lax.fori_loop(0, 3, lambda _, total: total[:1], ARRAY), r"they differ: The input carry .*\[1,8\]"),
        (lambda: mapped(lambda a: (a, a), P(), (P(),) * 3), r"at key path shard_map out_specs$"),
        (lambda: mapped(lambda a: a, ({"b": P()},), P(), {"a": ARRAY}), r"at key path shard_map in_specs\[0\]$"),
        (lambda: jax.vmap(jnp.add)(ARRAY, ARRAY[:3]), r"to be mapped: one axis had size 8: axis 0 of argument"),
        (lambda: mapped(lambda a: a, 3, P()), r"in_specs is 3 of type int$"),
        (lambda: mapped(lambda a: a.sum(), P("x"), P("x")), r": out_specs is P\w*\('x',\) which has length 1"),
        (lambda: mapped(lambda a: a, P("x"), P("x"), ARRAY[:3]), r"does not evenly divide 3"),
        (lambda: mapped(lambda a: a, P("x"), P()), r"given the mesh: out_specs is P\w*\(\) which implies"),
    ],
)
def test_which_spec_or_part_is_meant_is_told(program, told):
    message = stopped(raised_by(program)).message
    assert re.search(told, message), message


def test_the_line_of_the_cell_is_told():
    space = {}
    define(
        "def body(a):\n    b = a * 2\n    return b.nothing\n\n\ndef answer(a, *, mesh):\n    return body(a)\n", space
    )
    (problem,) = collect("program", [Ask({"x": 2}, {"a": Layout((4,), "float32", P())})], space["answer"])
    assert problem.line == Line(3, "return b.nothing", 7, 16, function="body")
