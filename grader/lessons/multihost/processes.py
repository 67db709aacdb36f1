"""§ 1, 5–8: several processes that are one program. Answers are run in real processes.

A reference says on one device, with NumPy, what each process is to return.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.described import HELD, Observed, PerProcess, observed_array
from grader.exercises import Case, ProcessExercise, TableExercise

PROCESSES, DEVICES = 4, 2
HERE = {"processes": PROCESSES, "devices": DEVICES}


def held(value: np.ndarray, sizes: dict[str, int], spec: P, process_id: int) -> Observed:
    """What one process is to hold of an array that is cut over all devices as `spec` says."""
    mesh = Mesh(np.array(jax.devices()[: PROCESSES * DEVICES]).reshape(*sizes.values()), tuple(sizes))
    everywhere = observed_array(jax.device_put(value, NamedSharding(mesh, spec)))[HELD]
    mine = range(DEVICES * process_id, DEVICES * (process_id + 1))
    return Observed({HELD: {f"device {k}": everywhere[f"device {k}"] for k in mine}})


def _joined(process_id, num_processes):
    """A line of all devices, of all processes."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return jax.make_mesh((jax.device_count(),), ("x",), axis_types=(AxisType.Auto,))


def _gathered(mesh, rows):
    return jax.make_array_from_process_local_data(NamedSharding(mesh, P("x")), rows)


# To join. Where it goes wrong nobody may notice, or everybody may wait. All that a process says of itself it might have
# made up; the sum of all tickets it has from the others.


def _joining(process_id, num_processes, *, ticket):
    return process_id, num_processes, DEVICES, DEVICES * num_processes, sum(ticket)


join = ProcessExercise(
    "join",
    points=3,
    reference=_joining,
    parts=(
        "its own number",
        "the number of processes",
        "the number of its own devices",
        "the number of all devices",
        "the sum of all tickets",
    ),
)


@join.cases
def _(draw):
    for count in (PROCESSES, 3):
        tickets = draw.rng.choice(1_000_000, size=count, replace=False)
        yield Case({"ticket": PerProcess(tuple(map(int, tickets)))}, {"processes": count, "devices": DEVICES})


def _whoami(ticket):
    return jax.process_index(), jax.process_count(), len(jax.local_devices()), len(jax.devices()), _total(ticket)


def _total(ticket):
    return int(multihost_utils.process_allgather(np.int32(ticket)).sum())


@join.mistake
def never_joined(process_id, num_processes, *, ticket):
    """Nobody complained, and every process believes that it is number 0 of 1: as many programs as processes, each
    training a model of its own. Which call makes them one?"""
    return _whoami(ticket)


@join.mistake
def too_late(process_id, num_processes, *, ticket):
    """JAX settles its devices when it is first used, and then it is too late to hear of others. `jax.devices`,
    an array, a computation: which of them stands above your call?"""
    local = len(jax.local_devices())
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return jax.process_index(), jax.process_count(), local, len(jax.devices()), _total(ticket)


@join.mistake
def id_out_of_range(process_id, num_processes, *, ticket):
    """Processes are numbered from 0, and num_processes is how many there are, so that the last is number num_processes
    − 1. Does each process pass the two numbers on as they came?"""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id + 1)
    return _whoami(ticket)


@join.mistake
def repeated_id(process_id, num_processes, *, ticket):
    """Two processes gave the same number. The coordinator takes the second for a restart of the first, and turns one
    of them away: it is aborted. Where does each process get a number that no other has?"""
    jax.distributed.initialize(num_processes=num_processes, process_id=min(process_id, num_processes - 2))
    return _whoami(ticket)


@join.mistake
def nobody_comes(process_id, num_processes, *, ticket):
    """They all stand in initialize, and would for five minutes: it returns when the numbers 0 to num_processes − 1
    have come. Is that more than there are processes (devices, perhaps)? Or do all of them say the same number?"""
    jax.distributed.initialize(num_processes=DEVICES * num_processes, process_id=process_id)
    return _whoami(ticket)


@join.mistake
def its_own_ticket(process_id, num_processes, *, ticket):
    """The four numbers are right, and the fifth is the ticket of this process alone. A process can know the others'
    tickets only from them. Which call hands each what all have brought?"""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return *_whoami(ticket)[:-1], ticket


