"""What the engine says about itself: typed events, sent to whoever installed a sink.

Metrics, logs and explanations are views of these. With no sink an event is never made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in one dataflow of one worker."""

    worker: int
    dataflow: int


@dataclass(frozen=True, slots=True)
class Installed(Event):
    """A dataflow was built."""

    name: str


@dataclass(frozen=True, slots=True)
class Dropped(Event):
    """A dataflow ended: its owner dropped it, its inputs closed, or it failed."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Operates(Event):
    """An operator was added to a dataflow."""

    operator: int
    name: str


@dataclass(frozen=True, slots=True)
class Connects(Event):
    """A channel was added between two operators."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Stepped(Event):
    """An operator ran once."""

    operator: int
    messages: int


@dataclass(frozen=True, slots=True)
class Sealed(Event):
    """An arrangement made a batch."""

    operator: int
    rows: int


@dataclass(frozen=True, slots=True)
class Merged(Event):
    """A trace replaced two batches by one."""

    operator: int
    rows_before: int
    rows_after: int


@dataclass(frozen=True, slots=True)
class Progressed(Event):
    """A worker told its peers what it had done."""

    changes: int


EventSink: TypeAlias = Callable[[Event], None]
