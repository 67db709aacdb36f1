"""§ 2, 10–12: questions and plain functions, judged by doing the experiment."""

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
    """Each block of A was multiplied by the block of B at the same position, as `A * B` does with elements. In a
    matmul, block C[i][k] is a *sum*. Over which index does it run?"""
    return [[a @ b for a, b in zip(row, other, strict=True)] for row, other in zip(A, B, strict=True)]


@block_matmul.mistake
def multiplied_entry_by_entry(A, B):
    """Inside the blocks, `*` multiplied element by element. Which operator multiplies two blocks as matrices?"""
    return [[sum(a * B[j][k] for j, a in enumerate(row)) for k in range(len(B[0]))] for row in A]


@block_matmul.mistake
def swapped_indices_of_b(A, B):
    """The blocks of B were taken as B[k][j]. In a matmul, the summed index comes last in A and first in B. Which block
    of B goes with A[i][j] in C[i][k]?"""
    return [[sum(a @ B[k][j] for j, a in enumerate(row)) for k in range(len(B[0]))] for row in A]


@block_matmul.mistake
def rows_met_rows(A, B):
    """Row i of the blocks of A was multiplied by *row* k of the blocks of B. C[i][k] needs row i of A and column k of
    B. Which index of B runs in the sum?"""
    return [[sum(a @ b for a, b in zip(row, other, strict=False)) for other in B] for row in A]


@block_matmul.mistake
def kept_the_last_term(A, B):
    """Each block was the last term of its sum. Were the other terms overwritten, instead of added?"""
    return [[row[-1] @ B[-1][k] for k in range(len(B[0]))] for row in A]


@block_matmul.mistake
def multiplied_where_they_stand(A, B):
    """Every block was a single product, of the blocks of A and B in the same row and column. C[i][k] needs all of row i
    of A and all of column k of B. Over which index does the sum run?"""
    return [[A[i][k] @ B[i][k] for k in range(len(B[0]))] for i in range(len(A))]


@block_matmul.mistake
def one_matrix(A, B):
    """The values are correct, but they were returned as one matrix. The exercise asks for blocks, as in A and B: a list
    of rows, each a list of blocks. Which of the blocks is C[i][k]?"""
    return np.block(A) @ np.block(B)


@block_matmul.mistake
def two_blocks_always(A, B):
    """There were always two rows of blocks, two columns, and two terms in each sum. That is correct only for 2 × 2
    blocks. How many rows of blocks does A have, how many columns does B have, and how many terms does each sum have?"""
    return [[A[i][0] @ B[0][k] + A[i][1] @ B[1][k] for k in range(2)] for i in range(2)]


# Choosing by cost. Strategies, and the bytes that each device sends with the ring algorithm.

STRATEGIES = {2: ("gather A", "reduce C"), 3: ("reduce C", "gather A and B"), 4: ("gather A", "gather B")}
WANTED = ("C[I, K]", "C[I_X, K]", "C[I, K_X]")


def _strategy_bytes(case, wanted, i, j, k, n, itemsize, reshard=True):
    """What each device sends with every strategy of the case, resharding to the wanted sharding included."""
    a, b, c = i * j * itemsize["A"], j * k * itemsize["B"], i * k * itemsize["C"]
    gather = {"gather A": ring_bytes("all_gather", a / n, n), "gather B": ring_bytes("all_gather", b / n, n)}
    gather["gather A and B"] = gather["gather A"] + gather["gather B"]
    reduce = ring_bytes("all_reduce" if wanted == WANTED[0] else "reduce_scatter", c, n)
    # The sharding that each gather leaves in case 4, from which C may have to be resharded.
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
    """At least fifty instances with a clear cheapest, so that every mistake fails, and every slip in a single place."""
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
    """Answers that count wrongly in one case and for one wanted sharding, and correctly everywhere else."""
    for wanted, leaves_it, other in ((WANTED[2], "gather A", "gather B"), (WANTED[1], "gather B", "gather A")):
        yield functools.partial(_slip, (4, wanted), lambda costs, way, s=leaves_it: costs | {s: costs[s] + way})
        yield functools.partial(_slip, (4, wanted), lambda costs, way, s=other: costs | {s: costs[s] - way})
    for case, wanted in itertools.product((2, 3), WANTED):
        times = 1 / 2 if wanted == WANTED[0] else 2  # an all_reduce for a reduce_scatter, or the reverse
        yield functools.partial(
            _slip, (case, wanted), lambda costs, _, t=times: costs | {"reduce C": t * costs["reduce C"]}
        )


