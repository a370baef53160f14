"""Replace the atoms of inline relations by the bodies of their rules.

    .decl next(x: number, y: number) inline
    next(x, x + 1) :- x < 9.
    p(y) :- q(x), next(x, y).       ->   p(y) :- q(x), y = x + 1, x < 9.
    p(x) :- q(x), !small(x).        ->   p(x) :- q(x), !(x < 3; x = 7).      for  small(x) :- x < 3.   small(7).

An inline relation is never computed, so its rules need not bind their variables. It is refused, with the reason, where
Soufflé refuses it: as an input or output, on a cycle of inline relations, inside an aggregate, with a counter, and in a
negation if a rule has variables that are not in its head or the atom has a wildcard. The size of a rule can grow
exponentially with the depth of inlining; `expand_disjunction` limits it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

from kpg.errors import ProgramError
from kpg.query.ir.literals import (
    Atom,
    Comparison,
    Conjunction,
    Disjunction,
    Formula,
    Negation,
    Truth,
    aggregates,
    all_variables,
    atoms,
    map_terms,
    terms,
)
from kpg.query.ir.program import Program, Relation, Rule
from kpg.query.ir.terms import CallTerm, ConstantTerm, Term, VariableTerm, WildcardTerm, map_term, subterms
from kpg.query.source_text import Position, failure

COUNTERS = ("autoinc",)  # functors whose value depends on the derivation


def inline_relations(program: Program) -> Program:
    """Return the program without inline relations; rules must have one head."""
    inline = {relation.name: relation for relation in program.relations if relation.inline}
    if not inline:
        return program
    check_directives(program, inline)
    definitions: dict[str, list[Rule]] = {name: [] for name in inline}
    for rule in (*program.rules, *fact_rules(program, inline)):
        if rule.head.relation in inline:
            definitions[rule.head.relation].append(rule)
    expansion = Inlining(inline, definitions)
    for name in inline_order(inline, definitions):
        definitions[name] = [expansion.rule(rule) for rule in definitions[name]]
    return replace(
        program,
        relations=tuple(relation for relation in program.relations if not relation.inline),
        rules=tuple(expansion.rule(rule) for rule in program.rules if rule.head.relation not in inline),
        facts=tuple(fact for fact in program.facts if fact.relation not in inline),
    )


def check_directives(program: Program, inline: dict[str, Relation]) -> None:
    """Raise ProgramError if an inline relation is an input or output, or is not just what its rules derive."""
    for relation in inline.values():
        if relation.kind != "plain":
            words = {"equivalence": "an equivalence relation", "subsumed": "one with subsumption"}
            words |= {"aggregated": "one with aggregates in its heads", "choice": "one with a choice domain"}
            what = f"relation {relation.name!r} is inline and {words[relation.kind]}"
            raise failure(ProgramError, what, relation.at, hint="It must be computed: remove inline.")
    for directive in program.directives:
        if directive.relation in inline:
            what = f"relation {directive.relation!r} is inline and has .{directive.kind}"
            hint = "It is never computed: remove inline, or the directive."
            raise failure(ProgramError, what, inline[directive.relation].at, hint=hint)


def fact_rules(program: Program, inline: dict[str, Relation]) -> Iterator[Rule]:
    """Yield the facts of inline relations as rules."""
    for fact in program.facts:
        if fact.relation in inline:
            columns = inline[fact.relation].columns
            values = zip(fact.values, columns, strict=True)
            arguments = tuple(
                ConstantTerm(value, None if type(value) is int else column.kind, fact.at) for value, column in values
            )
            yield Rule((Atom(fact.relation, arguments, fact.at),), Truth(True, fact.at), fact.at)


def inline_order(inline: dict[str, Relation], definitions: dict[str, list[Rule]]) -> list[str]:
    """Return the inline relations, each after those that its rules read; raise ProgramError for a cycle."""
    done: list[str] = []
    open_names: list[str] = []

    def visit(name: str) -> None:
        if name in open_names:
            cycle = " -> ".join([*open_names[open_names.index(name) :], name])
            what = f"inline relations depend on each other: {cycle}"
            raise failure(ProgramError, what, inline[name].at, hint="Remove inline from one of them.")
        if name in done:
            return
        open_names.append(name)
        for rule in definitions[name]:
            for atom in all_atoms(rule.body):
                if atom.relation in inline:
                    visit(atom.relation)
        open_names.pop()
        done.append(name)

    for name in inline:
        visit(name)
    return done


def all_atoms(formula: Formula) -> Iterator[Atom]:
    """Yield the atoms of a formula, those inside aggregates included."""
    yield from (atom for atom, _ in atoms(formula))
    for aggregate in aggregates(formula):
        yield from all_atoms(aggregate.body)


class Inlining:
    """Expands the inline relations in rules. `definitions` are their rules, without inline relations themselves."""

    def __init__(self, inline: dict[str, Relation], definitions: dict[str, list[Rule]]) -> None:
        self.inline = inline
        self.definitions = definitions
        self.numbers = count(1)

    def rule(self, rule: Rule) -> Rule:
        """Return a rule without inline relations in its body."""
        for part in (*rule.heads, rule.body):
            for aggregate in aggregates(part):
                self.check_aggregate(aggregate.body)
        return replace(rule, body=self.formula(rule.body, True))

    def check_aggregate(self, body: Formula) -> None:
        """Raise ProgramError if the body of an aggregate reads an inline relation."""
        for atom in all_atoms(body):
            if atom.relation in self.inline:
                what = f"relation {atom.relation!r} is inline and is read inside an aggregate"
                hint = "Remove inline: the aggregate needs the rows of the relation, each once."
                raise failure(ProgramError, what, atom.at, hint=hint)

    def formula(self, formula: Formula, positive: bool) -> Formula:
        """Return a formula without inline relations; `positive` tells whether it stands outside of negations."""
        match formula:
            case Atom() if formula.relation in self.inline:
                return self.expand(formula, positive)
            case Negation():
                return replace(formula, formula=self.formula(formula.formula, not positive))
            case Conjunction() | Disjunction():
                return replace(formula, parts=tuple(self.formula(part, positive) for part in formula.parts))
        return formula

    def expand(self, atom: Atom, positive: bool) -> Formula:
        """Return what an atom of an inline relation stands for: one alternative for each rule."""
        rules = self.definitions[atom.relation]
        refuse_counters((atom, *(part for rule in rules for part in (rule.head, rule.body))))
        if not positive:
            check_negation(atom, rules)
        bodies = tuple(self.body(atom, rule) for rule in rules)
        if not bodies:
            return Truth(False, atom.at)
        return bodies[0] if len(bodies) == 1 else Disjunction(bodies, atom.at)

    def named(self, term: Term) -> Term:
        """Return a variable for a wildcard, and other terms unchanged."""
        return VariableTerm(f"_#i{next(self.numbers)}", term.at) if isinstance(term, WildcardTerm) else term

    def body(self, atom: Atom, rule: Rule) -> Formula:
        """Return the body of a rule, with the arguments of an atom for the variables of the head."""
        mark = f"#i{next(self.numbers)}"
        values: dict[str, Term] = {}
        equations: list[tuple[Term, Term]] = []
        for parameter, written in zip(rule.head.arguments, atom.arguments, strict=True):
            if isinstance(written, WildcardTerm):
                continue
            argument = map_term(written, self.named)  # a record may hold wildcards, and occur several times
            if isinstance(parameter, VariableTerm) and parameter.name not in values:
                values[parameter.name] = argument
            else:
                equations.append((parameter, argument))

        def substitute(term: Term) -> Term:
            if not isinstance(term, VariableTerm):
                return term
            return values.get(term.name) or replace(term, name=f"{term.name}{mark}")

        body = map_terms(rule.body, substitute, inside=True)
        if not equations:
            return body
        compared = [
            Comparison("=", argument, substitute_in(parameter, substitute), atom.at)
            for parameter, argument in equations
        ]
        return Conjunction((*compared, body), atom.at)


def substitute_in(term: Term, substitute: Callable[[Term], Term]) -> Term:
    """Return a term of a head with substituted variables, inside aggregates as well."""
    comparison = map_terms(Comparison("=", term, term), substitute, inside=True)
    assert isinstance(comparison, Comparison)
    return comparison.left


def check_negation(atom: Atom, rules: list[Rule]) -> None:
    """Raise ProgramError if the negation of an inline atom cannot be expressed by the negation of its rules."""
    for term in atom.arguments:
        for part in subterms(term):
            if isinstance(part, WildcardTerm):
                what = f"relation {atom.relation!r} is inline and is negated with a wildcard"
                raise failure(ProgramError, what, part.at, hint="Remove inline, or name the value.")
    for rule in rules:
        head = {variable.name for variable in all_variables(rule.head)}
        for variable in all_variables(rule.body):
            if variable.name not in head:
                what = f"relation {atom.relation!r} is inline and is negated, but a rule of it has variables of its own"
                detail = f"The variable {variable.written} at {variable.at} is not in the head."
                raise failure(ProgramError, what, atom.at, detail=detail, hint="Remove inline.")


def refuse_counters(formulas: tuple[Formula, ...]) -> None:
    """Raise ProgramError if a formula has a counter: inlining would count each expansion."""
    for formula in formulas:
        for term in terms(formula):
            for inner in subterms(term):
                if isinstance(inner, CallTerm) and inner.functor in COUNTERS:
                    raise counter_refused(inner.at)


def counter_refused(at: Position) -> ProgramError:
    """Return the error for a counter in an inline relation."""
    return failure(ProgramError, "an inline relation cannot use a counter", at, hint="Remove inline.")
