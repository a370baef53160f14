"""Check declared subtypes: a variable must have a type that fits all its columns in the body, and its head column.

As in Soufflé, a field of a record in the head narrows the type of a variable, like a column of the body: a number may
stand where the field is declared as a subtype of number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from kpg.errors import TypeMismatch
from kpg.query.ir.constructors import Signatures
from kpg.query.ir.literals import Atom, atoms
from kpg.query.ir.primitive_types import PRIMITIVE_TYPES
from kpg.query.ir.program import NamedType, Relation, Rule, written_name
from kpg.query.ir.terms import CallTerm, Kind, Term, VariableTerm
from kpg.query.source_text import failure


def check_subtypes(
    rule: Rule, relations: dict[str, Relation], types: dict[str, NamedType], signatures: Signatures
) -> None:
    """Raise TypeMismatch if the body's types of a variable have no value in common, or do not fit the head."""
    types_of: dict[str, list[str]] = {}
    for atom, positive in atoms(rule.body):
        for use in uses(atom, relations, signatures) if positive else ():
            known = types_of.setdefault(use.variable.name, [])
            if use.type in known:
                continue
            known.append(use.type)
            if not common_subtypes(types_of[use.variable.name], types):
                names = " and ".join(known)
                what = f"{use.variable.written} cannot be of the types {names} at once"
                raise failure(TypeMismatch, what, use.variable.at, hint="Neither is a subtype of the other.")
    in_heads = [use for head in rule.heads for use in uses(head, relations, signatures)]
    for use in sorted(in_heads, key=lambda use: not use.is_field):  # fields first: they narrow the types
        known = types_of.get(use.variable.name, [])
        body_types = common_subtypes(known, types) if known else set()
        if use.is_field and common_subtypes([*known, use.type], types):
            types_of[use.variable.name] = [*known, use.type]
        elif body_types and not any(use.type in supertypes(name, types) for name in body_types):
            raise failure(
                TypeMismatch,
                f"{use.variable.written} is of type {' or '.join(sorted(body_types))}, not {use.declared}",
                use.variable.at,
                detail=f"It is used as {use.role}.",
                hint=f"Declare the column as {sorted(body_types)[0]}, or as a supertype of it.",
            )


class TypedUse(NamedTuple):
    """A variable with a declared type: a column, or a field of a record in a column."""

    variable: VariableTerm
    declared: str
    role: str  # in messages: "x of edge"
    is_field: bool

    @property
    def type(self) -> str:
        """The declared type; int32 and the like stand for the type of their kind."""
        return PRIMITIVE_TYPES.get(self.declared, self.declared)


def uses(atom: Atom, relations: dict[str, Relation], signatures: Signatures) -> Iterator[TypedUse]:
    """Yield the variables of an atom, also those in its records, with their declared types."""
    for term, column in zip(atom.arguments, relations[atom.relation].columns, strict=True):
        yield from uses_in(
            term, column.type, column.kind, f"{column.name} of {written_name(atom.relation)}", signatures
        )


def uses_in(
    term: Term, declared: str, kind: Kind, role: str, signatures: Signatures, is_field: bool = False
) -> Iterator[TypedUse]:
    """Yield the variables of a term in a role: a column, or a field of a record."""
    if isinstance(term, VariableTerm):
        yield TypedUse(term, declared, role, is_field)
    elif isinstance(term, CallTerm):
        constructor = signatures.constructor(replace(term, kind=kind))
        if constructor is not None and constructor.types:
            for field, argument in enumerate(term.arguments):
                inside = f"{constructor.names[field]} of {constructor.type}"
                declared, kind = constructor.types[field], constructor.kinds[field]
                yield from uses_in(argument, declared, kind, inside, signatures, is_field=True)


def supertypes(name: str, types: dict[str, NamedType]) -> frozenset[str]:
    """Return the supertypes of a type, itself included."""
    return types[name].supertypes if name in types else frozenset({name})


def common_subtypes(names: list[str], types: dict[str, NamedType]) -> set[str]:
    """Return the widest types that are subtypes of all the named ones."""
    candidates = set(names) | {name for name, type_ in types.items() if set(names) <= type_.supertypes}
    common = {name for name in candidates if all(other in supertypes(name, types) for other in names)}
    wider = {name: supertypes(name, types) for name in common}
    return {name for name in common if all(name in wider[other] for other in common if other in wider[name])}
