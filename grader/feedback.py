"""A Verdict as text for a terminal, and as a card for a notebook.

A card has its parts in one order: the headline, what was expected and found, where, the cause, one question; then the
student's own line, the test case, and a picture. Everything that a student's program can have a hand in is escaped:
cards are shown to instructors too.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from grader.arrays.ratios import as_html, as_text, furthest
from grader.arrays.words import as_inline_html, one_line
from grader.exercises.exercise import Exercise
from grader.exercises.verdict import Outcome, Score, Verdict, explained_rows
from grader.programs.origins import LONGEST_LINE, Line
from grader.wording import Said, in_short, together
from grader.wording.checks import CHECKS

# White text on any of them has a contrast of 4.5 and more.
GOOD, PART, BAD, OPEN = "#1a7f4b", "#8f5a0a", "#b23b3b", "#5b6470"
WIDTH = 92
_MOST_DRAWN = 16  # devices of a picture
QUIET = "opacity:.75;font-size:90%"
BUTTON = "display:inline-block;cursor:pointer;border:1px solid;border-radius:4px;padding:0 .6em;font-size:90%"


@dataclass(frozen=True)
class Offer:
    """That an answer may be watched, line by line; `replay` is the page on which it is, where there is one.

    This HTML is in the card as it is: it is not a stranger's.
    """

    exercise: str
    replay: str = ""

    @property
    def words(self) -> str:
        return f'Watch it, line by line: `grader.watch("{self.exercise}", {self.exercise})`'

    @property
    def html(self) -> str:
        if not self.replay:
            return f'<div style="{QUIET}">{as_inline_html(self.words)}</div>'
        summary = f'<summary style="{BUTTON}">▸ Watch it, line by line, on a small case</summary>'
        return f'<details style="margin:.3em 0">{summary}{self.replay}</details>'


def plain_card(verdict: Verdict, exercise: Exercise | None = None, offer: Offer | None = None) -> str:
    """The verdict in plain text: the points, the checks, and what to look at next."""
    parts = [
        f"{_state(verdict)[0]} · {verdict.exercise} · {_points(verdict)}\n{_ladder(verdict)}",
        explanation(verdict, exercise),
        "\n".join(as_text(*furthest(verdict.ratios))),
        f"Test case: {in_short(verdict.where)}" if verdict.where and not verdict.passed else "",
        _score(verdict.score) if verdict.score else "",
        _timetable(verdict)[0] if verdict.orders else "",
        offer.words if offer else "",
    ]
    lines = "\n\n".join(filter(None, parts)).splitlines()
    return "\n".join(line.rstrip() for line in lines)


def explanation(verdict: Verdict, exercise: Exercise | None = None) -> str:
    """What a card says of an answer that isn't correct, with the student's own lines, as plain text."""
    if verdict.passed:
        return ""
    said = "\n\n".join(part for said in _told(verdict, exercise) for part in _parts(said))
    return "\n\n".join(filter(None, [_wrapped(said), "\n".join(_lines_as_text(verdict))]))


def card(
    verdict: Verdict,
    exercise: Exercise | None = None,
    offer: Offer | None = None,
    picture: Callable[[Verdict], str] | None = None,
) -> str:
    """The verdict as HTML of its own: no script but a replay's, no style sheet, readable on light and dark pages.

    `picture` is `grader.feedback.picture`, or one that remembers what it drew.
    """
    state, colour = _state(verdict)
    marked = f"background:{colour};color:white;padding:.1em .5em;border-radius:3px"
    parts = [
        f'<div style="border-left:4px solid {colour};padding:.5em .9em;margin:.3em 0;max-width:60em;line-height:1.45">',
        f'<div><strong style="{marked}">{state}</strong> '
        f"<code>{html.escape(verdict.exercise)}</code> · {html.escape(_points(verdict))}</div>",
        offer.html if offer else "",
        _steps(verdict),
        f"<div>{html.escape(_score(verdict.score))}</div>" if verdict.score else "",
    ]
    if not verdict.passed:
        parts += map(_as_html, _told(verdict, exercise))
        parts += [_lines_as_html(verdict), as_html(*furthest(verdict.ratios)), _where(verdict)]
    return "".join([*parts, (picture or pictures_of)(verdict), "</div>"])


def has_picture(verdict: Verdict) -> bool:
    """Whether a card has a picture: to draw it takes half a second."""
    expected, found = verdict.expected, verdict.found
    return bool(verdict.orders) or (
        not (verdict.passed or expected is None or found is None)
        and max(len(expected.shape), len(found.shape)) <= 2
        and len(expected.indices) <= _MOST_DRAWN
    )


def pictures_of(verdict: Verdict) -> str:
    """The picture on a card, as SVG: a pipeline's timetable, or what the devices should hold beside what they do."""
    if not has_picture(verdict):
        return ""
    if verdict.orders:
        return _timetable(verdict)[1]
    from grader.draw import compare  # matplotlib takes its time: only when there is something to show

    assert verdict.expected is not None and verdict.found is not None
    return compare(verdict.expected, verdict.found).svg(";max-height:32em")


