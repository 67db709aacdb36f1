"""The questions about 04_automatic that later lessons ask, held against what JAX does."""

import jax
import jax.numpy as jnp
import numpy as np
from asking import asked
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh, put
from grader.chips.report import communication
from grader.lessons.automatic import review


def laid(given):
    """An array as a question describes it, on the mesh that it names."""
    spec, mesh = given.get("spec", ("x", "y")), given.get("mesh", {"x": 4, "y": 2})
    return put(np.ones(given.get("shape", (16, 32)), np.float32), P(*spec), make_mesh(mesh))


def test_the_layout_is_that_of_jax():
    for question in asked(review.layout_of_a_transpose):
        spec = jax.jit(lambda v: jnp.sin(v).T)(laid(question.given)).sharding.spec
        assert (*spec, None, None)[:2] == question.answer


def test_the_axis_is_that_of_the_compiled_program():
    for question in asked(review.collective_of_a_sum):
        program = communication(lambda v, dim=question.given["dim"]: v.sum(dim), laid(question.given))
        axes = [collective.axes for collective in program.collectives]
        assert axes == ([] if question.answer == "none" else [(question.answer,)])


def test_the_bytes_are_those_of_the_compiled_program():
    for question in asked(review.bytes_of_a_sum):
        assert communication(lambda v: v.sum(0), laid(question.given)).bytes_sent == question.answer


def test_the_bytes_of_making_are_those_of_the_compiled_program():
    for question in asked(review.bytes_where_parameters_are_made):
        shape, out = question.given["shape"], laid(question.given).sharding if question.given["cut"] else None
        made = jax.jit(lambda shape=shape: jnp.ones(shape), out_shardings=out).lower().compile()
        assert made.memory_analysis().output_size_in_bytes == question.answer
