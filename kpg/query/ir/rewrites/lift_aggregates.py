"""Lift aggregates into relations of their own, so that bodies hold only atoms, negations and comparisons.

    p(x, n) :- q(x), n = count : { e(x, y) }.
becomes
    @1.body(x, y) :- e(x, y).                     the solutions, each once
    @1(x, v) = count of @1.body by x              an AggregateReduction
    p(x, v) :- q(x), @1(x, v).
    p(x, 0) :- q(x), !@1(x, _).                   count and sum of nothing are 0; min, max and mean have no value

The keys are the variables that the aggregate shares with its rule. If the aggregate's body does not bind all of them,
a seed relation holds the keys that the rule asks for, and the body starts from it:

    p(x, n) :- q(x), n = count : { e(y, _), y < x }.
        ->  @1.seed(x) :- q(x).     @1.body(x, y, _) :- @1.seed(x), e(y, _), y < x.     ...

The seed omits atoms that are recursive with the rule, if the other literals bind the keys; the aggregate can then be
computed before the recursion.

If an expression of the aggregate can fail, the rules for its body are silent, and a rule for errors combines the body
with the rule that asks: an error counts only if the literals beside the aggregate hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kpg.query.ir.body_variables import bound_by, literals, literals_of, variable_names
from kpg.query.ir.fallible_terms import literal_can_fail, term_can_fail
from kpg.query.ir.literals import (
    Atom,
    Comparison,
    Conjunction,
    Formula,
    Literal,
    Negation,
    aggregates,
    all_variables,
    map_atom_terms,
    map_terms,
    variables,
)
from kpg.query.ir.program import AggregateReduction, Program, Relation, RelationColumn, Rule
from kpg.query.ir.rewrites.aggregate_bindings import unbound_keys
from kpg.query.ir.rewrites.expand_disjunction import MAX_ALTERNATIVES, alternatives, expand_rule, too_many
from kpg.query.ir.rewrites.stratify import SEED, strongly_connected
from kpg.query.ir.terms import AggregateTerm, ConstantTerm, Kind, Term, VariableTerm, WildcardTerm, subterms
from kpg.query.ir.terms import variables as variables_of_term
from kpg.query.ir.verify import atoms_of

ZERO_OF_NOTHING = ("count", "sum")


def lift_aggregates(program: Program) -> Program:
    """Return the program without aggregates."""
    lifting = AggregateLifting(component_numbers(program))
    rules = [lifted for rule in program.rules for lifted in lifting.lift_all(rule)]
    return replace(
        program,
        relations=(*program.relations, *lifting.relations),
        rules=tuple(rules),
        reductions=(*program.reductions, *lifting.reductions),
    )


def component_numbers(program: Program) -> dict[str, int]:
    """Return a number for each relation; mutually recursive relations have the same number."""
    graph: dict[str, list[str]] = {relation.name: [] for relation in program.relations}
    for rule in program.rules:
        graph[rule.head.relation] += [atom.relation for atom in atoms_of(rule)]
    return {name: number for number, part in enumerate(strongly_connected(graph)) for name in part}


@dataclass(slots=True)
class AggregateLifting:
    """The relations and reductions made from aggregates so far."""

    component: dict[str, int]
    relations: list[Relation] = field(default_factory=list)
    reductions: list[AggregateReduction] = field(default_factory=list)
    number: int = 0
    _groups: dict[tuple[AggregateTerm, tuple[VariableTerm, ...]], str] = field(default_factory=dict)  # of one rule

    def lift_all(self, rule: Rule) -> list[Rule]:
        """Lift all aggregates of a rule. Each count and sum doubles the number of rules: with a value, and without."""
        doubling = sum(aggregate.op in ZERO_OF_NOTHING for aggregate in distinct_aggregates(rule))
        if 2**doubling > MAX_ALTERNATIVES:
            raise too_many(rule.body)
        waiting, rules = [rule], list[Rule]()
        self._groups.clear()
        while waiting:
            lifted = self.lift_first(waiting[-1])
            if lifted is None:
                rules.append(waiting.pop())
            else:
                waiting[-1:] = reversed(lifted)
            if len(waiting) + len(rules) > MAX_ALTERNATIVES:
                raise too_many(rule.body)
        return rules

    def lift_first(self, rule: Rule) -> list[Rule] | None:
        """Lift one aggregate of a rule; return the rules that replace the rule, or None if it has no aggregate."""
        rule = with_plain_atoms(rule)
        terms = distinct_aggregates(rule)
        if not terms:
            return None
        plain = [literal for literal in literals(rule) if not any(True for _ in aggregates(literal))]
        bound = bound_by(plain)
        outside = {variable.name: variable for part in (rule.head, rule.body) for variable in variables(part)}
        for aggregate in sorted(terms, key=aggregate_can_fail):  # errors of the last depend on the values of the others
            keys = shared_variables(aggregate, outside)
            if all(key.name in bound for key in keys):
                return self.lift(rule, aggregate, keys, plain)
        raise unbound_keys(terms, literals(rule), bound, lambda aggregate: shared_variables(aggregate, outside))

    def lift(self, rule: Rule, aggregate: AggregateTerm, keys: list[VariableTerm], plain: list[Literal]) -> list[Rule]:
        """Return the rule with an atom in place of an aggregate, and the rules that define that atom."""
        kinds = dict(rule.kinds)
        rules = list[Rule]()
        name = self._groups.get((aggregate, tuple(keys)))
        if name is None:
            self.number += 1
            name = f"@{self.number}"
            seed = None
            if needs_seed(aggregate, keys):
                seed = Atom(f"{name}{SEED}", tuple(keys), aggregate.at)
                self.relations.append(Relation(seed.relation, columns_of(keys, kinds), aggregate.at, generated=True))
                rules.append(replace(rule_of(seed, self.seed_body(rule, keys, plain), rule), role="silent"))
            else:  # the groups do not depend on the rest of the rule: all alternatives of the rule share them
                self._groups[aggregate, tuple(keys)] = name
            rules += self.body_rules(name, aggregate, keys, seed, rule)
            self.add_groups(name, aggregate, keys, kinds)
        rules += error_rules(rule, aggregate, plain)
        result = VariableTerm(f"{aggregate.op}#{name}", aggregate.at)
        kinds[result.name] = result_kind(aggregate, kinds)
        group = Atom(name, (*keys, result), aggregate.at)
        rule = replace(rule, kinds=tuple(sorted(kinds.items())))
        rules.append(replace_aggregate(rule, aggregate, result, group))
        if aggregate.op in ZERO_OF_NOTHING:
            zero = ConstantTerm(0.0 if kinds[result.name] == "float" else 0, kinds[result.name], aggregate.at)
            empty = Negation(replace(group, arguments=(*keys, WildcardTerm(aggregate.at))), aggregate.at)
            rules.append(replace_aggregate(rule, aggregate, zero, empty))
        return rules

    def add_groups(self, name: str, aggregate: AggregateTerm, keys: list[VariableTerm], kinds: dict[str, Kind]) -> None:
        """Add the relation of an aggregate's groups and values, behind that of its body."""
        value = RelationColumn("value", "", result_kind(aggregate, kinds))
        column = None if aggregate.target is None else self.relations[-1].arity - 1
        self.relations.append(Relation(name, (*columns_of(keys, kinds), value), aggregate.at, generated=True))
        self.reductions.append(AggregateReduction(name, f"{name}.body", len(keys), aggregate.op, column, aggregate.at))

    def seed_body(self, rule: Rule, keys: list[VariableTerm], plain: list[Literal]) -> list[Literal]:
        """Return the literals of a rule that define a superset of the keys it asks for."""
        component = self.component.get(rule.head.relation)
        earlier = [
            literal
            for literal in plain
            if not (
                isinstance(literal, Atom)
                and component is not None
                and self.component.get(literal.relation) == component
            )
        ]
        chosen = earlier if {key.name for key in keys} <= bound_by(earlier) else plain
        bound = bound_by(chosen)
        return [literal for literal in chosen if variable_names(literal) <= bound]

    def body_rules(
        self, name: str, aggregate: AggregateTerm, keys: list[VariableTerm], seed: Atom | None, rule: Rule
    ) -> list[Rule]:
        """Return the rules for the solutions of an aggregate's body: keys, then other variables, the target last."""
        kinds = dict(rule.kinds)
        formula, target = aggregate.body, aggregate.target
        local = local_variables(formula, keys)
        if target is not None:
            value = VariableTerm(f"value#{name}", aggregate.at)
            kinds[value.name] = target_kind(target, kinds)
            formula = Conjunction((formula, Comparison("=", value, target, aggregate.at)), aggregate.at)
            local = [*local, value]
        if seed is not None:
            formula = Conjunction((seed, formula), aggregate.at)
        head = Atom(f"{name}.body", (*keys, *local), aggregate.at)
        self.relations.append(Relation(head.relation, columns_of([*keys, *local], kinds), aggregate.at, generated=True))
        role = "silent" if aggregate_can_fail(aggregate) else ""
        return expand_rule(Rule((head,), formula, aggregate.at, tuple(sorted(kinds.items())), role=role))


