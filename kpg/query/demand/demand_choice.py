"""Decide which relations demand restricts when only the outputs are given, and by which columns.

    choice = DemandChoice(program, counts, excluded)
    choice.columns["skip"]      the columns by which all readers of `skip` restrict it

The decision goes from the outputs inwards. A recursion is restricted if every rule that reads it has a source of demand
(kpg/query/demand/demand_sources.py) for the same columns, and if the form of its rules promises a gain
(kpg/query/demand/demand_gain.py). Relations between the outputs and a restricted recursion pass demand on. All other
relations are computed in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, product

from kpg.query.demand.demand_gain import Columns, DemandGain, RelationRead
from kpg.query.demand.demand_sources import DemandSource, passing_from, plain_relations, sources_of
from kpg.query.demand.right_linear import is_right_linear
from kpg.query.demand.sideways_passing import SidewaysPassing
from kpg.query.ir.literals import Atom, atoms
from kpg.query.ir.program import Program, Rule, Stratum
from kpg.query.ir.rewrites.stratify import dependencies
from kpg.query.ir.terms import ConstantTerm, VariableTerm, WildcardTerm

MAX_COMBINATIONS = 64  # of columns, for recursions of several relations that are read from outside
Reads = dict[str, list[RelationRead]]


@dataclass(slots=True)
class DemandChoice:
    """The relations that demand restricts, and their bound columns."""

    program: Program
    gain: DemandGain
    excluded: frozenset[str] = frozenset()
    columns: dict[str, tuple[int, ...]] = field(default_factory=dict)
    readers: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of each restricted recursion
    plain: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.plain = plain_relations(self.program)
        for stratum in self.program.strata[::-1]:
            if self._is_candidate(stratum):
                self._choose(stratum)
        self._drop_useless()

    def columns_of(self, name: str, available: Iterable[int]) -> tuple[int, ...]:
        """Return the bound columns for a read of a relation with these columns available; none if one is missing."""
        columns = self.columns.get(name, ())
        return columns if set(columns) <= set(available) else ()

    def passing(self, rule: Rule, atom: Atom, start: Atom | None) -> SidewaysPassing:
        """Return the bindings for an atom of a rule, from the source with the fewest values."""
        wanted = frozenset(self.columns.get(atom.relation, ()))
        sources = [source for source in sources_of(rule, atom, self.plain, start) if wanted <= source.columns]
        if not wanted or not sources:
            return SidewaysPassing(start)
        return passing_from(min(sources, key=lambda source: self.gain.rank(source, atom, wanted)))

    # Candidates

    def _is_candidate(self, stratum: Stratum) -> bool:
        """Return whether demand may restrict a stratum: it depends on a recursion, is computed, and not an output."""
        names, relations = set(stratum.relations), self.program.by_name()
        if not names.isdisjoint({*self.plain, *self.excluded, *self.program.outputs()}):
            return False
        if stratum.recursive and any(relations[name].generated or relations[name].bag for name in names):
            return False
        derived = {rule.head.relation for rule in self.program.rules}
        return names <= derived | {reduction.relation for reduction in self.program.reductions}

    def _choose(self, stratum: Stratum) -> None:
        """Choose columns for the relations of a stratum, if all readers bind them and it promises a gain."""
        reads = {name: reads for name in stratum.relations if (reads := list(self._reads(name, stratum)))}
        candidates = [[(name, columns) for columns in candidate_columns(reads[name])] for name in reads]
        choices = [
            choice
            for combination in islice(product(*candidates), MAX_COMBINATIONS)
            if (choice := self._evaluate(stratum, reads, dict(combination))) is not None
        ]
        if not choices:
            return
        _, chosen = min(choices, key=lambda choice: choice[0])
        for name, columns in chosen.items():
            self.columns[name] = tuple(sorted(columns))
            self.gain.note_demand(name, reads.get(name, []), columns)
            if stratum.recursive and name in reads:
                self.readers[name] = tuple(dict.fromkeys(read.reader for read in reads[name]))

    def _reads(self, name: str, stratum: Stratum) -> Iterator[RelationRead]:
        """Yield the reads of a relation from outside its stratum, with their sources."""
        keys = min(
            (reduction.keys for reduction in self.program.reductions if reduction.relation == name),
            default=self.program.by_name()[name].arity,
        )
        for reduction in self.program.reductions:
            if reduction.source == name:
                columns = frozenset(self.columns.get(reduction.relation, ()))
                source = DemandSource((), columns, demand_of=reduction.relation)
                yield RelationRead(reduction.relation, (source,) if columns else ())
        for rule in self.program.rules:
            if rule.head.relation not in stratum.relations:
                for atom, _ in atoms(rule.body):
                    if atom.relation == name:
                        sources = sources_of(rule, atom, self.plain, self._start(rule))
                        yield RelationRead(rule.head.relation, tuple(first_columns(sources, keys)), atom)

    def _start(self, rule: Rule) -> Atom | None:
        """Return the atom of the magic set of a rule's head; None if the head is not restricted."""
        columns = self.columns.get(rule.head.relation)
        return None if columns is None else start_atom(rule, columns)

    # Evaluation

    def _evaluate(
        self, stratum: Stratum, reads: Reads, chosen: dict[str, Columns]
    ) -> tuple[tuple[int, int], dict[str, Columns]] | None:
        """Return the rank and the columns of a choice, or None if it cannot be applied or promises no gain."""
        if not all(read.can_bind(chosen[name]) for name, all_reads in reads.items() for read in all_reads):
            return None
        if not stratum.recursive:
            return (0, -sum(map(len, chosen.values()))), chosen
        carried = carried_columns(self.program, stratum, chosen)
        if all(carried.values()):
            rank = (0, -sum(map(len, carried.values())))
            return (rank, carried) if self.gain.of_filter(stratum, reads, carried) else None
        if len(stratum.relations) > 1:
            return None
        ((name, columns),) = chosen.items()
        right_linear = is_right_linear(self.program.rules_of(name), tuple(sorted(columns)))
        if not right_linear and not self._passes_on(name, columns):
            return None
        rank = (1 if right_linear else 2, -len(columns))
        return (rank, chosen) if self.gain.of_closure(name, reads[name], columns, right_linear) else None

    def _passes_on(self, name: str, columns: Columns) -> bool:
        """Return whether the rules of a recursion bind the same columns of every recursive atom."""
        for rule in self.program.rules_of(name):
            start = start_atom(rule, tuple(sorted(columns)))
            for atom, _ in atoms(rule.body):
                if atom.relation == name:
                    sources = sources_of(rule, atom, self.plain, start)
                    if not any(source.demand_of and columns <= source.columns for source in sources):
                        return False
        return True

    def _drop_useless(self) -> None:
        """Keep only relations that restrict a recursion, directly or through others."""
        recursive = {name for stratum in self.program.strata if stratum.recursive for name in stratum.relations}
        useful = recursive & self.columns.keys()
        queue, edges = list(useful), dependencies(self.program)
        for name in queue:
            more = {edge.reader for edge in edges if edge.read == name and edge.reader in self.columns} - useful
            useful |= more
            queue += more
        self.columns = {name: columns for name, columns in self.columns.items() if name in useful}


