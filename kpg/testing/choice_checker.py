"""Check an answer of a program with choice domains: whether an evaluation from scratch could have given it.

    check_choices(program, inputs, answer)     raises AssertionError if the answer is not valid or not maximal

valid     the functional dependencies hold; each row has a derivation from chosen rows; all other relations are exactly
          what their rules derive from the chosen rows
maximal   no further row that the rules derive could be added to a relation with choice domains
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kpg.query.ir.program import Program, Relation
from kpg.testing.datalog_oracle import Rows, convert_row, derive, evaluate


def check_choices(
    program: Program, inputs: Mapping[str, Iterable[tuple[Any, ...]]], answer: Mapping[str, Rows]
) -> None:
    """Assert that an answer, the rows of all relations, is valid and maximal."""
    special = [relation for relation in program.relations if relation.kind == "choice"]
    chosen = {relation.name: answer[relation.name] for relation in special}
    for relation in special:
        assert is_functional(relation, chosen[relation.name]), f"{relation.name} has two rows with one value"
    db = evaluate(program, inputs, chosen)
    for name, rows in answer.items():
        assert db[name] == rows, f"{name} is not what the rules derive from the chosen rows"
    for relation in special:
        for row in candidates(program, relation.name, inputs, db) - chosen[relation.name]:
            assert not is_functional(relation, chosen[relation.name] | {row}), f"{relation.name} could have {row}"


def is_functional(relation: Relation, rows: Rows) -> bool:
    """Return whether no two rows have the same value in a domain."""
    return all(
        len({tuple(row[column] for column in domain) for row in rows}) == len(rows) for domain in relation.domains
    )


def candidates(
    program: Program, name: str, inputs: Mapping[str, Iterable[tuple[Any, ...]]], db: dict[str, Rows]
) -> Rows:
    """Return the rows of a relation that are given, or that rules derive from the rows of an answer in one step."""
    rows = {tuple(row) for row in inputs.get(name, ())}
    rows |= {convert_row(program, name, fact.values) for fact in program.facts if fact.relation == name}
    for rule in program.rules:
        rows |= {convert_row(program, name, row) for head, row in derive(rule, db) if head == name}
    return rows
