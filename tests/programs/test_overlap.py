"""What runs beside a transfer: products shared out fairly, and programs read for it, in loops and written out."""

import functools
import itertools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import grader
from grader.arrays.meshes import aval, make_mesh, put
from grader.lessons.collective_matmul.questions import PROGRAMS, overlap
from grader.lessons.collective_matmul.rings import GATHER, _gathered_by_ring, _send
from grader.programs.overlap import fair_shares
from grader.programs.program import trace
from grader.programs.walk import structure

N, ROWS, INNER, COLUMNS = 4, 16, 8, 12
PRODUCT = 2 * (ROWS // N) * (INNER // N) * COLUMNS  # FLOPs of one block by another


def least(products, transfers, beside):
    """The share of the worst-off transfer, by trying every group of transfers (Hall's condition)."""
    groups = itertools.chain.from_iterable(itertools.combinations(transfers, k) for k in range(1, len(transfers) + 1))
    return min(
        Fraction(sum(products[p] for p in {p for t in group for p in beside[t]}), sum(transfers[t] for t in group))
        for group in groups
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_worst_off_transfer_gets_as_much_as_it_can(seed):
    rng = np.random.default_rng(seed)
    products = {int(p): int(rng.integers(1, 9)) for p in range(rng.integers(1, 6))}
    transfers = {100 + t: int(rng.integers(1, 4)) for t in range(rng.integers(1, 6))}
    beside = {t: [p for p in products if rng.random() < 0.5] for t in transfers}
    shares = fair_shares(products, transfers, beside)
    assert shares.keys() == transfers.keys() and min(shares.values()) == least(products, transfers, beside)
    used = {p for t in transfers for p in beside[t]}
    assert sum(shares[t] * transfers[t] for t in transfers) == sum(products[p] for p in used)


def test_one_product_is_not_counted_twice():
    assert fair_shares({0: 12}, {1: 1, 2: 1, 3: 1}, {1: [0], 2: [0], 3: [0]}) == {1: 4, 2: 4, 3: 4}
    assert fair_shares({0: 12, 9: 5}, {1: 1, 2: 2}, {1: [0, 9], 2: [0]}) == {1: Fraction(17, 3), 2: Fraction(17, 3)}
    assert fair_shares({}, {1: 1}, {1: []}) == {1: 0} and fair_shares({0: 3}, {}, {}) == {}


def test_very_large_programs_are_shared_out_evenly_and_soon():
    products, transfers = dict.fromkeys(range(300), 6), dict.fromkeys(range(1000, 1200), 2)
    found = fair_shares(products, transfers, dict.fromkeys(transfers, list(products)))
    assert set(found.values()) == {Fraction(300 * 6, 200 * 2)}


def shares(body):
    """(FLOPs beside it, turns) of each collective of a program on a ring of four, the same compiled and as written."""
    mesh, shapes = make_mesh({"x": N}), ((ROWS, INNER), (INNER, COLUMNS))
    program = jax.shard_map(body, mesh=mesh, in_specs=GATHER, out_specs=P("x", None), check_vma=False)
    arrays = [aval(shape, jnp.float32, spec, mesh) for shape, spec in zip(shapes, GATHER, strict=True)]
    compiled, text = grader.communication(program, *arrays), structure(trace(program, *arrays))
    found, written = ([(c.overlappable_flops, c.times) for c in read.collectives] for read in (compiled, text))
    assert found == written
    return found


def ring(a, b, step=lambda run: run, unroll=False, send_first=False):
    """The gathering ring in a loop; `step` may wrap the body."""

    def product(k, b):
        return lax.dynamic_slice_in_dim(a, (lax.axis_index("x") - k) % N * b.shape[0], b.shape[0], axis=1) @ b

    def turn(k, carry):
        total, b = carry
        if send_first:
            b = _send(b, N, 1)
            return total + product(k + 1, b), b
        return total + product(k, b), _send(b, N, 1)

    start = product(0, b) if send_first else jnp.zeros((a.shape[0], b.shape[1]))
    total, b = lax.fori_loop(0, N - 1, step(turn), (start, b), unroll=unroll)
    return total if send_first else total + product(N - 1, b)


@pytest.mark.parametrize(
    "how, found",
    [
        ({}, [(PRODUCT, 3)]),
        ({"unroll": True}, [(PRODUCT, 1)] * 3),
        ({"send_first": True}, [(0, 3)]),  # a turn ends before the next begins
        ({"send_first": True, "unroll": True}, [(PRODUCT, 1)] * 3),
        ({"step": jax.jit}, [(PRODUCT, 3)]),
        ({"step": jax.jit, "send_first": True}, [(0, 3)]),
        ({"step": jax.jit, "send_first": True, "unroll": True}, [(PRODUCT, 1)] * 3),  # a call is what it calls
        ({"step": jax.checkpoint}, [(PRODUCT, 3)]),
    ],
)
def test_rings_in_loops_and_written_out(how, found):
    assert shares(functools.partial(ring, **how)) == found


def test_a_product_before_a_ring_that_only_gathers_hides_one_transfer_in_all():
    def first(a, b):
        own = lax.dynamic_slice_in_dim(a, lax.axis_index("x") * b.shape[0], b.shape[0], axis=1) @ b
        return own + 0 * a @ _gathered_by_ring(b, N)

    assert shares(first) == [(PRODUCT // 3, 1)] * 3

    def in_a_loop(a, b):
        own = lax.dynamic_slice_in_dim(a, lax.axis_index("x") * b.shape[0], b.shape[0], axis=1) @ b
        return own + a[:, :2] @ lax.fori_loop(0, 3, lambda k, c: _send(c, N, 1), b)

    assert shares(in_a_loop) == [(PRODUCT // 3, 3)]


def test_a_loop_of_products_can_run_beside_a_transfer_outside_of_it():
    def body(a, b):
        total = lax.fori_loop(0, 5, lambda k, c: c + a[:, :2] @ (b + k), jnp.zeros((ROWS // N, COLUMNS)))
        return total + _send(b, N, 1).sum()

    assert shares(body) == [(5 * PRODUCT, 1)]


@pytest.mark.parametrize(
    "name, found",
    {
        "gather_first": "none",
        "ring_then_multiply": "none",
        "multiply_and_send": "all",
        "send_and_multiply": "all",
        "send_and_multiply_in_loop": "none",
        "first_one_then_the_rest": "some",
    }.items(),
)
def test_the_programs_of_the_lesson(name, found):
    assert overlap(PROGRAMS[name]) == found


def test_the_lesson_shows_the_programs_it_asks_about(root):
    text = (root / "solutions/15_collective_matmul/15_collective_matmul.md").read_text()
    setting, cell = (
        next(part.split("```")[0] for part in text.split("{code-cell} ipython3\n")[1:] if word in part)
        for word in ("def send(", "def gather_first(")
    )
    space = {}
    exec(setting, space)
    exec(cell, space)
    mesh, rng = make_mesh({"x": N}), np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, (16, 16)).astype(np.float32) for _ in range(2))
    given = put(a, P("x"), mesh), put(b, P("x"), mesh)
    for name, body in PROGRAMS.items():
        programs = [
            jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
            for f in (body, space[name])
        ]
        assert all(np.array_equal(f(*given), a @ b) for f in programs)
        asked, shown = (grader.communication(f, *given).collectives for f in programs)
        assert asked == shown


@pytest.mark.parametrize("by, shift", [(1, 1), (-1, 3), (2, 2)])
def test_the_way_of_a_permute_is_read(by, shift):
    mesh = make_mesh({"y": 2, "x": N})
    program = jax.shard_map(lambda v: _send(v, N, by), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    (found,) = grader.communication(program, aval((8,), jnp.float32, P("x"), mesh)).collectives
    assert (found.axes, found.shift) == (("x",), shift)


def test_blocks_that_do_not_move_alike_have_no_way():
    mesh = make_mesh({"x": N})
    swap = [(0, 1), (1, 0), (2, 2), (3, 3)]
    program = jax.shard_map(lambda v: lax.ppermute(v, "x", swap), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    (found,) = grader.communication(program, aval((8,), jnp.float32, P("x"), mesh)).collectives
    assert found.shift == 0
