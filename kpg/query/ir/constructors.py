"""The constructors of a program's own types, and the signatures of every functor that its rules may call.

    .type List = [head: number, tail: List]       the constructors [_, _] and nil
    .type Tree = Leaf {} | Node {x: number}       the constructors $Leaf and $Node(_)
    .functor f(x: number): number                 the functor @f

A constructed value is a call in rules: the functor "[]", "nil", "$Node" or "@f". The kind of a record or algebraic type
is its name. `Signatures` finds the signature of any call: that of a built-in functor, or one made from declarations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from kpg.query.ir.functors import FUNCTORS, Functor
from kpg.query.ir.primitive_types import PRIMITIVE_TYPES
from kpg.query.ir.terms import KINDS, CallTerm, ConstantTerm, Kind, Term, subterms
from kpg.query.source_text import NOWHERE, Position

RECORD = "[]"  # the functor of all records except nil
NIL = "nil"
BRANCH = "$"  # first character of the functors of algebraic types
USER = "@"  # first character of user-defined functors
CAST = "as "  # prefix of casts: the functor "as number"


@dataclass(frozen=True, slots=True)
class Constructor:
    """A way to make values of a record or algebraic type from fields."""

    functor: str  # "[]" or "$Node"
    type: str
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    types: tuple[str, ...] = ()  # of the fields, as declared
    at: Position = field(default=NOWHERE, compare=False, repr=False)

    @property
    def arity(self) -> int:
        """The number of fields."""
        return len(self.names)

    @property
    def tag(self) -> str:
        """The tag of its records, as in kpg.columns.record_text: empty, or "$Node"."""
        return "" if self.functor == RECORD else self.functor


@dataclass(frozen=True, slots=True)
class UserFunctor:
    """The declaration of a function of the user: its name, and the kinds of its arguments and result."""

    name: str
    arguments: tuple[Kind, ...]
    result: Kind
    at: Position = field(default=NOWHERE, compare=False, repr=False)


class Signatures:
    """The signatures of all calls of one program."""

    def __init__(
        self,
        constructors: Iterable[Constructor] = (),
        functors: Iterable[UserFunctor] = (),
        types: Mapping[str, Kind] = MappingProxyType({}),
    ) -> None:
        self.types = {**PRIMITIVE_TYPES, **types}  # the kinds of types, which casts name
        self.constructors = tuple(constructors)
        self.functors = {USER + functor.name: functor for functor in functors}
        self.records = tuple(dict.fromkeys(one.type for one in self.constructors))
        self.kinds: tuple[Kind, ...] = (*KINDS, *self.records)  # that constants, calls and fields can have

    def of(self, call: CallTerm) -> Functor | None:
        """Return the signature of a call, or None if there is no such functor."""
        return self.named(call.functor, len(call.arguments))

    def named(self, name: str, arity: int) -> Functor | None:
        """Return the signature of a functor called with a number of arguments."""
        if name in FUNCTORS:
            return with_records(FUNCTORS[name], self.records) if name == "ord" else FUNCTORS[name]
        if name == RECORD:
            fitting = [one for one in self.constructors if one.functor == RECORD and one.arity == arity]
            return made_by(fitting, arity)
        if name == NIL:
            types = dict.fromkeys(one.type for one in self.constructors if one.functor == RECORD)
            return Functor(tuple(((), type_) for type_ in types), 0, 0) if types else None
        if name.startswith(BRANCH):
            branches = [one for one in self.constructors if one.functor == name]
            return made_by(branches, branches[0].arity) if branches else None
        if name.startswith(USER) and name in self.functors:
            functor = self.functors[name]
            return Functor(((functor.arguments, functor.result),), len(functor.arguments), len(functor.arguments))
        kind = self.types.get(name.removeprefix(CAST))
        return cast_to(kind, self.kinds) if kind is not None and name.startswith(CAST) else None

    def constructor(self, call: CallTerm) -> Constructor | None:
        """Return the constructor of a call with an inferred kind; None for nil and for functors."""
        for one in self.constructors:
            if one.functor == call.functor and one.type == call.kind and one.arity == len(call.arguments):
                return one
        return None


def is_constructor(call: object) -> bool:
    """Return whether a term constructs a record or a branch."""
    return isinstance(call, CallTerm) and (call.functor in (RECORD, NIL) or call.functor.startswith(BRANCH))


def is_known_record(term: Term) -> bool:
    """Return whether a term constructs a record of constants alone."""
    return is_constructor(term) and all(
        isinstance(part, ConstantTerm) or is_constructor(part) for part in subterms(term)
    )


def made_by(constructors: list[Constructor], arity: int) -> Functor | None:
    """Return the signature of constructors that are written alike, one alternative for each type."""
    alternatives = tuple((one.kinds, one.type) for one in constructors)
    return Functor(alternatives, arity, arity) if alternatives else None


def with_records(functor: Functor, records: tuple[Kind, ...]) -> Functor:
    """Return a functor of any value with alternatives for records."""
    ((_, result), *_) = functor.alternatives
    return Functor((*functor.alternatives, *(((kind,), result) for kind in records)), 1, 1)


def cast_to(kind: Kind, kinds: tuple[Kind, ...]) -> Functor:
    """Return the signature of a cast: from numbers and symbols to numbers, and among kinds of one representation."""
    if kind in ("number", "unsigned", "float"):
        sources: tuple[Kind, ...] = kinds
    elif kind in KINDS:
        sources = (kind,)
    else:
        sources = tuple(source for source in kinds if source not in KINDS)
    return Functor(tuple(((source,), kind) for source in sources), 1, 1)


# --- taking values apart, after type inference ------------------------------------------------------------------------

FIELD = "field "  # prefix of the functors that take a field out of a record
IS_TAGGED = "is "  # prefix of the tests for the tag of a record


@dataclass(frozen=True, slots=True)
class FieldAccess:
    """The parts of the name of a functor or test that takes a record apart."""

    position: int
    arity: int
    tag: str
    name: str


def field_of(record: Term, constructor: Constructor, position: int) -> CallTerm:
    """Return the call that takes a field out of a record, which must have the tag of the constructor."""
    name = f"{FIELD}{position} {constructor.arity} {constructor.names[position]} {constructor.tag}"
    return CallTerm(name, (record,), constructor.kinds[position], record.at)


def tag_test(constructor: Constructor) -> str:
    """Return the name of the test whether a record has the tag of a constructor."""
    return f"{IS_TAGGED}0 {constructor.arity} - {constructor.tag}"


def field_access(name: str) -> FieldAccess:
    """Return the parts of a name that `field_of` or `tag_test` made."""
    _, position, arity, field_name, tag = name.split(" ", 4)
    return FieldAccess(int(position), int(arity), tag, field_name)
