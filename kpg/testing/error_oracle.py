"""A naive evaluator of Datalog programs with expressions that fail: the oracle for errors.

    evaluate(parse(text), inputs)  ==  (rows of every relation, names of the relations that have no answer)

An expression that fails on a tuple counts only if every literal that does not use its value holds; literals that use
it are ignored. A literal uses the value of `z = e` if it contains z, or a variable defined from z. So does a literal
with a variable that only such literals bind, and an atom that only they connect with the arguments of e. A relation has
no answer if an error counts in one of its rules, or if it reads a relation that has none.

The evaluator assumes every set of equations to fail in turn, ignores the literals that use their values, and enumerates
all tuples of the others. It works on programs as parsed and shares no code with the planner or the lowering.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, count, product
from typing import Any

from kpg.query.ir.literals import (
    Atom,
    Comparison,
    Disjunction,
    Formula,
    Negation,
    Test,
    Truth,
    variables,
)
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import AggregateTerm, CallTerm, ConstantTerm, Term, VariableTerm, WildcardTerm
from kpg.query.ir.terms import variables as term_variables
from kpg.testing.datalog_oracle import common_variables, compare, name_wildcards, row_fits
from kpg.testing.error_uses import bindable, definition, flattened, names_of, needs, sides, unbound_without, users_of
from kpg.testing.oracle_strata import relations_read, relations_read_by_aggregates, strata_of
from kpg.testing.oracle_values import call_functor

Rows = set[tuple[Any, ...]]
Env = dict[str, Any]
Solutions = tuple[list[Env], bool]  # the solutions of a body, and whether an error counts
OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class FailedTerm(Exception):
    """A term has no value."""


def evaluate(program: Program, inputs: Mapping[str, Iterable[tuple[Any, ...]]]) -> tuple[dict[str, Rows], set[str]]:
    """Return every relation of a program, given some inputs, and the relations that have no answer."""
    db: dict[str, Rows] = {relation.name: set(inputs.get(relation.name, ())) for relation in program.relations}
    for fact in program.facts:
        db[fact.relation].add(fact.values)
    failed: set[str] = set()
    for names in strata_of(program):
        rules = [rule for rule in program.rules if rule.heads[0].relation in names]
        while sum(add_rows(rule, db) for rule in rules):
            pass
        failed |= {head.relation for rule in rules if outcome(rule, db)[1] for head in rule.heads}
    return db, with_readers(program, failed)


def add_rows(rule: Rule, db: dict[str, Rows]) -> bool:
    """Add the rows that a rule derives; return whether there are new ones."""
    new = [(name, row) for name, row in outcome(rule, db)[0] if row not in db[name]]
    for name, row in new:
        db[name].add(row)
    return bool(new)


def with_readers(program: Program, failed: set[str]) -> set[str]:
    """Return relations and all that read them, directly or not."""
    while True:
        readers = {
            head.relation
            for rule in program.rules
            for head in rule.heads
            if any(name in failed for name, _ in [*relations_read(rule.body, 0), *relations_read_by_aggregates(head)])
        }
        if readers <= failed:
            return failed
        failed = failed | readers


def outcome(rule: Rule, db: dict[str, Rows]) -> tuple[list[tuple[str, tuple[Any, ...]]], bool]:
    """Return the rows that a rule derives, and whether an error counts."""
    outer = {variable.name for part in (*rule.heads, rule.body) for variable in variables(part)}
    rows: list[tuple[str, tuple[Any, ...]]] = []
    failed = False
    for body in alternatives(rule.body):
        solutions, error = solve(body, {}, db, outer)
        failed |= error
        for env in solutions:
            for head in rule.heads:
                try:
                    rows.append((head.relation, tuple(value(term, env, db, outer) for term in head.arguments)))
                except FailedTerm:
                    failed = True
    return rows, failed


def alternatives(formula: Formula, positive: bool = True) -> list[list[Formula]]:
    """Return a formula, or its negation, as alternatives of literals."""
    match formula:
        case Truth():
            return [[]] if formula.holds == positive else []
        case Negation():
            return alternatives(formula.formula, not positive)
        case Comparison():
            return [[formula if positive else Comparison(OPPOSITE[formula.op], formula.left, formula.right)]]
        case Test():
            return [[Test(formula.name, formula.arguments, formula.positive == positive)]]
        case Atom():
            return [[formula if positive else Negation(formula)]]
    parts = [alternatives(part, positive) for part in formula.parts]
    if isinstance(formula, Disjunction) == positive:
        return [body for part in parts for body in part]
    return [[literal for body in choice for literal in body] for choice in product(*parts)]


def solve(body: Sequence[Formula], env: Env, db: dict[str, Rows], outer: set[str]) -> Solutions:
    """Return the solutions of some literals, and whether an error counts."""
    literals = flattened(body)
    bound = set(env)
    defining = [index for index, literal in enumerate(literals) if definition(literal, literals, bound, outer)]
    users = {index: users_of(index, literals, bound, outer) for index in defining}
    solutions: list[Env] = []
    failed = False
    for size in range(len(defining) + 1):
        for failing in combinations(defining, size):
            if any(a in users[b] or b in users[a] for a, b in combinations(failing, 2)):
                continue
            ignored = {user for index in failing for user in users[index]}
            ignored |= unbound_without(ignored, literals, bound, outer)
            kept = [index for index in range(len(literals)) if index not in ignored]
            known = bindable([literals[index] for index in kept], bound, outer)
            if not all(needs(literals[index], literals, bound, outer) <= known for index in failing):
                continue
            for solution, error in enumerate_tuples(
                [(literals[i], i in defining) for i in kept], env, db, outer, False
            ):
                if failing and all(fails(literals[index], solution, db, outer) for index in failing):
                    failed = True
                elif not failing:
                    failed |= error
                    solutions += [] if error else [solution]
    return solutions, failed


def enumerate_tuples(
    literals: list[tuple[Formula, bool]], env: Env, db: dict[str, Rows], outer: set[str], error: bool
) -> Iterator[tuple[Env, bool]]:
    """Yield the tuples on which no literal is false, and whether one of them fails.

    An equation that defines a variable must not fail here: sets of failing ones are tried elsewhere.
    """
    if not literals:
        yield env, error
        return
    for position, (literal, defining) in enumerate(literals):
        if not is_ready(literal, env, outer):
            continue
        rest = literals[:position] + literals[position + 1 :]
        try:
            matches = list(bindings(literal, env, db, outer))
        except FailedTerm:
            if not defining:
                yield from enumerate_tuples(rest, env, db, outer, True)
            return
        for bound in matches:
            yield from enumerate_tuples(rest, bound, db, outer, error)
        return
    raise ValueError(f"unsafe: {literals}")


def is_ready(literal: Formula, env: Env, outer: set[str]) -> bool:
    """Return whether a literal can be evaluated."""
    if isinstance(literal, Atom) or names_of(literal, outer) <= env.keys():
        return True
    return any(
        names_of(Comparison("=", ConstantTerm(0, None), term), outer) <= env.keys() for _, term in sides(literal)
    )


def bindings(literal: Formula, env: Env, db: dict[str, Rows], outer: set[str]) -> Iterator[Env]:
    """Yield the bindings under which a literal holds."""
    match literal:
        case Atom():
            for row in db[literal.relation]:
                matched = match_row(literal.arguments, row, env)
                if matched is not None:
                    yield matched
        case Negation():
            assert isinstance(literal.formula, Atom)
            pattern = [
                None if isinstance(term, WildcardTerm) else value(term, env, db, outer)
                for term in literal.formula.arguments
            ]
            if not any(row_fits(row, pattern) for row in db[literal.formula.relation]):
                yield env
        case Comparison():
            for name, term in sides(literal):
                if name not in env:
                    yield {**env, name: value(term, env, db, outer)}
                    return
            if compare(literal.op, value(literal.left, env, db, outer), value(literal.right, env, db, outer)):
                yield env


def match_row(terms: Sequence[Term], row: tuple[Any, ...], env: Env) -> Env | None:
    """Return the bindings under which variables and constants equal a row, or None."""
    env = dict(env)
    for term, cell in zip(terms, row, strict=True):
        if isinstance(term, VariableTerm) and env.setdefault(term.name, cell) != cell:
            return None
        if isinstance(term, ConstantTerm) and term.value != cell:
            return None
    return env


def fails(literal: Formula, env: Env, db: dict[str, Rows], outer: set[str]) -> bool:
    """Return whether the term of a defining equation fails."""
    for _, term in sides(literal):
        if names_of(Comparison("=", ConstantTerm(0, None), term), outer) <= env.keys():
            try:
                value(term, env, db, outer)
            except FailedTerm:
                return True
    return False


def value(term: Term, env: Env, db: dict[str, Rows], outer: set[str]) -> Any:
    """Return the value of a term; raise FailedTerm if it has none."""
    match term:
        case ConstantTerm():
            return term.value
        case VariableTerm():
            return env[term.name]
        case AggregateTerm():
            return aggregate(term, env, db, outer)
    assert isinstance(term, CallTerm)
    arguments = tuple(value(argument, env, db, outer) for argument in term.arguments)
    try:
        (result,) = call_functor(term.functor, arguments)
    except (ZeroDivisionError, ValueError):
        raise FailedTerm from None
    if isinstance(result, int) and not -(2**63) <= result < 2**63:
        raise FailedTerm
    return result


def aggregate(term: AggregateTerm, env: Env, db: dict[str, Rows], outer: set[str]) -> Any:
    """Return the value of a count or sum; it fails if an error counts in its body."""
    inside = {variable.name for variable in variables(term.body)}
    targets = {variable.name for variable in term_variables(term.target)} if term.target is not None else set()
    outer = outer - (targets & inside)
    body, scope = name_wildcards(term.body, count()), inside | outer
    bound = {name: bound_value for name, bound_value in env.items() if name in outer}
    distinguishing = common_variables(body)
    bag: dict[Any, Any] = {}
    for literals in alternatives(body):
        if term.target is not None:
            literals = [*literals, Comparison("=", VariableTerm("#target"), term.target)]
        solutions, failed = solve(literals, bound, db, scope)
        if failed:
            raise FailedTerm
        for solution in solutions:
            aggregated = solution.get("#target", 1)
            bag[aggregated, *((name, solution[name]) for name in sorted(distinguishing & solution.keys()))] = aggregated
    return len(bag) if term.op == "count" else sum(bag.values())
