"""§ 1–5, 7, 9, 12: questions and plain functions, judged by doing the experiment."""

from __future__ import annotations

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import blocks
from grader.arrays.meshes import aval, make_mesh
from grader.arrays.notation import factors, parse
from grader.arrays.numbers import same_value
from grader.exercises import Case, FunctionExercise, TableExercise
from grader.exercises.plain import plain
from grader.programs.collectives import ring_bytes
from grader.programs.program import trace
from grader.programs.walk import structure

MESH = {"x": 4, "y": 2}  # the mesh of the lesson's questions, axes X and Y in the notation

# Block matrices, without any device: lists of lists of NumPy blocks.


def _block_reference(A, B):
    return [[sum(a @ B[j][k] for j, a in enumerate(row)) for k in range(len(B[0]))] for row in A]


block_matmul = FunctionExercise("block_matmul", points=2, reference=_block_reference)


@block_matmul.cases
def _(draw):
    for rows, inner, columns, sizes in ((2, 2, 2, (2, 2, 2)), (2, 3, 4, (3, 2, 4)), (3, 1, 2, (1, 4, 2))):
        i, j, k = sizes
        yield Case(
            {
                "A": [[draw.values(i, j) for _ in range(inner)] for _ in range(rows)],
                "B": [[draw.values(j, k) for _ in range(columns)] for _ in range(inner)],
            }
        )


@block_matmul.mistake
def multiplied_block_by_block(A, B):
    """Each block of A was multiplied by the block of B in the same place, as entries are in `A * B`. In a
    matrix product block C[i][k] is a *sum*: over which index does it run?"""
    return [[a @ b for a, b in zip(row, other, strict=True)] for row, other in zip(A, B, strict=True)]


@block_matmul.mistake
def multiplied_entry_by_entry(A, B):
    """Inside the blocks `*` multiplies entry by entry. The product of two blocks is itself a matrix product."""
    return [[sum(a * B[j][k] for j, a in enumerate(row)) for k in range(len(B[0]))] for row in A]


@block_matmul.mistake
def swapped_indices_of_b(A, B):
    """The blocks of B were taken as B[k][j]. C[i][k] adds up A[i][j] @ B[j][k]: the index summed over stands
    last in A and first in B, exactly as for entries."""
    return [[sum(a @ B[k][j] for j, a in enumerate(row)) for k in range(len(B[0]))] for row in A]


@block_matmul.mistake
def rows_met_rows(A, B):
    """Row i of the blocks of A met *row* k of those of B, block by block. C[i][k] takes row i of A and column k of B:
    which index of B runs in the sum?"""
    return [[sum(a @ b for a, b in zip(row, other, strict=False)) for other in B] for row in A]


@block_matmul.mistake
def kept_the_last_term(A, B):
    """Each block is the last term of its sum. Were the others overwritten? Add them up."""
    return [[row[-1] @ B[-1][k] for k in range(len(B[0]))] for row in A]


@block_matmul.mistake
def multiplied_where_they_stand(A, B):
    """Every block is a single product, of the blocks of A and B in its own row and column numbers. C[i][k] takes the
    whole row i of A, and the whole column k of B: over which index does one add up?"""
    return [[A[i][k] @ B[i][k] for k in range(len(B[0]))] for i in range(len(A))]


@block_matmul.mistake
def one_matrix(A, B):
    """The numbers are right, in one matrix. What is asked for is cut into blocks as A and B are: a list of rows, each a
    list of blocks. No device has all of A to put together."""
    return np.block(A) @ np.block(B)


@block_matmul.mistake
def two_blocks_always(A, B):
    """Two rows of blocks, two columns, and two products in each sum: that is right of 2 × 2 blocks. How many rows of
    blocks has A, how many columns has B, and how many blocks do they share?"""
    return [[A[i][0] @ B[0][k] + A[i][1] @ B[1][k] for k in range(2)] for i in range(2)]


# Choosing by cost. Strategies and what they send per device, in bytes, by the ring algorithm.

STRATEGIES = {2: ("gather A", "reduce C"), 3: ("reduce C", "gather A and B"), 4: ("gather A", "gather B")}
WANTED = ("C[I, K]", "C[I_X, K]", "C[I, K_X]")


