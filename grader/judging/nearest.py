"""The nearest wrong function: one change to the reference, or to the formula that stands for it, after which it returns
what the student's function does.

Said where nothing else speaks of an answer, and asserted of nothing but what was computed here, on every case.
"""

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
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.arrays.described import built
from grader.arrays.numbers import same_value
from grader.exercises.answers import Answer, Problem, Value
from grader.exercises.case import Case
from grader.exercises.forms import FunctionExercise
from grader.exercises.plain import plain
from grader.judging.changes import changed_once
from grader.judging.single_numbers import is_number
from grader.judging.values import expected_value, same_answer

SECONDS_FOR_CHANGES = 0.3  # of computing, after which no further change is tried: somebody waits in a notebook
CHANGES_AT_LEAST = 30  # changes, at least, that are tried
MOST_CALLS = 50_000  # of functions, and ends of these, in one run of a changed function, which may never end
LONGEST_RANGE = 10**6  # entries of a range
CASES_THAT_TELL = 4  # cases, or numbers in the answers: fewer are alike by chance
SCALES = (2, 4, 8, 1000, 1024, 10**6)  # of bytes, bits, units, and ways there and back
CASES_OF_AN_ENTRY = 3  # in which an entry of a dict is another
ALL_OF_IT = ""  # the key that stands for all of an answer
TOLD = 2  # changes that come to the same, and are told
OF_LESSONS = "grader.lessons."
SAME_NUMBER = 1e-12  # relative: how near two numbers are that Python worked out in two ways


class _TooLong(BaseException):
    """A changed function goes on and on. What it calls may catch exceptions, but not this."""


def nearest_function(exercise: FunctionExercise, cases: Sequence[Case], answers: Sequence[Answer], failing: int) -> str:
    """What the answers to all cases are the results of, in words, or else one wrong entry of dicts; "" where no change
    comes to them."""
    order = [failing, *(k for k in range(len(cases)) if k != failing)]
    wrong = _wrong_keys(expected_value(exercise, cases[failing]), answers[failing], answers)
    found: dict[str, list[str]] = {key: [] for key in ([ALL_OF_IT] * _tell_enough(answers) + wrong)}
    for words, function in _ways(exercise, cases[failing]) if found else ():
        made = functools.cache(functools.partial(_made, function, cases))
        for key, told in found.items():
            if words not in told and all(_is(exercise, cases[k], answers[k], made(k), key) for k in order):
                told.append(words)
        if len(found.get(ALL_OF_IT, ())) == TOLD:
            break
    key, told = next(((key, told) for key, told in found.items() if told), ("", []))
    if not told:
        return ""
    return (
        f"In every case {f'your `{key}`' if key else 'yours'} is what comes out when {', or when '.join(told[:TOLD])}. "
        "Is it so in your function, or something that comes to the same?"
    )


def _wrong_keys(due: Any, answer: Answer, answers: Sequence[Answer]) -> list[str]:
    """The wrong entries of a dict, where they are others in several cases: one number is alike by chance."""
    found = answer.value if isinstance(answer, Value) else None
    if not isinstance(due, Mapping) or not isinstance(found, Mapping) or len(due) < 2:
        return []
    values = [one.value for one in answers if isinstance(one, Value) and isinstance(one.value, Mapping)]
    wrong = [key for key in due if isinstance(key, str) and key in found and not same_value(found[key], due[key])]
    return [key for key in wrong if len({repr(value.get(key)) for value in values}) >= CASES_OF_AN_ENTRY]


def _tell_enough(answers: Sequence[Answer]) -> bool:
    """Whether it is no chance to have the same answers to all cases."""
    values = [answer.value for answer in answers if isinstance(answer, Value)]
    leaves = {leaf for value in values for leaf in _leaves(value) if isinstance(leaf, (int, float, str))}
    return len(leaves) >= (2 if len(values) >= CASES_THAT_TELL else 2 * CASES_THAT_TELL)


def _leaves(value: Any) -> Iterator[Any]:
    """All that is in a value, of arrays their numbers."""
    for part in _in_order(value):
        yield from part.ravel().tolist() if isinstance(part, np.ndarray) else [part]


def _made(function: Callable[..., Any], cases: Sequence[Case], k: int) -> Any:
    """What a changed function returns in a case, or how it ends."""
    try:
        with np.errstate(all="ignore"), _bounded():
            return plain(function(**built(copy.deepcopy(dict(cases[k].arguments)))))
    except (Exception, _TooLong) as error:  # a changed function may do anything
        return error