@join.mistake
def all_the_tickets(process_id, num_processes, *, ticket):
    """These are the tickets of all processes, one by one: they have been heard. What was asked for is one
    number."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return *_whoami(ticket)[:-1], multihost_utils.process_allgather(np.int32(ticket))


# The order of collectives. On the CPU nobody notices when it differs.

SHOWN = (2, 3, 1, 4, 6, 5, 8, 7)  # on devices 0 to 7, two to a process


def exchanged(first: list, values=SHOWN, devices: int = DEVICES) -> float:
    """What one all-reduce comes to, for everybody, where process k reduces with `first[k]`.

    With Gloo and a single number the last process hands its own on, and every other reduces it with what has come
    (tests/test_multihost.py holds this against real processes).
    """
    own = [function(values[devices * k : devices * (k + 1)]) for k, function in enumerate(first)]
    return float(functools.reduce(lambda came, k: first[k]([own[k], came]), reversed(range(len(first) - 1)), own[-1]))


def exchanged_parts(others, last) -> list[float]:
    """What each process brings along, where the last reduces its own numbers by another function."""
    parts = [SHOWN[DEVICES * k : DEVICES * (k + 1)] for k in range(PROCESSES)]
    return [*map(others, parts[:-1]), last(parts[-1])]


order_puzzle = TableExercise("order_puzzle", points=3, reference=lambda row: _in_order()[row])


def _in_order(values=SHOWN) -> dict[str, float]:
    mixed = exchanged([sum] * 3 + [max], values), exchanged([max] * 3 + [sum], values)
    return {
        "sum, all in the same order": float(sum(values)),
        "process 3, its first collective: what it contributes": float(max(values[6:])),
        "what process 0 takes for the sum": mixed[0],
        "what process 0 takes for the max": mixed[1],
        "what process 3 takes for the max": mixed[0],
        "what process 3 takes for the sum": mixed[1],
    }


order_puzzle.rows(_in_order)


@order_puzzle.mistake
def by_name(row):
    """Nothing on the wire says “this is for the max”. Processes meet in the order in which they call: the first
    call of one with the first call of the others. What does process 3 bring along to that?"""
    return {
        "what process 0 takes for the sum": float(sum(SHOWN)),
        "what process 0 takes for the max": float(max(SHOWN)),
        "what process 3 takes for the max": float(max(SHOWN)),
        "what process 3 takes for the sum": float(sum(SHOWN)),
    }.get(row)


@order_puzzle.mistake
def reduced_by_what_it_calls(row):
    """These come out if process 3 reduces as well, by what it was told to. It does not: the last process hands its own
    number on. The others reduce that, by what *they* were told to, and all take what comes of it."""
    return {
        "what process 3 takes for the max": float(max(exchanged_parts(sum, max))),
        "what process 3 takes for the sum": float(sum(exchanged_parts(max, sum))),
    }.get(row)


@order_puzzle.mistake
def thought_it_hears_its_own_name(row):
    """That is what it takes for the other of the two. What process 3 takes for its max comes of *its* first call, and
    of the first of the others. Which of the two did those call first?"""
    first, second = (exchanged([one] * 3 + [other]) for one, other in ((sum, max), (max, sum)))
    return {"what process 3 takes for the max": second, "what process 3 takes for the sum": first}.get(row)


@order_puzzle.mistake
def left_out_the_last_process(row):
    """That is what processes 0, 1 and 2 bring along, without process 3. Its first call meets their first, its second
    their second. Which one is this, and what does it bring to it?"""
    three = SHOWN[: 3 * DEVICES]
    return {
        "what process 0 takes for the sum": float(sum(three)),
        "what process 0 takes for the max": float(max(three)),
    }.get(row)


@order_puzzle.mistake
def with_the_numbers_of_the_lesson(row):
    """This is right of the numbers 0 to 7, which the lesson had on its devices. Here they hold others."""
    return _in_order(range(PROCESSES * DEVICES))[row]


@order_puzzle.mistake
def its_sum_all_the_same(row):
    """In its first collective process 3 reduces its own two numbers by what *it* was told to. It calls the max
    first. What are its two numbers, and what does it make of them?"""
    return {"process 3, its first collective: what it contributes": float(sum(SHOWN[6:]))}.get(row)


same_order = ProcessExercise(
    "same_order",
    points=3,
    reference=lambda process_id, num_processes, *, rows: (float(np.sum(rows)), float(np.max(rows))),
)


@same_order.cases
def _(draw):
    values = draw.rng.permutation(np.arange(1, 1 + PROCESSES * DEVICES)).astype(np.float32)
    # The last process holds the two largest, in any order, so that a wrong order shows.
    values = np.concatenate([values[values < 7], values[values >= 7]])
    yield Case({"rows": PerProcess(tuple(values.reshape(PROCESSES, DEVICES)))}, HERE)


@same_order.mistake
def last_one_first(process_id, num_processes, *, rows):
    """So it comes out where one process asks for the maximum before the sum: its first collective meets the others'
    first. Who calls what, and when, must not depend on the number of the process; what is *printed* may."""
    whole = _gathered(_joined(process_id, num_processes), rows)
    total, most = jax.jit(jnp.sum), jax.jit(jnp.max)
    if process_id == num_processes - 1:
        largest, everything = most(whole), total(whole)
    else:
        everything, largest = total(whole), most(whole)
    return float(everything), float(largest)


@same_order.mistake
def gave_its_rows_for_the_whole(process_id, num_processes, *, rows):
    """`device_put` takes what it is given for the *whole* array, the same in every process. `rows` are a part of it,
    another one in each. Which way makes one array of the parts that the processes bring?"""
    whole = jax.device_put(rows, NamedSharding(_joined(process_id, num_processes), P("x")))
    return float(jax.jit(jnp.sum)(whole)), float(jax.jit(jnp.max)(whole))


@same_order.mistake
def of_its_own_rows(process_id, num_processes, *, rows):
    """Each process has the sum and the maximum of the rows it was given, and knows nothing of the others' rows. Which
    array holds all of them, cut over the processes? (P() would call different rows copies of one another.)"""
    _joined(process_id, num_processes)
    return float(np.sum(rows)), float(np.max(rows))


@same_order.mistake
def asked_alone(process_id, num_processes, *, rows):
    """Process 0 waits, and no other process makes the call that it waits in. Every process that holds a part of the
    array has to make a collective call, whether or not it wants the answer."""
    whole = _gathered(_joined(process_id, num_processes), rows)
    if process_id == 0:
        return float(jax.jit(jnp.sum)(whole)), float(jax.jit(jnp.max)(whole))
    return float(np.sum(rows)), float(np.max(rows))


# Some of the processes only.

OUTSIDE = "outside"


def _half(process_id, num_processes, *, rows):
    inside = num_processes // 2
    return float(np.sum(rows[:inside])) if process_id < inside else OUTSIDE


subset_mesh = ProcessExercise("subset_mesh", points=4, reference=_half)


@subset_mesh.cases
def _(draw):
    (width,) = draw.lengths(1, divisible_by=DEVICES)
    for count in (PROCESSES, 2):
        rows = PerProcess(tuple(draw.values(count, width)))
        yield Case({"rows": rows}, {"processes": count, "devices": DEVICES})


def _first_half(process_id, num_processes):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    chosen = jax.devices()[: jax.device_count() // 2]
    return jax.make_mesh((len(chosen),), ("x",), axis_types=(AxisType.Auto,), devices=chosen)


def _on_devices(rows):
    parts = np.split(rows, len(jax.local_devices()))
    return [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices(), strict=True)]


@subset_mesh.mistake
def everyone_reads(process_id, num_processes, *, rows):
    """Every process may hold the result, as a name for something elsewhere; but the outsiders have no shard of it, and
    its value cannot be fetched there. Who may call `float` on it?"""
    mesh = _first_half(process_id, num_processes)
    pieces = _on_devices(rows) if process_id < num_processes // 2 else []
    shape = (num_processes // 2 * len(rows),)
    whole = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P("x")), pieces, dtype=jnp.float32)
    return float(jnp.sum(whole))


@subset_mesh.mistake
def no_dtype(process_id, num_processes, *, rows):
    """An outsider gives no pieces, so that JAX cannot see from them of what type the array is. Either say so by
    `dtype=`, or let outsiders leave the array out altogether."""
    mesh = _first_half(process_id, num_processes)
    pieces = _on_devices(rows) if process_id < num_processes // 2 else []
    shape = (num_processes // 2 * len(rows),)
    whole = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P("x")), pieces)
    return float(jnp.sum(whole)) if process_id < num_processes // 2 else "outside"


@subset_mesh.mistake
def all_devices(process_id, num_processes, *, rows):
    """That is the sum over all processes: the mesh holds every device. `make_mesh` takes the devices that you want in
    `devices=`. Which of `jax.devices()` belong to the first half of the processes?"""
    total = float(jnp.sum(_gathered(_joined(process_id, num_processes), rows)))
    return total if process_id < num_processes // 2 else "outside"


@subset_mesh.mistake
def a_mesh_each(process_id, num_processes, *, rows):
    """Each process of the half returned the sum of its own rows alone, so that they return different sums. The sum of
    all comes of one array, cut over the devices of the first half: take these from `jax.devices()`, which is the same
    list everywhere (`jax.local_devices()` is another in every process)."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((jax.local_device_count(),), ("x",), axis_types=(AxisType.Auto,), devices=jax.local_devices())
    total = float(jnp.sum(jax.device_put(rows, NamedSharding(mesh, P("x")))))
    return total if process_id < num_processes // 2 else "outside"


