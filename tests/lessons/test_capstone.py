"""The capstone: its program for eight devices, its bound, its text; and gates that open one after the other."""

import ast
import inspect
import itertools

import jax
import numpy as np
import pytest
from answering import given as given_by
from answering import notebook
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import grader
from grader.arrays.meshes import make_mesh
from grader.checking import verdict_on
from grader.chips.compiling import NoCompiler
from grader.chips.report import Fit
from grader.findings.verdicts import GateClosed, Taught
from grader.guide import attempts
from grader.lessons import find
from grader.lessons.capstone import model, plans, pods
from grader.lessons.capstone.curves import curve, rounding_bound
from grader.lessons.capstone.model import SIZES, one_step
from grader.lessons.capstone.sharded import STATE, sharded_step
from grader.programs.program import trace
from grader.programs.walk import structure
from grader.transformer import alphabet, batch_at, examples, init_params, init_state, zen


@pytest.fixture
def lines():
    return examples(zen(), alphabet(zen()))


def test_every_line_is_read_to_its_own_end(lines):
    tokens, targets = lines
    letters = alphabet(zen())
    for line, given, due in zip(zen(), tokens, targets, strict=True):
        assert "".join(letters[k] for k in due[due >= 0]) == f"{line}\n"
        assert "".join(letters[k] for k in given[1 : len(line) + 1]) == line and given[0] == 0


def test_in_one_pass_every_line_comes_once_whatever_the_size_of_a_batch(lines):
    for rows, micro in ((5, 2), (4, 1)):
        batches = [batch_at(k, 3, rows, micro, lines)[0].reshape(rows * micro, -1) for k in range(20 // rows // micro)]
        assert sorted(map(tuple, np.concatenate(batches))) == sorted(map(tuple, lines[0]))


def test_one_step_on_eight_devices_equals_one_device_and_is_compiled_once(lines):
    mesh = make_mesh({"data": 4, "model": 2})
    begun = jax.tree.map(np.asarray, init_state(init_params(jax.random.key(1), {**SIZES, "width": 32, "hidden": 32})))
    lie = lambda tree, specs: jax.tree.map(  # noqa: E731
        lambda leaf, spec: jax.device_put(leaf, NamedSharding(mesh, spec)), tree, specs
    )
    state, step = lie(begun, STATE), sharded_step(mesh)
    with grader.compilations() as made:
        for k in range(3):
            batch = batch_at(k, 0, 8, 1, tuple(array[:, :16] for array in lines))
            begun, due = jax.jit(one_step)(begun, *batch)
            before = len(made)
            state, found = step(state, *lie(batch, (P(None, "data"),) * 2))
            assert (len(made) - before) == (k == 0)
            assert abs(float(found) - float(due)) < 1e-5


def test_the_bound_of_a_curve_is_that_of_rounding():
    case = curve.draw_cases(3)[0]
    bound = rounding_bound(case.arguments["state"], case.arguments["batches"])
    assert bound.shape == (40,) and (np.diff(bound) >= 0).all()
    assert 1e-6 < bound[-1] < 1e-3


def test_a_gate_opens_when_the_one_before_is_right(monkeypatch):
    monkeypatch.setattr(attempts, "_right_here", set())
    untouched = lambda *_, **__: ...  # noqa: E731
    assert find("forward").after == "specs"
    closed = verdict_on("forward", untouched)
    assert closed.points == 0 and closed.worth == find("forward").points and closed.state == "open"
    assert closed.failure.findings == (GateClosed("specs"),)
    attempts.keep(verdict_on("specs", find("specs").reference))
    assert attempts.was_right("specs")
    assert GateClosed("specs") not in verdict_on("forward", untouched).failure.findings


def test_what_the_text_shows_of_one_device_is_what_gates_are_held_against():
    cells = [cell.source for cell in notebook("solutions", "22_capstone").cells if cell.cell_type == "code"]
    (shown,) = (ast.parse(cell) for cell in cells if cell.startswith("def logits_of"))
    for function in shown.body:
        assert ast.unparse(function) == ast.unparse(ast.parse(inspect.getsource(getattr(model, function.name))))


def test_the_formulas_of_the_text_are_those_by_which_plans_are_judged():
    text = given_by("22_capstone")
    assert (text["LLAMA_3"], text["MACHINES"]) == (plans.LLAMA_3, plans.MACHINES)
    for name, kind in itertools.product(plans.LLAMA_3, plans.MACHINES):
        of = plans.LLAMA_3[name], plans.MACHINES[kind]
        for plan in plans.plans(of[0], 64, 256):
            assert text["memory_bytes"](of[0], plan) == pytest.approx(plans.memory_bytes(of[0], plan))
            assert text["step_time"](*of, plan) == pytest.approx(plans.step_time(*of, plan))
            assert text["mfu"](*of, plan) == pytest.approx(plans.mfu(*of, plan))


@pytest.mark.parametrize("remat", plans.REMAT)
def test_a_layer_sends_along_model_as_often_as_the_formula_says(remat):
    """Counted in the step that the pod's compiler is asked about: by how many collectives one layer more is more."""
    small = {"width": 32, "hidden": 64, "heads": 4, "kv_heads": 2, "vocabulary": 32, "length": pods.QUERIES}
    plan = {"data": 2, "model": 2, "rows": 1, "micro": 1, "remat": remat}
    sums = []
    for layers in (1, 2):
        step, arguments = pods.step_of({**small, "layers": layers}, plan)
        collectives = structure(trace(step, *arguments)).collectives
        sums.append(sum(c.times for c in collectives if c.axes == ("model",)))
    assert sums[1] - sums[0] == plans.ALONG_MODEL[remat]


def test_who_misses_a_gate_is_told_where_the_pieces_are():
    missed = verdict_on("specs", find("specs").mistakes[0].wrong)
    assert missed.failure.findings[-1] == Taught(("02_shardings", "14_fsdp"))


@pytest.mark.parametrize("shape, remat", [((128, 2, 4), "mlp"), ((256, 1, 2), "full"), ((64, 4, 8), "none")])
def test_the_pods_compiler_takes_a_plan_that_the_formulas_let_through_and_counts_what_they_do(shape, remat):
    data, axis, micro = shape
    plan = {"data": data, "model": axis, "rows": 1, "micro": micro, "remat": remat}
    model = plans.LLAMA_3["8B"]
    try:
        said = pods.fit(model, plan, "v5e:16x16")
    except NoCompiler as error:
        pytest.skip(str(error))
    assert not said.refusal
    assert said.held == pytest.approx(plans.memory_bytes(model, plan), rel=0.06)


def test_a_plan_that_the_pods_compiler_refuses_is_none(monkeypatch):
    case = find("plan").draw_cases()[0]
    best = find("plan").reference(**case.arguments)
    assert plans.good_plan(best, best, **case.arguments)
    monkeypatch.setattr(plans, "fit", lambda *asked: Fit("too large", 0, 0))
    assert not plans.good_plan(best, best, **case.arguments)
    monkeypatch.setattr(plans, "fit", nobody_knows)
    assert plans.good_plan(best, best, **case.arguments)


def nobody_knows(*asked):
    raise NoCompiler("no compiler is here")
