"""Deviations from a reference: each comes to what a program comes to that makes that one mistake."""

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.arrays.laid import Array
from grader.arrays.numbers import close
from grader.programs.deviation import Model
from grader.programs.deviations import deviations

SIZES = {"x": 4, "y": 2}
DICE = np.random.default_rng(0)
X = DICE.normal(size=(8, 8)).astype(np.float32)
W = DICE.normal(size=(8, 4)).astype(np.float32)
C = DICE.normal(size=4).astype(np.float32)
ROWS, IDS, MASK = P("x"), np.arange(8, dtype=np.int32), np.arange(8) % 3 == 0


def model(reference, numbers=None, **arrays):
    laid = {name: Array(array, spec) for name, (array, spec) in arrays.items()}
    return Model(reference, laid, numbers or {}, SIZES)


def came_out(found, words, place=0):
    """The results of the deviations of these words."""
    return [one.made(place)[0] for one in deviations(found) if words in one.words]


def parts(array, axis=0):
    return np.split(array, SIZES["x"], axis)


LAYER = model(lambda x, w: jax.nn.relu(x @ w), x=(X, P(None, "x")), w=(W, ROWS))
CENTRED = model(lambda x: x - x.mean(axis=0), x=(X, ROWS))
SOFTMAX = model(lambda x: jax.nn.softmax(x, axis=1), x=(X, P(None, "x")))
HORNER = model(
    lambda c, x: lax.scan(lambda y, one: (y * x + one, None), jnp.zeros_like(x), c)[0], c=(C, P()), x=(X, ROWS)
)
SUMMED = model(lambda x: x.sum(0), x=(X, ROWS))
ROOT = model(lambda x: jnp.sqrt(jnp.sum(x**2, axis=1) + 2), x=(X, P(None, "x")))
NEIGHBOURS = model(lambda x: 3 * jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0), x=(X, ROWS))
TRIPLE = model(lambda x: x[0] * x[1] - x[2], x=(X[:3], P()))
NETWORK = Model(
    lambda params, x: x @ params["W"] + params["b"],
    {"params": {"W": Array(W, ROWS), "b": Array(C, P())}, "x": Array(X, P(None, "x"))},
    {},
    SIZES,
)
ERROR = model(lambda x, y: jnp.mean((jnp.tanh(x) - y) ** 2), x=(X, ROWS), y=(X[::-1], ROWS))
LONG = DICE.normal(size=(16, 3)).astype(np.float32)
TURNS = model(lambda x, turns: jnp.mean(x**2), {"turns": 2}, x=(LONG, ROWS))
BEHIND = model(lambda x, w, c: jnp.sum(jax.nn.relu(x @ w) + c), x=(X, ROWS), w=(W, P()), c=(C, P()))
RATE = model(lambda x, steps, rate: x * (1 - rate) ** steps, {"steps": 3, "rate": 0.3}, x=(X, ROWS))
LOOKED_UP = model(lambda table, ids: table[ids], table=(X, P()), ids=(IDS, ROWS))
MASKED = model(lambda x, mask: np.where(mask, x, 0).sum(0), x=(X, ROWS), mask=(MASK, P()))
NUMBERED = model(lambda x: x + jnp.arange(8)[:, None], x=(X, ROWS))
RELU = lambda a: np.maximum(a, 0)  # noqa: E731