@subset_mesh.mistake
def the_other_half(process_id, num_processes, *, rows):
    """The sum came out in the second half of the processes, and the first half returned "outside". Processes are
    counted from 0: which of them are the first half?"""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    first = jax.device_count() // 2
    mesh = jax.make_mesh((first,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[first:])
    if process_id < num_processes // 2:
        return "outside"
    return float(jnp.sum(jax.make_array_from_process_local_data(NamedSharding(mesh, P("x")), rows)))


@subset_mesh.mistake
def half_of_each(process_id, num_processes, *, rows):
    """Every second device is half of them, too: one from each process, so that there is nobody outside. Devices come in
    the order of the processes here: which end of the list is the first half?"""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    chosen = jax.devices()[::2]
    mesh = jax.make_mesh((len(chosen),), ("x",), axis_types=(AxisType.Auto,), devices=chosen)
    return float(jnp.sum(_gathered(mesh, rows)))


@subset_mesh.mistake
def left_before_the_roll_call(process_id, num_processes, *, rows):
    """The first half waits. The first `jax.devices()` is where all processes tell each other which devices they have:
    had the outsiders gone by then? What may an outsider leave out, and what not yet?"""
    if process_id >= num_processes // 2:
        jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
        return "outside"
    return float(jnp.sum(_gathered(_first_half(process_id, num_processes), rows)))


# The same parameters everywhere.

SHAPE = (3, 2)


def _initial(process_id, num_processes, *, seed):
    value = np.asarray(jax.random.normal(jax.random.key(seed[0]), SHAPE))
    return held(value, {"x": PROCESSES * DEVICES}, P(), process_id)


same_params = ProcessExercise("same_params", points=4, reference=_initial)


@same_params.cases
def _(draw):
    """That of process 0 is neither the smallest nor the largest."""
    least, first, *others = sorted(map(int, draw.rng.choice(10_000, size=PROCESSES, replace=False)))
    yield Case({"seed": PerProcess((first, least, *others))}, HERE)


def _drawn(mesh, key):
    return jax.jit(lambda k: jax.random.normal(k, (3, 2)), out_shardings=NamedSharding(mesh, P()))(key)


@same_params.mistake
def its_own_seed(process_id, num_processes, *, seed):
    """P() says that all devices hold the same, and nobody looked: each process drew from its own seed, and these
    replicas differ. `multihost_utils.assert_equal` would have told you. Whose seed should all of them use?"""
    return _drawn(_joined(process_id, num_processes), jax.random.key(seed))


@same_params.mistake
def different_values_put(process_id, num_processes, *, seed):
    """This time JAX noticed: `device_put` of a host's values onto devices of several processes compares them, and
    they are not the same. That check is the only one of its kind. Make them equal before you put them there."""
    mesh = _joined(process_id, num_processes)
    return jax.device_put(np.random.default_rng(seed).normal(size=(3, 2)).astype(np.float32), NamedSharding(mesh, P()))


@same_params.mistake
def folded_in(process_id, num_processes, *, seed):
    """Folding the process's number into the key gives every process another stream. That is what dropout may want, and
    what parameters must not have."""
    mesh = _joined(process_id, num_processes)
    common = int(multihost_utils.broadcast_one_to_all(np.int32(seed)))
    return _drawn(mesh, jax.random.fold_in(jax.random.key(common), process_id))


@same_params.mistake
def a_seed_of_its_own_making(process_id, num_processes, *, seed):
    """All replicas are equal, and drawn from the key of 0. The seed was an argument: process 0's is the one that
    counts, and has to reach the others."""
    return _drawn(_joined(process_id, num_processes), jax.random.key(0))


@same_params.mistake
def told_by_one_alone(process_id, num_processes, *, seed):
    """Process 0 waits for the others. To tell is a collective as much as to listen: who has to call
    `broadcast_one_to_all`, and who does?"""
    mesh = _joined(process_id, num_processes)
    if process_id == 0:
        seed = int(multihost_utils.broadcast_one_to_all(np.int32(seed)))
    return _drawn(mesh, jax.random.key(seed))


# Training, data parallel.


def _loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w) - y) ** 2)


