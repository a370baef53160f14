"""The types that a program declares, in whatever order: names first, then what they mean.

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
class Declaration:
    """A type as declared: how it is made of others."""

    name: str
    how: str  # subtype, alias or union
    parts: tuple[tuple[str, Position], ...]
    at: Position


class Types:
    """The declared types by name; the primitive ones are always there."""

    def __init__(self) -> None:
        self.declared: dict[str, Declaration] = {}

    def declare(self, name: str, how: str, parts: list[tuple[str, Position]], at: Position) -> None:
        """Remember a new type; what it is made of may be declared later."""
        if name in self.declared or name in PRIMITIVE:
            raise failure(ProgramError, f"type {name!r} is declared twice", at)
        self.declared[name] = Declaration(name, how, tuple(parts), at)

    def kind(self, name: str, at: Position, through: tuple[str, ...] = ()) -> Kind:
        """What values of a type are."""
        for primitive in PRIMITIVE:
            if name == primitive:
                return primitive
        found = self.declared.get(name)
        if found is None:
            known = [*self.declared, *PRIMITIVE]
            raise failure(UndefinedName, f"no type is called {name!r}", at, hint=did_you_mean(name, known))
        if name in through:
            raise failure(ProgramError, f"type {name!r} is made of itself", found.at)
        kinds = {part: self.kind(part, place, (*through, name)) for part, place in found.parts}
        if len(set(kinds.values())) > 1:
            shown = ", ".join(f"{part} is {kind}" for part, kind in kinds.items())
            raise failure(ProgramError, f"the parts of {name!r} are of different kinds", found.at, detail=f"{shown}.")
        return next(iter(kinds.values()))

    def resolved(self) -> dict[str, NamedType]:
        """Every type, with those that its values are also of."""
        kinds = {name: self.kind(name, each.at) for name, each in self.declared.items()}
        kinds |= {name: name for name in PRIMITIVE}
        above: dict[str, set[str]] = {name: {name, kind} for name, kind in kinds.items()}
        for each in self.declared.values():
            for part, _ in each.parts:
                if each.how != "union":
                    above[each.name].add(part)
                if each.how != "subtype":
                    above[part].add(each.name)
        return {name: NamedType(name, kind, frozenset(reached(above, name))) for name, kind in kinds.items()}


def reached(above: dict[str, set[str]], start: str) -> set[str]:
    """All that is above something, directly or not."""
    found, queue = {start}, [start]
    for name in queue:
        queue += above[name] - found
        found |= above[name]
    return found