def _slip(where, otherwise, **given):
    """The cheapest, if the costs in this case and for this sharding are `otherwise`."""
    costs = _strategy_bytes(**given)
    if (given["case"], given["wanted"]) == where:
        costs = otherwise(costs, _exchanged(given["i"] * given["k"] * given["itemsize"]["C"], given["n"]))
    return _least(costs)


def _with_moves(given, exchanged):
    """The cheapest, if resharding C from one dimension to the other sends so many bytes."""
    costs, c, n = _strategy_bytes(**given), given["i"] * given["k"] * given["itemsize"]["C"], given["n"]
    other = {WANTED[1]: "gather A", WANTED[2]: "gather B"}.get(given["wanted"]) if given["case"] == 4 else None
    return _least({s: cost + exchanged(c, n) - _exchanged(c, n) if s == other else cost for s, cost in costs.items()})


def _exchanged(c, n):
    return ring_bytes("all_to_all", c / n, n)


def _with(given, **changed):
    return _least(_strategy_bytes(**{**given, **changed}))


@cheapest.mistake
def forgot_the_dtypes(**given):
    """The strategies were compared by elements. Here, elements of A, B, and C have different sizes. Where does
    `itemsize` belong?"""
    return _with(given, itemsize=dict.fromkeys("ABC", 1))


@cheapest.mistake
def forgot_the_outputs_own_way(**given):
    """In case 4, the cost of resharding C was missing. C keeps the sharding of the operand that was not gathered. Which
    collective brings it to the wanted sharding, if that is another one?"""
    return _with(given, reshard=False)


@cheapest.mistake
def counted_local_shards(**given):
    """An all-gather was counted as the bytes of one block. How many of the n blocks does each device send?"""
    costs = _strategy_bytes(**given)
    n = given["n"]
    return _least({s: c / (n - 1) if "gather" in s else c for s, c in costs.items()})


@cheapest.mistake
def all_reduce_counted_once(**given):
    """An all-reduce was counted like a reduce-scatter. It is a reduce-scatter followed by an all-gather. How many bytes
    does it send?"""
    costs = _strategy_bytes(**given)
    whole = given["wanted"] == WANTED[0]
    return _least({s: c / 2 if s == "reduce C" and whole else c for s, c in costs.items()})


@cheapest.mistake
def always_all_reduce(**given):
    """The sum was counted as an all-reduce, although each device keeps only its shard of C. Which collective sums and
    scatters in one step, and what does it send?"""
    costs = _strategy_bytes(**given)
    share = given["wanted"] != WANTED[0]
    return _least({s: 2 * c if s == "reduce C" and share else c for s, c in costs.items()})


@cheapest.mistake
def sent_its_own_piece_too(**given):
    """The all-to-all was counted as everything that a device holds of C. One of its n pieces stays on the device. What
    fraction does it send?"""
    return _with_moves(given, lambda c, n: c / n)


@cheapest.mistake
def sent_a_single_piece(**given):
    """The all-to-all was counted as one of the n pieces of a device's block of C. Only its own piece stays on the
    device. How many does it send?"""
    return _with_moves(given, lambda c, n: c / n**2)


@cheapest.mistake
def exchanged_as_much_as_a_gather(**given):
    """The all-to-all was counted like an all-gather. In an all-to-all, a device sends each other device one piece of
    its block. Which fraction of C is that?"""
    return _with_moves(given, lambda c, n: (n - 1) / n * c)


