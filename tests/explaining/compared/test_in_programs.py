"""What the wrong arrays of a program give away, from its run to the finding."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, Case, ProgramExercise
from grader.exercises.collecting import asks, collect
from grader.explaining.explained import explained
from grader.findings.arrays import AllZero, ExtraDimension, FactorIs, OffByFactor, WrongLength, WrongLengths
from grader.findings.mistakes import MistakeInSomeCases
from grader.findings.quantities import Quantity

X = Quantity("devices along", "x")
BOTH = (4, 2), (2, 4)


def found_in(answer, reference, case, meshes=((4,),), mistake=None):
    exercise = ProgramExercise("compared_in_a_test", points=2, reference=reference, mesh_shapes=meshes)
    exercise.cases(case)
    if mistake:
        exercise.mistake(mistake)
    cases = exercise.draw_cases(0)
    verdict = explained(exercise, cases, collect("program", asks(exercise, cases), answer))
    return next(outcome for outcome in verdict.outcomes if not outcome.passed).findings


def two_widths(draw):
    for columns in (3, 6):
        yield Case({"a": draw.array(16, columns, spec=P("x"))}, draw.mesh("x", "y"), P("x"))


def test_a_factor_follows_the_devices_only_if_it_does_in_each_case():
    def in_one_case(a, *, mesh):
        return a * (mesh.shape["x"] if a.shape[1] == 3 else 5)

    follows = FactorIs(X, too_large=True)
    assert follows in found_in(lambda a, *, mesh: a * mesh.shape["x"], lambda a: a * 1, two_widths, BOTH)
    assert follows not in found_in(in_one_case, lambda a: a * 1, two_widths, BOTH)


def test_the_factor_of_a_single_element_is_told_if_two_meshes_tell_it():
    def case(draw):
        return Case({"a": draw.array(8, 4, spec=P("x"))}, draw.mesh("x", "y"), P())

    found = found_in(lambda a, *, mesh: (a * 7).mean(), lambda a: a.mean(), case, BOTH)
    assert OffByFactor(7, None) in found


def test_arrays_of_zeros_are_told_beside_one_that_is_right():
    def case(draw):
        return Case({"a": draw.array(8, 3, spec=P("x"))}, draw.mesh("x"), (P("x"), P("x"), P("x")))

    found = found_in(lambda a, *, mesh: (a + 1, a * 0, a * 0), lambda a: (a + 1, a * 2, a * 3), case)
    assert AllZero() in found


def test_shards_that_are_gathered_and_then_returned_as_shards_are_told():
    def gathered(a, *, mesh):
        body = lambda block: lax.all_gather(block, "x", axis=0, tiled=True)  # noqa: E731
        return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)

    def case(draw):
        return Case({"a": draw.array(8, 24, spec=P("x"))}, draw.mesh("x", "y"), P())

    assert WrongLengths((WrongLength(0, None, times=X, over=None),)) in found_in(gathered, lambda a: a, case, BOTH)


def test_a_wrong_shape_is_told_of_though_a_gradient_was_asked_for():
    def case(draw):
        given = {"a": draw.array(16, spec=P("x"))}
        return Case(given, draw.mesh("x", "y"), P(), cotangents=Array(np.float32(1), P()))

    def answer(a, *, mesh):
        return jax.shard_map(lambda a: a.mean()[None], mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)

    assert ExtraDimension(0, X) in found_in(answer, lambda a: a.mean(), case, BOTH)


def summed(body):
    return lambda a, *, mesh: jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


def squared_first(a, *, mesh):
    """The squares were summed."""
    return summed(lambda block: lax.psum((block**2).sum(0), "x"))(a, mesh=mesh)


def found_in_sums(body):
    def cases(draw):
        for columns in (3, 6):
            yield Case({"a": draw.array(16, columns, spec=P("x"))}, draw.mesh("x", "y"), P())

    return found_in(summed(body), lambda a: a.sum(0) ** 2, cases, (*BOTH, (8, 1)), squared_first)


def test_a_mistake_that_is_made_in_one_branch_is_named():
    def wide_ones(block):
        narrow = block.shape[1] == 3
        return lax.psum(block.sum(0), "x") ** 2 if narrow else lax.psum((block**2).sum(0), "x")

    assert MistakeInSomeCases("squared_first") in found_in_sums(wide_ones)


def test_a_mistake_that_is_made_in_some_of_the_wrong_cases_is_not_named():
    def not_all(block):
        small = block.shape[0] == 8
        return 3 + lax.psum(block.sum(0), "x") ** 2 if small else lax.psum(jnp.square(block).sum(0), "x")

    assert MistakeInSomeCases("squared_first") not in found_in_sums(not_all)
