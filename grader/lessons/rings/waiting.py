"""§ 1, 6–7: what goes round, what it costs, and who waits for whom: questions and plain functions."""

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
    "": "Whose block has come there? In each step every block moves on by the whole shift. Go back from "
    "this device, against the shift, once for each step, on a ring of this many devices.",
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
        return f"This ring has no device {value}: its {devices} are counted from 0. Which stands before device 0?"
    if value == device:
        return "That is its own block, which it holds before the first step. Does it come round again by then?"
    when = next((k for k in range(1, devices) if (device - by * k) % devices == value), None)
    if when is None:
        return f"The block of device {value} never comes to device {device}. By how much does each move on in a step?"
    return (
        f"The block of device {value} comes to device {device} in step {when}. Which one comes in the step asked for?"
    )


@ring_after.mistake
def counted_with_the_stream(devices, by, steps, device):
    """That is where the device's *own* block is by then. Asked is whose block has arrived: from as far
    upstream as the block has come in all steps."""
    return _unless_right((device + by * steps) % devices, devices, by, steps, device)


@ring_after.mistake
def counted_past_the_end(devices, by, steps, device):
    """There is no device of that number. Before device 0 stands the last one, behind the last one device 0."""
    return _unless_right(device - by * steps, devices, by, steps, device)


@ring_after.mistake
def took_the_ring_for_one_of_eight(devices, by, steps, device):
    """There is no device of that number: this ring has fewer devices. On it, which stands before device 0, and which
    behind the last?"""
    return _unless_right((device - by * steps) % 8, devices, by, steps, device)


@ring_after.mistake
def counted_its_own_as_a_step(devices, by, steps, device):
    """That is where one step fewer leads. Before the first step a device holds its own block: that is step 0. And in
    each step a block moves on by the whole shift."""
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
    "steps": "A device begins with one block, or one term. How many are still to come to it, how many times "
    "round do they go, and how many come in one step?",
    "bytes": "Bytes are the number of steps times what one device sends in a step: one part of the array, or "
    "a whole vector. How many steps has this ring?",
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
    """A step for every device, in each round. But each device has its own block, or its own term, from the start: how
    many are still to come?"""
    return {"all_gather": 8, "all_reduce": 16}.get(ring) if what == "steps" else None


@ring_costs.mistake
def whole_vectors_counted(ring, what):
    """That many bytes travel if all of the array is sent in each of seven steps. In a step these rings send one block,
    an eighth of it."""
    return _count("all_reduce of whole vectors", "bytes") if what == "bytes" and "whole" not in ring else None


@ring_costs.mistake
def one_round_counted(ring, what):
    """An all-reduce goes round twice: once to add up, once to bring the sums to all."""
    return _count("all_gather", what) if ring == "all_reduce" else None


@ring_costs.mistake
def both_ways_rounded_down(ring, what):
    """Seven blocks have to come, and two arrive in a step. In how many steps have all of them come?"""
    return 3 if (ring, what) == ("all_gather, both ways", "steps") else None


@ring_costs.mistake
def both_ways_one_after_the_other(ring, what):
    """The two streams run at the same time. A step in which one block comes from each side is one step."""
    return 7 if (ring, what) == ("all_gather, both ways", "steps") else None


@ring_costs.mistake
def one_block_per_step_counted(ring, what):
    """Here the whole vector travels in every step, not an eighth of it. That is why fewer steps are no gain."""
    return _count("all_gather", "bytes") if (ring, what) == ("all_reduce of whole vectors", "bytes") else None


# Does it come to an end? Each body is run on four devices, in a process of its own that may be ended.

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
    """Device 0 calls psum, the others never do. A psum over x is over *all* devices along x: it cannot end before
    every one of them has come."""
    return _about(body, one_branch, says="finishes")


@deadlock_or_not.mistake
def thought_any_branch_hangs(body):
    """Count the calls: whichever branch a device takes, how many psums has it called in the end? It is not the branch
    that hangs, but a device that does not come."""
    return _about(body, sum_then_branch)


@deadlock_or_not.mistake
def thought_it_waits_for_a_sender(body):
    """Nobody sends to device 0, and it does not wait: the pairs are part of the program, so that each device knows
    whether something will come. What does it hold instead?"""
    return _about(body, open_ring)


@deadlock_or_not.mistake
def thought_loops_end_by_themselves(body):
    """Device 0 leaves the loop after one turn, device 3 after four. In the second turn ppermute waits for all four
    devices. Who is missing?"""
    return _about(body, different_num_steps, says="finishes")


@deadlock_or_not.mistake
def thought_any_while_hangs(body):
    """How often a loop turns may be found out while the program runs, as long as every device finds the same number.
    What does pmax see to?"""
    return _about(body, same_num_steps)


@deadlock_or_not.mistake
def thought_processes_trace_alike(body):
    """Each process traces the function for itself, and this Python `if` comes out differently: process 0 has a psum
    in its program, process 1 has none. Who will wait?"""
    return _about(body, only_process_0_sums, says="finishes")


