"""What differs between JAX's versions, and what is JAX's own affair, is asked for in one file."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import grader
from grader.jax_versions import BY_AXES, has_backend, mlir_context, numbers_for, one_mlir_context
from grader.programs.program import trace

PRIVATE = re.compile(r"\b_src\b|\bjaxlib\._|\bjaxlib import _|__version_info__|\bjax\.__version__")
LATER = re.compile(r"\blax\.pcast\(")  # what the oldest JAX has not


def test_no_other_file_asks_for_a_version_or_reaches_into_jax():
    package = Path(grader.__file__).parent
    texts = {str(f.relative_to(package)): f.read_text() for f in package.rglob("*.py")}
    for asked in (PRIVATE, LATER):
        assert {file for file, text in texts.items() if asked.search(text)} == {"jax_versions.py"}


def test_a_backend_that_runs_is_known():
    assert has_backend()


@pytest.mark.parametrize(
    "named, groups",
    [
        ("mesh['a'=4,'b'=2] {'a'}", "{0,2,4,6},{1,3,5,7}"),
        ("mesh['a'=4,'b'=2] {'a','b'}", "{0,1,2,3,4,5,6,7}"),
        ("mesh['a'=2,'b'=4] {'b':(2)2}", "{0,1},{2,3},{4,5},{6,7}"),
        ("mesh['a'=2,'b'=4], device_ids=([2,2,2]T(0,2,1)) {'b':(2)2}", "{0,2},{1,3},{4,6},{5,7}"),
    ],
)
def test_groups_named_by_mesh_axes_are_written_out(named, groups):
    assert BY_AXES.sub(numbers_for, f"replica_groups={named}, x") == f"replica_groups={{{groups}}}, x"


def test_a_gathered_value_is_replicated_if_asked_for_and_else_varies():
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

    def gathered(to):
        body = lambda block: grader.all_gather(block, "x", tiled=True, to=to)  # noqa: E731
        return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())(jnp.arange(8))

    assert gathered("invarying").tolist() == [*range(8)]
    with pytest.raises(ValueError):
        gathered("varying")


def test_in_one_context_a_program_has_the_same_bytes():
    def program():
        mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
        rows = jax.ShapeDtypeStruct((8, 3), jnp.float32, sharding=NamedSharding(mesh, P("x")))
        summed = jax.shard_map(lambda a: jax.lax.psum(a.sum(0), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
        return trace(summed, rows).artefact

    def contexts():
        return {*(mlir_context() for _ in range(30))}  # JAX 0.12 makes a new one after every ten

    alone = program()
    assert len(contexts()) > 1
    with one_mlir_context():
        assert [program(), program()] == [alone, alone]
        shared = contexts()
        with one_mlir_context():
            assert contexts() == shared
        assert contexts() == shared and len(shared) == 1
    assert len(contexts()) > 1
