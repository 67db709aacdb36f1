"""§ 2: the softmax of two parts, put together."""

from __future__ import annotations

import numpy as np

from grader.exercises import Case, FunctionExercise


def _merged(left, right):
    return _combined(left, right, lambda top, best: np.exp(top - np.where(best == -np.inf, 0, best)))


def _combined(left, right, scale):
    """Both parts relative to the larger of their largest logits; `scale(top, best)` is what a part is scaled by."""
    best = np.maximum(left[0], right[0])
    with np.errstate(all="ignore"):
        one, other = scale(left[0], best), scale(right[0], best)
        return best, one * left[1] + other * right[1], one * left[2] + other * right[2]


def _alike(one, other, **_):
    """Entry by entry up to rounding; what is not a number in both is alike."""
    return len(one) == len(other) and all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-5, atol=0, equal_nan=True)
        for a, b in zip(one, other, strict=True)
    )


merge = FunctionExercise("merge", points=4, reference=_merged, same=_alike)


@merge.cases
def _(draw):
    for mine, theirs in (
        ([1.5, -0.5, 0.25, 2.0], [0.5, 1.0, 0.25, 1.75]),
        ([1000.0, -1000.0, 992.0, -996.0], [-1000.0, 1000.0, 994.0, -1000.0]),
        ([-np.inf, 3.0, -np.inf], [-2.0, -np.inf, -np.inf]),
    ):
        yield Case({"left": _drawn_part(draw, mine), "right": _drawn_part(draw, theirs)})


def _drawn_part(draw, logits):
    """A part whose largest logits are these: of no keys where one is minus infinity."""
    top = np.array(logits, np.float32)[:, None]
    some = np.isfinite(top)
    weight = np.where(some, 1 + draw.rng.integers(1, 9, top.shape) / 4, 0)
    mixed = np.where(some, draw.rng.integers(1, 9, (len(logits), 2)) / 2, 0)
    return top, weight.astype(np.float32), mixed.astype(np.float32)


@merge.mistake
def added_as_they_are(left, right):
    """These are the sums of the two weights, and of the two weighted sums, as they are. But each part counts relative
    to its *own* largest logit: a weight of 1 in one part is exp(its largest), in the other exp(another). What turns one
    measure into the other?"""
    return _combined(left, right, lambda top, best: np.ones_like(top))


@merge.mistake
def no_running_maximum(left, right):
    """For small logits this is right. exp(1000) is infinite in float32, and infinite divided by infinite is not a
    number. Take the difference of two logits *first*, the exponential after: which differences are never positive?"""
    return _combined(left, right, lambda top, best: np.exp(top, dtype=np.float32) / np.exp(best, dtype=np.float32))


@merge.mistake
def empty_minus_empty(left, right):
    """Where neither part has a key for a query, both largest logits are −inf, and −inf − (−inf) is not a number. Such
    parts are met where a mask hides a whole block. What should two empty parts come to?"""
    return _combined(left, right, lambda top, best: np.exp(top - best))


@merge.mistake
def scaled_the_wrong_way(left, right):
    """The exponent has the wrong sign: the part with the *smaller* largest logit must shrink, and yours grows. Which of
    the two numbers is subtracted from which?"""
    return _combined(left, right, lambda top, best: np.exp(best - top))


@merge.mistake
def forgot_the_values(left, right):
    """The weights are right, the weighted values were only added. Both are sums over the same keys, relative to the
    same largest logit: what one is scaled by, the other is too."""
    best, weight, _ = _merged(left, right)
    return best, weight, left[2] + right[2]


@merge.mistake
def divided_at_once(left, right):
    """This is divided by the weight already. A part stays undivided, so that the next one can be merged into it: divide
    once, when all keys have been met."""
    best, weight, mixed = _merged(left, right)
    with np.errstate(all="ignore"):
        return best, weight, mixed / weight


@merge.mistake
def averaged(left, right):
    """That is the mean of the two parts. A part in which the logits are larger has more say, and how much more is
    e to the power of the difference: an average knows nothing of it."""
    return tuple((a + b) / 2 for a, b in zip(left, right, strict=True))
