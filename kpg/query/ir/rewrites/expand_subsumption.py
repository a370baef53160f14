"""Subsumption: keep only the rows of a relation that no other of its rows subsumes.

    r(x, a) <= r(x, b) :- better(b, a).
becomes, with `@r.rows` in the heads of all other rules of r,
    @r.subsumed(x, a) :- @r.rows(x, a), @r.rows(x, b), better(b, a), a != b.
    r(x, a) :- @r.rows(x, a), !@r.subsumed(x, a).
    @r.rows(x, a) :- r(x, a).                                  only if r is recursive

So in a recursion each round keeps, of the rows so far and the rows derived from them, those that none other subsumes. A
row never subsumes itself. Of two rows that subsume each other the lesser one stays; where the body cannot exclude such
pairs, a relation `@r.pairs` holds all of them. If a single column decides, as in `r(x, a) <= r(x, b) :- b < a`, the
relation has a minimum (or maximum) for each group instead, and no pair of rows is formed.
"""

from __future__ import annotations

from dataclasses import replace

from kpg.errors import ProgramError
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Disjunction, Formula, Negation, Truth
from kpg.query.ir.program import Program, Relation, RelationColumn, Rule, part_of
from kpg.query.ir.rewrites.aggregate_heads import (
    SPECIAL,
    copy_rule,
    is_recursive,
    reduce_columns,
    variable_of,
    with_kind,
)
from kpg.query.ir.rewrites.single_head import single_head
from kpg.query.ir.terms import Term, VariableTerm
from kpg.query.ir.terms import variables as variables_of_term
from kpg.query.source_text import failure

SUBSUMED = "subsumed"  # the part of a relation that holds the rows to drop
STRICT = ("<", ">")
ORDERED = ("<", "<=", ">", ">=")


def expand_subsumption(program: Program) -> Program:
    """Return the program without subsumptive rules."""
    if not any(rule.subsumes for rule in program.rules):
        return program
    program = single_head(program)
    for name in dict.fromkeys(rule.head.relation for rule in program.rules if rule.subsumes):
        rules = [rule for rule in program.rules_of(name) if rule.subsumes]
        for rule in rules:
            check_rule(rule, program.by_name()[name])
        program = program.with_rules(tuple(rule for rule in program.rules if rule not in rules))
        column = compared_column(rules)
        if column is not None:
            number, op = column
            program = reduce_columns(program, name, {number: (op, rules[0].at)}, "subsumed")
        else:
            program = drop_subsumed(program, name, rules)
    return program


def check_rule(rule: Rule, relation: Relation) -> None:
    """Raise ProgramError if a subsumptive rule compares rows of two relations, or of a special one."""
    dominating = parts_of(rule)[0]
    if dominating.relation != rule.head.relation:
        what = f"a row of {rule.head.relation} cannot be subsumed by a row of {dominating.relation}"
        raise failure(ProgramError, what, dominating.at, hint="Both sides of <= name the same relation.")
    if relation.kind in SPECIAL:
        what = f"rows of {relation.name} cannot be subsumed: it is {SPECIAL[relation.kind]}"
        raise failure(ProgramError, what, rule.at, hint="Subsume in a relation of its own, defined from this one.")


def parts_of(rule: Rule) -> tuple[Atom, Formula]:
    """Return the row that subsumes the head of a rule, and the condition."""
    assert isinstance(rule.body, Conjunction) and isinstance(rule.body.parts[0], Atom)
    return rule.body.parts[0], Conjunction(rule.body.parts[1:], rule.body.at)


def differing(rule: Rule) -> list[tuple[int, Term, Term]]:
    """Return the columns in which the two rows of a rule may differ: the column and both terms."""
    columns = enumerate(zip(rule.head.arguments, parts_of(rule)[0].arguments, strict=True))
    return [(column, ours, theirs) for column, (ours, theirs) in columns if ours != theirs]


def compared_column(rules: list[Rule]) -> tuple[int, str] | None:
    """Return the only column that decides, and whether its minimum or maximum stays; None if others decide as well."""
    (_, condition), different = parts_of(rules[0]), differing(rules[0])
    assert isinstance(condition, Conjunction)
    if len(rules) > 1 or len(different) != 1 or len(condition.parts) != 1:
        return None
    terms = [*rules[0].head.arguments, different[0][2]]
    if not all(isinstance(term, VariableTerm) for term in terms) or len(set(terms)) < len(terms):
        return None
    (column, ours, theirs), test = different[0], condition.parts[0]
    if not isinstance(test, Comparison) or test.op not in ORDERED or {test.left, test.right} != {ours, theirs}:
        return None
    keeps_less = (test.left == theirs) == (test.op in ("<", "<="))
    return column, "min" if keeps_less else "max"


