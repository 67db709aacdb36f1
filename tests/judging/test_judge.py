"""The checks of a program, in their order, and what must never be fooled."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.exercises.answers import Problem, Value
from grader.exercises.as_json import from_json, question_from_json, to_json
from grader.exercises.collecting import asks, collect
from grader.exercises.limits import ORDER, BytesSent, InPlace, Limit, Meanwhile, PeakBytes, Turns, Without, Written
from grader.explaining.explained import explained
from grader.findings import costs, problems, programs
from grader.findings.verdicts import NotChecked
from grader.lessons import EXERCISES, find

INS = (P(None, "x"), P("x", None))
RESULT = programs.ResultPart()


def verdict(body, ins=INS, out=P(), name="case3"):
    def answer(a, b, *, mesh):
        return jax.shard_map(body, mesh=mesh, in_specs=ins, out_specs=out, check_vma=False)(a, b)

    return on(answer, name)


def on(answer, name="case3", thorough=True, judged=explained):
    exercise = EXERCISES[name]
    cases = exercise.draw_cases(11, thorough=thorough)
    return judged(exercise, cases, collect(exercise.form, asks(exercise, cases), answer))


def missed(found):
    """The check that is missed, and the kind of the finding that says so."""
    return found.failure.check, type(found.failure.findings[0])


def gathered(a, b):
    return lax.all_gather(a, "x", axis=1, tiled=True) @ lax.all_gather(b, "x", axis=0, tiled=True)


def one_of_two_sums(a, b):
    return lax.cond(lax.axis_index("x") == 0, lambda c: lax.psum(c, "x"), lambda c: lax.psum(2 * c, "x"), a @ b)


def seven_more_matmuls(a, b):
    return lax.psum(a @ b, "x") + 0 * sum((a * k) @ b for k in range(1, 8))


@pytest.mark.parametrize(
    "body, ins, check, kind, points",
    [
        (lambda a, b: jnp.zeros((a.shape[0], b.shape[1])), INS, "values", programs.WrongElement, 0),
        (gathered, INS, "communication", costs.WrongAmount, 2),
        (lambda a, b: a @ b, (P(), P()), "communication", costs.WrongForm, 2),
        (seven_more_matmuls, INS, "work", costs.WrongAmount, 3),
        (one_of_two_sums, INS, "runs", problems.WouldDeadlock, 0),
        (lambda a, b: lax.psum(a @ b, "z"), INS, "runs", problems.Raised, 0),
    ],
)
def test_what_is_missed_and_what_it_costs(body, ins, check, kind, points):
    found = verdict(body, ins)
    assert (*missed(found), found.points) == (check, kind, points)


def test_a_claimed_replication_is_checked_on_every_device():
    """Device 0 has the truth, the others something else; NumPy would show device 0's."""

    def body(a, b):
        c = lax.psum(a @ b, "x")
        return jnp.where(lax.axis_index("x") == 0, c, c + 1)

    element, *_ = verdict(body).failure.findings
    assert (element.device, element.replicated, element.index) == (2, True, (0, 0))
    assert float(element.found) == float(element.expected) + 1


def test_checks_after_the_first_miss_are_not_made():
    found = verdict(lambda a, b: a @ b)
    assert [o.check for o in found.outcomes] == ["runs", "shape", "values", "sharding", "communication", "work"]
    assert [o.passed for o in found.outcomes] == [True, True, False, False, False, False]
    assert [o.tried for o in found.outcomes] == [True, True, True, False, False, False]
    assert all(o.findings == (NotChecked("values"),) for o in found.outcomes[3:])


@pytest.mark.parametrize("inside, named", [(True, "gathered_weights_kept"), (False, "stack_gathered_first")])
def test_all_at_once_is_told_from_a_part_in_every_iteration_of_a_loop(inside, named):
    """The values, the bytes sent and the limit that is exceeded are the same."""

    def full(shard):
        return lax.all_gather(shard, "fsdp", axis=shard.ndim - 2, tiled=True)

    def answer(stack, x, y, *, mesh):
        def mean(stack, x, y):
            shards = stack if inside else full(stack)
            h, _ = lax.scan(lambda h, w: (jnp.tanh(h @ (full(w) if inside else w)), None), x, shards)
            return lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        specs = P(None, "fsdp"), P("fsdp"), P("fsdp")
        return jax.value_and_grad(jax.shard_map(mean, mesh=mesh, in_specs=specs, out_specs=P()))(stack, x, y)

    found = on(answer, "fsdp_scan", thorough=False, judged=explained)
    assert (found.failure.check, found.mistake) == ("work", named)


