"""A pod of chips: where each stands, its wires, which host drives it, and how a mesh axis runs through them.

Drawn from `Route`s over a `Topology`, which are facts: the devices of each group along an axis, and the wires between
one and the next.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from grader.chips.report import PodReport
from grader.chips.topologies import Topology, topology
from grader.draw.grids import Grid, grid
from grader.draw.picture import COLOURS, INK, PAGE, QUIET, SMALL, WRONG, Picture, inches_of, sheet
from grader.draw.shapes import Point

CHIPS_DRAWN = 512  # chips that are drawn; of a larger pod, as many whole planes as that
CHIPS_NUMBERED = 64  # chips that are drawn large enough for their devices' numbers
SMALL_CHIP = 0.075  # inches: the radius of a chip that has no number
ROW = 4  # planes side by side
NAME_RADIUS = 0.19  # inches around a host's name
# Of a red arrow, as parts of its length; the first of the best is taken.
BENDS = 0, 0.06, -0.06, 0.12, -0.12, 0.18, -0.18, 0.25, -0.25, 0.33, -0.33


@dataclass(frozen=True)
class Route:
    """The devices of one group in order, and the wires from each to the next, the last one's to the first included."""

    devices: tuple[int, ...]
    hops: tuple[int, ...]


def routes(pod: Topology, mesh: Mapping[str, int], order: Sequence[int], axis: str) -> list[Route]:
    """The groups of a mesh axis on a pod, as a collective along it goes round; `order` has the mesh's devices."""
    facts = grid(dict(mesh))
    lines = Grid(facts.sizes, facts.ids).groups([axis])
    groups = [tuple(order[place] for place in line) for line in lines]
    return [Route(group, tuple(pod.hops(a, b) for a, b in itertools.pairwise((*group, group[0])))) for group in groups]


def pod(
    where: str | PodReport,
    mesh: Mapping[str, int] | None = None,
    axis: str | None = None,
    order: Sequence[int] | None = None,
    title: str = "",
) -> Picture:
    """The chips of a pod with their wires and their hosts, and how the devices along a mesh axis are wired.

    Wires within a plane are drawn where chips are numbered; one that closes a row or a column to a ring is a stub at
    both ends. One group along the axis is drawn as a ring with its arrows; the others have a colour each. An arrow over
    more than one wire is red. Planes of a pod with three dimensions stand side by side; of a step from one to another
    the number of its goal stands below the chip.

    Args:
      where: a pod, such as "v5e:4x4", or the report of `grader.communication(…, on=…)`, which brings mesh and order.
      mesh: axis names to sizes.
      axis: which axis is drawn.
      order: the pod's devices row by row through the mesh; by default as `jax.make_mesh` arranges them.
      title: stands above the picture.

    Raises:
      ValueError: there is no such pod, or no such axis, or the mesh is not of the pod's size.

    Example:
      >>> grader.draw.pod("v5e:2x4", {"x": 4, "y": 2}, axis="x")
      v5e:2x4 (8 chips, 2 hosts)
        host 0: 0 at (0, 0), 1 at (1, 0), 2 at (0, 1), 3 at (1, 1)
        host 1: 4 at (0, 2), 5 at (1, 2), 6 at (0, 3), 7 at (1, 3)
        wires: from each chip to its neighbours
      along x: 2 groups of 4
        0 → 2 → 7 → 5 → 0: 1, 3, 1, 3 wires
        1 → 3 → 6 → 4 → 1: 1, 3, 1, 3 wires
        longest: 3
    """
    chips = where.topology if isinstance(where, PodReport) else topology(where)
    sizes = where.mesh if isinstance(where, PodReport) else dict(mesh or {})
    if isinstance(where, PodReport):
        order = where.order
    if axis is not None and not sizes:
        raise ValueError(f"the axis {axis!r} is one of a mesh: say which, as mesh={{'{axis}': {chips.devices}}}")
    placed = tuple(order) if order is not None else chips.order(sizes) if sizes else tuple(range(chips.devices))
    found = routes(chips, sizes, placed, axis) if axis else []
    words = [title, str(chips), *_hosts_in_words(chips), _wires_in_words(chips), *_routes_in_words(found, axis)]
    return Picture(_drawn(chips, found, title or _heading(chips, axis)), "\n".join(filter(None, words)))


def _heading(chips: Topology, axis: str | None) -> str:
    return f"{chips}, along {axis}" if axis else str(chips)


