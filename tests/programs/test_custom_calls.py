"""Calls by name: what JAX writes is let through, and nothing that only bears the same name."""

import jax
import jax.numpy as jnp
import pytest
from jax.extend.mlir import ir

from grader.jax_versions import mlir_context
from grader.programs.custom_calls import foreign
from grader.programs.program import trace
from grader.programs.walk import structure

TOP = "mhlo.attributes = {k = 3 : i64}, mhlo.version = 1 : i64"


def calls(name, says, operands, results):
    values = ", ".join(f"%arg{k}" for k in range(len(operands)))
    made = f"%0:{len(results)} = " if results else ""
    given = ", ".join(f"%arg{k}: {kind}" for k, kind in enumerate(operands))
    text = (
        f"func.func @main({given}) {{ {made}stablehlo.custom_call @{name}({values}) {{{says}}} : "
        f"({', '.join(operands)}) -> ({', '.join(results)})\n return }}"
    )
    with mlir_context():
        return list(foreign(ir.Module.parse(text).operation))


@pytest.mark.parametrize(
    ("name", "says", "operands", "results"),
    [
        ("mhlo.topk", TOP, ["tensor<8x8xf32>"], ["tensor<8x3xf32>", "tensor<8x3xi32>"]),
        ("mhlo.erf", "mhlo.version = 1 : i64", ["tensor<8xf32>"], ["tensor<8xf32>"]),
        ("Sharding", 'mhlo.sharding = "{replicated}"', ["tensor<8xf32>"], ["tensor<8xf32>"]),
        ("annotate_device_placement", "has_side_effect = true", ["tensor<8xf32>"], ["tensor<8xf32>"]),
    ],
)
def test_what_jax_calls_is_let_through(name, says, operands, results):
    assert calls(name, says, operands, results) == []


@pytest.mark.parametrize(
    ("name", "says", "operands", "results"),
    [
        ("mhlo.topk", TOP, ["tensor<8x2xf32>"], ["tensor<8x3xf32>", "tensor<8x3xi32>"]),
        ("mhlo.topk", TOP, ["tensor<8x8xf32>"], ["tensor<8x4xf32>", "tensor<8x4xi32>"]),
        ("mhlo.topk", TOP, ["tensor<8x8xf32>"], ["tensor<8x3xf32>", "tensor<9x3xi32>"]),
        ("mhlo.topk", TOP, ["tensor<8x8xf32>"], ["tensor<8x3xf64>", "tensor<8x3xi32>"]),
        ("mhlo.topk", TOP, ["tensor<8x8xf32>"], ["tensor<8x3xf32>"]),
        ("mhlo.topk", TOP, ["tensor<f32>"], ["tensor<3xf32>", "tensor<3xi32>"]),
        ("mhlo.topk", "", ["tensor<8x8xf32>"], ["tensor<8x3xf32>", "tensor<8x3xi32>"]),
        ("mhlo.erf", "", ["tensor<8xf32>"], ["tensor<9xf32>"]),
        ("Sharding", "", ["tensor<8xf32>"], ["tensor<4xf32>"]),
        ("Sharding", 'backend_config = "x"', ["tensor<8xf32>"], ["tensor<8xf32>"]),
        ("Sharding", "called_computations = [@main]", ["tensor<8xf32>"], ["tensor<8xf32>"]),
        ("annotate_device_placement", "", ["tensor<8xf32>"], ["tensor<8xi32>"]),
        ("annotate_device_placement", "", [], []),
        ("SPMDFullToShardShape", "", ["tensor<8xf32>"], ["tensor<4xf32>"]),
        ("xla.sdy.GlobalToLocalShape", "", ["tensor<8xf32>"], ["tensor<4xf32>"]),
        ("lapack_sgetrf_ffi", "", ["tensor<4096x16xf32>"], ["tensor<1xf32>"]),
        ("system", "", ["tensor<8xf32>"], ["tensor<8xf32>"]),
    ],
)
def test_what_only_bears_such_a_name_is_not(name, says, operands, results):
    assert calls(name, says, operands, results) == [name]


def test_lapack_is_refused_whatever_its_shapes():
    found = structure(trace(jnp.linalg.inv, jnp.eye(8))).foreign
    assert found and all(name.startswith("lapack_") for name in found)


def test_top_k_the_error_function_and_placement_are_operations_of_the_devices():
    def program(x):
        largest, where = jax.lax.top_k(x, 3)
        return largest, where, jax.scipy.special.erf(x), jax.nn.gelu(x)

    assert structure(trace(program, jnp.eye(8))).foreign == ()