def start_atom(rule: Rule, columns: tuple[int, ...]) -> Atom:
    """Return the atom of the magic set of a rule's head. Computed arguments bind nothing."""
    terms = (rule.head.arguments[column] for column in columns)
    known = tuple(term if isinstance(term, (VariableTerm, ConstantTerm)) else WildcardTerm(term.at) for term in terms)
    return Atom(f"{rule.head.relation}@.demand", known, rule.at)


def first_columns(sources: Iterable[DemandSource], keys: int) -> Iterator[DemandSource]:
    """Yield sources for the first columns only: the value of an aggregate is not demanded, only its group."""
    for source in sources:
        columns = frozenset(column for column in source.columns if column < keys)
        if columns:
            yield DemandSource(source.literals, columns, source.demand_of)


def candidate_columns(reads: list[RelationRead]) -> list[Columns]:
    """Return the column sets that one source binds, their intersections, and single columns."""
    sets = {source.columns for read in reads for source in read.sources}
    sets |= {first & second for first in sets for second in sets}
    sets |= {frozenset({column}) for columns in sets for column in columns}
    return sorted((columns for columns in sets if columns), key=lambda columns: (-len(columns), sorted(columns)))


def carried_columns(program: Program, stratum: Stratum, chosen: dict[str, Columns]) -> dict[str, Columns]:
    """Return the bound columns that every rule of a recursion passes on to its recursive atoms unchanged."""
    arities = {name: relation.arity for name, relation in program.by_name().items()}
    columns = {name: chosen.get(name, frozenset(range(arities[name]))) for name in stratum.relations}
    rules = [rule for name in stratum.relations for rule in program.rules_of(name)]
    while True:
        before = dict(columns)
        for rule in rules:
            bound = {rule.head.arguments[column] for column in columns[rule.head.relation]}
            for atom, _ in atoms(rule.body):
                if atom.relation in columns:
                    kept = (column for column in columns[atom.relation] if atom.arguments[column] in bound)
                    columns[atom.relation] = frozenset(kept)
        if columns == before:
            return columns
