"""The ladder, the signatures, and what must never be fooled."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, Case, ProgramExercise
from grader.exercises.answers import Problem, Value
from grader.exercises.as_json import from_json, question_from_json, to_json
from grader.exercises.collecting import asks, collect
from grader.exercises.limits import ORDER, BytesSent, InPlace, Limit, Meanwhile, PeakBytes, Turns, Without, Written
from grader.judging.arrangements import arrangement
from grader.judging.compared import Compared
from grader.judging.judge import judge
from grader.judging.signatures import signature
from grader.lessons import EXERCISES, find

INS = (P(None, "x"), P("x", None))


def verdict(body, ins=INS, out=P(), name="case3"):
    def answer(a, b, *, mesh):
        return jax.shard_map(body, mesh=mesh, in_specs=ins, out_specs=out, check_vma=False)(a, b)

    return on(answer, name)


def on(answer, name="case3", thorough=True):
    exercise = EXERCISES[name]
    cases = exercise.draw_cases(11, thorough=thorough)
    return judge(exercise, cases, collect(exercise.form, asks(exercise, cases), answer))


def test_zeros_with_the_right_layout_earn_nothing():
    found = verdict(lambda a, b: jnp.zeros((a.shape[0], b.shape[1])))
    assert found.points == 0 and found.failure.check == "values"
    assert "Every entry is zero" in found.words


def test_a_claimed_replication_is_checked_on_every_device():
    """Device 0 has the truth, the others something else; NumPy would show device 0's."""

    def body(a, b):
        c = lax.psum(a @ b, "x")
        return jnp.where(lax.axis_index("x") == 0, c, c + 1)

    found = verdict(body)
    assert found.points == 0 and "wrong on device" in found.words and "device 0." not in found.words


def test_rungs_after_the_first_miss_are_not_tried():
    found = verdict(lambda a, b: a @ b)
    assert [o.check for o in found.outcomes] == ["runs", "shape", "values", "layout", "communication", "work"]
    assert [o.passed for o in found.outcomes] == [True, True, False, False, False, False]
    assert [o.tried for o in found.outcomes] == [True, True, True, False, False, False]
    assert all(o.words == "Not tried: “values” comes first." for o in found.outcomes[3:])


def test_gathering_everything_and_multiplying_everywhere_is_found_out():
    def body(a, b):
        return lax.all_gather(a, "x", axis=1, tiled=True) @ lax.all_gather(b, "x", axis=0, tiled=True)

    found = verdict(body)
    assert found.failure.check == "communication" and 0 < found.points < found.worth
    assert "where" in found.words and "B are enough" in found.words


@pytest.mark.parametrize(
    "inside, named",
    [(True, "gathered_weights_kept"), (False, "stack_gathered_first")],
    ids=["in every turn", "at once"],
)
def test_all_at_once_is_told_from_a_part_in_every_turn_of_a_loop(inside, named):
    """The values, the bytes sent and the limit that is exceeded are the same."""

    def whole(share):
        return lax.all_gather(share, "fsdp", axis=share.ndim - 2, tiled=True)

    def answer(stack, x, y, *, mesh):
        def mean(stack, x, y):
            shares = stack if inside else whole(stack)
            h, _ = lax.scan(lambda h, w: (jnp.tanh(h @ (whole(w) if inside else w)), None), x, shares)
            return lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        specs = P(None, "fsdp"), P("fsdp"), P("fsdp")
        return jax.value_and_grad(jax.shard_map(mean, mesh=mesh, in_specs=specs, out_specs=P()))(stack, x, y)

    found = on(answer, "fsdp_scan", thorough=False)
    assert (found.failure.check, found.mistake) == ("work", named)


def test_work_that_is_not_divided_is_found_out():
    def body(a, b):
        c = lax.psum(a @ b, "x")
        return c + 0 * sum((a * k) @ b for k in range(1, 8))

    found = verdict(body)
    assert found.failure.check == "work" and found.points == 3
    assert "FLOPs" in found.words


def case3_solved(a, b, *, mesh):
    return jax.shard_map(lambda a, b: lax.psum(a @ b, "x"), mesh=mesh, in_specs=INS, out_specs=P())(a, b)


def limited(*limits):
    """The exercise case3 with other limits to its communication."""
    exercise = EXERCISES["case3"]
    return exercise, [replace(case, limits=limits) for case in exercise.draw_cases(11)]


