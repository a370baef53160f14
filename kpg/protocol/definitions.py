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
from typing import Any, Generic, TypeVar, dataclass_transform

Kind = TypeVar("Kind", covariant=True)
Shape = TypeVar("Shape")


class MessageKinds(Generic[Kind]):
    """A set of message classes, by their names on the wire. Iterate for the classes, in the order of definition."""

    def __init__(self, by_name: dict[str, type[Any]] | None = None) -> None:
        self.by_name: dict[str, type[Any]] = by_name if by_name is not None else {}

    def __iter__(self) -> Iterator[type[Any]]:
        return iter(self.by_name.values())

    def __or__(self, other: MessageKinds[Any]) -> MessageKinds[Any]:
        return MessageKinds({**self.by_name, **other.by_name})


@dataclass_transform(frozen_default=True)
def message(name: str, kinds: MessageKinds[Any]) -> Callable[[type[Shape]], type[Shape]]:
    """Define a message: make the class a frozen dataclass whose `kind` is `name`, and add it to `kinds`."""

    def define(shape: type[Shape]) -> type[Shape]:
        assert name not in kinds.by_name, f"two messages are called {name!r}"
        defined: Any = dataclass(frozen=True, slots=True)(shape)
        defined.kind = name
        kinds.by_name[name] = defined
        return defined  # type: ignore[no-any-return]

    return define


@dataclass_transform(frozen_default=True)
def part(name: str) -> Callable[[type[Shape]], type[Shape]]:
    """Define a part of messages: make the class a frozen dataclass that the JSON schema calls `name`."""

    def define(shape: type[Shape]) -> type[Shape]:
        defined: Any = dataclass(frozen=True, slots=True)(shape)
        defined.schema_name = name
        return defined  # type: ignore[no-any-return]

    return define
