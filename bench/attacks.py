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
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from grader.classroom.course.build import build

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import labs  # noqa: E402
import mini  # noqa: E402
import needs  # noqa: E402
from whole.attacks import ATTACKS  # noqa: E402
from whole.attacks.around import AROUND  # noqa: E402
from whole.attacks.attack import Attack  # noqa: E402
from whole.attacks.lab import Lab  # noqa: E402
from whole.attacks.result import Result, harm  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

SIDES = ("stock", "ours")
RAN = "HIT"  # the title of a page on which an attack's script has run
CLICK_MILLISECONDS = 300
CLICK_ALL = """() => {  // but none that leads to another page: the next would not be clicked
  addEventListener("click", event => {
    const link = event.target.closest("a"), href = link && (link.href.baseVal ?? link.href);
    if (href && new URL(href, document.baseURI).protocol.startsWith("http")) event.preventDefault();
  }, true);
  for (const one of document.querySelectorAll("a, [onclick], svg, svg *"))
    one.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}));
}"""
WIDTH = 110  # of what is no terminal


@dataclass(frozen=True)
class Tried:
    """An attack against one side: what it won ("" for nothing), and what came of it."""

    attack: Attack
    won: str
    result: Result
    script: bool

    @property
    def executed(self) -> bool:
        return self.attack.executed(self.result)

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
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    if lacking := Lab.missing():
        console.print(lacking)
        raise SystemExit(1)
    listed = [a for a in ATTACKS if not chosen.names or any(n in f"{a.name} {a.aim}" for n in chosen.names)]
    listed = [a for k, a in enumerate(listed) if [b.aim for b in listed[:k]].count(a.aim) < chosen.most]
    sides = [side for side in SIDES if chosen.only in (None, side)]
    seen: dict[str, list[Tried]] = {side: [] for side in sides}
    with suppress(KeyboardInterrupt), tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        course = mini.make_course(Path(scratch))
        build(course)
        labs = {side: Lab(side, course) for side in sides}
        for lab in labs.values():
            stack.callback(lab.end)
        if lacking := needs.lacking("browser"):
            console.print(f"Scripts are not looked for in a browser: {lacking}")
        for number, attack in enumerate(listed, 1):
            console.print(f"{number}/{len(listed)} {attack.aim}: {attack.name}", markup=False)
            for side, lab in labs.items():
                seen[side].append(tried := attempt(attack, lab))
                console.print(f"  {side}: {tried.won or 'nothing'} ({tried.result.seconds:.0f} s)", markup=False)
        for side, lab in labs.items():
            if (rest := lab.close()) and side == "ours":
                console.print(f"Left behind when all was over: {rest}", markup=False)
    if missing := sum(len(listed) - len(tries) for tries in seen.values()):
        console.print(f"Interrupted: {missing} of {len(listed) * len(sides)} runs are missing.")
    for side, tries in seen.items():
        for tried in (t for t in tries if not t.executed):
            console.print(f"Not counted on {side}, since it left no trace: {tried.attack.name}", markup=False)
    seen = {side: [t for t in tries if t.executed] for side, tries in seen.items()}
    console.print(table(seen))
    if "ours" in sides:
        console.print(table_around(chosen.names, console))
    for tried in (t for t in seen.get("stock", []) if bool(t.won) != t.attack.stock.falls):
        console.print(f"Not as the table says of stock: {tried.attack.name} ({tried.attack.stock.why})", markup=False)
    for tried in (t for t in seen.get("ours", []) if t.won):
        console.print(f"[red]{tried.attack.name}[/red] ({tried.attack.aim}): {escape(tried.won)}")
    if chosen.json:
        records = {side: [record(t) for t in tries] for side, tries in seen.items()}
        chosen.json.write_text(json.dumps(records, indent=1))


def table_around(names: Sequence[str], console: Console) -> Table:
    """The attacks around the walls, which no lab needs: by aim, how many were executed, and how many won."""
    shown = Table(title="Attacks around the walls, on ours")
    for name in ("aim", "executed", "won"):
        shown.add_column(name, justify="left" if name == "aim" else "right")
    counts: dict[str, list[int]] = {}
    for one in (a for a in AROUND if not names or any(n in f"{a.name} {a.aim}" for n in names)):
        with tempfile.TemporaryDirectory() as scratch:
            trace, won = one.act(mini.built_course(Path(scratch)))
        console.print(f"{one.aim}: {one.name}: {won or 'nothing'}", markup=False)
        if not trace:
            console.print("  Not counted, since it left no trace")
        count = counts.setdefault(one.aim, [0, 0])
        count[0] += bool(trace)
        count[1] += bool(won)
    for aim, (executed, wins) in counts.items():
        shown.add_row(aim, str(executed), str(wins))
    shown.add_row("all", *(str(sum(column)) for column in zip(*counts.values(), strict=True)))
    return shown


def attempt(attack: Attack, lab: Lab) -> Tried:
    """An attack in a lab, and what came of it."""
    result = lab.run(attack.name)
    script = bool(result.page) and not needs.lacking("browser") and runs(result.page)
    harmed = harm(result) if lab.which == "ours" else ""
    return Tried(attack, attack.won(result) or "its script ran" * script or harmed, result, script)


def runs(source: str) -> bool:
    """Whether an attack's script runs in Chromium when a page is opened, or when all its links are clicked."""
    with labs.chromium() as browser:
        context = browser.new_context()
        context.route("**/*", lambda route: route.abort())
        page = context.new_page()
        page.set_content(source, wait_until="domcontentloaded")
        if _ran(context):
            return True
        page.evaluate(CLICK_ALL)
        page.wait_for_timeout(CLICK_MILLISECONDS)
        return _ran(context)


def _ran(context: BrowserContext) -> bool:
    """Some page has the title that an attack's script gives it, or consists of what a javascript: link returns."""
    from playwright.sync_api import Error

    for page in context.pages:
        with suppress(Error):  # a page that is just being left has none
            if RAN in page.evaluate("[document.title, document.body.innerText.trim()]"):
                return True
    return False


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