@pytest.mark.parametrize(
    "limit, words",
    [
        (Turns({"all_reduce": 1}), ""),
        (Turns({"collective_permute": 3}), "At most: collective_permute × 3"),
        (Turns({}), "At most: none"),
        (PeakBytes(1 << 20), ""),
        (PeakBytes(100), "at the peak, where 100 B are enough"),
        (Written({}), "all_reduce stands in the program, where none is needed."),
        (Written({"all_gather": 1}), "all_reduce stands in the program, where none is needed."),
        (Without("all_reduce", "y", "all of it is here"), ""),
        (Without("all_reduce", "x", "all of it is here"), "The result is right, but all of it is here:\n- all_reduce"),
        (InPlace(()), ""),
        (InPlace(("float32",)), "of the 1 arrays that come out anew 1 are not given away"),
        (Meanwhile(1), "It has 0 FLOPs of products that neither wait for it nor it for them, and 1 are due"),
    ],
)
def test_turns_and_what_runs_meanwhile_can_be_asked(limit, words):
    exercise, cases = limited(limit)
    found = judge(exercise, cases, collect(exercise.form, asks(exercise, cases), case3_solved))
    assert found.passed == (not words) and words in found.words


def test_of_several_limits_the_first_in_order_is_told_however_they_are_given():
    in_one_order = [Written({}), Turns({}), Meanwhile(1), BytesSent(0)]
    for limits in (in_one_order, in_one_order[::-1]):
        exercise, cases = limited(*limits)
        found = judge(exercise, cases, collect(exercise.form, asks(exercise, cases), case3_solved))
        assert "At most: none" in found.words


def test_every_limit_has_its_place_in_the_order():
    assert set(ORDER) == set(Limit.__subclasses__())


def test_specs_that_make_the_compiler_move_data_are_found_out():
    found = verdict(lambda a, b: a @ b, ins=(P(), P()))
    assert found.failure.check == "communication" and "in_specs" in found.words


def test_what_is_told_of_moves_before_shard_map_is_what_the_compiler_sends():
    """From columns over x to columns over y: it is no all_gather over x of all of it."""
    specs = P(None, "y"), P("y", None)
    found = verdict(lambda a, b: lax.psum(a @ b, "y"), ins=specs)
    assert found.failure.check == "communication" and "collective_permute" in found.words


def test_leaving_it_all_to_the_compiler_is_found_out():
    found = on(lambda a, b, *, mesh: jax.lax.with_sharding_constraint(a @ b, jax.sharding.NamedSharding(mesh, P())))
    assert found.failure.check == "communication" and "jax.shard_map" in found.words


def test_a_program_that_may_wait_for_ever_is_not_run():
    def body(a, b):
        return lax.cond(lax.axis_index("x") == 0, lambda c: lax.psum(c, "x"), lambda c: c, a @ b)

    found = verdict(body)
    assert found.failure.check == "runs" and "waiting for ever" in found.words


def test_who_waits_at_one_of_several_sums_is_told_so():
    """Every device calls one, but not the same."""

    def on_device(a, b):
        return lax.cond(lax.axis_index("x") == 0, lambda c: lax.psum(c, "x"), lambda c: lax.psum(2 * c, "x"), a @ b)

    assert "calls one of 2 all_reduces over x once, device" in verdict(on_device).words


@pytest.mark.parametrize(
    "answer, words",
    [
        (..., "still the starter"),
        (None, "still the starter"),
        (lambda a, b, *, mesh: None, "returns nothing"),
        (lambda a, b, *, mesh: ..., "still the starter"),
        (42, "should be a function"),
        (lambda a, b: a, "keep the parameters"),
        (lambda a, b, *, mesh: jnp.nope, "AttributeError"),
        (lambda a, b, *, mesh: (a, b), "should return 1 array"),
        (lambda a, b, *, mesh: a, "should have shape"),
        (lambda a, b, *, mesh: "text", "TypeError"),
        (lambda a, b, *, mesh: (a @ b) > 0, "The result should be made of float32; yours is of bool"),
        (lambda a, b, *, mesh: (a @ b).astype(jnp.int32), "The result should be made of float32; yours is of int32"),
        (lambda a, b, *, mesh: (a @ b).astype(jnp.bfloat16), "float32; yours is of bfloat16, into which not every"),
        (lambda a, b, *, mesh: (a @ b) * 1j, "The result should be made of float32; yours is of complex64."),
    ],
)
def test_answers_of_every_wrong_kind_get_a_clear_word(answer, words):
    found = on(answer)
    assert found.points == 0 and words in found.words and "Traceback" not in found.words


def test_an_unknown_axis_is_said_in_plain_words():
    found = verdict(lambda a, b: lax.psum(a @ b, "z"))
    assert found.failure.check == "runs" and "axis" in found.words


