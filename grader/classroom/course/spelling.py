"""Names that nobody outside a function can see. Cells that differ in nothing else are one program, and run once."""

from __future__ import annotations

import ast
import functools
import json
import re
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from grader.classroom.course.cells import Cell, CellText

# What looks at names, and what of a frame or of code does.
LOOKING = {
    *("dir", "locals", "globals", "vars", "eval", "exec", "compile", "sys", "inspect", "traceback", "gc", "help"),
    *("breakpoint", "get_ipython", "__import__"),
}
OF_A_FRAME = ("__", "_getframe", "f_", "co_", "gi_", "cr_", "ag_", "tb_")
_LIBRARIES = ("jax", "lax", "jnp", "functools")  # what these are given is called, and not shown
# A word in JSON; or a colour of a terminal or an escaped character, which is no part of the word behind it.
_WORD = r"\\u001b\[[\d;]*m|\\u[\da-f]{4}|\\.|\w+"


@dataclass(frozen=True)
class Spelling:
    """A cell's text with the names inside its functions numbered, and what its author calls each of them."""

    plain: str
    names: Mapping[str, str] = field(default_factory=dict)


def spelling_of(cell: Cell, text: CellText) -> Spelling:
    """The text of a cell as it is run: without comments and spacing, and with numbers in a student's own functions.

    What a function assigns and defines has a number there in place of its name. Parameters keep theirs, by which a
    caller may name them. A function stays as it is where something else in it may go by names.
    """
    return Spelling(text.plain) if cell.example else _numbered(text)


@functools.lru_cache(maxsize=256)
def _numbered(text: CellText) -> Spelling:
    tree = ast.parse(text.plain)
    tables = symtable.symtable(text.plain, "cell", "exec").get_children()
    names: dict[str, str] = {}
    for function in (statement for statement in tree.body if isinstance(statement, ast.FunctionDef)):
        own = [table for table in tables if table.get_name() == function.name]
        if len(own) != 1 or f"{function.name}_" in text.plain or _goes_by_names(function):
            continue
        hidden = _hidden_names(function, own[0])
        numbered = {name: f"{function.name}_{number}" for number, name in enumerate(hidden)}
        names |= {number: name for name, number in numbered.items()}
        function.body = [Renamed(numbered).visit(statement) for statement in function.body]
    return Spelling(ast.unparse(tree), names) if names else Spelling(text.plain)


def as_spelled(message: Any, names: Mapping[str, str]) -> Any:
    """A JSON value with the author's own names in all its texts."""
    text = json.dumps(message, ensure_ascii=False) if names else ""
    if not any(name in text for name in names):
        return message
    return json.loads(re.sub(_WORD, lambda match: names.get(match[0], match[0]), text))


def _goes_by_names(function: ast.FunctionDef) -> bool:
    """Whether there is more in a function than these rules know: a class, names of an outer scope, Python's own."""
    strange = (ast.ClassDef, ast.AsyncFunctionDef, ast.Global, ast.Nonlocal, ast.Match, ast.ExceptHandler)
    nodes = list(ast.walk(function))
    attributes = (node.attr for node in nodes if isinstance(node, ast.Attribute))
    return (
        any(isinstance(node, strange) for node in nodes)
        or any(isinstance(node, ast.Name) and node.id in LOOKING for node in nodes)
        or any(name.startswith(OF_A_FRAME) for name in attributes)
    )


def _shown(function: ast.FunctionDef) -> set[str]:
    """The functions inside one whose names can be seen, since more is done with them than to call them."""
    nodes = list(ast.walk(function))
    called = set[int]()
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        called.add(id(call.func))
        if ast.unparse(call.func).split(".")[0] in _LIBRARIES:
            called |= set(map(id, call.args))
    loaded = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in called}
    return loaded & {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def _hidden_names(function: ast.FunctionDef, table: symtable.SymbolTable) -> list[str]:
    """What a function and those inside it assign and define, in order; nothing that is a parameter, is imported, or
    means something from outside anywhere in it."""
    symbols = [symbol for each in _tables(table) for symbol in each.get_symbols()]
    seen = {s.get_name() for s in symbols if s.is_parameter() or s.is_imported() or s.is_global()} | _shown(function)
    bound = (_bound(node) for statement in function.body for node in ast.walk(statement))
    return list(dict.fromkeys(name for name in bound if name and name not in seen and not name.startswith("__")))


def _bound(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name):
            return name
    return ""


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


class Renamed(ast.NodeTransformer):
    """Gives variables, and functions that are defined, other names."""

    def __init__(self, names: Mapping[str, str]):
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.name = self.names.get(node.name, node.name)
        return node
