"""Judges every recorded answer and prints a table by lesson, one by search, and what students are told: `make truth`.

    python tests/recorded_all.py [LESSON ...]  judge, list what changed, and print the tables
      --half HALF                              only one half: "tuning" or "held_out"
      --hurried N                              also judge N wrong answers with all clocks 10 times as fast
      --write found                            keep what is found today
      --write marks                            keep today's points, checks, and mistakes too

Read the list of changes before you keep marks: a right answer that is refused is a bug.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import recorded
from apart import Apart
from recorded import HALVES, LESSONS, Replayed, Row, is_marked_alike, kept, rows, spread

LIMIT = 300  # seconds for an answer
CAPSTONE = "22_capstone"
TOLD = "known", "search", "judge", "bare"
NO_SEARCH = "(no search: what the judge saw)"
# They say what was expected and what was found, or that something is missing. Any other finding says what is wrong.
DIFFERENCES = {
    "WrongValue",
    "WrongKey",
    "WrongCount",
    "OnWrongDevices",
    "WrongShard",
    "WrongBlock",
    "ShouldRaise",
    "NotPlain",
    "WrongRow",
    "RowRefused",
    "RowAsks",
    "NoAnswerYet",
    "WrongElement",
    "WrongArrayCount",
    "WrongResultKeys",
    "WrongResultShape",
    "WrongResultDtype",
    "WrongSharding",
    "NoGradient",
    "WrongInProcess",
    "ProcessesSilent",
    "DidNotEnd",
    "NothingDone",
    "Raised",
    "Taught",
    "NotChecked",
    "GraderFailed",
    "TooLong",
    "Crashed",
}


@dataclass(frozen=True)
class Judged:
    """A recorded answer, and how it is judged today."""

    row: Row
    today: Replayed

    @property
    def refused(self) -> bool:
        """Whether it is wrong, and found to be so."""
        return not self.row.right and not self.today.passed

    @property
    def told(self) -> str:
        """What a student reads who wrote this: a known mistake, the finding of a search, what the judge saw, or only a
        difference."""
        telling = [n for n, one in enumerate(self.today.found) if one["is"] not in DIFFERENCES]
        if self.today.mistake or not telling:
            return "known" if self.today.mistake else "bare"
        return "search" if any(self.today.by[n] for n in telling) else "judge"


def judged(lesson: str, half: str = "") -> list[Judged]:
    """The answers of a lesson and how they are judged today, in a process of its own."""
    apart, every = Apart(LIMIT), []
    for row in rows(lesson):
        if half in ("", row.split):
            try:
                today = apart.call(recorded.replay, row, True)
            except Exception as error:  # the judge failed, which counts as a change
                today = Replayed(row.points, f"(the judge stopped: {error!r})", "")
            every.append(Judged(row, today))
    apart.end()
    return every


def changes(every: Iterable[Judged]) -> Iterable[str]:
    """A line for each answer whose marks changed, or what is found of it."""
    for one in every:
        row, today = one.row, one.today
        name = f"{row.lesson} {row.exercise} {row.name} ({'right' if row.right else 'wrong'})"
        if not is_marked_alike(row, today):
            was, now = ((each.check, each.mistake, dict(each.points)) for each in (row, today))
            yield f"{name}\n  marks were {was}\n  and are    {now}"
        elif list(row.found) != kept(today.found):
            yield f"{name}\n  findings were {list(row.found)}\n  and are       {kept(today.found)}"


def hurried_changes(every: Sequence[Judged], number: int) -> Iterable[str]:
    """A line for each of this many wrong answers of which something else is found if clocks go faster."""
    apart = Apart(LIMIT)
    for one in spread([one for one in every if one.refused], number):
        fast = apart.call(recorded.hurried, one.row).found
        if fast != one.today.found:
            yield f"{one.row.exercise} {one.row.name}\n  found {one.today.found}\n  in a hurry {fast}"
    apart.end()


HEADS = (
    *("right\naccepted", "right\nrefused", "wrong\nrejected", "wrong\npassed", "known\nmistake", "search"),
    *("judge", "bare", "told what\nand where", "marks\nchanged", "median\ns", "95th\ns"),
)


def summary(every: Sequence[Judged]) -> list[str]:
    """A line of the table by lesson."""
    right = Counter(one.today.passed for one in every if one.row.right)
    wrong = Counter(one.today.passed for one in every if not one.row.right)
    told = Counter(one.told for one in every if one.refused)
    changed = sum(not is_marked_alike(one.row, one.today) for one in every)
    counts = (
        right[True],
        right[False],
        wrong[False],
        wrong[True],
        *(told[k] for k in ("known", "search", "judge", "bare")),
    )
    return [*map(str, counts), _percent(told.total() - told["bare"], told.total()), str(changed), *seconds(every)]


def seconds(every: Sequence[Judged]) -> tuple[str, str]:
    """The processor seconds of an answer: the median, and the 95th percentile."""
    taken = sorted(one.today.seconds for one in every) or [0.0]
    return f"{statistics.median(taken):.2f}", f"{taken[len(taken) * 95 // 100]:.2f}"


def by_search(every: Sequence[Judged]) -> list[list[str]]:
    """For each search: of how many wrong answers its finding is the best, of how many only it found anything, and its
    share of the processor time of all answers."""
    best: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    for one in every:
        taken.update(one.today.searches)
        found = [by or NO_SEARCH for by, finding in zip(one.today.by, one.today.found, strict=True) if _tells(finding)]
        if one.refused and found:
            best.update(found[:1])
            alone.update(set(found) if len(set(found)) == 1 else ())
    all_seconds = sum(one.today.seconds for one in every)
    refused = sum(one.refused for one in every)
    names = sorted({*best, *taken}, key=lambda name: (-best[name], name))
    return [
        [name, str(best[name]), _percent(best[name], refused), str(alone[name]), _percent(taken[name], all_seconds)]
        for name in names
    ]


def _tells(finding) -> bool:
    return finding["is"] not in DIFFERENCES


def totals(every: Sequence[Judged]) -> Iterable[str]:
    """How many are told what is wrong and where, in each half; and how long an answer takes."""
    for half in HALVES:
        refused = [one for one in every if one.refused and one.row.split == half]
        told = sum(one.told != "bare" for one in refused)
        yield f"told what and where, {half}: {_percent(told, len(refused))} of {len(refused)} wrong answers"
    for name, some in (
        ("lessons 01 to 21", [one for one in every if one.row.lesson != CAPSTONE]),
        ("capstone", [one for one in every if one.row.lesson == CAPSTONE]),
    ):
        if some:
            yield "processor seconds for an answer, {}: median {}, 95th percentile {}".format(name, *seconds(some))


def _percent(some: float, of: float) -> str:
    return f"{100 * some / of:.1f} %" if of else ""


def keep(lesson: str, every: Sequence[Judged], marks: bool) -> None:
    """Write a lesson's rows with today's findings, and if `marks`, with today's marks."""
    new = {(one.row.exercise, one.row.name): _today(one, marks) for one in every}
    recorded.write(lesson, [new.get((row.exercise, row.name), row) for row in rows(lesson)])