def _trained(process_id, num_processes, *, x, y, w, rate, steps):
    """On one device, with all rows."""
    x, y, losses = np.concatenate(x), np.concatenate(y), []
    for _ in range(steps):
        loss, gradient = jax.value_and_grad(_loss)(w, x, y)
        losses.append(float(loss))
        w = w - rate * gradient
    return losses, np.asarray(w)


# A step adds up 16 rows and 6 columns: 4 steps pass through some 90 roundings, of the 320 that are let pass.
dp_training_4procs = ProcessExercise("dp_training_4procs", points=6, reference=_trained)


@dp_training_4procs.cases
def _(draw):
    rows, width, classes = 4, 6, 3
    x, y = draw.values(PROCESSES, rows, width) / 8, draw.values(PROCESSES, rows, classes) / 10
    yield Case(
        {
            "x": PerProcess(tuple(x)),
            "y": PerProcess(tuple(y)),
            "w": draw.values(width, classes) / 16,
            "rate": 0.5,
            "steps": 4,
        },
        HERE,
    )


def _loop(w, x, y, rate, steps, gradients):
    losses = []
    for _ in range(steps):
        loss, gradient = gradients(w, x, y)
        losses.append(float(loss))
        w = w - rate * gradient
    return losses, np.asarray(w)


