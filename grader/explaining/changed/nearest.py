"""The nearest wrong function: one change to the reference, or to the formula that stands for it, after which it returns
what the student's function does. It is no guess: the changed function was called in every case."""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import functools
import inspect
import itertools
import math
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from grader.arrays.described import built
from grader.arrays.numbers import same_value
from grader.exercises.answers import Answer, Problem, Value
from grader.exercises.case import Case
from grader.exercises.forms import FunctionExercise
from grader.exercises.plain import plain
from grader.explaining.changed.changes import changed_once
from grader.explaining.compared.single_numbers import is_number
from grader.findings.cases import ChangedReference, FunctionChange
from grader.judging.values import expected_value, same_answer

MOST_CHANGES = 300  # that are tried
MOST_CALLS = 200_000  # of functions, and ends of these, in all changed functions together: a count, and no time
MOST_CALLS_OF_ONE = 50_000  # in one run of a changed function, which may never end
SLOW = 3_000  # calls of the reference in one case: of one that makes more, changes are not tried
LONGEST_RANGE = 10_000  # elements of a range
CASES_THAT_TELL = 4  # cases, or numbers in the answers: fewer are alike by chance
SCALES = (2, 4, 8, 1000, 1024, 10**6)  # of bytes, bits, units, and ways there and back
CASES_OF_A_KEY = 3  # in which what is under a key differs
ALL_OF_IT = ""  # the key that stands for all of an answer
TOLD = 2  # changes with the same results, that are told
OF_LESSONS = "grader.lessons."
SAME_NUMBER = 1e-12  # relative: how near two numbers are that Python worked out in two ways

_Node = TypeVar("_Node", bound=ast.AST)


class _TooLong(BaseException):
    """A changed function goes on and on. What it calls may catch exceptions, but not this."""


def nearest_function(
    exercise: FunctionExercise, cases: Sequence[Case], answers: Sequence[Answer], failing: int
) -> ChangedReference | None:
    """The changes that give the answers to all cases, or else what dicts have under a wrong key; None if none does."""
    order = [failing, *(k for k in range(len(cases)) if k != failing)]
    wrong = _wrong_keys(expected_value(exercise, cases[failing]), answers[failing], answers)
    found: dict[str, list[FunctionChange]] = {key: [] for key in ([ALL_OF_IT] * _tell_enough(answers) + wrong)}
    calls = Calls()
    for change, function in _ways(exercise, cases[failing], calls) if found else ():
        made = functools.cache(functools.partial(_made, function, cases, calls))
        for key, told in found.items():
            if change not in told and all(_is(exercise, cases[k], answers[k], made(k), key) for k in order):
                told.append(change)
        if len(found.get(ALL_OF_IT, ())) == TOLD or calls.made > MOST_CALLS:
            break
    return next((ChangedReference(tuple(told[:TOLD]), key) for key, told in found.items() if told), None)


@dataclass
class Calls:
    """How many functions have been called by changed functions."""

    made: int = 0


def _wrong_keys(expected: Any, answer: Answer, answers: Sequence[Answer]) -> list[str]:
    """The keys with a wrong value that differs from case to case: one number is alike by chance."""
    found = answer.value if isinstance(answer, Value) else None
    if not isinstance(expected, Mapping) or not isinstance(found, Mapping) or len(expected) < 2:
        return []
    values = [one.value for one in answers if isinstance(one, Value) and isinstance(one.value, Mapping)]
    both = (key for key in expected if isinstance(key, str) and key in found)
    wrong = [key for key in both if not same_value(found[key], expected[key])]
    return [key for key in wrong if len({repr(value.get(key)) for value in values}) >= CASES_OF_A_KEY]


def _tell_enough(answers: Sequence[Answer]) -> bool:
    """Whether it is no chance to have the same answers to all cases."""
    values = [answer.value for answer in answers if isinstance(answer, Value)]
    leaves = {leaf for value in values for leaf in _leaves(value) if isinstance(leaf, (int, float, str))}
    return len(leaves) >= (2 if len(values) >= CASES_THAT_TELL else 2 * CASES_THAT_TELL)


def _leaves(value: Any) -> Iterator[Any]:
    """All that is in a value, of arrays their numbers."""
    for part in _in_order(value):
        yield from part.ravel().tolist() if isinstance(part, np.ndarray) else [part]


def _made(function: Callable[..., Any], cases: Sequence[Case], calls: Calls, k: int) -> Any:
    """What a changed function returns in a case, or how it ends."""
    try:
        with np.errstate(all="ignore"), _bounded(calls):
            return plain(function(**built(copy.deepcopy(dict(cases[k].arguments)))))
    except (Exception, _TooLong) as error:  # a changed function may do anything
        return error


