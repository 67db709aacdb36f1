"""Pipelines played through: in which step each device does what, who waits for whom, and what it costs.

A device's *order* is a list of its work, such as `["F0", "F1", "B0", "B1"]`: the forward and the backward pass of
microbatches 0 and 1. Each device goes through its order and begins as early as it can, so orders say everything: no
timetable with the same orders is shorter.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Orders = Sequence[Sequence[str]]  # for each device, its work in order
SPELLING = re.compile(r"([FBW])(\d{1,6})(?:@(\d{1,6}))?", re.ASCII)
PIECES = 10_000  # pieces of work in a timetable


@dataclass(frozen=True)
class Work:
    """A forward pass (F), a backward pass (B), or that part of one which makes the gradient of the weights (W)."""

    kind: str
    microbatch: int
    stage: int

    def __str__(self) -> str:
        return f"{self.kind}{self.microbatch}@{self.stage}"


@dataclass(frozen=True)
class WaitingDevice:
    """A device that cannot begin a piece of work, because it needs another piece, of its own or of another device."""

    device: int
    work: Work
    need: Work
    of: int


@dataclass(frozen=True)
class Fault:
    """Why orders never end, or are no pass of all microbatches through all stages: which work, stages, and devices."""

    kind: Literal["empty", "repeated", "stage on two devices", "missing", "W missing", "deadlock"]
    work: Work | None = None
    numbers: tuple[int, ...] = ()
    waits: tuple[WaitingDevice, ...] = ()

    def __str__(self) -> str:
        match self.kind:
            case "empty":
                return "No device has anything to do."
            case "repeated":
                return f"{self.work} is done {self.numbers[0]} times."
            case "stage on two devices":
                stage, one, other = self.numbers
                return f"Stage {stage} is on devices {one} and {other}, but its weights are on one."
            case "missing":
                return f"{self.work} is never done."
            case "W missing":
                return f"{self.work} is never done, though other backward passes of its stage have a separate W."
            case _:
                waits = (
                    f"- device {w.device} can't begin {w.work}: it needs "
                    + ("its own" if w.of == w.device else f"device {w.of}'s")
                    + f" {w.need}"
                    for w in self.waits
                )
                return "Deadlock: every device with work left is waiting.\n" + "\n".join(waits)


@dataclass(frozen=True)
class Timetable:
    """What came of the orders.

    `starts[d]` has, for each piece of work that device d has come to, the step in which it began, from 0. `wrong` says
    why the orders do not come to an end, or why they are no pass of all microbatches through all stages.
    """

    orders: tuple[tuple[Work, ...], ...]
    starts: tuple[tuple[int, ...], ...]
    wrong: Fault | None = None

    @cached_property
    def split(self) -> frozenset[tuple[int, int]]:
        """The (microbatch, stage) whose backward pass is in two parts."""
        return frozenset((w.microbatch, w.stage) for order in self.orders for w in order if w.kind == "W")

    def length(self, work: Work) -> int:
        """Steps that a piece of work takes. A backward pass is two products for each of the forward's, so it takes two
        steps; one, where the gradient of the weights is made apart."""
        return 2 if self.frees(work) and work.kind == "B" else 1

    def waiting(self, device: int) -> Work | None:
        """What a device waits for ever to begin, where everybody waits for somebody."""
        halted = any(self.starts) and len(self.starts[device]) < len(self.orders[device])
        return self.orders[device][len(self.starts[device])] if halted else None

    def frees(self, work: Work) -> bool:
        """Whether nobody needs the activations of its forward pass after it."""
        return work.kind == "W" or work.kind == "B" and (work.microbatch, work.stage) not in self.split

    @property
    def microbatches(self) -> frozenset[int]:
        """The numbers of the microbatches."""
        return frozenset(work.microbatch for order in self.orders for work in order)

    @property
    def steps(self) -> int:
        """From the first step in which anybody works to the last."""
        return max((end for device in range(len(self.orders)) for _, _, end in self.placed(device)), default=0)

    @property
    def bubble(self) -> float:
        """The part of all (device, step) places in which a device has nothing to do."""
        places = self.steps * len(self.orders)
        busy = sum(end - start for device in range(len(self.orders)) for _, start, end in self.placed(device))
        return 1 - busy / places if places else 0.0

    @property
    def held(self) -> tuple[float, ...]:
        """For each device, how many microbatches it holds the activations of at most.

        A device with two stages holds half of its activations for each.
        """
        return tuple(self._most(order) for order in self.orders)

    def placed(self, device: int) -> Iterator[tuple[Work, int, int]]:
        """The work of a device, each with the step in which it begins and the first one after it."""
        for work, start in zip(self.orders[device], self.starts[device], strict=False):
            yield work, start, start + self.length(work)

    def place(self, work: Work) -> int:
        """Which of its device's stages a piece of work belongs to, from 0."""
        order = next(order for order in self.orders if work in order)
        return sorted({one.stage for one in order}).index(work.stage)

    def needs(self, work: Work) -> list[Work]:
        """What has to be done before a piece of work, on whichever device."""
        return _needs(work, max(one.stage for order in self.orders for one in order))

    def _most(self, order: Iterable[Work]) -> float:
        now = most = 0
        for work in order:
            now += (work.kind == "F") - self.frees(work)
            most = max(most, now)
        return most / max(1, len({work.stage for work in order}))

    def __repr__(self) -> str:
        if self.wrong:
            return str(self.wrong)
        held = "; microbatches held at most, by device: " + " ".join(f"{most:g}" for most in self.held)
        goes_back = any(work.kind == "B" for order in self.orders for work in order)
        return f"{self.steps} steps, bubble {self.bubble:.1%}{held if goes_back else ''}"