def limited(*limits):
    """The verdict on a right program with other limits to its communication."""
    exercise = EXERCISES["case3"]
    cases = [replace(case, limits=limits) for case in exercise.draw_cases(11)]

    def solved(a, b, *, mesh):
        return jax.shard_map(lambda a, b: lax.psum(a @ b, "x"), mesh=mesh, in_specs=INS, out_specs=P())(a, b)

    return explained(exercise, cases, collect(exercise.form, asks(exercise, cases), solved))


@pytest.mark.parametrize(
    "limit, kind",
    [
        (Turns({"all_reduce": 1}), None),
        (Turns({"collective_permute": 3}), costs.WrongCollectives),
        (Turns({}), costs.WrongCollectives),
        (PeakBytes(1 << 20), None),
        (PeakBytes(100), costs.WrongAmount),
        (Written({}), costs.WrongCollectives),
        (Without("all_reduce", "y"), None),
        (InPlace(()), None),
        (InPlace(("float32",)), costs.WrongAmount),
        (Meanwhile(1), costs.WrongAmount),
    ],
)
def test_limits_are_held(limit, kind):
    found = limited(limit)
    assert found.passed if kind is None else isinstance(found.failure.findings[0], kind)


def test_of_several_limits_the_first_in_order_is_told_however_they_are_given():
    in_one_order = [Written({}), Turns({}), Meanwhile(1), BytesSent(0)]
    assert limited(*in_one_order).outcomes == limited(*in_one_order[::-1]).outcomes
    assert set(ORDER) == set(Limit.__subclasses__())


def test_what_is_told_of_moves_before_shard_map_is_what_the_compiler_sends():
    """From columns over x to columns over y: it is no all-gather over x of all of it."""
    (finding,) = verdict(lambda a, b: lax.psum(a @ b, "y"), ins=(P(None, "y"), P("y", None))).failure.findings
    assert "collective_permute" in {one.collective for one in finding.transfers}


def test_leaving_it_all_to_the_compiler_is_found_out():
    found = on(lambda a, b, *, mesh: lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P())))
    assert missed(found) == ("communication", costs.WrongForm)


@pytest.mark.parametrize("answer", [..., None, 42, lambda a, b: a, lambda a, b, *, mesh: None])
def test_what_is_no_answer_earns_nothing(answer):
    assert on(answer).points == 0 and on(answer).failure.findings


def of(dtype):
    return programs.WrongResultDtype(RESULT, "float32", dtype)


@pytest.mark.parametrize(
    "answer, finding",
    [
        (lambda a, b, *, mesh: (a, b), programs.WrongArrayCount(1, 2)),
        (lambda a, b, *, mesh: (a @ b)[0], programs.WrongResultShape(RESULT, (16, 24), (24,))),
        (lambda a, b, *, mesh: (a @ b) > 0, of("bool")),
        (lambda a, b, *, mesh: (a @ b).astype(jnp.int32), of("int32")),
        (lambda a, b, *, mesh: (a @ b).astype(jnp.bfloat16), of("bfloat16")),
        (lambda a, b, *, mesh: (a @ b) * 1j, of("complex64")),
    ],
)
def test_results_of_another_form_are_told(answer, finding):
    found = on(answer)
    assert (found.points, found.failure.findings[0]) == (0, finding)


def in_a_loop(a, b):
    return lax.fori_loop(0, 3, lambda k, c: c + a @ b, jnp.zeros((a.shape[0], b.shape[1])))


@pytest.mark.parametrize(
    "body, options",
    [
        (jnp.matmul, {"in_specs": P("x", "y"), "axis_names": {"x"}}),
        (jnp.matmul, {"in_specs": list(INS)}),
        (in_a_loop, {"in_specs": INS}),
    ],
)
def test_what_shard_map_refuses_is_explained(body, options):
    answer = lambda a, b, *, mesh: jax.shard_map(body, mesh=mesh, out_specs=P(), **options)(a, b)  # noqa: E731
    found = on(answer, judged=explained)
    assert found.failure.check == "runs"
    assert [type(one) for one in found.failure.findings[:2]] == [problems.Raised, problems.ErrorMeaning]


