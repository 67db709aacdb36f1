"""Programs that are left to the compiler: what it may send, on every mesh, and what must not slip through."""

import answering
import jax
import jax.numpy as jnp
import pytest
import recorded
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.exercises.case import Case, Draw
from grader.exercises.collecting import asks, collect
from grader.exercises.forms import ProgramExercise
from grader.exercises.limits import BytesSent, Move, Moves
from grader.explaining.explained import explained
from grader.lessons import find
from grader.programs.collectives import ring_bytes

MESHES = ((4, 2), (2, 4), (8, 1), (1, 8))


def laid(value, mesh, *spec):
    return lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))


def exercise(reference, case):
    made = ProgramExercise("left_to_the_compiler", points=4, reference=reference, by_compiler=True)
    made.cases(case)
    return made


def verdict(made, answer):
    cases = made.draw_cases(5, thorough=True)
    return explained(made, cases, collect(made.form, asks(made, cases), answer))


def product(allowed, out=P(), sent=None):
    """A · B, J cut over x in both: each device has one part of the sum."""

    def case(draw: Draw):
        mesh, (i, j, k) = draw.mesh("x", "y"), draw.lengths(3, divisible_by=8)
        arrays = {"a": draw.array(i, j, spec=P(None, "x")), "b": draw.array(j, k, spec=P("x", None))}
        most = [] if sent is None else [BytesSent(round(sent * ring_bytes("all_reduce", 4 * i * k, mesh["x"])))]
        moves = [Move(kind, ("x",), (i, k)) for kind in allowed]
        if out == P("x", None):  # on 2 × 4 XLA lets devices along y add up different rows, and then permutes them
            share = i // mesh["x"], k
            moves += [Move("collective_permute", ("x", "y"), share), *(Move(kind, ("x",), share) for kind in allowed)]
        return Case(arrays, mesh, out, limits=[*most, Moves(tuple(moves))])

    return exercise(lambda a, b: a @ b, case)


def elementwise():
    def case(draw: Draw):
        i, j = draw.lengths(2, divisible_by=8)
        return Case({"v": draw.array(i, j, spec=P("x", "y"))}, draw.mesh("x", "y"), P("x", "y"), limits=[Moves(())])

    return exercise(lambda v: 2 * v, case)


def plain(a, b, *, mesh):
    return laid(a @ b, mesh)


def gathers(a, b, *, mesh):
    return laid(laid(a, mesh) @ laid(b, mesh), mesh)


def test_every_mesh_is_tried():
    cases = product(["all_reduce"]).draw_cases(5, thorough=True)
    assert [tuple(c.mesh.values()) for c in cases] == [*MESHES, (4, 2)]


def test_what_the_case_allows_is_accepted_on_every_mesh():
    found = verdict(product(["all_reduce"], sent=1), plain)
    assert found.passed, found.failure


@pytest.mark.parametrize("kind", ["all_reduce", "reduce_scatter"])
@pytest.mark.parametrize("out", [P(), P("x", None)])
def test_a_reduce_scatter_and_an_all_reduce_are_accepted_alike(kind, out):
    """A CPU writes the one where a TPU would write the other."""
    found = verdict(product([kind], out), lambda a, b, *, mesh: laid(a @ b, mesh, *out))
    assert found.passed, found.failure


def test_a_program_that_sends_more_is_refused_with_its_listing():
    found = verdict(product(["all_reduce"]), gathers)
    assert found.failure.check == "communication" and 0 < found.points < found.worth
    (why,) = found.failure.findings
    assert {(one.collective, one.axes) for one in why.transfers} == {("all_gather", ("x",))}
    assert [(kind, axes) for kind, axes, _ in why.allowed] == [("all_reduce", ("x",))]


def test_where_nothing_is_needed_nothing_is_allowed():
    assert verdict(elementwise(), lambda v, *, mesh: v + v).passed
    found = verdict(elementwise(), lambda v, *, mesh: laid(2 * laid(v, mesh), mesh, "x", "y"))
    assert found.failure.check == "communication" and found.failure.findings[0].allowed == ()


def test_how_often_is_a_matter_of_bytes():
    def thrice(a, b, *, mesh):
        total = laid(a @ b, mesh)
        return (total + laid((2 * a) @ b, mesh) + laid(a @ (3 * b), mesh)) / 6

    assert verdict(product(["all_reduce"]), thrice).passed
    found = verdict(product(["all_reduce"], sent=1), thrice)
    assert found.failure.check == "communication" and found.failure.findings[0].what == "compiled bytes"


def test_without_moves_bytes_alone_decide():
    def case(draw: Draw):
        mesh, (i, j) = draw.mesh("x", "y"), draw.lengths(2, divisible_by=8)
        return Case({"v": draw.array(i, j, spec=P("x", "y"))}, mesh, P("x", "y"), limits=[BytesSent(0)])

    made = exercise(lambda v: 2 * v, case)
    assert verdict(made, lambda v, *, mesh: 2 * v).passed
    (why,) = verdict(made, lambda v, *, mesh: laid(2 * laid(v, mesh), mesh, "x", "y")).failure.findings
    assert (why.what, why.expected) == ("compiled bytes", 0)


