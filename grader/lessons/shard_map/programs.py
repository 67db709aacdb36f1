"""§ 2–5, 7, 9–10, the programs: functions of one device's block."""

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
    "partial_sums", points=3, mesh_shapes=ONE_AXIS, reference=lambda x: x.reshape(-1, BLOCK).sum(axis=1)
)


@partial_sums.cases
def _(draw):
    mesh = draw.mesh("x")
    return Case({"x": draw.array(BLOCK * mesh["x"], spec=P("x"))}, mesh, P("x"), limits=[BytesSent(0)])


@partial_sums.mistake
def scalar_laid_along_x(x, *, mesh, check_vma=False):
    """Each device's sum is a scalar: it has no dimension along which out_specs could put the sums of all
    devices one after the other. How does `jnp.sum` keep a dimension of length one?"""
    return device_map(jnp.sum, mesh, P("x"), P("x"), check_vma)(x)


@partial_sums.mistake
def summed_over_all(x, *, mesh):
    """Every entry is the sum of everything. Each device's own sum was asked for, and nothing needs to be sent for that:
    is there a psum that adds up what should stay apart?"""

    def body(block):
        return lax.psum(jnp.sum(block, keepdims=True), "x")

    return device_map(body, mesh, P("x"), P("x"))(x)


@partial_sums.mistake
def claimed_one_for_all(x, *, mesh):
    """Only one sum came out, that of device 0's block. out_specs=P() says that every device returns the same, so that
    one copy is taken for all; the sums differ along x. Which out_specs put them one after the other?"""
    return device_map(lambda block: jnp.sum(block, keepdims=True), mesh, P("x"), P())(x)


@partial_sums.mistake
def reshaped_outside(x, *, mesh):
    """This is a program of the whole array, and the compiler found out who does what. Here the function of *one block*
    is asked for: what does a device do with its four numbers?"""
    return x.reshape(mesh.shape["x"], -1).sum(axis=1)


# One number for all.

global_mean = ProgramExercise("global_mean", points=4, reference=lambda x: x.mean())


@global_mean.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    (n,) = draw.lengths(1, divisible_by=8)
    return Case(
        {"x": draw.array(n, spec=P("x"))}, mesh, P(), limits=[BytesSent(bytes_sent("all_reduce", 1, mesh["x"]))]
    )


@global_mean.mistake
def divided_by_the_local_length(x, *, mesh):
    """This is the mean times the number of devices along x. A block is not the whole: dividing the whole sum by the
    length of a block, or adding up the means of the blocks, forgets how many blocks there are."""
    return device_map(lambda block: lax.psum(block.mean(), "x"), mesh, P("x"), P())(x)


@global_mean.mistake
def mean_of_one_block(x, *, mesh, check_vma=False):
    """Each device returned the mean of its own block, and out_specs=P() promise one and the same value
    everywhere. What brings in the other blocks along x?"""
    return device_map(jnp.mean, mesh, P("x"), P(), check_vma)(x)


@global_mean.mistake
def averaged_the_sums(x, *, mesh):
    """That is the mean of the blocks' *sums*. A mean of means is the mean, since all blocks are equally long;
    a mean of sums is not. What does each device have to bring?"""
    return device_map(lambda block: lax.pmean(block.sum(), "x"), mesh, P("x"), P())(x)


@global_mean.mistake
def never_divided(x, *, mesh):
    """That is the sum over all devices. By how many entries, of *all* blocks, has it to be divided?"""
    return device_map(lambda block: lax.psum(block.sum(), "x"), mesh, P("x"), P())(x)


@global_mean.mistake
def counted_copies_too(x, *, mesh):
    """This is the mean times the number of devices along y, where they hold copies of the same block: was each copy
    counted? Along which axis do the blocks differ?"""

    def body(block):
        return lax.psum(block.sum(), ("x", "y")) / (block.size * mesh.shape["x"])

    return device_map(body, mesh, P("x"), P())(x)


