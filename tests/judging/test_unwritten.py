"""What the compiler sends besides what is written, and the decoys that are to hide it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from answering import verdict
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.laid import Array
from grader.arrays.meshes import make_mesh, put
from grader.findings.costs import WrongForm
from grader.judging import behaviour
from grader.lessons import find
from grader.programs.execution import execute, sent_without_collectives
from grader.programs.program import trace
from grader.programs.walk import structure


def laid(value, mesh, *spec):
    return lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))


def summed(block):
    return lax.psum(block, "x")


def unused(a, b, *, mesh):
    """The shard_map around a psum gives its result to nobody."""
    rows = mesh.shape["x"] * a.shape[0]
    ones = jnp.ones((rows, b.shape[1]))
    jax.shard_map(summed, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(ones)
    return laid(a @ b, mesh)


def dropped_inside(a, b, *, mesh):
    """The psum stands behind a barrier, so that JAX keeps it, and is dropped there."""

    def body(product):
        kept, _ = lax.optimization_barrier((product, lax.psum(product, "x")))
        return kept

    return jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(laid(a @ b, mesh))


def dropped_gather(a, b, *, mesh):
    def body(product):
        n = mesh.shape["x"]
        kept, _ = lax.optimization_barrier((product, lax.all_gather(product[: -(-len(product) // n)], "x")))
        return kept

    return jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(laid(a @ b, mesh))


def whole_numbers(a, b, *, mesh):
    """Zero times a whole number is zero for the compiler, too: it drops the psum, and keeps its own."""

    def body(product):
        total = lax.psum(lax.bitcast_convert_type(product, jnp.int32), "x")
        return product + (0 * total).astype(product.dtype)

    return jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(laid(a @ b, mesh))


def never_chosen(a, b, *, mesh):
    def body(product):
        return jnp.where(jnp.zeros((), bool), lax.psum(product, "x"), product)

    return jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(laid(a @ b, mesh))


def chosen_at_run_time(a, b, *, mesh):
    """Nobody can see beforehand that no entry is beyond all bounds."""

    def body(product):
        return jnp.where(jnp.isinf(product), lax.psum(product, "x"), product)

    return jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(laid(a @ b, mesh))


def divided_again(a, b, *, mesh):
    """A mean of copies is the copy: the psum is needed, and adds up nothing that is not there already."""
    return jax.shard_map(lambda c: lax.pmean(c, "x"), mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(
        laid(a @ b, mesh)
    )


def in_a_loop(a, b, *, mesh):
    def body(product):
        return lax.fori_loop(0, 1, lambda _, c: lax.pmean(c, "x"), product)

    return jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(laid(a @ b, mesh))


def left_in_one_axis(a, b, *, mesh):
    """shard_map over the other axis only: along x the compiler does what it likes."""
    go = jax.shard_map(lambda a, b: a @ b, mesh=mesh, in_specs=P(), out_specs=P(), axis_names={"y"}, check_vma=False)
    return divided_again(jnp.eye(a.shape[0], dtype=a.dtype), laid(jax.jit(go)(a, b), mesh), mesh=mesh)


@pytest.mark.parametrize(
    "answer",
    [
        unused,
        dropped_inside,
        dropped_gather,
        whole_numbers,
        never_chosen,
        chosen_at_run_time,
        divided_again,
        in_a_loop,
        left_in_one_axis,
    ],
)
def test_a_product_that_is_left_to_the_compiler_beside_a_decoy_earns_no_communication(answer):
    found = verdict(find("case3"), answer, thorough=True)
    assert found.failure is not None and found.failure.check == "communication"
    assert found.points == 0, "as the plain formula, which sends the same"


def columns(x, *, mesh):
    """reshard_rows_to_cols: the compiler reshards, beside an all_to_all of what it then holds."""

    def body(block):
        n = mesh.shape["x"]
        there = lax.all_to_all(block, "x", 0, 1, tiled=True) if len(block) % n == 0 else block
        kept, _ = lax.optimization_barrier((block, there))
        return kept

    go = jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"), check_vma=False)
    return go(laid(x, mesh, None, "x"))


def gathered_columns(a, *, mesh):
    """gather_columns: laid out whole by the compiler, beside an all_gather that nobody looks at."""

    def body(block, whole):
        kept, _ = lax.optimization_barrier((whole, lax.all_gather(block, "x")))
        return kept

    specs = (P(None, "x"), P())
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(a, laid(a, mesh))


def laid_out_at_the_end(parts, *, mesh):
    """sum_and_split: the sum is the compiler's, by out_shardings, beside a psum_scatter of the first part."""

    def body(part, total):
        mine = lax.psum_scatter(part[0], "x", tiled=True)
        kept, _ = lax.optimization_barrier((total, mine))
        return kept

    cut = NamedSharding(mesh, P("x", None))
    go = jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"), check_vma=False)
    return go(parts, jax.jit(lambda p: p.sum(0), out_shardings=cut)(parts))


