"""§ 1–2, random numbers: what a draw sends, and whose numbers a device draws."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh, put
from grader.exercises import BytesSent, Case, Draw, EitherWay, ProgramExercise, TableExercise
from grader.lessons.shared import believed
from grader.programs.walk import compiled_structure

# One draw, x + uniform(key, x.shape), under the two implementations of JAX's random bits.

LINE = {"x": 8}
ENTRIES = 24  # x is arange(24), cut over the line


def _noisy(key, x):
    return x + jax.random.uniform(key, x.shape)


@functools.cache
def _sent(flag: bool) -> tuple[str, ...]:
    """The kinds of collectives in the compiled program."""
    mesh = make_mesh(LINE)
    with jax.threefry_partitionable(flag):
        x = put(jnp.arange(float(ENTRIES)), P("x"), mesh)
        compiled = jax.jit(_noisy).lower(jax.random.key(0), x).compile()
    return tuple(sorted({c.kind for c in compiled_structure(compiled, LINE).collectives}))


@functools.cache
def _drawn(flag: bool, entries: int = ENTRIES, devices: int = 1) -> np.ndarray:
    mesh = make_mesh({"x": devices})
    with jax.threefry_partitionable(flag):
        return np.asarray(jax.jit(_noisy)(jax.random.key(0), put(jnp.zeros(entries), P("x"), mesh)))


def _alike(one: np.ndarray, other: np.ndarray) -> str:
    return "yes" if np.array_equal(one, other) else "no"


CLAIMS = {
    "flag off: kinds of collectives": lambda: [*_sent(False)],
    "flag on: kinds of collectives": lambda: [*_sent(True)],
    "the same numbers with the flag off and on": lambda: _alike(_drawn(False), _drawn(True)),
    "flag on: the same numbers on 1 and on 8 devices": lambda: _alike(_drawn(True), _drawn(True, devices=8)),
    "flag off: draws of 24 and of 25 begin alike": lambda: _alike(_drawn(False), _drawn(False, 25)[:ENTRIES]),
    # The default changed in 0.5.0, from off to on: a release may change the numbers if these two differ.
    "a later release of JAX: the same numbers for sure": lambda: _alike(_drawn(False), _drawn(True)),
}

rng_partitionable = TableExercise("rng_partitionable", points=3, reference=lambda row: CLAIMS[row]())
rng_partitionable.rows(CLAIMS)


@rng_partitionable.mistake
def expected_the_same_numbers(row):
    """The flag does not only say *who* computes: it chooses another way to make bits of a key, and with it other
    numbers. Draw once with each, and look."""
    return believed(row, "yes", "the same numbers with the flag off and on")


@rng_partitionable.mistake
def thought_the_old_way_sends_nothing(row):
    """A counter is cut into two halves, and a device's entries need bits from both. Ask
    `communication` inside `with jax.threefry_partitionable(False):`."""
    return believed(row, [], "flag off: kinds of collectives")


@rng_partitionable.mistake
def saw_one_kind_of_two(row):
    """That is one of them. Read the report to the end: two kinds of collectives stand in it."""
    return believed(row, ["collective_permute"], "flag off: kinds of collectives")


@rng_partitionable.mistake
def saw_the_other_kind_of_two(row):
    """That one is there. The pieces are also passed on from neighbour to neighbour, and that has a name of its
    own."""
    return believed(row, ["all_gather"], "flag off: kinds of collectives")


@rng_partitionable.mistake
def thought_random_numbers_must_travel(row):
    """Entry k needs the key and the number k, nothing else. Every device knows both: what should be sent? Ask
    `communication`."""
    return believed(row, ["all_gather", "collective_permute"], "flag on: kinds of collectives")


@rng_partitionable.mistake
def thought_devices_change_the_numbers(row):
    """`jit` never changes what a program means. With either flag, a layout decides only who computes which entry:
    compare the two draws."""
    return believed(row, "no", "flag on: the same numbers on 1 and on 8 devices")


@rng_partitionable.mistake
def thought_the_old_draw_only_grows(row):
    """The old way cuts the counter in half, and where the half is depends on how many are drawn. Print the first
    number of both draws."""
    return believed(row, "yes", "flag off: draws of 24 and of 25 begin alike")


@rng_partitionable.mistake
def trusted_every_release(row):
    """In release 0.5.0 the flag's default went from off to on. What did that do to the numbers of everyone who had
    not set it?"""
    return believed(row, "yes", "a later release of JAX: the same numbers for sure")


# Inside shard_map a key that is the same everywhere gives the same numbers everywhere.


def _noise(key, like):
    return jax.random.uniform(key, like.shape)


def _mapped(body, x, mesh, check_vma=True):
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None), check_vma=check_vma)(x)


def _own_numbers(x, seed):
    keys = [jax.random.fold_in(jax.random.key(seed), k) for k in range(x.shape[0])]
    return x + jnp.stack([_noise(key, x[0]) for key in keys])


own_numbers = ProgramExercise("own_numbers", points=4, reference=_own_numbers)


@own_numbers.cases
def _(draw: Draw):
    mesh = draw.mesh("x", "y")
    (columns,) = draw.lengths(1, divisible_by=8)
    seed = int(draw.rng.integers(1, 100))
    return Case(
        {"x": draw.array(mesh["x"], columns, spec=P("x", None)), "seed": seed},
        mesh,
        out=P("x", None),
        limits=[EitherWay(), BytesSent(0)],
    )


@own_numbers.mistake
def the_same_key_everywhere(x, seed, *, mesh, check_vma=False):
    """The key is the same on every device, so every device drew the same numbers. Random they look, and independent
    they are not. What does each device have that no other along x has?"""
    return _mapped(lambda block: block + _noise(jax.random.key(seed), block), x, mesh, check_vma)


@own_numbers.mistake
def folded_in_both_axes(x, seed, *, mesh):
    """The key also depends on the place along y. But x is not cut over y: the devices there hold copies of one row,
    and now their copies differ. Over which axis should the numbers differ?"""

    def body(block):
        key = jax.random.fold_in(jax.random.key(seed), lax.axis_index("x"))
        return block + _noise(jax.random.fold_in(key, lax.axis_index("y")), block)

    return _mapped(body, x, mesh, False)


@own_numbers.mistake
def folded_in_the_number_of_the_device(x, seed, *, mesh):
    """The key depends on the number of the device among all of them. Devices that differ only along y hold copies
    of one row, and now their copies differ."""

    def body(block):
        return block + _noise(jax.random.fold_in(jax.random.key(seed), lax.axis_index(("x", "y"))), block)

    return _mapped(body, x, mesh, False)


@own_numbers.mistake
def folded_in_the_other_axis(x, seed, *, mesh):
    """The key depends on the place along y, where the devices hold copies, and not on the place along x, where they
    hold different rows. It should be the other way round."""

    def body(block):
        return block + _noise(jax.random.fold_in(jax.random.key(seed), lax.axis_index("y")), block)

    return _mapped(body, x, mesh, False)


@own_numbers.mistake
def one_draw_for_all_rows(x, seed, *, mesh):
    """One key, one draw for the whole array, of which each device has its row. Good numbers; but they are not those of
    a key per row, which needs nothing of the other rows."""

    def body(block):
        everything = jax.random.uniform(jax.random.key(seed), (mesh.shape["x"], block.shape[1]))
        return block + lax.dynamic_slice_in_dim(everything, lax.axis_index("x"), 1)

    return _mapped(body, x, mesh)


@own_numbers.mistake
def the_place_is_the_key(x, seed, *, mesh):
    """The keys differ along x, and the seed is in none of them: every run of the program draws the same."""
    return _mapped(lambda block: block + _noise(jax.random.key(lax.axis_index("x")), block), x, mesh)


@own_numbers.mistake
def seed_folded_into_the_place(x, seed, *, mesh):
    """Place k of this seed has the numbers that are due at place `seed` of the seed k: good numbers, but seed and place
    have changed places. Which of the two makes the key, and which is folded into it?"""

    def body(block):
        return block + _noise(jax.random.fold_in(jax.random.key(lax.axis_index("x")), seed), block)

    return _mapped(body, x, mesh)


@own_numbers.mistake
def added_the_place_to_the_seed(x, seed, *, mesh):
    """seed + place: then place 1 of a run with seed 7 draws what place 0 draws with seed 8. Two runs that should be
    independent share nearly all their numbers. Fold the place into the *key*."""
    return _mapped(lambda block: block + _noise(jax.random.key(seed + lax.axis_index("x")), block), x, mesh)


@own_numbers.mistake
def counted_the_places_from_one(x, seed, *, mesh):
    """The numbers are independent, but row 0 has those of row 1, and so on: places along an axis count from 0, and so
    do rows."""

    def body(block):
        return block + _noise(jax.random.fold_in(jax.random.key(seed), lax.axis_index("x") + 1), block)

    return _mapped(body, x, mesh)


@own_numbers.mistake
def normal_numbers(x, seed, *, mesh):
    """The keys are right, and the numbers were drawn from a normal distribution. Which function of `jax.random` draws
    in [0, 1)?"""

    def body(block):
        key = jax.random.fold_in(jax.random.key(seed), lax.axis_index("x"))
        return block + jax.random.normal(key, block.shape)

    return _mapped(body, x, mesh)


@own_numbers.mistake
def one_number_for_a_block(x, seed, *, mesh):
    """The keys are right, and each drew a single number, which was added to all entries of its row. How does `uniform`
    hear how many numbers it should draw?"""

    def body(block):
        return block + jax.random.uniform(jax.random.fold_in(jax.random.key(seed), lax.axis_index("x")))

    return _mapped(body, x, mesh)


# Numbers that belong to the rows, not to the devices: the same on every mesh.


def _row_noise(key, numbers, columns):
    return jax.vmap(lambda row: jax.random.uniform(jax.random.fold_in(key, row), (columns,)))(numbers)


same_on_every_mesh = ProgramExercise(
    "same_on_every_mesh",
    points=4,
    reference=lambda x, seed: x + _row_noise(jax.random.key(seed), jnp.arange(x.shape[0]), x.shape[1]),
)


@same_on_every_mesh.cases
def _(draw: Draw):
    mesh = draw.mesh("x", "y")
    count, columns = draw.lengths(2, divisible_by=8)
    seed = int(draw.rng.integers(1, 100))
    return Case(
        {"x": draw.array(count, columns, spec=P("x", None)), "seed": seed},
        mesh,
        out=P("x", None),
        limits=[EitherWay(), BytesSent(0)],
    )


def _by_rows(x, seed, mesh, number, check_vma=True):
    """`number(block)` says under which numbers the rows of a block draw."""

    def body(block):
        return block + _row_noise(jax.random.key(seed), number(block), block.shape[1])

    return _mapped(body, x, mesh, check_vma)


@same_on_every_mesh.mistake
def a_key_for_each_device(x, seed, *, mesh):
    """One key per device: on a mesh of another shape the blocks are others, and with them all the numbers. The result
    of an experiment should not depend on how many devices it ran on. What belongs to a row, on every mesh?"""

    def body(block):
        return block + _noise(jax.random.fold_in(jax.random.key(seed), lax.axis_index("x")), block)

    return _mapped(body, x, mesh)


@same_on_every_mesh.mistake
def numbered_within_the_block(x, seed, *, mesh):
    """Each row drew with its number *in the block*: row 0 of every device got the same noise. A device sees only its
    block; where does that begin, counted in rows of x?"""
    return _by_rows(x, seed, mesh, lambda block: jnp.arange(block.shape[0]))


@same_on_every_mesh.mistake
def added_the_device_to_the_row(x, seed, *, mesh):
    """The blocks begin at rows 0, 1, 2, …: neighbouring devices drew nearly the same. Device k's block begins k
    *blocks* down, not k rows."""
    return _by_rows(x, seed, mesh, lambda block: lax.axis_index("x") + jnp.arange(block.shape[0]))


@same_on_every_mesh.mistake
def numbered_along_both_axes(x, seed, *, mesh):
    """Rows were numbered as if x were cut over both axes of the mesh. Devices along y hold copies of the same rows:
    they have to draw the same."""

    def number(block):
        return lax.axis_index(("x", "y")) * block.shape[0] + jnp.arange(block.shape[0])

    return _by_rows(x, seed, mesh, number, False)


@same_on_every_mesh.mistake
def one_key_for_all_rows(x, seed, *, mesh, check_vma=False):
    """The key is the same on every device, and so is the noise: every block got the same. Where does the number of
    the row come in?"""
    return _mapped(lambda block: block + _noise(jax.random.key(seed), block), x, mesh, check_vma)


@same_on_every_mesh.mistake
def one_draw_for_all_rows_of_x(x, seed, *, mesh):
    """One key drew the numbers of all rows at once: the same on every mesh, but not those that are asked for. Each row
    has a key of its own, into which its number is folded, and so needs nothing of the others."""
    return _mapped(lambda block: block, x + _noise(jax.random.key(seed), x), mesh)


@same_on_every_mesh.mistake
def added_to_the_seed(x, seed, *, mesh):
    """Each row has a key of its own, but one made from seed + row. Then row 1 of one seed draws what row 0 of the next
    seed draws. The number of the row is to be folded into the key of the seed."""

    def body(block):
        rows = lax.axis_index("x") * block.shape[0] + jnp.arange(block.shape[0])
        return block + jax.vmap(lambda row: jax.random.uniform(jax.random.key(seed + row), (block.shape[1],)))(rows)

    return _mapped(body, x, mesh)


@same_on_every_mesh.mistake
def one_number_for_a_row(x, seed, *, mesh):
    """The keys are right, and each drew a single number, which was added to all entries of its row. J numbers are due
    for a row: how does `uniform` hear of that?"""

    def body(block):
        rows = lax.axis_index("x") * block.shape[0] + jnp.arange(block.shape[0])
        return block + _row_noise(jax.random.key(seed), rows, 1)

    return _mapped(body, x, mesh)


@same_on_every_mesh.mistake
def gathered_first(x, seed, *, mesh):
    """The numbers are right, and all of x was sent to every device for them. The noise of a row needs the seed and the
    number of the row, and a device knows both."""

    def body(block):
        whole = lax.all_gather(block, "x", axis=0, tiled=True)
        noisy = whole + _row_noise(jax.random.key(seed), jnp.arange(whole.shape[0]), whole.shape[1])
        return lax.dynamic_slice_in_dim(noisy, lax.axis_index("x") * block.shape[0], block.shape[0])

    return _mapped(body, x, mesh)