@dp_training_4procs.mistake
def each_alone(process_id, num_processes, *, x, y, w, rate, steps):
    """Every process trained on its own rows, and there are as many models as processes. Nothing was ever averaged:
    either no array spans them, or the rows were called replicated, P(). What makes the rows of all one array, cut
    over them?"""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return _loop(w, x, y, rate, steps, jax.jit(jax.value_and_grad(_loss)))


@dp_training_4procs.mistake
def added_not_averaged(process_id, num_processes, *, x, y, w, rate, steps):
    """The first loss is right, and then it leaves the curve: the step is as many times too long as there are processes.
    Gradients of means over equal parts are to be *averaged*."""
    mesh = _joined(process_id, num_processes)
    whole = _gathered(mesh, x), _gathered(mesh, y)
    return _loop(w, *whole, num_processes * rate, steps, jax.jit(jax.value_and_grad(_loss)))


@dp_training_4procs.mistake
def its_own_loss(process_id, num_processes, *, x, y, w, rate, steps):
    """The parameters are right, and the losses are of each process's own rows: every process draws another curve. The
    loss to report is that of the whole batch, which the global computation has already."""
    mesh = _joined(process_id, num_processes)
    whole = _gathered(mesh, x), _gathered(mesh, y)
    losses = []
    for _ in range(steps):
        losses.append(float(_loss(w, x, y)))
        w = w - rate * np.asarray(jax.jit(jax.grad(_loss))(w, *whole))
    return losses, np.asarray(w)


@dp_training_4procs.mistake
def loss_after_the_step(process_id, num_processes, *, x, y, w, rate, steps):
    """The curve is one step ahead: each loss was taken with the parameters after the step. Take it with those before,
    as `value_and_grad` does."""
    mesh = _joined(process_id, num_processes)
    whole = _gathered(mesh, x), _gathered(mesh, y)
    losses = []
    for _ in range(steps):
        w = w - rate * np.asarray(jax.jit(jax.grad(_loss))(w, *whole))
        losses.append(float(jax.jit(_loss)(w, *whole)))
    return losses, w
