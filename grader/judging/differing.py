"""The first part of a plain value that differs from the expected one.

Of a text, such as a script, it is not told what is expected: that would be the solution.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from grader.arrays.described import HELD, is_observed, lies_on_devices, of_other_numbers
from grader.arrays.numbers import close, close_entries, same_value
from grader.arrays.words import number, numbered
from grader.findings.finding import Finding
from grader.findings.values import OnWrongDevices, WrongBlock, WrongCount, WrongKey, WrongShard, WrongValue

SHOWN = 200  # characters of a value that are shown
_FEW = 12  # elements of an array that are shown
SMALL_VALUE = 100  # characters up to which a value is shown whole
BLANKS = re.compile(r"""(?P<quoted>'[^']*'|"[^"]*")|\s+""")  # those within quotes may be what matters


def shown_whole(found: Any, expected: Any) -> bool:
    """Whether both are short enough to be seen at a glance, and what is expected may be told."""
    whole = not isinstance(expected, Mapping) and not holds_text(expected) and not lies_on_devices(expected)
    texts = {short(found), short(expected)}  # one and the same for two large arrays, of which only the type is shown
    return whole and len(texts) == 2 and max(map(len, texts)) <= SMALL_VALUE


def wrong_value(path: str, found: Any, expected: Any) -> WrongValue:
    return WrongValue(path, None if holds_text(expected) else short(expected), short(found))


def first_difference(found: Any, expected: Any, path: str = "") -> Finding | None:
    """None if there is none. `path` is the way to these parts of the values."""
    try:
        return _first_difference(found, expected, path)
    except Exception:  # a student's value may have any form
        return WrongValue(path, None, type(found).__name__)


def _first_difference(found: Any, expected: Any, path: str) -> Finding | None:
    if same_value(found, expected) and not of_other_numbers(found, expected):
        return None
    if path and shown_whole(found, expected):
        return wrong_value(path, found, expected)
    if is_observed(expected):
        return _on_devices(found, expected[HELD], path)
    both = found, expected
    if all(isinstance(one, Mapping) and not is_observed(one) for one in both):
        return _in_dicts(found, expected, path)
    if all(isinstance(one, (list, tuple)) for one in both):
        pairs = enumerate(zip(*both, strict=False))
        inside = (_first_difference(*pair, f"{path}[{k}]") for k, pair in pairs)
        return next(filter(None, inside), WrongCount(path, len(expected), len(found)))
    if all(isinstance(one, np.ndarray) for one in both) and found.shape == expected.shape:
        at = _first(~close_entries(found, expected))
        return wrong_value(f"{path}{list(at)}", found[at].item(), expected[at].item())
    return wrong_value(path, found, expected)


def _in_dicts(found: Mapping[Any, Any], expected: Mapping[Any, Any], path: str) -> Finding:
    for key in expected:
        if key not in found:
            return WrongKey(path, str(key), missing=True)
        if inside := _first_difference(found[key], expected[key], f"{path}.{key}" if path else str(key)):
            return inside
    return WrongKey(path, str(next(key for key in found if key not in expected)), missing=False)


def _on_devices(found: Any, expected: Mapping[str, Any], path: str) -> Finding | None:
    """Which devices should hold an array; which of them holds another part of it, or other values."""
    held = found[HELD] if is_observed(found) else {}
    if held.keys() != expected.keys():
        return OnWrongDevices(path, _numbers(expected), _numbers(held))
    for (device, parts), number_of in zip(expected.items(), _numbers(expected), strict=True):
        ((part, block),), ((other, theirs),) = parts.items(), held[device].items()
        if part != other:
            return WrongShard(path, number_of, part, other)
        if theirs.dtype != block.dtype or theirs.shape != block.shape:
            return WrongBlock(path, number_of, part, None, _type_of(block), _type_of(theirs))
        if not close(theirs, block):
            at = _first(~close_entries(theirs, block))
            return WrongBlock(path, number_of, part, at, _written(block[at]), _written(theirs[at]))
    return None


def _numbers(devices: Mapping[str, Any]) -> tuple[int, ...]:
    """Their numbers; of a forged observation any that there are."""
    numbers = (str(name).removeprefix("device ") for name in devices)
    return tuple(int(one) for one in numbers if one.isdecimal())


def _first(wrong: np.ndarray) -> tuple[int, ...]:
    """Where the first of these is; of values that differ by less than is seen, the first element."""
    places = np.argwhere(wrong)
    return tuple(int(i) for i in places[0]) if len(places) else (0,) * wrong.ndim


def _written(value: Any) -> str:
    return number(value) if np.issubdtype(np.asarray(value).dtype, np.floating) else str(value)


def _type_of(array: np.ndarray) -> str:
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"


def holds_text(value: Any) -> bool:
    """Whether a value has, at any depth, a line that somebody wrote, and not a word to choose."""
    if isinstance(value, Mapping):
        return any(map(holds_text, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(holds_text, value))
    return isinstance(value, str) and re.search(r"\S\s+\S", value) is not None


def in_one_line(value: Any) -> str:
    """A value as Python shows it, without the lines and the columns of arrays; its type if its `repr` raises."""
    try:
        text = repr(value)
    except Exception:  # a class of the student's
        return f"<{type(value).__name__}>"
    return BLANKS.sub(lambda found: found["quoted"] or " ", text)


def short(value: Any, limit: int = SHOWN) -> str:
    """A value in one line; of a large array only its type and shape, of one on devices where it is."""
    text = in_one_line(_brief(value))
    return text if len(text) <= limit else f"{text[:limit]}…"


def _brief(value: Any) -> Any:
    if is_observed(value):
        return _Shown(f"<array on {numbered('device', _numbers(value[HELD]))}>")
    if isinstance(value, np.ndarray) and value.size > _FEW:
        return _Shown(_type_of(value))
    return type(value)(map(_brief, value)) if type(value) in (list, tuple) else value


class _Shown(str):
    """Text that appears among values as it is, without quotes."""

    def __repr__(self) -> str:
        return str(self)
