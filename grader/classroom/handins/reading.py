"""The notebook in a file, whatever the file holds: a notebook to grade, or a sentence that says why not.

Nothing of a hand-in is needed but the kinds and texts of its cells, and nbgrader's names for them. So each cell is made
anew from just these: outputs of any size, odd metadata, missing ids and the like cannot harm what follows.

All that follows runs in the process that writes the gradebook, so there are limits here: whatever a file holds, reading
it takes about two seconds and 400 MB at most.
"""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from grader.arrays.words import one_line
from grader.classroom.course.build import PYTHON
from grader.classroom.handins.archive import LARGEST, Unreadable, lone_notebook, megabytes

MOST_VALUES = 1_000_000  # in the JSON; each may take 200 bytes
MOST_CELLS = 2_000
MOST_TEXT = 1_000_000  # characters in the cells
LONGEST_TEXT = 20_000  # characters in a cell of text; Colab writes pasted pictures there
MOST_PICTURES = 20_000_000  # characters of pictures pasted into the cells
ZIP = b"PK"
OTHERS = {
    b"%PDF": "a PDF",
    b"\x1f\x8b": "a gzip archive",
    b"Rar!": "a RAR archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"<!": "a web page",
    b"<html": "a web page",
    b"\x89PNG": "a picture",
}
JSON_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",  # before int, which it is too
    int: "a number",
    float: "a number",
    type(None): "nothing",
}
MOST_MARK = 1_000  # characters of one of nbgrader's marks
MARKS = ("cell_type", "checksum", "grade", "grade_id", "locked", "points", "schema_version", "solution", "task")
PICTURE = re.compile(r"image/(png|jpeg|gif)")
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
KERNELS = {"ir": "R", "julia": "Julia", "octave": "Octave", "bash": "bash"}  # kernels that name no language
CLEAR_OUTPUTS = "In Jupyter: Edit, Clear Outputs of All Cells, save, and hand in again."
ASK_AGAIN = "Ask for the file as Jupyter saved it."
TOO_DEEP = "is nested too deeply to be a notebook. " + ASK_AGAIN


def read(path: Path) -> NotebookNode:
    """The notebook in this file, or in the zip that this file is. Raises Unreadable, whatever the file holds."""
    name, data = one_line(path.name), _contents(path)
    if data.startswith(ZIP):
        name, data = lone_notebook(data, name)
    text = _text(data, name)
    del data  # the text may take four times as much, and what is in it as much again
    if (values := _values(text)) > MOST_VALUES:
        raise Unreadable(f"{name} holds {values:,} values, where a notebook has some thousands. " + CLEAR_OUTPUTS)
    return _notebook(_json(text, name), name)


def _contents(path: Path) -> bytes:
    name = one_line(path.name)
    try:
        if not path.resolve().is_relative_to(path.parent.resolve()):
            raise Unreadable(f"{name} is a link to a file outside the hand-in, and not followed. Ask for the file.")
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device"
            raise Unreadable(f"{name} is {kind}, where a notebook file is due.")
        if status.st_size > LARGEST:
            raise Unreadable(
                f"{name} is {megabytes(status.st_size)}; at most {megabytes(LARGEST)} are read. " + CLEAR_OUTPUTS
            )
        return path.read_bytes()
    except PermissionError as error:
        raise Unreadable(f"{name} may not be read by you (permission denied). `chmod u+r` it.") from error
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise Unreadable(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _text(data: bytes, name: str) -> str:
    if not data.strip(b"\0 \t\r\n\xef\xbb\xbf\xff\xfe"):
        zeros = f": {len(data):,} bytes that say nothing" if data else ""
        raise Unreadable(f"{name} is empty{zeros}. Ask for the saved notebook.")
    start = data.lstrip()[:9].lower() if data[:1].isspace() or data[:1] == b"<" else data[:9]
    for sign, kind in OTHERS.items():
        if start.startswith(sign):
            raise Unreadable(f"{name} is {kind} under a notebook's name. Ask for the .ipynb file itself.")
    encoding = json.detect_encoding(data)  # by its mark, or by where the zeros are: JSON begins with plain ASCII
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            raise Unreadable(_cut(name, data.count(b"\n") + 1)) from error
        near = one_line(data[max(0, error.start - 20) : error.start + 20].decode("latin-1").strip())
        raise Unreadable(
            f"{name} is not UTF-8 text, as a notebook is: see byte {error.start:,}, near “{near}”. An "
            "editor saved it in another encoding: save it there as UTF-8, or ask for the file as Jupyter "
            "wrote it."
        ) from error


def _values(text: str) -> int:
    """How many values there are in a JSON text, at most: a comma or a bracket goes before each."""
    count = sum(map(text.count, ",[{"))
    if count <= MOST_VALUES or text.count('"') - text.count('\\"') > MOST_VALUES:
        return count
    outside = text.encode().replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2]  # outputs print commas, too
    return sum(part.count(sign) for part in outside for sign in (b",", b"[", b"{"))


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip()):
            raise Unreadable(_cut(name, error.lineno)) from error
        line = one_line(text[error.pos - error.colno + 1 :].split("\n", 1)[0].strip()[:80])
        raise Unreadable(
            f"{name} is not a notebook: JSON is due, and line {error.lineno} is “{line}” ({error.msg}, "
            f"column {error.colno}). {ASK_AGAIN}"
        ) from error
    except RecursionError as error:
        raise Unreadable(f"{name} {TOO_DEEP}") from error
    except ValueError as error:  # a number of more digits than Python reads
        raise Unreadable(f"{name} is not a notebook: {one_line(error)}.") from error


