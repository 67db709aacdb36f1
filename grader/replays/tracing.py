"""A program as JAX traces it; what JAX refuses is raised with its meaning, and with the author's own lines only."""

from __future__ import annotations

import contextlib
import functools
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import jax
import numpy as np

import grader
from grader.exercises.collecting import as_problem
from grader.exercises.errors import meaning

LIBRARIES = (*jax.__path__, *grader.__path__)


@dataclass(frozen=True)
class Traced:
    """A jaxpr, the arrays that it is given, and how its results are put together."""

    jaxpr: Any
    given: Sequence[Any]
    result: Callable[[Sequence[Any]], Any]


def traced(fn: Callable[..., Any], args: Sequence[Any], kw: Mapping[str, Any]) -> Traced:
    """`fn(*args, **kw)`, traced once. Raises whatever `fn` raises, with a note on what it means."""
    arrays = [k for k, argument in enumerate(args) if _holds_numbers(argument)]

    @functools.wraps(fn)  # JAX's errors speak of `fn`
    def of_arrays(*given: Any) -> Any:
        every = list(args)
        for k, argument in zip(arrays, given, strict=True):
            every[k] = argument
        try:
            return fn(*every, **kw)
        except Exception as error:  # here, while JAX's own lines are there: they say whether JAX was given arrays
            if found := meaning(as_problem(error)):
                with contextlib.suppress(ModuleNotFoundError):  # where hand-ins run, there are no words
                    from grader.wording.errors import error_words

                    error.add_note(f"\n{error_words(found)}\n")
            raise

    given = [args[k] for k in arrays]
    jaxpr, shapes = jax.make_jaxpr(of_arrays, return_shape=True)(*given)
    return Traced(jaxpr, jax.tree.leaves(given), functools.partial(jax.tree.unflatten, jax.tree.structure(shapes)))


def _holds_numbers(argument: Any) -> bool:
    """Whether an argument is traced: arrays, or a pytree of them. Meshes, plain numbers and options are not."""
    return any(isinstance(leaf, (jax.Array, np.ndarray)) for leaf in jax.tree.leaves(argument))


class AuthorsLines:
    """What tracing raises leaves this block without the libraries' lines above the author's.

    Any other error leaves it as it is. A class, since a generator's context manager would add a line of its own.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, lines: TracebackType | None) -> None:
        if error and any(frame.f_code is traced.__code__ for frame, _ in traceback.walk_tb(lines)):
            while lines and lines.tb_frame.f_code.co_filename.startswith(LIBRARIES):
                lines = lines.tb_next
            error.__traceback__ = lines
