"""A rank's part of a durable cluster: it logs the rows it was given, and finds again those it owned.

    what was given to a rank is in that rank's log; what a rank owns is in that rank's checkpoint

Rows are given to any rank and exchanged, so all ranks make checkpoints together, at one frontier, and all recover from
the same one. What a rank finds may belong to another by now (another index came first this time): when the arrangement
of a relation is made, the ranks swap what each found for what each owns, as one step of the request that makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kpg.algebra.frontier import Frontier
from kpg.api.durability import DurableStore
from kpg.columns.consolidation import consolidate
from kpg.columns.selection import reorder_lanes
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates, concatenate, no_updates
from kpg.dataflow.operator import Message
from kpg.operators.exchange import partition
from kpg.storage.recovery import Recovered, batch_complete_updates
from kpg.storage.storage import Storage
from kpg.trace.batch import Batch
from kpg.trace.description import Description

if TYPE_CHECKING:
    from kpg.algebra.order import Time
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.api.installed_arrangement import InstalledArrangement
    from kpg.cluster.mesh import Mesh
    from kpg.operators.source import Source


class RankDurable(DurableStore):
    """The storage of one rank."""

    def __init__(
        self, storage: Storage, found: Recovered, symbols: Symbols, mesh: Mesh, beat: Callable[[], object]
    ) -> None:
        super().__init__(storage, found, symbols, checkpoint_bytes=2**62)
        self._mesh = mesh
        self._beat = beat

    def checkpoint_if_due(self, db: EmbeddedDatabase) -> None:
        """Checkpoints are made when the coordinator says so, by all ranks together."""

    def unwrite(self, db: EmbeddedDatabase) -> None:
        """Another rank could not write its part of a transaction: take back ours, if we have written it."""
        pending = self._pending
        if pending is not None:
            self.wait()
            self.storage.undo(db.time, pending.transaction.origins)

    def restore(self, name: str, source: Source, installed: InstalledArrangement, now: tuple[Time, ...]) -> None:
        """Put the rows that all ranks found into the new arrangement of a relation, each where it belongs."""
        relation = self.storage.take_relation(name)
        batch_complete_updates(
            relation, relation.later, Frontier(now)
        )  # the clock may have passed some, here or on another rank
        lanes = [relation.order.index(column) for column in installed.schema.names]
        spine = installed.handle.spine
        kept = [reorder_lanes(batch.updates, lanes) for batch in relation.batches]
        mine = self._swap(installed, concatenate(kept) if kept else no_updates(len(lanes), len(now[0])))
        since = self.found.since.get(name, Frontier.start(len(now[0])))
        description = Description(spine.upper, Frontier(now), since)
        spine.insert(Batch(consolidate(mine), len(installed.keys), description))
        installed.publisher.upper = spine.upper
        for later in relation.later:
            source.dataflow.feed(source, Message(now, reorder_lanes(later, lanes)))

    def _swap(self, installed: InstalledArrangement, found: Updates) -> Updates:
        """Give each rank what it owns of what was found here; what all of them give us."""
        schema = installed.schema
        symbolic = tuple(lane for lane, type_ in enumerate(schema.types) if type_.is_symbolic)
        is_text = tuple(schema.types[lane].is_symbolic for lane in range(len(installed.keys)))
        ranks = 1 + len(self._mesh.peers)
        parts = partition(found, is_text, self._symbols, ranks) if len(found) else [None] * ranks
        empty = Updates(found.data[:, :0], found.times[:, :1], found.diffs[:, :1])
        given = self._mesh.swap([part if part is not None else empty for part in parts], symbolic, self._beat)
        return concatenate([part for part in given if len(part)] or [empty])
