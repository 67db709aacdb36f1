"""Functions that run in several processes: everybody has to come to an end, and to return what is due."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.arrays.described import HELD, built, difference, given_to, is_observed, lies_on_devices
from grader.arrays.files import OnFile
from grader.arrays.numbers import close, same_value
from grader.exercises.answers import Problem, Script
from grader.exercises.case import Case
from grader.exercises.errors import in_plain_words, meaning
from grader.exercises.forms import ProcessExercise
from grader.exercises.plain import plain
from grader.judging import together
from grader.judging.differing import first_difference, short, shown_whole
from grader.judging.evidence import evidence, is_vague
from grader.judging.ladder import Alike, Done, Ladder, Rung
from grader.judging.lists import FIRST_IS_WRONG
from grader.judging.miss import Miss
from grader.judging.tried import Tried
from grader.judging.values import same_answer, worded
from grader.processes.launch import Launch


class ProcessLadder(Ladder):
    """Two rungs: all processes end; each returns what the reference says for it."""

    exercise: ProcessExercise
    runs = Script

    @property
    def rungs(self) -> Sequence[Rung]:
        return [Rung("ends", 0.0, self._ends), Rung("values", self.exercise.points, self._returned)]

    def likenesses(self, check: str) -> Sequence[Alike]:
        return [_alike]

    def witnesses(self, failing: int) -> Sequence[int]:
        return range(failing)  # where it is right; of the others each takes seconds to run

    def _ends(self, k: int) -> Miss | None:
        launch = self.done[k]
        if isinstance(launch, Problem):
            return Miss(f"{launch.error}: {launch.message}" if launch.error else in_plain_words(launch))
        if not isinstance(launch, Launch):
            return Miss("The answer should be a function `main(process_id, num_processes)`.")
        step = self.cases[k].mesh.get("killed_at")
        if launch.went_well and launch.survived:
            return Miss(
                f"The run was to be killed at its line `step {step} …`, and it came to its end without printing one. "
                "Print a line for every step, with its number, as soon as the step is done."
            )
        again = "Killed, and started again: " if step and not launch.survived else ""
        return None if launch.went_well else Miss(again + launch.headline)

    def _returned(self, k: int) -> Miss | None:
        case, launch = self.cases[k], self.done[k]
        assert isinstance(launch, Launch)  # the rung before saw to it
        returned, expected = together.returned(launch), _expected(self.exercise, case)
        if len(returned) != len(expected):
            return Miss(f"{len(expected)} processes were to return something, and {len(returned)} are heard of.")
        pairs = zip(returned, expected, strict=True)
        for number, (value, due) in enumerate(pairs):
            if not same_answer(self.exercise, case, value, due):
                return Miss(worded(functools.partial(_difference, number, value, due, self.exercise.parts)))
        return None

    def signature(self, check: str, k: int) -> str:
        """What the error means by which the first of them failed; what all processes with a wrong result have in
        common."""
        case, launch = self.cases[k], self.done[k]
        if not isinstance(launch, Launch):
            return ""
        if check == "ends":
            raised = launch.first is not None and launch.processes[launch.first].raised
            return meaning(Problem("error", raised[0], raised[1])) if raised else ""
        pairs = zip(together.returned(launch), _expected(self.exercise, case), strict=True)
        tried = [self._tried(k, number, *pair) for number, pair in enumerate(pairs)]
        wrong = next(number for number, one in enumerate(tried) if not one.right)
        given = given_to(wrong, case.arguments)
        common = evidence(tried, among="processes")
        agreed = _agreed(tried) if is_vague(common) or common == FIRST_IS_WRONG else ""
        return " ".join(filter(None, (self._right_with(k), _from_where(tried[wrong], given), common, agreed)))

    def _right_with(self, k: int) -> str:
        """With how many processes, or devices, it is right, where that are as many in all earlier cases, and others
        now."""
        for what, where in (("processes", ""), ("devices", " in each process")):
            here, earlier = self.cases[k].mesh[what], {case.mesh[what] for case in self.cases[:k]}
            if len(earlier) == 1 and here not in earlier:
                return (
                    f"With {min(earlier)} {what}{where} this is right, with {here} it is not. Does a number stand in "
                    "it that holds for one of them only?"
                )
        return ""

    def _tried(self, k: int, number: int, value: Any, due: Any) -> Tried:
        case = self.cases[k]
        known = {"process_id": number, "num_processes": case.mesh["processes"]}
        given = {**known, **given_to(number, case.arguments)}
        return Tried(value, due, given, same_answer(self.exercise, case, value, due))


def _alike(case: Case, one: Done, other: Done) -> bool:
    return isinstance(one, Launch) and isinstance(other, Launch) and together.same_course(one, other)


def _expected(exercise: ProcessExercise, case: Case) -> list[Any]:
    """What each process has to return."""
    count = case.mesh["processes"]
    return [plain(exercise.reference(number, count, **built(dict(case.arguments)))) for number in range(count)]


def _agreed(tried: Sequence[Tried]) -> str:
    """That all processes have the same, where the same is due, and another."""
    if len(tried) < 2 or any(one.right or is_observed(one.found) != is_observed(one.due) for one in tried):
        return ""
    if not all(_same_in_both(one.found, tried[0].found) and _same_in_both(one.due, tried[0].due) for one in tried[1:]):
        return ""
    return "All processes agree on it. Do all of them do something wrong, or does one of them bring it to the others?"


def _same_in_both(one: Any, other: Any) -> bool:
    """Whether two processes have the same: of arrays on devices, equal copies of one whole."""
    if not is_observed(one) or not is_observed(other):
        return same_value(one, other)
    parts = [(bounds, block) for side in (one, other) for held in side[HELD].values() for bounds, block in held.items()]
    return all(bounds == parts[0][0] and same_value(block, parts[0][1]) for bounds, block in parts)


def _from_where(tried: Tried, given: Mapping[str, Any]) -> str:
    """Which rows of an argument a process holds, and which are due; "" where these are none, or the same."""
    for (device, (block, due)), (name, whole) in itertools.product(_held(tried).items(), given.items()):
        rows = whole.value if isinstance(whole, OnFile) else whole
        if not isinstance(rows, np.ndarray):
            continue
        found, wanted = (_first_row(some, rows) for some in (block, due))
        if found is not None and wanted is not None and found != wanted:
            which = f"row {found} of this process's `{name}` (counted from 0), and row {wanted} is due."
            return f"The first row on {device} is {which}"
    return ""


def _held(tried: Tried) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What each device holds of the arrays of a process, and what it should."""
    if not isinstance(tried.found, Mapping) or not isinstance(tried.due, Mapping):
        return {}
    both: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for key, due in tried.due.items():
        here, there = (_blocks_on(side) for side in (tried.found.get(key), due))
        both |= {device: (here[device], there[device]) for device in there if device in here}
    return both