def _is(exercise: FunctionExercise, case: Case, answer: Answer, made: Any, key: str) -> bool:
    """Whether an answer, or what it has under a key, is what was made."""
    if isinstance(made, BaseException):
        return key == ALL_OF_IT and isinstance(answer, Problem) and answer.error == type(made).__name__
    if not isinstance(answer, Value):
        return False
    if key != ALL_OF_IT:
        both = isinstance(answer.value, Mapping) and isinstance(made, Mapping)
        return both and key in answer.value and key in made and _same(answer.value[key], made[key])
    # An exercise may call the same what is only near, or as good.
    return _same(answer.value, made) or (
        same_answer(exercise, case, answer.value, made) and _has_the_same_in_it(answer.value, made)
    )


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same, and no number of Python's in them is only near the other: what is added to a
    large number may be small."""
    return same_value(one, other) and all(map(_is_exact, *map(_in_order, (one, other))))


def _in_order(value: Any) -> list[Any]:
    """All that is in a value, in the order of the keys of its dicts."""
    if isinstance(value, Mapping):
        return [leaf for key in sorted(value, key=repr) for leaf in _in_order(value[key])]
    if isinstance(value, (list, tuple)):
        return [leaf for one in value for leaf in _in_order(one)]
    return [value]


def _is_exact(one: Any, other: Any) -> bool:
    if not all(type(number) in (int, float) for number in (one, other)):
        return True
    in_float32 = one % 1 != 0 and float(np.float32(one)) == one  # as JAX has it
    return (
        in_float32
        or one == other
        or math.isclose(one, other, rel_tol=SAME_NUMBER, abs_tol=SAME_NUMBER**2)
        or one != one
    )


def _has_the_same_in_it(one: Any, other: Any) -> bool:
    """Whether two values have the same numbers and words in them, in whatever order, but for zeros."""
    sides = [sorted(map(repr, (leaf for leaf in _leaves(value) if leaf))) for value in (one, other)]
    return sides[0] == sides[1]


@contextlib.contextmanager
def _bounded(calls: Calls) -> Iterator[None]:
    """Count the calls of functions, and raise _TooLong if there are too many; a loop in a changed function calls one in
    every iteration."""
    before, end = sys.getprofile(), calls.made + MOST_CALLS_OF_ONE

    def counted(*_: Any) -> None:
        calls.made += 1
        if calls.made > end:
            raise _TooLong

    sys.setprofile(counted)
    try:
        yield
    finally:
        sys.setprofile(before)


def _ways(exercise: FunctionExercise, case: Case, calls: Calls) -> Iterator[tuple[FunctionChange, Callable[..., Any]]]:
    """Changed functions; none of a reference that cannot be read, or that is slow."""
    try:
        source = _source(exercise)
    except (OSError, TypeError, SyntaxError):  # it is not to be found
        return
    for _ in range(2):  # what it keeps for the next call is no part of it
        calls.made = 0
        _made(source.reference, [case], calls, 0)
    if calls.made > SLOW:
        return
    given = _exchanged(source.reference, case), source.changed(_alike(case)), _scaled(source.reference, case)
    yield from itertools.islice(itertools.chain(*given), MOST_CHANGES)


def _alike(case: Case) -> list[str]:
    """The arguments that are numbers, of which one may stand for another."""
    return [name for name, value in case.arguments.items() if is_number(value)]


def _exchanged(whole: Callable[..., Any], case: Case) -> Iterator[tuple[FunctionChange, Callable[..., Any]]]:
    """The function, given two arguments in each other's place."""
    for one, other in itertools.combinations(case.arguments, 2):
        if type(case.arguments[one]) is type(case.arguments[other]):
            yield FunctionChange("exchanged", (one, other)), functools.partial(_with_exchanged, whole, one, other)


def _scaled(whole: Callable[..., Any], case: Case) -> Iterator[tuple[FunctionChange, Callable[..., Any]]]:
    """The function, given a multiple of one number, or a part of it."""
    names = _alike(case)
    by: list[tuple[str, float | str]] = [(name, times) for name in names for times in SCALES]
    for name, times in [*by, *itertools.permutations(names, 2)]:
        yield (
            FunctionChange("multiplied by", (name, str(times))),
            functools.partial(_with_scaled, whole, name, times, 1),
        )
        yield FunctionChange("divided by", (name, str(times))), functools.partial(_with_scaled, whole, name, times, -1)


def _with_scaled(whole: Callable[..., Any], name: str, by: float | str, power: int, **given: Any) -> Any:
    """Numbers that come out whole are whole: a function may count with them."""
    times = given[by] if isinstance(by, str) else by
    number = given[name] * times if power > 0 else given[name] / times
    return whole(**given | {name: int(number) if isinstance(given[name], int) and number % 1 == 0 else number})


