"""§ 2, 6, 8, 9, 12: the tables, answered by compiling what they ask about."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh, put
from grader.arrays.numbers import same_value
from grader.arrays.words import region
from grader.chips.report import communication
from grader.exercises import TableExercise
from grader.exercises.plain import plain
from grader.hlo.report import Report
from grader.lessons.shared import COLLECTIVES

GRID = {"x": 4, "y": 2}  # the mesh of the lesson
LINE = {"d": 8}  # a 1-D mesh


def _laid(shape: tuple[int, ...], spec: P, mesh: Any = GRID) -> jax.Array:
    mesh = make_mesh(mesh) if isinstance(mesh, Mapping) else mesh
    return put(np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape), spec, mesh)


def _spec(array: jax.Array) -> tuple[Any, ...]:
    """The sharding of an array, an entry for each dimension."""
    return _padded(tuple(array.sharding.spec), array.ndim)


def _padded(spec: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    return (*spec, *[None] * (rank - len(spec)))


def _moved(report: Report) -> str:
    """The one kind of collective in a report, "nothing", or all of them."""
    kinds = {c.kind for c in report.collectives if c.group > 1}
    return " and ".join(sorted(kinds)) or "nothing"


def _at(asked: str, rows: Mapping[str, Any]) -> Any:
    """What a mistake answers to these rows. To the others, it has no answer."""
    return rows.get(asked)


# Who decides what? Six sentences, each tried.


def _one_program_for_all_shardings() -> bool:
    doubled = jax.jit(lambda v: v.sum(0))
    texts = {doubled.lower(_laid((16, 32), spec)).compile().as_text() for spec in (P("x"), P("y"))}
    return len(texts) == 1


def _values_depend_on_sharding() -> bool:
    found = [np.asarray(jax.jit(lambda v: v.sum(0))(_laid((16, 32), spec))) for spec in (P("x"), P(None, "y"), P())]
    return not all(np.array_equal(found[0], other) for other in found)


def _elementwise_sends_nothing() -> bool:
    return not any(
        communication(lambda v: 2 * jnp.sin(v) + 1, _laid((16, 32), spec)).collectives
        for spec in (P("x", "y"), P("y"), P(("x", "y")), P())
    )


def _matmul_always_sends() -> bool:
    return bool(communication(jnp.matmul, _laid((16, 32), P("x")), _laid((32, 24), P(None, "y"))).collectives)


def _different_shardings_are_an_error() -> bool:
    try:
        jax.jit(jnp.add)(_laid((16, 32), P("x")), _laid((16, 32), P(None, "y")))
    except Exception:
        return True
    return False


def _a_constraint_divides_the_work_before_it() -> bool:
    mesh, whole = make_mesh(GRID), _laid((16, 32), P())
    wanted = NamedSharding(mesh, P("x"))
    divided = communication(lambda v: lax.with_sharding_constraint(2 * jnp.sin(v), wanted), whole)
    return divided.elementwise_flops < communication(lambda v: 2 * jnp.sin(v), whole).elementwise_flops


CLAIMS = {
    "jit compiles one program for all shardings": _one_program_for_all_shardings,
    "values depend on the sharding": _values_depend_on_sharding,
    "an elementwise operation on one array sends nothing": _elementwise_sends_nothing,
    "every matmul sends something": _matmul_always_sends,
    "operands with different shardings are an error": _different_shardings_are_an_error,
    "a constraint can divide work before it": _a_constraint_divides_the_work_before_it,
}

who_decides = TableExercise("who_decides", points=3, reference=functools.cache(lambda claim: CLAIMS[claim]()))
who_decides.rows(CLAIMS, GRID, argument="claim")


@who_decides.mistake
def one_program_serves_all(claim):
    """A program is compiled for the shardings of its arguments, because they decide what it must send. Compile
    `v.sum(0)` for two shardings. Are the two texts
    the same?"""
    return _at(claim, {"jit compiles one program for all shardings": True})


@who_decides.mistake
def layouts_change_values(claim):
    """A sharding says where the parts of an array are, and not what they are. Only rounding can change, because
    sums may be taken in a different order. If the compiler divides a program differently, what stays the same?"""
    return _at(claim, {"values depend on the sharding": True})


@who_decides.mistake
def everything_communicates(claim):
    """For one element of sin(v), a device needs the same element of v. Does it hold that element?"""
    return _at(claim, {"an elementwise operation on one array sends nothing": False})


@who_decides.mistake
def every_matmul_communicates(claim):
    """Part 2 has a matmul that sends nothing. Its left operand is split by rows, and its right operand by columns.
    What does a device need for its block of the result that it doesn't hold?"""
    return _at(claim, {"every matmul sends something": True})


