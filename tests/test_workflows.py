"""What GitHub and others read of this repository: workflows, the citation, the students' environment."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def valid(schema: str, *files: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", WORKFLOWS),
        ("dependabot", [ROOT / ".github/dependabot.yml"]),
        ("citation-file-format", [ROOT / "CITATION.cff"]),
    ],
)
def test_each_follows_its_schema(schema, files):
    pytest.importorskip("check_jsonschema")
    checked = valid(schema, *files)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_others_actions_are_pinned_to_a_commit_and_may_only_read(file):
    text = file.read_text()
    used = re.findall(r"uses: ([^.\s]\S+)(.*)", text)
    assert [action for action, _ in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)] == []
    assert [action for action, note in used if not re.fullmatch(r"  # v\d+\.\d+\.\d+", note)] == []
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}


def test_the_oldest_jax_is_one_everywhere():
    oldest = re.search(r"jax>=([\d.]+)", " ".join(PROJECT["dependencies"]))[1]
    assert f"packages: jax=={oldest}}}" in (ROOT / ".github/workflows/ci.yml").read_text()
    assert f"JAX {oldest} (Colab's)" in (ROOT / "README.md").read_text()


def test_the_citation_is_of_this_version():
    assert CITATION["version"] == PROJECT["version"]


def test_the_students_tests_are_there():
    assert [p for p in (ROOT / "tests/students.txt").read_text().split() if not (ROOT / p).exists()] == []
