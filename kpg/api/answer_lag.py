"""How far answers lag behind the clock, the memory that this pins, and the limit of both.

    lag of a dataflow     the epochs that it has received and not completed, since it was installed
    pinned bytes          the batches that wait at its inputs, and the batches of the traces it reads that are newer
                          than the last epoch it completed: the traces must neither merge nor compact these

An answer that lags takes all waiting epochs at once when it gets its turn. An answer is rebuilt once from the current
rows, which takes no notice of the epochs between, if it pins more than PINNED_SHARE of the memory limit. So is one that
lags by more than `max_lag` epochs and has not completed these when the process has computed for CATCH_UP_SECONDS more:
a light answer only waits for its turn, and many clients may close more epochs than `max_lag` before it gets one.
If a rebuilt answer then lags again, or an answer cannot be rebuilt, it is stopped with Lagging. It cannot be rebuilt if
other queries read it, or if it keeps no rows and some of its changes were read: nothing could tell the difference.
Cost: a pass over the answers every CHECK_SECONDS, or later if it takes long, while some answer is not complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import monotonic, process_time
from typing import TYPE_CHECKING, Any, NamedTuple

from kpg.config import Config
from kpg.dataflow.graph import Dataflow
from kpg.errors import Lagging
from kpg.operators.arrange import Publisher
from kpg.trace.batch import Batch

if TYPE_CHECKING:
    from kpg.api.embedded_output import EmbeddedOutput

CHECK_SECONDS = 0.05
CHECK_SHARE = 0.02  # of the time that checks may take: an answer may have a batch for each round of a recursion
PINNED_SHARE = 0.1  # of the memory limit
CATCH_UP_SECONDS = 0.5  # of CPU time of the process, for the epochs that an answer lags by: many turns of a light one


class AnswerLag(NamedTuple):
    """The lag of one dataflow."""

    epochs: int
    pinned_bytes: int


def lag_of(dataflow: Dataflow) -> AnswerLag:
    """Return how far a dataflow lags behind the dataflows and inputs that it reads."""
    received = [time[0] for frontier in dataflow.tracker.source_frontiers() for time in frontier.elements]
    in_flight = dataflow.tracker.least_in_flight()
    if not received or in_flight is None:
        return AnswerLag(0, 0)
    epochs = max(0, min(received) - max(in_flight, dataflow.first_epoch + 1))
    return AnswerLag(epochs, pinned_bytes(dataflow, in_flight) if epochs else 0)


def pinned_bytes(dataflow: Dataflow, first: int) -> int:
    """Return the bytes that a dataflow pins whose first incomplete epoch is `first`, each batch counted once."""
    pinned = {id(part): part for operator in dataflow.operators for part in _queued(operator.queues)}
    pinned |= {id(batch): batch for batch in _unread_batches(dataflow, first)}
    return sum(part.nbytes for part in pinned.values())


def _unread_batches(dataflow: Dataflow, first: int) -> Iterator[Batch]:
    """Yield the batches of the traces that a dataflow imports which begin at or after an epoch."""
    for source in dataflow.imports:
        for operator in source.operators:
            if isinstance(operator, Publisher) and any(reader.dataflow is dataflow for reader in operator.importers):
                spine = operator.spine()
                for batch in () if spine is None else spine.batches_through(None):
                    if batch.lower and batch.lower.elements[0][0] >= first:
                        yield batch


def _queued(queues: list[list[Any]]) -> Iterator[Any]:
    for messages in queues:
        for message in messages:
            yield from message.payload if isinstance(message.payload, tuple) else (message.payload,)


class CatchingUp(NamedTuple):
    """The epochs that a dataflow has to complete, and the time that it has for them."""

    end: int  # the first epoch that need not be complete
    deadline: float  # in CPU time of the process


class LagLimit:
    """The limit of a db's answers: the epochs that they may lag behind, and the bytes that they may pin."""

    def __init__(self, config: Config) -> None:
        self._epochs = config.max_lag
        self._bytes = None if config.memory_limit is None else int(PINNED_SHARE * config.memory_limit)
        self._next_check = 0.0
        self._behind: dict[int, CatchingUp] = {}  # by dataflow: those that lagged too far at the last check

    def exceeded(self, outputs: Iterable[EmbeddedOutput]) -> list[tuple[EmbeddedOutput, AnswerLag]]:
        """Return the outputs that lag too far, if a check is due."""
        if (self._epochs is None and self._bytes is None) or monotonic() < self._next_check:
            return []
        began = monotonic()
        lags = [(output, lag_of(output.dataflow)) for output in outputs if not output.ended]
        now = monotonic()
        self._next_check = now + max(CHECK_SECONDS, (now - began) / CHECK_SHARE)
        used = process_time()
        self._note_behind([(output.dataflow, lag.epochs) for output, lag in lags], used)
        return [(output, lag) for output, lag in lags if self._exceeds(output.dataflow, lag, used)]

    def _note_behind(self, lags: list[tuple[Dataflow, int]], used: float) -> None:
        """Note which dataflows lag by too many epochs, and which epochs they have to complete by when."""
        before, self._behind = self._behind, {}
        for dataflow, epochs in lags:
            first = dataflow.tracker.least_in_flight()
            if self._epochs is not None and epochs > self._epochs and first is not None:
                noted = before.get(dataflow.id)
                if noted is None or first >= noted.end:  # it has caught up, and fallen behind again
                    noted = CatchingUp(first + epochs, used + CATCH_UP_SECONDS)
                self._behind[dataflow.id] = noted

    def _exceeds(self, dataflow: Dataflow, lag: AnswerLag, used: float) -> bool:
        if dataflow.id in self._behind and used >= self._behind[dataflow.id].deadline:
            return True
        return self._bytes is not None and lag.pinned_bytes > self._bytes

    def error(self, name: str, lag: AnswerLag) -> Lagging:
        """Return the error of an answer that is stopped."""
        return Lagging(
            f"{name} fell too far behind",
            detail=f"It is {lag.epochs:,} epochs behind and pins {lag.pinned_bytes:,} bytes; the limits are "
            f"{'none' if self._epochs is None else format(self._epochs, ',')} and "
            f"{'none' if self._bytes is None else format(self._bytes, ',')}.",
            hint="Ask for less, write less often, or raise the limits: max_lag= and memory_limit= of kpg.open, "
            "kpg serve --max-lag N and --max-memory BYTES.",
        )
