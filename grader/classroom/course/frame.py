"""What the build writes around a lesson: links to its neighbours, how long it takes, the first cell, which gets the
course's tools, and below the heading of each part outside the core where the core goes on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from grader.classroom.course.minutes import Minutes, honest_minutes
from grader.classroom.course.published import Published

FIRST_LINE = "# Run this cell first, and leave it as it is: it finds the course's tools, {}and gets eight devices."
INSTALLED = """import importlib
import subprocess
import sys
from importlib.metadata import distributions

{stop}
COURSE = "{install}"
JAX = [f"jax=={{found.version}}" for found in distributions(name="jax")][:1]  # stays as it is
try:
    from grader import welcome
except ModuleNotFoundError:
    print("Installing the course's tools …")
    command = [sys.executable, "-m", "pip", "install", "--quiet", COURSE, *JAX]
    if subprocess.run(command, capture_output=True).returncode:
        raise Stop(
            "The course's tools could not be installed. Is this machine online (Kaggle: Settings → Internet)? "
            f"Is its JAX 0.7.2 or newer (here: {{' '.join(JAX) or 'none'}})? If not, choose a newer environment. "
            f"Run this cell again, or see what `%pip install {{' '.join([COURSE, *JAX])}}` says."
        )
    importlib.invalidate_caches()
    from grader import welcome
"""
# In the place of COURSE, where the package lies at an address of the instructor's: a bucket, or a platform's file link.
FETCHED = """import hashlib
import tempfile
import urllib.request
from pathlib import Path

ADDRESS = "{address}"
WHEEL = "{wheel}"
SHA256 = "{sha256}"


def fetched():
    try:
        content = urllib.request.urlopen(ADDRESS, timeout=60).read()
    except (OSError, ValueError) as error:
        raise Stop(
            f"The course's tools could not be fetched from {{ADDRESS}}: {{error}}. Is this machine online (Kaggle: "
            "Settings → Internet)? If it is, ask your instructor whether the address still works."
        )
    if (found := hashlib.sha256(content).hexdigest()) != SHA256:
        raise Stop(
            f"The file at {{ADDRESS}} isn't the one that this notebook was made with: its SHA-256 should be "
            f"{{SHA256[:16]}}… and is {{found[:16]}}…. Nothing was installed. Get this notebook anew, or tell your "
            "instructor."
        )
    file = Path(tempfile.mkdtemp(), WHEEL)
    file.write_bytes(content)
    return str(file)

"""
FOUND = """{stop}
try:
    from grader import welcome
except ModuleNotFoundError:
    raise Stop(
        "The course's tools are not here, and this copy of the course is not published: nothing can be installed. "
        "Open a terminal in the course's folder, type `make lab`, and open the lesson there."
    )
"""
WELCOME = """except ImportError:
    raise Stop(
        "The `grader` that is installed here is somebody else's. Type `%pip uninstall -y grader` into a cell of its "
        "own, restart the kernel, and run this cell again."
    )
welcome("{version}")"""
# (IPython shows of an exception what this method returns; what sys.exit shows there ends in advice on how to exit.)
STOP = """
class Stop(Exception):
    def _render_traceback_(self):
        return [str(self)]

