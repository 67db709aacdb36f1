"""Jaxprs within jaxprs: bodies of loops, branches, maps and calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
from jax.extend import core

from grader.jax_versions import is_backward, open_jaxpr


def is_jaxpr(value: Any) -> bool:
    return isinstance(value, (core.Jaxpr, core.ClosedJaxpr))


def inner_jaxprs(eqn: core.JaxprEqn) -> list[Any]:
    """The jaxprs among an equation's parameters."""
    leaves = jax.tree.leaves(eqn.params, is_leaf=is_jaxpr)
    return [leaf for leaf in leaves if is_jaxpr(leaf)]


def equations(jaxpr: Any, *, backward: bool = False) -> Iterator[tuple[core.JaxprEqn, bool]]:
    """The equations of a jaxpr, at any depth, and whether each is of a backward pass."""
    for eqn in open_jaxpr(jaxpr).eqns:
        back = backward or is_backward(eqn)
        yield eqn, back
        for inner in inner_jaxprs(eqn):
            yield from equations(inner, backward=back)
