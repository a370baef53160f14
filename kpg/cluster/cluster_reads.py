"""Reads of a db on several workers: a command to all, whose shards are put together here.

    a read  =  the sum of the shards

A row is on one worker only, the owner of its key, so that shards are concatenated and need no merging. A request reads
large answers in parts: workers serve other commands, and this process other requests, between two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pyarrow as pa

from kpg.algebra.order import Time
from kpg.api.trace_reads import rows_table
from kpg.cluster.cluster_completion import ReportedAnswer
from kpg.cluster.cluster_output import UNLIMITED, ClusterOutput
from kpg.cluster.coordinator import RankReply
from kpg.cluster.rank_commands.command_kinds import Command
from kpg.cluster.rank_commands.query_commands import (
    CloseReadCommand,
    FirstRowsCommand,
    IndexedRowsCommand,
    LookupCommand,
    OpenReadCommand,
    ReadPartCommand,
    ScanCommand,
    SnapshotCommand,
)
from kpg.cluster.request_frames import RowBlock, symbolic_lanes
from kpg.columns.pause_points import aside
from kpg.columns.schema import Schema
from kpg.columns.table_rows import encode
from kpg.columns.updates import Updates, concatenate, constant, spread
from kpg.errors import Closed, KpgError, TimeNotReached

if TYPE_CHECKING:
    from kpg.cluster.cluster_database import ClusterDatabase
    from kpg.cluster.cluster_input import ClusterInput

Result = TypeVar("Result")

ROWS_PER_PART = 1 << 15  # that a worker sends of a large read before it serves other commands: about two milliseconds
TEXT_ROWS_PER_PART = 1 << 12  # the same, if rows have texts, which the other side looks up one by one


class ClusterReads:
    """Reads rows of answers, indexes and inputs from all workers."""

    def __init__(self, db: ClusterDatabase) -> None:
        self.db = db
        self._numbers = count()  # of reads in parts

    def rows(
        self,
        command: SnapshotCommand | LookupCommand | ScanCommand,
        answer: ReportedAnswer,
        as_of: Any,
        blocks: Sequence[RowBlock] = (),
    ) -> Updates:
        """Return rows of an answer as of a time."""
        return all_rows(
            [reply.blocks[0] for reply in self._ask(lambda time: replace(command, as_of=time), answer, as_of, blocks)]
        )

    def first_rows(self, command: FirstRowsCommand, answer: ReportedAnswer, as_of: Any) -> tuple[Updates, int]:
        """Return the first rows of each worker as of a time, and the number of all rows."""
        replies = self._ask(lambda time: replace(command, as_of=time), answer, as_of)
        return all_rows([reply.blocks[0] for reply in replies]), sum(int(reply.value) for reply in replies)

    def rows_in_parts(
        self, name: str, size: int, answer: ClusterOutput, as_of: Any, failing: bool = False
    ) -> tuple[Updates, int]:
        """Return at least the first `size` rows of each worker as of a time, or all, and the number of all rows.

        A request lets others run between two parts, on the workers and here. Small answers are one part. If `failing`,
        the rows are read although the answer fails.
        """
        part = part_rows(answer.schema)
        rows, total = self.first_rows(FirstRowsCommand(name, min(size, part), failing=failing), answer, as_of)
        while size > part and total > part:
            number = next(self._numbers)
            try:
                replies = self._ask(partial(OpenReadCommand, number, name, failing=failing), answer, as_of)
                total = sum(int(reply.value) for reply in replies)
                shards = self._parts(number, size, part, answer)
            finally:
                self._close(number)
            if shards is not None:
                return self._joined(shards), total
        return rows, total

    def _parts(self, number: int, size: int, part: int, answer: ClusterOutput | None) -> list[list[Updates]] | None:
        """Return the parts of a read from each worker; None if a new generation, without the read, has begun.

        Raise Closed if the answer is released meanwhile.
        """
        recoveries = self.db.recoveries
        shards: list[list[Updates]] = [[] for _ in range(self.db.workers)]
        while True:
            replies = self.db.ask(ReadPartCommand(number, part))
            if self.db.recoveries != recoveries:
                return None
            for shard, reply in zip(shards, replies, strict=True):
                shard += reply.blocks  # none of a worker that has sent all rows before
            if not any(
                reply.value and sum(map(len, shard)) < size for shard, reply in zip(shards, replies, strict=True)
            ):
                return shards
            self.db.pause_request()
            if self.db.recoveries != recoveries:
                return None
            if answer is not None and answer.is_released:
                raise Closed(f"output {answer.name} was released while it was read")

    def _close(self, number: int) -> None:
        """End a read in parts; workers that are lost have ended it already."""
        with suppress(KpgError):
            self.db.ask(CloseReadCommand(number))

    def _ask(
        self,
        command_at: Callable[[Time | None], Command[Result]],
        answer: ReportedAnswer | None,
        as_of: Any,
        blocks: Sequence[RowBlock] = (),
    ) -> list[RankReply[Result]]:
        """Ask all workers as of a time; again if they have begun a new generation, which may not have completed it."""
        while True:
            command = command_at(self._time_to_read(answer, as_of))
            recoveries = self.db.recoveries
            try:
                replies = self.db.ask(command, blocks)
            except TimeNotReached:
                if recoveries == self.db.recoveries:
                    raise
            else:
                if recoveries == self.db.recoveries:
                    return replies

    def _time_to_read(self, answer: ReportedAnswer | None, as_of: Any) -> Time | None:
        """Return the time to read an answer at, or an input if there is none; wait until it is complete.

        None is the last complete time, which all workers know if answers do not lag.
        """
        db, time = self.db, None if as_of is None else self.db.as_time(as_of)
        if not db.completion.lags or db.config.coordinates != 1 or db.epoch <= 0:
            return time
        if answer is None:
            return (db.epoch - 1,) if time is None else time
        if time is None:
            time = (db.completion.newest(answer),)
        elif time[0] < db.epoch:
            db.completion.wait_for(answer, time[0])
        failure = answer.error() if answer.dropped and isinstance(answer, ClusterOutput) else None
        if failure is not None:  # it failed while this read waited
            raise failure.with_traceback(None)
        return time

    def indexed_rows(
        self,
        kind: Literal["input", "output"],
        source: ClusterInput | ClusterOutput,
        keys: tuple[str, ...],
        rows: Any,
        as_of: Any,
    ) -> Callable[[], pa.Table] | None:
        """Return a function that returns the rows of an input or output with some keys, if it has an index by them.

        A request reads many rows in parts, as `rows_in_parts` does.
        """
        db, key_schema = self.db, source.schema.select(keys)
        encoded = Updates(encode(key_schema, rows, db.symbols), constant((0,)), constant((1,)))
        answer = source if isinstance(source, ClusterOutput) else None
        block = RowBlock(encoded, symbolic_lanes(key_schema))
        part = part_rows(source.schema) if db.in_request else None
        while True:
            number = next(self._numbers)

            def command_at(time: Time | None, number: int = number) -> IndexedRowsCommand:
                return IndexedRowsCommand(kind, source.name, keys, time, part, number)

            replies = self._ask(command_at, answer, as_of, [block])
            if replies[0].value == "no index":
                return None
            shards: list[list[Updates]] | None = [[reply.blocks[0]] for reply in replies]
            if part is not None and any(reply.value == "some" for reply in replies):
                try:
                    later = self._parts(number, UNLIMITED, part, answer)
                finally:
                    self._close(number)
                shards = (
                    None
                    if later is None
                    else [[reply.blocks[0], *more] for reply, more in zip(replies, later, strict=True)]
                )
            if shards is not None:
                return partial(self._table, source, self._joined(shards))

    def _table(self, source: ClusterInput | ClusterOutput, rows: Updates) -> pa.Table:
        with self.db.in_turns():
            return rows_table(self.db, source.name, source.schema, rows.data, rows.diffs[0])

    def _joined(self, shards: list[list[Updates]]) -> Updates:
        """Return the parts of all shards, one after the other; others run while there are many rows."""
        parts = [part for shard in shards for part in shard]
        with self.db.in_turns():
            return aside(sum(part.data.size for part in parts), all_rows, parts)


def part_rows(schema: Schema) -> int:
    """Return the number of rows with some columns that a worker sends in one part of a read."""
    return TEXT_ROWS_PER_PART if schema.symbolic_lanes() else ROWS_PER_PART


def all_rows(shards: list[Updates]) -> Updates:
    """Concatenate the shards of a read, with a count for each row."""
    counted = [Updates(shard.data, shard.times, spread(shard.diffs, len(shard))) for shard in shards]
    rows = concatenate(counted)
    return Updates(np.ascontiguousarray(rows.data), rows.times, spread(rows.diffs, len(rows)))
