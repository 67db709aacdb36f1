"""The questions that later lessons ask about FSDP: held against arrays and programs of that size."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from asking import asked
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import aval, make_mesh
from grader.lessons.fsdp import review as questions
from grader.programs.program import trace
from grader.programs.walk import structure


def numbers(question):
    return [int(found) for found in re.findall(r"\d+", question.ask)]


def test_bytes_of_a_stage_are_those_that_arrays_in_shares_have():
    for question in asked(questions.bytes_of_a_stage):
        *_, devices, stage = numbers(question)
        if devices > len(jax.devices()):
            continue
        mesh = make_mesh({"x": devices})
        held = sum(
            jax.device_put(np.ones(devices, dtype), NamedSharding(mesh, P("x") if k < stage else P()))
            .addressable_shards[0]
            .data.nbytes
            for k, dtypes in enumerate(([np.float32] * 3, [jnp.bfloat16], [jnp.bfloat16]))
            for dtype in dtypes
        )
        assert question.answer == pytest.approx(held / devices)


def test_gathers_of_a_step_are_those_of_a_scan_under_checkpoint():
    mesh = make_mesh({"x": 2})

    @jax.checkpoint
    def layer(h, share):
        return jnp.tanh(h @ lax.all_gather(share, "x", tiled=True)), None

    def mean(stack, h):
        return lax.pmean(jnp.mean(lax.scan(layer, h, stack)[0]), "x")

    step = jax.value_and_grad(jax.shard_map(mean, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P()))
    for question in list(asked(questions.gathers_of_a_step))[:3]:
        layers = numbers(question)[0]
        shapes = ((layers, 2, 2), P(None, "x")), ((2, 2), P("x"))
        found = structure(trace(step, *(aval(shape, np.float32, spec, mesh) for shape, spec in shapes)))
        kind = "all_gather" if "all_gathers" in question.ask else "reduce_scatter"
        assert question.answer == sum(c.times for c in found.collectives if c.kind == kind)


def test_between_slices_a_share_is_added_up():
    for question in asked(questions.bytes_between_slices):
        _, rows, columns, devices, slices = numbers(question)  # the first is that of float32
        assert question.answer == 2 * (slices - 1) * (4 * rows * columns // devices) // slices


def test_a_sum_of_means_is_as_often_too_large_as_there_are_devices():
    for question in asked(questions.gradient_of_shares):
        devices, gradient = numbers(question)[0], numbers(question)[-1]
        parts = np.full(devices, gradient)
        assert question.answer == parts.sum() == devices * parts.mean()
