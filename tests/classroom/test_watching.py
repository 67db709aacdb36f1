"""The replay of a wrong answer on its feedback page: made behind the walls, read without trust, drawn by our script."""

import copy
import json

import mini
import nbformat
import pages
import pytest
from labs import chromium

from grader.classroom.course.notebook import checked
from grader.classroom.grading.page import POLICY
from grader.classroom.grading.record import HandIn, record
from grader.classroom.grading.watching import embedded
from grader.lessons import EXERCISES
from grader.replays.facts import fitting
from grader.replays.page import DATA, PLAYER
from grader.watching import watched

HEAD = f'<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
WRONG = """
def case3(a, b, mesh):
    def on_device(a, b):
        return a @ b  # <script>hit(1)</script>
    specs = {"in_specs": (P(None, "x"), P("x", None)), "out_specs": P()}
    return jax.shard_map(on_device, mesh=mesh, **specs, check_vma=False)(a, b)
"""


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The small course with two hand-ins, graded: one has a wrong answer."""
    course = mini.built_course(tmp_path_factory.mktemp("watched"))
    for student, answer in (("right", None), ("wrong", WRONG)):
        nb = mini.solved(course)
        if answer:
            nb.cells[mini.position(nb, "answer_case3")].source = answer
        file = course / "submitted" / student / mini.LESSON / f"{mini.LESSON}.ipynb"
        file.parent.mkdir(parents=True)
        nbformat.write(nb, file)
        assert not record(HandIn(course, student, mini.LESSON)).problem
    return course


def card(course, student):
    nb = nbformat.read(course / "autograded" / student / mini.LESSON / f"{mini.LESSON}.ipynb", 4)
    return next(cell.outputs[0].data for cell in nb.cells if cell.cell_type == "code" and checked(cell) == "case3")


def test_a_wrong_card_holds_the_facts_as_data_and_stills_a_right_one_a_line(graded):
    wrong, right = (card(graded, student)["text/html"] for student in ("wrong", "right"))
    assert wrong.count("<script") == wrong.count(DATA) == 1
    assert "return a @ b  # &lt;script&gt;hit(1)&lt;/script&gt;" in wrong
    assert "On the same mesh, with little data: mesh " in wrong
    assert "<script" not in right and "grader.watch" in right and "grader.watch" in card(graded, "wrong")["text/plain"]


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


def opened(browser, html, tmp_path):
    """The page, and what went wrong on it."""
    tab, wrong = browser.new_page(), []
    tab.expose_function("hit", lambda what: wrong.append(what))
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda message: wrong.append(message.text))
    (tmp_path / "page.html").write_text(html)
    tab.goto((tmp_path / "page.html").as_uri())
    return tab, wrong


@pytest.mark.needs("browser")
def test_on_a_feedback_page_it_is_stepped_through_and_no_other_script_runs(graded, browser, tmp_path):
    (place,) = (graded / "feedback" / "wrong").rglob("*.html")
    html = place.read_text()
    tab, wrong = opened(browser, html, tmp_path)
    tab.locator("summary", has_text="Watch it").click()
    tab.locator(".replay").focus()
    tab.keyboard.press("Home")
    assert tab.locator(".where").inner_text().startswith("1 of ")
    assert tab.locator(".device").count() == 8 and wrong == []
    tab.close()
    tab, wrong = opened(browser, f"{html}<script>hit(1)</script>", tmp_path)
    assert len(wrong) == 1 and "Content Security Policy" in wrong[0]
    tab.close()


@pytest.fixture(scope="module")
def facts():
    wrong = next(mistake.wrong for mistake in EXERCISES["case3"].mistakes)
    replay = watched(EXERCISES["case3"], wrong, "values")
    return dict(fitting("case3", 1, "", replay.facts))


def changed(facts, change):
    copied = copy.deepcopy(facts)
    change(copied)
    return copied


def test_facts_are_shown_as_they_are(facts):
    html = embedded(facts, "case3", "about")
    assert json.loads(html.partition(DATA)[2].partition("</script>")[0]) == {**facts, "about": "about"}


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f.update(frames=5),
        lambda f: f.update(frames=[]),
        lambda f: f.update(start=10_000),
        lambda f: f.update(other=""),
        lambda f: f["meshes"][0].__setitem__(0, ["x", 1 << 30]),
        lambda f: f["frames"][1].update(mesh=7),
        lambda f: f["frames"][1].update(here=[[0]]),
        lambda f: f["frames"][1]["arrays"][0].update(blocks=[1 << 20] * 4),
        lambda f: f["frames"][1]["arrays"][0].update(colours=["red;}"] * 4),
        lambda f: f["frames"][1]["arrays"][0].update(stripes=["rows", {"0": []}, 3]),
        lambda f: f["pool"][0].update(rows=[["1"] * 1000]),
        lambda f: f["excerpts"][0].update(lines=["x" * 100_000]),
    ],
)
def test_what_are_no_facts_is_left_out(facts, change):
    assert embedded(changed(facts, change), "case3", "") == ""


@pytest.mark.parametrize("reported", [None, 5, "facts", [], {}, {"frames": None}, {"meshes": {"x": {}}}])
def test_what_is_no_record_is_left_out(reported):
    assert embedded(reported, "case3", "") == ""


@pytest.mark.needs("browser")
def test_nothing_of_a_strangers_runs(facts, browser, tmp_path):
    """Each vector as a line, a name, a type, an entry, an operation, a scope, a note and the end's words."""

    def everywhere(vector):
        def change(f):
            f["ended"] = vector
            f["excerpts"][0]["file"] = vector
            f["excerpts"][0]["lines"] = [vector] * len(f["excerpts"][0]["lines"])
            f["pool"] = [{**block, "type": vector, "rows": [[vector]], "range": vector} for block in f["pool"]]
            for frame in f["frames"]:
                frame.update(operation=vector, note=vector, scopes=[vector])
                for array in frame["arrays"]:
                    array["name"] = vector

        return change

    parts = [embedded(changed(facts, everywhere(vector)), vector[:50], vector) for vector in pages.VECTORS]
    assert all(parts)
    html = f"{HEAD}<body>{''.join(parts)}<script>{PLAYER}</script>"
    tab, wrong = opened(browser, html, tmp_path)
    assert tab.locator(".replay").count() == len(parts)
    tab.wait_for_timeout(300)
    assert wrong == []
    tab.close()