@cheapest.mistake
def gathered_a_alone_in_case_3(**given):
    """In case 3, only one gather was counted. Both A and B are sharded along J. What do the two gathers send
    together?"""
    costs = _strategy_bytes(**given)
    if given["case"] == 3:
        block = given["i"] * given["j"] * given["itemsize"]["A"] / given["n"]
        costs["gather A and B"] = ring_bytes("all_gather", block, given["n"])
    return _least(costs)


@cheapest.mistake
def sent_n_minus_one_times_c(**given):
    """The sum of C was counted as if each device sent all of it n - 1 times. On a ring, a device sends one block at a
    time, and the sums are computed on the way. What fraction of C is a block?"""
    costs, n = _strategy_bytes(**given), given["n"]
    return _least({s: n * c if s == "reduce C" else c for s, c in costs.items()})


@cheapest.mistake
def counted_what_is_computed(**given):
    """The answer never depended on J or on the bytes per element, as if the FLOPs decided. Which arrays are sent, and
    how many bytes do they have?"""
    return {2: "reduce C", 3: "reduce C", 4: "gather A" if given["i"] > given["k"] else "gather B"}[given["case"]]


@cheapest.mistake
def exchanged_what_the_gathers_leave(**given):
    """In case 4, the results of the two gathers were swapped: resharding was counted when it isn't needed, and not when
    it is. If A is gathered, along which dimension is C still sharded?"""
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
    "": "Take each dimension by itself. Which axes are written below its letter, and into how many blocks do they "
    "split it?",
}
local_shapes = TableExercise("local_shapes", points=2, reference=_local_shape, questions=LOCAL_SHAPES_ASKS)
local_shapes.rows(LOCAL, MESH, argument="notation")


def _divided(notation, how):
    name = parse(notation)
    return tuple(LENGTHS[d] // how(axes) for d, axes in zip(name.dims, name.axes, strict=True))


@local_shapes.mistake
def divided_by_all_devices(notation):
    """A marked dimension was divided by 8, the number of all devices. An axis splits it into as many blocks as there
    are devices *along that axis*. How many are there?"""
    return _divided(notation, lambda axes: 8 if axes else 1)


@local_shapes.mistake
def divided_the_other_dimension(notation):
    """The other dimension was divided. A letter below a dimension means that *this* dimension is sharded. Which
    dimension has the letter here?"""
    i, j = (LENGTHS[d] for d in parse(notation).dims)
    by_i, by_j = (int(np.prod([MESH[a] for a in axes])) for axes in parse(notation).axes)
    return None if by_i > 1 and by_j > 1 else (i // by_j, j // by_i)  # if both are sharded, the axes were swapped


@local_shapes.mistake
def took_the_whole(notation):
    """That is the shape of the full array. How much of a sharded dimension does one device hold?"""
    return tuple(LENGTHS[d] for d in parse(notation).dims)


@local_shapes.mistake
def swapped_the_axes_sizes(notation):
    """Each dimension was divided by the size of the *other* axis. Axis X has 4 devices, and Y has 2. Which of them is
    written below I, and which below J?"""
    return _divided(notation, lambda axes: int(np.prod([{"x": 2, "y": 4}[a] for a in axes])))


@local_shapes.mistake
def counted_only_the_first_axis(notation):
    """The dimension was divided by the size of only one axis. Two letters below a dimension split it over both axes.
    Into how many blocks?"""
    return _divided(notation, lambda axes: MESH[axes[0]] if axes else 1)


# Which case is it? Every device multiplies its own blocks, and the results tell.

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
    "": "Is J complete in both operands? If it is, do I and K want the same axis? If it isn't, is it sharded in one "
    "of them, or in both over the same axis?",
}
name_the_case = TableExercise("name_the_case", points=3, reference=_which_case, questions=NAME_THE_CASE_ASKS)
name_the_case.rows(CASES, MESH, argument="product")


@name_the_case.mistake
def called_it_case_1(product):
    """In case 1, every device multiplies its own blocks, and together they compute all of C. Here, something is
    missing. Is J complete in both operands, and do I and K have different axes?"""
    return 1


@name_the_case.mistake
def called_it_case_2(product):
    """In case 2, the blocks of A and B cover *different* parts of J on some device, so it can't multiply them. Here it
    can. Is the result a partial sum, or a block of C?"""
    return 2


@name_the_case.mistake
def called_it_case_3(product):
    """In case 3, J is sharded the *same* way in both operands, over the same axis, so each device computes a partial
    sum. Do the letters below J in A and in B agree here?"""
    return 3


@name_the_case.mistake
def called_it_case_4(product):
    """In case 4, J is complete in both operands, and the *same* axis is below I and K, so devices compute only the
    diagonal blocks. Is one axis written below both I and K here?"""
    return 4


# Case 1: which sharding does the result have, if nothing is sent?

NO_COMMUNICATION = ("A[I, J] · B[J, K]", "A[I_X, J] · B[J, K]", "A[I, J] · B[J, K_Y]", "A[I_X, J] · B[J, K_Y]")
OUTPUTS = tuple(f"C[{i}, {k}]" for i in ("I", "I_X", "I_Y") for k in ("K", "K_X", "K_Y") if i[1:] != k[1:] or i == "I")


def _comes_out(product):
    """The sharding for which every device's product is the block that it should hold."""
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
    "": "Each dimension of C comes from A or from B. Is it sharded there? Write C with its letters, each with the "
    "axis over which it is sharded.",
}
case1_out = TableExercise("case1_out", points=2, reference=_comes_out, questions=CASE1_OUT_ASKS)
case1_out.rows(NO_COMMUNICATION, MESH, argument="product")


