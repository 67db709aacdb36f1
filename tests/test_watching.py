"""An answer is watched on the smallest case that shows what it does; a wrong card offers that, and a right one too."""

import jax
import pytest
from answering import answered
from jax import lax
from jax.sharding import PartitionSpec as P

import grader
from grader import feedback
from grader.exercises.verdict import Outcome, Verdict
from grader.explaining.shrinking import smallest
from grader.lessons import EXERCISES
from grader.watching import watched


def wrong(exercise, name):
    return next(mistake.wrong for mistake in EXERCISES[exercise].mistakes if mistake.name == name)


def test_a_wrong_answer_is_watched_on_two_by_two_devices_from_its_end_and_it_is_said_what_is_wrong():
    replay = watched(EXERCISES["case3"], wrong("case3", "forgot_psum"), "values")
    assert dict(replay.facts.frames[0].mesh) == {"x": 2, "y": 2}
    assert replay.start == len(replay.facts.frames) - 1
    assert replay.about.startswith("Test case: mesh x=2 × y=2; a: ")
    assert len(replay.about.splitlines()) == 2


def test_a_mesh_on_which_it_is_right_is_not_the_smallest():
    """On two devices in a ring, both ways round are the same."""
    found = smallest(EXERCISES["shift"], wrong("shift", "pairs_reversed"), "values")
    assert found.check == "values" and found.case.mesh["x"] == 4


def test_devices_that_wait_are_shown_where_they_do():
    def shift(x, *, k, mesh):
        def body(row):
            n = mesh.shape["x"]
            pairs = [(d, (d + k) % n) for d in range(n)]
            return lax.cond(lax.axis_index("x") == 0, lambda r: lax.ppermute(r, "x", pairs), lambda r: r, row)

        return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)

    replay = watched(EXERCISES["shift"], shift, "runs")
    assert replay.facts.frames[replay.start].waits and "device 2 never comes there" in replay.facts.ended


def test_where_too_much_is_sent_it_begins_with_what_sends_most():
    replay = watched(
        EXERCISES["bidirectional_all_gather"], wrong("bidirectional_all_gather", "all_one_way"), "communication"
    )
    sent = [frame.transfer.bytes_sent if frame.transfer else 0 for frame in replay.facts.frames]
    assert sent[replay.start] == max(sent) > 0


def test_a_right_answer_is_watched_on_the_first_mesh_with_little_data():
    replay = grader.watch("case3", answered("solutions", "07_matmul")["case3"])
    assert dict(replay.facts.frames[0].mesh) == {"x": 4, "y": 2} and replay.start == 0
    assert max(block.corner.size for held in replay.facts.frames[0].arrays for block in held.blocks) <= 24
    assert replay.about.startswith("Test case: ") and "\n" not in replay.about


def test_a_gradient_is_watched_there_and_back():
    solved = answered("solutions", "11_gradients")
    name = next(name for name in solved if name in EXERCISES and has_gradient(EXERCISES[name]))
    assert {frame.backward for frame in grader.watch(name, solved[name]).facts.frames} == {True, False}


def has_gradient(exercise):
    return exercise.form == "program" and any(case.cotangents is not None for case in exercise.draw_cases())


@pytest.mark.parametrize(
    "name, answer, error, said",
    [
        ("read_devices", len, ValueError, "asks for no program with shard_map"),
        ("case3", 5, ValueError, "should be a function; it is a int"),
        ("case33", len, LookupError, "Did you mean"),
    ],
)
def test_what_cannot_be_watched_is_said(name, answer, error, said):
    with pytest.raises(error, match=said):
        grader.watch(name, answer)


def cell(display, name, answer, monkeypatch):
    """What a check shows in a notebook."""
    shell, shown = pytest.importorskip("IPython"), pytest.importorskip("IPython.display")
    monkeypatch.setattr(shell, "get_ipython", lambda: display)
    monkeypatch.setattr(shown, "display", lambda data, raw: display.append(data))
    grader.check(name, answer)
    return display.pop()


def test_a_wrong_card_holds_the_replay_folded_and_a_right_one_a_line(monkeypatch):
    bad = cell([], "case3", wrong("case3", "forgot_psum"), monkeypatch)
    assert "<details" in bad["text/html"] and "many-devices-replay" in bad["text/html"]
    assert len(bad["text/html"]) < 90_000
    good = cell([], "case3", answered("solutions", "07_matmul")["case3"], monkeypatch)
    assert "<script" not in good["text/html"] and len(good["text/html"]) < 1_500
    for shown in (bad, good):
        assert shown["text/plain"].endswith('Watch it, line by line: `grader.watch("case3", case3)`')


def test_what_jax_refuses_has_nothing_to_watch(monkeypatch):
    def case3(a, b, *, mesh):
        return a @ b.T

    shown = cell([], "case3", case3, monkeypatch)
    assert "Watch it" not in shown["text/plain"] and "<details" not in shown["text/html"]


def test_the_offer_is_right_under_the_headline():
    missed = Verdict("case3", (Outcome.missed("case3", "values", 4, ()),))
    offered = feedback.card(missed, offer=feedback.Offer("case3", "<p>the replay</p>"))
    assert "0 of 4 points</div><details" in offered
    passed = Verdict("case3", (Outcome.earned("case3", "runs", 4),))
    assert "<code>grader.watch(&quot;case3&quot;, case3)</code>" in feedback.card(passed, offer=feedback.Offer("case3"))
