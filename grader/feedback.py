"""A Verdict as text for a terminal, and as a card for a notebook.

Everything that a student's program can have a hand in is escaped: cards are shown to instructors too.
"""

from __future__ import annotations

import html
import re
import textwrap
from dataclasses import dataclass

from grader.arrays.ratios import as_html, as_text, furthest
from grader.arrays.words import as_inline_html, one_line
from grader.exercises.verdict import Outcome, Score, Verdict
from grader.programs.origins import LONGEST_LINE, Line

GOOD, PART, BAD, OPEN = (
    "#1a7f4b",
    "#8f5a0a",
    "#b23b3b",
    "#5b6470",
)  # white text on any of them has a contrast of 4.5 and more
WIDTH = 92
NO_LINES = "<!-- the lines of the cell -->"  # where a card shows them once they are known


@dataclass(frozen=True)
class Offer:
    """That an answer may be watched, line by line; `replay` is the page on which it is, where there is one.

    This HTML stands in the card as it is: it is not a stranger's.
    """

    exercise: str
    replay: str = ""

    @property
    def words(self) -> str:
        return f'Watch it, line by line: `grader.watch("{self.exercise}", {self.exercise})`'

    @property
    def html(self) -> str:
        if not self.replay:
            return f'<div style="opacity:.75;font-size:90%">{as_inline_html(self.words)}</div>'
        summary = '<summary style="cursor:pointer">Watch it, line by line, on a small case</summary>'
        return f'<details style="margin:.5em 0">{summary}{self.replay}</details>'


def plain_card(verdict: Verdict, offer: Offer | None = None) -> str:
    """The verdict in plain text: the marks, the ladder, and what to look at next."""
    lines = [f"{verdict.exercise}: {_points(verdict)}", _ladder(verdict)]
    if not verdict.passed:
        lines += ["", _wrapped(verdict.told)]
        lines += ["", *as_text(*furthest(verdict.ratios)), ""] if verdict.ratios else []
        lines += ["", *lines_as_text(verdict), ""] if verdict.lines else []
        lines += [f"In the case: {verdict.where}"] if verdict.where else []
    lines += [_score(verdict.score)] if verdict.score else []
    if verdict.orders:
        from grader.draw import timetable  # matplotlib takes its time

        lines += ["", timetable(verdict.orders).facts]
    lines += [offer.words] if offer else []
    return "\n".join(line.rstrip() for line in lines).strip()


def _score(score: Score) -> str:
    """What each device sends: what is enough, the answer's, the compiler's."""
    told = f"par {score.par:,} B · yours {score.yours:,} B · the compiler's {score.compilers:,} B"
    if score.star:
        return f"{told} · ★ You beat the compiler."
    if score.yours == score.compilers:
        return f"{told} · As few as the compiler's."
    return f"{told} · The compiler sends less. What does it do that you do not?"


def _wrapped(words: str) -> str:
    """Paragraphs, and the items of lists in them, each wrapped anew: line breaks of a source mean nothing."""
    paragraphs = (re.split(r"\n(?=- )", paragraph) for paragraph in re.split(r"\n\s*\n", words))
    return "\n\n".join("\n".join(map(_filled, parts)) for parts in paragraphs)


def _filled(part: str) -> str:
    return textwrap.fill(" ".join(part.split()), WIDTH, subsequent_indent="  " if part.startswith("- ") else "")


def _points(verdict: Verdict) -> str:
    return f"{verdict.points:g} of {verdict.worth:g} points"


def _ladder(verdict: Verdict) -> str:
    return "  ".join(f"{_sign(verdict, outcome)} {outcome.check}" for outcome in verdict.outcomes)


def _sign(verdict: Verdict, outcome: Outcome) -> str:
    if outcome.passed:
        return "✓"
    return "○" if outcome.open else "✗" if outcome.tried else "·"


def card(verdict: Verdict, offer: Offer | None = None) -> str:
    """The verdict as HTML of its own: no script but a replay's, no style sheet, readable on light and dark pages."""
    headline, colour = _headline(verdict)
    parts = [
        f'<div style="border-left:4px solid {colour};padding:.5em .9em;margin:.3em 0;max-width:60em;line-height:1.45">',
        f'<div><strong style="background:{colour};color:white;padding:.1em .5em;border-radius:3px">'
        f"{headline}</strong> "
        f"<code>{html.escape(verdict.exercise)}</code> · {html.escape(_points(verdict))}</div>",
        _steps(verdict),
        f"<div>{html.escape(_score(verdict.score))}</div>" if verdict.score else "",
    ]
    if not verdict.passed:
        parts += [
            _paragraphs(verdict.told),
            lines_as_html(verdict),
            as_html(*furthest(verdict.ratios)) if verdict.ratios else "",
            _where(verdict),
            _picture(verdict),
        ]
    if verdict.orders:
        from grader.draw import timetable  # matplotlib takes its time

        parts.append(timetable(verdict.orders).svg())
    whole = "".join([*parts, "</div>"])
    return with_offer(whole, offer) if offer else whole


