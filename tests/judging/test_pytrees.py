"""Programs whose arguments and results are pytrees, and whose own gradient is judged."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader import feedback
from grader.arrays.laid import Array
from grader.arrays.numbers import close
from grader.exercises.as_json import question_from_json, to_json
from grader.exercises.case import Case
from grader.exercises.collecting import asks, collect
from grader.exercises.forms import ProgramExercise
from grader.explaining import explainer, programs
from grader.explaining.explained import explained
from grader.explaining.explainer import mistaken_on
from grader.findings import arrays
from grader.findings.programs import (
    AlikeParts,
    NoGradient,
    ResultPart,
    WrongArrayCount,
    WrongResultDtype,
    WrongResultKeys,
    WrongResultShape,
)
from grader.findings.quantities import Quantity

ROUNDINGS = 60 * 4  # sums of at most 60 terms: two forward, two backward


def loss(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2)


def arguments(draw):
    n, a, b, c = draw.lengths(4, divisible_by=8)
    params = {"w1": Array(draw.values(a, b) / 40, P()), "w2": Array(draw.values(b, c) / 40, P())}
    return {
        "params": params,
        "x": Array(draw.values(n, a) / 10, P("data")),
        "y": Array(draw.values(n, c) / 10, P("data")),
    }


by_its_own = ProgramExercise("t_by_its_own", points=4, reference=loss)
by_its_own.cases(
    lambda draw: Case(
        arguments(draw), draw.mesh("data", "model"), out=P(), roundings=ROUNDINGS, cotangents=Array(np.float32(1), P())
    )
)
exported = ProgramExercise("t_exported", points=4, reference=jax.value_and_grad(loss))
exported.cases(
    lambda draw: Case(
        arguments(draw), draw.mesh("data", "model"), out=(P(), {"w1": P(), "w2": P()}), roundings=ROUNDINGS
    )
)
LAID_OUT = {"in_specs": (P(), P("data"), P("data")), "out_specs": P()}


def the_loss(params, x, y, *, mesh, combine=jax.lax.pmean):
    def go(*local):
        return combine(loss(*local), "data")

    return jax.shard_map(go, mesh=mesh, **LAID_OUT)(params, x, y)


@by_its_own.mistake
def sum_of_means(params, x, y, *, mesh):
    """A sum of means."""
    return the_loss(params, x, y, mesh=mesh, combine=jax.lax.psum)


def gradients(params, x, y, *, mesh, then=lambda g, n: g / n, check_vma=True):
    def go(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.lax.pmean(value, "data"), jax.tree.map(lambda g: then(g, jax.lax.axis_size("data")), grads)

    return jax.shard_map(go, mesh=mesh, **LAID_OUT, check_vma=check_vma)(params, x, y)


@exported.mistake
def summed_already(params, x, y, *, mesh):
    """Summed already."""
    return gradients(params, x, y, mesh=mesh, then=lambda g, n: g)


def crossed(value):
    return question_from_json(json.loads(json.dumps(to_json(value))))


def verdict(exercise, answer, seed=3, thorough=False):
    cases = exercise.draw_cases(seed, thorough=thorough)
    asked = [crossed(ask) for ask in asks(exercise, cases)]
    return explained(exercise, cases, [crossed(a) for a in collect(exercise.form, asked, answer)])


@pytest.mark.parametrize("exercise, answer", [(by_its_own, the_loss), (exported, gradients)])
def test_the_right_program_earns_everything_on_every_mesh(exercise, answer):
    found = verdict(exercise, answer, thorough=True)
    assert found.passed, found.failure


def test_a_gradient_by_the_compiler_is_the_programs_own_too():
    plain = ProgramExercise("t_left", points=4, reference=loss, by_compiler=True)
    plain.cases(by_its_own.drawn)
    found = verdict(plain, lambda params, x, y, *, mesh: loss(params, x, y))
    assert found.passed, found.failure


def test_a_wrong_scale_is_named_and_the_table_shows_it():
    found = verdict(by_its_own, sum_of_means)
    assert found.mistake == "sum_of_means"
    gradients = ["d/dparams['w1']", "d/dparams['w2']", "d/dx", "d/dy"]
    assert {r.name: r.words for r in found.ratios} == dict.fromkeys(["result", *gradients], "4")
    assert "<strong>4</strong>" in feedback.card(found)


def with_other_gradients(params, x, y, *, mesh):
    """The right loss, and twice the gradient."""
    doubled = jax.custom_vjp(lambda value: value)
    doubled.defvjp(lambda value: (value, None), lambda _, cotangent: (2 * cotangent,))
    return doubled(the_loss(params, x, y, mesh=mesh))


@pytest.mark.parametrize("answer, with_gradients", [(sum_of_means, True), (with_other_gradients, False)])
def test_a_mistake_is_run_with_its_gradients_only_where_its_result_is_that_of_the_answer(
    monkeypatch, answer, with_gradients
):
    own = ProgramExercise("t_run_seldom", points=4, reference=loss)
    own.cases(by_its_own.drawn)
    own.mistake(sum_of_means)
    asked: list[bool] = []  # of each mistake that is run: whether with its gradients

    def noted(exercise, mistake, case, **order):
        asked.append(case.cotangents is not None)
        return mistaken_on(exercise, mistake, case, **order)

    for module in (explainer, programs):
        monkeypatch.setattr(module, "mistaken_on", noted)
    assert not verdict(own, answer).passed
    assert False in asked and (True in asked) is with_gradients


W1, W2 = ResultPart("result[1]['w1']"), ResultPart("result[1]['w2']")


def test_a_right_loss_with_wrong_gradients_is_told_which():
    found = verdict(exported, summed_already)
    assert found.mistake == "summed_already" and found.failure.findings[0].part == W1
    assert [r.words for r in found.ratios] == ["1", "4", "4"]


def summed(scale, *given, mesh):
    """The gradients, each so many times too large."""
    loss, found = gradients(*given, mesh=mesh)
    return loss, {name: scale(k, grad) * grad for k, (name, grad) in enumerate(found.items())}


@pytest.mark.parametrize(
    "scale, findings",
    [
        (
            lambda k, g: 8,
            (arrays.FactorIs(Quantity("all devices"), too_large=True), AlikeParts((W1, W2), 0, (), 0)),
        ),
        (  # one is 4 times too large, the other another number of times in each element
            lambda k, g: 2 + jnp.arange(g.shape[0])[:, None] if k else 5,
            (arrays.OffByFactor(5.0, None), AlikeParts((W1,), 0, (W2,), 0)),
        ),
        (lambda k, g: 0, (arrays.AllZero(), AlikeParts((W1, W2), 0, (), 0))),
    ],
)
def test_a_relation_is_told_with_the_arrays_of_which_it_is_true(scale, findings):
    found = verdict(exported, lambda *given, mesh: summed(scale, *given, mesh=mesh))
    assert found.failure.findings[1:] == findings


def test_copies_that_differ_are_found_out():
    found = verdict(exported, lambda *a, mesh: gradients(*a, mesh=mesh, then=lambda g, n: g, check_vma=False))
    assert [r.apart for r in found.ratios] == [False, True, True]


@pytest.mark.parametrize(
    "answer, finding",
    [
        (lambda *a, mesh: gradients(*a, mesh=mesh)[1], WrongArrayCount(3, 2)),
        (lambda *a, mesh: gradients(*a, mesh=mesh)[::-1], WrongResultKeys((), ("w1",))),
        (lambda p, x, y, *, mesh: (jnp.sum(x), {"w1": p["w1"], "w3": p["w2"]}), WrongResultKeys(("w2",), ("w3",))),
        (
            lambda p, x, y, *, mesh: (jnp.sum(x), {"w1": p["w1"], "w2": p["w2"].T}),
            WrongResultShape(W2, (16, 48), (48, 16)),
        ),
    ],
)
def test_another_structure_is_said(answer, finding):
    assert verdict(exported, answer).failure.findings[0] == finding


@pytest.mark.parametrize(
    "made, finding",
    [
        (lambda value: jnp.int32(3), WrongResultDtype(ResultPart(), "float32", "int32")),
        (lambda value: value.astype(jnp.bfloat16), WrongResultDtype(ResultPart(), "float32", "bfloat16")),
        (lambda value: (value,), NoGradient()),
        (lambda value: value * jnp.ones(48), WrongResultShape(ResultPart(), (), (48,))),
    ],
)
def test_why_there_is_no_gradient_is_said(made, finding):
    found = verdict(by_its_own, lambda *given, mesh: made(the_loss(*given, mesh=mesh)))
    assert (found.failure.check, found.failure.findings[0]) == ("shape", finding)


def test_whole_numbers_have_no_gradient():
    picked = ProgramExercise("t_picked", points=2, reference=lambda table, rows: table[rows].sum(), by_compiler=True)
    picked.cases(
        lambda draw: Case(
            {"table": draw.array(8, 6, spec=P()), "rows": Array(np.arange(4), P())},
            draw.mesh("x", "y"),
            out=P(),
            cotangents=Array(np.float32(1), P()),
        )
    )
    found = verdict(picked, lambda table, rows, *, mesh: table[rows].sum())
    assert found.passed, found.failure


def test_what_an_evaluator_tells_is_the_same():
    """The classroom's way: the program is read and run in another process."""
    pytest.importorskip("nbgrader", reason="the instructor's side is not installed")
    from grader.classroom.verdicts.judge import Judge

    judging = Judge()
    try:
        cases = exported.draw_cases(3, thorough=True)
        for answer, mistake in ((gradients, ""), (summed_already, "summed_already")):
            answers = [to_json(a) for a in collect(exported.form, asks(exported, cases), answer)]
            judged = judging(exported, 3, answers)
            assert judged.verdict.mistake == mistake and judged.verdict.passed == (not mistake), judged.text
    finally:
        judging.close()


def test_the_bound_is_derived_from_the_length_of_the_sum():
    """Sums of random numbers in float32 stay within it; a hundredth of one term missing does not."""
    rng = np.random.default_rng(5)
    for n in (64, 512, 4096):
        terms = rng.uniform(0.5, 1.5, size=(n, 8)).astype(np.float32)
        exact = terms.sum(0, dtype=np.float64)
        one_by_one = np.cumsum(terms, axis=0, dtype=np.float32)[-1]
        assert close(one_by_one, exact, roundings=n)
        assert not close(exact + n * 2.0**-22 * exact, exact, roundings=n)


def test_infinite_and_missing_numbers_are_not_close_to_others():
    for odd in (np.inf, -np.inf, np.nan):
        assert not close(np.array([1.0, odd]), np.array([1.0, 2.0]))
    assert not close(np.array([5.0, np.inf]), np.array([1.0, np.inf]))
    assert close(np.array([1.0, np.inf]), np.array([1.0, np.inf]))
