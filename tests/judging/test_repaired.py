"""Where nothing else explains a wrong program, the one change that would make it right is said, and shown."""

import jax
import pytest
import truth
from answering import verdict
from jax import lax
from jax.sharding import PartitionSpec as P

import grader
from grader.judging.repaired import repair_words
from grader.lessons import EXERCISES, find
from grader.programs.repairs import WAYS, Repair
from grader.watching import watched

FOUND = [
    (
        "05_shard_map",
        "layer_by_hand__wrong_over_both",
        Repair("all_reduce", 0, "run along", ("x", "y"), ("x",), among=1),
    ),
    (
        "13_tensor_parallel",
        "tp_attention__wrong_logits_summed",
        Repair("all_reduce", 0, "leave out", ("model",), among=2),
    ),
]


def answer(lesson, name):
    return EXERCISES[find(name.split("__")[0]).name], getattr(truth.written(lesson), name)


@pytest.mark.parametrize("lesson, name, repair", FOUND, ids=[name for _, name, _ in FOUND])
def test_a_mistake_that_nobody_declared_is_found_by_an_edit(lesson, name, repair):
    found = verdict(*answer(lesson, name), seed=0)
    assert found.repair == repair and not found.mistake
    assert found.words.endswith(repair_words(repair))


def test_a_mistake_that_an_edit_brings_about_is_nobodys():
    def layer_by_hand(x, w, b, *, mesh):
        def body(x, w, b):
            return jax.nn.sigmoid(lax.psum(x @ w + b / mesh.shape["y"], "x"))

        specs = P("y", "x"), P("x", None), P()
        return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("y", None))(x, w, b)

    found = verdict(EXERCISES["layer_by_hand"], layer_by_hand, seed=0)
    assert not found.mistake and found.words.endswith(
        "With zeros for `b` yours would be right. What is done to what comes of it?"
    )


def test_a_change_that_spoils_what_was_right_mends_nothing():
    found = verdict(*answer("11_gradients", "gradient_cast__wrong_one_leaf_cast"), seed=0)
    assert "Of Result 1['w2']: Every entry is 4 times too large" in found.words and not found.mistake


def test_its_replay_opens_at_the_collective_that_would_have_to_change():
    lesson, name, repair = FOUND[0]
    replay = watched(*answer(lesson, name), "values", repair)
    opened = replay.facts.frames[replay.start]
    assert opened.transfer.kind == "all_reduce" and "psum" in opened.operation
    assert grader.watch("layer_by_hand", answer(lesson, name)[1]).start == replay.start
    assert watched(*answer(lesson, name), "values").start > replay.start  # without it: the end


def test_every_kind_of_edit_has_words_that_say_where():
    for way in WAYS:
        kind = {"sum": "product", "mean": "result", "turn round": "collective_permute"}.get(way, "all_reduce")
        said, of_all = (repair_words(Repair(kind, 2, way, ("x", "y"), ("z",), every)) for every in (False, True))
        assert "every" in of_all or "all that" in of_all or way == "mean"
        assert said.startswith("Every value would be right if ") and said.endswith(("?", "."))
        assert any(place in said for place in ("x and y", "z"))


@pytest.mark.parametrize(
    ("repair", "words"),
    [
        (Repair("all_reduce", 0, "leave out", ("x",), among=1), "the all_reduce over x were left out."),
        (Repair("all_reduce", 1, "leave out", ("x",), among=3), "the second all_reduce (over x) were left out."),
        (Repair("axis_index", 1, "one more", ("y",), among=2), "the second `axis_index` (over y) gave one more."),
        (
            Repair("collective_permute", 0, "one further", ("x",), ("x",), among=1),
            "to the device behind that to which it",
        ),
        (Repair("result", 0, "half", among=1), "what comes out at the end were half as large."),
        (Repair("result", 0, "half", among=2), "result 0 (counted from 0) of what runs on each device were half"),
        (Repair("result", 1, "sum", (), ("x",), among=2), "added up what they hold as result 1 (counted from 0) of"),
        (Repair("comparison", 0, "opposite", among=1), "the comparison were its own opposite"),
        (
            Repair("comparison", 3, "opposite", among=4),
            "the fourth comparison (counted with those in JAX's own functions) were its own opposite",
        ),
    ],
)
def test_of_several_alike_it_is_said_which_one_it_is(repair, words):
    assert words in repair_words(repair)
