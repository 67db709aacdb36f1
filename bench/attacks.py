"""Every attack of tests/whole/attacks against stock nbgrader and against this grader, in one run and one table.

Stock means nbgrader's own pipeline with its own Execute, as it comes but for a shorter time limit a cell. Both
run in namespaces of their own (`Lab`): the machine's discs are read-only there, and processes, network and
memory are the lab's, so that nothing has to be left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from grader.classroom.course.build import build

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import mini  # noqa: E402
from whole.attacks import ATTACKS  # noqa: E402
from whole.attacks.attack import Attack  # noqa: E402
from whole.attacks.lab import Lab  # noqa: E402
from whole.attacks.result import harm  # noqa: E402


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", help="some attacks only: words of their names or aims")
    options.add_argument("--only", choices=("stock", "ours"), help="one of the two")
    chosen = options.parse_args()
    console = Console()
    if lacking := Lab.missing():
        console.print(lacking)
        raise SystemExit(1)
    listed = [a for a in ATTACKS if not chosen.names or any(n in f"{a.name} {a.aim}" for n in chosen.names)]
    with tempfile.TemporaryDirectory() as scratch:
        course = mini.make_course(Path(scratch))
        build(course)
        seen = {
            which: run(which, listed, course, console) for which in ("stock", "ours") if chosen.only in (None, which)
        }
    console.print(table(listed, seen))
    for which, got in seen.items():
        console.print(f"{which}: {sum(map(bool, got.values()))} of {len(listed)} attacks win.")
    for attack in listed:
        if "stock" in seen and bool(seen["stock"][attack.name]) != attack.stock.falls:
            console.print(f"Not as the table in tests/whole/attacks says of stock: {attack.name} ({attack.stock.why})")


def run(which: str, listed: list[Attack], course: Path, console: Console) -> dict[str, str]:
    """What every attack got, by name; "" for nothing."""
    lab, got = Lab(which, course), {}
    for attack in track(listed, which, console=console, transient=True, disable=not console.is_terminal):
        result = lab.run(attack.name)
        got[attack.name] = attack.won(result) or (harm(result) if which == "ours" else "")
    rest = lab.close()
    if which == "ours" and rest:
        console.print(f"Left behind when all was over: {rest}")
    return got


def table(listed: list[Attack], seen: dict[str, dict[str, str]]) -> Table:
    shown = Table("attack", "aim", *(f"{which} falls?" for which in seen), title=f"{len(listed)} attacks, one run")
    for attack in listed:
        cells = []
        for which, got in seen.items():
            won = got[attack.name][:60].replace("[", "\\[")
            why = f" ({attack.stock.why})" if which == "stock" else ""
            cells.append(f"[red]yes[/red]: {won}" if won else f"[green]no[/green]{why}")
        shown.add_row(attack.name, attack.aim, *cells)
    return shown


if __name__ == "__main__":
    main()
