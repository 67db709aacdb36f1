"""Where neither a name nor an edit explains a wrong program, a right one with one deviation may come to the same."""

import pytest
import truth
from answering import verdict

from grader.lessons import find

HEARD = {
    "05_shard_map": {
        "polynomial__wrong_add_first": "the addition comes before the factor",
        "polynomial__wrong_start": "a loop begins with ones",
    },
    "06_collectives": {
        "sharded_layernorm__wrong_eps_outside": "the root comes before the addition of 1e-05",
        "masked_mean__wrong_inverted": "`mask` is turned round",
    },
    "10_explicit": {
        "embed__wrong_words_from_one": "`ids` is one less everywhere",
        "explicit_layer__wrong_relu_of_parts": "the parts of a product of matrices along y are taken together only",
    },
}
CASES = [(lesson, name, words) for lesson, names in HEARD.items() for name, words in names.items()]


@pytest.mark.parametrize(("lesson", "name", "words"), CASES, ids=[name for _, name, _ in CASES])
def test_what_is_missing_is_said(lesson, name, words):
    found = verdict(find(name.split("__")[0]), getattr(truth.written(lesson), name), seed=0)
    assert not found.mistake and found.repair is None
    assert f"Your values are those of a right program in which {words}" in found.words
    assert found.words.endswith("?")


def test_one_number_that_comes_out_by_chance_tells_nothing():
    answer = truth.written("06_collectives").global_argmax__wrong_zero
    assert "right program" not in verdict(find("global_argmax"), answer, seed=0).words


def test_a_gradient_that_alone_is_wrong_is_not_told_of_the_result():
    answer = truth.written("13_tensor_parallel").vocab_cross_entropy__wrong_target_stopped
    words = verdict(find("vocab_cross_entropy"), answer, seed=0).words
    assert "The gradient with respect to logits is wrong" in words
    assert "right program" not in words and "This is what comes out" not in words
