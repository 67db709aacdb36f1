"""What a program may cost. Every limit is an object, with its check beside it.

A limit is given facts and says in words how a program exceeds it; "" when it does not. Of a program with shard_map the
text counts, as its author wrote it; of one that is left to the compiler, the compiled program. Work is counted for one
device in both. A new limit is a class here, and a place in ORDER.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from grader.arrays.words import enumeration
from grader.programs.execution import Ran
from grader.programs.structure import Collective, Structure

FEW_KINDS = 3  # of collectives: so many are told one by one
A_LITTLE = 0.1  # of the bytes that may be sent: fewer by so little are a number that is added up in another way


@dataclass(frozen=True)
class Facts:
    """What is known of a program in one case: what is written, what running it came to, what is sent that nobody wrote
    (which takes a while to find), and on which mesh."""

    written: Structure
    ran: Ran
    unwritten: Callable[[], Sequence[Collective]]
    mesh: Mapping[str, int]


class Limit:
    """Each limit overrides the methods for what it limits."""

    def of_written(self, facts: Facts) -> str:
        """How a program with shard_map exceeds it."""
        return ""

    def of_wrong(self, facts: Facts) -> str:
        """How what a program with shard_map sends differs from it, in words that are so of a wrong result too."""
        return ""

    def about(self, facts: Facts) -> tuple[int, ...]:
        """The numbers of those of the collectives written in a program with shard_map by which it exceeds this."""
        return ()

    def about_most(self, facts: Facts) -> bool:
        """Whether there are others, which send less."""
        return False

    def of_compiled(self, facts: Facts) -> str:
        """How a program that is left to the compiler exceeds it."""
        return ""

    def of_work(self, facts: Facts) -> str:
        """How a device's work or memory exceeds it."""
        return ""

    def of_chip(self, flops: int) -> str:
        """How the FLOPs in a chip's matmuls, as its own compiler made them, exceed it, or fall short."""
        return ""


@dataclass(frozen=True)
class Move:
    """A collective that the compiler may put into a program: its kind, its mesh axes, each device's operand."""

    kind: str
    axes: tuple[str, ...]
    operand: tuple[int, ...]

    def allows(self, collective: Collective, mesh: Mapping[str, int]) -> bool:
        """How a compiler orders the dimensions of what it sends is its own affair.

        A reduce_scatter may stand as an all_reduce.
        """
        alike = {collective.kind, self.kind} <= {"all_reduce", "reduce_scatter"} or collective.kind == self.kind
        return alike and set(collective.axes) == set(_long(self.axes, mesh)) and self._as_large(collective)

    def _as_large(self, collective: Collective) -> bool:
        """The same lengths, in any order. What only changes places may do so in pieces of any shape: entries count."""
        if collective.kind in ("all_to_all", "collective_permute"):
            return math.prod(collective.operand) == math.prod(self.operand)
        return sorted(n for n in collective.operand if n > 1) == sorted(n for n in self.operand if n > 1)


@dataclass(frozen=True)
class Moves(Limit):
    """For a program that is left to the compiler: what it may send, and nothing else."""

    moves: tuple[Move, ...]

    def of_compiled(self, facts: Facts) -> str:
        odd = [c for c in sending(facts.ran.compiled) if not any(m.allows(c, facts.mesh) for m in self.moves)]
        if not odd:
            return ""
        return (
            f"The result is right, but the compiler has to send what need not be sent:\n{bullets(odd)}\n\n"
            f"{self._allowed(facts.mesh)}"
        )

    def _allowed(self, mesh: Mapping[str, int]) -> str:
        spelled = dict.fromkeys(
            f"{m.kind} of [{','.join(map(str, m.operand))}] over {', '.join(axes)}"
            for m in self.moves
            if (axes := _long(m.axes, mesh))
        )
        return f"Nothing else need travel than: {'; or '.join(spelled)}." if spelled else "Nothing need travel at all."


@dataclass(frozen=True)
class Besides(Limit):
    """How many single numbers the compiler may send besides what is written in shard_map, and nothing else.

    Every program with shard_map has this limit; where a case does not say how many, it is none.
    """

    numbers: int = 0

    def of_written(self, facts: Facts) -> str:
        unwritten = sending(facts.unwritten())
        numbers = [c for c in unwritten if math.prod(c.operand) == c.times == 1]
        if len(numbers) == len(unwritten) <= self.numbers:
            return ""
        return (
            f"The result is right, but the compiler sends what is not written in shard_map:\n{bullets(unwritten)}\n\n"
            f"Data move before it or behind it{self._inside(facts)}, where the compiler chose how. Do the work inside, "
            "on operands as they are laid out."
        )

    def _inside(self, facts: Facts) -> str:
        """Where else they may move: along axes that a shard_map leaves to the compiler."""
        left = any(set(_long(tuple(facts.mesh), facts.mesh)) - set(one.axes) for one in facts.written.manual)
        return ", or inside it along the axes that it leaves to the compiler" if left else ""


