"""Every attack of tests/whole/attacks against stock nbgrader and against this grader, in one run and one table.

Stock means nbgrader's own pipeline with its own Execute, as it comes but for a shorter time limit a cell. Both
run in namespaces of their own (`Lab`): the machine's discs are read-only there, and processes, network and
memory are the lab's, so that nothing has to be left out. Feedback pages that attacks made are then opened in a
headless Chromium without a network, where there is one, and all their links are clicked.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from grader.classroom.course.build import build

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import mini  # noqa: E402
import needs  # noqa: E402
from whole.attacks import ATTACKS  # noqa: E402
from whole.attacks.attack import Attack  # noqa: E402
from whole.attacks.lab import Lab  # noqa: E402
from whole.attacks.result import Result, harm  # noqa: E402

SIDES = ("stock", "ours")
RAN = "HIT"  # the title of a page on which an attack's script has run
CLICK_MILLISECONDS = 500


@dataclass(frozen=True)
class Tried:
    """An attack against one side: what it won ("" for nothing), and what came of it."""

    attack: Attack
    won: str
    result: Result
    script: bool

    @property
    def points(self) -> float:
        """Those that it should not have, when it is by points that it won."""
        more = re.match(r"([\d.]+) points more", self.won)
        return float(more[1]) if more else 0.0

    @property
    def hung(self) -> bool:
        return "still running" in self.result.raised

    @property
    def changed(self) -> int:
        return len(self.result.left) + len(self.result.reached) + len(self.result.copied)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", help="some attacks only: words of their names or aims")
    options.add_argument("--only", choices=SIDES, help="one of the two")
    options.add_argument("--most", type=int, default=len(ATTACKS), help="so many of each aim")
    options.add_argument("--json", type=Path, help="a file for what came of every attack")
    chosen = options.parse_args()
    console = Console()
    if lacking := Lab.missing():
        console.print(lacking)
        raise SystemExit(1)
    listed = [a for a in ATTACKS if not chosen.names or any(n in f"{a.name} {a.aim}" for n in chosen.names)]
    listed = [a for k, a in enumerate(listed) if [b.aim for b in listed[:k]].count(a.aim) < chosen.most]
    sides = [side for side in SIDES if chosen.only in (None, side)]
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        course = mini.make_course(Path(scratch))
        build(course)
        opened = browser(stack, console)
        seen = {side: run(side, listed, course, opened, console) for side in sides}
    console.print(table(seen))
    for side, tries in seen.items():
        for t in tries:
            if side == "stock" and bool(t.won) != t.attack.stock.falls:
                console.print(f"Not as the table says of stock: {t.attack.name} ({t.attack.stock.why})", markup=False)
            if side == "ours" and t.won:
                console.print(f"[red]{t.attack.name}[/red] ({t.attack.aim}): {escape(t.won)}")
    if chosen.json:
        records = {side: [record(t) for t in tries] for side, tries in seen.items()}
        chosen.json.write_text(json.dumps(records, indent=1))


def run(
    side: str, listed: Sequence[Attack], course: Path, opened: Callable[[str], bool], console: Console
) -> list[Tried]:
    lab, tries = Lab(side, course), []
    for attack in track(listed, side, console=console, transient=True, disable=not console.is_terminal):
        result = lab.run(attack.name)
        script = bool(result.page) and opened(result.page)
        won = attack.won(result) or "its script ran" * script or (harm(result) if side == "ours" else "")
        tries.append(Tried(attack, won, result, script))
    rest = lab.close()
    if side == "ours" and rest:
        console.print(f"Left behind when all was over: {rest}")
    return tries


def browser(stack: ExitStack, console: Console) -> Callable[[str], bool]:
    """What opens a page, clicks all its links, and says whether an attack's script ran."""
    if lacking := needs.lacking("browser"):
        console.print(f"Scripts are not looked for in a browser: {lacking}")
        return lambda page: False
    from playwright.sync_api import Error, sync_playwright

    driver = stack.enter_context(sync_playwright())
    chromium = driver.chromium.launch(executable_path=needs.browser(), args=["--no-sandbox"])
    stack.callback(chromium.close)

    def opened(source: str) -> bool:
        with chromium.new_context() as context:
            context.route("**/*", lambda route: route.abort())
            page = context.new_page()
            page.set_content(source, wait_until="domcontentloaded")
            for link in page.locator("a, [onclick], img, svg").all()[:50]:
                try:
                    link.click(timeout=CLICK_MILLISECONDS, no_wait_after=True)
                except Error:  # nothing that can be clicked
                    continue
            return RAN in (page.title(), *(other.title() for other in context.pages))

    return opened


def table(seen: dict[str, list[Tried]]) -> Table:
    """Attacks by aim, and what they came to on each side."""
    shown = Table(title="Attacks by aim")
    for name in ("aim", "attacks", "", "won", "points", "secrets", "scripts", "changed", "hangs", "seconds"):
        shown.add_column(name, justify="left" if name in ("aim", "") else "right")
    aims = list(dict.fromkeys(t.attack.aim for tries in seen.values() for t in tries))
    for aim in [*aims, "all"]:
        for side, tries in seen.items():
            here = [t for t in tries if aim in (t.attack.aim, "all")]
            shown.add_row(aim, str(len(here)), side, *map(str, sums(here)), end_section=side == list(seen)[-1])
    return shown


def sums(tries: Sequence[Tried]) -> tuple[int, str, int, int, int, int, str]:
    return (
        sum(bool(t.won) for t in tries),
        f"{sum(t.points for t in tries):g}",
        sum(len(t.result.canaries) for t in tries),
        sum(t.script for t in tries),
        sum(t.changed for t in tries),
        sum(t.hung for t in tries),
        f"{sum(t.result.seconds for t in tries):.0f}",
    )


def record(tried: Tried) -> dict[str, object]:
    kept = {**asdict(tried.result), "page": len(tried.result.page), "text": tried.result.text[:1000]}
    return {
        "attack": tried.attack.name,
        "aim": tried.attack.aim,
        "won": tried.won,
        "script": tried.script,
        "hung": tried.hung,
        **kept,
        "words": tried.result.words[-2000:],
        "cards": len(tried.result.cards),
    }


if __name__ == "__main__":
    main()
