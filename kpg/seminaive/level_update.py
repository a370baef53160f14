"""One change of an upkeep: which levels its rows have now, and so which rows came and went.

Levels are settled in ascending order: a row that may have lost what gave it its level is looked at, from the head back
through its rules; if nothing below supports it, what follows from it is looked at too, and it gets the next level that
is left, or none. If that concerns too many rows, all is derived anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from kpg.columns.updates import Ints
from kpg.seminaive.insert_only import ROW, NewRows
from kpg.seminaive.row_codes import each_once
from kpg.seminaive.rule_paths import RulePath

if TYPE_CHECKING:
    from kpg.seminaive.maintained import MaintainedFixpoint

Flags = np.ndarray[tuple[Any, ...], np.dtype[np.bool_]]
Waiting = dict[int, list[tuple[int, Ints]]]  # by level: relation, codes

FAR = np.iinfo(np.int64).max
PATIENCE = 20_000  # rows whose level may change before everything is derived anew, if there are not more
STALE = 2  # an index of derived rows is made anew when it holds more than so many times the rows


class LevelUpdate:
    """One change of an upkeep: levels in doubt and levels that may be had, settled in ascending order."""

    def __init__(self, upkeep: MaintainedFixpoint, came: list[Ints], went: list[Ints]) -> None:
        self.of = upkeep
        self.derived = upkeep.system.derived
        self.doubts: Waiting = {}
        self.offers: Waiting = {}
        self.touched: list[list[tuple[Ints, Ints]]] = [[] for _ in range(self.derived)]  # codes, levels before
        self.patience = max(PATIENCE, upkeep.count // 2)
        self._lose(went)
        upkeep.change_read(came, went)
        self._gain(came)

    def done(self) -> list[tuple[NewRows, NewRows]]:
        """Settle all levels; what came and went."""
        while self.doubts or self.offers:
            level = min((*self.doubts, *self.offers))
            self.of.check_rounds(level)
            self._doubt(level, together(self.doubts.pop(level, [])))
            self._offer(level, together(self.offers.pop(level, [])))
            if self.patience < 0:
                return self._begin_again()
        return [self._result(relation) for relation in range(self.derived)]

    # What changed

    def _lose(self, went: list[Ints]) -> None:
        """Doubt what followed from what went, while it is still there."""
        for relation, codes in enumerate(went):
            if not len(codes):
                continue
            if relation < self.derived:
                self.of.given[relation].put(codes, -1)
                self._wait(self.doubts, relation, codes[self.of.levels[relation].get(codes) == 0], 0)
                continue
            for track in self.of.forward[relation]:
                for head, level, now in self._followers(track, codes):
                    self._wait_each(self.doubts, track.head.relation, head, level + 1, now == level + 1)

    def _gain(self, came: list[Ints]) -> None:
        """Offer levels to what follows from what came."""
        for relation, codes in enumerate(came):
            if not len(codes):
                continue
            if relation < self.derived:
                self.of.given[relation].put(codes, 0)
                self._wait(self.offers, relation, codes[self.of.levels[relation].get(codes) != 0], 0)
                continue
            for track in self.of.forward[relation]:
                for head, level, now in self._followers(track, codes):
                    self._wait_each(self.offers, track.head.relation, head, level + 1, (now < 0) | (now > level + 1))

    def _followers(self, track: RulePath, codes: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Rows that follow by way of read rows: the head, the level of the row it follows from, its own level."""
        for bound in self.of.solutions(track, codes):
            level = self.of.levels[track.own.relation].get(self.of.code(track.own, bound))
            there = np.flatnonzero(level >= 0)
            head = self.of.code(track.head, bound)[there]
            yield head, level[there], self.of.levels[track.head.relation].get(head)

    # Levels

    def _doubt(self, level: int, waiting: dict[int, Ints]) -> None:
        """Take the level from rows that nothing below supports."""
        for relation, codes in waiting.items():
            codes = codes[self.of.levels[relation].get(codes) == level]
            if not len(codes):
                continue
            best = self._support(relation, codes)
            lost = best != level
            self._look_further(relation, codes[lost], best[lost], level)
            self._set(relation, codes[lost], -1, level)
            self._follow(relation, codes[lost], level, self.doubts)

    def _offer(self, level: int, waiting: dict[int, Ints]) -> None:
        """Give rows a level that is less than theirs, if it is still to be had."""
        for relation, codes in waiting.items():
            now = self.of.levels[relation].get(codes)
            wanted = (now < 0) | (now > level)
            codes, now = codes[wanted], now[wanted]
            if not len(codes):
                continue
            best = self._support(relation, codes)
            found = best == level
            pending = ~found & (now < 0)
            self._look_further(relation, codes[pending], best[pending], level)
            self._set(relation, codes[found], level, now[found])
            self._follow(relation, codes[found], level, self.offers)

    def _support(self, relation: int, codes: Ints) -> Ints:
        """The least level that each row could have now; FAR if none."""
        best = np.where(self.of.given[relation].get(codes) >= 0, 0, FAR)
        for track in self.of.backward[relation]:
            for bound in self.of.solutions(track, codes):
                level = self.of.levels[track.own.relation].get(self.of.code(track.own, bound))
                there = level >= 0
                np.minimum.at(best, bound.ids[ROW][there], level[there] + 1)
        return best

    def _look_further(self, relation: int, codes: Ints, best: Ints, level: int) -> None:
        """Offer rows without a level the next that they could have; whether they still can is seen then."""
        if len(codes):
            self._wait_each(self.offers, relation, codes, np.maximum(best, level + 1), best < FAR)

    def _follow(self, relation: int, codes: Ints, level: int, waiting: Waiting) -> None:
        """Doubt, or offer a level to, what follows from rows of a level."""
        if not len(codes):
            return
        for track in self.of.forward[relation]:
            for bound in self.of.solutions(track, codes):
                head = self.of.code(track.head, bound)
                now = self.of.levels[track.head.relation].get(head)
                chosen = now == level + 1 if waiting is self.doubts else (now < 0) | (now > level + 1)
                self._wait(waiting, track.head.relation, head[chosen], level + 1)

    def _set(self, relation: int, codes: Ints, level: int, before: Ints | int) -> None:
        if len(codes):
            self.touched[relation].append((codes, np.full(len(codes), before)))
            self.of.levels[relation].put(codes, level)
            self.patience -= len(codes)

    def _wait(self, waiting: Waiting, relation: int, codes: Ints, level: int) -> None:
        if len(codes):
            waiting.setdefault(level, []).append((relation, codes))

    def _wait_each(self, waiting: Waiting, relation: int, codes: Ints, levels: Ints, chosen: Flags) -> None:
        codes, levels = codes[chosen], levels[chosen]
        if not len(codes):
            return
        least = int(levels.min())
        if least == int(levels.max()):
            self._wait(waiting, relation, codes, least)
            return
        for level in np.unique(levels).tolist():
            self._wait(waiting, relation, codes[levels == level], level)

    # The end

    def _begin_again(self) -> list[tuple[NewRows, NewRows]]:
        """So much changes that to derive everything is quicker."""
        before = [self._before(relation) for relation in range(self.derived)]
        self.of.derive()
        after = [self.of.derived_rows(relation) for relation in range(self.derived)]
        self.of.keep()
        return [
            (
                self._rows(relation, np.setdiff1d(new, old, assume_unique=True)),
                self._rows(relation, np.setdiff1d(old, new, assume_unique=True)),
            )
            for relation, (old, new) in enumerate(zip(before, after, strict=True))
        ]

    def _before(self, relation: int) -> Ints:
        """The rows of a derived relation before this change."""
        now = self.of.levels[relation].items()[0]
        parts = self.touched[relation]
        if not parts:
            return now
        codes, first = np.unique(np.concatenate([codes for codes, _ in parts]), return_index=True)
        there = np.concatenate([levels for _, levels in parts])[first] >= 0
        return np.union1d(np.setdiff1d(now, codes, assume_unique=True), codes[there])

    def _result(self, relation: int) -> tuple[NewRows, NewRows]:
        """What came to and went from a derived relation, in the end."""
        parts = self.touched[relation]
        if not parts:
            nothing = NewRows(np.empty((self.of.layout(relation).arity, 0), np.int64), True)
            return nothing, nothing
        codes, first = np.unique(np.concatenate([codes for codes, _ in parts]), return_index=True)
        before = np.concatenate([levels for _, levels in parts])[first] >= 0
        after = self.of.levels[relation].get(codes) >= 0
        came, went = codes[after & ~before], codes[before & ~after]
        self.of.count += len(came) - len(went)
        self._index(relation, came)
        return self._rows(relation, came), self._rows(relation, went)

    def _rows(self, relation: int, codes: Ints) -> NewRows:
        return NewRows(self.of.decoded(relation, [codes]), self.of.ids.ordered)

    def _index(self, relation: int, came: Ints) -> None:
        """Let indexes have the new rows; what went stays in them until there is too much of it."""
        for name in [name for name in self.of.indexes if name[0] == relation]:
            index = self.of.indexes[name]
            if sum(len(run.codes) for run in index.runs) > STALE * self.of.count + 1024:
                del self.of.indexes[name]
            else:
                index.add(came)


def together(waiting: list[tuple[int, Ints]]) -> dict[int, Ints]:
    """The codes of each relation, each once."""
    found: dict[int, list[Ints]] = {}
    for relation, codes in waiting:
        found.setdefault(relation, []).append(codes)
    return {relation: each_once(np.concatenate(parts)) for relation, parts in found.items()}
