"""What a base relation is declared as: its columns, and what a change to it means.

    distinct           a row is there or not: putting it twice puts it, taking it away takes it away (the default)
    cardinality-one    a row takes the place of the one with the same key
    last-write-wins    likewise, but only if its `order` column is not smaller
    raw                rows are counted as they come; whoever puts them sees to it that they are a set if it matters

An attribute is a relation of an entity `e` and a value `v` whose name begins with a colon; its key is `e`. One whose
last write wins takes a third value in changes, the time of the write, which queries do not see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kpg.columns.schema import Schema
from kpg.errors import SchemaMismatch, TypeMismatch
from kpg.query.ir.program import Relation, RelationColumn
from kpg.query.ir.terms import KINDS, Kind
from kpg.query.lower.expressions import TYPES
from kpg.query.lower.lower_rule import UNIT
from kpg.query.source_text import did_you_mean

Semantics = Literal["raw", "distinct", "cardinality-one", "last-write-wins"]
SEMANTICS: tuple[Semantics, ...] = get_args(Semantics)
KIND_OF: dict[Any, Kind] = {
    int: "number", float: "float", str: "symbol", bool: "bool", "int": "number", "int64": "number", "str": "symbol",
    "string": "symbol", "float64": "float", **{kind: kind for kind in KINDS},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Declared:
    """A base relation."""

    name: str
    columns: tuple[tuple[str, Kind], ...]
    semantics: Semantics = "distinct"
    key: tuple[str, ...] = ()  # of rows that replace each other
    order: str | None = None  # the column by which they do
    written: bool = False  # whether changes have one value more than columns: when they were written

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What the columns hold."""
        return tuple(kind for _, kind in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are called."""
        return tuple(name for name, _ in self.columns)

    @property
    def schema(self) -> Schema:
        """The columns as the engine keeps them."""
        return Schema.of({name: TYPES[kind] for name, kind in self.columns} or {UNIT: int})

    @property
    def indexed_by(self) -> tuple[str, ...]:
        """The columns that its rows are kept by: its key, else the first."""
        return self.key or self.schema.names[:1]

    def in_program(self) -> Relation:
        """The relation as programs name it; beside the key each column is a function of all others."""
        columns = tuple(RelationColumn(name, kind, kind) for name, kind in self.columns)
        single = tuple(place for place, name in enumerate(self.names) if self.key and name not in self.key)
        return Relation(self.name, columns, functional=single)

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "columns": [list(column) for column in self.columns], "semantics": self.semantics, "key": list(self.key),
            "order": self.order, "written": self.written,
        }  # fmt: skip


def declared_from_json(name: str, found: Mapping[str, Any]) -> Declared:
    """A relation as it was stored."""
    columns = tuple((column, kind) for column, kind in found["columns"])
    return Declared(name, columns, found["semantics"], tuple(found["key"]), found["order"], found["written"])


def declare_relation(
    name: str, columns: Mapping[str, Any], semantics: str, key: str | Sequence[str] | None, order: str | None
) -> Declared:
    """A relation as a user declares it; refuses what has no meaning."""
    check_name(name, attribute=False)
    for column in columns:
        check_column(name, column)
    kinds = tuple((column, kind_of(spec, f"{name}.{column}")) for column, spec in columns.items())
    chosen = check_semantics(name, semantics)
    keys = (key,) if isinstance(key, str) else tuple(key or ())
    for column in (*keys, *((order,) if order else ())):
        if column not in columns:
            raise SchemaMismatch(f"{name} has no column {column!r}", hint=did_you_mean(column, columns))
    replacing = chosen in ("cardinality-one", "last-write-wins")
    if replacing != bool(keys):
        hint = "Say key=." if replacing else "Only cardinality-one and last-write-wins have a key."
        raise SchemaMismatch(f"{name} is {chosen} and has {'a' if keys else 'no'} key", hint=hint)
    if (chosen == "last-write-wins") != (order is not None):
        hint = "Say order=, a column of numbers." if order is None else "Only last-write-wins has an order."
        raise SchemaMismatch(f"{name} is {chosen} and has {'an' if order else 'no'} order", hint=hint)
    if order is not None and dict(kinds)[order] not in ("number", "unsigned", "float"):
        raise TypeMismatch(f"{name} cannot be ordered by {order}, which is a {dict(kinds)[order]}")
    return Declared(name, kinds, chosen, keys, order)


def declare_attribute(name: str, kind: Any, semantics: str, entity: Any) -> Declared:
    """An attribute as a user declares it."""
    check_name(name, attribute=True)
    chosen = check_semantics(name, semantics)
    columns = (("e", kind_of(entity, f"the entities of {name}")), ("v", kind_of(kind, f"the values of {name}")))
    replacing = chosen in ("cardinality-one", "last-write-wins")
    return Declared(name, columns, chosen, ("e",) if replacing else (), None, chosen == "last-write-wins")


def is_attribute(name: str) -> bool:
    """Whether a name is that of an attribute."""
    return name.startswith(":")


def check_name(name: str, attribute: bool) -> None:
    """Refuse names that queries could not say, or that are ours."""
    if not isinstance(name, str) or not name.strip() or name.startswith("@") or not name.isprintable():
        raise SchemaMismatch(f"{name!r} is no name of a relation", hint="A name has no control characters.")
    if is_attribute(name) != attribute:
        hint = "Attributes are named like :person/name." if attribute else "Use create_attribute for attributes."
        raise SchemaMismatch(f"{name!r} is {'no' if attribute else 'a'} name of an attribute", hint=hint)


def check_column(relation: str, column: str) -> None:
    """Refuse names of columns that are ours: those begin with a space, as the token of a tenant does."""
    if not isinstance(column, str) or not column.isprintable() or column != column.strip() or not column:
        hint = "A name has no space before or after it, and no control characters."
        raise SchemaMismatch(f"{relation}: {column!r} is no name of a column", hint=hint)


def kind_of(spec: Any, what: str) -> Kind:
    """The kind of values that a type or a name means."""
    try:
        found = KIND_OF.get(spec)
    except TypeError:
        found = None
    if found is None:
        known = f"Kinds are {', '.join(KINDS)}; or int, float, str, bool."
        raise TypeMismatch(f"{what} cannot hold {spec!r}", hint=known)
    return found


def check_semantics(name: str, semantics: str) -> Semantics:
    """What changes mean, by name."""
    for known in SEMANTICS:
        if known == semantics:
            return known
    raise SchemaMismatch(f"{name} cannot be {semantics!r}", hint=did_you_mean(semantics, SEMANTICS))
