"""The attributes of the event log, with their meanings.

Entities are numbers (`kpg.events.entity_of`) of operators, of the dataflows and loops that contain them, of channels,
and of workers. Each attribute has at most one value per entity, so as a relation it is a set and sums over it need no
`distinct`. The three attributes of single steps have one entity per step, for the steps of the last published epoch.

Times are in nanoseconds. Counts begin with the log; sizes are current.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kpg.errors import UndefinedName


class LogAttribute(NamedTuple):
    """The type and the meaning of an attribute's values."""

    value: type
    meaning: str


SCOPE = ":timely/scope"
NAME = ":timely.event.operates/name"
LOCAL_ID = ":timely.event.operates/local-id"
DATAFLOW = ":timely.event.operates/dataflow"
SHUTDOWN = ":timely.event.operates/shutdown?"
SOURCE = ":timely.event.channels/src-index"
SOURCE_PORT = ":timely.event.channels/src-port"
TARGET = ":timely.event.channels/target-index"
TARGET_PORT = ":timely.event.channels/target-port"
MESSAGES = ":timely.event.messages/count"
MESSAGE_ROWS = ":timely.event.messages/rows"
STEPS = ":timely.event.schedule/count"
SPENT = ":timely.event.schedule/time"
STEP_OPERATOR = ":timely.event.schedule/operator"
STEP_START = ":timely.event.schedule/start"
STEP_ELAPSED = ":timely.event.schedule/elapsed"
PROGRESS_MESSAGES = ":timely.event.progress/count"
PROGRESS_CHANGES = ":timely.event.progress/changes"
IMPORTS = ":differential.event/imports"
SIZE = ":differential.event/size"
BYTES = ":differential.event/bytes"
BATCHES = ":differential.event/batches"
BATCHED = ":differential.event/batched"
MERGES = ":differential.event/merges"
MERGED = ":differential.event/merged"

ATTRIBUTES: dict[str, LogAttribute] = {
    SCOPE: LogAttribute(int, "operator, channel, loop or dataflow → the loop, dataflow or worker that contains it"),
    NAME: LogAttribute(str, "operator, loop, dataflow or worker → its name"),
    LOCAL_ID: LogAttribute(int, "operator → its number within its dataflow"),
    DATAFLOW: LogAttribute(int, "operator or channel → its dataflow"),
    SHUTDOWN: LogAttribute(bool, "operator, channel, loop or dataflow that was dropped → true"),
    SOURCE: LogAttribute(int, "channel → the operator that sends"),
    SOURCE_PORT: LogAttribute(int, "channel → from which of its outputs"),
    TARGET: LogAttribute(int, "channel → the operator that receives"),
    TARGET_PORT: LogAttribute(int, "channel → at which of its inputs"),
    MESSAGES: LogAttribute(int, "channel → messages received"),
    MESSAGE_ROWS: LogAttribute(int, "channel → updates in them"),
    STEPS: LogAttribute(int, "operator → steps"),
    SPENT: LogAttribute(int, "operator → time spent in steps, idle merging included"),
    STEP_OPERATOR: LogAttribute(int, "single step → its operator"),
    STEP_START: LogAttribute(int, "single step → its start, since the start of the log"),
    STEP_ELAPSED: LogAttribute(int, "single step → its duration"),
    PROGRESS_MESSAGES: LogAttribute(int, "worker → progress messages sent to its peers"),
    PROGRESS_CHANGES: LogAttribute(int, "worker → changes of counts in them"),
    IMPORTS: LogAttribute(int, "importing operator → the operator that publishes the arrangement"),
    SIZE: LogAttribute(int, "operator → updates in its arrangement: batched less merged"),
    BYTES: LogAttribute(int, "operator → bytes of their columns"),
    BATCHES: LogAttribute(int, "operator → batches added to its arrangement"),
    BATCHED: LogAttribute(int, "operator → updates in them"),
    MERGES: LogAttribute(int, "operator → merges of its arrangement"),
    MERGED: LogAttribute(int, "operator → updates removed by merges, or when the arrangement was dropped"),
}

SINGLE_STEP_ATTRIBUTES = (STEP_OPERATOR, STEP_START, STEP_ELAPSED)
SINGLE_STEPS = frozenset(SINGLE_STEP_ATTRIBUTES)


def resolve_attributes(names: Iterable[str] | None) -> tuple[str, ...]:
    """Return attribute names without duplicates, all by default; raise for an unknown name."""
    resolved = tuple(ATTRIBUTES) if names is None else tuple(dict.fromkeys(names))
    for name in resolved:
        if name not in ATTRIBUTES:
            raise UndefinedName(f"{name!r} is not an attribute of the log", hint=f"They are: {', '.join(ATTRIBUTES)}.")
    return resolved
