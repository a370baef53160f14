"""A relation of keys with an arrangement and a maintained count: what E1, E2, E3, E9 and O1 load and change."""

from __future__ import annotations

from collections.abc import Iterable

import kpg
from kpg.bench.data.graphs import Ints
from kpg.bench.measure import Stopwatch


class CountedKeys:
    """The relation, its arrangement by key, the output of its counts, and all changes that the output gave."""

    def __init__(self, db: kpg.Database, name: str = "r") -> None:
        self.db = db
        self.relation = db.input(name, k=int)
        self.arrangement = self.relation.arrange("k")
        self.counts = self.relation.count("k").output("counts", keep=False)
        self.seen: list[kpg.Changes] = []

    def load(self, keys: Ints) -> None:
        """Insert keys in one epoch and take the changes of the counts."""
        self.relation.insert(keys)
        self.db.advance()
        self.seen.append(self.counts.take_changes())

    def change_one_by_one(self, changes: Iterable[tuple[Ints, int]], stopwatch: Stopwatch) -> None:
        """Insert or remove one tuple at a time; each round is measured until the changes of the counts are in hand."""
        db, relation, counts, seen = self.db, self.relation, self.counts, self.seen
        for row, diff in changes:
            rows = [(int(row[0]),)]
            with stopwatch:
                (relation.insert if diff > 0 else relation.remove)(rows)
                db.advance()
                seen.append(counts.take_changes())
