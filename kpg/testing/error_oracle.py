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
    all_variables,
    variables,
)
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import AggregateTerm, CallTerm, ConstantTerm, Term, VariableTerm, WildcardTerm
from kpg.query.ir.terms import variables as term_variables
from kpg.testing.datalog_oracle import (
    call_functor,
    common_variables,
    compare,
    name_wildcards,
    relations_read,
    relations_read_by_aggregates,
    row_fits,
    strata_of,
)

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
            for found, error in enumerate_tuples([(literals[i], i in defining) for i in kept], env, db, outer, False):
                if failing and all(fails(literals[index], found, db, outer) for index in failing):
                    failed = True
                elif not failing:
                    failed |= error
                    solutions += [] if error else [found]
    return solutions, failed


def flattened(body: Sequence[Formula]) -> list[Formula]:
    """Return literals with equations for the computed arguments of atoms."""
    numbers = count()
    equations: list[Formula] = []

    def flat(term: Term) -> Term:
        if not isinstance(term, (CallTerm, AggregateTerm)):
            return term
        variable = VariableTerm(f"#{next(numbers)}")
        equations.append(Comparison("=", variable, term))
        return variable

    literals: list[Formula] = []
    for literal in body:
        if isinstance(literal, Atom):
            literal = Atom(literal.relation, tuple(map(flat, literal.arguments)))
        elif isinstance(literal, Negation) and isinstance(literal.formula, Atom):
            literal = Negation(Atom(literal.formula.relation, tuple(map(flat, literal.formula.arguments))))
        literals.append(literal)
    return literals + equations


def names_of(literal: Formula, outer: set[str]) -> set[str]:
    """Return the variables of a literal; of an aggregate those that also occur outside of it."""
    return {variable.name for variable in variables(literal)} | {
        variable.name for variable in all_variables(literal) if variable.name in outer
    }


def sides(literal: Formula) -> Iterator[tuple[str, Term]]:
    """Yield (variable, term) for the sides of an equation that may define a variable."""
    if isinstance(literal, Comparison) and literal.op == "=":
        for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
            if isinstance(side, VariableTerm):
                yield side.name, other


def definition(literal: Formula, literals: list[Formula], bound: set[str], outer: set[str]) -> tuple[str, Term] | None:
    """Return the variable and the term if a literal defines a variable that the arguments of the term do not need."""
    for name, term in sides(literal):
        needed = names_of(Comparison("=", ConstantTerm(0, None), term), outer)
        tainted = defined_from(name, literals, outer)
        free = [other for other in literals if not names_of(other, outer) & tainted]
        if name not in bound and needed <= bindable(free, bound, outer) and not isinstance(term, VariableTerm):
            return name, term
    return None


def defined_from(name: str, literals: list[Formula], outer: set[str]) -> set[str]:
    """Return a variable, and those that only equations define, from it."""
    tainted = {name}
    in_atoms = {other for literal in literals if isinstance(literal, Atom) for other in names_of(literal, outer)}
    while True:
        more = {
            other
            for literal in literals
            for other, term in sides(literal)
            if names_of(Comparison("=", ConstantTerm(0, None), term), outer) & tainted and other not in in_atoms
        }
        if more <= tainted:
            return tainted
        tainted |= more


def bindable(literals: Iterable[Formula], bound: set[str], outer: set[str]) -> set[str]:
    """Return the variables that some literals bind."""
    literals = list(literals)
    names = bound | {name for literal in literals if isinstance(literal, Atom) for name in names_of(literal, outer)}
    while True:
        more = {
            name
            for literal in literals
            for name, term in sides(literal)
            if names_of(Comparison("=", ConstantTerm(0, None), term), outer) <= names
        }
        if more <= names:
            return names
        names |= more


def users_of(index: int, literals: list[Formula], bound: set[str], outer: set[str]) -> set[int]:
    """Return the literals that use the value of an equation: directly, or connected with it by such atoms alone."""
    found = definition(literals[index], literals, bound, outer)
    assert found is not None
    values, users = {found[0]}, {index}
    while True:
        more = {i for i, literal in enumerate(literals) if names_of(literal, outer) & values} - users
        if not more:
            break
        users |= more
        for user in more:
            defined = definition(literals[user], literals, bound, outer)
            values |= {defined[0]} if defined else set()
    while True:
        more = unbound_without(users, literals, bound, outer) | unconnected(index, users, literals, bound, outer)
        if not more:
            return users
        users |= more


def needs(literal: Formula, literals: list[Formula], bound: set[str], outer: set[str]) -> set[str]:
    """Return the variables that the term of a defining equation needs."""
    found = definition(literal, literals, bound, outer)
    assert found is not None
    return names_of(Comparison("=", ConstantTerm(0, None), found[1]), outer)


def unbound_without(users: set[int], literals: list[Formula], bound: set[str], outer: set[str]) -> set[int]:
    """Return the other literals with variables that only the users bind."""
    rest = [index for index in range(len(literals)) if index not in users]
    known = bindable([literals[index] for index in rest], bound, outer)
    return {index for index in rest if not names_of(literals[index], outer) <= known}


def unconnected(index: int, users: set[int], literals: list[Formula], bound: set[str], outer: set[str]) -> set[int]:
    """Return the other literals that only atoms among the users connect with the arguments of an equation."""
    arguments = names_of(literals[index], outer)
    joined = {n for user in users if isinstance(literals[user], Atom) for n in names_of(literals[user], outer)} - bound
    found: set[int] = set()
    for part in connected(literals, users, bound, outer):
        names = {name for i in part for name in names_of(literals[i], outer)} - bound
        if names & joined and not names & arguments:
            found |= part
    return found


def connected(literals: list[Formula], without: set[int], bound: set[str], outer: set[str]) -> list[set[int]]:
    """Return the other literals in parts that share no variables."""
    parts = [{index} for index in range(len(literals)) if index not in without]

    def names(part: set[int]) -> set[str]:
        return {name for index in part for name in names_of(literals[index], outer)} - bound

    while True:
        pair = next(((a, b) for a, b in combinations(parts, 2) if names(a) & names(b)), None)
        if pair is None:
            return parts
        parts = [part for part in parts if part not in pair] + [pair[0] | pair[1]]


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
            found = list(bindings(literal, env, db, outer))
        except FailedTerm:
            if not defining:
                yield from enumerate_tuples(rest, env, db, outer, True)
            return
        for bound in found:
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
    for term, found in zip(terms, row, strict=True):
        if isinstance(term, VariableTerm) and env.setdefault(term.name, found) != found:
            return None
        if isinstance(term, ConstantTerm) and term.value != found:
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
    bound = {name: found for name, found in env.items() if name in outer}
    distinguishing = common_variables(body)
    bag: dict[Any, Any] = {}
    for literals in alternatives(body):
        if term.target is not None:
            literals = [*literals, Comparison("=", VariableTerm("#target"), term.target)]
        solutions, failed = solve(literals, bound, db, scope)
        if failed:
            raise FailedTerm
        for solution in solutions:
            found = solution.get("#target", 1)
            bag[found, *((name, solution[name]) for name in sorted(distinguishing & solution.keys()))] = found
    return len(bag) if term.op == "count" else sum(bag.values())
