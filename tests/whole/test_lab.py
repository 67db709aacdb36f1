"""`grader lab` in a real browser: the lesson opens and runs, Validate and Formgrader work."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import needs
import pytest

QUIETLY = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = pytest.mark.needs("browser")


@pytest.fixture(scope="module")
def lab(root, tmp_path_factory):
    """A lab on a copy of the course; its address."""
    folder = tmp_path_factory.mktemp("lab")
    for name in ("solutions", "course"):
        shutil.copytree(root / name, folder / name)
    for name in ("nbgrader_config.py", "jupytext.toml"):
        shutil.copy(root / name, folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"--no-browser --allow-root --port={port} --IdentityProvider.token=open"
    server = subprocess.Popen(
        [sys.executable, "-m", "grader.cli", "lab"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "LAB_ARGS": options, "JUPYTERLAB_WORKSPACES_DIR": str(folder)},  # no tab of an earlier one
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}/api?token=open")
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _wait_for(address, seconds=60):
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        try:
            return urllib.request.urlopen(address, timeout=5).read()
        except OSError:
            time.sleep(0.5)
    raise TimeoutError(f"nothing answers at {address}")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=needs.browser(), args=QUIETLY)
        yield browser
        browser.close()


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
