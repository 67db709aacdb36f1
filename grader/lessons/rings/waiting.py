"""§ 4–6, 9: which devices wait, what rings cost, and where blocks are: questions, functions, and a program."""

from __future__ import annotations

import functools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import aval, make_mesh, put
from grader.exercises import Case, FunctionExercise, ProgramExercise, TableExercise, Turns
from grader.lessons.rings.rings import (
    ROW,
    both_ways,
    gather_ring,
    on_ring,
    reduce_ring,
    whole_vectors_all_round,
)
from grader.processes.trial import trials
from grader.programs.program import trace
from grader.programs.structure import Structure
from grader.programs.walk import structure

# What a device holds after some steps, found by passing the devices' numbers on.


@functools.cache
def _numbers_after(devices: int, by: int, steps: int) -> list[int]:
    def body(number):
        for _ in range(steps):
            number = lax.ppermute(number, "x", [(d, (d + by) % devices) for d in range(devices)])
        return number

    mesh = make_mesh({"x": devices})
    numbers = put(np.arange(devices), P("x"), mesh)
    return np.asarray(jax.jit(functools.partial(on_ring, body, mesh=mesh, ins=P("x"), out=P("x")))(numbers)).tolist()


RING_AFTER_ASKS = {
    "": "Whose block has arrived there? In each step, every block moves by the whole shift. Where do you get if you go "
    "back from this device, against the shift, once for each step, on a ring of this many devices?",
}
ring_after = TableExercise(
    "ring_after",
    points=2,
    reference=lambda devices, by, steps, device: _numbers_after(devices, by, steps)[device],
    questions=RING_AFTER_ASKS,
)


@ring_after.cases
def _(draw):
    for devices, by, steps, device in (
        (4, 1, 1, 2),
        (4, 1, 3, 1),
        (4, -1, 1, 3),
        (8, 1, 5, 2),
        (8, -1, 4, 6),
        (8, 3, 2, 1),
    ):
        yield Case(
            {"devices": devices, "by": by, "steps": steps, "device": device},
            key=f"{devices} devices, {by:+}, {steps} step{'s' * (steps > 1)}: device {device}",
        )


def _unless_right(wrong, devices, by, steps, device):
    return None if wrong == (device - by * steps) % devices else wrong


@ring_after.stands_for
def _when_it_comes(value, devices, by, steps, device):
    """When the block of a device comes here."""
    if type(value) is not int:
        return ""
    if not 0 <= value < devices:
        return f"This ring has no device {value}: its {devices} devices start with 0. Which one comes before device 0?"
    if value == device:
        return "That is its own block, which it holds before the first step. Has it gone all the way around by then?"
    when = next((k for k in range(1, devices) if (device - by * k) % devices == value), None)
    if when is None:
        return f"The block of device {value} never arrives on device {device}. How far does each block move in a step?"
    return f"The block of device {value} arrives on device {device} in step {when}. Which one is there after all steps?"


@ring_after.mistake
def counted_with_the_stream(devices, by, steps, device):
    """That is the device to which this device's *own* block has moved. The question is which block arrived here. From
    which device did it start?"""
    return _unless_right((device + by * steps) % devices, devices, by, steps, device)


@ring_after.mistake
def counted_past_the_end(devices, by, steps, device):
    """This ring has no device with that index. Before device 0 comes the last device. Which index is that?"""
    return _unless_right(device - by * steps, devices, by, steps, device)


@ring_after.mistake
def took_the_ring_for_one_of_eight(devices, by, steps, device):
    """This ring has no device with that index, because it has fewer devices. Which device comes before device 0, and
    which one after the last?"""
    return _unless_right((device - by * steps) % 8, devices, by, steps, device)


@ring_after.mistake
def counted_its_own_as_a_step(devices, by, steps, device):
    """That is the block after one step fewer. Before the first step, a device holds its own block, and that is step 0.
    How far does a block move in all the steps together?"""
    return _unless_right((device - by * (steps - 1)) % devices, devices, by, steps, device)


# Steps and bytes, read from the programs themselves.

VECTOR = 1024  # float32, so 4,096 bytes
RINGS = {
    "all_gather": (gather_ring, (VECTOR, 1)),
    "all_reduce": (reduce_ring, (8, VECTOR)),
    "all_gather, both ways": (both_ways, (VECTOR, 1)),
    "all_reduce of whole vectors": (whole_vectors_all_round, (8, VECTOR)),
}


@functools.cache
def _read(ring: str) -> Structure:
    program, shape = RINGS[ring]
    mesh = make_mesh({"x": 8})
    return structure(trace(functools.partial(program, mesh=mesh), aval(shape, jnp.float32, ROW, mesh)))


