"""Declarations of base relations, and the storage of declarations and rule texts.

The semantics of a relation define what a change to it means:

    distinct           the relation is a set: inserting a row twice has no further effect, and one removal removes it
    cardinality-one    an inserted row replaces the row with the same key
    last-write-wins    as cardinality-one, but only if the value of its `order` column is not smaller
    raw                rows are counted as given; the writer ensures that they form a set where a rule needs one

The default is `distinct`. An attribute is a relation of an entity `e` and a value `v`. Its name begins with a colon and
its key is `e`. A last-write-wins attribute takes a third value in changes, the write time, which queries do not see.

A durable db stores every declaration and rule text, so that a service opened again has them. With a db in memory,
`DeclarationStore` does nothing. Interests are never stored, because they belong to connected clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from kpg.columns.schema import Schema, parse_type
from kpg.errors import SchemaMismatch, TypeMismatch
from kpg.query.ir.primitive_types import PRIMITIVE_TYPES
from kpg.query.ir.program import Relation, RelationColumn
from kpg.query.ir.terms import Kind
from kpg.query.lower.unit_input import UNIT
from kpg.query.lower.value_expressions import column_type, kind_of_type
from kpg.query.source_text import did_you_mean

if TYPE_CHECKING:
    from kpg.api.contracts import Database
    from kpg.service.rules import RegisteredText

Semantics = Literal["raw", "distinct", "cardinality-one", "last-write-wins"]
SEMANTICS: tuple[Semantics, ...] = get_args(Semantics)
REPLACING: tuple[Semantics, ...] = ("cardinality-one", "last-write-wins")  # a row replaces the one with the same key


@dataclass(frozen=True, slots=True)
class RelationDeclaration:
    """The name, columns and semantics of a base relation."""

    name: str
    columns: tuple[tuple[str, Kind], ...]
    semantics: Semantics = "distinct"
    key: tuple[str, ...] = ()  # the columns that identify the row to replace
    order: str | None = None  # of the rows with one key, the row with the greatest value in this column stays
    written: bool = False  # whether a change has one value more than there are columns: its write time

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of the columns."""
        return tuple(kind for _, kind in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _ in self.columns)

    @property
    def schema(self) -> Schema:
        """The schema of the engine's input; a relation without columns has one constant column there."""
        return Schema.of({name: column_type(kind) for name, kind in self.columns} or {UNIT: int})

    @property
    def indexed_by(self) -> tuple[str, ...]:
        """The columns of the primary index: the key, or else the first column."""
        return self.key or self.schema.names[:1]

    def in_program(self) -> Relation:
        """Return the relation as programs name it; each column outside the key is a function of all others."""
        columns = tuple(RelationColumn(name, kind, kind) for name, kind in self.columns)
        functional = tuple(index for index, name in enumerate(self.names) if self.key and name not in self.key)
        return Relation(self.name, columns, functional=functional)

    def to_json(self) -> dict[str, Any]:
        """Return the stored form. Member names are part of the disk format."""
        return {
            "columns": [list(column) for column in self.columns], "semantics": self.semantics, "key": list(self.key),
            "order": self.order, "written": self.written,
        }  # fmt: skip


def declaration_from_json(name: str, stored: Mapping[str, Any]) -> RelationDeclaration:
    """Return the declaration that `to_json` wrote."""
    columns = tuple((column, kind) for column, kind in stored["columns"])
    return RelationDeclaration(
        name, columns, stored["semantics"], tuple(stored["key"]), stored["order"], stored["written"]
    )


def declare_relation(
    name: str, columns: Mapping[str, Any], semantics: str, key: str | Sequence[str] | None, order: str | None
) -> RelationDeclaration:
    """Return the declaration of a relation as a user gives it; raise if it is inconsistent."""
    check_name(name, attribute=False)
    for column in columns:
        check_column(name, column)
    kinds = tuple((column, kind_of(spec, f"{name}.{column}")) for column, spec in columns.items())
    chosen = check_semantics(name, semantics)
    keys = (key,) if isinstance(key, str) else tuple(key or ())
    for column in (*keys, *((order,) if order else ())):
        if column not in columns:
            raise SchemaMismatch(f"{name} has no column {column!r}", hint=did_you_mean(column, columns))
    replacing = chosen in REPLACING
    if replacing != bool(keys):
        hint = "Give key=." if replacing else "Only cardinality-one and last-write-wins have a key."
        raise SchemaMismatch(f"{name} is {chosen} and has {'a' if keys else 'no'} key", hint=hint)
    if (chosen == "last-write-wins") != (order is not None):
        hint = "Give order=, a column of numbers." if order is None else "Only last-write-wins has an order."
        raise SchemaMismatch(f"{name} is {chosen} and has {'an' if order else 'no'} order", hint=hint)
    if order is not None and not is_ordered(dict(kinds)[order]):
        raise TypeMismatch(
            f"{name} cannot be ordered by {order}, which is a {dict(kinds)[order]}", hint="Choose a column of numbers."
        )
    return RelationDeclaration(name, kinds, chosen, keys, order)


