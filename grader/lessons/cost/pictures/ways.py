"""Ways to divide the layer relu(x · W_in) · W_out: what each device holds, and what each pass must send for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from jax.sharding import PartitionSpec as P
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from grader.arrays.blocks import Blocks, axes_of, blocks
from grader.draw.picture import COLOURS, INK, OF_KIND, PAGE, QUIET, SMALLER, Picture, held_by, inches_of, sheet
from grader.draw.shapes import Box, block, lettered

DRAWN_LONG = {"B": 0.92, "D": 0.66, "F": 1.16}  # inches of a dimension
DIMENSIONS = {"x": ("B", "D"), "W_in": ("D", "F"), "W_out": ("F", "D")}
PASSES = ("forward", "backward")
TOP, HEAD, ROW, APART, CHIP = (
    0.62,
    0.27,
    1.54,
    0.36,
    0.2,
)  # inches: above; a way's name; a way; two arrays; a collective


@dataclass(frozen=True)
class Sending:
    """A collective over one axis of the mesh, on one array; dW is the gradient with respect to W."""

    kind: str
    array: str
    axis: str

    def __str__(self) -> str:
        return f"{self.kind} {self.array} over {self.axis}"


@dataclass(frozen=True)
class Division:
    """The layer on a mesh: `specs` lay out x [B, D], W_in [D, F] and W_out [F, D].

    What is sent follows from the layouts. An axis that cuts the tokens and a weight: the weight is gathered before it
    is used, and its gradient comes in shares. One that cuts the tokens only: each device has a term of the gradient.
    One that cuts F: the output, and the gradient of x, are sums over it.
    """

    sizes: Mapping[str, int]
    specs: tuple[P, P, P]

    def __post_init__(self) -> None:
        (_, *features), (d, f), out = map(_entries, self.specs)
        if any(features) or out != (f, d) or set(d) - set(self.tokens):
            raise ValueError(
                "x is cut along B only, both weights are cut alike (D as D, F as F), and what cuts D of them cuts B; "
                f"here x is {self.specs[0]}, W_in {self.specs[1]} and W_out {self.specs[2]}"
            )

    @property
    def tokens(self) -> tuple[str, ...]:
        """The axes that cut B."""
        return _entries(self.specs[0])[0]

    @property
    def forward(self) -> tuple[Sending, ...]:
        """What the forward pass sends, in order."""
        gathers, sums = self._gathers, _entries(self.specs[1])[1]
        return (*gathers, *(Sending("all_reduce", "output", axis) for axis in sums))

    @property
    def backward(self) -> tuple[Sending, ...]:
        """What the backward pass sends; what was gathered forward is not kept, and gathered again."""
        shared, sums = _entries(self.specs[1])
        kinds = {axis: "reduce_scatter" if axis in shared else "all_reduce" for axis in self.tokens}
        terms = (Sending(kind, f"d{weight}", axis) for axis, kind in kinds.items() for weight in ("W_in", "W_out"))
        return (*self._gathers, *(Sending("all_reduce", "dx", axis) for axis in sums), *terms)

    @property
    def passes(self) -> dict[str, tuple[Sending, ...]]:
        """What each pass sends."""
        return dict(zip(PASSES, (self.forward, self.backward), strict=True))

    @property
    def _gathers(self) -> tuple[Sending, ...]:
        shared = _entries(self.specs[1])[0]
        return tuple(Sending("all_gather", weight, axis) for axis in shared for weight in ("W_in", "W_out"))

    def held(self) -> dict[str, Blocks]:
        """Array → its blocks, each dimension as many entries long as there are devices."""
        n = math.prod(self.sizes.values())
        return {name: blocks((n, n), spec, self.sizes) for name, spec in zip(DIMENSIONS, self.specs, strict=True)}


def ways(divided: Mapping[str, tuple[Mapping[str, int], tuple[P, P, P]]], device: int, title: str = "") -> Picture:
    """For each way the blocks of x, W_in and W_out, one device's framed, and the collectives of both passes.

    Args:
      divided: name → (axis names to sizes, the specs of x, W_in and W_out).
      device: whose blocks are framed.
      title: stands above the picture.

    Raises:
      ValueError: the specs are not those of data parallelism, FSDP, tensor parallelism or of these together.

    Example:
      >>> grader.draw.ways({"tensor parallel": ({"y": 2}, (P(), P(None, "y"), P("y")))}, device=1)
      tensor parallel on y=2: device 1 holds all of x, 1/2 of W_in, 1/2 of W_out
        forward: all_reduce output over y
        backward: all_reduce dx over y
    """
    rows = {name: Division(sizes, specs) for name, (sizes, specs) in divided.items()}
    lefts, x = {}, 0.3
    for array in DIMENSIONS:
        lefts[array], x = x, x + _size(array)[0] + APART
    sendings = [one for row in rows.values() for sent in row.passes.values() for one in sent]
    chip = inches_of(map(str, sendings), SMALLER) + 0.12
    lefts |= {PASSES[0]: x, PASSES[1]: x + chip + 0.2}
    figure, ax = sheet(max(lefts[PASSES[1]] + chip + 0.1, inches_of([title])), TOP + len(rows) * ROW)
    lettered(ax, (0.05, 0.13), title, 10)
    for name, left in lefts.items():
        said = f"{name} [{', '.join(DIMENSIONS[name])}]" if name in DIMENSIONS else name
        lettered(ax, (left, 0.45), said, 8.5, color=QUIET)
    for k, (name, row) in enumerate(rows.items()):
        y = TOP + k * ROW
        lettered(ax, (0.05, y + 0.12), name, 9.5, weight="bold")
        lettered(ax, (lefts[PASSES[0]], y + 0.12), f"mesh {_spelled(row)}", 8.5, color=QUIET)
        for array, held in row.held().items():
            _draw_array(ax, held, (lefts[array], y + HEAD, *_size(array)), device)
        for moment, sent in row.passes.items():
            _draw_sendings(ax, sent, (lefts[moment], y + HEAD, chip, CHIP))
    facts = (_told(name, row, device) for name, row in rows.items())
    return Picture(figure, "\n".join(filter(None, [title, *facts])))


def _size(array: str) -> tuple[float, float]:
    """Inches across and down."""
    down, across = DIMENSIONS[array]
    return DRAWN_LONG[across], DRAWN_LONG[down]


def _entries(spec: P) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The axes that cut rows, and those that cut columns."""
    rows, columns = (*spec, None, None)[:2]
    return axes_of(rows), axes_of(columns)


