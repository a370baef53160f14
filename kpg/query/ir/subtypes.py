"""Check declared subtypes: a variable must have a type that fits all its columns in the body, and its head column."""

from __future__ import annotations

from kpg.errors import TypeMismatch
from kpg.query.ir.literals import atoms
from kpg.query.ir.primitive_types import PRIMITIVE_TYPES
from kpg.query.ir.program import NamedType, Relation, Rule, written_name
from kpg.query.ir.terms import VariableTerm
from kpg.query.source_text import failure


def check_subtypes(rule: Rule, relations: dict[str, Relation], types: dict[str, NamedType]) -> None:
    """Raise TypeMismatch if the body's types of a variable have no value in common, or do not fit the head."""
    column_types: dict[str, list[str]] = {}
    for atom, positive in atoms(rule.body):
        for term, column in zip(atom.arguments, relations[atom.relation].columns, strict=True):
            if isinstance(term, VariableTerm) and positive:
                column_types.setdefault(term.name, []).append(PRIMITIVE_TYPES.get(column.type, column.type))
                if not common_subtypes(column_types[term.name], types):
                    names = " and ".join(dict.fromkeys(column_types[term.name]))
                    raise failure(
                        TypeMismatch,
                        f"{term.written} cannot be of the types {names} at once",
                        term.at,
                        hint="Neither is a subtype of the other.",
                    )
    for head in rule.heads:
        for term, column in zip(head.arguments, relations[head.relation].columns, strict=True):
            if isinstance(term, VariableTerm) and term.name in column_types:
                body_types = common_subtypes(column_types[term.name], types)
                expected = PRIMITIVE_TYPES.get(column.type, column.type)
                if not any(expected in supertypes(name, types) for name in body_types):
                    raise failure(
                        TypeMismatch,
                        f"{term.written} is of type {' or '.join(sorted(body_types))}, not {column.type}",
                        term.at,
                        detail=f"It is used as {column.name} of {written_name(head.relation)}.",
                        hint=f"Declare the column as {sorted(body_types)[0]}, or as a supertype of it.",
                    )


def supertypes(name: str, types: dict[str, NamedType]) -> frozenset[str]:
    """Return the supertypes of a type, itself included."""
    return types[name].supertypes if name in types else frozenset({name})


def common_subtypes(names: list[str], types: dict[str, NamedType]) -> set[str]:
    """Return the widest types that are subtypes of all the named ones."""
    candidates = set(names) | {name for name, type_ in types.items() if set(names) <= type_.supertypes}
    common = {name for name in candidates if all(other in supertypes(name, types) for other in names)}
    wider = {name: supertypes(name, types) for name in common}
    return {name for name in common if all(name in wider[other] for other in common if other in wider[name])}
