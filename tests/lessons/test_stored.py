"""What lessons ask of the TPU's compiler is stored with the course: they run, and are checked, where there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.chips import compiling
from grader.lessons.real_chips.bets import COMPILED, bytes_by_compiler, bytes_by_formula

ROOT = Path(__file__).parents[2]
ASKING = [text.stem for text in sorted(ROOT.glob("solutions/*/*.md")) if 'on="v5e' in text.read_text()]


@pytest.fixture
def no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("TPU_LIBRARY_PATH", str(tmp_path / "none"))
    monkeypatch.setenv(compiling.CACHE, str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("lesson", ASKING)
def test_a_lesson_comes_to_the_same_without_the_compiler(lesson, no_compiler):
    nbval = ["--nbval", "--nbval-sanitize-with=solutions/sanitize.cfg", f"solutions/{lesson}/{lesson}.ipynb"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval-cell-timeout=120", *nbval]
    ended = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout[-4000:]


@pytest.mark.parametrize("way, more", [("dp", 1), ("fsdp", 7 / 6), ("tp", 1), ("both", 1)])
def test_the_formulas_of_the_bet_are_within_a_fifth_of_what_the_compiler_sends(way, more, no_compiler):
    bytes_by_compiler.cache_clear()
    assert bytes_by_compiler(way) == round(more * bytes_by_formula(**COMPILED[way]))
