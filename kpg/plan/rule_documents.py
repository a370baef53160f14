"""The rules of a recursion in a plan document, as JSON.

    read_system(write_system(system)) == system        in any process

Rules with symbols as constants cannot be written: each process numbers symbols in its own way. The words "atom",
"comparison" and "negation" are names on the wire.
"""

from __future__ import annotations

from typing import Any

from kpg.errors import BadPlan, ProtocolError
from kpg.seminaive.recursion_rules import (
    Literal,
    RecursionAtom,
    RecursionComparison,
    RecursionNegation,
    RecursionRule,
    RuleSystem,
)


def write_system(system: RuleSystem) -> dict[str, Any]:
    """Return the rules of a recursion as values for JSON."""
    if system.has_symbols:
        raise BadPlan(f"{system.name} has texts in its rules and cannot be sent to a worker")
    return {
        "name": system.name,
        "arities": list(system.arities),
        "derived": system.derived,
        "rules": [[write_atom(rule.head), list(map(write_literal, rule.body))] for rule in system.rules],
        "max_rounds": system.max_rounds,
        "insert_only": system.insert_only,
        "copies": list(system.copies),
    }


def read_system(written: dict[str, Any]) -> RuleSystem:
    """Return the recursion that JSON describes."""
    rules = tuple(RecursionRule(read_atom(head), tuple(map(read_literal, body))) for head, body in written["rules"])
    return RuleSystem(
        str(written["name"]),
        tuple(map(int, written["arities"])),
        int(written["derived"]),
        rules,
        int(written["max_rounds"]),
        bool(written["insert_only"]),
        copies=tuple(map(int, written["copies"])),
    )


def write_literal(literal: Literal) -> list[Any]:
    """Return a literal of a body as nested lists."""
    match literal:
        case RecursionAtom():
            return ["atom", *write_atom(literal)]
        case RecursionNegation():
            return ["negation", *write_atom(literal.atom)]
        case RecursionComparison():
            return ["comparison", literal.op, literal.left, literal.right]


def read_literal(written: list[Any]) -> Literal:
    """Return the literal that nested lists describe."""
    match written:
        case ["atom", *atom]:
            return read_atom(atom)
        case ["negation", *atom]:
            return RecursionNegation(read_atom(atom))
        case ["comparison", str(op), str() | int() as left, str() | int() as right]:
            return RecursionComparison(op, left, right)
    raise ProtocolError("the plan has an unknown kind of literal", detail=repr(written)[:200])


def write_atom(atom: RecursionAtom) -> list[Any]:
    """Return an atom as its relation and its terms."""
    return [atom.relation, list(atom.terms)]


def read_atom(written: list[Any]) -> RecursionAtom:
    """Return the atom of a relation and terms."""
    relation, terms = written
    return RecursionAtom(int(relation), tuple(terms))
