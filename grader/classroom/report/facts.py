"""What a class's papers say of a lesson. Facts only: `page` draws them."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from grader.classroom.grading.digest import STATES, Digest
from grader.classroom.report.likeness import Alikeness, unusual_likeness
from grader.classroom.report.papers import Paper

EXTREME = 0.27  # of a class at either end: Kelley (1939), where a difference between the two ends is told most surely
FEWEST = 8  # students of whom two such ends say something
BINS = 10
DOCSTRING = re.compile(r"(\"\"\"|''').*?\1", re.DOTALL)
NO_STEP = ("#", "def ", "import ", "from ")  # how lines begin that do nothing


@dataclass(frozen=True)
class ExerciseFacts:
    """How a class did on one exercise.

    `counts`: answers by state. `share`: the mean share of its points, 1 where everybody has all (its difficulty, as the
    test theorists call it). `lost`: the points that the class lacks; none of a bonus. `discrimination`: that share
    among the best 27 % of the class less that among the last 27 %; None where the class is too small. `over_par`: of
    the right programs that are held against a par of bytes, how many times the par the median one sends; None where
    none is.
    """

    name: str
    worth: float
    counts: Mapping[str, int]
    share: float
    lost: float
    discrimination: float | None
    over_par: float | None
    at_par: int


@dataclass(frozen=True)
class MissFacts:
    """What several students missed in the same way: by name, or where nothing explains it by the check alone.

    `example` is the first of them, `line` a line of one of them that tells their answers from the others.
    """

    exercise: str
    what: str
    students: tuple[str, ...]
    example: Digest
    line: str


@dataclass(frozen=True)
class LessonFacts:
    """All facts of one lesson's page; `papers` are in order of points, the most first."""

    lesson: str
    papers: tuple[Paper, ...]
    exercises: tuple[ExerciseFacts, ...]
    mistakes: tuple[MissFacts, ...]
    unnamed: tuple[MissFacts, ...]
    alike: tuple[Alikeness, ...]

    @property
    def distribution(self) -> list[int]:
        """How many papers have up to 10 %, 20 %, … of all points."""
        bins = Counter(min(int(BINS * paper.share), BINS - 1) for paper in self.papers)
        return [bins[k] for k in range(BINS)]

    @property
    def median(self) -> float:
        return statistics.median(paper.share for paper in self.papers)


def facts_of(lesson: str, papers: Sequence[Paper]) -> LessonFacts:
    """What these papers, at least one, say."""
    ranked = tuple(sorted(papers, key=lambda paper: (-paper.share, paper.student)))
    names = list(dict.fromkeys(name for paper in papers for name in (*paper.digests, *paper.points)))
    misses = list(_misses(ranked))
    groups = {paper.student: paper.terms.group for paper in papers}
    return LessonFacts(
        lesson,
        ranked,
        tuple(_exercise(name, ranked) for name in names),
        tuple(miss for miss, named in misses if named),
        tuple(miss for miss, named in misses if not named),
        tuple(pair for pair in unusual_likeness(ranked) if pair.students[1] not in groups[pair.students[0]]),
    )


def _exercise(name: str, ranked: Sequence[Paper]) -> ExerciseFacts:
    found = [paper.digests[name] for paper in ranked if name in paper.digests]
    counts = Counter(one.state for one in found)
    worth = max(paper.worth.get(name, 0.0) for paper in ranked)
    over = [one.sent / one.par for one in found if one.state == "right" and one.par and one.sent is not None]
    return ExerciseFacts(
        name,
        worth,
        {state: counts[state] for state in STATES},
        _share(name, ranked),
        sum(paper.worth.get(name, 0.0) - paper.points.get(name, 0.0) for paper in ranked if name not in paper.bonus),
        discrimination(name, ranked),
        statistics.median(over) if over else None,
        sum(ratio <= 1 for ratio in over),
    )


def discrimination(name: str, ranked: Sequence[Paper]) -> float | None:
    """The mean share of an exercise's points among the first 27 % less that among the last; None for few papers."""
    if len(ranked) < FEWEST:
        return None
    end = round(EXTREME * len(ranked))
    return _share(name, ranked[:end]) - _share(name, ranked[-end:])


def _share(name: str, papers: Sequence[Paper]) -> float:
    return statistics.fmean(paper.points.get(name, 0.0) / (paper.worth.get(name) or 1) for paper in papers)


def _misses(ranked: Sequence[Paper]) -> Iterator[tuple[MissFacts, bool]]:
    """What was missed, and whether it has a name: what most students missed first. What is open is no miss."""
    groups: dict[tuple[str, str, bool], list[Paper]] = defaultdict(list)
    for paper in ranked:
        for one in paper.digests.values():
            if one.check and one.state != "open":
                groups[one.exercise, one.mistake or one.check, bool(one.mistake)].append(paper)
    for (name, what, named), made in sorted(groups.items(), key=lambda group: -len(group[1])):
        others = [paper.sources.get(name, "") for paper in ranked if paper not in made]
        line = telling_line([paper.sources.get(name, "") for paper in made], others)
        yield MissFacts(name, what, tuple(paper.student for paper in made), made[0].digests[name], line), named


def telling_line(made: Sequence[str], others: Sequence[str]) -> str:
    """The line of code that most of the answers `made` have and fewest of the others; the first of several.

    "" where there is no line that tells them apart.
    """
    ours, theirs = Counter(chain(*map(_lines, made))), Counter(chain(*map(_lines, others)))

    def tells(line: str) -> float:
        return ours[line] / len(made) - theirs[line] / max(len(others), 1)

    best = max(ours, key=tells, default="")
    return best if best and tells(best) > 0 else ""


def _lines(source: str) -> list[str]:
    """The different lines of an answer, without what it says to its reader, begins a function, or brings a name."""
    lines = (line.partition("  #")[0].strip() for line in DOCSTRING.sub("", source).splitlines())
    return list(dict.fromkeys(line for line in lines if line and not line.startswith(NO_STEP)))
