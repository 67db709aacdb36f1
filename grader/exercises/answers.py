"""The student's side of a check: what is asked of an answer, and what comes back.

`collect` is the one place where a student's function is called. It is asked without values (shapes,
dtypes and layouts are enough to trace a program) and gives back `Answer`s that say everything the judge
may know: a `Program`, a `Value`, or a `Problem`. Both sides have a JSON form, so that they cross from one
process to another as text.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from grader.arrays.described import (
    built,
    uploaded,
)
from grader.arrays.laid import holds_arrays
from grader.arrays.meshes import aval, make_mesh, no_mesh
from grader.exercises.exercise import Case, Exercise, Form
from grader.exercises.plain import plain
from grader.exercises.script import script_of, untouched
from grader.programs.program import Program, Refused, trace, with_gradient


@dataclass(frozen=True)
class Layout:
    """An array argument without its values."""

    shape: tuple[int, ...]
    dtype: str
    spec: P


@dataclass(frozen=True)
class Ask:
    """What a case asks of an answer. The values of a program's arrays are not among it.

    Where there are `cotangents`, the gradient for them is asked for, too.
    """

    mesh: Mapping[str, int]
    arguments: Mapping[str, Any]
    key: str = ""
    explicit: bool = False
    on_devices: bool = False
    cotangents: Any = None


@dataclass(frozen=True)
class Value:
    """A plain result: numbers, strings, NumPy arrays, and lists, tuples and dicts of them.

    `uploaded` is the type of an array that came up from the host on the way, if that was looked for.
    """

    value: Any
    uploaded: str = ""


@dataclass(frozen=True)
class Problem:
    """No answer, and why.

    `kind`: "missing" (the name does not exist), "starter" (still the `...` of the starter), "error"
    (it raised `error` with `message`, while JAX was given arrays of the types `operands`), "refused"
    (`message` says why it cannot be judged).
    """

    kind: Literal["missing", "starter", "error", "refused"]
    error: str = ""
    message: str = ""
    operands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Script:
    """A function as text, to be run in several processes: `main` is its name."""

    source: str
    main: str


Answer = Program | Value | Problem | Script


def asks(exercise: Exercise, cases: Sequence[Case]) -> list[Ask]:
    """What the cases of an exercise ask, in their order."""
    return [
        Ask(
            case.mesh,
            _asked_of(exercise, case),
            case.key,
            case.explicit,
            exercise.on_devices,
            _unvalued(case.cotangents),
        )
        for case in cases
    ]


def _asked_of(exercise: Exercise, case: Case) -> dict[str, Any]:
    """What an answer is asked with. One that runs in several processes is only written down here."""
    if exercise.form == "processes":
        return {}
    return {name: _unvalued(argument) for name, argument in case.arguments.items()}


def _unvalued(argument: Any) -> Any:
    if not holds_arrays(argument):
        return argument
    return jax.tree.map(lambda a: Layout(a.value.shape, str(a.value.dtype), a.spec), argument)


def collect(form: Form, asked: Sequence[Ask], given: Any) -> list[Answer]:
    """Put each ask to what the student wrote. Never raises for what the student's code does."""
    if given is ... or given is None:
        return [Problem("starter")] * len(asked)
    one = {"program": _program, "function": _function, "table": _entry, "processes": _script}[form]
    with no_mesh():
        return [_guarded(one, given, ask) for ask in asked]


def _guarded(one: Callable[[Any, Ask], Answer], given: Any, ask: Ask) -> Answer:
    try:
        return one(given, ask)
    except Refused as refusal:
        return Problem("refused", message=str(refusal))
    except NotImplementedError as error:
        return Problem("error", "NotImplementedError", str(error)) if str(error) else Problem("starter")
    except Exception as error:  # whatever a student's code may raise
        return Problem("error", type(error).__name__, str(error)[:4000], _operands(error.__traceback__))


def _operands(trace_back: types.TracebackType | None) -> tuple[str, ...]:
    """The types of the arrays in the deepest call from the student's code into JAX, as `float32[4,8]`."""
    calls = [frame for frame, _ in traceback.walk_tb(trace_back)]
    written = [k for k, frame in enumerate(calls) if not _belongs_to_a_library(frame)]
    inside = calls[written[-1] + 1 :] if written else []
    return next((found for frame in inside if (found := _array_types(frame))), ())


def _belongs_to_a_library(frame: types.FrameType) -> bool:
    path = frame.f_code.co_filename
    return "site-packages" in path or "functools.py" in path or path == __file__ or path == trace.__code__.co_filename


def _array_types(frame: types.FrameType) -> tuple[str, ...]:
    code = frame.f_code
    count = code.co_argcount + bool(code.co_flags & inspect.CO_VARARGS)
    given = jax.tree.leaves([frame.f_locals.get(name) for name in code.co_varnames[:count]])
    return tuple(
        f"{x.dtype}[{','.join(map(str, x.shape))}]"
        for x in given
        if isinstance(getattr(x, "shape", None), tuple) and hasattr(x, "dtype")
    )


class _Unfinished(NotImplementedError):
    """The function returned nothing: the body is still the starter's."""


def _program(given: Any, ask: Ask) -> Answer:
    _must_be_callable(given)
    mesh = make_mesh(ask.mesh, explicit=ask.explicit)
    avals = [_avals(a, mesh) for a in ask.arguments.values() if _laid_out(a)]
    fixed = {name: copy.deepcopy(a) for name, a in ask.arguments.items() if not _laid_out(a)}

    @functools.wraps(given)
    def finished(*arrays: Any) -> Any:
        result = given(*arrays, **fixed, mesh=mesh)
        if result is None or result is ...:
            raise _Unfinished
        return result

    with _whole_tracebacks():
        if ask.cotangents is None:
            return trace(finished, *avals)
        return trace(with_gradient(finished, len(avals)), *avals, _avals(ask.cotangents, mesh))


def _laid_out(argument: Any) -> bool:
    return any(isinstance(leaf, Layout) for leaf in jax.tree.leaves(argument))


def _avals(argument: Any, mesh: Mesh) -> Any:
    return jax.tree.map(lambda a: aval(a.shape, a.dtype, a.spec, mesh), argument)


@contextlib.contextmanager
def _whole_tracebacks() -> Iterator[None]:
    """Keep JAX's own frames in tracebacks, where `_operands` looks for what JAX was given."""
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    try:
        yield
    finally:
        jax.config.update("jax_traceback_filtering", before)


def _function(given: Any, ask: Ask) -> Answer:
    _must_be_callable(given)
    result = given(**_built(ask))
    if result is None or result is ...:
        return Problem("starter")
    return Value(plain(result), uploaded(functools.partial(given, **_built(ask))) if ask.on_devices else "")


def _built(ask: Ask) -> dict[str, Any]:
    return built(copy.deepcopy(dict(ask.arguments)))  # a function may change what it is given


def _script(given: Any, ask: Ask) -> Answer:
    _must_be_callable(given)
    source = script_of(given)
    return Problem("starter") if untouched(given) else Script(source, given.__name__)


def _entry(given: Any, ask: Ask) -> Answer:
    if not isinstance(given, Mapping):
        raise Refused(f"The answer should be a dict with a key for every row; it is a {type(given).__name__}.")
    if ask.key not in given or given[ask.key] is None or given[ask.key] is ...:
        return Problem("starter")
    return Value(plain(given[ask.key]))


def _must_be_callable(given: Any) -> None:
    if not callable(given):
        raise Refused(f"The answer should be a function; it is a {type(given).__name__}.")


# JSON forms: plain types only, so that reading one can build nothing but these.
