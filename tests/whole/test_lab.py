"""`grader lab` in a real browser: the lesson opens and runs, Validate and Formgrader work."""

import shutil

import labs
import pytest

pytestmark = pytest.mark.needs("browser")


@pytest.fixture(scope="module")
def lab(root, tmp_path_factory):
    """A lab on a copy of the course; its address."""
    folder = tmp_path_factory.mktemp("lab")
    for name in ("solutions", "course"):
        shutil.copytree(root / name, folder / name)
    for name in ("nbgrader_config.py", "jupytext.toml"):
        shutil.copy(root / name, folder)
    with labs.running_lab(folder) as address:
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