@who_decides.mistake
def layouts_must_agree(claim):
    """On Auto axes, that isn't an error: the compiler silently moves one of the operands. Which tool shows you what it
    moved?"""
    return _at(claim, {"operands with different shardings are an error": True})


@who_decides.mistake
def constraints_act_forward_only(claim):
    """Part 4 compares the FLOPs of 2 * sin(v), replicated, with and without a constraint on its result. If a device
    has to produce only a part of the result, how much of it does it have to compute?"""
    return _at(claim, {"a constraint can divide work before it": False})


# How is the result of an operation sharded, and what does it take? A 16 × 16 array, its rows split along d.

OPERATIONS = {
    "v.T": lambda v: v.T,
    "v.sum(0)": lambda v: v.sum(0),
    "v + v.T": lambda v: v + v.T,
    "jnp.roll(v, 1, axis=0)": lambda v: jnp.roll(v, 1, axis=0),
    "v.cumsum(0)": lambda v: v.cumsum(0),
    "v.reshape(-1)": lambda v: v.reshape(-1),
    "v[0]": lambda v: v[0],
    "v @ v": lambda v: v @ v,
}


@functools.cache
def _result(operation: str) -> jax.Array:
    return jax.jit(OPERATIONS[operation])(_laid((16, 16), P("d"), LINE))


def _layout(operation: str) -> P:
    return P(*_spec(_result(operation)))


def _alike(one: Any, other: Any, operation: str) -> bool:
    """Two specs that put the same parts on the same devices: for a matrix, P("d") and P("d", None) do."""
    rank = _result(operation).ndim
    return len(tuple(one)) <= rank and _padded(tuple(one), rank) == _padded(tuple(other), rank)


predict_out = TableExercise("predict_out", points=3, reference=_layout, same=_alike)
predict_out.rows(
    [o for o in OPERATIONS if o not in ("jnp.roll(v, 1, axis=0)", "v.cumsum(0)")], LINE, argument="operation"
)


@predict_out.mistake
def kept_the_spec(operation):
    """The first dimension of this result isn't the first dimension of v. A dimension that is summed or indexed away
    takes its sharding with it. Which dimension of v does each dimension of the *result* come from?"""
    return _at(operation, {"v.T": P("d"), "v.sum(0)": P("d"), "v[0]": P("d")})


@predict_out.mistake
def came_out_whole(operation):
    """That would be the full result on every device, and nothing in the program asks for it. Which part of the
    result belongs to the rows of v that a device holds?"""
    return _at(
        operation,
        {
            "v.reshape(-1)": P(),
            "v + v.T": P(),
            "v @ v": P(),
        },
    )


@predict_out.mistake
def turned_the_cut(operation):
    """That splits the columns. Which dimension of the result comes from the rows of the first operand?"""
    return _at(
        operation,
        {
            "v + v.T": P(None, "d"),
            "v @ v": P(None, "d"),
        },
    )


KINDS = ("nothing", "all_reduce", "all_gather", "all_to_all", "collective_permute")


@functools.cache
def _takes(operation: str) -> str:
    return _moved(communication(OPERATIONS[operation], _laid((16, 16), P("d"), LINE)))


predict_moves = TableExercise("predict_moves", points=4, reference=_takes, options=COLLECTIVES)
predict_moves.rows([o for o in OPERATIONS if o not in ("v[0]", "v.reshape(-1)")], LINE, argument="operation")


