"""What `make` adds to the commands: what they need, and an exit status."""

import os
import shutil
import subprocess

import pytest


@pytest.mark.parametrize(("status", "through_make"), [(0, 0), (1, 0), (2, 2), (130, 2)])
def test_make_grade_fails_where_nothing_could_be_graded_and_not_where_somebody_should_look(
    root, tmp_path, status, through_make
):
    for name in ("Makefile", "requirements.lock", "pyproject.toml", "nbgrader_config.py"):
        shutil.copy(root / name, tmp_path)
    for made in (".venv/bin/grader", ".venv/.ready", ".cache/course"):  # in this order, as make would
        (tmp_path / made).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / made).write_text(f'#!/bin/sh\necho "$@"; exit {status}\n')
    (tmp_path / ".venv/bin/grader").chmod(0o700)
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["make", "grade", "ARGS=--details"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert "grade --details" in done.stdout.splitlines() and done.returncode == through_make, done.stderr
