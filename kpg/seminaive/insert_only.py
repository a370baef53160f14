"""Least fixed points of relations without removals, by semi-naive evaluation.

    fixpoint = InsertOnlyFixpoint(system)
    fixpoint.insert([new rows of each relation])      returns the new rows of each derived relation

Each round joins the rows that the round before derived with all rows, and keeps the new results. The fixed point keeps
no state for retractions, so a derived row costs one bit or a few bytes in a set. It builds an index of a derived
relation only if a rule needs one: if two atoms of a body are derived, or if a relation that rules read changes after
the first load.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kpg.columns.memory_budget import reserve
from kpg.columns.pause_points import pause
from kpg.columns.updates import Ints
from kpg.errors import Overflow, TooManyRounds
from kpg.kernels.code_sets import expand_ranges
from kpg.seminaive.code_index import CodeIndex
from kpg.seminaive.code_log import CodeLog
from kpg.seminaive.code_set import CodeSet
from kpg.seminaive.partial_solutions import (
    MAX_SLICE_ROWS,
    ROW,
    AtomProbe,
    PartialSolutions,
    bounded_parts,
    constants_of,
    needed_variables,
)
from kpg.seminaive.recursion_rules import (
    EvaluationOrder,
    RecursionAtom,
    RecursionComparison,
    RuleSystem,
    Term,
    evaluation_orders,
    variables,
)
from kpg.seminaive.row_codes import CodeLayout, ValueIds

MAX_CODE_BITS = 62  # a code must be a non-negative int64, and the sum of two parts must not overflow


class NewRows(NamedTuple):
    """New rows of a relation, int64[arity, n], and whether they are sorted."""

    rows: Ints
    is_sorted: bool


@dataclass(slots=True)
class InsertOnlyFixpoint:
    """The relations of a rule system, with the rows derived so far."""

    system: RuleSystem
    ids: ValueIds = field(default_factory=ValueIds)
    bits: int = 1
    _derived: list[CodeSet] = field(default_factory=list)
    _read: list[CodeLog] = field(default_factory=list)
    indexes: dict[tuple[int, tuple[int, ...], int], CodeIndex] = field(default_factory=dict)
    _orders: list[list[EvaluationOrder]] = field(default_factory=list)
    _probes: dict[tuple[RecursionAtom, tuple[str, ...], frozenset[str]], AtomProbe] = field(default_factory=dict)

    def __post_init__(self) -> None:
        arities = self.system.arities
        self._orders = [evaluation_orders(self.system.rules, relation) for relation in range(len(arities))]
        self._derived = [CodeSet(self.layout(relation).width) for relation in range(self.system.derived)]
        self._read = [CodeLog() for _ in arities]

    def layout(self, relation: int) -> CodeLayout:
        """Return the code layout of a relation."""
        return CodeLayout(self.bits, self.system.arities[relation])

    def insert(self, rows: list[Ints | None]) -> list[NewRows]:
        """Insert rows of each relation, int64[arity, n] or None; return the new rows of each derived relation."""
        first = not any(map(len, self._derived))
        self._assign_ids([block for block in rows if block is not None])
        codes = [None if block is None else self._encode(relation, block) for relation, block in enumerate(rows)]
        fresh: list[list[Ints]] = [[] for _ in range(self.system.derived)]
        for relation in range(self.system.derived, len(rows)):
            inserted = codes[relation]
            if inserted is not None:
                self._add(relation, inserted)
                if not first:  # on the first load no derived rows exist to join with
                    self._derive_from(relation, inserted, fresh)
        for relation in range(self.system.derived):
            inserted = codes[relation]
            if inserted is not None:
                fresh[relation].append(self._derived[relation].insert(inserted))
        new_codes: list[list[Ints]] = [[] for _ in fresh]
        for current in self._rounds(fresh):
            if not first:
                for relation, derived in enumerate(current):
                    new_codes[relation].append(derived)
        if first:
            return [NewRows(self._all_rows(relation), self.ids.ordered) for relation in range(self.system.derived)]
        return [NewRows(self.decode(relation, parts), False) for relation, parts in enumerate(new_codes)]

    def _rounds(self, fresh: list[list[Ints]]) -> Iterator[list[Ints]]:
        """Run rounds until nothing is new; yield the new codes of each derived relation after each round."""
        rounds = 0
        while any(len(part) for parts in fresh for part in parts):
            rounds += 1
            self.check_rounds(rounds)
            pause()
            current = [np.concatenate(parts) if parts else np.empty(0, np.int64) for parts in fresh]
            fresh = [[] for _ in current]
            for relation, derived in enumerate(current):
                self._add(relation, derived)
            for relation, derived in enumerate(current):
                self._derive_from(relation, derived, fresh)
            yield current

    def row_count(self, relation: int) -> int:
        """Return the number of rows of a derived relation, also while they are being derived."""
        return len(self._derived[relation])

    def nbytes(self) -> int:
        """Return the size of all sets, logs and indexes in bytes."""
        indexes = sum(run.codes.nbytes for index in self.indexes.values() for run in index.runs)
        read = sum(log.nbytes for log in self._read)
        return indexes + read + sum(codes.nbytes for codes in self._derived)

    def rows_of(self, relation: int) -> Iterator[Ints]:
        """Yield all rows of a relation in parts, int64[arity, n] each."""
        has_set = relation < self.system.derived and len(self._derived[relation])
        for codes in self._derived[relation].runs() if has_set else self._codes(relation):
            yield self.decode(relation, [codes])

    # Ids and codes

    def _assign_ids(self, rows: list[Ints]) -> None:
        """Assign ids to all values of rows and rules; widen the codes if the ids no longer fit."""
        constants = [
            value
            for rule in self.system.rules
            for literal in (rule.head, *rule.body)
            for value in constants_of(literal)
        ]
        parts = [block.reshape(-1) for block in rows] + [np.array(constants, np.int64)]
        self.ids.add(np.concatenate(parts))
        bits = max(1, (len(self.ids) - 1).bit_length())
        if bits <= self.bits:
            return
        if bits * max(self.system.arities) > MAX_CODE_BITS:
            raise Overflow(
                f"{self.system.name} has too many distinct values for insert-only evaluation",
                detail=f"{len(self.ids):,} values in rows of {max(self.system.arities)} columns.",
                hint="Run the program without insert-only.",
            )
        self._widen(bits)

    def _widen(self, bits: int) -> None:
        """Encode everything again with more bits for each id."""
        before = [self.layout(relation) for relation in range(len(self.system.arities))]
        self.bits = bits
        after = [self.layout(relation) for relation in range(len(self.system.arities))]
        moves = [[(c, new.shift(c)) for c in range(new.arity)] for new in after]
        for relation, old in enumerate(self._derived):
            codes = CodeSet(after[relation].width)
            for run in old.runs():
                codes.insert(before[relation].rearrange(run, moves[relation]))
            self._derived[relation] = codes
        for relation, log in enumerate(self._read):
            log.recode(before[relation], moves[relation])
        self.indexes.clear()

    def _encode(self, relation: int, rows: Ints) -> Ints:
        ids = np.stack([self.ids.lookup(lane) for lane in rows]) if len(rows) else rows
        return self.layout(relation).encode(ids)

    def _all_rows(self, relation: int) -> Ints:
        """Return all rows of a derived relation, sorted by their ids."""
        layout, codes = self.layout(relation), self._derived[relation]
        reserve(8 * layout.arity * len(codes))
        out = np.empty((layout.arity, len(codes)), np.int64)
        at = 0
        for run in codes.runs():
            layout.decode_into(run, self.ids, out[:, at : at + len(run)])
            at += len(run)
        return out

    def decode(self, relation: int, parts: list[Ints]) -> Ints:
        """Return the rows of some codes, int64[arity, n]."""
        reserve(8 * (1 + self.layout(relation).arity) * sum(map(len, parts)))
        codes = np.concatenate(parts) if parts else np.empty(0, np.int64)
        layout = self.layout(relation)
        out = np.empty((layout.arity, len(codes)), np.int64)
        layout.decode_into(codes, self.ids, out)
        return out

    # Relations

    def _add(self, relation: int, codes: Ints) -> None:
        """Add new rows to the indexes of their relation, and to its log if rules only read it."""
        if relation >= self.system.derived:
            self._read[relation].insert(codes)
        for (of, _, _), index in self.indexes.items():
            if of == relation:
                index.add(codes)

    def _index(self, relation: int, columns: tuple[int, ...], keys: int) -> CodeIndex:
        """Return the index of a relation by some columns; build it on first use."""
        name = relation, columns, keys
        if name not in self.indexes:
            index = self.indexes[name] = CodeIndex(self.layout(relation), columns, keys)
            parts = self._codes(relation)
            if parts:
                index.add(np.concatenate(parts))
        return self.indexes[name]

    def _codes(self, relation: int) -> list[Ints]:
        """Return the codes of all rows of a relation, in parts."""
        if relation < self.system.derived:
            return list(self._derived[relation].runs())
        return [self._read[relation].current()]

    def check_rounds(self, rounds: int) -> None:
        """Raise if more rounds were needed than allowed."""
        if rounds > self.system.max_rounds:
            raise TooManyRounds(
                f"{self.system.name} did not reach a fixed point within {self.system.max_rounds} rounds",
                hint="Check that the recursion terminates, or allow more rounds with max_rounds=.",
            )

    # Rules

    def _derive_from(self, relation: int, codes: Ints, fresh: list[list[Ints]]) -> None:
        """Apply all rules to new rows of a relation; append the new codes of each head to `fresh`."""
        for order in self._orders[relation]:
            for at in range(0, len(codes), MAX_SLICE_ROWS):
                solutions = self._start(order.start, codes[at : at + MAX_SLICE_ROWS], needed_variables(order, 0))
                self._evaluate(order, 0, solutions, fresh[order.head.relation])

    def _start(self, start: RecursionAtom, codes: Ints, live: frozenset[str]) -> PartialSolutions:
        """Bind the variables of the starting atom to the rows that match it."""
        layout = self.layout(start.relation)
        rows = np.arange(len(codes))
        for column, term in enumerate(start.terms):
            if isinstance(term, int):
                rows = rows[layout.ids(codes[rows], column) == self._id(term)]
        codes = codes if len(rows) == len(codes) else codes[rows]
        ids = {
            term: layout.ids(codes, column)
            for column, term in enumerate(start.terms)
            if isinstance(term, str) and term in live
        }
        return PartialSolutions(len(codes), ids | {ROW: rows} if ROW in live else ids)

    def _evaluate(self, order: EvaluationOrder, step: int, solutions: PartialSolutions, fresh: list[Ints]) -> None:
        """Evaluate the remaining steps of an order for some partial solutions."""
        if not solutions.size:
            return
        if step == len(order.steps):
            fresh.append(self._derived[order.head.relation].insert(self._head(order.head, solutions, ())))
            return
        literal = order.steps[step]
        if isinstance(literal, RecursionComparison):
            passing = solutions.take(np.flatnonzero(self._holds(literal, solutions)))
            self._evaluate(order, step + 1, passing, fresh)
        elif step + 1 == len(order.steps):
            self._extend(order, literal, solutions, fresh)
        else:
            for joined in self._join(literal, solutions, needed_variables(order, step + 1)):
                self._evaluate(order, step + 1, joined, fresh)

    def _probe(
        self, atom: RecursionAtom, solutions: PartialSolutions, live: frozenset[str]
    ) -> tuple[CodeIndex, Ints, dict[str, int]]:
        """Return the index that serves an atom, the key of each solution, and the index column of each new variable."""
        name = atom, tuple(solutions.ids), live
        probe = self._probes.get(name)
        if probe is None:
            probe = self._probes[name] = self._plan_probe(atom, solutions, live)
        index = self._index(atom.relation, probe.columns, len(probe.keys))
        if not probe.keys:
            return index, np.zeros(solutions.size, np.int64), probe.provides
        keys = self._ids_of(probe.keys[0], solutions)
        for term in probe.keys[1:]:
            keys = (keys << self.bits) | self._ids_of(term, solutions)
        return index, keys, probe.provides

    def _plan_probe(self, atom: RecursionAtom, solutions: PartialSolutions, live: frozenset[str]) -> AtomProbe:
        keys = [c for c, term in enumerate(atom.terms) if isinstance(term, int) or term in solutions.ids]
        new = [c for c, term in enumerate(atom.terms) if c not in keys and isinstance(term, str) and term in live]
        columns = (*keys, *new, *self._identifying_columns(atom, keys + new))
        provides = {str(atom.terms[c]): len(keys) + at for at, c in enumerate(new)}
        return AtomProbe(columns, tuple(term for c in keys if (term := atom.terms[c]) is not None), provides)

    def _identifying_columns(self, atom: RecursionAtom, read: list[int]) -> list[int]:
        """Return the unread columns that an index must hold to distinguish rows. Without removals there are none."""
        return []

    def _extend(
        self, order: EvaluationOrder, atom: RecursionAtom, solutions: PartialSolutions, fresh: list[Ints]
    ) -> None:
        """Join the last atom: the heads go straight into the set, without intermediate solutions."""
        index, keys, provides = self._probe(atom, solutions, frozenset(variables(order.head)))
        layout = self.layout(order.head.relation)
        left = self._head(order.head, solutions, tuple(provides))
        terms = [(str(term), layout.shift(column)) for column, term in enumerate(order.head.terms)]
        moves = tuple((provides[term], bit) for term, bit in terms if term in provides)
        heads = self._derived[order.head.relation]
        index.purge_removed()
        for run, low, high in index.find(keys):
            fresh += heads.extend(left, low, high, run.projection(moves))

    def _join(
        self, atom: RecursionAtom, solutions: PartialSolutions, live: frozenset[str]
    ) -> Iterator[PartialSolutions]:
        """Join solutions with an atom; yield the live variables of the results, in parts of bounded size."""
        index, keys, provides = self._probe(atom, solutions, live)
        carried = {name: column for name, column in solutions.ids.items() if name in live}
        for run, low, high in index.find(keys):
            for part, total in bounded_parts(low, high):
                pause()
                lefts, rights = np.empty(total, np.int64), np.empty(total, np.int64)
                expand_ranges(low[part], high[part], lefts, rights)
                remaining = run.remaining(rights)
                if remaining is not None:
                    lefts, rights = lefts[remaining], rights[remaining]
                ids = {name: column[part][lefts] for name, column in carried.items()}
                if provides:
                    codes = run.codes[rights]
                    ids |= {name: index.layout.ids(codes, at) for name, at in provides.items()}
                yield PartialSolutions(len(lefts), ids)

    def _head(self, head: RecursionAtom, solutions: PartialSolutions, unbound: tuple[str, ...]) -> Ints:
        """Return the codes of a head, with zero bits for the variables that are not bound yet."""
        layout = self.layout(head.relation)
        codes = np.zeros(solutions.size, np.int64)
        for column, term in enumerate(head.terms):
            assert term is not None
            if term not in unbound:
                codes |= self._ids_of(term, solutions) << layout.shift(column)
        return codes

    def _holds(
        self, literal: RecursionComparison, solutions: PartialSolutions
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        left, right = self._ids_of(literal.left, solutions), self._ids_of(literal.right, solutions)
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

    def _ids_of(self, term: Term | None, solutions: PartialSolutions) -> Ints:
        if isinstance(term, str):
            return solutions.ids[term]
        assert term is not None
        return np.full(solutions.size, self._id(term), np.int64)

    def _id(self, value: int) -> int:
        return int(self.ids.lookup(np.array([value], np.int64))[0])