def mean_of_all(x, mask, *, mesh):
    """masked_mean: two single numbers, of the kinds that may be sent."""

    def body(mean):
        kept, _ = lax.optimization_barrier((mean, lax.psum(jnp.stack([mean, mean]), "x")))
        return kept

    mean = jnp.sum(x * mask) / jnp.sum(mask)
    return jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(mean)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("reshard_rows_to_cols", columns),
        ("gather_columns", gathered_columns),
        ("sum_and_split", laid_out_at_the_end),
        ("masked_mean", mean_of_all),
    ],
)
def test_other_exercises_with_a_budget_are_not_fooled_either(name, answer):
    found = verdict(find(name), answer, thorough=True)
    assert found.failure is not None and found.failure.check == "communication"
    assert found.failure.findings[0].what in ("unwritten", "in_specs")


def test_what_is_written_and_needed_is_all_that_is_sent():
    def answer(a, b, *, mesh):
        specs = (P(None, "x"), P("x", None))
        return jax.shard_map(lambda a, b: lax.psum(a @ b, "x"), mesh=mesh, in_specs=specs, out_specs=P())(a, b)

    found = verdict(find("case3"), answer, thorough=True)
    assert found.passed, found.failure


@pytest.mark.parametrize("name", ["case3", "case3_scatter_columns", "gather_columns"])
def test_along_axes_that_are_left_to_the_compiler_nothing_is_made_to_move(name):
    """The same programs, in a shard_map over x alone, on operands that lie along y as well."""
    specs, out, body = {
        "case3": ((P(None, "x"), P("x", None)), P(), lambda a, b: lax.psum(a @ b, "x")),
        "case3_scatter_columns": (
            (P(None, "x"), P("x", None)),
            P(None, "x"),
            lambda a, b: lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True),
        ),
        "gather_columns": ((P(None, "x"),), P(), lambda a: lax.all_gather(a, "x", axis=1, tiled=True)),
    }[name]

    def answer(*operands, mesh):
        go = jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=out, axis_names={"x"}, check_vma=False)
        return jax.jit(go)(*operands)

    found = verdict(find(name), answer, thorough=True)
    assert found.passed, found.failure


def test_columns_along_an_axis_of_the_compilers_stay_where_they_are():
    mesh = make_mesh({"x": 2, "y": 4})

    def answer(a):
        go = jax.shard_map(
            lambda a: lax.psum(a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"}, check_vma=False
        )
        return jax.jit(go)(a)

    array = Array(np.ones((8, 8), np.float32), P("x", "y"))
    program = trace(answer, put(array.value, array.spec, mesh))
    written, sizes = structure(program), {"x": 2, "y": 4}
    assert execute(program, sizes, [array], [P(None, "y")], written).compiled
    assert not sent_without_collectives(program, sizes, [array], written)


def zeros(a, b, *, mesh):
    """Sends as it should, and is zero."""
    go = lambda a, b: lax.psum(0 * a @ b, "x")  # noqa: E731
    return jax.shard_map(go, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P())(a, b)


def right(a, b, *, mesh):
    go = lambda a, b: lax.psum(a @ b, "x")  # noqa: E731
    return jax.shard_map(go, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P())(a, b)


def refused(*_):
    raise ValueError("no such program")


def test_what_nobody_wrote_is_not_looked_for_where_the_values_are_wrong(monkeypatch):
    monkeypatch.setattr(behaviour, "_sent_without_collectives", refused)
    found = verdict(find("case3"), zeros)
    assert found.failure.check == "values"


def test_what_nobody_wrote_is_not_looked_for_where_all_that_is_sent_is_known_as_written(monkeypatch):
    monkeypatch.setattr(behaviour, "_sent_without_collectives", refused)
    found = verdict(find("case3"), right)
    assert found.passed, found.failure


def test_where_it_cannot_be_found_that_is_said(monkeypatch):
    monkeypatch.setattr(behaviour, "_sent_without_collectives", refused)
    found = verdict(find("case3"), divided_again)
    assert found.failure.findings == (WrongForm("unwritten unknown", ("ValueError", "no such program")),)
