"""Answers that are kept: one dataflow each, shared by everybody who is interested, and by rules that are built on it.

    answer.join(interest)     the rows of now, then each change
    answer.leave(interest)
    answer.release()          one user less; with the last the dataflow is dropped, and the indexes it alone read

Whoever comes late gets the rows as of the last closed time, read from the answer's own index. Changes are handed on as
they are, the same arrays to everybody: the cost of an epoch is that of its changes, and a little for each interest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kpg.algebra.order import Time
from kpg.api.collection import Collection
from kpg.api.trace_reads import read_rows
from kpg.columns.updates import Updates, constant, spread
from kpg.errors import KpgError
from kpg.plan import nodes
from kpg.query.ir.program import Relation
from kpg.service.interest import Interest

if TYPE_CHECKING:
    from kpg.api.arrangement import Arrangement
    from kpg.api.changes import Changes
    from kpg.api.installed_arrangement import InstalledArrangement
    from kpg.api.output import Output

Release = Callable[[], None]


class Answer:
    """A built query, and who uses it."""

    def __init__(self, relation: Relation, output: Output, held: Sequence[Release]) -> None:
        self.relation = relation
        self.output = output
        self.users = 0
        self.interests: list[Interest] = []
        self._held = list(held)
        self._others: list[Arrangement] = []
        output.take_changes()  # what was there before is read when somebody comes
        output.on_change(self._hand_on)

    # Interests

    def join(self, interest: Interest) -> None:
        """Give an interest the rows of now, and from now on each change."""
        self.users += 1
        interest.failure = self.failure
        self.interests.append(interest)
        if self.output.db.sealed is not None:
            interest.push_all(self.rows())

    def leave(self, interest: Interest) -> None:
        """Give an interest nothing more."""
        self.interests.remove(interest)
        self.release()

    def _hand_on(self, changes: Changes) -> None:
        updates = changes.updates
        more = int(spread(updates.diffs, len(updates)).sum())
        for interest in self.interests:
            interest.push(updates, 0, len(updates), more)

    def rows(self) -> Updates:
        """The rows as of the last closed time, at that time."""
        db = self.output.db
        assert db.sealed is not None
        db.settle()
        time: Time = db.sealed.elements[0]
        data, counts = read_rows(self.output.readable(), self.output.schema, time, None)
        return Updates(np.ascontiguousarray(data), constant(time), counts.reshape(1, -1))

    def failure(self) -> KpgError | None:
        """Why there is no answer now, if there is none."""
        return self.output.error()

    closed = False  # it may always change

    @property
    def size(self) -> int:
        """About how many rows it has now."""
        return self.base().handle.spine.rows

    # Indexes: what is built on this answer reads it by any columns

    def base(self) -> InstalledArrangement:
        """The arrangement of its rows."""
        return self.output.readable()

    def arranged_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """A living arrangement of its rows by some columns, if there is one."""
        base = self.base()
        self._others = [other for other in self._others if not other.installed.released]
        return base if base.keys == keys else next((o.installed for o in self._others if o.keys == keys), None)

    def arrange(self, *keys: str) -> Arrangement:
        """A new arrangement of its rows by some columns."""
        node = nodes.InstalledNode(self.output.schema, frozenset(), self.base())
        made = self.output.db.installer.arrangement(node, f"{self.relation.name} by {', '.join(keys)}", keys)
        self._others.append(made)
        return made

    def collection(self) -> Collection:
        """The answer as a collection."""
        return Collection(self.output.db, nodes.InstalledNode(self.output.schema, frozenset(), self.base()))

    # Life

    @property
    def living(self) -> bool:
        """Whether its dataflow is there."""
        return not self.output.ended

    def release(self) -> None:
        """One user less."""
        self.users -= 1
        if self.users <= 0:
            self.output.release()
            for release in self._held:
                release()
            self._held.clear()