@pytest.mark.parametrize(
    "body, options, words",
    [
        (jnp.matmul, {"in_specs": P("x", "y"), "axis_names": {"x"}}, "may name axes that are manual"),
        (jnp.matmul, {"in_specs": list(INS)}, "different trees"),
        (
            lambda a, b: lax.fori_loop(0, 3, lambda k, c: c + a @ b, jnp.zeros((a.shape[0], b.shape[1]))),
            {"in_specs": INS},
            "come out with the type it went in with",
        ),
    ],
)
def test_what_shard_map_refuses_is_said_in_plain_words(body, options, words):
    found = on(lambda a, b, *, mesh: jax.shard_map(body, mesh=mesh, out_specs=P(), **options)(a, b))
    assert found.failure.check == "runs" and words in found.words


WANTED = [np.arange(1, 7, dtype=np.float32).reshape(2, 3) + 10 * k for k in range(8)]
TALL, WIDE = {"x": 4, "y": 2}, {"x": 2, "y": 4}


def seen(signed, mesh=TALL, places=()):
    return Compared(signed(WANTED, mesh), WANTED, mesh, places)


@pytest.mark.parametrize(
    "signed, words",
    [
        (lambda w, m: [m["x"] * b for b in w], "4 times too large on 4 × 2 devices, and 2 times too large on 2 × 4"),
        (lambda w, m: [m["y"] * b for b in w], "the number of devices along y"),
        (lambda w, m: [8 * b for b in w], "the number of all devices"),
        (lambda w, m: [b / m["x"] for b in w], "1/4 of what it should be on 4 × 2 devices, and 1/2"),
        (lambda w, m: [b * m["x"] ** 2 for b in w], "the square of the number of devices along x"),
        (
            lambda w, m: [b * 2 for b in w],
            "2 times too large, here on 4 × 2 devices and in a case on 2 × 4 devices. Which factor",
        ),
        (
            lambda w, m: [-b for b in w],
            "of the wrong sign, here on 4 × 2 devices and in a case on 2 × 4 devices. What is taken from what?",
        ),
        (lambda w, m: [-2 * b for b in w], "-2 times what it should be, here on 4 × 2 devices and in"),
        (lambda w, m: [b / -4 for b in w], "-1/4 of what it should be, here on 4 × 2 devices and in"),
        (lambda w, m: [b * (4 if m is TALL else 3) for b in w], "3 times too large on 2 × 4 devices. Why"),
        (lambda w, m: [b * (1 if m is WIDE else 3) for b in w], ""),
        (lambda w, m: [b * 1.001 + 0.002 for b in w], "within 1 %"),
        (lambda w, m: w[1:] + w[:1], "stand in the wrong places: device 0 holds what belongs on device 1"),
        (
            lambda w, m: w[1:] + w[-1:],
            "but device 0 the one that belongs on device 1, and nobody holds the one that belongs on device 0.",
        ),
        (lambda w, m: [w[0]] + [np.zeros_like(b) for b in w[1:]], "On devices 1, 2, 3, 4, 5, 6, 7 all is zeros"),
        (lambda w, m: [0 * b for b in w], "Every entry is zero"),
        (lambda w, m: [0 * b + 7 for b in w], "Every entry of it is 7, here on 4 × 2 devices and in a case on 2 × 4"),
        (lambda w, m: [b * np.nan for b in w], "Every entry is nan (no number)"),
        (lambda w, m: [b * np.inf for b in w[:1]] + w[1:], "On device 0 some entries are inf (infinite)"),
        (lambda w, m: [np.where(b == b[0], np.inf, b) for b in w], "On every device some entries are inf"),
        (lambda w, m: [np.where(b == b[0], -np.inf, b) for b in w], "On every device some entries are -inf"),
        (
            lambda w, m: [np.where(b == b[0], np.nan, b) for b in w[:2]] + w[2:],
            "On devices 0, 1 some entries are nan",
        ),
        (lambda w, m: [b + 1 for b in w], ""),
    ],
)
def test_signatures(signed, words):
    found = signature(seen(signed), seen(signed, WIDE))
    assert words in found if words else found == ""


def test_the_first_number_of_a_list_may_be_too_large_by_a_length():
    def curve(mesh, times):
        due = [np.array([3.0, 2.0, 1.5], np.float32)] * 8
        return Compared([times * due[0] + [0, 1, 2]] * 8, due, mesh, ["[0:3]"] * 8, lengths={"the length of `y`": 5})

    assert "Its first number is 5 times too large" in signature(curve(TALL, 5), curve(WIDE, 5))
    assert "That is the length of `y`." in signature(curve(TALL, 5), curve(WIDE, 5))
    assert signature(curve(TALL, 1.3), curve(WIDE, 1.3)) == ""


