"""The aggregates of one query level, collected while its expressions are bound.

Each distinct call gets one result column; the scalars that contain the call refer to that column. Calls that are equal
share it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kpg.sql.parse.spans import Span
from kpg.sql.relational.scalars import AggregateCall, Column, ColumnValue, Scalar
from kpg.sql.sql_types import INTEGER


@dataclass(frozen=True)
class GroupingCall:
    """GROUPING(…): the keys that it asks about."""

    arguments: tuple[Scalar, ...]
    span: Span | None


@dataclass
class AggregateCollector:
    """Calls with the columns of their results."""

    calls: list[AggregateCall] = field(default_factory=list)
    results: list[Column] = field(default_factory=list)
    groupings: list[GroupingCall] = field(default_factory=list)
    grouping_results: list[Column] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether no aggregate was found."""
        return not (self.calls or self.groupings)

    def add(self, call: AggregateCall) -> Scalar:
        """Return the result of a call."""
        if call in self.calls:
            column = self.results[self.calls.index(call)]
        else:
            column = Column(call.function.name, call.type)
            self.calls.append(call)
            self.results.append(column)
        return ColumnValue(column, type=column.type, span=call.span)

    def add_grouping(self, call: GroupingCall) -> Scalar:
        """Return the result of GROUPING(…)."""
        column = Column("grouping", INTEGER)
        self.groupings.append(call)
        self.grouping_results.append(column)
        return ColumnValue(column, type=INTEGER, span=call.span)
