"""What a student has done, and what comes next: as text in a terminal, as a table in a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.arrays.words import as_inline_html
from grader.guide.attempts import Attempt, attempts, trouble
from grader.guide.syllabus import ExerciseText, LessonText, syllabus

NAMED = 4  # so many open exercises of a lesson are named
BAR = 12  # the length of a bar in a terminal
NO_LESSONS = "Your progress is shown in your own notebook, and not while hand-ins are graded."


@dataclass(frozen=True)
class Standing:
    """How far one exercise is: `points` of the latest check, and the `best` there were."""

    text: ExerciseText
    worth: float
    points: float = 0.0
    best: float = 0.0

    @property
    def is_open(self) -> bool:
        return self.points < self.worth


@dataclass(frozen=True)
class Section:
    """One lesson of the course, and how far each of its exercises is."""

    lesson: LessonText
    standings: tuple[Standing, ...]

    @property
    def points(self) -> float:
        return sum(one.points for one in self.standings)

    @property
    def worth(self) -> float:
        return sum(one.worth for one in self.standings)

    @property
    def core(self) -> list[Standing]:
        return [one for one in self.standings if one.text.is_core]

    @property
    def left(self) -> list[Standing]:
        """The open exercises, those of the core first."""
        return sorted((one for one in self.standings if one.is_open), key=lambda one: not one.text.is_core)


@dataclass(frozen=True)
class Journey:
    """The whole course; `latest` is the lesson of the last check, and `note` says what is to be said of the record."""

    sections: tuple[Section, ...]
    latest: str
    note: str

    @property
    def total(self) -> str:
        return f"{sum(s.points for s in self.sections):g} of {sum(s.worth for s in self.sections):g} points"

    @property
    def core(self) -> str:
        return _done([one for section in self.sections for one in section.core])

    @property
    def next(self) -> tuple[Section, Standing] | None:
        """What to do next: an open exercise of the core, else a stretch one; of the lesson that is being worked on,
        else of the first that has one."""
        left = [(section, one) for section in self.sections for one in section.left]
        return min(left, key=lambda one: (not one[1].text.is_core, one[0].lesson.name != self.latest), default=None)

    def __repr__(self) -> str:
        if not self.sections:
            return NO_LESSONS
        width = max(len(s.lesson.title) for s in self.sections)
        lines = [
            f"{s.lesson.title:<{width}}  core {_done(s.core):>7}  {_bar(s)}  {_points(s):>14}  {_left(s)}".rstrip()
            for s in self.sections
        ]
        return "\n".join([self._heading(), *lines, *self._next_in_words(), *filter(None, [self.note])])

    def _heading(self) -> str:
        return f"Your progress: {self.core} exercises of the core, {self.total}"

    def _next_in_words(self) -> list[str]:
        if self.next is None:
            return ["All is done."]
        section, standing = self.next
        return [f"Next: {standing.text.name} in {section.lesson.title}, {_kind(standing)}."]

    def _repr_html_(self) -> str:
        if not self.sections:
            return f"<p>{NO_LESSONS}</p>"
        columns = ("lesson", "core", "done", "points", "open")
        header = "".join(f'<th scope="col" style="text-align:left">{name}</th>' for name in columns)
        rows = "".join(map(_row, self.sections))
        note = f"<p>{as_inline_html(self.note)}</p>" if self.note else ""
        return (
            f"<p><strong>{self._heading()}</strong></p>"
            f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>{self._next_as_html()}{note}"
        )

    def _next_as_html(self) -> str:
        if self.next is None:
            return "<p>All is done.</p>"
        section, standing = self.next
        lesson = _link(section.lesson, html.escape(section.lesson.title))
        return f"<p>Next: {_exercise_link(section.lesson, standing)} in {lesson}, {_kind(standing)}.</p>"


def progress() -> Journey:
    """How much of the core is done, your points lesson by lesson, which exercises are open, and what comes next.

    It shows the latest check of each exercise, and where an earlier one had more points, those as well. `check` keeps
    the record: in `~/.many-devices-jax`, in Colab in your Drive once you have mounted it, or in the folder that
    `MANY_DEVICES_HOME` names.

    Example:
      >>> grader.progress()
      Your progress: ...
    """
    from grader import lessons  # here, so that `import grader` stays quick; where hand-ins are graded it is empty

    made = [one for one in attempts() if one.exercise in lessons.EXERCISES]
    sections = tuple(
        Section(lesson, tuple(_standing(text, lessons.given(text.name).points, made) for text in lesson.exercises))
        for lesson in syllabus()
        if all(text.name in lessons.EXERCISES for text in lesson.exercises)
    )
    lesson_of = {text.name: section.lesson.name for section in sections for text in section.lesson.exercises}
    return Journey(sections, lesson_of.get(made[-1].exercise, "") if made else "", trouble())


def _standing(text: ExerciseText, worth: float, made: Sequence[Attempt]) -> Standing:
    """The points of an exercise; of one whose worth has changed since, the same part of it."""
    points = [worth * min(max(one.points / one.worth, 0), 1) for one in made if one.exercise == text.name and one.worth]
    rounded = [round(each, 2) for each in points]
    return Standing(text, worth, rounded[-1], max(rounded)) if rounded else Standing(text, worth)


def _done(standings: Sequence[Standing]) -> str:
    return f"{sum(not one.is_open for one in standings)} of {len(standings)}"


def _bar(section: Section) -> str:
    full = int(BAR * section.points / section.worth) if section.worth else 0
    return "█" * full + "░" * (BAR - full)


def _points(section: Section) -> str:
    return f"{section.points:g} of {section.worth:g}"


def _left(section: Section) -> str:
    """The open exercises in words; of a lesson that is not begun, none."""
    if not section.left or len(section.left) == len(section.standings) and not section.points:
        return ""
    names = [f"{one.text.name}{_best(one)}" for one in section.left[:NAMED]]
    return f"open: {', '.join(names)}{_more(section)}"


def _more(section: Section) -> str:
    more = len(section.left) - NAMED
    return f" and {more} more" if more > 0 else ""


def _best(standing: Standing) -> str:
    return f" (had {standing.best:g})" if standing.best > standing.points else ""


def _kind(standing: Standing) -> str:
    return f"{'core' if standing.text.is_core else 'stretch'}, {standing.text.minutes} minutes"


def _row(section: Section) -> str:
    words = f"{_points(section)} points"
    bar = f'<progress value="{section.points:g}" max="{section.worth:g}" aria-label="{words}"></progress>'
    names = ", ".join(f"{_exercise_link(section.lesson, one)}{_best(one)}" for one in section.left[:NAMED])
    begun = _left(section) and f"{names}{_more(section)}"
    cells = (_done(section.core), bar, _points(section), begun)
    title = _link(section.lesson, html.escape(section.lesson.title))
    rest = "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells)
    return f'<tr><th scope="row" style="text-align:left;font-weight:normal">{title}</th>{rest}</tr>'


def _exercise_link(lesson: LessonText, standing: Standing) -> str:
    return _link(lesson, standing.text.name, f"#cell-id={standing.text.place}")  # as JupyterLab understands it


def _link(lesson: LessonText, words: str, anchor: str = "") -> str:
    """A link to the lesson's notebook beside this one, else to its page; else only the words."""
    file = f"{lesson.name}/{lesson.name}.ipynb"
    near = next((f"{way}{file}" for way in ("", "../") if Path(way, file).exists()), "")
    target = f"{near}{anchor}" if near else lesson.url
    return f'<a href="{html.escape(target)}">{words}</a>' if target else words
