"""The ladder that the answers to an exercise climb, whatever its form: checks, the cheapest first.

Each rung is tried on every case, and after the first miss the rest are not tried, so that a student hears one thing
at a time. A missed rung is then named: by the mistake that behaves the same, else by what the difference itself gives
away, else by the first difference and nothing more.
"""

from __future__ import annotations

import functools
import itertools
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeGuard, cast

from grader.arrays.numbers import same_value
from grader.exercises.answers import Answer, Problem, Script, Value
from grader.exercises.case import Case
from grader.exercises.collecting import asks, collect
from grader.exercises.exercise import Exercise, Mistake, ValueExercise
from grader.exercises.verdict import Blamed, Outcome, Score, Verdict
from grader.judging import together
from grader.judging.behaviour import Execution
from grader.judging.both import BOTH, Shown, pair_that_explains, shown_in
from grader.judging.compilations import Compilation, run_or_compile
from grader.judging.describing import describe
from grader.judging.miss import Miss, unanswered
from grader.judging.nothing import NO_POINTS
from grader.judging.repaired import repair_words
from grader.processes.launch import Launch
from grader.programs.origins import ERROR, VALUE
from grader.programs.program import Program
from grader.programs.repairs import Repair

# What an answer comes to: itself, or what became of it where it is something to run.
Done = Answer | Execution | Compilation | Launch
Alike = Callable[[Case, Any, Any], bool]
# (What an answer does is known, not how its author came to it: others come to the same another way. So a mistake is
# described under a condition: none of its sentences is claimed of this answer.)
KNOWN = "A known mistake gives exactly this; is it yours? If so:"
KNOWN_NEARLY = "A known mistake gives nearly this; is it yours? If so:"
TWO_KNOWN = "All that is wrong here is as two known mistakes make it, each in a part of it; are they yours? If so:"
# What a mistake in our own code raises. (An evaluator that is gone, or a machine without memory, is none.)
FAULTS = ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError
MOST_SPELLINGS = 2  # of a mistake (`Mistake.spellings`)
WHERE_WRONG = "Some cases come out right. Where one is wrong, it is as if this had been done:"
Runners = Mapping[type, Callable[[Any, Case], Done]]
HERE: Runners = {Program: run_or_compile, Script: together.start}


@dataclass(frozen=True)
class Rung:
    """One check: its worth in points, and why the answer to a case misses it, if it does."""

    check: str
    worth: float
    miss: Callable[[int], Miss | None]


@dataclass(frozen=True)
class Hint:
    """What is said of a miss besides the difference: the mistake that does the same, or the change that would help."""

    words: str = ""
    mistake: str = ""
    repair: Repair | None = None


