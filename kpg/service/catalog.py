"""The base relations of a service, and transactions on them.

catalog.prepared(changes)      changes by relation, as lanes; a wrong one is refused, with its place
catalog.transact(prepared)     all at one time, or none
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kpg.columns.updates import Ints
from kpg.errors import Closed, SchemaMismatch, UndefinedName
from kpg.query.ir.program import Relation
from kpg.query.source_text import did_you_mean
from kpg.service.changes import Change
from kpg.service.facts import Facts
from kpg.service.relations import Declared

if TYPE_CHECKING:
    from kpg.api.database import Database


class Prepared(NamedTuple):
    """Changes of one relation."""

    facts: Facts
    data: Ints
    diffs: Ints


class Catalog:
    """Base relations by name."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.facts: dict[str, Facts] = {}

    def add(self, declared: Declared, keep_on_disk: bool = True) -> None:
        """One more relation."""
        self.facts[declared.name] = Facts(self.db, declared, keep_on_disk)

    def find(self, name: str) -> Facts:
        """A relation by name."""
        if name not in self.facts:
            raise UndefinedName(f"no relation is called {name!r}", hint=did_you_mean(name, self.facts))
        return self.facts[name]

    def relations(self) -> dict[str, Relation]:
        """All of them, as programs name them."""
        return {name: facts.declared.in_program() for name, facts in self.facts.items()}

    # Transactions

    def transact(self, prepared: list[Prepared], origin: tuple[str, int] | None) -> int:
        """Make changes, all at one time, which is returned."""

        def fill(db: Database) -> None:
            for facts, data, diffs in prepared:
                facts.apply(data, diffs)

        return self.db.transact(fill, origin=origin)

    def rows(self, relation: str, rows: Any, diff: int) -> list[Prepared]:
        """Many rows of one relation."""
        facts = self.find(relation)
        data = facts.encode(rows)
        return [Prepared(facts, data, np.full(data.shape[1], diff, np.int64))]

    def prepared(self, changes: Sequence[Change]) -> list[Prepared]:
        """Changes by relation; the first that is wrong is named."""
        places: dict[str, list[int]] = {}
        for place, change in enumerate(changes):
            if change.relation not in places:
                places[change.relation] = []
                if change.relation not in self.facts:
                    hint = did_you_mean(change.relation, self.facts)
                    raise UndefinedName(f"change {place}: no relation is called {change.relation!r}", hint=hint)
            places[change.relation].append(place)
        return [self._encoded(self.facts[name], where, changes) for name, where in places.items()]

    def _encoded(self, facts: Facts, places: list[int], changes: Sequence[Change]) -> Prepared:
        if facts.input.closed:
            raise Closed(f"change {places[0]}: {facts.declared.name} is closed")
        diffs = [changes[place].diff for place in places]
        if not set(map(type, diffs)) <= {int} or 0 in diffs:
            place, diff = next((p, d) for p, d in zip(places, diffs, strict=True) if type(d) is not int or d == 0)
            raise SchemaMismatch(f"change {place}: {diff!r} is no diff", hint="+1 puts a row, -1 takes it away.")
        try:
            data = facts.encode([tuple(changes[place].row) for place in places])
        except (SchemaMismatch, TypeError):
            for place in places:
                self._check(facts, place, changes[place])
            raise
        return Prepared(facts, data, np.array(diffs, np.int64))

    def _check(self, facts: Facts, place: int, change: Change) -> None:
        """Refuse one change that cannot be encoded, saying which it is."""
        try:
            facts.encode([tuple(change.row)])
        except SchemaMismatch as error:
            what = error.what.removeprefix("row 0 ").replace(" in row 0", "")
            raise SchemaMismatch(
                f"change {place} of {facts.declared.name}: {what}", detail=error.detail, hint=error.hint
            ) from None
        except TypeError:
            raise SchemaMismatch(
                f"change {place} of {facts.declared.name}: {change.row!r} is no row", hint="Give a tuple of values."
            ) from None
