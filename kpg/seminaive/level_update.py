"""Apply one change to a maintained fixed point: compute new levels, and from them the added and removed rows.

The update processes levels in ascending order. A row of level 0 is *supported* by its insertion from outside, a row of
level k + 1 by a body that derives it, of which the greatest level is k. A *suspect* is a row that may have lost its
support. The update evaluates the rules backward from the suspect. If no rows below its level support it, the suspect
loses its level, and the rows that follow from it become suspects. If rows support it at a higher level, it becomes a
*candidate* for that level. When the update reaches a level, all rows of lower levels have their final levels, so a row
never supports itself. If a change affects too many rows, all rows are derived from scratch instead.

Levels with few rows run in a kernel, row by row, by the same definitions (`kpg.seminaive.small_levels`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from kpg.columns.updates import Ints
from kpg.kernels.level_records import BEFORE, CODE, NOW, RELATION
from kpg.kernels.run_levels import DOUBT, GAIN, LOSE, PROPOSE
from kpg.seminaive import small_levels
from kpg.seminaive.code_set import CodeLevels
from kpg.seminaive.partial_solutions import LEVEL, ROW, PartialSolutions
from kpg.seminaive.row_codes import sorted_distinct
from kpg.seminaive.rule_paths import RulePath
from kpg.seminaive.small_levels import NO_STARTS, can_run, starts_of
from kpg.seminaive.stored_relations import NewRows

if TYPE_CHECKING:
    from kpg.seminaive.maintained import MaintainedFixpoint

Flags = np.ndarray[tuple[Any, ...], np.dtype[np.bool_]]
RowsByLevel = dict[int, list[tuple[int, Ints]]]  # level: (relation, codes), …

NO_SUPPORT = np.iinfo(np.int64).max  # the level of a row that no row supports
MIN_UPDATE_BUDGET_ROWS = 20_000  # level changes that an update may always make before all rows are derived from scratch
MIN_UPDATE_WORK = 200_000  # matches of joins that an update may always make
MATCH_COST = 8  # a match of an update takes about as long as this many matches of a derivation from scratch
MIN_HASHED_CODES = 1 << 14  # fewer changed rows are sorted with their levels
MAX_INDEX_BLOAT = 2  # an index of derived rows is dropped when it holds more than this multiple of the rows
MAX_ROWS_PER_LEVEL = 256  # on average in the last changes: with more, NumPy calls are as fast as the kernel
MAX_SMALL_CHANGE = 1 << 10  # changed rows of an update that begins with small levels


class UpdateTooLarge(Exception):
    """The update would take longer than deriving all rows from scratch."""


class LevelUpdate:
    """One change: suspects and candidates by level, processed in ascending order of levels."""

    def __init__(self, fixpoint: MaintainedFixpoint, added: list[Ints], removed: list[Ints]) -> None:
        self.fixpoint = fixpoint
        self.added, self.removed = added, removed
        self.derived = fixpoint.system.derived
        self.suspects: RowsByLevel = {}
        self.candidates: RowsByLevel = {}
        self.touched: list[list[tuple[Ints, Ints]]] = [[] for _ in range(self.derived)]  # codes, old levels
        self.budget_rows = max(MIN_UPDATE_BUDGET_ROWS, fixpoint.count // 2)
        self.work_limit = fixpoint.work + max(MIN_UPDATE_WORK, fixpoint.derive_work // MATCH_COST)
        self.levels_seen = self.rows_seen = 0
        self.work_before = 0  # before the kernel began to run small levels
        self.small = fixpoint.small_levels() if can_run() else None

    def run(self) -> list[tuple[NewRows, NewRows]]:
        """Apply the change; return the added and the removed rows of each derived relation."""
        try:
            return self._run()
        finally:
            if self.levels_seen:
                rows_per_level = self.rows_seen / self.levels_seen
                self.fixpoint.rows_per_level += (rows_per_level - self.fixpoint.rows_per_level) / 2
            if self.small is not None:
                self.small.end()

    def _run(self) -> list[tuple[NewRows, NewRows]]:
        is_small = self._begins_small()
        try:
            if is_small:
                self._begin_small()
                self._run_small(self._starts(self.removed, self.added, DOUBT, LOSE), False)
            else:
                self._suspect_dependents()
        except UpdateTooLarge:
            self._apply()
            return self._derive_from_scratch()
        self._apply()
        try:
            if is_small:
                self._run_small(self._starts(self.added, self.removed, PROPOSE, GAIN), True)
            else:
                self._propose_dependents()
            self._process_levels()
        except UpdateTooLarge:
            return self._derive_from_scratch()
        return [self._result(relation) for relation in range(self.derived)]

    def _process_levels(self) -> None:
        while self.suspects or self.candidates:
            if self.small is not None and self._queued() <= self._return_rows():
                self._begin_small()
                self._run_small(self._queue_as_starts(), True)
                continue
            level = min((*self.suspects, *self.candidates))
            self.levels_seen += 1
            self.rows_seen += sum(
                len(codes) for queue in (self.suspects, self.candidates) for _, codes in queue.get(level, [])
            )
            self.fixpoint.check_rounds(level)
            self._check_suspects(level, by_relation(self.suspects.pop(level, [])))
            self._check_candidates(level, by_relation(self.candidates.pop(level, [])))
            if self.budget_rows < 0:
                raise UpdateTooLarge

    def _solutions(self, path: RulePath, codes: Ints, level: int) -> Iterator[PartialSolutions]:
        """Yield the solutions of a rule that start with some rows, while the update is worth its work."""
        for solutions in self.fixpoint.solutions(path, codes, level):
            if self.fixpoint.work > self.work_limit:
                raise UpdateTooLarge
            yield solutions

    # Small levels

    def _begins_small(self) -> bool:
        """Return whether the kernel is likely to be faster: few rows change, and the last changes had small levels."""
        return (
            self.small is not None
            and sum(map(len, (*self.added, *self.removed))) <= MAX_SMALL_CHANGE
            and self.fixpoint.rows_per_level <= MAX_ROWS_PER_LEVEL
        )

    def _begin_small(self) -> None:
        """Begin to run small levels by the kernel."""
        assert self.small is not None
        self.small.begin(self.fixpoint)
        self.work_before = self.fixpoint.work

    def _run_small(self, starts: Ints, levels: bool) -> None:
        """Run some starts, and then small levels, by the kernel; take over what it has done and left."""
        small = self.small
        assert small is not None
        done = small.process(starts, levels, self.work_limit - self.work_before)
        self.fixpoint.work = self.work_before + small.visited
        if done is None or small.changed > self.budget_rows:
            raise UpdateTooLarge
        if levels:
            self.budget_rows -= small.changed
            self.levels_seen += small.levels_seen
            self.rows_seen += len(small.rows())
            self._take_rows(small.rows())
            if not done:
                self._take_queue()

    def _take_rows(self, records: Ints) -> None:
        """Give rows the levels that the kernel has found."""
        records = records[records[:, BEFORE] != records[:, NOW]]
        for relation in range(self.derived):
            rows = records[records[:, RELATION] == relation] if self.derived > 1 else records
            if len(rows):
                codes, before, now = (np.ascontiguousarray(rows[:, field]) for field in (CODE, BEFORE, NOW))
                self.touched[relation].append((codes, before))
                self.fixpoint.levels[relation].put_each(codes, now)
                if self.fixpoint.joins_derived:
                    self._add_to_indexes(relation, codes[(before < 0) & (now >= 0)])

    def _take_queue(self) -> None:
        """Queue what the kernel has left."""
        assert self.small is not None
        queued = self.small.queue()
        for queue, of_queue in ((self.suspects, queued.is_suspect), (self.candidates, ~queued.is_suspect)):
            for relation in range(self.derived):
                rows = of_queue & (queued.relations == relation)
                self._enqueue_each(queue, relation, queued.codes, queued.levels, rows)

    def _return_rows(self) -> int:
        """Return the number of queued rows with which an update returns to the kernel."""
        return min(MAX_ROWS_PER_LEVEL, small_levels.MAX_LEVEL_ROWS // 4)

    def _queued(self) -> int:
        """Return the number of queued rows."""
        return sum(len(codes) for queue in (self.suspects, self.candidates) for _, codes in chain(*queue.values()))

    def _queue_as_starts(self) -> Ints:
        """Return what is queued, as starts of the kernel, and empty the queues."""
        parts = [NO_STARTS]
        for action, queue in ((DOUBT, self.suspects), (PROPOSE, self.candidates)):
            for level, queued in queue.items():
                parts += [starts_of(action, relation, codes, level) for relation, codes in queued]
            queue.clear()
        return np.concatenate(parts)

    def _starts(self, rows: list[Ints], negated: list[Ints], own: int, action: int) -> Ints:
        """Return the rows of the change as starts of the kernel."""
        assert self.small is not None
        parts, table = [NO_STARTS], self.small.table
        for relation, codes in enumerate(rows):
            if relation < self.derived:
                if len(codes):
                    parts.append(starts_of(own, relation, codes, 0))
                continue
            for paths, changed in ((table.forward, codes), (table.negated, negated[relation])):
                if len(changed):
                    parts += [starts_of(action, path, changed, 0) for path in range(*paths[relation])]
        return np.concatenate(parts)

    # From the change to the first suspects and candidates

    def _suspect_dependents(self) -> None:
        """Suspect the rows that the change may no longer support. The indexes hold the rows before the change."""
        for relation in range(self.derived):
            codes = self.removed[relation]
            self._enqueue(self.suspects, relation, codes[self.fixpoint.levels[relation].get(codes) == 0], 0)
        for path, codes in self._changed_paths(self.removed, self.added):
            for head, level, now in self._dependents(path, codes):
                self._enqueue_each(self.suspects, path.head.relation, head, level, now == level)

    def _apply(self) -> None:
        """Apply the change to the rows from outside."""
        for relation in range(self.derived):
            self.fixpoint.inserted[relation].put(self.removed[relation], -1)
            self.fixpoint.inserted[relation].put(self.added[relation], 0)
        self.fixpoint.change_read(self.added, self.removed)

    def _propose_dependents(self) -> None:
        """Make the rows that the change may support candidates. The indexes hold the rows after the change."""
        for relation in range(self.derived):
            codes = self.added[relation]
            self._enqueue(self.candidates, relation, codes[self.fixpoint.levels[relation].get(codes) != 0], 0)
        for path, codes in self._changed_paths(self.added, self.removed):
            for head, level, now in self._dependents(path, codes):
                self._enqueue_each(self.candidates, path.head.relation, head, level, (now < 0) | (now > level))

    def _changed_paths(self, rows: list[Ints], negated: list[Ints]) -> Iterator[tuple[RulePath, Ints]]:
        """Yield the paths that start with some rows of relations that rules read, or negate."""
        for relation in range(self.derived, len(rows)):
            for paths, codes in ((self.fixpoint.forward, rows), (self.fixpoint.negated, negated)):
                if len(codes[relation]):
                    yield from ((path, codes[relation]) for path in paths[relation])

    def _dependents(self, path: RulePath, codes: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield the heads that follow from some rows, the level that each has by them, and the level it has now."""
        for solutions in self._solutions(path, codes, -1):
            head = self.fixpoint.code(path.head, solutions)
            yield head, solutions.ids[LEVEL] + 1, self.fixpoint.levels[path.head.relation].get(head)

    # Levels

    def _check_suspects(self, level: int, suspects: dict[int, Ints]) -> None:
        """Remove the level of the suspects that no row of the level below supports."""
        for relation, codes in suspects.items():
            codes = codes[self.fixpoint.levels[relation].get(codes) == level]
            if not len(codes):
                continue
            best = self._best_level(relation, codes)
            lost = best != level
            self._propose_higher(relation, codes[lost], best[lost], level)
            self._enqueue_heads(relation, codes[lost], level, self.suspects)  # by bodies of which no row is lost yet
            self._set_level(relation, codes[lost], -1, level)

    def _check_candidates(self, level: int, candidates: dict[int, Ints]) -> None:
        """Lower the level of rows to `level`, if a support for it still exists."""
        for relation, codes in candidates.items():
            now = self.fixpoint.levels[relation].get(codes)
            is_higher = (now < 0) | (now > level)
            codes, now = codes[is_higher], now[is_higher]
            if not len(codes):
                continue
            best = self._best_level(relation, codes)
            supported = best == level
            pending = ~supported & (now < 0)
            self._propose_higher(relation, codes[pending], best[pending], level)
            self._set_level(relation, codes[supported], level, now[supported])
            self._enqueue_heads(relation, codes[supported], level, self.candidates)

    def _best_level(self, relation: int, codes: Ints) -> Ints:
        """Return the least level that each row could have now; `NO_SUPPORT` if nothing supports it."""
        best = np.where(self.fixpoint.inserted[relation].get(codes) >= 0, 0, NO_SUPPORT)
        for path in self.fixpoint.backward[relation]:
            for solutions in self._solutions(path, codes, -1):
                np.minimum.at(best, solutions.ids[ROW], solutions.ids[LEVEL] + 1)
        return best

    def _propose_higher(self, relation: int, codes: Ints, best: Ints, level: int) -> None:
        """Make rows candidates for the next level with a support. The update checks the support again at that level."""
        if len(codes):
            self._enqueue_each(self.candidates, relation, codes, np.maximum(best, level + 1), best < NO_SUPPORT)

    def _enqueue_heads(self, relation: int, codes: Ints, level: int, queue: RowsByLevel) -> None:
        """Enqueue the rows that follow from rows of a level, as suspects or as candidates."""
        if not len(codes):
            return
        for path in self.fixpoint.forward[relation]:
            for solutions in self._solutions(path, codes, level):
                head, level_of = self.fixpoint.code(path.head, solutions), solutions.ids[LEVEL] + 1
                now = self.fixpoint.levels[path.head.relation].get(head)
                if queue is self.suspects:
                    # The head has a higher level than its body gives if other rows of the body got lower levels in this
                    # update, and the head, which waits for its own, still has the level that it had by them.
                    self._enqueue_each(queue, path.head.relation, head, now, now >= level_of)
                else:
                    self._enqueue_each(queue, path.head.relation, head, level_of, (now < 0) | (now > level_of))

    def _set_level(self, relation: int, codes: Ints, level: int, before: Ints | int) -> None:
        if len(codes):
            self.touched[relation].append((codes, np.full(len(codes), before)))
            self.fixpoint.levels[relation].put(codes, level)
            self.budget_rows -= len(codes)
            if level >= 0 and self.fixpoint.joins_derived:  # other rows may join them within this update
                self._add_to_indexes(relation, codes[np.broadcast_to(before, len(codes)) < 0])

    def _enqueue(self, queue: RowsByLevel, relation: int, codes: Ints, level: int) -> None:
        if len(codes):
            queue.setdefault(level, []).append((relation, codes))

    def _enqueue_each(self, queue: RowsByLevel, relation: int, codes: Ints, levels: Ints, affected: Flags) -> None:
        codes, levels = codes[affected], levels[affected]
        if not len(codes):
            return
        least = int(levels.min())
        if least == int(levels.max()):
            self._enqueue(queue, relation, codes, least)
            return
        for level in np.unique(levels).tolist():
            self._enqueue(queue, relation, codes[levels == level], level)

    # The result

    def _derive_from_scratch(self) -> list[tuple[NewRows, NewRows]]:
        """Derive everything again: faster than an update that affects too many rows."""
        for relation in range(self.derived):
            self._restore_levels(relation)
        before = self.fixpoint.levels
        self.fixpoint.derive()
        changes = [self._difference(relation, before[relation]) for relation in range(self.derived)]
        self.fixpoint.drop_sets()
        return changes

    def _restore_levels(self, relation: int) -> None:
        """Give all rows of a derived relation the levels that they had before this change."""
        for codes, levels in reversed(self.touched[relation]):  # the first one counts
            self.fixpoint.levels[relation].put_each(codes, levels)

    def _difference(self, relation: int, before: CodeLevels) -> tuple[NewRows, NewRows]:
        """Return the added and the removed rows of a relation that was derived again, given its levels before."""
        old, new = before.items()[0], self.fixpoint.derived_rows(relation)
        added, removed = new[before.get(new) < 0], old[self.fixpoint.levels[relation].get(old) < 0]
        return self._rows(relation, added), self._rows(relation, np.sort(removed))

    def _result(self, relation: int) -> tuple[NewRows, NewRows]:
        """Return the added and the removed rows of a derived relation."""
        parts = self.touched[relation]
        if not parts:
            nothing = NewRows(np.empty((self.fixpoint.layout(relation).arity, 0), np.int64), True)
            return nothing, nothing
        codes, before = presence_before(parts, self.fixpoint.layout(relation).width)
        after = self.fixpoint.levels[relation].get(codes) >= 0
        added, removed = codes[after & ~before], codes[before & ~after]
        self.fixpoint.count += len(added) - len(removed)
        if not self.fixpoint.joins_derived:
            self._add_to_indexes(relation, added)
        return self._rows(relation, added), self._rows(relation, removed)

    def _rows(self, relation: int, codes: Ints) -> NewRows:
        return NewRows(self.fixpoint.decode(relation, [codes]), self.fixpoint.is_ordered(relation))

    def _add_to_indexes(self, relation: int, added: Ints) -> None:
        """Add rows to the indexes. Removed rows stay in an index; an index with too many of them is dropped instead."""
        for name in [name for name in self.fixpoint.indexes if name[0] == relation]:
            index = self.fixpoint.indexes[name]
            if index.row_count > MAX_INDEX_BLOAT * self.fixpoint.count + 1024:
                del self.fixpoint.indexes[name]
            else:
                index.add(added)


def presence_before(parts: list[tuple[Ints, Ints]], width: int) -> tuple[Ints, Flags]:
    """Return the distinct codes of some parts in ascending order, and whether each had a level in its first part."""
    if sum(len(codes) for codes, _ in parts) < MIN_HASHED_CODES:
        codes, first = np.unique(np.concatenate([codes for codes, _ in parts]), return_index=True)
        return codes, np.concatenate([levels for _, levels in parts])[first] >= 0
    had_level = CodeLevels(width)
    for codes, levels in reversed(parts):  # the first one counts
        had_level.put_each(codes, (levels >= 0).astype(np.int64))
    codes = np.sort(had_level.items()[0])
    return codes, had_level.get(codes) > 0


def by_relation(queued: list[tuple[int, Ints]]) -> dict[int, Ints]:
    """Return the distinct queued codes of each relation."""
    codes_of: dict[int, list[Ints]] = {}
    for relation, codes in queued:
        codes_of.setdefault(relation, []).append(codes)
    return {relation: sorted_distinct(np.concatenate(parts)) for relation, parts in codes_of.items()}
