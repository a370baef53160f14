"""Decide whether demand pays off for a recursion, by its bindings, and by row counts where data are there.

    filter         each recursive rule passes the bound columns on unchanged: the recursion starts from fewer rows
    right-linear   the values that demand reaches replace the recursion (kpg/query/demand/right_linear.py)
    general        the demanded values form a recursion of their own

A filter costs one lookup for each row that the recursion starts from. Without counts it is applied unless its source
contains all those rows. The other two forms cost more if demand reaches everything, so they need constants, or counts
that show a small source. Without constants, the general form is never applied: its demand may reach everything from
a few values, and row counts do not tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kpg.query.demand.demand_sources import DemandSource
from kpg.query.demand.row_counts import RowCounts
from kpg.query.ir.literals import Atom, atoms
from kpg.query.ir.program import Program, Rule, Stratum
from kpg.query.ir.terms import ConstantTerm, Term, VariableTerm

FILTER_SHARE = 2  # a filter is applied if it keeps at most one value of this many
CLOSURE_SHARE = 10  # other forms are applied if demand starts from at most one value of this many
UNKNOWN = 1 << 62  # ranks a source without an estimate last

Columns = frozenset[int]


@dataclass(frozen=True, slots=True)
class RelationRead:
    """A rule or an aggregate that reads a relation, and the sources of demand that it has."""

    reader: str
    sources: tuple[DemandSource, ...]
    atom: Atom | None = None  # None: an aggregate

    def can_bind(self, columns: Columns) -> bool:
        """Return whether a source binds these columns."""
        return bool(self.sources_for(columns))

    def sources_for(self, columns: Columns) -> list[DemandSource]:
        """Return the sources that bind these columns."""
        return [source for source in self.sources if columns <= source.columns]


@dataclass(slots=True)
class DemandGain:
    """The estimates of one program."""

    program: Program
    counts: RowCounts
    demanded: dict[str, int | None] = field(default_factory=dict)  # the demanded values of each restricted relation
    constant: set[str] = field(default_factory=set)  # relations restricted by constants only

    def note_demand(self, name: str, reads: list[RelationRead], columns: Columns) -> None:
        """Remember the demand of a restricted relation, for the relations that it reads."""
        self.demanded[name] = self._demanded(reads, columns)
        if reads and all(self._is_constant(read, columns) for read in reads):
            self.constant.add(name)

    def of_filter(self, stratum: Stratum, reads: dict[str, list[RelationRead]], columns: dict[str, Columns]) -> bool:
        """Return whether it pays to restrict the rows that a recursion starts from."""
        enough = self._is_small(stratum, reads, columns, FILTER_SHARE)
        if enough is not None:
            return enough
        return all(self._selects(read, stratum, name, columns[name]) for name in reads for read in reads[name])

    def of_closure(self, name: str, reads: list[RelationRead], columns: Columns, right_linear: bool) -> bool:
        """Return whether it pays to compute the values that demand reaches."""
        if all(self._is_constant(read, columns) for read in reads):
            return True
        if not right_linear or not self._starts_where_it_steps(name):
            return False
        return bool(self._is_small(Stratum((name,), True), {name: reads}, {name: columns}, CLOSURE_SHARE))

    def rank(self, source: DemandSource, atom: Atom, columns: Columns) -> tuple[int, bool, int]:
        """Rank the sources of an atom: few values first, then the demand of the head, then few literals."""
        values = self._values(source, atom, columns)
        return UNKNOWN if values is None else values, not source.demand_of, len(source.literals)

    # Counts

    def _is_small(
        self, stratum: Stratum, reads: dict[str, list[RelationRead]], columns: dict[str, Columns], share: int
    ) -> bool | None:
        """Return whether at most one value of `share` is demanded; None if counts are missing.

        Row counts come first. The distinct values of a column, which take time to count, can only refute them.
        """
        for distinct in (False, True):
            self.counts.distinct = distinct
            demanded = sum_known(self._demanded(all_reads, columns[name]) for name, all_reads in reads.items())
            base = self._base_values(stratum, columns)
            if demanded is None or base is None:
                return None
            if demanded * share > base:
                return False
        return True

    def _demanded(self, reads: list[RelationRead], columns: Columns) -> int | None:
        """Return the estimated number of demanded values."""
        numbers = []
        for read in reads:
            values = [self._values(source, read.atom, columns) for source in read.sources_for(columns)]
            numbers.append(min((number for number in values if number is not None), default=None))
        return sum_known(numbers)

    def _values(self, source: DemandSource, atom: Atom | None, columns: Columns) -> int | None:
        """Return the estimated number of values that a source has for some columns."""
        if source.demand_of:
            return self.demanded.get(source.demand_of)
        if source.is_constant:
            return 1
        terms = [] if atom is None else [atom.arguments[column] for column in columns]
        return self._values_of(terms, source.atoms)

    def _values_of(self, terms: list[Term], body: list[Atom]) -> int | None:
        """Return the estimated number of values that some terms take in a conjunction of atoms."""
        if len(terms) == 1 and isinstance(terms[0], VariableTerm):
            return self.counts.values_in(body, terms[0].name)
        rows = [self.counts.rows_of_atom(atom) for atom in body]
        return min((number for number in rows if number is not None), default=None)

    def _base_values(self, stratum: Stratum, columns: dict[str, Columns]) -> int | None:
        """Return the estimated number of values that a recursion starts from."""
        numbers: list[int | None] = [self.counts.inputs.rows.get(name, 0) for name in columns]
        for name in columns:
            for rule in self._first_rules(name, stratum):
                numbers.append(self._values_of(self._head_terms(rule, columns[name]), positive_atoms(rule)))
        return sum_known(numbers)

    def _first_rules(self, name: str, stratum: Stratum) -> list[Rule]:
        """Return the rules of a relation that do not read its recursion."""
        rules = self.program.rules_of(name)
        return [rule for rule in rules if not any(atom.relation in stratum.relations for atom, _ in atoms(rule.body))]

    def _head_terms(self, rule: Rule, columns: Columns) -> list[Term]:
        return [rule.head.arguments[column] for column in sorted(columns)]

    # Bindings

    def _is_constant(self, read: RelationRead, columns: Columns) -> bool:
        """Return whether constants or the parameters of a query bind the columns."""
        return any(source.is_constant or source.demand_of in self.constant for source in read.sources_for(columns))

    def _selects(self, read: RelationRead, stratum: Stratum, name: str, columns: Columns) -> bool:
        """Return whether a source is not known to contain all values that the recursion starts from."""
        started = {
            position
            for rule in self._first_rules(name, stratum)
            for position in places(positive_atoms(rule), self._head_terms(rule, columns))
        }
        for source in read.sources_for(columns):
            if source.demand_of or source.is_constant or read.atom is None:
                return True
            terms = [read.atom.arguments[column] for column in sorted(columns)]
            is_subset = len(source.literals) > 1 or any(is_constant(term) for term in source.atoms[0].arguments)
            if len(source.atoms) == 1 and (is_subset or started.isdisjoint(places(source.atoms, terms))):
                return True
        return False

    def _starts_where_it_steps(self, name: str) -> bool:
        """Return whether each recursive rule follows a relation that a rule without recursion starts from.

        Then demand reaches no more values than the recursion has rows for the same arguments.
        """
        bodies = [{atom.relation for atom in positive_atoms(rule)} for rule in self.program.rules_of(name)]
        started = {read for body in bodies if name not in body for read in body}
        return all(not started.isdisjoint(body) for body in bodies if name in body)


def positive_atoms(rule: Rule) -> list[Atom]:
    """Return the atoms of a rule's body that are not negated."""
    return [atom for atom, positive in atoms(rule.body) if positive]


def places(body: list[Atom], terms: list[Term]) -> set[tuple[str, int]]:
    """Return the relations and columns in which atoms hold some terms."""
    return {(atom.relation, column) for atom in body for column, term in enumerate(atom.arguments) if term in terms}


def is_constant(term: Term) -> bool:
    """Return whether a term is a constant."""
    return isinstance(term, ConstantTerm)


def sum_known(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of some numbers, or None if one of them is unknown."""
    known = list(numbers)
    return None if any(number is None for number in known) else sum(number for number in known if number is not None)
