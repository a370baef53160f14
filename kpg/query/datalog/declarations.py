"""The types that a program declares. A declaration may use types that are declared later.

.type A <: symbol        every A is a symbol
.type A = symbol         two names for one type
.type A = B | C          every B and every C is an A
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.errors import ProgramError, UndefinedName
from kpg.query.ir.program import NamedType
from kpg.query.ir.terms import Kind
from kpg.query.source_text import Position, did_you_mean, failure

PRIMITIVE: tuple[Kind, ...] = ("number", "unsigned", "float", "symbol")


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """One declaration: a name and the types that define it."""

    name: str
    form: str  # subtype, alias or union
    parts: tuple[tuple[str, Position], ...]
    at: Position


class DeclaredTypes:
    """The declared types by name, besides the primitive ones."""

    def __init__(self) -> None:
        self.declared: dict[str, TypeDeclaration] = {}

    def declare(self, name: str, form: str, parts: list[tuple[str, Position]], at: Position) -> None:
        """Add a type; its parts may be declared later."""
        if name in self.declared or name in PRIMITIVE:
            hint = "Remove one of the declarations, or choose another name."
            raise failure(ProgramError, f"type {name!r} is declared twice", at, hint=hint)
        self.declared[name] = TypeDeclaration(name, form, tuple(parts), at)

    def kind(self, name: str, at: Position, through: tuple[str, ...] = ()) -> Kind:
        """Return the primitive kind of a type's values; `through` are the types that led to this one."""
        for primitive in PRIMITIVE:
            if name == primitive:
                return primitive
        declaration = self.declared.get(name)
        if declaration is None:
            names = [*self.declared, *PRIMITIVE]
            raise failure(UndefinedName, f"no type is called {name!r}", at, hint=did_you_mean(name, names))
        if name in through:
            hint = "Define it by a primitive type, for example symbol."
            raise failure(ProgramError, f"type {name!r} is defined by itself", declaration.at, hint=hint)
        kinds = {part: self.kind(part, part_at, (*through, name)) for part, part_at in declaration.parts}
        if len(set(kinds.values())) > 1:
            detail = ", ".join(f"{part} is {kind}" for part, kind in kinds.items())
            what = f"the parts of type {name!r} are of different kinds"
            hint = "Combine types of one kind only."
            raise failure(ProgramError, what, declaration.at, detail=f"{detail}.", hint=hint)
        return next(iter(kinds.values()))

    def resolved(self) -> dict[str, NamedType]:
        """Return every type with its kind and all its supertypes."""
        kinds = {name: self.kind(name, declaration.at) for name, declaration in self.declared.items()}
        kinds |= {name: name for name in PRIMITIVE}
        supertypes: dict[str, set[str]] = {name: {name, kind} for name, kind in kinds.items()}
        for declaration in self.declared.values():
            for part, _ in declaration.parts:
                if declaration.form != "union":
                    supertypes[declaration.name].add(part)
                if declaration.form != "subtype":
                    supertypes[part].add(declaration.name)
        return {name: NamedType(name, kind, frozenset(reachable(supertypes, name))) for name, kind in kinds.items()}


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return the nodes reachable from `start`, itself included."""
    nodes, queue = {start}, [start]
    for name in queue:
        queue += graph[name] - nodes
        nodes |= graph[name]
    return nodes