def distinct_aggregates(rule: Rule) -> list[AggregateTerm]:
    """Return the aggregates of a rule that are in no other one, in order of occurrence."""
    return list(dict.fromkeys(aggregate for part in (rule.head, rule.body) for aggregate in aggregates(part)))


def aggregate_can_fail(aggregate: AggregateTerm) -> bool:
    """Return whether an expression in the target or the body of an aggregate can fail."""
    if aggregate.target is not None and term_can_fail(aggregate.target):
        return True
    return any(literal_can_fail(literal) for body in alternatives(aggregate.body) for literal in body)


def error_rules(rule: Rule, aggregate: AggregateTerm, plain: list[Literal]) -> list[Rule]:
    """Return the rules for the errors inside an aggregate: where the literals beside it hold."""
    if rule.role == "silent" or not aggregate_can_fail(aggregate):
        return []
    bound = bound_by(plain)
    beside = [literal for literal in plain if variable_names(literal) <= bound]
    kinds = dict(rule.kinds)
    formulas: list[Formula] = [*beside, aggregate.body]
    if aggregate.target is not None and term_can_fail(aggregate.target):
        value = VariableTerm("value#errors", aggregate.at)
        kinds[value.name] = target_kind(aggregate.target, kinds)
        formulas.append(Comparison("=", value, aggregate.target, aggregate.at))
    head = replace(rule.head, arguments=tuple(WildcardTerm(rule.at) for _ in rule.head.arguments))
    body = Conjunction(tuple(formulas), rule.body.at)
    return expand_rule(replace(rule, heads=(head,), body=body, kinds=tuple(sorted(kinds.items())), role="errors"))


