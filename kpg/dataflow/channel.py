"""Channels carry messages from the output of an operator to an input of another, on the same worker or on its peers.

A pact decides where a message goes: `LocalPact` to the same worker, `ExchangePact` each update to the worker that owns
its key, `BroadcastPact` to all workers, `FollowPact` nowhere.

The sender counts every message at its destination in the same atomic set of progress changes in which it gives up its
own capability. So progress tracking sees every message at all times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from kpg.columns.updates import Updates
from kpg.dataflow.operator import Message

if TYPE_CHECKING:
    from kpg.dataflow.direct_run import DirectRun
    from kpg.dataflow.operator import Operator

Split: TypeAlias = Callable[[Any, int], list[Any]]  # (payload, number of workers) → a payload or None for each worker


@dataclass(frozen=True, slots=True)
class LocalPact:
    """Every message stays on its worker."""


@dataclass(frozen=True, slots=True)
class ExchangePact:
    """Each update goes to the worker that `split` assigns it to, so that equal keys are on one worker."""

    split: Split
    symbolic: tuple[int, ...] = ()  # the lanes that hold symbols, which other workers number differently


@dataclass(frozen=True, slots=True)
class BroadcastPact:
    """Every update goes to every worker; `updates_of` makes one `Updates` object of a payload."""

    updates_of: Callable[[Any], Updates]
    symbolic: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FollowPact:
    """No message is sent. The target follows the frontier only, and reads the updates from a trace."""


Pact: TypeAlias = LocalPact | ExchangePact | BroadcastPact | FollowPact


class Channel:
    """The connection from one output to one input of a dataflow."""

    __slots__ = ("index", "entity", "pact", "target", "target_input", "direct")

    def __init__(self, index: int, entity: int, target: Operator, target_input: int, pact: Pact) -> None:
        self.index = index
        self.entity = entity
        self.target = target
        self.target_input = target_input
        self.pact = pact
        self.direct: DirectRun | None = None  # if messages may skip progress counts

    def send(self, message: Message) -> None:
        """Count a message at its destination and send it there."""
        direct = self.direct
        if direct is not None and direct.active:
            target = self.target
            target.queues[self.target_input].append(message)
            unit = target.unit or target
            if not unit.scheduled:
                direct.schedule(unit)
            dataflow = target.dataflow
            if dataflow.usage is not None or dataflow.events is not None:
                self.meter(message)
            return
        if isinstance(self.pact, FollowPact):
            return
        worker = self.target.dataflow.worker
        if worker.peers == 1 or isinstance(self.pact, LocalPact):
            self.count(message)
            self.deliver(message)
            return
        if isinstance(self.pact, BroadcastPact):
            parts, symbolic = [self.pact.updates_of(message.payload)] * worker.peers, self.pact.symbolic
        else:
            parts, symbolic = self.pact.split(message.payload, worker.peers), self.pact.symbolic
        for peer, part in enumerate(parts):
            if part is not None:
                slice_ = Message(message.times, part)
                self.count(slice_, peer)
                if peer == worker.index:
                    self.deliver(slice_)
                else:
                    size = worker.transport.send_data(peer, self.target.dataflow.id, self.index, slice_, symbolic)
                    worker.sent_bytes += size
                    if worker.counts is not None:
                        worker.counts.add_message(self.target, rows_of(part), size)

    def count(self, message: Message, worker: int | None = None) -> None:
        """Count a message in the progress of the dataflow, at this worker or another."""
        update, location = self.target.dataflow.tracker.update, self.target.input_locations[self.target_input]
        for time in message.times:
            update(location, time, 1, worker)

    def deliver(self, message: Message) -> None:
        """Queue a message at the target, and schedule the target."""
        self.target.queues[self.target_input].append(message)
        self.target.dataflow.worker.schedule(self.target)
        self.meter(message)

    def meter(self, message: Message) -> None:
        """Count the rows of a message, if the dataflow has limits or logs events."""
        dataflow = self.target.dataflow
        if dataflow.usage is not None:
            dataflow.usage.rows += rows_of(message.payload)
        if dataflow.events is not None:
            dataflow.events.messages += (self.entity, rows_of(message.payload))


def rows_of(payload: Any) -> int:
    """Return the number of updates in a payload: an `Updates` object or a list of batches."""
    return len(payload) if isinstance(payload, Updates) else sum(map(len, payload))