@predict_moves.mistake
def reductions_stay_at_home(operation):
    """The sum runs along the dimension that is split, so every device holds a partial sum for each column. Which
    collective combines them?"""
    return _at(operation, {"v.sum(0)": "nothing"})


@predict_moves.mistake
def transposing_moves_data(operation):
    """A device that holds rows 2 and 3 of v already holds columns 2 and 3 of v.T, and the result can be sharded
    that way. So what would it have to send?"""
    return _at(operation, {"v.T": "all_to_all"})


@predict_moves.mistake
def overlooked_that_layouts_differ(operation):
    """v is split by rows and v.T by columns, and an element of their sum needs one of each. So each device lacks a
    piece from every other device. Which collective sends a different piece from each device to each?"""
    return _at(operation, {"v + v.T": "nothing"})


@predict_moves.mistake
def overlooked_the_edges(operation):
    """Every row moves down by one. Within a device, nothing has to be sent for that. Where does the first row of
    each block come from?"""
    return _at(operation, {"jnp.roll(v, 1, axis=0)": "nothing"})


@predict_moves.mistake
def gathered_for_the_edges(operation):
    """Each device needs one row, and only from its neighbor. Which collective sends from each device to one other
    device?"""
    return _at(operation, {"jnp.roll(v, 1, axis=0)": "all_gather"})


@predict_moves.mistake
def ran_along_a_cut_dimension(operation):
    """The sum runs down the columns, and their rows are on different devices. Only the first device can finish with
    the rows that it holds. What do the others need?"""
    return _at(operation, {"v.cumsum(0)": "nothing"})


@predict_moves.mistake
def took_a_running_sum_for_a_sum(operation):
    """An all-reduce gives all devices the same total. In a running sum, each device continues from a different
    total, that of the rows above. This compiler first makes the dimension of the running sum available in full on
    every device. Which collective does that?"""
    return _at(operation, {"v.cumsum(0)": "all_reduce"})


@predict_moves.mistake
def passed_totals_on(operation):
    """Passing totals from device to device would be enough, and you could write that program. This compiler
    doesn't: it first makes the dimension of the running sum available in full on every device. Which collective
    does that?"""
    return _at(operation, {"v.cumsum(0)": "collective_permute"})


@predict_moves.mistake
def cut_the_columns_for_a_while(operation):
    """Splitting the columns instead would be enough: each device would then sum full columns. This compiler doesn't
    do that. It sends *all* of v to every device. Which collective does that?"""
    return _at(operation, {"v.cumsum(0)": "all_to_all"})


@predict_moves.mistake
def rows_times_what(operation):
    """A device has two rows of the left operand. For its rows of the result, it needs *all* rows of the right
    operand, and holds two of them. Which collective gets it the others?"""
    return _at(operation, {"v @ v": "nothing"})


@predict_moves.mistake
def took_parts_of_sums_for_rows(operation):
    """Devices hold partial sums if the contracted dimension is split in both operands. Here, it is split in the
    right operand only, and the left one is split by rows. What does a device lack for its rows of the result?"""
    return _at(operation, {"v @ v": "all_reduce"})


# A sum over rows on a 2 × 4 mesh: who holds which sums?

WIDE = {"x": 2, "y": 4}
BEFORE = np.arange(48, dtype=np.float32).reshape(6, 8)


@functools.cache
def _summed() -> tuple[jax.Array, Report]:
    laid = put(BEFORE, P("x", "y"), make_mesh(WIDE))
    return jax.jit(lambda v: v.sum(0))(laid), communication(lambda v: v.sum(0), laid)


def _holds(device: int) -> list[float]:
    return np.asarray(_summed()[0].addressable_shards[device].data).tolist()


CONTRACT: dict[str, Callable[[], Any]] = {
    "sharding": lambda: P(*_spec(_summed()[0])),
    "device 0": lambda: _holds(0),
    "device 4": lambda: _holds(4),
    "collective": lambda: _moved(_summed()[1]),
    "over": lambda: _summed()[1].collectives[0].axes[0],
    "bytes sent": lambda: _summed()[1].bytes_sent,
}


