"""`grader lab` in a real browser: a student finds the way, and an instructor Validate and Formgrader."""

import shutil

import labs
import nbformat
import pytest
from contrast import contrast
from rota import LABS, taking_turns

pytestmark = pytest.mark.needs("browser")


@pytest.fixture(scope="module")
def folder(root, tmp_path_factory):
    """A copy of the course."""
    folder = tmp_path_factory.mktemp("lab")
    for name in ("solutions", "course"):
        shutil.copytree(root / name, folder / name)
    for name in ("nbgrader_config.py", "jupytext.toml"):
        shutil.copy(root / name, folder)
    return folder


@pytest.fixture(scope="module")
def lab(folder):
    """An instructor's lab; its address."""
    with labs.running_lab(folder, "--instructor") as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with labs.chromium() as browser:
        yield browser


@taking_turns(0, LABS)
def test_the_lesson_runs_and_validate_tells_what_is_open(lab, browser):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.goto(f"{lab}/lab/tree/work/07_matmul/07_matmul.ipynb?token=open", timeout=60_000)
    page.locator(".jp-Notebook h1").first.wait_for(timeout=60_000)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).first.click()
    page.get_by_text("is still the starter").first.wait_for(timeout=90_000)
    page.get_by_text("Validate", exact=True).first.click()
    dialog = page.locator(".jp-Dialog").filter(has_text="Validation Results")
    dialog.wait_for(timeout=120_000)
    assert 'check("case3", case3)' in dialog.inner_text()


DRAWN = """import grader
from jax.sharding import PartitionSpec as P
wanted, held = (grader.draw.blocks((4, 2), spec, {"x": 4}) for spec in (P(), P("x")))
display(grader.draw.compare(wanted, held))
grader.draw.turning(grader.draw.ring(4), "A ring")"""
SEEN = """() => {
    const pixel = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const seen = (...layers) => {  // as it is on the screen: the last layer is uppermost
        for (const layer of layers) { pixel.fillStyle = layer; pixel.fillRect(0, 0, 1, 1); }
        return [...pixel.getImageData(0, 0, 1, 1).data].slice(0, 3).map(c => c / 255);
    };
    const grounds = node => node ? [...grounds(node.parentElement), getComputedStyle(node).backgroundColor] : [];
    return [...document.querySelectorAll(".jp-OutputArea svg[role=img]")].map(one => ({
        said: one.getAttribute("aria-label"),
        ground: seen("white", ...grounds(one)),
        inks: [...one.querySelectorAll("text:not([fill='#222222'])")].map(  // those on blocks are dark on any page
            text => seen("white", ...grounds(one), getComputedStyle(text).fill)),
    }));
}"""


@taking_turns(1, LABS)
def test_pictures_are_in_the_colours_of_the_theme_and_say_what_they_show(folder, lab, browser):
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(DRAWN)])
    nb.metadata.kernelspec = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    nbformat.write(nb, folder / "work" / "drawn.ipynb")
    page = browser.new_page()
    for theme, is_dark in (("JupyterLab Light", False), ("JupyterLab Dark", True)):
        labs.choose_theme(folder, theme)
        page.goto(f"{lab}/lab/workspaces/drawn/tree/work/drawn.ipynb?token=open", timeout=60_000)
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)
        page.locator(".jp-CodeCell").first.click()
        page.keyboard.press("Shift+Enter")
        page.locator(".jp-OutputArea svg[role=img]").nth(1).wait_for(timeout=60_000)
        compared, ring = page.evaluate(SEEN)
        assert "holds\n4×2 over x=4" in compared["said"] and "sends 0→1" in ring["said"]
        for picture in (compared, ring):
            assert (max(picture["ground"]) < 0.2) == is_dark
            assert len(picture["inks"]) > 4 and min(contrast(ink, picture["ground"]) for ink in picture["inks"]) >= 4.5
        page.keyboard.press("Control+s")
        page.locator(".jp-mod-dirty").wait_for(state="detached")
    page.close()


@taking_turns(2, LABS)
def test_formgrader_lists_the_lesson(lab, browser):
    page = browser.new_page()
    page.goto(f"{lab}/formgrader?token=open", timeout=60_000)
    page.get_by_text("07_matmul").first.wait_for(timeout=60_000)


@taking_turns(3, LABS)
def test_a_student_finds_the_way_by_keyboard_and_nothing_of_an_instructors(folder, browser):
    with labs.running_lab(folder) as address:
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        page.goto(f"{address}/?token=open", timeout=60_000)
        page.locator(".jp-Notebook h1", has_text="Many devices in JAX").wait_for(timeout=60_000)
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)
        page.locator(".jp-TableOfContents").get_by_text("The lessons").wait_for()
        assert page.locator(".jp-mod-dirty").count() == 0, "a notebook that was only opened is called changed"
        for _ in ("the title", "the first cell", "the progress"):
            page.keyboard.press("Shift+Enter")
        page.get_by_text("Your progress: 0 of").wait_for(timeout=60_000)
        exercise = page.locator("p", has_text="Next: ").get_by_role("link").first
        name = exercise.inner_text()
        exercise.click()
        page.locator(".jp-Notebook h3", has_text=name).first.wait_for(timeout=60_000)
        assert page.get_by_role("menuitem", name="Nbgrader").count() == 0
        assert page.get_by_text("Would you like to receive official Jupyter news?").count() == 0
        assert page.get_by_text("solutions").count() == 0
        assert page.request.get(f"{address}/formgrader?token=open").status == 404
