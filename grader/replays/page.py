"""A replay's page: one piece of HTML with its script and style; without a script, a strip of pictures."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.arrays.words import legible
from grader.palette import COLOURS
from grader.replays.facts import PageFacts, as_script, fitting
from grader.replays.frames import Playback
from grader.replays.stills import stills
from grader.replays.told import lines_told

if TYPE_CHECKING:
    from grader.draw.picture import Picture

SCRIPT = (Path(__file__).parent / "page.js").read_text(encoding="utf-8")
PAGE_STYLE = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
DRESS = as_script({"style": PAGE_STYLE, "colours": COLOURS})
DATA = '<script type="application/json">'  # before facts that another script draws
# For a page that may run one script, and that one only: it draws all replays whose facts lie on the page as data.
PLAYER = f"""(() => {{
{SCRIPT}
for (const root of document.querySelectorAll(".many-devices-replay")) {{
  try {{ show(root, JSON.parse(root.querySelector("script").textContent), {DRESS}); }}
  catch (error) {{ if (root.shadowRoot) root.replaceWith(...root.childNodes); }}
}}
}})()"""


@dataclass(frozen=True, eq=False)
class Replay:
    """A program's run to step through: a page in a notebook, text everywhere else; its facts are in `facts`.

    `start` is the frame with which the page begins; `about` is what a reader should know before.
    """

    title: str
    facts: Playback
    start: int = 0
    about: str = ""

    @property
    def result(self) -> Any:
        """What the program gives; None where it did not come to its end."""
        return self.facts.result

    def lanes(self, title: str = "") -> Picture:
        """The devices as lanes, below a title: where they met, and who waits for whom at the end."""
        from grader.draw.lanes import Meeting, lanes  # matplotlib takes its time

        frames = self.facts.frames
        met = [Meeting(f.transfer.name, group) for f in frames if f.transfer for group in f.transfer.groups]
        stuck: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        for wait in {wait.device: wait for f in frames for wait in f.waits}.values():
            stuck.setdefault((wait.name, wait.missing), []).append(wait.device)
        waits = [Meeting(name, tuple(who), missing) for (name, missing), who in stuck.items()]
        return lanes(math.prod(frames[-1].mesh.values()), [*met, *waits], title)

    def _repr_html_(self) -> str:
        if not self.facts.frames:
            return f"<pre>{html.escape(str(self))}</pre>"
        facts = fitting(self.title, self.start, self.about, self.facts)
        script = f"{SCRIPT}\nshow(document.currentScript.parentElement, {as_script(facts)}, {DRESS});"
        return f'<div class="many-devices-replay">{stills(facts)}<script>(() => {{\n{script}\n}})()</script></div>'

    def as_data(self) -> str:
        """The page without its script, for where a `PLAYER` draws it."""
        return as_data(fitting(self.title, self.start, self.about, self.facts))

    def __repr__(self) -> str:
        return legible("\n".join(lines_told(self.title, self.about, self.facts)))


def as_data(facts: PageFacts) -> str:
    """A replay as HTML that runs nothing by itself: its stills, and its facts for a `PLAYER`."""
    return f'<div class="many-devices-replay">{stills(facts)}{DATA}{as_script(facts)}</script></div>'
