"""§ 2–4, 6, 8, 10, 12–13, the programs: functions of one device's block."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, ByCompiler, BytesSent, Case, Draw, Flops, ManualAlong, Move, Moves, ProgramExercise
from grader.jax_versions import varying
from grader.lessons.shared import bytes_sent, device_map, to_send

# One number from each device. Blocks are of four, so that the reference needs no mesh.

BLOCK = 4
ONE_AXIS = ((8,), (4,), (2,))

partial_sums = ProgramExercise(
    "partial_sums", points=3, mesh_shapes=ONE_AXIS, reference=lambda a: a.reshape(-1, BLOCK).sum(axis=1)
)


@partial_sums.cases
def _(draw):
    mesh = draw.mesh("x")
    return Case({"a": draw.array(BLOCK * mesh["x"], spec=P("x"))}, mesh, P("x"), limits=[BytesSent(0)])


@partial_sums.mistake
def scalar_laid_along_x(a, *, mesh, check_vma=False):
    """Each device's sum is a scalar, which has no dimension along which out_specs could concatenate the sums. How does
    `jnp.sum` keep a dimension of length 1?"""
    return device_map(jnp.sum, mesh, P("x"), P("x"), check_vma)(a)


@partial_sums.mistake
def summed_over_all(a, *, mesh):
    """Each element is the sum of everything. The exercise asks for each device's own sum, and that needs no
    communication. Is there a psum that adds up what should stay separate?"""

    def body(block):
        return lax.psum(jnp.sum(block, keepdims=True), "x")

    return device_map(body, mesh, P("x"), P("x"))(a)


@partial_sums.mistake
def claimed_one_for_all(a, *, mesh):
    """The result has only the sum of device 0's block. out_specs=P() say that every device returns the same, but the
    sums differ along x. Which out_specs concatenate them?"""
    return device_map(lambda block: jnp.sum(block, keepdims=True), mesh, P("x"), P())(a)


@partial_sums.mistake
def reshaped_outside(a, *, mesh):
    """This is a program for the full array, and the compiler divided the work. The exercise asks for the function of
    *one block*. What does one device do with its four numbers?"""
    return a.reshape(mesh.shape["x"], -1).sum(axis=1)


# One number for all.

global_mean = ProgramExercise("global_mean", points=4, reference=lambda a: a.mean())


@global_mean.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    (n,) = draw.lengths(1, divisible_by=8)
    return Case(
        {"a": draw.array(n, spec=P("x"))}, mesh, P(), limits=[BytesSent(bytes_sent("all_reduce", 1, mesh["x"]))]
    )


@global_mean.mistake
def divided_by_the_local_length(a, *, mesh):
    """The result is the mean times the number of devices along x. Dividing the full sum by the length of one block
    does that, and so does summing the blocks' means. How many blocks are there?"""
    return device_map(lambda block: lax.psum(block.mean(), "x"), mesh, P("x"), P())(a)


@global_mean.mistake
def mean_of_one_block(a, *, mesh, check_vma=False):
    """Each device returned the mean of its own block, although out_specs=P() promise the same value everywhere. Which
    collective combines the blocks along x?"""
    return device_map(jnp.mean, mesh, P("x"), P(), check_vma)(a)


@global_mean.mistake
def averaged_the_sums(a, *, mesh):
    """The result is the mean of the blocks' *sums*. The blocks have equal lengths, so a mean of means is the mean, but
    a mean of sums isn't. What should each device contribute?"""
    return device_map(lambda block: lax.pmean(block.sum(), "x"), mesh, P("x"), P())(a)


@global_mean.mistake
def never_divided(a, *, mesh):
    """The result is the sum of all elements. By how many elements, in *all* blocks, do you have to divide it?"""
    return device_map(lambda block: lax.psum(block.sum(), "x"), mesh, P("x"), P())(a)


@global_mean.mistake
def divided_by_all_devices(a, *, mesh):
    """The result is the mean divided by the number of devices along y: the sum over x was divided by the elements of
    all devices, but along y they hold replicas. How many different blocks are there?"""

    def body(block):
        return lax.psum(block.sum(), "x") / (block.size * mesh.shape["x"] * mesh.shape["y"])

    return device_map(body, mesh, P("x"), P())(a)


