"""A hand-in's outputs, made harmless to look at: text, pictures and drawings, and not too much of them.

Feedback pages and Formgrader put them into web pages, the latter into one that may change everybody's marks. (Texts
are made harmless where they become HTML, in `filters`.)
"""

from __future__ import annotations

import base64
import io
from typing import Any

from nbformat import NotebookNode, from_dict
from PIL import Image

from grader.classroom.grading.drawings import drawing_in

FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG"}
PICTURES = tuple(FORMATS)
MORE = "\n[There is more of it, which is left out.]\n"
LEFT_OUT = "[This output was neither text nor a picture, and is left out.]"
MOST_PIXELS = 20_000_000  # of a picture, which a few kB can claim to have: a browser takes 4 bytes for each
MOST_OUTPUTS = 1_000  # of a cell
MOST_SHOWN = 200_000  # characters of an output
LAST_SHOWN = 1_000  # of a longer one, where its end says what became of it
MOST_FRAMES = 200  # of an error's traceback


def harmless_outputs(outputs: Any) -> list[NotebookNode]:
    """A cell's outputs as a worker reports them, with nothing left in them but text and pictures."""
    reported = outputs if isinstance(outputs, list) else []
    shown = [_harmless(one) for one in reported[:MOST_OUTPUTS] if isinstance(one, dict)]
    return [*shown, output("stream", name="stderr", text=MORE)] if len(reported) > MOST_OUTPUTS else shown


def output(kind: str, **content: Any) -> NotebookNode:
    """An output of a cell. Its form is validated with its notebook, and not here."""
    return from_dict({"output_type": kind, **content})


def _text(text: str) -> str:
    """The text, or its beginning and its end, without halves of characters, which cannot be written to a file."""
    shown = text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + MORE + text[-LAST_SHOWN:]
    return shown.encode("utf-8", "replace").decode()


def _harmless(reported: dict[str, Any]) -> NotebookNode:
    match reported:
        case {"output_type": "stream", "name": "stdout" | "stderr" as name, "text": str(text)}:
            return output("stream", name=name, text=_text(text))
        case {"output_type": "error", "ename": str(kind), "evalue": str(value), "traceback": [*lines]}:
            traceback = [_text(line) for line in lines[:MOST_FRAMES] if isinstance(line, str)]
            return output("error", ename=_text(kind), evalue=_text(value), traceback=traceback)
        case {"output_type": "execute_result" | "display_data" as kind, "data": dict(data)}:
            number = {"execution_count": None} if kind == "execute_result" else {}
            return output(kind, data=_bundle(data), metadata={}, **number)
    return output("stream", name="stderr", text="[What this cell shows cannot be shown.]\n")


def _bundle(data: dict[str, Any]) -> dict[str, str]:
    pictures = {kind: data[kind] for kind in PICTURES if is_picture(kind, data.get(kind))}
    if drawing := drawing_in(data.get("text/html")):
        pictures["text/html"] = drawing
    text = data.get("text/plain")
    return {**pictures, "text/plain": _text(text) if isinstance(text, str) else LEFT_OUT}


def is_picture(kind: str, data: object) -> bool:
    """Whether this is base64 of a picture of that kind, and its header claims no monstrous size."""
    try:
        content = base64.b64decode("".join(data.split()), validate=True) if isinstance(data, str) else b""
        with Image.open(io.BytesIO(content), formats=[FORMATS[kind]]) as picture:
            return picture.width * picture.height <= MOST_PIXELS
    except (KeyError, ValueError, OSError, SyntaxError, Image.DecompressionBombError):
        return False
