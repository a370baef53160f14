"""The part of an input that all dbs share: encode the user's rows, check times and diffs, refuse use after the end.

    insert(rows)  =  take_lanes(encoded rows, at the open epoch, diff +1)
    remove(rows)  =  take_lanes(encoded rows, at the open epoch, diff −1)
    upsert(rows)  =  replace_lanes(encoded rows, of equal keys the last)

A subclass says where encoded rows go: into the pending rows of this process, or to the workers. Encoding is vectorised;
the cost of a call is that of the rows, plus a few checks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kpg.api.contracts import Database, Input
from kpg.api.times import show_frontier, show_time
from kpg.columns.count_limits import check_diffs
from kpg.columns.lane_values import MAX
from kpg.columns.resolve_changes import resolve_changes
from kpg.columns.schema import Schema
from kpg.columns.table_rows import encode
from kpg.columns.updates import Ints, Updates, constant
from kpg.columns.upserts import last_row_of_each_key
from kpg.errors import BadPlan, Closed, InsertOnly, InUse, KpgError, SchemaMismatch, TimeTooEarly
from kpg.plan.nodes import RelationNode, StreamNode

INSERTED = constant((1,))  # the diffs of inserted rows


class EncodingInput(Input):
    """An input that encodes rows and passes them on."""

    def __init__(
        self, db: Database, name: str, schema: Schema, key: str | Sequence[str] | None, keeps_rows: bool = True
    ) -> None:
        node = RelationNode(schema, frozenset(), self) if keeps_rows else StreamNode(schema, frozenset(), self)
        super().__init__(db, node)
        if not len(schema):
            raise SchemaMismatch(
                f"input {name!r} has no columns", hint='Name them, as in db.input("edges", src=int, dst=int).'
            )
        self.name = name
        self.key: tuple[str, ...] = (key,) if isinstance(key, str) else tuple(key or ())
        schema.select(self.key)
        self.keeps_rows = keeps_rows
        self.closed = self.dropped = self.insert_only = self.is_log = False
        self.on_dropped = ignore_drop

    # Where rows go

    @abstractmethod
    def replace_lanes(self, data: Ints) -> None:
        """Accept encoded rows, each key once, in place of the rows with equal key."""

    @abstractmethod
    def _take_made(self, function: Callable[..., Any], options: dict[str, Any], diff: int) -> None:
        """Accept the rows that a function returns on each worker."""

    def change_lanes(self, data: Ints, diffs: Ints, names: tuple[str, ...], order: str | None) -> None:
        key = list(self.schema.lanes_of(names))
        ordered = None if order is None else self.schema.lanes_of((order,))
        updates = resolve_changes(self.present(names, data[key]).data, data, diffs, key, ordered)
        self.take_lanes(Updates(updates.data, constant(self.db.time.elements[0]), updates.diffs))

    # Rows in

    def insert(self, rows: Any) -> None:
        self.take_encoded(self.encode_rows(rows), 1)

    def remove(self, rows: Any) -> None:
        self.take_encoded(self.encode_rows(rows), -1)

    def insert_made(self, function: Callable[..., Any], **options: Any) -> None:
        self._take_made(function, options, 1)

    def remove_made(self, function: Callable[..., Any], **options: Any) -> None:
        self._take_made(function, options, -1)

    def update_at(self, rows: Any, time: Any, diff: Any = 1) -> None:
        data = self.encode_rows(rows)
        times, diffs = self._times(time, data.shape[1]), self._diffs(diff, data.shape[1])
        now = self.db.time
        early = np.ones(times.shape[1], np.bool_)
        for element in now:
            early &= ~(times >= constant(element)).all(axis=0)
        if early.any() and data.shape[1]:
            first = tuple(times[:, int(np.argmax(early))].tolist())
            raise TimeTooEarly(
                f"cannot insert into {self.name} at {show_time(first)}",
                detail=f"The clock is at {show_frontier(now)}.",
                hint="Use the current time or a later one.",
            )
        self.take_lanes(Updates(data, times, diffs))

    def upsert(self, rows: Any) -> None:
        if not self.keeps_rows:
            raise BadPlan(f"{self.name} keeps no rows, so none can be replaced", hint="Create it without keep=False.")
        if not self.key:
            raise SchemaMismatch(
                f"input {self.name} has no key", hint='Declare one, as in db.input("users", key="id", ...).'
            )
        self.replace_lanes(last_row_of_each_key(self.encode_rows(rows), list(self.schema.lanes_of(self.key))))

    def check_rows(self, rows: Any) -> None:
        self.encode_rows(rows)

    def set_insert_only(self) -> None:
        self.insert_only = True

    def _check_removals(self, least_diff: int) -> None:
        """Raise if rows with this diff, and greater ones, would remove rows that must stay."""
        if self.insert_only and least_diff < 0:
            raise InsertOnly(
                f"cannot remove rows from {self.name}",
                detail="A program that was declared insert-only reads it.",
                hint="Run that program without insert-only, if rows are to be removed.",
            )

    def encode_rows(self, rows: Any) -> Ints:
        self._check_open()
        return encode(self.schema, rows, self.db.symbols)

    def _check_open(self) -> None:
        """Raise if the input takes no rows of users, or no more of them."""
        self.db.check()
        if self.is_log:
            raise InUse(f"{self.name} is written by the db itself")
        if self.closed:
            raise Closed(f"input {self.name} is closed")
        if not self.db.time.elements:
            raise Closed(f"input {self.name} is closed", detail="The clock was advanced to its end.")

    def take_encoded(self, data: Ints, diff: int) -> None:
        n = data.shape[1]
        times, diffs = constant(self.db.time.elements[0]), INSERTED if diff == 1 else constant((diff,))
        self.take_lanes(Updates(data, times, diffs, consolidated=n == 1, known_mass=abs(diff) * n))

    def _times(self, time: Any, n: int) -> Ints:
        """Return one time for all rows, or one for each: int64[coordinates, 1 or n]."""
        if isinstance(time, int) or (isinstance(time, tuple) and all(isinstance(x, int) for x in time)):
            return constant(self.db.as_time(time))
        times = whole_numbers(time, "times")
        times = times.reshape(1, -1) if times.ndim == 1 else times.T
        if times.shape != (self.db.config.coordinates, n):
            raise SchemaMismatch(
                f"{n} rows need as many times",
                detail=f"Found shape {times.T.shape}; a time has {self.db.config.coordinates} coordinate(s).",
            )
        return np.ascontiguousarray(times)

    def _diffs(self, diff: Any, n: int) -> Ints:
        """Return one diff for all rows, or one for each: int64[1, 1 or n]."""
        diffs = whole_numbers(diff, "diffs").reshape(1, -1)
        check_diffs(diffs)
        if diffs.shape[1] != n and np.ndim(diff):
            raise SchemaMismatch(f"{n} rows need as many diffs", detail=f"Found {diffs.shape[1]}.")
        return np.ascontiguousarray(diffs)


def ignore_drop(error: KpgError) -> None:
    """Do nothing: the advance that failed tells the user that rows were dropped."""


def whole_numbers(values: Any, what: str) -> Ints:
    """Return integers as a new array: the caller may change its own array later, or may have frozen it."""
    numbers = np.asarray(values)
    if numbers.dtype == object and all(isinstance(value, int) for value in numbers.flat):
        beyond = next((value for value in numbers.flat if abs(value) > MAX), 0)
        raise SchemaMismatch(f"{what} are whole numbers below 2^63", detail=f"Found {beyond}."[:200])
    if numbers.dtype.kind not in "iu" and numbers.size:
        raise SchemaMismatch(f"{what} are whole numbers", detail=f"Found {values!r}."[:200])
    if numbers.dtype.kind == "u" and numbers.size and int(numbers.max()) > MAX:
        raise SchemaMismatch(f"{what} are whole numbers below 2^63", detail=f"Found {numbers.max()}.")
    return np.array(numbers, np.int64)
