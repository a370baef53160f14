"""A naive evaluator of Datalog programs: the oracle for the query layer.

    evaluate(parse(text), {"edge": {(1, 2)}})  ==  {"path": {(1, 2)}, ...}

It applies rules to sets of tuples until no new row appears, stratum by stratum. It works on programs as parsed and
shares no code with the rewrites or the lowering.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from kpg.query.ir.literals import (
    Atom,
    Comparison,
    Conjunction,
    Disjunction,
    Formula,
    Negation,
    Test,
    Truth,
    variables,
)
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import AggregateTerm, CallTerm, ConstantTerm, Term, VariableTerm, WildcardTerm, map_term
from kpg.query.ir.terms import variables as term_variables
from kpg.testing.oracle_strata import reads_of, strata_of
from kpg.testing.oracle_values import as_text, call_functor, convert_value, is_record_term, match_pattern
from kpg.testing.special_relations import aggregates_of, meaning, without_aggregates

Rows = set[tuple[Any, ...]]
Env = dict[str, Any]


class NotReady(Exception):
    """A term has a variable without a value yet."""


def evaluate(
    program: Program, inputs: Mapping[str, Iterable[tuple[Any, ...]]], chosen: Mapping[str, Rows] | None = None
) -> dict[str, Rows]:
    """Return every relation of a program, given some inputs, and the rows to choose from where rows are chosen."""
    db: dict[str, Rows] = {relation.name: set(inputs.get(relation.name, ())) for relation in program.relations}
    for fact in program.facts:
        db[fact.relation].add(convert_row(program, fact.relation, fact.values))
    given = {name: set(rows) for name, rows in db.items()}
    allowed = chosen or {}
    rules = [without_aggregates(replace(rule, heads=(head,))) for rule in program.rules for head in rule.heads]
    program = replace(
        program, rules=tuple(replace(rule, heads=(head,)) for rule in program.rules for head in rule.heads)
    )
    for names in strata_of(program):
        recursive = any(name in names for rule in rules_of(rules, names) for name, _ in reads_of(rule))
        fixpoint(program, names, rules_of(rules, names), given, db, recursive, allowed)
    return {name: {tuple(map(as_text, row)) for row in rows} for name, rows in db.items()}


def rules_of(rules: list[Rule], names: set[str]) -> list[Rule]:
    """Return the rules of some relations, without those that only drop rows."""
    return [rule for rule in rules if rule.head.relation in names and not rule.subsumes]


def fixpoint(
    program: Program,
    names: set[str],
    rules: list[Rule],
    given: dict[str, Rows],
    db: dict[str, Rows],
    recursive: bool,
    allowed: Mapping[str, Rows],
) -> None:
    """Replace some relations by what their rules derive from the current relations, until nothing changes.

    In a recursion with aggregates in heads or subsumption, relations also keep the rows that they have.
    """
    keep = recursive and any(is_replaced(program, name) for name in names)
    for _ in range(10_000):
        derived = {name: set(given[name]) for name in names}
        for name, row in [row for rule in rules for row in derive(rule, db)]:
            derived[name].add(convert_row(program, name, row))
        new = {
            name: meaning(
                program, name, rows | (db[name] if keep else set()), lambda body: any(solve([body], {}, db, set()))
            )
            for name, rows in derived.items()
        }
        new |= {name: rows & allowed[name] for name, rows in new.items() if name in allowed}
        if all(db[name] == rows for name, rows in new.items()):
            return
        db.update(new)
    raise ValueError(f"no fixed point: {names}")


def is_replaced(program: Program, name: str) -> bool:
    """Return whether rows of a relation give way to others: it has aggregates in its heads, or subsumption."""
    return any(rule.head.relation == name and (rule.subsumes or aggregates_of(rule)) for rule in program.rules)


def convert_row(program: Program, name: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row with floats where the relation has float columns."""
    kinds = [column.kind for column in program.by_name()[name].columns]
    return tuple(convert_value(program, value, kind) for value, kind in zip(row, kinds, strict=True))


