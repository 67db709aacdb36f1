"""Compile students' programs for a pod: the process that the TPU's compiler takes whole, and that may end in it.

As in the evaluator no Python of a student's runs here, and nothing is decided: what the compiler says is told in a few
numbers.
"""

from __future__ import annotations

import json
import os
from typing import Any, TextIO

from grader.chips import alone
from grader.chips.compiling import ENVIRONMENT, libtpu
from grader.chips.report import fit_of
from grader.classroom.inside import wire
from grader.classroom.inside.role import Role


def main(questions: TextIO, replies: TextIO) -> None:
    """Answer one question: libtpu is loaded for it."""
    os.environ.update(ENVIRONMENT, TPU_LIBRARY_PATH=str(libtpu() or ""))
    replies.write(json.dumps(_reply(json.loads(questions.readline()))) + "\n")
    replies.flush()


def _reply(question: dict[str, Any]) -> dict[str, Any]:
    try:
        asked = wire.request_in(question)
        return wire.FIT.write(fit_of(asked, alone.compile_alone(asked.facts, asked.program)))
    except Exception as error:  # the compiler's own, and whatever an odd program may lead to
        return {"raised": [type(error).__name__, str(error)[:4000]]}


ROLE = Role(main)
