"""What a program has declared so far: types and relations, across included files."""

from __future__ import annotations

from kpg.errors import ProgramError, UndefinedName
from kpg.query.ir.program import NamedType
from kpg.query.ir.terms import Kind
from kpg.query.source import Position, did_you_mean, failure

PRIMITIVE: tuple[Kind, ...] = ("number", "unsigned", "float", "symbol")


class Types:
    """The types by name; the primitive ones are always there."""

    def __init__(self) -> None:
        self.known: dict[str, NamedType] = {name: NamedType(name, name, frozenset({name})) for name in PRIMITIVE}

    def kind(self, name: str, at: Position) -> Kind:
        """What values of a type are."""
        return self.find(name, at).kind

    def find(self, name: str, at: Position) -> NamedType:
        """A type by name."""
        found = self.known.get(name)
        if found is None:
            raise failure(UndefinedName, f"no type is called {name!r}", at, hint=did_you_mean(name, self.known))
        return found

    def declare_subtype(self, name: str, of: str, at: Position, of_at: Position) -> None:
        """`.type name <: of`"""
        above = self.find(of, of_at)
        self.add(NamedType(name, above.kind, above.above | {name}), at)

    def declare_alias(self, name: str, of: str, at: Position, of_at: Position) -> None:
        """`.type name = of`: the same type by another name, so each may stand in for the other."""
        same = self.find(of, of_at)
        self.add(NamedType(name, same.kind, same.above | {name}), at)
        self.extend(of, name)

    def declare_union(self, name: str, parts: list[tuple[str, Position]], at: Position) -> None:
        """`.type name = a | b`: every part may stand in for it."""
        found = [self.find(*part) for part in parts]
        kinds = {each.kind for each in found}
        if len(kinds) > 1:
            shown = ", ".join(f"{each.name} is {each.kind}" for each in found)
            raise failure(ProgramError, f"the parts of {name!r} are of different kinds", at, detail=f"{shown}.")
        kind = found[0].kind
        self.add(NamedType(name, kind, frozenset({name, kind})), at)
        for part, _ in parts:
            self.extend(part, name)

    def add(self, made: NamedType, at: Position) -> None:
        """Remember a new type."""
        if made.name in self.known:
            raise failure(ProgramError, f"type {made.name!r} is declared twice", at)
        self.known[made.name] = made

    def extend(self, part: str, whole: str) -> None:
        """Say that values of one type, and of all below it, are also of another."""
        for name, each in list(self.known.items()):
            if part in each.above:
                self.known[name] = NamedType(name, each.kind, each.above | {whole})