@dataclass(frozen=True)
class Turns(Limit):
    """How often each kind of collective may run in a program with shard_map; a kind that is not named may not run."""

    allowed: Mapping[str, int]

    def of_wrong(self, facts: Facts) -> str:
        turns = self._turns(facts)
        if more := next((kind for kind, count in turns.items() if count > self.allowed.get(kind, 0)), ""):
            count = self.allowed.get(more, 0)
            enough = f"{count} {'is' if count == 1 else 'are'} enough" if count else "none is needed"
            return f"It has {more} × {turns[more]}, where {enough}. Which one is not needed, or stands for another?"
        return ""

    def _turns(self, facts: Facts) -> dict[str, int]:
        sent = sending(facts.written.collectives)
        return {kind: sum(c.times or 0 for c in sent if c.kind == kind) for kind in dict.fromkeys(c.kind for c in sent)}

    def of_written(self, facts: Facts) -> str:
        sent, turns = sending(facts.written.collectives), self._turns(facts)
        if all(count <= self.allowed.get(kind, 0) for kind, count in turns.items()):
            return ""
        odd = [c for c in sent if turns[c.kind] > self.allowed.get(c.kind, 0)]
        most = ", ".join(f"{kind} × {count}" for kind, count in self.allowed.items()) or "none"
        yours = ", ".join(f"{kind} × {count}" for kind, count in turns.items())
        return (
            "The result is right, but these collectives are not the ones asked for, or too many:\n"
            f"{bullets(odd)}\n\nAt most: {most}; yours: {yours}.{self._again(sent)}"
        )

    def _again(self, sent: Sequence[Collective]) -> str:
        """That every all_reduce runs several times, or has others like it, where one of each would be few enough."""
        turns = Counter[str]()
        for c in sent:
            if c.kind == "all_reduce":
                turns[str(replace(c, times=1))] += c.times or 0
        if min(turns.values(), default=0) < 2 or len(turns) > self.allowed.get("all_reduce", 0):
            return ""
        return (
            " Every all_reduce of these runs more than once, or has others like it. Would one of each do, at the end?"
        )

    def about(self, facts: Facts) -> tuple[int, ...]:
        turns = Counter[str]()
        for c in sending(facts.written.collectives):
            turns[c.kind] += c.times or 0
        return _those(facts, lambda c: turns[c.kind] > self.allowed.get(c.kind, 0))


@dataclass(frozen=True)
class Without(Limit):
    """A kind of collective that a program with shard_map does not run along an axis, and what it would bring about.

    With `dimensions` it is meant of operands that have so many.
    """

    kind: str
    axis: str
    brings: str
    dimensions: int | None = None

    def of_written(self, facts: Facts) -> str:
        found = [c for c in sending(facts.written.collectives) if self._is_meant(c)]
        return f"The result is right, but {self.brings}:\n{bullets(found)}" if found else ""

    def about(self, facts: Facts) -> tuple[int, ...]:
        return _those(facts, self._is_meant)

    def _is_meant(self, collective: Collective) -> bool:
        if self.dimensions is not None and len(collective.operand) != self.dimensions:
            return False
        return collective.kind == self.kind and self.axis in collective.axes