@global_mean.mistake
def ran_along_the_copies(x, *, mesh, check_vma=False):
    """The collective also runs along y, where the devices hold copies of the same block. A sum would count each copy.
    A mean comes to the same, but sends more than it has to, and JAX's check refuses either: along y there is nothing
    to bring together. Along which axis do the blocks differ?"""
    return device_map(lambda block: lax.pmean(block.mean(), ("x", "y")), mesh, P("x"), P(), check_vma)(x)


@global_mean.mistake
def gathered_all_numbers(x, *, mesh):
    """The value is right, but all the numbers travelled to all the devices, to be averaged there. One number
    from each device is enough. Which one?"""
    return device_map(lambda block: lax.all_gather(block, "x", tiled=True).mean(), mesh, P("x"), P())(x)


@global_mean.mistake
def left_the_mean_to_the_compiler(x, *, mesh):
    """A program of the whole array is right, and the compiler wrote the collective. This exercise asks for the other
    view: the function of one block, and the collective in your own hand."""
    return x.mean()


# The blocks stay where they are; out_specs say which part of the result each of them is.

GRID = P("x", "y")
transpose_without_sending = ProgramExercise("transpose_without_sending", points=3, reference=lambda x: x.T)


@transpose_without_sending.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    i, j = draw.lengths(2, divisible_by=8)
    return Case({"x": draw.array(i, j, spec=GRID)}, mesh, P("y", "x"), limits=[BytesSent(0)])


@transpose_without_sending.mistake
def blocks_not_turned(x, *, mesh):
    """The blocks were put in the places that they have in the transpose, but each is still as it was. What must
    a device do with its own block?"""
    return device_map(lambda block: block, mesh, GRID, P("y", "x"))(x)


@transpose_without_sending.mistake
def turned_but_left_in_place(x, *, mesh):
    """Each block was turned, but the blocks stand where they stood. A block from row 2, column 1 of the grid of
    blocks belongs in row 1, column 2. What says where blocks go?"""
    return device_map(lambda block: block.T, mesh, GRID, GRID)(x)


@transpose_without_sending.mistake
def gathered_and_turned(x, *, mesh):
    """Everything was gathered everywhere, and turned there. But the device that holds block (i, j) of x holds
    exactly what block (j, i) of the transpose is made of. What needs to be sent, then?"""

    def body(block):
        rows = lax.all_gather(block, "y", axis=1, tiled=True)
        return lax.all_gather(rows, "x", axis=0, tiled=True).T

    return device_map(body, mesh, GRID, P())(x)


@transpose_without_sending.mistake
def left_the_transpose_to_the_compiler(x, *, mesh):
    """The transpose of the whole array is right, and nothing is sent. Write the same for one block: what it does to
    itself, and the out_specs that say where it belongs."""
    return x.T


# Repair: a sum that claims to be the same everywhere and is not. First way: make the claim true.

column_sums = ProgramExercise("column_sums", points=3, reference=lambda x: x.sum(axis=0))


