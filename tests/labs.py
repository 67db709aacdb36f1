"""A real JupyterLab and a real browser, for tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import needs

QUIETLY = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


LAB = (sys.executable, "-m", "grader.cli", "lab")
OWN = ".cache/lab"  # in its folder: what a lab keeps of a person
THEME = "@jupyterlab/apputils-extension/themes.jupyterlab-settings"


def choose_theme(folder: Path, name: str) -> None:
    """From its next page on, the lab in this folder is "JupyterLab Light" or "JupyterLab Dark"."""
    file = folder / OWN / THEME
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"theme": name}))


@contextlib.contextmanager
def running_lab(
    folder: Path,
    *options: str,
    command: Sequence[str] = LAB,
    environment: Mapping[str, str] = os.environ,
    seconds: float = 60,
) -> Iterator[str]:
    """`grader lab` in this folder, with these options, or another command that starts it; its address.

    The token is `open`. It has to answer within so many `seconds`.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server_options = f"--no-browser --allow-root --port={port} --IdentityProvider.token=open"
    server = subprocess.Popen(
        [*command, *options],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={
            **environment,
            "LAB_ARGS": server_options,
            "JUPYTERLAB_WORKSPACES_DIR": str(folder / OWN),  # no tab of an earlier one
            "JUPYTERLAB_SETTINGS_DIR": str(folder / OWN),  # nobody's own theme, and none left behind
            "MANY_DEVICES_HOME": str(folder / OWN),
        },
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}/api?token=open", seconds)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _wait_for(address: str, seconds: float) -> bytes:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        try:
            return urllib.request.urlopen(address, timeout=5).read()
        except OSError:
            time.sleep(0.5)
    raise TimeoutError(f"nothing answers at {address}")


@contextlib.contextmanager
def chromium() -> Iterator:
    """A browser that asks for nothing by itself."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=needs.browser(), args=QUIETLY)
        yield browser
        browser.close()