def _same_entry(one, other, asked):
    """Device 1 holds what it holds, too: an answer may include it or not."""
    mates = asked == "hold what device 1 holds" and isinstance(one, (list, tuple, np.ndarray))
    return same_value([1, *one] if mates and 1 not in one else one, plain(other))


CONTRACT_ASKS = {
    "sharding": "Which dimension is summed away, and which mesh axis splits the one that is left?",
    "device": "After the sum, a device holds the complete sums of the columns that it had a part of. Which columns "
    "are these?",
    "collective": "Each device has summed the rows that it holds. Which collective sums over devices?",
    "over": "Which axis splits the rows that are summed?",
    "bytes": "How many sums does a device have, how many bytes are these, and over how many devices does the "
    "all-reduce run?",
}
contract = TableExercise(
    "contract", points=4, reference=lambda asked: CONTRACT[asked](), same=_same_entry, questions=CONTRACT_ASKS
)
contract.rows(CONTRACT, WIDE, argument="asked")


@contract.mistake
def kept_its_own_part(asked):
    """That is the sum of the three rows that the device holds. The other three rows are on a device with the same
    index along y. How do the two partial sums come together?"""
    return _at(asked, {"device 0": [24.0, 27.0], "device 4": [96.0, 99.0]})


@contract.mistake
def whole_on_every_device(asked):
    """The sums are complete, but each device computed those of *its* columns, and nothing in the program asks for
    the others. How is the remaining dimension sharded?"""
    everything = BEFORE.sum(0).tolist()
    return _at(
        asked,
        {
            "sharding": P(),
            "device 0": everything,
            "device 4": everything,
        },
    )


@contract.mistake
def neighbours_hold_the_same(asked):
    """Devices 0 and 1 differ along y, and the columns are split along y, so they hold different columns. Replicas
    are on devices that differ along x only. Which device is one step from device 0 along x?"""
    return _at(asked, {"device 4": [144.0, 150.0]})


@contract.mistake
def took_device_4_for_a_neighbour_along_y(asked):
    """Those are the sums of the next two columns. On a 2 × 4 mesh, IDs go up by 1 along y. By how much do they go
    up along x, and along which axis do devices 0 and 4 differ?"""
    return _at(asked, {"device 4": [132.0, 138.0]})


@contract.mistake
def summed_over_the_wrong_axis(asked):
    """Rows are split along x and columns along y, and `sum(0)` sums rows. Along which axis are the partial sums of
    one column?"""
    return _at(asked, {"over": "y", "sharding": P("x")})


@contract.mistake
def gathered_to_sum(asked):
    """Gathering the rows and then summing them would work, but it sends three rows where one row of sums is enough.
    Which collective sums while it sends?"""
    return _at(asked, {"collective": "all_gather"})


@contract.mistake
def counted_entries_sent(asked):
    """That is the number of *elements* sent. How many bytes does a float32 take?"""
    return _at(asked, {"bytes sent": 2})


@contract.mistake
def counted_both_devices(asked):
    """An all-reduce of b bytes over n devices sends 2(n-1)/n · b from each device. How many devices reduce together
    here, and how many sums does each of them have?"""
    return _at(asked, {"bytes sent": 16})


# What a constraint costs. A 16 × 32 array on the lesson's mesh.

CHANGES = {
    'P("x", "y") → P("x", None)': (P("x", "y"), P("x", None)),
    'P("x", None) → P("x", "y")': (P("x", None), P("x", "y")),
    'P("x", None) → P(None, "x")': (P("x", None), P(None, "x")),
    'P() → P("y", "x")': (P(), P("y", "x")),
    'P("x") → P(("x", "y"))': (P("x"), P(("x", "y"))),
    'P(("x", "y")) → P(("y", "x"))': (P(("x", "y")), P(("y", "x"))),
}


@functools.cache
def _costs(change: str) -> str:
    before, after = CHANGES[change]
    wanted = NamedSharding(make_mesh(GRID), after)
    return _moved(communication(lambda v: lax.with_sharding_constraint(v + 1, wanted), _laid((16, 32), before)))


