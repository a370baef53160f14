"""Give negated patterns of records with wildcards a relation of their own.

    q(x) :- n(x), !p([x, _]).
        ->  q(x) :- n(x), !@pattern.1(x).        @pattern.1(x) :- p([x, _]).

A negated atom can only be looked up by values. A pattern with a wildcard is no value, but the atom that it stands in
holds for a set of its other variables, and that set can be negated. Bodies of aggregates are rewritten alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kpg.query.ir.literals import Atom, Conjunction, Disjunction, Formula, Negation, map_terms, variables
from kpg.query.ir.program import Program, Relation, RelationColumn, Rule
from kpg.query.ir.terms import AggregateTerm, CallTerm, Kind, Term, VariableTerm, WildcardTerm, subterms


def lift_negated_patterns(program: Program) -> Program:
    """Return the program without wildcards inside the records of negated atoms."""
    lifting = PatternLifting()
    rules = tuple(replace(rule, body=lifting.formula(rule.body, dict(rule.kinds))) for rule in program.rules)
    if not lifting.relations:
        return program
    return replace(program, relations=(*program.relations, *lifting.relations), rules=(*rules, *lifting.rules))


@dataclass(slots=True)
class PatternLifting:
    """The relations and rules of the patterns lifted so far."""

    relations: list[Relation] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)

    def formula(self, formula: Formula, kinds: dict[str, Kind]) -> Formula:
        """Return a formula with lifted patterns, given the kinds of its variables."""
        match formula:
            case Negation(formula=Atom() as atom) if any(map(has_inner_wildcard, atom.arguments)):
                return replace(formula, formula=self.lifted(atom, kinds))
            case Conjunction() | Disjunction():
                return replace(formula, parts=tuple(self.formula(part, kinds) for part in formula.parts))

        def inside(term: Term) -> Term:
            return replace(term, body=self.formula(term.body, kinds)) if isinstance(term, AggregateTerm) else term

        return map_terms(formula, inside)

    def lifted(self, atom: Atom, kinds: dict[str, Kind]) -> Atom:
        """Add a relation of the atom's variables; return its atom."""
        names = list(dict.fromkeys(variable.name for variable in variables(atom)))
        name = f"@pattern.{len(self.relations) + 1}"
        columns = tuple(RelationColumn(f"c{number}", kinds[name], kinds[name]) for number, name in enumerate(names))
        head = Atom(name, tuple(VariableTerm(variable, atom.at) for variable in names), atom.at)
        self.relations.append(Relation(name, columns, atom.at, generated=True))
        own_kinds = tuple(sorted((variable, kinds[variable]) for variable in names))
        self.rules.append(Rule((head,), Conjunction((atom,), atom.at), atom.at, own_kinds))
        return head


def has_inner_wildcard(term: Term) -> bool:
    """Return whether a wildcard is part of a constructed value."""
    return isinstance(term, CallTerm) and any(isinstance(part, WildcardTerm) for part in subterms(term))
