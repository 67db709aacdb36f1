"""The student's side of a check: what is asked of an answer, and what comes back.

`collect` is the one place where a student's function is called. It is asked without values (shapes,
dtypes and layouts are enough to trace a program) and gives back `Answer`s that say everything the judge
may know: a `Program`, a `Value`, or a `Problem`. Both sides have a JSON form, so that they cross from one
process to another as text.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import functools
import inspect
import io
import math
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from grader.exercise import Case, Exercise, Form, holds_arrays
from grader.placed import HELD, Observed, OnDevices, OnMesh, PerProcess, built, observed_array, observed_mesh, uploaded
from grader.program import Program, Refused, aval, make_mesh, no_mesh, trace, with_gradient
from grader.script import script_of, untouched
from grader.sketch import Sketch


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
    return [Ask(case.mesh, _asked_of(exercise, case), case.key, case.explicit, exercise.on_devices,
                _unvalued(case.cotangents)) for case in cases]


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
    inside = calls[written[-1] + 1:] if written else []
    return next((found for frame in inside if (found := _array_types(frame))), ())


def _belongs_to_a_library(frame: types.FrameType) -> bool:
    path = frame.f_code.co_filename
    return "site-packages" in path or "functools.py" in path or path == __file__ or path == trace.__code__.co_filename


def _array_types(frame: types.FrameType) -> tuple[str, ...]:
    code = frame.f_code
    count = code.co_argcount + bool(code.co_flags & inspect.CO_VARARGS)
    given = jax.tree.leaves([frame.f_locals.get(name) for name in code.co_varnames[:count]])
    return tuple(f"{x.dtype}[{','.join(map(str, x.shape))}]" for x in given
                 if isinstance(getattr(x, "shape", None), tuple) and hasattr(x, "dtype"))


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


def plain(value: Any) -> Any:
    """The value in types that cross the wire; refuses what has no such form."""
    if value is None or isinstance(value, (bool, int, float, str)):  # None: an entry of a spec
        return value
    if isinstance(value, Mesh):
        return observed_mesh(value)
    if isinstance(value, jax.Array):
        return observed_array(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, P):
        return tuple(entry if entry is None else plain(entry) for entry in value)
    if isinstance(value, slice):
        return _spelled(value)
    if isinstance(value, Observed):
        return value
    if isinstance(value, Mapping):
        if HELD in value:
            raise Refused(f"The answer holds a dict with the key {HELD!r}, which has a meaning of its own here.")
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value))
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise Refused(f"The answer holds a {type(value).__name__}, which is neither a number, text nor array.")
    return array


def _spelled(part: slice) -> str:
    """A slice as it stands between brackets: 0:4, or : for all."""
    ends = [part.start, part.stop, *([] if part.step in (None, 1) else [part.step])]
    return ":".join("" if end is None else str(end) for end in ends)


# JSON forms: plain types only, so that reading one can build nothing but these.


def to_json(value: Any) -> Any:
    """An ask, an answer, or a plain value as JSON types."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case Program():
            return {"program": base64.b64encode(value.artefact).decode()}
        case Value():
            return {"uploaded": [value.uploaded, to_json(value.value)]} if value.uploaded else {
                "value": to_json(value.value)}
        case Script():
            return {"script": [value.source, value.main]}
        case Problem():
            return {"problem": [value.kind, value.error, value.message, *value.operands]}
        case Ask():
            return {"ask": [to_json(dict(value.mesh)), to_json(dict(value.arguments)), value.key, value.explicit,
                            value.on_devices, to_json(value.cotangents)]}
        case P():  # a tuple on an older JAX
            return {"spec": to_json([*value])}
        case OnMesh():
            return {"mesh": [to_json(dict(value.sizes)), value.explicit, list(value.order)]}
        case OnDevices():
            return {"laid": [to_json(value.value), to_json(value.mesh), to_json(tuple(value.spec)),
                             [[k, to_json(block)] for k, block in value.instead.items()], value.memory]}
        case PerProcess():
            return {"each": to_json(list(value.values))}
        case Sketch():
            return {"sketch": [to_json(dict(value.sizes)), to_json(value.block), to_json(value.steps), value.checked]}
        case Layout():
            return {"layout": [list(value.shape), value.dtype, to_json(tuple(value.spec))]}
        case Mapping():
            return {"dict": [[k, to_json(v)] for k, v in value.items()]}
        case list():
            return [to_json(v) for v in value]
        case tuple():
            return {"tuple": [to_json(v) for v in value]}
        case np.ndarray() | np.generic() if value.dtype.kind == "V":  # bfloat16, which NumPy's files do not know
            return {"cast": [str(value.dtype), to_json(value.astype(np.float32))]}
        case np.ndarray() | np.generic():
            file = io.BytesIO()
            np.save(file, value, allow_pickle=False)
            return {"array": base64.b64encode(file.getvalue()).decode()}
    raise TypeError(f"a {type(value).__name__} does not cross the wire")


def _legible(said: Any) -> str:
    """A text without characters that steer a terminal, or are none."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in str(said))


def from_json(data: Any) -> Any:
    """The inverse of `to_json`. Raises ValueError for anything that `to_json` did not write."""
    if isinstance(data, list):
        return [from_json(v) for v in data]
    if not isinstance(data, dict):
        return data
    if len(data) != 1:
        raise ValueError("a record on the wire has exactly one key")
    ((kind, body),) = data.items()
    try:
        return _READERS[kind](body)
    except (KeyError, TypeError, AttributeError, EOFError) as error:
        raise ValueError(f"not a record of this wire: {kind!r}") from error


_READERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "program": lambda b: Program(base64.b64decode(b, validate=True)),
    "value": lambda b: Value(from_json(b)),
    "script": lambda b: Script(str(b[0]), str(b[1])),
    "problem": lambda b: Problem(*map(_legible, b[:3]), tuple(map(_legible, b[3:]))),
    "uploaded": lambda b: Value(from_json(b[1]), _legible(b[0])),
    "ask": lambda b: Ask(from_json(b[0]), from_json(b[1]), str(b[2]), bool(b[3]), bool(b[4]), from_json(b[5])),
    "mesh": lambda b: OnMesh(from_json(b[0]), bool(b[1]), tuple(map(int, b[2]))),
    "laid": lambda b: OnDevices(from_json(b[0]), from_json(b[1]), P(*from_json(b[2])),
                                {int(k): from_json(block) for k, block in b[3]}, str(b[4])),
    "each": lambda b: PerProcess(tuple(map(from_json, b))),
    "sketch": lambda b: Sketch(from_json(b[0]), from_json(b[1]), from_json(b[2]), bool(b[3])),
    "spec": lambda b: P(*from_json(b)),
    "layout": lambda b: Layout(tuple(map(int, b[0])), str(b[1]), P(*from_json(b[2]))),
    "dict": lambda b: {str(k): from_json(v) for k, v in b},
    "tuple": lambda b: tuple(map(from_json, b)),
    "cast": lambda b: from_json(b[1]).astype(np.dtype(str(b[0]))),
    "array": lambda b: np.load(io.BytesIO(base64.b64decode(b, validate=True)), allow_pickle=False),
}
