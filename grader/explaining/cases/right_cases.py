"""How the cases in which a value is right differ from the others: by an argument, or an expected error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import spelled
from grader.explaining.cases.tried import Tried
from grader.findings.cases import ErrorExpected, HasValue, Pattern, RightIn, RightWith
from grader.judging.differing import short

BY_CHANCE = 1 / 8  # how often cases may fall so without a reason
TOLD_WHOLE = 40  # characters of an argument that may be told as what cases have in common
FEW_APART = 2  # arguments by which two cases differ that are like one another
TOLD_OTHERS = 100  # characters of those


def right_in(right: Sequence[Tried], wrong: Sequence[Tried], *, processes: bool = False) -> RightIn | None:
    """How many cases are right, and how the others differ; None if none is right."""
    if not right or not wrong:
        return None
    return RightIn(len(right), len(right) + len(wrong), processes, _pattern(right, wrong))


def _pattern(right: Sequence[Tried], wrong: Sequence[Tried]) -> Pattern | None:
    for only, some, others in ((False, wrong, right), (True, right, wrong)):
        if found := _only_in(some, others):
            return replace(found, only=only)
    return _most_alike(right, wrong)


def _only_in(some: Sequence[Tried], others: Sequence[Tried]) -> ErrorExpected | HasValue | None:
    """What is so in all of some cases and in none of the others."""
    if all(one.error_expected for one in some) and not any(one.error_expected for one in others):
        return ErrorExpected()
    features = [_features(one.given) for one in (*some, *others)]
    for feature in features[0]:
        values = [each.get(feature) for each in features]
        here, there = {*values[: len(some)]}, {*values[len(some) :]}
        (value, *more) = here
        if not more and value is not None and value not in there and not _is_chance(value, len(some), len(values)):
            return HasValue(feature[0], value, feature[1])
    return None


def _is_chance(value: str, count: int, cases: int) -> bool:
    """Whether the only cases with a value may well be the wrong ones without a reason. For words, for truth values and
    for 0 and 1 cases are made on purpose; other numbers are any."""
    if value[0] in "'TFN" or value in ("0", "1"):
        return False
    return count < 2 or BY_CHANCE * math.comb(cases, count) < 1


def _features(given: Mapping[str, Any]) -> dict[tuple[str, Any], str]:
    """What cases may have in common, as text: plain arguments, short ones that are made of such, lengths of lists."""
    found: dict[tuple[str, Any], str] = {}
    for name, value in given.items():
        if isinstance(value, list):
            found[name, "length"] = str(len(value))
        elif not isinstance(value, np.ndarray):
            text = _shown(value, repr)
            found |= {(name, "value"): text} if len(text) <= TOLD_WHOLE else {}
    return found


def _shown(value: Any, shown: Callable[[Any], str] = short) -> str:
    return spelled(value) if isinstance(value, P) else shown(value)


def _most_alike(right: Sequence[Tried], wrong: Sequence[Tried]) -> Pattern | None:
    """The right case that is most like the first wrong one, if few short arguments tell them apart."""
    first = {name: _shown(value) for name, value in wrong[0].given.items()}
    differing = (
        tuple((name, _shown(value)) for name, value in one.given.items() if _shown(value) != first.get(name))
        for one in right
        if not one.error_expected and not any(isinstance(value, np.ndarray) for value in one.given.values())
    )
    few = [pairs for pairs in differing if 0 < len(pairs) <= FEW_APART and len(str(pairs)) <= TOLD_OTHERS]
    return RightWith(min(few, key=len)) if few else None
