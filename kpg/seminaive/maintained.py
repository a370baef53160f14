"""Least fixed points under insertions and removals, maintained by levels instead of histories.

    fixpoint = MaintainedFixpoint(system)
    fixpoint.change([changes of each relation])      returns the added and removed rows of each derived relation

Each derived row has a level: 0 if it was inserted from outside, else one more than the least level of a row that it
follows from. Rules are linear (one derived row in each body), so a level is a distance in a graph. A change of the rows
changes levels in the way that inserted and deleted edges change distances (`kpg.seminaive.level_update`). The first
load runs round by round, and the round that derives a row is its level.

Cost: a change is linear in the rows that follow from the rows with a changed level. Memory is 16 to 64 bytes a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kpg.columns.updates import Ints
from kpg.seminaive.code_set import CodeLevels, CodeSet
from kpg.seminaive.insert_only import InsertOnlyFixpoint, NewRows
from kpg.seminaive.level_update import LevelUpdate
from kpg.seminaive.partial_solutions import MAX_SLICE_ROWS, ROW, PartialSolutions
from kpg.seminaive.recursion_rules import RecursionAtom, RecursionComparison
from kpg.seminaive.rule_paths import RulePath, backward_paths, forward_paths

NO_CODES = np.empty(0, np.int64)


class RowChange(NamedTuple):
    """The inserted and removed rows of one relation, int64[arity, n] each."""

    added: Ints
    removed: Ints


@dataclass(slots=True)
class MaintainedFixpoint(InsertOnlyFixpoint):
    """The relations of a system of linear rules, with the level of each derived row."""

    levels: list[CodeLevels] = field(default_factory=list)
    inserted: list[CodeLevels] = field(default_factory=list)  # level 0 for rows inserted from outside
    count: int = 0
    forward: list[list[RulePath]] = field(default_factory=list)
    backward: list[list[RulePath]] = field(default_factory=list)

    def __post_init__(self) -> None:
        InsertOnlyFixpoint.__post_init__(self)
        self._reset()
        relations = range(len(self.system.arities))
        self.forward = [forward_paths(self.system, relation) for relation in relations]
        self.backward = [backward_paths(self.system, relation) for relation in range(self.system.derived)]

    def _reset(self) -> None:
        """Start with empty levels."""
        layouts = [self.layout(relation) for relation in range(self.system.derived)]
        self.levels = [CodeLevels(layout.width) for layout in layouts]
        self.inserted = [CodeLevels(layout.width) for layout in layouts]

    def row_count(self, relation: int) -> int:
        return len(self._derived[relation]) or self.levels[relation].row_count

    def nbytes(self) -> int:
        return InsertOnlyFixpoint.nbytes(self) + sum(levels.nbytes for levels in (*self.levels, *self.inserted))

    def change(self, changes: list[RowChange | None]) -> list[tuple[NewRows, NewRows]]:
        """Apply changes of each relation; return the added and the removed rows of each derived relation."""
        self._assign_ids([rows for change in changes if change is not None for rows in change])
        added = [NO_CODES if change is None else self._encode(n, change.added) for n, change in enumerate(changes)]
        removed = [NO_CODES if change is None else self._encode(n, change.removed) for n, change in enumerate(changes)]
        if not self.count:
            return self._load(added, removed)
        return LevelUpdate(self, added, removed).run()

    def _load(self, added: list[Ints], removed: list[Ints]) -> list[tuple[NewRows, NewRows]]:
        """Load the first rows, round by round."""
        self.change_read(added, removed)
        derived = range(self.system.derived)
        for relation in derived:
            self.inserted[relation].put(removed[relation], -1)
            self.inserted[relation].put(added[relation], 0)
        self.derive()
        loaded = [NewRows(self._all_rows(relation), self.ids.ordered) for relation in derived]
        self.drop_sets()
        return [(new, NewRows(new.rows[:, :0], True)) for new in loaded]

    def derive(self) -> None:
        """Derive all rows, as sets, and their levels from scratch."""
        derived = range(self.system.derived)
        layouts = [self.layout(relation) for relation in derived]
        self._derived = [CodeSet(layout.width) for layout in layouts]
        self._drop_derived_indexes()
        fresh = [[self._derived[relation].insert(self.inserted[relation].items()[0])] for relation in derived]
        rounds = list(self._rounds(fresh))
        self.levels = [
            CodeLevels.of_rounds(
                layouts[relation].width, self._derived[relation], [codes[relation] for codes in rounds]
            )
            for relation in derived
        ]
        self.count = sum(map(len, self._derived))

    def derived_rows(self, relation: int) -> Ints:
        """Return the codes of the rows just derived, in ascending order."""
        return np.concatenate([NO_CODES, *self._derived[relation].runs()])

    def drop_sets(self) -> None:
        """Drop the sets that `derive` built: from now on the rows that have a level are the derived rows."""
        self._derived = [CodeSet(1) for _ in range(self.system.derived)]
        self._drop_derived_indexes()

    # Relations

    def change_read(self, added: list[Ints], removed: list[Ints]) -> None:
        """Apply changes to the relations that rules only read."""
        for relation in range(self.system.derived, len(added)):
            if len(removed[relation]):
                self._read[relation].remove(removed[relation])
                for (of, _, _), index in self.indexes.items():
                    if of == relation:
                        index.remove(removed[relation])
            if len(added[relation]):
                self._add(relation, added[relation])

    def _codes(self, relation: int) -> list[Ints]:
        if relation >= self.system.derived:
            return [self._read[relation].current()]
        if any(map(len, self._derived)):
            return list(self._derived[relation].runs())
        return [self.levels[relation].items()[0]]

    def _identifying_columns(self, atom: RecursionAtom, read: list[int]) -> list[int]:
        return [column for column in range(len(atom.terms)) if column not in read]

    def _drop_derived_indexes(self) -> None:
        """Drop the indexes of derived relations. They are built again when a rule needs them."""
        for name in [name for name in self.indexes if name[0] < self.system.derived]:
            del self.indexes[name]

    def _widen(self, bits: int) -> None:
        before = [self.layout(relation) for relation in range(self.system.derived)]
        old_items = [[levels.items() for levels in maps] for maps in (self.levels, self.inserted)]
        InsertOnlyFixpoint._widen(self, bits)
        self._reset()
        for maps, items in zip((self.levels, self.inserted), old_items, strict=True):
            for relation, (codes, levels) in enumerate(items):
                layout = self.layout(relation)
                moved = before[relation].rearrange(codes, [(c, layout.shift(c)) for c in range(layout.arity)])
                for level in np.unique(levels).tolist():
                    maps[relation].put(moved[levels == level], level)

    # Rules

    def solutions(self, path: RulePath, codes: Ints) -> Iterator[PartialSolutions]:
        """Yield all solutions of a rule that start with some rows. A solution may use a removed derived row."""
        for at in range(0, len(codes), MAX_SLICE_ROWS):
            start = self._start(path.start, codes[at : at + MAX_SLICE_ROWS], path.live)
            if at:
                start.ids[ROW] += at
            yield from self._walk(path, 0, start)

    def _walk(self, path: RulePath, step: int, solutions: PartialSolutions) -> Iterator[PartialSolutions]:
        if not solutions.size:
            return
        if step == len(path.steps):
            yield solutions
            return
        literal = path.steps[step]
        if isinstance(literal, RecursionComparison):
            passing = solutions.take(np.flatnonzero(self._holds(literal, solutions)))
            yield from self._walk(path, step + 1, passing)
            return
        for joined in self._join(literal, solutions, path.live):
            yield from self._walk(path, step + 1, joined)

    def code(self, atom: RecursionAtom, solutions: PartialSolutions) -> Ints:
        """Return the codes of an atom; all of its terms must be bound."""
        return self._head(atom, solutions, ())
