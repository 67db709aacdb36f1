"""§ 2, 6–10, the tables: where arrays are, which can be used together, and how data moves. Every answer is found by
doing it."""

from __future__ import annotations

import contextlib
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.exercises import TableExercise
from grader.lessons.shared import believed

# What the lesson's cells define. The questions are expressions of these names, and are evaluated.

EVERYONE, FRONT, REAR, TURNED, RING = range(8), range(4), range(4, 8), range(7, -1, -1), (0, 2, 4, 6, 7, 5, 3, 1)


def line(*numbers, explicit=False):
    """A mesh with one axis, x, over the devices with these IDs, in this order."""
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(kind,))


def grid(rows, columns, explicit=False):
    """A mesh of all eight devices with axes x and y."""
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return Mesh(np.array(jax.devices()[:8]).reshape(rows, columns), ("x", "y"), axis_types=(kind,) * 2)


def put(value, mesh, *spec):
    """The array, sharded over a mesh, committed."""
    return jax.device_put(value, NamedSharding(mesh, P(*spec)))


@functools.cache
def lab():
    v = 10 * np.arange(8, dtype=np.float32)
    second = line(*REAR)
    arrays = {
        "v": v,
        "fresh": 10 * jnp.arange(8.0),
        "alone": jax.device_put(v, jax.devices()[0]),
        "sharded": put(v, line(*EVERYONE), "x"),
        "replicated": put(v, line(*EVERYONE)),
        "first_half": put(v, line(*FRONT), "x"),
        "second_half": put(v, second, "x"),
        "backwards": put(v, line(*TURNED), "x"),
        "winding": put(v, line(*RING), "x"),
        "tall": put(v, grid(4, 2), "x"),
        "wide": put(v, grid(2, 4), "x"),
        "tall_explicit": put(v, grid(4, 2, True), "x"),
        "wide_explicit": put(v, grid(2, 4, True), "x"),
        "first_half_explicit": put(v, line(*FRONT, explicit=True), "x"),
        "second_half_sharding_explicit": NamedSharding(line(*REAR, explicit=True), P("x")),
        "explicit": line(*EVERYONE, explicit=True),
        "second_half_sharding": NamedSharding(second, P("x")),
    }
    return {"jax": jax, "jnp": jnp, "np": np, "NamedSharding": NamedSharding, "P": P, **arrays}


def _value_of(expression):
    """The value of an expression of the lesson; `with …: …` in one line is one, too."""
    context, _, rest = re.fullmatch(r"(?:with (.+\)): )?()(.*)", expression).groups()
    with eval(context, dict(lab())) if context else contextlib.nullcontext():
        return eval(rest, dict(lab()))


def runs(row):
    try:
        jax.block_until_ready(_value_of(row))
    except Exception:  # the type and text of the error differ between versions of JAX
        return "error"
    return "runs"


# Which devices hold a part of it?

HOLDERS = (
    "v",
    "jnp.arange(8)",
    "replicated",
    "first_half",
    "sharded[0]",
    "jax.device_put(first_half, second_half_sharding)",
)


def _numbers(row):
    value = _value_of(row)
    number = {device: k for k, device in enumerate(jax.devices())}
    return sorted(number[d] for d in value.devices()) if isinstance(value, jax.Array) else []


WHO_HOLDS_IT_ASKS = {
    "": "A result is on the devices of its operands, and what `device_put` returns is where it was sent. NumPy arrays "
    "aren't on any device. What does `sorted(d.id for d in (…).devices())` say?",
}
who_holds_it = TableExercise("who_holds_it", points=3, reference=_numbers, questions=WHO_HOLDS_IT_ASKS)
who_holds_it.rows(HOLDERS)


@who_holds_it.mistake
def took_the_host_for_a_device(row):
    """A NumPy array is in host memory, and has no `.devices()`. Which device would hold a part of it?"""
    return {"v": [0]}.get(row)


@who_holds_it.mistake
def spread_a_fresh_array(row):
    """An array that you create without saying where is on one device, the default one. What does its `.devices()`
    say?"""
    return believed(row, list(EVERYONE), "jnp.arange(8)")


@who_holds_it.mistake
def copies_on_one_device(row):
    """`P()` splits nothing, so every device of the *mesh* holds the full array. How many devices does that mesh
    have?"""
    return believed(row, [0], "replicated")


@who_holds_it.mistake
def one_entry_on_one_device(row):
    """A program runs on all devices of the mesh of its operand, and its result is on all of them, however small. If
    nothing splits a single number, which devices hold it?"""
    return believed(row, [0], "sharded[0]")


