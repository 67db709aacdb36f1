"""A replay's page, in a real browser: it steps, it is small, and nothing of a stranger's runs in it."""

from __future__ import annotations

import re
from dataclasses import replace

import jax
import numpy as np
import pages
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import grader
from grader.arrays.meshes import make_mesh
from grader.replays.facts import fitting
from grader.replays.frames import Excerpt
from grader.replays.page import Replay
from grader.replays.stills import MOST_PICTURES, stills

pytestmark = pytest.mark.needs("browser")
GRID = np.arange(16.0, dtype=np.float32).reshape(8, 2)
NEXT = [(k, (k + 1) % 4) for k in range(4)]
EMPTY = "<!doctype html><meta charset=utf-8><body>"


def ring(a):
    def turn(k, block):
        total, moved = block
        moved = lax.ppermute(moved, "x", NEXT)
        return total + moved, moved

    def body(rows):
        return lax.fori_loop(0, 3, turn, (rows, rows))[0]

    mesh = make_mesh({"x": 4, "y": 2})
    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(a)


def waiting(a):
    def body(rows):
        return lax.cond(lax.axis_index("x") == 0, lambda v: lax.psum(v, "x"), lambda v: v, rows)

    mesh = make_mesh({"x": 4})
    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(a)


@pytest.fixture(scope="module")
def watched():
    return grader.replay(ring, GRID)


@pytest.fixture
def tab(browser):
    """A page of a browser that notes what goes wrong on it, and what it asks for."""
    page = browser.new_page(viewport={"width": 1366, "height": 900}, reduced_motion="reduce")
    page.wrong = []
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("request", lambda request: page.wrong.append(request.url))
    yield page
    page.close()


def test_a_replay_is_small_and_always_the_same(watched):
    html = watched._repr_html_()
    assert len(html) < 60_000
    assert html == grader.replay(ring, GRID)._repr_html_()


def test_a_replay_of_much_stays_under_200_kb():
    def body(a):
        return lax.fori_loop(0, 60, lambda k, v: lax.ppermute(v * 1.001, "x", NEXT), a)

    mesh = make_mesh({"x": 4, "y": 2})
    mapped = jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
    noise = np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32)
    assert len(grader.replay(mapped, noise)._repr_html_()) < 200_000


def test_as_text_each_line_says_what_it_did_and_who_holds_what(watched):
    told = str(watched)
    assert "moved = lax.ppermute(moved" in told
    assert "turn 1 of 3, ppermute over x (0→2, 2→4, 4→6, 6→0, 1→3, 3→5, 5→7, 7→1): 16 B sent by each device" in told
    assert "moved float32[2,2] on devices 2, 3: 0 1 2 3" in told


def test_keys_step_through_the_lines_and_turns(watched, tab):
    tab.set_content(EMPTY + watched._repr_html_())
    assert tab.locator("table[hidden], p").first.is_hidden()
    where = tab.locator(".where")
    tab.locator(".replay").focus()
    for key, place in [("ArrowRight", 2), ("ArrowLeft", 1), ("n", 2), ("t", 4), ("o", 5), ("End", 9), ("Home", 1)]:
        tab.keyboard.press(key)
        assert where.inner_text() == f"{place} of 9"
    tab.keyboard.press("n")
    assert "lax.ppermute" in tab.locator(".row.now mark").inner_text()
    assert "turn 1 of 3" in tab.locator(".told").inner_text() and "16 B" in tab.locator(".row.now .cost").inner_text()
    assert tab.locator(".device").count() == 8 and tab.locator(".wires .flow").count() == 8
    assert tab.locator(".device").nth(2).locator("td").all_inner_texts() == ["0", "1", "2", "3"]
    assert tab.wrong == []


def test_what_moves_keeps_its_colour(watched, tab):
    tab.set_content(EMPTY + watched._repr_html_())
    colours = "cards => cards.map(card => getComputedStyle(card.querySelector('td')).backgroundColor)"
    before = tab.locator(".device").evaluate_all(colours)
    tab.locator(".replay").focus()
    tab.keyboard.press("n")
    after = tab.locator(".device").evaluate_all(colours)
    assert len(set(before)) == 4 and [*after[2:], *after[:2]] == before


def test_one_device_is_shown_with_all_that_it_holds(watched, tab):
    tab.set_content(EMPTY + watched._repr_html_())
    tab.locator(".replay").focus()
    tab.keyboard.press("End")
    tab.locator(".device").nth(5).click()
    assert tab.locator(".device .head").all_inner_texts()[0].split() == ["device", "5", "x=2", "y=1"]
    assert set(tab.locator(".device .label b").all_inner_texts()) == {"rows", "moved"}
    tab.keyboard.press("Escape")
    assert tab.locator(".device").count() == 8