def test_of_a_list_of_one_number_it_is_not_its_first_that_is_told():
    def ones(mesh, first):
        return Compared([np.ones(3, np.float32)] * 8, [np.array([first, 2, 1], np.float32)] * 8, mesh, ["[0:3]"] * 8)

    assert signature(ones(TALL, 4), ones(WIDE, 2)).startswith(
        "Every entry of it is 1, here on 4 × 2 devices and in a case on 2 × 4 devices."
    )


def test_what_comes_to_a_running_mean_may_be_off_by_a_factor():
    given, new = np.random.default_rng(0).normal(size=(2, 8, 6)).astype(np.float32)
    due, found = 0.9 * given + 0.1 * new, 0.9 * given + 0.1 * 4 * new
    one = Compared([found], [due], {"x": 1}, given={"mean": [given]})
    assert "It is 0.9 × `mean` and something besides; and of that, every number is 4 times too large." in signature(one)


def test_of_a_number_that_is_right_on_another_mesh_it_is_not_said_that_another_is_due_there():
    due = [np.full((), 3, np.int32)] * 8, [np.full((), 5, np.int32)] * 8
    there, here = (
        Compared([np.full((), 3, np.int32)] * 8, one, mesh) for one, mesh in zip(due, (WIDE, TALL), strict=True)
    )
    assert signature(here, there) == (
        "It is 3, here on 4 × 2 devices and in a case on 2 × 4 devices, and should not be the same in both. "
        "What does it depend on?"
    )


def test_a_negative_factor_is_no_length():
    def lengths(mesh):
        return Compared([-4 * block for block in WANTED], WANTED, mesh, lengths={"the length of `y`": 4})

    assert "the length of `y`" not in signature(lengths(TALL), lengths(WIDE))


def test_what_is_right_by_the_measure_of_all_is_not_called_wrong():
    due = [np.array([100.0, 0.001, 50], np.float32)] * 8
    found = [np.array([100.0, 0.0012, 60], np.float32)] * 8
    assert "none behind it" not in signature(Compared(found, due, TALL, ["[0:3]"] * 8))


def test_copies_differ_by_more_than_what_is_allowed():
    due = [np.array([1.0, 2, 3], np.float32)] * 2
    found = [due[0] * 1.5, due[0] * 1.5 + 0.001]
    assert "their copies differ" in signature(Compared(found, due, {"x": 2}, ["[0:3]"] * 2))
    assert "their copies differ" not in signature(Compared(found, due, {"x": 2}, ["[0:3]"] * 2, roundings=10_000))


def test_a_number_that_was_given_may_be_in_a_ratio():
    found, elsewhere = (
        Compared([n * mesh["x"] * b for b in WANTED], WANTED, mesh, counts={"turns": n})
        for mesh, n in ((TALL, 3), (WIDE, 4))
    )
    assert "that is `turns` times the number of devices along x." in signature(found, elsewhere)


def test_of_a_ratio_on_one_mesh_no_cause_is_asserted():
    assert signature(seen(lambda w, m: [4 * b for b in w])).endswith("Along x there are 4 devices: is it that?")
    assert "Along" not in signature(seen(lambda w, m: [3 * b for b in w]))


def test_too_few_numbers_have_no_ratio():
    scalar = [np.float32(3)] * 8
    assert signature(Compared([2 * b for b in scalar], scalar, TALL)) == ""


def test_copies_without_a_number_are_copies():
    nothing = Compared([np.full(3, np.nan, np.float32)] * 8, [WANTED[0][:1].repeat(3)] * 8, TALL, ["all"] * 8)
    assert "copies" not in signature(nothing)


@pytest.mark.parametrize(
    "answer, words",
    [
        (lambda v, w, *, mesh: (2 * w, v + 1), "place: what should be Result 0 stands as Result 1 and what should be"),
        (lambda v, w, *, mesh: (w, 2 * w), "Result 0 is `w`, as it was given."),
    ],
)
def test_arrays_that_stand_elsewhere_are_told(answer, words):
    two = ProgramExercise("two", points=2, reference=lambda v, w: (v + 1, 2 * w))

    @two.cases
    def _(draw):
        arrays = {name: Array(draw.values(8, 8), P()) for name in "vw"}
        return Case(arrays, draw.mesh("x"), (P(), P()))

    cases = two.draw_cases(0)
    found = judge(two, cases, collect("program", asks(two, cases), answer)).words
    assert words in found