def _strategy_bytes(case, wanted, i, j, k, n, itemsize, reshard=True):
    """What every strategy of the case sends per device, the way to the wanted layout included."""
    a, b, c = i * j * itemsize["A"], j * k * itemsize["B"], i * k * itemsize["C"]
    gather = {"gather A": ring_bytes("all_gather", a / n, n), "gather B": ring_bytes("all_gather", b / n, n)}
    gather["gather A and B"] = gather["gather A"] + gather["gather B"]
    reduce = ring_bytes("all_reduce" if wanted == WANTED[0] else "reduce_scatter", c, n)
    # Where the product is in case 4, and what it costs to bring it to where it is wanted.
    left = {"gather A": "C[I, K_X]", "gather B": "C[I_X, K]"} if case == 4 and reshard else {}
    return {
        s: reduce if s == "reduce C" else gather[s] + _moving(left.get(s, wanted), wanted, c, n)
        for s in STRATEGIES[case]
    }


def _moving(left: str, wanted: str, c: int, n: int) -> float:
    if left == wanted:
        return 0.0
    return ring_bytes("all_gather" if wanted == WANTED[0] else "all_to_all", c / n, n)


def _least(costs):
    return min(costs, key=lambda strategy: costs[strategy])


cheapest = FunctionExercise("cheapest", points=4, reference=lambda **given: _least(_strategy_bytes(**given)))


@cheapest.cases
def _(draw):
    """Fifty instances at least, with a clear cheapest, that no mistake gets through, and no slip in a single place."""
    drawn, slipping = [], [*(m.wrong for m in cheapest.mistakes), *_slips()]
    while len(drawn) < 50 or slipping:
        given = _instance(draw)
        low, high = sorted(_strategy_bytes(**given).values())[:2]
        still = [wrong for wrong in slipping if wrong(**given) == cheapest.reference(**given)]
        if high > 1.1 * low and (len(drawn) < 50 or len(still) < len(slipping)):
            drawn.append(given)
            slipping = still
    return [Case(given) for given in drawn]


def _instance(draw):
    i, j, k = (int(2 ** draw.rng.integers(4, 11)) * int(draw.rng.integers(1, 4)) for _ in range(3))
    return {
        "case": int(draw.rng.integers(2, 5)),
        "wanted": str(draw.rng.choice(WANTED)),
        "i": i,
        "j": j,
        "k": k,
        "n": int(draw.rng.choice([2, 4, 8])),
        "itemsize": {x: int(draw.rng.choice([1, 2, 4])) for x in "ABC"},
    }


def _slips():
    """What is counted otherwise in one case and for one wanted layout, and rightly everywhere else."""
    for wanted, leaves_it, other in ((WANTED[2], "gather A", "gather B"), (WANTED[1], "gather B", "gather A")):
        yield functools.partial(_slip, (4, wanted), lambda costs, way, s=leaves_it: costs | {s: costs[s] + way})
        yield functools.partial(_slip, (4, wanted), lambda costs, way, s=other: costs | {s: costs[s] - way})
    for case, wanted in itertools.product((2, 3), WANTED):
        times = 1 / 2 if wanted == WANTED[0] else 2  # an all_reduce for a reduce_scatter, or the reverse
        yield functools.partial(
            _slip, (case, wanted), lambda costs, _, t=times: costs | {"reduce C": t * costs["reduce C"]}
        )


def _slip(where, otherwise, **given):
    """The cheapest, if in this case and for this layout the costs are `otherwise`."""
    costs = _strategy_bytes(**given)
    if (given["case"], given["wanted"]) == where:
        costs = otherwise(costs, _exchanged(given["i"] * given["k"] * given["itemsize"]["C"], given["n"]))
    return _least(costs)


def _with_moves(given, exchanged):
    """The cheapest, where from one cut of C to the other so many bytes are counted."""
    costs, c, n = _strategy_bytes(**given), given["i"] * given["k"] * given["itemsize"]["C"], given["n"]
    other = {WANTED[1]: "gather A", WANTED[2]: "gather B"}.get(given["wanted"]) if given["case"] == 4 else None
    return _least({s: cost + exchanged(c, n) - _exchanged(c, n) if s == other else cost for s, cost in costs.items()})


