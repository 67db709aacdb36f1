"""What explains a miss, whatever the form of the exercise: a declared mistake that does the same, else evidence.

One subclass for each form. It is given a judgment and says nothing about points.
"""

from __future__ import annotations

import functools
import itertools
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar, cast

from grader.arrays.numbers import same_value
from grader.exercises.answers import Answer, Problem, Value
from grader.exercises.case import Case
from grader.exercises.collecting import asks, collect
from grader.exercises.exercise import Exercise, Mistake, ValueExercise
from grader.exercises.verdict import Blamed
from grader.explaining.both import Shown, pair_that_explains, shown_in
from grader.findings.finding import Finding, Rank
from grader.findings.mistakes import BOTH, KnownMistake, MistakeInSomeCases, TwoMistakes
from grader.findings.verdicts import Taught
from grader.judging.judgment import HERE, Behavior, Explained, Judgment
from grader.judging.miss import Miss
from grader.programs.origins import ERROR, VALUE
from grader.programs.program import Program

_Known = tuple[tuple[Finding, ...], str]  # what is said of a declared mistake, and its name
Alike = Callable[[Case, Any, Any], bool]
J = TypeVar("J", bound=Judgment)
# What a mistake in our own code raises. (An evaluator that is gone, or a machine without memory, is none.)
FAULTS = ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError
_TELLING = Rank.SOME + 10  # of a finding that says more than which part is wrong, or in which cases
MOST_SPELLINGS = 2  # of a mistake (`Mistake.spellings`)
MOST_MADE = 24  # programs of mistakes on a case: if there are many mistakes, some are made in one spelling only


