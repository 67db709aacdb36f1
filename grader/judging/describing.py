"""A case in a line: what a student is told of where a check was missed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from grader.arrays.described import PerLife, PerProcess
from grader.arrays.laid import holds_arrays
from grader.arrays.meshes import spelled
from grader.exercises.case import Case
from grader.judging.differing import SMALL_VALUE, in_one_line, short

SMALL_ARRAY = 32  # numbers of an array that are still shown


def describe(case: Case) -> str:
    """A case in one line: the mesh, every array's shape and layout, and what else is given."""
    mesh = " × ".join(f"{name}={size}" for name, size in case.mesh.items())
    arrays = [
        f"{name}{place}: {words}"
        for name, argument in case.arguments.items()
        if holds_arrays(argument)
        for place, words in _leaves(argument)
    ]
    others = [_given(name, a) for name, a in case.arguments.items() if not holds_arrays(a)]
    return "; ".join(filter(None, [f"mesh {mesh}" if mesh else "", *arrays, *others]))


def _leaves(argument: Any) -> Iterator[tuple[str, str]]:
    """Where the arrays of a pytree stand, and what they are: those that differ in their first key alone together."""
    alike: dict[tuple[str, str], list[str]] = {}
    for path, a in jax.tree.leaves_with_path(argument):
        words = f"{'×'.join(map(str, a.value.shape)) or 'a number'} {spelled(a.spec)}"
        alike.setdefault((jax.tree_util.keystr(path[1:]), words), []).append(jax.tree_util.keystr(path[:1]))
    for (inside, words), first in alike.items():
        yield f"{_joined(first)}{inside}", words


def _joined(keys: Sequence[str]) -> str:
    """Keys as they are written behind an object, in one pair of brackets."""
    return f"[{', '.join(key.removeprefix('[').removesuffix(']') for key in keys)}]" if len(keys) > 1 else keys[0]


def _given(name: str, argument: Any) -> str:
    """What is given besides arrays; of what differs from process to process, or between a life that is killed and the
    next, and is long, what the first is given."""
    if not isinstance(argument, (PerProcess, PerLife)):
        return f"{name}={_brief(argument)!r}"
    count = len(argument.values)
    whole = in_one_line(list(argument.values))
    if len(whole) <= SMALL_VALUE:
        return (
            f"{name} of {f'processes 0 to {count - 1}' if isinstance(argument, PerProcess) else 'both lives'}: {whole}"
        )
    first = f"process 0, the first of {count}" if isinstance(argument, PerProcess) else "the first life"
    return f"{name} of {first}: {short(_listed(argument.values[0]), SMALL_VALUE)}"


def _brief(argument: Any) -> Any:
    """The argument, with the dtype and the shape of each array in it that would fill a page."""
    if isinstance(argument, np.ndarray):
        return _Words(f"{argument.dtype}{list(argument.shape)}") if argument.size > SMALL_ARRAY else argument
    if type(argument) in (tuple, list):
        return type(argument)(map(_brief, argument))
    return {name: _brief(value) for name, value in argument.items()} if type(argument) is dict else argument


class _Words(str):
    """Text that stands among values as it is, without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value
