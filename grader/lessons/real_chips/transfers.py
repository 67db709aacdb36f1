"""§ 3, 5: the collectives of a compiled program, and what runs beside each."""

from __future__ import annotations

from collections import Counter

from grader.exercises import Case, FunctionExercise

# What one line of a compiled program says: the operation, its name, and what it starts from or waits for.
KINDS = ("all-gather", "all-reduce", "collective-permute")
SCATTER = "all-reduce-scatter fusion"
OTHERS = ("fusion", "copy-start", "copy-done", "all-to-all")  # of none of the four kinds that are counted


def _counted(lines, iterations):
    """Collectives of the whole program; lines inside the loop begin with two blanks."""
    found: Counter[str] = Counter()
    for line in lines:
        name = line.strip().removesuffix("-start")
        if name in (*KINDS, SCATTER):
            kind = "reduce-scatter" if name == SCATTER else name
            found[kind] += iterations if line.startswith("  ") else 1
    return dict(found)


chip_collectives = FunctionExercise("chip_collectives", points=4, reference=_counted)


def _lines(rng, many):
    """A program's operations: outside a loop, inside of it, and outside again."""
    lines = []
    for inside in ("", "  ", ""):
        under_way = []
        for _ in range(many):
            kind = str(rng.choice([*KINDS, SCATTER, *OTHERS]))
            if kind in KINDS and rng.random() < 0.6:
                lines.append(f"{inside}{kind}-start")
                under_way.append(f"{inside}{kind}-done")
            else:
                lines.append(f"{inside}{kind}")
            if under_way and rng.random() < 0.4:
                lines.append(under_way.pop(0))
        lines += under_way
    return lines


@chip_collectives.cases
def _(draw):
    """The step of part 3, and ten programs made up, with every kind inside the loop and outside of it."""
    step = ["fusion", "  all-gather", "  all-gather-start", "  fusion", "  all-gather-done", f"  {SCATTER}", "  fusion"]
    yield Case({"lines": [*step, "all-reduce-start", "all-reduce-done"], "iterations": 6})
    every = [f"{inside}{kind}" for inside in ("", "  ") for kind in (*KINDS, SCATTER)]
    for _ in range(10):
        yield Case({"lines": _lines(draw.rng, 6) + every, "iterations": int(draw.rng.integers(3, 33))})


def _wrongly(lines, iterations, *, done=False, loop=True, scatter="reduce-scatter"):
    found: Counter[str] = Counter()
    for line in lines:
        name = line.strip().removesuffix("-start")
        name = name.removesuffix("-done") if done else name
        if name in KINDS or name == SCATTER and scatter:
            found[scatter if name == SCATTER else name] += iterations if loop and line.startswith("  ") else 1
    return dict(found)


@chip_collectives.mistake
def start_and_done_are_two(lines, iterations):
    """A transfer that starts in one line and is waited for in another is one transfer. Which of the two lines do you
    count?"""
    return _wrongly(lines, iterations, done=True)


@chip_collectives.mistake
def every_line_that_holds_the_name(lines, iterations):
    """Every line in which the name of a kind stands was counted: those that begin with it and go on otherwise, too.
    `all-gather-done` holds `all-gather`, and `all-reduce-scatter fusion` holds two names. Which lines begin one?"""
    found: Counter[str] = Counter()
    for line in lines:
        for kind in (*KINDS, "reduce-scatter"):
            found[kind] += (iterations if line.startswith("  ") else 1) * (kind in line)
    return {kind: count for kind, count in found.items() if count}


@chip_collectives.mistake
def a_loop_is_one_turn(lines, iterations):
    """A line inside the loop is there once and runs in every turn. What does the text of a scan over 32 layers show of
    the layers' collectives?"""
    return _wrongly(lines, iterations, loop=False)


@chip_collectives.mistake
def looked_for_reduce_scatter_by_name(lines, iterations):
    """There are reduce-scatters in this program, and none is called so. What is an all-reduce of which each device
    keeps only its own slice?"""
    return _wrongly(lines, iterations, scatter="")


@chip_collectives.mistake
def took_the_fusion_for_an_all_reduce(lines, iterations):
    """An `all-reduce-scatter fusion` sends half of what an all-reduce does: each device keeps its slice, and nobody
    gathers them again. Under which name does that count?"""
    return _wrongly(lines, iterations, scatter="all-reduce")