@case1_out.mistake
def thought_it_came_out_whole(product):
    """The answer was all of C. A device with some rows of A can compute only those rows of C, and with some columns of
    B only those columns. Which part of C does each device end up with, if nothing is sent?"""
    return "C[I, K]"


@case1_out.mistake
def lost_the_columns(product):
    """The rows are correct, but the columns aren't. Which columns of C can a device with some columns of B compute?"""
    return _comes_out(product).replace("K_Y", "K")


@case1_out.mistake
def lost_the_rows(product):
    """The columns are correct, but the rows aren't. Which rows of C can a device with some rows of A compute?"""
    return _comes_out(product).replace("I_X", "I")


@case1_out.mistake
def swapped_the_output_axes(product):
    """The two axes were swapped. I keeps its axis from A, and K keeps its axis from B. Which axes are those?"""
    return "C[I_Y, K_X]" if product == "A[I_X, J] · B[J, K_Y]" else None


@case1_out.mistake
def cut_the_other_dimension_of_c(product):
    """The axis is correct, but it is below the other letter. Which dimension of A or B is sharded over it, I or K?"""
    return {"A[I_X, J] · B[J, K]": "C[I, K_X]", "A[I, J] · B[J, K_Y]": "C[I_Y, K]"}.get(product)


@case1_out.mistake
def cut_the_rows_over_both_axes(product):
    """That would be one block for each of the eight devices, with complete rows of C. Which columns of C can a device
    with some columns of B compute?"""
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
    "gather": "How many bytes does the full array have? A device sends all of its n blocks except one.",
    "all_reduce": "How many bytes does C have? An all-reduce is a reduce-scatter and an all-gather of C. What do both "
    "send?",
    "scatter": "How many bytes does C have? A device sends all of its n blocks except one.",
}
bytes_sent = TableExercise("bytes_sent", points=2, reference=_bytes_sent, questions=BYTES_SENT_ASKS)
bytes_sent.rows(SENT, {"x": 4}, argument="collective")


