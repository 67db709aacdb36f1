"""§ 5–6: who does what in which order, played through by `grader.timetables`."""

from __future__ import annotations

from collections.abc import Callable

from grader.exercises import Case, TimetableExercise
from grader.timetables import interleaved

Order = list[str]


def one_by_one(stage: int, warm_up: int, microbatches: int, *, split: bool = False) -> Order:
    """So many forward passes; then a backward and a forward pass in turn, until neither is left."""
    order = [f"F{m}" for m in range(min(warm_up, microbatches))]
    for m in range(microbatches):
        order += [f"B{m}", f"W{m}"] if split else [f"B{m}"]
        order += [f"F{m + warm_up}"] if m + warm_up < microbatches else []
    return order


def gpipe_orders(stages: int, microbatches: int) -> list[Order]:
    """All forward passes, then all backward passes (Huang et al., 2019)."""
    return [one_by_one(stage, microbatches, microbatches) for stage in range(stages)]


def one_f_one_b_orders(stages: int, microbatches: int) -> list[Order]:
    """Stage s warms up with S − s forward passes (PipeDream-Flush; Narayanan et al., 2021)."""
    return [one_by_one(stage, stages - stage, microbatches) for stage in range(stages)]


def zb_h1_orders(stages: int, microbatches: int) -> list[Order]:
    """1F1B in which stage s puts off the first s of the W, so that every stage holds what stage 0 holds (Qi et al.,
    2024)."""
    orders = []
    for stage in range(stages):
        order = [f"F{m}" for m in range(min(stages - stage, microbatches))]
        for m in range(microbatches):
            order += [f"B{m}"] + ([f"W{m - stage}"] if m >= stage else [])
            order += [f"F{m + stages - stage}"] if m + stages - stage < microbatches else []
        orders.append(order + [f"W{m}" for m in range(max(0, microbatches - stage), microbatches)])
    return orders


def zb_v_orders(devices: int, microbatches: int) -> list[Order]:
    """Device d has stages d and 2n − 1 − d, so that the last stage is where the first one is (ZB-V; Qi et al., 2024).

    Step by step each device does what it can: B before F before W, and no F beyond the memory of 1F1B.
    """
    last, most = 2 * devices - 1, 2 * min(devices, microbatches)
    ends: dict[tuple[str, int, int], int] = {}
    orders: list[list[tuple[str, int, int]]] = [[] for _ in range(devices)]
    held = [0] * devices

    def ready(device: int, step: int) -> list[tuple[str, int, int]]:
        """What a device may begin in this step; of the forward passes the deeper stage first."""

        def done(*work: tuple[str, int, int]) -> bool:
            return all(ends.get(one, step + 1) <= step for one in work)

        next_of = {
            (kind, stage): sum(one[0] == kind and one[2] == stage for one in orders[device])
            for kind in "BFW"
            for stage in (device, last - device)
        }
        b, f, w = ([(kind, next_of[kind, stage], stage) for stage in (device, last - device)] for kind in "BFW")
        return [
            *(x for x in b if done(("F", *x[1:]), *([("B", x[1], x[2] + 1)] if x[2] < last else []))),
            *(x for x in f[::-1] if held[device] < most and done(*([("F", x[1], x[2] - 1)] if x[2] else []))),
            *(x for x in w if done(("B", *x[1:]))),
        ]

    step = 0
    while len(ends) < 3 * microbatches * (last + 1):
        for device in range(devices):
            if can := [work for work in ready(device, step) if work[1] < microbatches]:
                orders[device].append(can[0])
                ends[can[0]] = step + 1
                held[device] += {"F": 1, "B": 0, "W": -1}[can[0][0]]
        step += 1
    return [[f"{kind}{m}@{stage}" for kind, m, stage in order] for order in orders]


def _stage_by_stage(order: Callable[[int], Order], stages: int) -> list[Order]:
    return [order(stage) for stage in range(stages)]


# One forward, one backward.

one_f_one_b = TimetableExercise(
    "one_f_one_b", points=6, reference=lambda stages, microbatches: {"1F1B": one_f_one_b_orders(stages, microbatches)}
)


@one_f_one_b.cases
def _(draw):
    for stages, microbatches in ((4, 8), (3, 7), (2, 5), (4, 2)):
        yield Case({"stages": stages, "microbatches": microbatches})


@one_f_one_b.mistake
def all_forward_first(stages, microbatches):
    """All forward passes come before the first backward pass: that is GPipe. It is as short, but every stage holds
    all microbatches when the first backward pass begins. When could the last stage begin with B0?"""
    return gpipe_orders(stages, microbatches)


@one_f_one_b.mistake
def no_warm_up(stages, microbatches):
    """Every stage waits for B0 before it begins F1. But on the first stage B0 comes only when microbatch 0 has gone
    all the way there and back. How many microbatches could it send on in the meantime?"""
    return _stage_by_stage(lambda stage: one_by_one(stage, 1, microbatches), stages)