@global_mean.mistake
def counted_copies_too(a, *, mesh):
    """The result is the mean times the number of devices along y, which hold replicas of the same blocks. Each replica
    was counted. Along which axis do the blocks differ?"""

    def body(block):
        return lax.psum(block.sum(), ("x", "y")) / (block.size * mesh.shape["x"])

    return device_map(body, mesh, P("x"), P())(a)


@global_mean.mistake
def ran_along_the_copies(a, *, mesh, check_vma=False):
    """The collective also runs along y, where the devices hold replicas of the same block. A sum would count each
    replica. A mean gives the same value, but sends more than needed, and JAX's check refuses it. Along which axis do
    the blocks differ?"""
    return device_map(lambda block: lax.pmean(block.mean(), ("x", "y")), mesh, P("x"), P(), check_vma)(a)


@global_mean.mistake
def gathered_all_numbers(a, *, mesh):
    """The value is correct, but all numbers were sent to all devices and averaged there. One number from each device
    is enough. Which one?"""
    return device_map(lambda block: lax.all_gather(block, "x", tiled=True).mean(), mesh, P("x"), P())(a)


@global_mean.mistake
def left_the_mean_to_the_compiler(a, *, mesh):
    """The value is correct, but the compiler wrote the collective. The exercise asks for the function of one block.
    Which collective belongs in it?"""
    return a.mean()


# The blocks stay where they are. out_specs say which part of the result each of them is.

GRID = P("x", "y")
transpose_without_sending = ProgramExercise("transpose_without_sending", points=3, reference=lambda a: a.T)


@transpose_without_sending.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    i, j = draw.lengths(2, divisible_by=8)
    return Case({"a": draw.array(i, j, spec=GRID)}, mesh, P("y", "x"), limits=[BytesSent(0)])


@transpose_without_sending.mistake
def blocks_not_turned(a, *, mesh):
    """The blocks are where they belong in the transpose, but none of them is transposed. What does a device have to do
    with its own block?"""
    return device_map(lambda block: block, mesh, GRID, P("y", "x"))(a)


@transpose_without_sending.mistake
def turned_but_left_in_place(a, *, mesh):
    """Each block is transposed, but the grid of blocks isn't: a block in row 2, column 1 of the grid belongs in row 1,
    column 2. What says where blocks belong?"""
    return device_map(lambda block: block.T, mesh, GRID, GRID)(a)


@transpose_without_sending.mistake
def gathered_and_turned(a, *, mesh):
    """Every device gathered the full array and transposed it. But the device that holds block (i, j) holds all of
    block (j, i) of the transpose. What has to be sent, then?"""

    def body(block):
        rows = lax.all_gather(block, "y", axis=1, tiled=True)
        return lax.all_gather(rows, "x", axis=0, tiled=True).T

    return device_map(body, mesh, GRID, P())(a)


@transpose_without_sending.mistake
def left_the_transpose_to_the_compiler(a, *, mesh):
    """The transpose is correct, and nothing is sent, but it is a program for the full array. What does one device do
    with its block, and which out_specs say where that belongs?"""
    return a.T


# Fix: a sum that claims to be the same on all devices and isn't. First way: keep the promise.

column_sums = ProgramExercise("column_sums", points=3, reference=lambda a: a.sum(axis=0))


