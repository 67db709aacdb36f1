"""The student's side of a check: `collect` is the one place where what a student wrote is called."""

from __future__ import annotations

import inspect
import itertools
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType, TracebackType
from typing import Any

import jax

from grader.arrays.meshes import no_mesh
from grader.exercises.answers import Answer, Ask, Problem
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise
from grader.exercises.forms import FORMS
from grader.jax_versions import Spot, one_mlir_context
from grader.programs.origins import line_of_a_cell
from grader.programs.program import Refused, trace

# The files through which a student's code is called: they are none of its own.
CALLED_THROUGH = (__file__, *map(inspect.getfile, FORMS.values()), trace.__code__.co_filename)


def asks(exercise: Exercise, cases: Sequence[Case]) -> list[Ask]:
    """What the cases of an exercise ask, in their order."""
    return [exercise.ask(case) for case in cases]


def collect(form: str, questions: Sequence[Ask], work: Any) -> list[Answer]:
    """Put each ask to what the student wrote. Never raises for what the student's code does."""
    if work is ... or work is None:
        return [Problem("starter")] * len(questions)
    with no_mesh(), one_mlir_context():
        return [_guarded(FORMS[form], work, ask) for ask in questions]


def _guarded(form: type[Exercise], work: Any, ask: Ask) -> Answer:
    try:
        return form.answer(work, ask)
    except Refused as refusal:
        return Problem("refused", refusal=refusal.finding)
    except NotImplementedError as error:
        return replace(as_problem(error), operands=()) if str(error) else Problem("starter")
    except Exception as error:  # whatever a student's code may raise
        return as_problem(error)


def as_problem(error: Exception) -> Problem:
    """What an error of the student's code comes to, as it is caught."""
    trace_back = error.__traceback__
    line = line_of_a_cell(_spots(trace_back))
    return Problem("error", _known_name(type(error)), str(error)[:4000], _operands(trace_back), line)


def _known_name(kind: type[BaseException]) -> str:
    """The name of a kind of error; of one that a student made, that of the kind which it is made of."""
    return next(base.__name__ for base in kind.__mro__ if _is_a_librarys(base))


def _is_a_librarys(kind: type) -> bool:
    """Whether a module has it, and not only a notebook."""
    module = sys.modules.get(kind.__module__)
    return kind.__module__ != "__main__" and getattr(module, kind.__name__, None) is kind


def _operands(trace_back: TracebackType | None) -> tuple[str, ...]:
    """The types of the arrays in the deepest call from the student's code into JAX, as `float32[4,8]`."""
    calls = [frame for frame, _ in traceback.walk_tb(trace_back)]
    written = [k for k, frame in enumerate(calls) if not _belongs_to_a_library(frame)]
    inside = calls[written[-1] + 1 :] if written else []
    return next((types for frame in inside if (types := _array_types(frame))), ())


def _spots(trace_back: TracebackType | None) -> list[Spot]:
    """What was under way, the innermost first."""
    steps: list[Spot] = []
    while trace_back is not None:
        code, number = trace_back.tb_frame.f_code, trace_back.tb_lineno
        first, last, start, end = next(itertools.islice(code.co_positions(), trace_back.tb_lasti // 2, None))
        columns = (start or 0, last or number, end or 0) if first == number else (0, number, 0)
        steps.append(Spot(code.co_filename, code.co_name, number, *columns))
        trace_back = trace_back.tb_next
    return steps[::-1]


def _belongs_to_a_library(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    return "site-packages" in path or "functools.py" in path or path in CALLED_THROUGH


def _array_types(frame: FrameType) -> tuple[str, ...]:
    code = frame.f_code
    count = code.co_argcount + bool(code.co_flags & inspect.CO_VARARGS)
    arguments = jax.tree.leaves([frame.f_locals.get(name) for name in code.co_varnames[:count]])
    return tuple(
        f"{x.dtype}[{','.join(map(str, x.shape))}]"
        for x in arguments
        if isinstance(getattr(x, "shape", None), tuple) and hasattr(x, "dtype")
    )