class Explainer(Generic[J]):
    """What went wrong in the answers to an exercise, as far as it can be computed."""

    forgiving: ClassVar[bool] = True  # of faults in explanations; our own tests are not

    def __init__(self, judgment: J):
        self.judgment = judgment
        self.exercise, self.cases, self.answers = judgment.exercise, judgment.cases, judgment.answers

    @property
    def behaviors(self) -> Sequence[Behavior]:
        return self.judgment.behaviors

    def __call__(self, check: str, case: int, miss: Miss) -> Explained:
        """What explains that this check is missed in this case. If explaining fails, that is our fault: nobody loses a
        verdict by it."""
        try:
            return self.explained(check, case, miss)
        except FAULTS as error:
            if not self.forgiving:
                raise
            logging.getLogger(__name__).warning("No explanation (%s: %s).", type(error).__name__, error)
            return Explained(blamed=self.blamed(check, case, miss))

    def explained(self, check: str, case: int, miss: Miss) -> Explained:
        stops = isinstance(self.behaviors[case], Problem)  # then it costs little to make mistakes in all cases
        findings, mistake = self.known(check, case) or (stops and self.known_in_some_cases(check, case)) or ((), "")
        if not findings:
            findings = self.evidence(check, case)
            tells_little = all(finding.rank < _TELLING for finding in findings)
            if tells_little and not stops and (known := self.known_in_some_cases(check, case)):
                findings, mistake = known
        taught = (Taught(self.exercise.taught_in),) if self.exercise.taught_in else ()
        return Explained((*findings, *taught), mistake, self.blamed(check, case, miss))

    def likenesses(self, check: str) -> Sequence[Alike]:
        """In what two answers to a case have to be alike for one to explain why the other misses a check: the
        strictest first."""
        return []

    def parts(self, case: int, behavior: Behavior) -> Sequence[Any]:
        """What may be wrong each for itself in an answer to a case; nothing if that cannot be told."""
        return ()

    def right_parts(self, case: int, behavior: Behavior) -> Sequence[bool]:
        """Which of those are right."""
        return ()

    def same_part(self, case: int, one: Any, other: Any) -> bool:
        """Whether two parts are the same."""
        return False

    def evidence(self, check: str, case: int) -> tuple[Finding, ...]:
        """What the miss of a case gives away if no mistake behaves the same."""
        return ()

    def blamed(self, check: str, case: int, miss: Miss) -> Blamed | None:
        """What of the answer to a case its miss is about; an answer that stops has but one place, and so has a value
        that is returned."""
        if isinstance(self.behaviors[case], Value):
            return Blamed(case, (0,), (VALUE,), "returned")
        return Blamed(case, (0,), (ERROR,)) if isinstance(self.behaviors[case], Problem) else None

    def known(self, check: str, case: int) -> _Known | None:
        """The declared mistake that does the same, or two that do it together, with their names."""
        if mistake := self.mistake(check, case):
            return (KnownMistake(mistake.name, self.is_exact(mistake, case)),), mistake.name
        if pair := self.pair(check, case):
            names = pair[0].name, pair[1].name
            return (TwoMistakes(*names),), BOTH.join(names)
        return None

    def known_in_some_cases(self, check: str, case: int) -> _Known | None:
        mistake = self.mistake_in_some_cases(check, case)
        return ((MistakeInSomeCases(mistake.name),), mistake.name) if mistake else None

    def is_exact(self, mistake: Mistake, k: int) -> bool:
        """Whether it gives the answer itself, where an exercise calls others the same, or an error is like another."""
        found = self.behaviors[k]
        if isinstance(found, Problem):
            return any(same_problem(found, wrong) for wrong in self.mistaken(mistake, k))
        own_way = isinstance(self.exercise, ValueExercise) and self.exercise.same is not None
        if not own_way or not isinstance(found, Value):
            return True
        made = (wrong.value for wrong in self.mistaken(mistake, k) if isinstance(wrong, Value))
        return any(same_value(found.value, value) for value in made)

    def mistake(self, check: str, failing: int) -> Mistake | None:
        """The mistake that does the same as the answer: on the failing case, where it misses the same check, and on
        the other cases that bear witness."""
        # A second spelling is made only where no mistake's first one explains it: to make one takes time.
        for alike, spelling in itertools.product(self.likenesses(check), range(MOST_SPELLINGS)):
            for mistake in self.exercise.mistakes:
                if any(
                    self.same(alike, failing, wrong) and self.misses(check, failing, wrong)
                    for wrong in itertools.islice(self.mistaken(mistake, failing, check), spelling, spelling + 1)
                ) and all(self.makes(alike, mistake, k, check) for k in self.judgment.witnesses(failing)):
                    return mistake
        return None

    def mistake_in_some_cases(self, check: str, failing: int) -> Mistake | None:
        """The mistake that does the same in all cases that miss a check, and these are on several meshes, of an answer
        that is right in others: a choice may have led it another way there."""
        failed = [k for k in range(len(self.cases)) if self.judgment.misses(check, k)]
        if len(failed) == len(self.cases) or len({str(self.cases[k].mesh) for k in failed}) < 2:
            return None
        found = (
            mistake
            for alike in self.likenesses(check)
            for mistake in self.exercise.mistakes
            if all(self.makes(alike, mistake, k, check) for k in failed)
        )
        return next(found, None)

    def pair(self, check: str, failing: int) -> tuple[Mistake, Mistake] | None:
        """Two mistakes that explain together what none does alone, each of them wherever it would show."""
        tried = [failing, *self.judgment.witnesses(failing)] if check == "values" else []
        right = {k: self.right_parts(k, self.behaviors[k]) for k in tried}
        wrong = frozenset((k, n) for k in tried for n, well in enumerate(right[k]) if not well)
        if len(wrong) < 2:
            return None
        first = {mistake.name: self._shows(mistake, [failing]) for mistake in self.exercise.mistakes}
        if not {part for part in wrong if part[0] == failing} <= frozenset().union(*filter(None, first.values())):
            return None  # (No other case is looked at: to make mistakes there takes time.)
        showing = [mistake for mistake in self.exercise.mistakes if first[mistake.name] is not None]
        each = [Shown(m.name, parts) for m in showing if (parts := self._shows(m, tried)) is not None]
        named = {mistake.name: mistake for mistake in self.exercise.mistakes}
        names = pair_that_explains(each, wrong)
        return (named[names[0]], named[names[1]]) if names else None

    def _shows(self, mistake: Mistake, tried: Sequence[int]) -> frozenset[tuple[int, int]] | None:
        """In which parts of these cases a mistake shows; None where in one of them it should, and does not."""
        parts: set[tuple[int, int]] = set()
        for k in tried:
            spelled = (self._shown_on(k, wrong) for wrong in self.mistaken(mistake, k))
            if (found := next((one for one in spelled if one is not None), None)) is None:
                return None
            parts |= {(k, n) for n in found}
        return frozenset(parts)

    def _shown_on(self, k: int, wrong: Behavior) -> frozenset[int] | None:
        same = functools.partial(self.same_part, k)
        return shown_in(self.parts(k, self.behaviors[k]), self.parts(k, wrong), self.right_parts(k, wrong), same)

    def mistaken(self, mistake: Mistake, k: int, check: str = "") -> Iterable[Behavior]:
        """What a mistake comes to on a case, in each of its spellings: all that might explain why this check is missed,
        or without a check some of what is wrong."""
        answer = self.answers[k]
        checked = isinstance(answer, Program) and answer.checked
        both = len(self.exercise.mistakes) + self.exercise.mistakes.index(mistake) < MOST_MADE
        spelled = mistaken_on(self.exercise, mistake, self.cases[k], checked=checked)
        return itertools.islice(spelled, MOST_SPELLINGS if both else 1)

    def makes(self, alike: Alike, mistake: Mistake, k: int, check: str) -> bool:
        """Whether the answer to a case is like this mistake's, however that is spelled."""
        return any(self.same(alike, k, wrong) for wrong in self.mistaken(mistake, k, check))

    def same(self, alike: Alike, k: int, wrong: Behavior) -> bool:
        return same_problem(self.behaviors[k], wrong) or alike(self.cases[k], self.behaviors[k], wrong)

    def misses(self, check: str, case: int, wrong: Behavior) -> bool:
        """Whether a wrong answer to a case misses this check."""
        judgment = type(self.judgment)(
            self.exercise, [self.cases[case]], cast(list[Answer], [wrong]), self.judgment.runners
        )
        judgment.behaviors = [wrong]  # it has been run
        return judgment.misses(check, 0)


