"""A finding and its JSON form.

A finding is a fact about an answer: frozen, hashable, and of plain types, so that it can be compared with the one
of another case, cached, sent, counted, and put into words later. Nothing is decided on its words.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

LONGEST_FIELD = 40_000  # characters: an error of JAX may be long


class Rank:
    """How specific a kind of finding is. The one with the highest rank is told; of equals, the first."""

    BARE = 0  # that it is wrong
    SIDE = 10  # too large, too small, too many
    SOME = 20  # which part is wrong, or in which cases
    RELATION = 50  # how all of what was found relates to what is expected
    CAUSE = 70  # which single change gives just this result
    KNOWN = 90  # a mistake that the author of the exercise described


FINDING_KINDS: dict[str, type[Finding]] = {}


@dataclass(frozen=True)
class Finding:
    """The base of all kinds. A kind's fields are None, bool, int, float, str, findings, and tuples of these."""

    rank: ClassVar[int] = Rank.BARE

    def __init_subclass__(cls, rank: int = Rank.BARE) -> None:
        if cls.__name__ in FINDING_KINDS and FINDING_KINDS[cls.__name__].__module__ != cls.__module__:
            raise TypeError(f"two kinds of finding are called {cls.__name__}")
        cls.rank = rank
        FINDING_KINDS[cls.__name__] = cls


def finding_to_json(finding: Finding) -> dict[str, Any]:
    """A finding as JSON types: its kind under a name that no field can have, and its fields by their names."""
    fields = {f.name: _written(getattr(finding, f.name)) for f in dataclasses.fields(finding)}
    return {"is": type(finding).__name__, **fields}


def finding_from_json(data: Any) -> Finding:
    """The inverse of `to_json`. Raises ValueError for anything that it did not write: a cluster may send anything."""
    try:
        return _finding(data)
    except RecursionError:
        raise ValueError("expected a finding, found one inside another without end") from None


def _finding(data: Any) -> Finding:
    if not isinstance(data, Mapping) or not isinstance(data.get("is"), str) or data["is"] not in FINDING_KINDS:
        raise ValueError(f"expected a finding, found {str(data)[:100]}")
    kind, hints = FINDING_KINDS[data["is"]], _hints(data["is"])
    if data.keys() - {"is"} != hints.keys():
        raise ValueError(f"a {data['is']} has the fields {', '.join(hints) or '(none)'}, not {', '.join(data)}")
    return kind(**{name: _read(data[name], hint) for name, hint in hints.items()})


def _written(value: Any) -> Any:
    if isinstance(value, Finding):
        return finding_to_json(value)
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)  # JSON has no such number
    return [_written(one) for one in value] if isinstance(value, tuple) else value


@functools.cache
def _hints(kind: str) -> dict[str, Any]:
    hints = typing.get_type_hints(FINDING_KINDS[kind])
    return {f.name: hints[f.name] for f in dataclasses.fields(FINDING_KINDS[kind])}


def _read(data: Any, hint: Any) -> Any:
    """A value of this type, from JSON types."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return _read_one_of(data, typing.get_args(hint))
    if typing.get_origin(hint) is typing.Literal:
        return _if(data, data in typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        return _read_tuple(data, typing.get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Finding):
        found = _finding(data)
        return _if(found, isinstance(found, hint))
    if hint is float:
        return float(data) if data in ("inf", "-inf", "nan") else _if(data, type(data) in (int, float))
    if hint is str:
        return _if(data, type(data) is str and len(data) <= LONGEST_FIELD)
    return _if(data, data is None if hint is type(None) else type(data) is hint)


def _if(value: Any, holds: bool) -> Any:
    if not holds:
        raise ValueError(f"a field of a finding cannot be {str(value)[:100]}")
    return value


def _read_one_of(data: Any, hints: tuple[Any, ...]) -> Any:
    for hint in hints:
        try:
            return _read(data, hint)
        except ValueError:
            continue
    raise ValueError(f"a field of a finding cannot be {str(data)[:100]}")


def _read_tuple(data: Any, hints: tuple[Any, ...]) -> tuple[Any, ...]:
    _if(data, isinstance(data, list))
    if len(hints) == 2 and hints[1] is Ellipsis:
        return tuple(_read(one, hints[0]) for one in data)
    _if(data, len(data) == len(hints))
    return tuple(_read(one, hint) for one, hint in zip(data, hints, strict=True))
