"""Programs: traced once, carried as bytes, without prints and without callbacks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import aval, make_mesh, put
from grader.findings.problems import Refusal
from grader.programs.program import Program, Refused, trace
from grader.programs.walk import structure

MESH = {"x": 4, "y": 2}


def sharded_sum(a, *, noisy=False):
    def body(block):
        if noisy:
            jax.debug.print("block {}", block.sum())
            jax.debug.callback(lambda x: None, block)
        return jax.lax.psum(block.sum(), "x")

    return jax.shard_map(body, mesh=make_mesh(MESH), in_specs=P("x"), out_specs=P())(a)


def argument():
    return put(np.arange(1, 17, dtype=np.float32), P("x"), make_mesh(MESH))


def test_a_program_survives_as_bytes_and_runs():
    program = trace(sharded_sum, aval((16,), jnp.float32, P("x"), make_mesh(MESH)))
    again = Program(bytes(program.artefact))
    result = again.run(argument())
    assert result.sharding.num_devices == 8
    assert {float(s.data) for s in result.addressable_shards} == {136.0}


def test_debug_prints_are_left_out(capfd):
    def noisy(a):
        jax.debug.print("outside {}", a.sum())
        return {"total": sharded_sum(a, noisy=True), "loop": jax.lax.fori_loop(0, 3, add_and_print, a.sum())}

    def add_and_print(k, total):
        jax.debug.print("turn {}", k)
        return total + 1

    result = trace(noisy, argument()).run(argument())
    assert float(result["total"]) == 136.0 and float(result["loop"]) == 139.0
    out, err = capfd.readouterr()
    assert "outside" not in out + err and "turn" not in out + err and "block" not in out + err


@pytest.mark.parametrize("callback", ["pure", "io"])
def test_host_callbacks_are_refused_by_name(callback):
    shape = jax.ShapeDtypeStruct((16,), jnp.float32)
    call = {"pure": jax.pure_callback, "io": jax.experimental.io_callback}[callback]
    with pytest.raises(Refused) as refused:
        trace(lambda a: call(lambda x: x, shape, a), argument())
    assert refused.value.finding == Refusal("calls host", (f"{callback}_callback",))


def test_what_the_function_raises_passes_through():
    with pytest.raises(ZeroDivisionError):
        trace(lambda a: a / (1 // 0), argument())


def test_pytrees_go_in_and_come_out():
    program = trace(
        lambda tree: {"twice": 2 * tree["a"], "both": (tree["a"], tree["b"])}, {"a": argument(), "b": argument()}
    )
    out = program.run({"a": argument(), "b": argument()})
    assert np.array_equal(out["twice"], 2 * np.arange(1, 17)) and len(out["both"]) == 2


def test_equal_programs_are_equal_bytes_however_they_are_spelled():
    def one(a):
        return sharded_sum(a)

    artefact = trace(one, argument()).artefact
    assert trace(lambda b: sharded_sum(b), argument()).artefact == artefact
    assert trace(lambda b: 2 * sharded_sum(b), argument()).artefact != artefact


def test_names_of_scopes_do_not_make_programs_differ():
    def summed_in(scope):
        def scoped(a):
            with jax.named_scope(scope):
                return sharded_sum(a)

        return trace(scoped, argument()).artefact

    old = jax.__version_info__ < (0, 10, 2)
    assert (summed_in("one") == summed_in("other")) is not old


def test_what_a_function_gives_away_inside_stands_in_the_bytes():
    """Of an argument all arrays, and by the program's author; it is not deleted where the program runs."""

    def stepped(state, batch):
        jax.debug.print("a step")
        return jax.jit(lambda state, batch: (state["w"] + batch.sum(), state["n"] + 1), donate_argnums=0)(state, batch)

    def half(state, batch):
        return jax.jit(lambda w, n: (w + batch.sum(), n + 1), donate_argnums=0)(state["w"], state["n"])

    given = {"n": jnp.zeros((), jnp.int32), "w": jnp.ones(3)}, jnp.ones(2)
    assert [structure(trace(fn, *given)).donated for fn in (stepped, half)] == [(0, 1), ()]
    trace(stepped, *given).run(*given)
    assert not given[0]["w"].is_deleted()


@pytest.mark.parametrize("axis", ["é", "a\\b", "a\nb"])
def test_an_axis_that_would_end_the_compiler_is_refused_where_it_is_traced(axis):
    mesh = make_mesh({axis: 8})
    summed = jax.shard_map(lambda block: jax.lax.psum(block, axis), mesh=mesh, in_specs=P(axis), out_specs=P())
    with pytest.raises(Refused) as refused:
        trace(summed, aval((16,), jnp.float32, P(axis), mesh))
    assert refused.value.finding == Refusal("axis name", (axis,))


def test_axes_with_other_odd_names_are_as_any():
    mesh = make_mesh({'a<"b {0}': 8})
    (axis,) = mesh.axis_names
    summed = jax.shard_map(lambda block: jax.lax.psum(block, axis), mesh=mesh, in_specs=P(axis), out_specs=P())
    assert trace(summed, aval((16,), jnp.float32, P(axis), mesh)).results == [("", (2,))]


def test_thousands_of_results_are_refused_before_they_are_compiled():
    with pytest.raises(Refused) as refused:
        trace(lambda a: [a[0] + k for k in range(4000)], jnp.ones(8))
    assert refused.value.finding == Refusal("many results", ("4,000", "500"))
