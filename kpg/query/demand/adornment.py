"""The magic-set rewrite: rules that compute the demanded rows of relations, and rules for the demand itself.

    tc(x, z) :- e(x, y), tc(y, z).     with x bound:
        tc@x(x, z) :- tc@x.demand(x), e(x, y), tc@x(y, z).
        tc@x.demand(y) :- tc@x.demand(x), e(x, y).

Every row of tc@x is a row of tc, and for each demanded x it has all rows of tc with this x. So negations and aggregates
of demanded rows keep their meaning. Relations in `unchanged` are computed by their original rules, with everything
these read. Relations in `needed_in_full` are read without bound arguments: they are computed under their own name,
by rules that may still demand rows of other relations by constants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kpg.columns.pause_points import pause
from kpg.query.demand.adorned_relation import AdornedRelation
from kpg.query.demand.demand_choice import DemandChoice
from kpg.query.demand.right_linear import body_without, first_arguments, is_right_linear, recursive_atom
from kpg.query.demand.sideways_passing import (
    SidewaysPassing,
    computed_relations_last,
    is_bound,
    parameters_first,
    sideways_order,
)
from kpg.query.ir.body_variables import literals
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Literal, Negation, atoms
from kpg.query.ir.program import AggregateReduction, Program, Relation, Rule
from kpg.query.ir.terms import ConstantTerm, Kind, Term, VariableTerm, WildcardTerm

INPUT_SUFFIX = ".outside"  # marks, inside the rewrite, an atom that reads the input rows of the rule's own relation


@dataclass(frozen=True, slots=True)
class BodyStart:
    """The start of a demanded rule's body: the atom of the magic set, and equations for computed head arguments."""

    atom: Atom
    tests: tuple[Literal, ...]
    kinds: dict[str, Kind]


