"""`grader lab` in a real browser: a student finds the way, and an instructor Validate and Formgrader."""

import shutil

import labs
import pytest

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


def test_formgrader_lists_the_lesson(lab, browser):
    page = browser.new_page()
    page.goto(f"{lab}/formgrader?token=open", timeout=60_000)
    page.get_by_text("07_matmul").first.wait_for(timeout=60_000)


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