def _blocks_on(value: Any) -> dict[str, np.ndarray]:
    return {device: next(iter(part.values())) for device, part in value[HELD].items()} if is_observed(value) else {}


def _first_row(block: np.ndarray, rows: np.ndarray) -> int | None:
    """From which of these rows on they are those of a block."""
    if block.ndim != rows.ndim or block.shape[1:] != rows.shape[1:] or not block.size:
        return None
    starts = range(len(rows) - len(block) + 1)
    return next((k for k in starts if np.array_equal(rows[k : k + len(block)], block)), None)


def _difference(number: int, value: Any, expected: Any, parts: Sequence[str]) -> str:
    """How what a process returns differs from what is due; `parts` are what the entries of a tuple are called."""
    if parts and isinstance(value, (list, tuple)) and len(value) == len(parts):
        wrong = [
            f"{part} should be {short(entry)}; it is {short(own)}."
            for part, own, entry in zip(parts, value, expected, strict=True)
            if not same_value(own, entry)
        ]
        return (
            f"In process {number} {' '.join([wrong[0], *(f'{words[:1].upper()}{words[1:]}' for words in wrong[1:])])}"
        )
    if lies_on_devices(expected):
        return f"Process {number}: {difference(value, expected, close)}"
    if shown_whole(value, expected) or not (differs := first_difference(value, expected)):
        return f"Process {number} should return {short(expected)}; it returns {short(value)}."
    return f"Of what process {number} returns, {differs.words}"
