"""Judges every recorded answer and prints two tables, by lesson and by search: `make truth`.

    python tests/recorded_all.py [LESSON ...]  judge, list whose marks changed, and print the tables
      --half HALF                              only one half: "tuning" or "held_out"
      --jobs N                                 lessons side by side
      --write found                            keep what is found today
      --write marks                            keep today's points, checks and mistakes too

Read the list of changes before you keep marks: a right answer that is refused is a bug.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from apart import Apart
from recorded import HALVES, LESSONS, Replayed, Row, replay, rows, write

LIMIT = 120  # seconds for an answer
SHORTER = 300  # characters of what a list shows
HEADS = (
    *("right\naccepted", "right\nrefused", "wrong\nrejected", "wrong\npassed"),
    *("known\nmistake", "other\nfinding", "bare", "marks\nchanged", "median\ns", "95th\ns"),
)

Judged = list[tuple[Row, Replayed]]


def judged(lesson: str, half: str = "") -> Judged:
    """The answers of a lesson and how they are judged today, in a process of its own."""
    apart = Apart(LIMIT)
    replayed = []
    for row in rows(lesson):
        if half in ("", row.split):
            try:
                replayed.append((row, apart.call(replay, row)))
            except Exception as error:  # the judge failed, which counts as a change
                replayed.append((row, Replayed(row.points, f"(the judge stopped: {error!r})", "")))
    apart.end()
    return replayed


def changed(row: Row, today: Replayed) -> bool:
    """Whether an answer's marks are different from the recorded ones."""
    return (row.points, row.check, row.mistake) != (today.points, today.check, today.mistake)


def kind(row: Row, today: Replayed) -> str:
    """What a wrong answer's student is told: the known mistake, another finding, or only a difference."""
    if row.right or today.passed:
        return ""
    return "known" if today.mistake else "other" if today.found else "bare"


def summary(of: Judged) -> list[str]:
    """A line of the table by lesson."""
    right = Counter(today.passed for row, today in of if row.right)
    wrong = Counter(today.passed for row, today in of if not row.right)
    kinds = Counter(kind(row, today) for row, today in of)
    seconds = sorted(today.seconds for _, today in of) or [0.0]
    counts = (
        *(right[True], right[False], wrong[False], wrong[True]),
        *(kinds["known"], kinds["other"], kinds["bare"]),
        sum(changed(row, today) for row, today in of),
    )
    return [*map(str, counts), f"{statistics.median(seconds):.2f}", f"{seconds[len(seconds) * 95 // 100]:.2f}"]


def by_search(of: Judged) -> list[list[str]]:
    """For each search: how often its finding is the best, how often it is the only one, and how long it runs.

    Only the wrong answers without a known mistake count.
    """
    best, alone, seconds = Counter(), Counter(), defaultdict(list)
    searched = [today for row, today in of if kind(row, today) in ("other", "bare")]
    for today in searched:
        names = [finding.get("search", finding["kind"]) for finding in today.found]
        best.update(names[:1])
        alone.update(names if len(names) == 1 else [])
        for name, taken in today.searches.items():
            seconds[name].append(taken)
    share = 100 / max(1, len(searched))
    return [
        [name, str(best[name]), f"{best[name] * share:.1f} %", str(alone[name]), f"{sum(seconds[name]):.1f}"]
        for name in sorted({*best, *seconds}, key=lambda name: (-best[name], name))
    ]


def changes(of: Judged) -> Iterable[str]:
    """A line for each answer whose marks changed."""
    for row, today in of:
        if changed(row, today):
            before, now = (str((one.check, one.mistake, dict(one.points)))[:SHORTER] for one in (row, today))
            yield f"{row.exercise} {row.name} ({'right' if row.right else 'wrong'})\n  was {before}\n  is  {now}"


def keep(lesson: str, of: Judged, marks: bool) -> None:
    """Write a lesson's rows with today's findings, and if `marks`, with today's marks."""
    new = {row.name + row.exercise: _today(row, today, marks) for row, today in of}
    write(lesson, [new.get(row.name + row.exercise, row) for row in rows(lesson)])


def _today(row: Row, today: Replayed, marks: bool) -> Row:
    row = replace(row, found=today.found)
    return replace(row, points=today.points, check=today.check, mistake=today.mistake) if marks else row


def main(arguments: Sequence[str] | None = None) -> None:
    from rich.console import Console  # not above: the student's side is tested where there is no rich
    from rich.markup import escape
    from rich.table import Table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lessons", nargs="*", default=LESSONS, metavar="LESSON")
    parser.add_argument("--half", choices=HALVES, default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", choices=("found", "marks"), default="")
    chosen = parser.parse_args(arguments)
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"  # each runs once
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"  # XLA logs a lot about wrong answers
    console = Console(width=120, soft_wrap=True, highlight=False)
    with ThreadPoolExecutor(chosen.jobs) as pool:
        replayed = dict(pool.map(lambda lesson: (lesson, judged(lesson, chosen.half)), chosen.lessons))
    lessons = Table("lesson", *HEADS, show_footer=True)
    for lesson, of in replayed.items():
        for line in changes(of):
            console.print(escape(f"{lesson} {line}"))
        lessons.add_row(lesson, *summary(of))
        if chosen.write:
            keep(lesson, of, marks=chosen.write == "marks")
    every = [one for of in replayed.values() for one in of]
    for column, footer in zip(lessons.columns, ["all", *summary(every)], strict=True):
        column.footer, column.justify = footer, "left" if footer == "all" else "right"
    searches = Table("search", "best", "share", "alone", "CPU s")
    for line in by_search(every):
        searches.add_row(*line)
    console.print(lessons, searches)


if __name__ == "__main__":
    main()