@one_f_one_b.mistake
def backward_first(stages, microbatches):
    """After the warm-up you begin with a backward pass, on the last stage with B0 before F0. Nobody can have made F0
    for it. How many forward passes does the last stage need before its first backward pass?"""
    return _stage_by_stage(lambda stage: one_by_one(stage, stages - 1 - stage, microbatches), stages)


@one_f_one_b.mistake
def one_forward_too_many(stages, microbatches):
    """Every stage runs one forward pass more ahead than it has to. It saves no step, and each of them is held in
    memory. How many does the *last* stage need before its first backward pass?"""
    return _stage_by_stage(lambda stage: one_by_one(stage, stages - stage + 1, microbatches), stages)


@one_f_one_b.mistake
def the_same_warm_up_everywhere(stages, microbatches):
    """All stages warm up with as many forward passes as the first. The last stage could give back gradients after one
    of them, and all the others wait for those. How much less far is the way there and back for stage s?"""
    return _stage_by_stage(lambda stage: one_by_one(stage, stages, microbatches), stages)


@one_f_one_b.mistake
def warm_up_upside_down(stages, microbatches):
    """The last stage wants the most forward passes before it gives a gradient back, the first stage the fewest before
    it waits for one: each waits for the other. Which stage is farthest from the loss?"""
    return _stage_by_stage(lambda stage: one_by_one(stage, stage + 1, microbatches), stages)


@one_f_one_b.mistake
def newest_first(stages, microbatches):
    """The backward passes run from the newest microbatch to the oldest, as within a network. But the oldest one has
    been held longest, and its gradient can be the first to come back."""
    return [order[:microbatches] + order[microbatches:][::-1] for order in gpipe_orders(stages, microbatches)]


@one_f_one_b.mistake
def no_cool_down(stages, microbatches):
    """The list ends with the last forward pass. The microbatches of the warm-up are still on their way back: whose
    gradients are missing?"""
    return [
        order[: 1 + max(k for k, work in enumerate(order) if work.startswith("F"))]
        for order in one_f_one_b_orders(stages, microbatches)
    ]


@one_f_one_b.mistake
def more_warm_up_than_microbatches(stages, microbatches):
    """The warm-up is as long as the pipeline even if there are fewer microbatches: it names some that do not exist.
    Where does `min` belong?"""
    return [
        [f"F{m}" for m in range(stages - stage)]
        + one_by_one(stage, stages - stage, microbatches)[min(stages - stage, microbatches) :]
        for stage in range(stages)
    ]


# Zero bubble: a ladder of targets.

zero_bubble = TimetableExercise(
    "zero_bubble",
    points=6,
    reference=lambda devices, microbatches: {
        "1F1B": one_f_one_b_orders(devices, microbatches),
        "interleaved": interleaved(devices, microbatches),
        "ZB-H1": zb_h1_orders(devices, microbatches),
        "ZB-V": zb_v_orders(devices, microbatches),
    },
)


@zero_bubble.cases
def _(draw):
    for devices, microbatches in ((4, 8), (2, 2), (3, 9)):
        yield Case({"devices": devices, "microbatches": microbatches})


@zero_bubble.mistake
def backward_in_one_piece(devices, microbatches):
    """That is 1F1B, the first of the targets. While a stage makes the gradient of its weights, the stage before it
    waits for another one that could have been ready a step earlier. Write B and W for it, and W where there is
    nothing else to do."""
    return one_f_one_b_orders(devices, microbatches)


@zero_bubble.mistake
def w_right_behind_b(devices, microbatches):
    """B and W are apart, but W follows its B at once everywhere. That already gives the stage before its gradient a
    step earlier. Now look at the empty places in your timetable: nobody waits for a W, so it may stand in any later
    one."""
    return [one_by_one(stage, devices - stage, microbatches, split=True) for stage in range(devices)]


@zero_bubble.mistake
def all_w_at_the_end(devices, microbatches):
    """All W come at the end, so every microbatch is held until then. Put off only as many as fit into memory: stage s
    may hold what stage 0 holds."""
    return [one_by_one(s, devices - s, microbatches) + [f"W{m}" for m in range(microbatches)] for s in range(devices)]


@zero_bubble.mistake
def two_stages_in_a_row(devices, microbatches):
    """Interleaved, each device is idle half as long as in 1F1B, but device 0 warms up with its second stage, too: with
    more microbatches than devices it holds more. Do you need a second stage to fill the empty places?"""
    return interleaved(devices, microbatches)


@zero_bubble.mistake
def stopped_at_h1(devices, microbatches):
    """That is ZB-H1: a third of the idle steps of 1F1B, in the same memory. What is left is the way down to the last
    device and back. Give each device two stages, so that the last stage is on device 0, where the first one is."""
    return zb_h1_orders(devices, microbatches)
