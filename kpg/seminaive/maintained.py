"""Least fixed points of relations that come and go, kept right by levels instead of histories.

    upkeep = Upkeep(system)
    upkeep.change([changes of each relation])      what came to and went from each derived relation

Each derived row has a level: 0 if it is given from outside, else one more than the least level of a row that it follows
from. Rules are linear, one derived row in each body, so a level is a distance, and a change moves levels as edges that
come and go move distances (kpg.seminaive.level_update). The first rows are derived round by round, all levels at once.

Cost: what follows from rows whose level changes; 16 to 64 bytes a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kpg.columns.updates import Ints
from kpg.seminaive.code_set import CodeLevels, CodeSet
from kpg.seminaive.insert_only import ROW, SLICE, InsertOnlyFixpoint, NewRows, PartialSolutions
from kpg.seminaive.level_update import LevelUpdate
from kpg.seminaive.recursion_rules import RecursionAtom, RecursionComparison
from kpg.seminaive.rule_paths import RulePath, backward, tracks

NONE = np.empty(0, np.int64)


class RowChange(NamedTuple):
    """Rows of one relation that came and that went, int64[arity, n] each."""

    came: Ints
    went: Ints


@dataclass(slots=True)
class MaintainedFixpoint(InsertOnlyFixpoint):
    """The relations of a system whose rules are linear."""

    levels: list[CodeLevels] = field(default_factory=list)
    given: list[CodeLevels] = field(default_factory=list)
    count: int = 0
    forward: list[list[RulePath]] = field(default_factory=list)
    backward: list[list[RulePath]] = field(default_factory=list)

    def __post_init__(self) -> None:
        InsertOnlyFixpoint.__post_init__(self)
        self._reset()
        every = range(len(self.system.arities))
        self.forward = [tracks(self.system, relation) for relation in every]
        self.backward = [backward(self.system, relation) for relation in range(self.system.derived)]

    def _reset(self) -> None:
        layouts = [self.layout(relation) for relation in range(self.system.derived)]
        self.levels = [CodeLevels(layout.width) for layout in layouts]
        self.given = [CodeLevels(layout.width) for layout in layouts]

    def nbytes(self) -> int:
        return InsertOnlyFixpoint.nbytes(self) + sum(each.nbytes for each in (*self.levels, *self.given))

    def change(self, changes: list[RowChange | None]) -> list[tuple[NewRows, NewRows]]:
        """Take in changes of each relation; what came to and what went from each derived one."""
        self._name([rows for each in changes if each is not None for rows in each])
        came = [NONE if each is None else self._encode(n, each.came) for n, each in enumerate(changes)]
        went = [NONE if each is None else self._encode(n, each.went) for n, each in enumerate(changes)]
        if not self.count:
            return self._load(came, went)
        return LevelUpdate(self, came, went).done()

    def _load(self, came: list[Ints], went: list[Ints]) -> list[tuple[NewRows, NewRows]]:
        """The first rows: all levels at once, round by round."""
        self.change_read(came, went)
        derived = range(self.system.derived)
        for relation in derived:
            self.given[relation].put(went[relation], -1)
            self.given[relation].put(came[relation], 0)
        self.derive()
        made = [NewRows(self._all(relation), self.ids.ordered) for relation in derived]
        self.keep()
        return [(each, NewRows(each.rows[:, :0], True)) for each in made]

    def derive(self) -> None:
        """Derive everything anew from what is given: the rows, as sets, and their levels."""
        derived = range(self.system.derived)
        layouts = [self.layout(relation) for relation in derived]
        self._derived = [CodeSet(layout.width) for layout in layouts]
        self._forget_derived()
        fresh = [[self._derived[relation].insert(self.given[relation].items()[0])] for relation in derived]
        rounds = list(self._rounds(fresh))
        self.levels = [
            CodeLevels.of_rounds(
                layouts[relation].width, self._derived[relation], [found[relation] for found in rounds]
            )
            for relation in derived
        ]
        self.count = sum(map(len, self._derived))

    def derived_rows(self, relation: int) -> Ints:
        """The rows just derived, ascending."""
        return np.concatenate([NONE, *self._derived[relation].runs()])

    def keep(self) -> None:
        """Forget the sets: levels say from now on what is there."""
        self._derived = [CodeSet(1) for _ in range(self.system.derived)]
        self._forget_derived()

    # Relations

    def change_read(self, came: list[Ints], went: list[Ints]) -> None:
        """Let what is only read change."""
        for relation in range(self.system.derived, len(came)):
            if len(went[relation]):
                self._read[relation].drop(went[relation])
                for (of, _, _), index in self.indexes.items():
                    if of == relation:
                        index.remove(went[relation])
            if len(came[relation]):
                self._add(relation, came[relation])

    def _codes(self, relation: int) -> list[Ints]:
        if relation >= self.system.derived:
            return [self._read[relation].all()]
        if any(map(len, self._derived)):
            return list(self._derived[relation].runs())
        return [self.levels[relation].items()[0]]

    def _unread(self, atom: RecursionAtom, read: list[int]) -> list[int]:
        return [column for column in range(len(atom.terms)) if column not in read]

    def _forget_derived(self) -> None:
        """Drop the indexes of derived rows: they are made when they are needed."""
        for name in [name for name in self.indexes if name[0] < self.system.derived]:
            del self.indexes[name]

    def _widen(self, bits: int) -> None:
        before = [self.layout(relation) for relation in range(self.system.derived)]
        olds = [[each.items() for each in of] for of in (self.levels, self.given)]
        InsertOnlyFixpoint._widen(self, bits)
        self._reset()
        for made, old in zip((self.levels, self.given), olds, strict=True):
            for relation, (codes, levels) in enumerate(old):
                layout = self.layout(relation)
                moved = before[relation].moved(codes, [(c, layout.shift(c)) for c in range(layout.arity)])
                for level in np.unique(levels).tolist():
                    made[relation].put(moved[levels == level], level)

    # Rules

    def solutions(self, track: RulePath, codes: Ints) -> Iterator[PartialSolutions]:
        """All variables of a rule, wherever its body holds, from some rows; derived rows may be stale."""
        live = track.live
        for at in range(0, len(codes), SLICE):
            bound = self._begin(track.start, codes[at : at + SLICE], live)
            if at:
                bound.ids[ROW] += at
            yield from self._through(track, 0, bound, live)

    def _through(
        self, track: RulePath, step: int, bound: PartialSolutions, live: frozenset[str]
    ) -> Iterator[PartialSolutions]:
        if not bound.size:
            return
        if step == len(track.steps):
            yield bound
            return
        literal = track.steps[step]
        if isinstance(literal, RecursionComparison):
            yield from self._through(track, step + 1, bound.taken(np.flatnonzero(self._holds(literal, bound))), live)
            return
        for joined in self._join(literal, bound, live):
            yield from self._through(track, step + 1, joined, live)

    def code(self, atom: RecursionAtom, bound: PartialSolutions) -> Ints:
        """The rows of an atom whose terms are all known."""
        return self._head(atom, bound, ())
