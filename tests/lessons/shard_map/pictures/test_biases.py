"""A bias after the sum, and a bias before it."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from grader import draw
from grader.draw.picture import OF_KIND, WRONG
from grader.lessons.shard_map.pictures.biases import Biased

TERMS = (1.5, 2.0, -0.5, 1.0)


def test_a_bias_in_each_term_is_there_once_for_each_device():
    facts = Biased(TERMS, 10)
    assert facts.right == 14 and facts.early - facts.right == pytest.approx((len(TERMS) - 1) * 10)


def test_the_words_have_both_orders_and_what_comes_of_them():
    told = repr(draw.bias_once(np.float32(TERMS), -4, "a title")).splitlines()
    assert told == [
        "a title",
        "  psum, then the bias (b = -4): 1.5, 2, -0.5, 1 → psum 4 → + b, once: 0 → sigmoid 0.5",
        "  the bias, then psum: -2.5, -2, -4.5, -3 → psum -12, which has 4 b → sigmoid 6.14e-06",
    ]


def test_only_the_early_bias_is_alarming():
    (ax,) = draw.bias_once(np.float32(TERMS), -4).figure.axes
    (framed,) = [patch for patch in ax.patches if to_hex(patch.get_edgecolor()) == WRONG]
    wide = framed.get_width()  # all devices together
    bars = [patch for patch in ax.patches if patch.get_width() == wide]
    sums = [patch for patch in bars if to_hex(patch.get_facecolor()) == OF_KIND["all_reduce"]]
    above, below = (patch.get_y() for patch in (framed, sums[1]))
    assert framed.get_x() == sums[1].get_x() > sums[0].get_x() and above < below
    alarming = [text.get_text() for text in ax.texts if text.get_color() == WRONG]
    assert alarming == ["+ b", "4 b in it", "6.14e-06"]
