"""A real JupyterLab and a real browser, for tests."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
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


@contextlib.contextmanager
def running_lab(folder: Path, *options: str) -> Iterator[str]:
    """`grader lab` in this folder, with these options; its address. The token is `open`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server_options = f"--no-browser --allow-root --port={port} --IdentityProvider.token=open"
    server = subprocess.Popen(
        [sys.executable, "-m", "grader.cli", "lab", *options],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={
            **os.environ,
            "LAB_ARGS": server_options,
            "JUPYTERLAB_WORKSPACES_DIR": str(folder),  # no tab of an earlier one
            "MANY_DEVICES_HOME": str(folder / "home"),
        },
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}/api?token=open")
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _wait_for(address: str, seconds: float = 60) -> bytes:
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