@who_holds_it.mistake
def used_the_whole_machine(row):
    """That mesh has only four devices, and the other four hold none of the array. Which IDs does the mesh have?"""
    return believed(row, list(EVERYONE), "first_half")


@who_holds_it.mistake
def left_it_where_it_was(row):
    """Those are the devices of `first_half` itself. `device_put` returns a *new* array. Where is that one?"""
    return believed(row, list(FRONT), "jax.device_put(first_half, second_half_sharding)")


@who_holds_it.mistake
def counted_both_arrays(row):
    """`first_half` does stay where it is. But which devices hold the array that `device_put` *returns*?"""
    return believed(row, list(EVERYONE), "jax.device_put(first_half, second_half_sharding)")


# Committed or not?

STATUS = (
    "jax.device_put(v)",
    "jax.device_put(v, jax.devices()[0])",
    "jnp.zeros(first_half.shape)",
    "jnp.ones_like(first_half)",
    "first_half + fresh",
    "jnp.asarray(np.asarray(first_half))",
)


def _committed(row):
    return bool(_value_of(row).committed)


commit_status = TableExercise("commit_status", points=3, reference=_committed)
commit_status.rows(STATUS)


@commit_status.mistake
def to_be_somewhere_is_to_be_committed(row):
    """It is on a device, but JAX chose which. An array is committed if *you* placed it, or if it was computed from
    such an array. What did this call say about devices?"""
    return believed(row, True, "jnp.zeros(first_half.shape)")


@commit_status.mistake
def every_put_commits(row):
    """`device_put` without a second argument doesn't say where. What could the array be committed to?"""
    return believed(row, True, "jax.device_put(v)")


@commit_status.mistake
def the_default_device_needs_no_commitment(row):
    """JAX would have chosen device 0 anyway, but here you *said* so. Who decided where this array is?"""
    return believed(row, False, "jax.device_put(v, jax.devices()[0])")


@commit_status.mistake
def ones_like_is_fresh(row):
    """That was so in older versions, and older tutorials say so. Today, `ones_like` takes more from its argument
    than shape and dtype. What is the sharding of the result?"""
    return believed(row, False, "jnp.ones_like(first_half)")


@commit_status.mistake
def results_are_free(row):
    """The result of a program stays where its committed operands made it run. How many of these operands are
    committed?"""
    return believed(row, False, "first_half + fresh")


@commit_status.mistake
def numpy_remembers(row):
    """In NumPy, the array became plain numbers on the host. What does NumPy know about devices?"""
    return believed(row, True, "jnp.asarray(np.asarray(first_half))")


# Can these be added?

MEETINGS = (
    "sharded + v",
    "sharded + replicated",
    "sharded + alone",
    "sharded + backwards",
    "tall + wide",
    "first_half + jnp.ones_like(second_half)",
)

will_it_run = TableExercise("will_it_run", points=4, reference=runs)
will_it_run.rows(MEETINGS)


@will_it_run.mistake
def numpy_must_be_put_first(row):
    """A NumPy array is as free as an uncommitted one: JAX sends it to wherever the program runs. (That costs a
    transfer from the host each time.) Which operand here is committed?"""
    return believed(row, "error", "sharded + v")


@will_it_run.mistake
def layouts_must_agree(row):
    """These are two shardings over the same devices in the same order, and the compiler can combine them. To which
    list of devices is each operand committed?"""
    return believed(row, "error", "sharded + replicated")


@will_it_run.mistake
def some_devices_in_common(row):
    """It isn't enough that they have a device in common. A program runs on one list of devices, and each committed
    operand must be on exactly that list. Which list is each of these on?"""
    return believed(row, "runs", "sharded + alone")


@will_it_run.mistake
def order_does_not_matter(row):
    """They are on the same eight devices, but in a different order, and a mesh is a list. Which device holds the
    first element of each?"""
    return believed(row, "runs", "sharded + backwards")


@will_it_run.mistake
def mesh_shapes_must_agree(row):
    """With Auto axes, only the *list* of devices counts. What list do you get if you read each mesh row by row?"""
    return believed(row, "error", "tall + wide")


@will_it_run.mistake
def ones_like_goes_anywhere(row):
    """Older tutorials show this as an example of arrays that can be mixed. Where is `jnp.ones_like(second_half)`
    today, and is it committed?"""
    return believed(row, "runs", "first_half + jnp.ones_like(second_half)")


# Which element does a device hold, if the devices are in a different order?

ORDER = (
    "backwards on device 0",
    "backwards on device 5",
    "winding on device 4",
    "winding on device 1",
    "np.asarray(backwards)[0]",
    "jax.device_put(backwards, sharded.sharding) on device 0",
)