def _today(one: Judged, marks: bool) -> Row:
    row, today = replace(one.row, found=kept(one.today.found)), one.today
    if not marks:
        return row
    split = row.split or recorded.split_of(row, today.mistake)
    return replace(row, split=split, points=today.points, check=today.check, mistake=today.mistake)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lessons", nargs="*", default=LESSONS, metavar="LESSON")
    parser.add_argument("--half", choices=HALVES, default="")
    parser.add_argument("--hurried", type=int, default=0, metavar="N")
    parser.add_argument("--write", choices=("found", "marks"), default="")
    chosen = parser.parse_args(arguments)
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"  # each runs once
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"  # XLA logs a lot about wrong answers
    every: list[Judged] = []
    for lesson in chosen.lessons:
        of_lesson = judged(lesson, chosen.half)
        for change in changes(of_lesson):
            print(change, flush=True)
        if chosen.write:
            keep(lesson, of_lesson, marks=chosen.write == "marks")
        every += of_lesson
    show(every)
    for change in hurried_changes(every, chosen.hurried) if chosen.hurried else ():
        print(change)


def show(every: Sequence[Judged]) -> None:
    """Print the tables and the totals."""
    from rich.console import Console  # not above: the student's side is tested where there is no rich
    from rich.table import Table

    lessons, searches = Table("lesson", *HEADS, show_footer=True), Table("search", "best", "share", "alone", "CPU")
    for lesson in dict.fromkeys(one.row.lesson for one in every):
        lessons.add_row(lesson, *summary([one for one in every if one.row.lesson == lesson]))
    for column, footer in zip(lessons.columns, ["all", *summary(every)], strict=True):
        column.footer, column.justify = footer, "left" if footer == "all" else "right"
    for line in by_search(every):
        searches.add_row(*line)
    console = Console(width=150, soft_wrap=True, highlight=False)
    console.print(lessons, searches, *totals(every), sep="\n")


if __name__ == "__main__":
    main()
