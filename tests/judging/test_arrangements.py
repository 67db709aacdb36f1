"""What is right in a result that nothing explains; and a mistake that is made in some cases only."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Case, ProgramExercise
from grader.exercises.collecting import asks, collect
from grader.judging.arrangements import arrangement
from grader.judging.compared import Compared
from grader.judging.judge import judge
from grader.judging.ladder import WHERE_WRONG

MESH = {"x": 2, "y": 2}
DUE = [np.arange(8.0).reshape(2, 4) + 10 * device for device in range(4)]


def test_a_single_number_that_is_0_is_no_part_of_nothing_but_zeros():
    """As the logarithm of a sum of ones, which is 0 where one device has all of it."""
    due, found = np.array([158.4, 7.2, 9.1, 3.3]), np.array([0.13, 0, 2.5, 1.1])
    seen = Compared([found] * 4, [due] * 4, MESH, ["all"] * 4)
    assert arrangement(seen) == ""


TURNED = [due[::-1, ::-1] for due in DUE]


def test_what_every_wrong_block_holds_is_told_where_it_is_something_that_is_known():
    given, places = [due + 100 for due in DUE], [str(d) for d in range(4)]
    found = [given[0], np.zeros((2, 4)), DUE[2], DUE[1]]
    seen = Compared(found, DUE, MESH, places, given={"x": given})
    assert arrangement(seen) == (
        "What the blocks hold that are wrong: device 0: `x` in its own place, as it was given; device 1: nothing but "
        "zeros; device 3: what belongs on device 1. Right on device 2. Who was to send to whom?"
    )
    assert "What the blocks hold" not in arrangement(Compared([*found[:3], DUE[1] + 1], DUE, MESH, places))
    changed = [found[0] * 1.0001, *found[1:]]
    assert "as it was given" not in arrangement(Compared(changed, DUE, MESH, places, 10_000, given={"x": given}))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (TURNED, "Each device holds the numbers that belong on it, but in other places of its block."),
        (
            [*DUE[:2], *TURNED[2:]],
            "Each device holds the numbers that belong on it, on devices 2, 3 in other places of its block.",
        ),
        ([DUE[0] - 50] * 4, "All devices hold the same numbers, and should hold different ones."),
        ([DUE[0] - 50, DUE[1] - 50] * 2, "All devices along x hold the same numbers"),
        (
            [np.where(np.arange(4) // 2 == device // 2, due, -7) for device, due in enumerate(DUE)],
            "Cut every block along dimension 1 into as many parts as there are devices along x: only the part with the "
            "device's own place along x is right.",
        ),
        (
            [np.where(np.arange(4) // 2 == device // 2, -7, due) for device, due in enumerate(DUE)],
            "Cut every block along dimension 1 into as many parts as there are devices along x: only the part with the "
            "device's own place along x is wrong.",
        ),
        (
            [np.where(np.arange(4) < 2, due, -7) for due in DUE],
            "Cut every block along dimension 1 into as many parts as there are devices along x: only the first part",
        ),
        (
            [np.where((np.arange(4) > 0) & (np.arange(4) < 3), -7, due) for due in DUE],
            "Where a block is wrong, just [0:2, 1:3] of it is, and the rest is right.",
        ),
        ([*DUE[:2], *(due - 50 for due in DUE[2:])], "Only the devices with place 0 along x came out right"),
        ([DUE[0], *(due - 50 for due in DUE[1:])], "Only device 0 came out right."),
        (
            [np.full_like(due, due.mean()) for due in DUE],
            "All entries of a block are the same: the mean of those that are due there.",
        ),
        (
            [np.broadcast_to(due.sum(0), due.shape) for due in DUE],
            "Along dimension 0 of every block all entries are the same: the sum of those that are due there.",
        ),
        (
            [np.where(np.arange(4) % 2, due - 99, due) for due in DUE],
            "Along dimension 1, entries 0, 2 (counted from 0) came out right in every block",
        ),
        (
            [np.stack([due[1], -due[0]]) for due in DUE],
            "Along dimension 0 of every block, what stands at 0 is due at 1",
        ),
        (
            [np.stack([due[0] - 99, 0 * due[0]]) for due in DUE],
            "Along dimension 0 of every block there are only zeros in entry 1",
        ),
        (
            [np.where((due % 3 == 0) & (due != 10), 0, due) for due in DUE],
            "All that is not 0 is right, but entries are 0 that should not be.",
        ),
        ([np.where(due == due[0, 1], due, -7) for due in DUE[:1]] + [due - 50 for due in DUE[1:]], ""),
        ([due - 50 for due in DUE], ""),
    ],
)
def test_what_is_right_in_the_blocks_is_told(found, words):
    said = arrangement(Compared(found, DUE, MESH, [str(d) for d in range(4)]))
    assert said.startswith(words) and bool(said) == bool(words)


MASKED = [np.where(due % 3 == 0, 0, due) for due in DUE]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([np.where(due % 3 == 1, 0, due) for due in DUE], "Wherever neither is 0, what you have and what is due agree"),
        (DUE, "Only entries are wrong that should be 0."),
        ([np.where(due % 3 == 1, 0, 2 * due) for due in DUE], ""),
    ],
)
def test_zeros_in_other_places_are_told(found, words):
    said = arrangement(Compared(found, MASKED, MESH, [str(d) for d in range(4)]))
    assert said.startswith(words) and bool(said) == bool(words)


@pytest.mark.parametrize(
    ("found", "due", "mesh", "untrue"),
    [
        # Each device has its own two numbers, in another order: none is on a device where it does not belong.
        (
            [np.array([2.0 * d + 1, 2.0 * d]) for d in range(4)],
            [np.array([2.0 * d, 2.0 * d + 1]) for d in range(4)],
            MESH,
            "where they do not belong",
        ),
        # What is wrong by its own measure is right by that of the block.
        (
            [np.array([[100.0, 90, 0.0012]])] + [np.array([[100.0, 90, 50]])] * 3,
            [np.array([[100.0, 90, 0.001]])] + [np.array([[100.0, 90, 40]])] * 3,
            MESH,
            "In every block",
        ),
        # Devices along y should hold copies.
        (
            [DUE[0] - 50] * 4,
            [DUE[0], DUE[0], DUE[1], DUE[1]],
            MESH,
            "All devices hold the same numbers, and should hold",
        ),
        # Small numbers have a mean of their own beside large ones.
        (
            [np.array([[10**6, 5, 6, 7]] * 2)] * 2,
            [np.array([[10**6 + 1, 6, 6, 7], [10**6 - 1, 5, 6, 8]])] * 2,
            {"x": 2},
            "the mean of those",
        ),
        # Whole numbers are right or wrong, however large others are.
        (
            [np.array([[10**6, 99, 50], [1, 2, 3], [4, 8, 9]])] * 2,
            [np.array([[10**6, 6, 50], [1, 2, 3], [5, 8, 8]])] * 2,
            {"x": 2},
            "the rest is right",
        ),
        # One number that is right in the wrong blocks is right by chance, whatever the right blocks hold.
        (
            [np.array([9.0, 1, 7]), np.array([9.0, 1, 7]), np.array([5.0, 3, 8]), np.array([2.0, 6, 4])],
            [np.array([0.0, 1, 2]), np.array([0.0, 1, 2]), np.array([5.0, 3, 8]), np.array([2.0, 6, 4])],
            MESH,
            "came out right in every block",
        ),
        # And so is another one on each device.
        (
            [np.array([1.0, 9, 9]), np.array([9.0, 2, 9]), np.array([9.0, 9, 3]), np.array([4.0, 9, 9])],
            [np.array([1.0, 5, 6]), np.array([7.0, 2, 8]), np.array([0.0, 5, 3]), np.array([4.0, 1, 7])],
            MESH,
            "right are",
        ),
        # A number next to nothing was not lost.
        (
            [np.array([[9.0, 1, 2], [3, 9, 4], [5, 0, 9]])] * 2,
            [np.array([[0, 1.0, 2], [3, 0, 4], [5, 1e-12, 0]])] * 2,
            {"x": 2},
            "it is other entries that are 0",
        ),
    ],
)
def test_nothing_is_said_more_widely_than_it_is_so(found, due, mesh, untrue):
    places = [str(block) for block in due]
    assert untrue not in arrangement(Compared(found, due, mesh, places))


def test_of_all_devices_it_is_told_along_which_axis_they_should_differ():
    found, due = [DUE[0] - 50] * 4, [DUE[0], DUE[0], DUE[1], DUE[1]]
    assert arrangement(Compared(found, due, MESH, list("0011"))).startswith("All devices along x hold the same numbers")
    due = [DUE[0], DUE[0], DUE[1], DUE[2]]
    said = arrangement(Compared(found, due, {"x": 4}, list("0012")))
    assert said.startswith("All devices hold the same numbers, and should not all hold the same.")


def summed(body):
    def answer(a, *, mesh):
        return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)

    return answer


def heard(answer):
    exercise = ProgramExercise(
        "sums_in_a_test", points=2, reference=lambda a: a.sum(0) ** 2, mesh_shapes=((4, 2), (2, 4), (8, 1))
    )

    @exercise.cases
    def _(draw):
        for columns in (3, 6):
            yield Case({"a": draw.array(16, columns, spec=P("x"))}, draw.mesh("x", "y"), P())

    @exercise.mistake
    def squared_first(a, *, mesh):
        """The squares were added up."""
        return summed(lambda block: lax.psum((block**2).sum(0), "x"))(a, mesh=mesh)

    cases = exercise.draw_cases(0)
    return judge(exercise, cases, collect("program", asks(exercise, cases), answer))


def test_a_mistake_that_is_made_in_one_branch_is_named():
    def wide_ones_squared_first(block):
        if block.shape[1] > 3:
            return lax.psum((block**2).sum(0), "x")
        return lax.psum(block.sum(0), "x") ** 2

    verdict = heard(summed(wide_ones_squared_first))
    assert verdict.mistake == "squared_first"
    assert f"{WHERE_WRONG}\n\nThe squares were added up." in verdict.words


def test_a_mistake_that_is_made_in_some_of_the_wrong_cases_is_not_named():
    def twice_where_there_are_two(block):
        if block.shape[0] == 8:
            return 3 + lax.psum(block.sum(0), "x") ** 2
        return lax.psum((block**2).sum(0), "x")

    assert heard(summed(twice_where_there_are_two)).mistake == ""


def test_what_was_right_on_the_same_mesh_is_not_called_wrong_on_that_mesh():
    def three_columns_at_most(block):
        total = lax.psum(block.sum(0), "x") ** 2
        return total if block.shape[1] == 3 else total.at[3:].set(jnp.sin(total[3:]))

    words = heard(summed(three_columns_at_most)).words
    assert "devices it is not" not in words


def test_of_entries_that_are_right_on_some_devices_it_is_told_which():
    due = [np.arange(20.0, dtype=np.float32).reshape(20, 1) + 50 * device for device in range(4)]
    found = [
        np.where(np.arange(20)[:, None] < (8 if device == 1 else 0), d, -7.5 - d**2) for device, d in enumerate(due)
    ]
    assert arrangement(Compared(found, due, {"x": 4}, [f"[{20 * d}:{20 * d + 20}]" for d in range(4)])) == (
        "Along dimension 0 of the blocks, right are entries 0 to 7 on device 1 (counted from 0), and no others."
    )
