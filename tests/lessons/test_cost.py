"""The experiments behind lesson 09: what is played through agrees with what programs say and with what is known."""

import pytest

from grader.lessons.cost import estimates as cost_questions
from grader.lessons.cost.layers_measured import measured
from grader.lessons.cost.rings_played import busiest_link, play, tree_seconds
from grader.programs.collectives import ring_bytes

KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "collective_permute")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 3, 4, 8])
def test_rings_played_through_send_what_the_instrument_counts(kind, n):
    volume = 5.0 * n * n
    operand = volume if "reduce" in kind else volume / n
    assert play(kind, n, volume).sent == pytest.approx(ring_bytes(kind, operand, n))


def test_a_tree_has_two_steps_for_every_doubling():
    assert [tree_seconds(n, 3.0, 1.0, 1.0) / 4 for n in (2, 4, 8, 5)] == [2, 4, 6, 6]


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_an_all_to_all_loads_every_link_with_less_than_a_gather(n):
    assert busiest_link(n * n, n, bidirectional=False) == n * (n - 1) / 2
    assert busiest_link(n * n, n, bidirectional=True) == n * n / 8


def test_a_layer_sends_weights_along_x_and_activations_along_y():
    b, d, f = 64, 32, 128
    forward, backward = measured("FSDP + tensor parallel", b, d, f, 4, 2)
    weights, activations = 3 / 4 * 4 * d * f / 2, 2 * 1 / 2 * 2 * b * d / 4
    assert (forward.sent, backward.sent) == (weights + activations, 2 * weights + activations)
    assert measured("data parallel", b, d, f, 8, 1)[1].flops == 2 * 4 * b * d * f / 8


def test_the_recorded_runs_of_sin_fit_their_note():
    usual = cost_questions._usual()
    slow = 5 * 25.2 - 4 * usual
    assert slow / usual == pytest.approx(8.96, rel=0.01)