def test_copies_that_differ_are_named():
    places = [str(d % 2) for d in range(8)]
    wanted = [WANTED[d % 2] for d in range(8)]
    assert "Devices 0 and 2 hold copies" in signature(
        Compared([b + d for d, b in enumerate(wanted)], wanted, TALL, places)
    )


@pytest.mark.parametrize(
    "copies, words",
    [
        (lambda due: [due / 4 + k for k in (-3, -1, 1, 3)], "The sum of the copies is what is due."),
        (lambda due: [due + k for k in (-3, -1, 1, 3)], "The mean of the copies is what is due."),
        (lambda due: [due + k for k in (-3, -2, -1, 0)], "The maximum of the copies is what is due."),
        (lambda due: [due + k for k in (1, 2, 3, 4)], "Is a collective missing"),
    ],
)
def test_what_copies_that_differ_come_to_together_is_said(copies, words):
    parts = [copies(due) for due in WANTED[:2]]
    wanted = [WANTED[d % 2] for d in range(8)]
    found = [parts[d % 2][d // 2] for d in range(8)]
    assert words in signature(Compared(found, wanted, TALL, [str(d % 2) for d in range(8)]))


def test_a_length_of_what_was_given_may_be_a_ratio():
    found, elsewhere = (
        Compared([n * b for b in WANTED], WANTED, mesh, lengths={"the length of dimension 0 of `a`": n})
        for mesh, n in ((TALL, 13), (WIDE, 9))
    )
    assert "that is the length of dimension 0 of `a`." in signature(found, elsewhere)


def test_the_length_on_one_device_may_be_a_ratio():
    found, elsewhere = (
        Compared([b * mesh["x"] / n for b in WANTED], WANTED, mesh, lengths={"the length of dimension 0 of `a`": n})
        for mesh, n in ((TALL, 40), (WIDE, 32))
    )
    assert "that is the length of dimension 0 of `a`, divided by the number of devices along x. Is a sum" in signature(
        found, elsewhere
    )


def test_where_an_array_is_as_long_as_there_are_devices_it_is_not_said_by_which_is_divided():
    found, elsewhere = (
        Compared(
            [b * mesh["x"] / n for b in WANTED],
            WANTED,
            mesh,
            lengths={"the length of dimension 0 of `w`": n, "the length of dimension 0 of `x`": mesh["x"]},
        )
        for mesh, n in ((TALL, 40), (WIDE, 32))
    )
    assert "divided by the number of devices" not in signature(found, elsewhere)


def test_a_length_that_is_one_on_both_meshes_may_be_a_ratio():
    found, elsewhere = (
        Compared([b / 24 for b in WANTED], WANTED, mesh, lengths={"the length of dimension 0 of `a`": 24})
        for mesh in (TALL, WIDE)
    )
    assert (
        "here on 4 × 2 devices and in a case on 2 × 4 devices. That is the length of dimension 0 of `a`."
        in signature(found, elsewhere)
    )


def test_transposed_square_blocks_are_named():
    wanted = [np.arange(9.0).reshape(3, 3) + k for k in range(4)]
    assert "transpose" in signature(Compared([w.T for w in wanted], wanted, {"x": 4}))


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
        {"problem": {"kind": "error", "error": "E", "message": "m", "operands": [1]}},
        {"problem": {"kind": "error", "error": "E", "message": "m"}},
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


def test_of_a_single_number_a_whole_ratio_tells_where_it_is_seen_on_two_meshes():
    def seen(number, factor, mesh):
        due = [np.array(number)] * 8
        return Compared([d * factor for d in due], due, mesh)

    words = signature(seen(3.5, 12, TALL), seen(2.5, 6, WIDE))
    assert "12 times too large on 4 × 2" in words and "6 times too large on 2 × 4" in words
    assert "times too large" not in signature(seen(3.5, 1.7, TALL), seen(2.5, 2.9, WIDE))


def test_right_numbers_in_other_places_are_told():
    due = [np.arange(6.0).reshape(2, 3) + 10 * d for d in range(4)]
    places = [str(d) for d in range(4)]
    within = Compared([d[:, ::-1] for d in due], due, {"x": 4}, places)
    assert arrangement(within).startswith("Each device holds the numbers that belong on it")
    rows = np.concatenate(due)
    between = Compared(np.split(np.roll(rows, 1, axis=0), 4), due, {"x": 4}, places)
    assert arrangement(between).startswith("Every number that is due is there")
    ends = Compared([np.concatenate([d[:, :2], d[:, 2:] + 100], axis=1) for d in due], due, {"x": 4}, places)
    assert "only the last entry along dimension 1" in arrangement(ends)
    assert arrangement(Compared([d + 100 for d in due], due, {"x": 4}, places)) == ""
