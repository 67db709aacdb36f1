"""What of a solution must not stand anywhere that students see: its lines, and its programs under any names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from textwrap import dedent

from nbformat import NotebookNode

MANY_DEVICES = re.compile(
    r"psum|pmean|ppermute|all_gather|all_to_all|shard_map|auto_axes|reshard|device_put|sharding_constraint|out_shardings"
)


def solution_blocks(cells: Iterable[NotebookNode]) -> list[str]:
    """What stands between BEGIN SOLUTION and END SOLUTION."""
    between = re.compile(r"### BEGIN SOLUTION\n(.*?)\n\s*### END SOLUTION", re.DOTALL)
    return [dedent(block) for cell in cells for block in between.findall(cell.source)]


def solution_lines(cells: Iterable[NotebookNode]) -> list[str]:
    """Every line of the solutions that says something of its own."""
    lines = "\n".join(solution_blocks(cells)).splitlines()
    return [line.strip() for line in lines if len(line.strip()) >= 36]


def passages(source: str) -> dict[str, str]:
    """Each definition, and each two statements in a row, that have to do with many devices, as they read: by what
    they are without their names, docstrings and annotations.

    (What one device computes a reference may well compute in the same words.)
    """
    bodies = [_without_docstring(body) for body in map(_body, ast.walk(ast.parse(source))) if body]
    definitions = [(s,) for body in bodies for s in body if isinstance(s, ast.FunctionDef)]
    texts = ("\n".join(map(ast.unparse, passage)) for passage in definitions + _pairs(bodies))
    return {_nameless(text): text for text in texts if MANY_DEVICES.search(text)}


def _pairs(bodies: Iterable[Sequence[ast.stmt]]) -> list[tuple[ast.stmt, ...]]:
    return [pair for body in bodies for pair in pairwise(body)]


def _body(node: ast.AST) -> list[ast.stmt]:
    body = getattr(node, "body", [])
    return body if isinstance(body, list) else []  # a lambda's is an expression


def _without_docstring(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    return [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]


def _nameless(text: str) -> str:
    return ast.dump(_Nameless().visit(ast.parse(text)))


class _Nameless(ast.NodeTransformer):
    """Names are numbered in the order in which they come."""

    def __init__(self) -> None:
        self.numbers: dict[str, str] = {}

    def _number(self, name: str) -> str:
        return self.numbers.setdefault(name, str(len(self.numbers)))

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._number(node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self._number(node.arg))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name, node.returns, node.body = self._number(node.name), None, _without_docstring(node.body)
        return self.generic_visit(node)
