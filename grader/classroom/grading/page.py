"""A student's feedback page: nbconvert's, which can run nothing and fetch nothing, and is made quickly.

The hand-ins of a class share the lesson's text, most of its code, and the templates. For two hundred of them, rendering
these again and again takes longer than running students' code. So does parsing every finished page again, to give
pictures without a description one.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

from jinja2 import BytecodeCache, DictLoader, Environment
from jinja2.bccache import Bucket
from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbformat import NotebookNode
from traitlets import default

from grader.classroom.course.notebook import CHECK
from grader.classroom.grading import filters
from grader.replay.page import DATA, PLAYER

FILTERS = ("ansi2html", "clean_html", "highlight_code", "markdown2html", "strip_files_prefix")
UNDESCRIBED = re.compile(r"<img(?![^>]*\balt=)")
FONT = re.compile(r"@font-face\s*\{[^}]*\}")  # Bootstrap's symbols, which no page shows
ALLOWED = base64.b64encode(hashlib.sha256(PLAYER.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; script-src 'sha256-{ALLOWED}'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'"
)
STYLE = """
summary { display: list-item; cursor: pointer; }
#notebook img { max-width: 100%; height: auto; }
.anchor-link { visibility: hidden; }
:hover > .anchor-link { visibility: visible; }
"""
NAMELESS = re.compile(rf'(<a href="#{CHECK}(\w+)">)Test cell</a>')  # nbgrader's line for a check, above the lesson
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
        page = UNDESCRIBED.sub('<img alt="A picture that this cell shows"', page)
        return NAMELESS.sub(r"\1\2</a>", page), resources

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