constraint_moves = TableExercise("constraint_moves", points=4, reference=_costs, options=COLLECTIVES)
constraint_moves.rows(CHANGES, GRID, argument="change")


@constraint_moves.mistake
def cutting_costs(change):
    """Every device already holds the part that it keeps, and drops the rest. Splitting an array further is free.
    Which of these changes gives a device something that it didn't hold?"""
    return _at(
        change,
        {
            'P("x", None) → P("x", "y")': "all_to_all",
            'P() → P("y", "x")': "all_to_all",
            'P("x") → P(("x", "y"))': "all_to_all",
        },
    )


@constraint_moves.mistake
def gathered_to_cut_again(change):
    """Gathering everything and splitting it again would work, but every device would receive far more than it
    keeps. Which collective sends each device only the pieces that it needs?"""
    return _at(
        change,
        {
            'P("x", None) → P(None, "x")': "all_gather",
            'P(("x", "y")) → P(("y", "x"))': "all_gather",
        },
    )


@constraint_moves.mistake
def making_whole_is_free(change):
    """A device holds a part, and needs more than that afterward. Who has the rest?"""
    return _at(change, {'P("x", "y") → P("x", None)': "nothing"})


@constraint_moves.mistake
def added_up_copies(change):
    """An all-reduce adds. Nothing here is a partial sum: the parts only have to be put next to each other. Which
    collective does that?"""
    return _at(change, {'P("x", "y") → P("x", None)': "all_reduce"})


@constraint_moves.mistake
def order_does_not_matter(change):
    """Both specs split the rows into eight, but in a different order. Draw both with `draw.blocks`. Which
    device holds rows 2 and 3 in each?"""
    return _at(change, {'P(("x", "y")) → P(("y", "x"))': "nothing"})


# Does it run?


def _runs(attempt: Callable[[], Any]) -> str:
    try:
        jax.block_until_ready(attempt())
    except Exception:  # the type of the error differs between versions of JAX
        return "an error"
    return "runs"


def _constraint(value: Any, sharding: Any) -> Any:
    return jax.jit(lambda v: lax.with_sharding_constraint(v + 1, sharding))(value)


def _over(spec: P, *, order: slice = slice(None), kind: AxisType = AxisType.Auto, shape=(4, 2), names=("x", "y")):
    devices = np.array(jax.devices()[:8])[order].reshape(shape)
    return NamedSharding(Mesh(devices, names, axis_types=(kind,) * len(names)), spec)


def _within(mesh: Mesh) -> Any:
    with jax.set_mesh(mesh):
        return _constraint(np.ones((16, 32), np.float32), P("y", "x"))


ATTEMPTS: dict[str, Callable[[], Any]] = {
    "a constraint with a bare P, no mesh set": lambda: _constraint(_laid((16, 32), P("x", "y")), P("y", "x")),
    "a constraint over the devices in reverse": lambda: _constraint(
        _laid((16, 32), P("x", "y")), _over(P("y", "x"), order=slice(None, None, -1))
    ),
    "a constraint over the devices as a mesh of 8": lambda: _constraint(
        _laid((16, 32), P("x", "y")), _over(P("i"), shape=(8,), names=("i",))
    ),
    "out_shardings that split 10 rows along x": lambda: jax.jit(jnp.sin, out_shardings=_over(P("x")))(np.ones((10, 4))),
    "in_shardings unlike a committed argument's": lambda: jax.jit(jnp.sin, in_shardings=_over(P("y")))(
        _laid((16, 32), P("x"))
    ),
    "in_shardings for a NumPy argument": lambda: jax.jit(jnp.sin, in_shardings=_over(P("y")))(np.ones((16, 32))),
}
error_or_not = TableExercise(
    "error_or_not", points=4, reference=functools.cache(lambda attempt: _runs(ATTEMPTS[attempt]))
)
error_or_not.rows(ATTEMPTS, GRID, argument="attempt")


