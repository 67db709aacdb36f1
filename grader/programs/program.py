"""A student's function as a program: traced once, carried as bytes, run anywhere there are devices.

`trace` turns a function of arrays into a `Program`, an artefact of `jax.export`. Values and structure
come from the same bytes: `Program.run` executes them, `grader.programs.walk` reads them. No Python of
the function's author runs after `trace`.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
from jax import export
from jax.extend import core

from grader.findings.problems import Refusal
from grader.jax_versions import artefact, open_jaxpr, option_set, quick_options
from grader.programs.jaxprs import equations, is_jaxpr
from grader.programs.origins import Origin, origins_in

MOST_RESULTS = 500  # ten times as many as any exercise has; each takes time to compile


class Refused(Exception):
    """What a student wrote can't be judged: the finding says why."""

    def __init__(self, finding: Refusal):
        super().__init__(finding)
        self.finding = finding


@dataclass(frozen=True)
class Program:
    """A traced function as the bytes of `jax.export`: shapes, shardings and operations, no Python.

    The bytes name no place in their author's source: programs that do the same in the same order are equal. Where its
    collectives were written stands beside them in `origins`, where it was traced, and in `checked` whether shard_map
    checked there what varies.
    """

    artefact: bytes
    origins: tuple[Origin, ...] = field(default=(), compare=False, repr=False)
    checked: bool = field(default=True, compare=False, repr=False)

    @cached_property
    def exported(self) -> export.Exported:
        return export.deserialize(bytearray(self.artefact))

    @cached_property
    def results(self) -> list[tuple[str, tuple[int, ...]]]:
        """Each array of the result: where it stands in it, as [0]['weight'], and its shape."""
        tree = jax.tree.unflatten(self.exported.out_tree, self.exported.out_avals)
        return [(jax.tree_util.keystr(path), tuple(aval.shape)) for path, aval in jax.tree.leaves_with_path(tree)]

    def lower(self, *avals: Any, times: int = 1) -> jax.stages.Lowered:
        """The program's text for the devices of `avals` (arrays, or shapes with shardings), anew with every call.

        Pytrees of them may come as they are, or as their leaves one after the other. Its result is then that of the
        program; where it is to be done several `times`, the results of all, one after the other.
        """
        several = lambda *leaves: [self._call(*leaves) for _ in range(times)]  # noqa: E731
        fresh: jax.stages.Wrapped = jax.jit(several if times > 1 else lambda *leaves: self._call(*leaves))
        return fresh.lower(*jax.tree.leaves(avals))

    def compile(self, *avals: Any, once: bool = False) -> jax.stages.Compiled:
        """The program compiled for the devices of `avals`, which are as `lower` takes them.

        What is to run `once` is compiled in a third of the time: it computes and sends the same, but may need more
        memory.
        """
        return self.lower(*avals).compile(quick_options() if once else None)

    def run(self, *arrays: Any) -> Any:
        """Run on arrays of the traced shapes and layouts, as `lower` takes them; returns what the function did."""
        return jax.block_until_ready(self._jitted(*jax.tree.leaves(arrays)))

    @cached_property
    def _jitted(self) -> jax.stages.Wrapped:
        return jax.jit(self._call)

    def _call(self, *leaves: Any) -> Any:
        return self.exported.call(*jax.tree.unflatten(self.exported.in_tree, leaves)[0])


def trace(fn: Callable[..., Any], *args: Any, platform: str | None = None) -> Program:
    """Trace `fn` on `args` (arrays or `aval`s, pytrees of them) into a `Program`, for this platform or the one here.

    An argument that `fn` gives away to a function jitted inside it is one that the program may write over.
    Debug prints and debug callbacks are left out. Host callbacks raise `Refused`, as do more results than any exercise
    has, and mesh axes whose names XLA's compiler cannot read; whatever `fn` itself raises passes through.
    """
    jitted: jax.stages.Wrapped = jax.jit(_named_alike(fn))
    traced = jitted.trace(*args)
    inside = [eqn for eqn, _ in equations(traced.jaxpr)]
    names, gone = {eqn.primitive.name for eqn in inside}, _given_away(traced.jaxpr, args)
    if callbacks := sorted(name for name in names if "callback" in name and not _is_debug(name)):
        raise Refused(Refusal("calls host", tuple(callbacks)))
    if (count := len(open_jaxpr(traced.jaxpr).outvars)) > MOST_RESULTS:
        raise Refused(Refusal("many results", (f"{count:,}", str(MOST_RESULTS))))
    if odd := sorted(filter(_ends_the_compiler, _axes(inside))):
        raise Refused(Refusal("axis name", tuple(odd)))
    if gone or any(map(_is_debug, names)):
        jitted = _without_debug(traced, gone)  # which traces no line of `fn` again
    with without_places():
        if platform:
            found = bytes(export.export(jitted, platforms=[platform])(*args).serialize())
        else:
            found = artefact(jitted, args)
    return Program(found, origins_in(traced.jaxpr), all(eqn.params.get("check_vma", True) for eqn in inside))