def _hosts_in_words(chips: Topology) -> list[str]:
    hosts: dict[int, list[int]] = {}
    for device in range(chips.devices):
        hosts.setdefault(chips.host(device), []).append(device)
    lines = [f"  host {h}: {', '.join(f'{d} at {_place(chips, d)}' for d in those)}" for h, those in hosts.items()]
    return lines if len(lines) <= 4 else [*lines[:2], f"  … {len(lines) - 3} more …", lines[-1]]


def _wires_in_words(chips: Topology) -> str:
    closed = [str(k + 1) for k in range(chips.chip.dimensions) if chips.wraps(k)]
    rings = f"; closed to rings along dimension {', '.join(closed)}" if closed else ""
    return f"  wires: from each chip to its neighbours{rings}"


def _place(chips: Topology, device: int) -> tuple[int, ...]:
    return chips.coords[device][: chips.chip.dimensions]


def _routes_in_words(found: Sequence[Route], axis: str | None) -> list[str]:
    if not found:
        return []
    lines = [f"along {axis}: {len(found)} group{'s' * (len(found) > 1)} of {len(found[0].devices)}"]
    for route in found[:4]:
        around = " → ".join(map(str, _shortened((*route.devices, route.devices[0]))))
        lines.append(f"  {around}: {', '.join(map(str, _shortened(route.hops)))} wires")
    if len(found) > 4:
        lines.append(f"  … {len(found) - 4} more …")
    return [*lines, f"  longest: {max(max(route.hops) for route in found)}"]


def _shortened(numbers: Sequence[int]) -> list[int | str]:
    return [*numbers] if len(numbers) <= 18 else [*numbers[:8], "…", *numbers[-8:]]


