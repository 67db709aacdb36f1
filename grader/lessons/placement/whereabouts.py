"""§ 1–7, the tables: where arrays live, what may meet, and how data move. Every answer is found by doing it."""

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

# What the lesson's first two cells define. The questions are expressions of these names, and are evaluated.

EVERYONE, FRONT, REAR, TURNED, RING = range(8), range(4), range(4, 8), range(7, -1, -1), (0, 2, 4, 6, 7, 5, 3, 1)


def line(*numbers, explicit=False):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(kind,))


def grid(rows, columns, explicit=False):
    """A mesh of all eight devices with axes x and y."""
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return Mesh(np.array(jax.devices()[:8]).reshape(rows, columns), ("x", "y"), axis_types=(kind,) * 2)


def put(value, mesh, *spec):
    """The array laid out over a mesh, committed."""
    return jax.device_put(value, NamedSharding(mesh, P(*spec)))


@functools.cache
def lab():
    v = 10 * np.arange(8, dtype=np.float32)
    second = line(*REAR)
    arrays = {
        "v": v,
        "fresh": jnp.arange(8.0),
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
    """What an expression of the lesson comes to; `with …: …` in one line is one, too."""
    context, _, rest = re.fullmatch(r"(?:with (.+\)): )?()(.*)", expression).groups()
    with eval(context, dict(lab())) if context else contextlib.nullcontext():
        return eval(rest, dict(lab()))


def runs(row):
    try:
        jax.block_until_ready(_value_of(row))
    except Exception:  # which error, and with what words, differs between versions of JAX
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
    "": "A result is where its operands are, and what `device_put` gives back is where it was sent. Ask it: "
    "`sorted(d.id for d in (…).devices())`. What is NumPy's is on no device.",
}
who_holds_it = TableExercise("who_holds_it", points=3, reference=_numbers, questions=WHO_HOLDS_IT_ASKS)
who_holds_it.rows(HOLDERS)


@who_holds_it.mistake
def took_the_host_for_a_device(row):
    """A NumPy array is in the memory of the Python process, the host. It has no `.devices()` and no sharding:
    no device holds a part of it, until something puts it there."""
    return {"v": [0]}.get(row)


@who_holds_it.mistake
def spread_a_fresh_array(row):
    """Nothing said that it should be spread. What you make without saying where is whole on one device, the
    default one. Look at `.devices()` of it."""
    return believed(row, list(EVERYONE), "jnp.arange(8)")


@who_holds_it.mistake
def copies_on_one_device(row):
    """`P()` cuts nothing: every device of the *mesh* holds the whole. How many copies are that?"""
    return believed(row, [0], "replicated")


@who_holds_it.mistake
def one_entry_on_one_device(row):
    """A program runs on all devices of the mesh that its operand is on, and its result is on all of them, however
    small. Who holds a copy of a single number, when nothing is cut?"""
    return believed(row, [0], "sharded[0]")


@who_holds_it.mistake
def used_the_whole_machine(row):
    """That mesh has only four of the devices. The other four hold nothing of the array and take no part in what
    is computed from it."""
    return believed(row, list(EVERYONE), "first_half")


@who_holds_it.mistake
def left_it_where_it_was(row):
    """Those are the devices of `first_half` itself. `device_put` returns a *new* array: where is that one?"""
    return believed(row, list(FRONT), "jax.device_put(first_half, second_half_sharding)")


@who_holds_it.mistake
def counted_both_arrays(row):
    """`first_half` stays where it is, yes. The question is about the array that `device_put` returns."""
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
    """It is on a device, but nobody said on which: JAX chose. Committed is what *you* have placed, or what
    was computed from that."""
    return believed(row, True, "jnp.zeros(first_half.shape)")


@commit_status.mistake
def every_put_commits(row):
    """`device_put` without a second argument says nothing about where. What would there be to hold on to?"""
    return believed(row, True, "jax.device_put(v)")


@commit_status.mistake
def the_default_device_needs_no_commitment(row):
    """It would have come to device 0 anyway, but now you *said* so, and JAX keeps to it."""
    return believed(row, False, "jax.device_put(v, jax.devices()[0])")


@commit_status.mistake
def ones_like_is_fresh(row):
    """So it was in older versions, and so older tutorials say. Today it takes over more of its model than shape
    and dtype: print its sharding."""
    return believed(row, False, "jnp.ones_like(first_half)")