def _cut(name: str, line: int) -> str:
    return (
        f"{name} is not a notebook: it stops in the middle, in line {line:,}. The upload was cut short: ask for "
        "the file again."
    )


def _notebook(raw: Any, name: str) -> NotebookNode:
    cells, metadata = _parts(raw, name)
    if (language := _language(metadata)) not in ("", "python", "ipython", "python2", "python3"):
        raise Unreadable(
            f"{name} is a notebook for {one_line(language)}; this course is in Python. In Jupyter: Kernel, "
            "Change Kernel, Python 3, save, and hand in again."
        )
    clean = [_cell(cell, k, name) for k, cell in enumerate(cells, 1)]
    if (size := sum(len(cell["source"]) for cell in clean)) > MOST_TEXT:
        raise Unreadable(
            f"{name} has {size:,} characters in its cells; at most {MOST_TEXT:,} are read. Ask for it "
            "without the data pasted into cells."
        )
    pasted = [picture for cell in clean for kinds in cell.get("attachments", {}).values() for picture in kinds.values()]
    if (size := sum(map(len, pasted))) > MOST_PICTURES or len(pasted) > MOST_CELLS:
        raise Unreadable(
            f"{name} has {len(pasted):,} pictures of {megabytes(size)} pasted into its cells; at most {MOST_CELLS:,} "
            f"of {megabytes(MOST_PICTURES)} are read. Ask for it without them."
        )
    return nbformat.from_dict({"cells": clean, "metadata": PYTHON, "nbformat": 4, "nbformat_minor": 5})


def _parts(raw: Any, name: str) -> tuple[list, dict]:
    """The cells and the metadata of a notebook's JSON, in any version of the format."""
    if not isinstance(raw, dict):
        raise Unreadable(f"{name} is JSON, but no notebook: {_kind(raw)}, where an object with cells is due.")
    version, cells = raw.get("nbformat"), raw.get("cells")
    if isinstance(version, int) and version > 4:
        raise Unreadable(
            f"{name} is in version {one_line(version, 20)} of the notebook format; up to 4 are known here. Save it "
            "with JupyterLab as it is installed for the course."
        )
    if not isinstance(cells, list) and isinstance(raw.get("worksheets"), list):
        cells = _upgraded(raw, name)
    if not isinstance(cells, list):
        raise Unreadable(f"{name} is JSON, but no notebook: it has no list of cells. Ask for the .ipynb file itself.")
    _count(cells, name)
    metadata = raw.get("metadata")
    return cells, metadata if isinstance(metadata, dict) else {}


def _count(cells: list, name: str) -> None:
    if len(cells) > MOST_CELLS:
        raise Unreadable(
            f"{name} has {len(cells):,} cells; at most {MOST_CELLS:,} are graded. Was a cell pasted over "
            "and over? Ask for a notebook with one answer to each exercise."
        )


def _upgraded(raw: dict, name: str) -> list:
    """The cells of a notebook of version 2 or 3, which lie on worksheets, upgraded to version 4 by nbformat."""
    try:
        old = [cell for sheet in raw["worksheets"] for cell in sheet["cells"]]
        _count(old, name)
        old = [_without_ballast(cell) for cell in old]
        version = 2 if raw.get("nbformat") == 2 else 3
        known = {
            "metadata": {},
            "worksheets": [{"cells": old, "metadata": {}}],
            "nbformat": version,
            "nbformat_minor": 0,
        }
        return nbformat.convert(nbformat.versions[version].to_notebook_json(known), 4)["cells"]
    except Unreadable:
        raise
    except RecursionError as error:
        raise Unreadable(f"{name} {TOO_DEEP}") from error
    except Exception as error:  # nbformat raises of all sorts
        raise Unreadable(
            f"{name} is in an old version of the notebook format, and damaged ({type(error).__name__}: "
            f"{one_line(error)}). Save it with JupyterLab and hand in again."
        ) from error