def _entry(row):
    """The one element that a device holds, or a value in NumPy."""
    expression, _, number = row.partition(" on device ")
    value = _value_of(expression)
    if not number:
        return int(value)
    device = jax.devices()[int(number)]
    return next(int(s.data[0]) for s in value.addressable_shards if s.device == device)


DEVICE_ORDER_ASKS = {
    " on device": "Shards are assigned in the order of the positions, and position k gets the value 10 · k. At which "
    "position of its mesh is this device?",
    "asarray": "Python sees the full array. Which value is first in it?",
}
device_order = TableExercise("device_order", points=2, reference=_entry, questions=DEVICE_ORDER_ASKS)
device_order.rows(ORDER)


def _device(row):
    name, _, number = row.partition(" on device ")
    return name, int(number or 0)


@device_order.mistake
def same_array_same_data(row):
    """Mathematically, it is the same array. But elements go to devices by *position in the mesh*. At which position
    is this device?"""
    name, number = _device(row)
    return 10 * number if name in ("backwards", "winding") else None


@device_order.mistake
def looked_up_the_place_for_the_device(row):
    """That is 10 times the ID of the device at that position. The question is the other way
    around. At which position is this device?"""
    name, number = _device(row)
    return 10 * RING[number] if name == "winding" else None


@device_order.mistake
def counted_places_from_one(row):
    """That would be correct if positions were counted from 1. How many devices are before this one?"""
    name, number = _device(row)
    places = {"backwards": list(TURNED), "winding": list(RING)}.get(name)
    return 10 * (places.index(number) + 1) if places else None


@device_order.mistake
def read_backwards(row):
    """Read as one array, it is what it always was, because the sharding knows which device has which element. Which
    element was first?"""
    return believed(row, 70, "np.asarray(backwards)[0]")


@device_order.mistake
def nothing_moves_between_orders(row):
    """A `device_put` to a mesh with a different order changes which device holds what, so it moves data. Which
    device holds the first element of `sharded`?"""
    return believed(row, 70, "jax.device_put(backwards, sharded.sharding) on device 0")


# What can be inside jit?

INSIDE = (
    "jax.device_put(jax.jit(jnp.sin)(first_half), second_half_sharding)",
    "jax.jit(lambda a: jax.device_put(a, second_half_sharding))(first_half)",
    "jax.jit(jnp.sin, out_shardings=second_half_sharding)(first_half)",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(first_half.sharding.mesh, P())))(first_half)",
    "jax.jit(lambda a: jax.device_put(a, second_half_sharding))(fresh)",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(sharded)",
)

inside_jit = TableExercise("inside_jit", points=2, reference=runs)
inside_jit.rows(INSIDE)


@inside_jit.mistake
def a_program_can_move_its_data(row):
    """A compiled program runs on one list of devices. `first_half` is committed to four of them, and
    `second_half_sharding` names four others. Which list would the program run on?"""
    return believed(row, "runs", INSIDE[1])


@inside_jit.mistake
def out_shardings_lead_elsewhere(row):
    """`out_shardings` shard the result over the devices of the program. Where does its committed operand make it
    run?"""
    return believed(row, "runs", INSIDE[2])


@inside_jit.mistake
def nothing_moves_around_jit(row):
    """This `device_put` is outside `jit`. When it begins, the program has ended. So what would be wrong with moving
    the result?"""
    return believed(row, "error", INSIDE[0])


@inside_jit.mistake
def no_put_inside_at_all(row):
    """Inside a program, `device_put` isn't a transfer but a request for a sharding. Which devices does this one
    name?"""
    return believed(row, "error", INSIDE[3])


@inside_jit.mistake
def uncommitted_operands_bind(row):
    """`fresh` isn't committed. So how many lists of devices does this program get?"""
    return believed(row, "error", INSIDE[4])


@inside_jit.mistake
def a_set_is_enough(row):
    """They are the same devices in a different order, which makes a different list. How many lists can one program
    have?"""
    return believed(row, "runs", INSIDE[5])


# Which way does data go? JAX's transfer guards see every transfer by the runtime, and none inside a program.

TRAVELS = (
    "jax.device_put(first_half, first_half.sharding)",
    "jax.device_put(first_half, second_half_sharding)",
    "jax.device_put(first_half, NamedSharding(second_half_sharding.mesh, P()))",
    "jax.device_put(alone, second_half_sharding)",
    "jax.jit(lambda a: a, out_shardings=replicated.sharding)(sharded)",
    "jax.device_put(np.asarray(first_half), second_half_sharding)",
)
STAYS, BETWEEN, HOST, INSIDE_A_PROGRAM = "not at all", "between devices", "through the host", "in a program"


