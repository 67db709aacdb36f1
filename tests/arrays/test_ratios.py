"""The table of ratios: what it says of scaled, garbled, missing and untrue arrays."""

import math

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh
from grader.arrays.ratios import Ratio, as_html, as_text, furthest, ratio, ratios

WANTED = np.arange(1.0, 13.0).reshape(3, 4)


@pytest.mark.parametrize(
    "found, words",
    [
        (WANTED, "1"),
        (8 * WANTED, "8"),
        (WANTED / 8, "0.125"),
        (-WANTED, "-1"),
        (0 * WANTED, "0"),
        (WANTED + 1, "1.08 to 2"),
        (WANTED * np.nan, "not finite"),
        (WANTED * np.inf, "not finite"),
    ],
)
def test_one_array(found, words):
    assert ratio("w", [found], [WANTED]).words == words


def test_nothing_expected_and_nothing_found_is_right():
    assert ratio("w", [0 * WANTED], [0 * WANTED]).words == "1"
    assert ratio("w", [WANTED], [0 * WANTED]).words == "should be 0"


def test_a_table_has_a_row_for_each_leaf_and_marks_what_is_wrong():
    table = ratios({"b": 2 * WANTED, "a": [WANTED]}, {"b": WANTED, "a": [WANTED]})
    assert str(table) == "actual / expected:\n  ['a'][0]  1\n  ['b']     2"
    assert "<strong>2</strong>" in table._repr_html_() and "<strong>1<" not in table._repr_html_()


def test_an_array_that_only_claims_to_be_replicated_is_found_out():
    mesh = make_mesh({"x": 8})
    liar = jax.shard_map(lambda a: a, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
    held = liar(jax.device_put(np.arange(1.0, 9.0, dtype=np.float32), NamedSharding(mesh, P("x"))))
    assert np.asarray(held) == [1.0], "NumPy shows the first device's copy, and nothing is wrong with that"
    (row,) = ratios(held, np.array([1.0])).rows
    assert row.apart and (row.least, row.most) == (1.0, 8.0)


def test_a_device_that_holds_another_block_is_compared_with_its_own():
    mesh = make_mesh({"x": 8})
    held = jax.device_put(np.arange(1.0, 17.0, dtype=np.float32), NamedSharding(mesh, P("x")))
    assert ratios(held, np.arange(1.0, 17.0)).rows[0].words == "1"


def test_of_many_arrays_those_that_are_furthest_off_are_told():
    rows = [Ratio(f"w{k}", 1 + k / 100, 1 + k / 100) for k in range(20)] + [Ratio("gone", math.nan, math.nan)]
    told, more = furthest(rows, 3)
    assert [row.name for row in told] == ["w18", "w19", "gone"] and more == 18
    assert "(18 more)" in as_text(told, more)[-1] and "(18 more" in as_html(told, more)
    assert furthest(rows[:3], 3) == (rows[:3], 0)


def test_ratios_of_either_sign_say_nothing_of_how_far_off_an_array_is():
    odd = Ratio("w", -858.0, 428.0)
    assert odd.words == "no common factor" and furthest([odd, odd]) == ([], 0)
    double, right = Ratio("b", 2, 2), Ratio("c", 1, 1)
    assert furthest([odd, double, right]) == ([double, right], 1) and furthest([odd, right]) == ([], 0)
    assert as_html([]) == "" and as_text([]) == []
