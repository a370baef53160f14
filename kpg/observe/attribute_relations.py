"""The relation of one attribute of an event log: (entity, value), one value for each entity.

The db writes it, users cannot. It is neither logged nor kept on disk.
Cost: a comparison for each entity with events, and a row for each value that has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from kpg.api.contracts import Input
from kpg.columns.schema import Schema
from kpg.columns.table_rows import encode
from kpg.columns.updates import Ints, Updates, constant
from kpg.errors import InUse
from kpg.observe import attributes as event_log


class LogWriter(Protocol):
    """A db that can have inputs which only it writes."""

    @property
    def inputs(self) -> Mapping[str, Input]:
        """The inputs by name."""

    def log_input(self, name: str, schema: Schema) -> Input:
        """Create an input that is neither logged nor kept on disk, and that users cannot write."""


class AttributeRelation:
    """The relation of one attribute, and the values written into it."""

    def __init__(self, db: LogWriter, name: str) -> None:
        if name in db.inputs:
            raise InUse(
                f"an input is already called {name!r}", hint="Drop it: the log needs this name for its attribute."
            )
        self.input = db.log_input(name, Schema.of({"e": int, "v": event_log.ATTRIBUTES[name].value}))
        self.input.keep_by("e")
        self.users = 0
        self.written: dict[int, Any] = {}
        self._single = np.empty((2, 0), np.int64)

    def write(self, values: dict[int, Any], touched: set[int]) -> None:
        """Replace the values that have changed."""
        old, new = [], []
        for entity in touched:
            before, after = self.written.get(entity), values.get(entity)
            if before != after:
                if before is not None:
                    old.append((entity, before))
                    del self.written[entity]
                if after is not None:
                    new.append((entity, after))
                    self.written[entity] = after
        self._insert(self._encoded(old), -1)
        self._insert(self._encoded(new), 1)

    def replace(self, data: Ints) -> None:
        """Replace all rows by integer columns."""
        self._insert(self._single, -1)
        self._insert(data, 1)
        self._single = data

    def _encoded(self, rows: list[tuple[int, Any]]) -> Ints:
        return encode(self.input.schema, rows, self.input.db.symbols)

    def _insert(self, data: Ints, diff: int) -> None:
        time = self.input.db.time.elements[0]
        self.input.take_lanes(Updates(data, constant(time), constant((diff,))))


def publish_steps(relations: Mapping[str, AttributeRelation], steps: list[int], first: int) -> int:
    """Make single steps, three numbers each, the rows of their attributes, numbered from `first`; return the end."""
    columns = np.array(steps, np.int64).reshape(-1, 3).T
    numbers = np.arange(first, first + columns.shape[1])
    for name, column in zip(event_log.SINGLE_STEP_ATTRIBUTES, columns, strict=True):
        if name in relations:
            relations[name].replace(np.ascontiguousarray([numbers, column]))
    return first + columns.shape[1]