def with_plain_atoms(rule: Rule) -> Rule:
    """Return a rule with equations for aggregates among the arguments of positive atoms, which bind the others."""
    if not any(isinstance(literal, Atom) and any(True for _ in aggregates(literal)) for literal in literals(rule)):
        return rule
    kinds = dict(rule.kinds)
    body: list[Literal] = []
    for number, literal in enumerate(literals(rule)):
        arguments: list[Term] = []
        for column, term in enumerate(literal.arguments if isinstance(literal, Atom) else ()):
            if any(isinstance(part, AggregateTerm) for part in subterms(term)):
                value = VariableTerm(f"argument#{number}.{column}", literal.at)
                kinds[value.name] = target_kind(term, kinds)
                body.append(Comparison("=", value, term, literal.at))
                term = value
            arguments.append(term)
        body.append(replace(literal, arguments=tuple(arguments)) if isinstance(literal, Atom) else literal)
    return replace(rule, body=Conjunction(tuple(body), rule.body.at), kinds=tuple(sorted(kinds.items())))


def replace_aggregate(rule: Rule, aggregate: AggregateTerm, by: Term, group: Literal) -> Rule:
    """Return a rule with a term in place of an aggregate, and one more literal that defines the term."""

    def put(term: Term) -> Term:
        return by if term == aggregate else term

    heads = tuple(map_atom_terms(head, put) for head in rule.heads)
    body = Conjunction((*literals_of(map_terms(rule.body, put)), group), rule.body.at)
    return replace(rule, heads=heads, body=body)


def shared_variables(aggregate: AggregateTerm, outside: dict[str, VariableTerm]) -> list[VariableTerm]:
    """Return the variables that an aggregate shares with its rule, in order of occurrence."""
    inside = [*all_variables(aggregate.body)]
    if aggregate.target is not None:
        inside += variables_of_term(aggregate.target)
    return list(dict.fromkeys(variable for variable in inside if variable.name in outside))


def local_variables(formula: Formula, keys: Iterable[VariableTerm]) -> list[VariableTerm]:
    """Return the variables that every alternative of a body has and binds, except the keys."""
    key_set = set(keys)
    candidates = [variable for variable in dict.fromkeys(variables(formula)) if variable not in key_set]
    used = [{variable for literal in body for variable in variables(literal)} for body in alternatives(formula)]
    bound = [bound_by(body, {key.name for key in key_set}) for body in alternatives(formula)]
    return [
        variable
        for variable in candidates
        if all(variable in names for names in used) and all(variable.name in names for names in bound)
    ]


def needs_seed(aggregate: AggregateTerm, keys: list[VariableTerm]) -> bool:
    """Return whether some alternative of an aggregate's body does not bind all keys by itself."""
    return any(key.name not in bound_by(body) for body in alternatives(aggregate.body) for key in keys)


def columns_of(keys: Iterable[VariableTerm], kinds: dict[str, Kind]) -> tuple[RelationColumn, ...]:
    """Return a column for each variable."""
    return tuple(RelationColumn(key.name, "", kinds[key.name], key.at) for key in keys)


def rule_of(head: Atom, body: Iterable[Literal], model: Rule) -> Rule:
    """Return a generated rule, with the position and kinds of another."""
    return Rule((head,), Conjunction(tuple(body), model.body.at), head.at, model.kinds)


def target_kind(target: Term, kinds: dict[str, Kind]) -> Kind:
    """Return the kind of an aggregate's target."""
    match target:
        case VariableTerm():
            return kinds[target.name]
        case WildcardTerm():
            return "number"
        case AggregateTerm():
            return result_kind(target, kinds)
    return target.kind or "number"


def result_kind(aggregate: AggregateTerm, kinds: dict[str, Kind]) -> Kind:
    """Return the kind of an aggregate's result."""
    if aggregate.op == "count":
        return "number"
    if aggregate.op == "mean":
        return "float"
    assert aggregate.target is not None
    return target_kind(aggregate.target, kinds)