def _exchanged(c, n):
    return ring_bytes("all_to_all", c / n, n)


def _with(given, **changed):
    return _least(_strategy_bytes(**{**given, **changed}))


@cheapest.mistake
def forgot_the_dtypes(**given):
    """The strategies were compared by entries. Entries of A, B and C take different numbers of bytes here:
    `itemsize` says how many."""
    return _with(given, itemsize=dict.fromkeys("ABC", 1))


@cheapest.mistake
def forgot_the_outputs_own_way(**given):
    """In case 4 the product comes out cut along the dimension of the operand that was not gathered. If it is
    wanted otherwise, bringing it there sends bytes too: an all-gather, or an all-to-all."""
    return _with(given, reshard=False)


@cheapest.mistake
def counted_local_shards(**given):
    """An all-gather was counted as the bytes of one block. Each device passes on every block but one: n - 1 of
    them."""
    costs = _strategy_bytes(**given)
    n = given["n"]
    return _least({s: c / (n - 1) if "gather" in s else c for s, c in costs.items()})


@cheapest.mistake
def all_reduce_counted_once(**given):
    """An all-reduce was counted like a reduce-scatter. It is a reduce-scatter followed by an all-gather: twice
    the bytes."""
    costs = _strategy_bytes(**given)
    whole = given["wanted"] == WANTED[0]
    return _least({s: c / 2 if s == "reduce C" and whole else c for s, c in costs.items()})


@cheapest.mistake
def always_all_reduce(**given):
    """The partial sums were counted as an all-reduce though each device keeps only a share of C. Which
    collective adds up and deals out in one go, and what does it send?"""
    costs = _strategy_bytes(**given)
    share = given["wanted"] != WANTED[0]
    return _least({s: 2 * c if s == "reduce C" and share else c for s, c in costs.items()})


@cheapest.mistake
def sent_its_own_piece_too(**given):
    """The all-to-all was counted as all that a device holds of C. One of the n pieces of that is its own, and stays:
    how much of it travels?"""
    return _with_moves(given, lambda c, n: c / n)


@cheapest.mistake
def sent_a_single_piece(**given):
    """The all-to-all was counted as one of the n pieces into which a device cuts what it holds of C. Only its own
    stays: how many travel?"""
    return _with_moves(given, lambda c, n: c / n**2)


@cheapest.mistake
def exchanged_as_much_as_a_gather(**given):
    """From one cut to the other was counted like an all-gather. In an all-to-all a device sends no more than what it
    holds, a piece to each: how much is that of C?"""
    return _with_moves(given, lambda c, n: (n - 1) / n * c)


@cheapest.mistake
def gathered_a_alone_in_case_3(**given):
    """In case 3 one gather was counted where there are two: A and B are both cut. What do the two of them send
    together?"""
    costs = _strategy_bytes(**given)
    if given["case"] == 3:
        block = given["i"] * given["j"] * given["itemsize"]["A"] / given["n"]
        costs["gather A and B"] = ring_bytes("all_gather", block, given["n"])
    return _least(costs)


@cheapest.mistake
def sent_n_minus_one_times_c(**given):
    """To add C up was counted as n - 1 times all of it, and twice that for an all-reduce. On a ring parts of C travel,
    and are added on the way: which part of C does a device send in a reduce-scatter?"""
    costs, n = _strategy_bytes(**given), given["n"]
    return _least({s: n * c if s == "reduce C" else c for s, c in costs.items()})


@cheapest.mistake
def counted_what_is_computed(**given):
    """The work was compared, or nothing at all, and not what travels: the answer never depends on the bytes per entry,
    or on J. Which arrays are sent, and how large are they?"""
    return {2: "reduce C", 3: "reduce C", 4: "gather A" if given["i"] > given["k"] else "gather B"}[given["case"]]


@cheapest.mistake
def exchanged_what_the_gathers_leave(**given):
    """In case 4 the two gathers were taken for each other in what they leave: the way to the wanted layout is counted
    where none is needed, and not where one is. Which operand is still cut after A was gathered, and along which
    dimension of C?"""
    other = {WANTED[1]: WANTED[2], WANTED[2]: WANTED[1]} if given["case"] == 4 else {}
    return _with(given, wanted=other.get(given["wanted"], given["wanted"]))