"""
SAVING = (
    "In Colab, *File → Save a copy in Drive* keeps what you write; *File → Download → Download .ipynb* gives the file "
    "that you hand in."
)
INDEX = "../index.ipynb"
NUMBERED_PART = re.compile(r"^## (\d+) · .*$", re.MULTILINE)
UNNUMBERED_PART = re.compile(r"^## (?!\d+ · )(.*)$", re.MULTILINE)
OPTIONAL = "You may see this elsewhere"  # a part that one may leave out
STRETCH = "*Stretch."  # begins what the build writes below the heading of a part outside the core


def titles(sources: Iterable[Path]) -> dict[str, str]:
    """The lessons in order, each with its title up to the first comma or colon."""
    headings = ((source.stem, re.search(r"^# ([^,:\n]+)", source.read_text(), re.MULTILINE)) for source in sources)
    return {name: heading[1] if heading else name for name, heading in headings}


def framed(nb: NotebookNode, lesson: str, order: Mapping[str, str], where: Published) -> NotebookNode:
    """The lesson with its links, its minutes and its first cell; `order` are all lessons with their titles."""
    number = lesson.split("_")[0]
    title, *rest = nb.cells[0].source.split("\n\n")
    minutes = honest_minutes(nb)
    head = _head(lesson, order, where, minutes)
    first = nbformat.from_dict({**nb.cells[0], "source": "\n\n".join([title, head, *rest])})
    end = _after_the_parts(nb)
    others = [nbformat.from_dict({**cell, "source": _signposted(cell, minutes, end)}) for cell in nb.cells[1:]]
    cells = [first, *others, new_markdown_cell(_links(lesson, order, where), id=f"{number}-end")]
    place = next(k for k, cell in enumerate(cells) if cell.cell_type == "code")
    cells.insert(place, first_cell(number, where))
    return nbformat.from_dict({**nb, "cells": cells})


def _after_the_parts(nb: NotebookNode) -> str:
    """Where the core goes on behind the last numbered part: with what it was all for, where the lesson says that."""
    text = "\n\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    last = max((part.end() for part in NUMBERED_PART.finditer(text)), default=0)
    headings = UNNUMBERED_PART.findall(text, last)
    return next((f"“{heading}”" for heading in headings if heading != OPTIONAL), "what follows")


def _signposted(cell: NotebookNode, minutes: Minutes, end: str) -> str:
    """The source of a cell; below the heading of a part outside the core it says whether the core needs its cells, and
    where it goes on: with a part of its own, or with the next whose cells it needs."""
    visited = [] if minutes.straight else sorted({*minutes.parts, *minutes.run})

    def below(heading: re.Match[str]) -> str:
        if (number := int(heading[1])) in minutes.parts:
            return heading[0]
        after = next((f"part {part}" for part in visited if part > number), end)
        do = "run the cells of this part" if number in minutes.run else "leave this part out, cells and all,"
        return f"{heading[0]}\n\n{STRETCH} If you follow the core, {do} and go on with {after}.*"

    return NUMBERED_PART.sub(below, cell.source) if cell.cell_type == "markdown" and visited else cell.source


def bare(nb: NotebookNode) -> NotebookNode:
    """The lesson without its frame, which JupyterLab brings into the source when an author saves the notebook there."""
    cells = [
        nbformat.from_dict({**cell, "source": without_links(cell.source)})
        for cell in nb.cells
        if not is_first(cell.source)
    ]
    return nbformat.from_dict({**nb, "cells": [cell for cell in cells if cell.source]})


def without_links(text: str) -> str:
    """The text of a cell without the paragraphs that the build has put into it: links, and where the core goes on."""
    return "\n\n".join(p for p in text.split("\n\n") if not _is_built(p))


def links_in(text: str) -> list[str]:
    """The paragraphs that the build has put into the text of a cell."""
    return [p for p in text.split("\n\n") if _is_built(p)]


def _is_built(paragraph: str) -> bool:
    return f"]({INDEX})" in paragraph or paragraph.startswith(STRETCH)


def first_cell(number: str, where: Published) -> NotebookNode:
    """The cell that finds the course's tools, or installs them."""
    lines = [FIRST_LINE.format("or installs them, " * bool(where)), (INSTALLED if where else FOUND) + WELCOME]
    source = "\n".join(lines).format(stop=STOP, install=where.install, version=where.tag.removeprefix("v"))
    folded = {"source_hidden": True}  # JupyterLab then shows its first line
    fixed = {"deletable": False, "editable": False, "jupyter": folded, "tags": ["nbval-ignore-output"]}
    return new_code_cell(source, id=f"{number}-setup", metadata=fixed)


def is_first(source: str) -> bool:
    """Whether a cell's source is that of a first cell, wherever it gets the tools from."""
    return source.startswith(FIRST_LINE.partition("{")[0])


def fetching_cell(first: NotebookNode, address: str, wheel: str, sha256: str, version: str) -> NotebookNode:
    """A first cell that installs the course's package from an address, if its content is as it should be."""
    body = INSTALLED.replace('COURSE = "{install}"\n', FETCHED)
    said = '    print("Installing the course\'s tools …")\n'
    body = body.replace(said, f"{said}    COURSE = fetched()\n")
    lines = [FIRST_LINE.format("or installs them, "), body + WELCOME]
    source = "\n".join(lines).format(stop=STOP, address=address, wheel=wheel, sha256=sha256, version=version)
    return nbformat.from_dict({**first, "source": source})


def _head(lesson: str, order: Mapping[str, str], where: Published, minutes: Minutes) -> str:
    """The links under the title, and the minutes; all one paragraph, so that `without_links` finds them."""
    head = f"{_links(lesson, order, where)}<br>\n{minutes}"
    if not where:
        return head
    doors = {
        "Colab": where.colab(lesson),
        "Kaggle": where.kaggle(lesson),
        "Codespaces": where.codespaces,
        "download": where.download(lesson),
    }
    badges = " · ".join(f"[{name}]({url})" for name, url in doors.items())
    return f"{head}<br>\nThis lesson elsewhere: {badges}<br>\n{SAVING}"


def _links(lesson: str, order: Mapping[str, str], where: Published) -> str:
    """Previous, index and next; for Colab, which cannot follow the way to a file beside it, once more in full."""
    here = _row(lesson, order, lambda name: INDEX if name == "index" else f"../{name}/{name}.ipynb")
    return f"{here}<br>\nIn Colab: {_row(lesson, order, where.colab)}" if where else here


def _row(lesson: str, order: Mapping[str, str], address: Callable[[str], str]) -> str:
    names = list(order)
    k = names.index(lesson)
    before = [f"[← {order[name]}]({address(name)})" for name in names[:k][-1:]]
    after = [f"[{order[name]} →]({address(name)})" for name in names[k + 1 : k + 2]]
    return " · ".join([*before, f"[all lessons]({address('index')})", *after])
