"""A Gradescope autograder: a zip that Gradescope makes an image of, and what runs in that for each hand-in.

https://gradescope-autograders.readthedocs.io/en/latest/specs/ has the layout and the form of results.json. Gradescope
lays the zip out in /autograder/source, copies `run_autograder` into /autograder, and expects what comes of the file in
/autograder/submission as /autograder/results/results.json.

The judge is the same as everywhere, and so are the walls where they can be built. In a container that is not allowed
namespaces they cannot: then a hand-in runs as the one who grades it, and can read the references. That is said on
standard output, which Gradescope shows to instructors alone.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from grader.arrays.words import legible
from grader.classroom.course.plan import plan_of
from grader.classroom.grading.beginning import without_addresses
from grader.classroom.grading.loose import grade_files
from grader.classroom.handins.archive import Unreadable
from grader.classroom.handins.handin import find_notebook
from grader.classroom.inside.shown import PACKAGE, files
from grader.classroom.store import Unavailable
from grader.classroom.walls import bubblewrap as walls

ABOUT = "gradescope.json"
BESIDE = ("requirements.lock", "pyproject.toml", "nbgrader_config.py")
SETUP_SH = """#!/usr/bin/env bash
# Gradescope runs this once, as root, when it makes the image: Python 3.11, the locked packages, and bubblewrap.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends bubblewrap ca-certificates python3-venv
cd /autograder/source
python3 -m venv /opt/uv
awk '/^[^ ]/ { wanted = /^uv==/ } wanted' requirements.lock > /tmp/uv.lock
/opt/uv/bin/pip install --quiet --no-deps --require-hashes -r /tmp/uv.lock
/opt/uv/bin/uv venv --python 3.11 .venv
/opt/uv/bin/uv pip install --python .venv --compile-bytecode --no-deps --require-hashes -r requirements.lock
"""
RUN_AUTOGRADER = """#!/usr/bin/env bash
# Gradescope runs this for each hand-in, from its copy in /autograder.
set -eu
cd "$(dirname "$0")"
export PYTHONPATH="$PWD/source"
exec "${PYTHON:-source/.venv/bin/python}" -m grader.classroom.grading.gradescope "$PWD"
"""
NO_WALLS = """The walls cannot be built here, so this hand-in ran as the grader does. What was not protected:
{}
"""


def pack_autograder(root: Path, lesson: str, target: Path) -> None:
    """Write the autograder of a lesson as a zip: the grader, the lesson as released, and the two scripts."""
    release = root / "course" / lesson / f"{lesson}.ipynb"
    if not release.exists():
        raise Unavailable(f"There is no lesson {lesson} in course/. Build it first: `grader build {lesson}`.")
    settings = {"lesson": lesson, "bonus": sorted(plan_of(root).of(lesson).bonus)}
    texts = {"setup.sh": SETUP_SH, "run_autograder": RUN_AUTOGRADER, ABOUT: json.dumps(settings, indent=1) + "\n"}
    found = {name: root / name for name in BESIDE if (root / name).exists()}
    found |= {f"course/{lesson}/{lesson}.ipynb": release}
    found |= {f"grader/{file.relative_to(PACKAGE).as_posix()}": file for file in files(PACKAGE)}
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(_entry(name, 0o644 if name == ABOUT else 0o755), text, zipfile.ZIP_DEFLATED)
        for name, file in sorted(found.items()):
            archive.writestr(_entry(name, 0o644), file.read_bytes(), zipfile.ZIP_DEFLATED)


def _entry(name: str, mode: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)  # of 1980, so that the same files make the same zip
    entry.external_attr = mode << 16
    return entry


def results(records: Sequence[Mapping[str, Any]], bonus: Collection[str], seconds: float) -> dict[str, Any]:
    """What Gradescope is told: a test for each exercise, with what we say to the student as plain text."""
    return {
        "score": round(sum(record["points"] for record in records), 2),
        "execution_time": round(seconds),
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "test_output_format": "text",
        "test_name_format": "text",
        "tests": list(_tests(records, bonus)),
    }


def _tests(records: Sequence[Mapping[str, Any]], bonus: Collection[str]) -> Iterator[dict[str, Any]]:
    for record in records:
        name = record["exercise"]
        yield {
            "name": f"{name} (bonus)" if name in bonus else name,
            "score": record["points"],
            "max_score": 0 if name in bonus else record["max"],  # above it: extra credit
            "status": "passed" if record["points"] >= record["max"] else "failed",
            "output": "\n".join(map(legible, record["message"].splitlines())) or "Correct",
        }


def failed(problem: str) -> dict[str, Any]:
    """What Gradescope is told of a hand-in that was not judged: why."""
    return {"score": 0, "output": legible(problem), "output_format": "text", "stdout_visibility": "hidden", "tests": []}


def judge_submission(place: Path) -> dict[str, Any]:
    """The results of the hand-in in `place/submission`, judged by what lies in `place/source`."""
    source, begin = place / "source", time.monotonic()
    settings = json.loads((source / ABOUT).read_text())
    try:
        notebook = find_notebook(place / "submission", settings["lesson"])
    except Unreadable as why:
        return failed(str(why))
    (graded,) = grade_files([notebook], source, secrets.randbits(128))
    if graded.problem:
        return failed(graded.problem.replace(f"{notebook}: ", ""))
    return results(graded.records, settings["bonus"], time.monotonic() - begin)


def main() -> None:
    """Judge the hand-in in the folder that is named, and write its results there."""
    without_addresses()
    place = Path(sys.argv[1])
    if gaps := walls.missing():
        os.environ[walls.WITHOUT] = "1"
        print(NO_WALLS.format("\n".join(gaps)))
    told = judge_submission(place)
    (place / "results").mkdir(exist_ok=True)
    (place / "results" / "results.json").write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