@dataclass(frozen=True)
class BytesSent(Limit):
    """What the best program sends from each device, by the ring algorithm."""

    needed: int

    def of_wrong(self, facts: Facts) -> str:
        moved = facts.written.bytes_sent
        if moved > self.needed:
            return (
                f"Each device sends {moved:,} B, where {self.needed:,} B are enough. What travels that is not needed?"
            )
        if self.needed - moved > A_LITTLE * self.needed:
            sent = [c for c in facts.written.collectives if c.bytes_sent]
            so_much = f"Each device sends {moved:,} B, and may send {self.needed:,} B"
            if 0 < len({*sent}) <= FEW_KINDS:
                return f"{so_much}:\n{bullets(sent)}\n\nWhat should each of these bring?"
            return f"{so_much}. Does it get all that it needs?"
        return ""

    def of_written(self, facts: Facts) -> str:
        moved = facts.written.bytes_sent
        if moved <= self.needed:
            return ""
        sent = bullets([c for c in facts.written.collectives if c.bytes_sent]) + _as_written(facts.written)
        if not self.needed:
            return f"The result is right, but each device sends {moved:,} B where none need be sent:\n{sent}"
        return (
            f"The result is right, but each device sends {moved:,} B where {self.needed:,} B are enough "
            f"({_surplus(moved, self.needed)}):\n{sent}"
        )

    def about(self, facts: Facts) -> tuple[int, ...]:
        """The one without which just enough is sent; else those that send most."""
        return self._superfluous(facts) or self._most(facts)

    def about_most(self, facts: Facts) -> bool:
        return not self._superfluous(facts) and len(self._most(facts)) < len(sending(facts.written.authored))

    def _superfluous(self, facts: Facts) -> tuple[int, ...]:
        surplus = facts.written.bytes_sent - self.needed
        found = _those(facts, lambda c: c.bytes_sent == surplus)
        return found if len(found) == 1 else ()

    def _most(self, facts: Facts) -> tuple[int, ...]:
        most = max((c.bytes_sent for c in facts.written.authored), default=0)
        return _those(facts, lambda c: c.bytes_sent == most)

    def of_compiled(self, facts: Facts) -> str:
        sent, moved = sending(facts.ran.compiled), facts.ran.bytes_sent
        if endless := [c for c in sent if c.times is None]:
            return (
                "The result is right, but nobody can tell how often this is sent: it stands in a branch, or in a "
                f"loop whose turns are not known beforehand.\n{bullets(endless)}"
            )
        if moved <= self.needed:
            return ""
        return (
            f"The result is right, but the compiled program sends {moved:,} B from each device where "
            f"{self.needed:,} B are enough:\n{bullets(sent)}"
        )


@dataclass(frozen=True)
class ManualAlong(Limit):
    """The axes along which a program is to be written per device; along the others the compiler divides it."""

    axes: tuple[str, ...]

    def of_written(self, facts: Facts) -> str:
        manual = {axis for one in facts.written.manual for axis in _long(one.axes, facts.mesh)}
        if not (besides := sorted(manual - set(self.axes))):
            return ""
        return (
            f"The result is right, but the function is written per device along {', '.join(besides)} as well, and was "
            f"to be so along {', '.join(self.axes)} only. Which argument of `jax.shard_map` says which axes are meant?"
        )


@dataclass(frozen=True)
class TakenInside(Limit):
    """Gradients are taken inside of shard_map: there is one shard_map, and no second one for the way back."""

    def of_written(self, facts: Facts) -> str:
        if (count := len(facts.written.manual)) <= 1:
            return ""
        return (
            f"The result is right, but there are {count} shard_maps in the program, and one is enough where a gradient "
            "is taken inside. (`jax.grad` of a function with a shard_map in it is a gradient from outside: JAX makes a "
            "second one for the way back.) What has to return the gradient?"
        )


@dataclass(frozen=True)
class ByCompiler(Limit):
    """No shard_map: the program is to be divided by the compiler."""

    def of_compiled(self, facts: Facts) -> str:
        if not facts.written.manual:
            return ""
        return "The result is right, but it is written with shard_map, and it was to be left to the compiler here."


@dataclass(frozen=True)
class EitherWay(Limit):
    """Leave is given to leave the program to the compiler: the other limits then hold for what that sends."""


@dataclass(frozen=True)
class OneWay(Limit):
    """How many bytes permutes may send to one neighbour."""

    allowed: int

    def of_written(self, facts: Facts) -> str:
        moved = facts.written.bytes_one_way
        if moved <= self.allowed:
            return ""
        return (
            f"The result is right, but each device sends {moved:,} B to one and the same neighbour; {self.allowed:,} B "
            "are enough when the links in both directions are used:\n" + bullets(sending(facts.written.collectives))
        )


@dataclass(frozen=True)
class Steps(Limit):
    """How many transfers may wait for one another, one after the other."""

    allowed: int

    def of_written(self, facts: Facts) -> str:
        steps = facts.written.steps
        if steps <= self.allowed:
            return ""
        return (
            f"The result is right, but {steps} transfers wait for one another, one after the other; a chain of "
            f"{self.allowed} is enough. Which of them could be under way at the same time?"
        )


