"""Inside the laboratory, the process that grades."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from textwrap import dedent
from typing import Any

import mini
import nbformat
from nbformat import NotebookNode
from whole.attacks import BY_NAME
from whole.attacks.attack import Attack
from whole.attacks.machine import STUDENT
from whole.attacks.result import Result
from whole.attacks.toolkit import TOOLKIT, places

NEXT = "carol"


def hand_in(attack: Attack, course: Path, first_lines: str) -> NotebookNode:
    nb = mini.solved(course) if attack.solved else mini.released(course)
    mini.with_cell(nb, first_lines + TOOLKIT)
    code = f"print({attack.trace!r})\n{attack.code}"
    if attack.into:
        mini.edited(nb, f"answer_{attack.into}", lambda cell: cell.update(source=code))
    else:
        mini.with_cell(nb, code, at=mini.position(nb, "answer_case3") if attack.middle else 4)
    return nb


def grade(which: str, room: str) -> None:
    """Grade one hand-in after the other, as told on standard input."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    grader = (_Ours if which == "ours" else _Stock)(Path(room, "course"))
    replies.write("ready\n")
    replies.flush()
    for line in sys.stdin:
        name, first_lines = json.loads(line)
        attack = BY_NAME.get(name)
        if attack and attack.handed_in:
            replies.write(json.dumps(_commanded(which, grader, attack)) + "\n")
            replies.flush()
            continue
        nb = hand_in(attack, grader.course, first_lines) if attack else mini.solved(grader.course)
        reply = grader.graded(nb, STUDENT, attack.seconds if attack else 30)
        if attack and (attack.later or attack.after):
            honest = mini.solved(grader.course)
            if attack.after:
                mini.with_cell(mini.with_cell(honest, dedent(attack.after).strip()), first_lines + TOOLKIT)
            then = grader.graded(honest, NEXT, 30)
            reply.update(later=then["points"], text=reply["text"] + then["text"])
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
    grader.close()


def _commanded(which: str, grader: _Ours | _Stock, attack: Attack) -> dict[str, Any]:
    """Grade a folder that is handed in as an instructor does: by the command, and with it an honest student's."""
    course = grader.course
    shutil.rmtree(course / "submitted")  # whoever else is there takes time
    students = [STUDENT, NEXT] if attack.later else [STUDENT]
    for student in students:
        folder = course / "submitted" / student / mini.LESSON
        folder.mkdir(parents=True)
        write = attack.handed_in if student == STUDENT else _honest
        write(folder, mini.solved(course))
    said = _ours_said(course) if which == "ours" else "".join(grader.recorded(student) for student in students)
    points = {student: _points(course, student) for student in students}
    page = course / "feedback" / STUDENT / mini.LESSON / f"{mini.LESSON}.html"
    table = course / "grades.csv"
    made = {f"{mini.LESSON}.ipynb", f"{mini.LESSON}.html"}
    beside = [f for step in ("autograded", "feedback") for f in (course / step / STUDENT / mini.LESSON).glob("*")]
    return {
        "points": points[STUDENT],
        "raised": "a traceback" if "Traceback" in said else "",
        "words": said[-(1 << 16) :],
        "text": said[-(1 << 16) :],
        "page": page.read_text(errors="replace")[: 4 << 20] if page.exists() else "",
        "table": table.read_text() if table.exists() else "",
        "copied": [f.name for f in beside if f.name not in made],
        "later": points.get(NEXT),
    }


def _honest(folder: Path, nb: NotebookNode) -> None:
    nbformat.write(nb, folder / f"{mini.LESSON}.ipynb")


