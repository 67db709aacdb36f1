"""A student's feedback page: nbconvert's, which can run nothing and fetch nothing, and is made quickly.

The hand-ins of a class share the lesson's text, most of its code, and the templates. For two hundred of them, rendering
these again and again takes longer than running students' code. So does parsing every finished page again, to give
pictures without a description one.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import BytecodeCache, DictLoader, Environment
from jinja2.bccache import Bucket
from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbformat import NotebookNode
from traitlets import default

from grader.classroom.course.late import terms_of
from grader.classroom.course.notebook import ANSWER, CHECK, checked, grade_id
from grader.classroom.course.plan import plan_of
from grader.classroom.grading import filters
from grader.classroom.grading.styles import with_used_styles
from grader.replays.page import DATA, PLAYER

FILTERS = ("ansi2html", "clean_html", "highlight_code", "markdown2html", "strip_files_prefix")
UNDESCRIBED = re.compile(r"<img(?![^>]*\balt=)")
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # which steer a terminal that shows the file
FONT = re.compile(r"@font-face\s*\{[^}]*\}")  # Bootstrap's symbols, which no page shows
ALLOWED = base64.b64encode(hashlib.sha256(PLAYER.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; script-src 'sha256-{ALLOWED}'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'"
)
STYLE = """
summary { display: list-item; cursor: pointer; }
#notebook img { max-width: 100%; height: auto; }
div.prompt { display: none; }
.rendered_html code { color: inherit; background: #f2f2f2; }
.anchor-link { visibility: hidden; }
:hover > .anchor-link { visibility: visible; }
"""
HEAD_OF_PAGE = re.compile(r"<h4>[^<]*</h4>\s*<div id=\"toc\">.*?</div>", re.DOTALL)  # nbgrader's, above the lesson
NO_COMMENTS = (None, "", "No response.")  # the last is nbgrader's own, where a cell is as it was released
MOST_TO_BE_WON = 3  # exercises
# The only script of nbgrader's template is MathJax. In its place the page gets a policy: a browser then runs no script
# but the one that draws replays, known by what it is made of, and opens no connection.
HEAD = {
    "mathjax.html.j2": "{% macro mathjax(url='') %}"
    f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    f'<meta name="referrer" content="no-referrer"><style>{STYLE}</style>{{% endmacro %}}'
}


class Page(HTMLExporter):
    """nbconvert's HTMLExporter, which renders no markdown and no code cell twice in a process."""

    def from_notebook_node(  # type: ignore[override]  # its base names NotebookNode, HTMLExporter returns text
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        """As HTMLExporter does it, without widgets, which no hand-in has, and without parsing the page at the end."""
        page, resources = TemplateExporter.from_notebook_node(self, nb, self._init_resources(resources), **options)
        if DATA in page:
            before, end, after = page.rpartition("</body>")
            page = f"{before}<script>{PLAYER}</script>{end}{after}"
        page = CONTROLS.sub("\N{REPLACEMENT CHARACTER}", page)
        page = re.sub(r"<html(?![^>]*\blang=)", '<html lang="en"', page, count=1)
        page = UNDESCRIBED.sub('<img alt="A picture that this cell shows"', page)
        head = resources.get("head")
        page = HEAD_OF_PAGE.sub(lambda _: head, page, count=1) if head else page
        return with_used_styles(page), resources

    def _preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """As nbconvert does it. Where a step of nbgrader's has brought grades and comments into the notebook, the head
        of the page is made of them, and the number below each card, which is there for nbgrader, is left out."""
        nb, resources = super()._preprocess(nb, resources)
        marks = resources.get("nbgrader", {})
        if "score" in marks:
            root = Path(self.config.CourseDirectory.get("root") or ".")
            plan = plan_of(root)
            notes = terms_of(root, plan, marks["student"], marks["assignment"]).notes
            resources["head"] = _head(nb, marks, plan.of(marks["assignment"]).bonus, notes)
            for cell in filter(checked, nb.cells):
                cell.outputs = cell.outputs[:1]
        return nb, resources

    def _init_resources(self, resources: dict[str, Any] | None) -> dict[str, Any]:
        """As HTMLExporter does it, with style sheets that name no files."""
        resources = super()._init_resources(resources)
        include = resources["include_css"]
        resources["include_css"] = lambda name: FONT.sub("", include(name))
        return resources

    @default("filters")
    def _filters_default(self) -> dict[str, Any]:
        return {name: getattr(filters, name) for name in FILTERS}

    @default("extra_loaders")
    def _extra_loaders_default(self) -> list[Any]:
        return [DictLoader(HEAD)]

    def _create_environment(self) -> Environment:
        environment = super()._create_environment()
        environment.bytecode_cache = _TEMPLATES
        return environment


def _head(nb: NotebookNode, marks: dict[str, Any], bonus: Collection[str], notes: Collection[str] = ()) -> str:
    """How the page begins: all points, where most is to be won, what applies to this student, and the exercises with
    their points and comments.

    The exercises that are a `bonus` add points, and nothing to what there is to be had.
    """
    graded = {checked(cell): cell.metadata.nbgrader for cell in nb.cells if checked(cell)}
    left = {name: one.points - one.score for name, one in graded.items() if one.score < one.points}
    most = sorted(left, key=lambda name: -left[name])[:MOST_TO_BE_WON]
    commented = {
        grade_id(cell).removeprefix(ANSWER)
        for cell in nb.cells
        if cell.metadata.get("nbgrader", {}).get("comment") not in NO_COMMENTS
    }
    lines = [
        f"<li>{_link(name)}: {_points(one.score)} of {_points(one.points)}"
        + (" · a bonus" if name in bonus else "")
        + (f' · <a href="#comment-{ANSWER}{name}">a comment</a>' if name in commented else "")
        + "</li>"
        for name, one in graded.items()
    ]
    if marks["late_penalty"] > 0:
        lines.append(f'<li class="late-penalty">handed in late: {_points(-marks["late_penalty"])}</li>')
    total = sum(one.points for name, one in graded.items() if name not in bonus)
    won = ", ".join(f"{_link(name)} ({_points(left[name])})" for name in most)
    late = " Points are deducted only because it was late." if marks["late_penalty"] > 0 else ""
    return (
        f"<h1>{escape(marks['notebook'])}: {_points(marks['score'])} of {_points(total)} points</h1>"
        + (f"<p>Most points to gain: {won}.</p>" if won else f"<p>Every answer is correct.{late}</p>")
        + "".join(f"<p>{escape(note)}</p>" for note in notes)
        + f'<div id="toc"><ol>{"".join(lines)}</ol></div>'
    )


def _link(name: str) -> str:
    return f'<a href="#{CHECK}{name}"><code>{name}</code></a>'


def _points(number: float) -> str:
    return f"{round(number, 2):g}"


class _Templates(BytecodeCache):
    """Compiled templates, for as long as the process lives."""

    def __init__(self) -> None:
        self.bytecode: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self.bytecode:
            bucket.bytecode_from_string(self.bytecode[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.bytecode[bucket.key] = bucket.bytecode_to_string()


_TEMPLATES = _Templates()
