"""The book's page on audits: its program is run, and prints what the page says (`--rewrite-goldens` writes it anew)."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "book" / "audit.md"
CODE, SAID = re.compile(r"```python\n(.*?)```", re.DOTALL), re.compile(r"```text\n(.*?)```", re.DOTALL)
# In a process of its own: the program sets a mesh for good. Blocks are one file, so that lines count through.
RUN = """
import contextlib, io, json, sys
space, lines, said = {}, 0, []
for block in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile("\\n" * lines + block, "train.py", "exec"), space)
    lines += block.count("\\n")
    said.append(out.getvalue())
json.dump(said, sys.stdout)
"""


def test_the_program_prints_what_the_page_says(request):
    for package in ("flax", "optax"):
        pytest.importorskip(package)
    page = PAGE.read_text()
    ended = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps(CODE.findall(page)), capture_output=True, text=True, timeout=200
    )
    assert ended.returncode == 0, ended.stderr
    printed = [text for text in json.loads(ended.stdout) if text]
    if request.config.getoption("--rewrite-goldens"):
        texts = iter(printed)
        PAGE.write_text(SAID.sub(lambda _: f"```text\n{next(texts)}```", page))
    assert SAID.findall(PAGE.read_text()) == printed and len(printed) == 4