def _ours_said(course: Path) -> str:
    command = [sys.executable, "-m", "grader.cli", "grade", "--workers", "1", "--details"]
    return subprocess.run(command, cwd=course, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def _points(course: Path, student: str) -> dict[str, float]:
    """A student's points in the gradebook; none where there are none."""
    from nbgrader.api import Gradebook, MissingEntry

    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        try:
            grades = book.find_submission_notebook(mini.LESSON, mini.LESSON, student).grades
        except MissingEntry:
            return {}
        return {g.name.removeprefix("check_"): g.score for g in grades}


class _Ours:
    def __init__(self, course: Path):
        from grader.classroom.verdicts.judge import Judge

        self.course, self.judge, self.seed = course, Judge(seconds=5), int(os.environ["SEED"])

    def graded(self, nb: NotebookNode, student: str, seconds: float) -> dict[str, Any]:
        from grader.classroom.grading.execute import Grading, grade_notebook
        from grader.classroom.inside.limits import Limits
        from grader.classroom.store import Store
        from grader.feedback import explanation

        tight = Limits(cell_seconds=seconds / 3, seconds=seconds, memory=1 << 30)
        try:
            grading = Grading(mini.released(self.course), self.seed, tight)
            result = grade_notebook(nb, grading, self.judge, Store(self.course / ".grading"))
            written = nbformat.writes(result.notebook).encode()
        except Exception as error:
            return {"points": {}, "raised": f"{type(error).__name__}: {error}"[:500], "text": ""}
        return {
            "points": {v.exercise: v.points for v in result.verdicts},
            "size": len(written),
            "words": "\n".join(map(explanation, result.verdicts))[: 1 << 20],
            **_shown(result.notebook),
        }

    def close(self) -> None:
        self.judge.close()


class _Stock:
    """nbgrader as it comes, but for a shorter time limit a cell."""

    def __init__(self, course: Path):
        import stock

        from grader.classroom.course.build import nbgrader

        self.course, self.api = course, nbgrader(course)
        self.api.update_config(stock.configuration(seconds=8))

    def graded(self, nb: NotebookNode, student: str, _: float) -> dict[str, Any]:
        handed, graded = (
            self.course / step / student / mini.LESSON / f"{mini.LESSON}.ipynb" for step in ("submitted", "autograded")
        )
        handed.parent.mkdir(parents=True)
        nbformat.write(nb, handed)
        said = self.api.autograde(mini.LESSON, student, force=True, create=True)
        if not said["success"]:
            log = said.get("error") or said.get("log") or "no reason given"
            return {"points": {}, "raised": log.strip().splitlines()[-1][:500], "text": ""}
        points = _points(self.course, student)
        cards = _shown(nbformat.read(graded, 4))
        return {"points": points, "size": graded.stat().st_size, "words": cards["text"], **cards}

    def recorded(self, student: str) -> str:
        """Grade what lies there, and write its feedback page; what nbgrader said, where it did not succeed."""
        steps = (self.api.autograde, self.api.generate_feedback)
        said = [step(mini.LESSON, student, force=True) for step in steps]
        return "".join(str(s.get("error") or s.get("log") or "") for s in said if not s["success"])

    def close(self) -> None:
        pass


def _shown(nb: NotebookNode) -> dict[str, str]:
    """What the outputs of a graded notebook say, and its cards apart."""
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    outputs = [o for cell in code for o in cell.outputs]
    text = "".join(
        o.get("text", "")
        + "".join(map(str, o.get("data", {}).values()))
        + o.get("evalue", "")[:9999]
        + "".join(o.get("traceback", ()))[:9999]
        for o in outputs
    )
    cards = "".join(
        o.data.get("text/html", "")
        for cell in code
        if cell.source.startswith("check(")
        for o in cell.outputs
        if "data" in o
    )
    return {"text": text[: 4 << 20], "cards": cards[: 1 << 20]}


def directly(attack: Attack, course: Path) -> Result:
    """Run an attack that needs no walls, without a lab, where there can be none: only marks and errors are seen."""
    os.environ.update(SEED=str(10**8 + secrets.randbelow(10**8)), GRADER_WITHOUT_WALLS="1")
    grader = _Ours(course)
    with tempfile.TemporaryDirectory() as room:
        shutil.copytree(course, Path(room, "course"))
        grader.course = Path(room, "course")
        reply = grader.graded(hand_in(attack, course, places(Path(room), 1, "none")), STUDENT, attack.seconds)
        if attack.later:
            reply["later"] = grader.graded(mini.solved(course), NEXT, 30)["points"]
    grader.close()
    return Result(**reply)
