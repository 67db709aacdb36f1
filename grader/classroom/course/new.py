"""The files of a new exercise, and of a new lesson: a small example of its form that works, to be written over."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from pathlib import Path
from string import Template

from grader.classroom.course.headings import GOING_FURTHER
from grader.classroom.course.index import TABLE
from grader.exercises.forms import FORMS
from grader.lessons import EXERCISES

BEGINNINGS = Path(__file__).parent / "beginnings"
SECTION = re.compile(r"^## (\d+) · ", re.MULTILINE)
CLOSING = re.compile(r"^## (?!\d+ · )", re.MULTILINE)  # the answer, and the like
THE_ANSWER = re.compile(r"^## The answer$", re.MULTILINE)  # follows the parts of a core, in a lesson that has none yet
LESSON_ROW = re.compile(r"\| `(\d\d_\w+)` \|")
LAST_NAME = re.compile(r"`(?=[^`]*\Z)")  # the end of the last name between backquotes


def begin_exercise(root: Path, lesson: str, name: str, form: str) -> list[Path]:
    """Write an exercise into a section of its own, the last with a number; returns the files that it changed.

    The first exercise of a lesson is core. The others are stretch, and come last, under "Going further".

    A lesson that does not exist begins, too. Raises ValueError where one of the names will not do.
    """
    _refuse(root, lesson, name, form)
    topic = lesson.partition("_")[2]
    text, package = root / "solutions" / lesson / f"{lesson}.md", root / "grader" / "lessons" / topic
    words = {"lesson": lesson, "number": lesson[:2], "topic": topic, "title": _title(topic), "name": name}
    files = [] if text.exists() else _begin_lesson(root, text, package, words)
    words |= {"title": _title(name), "section": str(1 + max(map(int, SECTION.findall(text.read_text())), default=0))}
    words["exercise"] = _written(f"{form}.md", words)
    words["prediction"] = _written("prediction.md", words) if files else ""
    words["kind"] = "core" if files else "stretch"  # the cores of most lessons are as long as they may be
    text.write_text(_with_section(text.read_text(), _written("section.md", words), is_core=bool(files)))
    declaration, listing = package / f"{name}.py", package / "__init__.py"
    declaration.write_text(_written(f"{form}.py", words))
    listing.write_text(_listed(listing.read_text(), name))
    return list(dict.fromkeys([*files, text, listing, declaration]))


def _refuse(root: Path, lesson: str, name: str, form: str) -> None:
    """Raise ValueError where one of the names will not do; the text says why."""
    if form not in (forms := [one for one in FORMS if (BEGINNINGS / f"{one}.py.txt").exists()]):
        raise ValueError(f"There is no example of the form {form!r}; there are those of {', '.join(forms)}.")
    if not re.fullmatch(r"\d\d_[a-z][a-z0-9_]*", lesson):
        raise ValueError(f"A lesson is named like 07_matmul, a number of two digits and a topic; not {lesson!r}.")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ValueError(f"An exercise is named like case3, as a function is in Python; not {name!r}.")
    if name in EXERCISES:
        raise ValueError(f"There is an exercise {name} already: `grader where {name}` says where.")
    topic = lesson.partition("_")[2]
    others = [file.stem for file in root.glob("solutions/*/*.md") if file.stem.partition("_")[2] == topic]
    if others not in ([], [lesson]):
        raise ValueError(f"The topic {topic} is that of the lesson {others[0]}: choose another for {lesson}.")
    if (file := root / "grader" / "lessons" / topic / f"{name}.py").exists():
        raise ValueError(f"There is a file {file.relative_to(root)} already.")


def _begin_lesson(root: Path, text: Path, package: Path, words: Mapping[str, str]) -> list[Path]:
    review = package / "review.py"
    for file in (text, review):
        file.parent.mkdir(parents=True, exist_ok=True)
    text.write_text(_written("lesson.md", words))
    review.write_text(_written("review.py", words))
    (package / "__init__.py").write_text(_written("package.py", words))
    return [text, review, *_tabled(root / TABLE, words)]


def _tabled(readme: Path, words: Mapping[str, str]) -> list[Path]:
    """The page with the table of lessons, in which the new lesson has now a row at its place."""
    lines = readme.read_text().split("\n") if readme.exists() else []
    rows = {k: found[1] for k, line in enumerate(lines) if (found := LESSON_ROW.match(line))}
    if not rows:
        return []
    place = next((k for k, name in rows.items() if name > words["lesson"]), max(rows) + 1)
    lines.insert(place, f"| `{words['lesson']}` | say here what one can do afterward |")
    readme.write_text("\n".join(lines))
    return [readme]


def _with_section(text: str, section: str, is_core: bool) -> str:
    """The text with one more section: after the numbered ones, in the core before the answer."""
    last = [found.end() for found in SECTION.finditer(text)][-1:]
    if not is_core and GOING_FURTHER in text.split("\n"):
        return f"{text.rstrip()}\n{section}"
    closing = CLOSING.search(text, last[0]) if last else THE_ANSWER.search(text)
    place = closing.start() if closing else len(text)
    return f"{text[:place].rstrip()}\n{section}" + (f"\n{text[place:]}" if closing else "")


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _written(beginning: str, words: Mapping[str, str]) -> str:
    return Template((BEGINNINGS / f"{beginning}.txt").read_text()).substitute(words)


def _listed(docstring: str, name: str) -> str:
    """A package's docstring, whose last line names its files in order, with one file more."""
    if "`" not in docstring:
        return docstring.replace(": .", f": `{name}`.")
    return LAST_NAME.sub(f"`, `{name}`", docstring)
