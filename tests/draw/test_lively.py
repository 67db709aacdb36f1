"""Pictures in a real browser: pointing at a block lights its device's blocks; a film is stepped through."""

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader import draw

pytestmark = pytest.mark.needs("browser")
MESH = {"x": 2, "y": 2}
ROWS, COLUMNS = (draw.blocks((4, 4), spec, MESH) for spec in (P("x"), P(None, "y")))
LIT = "nodes => nodes.filter(node => node.style.opacity === '').map(node => node.dataset.d)"
MOVING = "document.querySelector('svg').getAnimations({subtree: true})"
SEEN = "groups => groups.map(group => getComputedStyle(group).visibility)"


@pytest.fixture
def tab(browser):
    page = browser.new_page(viewport={"width": 900, "height": 700}, reduced_motion="no-preference")
    page.wrong = []
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    yield page
    page.close()


def lit(tab, blocks="path[data-d]"):
    return tab.locator(blocks).evaluate_all(LIT)


def outlined(tab):
    """What is lit of blocks that are drawn in stripes, and then outlined."""
    return lit(tab, "path[data-d][fill=none]")


def test_a_block_that_is_pointed_at_lights_what_its_devices_hold(tab):
    tab.set_content(draw.change(ROWS, COLUMNS)._repr_html_())
    held = ["0 1", "2 3", "0 2", "1 3"]
    assert outlined(tab) == held
    tab.locator("path[data-d='0 1']").first.hover(position={"x": 4, "y": 4})
    assert outlined(tab) == ["0 1", "0 2", "1 3"]
    tab.mouse.move(890, 690)
    assert outlined(tab) == held and tab.wrong == []


def test_a_device_is_chosen_with_keys(tab):
    tab.set_content(draw.change(ROWS, COLUMNS)._repr_html_())
    tab.keyboard.press("Tab")
    for _ in range(4):
        tab.keyboard.press("ArrowRight")
    assert outlined(tab) == ["2 3", "1 3"]
    tab.keyboard.press("ArrowRight")  # round to "any"
    assert len(outlined(tab)) == 4 and tab.wrong == []


def test_a_picture_that_is_drawn_for_a_device_begins_with_it(tab):
    tab.set_content(draw.change(ROWS, COLUMNS, device=3)._repr_html_())
    labels = tab.locator("label")
    assert labels.all_inner_texts() == ["0", "1", "2", "3"] and tab.locator("input").nth(3).is_checked()
    drawn = outlined(tab)
    assert {"0 1", "2 3", "0 2", "1 3"} <= set(drawn)
    tab.locator("input").nth(0).check()
    assert outlined(tab) == ["0 1", "0 2"]
    tab.locator("input").nth(3).check()
    assert outlined(tab) == drawn and tab.wrong == []


def test_two_pictures_do_not_disturb_each_other(tab):
    tab.set_content(2 * draw.change(ROWS, COLUMNS)._repr_html_())
    tab.locator("input").nth(1).check()
    assert outlined(tab) == ["0 1", "0 2", "0 1", "2 3", "0 2", "1 3"]


def test_where_each_device_holds_one_block_nothing_is_to_be_lit(tab):
    html = draw.devices(draw.blocks((4,), P("x"), {"x": 4}))._repr_html_()
    assert "<script" not in html and "data-d" in html


def test_a_moving_film_is_stepped_through_and_goes_on(tab):
    tab.set_content(draw.animation(draw.ring(3))._repr_html_())
    assert tab.locator("svg:visible").count() == 1
    scenes = tab.locator("svg > g")
    assert tab.evaluate(f"{MOVING}.every(one => one.effect.getTiming().iterations === Infinity)")
    tab.get_by_role("button", name="Pause").click()
    for step in (1, 2, 0):
        tab.get_by_role("button", name="One step on").click()
        assert scenes.evaluate_all(SEEN) == ["visible" if k == step else "hidden" for k in range(3)]
        assert tab.locator("output").inner_text() == f"step {step} of 2"
    assert tab.evaluate(f"{MOVING}.length") == 0
    tab.get_by_role("button", name="Play").click()
    assert tab.evaluate(f"{MOVING}.length") > 0 and tab.wrong == []


def test_a_strip_hides_the_steps_to_come(tab):
    tab.set_content(draw.film(draw.ring(3))._repr_html_())
    seen = "rows => [...new Set(rows.filter(row => row.style.opacity === '').map(row => row.dataset.t))].join()"
    rows = tab.locator("[data-t]")
    assert rows.evaluate_all(seen) == "0,1,2"
    tab.get_by_role("button", name="First step").click()
    assert rows.evaluate_all(seen) == "0" and tab.get_by_role("button", name="One step back").is_disabled()
    tab.get_by_role("button", name="One step on").focus()
    tab.keyboard.press("Enter")
    assert rows.evaluate_all(seen) == "0,1" and tab.wrong == []


def test_a_step_is_called_what_the_film_calls_it(tab):
    tab.set_content(draw.film(draw.Film(((0, 1), (1, 0)), word="turn"), "title")._repr_html_())
    assert tab.locator("output").inner_text() == "turn 1 of 1" and tab.wrong == []


def test_without_scripts_a_film_is_a_strip(browser):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.set_content(draw.animation(draw.ring(3), "three of them")._repr_html_())
    assert page.locator("svg:visible").count() == 1 and page.locator("svg:visible").get_by_text("step 2").is_visible()
    assert page.get_by_role("button").count() == 0
    page.context.close()


def test_a_real_array_is_lit_as_its_facts_are(tab):
    array = jax.device_put(np.ones((2, 4, 4)), jax.NamedSharding(jax.make_mesh((4,), ("x",)), P(None, "x")))
    tab.set_content(draw.shards(array)._repr_html_())
    tab.locator("input").nth(2).check()
    assert lit(tab) == ["1", "1"]
