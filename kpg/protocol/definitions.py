"""Definitions of messages and of their parts: frozen dataclasses with a literal name on the wire.

    REQUESTS = MessageKinds[Request]()

    @message("ping", REQUESTS)                 @part("Column")
    class PingRequest(Request): ...            class ColumnSpec: ...

The name of a message is the member `type` of its JSON object; the name of a part is its definition in the JSON schema.
Neither follows the name of the class, so classes can be renamed without a change of the protocol. A definition adds
itself to its set: there is no second list to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar, dataclass_transform, get_args, get_origin

Kind = TypeVar("Kind", covariant=True)
Shape = TypeVar("Shape")
Result = TypeVar("Result", covariant=True)


class MessageKinds(Generic[Kind]):
    """A set of message classes, by their names on the wire. Iterate for the classes, in the order of definition."""

    def __init__(self, by_name: dict[str, type[Any]] | None = None, *, python_only: bool = False) -> None:
        self.by_name: dict[str, type[Any]] = by_name if by_name is not None else {}
        self.python_only = python_only  # both ends are kpg: bare NaN and infinities are allowed

    def __iter__(self) -> Iterator[type[Any]]:
        return iter(self.by_name.values())

    def __or__(self, other: MessageKinds[Any]) -> MessageKinds[Any]:
        return MessageKinds({**self.by_name, **other.by_name})


@dataclass_transform(frozen_default=True)
def message(name: str, kinds: MessageKinds[Any]) -> Callable[[type[Shape]], type[Shape]]:
    """Define a message: make the class a frozen dataclass with `name` as its `kind`, and add it to `kinds`."""

    def define(shape: type[Shape]) -> type[Shape]:
        assert name not in kinds.by_name, f"two messages are called {name!r}"
        defined: Any = dataclass(frozen=True, slots=True)(shape)
        defined.kind = name
        kinds.by_name[name] = defined
        return defined  # type: ignore[no-any-return]

    return define


class TypedRequest(Generic[Result]):
    """The base of requests between processes of one db: the reply is a value of type `Result`.

    A subclass fixes it in its bases, `class CountRequest(TypedRequest[int])`, so that the caller's type checker and the
    decoder of replies both know it.
    """

    __slots__ = ()
    kind: ClassVar[str]


@cache
def result_annotation(shape: Any) -> Any:
    """Return the annotation of the reply to a class of typed requests."""
    for ancestor in shape.__mro__:
        for base in ancestor.__dict__.get("__orig_bases__", ()):
            arguments = get_args(base)
            if isinstance(get_origin(base), type) and issubclass(get_origin(base), TypedRequest):
                if not isinstance(arguments[0], TypeVar):
                    return arguments[0]
    raise AssertionError(f"{shape.__name__} does not say what its reply is")


@dataclass_transform(frozen_default=True)
def part(name: str) -> Callable[[type[Shape]], type[Shape]]:
    """Define a part of messages: make the class a frozen dataclass that the JSON schema calls `name`."""

    def define(shape: type[Shape]) -> type[Shape]:
        defined: Any = dataclass(frozen=True, slots=True)(shape)
        defined.schema_name = name
        return defined  # type: ignore[no-any-return]

    return define