def simulate(orders: Orders) -> Timetable:
    """Play a pipeline through. Raises ValueError for what is no list of orders.

    Args:
      orders: for each device a list of its work: "F3" is the forward pass of microbatch 3, "B3" its backward pass. "W3"
        later in the list takes out of B3 what makes the gradient of the weights. A device is one stage, that of its own
        number; one with several says for which: "F3@5".

    Example:
      >>> grader.draw.simulate([["F0", "F1", "B0", "B1"], ["F0", "B0", "F1", "B1"]])
      9 steps, bubble 33.3%; microbatches held at most, by device: 2 1
    """
    read = _read(orders)
    last = max((work.stage for order in read for work in order), default=0)
    timetable = Timetable(read, ())  # knows how long everything takes
    ends: dict[Work, int] = {}
    starts: list[list[int]] = [[] for _ in read]
    waiting: dict[Work, list[int]] = defaultdict(list)  # the devices that cannot go on without it
    going = list(range(len(read)))
    while going:
        device = going.pop()
        begun, order = starts[device], read[device]
        while len(begun) < len(order):
            work = order[len(begun)]
            needs = _needs(work, last)
            if missing := next((need for need in needs if need not in ends), None):
                waiting[missing].append(device)
                break
            free = ends[order[len(begun) - 1]] if begun else 0
            begun.append(max([free, *(ends[need] for need in needs)]))
            ends[work] = begun[-1] + timetable.length(work)
            going += waiting.pop(work, [])
    wrong = _not_a_pass(read) or (_stuck(read, starts, last, ends) if waiting else None)
    return Timetable(read, tuple(map(tuple, starts)), wrong)


