"""Read and run students' programs: the process that one of them may crash, hang or fill.

No Python of a student's runs here, and nothing is decided here: it is asked about programs, one JSON line
after the other, and says what they are made of and what they put on every device.
"""

from __future__ import annotations

import functools
import json
from typing import Any, TextIO

from grader.classroom.inside import wire
from grader.classroom.inside.role import Role
from grader.exercises.as_json import PROGRAM
from grader.programs.program import Program
from grader.programs.structure import Structure
from grader.programs.walk import structure


def main(questions: TextIO, replies: TextIO) -> None:
    """Answer questions until there are no more."""
    from grader.arrays.devices import eight_devices
    from grader.jax_versions import one_mlir_context

    eight_devices()
    with one_mlir_context():
        for line in questions:
            replies.write(json.dumps(_reply(json.loads(line))) + "\n")
            replies.flush()


@functools.lru_cache(maxsize=32)  # all are run before what nobody wrote is asked of any
def _read(text: str) -> tuple[Program, Structure]:
    program = PROGRAM.read(text)
    return program, structure(program)


def _reply(question: dict[str, Any]) -> dict[str, Any]:
    from grader.programs.execution import execute, sent_without_collectives

    try:
        program, written = _read(question["program"])
        if "mesh" not in question:
            return {"forms": program.results, "structure": wire.STRUCTURE.write(written)}
        if "bare" in question:
            sizes, arrays, _ = wire.inputs(question)
            return {"sent": wire.SENT.write(sent_without_collectives(program, sizes, arrays, written))}
        return wire.RAN.write(execute(program, *wire.inputs(question), written))
    except Exception as error:  # XLA's own refusals, and whatever an odd artefact may lead to
        return {"raised": [type(error).__name__, str(error)[:4000]]}


ROLE = Role(main)