def _without_ballast(old: dict) -> dict:
    """Of a cell of an old version, what nbformat needs to upgrade it, and nbgrader's marks."""
    kept = {key: old[key] for key in ("cell_type", "source", "input", "level", "language") if key in old}
    marks = old.get("metadata", {}).get("nbgrader")
    metadata = {"nbgrader": _plain(marks)} if isinstance(marks, dict) else {}
    return {**kept, "metadata": metadata, **({"outputs": []} if old["cell_type"] == "code" else {})}


def _language(metadata: dict) -> str:
    """The language that a notebook names, in small letters where that is Python; "" when it names none."""
    parts = [p if isinstance(p, dict) else {} for p in (metadata.get("kernelspec"), metadata.get("language_info"))]
    kernel = parts[0].get("name")
    by_kernel = KERNELS.get(kernel.split("-")[0], "") if isinstance(kernel, str) else ""
    names = [parts[0].get("language"), parts[1].get("name"), by_kernel]
    language = next((name for name in names if isinstance(name, str) and name), "")
    return language.lower() if "python" in language.lower() else language


def _cell(raw: Any, number: int, name: str) -> dict[str, Any]:
    if not isinstance(raw, dict) or not isinstance(raw.get("cell_type"), str):
        problem = "has no cell_type" if isinstance(raw, dict) else f"is {_kind(raw)}"
        raise Unreadable(f"{name}: cell {number} {problem}, so it is none. {ASK_AGAIN}")
    source: Any = raw.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise Unreadable(f"{name}: the source of cell {number} is {_kind(source)}, where text is due. " + ASK_AGAIN)
    metadata = raw.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    kind = raw["cell_type"] if raw["cell_type"] in ("code", "markdown") else "raw"
    cell: dict[str, Any] = {
        "id": f"cell-{number}",
        "cell_type": kind,
        "source": _whole(source) if kind == "code" else _cut_text(_whole(source)),
        "metadata": {"nbgrader": _plain(marks)} if isinstance(marks, dict) else {},
    }
    if kind == "code":
        return {**cell, "outputs": [], "execution_count": None}
    return _with_pictures(cell, raw.get("attachments")) if kind == "markdown" else cell


def _whole(text: str) -> str:
    """A text that every file can hold: half a character becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def _cut_text(text: str) -> str:
    """A text for people to read: nothing is graded there, so the end of an endless one is left out."""
    left_out = len(text) - LONGEST_TEXT
    return text if left_out <= 0 else f"{text[:LONGEST_TEXT]}\n\n({left_out:,} characters more are left out.)"


def _plain(marks: dict) -> dict[str, Any]:
    """nbgrader's own names for a cell, where they are short and plain."""
    known = {key: marks[key] for key in MARKS if key in marks}
    return {key: _whole(value) if isinstance(value, str) else value for key, value in known.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    match value:
        case str():
            return len(value) <= MOST_MARK
        case int() | float():
            return abs(value) < 1e15  # which no NaN is
        case _:
            return value is None


def _kind(value: Any) -> str:
    return next(words for kind, words in JSON_KINDS.items() if isinstance(value, kind))


def _with_pictures(cell: dict[str, Any], attachments: Any) -> dict[str, Any]:
    """A text cell with its pasted pictures. nbconvert stops at a picture that is missing, so its link is undone."""
    pictures = {}
    for name, picture in attachments.items() if isinstance(attachments, dict) else ():
        if re.fullmatch(r"[A-Za-z0-9_.-]{1,200}", name) and _is_picture(picture):
            pictures[name] = picture

    def link(match: re.Match[str]) -> str:
        return match[0] if match[1] in pictures else f"missing:{match[1]}"

    source = re.sub(r"attachment:([^\s)\"'>\]]*)", link, cell["source"])
    return {**cell, "source": source, **({"attachments": pictures} if pictures else {})}


def _is_picture(data: Any) -> bool:
    """Whether this is a picture: its data as text, by kind."""
    return (
        isinstance(data, dict)
        and bool(data)
        and all(PICTURE.fullmatch(kind) for kind in data)
        and all(isinstance(text, str) and BASE64.fullmatch(text) for text in data.values())
    )
