"""A function as a script: text that other processes can run, with all that it needs and nothing else.

Processes share no memory. A function that is to run in several of them goes there as text: its own source,
that of the functions it calls, and the imports it uses. An array or a mesh that it only finds around it
cannot go along: every process has to make its own.
"""

from __future__ import annotations

import ast
import inspect
import keyword
import math
import symtable
import textwrap
import types
from collections.abc import Mapping
from typing import Any

from jax.sharding import PartitionSpec

from grader.findings.problems import Refusal
from grader.jax_versions import public_module
from grader.programs.program import Refused

SPEC_IMPORT = "from jax.sharding import PartitionSpec, PartitionSpec as P\n"  # what their representation needs
PLAIN = (int, float, complex, str, bytes, bool, type(None))


def script_of(fn: Any) -> str:
    """The text that defines `fn` under its own name, with everything it refers to.

    Comments and decorators are left out. Raises Refused for what cannot be written down.
    """
    written: dict[str, str] = {}
    _write(fn, written)
    return "\n\n".join(written.values()) + "\n"


def untouched(fn: types.FunctionType) -> bool:
    """Whether nothing stands in the function but the `...` of the starter."""
    return _says_nothing(_definition(fn))


def is_starter(fn: Any) -> bool:
    """Whether a `...` of the starter still stands where something is due, or nothing else stands in the function."""
    try:
        tree = _definition(inspect.unwrap(fn))
    except Refused:
        return False  # a lambda, or something that was made of a function
    left = (n.value for n in ast.walk(tree) if isinstance(n, (ast.Expr, ast.Assign, ast.Return)))
    return _says_nothing(tree) or any(isinstance(value, ast.Constant) and value.value is ... for value in left)


def _says_nothing(tree: ast.FunctionDef) -> bool:
    return all(isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) for line in tree.body)


def _write(fn: types.FunctionType, written: dict[str, str]) -> None:
    """Add the definition of a function, behind those of all that it refers to."""
    tree = _definition(fn)
    written[fn.__name__] = ""  # it may call itself
    if fn.__closure__:
        raise Refused(Refusal("uses enclosing", (fn.__name__, *fn.__code__.co_freevars)))
    for name in sorted(names_read(ast.unparse(tree))):
        if name in fn.__globals__ and name not in written:
            _write_value(name, fn.__globals__[name], fn, written)
    text = written.pop(fn.__name__)
    written[fn.__name__] = text + ast.unparse(tree)


def _definition(fn: Any) -> ast.FunctionDef:
    if not isinstance(fn, types.FunctionType):
        raise Refused(Refusal("no def", (type(fn).__name__,)))
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(fn))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        raise Refused(Refusal("no source", (fn.__name__,))) from None
    if not isinstance(tree, ast.FunctionDef):
        raise Refused(Refusal("no source", (fn.__name__,)))
    tree.decorator_list = []
    return tree


def names_read(source: str) -> set[str]:
    """The names that a statement takes from around it: a function's own variables may share names with those there."""
    around = symtable.symtable(source, "<statement>", "exec")
    return {s.get_name() for s in around.get_symbols() if s.is_referenced()} | _globals_inside(around)


def _globals_inside(table: symtable.SymbolTable) -> set[str]:
    children = table.get_children()
    here = {s.get_name() for child in children for s in child.get_symbols() if s.is_global()}
    return here.union(*map(_globals_inside, children))


def _write_value(name: str, value: Any, user: types.FunctionType, written: dict[str, str]) -> None:
    """Add what makes `name` mean the same elsewhere."""
    if isinstance(value, types.ModuleType):
        written[name] = f"import {value.__name__} as {name}"
    elif isinstance(value, types.FunctionType) and _goes_along(value.__module__, user.__module__):
        if value.__name__ != name:
            raise Refused(Refusal("uses alias", (user.__name__, name, value.__name__)))
        _write(value, written)
    elif (place := _importable(value)) is not None:
        written[name] = f"from {place[0]} import {place[1]} as {name}"
    elif _writable(value):
        written[name] = f"{SPEC_IMPORT if _has_specs(value) else ''}{name} = {value!r}"
    else:
        raise Refused(Refusal("uses notebook", (user.__name__, name, type(value).__name__)))


def _goes_along(module: str, users: str) -> bool:
    """Whether a function of this module goes along as text: one beside its user, or of a lesson, which is withheld
    where hand-ins are graded."""
    return module in ("__main__", users) or module.startswith("grader.lessons.")


def _importable(value: Any) -> tuple[str, str] | None:
    """The module and the name by which a function or class can be imported anywhere."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", "")
    if not module or module == "__main__" or not name.isidentifier() or keyword.iskeyword(name):
        return None
    for place in (public_module(module), module):
        try:
            if getattr(__import__(place, fromlist=[name]), name, None) is value:
                return place, name
        except ImportError:
            continue
    return None


def _has_specs(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_specs, value.values()))
    return isinstance(value, PartitionSpec) or (isinstance(value, (list, tuple)) and any(map(_has_specs, value)))


def _writable(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, PartitionSpec):
        return all(map(_writable, tuple(value)))
    if isinstance(value, (list, tuple, set)):
        return type(value) in (list, tuple, set) and all(map(_writable, value))
    if isinstance(value, Mapping):
        return type(value) is dict and all(_writable(k) and _writable(v) for k, v in value.items())
    return type(value) in PLAIN
