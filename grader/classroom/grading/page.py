"""A student's feedback page: nbconvert's, with what is the same on every page made once.

The hand-ins of a class share the lesson's text, most of its code, and the templates. For two hundred of them, rendering
these again and again takes longer than running students' code. So does parsing every finished page again, to give
pictures without a description one.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from jinja2 import BytecodeCache, Environment, pass_context
from jinja2.bccache import Bucket
from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbformat import NotebookNode
from traitlets import default

UNDESCRIBED = re.compile(r"<img(?![^>]*\balt=)")


class Page(HTMLExporter):
    """nbconvert's HTMLExporter, which renders no markdown and no code cell twice in a process."""

    def from_notebook_node(  # type: ignore[override]  # its base names NotebookNode, HTMLExporter returns text
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        """As HTMLExporter does it, without widgets, which no hand-in has, and without parsing the page at the end."""
        page, resources = TemplateExporter.from_notebook_node(self, nb, self._init_resources(resources), **options)
        return UNDESCRIBED.sub('<img alt="A picture that this cell shows"', page), resources

    @default("filters")
    def _filters_default(self) -> dict[str, Any]:
        return {"highlight_code": _highlighted}

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        if context.get("cell", {}).get("attachments"):
            return super().markdown2html(context, source)
        return _rendered(source)

    def _create_environment(self) -> Environment:
        environment = super()._create_environment()
        environment.bytecode_cache = _TEMPLATES
        return environment


@functools.lru_cache(maxsize=4096)
def _rendered(source: str) -> str:
    return _plain().markdown2html({}, source)


_plain = functools.cache(HTMLExporter)


def _highlighted(source: str, language: str | None = None, metadata: Any = None) -> str:
    """nbconvert's filter `highlight_code`. Language and metadata matter only where a cell may not be Python."""
    return _coloured(source)


@functools.lru_cache(maxsize=4096)
def _coloured(source: str) -> str:
    return Highlight2HTML(pygments_lexer="python")(source)


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
