"""The TPU's compiler itself, where it is installed (`make tpu`): a small program daily, the others in `make slow`."""

import pytest
from pod_programs import PROGRAMS, TWO, aval

import grader
from grader.chips import compiling
from grader.chips.compiling import NoCompiler
from grader.chips.topologies import CHIPS, topology

pytestmark = pytest.mark.needs("libtpu")


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv(compiling.CACHE, str(tmp_path))


def compiled(name):
    fn, args, on = PROGRAMS[name]
    return grader.communication(fn, *args, on=on)


def test_a_small_program_is_compiled_for_chips_that_are_not_here():
    report = compiled("sums_scattered")
    assert [(c.kind, c.axes) for c in report.collectives] == [("reduce_scatter", ("x",))]
    assert report.fits and report.flops == 2 * 1024 * 1024 * 1024


@pytest.mark.slow
def test_what_does_not_fit_is_refused_and_its_largest_arrays_are_named():
    report = compiled("too_large")
    assert report.refusal.wanted > topology("v5e:2x4").chip.room
    assert report.refusal.roomier == "v5p:2x2x2"
    assert {buffer.array.shape for buffer in report.refusal.largest} == {(65536, 65536)}


@pytest.mark.slow
def test_the_compiler_is_stopped_after_its_time():
    fn, args, on = PROGRAMS["layers"]
    with pytest.raises(NoCompiler, match="was not done after 0.1 seconds"):
        grader.communication(fn, *args, on=on, seconds=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CHIPS)
def test_a_chip_has_the_room_that_the_compiler_says(kind):
    """A product that fits nowhere: the refusal names what there is."""
    pod = f"{kind}:{'x'.join(('2', '2', '1')[: CHIPS[kind].dimensions])}"
    from jax.sharding import AbstractMesh

    mesh = AbstractMesh((topology(pod).devices,), ("x",))
    report = grader.communication(lambda a: a @ a, aval(mesh, (2**19, 2**19)), on=pod)
    assert f"exceeds available HBM ({CHIPS[kind].room / 2**30:.2f}G)" in report.refusal.words


@pytest.mark.slow
def test_several_compile_at_the_same_time():
    from concurrent.futures import ThreadPoolExecutor

    shapes = [aval(TWO, (1024 * k, 1024), "x") for k in (1, 2, 3)]
    with ThreadPoolExecutor() as pool:
        reports = list(pool.map(lambda a: grader.communication(lambda v: v @ v.T, a, on="v5e:2x4"), shapes))
    assert [report.fits for report in reports] == [True] * 3