# What a device holds.

LOCAL = ("A[I_X, J]", "A[I, J_X]", "A[I_X, J_Y]", "A[I_Y, J_X]", "A[I, J_XY]", "A[I, J]")
LENGTHS = {"I": 16, "J": 32, "K": 24}


def _local_shape(notation):
    name = parse(notation)
    index = blocks([LENGTHS[d] for d in name.dims], name.spec, MESH).indices[0]
    return tuple(part.stop - part.start for part in index)


LOCAL_SHAPES_ASKS = {
    "": "Take each dimension by itself: which axes stand under its letter, and into how many parts do they cut it?",
}
local_shapes = TableExercise("local_shapes", points=2, reference=_local_shape, questions=LOCAL_SHAPES_ASKS)
local_shapes.rows(LOCAL, MESH, argument="notation")


def _divided(notation, how):
    name = parse(notation)
    return tuple(LENGTHS[d] // how(axes) for d, axes in zip(name.dims, name.axes, strict=True))


@local_shapes.mistake
def divided_by_all_devices(notation):
    """A marked dimension is an eighth of its length here. An axis cuts it only into as many parts as there are devices
    *along it*."""
    return _divided(notation, lambda axes: 8 if axes else 1)


@local_shapes.mistake
def divided_the_other_dimension(notation):
    """The other dimension was divided. The letter below a dimension says that *this* dimension is cut."""
    i, j = (LENGTHS[d] for d in parse(notation).dims)
    by_i, by_j = (int(np.prod([MESH[a] for a in axes])) for axes in parse(notation).axes)
    return None if by_i > 1 and by_j > 1 else (i // by_j, j // by_i)  # where both are cut, the axes changed places


@local_shapes.mistake
def took_the_whole(notation):
    """That is the shape of the whole array. How much of a cut dimension is on one device?"""
    return tuple(LENGTHS[d] for d in parse(notation).dims)


@local_shapes.mistake
def swapped_the_axes_sizes(notation):
    """A dimension is cut into as many parts as the *other* axis has devices. Which axis is written under I, which under
    J, and how many devices has each: X 4, Y 2?"""
    return _divided(notation, lambda axes: int(np.prod([{"x": 2, "y": 4}[a] for a in axes])))


@local_shapes.mistake
def counted_only_the_first_axis(notation):
    """Two letters below one dimension cut it along both axes: into as many parts as the product of their
    sizes."""
    return _divided(notation, lambda axes: MESH[axes[0]] if axes else 1)


# Which case is it? Found out by letting every device multiply what it holds.

CASES = (
    "A[I, J] · B[J_Y, K]",
    "A[I_Y, J_X] · B[J_X, K]",
    "A[I_Y, J] · B[J, K_Y]",
    "A[I, J_X] · B[J_Y, K]",
    "A[I_X, J] · B[J, K]",
    "A[I, J_XY] · B[J_XY, K]",
)


def _held(product):
    """Per device, what it holds of A and of B."""
    rng = np.random.default_rng(0)
    for name in factors(product):
        shape = [LENGTHS[d] for d in name.dims]
        yield blocks(shape, name.spec, MESH, value=rng.integers(1, 9, shape))


def _which_case(product):
    a, b = _held(product)
    if any(x[1] != y[0] for x, y in zip(a.indices, b.indices, strict=True)):
        return 2  # the blocks cover different parts of the contracted dimension
    if any(x[1] != slice(0, a.shape[1]) for x in a.indices):
        return 3  # they match, but each product is only a part of the sum
    covered = np.zeros((a.shape[0], b.shape[1]), bool)
    for x, y in zip(a.indices, b.indices, strict=True):
        covered[x[0], y[1]] = True
    return 1 if covered.all() else 4


NAME_THE_CASE_ASKS = {
    "": "Is J whole in both operands? If it is, do I and K want the same axis? If it is not, is it cut "
    "in one of them, or in both over the same axis?",
}
name_the_case = TableExercise("name_the_case", points=3, reference=_which_case, questions=NAME_THE_CASE_ASKS)
name_the_case.rows(CASES, MESH, argument="product")


@name_the_case.mistake
def called_it_case_1(product):
    """In case 1 every device multiplies what it holds, and the products are all of C. Here something is
    missing: look at the dimension J first, then at the axes of I and K."""
    return 1


@name_the_case.mistake
def called_it_case_2(product):
    """In case 2 the blocks of A and B cover *different* parts of J on some device, so they cannot be multiplied
    as they are. Here they can. Is what comes out a part of a sum, or a block of C?"""
    return 2


@name_the_case.mistake
def called_it_case_3(product):
    """In case 3 J is cut the *same* way in both operands, over the same axis, so that each device has one part
    of the sum. Compare the letters below J in A and in B."""
    return 3


@name_the_case.mistake
def called_it_case_4(product):
    """In case 4 J is whole and the *same* axis cuts I and K, so that only the diagonal blocks come out. Does one
    axis stand below both I and K here?"""
    return 4


# Case 1: which layout comes out by itself?

NO_COMMUNICATION = ("A[I, J] · B[J, K]", "A[I_X, J] · B[J, K]", "A[I, J] · B[J, K_Y]", "A[I_X, J] · B[J, K_Y]")
OUTPUTS = tuple(f"C[{i}, {k}]" for i in ("I", "I_X", "I_Y") for k in ("K", "K_X", "K_Y") if i[1:] != k[1:] or i == "I")


def _comes_out(product):
    """The layout in which every device's product is the block it should hold."""
    a, b = _held(product)
    whole = [np.zeros((16, 32)), np.zeros((32, 24))]
    for array, held in zip(whole, (a, b), strict=True):
        for index, value in zip(held.indices, held.values, strict=True):
            array[index] = value
    products = [x @ y for x, y in zip(a.values, b.values, strict=True)]
    fits = [
        out
        for out in OUTPUTS
        if _all_equal(products, blocks((16, 24), parse(out).spec, MESH, value=whole[0] @ whole[1]).values)
    ]
    return fits[0]


def _all_equal(some, others):
    return all(x.shape == y.shape and (x == y).all() for x, y in zip(some, others, strict=True))


CASE1_OUT_ASKS = {
    "": "Each dimension of C comes from A or from B, and is cut there or not. Write C with its letters, "
    "and under each the axis that cuts it.",
}
case1_out = TableExercise("case1_out", points=2, reference=_comes_out, questions=CASE1_OUT_ASKS)
case1_out.rows(NO_COMMUNICATION, MESH, argument="product")


@case1_out.mistake
def thought_it_came_out_whole(product):
    """With some rows of A a device can compute only those rows of C, with some columns of B only those columns. Which
    part of C does each device end up with, if nothing is sent?"""
    return "C[I, K]"


@case1_out.mistake
def lost_the_columns(product):
    """The rows are right. But a device with some columns of B gets only those columns of C."""
    return _comes_out(product).replace("K_Y", "K")


@case1_out.mistake
def lost_the_rows(product):
    """The columns are right. But a device with some rows of A gets only those rows of C."""
    return _comes_out(product).replace("I_X", "I")


@case1_out.mistake
def swapped_the_output_axes(product):
    """The axes were swapped: I keeps the axis it has in A, K the one it has in B."""
    return "C[I_Y, K_X]" if product == "A[I_X, J] · B[J, K_Y]" else None


@case1_out.mistake
def cut_the_other_dimension_of_c(product):
    """The right axis, below the other letter. Which dimension of A, or of B, does this axis cut: is that I, or K?"""
    return {"A[I_X, J] · B[J, K]": "C[I, K_X]", "A[I, J] · B[J, K_Y]": "C[I_Y, K]"}.get(product)


@case1_out.mistake
def cut_the_rows_over_both_axes(product):
    """That is a block for each of the eight devices, and a block has whole rows of C. Which columns of C can a device
    compute that holds some columns of B?"""
    return "C[I_XY, K]" if product == "A[I_X, J] · B[J, K_Y]" else None


# Bytes, counted. float32 arrays on a mesh of 4 devices along X: I, J, K = 16, 32, 24.

SENT = {
    "all_gather of A[I, J_X]": (lambda x: lax.all_gather(x, "x", axis=1, tiled=True), ("I", "J"), P(None, "x")),
    "all_reduce of C[I, K]": (lambda x: lax.psum(x, "x"), ("I", "K"), P()),
    "reduce_scatter of C[I, K]": (lambda x: lax.psum_scatter(x, "x", tiled=True), ("I", "K"), P()),
    "all_gather of B[J, K_X]": (lambda x: lax.all_gather(x, "x", axis=1, tiled=True), ("J", "K"), P(None, "x")),
}


def _bytes_sent(collective):
    """Trace the collective on blocks of these sizes and count what its program sends per device."""
    body, dims, spec = SENT[collective]
    mesh = make_mesh({"x": 4})
    program = jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=P(), check_vma=False)
    return structure(trace(program, aval(tuple(LENGTHS[d] for d in dims), jnp.float32, spec, mesh))).bytes_sent


BYTES_SENT_ASKS = {
    "gather": "How many bytes has the whole array that is gathered? Of its n parts a device sends on all but one.",
    "all_reduce": "How many bytes has C? An all_reduce is a reduce_scatter and an all_gather of C: what does each "
    "of them send?",
    "scatter": "How many bytes has C? Of its n parts a device sends all but one.",
}
bytes_sent = TableExercise("bytes_sent", points=2, reference=_bytes_sent, questions=BYTES_SENT_ASKS)
bytes_sent.rows(SENT, {"x": 4}, argument="collective")


@bytes_sent.stands_for
def _of_the_blocks(value, collective):
    """How many parts, each a device's, a number of bytes is."""
    whole = 4 * math.prod(LENGTHS[d] for d in SENT[collective][1])
    if not isinstance(value, (int, float)) or value not in range(whole // 4, 8 * whole, whole // 4):
        return ""
    count, name = int(value) // (whole // 4), collective.split()[2][0]
    return (
        f"That is as much as {count} quarter{'s' * (count > 1)} of {name}. How many does a device send, one in a step?"
    )


@bytes_sent.mistake
def divided_the_share_again(collective):
    """V is the array that goes in, whole on every device, and not the share with which a reduce_scatter ends. Or did
    you count entries where bytes are asked for? With four devices and four bytes each, both give this."""
    return None if collective.startswith("all_gather") else _bytes_sent(collective) // 4


@bytes_sent.mistake
def counted_entries(collective):
    """That is a quarter of what is due. Were entries counted (a float32 takes four bytes), or was a block taken for the
    whole array, V, once more divided by the four devices?"""
    return _bytes_sent(collective) // 4


@bytes_sent.mistake
def counted_the_whole_array(collective):
    """Those are the bytes of the whole array. What a device already holds need not be sent to it: of n blocks,
    n - 1 go round, and once more in the second half of an all_reduce."""
    return 4 * int(np.prod([LENGTHS[d] for d in SENT[collective][1]]))


@bytes_sent.mistake
def counted_one_block(collective):
    """Those are the bytes of one block. On a ring a device sends one in every step: how many steps are there?"""
    return int(np.prod([LENGTHS[d] for d in SENT[collective][1]]))


@bytes_sent.mistake
def counted_one_way(collective):
    """That is what a reduce_scatter sends. An all_reduce is a reduce_scatter, and then an all_gather."""
    return _bytes_sent("reduce_scatter of C[I, K]") if collective.startswith("all_reduce") else None


@bytes_sent.mistake
def sent_all_of_it_to_each(collective):
    """That is n - 1 times all of C: as if each device sent its whole matrix to every other one. On a ring it sends
    parts, each to its neighbour, and they are added up on the way. How large is a part?"""
    whole = 4 * int(np.prod([LENGTHS[d] for d in SENT[collective][1]]))
    return None if collective.startswith("all_gather") else 3 * whole


@bytes_sent.mistake
def counted_both_ways(collective):
    """That is what an all_reduce sends. A reduce_scatter stops half-way: every device keeps only its share."""
    return _bytes_sent("all_reduce of C[I, K]") if collective.startswith("reduce_scatter") else None


# Published mistakes: sentences that stand, or stood, in well-known tutorials. What is true instead?


def _gathered():
    """Of A[I, J_X] · B[J, K]: the operand that lacks a part of J."""
    a, b = _held("A[I, J_X] · B[J, K]")
    lacking = [name for name, held, dim in (("A", a, 1), ("B", b, 0)) if held.indices[0][dim].stop < 32]
    return " and ".join(lacking)


def _devices_of_a_fresh_array():
    return len(jnp.ones((4, 4)).sharding.device_set)


def _wrong_axis_name():
    mesh = make_mesh({"x": 2, "y": 2})
    body = jax.shard_map(
        lambda a: lax.all_gather(a, "X", axis=1, tiled=True),
        mesh=mesh,
        in_specs=P(None, "x"),
        out_specs=P(),
        check_vma=False,
    )
    try:
        trace(body, aval((4, 4), jnp.float32, P(None, "x"), mesh))
    except Exception:  # which one differs between versions of JAX
        return "an error"
    return "a gather"


def _holders():
    held = blocks((4, 4), P(None, "x"), {"x": 2, "y": 2})
    return [device for device, index in enumerate(held.indices) if index[1] == slice(2, 4)]


def _computable():
    """Which blocks of C device 0 can compute from what it holds, in case 4 on two devices."""
    a, b = (blocks((4, 4), spec, {"x": 2}) for spec in (P("x", None), P(None, "x")))
    rows, columns = a.indices[0][0], b.indices[0][1]
    return f"C[{rows.start}:{rows.stop}, {columns.start}:{columns.stop}]"


CLAIMS = {
    "gathered": _gathered,
    "replicated": _devices_of_a_fresh_array,
    "axis_name": _wrong_axis_name,
    "who_holds": _holders,
    "computable": _computable,
}

FIND_THE_MISTAKE_ASKS = {
    "gathered": "Take the operands one by one: has a device all of J of this one, or a part?",
    "replicated": "Make the array, and count `x.sharding.device_set`.",
    "axis_name": "Make the call without a `try` around it: what comes of it?",
    "who_holds": "Make the array, and print `x.sharding.devices_indices_map(x.shape)`: whose columns are 2:4?",
    "computable": "Draw C as four blocks. For which of them has device 0 the rows of A, and the columns of B?",
}


def _same_claim(one, other, claim):
    """Devices may be listed in any order."""
    if claim == "who_holds" and isinstance(one, (list, tuple)):
        return sorted(one) == sorted(other)
    return same_value(one, plain(other))


find_the_mistake = TableExercise(
    "find_the_mistake",
    points=3,
    reference=lambda claim: CLAIMS[claim](),
    questions=FIND_THE_MISTAKE_ASKS,
    same=_same_claim,
)
find_the_mistake.rows(CLAIMS, argument="claim")


def _published(claim, wrong):
    return (
        {"gathered": "B", "replicated": 8, "axis_name": "a gather", "who_holds": [1], "computable": "nothing"}[claim]
        if claim == wrong
        else None
    )


@find_the_mistake.mistake
def gathered_what_was_whole(claim):
    """B is whole on every device already. Which operand has only a part of J?"""
    return _published(claim, "gathered")


@find_the_mistake.mistake
def took_fresh_for_replicated(claim):
    """`jnp.ones` puts an array on one device. It is *uncommitted*, so JAX may copy it to the others when it is
    needed there: count `x.sharding.device_set`."""
    return _published(claim, "replicated")


@find_the_mistake.mistake
def took_x_for_x(claim):
    """Axis names are plain text: 'X' is not 'x'. Run it, without a `try` around it that hides what happens."""
    return _published(claim, "axis_name")


@find_the_mistake.mistake
def counted_devices_along_y(claim):
    """On a 2 × 2 mesh devices 0 and 1 differ only along y, and A[I, J_X] is not cut over y: they hold the same
    columns. Print `x.sharding.devices_indices_map(x.shape)`."""
    return _published(claim, "who_holds")


@find_the_mistake.mistake
def saw_no_product(claim):
    """Device 0 holds whole rows of A and whole columns of B: that is enough for the block of C where they cross.
    It is the *other* blocks that it cannot compute."""
    return _published(claim, "computable")


@find_the_mistake.mistake
def saw_every_product(claim):
    """For a block of C a device needs its rows of A *and* its columns of B. Which columns of B does device 0
    hold?"""
    return "C[0:2, 0:4]" if claim == "computable" else None


@find_the_mistake.mistake
def gathered_both_operands(claim):
    """B is whole on every device already: gathering it again brings nothing."""
    return "A and B" if claim == "gathered" else None
