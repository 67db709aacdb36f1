"""What the exercises of this lesson share: tokens with their choices, drawn, and an expert.

A token makes k choices, each with a weight. On a mesh with an axis `expert` of n devices there are n experts, one on
each device, and the tokens are cut over the same axis.
"""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, Draw

LAYER = (P("expert"),) * 5  # x[T, D], weights[T, K], experts[T, K], w_in[E, D, F], w_out[E, F, D]


def drawn_choices(draw: Draw, tokens: int, experts: int, k: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Weights float32[tokens, K], which add up to 1, and experts int32[tokens, K], of which number 0 is popular.

    K is 2 or 3: who writes 2 for it into a program is to notice.
    """
    popular = draw.rng.random(tokens) < 0.5
    chosen = [np.where(popular, 0, draw.rng.integers(experts, size=tokens))]
    chosen.append((chosen[0] + draw.rng.integers(1, experts, size=tokens)) % experts)
    weight = draw.rng.integers(5, 8, size=tokens) / 8  # eighths: sums come out exact
    weights = [weight, 1 - weight]
    if k == 3:
        after = (chosen[1] + 1) % experts
        chosen.append(np.where(after == chosen[0], (after + 1) % experts, after))
        weights = [weight - 1 / 8, 1 - weight, np.full(tokens, 1 / 8)]
    return np.stack(weights, 1).astype(np.float32), np.stack(chosen, 1).astype(np.int32)


def drawn_layer(draw: Draw, n: int) -> dict[str, Array]:
    """A layer of n experts and the tokens that come to it, as many on each device."""
    t, d, f = draw.lengths(3, divisible_by=4)
    weights, experts = drawn_choices(draw, n * t, n, k=3 if draw.square and n > 2 else 2)
    values = {
        "x": draw.values(n * t, d) + np.float32(1 / 64),  # more digits than bfloat16 has, and so the weights
        "weights": 3 / 4 * weights + np.float32(1 / 2048),  # they need not add up to 1
        "experts": experts,
        "w_in": draw.values(n, d, f),
        "w_out": draw.values(n, f, d),
    }
    return {name: Array(value, spec) for (name, value), spec in zip(values.items(), LAYER, strict=True)}


def expert(x, w_in, w_out):
    """relu(x · w_in) · w_out; zeros for zeros."""
    return jax.nn.relu(x @ w_in) @ w_out


def added_up(x, weights, experts, w_in, w_out, kept):
    """x and, for every choice that is kept, what its expert makes of the token, weighed; on one device."""
    wanted = (experts[:, :, None] == np.arange(len(w_in))) * np.where(kept, weights, 0)[:, :, None]  # [T, K, E]
    share = wanted.sum(axis=1).T[:, :, None]  # [E, T, 1]
    return x + (share * (np.maximum(x @ w_in, 0) @ w_out)).sum(axis=0)