def _given_away(jaxpr: Any, args: Sequence[Any]) -> tuple[int, ...]:
    """The numbers of the arguments of which a function gives every array away: to what is jitted so inside it."""
    given = {
        id(variable)
        for eqn in open_jaxpr(jaxpr).eqns
        for variable, gone in zip(eqn.invars, eqn.params.get("donated_invars", ()), strict=False)
        if gone
    }
    leaves = iter(open_jaxpr(jaxpr).invars)
    own = [[id(leaf) for leaf in itertools.islice(leaves, len(jax.tree.leaves(arg)))] for arg in args]
    return tuple(k for k, arrays in enumerate(own) if arrays and given.issuperset(arrays))


def with_gradient(fn: Callable[..., Any], count: int) -> Callable[..., Any]:
    """`fn`, whose first `count` arguments are followed by cotangents of its result, with its gradient for them.

    Returns (result, gradients), the gradients with the structure of the arguments; an argument without a derivative
    (whole numbers) has none. The backward pass is the program's own: what its author wrote, transposed by JAX. A result
    whose structure is not that of its cotangents comes without gradients.
    """

    def both(*args: Any) -> Any:
        result, pull_back = jax.vjp(fn, *args[:count])
        (cotangents,) = args[count:]
        if _form(result) != _form(cotangents):
            return result, None
        gradients = pull_back(cotangents)
        return result, jax.tree.map(lambda g: None if g.dtype == jax.dtypes.float0 else g, gradients)

    return both


def _form(arrays: Any) -> Any:
    """A pytree's structure, and its arrays' shapes and dtypes."""
    return jax.tree.structure(arrays), [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(arrays)]


def _named_alike(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The same function under one name for all: a program's bytes hold the name."""

    def program(*args: Any) -> Any:
        return fn(*args)

    return program


def without_places() -> contextlib.AbstractContextManager[None]:
    """Lower to operations that do not know which line of which file they stem from."""
    return option_set("jax_traceback_in_locations_limit", 0)


def _is_debug(primitive: str) -> bool:
    return primitive.startswith("debug_")


def _axes(eqns: Iterable[core.JaxprEqn]) -> set[str]:
    """The names of all mesh axes that equations name."""
    leaves = (leaf for eqn in eqns for leaf in jax.tree.leaves(eqn.params))
    meshes = (getattr(leaf, "mesh", leaf) for leaf in leaves)
    return {str(name) for mesh in meshes for name in getattr(mesh, "axis_names", ())}


def _ends_the_compiler(axis: str) -> bool:
    """Whether XLA's compiler cannot read a name back that it has written, and then ends the process it is in."""
    return not axis.isascii() or not axis.isprintable() or "\\" in axis


def _without_debug(traced: Any, gone: tuple[int, ...]) -> jax.stages.Wrapped:
    """The traced function with its debug prints and debug callbacks taken out; these arguments are given away."""
    run = core.jaxpr_as_fun(_stripped(traced.jaxpr))
    result = jax.tree.structure(traced.out_info)
    again = _named_alike(lambda *args: jax.tree.unflatten(result, run(*jax.tree.leaves(args))))
    return jax.jit(again, donate_argnums=gone)


def _stripped(jaxpr: Any) -> Any:
    if open_jaxpr(jaxpr) is not jaxpr:
        return jaxpr.replace(jaxpr=_stripped(open_jaxpr(jaxpr)))
    eqns = [_stripped_equation(eqn) for eqn in jaxpr.eqns if not _is_debug(eqn.primitive.name)]
    return jaxpr.replace(eqns=eqns, effects=_pure(jaxpr.effects))


def _stripped_equation(eqn: core.JaxprEqn) -> core.JaxprEqn:
    strip = lambda leaf: _stripped(leaf) if is_jaxpr(leaf) else leaf  # noqa: E731
    params = {k: jax.tree.map(strip, v, is_leaf=is_jaxpr) if _holds_jaxpr(v) else v for k, v in eqn.params.items()}
    return eqn.replace(params=params, effects=_pure(eqn.effects))


def _holds_jaxpr(value: Any) -> bool:
    return any(is_jaxpr(leaf) for leaf in jax.tree.leaves(value, is_leaf=is_jaxpr))


def _pure(effects: Any) -> Any:
    return type(effects)(e for e in effects if "Debug" not in type(e).__name__)