@commit_status.mistake
def results_are_free(row):
    """The result of a program stays where the committed operand made it run, and is committed there: one
    committed operand is enough."""
    return believed(row, False, "first_half + fresh")


@commit_status.mistake
def numpy_remembers(row):
    """On its way through NumPy the array became plain numbers on the host. Nothing there remembers devices."""
    return believed(row, True, "jnp.asarray(np.asarray(first_half))")


# May these meet?

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
    """A NumPy array is as free as an uncommitted one: JAX brings it to wherever the program runs. (That costs a
    trip from the host each time.)"""
    return believed(row, "error", "sharded + v")


@will_it_run.mistake
def layouts_must_agree(row):
    """Same devices, same order: these are two layouts on one mesh, and the compiler knows how to bring them
    together."""
    return believed(row, "error", "sharded + replicated")


@will_it_run.mistake
def some_devices_in_common(row):
    """That they share devices is not enough. A program runs on one list of devices, and each committed operand
    must be on exactly that list."""
    return believed(row, "runs", "sharded + alone")


@will_it_run.mistake
def order_does_not_matter(row):
    """The same eight devices, but in another order: which device holds the first entry of each? A mesh is a
    list, not a set."""
    return believed(row, "runs", "sharded + backwards")


@will_it_run.mistake
def mesh_shapes_must_agree(row):
    """With Auto axes only the *list* of devices counts. 4 × 2 and 2 × 4, read row by row, are the same list."""
    return believed(row, "error", "tall + wide")


@will_it_run.mistake
def ones_like_goes_anywhere(row):
    """Older tutorials show this as an example of what may be mixed. Where is `jnp.ones_like(second_half)` today,
    and is it committed?"""
    return believed(row, "runs", "first_half + jnp.ones_like(second_half)")


# Which entry does a device hold, when the devices come in another order?

ORDER = (
    "backwards on device 0",
    "backwards on device 5",
    "winding on device 4",
    "winding on device 1",
    "np.asarray(backwards)[0]",
    "jax.device_put(backwards, sharded.sharding) on device 0",
)


def _entry(row):
    """The one entry that a device holds, or a value of NumPy's."""
    expression, _, number = row.partition(" on device ")
    value = _value_of(expression)
    if not number:
        return int(value)
    device = jax.devices()[int(number)]
    return next(int(s.data[0]) for s in value.addressable_shards if s.device == device)


DEVICE_ORDER_ASKS = {
    " on device": "At which place of its mesh does this device stand? The parts are dealt out in the order of the "
    "places, and place k gets the number 10 · k.",
    "asarray": "To Python an array is a whole: which number was put first?",
}
device_order = TableExercise("device_order", points=2, reference=_entry, questions=DEVICE_ORDER_ASKS)
device_order.rows(ORDER)


def _device(row):
    name, _, number = row.partition(" on device ")
    return name, int(number or 0)


@device_order.mistake
def same_array_same_data(row):
    """As a mathematical value it is the same array. But entries go to devices by their *place in the mesh*:
    where in the mesh does this device stand?"""
    name, number = _device(row)
    return 10 * number if name in ("backwards", "winding") else None


@device_order.mistake
def looked_up_the_place_for_the_device(row):
    """That is the number of the device which stands at that place, times 10. The question goes the other way: at which
    place stands this device?"""
    name, number = _device(row)
    return 10 * RING[number] if name == "winding" else None


@device_order.mistake
def counted_places_from_one(row):
    """So it would be if places were counted from 1. They are counted from 0: how many devices stand before this
    one?"""
    name, number = _device(row)
    places = {"backwards": list(TURNED), "winding": list(RING)}.get(name)
    return 10 * (places.index(number) + 1) if places else None


@device_order.mistake
def read_backwards(row):
    """Put together, the array reads as it always did: the sharding knows which device has which entry. Only
    *who holds it* has changed."""
    return believed(row, 70, "np.asarray(backwards)[0]")


@device_order.mistake
def nothing_moves_between_orders(row):
    """`device_put` to a mesh with another order changes who holds what, and so it moves data. Who holds the
    first entry of `sharded`?"""
    return believed(row, 70, "jax.device_put(backwards, sharded.sharding) on device 0")