class Ladder(ABC):
    """The answers to the cases of one exercise, and the rungs they have to climb. One subclass for each form."""

    runs: ClassVar[type | None] = None  # the kind of answer that is run before it is judged
    between: ClassVar[str] = "\n\n"  # what stands between the difference and the hint
    forgiving: ClassVar[bool] = True  # of faults in hints; our own tests are not

    def __init__(self, exercise: Exercise, cases: Sequence[Case], answers: Sequence[Answer], runners: Runners = HERE):
        self.exercise, self.cases, self.answers, self.runners = exercise, cases, answers, runners

    @property
    @abstractmethod
    def rungs(self) -> Sequence[Rung]: ...

    def likenesses(self, check: str) -> Sequence[Alike]:
        """In what two answers to a case have to be alike for one to explain why the other misses a check: the
        strictest first."""
        return []

    def witnesses(self, failing: int) -> Sequence[int]:
        """The cases, besides the failing one, on which a mistake must do the same to be believed."""
        return [k for k in range(len(self.cases)) if k != failing]

    def parts(self, k: int, done: Done) -> Sequence[Any]:
        """What may be wrong each for itself in an answer to a case; nothing where that cannot be told."""
        return ()

    def right_parts(self, k: int, done: Done) -> Sequence[bool]:
        """Which of those are right."""
        return ()

    def same_part(self, k: int, one: Any, other: Any) -> bool:
        """Whether two parts are the same."""
        return False

    def signature(self, check: str, k: int) -> str:
        """What the miss of a case gives away when no mistake behaves the same."""
        return ""

    def repairs(self, check: str, k: int) -> tuple[Repair | None, Mistake | None]:
        """The one change after which a program would not miss this check in any case; or after which only a mistake
        would be left."""
        return None, None

    def deviation(self, check: str, k: int) -> str:
        """Of which right answer this is the result, but for one thing; "" where none is found."""
        return ""

    def remaining(self, check: str, k: int) -> str:
        """What is said where nothing else is found."""
        return ""

    def is_untouched(self, k: int) -> bool:
        """Whether an answer that misses a check on this case does what the formula does where nothing is done."""
        return False

    def blamed(self, check: str, k: int, miss: Miss, hint: Hint) -> Blamed | None:
        """What of the answer to a case its miss is about; an answer that stops has but one place, and so has a value
        that is handed back."""
        if isinstance(self.done[k], Value):
            return Blamed(k, (0,), (VALUE,), "returned")
        return Blamed(k, (0,), (ERROR,)) if isinstance(self.done[k], Problem) else None

    def score(self) -> Score | None:
        """How a right answer compares with the compiler's."""
        return None

    def where(self, k: int) -> str:
        """The case in which a check was missed, where the words do not tell it."""
        return describe(self.cases[k])

    @functools.cached_property
    def done(self) -> list[Done]:
        """What the answers come to."""
        return [
            self.runners[self.runs](answer, case) if self.runs and isinstance(answer, self.runs) else answer
            for case, answer in zip(self.cases, self.answers, strict=True)
        ]

    def verdict(self) -> Verdict:
        first = self.answers[0]
        return unanswered(self.exercise, first) if is_absent(first) else self.climbed()

    def climbed(self) -> Verdict:
        """How far the answers come."""
        name, rungs = self.exercise.name, self.rungs
        first = self.first_miss()
        number = first[0] if first else len(rungs)
        floor = sum(rung.worth for rung in rungs[:number])
        idle = first is not None and floor > 0 and self.is_untouched(first[1])
        earned = tuple(Outcome.earned(name, r.check, 0.0 if idle else r.worth) for r in rungs[:number])
        if first is None:
            return Verdict(name, earned, score=self.score())
        rung, k, miss = rungs[number], *first[1:]
        if idle:
            rung, miss = replace(rung, worth=rung.worth + floor), replace(miss, words=f"{miss.words}\n\n{NO_POINTS}")
        rest = (Outcome.untried(name, r.check, r.worth, rung.check) for r in rungs[number + 1 :])
        hint = self.hint_if_any(rung.check, k)
        outcomes = (*earned, self.missed(rung, k, miss, hint), *rest)
        blamed = self.blamed(rung.check, k, miss, hint)
        return Verdict(
            name, outcomes, self.where(k), miss.expected, miss.found, miss.ratios, repair=hint.repair, blamed=blamed
        )

    def first_miss(self) -> tuple[int, int, Miss] | None:
        """The first rung that is missed, in which case, and why."""
        tried = ((n, k, rung.miss(k)) for n, rung in enumerate(self.rungs) for k in range(len(self.cases)))
        return next(((n, k, miss) for n, k, miss in tried if miss), None)

    def missed(self, rung: Rung, k: int, miss: Miss, hint: Hint) -> Outcome:
        """The outcome of a rung that is missed in a case."""
        words = self.between.join(filter(None, (miss.words, hint.words, self.exercise.where_taught)))
        return Outcome.missed(self.exercise.name, rung.check, rung.worth, words, hint.mistake)

    def hint_if_any(self, check: str, k: int) -> Hint:
        """The hint; none where working it out fails, which is our fault: nobody is to lose the verdict by it."""
        try:
            return self.hint(check, k)
        except FAULTS as error:
            if not self.forgiving:
                raise
            logging.getLogger(__name__).warning("No hint could be worked out (%s: %s).", type(error).__name__, error)
            return Hint()

    def hint(self, check: str, k: int) -> Hint:
        """What goes with the first difference, by the one rule of feedback: one hint, no more."""
        if mistake := self.explanation(check, k):
            return Hint(f"{KNOWN if self.is_exact(mistake, k) else KNOWN_NEARLY} {mistake.words}", mistake.name)
        if pair := self.pair(check, k):
            return Hint(f"{TWO_KNOWN}\n\n{pair[0].words}\n\n{pair[1].words}", BOTH.join(m.name for m in pair))
        stops = isinstance(self.done[k], Problem)  # then it costs little to make mistakes in all cases
        if stops and (hint := self._hint_where_wrong(check, k)):
            return hint
        if words := self.signature(check, k):
            return Hint(words)
        repair, left = self.repairs(check, k)
        if repair is not None:
            return Hint(repair_words(repair, left.words if left else ""), left.name if left else "", repair)
        if words := self.deviation(check, k):
            return Hint(words)
        return (None if stops else self._hint_where_wrong(check, k)) or Hint(self.remaining(check, k))

    def is_exact(self, mistake: Mistake, k: int) -> bool:
        """Whether it gives the answer itself, where an exercise calls others the same, or an error is like another."""
        found = self.done[k]
        if isinstance(found, Problem):
            return any(same_problem(found, wrong) for wrong in self.mistaken(mistake, k))
        own_way = isinstance(self.exercise, ValueExercise) and self.exercise.same is not None
        if not own_way or not isinstance(found, Value):
            return True
        made = (wrong.value for wrong in self.mistaken(mistake, k) if isinstance(wrong, Value))
        return any(same_value(found.value, value) for value in made)

    def _hint_where_wrong(self, check: str, k: int) -> Hint | None:
        mistake = self.explanation_where_wrong(check, k)
        return Hint(f"{WHERE_WRONG}\n\n{mistake.words}", mistake.name) if mistake else None

    def explanation(self, check: str, failing: int) -> Mistake | None:
        """The mistake that does the same as the answer: on the failing case, where it misses the same check, and on
        the other cases that bear witness."""
        # A second spelling is made only where no mistake's first one explains it: to make one takes time.
        for alike, spelling in itertools.product(self.likenesses(check), range(MOST_SPELLINGS)):
            for mistake in self.exercise.mistakes:
                if any(
                    self._same(alike, failing, wrong) and self._misses(check, failing, wrong)
                    for wrong in itertools.islice(self.mistaken(mistake, failing, check), spelling, spelling + 1)
                ) and all(self.makes(alike, mistake, k, check) for k in self.witnesses(failing)):
                    return mistake
        return None

    def explanation_where_wrong(self, check: str, failing: int) -> Mistake | None:
        """The mistake that does the same in all cases that miss a check, and these are on several meshes, of an answer
        that is right in others: a choice may have led it another way there."""
        (rung,) = (rung for rung in self.rungs if rung.check == check)
        failed = [k for k in range(len(self.cases)) if rung.miss(k)]
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
        tried = [failing, *self.witnesses(failing)] if check == "values" else []
        right = {k: self.right_parts(k, self.done[k]) for k in tried}
        wrong = frozenset((k, n) for k in tried for n, well in enumerate(right[k]) if not well)
        if len(wrong) < 2:
            return None
        each = [Shown(m.name, parts) for m in self.exercise.mistakes if (parts := self._shows(m, tried)) is not None]
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

    def _shown_on(self, k: int, wrong: Done) -> frozenset[int] | None:
        same = functools.partial(self.same_part, k)
        return shown_in(self.parts(k, self.done[k]), self.parts(k, wrong), self.right_parts(k, wrong), same)

    def mistaken(self, mistake: Mistake, k: int, check: str = "") -> Iterable[Done]:
        """What a mistake comes to on a case, in each of its spellings: all that might explain why this check is missed,
        or without a check some of what is wrong."""
        answer = self.answers[k]
        checked = isinstance(answer, Program) and answer.checked
        return mistaken_on(self.exercise, mistake, self.cases[k], checked=checked)

    def makes(self, alike: Alike, mistake: Mistake, k: int, check: str) -> bool:
        """Whether the answer to a case is like this mistake's, however that is spelled."""
        return any(self._same(alike, k, wrong) for wrong in self.mistaken(mistake, k, check))

    def _same(self, alike: Alike, k: int, wrong: Done) -> bool:
        return same_problem(self.done[k], wrong) or alike(self.cases[k], self.done[k], wrong)

    def _misses(self, check: str, k: int, wrong: Done) -> bool:
        """Whether a wrong answer to a case misses this check."""
        ladder = type(self)(self.exercise, [self.cases[k]], cast(list[Answer], [wrong]), self.runners)
        ladder.done = [wrong]  # it has been run
        return any(rung.miss(0) for rung in ladder.rungs if rung.check == check)