def _count(ring, what):
    return _read(ring).steps if what == "steps" else _read(ring).bytes_sent


UNASKED = {("all_gather, both ways", "bytes"), ("all_reduce of whole vectors", "steps")}  # as those of the others

RING_COSTS_ASKS = {
    "steps": "A device starts with one block, or one term. How many still have to arrive, in how many rings, and how "
    "many arrive in one step?",
    "bytes": "Multiply the number of steps by what one device sends in a step: one part of the array, or a full "
    "vector. How many steps does this ring take?",
}
ring_costs = TableExercise("ring_costs", points=3, reference=_count, questions=RING_COSTS_ASKS)


@ring_costs.cases
def _(draw):
    for ring in RINGS:
        for what in ("steps", "bytes"):
            if (ring, what) not in UNASKED:
                yield Case({"ring": ring, "what": what}, key=f"{ring}: {what}")


@ring_costs.mistake
def one_step_for_each_device(ring, what):
    """That is one step for every device in each ring. But a device has its own block, or its own term, from the start.
    How many still have to arrive?"""
    return {"all_gather": 8, "all_reduce": 16}.get(ring) if what == "steps" else None


@ring_costs.mistake
def whole_vectors_counted(ring, what):
    """That is the number of bytes if each of the seven steps sends the full array. These rings send one block in a
    step. How many bytes does a block have?"""
    return _count("all_reduce of whole vectors", "bytes") if what == "bytes" and "whole" not in ring else None


@ring_costs.mistake
def one_round_counted(ring, what):
    """That is one ring. An all-reduce has two: one that sums, and one that gathers the sums. How much do both need?"""
    return _count("all_gather", what) if ring == "all_reduce" else None


@ring_costs.mistake
def both_ways_rounded_down(ring, what):
    """Seven blocks have to arrive, and each step delivers two at most. After three steps, how many are missing?"""
    return 3 if (ring, what) == ("all_gather, both ways", "steps") else None


@ring_costs.mistake
def both_ways_one_after_the_other(ring, what):
    """The two streams were counted one after the other, but they run at the same time. If one block arrives from each
    side in a step, how many steps do seven blocks take?"""
    return 7 if (ring, what) == ("all_gather, both ways", "steps") else None


@ring_costs.mistake
def one_block_per_step_counted(ring, what):
    """That is an eighth of the correct number. Here every step sends the full vector. How many bytes does each of the
    seven steps send?"""
    return _count("all_gather", "bytes") if (ring, what) == ("all_reduce of whole vectors", "bytes") else None


# Does it finish? Each body is run on four devices, in its own process, which may be ended.

RING = [(0, 1), (1, 2), (2, 3), (3, 0)]


def me():
    return lax.axis_index("x")


def one_branch(block):
    return lax.cond(me() == 0, lambda b: lax.psum(b, "x"), lambda b: b, block)


def sum_then_branch(block):
    total = lax.psum(block, "x")
    return lax.cond(me() == 0, lambda: total, lambda: block)


def open_ring(block):
    return lax.ppermute(block, "x", [(0, 1), (1, 2), (2, 3)])


def different_num_steps(block):
    more = lambda carried: carried[0] < me() + 1  # noqa: E731
    turn = lambda carried: (carried[0] + 1, lax.ppermute(carried[1], "x", RING))  # noqa: E731
    return lax.while_loop(more, turn, (0, block))[1]


def same_num_steps(block):
    most = lax.pmax(me() + 1, "x")
    more = lambda carried: carried[0] < most  # noqa: E731
    turn = lambda carried: (carried[0] + 1, lax.ppermute(carried[1], "x", RING))  # noqa: E731
    return lax.while_loop(more, turn, (0, block))[1]


def only_process_0_sums(block):
    return lax.psum(block, "x") if jax.process_index() == 0 else block


BODIES = (one_branch, sum_then_branch, open_ring, different_num_steps, same_num_steps)


def on_four(body):
    """The body on a line of four devices, and what it is run on."""
    mesh = make_mesh({"x": 4})
    numbers = put(np.array([1, 2, 6, 10], np.float32), P("x"), mesh)
    return functools.partial(on_ring, body, mesh=mesh, ins=P("x"), out=P("x")), numbers


@functools.cache
def _outcomes() -> dict[str, str]:
    run = zip(BODIES, trials([on_four(body) for body in BODIES]), strict=True)
    found = {body.__name__: "finishes" if one.finished else "hangs" for body, one in run}
    return found | {only_process_0_sums.__name__: _on_two_processes(only_process_0_sums)}


