"""Aggregates become relations of their own, so that a body is only atoms, negations and comparisons.

    p(x, n) :- q(x), n = count : { e(x, y) }.
becomes
    @1.body(x, y) :- e(x, y).                     the solutions, each once
    @1(x, v) = count of @1.body by x              a Reduction
    p(x, v) :- q(x), @1(x, v).
    p(x, 0) :- q(x), !@1(x, _).                   count and sum of nothing are 0; min, max and mean have no value

The keys are the variables that the aggregate shares with its rule. Where its body does not bind them all by itself, the
rest of the rule does, by way of a relation of the keys that are asked for:

    p(x, n) :- q(x), n = count : { e(y, _), y < x }.
        ->  @1.seed(x) :- q(x).     @1.body(x, y, _) :- @1.seed(x), e(y, _), y < x.     ...

A seed leaves out what the rule reads recursively, if it can, so that the aggregate is computed before the recursion.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kpg.errors import UnsafeRule
from kpg.query.ir.body_variables import bound_by, literals, literals_of, uses
from kpg.query.ir.literals import (
    Atom,
    Comparison,
    Conjunction,
    Formula,
    Literal,
    Negation,
    aggregates,
    all_variables,
    change_atom,
    change_terms,
    variables,
)
from kpg.query.ir.program import AggregateReduction, Program, Relation, RelationColumn, Rule
from kpg.query.ir.rewrites.expand_disjunction import alternatives, expanded
from kpg.query.ir.rewrites.stratify import SEED, strongly_connected
from kpg.query.ir.terms import AggregateTerm, ConstantTerm, Kind, Term, VariableTerm, WildcardTerm
from kpg.query.ir.terms import variables as variables_of_term
from kpg.query.ir.verify import atoms_of
from kpg.query.source_text import failure

ZERO_OF_NOTHING = ("count", "sum")


def lift_aggregates(program: Program) -> Program:
    """The program without aggregates."""
    lifting = Lifting(recursion(program))
    waiting, rules = list(program.rules), list[Rule]()
    while waiting:
        rule = waiting.pop(0)
        lifted = lifting.lift_one(rule)
        if lifted is None:
            rules.append(rule)
        else:
            waiting = [*lifted, *waiting]
    return replace(
        program,
        relations=(*program.relations, *lifting.relations),
        rules=tuple(rules),
        reductions=(*program.reductions, *lifting.reductions),
    )


def recursion(program: Program) -> dict[str, int]:
    """For each relation a number that those it is recursive with share."""
    graph: dict[str, list[str]] = {relation.name: [] for relation in program.relations}
    for rule in program.rules:
        graph[rule.head.relation] += [atom.relation for atom in atoms_of(rule)]
    return {name: number for number, part in enumerate(strongly_connected(graph)) for name in part}


@dataclass(slots=True)
class Lifting:
    """The relations that aggregates became."""

    component: dict[str, int]
    relations: list[Relation] = field(default_factory=list)
    reductions: list[AggregateReduction] = field(default_factory=list)
    number: int = 0

    def lift_one(self, rule: Rule) -> list[Rule] | None:
        """A rule with one aggregate fewer, and the rules that stand for it; None if it has none."""
        found = list(dict.fromkeys(each for part in (rule.head, rule.body) for each in aggregates(part)))
        if not found:
            return None
        plain = [literal for literal in literals(rule) if not any(True for _ in aggregates(literal))]
        bound = bound_by(plain)
        outside = {each.name: each for part in (rule.head, rule.body) for each in variables(part)}
        for aggregate in found:
            keys = shared(aggregate, outside)
            if all(key.name in bound for key in keys):
                return self.lift(rule, aggregate, keys, plain)
        lost = next(key for key in shared(found[0], outside) if key.name not in bound)
        raise failure(
            UnsafeRule,
            f"variable {lost.written!r} of the {found[0].op} is not bound outside of it",
            lost.at,
            hint="Let it stand in a positive atom beside the aggregate, or use another name inside.",
        )

    def lift(self, rule: Rule, aggregate: AggregateTerm, keys: list[VariableTerm], plain: list[Literal]) -> list[Rule]:
        """The rule with an atom in place of an aggregate, and what that atom stands for."""
        self.number += 1
        name = f"@{self.number}"
        kinds = dict(rule.kinds)
        result = VariableTerm(f"{aggregate.op}#{name}", aggregate.at)
        kinds[result.name] = result_kind(aggregate, kinds)
        seed, made = None, list[Rule]()
        if needs_binding(aggregate, keys):
            seed = Atom(f"{name}{SEED}", tuple(keys), aggregate.at)
            self.relations.append(Relation(seed.relation, columns_of(keys, kinds), aggregate.at, made=True))
            made.append(rule_of(seed, self.asking(rule, keys, plain), rule))
        made += self.body(name, aggregate, keys, seed, rule)
        value = RelationColumn("value", "", kinds[result.name])
        self.relations.append(Relation(name, (*columns_of(keys, kinds), value), aggregate.at, made=True))
        place = None if aggregate.target is None else self.relation(f"{name}.body").arity - 1
        self.reductions.append(AggregateReduction(name, f"{name}.body", len(keys), aggregate.op, place, aggregate.at))
        group = Atom(name, (*keys, result), aggregate.at)
        rule = replace(rule, kinds=tuple(sorted(kinds.items())))
        made.append(replaced(rule, aggregate, result, group))
        if aggregate.op in ZERO_OF_NOTHING:
            zero = ConstantTerm(0.0 if kinds[result.name] == "float" else 0, kinds[result.name], aggregate.at)
            empty = Negation(replace(group, arguments=(*keys, WildcardTerm(aggregate.at))), aggregate.at)
            made.append(replaced(rule, aggregate, zero, empty))
        return made

    def asking(self, rule: Rule, keys: list[VariableTerm], plain: list[Literal]) -> list[Literal]:
        """The literals of a rule that say for which keys it asks: at least those it does ask for."""
        here = self.component.get(rule.head.relation)
        steady = [
            literal
            for literal in plain
            if not (isinstance(literal, Atom) and here is not None and self.component.get(literal.relation) == here)
        ]
        chosen = steady if {key.name for key in keys} <= bound_by(steady) else plain
        known = bound_by(chosen)
        return [literal for literal in chosen if uses(literal) <= known]

    def body(
        self, name: str, aggregate: AggregateTerm, keys: list[VariableTerm], seed: Atom | None, rule: Rule
    ) -> list[Rule]:
        """The rules for the solutions of an aggregate's body: keys, then all else, what is aggregated last."""
        kinds = dict(rule.kinds)
        formula, target = aggregate.body, aggregate.target
        local = own_variables(formula, keys)
        if target is not None:
            value = VariableTerm(f"value#{name}", aggregate.at)
            kinds[value.name] = target_kind(target, kinds)
            formula = Conjunction((formula, Comparison("=", value, target, aggregate.at)), aggregate.at)
            local = [*local, value]
        if seed is not None:
            formula = Conjunction((seed, formula), aggregate.at)
        head = Atom(f"{name}.body", (*keys, *local), aggregate.at)
        self.relations.append(Relation(head.relation, columns_of([*keys, *local], kinds), aggregate.at, made=True))
        return expanded(Rule((head,), formula, aggregate.at, tuple(sorted(kinds.items()))))

    def relation(self, name: str) -> Relation:
        """One of the relations made so far."""
        return next(relation for relation in self.relations if relation.name == name)


