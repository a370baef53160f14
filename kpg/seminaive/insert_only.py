"""Least fixed points of relations without removals, by semi-naive evaluation.

    fixpoint = InsertOnlyFixpoint(system)
    fixpoint.insert([new rows of each relation])      returns the new rows of each derived relation

Each round joins the rows that the round before derived with all rows, and keeps the new results. The fixed point keeps
no state for retractions, so a derived row costs one bit or a few bytes in a set. It builds an index of a derived
relation only if a rule needs one: if two atoms of a body are derived, or if a relation that rules read changes after
the first load. After some rounds of few rows, a kernel runs the next ones (`kpg.seminaive.small_levels`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from kpg.columns.pause_points import pause
from kpg.columns.updates import Ints
from kpg.errors import InsertOnly, TooManyRounds
from kpg.kernels.code_sets import expand_ranges
from kpg.kernels.level_records import CODE, NOW, RELATION
from kpg.kernels.run_levels import BEGIN
from kpg.seminaive import small_levels
from kpg.seminaive.array_addresses import Addressed
from kpg.seminaive.chain_index import ChainIndex
from kpg.seminaive.code_index import CodeIndex
from kpg.seminaive.code_layout import CodeLayout
from kpg.seminaive.level_table import IndexName, rounds_table
from kpg.seminaive.partial_solutions import (
    MAX_SLICE_ROWS,
    ROW,
    AtomProbe,
    PartialSolutions,
    bounded_parts,
    needed_variables,
)
from kpg.seminaive.recursion_rules import (
    EvaluationOrder,
    RecursionAtom,
    RecursionComparison,
    RecursionNegation,
    Term,
    atoms_of,
    evaluation_orders,
    variables,
)
from kpg.seminaive.small_levels import SmallLevels, can_run, starts_of
from kpg.seminaive.stored_relations import NewRows, StoredRelations

MAX_SMALL_ROUND_ROWS = 512  # of a round that the kernel for small rounds may run
MIN_SMALL_ROUNDS = 4  # in a row, before it runs the next one

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(slots=True)
class InsertOnlyFixpoint(StoredRelations):
    """The relations of a rule system, with the rows derived so far."""

    work: int = 0  # matches of all joins so far: a measure of time
    domain_of: dict[str, int] = field(init=False)  # the domain of each variable
    _orders: list[list[EvaluationOrder]] = field(init=False)
    _followed: list[int] = field(init=False)  # the derived relations that rules read
    _negated: set[int] = field(init=False)
    _rounds_run: SmallLevels | None = None
    _probes: dict[tuple[RecursionAtom, tuple[str, ...], frozenset[str]], AtomProbe] = field(default_factory=dict)

    def __post_init__(self) -> None:
        StoredRelations.__post_init__(self)
        self.domain_of = {
            term: self.domains.columns[atom.relation][column]
            for rule in self.system.rules
            for atom in atoms_of(rule)
            for column, term in enumerate(atom.terms)
            if isinstance(term, str)
        }
        self._orders = [
            evaluation_orders(self.system.rules, relation, self.system.derived) for relation in range(len(self.layouts))
        ]
        self._followed = [relation for relation in range(self.system.derived) if self._orders[relation]]
        literals = [literal for rule in self.system.rules for literal in rule.body]
        self._negated = {literal.atom.relation for literal in literals if isinstance(literal, RecursionNegation)}

    def insert(self, rows: list[Ints | None], is_read: list[bool]) -> list[NewRows | None]:
        """Insert rows of each relation, int64[arity, n] or None; return the new rows of each derived relation.

        `is_read` says of which derived relations the caller needs the new rows.
        """
        first = not any(map(len, self._derived))
        rows = rows + self.copied(rows)
        self._check_negated(rows)
        self._assign_ids([[] if block is None else [block] for block in rows])
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
            for relation, derived in enumerate(current):
                if is_read[relation] and not first:
                    new_codes[relation].append(derived)
        return [self._new_rows(n, new_codes[n], first) if read else None for n, read in enumerate(is_read)]

    def _new_rows(self, relation: int, parts: list[Ints], first: bool) -> NewRows:
        """Return the rows of some new codes; after the first load, all rows."""
        if first:
            return NewRows(self._all_rows(relation), self.is_ordered(relation))
        return NewRows(self.decode(relation, parts), False)

    def _check_negated(self, rows: list[Ints | None]) -> None:
        """Raise if rows of a negated relation arrive after others were derived: derived rows would have to go."""
        if any(map(len, self._derived)) and any(rows[relation] is not None for relation in self._negated):
            raise InsertOnly(
                "an input changed that a program reads as complete",
                detail=f"{self.system.name} negates a relation that depends on it.",
                hint="Run the program without one_load if its inputs change after the first answer.",
            )

    def _rounds(self, fresh: list[list[Ints]]) -> Iterator[list[Ints]]:
        """Run rounds until no rule can follow; yield the new codes of each derived relation after each round."""
        rounds, level, small_rounds = 0, 0, 0
        while any(len(part) for parts in fresh for part in parts):
            small_rounds = small_rounds + 1 if self._is_small(fresh) else 0
            small = self._small_rounds() if small_rounds > MIN_SMALL_ROUNDS and can_run() else None
            if small is not None:
                current, fresh = self._run_small_rounds(small, fresh, level, rounds)
                rounds, level = small.rounds, max(level, small.level)
                yield current
                continue
            rounds += any(len(part) for relation in self._followed for part in fresh[relation])
            self.check_rounds(rounds)
            pause()
            current = [np.concatenate(parts) if parts else np.empty(0, np.int64) for parts in fresh]
            fresh = [[] for _ in current]
            for index in self.indexes.values():
                if isinstance(index, ChainIndex):
                    index.begin_round()
            for relation, derived in enumerate(current):
                self._add_derived(relation, derived, level)
            level += 1
            for relation, derived in enumerate(current):
                self._derive_from(relation, derived, fresh)
            yield current

    def _add_derived(self, relation: int, codes: Ints, levels: Ints | int) -> None:
        """Add the new rows of one round, or those of several levels."""
        self._add(relation, codes)

    def _is_small(self, fresh: list[list[Ints]]) -> bool:
        """Return whether the kernel may run a round with these rows."""
        return sum(map(len, chain(*fresh))) <= min(MAX_SMALL_ROUND_ROWS, small_levels.MAX_LEVEL_ROWS)

    def _small_rounds(self) -> SmallLevels | None:
        """Return an empty run of the kernel for small rounds; None if it cannot run these rules."""
        if not all(isinstance(layout, CodeLayout) for layout in self.layouts):
            return None
        if self._rounds_run is None or self._rounds_run.table.layouts is not self.layouts:
            self._rounds_run = SmallLevels(rounds_table(self, self._orders))
        return self._rounds_run

    def _run_small_rounds(
        self, small: SmallLevels, fresh: list[list[Ints]], level: int, rounds: int
    ) -> tuple[list[Ints], list[list[Ints]]]:
        """Run small rounds by the kernel; return the rows whose rules it has applied, and the other new rows."""
        small.begin(self, True, rounds)
        starts = [starts_of(BEGIN, relation, codes, level) for relation, parts in enumerate(fresh) for codes in parts]
        try:
            done = small.process(np.concatenate(starts), True)
            records, queued = small.rows(), None if done else small.queue()
        finally:
            small.end()
        self.work += small.visited
        records = records[records[:, NOW] >= 0]
        current, fresh = [], [[] for _ in fresh]
        for relation, codes_of in enumerate(self._derived):
            rows = records[records[:, RELATION] == relation]
            current.append(np.ascontiguousarray(rows[:, CODE]))
            codes_of.insert(current[-1])
            self._add_derived(relation, current[-1], np.ascontiguousarray(rows[:, NOW]))
            if queued is not None:
                fresh[relation] = [queued.codes[queued.relations == relation]]
                codes_of.insert(fresh[relation][0])
        return current, fresh

    @property
    def allowed_rounds(self) -> int:
        """The number of rounds that a derivation may take."""
        return self.system.max_rounds

    def check_rounds(self, rounds: int) -> None:
        """Raise if more rounds were needed than allowed."""
        if rounds > self.allowed_rounds:
            raise TooManyRounds(
                f"{self.system.name} did not reach a fixed point within {self.system.max_rounds} rounds",
                hint="Check that the recursion ends, or allow more: max_rounds= in a program, "
                'limits={"rounds": N} in a request, kpg serve --max-rounds N.',
            )

    # Small levels

    def level_tables(self, derives: bool) -> list[Addressed]:
        """Return the tables of levels of all derived relations, for `kpg.kernels.run_levels`."""
        return [codes.addressed() for codes in self._derived]

    def allowed_tries(self, relation: int, unbound: int) -> int:
        """Return how many rows of a derived relation may be tried for want of an index."""
        return 0

    def note_tries(self, relation: int, tries: int) -> None:
        """Note how many rows were tried for want of an index."""

    def build_index(self, name: IndexName) -> None:
        """Build an index that a rule needs."""
        self._index(*name)

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
                rows = rows[layout.ids(codes[rows], column) == self.id_of(term, start.relation, column)]
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
        if not isinstance(literal, RecursionAtom):
            self._evaluate(order, step + 1, self._passing(literal, solutions), fresh)
        elif step + 1 == len(order.steps) and isinstance(self.layout(order.head.relation), CodeLayout):
            self._extend(order, literal, solutions, fresh)
        else:
            needed = needed_variables(order, step + 1)
            for joined in self._join(literal, solutions, needed, literal in order.earlier):
                self._evaluate(order, step + 1, joined, fresh)

    def _probe(
        self, atom: RecursionAtom, solutions: PartialSolutions, live: frozenset[str]
    ) -> tuple[CodeIndex | ChainIndex, Ints, dict[str, int]]:
        """Return the index that serves an atom, the key of each solution, and the index column of each new variable."""
        probe = self._planned_probe(atom, solutions, live)
        index = self._index(atom.relation, probe.columns, len(probe.keys))
        terms = zip(probe.columns, probe.keys, strict=False)
        keys = [self._ids_of(term, solutions, atom.relation, column) for column, term in terms]
        return index, index.layout.key(keys, solutions.size), probe.provides

    def _planned_probe(self, atom: RecursionAtom, solutions: PartialSolutions, live: frozenset[str]) -> AtomProbe:
        """Return the lookup of an atom; plan it on first use."""
        name = atom, tuple(solutions.ids), live
        probe = self._probes.get(name)
        if probe is None:
            probe = self._probes[name] = self._plan_probe(atom, solutions, live)
        return probe

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
        assert isinstance(layout, CodeLayout)
        left = self._head(order.head, solutions, tuple(provides))
        terms = [(str(term), layout.shift(column)) for column, term in enumerate(order.head.terms)]
        moves = tuple((provides[term], bit) for term, bit in terms if term in provides)
        heads = self._derived[order.head.relation]
        if isinstance(index, ChainIndex):
            self.work += index.matches(keys)
            fresh += heads.extend_chains(left, keys, index, moves, index.limit(atom in order.earlier))
            return
        index.purge_removed()
        for run, low, high in index.find(keys):
            self.work += int((high - low).sum())
            fresh += heads.extend(left, low, high, run.projection(moves))

    def _join(
        self, atom: RecursionAtom, solutions: PartialSolutions, live: frozenset[str], only_earlier: bool = False
    ) -> Iterator[PartialSolutions]:
        """Join solutions with an atom; yield the live variables of the results, in parts of bounded size.

        Of an atom that needs `only_earlier` rows, the rows of the current round may be left out.
        """
        index, keys, provides = self._probe(atom, solutions, live)
        carried = {name: column for name, column in solutions.ids.items() if name in live}
        if isinstance(index, ChainIndex):
            for lefts, rights in index.pairs(keys, index.limit(only_earlier)):
                pause()
                self.work += len(lefts)
                ids = {name: column[lefts] for name, column in carried.items()}
                ids |= {name: index.layout.ids(index.codes[rights], at) for name, at in provides.items()}
                yield PartialSolutions(len(lefts), ids)
            return
        for run, low, high in index.find(keys):
            for part, total in bounded_parts(low, high):
                pause()
                self.work += total
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
        unknown = np.zeros(solutions.size, np.int64)
        columns = [
            unknown if term in unbound else self._ids_of(term, solutions, head.relation, column)
            for column, term in enumerate(head.terms)
        ]
        return self.layout(head.relation).encode(columns, solutions.size)

    def _passing(
        self, literal: RecursionComparison | RecursionNegation, solutions: PartialSolutions
    ) -> PartialSolutions:
        """Return the solutions that pass a comparison or a negation."""
        if isinstance(literal, RecursionComparison):
            return solutions.take(np.flatnonzero(self._holds(literal, solutions)))
        return solutions.take(np.flatnonzero(~self._matched(literal.atom, solutions)))

    def _matched(self, atom: RecursionAtom, solutions: PartialSolutions) -> Flags:
        """Return, for each solution, whether a row matches the atom."""
        found = np.zeros(solutions.size, np.bool_)
        numbered = PartialSolutions(solutions.size, solutions.ids | {ROW: np.arange(solutions.size)})
        for joined in self._join(atom, numbered, frozenset({ROW})):
            found[joined.ids[ROW]] = True
        return found

    def _holds(self, literal: RecursionComparison, solutions: PartialSolutions) -> Flags:
        left, right = literal.left, literal.right
        if isinstance(left, str) and isinstance(right, str) and literal.op in ("=", "!="):
            return np.asarray((solutions.ids[left] == solutions.ids[right]) == (literal.op == "="))
        values = self._value_of(left, solutions), self._value_of(right, solutions)
        return np.broadcast_to(COMPARISONS[literal.op](*values), solutions.size)

    def _value_of(self, term: Term, solutions: PartialSolutions) -> Ints:
        if isinstance(term, int):
            return np.array([term], np.int64)
        return self.ids[self.domain_of[term]].values[solutions.ids[term]]

    def _ids_of(self, term: Term | None, solutions: PartialSolutions, relation: int, column: int) -> Ints:
        """Return the ids of a term that stands in a column."""
        if isinstance(term, str):
            return solutions.ids[term]
        assert term is not None
        return np.full(solutions.size, self.id_of(term, relation, column), np.int64)


COMPARISONS: dict[str, Callable[[Ints, Ints], Flags]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
