"""The review questions about 05_shard_map: answers worked out otherwise than the questions do."""

import jax
import jax.numpy as jnp
from asking import asked
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh
from grader.lessons.shard_map import review as questions


def test_the_shape_inside_is_what_shard_map_shows():
    for question in asked(questions.shape_inside):
        spec, seen = question.given["spec"], []
        body = jax.shard_map(
            lambda block, seen=seen: seen.append(block.shape) or block,
            mesh=make_mesh(question.given["mesh"]),
            in_specs=spec,
            out_specs=spec,
        )
        jax.eval_shape(body, jax.ShapeDtypeStruct(question.given["shape"], jnp.float32))
        assert question.answer == seen[0]


def test_the_result_is_what_shard_map_makes():
    for question in asked(questions.result_of_out_specs):
        body = jax.shard_map(
            lambda shape=question.given["block"]: jnp.zeros(shape),
            mesh=make_mesh(question.given["mesh"]),
            in_specs=(),
            out_specs=question.given["spec"],
            check_vma=False,
        )
        assert question.answer == jax.eval_shape(body).shape


def test_a_broken_promise_shows_device_0():
    for question in asked(questions.honest_out_specs):
        mesh = make_mesh({"x": question.given["devices"]})
        body = jax.shard_map(jnp.sum, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
        assert question.answer == int(body(jnp.asarray(question.given["numbers"])))


def test_what_varies_after_a_sum():
    """By the type that JAX gives the sum."""
    mesh = make_mesh({"x": 4, "y": 2})
    for question in asked(questions.varying_after_a_sum):
        spec, axis, seen = question.given["spec"], question.given["summed"], []
        body = jax.shard_map(
            lambda block, axis=axis, seen=seen: seen.append(jax.typeof(jax.lax.psum(block, axis))) or block,
            mesh=mesh,
            in_specs=spec,
            out_specs=spec,
        )
        jax.eval_shape(body, jax.ShapeDtypeStruct((16, 16), jnp.float32))
        assert question.answer == vma(seen[0])


def vma(kind):
    """The axes along which a value of this type varies."""
    return set(kind.vma if hasattr(kind, "vma") else kind.manual_axis_type.varying)
