"""Jaxprs within jaxprs: bodies of loops, branches, maps and calls."""

from __future__ import annotations

from typing import Any

import jax
from jax.extend import core


def is_jaxpr(value: Any) -> bool:
    return isinstance(value, (core.Jaxpr, core.ClosedJaxpr))


def inner_jaxprs(eqn: core.JaxprEqn) -> list[Any]:
    """The jaxprs among an equation's parameters."""
    leaves = jax.tree.leaves(eqn.params, is_leaf=is_jaxpr)
    return [leaf for leaf in leaves if is_jaxpr(leaf)]