@dataclass(frozen=True)
class Meanwhile(Limit):
    """How many FLOPs of matmuls must be free to run beside every turn of every collective."""

    flops: int

    def of_written(self, facts: Facts) -> str:
        idle = next(filter(self.is_missed_by, sending(facts.written.collectives)), None)
        if idle is None:
            return ""
        return (
            f"The result is right, but during this transfer there is too little to compute:\n- {idle}\n\n"
            f"It has {idle.overlappable_flops:,} FLOPs of products that neither wait for it nor it for them, and "
            f"{self.flops:,} are due; a product beside which several transfers could run is shared out among them. "
            f"{_of_around(*idle.around)}What a device holds already it can multiply while the next block is on its way."
        )

    def about(self, facts: Facts) -> tuple[int, ...]:
        return _those(facts, self.is_missed_by)[:1]

    def is_missed_by(self, collective: Collective) -> bool:
        """Whether too little is free to run beside it."""
        return collective.overlappable_flops < self.flops


@dataclass(frozen=True)
class Written(Limit):
    """How often each kind of collective may stand in the text; one in a loop stands there once."""

    allowed: Mapping[str, int]

    def of_written(self, facts: Facts) -> str:
        for kind, count in Counter(c.kind for c in sending(facts.written.collectives)).items():
            if count > (allowed := self.allowed.get(kind, 0)):
                if not allowed:
                    return f"The result is right, but {kind} stands in the program, where none is needed."
                return (
                    f"The result is right, but {kind} stands in the program {count} times, where "
                    f"{allowed} would do: in a loop it stands there once, on any number of devices."
                )
        return ""

    def about(self, facts: Facts) -> tuple[int, ...]:
        stand = Counter(c.kind for c in sending(facts.written.collectives))
        first = next((kind for kind, count in stand.items() if count > self.allowed.get(kind, 0)), "")
        return _those(facts, lambda c: c.kind == first)


@dataclass(frozen=True)
class Flops(Limit):
    """What one device computes when the work is divided."""

    needed: int

    def of_work(self, facts: Facts) -> str:
        # Adding up partial sums, a bias or a relu costs a few operations per entry: not what is asked here.
        local = sum(result.blocks.entries for result in facts.ran.results)
        if facts.ran.flops <= 1.5 * self.needed + 4 * local:
            return ""
        times = facts.ran.flops / self.needed
        return (
            f"The result is right, but each device computes {facts.ran.flops:,} FLOPs where {self.needed:,} are its "
            f"share (about {times:,.{1 if times < 10 else 0}f} times as many). What does it compute that another "
            "device computes too, or that nobody needs?"
        )


@dataclass(frozen=True)
class Roots(Limit):
    """Of how many numbers one device takes a root when each token is normed once, by the device that has it.

    It may take so many `times`: a gradient may compute a norm once more, which is cheaper than to keep what it made.
    """

    needed: int
    times: int = 1

    def of_work(self, facts: Facts) -> str:
        if facts.written.roots <= self.times * self.needed:
            return ""
        return (
            f"The result is right, but each device takes {facts.written.roots:,} roots where {self.needed:,} are its "
            "share (one for each of its tokens in each norm). Is a token normed by several devices, or twice by one?"
        )


@dataclass(frozen=True)
class InTurns(Limit):
    """What the largest matmul takes where a device works on so many rows at a time, and not on all that it has."""

    flops: int

    def of_work(self, facts: Facts) -> str:
        if facts.written.largest_product == self.flops:
            return ""
        if facts.written.largest_product < self.flops:
            return (
                f"The result is right, but no product takes more than {facts.written.largest_product:,} FLOPs, where "
                f"the rows of one turn take {self.flops:,}. How many turns does a device take, and how many are due?"
            )
        return (
            f"The result is right, but one of the products takes {facts.written.largest_product:,} FLOPs, where the "
            f"rows of one turn take {self.flops:,} at most. How many rows does a device multiply at a time?"
        )


@dataclass(frozen=True)
class PeakBytes(Limit):
    """What one device must hold at the peak: arguments, results, and all that is alive between them."""

    needed: int

    def of_work(self, facts: Facts) -> str:
        # Compilers differ in what they keep beside an array while they make the next.
        if facts.ran.peak_bytes <= 1.5 * self.needed:
            return ""
        return (
            f"The result is right, but each device holds {facts.ran.peak_bytes:,} B at the peak, where "
            f"{self.needed:,} B are enough (half as much again is allowed). What is alive longer than it is used, "
            "or whole where a part would do? `communication` prints the peak of any program."
        )