@column_sums.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    i, j = draw.lengths(2, divisible_by=8)
    return Case(
        {"x": to_send(draw, i, j, spec=GRID)},
        mesh,
        P("y"),
        limits=[BytesSent(bytes_sent("all_reduce", j // mesh["y"], mesh["x"]))],
    )


@column_sums.mistake
def nothing_added(x, *, mesh, check_vma=False):
    """out_specs=P('y') promise that the devices along x agree. But each of them has sums of its own rows only: these
    were added over another axis, or not at all. What belongs between the sum and the promise, and over which axis?"""
    return device_map(lambda block: block.sum(axis=0), mesh, GRID, P("y"), check_vma)(x)


@column_sums.mistake
def added_along_y(x, *, mesh, check_vma=False):
    """What was added up stands along y, where the devices hold *other columns*. Sums of one and the same column are
    along the axis that cut the rows. Which is it?"""
    return device_map(lambda block: lax.psum(block.sum(axis=0), "y"), mesh, GRID, P("y"), check_vma)(x)


@column_sums.mistake
def added_along_both(x, *, mesh, check_vma=False):
    """Sums of different columns were added to one another. Only the axis that cut the rows holds parts of the same sum:
    over which axes do you add?"""
    return device_map(lambda block: lax.psum(block.sum(axis=0), ("x", "y")), mesh, GRID, P("y"), check_vma)(x)


@column_sums.mistake
def summed_each_row(x, *, mesh, check_vma=False):
    """Rows were summed, which leaves one number for every row of a block. What was asked for is one sum for each
    *column*: along which dimension of the block does that run?"""
    return device_map(lambda block: lax.psum(block.sum(axis=1), "x"), mesh, GRID, P("y"), check_vma)(x)


@column_sums.mistake
def summed_the_rows(x, *, mesh, check_vma=False):
    """These are the sums of the *rows*, one for each row, and they are right. One sum for each column was asked for.
    Over which dimension does that run, and which axis cuts it?"""
    return device_map(lambda block: lax.psum(block.sum(axis=1), "y"), mesh, GRID, P("x"), check_vma)(x)


@column_sums.mistake
def averaged_columns(x, *, mesh):
    """Each sum is divided by the number of devices along x, as where the devices' sums are averaged. They are terms of
    one sum: which collective adds without dividing?"""
    return device_map(lambda block: lax.pmean(block.sum(axis=0), "x"), mesh, GRID, P("y"))(x)


@column_sums.mistake
def gathered_the_rows(x, *, mesh):
    """The value is right, but all rows travelled to all the devices along x, to be summed there. One row of sums from
    each device is enough. Which collective adds on the way?"""
    return device_map(lambda block: lax.all_gather(block, "x", tiled=True).sum(axis=0), mesh, GRID, P("y"))(x)


@column_sums.mistake
def sent_before_summing(x, *, mesh):
    """The value is right, but whole blocks were added across devices and summed afterwards. Sum first: then one
    row travels instead of a block."""
    return device_map(lambda block: lax.psum(block, "x").sum(axis=0), mesh, GRID, P("y"))(x)


# Second way: keep the parts, and say so.

ROWS = 3  # rows of a block
block_sums = ProgramExercise("block_sums", points=3, reference=lambda x: x.reshape(-1, ROWS, x.shape[1]).sum(axis=1))


@block_sums.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    (j,) = draw.lengths(1, divisible_by=8)
    return Case({"x": draw.array(ROWS * mesh["x"], j, spec=GRID)}, mesh, GRID, limits=[BytesSent(0)])


@block_sums.mistake
def dropped_the_dimension(x, *, mesh):
    """The sum drops the dimension of the rows, and out_specs still name an axis for it. A block needs a
    dimension, if only of length one, wherever out_specs lay blocks one after the other."""
    return device_map(lambda block: block.sum(axis=0), mesh, GRID, GRID)(x)


@block_sums.mistake
def repeated_the_total(x, *, mesh):
    """Each row is the sum over all blocks, once for every device along x. The parts were asked for, each where
    it is: nothing has to be added across devices."""

    def body(block):
        return lax.psum(block.sum(axis=0, keepdims=True), "x")

    return device_map(body, mesh, GRID, GRID)(x)


@block_sums.mistake
def still_claims_agreement(x, *, mesh):
    """Only the first blocks' sums came out. Where out_specs do not name x, the devices along x are said to agree, and
    the first one's row is taken for all. Say what is true: the rows differ along x, and belong one under the other."""
    return device_map(lambda block: block.sum(axis=0, keepdims=True), mesh, GRID, P(None, "y"))(x)


@block_sums.mistake
def blocks_in_swapped_places(x, *, mesh):
    """Rows from devices along x stand side by side, columns from y one under the other, as where the axes of out_specs
    are swapped. The blocks are where they were; name the axes as in_specs do."""
    return device_map(lambda block: block.sum(axis=0, keepdims=True), mesh, GRID, P("y", "x"))(x)


@block_sums.mistake
def cut_one_dimension_over_both(x, *, mesh):
    """All the blocks stand one under the other: a tuple in a spec cuts *one* dimension over both axes. Blocks from
    devices along y hold other columns, and belong side by side. Which entry of the spec lays columns?"""
    return device_map(lambda block: block.sum(axis=0, keepdims=True), mesh, GRID, P(("x", "y")))(x)


# A loop whose carry starts as the same everywhere, and then differs.

POLYNOMIAL = (P(), P("x"))


def _by_horners_rule(c, x):
    """A loop, so that an answer can be told which of its turns went otherwise: jnp.polyval is none in every JAX."""
    return lax.scan(lambda y, coefficient: (y * x + coefficient, None), jnp.zeros_like(x), c)[0]


polynomial = ProgramExercise("polynomial", points=4, reference=_by_horners_rule)


@polynomial.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    (n,) = draw.lengths(1, divisible_by=8)
    coefficients = 3 if draw.square else 4
    arrays = {"c": draw.array(coefficients, spec=POLYNOMIAL[0]), "x": draw.array(n, spec=POLYNOMIAL[1])}
    return Case(arrays, mesh, P("x"), limits=[BytesSent(0)])


def _horner(c, block, start, after=lambda y: y):
    return lax.fori_loop(0, c.shape[0], lambda k, y: after(y * block + c[k]), start)


@polynomial.mistake
def one_coefficient_in_every_turn(c, x, *, mesh):
    """The first coefficient was added in every turn, and the others never came in. What changes from turn to turn, and
    where does your loop use it?"""

    def body(c, block):
        return lax.fori_loop(0, c.shape[0], lambda k, y: y * block + c[0], varying(jnp.zeros(block.shape), "x"))

    return device_map(body, mesh, POLYNOMIAL, P("x"))(c, x)


@polynomial.mistake
def carry_typed_as_the_same_everywhere(c, x, *, mesh):
    """The carry begins as zeros, which are the same on every device, and after one turn it differs along x. A
    carry keeps its type through the loop, so it has to begin with the type that it ends with."""
    return device_map(lambda c, block: _horner(c, block, jnp.zeros(block.shape)), mesh, POLYNOMIAL, P("x"), True)(c, x)


@polynomial.mistake
def cast_along_every_axis(c, x, *, mesh):
    """The carry was said to differ along all axes of the mesh, so the result may differ along y as well, and
    out_specs=P('x') deny it. Along which axis do the blocks differ?"""

    def body(c, block):
        return _horner(c, block, varying(jnp.zeros(block.shape), ("x", "y")))

    return device_map(body, mesh, POLYNOMIAL, P("x"), True)(c, x)


@polynomial.mistake
def silenced_with_a_sum(c, x, *, mesh):
    """With a psum in the loop the types agree, and the values are wrong: it adds up what belongs to different numbers.
    A type error asks what you meant; change the type of the start, and leave the values alone."""

    def body(c, block):
        return _horner(c, block, jnp.zeros(block.shape), lambda y: lax.psum(y, "x"))

    return device_map(body, mesh, POLYNOMIAL, P("x"))(c, x)


@polynomial.mistake
def began_with_the_block(c, x, *, mesh):
    """There is one power too many at the front, as where the carry begins as the block itself. It should begin as zero,
    of the block's *type*."""
    return device_map(lambda c, block: _horner(c, block, block), mesh, POLYNOMIAL, P("x"))(c, x)


@polynomial.mistake
def coefficients_backwards(c, x, *, mesh):
    """Here c[0] goes with the lowest power. It belongs to the highest one, so Horner's rule takes it first."""
    return device_map(lambda c, block: _horner(c[::-1], block, 0 * block), mesh, POLYNOMIAL, P("x"))(c, x)


# Manual along one axis, left to the compiler along the other.

# No axis of length 1: partly manual, XLA for CPU refuses a collective over one ("must be in (partial) manual …").
centred_columns = ProgramExercise(
    "centred_columns", points=4, reference=lambda x: x - x.mean(axis=0), mesh_shapes=((4, 2), (2, 4), (2, 2))
)


@centred_columns.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    i, j = draw.lengths(2, divisible_by=8)
    return Case(
        {"x": draw.array(i, j, spec=GRID)},
        mesh,
        GRID,
        limits=[ManualAlong(("x",)), BytesSent(bytes_sent("all_reduce", j, mesh["x"]))],
    )


def _centred(block):
    return block - lax.pmean(block.mean(axis=0), "x")


@centred_columns.mistake
def named_an_axis_of_the_compiler(x, *, mesh):
    """in_specs name y, which axis_names leave to the compiler. in_specs speak of the manual axes only: the array
    stays cut along y, but your function does not see it."""
    return device_map(_centred, mesh, GRID, GRID, True, axis_names={"x"})(x)


@centred_columns.mistake
def took_every_axis(x, *, mesh):
    """The blocks were gathered along y. Without axis_names all axes are manual, and in_specs=P('x') then say that every
    device wants whole rows. Which axes do you mean to handle yourself?"""
    return device_map(_centred, mesh, P("x"), P("x"), True)(x)


@centred_columns.mistake
def subtracted_local_means(x, *, mesh):
    """Each device subtracted the means of its own rows. The mean of a column is over the rows of all devices
    along x."""
    return device_map(lambda block: block - block.mean(axis=0), mesh, P("x"), P("x"), True, axis_names={"x"})(x)


@centred_columns.mistake
def subtracted_sums_of_means(x, *, mesh):
    """What was subtracted is the column's mean, times the number of blocks. How many rows has a block, and how many the
    column? A sum of *all* rows is divided by the number of all rows; blocks of equal length have as their common mean
    the *mean* of their means."""

    def body(block):
        return block - lax.psum(block.mean(axis=0), "x")

    return device_map(body, mesh, P("x"), P("x"), True, axis_names={"x"})(x)


@centred_columns.mistake
def subtracted_one_mean_for_all(x, *, mesh):
    """The mean of *all* entries was subtracted. Each column has a mean of its own: over which dimension of the
    block does it run?"""
    return device_map(lambda block: block - lax.pmean(block.mean(), "x"), mesh, P("x"), P("x"), True, axis_names={"x"})(
        x
    )


# One layer: sigmoid(x · w + b), x[I_Y, J_X], w[J_X, K]. By hand, and with a constraint.

LAYER = (P("y", "x"), P("x", None), P())


def _layer(x, w, b):
    return jax.nn.sigmoid(x @ w + b)


def _layer_arrays(draw: Draw) -> tuple[dict[str, int], dict[str, Array], tuple[int, int, int]]:
    """Arrays small enough that the sigmoid is not flat, and sums still come out exact."""
    mesh = draw.mesh("x", "y")
    i, j, k = draw.lengths(3, divisible_by=8)
    shapes = {"x": (i, j), "w": (j, k), "b": (k,)}
    scales = {"x": 16, "w": 16, "b": 4}
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
def bias_added_by_everyone(x, w, b, *, mesh):
    """The bias counts once for every device along x. Where in the function is the sum complete?"""

    def body(x, w, b):
        return jax.nn.sigmoid(lax.psum(x @ w + b, "x"))

    return device_map(body, mesh, LAYER, P("y", None))(x, w, b)


@layer_by_hand.mistake
def sigmoid_of_the_parts(x, w, b, *, mesh):
    """The sigmoid was taken of each part, and the results added. The sigmoid of a sum is not the sum of
    sigmoids: what has to be there before it may be applied?"""

    def body(x, w, b):
        return lax.psum(jax.nn.sigmoid(x @ w + b), "x")

    return device_map(body, mesh, LAYER, P("y", None))(x, w, b)


@layer_by_hand.mistake
def sigmoid_of_the_products(x, w, b, *, mesh):
    """The sigmoid was taken of each part of the product, the results were added, and the bias came last. The sigmoid
    of a sum is not the sum of sigmoids: what has to be there, sum and bias, before it may be applied?"""

    def body(x, w, b):
        return lax.psum(jax.nn.sigmoid(x @ w), "x") + b

    return device_map(body, mesh, LAYER, P("y", None))(x, w, b)


@layer_by_hand.mistake
def layer_never_summed(x, w, b, *, mesh, check_vma=False):
    """Each device multiplied its columns of x by its rows of w: one part of the sum. Which collective, over which
    axis, makes the parts a product?"""

    def body(x, w, b):
        return jax.nn.sigmoid(x @ w + b)

    return device_map(body, mesh, LAYER, P("y", None), check_vma)(x, w, b)


@layer_by_hand.mistake
def summed_over_the_batch(x, w, b, *, mesh, check_vma=False):
    """The psum runs along y, where the devices hold other rows of x: other examples. Along which axis is the
    contracted dimension cut?"""

    def body(x, w, b):
        return jax.nn.sigmoid(lax.psum(x @ w, "y") + b)

    return device_map(body, mesh, LAYER, P("y", None), check_vma)(x, w, b)


@layer_by_hand.mistake
def bias_cut_like_the_rows(x, w, b, *, mesh):
    """in_specs cut the bias along x, but the product has all its columns on every device: a piece of the bias does
    not fit. How is b laid out?"""

    def body(x, w, b):
        return jax.nn.sigmoid(lax.psum(x @ w, "x") + b)

    return device_map(body, mesh, (*LAYER[:2], P("x")), P("y", None))(x, w, b)


@layer_by_hand.mistake
def asked_for_whole_operands(x, w, b, *, mesh):
    """x and w were gathered along x (in_specs that ask for them whole do so before your function begins), and every
    device along x then did the same work. Describe the operands as they are laid out: what can a device do with the
    parts that it holds?"""

    def body(x, w, b):
        return jax.nn.sigmoid(x @ w + b)

    return device_map(body, mesh, (P("y", None), P(), P()), P("y", None))(x, w, b)


layer_constrained = ProgramExercise("layer_constrained", points=3, reference=_layer, by_compiler=True)


@layer_constrained.cases
def _(draw):
    mesh, arrays, (i, _, k) = _layer_arrays(draw)
    scattered = Moves((Move("reduce_scatter", ("x",), (i // mesh["y"], k)),))
    return Case(arrays, mesh, P("y", "x"), limits=[ByCompiler(), scattered])


@layer_constrained.mistake
def left_unconstrained(x, w, b, *, mesh):
    """The columns are whole: so the compiler likes it where nothing is said, and a spec without an entry for them says
    so, too. Which words tell it that they should be cut along x?"""
    return jax.nn.sigmoid(x @ w + b)


@layer_constrained.mistake
def constrained_to_whole(x, w, b, *, mesh):
    """The result is whole on every device, as P() asks for it. Rows cut along y and columns along x were wanted."""
    return lax.with_sharding_constraint(jax.nn.sigmoid(x @ w + b), NamedSharding(mesh, P()))


@layer_constrained.mistake
def constrained_with_axes_swapped(x, w, b, *, mesh):
    """Rows were cut along x and columns along y: the other way round. The first entry of a spec speaks of the
    first dimension."""
    return lax.with_sharding_constraint(jax.nn.sigmoid(x @ w + b), NamedSharding(mesh, P("x", "y")))


@layer_constrained.mistake
def constrained_without_a_mesh(x, w, b, *, mesh):
    """A bare spec names axes, but of which mesh? Nobody has set one. A NamedSharding brings its mesh along."""
    return lax.with_sharding_constraint(jax.nn.sigmoid(x @ w + b), P("y", "x"))
