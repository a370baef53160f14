"""The types that a program declares. A declaration may use types that are declared later.

.type A <: symbol                       every A is a symbol
.type A = symbol                        two names for one type
.type A = B | C                         every B and every C is an A
.type A = [x: number, rest: A]          records of these fields, and nil
.type A = Leaf {} | Node {x: number}    an algebraic type: each value is of one branch
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.errors import ProgramError, UndefinedName
from kpg.query.ir.constructors import RECORD, Constructor, UserFunctor
from kpg.query.ir.primitive_types import PRIMITIVE_TYPES, RANGES, Range
from kpg.query.ir.program import NamedType
from kpg.query.ir.terms import Kind
from kpg.query.source_text import Position, did_you_mean, failure


@dataclass(frozen=True, slots=True)
class TypeName:
    """The name of a type where a declaration uses it."""

    name: str
    at: Position


@dataclass(frozen=True, slots=True)
class FieldList:
    """The fields of a record, or of one branch of an algebraic type; `functor` is what constructs it."""

    functor: str
    fields: tuple[tuple[str, TypeName], ...]
    at: Position


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """One declaration: a name and the types that define it."""

    name: str
    form: str  # subtype, alias, union or constructed
    parts: tuple[tuple[str, Position], ...]
    at: Position
    fields: tuple[FieldList, ...] = ()  # of a constructed type: one list, or one for each branch


@dataclass(frozen=True, slots=True)
class FunctorDeclaration:
    """`.functor f(x: number): number`."""

    name: str
    arguments: tuple[TypeName, ...]
    result: TypeName
    at: Position


SOUFFLE_TYPES = ("number", "unsigned", "float", "symbol")  # programs may declare other built-in names, as in Soufflé


class DeclaredTypes:
    """The declared types by name, besides the primitive ones, and the declared functors."""

    def __init__(self) -> None:
        self.declared: dict[str, TypeDeclaration] = {}
        self.functors: dict[str, FunctorDeclaration] = {}

    def declare(self, name: str, form: str, parts: list[tuple[str, Position]], at: Position) -> None:
        """Add a type; its parts may be declared later."""
        self._add(TypeDeclaration(name, form, tuple(parts), at))

    def declare_constructed(self, name: str, fields: list[FieldList], at: Position) -> None:
        """Add a record or algebraic type; the types of its fields may be declared later."""
        for branch in fields:
            check_fields(branch)
        self._add(TypeDeclaration(name, "constructed", (), at, tuple(fields)))

    def _add(self, declaration: TypeDeclaration) -> None:
        if declaration.name in (SOUFFLE_TYPES if declaration.form != "constructed" else PRIMITIVE_TYPES):
            what = f"type {declaration.name!r} is built in"
            raise failure(ProgramError, what, declaration.at, hint="Choose another name.")
        if declaration.name in self.declared:
            hint = "Remove one of the declarations, or choose another name."
            raise failure(ProgramError, f"type {declaration.name!r} is declared twice", declaration.at, hint=hint)
        self.declared[declaration.name] = declaration

    def declare_functor(self, declaration: FunctorDeclaration) -> None:
        """Add a user-defined functor."""
        if declaration.name in self.functors:
            hint = f"First at {self.functors[declaration.name].at}."
            raise failure(ProgramError, f"functor {declaration.name!r} is declared twice", declaration.at, hint=hint)
        self.functors[declaration.name] = declaration

    def kind(self, name: str, at: Position, through: tuple[str, ...] = ()) -> Kind:
        """Return the kind of a type's values; `through` are the types that led to this one."""
        declaration = self.declared.get(name)
        if declaration is None and name in PRIMITIVE_TYPES:
            return PRIMITIVE_TYPES[name]
        if declaration is None:
            names = [*self.declared, *PRIMITIVE_TYPES]
            raise failure(UndefinedName, f"no type is called {name!r}", at, hint=did_you_mean(name, names))
        if declaration.form == "constructed":
            return name
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

    def range(self, name: str) -> Range | None:
        """Return the range of a declared type with a known kind: that of the small integer type that it stands for."""
        while name in self.declared and len(self.declared[name].parts) == 1:
            ((name, _),) = self.declared[name].parts
        return RANGES.get(name)

    def resolved(self) -> dict[str, NamedType]:
        """Return every type with its kind and all its supertypes."""
        kinds = dict(PRIMITIVE_TYPES)
        kinds |= {name: self.kind(name, declaration.at) for name, declaration in self.declared.items()}
        supertypes: dict[str, set[str]] = {name: {name, kind} for name, kind in kinds.items()}
        for declaration in self.declared.values():
            for written, _ in declaration.parts:
                is_declared = written in self.declared  # else int32 and the like stand for the type of their kind
                part = written if is_declared else PRIMITIVE_TYPES.get(written, written)
                if declaration.form != "union":
                    supertypes[declaration.name].add(part)
                if declaration.form != "subtype":
                    supertypes[part].add(declaration.name)
        return {name: NamedType(name, kind, frozenset(reachable(supertypes, name))) for name, kind in kinds.items()}

    def constructors(self) -> tuple[Constructor, ...]:
        """Return the constructors of all records and branches; raise ProgramError if two branches have one name."""
        constructors: dict[str, Constructor] = {}
        for declaration in self.declared.values():
            for branch in declaration.fields:
                one = self._constructor(declaration, branch)
                in_component = one.functor == RECORD or "." in one.type  # each instance has branches of its own
                key = f"{one.functor} {one.type}" if in_component else one.functor
                if key in constructors:
                    what = f"{one.functor} is a branch of {constructors[key].type} and of {one.type}"
                    hint = "Rename one of them: a branch belongs to one type."
                    raise failure(ProgramError, what, branch.at, hint=hint)
                constructors[key] = one
        return tuple(constructors.values())

    def _constructor(self, declaration: TypeDeclaration, branch: FieldList) -> Constructor:
        kinds = tuple(self.kind(type_.name, type_.at) for _, type_ in branch.fields)
        names = tuple(name for name, _ in branch.fields)
        types = tuple(type_.name for _, type_ in branch.fields)
        return Constructor(branch.functor, declaration.name, names, kinds, types, branch.at)

    def user_functors(self) -> tuple[UserFunctor, ...]:
        """Return the user-defined functors with the kinds of their arguments and results."""
        return tuple(
            UserFunctor(
                one.name,
                tuple(self.kind(type_.name, type_.at) for type_ in one.arguments),
                self.kind(one.result.name, one.result.at),
                one.at,
            )
            for one in self.functors.values()
        )


def check_fields(branch: FieldList) -> None:
    """Raise ProgramError if two fields have the same name."""
    seen: set[str] = set()
    for name, type_ in branch.fields:
        if name in seen:
            raise failure(ProgramError, f"two fields are called {name!r}", type_.at, hint="Rename one of them.")
        seen.add(name)


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return the nodes reachable from `start`, itself included."""
    nodes, queue = {start}, [start]
    for name in queue:
        queue += graph[name] - nodes
        nodes |= graph[name]
    return nodes