def is_absent(answer: Answer) -> TypeGuard[Problem]:
    return isinstance(answer, Problem) and answer.kind in ("missing", "starter")


def mistaken_on(exercise: Exercise, mistake: Mistake, case: Case, *, checked: bool = False) -> Iterator[Done]:
    """What a mistake comes to on a case, in each of its spellings, one by one: that which is `checked` first, or last.

    (With shard_map's check off JAX makes a program of most.)
    """
    numbers = range(len(mistake.spellings()))
    return (_spelled_on(exercise, mistake, case, n) for n in (numbers[::-1] if checked else numbers))


@functools.lru_cache(maxsize=2048)
def _spelled_on(exercise: Exercise, mistake: Mistake, case: Case, spelling: int) -> Done:
    """Cached: a class makes it again and again."""
    (answer,) = collect(exercise.form, asks(exercise, [case]), mistake.spellings()[spelling])
    return HERE[type(answer)](answer, case) if type(answer) in HERE else answer


def same_problem(one: Done, other: Done) -> bool:
    """Whether both are errors, and the same but for names."""
    return isinstance(one, Problem) and isinstance(other, Problem) and _gist(one) == _gist(other)


def _gist(problem: Problem) -> tuple[str, str, tuple[str, ...]]:
    """An error without the names that differ from one spelling of a program to the next."""
    first = problem.message.strip().splitlines()[0] if problem.message.strip() else ""
    names = r"<[^>]*>|occurs at source: .*|at \S+:\d+|function \S+|\w+ at (?!key path)|argument \S+ of .+? with"
    return problem.error, re.sub(names, "·", first), problem.operands
