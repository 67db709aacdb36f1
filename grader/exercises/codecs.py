"""How values are written as JSON types, and read back from a wire on which anybody may write."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Codec(Generic[T]):
    """How something is written as JSON types, and read."""

    write: Callable[[T], Any]
    read: Callable[[Any], T]


@dataclass(frozen=True)
class Record(Codec[T]):
    """How all values of a type, or those of them that fit, are written; a data class has codecs for its fields."""

    of: Any  # a type, or a tuple of types
    fits: Callable[[Any], bool] = lambda value: True
    fields: Mapping[str, Codec[Any]] = field(default_factory=dict)


def refusing(read: Callable[[Any], T]) -> Callable[[Any], T]:
    """The same reader, for which whatever it cannot read is a ValueError."""

    @functools.wraps(read)
    def reading(body: Any) -> T:
        try:
            return read(body)
        except ValueError:
            raise
        except Exception as error:  # a student's code can write anything on the wire
            raise ValueError(f"this is not what the wire carries: {error}") from error

    return reading


def data_class(of: type[T], **fields: Codec[Any]) -> Record[T]:
    """Each field of a data class under its name."""

    def write(value: T) -> dict[str, Any]:
        return {name: codec.write(getattr(value, name)) for name, codec in fields.items()}

    @refusing
    def read(body: Any) -> T:
        if body.keys() != fields.keys():
            raise ValueError(f"a {of.__name__} has other fields")
        return of(**{name: codec.read(body[name]) for name, codec in fields.items()})

    return Record(write, read, of, fields=fields)


def plain_type(of: type[T], fits: Callable[[T], bool] = lambda value: True) -> Codec[T]:
    """Text, a number or a truth value that fits; nothing that could only be made one."""

    def read(body: Any) -> T:
        if type(body) is not of or not fits(body):
            raise ValueError(f"not the {of.__name__} that it should be")
        return body

    return Codec(of, read)


def tuple_of(entry: Codec[T]) -> Codec[tuple[T, ...]]:
    return Codec(lambda values: list(map(entry.write, values)), lambda body: tuple(map(entry.read, body)))


def optional(codec: Codec[T]) -> Codec[T | None]:
    return Codec(
        lambda value: None if value is None else codec.write(value),
        lambda body: None if body is None else codec.read(body),
    )


TEXT, FLAG, NUMBER = plain_type(str), plain_type(bool), plain_type(int)