def _on_two_processes(body) -> str:
    """Each process traces the program for itself; the collectives that it then calls must be the same for all."""

    def calls(process):
        with mock.patch.object(jax, "process_index", lambda: process):
            return structure(trace(*on_four(lambda block: body(block)))).collectives

    return "finishes" if calls(0) == calls(1) else "hangs"


deadlock_or_not = TableExercise("deadlock_or_not", points=5, reference=lambda body: _outcomes()[body])


@deadlock_or_not.cases
def _(draw):
    for body in (*BODIES, only_process_0_sums):
        yield Case({"body": body.__name__}, key=body.__name__)


def _about(body, *bodies, says="hangs"):
    return says if body in {b.__name__ for b in bodies} else None


@deadlock_or_not.mistake
def thought_a_sum_needs_its_callers_only(body):
    """Device 0 called psum, and the others never did. A psum over x needs *all* devices along x. When does device 0
    finish?"""
    return _about(body, one_branch, says="finishes")


@deadlock_or_not.mistake
def thought_any_branch_hangs(body):
    """A branch makes no device wait, but a missing call does. Whichever branch a device takes here, how many psums does
    it call?"""
    return _about(body, sum_then_branch)


@deadlock_or_not.mistake
def thought_it_waits_for_a_sender(body):
    """No device sends to device 0, but it doesn't wait. The pairs are a part of the program, so each device knows
    whether something will arrive. What does it hold instead?"""
    return _about(body, open_ring)


@deadlock_or_not.mistake
def thought_loops_end_by_themselves(body):
    """Device 0 leaves the loop after one iteration, and device 3 after four. In the second iteration, ppermute waits
    for all four devices. Which one is missing?"""
    return _about(body, different_num_steps, says="finishes")


@deadlock_or_not.mistake
def thought_any_while_hangs(body):
    """The number of iterations may be computed while the program runs, as long as all devices compute the same number.
    What does pmax guarantee here?"""
    return _about(body, same_num_steps)


@deadlock_or_not.mistake
def thought_processes_trace_alike(body):
    """Each process traces the function on its own, and this Python `if` is decided differently: process 0 has a psum in
    its program, and process 1 has none. Which process waits?"""
    return _about(body, only_process_0_sums, says="finishes")


# A model of all this: all devices must reach the same call before any of them goes on.


def _left_waiting(calls):
    for step in range(max(map(len, calls)) + 1):
        now = {device: own[step] for device, own in enumerate(calls) if step < len(own)}
        if len(now) < len(calls) or len(set(now.values())) > 1:
            return now
    return {}


blocked_devices = FunctionExercise("blocked_devices", points=4, reference=_left_waiting)


@blocked_devices.cases
def _(draw):
    names = draw.rng.permutation(["psum", "all_gather", "ppermute", "all_to_all"]).tolist()
    a, b, c, d = names
    for calls in (
        [[a, b]] * 3,
        [[a, b], [a], [a, b]],
        [[a, b, c], [a, b, c], [b, a, c]],
        [[a, b], [a, a], [a, b]],
        [[], [a], [b], [a]],
        [[a, b, d], [a, b, c, d], [a, b, c, d]],
        [[c]] * 4,
        [[a, a], [a, a, a]],
        [[a], [a, b], [a, b, c]],
        [[], []],
        [[a, b]],  # a single device waits for no other
    ):
        yield Case({"calls": [list(own) for own in calls]})


@blocked_devices.mistake
def counted_the_calls(calls):
    """Only the devices that make more calls than others were named. Two devices with equally many calls can wait for
    each other, too, because they must reach the *same* call at the same point. What do you find if you walk through the
    lists side by side?"""
    fewest = min(map(len, calls))
    return {d: own[fewest] for d, own in enumerate(calls) if len(own) > fewest}


@blocked_devices.mistake
def ignored_the_order(calls):
    """No device waited if all make the same calls, in whatever order. Two devices that call the same two collectives in
    opposite orders wait for each other. In which one?"""
    if len({tuple(sorted(own)) for own in calls}) == 1:
        return {}
    return _left_waiting(calls)


@blocked_devices.mistake
def named_those_who_are_missing(calls):
    """The devices that were named are the missing ones. They are done, and wait for nothing. Which devices are in a
    collective that not all have reached?"""
    waiting = _left_waiting(calls)
    return {d: next(iter(waiting.values())) for d in range(len(calls)) if waiting and d not in waiting}


@blocked_devices.mistake
def took_device_0_for_right(calls):
    """Only devices that differ from device 0 were named. If one device makes another call, or none, no device goes on.
    Does device 0 wait, too?"""
    waiting = _left_waiting(calls)
    return {d: call for d, call in waiting.items() if call != waiting.get(0)}


