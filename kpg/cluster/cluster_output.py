"""Answers and indexes of a cluster: each worker holds a shard, and reading asks all of them.

What comes back is the sum of the shards: a row is on one worker only, the owner of its key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.api.changes import Change, Changes, in_time_order
from kpg.api.collection import Collection
from kpg.api.group import Group
from kpg.api.trace_reads import counted_table, rows_table
from kpg.cluster.message import Rows, symbolic_lanes
from kpg.columns.consolidation import consolidate_all
from kpg.columns.rows import rows_of
from kpg.columns.schema import Schema
from kpg.columns.table_rows import encode
from kpg.columns.updates import Updates, concatenate, constant, no_updates, spread
from kpg.config import CHANGES_LIMIT
from kpg.errors import Closed, InputError
from kpg.plan import nodes

if TYPE_CHECKING:
    from kpg.cluster.cluster_database import ClusterDatabase


class ClusterOutput:
    """An installed answer, held by the workers."""

    def __init__(self, db: ClusterDatabase, name: str, schema: Schema, keep: bool) -> None:
        self.db = db
        self.name = name
        self.schema = schema
        self.keep = keep
        self.followed = False  # whether each advance brings the changes along: somebody has asked for changes
        self._waiting: list[Updates] = []
        self._listeners: list[Callable[[Changes], Any]] = []
        self._released = False

    # Changes

    def take_changes(self) -> Changes:
        """All updates since this was last called, together, earlier times first."""
        self._check()
        if not self.followed:
            self._follow()
        waiting, self._waiting = self._waiting, []
        found = concatenate(waiting) if waiting else no_updates(len(self.schema), self.db.config.coordinates)
        return Changes(in_time_order(found), self.schema, self.db)

    def _follow(self) -> None:
        """Fetch what has changed so far; from now on it comes by itself."""
        with self.db.coordinator.lock:
            replies = self.db.ask({"do": "changes", "name": self.name})
            self.followed = True
            self.take([reply.blocks[0] for reply in replies])

    def take(self, parts: list[Updates]) -> None:
        """Keep changes that the workers sent until somebody reads them; many that nobody reads are summed up."""
        self._waiting += [part for part in parts if len(part)]
        if sum(map(len, self._waiting)) > CHANGES_LIMIT:
            last = constant(tuple(self._waiting[-1].times.max(axis=1).tolist()))
            self._waiting = [consolidate_all([Updates(part.data, last, part.diffs) for part in self._waiting])]

    def changes(self) -> Iterator[Change]:
        """Each (row, time, diff) since this was last asked."""
        return iter(self.take_changes())

    def on_change(self, function: Callable[[Changes], Any]) -> Callable[[], None]:
        """Call `function(changes)` after each advance that changed something; returns a function that stops it."""
        self._check()
        self._listeners.append(function)
        if not self.followed:
            self._follow()
        return lambda: self._listeners.remove(function)

    def notify(self) -> None:
        """Tell the listeners what has changed, if there are any."""
        if self._listeners and self._waiting:
            changes = self.take_changes()
            for listener in tuple(self._listeners):
                listener(changes)

    def capture(self, path: Any) -> Any:
        """Not for answers that are with workers."""
        raise InputError(
            "an answer of workers cannot be captured to a file yet",
            hint="Follow it with on_change(), or take_changes().",
        )

    # Reading

    def snapshot(self, as_of: Any = None, *, counts: bool = False) -> pa.Table:
        """The rows as of a time, the last complete one if not said; with counts=True each once with its count."""
        self._check()
        if not self.keep:
            raise InputError(f"output {self.name} keeps nothing to read", hint="Install it without keep=False.")
        found = self.db.read({"do": "snapshot", "name": self.name}, as_of)
        if counts:
            return counted_table(self.db, self.schema, found.data, found.diffs[0])
        return rows_table(self.db, self.name, self.schema, found.data, found.diffs[0])

    def rows(self, as_of: Any = None) -> list[tuple[Any, ...]]:
        """The rows as of a time as tuples, sorted."""
        return sorted(rows_of(self.snapshot(as_of)), key=lambda row: tuple((value is not None, value) for value in row))

    def to_pandas(self, as_of: Any = None) -> Any:
        """The rows as of a time as a pandas DataFrame."""
        return self.snapshot(as_of).to_pandas()

    def frontier(self) -> Frontier:
        """What may still change, on some worker."""
        self._check()
        return self.db.frontier_of("output", self.name)

    def explain(self) -> str:
        """One block per arrangement that this answer keeps or shares, for each worker."""
        self._check()
        return self.db.explain_workers(self.name)

    # Life

    def _check(self) -> None:
        self.db.check()
        if self._released:
            raise Closed(f"output {self.name} was released")

    def release(self) -> None:
        """Drop the answer and everything it holds; may be repeated."""
        if not self._released:
            self._released = True
            self.db.outputs.pop(self.name, None)
            self.db.let_go("output", self.name)

    def __enter__(self) -> ClusterOutput:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"Output({self.name!r}, {self.schema!r})"


class ClusterIndex:
    """What a plan calls an arrangement that the workers hold."""

    def __init__(self, number: int, name: str, keys: tuple[str, ...]) -> None:
        self.number = number
        self.name = name
        self.keys = keys


class ClusterArrangement(Collection):
    """A collection with an index by `keys`, held by the workers."""

    db: ClusterDatabase

    def __init__(self, db: ClusterDatabase, index: ClusterIndex, described: nodes.PlanNode) -> None:
        super().__init__(db, nodes.InstalledNode(described.schema, frozenset(), index))
        self.index = index
        self._released = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that this is indexed by."""
        return self.index.keys

    def lookup(self, *key: Any, as_of: Any = None) -> pa.Table:
        """The rows with a key, as of a time; the last complete one if not said."""
        return self.lookup_many([key], as_of=as_of)

    def lookup_many(self, keys: Any, as_of: Any = None) -> pa.Table:
        """The rows with any of some keys, as of a time."""
        self._check()
        wanted = self.schema.select(self.keys)
        block = Rows(
            Updates(encode(wanted, keys, self.db.symbols), constant((0,)), constant((1,))), symbolic_lanes(wanted)
        )
        return self._table(self.db.read({"do": "lookup", "number": self.index.number}, as_of, [block]))

    def scan(self, as_of: Any = None) -> pa.Table:
        """All rows, as of a time; the last complete one if not said."""
        self._check()
        return self._table(self.db.read({"do": "scan", "number": self.index.number}, as_of))

    def _table(self, found: Updates) -> pa.Table:
        return rows_table(self.db, self.index.name, self.schema, found.data, found.diffs[0])

    def group(self) -> Group:
        """The groups of rows with equal key."""
        return self.group_by(*self.keys)

    def release(self) -> None:
        """Let go: when no query uses it either, the index is freed. May be repeated."""
        if not self._released:
            self._released = True
            self.db.let_go("arrangement", self.index.number)

    def _check(self) -> None:
        self.db.check()
        if self._released:
            raise Closed("the arrangement was released")

    def __enter__(self) -> ClusterArrangement:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


class ClusterProbe:
    """A dataflow on the workers that is installed only to know how far it has come."""

    def __init__(self, db: ClusterDatabase, number: int) -> None:
        self.db = db
        self.number = number

    def frontier(self) -> Frontier:
        """What may still come, to some worker."""
        return self.db.frontier_of("probe", self.number)

    def passed(self, time: Any) -> bool:
        """Whether everything at a time has come."""
        return not self.frontier().beyond(self.db.as_time(time))

    def release(self) -> None:
        """Drop the dataflow; may be repeated."""
        self.db.let_go("probe", self.number)


def all_rows(parts: list[Updates]) -> Updates:
    """The shards of a read as one, with a count for each row."""
    filled = [Updates(part.data, part.times, spread(part.diffs, len(part))) for part in parts]
    found = concatenate(filled)
    return Updates(np.ascontiguousarray(found.data), found.times, spread(found.diffs, len(found)))