def drop_subsumed(program: Program, name: str, rules: list[Rule]) -> Program:
    """Return a program in which a relation holds the rows that no other of its rows subsumes."""
    relation = program.by_name()[name]
    rows = replace(relation, name=part_of(name, "rows"), generated=True, kind="subsumed", input_of=name)
    subsumed = replace(rows, name=part_of(name, SUBSUMED), input_of="")
    derived = [with_head(rule, rows.name) if rule.head.relation == name else rule for rule in program.rules]
    order = list(range(relation.arity))
    if is_recursive(program, name):
        derived.append(copy_rule(relation, rows, order))
    generated = [rows, subsumed]
    if len(rules) == 1 and is_antisymmetric(rules[0]):
        derived.append(pair_rule(rules[0], rows.name, subsumed.name))
    else:
        pairs = pairs_relation(relation)
        generated.append(pairs)
        derived += [pair_rule(rule, rows.name, pairs.name) for rule in rules]
        derived += subsumed_rules(relation, pairs.name, subsumed.name)
    kept = copy_rule(rows, relation, order)
    own = tuple(variable_of(relation, column) for column in order)
    body = Conjunction((kept.body, Negation(Atom(subsumed.name, own, relation.at), relation.at)), relation.at)
    derived.append(replace(kept, body=body))
    return replace(program, relations=(*with_kind(program, name, "subsumed"), *generated), rules=tuple(derived))


def with_head(rule: Rule, name: str) -> Rule:
    """Return a rule that derives rows of another relation."""
    return replace(rule, heads=(replace(rule.head, relation=name),))


def pair_rule(rule: Rule, rows: str, head: str) -> Rule:
    """Return the rule for rows that other rows subsume; a head for pairs has the columns of both rows."""
    dominating, condition = parts_of(rule)
    ours = replace(rule.head, relation=rows)
    theirs = replace(dominating, relation=rows)
    tests = tuple(Comparison("!=", first, second, rule.at) for _, first, second in differing(rule))
    unequal: Formula = Disjunction(tests, rule.at) if tests else Truth(False, rule.at)
    columns = ours.arguments if head.endswith(SUBSUMED) else (*ours.arguments, *theirs.arguments)
    return Rule((Atom(head, columns, rule.at),), Conjunction((ours, theirs, condition, unequal), rule.at), rule.at)


def is_antisymmetric(rule: Rule) -> bool:
    """Return whether the condition alone excludes two different rows that subsume each other.

    It does if it compares some pair of differing variables strictly, or all of them: exchanged, both comparisons hold
    only where the variables are equal.
    """
    _, condition = parts_of(rule)
    assert isinstance(condition, Conjunction)
    tests = [part for part in condition.parts if isinstance(part, Comparison) and part.op in ORDERED]
    pairs = []
    for _, ours, theirs in differing(rule):
        ours_inside, theirs_inside = list(variables_of_term(ours)), list(variables_of_term(theirs))
        if not ours_inside or len(ours_inside) != len(theirs_inside):
            return False
        pairs += [frozenset(pair) for pair in zip(ours_inside, theirs_inside, strict=True) if pair[0] != pair[1]]
    compared = {frozenset((test.left, test.right)): test.op for test in tests}
    return any(compared.get(pair) in STRICT for pair in pairs) or all(pair in compared for pair in pairs)


def pairs_relation(relation: Relation) -> Relation:
    """Return the relation for pairs of rows: the columns of the subsumed row, then those of the other."""
    others = tuple(RelationColumn(f"other {item.name}", item.type, item.kind, item.at) for item in relation.columns)
    name = part_of(relation.name, "pairs")
    return Relation(name, (*relation.columns, *others), relation.at, generated=True, kind="subsumed")


def subsumed_rules(relation: Relation, pairs: str, subsumed: str) -> list[Rule]:
    """Return the rules for subsumed rows: one that no row subsumes in turn, and the greater of two equals."""
    at = relation.at
    ours = tuple(variable_of(relation, column) for column in range(relation.arity))
    theirs = tuple(replace(variable, name=f"other {variable.name}") for variable in ours)
    pair, reverse = Atom(pairs, (*ours, *theirs), at), Atom(pairs, (*theirs, *ours), at)
    head = (Atom(subsumed, ours, at),)
    less = [
        Conjunction(
            (
                *(Comparison("=", theirs[before], ours[before], at) for before in range(column)),
                Comparison("<", theirs[column], ours[column], at),
            ),
            at,
        )
        for column in range(relation.arity)
    ]
    return [
        Rule(head, Conjunction((pair, Negation(reverse, at)), at), at),
        Rule(head, Conjunction((pair, reverse, Disjunction(tuple(less), at)), at), at),
    ]
