"""A release without GitHub: in a Colab-like environment, a notebook installs the course from any address."""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

import nbformat
import pytest
from whole.test_first_cell import NOTEBOOK, WORKS

from grader.classroom.course.release import release
from grader.classroom.store import Unavailable


@contextlib.contextmanager
def served(folder):
    """The address at which a folder is served on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()


@pytest.fixture(scope="module")
def course(root, tmp_path_factory):
    """What a wheel and a notebook are made of."""
    folder = tmp_path_factory.mktemp("release") / "course"
    ignored = shutil.ignore_patterns("__pycache__", "classroom")
    shutil.copytree(root / "grader", folder / "grader", ignore=ignored)
    shutil.copytree(root / "course/07_matmul", folder / "course/07_matmul")
    for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-TEXT"):
        shutil.copy(root / name, folder)
    return folder


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """The Python of an environment that has all packages of this one, and no `grader`."""
    folder = tmp_path_factory.mktemp("colab") / "env"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "beside.pth").write_text(sysconfig.get_path("purelib") + "\n")  # whose own .pth files then do not count
    return str(folder / "bin" / "python")


def run(there, *sources):
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "XLA_FLAGS")}
    done = subprocess.run(
        [there, "-c", NOTEBOOK, json.dumps(sources)], env=own, cwd=Path(there).parent, capture_output=True, text=True
    )
    return done.stdout + done.stderr


@pytest.mark.timeout(600)
def test_a_notebook_installs_the_course_from_an_address_and_only_what_it_was_made_with(course, there):
    with served(course / "dist/release") as address:
        wheel, *notebooks = release(course, address)
        (notebook,) = notebooks
        first, imports = [c.source for c in nbformat.read(notebook, 4).cells if c.cell_type == "code"][:2]
        content = wheel.read_bytes()
        wheel.write_bytes(content + b"more")
        said = run(there, first)
        assert "isn't the one that this notebook was made with" in said and "Traceback" not in said, said
        wheel.rename(wheel.with_suffix(".away"))
        assert "ask your instructor whether the address still works" in run(there, first)
        wheel.write_bytes(content)
        said = run(there, first, imports, WORKS)
    assert "No accelerator: 8 simulated CPU devices." in said and "4 of 4 points" in said, said


def test_what_is_no_address_is_refused(course):
    with pytest.raises(Unavailable, match="should be an address that begins with https://"):
        list(release(course, "dist/"))