@dataclass(frozen=True)
class InPlace(Limit):
    """The first arrays that a program is given, of these dtypes, are given away, and come out first and as they went
    in: their memory is used again, and the next call finds the program compiled."""

    dtypes: tuple[str, ...]

    def of_work(self, facts: Facts) -> str:
        kept = len(set(range(len(self.dtypes))) - set(facts.written.donated))
        if kept:
            return (
                f"The result is right, but of the {len(self.dtypes)} arrays that come out anew {kept} are not given "
                "away: each device holds the old ones and the new ones side by side."
            )
        for k, (due, result) in enumerate(zip(self.dtypes, facts.ran.results, strict=False)):
            values = result.blocks.values
            if values is not None and (found := str(values[0].dtype)) != due:
                return (
                    f"The result is right, but array {k} of it went in as {due} and comes out as {found}: the next "
                    "call is another program, which is compiled anew."
                )
        return ""


@dataclass(frozen=True)
class ChipFlops(Limit):
    """For a program on a pod: the FLOPs of matmuls that each device needs at least, and those that are enough."""

    least: int
    enough: int

    def of_chip(self, flops: int) -> str:
        if flops < self.least:
            return f"Each device computes {flops:,} FLOPs there, and {self.least:,} are needed. What was left out?"
        if flops > self.enough:
            return (
                f"It fits, but each device computes {flops:,} FLOPs where {self.enough:,} are enough: what is computed "
                "again that need not be?"
            )
        return ""


# What is told first where several are exceeded.
ORDER: tuple[type[Limit], ...] = (
    EitherWay,
    ByCompiler,
    ManualAlong,
    TakenInside,
    Besides,
    Moves,
    Turns,
    Without,
    BytesSent,
    OneWay,
    Steps,
    Meanwhile,
    Written,
    Flops,
    Roots,
    InTurns,
    PeakBytes,
    InPlace,
    ChipFlops,
)


def in_order(limits: Sequence[Limit]) -> list[Limit]:
    return sorted(limits, key=lambda limit: ORDER.index(type(limit)))


def sending(collectives: Sequence[Collective]) -> list[Collective]:
    """The collectives by which a device really sends something."""
    return [c for c in collectives if c.group > 1]


def bullets(collectives: Sequence[Collective]) -> str:
    """A line for each; of equal ones, which a written-out loop has in every turn, one line with all turns together."""
    turns: dict[Collective, list[int | None]] = {}
    for c in collectives:
        turns.setdefault(replace(c, times=None, overlappable_flops=0, around=(0, 0), shift=0, visits=None), []).append(
            c.times
        )
    return "\n".join(f"- {replace(c, times=_together(times))}" for c, times in turns.items())


def _together(times: Sequence[int | None]) -> int | None:
    """All turns; None where of some nobody knows how many there are."""
    known = [count for count in times if count is not None]
    return sum(known) if len(known) == len(times) else None


def _of_around(ahead: int, behind: int) -> str:
    """For which products a transfer waits, and which wait for it."""
    words = [f"It waits for products of {ahead:,} FLOPs"] * bool(ahead)
    words += [f"{'products of ' * (not ahead)}{behind:,} wait for it"] * bool(behind)
    said = ", and ".join(words)
    return f"{said[:1].upper()}{said[1:]}. " if said else ""


def _those(facts: Facts, meant: Callable[[Collective], bool]) -> tuple[int, ...]:
    """The numbers of the written collectives that are meant, among those by which something is sent."""
    return tuple(n for n, c in enumerate(facts.written.authored) if c.group > 1 and meant(c))


def _as_written(structure: Structure) -> str:
    """How bytes are counted where a shard_map leaves axes to the compiler: in the text its blocks are not cut there."""
    manual = {axis for region in structure.manual for axis in region.axes}
    left = [f"`{axis}`" for axis in _long(tuple(structure.mesh), structure.mesh) if axis not in manual]
    if not (manual and left):
        return ""
    return f"\n\n(Counted as the program is written: what {enumeration(left)} may cut besides is not taken off.)"


def _surplus(moved: int, enough: int) -> str:
    """How much too much that is."""
    ratio = moved / enough
    return f"{moved - enough:,} B too many" if ratio < 1.1 else f"{ratio:,.3g} times as much"


def _long(axes: Sequence[str], mesh: Mapping[str, int]) -> list[str]:
    """The axes along which there are several devices: along the others nothing moves."""
    return [a for a in axes if mesh[a] > 1]