def _is(exercise: FunctionExercise, case: Case, answer: Answer, made: Any, key: str) -> bool:
    """Whether an answer, or its entry under a key, is what was made."""
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
        return [leaf for entry in value for leaf in _in_order(entry)]
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
def _bounded() -> Iterator[None]:
    """Raise _TooLong in what calls too many functions; a loop in a changed function calls one in every turn."""
    calls, before = itertools.count(), sys.getprofile()

    def counted(*_: Any) -> None:
        if next(calls) > MOST_CALLS:
            raise _TooLong

    sys.setprofile(counted)
    try:
        yield
    finally:
        sys.setprofile(before)


def _ways(exercise: FunctionExercise, case: Case) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Changed functions, for as long as there is time."""
    try:
        source = _source(exercise)
    except (OSError, TypeError, SyntaxError):  # it is not to be found
        return
    begun, whole = time.process_time(), exercise.formula or exercise.reference
    with contextlib.suppress(ValueError):
        whole(**built(copy.deepcopy(dict(case.arguments))))
    if time.process_time() - begun > SECONDS_FOR_CHANGES / CHANGES_AT_LEAST:  # too slow to be tried often
        return
    for way in itertools.chain(_exchanged(whole, case), source.changed(_alike(case)), _scaled(whole, case)):
        yield way
        if time.process_time() - begun > SECONDS_FOR_CHANGES:
            return


def _alike(case: Case) -> list[str]:
    """The arguments that are numbers, of which one may stand for another."""
    return [name for name, value in case.arguments.items() if is_number(value)]


def _exchanged(whole: Callable[..., Any], case: Case) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The function, given two arguments in each other's place."""
    for one, other in itertools.combinations(case.arguments, 2):
        if type(case.arguments[one]) is type(case.arguments[other]):
            yield f"`{one}` and `{other}` are exchanged", functools.partial(_with_exchanged, whole, one, other)


def _scaled(whole: Callable[..., Any], case: Case) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The function, given a multiple of one number, or a part of it."""
    names = _alike(case)
    for name in names:
        for times in SCALES:
            yield f"`{name}` is multiplied by {times}", functools.partial(_with_scaled, whole, name, times, 1)
            yield f"`{name}` is divided by {times}", functools.partial(_with_scaled, whole, name, times, -1)
    for name, other in itertools.permutations(names, 2):
        yield f"`{name}` is multiplied by `{other}`", functools.partial(_with_scaled, whole, name, other, 1)
        yield f"`{name}` is divided by `{other}`", functools.partial(_with_scaled, whole, name, other, -1)


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

    def changed(self, names: Sequence[str]) -> Iterator[tuple[str, Callable[..., Any]]]:
        """The reference after each change of its own text, and of that of what it calls."""
        top = next(iter(self.texts))
        for place, tree in self.texts.items():
            try:
                with contextlib.closing(changed_once(tree.body[0], names if place == top else ())) as changes:
                    for words in changes:
                        if self.define(place, tree):
                            yield words, self._reference
            finally:
                self.define(place, tree)

    def _reference(self, **given: Any) -> Any:
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
        own = {"_turn": _turn, "range": _short_range}
        space = source.spaces.setdefault(function.__module__, function.__globals__ | own)
        waiting += [space[name] for name in _named(source.texts[place]) if _is_ours(space.get(name))]
    for place, tree in source.texts.items():
        source.define(place, tree)
    return source


def _turn() -> None:
    """Called in every turn of a loop, so that turns are counted."""


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
    """The text of a function, without decorators, whose turns are counted."""
    whole = ast.parse("".join(inspect.findsource(function)[0]))
    first = function.__code__.co_firstlineno
    if function.__name__ == "<lambda>":
        (found,) = (node for node in ast.walk(whole) if isinstance(node, ast.Lambda) and node.lineno == first)
        body: list[ast.stmt] = [ast.Return(found.body)]
        written = ast.FunctionDef(_name(function), found.args, body, [])
    else:
        written = next(
            node for node in whole.body if isinstance(node, ast.FunctionDef) and node.name == function.__name__
        )
        written.decorator_list = []
    for node in ast.walk(written):
        if isinstance(node, (ast.FunctionDef, ast.For, ast.While)):
            node.body.insert(0, ast.Expr(ast.Call(ast.Name("_turn", ast.Load()), [], [])))
    return ast.fix_missing_locations(ast.Module([written], []))