def _timetable(verdict: Verdict) -> tuple[str, str]:
    """As text, and as SVG."""
    from grader.draw import timetable  # matplotlib takes its time

    picture = timetable(verdict.orders)
    return picture.facts, picture.svg()


def _told(verdict: Verdict, exercise: Exercise | None) -> list[Said]:
    """What a card says: why a check was missed; of a table, why the first few rows are wrong."""
    rows = explained_rows(verdict.outcomes) or ([verdict.failure] if verdict.failure else [])
    return [together(row.findings, exercise) for row in rows]


def _parts(said: Said) -> list[str]:
    """What is said, in paragraphs, the question last."""
    question = f"→ {said.question}" if said.question else ""
    return [part for part in (said.headline, *_facts(said), said.cause, question) if part]


def _facts(said: Said) -> tuple[str, str]:
    """What was expected and found, then the detail; where nothing was, such as of an error, the detail comes first."""
    values = _values(said)
    return (values, said.detail) if said.expected or said.found else (said.detail, values)


def _values(said: Said) -> str:
    """What was expected and found, and where: on one line if that is short."""
    named = {"Expected": said.expected, "Found": said.found, "Where:": said.where}
    *values, where = (f"{name} {value}" if value else "" for name, value in named.items())
    told = " · ".join(filter(None, values))
    gap = " · " if len(told) + len(where) < WIDTH else "\n\n"
    return gap.join(filter(None, [told, where]))


def _as_html(said: Said) -> str:
    headline = f"<strong>{as_inline_html(said.headline)}</strong>" if said.headline else ""
    first, second = _facts(said)
    above, below = (first, second) if first == _values(said) else ("", f"{first}\n\n{second}")
    top = "<br>".join(filter(None, [headline, *map(as_inline_html, above.split("\n\n"))]))
    question = f"<strong>{as_inline_html(said.question)}</strong>" if said.question else ""
    middle = _split(f"{below}\n\n{said.cause}")
    quoted = (as_inline_html(part).replace("\n- ", "<br>– ") for part in middle)
    return "".join(f'<p style="margin:.5em 0">{part}</p>' for part in (top, *quoted, question) if part)


def _split(words: str) -> list[str]:
    return [part for part in re.split(r"\n\s*\n", words.strip()) if part]


def _score(score: Score) -> str:
    """What each device sends: what is enough, the answer's, the compiler's."""
    told = f"Target {score.par:,} B · yours {score.yours:,} B · compiler {score.compilers:,} B"
    if score.star:
        return f"{told} · ★ You beat the compiler."
    if score.yours == score.compilers:
        return f"{told} · You match the compiler."
    return f"{told} · The compiler sends less. What does it do that you don't?"


def _wrapped(words: str) -> str:
    """Paragraphs, and the items of lists in them, each wrapped anew: line breaks of a source mean nothing."""
    return "\n\n".join("\n".join(map(_filled, re.split(r"\n(?=- )", part))) for part in _split(words))


def _filled(part: str) -> str:
    return textwrap.fill(
        " ".join(part.split()), WIDTH, subsequent_indent="  " if part.startswith("- ") else "", break_on_hyphens=False
    )