# What may stand inside jit?

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
    """One compiled program runs on one list of devices. `first_half` is committed to four of them, and
    `second_half_sharding` names four others: which list should it be?"""
    return believed(row, "runs", INSIDE[1])


@inside_jit.mistake
def out_shardings_lead_elsewhere(row):
    """`out_shardings` lay out the result over the program's devices, and these are where the committed operand is."""
    return believed(row, "runs", INSIDE[2])


@inside_jit.mistake
def nothing_moves_around_jit(row):
    """This `device_put` stands outside: the program is done, and its result is moved by the runtime, as any array."""
    return believed(row, "error", INSIDE[0])


@inside_jit.mistake
def no_put_inside_at_all(row):
    """Inside a program `device_put` is no transfer but a wish about the layout. This one names the devices that
    the program runs on: nothing speaks against it."""
    return believed(row, "error", INSIDE[3])


@inside_jit.mistake
def uncommitted_operands_bind(row):
    """`fresh` is committed to nothing. So there is only one opinion about where this program runs."""
    return believed(row, "error", INSIDE[4])


@inside_jit.mistake
def a_set_is_enough(row):
    """The same set of devices, but another order: that is another list, and a program has one."""
    return believed(row, "runs", INSIDE[5])


# How does it travel? JAX's transfer guards see every transfer by the runtime, and none inside a program.

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
    """Forbid one kind of transfer after the other, and see which one is missed."""
    lab()  # made before anything is forbidden
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
    STAYS: "Not at all: the same array comes back. Is it on these devices already, and in this layout?",
    BETWEEN: "Between devices: `device_put` sends blocks from device to device as they are. Who moves the data in "
    "this line, and do the blocks stay as they are?",
    HOST: "Through the host: NumPy stands in between, or `device_put` has to cut the blocks anew. Which of the two "
    "is it here?",
    INSIDE_A_PROGRAM: "In a program: a compiled one moves the data. Which function in this line compiles one?",
}
transfer_path = TableExercise("transfer_path", points=4, reference=_travels, options=WAYS)
transfer_path.rows(TRAVELS)


@transfer_path.mistake
def every_put_copies(row):
    """It is there already, laid out like this. Compare with `is`: do you get another array?"""
    return believed(row, BETWEEN, TRAVELS[0])


@transfer_path.mistake
def every_way_leads_through_the_host(row):
    """A device holds what is needed here: the very block, or all of the array, from which it can cut one. Then each
    block goes straight to its new device."""
    return believed(row, HOST, TRAVELS[1], TRAVELS[3])


@transfer_path.mistake
def device_put_never_needs_the_host(row):
    """No device has the block that another one is to get: blocks have to be cut anew or put together, and the
    devices have no program in common that could do it. Who is left?"""
    return believed(row, BETWEEN, TRAVELS[2])


@transfer_path.mistake
def jit_needs_the_host(row):
    """A compiled program changes the layout with collectives, among its own devices: the runtime transfers
    nothing."""
    return believed(row, HOST, TRAVELS[4])


@transfer_path.mistake
def jit_does_not_move(row):
    """Nobody calls `device_put`, but the layout changes, and so data move: by a collective, inside the program."""
    return believed(row, STAYS, TRAVELS[4])


@transfer_path.mistake
def numpy_is_no_detour(row):
    """`np.asarray` gives an array of NumPy's, in the host's memory. What is put on devices then comes from there."""
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
    """Make b of a, delete a, and look whether b is still there."""
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
    """The array is already where it is wanted, and as it is wanted, however that is spelled. So you get the
    array you had: `b is a`."""
    return believed(row, "alive", ALIASES[0])


@alias.mistake
def asarray_is_array(row):
    """As in NumPy: `array` copies, and `asarray` only makes sure that it is an array. It is one."""
    return believed(row, "alive", ALIASES[1])


@alias.mistake
def copies_hang_on_the_original(row):
    """This asks for memory of its own, in so many words."""
    return believed(row, "deleted", ALIASES[2], ALIASES[3])


@alias.mistake
def adding_nothing_changes_nothing(row):
    """To add is to run a program, and its result is a new array, even if the numbers are the same."""
    return believed(row, "deleted", ALIASES[4])


@alias.mistake
def donation_is_a_loan(row):
    """Donated is given away: the program may write its result into that memory, and the operand is gone."""
    return believed(row, "alive", DONATED)
