"""The author's own lines: which of them are shown, and what they call what they make."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from grader.exercises.own_cells import parsed_cell
from grader.jax_versions import Spot
from grader.replays.frames import Excerpt, Frame

MOST_LINES = 90  # lines of one excerpt; of a longer function, what is around the lines that are done
AROUND = 4


def excerpts(places: Iterable[Spot]) -> tuple[Excerpt, ...]:
    """What is shown of each source: the whole functions in which these places lie."""
    lines: dict[str, set[int]] = {}
    for place in places:
        lines.setdefault(place.file, set()).add(place.first)
    return tuple(excerpt for file, touched in lines.items() for excerpt in _of_file(file, sorted(touched)))


def _of_file(file: str, touched: Sequence[int]) -> Iterator[Excerpt]:
    spans = sorted({_span(file, line) for line in touched})
    merged: list[tuple[int, int]] = []
    for first, last in spans:
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    source = linecache.getlines(file)
    for first, last in merged:
        lines = [line.rstrip("\n") for line in source[first - 1 : last]]
        if lines:
            indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
            yield Excerpt(file, first, tuple(line[indent:] for line in lines), indent)


def _span(file: str, line: int) -> tuple[int, int]:
    """The outermost function around a line, with its decorators; else its statement; of a long one, a part."""
    around = [node for node in _statements(file) if node.lineno <= line <= (node.end_lineno or line)]
    functions = [node for node in around if isinstance(node, ast.FunctionDef)]
    node = (functions or around or [None])[0]
    if node is None:
        return max(1, line - AROUND), line + AROUND
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    last = node.end_lineno or node.lineno
    return (first, last) if last - first < MOST_LINES else (max(first, line - AROUND), min(last, line + AROUND))


def _statements(file: str) -> tuple[ast.stmt, ...]:
    return _statements_in("".join(linecache.getlines(file)))


@functools.lru_cache(maxsize=64)
def _statements_in(text: str) -> tuple[ast.stmt, ...]:
    return tuple(node for node in ast.walk(parsed_cell(text)) if isinstance(node, ast.stmt))  # outer ones first


def with_names(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The frames, what their authors call what they make; only where a line is done does its name hold that."""
    return tuple(_named(frame, next(iter(frames[k + 1 :]), None)) for k, frame in enumerate(frames))


def _named(frame: Frame, after: Frame | None) -> Frame:
    place = frame.place
    if place is None or frame.note or frame.waits or frame.backward or not frame.arrays:
        return frame
    if after is not None and not after.note and (frame.line, frame.scopes) == (after.line, after.scopes):
        return frame
    if len(names := names_at(place)) != len(frame.arrays):
        return frame
    arrays = zip(frame.arrays, names, strict=True)
    return replace(frame, arrays=tuple(replace(array, name=name) for array, name in arrays))


def names_at(place: Spot) -> tuple[str, ...]:
    """What the statement at a place assigns to, where these are plain names: of a tuple, all of them."""
    around = [s for s in _statements(place.file) if s.lineno <= place.first <= (s.end_lineno or s.lineno)]
    if not around:
        return ()
    statement = min(around, key=lambda s: (s.end_lineno or s.lineno) - s.lineno)
    if any(_covers(node, place) for node in ast.walk(statement) if isinstance(node, ast.Lambda)):
        return ()
    if isinstance(statement, ast.Return):
        return ("return",)
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    names = targets[0].elts if isinstance(targets[0], ast.Tuple) else targets
    plain = tuple(name.id for name in names if isinstance(name, ast.Name) and name.id != "_")
    return plain if len(plain) == len(names) else ()  # what comes for `_` may be several arrays, or none


def _covers(node: ast.Lambda, place: Spot) -> bool:
    begins, ends = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    return begins <= (place.first, place.start) < ends


def parameters_at(place: Spot) -> tuple[str, ...]:
    """The parameters of the function that is defined on a line, where it is the only one there."""
    defined = [s for s in _statements(place.file) if isinstance(s, ast.FunctionDef) and place.function == s.name]
    lines = [s for s in defined if min([s.lineno, *(d.lineno for d in s.decorator_list)]) <= place.first <= s.lineno]
    return tuple(argument.arg for argument in lines[0].args.args) if len(lines) == 1 else ()