def _travels(row):
    """Forbid one kind of transfer after the other, and see which one is needed."""
    lab()  # created before anything is forbidden
    for guard, way in ((jax.transfer_guard_host_to_device, HOST), (jax.transfer_guard_device_to_device, BETWEEN)):
        try:
            with guard("disallow_explicit"):
                moved = jax.block_until_ready(_value_of(row))
        except Exception as error:  # its class differs between versions of JAX
            if "Disallowed" not in str(error):
                raise
            return way
    return STAYS if any(moved is array for array in lab().values()) else INSIDE_A_PROGRAM


WAYS = {
    STAYS: "Not at all would mean that you get the same array back. Is it already on these devices, with this "
    "sharding?",
    BETWEEN: "Between devices, `device_put` sends shards as they are. What moves the data in this line, and do the "
    "shards stay as they are?",
    HOST: "Data goes through the host if NumPy is used on the way, or if `device_put` has to split it in a new way. "
    "Which of the two is it here?",
    INSIDE_A_PROGRAM: "In a program, collectives move the data. Which function in this line compiles a program?",
}
transfer_path = TableExercise("transfer_path", points=4, reference=_travels, options=WAYS)
transfer_path.rows(TRAVELS)


@transfer_path.mistake
def every_put_copies(row):
    """The array is already there, with this sharding. Compare with `is`. Do you get a different array?"""
    return believed(row, BETWEEN, TRAVELS[0])


@transfer_path.mistake
def every_way_leads_through_the_host(row):
    """A device holds what is needed here: exactly that shard, or the full array, which it can split. So what does
    the host have to do?"""
    return believed(row, HOST, TRAVELS[1], TRAVELS[3])


@transfer_path.mistake
def device_put_never_needs_the_host(row):
    """No device has the shard that another one needs: shards have to be put together, and the two meshes have no
    program in common that could do it. What is left?"""
    return believed(row, BETWEEN, TRAVELS[2])


@transfer_path.mistake
def jit_needs_the_host(row):
    """A compiled program reshards with collectives between its own devices. Which transfer is left outside the
    program?"""
    return believed(row, HOST, TRAVELS[4])


@transfer_path.mistake
def jit_does_not_move(row):
    """No `device_put` is called, but the sharding changes, so data has to be sent. What sends it?"""
    return believed(row, STAYS, TRAVELS[4])


@transfer_path.mistake
def numpy_is_no_detour(row):
    """`np.asarray` returns a NumPy array, in host memory. From where is it put on devices?"""
    return believed(row, BETWEEN, TRAVELS[5])


# Two names, one memory?

ALIASES = (
    "jax.device_put(a, a.sharding)",
    "jnp.asarray(a)",
    "jnp.copy(a)",
    "jax.device_put(a, a.sharding, may_alias=False)",
    "a + 0",
)
DONATED = "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)"


def _survives(row):
    """Make b from a, delete a, and see whether b is still there."""
    a = put(lab()["v"] + 1, line(*FRONT), "x")
    if row == DONATED:
        jax.block_until_ready(jax.jit(jnp.sin, donate_argnums=0)(a))
        return "deleted" if a.is_deleted() else "alive"
    b = jax.block_until_ready(eval(row, {**lab(), "a": a}))
    a.delete()
    return "deleted" if b.is_deleted() else "alive"


alias = TableExercise("alias", points=3, reference=_survives)
alias.rows((*ALIASES, DONATED))


@alias.mistake
def device_put_always_copies(row):
    """The array is already where you want it, with the sharding that you want. So you get the same array back. What
    does `b is a` say?"""
    return believed(row, "alive", ALIASES[0])


@alias.mistake
def asarray_is_array(row):
    """As in NumPy, `array` copies, and `asarray` only makes sure that it is an array. What does it do with one that
    already is?"""
    return believed(row, "alive", ALIASES[1])


@alias.mistake
def copies_hang_on_the_original(row):
    """This call asks explicitly for its own memory. What could deleting `a` do to it?"""
    return believed(row, "deleted", ALIASES[2], ALIASES[3])


@alias.mistake
def adding_nothing_changes_nothing(row):
    """An addition runs a program, and its result is a new array, even if the values are the same. Whose memory is
    it in?"""
    return believed(row, "deleted", ALIASES[4])


@alias.mistake
def donation_is_a_loan(row):
    """If you donate an array, the program may write its result into that memory. What happens to the operand?"""
    return believed(row, "alive", DONATED)