@error_or_not.mistake
def names_alone_are_enough(attempt):
    """P("y", "x") names two axes, but `jit` doesn't look at the argument to find out which mesh they belong to.
    What tells it?"""
    return _at(attempt, {"a constraint with a bare P, no mesh set": "runs"})


@error_or_not.mistake
def same_devices_in_any_order(attempt):
    """They are the same devices, but a compiled program runs on *one* list of devices, in one order. Which device
    is at position 0 of each mesh?"""
    return _at(attempt, {"a constraint over the devices in reverse": "runs"})


@error_or_not.mistake
def one_mesh_per_program(attempt):
    """The list of devices is the same, and in the same order. Only the axis names differ. What does a program with
    Auto axes require of the meshes that it mixes?"""
    return _at(attempt, {"a constraint over the devices as a mesh of 8": "an error"})


@error_or_not.mistake
def uneven_is_padded(attempt):
    """Ten rows can't be split evenly over four devices, and JAX doesn't pad an array for you. What does
    `out_shardings` do?"""
    return _at(attempt, {"out_shardings that split 10 rows along x": "runs"})


@error_or_not.mistake
def jit_moves_what_is_committed(attempt):
    """The argument is committed: you put it where it is. `in_shardings` contradicts that. Does JAX choose between
    the two?"""
    return _at(attempt, {"in_shardings unlike a committed argument's": "runs"})


@error_or_not.mistake
def numpy_is_committed_too(attempt):
    """A NumPy array isn't on any device yet, so `in_shardings` contradicts nothing. Where does `jit` put the array?"""
    return _at(attempt, {"in_shardings for a NumPy argument": "an error"})


# A mesh whose devices aren't in the order of their IDs.

ORDER = (0, 1, 4, 5, 2, 3, 6, 7)


