"""Replace `autoinc()`: each solution of a rule's body gets a number of its own.

    id(x, autoinc()) :- a(x, y).
becomes
    @1.solutions(x, y) :- a(x, y).
    @1.number(x, y, n) = the rows of @1.solutions, numbered
    id(x, n) :- @1.number(x, y, n).

The numbers depend on history (kpg/operators/number_rows.py). Several uses share the numbers: of K uses, use k has the
numbers k, k + K, k + 2 K, … A recursive rule raises NotStratified in `stratify`: each number would make a new row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from kpg.query.ir.body_variables import bound_by, literals, variable_names
from kpg.query.ir.literals import Atom, Conjunction, Formula, Literal, map_atom_terms, map_terms, terms, variables
from kpg.query.ir.program import AggregateReduction, Program, Relation, RelationColumn, Rule, part_of
from kpg.query.ir.terms import CallTerm, ConstantTerm, Kind, Term, VariableTerm, WildcardTerm, subterms

COUNTER = "autoinc"


def number_solutions(program: Program) -> Program:
    """Return the program without counters."""
    numbered = [rule for rule in program.rules if any(map(has_counter, (rule.head, rule.body)))]
    if not numbered:
        return program
    numbering = Numbering(program.by_name())
    rules = [new for rule in program.rules for new in (numbering.expand(rule) if rule in numbered else [rule])]
    step = len(numbering.reductions)
    reductions = [replace(reduction, limit=step) for reduction in numbering.reductions]
    return replace(
        program,
        relations=(*program.relations, *numbering.relations),
        rules=tuple(rules),
        reductions=(*program.reductions, *reductions),
    )


def has_counter(formula: Formula) -> bool:
    """Return whether a formula calls the counter."""
    return any(is_counter(part) for term in terms(formula) for part in subterms(term))


def is_counter(term: Term) -> bool:
    """Return whether a term is a call of the counter."""
    return isinstance(term, CallTerm) and term.functor == COUNTER


def zero(term: Term) -> Term:
    """Return a constant in place of a counter."""
    return ConstantTerm(0, term.kind, term.at) if isinstance(term, CallTerm) and is_counter(term) else term


@dataclass(slots=True)
class Numbering:
    """The relations and reductions for the counters of a program so far."""

    declared: dict[str, Relation]
    relations: list[Relation] = field(default_factory=list)
    reductions: list[AggregateReduction] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def expand(self, rule: Rule) -> list[Rule]:
        """Return a rule that reads numbers, and the rule for the solutions that are numbered."""
        if rule.role == "errors":  # it derives nothing, and must not use up numbers
            return [replace(rule, heads=(map_atom_terms(rule.head, zero),), body=map_terms(rule.body, zero))]
        kinds = dict(rule.kinds)
        plain = [literal for literal in literals(rule) if not has_counter(literal)]
        bound = bound_by(plain)
        read = [literal for literal in plain if variable_names(literal) <= bound]
        first = [self.with_names(literal, number, kinds) for number, literal in enumerate(read)]
        keys = list(dict.fromkeys(variable for literal in first for variable in variables(literal)))
        name = f"{rule.head.relation} {next(self.numbers)}"
        solutions = Atom(part_of(name, "solutions"), tuple(keys), rule.at)
        columns = tuple(RelationColumn(key.name, "", kinds[key.name], key.at) for key in keys)
        self.relations.append(Relation(solutions.relation, columns, rule.at, generated=True))
        groups: list[Literal] = []

        def number(term: Term) -> Term:
            if not is_counter(term):
                return term
            assert isinstance(term, CallTerm)
            result = VariableTerm(f"number#{len(groups)}", term.at)
            kinds[result.name] = term.kind or "number"
            groups.append(self.group(solutions, columns, result, kinds[result.name], f"number {len(groups)}"))
            return result

        head = map_atom_terms(rule.head, number)
        rest = [map_terms(literal, number) for literal in literals(rule) if literal not in read]
        known = tuple(sorted(kinds.items()))
        numbered = replace(rule, heads=(head,), body=Conjunction((*groups, *rest), rule.body.at), kinds=known)
        return [Rule((solutions,), Conjunction(tuple(first), rule.body.at), rule.at, known), numbered]

    def with_names(self, literal: Literal, number: int, kinds: dict[str, Kind]) -> Literal:
        """Return a literal with variables for the wildcards of a positive atom: each of its rows is a solution."""
        if not isinstance(literal, Atom):
            return literal
        arguments: list[Term] = []
        for column, term in enumerate(literal.arguments):
            if isinstance(term, WildcardTerm):
                term = VariableTerm(f"_#{number}.{column}", term.at)
                kinds[term.name] = self.declared[literal.relation].columns[column].kind
            arguments.append(term)
        return replace(literal, arguments=tuple(arguments))

    def group(
        self, solutions: Atom, columns: tuple[RelationColumn, ...], result: VariableTerm, kind: Kind, part: str
    ) -> Atom:
        """Return an atom for the number of each solution."""
        relation = solutions.relation.replace(".solutions", f".{part}")
        value = RelationColumn("= number", "", kind)
        self.relations.append(Relation(relation, (*columns, value), result.at, generated=True, kind="choice"))
        start = len(self.reductions)
        self.reductions.append(
            AggregateReduction(relation, solutions.relation, len(columns), "number", start, result.at)
        )
        return Atom(relation, (*solutions.arguments, result), result.at)
