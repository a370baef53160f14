"""The storage of a rank: it logs the rows that it receives, and recovers those that it owned.

    rows that a rank received are in its log; rows that a rank owns are in its checkpoint

Any rank may receive a row, and ranks exchange rows by owner. All ranks therefore write checkpoints together, at one
frontier, and all recover from the same one. A recovered row may belong to another rank now, if another arrangement came
first this time. When a relation is arranged, the ranks exchange what each recovered for what each owns, as one step of
the command that arranges it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from typing import TYPE_CHECKING

from kpg.algebra.frontier import Frontier
from kpg.api.durability import DurableStore
from kpg.columns.consolidation import consolidate
from kpg.columns.selection import reorder_lanes
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates, concatenate, no_updates
from kpg.dataflow.operator import Message
from kpg.operators.exchange import partition_by
from kpg.storage.checkpoint import Checkpoint
from kpg.storage.record import Origin
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
        self,
        storage: Storage,
        recovered: Recovered,
        symbols: Symbols,
        mesh: Mesh,
        check_abandoned: Callable[[], object],
    ) -> None:
        super().__init__(storage, recovered, symbols, checkpoint_bytes=2**62)
        self._mesh = mesh
        self._check_abandoned = check_abandoned
        self._common: Checkpoint | None = None  # the last one that all ranks began

    def checkpoint_if_due(self, db: EmbeddedDatabase) -> None:
        """Do nothing: all ranks write checkpoints together, on a command of the coordinator."""

    def begin_common_checkpoint(self, db: EmbeddedDatabase, keep: Frontier) -> None:
        """Begin to write a checkpoint in the background. The last one at the frontier `keep` stays readable."""
        if self.storage.under_way is not None:  # of which another rank's part has failed
            wait([self.storage.under_way.written])
            self.collect_checkpoint()
        self._common = self.begin_checkpoint(db, keep)

    def end_common_checkpoint(self, waiting: bool) -> int | None:
        """Return the number of files of the last checkpoint if it has ended; raise if it has failed."""
        assert self._common is not None
        if not waiting and not self._common.written.done():
            return None
        wait([self._common.written])
        self.collect_checkpoint()
        return self._common.written.result()

    def write_with_all(
        self, db: EmbeddedDatabase, frontier: Frontier, origins: tuple[Origin, ...], work: Callable[[], object]
    ) -> bool:
        """Write this rank's part of a transaction as all ranks do now, before any of them moves its clock.

        `work` is called while peers have not written theirs: they may wait for work of this rank. Return False if
        another rank could not write its part: then this one has removed its own.
        """

        def while_waiting() -> None:
            self._check_abandoned()
            work()

        try:
            self.write(db, frontier, origins)
        except BaseException:
            self._mesh.agree(False, while_waiting)
            raise
        if self._mesh.agree(True, while_waiting):
            return True
        self.unwrite(db)
        return False

    def unwrite(self, db: EmbeddedDatabase) -> None:
        """Remove this rank's part of a transaction from the log, because another rank could not write its part."""
        pending = self._pending
        if pending is not None:
            self.wait()
            self.storage.undo(db.time, pending.transaction.origins)

    def restore(self, name: str, source: Source, installed: InstalledArrangement, now: tuple[Time, ...]) -> None:
        """Insert the rows that all ranks recovered into the new arrangement of a relation, each at its owner."""
        relation = self.storage.take_relation(name)
        # The clock may have passed some of them, here or on another rank.
        batch_complete_updates(relation, relation.later, Frontier(now))
        lanes = list(relation.ordered.lanes_of(installed.schema.names))
        spine = installed.handle.spine
        kept = [reorder_lanes(batch.updates, lanes) for batch in relation.batches]
        owned = self._exchange(installed, concatenate(kept) if kept else no_updates(len(lanes), len(now[0])))
        since = self.recovered.since.get(name, Frontier.start(len(now[0])))
        description = Description(spine.upper, Frontier(now), since)
        spine.insert(Batch(consolidate(owned), installed.schema.width_of(len(installed.keys)), description))
        installed.publisher.upper = spine.upper
        for later in relation.later:
            source.dataflow.feed(source, Message(now, reorder_lanes(later, lanes)))

    def _exchange(self, installed: InstalledArrangement, recovered: Updates) -> Updates:
        """Send each rank the recovered rows that it owns, and return those that this rank owns."""
        schema = installed.schema
        key_lanes = schema.width_of(len(installed.keys))
        is_text = tuple(type_.is_symbolic for type_ in schema.lane_types()[:key_lanes])
        ranks = 1 + len(self._mesh.peers)
        parts = partition_by(recovered, recovered.data, is_text, self._symbols, ranks, can_pack=False)
        empty = Updates(recovered.data[:, :0], recovered.times[:, :1], recovered.diffs[:, :1])
        sent = [part if part is not None else empty for part in parts]
        received = self._mesh.exchange(sent, schema.symbolic_lanes(), self._check_abandoned)
        return concatenate([part for part in received if len(part)] or [empty])