# What runs beside a transfer, in the order of a chip's schedule.


def _hidden(schedule):
    """FLOPs between each transfer's start and its end."""
    beside, under_way = {}, {}
    so_far = 0
    for what, which in schedule:
        if what == "start":
            under_way[which] = so_far
        elif what == "done":
            beside[which] = so_far - under_way.pop(which)
        else:
            so_far += which
    return beside


hidden = FunctionExercise("hidden", points=4, reference=_hidden)
P = 8_589_934_592  # FLOPs of one block of lesson 15's ring

RING = [["start", "a"], ["done", "a"], ["start", "b"], ["product", P], ["done", "b"], ["start", "c"], ["product", P]]
RING += [["product", P], ["done", "c"], ["product", P]]


def _schedule(rng, transfers):
    """Transfers that overlap one another, with products anywhere."""
    schedule, waiting, under_way = [], [f"t{k}" for k in range(transfers)], []
    while waiting or under_way:
        chosen = rng.random()
        if chosen < 0.35 and waiting:
            under_way.append(waiting.pop(0))
            schedule.append(["start", under_way[-1]])
        elif chosen < 0.65 and under_way:
            schedule.append(["done", under_way.pop(int(rng.integers(len(under_way))))])
        else:
            schedule.append(["product", int(rng.integers(1, 100)) * 10**9])
    return [*schedule, ["product", 10**9]]


@hidden.cases
def _(draw):
    """The ring of lesson 15 as a v5e runs it, then ten made up."""
    yield Case({"schedule": RING})
    yield from (Case({"schedule": _schedule(draw.rng, 4)}) for _ in range(10))


@hidden.mistake
def everything_that_does_not_wait(schedule):
    """Every transfer has all products of the program here. That a product *could* run beside it does not say that it
    does: which ones stand between its start and its end?"""
    total = sum(which for what, which in schedule if what == "product")
    return {which: total for what, which in schedule if what == "start"}


@hidden.mistake
def from_the_start_to_the_end_of_the_program(schedule):
    """A product behind the line that waits is not beside the transfer: by then the bytes are there."""
    beside, so_far = {}, 0
    for what, which in schedule:
        if what == "product":
            so_far += which
        if what == "start":
            beside[which] = -so_far
    return {which: so_far + before for which, before in beside.items()}


@hidden.mistake
def only_the_product_next_to_the_start(schedule):
    """Several products may run while one transfer is under way. Only one of them is counted here."""
    beside, under_way = {}, {}
    for what, which in schedule:
        if what == "start":
            under_way[which] = 0
        elif what == "done":
            beside[which] = under_way.pop(which)
        else:
            under_way = {name: flops or which for name, flops in under_way.items()}
    return beside


@hidden.mistake
def counted_anew_at_every_start(schedule):
    """Counted here is what ran between the *last* start of any transfer and this one's done. A transfer that is under
    way by then loses what has run beside it. What of all that ran belongs to each?"""
    beside, so_far = {}, 0
    for what, which in schedule:
        if what == "start":
            so_far = 0
        elif what == "done":
            beside[which] = so_far
        else:
            so_far += which
    return beside


@hidden.mistake
def counted_products(schedule):
    """So many products run beside each transfer. How much they compute is the second entry of each: their FLOPs."""
    return _hidden([[what, 1 if what == "product" else which] for what, which in schedule])


@hidden.mistake
def only_for_the_last_that_began(schedule):
    """Each product counts for one transfer only: the one that began last, of those under way. It runs beside all of
    them."""
    beside, under_way = {}, []
    for what, which in schedule:
        if what == "start":
            under_way.append(which)
            beside[which] = 0
        elif what == "done":
            under_way.remove(which)
        elif under_way:
            beside[under_way[-1]] += which
    return beside


@hidden.mistake
def one_transfer_at_a_time(schedule):
    """Two transfers may be under way at once, over other wires. Here the first counts no more when the second
    starts."""
    beside, current = {}, None
    for what, which in schedule:
        if what == "start":
            current, beside[which] = which, 0
        elif what == "done" and which == current:
            current = None
        elif what == "product" and current is not None:
            beside[current] += which
    return beside
