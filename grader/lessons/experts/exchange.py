"""§ 4: tokens on their way to the experts and back, by two all_to_alls."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import BytesSent, Case, ProgramExercise, Turns
from grader.lessons.experts.tokens import LAYER, added_up, drawn_layer, expert
from grader.lessons.shared import bytes_sent, device_map

MESHES = (4,), (2,), (8,), (6,)


def _in_time(experts, n: int, capacity: int) -> np.ndarray:
    """Which choices bool[T, K] find room: on each of n devices the first `capacity` for every expert."""
    own = experts.reshape(n, -1)
    wants = own[:, :, None] == np.arange(n)
    before = np.cumsum(wants, axis=1) - 1
    return (np.take_along_axis(before, own[:, :, None], axis=2)[:, :, 0] < capacity).reshape(experts.shape)


def _layer(x, weights, experts, w_in, w_out, capacity):
    n = len(w_in)
    kept = _in_time(experts, n, capacity)
    y = added_up(x, weights, experts, w_in, w_out, kept)
    return y, (~kept).reshape(n, -1).sum(axis=1, dtype=np.int32)


moe_all_to_all = ProgramExercise("moe_all_to_all", points=6, reference=_layer, mesh_shapes=MESHES, piece=True)


@moe_all_to_all.cases
def _(draw):
    mesh = draw.mesh("expert")
    n = mesh["expert"]
    arrays = drawn_layer(draw, n)
    tokens, d = arrays["x"].value.shape
    k = arrays["experts"].value.shape[1]
    capacity = -(-tokens * k // n // n) - (n == 2)  # an expert's share of a device's choices; with two, one less
    sent = 2 * bytes_sent("all_to_all", n * capacity * d, n)
    return Case(
        {**arrays, "capacity": capacity},
        mesh,
        (P("expert"), P("expert")),
        limits=[Turns({"all_to_all": 2}), BytesSent(sent)],
    )


def _exchange(buffer):
    return lax.all_to_all(buffer, "expert", 0, 0, tiled=True)


def _running(choice, n, k=1):
    """How many choices before each want the same expert, of tokens that make k each."""
    wants = (choice[:, None] == jnp.arange(n)).astype(jnp.int32)
    return jnp.take_along_axis(jnp.cumsum(wants, axis=0) - 1, choice[:, None], axis=1)[:, 0]


def _visited(buffer, w_in, w_out):
    """The buffers exchanged, each expert at work on what came, and exchanged back."""
    return _exchange(expert(_exchange(buffer), w_in[0], w_out[0]))


def _read(back, choice, slot):
    """What came back in a slot, zeros for a slot that there is not."""
    return back.at[choice, slot].get(mode="fill", fill_value=0)


def _combined(x, weights, results, kept):
    """x and the sum of its choices' results, weighed."""
    return x + (weights.reshape(-1, 1) * results).reshape(*weights.shape, -1).sum(axis=1)


def _lost(slot, capacity):
    return (slot >= capacity).sum(dtype=jnp.int32)[None]


def _rows(x, k):
    """The token of each choice."""
    return jnp.repeat(x, k, axis=0)


def _device(n, capacity, *, rows=_rows, count=_running, visit=_visited, read=_read, combine=_combined, dropped=_lost):
    """The program of one device, in the steps that may go wrong."""

    def body(x, weights, experts, w_in, w_out):
        choice = experts.reshape(-1)
        slot = count(choice, n, experts.shape[1])
        kept = slot < capacity
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(rows(x, experts.shape[1]))
        results = read(visit(buffer, w_in, w_out), choice, slot)
        return combine(x, weights, results, kept), dropped(slot, capacity)

    return body


def _run(x, weights, experts, w_in, w_out, capacity, mesh, **steps):
    body = _device(mesh.shape["expert"], capacity, **steps)
    return device_map(body, mesh, LAYER, (P("expert"), P("expert")))(x, weights, experts, w_in, w_out)


