"""The facts of a class as one page that holds all it needs: it runs no script and fetches nothing.

What students wrote reaches the page only through a template that escapes all it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from grader.arrays.words import as_inline_html, legible
from grader.classroom.grading.digest import STATES
from grader.classroom.report.facts import BINS, LessonFacts
from grader.classroom.report.monday import heard, monday

TEMPLATE = "report.html.j2"
POLICY_OF_REPORT = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
SIGNS = {"right": "✓", "partly": "◐", "wrong": "✗", "open": "○"}
MOST_ROWS = 10  # of a table of misses
LONGEST_WORDS_SHOWN = 600  # characters of what a student hears


def report_page(lessons: Sequence[LessonFacts], names: Mapping[str, str], *, with_names: bool = False) -> str:
    """The page. `names` are the lessons' titles; without `with_names` students are numbered, the best is the first."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.finalize = _legible
    environment.filters |= {"heard": heard, "words": _words, "percent": _percent}
    return environment.get_template(TEMPLATE).render(
        lessons=[(facts, names.get(facts.lesson, facts.lesson), _called(facts, with_names)) for facts in lessons],
        policy=POLICY_OF_REPORT,
        states=STATES,
        signs=SIGNS,
        bins=[f"{100 * k // BINS}–{100 * (k + 1) // BINS} %" for k in range(BINS)],
        monday=monday,
        with_names=with_names,
        most=MOST_ROWS,
    )


def _called(facts: LessonFacts, with_names: bool) -> Callable[[str], str]:
    """How a student is called on this lesson's part of the page."""
    places = {paper.student: place for place, paper in enumerate(facts.papers, 1)}
    return lambda student: student if with_names else f"student {places[student]}"


def _legible(value: Any) -> Any:
    """A stranger's text without characters that steer what reads it."""
    return legible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _words(text: str) -> Markup:
    """Our words, which may quote a student's: escaped, with `code` and *emphasis*; the end of long ones left out."""
    shown = legible(" ".join(text.split()))
    cut = shown if len(shown) <= LONGEST_WORDS_SHOWN else f"{shown[:LONGEST_WORDS_SHOWN]} …"
    return Markup(as_inline_html(cut))


def _percent(share: float | None) -> str:
    return "—" if share is None else f"{100 * share:.0f} %"
