"""Of an unreduced array, every device holds the partial sum that JAX gives it, in a shard_map and outside of one."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import grader
from grader.arrays.blocks import blocks_of
from grader.arrays.meshes import make_mesh, spelled
from grader.arrays.numbers import close

pytestmark = pytest.mark.skipif(
    jax.__version_info__ < (0, 9, 2), reason="JAX before 0.9.2 has no unreduced arrays, or aborts on some of these"
)

MESH = {"x": 2, "y": 4}
GRID = np.arange(1.0, 65.0, dtype=np.float32).reshape(8, 8)
OVER_X, OVER_Y, OVER_BOTH = P(unreduced={"x"}), P(unreduced={"y"}), P(unreduced={"x", "y"})
KINDS = getattr(jax.sharding, "UnreducedKind", None)
SINCE_10 = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="JAX before 0.10 refuses this, or aborts")


@pytest.fixture(autouse=True)
def explicit_mesh():
    with jax.set_mesh(make_mesh(MESH, explicit=True)):
        yield


def unreduced(*entries, over):
    return P(*entries, unreduced={*over})


def mapped(body, spec, out, **options):
    return jax.shard_map(body, in_specs=spec, out_specs=out, **options)


def each(a, spec=OVER_Y):
    """The partial sums of all devices, stacked: without the check, shard_map passes on what each device holds."""
    return mapped(lambda v: v[None, None], spec, P("x", "y", *[None] * a.ndim), check_vma=False)(a)


def assert_as_jax_has_it(fn, *args):
    args = [jax.device_put(a, P()) if isinstance(a, np.ndarray) else a for a in args]
    found, expected = grader.replay(fn, *args), jax.jit(fn)(*args)
    assert "Stopped" not in found.facts.ended
    for one, other in zip(jax.tree.leaves(found.result), jax.tree.leaves(expected), strict=True):
        whole = jax.reshard(other, P()) if other.sharding.spec.unreduced else other
        assert one.dtype == other.dtype and close(one, np.asarray(whole))
    return found


def matmul(a, over_y=OVER_Y):
    return jnp.einsum("ij,jk->ik", jax.reshard(a, P("x", "y")), jax.reshard(a, P("y")), out_sharding=over_y)


@pytest.mark.parametrize(
    "program",
    [
        lambda a: each(matmul(a, unreduced("x", over="y")), unreduced("x", over="y")),
        lambda a: each(jnp.einsum("i,i->", *[jax.reshard(a[0], P(("x", "y")))] * 2, out_sharding=OVER_BOTH), OVER_BOTH),
        lambda a: each(jax.reshard(a, OVER_Y)),
        lambda a: each(
            jax.reshard(jax.reshard(a, P("y", "x")), unreduced(None, "x", over="y")), unreduced(None, "x", over="y")
        ),
        lambda a: each(jax.reshard(jax.reshard(a, P("x", "y")), OVER_BOTH), OVER_BOTH),
        lambda a: each(jax.reshard(jax.reshard(a, P("x")), unreduced("y", over="x")), unreduced("y", over="x")),
        pytest.param(lambda a: each(jax.reshard(jax.reshard(a, OVER_Y), OVER_BOTH), OVER_BOTH), marks=SINCE_10),
        lambda a: each(lax.reduce_sum(jax.reshard(a, P(("x", "y"))), axes=(0,), out_sharding=OVER_X), OVER_X),
        pytest.param(
            lambda a: each(
                lax.reduce_sum(matmul(a, P("x", unreduced={"y"})), axes=(0,), out_sharding=OVER_BOTH), OVER_BOTH
            ),
            marks=SINCE_10,
        ),
        lambda a: jax.reshard(matmul(a) + matmul(a), P("x", "y")),
        lambda a: each(jax.reshard(a, OVER_Y) * jax.reshard(a, P(reduced={"y"}))),
        lambda a: each(lax.fori_loop(0, 3, lambda k, v: v + v, jax.reshard(a, OVER_Y))),
        lambda a: each(lax.cond(a[0, 0] > 5, lambda v: v, lambda v: v + v, jax.reshard(a, OVER_Y))),
        lambda a: each(jnp.ones_like(jax.reshard(a, OVER_Y))),
        matmul,
    ],
)
def test_outside_of_a_shard_map_partial_sums_are_those_of_jax(program):
    assert_as_jax_has_it(program, GRID)


@pytest.mark.parametrize(
    "body, spec, out",
    [
        (lambda v: lax.psum(v, "y"), OVER_Y, P()),
        (lambda v: lax.psum_scatter(v, "y", tiled=True), OVER_Y, P("y")),
        (lambda v: lax.psum(v, "y"), OVER_BOTH, OVER_X),
        (lambda v: v, OVER_Y, OVER_Y),
        (lambda v: lax.pcast(v.sum(0), "y", to="unreduced"), P("y"), OVER_Y),
        (lambda v: lax.pcast(v, "y", to="reduced"), P("x"), P("x", reduced={"y"})),
        (lambda v: lax.all_gather(v, "y", tiled=True, to="reduced"), P("y"), P(reduced={"y"})),
        (lambda v: v + v, P(reduced={"y"}), P(reduced={"y"})),
    ],
)
def test_inside_a_shard_map_each_collective_gives_what_jax_gives(body, spec, out):
    def program(a):
        through = mapped(body, spec, out)(matmul(a, spec) if spec.unreduced == {"y"} else jax.reshard(a, spec))
        return each(through, out) if out.unreduced else through

    sent = [frame.transfer for frame in assert_as_jax_has_it(program, GRID).facts.frames if frame.transfer]
    assert len(sent) == ("all_gather" in (names := body.__code__.co_names)) + ("psum" in names) + (
        "psum_scatter" in names
    )


def test_gradients_of_a_layer_gathered_before_use_come_back_reduce_scattered():
    def layer(w, a):
        whole = mapped(lambda v: lax.all_gather(v, "y", tiled=True, to="reduced"), P("y"), P(reduced={"y"}))(w)
        return jnp.sin(mapped(lambda v, full: v @ full, (P("y"), P(reduced={"y"})), P("y"))(a, whole) / 1e3).sum()

    rows = jax.device_put(GRID, P("y"))
    found = assert_as_jax_has_it(jax.grad(layer, argnums=(0, 1)), rows, rows)
    assert {f.transfer.name for f in found.facts.frames if f.transfer and f.backward} == {"psum_scatter"}


def test_an_argument_may_be_unreduced():
    partial = jax.jit(matmul)(GRID)
    assert_as_jax_has_it(each, partial)
    seen = blocks_of(partial)
    assert seen.partial_over == ("y",) and close(sum(seen.values[:4]), GRID @ GRID)


@pytest.mark.skipif(not KINDS, reason="JAX before 0.11 leaves sums alone unreduced")
@pytest.mark.parametrize("reduce, kind", [(lax.reduce_max, "max"), (lax.reduce_min, "min")])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_a_maximum_may_be_unreduced(reduce, kind, dtype):
    spec = P(unreduced={"y"}, unreduced_kind=getattr(KINDS, kind))

    def program(a):
        highest = reduce(jax.reshard(a, P("y")), axes=(0,), out_sharding=spec)
        one = {"max": lax.pmax, "min": lax.pmin}[kind]
        return (
            each(highest, spec),
            jax.reshard(highest, P()),
            mapped(lambda v: one(v, "y"), spec, P())(highest),
            highest,
        )

    assert_as_jax_has_it(program, (GRID % 7 - 20).astype(dtype))


def test_unreduced_arrays_on_two_meshes_are_refused_in_a_sentence():
    other = NamedSharding(make_mesh({"z": 8}, explicit=True), P(unreduced={"z"}))
    found = grader.replay(lambda a: (jax.reshard(a, OVER_Y), jax.reshard(a, other)), GRID)
    assert found.result is None and found.facts.ended.startswith(
        "Stopped at the start: this program has unreduced arrays"
    )


def test_a_spec_is_written_as_its_author_wrote_it():
    assert spelled(P("x", None, unreduced={"z", "y"})) == "P('x', None, unreduced={'y', 'z'})"
    assert spelled(P(reduced={"y"})) == "P(reduced={'y'})"
    assert "results go out by P(unreduced={'y'})" in str(
        grader.replay(functools.partial(mapped(lambda v: v, OVER_Y, OVER_Y)), matmul(GRID))
    )