def replaced(rule: Rule, aggregate: AggregateTerm, by: Term, group: Literal) -> Rule:
    """A rule with a value in place of an aggregate, and a literal that says which."""

    def put(term: Term) -> Term:
        return by if term == aggregate else term

    heads = tuple(change_atom(head, put) for head in rule.heads)
    body = Conjunction((*literals_of(change_terms(rule.body, put)), group), rule.body.at)
    return replace(rule, heads=heads, body=body)


def shared(aggregate: AggregateTerm, outside: dict[str, VariableTerm]) -> list[VariableTerm]:
    """The variables that an aggregate shares with its rule, in order."""
    inside = [*all_variables(aggregate.body)]
    if aggregate.target is not None:
        inside += variables_of_term(aggregate.target)
    return list(dict.fromkeys(each for each in inside if each.name in outside))


def own_variables(formula: Formula, keys: Iterable[VariableTerm]) -> list[VariableTerm]:
    """The variables of a body that are in all of its alternatives, keys left out."""
    known = set(keys)
    found = [variable for variable in dict.fromkeys(variables(formula)) if variable not in known]
    ways = [{each for literal in way for each in variables(literal)} for way in alternatives(formula)]
    bound = [bound_by(way, {key.name for key in known}) for way in alternatives(formula)]
    return [
        variable
        for variable in found
        if all(variable in way for way in ways) and all(variable.name in way for way in bound)
    ]


def needs_binding(aggregate: AggregateTerm, keys: list[VariableTerm]) -> bool:
    """Whether the body of an aggregate does not bind all its keys by itself."""
    return any(key.name not in bound_by(way) for way in alternatives(aggregate.body) for key in keys)


def columns_of(keys: Iterable[VariableTerm], kinds: dict[str, Kind]) -> tuple[RelationColumn, ...]:
    """A column for each variable."""
    return tuple(RelationColumn(key.name, "", kinds[key.name], key.at) for key in keys)


def rule_of(head: Atom, body: Iterable[Literal], model: Rule) -> Rule:
    """A rule that a rewrite makes, with the kinds of another."""
    return Rule((head,), Conjunction(tuple(body), model.body.at), head.at, model.kinds)


def target_kind(target: Term, kinds: dict[str, Kind]) -> Kind:
    """What is aggregated holds."""
    match target:
        case VariableTerm():
            return kinds[target.name]
        case WildcardTerm():
            return "number"
        case AggregateTerm():
            return result_kind(target, kinds)
    return target.kind or "number"


def result_kind(aggregate: AggregateTerm, kinds: dict[str, Kind]) -> Kind:
    """What an aggregate holds."""
    if aggregate.op == "count":
        return "number"
    if aggregate.op == "mean":
        return "float"
    assert aggregate.target is not None
    return target_kind(aggregate.target, kinds)