def test_devices_that_wait_are_framed_and_their_line_says_so(tab):
    tab.set_content(EMPTY + grader.replay(waiting, GRID)._repr_html_())
    tab.locator(".replay").focus()
    tab.keyboard.press("End")
    assert "devices 1, 2, 3 never come there" in tab.locator(".ended").inner_text()
    assert tab.locator(".device.stuck").count() == 1
    assert "device 0 waits" in tab.locator(".row .cost.wait").inner_text()


def test_ten_replays_stand_on_one_page(watched, tab):
    tab.set_content(EMPTY + watched._repr_html_() * 10)
    assert tab.locator(".replay").count() == 10
    tab.locator(".replay").nth(3).focus()
    tab.keyboard.press("End")
    assert [text[0] for text in tab.locator(".where").all_inner_texts()] == [*"1119111111"]
    assert tab.wrong == []


@pytest.mark.parametrize("ground, dark", [("#fff", False), ("#111", True), ("var(--jp-layout-color0)", True)])
def test_a_replay_is_dark_where_the_page_is(watched, tab, ground, dark):
    style = f"<style>:root {{--jp-layout-color0: #111}} body {{background: {ground}}}</style>"
    tab.set_content(EMPTY + style + watched._repr_html_())
    assert ("dark" in tab.locator(".replay").get_attribute("class")) == dark


def test_on_a_narrow_screen_nothing_is_cut(watched, tab):
    tab.set_viewport_size({"width": 390, "height": 800})
    tab.set_content("<meta name=viewport content='width=device-width'>" + EMPTY + watched._repr_html_())
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_where_no_script_runs_there_is_a_strip_of_the_lines_that_say_most(watched, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(EMPTY + watched._repr_html_())
    seen = page.locator(".many-devices-replay").inner_text()
    assert "turn 1 of 3, ppermute over x: 16 B sent by each device" in seen and "moved = lax.ppermute(moved" in seen
    assert seen.count("device 7") == MOST_PICTURES
    blocks = page.locator("td[bgcolor]")
    assert blocks.first.inner_text() == "0 1" and len(set(blocks.evaluate_all("all => all.map(td => td.bgColor)"))) > 3
    context.close()


def test_a_gathered_block_has_the_colours_of_its_pieces():
    gathered = mapped(lambda a: lax.all_gather(a, "x", axis=1, tiled=True), P(None, "x"), P())
    facts = fitting("", 0, "", grader.replay(gathered, GRID.reshape(2, 8)).facts)
    assert len(set(re.findall('bgcolor="(.{7})"', stills(facts)))) == 4


def mapped(body, ins, out):
    return jax.shard_map(body, mesh=make_mesh({"x": 4}), in_specs=ins, out_specs=out, check_vma=False)


def test_nothing_of_a_strangers_runs(watched, tab):
    """Each vector as a line of the source, a name, an operation, a note, a file, a title and the end's words."""
    vectors = [vector.replace("\n", " ") for vector in pages.VECTORS]
    (place,) = {frame.place.file for frame in watched.facts.frames if frame.place}
    plain = watched.facts.frames[2]
    frames = [
        replace(
            plain,
            operation=vector,
            note=vector if k % 2 else "",
            arrays=tuple(replace(array, name=vector) for array in plain.arrays),
            stack=(replace(plain.place, first=k + 1, last=k + 1),),
            waits=(),
        )
        for k, vector in enumerate(vectors)
    ]
    facts = replace(
        watched.facts, frames=tuple(frames), excerpts=(Excerpt(place, 1, tuple(vectors)),), ended=" ".join(vectors)
    )
    hits = []
    tab.expose_function("hit", lambda what: hits.append(what))
    tab.set_content(EMPTY + Replay("</script><script>hit(1)</script>" + vectors[1], facts)._repr_html_())
    tab.evaluate("""() => {
        const root = document.querySelector(".many-devices-replay").shadowRoot;
        const slider = root.querySelector("input");
        for (let step = 0; step <= slider.max; step += 7) {
            slider.value = step;
            slider.dispatchEvent(new Event("input"));
        }
    }""")
    tab.wait_for_timeout(200)
    assert tab.locator(".code").all_inner_texts()[3].strip() == vectors[3].strip()
    assert hits == [] and tab.wrong == []