def with_offer(card: str, offer: Offer) -> str:
    """A card that has been drawn, with an offer as its last part. (To draw it anew takes half a second.)"""
    return f"{card.removesuffix('</div>')}{offer.html}</div>"


def _headline(verdict: Verdict) -> tuple[str, str]:
    """The verdict in a word or two, and their colour."""
    failure = verdict.failure
    if failure is None:
        return "Right.", GOOD
    if verdict.points == verdict.worth:
        return "Right, but:", PART
    if failure.open:
        return ("Right so far.", PART) if verdict.points else ("Open.", OPEN)
    return ("Partly right.", PART) if verdict.points else ("Not yet.", BAD)


def _steps(verdict: Verdict) -> str:
    """The ladder; of an answer that is not there the headline has said all."""
    if len(verdict.outcomes) == 1 and verdict.outcomes[0].open:
        return ""
    return f'<div style="opacity:.75;font-size:90%">{html.escape(_ladder(verdict))}</div>'


def _paragraphs(words: str) -> str:
    shown = (as_inline_html(p).replace("\n- ", "<br>– ") for p in re.split(r"\n\s*\n", words))
    return "".join(f'<p style="margin:.5em 0">{p}</p>' for p in shown)


def with_lines_shown(card: str, verdict: Verdict) -> str:
    """A card that was drawn before its verdict had lines, with these."""
    return card.replace(NO_LINES, lines_as_html(verdict), 1)


def lines_as_html(verdict: Verdict) -> str:
    """The student's own lines, what is meant in them underlined; of strangers' text nothing but letters is left."""
    if not verdict.lines:
        return NO_LINES if verdict.blamed else ""
    return f'<div style="margin:.5em 0">{"".join(map(_line, _leads(verdict), verdict.lines))}</div>'


def _line(lead: str, line: Line) -> str:
    before, meant, after = map(html.escape, _in_three(line))
    underlined = f'<u style="text-decoration:underline 2px;text-underline-offset:3px">{meant}</u>' if meant else ""
    return (
        f"<div>{as_inline_html(lead)}</div>"
        '<code dir="ltr" style="display:block;unicode-bidi:isolate;white-space:pre;overflow:auto;'
        f'padding:.15em .5em">{before}{underlined}{after}</code>'
    )


def _in_three(line: Line) -> tuple[str, str, str]:
    """A line before, in and behind what is meant."""
    text = one_line(line.text, LONGEST_LINE)
    return text[: line.start], text[line.start : line.end], text[line.end :]


def _leads(verdict: Verdict) -> list[str]:
    """What is said of each line before it is shown."""
    blamed = verdict.blamed
    if blamed and blamed.why == "all":
        first = "Your devices exchange data in" if blamed.numbers else "Your arrays are divided in"
        return [f"{'and in' if k else first} {_place(line)}:" for k, line in enumerate(verdict.lines)]
    first = {"most": "Most of it is sent in", "returned": "It is returned in"}.get(blamed.why if blamed else "", "In")
    return [
        f"{first} {_place(line)}{', on the way back of its gradient' if line.backward else ''}:"
        for line in verdict.lines
    ]


def _place(line: Line) -> str:
    if not line.function.isidentifier():  # a lambda, or no function at all
        return f"your cell, line {line.number}"
    return f"`{line.function}`, line {line.number} of your cell"


def lines_as_text(verdict: Verdict) -> list[str]:
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
    return f'<p style="margin:.5em 0;opacity:.75;font-size:90%">In the case: {html.escape(verdict.where)}</p>'


def _picture(verdict: Verdict) -> str:
    if verdict.expected is None or verdict.found is None or len(verdict.expected.shape) > 2:
        return ""
    if len(verdict.found.shape) > 2 or len(verdict.expected.indices) > 16:
        return ""
    from grader.draw import compare  # matplotlib takes its time: only when there is something to show

    return compare(verdict.expected, verdict.found).svg(";max-height:32em")