@functools.cache
def _followed() -> tuple[jax.Array, jax.Array, jax.Array, Report]:
    """x, y, relu(x @ y) and what that took, on a 4 × 2 mesh of the devices in this order."""
    mesh = Mesh(np.array(jax.devices()[:8])[list(ORDER)].reshape(4, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
    x, y = _laid((32, 16), P("a", "b"), mesh), _laid((16, 24), P("b", None), mesh)

    def layer(x, y):
        return jax.nn.relu(x @ y)

    return x, y, jax.jit(layer)(x, y), communication(layer, x, y)


def _holders(array: jax.Array, rows: int, columns: int = 0) -> list[int]:
    """The IDs of the devices that hold this element."""
    number = {device: k for k, device in enumerate(jax.devices())}
    held = ((number[s.device], s.data.shape, [part.start or 0 for part in s.index]) for s in array.addressable_shards)
    return sorted(
        d
        for d, shape, begin in held
        if begin[0] <= rows < begin[0] + shape[0] and begin[1] <= columns < begin[1] + shape[1]
    )


def _partners(device: int) -> list[int]:
    """The other devices with partial sums of the same elements: the same rows of x, other columns."""
    rows = {jax.devices().index(shard.device): shard.index[0] for shard in _followed()[0].addressable_shards}
    return sorted(d for d in rows if d != device and rows[d] == rows[device])


FOLLOWED: dict[str, Callable[[], Any]] = {
    "who holds x[8, 0]": lambda: _holders(_followed()[0], 8),
    "who holds y[8, 0]": lambda: _holders(_followed()[1], 8),
    "sharding of relu(x @ y)": lambda: P(*_spec(_followed()[2])),
    "over": lambda: _followed()[3].collectives[0].axes[0],
    "adds up with device 4": lambda: _partners(4),
    "who holds relu(x @ y)[8, 0]": lambda: _holders(_followed()[2], 8),
}


def _same_followed(one: Any, other: Any, asked: str) -> bool:
    if asked == "sharding of relu(x @ y)":
        return _padded(tuple(one), 2) == _padded(tuple(other), 2)
    return (sorted(one) if isinstance(one, (list, tuple)) else one) == other


FOLLOW_THE_MESH_ASKS = {
    "who holds x": "Into how many parts does a split the rows of x, and b its columns? Which of them has this element, "
    "and which device is in that row and that column of the mesh?",
    "who holds y": "Which axis splits the rows of y, and which part has row 8? All devices with that index along this "
    "axis hold it, whatever their index along the other.",
    "sharding": "The dimension that is summed over is gone. Which operand does each other dimension come from, and how "
    "is it split there?",
    "over": "Along which axis do devices have partial sums of the same elements?",
    "adds up": "Which other devices hold the same rows of x, and other columns?",
    "who holds relu": "Devices along an axis that splits nothing hold replicas. Which axis splits the rows of the "
    "result, and does any split its columns?",
}
follow_the_mesh = TableExercise(
    "follow_the_mesh",
    points=4,
    same=_same_followed,
    reference=lambda asked: FOLLOWED[asked](),
    questions=FOLLOW_THE_MESH_ASKS,
)
follow_the_mesh.rows(FOLLOWED, GRID, argument="asked")


@follow_the_mesh.stands_for
def _what_it_holds(value, asked):
    """What the first device in an answer that shouldn't be there holds of the row's array."""
    name = next((name for name in ("relu(x @ y)", "x", "y") if asked == f"who holds {name}[8, 0]"), "")
    name = "x" if asked.startswith("adds up") else name
    if not name or not isinstance(value, (list, tuple)):
        return ""
    array = dict(zip(("x", "y", "relu(x @ y)"), _followed()[:3], strict=True))[name]
    held = {jax.devices().index(shard.device): shard.index for shard in array.addressable_shards}
    wrong = next((d for d in value if type(d) is int and d in held and d not in FOLLOWED[asked]()), None)
    if wrong is None:
        return ""
    part = region(slice_.indices(n)[:2] for slice_, n in zip(held[wrong], array.shape, strict=True))
    return f"Device {wrong} holds {part} of {name}. {follow_the_mesh.question(asked)}"


@follow_the_mesh.mistake
def counted_devices_by_number(asked):
    """That would be correct if the devices were in the order of their IDs. A spec refers to *positions in the
    mesh*: row 1 of `mesh.devices` holds block 1, whatever its IDs. Which IDs does `print(mesh.devices)` show there?"""
    return _at(asked, {"who holds x[8, 0]": [2], "who holds relu(x @ y)[8, 0]": [2, 3]})


@follow_the_mesh.mistake
def forgot_the_copies(asked):
    """The spec doesn't name one of the two mesh axes, so devices that differ along that axis only hold replicas.
    How many devices hold this element?"""
    return _at(asked, {"who holds y[8, 0]": [1], "who holds relu(x @ y)[8, 0]": [4]})


@follow_the_mesh.mistake
def cut_y_over_the_other_axis(asked):
    """These devices are in one row of `mesh.devices`: they have the same index along a. But the rows of y are split
    along b only. Which index along b
    has this row, and which devices have that index?"""
    return _at(asked, {"who holds y[8, 0]": [2, 3]})


@follow_the_mesh.mistake
def forgot_the_second_cut(asked):
    """x is split along both axes. These two devices hold the same rows. Which of them holds column 0?"""
    return _at(asked, {"who holds x[8, 0]": [4, 5]})


@follow_the_mesh.mistake
def kept_the_summed_axis(asked):
    """b splits the dimension that is summed over. After the sum, that dimension is gone, and its sharding with it.
    Which axis is left?"""
    return _at(asked, {"sharding of relu(x @ y)": P("a", "b")})


@follow_the_mesh.mistake
def summed_along_the_rows(asked):
    """Devices along a hold different *rows* of x: they compute different elements of the result, and not partial
    sums of the same ones. Which axis splits the dimension that is summed over?"""
    return _at(asked, {"over": "a", "adds up with device 4": [0, 2, 6]})


# A benchmark from the time when Colab lent everyone eight TPU cores.

SINGLE = {"sin": 25.2, "matmul": 49.7}  # milliseconds on one core, as published in JAX's documentation
SHARDED = {"sin": 2.4, "matmul": 7.47}  # and on eight


def _first_call_traces() -> str:
    """Count how often Python runs a jitted function in three calls."""
    seen = []
    traced = jax.jit(lambda v: seen.append(v) or v + 1)
    runs = [len(seen) for _ in range(3) if jax.block_until_ready(traced(np.ones(3, np.float32))) is not None]
    return "it is compiled" if runs == [1, 1, 1] else "it is not the slowest"


BENCHMARK: dict[str, Callable[[], Any]] = {
    "speed-up of sin": lambda: SINGLE["sin"] / SHARDED["sin"],
    "efficiency of matmul": lambda: SINGLE["matmul"] / SHARDED["matmul"] / 8,
    "sin gains more than 8, because (25.2 ± 30.9 is noise / sin sends nothing)": lambda: "25.2 ± 30.9 is noise",
    "the first call is slowest, because (it is compiled / the devices warm up)": _first_call_traces,
    "without block_until_ready one times (the dispatch / the whole work)": lambda: "the dispatch",
    "simulated devices gain nothing, because (they share a processor / they communicate)": lambda: (
        "they share a processor"
    ),
}


def _near(one: Any, other: Any, asked: str) -> bool:
    """A number may be off by two percent."""
    if isinstance(other, str) or isinstance(one, str):
        return one == other
    return abs(one - other) <= 0.02 * abs(other)


READ_THE_BENCHMARK_ASKS = {
    "speed-up": "How many times as fast is it: what is the time before divided by the time after?",
    "efficiency": "What fraction of the best possible speedup, 8, was reached?",
}
read_the_benchmark = TableExercise(
    "read_the_benchmark",
    points=3,
    same=_near,
    reference=lambda asked: BENCHMARK[asked](),
    questions=READ_THE_BENCHMARK_ASKS,
)
read_the_benchmark.rows(BENCHMARK, GRID, argument="asked")


@read_the_benchmark.mistake
def divided_upside_down(asked):
    """The fraction is upside down: a speedup is the time before divided by the time after, so it is above 1 if the
    program got faster. What is the speedup here, and what part of 8 is it?"""
    return _at(
        asked,
        {"speed-up of sin": 2.4 / 25.2, "efficiency of matmul": 7.47 / 49.7 * 8},
    )


@read_the_benchmark.mistake
def took_the_time_saved(asked):
    """That is the fraction of the time that was saved. A speedup is the old time divided by the new one. What is
    that?"""
    return _at(asked, {"speed-up of sin": 1 - 2.4 / 25.2, "efficiency of matmul": 1 - 7.47 / 49.7})


@read_the_benchmark.mistake
def took_the_speed_up_for_efficiency(asked):
    """That is the speedup. Eight devices are at best eight times as fast. What fraction of that was reached?"""
    return _at(asked, {"efficiency of matmul": 49.7 / 7.47})


@read_the_benchmark.mistake
def believed_in_more_than_eight(asked):
    """Eight devices do at most eight times as much. The slow time is a mean of 25.2 with a standard deviation of
    30.9. How far would you trust that mean?"""
    return _at(
        asked, {"sin gains more than 8, because (25.2 ± 30.9 is noise / sin sends nothing)": "sin sends nothing"}
    )


@read_the_benchmark.mistake
def blamed_the_devices(asked):
    """Put a `print` into a jitted function, and call it three times. What happens in the first call and in no
    other?"""
    return _at(
        asked, {"the first call is slowest, because (it is compiled / the devices warm up)": "the devices warm up"}
    )


@read_the_benchmark.mistake
def thought_jit_waits(asked):
    """A jitted call returns before its work is done: you get an array that is still being computed. What had
    happened when the clock stopped?"""
    return _at(asked, {"without block_until_ready one times (the dispatch / the whole work)": "the whole work"})


@read_the_benchmark.mistake
def expected_simulation_to_be_fast(asked):
    """Simulated devices are threads on the same cores. They show *which device does what*, and not how fast. How
    much more arithmetic can eight of them do than one?"""
    return _at(
        asked,
        {"simulated devices gain nothing, because (they share a processor / they communicate)": "they communicate"},
    )