@pytest.mark.parametrize(
    "body, passes",
    [
        (lambda a, b: lax.psum(a @ b, "x"), True),
        (lambda a, b: lax.all_gather(a, "x", axis=1, tiled=True) @ lax.all_gather(b, "x", axis=0, tiled=True), False),
    ],
)
def test_shard_map_is_a_way_to_say_it_too(body, passes):
    def answer(a, b, *, mesh):
        specs = P(None, "x"), P("x", None)
        return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(a, b)

    found = verdict(product(["all_reduce"], sent=1), answer)
    assert found.passed == passes, found.failure


def by_hand(body):
    def answer(a, b, *, mesh):
        specs = P(None, "x"), P("x", None)
        return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(a, b)

    return answer


def summed_in_a_loop(a, b):
    return lax.fori_loop(0, 8, lambda k, c: lax.psum(c, "x") / lax.psum(1, "x"), lax.psum(a @ b, "x"))


def summed_in_an_endless_loop(a, b):
    total = lax.psum(a @ b, "x")
    more = lax.while_loop(
        lambda c: c[0] < jnp.abs(total).sum(), lambda c: (c[0] * 2, lax.psum(c[1], "x") / 2), (jnp.float32(1), total)
    )
    return total + 0 * more[1]


@pytest.mark.parametrize("body", [summed_in_a_loop, summed_in_an_endless_loop])
def test_loops_hide_nothing(body):
    assert not verdict(product(["all_reduce"], sent=1), by_hand(body)).passed


def test_a_branch_of_the_compilers_own_hides_nothing():
    """Every device takes the same branch, so it may run; but how often it sends is not known beforehand."""

    def answer(a, b, *, mesh):
        both = (lambda: laid(a @ b, mesh), lambda: laid(laid(a, mesh) @ laid(b, mesh), mesh))
        return lax.cond(a.sum() > 1e9, *both)

    assert not verdict(product(["all_reduce"], sent=1), answer).passed


@pytest.mark.parametrize(
    "answer, check",
    [
        (lambda a, b, *, mesh: laid(jnp.zeros((a.shape[0], b.shape[1])), mesh), "values"),
        (lambda a, b, *, mesh: laid(a @ b, mesh, "x"), "sharding"),
        (lambda a, b, *, mesh: laid(a @ b, mesh, "z"), "runs"),
        (lambda a, b, *, mesh: lax.with_sharding_constraint(a @ b, P()), "runs"),
        (lambda a, b, *, mesh: by_hand(lambda p, q: p @ q)(a, b, mesh=mesh), "values"),  # claims copies that differ
    ],
)
def test_the_other_rungs_stand(answer, check):
    found = verdict(product(["all_reduce"]), answer)
    assert found.points == 0 or check == "sharding"
    assert found.failure.check == check


def test_a_mistake_is_told_by_what_the_compiler_sends():
    """Two wrong programs with the same values and layout, told apart by their collectives alone."""
    made = product(["all_reduce"])

    @made.mistake
    def gathers_twice(a, b, *, mesh):
        """Both operands are gathered."""
        return gathers(a, b, mesh=mesh)

    @made.mistake
    def gathers_once(a, b, *, mesh):
        """One operand is gathered."""
        return laid(laid(a, mesh) @ b, mesh)

    assert verdict(made, lambda a, b, *, mesh: gathers(1 * a, b, mesh=mesh)).failure.mistake == "gathers_twice"


@pytest.mark.parametrize("shape", MESHES)
def test_axes_of_one_device_ask_for_nothing(shape):
    mesh = dict(zip("xy", shape, strict=True))
    made = exercise(
        lambda v: v.sum(0),
        lambda draw: Case(
            {"v": Draw(draw.rng, shape).array(16, 24, spec=P("x", "y"))},
            mesh,
            P("y"),
            limits=[Moves((Move("all_reduce", ("x",), (24 // mesh["y"],)),))],
        ),
    )
    assert verdict(made, lambda v, *, mesh: v.sum(0)).passed


def test_an_explicit_mesh_is_left_to_the_compiler_too():
    def case(draw: Draw):
        mesh, (i, j) = draw.mesh("x", "y"), draw.lengths(2, divisible_by=8)
        return Case({"v": draw.array(i, j, spec=P("x", "y"))}, mesh, P("x", "y"), limits=[Moves(())], explicit=True)

    found = verdict(exercise(lambda v: 2 * v, case), lambda v, *, mesh: v + v)
    assert found.passed, found.failure


def test_the_turns_of_a_loop_are_counted_behind_the_compilers_copies():
    by_scan = recorded.answer(recorded.find_row("train_tp", "scan"))
    assert answering.verdict(find("train_tp"), by_scan, seed=0).passed