@moe_all_to_all.mistake
def never_came_back(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """The tokens travelled once. What an expert made of them is still on the expert's device, and each device took
    the results of *other* devices' tokens for its own. How do they get home?"""
    visit = lambda buffer, w_in, w_out: expert(_exchange(buffer), w_in[0], w_out[0])  # noqa: E731
    return _run(x, weights, experts, w_in, w_out, capacity, mesh, visit=visit)


@moe_all_to_all.mistake
def never_left(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """No token left its device: each was worked on by the expert that happens to live where the token does, whichever
    it had chosen."""
    visit = lambda buffer, w_in, w_out: expert(buffer, w_in[0], w_out[0])  # noqa: E731
    return _run(x, weights, experts, w_in, w_out, capacity, mesh, visit=visit)


@moe_all_to_all.mistake
def cut_by_slots(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """The exchange cuts the buffers along their slots: device 0 gets the first slots of *every* expert's buffer. What
    was collected for expert e must go to device e. Which axis of [experts, slots, D] is to be split?"""

    def visit(buffer, w_in, w_out):
        there = lax.all_to_all(buffer, "expert", 1, 0, tiled=True)
        return lax.all_to_all(expert(there, w_in[0], w_out[0]), "expert", 0, 1, tiled=True)

    return _run(x, weights, experts, w_in, w_out, capacity, mesh, visit=visit)


@moe_all_to_all.mistake
def back_by_the_same_call(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """On the way there the buffers were split along axis 0 and laid side by side along axis 1. The way back used the
    same two numbers. What was joined must be split again: exchange them, or let split and concat be the same axis."""

    def visit(buffer, w_in, w_out):
        there = lax.all_to_all(buffer, "expert", 0, 1, tiled=True)
        back = lax.all_to_all(expert(there, w_in[0], w_out[0]), "expert", 0, 1, tiled=True)
        return back.reshape(buffer.shape)

    return _run(x, weights, experts, w_in, w_out, capacity, mesh, visit=visit)


def _of_the_token(choice, n, k):
    return jnp.arange(len(choice)) // k


@moe_all_to_all.mistake
def slot_is_the_token(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """The slot of a token is its number on the device. While a buffer has as many slots as the device has tokens, that
    is right; here it is smaller, and late tokens are dropped while slots stay empty. A slot is a count: of what?"""
    return _run(x, weights, experts, w_in, w_out, capacity, mesh, count=_of_the_token)


def _over_all_devices(choice, n, k):
    whole = lax.all_gather(choice, "expert", tiled=True)
    return lax.dynamic_slice_in_dim(_running(whole, n), lax.axis_index("expert") * len(choice), len(choice))


@moe_all_to_all.mistake
def counted_over_all_devices(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """The running count goes over the tokens of *all* devices, so that those of device 0 come first and those of
    the last device last. But each device fills a buffer of its own, with `capacity` slots for each expert. Whose
    choices compete for them?"""
    return _run(x, weights, experts, w_in, w_out, capacity, mesh, count=_over_all_devices)


@moe_all_to_all.mistake
def read_somebody_elses(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """A choice that was dropped got the result of another token: an index beyond the buffer is pushed to its last slot
    when JAX *reads* (and is ignored when JAX writes). What should a dropped choice add?"""
    read = lambda back, choice, slot: back.at[choice, slot].get(mode="clip")  # noqa: E731
    return _run(x, weights, experts, w_in, w_out, capacity, mesh, read=read)


@moe_all_to_all.mistake
def dropped_became_zero(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """A token whose choices were all dropped came out as zeros: it is lost for every layer behind this one. What the
    experts make is *added* to the token, so what is left of a token that no expert has seen?"""

    def combine(x, weights, results, kept):
        seen = kept.reshape(weights.shape).any(axis=1, keepdims=True)
        return jnp.where(seen, _combined(x, weights, results, kept), 0)

    return _run(x, weights, experts, w_in, w_out, capacity, mesh, combine=combine)


@moe_all_to_all.mistake
def token_not_added(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """The experts' results are right, and the token itself is missing. The layer returns x *plus* what the experts make
    of it; a dropped token then passes unchanged."""
    combine = lambda x, *rest: _combined(x, *rest) - x  # noqa: E731
    return _run(x, weights, experts, w_in, w_out, capacity, mesh, combine=combine)


@moe_all_to_all.mistake
def results_not_weighed(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """The results of a token's experts were added up as they are. The router gave each a weight: where does it come
    in?"""
    combine = lambda x, weights, *rest: _combined(x, jnp.ones_like(weights), *rest)  # noqa: E731
    return _run(x, weights, experts, w_in, w_out, capacity, mesh, combine=combine)


@moe_all_to_all.mistake
def counted_the_kept(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """The layer is right. The second result counts the choices that were *kept*; asked for are those that were
    dropped."""
    dropped = lambda slot, capacity: (slot < capacity).sum(dtype=jnp.int32)[None]  # noqa: E731
    return _run(x, weights, experts, w_in, w_out, capacity, mesh, dropped=dropped)


@moe_all_to_all.mistake
def slot_beyond_the_last_not_counted(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """The layer is right. The second result leaves out those whose slot is `capacity`: the slots of a buffer are 0 to
    capacity − 1, so they were dropped too."""
    dropped = lambda slot, capacity: _lost(slot, capacity + 1)  # noqa: E731
    return _run(x, weights, experts, w_in, w_out, capacity, mesh, dropped=dropped)


@moe_all_to_all.mistake
def tokens_tiled(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """Tokens went to experts that others had chosen. `experts.reshape(-1)` has the k choices of token 0 first, then
    those of token 1; the rows stood as all tokens once, then all once more, which is what `jnp.tile` makes. Which
    function repeats each row k times before the next one comes?"""
    return _run(x, weights, experts, w_in, w_out, capacity, mesh, rows=lambda x, k: jnp.tile(x, (k, 1)))


def _by_columns(choice, n, k):
    return _running(choice.reshape(-1, k).T.reshape(-1), n).reshape(k, -1).T.reshape(-1)


@moe_all_to_all.mistake
def first_choices_before_second(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """The choices were read column by column: every token's first choice gets a slot before any token's second, so
    others are dropped than by the order of the rows. In which order does `experts.reshape(-1)` read them?"""
    return _run(x, weights, experts, w_in, w_out, capacity, mesh, count=_by_columns)


@moe_all_to_all.mistake
def one_total_everywhere(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """The layer is right, and the dropped choices were added up over the devices. That is one more collective. Let each
    device report its own number, in an array that is laid out over the axis `expert`."""
    dropped = lambda slot, capacity: lax.psum(_lost(slot, capacity), "expert")  # noqa: E731
    return _run(x, weights, experts, w_in, w_out, capacity, mesh, dropped=dropped)


@moe_all_to_all.mistake
def experts_came_to_the_tokens(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """The values are right, but the experts' weights were gathered: every device held all of them for a moment, and
    they were cut because no device can. Tokens are small. Let *them* travel."""

    def visit(buffer, w_in, w_out):
        return expert(buffer, lax.all_gather(w_in, "expert", tiled=True), lax.all_gather(w_out, "expert", tiled=True))

    return _run(x, weights, experts, w_in, w_out, capacity, mesh, visit=visit)
