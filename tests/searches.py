"""Which search of `grader.explaining` makes a finding, and how long each search takes."""

from __future__ import annotations

import contextlib
import functools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from grader.explaining import functions, processes, programs, tables, timetables, wrong_results
from grader.explaining.cases import evidence
from grader.explaining.explainer import Explainer
from grader.explaining.wrong_program import WrongProgram
from grader.findings.finding import Finding

KNOWN, SOME_CASES = "known mistakes", "known mistakes in some cases"
SEARCHES = {
    KNOWN: (Explainer, "known"),
    SOME_CASES: (Explainer, "known_in_some_cases"),
    "meaning of an error (program)": (programs, "meaning_of_refusal"),
    "meaning of an error (function)": (functions, "meaning"),
    "meaning of an error (process)": (processes, "meaning"),
    "where a program is right": (WrongProgram, "passed_elsewhere"),
    "where values are right": (WrongProgram, "values_right_elsewhere"),
    "where a value is right": (evidence, "right_in"),
    "relations of values": (evidence, "_in_common"),
    "changed reference": (functions, "nearest_function"),
    "why a function stops": (functions.FunctionExplainer, "_of_problem"),
    "facts in a text": (functions.FunctionExplainer, "_wrong_facts"),
    "row of a table": (tables.TableExplainer, "evidence"),
    "timetable": (timetables.TimetableExplainer, "evidence"),
    "processes agree": (processes, "_agreed"),
}


class Log:
    """For each search its processor seconds, without those of searches that it began; for each finding its search."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.search_of: dict[Finding, str] = {}
        self._running: list[str] = []
        self._since = 0.0

    @contextlib.contextmanager
    def running(self, name: str) -> Iterator[None]:
        self._charge()
        self._running.append(name)
        try:
            yield
        finally:
            self._charge()
            self._running.pop()

    def _charge(self) -> None:
        """What has passed since the last time is the innermost search's."""
        now = time.process_time()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now

    def note(self, name: str, found: Any) -> None:
        """Note the findings in what a search returned; an inner search, which returned first, has found them."""
        if isinstance(found, Finding):
            self.search_of.setdefault(found, name)
        elif isinstance(found, tuple):
            for one in found:
                self.note(name, one)


def _measured(log: Log, name: str, search: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(search)
    def run(*arguments: Any, **named: Any) -> Any:
        with log.running(name):
            found = search(*arguments, **named)
        log.note(name, found)
        return found

    return run


def _measured_one_by_one(log: Log, name: str, search: Callable[..., Iterator[Finding]]) -> Callable[..., Any]:
    @functools.wraps(search)
    def run(*arguments: Any) -> Iterator[Finding]:
        findings = search(*arguments)
        while True:
            with log.running(name):
                found = next(findings, None)
            if found is None:
                return
            log.note(name, found)
            yield found

    return run


@contextlib.contextmanager
def measured() -> Iterator[Log]:
    """Within this, searches are measured."""
    log = Log()
    with contextlib.ExitStack() as stack:
        for name, (owner, attribute) in SEARCHES.items():
            search = getattr(owner, attribute)
            of_property = isinstance(search, property)
            run = property(_measured(log, name, search.fget)) if of_property else _measured(log, name, search)
            stack.enter_context(mock.patch.object(owner, attribute, run))
        of_programs = {
            check: tuple(_measured_one_by_one(log, name_of(search), search) for search in searches)
            for check, searches in wrong_results._SEARCHES.items()
        }
        stack.enter_context(mock.patch.object(wrong_results, "_SEARCHES", of_programs))
        yield log


def name_of(search: Callable[..., Any]) -> str:
    """The name of a search of a program, in words."""
    return search.__name__.strip("_").replace("_", " ")