def _with_exchanged(whole: Callable[..., Any], one: str, other: str, **given: Any) -> Any:
    return whole(**given | {one: given[other], other: given[one]})


@dataclass(eq=False)
class Source:
    """A reference and the functions of the lessons that it calls: their text, and the modules in which they run.

    `texts` holds each function's tree by the name under which its module has it; the first is the reference's.
    """

    texts: dict[tuple[str, str], ast.Module]
    spaces: dict[str, dict[str, Any]]

    def changed(self, names: Sequence[str]) -> Iterator[tuple[FunctionChange, Callable[..., Any]]]:
        """The reference after each change of its own text, and of that of what it calls."""
        top = next(iter(self.texts))
        for place, tree in self.texts.items():
            try:
                with contextlib.closing(changed_once(tree.body[0], names if place == top else ())) as changes:
                    for change in changes:
                        if self.define(place, tree):
                            yield change, self.reference
            finally:
                self.define(place, tree)

    def reference(self, **given: Any) -> Any:
        module, name = next(iter(self.texts))
        return self.spaces[module][name](**given)

    def define(self, place: tuple[str, str], tree: ast.Module) -> bool:
        """Put a function into its own module, and into those that took it from there; whether it is one."""
        module, name = place
        before = self.spaces[module].get(name)
        try:
            exec(compile(tree, f"<{name}, changed>", "exec"), self.spaces[module])
        except (SyntaxError, ValueError, TypeError):  # not every node may stand everywhere
            return False
        for space in self.spaces.values():
            for other in [key for key, value in space.items() if value is before and before is not None]:
                space[other] = self.spaces[module][name]
        return True


@functools.lru_cache(maxsize=16)
def _source(exercise: FunctionExercise) -> Source:
    source, known = Source({}, {}), set()
    waiting = [inspect.unwrap(exercise.formula or exercise.reference)]
    while waiting:
        function = waiting.pop(0)
        if function in known:
            continue
        known.add(function)
        place = (function.__module__, _name(function))
        source.texts[place] = _text(function)
        own = {"_iteration": _iteration, "_counted": _counted, "range": _short_range}
        space = source.spaces.setdefault(function.__module__, function.__globals__ | own)
        waiting += [space[name] for name in _named(source.texts[place]) if _is_ours(space.get(name))]
    for place, tree in source.texts.items():
        source.define(place, tree)
    return source


def _iteration() -> None:
    """Called in every iteration of a loop, so that iterations are counted."""


def _counted(over: Iterable[Any]) -> Iterator[Any]:
    """What a comprehension goes over: as this is resumed for each element, these are counted as calls are."""
    yield from over


def _short_range(*bounds: Any) -> range:
    found = builtins.range(*bounds)
    if len(found) > LONGEST_RANGE:
        raise _TooLong
    return found


def _name(function: Callable[..., Any]) -> str:
    return function.__name__ if function.__name__.isidentifier() else "_written_in_place"  # a lambda


def _named(tree: ast.AST) -> list[str]:
    """The names that a function takes from outside."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return [node.id for node in names if node.id not in own]


def _is_ours(value: Any) -> bool:
    """Whether it is a function of the lessons as it was written: without a closure, and without a cache around it."""
    return (
        isinstance(value, types.FunctionType) and value.__module__.startswith(OF_LESSONS) and value.__closure__ is None
    )


def _text(function: types.FunctionType) -> ast.Module:
    """The text of a function, without decorators, whose iterations are counted."""
    whole = ast.parse("".join(inspect.findsource(function)[0]))
    first = function.__code__.co_firstlineno
    if function.__name__ == "<lambda>":
        found = _only(node for node in ast.walk(whole) if isinstance(node, ast.Lambda) and node.lineno == first)
        written = ast.FunctionDef(_name(function), found.args, [ast.Return(found.body)], [])
    else:
        named = (node for node in whole.body if isinstance(node, ast.FunctionDef) and node.name == function.__name__)
        written = _only(named)
        written.decorator_list = []
    for node in ast.walk(written):
        if isinstance(node, (ast.For, ast.While)):
            node.body.insert(0, ast.Expr(ast.Call(ast.Name("_iteration", ast.Load()), [], [])))
        elif isinstance(node, ast.comprehension):
            node.iter = ast.Call(ast.Name("_counted", ast.Load()), [node.iter], [])
    return ast.fix_missing_locations(ast.Module([written], []))


def _only(nodes: Iterable[_Node]) -> _Node:
    """The only one of these. Raises OSError if there is none, as of a function inside another, or if there are more."""
    found = list(nodes)
    if len(found) != 1:
        raise OSError("the text of this function is not to be found")
    return found[0]
