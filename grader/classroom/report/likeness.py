"""Unusual programs that several students have alike: a hint to look, never a verdict.

Two answers are the same program where their bytes are: these hold no name that their author chose. Most right answers
to a short exercise are alike, and that says nothing. A program that few have says more, and the same few in several
exercises say most; how many such pairs there would be if the exercises had nothing to do with each other is counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from grader.classroom.report.papers import Paper

UNUSUAL = 0.2  # a program that at most this part of the answers has, and at most FEW_STUDENTS of them
FEW_STUDENTS = 4
MOST_HINTS = 20  # that are shown


@dataclass(frozen=True)
class Alikeness:
    """Two students who have the same unusual programs in these exercises, and how many pairs with as many are to be
    expected in the class."""

    students: tuple[str, str]
    exercises: tuple[str, ...]
    expected: float


def unusual_likeness(papers: Sequence[Paper]) -> list[Alikeness]:
    """The pairs that have two unusual programs or more alike, those with most first."""
    names = dict.fromkeys(name for paper in papers for name in paper.digests)
    shared: dict[tuple[str, str], list[str]] = defaultdict(list)
    chances = []
    for name in names:
        groups, answers = _unusual_groups(name, papers)
        chances.append(sum(comb(len(group), 2) for group in groups) / max(comb(answers, 2), 1))
        for group in groups:
            for pair in combinations(sorted(group), 2):
                shared[pair].append(name)
    pairs = comb(len(papers), 2)
    found = [
        Alikeness(pair, tuple(where), pairs * at_least(len(where), chances))
        for pair, where in shared.items()
        if len(where) > 1
    ]
    return sorted(found, key=lambda one: one.expected)[:MOST_HINTS]


def _unusual_groups(name: str, papers: Sequence[Paper]) -> tuple[list[list[str]], int]:
    """The students of each unusual program that more than one has, and how many programs there are."""
    groups: dict[str, list[str]] = defaultdict(list)
    for paper in papers:
        if name in paper.digests and (program := paper.digests[name].program):
            groups[program].append(paper.student)
    answers = sum(map(len, groups.values()))
    most = min(FEW_STUDENTS, max(2, int(UNUSUAL * answers)))
    return [group for group in groups.values() if 1 < len(group) <= most], answers


def at_least(count: int, chances: Sequence[float]) -> float:
    """The chance that at least so many of independent events happen, each of which has its own."""
    spread = np.ones(1)
    for chance in chances:
        spread = np.convolve(spread, [1 - chance, chance])
    return float(spread[count:].sum())