def _spelled(row: Division) -> str:
    return ", ".join(f"{axis}={n}" for axis, n in row.sizes.items())


def _draw_array(ax: Axes, held: Blocks, box: Box, device: int) -> None:
    holders: dict[Box, list[int]] = {}
    for d in range(len(held.indices)):
        holders.setdefault(_place(held, d, box), []).append(d)
    for k, (part, who) in enumerate(holders.items()):
        block(ax, part, COLOURS[k % len(COLOURS)], gid=held_by(*who))
    x, y, wide, high = _place(held, device, box)
    for ink, thick, gid in ((PAGE, 3, None), (INK, 1.7, f"device {device}")):  # seen around the block, and on it
        ax.add_patch(Rectangle((x, y), wide, high, fill=False, edgecolor=ink, linewidth=thick, zorder=4, gid=gid))


def _place(held: Blocks, device: int, box: Box) -> Box:
    """Where a device's block is drawn in the box of its array."""
    left, top, wide, high = box
    (start, stop), (first, last) = held.bounds(device)
    down, across = high / held.shape[0], wide / held.shape[1]
    return left + first * across, top + start * down, (last - first) * across, (stop - start) * down


def _draw_sendings(ax: Axes, sendings: tuple[Sending, ...], box: Box) -> None:
    """A collective below the other, each in its colour."""
    left, top, wide, high = box
    for k, one in enumerate(sendings):
        block(ax, (left, top + k * (high + 0.02), wide, high), OF_KIND[one.kind], str(one), f"{k}: {one}", size=7.5)
    if not sendings:
        lettered(ax, (left, top + high / 2), "nothing", 8, color=QUIET)


def _told(name: str, row: Division, device: int) -> str:
    parts = {array: Fraction(held.entries, math.prod(held.shape)) for array, held in row.held().items()}
    holds = ", ".join(f"{'all' if part == 1 else part} of {array}" for array, part in parts.items())
    sent = [f"  {moment}: {', '.join(map(str, one)) or 'nothing'}" for moment, one in row.passes.items()]
    return "\n".join([f"{name} on {_spelled(row)}: device {device} holds {holds}", *sent])
