"""What answers hear that were written without a look at the grader: `make truth` prints a table by lesson.

`tests/truth/LESSON.py` holds the answers, `EXERCISE__right_NAME` or `EXERCISE__wrong_NAME`. Those of LESSON_unseen, and
later of LESSON_unseen2 to 24, were heard and read before anything was mended by them. `LESSON.json` beside
it holds what each wrong one heard, and what a reader found of those words: its `reading`. One is judged as in a
notebook, and where that lets it pass, as in grading.

    python tests/truth.py [LESSON ...]           judge, and print the tables
    python tests/truth.py --record [LESSON ...]  keep what is heard now; what changed is to be read again
"""

import functools
import importlib.util
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from apart import Apart

FOLDER = Path(__file__).with_suffix("")
LIMIT = 120  # seconds for an answer
READINGS = {
    "true": "named",  # the words name the mistake, truly
    "evidence": "evidence",  # they do not, but say truly what is wrong and where
    "bare": "bare",  # they are a difference and no more
    "untrue": "untrue",  # they say something that is not so
    "": "unread",
}


@dataclass(frozen=True)
class Heard:
    """What one answer came to: what was heard is the beginning of the words."""

    passed: bool
    mistake: str
    heard: str


@functools.cache
def written(lesson: str) -> ModuleType:
    """The module of a lesson's answers, which is no package's."""
    spec = importlib.util.spec_from_file_location(lesson, FOLDER / f"{lesson}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answers(lesson: str) -> list[str]:
    """The names of a lesson's answers."""
    return [name for name in vars(written(lesson)) if "__right_" in name or "__wrong_" in name]


def listen(lesson: str, answer: str) -> Heard:
    """Judge one answer: with the notebook's cases, and where those find nothing, with grading's."""
    from answering import verdict

    from grader.lessons import find

    exercise, said = find(answer.split("__")[0]), getattr(written(lesson), answer)
    first = verdict(exercise, said, seed=0)
    final = verdict(exercise, said, thorough=True) if first.passed else first
    words = final.words.replace(f"{FOLDER.parents[1]}/", "")  # errors tell where, on this machine
    return Heard(final.passed, final.mistake, words[:300])


def judged(lesson: str) -> Iterator[tuple[str, Heard]]:
    """Every answer of a lesson with what it hears, in a process of its own."""
    apart = Apart(LIMIT)
    for answer in apart.call(answers, lesson):
        try:
            yield answer, apart.call(listen, lesson, answer)
        except Exception as error:  # a fault of the grader's, which is a finding too
            yield answer, Heard(False, "", f"(the judge stopped: {type(error).__name__}: {error})")
    apart.end()


def read(lesson: str) -> dict[str, dict[str, str]]:
    """What a reader found, by answer."""
    path = FOLDER / f"{lesson}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def reading(heard: Heard, found: dict[str, str]) -> str:
    """What a reader found of these very words; nothing where they are others. (A mistake that was found to be the
    answer's own stays so in other words: these are reviewed with the mistake.)"""
    if heard.mistake != found.get("mistake"):
        return ""
    own = heard.mistake != "" and found["reading"] == "true"
    return found["reading"] if own or heard.heard == found.get("heard") else ""


def record(lesson: str, heard: dict[str, Heard]) -> None:
    """Keep what the wrong answers hear now, and the readings that still hold."""
    found = read(lesson)
    kept = {
        name: {
            "heard": one.heard,
            "mistake": one.mistake,
            "reading": "passes" if one.passed else reading(one, found.get(name, {})),
        }
        for name, one in heard.items()
        if "__wrong_" in name
    }
    (FOLDER / f"{lesson}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def tables(lesson: str, heard: dict[str, Heard]) -> tuple[list[int], list[str]]:
    """A lesson's row of the table, and its answers that need a look."""
    found = read(lesson)
    right = Counter(one.passed for name, one in heard.items() if "__right_" in name)
    wrong = {name: one for name, one in heard.items() if "__wrong_" in name}
    rejected = {name: one for name, one in wrong.items() if not one.passed}
    readings = {name: reading(one, found.get(name, {})) for name, one in rejected.items()}
    counts = Counter(readings.values())
    looks = [
        f"{name}: right, and refused: {one.heard}"
        for name, one in heard.items()
        if "__right_" in name and not one.passed
    ]
    looks += [f"{name}: wrong, and passes" for name, one in wrong.items() if one.passed]
    looks += [f"{name}: untrue: {rejected[name].heard}" for name, said in readings.items() if said == "untrue"]
    looks += [f"{name}: to be read again: {rejected[name].heard}" for name, said in readings.items() if not said]
    row = [right[True], right[False], len(rejected), len(wrong) - len(rejected), *(counts[key] for key in READINGS)]
    return row, looks


def main(arguments: list[str]) -> None:
    from rich.console import Console  # not above: the student's side is tested where there is no rich
    from rich.markup import escape
    from rich.table import Table

    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"  # each runs once
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"  # of wrong answers XLA has much to say
    console = Console(width=120, soft_wrap=True, highlight=False)
    heads = ("right\naccepted", "right\nrefused", "wrong\nrejected", "wrong\npassed", *READINGS.values())
    table, total = Table("lesson", *heads, show_footer=True), Counter()
    lessons = [word for word in arguments if word != "--record"] or sorted(path.stem for path in FOLDER.glob("*.py"))
    for lesson in lessons:
        heard = dict(judged(lesson))
        if "--record" in arguments:
            record(lesson, heard)
        row, looks = tables(lesson, heard)
        for look in looks:
            console.print(escape(look))
        table.add_row(lesson, *map(str, row))
        total.update(dict(zip(heads, row, strict=True)))
    table.columns[0].footer = "together"
    for column, head in zip(table.columns[1:], heads, strict=True):
        column.footer, column.justify = str(total[head]), "right"
    console.print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