@blocked_devices.mistake
def looked_at_the_first_call(calls):
    """Only the first call of each device was compared. When all devices have reached it, what do they call next?"""
    first = {d: own[0] for d, own in enumerate(calls) if own}
    return {} if len(first) == len(calls) and len(set(first.values())) == 1 else first


@blocked_devices.mistake
def only_who_is_alone_waits(calls):
    """A device waited only if no other device had reached the same call, and two that met went on. A collective needs
    *all* of its devices. Which devices have reached this one?"""
    for step in range(max(map(len, calls), default=0)):
        now = {device: own[step] for device, own in enumerate(calls) if step < len(own)}
        if alone := {device: call for device, call in now.items() if list(now.values()).count(call) == 1}:
            return alone
    return {}


@blocked_devices.mistake
def most_of_them_went_on(calls):
    """Only devices with another call than most were named, as if the others had met and gone on. A collective needs
    *all* of its devices. Which devices are in the call that most have reached?"""
    for step in range(max(map(len, calls), default=0)):
        now = [own[step] if step < len(own) else None for own in calls]
        if None in now:
            return {device: call for device, call in enumerate(now) if call is not None}
        if len(set(now)) > 1:
            most = max(set(now), key=now.count)
            return {device: call for device, call in enumerate(now) if call != most}
    return {}


@blocked_devices.mistake
def went_on_without_the_others(calls):
    """Devices that reached the same collective went on, although others never reach it. A collective needs *all* of its
    devices. Which devices are in the first one that not all of them call?"""
    waiting = {}
    for step in range(max(map(len, calls))):
        now = {device: own[step] for device, own in enumerate(calls) if step < len(own)}
        if len(set(now.values())) > 1:
            return now
        waiting = {} if len(now) == len(calls) else now
    return waiting


# The fix: every device computes the sum, and then chooses.

sum_on_even_devices = ProgramExercise(
    "sum_on_even_devices", points=4, reference=lambda x: np.where(np.arange(len(x))[:, None] % 2 == 0, x.sum(0), x)
)


@sum_on_even_devices.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    (length,) = draw.lengths(1, divisible_by=3)
    return Case({"x": draw.array(mesh["x"], length, spec=ROW)}, mesh, ROW, limits=[Turns({"all_reduce": 1})])


def _chosen(body, x, mesh, check_vma=False):
    return jax.shard_map(body, mesh=mesh, in_specs=ROW, out_specs=ROW, check_vma=check_vma)(x)


@sum_on_even_devices.mistake
def psum_in_a_branch(x, *, mesh, check_vma=False):
    """Some devices never call the psum, so the others wait for them. All devices have to call it, including those that
    don't keep the sum. How can each device choose between two values afterward?"""

    def body(row):
        return lax.cond(me() % 2 == 0, lambda r: lax.psum(r, "x"), lambda r: r, row)

    return _chosen(body, x, mesh, check_vma)


@sum_on_even_devices.mistake
def summed_only_those_who_keep_it(x, *, mesh):
    """The sum lacked the rows of the odd devices. Which rows belong in the sum, and where does the choice come?"""

    def body(row):
        even = me() % 2 == 0
        return jnp.where(even, lax.psum(jnp.where(even, row, 0), "x"), row)

    return _chosen(body, x, mesh)


@sum_on_even_devices.mistake
def counted_all_devices(x, *, mesh, check_vma=False):
    """Every second device of the whole mesh got the sum. Devices that differ only in y hold replicas of one row, so
    only the index along x counts. Which call returns that index?"""

    def body(row):
        return jnp.where(lax.axis_index(("x", "y")) % 2 == 0, lax.psum(row, "x"), row)

    return _chosen(body, x, mesh, check_vma)


@sum_on_even_devices.mistake
def the_odd_ones_got_it(x, *, mesh):
    """The odd devices got the sum, and the even ones kept their rows. For which devices is your condition true, and
    which value do they keep?"""
    return _chosen(lambda row: jnp.where(me() % 2 == 0, row, lax.psum(row, "x")), x, mesh)


@sum_on_even_devices.mistake
def zeros_for_the_others(x, *, mesh):
    """The odd devices held zeros, but they should keep their own rows. In `jnp.where`, which argument is used if the
    condition is false?"""
    return _chosen(lambda row: jnp.where(me() % 2 == 0, lax.psum(row, "x"), 0), x, mesh)


@sum_on_even_devices.mistake
def everybody_got_it(x, *, mesh):
    """Every device held the sum, but the odd ones should keep their own rows. How does a device choose?"""
    return _chosen(lambda row: lax.psum(row, "x"), x, mesh)