# A model of all this: everybody must come to the same call before anybody goes on.


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
        [[a, b]],  # who is alone waits for nobody
    ):
        yield Case({"calls": [list(own) for own in calls]})


@blocked_devices.mistake
def counted_the_calls(calls):
    """This is what comes out when those wait that make more calls than others, and nobody else. Two devices may call as
    often and still wait for each other: they must come to the *same* call at the same point. Walk through the lists
    side by side."""
    fewest = min(map(len, calls))
    return {d: own[fewest] for d, own in enumerate(calls) if len(own) > fewest}


@blocked_devices.mistake
def ignored_the_order(calls):
    """Where all devices make the same calls, only in another order, nobody waits here. Two devices that call the same
    two collectives in opposite orders wait for each other in the first."""
    if len({tuple(sorted(own)) for own in calls}) == 1:
        return {}
    return _left_waiting(calls)


@blocked_devices.mistake
def named_those_who_are_missing(calls):
    """These are the devices that do not come: they are done, and wait for nobody. Who stands in a collective that not
    all have come to?"""
    waiting = _left_waiting(calls)
    return {d: next(iter(waiting.values())) for d in range(len(calls)) if waiting and d not in waiting}


@blocked_devices.mistake
def took_device_0_for_right(calls):
    """Only devices that differ from device 0 were named. Where one makes another call, or none, nobody goes on: device
    0 waits as well."""
    waiting = _left_waiting(calls)
    return {d: call for d, call in waiting.items() if call != waiting.get(0)}


@blocked_devices.mistake
def looked_at_the_first_call(calls):
    """Only the first call of each device was compared. When all have come to it they go on, to the second."""
    first = {d: own[0] for d, own in enumerate(calls) if own}
    return {} if len(first) == len(calls) and len(set(first.values())) == 1 else first


@blocked_devices.mistake
def only_who_is_alone_waits(calls):
    """A device was said to wait only where no other one has come to the same call; two that met went on. A collective
    needs *all* of its devices: have all come to this one?"""
    for step in range(max(map(len, calls), default=0)):
        now = {device: own[step] for device, own in enumerate(calls) if step < len(own)}
        if alone := {device: call for device, call in now.items() if list(now.values()).count(call) == 1}:
            return alone
    return {}


@blocked_devices.mistake
def most_of_them_went_on(calls):
    """Only those were named who come to another call than most, as if the others had met and gone on. A collective
    needs *all* of its devices: who stands in the one that most have come to?"""
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
    """Devices that came to the same collective went on, though others never come to it. A collective needs *all* of its
    devices: who stands in the first one that not everybody calls?"""
    waiting = {}
    for step in range(max(map(len, calls))):
        now = {device: own[step] for device, own in enumerate(calls) if step < len(own)}
        if len(set(now.values())) > 1:
            return now
        waiting = {} if len(now) == len(calls) else now
    return waiting


# The repair: everybody computes the sum, and each chooses what it keeps.

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
    """Some devices never come to the psum, and the others wait for them. All of them have to call it, also those that
    do not keep the sum. `jnp.where` computes both values and picks one."""

    def body(row):
        return lax.cond(me() % 2 == 0, lambda r: lax.psum(r, "x"), lambda r: r, row)

    return _chosen(body, x, mesh, check_vma)


@sum_on_even_devices.mistake
def summed_only_those_who_keep_it(x, *, mesh):
    """The sum lacks the rows of the odd devices. Everybody's row belongs in it; the choice comes after the psum."""

    def body(row):
        even = me() % 2 == 0
        return jnp.where(even, lax.psum(jnp.where(even, row, 0), "x"), row)

    return _chosen(body, x, mesh)


@sum_on_even_devices.mistake
def counted_all_devices(x, *, mesh, check_vma=False):
    """Every second device of the whole mesh got the sum. It goes by the place along x alone: devices that differ in y
    hold copies of one row. Which number is that place?"""

    def body(row):
        return jnp.where(lax.axis_index(("x", "y")) % 2 == 0, lax.psum(row, "x"), row)

    return _chosen(body, x, mesh, check_vma)


@sum_on_even_devices.mistake
def the_odd_ones_got_it(x, *, mesh):
    """The odd devices got the sum, and the even ones kept their rows. For which of them is your condition true, and
    what do these hold then?"""
    return _chosen(lambda row: jnp.where(me() % 2 == 0, row, lax.psum(row, "x")), x, mesh)


@sum_on_even_devices.mistake
def zeros_for_the_others(x, *, mesh):
    """The odd devices hold zeros; they should keep their own rows. (In `jnp.where` the third argument is what stands
    where the condition is false.)"""
    return _chosen(lambda row: jnp.where(me() % 2 == 0, lax.psum(row, "x"), 0), x, mesh)


@sum_on_even_devices.mistake
def everybody_got_it(x, *, mesh):
    """Every device holds the sum. The odd ones should keep what they had: where is the choice?"""
    return _chosen(lambda row: lax.psum(row, "x"), x, mesh)
