"""`grader certificate`: one page, all in one file, for who has passed the capstone; made from verdicts alone.

The same page is made of a learner's own record and of a class's gradebook, and says which, and what that is worth.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding

from grader.arrays.described import built
from grader.arrays.devices import eight_devices
from grader.arrays.meshes import make_mesh
from grader.chips.report import communication
from grader.draw.curves import curves
from grader.guide.progress import progress
from grader.guide.syllabus import LessonText, syllabus
from grader.lessons import EXERCISES
from grader.lessons.capstone.curves import rounding_bound
from grader.lessons.capstone.model import SIZES
from grader.lessons.capstone.sharded import STATE, sharded_step
from grader.programs.program import trace
from grader.programs.walk import structure
from grader.transformer import init_params, init_state

CAPSTONE = "22_capstone"
GATES = "specs", "forward", "loss", "gradients", "step", "curve", "resume", "four_processes", "plan"
MESH, BATCH = {"data": 4, "model": 2}, (2, 8, 64)  # of the report: microbatches, rows, tokens
CERTIFICATE_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --page: #fdfdfb; --line: #8886; --good: #00734f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e6e1; --page: #17181a; --good: #4fc59a; } }
body { background: var(--page); color: var(--ink); font: 16px/1.5 Georgia, serif; margin: 0 auto; max-width: 52rem;
       padding: 2.5rem 1.5rem; }
header { border-bottom: 3px double var(--line); margin-bottom: 1.5rem; text-align: center; }
h1 { font-size: 1.1rem; font-weight: normal; letter-spacing: .08em; margin: 0; }
.name { font-size: 2.4rem; margin: .6rem 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 1.8rem 0 .5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem .25rem 0; text-align: left; }
td.number, th.number { text-align: right; }
th[scope=row] { font-weight: normal; }
.done { color: var(--good); }
pre { overflow-x: auto; font-size: .8rem; }
.worth { border: 1px solid var(--line); padding: .6rem 1rem; }
@media print { :root { --ink: #000; --page: #fff; --good: #000; } body { padding: 0; max-width: none; }
               h2, table, svg { break-inside: avoid; } }
"""
OWN = (
    "This page was made from the record that the learner's own computer keeps of the learner's own checks. Whoever has "
    "that computer could have written the record. It is worth as much as the learner's word; the notebook with the "
    "solutions, checked anew, is worth more."
)
GRADED = (
    "This page was made from the gradebook of a class. The learner handed in notebooks; their programs were run behind "
    "walls, on sizes and meshes that had not been seen before, and judged by a process that runs none of the learner's "
    "code. Who made the page vouches for who handed in, and for how."
)

Points = Mapping[str, tuple[float, float]]  # by exercise: what its verdict gave, and what it is worth


@dataclass(frozen=True)
class Certificate:
    """Whose it is and when it was made, what the verdicts gave, and whether a class's gradebook says so."""

    name: str
    date: str
    points: Points
    graded: bool

    @property
    def open_gates(self) -> list[str]:
        """The gates of the capstone that are not passed, in order."""
        return [gate for gate in GATES if not _is_passed(gate, self.points)]

    def page(self) -> str:
        """The page, as HTML that needs no other file. Runs the model that the verdicts stand for: some seconds."""
        name, worth = html.escape(self.name), GRADED if self.graded else OWN
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width"><title>Certificate: {name}</title>'
            f"<style>{CERTIFICATE_STYLE}</style></head>\n<body>\n<header><h1>Programming many devices in JAX</h1>"
            f'<p class="name">{name}</p><p>has trained a transformer on eight devices so that nobody can tell that it '
            f"was not one.<br><time>{html.escape(self.date)}</time></p></header>\n"
            f"<h2>The gates of the capstone</h2>\n{self._gates()}\n"
            f"<h2>The curve</h2>\n<p>The loss of forty steps on one device. Eight devices gave the same numbers, to a "
            f"bound derived from rounding, on this run and on others.</p>\n{_curve()}\n"
            f"<h2>What a step sends and holds</h2>\n{_reports()}\n"
            f"<h2>What was mastered</h2>\n{self._lessons()}\n"
            f'<h2>What this page is worth</h2>\n<p class="worth">{html.escape(worth)}</p>\n</body></html>\n'
        )

    def _gates(self) -> str:
        rows = [(gate, *(f"{n:g}" for n in self.points[gate]), "passed") for gate in GATES if gate in self.points]
        return _table(("gate", "points", "of", ""), rows)

    def _lessons(self) -> str:
        rows = [self._mastered(lesson) for lesson in syllabus()]
        return _table(("lesson", "core", "all", "points", "of"), [row for row in rows if row])

    def _mastered(self, lesson: LessonText) -> tuple[str, ...]:
        """A lesson's row; nothing of one in which nothing was earned."""
        names = [one.name for one in lesson.exercises]
        core = [one.name for one in lesson.exercises if one.is_core]
        earned = sum(self.points.get(name, (0, 0))[0] for name in names)
        worth = sum(EXERCISES[name].points for name in names if name in EXERCISES)
        done = tuple(f"{sum(_is_passed(name, self.points) for name in some)} of {len(some)}" for some in (core, names))
        return (lesson.title, *done, f"{earned:g}", f"{worth:g}") if earned else ()