FOUND = [
    (LAYER, "along x are taken together only behind `relu`", sum(map(RELU, map(np.matmul, parts(X, 1), parts(W))))),
    (LAYER, "`relu` is left out", X @ W),
    (SUMMED, "each device along x brings the largest of its own part to a sum", sum(p.max(0) for p in parts(X))),
    (SUMMED, "each device along x brings the first of its own part to a sum", sum(p[0] for p in parts(X))),
    (TRIPLE, "an addition stands in the place of a multiplication", X[0] + X[1] - X[2]),
    (LAYER, "`relu` is left out, and `relu` is taken of `x`", RELU(X) @ W),
    (
        LAYER,
        "`w` along x are mixed, entry by entry along dimension 0",
        RELU(X @ W.reshape(4, 2, 4).swapaxes(0, 1).reshape(8, 4)),
    ),
    (TRIPLE, "along dimension 0 are exchanged (so it stands the other way round)", X[2] * X[1] - X[0]),
    (SOFTMAX, "a softmax runs along dimension 0", jax.nn.softmax(X, axis=0)),
    (NEIGHBOURS, "before and behind are exchanged in `x`, along dimension 0", np.roll(X, 1, 0) + 3 * np.roll(X, -1, 0)),
    (TRIPLE, "entries 1 and 2 of `x` along dimension 0 are exchanged", X[0] * X[2] - X[1]),
    (NETWORK, "only behind the addition of `params['b']`", X @ W + 4 * C),
    (LAYER, "`tanh` stands in the place of `relu`", np.tanh(X @ W)),
    (LAYER, "`softmax` stands in the place of `relu`", jax.nn.softmax(X @ W)),
    (LAYER, "the parts of `x` along x are stacked", RELU(np.stack(parts(X, 1)).reshape(8, 8) @ W)),
    (LAYER, "`x` is transposed", RELU(X.T @ W)),
    (LAYER, "`w` stands the other way round along dimension 0", RELU(X @ W[::-1])),
    (CENTRED, "a mean is taken by each device along x of its own part", X - parts(X)[0].mean(0)),
    (ERROR, "only the first counts", np.mean((np.tanh(X[::2]) - X[::-1][::2]) ** 2)),
    (ERROR, "only the second half counts", np.mean((np.tanh(X[1::2]) - X[::-1][1::2]) ** 2)),
    (ERROR, "an absolute value stands in the place of a square", np.mean(np.abs(np.tanh(X) - X[::-1]))),
    (TURNS, "do not count, and yet it is divided by all", np.sum(LONG.reshape(4, 4, 3)[:, :2] ** 2) / LONG.size),
    (BEHIND, "`relu` is taken of the addition of `c`, too", np.sum(RELU(RELU(X @ W) + C))),
    (CENTRED, "a sum runs over all dimensions", X - X.sum() / 8),
    (CENTRED, "an addition stands in the place of a subtraction", X + X.mean(0)),
    (HORNER, "the addition comes before the factor", sum(c * X ** (4 - k) for k, c in enumerate(C))),
    (HORNER, "a loop leaves out its last turn", np.polyval(C[:3], X)),
    (HORNER, "a loop begins with ones", np.polyval([1, *C], X)),
    (HORNER, "`c` is cut along x", np.full_like(X, C[0])),
    (ROOT, "the root comes before the addition of 2", np.sqrt((X**2).sum(1)) + 2),
    (RATE, "`rate` is divided by the number of devices along x", X * (1 - 0.3 / 4) ** 3),
    (RATE, "`rate` is 0.1", X * 0.9**3),
    (RATE, "`steps` is one more", X * 0.7**4),
    (LOOKED_UP, "`ids` is one less everywhere", X[IDS - 1]),
    (MASKED, "`mask` is turned round", np.where(~MASK, X, 0).sum(0)),
    (NUMBERED, "numbers begin at one", X + 1 + np.arange(8)[:, None]),
    (NUMBERED, "within the part of each device along x", X + np.arange(8)[:, None] % 2),
]


@pytest.mark.parametrize(("found", "words", "due"), FOUND, ids=[words for _, words, _ in FOUND])
def test_a_deviation_comes_to_what_it_says(found, words, due):
    assert any(close(one, np.asarray(due, np.float32)) for one in came_out(found, words))


def test_what_is_each_devices_own_differs_from_place_to_place():
    for place, part in enumerate(parts(X)):
        assert any(close(one, X - part.mean(0)) for one in came_out(CENTRED, "by each device along x", place))


@pytest.mark.parametrize("found", [LAYER, CENTRED, SOFTMAX, ROOT, MASKED, NUMBERED])
def test_each_is_told_apart_from_every_other(found):
    keys = [(one.words, one.at) for one in deviations(found)]
    assert len(keys) == len({*keys}) > 10


def test_of_a_long_reference_there_is_no_model():
    def long(x):
        for _ in range(301):
            x = x + 1
        return x

    with pytest.raises(ValueError, match="too long"):
        model(long, x=(X, ROWS))
