"""The meaning of relations that are not just the rows that their rules derive, for the oracle of Datalog.

    meaning(program, "r", rows, db, solve)    the rows of r, given all rows that its rules derive

Brute force over all pairs of rows; shares no code with the rewrites.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kpg.query.ir.literals import Atom, Comparison, Conjunction, Formula
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import CallTerm, ConstantTerm

Rows = set[tuple[Any, ...]]
Holds = Callable[[Formula], bool]
AGGREGATES = {"count": "count", "sum": "sum", "min": "min", "max": "max", "mean": "mean", "average": "mean"}


def aggregates_of(rule: Rule) -> dict[int, str]:
    """Return the aggregates in the head of a rule, by column."""
    return {
        column: AGGREGATES[term.functor]
        for column, term in enumerate(rule.head.arguments)
        if isinstance(term, CallTerm) and term.functor in AGGREGATES and len(term.arguments) == 1
    }


def without_aggregates(rule: Rule) -> Rule:
    """Return a rule with the arguments of the aggregates in its head."""
    columns = aggregates_of(rule)
    arguments = (
        term.arguments[0] if column in columns and isinstance(term, CallTerm) else term
        for column, term in enumerate(rule.head.arguments)
    )
    return replace(rule, heads=(replace(rule.head, arguments=tuple(arguments)),))


def meaning(program: Program, name: str, rows: Rows, holds: Holds) -> Rows:
    """Return the rows of a relation, given all rows that its rules derive."""
    rules = [rule for rule in program.rules if rule.head.relation == name]
    columns = next((aggregates_of(rule) for rule in rules if aggregates_of(rule)), {})
    if columns:
        rows = aggregated(rows, columns)
    for_subsumption = [rule for rule in rules if rule.subsumes]
    if for_subsumption:
        rows = unsubsumed(rows, for_subsumption, holds)
    if program.by_name()[name].kind == "equivalence":
        rows = equivalence(rows)
    return rows


def aggregated(rows: Rows, columns: dict[int, str]) -> Rows:
    """Return one row for each group of rows that agree outside the aggregated columns."""
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in rows:
        groups.setdefault(tuple(v for n, v in enumerate(row) if n not in columns), []).append(row)
    functions = {
        "count": len, "sum": sum, "min": min, "max": max, "mean": lambda values: sum(values) / len(values),
    }  # fmt: skip
    return {
        tuple(
            functions[columns[n]]([row[n] for row in group]) if n in columns else group[0][n]  # type: ignore[operator]
            for n in range(len(group[0]))
        )
        for group in groups.values()
    }


def unsubsumed(rows: Rows, rules: list[Rule], holds: Holds) -> Rows:
    """Return the rows that no other one subsumes; of two that subsume each other, the lesser one."""
    pairs = {(a, b) for a in rows for b in rows if a != b and any(is_subsumed(rule, a, b, holds) for rule in rules)}
    gone = {a for a, b in pairs if (b, a) not in pairs or b < a}
    return rows - gone


def is_subsumed(rule: Rule, row: tuple[Any, ...], other: tuple[Any, ...], holds: Holds) -> bool:
    """Return whether a rule says that `other` subsumes `row`."""
    assert isinstance(rule.body, Conjunction) and isinstance(rule.body.parts[0], Atom)
    dominating = rule.body.parts[0]
    equations = [
        equation for atom, values in ((rule.head, row), (dominating, other)) for equation in equations_of(atom, values)
    ]
    return holds(Conjunction((*equations, *rule.body.parts[1:])))


def equations_of(atom: Atom, values: tuple[Any, ...]) -> list[Formula]:
    """Return the equations of an atom's arguments with the values of a row."""
    return [
        Comparison("=", term, ConstantTerm(value, None)) for term, value in zip(atom.arguments, values, strict=True)
    ]


def equivalence(pairs: Rows) -> Rows:
    """Return the least equivalence relation on the elements of some pairs that contains the pairs."""
    rows = {(end, end) for pair in pairs for end in pair} | pairs | {(b, a) for a, b in pairs}
    while True:
        more = rows | {(a, d) for a, b in rows for c, d in rows if b == c}
        if more == rows:
            return rows
        rows = more