@dataclass(slots=True)
class MagicSetRewrite:
    """One attempt at the rewrite: the rules and relations so far, and the adorned relations still to do."""

    program: Program
    unchanged: frozenset[str]
    needed_in_full: frozenset[str]
    choice: DemandChoice | None = None  # restricts only the chosen relations, each by the chosen columns
    allowed: frozenset[str] | None = None  # restricts only these relations, by demand from any atom of a rule
    rules: list[Rule] = field(default_factory=list)
    reductions: list[AggregateReduction] = field(default_factory=list)
    relations: dict[str, Relation] = field(default_factory=dict)
    read_in_full: dict[str, str] = field(default_factory=dict)  # relations found to be read without arguments, and why
    adorned: dict[str, AdornedRelation] = field(default_factory=dict)
    _waiting: list[AdornedRelation] = field(default_factory=list)
    _relations: dict[str, Relation] = field(default_factory=dict)
    _component: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._relations = self.program.by_name()
        for number, stratum in enumerate(self.program.strata):
            self._component |= dict.fromkeys(stratum.relations, number)

    def require(self, relation: str, bound: tuple[int, ...] = ()) -> AdornedRelation:
        """Require the rows of a relation for the demanded values of its bound columns, or all rows if none is bound."""
        adorned = AdornedRelation(self._relations[relation], bound)
        if adorned.name not in self.adorned:
            self.adorned[adorned.name] = adorned
            self._waiting.append(adorned)
        return adorned

    def complete(self) -> None:
        """Add the rules of everything required."""
        while self._waiting:
            pause()
            adorned = self._waiting.pop()
            if adorned.bound:
                self._add_adorned(adorned)
            else:
                self._add_full(adorned.relation)

    def can_be_demanded(self, name: str) -> bool:
        """Return whether demand may restrict a relation: it is computed, and no reader needs all of it."""
        if name in self.unchanged or name in self.needed_in_full:
            return False
        if self.choice is not None and name not in self.choice.columns:
            return False
        if self.allowed is not None and name not in self.allowed:
            return False
        sources = [reduction.source for reduction in self._reductions_of(name)]
        return all(map(self.can_be_demanded, sources)) if sources else bool(self.program.rules_of(name))

    # Relations

    def _add_adorned(self, adorned: AdornedRelation) -> None:
        """Add the demanded rows of a relation."""
        name = adorned.relation.name
        self.relations[adorned.name] = adorned.demanded_rows()
        self.relations[adorned.demand] = adorned.argument_relation(adorned.demand)
        rules = [*self.program.rules_of(name), *self._input_rules(adorned)]
        if is_right_linear(rules, adorned.bound):
            self._add_right_linear(rules, adorned)
        else:
            for rule in rules:
                self._add_rule(rule, adorned, start_of(rule, adorned, adorned.demand))
        for reduction in self._reductions_of(name):
            self._add_reduction(reduction, adorned)

    def _add_full(self, relation: Relation) -> None:
        """Add a relation under its own name; if it is `unchanged`, with everything it reads."""
        name = relation.name
        rules, reductions = self.program.rules_of(name), self._reductions_of(name)
        is_original = name in self.unchanged or not (rules or reductions)
        self.relations[name] = relation if is_original else replace(relation, generated=False)
        self.reductions += reductions
        for reduction in reductions:
            self._require_in_full(reduction.source, f"{name} takes the {reduction.op} of all its rows")
        for rule in rules:
            if name in self.unchanged:
                self.rules.append(rule)
                for atom, _ in atoms(rule.body):
                    self.require(atom.relation)
            else:
                self._add_rule(rule, AdornedRelation(relation, ()), None)

    def _require_in_full(self, name: str, why: str) -> None:
        """Require all rows of a relation, and note why demand cannot restrict it."""
        if self.can_be_demanded(name):
            self.read_in_full.setdefault(name, why)
        self.require(name)

    def _reductions_of(self, name: str) -> list[AggregateReduction]:
        return [reduction for reduction in self.program.reductions if reduction.relation == name]

    def _input_rules(self, adorned: AdornedRelation) -> list[Rule]:
        """Return a rule that reads the input rows of a relation that has some beside those of its rules."""
        name, at = adorned.relation.name, adorned.relation.at
        has_facts = any(fact.relation == name for fact in self.program.facts)
        if not has_facts and not any(
            directive.kind == "input" and directive.relation == name for directive in self.program.directives
        ):
            return []
        self.relations[name] = adorned.relation
        terms = tuple(VariableTerm(f"own#{column}", at) for column in range(adorned.relation.arity))
        kinds = tuple((term.name, column.kind) for term, column in zip(terms, adorned.relation.columns, strict=True))
        body = Conjunction((Atom(f"{name}{INPUT_SUFFIX}", terms, at),), at)
        return [Rule((Atom(name, terms, at),), body, at, kinds)]

    def _add_reduction(self, reduction: AggregateReduction, adorned: AdornedRelation) -> None:
        """Add an aggregate of the demanded groups."""
        inner, at = self.require(reduction.source, adorned.bound), reduction.at
        keys = tuple(VariableTerm(column.name, at) for column in adorned.bound_columns)
        kinds = tuple((column.name, column.kind) for column in adorned.bound_columns)
        body = Conjunction((Atom(adorned.demand, keys, at),), at)
        self.rules.append(Rule((Atom(inner.demand, keys, at),), body, at, kinds))
        self.reductions.append(replace(reduction, relation=adorned.name, source=inner.name))

    # Rules

    def _add_rule(self, rule: Rule, adorned: AdornedRelation, start: BodyStart | None) -> None:
        """Add a rule for demanded rows, and the rules for the demand of its body."""
        head = replace(rule.head, relation=adorned.name)
        if start is None:
            self._add(rule, head, self._rewrite_full_body(rule))
            return
        rewritten = self._rewrite_body(rule, literals(rule), start)
        same = next((literal for literal in rewritten[1:] if restates_demand(literal, adorned, start.atom)), None)
        if isinstance(same, Atom):  # its rows are demanded ones already
            rewritten = [same, *sideways_order([literal for literal in rewritten[1:] if literal is not same], same)]
        self._add(rule, head, rewritten, start.kinds)

    def _add_right_linear(self, rules: list[Rule], adorned: AdornedRelation) -> None:
        """Add the rules of a right-linear relation, by the values that each argument reaches."""
        self.relations[adorned.reach] = adorned.reach_relation()
        at, first = adorned.relation.at, first_arguments(adorned)
        kinds = {term.name: column.kind for term, column in zip(first, adorned.bound_columns, strict=True)}
        begin = Conjunction((Atom(adorned.demand, first, at),), at)
        self.rules.append(Rule((Atom(adorned.reach, (*first, *first), at),), begin, at, tuple(kinds.items())))
        for rule in rules:
            start = start_of(rule, adorned, adorned.reach, first)
            atom = recursive_atom(rule)
            if atom is not None:
                further = tuple(atom.arguments[column] for column in adorned.bound)
                rewritten = self._rewrite_body(rule, body_without(rule, atom), start)
                self._add(rule, Atom(adorned.reach, (*first, *further), rule.at), rewritten, start.kinds | kinds)
            else:
                terms = list(rule.head.arguments)
                for column, term in zip(adorned.bound, first, strict=True):
                    terms[column] = term
                rewritten = self._rewrite_body(rule, literals(rule), start)
                head = Atom(adorned.name, tuple(terms), rule.head.at)
                self._add(rule, head, rewritten, start.kinds | kinds)

    def _rewrite_full_body(self, rule: Rule) -> list[Literal]:
        """Return the body of a rule of which all rows are needed; add the rules for its demand."""
        body = literals(rule)
        if self.allowed is None:
            passing = SidewaysPassing(None)
            ordered = list(body) if self.choice is not None else parameters_first(body)
            return [self._rewrite_literal(literal, passing, rule) for literal in ordered]
        passing = SidewaysPassing(None, starts_anywhere=True)
        ordered = computed_relations_last(body, self.can_be_demanded)
        rewritten = {id(literal): self._rewrite_literal(literal, passing, rule) for literal in ordered}
        return [rewritten[id(literal)] for literal in body]  # the planner has chosen the order of the joins

    def _rewrite_body(self, rule: Rule, body: Iterable[Literal], start: BodyStart) -> list[Literal]:
        """Return a body in sideways order, with each literal rewritten; add the rules for its demand."""
        passing = SidewaysPassing(start.atom)
        ordered = sideways_order([*body, *start.tests], start.atom)
        return [start.atom, *(self._rewrite_literal(literal, passing, rule, start.kinds) for literal in ordered)]

    def _rewrite_literal(
        self, literal: Literal, passing: SidewaysPassing, rule: Rule, kinds: dict[str, Kind] | None = None
    ) -> Literal:
        """Return a literal over demanded rows; add the rule for their demand."""
        rewritten = literal
        atom = literal.formula if isinstance(literal, Negation) else literal
        if self.choice is not None and isinstance(atom, Atom):
            passing = self.choice.passing(rule, atom, passing.start)
        if isinstance(literal, Atom):
            rewritten = self._rewrite_atom(literal, passing, rule, kinds or {})
        elif isinstance(literal, Negation):
            assert isinstance(literal.formula, Atom)
            rewritten = replace(literal, formula=self._rewrite_atom(literal.formula, passing, rule, kinds or {}))
        passing.visit(literal, rewritten)
        return rewritten

    def _rewrite_atom(self, atom: Atom, passing: SidewaysPassing, rule: Rule, kinds: dict[str, Kind]) -> Atom:
        """Return an atom over demanded rows; add the rule for their demand."""
        name = atom.relation
        if name.endswith(INPUT_SUFFIX):
            return replace(atom, relation=name.removesuffix(INPUT_SUFFIX))
        if not self.can_be_demanded(name):
            self.require(name)
            return atom
        passable = passing.passable(inside=self._component[name] == self._component[rule.head.relation])
        keys = min((reduction.keys for reduction in self._reductions_of(name)), default=len(atom.arguments))
        bound = tuple(column for column, term in enumerate(atom.arguments[:keys]) if is_bound(term, passable))
        if self.choice is not None:
            bound = self.choice.columns_of(name, bound)
        if not bound:
            self._require_in_full(name, f"a rule of {rule.head.relation} reads it with no argument bound ({rule.at})")
            return atom
        adorned = self.require(name, bound)
        demand = Atom(adorned.demand, tuple(atom.arguments[column] for column in bound), atom.at)
        if demand not in passing.prefix:
            self._add(replace(rule, role="silent"), demand, passing.prefix, kinds)
        return replace(atom, relation=adorned.name)

    def _add(self, rule: Rule, head: Atom, body: Iterable[Literal], kinds: dict[str, Kind] | None = None) -> None:
        """Add a rule with the variables of another, unless it exists."""
        all_kinds = tuple(sorted({**dict(rule.kinds), **(kinds or {})}.items()))
        added = replace(rule, heads=(head,), body=Conjunction(tuple(body), rule.body.at), kinds=all_kinds)
        if added not in self.rules:
            self.rules.append(added)


def start_of(rule: Rule, adorned: AdornedRelation, relation: str, before: tuple[Term, ...] = ()) -> BodyStart:
    """Return the start of a rule's body, from the head's arguments in the bound columns."""
    terms: list[Term] = []
    tests: list[Literal] = []
    kinds: dict[str, Kind] = {}
    for number, column in zip(adorned.bound, adorned.bound_columns, strict=True):
        term = rule.head.arguments[number]
        if not isinstance(term, (VariableTerm, ConstantTerm, WildcardTerm)):
            variable = VariableTerm(f"asked#{number}", term.at)
            kinds[variable.name] = column.kind
            tests.append(Comparison("=", variable, term, term.at))
            term = variable
        terms.append(term)
    return BodyStart(Atom(relation, (*before, *terms), rule.at), tuple(tests), kinds)


def restates_demand(literal: Literal, adorned: AdornedRelation, start: Atom) -> bool:
    """Return whether a literal is an atom of demanded rows with the same bound arguments as the head."""
    if not isinstance(literal, Atom) or literal.relation != adorned.name:
        return False
    return tuple(literal.arguments[column] for column in adorned.bound) == start.arguments