def _drawn(chips: Topology, found: Sequence[Route], title: str) -> Figure:
    few = chips.chips <= CHIPS_NUMBERED
    wide, high, deep = chips.shape
    apart, radius = (0.62 if deep == 1 else 0.74, 0.2) if few else (0.26, SMALL_CHIP)
    planes = min(deep, max(1, CHIPS_DRAWN // (wide * high)))
    across, down = wide * apart + 0.35, high * apart + 0.45
    figure, ax = sheet(
        max(0.3 + min(planes, ROW) * across, inches_of([title], SMALL) + 0.3),
        0.45 + -(-planes // ROW) * down,
    )
    ax.text(0.05, 0.15, title, fontsize=10, color=PAGE, va="center")

    def at(device: int) -> tuple[float, float]:
        x, y, z = chips.coords[device]
        return 0.3 + z % ROW * across + (x + 0.5) * apart, 0.5 + z // ROW * down + (y + 0.5) * apart

    shown = [device for device in range(0, chips.devices, chips.chip.devices) if chips.coords[device][2] < planes]
    for device in shown:
        if all(place % 2 == 0 for place in chips.coords[device][:2]):
            _host(ax, at(device), apart, chips.host(device) if few else None)
    for a, b in _wires(chips, shown) if few else ():
        _wire(ax, at(a), at(b), apart, f"wire from {a} to {b}")
    colour = {d: COLOURS[k % len(COLOURS)] for k, route in enumerate(found) for d in route.devices}
    for device in shown:
        x, y = at(device)
        ax.add_patch(Circle((x, y), radius, facecolor=colour.get(device, COLOURS[0]), edgecolor=INK, zorder=2,
                            linewidth=0.8 if few else 0.3, gid=f"device {device}"))  # fmt: skip
        if few:
            cores = range(device, device + chips.chip.devices)
            ax.text(x, y, ", ".join(map(str, cores)), ha="center", va="center", fontsize=8, color=INK, zorder=4)
    if found:
        ring = {d: at(d) for d in found[0].devices if chips.coords[d][2] < planes}
        names = [text.get_position() for text in ax.texts if text.get_text().startswith("host")]
        others = [(at(d), radius) for d in shown] + [(place, NAME_RADIUS) for place in names]
        _ring(ax, found[0], ring, radius, [place[2] for place in chips.coords], others if few else ())
    if planes > 1:
        for z in range(planes):
            x, y = 0.3 + z % ROW * across, 0.5 + z // ROW * down + high * apart + 0.1
            ax.text(x + wide * apart / 2, y, f"plane {z}", ha="center", va="center", fontsize=8, color=QUIET)
    return figure


def _host(ax: Axes, corner: tuple[float, float], apart: float, number: int | None) -> None:
    """The board of 2 × 2 chips that one host drives."""
    x, y = corner[0] - apart / 2 + 0.03, corner[1] - apart / 2 + 0.03
    side = 2 * apart - 0.06
    ax.add_patch(
        FancyBboxPatch((x, y), side, side, boxstyle="round,pad=0,rounding_size=0.05", facecolor="none",
                       edgecolor="#9a9a9a", linewidth=0.8, zorder=0, gid="host")
    )  # fmt: skip
    if number is not None:
        ax.text(x + side / 2, y + side / 2, f"host {number}", ha="center", va="center", fontsize=6.5, color=QUIET)


def _wires(chips: Topology, devices: Sequence[int]) -> list[tuple[int, int]]:
    """The pairs of neighbours that stand in the same plane."""
    pairs = itertools.combinations(devices, 2)
    return [(a, b) for a, b in pairs if chips.hops(a, b) == 1 and chips.coords[a][2] == chips.coords[b][2]]


def _wire(ax: Axes, one: tuple[float, float], other: tuple[float, float], apart: float, gid: str) -> None:
    """A line between two neighbours; between the ends of a row or a column, a stub at each, away from the other."""
    far = math.dist(one, other)
    ends = (
        [(one, other)]
        if far < 1.5 * apart
        else [(one, _beyond(other, one, apart)), (other, _beyond(one, other, apart))]
    )
    for start, end in ends:
        ax.plot(*zip(start, end, strict=True), color=QUIET, linewidth=1, zorder=1, gid=gid)


def _beyond(start: tuple[float, float], end: tuple[float, float], apart: float) -> tuple[float, float]:
    """The place half a step behind the end of a way."""
    share = 1 + 0.5 * apart / math.dist(start, end)
    return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])


def _bend(start: Point, end: Point, obstacles: Sequence[tuple[Point, float]]) -> float:
    """How an arrow is bent so that it stays clear of what else is there, or comes no nearer than it must."""
    (x, y), (u, v) = start, end
    others = [(centre, size) for centre, size in obstacles if centre not in (start, end)]

    def clear(bend: float) -> float:
        a, b = (x + u) / 2 - bend * (v - y), (y + v) / 2 + bend * (u - x)  # what `arc3` bends to: down is down here
        ways = [((1 - t) ** 2, 2 * t * (1 - t), t**2) for t in (k / 24 for k in range(25))]
        curve = [(p * x + q * a + r * u, p * y + q * b + r * v) for p, q, r in ways]
        room = [math.dist(point, centre) - size for point in curve for centre, size in others]
        return min(0.03, *room)

    return max(BENDS, key=clear)


def _ring(
    ax: Axes,
    route: Route,
    at: Mapping[int, Point],
    radius: float,
    planes: Sequence[int],
    obstacles: Sequence[tuple[Point, float]],
) -> None:
    """Each device of a group to the next: red over several wires, dashed where a wire is drawn long.

    `planes` has every device's plane. Where chips are numbered, a step to another plane is told below its chip by the
    number to which it goes: arrows would cross all that is between. Where they are not, it is a thin line.
    """
    around = (*route.devices, route.devices[0])
    for (a, b), hops in zip(itertools.pairwise(around), route.hops, strict=True):
        if a not in at or b not in at or not hops:
            continue
        colour, name = WRONG if hops > 1 else PAGE, f"{a} to {b}"
        if planes[a] != planes[b] and radius > SMALL_CHIP:
            x, y = at[a]
            ax.text(x, y + radius + 0.07, f"→ {b}", ha="center", va="center", fontsize=6.5, color=colour, gid=name)
            continue
        across = planes[a] != planes[b]
        bend = _bend(at[a], at[b], obstacles) if hops > 1 and obstacles else 0.25
        long = hops == 1 and math.dist(at[a], at[b]) > 5 * radius  # round the edge, or from plane to plane
        ax.add_patch(
            FancyArrowPatch(
                at[a],
                at[b],
                arrowstyle="-" if across else "-|>",
                mutation_scale=40 * radius,
                linewidth=0.5 if across else 1.4,
                linestyle="--" if long else "-",
                color=WRONG if hops > 1 else QUIET if long else PAGE,
                shrinkA=72 * radius,
                shrinkB=72 * radius,
                connectionstyle=f"arc3,rad={bend if not across and (hops > 1 or long) else 0}",
                zorder=1.5 if long or hops > 1 else 3,
                gid=name,
            )
        )