def _is_passed(name: str, points: Points) -> bool:
    earned, worth = points.get(name, (0.0, 0.0))
    return worth > 0 and earned >= worth


def own_points() -> Points:
    """What the learner's record says of each exercise: the best that a check of it gave."""
    return {one.text.name: (one.best, one.worth) for part in progress().sections for one in part.standings if one.best}


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column names its rows; numbers stand to the right."""

    def cell(text: str) -> str:
        kind = ' class="number"' if text[:1].isdigit() else ' class="done"' if text == "passed" else ""
        return f"<td{kind}>{html.escape(text)}</td>"

    numbers = [k > 0 and bool(rows) and rows[0][k][:1].isdigit() for k in range(len(header))]
    head = "".join(
        f'<th scope="col"{" class=number" if number else ""}>{html.escape(name)}</th>'
        for name, number in zip(header, numbers, strict=True)
    )
    body = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th>{"".join(map(cell, rest))}</tr>' for name, *rest in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _curve() -> str:
    """The run by which `curve` is judged in a notebook: as one device computes it, and the course's step on eight."""
    eight_devices()
    exercise = EXERCISES["curve"]
    described = dict(exercise.draw_cases()[0].arguments)
    bound = rounding_bound(described["state"], described["batches"])
    run = built(described)
    one = exercise.reference(**run)["losses"]
    state, losses, step = run["state"], [], sharded_step(run["mesh"])
    for batch in run["batches"]:
        state, loss = step(state, *batch)
        losses.append(float(loss))
    return curves({"one device": one, "eight devices": losses}, "one device", "the loss", bound).svg()


def _reports() -> str:
    """What a step sends as the course writes it, on one mesh, and its memory. An answer is held to its bytes."""
    mesh = make_mesh(MESH)
    state = jax.eval_shape(lambda: init_state(init_params(jax.random.key(0), SIZES)))
    lying = jax.tree.map(
        lambda a, spec: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=NamedSharding(mesh, spec)), state, STATE
    )
    rows = jax.ShapeDtypeStruct(BATCH, jnp.int32)
    program = sharded_step(mesh)
    report, written = communication(program, lying, rows, rows), structure(trace(program, lying, rows, rows))
    times, sent = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for one in written.collectives:
        what = one.kind, " and ".join(one.axes)
        times[what] += one.times or 0
        sent[what] += one.bytes_sent
    table = [(kind, over, f"{times[kind, over]}", f"{sent[kind, over]:,}") for kind, over in sorted(sent)]
    return (
        f"<p>As the course writes the step, for its model of {SIZES['layers']} layers, {BATCH[0]} microbatches of "
        f"{BATCH[1]} × {BATCH[2]} tokens, a mesh of {MESH['data']} × {MESH['model']}. For each device: "
        f"{written.bytes_sent:,} bytes sent, {report.flops:,} FLOPs, {report.peak_bytes:,} bytes of peak memory. An "
        f"answer may send no more bytes.</p>{_table(('collective', 'along', 'times', 'bytes sent'), table)}"
    )
