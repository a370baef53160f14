"""What a Datalog program means, computed slowly and plainly: the oracle for the query layer.

    evaluate(parse(text), {"edge": {(1, 2)}})  ==  {"path": {(1, 2)}, ...}

Sets of tuples, rules applied until nothing new comes, level by level. It works on programs as they were parsed and
shares nothing with the rewrites or the lowering.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
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
    aggregates,
    variables,
)
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import AggregateTerm, CallTerm, ConstantTerm, Term, VariableTerm, WildcardTerm
from kpg.query.ir.terms import variables as term_variables

Rows = set[tuple[Any, ...]]
Env = dict[str, Any]


class NotReady(Exception):
    """A term has a variable without a value yet."""


def evaluate(program: Program, given: Mapping[str, Iterable[tuple[Any, ...]]]) -> dict[str, Rows]:
    """Every relation of a program, on some inputs."""
    db: dict[str, Rows] = {relation.name: set(given.get(relation.name, ())) for relation in program.relations}
    for fact in program.facts:
        db[fact.relation].add(converted(program, fact.relation, fact.values))
    levels = levels_of(program)
    for level in sorted(set(levels.values())):
        rules = [rule for rule in program.rules if levels[rule.heads[0].relation] == level]
        fixpoint(program, rules, db)
    return db


def fixpoint(program: Program, rules: list[Rule], db: dict[str, Rows]) -> None:
    """Apply rules until nothing new comes."""
    while True:
        found = [each for rule in rules for each in derive(rule, db)]
        new = [(name, converted(program, name, row)) for name, row in found]
        before = sum(map(len, db.values()))
        for name, row in new:
            db[name].add(row)
        if sum(map(len, db.values())) == before:
            return


def converted(program: Program, name: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row with floats where the relation has them."""
    kinds = [column.kind for column in program.by_name()[name].columns]
    return tuple(float(value) if kind == "float" else value for value, kind in zip(row, kinds, strict=True))


def levels_of(program: Program) -> dict[str, int]:
    """For each relation the number of negations and aggregates that must be complete before it; heads share one."""
    levels = {relation.name: 0 for relation in program.relations}
    for _ in range(len(levels) * len(levels) + 1):
        changed = False
        for rule in program.rules:
            needed = max((levels[name] + strict for name, strict in reads(rule.body, 0)), default=0)
            needed = max([needed, *(levels[head.relation] for head in rule.heads)])
            needed = max([needed, *(levels[n] + s for head in rule.heads for n, s in reads_of_terms(head))])
            for head in rule.heads:
                if levels[head.relation] < needed:
                    levels[head.relation], changed = needed, True
        if not changed:
            return levels
    raise ValueError("not stratified")


def reads(formula: Formula, strict: int) -> Iterator[tuple[str, int]]:
    """The relations a formula reads, and whether each must be complete before."""
    match formula:
        case Atom():
            yield formula.relation, strict
        case Negation():
            yield from reads(formula.formula, 1)
        case Conjunction() | Disjunction():
            for part in formula.parts:
                yield from reads(part, strict)
    if not isinstance(formula, (Conjunction, Disjunction, Negation)):
        yield from reads_of_terms(formula)


def reads_of_terms(formula: Formula) -> Iterator[tuple[str, int]]:
    """The relations that the aggregates of a formula read."""
    for aggregate in aggregates(formula):
        yield from reads(aggregate.body, 1)


