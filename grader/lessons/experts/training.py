"""§ 10: gradients of a layer of experts, on a mesh of data × expert."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, Besides, BytesSent, Case, ProgramExercise
from grader.lessons.experts.tokens import expert
from grader.lessons.shared import bytes_sent, device_map

BOTH = ("data", "expert")
PARAMS = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
SPECS = PARAMS, P(BOTH), P(BOTH)


def _worked(x, chosen, w_in, w_out):
    """What the chosen expert makes of each token, all on one device."""
    results = expert(x, w_in, w_out)  # [E, T, D]
    return jnp.einsum("tn,ntd->td", jax.nn.one_hot(chosen, len(w_in)), results)


def _there_and_back(x, chosen, w_in, w_out):
    """The same with the experts on their devices; a slot for every token, so that nobody is dropped."""
    mine = jax.nn.one_hot(chosen, lax.axis_size("expert"))
    there = lax.all_to_all(mine.T[:, :, None] * x, "expert", 0, 0, tiled=True)
    back = lax.all_to_all(expert(there, w_in[0], w_out[0]), "expert", 0, 0, tiled=True)
    return jnp.einsum("tn,ntd->td", mine, back)


def _squares(p, x, y, work=_worked):
    logits = x @ p["router"]
    gate = jnp.max(jax.nn.softmax(logits), axis=1, keepdims=True)
    return jnp.mean((x + gate * work(x, jnp.argmax(logits, axis=1), p["w_in"], p["w_out"]) - y) ** 2)


moe_gradients = ProgramExercise(
    "moe_gradients", points=6, reference=jax.jit(jax.value_and_grad(_squares)), mesh_shapes=((4, 2), (2, 4), (1, 8))
)


@moe_gradients.cases
def _(draw):
    mesh = draw.mesh(*BOTH)
    data, n = mesh["data"], mesh["expert"]
    t, d, f = draw.lengths(3, divisible_by=4)
    tokens = t * data * n
    shapes = {"router": (d, n), "w_in": (n, d, f), "w_out": (n, f, d)}
    params = {name: Array(draw.values(*shape) / 16, PARAMS[name]) for name, shape in shapes.items()}
    # More digits than bfloat16 has.
    arrays = {name: Array(draw.values(tokens, d) / 8 + np.float32(1 / 512), P(BOTH)) for name in ("x", "y")}
    # Two exchanges forwards, their transposes, and every gradient where it is to be added up; the loss.
    sent = (
        4 * bytes_sent("all_to_all", n * t * d, n)
        + bytes_sent("all_reduce", d * n + 1, data * n)
        + bytes_sent("all_reduce", 2 * d * f + d * n + 1, data)
        + bytes_sent("all_reduce", d * n + 1, n)
    )
    # Sums on the way: the logits over D, the experts over D and F, their transposes, the mean over tokens and D.
    return Case(
        {"params": params, **arrays},
        mesh,
        (P(), PARAMS),
        limits=[BytesSent(sent), Besides(1)],  # the mean of the devices' losses may be left to the compiler
        roundings=4 * (d + f) + 2 * tokens,
    )


def _local(p, x, y):
    return _squares(p, x, y, _there_and_back)


def _reduced(params, x, y, mesh, router, experts, check_vma=False):
    """Loss and gradients of each device's own mean; `router` and `experts` say what becomes of the gradients."""

    def body(p, x, y):
        value, grads = jax.value_and_grad(_local)(p, x, y)
        return lax.pmean(value, BOTH), {name: (router if name == "router" else experts)(g) for name, g in grads.items()}

    return device_map(body, mesh, SPECS, (P(), PARAMS), check_vma)(params, x, y)


def _mean_over(*axes):
    return lambda g: lax.pmean(g, axes)


def _mean_of_experts(g):
    """What comes home to an expert is a sum over its tokens; each device took the mean over its own."""
    return lax.pmean(g, "data") / lax.axis_size("expert")


def _as_it_is(g):
    return g


@moe_gradients.mistake
def mean_over_all_axes(params, x, y, *, mesh):
    """All gradients were averaged over all axes. Along `expert` the devices have *different* experts: their mean is
    that of none of them, and every expert makes the same step. Which leaves are copies along `expert`, and which are
    not?"""
    return _reduced(params, x, y, mesh, _mean_over(*BOTH), _mean_over(*BOTH))


@moe_gradients.mistake
def router_not_reduced(params, x, y, *, mesh):
    """Each device has its own gradient of the router, from its own tokens, and out_specs promise copies. After one step
    the devices would route by different routers. Over which axes is the router whole?"""
    return _reduced(params, x, y, mesh, _as_it_is, _mean_of_experts)


@moe_gradients.mistake
def router_over_data_only(params, x, y, *, mesh):
    """The router's gradient was averaged over `data` as the experts' were. But the router is also the same along
    `expert`, where the devices have other tokens."""
    return _reduced(params, x, y, mesh, _mean_over("data"), _mean_of_experts)


@moe_gradients.mistake
def experts_not_reduced(params, x, y, *, mesh):
    """The router is right. An expert has a copy in every row of `data`, each of which saw other tokens, and these
    gradients were never added up: the copies would drift apart."""
    return _reduced(params, x, y, mesh, _mean_over(*BOTH), lambda g: g / lax.axis_size("expert"))


@moe_gradients.mistake
def experts_counted_too_often(params, x, y, *, mesh):
    """The ratios of the experts are the number of devices along `expert`. What travelled back to an expert is already
    the *sum* over the tokens of all devices in its row, and each of them had divided by its own tokens only. By how
    many tokens must the whole be divided?"""
    return _reduced(params, x, y, mesh, _mean_over(*BOTH), _mean_over("data"))


@moe_gradients.mistake
def added_up_already(params, x, y, *, mesh):
    """Every gradient is as many times too large as there are devices: they were added up, by you, or by JAX, which with
    the check on adds up what is held as copies. What was added are gradients of *means*, each over one device's tokens.
    By what is the sum to be divided?"""
    return _reduced(params, x, y, mesh, _as_it_is, _as_it_is, check_vma=True)
