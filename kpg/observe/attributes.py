"""The attributes of the log: what can be asked about a running db, and what it means.

Entities are numbers (`kpg.events.entity_of`): of operators, of the dataflows and loops they are in, of channels, and of
workers. Each attribute has at most one value for an entity, so as a relation it is a set, and a sum over it is right
whether or not somebody makes it distinct; the three of single schedules have an entity for each event, of the last
epoch that was told.

Times are nanoseconds. Counts are since the log began; sizes are what is there now.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kpg.errors import UndefinedName


class LogAttribute(NamedTuple):
    """What an attribute relates to an entity."""

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
TOLD = ":timely.event.progress/count"
TOLD_CHANGES = ":timely.event.progress/changes"
IMPORTS = ":differential.event/imports"
SIZE = ":differential.event/size"
BYTES = ":differential.event/bytes"
BATCHES = ":differential.event/batches"
BATCHED = ":differential.event/batched"
MERGES = ":differential.event/merges"
MERGED = ":differential.event/merged"

ATTRIBUTES: dict[str, LogAttribute] = {
    SCOPE: LogAttribute(int, "operator, channel, loop or dataflow → the loop, dataflow or worker that it is in"),
    NAME: LogAttribute(str, "operator, loop, dataflow or worker → its name"),
    LOCAL_ID: LogAttribute(int, "operator → its number within its dataflow"),
    DATAFLOW: LogAttribute(int, "operator or channel → its dataflow"),
    SHUTDOWN: LogAttribute(bool, "operator, channel, loop or dataflow that is gone → true"),
    SOURCE: LogAttribute(int, "channel → the operator that sends"),
    SOURCE_PORT: LogAttribute(int, "channel → from which of its outputs"),
    TARGET: LogAttribute(int, "channel → the operator that receives"),
    TARGET_PORT: LogAttribute(int, "channel → at which of its inputs"),
    MESSAGES: LogAttribute(int, "channel → messages that have come through"),
    MESSAGE_ROWS: LogAttribute(int, "channel → updates in them"),
    STEPS: LogAttribute(int, "operator → steps"),
    SPENT: LogAttribute(int, "operator → time spent in them, idle merging included"),
    STEP_OPERATOR: LogAttribute(int, "single step → its operator"),
    STEP_START: LogAttribute(int, "single step → when it began, since the log did"),
    STEP_ELAPSED: LogAttribute(int, "single step → how long it took"),
    TOLD: LogAttribute(int, "worker → messages about progress to its peers"),
    TOLD_CHANGES: LogAttribute(int, "worker → changes of counts in them"),
    IMPORTS: LogAttribute(int, "operator that imports → the operator whose arrangement it reads"),
    SIZE: LogAttribute(int, "operator → updates in its arrangement: batched less merged"),
    BYTES: LogAttribute(int, "operator → bytes of their columns"),
    BATCHES: LogAttribute(int, "operator → batches that its arrangement got"),
    BATCHED: LogAttribute(int, "operator → updates in them"),
    MERGES: LogAttribute(int, "operator → merges that its arrangement did"),
    MERGED: LogAttribute(int, "operator → updates that merges, and its end, took away"),
}

SINGLE = (STEP_OPERATOR, STEP_START, STEP_ELAPSED)


def known(names: Iterable[str] | None) -> tuple[str, ...]:
    """Attributes by name, all if none are named."""
    asked = tuple(ATTRIBUTES) if names is None else tuple(dict.fromkeys(names))
    for name in asked:
        if name not in ATTRIBUTES:
            raise UndefinedName(f"{name!r} is not an attribute of the log", hint=f"There are: {', '.join(ATTRIBUTES)}.")
    return asked
