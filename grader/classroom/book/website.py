"""The book: its pages as they lie in the repository, so that a link that works there works here, built by Sphinx."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import nbformat

from grader.classroom.book.errors import errors_page
from grader.classroom.book.lesson import page
from grader.classroom.book.watching import with_replays
from grader.classroom.course.frame import bare
from grader.classroom.course.plan import plan_of
from grader.classroom.course.taken import taken

TEXTS = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "LICENSE-TEXT", "SECURITY.md")


class Unbuilt(Exception):
    """Sphinx could not build the book, or had something to warn of; it has said what."""


def build_book(root: Path, target: Path) -> None:
    """Build the book of the course in `root` into `target`, all anew. Raises Unbuilt."""
    from sphinx.cmd.build import build_main

    with tempfile.TemporaryDirectory() as scratch:
        source, html = Path(scratch) / "source", Path(scratch) / "html"
        lay_out(root, source)
        options = ["-q", "-W", "--keep-going", "-b", "html", "-c", str(root / "book"), "-d", f"{scratch}/read"]
        if build_main([*options, str(source), str(html)]):
            raise Unbuilt
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(html, target)


def lay_out(root: Path, source: Path) -> None:
    """Write the sources of all pages: the repository's texts, those of `book/` with their replays, lessons, errors."""
    shutil.copytree(root / "book", source / "book", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for name in TEXTS:
        shutil.copy(root / name, source)
    contents = source / "book" / "contents.md"
    (source / "index.md").write_text(with_links(root, (root / "README.md").read_text()) + contents.read_text())
    contents.unlink()
    (source / "book" / "errors.md").write_text(errors_page())
    watch = source / "book" / "watch.md"
    watch.write_text(with_replays(watch.read_text()))
    plan = plan_of(root)
    numbers = {name[:2]: name for name in plan.lessons}
    for number, name in numbers.items():
        solved, released = (nbformat.read(root / part / name / f"{name}.ipynb", 4) for part in ("solutions", "course"))
        solved = taken(solved, name, plan, root)
        others = {other: lesson for other, lesson in numbers.items() if other != number}
        (source / "course" / name).mkdir(parents=True)
        nbformat.write(page(bare(solved), released, others), source / "course" / name / f"{name}.ipynb")


def with_links(root: Path, text: str) -> str:
    """A text in which the name of each lesson is a link to it, without the rows of lessons that this course has not."""
    plan = plan_of(root)
    for name in plan.others:
        text = re.sub(rf"^\| `{name}` \|.*\n", "", text, flags=re.MULTILINE)
    for name in plan.lessons:
        text = text.replace(f"`{name}`", f"[{name}](course/{name}/{name}.ipynb)")
    return text
