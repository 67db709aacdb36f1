"""§ 7: tokens turned into heads, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, BytesSent, Case, ProgramExercise, Turns
from grader.lessons.long_context.attention import RINGS, ROUNDINGS, attend, causal
from grader.lessons.shared import bytes_sent, device_map

TOKENS = P("x")  # of q[T, H, D], k[T, G, D], v[T, G, E]


def _by_head(q, k, v):
    shared = q.shape[1] // k.shape[1]
    return np.stack([causal(q[:, h], k[:, h // shared], v[:, h // shared]) for h in range(q.shape[1])], axis=1)


ulysses = ProgramExercise("ulysses", points=6, reference=_by_head, mesh_shapes=RINGS)


@ulysses.cases
def _(draw):
    mesh = draw.mesh("x")
    n = mesh["x"]
    tokens, d, e = 2 * n, 4, 4 if draw.square else 6
    # Two key-value heads on each device, which three query heads share each; or fewer than there are devices.
    for heads, kv_heads in ((6 * n, 2 * n), (2 * n, 1 if n % 2 else n // 2)):
        widths = {"q": (heads, 3 * d), "k": (kv_heads, 3 * d), "v": (kv_heads, e)}
        arrays = {name: Array(draw.values(tokens, *shape), TOKENS) for name, shape in widths.items()}
        entries = tokens // n * (heads + max(n, kv_heads)) * (3 * d + e)
        limits = [BytesSent(bytes_sent("all_to_all", entries, n)), Turns({"all_to_all": 4})]
        yield Case(arrays, mesh, TOKENS, limits, roundings=ROUNDINGS)


def _exchange(block, split: int, joined: int):
    return lax.all_to_all(block, "x", split, joined, tiled=True)


def _repeated(a, times):
    return jnp.repeat(a, times, axis=1)


def _attended(q, k, v, seen=None, shared=_repeated):
    """Each query head with the key-value head that it shares."""
    k, v = (shared(a, q.shape[1] // a.shape[1]) for a in (k, v))
    mask = jnp.tri(len(q), dtype=bool) if seen is None else seen
    return jax.vmap(lambda q, k, v: attend(q, k, v, mask), in_axes=1, out_axes=1)(q, k, v)


def _turned(
    q,
    k,
    v,
    mesh,
    *,
    copied: Callable[[Any, int], Any] = lambda a, n: jnp.repeat(a, max(1, n // a.shape[1]), axis=1),
    there: tuple[int, int] = (1, 0),
    back: Callable[[Any], Any] = lambda mixed: _exchange(mixed, 0, 1),
    seen: Callable[[int], Any] = lambda tokens: None,
    shared: Callable[[Any, int], Any] = _repeated,
):
    n = mesh.shape["x"]

    def body(q, k, v):
        k, v = copied(k, n), copied(v, n)
        q, k, v = (_exchange(a, *there) for a in (q, k, v))
        return back(_attended(q, k, v, seen(len(q)), shared))

    return device_map(body, mesh, (TOKENS,) * 3, TOKENS)(q, k, v)


@ulysses.mistake
def copies_dealt_out_in_turn(q, k, v, *, mesh):
    """With fewer key-value heads than devices, the copies stand in the wrong order, as 0, 1, 0, 1 where 0, 0, 1, 1 was
    needed. Which query heads are on device 1, and which key-value head do they share?"""
    return _turned(q, k, v, mesh, copied=lambda a, n: jnp.tile(a, (1, max(1, n // a.shape[1]), 1)))


@ulysses.mistake
def shared_in_turn(q, k, v, *, mesh):
    """On a device with several key-value heads, query heads share them in turn, as 0, 1, 0, 1 where 0, 0, 1, 1 is due:
    those that share one are neighbours. Which function repeats each head before the next one comes?"""
    return _turned(q, k, v, mesh, shared=lambda a, times: jnp.tile(a, (1, times, 1)))


@ulysses.mistake
def there_and_there_again(q, k, v, *, mesh):
    """The way back has the arguments of the way there: it splits the heads once more, and joins tokens that were whole.
    On the way there heads are split and tokens joined. What is the opposite?"""
    return _turned(q, k, v, mesh, back=lambda mixed: _exchange(mixed, 1, 0))


@ulysses.mistake
def never_back(q, k, v, *, mesh):
    """The result is cut by heads, and was to be cut by tokens as q is. One exchange is missing."""
    n = mesh.shape["x"]

    def body(q, k, v):
        k, v = (jnp.repeat(a, max(1, n // a.shape[1]), axis=1) for a in (k, v))
        return _attended(*(_exchange(a, 1, 0) for a in (q, k, v)))

    return device_map(body, mesh, (TOKENS,) * 3, P(None, "x"))(q, k, v)


@ulysses.mistake
def heads_not_divisible(q, k, v, *, mesh):
    """With fewer key-value heads than devices there are not enough to give one to each, and all_to_all refuses. Each
    device needs *one*: make copies before the exchange."""
    return _turned(q, k, v, mesh, copied=lambda a, n: a)


@ulysses.mistake
def copied_for_every_query_head(q, k, v, *, mesh):
    """The values are right, but the key-value heads were copied for *every* query head before they travelled, so that
    copies go over the wire. How many key-value heads must arrive at a device? Make the other copies there."""
    return _turned(q, k, v, mesh, copied=lambda a, n: jnp.repeat(a, q.shape[1] // a.shape[1], axis=1))


@ulysses.mistake
def no_mask_for_the_heads(q, k, v, *, mesh):
    """Every token looks at every token: there is no mask."""
    return _turned(q, k, v, mesh, seen=lambda tokens: True)


@ulysses.mistake
def mask_with_an_offset(q, k, v, *, mesh):
    """The queries are numbered from me · T/n on, as in a ring. After the exchange a device has *all* tokens of its
    heads, the first one too. Where does it begin now?"""

    def seen(tokens):
        rows = lax.axis_index("x") * (tokens // mesh.shape["x"]) + jnp.arange(tokens)
        return rows[:, None] >= jnp.arange(tokens)

    return _turned(q, k, v, mesh, seen=seen)


@ulysses.mistake
def all_keys_gathered(q, k, v, *, mesh):
    """The values are right. But keys and values were gathered, all heads of them on every device. Let each device have
    all tokens of *its* heads: which collective deals one dimension out and joins another?"""

    def body(q, k, v):
        me, block = lax.axis_index("x"), len(q)
        k, v = (lax.all_gather(a, "x", tiled=True) for a in (k, v))
        queries = me * block + jnp.arange(block)
        return _attended(q, k, v, queries[:, None] >= jnp.arange(len(k)))

    return device_map(body, mesh, (TOKENS,) * 3, TOKENS)(q, k, v)