def derive(rule: Rule, db: dict[str, Rows]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the rows that a rule derives from the current relations."""
    outer = {variable.name for part in (*rule.heads, rule.body) for variable in variables(part)}
    for env in solve([rule.body], {}, db, outer):
        for head in rule.heads:
            choices: list[list[Any]] = [list(values(term, env, db, outer)) for term in head.arguments]
            for row in combinations(choices):
                yield head.relation, row


def combinations(choices: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield every combination of one value of each list."""
    if not choices:
        yield ()
        return
    for first in choices[0]:
        for rest in combinations(choices[1:]):
            yield (first, *rest)


def solve(parts: list[Formula], env: Env, db: dict[str, Rows], outer: set[str]) -> Iterator[Env]:
    """Yield every binding under which all parts hold."""
    if not parts:
        yield env
        return
    for position, part in enumerate(parts):
        rest = parts[:position] + parts[position + 1 :]
        try:
            branches = list(solve_part(part, env, db, outer))
        except NotReady:
            continue
        for remaining, bindings in branches:
            yield from solve([*remaining, *rest], bindings, db, outer)
        return
    raise ValueError(f"unsafe: {parts}")


def solve_part(part: Formula, env: Env, db: dict[str, Rows], outer: set[str]) -> Iterator[tuple[list[Formula], Env]]:
    """Yield the formulas that remain of one part, with the bindings that it adds."""
    match part:
        case Truth():
            yield from [([], env)] if part.holds else []
        case Conjunction():
            yield list(part.parts), env
        case Disjunction():
            for choice in part.parts:
                yield [choice], env
        case Negation():
            yield from solve_negation(part.formula, env, db, outer)
        case Atom():
            for row in db[part.relation]:
                bindings = match_row(part.arguments, row, env, db, outer)
                if bindings is not None:
                    yield [], bindings
        case Comparison():
            yield from solve_comparison(part, env, db, outer)
        case Test():
            pattern, text = (single_value(term, env, db, outer) for term in part.arguments)
            holds = pattern in text if part.name == "contains" else is_match(pattern, text)
            if holds == part.positive:
                yield [], env


def is_match(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern.replace("[:digit:]", "0-9"), text) is not None


def solve_negation(
    part: Formula, env: Env, db: dict[str, Rows], outer: set[str]
) -> Iterator[tuple[list[Formula], Env]]:
    """Yield the formulas that remain of a negated formula; the negation is moved inward."""
    opposite = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
    match part:
        case Truth():
            yield [Truth(not part.holds)], env
        case Negation():
            yield [part.formula], env
        case Conjunction():
            yield [Disjunction(tuple(Negation(argument) for argument in part.parts))], env
        case Disjunction():
            yield [Negation(argument) for argument in part.parts], env
        case Comparison():
            yield [Comparison(opposite[part.op], part.left, part.right)], env
        case Test():
            yield [Test(part.name, part.arguments, not part.positive)], env
        case Atom():
            pattern = [
                None if isinstance(argument, WildcardTerm) else single_value(argument, env, db, outer)
                for argument in part.arguments
            ]
            if not any(row_fits(row, pattern) for row in db[part.relation]):
                yield [], env


def row_fits(row: tuple[Any, ...], pattern: list[Any]) -> bool:
    return all(expected is None or expected == value for expected, value in zip(pattern, row, strict=True))


def match_row(terms: tuple[Term, ...], row: tuple[Any, ...], env: Env, db: Any, outer: set[str]) -> Env | None:
    """Return the bindings under which terms equal a row, or None."""
    env = dict(env)
    later: list[tuple[Term, Any]] = []
    for term, value in zip(terms, row, strict=True):
        if not match_pattern(term, value, env, later):
            return None
    return env if all(single_value(term, env, db, outer) == value for term, value in later) else None


def solve_comparison(part: Comparison, env: Env, db: Any, outer: set[str]) -> Iterator[tuple[list[Formula], Env]]:
    """Yield the bindings of a comparison of values, or of an equation that binds a variable."""
    if part.op == "=":
        for variable, term in ((part.left, part.right), (part.right, part.left)):
            if isinstance(variable, VariableTerm) and variable.name not in env:
                for value in list(values(term, env, db, outer)):
                    yield [], {**env, variable.name: value}
                return
        for pattern, term in ((part.left, part.right), (part.right, part.left)):
            if is_record_term(pattern):
                try:
                    matched = list(values(term, env, db, outer))
                except NotReady:
                    if pattern is part.right or not is_record_term(part.right):
                        raise
                    continue
                for value in matched:
                    bindings = match_row((pattern,), (value,), env, db, outer)
                    if bindings is not None:
                        yield [], bindings
                return
    for left in list(values(part.left, env, db, outer)):
        for right in list(values(part.right, env, db, outer)):
            if compare(part.op, left, right):
                yield [], env


def compare(op: str, left: Any, right: Any) -> bool:
    match op:
        case "=":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
    return bool(left >= right)


def single_value(term: Term, env: Env, db: Any, outer: set[str]) -> Any:
    """Return the only value of a term."""
    (value,) = values(term, env, db, outer)
    return value


def values(term: Term, env: Env, db: Any, outer: set[str]) -> Iterator[Any]:
    """Yield the values of a term: usually one, several for a range, none for the minimum of nothing."""
    match term:
        case ConstantTerm():
            yield term.value
        case VariableTerm():
            if term.name not in env:
                raise NotReady
            yield env[term.name]
        case CallTerm():
            for arguments in combinations([list(values(argument, env, db, outer)) for argument in term.arguments]):
                yield from call_functor(term.functor, arguments)
        case AggregateTerm():
            yield from aggregate_values(term, env, db, outer)
        case _:
            raise NotReady


def aggregate_values(term: AggregateTerm, env: Env, db: Any, outer: set[str]) -> Iterator[Any]:
    """Yield an aggregate over the solutions of its body; variables that occur outside must be bound."""
    inside = {variable.name for variable in variables(term.body)}
    targets = {variable.name for variable in term_variables(term.target)} if term.target is not None else set()
    outer = outer - (targets & bound_inside(term.body))  # aggregated variables belong to the aggregate alone
    if not (inside & outer) <= env.keys():
        raise NotReady
    bound = {name: value for name, value in env.items() if name in outer}
    body, scope = name_wildcards(term.body, count()), inside | outer
    distinguishing = common_variables(body)
    solutions: dict[Any, Any] = {}
    for solution in solve([body], bound, db, scope):
        value = 1 if term.target is None else single_value(term.target, solution, db, scope)
        solutions[value, *((name, solution[name]) for name in sorted(distinguishing & solution.keys()))] = value
    bag = list(solutions.values())
    match term.op:
        case "count":
            yield len(bag)
        case "sum":
            yield sum(bag)
        case "min":
            yield from [min(bag)] if bag else []
        case "max":
            yield from [max(bag)] if bag else []
        case _:
            yield from [sum(bag) / len(bag)] if bag else []


def bound_inside(formula: Formula) -> set[str]:
    """Return the variables of positive atoms and equations."""
    match formula:
        case Conjunction() | Disjunction():
            return set().union(*map(bound_inside, formula.parts))
        case Atom() | Comparison(op="="):
            return {variable.name for variable in variables(formula)}
    return set()


def name_wildcards(formula: Formula, numbers: Iterator[int]) -> Formula:
    """Return a body with variables for wildcards in positive atoms, so that each solution counts."""
    match formula:
        case Atom():
            return Atom(formula.relation, tuple(named(argument, numbers) for argument in formula.arguments))
        case Conjunction():
            return Conjunction(tuple(name_wildcards(part, numbers) for part in formula.parts))
        case Disjunction():
            return Disjunction(tuple(name_wildcards(part, numbers) for part in formula.parts))
    return formula


def named(term: Term, numbers: Iterator[int]) -> Term:
    """Return a term with variables for wildcards, also inside records."""
    return map_term(term, lambda part: VariableTerm(f"_{next(numbers)}") if isinstance(part, WildcardTerm) else part)


def common_variables(formula: Formula) -> set[str]:
    """Return the variables that distinguish solutions: those that every alternative binds."""
    match formula:
        case Conjunction():
            return set().union(*map(common_variables, formula.parts))
        case Disjunction():
            return set.intersection(*map(common_variables, formula.parts))
    return {variable.name for variable in variables(formula)}
