"""Least fixed points of relations that only grow: a change adds what follows from it, and nothing is taken back.

    growth = Growth(system)
    growth.take([rows of each relation])      the new rows of each derived relation, at once

Semi-naive: a round joins the rows that the round before found with everything, and keeps what is new. Nothing is kept
for retractions, so a derived row costs a bit or some bytes in a set, and an index of its relation exists only if a rule
needs one: where two of its atoms recur, or once a relation that is read changes after the first load.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kpg.columns.updates import Ints
from kpg.errors import Overflow, TooManyRounds
from kpg.kernels.code_sets import expand
from kpg.seminaive.code_index import CodeIndex
from kpg.seminaive.code_log import CodeLog
from kpg.seminaive.code_set import CodeSet
from kpg.seminaive.recursion_rules import (
    EvaluationOrder,
    Literal,
    RecursionAtom,
    RecursionComparison,
    RuleSystem,
    Term,
    courses,
    variables,
)
from kpg.seminaive.row_codes import Ids, Layout

ROW = "#row"  # beside the variables of a course: the row it began with
SLICE = 1 << 20  # rows that are extended at a time
CODE_BITS = 62


class NewRows(NamedTuple):
    """New rows of a relation, int64[arity, n], and whether they are in order."""

    rows: Ints
    tidy: bool


class AtomProbe(NamedTuple):
    """How an atom is met: the columns of the index, the terms that are its key, and where it gives which variable."""

    columns: tuple[int, ...]
    keys: tuple[Term, ...]
    gives: dict[str, int]


@dataclass(slots=True)
class PartialSolutions:
    """Rows of a course under way: the ids of each variable that is still needed."""

    size: int
    ids: dict[str, Ints]

    def taken(self, rows: Ints) -> PartialSolutions:
        """Some of the rows."""
        return PartialSolutions(len(rows), {name: column[rows] for name, column in self.ids.items()})


@dataclass(slots=True)
class InsertOnlyFixpoint:
    """The relations of a system."""

    system: RuleSystem
    ids: Ids = field(default_factory=Ids)
    bits: int = 1
    _derived: list[CodeSet] = field(default_factory=list)
    _read: list[CodeLog] = field(default_factory=list)
    indexes: dict[tuple[int, tuple[int, ...], int], CodeIndex] = field(default_factory=dict)
    _courses: list[list[EvaluationOrder]] = field(default_factory=list)
    _meetings: dict[tuple[RecursionAtom, tuple[str, ...], frozenset[str]], AtomProbe] = field(default_factory=dict)

    def __post_init__(self) -> None:
        arities = self.system.arities
        self._courses = [courses(self.system.rules, relation) for relation in range(len(arities))]
        self._derived = [CodeSet(self.layout(relation).width) for relation in range(self.system.derived)]
        self._read = [CodeLog() for _ in arities]

    def layout(self, relation: int) -> Layout:
        """The codes of a relation."""
        return Layout(self.bits, self.system.arities[relation])

    def take(self, rows: list[Ints | None]) -> list[NewRows]:
        """Take in new rows of each relation, int64[arity, n] or None; all new rows of those derived."""
        first = not any(map(len, self._derived))
        self._name([each for each in rows if each is not None])
        codes = [None if each is None else self._encode(relation, each) for relation, each in enumerate(rows)]
        fresh: list[list[Ints]] = [[] for _ in range(self.system.derived)]
        for relation in range(self.system.derived, len(rows)):
            found = codes[relation]
            if found is not None:
                self._add(relation, found)
                if not first:  # else there is nothing to meet
                    self._follow(relation, found, fresh)
        for relation in range(self.system.derived):
            found = codes[relation]
            if found is not None:
                fresh[relation].append(self._derived[relation].insert(found))
        everything: list[list[Ints]] = [[] for _ in fresh]
        for current in self._rounds(fresh):
            if not first:
                for relation, found in enumerate(current):
                    everything[relation].append(found)
        if first:
            return [NewRows(self._all(relation), self.ids.ordered) for relation in range(self.system.derived)]
        return [NewRows(self.decoded(relation, parts), False) for relation, parts in enumerate(everything)]

    def _rounds(self, fresh: list[list[Ints]]) -> Iterator[list[Ints]]:
        """Go round until nothing is new; the new rows of each derived relation, round by round."""
        rounds = 0
        while any(len(part) for parts in fresh for part in parts):
            rounds += 1
            self.check_rounds(rounds)
            current = [np.concatenate(parts) if parts else np.empty(0, np.int64) for parts in fresh]
            fresh = [[] for _ in current]
            for relation, found in enumerate(current):
                self._add(relation, found)
            for relation, found in enumerate(current):
                self._follow(relation, found, fresh)
            yield current

    def nbytes(self) -> int:
        """What sets and indexes hold."""
        indexes = sum(run.codes.nbytes for index in self.indexes.values() for run in index.runs)
        read = sum(each.nbytes for each in self._read)
        return indexes + read + sum(each.nbytes for each in self._derived)

    def rows_of(self, relation: int) -> Iterator[Ints]:
        """All rows of a relation, int64[arity, n] each, in parts."""
        growing = relation < self.system.derived and len(self._derived[relation])
        for codes in self._derived[relation].runs() if growing else self._codes(relation):
            yield self.decoded(relation, [codes])

    # Ids and codes

    def _name(self, rows: list[Ints]) -> None:
        """Give ids to all values, of rules too; with more bits if they no longer fit."""
        constants = [term for rule in self.system.rules for each in (rule.head, *rule.body) for term in numbers(each)]
        parts = [each.reshape(-1) for each in rows] + [np.array(constants, np.int64)]
        self.ids.add(np.concatenate(parts))
        bits = max(1, (len(self.ids) - 1).bit_length())
        if bits <= self.bits:
            return
        if bits * max(self.system.arities) > CODE_BITS:
            raise Overflow(
                f"{self.system.name} has too many different values to be kept insert-only",
                detail=f"{len(self.ids):,} values in rows of {max(self.system.arities)} columns.",
                hint="Run the program without insert-only.",
            )
        self._widen(bits)

    def _widen(self, bits: int) -> None:
        """Code everything anew."""
        before = [self.layout(relation) for relation in range(len(self.system.arities))]
        self.bits = bits
        after = [self.layout(relation) for relation in range(len(self.system.arities))]
        pairs = [[(c, new.shift(c)) for c in range(new.arity)] for new in after]
        for relation, old in enumerate(self._derived):
            made = CodeSet(after[relation].width)
            for run in old.runs():
                made.insert(before[relation].moved(run, pairs[relation]))
            self._derived[relation] = made
        for relation, kept in enumerate(self._read):
            kept.recode(before[relation], pairs[relation])
        self.indexes.clear()

    def _encode(self, relation: int, rows: Ints) -> Ints:
        ids = np.stack([self.ids.of(lane) for lane in rows]) if len(rows) else rows
        return self.layout(relation).code(ids)

    def _all(self, relation: int) -> Ints:
        """All rows of a derived relation, in the order of their ids."""
        layout, members = self.layout(relation), self._derived[relation]
        out = np.empty((layout.arity, len(members)), np.int64)
        at = 0
        for run in members.runs():
            layout.values(run, self.ids, out[:, at : at + len(run)])
            at += len(run)
        return out

    def decoded(self, relation: int, parts: list[Ints]) -> Ints:
        codes = np.concatenate(parts) if parts else np.empty(0, np.int64)
        layout = self.layout(relation)
        out = np.empty((layout.arity, len(codes)), np.int64)
        layout.values(codes, self.ids, out)
        return out

    # Relations

    def _add(self, relation: int, codes: Ints) -> None:
        """Let indexes have new rows."""
        if relation >= self.system.derived:
            self._read[relation].put(codes)
        for (of, _, _), index in self.indexes.items():
            if of == relation:
                index.add(codes)

    def _index(self, relation: int, columns: tuple[int, ...], keys: int) -> CodeIndex:
        """A relation by some of its columns; made when it is first needed."""
        name = relation, columns, keys
        if name not in self.indexes:
            made = self.indexes[name] = CodeIndex(self.layout(relation), columns, keys)
            parts = self._codes(relation)
            if parts:
                made.add(np.concatenate(parts))
        return self.indexes[name]

    def _codes(self, relation: int) -> list[Ints]:
        """All rows of a relation."""
        return list(self._derived[relation].runs()) if relation < self.system.derived else [self._read[relation].all()]

    def check_rounds(self, rounds: int) -> None:
        if rounds > self.system.max_rounds:
            raise TooManyRounds(
                f"{self.system.name} did not settle within {self.system.max_rounds} rounds",
                hint="Check that the recursion ends, or allow more with max_rounds=.",
            )

    # Rules

    def _follow(self, relation: int, codes: Ints, fresh: list[list[Ints]]) -> None:
        """Add what follows from new rows of a relation."""
        for course in self._courses[relation]:
            for at in range(0, len(codes), SLICE):
                bound = self._begin(course.start, codes[at : at + SLICE], needed(course, 0))
                self._go_on(course, 0, bound, fresh[course.head.relation])

    def _begin(self, start: RecursionAtom, codes: Ints, live: frozenset[str]) -> PartialSolutions:
        """The variables of the atom whose rows are new, and which row each comes from."""
        layout = self.layout(start.relation)
        rows = np.arange(len(codes))
        for column, term in enumerate(start.terms):
            if isinstance(term, int):
                rows = rows[layout.ids(codes[rows], column) == self._id(term)]
        codes = codes if len(rows) == len(codes) else codes[rows]
        found = {
            term: layout.ids(codes, column)
            for column, term in enumerate(start.terms)
            if isinstance(term, str) and term in live
        }
        return PartialSolutions(len(codes), found | {ROW: rows} if ROW in live else found)

    def _go_on(self, course: EvaluationOrder, step: int, bound: PartialSolutions, found: list[Ints]) -> None:
        """Do the rest of a course for some rows."""
        if not bound.size:
            return
        if step == len(course.steps):
            new = self._derived[course.head.relation].insert(self._head(course.head, bound, ()))
            found.append(new)
            return
        literal = course.steps[step]
        if isinstance(literal, RecursionComparison):
            self._go_on(course, step + 1, bound.taken(np.flatnonzero(self._holds(literal, bound))), found)
        elif step + 1 == len(course.steps):
            self._extend(course, literal, bound, found)
        else:
            for joined in self._join(literal, bound, needed(course, step + 1)):
                self._go_on(course, step + 1, joined, found)

    def _meet(
        self, atom: RecursionAtom, bound: PartialSolutions, live: frozenset[str]
    ) -> tuple[CodeIndex, Ints, dict[str, int]]:
        """The index of an atom's relation by what is known, the keys to find, and where it gives which variable."""
        name = atom, tuple(bound.ids), live
        meeting = self._meetings.get(name)
        if meeting is None:
            meeting = self._meetings[name] = self._meeting(atom, bound, live)
        index = self._index(atom.relation, meeting.columns, len(meeting.keys))
        if not meeting.keys:
            return index, np.zeros(bound.size, np.int64), meeting.gives
        prefix = self._ids_of(meeting.keys[0], bound)
        for term in meeting.keys[1:]:
            prefix = (prefix << self.bits) | self._ids_of(term, bound)
        return index, prefix, meeting.gives

    def _meeting(self, atom: RecursionAtom, bound: PartialSolutions, live: frozenset[str]) -> AtomProbe:
        keys = [c for c, term in enumerate(atom.terms) if isinstance(term, int) or term in bound.ids]
        gives = [c for c, term in enumerate(atom.terms) if c not in keys and isinstance(term, str) and term in live]
        columns = (*keys, *gives, *self._unread(atom, keys + gives))
        given = {str(atom.terms[c]): len(keys) + at for at, c in enumerate(gives)}
        return AtomProbe(columns, tuple(term for c in keys if (term := atom.terms[c]) is not None), given)

    def _unread(self, atom: RecursionAtom, read: list[int]) -> list[int]:
        """Columns that nobody reads but an index must hold, since it tells rows apart by them."""
        return []

    def _extend(self, course: EvaluationOrder, atom: RecursionAtom, bound: PartialSolutions, found: list[Ints]) -> None:
        """The last atom: what it adds to the head goes straight into the set."""
        index, keys, gives = self._meet(atom, bound, frozenset(variables(course.head)))
        layout = self.layout(course.head.relation)
        left = self._head(course.head, bound, tuple(gives))
        terms = [(str(term), layout.shift(column)) for column, term in enumerate(course.head.terms)]
        pairs = tuple((gives[term], bit) for term, bit in terms if term in gives)
        members = self._derived[course.head.relation]
        index.settle()
        for run, low, high in index.find(keys):
            found += members.extend(left, low, high, run.part(pairs))

    def _join(self, atom: RecursionAtom, bound: PartialSolutions, live: frozenset[str]) -> Iterator[PartialSolutions]:
        """The rows that meet an atom, with the variables that live on, in parts of bounded size."""
        index, keys, gives = self._meet(atom, bound, live)
        kept = {name: column for name, column in bound.ids.items() if name in live}
        for run, low, high in index.find(keys):
            for part, total in parts_of(low, high):
                lefts, rights = np.empty(total, np.int64), np.empty(total, np.int64)
                expand(low[part], high[part], lefts, rights)
                standing = run.standing(rights)
                if standing is not None:
                    lefts, rights = lefts[standing], rights[standing]
                made = {name: column[part][lefts] for name, column in kept.items()}
                if gives:
                    codes = run.codes[rights]
                    made |= {name: index.layout.ids(codes, at) for name, at in gives.items()}
                yield PartialSolutions(len(lefts), made)

    def _head(self, head: RecursionAtom, bound: PartialSolutions, later: tuple[str, ...]) -> Ints:
        """The codes of a head, as far as it is known."""
        layout = self.layout(head.relation)
        made = np.zeros(bound.size, np.int64)
        for column, term in enumerate(head.terms):
            assert term is not None
            if term not in later:
                made |= self._ids_of(term, bound) << layout.shift(column)
        return made

    def _holds(
        self, literal: RecursionComparison, bound: PartialSolutions
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        left, right = self._ids_of(literal.left, bound), self._ids_of(literal.right, bound)
        if literal.op in ("=", "!="):
            return np.asarray((left == right) == (literal.op == "="))
        left, right = self.ids.values[left], self.ids.values[right]
        match literal.op:
            case "<":
                return np.asarray(left < right)
            case "<=":
                return np.asarray(left <= right)
            case ">":
                return np.asarray(left > right)
        return np.asarray(left >= right)

    def _ids_of(self, term: Term | None, bound: PartialSolutions) -> Ints:
        if isinstance(term, str):
            return bound.ids[term]
        assert term is not None
        return np.full(bound.size, self._id(term), np.int64)

    def _id(self, value: int) -> int:
        return int(self.ids.of(np.array([value], np.int64))[0])


def parts_of(low: Ints, high: Ints) -> Iterator[tuple[slice, int]]:
    """Ranges of rows that have matches in bounded number, or that of one row, and how many those are."""
    matches = high - low
    total = int(matches.sum())
    if total <= SLICE:
        if total:
            yield slice(None), total
        return
    ends = np.cumsum(matches)
    start, done = 0, 0
    while start < len(ends):
        stop = max(start + 1, int(np.searchsorted(ends, done + SLICE, side="right")))
        yield slice(start, stop), int(ends[stop - 1]) - done
        start, done = stop, int(ends[stop - 1])


def numbers(literal: Literal) -> list[int]:
    """The values that stand in a literal."""
    terms = literal.terms if isinstance(literal, RecursionAtom) else (literal.left, literal.right)
    return [term for term in terms if isinstance(term, int)]


def needed(course: EvaluationOrder, step: int) -> frozenset[str]:
    """The variables that are read from a step on."""
    return frozenset(variables(course.head)).union(*(variables(literal) for literal in course.steps[step:]))
