"""Least fixed points of relations that come and go, kept right by levels instead of histories.

    upkeep = Upkeep(system)
    upkeep.change([changes of each relation])      what came to and went from each derived relation

Each derived row has a level: 0 if it is given from outside, else one more than the least level of a row that it follows
from. Rules are linear, one derived row in each body, so a level is a distance, and a change moves levels as edges that
come and go move distances. Levels are settled in ascending order: a row that may have lost what gave it its level is
looked at, from the head back through its rules; if nothing below supports it, what follows from it is looked at too,
and it gets the next level that is left, or none.

Cost: what follows from rows whose level changes; 16 to 64 bytes a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kpg.columns.updates import Ints
from kpg.growth.codes import each_once
from kpg.growth.growth import ROW, SLICE, Bound, Grown, Growth
from kpg.growth.members import Levels, Members
from kpg.growth.rules import Atom, Compare
from kpg.growth.tracks import Track, backward, tracks

Flags = np.ndarray[tuple[Any, ...], np.dtype[np.bool_]]
NONE = np.empty(0, np.int64)
FAR = np.iinfo(np.int64).max
PATIENCE = 20_000  # rows whose level may change before everything is derived anew, if there are not more
STALE = 2  # an index of derived rows is made anew when it holds more than so many times the rows


class Change(NamedTuple):
    """Rows of one relation that came and that went, int64[arity, n] each."""

    came: Ints
    went: Ints


Waiting = dict[int, list[tuple[int, Ints]]]  # by level: relation, codes


@dataclass(slots=True)
class Upkeep(Growth):
    """The relations of a system whose rules are linear."""

    _levels: list[Levels] = field(default_factory=list)
    _given: list[Levels] = field(default_factory=list)
    _count: int = 0
    _forward: list[list[Track]] = field(default_factory=list)
    _backward: list[list[Track]] = field(default_factory=list)

    def __post_init__(self) -> None:
        Growth.__post_init__(self)
        self._reset()
        every = range(len(self.system.arities))
        self._forward = [tracks(self.system, relation) for relation in every]
        self._backward = [backward(self.system, relation) for relation in range(self.system.derived)]

    def _reset(self) -> None:
        layouts = [self.layout(relation) for relation in range(self.system.derived)]
        self._levels = [Levels(layout.width) for layout in layouts]
        self._given = [Levels(layout.width) for layout in layouts]

    def nbytes(self) -> int:
        return Growth.nbytes(self) + sum(each.nbytes for each in (*self._levels, *self._given))

    def change(self, changes: list[Change | None]) -> list[tuple[Grown, Grown]]:
        """Take in changes of each relation; what came to and what went from each derived one."""
        self._name([rows for each in changes if each is not None for rows in each])
        came = [NONE if each is None else self._encode(n, each.came) for n, each in enumerate(changes)]
        went = [NONE if each is None else self._encode(n, each.went) for n, each in enumerate(changes)]
        if not self._count:
            return self._load(came, went)
        return Settling(self, came, went).done()

    def _load(self, came: list[Ints], went: list[Ints]) -> list[tuple[Grown, Grown]]:
        """The first rows: all levels at once, round by round."""
        self._change_read(came, went)
        derived = range(self.system.derived)
        for relation in derived:
            self._given[relation].put(went[relation], -1)
            self._given[relation].put(came[relation], 0)
        self.derive()
        made = [Grown(self._all(relation), self.ids.ordered) for relation in derived]
        self.keep()
        return [(each, Grown(each.rows[:, :0], True)) for each in made]

    def derive(self) -> None:
        """Derive everything anew from what is given: the rows, as sets, and their levels."""
        derived = range(self.system.derived)
        layouts = [self.layout(relation) for relation in derived]
        self._derived = [Members(layout.width) for layout in layouts]
        self._forget_derived()
        fresh = [[self._derived[relation].insert(self._given[relation].items()[0])] for relation in derived]
        rounds = list(self._rounds(fresh))
        self._levels = [
            Levels.of_rounds(layouts[relation].width, self._derived[relation], [found[relation] for found in rounds])
            for relation in derived
        ]
        self._count = sum(map(len, self._derived))

    def derived_rows(self, relation: int) -> Ints:
        """The rows just derived, ascending."""
        return np.concatenate([NONE, *self._derived[relation].runs()])

    def keep(self) -> None:
        """Forget the sets: levels say from now on what is there."""
        self._derived = [Members(1) for _ in range(self.system.derived)]
        self._forget_derived()

    # Relations

    def _change_read(self, came: list[Ints], went: list[Ints]) -> None:
        """Let what is only read change."""
        for relation in range(self.system.derived, len(came)):
            if len(went[relation]):
                self._read[relation].drop(went[relation])
                for (of, _, _), index in self._indexes.items():
                    if of == relation:
                        index.remove(went[relation])
            if len(came[relation]):
                self._add(relation, came[relation])

    def _codes(self, relation: int) -> list[Ints]:
        if relation >= self.system.derived:
            return [self._read[relation].all()]
        if any(map(len, self._derived)):
            return list(self._derived[relation].runs())
        return [self._levels[relation].items()[0]]

    def _unread(self, atom: Atom, read: list[int]) -> list[int]:
        return [column for column in range(len(atom.terms)) if column not in read]

    def _forget_derived(self) -> None:
        """Drop the indexes of derived rows: they are made when they are needed."""
        for name in [name for name in self._indexes if name[0] < self.system.derived]:
            del self._indexes[name]

    def _widen(self, bits: int) -> None:
        before = [self.layout(relation) for relation in range(self.system.derived)]
        olds = [[each.items() for each in of] for of in (self._levels, self._given)]
        Growth._widen(self, bits)
        self._reset()
        for made, old in zip((self._levels, self._given), olds, strict=True):
            for relation, (codes, levels) in enumerate(old):
                layout = self.layout(relation)
                moved = before[relation].moved(codes, [(c, layout.shift(c)) for c in range(layout.arity)])
                for level in np.unique(levels).tolist():
                    made[relation].put(moved[levels == level], level)

    # Rules

    def solutions(self, track: Track, codes: Ints) -> Iterator[Bound]:
        """All variables of a rule, wherever its body holds, from some rows; derived rows may be stale."""
        live = track.live
        for at in range(0, len(codes), SLICE):
            bound = self._begin(track.start, codes[at : at + SLICE], live)
            if at:
                bound.ids[ROW] += at
            yield from self._through(track, 0, bound, live)

    def _through(self, track: Track, step: int, bound: Bound, live: frozenset[str]) -> Iterator[Bound]:
        if not bound.size:
            return
        if step == len(track.steps):
            yield bound
            return
        literal = track.steps[step]
        if isinstance(literal, Compare):
            yield from self._through(track, step + 1, bound.taken(np.flatnonzero(self._holds(literal, bound))), live)
            return
        for joined in self._join(literal, bound, live):
            yield from self._through(track, step + 1, joined, live)

    def code(self, atom: Atom, bound: Bound) -> Ints:
        """The rows of an atom whose terms are all known."""
        return self._head(atom, bound, ())


class Settling:
    """One change of an upkeep: levels in doubt and levels that may be had, settled in ascending order."""

    def __init__(self, upkeep: Upkeep, came: list[Ints], went: list[Ints]) -> None:
        self.of = upkeep
        self.derived = upkeep.system.derived
        self.doubts: Waiting = {}
        self.offers: Waiting = {}
        self.touched: list[list[tuple[Ints, Ints]]] = [[] for _ in range(self.derived)]  # codes, levels before
        self.patience = max(PATIENCE, upkeep._count // 2)
        self._lose(went)
        upkeep._change_read(came, went)
        self._gain(came)

    def done(self) -> list[tuple[Grown, Grown]]:
        """Settle all levels; what came and went."""
        while self.doubts or self.offers:
            level = min((*self.doubts, *self.offers))
            self.of._check_rounds(level)
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
                self.of._given[relation].put(codes, -1)
                self._wait(self.doubts, relation, codes[self.of._levels[relation].get(codes) == 0], 0)
                continue
            for track in self.of._forward[relation]:
                for head, level, now in self._followers(track, codes):
                    self._wait_each(self.doubts, track.head.relation, head, level + 1, now == level + 1)

    def _gain(self, came: list[Ints]) -> None:
        """Offer levels to what follows from what came."""
        for relation, codes in enumerate(came):
            if not len(codes):
                continue
            if relation < self.derived:
                self.of._given[relation].put(codes, 0)
                self._wait(self.offers, relation, codes[self.of._levels[relation].get(codes) != 0], 0)
                continue
            for track in self.of._forward[relation]:
                for head, level, now in self._followers(track, codes):
                    self._wait_each(self.offers, track.head.relation, head, level + 1, (now < 0) | (now > level + 1))

    def _followers(self, track: Track, codes: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Rows that follow by way of read rows: the head, the level of the row it follows from, its own level."""
        for bound in self.of.solutions(track, codes):
            level = self.of._levels[track.own.relation].get(self.of.code(track.own, bound))
            there = np.flatnonzero(level >= 0)
            head = self.of.code(track.head, bound)[there]
            yield head, level[there], self.of._levels[track.head.relation].get(head)

    # Levels

    def _doubt(self, level: int, waiting: dict[int, Ints]) -> None:
        """Take the level from rows that nothing below supports."""
        for relation, codes in waiting.items():
            codes = codes[self.of._levels[relation].get(codes) == level]
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
            now = self.of._levels[relation].get(codes)
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
        best = np.where(self.of._given[relation].get(codes) >= 0, 0, FAR)
        for track in self.of._backward[relation]:
            for bound in self.of.solutions(track, codes):
                level = self.of._levels[track.own.relation].get(self.of.code(track.own, bound))
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
        for track in self.of._forward[relation]:
            for bound in self.of.solutions(track, codes):
                head = self.of.code(track.head, bound)
                now = self.of._levels[track.head.relation].get(head)
                chosen = now == level + 1 if waiting is self.doubts else (now < 0) | (now > level + 1)
                self._wait(waiting, track.head.relation, head[chosen], level + 1)

    def _set(self, relation: int, codes: Ints, level: int, before: Ints | int) -> None:
        if len(codes):
            self.touched[relation].append((codes, np.full(len(codes), before)))
            self.of._levels[relation].put(codes, level)
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

    def _begin_again(self) -> list[tuple[Grown, Grown]]:
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
        now = self.of._levels[relation].items()[0]
        parts = self.touched[relation]
        if not parts:
            return now
        codes, first = np.unique(np.concatenate([codes for codes, _ in parts]), return_index=True)
        there = np.concatenate([levels for _, levels in parts])[first] >= 0
        return np.union1d(np.setdiff1d(now, codes, assume_unique=True), codes[there])

    def _result(self, relation: int) -> tuple[Grown, Grown]:
        """What came to and went from a derived relation, in the end."""
        parts = self.touched[relation]
        if not parts:
            nothing = Grown(np.empty((self.of.layout(relation).arity, 0), np.int64), True)
            return nothing, nothing
        codes, first = np.unique(np.concatenate([codes for codes, _ in parts]), return_index=True)
        before = np.concatenate([levels for _, levels in parts])[first] >= 0
        after = self.of._levels[relation].get(codes) >= 0
        came, went = codes[after & ~before], codes[before & ~after]
        self.of._count += len(came) - len(went)
        self._index(relation, came)
        return self._rows(relation, came), self._rows(relation, went)

    def _rows(self, relation: int, codes: Ints) -> Grown:
        return Grown(self.of._decoded(relation, [codes]), self.of.ids.ordered)

    def _index(self, relation: int, came: Ints) -> None:
        """Let indexes have the new rows; what went stays in them until there is too much of it."""
        for name in [name for name in self.of._indexes if name[0] == relation]:
            index = self.of._indexes[name]
            if sum(len(run.codes) for run in index.runs) > STALE * self.of._count + 1024:
                del self.of._indexes[name]
            else:
                index.add(came)


def together(waiting: list[tuple[int, Ints]]) -> dict[int, Ints]:
    """The codes of each relation, each once."""
    found: dict[int, list[Ints]] = {}
    for relation, codes in waiting:
        found.setdefault(relation, []).append(codes)
    return {relation: each_once(np.concatenate(parts)) for relation, parts in found.items()}