def test_answers_cross_the_wire_and_nothing_else_does():
    exercise = EXERCISES["case3"]
    cases = exercise.draw_cases(1)
    asked = asks(exercise, cases)
    assert question_from_json(to_json(asked)) == asked
    answers = collect("program", asked, exercise.mistakes[0].wrong)
    assert from_json(to_json(answers)) == answers
    odd = [Value([np.arange(3.0), {"a": (1, 2.5)}, float("inf")]), Problem("error", "E", "m", ("float32[2]",))]
    again = from_json(to_json(odd))
    assert again[1] == odd[1] and again[0].value[1] == {"a": (1, 2.5)} and again[0].value[2] == float("inf")


VALUE = {"value": 1, "moved": ""}
PROBLEM = {"kind": "error", "error": "E", "message": "m", "operands": [], "refusal": None}
LAID = {"value": 1, "mesh": None, "spec": {"tuple": []}, "instead": [], "memory": ""}


@pytest.mark.parametrize(
    "forged",
    [
        {"__reduce__": []},
        {"a": 1, "b": 2},
        {"program": "%%"},
        {"program": {}},
        {"array": "AAAA"},
        {"array": 3},
        {"cast": {"dtype": "no such", "array": 1.0}},
        {"value": 1},
        {"value": {"x": 1}},
        {"value": {**VALUE, "more": 1}},
        {"value": {**VALUE, "moved": 3}},
        {"value": [1, ""]},
        {"value": {**VALUE, "value": {"x": 1}}},
        {"script": {"source": "1", "main": ["f"]}},
        {"problem": {"kind": "error", "error": "E", "message": "m"}},
        {"problem": {**PROBLEM, "operands": [1]}},
        {"problem": {**PROBLEM, "refusal": {"is": "Refusal", "reason": "because", "names": []}}},
        {"problem": {**PROBLEM, "refusal": {"is": "Refusal", "reason": "unknown"}}},
        {"problem": {**PROBLEM, "refusal": {"is": "KnownMistake", "name": "m", "exactly": True}}},
        {"layout": {"shape": ["4"], "dtype": "f4", "spec": {"tuple": []}}},
        {"layout": {"shape": [True], "dtype": "f4", "spec": {"tuple": []}}},
        {"laid": {**LAID, "spec": 1}},
        {"laid": {**LAID, "instead": [[1]]}},
        {"laid": {**LAID, "instead": [["1", 2]]}},
        {"dict": [[1]]},
        {"dict": 1},
        {"tuple": 1},
        {"float": "much"},
    ],
    ids=str,
)
def test_whatever_else_is_on_the_wire_is_refused(forged):
    for record in (forged, [forged], {"tuple": [forged]}):
        with pytest.raises(ValueError):
            from_json(record)


def test_a_text_that_is_shown_cannot_steer_a_terminal():
    assert from_json(to_json(Problem("error", "E\x1b[2J", "m\x07"))) == Problem("error", "E\ufffd[2J", "m\ufffd")
    refused = Problem("refused", refusal=problems.Refusal("no function", ("T\x1b[2J",)))
    assert from_json(to_json(refused)).refusal == problems.Refusal("no function", ("T\ufffd[2J",))


def test_values_are_not_among_what_a_worker_is_told():
    exercise = EXERCISES["case3"]
    case = exercise.draw_cases(1)[0]
    told = repr(to_json(asks(exercise, [case])))
    assert "array" not in told and str(case.arguments["a"].value[0, 0]) + "," not in told


def test_an_unknown_exercise_names_its_neighbours():
    with pytest.raises(LookupError, match="Did you mean case3"):
        find("case_3")


def test_cases_are_fresh_and_without_zeros_or_equal_lengths():
    exercise = EXERCISES["case3"]
    one, other = exercise.draw_cases(1, thorough=True), exercise.draw_cases(2, thorough=True)
    assert [tuple(c.mesh.values()) for c in one] == [(4, 2), (2, 4), (8, 1), (1, 8), (4, 2)]
    for case in one[:-1]:
        (i, j), (_, k) = case.arguments["a"].value.shape, case.arguments["b"].value.shape
        assert len({i, j, k}) == 3 and case.arguments["a"].value.all()
    assert len({n for a in one[-1].arguments.values() for n in a.value.shape}) == 1
    assert not np.array_equal(one[0].arguments["a"].value[:16, :16], other[0].arguments["a"].value[:16, :16])