def mistaken_on(exercise: Exercise, mistake: Mistake, case: Case, *, checked: bool = False) -> Iterator[Behavior]:
    """What a mistake comes to on a case, in each of its spellings, one by one: that which is `checked` first, or last.

    (With shard_map's check off JAX makes a program of most.)
    """
    numbers = range(len(mistake.spellings()))
    return (_spelled_on(exercise, mistake, case, n) for n in (numbers[::-1] if checked else numbers))


@functools.lru_cache(maxsize=2048)
def _spelled_on(exercise: Exercise, mistake: Mistake, case: Case, spelling: int) -> Behavior:
    """Cached: a class makes it again and again."""
    (answer,) = collect(exercise.form, asks(exercise, [case]), mistake.spellings()[spelling])
    return HERE[type(answer)](answer, case) if type(answer) in HERE else answer


def same_problem(one: Behavior, other: Behavior) -> bool:
    """Whether both are errors, and the same but for names."""
    return isinstance(one, Problem) and isinstance(other, Problem) and _gist(one) == _gist(other)


def _gist(problem: Problem) -> tuple[object, ...]:
    """An error without the names that differ from one spelling of a program to the next."""
    first = problem.message.strip().splitlines()[0] if problem.message.strip() else ""
    names = r"<[^>]*>|occurs at source: .*|at \S+:\d+|function \S+|\w+ at (?!key path)|argument \S+ of .+? with"
    return problem.error, re.sub(names, "·", first), problem.operands, problem.refusal
