"""The forms of an exercise: what an answer is, and how it is obtained from what a student wrote.

Each form is a class here and has a ladder in `grader.judging`, by which its answers are judged.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import jax
import numpy as np
from jax.sharding import AbstractMesh, Mesh

from grader.arrays.described import built, moved
from grader.arrays.meshes import abstract_mesh, aval, make_mesh, mesh_set_in_a_trace
from grader.exercises.answers import Answer, Ask, Layout, Problem, Script, Value
from grader.exercises.case import Case, Draw
from grader.exercises.own_cells import line_of_a_row, result_and_line
from grader.exercises.plain import plain
from grader.exercises.script import is_starter, script_of, untouched
from grader.programs.program import Refused, trace, with_gradient

Shapes = Sequence[tuple[int, ...]]
NOTHING = "The function returns nothing (`None`). Is a `return` missing? To print a value does not hand it back."


class Form(ABC):
    """What an answer is, what it is asked, and how its cases are drawn.

    `name` is what authors write, and what crosses the wire; `costly`: an answer takes seconds to be judged.
    """

    name: ClassVar[str]
    costly: ClassVar[bool] = False

    @abstractmethod
    def answer(self, work: Any, ask: Ask) -> Answer:
        """What the student's work answers to one ask. Raises whatever the work raises, or Refused."""

    def asked(self, case: Case) -> Mapping[str, Any]:
        """The arguments of a case that an answer is asked with."""
        return case.arguments

    def rounds(self, rng: np.random.Generator, shapes: Shapes, *, thorough: bool) -> list[Draw]:
        """What cases are drawn with; `shapes` are those of the meshes that an exercise is about."""
        return [Draw(rng)]

    def mistaken(self, cases: Sequence[Case], wrong: Callable[..., Any], right: Callable[..., Any]) -> Any:
        """The whole answer of a student who makes a mistake."""
        return wrong


class Programs(Form):
    """A function of the case's arrays (or pytrees of them) and a keyword `mesh`; it is traced, never run."""

    name, costly = "program", True

    def answer(self, work: Any, ask: Ask) -> Answer:
        _must_be_callable(work)
        mesh = abstract_mesh(ask.mesh) if ask.pod else make_mesh(ask.mesh, explicit=ask.explicit)
        avals = [_avals(a, mesh) for a in ask.arguments.values() if _laid_out(a)]
        fixed = {name: copy.deepcopy(a) for name, a in ask.arguments.items() if not _laid_out(a)}

        @functools.wraps(work)
        def finished(*arrays: Any) -> Any:
            return _something(work(*arrays, **fixed, mesh=mesh), work)

        with _whole_tracebacks(), mesh_set_in_a_trace():
            if ask.cotangents is None:
                return trace(finished, *avals, platform="tpu" if ask.pod else None)
            return trace(with_gradient(finished, len(avals)), *avals, _avals(ask.cotangents, mesh))

    def rounds(self, rng: np.random.Generator, shapes: Shapes, *, thorough: bool) -> list[Draw]:
        """Every mesh for grading, two of them for the notebook, and one with equal lengths."""
        shapes = shapes if thorough else shapes[:2]
        return [Draw(rng, shape) for shape in shapes] + [Draw(rng, shapes[0], square=True)]


class PodPrograms(Programs):
    """A program whose cases come in two kinds: small ones, which are run, and one compiled for a pod, which is not."""

    name = "pod"


class Functions(Form):
    """A function of plain Python and NumPy values, and of meshes and arrays that are on devices.

    `grader.arrays.described` says how these last are written. The function is called once per case, and must raise
    ValueError where the reference does.
    """

    name = "function"

    def answer(self, work: Any, ask: Ask) -> Answer:
        _must_be_callable(work)
        result, line = result_and_line(work, _built(ask))
        return Value(plain(_something(result, work)), moved(work, functools.partial(_built, ask), ask.barred), line)


class Timetables(Functions):
    """A function of plain numbers that returns the orders of a pipeline's devices (`grader.timetables`).

    The reference returns the timetables that an answer is held against, by their names: every next one has a smaller
    bubble, and the last says how many microbatches a device may hold.
    """

    name = "timetable"


class Tables(Form):
    """A dict from each case's `key` to the option chosen; the reference does the experiment."""

    name = "table"

    def answer(self, work: Any, ask: Ask) -> Answer:
        if not isinstance(work, Mapping):
            raise Refused(f"The answer should be a dict with a key for every row; it is a {type(work).__name__}.")
        if ask.key not in work or work[ask.key] is None or work[ask.key] is ...:
            return Problem("starter")
        return Value(_listed(plain(work[ask.key])), line=line_of_a_row(ask.key, work[ask.key]))

    def mistaken(self, cases: Sequence[Case], wrong: Callable[..., Any], right: Callable[..., Any]) -> Any:
        """Every row that the mistake is about; the others as they should be."""
        entries = {c.key: wrong(**c.arguments) for c in cases}
        return {c.key: right(**c.arguments) if entries[c.key] is None else entries[c.key] for c in cases}


class Processes(Form):
    """A function `main(process_id, num_processes, ...)` that is run in several processes at once.

    The case's mesh is `{"processes": 4, "devices": 2}`; the reference says, on one device, what each is to return.
    """

    name, costly = "processes", True

    def answer(self, work: Any, ask: Ask) -> Answer:
        _must_be_callable(work)
        source = script_of(work)
        return Problem("starter") if untouched(work) else Script(source, work.__name__)

    def asked(self, case: Case) -> Mapping[str, Any]:
        return {}  # it is only written down here


FORMS: Mapping[str, Form] = {
    form.name: form for form in (Programs(), PodPrograms(), Functions(), Timetables(), Tables(), Processes())
}


class _Unfinished(NotImplementedError):
    """The function returned nothing: the body is still the starter's."""


def _something(result: Any, work: Any) -> Any:
    """What the student's work returned. Raises _Unfinished, or Refused, where that is nothing."""
    if result is None or result is ...:
        raise _Unfinished if result is ... or is_starter(work) else Refused(NOTHING)
    return result


def _listed(value: Any) -> Any:
    """The value; an array as the lists, or the single number, that it stands for."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def _must_be_callable(work: Any) -> None:
    if not callable(work):
        raise Refused(f"The answer should be a function; it is a {type(work).__name__}.")


def _built(ask: Ask) -> dict[str, Any]:
    return built(copy.deepcopy(dict(ask.arguments)))  # a function may change what it is given


def _laid_out(argument: Any) -> bool:
    return any(isinstance(leaf, Layout) for leaf in jax.tree.leaves(argument))


def _avals(argument: Any, mesh: Mesh | AbstractMesh) -> Any:
    return jax.tree.map(lambda a: aval(a.shape, a.dtype, a.spec, mesh), argument)


@contextlib.contextmanager
def _whole_tracebacks() -> Iterator[None]:
    """Keep JAX's own frames in tracebacks, where `_operands` looks for what JAX was given."""
    before = jax.config.jax_traceback_filtering  # type: ignore[attr-defined] # jax adds its options as it goes
    jax.config.update("jax_traceback_filtering", "off")
    try:
        yield
    finally:
        jax.config.update("jax_traceback_filtering", before)
