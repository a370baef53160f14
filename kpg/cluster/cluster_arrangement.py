"""The indexes and probes of a db on several workers: each worker holds a shard, and reading asks all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.api.contracts import Arrangement, Probe
from kpg.api.trace_reads import rows_table
from kpg.cluster.rank_commands.input_commands import SizeCommand
from kpg.cluster.rank_commands.query_commands import (
    LookupCommand,
    ProbeFrontierCommand,
    ReleaseArrangementCommand,
    ReleaseProbeCommand,
    ScanCommand,
)
from kpg.cluster.rank_reports import index_key
from kpg.cluster.request_frames import RowBlock, symbolic_lanes
from kpg.columns.table_rows import encode
from kpg.columns.updates import Updates, constant
from kpg.errors import Closed, InputError
from kpg.plan.nodes import InstalledNode, PlanNode

if TYPE_CHECKING:
    from kpg.cluster.cluster_database import ClusterDatabase


class ClusterIndex:
    """The reference by which a plan names an arrangement that the workers hold."""

    def __init__(self, db: ClusterDatabase, number: int, name: str, keys: tuple[str, ...]) -> None:
        self.number = number
        self.name = name
        self.keys = keys
        self._db = db

    @property
    def size(self) -> int:
        """The number of updates that all workers hold of it."""
        return sum(reply.value for reply in self._db.ask(SizeCommand("index", self.number)))


class ClusterArrangement(Arrangement):
    """An index that the workers hold."""

    db: ClusterDatabase

    def __init__(self, db: ClusterDatabase, index: ClusterIndex, described: PlanNode, installed_by: int) -> None:
        super().__init__(db, InstalledNode(described.schema, frozenset(), index))
        self.index = index
        self.installed_by = installed_by
        self.first_epoch = db.epoch - 1
        self._released = False

    @property
    def report_key(self) -> str:
        """Its key in the reports of workers."""
        return index_key(self.index.number)

    @property
    def dropped(self) -> bool:
        """Whether it was released."""
        return self._released

    @property
    def keys(self) -> tuple[str, ...]:
        return self.index.keys

    def lookup_many(self, keys: Any, as_of: Any = None) -> pa.Table:
        self._check()
        key_schema = self.schema.select(self.keys)
        encoded = Updates(encode(key_schema, keys, self.db.symbols), constant((0,)), constant((1,)))
        command = LookupCommand(self.index.number)
        return self._table(self.db.reads.rows(command, self, as_of, [RowBlock(encoded, symbolic_lanes(key_schema))]))

    def scan(self, as_of: Any = None) -> pa.Table:
        self._check()
        return self._table(self.db.reads.rows(ScanCommand(self.index.number), self, as_of))

    @property
    def rows(self) -> int:
        raise self._no_figures()

    @property
    def nbytes(self) -> int:
        raise self._no_figures()

    def _no_figures(self) -> InputError:
        return InputError(
            "the size of an index is known to its workers only", hint="See db.describe() or db.explain()."
        )

    def _table(self, rows: Updates) -> pa.Table:
        return rows_table(self.db, self.index.name, self.schema, rows.data, rows.diffs[0])

    def release(self) -> None:
        if not self._released:
            self._released = True
            self.db.release_on_workers(ReleaseArrangementCommand(self.index.number))

    def _check(self) -> None:
        self.db.check()
        if self._released:
            raise Closed("the arrangement was released")


class ClusterProbe(Probe):
    """A dataflow on the workers that reports only its progress."""

    db: ClusterDatabase

    def __init__(self, db: ClusterDatabase, number: int) -> None:
        self.db = db
        self.number = number

    def frontier(self) -> Frontier:
        return self.db.frontier_of(ProbeFrontierCommand(self.number))

    def release(self) -> None:
        self.db.release_on_workers(ReleaseProbeCommand(self.number))
