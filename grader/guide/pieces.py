"""The learner's own module, which grows: of the exercises that are pieces of a model, the answers that were accepted.

Each piece is a file of its own, with all that it needs, in the folder `mine` beside the record of checks: another
lesson's helpers have the same names and do something else.
"""

from __future__ import annotations

import contextlib
import html
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.arrays.words import as_inline_html
from grader.exercises.verdict import Verdict
from grader.guide.attempts import folder, this_notebook
from grader.guide.carving import carved
from grader.guide.syllabus import LessonText, syllabus
from grader.questions import Text

MODULE = "mine"  # the folder, so that `from mine.tp_block import tp_block` is Python too
NO_MODULE = "Your module is with your own notebooks, and is not there while hand-ins are graded."


@dataclass(frozen=True)
class ModelPiece:
    """One piece of the model: the exercise, its lesson, the accepted source ("": none yet), and when, since 1970."""

    name: str
    lesson: LessonText
    source: str = ""
    time: float = 0.0

    @property
    def when(self) -> str:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(self.time)) if self.source else "not yet"


@dataclass(frozen=True)
class OwnModule:
    """The pieces of the course, in the order of its lessons; `where` is the folder of those that are there."""

    pieces: tuple[ModelPiece, ...]
    where: Path | None

    @property
    def note(self) -> str:
        there = sum(bool(piece.source) for piece in self.pieces)
        count = f"{there} of {len(self.pieces)} pieces"
        return f"{count}, in {self.where}." if there else f"{count}: an accepted answer is kept here by itself."

    def __repr__(self) -> str:
        if not self.pieces:
            return NO_MODULE
        width = max(len(piece.name) for piece in self.pieces)
        lines = (f"{piece.name:<{width}}  lesson {piece.lesson.number}  {piece.when}" for piece in self.pieces)
        return "\n".join([*lines, self.note])

    def _repr_html_(self) -> str:
        if not self.pieces:
            return f"<p>{NO_MODULE}</p>"
        header = "".join(
            f'<th scope="col" style="text-align:left">{name}</th>' for name in ("piece", "lesson", "accepted")
        )
        rows = "".join(map(_row, self.pieces))
        note = f"<p>{as_inline_html(self.note)}</p>"
        return f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>{note}"


def keep_piece(verdict: Verdict, answer: Any) -> None:
    """Keep the source of an accepted piece of the model, as the cells of this notebook have it.

    Nothing here stops a check. An answer without a name in the notebook, such as a lambda, is not kept.
    """
    from grader.lessons import EXERCISES  # here, so that `import grader` stays quick

    name = verdict.exercise
    if verdict.state != "right" or name not in EXERCISES or not EXERCISES[name].piece or (where := folder()) is None:
        return
    if (notebook := this_notebook()) is None:
        return
    called, cells = getattr(answer, "__name__", ""), list(notebook.history_manager.input_hist_parsed)
    if notebook.user_ns.get(called) is not answer or not (source := carved(called, cells)):
        return
    alias = "" if called == name else f"\n\n\n{name} = {called}"
    with contextlib.suppress(OSError):
        _write(where / MODULE / f"{name}.py", f"{source}{alias}\n")


def mine(name: str = "") -> OwnModule | Text:
    """The model that grows with you: those of your accepted answers that are pieces of it, each with its source.

    `check` keeps them beside the record of your checks, in a folder `mine`. With a piece's name you get its source in
    a new cell below this one, so that the notebook that you hand in carries it.

    Args:
      name: a piece, which is the name of its exercise; without it, all of them are shown.

    Example:
      >>> grader.mine("tp_block")
      `tp_block` is not in your module: ...
    """
    pieces = _pieces()
    if not name or not pieces:
        return OwnModule(pieces, _where())
    found = {piece.name: piece for piece in pieces}.get(name)
    if found is None:
        return Text((f"No piece is called `{name}`; there are {', '.join(piece.name for piece in pieces)}.",))
    notebook = this_notebook()
    if notebook is not None and callable(notebook.user_ns.get(name)):
        return Text((f"`{name}` is defined in this notebook already.",))
    if not found.source:
        return Text(
            (
                f"`{name}` is not in your module: it is an exercise of lesson {found.lesson.number}, and an accepted "
                "answer is kept. What follows goes on without it.",
            )
        )
    if notebook is None:
        return Text((f"This is no notebook, so here is your `{name}`:", found.source))
    notebook.set_next_input(found.source)
    return Text((f"Your `{name}` of lesson {found.lesson.number} is in the new cell below. Run it, then go on.",))


def _pieces() -> tuple[ModelPiece, ...]:
    """All pieces of this course; where hand-ins are graded there are no lessons, and none."""
    from grader.lessons import EXERCISES

    named = ((text.name, lesson) for lesson in syllabus() for text in lesson.exercises)
    return tuple(_piece(name, lesson) for name, lesson in named if name in EXERCISES and EXERCISES[name].piece)


def _piece(name: str, lesson: LessonText) -> ModelPiece:
    try:
        file = (_where() or Path()) / f"{name}.py"
        return ModelPiece(name, lesson, file.read_text(errors="replace").strip(), file.stat().st_mtime)
    except OSError:
        return ModelPiece(name, lesson)


def _where() -> Path | None:
    return where / MODULE if (where := folder()) else None


def _write(file: Path, text: str) -> None:
    """The whole file or nothing of it: another kernel may read it meanwhile."""
    file.parent.mkdir(parents=True, exist_ok=True)
    number, draft = tempfile.mkstemp(dir=file.parent, suffix=".part")
    with os.fdopen(number, "w") as stream:
        stream.write(text)
    os.replace(draft, file)


def _row(piece: ModelPiece) -> str:
    name = f"<code>{html.escape(piece.name)}</code>"
    if piece.source:
        source = f'<pre style="text-align:left;margin:.4em 0;background:transparent">{html.escape(piece.source)}</pre>'
        name = f"<details><summary>{name}</summary>{source}</details>"
    cells = (name, html.escape(piece.lesson.title), piece.when)
    aligned = (f'<td style="text-align:left;vertical-align:top">{cell}</td>' for cell in cells)
    return f"<tr>{''.join(aligned)}</tr>"
