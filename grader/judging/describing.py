"""A case as a finding: what is shown of where a check was missed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from grader.arrays.described import PerLife, PerProcess
from grader.arrays.laid import holds_arrays
from grader.arrays.meshes import spelled
from grader.exercises.answers import Layout
from grader.exercises.case import Case
from grader.findings.cases import GivenArgument, InCase
from grader.judging.differing import SMALL_VALUE, in_one_line, short

SMALL_ARRAY = 32  # elements of an array that are still shown
FEW_ARRAYS = 4  # of one argument, that are told one by one


def describe(case: Case) -> InCase:
    """The mesh, the shape and sharding of every array, and what else is given."""
    arrays = (given for name, a in case.arguments.items() if _has_arrays(a) for given in _arrays(name, a))
    others = (_plain(name, a) for name, a in case.arguments.items() if not _has_arrays(a))
    return InCase(tuple(case.mesh.items()), (*arrays, *others), case.pod)


def _has_arrays(argument: Any) -> bool:
    return holds_arrays(argument) or any(isinstance(leaf, Layout) for leaf in jax.tree.leaves(argument))


def _arrays(name: str, argument: Any) -> Iterator[GivenArgument]:
    """The arrays of an argument; of a large pytree no more than how many there are."""
    leaves = jax.tree.leaves_with_path(argument)
    if len(leaves) > FEW_ARRAYS:
        yield GivenArgument(name, f"{len(leaves)} arrays")
        return
    for path, leaf in leaves:
        shape = leaf.shape if isinstance(leaf, Layout) else leaf.value.shape
        dtype = leaf.dtype if isinstance(leaf, Layout) else leaf.value.dtype
        text = f"{dtype}[{','.join(map(str, shape))}] {spelled(leaf.spec)}"
        yield GivenArgument(f"{name}{jax.tree_util.keystr(path)}", text)


def _plain(name: str, argument: Any) -> GivenArgument:
    """What is given besides arrays; of what differs between processes, or between the life that is killed and the next,
    and is long, what the first one is given."""
    if not isinstance(argument, (PerProcess, PerLife)):
        return GivenArgument(name, repr(_brief(argument)))
    whole, of_processes = in_one_line(list(argument.values)), isinstance(argument, PerProcess)
    if len(whole) <= SMALL_VALUE:
        return GivenArgument(name, whole, "process" if of_processes else "life")
    first = argument.values[0]
    shown = short(first.tolist() if isinstance(first, np.ndarray) else first, SMALL_VALUE)
    return GivenArgument(name, shown, "first process" if of_processes else "first life")


def _brief(argument: Any) -> Any:
    """The argument, with the dtype and the shape of each array in it that would fill a page."""
    if isinstance(argument, np.ndarray):
        return _Words(f"{argument.dtype}{list(argument.shape)}") if argument.size > SMALL_ARRAY else argument
    if type(argument) in (tuple, list):
        return type(argument)(map(_brief, argument))
    if isinstance(argument, Mapping) and type(argument) is dict:
        return {name: _brief(value) for name, value in argument.items()}
    return argument


class _Words(str):
    """Text that appears among values as it is, without quotes."""

    def __repr__(self) -> str:
        return str(self)
