"""Sources of demand: the literals of a rule's body that say which rows of a relation the rule reads.

    nextVisible(a, b) :- hasValue(a), skip(a, b), hasValue(b).

Two sources restrict `skip`: hasValue(a) by its first column, hasValue(b) by its second. They are not combined, because
no variable connects them without `skip`: their product would demand every pair.

Only *plain* relations are sources: those that depend on no recursion. So demand never depends on a recursion, and no
demand waits for another one. A source computes nothing: an expression could fail on rows that the rule itself rejects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kpg.query.demand.sideways_passing import SidewaysPassing, is_bound, sideways_order
from kpg.query.ir.body_variables import literals, variable_names
from kpg.query.ir.literals import Atom, Comparison, Literal, variables
from kpg.query.ir.program import PARAMETER, Program, Rule
from kpg.query.ir.rewrites.stratify import dependencies
from kpg.query.ir.terms import ConstantTerm, VariableTerm


@dataclass(frozen=True, slots=True)
class DemandSource:
    """Literals that bind columns of an atom, in order; none if constants or the demand of an aggregate bind them."""

    literals: tuple[Literal, ...]
    columns: frozenset[int]
    demand_of: str = ""  # the restricted relation whose demand comes first, if any

    @property
    def atoms(self) -> list[Atom]:
        """The atoms among the literals."""
        return [literal for literal in self.literals if isinstance(literal, Atom)]

    @property
    def is_constant(self) -> bool:
        """Whether constants or the parameters of a query bind the columns."""
        return not self.demand_of and all(atom.relation.startswith(PARAMETER) for atom in self.atoms)


def plain_relations(program: Program) -> frozenset[str]:
    """Return the relations that depend on no recursion."""
    tainted = {name for stratum in program.strata if stratum.recursive for name in stratum.relations}
    readers: dict[str, set[str]] = {}
    for edge in dependencies(program):
        readers.setdefault(edge.read, set()).add(edge.reader)
    queue = list(tainted)
    for name in queue:
        queue += readers.get(name, set()) - tainted
        tainted |= readers.get(name, set())
    return frozenset(relation.name for relation in program.relations if relation.name not in tainted)


def sources_of(rule: Rule, atom: Atom, plain: frozenset[str], start: Atom | None = None) -> Iterator[DemandSource]:
    """Yield the sources of demand for an atom of a rule; `start` is the atom of the magic set of the head, if any."""
    others = [literal for literal in literals(rule) if can_bind(literal, plain)]
    if start is not None:
        yield source_from(start, others, atom, rule.head.relation)
    for first in others:
        if isinstance(first, Atom):
            yield source_from(first, [literal for literal in others if literal is not first], atom)
    constant = frozenset(column for column, term in enumerate(atom.arguments) if isinstance(term, ConstantTerm))
    if constant:
        yield DemandSource((), constant)


def can_bind(literal: Literal, plain: frozenset[str]) -> bool:
    """Return whether a literal may be part of a source."""
    if isinstance(literal, Atom):
        return literal.relation in plain
    terms = (literal.left, literal.right) if isinstance(literal, Comparison) else ()
    return bool(terms) and all(isinstance(term, (VariableTerm, ConstantTerm)) for term in terms)


def source_from(first: Atom, others: list[Literal], atom: Atom, demand_of: str = "") -> DemandSource:
    """Return the source that starts from an atom and follows shared variables, without literals that bind nothing."""
    passing = SidewaysPassing(first)
    for literal in sideways_order(others, first):
        passing.visit(literal, literal)
    columns = frozenset(column for column, term in enumerate(atom.arguments) if is_bound(term, passing.bound))
    needed = {variable.name for variable in variables(atom)} & passing.bound
    return DemandSource(tuple(without_unneeded(passing.prefix, needed)), columns, demand_of)


def without_unneeded(prefix: list[Literal], needed: set[str]) -> list[Literal]:
    """Return the literals that bind needed variables, and comparisons of variables that these bind."""
    kept: list[Literal] = []
    for number in range(len(prefix) - 1, 0, -1):
        before = {name for literal in prefix[:number] for name in variable_names(literal)}
        names = variable_names(prefix[number])
        if (names - before) & needed:
            needed |= names & before
            kept.append(prefix[number])
    chosen = [prefix[0], *kept[::-1]]
    bound = {name for literal in chosen for name in variable_names(literal)}
    tests = [literal for literal in prefix[1:] if isinstance(literal, Comparison) and variable_names(literal) <= bound]
    return [*chosen, *(test for test in tests if test not in chosen)]


def passing_from(source: DemandSource) -> SidewaysPassing:
    """Return the bindings behind a source."""
    bound = {name for literal in source.literals for name in variable_names(literal)}
    return SidewaysPassing(None, bound, prefix=list(source.literals))
