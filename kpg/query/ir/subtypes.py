"""Declared types: a variable must fit all of its places in the body at once, and the place it has in the head."""

from __future__ import annotations

from kpg.errors import TypeMismatch
from kpg.query.ir.literals import atoms
from kpg.query.ir.program import NamedType, Relation, Rule
from kpg.query.ir.terms import VariableTerm
from kpg.query.source_text import failure


def check_subtypes(rule: Rule, relations: dict[str, Relation], types: dict[str, NamedType]) -> None:
    """Refuse variables whose places have types that no value is of, and heads that could hold a wrong one."""
    found: dict[str, list[str]] = {}
    for atom, positive in atoms(rule.body):
        for term, column in zip(atom.arguments, relations[atom.relation].columns, strict=True):
            if isinstance(term, VariableTerm) and positive:
                found.setdefault(term.name, []).append(column.type)
                if not meet(found[term.name], types):
                    types_of = " and ".join(dict.fromkeys(found[term.name]))
                    raise failure(
                        TypeMismatch,
                        f"{term.written} cannot be of the types {types_of} at once",
                        term.at,
                        hint="Neither is a subtype of the other.",
                    )
    for head in rule.heads:
        for term, column in zip(head.arguments, relations[head.relation].columns, strict=True):
            if isinstance(term, VariableTerm) and term.name in found:
                given = meet(found[term.name], types)
                if not any(column.type in above(name, types) for name in given):
                    raise failure(
                        TypeMismatch,
                        f"{term.written} is of type {' or '.join(sorted(given))}, not {column.type}",
                        term.at,
                        detail=f"It stands as {column.name} of {head.relation}.",
                        hint=f"Declare the column as {sorted(given)[0]}, or a type above it.",
                    )


def above(name: str, types: dict[str, NamedType]) -> frozenset[str]:
    """The types that values of a type are also of."""
    return types[name].above if name in types else frozenset({name})


def meet(names: list[str], types: dict[str, NamedType]) -> set[str]:
    """The types among some, or below, that are at once of all of them."""
    candidates = set(names) | {name for name, each in types.items() if set(names) <= each.above}
    common = {name for name in candidates if all(other in above(name, types) for other in names)}
    wider = {name: above(name, types) for name in common}
    return {name for name in common if all(name in wider[other] for other in common if other in wider[name])}
