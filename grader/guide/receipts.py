"""A notebook that is handed in: a copy of what was saved, and a receipt beside it."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import sys
from datetime import datetime
from pathlib import Path

from grader.guide.attempts import attempts
from grader.guide.progress import Standing, progress
from grader.questions import Text

NOTEBOOK = "JPY_SESSION_NAME"  # where Jupyter tells a kernel which notebook it serves
FOLDER_OF_COPIES = "handed_in"
CALL_OF_CHECK = re.compile(r"""\bcheck\(\s*["'](\w+)["']""")
IN_COLAB = (
    "In Colab, save with Ctrl + S, then choose File → Download → Download .ipynb, and hand in the file that you get. "
    "Your points so far: `grader.progress()`."
)


def hand_in(notebook: str | Path | None = None) -> Text:
    """Lay a copy of your saved notebook aside, to be handed in, with a receipt that says what is in it.

    Args:
      notebook: the notebook's file; by default the one that this cell is in.

    Example:
      >>> receipt = grader.hand_in("07_matmul.ipynb")  # it names the file to hand in
    """
    if notebook is None and "google.colab" in sys.modules:
        return Text((IN_COLAB,))
    file = Path(notebook or os.environ.get(NOTEBOOK, ""))
    try:
        content = file.read_bytes()
        cells = json.loads(content)["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, LookupError, TypeError):
        return Text((f'There is no notebook {file}. Say which: `grader.hand_in("07_matmul.ipynb")`.',))
    standings = _standings(sources)
    saved = file.stat().st_mtime
    checked = {one.exercise: one.time for one in attempts()}  # when each was last
    if later := [one.text.name for one in standings if checked.get(one.text.name, 0.0) > saved]:
        since = f"since {file.name} was saved at {datetime.fromtimestamp(saved):%H:%M:%S}"
        again = "Save it (Ctrl + S), then run this cell again. Nothing has been laid aside."
        return Text((f"You have checked {_listed(later)} {since}. {again}",))
    return _laid_aside(file, content, _receipt(file, content, sources, standings))


def _standings(sources: list[str]) -> list[Standing]:
    """How far the exercises are that a notebook checks."""
    checked = {name for source in sources for name in CALL_OF_CHECK.findall(source)}
    return [one for section in progress().sections for one in section.standings if one.text.name in checked]


def _receipt(file: Path, content: bytes, sources: list[str], standings: list[Standing]) -> tuple[str, ...]:
    untouched = [one for one in standings if _last_answer(one.text.name, sources) == one.text.starter]
    points, worth = sum(one.points for one in standings), sum(one.worth for one in standings)
    return (
        f"Notebook: {file.name}",
        f"Handed in: {datetime.now().astimezone():%Y-%m-%d %H:%M:%S %z}",
        f"SHA-256: {hashlib.sha256(content).hexdigest()}",
        f"Answered: {len(standings) - len(untouched)} of {len(standings)} exercises"
        + (f"; still the starter: {_listed([one.text.name for one in untouched])}" if untouched else ""),
        f"Points by your own checks: {points:g} of {worth:g}. Grading uses fresh cases.",
    )


def _last_answer(name: str, sources: list[str]) -> str:
    """The cell of the answer that counts: the last one before the check; "" where there is none."""
    before = itertools.takewhile(lambda source: name not in CALL_OF_CHECK.findall(source), sources)
    answers = [source for source in before if re.search(rf"^(?:def )?{name}\b", source, re.MULTILINE)]
    return answers[-1] if answers else ""


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _laid_aside(file: Path, content: bytes, receipt: tuple[str, ...]) -> Text:
    place = file.parent / FOLDER_OF_COPIES / f"{datetime.now():%Y-%m-%d_%H%M%S}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        (place / file.name).write_bytes(content)
        (place / "receipt.txt").write_text("\n".join(receipt).replace("`", "") + "\n")
    except OSError as error:
        return Text((f"The copy could not be written to {place}: {error.strerror}. Hand in {file} itself.", *receipt))
    return Text((f"Hand in `{place / file.name}`. The receipt is beside it.", *receipt))