@column_sums.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    i, j = draw.lengths(2, divisible_by=8)
    return Case(
        {"a": to_send(draw, i, j, spec=GRID)},
        mesh,
        P("y"),
        limits=[BytesSent(bytes_sent("all_reduce", j // mesh["y"], mesh["x"]))],
    )


@column_sums.mistake
def nothing_added(a, *, mesh, check_vma=False):
    """out_specs=P('y') promise that the devices along x agree, but each of them holds sums of its own rows. Nothing
    was summed over x. What belongs between the local sum and the promise?"""
    return device_map(lambda block: block.sum(axis=0), mesh, GRID, P("y"), check_vma)(a)


@column_sums.mistake
def added_along_y(a, *, mesh, check_vma=False):
    """The psum ran along y, where the devices hold *other columns*. Which axis splits the rows of a column?"""
    return device_map(lambda block: lax.psum(block.sum(axis=0), "y"), mesh, GRID, P("y"), check_vma)(a)


@column_sums.mistake
def added_along_both(a, *, mesh, check_vma=False):
    """Sums of different columns were added to each other, because the psum also ran along y. Along which axis alone do
    the devices hold parts of the same sum?"""
    return device_map(lambda block: lax.psum(block.sum(axis=0), ("x", "y")), mesh, GRID, P("y"), check_vma)(a)


@column_sums.mistake
def summed_each_row(a, *, mesh, check_vma=False):
    """The local sum ran along rows, which leaves one number for each row of a block. The exercise asks for one sum per
    *column*. Over which dimension of the block do you sum?"""
    return device_map(lambda block: lax.psum(block.sum(axis=1), "x"), mesh, GRID, P("y"), check_vma)(a)


@column_sums.mistake
def summed_the_rows(a, *, mesh, check_vma=False):
    """The result has the correct sums of the *rows*. The exercise asks for one sum per column. Over which dimension do
    you sum, and which axis splits it?"""
    return device_map(lambda block: lax.psum(block.sum(axis=1), "y"), mesh, GRID, P("x"), check_vma)(a)


@column_sums.mistake
def averaged_columns(a, *, mesh):
    """Each sum is divided by the number of devices along x, as if the devices' sums were averaged. They are parts of
    one sum. Which collective adds without dividing?"""
    return device_map(lambda block: lax.pmean(block.sum(axis=0), "x"), mesh, GRID, P("y"))(a)


@column_sums.mistake
def gathered_the_rows(a, *, mesh):
    """The value is correct, but all rows were sent to all devices along x and summed there. One row of sums from each
    device is enough. Which collective adds as it sends?"""
    return device_map(lambda block: lax.all_gather(block, "x", tiled=True).sum(axis=0), mesh, GRID, P("y"))(a)


@column_sums.mistake
def sent_before_summing(a, *, mesh):
    """The value is correct, but full blocks were summed across devices first, and locally afterward. Which order sends
    one row instead of a block?"""
    return device_map(lambda block: lax.psum(block, "x").sum(axis=0), mesh, GRID, P("y"))(a)


# Second way: don't make the promise.

ROWS = 3  # rows of a block
block_sums = ProgramExercise("block_sums", points=3, reference=lambda a: a.reshape(-1, ROWS, a.shape[1]).sum(axis=1))


@block_sums.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    (j,) = draw.lengths(1, divisible_by=8)
    return Case({"a": draw.array(ROWS * mesh["x"], j, spec=GRID)}, mesh, GRID, limits=[BytesSent(0)])


@block_sums.mistake
def dropped_the_dimension(a, *, mesh):
    """The local sum dropped the dimension of the rows, and out_specs still name an axis for it. How do you keep a
    dimension of length 1?"""
    return device_map(lambda block: block.sum(axis=0), mesh, GRID, GRID)(a)


@block_sums.mistake
def repeated_the_total(a, *, mesh):
    """Each row is the sum over all blocks, repeated for every device along x. The exercise asks for the sum within
    each block. Does anything have to be summed across devices?"""

    def body(block):
        return lax.psum(block.sum(axis=0, keepdims=True), "x")

    return device_map(body, mesh, GRID, GRID)(a)


@block_sums.mistake
def still_claims_agreement(a, *, mesh):
    """The result has only the sums of the first blocks. out_specs that leave out x say that the devices along x agree,
    but their rows differ. Which out_specs concatenate these rows?"""
    return device_map(lambda block: block.sum(axis=0, keepdims=True), mesh, GRID, P(None, "y"))(a)


@block_sums.mistake
def blocks_in_swapped_places(a, *, mesh):
    """The rows of devices along x are side by side, and the columns of devices along y are below each other, as if the
    axes in out_specs were swapped. In which order do in_specs name the axes?"""
    return device_map(lambda block: block.sum(axis=0, keepdims=True), mesh, GRID, P("y", "x"))(a)


@block_sums.mistake
def cut_one_dimension_over_both(a, *, mesh):
    """All blocks are below each other, because a tuple in a spec splits *one* dimension along both axes. Devices along
    y hold other columns. Which entry of the spec is for columns?"""
    return device_map(lambda block: block.sum(axis=0, keepdims=True), mesh, GRID, P(("x", "y")))(a)


# A loop whose carry starts the same on all devices, and then varies.

POLYNOMIAL = (P(), P("x"))


def _by_horners_rule(c, a):
    """A loop, so that an answer can be told which of its turns went otherwise: jnp.polyval is none in every JAX."""
    return lax.scan(lambda y, coefficient: (y * a + coefficient, None), jnp.zeros_like(a), c)[0]


polynomial = ProgramExercise("polynomial", points=4, reference=_by_horners_rule)


@polynomial.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    (n,) = draw.lengths(1, divisible_by=8)
    coefficients = 3 if draw.square else 4
    arrays = {"c": draw.array(coefficients, spec=POLYNOMIAL[0]), "a": draw.array(n, spec=POLYNOMIAL[1])}
    return Case(arrays, mesh, P("x"), limits=[BytesSent(0)])


def _horner(c, block, start, after=lambda y: y):
    return lax.fori_loop(0, c.shape[0], lambda k, y: after(y * block + c[k]), start)


@polynomial.mistake
def one_coefficient_in_every_step(c, a, *, mesh):
    """The first coefficient was added in every iteration, and the others are missing. What changes from iteration to
    iteration, and where does your loop use it?"""

    def body(c, block):
        return lax.fori_loop(0, c.shape[0], lambda k, y: y * block + c[0], varying(jnp.zeros(block.shape), "x"))

    return device_map(body, mesh, POLYNOMIAL, P("x"))(c, a)


@polynomial.mistake
def carry_typed_as_the_same_everywhere(c, a, *, mesh):
    """The carry starts as zeros, which are the same on every device, and after one iteration it varies over x. A carry
    has to keep its type. How do you give the zeros the type that the carry ends with?"""
    return device_map(lambda c, block: _horner(c, block, jnp.zeros(block.shape)), mesh, POLYNOMIAL, P("x"), True)(c, a)


@polynomial.mistake
def cast_along_every_axis(c, a, *, mesh):
    """The carry was declared to vary over all axes of the mesh, so the result may vary over y, and out_specs=P('x')
    deny it. Along which axis do the blocks differ?"""

    def body(c, block):
        return _horner(c, block, varying(jnp.zeros(block.shape), ("x", "y")))

    return device_map(body, mesh, POLYNOMIAL, P("x"), True)(c, a)


@polynomial.mistake
def silenced_with_a_sum(c, a, *, mesh):
    """A psum in the loop makes the types agree, but it adds up values that belong to different elements. How can you
    change the type of the start without changing a value?"""

    def body(c, block):
        return _horner(c, block, jnp.zeros(block.shape), lambda y: lax.psum(y, "x"))

    return device_map(body, mesh, POLYNOMIAL, P("x"))(c, a)


@polynomial.mistake
def began_with_the_block(c, a, *, mesh):
    """The polynomial has one power too many at the front, as if the carry started as the block itself. Which value, of
    the block's *type*, should it start with?"""
    return device_map(lambda c, block: _horner(c, block, block), mesh, POLYNOMIAL, P("x"))(c, a)


@polynomial.mistake
def coefficients_backwards(c, a, *, mesh):
    """Here c[0] is the coefficient of the lowest power. In the exercise, it belongs to the highest. Which coefficient
    does Horner's rule take first?"""
    return device_map(lambda c, block: _horner(c[::-1], block, 0 * block), mesh, POLYNOMIAL, P("x"))(c, a)


# Manual along one axis, left to the compiler along the other.

# No axis of length 1: partly manual, XLA for CPU refuses a collective over one ("must be in (partial) manual …").
centred_columns = ProgramExercise(
    "centred_columns", points=4, reference=lambda a: a - a.mean(axis=0), mesh_shapes=((4, 2), (2, 4), (2, 2))
)


@centred_columns.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    i, j = draw.lengths(2, divisible_by=8)
    return Case(
        {"a": draw.array(i, j, spec=GRID)},
        mesh,
        GRID,
        limits=[ManualAlong(("x",)), BytesSent(bytes_sent("all_reduce", j, mesh["x"]))],
    )


def _centred(block):
    return block - lax.pmean(block.mean(axis=0), "x")


@centred_columns.mistake
def named_an_axis_of_the_compiler(a, *, mesh):
    """in_specs name y, but axis_names leave it to the compiler. in_specs may name manual axes only. Does your function
    need to know how the columns are split?"""
    return device_map(_centred, mesh, GRID, GRID, True, axis_names={"x"})(a)


@centred_columns.mistake
def took_every_axis(a, *, mesh):
    """The blocks were gathered along y. Without axis_names all axes are manual, and then in_specs=P('x') ask for full
    rows on every device. Which axis alone do you want to be manual?"""
    return device_map(_centred, mesh, P("x"), P("x"), True)(a)


@centred_columns.mistake
def subtracted_local_means(a, *, mesh):
    """Each device subtracted the means of its own rows. Which collective makes them the means over the rows of all
    devices along x?"""
    return device_map(lambda block: block - block.mean(axis=0), mesh, P("x"), P("x"), True, axis_names={"x"})(a)


@centred_columns.mistake
def subtracted_sums_of_means(a, *, mesh):
    """The program subtracted each column's mean times the number of blocks, as if the blocks' means were summed. How
    do you combine the means of blocks of equal length?"""

    def body(block):
        return block - lax.psum(block.mean(axis=0), "x")

    return device_map(body, mesh, P("x"), P("x"), True, axis_names={"x"})(a)


@centred_columns.mistake
def subtracted_one_mean_for_all(a, *, mesh):
    """The program subtracted the mean of *all* elements from each element. Each column has its own mean. Over which
    dimension of the block do you take it?"""
    return device_map(lambda block: block - lax.pmean(block.mean(), "x"), mesh, P("x"), P("x"), True, axis_names={"x"})(
        a
    )


# One layer: sigmoid(a · w + b), a[I_Y, J_X], w[J_X, K]. With an explicit psum, and with a constraint.

LAYER = (P("y", "x"), P("x", None), P())


def _layer(a, w, b):
    return jax.nn.sigmoid(a @ w + b)


def _layer_arrays(draw: Draw) -> tuple[dict[str, int], dict[str, Array], tuple[int, int, int]]:
    """Arrays small enough that the sigmoid is not flat, and sums still come out exact."""
    mesh = draw.mesh("x", "y")
    i, j, k = draw.lengths(3, divisible_by=8)
    shapes = {"a": (i, j), "w": (j, k), "b": (k,)}
    scales = {"a": 16, "w": 16, "b": 4}
    arrays = {
        name: Array(draw.values(*shape) / np.float32(scales[name]), spec)
        for (name, shape), spec in zip(shapes.items(), LAYER, strict=True)
    }
    return mesh, arrays, (i, j, k)


layer_by_hand = ProgramExercise("layer_by_hand", points=4, reference=_layer)


@layer_by_hand.cases
def _(draw):
    mesh, arrays, (i, j, k) = _layer_arrays(draw)
    return Case(
        arrays,
        mesh,
        P("y", None),
        limits=[
            BytesSent(bytes_sent("all_reduce", i // mesh["y"] * k, mesh["x"])),
            Flops(2 * i * j * k // (mesh["x"] * mesh["y"])),
        ],
    )


@layer_by_hand.mistake
def bias_added_by_everyone(a, w, b, *, mesh):
    """The bias was added once for every device along x. Where in the function is the sum complete?"""

    def body(a, w, b):
        return jax.nn.sigmoid(lax.psum(a @ w + b, "x"))

    return device_map(body, mesh, LAYER, P("y", None))(a, w, b)


@layer_by_hand.mistake
def sigmoid_of_the_parts(a, w, b, *, mesh):
    """The sigmoid was applied to partial sums, and the results were added. The sigmoid of a sum isn't the sum of the
    sigmoids. What has to be complete before you apply it?"""

    def body(a, w, b):
        return lax.psum(jax.nn.sigmoid(a @ w + b), "x")

    return device_map(body, mesh, LAYER, P("y", None))(a, w, b)


@layer_by_hand.mistake
def sigmoid_of_the_products(a, w, b, *, mesh):
    """The sigmoid was applied to partial sums, the results were added, and the bias came last. The sigmoid of a sum
    isn't the sum of the sigmoids. What has to be complete before you apply it?"""

    def body(a, w, b):
        return lax.psum(jax.nn.sigmoid(a @ w), "x") + b

    return device_map(body, mesh, LAYER, P("y", None))(a, w, b)


@layer_by_hand.mistake
def layer_never_summed(a, w, b, *, mesh, check_vma=False):
    """Each device multiplied its columns of `a` by its rows of `w`, which gives a partial sum, and nothing combined
    them. Which collective does, and over which axis?"""

    def body(a, w, b):
        return jax.nn.sigmoid(a @ w + b)

    return device_map(body, mesh, LAYER, P("y", None), check_vma)(a, w, b)


@layer_by_hand.mistake
def summed_over_the_batch(a, w, b, *, mesh, check_vma=False):
    """The psum ran along y, where the devices hold different examples. Which axis splits the dimension that the matmul
    sums over?"""

    def body(a, w, b):
        return jax.nn.sigmoid(lax.psum(a @ w, "y") + b)

    return device_map(body, mesh, LAYER, P("y", None), check_vma)(a, w, b)


@layer_by_hand.mistake
def bias_cut_like_the_rows(a, w, b, *, mesh):
    """in_specs split the bias along x, but after the psum every device has all columns of the result, and a part of
    the bias doesn't fit. How is `b` sharded?"""

    def body(a, w, b):
        return jax.nn.sigmoid(lax.psum(a @ w, "x") + b)

    return device_map(body, mesh, (*LAYER[:2], P("x")), P("y", None))(a, w, b)


@layer_by_hand.mistake
def asked_for_whole_operands(a, w, b, *, mesh):
    """`a` and `w` were gathered along x (in_specs that ask for full operands do so before your function starts), and
    all devices along x then did the same work. What can a device do with the parts that it already holds?"""

    def body(a, w, b):
        return jax.nn.sigmoid(a @ w + b)

    return device_map(body, mesh, (P("y", None), P(), P()), P("y", None))(a, w, b)


layer_constrained = ProgramExercise("layer_constrained", points=3, reference=_layer, by_compiler=True)


@layer_constrained.cases
def _(draw):
    mesh, arrays, (i, _, k) = _layer_arrays(draw)
    scattered = Moves((Move("reduce_scatter", ("x",), (i // mesh["y"], k)),))
    return Case(arrays, mesh, P("y", "x"), limits=[ByCompiler(), scattered])


@layer_constrained.mistake
def left_unconstrained(a, w, b, *, mesh):
    """The columns of the result are replicated along x. The compiler chooses that if the program says nothing, and a
    spec without an entry for the columns says the same. Which entry asks for columns split along x?"""
    return jax.nn.sigmoid(a @ w + b)


@layer_constrained.mistake
def constrained_to_whole(a, w, b, *, mesh):
    """The result is fully replicated, as P() asks. The exercise asks for rows split along y and columns along x. Which
    spec says so?"""
    return lax.with_sharding_constraint(jax.nn.sigmoid(a @ w + b), NamedSharding(mesh, P()))


@layer_constrained.mistake
def constrained_with_axes_swapped(a, w, b, *, mesh):
    """The rows are split along x and the columns along y, which is the wrong way around. Which dimension does the
    first entry of a spec describe?"""
    return lax.with_sharding_constraint(jax.nn.sigmoid(a @ w + b), NamedSharding(mesh, P("x", "y")))


@layer_constrained.mistake
def constrained_without_a_mesh(a, w, b, *, mesh):
    """A bare spec names axes, but there is no current mesh that has them. Which kind of sharding includes its mesh?"""
    return lax.with_sharding_constraint(jax.nn.sigmoid(a @ w + b), P("y", "x"))