def declare_attribute(name: str, kind: Any, semantics: str, entity: Any) -> RelationDeclaration:
    """Return the declaration of an attribute as a user gives it; raise if it is inconsistent."""
    check_name(name, attribute=True)
    chosen = check_semantics(name, semantics)
    columns = (("e", kind_of(entity, f"the entities of {name}")), ("v", kind_of(kind, f"the values of {name}")))
    key = ("e",) if chosen in REPLACING else ()
    return RelationDeclaration(name, columns, chosen, key, None, chosen == "last-write-wins")


def is_attribute(name: str) -> bool:
    """Whether a name is that of an attribute."""
    return name.startswith(":")


def check_name(name: str, attribute: bool) -> None:
    """Raise if a relation cannot have this name. Names that begin with @ are reserved for generated relations."""
    if not isinstance(name, str) or not name.strip() or name.startswith("@") or not name.isprintable():
        raise SchemaMismatch(
            f"{name!r} cannot be the name of a relation",
            hint="A name is printable, not empty, and does not begin with @.",
        )
    if is_attribute(name) != attribute:
        hint = "Attributes are named like :person/name." if attribute else "Use create_attribute for attributes."
        raise SchemaMismatch(f"{name!r} is {'no' if attribute else 'a'} name of an attribute", hint=hint)


def check_column(relation: str, column: str) -> None:
    """Raise if a column cannot have this name. Names that begin with a space are reserved, as for a tenant's token."""
    if not isinstance(column, str) or not column.isprintable() or column != column.strip() or not column:
        hint = "A name has no space before or after it, and no control characters."
        raise SchemaMismatch(f"{relation}: {column!r} cannot be the name of a column", hint=hint)


def kind_of(spec: Any, subject: str) -> Kind:
    """Return the kind that a type or a name stands for; `subject` names the column in an error."""
    if isinstance(spec, str) and spec.removesuffix("?") in PRIMITIVE_TYPES:
        name = spec.removesuffix("?")
        return PRIMITIVE_TYPES[name] + spec[len(name) :]
    try:
        return kind_of_type(parse_type(spec))
    except TypeMismatch:
        names = ", ".join((*PRIMITIVE_TYPES, "decimal(p,s)"))
        hint = f"Types are {names}, each with ? if it may be null; or int, float, str, bool and other Python types."
        raise TypeMismatch(f"{subject} cannot hold {spec!r}", hint=hint) from None


def is_ordered(kind: Kind) -> bool:
    """Return whether values of a kind can order writes: numbers and times that are not null."""
    return kind in ("number", "unsigned", "float", "date", "timestamp") or (
        kind.startswith("decimal(") and not kind.endswith("?")
    )


def check_semantics(name: str, semantics: str) -> Semantics:
    """Return the semantics with this name; raise if there is none."""
    for candidate in SEMANTICS:
        if candidate == semantics:
            return candidate
    raise SchemaMismatch(f"{name} cannot be {semantics!r}", hint=did_you_mean(semantics, SEMANTICS))


# On disk

RELATION_PREFIX = "relation "
RULES_PREFIX = "rules "


class StoredText(NamedTuple):
    """A rule text as it is stored. Field names are part of the disk format."""

    number: int
    language: str
    source: str
    name: str | None


class DeclarationStore:
    """The declarations and rule texts of a service, in the directory of its db."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def relations(self) -> Iterator[RelationDeclaration]:
        """Yield the stored relation declarations."""
        for name, value in self._entries(RELATION_PREFIX):
            yield declaration_from_json(name, value)

    def texts(self) -> list[StoredText]:
        """Return the stored rule texts in the order of their registration."""
        return sorted(StoredText(int(number), **value) for number, value in self._entries(RULES_PREFIX))

    def _entries(self, prefix: str) -> Iterator[tuple[str, Any]]:
        for name, value in sorted(self._db.declarations.items()):
            if name.startswith(prefix):
                yield name.removeprefix(prefix), value

    def add_relation(self, declaration: RelationDeclaration) -> None:
        """Store a relation declaration."""
        self._db.declare(RELATION_PREFIX + declaration.name, declaration.to_json())

    def remove_relation(self, name: str) -> None:
        """Remove a relation declaration from the storage."""
        self._db.undeclare(RELATION_PREFIX + name)

    def add_text(self, text: RegisteredText) -> None:
        """Store a rule text."""
        value = {"language": text.language, "source": text.source, "name": text.name}
        self._db.declare(f"{RULES_PREFIX}{text.number}", value)

    def remove_text(self, text: RegisteredText) -> None:
        """Remove a rule text from the storage."""
        self._db.undeclare(f"{RULES_PREFIX}{text.number}")
