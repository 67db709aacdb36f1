"""A hand-in's texts and outputs, made harmless to look at.

Feedback pages and Formgrader put them into web pages, the latter into one that may change everybody's marks. So
nothing of a student's gets there that a browser would run: outputs are text and pictures, and HTML in texts is shown
as text.
"""

from __future__ import annotations

import base64
import re
from typing import Any

from nbformat import NotebookNode, from_dict

PICTURES = ("image/png", "image/jpeg")
LEFT_OUT = "[This output was neither text nor a picture, and is left out.]"
TAG_START = re.compile(r"<(?=[a-zA-Z/!?])")
SCRIPT_LINK = re.compile(r"\b(javascript|vbscript|data)\s*:(?!image/(png|jpeg);)", re.IGNORECASE)


def harmless_text(cell: NotebookNode) -> None:
    """Make a text cell's HTML, and links that would run code, plain text. Changes the cell."""
    if cell.cell_type != "code":
        cell.source = SCRIPT_LINK.sub(r"\1 :", TAG_START.sub("&lt;", cell.source))


def harmless_outputs(outputs: Any) -> list[NotebookNode]:
    """A cell's outputs as a worker reports them, with nothing left in them but text and pictures."""
    return [_harmless(one) for one in outputs if isinstance(one, dict)] if isinstance(outputs, list) else []


def output(kind: str, **content: Any) -> NotebookNode:
    """An output of a cell. Its form is validated with its notebook, and not here."""
    return from_dict({"output_type": kind, **content})


def _text(text: str) -> str:
    """The text without halves of characters, which cannot be written to a file."""
    return text.encode("utf-8", "replace").decode()


def _harmless(reported: dict[str, Any]) -> NotebookNode:
    match reported:
        case {"output_type": "stream", "name": "stdout" | "stderr" as name, "text": str(text)}:
            return output("stream", name=name, text=_text(text))
        case {"output_type": "error", "ename": str(kind), "evalue": str(value), "traceback": [*lines]}:
            traceback = [_text(line) for line in lines if isinstance(line, str)]
            return output("error", ename=_text(kind), evalue=_text(value), traceback=traceback)
        case {"output_type": "execute_result" | "display_data" as kind, "data": dict(data)}:
            number = {"execution_count": None} if kind == "execute_result" else {}
            return output(kind, data=_bundle(data), metadata={}, **number)
    return output("stream", name="stderr", text="[What this cell shows cannot be shown.]\n")


def _bundle(data: dict[str, Any]) -> dict[str, str]:
    pictures = {kind: data[kind] for kind in PICTURES if _is_base64(data.get(kind))}
    text = data.get("text/plain")
    return {**pictures, "text/plain": _text(text) if isinstance(text, str) else LEFT_OUT}


def _is_base64(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(base64.b64decode("".join(value.split()), validate=True))
    except ValueError:
        return False
