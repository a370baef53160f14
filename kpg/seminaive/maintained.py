"""Least fixed points under insertions and removals, maintained by levels instead of histories.

    fixpoint = MaintainedFixpoint(system)
    fixpoint.change([changes of each relation])      returns the added and removed rows of each derived relation

Each derived row has a level: 0 if it was inserted from outside, else one more than the levels of the rows that it
follows from: the greatest level in a body, the least over all bodies. Levels are like distances in a graph, and change
as distances do when edges are inserted and deleted (`kpg.seminaive.level_update`). The first load runs round by round,
and the round that derives a row is its level.

Small levels run in a kernel (`kpg.seminaive.small_levels`), so that long chains of few rows cost microseconds a level.

Values have ids. When most of them are values that no row from outside has any more, all rows are encoded again without.

Cost: a change is linear in the joins from the rows with a changed level, forward and backward. Where a rule needs the
rows of a derived relation by some columns, the first changes try all values of the others, and an index follows when
that has cost as much as the index; dense relations never get one. Indexes that the load has built anyway are kept.
Memory is 16 to 64 bytes a row, and 8 bytes more for each index of a derived relation, 12 if the load has built it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import numpy as np

from kpg.columns.pause_points import at_most_per_pause, pause
from kpg.columns.updates import Ints
from kpg.kernels.walk_rule import UNLIMITED_TRIES
from kpg.seminaive.array_addresses import Addressed
from kpg.seminaive.chain_index import ChainIndex
from kpg.seminaive.code_index import CodeIndex
from kpg.seminaive.code_layout import CodeLayout, PairedLayout, recode
from kpg.seminaive.code_set import CodeLevels, CodeSet
from kpg.seminaive.insert_only import InsertOnlyFixpoint
from kpg.seminaive.level_table import IndexName, LevelTable
from kpg.seminaive.level_update import LevelUpdate
from kpg.seminaive.partial_solutions import LEVEL, MAX_SLICE_ROWS, ROW, PartialSolutions
from kpg.seminaive.recursion_rules import RecursionAtom, variables
from kpg.seminaive.rule_paths import RulePath, backward_paths, forward_paths, joins_derived, negation_paths
from kpg.seminaive.small_levels import SmallLevels
from kpg.seminaive.stored_relations import NewRows

NO_CODES = np.empty(0, np.int64)
MAX_POSSIBLE_ROWS = 8  # for each derived row: up to this number, to try all values is as fast as to look some up
MAX_ROWS_TRIED = 2  # for each derived row, before an index is built: takes a little longer than building it
TRIED_PER_MATCH = 4  # rows that can be tried in the time of one match
MIN_UNUSED_VALUES = 1 << 16  # with an id that are always allowed
ROWS_PER_UNUSED_VALUE = 8  # derived rows for which another one is allowed: all are encoded again without them
MAX_ENUMERATED_VALUES = 1 << 16  # that are tried for one solution: a millisecond or two


class RowChange(NamedTuple):
    """The inserted and removed rows of one relation, int64[arity, n] each."""

    added: Ints
    removed: Ints


@dataclass(slots=True)
class MaintainedFixpoint(InsertOnlyFixpoint):
    """The relations of a rule system, with the level of each derived row."""

    levels: list[CodeLevels] = field(default_factory=list)
    inserted: list[CodeLevels] = field(default_factory=list)  # level 0 for rows inserted from outside
    count: int = 0
    derive_work: int = 0  # the work of deriving all rows from scratch, when it was last done
    joins_derived: bool = False  # whether an update joins derived rows with derived rows
    forward: list[list[RulePath]] = field(default_factory=list)
    backward: list[list[RulePath]] = field(default_factory=list)
    negated: list[list[RulePath]] = field(default_factory=list)
    rows_per_level: float = 0.0  # that the last changes examined
    _counted_values: int = 0  # those with an id when the used ones were last counted
    _small: SmallLevels | None = None
    # The codes of each round of each derived relation, with one level or one for each, while all rows are derived.
    _rounds_of: list[list[tuple[Ints, Ints]]] = field(default_factory=list)
    _row_counts: dict[int, int] = field(default_factory=dict)  # of derived relations, before the current change
    _tried: dict[int, int] = field(default_factory=dict)  # rows of derived relations tried for want of an index

    def __post_init__(self) -> None:
        InsertOnlyFixpoint.__post_init__(self)
        self._reset()
        relations = range(len(self.system.arities))
        self.negated = [negation_paths(self.system, relation) for relation in relations]
        self.forward = [forward_paths(self.system, relation) for relation in relations]
        self.backward = [backward_paths(self.system, relation) for relation in range(self.system.derived)]
        own = [path for paths in self.forward[: self.system.derived] + self.backward for path in paths]
        self.joins_derived = any(joins_derived(path, self.system) for path in own)

    def _reset(self) -> None:
        """Start with empty levels."""
        layouts = [self.layout(relation) for relation in range(self.system.derived)]
        self.levels = [CodeLevels(layout.width) for layout in layouts]
        self.inserted = [CodeLevels(layout.width) for layout in layouts]

    def row_count(self, relation: int) -> int:
        return len(self._derived[relation]) or self.levels[relation].row_count

    def nbytes(self) -> int:
        return InsertOnlyFixpoint.nbytes(self) + sum(levels.nbytes for levels in (*self.levels, *self.inserted))

    def change(
        self, changes: list[RowChange | None], is_read: list[bool] | None = None
    ) -> list[tuple[NewRows, NewRows]]:
        """Apply changes of each relation; return the added and the removed rows of each derived relation.

        `is_read` says of which derived relations the caller needs them; without it, of all.
        """
        changes = changes + self._copied_changes(changes)
        self._assign_ids([[] if change is None else list(change) for change in changes])
        added = [NO_CODES if change is None else self._encode(n, change.added) for n, change in enumerate(changes)]
        removed = [NO_CODES if change is None else self._encode(n, change.removed) for n, change in enumerate(changes)]
        self._row_counts.clear()
        if self.count:
            changed = LevelUpdate(self, added, removed).run()
        else:
            changed = self._load(added, removed, is_read or [True] * self.system.derived)
        if self._has_unused_values():
            self._encode_again()
        return changed

    def _copied_changes(self, changes: list[RowChange | None]) -> list[RowChange | None]:
        """Return the changes of all relations that are copies."""
        added = self.copied([None if change is None else change.added for change in changes])
        removed = self.copied([None if change is None else change.removed for change in changes])
        pairs = zip(added, removed, strict=True)
        return [None if more is None or less is None else RowChange(more, less) for more, less in pairs]

    def _load(self, added: list[Ints], removed: list[Ints], is_read: list[bool]) -> list[tuple[NewRows, NewRows]]:
        """Load the first rows, round by round."""
        self.change_read(added, removed)
        derived = range(self.system.derived)
        for relation in derived:
            self.inserted[relation].put(removed[relation], -1)
            self.inserted[relation].put(added[relation], 0)
        self.derive()
        loaded = [
            NewRows(
                self._all_rows(relation) if is_read[relation] else self.decode(relation, []), self.is_ordered(relation)
            )
            for relation in derived
        ]
        self.drop_sets()
        return [(new, NewRows(new.rows[:, :0], True)) for new in loaded]

    def derive(self) -> None:
        """Derive all rows, as sets, and their levels from scratch."""
        derived = range(self.system.derived)
        layouts = [self.layout(relation) for relation in derived]
        self._derived = [CodeSet(layout.width) for layout in layouts]
        self._drop_derived_indexes()
        self._tried.clear()
        fresh = [[self._derived[relation].insert(self.inserted[relation].items()[0])] for relation in derived]
        before, self._rounds_of = self.work, [[] for _ in derived]
        for _ in self._rounds(fresh):
            pass
        self.derive_work = self.work - before
        self.levels = []
        for relation in derived:
            codes, rounds = self._derived[relation], self._rounds_of[relation]
            self.levels.append(CodeLevels.of_rounds(layouts[relation].width, codes, rounds))
        self._rounds_of = []
        self.count = sum(map(len, self._derived))

    def derived_rows(self, relation: int) -> Ints:
        """Return the codes of the rows just derived, in ascending order."""
        return np.concatenate([NO_CODES, *self._derived[relation].runs()])

    def drop_sets(self) -> None:
        """Drop the sets that `derive` built: from now on the rows that have a level are the derived rows."""
        self._derived = [CodeSet(1) for _ in range(self.system.derived)]
        for index in self.indexes.values():
            if isinstance(index, ChainIndex):
                index.trim()

    # Relations

    def change_read(self, added: list[Ints], removed: list[Ints]) -> None:
        """Apply changes to the relations that rules only read."""
        for relation in range(self.system.derived, len(added)):
            if len(removed[relation]):
                self._read[relation].remove(removed[relation])
                for (of, _, _), index in self.indexes.items():
                    if of == relation:
                        assert isinstance(index, CodeIndex)  # rows of a relation that rules read may be removed
                        index.remove(removed[relation])
            if len(added[relation]):
                self._add(relation, added[relation])

    def _add_derived(self, relation: int, codes: Ints, levels: Ints | int) -> None:
        self._rounds_of[relation].append((codes, np.atleast_1d(levels)))
        self._add(relation, codes)

    def _codes(self, relation: int) -> list[Ints]:
        if relation >= self.system.derived:
            return [self._read[relation].current()]
        if self._rounds_of:  # without the rows of the current round, which the next one joins
            return [codes for codes, _ in self._rounds_of[relation]]
        return [self.levels[relation].items()[0]]

    def _new_index(self, relation: int, columns: tuple[int, ...], keys: int) -> CodeIndex | ChainIndex:
        index = InsertOnlyFixpoint._new_index(self, relation, columns, keys)
        if isinstance(index, ChainIndex):  # the rows of the current round come last
            index.begin_round(sum(len(codes) for codes, _ in self._rounds_of[relation][:-1]))
        return index

    def _only_grows(self, relation: int) -> bool:
        return relation < self.system.derived and bool(self._rounds_of)

    def _identifying_columns(self, atom: RecursionAtom, read: list[int]) -> list[int]:
        return [column for column in range(len(atom.terms)) if column not in read]

    def _drop_derived_indexes(self) -> None:
        """Drop the indexes of derived relations. They are built again when a rule needs them."""
        for name in [name for name in self.indexes if name[0] < self.system.derived]:
            del self.indexes[name]

    def _widen(self, bits: list[int]) -> None:
        before = self.layouts
        old_items = [[levels.items() for levels in maps] for maps in (self.levels, self.inserted)]
        InsertOnlyFixpoint._widen(self, bits)
        self._reset()
        for maps, items in zip((self.levels, self.inserted), old_items, strict=True):
            for relation, (codes, levels) in enumerate(items):
                maps[relation].put_each(recode(codes, before[relation], self.layout(relation)), levels)

    # Values that no row has any more

    def _has_unused_values(self) -> bool:
        """Return whether most values with an id are in no row. Derived rows have the values of given ones."""
        known, allowed = sum(map(len, self.ids)), MIN_UNUSED_VALUES + self.count // ROWS_PER_UNUSED_VALUE
        if known <= 2 * self._counted_values + allowed:
            return False
        self._counted_values = known
        used = [np.zeros(len(ids), np.bool_) for ids in self.ids]
        for relation, layout in enumerate(self.layouts):
            codes = self._given_codes(relation)
            for column, domain in enumerate(self.domains.columns[relation]):
                used[domain][layout.ids(codes, column)] = True
        return known > 2 * sum(int(flags.sum()) for flags in used)

    def _given_codes(self, relation: int) -> Ints:
        """Return the codes of the rows of a relation from outside."""
        return self.inserted[relation].items()[0] if relation < self.system.derived else self._read[relation].current()

    def _encode_again(self) -> None:
        """Give ids to the values of rows alone."""
        maps = [
            [(self.decode(relation, [codes]), levels) for relation, (codes, levels) in enumerate(items)]
            for items in ([levels.items() for levels in of_rows] for of_rows in (self.levels, self.inserted))
        ]
        others = range(self.system.derived, len(self.layouts))
        read = [self.decode(relation, [self._given_codes(relation)]) for relation in others]
        self._forget_rows()
        self._reset()
        self._assign_ids([[rows] for rows in (*[rows for rows, _ in maps[0]], *read)])
        for of_rows, items in zip((self.levels, self.inserted), maps, strict=True):
            for relation, (rows, levels) in enumerate(items):
                of_rows[relation].put_each(self._encode(relation, rows), levels)
        for relation, rows in zip(others, read, strict=True):
            self._read[relation].insert(self._encode(relation, rows))
        self._counted_values = sum(map(len, self.ids))

    # Rules

    def solutions(self, path: RulePath, codes: Ints, level: int) -> Iterator[PartialSolutions]:
        """Yield all solutions of a rule that start with some rows, which have a level; -1 if they are not derived."""
        for at in range(0, len(codes), MAX_SLICE_ROWS):
            start = self._start(path.start, codes[at : at + MAX_SLICE_ROWS], path.live[0])
            start.ids[LEVEL] = np.full(start.size, level)
            if at and ROW in start.ids:
                start.ids[ROW] += at
            yield from self._walk(path, 0, start)

    def _walk(self, path: RulePath, step: int, solutions: PartialSolutions) -> Iterator[PartialSolutions]:
        if not solutions.size:
            return
        if step == len(path.steps):
            yield solutions
            return
        literal, live = path.steps[step], path.live[step + 1]
        if not isinstance(literal, RecursionAtom):
            yield from self._walk(path, step + 1, self._passing(literal, solutions))
        elif literal.relation >= self.system.derived:
            for joined in self._join(literal, solutions, live):
                yield from self._walk(path, step + 1, joined)
        elif path.is_bound[step]:
            yield from self._walk(path, step + 1, self._present(literal, solutions, live))
        elif self._can_enumerate(literal, solutions, live | variables(literal)):
            for possible in self._possible(literal, solutions):
                present = self._present(literal, possible, live)
                self.work += max(present.size, possible.size // TRIED_PER_MATCH)
                yield from self._walk(path, step + 1, present)
        else:
            for joined in self._join(literal, solutions, live | variables(literal)):
                yield from self._walk(path, step + 1, self._present(literal, joined, live))

    def _present(self, atom: RecursionAtom, solutions: PartialSolutions, live: frozenset[str]) -> PartialSolutions:
        """Return the solutions whose row of a derived atom has a level. An index may hold rows that have none."""
        levels = self.levels[atom.relation].get(self.code(atom, solutions))
        rows = np.flatnonzero(levels >= 0)
        kept = PartialSolutions(solutions.size, {name: of for name, of in solutions.ids.items() if name in live})
        kept.ids[LEVEL] = np.maximum(solutions.ids[LEVEL], levels)
        return kept if len(rows) == solutions.size else kept.take(rows)

    # Small levels

    def small_levels(self) -> SmallLevels | None:
        """Return an empty run of the kernel for small levels; None if it cannot run these rules."""
        if not all(isinstance(layout, CodeLayout) for layout in self.layouts):
            return None
        if self._small is None or self._small.table.layouts is not self.layouts:
            self._small = SmallLevels(
                LevelTable(self, self.forward, self.backward, self.negated, self.joins_derived, True)
            )
        return self._small

    # Lookups without an index

    def _can_enumerate(self, atom: RecursionAtom, solutions: PartialSolutions, live: frozenset[str]) -> bool:
        """Return whether to try all values of an atom's unbound columns, rather than look them up in an index.

        An index takes longer to build than most changes take. The values are tried where a good part of all possible
        rows is derived, so that an index would not be faster, and else until that has cost as much as an index.
        """
        unbound = prod(self._unbound_sizes(atom, solutions).values())
        if unbound > MAX_ENUMERATED_VALUES or isinstance(self.layout(atom.relation), PairedLayout):
            return False  # a paired layout would keep an id for each tuple that is tried
        rows = self._rows_before(atom.relation)
        if prod(len(self.ids[domain]) for domain in self.domains.columns[atom.relation]) <= MAX_POSSIBLE_ROWS * rows:
            return True
        probe = self._planned_probe(atom, solutions, live)
        if (atom.relation, probe.columns, len(probe.keys)) in self.indexes:
            return False
        tried = self._tried.get(atom.relation, 0) + unbound * solutions.size
        can_try = tried <= MAX_ROWS_TRIED * rows
        self._tried[atom.relation] = tried if can_try else rows  # so that no other index is built in the same change
        return can_try

    def allowed_tries(self, relation: int, unbound: int) -> int:
        if unbound > MAX_ENUMERATED_VALUES:
            return 0
        rows = self._rows_before(relation)
        if prod(len(self.ids[domain]) for domain in self.domains.columns[relation]) <= MAX_POSSIBLE_ROWS * rows:
            return UNLIMITED_TRIES
        return max(0, MAX_ROWS_TRIED * rows - self._tried.get(relation, 0))

    def note_tries(self, relation: int, tries: int) -> None:
        self._tried[relation] = self._tried.get(relation, 0) + tries

    def build_index(self, name: IndexName) -> None:
        InsertOnlyFixpoint.build_index(self, name)
        if name[0] < self.system.derived:
            self._tried[name[0]] = self._rows_before(name[0])  # so that no other is built in the same change

    def level_tables(self, derives: bool) -> list[Addressed]:
        if derives:
            return InsertOnlyFixpoint.level_tables(self, derives)
        return [levels.addressed() for levels in (*self.levels, *self.inserted)]

    def _rows_before(self, relation: int) -> int:
        """Return the number of rows of a derived relation before the current change, or a little more."""
        if relation not in self._row_counts:
            self._row_counts[relation] = self.levels[relation].row_count
        return self._row_counts[relation]

    def _unbound_sizes(self, atom: RecursionAtom, solutions: PartialSolutions) -> dict[str, int]:
        """Return the variables of an atom that solutions do not bind, each with the number of its possible values."""
        terms = zip(atom.terms, self.domains.columns[atom.relation], strict=True)
        return {term: len(self.ids[of]) for term, of in terms if isinstance(term, str) and term not in solutions.ids}

    def _possible(self, atom: RecursionAtom, solutions: PartialSolutions) -> Iterator[PartialSolutions]:
        """Yield each solution with all values of an atom's unbound columns, in parts of bounded size."""
        unbound = self._unbound_sizes(atom, solutions)
        values = prod(unbound.values())
        if not values:
            return
        tried = np.arange(values)
        columns = np.unravel_index(tried, tuple(unbound.values())) if len(unbound) > 1 else (tried,)
        step = max(1, at_most_per_pause(MAX_SLICE_ROWS) // values)
        for at in range(0, solutions.size, step):
            pause()
            lefts = np.arange(at, min(at + step, solutions.size))
            extended = solutions.take(np.repeat(lefts, values))
            extended.ids |= {name: np.tile(ids, len(lefts)) for name, ids in zip(unbound, columns, strict=True)}
            yield extended

    def code(self, atom: RecursionAtom, solutions: PartialSolutions) -> Ints:
        """Return the codes of an atom; all of its terms must be bound."""
        return self._head(atom, solutions, ())