def derive(rule: Rule, db: dict[str, Rows]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What a rule derives now."""
    outer = {each.name for part in (*rule.heads, rule.body) for each in variables(part)}
    for env in solve([rule.body], {}, db, outer):
        for head in rule.heads:
            choices: list[list[Any]] = [list(values(term, env, db, outer)) for term in head.arguments]
            for row in product(choices):
                yield head.relation, row


def product(choices: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """Every way to choose."""
    if not choices:
        yield ()
        return
    for first in choices[0]:
        for rest in product(choices[1:]):
            yield (first, *rest)


def solve(parts: list[Formula], env: Env, db: dict[str, Rows], outer: set[str]) -> Iterator[Env]:
    """Every way to make all parts hold."""
    if not parts:
        yield env
        return
    for place, part in enumerate(parts):
        rest = parts[:place] + parts[place + 1 :]
        try:
            ways = list(step(part, env, db, outer))
        except NotReady:
            continue
        for more, found in ways:
            yield from solve([*more, *rest], found, db, outer)
        return
    raise ValueError(f"unsafe: {parts}")


def step(part: Formula, env: Env, db: dict[str, Rows], outer: set[str]) -> Iterator[tuple[list[Formula], Env]]:
    """What is left of one part, and the bindings it makes."""
    match part:
        case Truth():
            yield from [([], env)] if part.holds else []
        case Conjunction():
            yield list(part.parts), env
        case Disjunction():
            for choice in part.parts:
                yield [choice], env
        case Negation():
            yield from negated(part.formula, env, db, outer)
        case Atom():
            for row in db[part.relation]:
                found = matched(part.arguments, row, env, db, outer)
                if found is not None:
                    yield [], found
        case Comparison():
            yield from compared(part, env, db, outer)
        case Test():
            pattern, text = (one(term, env, db, outer) for term in part.arguments)
            holds = pattern in text if part.name == "contains" else is_match(pattern, text)
            if holds == part.positive:
                yield [], env


def is_match(pattern: str, text: str) -> bool:
    try:
        return re.fullmatch(pattern.replace("[:digit:]", "0-9"), text) is not None
    except re.error:
        return False


def negated(part: Formula, env: Env, db: dict[str, Rows], outer: set[str]) -> Iterator[tuple[list[Formula], Env]]:
    """A formula that must not hold, its negation moved inward."""
    opposite = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
    match part:
        case Truth():
            yield [Truth(not part.holds)], env
        case Negation():
            yield [part.formula], env
        case Conjunction():
            yield [Disjunction(tuple(Negation(each) for each in part.parts))], env
        case Disjunction():
            yield [Negation(each) for each in part.parts], env
        case Comparison():
            yield [Comparison(opposite[part.op], part.left, part.right)], env
        case Test():
            yield [Test(part.name, part.arguments, not part.positive)], env
        case Atom():
            wanted = [None if isinstance(each, WildcardTerm) else one(each, env, db, outer) for each in part.arguments]
            if not any(fits(row, wanted) for row in db[part.relation]):
                yield [], env


def fits(row: tuple[Any, ...], wanted: list[Any]) -> bool:
    return all(want is None or want == value for want, value in zip(wanted, row, strict=True))


def matched(terms: tuple[Term, ...], row: tuple[Any, ...], env: Env, db: Any, outer: set[str]) -> Env | None:
    """The bindings under which terms are a row."""
    env = dict(env)
    later = []
    for term, value in zip(terms, row, strict=True):
        if isinstance(term, VariableTerm):
            if env.setdefault(term.name, value) != value:
                return None
        elif not isinstance(term, WildcardTerm):
            later.append((term, value))
    return env if all(one(term, env, db, outer) == value for term, value in later) else None


def compared(part: Comparison, env: Env, db: Any, outer: set[str]) -> Iterator[tuple[list[Formula], Env]]:
    """A comparison of values, or an equation that binds."""
    if part.op == "=":
        for this, that in ((part.left, part.right), (part.right, part.left)):
            if isinstance(this, VariableTerm) and this.name not in env:
                for value in list(values(that, env, db, outer)):
                    yield [], {**env, this.name: value}
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


def one(term: Term, env: Env, db: Any, outer: set[str]) -> Any:
    """The only value of a term."""
    (value,) = values(term, env, db, outer)
    return value


def values(term: Term, env: Env, db: Any, outer: set[str]) -> Iterator[Any]:
    """The values of a term: one, several of a range, none of the least of nothing."""
    match term:
        case ConstantTerm():
            yield term.value
        case VariableTerm():
            if term.name not in env:
                raise NotReady
            yield env[term.name]
        case CallTerm():
            for given in product([list(values(each, env, db, outer)) for each in term.arguments]):
                yield from call(term.functor, given)
        case AggregateTerm():
            yield from aggregated(term, env, db, outer)
        case _:
            raise NotReady


def call(functor: str, given: tuple[Any, ...]) -> Iterator[Any]:
    """A functor, of values."""
    match functor, given:
        case "+", (a, b):
            yield a + b
        case "-", (a, b):
            yield a - b
        case "*", (a, b):
            yield a * b
        case "/", (a, b):
            exact = isinstance(a, float) or isinstance(b, float)
            yield a / b if exact else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        case "%", (a, b):
            yield (abs(a) % abs(b)) * (-1 if a < 0 else 1)
        case "neg", (a,):
            yield -a
        case "min", _:
            yield min(given)
        case "max", _:
            yield max(given)
        case "cat", _:
            yield "".join(given)
        case "strlen", (a,):
            yield len(a)
        case "substr", (text, start, length):
            yield text[start : start + length] if start >= 0 else ""
        case "to_string", (a,):
            yield a if isinstance(a, str) else f"{a:f}" if isinstance(a, float) else str(a)
        case "to_number", (a,):
            yield int(a)
        case "to_float", (a,):
            yield float(a)
        case "range", (start, end, *by):
            step_by = by[0] if by else (1 if start <= end else -1)
            for number in count():
                value = start + number * step_by
                if step_by == 0 or (value >= end if step_by > 0 else value <= end):
                    return
                yield value
        case _:
            raise ValueError(f"the oracle does not know {functor}")


def aggregated(term: AggregateTerm, env: Env, db: Any, outer: set[str]) -> Iterator[Any]:
    """An aggregate over the solutions of its body; variables that occur outside must be known."""
    inside = {each.name for each in variables(term.body)}
    targets = {each.name for each in term_variables(term.target)} if term.target is not None else set()
    outer = outer - (targets & inside)  # what is aggregated is the aggregate's own
    if not (inside & outer) <= env.keys():
        raise NotReady
    known = {name: value for name, value in env.items() if name in outer}
    body, numbers = named(term.body, count()), inside | outer
    told = common(body)
    solutions: dict[Any, Any] = {}
    for found in solve([body], known, db, numbers):
        value = 1 if term.target is None else one(term.target, found, db, numbers)
        solutions[value, *((name, found[name]) for name in sorted(told & found.keys()))] = value
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


def named(formula: Formula, numbers: Iterator[int]) -> Formula:
    """A body whose wildcards in positive atoms are variables: each solution counts."""
    match formula:
        case Atom():
            arguments = (
                VariableTerm(f"_{next(numbers)}") if isinstance(e, WildcardTerm) else e for e in formula.arguments
            )
            return Atom(formula.relation, tuple(arguments))
        case Conjunction():
            return Conjunction(tuple(named(part, numbers) for part in formula.parts))
        case Disjunction():
            return Disjunction(tuple(named(part, numbers) for part in formula.parts))
    return formula


def common(formula: Formula) -> set[str]:
    """The variables that tell solutions apart: those that are in every alternative."""
    match formula:
        case Conjunction():
            return set().union(*map(common, formula.parts))
        case Disjunction():
            return set.intersection(*map(common, formula.parts))
    return {each.name for each in variables(formula)}