@bytes_sent.stands_for
def _of_the_blocks(value, collective):
    """How many devices' shards a number of bytes is."""
    whole = 4 * math.prod(LENGTHS[d] for d in SENT[collective][1])
    if not isinstance(value, (int, float)) or value not in range(whole // 4, 8 * whole, whole // 4):
        return ""
    count, name = int(value) // (whole // 4), collective.split()[2][0]
    return f"That is {count} quarter{'s' * (count > 1)} of {name}. How many does a device send, one in each step?"


@bytes_sent.mistake
def divided_the_share_again(collective):
    """The number is a quarter of the correct one. Were the bytes of a shard counted instead of the array that goes in,
    or elements instead of bytes?"""
    return None if collective.startswith("all_gather") else _bytes_sent(collective) // 4


@bytes_sent.mistake
def counted_entries(collective):
    """The number is a quarter of the correct one. Were elements counted instead of bytes (a float32 has four), or was a
    block taken for the full array?"""
    return _bytes_sent(collective) // 4


@bytes_sent.mistake
def counted_the_whole_array(collective):
    """Those are the bytes of the full array. A device already has one of the n blocks, so n - 1 are sent, and twice
    that in an all-reduce. What fraction of the array is that?"""
    return 4 * int(np.prod([LENGTHS[d] for d in SENT[collective][1]]))


@bytes_sent.mistake
def counted_one_block(collective):
    """Those are the bytes of one block. On a ring, a device sends one block in every step. How many steps are there?"""
    return int(np.prod([LENGTHS[d] for d in SENT[collective][1]]))


@bytes_sent.mistake
def counted_one_way(collective):
    """That is what a reduce-scatter sends. What else does an all-reduce do, and how much does that send?"""
    return _bytes_sent("reduce_scatter of C[I, K]") if collective.startswith("all_reduce") else None


@bytes_sent.mistake
def sent_all_of_it_to_each(collective):
    """That is n - 1 times all of C, as if each device sent its full matrix to every other device. On a ring, it sends
    blocks to its neighbor, and the sums are computed on the way. How large is a block?"""
    whole = 4 * int(np.prod([LENGTHS[d] for d in SENT[collective][1]]))
    return None if collective.startswith("all_gather") else 3 * whole


@bytes_sent.mistake
def counted_both_ways(collective):
    """That is what an all-reduce sends. After a reduce-scatter, every device has only its shard of the sum. Which half
    of the all-reduce is missing then?"""
    return _bytes_sent("all_reduce of C[I, K]") if collective.startswith("reduce_scatter") else None


# Published mistakes: sentences from well-known tutorials. What is true instead?


def _gathered():
    """The operand of A[I, J_X] · B[J, K] that lacks part of J."""
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
    "gathered": "Take the operands one by one. Does a device have all of J, or only part of it?",
    "replicated": "Make the array. How many devices are in `x.sharding.device_set`?",
    "axis_name": "What happens if you make the call without a `try` around it?",
    "who_holds": "Make the array and print `x.sharding.devices_indices_map(x.shape)`. Which devices have columns 2:4?",
    "computable": "Draw C as four blocks. For which of them does device 0 have the rows of A and the columns of B?",
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
    """The answer was B, but every device already has all of B. Which operand has only part of J?"""
    return _published(claim, "gathered")


@find_the_mistake.mistake
def took_fresh_for_replicated(claim):
    """`jnp.ones` makes an array on one device. It is *uncommitted*, so JAX may copy it to other devices when they need
    it. What does `len(x.sharding.device_set)` say?"""
    return _published(claim, "replicated")


@find_the_mistake.mistake
def took_x_for_x(claim):
    """The answer was a gather, but 'X' is not 'x', because axis names are plain text. What happens if you run it
    without a `try` that hides the error?"""
    return _published(claim, "axis_name")


@find_the_mistake.mistake
def counted_devices_along_y(claim):
    """On a 2 × 2 mesh, devices 0 and 1 differ only along y, and A[I, J_X] isn't sharded over y, so they hold the same
    columns. What does `x.sharding.devices_indices_map(x.shape)` say?"""
    return _published(claim, "who_holds")


@find_the_mistake.mistake
def saw_no_product(claim):
    """Device 0 has complete rows of A and complete columns of B. For which block of C is that enough?"""
    return _published(claim, "computable")


@find_the_mistake.mistake
def saw_every_product(claim):
    """For a block of C, a device needs its rows of A *and* its columns of B. Which columns of B does device 0 hold?"""
    return "C[0:2, 0:4]" if claim == "computable" else None


@find_the_mistake.mistake
def gathered_both_operands(claim):
    """The answer was both, but every device already has all of B. Which operand has only part of J?"""
    return "A and B" if claim == "gathered" else None