def interleaved(devices: int, microbatches: int, rounds: int = 2) -> list[list[str]]:
    """The orders of an interleaved pipeline (Megatron-LM; Narayanan et al., 2021).

    Device d has the stages d, d + n, …, and takes n microbatches through each in turn.

    Args:
      devices: how many, n.
      microbatches: how many, a multiple of n.
      rounds: how often a microbatch comes round: the stages of a device.

    Example:
      >>> grader.draw.simulate(grader.draw.interleaved(2, 4))
      27 steps, bubble 11.1%; microbatches held at most, by device: 2.5 1.5
    """

    def piece(kind: str, device: int, k: int) -> str:
        number, group = k // devices % rounds, k // (devices * rounds)
        stage = device + devices * (number if kind == "F" else rounds - 1 - number)
        return f"{kind}{group * devices + k % devices}@{stage}"

    pieces, orders = rounds * microbatches, []
    for device in range(devices):
        warm_up = min(2 * (devices - device - 1) + (rounds - 1) * devices + 1, pieces)
        order = [piece("F", device, k) for k in range(warm_up)]
        for k in range(pieces):
            order.append(piece("B", device, k))
            order += [piece("F", device, k + warm_up)] if k + warm_up < pieces else []
        orders.append(order)
    return orders


def _needs(work: Work, last: int) -> list[Work]:
    """What has to be done before it, on whichever device."""
    m, stage = work.microbatch, work.stage
    match work.kind:
        case "F":
            return [Work("F", m, stage - 1)] if stage else []
        case "B":
            return [Work("F", m, stage), *([Work("B", m, stage + 1)] if stage < last else [])]
        case _:
            return [Work("B", m, stage)]


def _read(orders: Orders) -> tuple[tuple[Work, ...], ...]:
    if not isinstance(orders, (list, tuple)) or not orders:
        raise ValueError("A timetable is a list with an order for each device.")
    if not all(isinstance(order, (list, tuple)) for order in orders):
        raise ValueError('Each device\'s order is a list of its work, such as ["F0", "B0"].')
    if sum(map(len, orders)) > PIECES:
        raise ValueError(f"That is more work than {PIECES:,} pieces.")
    return tuple(tuple(_work(text, device) for text in order) for device, order in enumerate(orders))


def _work(text: object, device: int) -> Work:
    found = SPELLING.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise ValueError(
            f"Device {device} has the work {str(text)[:40]!r}: it is written F, B or W and the number of a microbatch, "
            'as in "F3"; on a device with several stages, with the stage behind it: "F3@5".'
        )
    return Work(found[1], int(found[2]), int(found[3] or device))


def _not_a_pass(orders: tuple[tuple[Work, ...], ...]) -> Fault | None:
    """What these orders lack to be a pass of all microbatches through all stages, forward or forward and backward."""
    count = Counter(work for order in orders for work in order)
    if not count:
        return Fault("empty")
    if twice := next((work for work, times in count.items() if times > 1), None):
        return Fault("repeated", twice, (count[twice],))
    homes: dict[int, int] = {}
    for device, order in enumerate(orders):
        for work in order:
            if homes.setdefault(work.stage, device) != device:
                return Fault("stage on two devices", numbers=(work.stage, homes[work.stage], device))
    kinds = "FB" if any(work.kind != "F" for work in count) else "F"
    missing = _missing(count, kinds, range(max(homes) + 1))
    if missing:
        return Fault("missing", missing)
    missing = _missing(count, "W", sorted({work.stage for work in count if work.kind == "W"}))
    return Fault("W missing", missing) if missing else None


def _missing(count: Iterable[Work], kinds: str, stages: Iterable[int]) -> Work | None:
    """The first piece of work that is not there, of all microbatches on these stages."""
    there = set(count)
    microbatches = sorted({work.microbatch for work in there})
    due = (Work(kind, m, stage) for stage in stages for m in microbatches for kind in kinds)
    return next((work for work in due if work not in there), None)


def _stuck(
    orders: tuple[tuple[Work, ...], ...], starts: Sequence[Sequence[int]], last: int, ends: dict[Work, int]
) -> Fault:
    """Which device waits for which when none can go on."""
    home = {work.stage: device for device, order in enumerate(orders) for work in order}
    waits = []
    for device, order in enumerate(orders):
        if len(starts[device]) < len(order):
            work = order[len(starts[device])]
            need = next(need for need in _needs(work, last) if need not in ends)
            waits.append(WaitingDevice(device, work, need, home[need.stage]))
    return Fault("deadlock", waits=tuple(waits))
