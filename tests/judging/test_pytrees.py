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
from grader.judging import ladder, programs, right_repairs
from grader.judging.judge import judge
from grader.judging.ladder import mistaken_on

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
    return judge(exercise, cases, [crossed(a) for a in collect(exercise.form, asked, answer)])


@pytest.mark.parametrize("exercise, answer", [(by_its_own, the_loss), (exported, gradients)])
def test_the_right_program_earns_everything_on_every_mesh(exercise, answer):
    found = verdict(exercise, answer, thorough=True)
    assert found.passed, found.words


def test_a_gradient_by_the_compiler_is_the_programs_own_too():
    plain = ProgramExercise("t_left", points=4, reference=loss, by_compiler=True)
    plain.cases(by_its_own.drawn)
    found = verdict(plain, lambda params, x, y, *, mesh: loss(params, x, y))
    assert found.passed, found.words


def test_a_wrong_scale_is_named_and_the_table_shows_it():
    found = verdict(by_its_own, sum_of_means)
    assert found.mistake == "sum_of_means"
    assert {r.name: r.words for r in found.ratios} == {
        "The result": "4",
        "The gradient with respect to params['w1']": "4",
        "The gradient with respect to params['w2']": "4",
        "The gradient with respect to x": "4",
        "The gradient with respect to y": "4",
    }
    assert "found ÷ expected:" in feedback.plain_card(found) and "<strong>4</strong>" in feedback.card(found)


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

    for module in (ladder, programs, right_repairs):
        monkeypatch.setattr(module, "mistaken_on", noted)
    assert not verdict(own, answer).passed
    assert False in asked and (True in asked) is with_gradients


def test_a_right_loss_with_wrong_gradients_is_told_which():
    found = verdict(exported, summed_already)
    assert found.mistake == "summed_already"
    assert "Result 1['w1'] is wrong on device 0" in found.words
    assert [r.words for r in found.ratios] == ["1", "4", "4"]


def test_without_a_named_mistake_the_signature_is_that_of_the_wrong_arrays():
    found = verdict(exported, lambda *a, mesh: gradients(*a, mesh=mesh, then=lambda g, n: g * 8 / n))
    assert found.mistake == "" and "8 times too large" in found.words


def test_what_is_so_of_one_wrong_array_is_not_said_of_all():
    """One gradient is 4 times too large; the other is another number of times in each entry."""

    def answer(*a, mesh):
        loss, found = gradients(*a, mesh=mesh, then=lambda g, n: g / n)
        return loss, {"w1": 4 * found["w1"], "w2": found["w2"] * (2 + jnp.arange(found["w2"].shape[0])[:, None])}

    found = verdict(exported, answer)
    assert "Of Result 1['w1']: Every entry is 4 times too large" in found.words
    assert "Also wrong: Result 1['w2']." in found.words


def test_a_number_that_is_zero_is_nothing_else_where_all_arrays_are_zero():
    found = verdict(exported, lambda *a, mesh: jax.tree.map(lambda g: 0 * g, gradients(*a, mesh=mesh)))
    assert "Every entry is zero." in found.words and "Something else is wrong" not in found.words


def test_copies_that_differ_are_found_out():
    found = verdict(exported, lambda *a, mesh: gradients(*a, mesh=mesh, then=lambda g, n: g, check_vma=False))
    assert [r.apart for r in found.ratios] == [False, True, True]
    assert "copies differ" in feedback.plain_card(found)


@pytest.mark.parametrize(
    "answer, words",
    [
        (lambda *a, mesh: gradients(*a, mesh=mesh)[1], "should return 3 arrays; it returns 2"),
        (lambda *a, mesh: gradients(*a, mesh=mesh)[::-1], "no key of a dict; yours has the key 'w1'"),
        (lambda p, x, y, *, mesh: (jnp.sum(x), {"w1": p["w1"], "w3": p["w2"]}), "the key 'w2'; yours has the key 'w3'"),
        (lambda p, x, y, *, mesh: (jnp.sum(x), {"w1": p["w1"], "w2": p["w2"].T}), "Result 1['w2'] should have shape"),
    ],
)
def test_another_structure_is_said(answer, words):
    assert words in verdict(exported, answer).words


def test_a_loss_of_another_shape_is_said_before_its_gradient():
    found = verdict(by_its_own, lambda p, x, y, *, mesh: jnp.sum(x @ p["w1"], axis=0))
    assert "The result should have shape (); yours has (48,)." in found.words


@pytest.mark.parametrize(
    "made, words",
    [
        (
            lambda value: jnp.int32(3),
            "The result should be made of float32; yours is of int32, and no gradient is taken",
        ),
        (lambda value: value.astype(jnp.bfloat16), "yours is of bfloat16"),
        (lambda value: (value,), "a tuple of one array for that array"),
    ],
)
def test_why_there_is_no_gradient_is_said(made, words):
    found = verdict(by_its_own, lambda *given, mesh: made(the_loss(*given, mesh=mesh)))
    assert found.failure.check == "shape" and words in found.words


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
    assert found.passed, found.words


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