def _points(verdict: Verdict) -> str:
    return f"{verdict.points:g} of {verdict.worth:g} points"


def _ladder(verdict: Verdict) -> str:
    return "  ".join(_rung(verdict, outcome) for outcome in verdict.outcomes)


def _rung(verdict: Verdict, outcome: Outcome) -> str:
    """A check: whether it is passed, and its points."""
    sign = "✓" if outcome.passed else "○" if outcome.open else "✗" if outcome.tried else "·"
    several = len(verdict.outcomes) > 1 and outcome.worth
    return f"{sign} {outcome.check}{f' {outcome.points:g}/{outcome.worth:g}' if several else ''}"


def _state(verdict: Verdict) -> tuple[str, str]:
    """The verdict in a word or two, and their color."""
    failure = verdict.failure
    if failure is None:
        return "Correct", GOOD
    if verdict.points == verdict.worth > 0:
        return "Correct, with a note", PART
    if failure.open:
        return ("Correct so far", PART) if verdict.points else ("Not answered", OPEN)
    return ("Partly correct", PART) if verdict.points else ("Not yet", BAD)


def _steps(verdict: Verdict) -> str:
    """The checks; of an answer that is not there the headline has said all."""
    if len(verdict.outcomes) == 1 and verdict.outcomes[0].open:
        return ""
    rungs = (
        f'<span title="{html.escape(CHECKS.get(outcome.check, ""))}">{html.escape(_rung(verdict, outcome))}</span>'
        for outcome in verdict.outcomes
    )
    return f'<div style="{QUIET}">{" &nbsp;".join(rungs)}</div>'


def _lines_as_html(verdict: Verdict) -> str:
    """The student's own lines, what is meant in them underlined; of strangers' text nothing but letters is left."""
    if not verdict.lines:
        return ""
    return f'<div style="margin:.5em 0">{"".join(map(_line, _leads(verdict), verdict.lines))}</div>'


def _line(lead: str, line: Line) -> str:
    before, meant, after = map(html.escape, _in_three(line))
    underlined = f'<u style="text-decoration:underline 2px;text-underline-offset:3px">{meant}</u>' if meant else ""
    return (
        f"<div>{as_inline_html(lead)}</div>"
        '<code dir="ltr" style="display:block;unicode-bidi:isolate;white-space:pre-wrap;overflow-wrap:anywhere;'
        f'padding:.15em .5em">{before}{underlined}{after}</code>'
    )


def _in_three(line: Line) -> tuple[str, str, str]:
    """A line before, in and after what is meant."""
    text = one_line(line.text, LONGEST_LINE)
    return text[: line.start], text[line.start : line.end], text[line.end :]


def _leads(verdict: Verdict) -> list[str]:
    """What is said of each line before it is shown."""
    blamed = verdict.blamed
    if blamed and blamed.why == "all":
        first = "Your program communicates in" if blamed.numbers else "Your arrays are sharded in"
        return [f"{'and in' if k else first} {_place(line)}:" for k, line in enumerate(verdict.lines)]
    why = blamed.why if blamed else ""
    first = {"most": "Most of the communication is in", "returned": "It is returned in"}.get(why, "In")
    return [f"{first} {_place(line)}{', in the backward pass' if line.backward else ''}:" for line in verdict.lines]


def _place(line: Line) -> str:
    if not line.function.isidentifier():  # a lambda, or no function at all
        return f"your cell, line {line.number}"
    return f"`{line.function}`, line {line.number} of your cell"


def _lines_as_text(verdict: Verdict) -> list[str]:
    """The student's own lines, each with what is said of it before, and marks under what is meant."""
    shown = []
    for lead, line in zip(_leads(verdict), verdict.lines, strict=True):
        before, meant, after = _in_three(line)
        marks = f"\n    {' ' * len(before)}{'^' * len(meant)}" if meant else ""
        shown.append(f"{lead}\n    {before}{meant}{after}{marks}")
    return shown


def _where(verdict: Verdict) -> str:
    if not verdict.where:
        return ""
    return f'<p style="margin:.5em 0;{QUIET}">Test case: {as_inline_html(in_short(verdict.where))}</p>'
